//! A block with a witness of any size, and a node that answers with it: for tests, benchmarks and demonstrations.
//!
//! Nothing is executed. The witness is a real one in every respect that the checks examine: nodes hash to the references of other
//! nodes, and the root is that of the parent's state.

mod node;

pub use node::{Debug, StandIn};

use crate::block;
use crate::codec::json::Parameters;
use alloy_consensus::Header;
use alloy_consensus::constants::{EMPTY_ROOT_HASH, KECCAK_EMPTY};
use alloy_primitives::keccak256;
use alloy_rlp::Encodable;
use hekaton_witness_format::{
    Amsterdam, Cancun, Envelope, ExecutionWitness, Fork, Payload, Push, Withdrawal, encode_witness,
};

/// A random generator that is small, fast and the same everywhere; it need not be secure.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

/// The name of a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ForkName {
    /// Blocks with withdrawals (`engine_newPayloadV2`).
    Shanghai,
    /// Blocks with blob gas and a beacon root as well (`engine_newPayloadV3`).
    Cancun,
    /// Blocks with requests as well (`engine_newPayloadV4`).
    Prague,
    /// Blocks with the same fields as those of Prague.
    Osaka,
    /// Blocks with an access list and a slot as well (`engine_newPayloadV5`).
    Amsterdam,
}

/// A block and its witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The block.
    pub parameters: Parameters,
    /// Its witness in SSZ.
    pub witness: Vec<u8>,
    /// A key for each of its transactions.
    pub public_keys: Vec<u8>,
}

/// The tries and codes of a state.
struct Tries {
    root: [u8; 32],
    nodes: Vec<Vec<u8>>,
    codes: Vec<Vec<u8>>,
}

impl Tries {
    /// Makes tries and codes of about `bytes` bytes: a quarter are codes, the rest are nodes, with a branch for each leaf.
    fn new(random: &mut Random, bytes: usize) -> Self {
        let (mut nodes, mut codes): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (vec![], vec![]);
        let accounts = (bytes / 935).max(2);
        let mut contents = Vec::with_capacity(accounts);
        let mut left = bytes / 4;
        for at in 0..accounts {
            let length = (bytes / 16).clamp(100, 24_000);
            let code = match at % 64 == 0 && left > 0 {
                true => {
                    let code = random.bytes(length);
                    let hash = keccak256(&code).0;
                    left = left.saturating_sub(length);
                    codes.push(code);
                    hash
                }
                false => KECCAK_EMPTY.0,
            };
            // Every eighth account has some storage.
            let root = match at % 8 == 1 {
                true => trie(random, 2, &mut nodes, &mut |random, path| {
                    let mut value = random.bytes(20);
                    // Words have no leading zeros.
                    value[0] |= 1;
                    leaf(&path, &alloy_rlp::encode(&value[..]))
                }),
                false => EMPTY_ROOT_HASH.0,
            };
            contents.push((root, code));
        }
        let mut next = contents.iter();
        let root = trie(random, accounts, &mut nodes, &mut |random, path| {
            let (root, code) = next.next().copied().expect("one for each account");
            let mut inside = Vec::new();
            random.below(1 << 20).encode(&mut inside);
            random.next().encode(&mut inside);
            root[..].encode(&mut inside);
            code[..].encode(&mut inside);
            leaf(&path, &list(&inside))
        });
        for items in [&mut nodes, &mut codes] {
            items.sort_unstable();
            items.dedup();
        }
        Self { root, nodes, codes }
    }
}

impl Block {
    /// Makes a block at a height, with a witness of about `bytes` bytes.
    pub fn new(seed: u64, number: u64, bytes: usize) -> Self {
        // The chain has one block.
        Self::chain(seed, number, 1, bytes).swap_remove(0)
    }

