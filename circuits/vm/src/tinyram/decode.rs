//! The decoder, from words to the rows of the program table.

use crate::chips::ZERO;
use crate::isa::{Chip, Decoded, Instruction};

/// The opcodes, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Opcode {
    And,
    Or,
    Xor,
    Not,
    Add,
    Sub,
    Mull,
    Umulh,
    Smulh,
    Udiv,
    Umod,
    Shl,
    Shr,
    Cmpe,
    Cmpa,
    Cmpae,
    Cmpg,
    Cmpge,
    Mov,
    Cmov,
    Jmp,
    Cjmp,
    Cnjmp,
    // BCTV14b leaves 23 to 25 free.
    StoreB = 26,
    LoadB,
    StoreW,
    LoadW,
    Read,
    Answer,
}

/// The order of ri, rj and A in the assembly language, and which of ri and rj an instruction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// ri rj A
    Three,
    /// ri A
    Destination,
    /// A ri
    Store,
    /// rj A
    Compare,
    /// A
    Only,
}

impl Opcode {
    /// All opcodes, with their names.
    pub(crate) const ALL: [(Self, &'static str); 29] = [
        (Self::And, "and"),
        (Self::Or, "or"),
        (Self::Xor, "xor"),
        (Self::Not, "not"),
        (Self::Add, "add"),
        (Self::Sub, "sub"),
        (Self::Mull, "mull"),
        (Self::Umulh, "umulh"),
        (Self::Smulh, "smulh"),
        (Self::Udiv, "udiv"),
        (Self::Umod, "umod"),
        (Self::Shl, "shl"),
        (Self::Shr, "shr"),
        (Self::Cmpe, "cmpe"),
        (Self::Cmpa, "cmpa"),
        (Self::Cmpae, "cmpae"),
        (Self::Cmpg, "cmpg"),
        (Self::Cmpge, "cmpge"),
        (Self::Mov, "mov"),
        (Self::Cmov, "cmov"),
        (Self::Jmp, "jmp"),
        (Self::Cjmp, "cjmp"),
        (Self::Cnjmp, "cnjmp"),
        (Self::StoreB, "store.b"),
        (Self::LoadB, "load.b"),
        (Self::StoreW, "store.w"),
        (Self::LoadW, "load.w"),
        (Self::Read, "read"),
        (Self::Answer, "answer"),
    ];

    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::And
            | Self::Or
            | Self::Xor
            | Self::Add
            | Self::Sub
            | Self::Mull
            | Self::Umulh
            | Self::Smulh
            | Self::Udiv
            | Self::Umod
            | Self::Shl
            | Self::Shr => Shape::Three,
            Self::Not | Self::Mov | Self::Cmov | Self::LoadB | Self::LoadW | Self::Read => {
                Shape::Destination
            }
            Self::StoreB | Self::StoreW => Shape::Store,
            Self::Cmpe | Self::Cmpa | Self::Cmpae | Self::Cmpg | Self::Cmpge => Shape::Compare,
            Self::Jmp | Self::Cjmp | Self::Cnjmp | Self::Answer => Shape::Only,
        }
    }

    fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().map(|(opcode, _)| opcode).find(|opcode| *opcode as u32 == number)
    }
}

/// The operand A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(u8),
    Immediate(u32),
}

/// The words of an instruction.
pub(crate) fn encode(opcode: Opcode, ri: u8, rj: u8, operand: Operand) -> [u32; 2] {
    let (is_immediate, a) = match operand {
        Operand::Register(register) => (0, register.into()),
        Operand::Immediate(value) => (1, value),
    };
    let first =
        (opcode as u32) << 27 | is_immediate << 26 | u32::from(ri) << 22 | u32::from(rj) << 18;
    [first, a]
}

/// Reports whether an instruction has the only form that the assembler writes: no bits in fields that it lacks.
fn is_canonical(opcode: Opcode, [first, a]: [u32; 2]) -> bool {
    let [ri, rj] = [22, 18].map(|place| first >> place & 15);
    let (has_ri, has_rj) = match opcode.shape() {
        Shape::Three => (true, true),
        Shape::Destination | Shape::Store => (true, false),
        Shape::Compare => (false, true),
        Shape::Only => (false, false),
    };
    let is_immediate = first >> 26 & 1 == 1;
    first & 0x3ffff == 0 && (has_ri || ri == 0) && (has_rj || rj == 0) && (is_immediate || a < 16)
}

