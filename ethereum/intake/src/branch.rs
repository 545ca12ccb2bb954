//! Finds the branch that a chain of jobs follows: that of the payload that was accepted last.
//!
//! Everything here is a function of the records and of the published blocks, so a process that restarts makes the same decisions.
//! A payload that arrives before its parent counts once it is linked to the chain. Blocks that descend from the last payload but
//! arrived before it belong to its branch; if they form several branches, the one whose payload arrived last is followed.

use alloy_primitives::B256;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// The number of published blocks that a branch may take back. If a branch forks off further down, an operator has to decide.
pub const DEPTH: usize = 1_024;

/// The position of a payload in the order in which they were accepted.
pub(crate) type Order = (u64, u64);

/// The part of a record that the choice of a branch needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The hash of the parent.
    pub(crate) parent: B256,
    /// Its height.
    pub(crate) number: u64,
    /// Rises with each payload that is accepted: its number, and the time, as records of earlier versions have no number.
    pub(crate) order: Order,
    /// `true` if a job is to be made of the block.
    pub(crate) pending: bool,
    /// `true` if a job was made of the block.
    pub(crate) job: bool,
    /// `true` if the orchestrator has refused the job itself.
    pub(crate) refused: bool,
    /// `true` if another branch is followed and the job was cancelled.
    pub(crate) aside: bool,
}

/// The last blocks that a chain has published, as far down as a branch may fork off.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// The published blocks, never empty: at first the genesis, which has no height of its own. Other clients' names need not be hashes.
    blocks: VecDeque<(Option<B256>, Option<u64>)>,
}

impl Path {
    /// The path of a chain that has published nothing.
    pub(crate) fn new(genesis: &str) -> Self {
        Self { blocks: [(hash(genesis), None)].into() }
    }

    /// Adds the next block.
    pub(crate) fn push(&mut self, id: &str, height: u64) {
        self.blocks.push_back((hash(id), Some(height)));
        while self.blocks.len() > DEPTH + 1 {
            self.blocks.pop_front();
        }
    }

    /// Takes back the blocks after a given one. If that is further below than the path reaches, it becomes the only block.
    pub(crate) fn revert(&mut self, id: &str, height: u64) {
        let to = hash(id);
        match self.blocks.iter().rposition(|(block, _)| *block == to && to.is_some()) {
            Some(at) => self.blocks.truncate(at + 1),
            None => self.blocks = [(to, Some(height))].into(),
        }
    }

    /// Returns the height of the last block; `None` if that is the genesis.
    pub(crate) fn height(&self) -> Option<u64> {
        self.blocks.back().and_then(|(_, height)| *height)
    }

    fn places(&self) -> HashMap<B256, usize> {
        let blocks = self.blocks.iter().enumerate();
        blocks.filter_map(|(at, (block, _))| Some(((*block)?, at))).collect()
    }
}

/// Reads a hash in the only spelling that records and jobs have.
pub fn hash(text: &str) -> Option<B256> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == 64 && text.bytes().all(is_digit)).then(|| text.parse().ok()).flatten()
}

/// The steps to take for the known blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The published block that the branch follows, with its height; `None` if there is nothing to do.
    pub(crate) base: Option<(B256, u64)>,
    /// The number of published blocks that are not on the branch.
    pub(crate) torn: usize,
    /// The blocks of the branch that are not published, lowest first.
    pub(crate) wanted: Vec<B256>,
    /// Blocks of the branch that are published, but whose records do not show it.
    pub(crate) published: Vec<B256>,
    /// Blocks that are not linked to the chain so far, lowest first. Those at or below `floor` never will be.
    pub(crate) floating: Vec<B256>,
    /// The height up to which only published blocks can be part of the chain.
    pub(crate) floor: Option<u64>,
    /// Blocks of other branches.
    pub(crate) aside: Vec<B256>,
}

/// Returns the blocks that are published or follow published ones. The nodes are in the order of their heights.
fn linked(nodes: &[(B256, Link)], places: &HashMap<B256, usize>) -> HashSet<B256> {
    let mut linked = HashSet::new();
    // The lowest come first, so that a parent is linked before its children are looked at.
    for (block, link) in nodes {
        let is_linked = places.contains_key(block)
            || places.contains_key(&link.parent)
            || linked.contains(&link.parent);
        if is_linked {
            linked.insert(*block);
        }
    }
    linked
}

