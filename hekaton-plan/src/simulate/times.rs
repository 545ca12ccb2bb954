//! The constants of one prediction as numbers, and the service times that follow from them.

use super::cluster::Cluster;
use super::constants::{Constant, ConstantError, ConstantValue, Constants};
use super::design::Design;
use super::load::Load;
use super::rounds::Service;

/// The constants that a design needs. All are looked up before anything is computed, so that a missing one is
/// an error and not a wrong prediction.
pub(super) struct Times {
    used: Vec<(Constant, ConstantValue)>,
}

/// The service times of both rounds, in seconds.
pub(super) struct Services {
    pub(super) commit: Service,
    pub(super) prove: Service,
}

impl Times {
    pub(super) fn new(constants: &Constants, design: &Design) -> Result<Self, ConstantError> {
        let needed = Constant::of_design(design).into_iter();
        let used = needed.map(|constant| Ok((constant, constants.get(constant)?.clone())));
        Ok(Self { used: used.collect::<Result<_, _>>()? })
    }

    /// The value of a constant; NaN for one that the design does not need, so that a term that should not be
    /// there is noticed.
    pub(super) fn of(&self, constant: Constant) -> f64 {
        let found = self.used.iter().find(|(name, _)| *name == constant);
        found.map_or(f64::NAN, |(_, value)| value.value)
    }

    /// All constants with their sources.
    pub(super) fn into_used(self) -> Vec<(Constant, ConstantValue)> {
        self.used
    }

    /// The times of a coordinator of `ranks` ranks. Its threads share all work except the tables
    /// that one thread keeps.
    pub(super) fn services(
        &self,
        design: &Design,
        cluster: &Cluster,
        load: &Load,
        ranks: f64,
    ) -> Services {
        use Constant as C;
        let (g1, g2) = if design.batch_check {
            (
                self.of(C::DecodeG1Unchecked) + self.of(C::MembershipG1Batched),
                self.of(C::DecodeG2Unchecked) + self.of(C::MembershipG2Batched),
            )
        } else {
            (self.of(C::DecodeG1Checked), self.of(C::DecodeG2Checked))
        };
        let threads = f64::from(design.threads.max(1));
        // The coordinator's one thread looks at all ranks for each job and for each answer.
        let scan = ranks * self.of(C::ScanRank);
        // A leader passes the messages of its group on as one, so rank 0 handles one for each group.
        let message = cluster.message / design.fanout.map_or(1.0, |fanout| f64::from(fanout.get()));
        let encode = self.of(C::EncodeJob)
            + self.of(C::EncodeOccurrence) * load.slots()
            + self.of(C::EncodePrivateByte) * load.private_bytes
            + message;
        let make = encode / threads + scan;
        // A commitment is one point of G1; a proof has two of G1 and one of G2.
        let take = |decode: f64| {
            (decode + message + self.of(C::RecordAnswer)) / threads
                + self.of(C::AcceptAnswer)
                + scan
        };
        let own = (self.of(C::EncodeOwnJob) + message) / threads;
        let first = if design.sliced_execute { own } else { make };
        Services {
            commit: Service { make: first, take: take(g1) },
            prove: Service { make, take: take(2.0 * g1 + g2) },
        }
    }
}
