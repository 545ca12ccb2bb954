//! The files that programs are compiled with.

/// `start.S`: gp, tp and the stack, `main`, and the exit.
pub const START: &str = include_str!("../guests/start.S");

/// `library.S`: `_exit`, `abort` and failed assertions, for programs with a C library.
pub const LIBRARY: &str = include_str!("../guests/library.S");

/// `guest.ld`, the link script: where stack, code, constants, data and heap are.
pub const LINK_SCRIPT: &str = include_str!("../guests/guest.ld");

/// `hekaton.h`: input, output and the functions of the machine.
pub const HEADER: &str = include_str!("../guests/hekaton.h");

/// Patches of crates of crates.io that make them use the calls of the machine: name, version, and unified diffs of files.
pub const PATCHES: [(&str, &str, &str); 3] = [
    ("curve25519-dalek", "4.1.3", include_str!("../guests/patches/curve25519-dalek-4.1.3.patch")),
    ("k256", "0.13.4", include_str!("../guests/patches/k256-0.13.4.patch")),
    ("sha2", "0.10.9", include_str!("../guests/patches/sha2-0.10.9.patch")),
];

/// The crate `hekaton-guest`, which Rust programs depend on: paths in its folder, and what is there.
// Its manifests have other names in the repository: a package leaves out folders that have a manifest.
pub const RUNTIME: [(&str, &str); 14] = [
    ("Cargo.toml", include_str!("../guests/runtime/manifest.toml")),
    ("macros/Cargo.toml", include_str!("../guests/runtime/macros/manifest.toml")),
    ("guest.ld", LINK_SCRIPT),
    ("build.rs", include_str!("../guests/runtime/build.rs")),
    ("src/exit.rs", include_str!("../guests/runtime/src/exit.rs")),
    ("src/functions.rs", include_str!("../guests/runtime/src/functions.rs")),
    ("src/heap.rs", include_str!("../guests/runtime/src/heap.rs")),
    ("src/input.rs", include_str!("../guests/runtime/src/input.rs")),
    ("src/lib.rs", include_str!("../guests/runtime/src/lib.rs")),
    ("src/memory.rs", include_str!("../guests/runtime/src/memory.rs")),
    ("src/output.rs", include_str!("../guests/runtime/src/output.rs")),
    ("src/text.rs", include_str!("../guests/runtime/src/text.rs")),
    ("src/words.rs", include_str!("../guests/runtime/src/words.rs")),
    ("macros/src/lib.rs", include_str!("../guests/runtime/macros/src/lib.rs")),
];
