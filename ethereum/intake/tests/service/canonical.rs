//! One rule for all sources: the stored witness is in canonical form, whatever came and however.

use super::*;
use hekaton_intake::canonical::LeftOut;
use hekaton_intake::codec::json::{JsonPush, witness_to_json};
use hekaton_witness_format::encode_witness;

/// A block whose witness also has the empty node, the empty code and a code of no account, as nodes send them.
fn with_more(block: &Block) -> Block {
    let witness = ExecutionWitness::decode(&block.witness).unwrap();
    let [mut state, mut codes, headers] =
        [witness.state, witness.codes, witness.headers].map(|it| it.iter().collect::<Vec<_>>());
    state.push(&[0x80]);
    codes.extend([&[][..], &[0x61; 40]]);
    state.sort_unstable();
    codes.sort_unstable();
    let [state, codes, headers] = [&state, &codes, &headers].map(|items| items.iter().copied());
    Block { witness: encode_witness(state, codes, headers).unwrap(), ..block.clone() }
}

fn json_body(block: &Block) -> Vec<u8> {
    let witness = ExecutionWitness::decode(&block.witness).unwrap();
    JsonPush::join(&block.parameters.encode(), &witness_to_json(&witness))
}

#[test]
fn the_same_is_stored_whichever_way_it_comes() {
    let world = World::new();
    let block = Block::new(4, 7, 30_000);
    let sent = with_more(&block);
    let (_, strict) = world.service(|_| {});
    let canonical = record(&post(&format!("{strict}/v1/witness"), OCTETS, &block.push()));
    assert_eq!(canonical.left_out, LeftOut::default());
    let left_out = LeftOut { empty: 2, codes: 1, ..LeftOut::default() };
    let same = |found: &Record| {
        assert_eq!(found.left_out, left_out);
        assert_eq!((&found.witness, found.nodes), (&canonical.witness, canonical.nodes));
    };
    // JSON has no canonical form, so it is never refused for its form.
    same(&record(&post(
        &format!("{}/v1/witness", world.service(|_| {}).1),
        JSON,
        &json_body(&sent),
    )));
    let lenient = Options { lenient: true };
    let (_, address) = world.service_with(lenient, None, |_| {});
    same(&record(&post(&format!("{address}/v1/witness"), OCTETS, &sent.push())));
    let refused = problem(post(&format!("{strict}/v1/witness"), OCTETS, &sent.push()));
    assert_eq!(refused.status, 422);
    assert!(refused.detail.contains("empty node") && refused.detail.contains("--lenient"));
    // From nodes, in each codec.
    let node = world.node(StandIn::new(sent.clone()));
    for codec in [Codec::Apis773, Codec::Apis793, Codec::Json] {
        let fetch = |options: Options| {
            let (_, address) = world.service_with(options, None, |service| {
                service.node = Some(Node::new(&node, None, false, 1 << 20));
                service.codec = Some(codec);
            });
            post(&format!("{address}/v1/fetch"), JSON, &sent.parameters.encode())
        };
        same(&record(&fetch(lenient)));
        match codec {
            Codec::Json => same(&record(&fetch(Options::default()))),
            Codec::Apis773 | Codec::Apis793 => {
                assert_eq!(problem(fetch(Options::default())).status, 422)
            }
        }
    }
    // From answers that go past.
    let (submitter, proxy) = world.service_with(lenient, None, |service| {
        service.node = Some(Node::new(&node, None, false, 1 << 20));
        service.proxy = true;
    });
    let passed = post(&format!("{proxy}{}", apis773::PATH), JSON, &sent.parameters.encode());
    assert_eq!(passed, post(&format!("{node}{}", apis773::PATH), JSON, &sent.parameters.encode()));
    let until = Instant::now() + Duration::from_secs(60);
    let kept = loop {
        if let Some(kept) = submitter.store().record(&canonical.block).unwrap() {
            break kept;
        }
        assert!(Instant::now() < until, "no copy is kept");
        std::thread::sleep(Duration::from_millis(10));
    };
    same(&kept);
}

#[test]
fn what_is_wrong_with_json_is_said() {
    let world = World::new();
    let (submitter, address) = world.service(|_| {});
    let url = format!("{address}/v1/witness");
    let block = Block::new(4, 7, 10_000);
    let good: serde_json::Value = serde_json::from_slice(&json_body(&block)).unwrap();
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut body = good.clone();
        change(&mut body);
        problem(post(&url, JSON, body.to_string().as_bytes()))
    };
    for (refused, status, kind, why) in [
        (
            with(&|it| drop(it.as_object_mut().unwrap().remove("witness"))),
            400,
            "invalid-body",
            "witness",
        ),
        (with(&|it| it["more"] = 1.into()), 400, "invalid-body", "more"),
        (with(&|it| it["parameters"] = "x".into()), 400, "invalid-body", "body"),
        (with(&|it| it["witness"]["state"][0] = "0xzz".into()), 400, "invalid-body", "state"),
        (with(&|it| it["witness"]["headers"][0] = 5.into()), 400, "invalid-body", "headers"),
        (
            with(&|it| it["publicKeys"] = serde_json::json!(["0x04"])),
            400,
            "invalid-body",
            "publicKeys",
        ),
        (
            with(&|it| {
                it["publicKeys"] = serde_json::json!(["0x04".to_owned() + &"00".repeat(64)])
            }),
            422,
            "invalid-body",
            "3 transactions",
        ),
        (
            with(&|it| it["parameters"][0]["blockNumber"] = "0x9".into()),
            422,
            "invalid-body",
            "hash",
        ),
        // The hashes of blobs are compared, as those of `engine_newPayloadV5` are.
        (
            with(&|it| {
                it["parameters"][1] = serde_json::json!(["0x".to_owned() + &"01".repeat(32)])
            }),
            422,
            "invalid-body",
            "blobs",
        ),
        (with(&|it| it["witness"]["state"] = serde_json::json!([])), 422, "invalid-body", "root"),
        (problem(post(&url, JSON, b"{")), 400, "parse-error", "not JSON"),
    ] {
        assert_eq!(
            (refused.status, &refused.kind[..]),
            (status, &format!("/engine-api/errors/{kind}")[..]),
            "{refused:?}"
        );
        assert!(refused.detail.contains(why), "{refused:?}");
    }
    assert_eq!(submitter.store().record(&json_hash(&block)).unwrap(), None);
    let kinds = [("content-type", "application/json; charset=utf-8"), ("content-encoding", "gzip")];
    record(&send("POST", &url, &kinds, &gzip(good.to_string().as_bytes())));
}
