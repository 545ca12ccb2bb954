//! Nodes of Merkle Patricia tries: strict RLP of the three kinds, and nothing else.

use alloy_rlp::Header;

/// A fault of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// Bytes that are not RLP, or not in its only valid encoding.
    #[error("it is not strict RLP: {0}")]
    Rlp(alloy_rlp::Error),
    /// Bytes behind the node.
    #[error("there are bytes behind its list")]
    Longer,
    /// A list of neither 2 nor 17 items.
    #[error("it has {0} items, and a node has 2 or 17")]
    Items(usize),
    /// A path that does not begin as one does.
    #[error("its path is not in hex-prefix encoding")]
    Path,
    /// A child that is neither a hash nor a small node nor empty.
    #[error("child {0} is neither nothing nor a hash of 32 bytes nor a node of less than 32")]
    Child(usize),
    /// A branch with fewer than two children and values.
    #[error("a branch has fewer than two children")]
    Lonely,
    /// An extension whose child is empty.
    #[error("an extension has no child")]
    Extension,
    /// A branch with a value, which no trie of the state has: all of its keys have one length.
    #[error("a branch has a value")]
    Value,
    /// A leaf of the account trie without an account in it.
    #[error("a leaf is not an account")]
    Account,
    /// A leaf of a storage trie without a word in it.
    #[error("a leaf is not a word of storage")]
    Word,
    /// A path that is not 64 nibbles long.
    #[error("a path through it has not 64 nibbles: {0} where it ends, or where there must be more")]
    Depth(usize),
    /// A leaf or an extension under an extension.
    #[error("it is under an extension, and no branch")]
    NoBranch,
}

impl From<alloy_rlp::Error> for NodeError {
    fn from(error: alloy_rlp::Error) -> Self {
        Self::Rlp(error)
    }
}

/// The trie that a node is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trie {
    /// The trie of accounts.
    Accounts,
    /// The storage of an account.
    Storage,
}

/// The place of a node in its trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The trie.
    pub trie: Trie,
    /// The number of nibbles of the path above it.
    pub depth: u8,
    /// `true` if it must be a branch, as it is under an extension.
    pub branch: bool,
}

impl Place {
    /// Returns the root of a trie.
    pub fn root(trie: Trie) -> Self {
        Self { trie, depth: 0, branch: false }
    }
}

