//! The parameters of `engine_newPayloadV2` (Shanghai), `V3` (Cancun), `V4` (Prague and Osaka) and `V5` (Amsterdam) in JSON.
//!
//! The fork follows from the number of parameters and from the fields of the payload. The hash of the block shows whether they are
//! right.

use super::payload::{self, JsonPayload, Texts};
use crate::values::{JsonError, Object, array, bytes, hex, parse, quantity, wrong};
use hekaton_witness_format::{Amsterdam, Cancun, Envelope, Fork, MAX_ENVELOPE};
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// The parameters of `engine_newPayload`, in the version of the block's fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The block with what belongs to it.
    pub envelope: Envelope,
    /// The hashes of the blobs, as the beacon chain knows them; none before Cancun.
    pub blob_hashes: Vec<[u8; 32]>,
}

impl Parameters {
    /// Reads the parameters: an array.
    ///
    /// # Errors
    /// The fault, with the code that [`apis773`](super::apis773) has for it: -32700 if the text is not JSON, else -32602.
    pub fn decode(text: &[u8]) -> Result<Self, (i64, JsonError)> {
        let found: JsonParameters<'_> = parse(text, "parameters")?;
        found.read().map_err(|error| (-32_602, error))
    }

    /// Encodes the parameters as JSON.
    pub fn encode(&self) -> Vec<u8> {
        self.to_json().to_string().into_bytes()
    }

    /// Returns the parameters as a JSON value.
    pub fn to_json(&self) -> Value {
        let Self { envelope, blob_hashes } = self;
        let mut parameters = vec![payload::to_json(envelope)];
        if let Some(Cancun { parent_beacon_block_root, .. }) = envelope.fork.cancun() {
            parameters.push(blob_hashes.iter().map(|hash| hex(hash)).collect());
            parameters.push(hex(parent_beacon_block_root).into());
        }
        if let Some(requests) = envelope.fork.requests() {
            parameters.push(requests.iter().map(|request| hex(request)).collect());
        }
        parameters.into()
    }

    /// Returns the method of JSON-RPC that takes these parameters.
    pub fn method(&self) -> &'static str {
        match self.envelope.fork {
            Fork::Shanghai => "engine_newPayloadV2",
            Fork::Cancun(_) => "engine_newPayloadV3",
            Fork::Prague(..) => "engine_newPayloadV4",
            Fork::Amsterdam(..) => "engine_newPayloadV5",
        }
    }
}

/// The parameters as they are written; those that only later forks have may be absent at the end.
pub(crate) struct JsonParameters<'a> {
    payload: JsonPayload<'a>,
    hashes: Option<Texts<'a>>,
    root: Option<Cow<'a, str>>,
    requests: Option<Texts<'a>>,
}

