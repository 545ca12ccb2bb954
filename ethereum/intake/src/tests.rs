//! Tests of each check with a single fault.

use crate::block;
use crate::canonical::{Admitted, LeftOut, Options, admit};
use crate::check::{CheckError, Summary, check_block, check_keys, check_witness};
use crate::stand_in::Block;
use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::keccak256;
use hekaton_witness_format::trie::NodeError;
use hekaton_witness_format::walk::WalkError;
use hekaton_witness_format::{Amsterdam, Cancun, Envelope, ExecutionWitness, Fork, encode_witness};

/// A witness in parts.
#[derive(Clone)]
struct Pieces {
    state: Vec<Vec<u8>>,
    codes: Vec<Vec<u8>>,
    headers: Vec<Vec<u8>>,
    parent: [u8; 32],
    number: u64,
}

impl Pieces {
    fn new() -> (Block, Self) {
        let block = Block::new(5, 9, 150_000);
        let witness = ExecutionWitness::decode(&block.witness).unwrap();
        let items = [witness.state, witness.codes, witness.headers];
        let [state, codes, headers] = items.map(|it| it.iter().map(<[u8]>::to_vec).collect());
        let payload = &block.parameters.envelope.payload;
        let (parent, number) = (payload.parent_hash, payload.block_number);
        (block, Self { state, codes, headers, parent, number })
    }

    fn encode(&self) -> Vec<u8> {
        let parts = [&self.state, &self.codes, &self.headers];
        let [state, codes, headers] = parts.map(|items| items.iter().map(Vec::as_slice));
        encode_witness(state, codes, headers).unwrap()
    }

    fn check(&self) -> Result<Summary, CheckError> {
        let bytes = self.encode();
        check_witness(&ExecutionWitness::decode(&bytes).unwrap(), self.parent, self.number)
    }

    fn refused(&self) -> CheckError {
        self.check().unwrap_err()
    }

    /// Checks a witness leniently. Returns the summary, the canonical form, and the items that were left out.
    fn admit(&self) -> Result<Admitted, CheckError> {
        let bytes = self.encode();
        let witness = ExecutionWitness::decode(&bytes).unwrap();
        admit(&witness, self.parent, self.number, Options { lenient: true })
    }

    /// Replaces the last header, and the fields of the block that depend on it.
    fn parent(&mut self, change: impl FnOnce(&mut Header)) {
        let mut header: Header = alloy_rlp::decode_exact(&self.headers[1]).unwrap();
        change(&mut header);
        self.headers[1] = alloy_rlp::encode(&header);
        self.parent = header.hash_slow().0;
    }

    /// Makes a single node the whole state.
    fn single(&mut self, node: Vec<u8>) {
        self.parent(|header| header.state_root = keccak256(&node));
        (self.state, self.codes) = (vec![node], vec![]);
    }
}

#[test]
fn a_witness_that_belongs_to_its_block_is_accepted() {
    for (seed, bytes) in [(1, 10_000), (2, 100_000), (3, 1_000_000)] {
        let block = Block::new(seed, 3, bytes);
        let envelope = &block.parameters.envelope;
        check_block(envelope, Some(&[])).unwrap();
        check_keys(envelope, &block.public_keys).unwrap();
        let witness = ExecutionWitness::decode(&block.witness).unwrap();
        let summary = check_witness(&witness, envelope.payload.parent_hash, 3);
        let summary = summary.unwrap();
        assert_eq!((summary.headers, summary.nodes), (2, witness.state.len()));
        assert!(summary.absent > 14);
        let share = block.witness.len() as f64 / bytes as f64;
        assert!((0.5..2.0).contains(&share), "{share} of {bytes}");
    }
}

/// Returns the fields that forks have added to a block of Amsterdam.
fn added(envelope: &mut Envelope) -> (&mut Cancun, &mut Vec<Vec<u8>>, &mut Amsterdam) {
    match &mut envelope.fork {
        Fork::Amsterdam(cancun, requests, amsterdam) => (cancun, requests, amsterdam),
        fork => panic!("a block of {}", fork.name()),
    }
}

