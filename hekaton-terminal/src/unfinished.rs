//! Directories that are removed when a program is interrupted.

use crate::exit::{self, Failure, OrFail};
use crate::signals::Handling;
use hekaton_files::remove_unfinished;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Directories that Ctrl-C removes before it ends the process.
#[derive(Clone, Debug)]
pub struct Unfinished(Arc<Mutex<Paths>>);

#[derive(Debug, Default)]
struct Paths {
    /// The temporary name of what is to become visible.
    result: Option<PathBuf>,
    scratch: Vec<PathBuf>,
}

impl Unfinished {
    /// Handles signals from now on; `ended` is the message of a process that they end.
    ///
    /// # Errors
    /// If signals cannot be handled.
    pub fn start(ended: &'static str, json: bool) -> Result<Self, Failure> {
        let unfinished = Self(Arc::default());
        let paths = unfinished.clone();
        let last = Box::new(move || paths.remove());
        Handling { cancellation: None, quiet: false, last, ended, json }.start()?;
        Ok(unfinished)
    }

    /// Adds the directory that becomes the result. Once this name of it is gone, the result is complete, and there is nothing left to
    /// interrupt.
    pub fn result(&self, path: &Path) {
        self.lock().result = Some(path.to_owned());
    }

    /// Creates a temporary directory for files that are needed for some time.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn scratch(&self) -> Result<TempDir, Failure> {
        let made = tempfile::Builder::new().prefix("hekaton-").tempdir();
        let made = made.map_err(|e| format!("a temporary directory: {e}")).or_fail(exit::FAILED)?;
        self.lock().scratch.push(made.path().to_owned());
        Ok(made)
    }

    /// Begins steps that belong together and cannot be undone. Until the value is dropped, signals wait; if one is ending the process,
    /// this does not return.
    pub fn commit(&self) -> Commitment<'_> {
        Commitment { _paths: self.lock() }
    }

    fn lock(&self) -> MutexGuard<'_, Paths> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the directories, unless the result is complete. Returns `false` if it is.
    fn remove(&self) -> bool {
        let paths = self.lock();
        // What cannot be removed takes space, and does no harm.
        if paths.result.as_ref().is_some_and(|path| matches!(remove_unfinished(path), Ok(false))) {
            return false;
        }
        for path in &paths.scratch {
            let _ = std::fs::remove_dir_all(path);
        }
        // The process ends: nothing is committed any more.
        std::mem::forget(paths);
        true
    }
}

/// Steps that signals do not interrupt.
#[derive(Debug)]
pub struct Commitment<'a> {
    _paths: MutexGuard<'a, Paths>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_removed_until_the_result_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let make = |name: &str| std::fs::create_dir(path(name)).unwrap();
        let begin = || Unfinished(Arc::default());
        assert!(begin().remove());
        let unfinished = begin();
        let scratch = unfinished.scratch().unwrap();
        make("result.part");
        unfinished.result(&path("result.part"));
        assert!(unfinished.remove());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!scratch.path().exists());
        // Nothing is committed once the process is about to end.
        assert!(unfinished.0.try_lock().is_err());
        // Complete, under another name.
        let unfinished = begin();
        let scratch = unfinished.scratch().unwrap();
        unfinished.result(&path("result.part"));
        assert!(!unfinished.remove());
        assert!(scratch.path().exists());
        drop(unfinished.commit());
    }

    #[test]
    fn a_commitment_is_not_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let (unfinished, path) = (Unfinished(Arc::default()), folder.path().join("result.part"));
        std::fs::create_dir(&path).unwrap();
        unfinished.result(&path);
        let commitment = unfinished.commit();
        let signal = std::thread::spawn({
            let unfinished = unfinished.clone();
            move || unfinished.remove()
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::rename(&path, folder.path().join("result")).unwrap();
        drop(commitment);
        assert!(!signal.join().unwrap());
        assert!(folder.path().join("result").exists());
    }
}
