//! A worker's side of the aggregation: one contiguous block of subcircuits (spec:
//! distributed#blocks, distributed#phases).
//!
//! The block's size is a power of two. Each phase is a type that the next one consumes; large
//! vectors stay in the block, only a few group elements leave it. Products of Miller loops leave
//! before their final exponentiation, so that the coordinator multiplies the blocks' parts and
//! exponentiates once (spec: distributed#miller-loops). Results do not depend on how the vectors
//! are cut (spec: distributed#independence).

use crate::keys::{AggregationKey, KeyFileError};
use crate::mirage::MirageProof;
use ark_ff::{Field, One, Zero};
use hekaton_arith::{FixedBase, Fr, G1Point, G2Point, Group, MillerLoop, pairs};
use hekaton_circuit::MemoryChallenges;
use std::ops::Range;

/// Padded vectors of proofs, by instance; pads are the point at infinity and zero (spec:
/// aggregation#padding).
#[derive(Clone, Debug, PartialEq)]
pub struct ProofVectors {
    pub(crate) a: Vec<G1Point>,
    pub(crate) b: Vec<G2Point>,
    pub(crate) c: Vec<G1Point>,
    pub(crate) e: Vec<Fr>,
}

impl ProofVectors {
    /// Places the proofs at their instances, in vectors padded to a power of two.
    pub(crate) fn new<'p>(
        proofs: impl Iterator<Item = (usize, &'p MirageProof)>,
        padded: usize,
    ) -> Self {
        let mut out = Self {
            a: vec![G1Point::IDENTITY; padded],
            b: vec![G2Point::IDENTITY; padded],
            c: vec![G1Point::IDENTITY; padded],
            e: vec![Fr::zero(); padded],
        };
        for (i, proof) in proofs {
            (out.a[i], out.b[i], out.c[i], out.e[i]) = (proof.a, proof.b, proof.c, proof.e);
        }
        out
    }

    pub(crate) fn len(&self) -> usize {
        self.a.len()
    }

    /// Returns the part of a contiguous range.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self {
            a: self.a[range.clone()].to_vec(),
            b: self.b[range.clone()].to_vec(),
            c: self.c[range.clone()].to_vec(),
            e: self.e[range].to_vec(),
        }
    }
}

/// The data that all blocks of a run read.
pub struct Shared<'k> {
    pub(crate) key: &'k AggregationKey,
    pub(crate) k: G1Point,
    pub(crate) h_table: FixedBase<G2Point>,
    pub(crate) k_table: FixedBase<G1Point>,
    /// Test double: a prover that truncates the ledger sum at another length than n.
    #[cfg(test)]
    pub(crate) other_ledger: Option<usize>,
}

impl std::fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("key", self.key).finish_non_exhaustive()
    }
}

impl<'k> Shared<'k> {
    pub(crate) fn new(key: &'k AggregationKey, k: G1Point) -> Self {
        let n = key.instances();
        let (h_table, k_table) = (FixedBase::new(&G2Point::generator(), n), FixedBase::new(&k, n));
        Self {
            key,
            k,
            h_table,
            k_table,
            #[cfg(test)]
            other_ledger: None,
        }
    }

    /// Returns the length N of the padded vectors.
    pub(crate) fn padded(&self) -> usize {
        self.key.instances().next_power_of_two()
    }

    /// Returns the number of instances for which Theta' has the part of the ledger sum: n. A pad
    /// beyond them must not count in the sum of the LogUp argument (spec: aggregation#truncation).
    pub(crate) fn ledger(&self) -> usize {
        #[cfg(test)]
        if let Some(ledger) = self.other_ledger {
            return ledger;
        }
        self.key.instances()
    }
}

/// The block after phase A, with the commitments D (spec: distributed#phase-a).
pub(crate) struct CommittedBlock<'s> {
    shared: &'s Shared<'s>,
    range: Range<usize>,
    v: Vec<G2Point>,
    d: Vec<G1Point>,
}

impl<'s> CommittedBlock<'s> {
    /// Takes the block's commitments, pads included.
    pub(crate) fn new(
        shared: &'s Shared<'s>,
        range: Range<usize>,
        d: Vec<G1Point>,
    ) -> Result<Self, KeyFileError> {
        let psi = shared.key.psi()?;
        // Even powers only: [psi]_1 is public and could move an element between consecutive powers
        // (spec: aggregation#srs).
        let v = range.clone().map(|i| psi[2 * i]).collect();
        Ok(Self { shared, range, v, d })
    }

