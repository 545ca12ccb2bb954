//! The files that C programs are compiled with.

/// `start.S`: gp, tp and the stack, `main`, and the exit.
pub const START: &str = include_str!("../guests/start.S");

/// `library.S`: `_exit`, `abort` and failed assertions, for programs with a C library.
pub const LIBRARY: &str = include_str!("../guests/library.S");

/// `guest.ld`, the link script: where stack, code, constants, data and heap are.
pub const LINK_SCRIPT: &str = include_str!("../guests/guest.ld");

/// `hekaton.h`: input, output and hash functions.
pub const HEADER: &str = include_str!("../guests/hekaton.h");