/// A reference from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// Another node of the same trie, and its place.
    Node(&'a [u8; 32], Place),
    /// The root of an account's storage.
    Root(&'a [u8; 32]),
    /// An account's code.
    Code(&'a [u8; 32]),
}

/// The length of all paths, in nibbles: keys are hashes.
const PATH: usize = 64;

/// Reads a node and reports what it refers to.
///
/// # Errors
/// If it is not a node of this trie.
pub fn read<'a>(
    node: &'a [u8],
    place: Place,
    found: &mut impl FnMut(Reference<'a>),
) -> Result<(), NodeError> {
    let mut rest = node;
    read_node(&mut rest, place, found)?;
    if rest.is_empty() { Ok(()) } else { Err(NodeError::Longer) }
}

impl Place {
    /// Returns the place that is `nibbles` further down, where a node must be: a path ends in a leaf, which may have no nibbles left.
    fn below(self, nibbles: usize, branch: bool) -> Result<Self, NodeError> {
        let depth = usize::from(self.depth) + nibbles;
        let least = usize::from(branch);
        match u8::try_from(depth) {
            Ok(found) if depth + least <= PATH => Ok(Self { depth: found, branch, ..self }),
            _ => Err(NodeError::Depth(depth)),
        }
    }
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
    let payload = &rest[..payload_length];
    *rest = &rest[payload_length..];
    Ok(Item { whole: &before[..before.len() - rest.len()], payload, list })
}

fn read_node<'a>(
    rest: &mut &'a [u8],
    place: Place,
    found: &mut impl FnMut(Reference<'a>),
) -> Result<(), NodeError> {
    let mut inside = Header::decode_bytes(rest, true)?;
    let mut items: [Option<Item<'a>>; 17] = [const { None }; 17];
    let mut count = 0;
    while !inside.is_empty() {
        let next = item(&mut inside)?;
        if let Some(place) = items.get_mut(count) {
            *place = Some(next);
        }
        count += 1;
    }
    match (count, &items) {
        (2, _) if place.branch => Err(NodeError::NoBranch),
        (2, [Some(path), Some(value), ..]) => short(path, value, place, found),
        (17, _) => {
            let below = place.below(1, false)?;
            let [children @ .., value] = &items;
            let mut present = 0;
            for (at, child) in children.iter().flatten().enumerate() {
                present += usize::from(read_child(child, below, found, at)?);
            }
            match value {
                Some(Item { payload: [], list: false, .. }) => {}
                _ => return Err(NodeError::Value),
            }
            if present < 2 { Err(NodeError::Lonely) } else { Ok(()) }
        }
        _ => Err(NodeError::Items(count)),
    }
}

/// A leaf or an extension.
fn short<'a>(
    path: &Item<'a>,
    value: &Item<'a>,
    place: Place,
    found: &mut impl FnMut(Reference<'a>),
) -> Result<(), NodeError> {
    let first = *path.payload.first().ok_or(NodeError::Path)?;
    let odd = first & 0x10 != 0;
    if path.list || path.payload.len() > 33 || first >> 4 > 3 || (!odd && first & 0x0f != 0) {
        return Err(NodeError::Path);
    }
    let nibbles = 2 * (path.payload.len() - 1) + usize::from(odd);
    if first & 0x20 != 0 {
        let depth = usize::from(place.depth) + nibbles;
        if depth != PATH {
            return Err(NodeError::Depth(depth));
        }
        if value.list {
            return Err(match place.trie {
                Trie::Accounts => NodeError::Account,
                Trie::Storage => NodeError::Word,
            });
        }
        return match place.trie {
            Trie::Accounts => account(value.payload, found),
            Trie::Storage => word(value.payload),
        };
    }
    // An extension by nothing would be its child.
    if nibbles == 0 {
        return Err(NodeError::Path);
    }
    // Its child is a branch, and those are never empty.
    match read_child(value, place.below(nibbles, true)?, found, 0)? {
        true => Ok(()),
        false => Err(NodeError::Extension),
    }
}

/// Reads a child. Returns `false` if there is none.
fn read_child<'a>(
    child: &Item<'a>,
    place: Place,
    found: &mut impl FnMut(Reference<'a>),
    at: usize,
) -> Result<bool, NodeError> {
    if child.list {
        if child.whole.len() >= 32 {
            return Err(NodeError::Child(at));
        }
        let mut inside = child.whole;
        read_node(&mut inside, place, found)?;
        return Ok(true);
    }
    match child.payload.len() {
        0 => Ok(false),
        _ => {
            let hash = child.payload.try_into().map_err(|_| NodeError::Child(at))?;
            found(Reference::Node(hash, place));
            Ok(true)
        }
    }
}

/// An account: nonce, balance, the root of its storage, the hash of its code.
fn account<'a>(
    mut value: &'a [u8],
    found: &mut impl FnMut(Reference<'a>),
) -> Result<(), NodeError> {
    let bad = |_| NodeError::Account;
    let mut inside = Header::decode_bytes(&mut value, true).map_err(bad)?;
    if !value.is_empty() {
        return Err(NodeError::Account);
    }
    let mut next = || Header::decode_bytes(&mut inside, false).map_err(bad);
    let [nonce, balance, root, code] = [next()?, next()?, next()?, next()?];
    let number = |bytes: &[u8], most: usize| bytes.len() <= most && bytes.first() != Some(&0);
    if !inside.is_empty() || !number(nonce, 8) || !number(balance, 32) {
        return Err(NodeError::Account);
    }
    let hash = |bytes: &'a [u8]| <&[u8; 32]>::try_from(bytes).map_err(|_| NodeError::Account);
    found(Reference::Root(hash(root)?));
    found(Reference::Code(hash(code)?));
    Ok(())
}

/// A word of storage: a number above 0.
fn word(mut value: &[u8]) -> Result<(), NodeError> {
    let bytes = Header::decode_bytes(&mut value, false).map_err(|_| NodeError::Word)?;
    let number = (1..=32).contains(&bytes.len()) && bytes[0] != 0;
    if value.is_empty() && number { Ok(()) } else { Err(NodeError::Word) }
}