    /// Returns the block's part of cm_D.
    pub(crate) fn commitment(&self) -> MillerLoop {
        MillerLoop::new(&self.d, &self.v)
    }

    /// Returns the instances of the block.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Phase B: takes the block's proofs; returns their commitments (spec: distributed#phase-b,
    /// aggregation#commitments).
    pub(crate) fn prove(
        self,
        proofs: ProofVectors,
    ) -> Result<(ProvenBlock<'s>, ProofCommitments), KeyFileError> {
        let Self { shared, range, v, d } = self;
        let phi = shared.key.phi()?;
        let w: Vec<G1Point> = range.clone().map(|i| phi[2 * i]).collect();
        let ProofVectors { a, b, c, e } = proofs;
        let products = [pairs(&a, &v).collect(), pairs(&w, &b).collect(), pairs(&c, &v).collect()];
        let [cm_a, cm_b, cm_c] = MillerLoop::many(products);
        // spec: aggregation#ledger: V_e = sum e_i v_i, so each E_i is a multiple of K by
        // construction.
        let commitments = ProofCommitments { a: cm_a, b: cm_b, c: cm_c, v_e: G2Point::msm(&v, &e) };
        Ok((ProvenBlock { shared, range, v, w, a, b, c, d, e }, commitments))
    }
}

/// The block's parts of cm_A, cm_B, cm_C and V_e.
#[derive(Clone, Debug)]
pub struct ProofCommitments {
    pub(crate) a: MillerLoop,
    pub(crate) b: MillerLoop,
    pub(crate) c: MillerLoop,
    pub(crate) v_e: G2Point,
}

impl ProofCommitments {
    /// Combines the parts of two blocks.
    pub(crate) fn combine(&self, other: &Self) -> Self {
        Self {
            a: self.a.combine(&other.a),
            b: self.b.combine(&other.b),
            c: self.c.combine(&other.c),
            v_e: self.v_e.add(&other.v_e),
        }
    }
}

/// The block after phase B, with commitments and proofs.
pub(crate) struct ProvenBlock<'s> {
    shared: &'s Shared<'s>,
    range: Range<usize>,
    v: Vec<G2Point>,
    w: Vec<G1Point>,
    a: Vec<G1Point>,
    b: Vec<G2Point>,
    c: Vec<G1Point>,
    d: Vec<G1Point>,
    e: Vec<Fr>,
}

/// The sums of a vector over the block: weighted by r^i for each type, and plain (weight 1) over
/// the instances of the ledger sum (spec: aggregation#collapse).
#[derive(Clone, Debug)]
pub struct Sums<T> {
    pub(crate) by_type: Vec<T>,
    pub(crate) plain: T,
}

/// The result of phase C: the sums of the block that the cross terms need, by collapse by type (spec:
/// distributed#phase-c).
#[derive(Clone, Debug)]
pub struct BlockSums {
    pub(crate) a: Sums<G1Point>,
    pub(crate) s: Sums<G1Point>,
    pub(crate) c: Sums<G1Point>,
    pub(crate) d: Sums<G1Point>,
    pub(crate) e: Sums<Fr>,
    /// The sum of `r^-i w_i` over the instances of the ledger sum.
    pub(crate) w_r: G1Point,
}

impl BlockSums {
    /// Adds the sums of another block.
    pub(crate) fn add(mut self, other: &Self) -> Self {
        fn join<T: Copy>(a: &mut Sums<T>, b: &Sums<T>, add: impl Fn(&T, &T) -> T) {
            a.by_type.iter_mut().zip(&b.by_type).for_each(|(x, y)| *x = add(x, y));
            a.plain = add(&a.plain, &b.plain);
        }
        join(&mut self.a, &other.a, G1Point::add);
        join(&mut self.s, &other.s, G1Point::add);
        join(&mut self.c, &other.c, G1Point::add);
        join(&mut self.d, &other.d, G1Point::add);
        join(&mut self.e, &other.e, |x, y| *x + y);
        self.w_r = self.w_r.add(&other.w_r);
        self
    }
}

/// Returns `count` powers of x from x^start on.
fn powers_from(x: Fr, start: usize, count: usize) -> Vec<Fr> {
    let first = x.pow([start as u64]);
    std::iter::successors(Some(first), |power| Some(*power * x)).take(count).collect()
}

