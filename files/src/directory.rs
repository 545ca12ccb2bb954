//! Directories that are there as a whole or not at all.

use crate::{PART, folder_of, is_temporary, sync_folder_of, unique_name};
use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// A directory under construction: it has a temporary name beside its own, on the same file system, so that it can be renamed. It is
/// removed on drop; if the process is killed, by the next one on this machine that begins a directory of this name.
#[derive(Debug)]
pub struct NewDirectory {
    /// The temporary name.
    path: PathBuf,
    target: PathBuf,
    /// Held as long as the directory has its temporary name. Some file systems that clusters have know no locks: there, nobody removes
    /// what killed processes leave.
    _lock: Option<File>,
    is_kept: bool,
}

impl NewDirectory {
    /// Begins a directory, which must be empty or not exist, and creates its parent if necessary.
    ///
    /// # Errors
    /// If the directory is not empty ([`DirectoryNotEmpty`](ErrorKind::DirectoryNotEmpty), naming one of its entries), or cannot be
    /// created.
    pub fn beside(path: &Path) -> Result<Self> {
        if path.is_symlink() && !path.exists() {
            return Err(Error::other(
                "a link that leads nowhere, expected a new or empty directory",
            ));
        }
        // A link or "." is resolved, because the directory itself is replaced in the end.
        let path = if path.exists() { path.canonicalize()? } else { path.to_owned() };
        let parent = folder_of(&path);
        std::fs::create_dir_all(parent)?;
        let no_name = || Error::other(format!("{}: a path without a name", path.display()));
        let name = path.file_name().ok_or_else(no_name)?.to_string_lossy();
        let mut names = Names { name: format!(".{name}."), machine: machine() };
        names.remove_abandoned(parent);
        if path.exists()
            && let Some(entry) = std::fs::read_dir(&path)?.next()
        {
            let name = entry?.file_name().to_string_lossy().into_owned();
            return Err(Error::new(ErrorKind::DirectoryNotEmpty, name));
        }
        loop {
            let temporary = parent.join(names.draw());
            match make_private(&temporary) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Another process may take it for an abandoned one before it is locked.
            let lock = match try_lock(&temporary) {
                Lock::Held(lock) => Some(lock),
                // Others may be able to lock it: not under a name that says that it is this machine's.
                Lock::Unknown if names.machine.take().is_some() => {
                    let _ = std::fs::remove_dir(&temporary);
                    continue;
                }
                Lock::Unknown => None,
                Lock::Taken => continue,
            };
            if temporary.exists() {
                return Ok(Self { path: temporary, target: path, _lock: lock, is_kept: false });
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
    /// If the rename fails. The contents are then kept under another name, which the error gives.
    pub fn publish(mut self) -> Result<()> {
        self.is_kept = true;
        self.rename().map_err(|e| {
            let place = self.rename_to_keep().unwrap_or_else(|_| self.path.clone());
            let why = format!("{e}; the complete directory is {}", place.display());
            Error::new(e.kind(), why)
        })?;
        sync_folder_of(&self.target)
    }

    /// Keeps a complete directory that is not to have its name yet. Returns the name that it has then: its temporary one with the
    /// extension `complete`.
    ///
    /// # Errors
    /// If it cannot be renamed; the error gives the name that it has.
    pub fn keep(mut self) -> Result<PathBuf> {
        self.is_kept = true;
        let named = |place: &Path| {
            let place = place.display().to_string();
            move |e: Error| Error::new(e.kind(), format!("{place}: {e}"))
        };
        make_readable(&self.path).map_err(named(&self.path))?;
        let kept = self.rename_to_keep().map_err(named(&self.path))?;
        sync_folder_of(&kept).map_err(named(&kept))?;
        Ok(kept)
    }

    /// Gives the directory a name that nobody takes for an abandoned one.
    fn rename_to_keep(&self) -> Result<PathBuf> {
        let kept = self.path.with_extension("complete");
        std::fs::rename(&self.path, &kept)?;
        Ok(kept)
    }

    fn rename(&self) -> Result<()> {
        // The rename is the only step that makes the directory visible. An empty one may be in the way; `remove_dir` removes nothing
        // else.
        if self.target.exists() {
            std::fs::remove_dir(&self.target)?;
        }
        make_readable(&self.path)?;
        std::fs::rename(&self.path, &self.target)
    }
}

/// Removes a directory that another thread is building, by its temporary name. It is renamed first, so that it is published as a whole or
/// not at all. Returns `false` if it has its own name already. Contents that cannot be removed are left for the next process that begins a
/// directory of this name.
///
/// # Errors
/// If it cannot be renamed.
///
/// # Panics
/// If the path has no name.
pub fn remove_unfinished(path: &Path) -> Result<bool> {
    let name = path.file_name().expect("a temporary name").to_string_lossy();
    // Other digits of the directory, after those of the machine.
    let kept = name.strip_suffix(PART).and_then(|stem| stem.get(..stem.len().checked_sub(DIGITS)?));
    let other = format!("{}{}{PART}", kept.unwrap_or(&name), &unique_name()[..DIGITS]);
    let other = folder_of(path).join(other);
    match std::fs::rename(path, &other) {
        Ok(()) => {
            let _ = std::fs::remove_dir_all(other);
            Ok(true)
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed is left for the next one.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

enum Lock {
    Held(File),
    /// Another process has it, or has removed the directory.
    Taken,
    /// The file system has no locks.
    Unknown,
}

fn try_lock(directory: &Path) -> Lock {
    let file = match File::open(directory) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Lock::Taken,
        Err(_) => return Lock::Unknown,
    };
    match file.try_lock() {
        Ok(()) => Lock::Held(file),
        Err(TryLockError::WouldBlock) => Lock::Taken,
        Err(TryLockError::Error(_)) => Lock::Unknown,
    }
}

/// The number of hexadecimal digits that stand for the machine, and then for the directory.
const DIGITS: usize = 8;

/// The digits of this machine since it started: others may share the folder, but not all locks.
fn machine() -> Option<String> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    crate::process::boot_id()?.hash(&mut hasher);
    Some(format!("{:016x}", hasher.finish())[..DIGITS].to_owned())
}

/// The temporary names of a directory: its name, digits of the machine, and digits of its own.
struct Names {
    name: String,
    machine: Option<String>,
}

impl Names {
    fn draw(&self) -> String {
        let unique = unique_name();
        // With other digits of a machine that cannot be told, nobody takes it for an abandoned one.
        let machine = self.machine.as_deref().unwrap_or(&unique[DIGITS..]);
        format!("{}{machine}{}.part", self.name, &unique[..DIGITS])
    }

    /// Removes directories of this name that killed processes of this machine have left behind: their locks are free.
    fn remove_abandoned(&self, parent: &Path) {
        let Some(machine) = &self.machine else { return };
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        for entry in entries {
            let found = entry.file_name();
            let rest = found.to_str().and_then(|found| found.strip_prefix(&self.name));
            let is_name = rest.is_some_and(|rest| is_temporary(&format!(".{rest}")));
            let is_ours = is_name && rest.is_some_and(|rest| rest.starts_with(machine.as_str()));
            // A link or a pipe is nobody's directory.
            if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            // Hold the lock during removal: a process that has just created this directory then creates another.
            if let Lock::Held(_lock) = try_lock(&entry.path()) {
                // What cannot be removed takes space, and does no harm.
                let _ = std::fs::remove_dir_all(entry.path());
            }
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
        let names_of = |name: &str| Names { name: format!(".{name}."), machine: machine() };
        let others = Names { machine: Some("01234567".to_owned()), ..names_of("keys") };
        let ours = names_of("keys").draw();
        // Of another machine, another directory, one whose name is longer, and none.
        let kept = [
            others.draw(),
            names_of("other").draw(),
            names_of("keys.a").draw(),
            ".keys.x.part".into(),
        ];
        for name in kept.iter().chain([&ours]) {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("a"), "").unwrap();
        }
        let link = names_of("keys").draw();
        std::os::unix::fs::symlink(folder.path().join(&kept[0]), folder.path().join(&link))
            .unwrap();
        let held = NewDirectory::beside(&path).unwrap();
        assert!(!folder.path().join(&ours).exists());
        // One that is being written is not removed.
        let second = NewDirectory::beside(&path).unwrap();
        assert!(held.path().exists());
        second.publish().unwrap();
        held.publish().unwrap();
        let mut expected = [&kept[..], &["keys".to_owned(), link]].concat();
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        assert_eq!(names(&folder.path().join(&kept[0])), ["a"]);
    }

    /// Directories of one name, begun at the same time: none is taken for an abandoned one.
    #[test]
    fn none_that_is_in_use_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("keys");
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(move || {
                    for _ in 0..500 {
                        let new = NewDirectory::beside(path).unwrap();
                        std::fs::write(new.path().join("a"), "a").unwrap();
                        std::thread::yield_now();
                        assert_eq!(names(new.path()), ["a"]);
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), [""; 0]);
    }

    /// A removal by another thread takes the whole directory, or nothing of it.
    #[test]
    fn directories_are_published_as_a_whole_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut published, mut removed) = (0, 0);
        for round in 0..200 {
            let path = folder.path().join(format!("keys-{round}"));
            let new = NewDirectory::beside(&path).unwrap();
            for file in 0..20 {
                std::fs::write(new.path().join(file.to_string()), "").unwrap();
            }
            let building = new.path().to_owned();
            let remove = move || remove_unfinished(&building).unwrap();
            // One after the other in both orders, and at the same time.
            let (is_published, is_removed) = match round % 3 {
                0 => (new.publish().is_ok(), remove()),
                1 => {
                    let is_removed = remove();
                    (new.publish().is_ok(), is_removed)
                }
                _ => {
                    let remover = std::thread::spawn(remove);
                    (new.publish().is_ok(), remover.join().unwrap())
                }
            };
            assert_ne!(is_published, is_removed);
            match is_published {
                true => assert_eq!(names(&path).len(), 20),
                false => assert!(!path.exists()),
            }
            (published, removed) =
                (published + usize::from(is_published), removed + usize::from(!is_published));
        }
        assert!(published > 0 && removed > 0, "{published} published, {removed} removed");
        let left = names(folder.path());
        assert!(left.iter().all(|name| name.starts_with("keys-")), "{left:?}");
    }

    /// A complete directory that cannot get its name is not lost.
    #[test]
    fn what_cannot_be_published_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let new = NewDirectory::beside(&path).unwrap();
        std::fs::write(new.path().join("a"), "a").unwrap();
        let complete = new.path().to_owned();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("b"), "b").unwrap();
        let why = new.publish().unwrap_err().to_string();
        let complete = complete.with_extension("complete");
        assert!(why.contains(&*complete.to_string_lossy()), "{why}");
        NewDirectory::beside(&path).unwrap_err();
        assert_eq!(names(&complete), ["a"]);
        std::fs::remove_dir_all(&path).unwrap();
        let new = NewDirectory::beside(&path).unwrap();
        std::fs::write(new.path().join("b"), "b").unwrap();
        let kept = new.keep().unwrap();
        NewDirectory::beside(&path).unwrap().publish().unwrap();
        assert_eq!((names(&kept), names(&path)), (vec!["b".to_owned()], Vec::new()));
        // A link that leads nowhere could not be replaced in the end.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).unwrap();
        assert!(NewDirectory::beside(&link).unwrap_err().to_string().contains("leads nowhere"));
    }
}
