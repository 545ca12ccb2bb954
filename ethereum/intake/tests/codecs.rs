//! The codecs against two libraries of SSZ: each reads what the others write, and refuses what they refuse.

use hekaton_intake::codec::{Answer, Status, Witness, a, b};
use hekaton_intake::stand_in::Block;
use hekaton_intake::{Items, Push};
use libssz::{SszDecode as _, SszEncode as _};
use libssz_types::{SszList, SszVector};
use proptest::prelude::*;

type Bytes = Vec<u8>;

/// The witness as `ethereum_ssz` has it, without limits.
#[derive(Clone, Debug, PartialEq, Eq, ssz_derive::Encode, ssz_derive::Decode)]
struct EthWitness {
    state: Vec<Bytes>,
    codes: Vec<Bytes>,
    headers: Vec<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, ssz_derive::Encode, ssz_derive::Decode)]
struct EthStatus {
    status: u8,
    latest_valid_hash: Vec<[u8; 32]>,
    validation_error: Vec<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, ssz_derive::Encode, ssz_derive::Decode)]
struct EthKey {
    parity: u8,
    x: [u8; 32],
    y: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, Eq, ssz_derive::Encode, ssz_derive::Decode)]
struct EthB {
    payload_status: EthStatus,
    witness: Vec<EthWitness>,
    public_keys: Vec<EthKey>,
}

type LibItems = SszList<SszList<u8, { 1 << 20 }>, { 1 << 20 }>;

/// The witness as `libssz` has it, with the limits.
#[derive(Clone, Debug, PartialEq, Eq, libssz_derive::SszEncode, libssz_derive::SszDecode)]
struct LibWitness {
    state: LibItems,
    codes: LibItems,
    headers: LibItems,
}

#[derive(Clone, Debug, PartialEq, Eq, libssz_derive::SszEncode, libssz_derive::SszDecode)]
struct LibStatus {
    status: u8,
    latest_valid_hash: SszList<SszVector<u8, 32>, 1>,
    validation_error: SszList<SszList<u8, 1024>, 1>,
}

#[derive(Clone, Debug, PartialEq, Eq, libssz_derive::SszEncode, libssz_derive::SszDecode)]
struct LibB {
    payload_status: LibStatus,
    witness: SszList<LibWitness, 1>,
    public_keys: SszList<SszVector<u8, 65>, { 1 << 20 }>,
}

fn items(items: &Items<'_>) -> Vec<Bytes> {
    items.iter().map(<[u8]>::to_vec).collect()
}

fn valid(block: &Block) -> Answer<'_> {
    Answer {
        status: Status::Valid,
        latest_valid_hash: Some([7; 32]),
        validation_error: None,
        witness: Some(Witness::decode(&block.witness).unwrap()),
        public_keys: &block.public_keys,
    }
}

#[test]
fn what_is_written_is_what_others_read() {
    let block = Block::new(1, 2, 20_000);
    let witness = Witness::decode(&block.witness).unwrap();
    assert_eq!(witness.encode(), block.witness);
    let eth: EthWitness = ssz::Decode::from_ssz_bytes(&block.witness).unwrap();
    let ours = [&witness.state, &witness.codes, &witness.headers].map(items);
    assert_eq!(ours, [eth.state.clone(), eth.codes.clone(), eth.headers.clone()]);
    assert_eq!(ssz::Encode::as_ssz_bytes(&eth), block.witness);
    let lib = LibWitness::from_ssz_bytes(&block.witness).unwrap();
    assert_eq!(lib.to_ssz(), block.witness);

    let answer = valid(&block);
    let encoded = b::encode(&answer);
    assert_eq!(b::decode(&encoded).unwrap(), answer);
    let eth: EthB = ssz::Decode::from_ssz_bytes(&encoded).unwrap();
    assert_eq!((eth.witness.len(), eth.public_keys.len()), (1, 3));
    assert_eq!(ssz::Encode::as_ssz_bytes(&eth), encoded);
    assert_eq!(LibB::from_ssz_bytes(&encoded).unwrap().to_ssz(), encoded);

    // Codec A has no keys.
    let answer = Answer { public_keys: &[], ..answer };
    let encoded = a::encode(&answer);
    assert_eq!(a::decode(&encoded).unwrap(), answer);
    // 13 bytes of fixed parts, 33 of a hash, 1 of nothing, and the witness.
    assert_eq!(encoded.len(), 13 + 33 + 1 + block.witness.len());
    assert_eq!(encoded[..17], [0, 13, 0, 0, 0, 46, 0, 0, 0, 47, 0, 0, 0, 1, 7, 7, 7]);

    let body = block.push();
    let push = Push::decode(&body).unwrap();
    assert_eq!((push.encode(), push.envelope), (body, block.parameters.envelope.clone()));
}

