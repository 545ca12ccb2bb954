//! Gadgets that an enable bit can switch off. Their marked values are then zero, and cost only their share of
//! the transforms.

use crate::bits::{Bit, committed_bit};
use ark_ff::{One, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{Bit as EnableBit, Fr, LookUp, Subcircuit};

/// A sum of variables with factors.
pub(crate) type Terms = Vec<(Fr, Variable)>;

/// A subcircuit, and the bit that switches a gadget on, if it is not always on.
#[derive(Clone, Debug)]
pub(crate) struct Switch<'a> {
    subcircuit: &'a Subcircuit,
    enable: Option<EnableBit>,
}

impl<'a> Switch<'a> {
    /// A gadget that is always on.
    pub(crate) fn on(subcircuit: &'a Subcircuit) -> Self {
        Self { subcircuit, enable: None }
    }

    /// A gadget that is on if the bit is 1.
    pub(crate) fn by(self, enable: &EnableBit) -> Self {
        Self { enable: Some(enable.clone()), ..self }
    }

    /// Reports whether a bit switches the gadget.
    pub(crate) fn is_switched(&self) -> bool {
        self.enable.is_some()
    }

    /// Reports whether the gadget is off; not at setup.
    fn is_off(&self) -> bool {
        let value = self.enable.as_ref().and_then(|enable| enable.variable().value().ok());
        value.is_some_and(|value| value.is_zero())
    }

    /// A marked value; zero if the gadget is off.
    pub(crate) fn mark(&self, value: Option<u64>) -> Result<FpVar<Fr>, SynthesisError> {
        let value = if self.is_off() { Some(0) } else { value };
        self.subcircuit.commit(|| Ok(Fr::from(value.ok_or(SynthesisError::AssignmentMissing)?)))
    }

    /// A marked bit; zero if the gadget is off.
    pub(crate) fn bit(&self, value: Option<bool>) -> Result<Bit, SynthesisError> {
        committed_bit(self.subcircuit, if self.is_off() { Some(false) } else { value })
    }

    /// A marked variable, with its value if the gadget is on.
    pub(crate) fn variable(&self, value: Option<u64>, variable: Variable) -> FpVar<Fr> {
        let value = if self.is_off() { Some(0) } else { value };
        FpVar::Var(AllocatedFp::new(value.map(Fr::from), variable, self.subcircuit.cs()))
    }

    /// A sum of marked values and constants as a variable, with its value if the gadget is on.
    pub(crate) fn sum_of(
        &self,
        value: Option<Fr>,
        terms: Terms,
    ) -> Result<FpVar<Fr>, SynthesisError> {
        let cs = self.subcircuit.cs();
        // All else is zero if the gadget is off.
        let constants = || {
            let ones = terms.iter().filter(|(_, variable)| *variable == Variable::One);
            ones.map(|(factor, _)| *factor).sum()
        };
        let value = if self.is_off() { Some(constants()) } else { value };
        let sum = cs.new_lc(|| LinearCombination(terms))?;
        Ok(FpVar::Var(AllocatedFp::new(value, sum, cs)))
    }

    /// Constrains a key to be in a table, if the gadget is on: one row.
    pub(crate) fn contains(
        &self,
        table: &LookUp<'_>,
        key: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        match &self.enable {
            // The multiplicity is the bit, so that a gadget that is off asks for nothing.
            Some(enable) => table.contains_if(enable, key),
            None => table.contains(key),
        }
    }

    /// Constrains an index and a value to be a row of a table, if the gadget is on: two rows.
    pub(crate) fn pair(
        &self,
        table: &LookUp<'_>,
        index: &FpVar<Fr>,
        value: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        match &self.enable {
            Some(enable) => table.pair_if(enable, index, &self.subcircuit.bus_value(value)),
            None => table.pair(index, value),
        }
    }

    /// Constrains a variable to equal a sum, or to be zero if the gadget is off: one row.
    pub(crate) fn equals(
        &self,
        variable: &FpVar<Fr>,
        sum: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        let one = FpVar::Constant(Fr::one());
        let enable = self.enable.as_ref().map_or(&one, EnableBit::variable);
        // Multiplied and not conditional: rows are the same whether the gadget is on or off.
        sum.mul_equals(enable, variable)
    }
}

/// The terms of a marked value.
pub(crate) fn terms_of(variable: &FpVar<Fr>) -> Result<Terms, SynthesisError> {
    match variable {
        FpVar::Var(variable) => Ok(vec![(Fr::one(), variable.variable)]),
        FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
    }
}

#[cfg(test)]
mod tests;
