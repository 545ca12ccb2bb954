//! A worker's side of the aggregation: one contiguous block of subcircuits (PROTOCOL, section 6).
//!
//! The block's size is a power of two. Each phase is a type that the next one consumes; big vectors stay in the block,
//! only a few group elements leave it. Miller loops leave before their final exponentiation, so that the coordinator
//! multiplies the blocks' parts and exponentiates once. Results do not depend on how the vectors are cut.

use crate::keys::{AggregationKey, KeyFileError};
use crate::mirage::MirageProof;
use ark_ff::{Field, Zero};
use hekaton_arith::{FixedBase, Fr, G1Point, G2Point, Group, MillerLoop, pairs};
use hekaton_circuit::MemoryChallenges;
use std::ops::Range;

/// Padded vectors of proofs, by instance; pads are infinity and zero.
#[derive(Clone, Debug, PartialEq)]
pub struct ProofVectors {
    pub(crate) a: Vec<G1Point>,
    pub(crate) b: Vec<G2Point>,
    pub(crate) c: Vec<G1Point>,
    pub(crate) e: Vec<Fr>,
}

impl ProofVectors {
    /// The proofs with their instances, padded to a power of two.
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

    /// The part of a contiguous range.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self {
            a: self.a[range.clone()].to_vec(),
            b: self.b[range.clone()].to_vec(),
            c: self.c[range.clone()].to_vec(),
            e: self.e[range].to_vec(),
        }
    }
}

/// What all blocks of a run read.
pub struct Shared<'k> {
    pub(crate) key: &'k AggregationKey,
    pub(crate) k: G1Point,
    pub(crate) h_table: FixedBase<G2Point>,
    pub(crate) k_table: FixedBase<G1Point>,
    /// Test double: a prover that cuts the ledger key elsewhere.
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

    /// N, the length of the padded vectors.
    pub(crate) fn padded(&self) -> usize {
        self.key.instances().next_power_of_two()
    }

    /// The instances for which Theta' has the ledger's part: n. A pad beyond them must not count in the LogUp sum
    /// (spec: aggregation#vectors).
    pub(crate) fn ledger(&self) -> usize {
        #[cfg(test)]
        if let Some(ledger) = self.other_ledger {
            return ledger;
        }
        self.key.instances()
    }
}

/// Phase A: the block's commitments D.
pub(crate) struct CommittedBlock<'s> {
    shared: &'s Shared<'s>,
    range: Range<usize>,
    v: Vec<G2Point>,
    d: Vec<G1Point>,
}

impl<'s> CommittedBlock<'s> {
    /// `d` has the block's commitments, pads included.
    pub(crate) fn new(
        shared: &'s Shared<'s>,
        range: Range<usize>,
        d: Vec<G1Point>,
    ) -> Result<Self, KeyFileError> {
        let psi = shared.key.psi()?;
        let v = range.clone().map(|i| psi[2 * i]).collect();
        Ok(Self { shared, range, v, d })
    }

    /// The block's part of cm_D.
    pub(crate) fn commitment(&self) -> MillerLoop {
        MillerLoop::new(&self.d, &self.v)
    }

    /// The instances of the block.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Phase B: takes the block's proofs.
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
    /// Puts the parts of two blocks together.
    pub(crate) fn combine(&self, other: &Self) -> Self {
        Self {
            a: self.a.combine(&other.a),
            b: self.b.combine(&other.b),
            c: self.c.combine(&other.c),
            v_e: self.v_e.add(&other.v_e),
        }
    }
}

/// Phase B: commitments and proofs.
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

/// The sums of a vector over the block: weighted by r^i for each type, and plain (weight 1) over the ledger.
#[derive(Clone, Debug)]
pub struct Sums<T> {
    pub(crate) by_type: Vec<T>,
    pub(crate) plain: T,
}

/// Phase C: what the cross terms need of the block, by "collapse by type".
#[derive(Clone, Debug)]
pub struct BlockSums {
    pub(crate) a: Sums<G1Point>,
    pub(crate) s: Sums<G1Point>,
    pub(crate) c: Sums<G1Point>,
    pub(crate) d: Sums<G1Point>,
    pub(crate) e: Sums<Fr>,
    /// `sum r^-i w_i` over the ledger
    pub(crate) w_r: G1Point,
}

