//! The payload of a block of the fork Amsterdam, and the header that its hash is computed from.

use crate::ssz::{Field, OFFSET, Part, SszError, Writer, write_items};
use crate::values::{self as json, JsonError};
use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::proofs::calculate_withdrawals_root;
use alloy_consensus::{TxEip4844, TxEip4844Variant, TxEnvelope};
use alloy_eips::eip2718::Decodable2718;
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7685::Requests;
use alloy_primitives::{B64, B256, Bytes, U256, keccak256};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// `ExecutionPayload` of Amsterdam (refactor-ssz.md), `ExecutionPayloadV4` in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The hash of the parent.
    pub parent_hash: [u8; 32],
    /// The recipient of the fees.
    pub fee_recipient: [u8; 20],
    /// The state root after the block.
    pub state_root: [u8; 32],
    /// The root of its receipts.
    pub receipts_root: [u8; 32],
    /// The Bloom filter of its logs.
    pub logs_bloom: Box<[u8; 256]>,
    /// The randomness of the beacon chain.
    pub prev_randao: [u8; 32],
    /// Its height.
    pub block_number: u64,
    /// The limit of the gas that it may use.
    pub gas_limit: u64,
    /// The gas that it uses.
    pub gas_used: u64,
    /// The time at which it was made, in seconds since 1970.
    pub timestamp: u64,
    /// At most 32 bytes.
    pub extra_data: Vec<u8>,
    /// The price of gas, little-endian.
    pub base_fee_per_gas: [u8; 32],
    /// The hash that it claims to have.
    pub block_hash: [u8; 32],
    /// Its transactions, as EIP-2718 encodes them.
    pub transactions: Vec<Vec<u8>>,
    /// Withdrawals from the beacon chain.
    pub withdrawals: Vec<Withdrawal>,
    /// The gas that its blobs use.
    pub blob_gas_used: u64,
    /// The gas that blobs before it used beyond the target.
    pub excess_blob_gas: u64,
    /// The accounts and slots that it reads and writes, as EIP-7928 encodes them.
    pub block_access_list: Vec<u8>,
    /// The slot of the beacon chain.
    pub slot_number: u64,
}

/// The largest envelope, in bytes.
pub(crate) const MAX_ENVELOPE: usize = 64 << 20;

/// The largest number of transactions in a payload.
pub(crate) const MAX_TRANSACTIONS: usize = 1 << 20;

const MAX_EXTRA: usize = 32;
const MAX_WITHDRAWALS: usize = 16;
const WITHDRAWAL: usize = 44;
/// A transaction or an access list is only limited by the request.
const MAX_BYTES: usize = 1 << 30;
const FIXED: usize =
    32 + 20 + 32 + 32 + 256 + 32 + 4 * 8 + OFFSET + 32 + 32 + 2 * OFFSET + 8 + 8 + OFFSET + 8;

impl Payload {
    pub(crate) fn read(part: Part<'_>) -> Result<Self, SszError> {
        let fields = part.container([
            Field::Fixed("parent_hash", 32),
            Field::Fixed("fee_recipient", 20),
            Field::Fixed("state_root", 32),
            Field::Fixed("receipts_root", 32),
            Field::Fixed("logs_bloom", 256),
            Field::Fixed("prev_randao", 32),
            Field::Fixed("block_number", 8),
            Field::Fixed("gas_limit", 8),
            Field::Fixed("gas_used", 8),
            Field::Fixed("timestamp", 8),
            Field::Variable("extra_data"),
            Field::Fixed("base_fee_per_gas", 32),
            Field::Fixed("block_hash", 32),
            Field::Variable("transactions"),
            Field::Variable("withdrawals"),
            Field::Fixed("blob_gas_used", 8),
            Field::Fixed("excess_blob_gas", 8),
            Field::Variable("block_access_list"),
            Field::Fixed("slot_number", 8),
        ])?;
        let [parent, recipient, state, receipts, bloom, randao, rest @ ..] = fields;
        let [number, limit, used, timestamp, extra, fee, hash, transactions, rest @ ..] = rest;
        let [withdrawals, blob, excess, accesses, slot] = rest;
        let items = transactions.items(MAX_TRANSACTIONS, MAX_BYTES)?;
        if let Some(at) = items.iter().position(<[u8]>::is_empty) {
            return Err(transactions.error(format!("transaction {at} is empty")));
        }
        let elements = withdrawals.elements(WITHDRAWAL, MAX_WITHDRAWALS)?;
        Ok(Self {
            parent_hash: *parent.array()?,
            fee_recipient: *recipient.array()?,
            state_root: *state.array()?,
            receipts_root: *receipts.array()?,
            logs_bloom: Box::new(*bloom.array()?),
            prev_randao: *randao.array()?,
            block_number: number.u64()?,
            gas_limit: limit.u64()?,
            gas_used: used.u64()?,
            timestamp: timestamp.u64()?,
            extra_data: extra.list(MAX_EXTRA)?.to_vec(),
            base_fee_per_gas: *fee.array()?,
            block_hash: *hash.array()?,
            transactions: items.iter().map(<[u8]>::to_vec).collect(),
            withdrawals: elements.chunks_exact(WITHDRAWAL).map(withdrawal).collect(),
            blob_gas_used: blob.u64()?,
            excess_blob_gas: excess.u64()?,
            block_access_list: accesses.list(MAX_BYTES)?.to_vec(),
            slot_number: slot.u64()?,
        })
    }

