//! One attempt at a proof: commit round, prove round, aggregation, and the repair of answers that
//! faulty hardware computed (spec: distributed#rounds, distributed#repair).

use crate::aggregation::blocks::{Blocks, LocalBlocks};
use crate::events::Phase;
use crate::protocol::coordinator::{Committed, Coordinator, CoordinatorError, Proven};
use crate::protocol::counting;
use crate::protocol::engine::Round;
use crate::protocol::error::ProveError;
use crate::protocol::messages::{Commitment, Message, ProofResponse, ProveRound};
use crate::protocol::session::{Answers, Session};
use crate::protocol::worker::{Worker, WorkerError};
use crate::randomness::Randomness;
use crate::verifier::proof::{Proof, ProofKind};
use crate::verifier::transcript::Sponge;
use hekaton_arith::Fr;
use hekaton_circuit::{Masking, NotDeterministic};
use std::time::Instant;

/// The number of times that marked values are computed: of values in one of two orders, at least two in each order in 24 of 25
/// cases.
const REPEATS: usize = 9;
/// The most subcircuits of an attempt whose marked values are computed so often. Chance shows in the first ones, and a rank with
/// faulty memory may have thousands.
const MOST_REPEATED: usize = 4;

/// One attempt, with its own randomness.
pub(crate) struct Attempt<'a> {
    pub(crate) session: &'a Session<'a>,
    pub(crate) coordinator: &'a Coordinator<'a>,
    /// The number of the attempt, starting at 1.
    pub(crate) number: u32,
    pub(crate) randomness: &'a Randomness,
    /// The sponge of the transcript, by number of the attempt; tests replace it.
    pub(crate) sponge: &'a dyn Fn(u32) -> Box<dyn Sponge>,
}

impl<'a> Attempt<'a> {
    /// Runs both rounds and the aggregation, and repairs what turns out to be wrong.
    pub(crate) fn run(&self) -> Result<Proof, ProveError> {
        let commit = self.commit_round();
        let (commitments, committed) = self.commit(&commit)?;
        let prove = Round { challenges: Some(committed.prove_round()), ..commit };
        let (mut responses, proven) = self.prove(&prove, committed, &commitments)?;

        self.session.check_cancelled()?;
        let phase = match self.coordinator.proof_kind() {
            ProofKind::Aggregated => Phase::Aggregate,
            ProofKind::Direct => Phase::Assemble,
        };
        let since = self.session.recorder.phase_start(phase, 1, 0);
        let mut proof = proven.finish();
        // Some Mirage equations fail: replace the wrong proofs, then aggregate with the same
        // challenges (spec: distributed#blame, distributed#repair).
        if let Err(CoordinatorError::BadSubcircuits { instances }) = &proof
            && self.repair(&prove, instances, &commitments, &mut responses)?
        {
            let blocks = self.session.engine.blocks(self.coordinator.shared());
            proof = self.aggregate_again(&prove, &commitments, &responses.list, blocks)?;
        }
        // Every Mirage equation holds, so either a rank's part of the aggregation is wrong, or the
        // shared values do not balance: then rank 0 fails, too (spec: distributed#repair).
        if matches!(proof, Err(CoordinatorError::Aggregate(_)))
            && phase == Phase::Aggregate
            && self.session.engine.ranks() > 1
        {
            self.session.notice(
                "every subcircuit's proof verifies, but the aggregate that the ranks computed does \
                 not: possible hardware fault; rank 0 repeats the aggregation alone",
            );
            let blocks =
                Box::new(LocalBlocks::all(self.coordinator.shared(), self.session.engine.pool()));
            proof = self.aggregate_again(&prove, &commitments, &responses.list, blocks)?;
        }
        if matches!(proof, Err(CoordinatorError::Buses))
            && self.counts_were_wrong(&prove, &commitments)?
        {
            return Err(ProveError::WrongCounts);
        }
        let verified = proof?;
        // The proof is written before the seed is removed: a run that is killed in between can
        // still be resumed (spec: zero-knowledge#resume).
        if let Some(journal) = self.session.options.journal {
            journal.finish(&verified)?;
        }
        self.session.phase_end(phase, since, verified.as_bytes().len() as u64)?;
        Ok(verified)
    }

