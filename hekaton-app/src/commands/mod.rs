//! One file per command.

pub(crate) mod calibrate;
pub(crate) mod ceremony;
mod ceremony_audit;
mod ceremony_check;
mod ceremony_estimate;
mod ceremony_finish;
mod ceremony_trial;
pub(crate) mod check;
pub(crate) mod circuits;
pub(crate) mod doctor;
pub(crate) mod estimate;
pub(crate) mod export;
pub(crate) mod family;
#[cfg(feature = "gpu")]
mod gpu_estimate;
pub(crate) mod hash;
pub(crate) mod inspect;
pub(crate) mod keys;
pub(crate) mod predict;
pub(crate) mod prove;
#[cfg(feature = "mpi")]
pub(crate) mod prove_mpi;
pub(crate) mod setup;
pub(crate) mod verify;
