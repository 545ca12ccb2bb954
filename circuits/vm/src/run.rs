//! Runs: the first pass, which counts, and replays of parts of it, which say what a subcircuit proves.

use crate::address_space::{INPUT, OUTPUT, OUTPUT_WORDS};
use crate::input::Input;
use crate::isa::{Chip, Hint};
use crate::machine::{CLASSES, Exit, Machine, REFRESH, REGISTERS, Recorder, Register, State};
use crate::memory::{Memory, Snapshot, pages_of};
use crate::op::{Access, Op};
use crate::program::Program;
use crate::trap::{RunError, TrapReason};
use std::ops::Range;
use std::sync::Arc;

/// The number of cycles between two checkpoints, from each of which a run can be replayed.
const SPACING: u64 = 1 << 18;

/// The number of pages, of 8 KiB each, that checkpoints keep: of a run that changes more, every second
/// checkpoint is dropped.
const PAGES: usize = 1 << 15;

/// The number of cycles of a replay after which it looks whether it has all.
// Long enough that the look costs nothing, short enough that a replay does not run on for long.
const STRIDE: u64 = 1 << 12;

/// The numbers of operations of all classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Totals([u64; CLASSES]);

/// An observer of a run, called with the text and output that the program shows. By default it ignores them.
pub trait Observer {
    /// Reports whether it is to be called with text.
    fn wants_text(&self) -> bool {
        true
    }

    /// Called with text that the program prints.
    fn text(&mut self, _: &[u8]) {}

    /// Called with the whole output of a program whose output has any length; if it is called several times, the last one counts.
    fn output(&mut self, _: &[u8]) {}
}

impl Observer for () {
    fn wants_text(&self) -> bool {
        false
    }
}

/// The first pass: counts, and tells an observer what the program shows.
struct FirstPass<'a, O> {
    totals: Totals,
    observer: &'a mut O,
}

impl<O: Observer> Recorder for FirstPass<'_, O> {
    #[inline]
    fn op(&mut self, class: usize, _: Op) {
        self.totals.0[class] += 1;
    }

    fn hint(&mut self, hint: Hint, machine: &Machine<'_>) -> Result<(), TrapReason> {
        let wanted = hint == Hint::Output || self.observer.wants_text();
        let bytes = machine.hinted(wanted)?;
        match hint {
            Hint::Text if wanted => self.observer.text(&bytes),
            Hint::Text => {}
            Hint::Output => self.observer.output(&bytes),
        }
        Ok(())
    }
}

/// A place in a run from which it can be replayed.
#[derive(Clone, Debug)]
struct Checkpoint {
    state: State,
    memory: Snapshot,
    /// The operations before it.
    totals: Totals,
}

/// A part of a run: from a checkpoint up to a cycle, with the number of operations before that cycle.
struct Part<'a> {
    from: &'a Checkpoint,
    end: u64,
    totals: Totals,
}

/// A run that ended with an exit, and everything that its proof is about. Operations are not kept: those
/// that a subcircuit proves are found by replaying the part of the run that they are in.
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) exit: Exit,
    checkpoints: Vec<Checkpoint>,
    totals: Totals,
    /// The registers at the end, and the ticks of the last accesses.
    pub(crate) registers: [Register; REGISTERS],
    pub(crate) memory: Memory<'static>,
    pub(crate) output: [u32; OUTPUT_WORDS],
    /// The words of the input in memory, and those of TinyRAM's tape.
    input: Vec<u32>,
    tape: Arc<[u32]>,
    /// The words of zero memory that have cells, once the circuit is known.
    pub(crate) zero_cells: Vec<u32>,
    /// The operations that a prover that lies claims instead.
    #[cfg(test)]
    pub(crate) forged: Option<All>,
}

/// The maximum number of cycles of a run: times of memory have 32 bits, and the last call may take several cycles.
pub const MAX_CYCLES: u64 = u32::MAX as u64 - 8;

/// Runs a program on an input, for at most `max_cycles` and [`MAX_CYCLES`].
///
/// It traps on more than the constraints forbid: stores to segments that are not writable (spec: machine#statement).
///
/// # Errors
/// If the program traps, or has not ended by then, or the input is too large.
pub fn run(program: &Program, input: &Input, max_cycles: u64) -> Result<Run, RunError> {
    run_observed(program, input, max_cycles, &mut ())
}

/// [`run`] with an observer, which is called for a program that traps, too.
///
/// # Errors
/// As [`run`].
pub fn run_observed(
    program: &Program,
    input: &Input,
    max_cycles: u64,
    observer: &mut impl Observer,
) -> Result<Run, RunError> {
    first_pass(program, input, max_cycles, (SPACING, PAGES), observer)
}

