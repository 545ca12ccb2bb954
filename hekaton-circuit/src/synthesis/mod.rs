//! From an author's gadgets to one R1CS per type, and to the witness of an instance
//! (spec: memory-check#variables, memory-check#rows).

pub(crate) mod asserts;
pub(crate) mod inlining;
pub(crate) mod matrix;
pub(crate) mod places;
pub(crate) mod r1cs;
pub(crate) mod stored;
mod stored_synthesis;
pub(crate) mod subcircuit;
pub(crate) mod synthesized;

use crate::buses::ledger::{Ledger, Unfinished};
use crate::buses::look_ups::LookUps;
use crate::buses::mistake::Mistake;
use crate::execution::PrivateInput;
use crate::execution::panics::{CircuitPanic, Failure};
use crate::execution::prepared::PreparedCircuit;
use crate::interface::{Masking, MemoryChallenges, Preprocessed, SlotAccess};
use crate::layout::ids::{InstanceId, TypeId};
use crate::memory::prefix::Prefix;
use crate::memory::variables::VariableLayout;
use crate::synthesis::matrix::TooLarge;
use crate::synthesis::r1cs::R1cs;
use crate::synthesis::subcircuit::Subcircuit;
use crate::synthesis::synthesized::{AuthorEnd, Synthesized};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal, SynthesisError,
    SynthesisMode,
};
use hekaton_arith::Fr;

/// The reason that an author's `synthesize` failed or its result was rejected.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthesizeError {
    /// A gadget failed.
    #[error("synthesis of type '{kind}' failed: {error}{place}")]
    Gadget {
        /// The type.
        kind: String,
        /// The error from arkworks.
        error: SynthesisError,
        /// The last constraint before the failure, as a sentence of its own; empty if it is not known.
        place: String,
    },
    /// The author's code asked for a value at setup.
    #[error(
        "synthesis of type '{kind}' asked for the value of a variable: at setup nothing has a \
         value, so compute values inside the closures of `new_witness` and `new_variable`{place}"
    )]
    ValueAtSetup {
        /// The type.
        kind: String,
        /// The last constraint before the failure, as a sentence of its own; empty if it is not known.
        place: String,
    },
    /// The author's code asked for a slot that the type does not have.
    #[error("type '{kind}' has {slots} slots, but synthesize asked for slot {slot}{place}")]
    NoSuchSlot {
        /// The type.
        kind: String,
        /// The number of slots of the type, numbered from 0.
        slots: usize,
        /// The slot.
        slot: usize,
        /// The function that asked, if it is known.
        place: String,
    },
    /// The author's code asked for an item that the type or the layout does not have.
    #[error("type '{kind}': {why}")]
    Bus {
        /// The type.
        kind: String,
        /// The request that failed.
        why: String,
    },
    /// The challenges hit a pole (zero denominator): the run starts again with other challenges.
    #[error("type '{kind}': the challenges hit a pole (zero denominator) of a bus entry")]
    Pole {
        /// The type.
        kind: String,
    },
    /// The constraints of a type do not fit keys.
    #[error("type '{kind}' is too large: {error}; divide it into smaller types")]
    TooLarge {
        /// The type.
        kind: String,
        /// The quantity that keys cannot count.
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
        /// The reason they cannot be used.
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
/// public inputs are `g, x_1..x_s, mu_1..mu_s`; it has no mask slots. In circuits with buses, `b_T` and
/// `b_V` follow `g`; parameters and pairs follow the multiplicities.
#[derive(Debug)]
pub struct StandAlone<'a> {
    circuit: &'a PreparedCircuit<'a>,
    kind: TypeId,
    prefix: Option<Prefix>,
    private: Option<&'a PrivateInput>,
}

impl<'a> StandAlone<'a> {
    /// Creates the circuit without values.
    pub fn setup(circuit: &'a PreparedCircuit<'a>, kind: TypeId) -> Self {
        Self { circuit, kind, prefix: None, private: None }
    }

    /// Creates the circuit from the accesses and values of its slots; `None` if the challenges hit
    /// a pole (zero denominator). The circuit must have no parameters and no pairs.
    pub fn with_values(
        circuit: &'a PreparedCircuit<'a>,
        kind: TypeId,
        slots: &[SlotAccess],
        values: &[Fr],
        memory: &MemoryChallenges,
        private: &'a PrivateInput,
    ) -> Option<Self> {
        let buses = circuit.layout().has_buses();
        let preprocessed = Preprocessed { buses, ..Preprocessed::default() };
        let prefix = Prefix::with(slots, values, preprocessed, memory).ok()?;
        Some(Self { circuit, kind, prefix: Some(prefix), private: Some(private) })
    }
}

