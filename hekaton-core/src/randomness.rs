//! The secret randomness of a run: one seed, and a pseudorandom function of subcircuit and purpose.
//!
//! Every random scalar is a function of the seed, the attempt, and the context that it hides, so a
//! job has the same result wherever and however often it is done (spec: zero-knowledge#randomness):
//!
//! - masks depend on the key and the values of all slots;
//! - k_D depends on the key, the subcircuit, and all values that its commitment hides;
//! - s and x depend on the challenges and the whole assignment as well.
//!
//! So even if a seed is used for two runs by mistake, they draw different randomness, unless the
//! runs are identical. A worker receives the secrets of its own subcircuits only
//! ([`InstanceRandomness`]), from which neither the seed nor the secrets of other subcircuits
//! follow.

use hekaton_arith::{Fr, fr_from_uniform};
use zeroize::Zeroizing;

/// The purpose of a random scalar.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The scalar k_D that hides a commitment.
    Commitment,
    /// The additive randomizer s of B.
    ProofAdditive,
    /// The multiplicative randomizer x of A and B.
    ProofMultiplicative,
    /// The mask wires of the ledger sum.
    Mask,
    /// The challenges under which the commit round synthesizes, which are not those of the proof.
    Rehearsal,
    /// The mark of the committed values.
    Mark,
}

/// Number of scalars copied into the buffer per call of the hash.
const CHUNK: usize = 512;

/// A pseudorandom function with a secret key; narrower contexts have keys of their own.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// The secret for a narrower context, which does not reveal this one.
    fn narrow(&self, label: &'static str, feed: impl FnOnce(&mut blake3::Hasher)) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        // Length-prefixed, so that no two sequences of contexts collide.
        hasher.update(b"hekaton-v2 context");
        hasher.update(&(label.len() as u64).to_le_bytes()).update(label.as_bytes());
        feed(&mut hasher);
        let mut key = Zeroizing::new([0; 32]);
        hasher.finalize_xof().fill(key.as_mut());
        Self(key)
    }

    /// The secret for a context that consists of field elements.
    pub(crate) fn bound_to(&self, label: &'static str, values: &[Fr]) -> Self {
        self.narrow(label, |hasher| {
            hasher.update(&(values.len() as u64).to_le_bytes());
            let mut bytes = Zeroizing::new(Vec::with_capacity(32 * values.len().min(CHUNK)));
            for chunk in values.chunks(CHUNK) {
                bytes.clear();
                // The Montgomery limbs are as unique as a canonical encoding and need no
                // conversion.
                chunk
                    .iter()
                    .flat_map(|value| value.0.0)
                    .for_each(|limb| bytes.extend_from_slice(&limb.to_le_bytes()));
                hasher.update(&bytes);
            }
        })
    }

    /// The scalar for a purpose and index in this context.
    pub(crate) fn scalar(&self, purpose: Purpose, index: u64) -> Fr {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"hekaton-v2 scalar").update(&[purpose as u8]).update(&index.to_le_bytes());
        // 512 bits, so that the reduction mod r is uniform up to 2^-256.
        let mut bytes = Zeroizing::new([0; 64]);
        hasher.finalize_xof().fill(bytes.as_mut());
        fr_from_uniform(&bytes)
    }
}

/// The secret randomness of one subcircuit in one attempt, which travels with its job.
#[derive(Clone)]
#[allow(unnameable_types, reason = "a job carries it, and only this crate makes or uses one")]
pub struct InstanceRandomness(Secret);

impl std::fmt::Debug for InstanceRandomness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstanceRandomness").finish_non_exhaustive()
    }
}

impl InstanceRandomness {
    /// The length of [`Self::secret_bytes`].
    pub(crate) const BYTES: usize = 32;

    /// The secret itself, for the worker of the subcircuit on another machine.
    pub(crate) fn secret_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0.0
    }

    /// Decodes [`Self::secret_bytes`].
    pub(crate) fn from_secret_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self(Secret(Zeroizing::new(*bytes)))
    }

    /// The randomness of k_D and of the blinding, bound to everything that D hides.
    pub(crate) fn of_committed(&self, committed: &[Fr]) -> Secret {
        self.0.bound_to("committed values", committed)
    }
}

/// The seed of a run's randomness.
#[derive(Clone)]
pub struct Randomness {
    seed: Secret,
    attempt: u32,
    seeded: bool,
}

impl std::fmt::Debug for Randomness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Randomness").field("seeded", &self.seeded).finish_non_exhaustive()
    }
}

