//! A store whose operations are timed.

use super::{Entry, Listing, Rev, Store, Unavailable, Watch, WriteError};
use crate::metrics::Metrics;
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;

/// Another store, with metrics.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) metrics: Metrics,
}

impl Timed {
    async fn time<T>(&self, operation: &'static str, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let done = work.await;
        self.metrics.stored(operation, start.elapsed());
        done
    }
}

#[async_trait]
impl Store for Timed {
    async fn create(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.time("create", self.inner.create(key, value)).await
    }

    async fn update(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.time("update", self.inner.update(key, value, expected)).await
    }

    async fn create_soon(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.time("create_soon", self.inner.create_soon(key, value)).await
    }

    async fn update_soon(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.time("update_soon", self.inner.update_soon(key, value, expected)).await
    }

    async fn remove(&self, key: &str, expected: Rev) -> Result<Rev, WriteError> {
        self.time("remove", self.inner.remove(key, expected)).await
    }

    async fn written_before(&self, time: u64) -> Result<u64, Unavailable> {
        self.inner.written_before(time).await
    }

    async fn prune(&self, upto: u64) -> Result<(), WriteError> {
        self.inner.prune(upto).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, Unavailable> {
        self.time("get", self.inner.get(key)).await
    }

    async fn list(&self, prefix: &str, after: u64) -> Result<Listing, Unavailable> {
        self.time("list", self.inner.list(prefix, after)).await
    }

    async fn watch(&self, prefix: &str, after: Rev) -> Result<Box<dyn Watch>, Unavailable> {
        self.inner.watch(prefix, after).await
    }

    async fn append(&self, log: &str, entry: Bytes, last: Option<Rev>) -> Result<Rev, WriteError> {
        self.time("append", self.inner.append(log, entry, last)).await
    }

    async fn append_soon(
        &self,
        log: &str,
        entry: Bytes,
        last: Option<Rev>,
    ) -> Result<Rev, WriteError> {
        self.time("append_soon", self.inner.append_soon(log, entry, last)).await
    }

    async fn on_disk(&self, rev: Rev) -> Result<(), Unavailable> {
        self.time("on_disk", self.inner.on_disk(rev)).await
    }

    async fn tail(&self, log: &str) -> Result<Option<Entry>, Unavailable> {
        self.time("tail", self.inner.tail(log)).await
    }

    async fn read(&self, log: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        self.time("read", self.inner.read(log, after, limit)).await
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    async fn is_there(&self) -> Result<bool, Unavailable> {
        self.inner.is_there().await
    }

    async fn probe(&self) -> Result<(), Unavailable> {
        self.time("probe", self.inner.probe()).await
    }
}
