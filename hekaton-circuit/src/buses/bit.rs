//! Bits that switch something on (spec: buses#asserts).

use crate::buses::mistake::Mistake;
use crate::synthesis::subcircuit::Subcircuit;
use ark_ff::{One, Zero};
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;

/// A value that is constrained to 0 or 1: a marked value or a shared wire with a row of its own, or a
/// constant. Entries and accesses that a bit switches on have it as their multiplicity, and a value of
/// 2, or a fraction, would be a multiplicity of the prover's choice (spec: buses#asserts).
#[derive(Clone, Debug)]
pub struct Bit(FpVar<Fr>);

impl Bit {
    /// The variable, 0 or 1.
    pub fn variable(&self) -> &FpVar<Fr> {
        &self.0
    }
}

impl Subcircuit {
    /// Allocates a marked bit. It takes one row.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub fn bit(
        &self,
        value: impl FnOnce() -> Result<bool, SynthesisError>,
    ) -> Result<Bit, SynthesisError> {
        self.bit_of(&self.commit(|| Ok(Fr::from(u64::from(value()?))))?)
    }

    /// Constrains a marked value or a shared wire to 0 or 1. It takes one row, or none for a constant.
    ///
    /// # Errors
    /// If a constant is neither.
    pub fn bit_of(&self, value: &FpVar<Fr>) -> Result<Bit, SynthesisError> {
        // arkworks leaves out rows of constants whether they hold or not, so a wrong constant must be
        // refused here.
        if let FpVar::Constant(constant) = value {
            return match constant.is_zero() || constant.is_one() {
                true => Ok(Bit(value.clone())),
                false => Err(self.mistake(Mistake::NoBit(*constant))),
            };
        }
        // The only row that keeps the multiplicity out of the prover's hands: w (1 - w) = 0.
        value.mul_equals(&(FpVar::one() - value), &FpVar::zero())?;
        Ok(Bit(value.clone()))
    }
}