/// The two outcomes of cjmp or cnjmp to an immediate: without the flag, and with it.
fn branch(opcode: Opcode, pc: u32, target: u32) -> Decoded {
    // The pc counts bytes, and an instruction has two words: no code is elsewhere.
    let aligned = |place: u32| place.is_multiple_of(8).then_some(place);
    let (next, taken) = (aligned(pc.wrapping_add(8)), aligned(target));
    let outcomes = if opcode == Opcode::Cjmp { [next, taken] } else { [taken, next] };
    Decoded::Branch(Instruction::new(Chip::TinyBranch, 0, [0, 0, 0], 0), outcomes)
}

/// Decodes the two words at a pc.
pub(crate) fn decode(pc: u32, [first, a]: [u32; 2]) -> Decoded {
    use Opcode::*;
    let [ri, rj] = [22, 18].map(|place| first >> place & 15);
    let Some(opcode) = Opcode::of_number(first >> 27) else { return Decoded::Illegal };
    if !is_canonical(opcode, [first, a]) {
        return Decoded::Illegal;
    }
    let is_immediate = first >> 26 & 1 == 1;
    // The operand that is absent is the register that is always zero, or 0: the sum of both is A.
    let (register, imm) = if is_immediate { (ZERO.into(), a) } else { (a, 0) };
    let one =
        |chip, variant, rj| Decoded::One(Instruction::new(chip, variant, [ri, rj, register], imm));
    // Addresses come in the place of the first register.
    let access =
        |chip, rd, value| Decoded::One(Instruction::new(chip, 0, [rd, register, value], imm));
    let zero = u32::from(ZERO);
    match opcode {
        And => one(Chip::TinyLogic, 0, rj),
        Or => one(Chip::TinyLogic, 1, rj),
        Xor => one(Chip::TinyLogic, 2, rj),
        Not => one(Chip::TinyLogic, 4, zero),
        Add => one(Chip::TinyAdd, 0, rj),
        Sub => one(Chip::TinyAdd, 1, rj),
        Mull => one(Chip::TinyMultiply, 0, rj),
        Umulh => one(Chip::TinyMultiply, 1, rj),
        Smulh => one(Chip::TinyMultiplySigned, 0, rj),
        Udiv => one(Chip::TinyDivide, 0, rj),
        Umod => one(Chip::TinyDivide, 1, rj),
        Shl => one(Chip::TinyShift, 0, rj),
        Shr => one(Chip::TinyShift, 1, rj),
        Cmpe => one(Chip::TinyEqual, 0, rj),
        Cmpa => one(Chip::TinyAbove, 0, rj),
        Cmpae => one(Chip::TinyAbove, 1, rj),
        Cmpg => one(Chip::TinyGreater, 0, rj),
        Cmpge => one(Chip::TinyGreater, 1, rj),
        Mov if is_immediate => {
            Decoded::One(Instruction::new(Chip::TinyMoveImm, 0, [ri, 0, 0], imm))
        }
        Mov => one(Chip::TinyMove, 0, 0),
        Cmov => one(Chip::TinyMoveIf, 0, 0),
        Jmp => one(Chip::TinyJump, 0, 0),
        Cjmp | Cnjmp if is_immediate => branch(opcode, pc, imm),
        Cjmp => one(Chip::TinyBranchReg, 0, 0),
        Cnjmp => one(Chip::TinyBranchReg, 1, 0),
        LoadB => access(Chip::TinyLoadByte, ri, 0),
        LoadW => access(Chip::TinyLoadWord, ri, 0),
        StoreB => access(Chip::TinyStoreByte, 0, ri),
        StoreW => access(Chip::TinyStoreWord, 0, ri),
        Read => one(Chip::TinyRead, 0, 0),
        Answer =>
        {
            #[allow(clippy::cast_possible_truncation, reason = "registers are below 32")]
            Decoded::Answer(register as u8, imm)
        }
    }
}
