//! The aggregation's vectors on ranks: each owns a contiguous run of blocks (PROTOCOL, section 6).

use super::frame::Kind;
use super::message::{BlockPhase, Part};
use super::ranks::Ranks;
use crate::aggregation::AggregateError;
use crate::aggregation::block::{BlockSums, FoldingBlock, ProofCommitments, ProofVectors, Shared};
use crate::aggregation::blocks::{Blocks, Openings, SMALLEST_BLOCK};
use crate::encoding::Reader;
use crate::events::Phase;
use crate::pool::LocalEngine;
use crate::protocol::ProveError;
use crate::protocol::coordinator::CoordinatorError;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop};
use hekaton_circuit::MemoryChallenges;
use std::cell::RefCell;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The blocks of all ranks.
pub struct RankBlocks<'s> {
    ranks: &'s RefCell<Ranks>,
    pool: &'s LocalEngine,
    /// how long a phase may take
    deadline: Option<Duration>,
    shared: &'s Shared<'s>,
    unit: usize,
    /// who has which instances, as an index into the engine's ranks; in the order of the instances
    owners: Vec<(usize, Range<usize>)>,
}

/// Cuts `padded` instances into equal blocks, several for each rank, and gives each rank a contiguous run in proportion
/// to its provers.
fn share(padded: usize, provers: &[usize]) -> (usize, Vec<(usize, Range<usize>)>) {
    let unit = (padded / (4 * provers.len()).next_power_of_two()).max(SMALLEST_BLOCK).min(padded);
    let (blocks, all) = (padded / unit, provers.iter().sum::<usize>().max(1));
    let (mut owners, mut at, mut before) = (Vec::new(), 0, 0);
    for (index, provers) in provers.iter().enumerate() {
        before += provers;
        let end = (blocks * before + all / 2) / all;
        if end > at {
            owners.push((index, at * unit..end * unit));
        }
        at = at.max(end);
    }
    (unit, owners)
}

impl<'s> RankBlocks<'s> {
    pub(crate) fn new(
        ranks: &'s RefCell<Ranks>,
        pool: &'s LocalEngine,
        deadline: Option<Duration>,
        shared: &'s Shared<'s>,
    ) -> Self {
        let provers: Vec<usize> =
            ranks.borrow().ranks.iter().map(|rank| rank.hello.provers).collect();
        let (unit, owners) = share(shared.padded(), &provers);
        Self { ranks, pool, deadline, shared, unit, owners }
    }

    /// Asks all owners and waits for all parts; they come in the order of the instances.
    fn ask<T: Part>(
        &self,
        phase: impl Fn(Range<usize>) -> BlockPhase,
    ) -> Result<Vec<T>, AggregateError> {
        let inner = &mut *self.ranks.borrow_mut();
        for (index, range) in &self.owners {
            inner.send(*index, Kind::Phase, phase(range.clone()).encode());
        }
        self.gather(inner).map_err(|error| match error {
            ProveError::Coordinator(CoordinatorError::Rank(error)) => error.into(),
            other => AggregateError::Phase(other.to_string()),
        })
    }

    fn gather<T: Part>(&self, inner: &mut Ranks) -> Result<Vec<T>, ProveError> {
        let mut parts: Vec<Option<T>> = self.owners.iter().map(|_| None).collect();
        let deadline = self.deadline.and_then(|deadline| Instant::now().checked_add(deadline));
        while parts.iter().any(Option::is_none) {
            let Some((index, frame, _)) = inner.next(Duration::from_secs(1))? else {
                let waits = |(owner, _): &(usize, _), part: &Option<T>, index| {
                    *owner == index && part.is_none()
                };
                inner.check_deadline(deadline, Phase::Aggregate, |index, _| {
                    self.owners
                        .iter()
                        .zip(&parts)
                        .filter(|(owner, part)| waits(owner, part, index))
                        .count()
                })?;
                continue;
            };
            let place = self.owners.iter().position(|(owner, _)| *owner == index);
            let (Kind::Part, Some(place)) = (frame.kind, place) else {
                return Err(
                    inner.wrong(index, &format_args!("{:?} in the aggregation", frame.kind))
                );
            };
            let mut reader = Reader::new(&frame.content);
            let part = T::decode(&mut reader, self.shared.key.types())
                .and_then(|part| reader.finish().map(|()| part));
            let part = part.map_err(|e| inner.wrong(index, &e))?;
            if parts[place].replace(part).is_some() {
                return Err(inner.wrong(index, &"two parts of one phase"));
            }
        }
        Ok(parts.into_iter().flatten().collect())
    }

