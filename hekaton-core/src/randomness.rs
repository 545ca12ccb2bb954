//! The secret randomness of a run: one seed, and a pseudorandom function of subcircuit and purpose.
//!
//! Every random scalar is `PRF(seed, attempt, context, purpose, index)`, so a job has the same
//! result wherever and however often it is done (spec: zero-knowledge#randomness). The context is
//! what the scalar hides: masks depend on the key and all shared values, k_D also on the
//! subcircuit's values, s and x also on the challenges and the whole assignment. So even if a seed
//! is used for two runs by mistake, they draw different randomness, unless the runs are identical.

use hekaton_arith::{Fr, fr_from_uniform};
use zeroize::Zeroizing;

/// What a random scalar is for.
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
}

/// Number of scalars copied into the buffer per call of the hash.
const CHUNK: usize = 512;

/// The seed of a run's randomness.
#[derive(Clone)]
pub struct Randomness {
    seed: Zeroizing<[u8; 32]>,
    attempt: u32,
    context: [u8; 32],
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
        Ok(Self { seed, attempt: 0, context: [0; 32], seeded: false })
    }

    /// **For tests only: proofs made with it are NOT zero-knowledge**, because anyone who knows the
    /// seed can undo the blinding, and two runs with one seed share it. The same seed always
    /// produces the same proof bytes, whatever the number of threads or ranks.
    pub fn seeded_not_zero_knowledge(seed: u64) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self { seed: bytes, attempt: 0, context: [0; 32], seeded: true }
    }

    /// Restores the randomness of a run that is resumed, from the secret seed that its run directory
    /// kept. **The seed must be secret and uniformly random**: anyone who can guess it can undo the
    /// blinding of the proof. For tests there is [`Self::seeded_not_zero_knowledge`].
    pub fn from_secret_seed(seed: &[u8; 32], seeded: bool) -> Self {
        Self { seed: Zeroizing::new(*seed), attempt: 0, context: [0; 32], seeded }
    }

    /// Length of [`Self::to_secret_bytes`]: seed, attempt, context, flag.
    pub(crate) const SECRET_BYTES: usize = 69;

    /// Encodes everything, for a worker of the same run on another machine. The bytes are a secret.
    pub(crate) fn to_secret_bytes(&self) -> Vec<u8> {
        // Room for one byte that the caller appends: reallocating would leave a copy of the seed in
        // freed memory.
        let mut out = Vec::with_capacity(Self::SECRET_BYTES + 1);
        out.extend_from_slice(self.seed.as_ref());
        out.extend_from_slice(&self.attempt.to_le_bytes());
        out.extend_from_slice(&self.context);
        out.push(self.seeded.into());
        out
    }

    /// Decodes [`Self::to_secret_bytes`]; missing bytes count as zero.
    pub(crate) fn from_secret_bytes(bytes: &[u8]) -> Self {
        let mut all = Zeroizing::new([0; Self::SECRET_BYTES]);
        all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let mut out = Self {
            seed: Zeroizing::new([0; 32]),
            attempt: 0,
            context: [0; 32],
            seeded: all[68] != 0,
        };
        out.seed.copy_from_slice(&all[..32]);
        out.attempt = u32::from_le_bytes([all[32], all[33], all[34], all[35]]);
        out.context.copy_from_slice(&all[36..68]);
        out
    }

    /// Returns the seed itself, for run directories. **Keep it secret**: anyone who reads it can undo
    /// the blinding of the proof.
    pub fn secret_seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// Whether this is [`Self::seeded_not_zero_knowledge`].
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }

    /// Returns randomness independent of all that was used so far, for the restart after a pole
    /// (spec: zero-knowledge#restart).
    pub(crate) fn next_attempt(&self) -> Self {
        Self { attempt: self.attempt + 1, ..self.clone() }
    }

    /// Returns the same randomness in a narrower context.
    pub(crate) fn bound_to(&self, label: &'static str, values: &[Fr]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 randomness context");
        // Chained and length-prefixed, so that no two sequences of contexts collide.
        hasher
            .update(&self.context)
            .update(&(label.len() as u64).to_le_bytes())
            .update(label.as_bytes());
        let mut bytes = Zeroizing::new(Vec::with_capacity(32 * values.len().min(CHUNK)));
        for chunk in values.chunks(CHUNK) {
            bytes.clear();
            // The Montgomery limbs are as unique as a canonical encoding and need no conversion.
            chunk
                .iter()
                .flat_map(|value| value.0.0)
                .for_each(|limb| bytes.extend_from_slice(&limb.to_le_bytes()));
            hasher.update(&bytes);
        }
        Self { context: *hasher.finalize().as_bytes(), ..self.clone() }
    }

    /// Returns the scalar for a purpose and index in this context.
    pub(crate) fn scalar(&self, purpose: Purpose, index: u64) -> Fr {
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(b"hekaton-v1 randomness");
        hasher.update(&self.attempt.to_le_bytes());
        hasher.update(&self.context);
        hasher.update(&[purpose as u8]);
        hasher.update(&index.to_le_bytes());
        // 512 bits, so that the reduction mod r is uniform up to 2^-256.
        let mut bytes = Zeroizing::new([0; 64]);
        hasher.finalize_xof().fill(bytes.as_mut());
        fr_from_uniform(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_depend_on_everything() {
        let a = Randomness::seeded_not_zero_knowledge(1);
        let x = a.scalar(Purpose::Mask, 7);
        assert_eq!(x, Randomness::seeded_not_zero_knowledge(1).scalar(Purpose::Mask, 7));
        assert_ne!(x, a.scalar(Purpose::Mask, 8));
        assert_ne!(x, a.scalar(Purpose::Commitment, 7));
        assert_ne!(x, a.next_attempt().scalar(Purpose::Mask, 7));
        let bound = a.bound_to("values", &[Fr::from(1u64)]);
        assert_ne!(x, bound.scalar(Purpose::Mask, 7));
        assert_ne!(
            bound.scalar(Purpose::Mask, 7),
            a.bound_to("values", &[Fr::from(2u64)]).scalar(Purpose::Mask, 7)
        );
        assert_ne!(
            bound.scalar(Purpose::Mask, 7),
            a.bound_to("other", &[Fr::from(1u64)]).scalar(Purpose::Mask, 7)
        );
        assert_ne!(x, Randomness::seeded_not_zero_knowledge(2).scalar(Purpose::Mask, 7));
        assert_ne!(
            Randomness::fresh().unwrap().scalar(Purpose::Mask, 7),
            Randomness::fresh().unwrap().scalar(Purpose::Mask, 7)
        );
    }

    #[test]
    fn travels_whole() {
        let a = Randomness::fresh().unwrap().next_attempt().bound_to("values", &[Fr::from(1u64)]);
        let b = Randomness::from_secret_bytes(&a.to_secret_bytes());
        assert_eq!(a.to_secret_bytes().len(), Randomness::SECRET_BYTES);
        assert_eq!(a.scalar(Purpose::Mask, 7), b.scalar(Purpose::Mask, 7));
        assert_eq!(a.is_seeded(), b.is_seeded());
    }

    #[test]
    fn debug_does_not_show_the_seed() {
        assert_eq!(
            format!("{:?}", Randomness::seeded_not_zero_knowledge(77)),
            "Randomness { seeded: true, .. }"
        );
    }
}
