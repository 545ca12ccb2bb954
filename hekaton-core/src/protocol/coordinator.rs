//! The coordinator: executes the circuit, creates jobs, collects answers, and aggregates.
//!
//! There is one type per state, and each step consumes the previous one, so a step out of order
//! does not compile (spec: distributed#states): [`Coordinator`] → commit round → [`Committed`] →
//! prove round → [`Proven`] → [`Proof`].

use crate::aggregation::block::{ProofVectors, Shared};
use crate::aggregation::blocks::{AggregateError, Blocks, LocalBlocks};
use crate::aggregation::prover::Committing;
use crate::events::TypeSummary;
use crate::keys::{KeyFileError, ProverKeys};
use crate::mirage::MirageInstance;
use crate::pool::Pool;
use crate::protocol::messages::{Commitment, Job, ProofResponse, ProveRound};
use crate::randomness::{Purpose, Randomness};
use crate::rank_error::RankError;
use crate::verifier::proof::Proof;
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::{VerifyError, public_sum, verify};
use hekaton_arith::{Fr, G1Point, Group, fr_from_uniform};
use hekaton_circuit::prover::{Execution, Wiring};
use hekaton_circuit::{Circuit, ExecutionError, InstanceId, Layout, Masking, MemoryChallenges};

/// Why the coordinator stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// The circuit cannot be executed on this input.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The keys were made for another circuit or other parameters.
    #[error(
        "the keys are for another layout than the one this circuit has with these parameters \
         (layout digest {expected} in the keys, {found} here): run setup for this circuit"
    )]
    ForeignKeys {
        /// Layout digest in the verifying key.
        expected: String,
        /// Layout digest of the circuit.
        found: String,
    },
    /// The keys come from different setups.
    #[error(
        "verifying key, aggregation key and proving keys come from different setups: \
         run setup again"
    )]
    MixedKeys,
    /// A round does not have exactly one answer per instance.
    #[error("{round} round: {why}")]
    Answers {
        /// The round.
        round: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Some subcircuits' proofs are wrong.
    #[error(
        "the proofs of these subcircuits do not verify: {}; no proof was produced",
        list(.instances)
    )]
    BadSubcircuits {
        /// Their indices.
        instances: Vec<usize>,
    },
    /// Every subcircuit's proof verifies, but the aggregate does not.
    #[error(
        "every subcircuit's proof verifies, but the aggregate does not ({0}); no proof was produced"
    )]
    Aggregate(VerifyError),
    /// The challenges hit a pole (zero denominator) at a public value: restart with new randomness.
    #[error("public value {index} hits a pole (zero denominator) of the memory check")]
    Pole {
        /// Index of the public value.
        index: usize,
    },
    /// A key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A phase of the aggregation was skipped, or had the wrong number of values.
    #[error("{0}")]
    Phase(String),
    /// A rank failed, or was lost.
    #[error(transparent)]
    Rank(#[from] RankError),
}

impl From<AggregateError> for CoordinatorError {
    fn from(error: AggregateError) -> Self {
        match error {
            AggregateError::Key(error) => error.into(),
            AggregateError::Phase(why) => Self::Phase(why),
            AggregateError::Rank(error) => error.into(),
        }
    }
}

/// A list of instances for an error message, shortened to 20.
fn list(instances: &[usize]) -> String {
    let shown: Vec<String> = instances.iter().take(20).map(ToString::to_string).collect();
    let more = instances.len().saturating_sub(20);
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// An executed circuit with its keys: the coordinator before the commit round.
pub struct Coordinator<'a, C: Circuit> {
    keys: &'a ProverKeys,
    shared: Shared<'a>,
    layout: Layout,
    wiring: Wiring,
    starts: Vec<usize>,
    execution: Execution<'a, C>,
    /// The digest of verifying key and shared values, as two field elements of 16 bytes each.
    execution_digest: [Fr; 2],
    public_values: Vec<Fr>,
}

impl<C: Circuit> std::fmt::Debug for Coordinator<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator")
            .field("instances", &self.layout.instances())
            .finish_non_exhaustive()
    }
}

