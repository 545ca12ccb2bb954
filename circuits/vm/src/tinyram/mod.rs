//! vnTinyRAM (BCTV14b) with words of 32 bits and 16 registers: the machine of the paper's RAM experiment.
//!
//! An instruction has two words, the first of which has, from the upper bit, 5 bits of opcode, a bit that says
//! whether the operand A is an immediate, 4 bits each of ri and rj, and zeros; the second one is A. Programs
//! begin at address 0, and the pc counts bytes. Fields that an instruction does not have are zero.
//!
//! Where the architecture leaves it open, or has more than a proof needs: a jump to an address that is not a
//! multiple of 8 is a trap; code is not changed by stores to it; there is memory below [`INPUT`](crate::INPUT),
//! the public input there, and [`OUTPUT_WORDS`](crate::OUTPUT_WORDS) words at [`OUTPUT`](crate::OUTPUT). Tape 1
//! has the private input; tape 0 is empty, since the primary input is in memory at the beginning.

mod assembler;
mod decode;
mod execute;

pub use assembler::AssemblyError;
#[cfg(test)]
pub(crate) use decode::{Opcode, Operand, decode, encode};
