//! Outputs in bytes.

use crate::{OUTPUT_WORDS, Output};
use sha2::{Digest, Sha256};

const TAG: u32 = 0x4f4b_4800;

fn words(bytes: &[u8], last: u32) -> [u32; OUTPUT_WORDS] {
    let mut all = bytes.to_vec();
    all.resize(4 * (OUTPUT_WORDS - 1), 0);
    all.extend(last.to_le_bytes());
    let mut words = all.chunks(4).map(|chunk| u32::from_le_bytes(chunk.try_into().unwrap()));
    std::array::from_fn(|_| words.next().unwrap())
}

#[test]
fn bytes_are_exactly_those() {
    for length in [0usize, 1, 4, 59, 60] {
        let bytes: Vec<u8> = (1..).take(length).collect();
        let output = Output::of(&words(&bytes, TAG + u32::try_from(length).unwrap()));
        assert_eq!(output, Output::Bytes(bytes.clone()));
        assert!(output.is(&bytes));
        assert!(!output.is(&[&bytes[..], &[0]].concat()), "zeros at the end count");
        if let Some((_, fewer)) = bytes.split_last() {
            assert!(!output.is(fewer));
        }
    }
}

#[test]
fn digests_are_of_bytes_and_their_number() {
    let bytes = vec![7; 1000];
    let with_length = |length: u32| {
        let content = [&Sha256::digest(&bytes)[..], &length.to_le_bytes()].concat();
        words(&content, TAG | 0xff)
    };
    let output = Output::of(&with_length(1000));
    assert!(output.is(&bytes) && !output.is(&bytes[1..]));
    // The words themselves are not the output.
    let own: Vec<u8> = with_length(1000).iter().flat_map(|it| it.to_le_bytes()).collect();
    assert!(!output.is(&own));
    assert!(!Output::of(&with_length(999)).is(&bytes));
}

/// Each word that the two forms leave zero must be zero, and each other last word is that of a program that writes words.
#[test]
fn all_other_words_are_words() {
    let digest = words(&[9; 36], TAG | 0xff);
    assert!(matches!(Output::of(&digest), Output::Digest { .. }));
    for at in 9..15 {
        let mut other = digest;
        other[at] = 1 << 31;
        assert_eq!(Output::of(&other), Output::Words(other));
    }
    for (last, filled) in [(TAG | 61, 0), (TAG | 0xfe, 0), (TAG | 3, 4), (0, 0), (TAG ^ 1 << 31, 0)]
    {
        let other = words(&vec![1; filled], last);
        assert_eq!(Output::of(&other), Output::Words(other), "{last:#x}");
    }
    let plain = words(&[1, 2], 0);
    assert!(Output::of(&plain).is(&[1, 2]) && Output::of(&plain).is(&[1, 2, 0]));
    assert!(!Output::of(&plain).is(&[1]) && !Output::of(&plain).is(&[1, 2, 0, 1]));
    assert!(!Output::of(&plain).is(&[&[1, 2][..], &[0; 63]].concat()), "more than there are");
}
