//! The honest prover's assignment of strings to subcircuits.

use crate::blocks::BlockValues;
use crate::chain::Tag;
use crate::error::WitnessError;
use crate::header::{HeaderValues, MAX_HEADER, MIN_HEADER};
use crate::node::StringValues;
use crate::sizes::{Counts, Sizes};
use alloy_rlp::Header;
use hekaton_witness_format::header::BlockHeader;
use hekaton_witness_format::trie::{Child, Node, Trie};
use hekaton_witness_format::walk::{Digests, Walk};
use hekaton_witness_format::{EMPTY_CODE, EMPTY_ROOT, ExecutionWitness, keccak};
use std::collections::{BTreeMap, HashSet};

/// A digest that a node contains.
type Reference = ([u8; 32], Tag);

/// The strings of a witness, by the type that proves them.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    pub(crate) branches: Vec<StringValues>,
    pub(crate) leaves: Vec<StringValues>,
    pub(crate) codes: Vec<BlockValues>,
    pub(crate) mixed_branches: Vec<StringValues>,
    pub(crate) mixed_leaves: Vec<StringValues>,
    pub(crate) header: Option<HeaderValues>,
    pub(crate) hash: [u8; 32],
}

/// A node that is reached from the state root.
struct Reached {
    /// Its references; for a branch, in the order of its children, with `None` for a child that is not a hash.
    references: Vec<Option<Reference>>,
    form: NodeForm,
}

/// The form in which a node is proven: each has rows of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeForm {
    /// A branch all of whose children are hashes.
    Branch,
    /// A branch some of whose children are inside it.
    MixedBranch,
    /// A leaf or an extension.
    Short,
}

impl Reached {
    fn new(node: &Node<'_>, tag: Tag) -> Self {
        let (form, references) = match *node {
            Node::Branch { children, .. } => {
                let is_mixed = children.contains(&Child::Small);
                let references = children.iter().map(|child| match child {
                    Child::Hash(hash) => Some((**hash, tag)),
                    Child::Absent | Child::Small => None,
                });
                let form = if is_mixed { NodeForm::MixedBranch } else { NodeForm::Branch };
                (form, references.collect())
            }
            Node::Extension { child, .. } => (NodeForm::Short, vec![Some((*child, tag)), None]),
            Node::Account { storage_root, code_hash } => {
                let references = [(*storage_root, Tag::Storage), (*code_hash, Tag::Code)];
                (NodeForm::Short, references.map(Some).to_vec())
            }
            Node::Word => (NodeForm::Short, vec![None, None]),
        };
        Self { references, form }
    }
}

/// The digests of a list, without those of the empty node and the empty code, which some nodes of the network send.
fn present(digests: &Digests) -> impl Iterator<Item = (&[u8; 32], usize)> {
    digests.iter().filter(|(digest, _)| **digest != EMPTY_ROOT && **digest != EMPTY_CODE)
}

/// Returns the state root in the header of the parent.
fn state_root(header: &[u8]) -> Result<[u8; 32], WitnessError> {
    let BlockHeader { state_root, .. } = BlockHeader::read(header)?;
    // The root is in the same place in all block headers whose RLP list has a header of three bytes, as all real ones do.
    let (bytes, least, most) = (header.len(), MIN_HEADER, MAX_HEADER);
    match (least..=most).contains(&bytes) {
        true => Ok(state_root),
        false => Err(WitnessError::HeaderLength { bytes, least, most }),
    }
}

impl Assignment {
    /// Reaches all strings of a witness from its state root, and assigns them to types.
    pub(crate) fn new(witness: &ExecutionWitness<'_>) -> Result<Self, WitnessError> {
        let header = witness.headers.iter().last().ok_or(WitnessError::NoHeader)?;
        let root = state_root(header)?;
        let (nodes, codes) = (Digests::of(&witness.state), Digests::of(&witness.codes));
        // Sorted in the order of the witness, which fixes the order of the chain.
        let mut found: BTreeMap<(usize, Tag), Reached> = BTreeMap::new();
        let walk = Walk::from_root(&witness.state, &nodes, root, |index, trie, node| {
            let tag = Tag::from(trie);
            found.insert((index, tag), Reached::new(node, tag));
        })?;
        let is_asked = |digest: &[u8; 32]| walk.codes.contains(digest);
        let lost_node = present(&nodes).filter(|(_, index)| walk.reached[*index] == [None; 2]);
        let lost_code = present(&codes).filter(|(digest, _)| !is_asked(digest));
        let lost =
            [("node", lost_node.map(|it| it.1).min()), ("code", lost_code.map(|it| it.1).min())];
        if let Some((what, index)) = lost.into_iter().find_map(|(what, at)| Some((what, at?))) {
            return Err(WitnessError::Unreachable { what, index });
        }

        // Each string asks for its digest once, and the first string that refers to it gives the digest.
        let mut asked: HashSet<Reference> = HashSet::new();
        for (digest, index) in present(&nodes) {
            // A node may be in tries of both kinds, and is then proven once for each kind.
            let tries = [Trie::Accounts, Trie::Storage]
                .into_iter()
                .filter(|trie| walk.reached[index][*trie as usize].is_some());
            asked.extend(tries.map(|trie| (*digest, Tag::from(trie))));
        }
        asked.extend(present(&codes).map(|(digest, _)| (*digest, Tag::Code)));
        let mut give = |reference: &Reference| u64::from(asked.remove(reference));
        let count = give(&(root, Tag::Account));
        let mut assignment = Self {
            header: Some(HeaderValues { blocks: BlockValues::of(header), count }),
            hash: keccak(header),
            ..Self::default()
        };
        for ((index, tag), reached) in found {
            let string = witness.state.get(index).expect("the walk has visited it");
            assignment.add(string, tag, &reached, &mut give);
        }
        let mut order: Vec<usize> = present(&codes).map(|(_, index)| index).collect();
        order.sort_unstable();
        let in_order = order.into_iter().filter_map(|index| witness.codes.get(index));
        assignment.codes = in_order.flat_map(BlockValues::of).collect();
        Ok(assignment)
    }

