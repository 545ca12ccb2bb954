//! The log: frontiers, and proofs of entries and of continuation.

use crate::Digest;
use crate::log::{Complete, Frontier, contains, continues, entry};

fn entries(count: u64) -> Vec<Digest> {
    (0..count).map(|number| entry(&number.to_be_bytes())).collect()
}

fn root(entries: &[Digest]) -> Digest {
    let mut log = Frontier::default();
    log.append(entries);
    log.root()
}

/// The largest power of two below a number of entries, where RFC 9162 splits them.
fn middle(count: usize) -> usize {
    count.next_power_of_two() / 2
}

/// RFC 9162, section 2.1.3.1.
pub(super) fn inclusion(entries: &[Digest], index: usize) -> Vec<Digest> {
    if entries.len() == 1 {
        return Vec::new();
    }
    let (left, right) = entries.split_at(middle(entries.len()));
    let (mut proof, beside) = match index < left.len() {
        true => (inclusion(left, index), right),
        false => (inclusion(right, index - left.len()), left),
    };
    proof.push(root(beside));
    proof
}

/// RFC 9162, section 2.1.4.1.
pub(super) fn consistency(entries: &[Digest], old: usize, is_whole: bool) -> Vec<Digest> {
    if old == entries.len() {
        return if is_whole { Vec::new() } else { vec![root(entries)] };
    }
    let (left, right) = entries.split_at(middle(entries.len()));
    let (mut proof, beside) = match old <= left.len() {
        true => (consistency(left, old, is_whole), right),
        false => (consistency(right, old - left.len(), false), left),
    };
    proof.push(root(beside));
    proof
}

/// A log continues from its peaks, of which each size has its own number.
#[test]
fn peaks_are_a_frontier() {
    for size in 0..70 {
        let mut log = Frontier::default();
        log.append(&entries(size));
        let peaks = log.peaks();
        assert_eq!(Frontier::with_peaks(size, &peaks), Some(log.clone()), "{size}");
        assert_eq!(Frontier::with_peaks(size, &[&peaks[..], &[[1; 32]]].concat()), None);
        if size > 0 {
            assert_eq!(Frontier::with_peaks(size, &peaks[1..]), None);
            let mut other = peaks.clone();
            other[0][0] ^= 1;
            assert_ne!(Frontier::with_peaks(size, &other).unwrap().root(), log.root());
        }
        for more in [1, 3] {
            let mut continued = Frontier::with_peaks(size, &peaks).unwrap();
            continued.append(&entries(size + more)[size as usize..]);
            assert_eq!(continued.root(), root(&entries(size + more)));
        }
    }
}

/// However entries are appended, roots and complete subtrees are the same.
#[test]
fn batches_are_as_single_entries() {
    let all = entries(70);
    let mut one = Frontier::default();
    let mut singly: Vec<Complete> = all.iter().flat_map(|digest| one.append(&[*digest])).collect();
    singly.sort_by_key(|complete| (complete.level, complete.index));
    for size in [2, 3, 7, 16, 31, 70] {
        let mut log = Frontier::default();
        let mut complete: Vec<Complete> =
            all.chunks(size).flat_map(|some| log.append(some)).collect();
        complete.sort_by_key(|complete| (complete.level, complete.index));
        assert_eq!((&log, &complete), (&one, &singly), "{size}");
    }
    let of_level = |level| singly.iter().filter(|complete| complete.level == level).count();
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(of_level), [70, 35, 17, 8, 4, 2, 1, 0]);
    // Known answers of RFC 6962's reference implementation: no entry, and one empty entry.
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let hex = |digest: Digest| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(Frontier::default().root()), empty);
    let one = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
    assert_eq!(hex(root(&[entry(b"")])), one);
}

#[test]
fn entries_and_continuation_are_proven() {
    for size in 1..20usize {
        let all = entries(size as u64);
        let whole = root(&all);
        for at in 0..size {
            let proof = inclusion(&all, at);
            let bytes = (at as u64).to_be_bytes();
            let found = |at: usize, entry: &[u8], proof: &[Digest]| {
                contains(&whole, size as u64, at as u64, entry, proof)
            };
            assert!(found(at, &bytes, &proof), "{at} of {size}");
            assert!(!found(at, &[1; 8], &proof));
            assert!((0..size + 2).all(|other| found(other, &bytes, &proof) == (other == at)));
            assert!(!found(at, &bytes, &[&proof[..], &[[1; 32]]].concat()));
            assert!(proof.is_empty() || !found(at, &bytes, &proof[1..]));
        }
        for old in 0..=size {
            let part = root(&all[..old]);
            let proof = if old == 0 { Vec::new() } else { consistency(&all, old, true) };
            let holds = |part: &Digest, old: usize, proof: &[Digest]| {
                continues((part, old as u64), (&whole, size as u64), proof)
            };
            assert!(holds(&part, old, &proof), "{old} of {size}");
            assert!(!holds(&[1; 32], old, &proof));
            assert!(!holds(&part, old, &[&proof[..], &[[1; 32]]].concat()));
            assert!(proof.is_empty() || !holds(&part, old, &proof[..proof.len() - 1]));
            assert!(!holds(&part, size + 1, &proof));
        }
    }
}

/// Proofs that continue above the root, to one that has it below, are refused: what is proven is of this size.
#[test]
fn proofs_end_at_the_root() {
    use sha2::{Digest as _, Sha256};
    let above = |left: &Digest, right: &Digest| -> Digest {
        Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
    };
    for size in 1..9usize {
        let all = entries(size as u64);
        let (whole, beside) = (root(&all), [7; 32]);
        for (root, size_of_it) in [(above(&beside, &whole), size), (above(&whole, &beside), size)] {
            for at in 0..size {
                let proof = [&inclusion(&all, at)[..], &[beside]].concat();
                let bytes = (at as u64).to_be_bytes();
                assert!(!contains(&root, size_of_it as u64, at as u64, &bytes, &proof));
            }
            for old in 1..size {
                let proof = [&consistency(&all, old, true)[..], &[beside]].concat();
                let part = super::log::root(&all[..old]);
                for part in [part, above(&beside, &part)] {
                    let (old, new) = ((&part, old as u64), (&root, size_of_it as u64));
                    assert!(!continues(old, new, &proof));
                }
            }
        }
    }
    // A proof between two sizes is not one between the first and a larger one.
    let all = entries(8);
    let proof = consistency(&all[..4], 2, true);
    let (two, four) = (root(&all[..2]), root(&all[..4]));
    assert!(continues((&two, 2), (&four, 4), &proof));
    assert!(!continues((&two, 2), (&four, 8), &proof));
}
