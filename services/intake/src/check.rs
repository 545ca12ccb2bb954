//! Checks a witness against the block that it is for, with an error for each thing that may be wrong.
//!
//! Checked is that all that is there belongs there. That nothing is missing would take an execution of the block.

use crate::codec::Witness;
use crate::codec::b::{Envelope, PUBLIC_KEY};
use crate::ssz::Items;
use crate::trie::{NodeError, Reference, Trie, read};
use crate::values::hex;
use alloy_consensus::Header;
use alloy_consensus::constants::{EMPTY_ROOT_HASH, KECCAK_EMPTY};
use alloy_primitives::keccak256;
use alloy_rlp::Decodable;
use std::collections::HashSet;

/// How many headers a witness may have: as far as `BLOCKHASH` reaches.
const MAX_HEADERS: usize = 256;

/// How long a code may be: as EIP-7907 draws the limit, above that of all forks so far.
const MAX_CODE: usize = 1 << 18;

/// What is wrong with a block or its witness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The payload cannot have a header.
    #[error("baseFeePerGas has more than 64 bits")]
    BaseFee,
    /// The block is not the one that it says.
    #[error("the block says its hash is {}, and it is {}", hex(.said), hex(.found))]
    BlockHash {
        /// What the payload says.
        said: [u8; 32],
        /// What its header hashes to.
        found: [u8; 32],
    },
    /// A transaction with blobs cannot be read.
    #[error("transaction {0} is not a transaction with blobs, as its type says")]
    Transaction(usize),
    /// The blobs are others than expected.
    #[error(
        "the block has {found} blobs, and their hashes are not the {expected} that are expected"
    )]
    Blobs {
        /// How many the block has.
        found: usize,
        /// How many hashes were given.
        expected: usize,
    },
    /// Not one public key for each transaction.
    #[error("there are {keys} public keys for {transactions} transactions")]
    Keys {
        /// How many keys.
        keys: usize,
        /// How many transactions.
        transactions: usize,
    },
    /// A public key is not an uncompressed one.
    #[error("public key {0} does not begin with 4, as uncompressed ones do")]
    Key(usize),
    /// Too few or too many headers.
    #[error("there are {0} headers, and must be 1 to {MAX_HEADERS}")]
    Headers(usize),
    /// A header cannot be read.
    #[error("header {at}: {why}")]
    Header {
        /// Which.
        at: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A header is not the parent of the next one.
    #[error("header {0} is not the parent of the one after it")]
    Chain(usize),
    /// The last header is not the block's parent.
    #[error("the last header is {}, and the block's parent is {}", hex(.found), hex(.parent))]
    Parent {
        /// The hash of the last header.
        found: [u8; 32],
        /// What the block says.
        parent: [u8; 32],
    },
    /// Items are not sorted, or the same one is there twice.
    #[error(
        "{part} {at} is not above the one before it: items are sorted by their bytes, without repeats"
    )]
    Order {
        /// `node` or `code`.
        part: &'static str,
        /// Which.
        at: usize,
    },
    /// The root is missing.
    #[error("no node is the root of the parent's state, {}", hex(.0))]
    Root([u8; 32]),
    /// A node cannot be read.
    #[error("node {at}: {why}")]
    Node {
        /// Which.
        at: usize,
        /// What is wrong with it.
        why: NodeError,
    },
    /// No other node leads to a node.
    #[error("node {0} is not reached from the root")]
    Unreached(usize),
    /// A code is too long.
    #[error("code {0} has more than {MAX_CODE} bytes")]
    CodeLength(usize),
    /// No account has a code.
    #[error("code {0} is not that of an account in the witness")]
    Code(usize),
}

/// What was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Headers.
    pub headers: usize,
    /// Nodes.
    pub nodes: usize,
    /// Codes.
    pub codes: usize,
    /// References to nodes that are not there: they were not read, or are missing.
    pub absent: usize,
}

/// How strict to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Allow any order of nodes and codes. Repeats are still refused.
    pub any_order: bool,
}

