//! Opening a directory: to serve it, or to read it.

use super::error::Error;
use super::fjall::fjall_opener;
use super::folder::Directory;
use super::options::Options;
use super::outside::Outside;
use super::pipeline::{Begin, supervise};
use super::reading::Reading;
use super::serve::Server;
use super::shared::{Phase, Shared};
use super::store::Opener;
use ed25519_dalek::SigningKey;
use hekaton_directory::Parameters;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

impl Server {
    /// Serves the directory in a folder, with fjall as its database.
    ///
    /// # Errors
    /// If there is no directory, another process serves it, its parameters are others, or it is damaged or older than
    /// what was signed.
    pub fn open(
        folder: &Path,
        parameters: &Parameters,
        key: &SigningKey,
        options: Options,
    ) -> Result<Self, Error> {
        Self::open_in(folder, parameters, key, options, fjall_opener(folder, options.cache))
    }

    /// Serves a directory with another database.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(
        folder: &Path,
        parameters: &Parameters,
        key: &SigningKey,
        options: Options,
        opener: Box<Opener>,
    ) -> Result<Self, Error> {
        Self::open_outside(folder, parameters, key, options, opener, &Outside::default())
    }

    /// Serves a directory of which something is known from elsewhere than its folder: with that, a folder or a database from a
    /// backup is found out. While its disk is full, it only answers look-ups.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if the directory does not have what is known of it.
    pub fn open_outside(
        folder: &Path,
        parameters: &Parameters,
        key: &SigningKey,
        options: Options,
        opener: Box<Opener>,
        outside: &Outside,
    ) -> Result<Self, Error> {
        check_exists(folder)?;
        let directory = Directory::new(folder, parameters, key, opener, outside)?;
        // Before the database is opened, so that the next start knows whether this process ended
        // cleanly.
        let opened = directory.mark()?;
        let first = match Begin::open(&directory, &options, opened) {
            // A failure although there is room needs attention now.
            Begin::Reading(_, error) if directory.check_room().is_ok() => return Err(error),
            Begin::Nothing(error) => return Err(error),
            first => first,
        };
        let shared = Arc::new(Shared::new(options, key)?);
        shared.lock().phase = Phase::Recovering("it starts".into());
        let builder = std::thread::Builder::new().name("directory".into());
        let theirs = Arc::clone(&shared);
        let thread = builder
            .spawn(move || supervise(&theirs, &directory, first))
            .map_err(|error| Error::Threads(error.to_string()))?;
        let server = Self { shared, parameters: *parameters, thread: Mutex::new(Some(thread)) };
        // Otherwise the first look-up of the caller could fail although nothing is wrong.
        server.until_it_answers()?;
        Ok(server)
    }

    /// Reads the directory in a folder, with fjall as its database: everything up to the last record that was visible. Nothing is
    /// signed or written, so that a backup can be read, too, whatever was signed later; updates are refused.
    ///
    /// # Errors
    /// If there is no directory, another process serves it, its parameters are others, or it is damaged.
    pub fn read(
        folder: &Path,
        parameters: &Parameters,
        key: &SigningKey,
        options: Options,
    ) -> Result<Self, Error> {
        check_exists(folder)?;
        let opener = fjall_opener(folder, options.cache);
        let directory = Directory::new(folder, parameters, key, opener, &Outside::default())?;
        let shared = Arc::new(Shared::new(Options { threads: 1, ..options }, key)?);
        shared.lock().phase = Phase::Recovering("it is only read".into());
        Reading::open(&directory)?.show(&shared);
        *shared.reads.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
        Ok(Self { shared, parameters: *parameters, thread: Mutex::new(None) })
    }

    /// Ends a server that only reads: it has no thread that would.
    pub(crate) fn stop_reading(&self) {
        let directory = self.shared.reads.lock().unwrap_or_else(PoisonError::into_inner).take();
        if directory.is_none() {
            return;
        }
        let view = self.shared.view.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(view) = view {
            view.store.close();
        }
        self.shared.lock().phase = Phase::Stopped(None);
        self.shared.changed.notify_all();
    }

    /// Waits while the database is opened.
    fn until_it_answers(&self) -> Result<(), Error> {
        let mut state = self.shared.lock();
        loop {
            let is_shown =
                self.shared.view.read().unwrap_or_else(PoisonError::into_inner).is_some();
            match &state.phase {
                Phase::Recovering(_) if !is_shown => state = self.shared.wait(state),
                Phase::Stopped(why) => return Err(Error::Stopped(why.clone())),
                _ => return Ok(()),
            }
        }
    }
}

fn check_exists(folder: &Path) -> Result<(), Error> {
    match (folder.join("head").exists(), folder.join("in-use").exists()) {
        (true, _) => Ok(()),
        // A mark without a head is what is left of a directory; a new one in its place would sign
        // its epochs again.
        (false, true) => Err(Error::NoHead(folder.into())),
        (false, false) => Err(Error::NoDirectory(folder.into())),
    }
}