    /// Where a range lies in vectors of all instances is where it is.
    fn ask_same<T: Part>(&self, phase: &BlockPhase) -> Result<Vec<T>, AggregateError> {
        self.ask(|_| phase.clone())
    }
}

impl Blocks for RankBlocks<'_> {
    type Error = AggregateError;
    type Pool = LocalEngine;

    fn pool(&self) -> &LocalEngine {
        self.pool
    }

    fn commit(&mut self, d: &[G1Point]) -> Result<MillerLoop, AggregateError> {
        let unit = self.unit;
        let parts = self.ask(|range| BlockPhase::A {
            start: range.start,
            end: range.end,
            unit,
            d: d[range].to_vec(),
        })?;
        Ok(MillerLoop::product(parts))
    }

    fn prove(&mut self, proofs: &ProofVectors) -> Result<ProofCommitments, AggregateError> {
        let parts =
            self.ask::<ProofCommitments>(|range| BlockPhase::B { proofs: proofs.part(range) })?;
        let all = parts.into_iter().reduce(|a, b| a.combine(&b));
        all.ok_or_else(|| AggregateError::Phase("nobody has a block".into()))
    }

    fn weigh(&mut self, r: Fr, memory: &MemoryChallenges) -> Result<BlockSums, AggregateError> {
        let parts = self.ask_same::<BlockSums>(&BlockPhase::C { r, g: memory.g, b: memory.b })?;
        let all = parts.into_iter().reduce(|a, b| a.add(&b));
        all.ok_or_else(|| AggregateError::Phase("nobody has a block".into()))
    }

    fn fold_blocks(&mut self, s1: Fr, s2: Fr) -> Result<MillerLoop, AggregateError> {
        Ok(MillerLoop::product(self.ask_same(&BlockPhase::D { s1, s2 })?))
    }

    fn start(&mut self, s3: Fr, q: &[G2Point], ledger: Fr) -> Result<usize, AggregateError> {
        let rounds: Vec<u32> = self.ask_same(&BlockPhase::E { s3, ledger, q: q.to_vec() })?;
        let expected = self.unit.ilog2();
        match rounds.iter().all(|rounds| *rounds == expected) {
            true => Ok(expected as usize),
            false => Err(AggregateError::Phase(format!(
                "ranks do {rounds:?} rounds, expected {expected}"
            ))),
        }
    }

    fn halve(&mut self, x: Option<(Fr, Fr)>) -> Result<[MillerLoop; 6], AggregateError> {
        let parts: Vec<[MillerLoop; 6]> = self.ask_same(&BlockPhase::Halve { x })?;
        Ok(std::array::from_fn(|i| MillerLoop::product(parts.iter().map(|part| part[i]))))
    }

    fn take(&mut self, x: Option<(Fr, Fr)>) -> Result<FoldingBlock, AggregateError> {
        let parts: Vec<FoldingBlock> = self.ask_same(&BlockPhase::F { x })?;
        for ((index, range), part) in self.owners.iter().zip(&parts) {
            let (found, expected) = (part.len(), range.len() / self.unit);
            if found != expected {
                let inner = self.ranks.borrow();
                let error = inner
                    .wrong(*index, &format_args!("{found} elements are left, expected {expected}"));
                return Err(AggregateError::Phase(error.to_string()));
            }
        }
        Ok(FoldingBlock::join(parts))
    }

    fn open(&mut self, openings: &Openings) -> Result<(G2Point, G1Point), AggregateError> {
        let parts: Vec<(G2Point, G1Point)> = self.ask_same(&BlockPhase::G(openings.clone()))?;
        let (v, w): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((G2Point::sum(&v), G1Point::sum(&w)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_instances_have_one_owner() {
        for padded in [1, 2, 8, 64, 1024] {
            for provers in [vec![1], vec![1, 1], vec![1; 3], vec![2, 5, 1], vec![32; 40]] {
                let (unit, owners) = share(padded, &provers);
                assert!(unit.is_power_of_two());
                let all: Vec<usize> = owners.iter().flat_map(|(_, range)| range.clone()).collect();
                assert_eq!(all, (0..padded).collect::<Vec<_>>());
                assert!(
                    owners
                        .iter()
                        .all(|(_, range)| range.start % unit == 0 && range.end % unit == 0)
                );
            }
        }
        let (_, owners) = share(1024, &[1, 1]);
        assert_eq!(owners, [(0, 0..512), (1, 512..1024)]);
    }
}
