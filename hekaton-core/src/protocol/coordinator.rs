//! The coordinator: executes the circuit, creates jobs, collects answers, and aggregates.
//!
//! There is one type per state, and each step consumes the previous one, so a step out of order
//! does not compile (spec: distributed#states): [`Coordinator`] → commit round → [`Committed`] →
//! prove round → [`Proven`] → [`Proof`].

pub(crate) mod blame;

use crate::aggregation::block::{ProofVectors, Shared};
use crate::aggregation::blocks::{Blocks, LocalBlocks};
use crate::aggregation::prover::Committing;
use crate::events::TypeSummary;
use crate::keys::{ProverKeys, have_wiring, keys_match};
use crate::pool::LocalEngine;
pub use crate::protocol::coordinator_error::CoordinatorError;
use crate::protocol::direct::DirectRun;
use crate::protocol::executed::{
    Executed, InstanceDigest, OnRanks, Values, digest, execution_digest, instance_id,
};
use crate::protocol::messages::{Commitment, Job, OwnJob, ProofResponse, ProveRound};
use crate::protocol::worker::is_synthesized;
use crate::randomness::{Purpose, Randomness};
use crate::verifier::direct::verify_direct_with_test_keys;
use crate::verifier::proof::{Proof, ProofKind};
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::{VerifyError, public_sum, verify_with_test_keys};
use hekaton_arith::{Fr, G1Point, Group};
use hekaton_circuit::{
    Counts, Execution, ExecutionError, Layout, LookUps, Masking, MemoryChallenges, PreparedCircuit,
    PrivateInput,
};
use std::sync::{Arc, PoisonError};

/// An executed circuit with its keys: the coordinator before the commit round.
pub struct Coordinator<'a> {
    circuit: &'a PreparedCircuit<'a>,
    keys: &'a ProverKeys,
    direct: Option<DirectRun<'a>>,
    /// The digest of the verifying key, or that of the direct run.
    key_digest: [u8; 32],
    shared: Shared<'a>,
    layout: &'a Layout,
    masking: Masking,
    /// The type of each instance.
    type_of: Vec<u32>,
    values: Values<'a>,
    /// The digest of each instance's values.
    digests: Vec<InstanceDigest>,
    execution_digest: [u8; 32],
    public_values: Vec<Fr>,
}

/// An execution in this process.
pub(crate) enum Here<'e, 'c> {
    Borrowed(&'e Execution<'c>),
    Owned(Box<Execution<'c>>),
}

impl<'c> std::ops::Deref for Here<'_, 'c> {
    type Target = Execution<'c>;

    fn deref(&self) -> &Execution<'c> {
        match self {
            Self::Borrowed(execution) => execution,
            Self::Owned(execution) => execution,
        }
    }
}

impl std::fmt::Debug for Coordinator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator")
            .field("instances", &self.layout.instances())
            .finish_non_exhaustive()
    }
}

impl<'a> Coordinator<'a> {
    /// Executes a circuit that was prepared with its input, after a check that the keys belong to
    /// its code, with up to `provers` types at once.
    ///
    /// # Errors
    /// When circuit and keys do not match, or the execution fails.
    pub fn new(
        circuit: &'a PreparedCircuit<'a>,
        keys: &'a ProverKeys,
        pool: &LocalEngine,
        provers: usize,
    ) -> Result<Self, CoordinatorError> {
        Self::check(circuit, keys, pool, provers)?;
        Ok(Self::of(circuit, keys, None, Executed::here(circuit, pool)?))
    }

    /// Checks that keys belong to a circuit's code, as [`new`](Self::new) does, with up to `provers`
    /// types at once.
    ///
    /// # Errors
    /// When circuit and keys do not match.
    pub fn check(
        circuit: &PreparedCircuit<'_>,
        keys: &ProverKeys,
        pool: &LocalEngine,
        provers: usize,
    ) -> Result<(), CoordinatorError> {
        // Keys of other code would prove other constraints (spec: verifier#type-digests).
        let wiring = keys_match(circuit, keys, pool, provers)?;
        if have_wiring(keys, &wiring)? { Ok(()) } else { Err(CoordinatorError::MixedKeys) }
    }

