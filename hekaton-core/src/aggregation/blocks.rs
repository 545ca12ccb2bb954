//! Who holds the vectors of the aggregation: [`LocalBlocks`] here, cut for the threads of a pool; ranks behind the same
//! trait ([`crate::distributed`]).
//!
//! Each phase of PROTOCOL, section 6, is one method. All results are sums and products over blocks, so it makes no
//! difference who has which.

use super::block::{
    BlockSums, CommittedBlock, FoldedBlock, FoldingBlock, ProofCommitments, ProofVectors,
    ProvenBlock, Shared, WeightedBlock,
};
use crate::keys::KeyFileError;
use crate::pool::Pool;
use crate::rank_error::RankError;
use crate::verifier::polynomials::{fold_coefficients, quotient};
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop, powers};
use hekaton_circuit::MemoryChallenges;
use std::ops::Range;

/// Blocks are cut this small at least: below it, work a block does not pay for handing it out.
pub(crate) const SMALLEST_BLOCK: usize = 8;

/// The phases A to G of the aggregation, over all blocks.
pub trait Blocks {
    /// Why a phase failed.
    type Error: From<KeyFileError> + Into<AggregateError>;
    /// For what is left when all blocks have one element.
    type Pool: Pool;

    /// The threads of this process.
    fn pool(&self) -> &Self::Pool;

    /// A: takes the padded commitments; the product of Miller loops whose final exponentiation is cm_D.
    fn commit(&mut self, d: &[G1Point]) -> Result<MillerLoop, Self::Error>;

    /// B: takes the padded proofs.
    fn prove(&mut self, proofs: &ProofVectors) -> Result<ProofCommitments, Self::Error>;

    /// C: sums by type.
    fn weigh(&mut self, r: Fr, memory: &MemoryChallenges) -> Result<BlockSums, Self::Error>;

    /// D: `P * B`.
    fn fold_blocks(&mut self, s1: Fr, s2: Fr) -> Result<MillerLoop, Self::Error>;

    /// Begins E; gives how many halvings blocks can do by themselves.
    fn start(&mut self, s3: Fr, q: &[G2Point], ledger: Fr) -> Result<usize, Self::Error>;

    /// E: folds with the challenge of the round before (and its inverse), if there was one, and gives the products
    /// of the next one.
    fn halve(&mut self, x: Option<(Fr, Fr)>) -> Result<[MillerLoop; 6], Self::Error>;

    /// F: folds likewise and gives what is left of all blocks, in order.
    fn take(&mut self, x: Option<(Fr, Fr)>) -> Result<FoldingBlock, Self::Error>;

    /// G: both opening proofs.
    fn open(&mut self, openings: &Openings) -> Result<(G2Point, G1Point), Self::Error>;
}

/// What both opening proofs follow from.
#[derive(Clone, Debug, PartialEq)]
pub struct Openings {
    pub(crate) x: Vec<Fr>,
    pub(crate) x_inverse: Vec<Fr>,
    pub(crate) r_inverse: Fr,
    pub(crate) z: Fr,
    pub(crate) rho: Fr,
}

impl Openings {
    /// A slice of both quotients' MSMs: the part that a range of instances has, two powers each.
    pub(crate) fn open(
        &self,
        shared: &Shared<'_>,
        range: Range<usize>,
        pool: &impl Pool,
    ) -> Result<(G2Point, G1Point), KeyFileError> {
        let f_v = fold_coefficients(&self.x_inverse, self.r_inverse);
        let mut f_w = fold_coefficients(&self.x, Fr::ONE);
        f_w.iter_mut()
            .zip(powers(self.r_inverse, shared.ledger()))
            .for_each(|(f, g)| *f += self.rho * g);
        let slice = |q: &[Fr]| (2 * range.start).min(q.len())..(2 * range.end).min(q.len());
        let (q_v, q_w) = (quotient(&f_v, self.z), quotient(&f_w, self.z));
        let (in_v, in_w) = (slice(&q_v), slice(&q_w));
        let pi_v = msm_in_pool(&shared.key.psi()?[in_v.clone()], &q_v[in_v], pool);
        Ok((pi_v, msm_in_pool(&shared.key.phi()?[in_w.clone()], &q_w[in_w], pool)))
    }
}

