//! What a Hekaton run will take, before it starts: sizes, memory and time.

mod estimate;
mod memory;

pub use estimate::{Calibration, Estimate, EstimateError, TypeEstimate, Workers, estimate};
pub use memory::{MemoryPlan, NotEnoughMemory, TypeSize, type_sizes};
