//! A second reader of nodes, written independently of the first: it knows nothing of depths, and it is less strict.

use alloy_rlp::Header;

/// The kind of reference by which a string is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// A node of the account trie.
    Account = 1,
    /// A node of a storage trie.
    Storage = 2,
    /// A code.
    Code = 3,
}

/// The way in which a node is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A branch all of whose children are hashes.
    Branch,
    /// A branch some of whose children are inside it.
    MixedBranch,
    /// A leaf or an extension.
    Short,
}

/// A digest that a node contains.
pub(crate) type Reference = ([u8; 32], Tag);

/// A node with its references; for a branch, in the order of its children, with `None` for a child that is not a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) references: Vec<Option<Reference>>,
}

/// An item of a list.
struct Item<'a> {
    payload: &'a [u8],
    is_list: bool,
    bytes: usize,
}

fn items(mut node: &[u8]) -> Result<Vec<Item<'_>>, &'static str> {
    let not_rlp = "it is not RLP";
    let mut inside = Header::decode_bytes(&mut node, true).map_err(|_| not_rlp)?;
    if !node.is_empty() {
        return Err("there are bytes behind its list");
    }
    let mut items = Vec::new();
    while !inside.is_empty() {
        let before = inside.len();
        let Header { list, payload_length } = Header::decode(&mut inside).map_err(|_| not_rlp)?;
        let (payload, rest) = inside.split_at(payload_length);
        inside = rest;
        items.push(Item { payload, is_list: list, bytes: before - inside.len() });
    }
    Ok(items)
}

impl Node {
    /// Reads a node that is reached as one of an account trie or of a storage trie.
    pub(crate) fn read(node: &[u8], tag: Tag) -> Result<Self, &'static str> {
        let items = items(node)?;
        match items.as_slice() {
            [children @ .., value] if items.len() == 17 => {
                if !value.payload.is_empty() || value.is_list {
                    return Err("it is a branch with a value");
                }
                let mut references = Vec::new();
                let (mut has_inline, mut present) = (false, 0);
                for child in children {
                    present += usize::from(child.is_list || !child.payload.is_empty());
                    has_inline |= child.is_list;
                    references.push(match child.payload.len() {
                        _ if child.is_list && (2..32).contains(&child.bytes) => None,
                        0 if !child.is_list => None,
                        32 if !child.is_list => Some((digest(child.payload)?, tag)),
                        _ => {
                            return Err(
                                "it is a branch with a child that is neither a hash nor small",
                            );
                        }
                    });
                }
                if present < 2 {
                    return Err("it is a branch with fewer than two children");
                }
                let kind = if has_inline { Kind::MixedBranch } else { Kind::Branch };
                Ok(Self { kind, references })
            }
            [path, value] => {
                let first = path.payload.first().filter(|first| !path.is_list && **first < 0x40);
                let first = first.ok_or("its path does not begin as one does")?;
                if path.payload.len() > 33 || first & 0x1f != 0 && first & 0x10 == 0 {
                    return Err("its path does not begin as one does");
                }
                if value.is_list {
                    return Err("it has a child inside that is no child of a branch");
                }
                let references = match (first & 0x20 != 0, tag) {
                    (false, _) => vec![Some((digest(value.payload)?, tag)), None],
                    (true, Tag::Account) => account(value.payload)?,
                    (true, _) => {
                        storage(value.payload)?;
                        vec![None, None]
                    }
                };
                Ok(Self { kind: Kind::Short, references })
            }
            _ => Err("it has neither 2 nor 17 items"),
        }
    }
}

fn digest(bytes: &[u8]) -> Result<[u8; 32], &'static str> {
    bytes.try_into().map_err(|_| "it refers to something by less than a hash")
}

fn account(value: &[u8]) -> Result<Vec<Option<Reference>>, &'static str> {
    let why = "it is a leaf of the account trie, and no account";
    let fields = items(value).map_err(|_| why)?;
    match fields.as_slice() {
        [nonce, balance, root, code]
            if fields.iter().all(|field| !field.is_list)
                && nonce.payload.len() <= 8
                && balance.payload.len() <= 32 =>
        {
            let (root, code) = (digest(root.payload)?, digest(code.payload)?);
            Ok(vec![Some((root, Tag::Storage)), Some((code, Tag::Code))])
        }
        _ => Err(why),
    }
}

fn storage(mut value: &[u8]) -> Result<(), &'static str> {
    let why = "it is a leaf of a storage trie, and no word";
    let word = Header::decode_bytes(&mut value, false).map_err(|_| why)?;
    if value.is_empty() && (1..=32).contains(&word.len()) { Ok(()) } else { Err(why) }
}
