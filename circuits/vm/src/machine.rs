//! The executor: one instruction after the other, with what each chip must prove of it.

use crate::address_space::{INPUT, OUTPUT, OUTPUT_WORDS};
use crate::effects::{access_size, result};
use crate::elf::readable;
use crate::input::{self, Input};
use crate::isa::{self, A0, A1, A7, Chip, Decoded, Hint, Instruction, Isa, SINK};
use crate::memory::Memory;
use crate::op::{Access, Op};
use crate::precompile::Precompile;
use crate::program::Program;
use crate::trap::{RunError, Trap, TrapReason};
use std::fmt::Write as _;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

/// The largest number of registers of an instruction set, including the one of RV32IM that writes to x0 go to.
pub(crate) const REGISTERS: usize = 33;

/// The stack pointer, by the convention of compilers.
const SP: u8 = 2;

/// The number of the system call `exit`, as on Linux.
// So a program that exits by it runs on Linux, too, for example in qemu's user mode.
pub(crate) const SYS_EXIT: u32 = 93;

/// The largest gap between two accesses to a register, in ticks less one.
const MAX_GAP: u64 = 0xffff;

/// The end of a run: the ECALL, with what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) cycle: u64,
    pub(crate) pc: u32,
    pub(crate) code: u32,
    /// The gaps of a0 and a7; for TinyRAM, the gap of the operand's register, and 0.
    pub(crate) gaps: [u16; 2],
    /// The operand's register and immediate, for TinyRAM.
    pub(crate) operand: (u8, u32),
}

/// The classes of operations: the chips of all instruction sets, and refreshes.
pub(crate) const CLASSES: usize = Chip::COUNT + 1;

/// The class of refreshes.
pub(crate) const REFRESH: usize = Chip::COUNT;

/// A recorder of a run.
pub(crate) trait Recorder {
    /// Called with each operation, by its class.
    fn op(&mut self, class: usize, op: Op);

    /// Called with each hint, before its operation, and its bytes: if the program has no memory there, it traps.
    // Only the first pass looks: replays are of runs whose hints are in memory.
    fn hint(&mut self, _: Hint, _: &Machine<'_>) -> Result<(), TrapReason> {
        Ok(())
    }

    /// Called with each operation of a precompile, and its accesses.
    fn call(&mut self, class: usize, op: Op, _: Vec<Access>) {
        self.op(class, op);
    }
}

/// A register, with the tick of the last access to it; 0 is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Register {
    pub(crate) value: u32,
    pub(crate) time: u64,
}

/// The state of the machine apart from the memory.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The next instruction, and its cycle, from 1.
    pub(crate) pc: u32,
    pub(crate) cycle: u64,
    pub(crate) registers: [Register; REGISTERS],
    /// The end of the input, as the address of a word.
    pub(crate) input_end: u32,
    /// The number of words of the tape that were read.
    pub(crate) tape: usize,
}

/// The addresses of the output.
fn output_region() -> Range<u32> {
    #[allow(clippy::cast_possible_truncation, reason = "16 words")]
    let size = 4 * OUTPUT_WORDS as u32;
    OUTPUT..OUTPUT + size
}

/// The outcome of a word that is not an instruction of a chip.
enum Special {
    /// A call: the next pc, and the number of cycles.
    Next(u32, u64),
    Exit(Exit),
}

/// The machine while it runs.
pub(crate) struct Machine<'a> {
    program: &'a Program,
    pub(crate) state: State,
    pub(crate) memory: Memory<'a>,
    /// TinyRAM's tape 1.
    pub(crate) tape: Arc<[u32]>,
}

impl<'a> Machine<'a> {
    /// The machine at the beginning.
    pub(crate) fn new(program: &'a Program, input: &Input) -> Result<Self, RunError> {
        let mut memory = Memory::new();
        for (word, value) in (program.base..).zip(&program.image) {
            memory.cell(word).value = *value;
        }
        // TinyRAM has the private words on a tape, not in memory, but the same limit applies to them.
        let (bytes, public) = (input.private.len(), input.public.len());
        let most = input::room(public);
        if most.is_none_or(|most| bytes > most) {
            return Err(RunError::Input { bytes, most: most.unwrap_or(0), public });
        }
        let mut input_end = INPUT / 4;
        for value in input.words(program.isa()) {
            memory.cell(input_end).value = value;
            input_end += 1;
        }
        let registers = [Register::default(); REGISTERS];
        let state = State { pc: program.entry, cycle: 1, registers, input_end, tape: 0 };
        let tape: Vec<u32> = match program.isa() {
            Isa::Rv32im => Vec::new(),
            Isa::TinyRam => input.tape().collect(),
        };
        Ok(Self::at(program, state, memory, tape.into()))
    }

