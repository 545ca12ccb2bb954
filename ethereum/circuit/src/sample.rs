//! A small state with its witness, for setup and tests.

use hekaton_witness_format::{EMPTY_ROOT, EncodedWitness, encode_witness, keccak};

/// The strings of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strings {
    pub(crate) state: Vec<Vec<u8>>,
    pub(crate) codes: Vec<Vec<u8>>,
    pub(crate) headers: Vec<Vec<u8>>,
}

impl Strings {
    /// Returns the witness.
    pub(crate) fn encode(&self) -> EncodedWitness {
        let lists = [&self.state, &self.codes, &self.headers];
        let [state, codes, headers] = lists.map(|items| items.iter().map(Vec::as_slice));
        let encoded = encode_witness(state, codes, headers).and_then(EncodedWitness::new);
        encoded.expect("a small state is within the limits of SSZ")
    }
}

/// Returns a state of two accounts with a code, and its header.
pub(crate) fn sample() -> Strings {
    let code = b"\x60\x00\x60\x00\xfd".to_vec();
    let account = |path: u8| {
        // The path of an account below the first nibble, an odd number of nibbles.
        let mut leaf = vec![0xf8, 0, 0xa0, 0x30 | path];
        leaf.extend([path; 31]);
        leaf.extend([0xb8, 70, 0xf8, 68, 1, 0x80, 0xa0]);
        leaf.extend(EMPTY_ROOT);
        leaf.push(0xa0);
        leaf.extend(keccak(&code));
        #[allow(clippy::cast_possible_truncation, reason = "107 bytes")]
        let length = leaf.len() as u8 - 2;
        leaf[1] = length;
        leaf
    };
    let leaves = [account(1), account(2)];
    let mut root = vec![0xf8, 81];
    for leaf in &leaves {
        root.push(0xa0);
        root.extend(keccak(leaf));
    }
    root.extend([0x80; 15]);
    let header = header_of(&keccak(&root));
    let [first, second] = leaves;
    Strings { state: vec![root, first, second], codes: vec![code], headers: vec![header] }
}

/// Returns a header with a state root, and the shortest other fields.
pub(crate) fn header_of(root: &[u8; 32]) -> Vec<u8> {
    let mut fields = Vec::new();
    let mut hash = |bytes: &[u8]| {
        fields.push(0xa0);
        fields.extend_from_slice(bytes);
    };
    hash(&[1; 32]);
    hash(&[2; 32]);
    fields.push(0x94);
    fields.extend([3; 20]);
    fields.push(0xa0);
    fields.extend_from_slice(root);
    // Roots of transactions and receipts, the Bloom filter, five small numbers, no data, a hash, a nonce.
    for _ in 0..2 {
        fields.push(0xa0);
        fields.extend([4; 32]);
    }
    fields.extend([0xb9, 1, 0]);
    fields.extend([0; 256]);
    fields.extend([0x80, 1, 2, 3, 4, 0x80, 0xa0]);
    fields.extend([5; 32]);
    fields.push(0x88);
    fields.extend([0; 8]);
    #[allow(clippy::cast_possible_truncation, reason = "500 bytes")]
    let length = (fields.len() as u16).to_be_bytes();
    [&[0xf9][..], &length, &fields].concat()
}
