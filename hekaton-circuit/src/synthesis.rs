//! From an author's gadgets to one R1CS per type, and to the witness of an instance
//! (spec: memory-check#variables, memory-check#rows).

use crate::circuit::Circuit;
use crate::ids::TypeId;
use crate::memory::{Masking, MemoryChallenges, SlotAccess};
use crate::prefix::Prefix;
use crate::subcircuit::Subcircuit;
use crate::variables::VariableLayout;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal,
    R1CS_PREDICATE_LABEL, SynthesisError, SynthesisMode,
};
use hekaton_arith::Fr;

/// Why an author's `synthesize` failed or its result was rejected.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthesizeError {
    /// A gadget failed.
    #[error("synthesis of type '{kind}' failed: {source}")]
    Gadget {
        /// The type.
        kind: String,
        /// The error from arkworks.
        source: SynthesisError,
    },
    /// The author's gadgets allocated a public input.
    #[error(
        "type '{kind}' allocates public inputs of its own: declare public values as shared wires \
         of the layout"
    )]
    PublicInput {
        /// The type.
        kind: String,
    },
    /// The author's gadgets used a predicate other than R1CS.
    #[error("type '{kind}' uses constraints other than R1CS: use R1CS gadgets only")]
    Predicate {
        /// The type.
        kind: String,
    },
    /// The number of variables differs from that at setup.
    #[error(
        "type '{kind}' has {found} variables with this witness, but had {expected} at setup: \
         synthesize must not depend on values"
    )]
    Shape {
        /// The type.
        kind: String,
        /// The number of variables at setup.
        expected: usize,
        /// The number of variables now.
        found: usize,
    },
}

/// One subcircuit as an ordinary arkworks circuit, for other provers and debugging tools. Its
/// public inputs are `g, x_1..x_s, mu_1..mu_s`; it has no mask slots.
#[derive(Debug)]
pub struct StandAlone<'a, C: Circuit> {
    circuit: &'a C,
    kind: TypeId,
    prefix: Option<Prefix>,
    slots: usize,
    private: Option<&'a C::Private>,
}

impl<'a, C: Circuit> StandAlone<'a, C> {
    /// Creates the circuit without values.
    pub fn setup(circuit: &'a C, kind: TypeId, slots: usize) -> Self {
        Self { circuit, kind, prefix: None, slots, private: None }
    }

    /// Creates the circuit from the accesses and values of its slots; `None` if the challenges hit
    /// a pole (zero denominator).
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
    /// The name of the type, for errors.
    pub(crate) name: &'a str,
    pub(crate) variables: VariableLayout,
}

impl<C: Circuit> Synthesis<'_, C> {
    pub(crate) fn gadget(&self, source: SynthesisError) -> SynthesizeError {
        SynthesizeError::Gadget { kind: self.name.to_owned(), source }
    }

    /// Adds the memory check, runs the author's `synthesize`, and checks what it allocated.
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
        // A public variable of the author's would shift all variables after it, and no key commits
        // to it: the public variables are those of the memory check (spec: memory-check#variables).
        if cs.num_instance_variables() != self.variables.public().len() {
            return Err(SynthesizeError::PublicInput { kind: self.name.to_owned() });
        }
        // The keys have queries for R1CS rows only: rows of other predicates would not be proven.
        if cs.num_predicates() != 1 {
            return Err(SynthesizeError::Predicate { kind: self.name.to_owned() });
        }
        Ok(cs)
    }
}

/// The R1CS of a type: three sparse matrices over the variables of a [`VariableLayout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs {
    /// The name of the type.
    pub name: String,
    /// The order of the variables and rows.
    pub layout: VariableLayout,
    /// The number of variables, the author's included.
    pub variables: usize,
    /// The matrices A, B and C, each a list of rows of (coefficient, variable).
    pub rows: [Vec<Vec<(Fr, usize)>>; 3],
}

impl R1cs {
    /// The number of constraints.
    pub fn constraints(&self) -> usize {
        self.rows[0].len()
    }
}

/// Returns the R1CS of a type. `name` is the type's name.
///
/// # Errors
/// If the author's gadgets fail, allocate public inputs or use constraints other than R1CS.
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

/// Returns the full assignment of one instance, without building matrices. `expected` is the number
/// of variables that the type had at setup.
///
/// # Errors
/// If the author's gadgets fail, or allocate a different number of variables than at setup.
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
    // The assignment must have the length of the queries: a multi-scalar multiplication over fewer
    // elements would silently drop variables (spec: memory-check#variables).
    if z.len() != expected {
        return Err(shape(z.len()));
    }
    Ok(z)
}
