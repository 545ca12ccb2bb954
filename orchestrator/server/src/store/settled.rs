//! A store for answers to clients: all that is read from it is on disk.
//!
//! Processes use each other's writes before these are on disk. This is safe, because all that they write then is lost with these. A client
//! would remember what it has read.

use super::{Entry, Listing, Rev, Store, Unavailable, Watch, WriteError};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;

/// Another store, whose reads return once what they have read is on disk.
#[derive(Debug)]
pub(crate) struct Settled(pub(crate) Arc<dyn Store>);

impl Settled {
    async fn last(&self, entry: Option<&Entry>) -> Result<(), Unavailable> {
        match entry {
            Some(entry) => self.0.on_disk(entry.rev).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Store for Settled {
    async fn create(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.0.create(key, value).await
    }

    async fn update(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.0.update(key, value, expected).await
    }

    async fn on_disk(&self, rev: Rev) -> Result<(), Unavailable> {
        self.0.on_disk(rev).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, Unavailable> {
        let found = self.0.get(key).await?;
        self.last(found.as_ref()).await?;
        Ok(found)
    }

    async fn list(&self, prefix: &str, after: u64) -> Result<Listing, Unavailable> {
        let found = self.0.list(prefix, after).await?;
        // By revision, so the last one is the latest.
        self.last(found.entries.last()).await?;
        Ok(found)
    }

    async fn watch(&self, prefix: &str, after: Rev) -> Result<Box<dyn Watch>, Unavailable> {
        // Only a reason to read again.
        self.0.watch(prefix, after).await
    }

    async fn append(&self, log: &str, entry: Bytes, last: Option<Rev>) -> Result<Rev, WriteError> {
        self.0.append(log, entry, last).await
    }

    async fn tail(&self, log: &str) -> Result<Option<Entry>, Unavailable> {
        let found = self.0.tail(log).await?;
        self.last(found.as_ref()).await?;
        Ok(found)
    }

    async fn read(&self, log: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        let found = self.0.read(log, after, limit).await?;
        self.last(found.last()).await?;
        Ok(found)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    async fn probe(&self) -> Result<(), Unavailable> {
        self.0.probe().await
    }
}
