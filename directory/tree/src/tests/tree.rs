//! Trees have the roots of the model, and prove what they have.

use super::{Model, commitment, index, tree_of};
use crate::{Change, End, Index, Leaf, Opening, PathError, Profile, Tree, UpdateError};
use proptest::prelude::*;

/// Indices that part late, early, or both.
fn place(number: u64) -> Index {
    let [high, low] = [number >> 3 & 7, number & 7].map(u128::from);
    Index((high << 125 | low).to_be_bytes())
}

fn batches() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let batch = prop::collection::btree_set(0u64..64, 0..12);
    prop::collection::vec(batch.prop_map(|set| set.into_iter().collect()), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 60, ..Default::default() })]

    /// Any batches, in any order: roots, leaves and paths are those of the model.
    #[test]
    fn trees_are_as_the_model(batches in batches(), salt: u64) {
        for profile in Profile::ALL {
            let (mut tree, mut model) = (Tree::new(profile), Model::default());
            for (number, batch) in (0u64..).zip(&batches) {
                let change = |at: &u64| Change {
                    index: place(*at),
                    commitment: commitment(at ^ number << 8 ^ salt),
                };
                let mut changes: Vec<Change> = batch.iter().map(change).collect();
                changes.reverse();
                (tree, _) = (tree.update(&changes).unwrap(), model.update(&changes));
                prop_assert_eq!(tree.root(), model.root(profile));
                prop_assert_eq!(tree.leaves(), model.leaves.len() as u64);
            }
            let root = tree.root();
            for at in 0..64 {
                let index = place(at);
                let expected = model.leaves.get(&index).copied();
                prop_assert_eq!(tree.leaf(&index).unwrap(), expected);
                let path = tree.path(&index).unwrap();
                prop_assert_eq!(path.verify(profile, &root, &index), Ok(expected));
                let read = crate::Path::decode(&path.encode()).unwrap();
                prop_assert_eq!(read, path);
            }
        }
    }
}

/// A batch that is computed on several threads, and one change after the other.
#[test]
fn large_batches_are_as_small_ones() {
    let changes: Vec<Change> = (0..2000u64)
        .map(|i| {
            let index = Index::of(&i.to_be_bytes()).unwrap();
            Change { index, commitment: commitment(i) }
        })
        .collect();
    for profile in [Profile::Compress, Profile::Sha256] {
        let tree = Tree::new(profile).update(&changes).unwrap();
        let mut model = Model::default();
        model.update(&changes);
        assert_eq!((tree.root(), tree.leaves()), (model.root(profile), 2000));
        // Paths are as short as trees of that size have them.
        let longest =
            changes.iter().map(|change| tree.path(&change.index).unwrap().siblings.len()).max();
        assert!((11..40).contains(&longest.unwrap()), "{longest:?}");
    }
}

#[test]
fn changes_that_no_epoch_makes_are_refused() {
    let tree = tree_of(Profile::Compress, &[1, 2], 3);
    let change = |number| Change { index: index(number, 3), commitment: commitment(9) };
    let error = tree.update(&[change(2), change(5), change(2)]).unwrap_err();
    assert_eq!(error, UpdateError::Twice(0, 2));
    assert_eq!(tree.update(&[]).map(|next| (next.epoch(), next.root())), Ok((2, tree.root())));
}

/// A leaf has no version after the largest one, and a directory no epoch.
#[test]
fn versions_and_epochs_end() {
    let place = index(1, 3);
    let change = Change { index: place, commitment: commitment(2) };
    let leaf = Leaf { index: place, version: u32::MAX, epoch: 0, commitment: commitment(1) };
    let tree = Tree::with_one(Profile::Compress, leaf, 7);
    assert_eq!(tree.update(&[change]).unwrap_err(), UpdateError::Version(0));
    let tree =
        Tree::with_one(Profile::Compress, Leaf { version: u32::MAX - 1, ..leaf }, u32::MAX - 1);
    let next = tree.update(&[change]).unwrap();
    let found = next.leaf(&place).unwrap().unwrap();
    assert_eq!((found.version, found.epoch, next.epoch()), (u32::MAX, u32::MAX - 1, u32::MAX));
    assert_eq!(next.update(&[]).unwrap_err(), UpdateError::Epoch);
}

/// The last bit of a digest says what kind of node it is of, and a digest of one profile is not one of another.
#[test]
fn digests_of_kinds_and_profiles_differ() {
    let mut roots = Vec::new();
    for profile in Profile::ALL {
        let tree = tree_of(profile, &[3, 6], 3);
        let leaf = tree.leaf(&index(3, 3)).unwrap().unwrap();
        assert_eq!((leaf.digest(profile)[31] & 1, tree.root()[31] & 1), (1, 0));
        roots.push(tree.root());
        let path = tree.path(&index(3, 3)).unwrap();
        assert!(matches!(path.end, End::Leaf(_)));
        let depth = if profile == Profile::Full { 128 } else { 1 };
        assert_eq!(path.siblings.len(), depth);
        for other in Profile::ALL.into_iter().filter(|other| *other != profile) {
            assert!(path.verify(other, &tree.root(), &index(3, 3)).is_err());
        }
        assert_eq!(path.verify(profile, &[0; 32], &index(3, 3)), Err(PathError::Root));
    }
    roots.dedup();
    assert_eq!(roots.len(), 3);
    // SHA-256's compression function of a block of zeros, from its initial state: the known answer of its first word.
    let zeros = Profile::Compress.combine(&[0; 32], &[0; 32]);
    assert_eq!(zeros[..4], [0xda, 0x56, 0x98, 0xbe]);
    let label = Opening { salt: [1; 32], value: b"key".to_vec() };
    assert_ne!(label.digest(b"a").unwrap(), label.digest(b"b").unwrap());
}
