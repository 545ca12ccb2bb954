//! The proof: its fields, their bytes, and parsing (spec: verifier#encoding, verifier#proof-size).

use crate::encoding::{DecodeError, Reader};
use crate::verifier::verifying_key::VerifyingKey;
use hekaton_arith::{G1Point, G2Point, Group, Gt};

const MAGIC: &[u8; 8] = b"HEKATNPF";
const DIRECT_MAGIC: &[u8; 8] = b"HEKATNDP";
/// Version of the proof file.
const VERSION: u16 = 2;
/// Version of the file of a direct proof.
const DIRECT_VERSION: u16 = 1;
const HEADER: usize = 8 + 2 + 32;
/// Number of GT elements outside the GIPA rounds.
const FIXED_GT: usize = 10;

/// The kind of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProofKind {
    /// One small proof for all subcircuits (spec: aggregation#folding).
    Aggregated,
    /// The proofs of all subcircuits, for few of them (spec: direct#proof).
    Direct,
}

impl ProofKind {
    /// Reads the kind of a proof from its first bytes.
    ///
    /// # Errors
    /// When they are those of no kind.
    pub fn of(bytes: &[u8]) -> Result<Self, ProofError> {
        match bytes.get(..8) {
            Some(magic) if magic == MAGIC => Ok(Self::Aggregated),
            Some(magic) if magic == DIRECT_MAGIC => Ok(Self::Direct),
            _ => Err(ProofError::Magic),
        }
    }

    fn version(self) -> u16 {
        match self {
            Self::Aggregated => VERSION,
            Self::Direct => DIRECT_VERSION,
        }
    }

    /// The start of a file, up to and with the digest of the key.
    #[cfg(any(feature = "prover", test))]
    pub(crate) fn header(self, key_digest: &[u8; 32]) -> Vec<u8> {
        let magic = match self {
            Self::Aggregated => MAGIC,
            Self::Direct => DIRECT_MAGIC,
        };
        [&magic[..], &self.version().to_le_bytes(), key_digest].concat()
    }
}

/// Reads the digest of the key that a proof was made for, from the header alone.
pub(crate) fn key_digest_of_kind(bytes: &[u8], kind: ProofKind) -> Result<[u8; 32], ProofError> {
    let found = ProofKind::of(bytes)?;
    if found != kind {
        return Err(ProofError::OtherKind { found });
    }
    let mut reader = Reader::new(bytes);
    reader.take(8, "magic")?;
    let (found, expected) = (reader.u16("format version")?, kind.version());
    if found != expected {
        return Err(ProofError::Version { found, expected });
    }
    Ok(reader.array("digest of the key")?)
}

/// Why bytes are not a proof under a verifying key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The bytes are something else.
    #[error("not a Hekaton proof (it does not start with its magic bytes)")]
    Magic,
    /// Another version.
    #[error(
        "the proof has format version {found}, but this program reads version {expected}: \
         verify it with the program that made it"
    )]
    Version {
        /// The version in the file.
        found: u16,
        /// The version that this program reads.
        expected: u16,
    },
    /// The proof is of the other kind.
    #[error("{}", other_kind(*.found))]
    OtherKind {
        /// The kind of the proof.
        found: ProofKind,
    },
    /// The proof was made for another verifying key.
    #[error(
        "the proof was made under another verifying key: its digest is {}, this key has digest {}",
        hex::encode(.found),
        hex::encode(.expected)
    )]
    ForeignKey {
        /// Digest of the key supplied.
        expected: [u8; 32],
        /// Digest in the proof.
        found: [u8; 32],
    },
    /// The proof is truncated or has bytes after its end.
    #[error("a proof for this key has {expected} bytes, but this one has {found}")]
    Length {
        /// The length that the verifying key prescribes.
        expected: usize,
        /// The length found.
        found: usize,
    },
    /// An element does not decode.
    #[error(transparent)]
    Element(#[from] DecodeError),
}

fn other_kind(found: ProofKind) -> &'static str {
    match found {
        ProofKind::Direct => {
            "this is a direct proof, and the key is for aggregated ones: verify it under a direct key, \
             which `hekaton export verifier` writes"
        }
        ProofKind::Aggregated => {
            "this is an aggregated proof, and the key is for direct ones: verify it under its \
             verifying key"
        }
    }
}

