//! The answers of the two rounds, and how a worker computes them.

use crate::encoding::DecodeError;
use crate::events::Phase;
use crate::pool::LocalEngine;
use crate::protocol::messages::{Commitment, Job, Message, ProofResponse, ProveRound};
use crate::protocol::worker::{Worker, WorkerError};
use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_circuit::LookUps;
use std::collections::BTreeMap;

/// An answer and how it was made.
#[derive(Debug)]
pub struct Made<A> {
    /// The answer.
    pub answer: A,
    /// The look-ups of the subcircuit, in the commit round.
    pub look_ups: LookUps,
    /// The number of the device that computed the sums; `None` of the CPU.
    pub device: Option<usize>,
}

/// The answer for one instance in one of the rounds.
pub trait Answer: Message + Clone {
    /// The round that the answer belongs to.
    const PHASE: Phase;

    /// The index of the instance that the answer is for.
    fn instance(&self) -> usize;

    /// Decodes like [`Message::from_bytes`], but does not check that points are in their subgroups:
    /// [`find_outside`] does that for many answers at once.
    ///
    /// # Errors
    /// What is wrong, and at which byte.
    fn on_curve(bytes: &[u8]) -> Result<Self, DecodeError>;

    /// Appends the points of the answer to lists, the same number in every answer.
    fn points(&self, g1: &mut Vec<G1Point>, g2: &mut Vec<G2Point>);

    /// Does the job. `challenges` are those of the prove round; the commit round has none.
    ///
    /// # Errors
    /// The error of the worker.
    fn make(
        worker: Worker<'_>,
        job: Job,
        challenges: Option<&ProveRound>,
    ) -> Result<Made<Self>, WorkerError>;
}

impl Answer for Commitment {
    const PHASE: Phase = Phase::Commit;

    fn instance(&self) -> usize {
        self.instance
    }

    fn on_curve(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, G1Point::on_curve_from_compressed)
    }

    fn points(&self, g1: &mut Vec<G1Point>, _: &mut Vec<G2Point>) {
        g1.push(self.d);
    }

    fn make(
        worker: Worker<'_>,
        job: Job,
        _: Option<&ProveRound>,
    ) -> Result<Made<Self>, WorkerError> {
        let (committed, (answer, device)) = worker.commit_by(job)?;
        Ok(Made { answer, look_ups: committed.into_parts().1, device })
    }
}

impl Answer for ProofResponse {
    const PHASE: Phase = Phase::Prove;

    fn instance(&self) -> usize {
        self.instance
    }

    fn on_curve(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, G1Point::on_curve_from_compressed, G2Point::on_curve_from_compressed)
    }

    fn points(&self, g1: &mut Vec<G1Point>, g2: &mut Vec<G2Point>) {
        g1.extend([self.proof.a, self.proof.c]);
        g2.push(self.proof.b);
    }

    fn make(
        worker: Worker<'_>,
        job: Job,
        challenges: Option<&ProveRound>,
    ) -> Result<Made<Self>, WorkerError> {
        let instance = job.instance;
        let no_challenges = || WorkerError::Job {
            instance,
            why: "the prove round needs challenges, and none were passed".into(),
        };
        // The job carries everything that the commit round used, so the worker that committed to it
        // is not needed (spec: distributed#jobs).
        let committed = worker.resume(job);
        let (answer, device) = committed.prove_by(challenges.ok_or_else(no_challenges)?)?;
        Ok(Made { answer, look_ups: LookUps::default(), device })
    }
}

/// The first of these answers that has a point outside of its subgroup. Points are checked in
/// batches ([`Group::find_outside`]) with fresh randomness, so a point outside passes with
/// probability below 2^-64; few answers are checked one by one.
pub(crate) fn find_outside<A: Answer>(answers: &[A]) -> Option<usize> {
    let (mut g1, mut g2) = (Vec::new(), Vec::new());
    answers.iter().for_each(|answer| answer.points(&mut g1, &mut g2));
    let first = [outside(&g1, answers.len()), outside(&g2, answers.len())];
    first.into_iter().flatten().min()
}

/// The first of `answers` answers with as many points each, one of which is outside.
fn outside<G: Group>(points: &[G], answers: usize) -> Option<usize> {
    let mut seed = [0; 32];
    let at = match getrandom::fill(&mut seed) {
        Ok(()) => {
            let mut stream = blake3::Hasher::new_keyed(&seed).finalize_xof();
            let mut random = || {
                let mut bytes = [0; 8];
                stream.fill(&mut bytes);
                u64::from_le_bytes(bytes)
            };
            G::find_outside(points, &mut random)
        }
        Err(_) => points.iter().position(|point| !point.is_in_group()),
    };
    at.map(|at| at / (points.len() / answers))
}

/// Takes a batch of messages from a log and returns how many of them are not answers of a run.
///
/// A message counts only if it decodes as an answer for one of `instances` subcircuits: points in
/// their subgroups, scalars reduced, the instance in range. Whether it is the right answer is not
/// known: wrong ones are found after the aggregation (spec: distributed#blame). Of two answers for
/// one instance the later one counts, because a repair appends.
pub fn accept<A: Answer>(
    messages: Vec<&[u8]>,
    instances: usize,
    pool: &LocalEngine,
    answers: &mut BTreeMap<usize, A>,
) -> usize {
    let all = messages.len();
    let decode =
        |message: &[u8]| A::from_bytes(message).ok().filter(|answer| answer.instance() < instances);
    let intact: Vec<A> = pool.map(messages, decode).into_iter().flatten().collect();
    let refused = all - intact.len();
    answers.extend(intact.into_iter().map(|answer| (answer.instance(), answer)));
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirage::MirageProof;
    use crate::tests::bench::outside_the_subgroup;
    use ark_ff::Zero;
    use hekaton_arith::Fr;

    /// One bad point among few answers and among enough for batches.
    #[test]
    fn points_outside_of_their_subgroups_are_found() {
        let (bad_1, bad_2) = outside_the_subgroup();
        let (g1, g2) = (G1Point::generator(), G2Point::generator());
        let answer = |instance| ProofResponse {
            instance,
            proof: MirageProof { a: g1, b: g2, c: g1, e: Fr::zero() },
            mark: [0; 32],
        };
        for n in [1, 5, 2100] {
            let good: Vec<ProofResponse> = (0..n).map(answer).collect();
            assert_eq!(find_outside(&good), None);
            let mut spoil: [&dyn Fn(&mut MirageProof); 3] =
                [&|p| p.a = bad_1, &|p| p.b = bad_2, &|p| p.c = bad_1];
            for spoil in &mut spoil {
                let mut list = good.clone();
                spoil(&mut list[n / 2].proof);
                assert_eq!(find_outside(&list), Some(n / 2));
                // decoding alone does not notice
                assert_eq!(ProofResponse::on_curve(&list[n / 2].to_bytes()), Ok(list[n / 2]));
                assert!(ProofResponse::from_bytes(&list[n / 2].to_bytes()).is_err());
            }
        }
        assert_eq!(find_outside::<Commitment>(&[]), None);
        let commitments = [g1, g1, bad_1].map(|d| Commitment { instance: 0, d, mark: [0; 32] });
        assert_eq!(find_outside(&commitments), Some(2));
    }
}