/// [`run`] with a checkpoint each `spacing` cycles, or fewer of them if they would keep more than `most`
/// pages. Nothing else depends on it.
#[cfg(test)]
pub(crate) fn run_with_checkpoints(
    program: &Program,
    input: &Input,
    max_cycles: u64,
    spacing: u64,
    most: usize,
) -> Result<Run, RunError> {
    first_pass(program, input, max_cycles, (spacing, most), &mut ())
}

fn first_pass(
    program: &Program,
    input: &Input,
    max_cycles: u64,
    (mut spacing, most): (u64, usize),
    observer: &mut impl Observer,
) -> Result<Run, RunError> {
    let last_cycle = max_cycles.min(MAX_CYCLES);
    let mut machine = Machine::new(program, input)?;
    let mut pass = FirstPass { totals: Totals([0; CLASSES]), observer };
    let mut checkpoints = Vec::<Checkpoint>::new();
    let mut kept = 0;
    let exit = loop {
        let none = Snapshot::default();
        let last = checkpoints.last().map_or(&none, |checkpoint| &checkpoint.memory);
        // Before the part that it is for: a replay begins with the memory as it was then.
        let (memory, new) = machine.memory.snapshot(last);
        let (state, totals) = (machine.state.clone(), pass.totals);
        checkpoints.push(Checkpoint { state, memory, totals });
        kept += new;
        while kept > most && checkpoints.len() > 2 {
            // The first one stays, and the last one, which the next one shares pages with.
            let (mut at, end) = (0, checkpoints.len() - 1);
            checkpoints.retain(|_| {
                at += 1;
                at % 2 == 1 || at > end
            });
            // Later checkpoints are as far apart as those that are left, so a replay takes about the same
            // time anywhere.
            spacing = spacing.saturating_mul(2);
            kept = pages_of(checkpoints.iter().map(|checkpoint| &checkpoint.memory));
        }
        let cycle = machine.state.cycle;
        if cycle > last_cycle {
            return Err(machine.too_long(last_cycle));
        }
        let end = cycle.saturating_add(spacing).min(last_cycle + 1);
        if let Some(exit) = machine.run(end, &mut pass)? {
            break exit;
        }
    };
    let (registers, tape) = (machine.state.registers, machine.tape);
    // The memory of the first pass comes from no snapshot.
    let memory = machine.memory.into_own();
    let output = std::array::from_fn(|i| {
        #[allow(clippy::cast_possible_truncation, reason = "16 words")]
        memory.get(OUTPUT / 4 + i as u32).value
    });
    Ok(Run {
        exit,
        checkpoints,
        totals: pass.totals,
        registers,
        memory,
        output,
        input: input.words(program.isa()).collect(),
        tape,
        zero_cells: Vec::new(),
        #[cfg(test)]
        forged: None,
    })
}

/// Keeps the operations of one class with their numbers in a range.
struct Select {
    class: usize,
    range: Range<u64>,
    /// The number of the next operation of the class.
    next: u64,
    ops: Vec<Op>,
    accesses: Vec<Vec<Access>>,
}

impl Recorder for Select {
    #[inline]
    fn op(&mut self, class: usize, op: Op) {
        if class == self.class {
            // Operations are numbered within their class, in the order of the run: subcircuit j has those
            // from j R on.
            if self.range.contains(&self.next) {
                self.ops.push(op);
            }
            self.next += 1;
        }
    }

    fn call(&mut self, class: usize, op: Op, accesses: Vec<Access>) {
        if class == self.class && self.range.contains(&self.next) {
            self.accesses.push(accesses);
        }
        self.op(class, op);
    }
}

/// Keeps everything.
#[derive(Clone, Debug)]
pub(crate) struct All {
    /// The operations by class.
    pub(crate) ops: Vec<Vec<Op>>,
    /// The accesses of the operations of precompiles, also by class.
    pub(crate) accesses: Vec<Vec<Vec<Access>>>,
}

impl All {
    /// Room for as many operations of each class.
    pub(crate) fn with_room(counts: [usize; CLASSES]) -> Self {
        Self { ops: counts.map(Vec::with_capacity).into(), accesses: vec![Vec::new(); CLASSES] }
    }
}

impl Recorder for All {
    #[inline]
    fn op(&mut self, class: usize, op: Op) {
        self.ops[class].push(op);
    }

    fn call(&mut self, class: usize, op: Op, accesses: Vec<Access>) {
        self.accesses[class].push(accesses);
        self.op(class, op);
    }
}

