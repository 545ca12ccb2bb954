//! A whole run on one engine: commit round, prove round, aggregation.

use crate::aggregation::blocks::{Blocks, LocalBlocks};
use crate::aggregation::{Proof, verify};
use crate::circuit::Circuit;
use crate::coordinator::{Coordinator, CoordinatorError};
use crate::engine::{Engine, Pool, Round, Work};
use crate::events::{Event, Outcome, Phase, Recorder};
use crate::keys::ProverKeys;
use crate::messages::{Answer, Commitment, Message, ProofResponse};
use crate::options::ProveOptions;
use crate::randomness::Randomness;
use crate::run::{RoundLog, RunError};
use crate::transcript::{Merlin, Sponge};
use crate::worker::{Worker, WorkerError};
use hekaton_arith::Fr;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a run starts over after a pole before it gives up; a pole has a probability of about 2^-230.
const ATTEMPTS: u32 = 4;

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The coordinator stopped.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// A worker failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// No randomness.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    /// The run directory can't be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run directory is one for other keys.
    #[error("the run directory was opened for another verifying key than the one that is used")]
    ForeignRun,
    /// A commitment is not what it must be: a machine is broken. Proofs under its challenges were made, so all begins again
    /// with new randomness.
    #[error("the commitment of subcircuit {instance}{by} was wrong: a machine is broken, or was")]
    WrongCommitment {
        /// The subcircuit.
        instance: usize,
        /// Who made it, if that is known and was not this process: " (by rank ...)".
        by: String,
    },
    /// The commitment to all subtraces was not what it must be, so proofs were made under wrong challenges; all begins again
    /// with new randomness.
    #[error("the commitment to all subtraces was wrong, and so were the challenges: a machine is broken, or was")]
    WrongChallenges,
    /// Somebody asked the run to stop.
    #[error("cancelled")]
    Cancelled,
}

impl ProveError {
    pub(crate) fn from_rank(error: crate::ranks::RankError) -> Self {
        Self::Coordinator(error.into())
    }

    /// Whether another attempt, with new randomness, may end better.
    fn starts_over(&self) -> bool {
        matches!(
            self,
            Self::Worker(WorkerError::Pole { .. })
                | Self::Coordinator(CoordinatorError::Pole { .. })
                | Self::WrongCommitment { .. }
                | Self::WrongChallenges
        )
    }
}

/// A finished run.
#[derive(Debug)]
pub struct Run {
    /// The proof; it was verified.
    pub proof: Proof,
    /// The public values that it proves.
    pub public_values: Vec<Fr>,
    /// Number of subcircuits.
    pub instances: usize,
    /// Constraints of all subcircuits.
    pub constraints: u64,
}

/// Proves an execution of `circuit` on `input`.
///
/// The proof is verified before it is given out. With a [run directory](ProveOptions::run_directory) every answer is
/// kept, and what an earlier process kept is not done again.
///
/// # Errors
/// When the input, the circuit or the keys are wrong; bad subcircuits are named. When it was cancelled.
pub fn prove<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    keys: &ProverKeys,
    engine: &impl Engine,
    options: &ProveOptions<'_>,
) -> Result<Run, ProveError> {
    prove_with(circuit, input, keys, engine, options, &|_| Box::new(Merlin::new()))
}

/// [`prove`] over any sponge; it is given the number of the attempt.
pub(crate) fn prove_with<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    keys: &ProverKeys,
    engine: &impl Engine,
    options: &ProveOptions<'_>,
    sponge: &dyn Fn(u32) -> Box<dyn Sponge>,
) -> Result<Run, ProveError> {
    let silent = Recorder::silent();
    let recorder = options.recorder.unwrap_or(&silent);
    let result = Session { circuit, keys, engine, options, recorder }.attempts(input, sponge);
    let outcome = match &result {
        Ok(_) => Outcome::Finished,
        Err(ProveError::Cancelled) => Outcome::Interrupted,
        Err(error) => {
            recorder.emit(Event::Error { message: error.to_string() });
            Outcome::Failed
        }
    };
    recorder.emit(Event::RunEnd { outcome, seconds: recorder.now() });
    result
}

