//! The worker: proves subcircuits, one at a time, on one thread.
//!
//! The two rounds are two states: only the [`CommittedSubcircuit`] that [`Worker::commit`] returns
//! can [`prove`](CommittedSubcircuit::prove) (spec: distributed#states).

use crate::keys::KeyFileError;
use crate::mirage::{self, Blinding, ProvingKey, Sums, Unsatisfied, WitnessCheck};
use crate::protocol::accelerator::Accelerators;
use crate::protocol::executed::instance_id;
use crate::protocol::messages::{Commitment, Job, Mark, ProofResponse, ProveRound};
use crate::randomness::{Purpose, Secret};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, fr_to_bytes};
use hekaton_circuit::prover::VariableLayout;
use hekaton_circuit::{
    LookUps, Masking, MemoryChallenges, PreparedCircuit, PrivateInput, SynthesizeError, TypeId,
};

/// The error of a worker that returns no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The witness does not satisfy the constraints.
    #[error("instance {instance} of type '{kind}': {}", .error.describe(*.memory_rows))]
    Unsatisfied {
        /// The instance.
        instance: usize,
        /// Its type.
        kind: String,
        /// The constraint that fails.
        error: Unsatisfied,
        /// The number of rows of the memory check, which come before the author's constraints.
        memory_rows: usize,
    },
    /// Synthesis failed.
    #[error("instance {instance}: {error}")]
    Synthesize {
        /// The instance.
        instance: usize,
        /// The error of the synthesis.
        error: SynthesizeError,
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
        /// The mismatch that was found.
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
    accelerators: Option<&'a Accelerators>,
}

/// An answer, and the number of the device that computed its sums; `None` of the CPU.
type By<A> = (A, Option<usize>);

/// A subcircuit after its subtrace has been committed to.
#[derive(Debug)]
pub struct CommittedSubcircuit<'a> {
    worker: Worker<'a>,
    job: Job,
    look_ups: LookUps,
}

impl<'a> Worker<'a> {
    /// Creates a worker from the proving keys of all types, in the order of the layout.
    pub fn new(
        circuit: &'a PreparedCircuit<'a>,
        keys: &'a [ProvingKey],
        masking: Masking,
        witness_check: WitnessCheck,
    ) -> Self {
        Self { circuit, keys, masking, witness_check, accelerators: None }
    }

    /// Sets the devices that compute sums; `None` for the CPU alone, the default.
    #[must_use]
    pub fn accelerators(self, accelerators: Option<&'a Accelerators>) -> Self {
        Self { accelerators, ..self }
    }

