//! A worker: proves subcircuits, one at a time, on one thread.
//!
//! The two rounds are two states: [`Worker::commit`] gives a [`CommittedSubcircuit`], which alone can
//! [`prove`](CommittedSubcircuit::prove).

use crate::keys::KeyFileError;
use crate::mirage::{self, Blinding, ProvingKey, Unsatisfied, WitnessCheck};
use crate::protocol::messages::{Commitment, Job, ProofResponse, ProveRound};
use crate::randomness::{Purpose, Randomness};
use ark_ff::{Field, Zero};
use hekaton_arith::Fr;
use hekaton_circuit::prover::{Prefix, synthesize_witness};
use hekaton_circuit::{Circuit, Masking, SynthesizeError, TypeId};

/// Why a worker gave no answer.
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
        /// Which constraint.
        source: Unsatisfied,
    },
    /// Synthesis failed.
    #[error("instance {instance}: {source}")]
    Synthesize {
        /// The instance.
        instance: usize,
        /// What went wrong.
        source: SynthesizeError,
    },
    /// The challenges hit a pole: the coordinator starts again with new randomness.
    #[error("instance {instance}: the challenges hit a pole of the memory check")]
    Pole {
        /// The instance.
        instance: usize,
    },
    /// The job does not fit the keys.
    #[error("instance {instance}: {why}")]
    Job {
        /// The instance.
        instance: usize,
        /// What does not fit.
        why: String,
    },
    /// The key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

/// A prover of subcircuits. Cheap to copy; holds no state of any job.
#[derive(Debug)]
pub struct Worker<'a, C> {
    circuit: &'a C,
    keys: &'a [ProvingKey],
    masking: Masking,
    randomness: &'a Randomness,
    witness_check: WitnessCheck,
}

impl<C> Clone for Worker<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Worker<'_, C> {}

/// A subcircuit whose subtrace is committed to.
#[derive(Debug)]
pub struct CommittedSubcircuit<'a, C: Circuit> {
    worker: Worker<'a, C>,
    job: Job<C::Private>,
}

impl<'a, C: Circuit> Worker<'a, C> {
    /// A worker over the keys of all types.
    pub fn new(
        circuit: &'a C,
        keys: &'a [ProvingKey],
        masking: Masking,
        randomness: &'a Randomness,
        witness_check: WitnessCheck,
    ) -> Self {
        Self { circuit, keys, masking, randomness, witness_check }
    }

    /// Whether it checks its witnesses.
    pub(crate) fn witness_check(&self) -> WitnessCheck {
        self.witness_check
    }

    /// The commit round: `D = sum v_j DQ_j + k_D [delta]_1`.
    ///
    /// # Errors
    /// When the job does not fit the keys.
    pub fn commit(
        self,
        job: Job<C::Private>,
    ) -> Result<(CommittedSubcircuit<'a, C>, Commitment), WorkerError> {
        let key = self.key(&job)?;
        let k_d = self
            .commitment_randomness(&job.values)
            .scalar(Purpose::Commitment, job.instance as u64);
        let d = mirage::commit(key, &job.values, k_d)?;
        let response = Commitment { instance: job.instance, d };
        Ok((CommittedSubcircuit { worker: self, job }, response))
    }

    /// Takes up a subcircuit that was committed to in an earlier round, by this worker or another.
    pub fn resume(self, job: Job<C::Private>) -> CommittedSubcircuit<'a, C> {
        CommittedSubcircuit { worker: self, job }
    }

    fn key(&self, job: &Job<C::Private>) -> Result<&'a ProvingKey, WorkerError> {
        let error = |why: String| WorkerError::Job { instance: job.instance, why };
        let key = self
            .keys
            .get(job.kind)
            .ok_or_else(|| error(format!("no key for type {}", job.kind)))?;
        if job.values.len() != key.slots() || job.slots.len() != key.slots() {
            let why = format!(
                "{} values in {} slots, the key has {}",
                job.values.len(),
                job.slots.len(),
                key.slots()
            );
            return Err(error(why));
        }
        Ok(key)
    }
}

impl<C: Circuit> CommittedSubcircuit<'_, C> {
    /// The job, to be proven later.
    pub fn into_job(self) -> Job<C::Private> {
        self.job
    }

    /// The prove round: synthesizes the witness and proves.
    ///
    /// # Errors
    /// When the witness is wrong, or the challenges hit a pole.
    pub fn prove(self, round: &ProveRound) -> Result<ProofResponse, WorkerError> {
        let Self { worker, job } = self;
        let instance = job.instance;
        let key = worker.key(&job)?;
        let private = job
            .private
            .as_ref()
            .ok_or_else(|| WorkerError::Job { instance, why: "no private input".into() })?;
        let prefix = Prefix::new(&job.slots, &job.values, &round.memory)
            .map_err(|_| WorkerError::Pole { instance })?;
        let kind = TypeId::from_index(job.kind as u32);
        let variables = key.variables();
        let z = synthesize_witness(
            worker.circuit,
            kind,
            key.name(),
            worker.masking,
            &prefix,
            private,
            variables,
        )
        .map_err(|source| WorkerError::Synthesize { instance, source })?;
        let proof = mirage::prove(
            key,
            &z,
            &worker.blinding(instance as u64, &job.values, &z, round),
            worker.witness_check,
        )
        .map_err(|e| match e {
            mirage::ProverError::Unsatisfied(source) => {
                WorkerError::Unsatisfied { instance, kind: key.name().to_owned(), source }
            }
            mirage::ProverError::Key(e) => e.into(),
        })?;
        Ok(ProofResponse { instance, proof })
    }
}

impl<C> Worker<'_, C> {
    fn commitment_randomness(&self, values: &[Fr]) -> Randomness {
        self.randomness.bound_to("values of a subcircuit", values)
    }

    fn blinding(&self, instance: u64, values: &[Fr], z: &[Fr], round: &ProveRound) -> Blinding {
        let of_values = self.commitment_randomness(values);
        // s and x hide all of z: another one gets others, whatever went wrong before
        let of_round = of_values
            .bound_to("challenges", &[round.memory.g, round.memory.b])
            .bound_to("assignment", z);
        let multiplicative = of_round.scalar(Purpose::ProofMultiplicative, instance);
        Blinding {
            commitment: of_values.scalar(Purpose::Commitment, instance),
            additive: of_round.scalar(Purpose::ProofAdditive, instance),
            multiplicative: if multiplicative.is_zero() { Fr::ONE } else { multiplicative },
        }
    }
}
