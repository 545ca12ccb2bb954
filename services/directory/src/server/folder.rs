//! The folder of a directory.

use super::error::Error;
use super::store::{Opened, Opener};
use crate::record::Parameters;
use ed25519_dalek::SigningKey;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where a directory is and what it is opened with.
pub(crate) struct Directory {
    folder: PathBuf,
    pub(crate) parameters: Parameters,
    pub(crate) key: SigningKey,
    pub(crate) opener: Box<Opener>,
    /// Held while the directory is open.
    lock: File,
}

impl Drop for Directory {
    /// Closing the file would not be enough while a process that was just forked has it open, too.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
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
    ) -> Result<Self, Error> {
        if key.verifying_key() != parameters.server {
            return Err(Error::OtherDirectory("the key of another server".into()));
        }
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(|source| Error::Io {
            what: "write",
            path: path.clone(),
            source,
        })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(Error::Locked(folder.into())),
            Err(std::fs::TryLockError::Error(source)) => {
                return Err(Error::Io { what: "lock", path, source });
            }
        }
        let (folder, parameters, key) = (folder.to_path_buf(), *parameters, key.clone());
        Ok(Self { folder, parameters, key, opener, lock })
    }

    pub(crate) fn head_path(&self) -> PathBuf {
        self.folder.join("head")
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
        note.and_then(|()| File::open(&self.folder)?.sync_all()).map_err(|source| Error::Io {
            what: "write",
            path,
            source,
        })?;
        Ok(opened)
    }

    /// Clears the mark after a clean shutdown.
    pub(crate) fn remove_mark(&self) {
        // Left where it is, it costs some time at the next start.
        let _ = std::fs::remove_file(self.mark_path());
    }
}
