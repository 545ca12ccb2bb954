//! The secrets of a contribution, which are wiped when they are dropped (spec: ceremony#contributor).

use crate::genesis::Chain;
use ark_ff::{One, Zero};
use hekaton_arith::{Fr, fr_from_uniform};
use zeroize::{Zeroize, Zeroizing};

/// The seed of all secrets of a contribution.
// In a box, because a value that is moved leaves copies behind.
pub struct Seed(Box<Zeroizing<[u8; 32]>>);

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed")
    }
}

impl Seed {
    /// Draws 64 bytes from the operating system and hashes them with a text of the contributor's choice, which may be
    /// empty: a second source, should the first one be bad.
    ///
    /// # Errors
    /// When the operating system returns no randomness.
    pub fn draw(text: &str) -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; 64]);
        getrandom::fill(bytes.as_mut())?;
        Ok(Self::from_parts(&bytes, text))
    }

    fn from_parts(bytes: &[u8; 64], text: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony seed");
        hasher.update(bytes).update(text.as_bytes());
        let mut seed = Box::new(Zeroizing::new([0; 32]));
        let mut stream = hasher.finalize_xof();
        stream.fill(seed.as_mut().as_mut());
        stream.zeroize();
        hasher.zeroize();
        Self(seed)
    }

    /// The bytes, for a search of memory.
    #[cfg(test)]
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.0
    }

    /// Test double: a seed that is known.
    #[cfg(any(test, feature = "testing"))]
    pub fn known(number: u64) -> Self {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Self::from_parts(&bytes, "")
    }

    /// The secrets of a contribution to a chain: none is 0 or 1, and none occurs twice.
    pub(crate) fn secrets(&self, chain: Chain, count: usize) -> Zeroizing<Vec<Fr>> {
        let mut stream = self.stream(b"secrets", &[&[chain.code()]]);
        let mut secrets = Zeroizing::new(Vec::with_capacity(count));
        let mut bytes = Zeroizing::new([0; 64]);
        while secrets.len() < count {
            stream.fill(bytes.as_mut());
            let secret = Zeroizing::new(fr_from_uniform(&bytes));
            if !secret.is_zero() && !secret.is_one() && !secrets.contains(&*secret) {
                secrets.push(*secret);
            }
        }
        stream.zeroize();
        secrets
    }

    /// The nonce of a proof of knowledge: of the whole statement and of fresh randomness, so that neither a repeated seed
    /// nor bad randomness makes two statements share one.
    pub(crate) fn nonce(&self, statement: &[u8]) -> Result<Zeroizing<Fr>, getrandom::Error> {
        let mut fresh = Zeroizing::new([0; 32]);
        getrandom::fill(fresh.as_mut())?;
        Ok(self.nonce_with(statement, &fresh))
    }

    pub(crate) fn nonce_with(&self, statement: &[u8], fresh: &[u8; 32]) -> Zeroizing<Fr> {
        let mut stream = self.stream(b"nonce", &[statement, fresh]);
        let mut bytes = Zeroizing::new([0; 64]);
        stream.fill(bytes.as_mut());
        stream.zeroize();
        Zeroizing::new(fr_from_uniform(&bytes))
    }

    fn stream(&self, purpose: &[u8], parts: &[&[u8]]) -> blake3::OutputReader {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in [purpose].iter().chain(parts) {
            // Length-prefixed, so that no two contexts collide.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let stream = hasher.finalize_xof();
        hasher.zeroize();
        stream
    }
}

/// The secrets of a beacon: anybody can compute them from its value, so they hide nothing (spec: ceremony#beacon).
pub(crate) fn of_beacon(
    before: &[u8; 32],
    chain: Chain,
    value: &[u8],
    exponent: u8,
    count: usize,
) -> Vec<Fr> {
    let slow = delay(value, exponent);
    (0..count as u64)
        .map(|number| {
            let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony beacon");
            hasher.update(before).update(&[chain.code()]).update(&number.to_le_bytes());
            hasher.update(&slow);
            let mut bytes = [0; 64];
            hasher.finalize_xof().fill(&mut bytes);
            fr_from_uniform(&bytes)
        })
        .collect()
}

/// The value and the exponent of a beacon, and their hash.
type Delayed = (Vec<u8>, u8, [u8; 32]);

/// SHA-256 iterated `2^exponent` times. The last result is kept: all chains have the same beacon.
fn delay(value: &[u8], exponent: u8) -> [u8; 32] {
    static LAST: std::sync::Mutex<Option<Delayed>> = std::sync::Mutex::new(None);
    // A thread that panicked has left a whole result or none.
    let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match &*last {
        Some((of, power, hash)) if (&of[..], *power) == (value, exponent) => *hash,
        _ => {
            let hash = hashed(value, exponent);
            *last = Some((value.to_vec(), exponent, hash));
            hash
        }
    }
}

fn hashed(value: &[u8], exponent: u8) -> [u8; 32] {
    use sha2::Digest;
    let mut state: [u8; 32] = sha2::Sha256::digest(value).into();
    for _ in 1..1u64 << exponent {
        state = sha2::Sha256::digest(state).into();
    }
    state
}
