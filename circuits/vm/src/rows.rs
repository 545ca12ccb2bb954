//! Synthesis of templates to the rows of a subcircuit.

use crate::form::Form;
use crate::op::{Access, Op};
use crate::tables::PrecompileTables;
use crate::template::{Asked, Row, Taken, Template};
use ark_ff::One;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{Bit, BusId, BusValue, Fr, Subcircuit, TableId};
use std::collections::HashMap;

/// The buses and tables of a layout.
#[derive(Clone, Debug)]
pub(crate) struct Buses {
    pub(crate) state: BusId,
    pub(crate) registers: BusId,
    pub(crate) memory: BusId,
    /// All tables but ranges.
    pub(crate) logic: TableId,
    pub(crate) powers: TableId,
    pub(crate) program: TableId,
    /// The tables of precompiles, for RV32IM.
    pub(crate) precompiles: Option<PrecompileTables>,
}

/// The variables of an operation whose rows are synthesized that the gadget of a precompile needs.
pub(crate) struct Placed {
    pub(crate) enable: Bit,
    /// The words that the precompile is given, and those that it makes.
    pub(crate) given: Vec<FpVar<Fr>>,
    pub(crate) made: Vec<FpVar<Fr>>,
}

impl Buses {
    pub(crate) fn bus(&self, bus: Taken) -> BusId {
        match bus {
            Taken::State => self.state,
            Taken::Registers => self.registers,
            Taken::Memory => self.memory,
        }
    }
}

/// One operation under synthesis.
struct Local<'a> {
    subcircuit: &'a Subcircuit,
    variables: Vec<Variable>,
    values: Option<Vec<Fr>>,
    /// Values of entries, which share a row.
    shared: HashMap<&'a Form, BusValue>,
}

impl<'a> Local<'a> {
    fn combination(&self, form: &Form) -> LinearCombination<Fr> {
        let terms = form.terms.iter().map(|(local, factor)| (*factor, self.variables[*local]));
        let constant = (form.constant, Variable::One);
        LinearCombination(std::iter::once(constant).chain(terms).collect())
    }

    /// A form as a variable.
    fn form(&self, form: &Form) -> Result<FpVar<Fr>, SynthesisError> {
        if form.terms.is_empty() {
            return Ok(FpVar::Constant(form.constant));
        }
        let cs = self.subcircuit.cs();
        let variable = match form.as_variable() {
            Some(local) => self.variables[local],
            None => cs.new_lc(|| self.combination(form))?,
        };
        let value = self.values.as_ref().map(|values| form.value(values));
        Ok(FpVar::Var(AllocatedFp::new(value, variable, cs)))
    }

    fn value(&mut self, form: &'a Form) -> Result<BusValue, SynthesisError> {
        // Each value costs a row, and a register that is read is taken and given with the same one.
        if let Some(value) = self.shared.get(form) {
            return Ok(*value);
        }
        let value = self.subcircuit.bus_value(&self.form(form)?);
        self.shared.insert(form, value);
        Ok(value)
    }
}

impl Template {
    /// Adds the rows of an operation; at setup there is no operation.
    pub(crate) fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        buses: &Buses,
        op: Option<(&Op, &[Access])>,
    ) -> Result<Placed, SynthesisError> {
        let values = op.map(|(op, accesses)| self.values(op, accesses));
        let missing = SynthesisError::AssignmentMissing;
        let of = |local: usize| values.as_ref().map(|values| values[local]).ok_or(missing);
        // Variable 0 is the enable bit.
        let enable = subcircuit.bit(|| Ok(of(0)?.is_one()))?;
        let mut variables = vec![variable_of(enable.variable())?];
        for (local, variable) in self.variables.iter().enumerate().skip(1) {
            variables.push(match variable.committed {
                true => variable_of(&subcircuit.commit(|| of(local))?)?,
                false => subcircuit.cs().new_witness_variable(|| of(local))?,
            });
        }
        let mut local = Local { subcircuit, variables, values, shared: HashMap::new() };
        for (_, row) in &self.rows {
            local.add(row, buses, &enable)?;
        }
        let words = |list: &[usize]| -> Result<Vec<_>, _> {
            list.iter().map(|word| local.form(&Form::variable(*word))).collect()
        };
        let (given, made) = (words(&self.given)?, words(&self.made)?);
        Ok(Placed { given, made, enable })
    }
}

impl<'a> Local<'a> {
    fn add(&mut self, row: &'a Row, buses: &Buses, enable: &Bit) -> Result<(), SynthesisError> {
        let subcircuit = self.subcircuit;
        match row {
            // Products are not switched off: the operation that fills up satisfies them, too.
            Row::Product { a, b, c } => subcircuit.cs().enforce_r1cs_constraint(
                || self.combination(a),
                || self.combination(b),
                || self.combination(c),
            ),
            Row::Ask { table, key, value } => {
                let asked = self.form(key)?;
                let mut pair =
                    |table| subcircuit.table(table)?.pair_if(enable, &asked, &self.value(value)?);
                match table {
                    Asked::Range(bits) => subcircuit.range_check_if(*bits, enable, &asked),
                    Asked::Logic => subcircuit.table(buses.logic)?.contains_if(enable, &asked),
                    Asked::Powers => pair(buses.powers),
                    Asked::Program => pair(buses.program),
                }
            }
            Row::Entry { bus, key, value, offset, gives } => {
                let of_entry = self.form(key)?;
                let left = self.value(value)?.plus(crate::word::number(*offset));
                // Multiplied by the enable bit: a disabled operation takes nothing and gives nothing.
                let multiplicity = match gives {
                    true => enable.variable().clone(),
                    false => enable.variable() * -Fr::one(),
                };
                subcircuit.bus(buses.bus(*bus))?.add_value(&of_entry, &left, &multiplicity)
            }
        }
    }
}

/// The variable that was allocated.
fn variable_of(allocated: &FpVar<Fr>) -> Result<Variable, SynthesisError> {
    match allocated {
        FpVar::Var(allocated) => Ok(allocated.variable),
        FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
    }
}
