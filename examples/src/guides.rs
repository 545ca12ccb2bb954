//! The Rust code of the README and the guides, compiled and run as doctests.

#[doc = include_str!("../../README.md")]
pub mod readme {}

#[doc = include_str!("../../docs/guide/circom.md")]
pub mod circom {}

#[doc = include_str!("../../docs/guide/library.md")]
pub mod library {}

#[doc = include_str!("../../docs/guide/operation.md")]
pub mod operation {}

#[doc = include_str!("../../docs/guide/verifier.md")]
pub mod verifier {}
