//! Which rank receives which instances, and when (spec: distributed#jobs).

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// The distribution of subcircuits over ranks. The proof does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// Each rank has a fixed share in proportion to its provers, as in the paper.
    Static,
    /// Each rank receives as many instances as its provers work on and as many again in advance (at
    /// least three). A rank that runs out receives more, in the end from the queue of another rank.
    #[default]
    Dynamic,
}

/// The coordinator's view of a rank's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) provers: usize,
    /// Subcircuits that were sent to the rank and are not answered.
    pub(crate) outstanding: usize,
    /// The rank was asked to return some and has not answered.
    pub(crate) revoking: bool,
    /// The rank had nothing to return when it was last asked.
    pub(crate) dry: bool,
}

impl Load {
    pub(crate) fn new(provers: usize) -> Self {
        Self { provers, outstanding: 0, revoking: false, dry: false }
    }

    /// The number of subcircuits that wait behind those in progress.
    fn queued(&self) -> usize {
        self.outstanding.saturating_sub(self.provers)
    }

    /// Reports whether the rank can take another one: it holds as many as its provers work on and
    /// as many in advance, a few more with one or two provers, so that small subcircuits do not
    /// wait for messages.
    fn room(&self, dealt: usize) -> bool {
        self.outstanding + dealt < self.provers + self.provers.max(3)
    }
}

/// With more types than this, ranks keep to those that they had.
const MANY_TYPES: usize = 32;

/// The number of subcircuits that a rank holds, relative to its provers.
#[derive(Clone, Copy, Debug)]
struct Fullness {
    held: usize,
    provers: usize,
    rank: usize,
}

impl Fullness {
    fn new(rank: usize, load: &Load, dealt: usize) -> Self {
        Self { held: load.outstanding + dealt, provers: load.provers, rank }
    }
}

