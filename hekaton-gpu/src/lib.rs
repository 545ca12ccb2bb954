//! BLS12-381 kernels for GPUs: multi-scalar multiplications and Fourier transforms of many vectors at a time.
//!
//! The kernels are one source (`kernels/`), compiled to PTX, which is a part of this crate, and, for tests, to functions for the host.
//! Neither CUDA's toolkit nor a device is needed to build: the driver is opened at run time, by [`open`]. Results are exact and canonical,
//! so they have the same bytes as those of the CPU's kernels (`hekaton-arith`).
//!
//! | front | purpose |
//! |---|---|
//! | [`Gpu`] | a device as an accelerator of the prover: batches of subcircuits |
//! | [`TypeMemory`] | what fits on a device, and the time that it takes |
//! | [`Device`] | memory, copies and launches: [`Cuda`] is a GPU |
//! | [`Bases`] | points that stay on the device, and multi-scalar multiplications with them |
//! | [`TypeOnDevice`] | all computations of a worker for assignments of one type |
//! | [`Transforms`] | Fourier transforms over Fr of 2^k and 3 * 2^k elements |

mod accelerator;
mod arguments;
mod cuda;
mod device;
#[cfg(feature = "host")]
mod host;
mod kernel;
mod limbs;
mod line;
mod memory;
mod msm;
mod pool;
mod timed;
pub mod toy;
pub mod transform;
mod worker;

pub mod check;
pub mod operations;

pub use accelerator::Gpu;
pub use cuda::{Cuda, count, open};
pub use device::{Buffer, Device, Error};
#[cfg(feature = "host")]
pub use host::Host;
pub use kernel::Kernel;
pub use limbs::{FrLimbs, limbs, scalars};
pub use memory::TypeMemory;
pub use msm::{Bases, Curve, Sizes};
pub use timed::Timed;
pub use transform::Transforms;
pub use worker::{MatrixParts, TypeOnDevice, TypeParts};

#[cfg(test)]
mod tests;