    /// The name of a device that computed sums.
    pub(crate) fn device_name(&self, device: Option<usize>) -> Option<&'a str> {
        Some(self.accelerators?.name(device?))
    }

    /// The circuit.
    pub(crate) fn circuit(&self) -> &'a PreparedCircuit<'a> {
        self.circuit
    }

    /// Returns whether witnesses are checked before they are proven.
    pub(crate) fn witness_check(&self) -> WitnessCheck {
        self.witness_check
    }

    /// Does a job of the commit round: `D = sum v_j DQ_j + k_D [delta]_1` (spec: mirage#commit).
    ///
    /// # Errors
    /// When the job does not match the keys.
    pub fn commit(self, job: Job) -> Result<(CommittedSubcircuit<'a>, Commitment), WorkerError> {
        self.commit_by(job).map(|(committed, (answer, _))| (committed, answer))
    }

    /// [`Self::commit`], with the device.
    pub(crate) fn commit_by(
        self,
        job: Job,
    ) -> Result<(CommittedSubcircuit<'a>, By<Commitment>), WorkerError> {
        let key = self.key(&job)?;
        let mut committed = job.values.clone();
        let (marked, look_ups) = self.marked(key, &job)?;
        committed.extend(marked);
        // k_D is a function of the seed and of everything that D hides, so the prove round finds it
        // again (spec: zero-knowledge#randomness).
        let of_committed = job.randomness.of_committed(&committed);
        let (sum, device) = self.sum_of_committed(key, committed)?;
        let d = mirage::commit(key, &sum, of_committed.scalar(Purpose::Commitment, 0));
        let response =
            Commitment { instance: job.instance, d, mark: mark(key.layout(), &of_committed) };
        Ok((CommittedSubcircuit { worker: self, job, look_ups }, (response, device)))
    }

    /// The sum of committed values, by a device or by this thread.
    fn sum_of_committed(
        self,
        key: &ProvingKey,
        values: Vec<Fr>,
    ) -> Result<By<G1Point>, WorkerError> {
        let (values, answer) = match self.accelerators {
            Some(accelerators) => accelerators.commit(key, values),
            None => (values, None),
        };
        match answer {
            Some((device, sum)) => Ok((sum, Some(device))),
            None => Ok((self.on_core(|| mirage::sum_of_committed(key, &values))?, None)),
        }
    }

    /// The marked values of a subcircuit.
    pub(crate) fn marked_values(self, job: &Job) -> Result<Vec<Fr>, WorkerError> {
        Ok(self.marked(self.key(job)?, job)?.0)
    }

    /// The marked values and the look-ups of a subcircuit, from a synthesis under challenges of its
    /// own: those of the proof do not exist yet, and must not matter (spec: buses#commit-round).
    fn marked(self, key: &ProvingKey, job: &Job) -> Result<(Vec<Fr>, LookUps), WorkerError> {
        if !is_synthesized(self.circuit, key) {
            return Ok((Vec::new(), LookUps::default()));
        }
        let count = key.layout().marked().len();
        let (kind, private) = (self.kind(job)?, private(job)?);
        let secret = job.randomness.of_committed(&job.values);
        let prefix = |attempt: u64| {
            let [g, b, b_t, b_v] =
                [0, 1, 2, 3].map(|i| secret.scalar(Purpose::Rehearsal, 4 * attempt + i));
            let memory = MemoryChallenges { g, b, b_t, b_v };
            self.circuit.prefix(instance_id(job.instance), &job.slots, &job.values, &memory)
        };
        // For s slots, at most s values of g are poles.
        let found = (0..=job.slots.len() as u64).find_map(|attempt| prefix(attempt).ok());
        let prefix = found.ok_or(WorkerError::Pole { instance: job.instance })?;
        self.circuit
            .marked(kind, self.masking, &prefix, private, count)
            .map_err(|error| WorkerError::Synthesize { instance: job.instance, error })
    }

    /// The type of a job.
    fn kind(self, job: &Job) -> Result<TypeId, WorkerError> {
        self.circuit.layout().type_id(job.kind).ok_or_else(|| WorkerError::Job {
            instance: job.instance,
            why: format!("the circuit has no type {}", job.kind),
        })
    }

    /// Resumes a subcircuit that this worker or another one committed to in an earlier round.
    pub fn resume(self, job: Job) -> CommittedSubcircuit<'a> {
        CommittedSubcircuit { worker: self, job, look_ups: LookUps::default() }
    }

    /// The proving key for a job, after a check that the job matches it.
    fn key(&self, job: &Job) -> Result<&'a ProvingKey, WorkerError> {
        let error = |why: String| WorkerError::Job { instance: job.instance, why };
        let key = self
            .keys
            .get(job.kind)
            .ok_or_else(|| error(format!("the keys have no proving key for type {}", job.kind)))?;
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
    /// Returns the job, to be proven later, and the look-ups of the subcircuit.
    pub fn into_parts(self) -> (Job, LookUps) {
        (self.job, self.look_ups)
    }

    /// Does a job of the prove round: synthesizes the witness, and proves it.
    ///
    /// # Errors
    /// When the witness is wrong, or the challenges hit a pole (zero denominator).
    pub fn prove(self, round: &ProveRound) -> Result<ProofResponse, WorkerError> {
        Ok(self.prove_by(round)?.0)
    }

    /// [`Self::prove`], with the device.
    pub(crate) fn prove_by(self, round: &ProveRound) -> Result<By<ProofResponse>, WorkerError> {
        let Self { worker, job, .. } = self;
        let instance = job.instance;
        let key = worker.key(&job)?;
        let (kind, private) = (worker.kind(&job)?, private(&job)?);
        // At a pole u would be unconstrained or unsatisfiable; the run restarts with other
        // challenges (spec: memory-check#pole).
        let circuit = worker.circuit;
        let prefix = circuit
            .prefix(instance_id(instance), &job.slots, &job.values, &round.memory)
            .map_err(|_| WorkerError::Pole { instance })?;
        let z = circuit.witness(kind, worker.masking, &prefix, private, key.variables()).map_err(
            |error| match error {
                SynthesizeError::Pole { .. } => WorkerError::Pole { instance },
                error => WorkerError::Synthesize { instance, error },
            },
        )?;
        let layout = key.layout();
        let of_committed = job.randomness.of_committed(&z[layout.committed()]);
        let blinding = blinding(&of_committed, layout, &z, round);
        let e = z[layout.sum()];
        let (sums, device) = worker.sums(key, z, &round.memory.b).map_err(|e| match e {
            mirage::ProverError::Unsatisfied(error) => {
                let (kind, memory_rows) = (key.name().to_owned(), layout.rows());
                WorkerError::Unsatisfied { instance, kind, error, memory_rows }
            }
            mirage::ProverError::Key(e) => e.into(),
        })?;
        let proof = mirage::finish(key, &sums, e, &blinding);
        Ok((ProofResponse { instance, proof, mark: mark(layout, &of_committed) }, device))
    }
}

