//! Waking watches when a database was written, by this process or by another one.
//!
//! After each commit, the writer touches a file beside the database, which other processes follow by inotify. The write-ahead log
//! itself would not do: it is written before the commit is visible.

use super::Waker;
use rustix::fs::inotify;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often watches look where the file system reports nothing.
const PAUSE: Duration = Duration::from_millis(20);

/// Tells watches that something was written.
#[derive(Clone, Debug)]
pub(super) struct Wake {
    waker: Waker,
    file: Option<Arc<File>>,
}

impl Wake {
    /// Starts following a database.
    pub(super) fn new(database: &Path) -> Self {
        let waker: Waker = Arc::new(tokio::sync::watch::Sender::new(0));
        let weak = Arc::downgrade(&waker);
        let mut path = database.as_os_str().to_owned();
        path.push("-wake");
        let path = PathBuf::from(path);
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let events = opened.map_err(|error| error.to_string()).and_then(|file| {
            let events = inotify(&path).map_err(|error| error.to_string())?;
            Ok((file, events))
        });
        let (file, followed) = match events {
            Ok((file, events)) => (Some(Arc::new(file)), Some(events)),
            Err(why) => {
                let path = path.display();
                tracing::warn!(%path, %why, "writes of other processes are polled for");
                (None, None)
            }
        };
        let run = move || match followed {
            Some(events) => follow(&events, &weak),
            None => poll(&weak),
        };
        if let Err(error) = std::thread::Builder::new().name("sqlite-watch".into()).spawn(run) {
            tracing::error!(%error, "writes of other processes are not seen");
        }
        Self { waker, file }
    }

    /// To be called after each commit.
    pub(super) fn changed(&self) {
        self.waker.send_modify(|times| *times = times.wrapping_add(1));
        if let Some(file) = &self.file {
            // Any write is an event. If it fails, others see the commit with the next one, or when they sweep.
            let _ = file.write_at(b".", 0);
        }
    }

    pub(super) fn subscribe(&self) -> tokio::sync::watch::Receiver<u64> {
        self.waker.subscribe()
    }
}

/// Wakes all watches. Returns whether the store is still there.
fn tick(waker: &Weak<tokio::sync::watch::Sender<u64>>) -> bool {
    let Some(waker) = waker.upgrade() else { return false };
    waker.send_modify(|times| *times = times.wrapping_add(1));
    true
}

fn poll(waker: &Weak<tokio::sync::watch::Sender<u64>>) {
    while tick(waker) {
        std::thread::sleep(PAUSE);
    }
}

fn inotify(file: &Path) -> Result<OwnedFd, rustix::io::Errno> {
    let events = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    inotify::add_watch(&events, file, inotify::WatchFlags::MODIFY)?;
    Ok(events)
}

/// Wakes watches when the file was touched. Ends after the store is dropped, at the next touch.
fn follow(events: &OwnedFd, waker: &Weak<tokio::sync::watch::Sender<u64>>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    loop {
        match reader.next() {
            Ok(_) => {
                if !tick(waker) {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "writes of other processes are polled for");
                return poll(waker);
            }
        }
    }
}
