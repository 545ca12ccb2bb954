//! The codecs against two libraries of SSZ: each reads what the others write, and refuses what they refuse.

use hekaton_intake::codec::rlp::{witness_from_rlp, witness_to_rlp};
use hekaton_intake::codec::{Answer, Status, apis773, apis793};
use hekaton_intake::stand_in::Block;
use hekaton_witness_format::ssz::Items;
use hekaton_witness_format::{ExecutionWitness, Push, encode_witness};
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
struct EthAnswer {
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
struct LibAnswer {
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
        witness: Some(ExecutionWitness::decode(&block.witness).unwrap()),
        public_keys: &block.public_keys,
    }
}

#[test]
fn what_is_written_is_what_others_read() {
    let block = Block::new(1, 2, 20_000);
    let witness = ExecutionWitness::decode(&block.witness).unwrap();
    assert_eq!(witness.encode(), block.witness);
    let eth: EthWitness = ssz::Decode::from_ssz_bytes(&block.witness).unwrap();
    let ours = [&witness.state, &witness.codes, &witness.headers].map(items);
    assert_eq!(ours, [eth.state.clone(), eth.codes.clone(), eth.headers.clone()]);
    assert_eq!(ssz::Encode::as_ssz_bytes(&eth), block.witness);
    let lib = LibWitness::from_ssz_bytes(&block.witness).unwrap();
    assert_eq!(lib.to_ssz(), block.witness);

    let answer = valid(&block);
    let encoded = apis793::encode(&answer);
    assert_eq!(apis793::decode(&encoded).unwrap(), answer);
    let eth: EthAnswer = ssz::Decode::from_ssz_bytes(&encoded).unwrap();
    assert_eq!((eth.witness.len(), eth.public_keys.len()), (1, 3));
    assert_eq!(ssz::Encode::as_ssz_bytes(&eth), encoded);
    assert_eq!(LibAnswer::from_ssz_bytes(&encoded).unwrap().to_ssz(), encoded);

    // The answers of 773 have no keys.
    let answer = Answer { public_keys: &[], ..answer };
    let encoded = apis773::encode(&answer);
    assert_eq!(apis773::decode(&encoded).unwrap(), answer);
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
        assert_eq!(apis773::decode(&apis773::encode(&says)).unwrap(), says);
        assert_eq!(apis793::decode(&apis793::encode(&says)).unwrap(), says);
        // Fields are left out where they do not belong.
        let both = Answer {
            status,
            validation_error: Some("no"),
            latest_valid_hash: None,
            ..valid(&block)
        };
        assert_eq!(apis773::encode(&both), apis773::encode(&says));
        assert_eq!(apis793::encode(&both), apis793::encode(&says));
    }
    // Such fields are refused if they are sent anyway.
    for encode in [apis773::encode, apis793::encode] {
        let mut encoded = encode(&valid(&block));
        let status = if encoded[0] == 0 { 0 } else { 12 };
        encoded[status] = 1;
        let refused = [apis773::decode(&encoded), apis793::decode(&encoded)];
        let found = refused.iter().any(|it| {
            it.as_ref().is_err_and(|error| error.why.contains("a witness with status INVALID"))
        });
        assert!(found, "{refused:?}");
    }
    let none = Answer { witness: None, public_keys: &[], ..valid(&block) };
    assert!(apis773::decode(&apis773::encode(&none)).unwrap().witness.is_none(), "773 allows that");
    let refused = apis793::decode(&apis793::encode(&none)).unwrap_err();
    assert!(refused.why.contains("no witness with status VALID"), "{refused}");
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
    let encoded = apis773::encode(&says);
    assert_eq!(apis773::decode(&encoded).unwrap().validation_error.unwrap().len(), 8_192);
    let encoded = apis793::encode(&says);
    assert_eq!(apis793::decode(&encoded).unwrap().validation_error.unwrap().len(), 1_024);
    // An odd limit would split the last one.
    let odd = format!("x{long}");
    let encoded = apis793::encode(&Answer { validation_error: Some(&odd), ..says.clone() });
    assert_eq!(apis793::decode(&encoded).unwrap().validation_error.unwrap().len(), 1_023);
    // INVALID_BLOCK_HASH is only known to 773.
    let says = Answer { status: Status::InvalidBlockHash, validation_error: None, ..says };
    assert_eq!(apis773::decode(&apis773::encode(&says)).unwrap().status, Status::InvalidBlockHash);
    assert_eq!(apis793::decode(&apis793::encode(&says)).unwrap().status, Status::Invalid);
    let mut four = apis793::encode(&says);
    four[12] = 4;
    assert!(apis793::decode(&four).unwrap_err().why.contains("status 4, expected 0 to 3"));
    let mut five = apis773::encode(&says);
    five[0] = 5;
    assert!(apis773::decode(&five).unwrap_err().why.contains("status 5, expected 0 to 4"));
}

#[test]
fn one_codec_is_not_the_other() {
    let block = Block::new(3, 2, 2_000);
    assert!(apis793::decode(&apis773::encode(&valid(&block))).is_err());
    assert!(apis773::decode(&apis793::encode(&valid(&block))).is_err());
    assert!(Push::decode(&block.witness).is_err());
}

/// Checks that another library accepts all answers that are accepted here, and that no bytes make either codec panic.
fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (ours, lib) = (apis793::decode(bytes), LibAnswer::from_ssz_bytes(bytes));
    // In addition to SSZ, ours checks that fields that belong together come together.
    prop_assert!(ours.is_err() || lib.is_ok(), "{:?} {:?}", ours, lib);
    let _ = (apis773::decode(bytes), Push::decode(bytes));
    Ok(())
}

/// Answers with a witness of a few small items.
fn small() -> impl Strategy<Value = Bytes> {
    let items = || prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..4);
    (items(), items(), items(), 0..3usize).prop_map(|(state, codes, headers, keys)| {
        let status =
            EthStatus { status: 0, latest_valid_hash: vec![[7; 32]], validation_error: vec![] };
        let key = EthKey { parity: 4, x: [1; 32], y: [2; 32] };
        ssz::Encode::as_ssz_bytes(&EthAnswer {
            payload_status: status,
            witness: vec![EthWitness { state, codes, headers }],
            public_keys: vec![key; keys],
        })
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
    fn no_bytes_make_the_reader_of_rlp_panic(
        bytes in small(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in 0usize..3,
    ) {
        let answer = apis793::decode(&bytes).unwrap();
        // Headers are lists, so the synthetic ones are left out.
        let witness = answer.witness.unwrap();
        let [state, codes] = [witness.state, witness.codes].map(|items| items.iter());
        let none: Vec<&[u8]> = vec![];
        let (state, codes): (Vec<_>, Vec<_>) = (state.collect(), codes.collect());
        let [state, codes, none] = [&state, &codes, &none].map(|items| items.iter().copied());
        let encoded = encode_witness(state, codes, none).unwrap();
        let mut in_rlp = witness_to_rlp(&ExecutionWitness::decode(&encoded).unwrap());
        prop_assert_eq!(witness_from_rlp(&in_rlp).unwrap(), encoded);
        for (at, byte) in changes {
            let at = at.index(in_rlp.len());
            in_rlp[at] = byte;
        }
        in_rlp.truncate(in_rlp.len() - cut);
        let _ = witness_from_rlp(&in_rlp);
    }

    #[test]
    fn all_agree_on_noise(bytes in prop::collection::vec(0u8..32, 0..64)) {
        agree(&bytes)?;
    }
}