impl Worker<'_> {
    /// Computes sums in this thread; beside devices, in at most as many as there are cores.
    fn on_core<R>(self, compute: impl FnOnce() -> R) -> R {
        match self.accelerators {
            Some(accelerators) => accelerators.on_core(compute),
            None => compute(),
        }
    }

    /// The sums of an assignment, by a device or by this thread.
    fn sums(self, key: &ProvingKey, z: Vec<Fr>, b: &Fr) -> Result<By<Sums>, mirage::ProverError> {
        let (z, answer) = match self.accelerators {
            Some(accelerators) => accelerators.prove(key, z, self.witness_check),
            None => (z, None),
        };
        if let Some((device, Ok(sums))) = answer {
            return Ok((sums, Some(device)));
        }
        // A device's word is not enough to call a witness wrong.
        let sums = self.on_core(|| mirage::sums(key, &z, b, self.witness_check))?;
        if let (Some(accelerators), Some((device, Err(_)))) = (self.accelerators, answer) {
            accelerators.give_up(device);
        }
        Ok((sums, None))
    }
}

/// Reports whether the commit round synthesizes subcircuits of a type: for their marked values, and
/// for their look-ups.
pub(crate) fn is_synthesized(circuit: &PreparedCircuit<'_>, key: &ProvingKey) -> bool {
    let layout = key.layout();
    let may_look_up = circuit.layout().has_tables() && layout.shape().entries > 0;
    may_look_up || !layout.marked().is_empty()
}

/// The private input of a job.
fn private(job: &Job) -> Result<&PrivateInput, WorkerError> {
    job.private.as_ref().ok_or_else(|| WorkerError::Job {
        instance: job.instance,
        why: "the job has no private input".into(),
    })
}

/// The mark of the committed values (spec: buses#commit-round).
fn mark(layout: VariableLayout, of_committed: &Secret) -> Mark {
    match layout.marked().is_empty() {
        true => Mark::default(),
        false => fr_to_bytes(&of_committed.scalar(Purpose::Mark, 0)),
    }
}

/// The blinding of a proof (spec: mirage#blinding, zero-knowledge#randomness).
pub(crate) fn blinding(
    of_committed: &Secret,
    layout: VariableLayout,
    z: &[Fr],
    round: &ProveRound,
) -> Blinding {
    let MemoryChallenges { g, b, b_t, b_v } = round.memory;
    let challenges = match layout.bus_challenges() {
        None => vec![g, b],
        Some(_) => vec![g, b, b_t, b_v],
    };
    // s and x hide all of z, so their context is all of z: another assignment has another blinding,
    // even if a seed is reused or an earlier answer was wrong.
    let of_round = of_committed.bound_to("challenges", &challenges).bound_to("assignment", z);
    let multiplicative = of_round.scalar(Purpose::ProofMultiplicative, 0);
    Blinding {
        commitment: of_committed.scalar(Purpose::Commitment, 0),
        additive: of_round.scalar(Purpose::ProofAdditive, 0),
        // x must be invertible; zero has probability 1/r.
        multiplicative: if multiplicative.is_zero() { Fr::ONE } else { multiplicative },
    }
}
