//! Tests of the directory.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

mod audit;
mod forgeries;
mod formats;
mod known;
mod log;
mod record;
mod tree;

use crate::{Change, Commitment, Index, Leaf, Profile, Tree};
use std::collections::BTreeMap;

/// An index whose first bits are those of a small number.
pub(crate) fn index(number: u64, bits: u32) -> Index {
    Index((u128::from(number) << (128 - bits)).to_be_bytes())
}

pub(crate) fn commitment(number: u64) -> Commitment {
    let mut digest = [7; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    Commitment(digest)
}

/// The directory in twenty lines: a map, from which each root is computed anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) leaves: BTreeMap<Index, Leaf>,
    epoch: u32,
}

impl Model {
    pub(crate) fn update(&mut self, changes: &[Change]) {
        for Change { index, commitment } in changes.iter().copied() {
            let version = self.leaves.get(&index).map_or(0, |leaf| leaf.version + 1);
            let epoch = self.epoch;
            self.leaves.insert(index, Leaf { index, version, epoch, commitment });
        }
        self.epoch += 1;
    }

    pub(crate) fn root(&self, profile: Profile) -> crate::Digest {
        let leaves: Vec<Leaf> = self.leaves.values().copied().collect();
        subtree(profile, &leaves, 0)
    }
}

fn subtree(profile: Profile, leaves: &[Leaf], depth: usize) -> crate::Digest {
    match leaves {
        [] => profile.empty(depth),
        [leaf] if profile.collapses() || depth == 128 => leaf.digest(profile),
        _ => {
            let (left, right) =
                leaves.split_at(leaves.partition_point(|leaf| !leaf.index.bit(depth)));
            profile.node(&subtree(profile, left, depth + 1), &subtree(profile, right, depth + 1))
        }
    }
}

/// A tree of these small numbers, in one epoch.
pub(crate) fn tree_of(profile: Profile, numbers: &[u64], bits: u32) -> Tree {
    let change =
        |number: &u64| Change { index: index(*number, bits), commitment: commitment(*number) };
    Tree::new(profile).update(&numbers.iter().map(change).collect::<Vec<_>>()).unwrap()
}