impl ConstraintSynthesizer<Fr> for StandAlone<'_> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let (layout, prefix) = (self.circuit.layout(), self.prefix.as_ref());
        let variables = layout.variables(self.kind, Masking::Unmasked);
        let subcircuit = Subcircuit::begin(&cs, layout, self.kind, &variables, prefix)?;
        let result = self.circuit.call_synthesize(&subcircuit, self.private);
        result.map_err(|failure| match failure {
            Failure::Returned(error) => error,
            Failure::Panicked(_) => SynthesisError::Unsatisfiable,
        })?;
        // Without buses, `begin` has added all rows; with them, the entries are complete only now.
        if layout.has_buses() {
            let finished = subcircuit.ledger().borrow_mut().finish(&cs, &variables, prefix);
            finished.map_err(|unfinished| match unfinished {
                Unfinished::Synthesis(error) => error,
                Unfinished::Pole(_) => SynthesisError::Unsatisfiable,
            })?;
        }
        Ok(())
    }
}

/// One type of a circuit, ready to be synthesized.
#[derive(Debug)]
pub(crate) struct Synthesis<'a> {
    pub(crate) circuit: &'a PreparedCircuit<'a>,
    pub(crate) kind: TypeId,
    pub(crate) variables: VariableLayout,
    /// The instance whose own part is synthesized, in checks; `None` for the part of the type.
    pub(crate) instance: Option<InstanceId>,
}

impl<'a> Synthesis<'a> {
    /// The part of a type, which all of its instances have.
    pub(crate) fn new(circuit: &'a PreparedCircuit<'a>, kind: TypeId, masking: Masking) -> Self {
        Self { circuit, kind, variables: circuit.layout().variables(kind, masking), instance: None }
    }

    /// The name of the type.
    pub(crate) fn name(&self) -> String {
        self.circuit.layout().type_name(self.kind).to_owned()
    }

    pub(crate) fn gadget(&self, error: SynthesisError) -> SynthesizeError {
        SynthesizeError::Gadget { kind: self.name(), error, place: String::new() }
    }

    /// Adds the memory check, runs the author's `synthesize`, and checks its allocations.
    pub(crate) fn run(
        &self,
        mode: SynthesisMode,
        prefix: Option<&Prefix>,
        private: Option<&PrivateInput>,
    ) -> Result<Synthesized, SynthesizeError> {
        let subcircuit = self.run_author(mode, prefix, private)?;
        if !self.circuit.layout().has_buses() {
            return Ok(Synthesized::new(subcircuit, self.variables, None));
        }
        let cs = subcircuit.cs();
        let end = AuthorEnd { variables: cs.num_witness_variables(), rows: cs.num_constraints() };
        let mut ledger = subcircuit.ledger().borrow_mut();
        self.check_accesses(&ledger)?;
        let layout = self.variables.with(ledger.shape(self.variables.shape()));
        ledger.finish(&cs, &self.variables, prefix).map_err(|unfinished| match unfinished {
            Unfinished::Synthesis(error) => {
                self.failure(Failure::Returned(error), ledger.mistake.clone(), mode)
            }
            Unfinished::Pole(_) => SynthesizeError::Pole { kind: self.name() },
        })?;
        // The subcircuit, which owns the ledger, moves into the result.
        drop(ledger);
        Ok(Synthesized::new(subcircuit, layout, Some(end)))
    }

    /// Checks that the type accesses all memories that the layout declares it to access. It may make fewer accesses than
    /// declared, but with none at all the time of the first one is a parameter that nothing binds.
    fn check_accesses(&self, ledger: &Ledger) -> Result<(), SynthesizeError> {
        for place in self.circuit.layout().ram_places(self.kind) {
            let (made, declared) = (ledger.accesses(place.ram), place.accesses);
            if made == 0 && declared > 0 {
                let mistake = Mistake::FewAccesses { index: place.ram.0.index(), made, declared };
                return Err(self.mistaken(self.name(), &mistake, String::new()));
            }
        }
        Ok(())
    }

