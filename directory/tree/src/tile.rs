//! Parts of trees that are not in memory: a tree is stored as *tiles*, each with a few levels of it.
//!
//! A tile begins at a node that has two others below it, at a depth that is a multiple of the number of levels; only that
//! of the root may have less. It says what leaves are in it and the digests below it, and nothing else: that it is what was
//! stored is checked against its own digest, which the tile above it has.

use crate::hash::{DEPTH, Profile};
use crate::key::Index;
use crate::leaf::Leaf;
use crate::place::Place;
use crate::read::{DecodeError, Reader};
use crate::tree::{Inner, Node, Tree};
use std::collections::BTreeMap;

/// The kinds of nodes in a tile.
const EMPTY: u8 = 0;
const LEAF: u8 = 1;
const BELOW: u8 = 2;
const INNER: u8 = 3;

/// The reason why a tile was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TileError {
    /// Its bytes are not those of a tile.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It is not the one that the tree has there.
    #[error("it has another digest than the tree above it says")]
    Digest,
}

impl Tree {
    /// The parts that the ways to these indices need first, in their order, of those that are not in memory. Once they
    /// are there, others may be missing below them.
    ///
    /// `indices` are sorted.
    pub fn missing(&self, indices: &[Index]) -> Vec<Place> {
        let mut places = Vec::new();
        missing(&self.root, 0, indices, &mut places);
        places
    }

    /// The same tree with these parts in memory, each of `levels` levels.
    ///
    /// # Errors
    /// If a tile is not what the tree has in that place, with the place.
    pub fn load(
        &self,
        tiles: &BTreeMap<Place, Vec<u8>>,
        levels: usize,
    ) -> Result<Self, (Place, TileError)> {
        let places: Vec<(&Place, &Vec<u8>)> = tiles.iter().collect();
        let root = load(self.profile, levels, &self.root, 0, &places)?;
        Ok(self.with_root(root))
    }

    /// The tiles that are on the ways to these indices, each of `levels` levels: after an update of them, all that it has
    /// changed.
    ///
    /// `indices` are sorted.
    pub fn tiles(&self, indices: &[Index], levels: usize) -> Vec<(Place, Vec<u8>)> {
        let mut out = Vec::new();
        // `tiles` writes inner nodes only, and even a root without any below it needs a row.
        if !matches!(self.root, Node::Inner(_) | Node::Away(_)) {
            out.push((Place::ROOT, tile(self.profile, &self.root, levels)));
        }
        tiles(self.profile, &self.root, 0, indices, levels, &mut out);
        out
    }

    /// The same tree without what begins at a depth on the ways to these indices.
    ///
    /// `indices` are sorted.
    #[must_use]
    pub fn forget(&self, indices: &[Index], depth: usize) -> Self {
        self.with_root(forget(self.profile, &self.root, 0, indices, depth))
    }
}

/// Indices on either side of a node at a depth.
fn split(indices: &[Index], depth: usize) -> [&[Index]; 2] {
    let (left, right) = indices.split_at(indices.partition_point(|index| !index.bit(depth)));
    [left, right]
}

fn missing(node: &Node, depth: usize, indices: &[Index], places: &mut Vec<Place>) {
    match (node, indices.first()) {
        (Node::Away(_), Some(index)) => places.push(Place::of(index, depth)),
        (Node::Inner(inner), Some(_)) => {
            for (side, indices) in inner.sides.iter().zip(split(indices, depth)) {
                missing(side, depth + 1, indices, places);
            }
        }
        _ => {}
    }
}

