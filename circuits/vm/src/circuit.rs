//! The circuit of a program: opcode chips, registers, memory, boundary and tables.

use crate::address_space::INPUT;
use crate::input::Input;
use crate::isa::{Chip, Isa};
use crate::machine::REFRESH;
use crate::op::{Access, Op};
use crate::parts::{BoundaryValues, Cells, PUBLIC};
use crate::precompile::Precompile;
use crate::program::Program;
use crate::rows::Buses;
use crate::run::{Run, run};
use crate::sizes::{Sizes, refresh_template, template_of};
use crate::tables;
use crate::template::Template;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Subcircuit, TypeId, WireId,
    WireValues,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The maximum number of public words of an input.
pub const MAX_PUBLIC: usize = 1 << 20;

/// The number of subcircuits of each kind that the prover chooses. It is part of the claim of a proof, but any
/// counts prove the same statement about the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of subcircuits of each chip, in the order of [`Isa::chips`].
    pub chips: Vec<usize>,
    /// The number of subcircuits of refreshes.
    pub refresh: usize,
    /// The number of subcircuits of words that are zero at the beginning, between the image and the input; at least
    /// one.
    pub zero: usize,
    /// The number of subcircuits of words of the private input; at least one, but zero for TinyRAM, where the input is
    /// on a tape.
    pub input: usize,
}

impl Counts {
    /// The counts that a run needs.
    pub fn of(run: &Run, program: &Program, input: &Input, sizes: Sizes) -> Self {
        #[allow(clippy::cast_possible_truncation, reason = "cycles are below 2^32")]
        let count = |ops: u64, size: usize| (ops as usize).div_ceil(size);
        let isa = program.isa();
        let chips = isa.chips().iter().map(|chip| count(run.count(*chip), sizes.ops(*chip)));
        let zero = image_end(program, sizes)..INPUT / 4;
        Self {
            chips: chips.collect(),
            refresh: count(run.refreshes(), sizes.refreshes()),
            zero: run.memory.accessed(zero).count().div_ceil(sizes.zero()).max(1),
            // For RV32IM at least one: the word with the length is there with no bytes, too.
            input: input.private_words(isa).len().div_ceil(sizes.input()),
        }
    }
}

impl Counts {
    /// The counts of all types, by name.
    pub fn by_name(&self, isa: Isa) -> impl Iterator<Item = (&'static str, usize)> {
        let chips = names_of_chips(isa).zip(self.chips.clone());
        let others = [("refresh", self.refresh), ("zero", self.zero), ("input", self.input)];
        chips.chain(others)
    }

    /// Raises the number of subcircuits of a kind. Returns false if there is no such kind.
    pub fn raise(&mut self, isa: Isa, name: &str, least: usize) -> bool {
        let Self { chips, refresh, zero, input } = self;
        let names = names_of_chips(isa).chain(["refresh", "zero", "input"]);
        let counts = chips.iter_mut().chain([refresh, zero, input]);
        let found = names.zip(counts).find(|(kind, _)| *kind == name);
        found.map(|(_, count)| *count = (*count).max(least)).is_some()
    }

    /// Raises the counts to at least one subcircuit of each kind, so that a proof does not reveal which instructions were
    /// not executed.
    #[must_use]
    pub fn with_every_kind(mut self) -> Self {
        // There are as many of zero and input as their instruction set needs, at least.
        let Self { chips, refresh, .. } = &mut self;
        // This costs a subcircuit for each kind that did not occur.
        chips.iter_mut().chain([refresh]).for_each(|count| *count = (*count).max(1));
        self
    }
}

fn names_of_chips(isa: Isa) -> impl Iterator<Item = &'static str> {
    isa.chips().iter().map(|chip| chip.name())
}

/// The first word behind the image, cells that fill up its last subcircuit included.
pub(crate) fn image_end(program: &Program, sizes: Sizes) -> u32 {
    let cells = program.image.len().next_multiple_of(sizes.image().max(1));
    #[allow(clippy::cast_possible_truncation, reason = "an image is below 2^22 words")]
    {
        program.base + cells as u32
    }
}