    /// The coordinator of an execution, with keys that were [checked](Self::check).
    pub(crate) fn of(
        circuit: &'a PreparedCircuit<'a>,
        keys: &'a ProverKeys,
        direct: Option<DirectRun<'a>>,
        executed: Executed<'a>,
    ) -> Self {
        let (layout, vk) = (circuit.layout(), &keys.verifying);
        let Executed { values, public, digests } = executed;
        // One seed has other masks in a run of the other kind (spec: direct#run).
        let key_digest = direct.map_or_else(|| vk.digest(), |run| run.digest());
        #[allow(clippy::cast_possible_truncation, reason = "there are fewer types than 2^32")]
        let type_of = layout.instance_ids().map(|id| layout.type_index(id) as u32).collect();
        Self {
            circuit,
            keys,
            direct,
            key_digest,
            shared: Shared::new(&keys.aggregation, vk.k),
            layout,
            masking: Masking::new(vk.zero_knowledge),
            type_of,
            values,
            execution_digest: execution_digest(&key_digest, &digests),
            digests,
            public_values: public,
        }
    }

    /// The number of subcircuits, n.
    pub fn instances(&self) -> usize {
        self.layout.instances()
    }

    /// The public values of this execution.
    pub fn public_values(&self) -> &[Fr] {
        &self.public_values
    }

    /// The number of constraints of all subcircuits.
    pub fn total_constraints(&self) -> u64 {
        (0..self.instances()).map(|instance| self.constraints(instance) as u64).sum()
    }

    /// The number of shared wires of all subcircuits, masks included.
    pub fn total_slots(&self) -> u64 {
        (0..self.instances()).map(|instance| self.slots(instance) as u64).sum()
    }

    /// The number of constraints of one instance.
    pub fn constraints(&self, instance: usize) -> usize {
        self.keys.types[self.kind(instance)].constraints()
    }

