//! Who holds the vectors of the aggregation: [`LocalBlocks`] on the threads of this process, ranks
//! behind the same trait ([`crate::distributed`]).
//!
//! Each phase of the aggregation is one method (spec: distributed#phases). All results are sums and
//! products over blocks, so it does not matter who holds which (spec: distributed#independence).

use super::block::{
    BlockSums, CommittedBlock, FoldedBlock, FoldingBlock, ProofCommitments, ProofVectors,
    ProvenBlock, Shared, WeightedBlock,
};
use crate::keys::KeyFileError;
use crate::pool::LocalEngine;
use crate::rank_error::RankError;
use crate::verifier::polynomials::{fold_coefficients, quotient};
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop, powers};
use hekaton_circuit::MemoryChallenges;
use std::ops::Range;

/// Minimum length of a block: below it, the work per block does not pay for distributing it.
pub(crate) const SMALLEST_BLOCK: usize = 8;

/// The phases A to G of the aggregation over all blocks (spec: distributed#phases).
pub trait Blocks {
    /// The threads of this process, for the GIPA rounds that are left when all blocks have one element.
    fn pool(&self) -> &LocalEngine;

    /// Phase A: takes the padded commitments; returns the product of Miller loops whose final
    /// exponentiation is cm_D.
    fn commit(&mut self, d: &[G1Point]) -> Result<MillerLoop, AggregateError>;

    /// Phase B: takes the padded proofs; returns their commitments.
    fn prove(&mut self, proofs: &ProofVectors) -> Result<ProofCommitments, AggregateError>;

    /// Phase C: returns sums by type.
    fn weigh(&mut self, r: Fr, memory: &MemoryChallenges) -> Result<BlockSums, AggregateError>;

    /// Phase D: returns the Miller loops of the cross term `P * B`.
    fn fold_blocks(&mut self, s1: Fr, s2: Fr) -> Result<MillerLoop, AggregateError>;

    /// Starts phase E; returns the number of GIPA rounds that blocks can do without each other.
    fn start(&mut self, s3: Fr, q: &[G2Point], ledger: Fr) -> Result<usize, AggregateError>;

    /// Phase E: folds with the challenge of the previous GIPA round and its inverse, if there was
    /// one, and returns the products of the next round.
    fn halve(&mut self, x: Option<(Fr, Fr)>) -> Result<[MillerLoop; 6], AggregateError>;

    /// Phase F: folds likewise and returns the remainders of all blocks, in order.
    fn take(&mut self, x: Option<(Fr, Fr)>) -> Result<FoldingBlock, AggregateError>;

    /// Phase G: returns both opening proofs.
    fn open(&mut self, openings: &Openings) -> Result<(G2Point, G1Point), AggregateError>;
}

/// The challenges that determine both opening proofs.
#[derive(Clone, Debug, PartialEq)]
pub struct Openings {
    /// The challenges x_j of all GIPA rounds.
    pub(crate) x: Vec<Fr>,
    /// Their inverses.
    pub(crate) x_inverse: Vec<Fr>,
    pub(crate) r_inverse: Fr,
    pub(crate) z: Fr,
    pub(crate) rho: Fr,
}

impl Openings {
    /// Computes the slice of both quotient MSMs that belongs to a range of instances, two powers
    /// per instance (spec: distributed#phase-g, aggregation#quotients).
    pub(crate) fn open(
        &self,
        shared: &Shared<'_>,
        range: Range<usize>,
        pool: &LocalEngine,
    ) -> Result<(G2Point, G1Point), KeyFileError> {
        // f_v has powers of 1/r because v'_i = r^-i v_i was folded, f_w has none.
        let f_v = fold_coefficients(&self.x_inverse, self.r_inverse);
        // f_w + rho f_W, where f_W has n terms (spec: aggregation#openings,
        // aggregation#truncation).
        let mut f_w = fold_coefficients(&self.x, Fr::ONE);
        f_w.iter_mut()
            .zip(powers(self.r_inverse, shared.ledger()))
            .for_each(|(f, g)| *f += self.rho * g);
        // The slices of all instances cover the powers 0 to 2N - 3 once; the last one is shorter.
        let slice = |q: &[Fr]| (2 * range.start).min(q.len())..(2 * range.end).min(q.len());
        let (q_v, q_w) = (quotient(&f_v, self.z), quotient(&f_w, self.z));
        let (in_v, in_w) = (slice(&q_v), slice(&q_w));
        let pi_v = msm_in_pool(&shared.key.psi()?[in_v.clone()], &q_v[in_v], pool);
        Ok((pi_v, msm_in_pool(&shared.key.phi()?[in_w.clone()], &q_w[in_w], pool)))
    }
}

/// Computes an MSM, cut into one part per thread.
fn msm_in_pool<G: Group>(bases: &[G], scalars: &[Fr], pool: &LocalEngine) -> G {
    let size = scalars.len().div_ceil(pool.threads()).max(1);
    let parts: Vec<_> = bases.chunks(size).zip(scalars.chunks(size)).collect();
    G::sum(&pool.map(parts, |(bases, scalars)| G::msm(bases, scalars)))
}