/// Sums points by type with weights, and plainly over the first `ledger` instances. `members` has
/// the instances of each type in the block, `weights` their weights.
fn sums_by_type(
    points: &[G1Point],
    members: &[Vec<u32>],
    weights: &[Vec<Fr>],
    ledger: usize,
) -> Sums<G1Point> {
    let by_type = members.iter().zip(weights).map(|(list, weights)| {
        let points: Vec<G1Point> = list.iter().map(|i| points[*i as usize]).collect();
        G1Point::msm(&points, weights)
    });
    Sums { by_type: by_type.collect(), plain: G1Point::sum(&points[..ledger.min(points.len())]) }
}

/// The parts of S that all instances of a type share, each with the challenge that multiplies it.
fn shared_parts<'k>(
    key: &'k AggregationKey,
    memory: &MemoryChallenges,
) -> Result<Vec<(&'k [G1Point], Fr)>, KeyFileError> {
    let mut parts = vec![(key.sg()?, memory.g)];
    parts.extend(key.buses()?.map(|buses| (buses.tags, memory.b_t)));
    Ok(parts)
}

/// The parts of S that each instance has of its own, but for St, with their challenges.
fn own_parts<'k>(
    key: &'k AggregationKey,
    memory: &MemoryChallenges,
) -> Result<Vec<(&'k [G1Point], Fr)>, KeyFileError> {
    let mut parts = vec![(key.sb()?, memory.b)];
    parts.extend(key.buses()?.map(|buses| (buses.values, memory.b_v)));
    Ok(parts)
}

/// Sums the public parts S_i from the sums of the parts that each instance has of its own, the first
/// of which no challenge multiplies. S is affine in the challenges, so they multiply sums, not points
/// (spec: memory-check#preprocessed).
fn weigh_public(
    shared: &[(&[G1Point], Fr)],
    weights: &[Vec<Fr>],
    own: &[(Sums<G1Point>, Fr)],
) -> Sums<G1Point> {
    let weighed = |sum: &G1Point, factor: &Fr| match factor.is_one() {
        true => *sum,
        false => sum.mul(factor),
    };
    let by_type = weights.iter().enumerate().map(|(kind, weights)| {
        let weight: Fr = weights.iter().sum();
        let of_type = own.iter().map(|(sums, factor)| weighed(&sums.by_type[kind], factor));
        let constant = shared.iter().map(|(points, factor)| points[kind].mul(&(weight * factor)));
        G1Point::sum(&of_type.chain(constant).collect::<Vec<_>>())
    });
    let plain = own.iter().map(|(sums, factor)| weighed(&sums.plain, factor));
    let constant = shared.iter().map(|(points, factor)| {
        // One weight per instance of a type.
        let counts: Vec<Fr> =
            weights.iter().map(|list| Fr::from(list.len() as u64) * factor).collect();
        G1Point::msm(points, &counts)
    });
    let plain = G1Point::sum(&plain.chain(constant).collect::<Vec<_>>());
    Sums { plain, by_type: by_type.collect() }
}

impl<'s> ProvenBlock<'s> {
    /// Returns the block's instances below n; empty for a block of pads.
    fn real(&self) -> Range<usize> {
        let n = self.shared.key.instances();
        self.range.start.min(n)..self.range.end.min(n)
    }

    /// Returns how many of the block's instances count in the ledger sum.
    fn in_ledger(&self) -> usize {
        self.shared.ledger().clamp(self.range.start, self.range.end) - self.range.start
    }

    /// Phase C: weights the vectors by powers of r and sums them by type (spec:
    /// distributed#phase-c, aggregation#collapse).
    #[allow(clippy::cast_possible_truncation, reason = "layouts have at most 2^31 instances")]
    pub(crate) fn weigh(
        self,
        r: Fr,
        memory: &MemoryChallenges,
    ) -> Result<(WeightedBlock<'s>, BlockSums), KeyFileError> {
        // Weights are powers by global index, so that they do not depend on how vectors are cut
        // (spec: aggregation#weights).
        let r_inverse = r.inverse().expect("the transcript draws no r = 0");
        let weights = powers_from(r, self.range.start, self.range.len());
        let inverse_weights = powers_from(r_inverse, self.range.start, self.range.len());
        let key = self.shared.key;
        let real = self.real();
        let types: Vec<usize> =
            key.type_of()?[real.clone()].iter().map(|kind| *kind as usize).collect();
        let ledger = self.in_ledger();

        // Collapse by type: all right-hand vectors but B take one value per type or are r^-i H, so
        // sums by type and one plain sum (r^i r^-i = 1) are all the cross terms need. Pads belong
        // to no type; they are nonzero only when a test cheats.
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); key.types()];
        types.iter().enumerate().for_each(|(i, kind)| members[*kind].push(i as u32));
        let by_type: Vec<Vec<Fr>> =
            members.iter().map(|m| m.iter().map(|i| weights[*i as usize]).collect()).collect();
        let sums = |points: &[G1Point]| sums_by_type(points, &members, &by_type, ledger);
        let mut own = vec![(sums(&key.st()?[real.clone()]), Fr::ONE)];
        for (points, factor) in own_parts(key, memory)? {
            own.push((sums(&points[real.clone()]), factor));
        }
        let s = weigh_public(&shared_parts(key, memory)?, &by_type, &own);
        let e = Sums {
            by_type: members
                .iter()
                .map(|m| m.iter().map(|i| self.e[*i as usize] * weights[*i as usize]).sum())
                .collect(),
            plain: self.e[..ledger].iter().sum(),
        };
        let sums = BlockSums {
            a: sums(&self.a),
            s,
            c: sums(&self.c),
            d: sums(&self.d),
            e,
            // The key of the ledger part of cm_Theta' (spec: aggregation#claim), truncated like it.
            w_r: G1Point::msm(&self.w[..ledger], &inverse_weights[..ledger]),
        };
        let block = WeightedBlock { block: self, memory: *memory, types, weights, inverse_weights };
        Ok((block, sums))
    }
}