    /// Adds a node to the strings of its type.
    fn add(
        &mut self,
        string: &[u8],
        tag: Tag,
        Reached { references, form }: &Reached,
        give: &mut impl FnMut(&Reference) -> u64,
    ) {
        let mut counts: Vec<u64> =
            references.iter().map(|reference| reference.as_ref().map_or(0, &mut *give)).collect();
        let places = match form {
            NodeForm::Branch => references.iter().map(|it| usize::from(it.is_some())).collect(),
            NodeForm::Short => places_of_short(string, tag),
            NodeForm::MixedBranch => starts(string),
        };
        if *form == NodeForm::MixedBranch {
            // Only hashes have a place for a count.
            let mut is_hash = references.iter().map(Option::is_some);
            counts.retain(|_| is_hash.next() == Some(true));
        }
        let values = StringValues { blocks: BlockValues::of(string), tag, places, counts };
        match form {
            NodeForm::Branch => self.branches.push(values),
            NodeForm::MixedBranch => self.mixed_branches.push(values),
            NodeForm::Short if values.blocks.len() == 1 => self.leaves.push(values),
            NodeForm::Short => self.mixed_leaves.push(values),
        }
    }

    /// Returns the number of subcircuits that are needed.
    pub(crate) fn counts(&self, sizes: Sizes) -> Counts {
        let mixed_branches = self.mixed_branches.len().div_ceil(sizes.mixed_branches);
        let mixed_leaves = self.mixed_leaves.len().div_ceil(sizes.mixed_leaves);
        Counts {
            branches: self.branches.len().div_ceil(sizes.branches),
            leaves: self.leaves.len().div_ceil(sizes.leaves),
            codes: self.codes.len().div_ceil(sizes.codes),
            mixed: mixed_branches.max(mixed_leaves),
        }
    }

    /// Checks that the subcircuits have room for all strings.
    pub(crate) fn check(&self, sizes: Sizes, counts: Counts) -> Result<(), WitnessError> {
        let needed = self.counts(sizes).all();
        for ((kind, needed), (_, given)) in needed.into_iter().zip(counts.all()) {
            if needed > given {
                return Err(WitnessError::Room { kind, needed, given });
            }
        }
        Ok(())
    }
}

/// Returns the places in a node at which its items begin.
fn starts(node: &[u8]) -> Vec<usize> {
    let header = |rest: &mut &[u8]| Header::decode(rest).expect("the walk has read the node");
    let mut rest = node;
    header(&mut rest);
    let mut starts = Vec::new();
    while !rest.is_empty() {
        starts.push(node.len() - rest.len());
        let Header { payload_length, .. } = header(&mut rest);
        rest = &rest[payload_length..];
    }
    starts
}

/// Returns the length of the path (0 without a header), the place of the value, and the place of the balance in it.
fn places_of_short(node: &[u8], tag: Tag) -> Vec<usize> {
    let starts = starts(node);
    let (path, value) = (starts[0], starts[1]);
    // A path of one byte below 0x80 is its own encoding; longer ones have a header of one byte, since they have at most 33.
    let length = if value == path + 1 { 0 } else { value - path - 1 };
    let is_leaf = node[if length == 0 { path } else { path + 1 }] & 0x20 != 0;
    let balance = match is_leaf && tag == Tag::Account {
        // Behind two headers of two bytes and the nonce: a byte below 0x80, or 0x80 plus the number of bytes that follow.
        true => value + 5 + usize::from(node[value + 4].saturating_sub(0x80)),
        false => 0,
    };
    vec![length, value, balance]
}
