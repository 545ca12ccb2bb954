//! Exhaustive search for forged answers: all trees of up to four leaves with indices of three bits, and all paths that
//! lead to their roots, whatever digests they are made of.

use super::{index, tree_of};
use crate::hash::{EMPTY, is_leaf};
use crate::{Digest, End, Index, Leaf, Path, PathError, Profile};
use std::collections::BTreeSet;

const BITS: u32 = 3;

/// All digests that a path may be made of: of all subtrees, and that of nothing.
fn parts(profile: Profile, leaves: &[Leaf]) -> BTreeSet<Digest> {
    let mut out = BTreeSet::from([EMPTY]);
    for depth in 0..=BITS {
        for prefix in 0..1u64 << depth {
            let of = |leaf: &&Leaf| {
                u128::from_be_bytes(leaf.index.0) >> 1 >> (127 - depth) == prefix.into()
            };
            let leaves: Vec<Leaf> = leaves.iter().filter(of).copied().collect();
            out.insert(super::subtree(profile, &leaves, depth as usize));
        }
    }
    out
}

/// A rule to join two sides: as inner nodes only, or also as leaves that move up.
type Join = fn(Profile, &Digest, &Digest) -> Digest;

fn nodes_only(profile: Profile, left: &Digest, right: &Digest) -> Digest {
    profile.node(left, right)
}

fn collapsing(profile: Profile, left: &Digest, right: &Digest) -> Digest {
    let moves = |digest: &Digest| is_leaf(digest) || *digest == EMPTY;
    match (left, right) {
        (&EMPTY, other) | (other, &EMPTY) if moves(other) => *other,
        _ => profile.node(left, right),
    }
}

/// All paths from an end up to the root, of which every digest on the way is one of the tree's.
fn paths(
    join: Join,
    profile: Profile,
    root: &Digest,
    of: &BTreeSet<Digest>,
    at: &Index,
    end: End,
) -> Vec<Path> {
    let first = match &end {
        End::Empty => EMPTY,
        End::Leaf(leaf) => leaf.digest(profile),
    };
    let mut found = Vec::new();
    for depth in 0..=BITS as usize {
        let mut ways: Vec<(Digest, Vec<Digest>)> = vec![(first, Vec::new())];
        for above in (0..depth).rev() {
            let mut next = Vec::new();
            for (below, siblings) in &ways {
                for sibling in of {
                    let digest = match at.bit(above) {
                        false => join(profile, below, sibling),
                        true => join(profile, sibling, below),
                    };
                    if of.contains(&digest) {
                        next.push((digest, [&[*sibling][..], siblings].concat()));
                    }
                }
            }
            ways = next;
        }
        let is_root =
            |(digest, siblings): (Digest, Vec<Digest>)| (digest == *root).then_some(siblings);
        let given = |sibling: Digest| (sibling != EMPTY).then_some(sibling);
        let to_path = |siblings: Vec<Digest>| Path {
            siblings: siblings.into_iter().map(given).collect(),
            end,
        };
        found.extend(ways.into_iter().filter_map(is_root).map(to_path));
    }
    found
}

/// Exactly one answer can be proven for each tree and each index: the right one. As a control, with leaves that move up
/// on the way, present indices have paths to nothing.
#[test]
fn exactly_one_answer_can_be_proven() {
    for profile in [Profile::Compress, Profile::Sha256] {
        exactly_one_answer(profile);
    }
}

fn exactly_one_answer(profile: Profile) {
    let (mut trees, mut hidden) = (0, 0);
    for set in 0..1u64 << (1 << BITS) {
        if set.count_ones() > 4 {
            continue;
        }
        trees += 1;
        let numbers: Vec<u64> = (0..1 << BITS).filter(|number| set >> number & 1 == 1).collect();
        let tree = tree_of(profile, &numbers, BITS);
        let leaves: Vec<Leaf> =
            numbers.iter().map(|n| tree.leaf(&index(*n, BITS)).unwrap().unwrap()).collect();
        let (root, of) = (tree.root(), parts(profile, &leaves));
        for number in 0..1 << BITS {
            let at = index(number, BITS);
            let expected = tree.leaf(&at).unwrap();
            let ends = leaves.iter().map(|leaf| End::Leaf(*leaf)).chain([End::Empty]);
            let mut answers = Vec::new();
            for end in ends {
                for path in paths(nodes_only, profile, &root, &of, &at, end) {
                    answers.push(path.verify(profile, &root, &at).unwrap());
                }
                let hides = expected.is_some() && end == End::Empty;
                if hides && !paths(collapsing, profile, &root, &of, &at, end).is_empty() {
                    hidden += 1;
                }
            }
            assert_eq!(answers, [expected], "{numbers:?} {number}");
        }
    }
    assert_eq!((trees, hidden), (163, 336));
}

