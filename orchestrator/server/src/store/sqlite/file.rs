//! The file of a database, and the writes that it keeps.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The writes that a store keeps over a crash of the machine. A killed process loses nothing in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Every answered write, and a copy of each version of each record (`audit`).
    Disk,
    /// All writes but the most recent ones. For sessions, which are written again within a second.
    Memory,
}

/// A file that must stay where it is: what is written to one that was removed is lost with the process.
#[derive(Clone, Debug)]
pub(super) struct DatabaseFile {
    pub(super) path: PathBuf,
    /// The device and the number of the file on it.
    file: (u64, u64),
}

impl DatabaseFile {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let found = std::fs::metadata(path)?;
        Ok(Self { path: path.to_owned(), file: (found.dev(), found.ino()) })
    }

    pub(super) fn is_there(&self) -> bool {
        // The path alone is not enough: a database that was removed and made again has the same
        // path, while this process still has the removed one open.
        std::fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file)
    }
}
