//! Provers that lie about what happened: the rows or the sums of the buses refuse them. Each lie follows its
//! consequences as far as they go, so that nothing but the named check stands in its way.

use super::assembler::*;
use super::instructions::execution;
use crate::circuit::{MachineCircuit, Plan, Private};
use crate::machine::{CLASSES, REFRESH};
use crate::op::Op;
use crate::run::All;
use crate::run::Run;
use crate::{BoundsError, Chip, Input, Isa};
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    CheckError, Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, PreparedCircuit,
    Subcircuit, WireValues, check,
};

pub(super) type Lie = fn(&mut Run);

/// An execution whose prover changes the run after it has been executed.
pub(super) struct Changed<F>(pub(super) MachineCircuit, pub(super) F);

/// A prover that lies about the operations of its run.
pub(super) fn lying(execution: MachineCircuit, lie: Lie) -> impl Circuit<Input = Input> {
    Changed(execution, move |execution: &MachineCircuit, _: &Input, run: &mut Run| {
        let all = |class| run.calls(&execution.program, class, 0..u64::MAX).unwrap();
        let (ops, accesses) = (0..CLASSES).map(all).unzip();
        run.forged = Some(All { ops, accesses });
        lie(run);
    })
}

impl<F: Fn(&MachineCircuit, &Input, &mut Run) + Sync> Circuit for Changed<F> {
    type Input = Input;
    type Plan = Plan;
    type Trace = Run;
    type Private = Private;

    const EXECUTES_RANGES: bool = true;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Plan, LayoutError> {
        self.0.layout(layout)
    }

    fn execute(
        &self,
        plan: &Plan,
        input: &Input,
        values: &mut WireValues,
    ) -> Result<Run, CircuitError> {
        let mut run = self.0.execute(plan, input, values)?;
        self.1(&self.0, input, &mut run);
        self.0.publish(plan, input, &run, values);
        Ok(run)
    }

    fn private_input(
        &self,
        plan: &Plan,
        input: &Input,
        run: &Run,
        instance: InstanceId,
    ) -> Result<Private, CircuitError> {
        self.0.private_input(plan, input, run, instance)
    }

    fn synthesize(
        &self,
        plan: &Plan,
        subcircuit: &Subcircuit,
        private: Option<&Private>,
    ) -> Result<(), SynthesisError> {
        self.0.synthesize(plan, subcircuit, private)
    }
}

/// The check that refuses a lie.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    Nothing,
    /// A row, or a look-up that no table has.
    Rows,
    /// The sums of these buses.
    Buses(Vec<String>),
}

pub(super) fn refused(execution: MachineCircuit, input: &Input, lie: Lie) -> Refused {
    let forged = lying(execution, lie);
    match check(&forged, input, |_, _| {}) {
        Err(CheckError::Synthesize { .. } | CheckError::Execution(_)) => Refused::Rows,
        Err(error) => panic!("{error}"),
        Ok(report) if !report.violations.is_empty() => Refused::Rows,
        Ok(report) => {
            let mut buses: Vec<String> =
                report.unbalanced.iter().map(|unbalanced| unbalanced.bus.clone()).collect();
            buses.dedup();
            match buses.is_empty() {
                true => Refused::Nothing,
                false => Refused::Buses(buses),
            }
        }
    }
}

/// The operations, which a lie may change.
pub(super) fn forged(run: &mut Run) -> &mut Vec<Vec<Op>> {
    &mut run.forged.as_mut().unwrap().ops
}

/// The operation of a cycle.
pub(super) fn at(run: &mut Run, cycle: u64) -> &mut Op {
    forged(run).iter_mut().take(REFRESH).flatten().find(|op| op.time == cycle).unwrap()
}

/// A register ends with another value, last accessed at a tick.
pub(super) fn last(run: &mut Run, register: usize, tick: u64, value: u32) {
    let cell = &mut run.registers[register];
    (cell.time, cell.value) = (tick, value);
}

