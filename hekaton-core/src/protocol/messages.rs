//! The messages between coordinator and workers: plain values, so that any engine can carry them.
//!
//! Any worker can do a job, at any time, more than once, with the same result
//! (spec: distributed#jobs). The answers are [`Message`]s: values with one canonical encoding of a
//! fixed length, for ranks and for the logs of a run directory.

use crate::encoding::{DecodeError, Reader};
use crate::mirage::MirageProof;
use crate::randomness::InstanceRandomness;
use hekaton_arith::{Fr, G1Point, G2Point, Group, PointError, fr_from_bytes, fr_to_bytes};
use hekaton_circuit::{MemoryChallenges, PrivateInput, SlotAccess};

/// A subcircuit to be proven, with everything that belongs to it.
#[derive(Debug)]
pub struct Job {
    /// The index of the instance.
    pub instance: usize,
    /// The index of its type.
    pub kind: usize,
    /// The values of its shared wires by slot, masks included.
    pub values: Vec<Fr>,
    /// The addresses and multiplicities of its slots.
    pub slots: Vec<SlotAccess>,
    /// Its private input, which the commit round does not need.
    pub private: Option<PrivateInput>,
    /// The secret randomness of this subcircuit.
    pub randomness: InstanceRandomness,
}

/// A subcircuit to be proven by a rank that executed it: what only rank 0 knows
/// (spec: distributed#slices).
#[derive(Clone, Debug)]
pub(crate) struct OwnJob {
    /// The index of the instance.
    pub(crate) instance: usize,
    /// The secret randomness of this subcircuit.
    pub(crate) randomness: InstanceRandomness,
    /// The values in its mask slots, if it has them.
    pub(crate) masks: Vec<Fr>,
}

/// A worker's answer in the commit round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// The index of the instance.
    pub instance: usize,
    /// The commitment D to the values of its slots, and to its marked values.
    pub d: G1Point,
    /// The mark of the committed values.
    pub mark: Mark,
}

/// A keyed digest of all values that a subcircuit committed to: the prove round must commit to the same
/// ones (spec: buses#commit-round). The key is the subcircuit's secret randomness, so a mark reveals
/// nothing about the values. Zero where there are no marked values: slots have no choice.
pub type Mark = [u8; 32];

/// The message from the coordinator to all workers at the start of the prove round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProveRound {
    /// The challenges of the memory check.
    pub memory: MemoryChallenges,
}

/// A worker's answer in the prove round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofResponse {
    /// The index of the instance.
    pub instance: usize,
    /// The proof.
    pub proof: MirageProof,
    /// The mark of the committed values in the witness.
    pub mark: Mark,
}

/// A value with one canonical encoding of a fixed length (docs/formats.md, "Messages").
pub trait Message: Sized + Send + Sync {
    /// The length of the encoding in bytes.
    const LEN: usize;

    /// Returns the canonical encoding, [`Self::LEN`] bytes.
    fn to_bytes(&self) -> Vec<u8>;

    /// Decodes, and checks everything: the length, scalars below r, points canonical, on the curve
    /// and in the subgroup (spec: distributed#messages).
    ///
    /// # Errors
    /// What is wrong, and at which byte.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError>;
}

/// Decodes a compressed point.
pub(crate) type Decoder<G> = fn(&[u8]) -> Result<G, PointError>;

fn put_instance(instance: usize) -> Vec<u8> {
    (instance as u64).to_le_bytes().to_vec()
}

fn instance(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let index = reader.u64("index of the instance")?;
    // Layouts have fewer instances: a larger number is damage, and would be truncated in other
    // messages.
    match u32::try_from(index) {
        Ok(index) => Ok(index as usize),
        Err(_) => Err(reader.invalid(
            "index of the instance",
            8,
            format_args!("{index} is not below 2^32"),
        )),
    }
}

fn scalar(reader: &mut Reader<'_>, what: &'static str) -> Result<Fr, DecodeError> {
    fr_from_bytes(&reader.array(what)?).map_err(|e| reader.invalid(what, 32, e))
}

