//! The fields that the payloads of all forks since Shanghai have, as nodes and consensus clients exchange them.

use crate::fork::{Amsterdam, Cancun, Fork};
use crate::ssz::{Field, OFFSET, Part, SszError, Writer, write_items};

/// `ExecutionPayload` of Shanghai (refactor-ssz.md), `ExecutionPayloadV2` in JSON. [`Fork`] has the fields that later forks have
/// added.
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
    /// The price of gas in wei, little-endian.
    pub base_fee_per_gas: [u8; 32],
    /// The hash that it claims to have.
    pub block_hash: [u8; 32],
    /// Its transactions, as EIP-2718 encodes them.
    pub transactions: Vec<Vec<u8>>,
    /// Withdrawals from the beacon chain.
    pub withdrawals: Vec<Withdrawal>,
}

/// A withdrawal from the beacon chain (EIP-4895).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its number, counted from the first one.
    pub index: u64,
    /// The index of the validator.
    pub validator_index: u64,
    /// The recipient.
    pub address: [u8; 20],
    /// The amount, in Gwei.
    pub amount: u64,
}

/// The largest number of transactions in a payload.
// `MAX_TRANSACTIONS_PER_PAYLOAD` of the consensus specifications.
pub const MAX_TRANSACTIONS: usize = 1 << 20;

// The limits of the consensus specifications: `MAX_EXTRA_DATA_BYTES`, `MAX_WITHDRAWALS_PER_PAYLOAD`.

/// The longest extra data, in bytes.
pub const MAX_EXTRA_DATA: usize = 32;

/// The largest number of withdrawals in a payload.
pub const MAX_WITHDRAWALS: usize = 16;

/// The length of a withdrawal, in bytes.
pub(crate) const WITHDRAWAL: usize = 44;

/// The longest transaction, access list or request, in bytes: the specification's limit.
/// [`MAX_ENVELOPE`](crate::MAX_ENVELOPE) is stricter.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// The fields of a payload of Amsterdam. Those of earlier forks have the first 15 (Shanghai) or 17 (Cancun, Prague, Osaka).
const FIELDS: [Field; 19] = [
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
];

/// The place of the first offset, that of the extra data, in a payload.
pub(crate) const FIRST_OFFSET: usize = 32 + 20 + 32 + 32 + 256 + 32 + 4 * 8;

// The lengths of the fixed parts of payloads, in bytes: forks append fields.
pub(crate) const SHANGHAI: usize = FIRST_OFFSET + OFFSET + 32 + 32 + 2 * OFFSET;
pub(crate) const CANCUN: usize = SHANGHAI + 8 + 8;
pub(crate) const AMSTERDAM: usize = CANCUN + OFFSET + 8;

/// Reads the first `N` fields of [`FIELDS`], which are all that the payload has.
pub(crate) fn fields<const N: usize>(part: Part<'_>) -> Result<[Part<'_>; N], SszError> {
    part.container(*FIELDS.first_chunk().expect("no payload has more fields than Amsterdam's"))
}

impl Payload {
    /// Reads the fields that all payloads have.
    pub(crate) fn read(fields: [Part<'_>; 15]) -> Result<Self, SszError> {
        let [parent, recipient, state, receipts, bloom, randao, rest @ ..] = fields;
        let [number, limit, used, timestamp, extra, fee, hash, transactions, withdrawals] = rest;
        let items = transactions.items(MAX_TRANSACTIONS, MAX_BYTES)?;
        // No transaction is empty (EIP-2718), and the trie of transactions cannot hold one: an empty value is an absent one.
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
            extra_data: extra.list(MAX_EXTRA_DATA)?.to_vec(),
            base_fee_per_gas: *fee.array()?,
            block_hash: *hash.array()?,
            transactions: items.iter().map(<[u8]>::to_vec).collect(),
            withdrawals: elements.as_chunks().0.iter().map(Withdrawal::read).collect(),
        })
    }

    /// Appends the encoding to a message, with the fields that its fork has added.
    pub(crate) fn write(&self, fork: &Fork, bytes: Vec<u8>) -> Vec<u8> {
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
        let (cancun, amsterdam) = (fork.cancun(), fork.amsterdam());
        let fixed = match (cancun, amsterdam) {
            (None, _) => SHANGHAI,
            (Some(_), None) => CANCUN,
            (Some(_), Some(_)) => AMSTERDAM,
        };
        let mut writer = Writer::new(bytes, fixed)
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
            .offset();
        if let Some(Cancun { blob_gas_used, excess_blob_gas, .. }) = cancun {
            writer =
                writer.fixed(&blob_gas_used.to_le_bytes()).fixed(&excess_blob_gas.to_le_bytes());
        }
        if let Some(Amsterdam { slot_number, .. }) = amsterdam {
            writer = writer.offset().fixed(&slot_number.to_le_bytes());
        }
        let writer = writer
            .variable(add(&self.extra_data))
            .variable(|bytes| write_items(bytes, transactions))
            .variable(add(&withdrawals));
        match amsterdam {
            Some(Amsterdam { block_access_list, .. }) => writer.variable(add(block_access_list)),
            None => writer,
        }
        .end()
    }
}

impl Withdrawal {
    fn read(bytes: &[u8; WITHDRAWAL]) -> Self {
        let number = |at: usize| {
            let eight = bytes[at..].first_chunk();
            u64::from_le_bytes(*eight.expect("each number is eight bytes of the 44"))
        };
        let address = bytes[16..].first_chunk();
        Self {
            index: number(0),
            validator_index: number(8),
            address: *address.expect("the address is 20 bytes of the 44"),
            amount: number(36),
        }
    }
}