/// The circuit of a program's run, which ends with an exit, with these public words as input and output.
#[derive(Clone, Debug)]
pub struct MachineCircuit {
    /// The program.
    pub program: Program,
    /// The sizes of subcircuits.
    pub sizes: Sizes,
    /// The number of subcircuits.
    pub counts: Counts,
    /// The number of public words of the input.
    pub public_words: usize,
    /// The number of cycles after which a prover gives up.
    pub max_cycles: u64,
}

/// The ids of the layout.
#[derive(Debug)]
pub struct Plan {
    pub(crate) buses: Buses,
    /// The types, and the first instance of each.
    pub(crate) groups: Vec<(TypeId, Part, Range<usize>)>,
    /// Input words, exit code, output words.
    pub(crate) public: Vec<WireId>,
    /// The address of the first word of each instance but the first of zero memory.
    pub(crate) chain: Vec<WireId>,
}

/// The subject of a type of subcircuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A chip.
    Chip(Chip),
    /// Refreshes of registers.
    Refresh,
    /// Words of the image.
    Image,
    /// Words that are zero at the beginning.
    Zero,
    /// Private words of the input.
    Input,
    /// Public words of the input.
    Public,
    /// Beginning and end.
    Boundary,
}

/// The private data of one subcircuit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Private(Values);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Values {
    /// The operations of a chip or of refreshes.
    Ops(Vec<Op>),
    /// Cells of memory.
    Cells(Cells),
    /// Beginning and end.
    Boundary(BoundaryValues),
    /// The operations of a precompile, and the accesses of each.
    Calls(Vec<Op>, Vec<Vec<Access>>),
}

impl Plan {
    fn part(&self, kind: TypeId) -> Option<Part> {
        self.groups.iter().find(|(id, ..)| *id == kind).map(|(_, part, _)| *part)
    }

    /// The part of an instance, and its number among those of its type.
    fn place(&self, instance: InstanceId) -> Option<(Part, usize)> {
        let index = instance.index();
        let found = self.groups.iter().find(|(.., range)| range.contains(&index));
        found.map(|(_, part, range)| (*part, index - range.start))
    }
}

impl MachineCircuit {
    /// A circuit with all subcircuit types, to set up a key family of all programs of an instruction set with.
    pub fn of_family(isa: Isa, sizes: Sizes) -> Self {
        let (program, input) = match isa {
            Isa::Rv32im => (Program::smallest(), 1),
            Isa::TinyRam => (Program::smallest_tiny(), 0),
        };
        let counts = Counts { chips: vec![1; isa.chips().len()], refresh: 1, zero: 1, input };
        Self { program, sizes, counts, public_words: 1, max_cycles: 0 }
    }

    /// The number of subcircuits, before anything is laid out: counts may come from anyone.
    pub fn subcircuits(&self) -> usize {
        let Self { program, sizes, counts, public_words, .. } = self;
        let of_table = |rows: usize| rows.div_ceil(sizes.table().max(1));
        let ranges = tables::RANGES.iter().map(|bits| of_table(1 << bits));
        let program_rows = program.code().map(|(_, decoded)| decoded.rows_count()).sum::<usize>();
        let tables = [tables::LOGIC_ROWS, tables::POWERS_ROWS, program_rows].map(of_table);
        let used = Precompile::ALL.into_iter().filter(|precompile| self.uses(*precompile));
        let of_precompiles =
            used.flat_map(|precompile| tables::rows_of(precompile, *sizes)).map(of_table);
        let cells =
            [program.image.len().div_ceil(sizes.image().max(1)), public_words.div_ceil(PUBLIC)];
        let chosen = counts.by_name(program.isa()).map(|(_, count)| count);
        let of_tables = ranges.chain(tables).chain(of_precompiles);
        // The 1 is the boundary. The sum saturates: it is compared with limits before anything is laid out.
        chosen.chain(of_tables).chain(cells).fold(1, usize::saturating_add)
    }