impl Ord for Fullness {
    fn cmp(&self, other: &Self) -> Ordering {
        // Products avoid fractions. Ranks that are equally full are in the order of their numbers.
        let (mine, theirs) = (self.held * other.provers, other.held * self.provers);
        mine.cmp(&theirs).then(self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Fullness {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fullness {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fullness {}

/// Instances that no rank has yet.
#[derive(Debug)]
pub(crate) enum Pending {
    /// One queue for all: the next instance goes to a rank that has room.
    Common(VecDeque<usize>),
    /// One queue per type, where there are many.
    Types(ByType),
    /// One queue per rank.
    Shares(Vec<VecDeque<usize>>),
    /// The instances of each rank's own slice, which it receives at once because they are small;
    /// and those that ranks gave back.
    Slices { own: Vec<VecDeque<usize>>, returned: VecDeque<usize> },
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Common(queue) => queue.is_empty(),
            Self::Types(types) => types.queues.iter().all(VecDeque::is_empty),
            Self::Shares(shares) => shares.iter().all(VecDeque::is_empty),
            Self::Slices { own, returned } => {
                returned.is_empty() && own.iter().all(VecDeque::is_empty)
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::Common(VecDeque::new());
    }

    /// Takes back an instance that a rank returned.
    pub(crate) fn put_back(&mut self, rank: usize, instance: usize) {
        match self {
            Self::Common(queue) => queue.push_back(instance),
            Self::Types(types) => types.queues[types.kinds[instance]].push_back(instance),
            Self::Shares(shares) => shares[rank].push_back(instance),
            Self::Slices { returned, .. } => returned.push_back(instance),
        }
    }

    /// Takes the instances to send now, one list per rank. There are never more than the provers
    /// need soon, so that jobs and their private inputs are created only when they are sent.
    pub(crate) fn deal(&mut self, loads: &[Load]) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); loads.len()];
        match self {
            Self::Shares(shares) => {
                for ((list, load), share) in out.iter_mut().zip(loads).zip(shares) {
                    while load.room(list.len()) && !share.is_empty() {
                        list.extend(share.pop_front());
                    }
                }
            }
            Self::Slices { own, returned } => {
                for (list, own) in out.iter_mut().zip(own) {
                    list.extend(own.drain(..));
                }
                deal_to_emptiest(|_| returned.pop_front(), loads, &mut out);
            }
            Self::Types(types) => deal_to_emptiest(|rank| types.take(rank), loads, &mut out),
            Self::Common(queue) => deal_to_emptiest(|_| queue.pop_front(), loads, &mut out),
        }
        out
    }
}

/// Instances by type: a rank keeps to types that it had, so that it reads few keys, and takes those of
/// others when there are no more.
#[derive(Debug)]
pub(crate) struct ByType {
    /// The type of each instance.
    kinds: Vec<usize>,
    /// The instances of each type.
    queues: Vec<VecDeque<usize>>,
    /// The types that each rank had, the last one first.
    had: Vec<VecDeque<usize>>,
    /// Types that no rank had, in the order of their first instances.
    fresh: VecDeque<usize>,
}

impl ByType {
    fn new(order: &[usize], kinds: Vec<usize>, ranks: usize) -> Self {
        let types = kinds.iter().max().map_or(0, |last| last + 1);
        let (mut queues, mut fresh) = (vec![VecDeque::new(); types], VecDeque::new());
        for instance in order {
            let queue: &mut VecDeque<usize> = &mut queues[kinds[*instance]];
            if queue.is_empty() {
                fresh.push_back(kinds[*instance]);
            }
            queue.push_back(*instance);
        }
        Self { kinds, queues, had: vec![VecDeque::new(); ranks], fresh }
    }

    /// Takes the next instance for a rank: of a type that it had, else of one that no rank had, else
    /// of the type with the most that are left.
    fn take(&mut self, rank: usize) -> Option<usize> {
        let left = |kind: &usize| !self.queues[*kind].is_empty();
        let had = self.had[rank].iter().copied().find(left);
        let kind = had.or_else(|| self.fresh.pop_front()).or_else(|| {
            let longest = (0..self.queues.len()).rev().max_by_key(|kind| self.queues[*kind].len());
            longest.filter(left)
        })?;
        if had.is_none() {
            self.had[rank].push_front(kind);
        }
        self.queues[kind].pop_front()
    }
}

/// Deals the next jobs to the ranks that have room.
fn deal_to_emptiest(
    mut next: impl FnMut(usize) -> Option<usize>,
    loads: &[Load],
    out: &mut [Vec<usize>],
) {
    // The emptiest rank relative to its provers comes first.
    let dealt = |rank: usize, out: &[Vec<usize>]| out[rank].len();
    let mut with_room: BinaryHeap<Reverse<Fullness>> = (loads.iter().enumerate())
        .filter(|(rank, load)| load.room(dealt(*rank, out)))
        .map(|(rank, load)| Reverse(Fullness::new(rank, load, dealt(rank, out))))
        .collect();
    while let Some(Reverse(Fullness { rank, .. })) = with_room.pop() {
        let Some(instance) = next(rank) else { break };
        out[rank].push(instance);
        if loads[rank].room(out[rank].len()) {
            with_room.push(Reverse(Fullness::new(rank, &loads[rank], out[rank].len())));
        }
    }
}

/// Cuts instances of these weights into one contiguous slice per rank, in proportion to the ranks'
/// provers. Some may be empty.
pub(crate) fn slices(weights: &[u64], provers: &[usize]) -> Vec<Range<usize>> {
    let all: u128 = weights.iter().copied().map(u128::from).sum();
    let total: u128 = provers.iter().map(|provers| *provers as u128).sum::<u128>().max(1);
    let (mut at, mut weight, mut before) = (0, 0u128, 0u128);
    let slice = |provers: &usize| {
        before += *provers as u128;
        let (start, end) = (at, all * before / total);
        // An instance belongs to the rank in whose share its middle lies.
        while let Some(next) = weights.get(at).map(|next| u128::from(*next))
            && weight + next / 2 < end
        {
            weight += next;
            at += 1;
        }
        start..at
    };
    let mut out: Vec<Range<usize>> = provers.iter().map(slice).collect();
    // Rounding must not leave out an instance.
    if let Some(last) = out.last_mut() {
        last.end = weights.len();
    }
    out
}

impl Scheduling {
    /// The instances of a round before any is sent, in this order, where each rank executed a slice. Those
    /// of tables are in no slice: they go where there is room.
    pub(crate) fn of_slices(
        order: &[usize],
        slices: &[Range<usize>],
        is_table: impl Fn(usize) -> bool,
    ) -> Pending {
        let mut owner = Vec::new();
        for (rank, slice) in slices.iter().enumerate() {
            owner.resize(slice.end, rank);
        }
        let mut own = vec![VecDeque::new(); slices.len()];
        let mut returned = VecDeque::new();
        for instance in order.iter().copied() {
            match is_table(instance) {
                true => returned.push_back(instance),
                false => own[owner[instance]].push_back(instance),
            }
        }
        Pending::Slices { own, returned }
    }

    /// The instances of a round before any is sent, in this order. `kinds` has the type of each
    /// instance.
    pub(crate) fn pending(self, order: Vec<usize>, kinds: Vec<usize>, loads: &[Load]) -> Pending {
        let types = kinds.iter().max().map_or(0, |last| last + 1);
        match self {
            Self::Dynamic if types > MANY_TYPES => {
                Pending::Types(ByType::new(&order, kinds, loads.len()))
            }
            Self::Dynamic => Pending::Common(order.into()),
            Self::Static => {
                // Contiguous shares by index, whose ends are rounded down: together they cover all.
                let mut all = order;
                all.sort_unstable();
                let provers: usize = loads.iter().map(|load| load.provers).sum();
                let (mut at, mut before) = (0, 0);
                let share = |load: &Load| {
                    before += load.provers;
                    let start = std::mem::replace(&mut at, all.len() * before / provers.max(1));
                    all[start..at].iter().copied().collect()
                };
                Pending::Shares(loads.iter().map(share).collect())
            }
        }
    }

    /// When nothing is pending and a rank runs out, returns the rank to ask for instances, and how
    /// many.
    pub(crate) fn steal(self, loads: &[Load]) -> Option<(usize, usize)> {
        if self == Self::Static || loads.iter().any(|load| load.revoking) {
            return None;
        }
        // One request at a time, because its answer changes all loads. Half of the longest queue
        // moves, but not much more than the idle provers need, so that instances do not travel
        // twice.
        let thief = loads.iter().filter(|load| load.outstanding < load.provers);
        let want = thief.map(|load| load.provers - load.outstanding).max()?;
        let victims = loads.iter().enumerate().filter(|(_, load)| load.queued() > 0 && !load.dry);
        let (victim, load) = victims.max_by_key(|(_, load)| load.queued() * 1024 / load.provers)?;
        Some((victim, load.queued().div_ceil(2).min(2 * want)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(provers: &[usize]) -> Vec<Load> {
        provers.iter().map(|p| Load::new(*p)).collect()
    }

    #[test]
    fn static_shares_are_contiguous_and_fair() {
        let loads = loads(&[1, 2, 1]);
        let mut pending = Scheduling::Static.pending((0..10).rev().collect(), vec![0; 10], &loads);
        let Pending::Shares(shares) = &pending else { panic!("shares") };
        assert_eq!(shares, &[vec![0, 1], vec![2, 3, 4, 5, 6], vec![7, 8, 9]]);
        // Shares are streamed as well.
        assert_eq!(pending.deal(&loads), [vec![0, 1], vec![2, 3, 4, 5, 6], vec![7, 8, 9]]);
        assert!(pending.is_empty());
        let mut pending = Scheduling::Static.pending((0..100).collect(), vec![0; 100], &loads);
        assert_eq!(pending.deal(&loads).iter().map(Vec::len).collect::<Vec<_>>(), [4, 5, 4]);
    }

    #[test]
    fn dynamic_keeps_a_few_in_advance_and_no_more() {
        let mut loads = loads(&[1, 3]);
        let mut pending = Scheduling::Dynamic.pending((0..100).collect(), vec![0; 100], &loads);
        let lists = pending.deal(&loads);
        assert_eq!((lists[0].len(), lists[1].len()), (4, 6));
        (loads[0].outstanding, loads[1].outstanding) = (4, 6);
        assert_eq!(pending.deal(&loads), [vec![], vec![]] as [Vec<usize>; 2]);
        loads[0].outstanding = 3;
        assert_eq!(pending.deal(&loads), [vec![10], vec![]]);
        // A few subcircuits go to all ranks, not only to the first.
        let mut pending = Scheduling::Dynamic.pending((0..4).collect(), vec![0; 4], &loads);
        let lists = pending.deal(&self::loads(&[4, 4]));
        assert_eq!((lists[0].len(), lists[1].len()), (2, 2));
    }

    #[test]
    fn ranks_keep_to_types_that_they_had() {
        // 40 types of 10 instances, in turn.
        let (kinds, mut loads) = ((0..400).map(|i| i % 40).collect::<Vec<_>>(), loads(&[1, 2, 1]));
        let mut pending = Scheduling::Dynamic.pending((0..400).collect(), kinds.clone(), &loads);
        assert!(matches!(pending, Pending::Types(_)));
        let mut all: Vec<Vec<usize>> = vec![Vec::new(); 3];
        while !pending.is_empty() {
            let lists = pending.deal(&loads);
            for ((all, list), load) in all.iter_mut().zip(lists).zip(&mut loads) {
                all.extend(&list);
                load.outstanding = (load.outstanding + list.len()).saturating_sub(1);
            }
        }
        let mut dealt = all.concat();
        dealt.sort_unstable();
        assert_eq!(dealt, (0..400).collect::<Vec<_>>(), "each once");
        let types = |list: &Vec<usize>| {
            let mut types: Vec<usize> = list.iter().map(|i| kinds[*i]).collect();
            types.dedup();
            let changes = types.len();
            types.sort_unstable();
            types.dedup();
            (types.len(), changes)
        };
        let counts: Vec<(usize, usize)> = all.iter().map(types).collect();
        // Each type is read by one rank, except for instances that others take over at the end.
        let read: usize = counts.iter().map(|(types, _)| types).sum();
        assert!(read <= 42, "{counts:?}");
        assert!(counts.iter().all(|(types, changes)| changes == types), "{counts:?}");
        // What comes back is dealt again; few types have one queue for all.
        let mut pending = Scheduling::Dynamic.pending(vec![5], (0..40).collect(), &loads);
        pending.put_back(0, 7);
        let loads = self::loads(&[1, 2, 1]);
        assert_eq!(pending.deal(&loads).concat().len(), 2);
        assert!(pending.is_empty());
        let few = Scheduling::Dynamic.pending(vec![5], vec![31; 6], &loads);
        assert!(matches!(few, Pending::Common(_)));
    }

    #[test]
    fn slices_follow_weights_and_provers() {
        let even = |n: usize, provers: &[usize]| slices(&vec![7; n], provers);
        assert_eq!(even(8, &[1, 1]), [0..4, 4..8]);
        assert_eq!(even(8, &[3, 1]), [0..6, 6..8]);
        assert_eq!(even(2, &[1, 1, 1, 1]).iter().map(Range::len).sum::<usize>(), 2);
        // A large instance counts more.
        assert_eq!(slices(&[10, 1, 1, 8], &[1, 1]), [0..1, 1..4]);
        assert_eq!(slices(&[0, 0], &[1, 1]), [0..0, 0..2]);
        for n in 0..40usize {
            for provers in [&[1][..], &[2, 1], &[1, 5, 3], &[32; 9]] {
                let weights: Vec<u64> = (0..n).map(|i| (i * i % 5) as u64).collect();
                let found = slices(&weights, provers);
                let all: Vec<usize> = found.iter().cloned().flatten().collect();
                assert_eq!((found.len(), all), (provers.len(), (0..n).collect()), "{provers:?}");
            }
        }
    }

    #[test]
    fn own_instances_are_sent_at_once_and_returned_ones_where_there_is_room() {
        let mut loads = loads(&[1, 1]);
        let order: Vec<usize> = (0..20).rev().collect();
        let mut pending = Scheduling::of_slices(&order, &[0..15, 15..20], |_| false);
        let lists = pending.deal(&loads);
        assert_eq!(lists, [(0..15).rev().collect::<Vec<_>>(), (15..20).rev().collect()]);
        assert!(pending.is_empty());
        (loads[0].outstanding, loads[1].outstanding) = (15, 0);
        pending.put_back(0, 3);
        pending.put_back(0, 4);
        assert!(!pending.is_empty());
        assert_eq!(pending.deal(&loads), [vec![], vec![3, 4]]);
        let mut pending = Scheduling::of_slices(&order, &[0..15, 15..20], |instance| instance > 17);
        loads[1].outstanding = 5;
        let lists = pending.deal(&loads);
        assert_eq!(lists, [(0..15).rev().collect::<Vec<_>>(), vec![17, 16, 15]]);
        (loads[0].outstanding, loads[1].outstanding) = (0, 5);
        assert_eq!(pending.deal(&loads), [vec![19, 18], vec![]]);
    }

    #[test]
    fn the_longest_queue_gives_back() {
        let mut loads = loads(&[1, 1, 1]);
        loads[1].outstanding = 5;
        loads[2].outstanding = 2;
        assert_eq!(Scheduling::Dynamic.steal(&loads), Some((1, 2)));
        assert_eq!(Scheduling::Static.steal(&loads), None);
        loads[1].dry = true;
        assert_eq!(Scheduling::Dynamic.steal(&loads), Some((2, 1)));
        loads[2].revoking = true;
        assert_eq!(Scheduling::Dynamic.steal(&loads), None);
        loads[2].revoking = false;
        loads[0].outstanding = 1; // no rank is idle
        assert_eq!(Scheduling::Dynamic.steal(&loads), None);
    }
}