/// Checks the block: its hash, and the hashes of its blobs where they are expected.
///
/// # Errors
/// What is wrong.
pub fn check_block(
    envelope: &Envelope,
    blob_hashes: Option<&[[u8; 32]]>,
) -> Result<(), CheckError> {
    let payload = &envelope.payload;
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
/// What is wrong.
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

/// Checks a witness for a block.
///
/// # Errors
/// What is wrong first.
pub fn check_witness(
    witness: &Witness<'_>,
    parent: [u8; 32],
    options: Options,
) -> Result<Summary, CheckError> {
    let root = check_headers(&witness.headers, parent)?;
    check_order(&witness.state, "node", options)?;
    check_order(&witness.codes, "code", options)?;
    let nodes = Hashes::of(&witness.state, "node")?;
    let mut named: HashSet<[u8; 32]> = HashSet::new();
    let mut absent = 0;
    let mut reached = vec![[false; 2]; witness.state.len()];
    let mut open = Vec::new();
    if root != EMPTY_ROOT_HASH.0 {
        open.push((nodes.get(&root).ok_or(CheckError::Root(root))?, Trie::Accounts));
    }
    while let Some((at, trie)) = open.pop() {
        // Nodes of different tries may be the same.
        if std::mem::replace(&mut reached[at][trie as usize], true) {
            continue;
        }
        let mut refer = |hash: &[u8; 32], trie| match nodes.get(hash) {
            Some(next) => open.push((next, trie)),
            None => absent += 1,
        };
        let node = witness.state.get(at).unwrap_or_default();
        let read = read(node, trie, &mut |reference| match reference {
            Reference::Node(hash) => refer(hash, trie),
            Reference::Root(hash) if *hash == EMPTY_ROOT_HASH.0 => {}
            Reference::Root(hash) => refer(hash, Trie::Storage),
            Reference::Code(hash) => drop(named.insert(*hash)),
        });
        read.map_err(|why| CheckError::Node { at, why })?;
    }
    if let Some(at) = reached.iter().position(|tries| *tries == [false; 2]) {
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

/// The hashes of items with their places, sorted: a table of hashes would take twice the memory.
struct Hashes {
    sorted: Vec<([u8; 32], u32)>,
    /// Where the hashes with each first two bytes begin. Most of what is looked for is not there, and this says so at once.
    begins: Vec<u32>,
}

impl Hashes {
    /// Hashes items, of which no two may be the same.
    fn of(items: &Items<'_>, part: &'static str) -> Result<Self, CheckError> {
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

/// The first two bytes of a hash.
fn first(hash: &[u8; 32]) -> usize {
    usize::from(u16::from_be_bytes([hash[0], hash[1]]))
}

/// Checks that the headers are a chain that ends in the parent. Returns the root of its state.
fn check_headers(headers: &Items<'_>, parent: [u8; 32]) -> Result<[u8; 32], CheckError> {
    if !(1..=MAX_HEADERS).contains(&headers.len()) {
        return Err(CheckError::Headers(headers.len()));
    }
    let mut before: Option<[u8; 32]> = None;
    let mut root = [0; 32];
    for (at, bytes) in headers.iter().enumerate() {
        let bad = |why: String| CheckError::Header { at, why };
        let mut rest = bytes;
        let header = Header::decode(&mut rest).map_err(|error| bad(error.to_string()))?;
        if !rest.is_empty() {
            return Err(bad("there are bytes behind its list".into()));
        }
        // What was read must be all that there is, in its one encoding.
        if alloy_rlp::encode(&header) != bytes {
            return Err(bad("it is not in the one encoding of a header".into()));
        }
        if before.is_some_and(|before| header.parent_hash.0 != before) {
            return Err(CheckError::Chain(at - 1));
        }
        (before, root) = (Some(keccak256(bytes).0), header.state_root.0);
    }
    match before {
        Some(found) if found != parent => Err(CheckError::Parent { found, parent }),
        _ => Ok(root),
    }
}

fn check_order(items: &Items<'_>, part: &'static str, options: Options) -> Result<(), CheckError> {
    if options.any_order {
        return Ok(());
    }
    let pairs = items.iter().zip(items.iter().skip(1));
    match pairs.enumerate().find(|(_, (before, after))| before >= after) {
        Some((at, _)) => Err(CheckError::Order { part, at: at + 1 }),
        None => Ok(()),
    }
}
