//! The worker: proves subcircuits, one at a time, on one thread.
//!
//! The two rounds are two states: only the [`CommittedSubcircuit`] that [`Worker::commit`] returns
//! can [`prove`](CommittedSubcircuit::prove) (spec: distributed#states).

use crate::keys::KeyFileError;
use crate::mirage::{self, Blinding, ProvingKey, Unsatisfied, WitnessCheck};
use crate::protocol::messages::{Commitment, Job, ProofResponse, ProveRound};
use crate::randomness::{InstanceRandomness, Purpose};
use ark_ff::{Field, Zero};
use hekaton_arith::Fr;
use hekaton_circuit::prover::Prefix;
use hekaton_circuit::{Masking, PreparedCircuit, SynthesizeError};

/// The error of a worker that returns no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The witness does not satisfy the constraints.
    #[error("instance {instance} of type '{kind}': {source}")]
    Unsatisfied {
        /// The instance.
        instance: usize,
        /// Its type.
        kind: String,
        /// The constraint that fails.
        source: Unsatisfied,
    },
    /// Synthesis failed.
    #[error("instance {instance}: {source}")]
    Synthesize {
        /// The instance.
        instance: usize,
        /// The error of the synthesis.
        source: SynthesizeError,
    },
    /// The challenges hit a pole (zero denominator): the coordinator restarts with new randomness.
    #[error(
        "instance {instance}: the challenges hit a pole (zero denominator) of the memory check"
    )]
    Pole {
        /// The instance.
        instance: usize,
    },
    /// The job does not match the keys.
    #[error("instance {instance}: {why}")]
    Job {
        /// The instance.
        instance: usize,
        /// What does not match.
        why: String,
    },
    /// The key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

/// A prover of subcircuits. It is cheap to copy and holds no state of any job.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    circuit: &'a PreparedCircuit<'a>,
    keys: &'a [ProvingKey],
    masking: Masking,
    witness_check: WitnessCheck,
}

/// A subcircuit after its subtrace has been committed to.
#[derive(Debug)]
pub struct CommittedSubcircuit<'a> {
    worker: Worker<'a>,
    job: Job,
}

impl<'a> Worker<'a> {
    /// Creates a worker from the proving keys of all types, in the order of the layout.
    pub fn new(
        circuit: &'a PreparedCircuit<'a>,
        keys: &'a [ProvingKey],
        masking: Masking,
        witness_check: WitnessCheck,
    ) -> Self {
        Self { circuit, keys, masking, witness_check }
    }

    /// The circuit.
    pub(crate) fn circuit(&self) -> &'a PreparedCircuit<'a> {
        self.circuit
    }

    /// Whether witnesses are checked before they are proven.
    pub(crate) fn witness_check(&self) -> WitnessCheck {
        self.witness_check
    }

    /// Does a job of the commit round: `D = sum v_j DQ_j + k_D [delta]_1` (spec: mirage#commit).
    ///
    /// # Errors
    /// When the job does not match the keys.
    pub fn commit(self, job: Job) -> Result<(CommittedSubcircuit<'a>, Commitment), WorkerError> {
        let key = self.key(&job)?;
        // k_D is a function of the seed and of everything that D hides, so the prove round finds it
        // again (spec: zero-knowledge#randomness).
        let k_d = job.randomness.of_committed(&job.values).scalar(Purpose::Commitment, 0);
        let d = mirage::commit(key, &job.values, k_d)?;
        let response = Commitment { instance: job.instance, d };
        Ok((CommittedSubcircuit { worker: self, job }, response))
    }

    /// Resumes a subcircuit that this worker or another one committed to in an earlier round.
    pub fn resume(self, job: Job) -> CommittedSubcircuit<'a> {
        CommittedSubcircuit { worker: self, job }
    }

    /// The proving key for a job, after a check that the job matches it.
    fn key(&self, job: &Job) -> Result<&'a ProvingKey, WorkerError> {
        let error = |why: String| WorkerError::Job { instance: job.instance, why };
        let key = self
            .keys
            .get(job.kind)
            .ok_or_else(|| error(format!("there is no proving key for type {}", job.kind)))?;
        if job.values.len() != key.slots() || job.slots.len() != key.slots() {
            let why = format!(
                "the job has {} values and {} slots, but the proving key has {} slots",
                job.values.len(),
                job.slots.len(),
                key.slots()
            );
            return Err(error(why));
        }
        Ok(key)
    }
}

impl CommittedSubcircuit<'_> {
    /// Returns the job, to be proven later.
    pub fn into_job(self) -> Job {
        self.job
    }

    /// Does a job of the prove round: synthesizes the witness, and proves it.
    ///
    /// # Errors
    /// When the witness is wrong, or the challenges hit a pole (zero denominator).
    pub fn prove(self, round: &ProveRound) -> Result<ProofResponse, WorkerError> {
        let Self { worker, job } = self;
        let instance = job.instance;
        let key = worker.key(&job)?;
        let private = job.private.as_ref().ok_or_else(|| WorkerError::Job {
            instance,
            why: "the job has no private input".into(),
        })?;
        // At a pole u would be unconstrained or unsatisfiable; the run restarts with other
        // challenges (spec: memory-check#pole).
        let prefix = Prefix::new(&job.slots, &job.values, &round.memory)
            .map_err(|_| WorkerError::Pole { instance })?;
        let circuit = worker.circuit;
        let kind = circuit.layout().type_id(job.kind).ok_or_else(|| WorkerError::Job {
            instance,
            why: format!("the circuit has no type {}", job.kind),
        })?;
        let z = circuit
            .witness(kind, worker.masking, &prefix, private, key.variables())
            .map_err(|source| WorkerError::Synthesize { instance, source })?;
        let blinding = blinding(&job.randomness, &job.values, &z, round);
        let proof = mirage::prove(key, &z, &round.memory.b, &blinding, worker.witness_check)
            .map_err(|e| match e {
                mirage::ProverError::Unsatisfied(source) => {
                    WorkerError::Unsatisfied { instance, kind: key.name().to_owned(), source }
                }
                mirage::ProverError::Key(e) => e.into(),
            })?;
        Ok(ProofResponse { instance, proof })
    }
}

/// The blinding of a proof (spec: mirage#blinding, zero-knowledge#randomness).
fn blinding(
    randomness: &InstanceRandomness,
    committed: &[Fr],
    z: &[Fr],
    round: &ProveRound,
) -> Blinding {
    let of_committed = randomness.of_committed(committed);
    // s and x hide all of z, so their context is all of z: another assignment has another blinding,
    // even if a seed is reused or an earlier answer was wrong.
    let of_round = of_committed
        .bound_to("challenges", &[round.memory.g, round.memory.b])
        .bound_to("assignment", z);
    let multiplicative = of_round.scalar(Purpose::ProofMultiplicative, 0);
    Blinding {
        commitment: of_committed.scalar(Purpose::Commitment, 0),
        additive: of_round.scalar(Purpose::ProofAdditive, 0),
        // x must be invertible; zero has probability 1/r.
        multiplicative: if multiplicative.is_zero() { Fr::ONE } else { multiplicative },
    }
}
