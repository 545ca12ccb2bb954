//! Directories that are removed when a program is interrupted.

use crate::exit::{self, Failure, OrFail};
use crate::signals::Handling;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Paths> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the directories, unless the result is complete. Returns `false` if it is.
    fn remove(&self) -> bool {
        let paths = self.lock();
        if paths.result.as_ref().is_some_and(|path| !path.exists()) {
            return false;
        }
        for path in paths.result.iter().chain(&paths.scratch) {
            // What cannot be removed takes space, and does no harm.
            let _ = std::fs::remove_dir_all(path);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_removed_until_the_result_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let make = |name: &str| std::fs::create_dir(path(name)).unwrap();
        let unfinished = Unfinished(Arc::default());
        assert!(unfinished.remove());
        let scratch = unfinished.scratch().unwrap();
        make("result.part");
        unfinished.result(&path("result.part"));
        assert!(unfinished.remove());
        assert!(!path("result.part").exists() && !scratch.path().exists());
        let scratch = unfinished.scratch().unwrap();
        assert!(!unfinished.remove());
        assert!(scratch.path().exists());
    }
}
