//! One subcircuit under synthesis: the variables and rows of the memory check, and the slots that
//! the author sees (spec: memory-check#variables, memory-check#rows).

use crate::ids::TypeId;
use crate::prefix::Prefix;
use crate::variables::VariableLayout;
use ark_ff::Field;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use hekaton_arith::Fr;
use std::cell::Cell;
use std::rc::Rc;

/// A subcircuit being synthesized.
#[derive(Clone, Debug)]
pub struct Subcircuit {
    kind: TypeId,
    cs: ConstraintSystemRef<Fr>,
    slots: Vec<FpVar<Fr>>,
    /// A slot that was asked for and does not exist: gadgets' errors carry no text.
    missing: Rc<Cell<Option<usize>>>,
}

impl Subcircuit {
    /// The type of the subcircuit.
    pub fn kind(&self) -> TypeId {
        self.kind
    }

    /// The constraint system for gadgets. Do not allocate public inputs in it: public values are
    /// shared wires of the layout.
    pub fn cs(&self) -> ConstraintSystemRef<Fr> {
        self.cs.clone()
    }

    /// The shared wires by slot; the length is the type's number of slots.
    pub fn slots(&self) -> &[FpVar<Fr>] {
        &self.slots
    }

    /// The shared wire in a slot.
    ///
    /// # Errors
    /// If the type has no such slot.
    pub fn slot(&self, slot: usize) -> Result<&FpVar<Fr>, SynthesisError> {
        self.slots.get(slot).ok_or_else(|| {
            self.missing.set(Some(slot));
            SynthesisError::Unsatisfiable
        })
    }

    /// The first slot that was asked for and does not exist.
    pub(crate) fn missing_slot(&self) -> Option<usize> {
        self.missing.get()
    }

    /// Allocates the variables of the memory check and adds its rows, in the order of
    /// [`VariableLayout`]. Without a prefix, as at setup, the variables have no values.
    pub(crate) fn begin(
        cs: &ConstraintSystemRef<Fr>,
        kind: TypeId,
        variables: &VariableLayout,
        prefix: Option<&Prefix>,
    ) -> Result<Self, SynthesisError> {
        let _span = ark_relations::gr1cs::info_span!(target: "gr1cs", "memory_check").entered();
        let value = |pick: &dyn Fn(&Prefix) -> Fr| {
            prefix.map(pick).ok_or(SynthesisError::AssignmentMissing)
        };
        // The order of these allocations must be that of `VariableLayout`, by which setup cuts its
        // queries (spec: memory-check#variables). arkworks numbers public variables from the
        // constant 1, and witness variables after them.
        let public = (variables.preprocessed())
            .map(|i| cs.new_input_variable(|| value(&|p| p.public[i])))
            .collect::<Result<Vec<_>, _>>()?;
        let at = |i: usize| public[i - variables.preprocessed().start];
        let v = (0..variables.slots())
            .map(|j| cs.new_witness_variable(|| value(&|p| p.committed[j])))
            .collect::<Result<Vec<_>, _>>()?;
        let e = cs.new_witness_variable(|| value(&|p| p.sum))?;
        let u = (0..variables.slots())
            .map(|j| cs.new_witness_variable(|| value(&|p| p.inverses[j])))
            .collect::<Result<Vec<_>, _>>()?;
        // Row 0 comes first and is the only row that contains e, so e is the sum of the u_j and
        // nothing else (spec: memory-check#rows). Setup checks this row and the next s by position.
        let sum = || LinearCombination(u.iter().map(|u| (Fr::ONE, *u)).collect());
        cs.enforce_r1cs_constraint(sum, || Variable::One.into(), || e.into())?;
        // Row j defines u_j as mu_j / (g + v_j + x_j), because no fingerprint is a pole
        // (spec: memory-check#rows, memory-check#pole).
        let g = at(variables.g());
        for (j, (x, mu)) in variables.addresses().zip(variables.multiplicities()).enumerate() {
            let fingerprint =
                || LinearCombination(vec![(Fr::ONE, g), (Fr::ONE, v[j]), (Fr::ONE, at(x))]);
            cs.enforce_r1cs_constraint(|| u[j].into(), fingerprint, || at(mu).into())?;
        }
        // The author never sees the mask slots, which come last: a row on a mask would constrain
        // the blinding (spec: zero-knowledge#masks).
        let slot = |j: usize| {
            FpVar::Var(AllocatedFp::new(prefix.map(|p| p.committed[j]), v[j], cs.clone()))
        };
        let slots = (0..variables.author_slots()).map(slot).collect();
        Ok(Self { kind, cs: cs.clone(), slots, missing: Rc::default() })
    }
}