    pub(crate) fn write(&self, bytes: Vec<u8>) -> Vec<u8> {
        let add = |field: &[u8]| {
            let field = field.to_vec();
            move |mut bytes: Vec<u8>| {
                bytes.extend(field);
                bytes
            }
        };
        let mut withdrawals = Vec::new();
        for withdrawal in &self.withdrawals {
            withdrawals.extend(withdrawal.index.to_le_bytes());
            withdrawals.extend(withdrawal.validator_index.to_le_bytes());
            withdrawals.extend(withdrawal.address);
            withdrawals.extend(withdrawal.amount.to_le_bytes());
        }
        let transactions = self.transactions.iter().map(Vec::as_slice);
        Writer::new(bytes, FIXED)
            .fixed(&self.parent_hash)
            .fixed(&self.fee_recipient)
            .fixed(&self.state_root)
            .fixed(&self.receipts_root)
            .fixed(&self.logs_bloom[..])
            .fixed(&self.prev_randao)
            .fixed(&self.block_number.to_le_bytes())
            .fixed(&self.gas_limit.to_le_bytes())
            .fixed(&self.gas_used.to_le_bytes())
            .fixed(&self.timestamp.to_le_bytes())
            .offset()
            .fixed(&self.base_fee_per_gas)
            .fixed(&self.block_hash)
            .offset()
            .offset()
            .fixed(&self.blob_gas_used.to_le_bytes())
            .fixed(&self.excess_blob_gas.to_le_bytes())
            .offset()
            .fixed(&self.slot_number.to_le_bytes())
            .variable(add(&self.extra_data))
            .variable(|bytes| write_items(bytes, transactions))
            .variable(add(&withdrawals))
            .variable(add(&self.block_access_list))
            .end()
    }

