//! Membership of many points in the subgroup of order r, in batches.
//!
//! A sum of points of the subgroup is in it, so one check of a sum can stand for many points, unless their parts outside
//! cancel. Throw the points into B buckets at random and check the B sums. If some point P is outside, fix where all
//! others fall: without P at most one bucket's sum can be outside if all sums with it are inside, so P must fall into
//! that one bucket, which it does with probability 1/B. Rounds are independent.

use crate::sums::sum_groups;
use crate::{Group, portable};

/// Buckets of a round.
const BUCKETS: usize = 1 << 8;
/// 2^8 buckets and 8 rounds: an error of 2^-64.
const ROUNDS: usize = 8;
/// With fewer points than this, one by one is quicker.
const SMALL: usize = BUCKETS * ROUNDS;

/// See [`Group::find_outside`].
pub(crate) fn find_outside<G: Group>(points: &[G], random: &mut dyn FnMut() -> u64) -> Option<usize> {
    if let Some(at) = points.iter().position(|p| !portable::is_on_curve(p)) {
        return Some(at);
    }
    let one_by_one = || points.iter().position(|p| !p.is_in_group());
    if points.len() < SMALL {
        return one_by_one();
    }
    for _ in 0..ROUNDS {
        let mut buckets: Vec<u8> = Vec::with_capacity(points.len() + 8);
        while buckets.len() < points.len() {
            buckets.extend(random().to_le_bytes());
        }
        let mut ends = [0; BUCKETS + 1];
        for bucket in &buckets[..points.len()] {
            ends[usize::from(*bucket) + 1] += 1;
        }
        for i in 0..BUCKETS {
            ends[i + 1] += ends[i];
        }
        let mut entries = vec![0; points.len()];
        for (i, bucket) in buckets[..points.len()].iter().enumerate() {
            let next = &mut ends[usize::from(*bucket)];
            entries[*next as usize] = i as u32;
            *next += 1;
        }
        if !sum_groups(points, &entries, &ends[..BUCKETS]).iter().all(G::is_in_group) {
            return one_by_one();
        }
    }
    None
}
