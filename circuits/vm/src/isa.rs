//! Instruction sets and their chips, and RV32IM, decoded to the rows of the program table. Decoding is strict:
//! a word with fields that the manual does not give an instruction has no row, so no proof executes it.

use crate::word::power;
use hekaton_circuit::Fr;
use serde::{Deserialize, Serialize};

/// An instruction set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isa {
    /// RV32IM, as compilers make it.
    #[default]
    Rv32im,
    /// vnTinyRAM with words of 32 bits and 16 registers (BCTV14b).
    TinyRam,
}

impl Isa {
    /// The chips, in the order of their numbers.
    pub fn chips(self) -> &'static [Chip] {
        match self {
            Self::Rv32im => &Chip::RV32IM,
            Self::TinyRam => &Chip::TINYRAM,
        }
    }

    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rv32im => "rv32im",
            Self::TinyRam => "tinyram",
        }
    }

    /// The number of registers, those that no instruction names included.
    pub(crate) fn registers(self) -> usize {
        match self {
            Self::Rv32im => 33,
            Self::TinyRam => 19,
        }
    }
}

/// An opcode chip: a class of instructions with a subcircuit type of its own. Those of TinyRAM begin with
/// `Tiny`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Chip {
    /// A constant: LUI, AUIPC, ADDI from x0, and FENCE, which writes nothing.
    // The order is that of the subcircuit types in keys, and the numbers are in the rows of programs: a new
    // chip comes last in its instruction set.
    Li = 1,
    /// ADDI.
    AddImm,
    /// ADD and SUB.
    Add,
    /// AND, OR and XOR, of registers or with an immediate.
    Logic,
    /// SLLI and SRLI.
    ShiftImm,
    /// SLL, SRL, SRA and SRAI.
    Shift,
    /// SLT and SLTU, of registers or with an immediate.
    SetLess,
    /// BEQ and BNE.
    BranchEqual,
    /// BLTU and BGEU.
    BranchBelow,
    /// BLT and BGE.
    BranchLess,
    /// JAL.
    Jump,
    /// JALR.
    JumpReg,
    /// LW.
    LoadWord,
    /// SW.
    StoreWord,
    /// LBU.
    LoadByte,
    /// LB, LH and LHU.
    LoadPart,
    /// SB and SH.
    StorePart,
    /// MUL and MULHU.
    Multiply,
    /// MULH and MULHSU.
    MultiplyHigh,
    /// DIV, DIVU, REM and REMU.
    Divide,
    /// ECALL for the compression function of SHA-256.
    Sha256,
    /// ECALL for Keccak-f\[1600\].
    Keccak,
    /// ECALL for a b + c mod m on numbers of 256 bits.
    MulMod256,
    /// ECALL for a b + c mod m on numbers of 384 bits.
    MulMod384,
    /// mov of an immediate.
    TinyMoveImm,
    /// mov of a register.
    TinyMove,
    /// cmov.
    TinyMoveIf,
    /// and, or, xor and not.
    TinyLogic,
    /// add and sub.
    TinyAdd,
    /// mull and umulh.
    TinyMultiply,
    /// smulh.
    TinyMultiplySigned,
    /// udiv and umod.
    TinyDivide,
    /// shl and shr.
    TinyShift,
    /// cmpe.
    TinyEqual,
    /// cmpa and cmpae.
    TinyAbove,
    /// cmpg and cmpge.
    TinyGreater,
    /// jmp.
    TinyJump,
    /// cjmp and cnjmp to an immediate.
    TinyBranch,
    /// cjmp and cnjmp to a register.
    TinyBranchReg,
    /// load.w.
    TinyLoadWord,
    /// store.w.
    TinyStoreWord,
    /// load.b.
    TinyLoadByte,
    /// store.b.
    TinyStoreByte,
    /// read.
    TinyRead,
}

/// The chip number of ECALL with `exit` and of answer, which end a program and belong to the boundary. It is
/// more than that of any chip.
// 8 * 31 is 248, so the opcode digit is still below 2^8.
pub(crate) const EXIT: u8 = 31;

