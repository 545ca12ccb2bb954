//! This machine, and the locks that show at once whether a session on it has ended.

use crate::alive::LivenessProbe;
use crate::record::{Session, SessionId};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The name of the machine and its boot: process numbers and locks mean nothing beyond it.
pub(crate) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // Systems other than Linux have no such id. There, a session from before a restart is taken for a current one, and its death is
        // noticed late.
        let id = hekaton_files::process::boot_id().unwrap_or_else(|| "-".into());
        format!("{}:{id}", name.replace(char::is_whitespace, "-"))
    })
}

/// The lock of a session, held until the process ends. Programs that it starts do not inherit it.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    path: PathBuf,
}

fn path(folder: &Path, session: &SessionId) -> PathBuf {
    folder.join(format!("{session}.lock"))
}

impl Lock {
    /// Takes the lock of a new session.
    pub(crate) fn take(folder: &Path, session: &SessionId) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        tidy(folder);
        let path = path(folder, session);
        // Must create the file: an existing lock would belong to a session with the same random name.
        let file = File::options().create_new(true).write(true).open(&path)?;
        file.lock()?;
        Ok(Self { _file: file, path })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes locks that no process holds and that are a day old: by then, all observers have seen that their sessions ended.
fn tidy(folder: &Path) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let age = file
            .metadata()
            .and_then(|data| data.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        let old = age.is_some_and(|age| age.as_secs() > 86_400);
        if old && File::open(file.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Returns a function that reports whether a session of this machine has ended: then its lock is free.
pub(crate) fn gone(folder: PathBuf) -> LivenessProbe {
    Arc::new(move |id: &SessionId, session: &Session| {
        // Locks mean something within one boot of one machine. All other sessions are judged by
        // their silence alone.
        if session.host != boot() {
            return false;
        }
        match File::open(path(&folder, id)) {
            Ok(file) => file.try_lock().is_ok(),
            // A session that ends in an orderly way removes its lock.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    })
}
