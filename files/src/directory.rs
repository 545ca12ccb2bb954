//! Directories that are there as a whole or not at all.

use crate::{folder_of, is_temporary, sync_folder_of, unique_name};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// A directory under construction: it has a temporary name beside its own, on the same file system, so that it can be renamed. It is
/// removed on drop; if the process is killed, by the next one that begins a directory of this name.
#[derive(Debug)]
pub struct NewDirectory {
    /// The temporary name.
    path: PathBuf,
    target: PathBuf,
    /// Held as long as the directory has its temporary name. Some file systems that clusters have know no locks: there, nobody removes
    /// what killed processes leave.
    _lock: Option<File>,
}

impl NewDirectory {
    /// Begins a directory, which must be empty or not exist, and makes the folder that it is in.
    ///
    /// # Errors
    /// If it is not empty ([`DirectoryNotEmpty`](ErrorKind::DirectoryNotEmpty), with the name of something in it), or a directory cannot
    /// be made.
    pub fn beside(path: &Path) -> Result<Self> {
        // A link or "." is resolved, because the directory itself is replaced in the end.
        let path = if path.exists() { path.canonicalize()? } else { path.to_owned() };
        let parent = folder_of(&path);
        std::fs::create_dir_all(parent)?;
        let no_name = || Error::other(format!("{}: a path without a name", path.display()));
        let name = format!(".{}.", path.file_name().ok_or_else(no_name)?.to_string_lossy());
        remove_abandoned(parent, &name);
        if path.exists()
            && let Some(entry) = std::fs::read_dir(&path)?.next()
        {
            let name = entry?.file_name().to_string_lossy().into_owned();
            return Err(Error::new(ErrorKind::DirectoryNotEmpty, name));
        }
        loop {
            let temporary = parent.join(format!("{name}{}.part", unique_name()));
            make_private(&temporary)?;
            let lock = lock_of(&temporary);
            // Another process may have taken it for an abandoned one before it was locked.
            if temporary.exists() {
                return Ok(Self { path: temporary, target: path, _lock: lock });
            }
        }
    }

    /// The path of the directory until it has its own name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the directory its name, readable for all. It is on disk when this returns, and so must be all that is in it.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn publish(self) -> Result<()> {
        // The rename is the only step that makes the directory visible. An empty one may be in the way; `remove_dir` removes nothing
        // else.
        if self.target.exists() {
            std::fs::remove_dir(&self.target)?;
        }
        make_readable(&self.path)?;
        std::fs::rename(&self.path, &self.target)?;
        sync_folder_of(&self.target)
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // After `publish` there is none. What cannot be removed is left for the next one.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Locks a directory, unless another process has.
fn lock_of(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    file.try_lock().is_ok().then_some(file)
}

/// Removes directories of this name that killed processes have left behind: their locks are free.
fn remove_abandoned(parent: &Path, name: &str) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let found = entry.file_name();
        let ours = found.to_str().and_then(|found| found.strip_prefix(name));
        let is_ours = ours.is_some_and(|rest| is_temporary(&format!("x.{rest}")));
        if is_ours && lock_of(&entry.path()).is_some() {
            // What cannot be removed takes space, and does no harm.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(unix)]
fn make_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(unix)]
fn make_readable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> Result<()> {
    std::fs::create_dir(path)
}

#[cfg(not(unix))]
fn make_readable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            files.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn directories_are_there_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/keys");
        let new = NewDirectory::beside(&path).unwrap();
        std::fs::write(new.path().join("a"), "a").unwrap();
        assert!(!path.exists());
        new.publish().unwrap();
        assert_eq!(names(&path), ["a"]);
        assert_eq!(names(&folder.path().join("below")), ["keys"]);
        // One that is in use is not replaced, and one that is given up leaves nothing.
        let refused = NewDirectory::beside(&path).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.to_string().as_str()),
            (ErrorKind::DirectoryNotEmpty, "a")
        );
        std::fs::remove_file(path.join("a")).unwrap();
        drop(NewDirectory::beside(&path).unwrap());
        assert_eq!(names(&folder.path().join("below")), ["keys"]);
        NewDirectory::beside(&path).unwrap().publish().unwrap();
        assert_eq!(names(&path), [""; 0]);
        NewDirectory::beside(Path::new("/")).unwrap_err();
    }

    #[test]
    fn what_killed_processes_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let left = [".keys.0123456789abcdef.part", ".keys.x.part", ".other.0123456789abcdef.part"];
        for name in left {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("a"), "").unwrap();
        }
        let held = NewDirectory::beside(&path).unwrap();
        assert!(!folder.path().join(left[0]).exists());
        // One that is being written is not removed.
        let second = NewDirectory::beside(&path).unwrap();
        assert!(held.path().exists());
        second.publish().unwrap();
        held.publish().unwrap();
        assert_eq!(names(folder.path()), [left[1], left[2], "keys"]);
    }
}
