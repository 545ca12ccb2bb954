//! Blocks of each fork: their hashes, computed here in another way, and their ways into the service.

use super::*;
use hekaton_intake::block;
use hekaton_intake::check::check_block;
use hekaton_intake::codec::json::{JsonPush, Parameters, witness_to_json};
use hekaton_intake::stand_in::ForkName;
use hekaton_witness_format::Envelope;
use serde_json::Value;
use sha2::{Digest, Sha256};

const FORKS: [(ForkName, &str, usize); 5] = [
    (ForkName::Shanghai, "Shanghai", 1),
    (ForkName::Cancun, "Cancun", 3),
    (ForkName::Prague, "Prague and Osaka", 4),
    (ForkName::Osaka, "Prague and Osaka", 4),
    (ForkName::Amsterdam, "Amsterdam", 4),
];

fn of_fork(name: ForkName) -> Block {
    Block::new(4, 7, 10_000).in_fork(name)
}

fn json_body(block: &Block) -> Vec<u8> {
    JsonPush::join(&block.parameters.encode(), &witness_to_json(&block.witness()))
}

/// Payloads whose hashes other implementations have computed: see `tests/payloads/README.md`.
#[test]
fn known_payloads_have_their_hashes() {
    for (text, fork) in [
        (include_str!("../payloads/shanghai.json"), "Shanghai"),
        (include_str!("../payloads/cancun.json"), "Cancun"),
        (include_str!("../payloads/prague.json"), "Prague and Osaka"),
    ] {
        let parameters = Parameters::decode(text.as_bytes()).unwrap();
        assert_eq!(parameters.envelope.fork.name(), fork);
        check_block(&parameters.envelope, Some(&parameters.blob_hashes)).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parameters.to_json(), value, "what is written is what was read");
        assert_eq!(Envelope::decode(&parameters.envelope.encode()).unwrap(), parameters.envelope);
        assert_eq!(hash_by_hand(&value), value[0]["blockHash"].as_str().unwrap());
    }
}

/// Returns the RLP of a string (0x80) or of a list (0xc0).
fn rlp(base: u8, bytes: &[u8]) -> Vec<u8> {
    let plus = |length: usize| base + u8::try_from(length).unwrap();
    match bytes {
        [byte] if base == 0x80 && *byte < 0x80 => vec![*byte],
        _ if bytes.len() < 56 => [&[plus(bytes.len())], bytes].concat(),
        _ => {
            let length: Vec<u8> =
                bytes.len().to_be_bytes().into_iter().skip_while(|it| *it == 0).collect();
            [&[plus(55 + length.len())], &length[..], bytes].concat()
        }
    }
}

fn digits(value: &Value) -> Vec<u8> {
    json::decode_hex(value.as_str().unwrap()).unwrap()
}

/// Returns the bytes of a number without leading zeros.
fn number(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap().trim_start_matches("0x").trim_start_matches('0');
    let even = if text.len() % 2 == 1 { format!("0x0{text}") } else { format!("0x{text}") };
    json::decode_hex(&even).unwrap()
}

