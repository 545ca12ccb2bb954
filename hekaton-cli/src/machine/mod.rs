//! Programs of the machine: their files, their runs, and keys for them.

mod circuit;
mod compile;
mod files;
pub(crate) mod keys;
mod lines;
pub(crate) mod options;
pub(crate) mod profile;
mod rows;
mod run;
mod shape;
mod trial;

pub(crate) use circuit::{FamilyParameters, NAME, VmCircuits, family};
pub(crate) use compile::compile;
pub(crate) use files::{program, program_of, public_words, read_program};
pub(crate) use rows::cheapest;
pub(crate) use run::{Executed, ProgramRun, output_json, result};
pub(crate) use shape::counts_json;