    /// Reports whether there are subcircuits of a precompile, which ask its tables.
    pub(crate) fn uses(&self, precompile: Precompile) -> bool {
        let chip = precompile.chip();
        // Counts that come from a claim may lack a chip; `check` refuses them, and until then it has no subcircuits.
        let count = self.counts.chips.get(chip.place());
        self.program.isa() == chip.isa() && count.is_some_and(|count| *count > 0)
    }
}

impl Circuit for MachineCircuit {
    type Input = Input;
    type Plan = Plan;
    type Trace = Run;
    type Private = Private;

    /// The first pass is native, and each rank makes it itself; it replays only what its subcircuits
    /// prove, so no operation is ever sent.
    const EXECUTES_RANGES: bool = true;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Plan, LayoutError> {
        self.lay_out(layout)
    }

    fn execute(
        &self,
        plan: &Plan,
        input: &Input,
        values: &mut WireValues,
    ) -> Result<Run, CircuitError> {
        // The layout has a wire for each public word.
        if input.public.len() != self.public_words {
            let (found, expected) = (input.public.len(), self.public_words);
            return Err(format!("{found} public words of input, expected {expected}").into());
        }
        let mut run = run(&self.program, input, self.max_cycles).map_err(|e| e.to_string())?;
        // A verifier derives the layout from the claimed counts, so a run cannot add subcircuits to it.
        let needed = Counts::of(&run, &self.program, input, self.sizes);
        let isa = self.program.isa();
        let more = needed
            .by_name(isa)
            .zip(self.counts.by_name(isa))
            .find(|((_, needed), (_, given))| needed > given);
        if let Some(((name, needed), (_, given))) = more {
            return Err(format!(
                "the run needs {needed} subcircuits of type '{name}', but the circuit has {given}"
            )
            .into());
        }
        run.zero_cells = self.zero_cells(&run);
        self.publish(plan, input, &run, values);
        Ok(run)
    }

    fn private_input(
        &self,
        plan: &Plan,
        _: &Input,
        run: &Run,
        instance: InstanceId,
    ) -> Result<Private, CircuitError> {
        let (part, number) = plan.place(instance).ok_or("there is no such subcircuit")?;
        let ops = |class: usize, size: usize| {
            let range = (number * size) as u64..((number + 1) * size) as u64;
            run.calls(&self.program, class, range).map_err(|e| e.to_string())
        };
        let cells = |words: Vec<u32>| Values::Cells(Cells::of(run, words));
        let range = |start: u64, size: usize| -> Vec<u32> {
            #[allow(clippy::cast_possible_truncation, reason = "`check` bounds addresses")]
            let first = (start + (number * size) as u64) as u32;
            (first..).take(size).collect()
        };
        Ok(Private(match part {
            Part::Chip(chip) => {
                match (Precompile::of(chip), ops(chip.index(), self.sizes.ops(chip))?) {
                    (Some(_), (ops, accesses)) => Values::Calls(ops, accesses),
                    (None, (ops, _)) => Values::Ops(ops),
                }
            }
            Part::Refresh => Values::Ops(ops(REFRESH, self.sizes.refreshes())?.0),
            Part::Image => cells(range(self.program.base.into(), self.sizes.image())),
            Part::Zero => {
                let size = self.sizes.zero();
                cells(run.zero_cells[number * size..(number + 1) * size].to_vec())
            }
            Part::Input => cells(range(self.private_start(), self.sizes.input())),
            Part::Public => cells(range((INPUT / 4).into(), PUBLIC)),
            Part::Boundary => Values::Boundary(BoundaryValues::of(run, self.program.isa())),
        }))
    }