/// The registers that an ECALL reads: the exit code or a pointer, another pointer, and the number of the call.
pub(crate) const A0: u8 = 10;
pub(crate) const A1: u8 = 11;
pub(crate) const A7: u8 = 17;

/// The register that writes to x0 go to.
pub(crate) const SINK: u8 = 32;

/// The positions of the digits of a row's key: 8 chip + variant, and the registers, so far apart that a digit that is
/// off by a multiple of 64 does not reach the next one. The immediate is the row's value and not a digit: nothing would
/// bound it but sums with registers, whose values are words only if all digits are what they should be
/// (spec: machine#decoding).
pub(crate) const OPCODE: u32 = 32;
pub(crate) const RS1: u32 = 40;
pub(crate) const RS2: u32 = 100;
pub(crate) const RD: u32 = 160;

impl Chip {
    const RV32IM: [Self; 24] = [
        Self::Li,
        Self::AddImm,
        Self::Add,
        Self::Logic,
        Self::ShiftImm,
        Self::Shift,
        Self::SetLess,
        Self::BranchEqual,
        Self::BranchBelow,
        Self::BranchLess,
        Self::Jump,
        Self::JumpReg,
        Self::LoadWord,
        Self::StoreWord,
        Self::LoadByte,
        Self::LoadPart,
        Self::StorePart,
        Self::Multiply,
        Self::MultiplyHigh,
        Self::Divide,
        Self::Sha256,
        Self::Keccak,
        Self::MulMod256,
        Self::MulMod384,
    ];

    const TINYRAM: [Self; 20] = [
        Self::TinyMoveImm,
        Self::TinyMove,
        Self::TinyMoveIf,
        Self::TinyLogic,
        Self::TinyAdd,
        Self::TinyMultiply,
        Self::TinyMultiplySigned,
        Self::TinyDivide,
        Self::TinyShift,
        Self::TinyEqual,
        Self::TinyAbove,
        Self::TinyGreater,
        Self::TinyJump,
        Self::TinyBranch,
        Self::TinyBranchReg,
        Self::TinyLoadWord,
        Self::TinyStoreWord,
        Self::TinyLoadByte,
        Self::TinyStoreByte,
        Self::TinyRead,
    ];

    /// The chips of RV32IM that an ECALL may mean.
    pub(crate) const PRECOMPILES: [Self; 4] =
        [Self::Sha256, Self::Keccak, Self::MulMod256, Self::MulMod384];

    /// The chips of all instruction sets.
    pub fn every() -> impl Iterator<Item = Self> {
        Self::RV32IM.into_iter().chain(Self::TINYRAM)
    }

    /// The number of chips of all instruction sets.
    pub(crate) const COUNT: usize = Self::RV32IM.len() + Self::TINYRAM.len();

    /// The instruction set that the chip is of.
    pub fn isa(self) -> Isa {
        match self.index() < Self::RV32IM.len() {
            true => Isa::Rv32im,
            false => Isa::TinyRam,
        }
    }

