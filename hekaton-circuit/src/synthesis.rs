//! From an author's gadgets to one R1CS per type, and to the witness of an instance.

use crate::circuit::Circuit;
use crate::layout::TypeId;
use crate::memory::{Masking, MemoryChallenges, SlotAccess};
use crate::prefix::Prefix;
use crate::subcircuit::Subcircuit;
use crate::variables::VariableLayout;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal,
    R1CS_PREDICATE_LABEL, SynthesisError, SynthesisMode,
};
use hekaton_arith::Fr;

/// What went wrong in an author's `synthesize`.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthesizeError {
    /// The gadgets failed.
    #[error("synthesis of type '{kind}' failed: {source}")]
    Gadget {
        /// The type.
        kind: String,
        /// What arkworks says.
        source: SynthesisError,
    },
    /// A public input was allocated.
    #[error(
        "type '{kind}' allocates public inputs of its own: make public values shared wires of the layout"
    )]
    PublicInput {
        /// The type.
        kind: String,
    },
    /// A predicate other than R1CS.
    #[error("type '{kind}' uses constraints other than R1CS")]
    Predicate {
        /// The type.
        kind: String,
    },
    /// The witness has another shape than at setup.
    #[error(
        "type '{kind}' has {found} variables with this witness and {expected} at setup: synthesize must not depend on values"
    )]
    Shape {
        /// The type.
        kind: String,
        /// At setup.
        expected: usize,
        /// Now.
        found: usize,
    },
}

/// One subcircuit as an ordinary arkworks circuit with the public inputs `g, x_1..x_s, mu_1..mu_s`: for other provers
/// and for debugging tools. Masks are not part of it.
#[derive(Debug)]
pub struct StandAlone<'a, C: Circuit> {
    circuit: &'a C,
    kind: TypeId,
    prefix: Option<Prefix>,
    slots: usize,
    private: Option<&'a C::Private>,
}

impl<'a, C: Circuit> StandAlone<'a, C> {
    /// The constraints alone.
    pub fn setup(circuit: &'a C, kind: TypeId, slots: usize) -> Self {
        Self { circuit, kind, prefix: None, slots, private: None }
    }

    /// With the values of its slots and their accesses; `None` if the challenges hit a pole.
    pub fn with_values(
        circuit: &'a C,
        kind: TypeId,
        slots: &[SlotAccess],
        values: &[Fr],
        memory: &MemoryChallenges,
        private: &'a C::Private,
    ) -> Option<Self> {
        let prefix = Prefix::new(slots, values, memory).ok()?;
        Some(Self {
            circuit,
            kind,
            prefix: Some(prefix),
            slots: slots.len(),
            private: Some(private),
        })
    }
}

impl<C: Circuit> ConstraintSynthesizer<Fr> for StandAlone<'_, C> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let variables = VariableLayout::new(self.slots, Masking::Unmasked);
        let subcircuit = Subcircuit::begin(&cs, self.kind, &variables, self.prefix.as_ref())?;
        self.circuit.synthesize(&subcircuit, self.private)
    }
}

/// One type of a circuit, ready to be synthesized.
#[derive(Debug)]
pub(crate) struct Synthesis<'a, C> {
    pub(crate) circuit: &'a C,
    pub(crate) kind: TypeId,
    /// the name of the type, for errors
    pub(crate) name: &'a str,
    pub(crate) variables: VariableLayout,
}

impl<C: Circuit> Synthesis<'_, C> {
    pub(crate) fn gadget(&self, source: SynthesisError) -> SynthesizeError {
        SynthesizeError::Gadget { kind: self.name.to_owned(), source }
    }

    /// Runs the author's synthesis in a mode.
    pub(crate) fn run(
        &self,
        mode: SynthesisMode,
        prefix: Option<&Prefix>,
        private: Option<&C::Private>,
    ) -> Result<ConstraintSystemRef<Fr>, SynthesizeError> {
        let cs = ConstraintSystem::<Fr>::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        cs.set_mode(mode);
        let subcircuit = Subcircuit::begin(&cs, self.kind, &self.variables, prefix)
            .map_err(|source| self.gadget(source))?;
        self.circuit.synthesize(&subcircuit, private).map_err(|source| self.gadget(source))?;
        // The verifier computes all public variables: it would not know one that the author allocates.
        if cs.num_instance_variables() != self.variables.public().len() {
            return Err(SynthesizeError::PublicInput { kind: self.name.to_owned() });
        }
        if cs.num_predicates() != 1 {
            return Err(SynthesizeError::Predicate { kind: self.name.to_owned() });
        }
        Ok(cs)
    }
}

/// The R1CS of a type: three sparse matrices over the variables of a [`VariableLayout`] and the author's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs {
    /// The name of the type.
    pub name: String,
    /// The order of the variables.
    pub layout: VariableLayout,
    /// The number of variables, the author's included.
    pub variables: usize,
    /// The matrices A, B and C: rows of (coefficient, variable).
    pub rows: [Vec<Vec<(Fr, usize)>>; 3],
}

impl R1cs {
    /// The number of constraints.
    pub fn constraints(&self) -> usize {
        self.rows[0].len()
    }
}

/// The matrices of a type. `name` is its name for errors.
///
/// # Errors
/// When the author's gadgets fail or break a rule of the protocol.
pub fn synthesize_r1cs<C: Circuit>(
    circuit: &C,
    kind: TypeId,
    name: &str,
    layout: VariableLayout,
) -> Result<R1cs, SynthesizeError> {
    let synthesis = Synthesis { circuit, kind, name, variables: layout };
    let cs = synthesis.run(SynthesisMode::Setup, None, None)?;
    cs.finalize();
    let mut matrices = cs.to_matrices().map_err(|source| synthesis.gadget(source))?;
    let r1cs = matrices.remove(R1CS_PREDICATE_LABEL).and_then(|m| <[_; 3]>::try_from(m).ok());
    let rows = r1cs.ok_or_else(|| SynthesizeError::Predicate { kind: name.to_owned() })?;
    let variables = cs.num_instance_variables() + cs.num_witness_variables();
    Ok(R1cs { name: name.to_owned(), layout, variables, rows })
}

/// The full assignment of one instance, without building any matrix. `expected` is the type's number of variables.
///
/// # Errors
/// When the author's gadgets fail, or allocate another number of variables than at setup.
pub fn synthesize_witness<C: Circuit>(
    circuit: &C,
    kind: TypeId,
    name: &str,
    masking: Masking,
    prefix: &Prefix,
    private: &C::Private,
    expected: usize,
) -> Result<Vec<Fr>, SynthesizeError> {
    let mode = SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
    let variables = VariableLayout::new(prefix.committed.len(), masking);
    let cs = Synthesis { circuit, kind, name, variables }.run(mode, Some(prefix), Some(private))?;
    let shape = |found| SynthesizeError::Shape { kind: name.to_owned(), expected, found };
    let inner = cs.into_inner().ok_or_else(|| shape(0))?;
    let mut z = inner.assignments.instance_assignment;
    z.extend(inner.assignments.witness_assignment);
    if z.len() != expected {
        return Err(shape(z.len()));
    }
    Ok(z)
}
