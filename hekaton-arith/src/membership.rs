//! Batched checks that points are in the subgroup of order r.
//!
//! A sum of points of the subgroup is in it, so one check of a sum can stand for many points unless
//! their components outside the subgroup cancel. Assign the points to B buckets at random and check
//! the B sums. Suppose some point P is outside, and fix the buckets of all other points. For all
//! sums to be inside, exactly one bucket sum without P is outside and P falls into that bucket,
//! which happens with probability 1/B. Rounds are independent.

use crate::portable::{self, Curve};
use crate::sums::{Summand, sum_groups};

/// Buckets per round.
const BUCKETS: usize = 1 << 8;
/// Rounds: with 2^8 buckets, eight of them leave an error of 2^-64.
const ROUNDS: usize = 8;
/// The number of points below which checking one by one is faster.
const SMALL: usize = BUCKETS * ROUNDS;

/// See [`Group::find_outside`].
pub(crate) fn find_outside<G: Curve + Summand>(
    points: &[G],
    random: &mut dyn FnMut() -> u64,
) -> Option<usize> {
    if let Some(at) = points.iter().position(|p| !portable::is_on_curve(p)) {
        return Some(at);
    }
    let one_by_one = || points.iter().position(|p| !portable::is_in_group(p));
    if points.len() < SMALL {
        return one_by_one();
    }
    for _ in 0..ROUNDS {
        if !bucket_sums(points, random).iter().all(portable::is_in_group) {
            return one_by_one();
        }
    }
    None
}

/// Assigns the points to buckets at random and returns the sums of the buckets.
#[allow(
    clippy::cast_possible_truncation,
    reason = "no vector of points has 2^31 elements: no MSM takes as many"
)]
pub(crate) fn bucket_sums<G: Curve + Summand>(
    points: &[G],
    random: &mut dyn FnMut() -> u64,
) -> Vec<G> {
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
    sum_groups(points, &entries, &ends[..BUCKETS])
}
