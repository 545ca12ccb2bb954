//! JSON: the parameters of `engine_newPayload`, and answers of JSON-RPC, for nodes without another codec.

use super::Status;
use super::parameters::JsonParameters;
use super::payload::Texts;
use super::rlp::witness_from_rlp;
use crate::values::{Object, array, bytes, cut, hex, parse, wrong};
use alloy_consensus::Header;
use alloy_primitives::hex as hexadecimal;
use hekaton_witness_format::{ExecutionWitness, PUBLIC_KEY, encode_witness, keccak};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

pub use super::parameters::Parameters;
pub use crate::values::{JsonError, decode_hex};

/// An answer of JSON-RPC.
#[derive(Debug, Deserialize)]
struct Response<T> {
    result: Option<T>,
    error: Option<Object<RpcError>>,
}

/// An error of JSON-RPC, and of [`apis773`](super::apis773).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, serde::Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
}

/// The code for a text that is not an answer of JSON-RPC.
const NOT_RPC: i64 = -32_603;

/// Reads an answer of JSON-RPC.
pub(crate) fn result<T: serde::de::DeserializeOwned>(text: &[u8]) -> Result<T, RpcError> {
    let bad = |message: String| RpcError { code: NOT_RPC, message };
    let Object(response): Object<Response<T>> = serde_json::from_slice(text)
        .map_err(|error| bad(format!("the answer is not JSON-RPC: {error}")))?;
    match response {
        Response { error: Some(Object(error)), .. } => Err(error),
        Response { result: Some(result), .. } => Ok(result),
        _ => Err(bad("the answer has neither a result nor an error".into())),
    }
}

/// `PayloadStatusV1`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayloadStatus {
    status: String,
    latest_valid_hash: Option<String>,
    validation_error: Option<String>,
    /// The witness, in answers of `engine_newPayloadWithWitness`.
    witness: Option<SentWitness>,
}

/// A witness in a status: hexadecimal digits of its RLP, or as `debug_executionWitness` has it.
#[derive(Debug)]
enum SentWitness {
    Rlp(String),
    Json(JsonWitness),
}

// An untagged enum would hold a copy of the whole witness to look at it twice.
impl<'de> Deserialize<'de> for SentWitness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = SentWitness;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a witness: 0x and digits, or an object with state, codes and headers")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(SentWitness::Rlp(text.to_owned()))
            }

            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(SentWitness::Rlp(text))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                JsonWitness::deserialize(MapAccessDeserializer::new(map)).map(SentWitness::Json)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl SentWitness {
    /// Encodes the witness in SSZ, with its items as they came.
    fn encode(self) -> Result<Vec<u8>, JsonError> {
        match self {
            Self::Rlp(digits) => {
                let encoded = bytes(&digits, "witness")?;
                // Digits take twice the memory of what they stand for, so they go first.
                drop(digits);
                witness_from_rlp(&encoded)
            }
            Self::Json(witness) => witness.encode(),
        }
    }
}

/// A call of JSON-RPC that is answered with a witness.
const WITH_WITNESS: &str = "engine_newPayloadWithWitnessV";

/// Reports whether a body contains the word `Witness`. Most bodies do not, and need not be parsed.
fn may_ask_for_witness(body: &[u8]) -> bool {
    // Hexadecimal digits, of which bodies consist for the most part, have no W.
    body.split(|byte| *byte == b'W').any(|rest| rest.starts_with(b"itness"))
}

/// Reports whether a body is a call that is answered with a witness.
pub(crate) fn asks_for_witness(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    may_ask_for_witness(body)
        && serde_json::from_slice::<Object<Call<'_>>>(body)
            .is_ok_and(|Object(call)| call.method.starts_with(WITH_WITNESS))
}

/// Reads the parameters of a call.
///
/// # Errors
/// The fault, with the code that [`Parameters::decode`] has for it.
pub(crate) fn parameters_of_call(body: &[u8]) -> Result<Parameters, (i64, JsonError)> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        params: JsonParameters<'a>,
    }
    let Object(Call { params }) = parse(body, "params")?;
    params.read().map_err(|error| (-32_602, error))
}

/// A witness as `debug_executionWitness` has it. Its keys are not used.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct JsonWitness {
    state: Vec<String>,
    codes: Vec<String>,
    /// The headers as hexadecimal digits of their RLP, or with a name for each field, as Geth sends them.
    headers: Vec<Value>,
}