fn load(
    profile: Profile,
    levels: usize,
    node: &Node,
    depth: usize,
    places: &[(&Place, &Vec<u8>)],
) -> Result<Node, (Place, TileError)> {
    let Some((place, bytes)) = places.first() else { return Ok(node.clone()) };
    match node {
        Node::Away(digest) if place.depth() == depth => {
            let refuse = |why| (**place, why);
            let mut reader = Reader::new(bytes);
            let node =
                read(profile, &mut reader, place, 0, levels).map_err(|e| refuse(e.into()))?;
            reader.end().map_err(|e| refuse(e.into()))?;
            // The digest is bound to the signed root and the row is not, so a damaged or exchanged
            // tile ends here.
            match node.digest(profile, depth) == **digest {
                true => Ok(node),
                false => Err(refuse(TileError::Digest)),
            }
        }
        Node::Inner(inner) => {
            // Sorted by depth first, so both sides are picked out.
            let of = |bit| -> Vec<(&Place, &Vec<u8>)> {
                let there =
                    |place: &Place| place.depth() > depth && place.prefix().bit(depth) == bit;
                places.iter().copied().filter(|(place, _)| there(place)).collect()
            };
            let side =
                |bit| load(profile, levels, &inner.sides[usize::from(bit)], depth + 1, &of(bit));
            Ok(Node::replaced(inner, [side(false)?, side(true)?]))
        }
        other => Ok(other.clone()),
    }
}

fn tiles(
    profile: Profile,
    node: &Node,
    depth: usize,
    indices: &[Index],
    levels: usize,
    out: &mut Vec<(Place, Vec<u8>)>,
) {
    let (Node::Inner(inner), Some(index)) = (node, indices.first()) else { return };
    if depth.is_multiple_of(levels) {
        out.push((Place::of(index, depth), tile(profile, node, levels)));
    }
    for (side, indices) in inner.sides.iter().zip(split(indices, depth)) {
        tiles(profile, side, depth + 1, indices, levels, out);
    }
}

fn forget(profile: Profile, node: &Node, depth: usize, indices: &[Index], from: usize) -> Node {
    match node {
        Node::Inner(_) if depth == from && !indices.is_empty() => {
            Node::Away(node.digest(profile, depth).into())
        }
        Node::Inner(inner) if !indices.is_empty() && holds(inner, depth, from) => {
            let [left, right] = split(indices, depth);
            let side =
                |at: usize, indices| forget(profile, &inner.sides[at], depth + 1, indices, from);
            Node::replaced(inner, [side(0, left), side(1, right)])
        }
        other => other.clone(),
    }
}

/// Reports whether subtrees at depth `from` may be below a node at `depth`.
fn holds(inner: &Inner, depth: usize, from: usize) -> bool {
    depth < from && inner.sides.iter().any(|side| matches!(side, Node::Inner(_)))
}

fn tile(profile: Profile, node: &Node, levels: usize) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, node, levels, &mut out);
    out
}

/// Appends a node in preorder; parts below the last level as their digests.
fn write(profile: Profile, node: &Node, levels: usize, out: &mut Vec<u8>) {
    match node {
        Node::Empty => out.push(EMPTY),
        Node::Leaf(lone) => {
            out.push(LEAF);
            lone.leaf.write(out);
        }
        Node::Inner(inner) if levels > 0 => {
            out.push(INNER);
            for side in &inner.sides {
                write(profile, side, levels - 1, out);
            }
        }
        Node::Inner(_) | Node::Away(_) => {
            out.push(BELOW);
            // Any depth would do, since these two kinds of nodes keep their digests.
            out.extend(node.digest(profile, DEPTH));
        }
    }
}

fn read(
    profile: Profile,
    reader: &mut Reader<'_>,
    place: &Place,
    level: usize,
    levels: usize,
) -> Result<Node, DecodeError> {
    let depth = place.depth() + level;
    match reader.byte("nodes")? {
        EMPTY => Ok(Node::Empty),
        LEAF => {
            let leaf = Leaf::read(reader)?;
            match leaf.index.common(&place.prefix()) >= depth {
                true => Ok(Node::lone(profile, leaf, depth)),
                false => Err(DecodeError::Field("leaf is of another place".into())),
            }
        }
        BELOW if level == levels => Ok(Node::Away(reader.array::<32>("digest")?.into())),
        INNER if level < levels && depth < DEPTH => {
            let left = read(profile, reader, place, level + 1, levels)?;
            let right = read(profile, reader, &place.right(depth), level + 1, levels)?;
            Ok(Node::inner(profile, [left, right], depth))
        }
        other => Err(DecodeError::Field(format!("node at level {level} has kind {other}"))),
    }
}
