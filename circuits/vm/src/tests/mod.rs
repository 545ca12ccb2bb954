//! Tests of the machine and its chips.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

mod assembler;
mod attacks;
mod calls;
mod forgeries;
mod instructions;
mod mulmod;
mod output;
mod pinned;
mod profile;
mod program;
mod proofs;
mod qemu;
mod replay;
mod run;
mod search;
mod search_tiny;
mod segments;
mod tinyram;
mod unique;
