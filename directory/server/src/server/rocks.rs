//! RocksDB, for larger directories: it writes several batches at once, and has tools for backups. Its build takes a C++
//! compiler, libclang and some minutes.

use super::store::{Opened, Opener, Rows, Store, StoreError, Table, Visit};
use ::rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, DB, Direction, Error, IteratorMode, Options,
    WriteBatch, WriteOptions,
};
use std::path::Path;

/// A database of RocksDB's, in a folder of its own.
#[derive(Debug)]
pub struct Rocks(DB);

impl Rocks {
    /// Opens the database, and makes it if there is none. `cache` is how many bytes of it are kept in memory.
    ///
    /// # Errors
    /// If it cannot be opened, or another process has it open.
    pub fn open(folder: &Path, cache: u64, opened: Opened) -> Result<Self, StoreError> {
        let open = |error: Error| StoreError::Open(Box::new(error));
        let mut blocks = BlockBasedOptions::default();
        let cache = usize::try_from(cache).unwrap_or(usize::MAX);
        blocks.set_block_cache(&Cache::new_lru_cache(cache));
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_block_based_table_factory(&blocks);
        let tables = Table::ALL.map(|table| (table.name(), options.clone()));
        let database = DB::open_cf_with_opts(&options, folder, tables).map_err(open)?;
        // What a killed process has not synced.
        database.flush_wal(true).map_err(open)?;
        let rocks = Self(database);
        if opened == Opened::AfterFailure {
            // What the log shows may not be on the disk, and no sync would bring it there: it is written to tables.
            for table in Table::ALL {
                rocks.0.flush_cf(rocks.table(table)?).map_err(open)?;
            }
        }
        Ok(rocks)
    }

    fn table(&self, table: Table) -> Result<&ColumnFamily, StoreError> {
        let found = self.0.cf_handle(table.name());
        found.ok_or_else(|| StoreError::Read(format!("no table {}", table.name()).into()))
    }
}

/// The database of a directory in a folder, which keeps this many bytes in memory.
pub fn rocks_opener(folder: &Path, cache: u64) -> Box<Opener> {
    let folder = folder.join("database");
    Box::new(move |opened| Ok(Box::new(Rocks::open(&folder, cache, opened)?)))
}

fn read(error: Error) -> StoreError {
    StoreError::Read(Box::new(error))
}

impl Store for Rocks {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get_cf(self.table(table)?, key).map_err(read)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let start = IteratorMode::From(from, Direction::Forward);
        for row in self.0.iterator_cf(self.table(table)?, start) {
            let (key, value) = row.map_err(read)?;
            if *key > *to || visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last(&self, table: Table) -> Result<Option<Vec<u8>>, StoreError> {
        let last = self.0.iterator_cf(self.table(table)?, IteratorMode::End).next();
        Ok(last.transpose().map_err(read)?.map(|(key, _)| key.into_vec()))
    }

    fn commit(&self, rows: Rows) -> Result<(), StoreError> {
        let mut batch = WriteBatch::default();
        for row in rows.0 {
            let table = self.table(row.table)?;
            match row.value {
                Some(value) => batch.put_cf(table, row.key, value),
                None => batch.delete_cf(table, row.key),
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.0.write_opt(batch, &options).map_err(|error| StoreError::Write(Box::new(error)))
    }
}