impl<'a, C: Circuit> Coordinator<'a, C> {
    /// Executes the circuit on an input.
    ///
    /// # Errors
    /// When circuit and keys do not match, or the execution fails.
    pub fn new(
        circuit: &'a C,
        input: &'a C::Input,
        keys: &'a ProverKeys,
    ) -> Result<Self, CoordinatorError> {
        let layout = circuit.layout().map_err(ExecutionError::from)?;
        let wiring = layout.wiring(Masking::new(keys.verifying.zero_knowledge));
        let digest = wiring.digest();
        // The layout fixes addresses and multiplicities, and the keys commit to them: with another
        // layout no proof would verify (spec: memory-check#preprocessed).
        if digest != keys.verifying.layout {
            let (expected, found) = (hex::encode(keys.verifying.layout), hex::encode(digest));
            return Err(CoordinatorError::ForeignKeys { expected, found });
        }
        let types = keys.aggregation.type_of()?;
        let n = wiring.instances();
        let fits = keys.verifying.instances == n as u64
            && keys.aggregation.instances() == n
            && types == wiring.type_of
            && keys.types.len() == wiring.types.len()
            && keys.types.iter().zip(&wiring.types).all(|(key, kind)| key.slots() == kind.slots)
            && keys.verifying.public == wiring.public;
        if !fits {
            return Err(CoordinatorError::MixedKeys);
        }
        let execution = Execution::new(circuit, input, &layout)?;
        let public_values = execution.public(&layout);
        let execution_digest = digest_of_execution(keys, &execution);
        let starts = wiring.starts();
        let shared = Shared::new(&keys.aggregation, keys.verifying.k);
        Ok(Self {
            keys,
            shared,
            layout,
            wiring,
            starts,
            execution,
            execution_digest,
            public_values,
        })
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
        self.wiring
            .type_of
            .iter()
            .map(|kind| self.keys.types[*kind as usize].constraints() as u64)
            .sum()
    }

    /// The number of shared wires of all subcircuits, masks included.
    pub fn total_slots(&self) -> u64 {
        self.wiring.slots.len() as u64
    }

    /// The number of constraints of one instance.
    pub fn constraints(&self, instance: usize) -> usize {
        self.keys.types[self.wiring.type_of[instance] as usize].constraints()
    }

