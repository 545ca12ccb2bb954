//! From an author's gadgets to one R1CS a type, with the rows of the memory check in front.
//!
//! Variables in order (PROTOCOL, section 1): public `1, g, x_1..x_s, mu_1..mu_s` | committed `v_1..v_s` | `e` | the
//! rest: `u_1..u_s` and the author's own. Rows: row 0 `(sum u_j) 1 = e`, rows 1..s `(g + v_j + x_j) u_j = mu_j`, then
//! the author's.

use super::Circuit;
use super::layout::TypeId;
use crate::transcript::MemoryChallenges;
use ark_ff::{Field, Zero};
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, LinearCombination, OptimizationGoal,
    R1CS_PREDICATE_LABEL, SynthesisError, SynthesisMode, Variable,
};
use hekaton_arith::Fr;

/// One subcircuit being synthesized.
#[derive(Clone, Debug)]
pub struct Subcircuit {
    kind: TypeId,
    cs: ConstraintSystemRef<Fr>,
    slots: Vec<FpVar<Fr>>,
}

impl Subcircuit {
    /// The type.
    pub fn kind(&self) -> TypeId {
        self.kind
    }

    /// The constraint system for gadgets. New public inputs must not be allocated: public values are shared wires.
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
    /// When the type has no such slot.
    pub fn slot(&self, slot: usize) -> Result<&FpVar<Fr>, SynthesisError> {
        self.slots.get(slot).ok_or(SynthesisError::Unsatisfiable)
    }
}

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
    #[error("type '{kind}' allocates public inputs of its own: make public values shared wires of the layout")]
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

/// The values that the memory check puts in front of an author's variables.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// 1, g, x, mu
    pub(crate) public: Vec<Fr>,
    /// v
    pub(crate) committed: Vec<Fr>,
    /// sum u
    pub(crate) e: Fr,
    /// u
    pub(crate) inverses: Vec<Fr>,
}

/// A fingerprint was zero: the challenges hit a pole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pole;

impl Prefix {
    pub(crate) fn new(slots: &[(u64, i64)], values: &[Fr], memory: &MemoryChallenges) -> Result<Self, Pole> {
        assert_eq!(slots.len(), values.len(), "as many values as slots");
        let (addresses, multiplicities) = super::wiring::Wiring::preprocessed(slots);
        let x: Vec<Fr> = addresses.iter().map(|a| memory.b * a).collect();
        let mut inverses: Vec<Fr> = x.iter().zip(values).map(|(x, v)| memory.g + v + x).collect();
        if inverses.iter().any(Zero::is_zero) {
            return Err(Pole);
        }
        hekaton_arith::batch_invert(&mut inverses);
        inverses.iter_mut().zip(&multiplicities).for_each(|(u, m)| *u *= m);
        let mut public = vec![Fr::ONE, memory.g];
        public.extend(x);
        public.extend(multiplicities);
        Ok(Self { public, committed: values.to_vec(), e: inverses.iter().sum(), inverses })
    }
}

/// Allocates the variables of the memory check and lays its rows. Values may be missing (setup).
fn lay_prefix(
    cs: &ConstraintSystemRef<Fr>,
    kind: TypeId,
    slots: usize,
    masks: usize,
    prefix: Option<&Prefix>,
) -> Result<Subcircuit, SynthesisError> {
    let _span = ark_relations::gr1cs::info_span!(target: "gr1cs", "memory_check").entered();
    let value = |pick: &dyn Fn(&Prefix) -> Fr| prefix.map(pick).ok_or(SynthesisError::AssignmentMissing);
    let g = cs.new_input_variable(|| value(&|p| p.public[1]))?;
    let mut public = Vec::with_capacity(2 * slots);
    for j in 0..2 * slots {
        public.push(cs.new_input_variable(|| value(&|p| p.public[2 + j]))?);
    }
    let (x, mu) = public.split_at(slots);
    let mut v = Vec::with_capacity(slots);
    for j in 0..slots {
        v.push(cs.new_witness_variable(|| value(&|p| p.committed[j]))?);
    }
    let e = cs.new_witness_variable(|| value(&|p| p.e))?;
    let mut u = Vec::with_capacity(slots);
    for j in 0..slots {
        u.push(cs.new_witness_variable(|| value(&|p| p.inverses[j]))?);
    }
    let sum = || LinearCombination(u.iter().map(|u| (Fr::ONE, *u)).collect());
    cs.enforce_r1cs_constraint(sum, || Variable::One.into(), || e.into())?;
    for j in 0..slots {
        let fingerprint = || LinearCombination(vec![(Fr::ONE, g), (Fr::ONE, v[j]), (Fr::ONE, x[j])]);
        cs.enforce_r1cs_constraint(fingerprint, || u[j].into(), || mu[j].into())?;
    }
    let visible =
        (0..slots - masks).map(|j| FpVar::Var(AllocatedFp::new(prefix.map(|p| p.committed[j]), v[j], cs.clone())));
    Ok(Subcircuit { kind, cs: cs.clone(), slots: visible.collect() })
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

    /// With the values of its slots, their addresses and multiplicities; `None` if the challenges hit a pole.
    pub fn with_values(
        circuit: &'a C,
        kind: TypeId,
        slots: &[(u64, i64)],
        values: &[Fr],
        memory: &MemoryChallenges,
        private: &'a C::Private,
    ) -> Option<Self> {
        let prefix = Prefix::new(slots, values, memory).ok()?;
        Some(Self { circuit, kind, prefix: Some(prefix), slots: slots.len(), private: Some(private) })
    }
}