    /// Makes blocks that follow each other.
    pub fn chain(seed: u64, first: u64, count: usize, bytes: usize) -> Vec<Self> {
        // Chains that begin at other heights differ, even with the same seed.
        let mut random = Random(seed ^ (first << 32));
        let mut state = Tries::new(&mut random, bytes);
        let before = Header {
            number: first.saturating_sub(2),
            base_fee_per_gas: Some(7),
            extra_data: b"stand-in".as_slice().into(),
            ..Header::default()
        };
        let parent = Header {
            parent_hash: before.hash_slow(),
            number: first.saturating_sub(1),
            state_root: state.root.into(),
            base_fee_per_gas: Some(7),
            ..Header::default()
        };
        let mut headers = [before, parent];
        let mut blocks = Vec::with_capacity(count);
        for number in first..first + count as u64 {
            // The next block reads the state after this one.
            let next = match blocks.len() + 1 < count {
                true => Tries::new(&mut random, bytes),
                false => Tries { root: array(&mut random), nodes: vec![], codes: vec![] },
            };
            let (block, header) = Self::after(&mut random, number, &headers, &state, next.root);
            blocks.push(block);
            state = next;
            let [_, parent] = headers;
            headers = [parent, header];
        }
        blocks
    }

    /// Returns a competing branch: the same blocks with other extra data, each after the previous one, the first one after the same parent.
    pub fn branch(blocks: &[Self], extra_data: &[u8]) -> Vec<Self> {
        let mut branch: Vec<Self> = Vec::with_capacity(blocks.len());
        for mut block in blocks.iter().cloned() {
            if let Some(before) = branch.last() {
                let header = before.header();
                block.parameters.envelope.payload.parent_hash = header.hash_slow().0;
                let witness = block.witness();
                let parent = alloy_rlp::encode(&header);
                let [state, codes] = [witness.state, witness.codes].map(|items| items.iter());
                let [state, codes]: [Vec<&[u8]>; 2] = [state.collect(), codes.collect()];
                block.witness = encode(&state, &codes, &[&parent]);
            }
            block.parameters.envelope.payload.extra_data = extra_data.to_vec();
            block.rehash();
            branch.push(block);
        }
        branch
    }

    fn header(&self) -> Header {
        let header = block::header(&self.parameters.envelope);
        header.expect("the price of gas is 7")
    }

    fn after(
        random: &mut Random,
        number: u64,
        headers: &[Header; 2],
        state: &Tries,
        root_after: [u8; 32],
    ) -> (Self, Header) {
        let ancestors = headers.each_ref().map(alloy_rlp::encode);
        let parts = [&state.nodes[..], &state.codes[..], &ancestors[..]]
            .map(|items| items.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let witness = encode(&parts[0], &parts[1], &parts[2]);
        let transactions: Vec<Vec<u8>> =
            (0..3).map(|_| [&[2], &random.bytes(150)[..]].concat()).collect();
        let keys = transactions.iter().flat_map(|_| [&[4], &random.bytes(64)[..]].concat());
        let public_keys = keys.collect();
        let mut fee = [0; 32];
        fee[0] = 7;
        let withdrawal =
            Withdrawal { index: number, validator_index: 5, amount: 9, ..Withdrawal::default() };
        let payload = Payload {
            parent_hash: headers[1].hash_slow().0,
            fee_recipient: [0x11; 20],
            state_root: root_after,
            receipts_root: array(random),
            logs_bloom: Box::new([0; 256]),
            prev_randao: array(random),
            block_number: number,
            gas_limit: 36_000_000,
            gas_used: 21_000,
            timestamp: 1_800_000_000 + 12 * number,
            extra_data: b"stand-in".to_vec(),
            base_fee_per_gas: fee,
            block_hash: [0; 32],
            transactions,
            withdrawals: vec![withdrawal],
        };
        let amsterdam = Amsterdam { block_access_list: random.bytes(100), slot_number: number };
        let cancun = Cancun {
            blob_gas_used: 0,
            excess_blob_gas: 0,
            parent_beacon_block_root: array(random),
        };
        let fork = Fork::Amsterdam(cancun, vec![vec![0, 1, 2], vec![1, 3]], amsterdam);
        let parameters = Parameters { envelope: Envelope { payload, fork }, blob_hashes: vec![] };
        let mut block = Self { parameters, witness, public_keys };
        let header = block.rehash();
        (block, header)
    }

    /// Returns the same block as one of an earlier fork, without the fields that later forks have added.
    #[must_use]
    pub fn in_fork(mut self, name: ForkName) -> Self {
        let fork = &mut self.parameters.envelope.fork;
        if let Fork::Amsterdam(cancun, requests, _) = fork {
            *fork = match name {
                ForkName::Shanghai => Fork::Shanghai,
                ForkName::Cancun => Fork::Cancun(*cancun),
                ForkName::Prague | ForkName::Osaka => {
                    Fork::Prague(*cancun, std::mem::take(requests))
                }
                ForkName::Amsterdam => return self,
            };
        }
        self.rehash();
        self
    }

    /// Sets the hash that the payload has, and returns the header.
    fn rehash(&mut self) -> Header {
        let header = self.header();
        self.parameters.envelope.payload.block_hash = header.hash_slow().0;
        header
    }
}

fn array(random: &mut Random) -> [u8; 32] {
    random.bytes(32).try_into().expect("it returns as many bytes as are asked for")
}

fn encode(state: &[&[u8]], codes: &[&[u8]], headers: &[&[u8]]) -> Vec<u8> {
    let [state, codes, headers] = [state, codes, headers].map(|items| items.iter().copied());
    encode_witness(state, codes, headers).expect("synthetic witnesses are below 4 GiB")
}

impl Block {
    /// Returns its witness.
    ///
    /// # Panics
    /// If the encoding of the witness was replaced by bytes that are not one.
    pub fn witness(&self) -> ExecutionWitness<'_> {
        ExecutionWitness::decode(&self.witness).expect("the witness was encoded here")
    }

