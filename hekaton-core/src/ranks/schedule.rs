//! Which rank gets what next.

use std::collections::{BTreeSet, VecDeque};

/// How subcircuits are shared out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Each rank gets a fixed share at once, in proportion to its provers, as in the paper.
    Static,
    /// Each rank gets as many as its provers work on and as many more in advance; whoever runs out gets more, in the
    /// end from the queue of another rank.
    #[default]
    Dynamic,
}

/// What the coordinator knows of a rank's queue.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) provers: usize,
    /// given out, not answered
    pub(crate) outstanding: BTreeSet<usize>,
    /// it was asked to give some back and has not said which
    pub(crate) revoking: bool,
    /// it had nothing to give back when it was last asked
    pub(crate) dry: bool,
}

impl Load {
    pub(crate) fn new(provers: usize) -> Self {
        Self { provers, outstanding: BTreeSet::new(), revoking: false, dry: false }
    }

    /// What waits there behind what is under way.
    fn queued(&self) -> usize {
        self.outstanding.len().saturating_sub(self.provers)
    }
}

impl Schedule {
    /// Takes from `pending` what should be given out now: for each rank a list.
    pub(crate) fn deal(self, loads: &[Load], pending: &mut VecDeque<usize>) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); loads.len()];
        match self {
            Self::Static => {
                let mut all: Vec<usize> = pending.drain(..).collect();
                all.sort_unstable();
                let provers: usize = loads.iter().map(|load| load.provers).sum();
                let (mut at, mut before) = (0, 0);
                for (list, load) in out.iter_mut().zip(loads) {
                    before += load.provers;
                    let end = all.len() * before / provers.max(1);
                    list.extend_from_slice(&all[at..end]);
                    at = end;
                }
            }
            Self::Dynamic => {
                // the emptiest rank first, compared without fractions
                let held = |rank: usize, list: &[Vec<usize>]| loads[rank].outstanding.len() + list[rank].len();
                while !pending.is_empty() {
                    let room = (0..loads.len()).filter(|r| held(*r, &out) < 2 * loads[*r].provers);
                    let Some(rank) = room
                        .min_by(|a, b| (held(*a, &out) * loads[*b].provers).cmp(&(held(*b, &out) * loads[*a].provers)))
                    else {
                        break;
                    };
                    out[rank].extend(pending.pop_front());
                }
            }
        }
        out
    }

    /// When nothing is pending and a rank runs out: who should give back how many.
    pub(crate) fn steal(self, loads: &[Load]) -> Option<(usize, usize)> {
        if self == Self::Static || loads.iter().any(|load| load.revoking) {
            return None;
        }
        let thief = loads.iter().filter(|load| load.outstanding.len() < load.provers);
        let want = thief.map(|load| load.provers - load.outstanding.len()).max()?;
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
        let mut pending: VecDeque<usize> = (0..10).rev().collect();
        let shares = Schedule::Static.deal(&loads(&[1, 2, 1]), &mut pending);
        assert_eq!(shares, [vec![0, 1], vec![2, 3, 4, 5, 6], vec![7, 8, 9]]);
        assert!(pending.is_empty());
    }

    #[test]
    fn dynamic_keeps_twice_the_provers_busy_and_no_more() {
        let mut pending: VecDeque<usize> = (0..100).collect();
        let mut loads = loads(&[1, 3]);
        let lists = Schedule::Dynamic.deal(&loads, &mut pending);
        assert_eq!((lists[0].len(), lists[1].len(), pending.len()), (2, 6, 92));
        loads[0].outstanding.extend([0, 1]);
        assert_eq!(Schedule::Dynamic.deal(&loads, &mut VecDeque::new()), [vec![], vec![]] as [Vec<usize>; 2]);
        // few subcircuits go to all ranks, not to the first
        let lists = Schedule::Dynamic.deal(&self::loads(&[4, 4]), &mut (0..4).collect());
        assert_eq!((lists[0].len(), lists[1].len()), (2, 2));
    }

    #[test]
    fn the_longest_queue_gives_back() {
        let mut loads = loads(&[1, 1, 1]);
        loads[1].outstanding.extend(0..5);
        loads[2].outstanding.extend(5..7);
        assert_eq!(Schedule::Dynamic.steal(&loads), Some((1, 2)));
        assert_eq!(Schedule::Static.steal(&loads), None);
        loads[1].dry = true;
        assert_eq!(Schedule::Dynamic.steal(&loads), Some((2, 1)));
        loads[2].revoking = true;
        assert_eq!(Schedule::Dynamic.steal(&loads), None);
        loads[2].revoking = false;
        loads[0].outstanding.insert(9); // nobody is idle
        assert_eq!(Schedule::Dynamic.steal(&loads), None);
    }
}