    /// The name of the chip's subcircuit type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Li => "li",
            Self::AddImm => "addi",
            Self::Add => "add",
            Self::Logic => "logic",
            Self::ShiftImm => "shift-imm",
            Self::Shift => "shift",
            Self::SetLess => "slt",
            Self::BranchEqual => "beq",
            Self::BranchBelow => "bltu",
            Self::BranchLess => "blt",
            Self::Jump => "jal",
            Self::JumpReg => "jalr",
            Self::LoadWord => "lw",
            Self::StoreWord => "sw",
            Self::LoadByte => "lbu",
            Self::LoadPart => "load-part",
            Self::StorePart => "store-part",
            Self::Multiply => "mul",
            Self::MultiplyHigh => "mulh",
            Self::Divide => "div",
            Self::Sha256 => "sha256",
            Self::Keccak => "keccak",
            Self::MulMod256 => "mulmod-256",
            Self::MulMod384 => "mulmod-384",
            Self::TinyMoveImm => "mov-imm",
            Self::TinyMove => "mov",
            Self::TinyMoveIf => "cmov",
            Self::TinyLogic => "logic",
            Self::TinyAdd => "add",
            Self::TinyMultiply => "mull",
            Self::TinyMultiplySigned => "smulh",
            Self::TinyDivide => "udiv",
            Self::TinyShift => "shift",
            Self::TinyEqual => "cmpe",
            Self::TinyAbove => "cmpa",
            Self::TinyGreater => "cmpg",
            Self::TinyJump => "jmp",
            Self::TinyBranch => "cjmp-imm",
            Self::TinyBranchReg => "cjmp",
            Self::TinyLoadWord => "load-w",
            Self::TinyStoreWord => "store-w",
            Self::TinyLoadByte => "load-b",
            Self::TinyStoreByte => "store-b",
            Self::TinyRead => "read",
        }
    }

    /// The place of the chip among those of all instruction sets.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self as usize - 1
    }

    /// The place of the chip among those of its instruction set.
    pub(crate) fn place(self) -> usize {
        match self.isa() {
            Isa::Rv32im => self.index(),
            Isa::TinyRam => self.index() - Self::RV32IM.len(),
        }
    }

    /// The number of the chip in the rows of programs, from 1: a table has the rows of one program.
    #[allow(clippy::cast_possible_truncation, reason = "at most 24")]
    pub(crate) fn number(self) -> u8 {
        self.place() as u8 + 1
    }
}

/// A row of the program: what happens at a pc. Branches have two, one for each outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) chip: Chip,
    pub(crate) variant: u8,
    pub(crate) rs1: u8,
    pub(crate) rs2: u8,
    pub(crate) rd: u8,
    pub(crate) imm: u32,
}

/// The meaning of a word at a pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// An instruction with one row.
    One(Instruction),
    /// An instruction that does nothing in a proof, and tells an executor something.
    Hint(Instruction, Hint),
    /// A branch, with the immediate `[not taken by the chip's condition, taken]`: where the program goes
    /// on if the condition of the chip is 0 and if it is 1. `None` where that place is misaligned.
    Branch(Instruction, [Option<u32>; 2]),
    /// ECALL, which does what the number of the call says: exit, or a precompile.
    Call,
    /// answer: the register and the immediate whose sum is the exit code.
    Answer(u8, u32),
    /// A word that is not in the instruction set.
    Illegal,
}

/// A hint to the executor: SLTI from a0 to x0, which the manual leaves to such uses; the immediate is the hint's number. a0 and a1
/// have an address and a number of bytes. On other machines, and in a proof, it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// The bytes are text to be shown.
    Text,
    /// The bytes are the whole output.
    Output,
}

impl Hint {
    /// The hint that a word is.
    fn of(word: u32) -> Option<Self> {
        [(0x481, Self::Text), (0x482, Self::Output)]
            .into_iter()
            .find(|(number, _)| word == number << 20 | u32::from(A0) << 15 | 2 << 12 | 0x13)
            .map(|(_, hint)| hint)
    }
}

impl Instruction {
    pub(crate) fn new(chip: Chip, variant: u8, [rd, rs1, rs2]: [u32; 3], imm: u32) -> Self {
        #[allow(clippy::cast_possible_truncation, reason = "registers are below 64")]
        let [rd, rs1, rs2] = [rd, rs1, rs2].map(|register| register as u8);
        Self { chip, variant, rs1, rs2, rd, imm }
    }

    /// The row's key and value in the program table.
    pub(crate) fn row(&self, pc: u32) -> [Fr; 2] {
        // Variants are below 8, so chip and variant share one digit without overlap.
        let opcode = 8 * self.chip.number() + self.variant;
        let mut key = key_of(pc, opcode);
        for (register, place) in [(self.rs1, RS1), (self.rs2, RS2), (self.rd, RD)] {
            key += Fr::from(register) * power(place);
        }
        [key, Fr::from(self.imm)]
    }
}

fn key_of(pc: u32, opcode: u8) -> Fr {
    Fr::from(pc) + Fr::from(opcode) * power(OPCODE)
}

