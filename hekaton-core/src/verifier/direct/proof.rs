//! The bytes of direct proofs: in files and for contracts (spec: direct#proof).

use super::encoding::{put_point, put_scalar};
use super::key::DirectKey;
use crate::encoding::{DecodeError, Reader};
use crate::verifier::proof::{ProofError, ProofKind, key_digest_of_kind};
use hekaton_arith::{Fr, G1Point, G2Point, Group, fr_from_bytes};

/// Length in bytes of the magic bytes, the version and KEY.
pub(crate) const HEADER: usize = 8 + 2 + 32;
/// Length in bytes per subcircuit in a file: D, A and C in G1, B in G2, e.
const PER_INSTANCE: usize = 3 * G1Point::COMPRESSED + G2Point::COMPRESSED + 32;

/// The elements of a direct proof, one of each per subcircuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectProof {
    /// The commitments D.
    pub(crate) d: Vec<G1Point>,
    /// A and B.
    pub(crate) ab: Vec<(G1Point, G2Point)>,
    /// C.
    pub(crate) c: Vec<G1Point>,
    /// The terms of the ledger sum.
    pub(crate) e: Vec<Fr>,
}

impl DirectProof {
    /// Returns the length in bytes of a file with a proof of `instances` subcircuits.
    pub const fn encoded_len(instances: usize) -> usize {
        HEADER + PER_INSTANCE * instances
    }

    /// Reads the digest of the direct key that a proof was made for, from the header alone.
    ///
    /// # Errors
    /// When the bytes are not a direct proof of this version, or too short.
    pub fn key_digest(bytes: &[u8]) -> Result<[u8; 32], ProofError> {
        key_digest_of_kind(bytes, ProofKind::Direct)
    }

    /// Decodes the file of a proof under a key, whose number of subcircuits fixes the length. All points
    /// are checked: encoding, curve and subgroup; scalars are below r.
    ///
    /// # Errors
    /// See [`ProofError`].
    pub fn from_bytes(bytes: &[u8], key: &DirectKey) -> Result<Self, ProofError> {
        let (found, expected) = (Self::key_digest(bytes)?, key.digest());
        if found != expected {
            return Err(ProofError::ForeignKey { expected, found });
        }
        let (n, found) = (key.instances(), bytes.len());
        let expected = Self::encoded_len(n);
        if found != expected {
            return Err(ProofError::Length { expected, found });
        }
        let mut reader = Reader::new(bytes);
        reader.take(HEADER, "header")?;
        let d = (0..n).map(|_| reader.point("D")).collect::<Result<_, _>>()?;
        let pair = |_| Ok::<_, DecodeError>((reader.point("A")?, reader.point("B")?));
        let ab = (0..n).map(pair).collect::<Result<_, _>>()?;
        let c = (0..n).map(|_| reader.point("C")).collect::<Result<_, _>>()?;
        let scalar = |_| {
            let mut bytes: [u8; 32] = reader.array("e")?;
            bytes.reverse();
            fr_from_bytes(&bytes).map_err(|e| reader.invalid("e", 32, e))
        };
        let e = (0..n).map(scalar).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { d, ab, c, e })
    }

    /// Returns the file of a proof under the key with this digest.
    #[cfg(feature = "prover")]
    pub(crate) fn to_bytes(&self, key_digest: &[u8; 32]) -> Vec<u8> {
        let mut out = ProofKind::Direct.header(key_digest);
        self.d.iter().for_each(|d| out.extend(d.to_compressed()));
        for (a, b) in &self.ab {
            out.extend(a.to_compressed());
            out.extend(b.to_compressed());
        }
        self.c.iter().for_each(|c| out.extend(c.to_compressed()));
        self.e.iter().for_each(|e| put_scalar(&mut out, e));
        out
    }

    /// Returns the proof as a contract takes it: 672 bytes per subcircuit, without a header.
    pub fn words(&self) -> Vec<u8> {
        let mut out = Self::words_of_d(&self.d);
        out.extend(self.words_of_answers());
        out
    }

    pub(crate) fn words_of_d(d: &[G1Point]) -> Vec<u8> {
        let mut out = Vec::with_capacity(128 * d.len());
        d.iter().for_each(|d| put_point(&mut out, d));
        out
    }

    pub(crate) fn words_of_answers(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(544 * self.c.len());
        for (a, b) in &self.ab {
            put_point(&mut out, a);
            put_point(&mut out, b);
        }
        self.c.iter().for_each(|c| put_point(&mut out, c));
        self.e.iter().for_each(|e| put_scalar(&mut out, e));
        out
    }
}
