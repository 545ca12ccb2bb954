//! Nodes of Merkle Patricia tries of the state: only branches, extensions and leaves, in strict RLP.

use alloy_rlp::Header;

/// A fault of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// Bytes that are not RLP, or not in its only valid encoding.
    #[error("not strict RLP: {0}")]
    Rlp(alloy_rlp::Error),
    /// Bytes after the node.
    #[error("bytes follow its list")]
    Longer,
    /// A list of neither 2 nor 17 items.
    #[error("{0} items, expected 2 or 17")]
    Items(usize),
    /// A path that is not in hex-prefix encoding, or the empty path of an extension.
    #[error("its path is not in hex-prefix encoding, or is the empty path of an extension")]
    Path,
    /// A child that is neither absent nor a hash nor a small node.
    #[error("child {0} is not absent, a hash of 32 bytes, or a node of less than 32 bytes")]
    Child(usize),
    /// A branch with fewer than two children.
    #[error("the branch has fewer than two children")]
    Lonely,
    /// An extension whose child is absent.
    #[error("the extension has no child")]
    Extension,
    /// An extension that contains its child.
    #[error(
        "the extension contains its child, which only two keys whose hashes share 28 bytes could cause; expected a hash"
    )]
    SmallChild,
    /// A branch with a value, which no trie of the state has: all of its keys have one length.
    #[error("the branch has a value")]
    Value,
    /// A leaf of the account trie without an account in it.
    #[error("the leaf is not an account")]
    Account,
    /// A leaf of a storage trie without a word in it.
    #[error("the leaf is not a word of storage")]
    Word,
    /// A path that is not 64 nibbles long.
    #[error("a path through it has {0} nibbles where it ends or must continue, expected 64 in all")]
    Depth(usize),
    /// A leaf or an extension below an extension.
    #[error("it is below an extension; expected a branch")]
    NoBranch,
}

impl From<alloy_rlp::Error> for NodeError {
    fn from(error: alloy_rlp::Error) -> Self {
        Self::Rlp(error)
    }
}

/// The trie that a node is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trie {
    /// The trie of accounts.
    Accounts,
    /// The storage of an account.
    Storage,
}

/// The position of a node in its trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The trie.
    pub trie: Trie,
    /// The number of nibbles of the path above the node.
    pub depth: u8,
    /// `true` if the node must be a branch, because it is below an extension.
    pub branch: bool,
}

/// The length of all paths, in nibbles: keys are hashes.
const PATH: usize = 64;

impl Position {
    /// Returns the root of a trie.
    pub fn root(trie: Trie) -> Self {
        Self { trie, depth: 0, branch: false }
    }

    /// Returns the position `nibbles` further down. A leaf may have no nibbles left there; a branch needs one.
    fn below(self, nibbles: usize, branch: bool) -> Result<Self, NodeError> {
        let depth = usize::from(self.depth) + nibbles;
        let least = usize::from(branch);
        match u8::try_from(depth) {
            Ok(found) if depth + least <= PATH => Ok(Self { depth: found, branch, ..self }),
            _ => Err(NodeError::Depth(depth)),
        }
    }
}

/// A reference from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// Another node of the same trie, and its position.
    Node(&'a [u8; 32], Position),
    /// The root of an account's storage.
    Root(&'a [u8; 32]),
    /// An account's code.
    Code(&'a [u8; 32]),
}

/// A child of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child<'a> {
    /// No child.
    Absent,
    /// A child that is named by its hash.
    Hash(&'a [u8; 32]),
    /// A child of less than 32 bytes, which is inside the branch. It has no room for a hash, so it refers to nothing.
    Small,
}

/// The kind of a node, with its references to other strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "most nodes are branches, and each lives on the stack while it is read"
)]
pub enum Node<'a> {
    /// A branch, which has no value.
    Branch {
        /// The children.
        children: [Child<'a>; 16],
        /// Their position.
        below: Position,
    },
    /// An extension.
    Extension {
        /// The hash of its child, a branch.
        child: &'a [u8; 32],
        /// The position of the child.
        below: Position,
    },
    /// A leaf of the account trie.
    Account {
        /// The root of the account's storage.
        storage_root: &'a [u8; 32],
        /// The hash of its code.
        code_hash: &'a [u8; 32],
    },
    /// A leaf of a storage trie.
    Word,
}

