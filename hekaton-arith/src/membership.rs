//! Batched checks that points are in the subgroup of order r.
//!
//! A sum of points of the subgroup is in it, so one check of a sum can stand for many points unless
//! their components outside the subgroup cancel. Assign the points to B buckets at random and check
//! the B sums. Suppose some point P is outside, and fix the buckets of all other points. For all
//! sums to be inside, exactly one bucket sum without P is outside and P falls into that bucket,
//! which happens with probability 1/B. Rounds are independent.

use crate::group::Group;
use crate::portable::{self, Curve};
use crate::sums::{Summand, add_each, sum_groups};

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
fn bucket_sums<G: Curve + Summand>(points: &[G], random: &mut dyn FnMut() -> u64) -> Vec<G> {
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

/// A round of a check that all of a long sequence of points are in the subgroup of order r, for points that are read
/// in pieces. A point outside passes a round with a probability of 2^-8, and independent rounds, which may run on
/// different threads, with the product of theirs.
#[derive(Clone, Debug)]
pub struct SubgroupCheck<G> {
    /// The sums of all buckets, once there are points.
    sums: Vec<G>,
}

impl<G: Group> SubgroupCheck<G> {
    /// No points yet.
    pub fn new() -> Self {
        Self { sums: Vec::new() }
    }

    /// Takes more points, which must be on the curve, as those of
    /// [`Group::on_curve_from_uncompressed`] are. `random` must be unpredictable to those who chose the points.
    pub fn take(&mut self, points: &[G], random: &mut dyn FnMut() -> u64) {
        let sums = bucket_sums(points, random);
        match self.sums.is_empty() {
            true => self.sums = sums,
            false => add_each(&mut self.sums, &sums),
        }
    }

    /// Reports whether the sums of all buckets are in the subgroup.
    pub fn passes(&self) -> bool {
        self.sums.iter().all(Group::is_in_group)
    }
}

impl<G: Group> Default for SubgroupCheck<G> {
    fn default() -> Self {
        Self::new()
    }
}
