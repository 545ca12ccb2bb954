//! Finds the branch that a chain of jobs follows: that of the payload that was accepted last.
//!
//! Everything here is a function of the records and of what the chain has published, so a process that starts anew decides the same.
//! A payload that comes before its parent decides once it is linked. Blocks that follow the last payload and came before it belong
//! to its branch; of several such branches, the one whose payload came last is followed.

use alloy_primitives::B256;
use std::collections::{HashMap, HashSet, VecDeque};

/// How many published blocks a branch may take back. One that forks off further below is left to an operator.
pub const DEPTH: usize = 1_024;

/// When a payload was accepted, compared with others.
pub(crate) type Order = (u64, u64);

/// What is known of a block without reading its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The block before it.
    pub(crate) parent: B256,
    /// Its height.
    pub(crate) number: u64,
    /// Rises with each payload that is accepted: its number, and the time, as records of earlier versions have no number.
    pub(crate) order: Order,
    /// Whether a job is to be made of it.
    pub(crate) pending: bool,
    /// Whether a job was made of it.
    pub(crate) job: bool,
    /// Whether the orchestrator has refused the job itself.
    pub(crate) refused: bool,
    /// Whether another branch is followed, and its job was cancelled.
    pub(crate) aside: bool,
}

/// The last blocks that a chain has published, as far down as a branch may fork off.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Never empty: at first the genesis, which has no height of its own. Names of others need not be hashes.
    blocks: VecDeque<(Option<B256>, Option<u64>)>,
}

impl Path {
    /// The path of a chain that has published nothing.
    pub(crate) fn new(genesis: &str) -> Self {
        Self { blocks: [(hash(genesis), None)].into() }
    }

    /// Adds a block that follows.
    pub(crate) fn push(&mut self, id: &str, height: u64) {
        self.blocks.push_back((hash(id), Some(height)));
        while self.blocks.len() > DEPTH + 1 {
            self.blocks.pop_front();
        }
    }

    /// Takes back what follows a block. One that is further below than the path reaches is all that is left.
    pub(crate) fn revert(&mut self, id: &str, height: u64) {
        let to = hash(id);
        match self.blocks.iter().rposition(|(block, _)| *block == to && to.is_some()) {
            Some(at) => self.blocks.truncate(at + 1),
            None => self.blocks = [(to, Some(height))].into(),
        }
    }

    /// The height of the last block; none where that is the genesis.
    pub(crate) fn height(&self) -> Option<u64> {
        self.blocks.back().and_then(|(_, height)| *height)
    }

    fn places(&self) -> HashMap<B256, usize> {
        let blocks = self.blocks.iter().enumerate();
        blocks.filter_map(|(at, (block, _))| Some(((*block)?, at))).collect()
    }
}

/// Reads the one spelling of a hash that records and jobs have.
pub fn hash(text: &str) -> Option<B256> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == 64 && text.bytes().all(is_digit)).then(|| text.parse().ok()).flatten()
}

/// What is to become of the blocks that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The published block that the branch follows, with its height; none where nothing is to be done.
    pub(crate) base: Option<(B256, u64)>,
    /// How many published blocks are not on the branch.
    pub(crate) torn: usize,
    /// The blocks of the branch that are not published, lowest first.
    pub(crate) wanted: Vec<B256>,
    /// Published blocks of the branch whose records say something else.
    pub(crate) published: Vec<B256>,
    /// Blocks whose link to the chain has not come, lowest first. Those that are not above `floor` never get one.
    pub(crate) floating: Vec<B256>,
    /// The height up to which blocks can only belong to what is published.
    pub(crate) floor: Option<u64>,
    /// Blocks of other branches.
    pub(crate) aside: Vec<B256>,
}

/// The blocks that may still matter.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    links: HashMap<B256, Link>,
    last: u64,
}

impl Tree {
    /// The order of the next payload.
    pub(crate) fn next(&self) -> u64 {
        self.last.saturating_add(1)
    }

    pub(crate) fn insert(&mut self, block: B256, link: Link) {
        self.last = self.last.max(link.order.0);
        self.links.insert(block, link);
    }

    pub(crate) fn remove(&mut self, block: &B256) {
        self.links.remove(block);
    }

    pub(crate) fn get(&self, block: &B256) -> Option<&Link> {
        self.links.get(block)
    }