    fn synthesize(
        &self,
        plan: &Plan,
        subcircuit: &Subcircuit,
        private: Option<&Private>,
    ) -> Result<(), SynthesisError> {
        let part = plan.part(subcircuit.kind()).ok_or(SynthesisError::Unsatisfiable)?;
        let cells = match private {
            Some(Private(Values::Cells(cells))) => Some(cells),
            _ => None,
        };
        let (sizes, buses) = (self.sizes, &plan.buses);
        match part {
            Part::Chip(chip) => match Precompile::of(chip) {
                Some(precompile) => calls(subcircuit, buses, precompile, sizes.ops(chip), private),
                None => ops(subcircuit, buses, template_of(chip), sizes.ops(chip), private),
            },
            Part::Refresh => ops(subcircuit, buses, refresh_template(), sizes.refreshes(), private),
            Part::Image => crate::parts::image(subcircuit, buses, sizes.image(), cells),
            Part::Zero => crate::parts::zero(subcircuit, buses, sizes.zero(), cells),
            Part::Input => crate::parts::input(subcircuit, buses, sizes.input(), cells),
            Part::Public => crate::parts::public(subcircuit, buses, cells),
            Part::Boundary => {
                let values = match private {
                    Some(Private(Values::Boundary(values))) => Some(values),
                    _ => None,
                };
                crate::parts::boundary(subcircuit, buses, self.program.isa(), values)
            }
        }
    }
}

/// The operations of a subcircuit; what is left of it is filled up with operations that do nothing.
fn ops(
    subcircuit: &Subcircuit,
    buses: &Buses,
    template: &Template,
    count: usize,
    private: Option<&Private>,
) -> Result<(), SynthesisError> {
    let given = match private {
        Some(Private(Values::Ops(list))) => Some(list),
        _ => None,
    };
    let nothing = Op::default();
    for number in 0..count {
        let op = given.map(|list| list.get(number).unwrap_or(&nothing));
        template.synthesize(subcircuit, buses, op.map(|op| (op, &[][..])))?;
    }
    Ok(())
}

/// [`ops`] of a precompile.
fn calls(
    subcircuit: &Subcircuit,
    buses: &Buses,
    precompile: Precompile,
    count: usize,
    private: Option<&Private>,
) -> Result<(), SynthesisError> {
    let given = match private {
        Some(Private(Values::Calls(list, accesses))) => Some((list, accesses)),
        _ => None,
    };
    let (nothing, needed) = (Op::default(), precompile.call().accesses());
    for number in 0..count {
        let op = match given {
            None => None,
            Some((list, accesses)) => Some(match list.get(number) {
                None => (&nothing, &[][..]),
                // Without its accesses, a call would be one of words that are all zero.
                Some(op) => {
                    let words = accesses.get(number).filter(|words| words.len() == needed);
                    (op, words.ok_or(SynthesisError::AssignmentMissing)?.as_slice())
                }
            }),
        };
        precompile.synthesize(subcircuit, buses, op)?;
    }
    Ok(())
}

impl MachineCircuit {
    /// Sets the values of all wires.
    pub(crate) fn publish(&self, plan: &Plan, input: &Input, run: &Run, values: &mut WireValues) {
        let exit = std::iter::once(run.exit_code());
        let public = input.public.iter().copied().chain(exit).chain(run.output);
        for (wire, value) in plan.public.iter().zip(public) {
            values.set(*wire, Fr::from(value));
        }
        for (number, wire) in (1..).zip(&plan.chain) {
            let last = run.zero_cells[number * self.sizes.zero() - 1];
            values.set(*wire, Fr::from(last + 1));
        }
    }

    /// The words of zero memory that have cells: those accessed, and the first free ones to fill up.
    fn zero_cells(&self, run: &Run) -> Vec<u32> {
        let start = image_end(&self.program, self.sizes);
        let range = start..INPUT / 4;
        let total = self.counts.zero * self.sizes.zero();
        let mut cells: Vec<u32> = run.memory.accessed(range.clone()).collect();
        // Unused cells must still be distinct words in the chain, so they get words that the run left
        // alone.
        let missing = total.saturating_sub(cells.len());
        let free: Vec<u32> =
            range.filter(|word| run.memory.get(*word).time == 0).take(missing).collect();
        cells.extend(free);
        cells.sort_unstable();
        cells
    }
}
