//! arkworks circuits in one piece.

use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};
use hekaton_circuit::Fr;
use hekaton_r1cs::{MonolithError, system_of, witness_of};

/// y = x^3 + 5, with public y.
#[derive(Clone)]
struct Cubic(Option<u64>);

impl ConstraintSynthesizer<Fr> for Cubic {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let x = self.0.map(Fr::from);
        let value = |f: fn(Fr) -> Fr| move || x.map(f).ok_or(SynthesisError::AssignmentMissing);
        let y = FpVar::new_input(cs.clone(), value(|x| x * x * x + Fr::from(5u64)))?;
        let x = FpVar::new_witness(cs, value(|x| x))?;
        let square = &x * &x;
        (square * &x + FpVar::constant(Fr::from(5u64))).enforce_equal(&y)
    }
}

#[test]
fn circuits_without_values_and_their_witnesses() {
    let system = system_of(Cubic(None)).unwrap();
    assert_eq!((system.public(), system.rows()), (1, 3));
    let z = witness_of(Cubic(Some(7))).unwrap();
    assert_eq!(z.len(), system.wires() as usize);
    assert_eq!((z[0], z[1]), (Fr::from(1u64), Fr::from(7 * 49 + 5u64)));
    assert_eq!(system.false_row(&z), None);
    for wire in 1..z.len() {
        let mut wrong = z.clone();
        wrong[wire] += Fr::from(1u64);
        assert!(system.false_row(&wrong).is_some(), "wire {wire}");
    }
}

#[test]
fn a_failing_synthesis_is_an_error() {
    assert!(matches!(witness_of(Cubic(None)), Err(MonolithError::Synthesis(_))));
}
