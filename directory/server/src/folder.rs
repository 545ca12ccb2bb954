//! The folder of a directory.

use super::error::Error;
use super::head_file::beside;
use super::outside::{HeadPaths, Outside, lock};
use super::store::{Opened, Opener};
use ed25519_dalek::SigningKey;
use hekaton_directory::{Parameters, SignedRecord};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The number of bytes that are written to find out whether there is room.
const ROOM: usize = 1 << 20;

/// The folder of a directory, and everything that it is opened with.
pub(crate) struct Directory {
    folder: PathBuf,
    pub(crate) parameters: Parameters,
    pub(crate) key: SigningKey,
    pub(crate) opener: Box<Opener>,
    pub(crate) heads: HeadPaths,
    /// A record that the database must have.
    pub(crate) seen: Option<SignedRecord>,
    /// Held while the directory is open: the lock of the folder, and that of the head on another disk.
    locks: Vec<File>,
}

impl Drop for Directory {
    /// Closing the file would not be enough while a process that was just forked has it open, too.
    fn drop(&mut self) {
        for lock in &self.locks {
            let _ = lock.unlock();
        }
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Directory {
    pub(crate) fn new(
        folder: &Path,
        parameters: &Parameters,
        key: &SigningKey,
        opener: Box<Opener>,
        outside: &Outside,
    ) -> Result<Self, Error> {
        // Clients would reject every record that this key signs.
        if key.verifying_key() != parameters.server {
            return Err(Error::OtherDirectory("the key of another server".into()));
        }
        let Outside { head: outer, start, seen } = outside.clone();
        // Before anything is read: two servers of one folder would sign two records of an epoch.
        let mut locks = vec![lock(&folder.join("lock"), || Error::Locked(folder.into()))?];
        if let Some(head) = &outer {
            locks.push(lock(&beside(head, ".lock"), || Error::HeadLocked(head.clone()))?);
        }
        let heads = HeadPaths { inner: folder.join("head"), outer, start };
        let (folder, parameters, key) = (folder.to_path_buf(), *parameters, key.clone());
        Ok(Self { folder, parameters, key, opener, heads, seen, locks })
    }

    /// Checks that there is room for what is written when a database is opened: in the folder, and next to the head on
    /// another disk.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        let outer = self.heads.outer.as_ref().map(|head| beside(head, ".room"));
        for path in [Some(self.folder.join("room")), outer].into_iter().flatten() {
            let write = |file: std::io::Result<File>| -> std::io::Result<()> {
                let mut file = file?;
                file.write_all(&vec![0; ROOM])?;
                file.sync_all()
            };
            let written = write(File::create(&path));
            // Also after a write that failed, since its beginning takes the room that is missing.
            let removed = std::fs::remove_file(&path);
            let io = |error| Error::Io { what: "write", path, error };
            written.and(removed).map_err(io)?;
        }
        Ok(())
    }

    fn mark_path(&self) -> PathBuf {
        self.folder.join("in-use")
    }

    /// Marks the database as in use, and returns whether the previous process shut down cleanly. Only a clean shutdown
    /// removes the mark; after anything else, unsynced data is not trusted.
    pub(crate) fn mark(&self) -> Result<Opened, Error> {
        let path = self.mark_path();
        let opened = if path.exists() { Opened::AfterFailure } else { Opened::Again };
        let note = File::create(&path).and_then(|file| file.sync_all());
        note.and_then(|()| hekaton_files::sync_folder(&self.folder))
            .map_err(|error| Error::Io { what: "write", path, error })?;
        Ok(opened)
    }

    /// Clears the mark after a clean shutdown.
    pub(crate) fn remove_mark(&self) {
        // Left where it is, it costs some time at the next start.
        let _ = std::fs::remove_file(self.mark_path());
    }
}