impl<'a> Node<'a> {
    /// Reads a node at a position of a trie.
    ///
    /// # Errors
    /// If it is not a node that can be there.
    pub fn read(node: &'a [u8], position: Position) -> Result<Self, NodeError> {
        let mut rest = node;
        let found = read_node(&mut rest, position)?;
        if rest.is_empty() { Ok(found) } else { Err(NodeError::Longer) }
    }

    /// Returns what the node refers to, in order.
    pub fn references(&self) -> impl Iterator<Item = Reference<'a>> + use<'a> {
        let (children, below) = match *self {
            Self::Branch { children, below } => (children, Some(below)),
            Self::Extension { child, below } => (only(Child::Hash(child)), Some(below)),
            Self::Account { .. } | Self::Word => (only(Child::Absent), None),
        };
        let of_account = match *self {
            Self::Account { storage_root, code_hash } => {
                [Some(Reference::Root(storage_root)), Some(Reference::Code(code_hash))]
            }
            _ => [None; 2],
        };
        let nodes = children.into_iter().filter_map(move |child| match child {
            Child::Hash(hash) => below.map(|below| Reference::Node(hash, below)),
            Child::Absent | Child::Small => None,
        });
        nodes.chain(of_account.into_iter().flatten())
    }
}

/// A single child.
fn only(child: Child<'_>) -> [Child<'_>; 16] {
    let mut children = [Child::Absent; 16];
    children[0] = child;
    children
}

/// An item of a node: a string, or a small node with its header.
struct Item<'a> {
    /// The item with its header.
    whole: &'a [u8],
    /// The item without its header.
    payload: &'a [u8],
    list: bool,
}

fn item<'a>(rest: &mut &'a [u8]) -> Result<Item<'a>, NodeError> {
    let before = *rest;
    let Header { list, payload_length } = Header::decode(rest)?;
    let (payload, after) = rest.split_at(payload_length);
    *rest = after;
    Ok(Item { whole: &before[..before.len() - after.len()], payload, list })
}

fn read_node<'a>(rest: &mut &'a [u8], position: Position) -> Result<Node<'a>, NodeError> {
    let mut inside = Header::decode_bytes(rest, true)?;
    let mut items: [Option<Item<'a>>; 17] = [const { None }; 17];
    let mut count = 0;
    while !inside.is_empty() {
        let next = item(&mut inside)?;
        // Further items are only counted, for the error: a list may have as many as it has bytes.
        if let Some(room) = items.get_mut(count) {
            *room = Some(next);
        }
        count += 1;
    }
    match (count, &items) {
        (2, _) if position.branch => Err(NodeError::NoBranch),
        (2, [Some(path), Some(value), ..]) => read_short(path, value, position),
        (17, [children @ .., Some(value)]) => {
            let below = position.below(1, false)?;
            let mut found = [Child::Absent; 16];
            for (at, child) in children.iter().flatten().enumerate() {
                found[at] = read_child(child, below, at)?;
            }
            if value.list || !value.payload.is_empty() {
                return Err(NodeError::Value);
            }
            // A branch with one child would be an extension or a leaf: tries have one form.
            match found.iter().filter(|child| **child != Child::Absent).count() {
                0 | 1 => Err(NodeError::Lonely),
                _ => Ok(Node::Branch { children: found, below }),
            }
        }
        _ => Err(NodeError::Items(count)),
    }
}

