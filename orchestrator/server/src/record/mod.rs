//! Records, and how they are stored: each is JSON in an envelope with a version and the nonce of the write.
//!
//! The nonce settles writes whose answer was lost: a record that carries a writer's own nonce is its own write.

mod chain;
mod job;
mod session;
mod task;

pub use chain::{
    Bundles, Chain, Floor, Owner, Passed, Publication, chain_key, floor_key, log_name, owner_key,
    passed_key, publication_key,
};
pub use hekaton_orchestrator_client::Order;
pub use job::{Handle, Job, JobKey, JobState};
pub use session::{Session, SessionId, session_key};
pub use task::{BadKey, Limits, Refused, Task, TaskKey, TaskState};

use crate::id::random;
use crate::store::{Entry, Rev, Store, Unavailable, WriteError};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the records.
const VERSION: u32 = 1;

/// A record as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<T> {
    v: u32,
    /// The nonce of the write.
    by: u64,
    body: T,
}

/// A record that was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<T> {
    /// Its content.
    pub value: T,
    /// The write that it is from.
    pub rev: Rev,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record '{key}' at revision {number} cannot be read: {why}", number = rev.number)]
pub struct BadRecord {
    /// The record's key.
    pub key: String,
    /// Its revision.
    pub rev: Rev,
    /// The reason why it cannot be read.
    pub why: String,
}

/// Why a record was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It cannot be understood.
    #[error(transparent)]
    Bad(#[from] BadRecord),
    /// The store does not answer.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Reads a record from what is stored.
///
/// # Errors
/// If it is from another version, or is not a record of this kind.
pub fn decode<T: DeserializeOwned>(entry: &Entry) -> Result<Stored<T>, BadRecord> {
    Ok(Stored { value: open(entry)?.body, rev: entry.rev })
}

fn open<T: DeserializeOwned>(entry: &Entry) -> Result<Envelope<T>, BadRecord> {
    let bad = |why: String| BadRecord { key: entry.key.clone(), rev: entry.rev, why };
    // The version first: another one may have other fields.
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let Version { v } = serde_json::from_slice(&entry.value).map_err(|e| bad(e.to_string()))?;
    if v != VERSION {
        return Err(bad(format!("it has version {v}, but this program reads version {VERSION}")));
    }
    serde_json::from_slice(&entry.value).map_err(|e| bad(e.to_string()))
}

/// Encodes a record that is written with a nonce.
pub(crate) fn encode<T: Serialize>(body: &T, by: u64) -> Bytes {
    let json = serde_json::to_vec(&Envelope { v: VERSION, by, body });
    json.expect("records have string keys and no floats that JSON lacks").into()
}

/// Reads a record.
///
/// # Errors
/// If the store does not answer or the record cannot be understood.
pub async fn read<T: DeserializeOwned>(
    store: &dyn Store,
    key: &str,
) -> Result<Option<Stored<T>>, ReadError> {
    Ok(store.get(key).await?.as_ref().map(decode).transpose()?)
}

/// When a write must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
    /// Before it is answered.
    Now,
    /// Before any later write that must be on disk when it is answered: [`Store::create_soon`].
    Soon,
}

/// Creates a record. A write whose answer is lost is sent once more, and recognized by its nonce.
///
/// # Errors
/// [`WriteError::Conflict`] if another process has created it, [`WriteError::Unknown`] if it may still take effect.
pub async fn create<T: Serialize>(
    store: &dyn Store,
    key: &str,
    value: T,
) -> Result<Stored<T>, WriteError> {
    create_on_disk(store, key, value, OnDisk::Now).await
}

/// Creates a record, like [`create`].
pub(crate) async fn create_on_disk<T: Serialize>(
    store: &dyn Store,
    key: &str,
    value: T,
    on_disk: OnDisk,
) -> Result<Stored<T>, WriteError> {
    let by = random();
    let bytes = encode(&value, by);
    let send = |bytes| match on_disk {
        OnDisk::Now => store.create(key, bytes),
        OnDisk::Soon => store.create_soon(key, bytes),
    };
    let mut outcome = send(bytes.clone()).await;
    if let Err(WriteError::Unknown { .. }) = outcome {
        outcome = send(bytes).await;
        outcome = own(store, key, (by, on_disk), outcome).await;
    }
    outcome.map(|rev| Stored { value, rev })
}

/// Replaces a record, like [`create`].
///
/// # Errors
/// [`WriteError::Conflict`] if it is at another revision, [`WriteError::Unknown`] if it may still take effect.
pub async fn update<T: Serialize>(
    store: &dyn Store,
    key: &str,
    value: T,
    expected: Rev,
) -> Result<Stored<T>, WriteError> {
    update_on_disk(store, key, value, expected, OnDisk::Now).await
}

/// Replaces a record, like [`update`].
pub(crate) async fn update_on_disk<T: Serialize>(
    store: &dyn Store,
    key: &str,
    value: T,
    expected: Rev,
    on_disk: OnDisk,
) -> Result<Stored<T>, WriteError> {
    let by = random();
    let bytes = encode(&value, by);
    let send = |bytes| match on_disk {
        OnDisk::Now => store.update(key, bytes, expected),
        OnDisk::Soon => store.update_soon(key, bytes, expected),
    };
    let mut outcome = send(bytes.clone()).await;
    if let Err(WriteError::Unknown { .. }) = outcome {
        outcome = send(bytes).await;
        outcome = own(store, key, (by, on_disk), outcome).await;
    }
    outcome.map(|rev| Stored { value, rev })
}

/// Turns a conflict with one's own earlier attempt into success.
async fn own(
    store: &dyn Store,
    key: &str,
    (by, on_disk): (u64, OnDisk),
    outcome: Result<Rev, WriteError>,
) -> Result<Rev, WriteError> {
    if let Err(WriteError::Conflict { .. }) = outcome
        && let Ok(Some(entry)) = store.get(key).await
        && let Ok(found) = open::<serde::de::IgnoredAny>(&entry)
        && found.by == by
    {
        // That it can be read does not say that it would survive a crash.
        if on_disk == OnDisk::Now
            && let Err(error) = store.on_disk(entry.rev).await
        {
            return Err(WriteError::Unknown { key: key.to_owned(), why: error.why });
        }
        return Ok(entry.rev);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_versions_and_with_other_fields_are_refused() {
        let rev = Rev { incarnation: 1, number: 2 };
        let entry = |text: &str| Entry {
            key: "k".into(),
            value: Bytes::copy_from_slice(text.as_bytes()),
            rev,
        };
        let read = |text: &str| decode::<u32>(&entry(text)).map(|stored| stored.value);
        assert_eq!(read(r#"{"v":1,"by":7,"body":5}"#), Ok(5));
        for bad in [
            r#"{"v":2,"by":7,"body":5}"#,
            r#"{"v":2,"else":1}"#,
            r#"{"v":1,"by":7,"body":5,"more":1}"#,
            r#"{"v":1,"by":7,"body":"5"}"#,
            "",
            "null",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