/// What stays the same over all attempts of a run.
struct Session<'a, C, E> {
    circuit: &'a C,
    keys: &'a ProverKeys,
    engine: &'a E,
    options: &'a ProveOptions<'a>,
    recorder: &'a Recorder<'a>,
}

impl<C: Circuit, E: Engine> Session<'_, C, E> {
    fn attempts(&self, input: &C::Input, sponge: &dyn Fn(u32) -> Box<dyn Sponge>) -> Result<Run, ProveError> {
        let mut attempt = 1;
        let coordinator = self.start(input)?;
        if let Some(run) = self.finished(&coordinator)? {
            return Ok(run);
        }
        let mut randomness = match (self.options.run, &self.options.randomness) {
            (Some(run), _) => run.randomness()?,
            (None, Some(randomness)) => randomness.clone(),
            (None, None) => Randomness::fresh()?,
        };
        loop {
            match self.attempt(&coordinator, attempt, &randomness, sponge) {
                Err(error) if error.starts_over() && attempt < ATTEMPTS => {
                    tracing::warn!(%error, "starting again with new randomness");
                    attempt += 1;
                    self.recorder.emit(Event::Notice { message: error.to_string() });
                    self.recorder.emit(Event::Restart { attempt });
                    // All randomness is drawn anew: what was committed to under these challenges must not be used again.
                    randomness = randomness.next_attempt();
                }
                other => return other,
            }
        }
    }

    /// Executes the circuit and tells what the run is.
    fn start<'c>(&'c self, input: &'c C::Input) -> Result<Coordinator<'c, C>, ProveError> {
        let (recorder, run) = (self.recorder, self.options.run);
        if run.is_some_and(|run| !run.is_for(&self.keys.verifying)) {
            return Err(ProveError::ForeignRun);
        }
        let since = recorder.phase_start(Phase::Execute, 1, 0);
        let coordinator = Coordinator::new(self.circuit, input, self.keys)?;
        recorder.phase_end(Phase::Execute, since, 0);
        let vk = &self.keys.verifying;
        let seeded = match run {
            Some(run) => run.has_insecure_seed(),
            None => self.options.randomness.as_ref().is_some_and(Randomness::is_seeded),
        };
        recorder.emit(Event::RunStart {
            circuit: vk.circuit.clone(),
            parameters: vk.parameters.clone(),
            verifying_key: hex::encode(vk.digest()),
            layout: hex::encode(vk.layout),
            subcircuits: vk.instances,
            constraints: coordinator.total_constraints(),
            types: coordinator.type_summaries(),
            threads: self.engine.pool().threads() as u64,
            provers: self.provers() as u64,
            ranks: self.engine.ranks() as u64,
            zero_knowledge: vk.zero_knowledge && !seeded,
            check_constraints: self.options.check_constraints,
            resumed: run.is_some_and(|run| run.is_resumed()),
        });
        for message in run.map(|run| run.take_notices()).unwrap_or_default() {
            recorder.emit(Event::Notice { message });
        }
        Ok(coordinator)
    }

    /// The proof that an earlier process finished.
    fn finished(&self, coordinator: &Coordinator<'_, C>) -> Result<Option<Run>, ProveError> {
        let Some((run, bytes)) = self.options.run.and_then(|run| Some((run, run.proof()?))) else { return Ok(None) };
        match verify(&self.keys.verifying, coordinator.public_values(), &bytes) {
            Ok(()) => {
                let message = "the run was finished already: its proof verifies".to_owned();
                self.recorder.emit(Event::Notice { message });
                // whoever finished it may have been killed before this
                run.remove_seed()?;
                Ok(Some(run_of(coordinator, Proof::from_verified(bytes))))
            }
            Err(_) if !run.has_seed() => Err(RunError::Finished { path: run.path().to_owned() }.into()),
            Err(error) => {
                let message = format!("the run directory's proof does not verify ({error}) and is made again");
                self.recorder.emit(Event::Notice { message });
                Ok(None)
            }
        }
    }

    fn provers(&self) -> usize {
        self.engine.provers(self.options.provers)
    }

    /// Who made an answer, for messages.
    fn by(&self, instance: usize) -> String {
        self.engine.maker(instance).map_or_else(String::new, |maker| format!(" (by {maker})"))
    }

    fn attempt(
        &self,
        coordinator: &Coordinator<'_, C>,
        attempt: u32,
        randomness: &Randomness,
        sponge: &dyn Fn(u32) -> Box<dyn Sponge>,
    ) -> Result<Run, ProveError> {
        let check = self.options.check_constraints;
        let worker = Worker::new(self.circuit, &self.keys.types, self.keys.verifying.zero_knowledge, randomness, check);
        let cancellation = &self.options.cancellation;
        let commit =
            Round { coordinator, worker, randomness, attempt, challenges: None, provers: self.provers(), cancellation };

        let (since, context) = (std::time::Instant::now(), coordinator.execution_digest());
        let (_, commitments, bytes) = self.round::<Commitment>(&commit, "commitments", &context)?;
        let blocks = self.engine.blocks(coordinator.shared());
        let committed = coordinator.committed_with(sponge(attempt), commitments.clone(), blocks)?;
        self.phase_end(Phase::Commit, since, bytes)?;

        let (since, challenges) = (std::time::Instant::now(), committed.prove_round());
        let context = [&context[..], &challenges.to_bytes()].concat();
        let prove = Round { challenges: Some(challenges), ..commit };
        let (log, mut responses, bytes) = self.round::<ProofResponse>(&prove, "proofs", &context)?;
        let proven = committed.proven(responses.clone())?;
        self.phase_end(Phase::Prove, since, bytes)?;

        self.check_cancelled()?;
        let since = self.recorder.phase_start(Phase::Aggregate, 1, 0);
        let mut proof = proven.aggregate();
        if let Err(CoordinatorError::BadSubcircuits { instances }) = &proof {
            // Answers are functions of the seed: what comes out otherwise now was made by a broken machine.
            let again = self.engine.pool().map(instances.clone(), |i| {
                let commit = Round { challenges: None, ..prove };
                Ok::<_, ProveError>((commit.make::<Commitment>(i)?, prove.make::<ProofResponse>(i)?))
            });
            let mut mended = Vec::new();
            for again in again {
                let (commitment, response) = again?;
                let instance = response.instance;
                if commitment != commitments[instance] {
                    return Err(ProveError::WrongCommitment { instance, by: self.by(instance) });
                }
                if response != responses[instance] {
                    log.as_ref().map_or(Ok(()), |log| log.append(&response))?;
                    responses[instance] = response;
                    mended.push(format!("{instance}{}", self.by(instance)));
                }
            }
            if !mended.is_empty() {
                let list = mended.join(", ");
                let message = format!(
                    "the proofs of these subcircuits were wrong and were made again: {list}; a machine is broken, or was"
                );
                self.recorder.emit(Event::Notice { message });
                let blocks = self.engine.blocks(coordinator.shared());
                proof = self.aggregate_again(&prove, sponge(attempt), &commitments, &responses, blocks)?;
            }
        }
        if matches!(proof, Err(CoordinatorError::Aggregate(_))) && self.engine.ranks() > 1 {
            let message = "every subcircuit's proof verifies but not what the ranks aggregated: a machine is broken, \
                           or was; it is aggregated again by rank 0 alone";
            self.recorder.emit(Event::Notice { message: message.to_owned() });
            let blocks = LocalBlocks::all(coordinator.shared(), self.engine.pool());
            proof = self.aggregate_again(&prove, sponge(attempt), &commitments, &responses, blocks)?;
        }
        let proof = proof?;
        if let Some(run) = self.options.run {
            run.finish(&proof)?;
        }
        self.phase_end(Phase::Aggregate, since, proof.as_bytes().len() as u64)?;
        Ok(run_of(coordinator, proof))
    }

    /// The aggregation from its beginning, over these blocks. It must come to the challenges under which the proofs were
    /// made: if it does not, cm_D was wrong then or is now.
    fn aggregate_again<B: Blocks>(
        &self,
        round: &Round<'_, C>,
        sponge: Box<dyn Sponge>,
        commitments: &[Commitment],
        responses: &[ProofResponse],
        blocks: B,
    ) -> Result<Result<Proof, CoordinatorError>, ProveError> {
        let committed = round.coordinator.committed_with(sponge, commitments.to_vec(), blocks)?;
        if Some(committed.prove_round()) != round.challenges {
            return Err(ProveError::WrongChallenges);
        }
        Ok(committed.proven(responses.to_vec())?.aggregate())
    }

    fn check_cancelled(&self) -> Result<(), ProveError> {
        if self.options.cancellation.is_cancelled() { Err(ProveError::Cancelled) } else { Ok(()) }
    }

    /// What the ranks did in a phase, and its end.
    fn phase_end(&self, phase: Phase, since: std::time::Instant, bytes: u64) -> Result<(), ProveError> {
        for account in self.engine.account(phase)? {
            self.recorder.emit(Event::Rank(account));
        }
        self.recorder.phase_end(phase, since, bytes);
        Ok(())
    }

    /// One round: what the log has is taken from it, the rest is done and goes into it, answer by answer. Gives the bytes
    /// that were exchanged, too.
    fn round<A: Answer>(
        &self,
        round: &Round<'_, C>,
        name: &'static str,
        context: &[u8],
    ) -> Result<(Option<RoundLog<'_>>, Vec<A>, u64), ProveError> {
        self.check_cancelled()?;
        let log = self.options.run.map(|run| run.log::<A>(name, round.attempt, context, self.engine.pool()));
        let log = match log.transpose() {
            // the commitments are the same, or their log would not be ours: their sum was another one then
            Err(RunError::OtherLog { .. }) if A::PHASE == Phase::Prove && round.attempt < ATTEMPTS => {
                return Err(ProveError::WrongChallenges);
            }
            other => other?,
        };
        let (log, mut answers) = match log {
            Some((log, found)) => {
                found.notices.into_iter().for_each(|message| self.recorder.emit(Event::Notice { message }));
                (Some(log), found.answers)
            }
            None => (None, std::collections::BTreeMap::new()),
        };
        let coordinator = round.coordinator;
        let mut order = coordinator.order();
        order.retain(|i| !answers.contains_key(i));
        self.recorder.phase_start(A::PHASE, coordinator.instances(), answers.len());
        let exchanged = AtomicU64::new(0);
        let new = self.engine.round::<C, A>(round, &order, &|answer, Work { seconds, bytes, prover }| {
            if let Some(log) = &log {
                log.append(answer)?;
            }
            exchanged.fetch_add(bytes, Ordering::Relaxed);
            self.recorder.emit(Event::Subcircuit {
                phase: A::PHASE,
                instance: answer.instance() as u64,
                kind: coordinator.type_name(answer.instance()).to_owned(),
                start: self.recorder.now() - seconds,
                seconds,
                bytes,
                prover,
            });
            Ok(())
        });
        // what was done outlives a power failure, however the round ended
        let synced = log.as_ref().map_or(Ok(()), RoundLog::sync);
        let new = new?;
        synced?;
        answers.extend(new.into_iter().map(|answer| (answer.instance(), answer)));
        Ok((log, answers.into_values().collect(), exchanged.into_inner()))
    }
}

fn run_of<C: Circuit>(coordinator: &Coordinator<'_, C>, proof: Proof) -> Run {
    Run {
        proof,
        public_values: coordinator.public_values().to_vec(),
        instances: coordinator.instances(),
        constraints: coordinator.total_constraints(),
    }
}
