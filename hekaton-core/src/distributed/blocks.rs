//! The aggregation's vectors on ranks: each rank owns a contiguous run of blocks
//! (spec: distributed#blocks).

use super::frame::Kind;
use super::leaders::GroupPhase;
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
use hekaton_arith::{Fr, G1Point, G2Point, MillerLoop};
use hekaton_circuit::MemoryChallenges;
use std::cell::RefCell;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The vectors of the aggregation, in blocks on all ranks.
pub struct RankBlocks<'s> {
    ranks: &'s RefCell<Ranks>,
    pool: &'s LocalEngine,
    /// The maximum duration of a phase.
    deadline: Option<Duration>,
    shared: &'s Shared<'s>,
    /// The length of a block, a power of two.
    unit: usize,
    /// The owner of each range of instances, as an index into the engine's ranks, in the order of
    /// the instances.
    owners: Vec<(usize, Range<usize>)>,
    /// Who answers for which owners, by their places: a leader for its group, or each for itself.
    answers: Vec<(usize, Range<usize>)>,
}

impl std::fmt::Debug for RankBlocks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RankBlocks")
            .field("unit", &self.unit)
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}

/// Cuts `padded` instances into equal blocks, several per rank, and assigns each rank a contiguous
/// run in proportion to its provers. Returns the length of a block and the owners.
fn share(padded: usize, provers: &[usize]) -> (usize, Vec<(usize, Range<usize>)>) {
    let unit = (padded / (4 * provers.len()).next_power_of_two()).max(SMALLEST_BLOCK).min(padded);
    // Start and length of every range are multiples of the unit, a power of two: no GIPA round
    // pairs elements of different owners (spec: distributed#blocks, aggregation#gipa-order).
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

/// Who answers for which owners: with leaders, each for the owners of its group.
fn who_answers(ranks: &Ranks, owners: &[(usize, Range<usize>)]) -> Vec<(usize, Range<usize>)> {
    let mut out: Vec<(usize, Range<usize>)> = Vec::new();
    for (place, (owner, _)) in owners.iter().enumerate() {
        let answers = ranks.leader(*owner);
        match out.last_mut() {
            Some((last, places)) if *last == answers => places.end = place + 1,
            _ => out.push((answers, place..place + 1)),
        }
    }
    // A leader need not join the part of a single owner.
    for (answers, places) in &mut out {
        if places.len() == 1 {
            *answers = owners[places.start].0;
        }
    }
    out
}

/// The parts of all blocks as one.
fn joined<T: Part>(parts: Vec<T>) -> Result<T, AggregateError> {
    T::join(parts).ok_or_else(|| AggregateError::Phase("no rank owns a block".into()))
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
        let answers = who_answers(&ranks.borrow(), &owners);
        Self { ranks, pool, deadline, shared, unit, owners, answers }
    }

    /// Sends a phase to all owners, waits for all parts, and returns them in the order of the
    /// instances.
    fn ask<T: Part>(
        &self,
        phase: impl Fn(Range<usize>) -> BlockPhase,
    ) -> Result<Vec<T>, AggregateError> {
        let inner = &mut *self.ranks.borrow_mut();
        for (answers, places) in &self.answers {
            let mut phases = self.owners[places.clone()]
                .iter()
                .map(|(index, range)| (inner.ranks[*index].rank, phase(range.clone())));
            match (places.len(), phases.next()) {
                (1, Some((_, phase))) => inner.send(*answers, Kind::Phase, phase.encode()),
                (_, first) => {
                    let phases = GroupPhase::new(first.into_iter().chain(phases).collect());
                    inner.send_direct(*answers, Kind::GroupPhase, phases.encode());
                }
            }
        }
        self.gather(inner).map_err(|error| match error {
            ProveError::Coordinator(CoordinatorError::Rank(error)) => error.into(),
            other => AggregateError::Phase(other.to_string()),
        })
    }

    /// Waits for one part from everyone who answers.
    fn gather<T: Part>(&self, inner: &mut Ranks) -> Result<Vec<T>, ProveError> {
        let mut parts: Vec<Option<T>> = self.answers.iter().map(|_| None).collect();
        let deadline = self.deadline.and_then(|deadline| Instant::now().checked_add(deadline));
        while parts.iter().any(Option::is_none) {
            let Some((index, frame, _)) = inner.next(Duration::from_secs(1))? else {
                let waits = |(owner, _): &(usize, _), part: &Option<T>, index| {
                    *owner == index && part.is_none()
                };
                inner.check_deadline(deadline, Phase::Aggregate, |index, _| {
                    self.answers
                        .iter()
                        .zip(&parts)
                        .filter(|(owner, part)| waits(owner, part, index))
                        .count()
                })?;
                continue;
            };
            // Ranks without a block have nothing to answer.
            let place = self.answers.iter().position(|(answers, _)| *answers == index);
            let (Kind::Part, Some(place)) = (frame.kind, place) else {
                return Err(inner.wrong(
                    index,
                    &format_args!("unexpected {:?} in the aggregation", frame.kind),
                ));
            };
            // Points from a rank are checked for curve and subgroup: an invalid one would make the
            // aggregate wrong without naming the rank (spec: distributed#messages).
            let mut reader = Reader::new(&frame.content);
            let part = T::decode(&mut reader, self.shared.key.types())
                .and_then(|part| reader.finish().map(|()| part))
                .map_err(|e| inner.wrong(index, &e))?;
            if parts[place].replace(part).is_some() {
                return Err(inner.wrong(index, &"two parts in one phase"));
            }
        }
        Ok(parts.into_iter().flatten().collect())
    }

    /// [`Self::ask`] with the same request for all owners: ranks keep their range from phase A.
    fn ask_same<T: Part>(&self, phase: &BlockPhase) -> Result<Vec<T>, AggregateError> {
        self.ask(|_| phase.clone())
    }
}

