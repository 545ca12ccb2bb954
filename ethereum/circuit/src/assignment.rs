//! The honest prover's assignment of strings to subcircuits.

use crate::blocks::BlockValues;
use crate::error::WitnessError;
use crate::header::{EMPTY_CODE, EMPTY_ROOT, HeaderValues, MAX_HEADER};
use crate::input::{Witness, keccak};
use crate::node::StringValues;
use crate::sizes::{Counts, Sizes};
use crate::trie::{Kind, Node, Reference, Tag, state_root};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

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

/// Strings by their digests. Duplicates count once, and empty strings, which some nodes send, are left out.
struct Strings {
    digests: Vec<[u8; 32]>,
    indices: HashMap<[u8; 32], usize>,
}

impl Strings {
    fn of(strings: &[Vec<u8>]) -> Self {
        let digests: Vec<[u8; 32]> = strings.iter().map(|string| keccak(string)).collect();
        let mut indices = HashMap::new();
        for (at, digest) in digests.iter().enumerate() {
            if *digest != EMPTY_ROOT && *digest != EMPTY_CODE {
                indices.entry(*digest).or_insert(at);
            }
        }
        Self { digests, indices }
    }

    fn find(&self, digest: &[u8; 32]) -> Option<usize> {
        self.indices.get(digest).copied()
    }

    fn indices(&self) -> impl Iterator<Item = usize> {
        self.indices.values().copied()
    }
}

/// A string that is reached from the state root.
struct Reached {
    references: Vec<Option<Reference>>,
    kind: Kind,
}

impl Assignment {
    /// Walks from the state root to all strings.
    pub(crate) fn new(witness: &Witness) -> Result<Self, WitnessError> {
        let header = witness.parent()?;
        let root = state_root(header, MAX_HEADER).map_err(WitnessError::Header)?;
        let (nodes, codes) = (Strings::of(&witness.state), Strings::of(&witness.codes));
        let mut found: HashMap<(usize, Tag), Reached> = HashMap::new();
        let mut asked_codes = HashSet::new();
        let mut queue = VecDeque::from([(root, Tag::Account)]);
        if root != EMPTY_ROOT && nodes.find(&root).is_none() {
            return Err(WitnessError::NoRoot);
        }
        while let Some((digest, tag)) = queue.pop_front() {
            if tag == Tag::Code {
                asked_codes.extend(codes.find(&digest));
                continue;
            }
            let Some(index) = nodes.find(&digest) else { continue };
            if found.contains_key(&(index, tag)) {
                continue;
            }
            let string = &witness.state[index];
            let wrong = |why| WitnessError::Node { index, bytes: string.len(), why };
            let Node { kind, references } = Node::read(string, tag).map_err(wrong)?;
            queue.extend(references.iter().flatten());
            found.insert((index, tag), Reached { references, kind });
        }
        let reached: BTreeSet<usize> = found.keys().map(|(index, _)| *index).collect();
        let missing = |strings: &Strings, what, has: &dyn Fn(&usize) -> bool| match strings
            .indices()
            .filter(|index| !has(index))
            .min()
        {
            Some(index) => Err(WitnessError::Unreachable { what, index }),
            None => Ok(()),
        };
        missing(&nodes, "node", &|index| reached.contains(index))?;
        missing(&codes, "code", &|index| asked_codes.contains(index))?;

        // Each string asks once, and the first string that can give it does.
        let mut asked: HashMap<Reference, u64> = HashMap::new();
        for (index, tag) in found.keys() {
            *asked.entry((nodes.digests[*index], *tag)).or_default() += 1;
        }
        for index in &asked_codes {
            *asked.entry((codes.digests[*index], Tag::Code)).or_default() += 1;
        }
        let mut give = |reference: &Reference| asked.remove(reference).unwrap_or(0);
        let count = give(&(root, Tag::Account));
        let mut assignment = Self {
            header: Some(HeaderValues { blocks: BlockValues::of(header), count }),
            hash: keccak(header),
            ..Self::default()
        };
        let mut order: Vec<(usize, Tag)> = found.keys().copied().collect();
        order.sort_unstable();
        for key in order {
            let (Reached { references, kind }, (index, tag)) = (&found[&key], key);
            let string = &witness.state[index];
            let mut counts: Vec<u64> = references
                .iter()
                .map(|reference| reference.as_ref().map_or(0, &mut give))
                .collect();
            let places = match kind {
                Kind::Branch => references.iter().map(|it| usize::from(it.is_some())).collect(),
                Kind::Short => places_of_short(string, tag),
                Kind::MixedBranch => starts(string),
            };
            if *kind == Kind::MixedBranch {
                // Only hashes have a place for a count.
                let mut is_hash = references.iter().map(Option::is_some);
                counts.retain(|_| is_hash.next() == Some(true));
            }
            let values = StringValues { blocks: BlockValues::of(string), tag, places, counts };
            match kind {
                Kind::Branch => assignment.branches.push(values),
                Kind::MixedBranch => assignment.mixed_branches.push(values),
                Kind::Short if values.blocks.len() == 1 => assignment.leaves.push(values),
                Kind::Short => assignment.mixed_leaves.push(values),
            }
        }
        let mut asked_codes: Vec<usize> = asked_codes.into_iter().collect();
        asked_codes.sort_unstable();
        for index in asked_codes {
            assignment.codes.extend(BlockValues::of(&witness.codes[index]));
        }
        Ok(assignment)
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

/// Returns the places in a list at which its items begin.
fn starts(node: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut rest = node;
    if alloy_rlp::Header::decode(&mut rest).is_err() {
        return starts;
    }
    while !rest.is_empty() {
        starts.push(node.len() - rest.len());
        match alloy_rlp::Header::decode(&mut rest) {
            Ok(header) => rest = rest.get(header.payload_length..).unwrap_or_default(),
            Err(_) => break,
        }
    }
    starts
}

/// Returns the length of the path (0 without a header), the place of the value, and the place of the balance in it.
fn places_of_short(node: &[u8], tag: Tag) -> Vec<usize> {
    let starts = starts(node);
    let (Some(&path), Some(&value)) = (starts.first(), starts.get(1)) else { return Vec::new() };
    let length = if value == path + 1 { 0 } else { value - path - 1 };
    let is_leaf = node[if length == 0 { path } else { path + 1 }] & 0x20 != 0;
    let balance = match is_leaf && tag == Tag::Account {
        // Behind two headers of two bytes and the nonce.
        true => {
            let nonce = node.get(value + 4).copied().unwrap_or_default();
            value + 5 + usize::from(nonce.saturating_sub(0x80).min(8))
        }
        false => 0,
    };
    vec![length, value, balance]
}