    /// All instances, largest first and type by type, so that all provers finish a round at about
    /// the same time and a type's key is used while it is in cache.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.instances()).collect();
        order.sort_by_key(|i| {
            (std::cmp::Reverse(self.constraints(*i)), self.wiring.type_of[*i], *i)
        });
        order
    }

    /// The digest of the verifying key and all shared values of this execution, which binds masks
    /// and logs to it. **Keep it secret**: it can confirm a guess of the values.
    pub fn execution_digest(&self) -> [u8; 32] {
        let mut out = [0; 32];
        for (half, value) in out.chunks_exact_mut(16).zip(&self.execution_digest) {
            half.copy_from_slice(&hekaton_arith::fr_to_bytes(value)[..16]);
        }
        out
    }

    /// The name of an instance's type.
    pub(crate) fn type_name(&self, instance: usize) -> &str {
        &self.wiring.types[self.wiring.type_of[instance] as usize].name
    }

    /// The number of shared wires of an instance, masks included.
    pub(crate) fn slots(&self, instance: usize) -> usize {
        self.wiring.types[self.wiring.type_of[instance] as usize].slots
    }

    /// The types with their sizes, for the first event of a run.
    pub(crate) fn type_summaries(&self) -> Vec<TypeSummary> {
        let mut out: Vec<TypeSummary> = (self.wiring.types.iter().zip(&self.keys.types))
            .map(|(kind, key)| TypeSummary {
                name: kind.name.clone(),
                constraints: key.constraints() as u64,
                instances: 0,
            })
            .collect();
        self.wiring.type_of.iter().for_each(|kind| out[*kind as usize].instances += 1);
        out
    }

    /// The randomness of the masks. Its context is what masks hide, so another key or another
    /// execution has other masks even if a seed is reused (spec: zero-knowledge#randomness).
    fn mask_randomness(&self, randomness: &Randomness) -> Randomness {
        randomness.bound_to("execution", &self.execution_digest)
    }

    /// The job of one instance in the commit round, which needs no private input.
    pub fn commit_job(&self, instance: usize, randomness: &Randomness) -> Job<C::Private> {
        let id = instance_id(instance);
        let kind = self.wiring.type_of[instance];
        let values = match self.wiring.masking {
            // Mask i is a function of the seed: both neighbors compute the same one
            // (spec: zero-knowledge#masks).
            Masking::Masked => {
                let randomness = self.mask_randomness(randomness);
                self.execution
                    .values
                    .masked_slots(&self.layout, id, |i| randomness.scalar(Purpose::Mask, i))
            }
            Masking::Unmasked => self.execution.values.slots(&self.layout, id),
        };
        let slots = self.wiring.slots[self.starts[instance]..][..values.len()].to_vec();
        Job { instance, kind: kind as usize, values, slots, private: None }
    }

    /// The job of one instance with its private input, for the prove round or for both rounds.
    ///
    /// # Errors
    /// When the circuit has no private input for it.
    pub fn prove_job(
        &self,
        instance: usize,
        randomness: &Randomness,
    ) -> Result<Job<C::Private>, CoordinatorError> {
        let private = self.execution.private_input(instance_id(instance))?;
        Ok(Job { private: Some(private), ..self.commit_job(instance, randomness) })
    }

    /// What all blocks of the aggregation read.
    pub(crate) fn shared(&self) -> &Shared<'a> {
        &self.shared
    }

    /// Takes the answers of the commit round, from which the challenges follow. All further work is
    /// done on this pool.
    ///
    /// # Errors
    /// When there is not exactly one answer per instance.
    pub fn committed<P: Pool>(
        &'a self,
        commitments: Vec<Commitment>,
        pool: &'a P,
    ) -> Result<Committed<'a, C, LocalBlocks<'a, P>>, CoordinatorError> {
        self.committed_with(
            Box::new(Merlin::new()),
            commitments,
            LocalBlocks::all(&self.shared, pool),
        )
    }

    /// [`Self::committed`] over any sponge and any holder of the vectors.
    pub(crate) fn committed_with<B: Blocks>(
        &'a self,
        sponge: Box<dyn Sponge>,
        commitments: Vec<Commitment>,
        blocks: B,
    ) -> Result<Committed<'a, C, B>, CoordinatorError> {
        // spec: distributed#collect
        let commitments = one_each("commit", self.instances(), commitments, |c| c.instance)?;
        let vk = &self.keys.verifying;
        // Pads are the identity in every vector (spec: aggregation#padding).
        let committing = {
            let d = padded_commitments(&commitments, self.shared.padded());
            Committing::new(&self.shared, vk, sponge, &self.public_values, &d, blocks)
        };
        let committing = committing.map_err(Into::into)?;
        // The verifier rejects a pole (zero denominator) in its own sum, so it is found before the
        // prove round (spec: memory-check#pole, verifier#public-sum).
        if let Err(VerifyError::Pole { index }) =
            public_sum(vk, &self.public_values, &committing.memory())
        {
            return Err(CoordinatorError::Pole { index });
        }
        Ok(Committed { coordinator: self, commitments, committing })
    }
}

/// The coordinator after the commit round.
pub struct Committed<'a, C: Circuit, B> {
    coordinator: &'a Coordinator<'a, C>,
    commitments: Vec<Commitment>,
    committing: Committing<'a, Box<dyn Sponge>, B>,
}

impl<C: Circuit, B> std::fmt::Debug for Committed<'_, C, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committed")
            .field("commitments", &self.commitments.len())
            .finish_non_exhaustive()
    }
}

impl<'a, C: Circuit, B: Blocks> Committed<'a, C, B> {
    /// What all workers receive in the prove round.
    pub fn prove_round(&self) -> ProveRound {
        ProveRound { memory: self.committing.memory() }
    }

    /// Takes the answers of the prove round.
    ///
    /// # Errors
    /// When there is not exactly one answer per instance.
    pub fn proven(
        self,
        responses: Vec<ProofResponse>,
    ) -> Result<Proven<'a, C, B>, CoordinatorError> {
        let Self { coordinator, commitments, committing } = self;
        let responses = one_each("prove", coordinator.instances(), responses, |r| r.instance)?;
        Ok(Proven { coordinator, commitments, committing, responses })
    }
}

/// The coordinator after the prove round.
pub struct Proven<'a, C: Circuit, B> {
    coordinator: &'a Coordinator<'a, C>,
    commitments: Vec<Commitment>,
    committing: Committing<'a, Box<dyn Sponge>, B>,
    responses: Vec<ProofResponse>,
}