/// Returns a header in RLP, whichever way it is written.
fn header(value: Value) -> Result<Vec<u8>, JsonError> {
    let fields = match value {
        Value::String(digits) => return bytes(&digits, "headers"),
        Value::Object(fields) => fields,
        _ => return Err(wrong("headers", "expected 0x and digits, or an object per header")),
    };
    let said = fields.get("hash").map(|hash| match hash {
        Value::String(hash) => array::<32>(hash, "hash"),
        _ => Err(wrong("hash", "expected 0x and 64 hexadecimal digits")),
    });
    let said: Option<[u8; 32]> = said.transpose()?;
    let header: Header = serde_json::from_value(Value::Object(fields))
        .map_err(|error| wrong("headers", error.to_string()))?;
    let encoded = alloy_rlp::encode(&header);
    let found = keccak(&encoded);
    match said {
        // Forks add fields, and one that is not known here is not part of the encoding.
        Some(said) if said != found => {
            let why = format!(
                "header {} has the hash {}, but its known fields have {}: it is wrong, or of a later fork",
                header.number,
                hex(&said),
                hex(&found)
            );
            Err(wrong("headers", why))
        }
        _ => Ok(encoded),
    }
}

/// The content of a node's answer in JSON, in terms of SSZ.
#[derive(Debug)]
pub struct Said {
    /// The status of the payload.
    pub status: Status,
    /// The hash of the last valid block.
    pub latest_valid_hash: Option<[u8; 32]>,
    /// The error, if the payload is invalid.
    pub validation_error: Option<String>,
    /// The witness in SSZ, with its items as they came.
    pub witness: Option<Vec<u8>>,
}

impl PayloadStatus {
    pub(crate) fn read(self) -> Result<Said, JsonError> {
        let status = Status::named(&self.status).ok_or_else(|| {
            wrong("status", format!("unknown status '{}'", cut(&self.status, 80)))
        })?;
        let hash = self.latest_valid_hash.map(|hash| array(&hash, "latestValidHash"));
        Ok(Said {
            status,
            latest_valid_hash: hash.transpose()?,
            validation_error: self.validation_error,
            witness: self.witness.map(SentWitness::encode).transpose()?,
        })
    }
}

impl JsonWitness {
    /// Reads a witness, or an answer of JSON-RPC that has one.
    fn read(text: &[u8]) -> Result<Self, JsonError> {
        let error = match serde_json::from_slice(text) {
            Ok(Object(witness)) => return Ok(witness),
            Err(error) => error,
        };
        match result(text) {
            Ok(Object(witness)) => Ok(witness),
            // An answer that gives the reason for a missing witness.
            Err(refused) if refused.code != NOT_RPC => Err(wrong("witness", refused.to_string())),
            Err(_) => Err(wrong("witness", error.to_string())),
        }
    }

    /// Encodes the witness in SSZ, with its items as they came.
    pub(crate) fn encode(self) -> Result<Vec<u8>, JsonError> {
        let items = |texts: Vec<String>, part| {
            texts.into_iter().map(|text| bytes(&text, part)).collect::<Result<Vec<_>, _>>()
        };
        let (state, codes) = (items(self.state, "state")?, items(self.codes, "codes")?);
        let headers = self.headers.into_iter().map(header).collect::<Result<Vec<_>, _>>()?;
        let [state, codes, headers] =
            [&state, &codes, &headers].map(|items| items.iter().map(Vec::as_slice));
        let encoded = encode_witness(state, codes, headers);
        // JSON has no limits: items that exceed those of SSZ are noticed here.
        let checked =
            encoded.and_then(|bytes| ExecutionWitness::decode(&bytes).map(|_| ()).map(|()| bytes));
        checked.map_err(|error| wrong("witness", error.to_string()))
    }
}

/// Reads a witness as `debug_executionWitness` has it, alone or in an answer of JSON-RPC. Returns it in SSZ, with its items as they
/// came: [`canonical`](crate::canonical) sorts them, and leaves out what does not belong there.
///
/// # Errors
/// The fault.
pub fn witness_from_json(text: &[u8]) -> Result<Vec<u8>, JsonError> {
    JsonWitness::read(text)?.encode()
}

/// The body of `POST /v1/witness` in JSON: a block with its witness, from a sender that has both.
///
/// ```json
/// {"parameters": [{..}, [], "0x..", []], "witness": {"state": [], "codes": [], "headers": []}, "publicKeys": []}
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPush {
    /// The block, as the parameters of `engine_newPayload` in the version of its fork.
    pub parameters: Parameters,
    /// The witness in SSZ, with its items as they came.
    pub witness: Vec<u8>,
    /// The public keys of the senders; may be empty.
    pub public_keys: Vec<u8>,
}

