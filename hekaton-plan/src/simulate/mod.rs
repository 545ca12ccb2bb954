//! The time, memory, traffic and cost of a distributed run, by simulating its events.
//!
//! `paper-results/model/scaling_model.py` in the repository is the executable specification: both
//! must agree within 1 % where nothing varies at random, and `tests/model.rs` allows only rounding.
//! In addition to what [`estimate`](crate::estimate()) counts, a prediction accounts for the
//! coordinator, the network, the file system, and the variance of jobs and ranks.
//!
//! Constants of the program and the processor come from a calibration ([`Constants`]). A missing one is an
//! error that names it, never a default. [`Cluster`] describes the site; its values are assumptions unless
//! the owner of the site states them. All subcircuits count as equal to their mean.

mod calibrate;
mod cluster;
mod constants;
mod design;
mod load;
mod noise;
mod rounds;
mod run;
mod times;

pub use calibrate::{CalibrateError, calibrate};
pub use cluster::{Cluster, ClusterError, ClusterFile};
pub use constants::{Constant, ConstantError, ConstantValue, Constants, Source};
pub use design::{Design, UnknownDesign};
pub use load::Load;
pub use run::{PhaseSeconds, Prediction, predict};
