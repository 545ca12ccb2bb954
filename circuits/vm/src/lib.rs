//! A machine for Hekaton: proofs that an RV32IM program ran on a partly secret input and ended with this exit
//! code and this output.
//!
//! A [`Program`] is an ELF file of any compiler for rv32im. [`run`] executes it. [`MachineCircuit`] is the circuit
//! of its proof. It consists of *opcode chips*, one subcircuit type for each class of instructions
//! ([`Chip`]), instead of one step circuit for all instructions. Buses for the state, the registers and the
//! memory connect them (spec: machine#buses). The types do not depend on the program, so one key family serves all programs and
//! all lengths of runs (spec: key-family#setup).
//!
//! # Memory
//!
//! | addresses | |
//! |---|---|
//! | [`CODE`] | segments of the program, with zeros in gaps |
//! | behind them, below [`INPUT`] | zero at the beginning: bss, heap, stack |
//! | [`INPUT`] | public words, then the number of the private bytes, then these |
//! | [`OUTPUT`] | [`OUTPUT_WORDS`] words, public |
//!
//! A program ends with an ECALL with 93 in a7; the exit code is in a0, as on Linux. Other calls are hash functions and
//! arithmetic of large numbers (spec: machine#precompiles).

mod address_space;
mod bounds;
mod chips;
mod circuit;
mod claim;
mod effects;
mod elf;
mod form;
pub mod guests;
mod hashes;
mod input;
mod isa;
mod layout;
mod machine;
mod memory;
mod mulmod;
mod op;
mod output;
mod parts;
mod pinned;
mod precompile;
mod profile;
mod program;
mod rows;
mod run;
mod sizes;
mod tables;
mod template;
#[cfg(test)]
mod tests;
mod tinyram;
mod trap;
mod word;

pub use address_space::{CODE, INPUT, MAX_IMAGE, OUTPUT, OUTPUT_WORDS};
pub use bounds::BoundsError;
pub use circuit::{Counts, MAX_PUBLIC, MachineCircuit, Plan, Private};
pub use claim::{Claim, ClaimError, MAGIC};
pub use elf::ProgramError;
pub use input::Input;
pub use isa::{Chip, Isa};
pub use output::Output;
pub use profile::{Cost, Function, Loop, Profile};
pub use program::{Program, Summary};
pub use run::{MAX_CYCLES, Observer, Run, run, run_observed};
pub use sizes::Sizes;
pub use tinyram::AssemblyError;
pub use trap::{RunError, Trap, TrapReason};
