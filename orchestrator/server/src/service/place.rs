//! The place where a process keeps its records and sessions.

use crate::store::{Durability, OpenError, Reopened, SqliteStore, Store, Unavailable};
#[cfg(feature = "nats")]
use crate::store::{Known, NatsSettings, NatsStore};
use futures_util::future::{BoxFuture, ready};
use std::path::Path;
#[cfg(feature = "nats")]
use std::path::PathBuf;
use std::sync::Arc;

/// The database of records in a folder.
pub const RECORDS: &str = "orchestrator.db";

/// The database of sessions in a folder.
const SESSIONS: &str = "sessions.db";

/// The place where records are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In a SQLite database in the folder, for processes of one machine.
    #[default]
    Folder,
    /// In NATS JetStream; the folder is on a file system that all machines share.
    #[cfg(feature = "nats")]
    Nats(NatsSettings),
}

/// The kind of data that a store keeps.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Records,
    Sessions,
}

impl Place {
    /// Opens a store. If its server is unavailable, the store can already be used, and fails until the server is back ([`Reopened`]).
    pub(super) async fn open(&self, data: &Path, kind: Kind) -> Result<Arc<dyn Store>, OpenError> {
        let folder = data.to_owned();
        match (self, kind) {
            (Self::Folder, Kind::Records) => Ok(Arc::new(open_records(data)?)),
            (Self::Folder, Kind::Sessions) => {
                let open = move || -> Result<Arc<dyn Store>, OpenError> {
                    // Not in the database of records: beats need no sync, and must not wait for
                    // those of records, or a slow disk would make living processes look dead.
                    Ok(Arc::new(SqliteStore::open(&folder.join(SESSIONS), Durability::Memory)?))
                };
                let open = Box::new(move || -> BoxFuture<'static, _> { Box::pin(ready(open())) });
                Ok(Arc::new(Reopened::open("the database of sessions", open).await?))
            }
            #[cfg(feature = "nats")]
            (Self::Nats(settings), kind) => {
                let own_settings = settings.clone();
                let open = Box::new(move || -> BoxFuture<'static, _> {
                    Box::pin(open_nats(own_settings.clone(), folder.clone(), kind))
                });
                let name = match kind {
                    Kind::Records => "the stream of records in NATS",
                    Kind::Sessions => "the stream of sessions in NATS",
                };
                Ok(Arc::new(Reopened::open(name, open).await?))
            }
        }
    }
}

/// Opens the records of a folder, which must be the same as before, or sessions, which may be recreated at any time.
#[cfg(feature = "nats")]
async fn open_nats(
    settings: NatsSettings,
    data: PathBuf,
    kind: Kind,
) -> Result<Arc<dyn Store>, OpenError> {
    let Kind::Records = kind else {
        return Ok(Arc::new(NatsStore::open(&settings, "sessions", true).await?));
    };
    let known = Known::read(&data, &settings.namespace)?;
    let store = NatsStore::open_known(&settings, "records", false, known).await?;
    // Written after the stream is created: a note of a stream that was never created would look
    // like lost records, and no process would start.
    if known == Known::Nothing {
        Known::write(&data, &settings.namespace, store.incarnation())?;
    }
    Ok(Arc::new(store))
}

/// Opens the store of records in a folder.
///
/// # Errors
/// If the file cannot be opened, or is not such a database.
pub fn open_records(data: &Path) -> Result<SqliteStore, Unavailable> {
    SqliteStore::open(&data.join(RECORDS), Durability::Disk)
}
