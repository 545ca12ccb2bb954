//! The RAM experiment of the paper (section 8.3, figure 10): a number of cycles of TinyRAM, with the memory
//! argument of the [machine](MachineCircuit), or with what distributed provers had before, Merkle paths.

mod merkle;
mod workload;

use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter, ParameterError};
use hekaton_circuit::{
    Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireId, WireValues,
};
use hekaton_vm::{Chip, Counts, Input, Isa, MachineCircuit, Plan, Private, Run, Sizes};
use merkle::{PathTrace, Paths};
use serde::{Deserialize, Serialize};

/// The parameters of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamParameters {
    /// The number of cycles.
    pub cycles: usize,
    /// 0 for the memory argument, 1 for Merkle paths.
    pub memory: usize,
    /// The maximum number of constraints of a subcircuit.
    pub rows: usize,
}

/// Cycles of TinyRAM, with one of two memories.
#[derive(Clone, Debug)]
pub struct Ram(Memory);

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
enum Memory {
    /// A program on the machine, with all of its instructions proven.
    Argument(MachineCircuit),
    /// Two paths per cycle, and as many rows as an ALU of TinyRAM takes, which prove nothing: what the paper
    /// compares with.
    Paths(Paths),
}

/// The ids of the layout.
#[derive(Debug)]
pub struct RamPlan(PlanOf);

#[derive(Debug)]
enum PlanOf {
    Argument(Box<Plan>),
    Paths(Vec<[WireId; 2]>),
}

/// The trace of a run.
#[derive(Debug)]
pub struct RamTrace(TraceOf);

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
enum TraceOf {
    Argument(Run),
    Paths(PathTrace),
}

/// The private data of one subcircuit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RamPrivate(PrivateOf);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum PrivateOf {
    Argument(Private),
    Paths(Vec<merkle::Access>),
}

const MIXED: &str = "the plan is that of another memory";

impl Circuit for Ram {
    type Input = Input;
    type Plan = RamPlan;
    type Trace = RamTrace;
    type Private = RamPrivate;

    const EXECUTES_RANGES: bool = true;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<RamPlan, LayoutError> {
        Ok(RamPlan(match &self.0 {
            Memory::Argument(execution) => PlanOf::Argument(execution.layout(layout)?.into()),
            Memory::Paths(paths) => PlanOf::Paths(paths.layout(layout)),
        }))
    }

    fn execute(
        &self,
        plan: &RamPlan,
        input: &Input,
        values: &mut WireValues,
    ) -> Result<RamTrace, CircuitError> {
        Ok(RamTrace(match (&self.0, &plan.0) {
            (Memory::Argument(execution), PlanOf::Argument(plan)) => {
                TraceOf::Argument(execution.execute(plan, input, values)?)
            }
            (Memory::Paths(paths), PlanOf::Paths(wires)) => {
                TraceOf::Paths(paths.execute(wires, workload::seed(input), values)?)
            }
            _ => return Err(MIXED.into()),
        }))
    }

    fn private_input(
        &self,
        plan: &RamPlan,
        input: &Input,
        trace: &RamTrace,
        instance: InstanceId,
    ) -> Result<RamPrivate, CircuitError> {
        Ok(RamPrivate(match (&self.0, &plan.0, &trace.0) {
            (Memory::Argument(execution), PlanOf::Argument(plan), TraceOf::Argument(run)) => {
                PrivateOf::Argument(execution.private_input(plan, input, run, instance)?)
            }
            (Memory::Paths(_), PlanOf::Paths(_), TraceOf::Paths(trace)) => {
                PrivateOf::Paths(trace.accesses(instance)?)
            }
            _ => return Err(MIXED.into()),
        }))
    }

    fn synthesize(
        &self,
        plan: &RamPlan,
        subcircuit: &Subcircuit,
        private: Option<&RamPrivate>,
    ) -> Result<(), SynthesisError> {
        match (&self.0, &plan.0) {
            (Memory::Argument(execution), PlanOf::Argument(plan)) => {
                let private = match private {
                    Some(RamPrivate(PrivateOf::Argument(private))) => Some(private),
                    _ => None,
                };
                execution.synthesize(plan, subcircuit, private)
            }
            (Memory::Paths(paths), PlanOf::Paths(_)) => {
                let accesses = match private {
                    Some(RamPrivate(PrivateOf::Paths(accesses))) => Some(&accesses[..]),
                    _ => None,
                };
                paths.synthesize(subcircuit, accesses)
            }
            _ => Err(SynthesisError::Unsatisfiable),
        }
    }
}

impl Ram {
    fn argument(cycles: usize, sizes: Sizes) -> Result<MachineCircuit, CircuitError> {
        let chips = workload::operations(cycles)?;
        let subcircuits = |(chip, count): (&Chip, u64)| -> Result<usize, CircuitError> {
            Ok(usize::try_from(count)?.div_ceil(sizes.ops(*chip)))
        };
        let chips = Isa::TinyRam.chips().iter().zip(chips).map(subcircuits);
        // An upper bound, not the count of a run: keys must not depend on the input.
        let zero = workload::most_cells(cycles).div_ceil(sizes.zero()).max(1);
        let counts = Counts { chips: chips.collect::<Result<_, _>>()?, refresh: 0, zero, input: 0 };
        let (program, max_cycles) = (workload::program(cycles)?, cycles as u64);
        Ok(MachineCircuit { program, sizes, counts, public_words: 0, max_cycles })
    }
}

