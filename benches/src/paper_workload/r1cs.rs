//! The R1CS of a subcircuit with the memory check of the paper, and its witness.
//!
//! The rows have the shape of the paper's: running products over two traces, comparisons of
//! neighboring entries, and two Merkle paths of Poseidon hashes. They do not add up to its memory
//! check: which child of a node is which is fixed, and the last node is not compared with the root.

use super::Error;
use ark_crypto_primitives::crh::TwoToOneCRHSchemeGadget;
use ark_crypto_primitives::crh::poseidon::constraints::{CRHParametersVar, TwoToOneCRHGadget};
use ark_crypto_primitives::sponge::poseidon::{PoseidonConfig, find_poseidon_ark_and_mds};
use ark_ff::{Field, Zero};
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{
    ConstraintSystem, ConstraintSystemRef, LinearCombination, OptimizationGoal, SynthesisError,
    SynthesisMode, Variable,
};
use hekaton_arith::{Fr, batch_invert, powers};
use hekaton_circuit::prover::{Matrices, Matrix};
use std::ops::Range;
use std::sync::LazyLock;

/// Poseidon over two elements with x^5, 8 full and 57 partial rounds: 240 rows per hash of two.
pub static POSEIDON: LazyLock<PoseidonConfig<Fr>> = LazyLock::new(|| {
    let (ark, mds) = find_poseidon_ark_and_mds(255, 2, 8, 57, 0);
    PoseidonConfig::new(8, 57, 5, mds, ark, 2, 1)
});

/// The version of the paper's memory check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The version as published: addresses are free, and there are no public values.
    Published,
    /// The version with preprocessed addresses and a range check of the order: one public variable
    /// and two rows more per occurrence. The equality of the last products and the opening of leaf
    /// 0 are left to the verifier and cost the worker nothing.
    Sound,
}

/// The sizes of a subcircuit.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The rows of the author's gadgets.
    pub author_rows: usize,
    /// The occurrences of shared wires, at least 1.
    pub occurrences: usize,
    /// The binary logarithm of the number of subcircuits.
    pub levels: usize,
    /// The version of the memory check.
    pub version: Version,
}

/// The part of both traces that a subcircuit commits to.
#[derive(Clone, Debug)]
pub struct Subtrace {
    /// Addresses and values in the order of the slots, then in the order of addresses: four
    /// vectors, one after another.
    pub committed: Vec<Fr>,
}

impl Subtrace {
    /// The trace of these slot values. In the sorted part each address occurs twice.
    pub fn new(values: &[Fr]) -> Self {
        let addresses = (0..values.len() as u64).map(Fr::from);
        let sorted_addresses = (0..values.len() as u64).map(|j| Fr::from(j / 2 + 1));
        let sorted_values = (0..values.len()).map(|j| values[j / 2]);
        let committed =
            addresses.chain(values.iter().copied()).chain(sorted_addresses).chain(sorted_values);
        Self { committed: committed.collect() }
    }
}

/// The data that a worker gets between the rounds.
#[derive(Clone, Debug)]
pub struct ProveRequest {
    /// The challenges of the running products.
    pub challenges: [Fr; 2],
    /// The running products and the last sorted address and value, before the subcircuit.
    pub before: [Fr; 4],
    /// The siblings on the Merkle paths of two neighboring leaves.
    pub paths: [Vec<Fr>; 2],
}

impl ProveRequest {
    /// A request with values of full size and paths of `levels` nodes.
    pub fn example(levels: usize) -> Self {
        let xs = powers(Fr::from(u128::MAX - 58).square(), 6 + 2 * levels);
        let (left, right) = xs[6..].split_at(levels);
        // the sorted trace continues at address 0
        let before = [xs[3], xs[4], Fr::zero(), xs[5]];
        Self { challenges: [xs[1], xs[2]], before, paths: [left.to_vec(), right.to_vec()] }
    }
}

/// The rows that an author writes, the same in both protocols: a chain of products that uses each
/// slot if there are as many rows as slots.
///
/// # Errors
/// If a gadget fails.
pub fn author(rows: usize, slots: &[FpVar<Fr>]) -> Result<(), SynthesisError> {
    let mut x = slots.first().ok_or(SynthesisError::Unsatisfiable)?.clone();
    for slot in slots.iter().cycle().take(rows) {
        x = (x.clone() + slot) * &x;
    }
    Ok(())
}

/// A variable and its value.
#[derive(Clone, Copy)]
struct Wire(Variable, Fr);

/// Adds rows and variables.
struct Rows(ConstraintSystemRef<Fr>);

type Terms<'a> = &'a [(Fr, Variable)];

impl Rows {
    fn public(&self, value: Fr) -> Result<Wire, SynthesisError> {
        Ok(Wire(self.0.new_input_variable(|| Ok(value))?, value))
    }

