//! Blocks with branches, and those of them that must be published in the end.

use hekaton_intake::stand_in::Block;
use std::collections::BTreeMap;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

fn name(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn id(block: &Block) -> String {
    name(&block.parameters.envelope.payload.block_hash)
}

pub(crate) fn parent(block: &Block) -> String {
    name(&block.parameters.envelope.payload.parent_hash)
}

/// Returns the branch that must be published: that of the last payload, by the rule of the guide, over names alone.
pub(crate) fn expected(blocks: &[Block], accepted: &[usize]) -> Vec<String> {
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for (at, block) in accepted.iter().enumerate() {
        last.insert(id(&blocks[*block]), at);
    }
    // Returns the number of the last payload of a block or of its descendants.
    fn newest(blocks: &[Block], last: &BTreeMap<String, usize>, block: &Block) -> usize {
        let own = last[&id(block)];
        let after = blocks.iter().filter(|it| parent(it) == id(block));
        after.map(|it| newest(blocks, last, it)).max().map_or(own, |after| after.max(own))
    }
    let mut head = &blocks[*accepted.last().unwrap()];
    loop {
        let after = blocks.iter().filter(|it| parent(it) == id(head));
        match after.max_by_key(|it| newest(blocks, &last, it)) {
            Some(next) => head = next,
            None => break,
        }
    }
    let mut branch = vec![id(head)];
    while let Some(before) = blocks.iter().find(|it| id(it) == parent(head)) {
        branch.push(id(before));
        head = before;
    }
    branch.reverse();
    branch
}

/// A trunk with branches, and branches of branches.
pub(crate) fn forest(random: &mut Random, trunk: usize) -> Vec<Block> {
    let trunk = Block::chain(random.next(), 5, trunk, 1_500);
    let mut chains = vec![trunk.clone()];
    let mut blocks = trunk;
    for mark in [b'x', b'y', b'z'].into_iter().take(1 + random.below(3)) {
        let from = &chains[random.below(chains.len())];
        let begin = random.below(from.len());
        let count = 1 + random.below(from.len() - begin);
        let branch = Block::branch(&from[begin..begin + count], &[mark]);
        blocks.extend(branch.iter().cloned());
        chains.push(branch);
    }
    blocks
}

/// Returns all blocks at least once, in any order or nearly in their own.
pub(crate) fn arrivals(random: &mut Random, count: usize) -> Vec<usize> {
    let mut arrivals: Vec<usize> = (0..count).collect();
    for _ in 0..random.below(6) {
        arrivals.push(random.below(count));
    }
    let swaps = if random.below(2) == 0 { 3 } else { 30 };
    for _ in 0..swaps {
        let (one, two) = (random.below(arrivals.len()), random.below(arrivals.len()));
        arrivals.swap(one, two);
    }
    arrivals
}