#[test]
fn lies_are_refused() {
    let registers = || Refused::Buses(vec!["registers".into()]);
    let memory = || Refused::Buses(vec!["memory".into()]);
    let code = |body: &[u32]| [body, &exit()].concat();
    let data = Input { public: Vec::new(), private: vec![11, 0, 0, 0, 22, 0, 0, 0] };
    let none = Input::default();
    let stale = code(&[li(5, 1), li(5, 7), addi(6, 5, 0)]);
    let two = code(&[li(5, 1), li(6, 2), addi(7, 5, 0)]);
    let stored = code(&[lui(5, 0x1100_0000), li(7, 9), store(2, 7, 5, 0), load(2, 6, 5, 0)]);
    let loaded = code(&[lui(5, 0x2000_0000), load(2, 6, 5, 4)]);
    let (three, empty) = (code(&[li(10, 3)]), code(&[]));
    let cases: Vec<(&str, &[u32], &Input, Lie, Refused)> = vec![
        ("nothing", &two, &none, |_| {}, Refused::Nothing),
        (
            "a register is read with a value that was overwritten",
            &stale,
            &none,
            |run| {
                let op = at(run, 3);
                (op.x, op.gaps[0]) = (1, 12 - 6 - 1);
                last(run, 6, 14, 1);
            },
            registers(),
        ),
        (
            "an instruction reads another register than its own",
            &two,
            &none,
            |run| {
                let op = at(run, 3);
                (op.rs1, op.x, op.gaps[0]) = (6, 2, 1);
                last(run, 5, 6, 1);
                last(run, 6, 12, 2);
                last(run, 7, 14, 2);
            },
            Refused::Rows,
        ),
        (
            "another immediate than the program has",
            &two,
            &none,
            |run| {
                at(run, 3).imm = 4;
                last(run, 7, 14, 5);
            },
            Refused::Rows,
        ),
        (
            "an instruction is left out",
            &two,
            &none,
            |run| {
                forged(run)[Chip::AddImm.index()].clear();
                last(run, 5, 6, 1);
                last(run, 7, 0, 0);
            },
            Refused::Buses(vec!["state".into()]),
        ),
        (
            "a load sees the value before the last store",
            &stored,
            &none,
            |run| {
                let op = at(run, 4);
                (op.word, op.word_gap) = (0, 3);
                last(run, 6, 18, 0);
            },
            memory(),
        ),
        (
            "a store that never happened",
            &stored,
            &none,
            |run| {
                at(run, 3).y = 8;
                at(run, 4).word = 8;
                last(run, 6, 18, 8);
                run.memory.cell(0x1100_0000 / 4).value = 8;
            },
            registers(),
        ),
        (
            "a final cell that nobody left",
            &stored,
            &none,
            |run| run.memory.cell(0x1100_0000 / 4).value = 8,
            memory(),
        ),
        (
            "an input word that is loaded is not the one in memory",
            &loaded,
            &data,
            |run| {
                at(run, 2).word = 12;
                last(run, 6, 10, 12);
            },
            memory(),
        ),
        ("another exit code", &three, &none, |run| run.exit.code = 4, registers()),
        (
            "another system call is taken for an exit",
            &three,
            &none,
            |run| {
                at(run, 2).imm = 64;
                last(run, 17, 13, 64);
            },
            Refused::Rows,
        ),
        ("another public output", &empty, &none, |run| run.output[2] = 1, memory()),
        (
            "another end",
            &two,
            &none,
            |run| run.exit.cycle += 1,
            Refused::Buses(vec!["state".into(), "registers".into()]),
        ),
    ];
    for (name, words, input, lie, expected) in cases {
        assert_eq!(refused(execution(words, input), input, lie), expected, "{name}");
    }
}

