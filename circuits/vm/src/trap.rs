//! Reasons why a run stops without an exit, and so without a proof.

use std::ops::Range;

/// The reason why a program stopped without an exit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrapReason {
    /// There is no code at the pc.
    #[error("no code at this address")]
    NoCode,
    /// The word is not an instruction of the machine: RV32IM, or TinyRAM.
    #[error("{}", not_executed(*.0))]
    Illegal(u32),
    /// A jump or branch to an address that is not a multiple of the size of an instruction.
    #[error("jump to {target:#x}, which is not a multiple of {size}")]
    MisalignedJump {
        /// The address.
        target: u32,
        /// The number of bytes of an instruction.
        size: u32,
    },
    /// An access to an address that is not a multiple of its size.
    #[error("access of {size} bytes at {address:#x}, which is not a multiple of {size}")]
    MisalignedAccess {
        /// The address.
        address: u32,
        /// The number of bytes.
        size: u32,
    },
    /// An access to an address where there is no memory.
    #[error("access at {0:#x}, where there is no memory")]
    Unmapped(u32),
    /// An access below the program's memory, with the stack pointer there, too.
    #[error(
        "stack overflow: access at {address:#x}, below the program's memory, which begins at \
         {start:#x}; a larger stack: -DSTACK_SIZE=N in C, #[hekaton_guest::main(stack = N)] in Rust"
    )]
    StackOverflow {
        /// The address of the access.
        address: u32,
        /// The first address of the program's memory.
        start: u32,
    },
    /// A store to a segment that is not writable.
    #[error(
        "store at {address:#x}, in the segment at {:#x}..{:#x}, which is not writable",
        .segment.start, .segment.end
    )]
    ReadOnly {
        /// The address of the store.
        address: u32,
        /// The segment's addresses.
        segment: Range<u32>,
    },
    /// A system call that the machine does not have.
    #[error(
        "system call {0} is not supported, expected exit (93 in a7), the compression of SHA-256 (1001), \
         Keccak-f (1002) or a b + c mod m (1003 on 256 bits, 1004 on 384)"
    )]
    UnknownCall(u32),
    /// A system call for a b + c mod m without a result: m is zero, or the quotient has too many bits.
    #[error(
        "system call {call} (a b + c mod m): the modulus, at {modulus:#x}, is zero, or the quotient has more than {bits} bits: \
         one of a and b must be below the modulus"
    )]
    NoRemainder {
        /// The number of the call.
        call: u32,
        /// The address of the modulus.
        modulus: u32,
        /// The number of bits of the call's numbers.
        bits: usize,
    },
    /// The program has not ended.
    #[error("the program has not ended after {0} cycles")]
    TooLong(u64),
}

/// A program that stopped without an exit: there is no proof of that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trap at pc {pc:#x}{place} in cycle {cycle}: {reason}{registers}")]
pub struct Trap {
    /// The reason.
    pub reason: TrapReason,
    /// The address of the instruction.
    pub pc: u32,
    /// The cycle, counted from 1.
    pub cycle: u64,
    /// The symbol and the distance from it, in parentheses, if there is one.
    pub place: String,
    /// The registers that are not zero, on a line of their own.
    pub registers: String,
}

/// The input does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program stopped without an exit.
    #[error(transparent)]
    Trap(#[from] Box<Trap>),
    /// The input is larger than its place in memory.
    #[error("the private input has {bytes} bytes, at most {most} behind {public} public words")]
    Input {
        /// The number of private bytes.
        bytes: usize,
        /// The maximum.
        most: usize,
        /// The number of public words.
        public: usize,
    },
}

/// Explains why a word is not executed. Compilers write some of these to stop a program; others are of extensions.
fn not_executed(word: u32) -> String {
    let (opcode, funct3, funct7) = (word & 0x7f, word >> 12 & 7, word >> 25);
    let missing = match (opcode, funct3) {
        // The zero word, and a write to a register that cannot be written: assemblers' unimp.
        _ if word == 0 => {
            return "the program stopped with unimp, or ran into memory without code: the word \
                    here is zero"
                .to_owned();
        }
        _ if word == 0xc000_1073 => {
            return "the program stopped with unimp, which compilers write for \
                    __builtin_trap() and for code that must not be reached"
                .to_owned();
        }
        _ if word == 0x0010_0073 => {
            return "the program stopped with ebreak, which calls a debugger or is an abort"
                .to_owned();
        }
        // The usual reasons, by the opcode map of the manual: compilers emit them when the target is not
        // exactly rv32im.
        (0x73, 1..=3 | 5..=7) => "an access to a CSR",
        (0x73, _) => "an instruction of privileged code",
        (0x0f, 1) => "fence.i",
        (0x2f, _) => "an atomic instruction",
        (0x07 | 0x27 | 0x43 | 0x47 | 0x4b | 0x4f | 0x53, _) => "an instruction for floating point",
        (0x1b | 0x3b, _) | (0x03, 3 | 6) | (0x23, 3) => "an instruction for 64 bits",
        (0x13, 1 | 5) | (0x33, _) if funct7 != 0 => "an instruction of an extension such as Zbb",
        _ if opcode & 3 != 3 => "a compressed instruction",
        _ => return format!("{word:#010x} is not an instruction of this machine"),
    };
    format!("{word:#010x} is {missing}, which this machine does not support: compile for rv32im")
}
