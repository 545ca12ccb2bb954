//! Checks a witness against its block, with an error for each possible fault.
//!
//! The checks establish that every item belongs to the witness; to establish that none is missing would take an execution of the block.

use crate::codec::Witness;
use crate::codec::b::{Envelope, PUBLIC_KEY};
use crate::ssz::Items;
use crate::trie::{NodeError, Place, Reference, Trie, read};
use crate::values::hex;
use alloy_consensus::Header;
use alloy_consensus::constants::{EMPTY_ROOT_HASH, KECCAK_EMPTY};
use alloy_primitives::keccak256;
use alloy_rlp::Decodable;
use std::collections::HashSet;

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
    #[error("the block says its hash is {}, and it is {}", hex(.said), hex(.found))]
    BlockHash {
        /// The hash in the payload.
        said: [u8; 32],
        /// The hash of the block's header.
        found: [u8; 32],
    },
    /// A height that is not one above the parent's.
    #[error("the block says its height is {number}, and its parent's is {parent}")]
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
    #[error("transaction {0} is not a transaction with blobs, as its type says")]
    Transaction(usize),
    /// Blobs that differ from the expected ones.
    #[error(
        "the block has {found} blobs, and their hashes are not the {expected} that are expected"
    )]
    Blobs {
        /// The number of blobs in the block.
        found: usize,
        /// The number of hashes that were given.
        expected: usize,
    },
    /// A number of public keys that differs from that of the transactions.
    #[error("there are {keys} public keys for {transactions} transactions")]
    Keys {
        /// The number of public keys.
        keys: usize,
        /// The number of transactions.
        transactions: usize,
    },
    /// A public key that is not an uncompressed one.
    #[error("public key {0} does not begin with 4, as uncompressed ones do")]
    Key(usize),
    /// Too few or too many headers.
    #[error("there are {0} headers, and must be 1 to {MAX_HEADERS}")]
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
    #[error("the last header is {}, and the block's parent is {}", hex(.found), hex(.parent))]
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
    /// A witness without the root.
    #[error("no node is the root of the parent's state, {}", hex(.0))]
    Root([u8; 32]),
    /// A node that cannot be read.
    #[error("node {at}: {why}")]
    Node {
        /// The index of the node.
        at: usize,
        /// The reason.
        why: NodeError,
    },
    /// A node below different numbers of nibbles, which cannot both be right.
    #[error("node {0} is at two depths of its trie")]
    Depth(usize),
    /// A node to which no other node leads.
    #[error(
        "node {0} is not reached from the root of the parent's state, so it does not belong to the witness, or the block itself makes it: {LENIENT}"
    )]
    Unreached(usize),
    /// A code that is too long.
    #[error("code {0} has more than {MAX_CODE} bytes")]
    CodeLength(usize),
    /// A code that no account has.
    #[error(
        "code {0} is not that of an account in the witness, so it does not belong there, or the block itself makes it: {LENIENT}"
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
    let payload = &envelope.payload;
    // Otherwise one block would have several envelopes: the hash leaves out empty requests, and sorts.
    let requests = &envelope.execution_requests;
    let rises = |at: usize| at == 0 || requests[at - 1][..1] < requests[at][..1];
    if let Some(at) = (0..requests.len()).find(|&at| requests[at].len() < 2 || !rises(at)) {
        return Err(CheckError::Requests(at));
    }
    let header = payload.header(envelope.parent_beacon_block_root, &envelope.execution_requests);
    let found = header.ok_or(CheckError::BaseFee)?.hash_slow().0;
    if found != payload.block_hash {
        return Err(CheckError::BlockHash { said: payload.block_hash, found });
    }
    let hashes = payload.blob_hashes().map_err(CheckError::Transaction)?;
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

