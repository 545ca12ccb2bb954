//! The randomness of a verifier: coefficients of combinations, and the buckets of membership checks. The makers of a
//! transcript must not be able to foresee it.

use hekaton_arith::Fr;
use std::io::Read;

/// A stream of random numbers from a seed of the operating system.
#[derive(Clone, Debug)]
pub(crate) struct VerifierRandomness(blake3::OutputReader);

impl VerifierRandomness {
    /// A fresh stream.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        Ok(Self(blake3::Hasher::new_keyed(&seed).finalize_xof()))
    }

    /// A stream of its own, for a thread or a second reading of the same numbers.
    pub(crate) fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.0.fill(&mut seed);
        Self(blake3::Hasher::new_keyed(&seed).finalize_xof())
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// The next coefficients, of 128 bits each.
    pub(crate) fn coefficients(&mut self, n: usize) -> Vec<Fr> {
        coefficients(&mut self.0, n)
    }
}

/// Reads numbers of 128 bits from a stream, as scalars.
pub(crate) fn coefficients(stream: &mut blake3::OutputReader, n: usize) -> Vec<Fr> {
    let mut bytes = vec![0; 16 * n];
    // The stream of a hash has no end, and reading it cannot fail.
    stream.read_exact(&mut bytes).expect("a stream of a hash");
    bytes.as_chunks::<16>().0.iter().map(|bytes| Fr::from(u128::from_le_bytes(*bytes))).collect()
}