/// An MSM, cut into one part a thread.
fn msm_in_pool<G: Group>(bases: &[G], scalars: &[Fr], pool: &impl Pool) -> G {
    let size = scalars.len().div_ceil(pool.threads()).max(1);
    let parts: Vec<_> = bases.chunks(size).zip(scalars.chunks(size)).collect();
    G::sum(&pool.map(parts, |(bases, scalars)| G::msm(bases, scalars)))
}

/// Contiguous ranges of one power of two that cover a range: several for each of several threads, so that all have work to
/// the end; for one thread as long as may be, because long batches are cheaper. The range's length is a multiple of a
/// power of two, `unit`, and no block is longer.
fn cut(range: Range<usize>, unit: usize, threads: usize) -> Vec<Range<usize>> {
    let (mut size, enough) = (unit, if threads == 1 { 1 } else { 4 * threads });
    while size > SMALLEST_BLOCK && range.len() / size < enough {
        size /= 2;
    }
    (0..range.len() / size).map(|i| range.start + i * size..range.start + (i + 1) * size).collect()
}

/// The blocks of a contiguous range of instances, on the threads of this process.
pub struct LocalBlocks<'s, P> {
    shared: &'s Shared<'s>,
    pool: &'s P,
    range: Range<usize>,
    /// halvings that concern nobody else: 2^rounds divides the length and the beginning of the range
    rounds: usize,
    blocks: Vec<Range<usize>>,
    stage: Stage<'s>,
}

