//! Direct runs: what differs from runs with an aggregated proof (spec: direct#run).

use crate::protocol::messages::{Commitment, ProofResponse};
use crate::verifier::direct::{Context, DirectKey, DirectProof, transcript};
use crate::verifier::proof::Proof;
use hekaton_arith::{Fr, G1Point};
use hekaton_circuit::MemoryChallenges;

/// The key and the context of a direct run.
#[derive(Clone, Copy, Debug)]
pub struct DirectRun<'a> {
    pub(crate) key: &'a DirectKey,
    pub(crate) context: Context,
}

impl<'a> DirectRun<'a> {
    /// A direct run whose proof is for this key and context, zero where the application has none.
    pub fn new(key: &'a DirectKey, context: Context) -> Self {
        Self { key, context }
    }

    /// The run digest: everything that the run's randomness, ranks and run directory are bound to in place
    /// of a verifying key's digest. The context is in it because masks must not be used under two pairs
    /// of challenges.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v6 direct run");
        hasher.update(&self.key.digest()).update(&self.context);
        *hasher.finalize().as_bytes()
    }

    /// The challenges of the memory check, after all commitments, which are in order.
    pub(crate) fn memory(
        &self,
        public_values: &[Fr],
        commitments: &[Commitment],
    ) -> MemoryChallenges {
        let d: Vec<G1Point> = commitments.iter().map(|c| c.d).collect();
        let state = transcript::committed(self.key, &self.context, public_values, &d);
        transcript::memory(&state, self.key.has_buses())
    }

    /// The proof of the answers of both rounds, which are in order.
    pub(crate) fn proof(&self, commitments: &[Commitment], responses: &[ProofResponse]) -> Proof {
        let proofs = responses.iter().map(|response| &response.proof);
        let direct = DirectProof {
            d: commitments.iter().map(|c| c.d).collect(),
            ab: proofs.clone().map(|proof| (proof.a, proof.b)).collect(),
            c: proofs.clone().map(|proof| proof.c).collect(),
            e: proofs.map(|proof| proof.e).collect(),
        };
        Proof::of_direct(direct.to_bytes(&self.key.digest()))
    }
}
