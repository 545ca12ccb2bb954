//! The payload of a block in JSON: `ExecutionPayloadV2` (Shanghai), `V3` (Cancun, Prague and Osaka) and `V4` (Amsterdam).

use crate::values::{self as json, JsonError, Object};
use alloy_primitives::U256;
use hekaton_witness_format::{Amsterdam, Cancun, Envelope, Payload, Withdrawal};
use hekaton_witness_format::{MAX_EXTRA_DATA, MAX_TRANSACTIONS, MAX_WITHDRAWALS};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// Returns the payload of a block as JSON.
pub(crate) fn to_json(Envelope { payload, fork }: &Envelope) -> Value {
    let withdrawals: Vec<Value> = payload
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
    let fee = U256::from_le_bytes(payload.base_fee_per_gas);
    let transactions: Vec<String> = payload.transactions.iter().map(|it| json::hex(it)).collect();
    let mut value = serde_json::json!({
        "parentHash": json::hex(&payload.parent_hash),
        "feeRecipient": json::hex(&payload.fee_recipient),
        "stateRoot": json::hex(&payload.state_root),
        "receiptsRoot": json::hex(&payload.receipts_root),
        "logsBloom": json::hex(&payload.logs_bloom[..]),
        "prevRandao": json::hex(&payload.prev_randao),
        "blockNumber": json::hex_number(payload.block_number),
        "gasLimit": json::hex_number(payload.gas_limit),
        "gasUsed": json::hex_number(payload.gas_used),
        "timestamp": json::hex_number(payload.timestamp),
        "extraData": json::hex(&payload.extra_data),
        "baseFeePerGas": format!("{fee:#x}"),
        "blockHash": json::hex(&payload.block_hash),
        "transactions": transactions,
        "withdrawals": withdrawals,
    });
    if let Some(Cancun { blob_gas_used, excess_blob_gas, .. }) = fork.cancun() {
        value["blobGasUsed"] = json::hex_number(*blob_gas_used).into();
        value["excessBlobGas"] = json::hex_number(*excess_blob_gas).into();
    }
    if let Some(Amsterdam { block_access_list, slot_number }) = fork.amsterdam() {
        value["blockAccessList"] = json::hex(block_access_list).into();
        value["slotNumber"] = json::hex_number(*slot_number).into();
    }
    value
}

/// A list of texts.
pub(crate) type Texts<'a> = Vec<Cow<'a, str>>;

/// A payload of any fork: bytes and numbers as text. A field that is not a text where one is required is refused as it is read.
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
    withdrawals: Vec<Object<JsonWithdrawal<'a>>>,
    // Later forks have added these.
    blob_gas_used: Option<Cow<'a, str>>,
    excess_blob_gas: Option<Cow<'a, str>>,
    block_access_list: Option<Cow<'a, str>>,
    slot_number: Option<Cow<'a, str>>,
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
    /// Returns the fields that forks after Shanghai have added, in their order.
    pub(crate) fn added(&self) -> [Option<&str>; 4] {
        let Self { blob_gas_used, excess_blob_gas, block_access_list, slot_number, .. } = self;
        [blob_gas_used, excess_blob_gas, block_access_list, slot_number].map(Option::as_deref)
    }

    /// Reads the fields that payloads of all forks have.
    pub(crate) fn read(&self) -> Result<Payload, JsonError> {
        let withdrawal = |Object(it): &Object<JsonWithdrawal<'_>>| {
            Ok(Withdrawal {
                index: json::quantity(&it.index, "index")?,
                validator_index: json::quantity(&it.validator_index, "validatorIndex")?,
                address: json::array::<20>(&it.address, "address")?,
                amount: json::quantity(&it.amount, "amount")?,
            })
        };
        let withdrawals: Vec<Withdrawal> =
            self.withdrawals.iter().map(withdrawal).collect::<Result<_, JsonError>>()?;
        // The same limits as in SSZ (`Payload::read`): a block must not be accepted in one encoding
        // and refused in the other.
        if self.transactions.len() > MAX_TRANSACTIONS {
            let why = format!("{}, expected at most {MAX_TRANSACTIONS}", self.transactions.len());
            return Err(json::wrong("transactions", why));
        }
        let transaction = |it: &Cow<'_, str>| json::bytes(it, "transactions");
        let transactions: Vec<Vec<u8>> =
            self.transactions.iter().map(transaction).collect::<Result<_, _>>()?;
        let extra_data = json::bytes(&self.extra_data, "extraData")?;
        if extra_data.len() > MAX_EXTRA_DATA || withdrawals.len() > MAX_WITHDRAWALS {
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
        })
    }
}
