//! Checks a witness against its block, with an error for each possible fault.
//!
//! The checks establish that every item belongs to the witness; only an execution of the block could establish that none is missing.

use crate::block;
use crate::values::hex;
use alloy_consensus::Header;
use alloy_rlp::Decodable;
use hekaton_witness_format::header::BlockHeader;
use hekaton_witness_format::ssz::Items;
use hekaton_witness_format::walk::{Digests, Walk, WalkError};
use hekaton_witness_format::{EMPTY_NODE, Envelope, ExecutionWitness, PUBLIC_KEY, keccak};

/// The largest number of headers in a witness: as far as `BLOCKHASH` reaches.
const MAX_HEADERS: usize = 256;

/// The largest code, in bytes: the limit of EIP-7907, which is above that of all forks so far.
const MAX_CODE: usize = 1 << 18;

/// The advice to an operator about a witness that is not in canonical form.
const LENIENT: &str = "--lenient leaves it out";

/// An error in a block or its witness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A payload that cannot have a header.
    #[error("baseFeePerGas has more than 64 bits")]
    BaseFee,
    /// A block whose hash is not the one in the payload.
    #[error(
        "the payload has blockHash {}, but a header with its fields ({fields}, as in {fork}) has the hash {}",
        hex(.said), hex(.found)
    )]
    BlockHash {
        /// The hash in the payload.
        said: [u8; 32],
        /// The hash of the block's header.
        found: [u8; 32],
        /// The fields that forks have added to the payload.
        fields: &'static str,
        /// The forks whose payloads have these fields.
        fork: &'static str,
    },
    /// A height that is not one above the parent's.
    #[error("the height of the block is {number}, but that of its parent is {parent}")]
    Number {
        /// The height in the payload.
        number: u64,
        /// The height in the last header.
        parent: u64,
    },
    /// Requests of the beacon chain that are empty, or not sorted by their types.
    #[error("execution request {0} is empty, or its type is not above that of the one before it")]
    Requests(usize),
    /// A transaction with blobs that cannot be read.
    #[error(
        "transaction {0} has the type of transactions with blobs (EIP-4844), but cannot be read as one"
    )]
    Transaction(usize),
    /// Blobs that differ from the expected ones.
    #[error("the block has {found} blobs, whose hashes differ from the {expected} expected ones")]
    Blobs {
        /// The number of blobs in the block.
        found: usize,
        /// The number of hashes that were given.
        expected: usize,
    },
    /// A number of public keys that differs from that of the transactions.
    #[error("{keys} public keys for {transactions} transactions, expected one for each")]
    Keys {
        /// The number of public keys.
        keys: usize,
        /// The number of transactions.
        transactions: usize,
    },
    /// A public key that is not an uncompressed one.
    #[error("public key {0} does not begin with 4, so it is not uncompressed")]
    Key(usize),
    /// Too few or too many headers.
    #[error("{0} headers, expected 1 to {MAX_HEADERS}")]
    Headers(usize),
    /// A header that cannot be read.
    #[error("header {at}: {why}")]
    Header {
        /// The index of the header.
        at: usize,
        /// The reason.
        why: String,
    },
    /// A header that is not the parent of the next one.
    #[error("header {0} is not the parent of the one after it")]
    Chain(usize),
    /// A last header that is not the block's parent.
    #[error("the last header has the hash {}, expected that of the block's parent, {}", hex(.found), hex(.parent))]
    Parent {
        /// The hash of the last header.
        found: [u8; 32],
        /// The hash of the parent in the payload.
        parent: [u8; 32],
    },
    /// An empty item: no trie hangs from it.
    #[error("{part} {at} is the empty {part}, which a canonical witness leaves out: {LENIENT}")]
    Empty {
        /// `node` or `code`.
        part: &'static str,
        /// The index of the item.
        at: usize,
    },
    /// Items that are not sorted, or occur twice.
    #[error(
        "{part} {at} is not above the one before it, and a canonical witness is sorted by bytes, without repeats: --lenient sorts it"
    )]
    Order {
        /// `node` or `code`.
        part: &'static str,
        /// The index of the item.
        at: usize,
    },
    /// A state that does not hang from its root.
    #[error(transparent)]
    State(#[from] WalkError),
    /// A node to which no other node leads.
    #[error(
        "node {0} is not reachable from the root of the parent's state, so it does not belong to the witness, or the block itself creates it: {LENIENT}"
    )]
    Unreached(usize),
    /// A code that is too long.
    #[error("code {0} has more than {MAX_CODE} bytes, the limit of EIP-7907")]
    CodeLength(usize),
    /// A code that no account has.
    #[error(
        "no account in the witness has code {0}, so the code does not belong to the witness, or the block itself creates it: {LENIENT}"
    )]
    Code(usize),
    /// Items that cannot be encoded.
    #[error("{0}")]
    Encoding(String),
}

