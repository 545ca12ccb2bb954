//! Rows that are not what they should be.

use super::store::Table;

/// A row that is not what it should be, or is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database is damaged: in table {table}, row {row}: {why}", table = .table.name())]
pub struct Damaged {
    /// The table.
    pub table: Table,
    /// The row's key, in hexadecimal.
    pub row: String,
    /// A description of the damage.
    pub why: String,
}

impl Damaged {
    pub(crate) fn new(table: Table, key: &[u8], why: impl ToString) -> Self {
        Self { table, row: hex::encode(key), why: why.to_string() }
    }
}