impl BlockSums {
    /// Adds up the blocks' sums.
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

impl<'s> ProvenBlock<'s> {
    /// The block's instances below n; empty for a block of pads.
    fn real(&self) -> Range<usize> {
        let n = self.shared.key.instances();
        self.range.start.min(n)..self.range.end.min(n)
    }

    /// Phase C: given r and the memory challenges.
    pub(crate) fn weigh(
        self,
        r: Fr,
        memory: &MemoryChallenges,
    ) -> Result<(WeightedBlock<'s>, BlockSums), KeyFileError> {
        let size = self.range.len();
        let start = self.range.start as u64;
        let r_inverse = r.inverse().unwrap_or_default();
        let scale = |x: Fr| {
            let mut power = x.pow([start]);
            let mut out = Vec::with_capacity(size);
            for _ in 0..size {
                out.push(power);
                power *= x;
            }
            out
        };
        let (weights, inverse_weights) = (scale(r), scale(r_inverse));
        let key = self.shared.key;
        let real = self.real();
        let types: Vec<usize> =
            key.type_of()?[real.clone()].iter().map(|kind| *kind as usize).collect();
        let (st, sb, sg) = (&key.st()?[real.clone()], &key.sb()?[real.clone()], key.sg()?);
        // pads may be nonzero only when a test cheats; they belong to no type, and to the ledger only if it is not truncated
        let ledger =
            self.shared.ledger().clamp(self.range.start, self.range.end) - self.range.start;

        let mut members: Vec<Vec<u32>> = vec![Vec::new(); key.types()];
        types.iter().enumerate().for_each(|(i, kind)| members[*kind].push(i as u32));
        let by_type: Vec<Vec<Fr>> =
            members.iter().map(|m| m.iter().map(|i| weights[*i as usize]).collect()).collect();
        let sums = |points: &[G1Point]| Sums {
            by_type: (members.iter().zip(&by_type))
                .map(|(list, weights)| {
                    let points: Vec<G1Point> = list.iter().map(|i| points[*i as usize]).collect();
                    G1Point::msm(&points, weights)
                })
                .collect(),
            plain: G1Point::sum(&points[..ledger.min(points.len())]),
        };
        let (s_t, s_b) = (sums(st), sums(sb));
        let counts = members.iter().map(|list| Fr::from(list.len() as u64));
        let s_by_type = (by_type.iter().zip(sg)).zip(s_t.by_type.iter().zip(&s_b.by_type)).map(
            |((weights, g), (t, b))| {
                let weight: Fr = weights.iter().sum();
                G1Point::sum(&[*t, g.mul(&(weight * memory.g)), b.mul(&memory.b)])
            },
        );
        let s = Sums {
            by_type: s_by_type.collect(),
            plain: G1Point::sum(&[
                s_t.plain,
                s_b.plain.mul(&memory.b),
                G1Point::msm(sg, &counts.map(|n| n * memory.g).collect::<Vec<_>>()),
            ]),
        };
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
            w_r: G1Point::msm(&self.w[..ledger], &inverse_weights[..ledger]),
        };
        let block = WeightedBlock { block: self, memory: *memory, types, weights, inverse_weights };
        Ok((block, sums))
    }
}

/// Phase C: with the powers of r.
pub(crate) struct WeightedBlock<'s> {
    block: ProvenBlock<'s>,
    memory: MemoryChallenges,
    /// type of each real instance
    types: Vec<usize>,
    /// r^i and r^-i
    weights: Vec<Fr>,
    inverse_weights: Vec<Fr>,
}