    /// The commit round, as an engine sees it.
    fn commit_round(&self) -> Round<'a> {
        let Session { circuit, keys, options, .. } = self.session;
        let masking = Masking::new(keys.verifying.zero_knowledge);
        if let Some(accelerators) = options.accelerators {
            accelerators.set_cores(self.session.provers());
        }
        Round {
            coordinator: self.coordinator,
            worker: Worker::new(circuit, &keys.types, masking, options.witness_check)
                .accelerators(options.accelerators),
            randomness: self.randomness,
            attempt: self.number,
            challenges: None,
            provers: self.session.provers(),
            waiting: options.accelerators.map_or(0, |all| all.places(&keys.types)),
            cancellation: &options.cancellation,
        }
    }

    /// Runs the commit round and draws the challenges from all commitments
    /// (spec: distributed#rounds, verifier#memory-challenges).
    #[allow(clippy::type_complexity)]
    fn commit(&self, round: &Round<'_>) -> Result<(Vec<Commitment>, Committed<'a>), ProveError> {
        // The log is bound to the execution: commitments to other values must not be mixed in
        // (spec: zero-knowledge#resume).
        let (since, context) = (Instant::now(), self.coordinator.execution_digest());
        let Answers { list, bytes, .. } =
            self.session.round::<Commitment>(round, "commitments", &context).map_err(|error| {
                // There are no challenges yet that could hit a pole.
                self.check_pole(error, None)
            })?;
        let blocks = self.session.engine.blocks(self.coordinator.shared());
        let committed =
            self.coordinator.committed_with((self.sponge)(self.number), list.clone(), blocks)?;
        self.session.phase_end(Phase::Commit, since, bytes)?;
        Ok((list, committed))
    }

    /// Runs the prove round under the challenges of the commit round (spec: distributed#rounds).
    #[allow(clippy::type_complexity)]
    fn prove(
        &self,
        round: &Round<'_>,
        committed: Committed<'a>,
        commitments: &[Commitment],
    ) -> Result<(Answers<'a, ProofResponse>, Proven<'a>), ProveError> {
        let since = Instant::now();
        // This log is bound to the challenges, too: a proof under others is worthless.
        let context =
            [&self.coordinator.execution_digest()[..], &committed.prove_round().to_bytes()]
                .concat();
        let responses = self.session.round::<ProofResponse>(round, "proofs", &context);
        let mut responses =
            responses.map_err(|error| self.check_pole(error, Some(committed.prove_round())))?;
        // An answer with another mark than that of the commitment is a fault of one of the two rounds, or
        // of the circuit: then it comes out the same again (spec: distributed#repair).
        let mut repeated = 0;
        while let Some(instance) = differing_mark(commitments, &responses.list) {
            self.count_for(&[instance])?;
            if repeated < MOST_REPEATED {
                self.check_determinism(round, instance)?;
                repeated += 1;
            }
            if !self.repair(round, &[instance], commitments, &mut responses)? {
                break;
            }
        }
        let proven = committed.proven(responses.list.clone())?;
        self.session.phase_end(Phase::Prove, since, responses.bytes)?;
        Ok((responses, proven))
    }

    /// A pole costs an attempt, so a worker's claim of one is checked (spec: memory-check#pole).
    fn check_pole(&self, error: ProveError, round: Option<ProveRound>) -> ProveError {
        let ProveError::Worker(WorkerError::Pole { instance }) = error else { return error };
        let hits = round.map_or(Ok(false), |round| {
            self.coordinator.hits_pole(instance, self.randomness, &round.memory)
        });
        match hits {
            Ok(true) => error,
            Ok(false) => ProveError::FalsePole { instance, by: self.session.by(instance) },
            Err(other) => other.into(),
        }
    }

    /// Recomputes the answers of bad subcircuits in this process and replaces wrong proofs. Returns
    /// whether any proof was replaced (spec: distributed#repair).
    fn repair(
        &self,
        prove: &Round<'_>,
        bad: &[usize],
        commitments: &[Commitment],
        responses: &mut Answers<'_, ProofResponse>,
    ) -> Result<bool, ProveError> {
        self.count_for(bad)?;
        // Answers are functions of the seed, so an answer that differs now was computed by faulty
        // hardware.
        let prove = Round { worker: prove.worker.accelerators(None), ..*prove };
        let again = self.session.engine.pool().map(bad.to_vec(), |i| {
            let commit = Round { challenges: None, ..prove };
            let commitment = commit.make::<Commitment>(i)?.answer;
            Ok::<_, ProveError>((commitment, prove.make::<ProofResponse>(i)?.answer))
        });
        let mut replaced = Vec::new();
        for again in again {
            let (commitment, response) = again?;
            let instance = response.instance;
            // All proofs were made under the challenges of this commitment: the attempt cannot be
            // saved, and another one draws new randomness (spec: zero-knowledge#restart).
            if commitment != commitments[instance] {
                self.check_determinism(&prove, instance)?;
                self.session.give_up_maker(Phase::Commit, instance);
                return Err(ProveError::WrongCommitment {
                    instance,
                    by: self.session.by(instance),
                });
            }
            // The log keeps both; of two answers for one instance the later one counts.
            if response != responses.list[instance] {
                self.session.give_up_maker(Phase::Prove, instance);
                responses.log.as_ref().map_or(Ok(()), |log| log.append(&response.to_bytes()))?;
                responses.list[instance] = response;
                replaced.push(format!("{instance}{}", self.session.by(instance)));
            }
        }
        if !replaced.is_empty() {
            let list = replaced.join(", ");
            self.session.notice(format!(
                "the proofs of these subcircuits were wrong and have been recomputed: {list}; \
                 possible hardware fault"
            ));
        }
        Ok(!replaced.is_empty())
    }

    /// Counts look-ups if one of these subcircuits is a table and all answers so far came from logs, so that they have not been
    /// counted yet.
    fn count_for(&self, instances: &[usize]) -> Result<(), ProveError> {
        let is_table = |instance: &usize| self.coordinator.is_table(*instance);
        if instances.iter().any(is_table) && self.coordinator.counts().is_none() {
            let (pool, options) = (self.session.engine.pool(), &self.session.options);
            counting::count_again(self.coordinator, pool, &options.cancellation)?;
        }
        Ok(())
    }

    /// Checks that the marked values of a subcircuit, whose answers contradict each other, are the same whenever this
    /// process computes them. If they are, its answers contradict each other because of a fault; and so may a single time in
    /// which they differ.
    fn check_determinism(&self, round: &Round<'_>, instance: usize) -> Result<(), ProveError> {
        let mut found: Vec<Vec<Fr>> = Vec::new();
        for _ in 0..REPEATS {
            self.session.check_cancelled()?;
            let job = self.coordinator.prove_job(instance, self.randomness)?;
            found.push(round.worker.marked_values(&job)?);
            if found[0].is_empty() {
                return Ok(());
            }
        }
        let equal = |values: &&Vec<Fr>| found.iter().filter(|other| other == values).count();
        let usual = found.iter().max_by_key(equal).expect("they were computed several times");
        let mut others = found.iter().filter(|values| *values != usual);
        match (others.next(), others.next()) {
            (Some(other), Some(_)) => {
                let kind = self.coordinator.type_name(instance).to_owned();
                let marked = usual.iter().zip(other).position(|(usual, other)| usual != other);
                let marked = marked.expect("lists of one type have the same length");
                Err(NotDeterministic { instance, kind, marked }.into())
            }
            _ => Ok(()),
        }
    }

    /// Reports whether a table has committed to multiplicities other than those that this process
    /// counts. After that its counts are right. The counts of earlier processes are not known, only
    /// their commitments (spec: buses#counting).
    fn counts_were_wrong(
        &self,
        prove: &Round<'_>,
        commitments: &[Commitment],
    ) -> Result<bool, ProveError> {
        let pool = self.session.engine.pool();
        let tables: Vec<usize> =
            (0..commitments.len()).filter(|i| self.coordinator.is_table(*i)).collect();
        if tables.is_empty() {
            return Ok(false);
        }
        self.session.notice(
            "every subcircuit's proof verifies, but the entries of the buses do not cancel: this process \
             counts all look-ups again",
        );
        counting::count_again(self.coordinator, pool, &self.session.options.cancellation)?;
        let worker = prove.worker.accelerators(None);
        let commit = Round { challenges: None, worker, ..*prove };
        let made = pool.map(tables, |i| Ok(commit.make::<Commitment>(i)?.answer));
        let again = made.into_iter().collect::<Result<Vec<Commitment>, ProveError>>()?;
        Ok(again.iter().any(|commitment| *commitment != commitments[commitment.instance]))
    }

    /// Repeats the aggregation from its beginning, over these blocks.
    fn aggregate_again(
        &self,
        round: &Round<'_>,
        commitments: &[Commitment],
        responses: &[ProofResponse],
        blocks: Box<dyn Blocks + '_>,
    ) -> Result<Result<Proof, CoordinatorError>, ProveError> {
        let sponge = (self.sponge)(self.number);
        let committed = round.coordinator.committed_with(sponge, commitments.to_vec(), blocks)?;
        // The same commitments must lead to the challenges under which the proofs were made;
        // otherwise cm_D was wrong then or is wrong now. Masks and k_D must not be used under a
        // second pair of challenges (spec: distributed#repair, zero-knowledge#restart).
        if Some(committed.prove_round()) != round.challenges {
            return Err(ProveError::WrongChallenges);
        }
        Ok(committed.proven(responses.to_vec())?.finish())
    }
}

/// The first instance whose answers do not have one mark.
fn differing_mark(commitments: &[Commitment], responses: &[ProofResponse]) -> Option<usize> {
    let differs =
        |(c, r): &(&Commitment, &ProofResponse)| c.instance == r.instance && c.mark != r.mark;
    commitments.iter().zip(responses).find(differs).map(|(_, response)| response.instance)
}