/// Returns for each block the child that the last payload belongs to, and the order of that payload. The nodes are in the order of
/// their heights.
fn heirs(nodes: &[(B256, Link)]) -> HashMap<B256, (Order, B256)> {
    let mut heirs: HashMap<B256, (Order, B256)> = HashMap::new();
    // The highest come first, so that what follows a block is known before the block counts for
    // its parent.
    for (block, link) in nodes.iter().rev() {
        let own = link.order.max(heirs.get(block).map_or(link.order, |(order, _)| *order));
        let heir = heirs.entry(link.parent).or_insert((own, *block));
        *heir = (*heir).max((own, *block));
    }
    heirs
}

/// The blocks that may still matter.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    links: HashMap<B256, Link>,
    /// Blocks that are too far below the last published one, by height, until the chain is taken back far enough.
    below: BTreeMap<(u64, B256), Link>,
    last: u64,
}

impl Tree {
    /// Returns the order of the next payload.
    pub(crate) fn next(&self) -> u64 {
        self.last.saturating_add(1)
    }

    pub(crate) fn insert(&mut self, block: B256, link: Link) {
        self.last = self.last.max(link.order.0);
        self.below.remove(&(link.number, block));
        self.links.insert(block, link);
    }

    pub(crate) fn remove(&mut self, block: &B256, number: u64) {
        self.below.remove(&(number, *block));
        self.links.remove(block);
    }

    pub(crate) fn get(&self, block: &B256) -> Option<&Link> {
        self.links.get(block)
    }