    /// All instances, largest first and type by type, so that all provers finish a round at about
    /// the same time and a type's key is used while it is in cache.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.instances()).collect();
        order.sort_by_key(|i| (std::cmp::Reverse(self.constraints(*i)), self.type_of[*i], *i));
        order
    }

    /// The digest of the verifying key and the values of all slots of this execution, which binds
    /// masks and logs to it. **Keep it secret**: it can confirm a guess of the values.
    pub fn execution_digest(&self) -> [u8; 32] {
        self.execution_digest
    }

    /// The number of an instance's type.
    pub(crate) fn kind(&self, instance: usize) -> usize {
        self.type_of[instance] as usize
    }

    /// The name of an instance's type.
    pub(crate) fn type_name(&self, instance: usize) -> &str {
        self.keys.types[self.kind(instance)].name()
    }

    /// The number of shared wires of an instance, masks included.
    pub(crate) fn slots(&self, instance: usize) -> usize {
        self.keys.types[self.kind(instance)].slots()
    }

    /// The types with their sizes, for the first event of a run.
    pub(crate) fn type_summaries(&self) -> Vec<TypeSummary> {
        let mut out: Vec<TypeSummary> = (self.keys.types.iter())
            .map(|key| TypeSummary {
                name: key.name().to_owned(),
                constraints: key.constraints() as u64,
                instances: 0,
            })
            .collect();
        self.type_of.iter().for_each(|kind| out[*kind as usize].instances += 1);
        out
    }

    /// The values of one instance's slots, masks excluded, and its private input if `private`.
    fn values_of(
        &self,
        instance: usize,
        private: bool,
    ) -> Result<(Vec<Fr>, Option<PrivateInput>), CoordinatorError> {
        let id = instance_id(instance);
        let of = |execution: &Execution<'_>| {
            if private && self.layout.is_table(id) && execution.counts().is_none() {
                // Outside of a run, whose commit round counts.
                self.circuit.count(execution)?;
            }
            let input = private.then(|| execution.private_input(self.layout, id));
            Ok::<_, ExecutionError>((execution.values.slots(self.layout, id), input.transpose()?))
        };
        match &self.values {
            Values::Here(execution) => Ok(of(execution)?),
            Values::OnRanks(ranks) if self.layout.is_table(id) => {
                let guard = ranks.counts.read().unwrap_or_else(PoisonError::into_inner);
                let counts = guard.as_ref().ok_or(ExecutionError::Uncounted { instance })?;
                // Tables have no slots.
                Ok((Vec::new(), counts.private_input(self.layout, id)))
            }
            Values::OnRanks(OnRanks { circuit, .. }) => {
                let execution = circuit.execute_range(instance..instance + 1)?;
                // Otherwise the rank that answered would be blamed for this machine's fault.
                match digest(circuit, &execution, id)? == self.digests[instance] {
                    true => Ok(of(&execution)?),
                    false => Err(CoordinatorError::OtherValues { instance }),
                }
            }
        }
    }

    /// The values in one instance's mask slots, if it has them.
    fn masks(&self, instance: usize, randomness: &Randomness) -> Vec<Fr> {
        match self.masking {
            // Mask i is a function of the seed: both neighbors compute the same one. Its context is
            // what masks hide, so another key or another execution has other masks even if a seed
            // is reused (spec: zero-knowledge#masks, zero-knowledge#randomness).
            Masking::Masked => {
                let masks = randomness.of_masks(&self.execution_digest);
                let mask = |i| masks.scalar(Purpose::Mask, i);
                self.layout.mask_values(instance_id(instance), mask).to_vec()
            }
            Masking::Unmasked => Vec::new(),
        }
    }

    /// A job of these values, masks excluded, and this private input.
    pub(crate) fn job_of(
        &self,
        instance: usize,
        mut values: Vec<Fr>,
        private: Option<PrivateInput>,
        randomness: &Randomness,
    ) -> Job {
        let OwnJob { randomness, masks, .. } = self.own_job(instance, randomness);
        values.extend(masks);
        let slots = self.layout.accesses(instance_id(instance), self.masking);
        Job { instance, kind: self.kind(instance), values, slots, private, randomness }
    }

    /// The secrets of a job, for a rank that has the values and the private input itself
    /// (spec: distributed#slices).
    pub(crate) fn own_job(&self, instance: usize, randomness: &Randomness) -> OwnJob {
        // A worker gets the secrets of its own subcircuits only, not the seed
        // (spec: zero-knowledge#randomness).
        let masks = self.masks(instance, randomness);
        OwnJob { instance, randomness: randomness.of_instance(&self.key_digest, instance), masks }
    }

    /// The job of one instance in the commit round, which needs its private input only if it is
    /// synthesized.
    ///
    /// # Errors
    /// When the values are on ranks, and executing the instance again fails, or the circuit has no
    /// private input for it.
    pub fn commit_job(
        &self,
        instance: usize,
        randomness: &Randomness,
    ) -> Result<Job, CoordinatorError> {
        let synthesized = is_synthesized(self.circuit, &self.keys.types[self.kind(instance)]);
        let (values, private) = self.values_of(instance, synthesized)?;
        Ok(self.job_of(instance, values, private, randomness))
    }

    /// The job of one instance with its private input, for the prove round or for both rounds.
    ///
    /// # Errors
    /// When the circuit has no private input for it.
    pub fn prove_job(
        &self,
        instance: usize,
        randomness: &Randomness,
    ) -> Result<Job, CoordinatorError> {
        let (values, private) = self.values_of(instance, true)?;
        Ok(self.job_of(instance, values, private, randomness))
    }

    /// The counts before any look-up, if the circuit has tables.
    pub(crate) fn no_look_ups(&self) -> Option<Counts> {
        self.layout.has_tables().then(|| Counts::new(self.layout))
    }

    /// The execution in this process. If the values are on ranks, the circuit is executed again.
    pub(crate) fn execution(&self) -> Result<Here<'_, 'a>, CoordinatorError> {
        match &self.values {
            Values::Here(execution) => Ok(Here::Borrowed(execution)),
            Values::OnRanks(OnRanks { circuit, .. }) => {
                Ok(Here::Owned(Box::new(circuit.execute_uncounted()?)))
            }
        }
    }

    /// Returns what one instance of this process's [execution](Self::execution) looks up, from a
    /// synthesis of its own.
    pub(crate) fn look_ups(
        &self,
        execution: &Execution<'_>,
        instance: usize,
    ) -> Result<LookUps, CoordinatorError> {
        let id = instance_id(instance);
        let is_told = |found: InstanceDigest| found == self.digests[instance];
        match &self.values {
            // Otherwise a fault of this machine would become wrong counts.
            Values::OnRanks(_) if !is_told(digest(self.circuit, execution, id)?) => {
                Err(CoordinatorError::OtherValues { instance })
            }
            _ => Ok(self.circuit.look_ups(execution, id)?),
        }
    }

    /// Reports whether an instance holds rows of a table.
    pub(crate) fn is_table(&self, instance: usize) -> bool {
        self.layout.is_table(instance_id(instance))
    }

    /// Returns how often the rows of tables are looked up, once that is known.
    pub(crate) fn counts(&self) -> Option<Arc<Counts>> {
        match &self.values {
            Values::Here(execution) => execution.counts(),
            Values::OnRanks(ranks) => {
                ranks.counts.read().unwrap_or_else(PoisonError::into_inner).clone()
            }
        }
    }

    pub(crate) fn set_counts(&self, counts: Counts) {
        match &self.values {
            Values::Here(execution) => execution.set_counts(counts),
            Values::OnRanks(ranks) => {
                let mut found = ranks.counts.write().unwrap_or_else(PoisonError::into_inner);
                *found = Some(Arc::new(counts));
            }
        }
    }

    /// Verifies a proof of this execution, of the kind that the run makes.
    pub(crate) fn verify(&self, proof: &[u8]) -> Result<(), VerifyError> {
        let (keys, public) = (self.keys, &self.public_values);
        match &self.direct {
            Some(DirectRun { key, context }) => {
                verify_direct_with_test_keys(key, public, context, proof)
            }
            None => verify_with_test_keys(&keys.verifying, public, proof),
        }
    }

    /// The kind of proof that the run makes.
    pub(crate) fn proof_kind(&self) -> ProofKind {
        self.direct.map_or(ProofKind::Aggregated, |_| ProofKind::Direct)
    }

    /// Returns what all blocks of the aggregation read.
    pub(crate) fn shared(&self) -> &Shared<'a> {
        &self.shared
    }

    /// Takes the answers of the commit round, from which the challenges follow. All further work is
    /// done on this pool.
    ///
    /// # Errors
    /// When there is not exactly one answer per instance.
    pub fn committed(
        &'a self,
        commitments: Vec<Commitment>,
        pool: &'a LocalEngine,
    ) -> Result<Committed<'a>, CoordinatorError> {
        let blocks = Box::new(LocalBlocks::all(&self.shared, pool));
        self.committed_with(Box::new(Merlin::new()), commitments, blocks)
    }

    /// [`Self::committed`] over any sponge and any holder of the vectors.
    pub(crate) fn committed_with(
        &'a self,
        sponge: Box<dyn Sponge>,
        commitments: Vec<Commitment>,
        blocks: Box<dyn Blocks + 'a>,
    ) -> Result<Committed<'a>, CoordinatorError> {
        // spec: distributed#collect
        let commitments = one_each("commit", self.instances(), commitments, |c| c.instance)?;
        let vk = &self.keys.verifying;
        let stage = match self.direct {
            Some(run) => {
                let memory = run.memory(&self.public_values, &commitments);
                Stage::Direct(run, memory)
            }
            None => {
                // Pads are the identity in every vector (spec: aggregation#padding).
                let d = padded_commitments(&commitments, self.shared.padded());
                let committing =
                    Committing::new(&self.shared, vk, sponge, &self.public_values, &d, blocks)?;
                Stage::Aggregated(Box::new(committing))
            }
        };
        // The verifier rejects a pole (zero denominator) in its own sum, so it is found before the
        // prove round (spec: memory-check#pole, verifier#public-sum).
        if let Err(VerifyError::Pole { address }) =
            public_sum(vk, &self.public_values, &stage.memory())
        {
            return Err(CoordinatorError::Pole { address });
        }
        Ok(Committed { coordinator: self, commitments, stage })
    }
}

