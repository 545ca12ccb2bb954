//! The long-form documentation.
// Brackets there are group elements, not links.
#![allow(rustdoc::broken_intra_doc_links)]

#[doc = include_str!("../../docs/protocol.md")]
pub mod protocol {}

#[doc = include_str!("../../docs/soundness.md")]
pub mod soundness {}

#[doc = include_str!("../../docs/formats.md")]
pub mod formats {}

#[doc = include_str!("../../docs/library.md")]
pub mod library {}

#[doc = include_str!("../../docs/operation.md")]
pub mod operation {}

#[doc = include_str!("../../docs/events.md")]
pub mod events {}

#[doc = include_str!("../../docs/cluster.md")]
pub mod cluster {}
