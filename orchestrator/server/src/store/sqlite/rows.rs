//! Queries for records.

use crate::store::{Entry, Rev};
use rusqlite::{Connection, params};

/// Returns a number as a signed integer, the only kind that SQLite has. Counters never reach its maximum, and a client that asks for
/// entries after a larger revision gets none, because there are none.
pub(super) fn signed(number: u64) -> i64 {
    number.min(i64::MAX.cast_unsigned()).cast_signed()
}

/// The end of the range of keys with a prefix. No byte of a key is above `~`, and no key continues after one that is whole.
fn end(prefix: &str) -> String {
    match prefix.is_empty() || prefix.ends_with('/') {
        true => format!("{prefix}\u{7f}"),
        false => format!("{prefix}\0"),
    }
}

/// Reads the records with a prefix that were written after a revision, the oldest first.
pub(super) fn entries(
    connection: &Connection,
    incarnation: u64,
    prefix: &str,
    after: u64,
    limit: i64,
) -> rusqlite::Result<Vec<Entry>> {
    // New records are found by revision: `+` keeps the database from going through all keys of the prefix. A list of all records is found
    // by key.
    let sql = match after {
        0 => {
            "SELECT key, value, rev FROM record WHERE rev > ?1 AND key >= ?2 AND key < ?3 ORDER BY rev LIMIT ?4"
        }
        _ => {
            "SELECT key, value, rev FROM record WHERE rev > ?1 AND +key >= ?2 AND +key < ?3 ORDER BY rev LIMIT ?4"
        }
    };
    let mut query = connection.prepare_cached(sql)?;
    let rows = query.query_map(params![signed(after), prefix, end(prefix), limit], |row| {
        entry(row, incarnation)
    })?;
    rows.collect()
}

/// Reads the record in a row of key, value and revision.
pub(super) fn entry(row: &rusqlite::Row<'_>, incarnation: u64) -> rusqlite::Result<Entry> {
    let (value, rev): (Vec<u8>, i64) = (row.get(1)?, row.get(2)?);
    let rev = Rev { incarnation, number: rev.unsigned_abs() };
    Ok(Entry { key: row.get(0)?, value: value.into(), rev })
}