/// The state after the commitments, by kind of proof.
enum Stage<'a> {
    Aggregated(Box<Committing<'a, Box<dyn Sponge>>>),
    Direct(DirectRun<'a>, MemoryChallenges),
}

impl Stage<'_> {
    /// The challenges of the memory check.
    fn memory(&self) -> MemoryChallenges {
        match self {
            Self::Aggregated(committing) => committing.memory(),
            Self::Direct(_, memory) => *memory,
        }
    }
}

/// The coordinator after the commit round.
pub struct Committed<'a> {
    coordinator: &'a Coordinator<'a>,
    commitments: Vec<Commitment>,
    stage: Stage<'a>,
}

impl std::fmt::Debug for Committed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committed")
            .field("commitments", &self.commitments.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Committed<'a> {
    /// Returns the message that all workers receive in the prove round.
    pub fn prove_round(&self) -> ProveRound {
        ProveRound { memory: self.stage.memory() }
    }

    /// Takes the answers of the prove round.
    ///
    /// # Errors
    /// When there is not exactly one answer per instance.
    pub fn proven(self, responses: Vec<ProofResponse>) -> Result<Proven<'a>, CoordinatorError> {
        let Self { coordinator, commitments, stage } = self;
        let responses = one_each("prove", coordinator.instances(), responses, |r| r.instance)?;
        // The proofs are of the values that were committed to before the challenges existed
        // (spec: buses#commit-round).
        let differs = |(commitment, response): &(&Commitment, &ProofResponse)| {
            commitment.mark != response.mark
        };
        if let Some((_, response)) = commitments.iter().zip(&responses).find(differs) {
            let instance = response.instance;
            let kind = coordinator.type_name(instance).to_owned();
            return Err(CoordinatorError::Marked { instance, kind });
        }
        Ok(Proven { coordinator, commitments, stage, responses })
    }
}

