//! Tests of the circuit of epochs.

mod attacks;
mod honest;
mod pinned;
mod proofs;
mod script;
mod search;

use hekaton_directory::{Change, Commitment, Digest, Index, Profile, Tree, Witness};

/// An index whose first bits are those of a small number.
fn index(number: u128, bits: u32) -> Index {
    Index((number << (128 - bits)).to_be_bytes())
}

fn commitment(number: u8) -> Commitment {
    Commitment([number; 32])
}

fn change(index: Index, number: u8) -> Change {
    Change { index, commitment: commitment(number) }
}

/// The chain before the first epoch of tests.
const CHAIN: Digest = [9; 32];

/// The tree after epochs with these changes.
fn tree_of(profile: Profile, epochs: &[Vec<Change>]) -> Tree {
    epochs.iter().fold(Tree::new(profile), |tree, changes| tree.update(changes).unwrap())
}

/// The witness of epochs with these changes after a tree, and the tree after them.
fn witness_of(tree: &Tree, epochs: &[Vec<Change>]) -> (Witness, Tree) {
    let (profile, epoch, root) = (tree.profile(), tree.epoch(), tree.root());
    let mut witness = Witness { profile, epoch, root, chain: CHAIN, steps: Vec::new() };
    let mut tree = tree.clone();
    for changes in epochs {
        witness.steps.extend(tree.steps(changes).unwrap());
        tree = tree.update(changes).unwrap();
    }
    (witness, tree)
}