impl JsonParameters<'_> {
    pub(crate) fn read(&self) -> Result<Parameters, JsonError> {
        let hashes = self.hashes.iter().flatten();
        let hashes = hashes.map(|it| array::<32>(it, "expectedBlobVersionedHashes"));
        let blob_hashes = hashes.collect::<Result<_, _>>()?;
        let envelope = Envelope { payload: self.payload.read()?, fork: self.fork()? };
        match envelope.encoded_len() {
            ..=MAX_ENVELOPE => Ok(Parameters { blob_hashes, envelope }),
            length => {
                let why = format!("{length} bytes in SSZ, expected at most {MAX_ENVELOPE}");
                Err(wrong("parameters", why))
            }
        }
    }

    /// Returns the only fork that has these parameters and fields.
    fn fork(&self) -> Result<Fork, JsonError> {
        let Self { payload, hashes, root, requests } = self;
        let cancun = |used: &str, excess: &str, root: &str| {
            Ok(Cancun {
                blob_gas_used: quantity(used, "blobGasUsed")?,
                excess_blob_gas: quantity(excess, "excessBlobGas")?,
                parent_beacon_block_root: array(root, "parentBeaconBlockRoot")?,
            })
        };
        let read = |requests: &Texts<'_>| -> Result<Vec<_>, JsonError> {
            requests.iter().map(|it| bytes(it, "executionRequests")).collect()
        };
        match (&payload.added(), hashes, root, requests) {
            ([None, None, None, None], None, None, None) => Ok(Fork::Shanghai),
            ([Some(used), Some(excess), None, None], Some(_), Some(root), None) => {
                Ok(Fork::Cancun(cancun(used, excess, root)?))
            }
            ([Some(used), Some(excess), None, None], Some(_), Some(root), Some(requests)) => {
                Ok(Fork::Prague(cancun(used, excess, root)?, read(requests)?))
            }
            (
                [Some(used), Some(excess), Some(accesses), Some(slot)],
                Some(_),
                Some(root),
                Some(requests),
            ) => {
                let amsterdam = Amsterdam {
                    block_access_list: bytes(accesses, "blockAccessList")?,
                    slot_number: quantity(slot, "slotNumber")?,
                };
                Ok(Fork::Amsterdam(cancun(used, excess, root)?, read(requests)?, amsterdam))
            }
            _ => Err(self.no_fork()),
        }
    }

    fn no_fork(&self) -> JsonError {
        let Self { payload, hashes, root, requests } = self;
        let count = 1 + [hashes.is_some(), root.is_some(), requests.is_some()]
            .map(usize::from)
            .iter()
            .sum::<usize>();
        let names = ["blobGasUsed", "excessBlobGas", "blockAccessList", "slotNumber"];
        let found: Vec<&str> = names
            .into_iter()
            .zip(payload.added())
            .filter_map(|(name, field)| field.map(|_| name))
            .collect();
        let found = if found.is_empty() { "no added fields".into() } else { found.join(", ") };
        let why = format!(
            "no fork has {count} parameters and a payload with {found}: Shanghai has 1 and no added fields, Cancun 3 with blobGasUsed and excessBlobGas, Prague and Osaka 4 with the same fields, Amsterdam 4 with blockAccessList and slotNumber as well"
        );
        wrong("parameters", why)
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for JsonParameters<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Array(std::marker::PhantomData))
    }
}

/// Reads an array of 1 to 4 parameters.
struct Array<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for Array<'a> {
    type Value = JsonParameters<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the array of parameters of engine_newPayload: 1 to 4")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<Self::Value, S::Error> {
        let payload: Option<Object<_>> = elements.next_element()?;
        let Object(payload) = payload.ok_or_else(|| S::Error::invalid_length(0, &self))?;
        let found = JsonParameters {
            payload,
            hashes: elements.next_element()?,
            root: elements.next_element()?,
            requests: elements.next_element()?,
        };
        match elements.next_element::<IgnoredAny>()? {
            Some(_) => Err(S::Error::invalid_length(5, &self)),
            None => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in::Block;
    use hekaton_witness_format::MAX_TRANSACTIONS;

    /// The limits are those of SSZ: 2^20 transactions, and 64 MiB in all.
    #[test]
    fn json_has_the_limits_of_ssz() {
        let mut block = Block::new(1, 2, 2_000).parameters;
        let mut read = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
            change(&mut block.envelope.payload.transactions);
            let read = Parameters::decode(&block.encode()).map_err(|(_, error)| error.to_string());
            let in_ssz = Envelope::decode(&block.envelope.encode());
            assert_eq!(read.is_ok(), in_ssz.is_ok());
            read
        };
        let small = vec![vec![1]; MAX_TRANSACTIONS];
        read(&|it| it.clone_from(&small)).unwrap();
        let error = read(&|it| it.push(vec![1])).unwrap_err();
        assert_eq!(error, "transactions: 1048577, expected at most 1048576");
        let room =
            MAX_ENVELOPE - { read(&|it| *it = vec![vec![1]]).unwrap().envelope.encoded_len() };
        read(&|it| it[0].resize(1 + room, 1)).unwrap();
        let error = read(&|it| it[0].push(1)).unwrap_err();
        assert_eq!(error, "parameters: 67108865 bytes in SSZ, expected at most 67108864");
    }
}