    fn witness(&self, value: Fr) -> Result<Wire, SynthesisError> {
        Ok(Wire(self.0.new_witness_variable(|| Ok(value))?, value))
    }

    fn row(&self, a: Terms<'_>, b: Terms<'_>, c: Terms<'_>) -> Result<(), SynthesisError> {
        let sum = |terms: Terms<'_>| LinearCombination(terms.to_vec());
        self.0.enforce_r1cs_constraint(|| sum(a), || sum(b), || sum(c))
    }

    /// `product (alpha - address - beta value)`, the next running product: two rows.
    fn multiply(
        &self,
        product: Wire,
        [alpha, beta]: [Wire; 2],
        address: Wire,
        value: Wire,
    ) -> Result<Wire, SynthesisError> {
        let (one, minus) = (Fr::ONE, -Fr::ONE);
        let scaled = self.witness(beta.1 * value.1)?;
        self.row(&[(one, beta.0)], &[(one, value.0)], &[(one, scaled.0)])?;
        let next = self.witness(product.1 * (alpha.1 - address.1 - scaled.1))?;
        let factor = [(one, alpha.0), (minus, address.0), (minus, scaled.0)];
        self.row(&[(one, product.0)], &factor, &[(one, next.0)])?;
        Ok(next)
    }

    /// Returns a wire that is 1 if two wires are equal, and else 0, from the inverse of their
    /// difference or zero: two rows.
    fn is_equal(&self, a: Wire, b: Wire, inverse: Fr) -> Result<Wire, SynthesisError> {
        let (one, minus) = (Fr::ONE, -Fr::ONE);
        let equal = self.witness(if inverse.is_zero() { one } else { Fr::zero() })?;
        let inverse = self.witness(inverse)?;
        let difference = [(one, a.0), (minus, b.0)];
        let not = [(one, Variable::One), (minus, equal.0)];
        self.row(&difference, &[(one, inverse.0)], &not)?;
        self.row(&difference, &[(one, equal.0)], &[])?;
        Ok(equal)
    }

    /// Compares two neighbors of the sorted trace: nine rows.
    fn neighbors(
        &self,
        [address, value]: [Wire; 2],
        [last_address, last_value]: [Wire; 2],
        value_inverse: Fr,
    ) -> Result<(), SynthesisError> {
        let (one, minus) = (Fr::ONE, -Fr::ONE);
        // the difference of two addresses is 0 or 1, its own inverse
        let same = self.is_equal(address, last_address, address.1 - last_address.1)?;
        let same_value = self.is_equal(value, last_value, value_inverse)?;
        let step = [(one, address.0), (minus, last_address.0), (minus, Variable::One)];
        let not = |wire: Wire| [(one, Variable::One), (minus, wire.0)];
        // another address is the next one, and the same address has the same value
        self.row(&not(same), &step, &[])?;
        self.row(&[(one, same.0)], &not(same_value), &[])?;
        self.row(&[(one, same.0)], &[(one, value.0), (minus, last_value.0)], &[])?;
        for bit in [same, same_value] {
            self.row(&[(one, bit.0)], &not(bit), &[])?;
        }
        Ok(())
    }

    /// Adds the constraints that the sound version has for an occurrence: two rows.
    fn fix(&self, address: Wire, public: Wire, sorted: [Wire; 2]) -> Result<(), SynthesisError> {
        let (one, minus) = (Fr::ONE, -Fr::ONE);
        let [last, next] = sorted.map(|wire| wire.0);
        self.row(&[(one, address.0), (minus, public.0)], &[(one, Variable::One)], &[])?;
        let step = [(one, next), (minus, last)];
        self.row(&step, &[step[0], step[1], (minus, Variable::One)], &[])
    }
}

/// The inverses of the differences of neighboring values; zero where they are equal.
fn value_inverses(first: Fr, values: &[Fr]) -> Vec<Fr> {
    let last = std::iter::once(&first).chain(values);
    let mut all: Vec<Fr> = values.iter().zip(last).map(|(value, last)| *value - last).collect();
    // Zeros stay zero.
    batch_invert(&mut all);
    all
}