/// Cuts a range into contiguous ranges of equal length, a power of two: at least four per thread,
/// so that all threads have work until the end; with one thread as few as possible, because long
/// batches are cheaper. The range's length is a multiple of `unit`, a power of two, and no block is
/// longer, so no GIPA round crosses blocks before they are joined (spec: distributed#blocks).
fn cut(range: Range<usize>, unit: usize, threads: usize) -> Vec<Range<usize>> {
    // With four blocks per thread, a thread that finishes early waits for a quarter of a share at
    // most.
    let (mut size, enough) = (unit, if threads == 1 { 1 } else { 4 * threads });
    while size > SMALLEST_BLOCK && range.len() / size < enough {
        size /= 2;
    }
    (0..range.len() / size).map(|i| range.start + i * size..range.start + (i + 1) * size).collect()
}

/// The blocks of a contiguous range of instances, on the threads of this process.
pub struct LocalBlocks<'s> {
    shared: &'s Shared<'s>,
    pool: &'s LocalEngine,
    range: Range<usize>,
    /// Number of GIPA rounds that need no other range: 2^rounds divides the length and the start of
    /// the range.
    rounds: usize,
    blocks: Vec<Range<usize>>,
    stage: Stage<'s>,
}

impl std::fmt::Debug for LocalBlocks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalBlocks")
            .field("range", &self.range)
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