impl Blocks for RankBlocks<'_> {
    fn pool(&self) -> &LocalEngine {
        self.pool
    }

    fn commit(&mut self, d: &[G1Point]) -> Result<MillerLoop, AggregateError> {
        let unit = self.unit;
        // Phase A starts the aggregation from its beginning at any time, which a repair needs
        // (spec: distributed#phase-a, distributed#repair).
        let parts = self.ask(|range| BlockPhase::A {
            start: range.start,
            end: range.end,
            unit,
            d: d[range].to_vec(),
        })?;
        joined(parts)
    }

    fn prove(&mut self, proofs: &ProofVectors) -> Result<ProofCommitments, AggregateError> {
        // spec: distributed#phase-b
        let parts =
            self.ask::<ProofCommitments>(|range| BlockPhase::B { proofs: proofs.part(range) })?;
        joined(parts)
    }

    fn weigh(&mut self, r: Fr, memory: &MemoryChallenges) -> Result<BlockSums, AggregateError> {
        // Sums by type are all that rank 0 needs for the cross terms (spec: distributed#phase-c,
        // aggregation#collapse).
        let parts = self.ask_same::<BlockSums>(&BlockPhase::C { r, memory: *memory })?;
        joined(parts)
    }

    fn fold_blocks(&mut self, s1: Fr, s2: Fr) -> Result<MillerLoop, AggregateError> {
        // spec: distributed#phase-d
        joined(self.ask_same(&BlockPhase::D { s1, s2 })?)
    }

    fn start(&mut self, s3: Fr, q: &[G2Point], ledger: Fr) -> Result<usize, AggregateError> {
        let rounds: Vec<u32> = self.ask_same(&BlockPhase::E { s3, ledger, q: q.to_vec() })?;
        // A block of `unit` elements allows exactly this many GIPA rounds; later ones pair elements
        // of several owners (spec: distributed#phase-e).
        let expected = self.unit.ilog2();
        let other = rounds.iter().zip(&self.answers).find(|(rounds, _)| **rounds != expected);
        match other {
            None => Ok(expected as usize),
            Some((rounds, (index, _))) => {
                let why = format_args!("it announces {rounds} GIPA rounds, expected {expected}");
                let error = self.ranks.borrow().wrong(*index, &why);
                Err(AggregateError::Phase(error.to_string()))
            }
        }
    }

    fn halve(&mut self, x: Option<(Fr, Fr)>) -> Result<[MillerLoop; 6], AggregateError> {
        joined(self.ask_same(&BlockPhase::GipaRound { x })?)
    }

    fn take(&mut self, x: Option<(Fr, Fr)>) -> Result<FoldingBlock, AggregateError> {
        let parts: Vec<FoldingBlock> = self.ask_same(&BlockPhase::F { x })?;
        // Each owner returns one element per block; another number would shift all later elements
        // (spec: distributed#phase-f).
        for ((index, places), part) in self.answers.iter().zip(&parts) {
            let instances: usize = self.owners[places.clone()].iter().map(|(_, r)| r.len()).sum();
            let (found, expected) = (part.len(), instances / self.unit);
            if found != expected {
                let inner = self.ranks.borrow();
                let error = inner
                    .wrong(*index, &format_args!("{found} elements remain, expected {expected}"));
                return Err(AggregateError::Phase(error.to_string()));
            }
        }
        joined(parts)
    }

    fn open(&mut self, openings: &Openings) -> Result<(G2Point, G1Point), AggregateError> {
        // Each owner computes its slice of both quotient MSMs (spec: distributed#phase-g).
        joined(self.ask_same(&BlockPhase::G(openings.clone()))?)
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