/// All trees of depth two, whatever a server may sign: leaves in any places, twice, or beside nothing. No index has two
/// answers, and what is not where a tree of this profile has it is refused.
#[test]
fn no_root_has_two_answers() {
    let profile = Profile::Compress;
    let leaf = |number: u64, version| {
        let (index, commitment) = (index(number, BITS), super::commitment(number));
        Leaf { index, version, epoch: 1, commitment }
    };
    let leaves = [leaf(1, 0), leaf(1, 1), leaf(6, 0)];
    let bottom: Vec<Digest> =
        leaves.iter().map(|leaf| leaf.digest(profile)).chain([EMPTY]).collect();
    let pairs = bottom.iter().flat_map(|l| bottom.iter().map(|r| profile.node(l, r)));
    let middle: Vec<Digest> = pairs.chain(bottom.iter().copied()).collect();
    let of: BTreeSet<Digest> = middle.iter().copied().collect();
    let (mut present, mut absent, mut other, mut deep) = (0, 0, 0, 0);
    for (left, right) in middle.iter().flat_map(|l| middle.iter().map(move |r| (l, r))) {
        let root = profile.node(left, right);
        let of: BTreeSet<Digest> = of.iter().copied().chain([root]).collect();
        for number in [1, 2, 5, 6] {
            let at = index(number, BITS);
            let ends = leaves.iter().map(|leaf| End::Leaf(*leaf)).chain([End::Empty]);
            let all = ends.flat_map(|end| paths(nodes_only, profile, &root, &of, &at, end));
            let mut answers = Vec::new();
            for path in all {
                match path.verify(profile, &root, &at) {
                    Ok(answer) => answers.push(answer),
                    Err(PathError::OtherPlace) => other += 1,
                    Err(PathError::TooDeep) => deep += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(answers.len() <= 1, "{answers:?}");
            match answers.first() {
                Some(Some(leaf)) => {
                    assert_eq!(leaf.index, at);
                    present += 1;
                }
                Some(None) => absent += 1,
                None => {}
            }
        }
    }
    assert!([present, absent, other, deep].iter().all(|count| *count > 50));
}

/// A path may not end below the place where its end would be: the root that it leads to is not that of a tree.
#[test]
fn ends_are_where_the_tree_has_them() {
    for profile in [Profile::Compress, Profile::Sha256] {
        let at = index(1, BITS);
        let [own, other] = [1, 6].map(|number| Leaf {
            index: index(number, BITS),
            version: 0,
            epoch: 1,
            commitment: super::commitment(number),
        });
        let digest = |leaf: &Leaf| leaf.digest(profile);
        let node = profile.node(&digest(&own), &digest(&other));
        for (end, sibling, expected) in [
            (End::Empty, Some(digest(&other)), Err(PathError::TooDeep)),
            (End::Empty, None, Err(PathError::TooDeep)),
            (End::Empty, Some(node), Ok(None)),
            (End::Leaf(own), None, Err(PathError::TooDeep)),
            (End::Leaf(own), Some(digest(&other)), Ok(Some(own))),
            (End::Leaf(own), Some(node), Ok(Some(own))),
            (End::Leaf(other), Some(node), Err(PathError::OtherPlace)),
        ] {
            let first = match &end {
                End::Empty => EMPTY,
                End::Leaf(leaf) => digest(leaf),
            };
            let root = profile.node(&first, &sibling.unwrap_or(EMPTY));
            let path = Path { siblings: vec![sibling], end };
            assert_eq!(path.verify(profile, &root, &at), expected, "{end:?}");
            // Whoever makes up a path proves nothing about anybody.
            assert_eq!(path.verify(profile, &[4; 32], &at), Err(PathError::Root));
        }
    }
}

/// Paths that say more than they may.
#[test]
fn paths_have_one_form() {
    for profile in Profile::ALL {
        let tree = tree_of(profile, &[1, 6], BITS);
        let (root, at) = (tree.root(), index(1, BITS));
        let honest = tree.path(&at).unwrap();
        assert!(honest.verify(profile, &root, &at).is_ok());
        let longer = Path { siblings: [&honest.siblings[..], &[None]].concat(), ..honest.clone() };
        let expected = match profile {
            Profile::Full => PathError::Depth(129),
            _ => PathError::Root,
        };
        assert_eq!(longer.verify(profile, &root, &at), Err(expected));
        let long = Path { siblings: vec![Some([3; 32]); 129], ..honest.clone() };
        assert_eq!(long.verify(profile, &root, &at), Err(PathError::Depth(129)));
        // An empty subtree that is written out.
        let mut written = tree.path(&index(5, BITS)).unwrap();
        if let Some(place) = written.siblings.iter().position(Option::is_none) {
            written.siblings[place] = Some(profile.empty(place + 1));
            let error = written.verify(profile, &root, &index(5, BITS)).unwrap_err();
            assert_eq!(error, PathError::Sibling(place + 1));
        }
        // The path of one index says nothing about another one on the other side.
        assert!(honest.verify(profile, &root, &index(6, BITS)).is_err());
        let mut other = honest.clone();
        let End::Leaf(leaf) = &mut other.end else { unreachable!() };
        leaf.version += 1;
        assert_eq!(other.verify(profile, &root, &at), Err(PathError::Root));
    }
    let empty = Path { siblings: Vec::new(), end: End::Empty };
    assert_eq!(empty.verify(Profile::Sha256, &EMPTY, &index(0, BITS)), Ok(None));
}