    /// Returns the heights and hashes of all blocks, in no order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u64, B256)> {
        let links = self.links.iter().map(|(block, link)| (link.number, *block));
        links.chain(self.below.keys().copied())
    }

    /// Returns the pending blocks, lowest first.
    pub(crate) fn pending(&self) -> Vec<B256> {
        let waiting = self.links.iter().filter(|(_, link)| link.pending);
        let mut pending: Vec<(u64, B256)> = waiting.map(|(id, link)| (link.number, *id)).collect();
        pending.sort_unstable();
        pending.into_iter().map(|(_, block)| block).collect()
    }

    /// Leaves out blocks that are too far below the last published one to matter. Those that matter again, since the chain was taken
    /// back, are restored: their jobs may have to be made again, too.
    pub(crate) fn trim(&mut self, path: &Path) {
        let floor = path.height().map_or(0, |height| height.saturating_sub(DEPTH as u64));
        let again = self.below.split_off(&(floor, B256::ZERO));
        self.links.extend(again.into_iter().map(|((_, block), link)| (block, link)));
        let is_below = |link: &Link| !link.pending && link.number < floor;
        let below = self.links.iter().filter(|(_, link)| is_below(link));
        self.below.extend(below.map(|(block, link)| ((link.number, *block), *link)));
        self.links.retain(|_, link| !is_below(link));
    }

    /// Returns all blocks, including published ones that have no record, lowest first.
    fn nodes(&self, path: &Path) -> Vec<(B256, Link)> {
        let mut nodes: Vec<(B256, Link)> =
            self.links.iter().map(|(id, link)| (*id, *link)).collect();
        let mut before = None;
        for (block, height) in &path.blocks {
            if let (Some(block), Some(number), Some(parent)) = (block, height, before)
                && !self.links.contains_key(block)
            {
                // No payload of it was accepted here, so it has the lowest order and never decides
                // which branch is followed.
                let (number, order) = (*number, Order::default());
                let [pending, job, refused, aside] = [false; 4];
                nodes.push((*block, Link { parent, number, order, pending, job, refused, aside }));
            }
            before = *block;
        }
        // Each height is one above the parent's, which was checked with the witness.
        nodes.sort_unstable_by_key(|(block, link)| (link.number, *block));
        nodes
    }

    /// Decides which blocks are wanted, set aside or still unlinked.
    pub(crate) fn follow(&self, path: &Path) -> Plan {
        let places = path.places();
        let nodes = self.nodes(path);
        let known: HashMap<B256, &Link> = nodes.iter().map(|(id, link)| (*id, link)).collect();
        let linked = linked(&nodes, &places);
        let heirs = heirs(&nodes);
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
                    if link.pending || link.aside || link.refused {
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
        // The genesis has no height of its own; the block after it decides.
        let parent = base.and_then(|at| path.blocks.get(at));
        let base = parent.and_then(|(block, height)| Some(((*block)?, height.unwrap_or(0))));
        Plan { base, torn, wanted, published, floating, floor, aside }
    }

    /// Returns the number of blocks that wait for a job.
    pub(crate) fn count_pending(&self) -> usize {
        self.links.values().filter(|link| link.pending).count()
    }

    /// Returns the lowest block of which a job is to be made, or else the lowest one.
    pub(crate) fn lowest(&self) -> Option<(B256, Link)> {
        let key = |(block, link): &(&B256, &Link)| (!link.pending, link.number, **block);
        let lowest = self.links.iter().min_by_key(key).map(|(block, link)| (*block, *link));
        lowest.or_else(|| self.below.iter().next().map(|((_, block), link)| (*block, *link)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(name: u64) -> B256 {
        B256::left_padding_from(&name.to_be_bytes())
    }

    fn text(name: u64) -> String {
        alloy_primitives::hex::encode(block(name))
    }

    /// Makes blocks of (name, parent, height), in the order of their payloads.
    fn tree(blocks: &[(u64, u64, u64)]) -> Tree {
        let mut tree = Tree::default();
        for (name, parent, number) in blocks {
            let (parent, number, order) = (block(*parent), *number, (tree.next(), 0));
            let [job, refused, aside] = [false; 3];
            let link = Link { parent, number, order, pending: true, job, refused, aside };
            tree.insert(block(*name), link);
        }
        tree
    }

    fn names(blocks: &[B256]) -> Vec<u64> {
        blocks.iter().map(|it| u64::from_be_bytes(it.0[24..].try_into().unwrap())).collect()
    }

    /// Returns the wanted, aside and floating blocks, after genesis 1 and the published blocks.
    fn plan(blocks: &[(u64, u64, u64)], published: &[(u64, u64)]) -> [Vec<u64>; 3] {
        let mut path = Path::new(&text(1));
        published.iter().for_each(|(name, height)| path.push(&text(*name), *height));
        let plan = tree(blocks).follow(&path);
        [&plan.wanted, &plan.aside, &plan.floating].map(|blocks| names(blocks))
    }

    #[test]
    fn the_branch_of_the_last_payload_is_followed() {
        let (a, b, c) = ((2, 1, 1), (3, 2, 2), (4, 3, 3));
        let (x, y) = ((13, 2, 2), (14, 13, 3));
        let none = vec![];
        // In order, out of order, and before the link has come.
        assert_eq!(plan(&[a, b, c], &[]), [vec![2, 3, 4], none.clone(), none.clone()]);
        assert_eq!(plan(&[c, a, b], &[]), [vec![2, 3, 4], none.clone(), none.clone()]);
        assert_eq!(plan(&[a, c], &[]), [vec![2], none.clone(), vec![4]]);
        assert_eq!(plan(&[c, b], &[]), [none.clone(), none.clone(), vec![3, 4]]);
        // A competing block, and one that comes back by its child.
        assert_eq!(plan(&[a, b, c, x], &[]), [vec![2, 13], vec![3, 4], none.clone()]);
        assert_eq!(plan(&[a, b, x, c], &[]), [vec![2, 3, 4], vec![13], none.clone()]);
        // The child of a competing block comes first.
        assert_eq!(plan(&[a, b, y, c, x], &[]), [vec![2, 13, 14], vec![3, 4], none.clone()]);
        // A common ancestor that comes last decides nothing.
        assert_eq!(plan(&[b, c, x, a], &[]), [vec![2, 13], vec![3, 4], none.clone()]);
        assert_eq!(plan(&[x, b, c, a], &[]), [vec![2, 3, 4], vec![13], none.clone()]);
        // Published blocks are not wanted again, and those that other clients have published are known.
        assert_eq!(plan(&[a, b, c], &[(2, 1), (3, 2)]), [vec![4], none.clone(), none.clone()]);
        assert_eq!(plan(&[c], &[(2, 1), (3, 2)]), [vec![4], none.clone(), none.clone()]);
        assert_eq!(plan(&[a, b, c, x], &[(2, 1), (3, 2)]), [vec![13], vec![3, 4], none.clone()]);
        // A published block that arrives again does not revert the blocks that other clients have published after it.
        assert_eq!(plan(&[a], &[(2, 1), (3, 2)]), [none.clone(), none.clone(), none]);
    }

    #[test]
    fn a_branch_forks_off_where_it_leaves_the_path() {
        let mut path = Path::new(&text(1));
        [(2, 1), (3, 2), (4, 3)].iter().for_each(|(name, height)| path.push(&text(*name), *height));
        let plan = tree(&[(13, 2, 2)]).follow(&path);
        assert_eq!((plan.base, plan.torn), (Some((block(2), 1)), 2));
        path.revert(&text(2), 1);
        let plan = tree(&[(13, 2, 2)]).follow(&path);
        assert_eq!((plan.base, plan.torn), (Some((block(2), 1)), 0));
        let plan = tree(&[(13, 1, 1)]).follow(&path);
        assert_eq!((plan.base, plan.torn, names(&plan.wanted)), (Some((block(1), 0)), 1, vec![13]));
    }

    #[test]
    fn paths_reach_as_far_down_as_branches_may_fork_off() {
        let mut path = Path::new(&text(1));
        let count = DEPTH as u64 + 5;
        (1..=count).for_each(|height| path.push(&text(1 + height), height));
        let forks = |after: u64| tree(&[(1 << 40, after, after)]).follow(&path);
        // The last block that may follow: as many as DEPTH are taken back.
        let lowest = 1 + count - DEPTH as u64;
        assert_eq!((forks(lowest).torn, forks(lowest).wanted.len()), (DEPTH, 1));
        let deeper = forks(lowest - 1);
        assert_eq!((deeper.torn, deeper.wanted.len(), deeper.floating.len()), (0, 0, 1));
        assert_eq!(deeper.floor, Some(count));
        // A block further below than is known becomes the only known one.
        path.revert(&text(3), 2);
        assert_eq!(path.height(), Some(2));
        assert_eq!(names(&tree(&[(1 << 40, 3, 3)]).follow(&path).wanted), [1 << 40]);
    }

    #[test]
    fn what_cannot_matter_is_left_out_until_it_does() {
        let mut known = tree(&[(2, 1, 1), (3, 2, 2), (4, 3, DEPTH as u64)]);
        let link = *known.get(&block(2)).unwrap();
        known.insert(block(2), Link { pending: false, ..link });
        let mut path = Path::new(&text(1));
        path.push(&text(2), 1);
        path.push(&text(9), DEPTH as u64 + 2);
        known.trim(&path);
        // A pending block stays.
        assert!(known.get(&block(2)).is_none() && known.get(&block(3)).is_some());
        assert_eq!((known.count_pending(), known.next()), (2, 4));
        assert_eq!(known.lowest().map(|it| it.0), Some(block(3)));
        // Taken back that far, or entirely, the chain needs it again.
        for (to, height) in [(2, 1), (5, 4), (1, 0)] {
            let mut back = path.clone();
            back.revert(&text(to), height);
            known.trim(&back);
            assert_eq!(known.get(&block(2)), Some(&Link { pending: false, ..link }), "{to}");
            known.trim(&path);
            assert_eq!(known.get(&block(2)), None, "{to}");
        }
        // The tree has a lowest block even if all blocks are left out.
        let mut all = tree(&[(2, 1, 1)]);
        all.insert(block(2), Link { pending: false, ..link });
        all.trim(&path);
        assert_eq!((all.get(&block(2)), all.lowest().map(|it| it.0)), (None, Some(block(2))));
        // A block that comes again is restored, and one that is removed is not.
        known.insert(block(2), link);
        known.trim(&path);
        assert_eq!(known.get(&block(2)), Some(&link));
        known.insert(block(2), Link { pending: false, ..link });
        known.trim(&path);
        known.remove(&block(2), link.number);
        known.trim(&Path::new(&text(1)));
        assert_eq!(known.get(&block(2)), None);
    }

    #[test]
    fn hashes_have_one_spelling() {
        assert_eq!(hash(&text(5)), Some(block(5)));
        for wrong in ["", "0x5", &text(5).to_uppercase().replace('5', "A"), &text(5)[1..]] {
            assert_eq!(hash(wrong), None, "{wrong}");
        }
    }
}