enum Stage<'s> {
    /// nothing yet, or all over
    Empty,
    Committed(Vec<CommittedBlock<'s>>),
    Proven(Vec<ProvenBlock<'s>>),
    Weighted(Vec<WeightedBlock<'s>>),
    Folded(Vec<FoldedBlock<'s>>),
    Folding {
        blocks: Vec<FoldingBlock>,
        /// halvings that are left
        left: usize,
    },
}

/// A phase can't be done by the blocks of one process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PhaseError {
    /// The aggregation key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A phase was asked for before the one that it needs.
    #[error("phase {0} of the aggregation was asked for out of order")]
    Order(&'static str),
    /// A vector of the wrong length.
    #[error("phase {phase} of the aggregation: {found} values, expected {expected}")]
    Length {
        /// The phase.
        phase: &'static str,
        /// The length found.
        found: usize,
        /// The length of the blocks.
        expected: usize,
    },
}

/// Why an aggregation failed, wherever its blocks are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The aggregation key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A phase was not done, or with the wrong number of values.
    #[error("{0}")]
    Phase(String),
    /// A rank failed, or was lost.
    #[error(transparent)]
    Rank(#[from] RankError),
}

impl From<PhaseError> for AggregateError {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::Key(error) => error.into(),
            other => Self::Phase(other.to_string()),
        }
    }
}

impl<'s, P: Pool> LocalBlocks<'s, P> {
    /// All instances and pads.
    pub(crate) fn all(shared: &'s Shared<'s>, pool: &'s P) -> Self {
        Self::of_range(shared, pool, 0..shared.padded(), shared.padded())
    }

    /// A part of them, a whole number of `unit`s, which is a power of two.
    pub(crate) fn of_range(
        shared: &'s Shared<'s>,
        pool: &'s P,
        range: Range<usize>,
        unit: usize,
    ) -> Self {
        let blocks = cut(range.clone(), unit, pool.threads());
        Self { shared, pool, range, rounds: unit.ilog2() as usize, blocks, stage: Stage::Empty }
    }

    fn check(&self, phase: &'static str, found: usize) -> Result<(), PhaseError> {
        match self.range.len() {
            expected if expected == found => Ok(()),
            expected => Err(PhaseError::Length { phase, found, expected }),
        }
    }

    fn stage(&mut self) -> Stage<'s> {
        std::mem::replace(&mut self.stage, Stage::Empty)
    }

    /// Folds with a challenge, if there is one, and cuts what has become too small anew.
    fn folded(
        &mut self,
        phase: &'static str,
        x: Option<(Fr, Fr)>,
    ) -> Result<(Vec<FoldingBlock>, usize), PhaseError> {
        let Stage::Folding { mut blocks, mut left } = self.stage() else {
            return Err(PhaseError::Order(phase));
        };
        if let Some((x, x_inverse)) = x {
            if left == 0 {
                return Err(PhaseError::Order(phase));
            }
            blocks = self.pool.map(blocks, |block| block.fold(x, x_inverse));
            left -= 1;
        }
        if left > 0 && blocks.iter().any(|block| block.len() < 2) {
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

/// Parts that came together with what goes on.
fn unzip<A, B>(parts: Vec<Result<(A, B), KeyFileError>>) -> Result<(Vec<A>, Vec<B>), KeyFileError> {
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
}

impl<P: Pool> Blocks for LocalBlocks<'_, P> {
    type Error = PhaseError;
    type Pool = P;

    fn pool(&self) -> &P {
        self.pool
    }

    fn commit(&mut self, d: &[G1Point]) -> Result<MillerLoop, PhaseError> {
        self.check("A", d.len())?;
        let start = self.range.start;
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

    fn prove(&mut self, proofs: &ProofVectors) -> Result<ProofCommitments, PhaseError> {
        self.check("B", proofs.len())?;
        let Stage::Committed(blocks) = self.stage() else { return Err(PhaseError::Order("B")) };
        let start = self.range.start;
        let parts = self.pool.map(blocks, |block| {
            let range = block.range();
            block.prove(proofs.part(range.start - start..range.end - start))
        });
        let (blocks, parts) = unzip(parts)?;
        self.stage = Stage::Proven(blocks);
        parts.into_iter().reduce(|a, b| a.combine(&b)).ok_or(PhaseError::Order("B"))
    }

    fn weigh(&mut self, r: Fr, memory: &MemoryChallenges) -> Result<BlockSums, PhaseError> {
        let Stage::Proven(blocks) = self.stage() else { return Err(PhaseError::Order("C")) };
        let (blocks, sums) = unzip(self.pool.map(blocks, |block| block.weigh(r, memory)))?;
        self.stage = Stage::Weighted(blocks);
        sums.into_iter().reduce(|a, b| a.add(&b)).ok_or(PhaseError::Order("C"))
    }

    fn fold_blocks(&mut self, s1: Fr, s2: Fr) -> Result<MillerLoop, PhaseError> {
        let Stage::Weighted(blocks) = self.stage() else { return Err(PhaseError::Order("D")) };
        let (blocks, parts) = unzip(self.pool.map(blocks, |block| block.fold_blocks(s1, s2)))?;
        self.stage = Stage::Folded(blocks);
        Ok(MillerLoop::product(parts))
    }

    fn start(&mut self, s3: Fr, q: &[G2Point], ledger: Fr) -> Result<usize, PhaseError> {
        if q.len() != self.shared.key.types() {
            let (found, expected) = (q.len(), self.shared.key.types());
            return Err(PhaseError::Length { phase: "E", found, expected });
        }
        let Stage::Folded(blocks) = self.stage() else { return Err(PhaseError::Order("E")) };
        let blocks = self.pool.map(blocks, |block| block.start(s3, q, ledger));
        self.stage = Stage::Folding { blocks, left: self.rounds };
        Ok(self.rounds)
    }

    fn halve(&mut self, x: Option<(Fr, Fr)>) -> Result<[MillerLoop; 6], PhaseError> {
        let (blocks, left) = self.folded("E", x)?;
        if left == 0 {
            return Err(PhaseError::Order("E"));
        }
        let parts = self.pool.map((0..blocks.len()).collect(), |i: usize| blocks[i].products());
        self.stage = Stage::Folding { blocks, left };
        Ok(std::array::from_fn(|i| MillerLoop::product(parts.iter().map(|p| p[i]))))
    }

    fn take(&mut self, x: Option<(Fr, Fr)>) -> Result<FoldingBlock, PhaseError> {
        Ok(FoldingBlock::join(self.folded("F", x)?.0))
    }

    fn open(&mut self, openings: &Openings) -> Result<(G2Point, G1Point), PhaseError> {
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
