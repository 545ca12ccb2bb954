//! Who delivered what was wrong: checks of workers' claims, and the subcircuits because of which a proof does not verify
//! (spec: distributed#blame).

use super::Coordinator;
use crate::keys::{KeyFileError, ProverKeys};
use crate::mirage::MirageInstance;
use crate::protocol::coordinator_error::CoordinatorError;
use crate::protocol::executed::{digest_with, instance_id};
use crate::protocol::messages::{Commitment, Job, ProofResponse};
use crate::randomness::Randomness;
use crate::verifier::proof::Proof;
use crate::verifier::verify::{VerifyError, public_sum};
use ark_ff::Zero;
use hekaton_arith::{Fr, Group, fr_from_uniform};
use hekaton_circuit::{MemoryChallenges, PrivateInput, SynthesizeError};

impl Coordinator<'_> {
    /// Reports whether an instance's digest is that of these values and, with buses, of this private
    /// input.
    pub(crate) fn are_values_of(
        &self,
        instance: usize,
        values: &[Fr],
        private: &PrivateInput,
    ) -> bool {
        let found = digest_with(self.circuit, instance_id(instance), values, private);
        found.is_ok_and(|digest| digest == self.digests[instance])
    }

    /// Reports whether an instance hits a pole (zero denominator) under these challenges: a
    /// worker's claim costs an attempt, so it is checked (spec: memory-check#pole).
    pub(crate) fn hits_pole(
        &self,
        instance: usize,
        randomness: &Randomness,
        memory: &MemoryChallenges,
    ) -> Result<bool, CoordinatorError> {
        if instance >= self.instances() {
            return Ok(false);
        }
        let Job { kind, slots, values, private, .. } = self.prove_job(instance, randomness)?;
        let Ok(prefix) = self.circuit.prefix(instance_id(instance), &slots, &values, memory) else {
            return Ok(true);
        };
        let key = &self.keys.types[kind];
        // The entries of buses have fingerprints, too.
        let (Some(id), Some(private)) = (self.layout.type_id(kind), private) else {
            return Ok(false);
        };
        if key.layout().shape().entries == 0 {
            return Ok(false);
        }
        let z = self.circuit.witness(id, self.masking, &prefix, &private, key.variables());
        Ok(matches!(z, Err(SynthesizeError::Pole { .. })))
    }

    /// Returns why an aggregate proof does not verify: the bad subcircuits, if there are any.
    ///
    /// # Errors
    /// If the aggregation key cannot be read.
    pub(super) fn blame(
        &self,
        commitments: &[Commitment],
        responses: &[ProofResponse],
        memory: &MemoryChallenges,
        proof: &Proof,
        error: VerifyError,
    ) -> Result<CoordinatorError, KeyFileError> {
        let instances =
            bad_subcircuits(self.keys, commitments, responses, memory, proof.as_bytes())?;
        if !instances.is_empty() {
            return Ok(CoordinatorError::BadSubcircuits { instances });
        }
        // With buses, the sum of all terms is not zero by construction.
        let vk = &self.keys.verifying;
        let sum: Fr = responses.iter().map(|response| response.proof.e).sum();
        Ok(match public_sum(vk, &self.public_values, memory) {
            Ok(public) if vk.has_buses() && sum + public != Fr::zero() => CoordinatorError::Buses,
            _ => CoordinatorError::Aggregate(error),
        })
    }
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