/// The coordinator after the prove round.
pub struct Proven<'a> {
    coordinator: &'a Coordinator<'a>,
    commitments: Vec<Commitment>,
    stage: Stage<'a>,
    responses: Vec<ProofResponse>,
}

impl std::fmt::Debug for Proven<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proven").field("responses", &self.responses.len()).finish_non_exhaustive()
    }
}

impl Proven<'_> {
    /// Aggregates, or puts a direct proof together, and returns the proof only if it verifies.
    ///
    /// # Errors
    /// When the proof does not verify, with the bad subcircuits if there are any.
    pub fn finish(self) -> Result<Proof, CoordinatorError> {
        let Self { coordinator, commitments, stage, responses } = self;
        let memory = stage.memory();
        let proof = match stage {
            Stage::Aggregated(committing) => {
                let proofs = responses.iter().map(|response| (response.instance, &response.proof));
                let vectors = ProofVectors::new(proofs, coordinator.shared.padded());
                committing.finish(&vectors)?
            }
            Stage::Direct(run, _) => run.proof(&commitments, &responses),
        };
        // Whatever workers and ranks answered, a wrong proof is never returned
        // (spec: distributed#trust).
        let Err(error) = coordinator.verify(proof.as_bytes()) else { return Ok(proof) };
        Err(coordinator.blame(&commitments, &responses, &memory, &proof, error)?)
    }
}

/// The commitments D by instance, padded with the identity.
pub(crate) fn padded_commitments(commitments: &[Commitment], padded: usize) -> Vec<G1Point> {
    let mut out = vec![G1Point::IDENTITY; padded];
    commitments.iter().for_each(|commitment| out[commitment.instance] = commitment.d);
    out
}

/// Sorts answers by instance, of which each must have exactly one (spec: distributed#collect).
fn one_each<T>(
    round: &'static str,
    n: usize,
    mut answers: Vec<T>,
    instance: impl Fn(&T) -> usize,
) -> Result<Vec<T>, CoordinatorError> {
    answers.sort_by_key(&instance);
    for (i, answer) in answers.iter().enumerate() {
        if instance(answer) != i {
            let why = format!(
                "expected the answer of instance {i}, found one of instance {}",
                instance(answer)
            );
            return Err(CoordinatorError::Answers { round, why });
        }
    }
    if answers.len() != n {
        let why = format!("{} answers for {n} instances", answers.len());
        return Err(CoordinatorError::Answers { round, why });
    }
    Ok(answers)
}
