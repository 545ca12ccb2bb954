//! Which rank gets what next.

use std::collections::VecDeque;

/// How subcircuits are shared out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// Each rank gets a fixed share at once, in proportion to its provers, as in the paper.
    Static,
    /// Each rank gets as many as its provers work on and as many more in advance (three at least); whoever runs out gets more, in the
    /// end from the queue of another rank.
    #[default]
    Dynamic,
}

/// What the coordinator knows of a rank's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) provers: usize,
    /// subcircuits given out, not answered
    pub(crate) outstanding: usize,
    /// it was asked to give some back and has not said which
    pub(crate) revoking: bool,
    /// it had nothing to give back when it was last asked
    pub(crate) dry: bool,
}

impl Load {
    pub(crate) fn new(provers: usize) -> Self {
        Self { provers, outstanding: 0, revoking: false, dry: false }
    }

    /// What waits there behind what is under way.
    fn queued(&self) -> usize {
        self.outstanding.saturating_sub(self.provers)
    }

    /// As many as its provers work on, and as many in advance; a few more for one or two provers, so that small
    /// subcircuits need not wait for messages.
    fn room(&self, dealt: usize) -> bool {
        self.outstanding + dealt < self.provers + self.provers.max(3)
    }
}

/// What is not given out yet.
#[derive(Debug)]
pub(crate) enum Pending {
    /// whoever has room takes the next
    Common(VecDeque<usize>),
    /// each rank its own
    Shares(Vec<VecDeque<usize>>),
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Common(queue) => queue.is_empty(),
            Self::Shares(shares) => shares.iter().all(VecDeque::is_empty),
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::Common(VecDeque::new());
    }

    /// Something that a rank gave back.
    pub(crate) fn put_back(&mut self, rank: usize, instance: usize) {
        match self {
            Self::Common(queue) => queue.push_back(instance),
            Self::Shares(shares) => shares[rank].push_back(instance),
        }
    }

    /// Takes what should be given out now: for each rank a list. Never more than the provers need soon, so that what the
    /// jobs carry is made when it is sent.
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
            Self::Common(queue) => {
                // the emptiest rank first, compared without fractions
                let held =
                    |rank: usize, list: &[Vec<usize>]| loads[rank].outstanding + list[rank].len();
                while !queue.is_empty() {
                    let room = (0..loads.len()).filter(|rank| loads[*rank].room(out[*rank].len()));
                    let fullness = |a: &usize, b: &usize| {
                        (held(*a, &out) * loads[*b].provers)
                            .cmp(&(held(*b, &out) * loads[*a].provers))
                    };
                    let Some(rank) = room.min_by(fullness) else { break };
                    out[rank].extend(queue.pop_front());
                }
            }
        }
        out
    }
}

impl Scheduling {
    /// What is to be given out, in this order.
    pub(crate) fn pending(self, order: Vec<usize>, loads: &[Load]) -> Pending {
        match self {
            Self::Dynamic => Pending::Common(order.into()),
            Self::Static => {
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

    /// When nothing is pending and a rank runs out: who should give back how many.
    pub(crate) fn steal(self, loads: &[Load]) -> Option<(usize, usize)> {
        if self == Self::Static || loads.iter().any(|load| load.revoking) {
            return None;
        }
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
        let mut pending = Scheduling::Static.pending((0..10).rev().collect(), &loads);
        let Pending::Shares(shares) = &pending else { panic!("shares") };
        assert_eq!(shares, &[vec![0, 1], vec![2, 3, 4, 5, 6], vec![7, 8, 9]]);
        // and they are streamed, too
        assert_eq!(pending.deal(&loads), [vec![0, 1], vec![2, 3, 4, 5, 6], vec![7, 8, 9]]);
        assert!(pending.is_empty());
        let mut pending = Scheduling::Static.pending((0..100).collect(), &loads);
        assert_eq!(pending.deal(&loads).iter().map(Vec::len).collect::<Vec<_>>(), [4, 5, 4]);
    }

    #[test]
    fn dynamic_keeps_a_few_in_advance_and_no_more() {
        let mut loads = loads(&[1, 3]);
        let mut pending = Scheduling::Dynamic.pending((0..100).collect(), &loads);
        let lists = pending.deal(&loads);
        assert_eq!((lists[0].len(), lists[1].len()), (4, 6));
        (loads[0].outstanding, loads[1].outstanding) = (4, 6);
        assert_eq!(pending.deal(&loads), [vec![], vec![]] as [Vec<usize>; 2]);
        loads[0].outstanding = 3;
        assert_eq!(pending.deal(&loads), [vec![10], vec![]]);
        // few subcircuits go to all ranks, not to the first
        let lists =
            Scheduling::Dynamic.pending((0..4).collect(), &loads).deal(&self::loads(&[4, 4]));
        assert_eq!((lists[0].len(), lists[1].len()), (2, 2));
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
        loads[0].outstanding = 1; // nobody is idle
        assert_eq!(Scheduling::Dynamic.steal(&loads), None);
    }
}
