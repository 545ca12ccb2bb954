//! The body of `POST /v1/witness`: a block with its witness, from a sender that has both.

use crate::envelope::Envelope;
use crate::payload::MAX_TRANSACTIONS;
use crate::ssz::{Field, OFFSET, Part, SszError, Writer};
use crate::witness::ExecutionWitness;

/// The length of an uncompressed public key, in bytes.
pub const PUBLIC_KEY: usize = 65;

/// A block with its witness, and the public keys of its senders.
///
/// ```text
/// Push {
///     envelope:    ExecutionPayloadEnvelope               # of the block's fork
///     witness:     ExecutionWitness
///     public_keys: List[ByteVector[65], 2^20]
/// }
/// ```
///
/// Without keys, they are not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push<'a> {
    /// The block.
    pub envelope: Envelope,
    /// Its witness.
    pub witness: ExecutionWitness<'a>,
    /// The public keys of the senders; may be empty.
    pub public_keys: &'a [u8],
}

impl<'a> Push<'a> {
    /// Reads the body.
    ///
    /// # Errors
    /// The first byte that cannot be part of one.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, SszError> {
        let message = Part::message(bytes, "Push")?;
        let fields = ["envelope", "witness", "public_keys"].map(Field::Variable);
        let [envelope, witness, keys] = message.container(fields)?;
        Ok(Self {
            envelope: Envelope::read(envelope)?,
            witness: ExecutionWitness::read(witness)?,
            // The check of the block compares their number with that of its transactions.
            public_keys: keys.elements(PUBLIC_KEY, MAX_TRANSACTIONS)?,
        })
    }

    /// Encodes the body.
    pub fn encode(&self) -> Vec<u8> {
        // Room for an envelope without large transactions; others grow it.
        let capacity = self.witness.encoded_len() + self.public_keys.len() + 4_096;
        Writer::new(Vec::with_capacity(capacity), 3 * OFFSET)
            .offset()
            .offset()
            .offset()
            .variable(|bytes| self.envelope.write(bytes))
            .variable(|bytes| self.witness.write(bytes))
            .variable(|mut bytes| {
                bytes.extend_from_slice(self.public_keys);
                bytes
            })
            .end()
    }
}
