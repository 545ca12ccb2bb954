//! Membership of many points that are read in pieces.

use crate::group::Group;
use crate::membership::bucket_sums;
use crate::sums::add_each;

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
