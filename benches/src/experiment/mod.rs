//! The experiments of the paper, repeated: points are planned from TOML files, each repetition is
//! a process of its own that proves, and another one that verifies, and figures and claims come
//! from the files that these leave behind.
//!
//! A repetition counts only if the run finished, the proof was accepted, and the environment is
//! that of the other repetitions. `paper-results/README.md` describes commands and files.
#![allow(clippy::print_stderr, reason = "a program's messages")]

mod arguments;
mod check;
mod claims;
mod clusters;
mod collect;
mod columns;
mod combinations;
mod commands;
mod compare;
mod environment;
mod epoch;
mod failure;
mod files;
mod keys;
mod measured;
mod model;
mod outcome;
mod peers;
mod plan;
mod predicted;
mod process;
mod program;
mod rows;
mod run;
mod scale;
mod session;
mod spec;
mod statistics;

pub use commands::main;
