//! Key stores and run directories of the Hekaton prover on disk.
//!
//! - [`KeyStore`]: a directory with all keys of a circuit. A setup writes it, a prover maps it into
//!   memory. [`check_keys`] examines keys from elsewhere more closely.
//! - [`FamilyStore`]: a directory with the keys of a family of circuits, from which those of each are
//!   derived. [`check_family`] examines it.
//! - [`RunDirectory`]: the state that resumes an interrupted run: identity, secret seed, logs of answers,
//!   proof. It is a [`Journal`](hekaton_core::protocol::journal::Journal) for
//!   [`prove`](hekaton_core::prove()).
//!
//! `docs/formats.md` in the repository describes all files byte by byte.

mod error;
mod family_store;
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod key_check;
mod key_store;
mod lease;
mod log;
mod run_directory;

pub use error::RunError;
pub use family_store::{FamilyError, FamilyManifest, FamilyStore};
pub use identity::RunIdentity;
pub use key_check::{KeyCheckError, KeyCheckReport, Relation, check_family, check_keys};
pub use key_store::{KeyStore, KeyStoreError, Manifest, TypeEntry};
pub use run_directory::{RunDirectory, RunDirectoryOptions};
