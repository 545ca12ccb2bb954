//! The parts that servers and clients of a verifiable key directory share: the tree of an epoch and its digests, the proofs that clients
//! check, the chain of signed records, and the log of updates.
//!
//! A server keeps a map from labels to versioned values, closes *epochs*, and signs a record for each. Clients check its answers
//! against records, and hold the parameters and the last record that they saw. The database is in the package
//! `hekaton-directory-server`, the network in `hekaton-directory-http`, the circuit that proves epochs in
//! `hekaton-directory-circuit`.
//!
//! | | |
//! |---|---|
//! | [`Profile`] | which hash function the tree has, and whether lone leaves move up |
//! | [`Index`], [`Leaf`], [`Commitment`] | what a label, its place and its history of values are in the tree |
//! | [`Tree`] | the tree of an epoch: [`Tree::update`] makes the next one, [`Tree::path`] proves what it has |
//! | [`Step`], [`Witness`] | what the prover of epochs needs |
//! | [`Path`] | the proof that a label has a leaf, or has none |
//! | [`Current`], [`History`] | the value that a leaf has, and all that it has had |
//! | [`Record`], [`SignedRecord`], [`Checked`] | what the server signs of an epoch, and what of it is checked |
//! | [`Audit`], [`audit()`] | that records and proofs of epochs leave nothing out |
//! | [`Parameters`] | what never changes |
//! | [`Continuation`] | that a record continues the history of an earlier one, whatever was between |
//! | [`Frontier`], [`log`] | append-only logs, of updates and of records (RFC 9162) |
//!
//! Versions of a label count up from 0, by one in each epoch that changes it. That no epoch does anything else is
//! what the proofs of epochs say.

#[cfg(feature = "records")]
mod audit;
mod hash;
mod history;
mod key;
mod leaf;
pub mod log;
mod path;
mod place;
mod read;
#[cfg(feature = "records")]
mod record;
mod tile;
mod tree;
mod witness;

#[cfg(feature = "records")]
pub use audit::{Audit, AuditError, EpochProof, audit};
pub use hash::{Digest, EMPTY, Profile};
pub use history::{Current, Entry, History, HistoryError};
pub use key::{Commitment, Index, LabelError, MAX_LABEL, MAX_VALUE, Opening, Salt};
pub use leaf::Leaf;
pub use log::Frontier;
pub use path::{End, Path, PathError};
pub use place::{Away, Place};
pub use read::{DecodeError, Reader};
#[cfg(feature = "records")]
pub use record::{
    Checked, Continuation, LookUpError, Parameters, RECORD_LENGTH, Record, RecordError,
    SIGNED_LENGTH, SignedRecord,
};
pub use tile::TileError;
pub use tree::{Change, Tree, UpdateError};
pub use witness::{STACK, Step, Witness};

#[cfg(all(test, feature = "records"))]
mod tests;
