//! The files that programs are compiled with.

/// `start.S`: gp, tp and the stack, `main`, and the exit.
pub const START: &str = include_str!("../guests/start.S");

/// `library.S`: `_exit`, `abort` and failed assertions, for programs with a C library.
pub const LIBRARY: &str = include_str!("../guests/library.S");

/// `guest.ld`, the link script: where stack, code, constants, data and heap are.
pub const LINK_SCRIPT: &str = include_str!("../guests/guest.ld");

/// `hekaton.h`: input, output and hash functions.
pub const HEADER: &str = include_str!("../guests/hekaton.h");

/// The crate `hekaton-guest`, which Rust programs depend on: paths in its folder, and what is there.
// Its manifests have other names in the repository: a package leaves out folders that have a manifest.
pub const RUNTIME: [(&str, &str); 13] = [
    ("Cargo.toml", include_str!("../guests/runtime/manifest.toml")),
    ("macros/Cargo.toml", include_str!("../guests/runtime/macros/manifest.toml")),
    ("guest.ld", LINK_SCRIPT),
    ("build.rs", include_str!("../guests/runtime/build.rs")),
    ("src/exit.rs", include_str!("../guests/runtime/src/exit.rs")),
    ("src/functions.rs", include_str!("../guests/runtime/src/functions.rs")),
    ("src/heap.rs", include_str!("../guests/runtime/src/heap.rs")),
    ("src/input.rs", include_str!("../guests/runtime/src/input.rs")),
    ("src/lib.rs", include_str!("../guests/runtime/src/lib.rs")),
    ("src/output.rs", include_str!("../guests/runtime/src/output.rs")),
    ("src/text.rs", include_str!("../guests/runtime/src/text.rs")),
    ("src/words.rs", include_str!("../guests/runtime/src/words.rs")),
    ("macros/src/lib.rs", include_str!("../guests/runtime/macros/src/lib.rs")),
];