    /// The pending blocks, lowest first.
    pub(crate) fn pending(&self) -> Vec<B256> {
        let pending = self.links.iter().filter(|(_, link)| link.pending);
        let mut pending: Vec<(u64, B256)> = pending.map(|(id, link)| (link.number, *id)).collect();
        pending.sort_unstable();
        pending.into_iter().map(|(_, block)| block).collect()
    }

    /// Forgets blocks that are too far below the last published one to matter.
    pub(crate) fn forget(&mut self, path: &Path) {
        let Some(height) = path.height() else { return };
        let floor = height.saturating_sub(DEPTH as u64);
        self.links.retain(|_, link| link.pending || link.number >= floor);
    }

    /// All blocks, with those that are published and of which there is no record, lowest first.
    fn nodes(&self, path: &Path) -> Vec<(B256, Link)> {
        let mut nodes: Vec<(B256, Link)> =
            self.links.iter().map(|(id, link)| (*id, *link)).collect();
        let mut before = None;
        for (block, height) in &path.blocks {
            if let (Some(block), Some(number), Some(parent)) = (block, height, before)
                && !self.links.contains_key(block)
            {
                let (number, order) = (*number, Order::default());
                let [pending, job, refused, aside] = [false; 4];
                nodes.push((*block, Link { parent, number, order, pending, job, refused, aside }));
            }
            before = *block;
        }
        // Each height is one above the parent's: that was checked with the witness.
        nodes.sort_unstable_by_key(|(block, link)| (link.number, *block));
        nodes
    }

    /// Decides what becomes of all blocks.
    pub(crate) fn follow(&self, path: &Path) -> Plan {
        let places = path.places();
        let nodes = self.nodes(path);
        let known: HashMap<B256, &Link> = nodes.iter().map(|(id, link)| (*id, link)).collect();
        let mut linked: HashSet<B256> = HashSet::new();
        for (block, link) in &nodes {
            let is_linked = places.contains_key(block)
                || places.contains_key(&link.parent)
                || linked.contains(&link.parent);
            if is_linked {
                linked.insert(*block);
            }
        }
        // Of each block, the child that the last payload belongs to, and when that came.
        let mut heirs: HashMap<B256, (Order, B256)> = HashMap::new();
        for (block, link) in nodes.iter().rev() {
            let own = link.order.max(heirs.get(block).map_or(link.order, |(order, _)| *order));
            let heir = heirs.entry(link.parent).or_insert((own, *block));
            *heir = (*heir).max((own, *block));
        }
        let payloads =
            nodes.iter().filter(|(id, link)| linked.contains(id) && link.order > Order::default());
        let last = payloads.max_by_key(|(_, link)| link.order).map(|(block, _)| *block);
        let mut wanted = Vec::new();
        let mut base = None;
        if let Some(mut head) = last {
            while let Some((_, next)) = heirs.get(&head) {
                head = *next;
            }
            while !places.contains_key(&head) {
                let Some(link) = known.get(&head) else { break };
                wanted.push(head);
                head = link.parent;
            }
            wanted.reverse();
            base = places.get(&head).copied();
        }
        let kept = base.unwrap_or(path.blocks.len() - 1);
        let on_branch: HashSet<&B256> = wanted.iter().collect();
        let [mut published, mut aside, mut floating] = [const { Vec::new() }; 3];
        for (block, link) in nodes.iter().filter(|(block, _)| self.links.contains_key(block)) {
            match places.get(block) {
                Some(at) if *at <= kept => {
                    if link.pending || link.aside {
                        published.push(*block);
                    }
                }
                _ if on_branch.contains(block) => {}
                _ if linked.contains(block) => aside.push(*block),
                _ => floating.push(*block),
            }
        }
        let lowest = nodes.iter().find(|(block, _)| linked.contains(block));
        let floor = path.height().or(lowest.map(|(_, link)| link.number.saturating_sub(1)));
        let torn = path.blocks.len() - 1 - kept;
        let base = base.and_then(|at| path.blocks.get(at));
        let base = base.and_then(|(block, height)| Some(((*block)?, height.unwrap_or(0))));
        Plan { base, torn, wanted, published, floating, floor, aside }
    }

    /// How many blocks wait for a job.
    pub(crate) fn count_pending(&self) -> usize {
        self.links.values().filter(|link| link.pending).count()
    }

    /// The lowest block of which a job is to be made, or else the lowest one.
    pub(crate) fn lowest(&self) -> Option<B256> {
        let key = |(block, link): &(&B256, &Link)| (!link.pending, link.number, **block);
        self.links.iter().min_by_key(key).map(|(block, _)| *block)
    }
}
