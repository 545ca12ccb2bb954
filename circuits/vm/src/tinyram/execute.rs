//! One instruction of TinyRAM after the other.

use crate::chips::tiny::{
    above_of, add_of, divide_of, equal_of, greater_of, logic_of, multiply_of, multiply_signed_of,
    shift_of,
};
use crate::chips::{FLAG, TAPE};
use crate::isa::{Chip, Instruction};
use crate::machine::{Machine, Recorder};
use crate::op::{self, Op};
use crate::trap::TrapReason;

/// The values that an instruction writes to its register and to the flag, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Effect {
    result: Option<u32>,
    flag: Option<bool>,
}

/// Returns the effect of an instruction on the registers; for `read`, the word is that of the tape.
fn effect(chip: Chip, op: &Op) -> Effect {
    let both = |(result, flag)| Effect { result: Some(result), flag: Some(flag) };
    let result = |result| Effect { result: Some(result), flag: None };
    let flag = |flag| Effect { result: None, flag: Some(flag) };
    match chip {
        Chip::TinyMoveImm | Chip::TinyMove => result(op.operand()),
        Chip::TinyMoveIf => result(if op.flag() { op.operand() } else { op.old }),
        Chip::TinyLogic => both((logic_of(op), logic_of(op) == 0)),
        Chip::TinyAdd => both(add_of(op)),
        Chip::TinyMultiply => both(multiply_of(op)),
        Chip::TinyMultiplySigned => both(multiply_signed_of(op)),
        Chip::TinyDivide => both(divide_of(op)),
        Chip::TinyShift => both(shift_of(op)),
        Chip::TinyEqual => flag(equal_of(op)),
        Chip::TinyAbove => flag(above_of(op)),
        Chip::TinyGreater => flag(greater_of(op)),
        Chip::TinyLoadWord => result(op.word),
        Chip::TinyLoadByte => result(op.part()[1]),
        Chip::TinyRead => match op.operand() == 1 && op.bits & op::END == 0 {
            true => both((op.word, false)),
            false => both((0, true)),
        },
        // Jumps and stores, and chips of another instruction set.
        _ => Effect::default(),
    }
}

impl Machine<'_> {
    /// Executes one instruction of TinyRAM, and returns the next pc.
    pub(crate) fn step_tiny(
        &mut self,
        pc: u32,
        cycle: u64,
        instruction: &Instruction,
        outcomes: Option<&[Option<u32>; 2]>,
        recorder: &mut impl Recorder,
    ) -> Result<u32, TrapReason> {
        let Instruction { chip, variant, rs1, rs2, rd, imm } = *instruction;
        let mut op =
            Op { enabled: true, time: cycle, pc, variant, rs1, rs2, rd, imm, ..Op::default() };
        let value = |machine: &Self, register: u8| machine.state.registers[register as usize].value;
        if chip.reads_x() {
            op.x = value(self, rs1);
        }
        if chip.reads_y() {
            op.y = value(self, rs2);
        }
        let flag = value(self, FLAG) == 1;
        op.bits = if flag { op::FLAG } else { 0 };
        // Everything that may trap comes before the first access.
        let next = self.next_tiny(chip, &mut op, flag, outcomes)?;
        if matches!(
            chip,
            Chip::TinyLoadWord | Chip::TinyStoreWord | Chip::TinyLoadByte | Chip::TinyStoreByte
        ) {
            self.access(&mut op, cycle)?;
        }
        if chip == Chip::TinyRead {
            self.read_tape(&mut op, recorder);
        }
        if chip.reads_x() {
            op.gaps[0] = self.touch(rs1, cycle, 0, recorder);
        }
        if chip.reads_y() {
            op.gaps[1] = self.touch(rs2, cycle, 1, recorder);
        }
        if chip.writes() {
            op.old = value(self, rd);
        }
        let effect = effect(chip, &op);
        if let Some(result) = effect.result {
            op.gaps[2] = self.touch(rd, cycle, 2, recorder);
            self.state.registers[rd as usize].value = result;
        }
        if effect.flag.is_some() || chip.reads_flag() {
            op.word_gap = self.touch(FLAG, cycle, 3, recorder).into();
            self.state.registers[FLAG as usize].value = effect.flag.unwrap_or(flag).into();
        }
        self.store_tiny(chip, &op);
        recorder.op(chip.index(), op);
        Ok(next)
    }

    /// Returns the next pc. The outcome of a branch becomes part of its operation.
    #[inline]
    fn next_tiny(
        &self,
        chip: Chip,
        op: &mut Op,
        flag: bool,
        outcomes: Option<&[Option<u32>; 2]>,
    ) -> Result<u32, TrapReason> {
        let next = match (chip, outcomes) {
            (Chip::TinyJump, _) => op.operand(),
            (Chip::TinyBranchReg, _) if flag != (op.variant == 1) => op.y,
            (_, Some(outcomes)) => {
                op.variant = flag.into();
                // Only jumps to misaligned places have no row: the target is in the second word.
                let target = outcomes[usize::from(flag)];
                op.imm = target.unwrap_or_else(|| self.program_word(op.pc + 4));
                op.imm
            }
            _ => op.pc.wrapping_add(8),
        };
        // The pc of TinyRAM counts bytes, and an instruction has two words.
        match next.is_multiple_of(8) {
            true => Ok(next),
            false => Err(TrapReason::MisalignedJump { target: next, size: 8 }),
        }
    }

    /// Writes the word or the byte that an instruction stores, if it stores one.
    #[inline]
    fn store_tiny(&mut self, chip: Chip, op: &Op) {
        match chip {
            Chip::TinyStoreWord => self.memory.cell(op.address() / 4).value = op.y,
            Chip::TinyStoreByte => {
                let shift = 8 * (op.address() % 4);
                let left = op.word & !(0xff << shift) | (op.y & 0xff) << shift;
                self.memory.cell(op.address() / 4).value = left;
            }
            _ => {}
        }
    }

    /// Reads the next word of the public tape, the only one with words.
    fn read_tape(&mut self, op: &mut Op, recorder: &mut impl Recorder) {
        op.x = self.state.registers[TAPE as usize].value;
        let at = self.state.tape;
        let word = (op.operand() == 1).then(|| self.tape.get(at).copied()).flatten();
        // Once ended, the tape stays ended, as the chip has it.
        let ends = op.x == 1 || (op.operand() == 1 && word.is_none());
        op.bits |= if ends { op::END } else { 0 };
        op.word = word.unwrap_or(0);
        self.state.tape += usize::from(word.is_some());
        op.gaps[0] = self.touch(TAPE, op.time, 0, recorder);
        self.state.registers[TAPE as usize].value = ends.into();
    }
}

impl Chip {
    /// Reports whether instructions read the flag and do not write it.
    pub(crate) fn reads_flag(self) -> bool {
        matches!(self, Self::TinyMoveIf | Self::TinyBranch | Self::TinyBranchReg)
    }
}