impl Randomness {
    /// Draws fresh randomness from the operating system. Use it for one run only.
    ///
    /// # Errors
    /// When the operating system returns no randomness.
    pub fn fresh() -> Result<Self, getrandom::Error> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut())?;
        Ok(Self { seed: Secret(seed), attempt: 0, seeded: false })
    }

    /// **For tests only: proofs made with it are NOT zero-knowledge**, because anyone who knows the
    /// seed can undo the blinding, and two runs with one seed share it. The same seed always
    /// produces the same proof bytes, whatever the number of threads or ranks.
    pub fn seeded_not_zero_knowledge(seed: u64) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self { seed: Secret(bytes), attempt: 0, seeded: true }
    }

    /// Restores the randomness of a run that is resumed, from the secret seed that its run directory
    /// kept. **The seed must be secret and uniformly random**: anyone who can guess it can undo the
    /// blinding of the proof. For tests there is [`Self::seeded_not_zero_knowledge`].
    pub fn from_secret_seed(seed: &[u8; 32], seeded: bool) -> Self {
        Self { seed: Secret(Zeroizing::new(*seed)), attempt: 0, seeded }
    }

    /// Returns the seed itself, for run directories. **Keep it secret**: anyone who reads it can undo
    /// the blinding of the proof.
    pub fn secret_seed(&self) -> &[u8; 32] {
        &self.seed.0
    }

    /// Reports whether this is [`Self::seeded_not_zero_knowledge`].
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }

    /// Returns randomness independent of all that was used so far, for the restart after a pole
    /// (spec: zero-knowledge#restart).
    pub(crate) fn next_attempt(&self) -> Self {
        Self { attempt: self.attempt + 1, ..self.clone() }
    }

    /// The secret of the masks of an execution, by its digest.
    pub(crate) fn of_masks(&self, execution_digest: &[u8; 32]) -> Secret {
        self.seed.narrow("masks", |hasher| {
            hasher.update(&self.attempt.to_le_bytes()).update(execution_digest);
        })
    }

    /// The secret of one subcircuit under a verifying key, by its digest.
    pub(crate) fn of_instance(&self, key_digest: &[u8; 32], instance: usize) -> InstanceRandomness {
        InstanceRandomness(self.seed.narrow("subcircuit", |hasher| {
            hasher.update(&self.attempt.to_le_bytes()).update(key_digest);
            hasher.update(&(instance as u64).to_le_bytes());
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    #[test]
    fn scalars_depend_on_everything() {
        let of = |randomness: &Randomness, key: &[u8; 32], instance: usize, values: &[u64]| {
            let values: Vec<Fr> = values.iter().copied().map(Fr::from).collect();
            randomness
                .of_instance(key, instance)
                .of_committed(&values)
                .scalar(Purpose::Commitment, 0)
        };
        let a = Randomness::seeded_not_zero_knowledge(1);
        let x = of(&a, &KEY, 3, &[1, 2]);
        assert_eq!(x, of(&Randomness::seeded_not_zero_knowledge(1), &KEY, 3, &[1, 2]));
        assert_ne!(x, of(&Randomness::seeded_not_zero_knowledge(2), &KEY, 3, &[1, 2]));
        assert_ne!(x, of(&a.next_attempt(), &KEY, 3, &[1, 2]));
        assert_ne!(x, of(&a, &[8; 32], 3, &[1, 2]));
        assert_ne!(x, of(&a, &KEY, 4, &[1, 2]));
        assert_ne!(x, of(&a, &KEY, 3, &[1, 3]));
        assert_ne!(x, of(&a, &KEY, 3, &[1]));
        let secret = a.of_instance(&KEY, 3).of_committed(&[]);
        let s = secret.scalar(Purpose::ProofAdditive, 0);
        assert_ne!(s, secret.scalar(Purpose::ProofMultiplicative, 0));
        assert_ne!(s, secret.bound_to("challenges", &[]).scalar(Purpose::ProofAdditive, 0));
        assert_ne!(
            secret.bound_to("assignment", &[]).scalar(Purpose::ProofAdditive, 0),
            secret.bound_to("challenges", &[]).scalar(Purpose::ProofAdditive, 0)
        );
        let mask = a.of_masks(&KEY).scalar(Purpose::Mask, 7);
        assert_ne!(mask, a.of_masks(&KEY).scalar(Purpose::Mask, 8));
        assert_ne!(mask, a.of_masks(&[8; 32]).scalar(Purpose::Mask, 7));
        assert_ne!(mask, a.next_attempt().of_masks(&KEY).scalar(Purpose::Mask, 7));
        let fresh = || Randomness::fresh().unwrap().of_masks(&KEY).scalar(Purpose::Mask, 7);
        assert_ne!(fresh(), fresh());
    }

    #[test]
    fn a_worker_gets_what_is_its_own() {
        let run = Randomness::fresh().unwrap();
        let own = run.of_instance(&KEY, 1);
        assert_ne!(own.secret_bytes(), run.secret_seed());
        assert_ne!(own.secret_bytes(), run.of_instance(&KEY, 2).secret_bytes());
        let sent = InstanceRandomness::from_secret_bytes(own.secret_bytes());
        let scalar = |r: &InstanceRandomness| r.of_committed(&[]).scalar(Purpose::Commitment, 0);
        assert_eq!(scalar(&sent), scalar(&own));
    }

    #[test]
    fn debug_does_not_show_the_seed() {
        assert_eq!(
            format!("{:?}", Randomness::seeded_not_zero_knowledge(77)),
            "Randomness { seeded: true, .. }"
        );
    }
}
