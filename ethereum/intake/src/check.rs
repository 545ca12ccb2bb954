//! Checks a witness against the block that it is for, with an error for each thing that may be wrong.
//!
//! Checked is that all that is there belongs there. That nothing is missing would take an execution of the block.

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

/// How many headers a witness may have: as far as `BLOCKHASH` reaches.
const MAX_HEADERS: usize = 256;

/// How long a code may be: as EIP-7907 draws the limit, above that of all forks so far.
const MAX_CODE: usize = 1 << 18;

/// What an operator can do about a witness that is not in canonical form.
const LENIENT: &str = "--lenient leaves it out";

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
    /// The height is not that of the parent and one more.
    #[error("the block says its height is {number}, and its parent's is {parent}")]
    Number {
        /// What the payload says.
        number: u64,
        /// What the last header says.
        parent: u64,
    },
    /// Requests of the beacon chain are not sorted by their types, or are empty.
    #[error("execution request {0} is empty, or its type is not above that of the one before it")]
    Requests(usize),
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
    /// An item is empty: no trie hangs on it.
    #[error("{part} {at} is the empty {part}, which a canonical witness leaves out: {LENIENT}")]
    Empty {
        /// `node` or `code`.
        part: &'static str,
        /// Which.
        at: usize,
    },
    /// Items are not sorted, or the same one is there twice.
    #[error(
        "{part} {at} is not above the one before it, and a canonical witness is sorted by bytes, without repeats: --lenient sorts it"
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
    /// A node is under different numbers of nibbles, which cannot both be right.
    #[error("node {0} is at two depths of its trie")]
    Depth(usize),
    /// No other node leads to a node.
    #[error(
        "node {0} is not reached from the root of the parent's state, so it does not belong to the witness, or the block itself makes it: {LENIENT}"
    )]
    Unreached(usize),
    /// A code is too long.
    #[error("code {0} has more than {MAX_CODE} bytes")]
    CodeLength(usize),
    /// No account has a code.
    #[error(
        "code {0} is not that of an account in the witness, so it does not belong there, or the block itself makes it: {LENIENT}"
    )]
    Code(usize),
    /// Its items cannot be encoded.
    #[error("{0}")]
    Encoding(String),
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

/// Checks the block: its hash, and the hashes of its blobs where they are expected.
///
/// # Errors
/// What is wrong.
pub fn check_block(
    envelope: &Envelope,
    blob_hashes: Option<&[[u8; 32]]>,
) -> Result<(), CheckError> {
    let payload = &envelope.payload;
    // Else one block would have several envelopes: the hash leaves empty ones out, and sorts.
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

/// Checks a witness for a block, of which the hash of the parent and the height are given.
///
/// # Errors
/// What is wrong first.
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

/// What hangs from a root.
pub(crate) struct Walk {
    /// At which depth each node is, in the trie of accounts and in those of storage.
    pub(crate) reached: Vec<[Option<u8>; 2]>,
    /// The codes of all accounts.
    pub(crate) named: HashSet<[u8; 32]>,
    /// References to nodes that are not there.
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
            // Nodes of different tries may be the same, but what hangs from them says how deep they are.
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
    /// Where the hashes with each first two bytes begin. Most of what is looked for is not there, and this says so at once.
    begins: Vec<u32>,
}

impl Hashes {
    /// Hashes items, of which no two may be the same.
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

/// The first two bytes of a hash.
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
        // What was read must be all that there is, in its one encoding.
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

/// The block that a witness leads to by itself: its hash is that of the last header, and a block for it is one above that.
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

/// Refuses what nodes send although nothing needs it, by its name: what else is said of it would mislead.
fn check_not_empty(witness: &Witness<'_>) -> Result<(), CheckError> {
    let node = witness.state.iter().position(|node| node == [0x80]);
    let code = witness.codes.iter().position(<[u8]>::is_empty);
    match (node, code) {
        (Some(at), _) => Err(CheckError::Empty { part: "node", at }),
        (None, Some(at)) => Err(CheckError::Empty { part: "code", at }),
        (None, None) => Ok(()),
    }
}
