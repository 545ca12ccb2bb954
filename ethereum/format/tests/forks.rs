//! Envelopes of each fork against another library of SSZ, and the faults by which a fork could be mistaken for another.

use hekaton_witness_format::{Amsterdam, Cancun, Envelope, Fork, Payload, Withdrawal};
use ssz::Decode as _;

type Bytes = Vec<u8>;

#[derive(Clone, Debug, PartialEq, ssz_derive::Encode, ssz_derive::Decode)]
struct EthWithdrawal {
    index: u64,
    validator_index: u64,
    address: [u8; 20],
    amount: u64,
}

/// Defines a payload that has the fields of Shanghai, and those that later forks have added.
macro_rules! payload {
    ($name:ident { $($field:ident: $type:ty),* }) => {
        #[derive(Clone, Debug, PartialEq, ssz_derive::Encode, ssz_derive::Decode)]
        struct $name {
            parent_hash: [u8; 32],
            fee_recipient: [u8; 20],
            state_root: [u8; 32],
            receipts_root: [u8; 32],
            logs_bloom: [u8; 256],
            prev_randao: [u8; 32],
            block_number: u64,
            gas_limit: u64,
            gas_used: u64,
            timestamp: u64,
            extra_data: Bytes,
            base_fee_per_gas: [u8; 32],
            block_hash: [u8; 32],
            transactions: Vec<Bytes>,
            withdrawals: Vec<EthWithdrawal>,
            $($field: $type),*
        }
    };
}

payload!(EthShanghai {});
payload!(EthCancun { blob_gas_used: u64, excess_blob_gas: u64 });
payload!(EthAmsterdam {
    blob_gas_used: u64,
    excess_blob_gas: u64,
    block_access_list: Bytes,
    slot_number: u64
});

#[derive(Clone, Debug, PartialEq, ssz_derive::Encode, ssz_derive::Decode)]
struct OfShanghai {
    payload: EthShanghai,
}

#[derive(Clone, Debug, PartialEq, ssz_derive::Encode, ssz_derive::Decode)]
struct OfCancun {
    payload: EthCancun,
    parent_beacon_block_root: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, ssz_derive::Encode, ssz_derive::Decode)]
struct OfPrague {
    payload: EthCancun,
    parent_beacon_block_root: [u8; 32],
    execution_requests: Vec<Bytes>,
}

#[derive(Clone, Debug, PartialEq, ssz_derive::Encode, ssz_derive::Decode)]
struct OfAmsterdam {
    payload: EthAmsterdam,
    parent_beacon_block_root: [u8; 32],
    execution_requests: Vec<Bytes>,
}

fn envelope(fork: Fork) -> Envelope {
    let withdrawal = Withdrawal { index: 1, validator_index: 2, address: [3; 20], amount: 4 };
    let payload = Payload {
        parent_hash: [1; 32],
        fee_recipient: [2; 20],
        state_root: [3; 32],
        receipts_root: [4; 32],
        logs_bloom: Box::new([5; 256]),
        prev_randao: [6; 32],
        block_number: 7,
        gas_limit: 8,
        gas_used: 9,
        timestamp: 10,
        extra_data: vec![11; 5],
        base_fee_per_gas: [12; 32],
        block_hash: [13; 32],
        transactions: vec![vec![2, 1], vec![3; 70]],
        withdrawals: vec![withdrawal; 2],
    };
    Envelope { payload, fork }
}

/// One envelope for each fork.
fn envelopes() -> [Envelope; 4] {
    let cancun =
        Cancun { blob_gas_used: 21, excess_blob_gas: 22, parent_beacon_block_root: [23; 32] };
    let amsterdam = Amsterdam { block_access_list: vec![24; 9], slot_number: 25 };
    let requests = vec![vec![0, 1], vec![1, 2, 3]];
    [
        Fork::Shanghai,
        Fork::Cancun(cancun),
        Fork::Prague(cancun, requests.clone()),
        Fork::Amsterdam(cancun, requests, amsterdam),
    ]
    .map(envelope)
}

/// Checks that another library reads an envelope, and writes the same.
fn same<T: ssz::Encode + ssz::Decode>(envelope: &Envelope) -> T {
    let encoded = envelope.encode();
    assert_eq!(envelope.encoded_len(), encoded.len());
    let found = T::from_ssz_bytes(&encoded).unwrap();
    assert_eq!(found.as_ssz_bytes(), encoded);
    assert_eq!(Envelope::decode(&encoded).as_ref(), Ok(envelope));
    found
}

#[test]
fn what_is_written_is_what_others_read() {
    let [shanghai, cancun, prague, amsterdam] = envelopes();
    let found: OfShanghai = same(&shanghai);
    assert_eq!((found.payload.withdrawals.len(), found.payload.withdrawals[1].amount), (2, 4));
    let found: OfCancun = same(&cancun);
    assert_eq!((found.payload.blob_gas_used, found.payload.excess_blob_gas), (21, 22));
    assert_eq!(found.parent_beacon_block_root, [23; 32]);
    let found: OfPrague = same(&prague);
    assert_eq!(found.execution_requests, [vec![0, 1], vec![1, 2, 3]]);
    let found: OfAmsterdam = same(&amsterdam);
    assert_eq!((found.payload.block_access_list, found.payload.slot_number), (vec![24; 9], 25));
}

/// No container is that of two forks, and lengths that belong to none are refused.
#[test]
fn forks_are_not_mistaken() {
    let encoded = envelopes().map(|envelope| envelope.encode());
    let readers: [fn(&[u8]) -> bool; 4] = [
        |bytes| OfShanghai::from_ssz_bytes(bytes).is_ok(),
        |bytes| OfCancun::from_ssz_bytes(bytes).is_ok(),
        |bytes| OfPrague::from_ssz_bytes(bytes).is_ok(),
        |bytes| OfAmsterdam::from_ssz_bytes(bytes).is_ok(),
    ];
    for (at, bytes) in encoded.iter().enumerate() {
        assert_eq!(readers.map(|reads| reads(bytes)), std::array::from_fn(|other| other == at));
    }
    let with = |fork: usize, at: usize, offset: u32| {
        let mut changed = encoded[fork].clone();
        changed[at..at + 4].copy_from_slice(&offset.to_le_bytes());
        Envelope::decode(&changed).unwrap_err().why
    };
    let payload = |fork: usize| u32::from_le_bytes(*encoded[fork].first_chunk().unwrap()) as usize;
    for (found, why) in [
        (with(0, 0, 5), "first offset 5, expected 4 (Shanghai), 36 (Cancun) or 40 (later forks)"),
        (with(1, 0, 4), "first offset"),
        (with(0, 4 + 436, 528), "first offset 528, expected 512"),
        (with(1, payload(1) + 436, 512), "first offset 512, expected 528"),
        (
            with(2, payload(2) + 436, 512),
            "first offset 512, expected 528 (Prague and Osaka) or 540 (Amsterdam)",
        ),
        (with(3, payload(3) + 436, 528), "expected a multiple of 44"),
        (Envelope::decode(&[4, 0, 0]).unwrap_err().why, "ends within an offset"),
        (Envelope::decode(&encoded[2][..60]).unwrap_err().why, ""),
    ] {
        assert!(found.contains(why), "{found}\nand not: {why}");
    }
}