    /// Returns the body of `POST /v1/witness`.
    ///
    /// # Panics
    /// If the encoding of the witness was replaced by bytes that are not one.
    pub fn push(&self) -> Vec<u8> {
        let envelope = self.parameters.envelope.clone();
        Push { envelope, witness: self.witness(), public_keys: &self.public_keys }.encode()
    }
}

/// A list with its header.
fn list(inside: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inside.len() + 9);
    alloy_rlp::Header { list: true, payload_length: inside.len() }.encode(&mut bytes);
    bytes.extend_from_slice(inside);
    bytes
}

/// A leaf: its path of nibbles, and a value.
fn leaf(path: &[u8], value: &[u8]) -> Vec<u8> {
    let odd = path.len() % 2 == 1;
    let first = if odd { vec![0x30 | path[0]] } else { vec![0x20] };
    let rest = path[usize::from(odd)..].chunks_exact(2).map(|two| two[0] << 4 | two[1]);
    let path: Vec<u8> = first.into_iter().chain(rest).collect();
    let mut inside = Vec::new();
    path[..].encode(&mut inside);
    value.encode(&mut inside);
    list(&inside)
}

/// Adds the nodes of a trie with `leaves` leaves, two under each branch. Returns its root.
fn trie(
    random: &mut Random,
    leaves: usize,
    nodes: &mut Vec<Vec<u8>>,
    make: &mut dyn FnMut(&mut Random, Vec<u8>) -> Vec<u8>,
) -> [u8; 32] {
    let depth = usize::try_from(leaves.max(2).next_power_of_two().ilog2()).unwrap_or(1);
    let mut level: Vec<[u8; 32]> = Vec::new();
    let mut add = |node: Vec<u8>| {
        let hash = keccak256(&node).0;
        nodes.push(node);
        hash
    };
    for _ in 0..leaves {
        let path = (0..64 - depth).map(|_| random.next().to_le_bytes()[0] & 15).collect();
        level.push(add(make(random, path)));
    }
    while level.len() > 1 {
        let pairs: Vec<Vec<[u8; 32]>> = level.chunks(2).map(<[_]>::to_vec).collect();
        level = pairs
            .into_iter()
            .map(|children| {
                // One in each half, so that the two children have different places.
                let (first, second) = (random.below(8), 8 + random.below(8));
                let mut inside = Vec::with_capacity(532);
                for at in 0..16 {
                    let child = match at {
                        at if at == first => children.first().copied(),
                        at if at == second => children.get(1).copied(),
                        _ => None,
                    };
                    // Nodes that the block has not read are only known by their hashes.
                    child.unwrap_or_else(|| array(random))[..].encode(&mut inside);
                }
                b""[..].encode(&mut inside);
                add(list(&inside))
            })
            .collect();
    }
    level.first().copied().unwrap_or(EMPTY_ROOT_HASH.0)
}
