//! Stores of records and logs, and what the rest of this crate relies on: conditional writes under one counter.
//!
//! Every write names the revision that it expects, so a stale writer is refused by the store itself, not by a lease that it may have lost.
//! A write may also end as [`WriteError::Unknown`]: it may then take effect at any later time, and only the record shows whether it did.
//! For this reason, values carry a nonce of their writer ([`crate::record`]).

#[cfg(feature = "nats")]
mod nats;
mod reopened;
mod settled;
mod sqlite;
mod timed;

#[cfg(feature = "nats")]
pub(crate) use nats::Known;
#[cfg(all(test, feature = "nats"))]
pub(crate) use nats::received;
#[cfg(feature = "nats")]
pub use nats::{NatsSettings, NatsStore};
pub(crate) use reopened::Reopened;
pub(crate) use settled::Settled;
#[cfg(test)]
pub(crate) use sqlite::LEFT_OUT;
pub use sqlite::{Durability, SqliteStore};
pub(crate) use timed::Timed;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The largest value of a record or a log entry, in bytes. Anything larger is a blob.
pub const MAX_VALUE: usize = 64 << 10;

/// The longest key or name of a log, in bytes.
pub const MAX_KEY: usize = 400;

/// A revision: the store's counter at a write. It rises over the whole store and is never reused, not even by a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rev {
    /// The number of the store, drawn at random when it was made. A store that was restored or made again has another one.
    pub incarnation: u64,
    /// The counter.
    pub number: u64,
}

/// A value and the revision that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The record's key, or the log's name.
    pub key: String,
    /// The value that was written.
    pub value: Bytes,
    /// The revision of the write.
    pub rev: Rev,
}

/// Records under a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The records, by revision.
    pub entries: Vec<Entry>,
    /// The store's counter when it was asked: a watch from here misses nothing.
    pub at: Rev,
}

/// Why a write was not made, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// There is a record with this key already, or the record or log is at another revision than expected.
    #[error("'{key}' was changed by another writer")]
    Conflict {
        /// The key, or the log's name.
        key: String,
    },
    /// The store did not say what became of the write: it may take effect now or at any later time.
    #[error("the store did not answer a write to '{key}': {why}")]
    Unknown {
        /// The key, or the log's name.
        key: String,
        /// The reason why there is no answer.
        why: String,
    },
    /// The store has no space for the write, which has no effect.
    #[error("the store has no space for '{key}'")]
    Full {
        /// The key, or the log's name.
        key: String,
    },
    /// The store did not take the write, which has no effect.
    #[error("the store refuses a write to '{key}': {why}")]
    Refused {
        /// The key, or the log's name.
        key: String,
        /// The reason.
        why: String,
    },
}

/// A read that failed. It may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store does not answer: {why}")]
pub struct Unavailable {
    /// The reason why there is no answer.
    pub why: String,
}

/// Why a store was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It does not answer, and may do so later.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// It has a fault that an operator must repair.
    #[error("the store cannot be used: {why}")]
    Refused {
        /// The reason.
        why: String,
    },
}

/// Why a watch ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Changes may have been missed, or the store is another one: list again.
    #[error("changes were missed")]
    Gap,
    /// The store does not answer.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// A store. All methods may be called at the same time.
