//! A block with its accompanying data, in the container of its fork: `ExecutionPayloadEnvelope` (refactor-ssz.md).
//!
//! Forks append fields, so the length of a container's fixed part, which is its first offset, shows its fork.

use crate::fork::{Amsterdam, Cancun, Fork};
use crate::payload::{self, FIRST_OFFSET, MAX_BYTES, Payload, WITHDRAWAL, fields};
use crate::ssz::{Field, OFFSET, Part, SszError, Writer, write_items};

/// A block with the data that belongs to it: the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The fields that blocks of all forks have.
    pub payload: Payload,
    /// The fork, with the fields that it has added.
    pub fork: Fork,
}

/// The largest envelope, in bytes.
pub const MAX_ENVELOPE: usize = 64 << 20;

/// The largest number of requests in a block: their types are bytes.
const MAX_REQUESTS: usize = 256;

// The lengths of the fixed parts of envelopes, in bytes.
const SHANGHAI: usize = OFFSET;
const CANCUN: usize = OFFSET + 32;
const PRAGUE: usize = OFFSET + 32 + OFFSET;

impl Envelope {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// The first byte that cannot be part of an envelope.
    pub fn decode(bytes: &[u8]) -> Result<Self, SszError> {
        Self::read(Part::message(bytes, "ExecutionPayloadEnvelope")?)
    }

    /// Reads an envelope that is part of a message.
    ///
    /// # Errors
    /// The first byte that cannot be part of an envelope.
    pub fn read(part: Part<'_>) -> Result<Self, SszError> {
        // The payload is copied, unlike witnesses, so its length is checked before anything is read.
        part.list(MAX_ENVELOPE)?;
        let payload = Field::Variable("payload");
        let root = Field::Fixed("parent_beacon_block_root", 32);
        match part.offset(0)? {
            SHANGHAI => {
                let [payload] = part.container([payload])?;
                Ok(Self { payload: Payload::read(fields(payload)?)?, fork: Fork::Shanghai })
            }
            CANCUN => {
                let [payload, root] = part.container([payload, root])?;
                let [shared @ .., used, excess] = fields::<17>(payload)?;
                let fork = Fork::Cancun(cancun(used, excess, root)?);
                Ok(Self { payload: Payload::read(shared)?, fork })
            }
            PRAGUE => {
                let requests = Field::Variable("execution_requests");
                let [payload, root, requests] = part.container([payload, root, requests])?;
                Self::read_with_requests(payload, root, requests)
            }
            other => {
                let why = format!(
                    "first offset {other}, expected {SHANGHAI} (Shanghai), {CANCUN} (Cancun) or {PRAGUE} (later forks)"
                );
                Err(part.error(why))
            }
        }
    }

    /// Reads an envelope of Prague or a later fork, which only its payload shows.
    fn read_with_requests(
        payload: Part<'_>,
        root: Part<'_>,
        requests: Part<'_>,
    ) -> Result<Self, SszError> {
        let list = requests.items(MAX_REQUESTS, MAX_BYTES)?;
        let requests = list.iter().map(<[u8]>::to_vec).collect();
        match payload.offset(FIRST_OFFSET)? {
            payload::CANCUN => {
                let [shared @ .., used, excess] = fields::<17>(payload)?;
                let fork = Fork::Prague(cancun(used, excess, root)?, requests);
                Ok(Self { payload: Payload::read(shared)?, fork })
            }
            payload::AMSTERDAM => {
                let [shared @ .., used, excess, accesses, slot] = fields::<19>(payload)?;
                let amsterdam = Amsterdam {
                    block_access_list: accesses.list(MAX_BYTES)?.to_vec(),
                    slot_number: slot.u64()?,
                };
                let fork = Fork::Amsterdam(cancun(used, excess, root)?, requests, amsterdam);
                Ok(Self { payload: Payload::read(shared)?, fork })
            }
            other => {
                let why = format!(
                    "first offset {other}, expected {} (Prague and Osaka) or {} (Amsterdam)",
                    payload::CANCUN,
                    payload::AMSTERDAM
                );
                Err(payload.error(why))
            }
        }
    }

    /// Returns the length of the encoding, in bytes.
    pub fn encoded_len(&self) -> usize {
        let Self { payload, fork } = self;
        let items = |items: &[Vec<u8>]| -> usize { items.iter().map(|it| OFFSET + it.len()).sum() };
        let fixed = match (fork.cancun(), fork.requests(), fork.amsterdam()) {
            (None, ..) => SHANGHAI + payload::SHANGHAI,
            (_, None, _) => CANCUN + payload::CANCUN,
            (_, _, None) => PRAGUE + payload::CANCUN,
            _ => PRAGUE + payload::AMSTERDAM,
        };
        fixed
            + payload.extra_data.len()
            + items(&payload.transactions)
            + payload.withdrawals.len() * WITHDRAWAL
            + fork.requests().map_or(0, items)
            + fork.amsterdam().map_or(0, |it| it.block_access_list.len())
    }

    /// Encodes the envelope.
    pub fn encode(&self) -> Vec<u8> {
        self.write(Vec::new())
    }

    /// Appends the encoding to a message.
    pub fn write(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Self { payload, fork } = self;
        let (cancun, requests) = (fork.cancun(), fork.requests());
        let fixed = match (cancun, requests) {
            (None, _) => SHANGHAI,
            (Some(_), None) => CANCUN,
            (Some(_), Some(_)) => PRAGUE,
        };
        let mut writer = Writer::new(bytes, fixed).offset();
        if let Some(Cancun { parent_beacon_block_root, .. }) = cancun {
            writer = writer.fixed(parent_beacon_block_root);
        }
        let write_payload = |bytes| payload.write(fork, bytes);
        match requests.map(|requests| requests.iter().map(Vec::as_slice)) {
            None => writer.variable(write_payload),
            Some(requests) => writer
                .offset()
                .variable(write_payload)
                .variable(|bytes| write_items(bytes, requests)),
        }
        .end()
    }
}

/// Reads the fields that Cancun has added to payload and envelope.
fn cancun(used: Part<'_>, excess: Part<'_>, root: Part<'_>) -> Result<Cancun, SszError> {
    Ok(Cancun {
        blob_gas_used: used.u64()?,
        excess_blob_gas: excess.u64()?,
        parent_beacon_block_root: *root.array()?,
    })
}