#[test]
fn blocks_are_what_their_hashes_say() {
    let (block, _) = Pieces::new();
    let envelope = &block.parameters.envelope;
    let refused = |change: &dyn Fn(&mut Envelope)| {
        let mut changed = envelope.clone();
        change(&mut changed);
        check_block(&changed, None).unwrap_err()
    };
    let is_hash = |error: CheckError| matches!(error, CheckError::BlockHash { .. });
    // Each part of the block affects its hash.
    assert!(is_hash(refused(&|it| it.payload.parent_hash[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.fee_recipient[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.state_root[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.receipts_root[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.logs_bloom[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.prev_randao[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.block_number ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.gas_limit ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.gas_used ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.timestamp ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.extra_data[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.base_fee_per_gas[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.block_hash[0] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.transactions[1][9] ^= 1)));
    assert!(is_hash(refused(&|it| it.payload.withdrawals[0].amount ^= 1)));
    assert!(is_hash(refused(&|it| added(it).0.blob_gas_used ^= 1)));
    assert!(is_hash(refused(&|it| added(it).0.excess_blob_gas ^= 1)));
    assert!(is_hash(refused(&|it| added(it).2.block_access_list[0] ^= 1)));
    assert!(is_hash(refused(&|it| added(it).2.slot_number ^= 1)));
    assert!(is_hash(refused(&|it| added(it).0.parent_beacon_block_root[0] ^= 1)));
    assert!(is_hash(refused(&|it| added(it).1[0][1] ^= 1)));
    assert_eq!(refused(&|it| it.payload.base_fee_per_gas[8] = 1), CheckError::BaseFee);
    // The order of requests and empty requests do not affect the hash, so these are checked separately.
    assert_eq!(refused(&|it| added(it).1.swap(0, 1)), CheckError::Requests(1));
    assert_eq!(refused(&|it| added(it).1.push(vec![9])), CheckError::Requests(2));
    assert_eq!(refused(&|it| added(it).1[1][0] = 0), CheckError::Requests(1));
    // Blobs.
    assert_eq!(
        check_block(envelope, Some(&[[1; 32]])),
        Err(CheckError::Blobs { found: 0, expected: 1 })
    );
    let mut rehashed = envelope.clone();
    rehashed.payload.transactions[2] = vec![3, 0xc0];
    rehashed.payload.block_hash = block::header(&rehashed).unwrap().hash_slow().0;
    assert_eq!(check_block(&rehashed, None), Err(CheckError::Transaction(2)));
    // Keys.
    let keys = &block.public_keys;
    assert_eq!(
        check_keys(envelope, &keys[..130]),
        Err(CheckError::Keys { keys: 2, transactions: 3 })
    );
    let mut compressed = keys.clone();
    compressed[65] = 2;
    assert_eq!(check_keys(envelope, &compressed), Err(CheckError::Key(1)));
}

#[test]
fn headers_are_a_chain_to_the_parent() {
    let (_, pieces) = Pieces::new();
    let with = |change: &dyn Fn(&mut Pieces)| {
        let mut changed = pieces.clone();
        change(&mut changed);
        changed.refused()
    };
    assert_eq!(with(&|it| it.headers.clear()), CheckError::Headers(0));
    assert_eq!(with(&|it| it.headers = vec![it.headers[0].clone(); 257]), CheckError::Headers(257));
    assert!(matches!(with(&|it| it.headers.swap(0, 1)), CheckError::Chain(0)));
    assert!(matches!(with(&|it| drop(it.headers.pop())), CheckError::Parent { .. }));
    assert!(matches!(with(&|it| it.parent[0] ^= 1), CheckError::Parent { .. }));
    assert!(matches!(with(&|it| it.headers[0].push(0)), CheckError::Header { at: 0, .. }));
    assert!(matches!(with(&|it| it.headers[1].truncate(100)), CheckError::Header { at: 1, .. }));
    assert_eq!(with(&|it| it.number += 1), CheckError::Number { number: 10, parent: 8 });
    // One header is enough.
    let mut one = pieces;
    one.headers.remove(0);
    one.check().unwrap();
}

#[test]
fn everything_there_belongs_there() {
    let (_, pieces) = Pieces::new();
    let with = |change: &dyn Fn(&mut Pieces)| {
        let mut changed = pieces.clone();
        change(&mut changed);
        changed.refused()
    };
    let last = pieces.state.len() - 1;
    assert_eq!(with(&|it| it.state.swap(3, 4)), CheckError::Order { part: "node", at: 4 });
    assert_eq!(with(&|it| it.codes.swap(0, 1)), CheckError::Order { part: "code", at: 1 });
    assert_eq!(
        with(&|it| it.state.push(it.state[last].clone())),
        CheckError::Order { part: "node", at: last + 1 }
    );
    let mut shuffled = pieces.clone();
    shuffled.state.reverse();
    assert!(matches!(shuffled.check(), Err(CheckError::Order { part: "node", .. })));
    // A node whose parent is gone, and a foreign one.
    let root: Header = alloy_rlp::decode_exact(&pieces.headers[1]).unwrap();
    let root = root.state_root;
    let at = pieces.state.iter().position(|node| keccak256(node) == root).unwrap();
    assert_eq!(with(&|it| drop(it.state.remove(at))), CheckError::State(WalkError::Root(root.0)));
    let mut foreign = pieces.clone();
    let other = Block::new(6, 9, 5_000);
    let witness = ExecutionWitness::decode(&other.witness).unwrap();
    let node = witness.state.get(0).unwrap().to_vec();
    foreign.state.push(node.clone());
    foreign.state.sort();
    let place = foreign.state.iter().position(|it| *it == node).unwrap();
    assert_eq!(foreign.refused(), CheckError::Unreached(place));
    // Each node is needed: without one, its descendants are not reached, or it is a leaf, which may be absent.
    let mut unreached = 0;
    for at in 0..pieces.state.len() {
        let mut less = pieces.clone();
        less.state.remove(at);
        match less.check() {
            Ok(summary) => assert_eq!(summary.nodes, last),
            Err(
                CheckError::Unreached(_)
                | CheckError::State(WalkError::Root(_))
                | CheckError::Code(_),
            ) => unreached += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(unreached > pieces.state.len() / 3);
    // Each byte of a node affects the hash by which others refer to it.
    let mut changed = pieces.clone();
    let length = changed.state[at].len();
    changed.state[at][length - 5] ^= 1;
    changed.state.sort();
    assert_eq!(changed.refused(), CheckError::State(WalkError::Root(root.0)));
    // Codes.
    let mut foreign = pieces.clone();
    foreign.codes.push(vec![0xff; 40]);
    foreign.codes.sort();
    let place = foreign.codes.iter().position(|code| *code == vec![0xff; 40]).unwrap();
    assert_eq!(foreign.refused(), CheckError::Code(place));
    let mut long = pieces;
    long.codes.push(vec![0xff; (1 << 18) + 1]);
    assert_eq!(long.refused(), CheckError::CodeLength(long.codes.len() - 1));
}

#[test]
fn an_empty_state_has_no_nodes() {
    let (_, mut pieces) = Pieces::new();
    pieces.parent(|header| header.state_root = EMPTY_ROOT_HASH);
    (pieces.state, pieces.codes) = (vec![], vec![]);
    assert_eq!(pieces.check().unwrap().nodes, 0);
    pieces.state = vec![vec![0x80]];
    assert_eq!(pieces.refused(), CheckError::Empty { part: "node", at: 0 });
    assert_eq!(pieces.admit().unwrap().summary.nodes, 0);
}

/// The stored witness is the same whatever nodes send: they send more than a stateless execution needs, in any order.
#[test]
fn the_canonical_form_is_the_same_whatever_nodes_send() {
    let (_, pieces) = Pieces::new();
    let canonical = pieces.encode();
    let same = |change: &dyn Fn(&mut Pieces), left_out: LeftOut, strict: CheckError| {
        let mut sent = pieces.clone();
        change(&mut sent);
        assert_eq!(sent.refused(), strict);
        let Admitted { summary, changed, left_out: found } = sent.admit().unwrap();
        assert_eq!((summary, found), (pieces.check().unwrap(), left_out));
        assert_eq!(changed.as_deref(), Some(&canonical[..]), "{strict}");
    };
    let none = LeftOut::default();
    let at = |items: &[Vec<u8>], item: &[u8]| items.partition_point(|it| it.as_slice() < item);
    // The empty node, where it belongs by order; the empty code.
    let empty = [0x80];
    let node = at(&pieces.state, &empty);
    same(
        &|it| it.state.insert(node, empty.to_vec()),
        LeftOut { empty: 1, ..none },
        CheckError::Empty { part: "node", at: node },
    );
    same(
        &|it| it.codes.insert(0, vec![]),
        LeftOut { empty: 1, ..none },
        CheckError::Empty { part: "code", at: 0 },
    );
    // A code and a node that the block makes.
    let code = at(&pieces.codes, &[0x61; 40]);
    same(
        &|it| it.codes.insert(code, vec![0x61; 40]),
        LeftOut { codes: 1, ..none },
        CheckError::Code(code),
    );
    let other = Block::new(6, 9, 5_000);
    let other = ExecutionWitness::decode(&other.witness).unwrap().state.get(0).unwrap().to_vec();
    let node = at(&pieces.state, &other);
    same(
        &|it| it.state.insert(node, other.clone()),
        LeftOut { nodes: 1, ..none },
        CheckError::Unreached(node),
    );
    // A node that no trie could have does not matter either: nothing leads to it.
    same(&|it| it.state.insert(0, vec![0]), LeftOut { nodes: 1, ..none }, CheckError::Unreached(0));
    // Order and repeats, of all three parts.
    same(&|it| it.state.reverse(), none, CheckError::Order { part: "node", at: 1 });
    same(&|it| it.codes.reverse(), none, CheckError::Order { part: "code", at: 1 });
    same(&|it| it.headers.reverse(), none, CheckError::Chain(0));
    same(
        &|it| it.state.insert(2, it.state[1].clone()),
        LeftOut { repeats: 1, ..none },
        CheckError::Order { part: "node", at: 2 },
    );
    // A canonical witness is stored as it came.
    let admitted = pieces.admit().unwrap();
    assert_eq!((admitted.changed, admitted.left_out), (None, none));
    // No item that is needed may be missing, and no item that is reached may be wrong.
    let mut cut = pieces.clone();
    let root: Header = alloy_rlp::decode_exact(&pieces.headers[1]).unwrap();
    cut.state.retain(|node| keccak256(node) != root.state_root);
    assert_eq!(cut.admit().unwrap_err(), CheckError::State(WalkError::Root(root.state_root.0)));
    let mut foreign = pieces.clone();
    foreign.parent[0] ^= 1;
    assert!(matches!(foreign.admit().unwrap_err(), CheckError::Parent { .. }));
    let mut wrong = pieces;
    wrong.single(list(&[string(&[0x20; 35]), string(&[1])]));
    assert_eq!(wrong.admit().unwrap_err(), node_error(&wrong, NodeError::Path));
}

/// The error of a witness whose first node is wrong.
fn node_error(pieces: &Pieces, why: NodeError) -> CheckError {
    CheckError::State(WalkError::Node { at: 0, bytes: pieces.state[0].len(), why })
}

/// A string or a list, with its header.
fn string(bytes: &[u8]) -> Vec<u8> {
    alloy_rlp::encode(bytes)
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let inside = items.concat();
    let mut bytes = Vec::new();
    alloy_rlp::Header { list: true, payload_length: inside.len() }.encode(&mut bytes);
    [bytes, inside].concat()
}

#[test]
fn nodes_are_read() {
    let word = string(&string(&[5, 6]));
    let (_, mut pieces) = Pieces::new();
    pieces.single(list(&[string(&[&[0x20], &[7; 32][..]].concat()), word.clone()]));
    assert_eq!(pieces.refused(), node_error(&pieces, NodeError::Account));
}
