//! A whole run on one engine: commit round, prove round, aggregation.

use crate::aggregation::Proof;
use crate::circuit::Circuit;
use crate::coordinator::{Coordinator, CoordinatorError};
use crate::engine::Engine;
use crate::keys::ProverKeys;
use crate::randomness::Randomness;
use crate::transcript::{Merlin, Sponge};
use crate::worker::{Worker, WorkerError};
use hekaton_arith::Fr;
use std::time::{Duration, Instant};

/// How often a run starts over after a pole before it gives up; a pole has a probability of about 2^-230.
const ATTEMPTS: u32 = 4;

/// Options of [`prove`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProveOptions {
    /// The run's randomness; `None` (default) draws it fresh for each run.
    pub randomness: Option<Randomness>,
    /// Whether each prover checks its witness against the constraints before it proves (default; one more sparse product).
    /// A wrong witness is then named at once; without, the coordinator finds it after the aggregation.
    pub check_constraints: bool,
}

impl Default for ProveOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl ProveOptions {
    /// Zero-knowledge proofs, fresh randomness for each run.
    pub fn new() -> Self {
        Self { randomness: None, check_constraints: true }
    }

    /// Proofs with given randomness: for tests, and for going on with an interrupted run of the same input.
    pub fn with_randomness(randomness: Randomness) -> Self {
        Self { randomness: Some(randomness), ..Self::new() }
    }

    /// Switches the provers' own check of their witness off.
    #[must_use]
    pub fn without_constraint_check(mut self) -> Self {
        self.check_constraints = false;
        self
    }
}

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
}

impl ProveError {
    fn is_pole(&self) -> bool {
        matches!(self, Self::Worker(WorkerError::Pole { .. }) | Self::Coordinator(CoordinatorError::Pole { .. }))
    }
}

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// All shared-wire values from the input.
    Execute,
    /// Commitments to all subtraces.
    Commit,
    /// Proofs of all subcircuits.
    Prove,
    /// One proof of them all, and its verification.
    Aggregate,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 4] = [Self::Execute, Self::Commit, Self::Prove, Self::Aggregate];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Commit => "commit round",
            Self::Prove => "prove round",
            Self::Aggregate => "aggregate",
        }
    }
}

/// What happens in a run, for progress bars. Called from several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A phase begins that has so many steps.
    Begin(Phase, usize),
    /// A subcircuit is done in this phase.
    Step(Phase, usize),
    /// The challenges met a pole: everything starts again with new randomness.
    Restart,
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
    /// Wall-clock time of each phase, in the order of [`Phase::ALL`].
    pub times: [Duration; 4],
    /// Bytes of shared values, challenges, points and proofs that each phase exchanges or makes, in the order of
    /// [`Phase::ALL`]; private inputs are not counted. On one machine nothing is sent: it is what a phase is about.
    pub bytes: [u64; 4],
}

/// Proves an execution of `circuit` on `input`.
///
/// The proof is verified before it is given out.
///
/// # Errors
/// When the input, the circuit or the keys are wrong; bad subcircuits are named.
pub fn prove<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    keys: &ProverKeys,
    engine: &impl Engine,
    options: &ProveOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Run, ProveError> {
    prove_with(circuit, input, keys, engine, options, progress, &|_| Box::new(Merlin::new()))
}

/// [`prove`] over any sponge; it is given the number of the attempt.
pub(crate) fn prove_with<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    keys: &ProverKeys,
    engine: &impl Engine,
    options: &ProveOptions,
    progress: &(dyn Fn(Progress) + Sync),
    sponge: &dyn Fn(u32) -> Box<dyn Sponge>,
) -> Result<Run, ProveError> {
    let mut randomness = options.randomness.clone().map_or_else(Randomness::fresh, Ok)?;
    let mut attempt = 1;
    loop {
        match prove_once(circuit, input, keys, engine, options, &randomness, progress, sponge(attempt)) {
            Err(error) if error.is_pole() && attempt < ATTEMPTS => {
                tracing::warn!(%error, "starting again with new randomness");
                progress(Progress::Restart);
                // All randomness is drawn anew: what was committed to under these challenges must not be used again.
                randomness = randomness.next_attempt();
                attempt += 1;
            }
            other => return other,
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn prove_once<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    keys: &ProverKeys,
    engine: &impl Engine,
    options: &ProveOptions,
    randomness: &Randomness,
    progress: &(dyn Fn(Progress) + Sync),
    sponge: Box<dyn Sponge>,
) -> Result<Run, ProveError> {
    let mut clock = Instant::now();
    let mut times = Vec::with_capacity(4);
    let mut lap = || times.push(std::mem::replace(&mut clock, Instant::now()).elapsed());

    progress(Progress::Begin(Phase::Execute, 1));
    let coordinator = Coordinator::new(circuit, input, keys)?;
    let n = coordinator.instances();
    let order = coordinator.order();
    let worker =
        Worker::new(circuit, &keys.types, keys.verifying.zero_knowledge, randomness, options.check_constraints);
    progress(Progress::Step(Phase::Execute, 0));
    lap();

    progress(Progress::Begin(Phase::Commit, n));
    let commit = |i: usize| -> Result<_, ProveError> {
        let job = coordinator.job(i, randomness, false)?;
        Ok(worker.commit(job)?.1)
    };
    let commitments = engine.round(&order, commit, |i| progress(Progress::Step(Phase::Commit, i)))?;
    let committed = coordinator.committed_with(sponge, commitments, engine)?;
    lap();

    progress(Progress::Begin(Phase::Prove, n));
    let round = committed.prove_round();
    let prove = |i: usize| -> Result<_, ProveError> {
        let job = coordinator.job(i, randomness, true)?;
        Ok(worker.resume(job).prove(&round)?)
    };
    let responses = engine.round(&order, prove, |i| progress(Progress::Step(Phase::Prove, i)))?;
    let proven = committed.proven(responses)?;
    lap();

    progress(Progress::Begin(Phase::Aggregate, 1));
    let proof = proven.aggregate(engine)?;
    progress(Progress::Step(Phase::Aggregate, 0));
    lap();

    let slots = coordinator.total_slots();
    let n64 = n as u64;
    Ok(Run {
        public_values: coordinator.public_values().to_vec(),
        instances: n,
        constraints: coordinator.total_constraints(),
        times: times.try_into().unwrap_or_default(),
        // values up, D down; challenges up, (A, B, C, e) down; the proof
        bytes: [0, 32 * slots + 48 * n64, (64 + 48 + 96 + 48 + 32) * n64, proof.as_bytes().len() as u64],
        proof,
    })
}
