//! The tables, their version, and how connections are set.

use super::rows::signed;
use hekaton_orchestrator_client::Digest;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// The version of the tables, in `PRAGMA user_version`.
const VERSION: i64 = 1;

/// The same, once a record was removed: programs that only know the first version would accept blocks again whose jobs are gone.
const WITH_REMOVALS: i64 = 2;

/// "heko", in `PRAGMA application_id`: what `file` shows.
const APPLICATION: i64 = 0x6865_6b6f;

/// The revisions that are left out after a start of the machine: more than a crash can have lost.
pub(crate) const LEFT_OUT: u64 = 1 << 17;

/// The time that one process waits for another one's transaction.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

const TABLES: &str = "
CREATE TABLE state (name TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE record (key TEXT PRIMARY KEY, rev INTEGER NOT NULL, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX record_by_rev ON record (rev);
CREATE TABLE log (name TEXT NOT NULL, rev INTEGER NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (name, rev)) STRICT, WITHOUT ROWID;
CREATE TABLE audit (rev INTEGER PRIMARY KEY, at INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL) STRICT;
";

/// A connection with its settings.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    // With a write-ahead log, readers of all processes see the last commit while a writer waits for
    // the disk; with a rollback journal, they would wait, too.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Without a sync for each commit: a crash of the machine loses what is new, and never damages the file. Syncs are made by `disk`.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// A connection to a database whose tables are there.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = connect(path)?;
    // Two processes may start at the same time.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = match (version, tables) {
        (VERSION | WITH_REMOVALS, _) => false,
        (0, 0) => {
            make(&transaction)?;
            true
        }
        // Also a database without a version that has tables: it belongs to another program, whose
        // data is not to be touched.
        (found, _) => {
            let why = format!(
                "its tables have version {found}, but this program reads versions {VERSION} and {WITH_REMOVALS}"
            );
            return Err(rusqlite::Error::InvalidParameterName(why));
        }
    };
    note_start(&transaction, is_new)?;
    transaction.commit()?;
    Ok(connection)
}

/// Leaves revisions out if the machine was started since the database was opened last: they may have been given to writes that a crash
/// has lost, and live on as epochs in the names of jobs on other machines.
fn note_start(transaction: &Transaction<'_>, is_new: bool) -> rusqlite::Result<()> {
    let digest = Digest::of(crate::host::boot().as_bytes());
    let (first, _) = digest.as_bytes().split_first_chunk().expect("a digest has 32 bytes");
    let boot = i64::from_le_bytes(*first);
    let mut known = transaction.prepare("SELECT number FROM state WHERE name = 'boot'")?;
    if known.query_row([], |row| row.get(0)).optional()? == Some(boot) {
        return Ok(());
    }
    transaction.execute(
        "INSERT INTO state (name, number) VALUES ('boot', ?1) ON CONFLICT (name) DO UPDATE SET number = ?1",
        [boot],
    )?;
    match is_new {
        // A new database has lost nothing.
        true => Ok(()),
        false => set_counter(transaction, counter(transaction)? + LEFT_OUT),
    }
}

fn make(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    // 62 bits, so that it is positive in SQLite as well.
    let incarnation = crate::id::random() >> 2;
    let mut insert = transaction.prepare("INSERT INTO state (name, number) VALUES (?1, ?2)")?;
    insert.execute(("incarnation", incarnation.cast_signed()))?;
    insert.execute(("counter", 0_i64))?;
    Ok(())
}

fn number(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("SELECT number FROM state WHERE name = ?1")?;
    query.query_row([name], |row| row.get(0)).map(i64::unsigned_abs)
}

/// Returns the store's incarnation.
pub(super) fn incarnation(connection: &Connection) -> rusqlite::Result<u64> {
    number(connection, "incarnation")
}

/// The revision of the last write.
pub(super) fn counter(connection: &Connection) -> rusqlite::Result<u64> {
    number(connection, "counter")
}

/// The revision up to which the history has only current versions of records.
pub(super) fn pruned(connection: &Connection) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("SELECT number FROM state WHERE name = 'pruned'")?;
    let found: Option<i64> = query.query_row([], |row| row.get(0)).optional()?;
    // A database whose history was never pruned has no such number.
    Ok(found.map_or(0, i64::unsigned_abs))
}

/// Sets the revision up to which the history was pruned, unless it was pruned further.
pub(super) fn set_pruned(transaction: &Transaction<'_>, upto: u64) -> rusqlite::Result<()> {
    let mut set = transaction.prepare_cached(
        "INSERT INTO state (name, number) VALUES ('pruned', ?1) ON CONFLICT (name) DO UPDATE SET number = max(number, ?1)",
    )?;
    set.execute([signed(upto)]).map(drop)
}

/// Notes that a record was removed.
pub(super) fn set_removed(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        WITH_REMOVALS => Ok(()),
        _ => transaction.pragma_update(None, "user_version", WITH_REMOVALS),
    }
}

/// Sets the revision of the last write.
pub(super) fn set_counter(transaction: &Transaction<'_>, counter: u64) -> rusqlite::Result<()> {
    let mut update =
        transaction.prepare_cached("UPDATE state SET number = ?1 WHERE name = 'counter'")?;
    update.execute([signed(counter)]).map(drop)
}
