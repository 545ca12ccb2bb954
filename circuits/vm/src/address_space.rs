//! The addresses of the machine: where programs, their input and their output are.

use std::ops::Range;

/// The addresses of the segments of a program.
// A null pointer traps, since nothing is below 2^16.
pub const CODE: Range<u32> = 0x1_0000..0x1000_0000;

/// The address of the input, behind the memory that is zero at the beginning.
pub const INPUT: u32 = 0x2000_0000;

/// The address of the output.
pub const OUTPUT: u32 = 0x3000_0000;

/// The number of words of the output.
// Each is a public value; a program with more to say writes a digest.
pub const OUTPUT_WORDS: usize = 16;

/// The maximum number of words from the first segment to the last: 16 MiB, gaps included.
// Each word takes three rows of a subcircuit.
pub const MAX_IMAGE: usize = 1 << 22;