/// Counts outside of their bounds are refused before anything is computed from them (adversarial test 85). Among them
/// are those of refreshes, which could move a register's cell to another digit (adversarial test 78).
#[test]
fn counts_are_bounded() {
    type Change = fn(&mut MachineCircuit);
    let cases: [(Change, &str); 12] = [
        (|e| e.counts.chips[0] = 1 << 28, "operations, refreshes included"),
        (|e| e.counts.chips[19] = usize::MAX, "operations, refreshes included"),
        // Few operations of precompiles have room in a subcircuit.
        (|e| e.counts.chips[20] = 1 << 32, "operations, refreshes included"),
        (|e| e.counts.chips[21] = usize::MAX, "operations, refreshes included"),
        (|e| e.counts.refresh = 1 << 28, "operations, refreshes included"),
        (|e| e.counts.refresh = usize::MAX, "operations, refreshes included"),
        (|e| e.counts.zero = 1 << 20, "words of zero memory"),
        (|e| e.counts.zero = 0, "zero memory, expected at least one"),
        (|e| e.counts.input = 1 << 20, "reaches the output"),
        (|e| e.counts.input = 0, "RV32IM has its input in memory"),
        (|e| e.public_words = usize::MAX, "public words"),
        (|e| e.sizes.rows = 1 << 29, "expected 2^12 to 2^28"),
    ];
    for (change, says) in cases {
        let mut execution = execution(&exit(), &Input::default());
        change(&mut execution);
        let error = PreparedCircuit::new(&execution).map(drop).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}

/// The private bytes that are said to have room are those that have, behind any public words.
#[test]
fn the_room_of_the_input_is_what_fits() {
    for (rows, public_words) in [(1 << 12, 0), (1 << 12, 5), (1 << 17, 1), (3 << 12, 1 << 20)] {
        let mut execution = execution(&exit(), &Input::default());
        (execution.sizes.rows, execution.public_words) = (rows, public_words);
        let most = execution.sizes.private_room(Isa::Rv32im, public_words);
        let mut fits = |bytes: usize| {
            execution.counts.input = (1 + bytes.div_ceil(4)).div_ceil(execution.sizes.input());
            execution.check()
        };
        assert_eq!((fits(most), fits(0)), (Ok(()), Ok(())), "{rows} {public_words}");
        let error = fits(most + 1).unwrap_err();
        assert!(matches!(error, BoundsError::Input { most: said, .. } if said == most), "{error}");
    }
}

/// The number of subcircuits that is bounded before there is a layout is the layout's.
#[test]
fn subcircuits_are_counted_before_they_are_laid_out() {
    let long = [&vec![addi(0, 0, 0); 5000][..], &exit()].concat();
    let input = Input { public: (0..17).collect(), private: vec![1; 9000] };
    for (words, input) in [(&exit()[..], &Input::default()), (&long, &input)] {
        for rows in [1 << 12, 3 << 12, 1 << 17] {
            let mut execution = execution(words, input);
            execution.sizes.rows = rows;
            execution.counts = execution.counts.with_every_kind();
            let prepared = PreparedCircuit::new(&execution).unwrap();
            assert_eq!(execution.subcircuits(), prepared.layout().instances(), "{rows}");
        }
    }
}

/// A run that needs more than the counts allow is refused by the name of the type.
#[test]
fn runs_that_do_not_fit_are_named() {
    let mut execution = execution(&[&[r(0, 0, 5, 0, 0)][..], &exit()].concat(), &Input::default());
    execution.counts.chips[Chip::Add as usize - 1] = 0;
    let error = check(&execution, &Input::default(), |_, _| {}).unwrap_err().to_string();
    let says = "the run needs 1 subcircuits of type 'add', but the circuit has 0";
    assert!(error.contains(says), "{error}");
}

/// Operations that fill up subcircuits, in all chips: they say nothing to anybody.
#[test]
fn filling_operations_satisfy_all_chips() {
    let mut execution = execution(&exit(), &Input::default());
    execution.counts = execution.counts.with_every_kind();
    let report = check(&execution, &Input::default(), |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
}