///
/// A write that was answered survives a crash of the machine, except for those of [`Store::create_soon`], [`Store::update_soon`] and
/// [`Store::append_soon`]. Others may see any write before it is on disk: [`Store::on_disk`] waits until it is.
///
/// A crash of the machine loses the last writes: if a write is lost, so are all that came after it.
///
/// Reads that decide something see every write that was answered before they were sent.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Writes a record that does not exist yet.
    async fn create(&self, key: &str, value: Bytes) -> Result<Rev, WriteError>;

    /// Replaces a record that is at the expected revision.
    async fn update(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError>;

    /// Creates a record that can be restored from other records, like [`Self::create`]: it may be answered before it is on disk.
    ///
    /// It is there for all readers when this returns, and on disk before any later write is. So it is lost only by a crash of the
    /// machine, and only with everything that was written after it.
    async fn create_soon(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        // A store whose server decides about syncs, as NATS does, has nothing cheaper to offer, and
        // a record that is on disk early breaks no promise.
        self.create(key, value).await
    }

    /// Like [`Self::update`], with the durability of [`Self::create_soon`].
    async fn update_soon(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.update(key, value, expected).await
    }

    /// Like [`Self::append`], with the durability of [`Self::create_soon`].
    async fn append_soon(
        &self,
        log: &str,
        entry: Bytes,
        last: Option<Rev>,
    ) -> Result<Rev, WriteError> {
        self.append(log, entry, last).await
    }

    /// Waits until a write that was read is on disk, with all writes before it. To be called before a client learns of it, as the service
    /// does for all its answers.
    ///
    /// # Errors
    /// Fails if the disk does not sync, or the write is of another store.
    async fn on_disk(&self, rev: Rev) -> Result<(), Unavailable> {
        // A store whose server syncs each write shows none before.
        let _ = rev;
        Ok(())
    }

    /// Removes a record that is at the expected revision. The counter rises as with other writes; lists and watches no longer report
    /// the record, and do not report the removal either. The durability is that of [`Self::create_soon`].
    async fn remove(&self, key: &str, expected: Rev) -> Result<Rev, WriteError> {
        let _ = expected;
        let why = format!("records cannot be removed from {}", self.describe());
        Err(WriteError::Refused { key: key.to_owned(), why })
    }

    /// Returns a revision up to which all records and logs were written before a time, in milliseconds since 1970. It may be lower than the
    /// last such revision; 0 if none is known.
    async fn written_before(&self, time: u64) -> Result<u64, Unavailable> {
        let _ = time;
        Ok(0)
    }

    /// Removes the history of records up to a revision, except for the current version of each record.
    async fn prune(&self, upto: u64) -> Result<(), WriteError> {
        let _ = upto;
        Ok(())
    }

    /// Reads a record.
    async fn get(&self, key: &str) -> Result<Option<Entry>, Unavailable>;

    /// The records whose keys have the prefix and that were written after a revision's number, by revision. A prefix is empty, ends
    /// with `/`, or is a whole key.
    async fn list(&self, prefix: &str, after: u64) -> Result<Listing, Unavailable>;

    /// Follows the records under a prefix that are written after a revision, in the order of revisions. A record that is written
    /// several times in a short time may be reported only in its last state.
    async fn watch(&self, prefix: &str, after: Rev) -> Result<Box<dyn Watch>, Unavailable>;

    /// Appends to a log whose last entry has the expected revision; `None` is the empty log.
    async fn append(&self, log: &str, entry: Bytes, last: Option<Rev>) -> Result<Rev, WriteError>;

    /// The last entry of a log.
    async fn tail(&self, log: &str) -> Result<Option<Entry>, Unavailable>;

    /// Entries of a log after a revision's number, oldest first, at most `limit`.
    async fn read(&self, log: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable>;

    /// Describes how the store is reached, for people.
    fn describe(&self) -> String;

    /// Reports whether it is still the store that was opened, and was not removed or recreated since.
    async fn is_there(&self) -> Result<bool, Unavailable> {
        Ok(true)
    }

    /// Checks that it can be read and written, by a write that changes no record and no log.
    async fn probe(&self) -> Result<(), Unavailable> {
        self.get("owner/00").await.map(drop)
    }
}

/// Changes of records, as they are written.
#[async_trait]
pub trait Watch: Send {
    /// Waits for changes, and returns them by revision. Dropping the future loses nothing.
    async fn next(&mut self) -> Result<Vec<Entry>, WatchError>;
}

/// Refuses keys and values that some store could not hold.
pub(crate) fn check(key: &str, value: &[u8]) -> Result<(), WriteError> {
    // The key may be what is wrong with the write, so the message has only its beginning.
    let refused = |why: String| WriteError::Refused { key: key.chars().take(80).collect(), why };
    // In NATS, keys become subjects with `.` for `/`: a `.`, `*` or `>` in a key would name other
    // records, or match them. SQLite's ranges of keys rely on it, too (`sqlite::end`).
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte);
    let parts = key.split('/').all(|part| !part.is_empty());
    if !parts || key.len() > MAX_KEY || !key.bytes().all(allowed) {
        return Err(refused(format!(
            "a key must have parts of letters, digits, '-' and '_', separated by '/', and at most {MAX_KEY} bytes"
        )));
    }
    if value.len() > MAX_VALUE {
        return Err(refused(format!("{} bytes are more than {MAX_VALUE}", value.len())));
    }
    Ok(())
}