/// Reads a leaf or an extension.
fn read_short<'a>(
    path: &Item<'a>,
    value: &Item<'a>,
    position: Position,
) -> Result<Node<'a>, NodeError> {
    let first = *path.payload.first().ok_or(NodeError::Path)?;
    // Hex-prefix encoding (Yellow Paper, appendix C): bit 5 of the first byte marks a leaf, bit 4 an odd number of nibbles.
    // 33 bytes hold it and 64 nibbles.
    let (is_leaf, is_odd) = (first & 0x20 != 0, first & 0x10 != 0);
    if path.list || path.payload.len() > 33 || first >> 4 > 3 || (!is_odd && first & 0x0f != 0) {
        return Err(NodeError::Path);
    }
    let nibbles = 2 * (path.payload.len() - 1) + usize::from(is_odd);
    if !is_leaf {
        return read_extension(value, position, nibbles);
    }
    let depth = usize::from(position.depth) + nibbles;
    if depth != PATH {
        return Err(NodeError::Depth(depth));
    }
    match (position.trie, value.list) {
        (Trie::Accounts, false) => read_account(value.payload),
        (Trie::Storage, false) => read_word(value.payload),
        (Trie::Accounts, true) => Err(NodeError::Account),
        (Trie::Storage, true) => Err(NodeError::Word),
    }
}

fn read_extension<'a>(
    value: &Item<'a>,
    position: Position,
    nibbles: usize,
) -> Result<Node<'a>, NodeError> {
    // An extension by nothing would be its child.
    if nibbles == 0 {
        return Err(NodeError::Path);
    }
    let below = position.below(nibbles, true)?;
    match read_child(value, below, 0)? {
        Child::Hash(child) => Ok(Node::Extension { child, below }),
        Child::Absent => Err(NodeError::Extension),
        // Two leaves fit into a branch of less than 32 bytes only if at most 7 nibbles of their paths are left, so that the hashes of
        // their keys share 28 bytes. Finding two such keys takes 2^112 hashes; the circuit has no place for them (spec: witness#mixed).
        Child::Small => Err(NodeError::SmallChild),
    }
}

fn read_child<'a>(child: &Item<'a>, position: Position, at: usize) -> Result<Child<'a>, NodeError> {
    if child.list {
        // Larger nodes are named by their hashes: otherwise a trie would have two encodings.
        if child.whole.len() >= 32 {
            return Err(NodeError::Child(at));
        }
        // Nothing in it is used, but a node that no trie can have must not pass because it is small.
        let mut inside = child.whole;
        read_node(&mut inside, position)?;
        return Ok(Child::Small);
    }
    match child.payload {
        [] => Ok(Child::Absent),
        hash => Ok(Child::Hash(hash.try_into().map_err(|_| NodeError::Child(at))?)),
    }
}

/// Reads an account: nonce, balance, the root of its storage, the hash of its code.
fn read_account(mut value: &[u8]) -> Result<Node<'_>, NodeError> {
    let bad = |_| NodeError::Account;
    let mut inside = Header::decode_bytes(&mut value, true).map_err(bad)?;
    if !value.is_empty() {
        return Err(NodeError::Account);
    }
    let mut next = || Header::decode_bytes(&mut inside, false).map_err(bad);
    let [nonce, balance, root, code] = [next()?, next()?, next()?, next()?];
    // Numbers without leading zeros: otherwise an account would have several encodings, and tries several roots.
    let is_number = |bytes: &[u8], most: usize| bytes.len() <= most && bytes.first() != Some(&0);
    if !inside.is_empty() || !is_number(nonce, 8) || !is_number(balance, 32) {
        return Err(NodeError::Account);
    }
    match (root.try_into(), code.try_into()) {
        (Ok(storage_root), Ok(code_hash)) => Ok(Node::Account { storage_root, code_hash }),
        _ => Err(NodeError::Account),
    }
}

/// Reads a word of storage: a number above 0, since a word of 0 is not in the trie.
fn read_word(mut value: &[u8]) -> Result<Node<'_>, NodeError> {
    let bytes = Header::decode_bytes(&mut value, false).map_err(|_| NodeError::Word)?;
    let is_number = (1..=32).contains(&bytes.len()) && bytes[0] != 0;
    if value.is_empty() && is_number { Ok(Node::Word) } else { Err(NodeError::Word) }
}