    /// [`run`](Self::run) without the rows of the memory check in circuits with buses.
    pub(crate) fn run_author(
        &self,
        mode: SynthesisMode,
        prefix: Option<&Prefix>,
        private: Option<&PrivateInput>,
    ) -> Result<Subcircuit, SynthesizeError> {
        self.run_once(mode, prefix, private).map_err(|error| match error {
            SynthesizeError::Gadget { kind, error, .. } => {
                SynthesizeError::Gadget { kind, error, place: self.locate(mode, prefix, private) }
            }
            SynthesizeError::ValueAtSetup { kind, .. } => {
                SynthesizeError::ValueAtSetup { kind, place: self.locate(mode, prefix, private) }
            }
            error => error,
        })
    }

    /// Describes the last of the author's constraints before the failure of a synthesis, which is repeated for this:
    /// gadgets' own errors say nothing of their place.
    fn locate(
        &self,
        mode: SynthesisMode,
        prefix: Option<&Prefix>,
        private: Option<&PrivateInput>,
    ) -> String {
        let mode = match mode {
            // Provers make no rows, have no memory for them, and may all fail at once; `check` fails in the same way.
            SynthesisMode::Prove { construct_matrices: false, .. } if self.instance.is_none() => {
                return String::new();
            }
            SynthesisMode::Prove { generate_lc_assignments, .. } => {
                SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments }
            }
            SynthesisMode::Setup => mode,
        };
        // The first run counts the constraints, the second one records the place of the last.
        let run = || drop(self.run_once(mode, prefix, private));
        let ((), counted) = places::recorded([], run);
        let before = if self.circuit.layout().has_buses() { 0 } else { self.variables.rows() };
        let Some(own) = counted.made.checked_sub(before + 1) else {
            return "; it failed before its first constraint".into();
        };
        let ((), found) = places::recorded([counted.made - 1], run);
        format!("; it failed after its constraint {own}:\n{}", found.of(counted.made - 1))
    }

    fn run_once(
        &self,
        mode: SynthesisMode,
        prefix: Option<&Prefix>,
        private: Option<&PrivateInput>,
    ) -> Result<Subcircuit, SynthesizeError> {
        let cs = ConstraintSystem::<Fr>::new_ref();
        // The other goals outline or inline on their own terms, and would change the R1CS of every key.
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        cs.set_mode(mode);
        let layout = self.circuit.layout();
        let subcircuit = Subcircuit::begin(&cs, layout, self.kind, &self.variables, prefix)
            .map_err(|source| self.gadget(source))?
            .of_instance(self.instance);
        self.circuit
            .call_synthesize(&subcircuit, private)
            .map_err(|failure| self.failure(failure, subcircuit.first_mistake(), mode))?;
        // A public variable of the author's would shift all variables after it, and no key commits
        // to it: the public variables are those of the memory check (spec: memory-check#variables).
        if cs.num_instance_variables() != self.variables.public().len() {
            return Err(SynthesizeError::PublicInput { kind: self.name() });
        }
        // The keys have queries for R1CS rows only: rows of other predicates would not be proven.
        if cs.num_predicates() != 1 {
            return Err(SynthesizeError::Predicate { kind: self.name() });
        }
        Ok(subcircuit)
    }

    /// Turns the failure of a gadget into the mistake of the author, as far as it is known.
    fn failure(
        &self,
        failure: Failure<SynthesisError>,
        mistake: Option<(Mistake, String)>,
        mode: SynthesisMode,
    ) -> SynthesizeError {
        let kind = self.name();
        let source = match (failure, mistake) {
            (Failure::Panicked(panic), _) => return SynthesizeError::Panic { kind, panic },
            (Failure::Returned(_), Some((mistake, place))) => {
                return self.mistaken(kind, &mistake, place);
            }
            (Failure::Returned(source), None) => source,
        };
        let place = String::new();
        match (source, mode) {
            (SynthesisError::AssignmentMissing, SynthesisMode::Setup) => {
                SynthesizeError::ValueAtSetup { kind, place }
            }
            (error, _) => SynthesizeError::Gadget { kind, error, place },
        }
    }

    /// Turns a mistake into an error that names it and the function that made it: gadgets' own errors carry no text.
    fn mistaken(&self, kind: String, mistake: &Mistake, place: String) -> SynthesizeError {
        if let Mistake::Slot(slot) = *mistake {
            let slots = self.variables.author_slots();
            return SynthesizeError::NoSuchSlot { kind, slots, slot, place };
        }
        let why = mistake.describe(self.circuit.layout(), self.variables.shape()) + &place;
        SynthesizeError::Bus { kind, why }
    }

    /// The R1CS, synthesized without a witness.
    pub(crate) fn r1cs(&self) -> Result<R1cs, SynthesizeError> {
        self.matrices(&self.run(SynthesisMode::Setup, None, None)?)
    }

    /// The matrices of the result of [`Self::run`].
    pub(crate) fn matrices(&self, made: &Synthesized) -> Result<R1cs, SynthesizeError> {
        let matrices = (made.matrices())
            .ok_or_else(|| SynthesizeError::Predicate { kind: self.name() })?
            .map_err(|error| SynthesizeError::TooLarge { kind: self.name(), error })?;
        let (layout, variables) = (made.layout, made.variables());
        let r1cs = R1cs { name: self.name(), layout, variables, matrices };
        self.check_tags(&r1cs, made)?;
        Ok(r1cs)
    }

    /// Checks that the fingerprints of entries have the tags of their buses: a key with a term in b_T would
    /// turn the entry into one of another bus, which has another owner (spec: buses#owners).
    fn check_tags(&self, r1cs: &R1cs, made: &Synthesized) -> Result<(), SynthesizeError> {
        let Some([b_t, _]) = r1cs.layout.bus_challenges() else { return Ok(()) };
        for (entry, tag) in made.ledger().tags().enumerate() {
            let terms = r1cs.side(1).terms(r1cs.layout.entry_row(entry));
            let found: Fr = terms.filter(|(_, v)| *v == b_t).map(|(k, _)| k).sum();
            if found != Fr::from(tag) {
                // The tag is that of a bus of this layout: `Subcircuit::bus` and its siblings looked it up.
                let bus = &self.circuit.layout().buses[tag as usize - 1].name;
                let why = format!(
                    "the key of entry {entry}, of bus '{bus}', contains the challenge b_T, which would \
                     make it one of another bus"
                );
                return Err(SynthesizeError::Bus { kind: self.name(), why });
            }
        }
        Ok(())
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
            None => Synthesis::new(self, kind, masking).r1cs()?,
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
        let synthesis = Synthesis::new(self, kind, masking);
        let made = synthesis.run(mode, Some(prefix), Some(private))?;
        let shape = |found| SynthesizeError::Shape { kind: synthesis.name(), expected, found };
        let z = made.into_assignment().ok_or_else(|| shape(0))?;
        // The assignment must have the length of the queries: a multi-scalar multiplication over
        // fewer elements would silently drop variables (spec: memory-check#variables).
        if z.len() != expected {
            return Err(shape(z.len()));
        }
        Ok(z)
    }

    /// Returns the marked values of one instance, to which it commits in addition to its slots, and its
    /// look-ups. `prefix` may be that of any challenges: the result must not depend on them
    /// (spec: buses#commit-round).
    ///
    /// # Errors
    /// If the author's gadgets fail, or mark another number of values than at setup, `expected`.
    pub fn marked(
        &self,
        kind: TypeId,
        masking: Masking,
        prefix: &Prefix,
        private: &PrivateInput,
        expected: usize,
    ) -> Result<(Vec<Fr>, LookUps), SynthesizeError> {
        let mode =
            SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
        let synthesis = Synthesis::new(self, kind, masking);
        // The rows of entries are not needed: they follow the author's code and mark nothing.
        let subcircuit = synthesis.run_author(mode, Some(prefix), Some(private))?;
        let (indices, asked) = {
            let mut ledger = subcircuit.ledger().borrow_mut();
            (ledger.marked_indices(), std::mem::take(&mut ledger.look_ups))
        };
        // The commitment key has one point per marked value, in this order.
        if indices.len() != expected {
            let (kind, found) = (synthesis.name(), indices.len());
            return Err(SynthesizeError::Shape { kind, expected, found });
        }
        let cs = subcircuit.cs();
        let inner = cs.borrow().ok_or_else(|| synthesis.gadget(SynthesisError::MissingCS))?;
        let values = &inner.assignments.witness_assignment;
        let marked = indices.into_iter().map(|index| values[index]).collect();
        Ok((marked, LookUps::of(asked)))
    }
}