impl Shape {
    /// Adds all variables and rows. Returns the range of the committed variables.
    fn synthesize(
        &self,
        cs: &ConstraintSystemRef<Fr>,
        trace: &Subtrace,
        request: &ProveRequest,
    ) -> Result<Range<usize>, SynthesisError> {
        let rows = Rows(cs.clone());
        let s = self.occurrences;
        let [alpha, beta] = request.challenges;
        let challenges = [rows.public(alpha)?, rows.public(beta)?];
        let preprocessed = match self.version {
            Version::Published => &[],
            Version::Sound => &trace.committed[..s],
        };
        let preprocessed: Vec<Wire> =
            preprocessed.iter().map(|x| rows.public(*x)).collect::<Result<_, _>>()?;
        let first = cs.num_instance_variables();
        let committed: Vec<Wire> =
            trace.committed.iter().map(|x| rows.witness(*x)).collect::<Result<_, _>>()?;
        let range = first..first + cs.num_witness_variables();
        let [addresses, values, sorted_addresses, sorted_values] =
            [0, 1, 2, 3].map(|part| &committed[part * s..(part + 1) * s]);

        let [first, second, third, fourth] = request.before;
        let (mut by_slot, mut sorted) = (rows.witness(first)?, rows.witness(second)?);
        let mut last = [rows.witness(third)?, rows.witness(fourth)?];
        let inverses = value_inverses(last[1].1, &trace.committed[3 * s..]);
        for j in 0..s {
            by_slot = rows.multiply(by_slot, challenges, addresses[j], values[j])?;
            let next = [sorted_addresses[j], sorted_values[j]];
            sorted = rows.multiply(sorted, challenges, next[0], next[1])?;
            rows.neighbors(next, last, inverses[j])?;
            if let Some(public) = preprocessed.get(j) {
                rows.fix(addresses[j], *public, [last[0], next[0]])?;
            }
            last = next;
        }
        let parameters = CRHParametersVar { parameters: POSEIDON.clone() };
        let gadget = |wire: Wire| FpVar::Var(AllocatedFp::new(Some(wire.1), wire.0, cs.clone()));
        for (leaf, path) in [by_slot, sorted].into_iter().zip(&request.paths) {
            let mut node = gadget(leaf);
            for sibling in path {
                let sibling = FpVar::new_witness(cs.clone(), || Ok(*sibling))?;
                node = TwoToOneCRHGadget::compress(&parameters, &node, &sibling)?;
            }
        }
        let slots: Vec<FpVar<Fr>> = values.iter().map(|wire| gadget(*wire)).collect();
        author(self.author_rows, &slots)?;
        Ok(range)
    }

    /// Returns the assignment of all variables.
    ///
    /// # Errors
    /// If a gadget fails.
    pub fn witness(&self, trace: &Subtrace, request: &ProveRequest) -> Result<Vec<Fr>, Error> {
        let mode =
            SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
        let cs = ConstraintSystem::<Fr>::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        cs.set_mode(mode);
        self.synthesize(&cs, trace, request)?;
        let inner = cs.into_inner().ok_or("the constraint system is in use")?;
        let mut z = inner.assignments.instance_assignment;
        z.extend(inner.assignments.witness_assignment);
        Ok(z)
    }
}

/// The matrices of a subcircuit.
#[derive(Debug)]
pub struct System {
    /// The sizes it was made from.
    pub shape: Shape,
    /// The number of rows.
    pub rows: usize,
    /// The number of variables, the constant 1 included.
    pub variables: usize,
    /// The public variables, the constant 1 included.
    pub public: Range<usize>,
    /// The committed variables.
    pub committed: Range<usize>,
    matrices: Matrices,
}

impl System {
    /// Synthesizes the matrices, and checks that the witness satisfies them.
    ///
    /// # Errors
    /// If a gadget fails, or the witness does not satisfy a row.
    pub fn new(shape: Shape, trace: &Subtrace, request: &ProveRequest) -> Result<Self, Error> {
        let cs = ConstraintSystem::<Fr>::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        let committed = shape.synthesize(&cs, trace, request)?;
        cs.finalize();
        let matrices = cs.to_matrices()?;
        let Some([a, b, c]) = matrices.values().next().map(Vec::as_slice) else {
            return Err("expected three matrices".into());
        };
        let public = 0..cs.num_instance_variables();
        let variables = public.end + cs.num_witness_variables();
        let out = Self {
            shape,
            rows: a.len(),
            variables,
            public,
            committed,
            matrices: Matrices::new([a, b, c])?,
        };
        match out.unsatisfied(&shape.witness(trace, request)?) {
            Some(row) => Err(format!("the witness does not satisfy row {row}").into()),
            None => Ok(out),
        }
    }

    /// The matrices A, B and C.
    pub fn matrices(&self) -> [Matrix<'_>; 3] {
        self.matrices.all()
    }

    /// The first row that an assignment does not satisfy.
    pub fn unsatisfied(&self, z: &[Fr]) -> Option<usize> {
        let [a, b, c] = self.matrices();
        (0..self.rows).find(|i| a.row(*i, z) * b.row(*i, z) != c.row(*i, z))
    }

    /// The variables that occur in these matrices (0 for A to 2 for C), in ascending order.
    #[allow(clippy::cast_possible_truncation, reason = "entries hold variables in 32 bits")]
    pub fn occurring(&self, matrices: Range<usize>) -> Vec<u32> {
        let mut used = vec![false; self.variables];
        for [variable, _] in self.matrices.sides[matrices].iter().flat_map(|m| &m.entries) {
            used[*variable as usize] = true;
        }
        (0..self.variables).filter(|j| used[*j]).map(|j| j as u32).collect()
    }
}
