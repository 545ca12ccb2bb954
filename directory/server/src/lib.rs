//! The server of a directory: a database, accepted updates, and a pipeline that closes epochs.
//!
//! An update is *accepted* once it is on the disk, *visible* once the record of its epoch is signed, and *proven* once a proof
//! of its epoch is attached; what is signed is on the disk first. The two stages of a commit are the same in all [modes](Mode): the first one computes what changes, each
//! commit on the one before it; the second one writes it. The [head](Head) says what was signed. What is above it was seen
//! by nobody: whenever a database is opened, after a crash or after a failed write, that is removed and computed again from
//! the accepted updates.

mod check;
mod compute;
mod create;
mod damaged;
mod error;
mod fjall;
mod folder;
mod head;
mod head_file;
mod intake;
mod log_tiles;
mod open;
mod options;
mod outside;
mod pending;
mod pipeline;
mod proofs;
mod proving;
mod prune;
mod reading;
mod recover;
mod rows;
mod sequencer;
mod serve;
mod shared;
mod stats;
mod stop;
mod store;
mod time;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub use check::Report;
pub use damaged::Damaged;
pub use error::{Error, SubmitError};
pub use fjall::{Fjall, fjall_opener};
pub use head::Head;
pub use head_file::read_head;
pub use options::{MAX_STEPS_OF_ONE, Mode, Options};
pub use outside::{Outside, leave_head};
pub use proving::{ProveError, Prover, Proving, ProvingStats, prove_all};
pub use serve::Server;
pub use stats::Stats;
pub use stop::Stop;
pub use store::{Opened, Opener, Row, Rows, Store, StoreError, Table, Visit};
pub use update::{Expected, MAX_IDEMPOTENCY_KEY, Outcome, Receipt, Refusal, Status, Update};
pub use view::{Answer, View};