/// A field of the proof. The order of the encodings is the order of the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    CmD,
    CmA,
    CmB,
    CmC,
    Ve,
    /// The cross term X+ of block fold 0, 1 or 2.
    XPlus(usize),
    /// The cross term X- of block fold 0, 1 or 2.
    XMinus(usize),
    /// GIPA round, and product in the order T_L, T_R, U_L, U_R, Z_L, Z_R.
    Round(usize, usize),
    Lf,
    Rf,
    Vf,
    Wf,
    Wr,
    PiV,
    PiW,
}

/// Returns all fields of a proof with `rounds` GIPA rounds, in order.
pub(crate) fn fields(rounds: usize) -> Vec<Field> {
    use Field::*;
    let mut out = vec![CmD, CmA, CmB, CmC, Ve];
    out.extend((0..3).flat_map(|j| [XPlus(j), XMinus(j)]));
    out.extend((0..rounds).flat_map(|j| (0..6).map(move |p| Round(j, p))));
    out.extend([Lf, Rf, Vf, Wf, Wr, PiV, PiW]);
    out
}

/// Returns the byte ranges of all fields in the file.
#[cfg(feature = "fuzzing")]
pub(crate) fn ranges(rounds: usize) -> Vec<std::ops::Range<usize>> {
    let mut at = HEADER;
    let place = |field: Field| {
        let start = at;
        at += field.len();
        start..at
    };
    fields(rounds).into_iter().map(place).collect()
}

impl Field {
    /// Length of the encoding in bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Ve | Self::Rf | Self::Vf | Self::PiV => G2Point::COMPRESSED,
            Self::Lf | Self::Wf | Self::Wr | Self::PiW => G1Point::COMPRESSED,
            _ => Gt::COMPRESSED,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::CmD => "cm_D",
            Self::CmA => "cm_A",
            Self::CmB => "cm_B",
            Self::CmC => "cm_C",
            Self::Ve => "V_e",
            Self::XPlus(_) => "cross term X+",
            Self::XMinus(_) => "cross term X-",
            Self::Round(..) => "product of a GIPA round",
            Self::Lf => "L_f",
            Self::Rf => "R_f",
            Self::Vf => "v_f",
            Self::Wf => "w_f",
            Self::Wr => "W_r",
            Self::PiV => "pi_v",
            Self::PiW => "pi_w",
        }
    }
}

/// A proof in its encoded form, of either kind.
///
/// An aggregated one has `42 + 192 (10 + 6 l) + 4 * 48 + 4 * 96` bytes for l = ceil(log2 n) GIPA rounds: 14.1 kB for
/// 1,024 subcircuits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    bytes: Vec<u8>,
}

impl Proof {
    /// Returns the length in bytes of every aggregated proof under a key with `rounds` GIPA rounds.
    pub fn encoded_len(rounds: usize) -> usize {
        HEADER
            + (FIXED_GT + 6 * rounds) * Gt::COMPRESSED
            + 4 * (G1Point::COMPRESSED + G2Point::COMPRESSED)
    }

    /// Returns the bytes of the proof file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads the digest of the verifying key that an aggregated proof was made for, from its header
    /// alone.
    ///
    /// # Errors
    /// When the bytes are not such a proof of this version, or too short.
    pub fn key_digest(bytes: &[u8]) -> Result<[u8; 32], ProofError> {
        key_digest_of_kind(bytes, ProofKind::Aggregated)
    }

    /// Starts a proof without fields; the prover appends them in order.
    #[cfg(feature = "prover")]
    pub(crate) fn begin(vk_digest: &[u8; 32]) -> Self {
        Self { bytes: ProofKind::Aggregated.header(vk_digest) }
    }