impl Run {
    /// The value of a word of the input at the beginning; 0 elsewhere.
    pub(crate) fn initial(&self, word: u32) -> u32 {
        let place = word.checked_sub(INPUT / 4).map(|place| place as usize);
        place.and_then(|place| self.input.get(place)).copied().unwrap_or(0)
    }

    /// The number of cycles: one for each instruction, the last one included, and several for some calls.
    pub fn cycles(&self) -> u64 {
        self.exit.cycle
    }

    /// The exit code.
    pub fn exit_code(&self) -> u32 {
        self.exit.code
    }

    /// The words of the output.
    pub fn output(&self) -> &[u32; OUTPUT_WORDS] {
        &self.output
    }

    /// The number of instructions of a chip.
    pub fn count(&self, chip: Chip) -> u64 {
        self.totals.0[chip.index()]
    }

    /// The number of refreshes: accesses to a register that was not accessed for 2^14 cycles need one
    /// each 2^14 cycles.
    pub fn refreshes(&self) -> u64 {
        self.totals.0[REFRESH]
    }

    /// The number of pages of all checkpoints.
    #[cfg(test)]
    pub(crate) fn kept_pages(&self) -> usize {
        pages_of(self.checkpoints.iter().map(|checkpoint| &checkpoint.memory))
    }

    /// Replays the whole run and records all of its operations; returns how many there are. It is what
    /// the provers of all subcircuits do together, at least.
    ///
    /// # Errors
    /// If the program is not the one that ran.
    pub fn replay(&self, program: &Program) -> Result<u64, RunError> {
        #[allow(clippy::cast_possible_truncation, reason = "cycles are below 2^32")]
        let mut all = All::with_room(self.totals.0.map(|count| count as usize));
        for part in self.parts() {
            self.machine(program, &part).run(part.end, &mut all)?;
        }
        Ok(all.ops.iter().map(|ops| ops.len() as u64).sum())
    }

    /// The operations of a class with their numbers in a range, as far as there are any, from replays of
    /// the parts of the run that have some of them; and of precompiles the accesses of each.
    ///
    /// # Errors
    /// If the program is not the one that ran.
    pub(crate) fn calls(
        &self,
        program: &Program,
        class: usize,
        range: Range<u64>,
    ) -> Result<(Vec<Op>, Vec<Vec<Access>>), RunError> {
        #[cfg(test)]
        if let Some(All { ops, accesses }) = &self.forged {
            let ops = ops[class].iter().zip(0u64..).filter(|(_, at)| range.contains(at));
            let calls = accesses[class].iter().zip(0u64..).filter(|(_, at)| range.contains(at));
            return Ok((ops.map(|(op, _)| *op).collect(), calls.map(|(c, _)| c.clone()).collect()));
        }
        let there = range.start.min(self.totals.0[class])..range.end.min(self.totals.0[class]);
        #[allow(clippy::cast_possible_truncation, reason = "cycles are below 2^32")]
        let ops = Vec::with_capacity(there.end.saturating_sub(there.start) as usize);
        let mut select = Select { class, range, next: 0, ops, accesses: Vec::new() };
        for part in self.parts() {
            let [from, to] = [part.from.totals, part.totals].map(|totals| totals.0[class]);
            // Totals at both ends tell which operations of the class a part has, so other parts are not
            // replayed.
            if to <= select.range.start.max(from) || from >= select.range.end {
                continue;
            }
            select.next = from;
            let mut machine = self.machine(program, &part);
            while machine.state.cycle < part.end && select.next < select.range.end {
                let stride = part.end.min(machine.state.cycle + STRIDE);
                if machine.run(stride, &mut select)?.is_some() {
                    break;
                }
            }
        }
        Ok((select.ops, select.accesses))
    }

    /// [`calls`](Self::calls), without accesses.
    #[cfg(test)]
    pub(crate) fn ops(
        &self,
        program: &Program,
        class: usize,
        range: Range<u64>,
    ) -> Result<Vec<Op>, RunError> {
        Ok(self.calls(program, class, range)?.0)
    }

    /// The parts of the run, from each checkpoint to the next one.
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.checkpoints.iter().enumerate().map(|(at, from)| match self.checkpoints.get(at + 1) {
            Some(next) => Part { from, end: next.state.cycle, totals: next.totals },
            None => Part { from, end: self.exit.cycle + 1, totals: self.totals },
        })
    }

    /// The machine at the beginning of a part.
    fn machine<'a>(&'a self, program: &'a Program, part: &Part<'a>) -> Machine<'a> {
        let memory = Memory::at(&self.memory, &part.from.memory);
        Machine::at(program, part.from.state.clone(), memory, self.tape.clone())
    }
}
