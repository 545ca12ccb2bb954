//! Errors of a server.

use super::damaged::Damaged;
use super::head::Head;
use super::store::StoreError;
use super::update::MAX_IDEMPOTENCY_KEY;
use hekaton_directory::{AuditError, Digest, LabelError, RecordError, UpdateError};
use std::path::PathBuf;
use std::sync::Arc;

/// An error of a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row is not what it should be.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// A file or a folder.
    #[error("cannot {what} {path}: {error}", path = .path.display())]
    Io {
        /// The action that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// There is a directory, or something else.
    #[error("{path} exists: a new directory needs a folder that does not exist or is empty", path = .0.display())]
    Exists(PathBuf),
    /// The folder has no directory.
    #[error("{path} has no directory, or one that was not finished: create it first", path = .0.display())]
    NoDirectory(PathBuf),
    /// The database is there, but the head that records how far it was signed is not.
    #[error(
        "{path} has a database without its file 'head', which says what was signed: put that back from where it is; without it, \
         the directory cannot go on, since it could sign two records of one epoch",
        path = .0.display()
    )]
    NoHead(PathBuf),
    /// The file of the head on another disk is missing.
    #[error(
        "{path} not found: it names the record that was signed last, so without it the database may be an old one; put the file back \
         from where it is, or start a new one, but only if no newer copy of the database has ever been served",
        path = .0.display()
    )]
    NoOutsideHead(PathBuf),
    /// A head is older than the database, or of another one.
    #[error(
        "{path} names epoch {epoch} (commit {commit}), but epoch {newer} (commit {newest}) was signed: the file was put back from \
         somewhere, or the directory was served without it; refusing to sign, because the last signed epoch is unknown",
        path = .path.display(), epoch = .head.epoch, commit = .head.commit, newer = .found.epoch, newest = .found.commit
    )]
    OldHead {
        /// The file.
        path: PathBuf,
        /// The head in that file.
        head: Box<Head>,
        /// The head that was signed later, or instead.
        found: Box<Head>,
    },
    /// The head on another disk is now kept in another file.
    #[error(
        "{path} is left: what was signed last is kept in {to} since then, and whatever still names {path} may be an older copy",
        path = .path.display(), to = .to.display()
    )]
    HeadLeft {
        /// The file.
        path: PathBuf,
        /// The one in its place.
        to: PathBuf,
    },
    /// The file of the head on another disk is a symbolic link.
    #[error(
        "{path} is a symbolic link, which the next head would replace: give the file that it names",
        path = .0.display()
    )]
    HeadLink(PathBuf),
    /// The head on another disk is to be the one in the folder.
    #[error(
        "{path} is the head in the folder, with which it would be restored: choose a place outside, on another disk",
        path = .0.display()
    )]
    HeadInside(PathBuf),
    /// Another process has written the head on another disk.
    #[error(
        "{path} names epoch {found}, expected {last}: another process serves a copy of this directory; nothing more is signed here",
        path = .path.display(), found = .found.epoch, last = .last.epoch
    )]
    HeadMoved {
        /// The file.
        path: PathBuf,
        /// The head that this process has written last.
        last: Box<Head>,
        /// The head that is in the file.
        found: Box<Head>,
    },
    /// Another process uses the head on another disk.
    #[error("another process uses {path}: one directory has one server, and copies of it have none", path = .0.display())]
    HeadLocked(PathBuf),
    /// Another process serves it.
    #[error("another process serves {path}: one directory has one server", path = .0.display())]
    Locked(PathBuf),
    /// The head is damaged.
    #[error("{path} is damaged; without it, the last signed epoch is unknown, and nothing may be signed", path = .path.display())]
    Head {
        /// The file.
        path: PathBuf,
    },
    /// The database has not what was signed: it was restored from a backup, or is damaged.
    #[error(
        "the database does not have the record of epoch {epoch} that was signed: it is older, as one from a backup, or of another \
         directory; signing anything would give two records of one epoch"
    )]
    Behind {
        /// The last epoch that was signed.
        epoch: u32,
        /// The digest of its record.
        signed: Digest,
        /// The digest of the record that the database has of this epoch.
        found: Option<Digest>,
    },
    /// A record that was seen elsewhere is not one of this directory.
    #[error("the record that the directory must have is not one of it: {0}")]
    Seen(RecordError),
    /// The folder has a directory with other parameters.
    #[error("the directory has {0}")]
    OtherDirectory(String),
    /// The directory is of an earlier version of the program.
    #[error(
        "the directory has version {found}, but this program reads version {expected}: read it with the program that made it, and insert its \
         labels into a new directory"
    )]
    OldFormat {
        /// The version of the directory.
        found: u8,
        /// The version that is read here.
        expected: u8,
    },
    /// A commit does not continue the one before it: a defect, and nothing of it is signed.
    #[error("commit {0} does not continue the one before it; nothing of it is signed")]
    Chain(u64),
    /// A batch that no epoch can have.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// A label that no directory has.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// An epoch that is not visible.
    #[error("there is no epoch {epoch} yet; the last one is {last}")]
    NoEpoch {
        /// The epoch.
        epoch: u32,
        /// The last one.
        last: u32,
    },
    /// An epoch that cannot be proven.
    #[error(
        "nothing is kept for the prover of epoch {0}: it is proven already, or the server ran without witnesses"
    )]
    NoWitness(u32),
    /// An epoch that is too large for one proof.
    #[error(
        "epoch {epoch} has {steps} steps, and a proof has room for {most}: it needs keys for more subcircuits"
    )]
    TooLarge {
        /// The epoch.
        epoch: u32,
        /// Its steps.
        steps: usize,
        /// The steps that there is room for.
        most: usize,
    },
    /// A proof that does not follow the one before it, or does not hold.
    #[error(transparent)]
    Proof(#[from] AuditError),
    /// An epoch whose tree is no longer complete.
    #[error("epoch {epoch} is pruned; the first one with a tree is {first}")]
    Pruned {
        /// The epoch.
        epoch: u32,
        /// The first one with a tree.
        first: u32,
    },
    /// A log entry that is not there.
    #[error("the log has no entry {entry}: it has {size} of them")]
    NoEntry {
        /// The entry.
        entry: u64,
        /// The number of entries.
        size: u64,
    },
    /// A label that never had a version, or was not visible.
    #[error("the label has no version {0}")]
    NoVersion(u32),
    /// The values of a label have too many bytes together.
    #[error("the values of the label have more than {most} bytes together")]
    LongHistory {
        /// The most that were asked for.
        most: usize,
    },
    /// The server does not answer now.
    #[error("the server opens its database again after a failure: {0}")]
    Recovering(String),
    /// The server has ended.
    #[error("the server has stopped{why}", why = .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Stopped(Option<Arc<Error>>),
    /// A thread of the server has panicked, which is a defect.
    #[error("a thread of the server panicked")]
    Panicked,
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
}

impl Error {
    /// Reports whether the error may be gone once the database is opened again.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Io { .. })
    }
}

/// The reason why an update was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The label or the value.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The key for sending it again.
    #[error("an idempotency key of {0} bytes: expected 1 to {MAX_IDEMPOTENCY_KEY}")]
    IdempotencyKey(usize),
    /// The key for sending it again was that of another update.
    #[error("the idempotency key was used for another update, number {number}")]
    OtherUpdate {
        /// That update's number.
        number: u64,
    },
    /// Too many updates wait.
    #[error("{0} updates wait already: send it again later")]
    Full(usize),
    /// The database failed, so it is unknown whether the update was accepted. With an idempotency key it can be sent
    /// again.
    #[error("the server cannot say whether the update was accepted: {0}")]
    Unknown(String),
    /// The server does not take updates now.
    #[error("the server opens its database again after a failure: send it again later")]
    Recovering,
    /// The server ends, or has ended.
    #[error("the server stops")]
    Stopping,
    /// There are no random bytes for a salt.
    #[error("there are no random bytes: {0}")]
    Random(String),
}