/// The counts of what was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// The number of headers.
    pub headers: usize,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of codes.
    pub codes: usize,
    /// The number of references to absent nodes, which were not read, or are missing.
    pub absent: usize,
}

/// Checks the block: its hash, and the hashes of its blobs where they are expected.
///
/// # Errors
/// The first check that fails.
pub fn check_block(
    envelope: &Envelope,
    blob_hashes: Option<&[[u8; 32]]>,
) -> Result<(), CheckError> {
    let Envelope { payload, fork } = envelope;
    // The hash leaves out empty requests, and sorts: without this check, one block would have several envelopes.
    let requests = fork.requests().unwrap_or(&[]);
    let rises = |at: usize| at == 0 || requests[at - 1][..1] < requests[at][..1];
    if let Some(at) = (0..requests.len()).find(|&at| requests[at].len() < 2 || !rises(at)) {
        return Err(CheckError::Requests(at));
    }
    let found = block::header(envelope).ok_or(CheckError::BaseFee)?.hash_slow().0;
    if found != payload.block_hash {
        let said = payload.block_hash;
        return Err(CheckError::BlockHash {
            said,
            found,
            fields: fork.fields(),
            fork: fork.name(),
        });
    }
    let hashes = block::blob_hashes(payload).map_err(CheckError::Transaction)?;
    match blob_hashes {
        Some(expected) if expected != hashes => {
            Err(CheckError::Blobs { found: hashes.len(), expected: expected.len() })
        }
        _ => Ok(()),
    }
}

/// Checks the public keys of senders: one for each transaction.
///
/// # Errors
/// The first check that fails.
pub fn check_keys(envelope: &Envelope, public_keys: &[u8]) -> Result<(), CheckError> {
    let transactions = envelope.payload.transactions.len();
    let keys = public_keys.len() / PUBLIC_KEY;
    if keys != transactions {
        return Err(CheckError::Keys { keys, transactions });
    }
    match public_keys.chunks_exact(PUBLIC_KEY).position(|key| key[0] != 4) {
        Some(at) => Err(CheckError::Key(at)),
        None => Ok(()),
    }
}

/// Checks a witness for the block with this parent hash and height.
///
/// # Errors
/// The first check that fails.
pub fn check_witness(
    witness: &ExecutionWitness<'_>,
    parent: [u8; 32],
    number: u64,
) -> Result<Summary, CheckError> {
    // The headers come first: they are few, and a witness of another block is refused before its nodes are hashed.
    let (root, before) = check_headers(&witness.headers, parent)?;
    if before.checked_add(1) != Some(number) {
        return Err(CheckError::Number { number, parent: before });
    }
    // Before the order: an empty item is often out of order as well, and that error would not say what to leave out.
    check_not_empty(witness)?;
    check_order(&witness.state, "node")?;
    check_order(&witness.codes, "code")?;
    let nodes = Digests::of(&witness.state);
    let walk = Walk::from_root(&witness.state, &nodes, root, |_, _, _| {})?;
    if let Some(at) = walk.reached.iter().position(|depths| *depths == [None; 2]) {
        return Err(CheckError::Unreached(at));
    }
    if let Some(at) = witness.codes.iter().position(|code| code.len() > MAX_CODE) {
        return Err(CheckError::CodeLength(at));
    }
    let codes = Digests::of(&witness.codes);
    let foreign = codes.iter().filter(|(digest, _)| !walk.codes.contains(*digest));
    if let Some(at) = foreign.map(|(_, at)| at).min() {
        return Err(CheckError::Code(at));
    }
    Ok(Summary {
        headers: witness.headers.len(),
        nodes: witness.state.len(),
        codes: witness.codes.len(),
        absent: walk.absent,
    })
}

