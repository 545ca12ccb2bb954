//! The header of a block, from which its hash is computed, and the hashes of its blobs.

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::proofs::calculate_withdrawals_root;
use alloy_consensus::{TxEip4844, TxEip4844Variant, TxEnvelope};
use alloy_eips::eip2718::Decodable2718;
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{B64, B256, Bytes, U256, keccak256};
use hekaton_witness_format::{Envelope, Payload};

/// Returns the header of a block, with the fields of its fork; `None` if the price of gas has more than 64 bits, which no header has.
pub fn header(envelope: &Envelope) -> Option<Header> {
    let Envelope { payload, fork } = envelope;
    let (cancun, amsterdam) = (fork.cancun(), fork.amsterdam());
    let fee = u64::try_from(U256::from_le_bytes(payload.base_fee_per_gas)).ok()?;
    let requests = fork.requests().map(|requests| {
        let requests = requests.iter().map(|request| Bytes::copy_from_slice(request));
        Requests::new(requests.collect()).requests_hash()
    });
    let withdrawals: Vec<Withdrawal> = payload.withdrawals.iter().map(withdrawal).collect();
    Some(Header {
        parent_hash: payload.parent_hash.into(),
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: payload.fee_recipient.into(),
        state_root: payload.state_root.into(),
        transactions_root: alloy_trie::root::ordered_trie_root_encoded(&payload.transactions),
        receipts_root: payload.receipts_root.into(),
        logs_bloom: (*payload.logs_bloom).into(),
        difficulty: U256::ZERO,
        number: payload.block_number,
        gas_limit: payload.gas_limit,
        gas_used: payload.gas_used,
        timestamp: payload.timestamp,
        extra_data: Bytes::copy_from_slice(&payload.extra_data),
        mix_hash: payload.prev_randao.into(),
        nonce: B64::ZERO,
        base_fee_per_gas: Some(fee),
        withdrawals_root: Some(calculate_withdrawals_root(&withdrawals)),
        blob_gas_used: cancun.map(|it| it.blob_gas_used),
        excess_blob_gas: cancun.map(|it| it.excess_blob_gas),
        parent_beacon_block_root: cancun.map(|it| it.parent_beacon_block_root.into()),
        requests_hash: requests,
        block_access_list_hash: amsterdam.map(|it| keccak256(&it.block_access_list)),
        slot_number: amsterdam.map(|it| it.slot_number),
    })
}

fn withdrawal(from: &hekaton_witness_format::Withdrawal) -> Withdrawal {
    let hekaton_witness_format::Withdrawal { index, validator_index, address, amount } = *from;
    Withdrawal { index, validator_index, address: address.into(), amount }
}

/// Returns the hashes of all blobs that a block's transactions carry, in order.
///
/// # Errors
/// The number of the first blob transaction that cannot be read.
pub fn blob_hashes(payload: &Payload) -> Result<Vec<[u8; 32]>, usize> {
    let mut found = Vec::new();
    for (at, transaction) in payload.transactions.iter().enumerate() {
        // Only these have blobs (EIP-4844).
        if transaction.first() != Some(&3) {
            continue;
        }
        let mut rest = transaction.as_slice();
        match TxEnvelope::decode_2718(&mut rest) {
            Ok(TxEnvelope::Eip4844(signed)) if rest.is_empty() => {
                let hashes = match signed.tx() {
                    TxEip4844Variant::TxEip4844(TxEip4844 { blob_versioned_hashes, .. }) => {
                        blob_versioned_hashes
                    }
                    TxEip4844Variant::TxEip4844WithSidecar(_) => return Err(at),
                };
                found.extend(hashes.iter().map(|hash: &B256| hash.0));
            }
            _ => return Err(at),
        }
    }
    Ok(found)
}