impl<C: Circuit, B> std::fmt::Debug for Proven<'_, C, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proven").field("responses", &self.responses.len()).finish_non_exhaustive()
    }
}

impl<C: Circuit, B: Blocks> Proven<'_, C, B> {
    /// Aggregates, and returns the proof only if it verifies.
    ///
    /// # Errors
    /// When the proof does not verify, with the bad subcircuits if there are any.
    pub fn aggregate(self) -> Result<Proof, CoordinatorError> {
        let Self { coordinator, commitments, committing, responses } = self;
        let memory = committing.memory();
        let proofs = responses.iter().map(|response| (response.instance, &response.proof));
        let vectors = ProofVectors::new(proofs, coordinator.shared.padded());
        let proof = committing.finish(&vectors).map_err(Into::into)?;
        // Whatever workers and ranks answered, a wrong proof is never returned
        // (spec: distributed#trust).
        let verdict =
            verify(&coordinator.keys.verifying, &coordinator.public_values, proof.as_bytes());
        let Err(error) = verdict else { return Ok(proof) };
        let instances =
            bad_subcircuits(coordinator.keys, &commitments, &responses, &memory, proof.as_bytes())?;
        if instances.is_empty() {
            Err(CoordinatorError::Aggregate(error))
        } else {
            Err(CoordinatorError::BadSubcircuits { instances })
        }
    }
}

/// The commitments D by instance, padded with the identity.
pub(crate) fn padded_commitments(commitments: &[Commitment], padded: usize) -> Vec<G1Point> {
    let mut out = vec![G1Point::IDENTITY; padded];
    commitments.iter().for_each(|commitment| out[commitment.instance] = commitment.d);
    out
}

/// The instance at an index below n.
#[allow(clippy::cast_possible_truncation, reason = "layouts have at most 2^31 instances")]
fn instance_id(instance: usize) -> InstanceId {
    InstanceId::from_index(instance as u32)
}

/// A digest of everything that masks hide: the verifying key and all shared values
/// (spec: zero-knowledge#randomness). Halves of 16 bytes are below r, so no bit is lost.
fn digest_of_execution<C: Circuit>(keys: &ProverKeys, execution: &Execution<'_, C>) -> [Fr; 2] {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 execution");
    hasher.update(&keys.verifying.digest());
    for value in execution.values.all() {
        hasher.update(&hekaton_arith::fr_to_bytes(&value));
    }
    let digest = hasher.finalize();
    [0, 16].map(|at| {
        let half = &digest.as_bytes()[at..at + 16];
        Fr::from(half.iter().fold(0u128, |acc, b| acc << 8 | u128::from(*b)))
    })
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

/// Names the subcircuits whose Mirage equation fails (spec: distributed#blame, mirage#find-bad).
/// There must be one answer per instance, in order.
pub(crate) fn bad_subcircuits(
    keys: &ProverKeys,
    commitments: &[Commitment],
    responses: &[ProofResponse],
    memory: &MemoryChallenges,
    entropy: &[u8],
) -> Result<Vec<usize>, KeyFileError> {
    let verifier = keys.aggregation.mirage_verifier(&keys.verifying)?;
    let s = keys.aggregation.s(memory)?;
    let types = keys.aggregation.type_of()?;
    let statements: Vec<MirageInstance> = (commitments.iter().zip(responses))
        .map(|(c, r)| MirageInstance {
            kind: types[r.instance] as usize,
            s: s[r.instance],
            d: c.d,
            proof: r.proof,
        })
        .collect();
    // The factors depend on every answer: `entropy` is the aggregate proof, which commits to A, B,
    // C and e; D and C are hashed in addition. So a worker cannot choose answers whose errors
    // cancel (spec: mirage#batch).
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 batch verification");
    hasher.update(entropy);
    for statement in &statements {
        hasher.update(&statement.d.to_compressed()).update(&statement.proof.c.to_compressed());
    }
    let mut stream = hasher.finalize_xof();
    let mut random = move || {
        let mut bytes = [0; 64];
        stream.fill(&mut bytes);
        fr_from_uniform(&bytes)
    };
    Ok(verifier.find_bad(&statements, &mut random))
}