impl Decoded {
    /// The number of rows in the program table.
    pub(crate) fn rows_count(&self) -> usize {
        match self {
            Self::One(_) | Self::Hint(..) | Self::Answer(..) => 1,
            Self::Call => 1 + Chip::PRECOMPILES.len(),
            Self::Branch(_, outcomes) => outcomes.iter().flatten().count(),
            Self::Illegal => 0,
        }
    }

    /// The rows in the program table.
    pub(crate) fn rows(&self, pc: u32) -> Vec<[Fr; 2]> {
        match self {
            Self::One(instruction) | Self::Hint(instruction, _) => vec![instruction.row(pc)],
            Self::Branch(instruction, outcomes) => (0..)
                .zip(outcomes)
                .filter_map(|(variant, imm)| Some((variant, (*imm)?)))
                .map(|(variant, imm)| Instruction { variant, imm, ..*instruction }.row(pc))
                .collect(),
            // Which one of these it is follows from the register that the subcircuits of each of them read.
            Self::Call => {
                let chips = Chip::PRECOMPILES.map(Chip::number);
                let row = |number: u8| [key_of(pc, 8 * number), Fr::from(0u64)];
                [EXIT].into_iter().chain(chips).map(row).collect()
            }
            Self::Answer(register, imm) => {
                let key = key_of(pc, 8 * EXIT) + Fr::from(*register) * power(RS2);
                vec![[key, Fr::from(*imm)]]
            }
            Self::Illegal => Vec::new(),
        }
    }
}

/// The lower `bits` bits of a number, with their sign.
fn signed(value: u32, bits: u32) -> u32 {
    // A shift up and an arithmetic shift down copy the sign bit.
    let shift = 32 - bits;
    ((value << shift).cast_signed() >> shift).cast_unsigned()
}

/// Returns the target of a branch at a pc, if it is taken.
pub(crate) fn branch_target(pc: u32, word: u32) -> u32 {
    let offset =
        (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 63) << 5 | (word >> 8 & 15) << 1;
    pc.wrapping_add(signed(offset, 13))
}

/// Returns the target of a JAL at a pc.
pub(crate) fn jump_target(pc: u32, word: u32) -> u32 {
    let offset = (word >> 31) << 20
        | (word >> 12 & 0xff) << 12
        | (word >> 20 & 1) << 11
        | (word >> 21 & 0x3ff) << 1;
    pc.wrapping_add(signed(offset, 21))
}

/// Returns an instruction with one row.
fn one(chip: Chip, variant: u8, registers: [u32; 3], imm: u32) -> Decoded {
    Decoded::One(Instruction::new(chip, variant, registers, imm))
}

/// Returns the place that a jump goes to; a misaligned one is an exception, not an instruction.
fn aligned(target: u32) -> Option<u32> {
    target.is_multiple_of(4).then_some(target)
}