/// Computes the hash of a block from its parameters in JSON, field by field in the order of the Yellow Paper and of EIPs 1559,
/// 4895, 4844, 4788, 7685, 7928 and 7843.
fn hash_by_hand(parameters: &Value) -> String {
    let payload = &parameters[0];
    let keccak = |bytes: &[u8]| alloy_primitives::keccak256(bytes).to_vec();
    let root = |items: Vec<Vec<u8>>| {
        alloy_trie::root::ordered_trie_root_encoded::<Vec<u8>>(&items).to_vec()
    };
    let array = |value: &Value| value.as_array().unwrap().clone();
    let withdrawal = |it: &Value| {
        let numbers = [&it["index"], &it["validatorIndex"]].map(|it| rlp(0x80, &number(it)));
        let rest = [rlp(0x80, &digits(&it["address"])), rlp(0x80, &number(&it["amount"]))];
        rlp(0xc0, &[numbers.concat(), rest.concat()].concat())
    };
    let mut fields = vec![
        digits(&payload["parentHash"]),
        keccak(&[0xc0]),
        digits(&payload["feeRecipient"]),
        digits(&payload["stateRoot"]),
        root(array(&payload["transactions"]).iter().map(digits).collect()),
        digits(&payload["receiptsRoot"]),
        digits(&payload["logsBloom"]),
        vec![],
        number(&payload["blockNumber"]),
        number(&payload["gasLimit"]),
        number(&payload["gasUsed"]),
        number(&payload["timestamp"]),
        digits(&payload["extraData"]),
        digits(&payload["prevRandao"]),
        vec![0; 8],
        number(&payload["baseFeePerGas"]),
        root(array(&payload["withdrawals"]).iter().map(withdrawal).collect()),
    ];
    if let Some(beacon) = parameters.get(2) {
        fields.push(number(&payload["blobGasUsed"]));
        fields.push(number(&payload["excessBlobGas"]));
        fields.push(digits(beacon));
    }
    if let Some(requests) = parameters.get(3) {
        let hashes: Vec<u8> =
            array(requests).iter().flat_map(|it| Sha256::digest(digits(it))).collect();
        fields.push(Sha256::digest(hashes).to_vec());
    }
    if payload.get("slotNumber").is_some() {
        fields.push(keccak(&digits(&payload["blockAccessList"])));
        fields.push(number(&payload["slotNumber"]));
    }
    let inside: Vec<u8> = fields.iter().flat_map(|field| rlp(0x80, field)).collect();
    format!("0x{}", alloy_primitives::hex::encode(keccak(&rlp(0xc0, &inside))))
}

/// The fork follows from the form, the header has the fields of the fork, and both encodings are accepted.
#[test]
fn blocks_of_all_forks_are_accepted() {
    let world = World::new();
    for (name, fork, count) in FORKS {
        let block = of_fork(name);
        let parameters = &block.parameters;
        let value = parameters.to_json();
        assert_eq!(
            (parameters.envelope.fork.name(), value.as_array().unwrap().len()),
            (fork, count)
        );
        assert_eq!(Parameters::decode(&parameters.encode()).unwrap(), *parameters);
        assert_eq!(hash_by_hand(&value), value[0]["blockHash"].as_str().unwrap(), "{fork}");
        let (submitter, address) = world.service(|_| {});
        let url = format!("{address}/v1/witness");
        let in_ssz = record(&post(&url, OCTETS, &block.push()));
        let in_json = record(&post(&url, JSON, &json_body(&block)));
        assert_eq!((&in_ssz.block, &in_ssz.witness), (&in_json.block, &in_json.witness));
        let digest: hekaton_orchestrator::Digest = in_json.envelope.parse().unwrap();
        let stored = submitter.store().blobs().get(&digest, 1 << 20).unwrap();
        assert_eq!(Envelope::decode(&stored).unwrap(), parameters.envelope);
    }
}

/// A block has the fields of one fork: with those of another, its hash is another one.
#[test]
fn fields_of_another_fork_are_refused() {
    let world = World::new();
    let (_, address) = world.service(|_| {});
    let url = format!("{address}/v1/witness");
    for (name, fork, _) in FORKS {
        let mut block = of_fork(name);
        let right = block.parameters.envelope.payload.block_hash;
        // The form of another fork, with the hash that the block has.
        for other in [ForkName::Shanghai, ForkName::Cancun, ForkName::Prague, ForkName::Amsterdam] {
            let changed = of_fork(other).parameters.envelope.fork;
            if changed.name() == fork {
                continue;
            }
            block.parameters.envelope.fork = changed.clone();
            let found = block::header(&block.parameters.envelope).unwrap().hash_slow();
            for (kind, body) in [(OCTETS, block.push()), (JSON, json_body(&block))] {
                let refused = problem(post(&url, kind, &body));
                assert_eq!(
                    (refused.status, &refused.kind[..]),
                    (422, "/engine-api/errors/invalid-body")
                );
                let names = format!("({}, as in {})", changed.fields(), changed.name());
                for part in [names, format!("{found}"), alloy_primitives::hex::encode(right)] {
                    assert!(refused.detail.contains(&part), "{refused:?}\nand not: {part}");
                }
            }
        }
    }
}