    /// Returns the payload as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let withdrawals: Vec<Value> = self
            .withdrawals
            .iter()
            .map(|it| {
                serde_json::json!({
                    "index": json::hex_number(it.index),
                    "validatorIndex": json::hex_number(it.validator_index),
                    "address": json::hex(it.address.as_slice()),
                    "amount": json::hex_number(it.amount),
                })
            })
            .collect();
        let fee = U256::from_le_bytes(self.base_fee_per_gas);
        let transactions: Vec<String> = self.transactions.iter().map(|it| json::hex(it)).collect();
        serde_json::json!({
            "parentHash": json::hex(&self.parent_hash),
            "feeRecipient": json::hex(&self.fee_recipient),
            "stateRoot": json::hex(&self.state_root),
            "receiptsRoot": json::hex(&self.receipts_root),
            "logsBloom": json::hex(&self.logs_bloom[..]),
            "prevRandao": json::hex(&self.prev_randao),
            "blockNumber": json::hex_number(self.block_number),
            "gasLimit": json::hex_number(self.gas_limit),
            "gasUsed": json::hex_number(self.gas_used),
            "timestamp": json::hex_number(self.timestamp),
            "extraData": json::hex(&self.extra_data),
            "baseFeePerGas": format!("{fee:#x}"),
            "blockHash": json::hex(&self.block_hash),
            "transactions": transactions,
            "withdrawals": withdrawals,
            "blobGasUsed": json::hex_number(self.blob_gas_used),
            "excessBlobGas": json::hex_number(self.excess_blob_gas),
            "blockAccessList": json::hex(&self.block_access_list),
            "slotNumber": json::hex_number(self.slot_number),
        })
    }

    /// Returns the header of the block; `None` if the price of gas has more than 64 bits, which no header has.
    pub fn header(
        &self,
        parent_beacon_block_root: [u8; 32],
        requests: &[Vec<u8>],
    ) -> Option<Header> {
        let fee = u64::try_from(U256::from_le_bytes(self.base_fee_per_gas)).ok()?;
        let requests = requests.iter().map(|request| Bytes::copy_from_slice(request));
        Some(Header {
            parent_hash: self.parent_hash.into(),
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary: self.fee_recipient.into(),
            state_root: self.state_root.into(),
            transactions_root: alloy_trie::root::ordered_trie_root_encoded(&self.transactions),
            receipts_root: self.receipts_root.into(),
            logs_bloom: (*self.logs_bloom).into(),
            difficulty: U256::ZERO,
            number: self.block_number,
            gas_limit: self.gas_limit,
            gas_used: self.gas_used,
            timestamp: self.timestamp,
            extra_data: Bytes::copy_from_slice(&self.extra_data),
            mix_hash: self.prev_randao.into(),
            nonce: B64::ZERO,
            base_fee_per_gas: Some(fee),
            withdrawals_root: Some(calculate_withdrawals_root(&self.withdrawals)),
            blob_gas_used: Some(self.blob_gas_used),
            excess_blob_gas: Some(self.excess_blob_gas),
            parent_beacon_block_root: Some(parent_beacon_block_root.into()),
            requests_hash: Some(Requests::new(requests.collect()).requests_hash()),
            block_access_list_hash: Some(keccak256(&self.block_access_list)),
            slot_number: Some(self.slot_number),
        })
    }

    /// Returns the hashes of all blobs that its transactions carry, in order.
    ///
    /// # Errors
    /// The number of the first blob transaction that cannot be read.
    pub fn blob_hashes(&self) -> Result<Vec<[u8; 32]>, usize> {
        let mut found = Vec::new();
        for (at, transaction) in self.transactions.iter().enumerate() {
            // EIP-4844.
            if transaction.first() != Some(&3) {
                continue;
            }
            let mut rest = transaction.as_slice();
            match TxEnvelope::decode_2718(&mut rest) {
                Ok(TxEnvelope::Eip4844(signed)) if rest.is_empty() => {
                    let hashes = match signed.tx() {
                        TxEip4844Variant::TxEip4844(TxEip4844 {
                            blob_versioned_hashes, ..
                        }) => blob_versioned_hashes,
                        TxEip4844Variant::TxEip4844WithSidecar(_) => return Err(at),
                    };
                    found.extend(hashes.iter().map(|hash: &B256| hash.0));
                }
                _ => return Err(at),
            }
        }
        Ok(found)
    }
}

/// A list of texts.
pub(crate) type Texts<'a> = Vec<Cow<'a, str>>;

/// `ExecutionPayloadV4`: bytes and numbers as text. A field that is not a text where one is required is refused as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JsonPayload<'a> {
    #[serde(borrow)]
    parent_hash: Cow<'a, str>,
    fee_recipient: Cow<'a, str>,
    state_root: Cow<'a, str>,
    receipts_root: Cow<'a, str>,
    logs_bloom: Cow<'a, str>,
    prev_randao: Cow<'a, str>,
    block_number: Cow<'a, str>,
    gas_limit: Cow<'a, str>,
    gas_used: Cow<'a, str>,
    timestamp: Cow<'a, str>,
    extra_data: Cow<'a, str>,
    base_fee_per_gas: Cow<'a, str>,
    block_hash: Cow<'a, str>,
    transactions: Texts<'a>,
    withdrawals: Vec<JsonWithdrawal<'a>>,
    blob_gas_used: Cow<'a, str>,
    excess_blob_gas: Cow<'a, str>,
    block_access_list: Cow<'a, str>,
    slot_number: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonWithdrawal<'a> {
    #[serde(borrow)]
    index: Cow<'a, str>,
    validator_index: Cow<'a, str>,
    address: Cow<'a, str>,
    amount: Cow<'a, str>,
}

