//! From an author's gadgets to one R1CS per type, and to the witness of an instance
//! (spec: memory-check#variables, memory-check#rows).

use crate::execution::PrivateInput;
use crate::ids::TypeId;
use crate::inlining::matrices_of;
use crate::matrix::TooLarge;
use crate::memory::{Masking, MemoryChallenges, SlotAccess};
use crate::panics::{CircuitPanic, Failure};
use crate::prefix::Prefix;
use crate::prepared::PreparedCircuit;
use crate::r1cs::R1cs;
use crate::subcircuit::Subcircuit;
use crate::variables::VariableLayout;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal, SynthesisError,
    SynthesisMode,
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
    /// A value was asked for where there are none.
    #[error(
        "synthesis of type '{kind}' asked for the value of a variable: at setup nothing has a \
         value, so compute values inside the closures of `new_witness` and `new_variable`"
    )]
    ValueAtSetup {
        /// The type.
        kind: String,
    },
    /// A slot was asked for that the type does not have.
    #[error("type '{kind}' has {slots} slots, but synthesize asked for slot {slot}")]
    NoSuchSlot {
        /// The type.
        kind: String,
        /// The number of slots of the type, numbered from 0.
        slots: usize,
        /// The slot.
        slot: usize,
    },
    /// The constraints of a type do not fit keys.
    #[error("type '{kind}' is too large: {error}; divide it into smaller types")]
    TooLarge {
        /// The type.
        kind: String,
        /// What keys cannot count.
        error: TooLarge,
    },
    /// The author's `synthesize` panicked.
    #[error("type '{kind}': {panic}")]
    Panic {
        /// The type.
        kind: String,
        /// The panic.
        panic: CircuitPanic,
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
    #[error(
        "type '{kind}' uses constraints other than R1CS, or variables of another constraint system: \
         use R1CS gadgets, and the variables of this subcircuit, only"
    )]
    Predicate {
        /// The type.
        kind: String,
    },
    /// A slot is in no constraint of the author, so that its value is the prover's choice.
    #[error(
        "{slot} of type '{kind}' is in no constraint of synthesize, so a prover could choose its \
         value freely: constrain it, or declare it with `unconstrained`"
    )]
    UnconstrainedSlot {
        /// The type.
        kind: String,
        /// The slot, with its name if it has one.
        slot: String,
    },
    /// Stored constraints or values cannot be used.
    #[error("type '{kind}': {why}")]
    Stored {
        /// The type.
        kind: String,
        /// What is wrong.
        why: String,
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
pub struct StandAlone<'a> {
    circuit: &'a PreparedCircuit<'a>,
    kind: TypeId,
    prefix: Option<Prefix>,
    slots: usize,
    private: Option<&'a PrivateInput>,
}

impl<'a> StandAlone<'a> {
    /// Creates the circuit without values.
    pub fn setup(circuit: &'a PreparedCircuit<'a>, kind: TypeId) -> Self {
        let slots = circuit.layout().slots(kind);
        Self { circuit, kind, prefix: None, slots, private: None }
    }

    /// Creates the circuit from the accesses and values of its slots; `None` if the challenges hit
    /// a pole (zero denominator).
    pub fn with_values(
        circuit: &'a PreparedCircuit<'a>,
        kind: TypeId,
        slots: &[SlotAccess],
        values: &[Fr],
        memory: &MemoryChallenges,
        private: &'a PrivateInput,
    ) -> Option<Self> {
        let prefix = Prefix::new(slots, values, memory).ok()?;
        let slots = slots.len();
        Some(Self { circuit, kind, prefix: Some(prefix), slots, private: Some(private) })
    }
}

impl ConstraintSynthesizer<Fr> for StandAlone<'_> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let variables = VariableLayout::new(self.slots, Masking::Unmasked);
        let subcircuit = Subcircuit::begin(&cs, self.kind, &variables, self.prefix.as_ref())?;
        let result = self.circuit.call_synthesize(&subcircuit, self.private);
        result.map_err(|failure| match failure {
            Failure::Returned(error) => error,
            Failure::Panicked(_) => SynthesisError::Unsatisfiable,
        })
    }
}

/// One type of a circuit, ready to be synthesized.
#[derive(Debug)]
pub(crate) struct Synthesis<'a> {
    pub(crate) circuit: &'a PreparedCircuit<'a>,
    pub(crate) kind: TypeId,
    pub(crate) variables: VariableLayout,
}

