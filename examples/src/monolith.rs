//! An arkworks circuit in one piece: from a secret x, a given number of steps x -> x^4 (x + i). It
//! knows nothing of parts; Hekaton cuts it.

use ark_ff::Field;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};
use hekaton_circuit::Fr;

/// The circuit, with its secret or without.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// The number of steps, each of three constraints.
    pub steps: u64,
    /// The secret.
    pub start: Option<Fr>,
}

impl Steps {
    /// Returns the result of all steps.
    pub fn result(&self) -> Option<Fr> {
        let step = |x: Fr, i: u64| x.pow([4]) * (x + Fr::from(i));
        self.start.map(|start| (0..self.steps).fold(start, step))
    }
}

impl ConstraintSynthesizer<Fr> for Steps {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let missing = SynthesisError::AssignmentMissing;
        let result = FpVar::new_input(cs.clone(), || self.result().ok_or(missing))?;
        let missing = SynthesisError::AssignmentMissing;
        let mut x = FpVar::new_witness(cs, || self.start.ok_or(missing))?;
        for i in 0..self.steps {
            let fourth = x.square()?.square()?;
            x = &fourth * (&x + FpVar::constant(Fr::from(i)));
        }
        x.enforce_equal(&result)
    }
}
