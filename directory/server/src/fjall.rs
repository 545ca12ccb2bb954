//! The default database: fjall, a log-structured merge tree in Rust.

use super::store::{Opened, Opener, Rows, Store, StoreError, Table, Visit};
use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// The number of bytes of a journal that are copied at once.
const PART: usize = 1 << 16;

/// A database of fjall's, in a folder of its own.
pub struct Fjall {
    database: Database,
    tables: Vec<Keyspace>,
}

impl std::fmt::Debug for Fjall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fjall").finish_non_exhaustive()
    }
}

impl Fjall {
    /// Opens the database, and makes it if there is none. `cache` is the number of bytes of it that are kept in memory.
    ///
    /// # Errors
    /// If it cannot be opened, or another process has it open.
    pub fn open(folder: &Path, cache: u64, opened: Opened) -> Result<Self, StoreError> {
        // Where its journal is damaged, this version may panic instead.
        let open = || Self::open_or_panic(folder, cache, opened);
        std::panic::catch_unwind(open).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let why = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            Err(StoreError::Open(why.into()))
        })
    }

    fn open_or_panic(folder: &Path, cache: u64, opened: Opened) -> Result<Self, StoreError> {
        let open = |error: ::fjall::Error| StoreError::Open(Box::new(error));
        if opened == Opened::AfterFailure {
            copy_journals(folder).map_err(|error| StoreError::Open(Box::new(error)))?;
        }
        let database = Database::builder(folder).cache_size(cache).open().map_err(open)?;
        let tables: Vec<Keyspace> = Table::ALL
            .iter()
            .map(|table| database.keyspace(table.name(), KeyspaceCreateOptions::default))
            .collect::<Result<_, _>>()
            .map_err(open)?;
        Ok(Self { database, tables })
    }

    fn table(&self, table: Table) -> &Keyspace {
        let at =
            Table::ALL.iter().position(|other| *other == table).expect("all tables are listed");
        &self.tables[at]
    }
}

/// The database of a directory in a folder, which keeps this many bytes in memory.
pub fn fjall_opener(folder: &Path, cache: u64) -> Box<Opener> {
    let database = folder.join("database");
    Box::new(move |opened| Ok(Box::new(Fjall::open(&database, cache, opened)?)))
}

/// Writes all journals anew. After a failed sync, what they show may not be on the disk, and no later sync would bring it
/// there: batches behind such a hole would be lost with it.
fn copy_journals(folder: &Path) -> std::io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            // Outside of the database's folder, so that a copy cut off by a crash is not taken for
            // one of its files.
            let copy = folder.with_extension("copy");
            copy_data(&path, &copy)?;
            std::fs::rename(&copy, &path)?;
        }
    }
    hekaton_files::sync_folder(folder)
}

/// Copies a file without its zeros, and syncs it: a journal is much longer than what is in it, and there may be no room for that.
fn copy_data(from: &Path, to: &Path) -> std::io::Result<()> {
    let (mut from, mut copy) = (File::open(from)?, File::create(to)?);
    let (mut part, mut length) = (vec![0; PART], 0);
    loop {
        let count = from.read(&mut part)?;
        if count == 0 {
            break;
        }
        if part[..count].iter().any(|byte| *byte != 0) {
            copy.seek(SeekFrom::Start(length))?;
            copy.write_all(&part[..count])?;
        }
        length += count as u64;
    }
    // Zeros at the end were skipped, and the journal must keep its length.
    copy.set_len(length)?;
    copy.sync_all()
}

fn read(error: ::fjall::Error) -> StoreError {
    StoreError::Read(Box::new(error))
}

impl Store for Fjall {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.table(table).get(key).map_err(read)?.map(|value| value.to_vec()))
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        for row in self.table(table).range(from..=to) {
            let (key, value) = row.into_inner().map_err(read)?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last(&self, table: Table) -> Result<Option<Vec<u8>>, StoreError> {
        let last = self.table(table).last_key_value();
        last.map(|row| row.key().map(|key| key.to_vec())).transpose().map_err(read)
    }

    fn commit(&self, rows: Rows) -> Result<(), StoreError> {
        // `Store::commit` promises that rows are on the disk. Without this, they may only be in the
        // system's cache.
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for row in rows.0 {
            match row.value {
                Some(value) => batch.insert(self.table(row.table), row.key, value),
                None => batch.remove(self.table(row.table), row.key),
            }
        }
        batch.commit().map_err(|error| StoreError::Write(Box::new(error)))
    }
}