impl Message for Commitment {
    const LEN: usize = 8 + G1Point::COMPRESSED + size_of::<Mark>();

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = put_instance(self.instance);
        out.extend(self.d.to_compressed());
        out.extend(self.mark);
        out
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, G1Point::from_compressed)
    }
}

impl Commitment {
    /// Decodes with this decoder for points.
    pub(crate) fn read(bytes: &[u8], g1: Decoder<G1Point>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (instance, d) = (instance(&mut reader)?, reader.point_as("D", g1)?);
        let mark = reader.array("mark")?;
        reader.finish()?;
        Ok(Self { instance, d, mark })
    }
}

impl Message for ProveRound {
    const LEN: usize = 128;

    fn to_bytes(&self) -> Vec<u8> {
        let MemoryChallenges { g, b, b_t, b_v } = &self.memory;
        [g, b, b_t, b_v].map(fr_to_bytes).concat()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut next = |what| scalar(&mut reader, what);
        let memory =
            MemoryChallenges { g: next("g")?, b: next("b")?, b_t: next("b_T")?, b_v: next("b_V")? };
        reader.finish()?;
        Ok(Self { memory })
    }
}

impl Message for ProofResponse {
    const LEN: usize = 8 + 2 * G1Point::COMPRESSED + G2Point::COMPRESSED + 32 + size_of::<Mark>();

    fn to_bytes(&self) -> Vec<u8> {
        let MirageProof { a, b, c, e } = &self.proof;
        let mut out = put_instance(self.instance);
        out.extend(a.to_compressed());
        out.extend(b.to_compressed());
        out.extend(c.to_compressed());
        out.extend(fr_to_bytes(e));
        out.extend(self.mark);
        out
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, G1Point::from_compressed, G2Point::from_compressed)
    }
}

impl ProofResponse {
    /// Decodes with these decoders for points.
    pub(crate) fn read(
        bytes: &[u8],
        g1: Decoder<G1Point>,
        g2: Decoder<G2Point>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let instance = instance(&mut reader)?;
        let (a, b) = (reader.point_as("A", g1)?, reader.point_as("B", g2)?);
        let c = reader.point_as("C", g1)?;
        let proof = MirageProof { a, b, c, e: scalar(&mut reader, "e")? };
        let mark = reader.array("mark")?;
        reader.finish()?;
        Ok(Self { instance, proof, mark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_and_refuse_the_rest() {
        let g = G1Point::generator();
        let proof =
            MirageProof { a: g, b: G2Point::generator(), c: G1Point::IDENTITY, e: -Fr::from(5u64) };
        let (commitment, response) = (
            Commitment { instance: 7, d: g, mark: [1; 32] },
            ProofResponse { instance: 9, proof, mark: [2; 32] },
        );
        let memory = MemoryChallenges::new(Fr::from(2u64), -Fr::from(3u64));
        let memory = MemoryChallenges { b_t: Fr::from(5u64), b_v: -Fr::from(7u64), ..memory };
        let round = ProveRound { memory };
        assert_eq!(Commitment::from_bytes(&commitment.to_bytes()), Ok(commitment));
        assert_eq!(ProofResponse::from_bytes(&response.to_bytes()), Ok(response));
        assert_eq!(ProveRound::from_bytes(&round.to_bytes()), Ok(round));
        assert_eq!(commitment.to_bytes().len(), Commitment::LEN);
        assert_eq!(response.to_bytes().len(), ProofResponse::LEN);
        let mut bytes = response.to_bytes();
        bytes.push(0);
        assert_eq!(ProofResponse::from_bytes(&bytes), Err(DecodeError::Trailing(1)));
        bytes.truncate(ProofResponse::LEN - 1);
        assert!(matches!(ProofResponse::from_bytes(&bytes), Err(DecodeError::Truncated { .. })));
        let mut bytes = commitment.to_bytes();
        bytes[6] = 1;
        assert!(matches!(Commitment::from_bytes(&bytes), Err(DecodeError::Invalid { .. })));
        assert!(ProveRound::from_bytes(&[0xff; 128]).is_err(), "a scalar that is not reduced");
    }
}
