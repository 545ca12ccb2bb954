//! A circuit with a memory, a table and ranges.

use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Ram, RamId, Subcircuit,
    Table, TableId, TypeId, WireId, WireValues,
};

/// Counts how often each digit occurs, in a memory, and adds up their squares, from a table. The
/// last subcircuit reads the count of one digit, may set it to zero, and reads it again.
#[derive(Clone, Copy, Debug)]
pub struct Histogram {
    /// The number of subcircuits that count.
    pub parts: usize,
    /// The number of digits that each of them counts.
    pub digits: usize,
    /// The maximum number of rows or cells of a subcircuit.
    pub rows: usize,
    /// The value of all cells at the beginning.
    pub initial: u64,
}

/// The number of digits.
pub const BASE: u64 = 11;

/// The input of a [`Histogram`].
#[derive(Clone, Debug)]
pub struct Digits {
    /// The digits, all below [`BASE`].
    pub digits: Vec<u64>,
    /// The digit whose count is public.
    pub asked: u64,
    /// `true` if its count is set to zero.
    pub clear: bool,
}

/// The types, wires and buses of a [`Histogram`].
#[derive(Debug)]
pub struct HistogramPlan {
    /// The types: those that count, and the last one.
    pub types: [TypeId; 2],
    /// The counts.
    pub counts: RamId,
    /// The squares.
    pub squares: TableId,
    sums: Vec<WireId>,
    /// Digit, count, and count after it was cleared.
    asked: [WireId; 3],
}

impl Histogram {
    /// A small one.
    pub fn new(parts: usize, digits: usize) -> Self {
        Self { parts, digits, rows: 1 << 14, initial: 0 }
    }
}

impl Circuit for Histogram {
    type Input = Digits;
    type Plan = HistogramPlan;
    type Trace = ();
    type Private = Vec<u64>;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<HistogramPlan, LayoutError> {
        let squares = Table::pairs((0..BASE).map(|x| (Fr::from(x), Fr::from(x * x))));
        let squares = layout.table("squares", squares.rows_per_subcircuit(self.rows));
        layout.range(4);
        let cells = Ram::dense(0..BASE).cells_per_subcircuit(self.rows);
        let initial = (0..BASE).map(|_| Fr::from(self.initial));
        let counts = layout.ram("counts", cells.initial(initial));
        let types = [layout.subcircuit_type("part", 2), layout.subcircuit_type("ask", 3)];
        layout.accesses(types[0], counts, 2 * self.digits);
        layout.accesses(types[1], counts, 3);
        let mut sums = vec![layout.public_input("sum", 0)];
        for i in 0..self.parts {
            let next = match i + 1 == self.parts {
                true => layout.public_output("sum", 1),
                false => layout.wire("partial", i as u64),
            };
            let instance = layout.instance(types[0]);
            layout.read(instance, 0, sums[i]);
            layout.write(instance, 1, next);
            sums.push(next);
        }
        let asked = [
            layout.public_input("digit", 0),
            layout.public_output("count", 0),
            layout.public_output("left", 0),
        ];
        let instance = layout.instance(types[1]);
        layout.read(instance, 0, asked[0]);
        layout.write(instance, 1, asked[1]);
        layout.write(instance, 2, asked[2]);
        Ok(HistogramPlan { types, counts, squares, sums, asked })
    }

    fn execute(
        &self,
        plan: &HistogramPlan,
        input: &Digits,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let mut sum = 0;
        values.set(plan.sums[0], Fr::from(sum));
        for (i, digits) in input.digits.chunks(self.digits).enumerate() {
            let instance = InstanceId::from_index(u32::try_from(i)?);
            for digit in digits {
                let count = values.read(instance, plan.counts, *digit)?;
                values.write(instance, plan.counts, *digit, count + Fr::from(1u64))?;
                sum += digit * digit;
            }
            values.set(plan.sums[i + 1], Fr::from(sum));
        }
        let last = InstanceId::from_index(u32::try_from(self.parts)?);
        let count = values.read(last, plan.counts, input.asked)?;
        values.write_if(last, plan.counts, input.clear, input.asked, Fr::from(0u64))?;
        let left = values.read(last, plan.counts, input.asked)?;
        let all = [Fr::from(input.asked), count, left];
        plan.asked.iter().zip(all).for_each(|(wire, value)| values.set(*wire, value));
        Ok(())
    }

    fn private_input(
        &self,
        _: &HistogramPlan,
        input: &Digits,
        (): &(),
        instance: InstanceId,
    ) -> Result<Vec<u64>, CircuitError> {
        let own = input.digits.chunks(self.digits).nth(instance.index());
        Ok(own.map_or_else(|| vec![u64::from(input.clear)], <[u64]>::to_vec))
    }

    fn synthesize(
        &self,
        plan: &HistogramPlan,
        subcircuit: &Subcircuit,
        private: Option<&Vec<u64>>,
    ) -> Result<(), SynthesisError> {
        let mark = |index: usize| {
            subcircuit.commit(|| {
                let value = private.and_then(|list| list.get(index));
                value.map(|value| Fr::from(*value)).ok_or(SynthesisError::AssignmentMissing)
            })
        };
        let counts = subcircuit.ram(plan.counts)?;
        if subcircuit.kind() == plan.types[0] {
            let squares = subcircuit.table(plan.squares)?;
            let mut sum = subcircuit.slot(0)?.clone();
            for index in 0..self.digits {
                let digit = mark(index)?;
                subcircuit.range_check(4, &digit)?;
                sum += squares.look_up(&digit)?;
                let count = counts.read(&digit)?;
                counts.write(&digit, &(count + FpVar::one()))?;
            }
            return sum.enforce_equal(subcircuit.slot(1)?);
        }
        let [digit, count, left] = [0, 1, 2].map(|slot| subcircuit.slot(slot));
        let (digit, clear) = (digit?, mark(0)?);
        counts.read(digit)?.enforce_equal(count?)?;
        counts.write_if(&subcircuit.bit_of(&clear)?, digit, &FpVar::zero())?;
        counts.read(digit)?.enforce_equal(left?)
    }
}
