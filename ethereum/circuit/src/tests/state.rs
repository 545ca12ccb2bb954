//! States for tests: tries that `alloy-trie` makes, with all of their nodes.

use crate::sample::Strings;
use crate::sample::header_of;
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{HashBuilder, Nibbles};
use hekaton_witness_format::keccak;
use std::collections::BTreeMap;

/// A string of RLP.
pub(super) fn string(bytes: &[u8]) -> Vec<u8> {
    alloy_rlp::encode(bytes)
}

/// A list of items that are already encoded.
pub(super) fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let inside = items.concat();
    let mut bytes = Vec::new();
    alloy_rlp::Header { list: true, payload_length: inside.len() }.encode(&mut bytes);
    bytes.extend(inside);
    bytes
}

/// A trie of values by the digests of keys: its root, and its nodes.
pub(super) fn trie(values: &BTreeMap<[u8; 32], Vec<u8>>) -> ([u8; 32], Vec<Vec<u8>>) {
    let keys: Vec<Nibbles> = values.keys().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(keys));
    for (key, value) in values {
        builder.add_leaf(Nibbles::unpack(key), value);
    }
    let root = builder.root().0;
    let nodes = builder.take_proof_nodes().into_nodes_sorted();
    // Small nodes are inside others, unless they are the root.
    let nodes = nodes.into_iter().map(|(_, node)| node.to_vec());
    let mut nodes: Vec<Vec<u8>> =
        nodes.filter(|node| node.len() >= 32 || keccak(node) == root).collect();
    nodes.sort();
    nodes.dedup();
    (root, nodes)
}

/// An account.
pub(super) struct Account {
    pub(super) nonce: u64,
    /// Big-endian, without zeros in front.
    pub(super) balance: Vec<u8>,
    pub(super) storage: BTreeMap<[u8; 32], Vec<u8>>,
    pub(super) code: Vec<u8>,
}

impl Account {
    pub(super) fn new() -> Self {
        Self { nonce: 1, balance: vec![7], storage: BTreeMap::new(), code: vec![] }
    }
}

/// Returns the entire state as a witness.
pub(super) fn witness(accounts: &[([u8; 32], Account)]) -> Strings {
    let (mut leaves, mut state, mut codes) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (key, account) in accounts {
        let (root, nodes) = trie(&account.storage);
        if !account.storage.is_empty() {
            state.extend(nodes);
        }
        if !account.code.is_empty() {
            codes.push(account.code.clone());
        }
        let nonce = account.nonce.to_be_bytes();
        let nonce: Vec<u8> = nonce.into_iter().skip_while(|byte| *byte == 0).collect();
        let fields = [&nonce, &account.balance, &root[..], &keccak(&account.code)[..]];
        leaves.insert(*key, list(&fields.map(string)));
    }
    let (root, nodes) = trie(&leaves);
    if !accounts.is_empty() {
        state.extend(nodes);
    }
    for strings in [&mut state, &mut codes] {
        strings.sort();
        strings.dedup();
    }
    Strings { state, codes, headers: vec![header_of(&root)] }
}

/// A number as a storage key, hashed.
pub(super) fn slot(number: u64) -> [u8; 32] {
    let mut key = [0; 32];
    key[24..].copy_from_slice(&number.to_be_bytes());
    keccak(&key)
}