/// The state of the blocks: each phase takes the one before and leaves its own, so a phase out of
/// order is an error.
enum Stage<'s> {
    /// Before phase A, or after an error or the last phase.
    Empty,
    Committed(Vec<CommittedBlock<'s>>),
    Proven(Vec<ProvenBlock<'s>>),
    Weighted(Vec<WeightedBlock<'s>>),
    Folded(Vec<FoldedBlock<'s>>),
    Folding {
        blocks: Vec<FoldingBlock>,
        /// Number of GIPA rounds left.
        left: usize,
    },
}

/// Why an aggregation failed, wherever its blocks are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The aggregation key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A phase was not done, or a vector had the wrong length.
    #[error("{0}")]
    Phase(String),
    /// A rank failed, or was lost.
    #[error(transparent)]
    Rank(#[from] RankError),
}

impl AggregateError {
    /// A phase was requested before the one that it needs.
    pub(crate) fn order(phase: &str) -> Self {
        Self::Phase(format!("phase {phase} of the aggregation was requested out of order"))
    }

    /// A vector has the wrong length.
    fn length(phase: &str, found: usize, expected: usize) -> Self {
        let why = format!("phase {phase} of the aggregation: {found} values, expected {expected}");
        Self::Phase(why)
    }
}

impl<'s> LocalBlocks<'s> {
    /// Creates blocks for all instances and pads.
    pub(crate) fn all(shared: &'s Shared<'s>, pool: &'s LocalEngine) -> Self {
        Self::of_range(shared, pool, 0..shared.padded(), shared.padded())
    }

    /// Creates blocks for a part of them. Start and length are multiples of `unit`, a power of two.
    pub(crate) fn of_range(
        shared: &'s Shared<'s>,
        pool: &'s LocalEngine,
        range: Range<usize>,
        unit: usize,
    ) -> Self {
        let blocks = cut(range.clone(), unit, pool.threads());
        Self { shared, pool, range, rounds: unit.ilog2() as usize, blocks, stage: Stage::Empty }
    }

    /// Checks the length of a vector. On ranks it comes from a message, and kernels panic on
    /// vectors of different lengths.
    fn check(&self, phase: &'static str, found: usize) -> Result<(), AggregateError> {
        match self.range.len() {
            expected if expected == found => Ok(()),
            expected => Err(AggregateError::length(phase, found, expected)),
        }
    }

    /// Takes the state. A phase that fails leaves [`Stage::Empty`], so no later phase can run on a
    /// part of its blocks.
    fn stage(&mut self) -> Stage<'s> {
        std::mem::replace(&mut self.stage, Stage::Empty)
    }

    /// Folds with a challenge, if there is one, and recuts blocks that have become too short.
    ///
    /// Joining keeps the order of the elements, so the result is that of one long vector (spec:
    /// aggregation#gipa-order).
    fn folded(
        &mut self,
        phase: &'static str,
        x: Option<(Fr, Fr)>,
    ) -> Result<(Vec<FoldingBlock>, usize), AggregateError> {
        let Stage::Folding { mut blocks, mut left } = self.stage() else {
            return Err(AggregateError::order(phase));
        };
        if let Some((x, x_inverse)) = x {
            // One fold more would pair elements of different ranges.
            if left == 0 {
                return Err(AggregateError::order(phase));
            }
            blocks = self.pool.map(blocks, |block| block.fold(x, x_inverse));
            left -= 1;
        }
        if left > 0 && blocks.iter().any(|block| block.len() < 2) {
            // 2^left divides the remaining length, so blocks of that size have all remaining rounds in
            // them; smaller ones are cut only to keep all threads busy.
            let all = FoldingBlock::join(blocks);
            let mut size = 1 << left;
            while size > 2 && all.len() / size < self.pool.threads() {
                size /= 2;
            }
            blocks = all.split(size);
        }
        Ok((blocks, left))
    }
}

/// Separates blocks from the parts that they returned; the first error wins.
fn unzip<A, B>(parts: Vec<Result<(A, B), KeyFileError>>) -> Result<(Vec<A>, Vec<B>), KeyFileError> {
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
}

impl Blocks for LocalBlocks<'_> {
    fn pool(&self) -> &LocalEngine {
        self.pool
    }

    fn commit(&mut self, d: &[G1Point]) -> Result<MillerLoop, AggregateError> {
        self.check("A", d.len())?;
        let start = self.range.start;
        // Ranges are indices of instances, `d` starts at the first instance of this process.
        let parts = self.pool.map(self.blocks.clone(), |range| {
            let own = d[range.start - start..range.end - start].to_vec();
            let block = CommittedBlock::new(self.shared, range, own)?;
            let commitment = block.commitment();
            Ok((block, commitment))
        });
        let (blocks, parts) = unzip(parts)?;
        self.stage = Stage::Committed(blocks);
        Ok(MillerLoop::product(parts))
    }

    fn prove(&mut self, proofs: &ProofVectors) -> Result<ProofCommitments, AggregateError> {
        self.check("B", proofs.len())?;
        let Stage::Committed(blocks) = self.stage() else { return Err(AggregateError::order("B")) };
        let start = self.range.start;
        let parts = self.pool.map(blocks, |block| {
            let range = block.range();
            block.prove(proofs.part(range.start - start..range.end - start))
        });
        let (blocks, parts) = unzip(parts)?;
        self.stage = Stage::Proven(blocks);
        parts.into_iter().reduce(|a, b| a.combine(&b)).ok_or_else(|| AggregateError::order("B"))
    }

    fn weigh(&mut self, r: Fr, memory: &MemoryChallenges) -> Result<BlockSums, AggregateError> {
        let Stage::Proven(blocks) = self.stage() else { return Err(AggregateError::order("C")) };
        let (blocks, sums) = unzip(self.pool.map(blocks, |block| block.weigh(r, memory)))?;
        self.stage = Stage::Weighted(blocks);
        sums.into_iter().reduce(|a, b| a.add(&b)).ok_or_else(|| AggregateError::order("C"))
    }

    fn fold_blocks(&mut self, s1: Fr, s2: Fr) -> Result<MillerLoop, AggregateError> {
        let Stage::Weighted(blocks) = self.stage() else { return Err(AggregateError::order("D")) };
        let (blocks, parts) = unzip(self.pool.map(blocks, |block| block.fold_blocks(s1, s2)))?;
        self.stage = Stage::Folded(blocks);
        Ok(MillerLoop::product(parts))
    }

    fn start(&mut self, s3: Fr, q: &[G2Point], ledger: Fr) -> Result<usize, AggregateError> {
        // `q` comes from a message: phase E indexes it by type.
        if q.len() != self.shared.key.types() {
            let (found, expected) = (q.len(), self.shared.key.types());
            return Err(AggregateError::length("E", found, expected));
        }
        let Stage::Folded(blocks) = self.stage() else { return Err(AggregateError::order("E")) };
        let blocks = self.pool.map(blocks, |block| block.start(s3, q, ledger));
        self.stage = Stage::Folding { blocks, left: self.rounds };
        Ok(self.rounds)
    }

    fn halve(&mut self, x: Option<(Fr, Fr)>) -> Result<[MillerLoop; 6], AggregateError> {
        let (blocks, left) = self.folded("E", x)?;
        if left == 0 {
            return Err(AggregateError::order("E"));
        }
        // The blocks stay: they fold when the challenge arrives with the next request.
        let parts = self.pool.map((0..blocks.len()).collect(), |i: usize| blocks[i].products());
        self.stage = Stage::Folding { blocks, left };
        Ok(std::array::from_fn(|i| MillerLoop::product(parts.iter().map(|p| p[i]))))
    }

    fn take(&mut self, x: Option<(Fr, Fr)>) -> Result<FoldingBlock, AggregateError> {
        Ok(FoldingBlock::join(self.folded("F", x)?.0))
    }

    fn open(&mut self, openings: &Openings) -> Result<(G2Point, G1Point), AggregateError> {
        Ok(openings.open(self.shared, self.range.clone(), self.pool)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_into_equal_powers_of_two() {
        for (range, unit) in [(0..1, 1), (0..8, 8), (0..1024, 1024), (64..160, 32), (12..16, 4)] {
            for threads in [1, 2, 3, 32] {
                let blocks = cut(range.clone(), unit, threads);
                let size = blocks[0].len();
                assert!(size.is_power_of_two() && size <= unit);
                assert!(blocks.iter().all(|block| block.len() == size));
                assert_eq!(
                    blocks.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
                    range.clone().collect::<Vec<_>>()
                );
            }
        }
    }
}