#[test]
fn other_answers_have_no_witness() {
    let block = Block::new(1, 2, 1_000);
    for status in [Status::Invalid, Status::Syncing, Status::Accepted] {
        let says = Answer {
            status,
            latest_valid_hash: None,
            validation_error: Some("no"),
            witness: None,
            public_keys: &[],
        };
        assert_eq!(a::decode(&a::encode(&says)).unwrap(), says);
        assert_eq!(b::decode(&b::encode(&says)).unwrap(), says);
        // Fields are left out where they do not belong.
        let both = Answer {
            status,
            validation_error: Some("no"),
            latest_valid_hash: None,
            ..valid(&block)
        };
        assert_eq!(a::encode(&both), a::encode(&says));
        assert_eq!(b::encode(&both), b::encode(&says));
    }
    // Such fields are refused if they are sent anyway.
    for encode in [a::encode, b::encode] {
        let mut encoded = encode(&valid(&block));
        let status = if encoded[0] == 0 { 0 } else { 12 };
        encoded[status] = 1;
        let refused = [a::decode(&encoded), b::decode(&encoded)];
        let found = refused.iter().any(|it| {
            it.as_ref().is_err_and(|error| error.why.contains("INVALID, and there is a witness"))
        });
        assert!(found, "{refused:?}");
    }
    let none = Answer { witness: None, public_keys: &[], ..valid(&block) };
    assert!(a::decode(&a::encode(&none)).unwrap().witness.is_none(), "codec A allows that");
    let refused = b::decode(&b::encode(&none)).unwrap_err();
    assert!(refused.why.contains("VALID, and there is no witness"), "{refused}");
}

#[test]
fn errors_are_cut_between_characters() {
    let long = "\u{e9}".repeat(10_000);
    let says = Answer {
        status: Status::Invalid,
        latest_valid_hash: None,
        validation_error: Some(&long),
        witness: None,
        public_keys: &[],
    };
    let encoded = a::encode(&says);
    assert_eq!(a::decode(&encoded).unwrap().validation_error.unwrap().len(), 8_192);
    let encoded = b::encode(&says);
    assert_eq!(b::decode(&encoded).unwrap().validation_error.unwrap().len(), 1_024);
    // An odd limit would split the last one.
    let odd = format!("x{long}");
    let encoded = b::encode(&Answer { validation_error: Some(&odd), ..says.clone() });
    assert_eq!(b::decode(&encoded).unwrap().validation_error.unwrap().len(), 1_023);
    // INVALID_BLOCK_HASH is only known to A.
    let says = Answer { status: Status::InvalidBlockHash, validation_error: None, ..says };
    assert_eq!(a::decode(&a::encode(&says)).unwrap().status, Status::InvalidBlockHash);
    assert_eq!(b::decode(&b::encode(&says)).unwrap().status, Status::Invalid);
    let mut four = b::encode(&says);
    four[12] = 4;
    assert!(b::decode(&four).unwrap_err().why.contains("status 4 is not 0 to 3"));
    let mut five = a::encode(&says);
    five[0] = 5;
    assert!(a::decode(&five).unwrap_err().why.contains("status 5 is not 0 to 4"));
}