impl JsonPayload<'_> {
    pub(crate) fn read(&self) -> Result<Payload, JsonError> {
        let withdrawals = self.withdrawals.iter().map(|it| {
            Ok(Withdrawal {
                index: json::quantity(&it.index, "index")?,
                validator_index: json::quantity(&it.validator_index, "validatorIndex")?,
                address: json::array::<20>(&it.address, "address")?.into(),
                amount: json::quantity(&it.amount, "amount")?,
            })
        });
        let withdrawals: Vec<Withdrawal> = withdrawals.collect::<Result<_, JsonError>>()?;
        let transactions = self.transactions.iter().map(|it| json::bytes(it, "transactions"));
        let transactions: Vec<Vec<u8>> = transactions.collect::<Result<_, _>>()?;
        let extra_data = json::bytes(&self.extra_data, "extraData")?;
        if extra_data.len() > MAX_EXTRA || withdrawals.len() > MAX_WITHDRAWALS {
            return Err(json::wrong("executionPayload", "extraData or withdrawals are too long"));
        }
        if let Some(at) = transactions.iter().position(Vec::is_empty) {
            return Err(json::wrong("transactions", format!("transaction {at} is empty")));
        }
        Ok(Payload {
            parent_hash: json::array(&self.parent_hash, "parentHash")?,
            fee_recipient: json::array(&self.fee_recipient, "feeRecipient")?,
            state_root: json::array(&self.state_root, "stateRoot")?,
            receipts_root: json::array(&self.receipts_root, "receiptsRoot")?,
            logs_bloom: Box::new(json::array(&self.logs_bloom, "logsBloom")?),
            prev_randao: json::array(&self.prev_randao, "prevRandao")?,
            block_number: json::quantity(&self.block_number, "blockNumber")?,
            gas_limit: json::quantity(&self.gas_limit, "gasLimit")?,
            gas_used: json::quantity(&self.gas_used, "gasUsed")?,
            timestamp: json::quantity(&self.timestamp, "timestamp")?,
            extra_data,
            base_fee_per_gas: json::big_quantity(&self.base_fee_per_gas, "baseFeePerGas")?
                .to_le_bytes(),
            block_hash: json::array(&self.block_hash, "blockHash")?,
            transactions,
            withdrawals,
            blob_gas_used: json::quantity(&self.blob_gas_used, "blobGasUsed")?,
            excess_blob_gas: json::quantity(&self.excess_blob_gas, "excessBlobGas")?,
            block_access_list: json::bytes(&self.block_access_list, "blockAccessList")?,
            slot_number: json::quantity(&self.slot_number, "slotNumber")?,
        })
    }
}

fn withdrawal(bytes: &[u8]) -> Withdrawal {
    let number = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight)
    };
    let mut address = [0; 20];
    address.copy_from_slice(&bytes[16..36]);
    Withdrawal {
        index: number(0),
        validator_index: number(8),
        address: address.into(),
        amount: number(36),
    }
}

/// A block with the data that belongs to it: the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The block.
    pub payload: Payload,
    /// The root of the beacon block before it.
    pub parent_beacon_block_root: [u8; 32],
    /// Requests to the beacon chain, each with its type in the first byte.
    pub execution_requests: Vec<Vec<u8>>,
}

/// The largest number of requests in a block: their types are bytes.
const MAX_REQUESTS: usize = 256;

impl Envelope {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// Where it is not one.
    pub fn decode(bytes: &[u8]) -> Result<Self, SszError> {
        Self::read(Part::message(bytes, "ExecutionPayloadEnvelope"))
    }

    pub(crate) fn read(part: Part<'_>) -> Result<Self, SszError> {
        // The payload is copied, unlike witnesses.
        part.list(MAX_ENVELOPE)?;
        let [payload, root, requests] = part.container([
            Field::Variable("payload"),
            Field::Fixed("parent_beacon_block_root", 32),
            Field::Variable("execution_requests"),
        ])?;
        let requests = requests.items(MAX_REQUESTS, MAX_BYTES)?;
        Ok(Self {
            payload: Payload::read(payload)?,
            parent_beacon_block_root: *root.array()?,
            execution_requests: requests.iter().map(<[u8]>::to_vec).collect(),
        })
    }

    /// Encodes the envelope.
    pub fn encode(&self) -> Vec<u8> {
        self.write(Vec::new())
    }

    pub(crate) fn write(&self, bytes: Vec<u8>) -> Vec<u8> {
        let requests = self.execution_requests.iter().map(Vec::as_slice);
        Writer::new(bytes, 32 + 2 * OFFSET)
            .offset()
            .fixed(&self.parent_beacon_block_root)
            .offset()
            .variable(|bytes| self.payload.write(bytes))
            .variable(|bytes| write_items(bytes, requests))
            .end()
    }
}
