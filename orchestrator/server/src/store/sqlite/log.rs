//! The write-ahead log as a file, and its repair after a sync that failed.
//!
//! Once the kernel has reported that it could not write a page, it takes the page for written. The next sync succeeds without it, and a
//! crash of the machine then loses what follows the hole in the log. So the log is written once more, which makes all of its pages new.

use super::schema;
use rusqlite::{Connection, TransactionBehavior};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The number of bytes that are copied at once.
const CHUNK: usize = 1 << 16;

/// A file whose pages are written to the disk by syncs.
pub(super) trait LogFile: Send {
    /// Reads bytes at an offset, and returns how many; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes bytes at an offset.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Puts on disk what was written since the last sync.
    fn sync(&self) -> io::Result<()>;
}

impl LogFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Why the log was not written once more.
#[derive(Debug, thiserror::Error)]
enum RewriteError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// The write-ahead log of a database.
pub(super) struct Log {
    file: Box<dyn LogFile>,
    connection: Connection,
    /// The log may have a hole on disk.
    is_doubtful: bool,
}

impl Log {
    /// Opens the log of a database with open connections.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, or its folder cannot be synced.
    pub(super) fn open(database: &Path, connection: Connection) -> io::Result<Self> {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        // Open connections keep SQLite from removing this file and making another one of the same name.
        let file = File::options().read(true).write(true).open(PathBuf::from(path))?;
        // A sync of the log does not cover its name, and it may be new.
        hekaton_files::sync_folder_of(database)?;
        Ok(Self::new(Box::new(file), connection))
    }

    /// Takes over a log from processes that may have ended after a failed sync, of which a file that is opened now does not know.
    pub(super) fn new(file: Box<dyn LogFile>, connection: Connection) -> Self {
        Self { file, connection, is_doubtful: true }
    }

    /// Returns the revision of the last write in the log.
    pub(super) fn counter(&self) -> rusqlite::Result<u64> {
        schema::counter(&self.connection)
    }

    /// Puts on disk what was committed before.
    ///
    /// # Errors
    /// Fails if the disk does not write all of it. The next sync writes it again.
    pub(super) fn sync(&mut self) -> Result<(), String> {
        if !self.is_doubtful {
            let Err(error) = self.file.sync() else { return Ok(()) };
            tracing::error!(%error, "the store cannot sync its log");
            self.is_doubtful = true;
        }
        let rewritten = self.rewrite().and_then(|()| Ok(self.file.sync()?));
        self.is_doubtful = rewritten.is_err();
        rewritten.map_err(|error| format!("its log cannot be synced: {error}"))
    }

    /// Writes the same bytes over the log.
    fn rewrite(&mut self) -> Result<(), RewriteError> {
        // Nobody adds to the log meanwhile, or starts it anew. Readers see the same bytes.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (mut buffer, mut at) = (vec![0; CHUNK], 0);
        loop {
            let count = self.file.read_at(&mut buffer, at)?;
            if count == 0 {
                break;
            }
            self.file.write_all_at(&buffer[..count], at)?;
            at += count as u64;
        }
        Ok(transaction.rollback()?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated::Simulated;
    use super::*;

    fn write(connection: &Connection, key: &str) {
        let insert = "INSERT INTO record (key, rev, value) VALUES (?1, (SELECT max(rev) + 1 FROM record), ?2)";
        connection.execute(insert, (key, vec![7_u8; 20_000])).unwrap();
    }

    fn count(connection: &Connection) -> u32 {
        connection.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_log_that_was_not_synced_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let connection = schema::open(&path).unwrap();
        connection.execute("INSERT INTO record VALUES ('first', 1, x'00')", []).unwrap();
        let disk = Simulated::of(&path);
        let open = || Log::new(Box::new(disk.clone()), schema::connect(&path).unwrap());
        let mut log = open();
        log.sync().unwrap();
        assert_eq!(count(&disk.after_power_cut(&path).1), 1);
        disk.fail(true);
        write(&connection, "lost");
        for _ in 0..2 {
            let why = log.sync().unwrap_err();
            assert_eq!(why, "its log cannot be synced: a broken disk");
        }
        disk.fail(false);
        write(&connection, "third");
        // The kernel takes the lost pages for written.
        disk.sync().unwrap();
        assert_eq!(count(&disk.after_power_cut(&path).1), 1, "the log has a hole");
        log.sync().unwrap();
        assert_eq!(count(&disk.after_power_cut(&path).1), 3);
        // A writer holds the lock, so the log cannot be written again, and nothing is said to be on disk.
        disk.fail(true);
        write(&connection, "fourth");
        assert!(log.sync().is_err());
        disk.fail(false);
        log.connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(log.sync().unwrap_err().contains("locked"));
        connection.execute_batch("ROLLBACK").unwrap();
        drop(log);
        // The next process does not know of the failure.
        disk.sync().unwrap();
        assert_eq!(count(&disk.after_power_cut(&path).1), 3);
        open().sync().unwrap();
        assert_eq!(count(&disk.after_power_cut(&path).1), 4);
    }
}