    /// The machine as it was.
    pub(crate) fn at(
        program: &'a Program,
        state: State,
        memory: Memory<'a>,
        tape: Arc<[u32]>,
    ) -> Self {
        Self { program, state, memory, tape }
    }

    /// Runs until it exits, or has executed all cycles before `end`: then there is no exit yet.
    pub(crate) fn run(
        &mut self,
        end: u64,
        recorder: &mut impl Recorder,
    ) -> Result<Option<Exit>, Box<Trap>> {
        match self.program.isa() {
            Isa::Rv32im => self.run_with(end, recorder, Self::step),
            Isa::TinyRam => self.run_with(end, recorder, Self::step_tiny),
        }
    }

    /// [`run`](Self::run) with the instructions that `step` executes.
    #[inline]
    fn run_with<R: Recorder>(
        &mut self,
        end: u64,
        recorder: &mut R,
        step: impl Fn(
            &mut Self,
            u32,
            u64,
            &Instruction,
            Option<&[Option<u32>; 2]>,
            &mut R,
        ) -> Result<u32, TrapReason>,
    ) -> Result<Option<Exit>, Box<Trap>> {
        let State { mut pc, mut cycle, .. } = self.state;
        while cycle < end {
            // One call of `step`, or it is not compiled into this loop.
            let (instruction, outcomes) = match self.program.decoded(pc) {
                Some(Decoded::One(instruction)) => (instruction, None),
                Some(Decoded::Branch(instruction, outcomes)) => (instruction, Some(outcomes)),
                Some(Decoded::Hint(instruction, hint)) => {
                    if let Err(reason) = recorder.hint(*hint, self) {
                        return Err(Box::new(self.trap(reason, pc, cycle)));
                    }
                    (instruction, None)
                }
                other => match self.special(other, pc, cycle, recorder)? {
                    Special::Next(next, cycles) => {
                        (pc, cycle) = (next, cycle + cycles);
                        continue;
                    }
                    Special::Exit(exit) => return Ok(Some(exit)),
                },
            };
            match step(self, pc, cycle, instruction, outcomes, recorder) {
                Ok(next) => pc = next,
                Err(reason) => return Err(Box::new(self.trap(reason, pc, cycle))),
            }
            cycle += 1;
        }
        (self.state.pc, self.state.cycle) = (pc, cycle);
        Ok(None)
    }

    /// Executes a word that is not an instruction of a chip: a call, an exit, or nothing that can be executed.
    #[cold]
    fn special(
        &mut self,
        decoded: Option<&Decoded>,
        pc: u32,
        cycle: u64,
        recorder: &mut impl Recorder,
    ) -> Result<Special, Box<Trap>> {
        let reason = match decoded {
            Some(Decoded::Answer(register, imm)) => {
                let code = self.state.registers[*register as usize].value.wrapping_add(*imm);
                let gaps = [self.touch(*register, cycle, 1, recorder), 0];
                return Ok(Special::Exit(Exit {
                    cycle,
                    pc,
                    code,
                    gaps,
                    operand: (*register, *imm),
                }));
            }
            Some(Decoded::Call) => {
                let call = self.state.registers[A7 as usize].value;
                if call == SYS_EXIT {
                    let code = self.state.registers[A0 as usize].value;
                    let gaps = [(A0, 0), (A7, 1)].map(|(r, at)| self.touch(r, cycle, at, recorder));
                    return Ok(Special::Exit(Exit { cycle, pc, code, gaps, operand: (0, 0) }));
                }
                let called = match Precompile::of_call(call) {
                    Some(precompile) => self.call(precompile, pc, cycle, recorder),
                    None => Err(TrapReason::UnknownCall(call)),
                };
                match called {
                    Ok(cycles) => return Ok(Special::Next(pc.wrapping_add(4), cycles)),
                    Err(reason) => reason,
                }
            }
            Some(_) => self.not_an_instruction(pc),
            None => TrapReason::NoCode,
        };
        Err(Box::new(self.trap(reason, pc, cycle)))
    }

