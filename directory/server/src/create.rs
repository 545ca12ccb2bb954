//! New directories.

use super::error::Error;
use super::fjall::fjall_opener;
use super::folder::Directory;
use super::head::Head;
use super::head_file::{HeadFile, Keep as _};
use super::options::Options;
use super::outside::Outside;
use super::recover::first_rows;
use super::serve::Server;
use super::store::{Opened, Opener, Table};
use super::time::unix_time;
use ed25519_dalek::SigningKey;
use hekaton_directory::{Parameters, Record};
use std::path::Path;

impl Server {
    /// Makes a new directory in a folder, with fjall as its database. `levels` is the number of levels of the tree in one
    /// row, from 1 to 8; 4 is a good number.
    ///
    /// # Errors
    /// If the folder has something in it, or cannot be written.
    pub fn create(
        folder: &Path,
        parameters: &Parameters,
        key: &SigningKey,
        levels: u8,
    ) -> Result<(), Error> {
        let opener = fjall_opener(folder, Options::default().cache);
        Self::create_in(folder, parameters, key, levels, opener)
    }

    /// Makes a new directory with another database.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_in(
        folder: &Path,
        parameters: &Parameters,
        key: &SigningKey,
        levels: u8,
        opener: Box<Opener>,
    ) -> Result<(), Error> {
        let io = |what| move |error| Error::Io { what, path: folder.into(), error };
        std::fs::create_dir_all(folder).map_err(io("make"))?;
        let directory = Directory::new(folder, parameters, key, opener, &Outside::default())?;
        for entry in std::fs::read_dir(folder).map_err(io("read"))? {
            // In addition to the lock, there may be a database whose creation was not finished. One that was in use has a mark.
            let name = entry.map_err(io("read"))?.file_name();
            let is_left = ["lock", "database", "head.new"].iter().any(|n| name == *n);
            if !is_left || folder.join("head").exists() {
                return Err(Error::Exists(folder.into()));
            }
        }
        let left = folder.join("database");
        if left.exists() {
            // One with a later epoch, or with updates, is a directory that has lost its head, and must not be removed.
            let store = (directory.opener)(Opened::Again)?;
            let is_used = store.last(Table::Intake)?.is_some()
                || store.last(Table::Outcome)?.is_some()
                || store
                    .last(Table::Epoch)?
                    .is_some_and(|epoch| epoch.iter().any(|byte| *byte != 0));
            drop(store);
            if is_used {
                return Err(Error::NoHead(folder.into()));
            }
            std::fs::remove_dir_all(&left).map_err(io("empty"))?;
        }
        let store = (directory.opener)(Opened::Again)?;
        let allowed_levels = levels.clamp(1, 8);
        let now = unix_time();
        store.commit(first_rows(parameters, allowed_levels, now, key))?;
        let record = Record::first(parameters, now);
        // With it, the directory is there.
        let head = Head { commit: 0, epoch: 0, record: record.digest() };
        HeadFile::new(&directory.heads.inner).advance(head)?;
        // The folder may be new, too, and its name has to survive a loss of power.
        let parent =
            folder.canonicalize().ok().and_then(|path| path.parent().map(Path::to_path_buf));
        let above = parent.unwrap_or_else(|| folder.into());
        hekaton_files::sync_folder(&above).map_err(io("sync"))
    }
}
