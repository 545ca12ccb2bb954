//! Noticing commits of other processes.
//!
//! After each commit, the writer touches a file next to the database, which other processes watch with inotify. The write-ahead log itself
//! would not do: it is written before the commit is visible.

use super::recent::Recent;
use rusqlite::Connection;
use rustix::fs::inotify;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

/// The interval at which the database is polled if the file system does not report changes.
// A poll without news reads a single row, so even frequent polls cost little.
const PAUSE: Duration = Duration::from_millis(20);

/// Tells other processes that something was written.
#[derive(Debug)]
pub(super) struct Wake {
    file: Option<File>,
}

impl Wake {
    /// Starts following a database over a connection of its own, until the store is dropped.
    pub(super) fn new(database: &Path, connection: Connection, recent: Weak<Recent>) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wake");
        let path = PathBuf::from(path);
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let events = opened.map_err(|error| error.to_string()).and_then(|file| {
            let events = inotify(&path).map_err(|error| error.to_string())?;
            Ok((file, events))
        });
        let (file, followed) = match events {
            Ok((file, events)) => (Some(file), Some(events)),
            Err(why) => {
                tracing::warn!(path = %path.display(), %why, "writes of other processes are polled for");
                (None, None)
            }
        };
        let run = move || match followed {
            Some(events) => follow(&events, &connection, &recent),
            None => poll(&connection, &recent),
        };
        if let Err(error) = std::thread::Builder::new().name("sqlite-watch".into()).spawn(run) {
            tracing::error!(%error, "writes of other processes are not seen");
        }
        Self { file }
    }

    /// Wakes other processes. To be called after each commit.
    pub(super) fn changed(&self) {
        if let Some(file) = &self.file {
            // Any write is an event. If it fails, others see the commit with the next one, or when they sweep.
            let _ = file.write_at(b".", 0);
        }
    }
}

/// Finds what others have committed. Returns whether the store is still there.
fn look(connection: &Connection, recent: &Weak<Recent>) -> bool {
    let Some(recent) = recent.upgrade() else { return false };
    recent.catch_up(connection);
    true
}

fn poll(connection: &Connection, recent: &Weak<Recent>) {
    while look(connection, recent) {
        std::thread::sleep(PAUSE);
    }
}

fn inotify(file: &Path) -> Result<OwnedFd, rustix::io::Errno> {
    let events = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    inotify::add_watch(&events, file, inotify::WatchFlags::MODIFY)?;
    Ok(events)
}

/// Looks when the file was touched. Ends after the store is dropped, at the next touch.
fn follow(events: &OwnedFd, connection: &Connection, recent: &Weak<Recent>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    loop {
        match reader.next() {
            Ok(_) => {
                if !look(connection, recent) {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "writes of other processes are polled for");
                return poll(connection, recent);
            }
        }
    }
}