/// Parameters and fields that no fork has together are named.
#[test]
fn forms_of_no_fork_are_refused() {
    let world = World::new();
    let (_, address) = world.service(|_| {});
    let url = format!("{address}/v1/witness");
    let refused = |name: ForkName, change: &dyn Fn(&mut Value)| {
        let mut body: Value = serde_json::from_slice(&json_body(&of_fork(name))).unwrap();
        change(&mut body["parameters"]);
        let refused = problem(post(&url, JSON, body.to_string().as_bytes()));
        assert_eq!((refused.status, &refused.kind[..]), (400, "/engine-api/errors/invalid-body"));
        refused.detail
    };
    let remove = |it: &mut Value, name: &str| drop(it[0].as_object_mut().unwrap().remove(name));
    for (name, change, why) in [
        (
            ForkName::Shanghai,
            &(|it: &mut Value| it.as_array_mut().unwrap().push(serde_json::json!([])))
                as &dyn Fn(&mut Value),
            "no fork has 2 parameters and a payload with no added fields",
        ),
        (
            ForkName::Cancun,
            &|it| it.as_array_mut().unwrap().truncate(1),
            "1 parameters and a payload with blobGasUsed, excessBlobGas",
        ),
        (ForkName::Cancun, &|it| remove(it, "excessBlobGas"), "a payload with blobGasUsed:"),
        (
            ForkName::Prague,
            &|it| remove(it, "blobGasUsed"),
            "4 parameters and a payload with excess",
        ),
        (ForkName::Amsterdam, &|it| drop(it.as_array_mut().unwrap().pop()), "3 parameters"),
        (ForkName::Amsterdam, &|it| remove(it, "slotNumber"), "blockAccessList: Shanghai has 1"),
        (ForkName::Amsterdam, &|it| it.as_array_mut().unwrap().push(1.into()), "1 to 4"),
        (ForkName::Amsterdam, &|it| *it = serde_json::json!([]), "1 to 4"),
        (ForkName::Shanghai, &|it| remove(it, "withdrawals"), "missing field `withdrawals`"),
        (ForkName::Prague, &|it| it[3][0] = "0x1".into(), "executionRequests"),
        (ForkName::Cancun, &|it| it[2] = "0x12".into(), "parentBeaconBlockRoot"),
    ] {
        let detail = refused(name, change);
        assert!(detail.contains(why), "{detail}\nand not: {why}");
    }
}

/// Nodes are asked by the method of the fork; the codecs that only Amsterdam has are refused for other blocks.
#[test]
fn blocks_of_all_forks_are_fetched() {
    let world = World::new();
    for (name, fork, _) in FORKS {
        let block = of_fork(name);
        let node = world.node(StandIn::new(block.clone()));
        let fetch = |codec: Option<Codec>| {
            let (_, address) = world.service(|service| {
                service.node = Some(Node::new(&node, None, false, 1 << 20));
                service.codec = codec;
            });
            post(&format!("{address}/v1/fetch"), JSON, &block.parameters.encode())
        };
        // The node answers only the method of the fork.
        let version = match name {
            ForkName::Shanghai => "V2",
            ForkName::Cancun => "V3",
            ForkName::Prague | ForkName::Osaka => "V4",
            ForkName::Amsterdam => "V5",
        };
        for method in ["V2", "V3", "V4", "V5"] {
            let call = rpc::call(&format!("engine_newPayload{method}"), &block);
            let answer: Value = serde_json::from_slice(&post(&node, JSON, &call).1).unwrap();
            let expected = if method == version { Value::Null } else { (-38_005).into() };
            assert_eq!(answer["error"]["code"], expected, "{answer}");
        }
        assert_eq!(record(&fetch(None)).number, 7);
        assert_eq!(record(&fetch(Some(Codec::Json))).number, 7);
        for codec in [Codec::Apis773, Codec::Apis793] {
            match name {
                ForkName::Amsterdam => assert_eq!(record(&fetch(Some(codec))).number, 7),
                _ => {
                    let refused = problem(fetch(Some(codec)));
                    let kind = "/engine-api/errors/unsupported-fork";
                    assert_eq!((refused.status, &refused.kind[..]), (400, kind));
                    assert!(refused.detail.contains(&format!("one of {fork}: use --codec json")));
                }
            }
        }
    }
}
