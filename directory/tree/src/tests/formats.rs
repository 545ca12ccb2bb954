//! Bytes that come from elsewhere: histories, and bytes that are not a path, history or record.

use super::tree_of;
use crate::{
    Commitment, DecodeError, Entry, History, HistoryError, Index, LabelError, Leaf, MAX_LABEL,
    MAX_VALUE, Opening, Path, Profile, SignedRecord,
};
use proptest::prelude::*;

fn opening(number: u8) -> Opening {
    Opening { salt: [number; 32], value: vec![number; usize::from(number)] }
}

fn leaf_of(label: &[u8], history: &History) -> Leaf {
    let commitment = history.commitment(label).unwrap();
    let version = history.0.len() as u32 - 1;
    Leaf { index: Index::of(label).unwrap(), version, epoch: 5, commitment }
}

#[test]
fn histories_are_complete_and_in_order() {
    let values: Vec<Entry> = (0..4).map(|number| Entry::Value(opening(number))).collect();
    let history = History(values.clone());
    let leaf = leaf_of(b"alice", &history);
    assert_eq!(history.verify(b"alice", &leaf), Ok(()));
    // An erased value leaves its digest.
    let mut erased = history.clone();
    erased.0[1] = Entry::Erased(opening(1).digest(b"alice").unwrap());
    assert_eq!(erased.verify(b"alice", &leaf), Ok(()));
    for read in [&history, &erased] {
        assert_eq!(History::decode(&read.encode()).unwrap(), *read);
    }
    assert_eq!(history.verify(b"bob", &leaf), Err(HistoryError::OtherLabel));
    let missing = History([&values[..1], &values[2..]].concat());
    assert_eq!(missing.verify(b"alice", &leaf), Err(HistoryError::Count { found: 3, expected: 4 }));
    let mut swapped = history.clone();
    swapped.0.swap(1, 2);
    let mut other = history.clone();
    other.0[3] = Entry::Value(opening(9));
    let mut erased_as_other = history;
    erased_as_other.0[0] = Entry::Erased(opening(0).digest(b"bob").unwrap());
    for wrong in [swapped, other, erased_as_other] {
        assert_eq!(wrong.verify(b"alice", &leaf), Err(HistoryError::Commitment));
    }
    assert_eq!(History::default().commitment(b"a"), Ok(Commitment::NONE));
}

#[test]
fn labels_and_values_have_their_lengths() {
    assert_eq!(Index::of(b""), Err(LabelError::Label(0)));
    assert!(Index::of(&[1; MAX_LABEL]).is_ok());
    assert_eq!(Index::of(&[1; MAX_LABEL + 1]), Err(LabelError::Label(MAX_LABEL + 1)));
    let long = Opening { salt: [0; 32], value: vec![0; MAX_VALUE + 1] };
    assert_eq!(long.digest(b"a"), Err(LabelError::Value(MAX_VALUE + 1)));
    let encoded = History(vec![Entry::Value(long)]).encode();
    assert!(matches!(History::decode(&encoded), Err(DecodeError::Field(_))));
}

#[test]
fn damaged_bytes_are_named() {
    let path = tree_of(Profile::Sha256, &[0, 1, 7], 3).path(&super::index(1, 3)).unwrap().encode();
    let error = |bytes: &[u8]| Path::decode(bytes).unwrap_err().to_string();
    assert_eq!(error(&[]), "it ends in the middle of its version");
    assert_eq!(error(&[9]), "its format has version 9, but this program reads version 1");
    assert_eq!(error(&path[..path.len() - 1]), "it ends in the middle of its leaf");
    assert_eq!(error(&[&path[..], &[0]].concat()), "trailing bytes: 1");
    assert_eq!(error(&[1, 129, 0]), "its number of steps is 129, at most 128");
    let mut surplus = path.clone();
    surplus[3] |= 1;
    assert_eq!(error(&surplus), "its siblings: bits are set past the last step");
    let mut kind = path;
    kind[2] = 2;
    assert_eq!(error(&kind), "its kind of end is 2: 0 or 1");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..Default::default() })]

    /// Whatever is read is written as it was.
    #[test]
    fn bytes_have_one_reading(mut bytes: Vec<u8>, depth in 0u8..20, kind in 0u8..3) {
        for start in [&[][..], &[1, depth, kind], &[1, 0, 0, 0, kind]] {
            let bytes = [start, &bytes[..]].concat();
            if let Ok(path) = Path::decode(&bytes) {
                prop_assert_eq!(path.encode(), &bytes[..]);
            }
            if let Ok(history) = History::decode(&bytes) {
                prop_assert_eq!(history.encode(), &bytes[..]);
            }
        }
        bytes.resize(crate::SIGNED_LENGTH - 1, 3);
        let record = SignedRecord::decode(&[&[2][..], &bytes].concat()).unwrap();
        prop_assert_eq!(&record.encode()[1..], &bytes[..]);
    }
}
