//! Predicts the sizes, memory and time of a Hekaton run before it starts.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "small numbers of tests"))]

mod calibration;
mod cuts;
mod estimate;
mod memory;
pub mod simulate;

pub use calibration::Calibration;
pub use cuts::{CutCost, CutType, cut_cost};
pub use estimate::{Estimate, EstimateError, TypeEstimate, Workers, estimate};
pub use memory::{
    Columns, MemoryPlan, NotEnoughMemory, ProcessParts, TypeSize, prover_bytes, type_sizes,
};