impl<C: Circuit> ConstraintSynthesizer<Fr> for StandAlone<'_, C> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let subcircuit = lay_prefix(&cs, self.kind, self.slots, 0, self.prefix.as_ref())?;
        self.circuit.synthesize(&subcircuit, self.private)
    }
}

/// Runs the author's synthesis in a mode.
#[allow(clippy::too_many_arguments)]
pub(crate) fn synthesize<C: Circuit>(
    circuit: &C,
    kind: TypeId,
    name: &str,
    slots: usize,
    masks: usize,
    mode: SynthesisMode,
    prefix: Option<&Prefix>,
    private: Option<&C::Private>,
) -> Result<ConstraintSystemRef<Fr>, SynthesizeError> {
    let gadget = |source| SynthesizeError::Gadget { kind: name.to_owned(), source };
    let cs = ConstraintSystem::<Fr>::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    cs.set_mode(mode);
    let subcircuit = lay_prefix(&cs, kind, slots, masks, prefix).map_err(gadget)?;
    circuit.synthesize(&subcircuit, private).map_err(gadget)?;
    if cs.num_instance_variables() != 2 + 2 * slots {
        return Err(SynthesizeError::PublicInput { kind: name.to_owned() });
    }
    if cs.num_predicates() != 1 {
        return Err(SynthesizeError::Predicate { kind: name.to_owned() });
    }
    Ok(cs)
}

/// The R1CS of a type: three sparse matrices over variables in the order pub | com | e | aux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct R1cs {
    pub(crate) name: String,
    /// s, the masks included
    pub(crate) slots: usize,
    /// how many of them, at the end, are masks
    pub(crate) masks: usize,
    /// number of variables
    pub(crate) variables: usize,
    /// a, b, c: rows of (coefficient, variable)
    pub(crate) rows: [Vec<Vec<(Fr, usize)>>; 3],
}

impl R1cs {
    /// Number of public variables, 2 + 2 s. The committed ones follow, then e.
    pub(crate) fn public(&self) -> usize {
        2 + 2 * self.slots
    }

    /// The index of e.
    pub(crate) fn e(&self) -> usize {
        self.public() + self.slots
    }

    /// Number of constraints.
    pub(crate) fn constraints(&self) -> usize {
        self.rows[0].len()
    }
}

/// The matrices of a type.
pub(crate) fn synthesize_r1cs<C: Circuit>(
    circuit: &C,
    kind: TypeId,
    name: &str,
    slots: usize,
    masks: usize,
) -> Result<R1cs, SynthesizeError> {
    let cs = synthesize(circuit, kind, name, slots, masks, SynthesisMode::Setup, None, None)?;
    cs.finalize();
    let gadget = |source| SynthesizeError::Gadget { kind: name.to_owned(), source };
    let mut matrices = cs.to_matrices().map_err(gadget)?;
    let r1cs = matrices.remove(R1CS_PREDICATE_LABEL).and_then(|m| <[_; 3]>::try_from(m).ok());
    let rows = r1cs.ok_or_else(|| SynthesizeError::Predicate { kind: name.to_owned() })?;
    let variables = cs.num_instance_variables() + cs.num_witness_variables();
    Ok(R1cs { name: name.to_owned(), slots, masks, variables, rows })
}

/// The full assignment of one instance, without building any matrix.
pub(crate) fn synthesize_witness<C: Circuit>(
    circuit: &C,
    kind: TypeId,
    name: &str,
    masks: usize,
    prefix: &Prefix,
    private: &C::Private,
    expected: usize,
) -> Result<Vec<Fr>, SynthesizeError> {
    let mode = SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
    let slots = prefix.committed.len();
    let cs = synthesize(circuit, kind, name, slots, masks, mode, Some(prefix), Some(private))?;
    let shape = |found| SynthesizeError::Shape { kind: name.to_owned(), expected, found };
    let inner = cs.into_inner().ok_or_else(|| shape(0))?;
    let mut z = inner.assignments.instance_assignment;
    z.extend(inner.assignments.witness_assignment);
    if z.len() != expected {
        return Err(shape(z.len()));
    }
    Ok(z)
}
