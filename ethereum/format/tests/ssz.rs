//! Witnesses against two libraries of SSZ: each reads what the others write, and refuses what they refuse.

use hekaton_witness_format::ssz::Items;
use hekaton_witness_format::{EncodedWitness, ExecutionWitness, Push, encode_witness};
use libssz::{SszDecode as _, SszEncode as _};
use libssz_types::SszList;
use proptest::prelude::*;

type Bytes = Vec<u8>;

/// The witness as `ethereum_ssz` has it, without limits.
#[derive(Clone, Debug, PartialEq, Eq, ssz_derive::Encode, ssz_derive::Decode)]
struct EthWitness {
    state: Vec<Bytes>,
    codes: Vec<Bytes>,
    headers: Vec<Bytes>,
}

type LibItems = SszList<SszList<u8, { 1 << 20 }>, { 1 << 20 }>;

/// The witness as `libssz` has it, with the limits.
#[derive(Clone, Debug, PartialEq, Eq, libssz_derive::SszEncode, libssz_derive::SszDecode)]
struct LibWitness {
    state: LibItems,
    codes: LibItems,
    headers: LibItems,
}

fn items(items: &Items<'_>) -> Vec<Bytes> {
    items.iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn what_is_written_is_what_others_read() {
    let items = |seed: u8| -> Vec<Bytes> {
        (0..seed).map(|at| vec![seed ^ at; 50 * usize::from(at)]).collect()
    };
    let ours = [items(40), items(3), items(2)];
    let [state, codes, headers] = ours.each_ref().map(|items| items.iter().map(Vec::as_slice));
    let encoded = encode_witness(state, codes, headers).unwrap();
    let [state, codes, headers] = ours;
    let eth = EthWitness { state, codes, headers };
    assert_eq!(ssz::Encode::as_ssz_bytes(&eth), encoded);
    assert_eq!(<EthWitness as ssz::Decode>::from_ssz_bytes(&encoded).unwrap(), eth);
    assert_eq!(LibWitness::from_ssz_bytes(&encoded).unwrap().to_ssz(), encoded);
    let witness = ExecutionWitness::decode(&encoded).unwrap();
    assert_eq!((witness.encode(), witness.encoded_len()), (encoded.clone(), encoded.len()));
    assert_eq!(EncodedWitness::new(encoded.clone()).unwrap().witness(), witness);
    assert_eq!(witness.state.get(39), Some(&[40 ^ 39; 50 * 39][..]));
    assert_eq!((witness.state.get(40), witness.codes.total()), (None, 150));
    assert!(EncodedWitness::new(encoded[..20].to_vec()).is_err());
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
    let witness = ExecutionWitness::decode(&bytes).unwrap();
    assert_eq!((witness.state.len(), witness.codes.len(), witness.headers.len()), (1, 0, 2));
    let with = |at: usize, offset: u32| {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&offset.to_le_bytes());
        changed
    };
    for (wrong, why) in [
        (with(0, 13), "first offset 13, expected 12"),
        (with(0, 11), "first offset 11, expected 12"),
        (with(4, 11), "offset 11 is below the previous one, 12"),
        (with(8, 17), "offset 17 is below the previous one, 18"),
        (with(8, 1_000), "beyond the end at 28"),
        (with(8, u32::MAX), "beyond the end"),
        (with(12, 0), "expected a positive multiple of 4"),
        (with(12, 3), "expected a positive multiple of 4"),
        (with(12, 8), "beyond the end at 6"),
        (with(22, 7), "offset 7 is below the previous one, 8"),
        (with(22, 11), "beyond the end at 10"),
        (bytes[..11].to_vec(), "expected 12 or more"),
        (bytes[..17].to_vec(), "beyond the end at 17"),
        (vec![], "expected 12 or more"),
    ] {
        let refused = ExecutionWitness::decode(&wrong).unwrap_err();
        assert!(refused.why.contains(why), "{refused}\nand not: {why}");
        // The rivals agree.
        assert!(<EthWitness as ssz::Decode>::from_ssz_bytes(&wrong).is_err(), "{why}");
        assert!(LibWitness::from_ssz_bytes(&wrong).is_err(), "{why}");
    }
    // 4 GB announced by four bytes.
    let refused = ExecutionWitness::decode(&with(12, u32::MAX - 3)).unwrap_err();
    assert!(refused.why.contains("beyond the end"), "{refused}");
}

#[test]
fn limits_are_those_of_the_types() {
    let witness = |state: Vec<Bytes>| {
        ssz::Encode::as_ssz_bytes(&EthWitness { state, codes: vec![], headers: vec![] })
    };
    ExecutionWitness::decode(&witness(vec![vec![0; 1 << 20]])).unwrap();
    let refused = ExecutionWitness::decode(&witness(vec![vec![0; (1 << 20) + 1]])).unwrap_err();
    assert!(refused.why.contains("has 1048577 bytes, expected at most 1048576"), "{refused}");
    ExecutionWitness::decode(&witness(vec![vec![]; 1 << 20])).unwrap();
    let refused = ExecutionWitness::decode(&witness(vec![vec![]; (1 << 20) + 1])).unwrap_err();
    assert!(refused.why.contains("1048577 items, expected at most 1048576"), "{refused}");
}

/// Checks that all three libraries refuse or accept some bytes, and read the same.
fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let ours = ExecutionWitness::decode(bytes);
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
    let _ = Push::decode(bytes);
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