/// Checks a witness for a block, of which the hash of the parent and the height are given.
///
/// # Errors
/// The first check that fails.
pub fn check_witness(
    witness: &Witness<'_>,
    parent: [u8; 32],
    number: u64,
) -> Result<Summary, CheckError> {
    let (root, before) = check_headers(&witness.headers, parent)?;
    if before.checked_add(1) != Some(number) {
        return Err(CheckError::Number { number, parent: before });
    }
    check_not_empty(witness)?;
    check_order(&witness.state, "node")?;
    check_order(&witness.codes, "code")?;
    let nodes = Hashes::of(&witness.state, "node")?;
    let Walk { reached, mut named, absent } = walk(witness, &nodes, root)?;
    if let Some(at) = reached.iter().position(|depths| *depths == [None; 2]) {
        return Err(CheckError::Unreached(at));
    }
    named.remove(&KECCAK_EMPTY.0);
    let codes = Hashes::of(&witness.codes, "code")?;
    for (at, code) in witness.codes.iter().enumerate() {
        if code.len() > MAX_CODE {
            return Err(CheckError::CodeLength(at));
        }
    }
    let foreign = codes.sorted.iter().filter(|(hash, _)| !named.contains(hash)).map(|(_, at)| *at);
    if let Some(at) = foreign.min() {
        return Err(CheckError::Code(at as usize));
    }
    Ok(Summary {
        headers: witness.headers.len(),
        nodes: witness.state.len(),
        codes: witness.codes.len(),
        absent,
    })
}

/// The nodes and codes that hang from a root.
pub(crate) struct Walk {
    /// The depth of each node, in the trie of accounts and in those of storage.
    pub(crate) reached: Vec<[Option<u8>; 2]>,
    /// The codes of all accounts.
    pub(crate) named: HashSet<[u8; 32]>,
    /// The number of references to nodes that are absent.
    absent: usize,
}

/// Reads all nodes that hang from a root.
pub(crate) fn walk(
    witness: &Witness<'_>,
    nodes: &Hashes,
    root: [u8; 32],
) -> Result<Walk, CheckError> {
    let mut named: HashSet<[u8; 32]> = HashSet::new();
    let mut reached = vec![[None; 2]; witness.state.len()];
    let mut absent = 0;
    let mut open = Vec::new();
    if root != EMPTY_ROOT_HASH.0 {
        let at = nodes.get(&root).ok_or(CheckError::Root(root))?;
        reached[at][Trie::Accounts as usize] = Some(0);
        open.push((at, Place::root(Trie::Accounts)));
    }
    while let Some((at, place)) = open.pop() {
        let mut elsewhere = None;
        let mut refer = |hash: &[u8; 32], place: Place| {
            let Some(next) = nodes.get(hash) else {
                absent += 1;
                return;
            };
            // Nodes of different tries may be the same, but the nodes below them determine their depth.
            match &mut reached[next][place.trie as usize] {
                Some(depth) if *depth == place.depth => {}
                Some(_) => elsewhere = Some(next),
                none => {
                    *none = Some(place.depth);
                    open.push((next, place));
                }
            }
        };
        let node = witness.state.get(at).unwrap_or_default();
        let read = read(node, place, &mut |reference| match reference {
            Reference::Node(hash, below) => refer(hash, below),
            Reference::Root(hash) if *hash == EMPTY_ROOT_HASH.0 => {}
            Reference::Root(hash) => refer(hash, Place::root(Trie::Storage)),
            Reference::Code(hash) => drop(named.insert(*hash)),
        });
        read.map_err(|why| CheckError::Node { at, why })?;
        if let Some(at) = elsewhere {
            return Err(CheckError::Depth(at));
        }
    }
    Ok(Walk { reached, named, absent })
}

/// The hashes of items with their places, sorted: a table of hashes would take twice the memory.
pub(crate) struct Hashes {
    sorted: Vec<([u8; 32], u32)>,
    /// The places at which the hashes with each first two bytes begin. Most look-ups fail, and this makes them fast.
    begins: Vec<u32>,
}