impl<'s> WeightedBlock<'s> {
    /// Phase D: `P'_i = r^i (S_i + s1 C_i + s2 D_i + s1 s2 e_i K)`; gives the block's part of `P * B`.
    pub(crate) fn fold_blocks(
        self,
        s1: Fr,
        s2: Fr,
    ) -> Result<(FoldedBlock<'s>, MillerLoop), KeyFileError> {
        let Self { block, memory, types, weights, inverse_weights } = self;
        let key = block.shared.key;
        let real = block.real();
        let scaled = |factor: Fr| weights.iter().map(|w| *w * factor).collect::<Vec<_>>();
        let mut p = G1Point::mul_each(&block.c, &scaled(s1));
        G1Point::batch_add(&mut p, &G1Point::mul_each(&block.d, &scaled(s2)));
        let ledger: Vec<Fr> = block.e.iter().zip(scaled(s1 * s2)).map(|(e, w)| *e * w).collect();
        G1Point::batch_add(&mut p, &block.shared.k_table.mul_each(&ledger));
        let sg = G1Point::mul_all(key.sg()?, &memory.g);
        let mut s: Vec<G1Point> = types.iter().map(|kind| sg[*kind]).collect();
        G1Point::batch_add(&mut s, &key.st()?[real.clone()]);
        let s = G1Point::mul_each(&s, &weights[..real.len()]);
        let sb = G1Point::mul_each(&key.sb()?[real.clone()], &scaled(memory.b)[..real.len()]);
        G1Point::batch_add(&mut p[..real.len()], &s);
        G1Point::batch_add(&mut p[..real.len()], &sb);
        let product = MillerLoop::new(&p, &block.b);
        Ok((FoldedBlock { block, p, types, weights, inverse_weights }, product))
    }
}

/// Phase D: with P.
pub(crate) struct FoldedBlock<'s> {
    block: ProvenBlock<'s>,
    p: Vec<G1Point>,
    types: Vec<usize>,
    weights: Vec<Fr>,
    inverse_weights: Vec<Fr>,
}

impl FoldedBlock<'_> {
    /// Phase E: the vectors of the inner-product argument. `q` has `s3^-1 (gamma + s1^-1 delta_c + s2^-1 eta_c +
    /// (s1 s2)^-1 Theta_c)` for each type, `ledger` is `-zeta / (s1 s2 s3)`.
    pub(crate) fn start(self, s3: Fr, q: &[G2Point], ledger: Fr) -> FoldingBlock {
        let Self { block, p, types, weights, inverse_weights } = self;
        let mut l = G1Point::mul_each(&block.a, &weights);
        G1Point::batch_add(&mut l, &G1Point::mul_all(&p, &-s3));
        let mut r = block.b;
        let q: Vec<G2Point> = types.iter().map(|kind| q[*kind]).collect();
        G2Point::batch_add(&mut r[..q.len()], &q);
        let in_ledger =
            block.shared.ledger().clamp(block.range.start, block.range.end) - block.range.start;
        let scalars: Vec<Fr> = inverse_weights[..in_ledger].iter().map(|w| *w * ledger).collect();
        G2Point::batch_add(&mut r[..in_ledger], &block.shared.h_table.mul_each(&scalars));
        let v = G2Point::mul_each(&block.v, &inverse_weights);
        FoldingBlock { l, r, v, w: block.w }
    }
}

/// Phase E: vectors that are halved round after round.
#[derive(Clone, Debug)]
pub struct FoldingBlock {
    pub(crate) l: Vec<G1Point>,
    pub(crate) r: Vec<G2Point>,
    pub(crate) v: Vec<G2Point>,
    pub(crate) w: Vec<G1Point>,
}

fn halves<G: Copy>(
    x: &[G],
) -> (impl Iterator<Item = &G> + Clone, impl Iterator<Item = &G> + Clone) {
    (x.iter().step_by(2), x.iter().skip(1).step_by(2))
}

impl FoldingBlock {
    pub(crate) fn len(&self) -> usize {
        self.l.len()
    }

    /// The block's parts of T_L, T_R, U_L, U_R, Z_L, Z_R.
    pub(crate) fn products(&self) -> [MillerLoop; 6] {
        let Self { l, w, r, v, .. } = self;
        assert!(
            [w.len(), r.len(), v.len()] == [l.len(); 3],
            "vectors of a block of different length"
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

    /// One halving: `L <- L_e + x L_o, v <- v_e + x^-1 v_o, R <- R_e + x^-1 R_o, w <- w_e + x w_o`.
    pub(crate) fn fold(self, x: Fr, x_inverse: Fr) -> Self {
        Self {
            l: G1Point::fold_pairs(&self.l, &x),
            r: G2Point::fold_pairs(&self.r, &x_inverse),
            v: G2Point::fold_pairs(&self.v, &x_inverse),
            w: G1Point::fold_pairs(&self.w, &x),
        }
    }

    /// Puts blocks together, in order (phase F).
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

    /// Cuts into blocks of at least `size`, a power of two, so that rounds can be shared out.
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