/// The block after phase C, with the powers of r.
pub(crate) struct WeightedBlock<'s> {
    block: ProvenBlock<'s>,
    memory: MemoryChallenges,
    /// The type of each instance below n.
    types: Vec<usize>,
    /// The weights r^i, and r^-i.
    weights: Vec<Fr>,
    inverse_weights: Vec<Fr>,
}

impl<'s> WeightedBlock<'s> {
    /// Phase D: computes `P_i = r^i (S_i + s1 C_i + s2 D_i + s1 s2 e_i K)` and returns the block's
    /// part of X3+ = `P * B`, the only cross term with n Miller loops (spec: distributed#phase-d,
    /// aggregation#cross-terms).
    pub(crate) fn fold_blocks(
        self,
        s1: Fr,
        s2: Fr,
    ) -> Result<(FoldedBlock<'s>, MillerLoop), KeyFileError> {
        let Self { block, memory, types, weights, inverse_weights } = self;
        let key = block.shared.key;
        let real = block.real();
        // The weights are multiplied into the scalars, which leaves one product per point.
        let scaled = |factor: Fr| weights.iter().map(|w| *w * factor).collect::<Vec<_>>();
        let mut p = G1Point::mul_each(&block.c, &scaled(s1));
        G1Point::batch_add(&mut p, &G1Point::mul_each(&block.d, &scaled(s2)));
        let ledger: Vec<Fr> = block.e.iter().zip(scaled(s1 * s2)).map(|(e, w)| *e * w).collect();
        G1Point::batch_add(&mut p, &block.shared.k_table.mul_each(&ledger));
        // S exists below n only: pads have no preprocessed wires (spec: aggregation#padding).
        let mut s = key.st()?[real.clone()].to_vec();
        for (points, factor) in shared_parts(key, &memory)? {
            let by_type = G1Point::mul_all(points, &factor);
            let points: Vec<G1Point> = types.iter().map(|kind| by_type[*kind]).collect();
            G1Point::batch_add(&mut s, &points);
        }
        let s = G1Point::mul_each(&s, &weights[..real.len()]);
        G1Point::batch_add(&mut p[..real.len()], &s);
        for (points, factor) in own_parts(key, &memory)? {
            let terms = G1Point::mul_each(&points[real.clone()], &scaled(factor)[..real.len()]);
            G1Point::batch_add(&mut p[..real.len()], &terms);
        }
        let product = MillerLoop::new(&p, &block.b);
        Ok((FoldedBlock { block, p, types, weights, inverse_weights }, product))
    }
}

/// The block after phase D, with P.
pub(crate) struct FoldedBlock<'s> {
    block: ProvenBlock<'s>,
    p: Vec<G1Point>,
    types: Vec<usize>,
    weights: Vec<Fr>,
    inverse_weights: Vec<Fr>,
}