impl Hashes {
    /// Hashes items, no two of which may be the same.
    pub(crate) fn of(items: &Items<'_>, part: &'static str) -> Result<Self, CheckError> {
        let hashes = (0u32..).zip(items.iter()).map(|(at, item)| (keccak256(item).0, at));
        let mut hashes: Vec<([u8; 32], u32)> = hashes.collect();
        hashes.sort_unstable();
        if let Some(two) = hashes.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(CheckError::Order { part, at: two[1].1 as usize });
        }
        let mut begins = vec![0; (1 << 16) + 1];
        for (hash, _) in &hashes {
            begins[first(hash) + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        Ok(Self { sorted: hashes, begins })
    }

    fn get(&self, hash: &[u8; 32]) -> Option<usize> {
        let (from, to) = (self.begins[first(hash)], self.begins[first(hash) + 1]);
        let near = &self.sorted[from as usize..to as usize];
        let found = near.binary_search_by(|(known, _)| known.cmp(hash)).ok()?;
        Some(near[found].1 as usize)
    }
}

/// Returns the first two bytes of a hash.
fn first(hash: &[u8; 32]) -> usize {
    usize::from(u16::from_be_bytes([hash[0], hash[1]]))
}

/// Checks that the headers are a chain that ends in the parent. Returns the root of its state and its height.
pub(crate) fn check_headers(
    headers: &Items<'_>,
    parent: [u8; 32],
) -> Result<([u8; 32], u64), CheckError> {
    if !(1..=MAX_HEADERS).contains(&headers.len()) {
        return Err(CheckError::Headers(headers.len()));
    }
    let mut before: Option<[u8; 32]> = None;
    let mut last = ([0; 32], 0);
    for (at, bytes) in headers.iter().enumerate() {
        let bad = |why: String| CheckError::Header { at, why };
        let mut rest = bytes;
        let header = Header::decode(&mut rest).map_err(|error| bad(error.to_string()))?;
        if !rest.is_empty() {
            return Err(bad("there are bytes behind its list".into()));
        }
        // The fields that were read must be the whole header, in its only encoding.
        if alloy_rlp::encode(&header) != bytes {
            return Err(bad("it is not in the one encoding of a header".into()));
        }
        if before.is_some_and(|before| header.parent_hash.0 != before) {
            return Err(CheckError::Chain(at - 1));
        }
        (before, last) = (Some(keccak256(bytes).0), (header.state_root.0, header.number));
    }
    match before {
        Some(found) if found != parent => Err(CheckError::Parent { found, parent }),
        _ => Ok(last),
    }
}

/// Returns the hash of the last header of a witness, and the height of a block that follows it.
///
/// # Errors
/// If no header can be read.
pub fn parent_of(witness: &Witness<'_>) -> Result<([u8; 32], u64), CheckError> {
    let mut last = None;
    for (at, bytes) in witness.headers.iter().enumerate() {
        let header = Header::decode(&mut &bytes[..]);
        let header = header.map_err(|error| CheckError::Header { at, why: error.to_string() })?;
        if last.is_none_or(|(number, _)| number <= header.number) {
            last = Some((header.number, keccak256(bytes).0));
        }
    }
    let (number, hash) = last.ok_or(CheckError::Headers(0))?;
    Ok((hash, number.saturating_add(1)))
}

fn check_order(items: &Items<'_>, part: &'static str) -> Result<(), CheckError> {
    let pairs = items.iter().zip(items.iter().skip(1));
    match pairs.enumerate().find(|(_, (before, after))| before >= after) {
        Some((at, _)) => Err(CheckError::Order { part, at: at + 1 }),
        None => Ok(()),
    }
}

/// Refuses items that nodes send although nothing needs them, each by its name: any other error would mislead.
fn check_not_empty(witness: &Witness<'_>) -> Result<(), CheckError> {
    let node = witness.state.iter().position(|node| node == [0x80]);
    let code = witness.codes.iter().position(<[u8]>::is_empty);
    match (node, code) {
        (Some(at), _) => Err(CheckError::Empty { part: "node", at }),
        (None, Some(at)) => Err(CheckError::Empty { part: "code", at }),
        (None, None) => Ok(()),
    }
}
