//! The database interface of a directory: rows in tables, in the order of their keys, and batches that are written as a
//! whole or not at all.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The tables of a directory. [`rows`](super::rows) says what their rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Table {
    /// The format and the parameters of the directory, and the epoch up to which it is pruned; and a head.
    Format,
    /// Tiles of the tree, by place and epoch, the newest first.
    Node,
    /// Tiles of the log, by place and epoch, the newest first.
    Log,
    /// Values, by index and version.
    Value,
    /// Records, by epoch.
    Epoch,
    /// Signatures of records, by epoch.
    Signature,
    /// The leaves that an epoch has written, by epoch, in the order of the log.
    Changes,
    /// The witness for the prover of an epoch, by epoch, until it is proven.
    Witness,
    /// Proofs, by the last epoch that each one proves.
    Proof,
    /// The lists of what commits have written, by their numbers.
    Commit,
    /// Accepted updates that no signed epoch has, by their numbers; and those of the last epochs.
    Intake,
    /// The outcomes of updates, by their numbers.
    Outcome,
    /// Numbers of updates, by the keys of those who may send them twice.
    Idempotency,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 13] = [
        Self::Format,
        Self::Node,
        Self::Log,
        Self::Value,
        Self::Epoch,
        Self::Signature,
        Self::Changes,
        Self::Witness,
        Self::Proof,
        Self::Commit,
        Self::Intake,
        Self::Outcome,
        Self::Idempotency,
    ];

    /// The name of the table in a database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Node => "node",
            Self::Log => "log",
            Self::Value => "value",
            Self::Epoch => "epoch",
            Self::Signature => "signature",
            Self::Changes => "changes",
            Self::Witness => "witness",
            Self::Proof => "proof",
            Self::Commit => "commit",
            Self::Intake => "intake",
            Self::Outcome => "outcome",
            Self::Idempotency => "idempotency",
        }
    }
}

/// A row to write, or to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The table.
    pub table: Table,
    /// The key.
    pub key: Vec<u8>,
    /// The value to write, or `None` to remove the row.
    pub value: Option<Vec<u8>>,
}

/// Rows that are written together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    /// Adds a row to write.
    pub fn put(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.0.push(Row { table, key: key.into(), value: Some(value.into()) });
    }

    /// Adds a row to remove.
    pub fn remove(&mut self, table: Table, key: impl Into<Vec<u8>>) {
        self.0.push(Row { table, key: key.into(), value: None });
    }
}

/// An error of a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Reading failed.
    #[error("cannot read from the database: {0}")]
    Read(Box<dyn std::error::Error + Send + Sync>),
    /// Writing failed. It is unknown whether the rows are there after the database is opened again.
    #[error("cannot write to the database: {0}")]
    Write(Box<dyn std::error::Error + Send + Sync>),
    /// It cannot be opened.
    #[error("cannot open the database: {0}")]
    Open(Box<dyn std::error::Error + Send + Sync>),
    /// It is closed, because an earlier write failed or the server stops.
    #[error("the database is closed")]
    Closed,
}

/// A key and what it has.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The visitor of a scan: it takes a row, and decides whether the scan continues.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// A database.
///
/// A batch is there as a whole or not at all, after a crash or a loss of power, too. After a failed write nothing more is
/// written through this handle; where several write at once, none that comes after one that failed may succeed.
pub trait Store: Send + Sync {
    /// The value of a row.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits the rows from one key to another one, both included, in the order of keys.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError>;

    /// The largest key of a table.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn last(&self, table: Table) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes rows. When it returns, they are on the disk.
    ///
    /// # Errors
    /// If they may not be.
    fn commit(&self, rows: Rows) -> Result<(), StoreError>;
}

impl dyn Store + '_ {
    /// The first row from one key to another one.
    pub(crate) fn first(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
    ) -> Result<Option<Pair>, StoreError> {
        let mut found = None;
        self.scan(table, from, to, &mut |key, value| {
            found = Some((key.to_vec(), value.to_vec()));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

/// Opens a database. What it then shows is on the disk: where it is opened [`Opened::AfterFailure`], also what a killed
/// process has not synced, or what a failed sync has left in caches only.
pub type Opener = dyn Fn(Opened) -> Result<Box<dyn Store>, StoreError> + Send + Sync;

/// The occasion on which a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The first time, or after it was closed.
    Again,
    /// Any other case: after a write or a sync that failed, or a process that was killed.
    AfterFailure,
}

/// A database that can be closed while others still ask it.
pub(crate) struct Handle {
    store: RwLock<Option<Box<dyn Store>>>,
    failed: AtomicBool,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        Self { store: RwLock::new(Some(store)), failed: AtomicBool::new(false) }
    }

    /// Closes the database, once nobody is in the middle of a call.
    pub(crate) fn close(&self) {
        drop(self.store.write().unwrap_or_else(std::sync::PoisonError::into_inner).take());
    }

    /// Checks that all writes have succeeded.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.failed.load(Ordering::Acquire) {
            true => Err(StoreError::Closed),
            false => Ok(()),
        }
    }

    fn with<R>(
        &self,
        call: impl FnOnce(&dyn Store) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        // The lock is held during the call, so `close` returns only after the last use of the
        // database's files.
        let store = self.store.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        call(store.as_deref().ok_or(StoreError::Closed)?)
    }
}

impl Store for Handle {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(|store| store.get(table, key))
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        self.with(|store| store.scan(table, from, to, visit))
    }

    fn last(&self, table: Table) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(|store| store.last(table))
    }

    fn commit(&self, rows: Rows) -> Result<(), StoreError> {
        // It is unknown whether the batch that failed is on the disk, and a later one could survive
        // without it.
        if self.failed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let result = self.with(|store| store.commit(rows));
        // Nothing was written to a closed database, so that error leaves no doubt about what is on
        // the disk.
        if let Err(error) = &result
            && !matches!(error, StoreError::Closed)
        {
            self.failed.store(true, Ordering::Release);
        }
        result
    }
}
