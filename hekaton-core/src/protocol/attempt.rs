//! One attempt at a proof: commit round, prove round, aggregation, and the repair of what a faulty machine computed.

use crate::aggregation::blocks::{Blocks, LocalBlocks};
use crate::events::Phase;
use crate::pool::Pool;
use crate::protocol::coordinator::{Committed, Coordinator, CoordinatorError, Proven};
use crate::protocol::engine::{Engine, Round};
use crate::protocol::error::ProveError;
use crate::protocol::messages::{Commitment, Message, ProofResponse};
use crate::protocol::session::{Answers, Session};
use crate::protocol::worker::Worker;
use crate::randomness::Randomness;
use crate::verifier::proof::Proof;
use crate::verifier::transcript::Sponge;
use hekaton_circuit::{Circuit, Masking};
use std::time::Instant;

/// One attempt, with randomness of its own.
pub(crate) struct Attempt<'a, C: Circuit, E> {
    pub(crate) session: &'a Session<'a, C, E>,
    pub(crate) coordinator: &'a Coordinator<'a, C>,
    /// the number of the attempt, from 1
    pub(crate) number: u32,
    pub(crate) randomness: &'a Randomness,
    pub(crate) sponge: &'a dyn Fn(u32) -> Box<dyn Sponge>,
}

impl<'a, C: Circuit, E: Engine> Attempt<'a, C, E> {
    /// All of it.
    pub(crate) fn run(&self) -> Result<Proof, ProveError> {
        let commit = self.commit_round();
        let (commitments, committed) = self.commit(&commit)?;
        let prove = Round { challenges: Some(committed.prove_round()), ..commit };
        let (mut responses, proven) = self.prove(&prove, committed)?;

        self.session.check_cancelled()?;
        let since = self.session.recorder.phase_start(Phase::Aggregate, 1, 0);
        let mut proof = proven.aggregate();
        if let Err(CoordinatorError::BadSubcircuits { instances }) = &proof
            && self.repair(&prove, instances, &commitments, &mut responses)?
        {
            let blocks = self.session.engine.blocks(self.coordinator.shared());
            proof = self.aggregate_again(&prove, &commitments, &responses.list, blocks)?;
        }
        if matches!(proof, Err(CoordinatorError::Aggregate(_))) && self.session.engine.ranks() > 1 {
            self.session.notice(
                "every subcircuit's proof verifies but not what the ranks aggregated: a machine is broken, or was; it is \
                 aggregated again by rank 0 alone",
            );
            let blocks = LocalBlocks::all(self.coordinator.shared(), self.session.engine.pool());
            proof = self.aggregate_again(&prove, &commitments, &responses.list, blocks)?;
        }
        let proof = proof?;
        if let Some(journal) = self.session.options.journal {
            journal.finish(&proof)?;
        }
        self.session.phase_end(Phase::Aggregate, since, proof.as_bytes().len() as u64)?;
        Ok(proof)
    }

    fn commit_round(&self) -> Round<'a, C> {
        let Session { circuit, keys, options, .. } = self.session;
        let masking = Masking::new(keys.verifying.zero_knowledge);
        Round {
            coordinator: self.coordinator,
            worker: Worker::new(
                circuit,
                &keys.types,
                masking,
                self.randomness,
                options.witness_check,
            ),
            randomness: self.randomness,
            attempt: self.number,
            challenges: None,
            provers: self.session.provers(),
            cancellation: &options.cancellation,
        }
    }

    /// The commit round (spec: distributed#rounds), and the challenges that follow from all commitments. The log is bound
    /// to the execution: commitments to other values must not be mixed in.
    #[allow(clippy::type_complexity)]
    fn commit(
        &self,
        round: &Round<'_, C>,
    ) -> Result<(Vec<Commitment>, Committed<'a, C, E::Blocks<'a>>), ProveError> {
        let (since, context) = (Instant::now(), self.coordinator.execution_digest());
        let Answers { list, bytes, .. } =
            self.session.round::<Commitment>(round, "commitments", &context)?;
        let blocks = self.session.engine.blocks(self.coordinator.shared());
        let committed =
            self.coordinator.committed_with((self.sponge)(self.number), list.clone(), blocks)?;
        self.session.phase_end(Phase::Commit, since, bytes)?;
        Ok((list, committed))
    }

    /// The prove round under those challenges. The log is bound to them too: a proof under other challenges is worthless.
    #[allow(clippy::type_complexity)]
    fn prove(
        &self,
        round: &Round<'_, C>,
        committed: Committed<'a, C, E::Blocks<'a>>,
    ) -> Result<(Answers<'a, ProofResponse>, Proven<'a, C, E::Blocks<'a>>), ProveError> {
        let since = Instant::now();
        let context =
            [&self.coordinator.execution_digest()[..], &committed.prove_round().to_bytes()]
                .concat();
        let responses = self.session.round::<ProofResponse>(round, "proofs", &context)?;
        let proven = committed.proven(responses.list.clone())?;
        self.session.phase_end(Phase::Prove, since, responses.bytes)?;
        Ok((responses, proven))
    }

    /// Computes the answers of bad subcircuits again, in this process. Answers are functions of the seed, so one that
    /// comes out otherwise now was made by faulty hardware: a proof is replaced, a commitment ends the attempt, because
    /// all proofs were made under its challenges. Returns whether anything was replaced (spec: distributed#blame).
    fn repair(
        &self,
        prove: &Round<'_, C>,
        bad: &[usize],
        commitments: &[Commitment],
        responses: &mut Answers<'_, ProofResponse>,
    ) -> Result<bool, ProveError> {
        let again = self.session.engine.pool().map(bad.to_vec(), |i| {
            let commit = Round { challenges: None, ..*prove };
            Ok::<_, ProveError>((commit.make::<Commitment>(i)?, prove.make::<ProofResponse>(i)?))
        });
        let mut replaced = Vec::new();
        for again in again {
            let (commitment, response) = again?;
            let instance = response.instance;
            if commitment != commitments[instance] {
                return Err(ProveError::WrongCommitment {
                    instance,
                    by: self.session.by(instance),
                });
            }
            if response != responses.list[instance] {
                responses.log.as_ref().map_or(Ok(()), |log| log.append(&response.to_bytes()))?;
                responses.list[instance] = response;
                replaced.push(format!("{instance}{}", self.session.by(instance)));
            }
        }
        if !replaced.is_empty() {
            let list = replaced.join(", ");
            self.session.notice(format!(
                "the proofs of these subcircuits were wrong and were made again: {list}; a machine is broken, or was"
            ));
        }
        Ok(!replaced.is_empty())
    }

    /// The aggregation from its beginning, over these blocks. It must come to the challenges under which the proofs were
    /// made: if it does not, cm_D was wrong then or is wrong now.
    fn aggregate_again<B: Blocks>(
        &self,
        round: &Round<'_, C>,
        commitments: &[Commitment],
        responses: &[ProofResponse],
        blocks: B,
    ) -> Result<Result<Proof, CoordinatorError>, ProveError> {
        let sponge = (self.sponge)(self.number);
        let committed = round.coordinator.committed_with(sponge, commitments.to_vec(), blocks)?;
        if Some(committed.prove_round()) != round.challenges {
            return Err(ProveError::WrongChallenges);
        }
        Ok(committed.proven(responses.to_vec())?.aggregate())
    }
}