/// Checks that the headers are a chain that ends in the parent. Returns the root of its state and its height.
pub(crate) fn check_headers(
    headers: &Items<'_>,
    parent: [u8; 32],
) -> Result<([u8; 32], u64), CheckError> {
    if !(1..=MAX_HEADERS).contains(&headers.len()) {
        return Err(CheckError::Headers(headers.len()));
    }
    let mut before: Option<([u8; 32], BlockHeader)> = None;
    for (at, bytes) in headers.iter().enumerate() {
        let header = read_header(bytes).map_err(|why| CheckError::Header { at, why })?;
        if before.is_some_and(|(hash, _)| header.parent_hash != hash) {
            return Err(CheckError::Chain(at - 1));
        }
        before = Some((keccak(bytes), header));
    }
    match before {
        Some((found, header)) if found == parent => Ok((header.state_root, header.number)),
        Some((found, _)) => Err(CheckError::Parent { found, parent }),
        None => Err(CheckError::Headers(0)),
    }
}

/// Reads a header that must be one of a fork that is known here, in its only encoding.
fn read_header(bytes: &[u8]) -> Result<BlockHeader, String> {
    let header = BlockHeader::read(bytes).map_err(|error| error.to_string())?;
    // The reader of `hekaton-witness-format` examines only the fields that lead to the state. This one knows the fields of all forks
    // and must consume the entire header, so nothing can hide behind or between the fields.
    let known = Header::decode(&mut &bytes[..]).map_err(|error| error.to_string())?;
    match alloy_rlp::encode(&known) == bytes {
        true => Ok(header),
        false => Err("it is not the only encoding of a header".into()),
    }
}

/// Returns the hash of the last header of a witness, and the height of a block that follows it.
///
/// # Errors
/// If there is no header, or one of them cannot be read.
pub fn parent_of(witness: &ExecutionWitness<'_>) -> Result<([u8; 32], u64), CheckError> {
    let mut last = None;
    for (at, bytes) in witness.headers.iter().enumerate() {
        let header = BlockHeader::read(bytes)
            .map_err(|error| CheckError::Header { at, why: error.to_string() })?;
        // Headers in JSON may come in any order.
        if last.is_none_or(|(number, _)| number <= header.number) {
            last = Some((header.number, keccak(bytes)));
        }
    }
    let (number, hash) = last.ok_or(CheckError::Headers(0))?;
    // No block follows the largest height; the check of heights refuses it.
    Ok((hash, number.saturating_add(1)))
}

fn check_order(items: &Items<'_>, part: &'static str) -> Result<(), CheckError> {
    let pairs = items.iter().zip(items.iter().skip(1));
    match pairs.enumerate().find(|(_, (before, after))| before >= after) {
        Some((at, _)) => Err(CheckError::Order { part, at: at + 1 }),
        None => Ok(()),
    }
}

/// Refuses empty items, which nodes send although nothing needs them. Any other error about such an item would mislead.
fn check_not_empty(witness: &ExecutionWitness<'_>) -> Result<(), CheckError> {
    let node = witness.state.iter().position(|node| node == EMPTY_NODE);
    let code = witness.codes.iter().position(<[u8]>::is_empty);
    match (node, code) {
        (Some(at), _) => Err(CheckError::Empty { part: "node", at }),
        (None, Some(at)) => Err(CheckError::Empty { part: "code", at }),
        (None, None) => Ok(()),
    }
}