impl FoldedBlock<'_> {
    /// Starts phase E: computes the vectors of the inner product argument (spec:
    /// distributed#phase-e, aggregation#cross-terms). `q` has `s3^-1 (gamma + s1^-1 delta_c + s2^-1
    /// eta_c + (s1 s2)^-1 Theta_c)` for each type, `ledger` is `-zeta / (s1 s2 s3)`.
    pub(crate) fn start(self, s3: Fr, q: &[G2Point], ledger: Fr) -> FoldingBlock {
        let Self { block, p, types, weights, inverse_weights } = self;
        // L = A' - s3 P
        let mut l = G1Point::mul_each(&block.a, &weights);
        G1Point::batch_add(&mut l, &G1Point::mul_all(&p, &-s3));
        // R = B + s3^-1 Q, where Theta' has its part -zeta r^-i H for i < n only: without this
        // truncation an e at a pad could repair a false sum (spec: aggregation#truncation).
        let in_ledger = block.in_ledger();
        let mut r = block.b;
        let q: Vec<G2Point> = types.iter().map(|kind| q[*kind]).collect();
        G2Point::batch_add(&mut r[..q.len()], &q);
        let scalars: Vec<Fr> = inverse_weights[..in_ledger].iter().map(|w| *w * ledger).collect();
        G2Point::batch_add(&mut r[..in_ledger], &block.shared.h_table.mul_each(&scalars));
        // v'_i = r^-i v_i moves the weights to the key, so that cm_A also commits to A' (spec:
        // aggregation#targets).
        let v = G2Point::mul_each(&block.v, &inverse_weights);
        FoldingBlock { l, r, v, w: block.w }
    }
}

/// The block in phase E: vectors that each GIPA round halves (spec: aggregation#gipa).
#[derive(Clone, Debug)]
pub struct FoldingBlock {
    pub(crate) l: Vec<G1Point>,
    pub(crate) r: Vec<G2Point>,
    pub(crate) v: Vec<G2Point>,
    pub(crate) w: Vec<G1Point>,
}

/// The elements of even and of odd index. Pairs are neighbors, so a block whose start and length
/// are multiples of 2^d does d rounds without data from other blocks (spec:
/// aggregation#gipa-order).
fn halves<G: Copy>(
    x: &[G],
) -> (impl Iterator<Item = &G> + Clone, impl Iterator<Item = &G> + Clone) {
    (x.iter().step_by(2), x.iter().skip(1).step_by(2))
}

impl FoldingBlock {
    pub(crate) fn len(&self) -> usize {
        self.l.len()
    }

    /// Returns the block's parts of T_L, T_R, U_L, U_R, Z_L and Z_R, in this order.
    pub(crate) fn products(&self) -> [MillerLoop; 6] {
        let Self { l, w, r, v, .. } = self;
        assert!(
            [w.len(), r.len(), v.len()] == [l.len(); 3],
            "the vectors of a block differ in length"
        );
        let (l_even, l_odd) = halves(l);
        let (w_even, w_odd) = halves(w);
        let (r_even, r_odd) = halves(r);
        let (v_even, v_odd) = halves(v);
        MillerLoop::many([
            l_odd.clone().zip(v_even).collect(),
            l_even.clone().zip(v_odd).collect(),
            w_odd.zip(r_even.clone()).collect(),
            w_even.zip(r_odd.clone()).collect(),
            l_odd.zip(r_even).collect(),
            l_even.zip(r_odd).collect(),
        ])
    }

    /// Folds for one GIPA round: `L <- L_e + x L_o, v <- v_e + x^-1 v_o, R <- R_e + x^-1 R_o, w <-
    /// w_e + x w_o`. The short challenge x^-1 is on the G2 side (spec:
    /// aggregation#gipa-challenges).
    pub(crate) fn fold(self, x: Fr, x_inverse: Fr) -> Self {
        Self {
            l: G1Point::fold_pairs(&self.l, &x),
            r: G2Point::fold_pairs(&self.r, &x_inverse),
            v: G2Point::fold_pairs(&self.v, &x_inverse),
            w: G1Point::fold_pairs(&self.w, &x),
        }
    }

    /// Joins blocks in order (phase F).
    pub(crate) fn join(blocks: Vec<Self>) -> Self {
        let mut out = Self { l: Vec::new(), r: Vec::new(), v: Vec::new(), w: Vec::new() };
        for block in blocks {
            out.l.extend(block.l);
            out.r.extend(block.r);
            out.v.extend(block.v);
            out.w.extend(block.w);
        }
        out
    }

    /// Cuts into blocks of `size`, a power of two, so that the work of a round can be distributed.
    pub(crate) fn split(self, size: usize) -> Vec<Self> {
        let starts = (0..self.len()).step_by(size);
        starts
            .map(|at| Self {
                l: self.l[at..at + size].to_vec(),
                r: self.r[at..at + size].to_vec(),
                v: self.v[at..at + size].to_vec(),
                w: self.w[at..at + size].to_vec(),
            })
            .collect()
    }
}