impl NamedCircuit for Ram {
    const NAME: &'static str = "tinyram";
    const ABOUT: &'static str = "cycles of TinyRAM, the paper's RAM experiment: with a memory argument or with Merkle paths";
    const INPUT: &'static str = "a decimal number below 2^32, the word on the program's tape";
    const PUBLIC: &'static str =
        "the answer and the output; with Merkle paths, the first and last root";
    type Parameters = RamParameters;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "cycles", help: "number of cycles", default: Some("4096") },
        Parameter {
            name: "memory",
            help: "0: the memory argument, with every instruction proven; 1: two Poseidon paths of \
                   depth 32 per cycle, in addition to rows that stand for an ALU",
            default: Some("0"),
        },
        Parameter {
            name: "rows",
            help: "maximum number of constraints of a subcircuit",
            default: Some("131072"),
        },
    ];
    type Opened = Input;

    fn with(parameters: RamParameters) -> Result<Self, CircuitError> {
        let RamParameters { cycles, memory, rows } = parameters;
        let least = workload::LEAST;
        ParameterError::check_range(Self::NAME, "cycles", cycles, least..=1 << 31, "in 32..2^31")?;
        ParameterError::check_range(Self::NAME, "memory", memory, 0..=1, "0 or 1")?;
        let text = "in 2^15..2^28";
        ParameterError::check_range(Self::NAME, "rows", rows, 1 << 15..=1 << 28, text)?;
        Ok(Self(match memory {
            0 => Memory::Argument(Self::argument(cycles, Sizes { rows })?),
            _ => Memory::Paths(Paths::new(cycles, rows)),
        }))
    }

    fn subcircuits(&self) -> Option<usize> {
        Some(match &self.0 {
            Memory::Argument(execution) => execution.subcircuits(),
            Memory::Paths(paths) => paths.subcircuits(),
        })
    }

    fn open(&self, input: &InputFile) -> Result<Input, CircuitError> {
        let wrong = || CircuitError::from("the input must be one decimal number below 2^32");
        // Before it is read: the file may be anything.
        if input.length()? > 100 {
            return Err(wrong());
        }
        let text = input.read_text().map_err(|_| wrong())?;
        Ok(workload::input(text.trim().parse().map_err(|_| wrong())?))
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(*b"3")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::{PreparedCircuit, check, count};
    use hekaton_vm::run;

    fn argument(cycles: usize) -> Ram {
        Ram::with(RamParameters { cycles, memory: 0, rows: 1 << 15 }).unwrap()
    }

    /// On any input, the program takes exactly the cycles that it is asked for, within the counts.
    #[test]
    fn the_program_has_the_cycles_that_it_should() {
        for cycles in [workload::LEAST, 1000, 1001, 1014, 1015, 5000] {
            for seed in [0, 1, 3, u32::MAX] {
                let run = run(&workload::program(cycles).unwrap(), &workload::input(seed), 1 << 20)
                    .unwrap();
                assert_eq!(run.cycles(), cycles as u64);
            }
        }
        // The counts are those of a run, words of memory aside.
        for cycles in [workload::LEAST, 1013, 300_000] {
            let sizes = Sizes { rows: 1 << 15 };
            let execution = Ram::argument(cycles, sizes).unwrap();
            let (program, input) = (&execution.program, workload::input(5));
            let run = run(program, &input, execution.max_cycles).unwrap();
            let needed =
                Counts { zero: execution.counts.zero, ..Counts::of(&run, program, &input, sizes) };
            assert_eq!(execution.counts, needed);
        }
        let (ram, input) = (argument(5000), workload::input(77));
        let report = check(&ram, &input, |_, _| {}).unwrap();
        assert_eq!((&report.violations[..], &report.unbalanced[..]), (&[][..], &[][..]));
        assert_eq!(
            ram.subcircuits(),
            Some(PreparedCircuit::new(&ram).unwrap().layout().instances())
        );
    }

    /// The variant with paths: accepted as it is, and refused with another address, word or sibling.
    #[test]
    fn paths_lead_to_their_roots() {
        let ram = |lie| {
            let mut paths = Paths::new(2, 1 << 15);
            paths.lie = lie;
            Ram(Memory::Paths(paths))
        };
        let input = workload::input(7);
        let violations = |lie: fn(&mut merkle::Access)| {
            check(&ram(Some(lie)), &input, |_, _| {}).unwrap().violations.len()
        };
        assert_eq!(violations(|_| {}), 0);
        assert!(violations(merkle::Access::with_another_address) > 0);
        assert!(violations(merkle::Access::with_another_word) > 0);
        assert!(violations(merkle::Access::with_another_sibling) > 0);
        let ram = ram(None);
        let instances = PreparedCircuit::new(&ram).unwrap().layout().instances();
        assert_eq!((ram.subcircuits(), instances), (Some(2), 2));
        let rows = count(&ram).unwrap()[0].constraints;
        assert_eq!(rows, merkle::ROWS + 7);
    }
}