impl JsonPush {
    /// Reads the body.
    ///
    /// # Errors
    /// The fault, with the code that [`Parameters::decode`] has for it.
    pub fn decode(text: &[u8]) -> Result<Self, (i64, JsonError)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Body<'a> {
            #[serde(borrow)]
            parameters: JsonParameters<'a>,
            witness: Object<JsonWitness>,
            #[serde(borrow, default)]
            public_keys: Texts<'a>,
        }
        let Object(Body { parameters, witness: Object(witness), public_keys }) =
            parse(text, "body")?;
        let read = || {
            let keys = public_keys.iter().map(|key| array::<PUBLIC_KEY>(key, "publicKeys"));
            Ok(Self {
                parameters: parameters.read()?,
                witness: witness.encode()?,
                public_keys: keys.collect::<Result<Vec<_>, _>>()?.concat(),
            })
        };
        read().map_err(|error| (-32_602, error))
    }

    /// Assembles a body from the texts of its parts, each of which is JSON.
    pub fn join(parameters: &[u8], witness: &[u8]) -> Vec<u8> {
        [&b"{\"parameters\":"[..], parameters, b",\"witness\":", witness, b"}"].concat()
    }
}

/// Returns a witness as JSON, with an empty list of keys.
pub fn witness_to_json(witness: &ExecutionWitness<'_>) -> Vec<u8> {
    let total = witness.encoded_len() * 2 + 64;
    let mut text = Vec::with_capacity(total);
    let parts = [("{\"state\":[", witness.state), ("],\"codes\":[", witness.codes)];
    for (head, items) in parts.into_iter().chain([("],\"headers\":[", witness.headers)]) {
        text.extend_from_slice(head.as_bytes());
        for (at, item) in items.iter().enumerate() {
            text.extend_from_slice(if at == 0 { b"\"0x" } else { b",\"0x" });
            let from = text.len();
            text.resize(from + 2 * item.len(), 0);
            // The length is right, so this cannot fail.
            let _ = hexadecimal::encode_to_slice(item, &mut text[from..]);
            text.push(b'"');
        }
    }
    text.extend_from_slice(b"],\"keys\":[]}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Block 789 of a test network of Prague: the golden header of `alloy-consensus` 2.5.0 (`serde_rlp_prague`).
    #[test]
    fn headers_of_later_forks_are_read() {
        let root = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
        let hash = "0x661da523f3e44725f3a1cee38183d35424155a05674609a9f6ed81243adf9e26";
        let mut fields = serde_json::json!({
            "parentHash": "0x60f1563d2c572116091a4b91421d8d972118e39604d23455d841f9431cea4b6a",
            "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
            "miner": "0xf97e180c050e5ab072211ad2c213eb5aee4df134",
            "stateRoot": "0x8101d88f2761eb9849634740f92fe09735551ad5a4d5e9da9bcae1ef4726a475",
            "transactionsRoot": "0xf543eb3d405d2d6320344d348b06703ff1abeef71288181a24061e53f89bb5ef",
            "receiptsRoot": "0xeaa8c40899a61ae59615cf9985f5e2194f8fd2b57d273be63bde6733e89b12ab",
            "logsBloom": format!("0x{}", "0".repeat(512)),
            "difficulty": "0x0",
            "number": "0x315",
            "gasLimit": "0x1c9c380",
            "gasUsed": "0x5208",
            "timestamp": "0x6712ba6e",
            "extraData": "0xd883010e0c846765746888676f312e32332e32856c696e7578",
            "mixHash": "0xe6d9c084dd36560520d5776a5387a82fb44793c9cd1b69afb61d53af29ee64b0",
            "nonce": "0x0000000000000000",
            "baseFeePerGas": "0x7",
            "withdrawalsRoot": root,
            "blobGasUsed": "0x20000",
            "excessBlobGas": "0x40000",
            "parentBeaconBlockRoot": "0xd0bdb48ab45028568e66c8ddd600ac4c2a52522714bbfbf00ea6d20ba40f3ae2",
            "requestsHash": "0x6036c41849da9c076ed79654d434017387a88fb833c2856b32e18218b3341c5f",
            "hash": hash,
        });
        let encoded = header(fields.clone()).unwrap();
        assert_eq!(hex(&keccak(&encoded)), hash);
        // A field that is not known here is not part of the encoding, so a header that has one has another hash.
        fields["hash"] = root.into();
        let error = header(fields.clone()).unwrap_err().to_string();
        let why = format!("header 789 has the hash {root}, but its known fields have {hash}");
        assert!(error.contains(&why), "{error}");
        // Nor may a hash be given in a form that would not be compared.
        for hash in [Value::Null, 5.into()] {
            fields["hash"] = hash;
            let error = header(fields.clone()).unwrap_err().to_string();
            assert_eq!(error, "hash: expected 0x and 64 hexadecimal digits");
        }
    }

    /// Objects may not be written as arrays of their fields, of which serde knows the order.
    #[test]
    fn arrays_are_not_objects() {
        let block = crate::stand_in::Block::new(1, 2, 2_000);
        let witness: Value = serde_json::from_slice(&witness_to_json(&block.witness())).unwrap();
        let parameters = block.parameters.to_json();
        let in_array = |value: &Value, names: &[&str]| -> Value {
            names.iter().map(|name| value[name].clone()).collect()
        };
        let push = serde_json::json!({"parameters": parameters, "witness": witness});
        assert!(JsonPush::decode(push.to_string().as_bytes()).is_ok());
        let positional = in_array(&witness, &["state", "codes", "headers"]);
        assert!(witness_from_json(witness.to_string().as_bytes()).is_ok());
        assert!(witness_from_json(positional.to_string().as_bytes()).is_err());
        for answer in [
            serde_json::json!({"result": positional}),
            serde_json::json!([witness, null]),
            serde_json::json!({"result": null, "error": [-32_000, "pruned"]}),
        ] {
            let error = result::<Object<JsonWitness>>(answer.to_string().as_bytes()).unwrap_err();
            assert!(
                error.message.contains("invalid type: sequence, expected an object"),
                "{error}"
            );
        }
        let mut with_witness = push.clone();
        with_witness["witness"] = positional;
        let mut with_payload = push.clone();
        // The fields that are derived, in their order.
        with_payload["parameters"][0] = in_array(
            &parameters[0],
            &[
                "parentHash",
                "feeRecipient",
                "stateRoot",
                "receiptsRoot",
                "logsBloom",
                "prevRandao",
                "blockNumber",
                "gasLimit",
                "gasUsed",
                "timestamp",
                "extraData",
                "baseFeePerGas",
                "blockHash",
                "transactions",
                "withdrawals",
                "blobGasUsed",
                "excessBlobGas",
                "blockAccessList",
                "slotNumber",
            ],
        );
        let mut with_withdrawal = push.clone();
        with_withdrawal["parameters"][0]["withdrawals"] =
            serde_json::json!([["0x0", "0x0", format!("0x{}", "0".repeat(40)), "0x0"]]);
        let whole = serde_json::json!([parameters, witness, []]);
        for wrong in [with_witness, with_payload, with_withdrawal, whole] {
            let (code, error) = JsonPush::decode(wrong.to_string().as_bytes()).unwrap_err();
            let error = error.to_string();
            assert_eq!(code, -32_602);
            assert!(error.contains("invalid type: sequence, expected an object"), "{error}");
        }
        assert!(asks_for_witness(br#"{"method": "engine_newPayloadWithWitnessV5"}"#));
        assert!(!asks_for_witness(br#"["engine_newPayloadWithWitnessV5"]"#));
        assert!(header(serde_json::json!(["0x", "0x"])).is_err());
    }

    /// Returns the header of block 1 of Ethereum as Geth writes it.
    #[test]
    fn headers_of_geth_are_read() {
        let zeros = format!("0x{}", "0".repeat(512));
        let empty = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
        let hash = "0x88e96d4537bea4d9c05d12549907b32561d3bf31f45aae734cdc119f13406cb6";
        let fields = serde_json::json!({
            "parentHash": "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
            "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
            "miner": "0x05a56e2d52c817161883f50c441c3228cfe54d9f",
            "stateRoot": "0xd67e4d450343046425ae4271474353857ab860dbc0a1dde64b41b5cd3a532bf3",
            "transactionsRoot": empty,
            "receiptsRoot": empty,
            "logsBloom": zeros,
            "difficulty": "0x3ff800000",
            "number": "0x1",
            "gasLimit": "0x1388",
            "gasUsed": "0x0",
            "timestamp": "0x55ba4224",
            "extraData": "0x476574682f76312e302e302f6c696e75782f676f312e342e32",
            "mixHash": "0x969b900de27b6ac6a67742365dd65f55a0526c41fd18e1b16f1a1215c2e66f59",
            "nonce": "0x539bd4979fef1ec4",
            "baseFeePerGas": null,
            "withdrawalsRoot": null,
            "hash": hash,
        });
        let encoded = header(fields.clone()).unwrap();
        assert_eq!(hex(&alloy_primitives::keccak256(&encoded).0), hash);
        assert_eq!(header(Value::String(hex(&encoded))).unwrap(), encoded);
        let mut missing = fields;
        missing.as_object_mut().unwrap().remove("stateRoot");
        for (wrong, why) in [(missing, "stateRoot"), (serde_json::json!(5), "headers")] {
            let error = header(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