    /// A direct proof in its encoded form.
    #[cfg(feature = "prover")]
    pub(crate) fn of_direct(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Restores a proof that was verified before it was stored.
    #[cfg(feature = "prover")]
    pub(crate) fn from_verified(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Appends the encoding of the next field.
    #[cfg(feature = "prover")]
    pub(crate) fn push(&mut self, encoding: &[u8]) {
        self.bytes.extend_from_slice(encoding);
    }
}

/// A proof whose elements are all decoded and checked, with the encodings that the transcript
/// absorbs.
pub(crate) struct Decoded<'a> {
    pub(crate) codes: Vec<&'a [u8]>,
    gt: Vec<Gt>,
    pub(crate) v_e: G2Point,
    pub(crate) l_f: G1Point,
    pub(crate) r_f: G2Point,
    pub(crate) v_f: G2Point,
    pub(crate) w_f: G1Point,
    pub(crate) w_r: G1Point,
    pub(crate) pi_v: G2Point,
    pub(crate) pi_w: G1Point,
}

impl<'a> Decoded<'a> {
    /// Parses a proof for `vk` (spec: verifier#encoding). The number of GIPA rounds comes from the
    /// key, never from the proof.
    pub(crate) fn parse(
        bytes: &'a [u8],
        vk: &VerifyingKey,
        vk_digest: &[u8; 32],
    ) -> Result<Self, ProofError> {
        // Bind the proof to this key, and fix its length by the key, before anything is allocated
        // or decoded: nothing below is sized by a number from the proof.
        let found = Proof::key_digest(bytes)?;
        if found != *vk_digest {
            return Err(ProofError::ForeignKey { expected: *vk_digest, found });
        }
        let expected = Proof::encoded_len(vk.rounds());
        if bytes.len() != expected {
            return Err(ProofError::Length { expected, found: bytes.len() });
        }
        let mut reader = Reader::new(bytes);
        reader.take(HEADER, "header")?;
        let layout = fields(vk.rounds());
        let mut codes = Vec::with_capacity(layout.len());
        let mut gt_codes = Vec::with_capacity(FIXED_GT + 6 * vk.rounds());
        let mut g1 = [G1Point::IDENTITY; 4];
        let mut g2 = [G2Point::IDENTITY; 4];
        let (mut g1_slots, mut g2_slots) = (g1.iter_mut(), g2.iter_mut());
        let mut gt_fields = Vec::with_capacity(gt_codes.capacity());
        let mut at = HEADER;
        // Points are decoded one by one, with subgroup checks. `codes` keeps the bytes: the
        // transcript absorbs exactly the parsed bytes.
        for field in layout {
            let code = &bytes[at..at + field.len()];
            codes.push(code);
            match field.len() {
                G1Point::COMPRESSED => {
                    let point = reader.point(field.name())?;
                    g1_slots.next().into_iter().for_each(|slot| *slot = point);
                }
                G2Point::COMPRESSED => {
                    let point = reader.point(field.name())?;
                    g2_slots.next().into_iter().for_each(|slot| *slot = point);
                }
                _ => {
                    gt_codes.push(reader.array(field.name())?);
                    gt_fields.push((field, at));
                }
            }
            at += field.len();
        }
        reader.finish()?;
        // All GT elements at once, which shares one inversion; membership and order are checked.
        let gt = Gt::decompress_all(&gt_codes).map_err(|(i, e)| {
            let (field, at) = gt_fields[i];
            DecodeError::Invalid { what: field.name(), at, why: e.to_string() }
        })?;
        let [l_f, w_f, w_r, pi_w] = g1;
        let [v_e, r_f, v_f, pi_v] = g2;
        Ok(Self { codes, gt, v_e, l_f, r_f, v_f, w_f, w_r, pi_v, pi_w })
    }

    /// Returns the commitments cm_D, cm_A, cm_B and cm_C, in this order.
    pub(crate) fn commitments(&self) -> [Gt; 4] {
        [self.gt[0], self.gt[1], self.gt[2], self.gt[3]]
    }

    /// Returns the cross terms X1+, X1-, X2+, X2-, X3+ and X3-, in this order.
    pub(crate) fn cross_terms(&self) -> &[Gt] {
        &self.gt[4..10]
    }

    /// Returns the six products of each GIPA round.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = &[Gt]> {
        self.gt[10..].chunks_exact(6)
    }
}