    /// An access to a register: the gap since the last one, after the refreshes that it needs.
    #[inline(always)]
    pub(crate) fn touch(
        &mut self,
        register: u8,
        cycle: u64,
        place: u64,
        recorder: &mut impl Recorder,
    ) -> u16 {
        let tick = 4 * cycle + place;
        let cell = &mut self.state.registers[register as usize];
        // Refreshes come before the access that needs them: its gap has one limb, and so has each of
        // theirs.
        while tick - cell.time - 1 > MAX_GAP {
            let (time, x, gaps) = (cell.time, cell.value, [u16::MAX, 0, 0]);
            let op = Op { enabled: true, time, rs1: register, x, gaps, ..Op::default() };
            recorder.op(REFRESH, op);
            cell.time += MAX_GAP + 1;
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most 0xffff")]
        let gap = (tick - cell.time - 1) as u16;
        cell.time = tick;
        gap
    }

    /// Executes one instruction, and returns the next pc.
    #[inline(always)]
    fn step(
        &mut self,
        pc: u32,
        cycle: u64,
        instruction: &Instruction,
        outcomes: Option<&[Option<u32>; 2]>,
        recorder: &mut impl Recorder,
    ) -> Result<u32, TrapReason> {
        // The chip decides what is read, accessed and written: with a copy of the code for each, this is decided once.
        macro_rules! by_chip {
            ($($chip:ident)*) => {
                match instruction.chip {
                    $(Chip::$chip => {
                        self.step_of(Chip::$chip, pc, cycle, instruction, outcomes, recorder)
                    })*
                    chip => unreachable!("{chip:?} is not of RV32IM, or no instruction"),
                }
            };
        }
        by_chip!(
            Li AddImm Add Logic ShiftImm Shift SetLess BranchEqual BranchBelow BranchLess Jump JumpReg LoadWord StoreWord
            LoadByte LoadPart StorePart Multiply MultiplyHigh Divide
        )
    }

    /// Executes one instruction of a chip that is known where this is compiled.
    #[inline(always)]
    fn step_of(
        &mut self,
        chip: Chip,
        pc: u32,
        cycle: u64,
        instruction: &Instruction,
        outcomes: Option<&[Option<u32>; 2]>,
        recorder: &mut impl Recorder,
    ) -> Result<u32, TrapReason> {
        let Instruction { variant, rs1, rs2, rd, imm, .. } = *instruction;
        let mut op =
            Op { enabled: true, time: cycle, pc, variant, rs1, rs2, rd, imm, ..Op::default() };
        if chip.reads_x() {
            op.x = self.state.registers[rs1 as usize].value;
        }
        if chip.reads_y() {
            op.y = self.state.registers[rs2 as usize].value;
        }
        // Everything that may trap comes before the first access.
        let next = self.next_pc(chip, &mut op, outcomes)?;
        if let Some(size) = access_size(chip, variant) {
            let address = op.address();
            if !address.is_multiple_of(size) {
                return Err(TrapReason::MisalignedAccess { address, size });
            }
            let is_store = matches!(chip, Chip::StoreWord | Chip::StorePart);
            if is_store && let Some(segment) = self.program.read_only(address, size) {
                return Err(TrapReason::ReadOnly { address, segment });
            }
            self.access(&mut op, cycle)?;
        }
        if chip.reads_x() {
            op.gaps[0] = self.touch(rs1, cycle, 0, recorder);
        }
        if chip.reads_y() {
            op.gaps[1] = self.touch(rs2, cycle, 1, recorder);
        }
        if chip.writes() {
            op.old = self.state.registers[rd as usize].value;
            op.gaps[2] = self.touch(rd, cycle, 2, recorder);
            // The decoder replaces x0 by the sink, so a write never makes x0 other than zero.
            debug_assert!(rd > 0 && rd <= SINK);
            self.state.registers[rd as usize].value = result(chip, &op);
        }
        self.store(chip, &op);
        recorder.op(chip.index(), op);
        Ok(next)
    }

    /// Returns the next pc. The outcome of a branch becomes part of its operation.
    #[inline(always)]
    fn next_pc(
        &self,
        chip: Chip,
        op: &mut Op,
        outcomes: Option<&[Option<u32>; 2]>,
    ) -> Result<u32, TrapReason> {
        match (chip, outcomes) {
            // The decoder made the target: a misaligned one has no row, and traps as an illegal word does.
            (Chip::Jump, _) => Ok(op.imm),
            (Chip::JumpReg, _) => {
                let target = op.address() & !1;
                match target.is_multiple_of(4) {
                    true => Ok(target),
                    false => Err(TrapReason::MisalignedJump { target, size: 4 }),
                }
            }
            (_, Some(outcomes)) => {
                let holds = match chip {
                    Chip::BranchEqual => op.x == op.y,
                    Chip::BranchBelow => op.x < op.y,
                    _ => op.x.cast_signed() < op.y.cast_signed(),
                };
                op.variant = u8::from(holds);
                // Only jumps to misaligned places have no row.
                let target = outcomes[usize::from(holds)];
                op.imm = target.ok_or_else(|| {
                    let target = isa::branch_target(op.pc, self.program_word(op.pc));
                    TrapReason::MisalignedJump { target, size: 4 }
                })?;
                Ok(op.imm)
            }
            _ => Ok(op.pc.wrapping_add(4)),
        }
    }

    /// Writes the word or the part of a word that an instruction stores, if it stores one.
    #[inline(always)]
    fn store(&mut self, chip: Chip, op: &Op) {
        match chip {
            Chip::StoreWord => self.memory.cell(op.address() / 4).value = op.y,
            Chip::StorePart => {
                let shift = 8 * (op.address() % 4);
                let mask = if op.variant == 0 { 0xff } else { 0xffff } << shift;
                self.memory.cell(op.address() / 4).value = op.word & !mask | op.y << shift & mask;
            }
            _ => {}
        }
    }

    /// Executes an ECALL for a precompile, and returns the number of cycles that it takes.
    #[cold]
    fn call(
        &mut self,
        precompile: Precompile,
        pc: u32,
        cycle: u64,
        recorder: &mut impl Recorder,
    ) -> Result<u64, TrapReason> {
        let call = precompile.call();
        // a1 and the registers after it have the pointers to what is read.
        let others = (A1..).zip(call.read).map(|(register, count)| (register, *count));
        let operands: Vec<(u8, usize)> = iter::once((A0, call.changed)).chain(others).collect();
        let pointer = |register: u8| self.state.registers[register as usize].value;
        // Everything that may trap comes before the first access: a trap must leave no trace, since the
        // trace would be operations that no proof may have.
        let mut places = Vec::with_capacity(call.words());
        for (register, count) in &operands {
            let address = pointer(*register);
            if !address.is_multiple_of(4) {
                return Err(TrapReason::MisalignedAccess { address, size: 4 });
            }
            for word in (address / 4..).take(*count) {
                if !self.is_mapped(word) {
                    return Err(self.unmapped(word.saturating_mul(4)));
                }
                places.push(word);
            }
        }
        let address = pointer(A0);
        #[allow(clippy::cast_possible_truncation, reason = "at most 50 words")]
        if let Some(segment) = self.program.read_only(address, 4 * call.changed as u32) {
            return Err(TrapReason::ReadOnly { address, segment });
        }
        let given: Vec<u32> = places.iter().map(|word| self.memory.cell(*word).value).collect();
        let made = precompile.compute(&given).ok_or_else(|| {
            let modulus = operands.last().map_or(address, |(register, _)| pointer(*register));
            TrapReason::NoRemainder { call: call.number, modulus, bits: 32 * call.changed }
        })?;
        let mut op = Op { enabled: true, time: cycle, pc, x: address, ..Op::default() };
        let accesses = self.call_accesses(&operands, &places, &made, cycle, recorder);
        op.gaps[0] = self.touch(A0, cycle, 0, recorder);
        // As the call's chip leaves it.
        self.state.registers[A0 as usize].value = 0;
        if !call.read.is_empty() {
            op.y = self.state.registers[A1 as usize].value;
            op.gaps[1] = self.touch(A1, cycle, 1, recorder);
        }
        op.gaps[2] = self.touch(A7, cycle, 2, recorder);
        recorder.call(precompile.chip().index(), op, accesses);
        Ok(call.cycles().into())
    }

    /// The accesses of a call to the words of its operands, each operand in a cycle of its own and the one that
    /// changes last; then to the registers from a2 on.
    fn call_accesses(
        &mut self,
        operands: &[(u8, usize)],
        places: &[u32],
        made: &[u32],
        cycle: u64,
        recorder: &mut impl Recorder,
    ) -> Vec<Access> {
        let mut accesses = vec![Access::default(); places.len()];
        #[allow(clippy::cast_possible_truncation, reason = "cycles are below 2^32")]
        let mut now = cycle as u32;
        let mut first = made.len();
        for (_, count) in &operands[1..] {
            for (word, access) in places.iter().zip(&mut accesses).skip(first).take(*count) {
                *access = self.touch_word(*word, now);
            }
            (first, now) = (first + count, now + 1);
        }
        for ((word, access), value) in places.iter().zip(&mut accesses).zip(made) {
            *access = Access { after: *value, ..self.touch_word(*word, now) };
            self.memory.cell(*word).value = *value;
        }
        for (register, _) in operands.iter().skip(2) {
            let before = self.state.registers[*register as usize].value;
            let gap = self.touch(*register, cycle, 3, recorder).into();
            accesses.push(Access { before, after: before, gap });
        }
        accesses
    }

    /// An access to a word that leaves it as it is.
    fn touch_word(&mut self, word: u32, now: u32) -> Access {
        let cell = self.memory.cell(word);
        let gap = now - cell.time - 1;
        cell.time = now;
        Access { before: cell.value, after: cell.value, gap }
    }

    /// Accesses the word that an operation's address is in.
    #[inline(always)]
    pub(crate) fn access(&mut self, op: &mut Op, cycle: u64) -> Result<(), TrapReason> {
        let address = op.address();
        if !self.is_mapped(address / 4) {
            return Err(self.unmapped(address));
        }
        let cell = self.memory.cell(address / 4);
        op.word = cell.value;
        #[allow(clippy::cast_possible_truncation, reason = "cycles are below 2^32")]
        let now = cycle as u32;
        op.word_gap = now - cell.time - 1;
        cell.time = now;
        Ok(())
    }

    /// The bytes that a hint is about, or none of them if nobody asks for them.
    pub(crate) fn hinted(&self, wanted: bool) -> Result<Vec<u8>, TrapReason> {
        let [address, length] = [A0, A1].map(|at| self.state.registers[at as usize].value);
        let end = u64::from(address) + u64::from(length);
        // The regions behind the program follow each other.
        let memory = [4 * self.program.base..4 * self.state.input_end, output_region()];
        let region = memory.iter().find(|region| region.contains(&address));
        match region {
            _ if length == 0 => {}
            Some(region) if end <= u64::from(region.end) => {}
            Some(region) => return Err(self.unmapped(region.end)),
            None => return Err(self.unmapped(address)),
        }
        if !wanted {
            return Ok(Vec::new());
        }
        let words = address / 4..address.saturating_add(length).div_ceil(4);
        let bytes = words.flat_map(|word| self.memory.value(word).to_le_bytes());
        Ok(bytes.skip(address as usize % 4).take(length as usize).collect())
    }

    /// The reason why an access traps that is to no memory.
    #[cold]
    fn unmapped(&self, address: u32) -> TrapReason {
        let start = 4 * self.program.base;
        let stack = self.state.registers[SP as usize].value;
        // TinyRAM has no convention for a stack, and a program that never set the pointer has none.
        let has_stack = self.program.isa() == Isa::Rv32im && stack != 0;
        match has_stack && address < start && stack < start {
            true => TrapReason::StackOverflow { address, start },
            false => TrapReason::Unmapped(address),
        }
    }

    /// The reason why the word of code at a pc is not executed.
    #[cold]
    fn not_an_instruction(&self, pc: u32) -> TrapReason {
        let word = self.program_word(pc);
        // JAL, which has a row wherever it does not go to a misaligned place.
        match self.program.isa() == Isa::Rv32im && word & 0x7f == 0x6f {
            true => TrapReason::MisalignedJump { target: isa::jump_target(pc, word), size: 4 },
            false => TrapReason::Illegal(word),
        }
    }

    /// The word of the program at a pc that has code, or the second word of its instruction.
    pub(crate) fn program_word(&self, pc: u32) -> u32 {
        self.program.word(pc).expect("code is part of the image")
    }

    fn is_mapped(&self, word: u32) -> bool {
        let Range { start, end } = output_region();
        let output = start / 4..end / 4;
        (self.program.base..INPUT / 4).contains(&word)
            || (INPUT / 4..self.state.input_end).contains(&word)
            || output.contains(&word)
    }

    /// The error of a run that has not ended after the last cycle.
    pub(crate) fn too_long(&self, last: u64) -> RunError {
        let State { pc, cycle, .. } = self.state;
        Box::new(self.trap(TrapReason::TooLong(last), pc, cycle)).into()
    }

    /// The trap that an instruction ends the run with.
    pub(crate) fn trap(&self, reason: TrapReason, pc: u32, cycle: u64) -> Trap {
        let place = match self.program.symbol(pc) {
            Some((name, 0)) => format!(" ({})", readable(name)),
            Some((name, offset)) => format!(" ({} + {offset:#x})", readable(name)),
            None => String::new(),
        };
        let mut registers = String::new();
        let (names, count) = match self.program.isa() {
            Isa::Rv32im => ('x', 32),
            Isa::TinyRam => ('r', 16),
        };
        for (number, cell) in self.state.registers[..count].iter().enumerate() {
            if cell.value != 0 {
                // Writing to a string does not fail.
                let _ = write!(registers, " {names}{number}={:#x}", cell.value);
            }
        }
        if !registers.is_empty() {
            registers = format!("\nregisters:{registers}");
        }
        Trap { reason, pc, cycle, place, registers }
    }
}