impl Synthesis<'_> {
    /// The name of the type.
    fn name(&self) -> String {
        self.circuit.layout().type_name(self.kind).to_owned()
    }

    pub(crate) fn gadget(&self, source: SynthesisError) -> SynthesizeError {
        SynthesizeError::Gadget { kind: self.name(), source }
    }

    /// Adds the memory check, runs the author's `synthesize`, and checks what it allocated.
    pub(crate) fn run(
        &self,
        mode: SynthesisMode,
        prefix: Option<&Prefix>,
        private: Option<&PrivateInput>,
    ) -> Result<ConstraintSystemRef<Fr>, SynthesizeError> {
        let cs = ConstraintSystem::<Fr>::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        cs.set_mode(mode);
        let subcircuit = Subcircuit::begin(&cs, self.kind, &self.variables, prefix)
            .map_err(|source| self.gadget(source))?;
        self.circuit
            .call_synthesize(&subcircuit, private)
            .map_err(|failure| self.failure(failure, &subcircuit, mode))?;
        // A public variable of the author's would shift all variables after it, and no key commits
        // to it: the public variables are those of the memory check (spec: memory-check#variables).
        if cs.num_instance_variables() != self.variables.public().len() {
            return Err(SynthesizeError::PublicInput { kind: self.name() });
        }
        // The keys have queries for R1CS rows only: rows of other predicates would not be proven.
        if cs.num_predicates() != 1 {
            return Err(SynthesizeError::Predicate { kind: self.name() });
        }
        Ok(cs)
    }

    /// Turns the failure of a gadget into what the author did wrong, as far as that is known.
    fn failure(
        &self,
        failure: Failure<SynthesisError>,
        subcircuit: &Subcircuit,
        mode: SynthesisMode,
    ) -> SynthesizeError {
        let kind = self.name();
        match (failure, subcircuit.missing_slot()) {
            (Failure::Panicked(panic), _) => SynthesizeError::Panic { kind, panic },
            (Failure::Returned(_), Some(slot)) => {
                SynthesizeError::NoSuchSlot { kind, slots: self.variables.author_slots(), slot }
            }
            (Failure::Returned(SynthesisError::AssignmentMissing), None)
                if mode == SynthesisMode::Setup =>
            {
                SynthesizeError::ValueAtSetup { kind }
            }
            (Failure::Returned(source), None) => SynthesizeError::Gadget { kind, source },
        }
    }

    /// The matrices of a constraint system that [`Self::run`] has made.
    pub(crate) fn matrices(&self, cs: &ConstraintSystemRef<Fr>) -> Result<R1cs, SynthesizeError> {
        let matrices = cs.borrow().and_then(|cs| matrices_of(&cs));
        let matrices = matrices.ok_or_else(|| SynthesizeError::Predicate { kind: self.name() })?;
        let too_large = |error| SynthesizeError::TooLarge { kind: self.name(), error };
        let matrices = matrices.map_err(too_large)?;
        let variables = cs.num_instance_variables() + cs.num_witness_variables();
        Ok(R1cs { name: self.name(), layout: self.variables, variables, matrices })
    }
}

impl PreparedCircuit<'_> {
    /// Returns the R1CS of a type, synthesized without a witness.
    ///
    /// # Errors
    /// If the author's gadgets fail, allocate public inputs, use constraints other than R1CS, or
    /// leave a slot unconstrained that is not declared so.
    pub fn r1cs(&self, kind: TypeId, masking: Masking) -> Result<R1cs, SynthesizeError> {
        let r1cs = match self.stored() {
            Some(stored) => self.stored_r1cs(stored, kind, masking)?,
            None => {
                let slots = self.layout().slots(kind) + masking.slots();
                let variables = VariableLayout::new(slots, masking);
                let synthesis = Synthesis { circuit: self, kind, variables };
                synthesis.matrices(&synthesis.run(SynthesisMode::Setup, None, None)?)?
            }
        };
        // A forgotten equality leaves the value of a slot to the prover.
        let mut unused = r1cs.unconstrained_slots().into_iter();
        match unused.find(|slot| !self.layout().is_unconstrained(kind, *slot)) {
            Some(slot) => Err(SynthesizeError::UnconstrainedSlot {
                kind: r1cs.name,
                slot: self.layout().slot_label(kind, slot),
            }),
            None => Ok(r1cs),
        }
    }

    /// Returns the full assignment of one instance, without building matrices. `expected` is the
    /// number of variables that the type had at setup.
    ///
    /// # Errors
    /// If the author's gadgets fail, or allocate a different number of variables than at setup.
    pub fn witness(
        &self,
        kind: TypeId,
        masking: Masking,
        prefix: &Prefix,
        private: &PrivateInput,
        expected: usize,
    ) -> Result<Vec<Fr>, SynthesizeError> {
        if let Some(stored) = self.stored() {
            return self.stored_witness(stored, kind, prefix, private, expected);
        }
        let mode =
            SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
        let variables = VariableLayout::new(prefix.committed.len(), masking);
        let synthesis = Synthesis { circuit: self, kind, variables };
        let cs = synthesis.run(mode, Some(prefix), Some(private))?;
        let shape = |found| SynthesizeError::Shape { kind: synthesis.name(), expected, found };
        let inner = cs.into_inner().ok_or_else(|| shape(0))?;
        let mut z = inner.assignments.instance_assignment;
        z.extend(inner.assignments.witness_assignment);
        // The assignment must have the length of the queries: a multi-scalar multiplication over
        // fewer elements would silently drop variables (spec: memory-check#variables).
        if z.len() != expected {
            return Err(shape(z.len()));
        }
        Ok(z)
    }
}