/// An encoding with a single fault, and the error that it causes.
#[test]
fn wrong_offsets_are_refused() {
    // state: one node of 2 bytes; codes: none; headers: two of 1 byte each.
    let good = [
        12u32, 18, 18, // The parts.
        4,  // The node, whose bytes follow.
    ];
    let mut bytes: Bytes = good.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    bytes.extend([0xaa, 0xbb]);
    bytes.extend([8u32, 9].iter().flat_map(|offset| offset.to_le_bytes()));
    bytes.extend([1, 2]);
    let witness = Witness::decode(&bytes).unwrap();
    assert_eq!((witness.state.len(), witness.codes.len(), witness.headers.len()), (1, 0, 2));
    let with = |at: usize, offset: u32| {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&offset.to_le_bytes());
        changed
    };
    for (wrong, why) in [
        (with(0, 13), "the first offset is 13 and must be 12"),
        (with(0, 11), "the first offset is 11 and must be 12"),
        (with(4, 11), "the offset 11 is before 12"),
        (with(8, 17), "the offset 17 is before 18"),
        (with(8, 1_000), "behind the end at 28"),
        (with(8, u32::MAX), "behind the end"),
        (with(12, 0), "not that of a list"),
        (with(12, 3), "not that of a list"),
        (with(12, 8), "behind the end at 6"),
        (with(22, 7), "the offset 7 is before 8"),
        (with(22, 11), "behind the end at 10"),
        (bytes[..11].to_vec(), "at least 12 are needed"),
        (bytes[..17].to_vec(), "behind the end at 17"),
        (vec![], "at least 12 are needed"),
    ] {
        let refused = Witness::decode(&wrong).unwrap_err();
        assert!(refused.why.contains(why), "{refused}\nand not: {why}");
        // The rivals agree.
        assert!(<EthWitness as ssz::Decode>::from_ssz_bytes(&wrong).is_err(), "{why}");
        assert!(LibWitness::from_ssz_bytes(&wrong).is_err(), "{why}");
    }
    // 4 GB announced by four bytes.
    let refused = Witness::decode(&with(12, u32::MAX - 3)).unwrap_err();
    assert!(refused.why.contains("behind the end"), "{refused}");
}

#[test]
fn limits_are_those_of_the_types() {
    let witness = |state: Vec<Bytes>| {
        ssz::Encode::as_ssz_bytes(&EthWitness { state, codes: vec![], headers: vec![] })
    };
    Witness::decode(&witness(vec![vec![0; 1 << 20]])).unwrap();
    let refused = Witness::decode(&witness(vec![vec![0; (1 << 20) + 1]])).unwrap_err();
    assert!(refused.why.contains("has 1048577 bytes, and 1048576 are allowed"), "{refused}");
    Witness::decode(&witness(vec![vec![]; 1 << 20])).unwrap();
    let refused = Witness::decode(&witness(vec![vec![]; (1 << 20) + 1])).unwrap_err();
    assert!(refused.why.contains("has 1048577 items"), "{refused}");
}

#[test]
fn one_codec_is_not_the_other() {
    let block = Block::new(3, 2, 2_000);
    assert!(b::decode(&a::encode(&valid(&block))).is_err());
    assert!(a::decode(&b::encode(&valid(&block))).is_err());
    assert!(Push::decode(&block.witness).is_err());
}

/// Checks that all three libraries refuse or accept some bytes, and read the same.
fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let ours = Witness::decode(bytes);
    let eth = <EthWitness as ssz::Decode>::from_ssz_bytes(bytes);
    let lib = LibWitness::from_ssz_bytes(bytes);
    prop_assert_eq!(ours.is_ok(), eth.is_ok(), "{:?} {:?}", ours, eth);
    prop_assert_eq!(ours.is_ok(), lib.is_ok(), "{:?} {:?}", ours, lib);
    if let (Ok(ours), Ok(eth)) = (&ours, eth) {
        prop_assert_eq!(items(&ours.state), eth.state);
        prop_assert_eq!(items(&ours.codes), eth.codes);
        prop_assert_eq!(items(&ours.headers), eth.headers);
        prop_assert_eq!(ours.encode(), bytes, "there is one encoding");
    }
    let (ours, lib) = (b::decode(bytes), LibB::from_ssz_bytes(bytes));
    // In addition to SSZ, ours checks that fields that belong together come together.
    prop_assert!(ours.is_err() || lib.is_ok(), "{:?} {:?}", ours, lib);
    let _ = (a::decode(bytes), Push::decode(bytes));
    Ok(())
}

/// Witnesses with a few small items.
fn small() -> impl Strategy<Value = Bytes> {
    let items = || prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..4);
    (items(), items(), items()).prop_map(|(state, codes, headers)| {
        ssz::Encode::as_ssz_bytes(&EthWitness { state, codes, headers })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn all_agree_on_changed_bytes(
        mut bytes in small(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0u8..20), 0..4),
        cut in 0usize..6,
    ) {
        agree(&bytes)?;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut);
        agree(&bytes)?;
    }

    #[test]
    fn all_agree_on_noise(bytes in prop::collection::vec(0u8..32, 0..64)) {
        agree(&bytes)?;
    }
}