/// Decodes the word at a pc.
pub(crate) fn decode(pc: u32, word: u32) -> Decoded {
    use Chip::*;
    let (register, rs1, rs2) = (word >> 7 & 31, word >> 15 & 31, word >> 20 & 31);
    let (funct3, funct7) = (word >> 12 & 7, word >> 25);
    // What is written to x0 goes to a register that nothing reads: x0 stays zero without a row that says so.
    let rd = if register == 0 { SINK.into() } else { register };
    let imm = signed(word >> 20, 12);
    let upper = word & 0xffff_f000;
    match (word & 0x7f, funct3) {
        (0x37, _) => one(Li, 0, [rd, 0, 0], upper),
        (0x17, _) => one(Li, 0, [rd, 0, 0], pc.wrapping_add(upper)),
        (0x13, _) => match (of_immediate(funct3, funct7, [rd, rs1], rs2, imm), Hint::of(word)) {
            (Decoded::One(instruction), Some(hint)) => Decoded::Hint(instruction, hint),
            (decoded, _) => decoded,
        },
        (0x33, _) => of_registers(funct3, funct7, [rd, rs1, rs2]),
        (0x63, 0 | 1 | 4..=7) => {
            let target = branch_target(pc, word);
            let chip = [BranchEqual, BranchEqual, BranchLess, BranchBelow][funct3 as usize / 2];
            let branch = Instruction::new(chip, 0, [0, rs1, rs2], 0);
            let next = aligned(pc.wrapping_add(4));
            // The odd ones jump if the condition of the chip does not hold.
            let outcomes = match funct3 & 1 {
                0 => [next, aligned(target)],
                _ => [aligned(target), next],
            };
            Decoded::Branch(branch, outcomes)
        }
        (0x6f, _) => aligned(jump_target(pc, word))
            .map_or(Decoded::Illegal, |target| one(Jump, 0, [rd, 0, 0], target)),
        (0x67, 0) => one(JumpReg, 0, [rd, rs1, 0], imm),
        (0x03, 0) => one(LoadPart, 0, [rd, rs1, 0], imm),
        (0x03, 1) => one(LoadPart, 1, [rd, rs1, 0], imm),
        (0x03, 2) => one(LoadWord, 0, [rd, rs1, 0], imm),
        (0x03, 4) => one(LoadByte, 0, [rd, rs1, 0], imm),
        (0x03, 5) => one(LoadPart, 2, [rd, rs1, 0], imm),
        (0x23, 0..=2) => {
            let offset = signed(funct7 << 5 | word >> 7 & 31, 12);
            let (chip, variant) = [(StorePart, 0), (StorePart, 1), (StoreWord, 0)][funct3 as usize];
            one(chip, variant, [0, rs1, rs2], offset)
        }
        // FENCE orders accesses of several harts, and there is one: it does nothing.
        (0x0f, 0) => one(Li, 0, [SINK.into(), 0, 0], 0),
        (0x73, _) if word == 0x73 => Decoded::Call,
        _ => Decoded::Illegal,
    }
}

/// Decodes OP-IMM: an operation with an immediate, which for shifts is the amount in the place of rs2.
fn of_immediate(funct3: u32, funct7: u32, [rd, rs1]: [u32; 2], amount: u32, imm: u32) -> Decoded {
    use Chip::*;
    let registers = [rd, rs1, 0];
    match (funct3, funct7) {
        // x0 is zero: without a register to read, the chip has fewer rows.
        (0, _) if rs1 == 0 => one(Li, 0, [rd, 0, 0], imm),
        (0, _) => one(AddImm, 0, registers, imm),
        (1, 0) => one(ShiftImm, 0, registers, 1 << amount),
        // The factor of a shift by 0 is 2^32, which no immediate is: SRL by 0 from the general chip.
        (5, 0) if amount == 0 => one(Shift, 1, registers, 0),
        (5, 0) => one(ShiftImm, 1, registers, 1 << (32 - amount)),
        (5, 0x20) => one(Shift, 3, registers, amount),
        (2, _) => one(SetLess, 1, registers, imm),
        (3, _) => one(SetLess, 0, registers, imm),
        (4, _) => one(Logic, 2, registers, imm),
        (6, _) => one(Logic, 1, registers, imm),
        (7, _) => one(Logic, 0, registers, imm),
        _ => Decoded::Illegal,
    }
}

/// Decodes OP: an operation of two registers.
fn of_registers(funct3: u32, funct7: u32, registers: [u32; 3]) -> Decoded {
    use Chip::*;
    let (chip, variant) = match (funct3, funct7) {
        (0, 0) => (Add, 0),
        (0, 0x20) => (Add, 1),
        (1, 0) => (Shift, 0),
        (2, 0) => (SetLess, 1),
        (3, 0) => (SetLess, 0),
        (4, 0) => (Logic, 2),
        (5, 0) => (Shift, 1),
        (5, 0x20) => (Shift, 3),
        (6, 0) => (Logic, 1),
        (7, 0) => (Logic, 0),
        (0, 1) => (Multiply, 0),
        (1, 1) => (MultiplyHigh, 0),
        (2, 1) => (MultiplyHigh, 1),
        (3, 1) => (Multiply, 1),
        #[allow(clippy::cast_possible_truncation, reason = "0 to 3")]
        (4..=7, 1) => (Divide, funct3 as u8 - 4),
        _ => return Decoded::Illegal,
    };
    one(chip, variant, registers, 0)
}
