//! Data that is kept outside of a directory's folder, by which a folder from a backup is detected.
//!
//! The head in the folder goes back in time with the folder. One on another disk does not: the database must have the record that it
//! names, or nothing is signed. It is written first, so it is never behind the head in the folder; if the process dies between the
//! two, the record that it names is in the database, and that epoch becomes visible as it is.

use super::error::Error;
use super::head::Head;
use super::head_file::{HeadFile, Keep, beside};
use super::time::fail_point;
use hekaton_directory::SignedRecord;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The facts that are known about a directory from elsewhere than its folder.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The file of the head on another disk.
    pub head: Option<PathBuf>,
    /// Makes the file if it is not there. Without it, a missing file is an error: what was signed last is unknown.
    pub start: bool,
    /// A record that the database must have, such as the last one that a client saw.
    pub seen: Option<SignedRecord>,
}

/// Locks a file for this process. It is not closed before that is over.
pub(crate) fn lock(path: &Path, locked: impl FnOnce() -> Error) -> Result<File, Error> {
    let io = |what| move |error| Error::Io { what, path: path.into(), error };
    let mut options = File::options();
    let opened = options.read(true).write(true).create(true).truncate(false).open(path);
    let file = opened.map_err(io("open"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(locked()),
        Err(std::fs::TryLockError::Error(source)) => Err(io("lock")(source)),
    }
}

/// Leaves the file of a head for another one that is as new: whatever still names the first one, such as a backup, is refused from
/// then on, however old it is.
///
/// # Errors
/// If a process uses the first one, it is newer or damaged, or cannot be written.
pub fn leave_head(from: &Path, to: &Path) -> Result<(), Error> {
    if is_same(from, to)? {
        return Ok(());
    }
    let _locked = lock(&beside(from, ".lock"), || Error::HeadLocked(from.into()))?;
    let file = HeadFile::new(from);
    let (last, now) = match file.read() {
        // An earlier attempt was interrupted after this step.
        Err(Error::HeadLeft { .. }) => return Ok(()),
        last => (last?, HeadFile::new(to).read()?),
    };
    // The new file would take back what the first one says was signed.
    if last.commit > now.commit {
        let (path, last, found) = (from.into(), Box::new(now), Box::new(last));
        return Err(Error::HeadMoved { path, last, found });
    }
    file.leave(to)
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_path_buf();
    move |error| Error::Io { what: "find", path, error }
}

/// The path of a file or folder without links.
fn real(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(io(path))
}

/// Reports whether two paths name one file.
fn is_same(one: &Path, other: &Path) -> Result<bool, Error> {
    if real(one)? == real(other)? {
        return Ok(true);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let id = |path: &Path| {
            let data = std::fs::metadata(path).map_err(io(path))?;
            Ok::<_, Error>((data.dev(), data.ino()))
        };
        // A hard link has another path and is still the same file, whose head would be overwritten.
        Ok(id(one)? == id(other)?)
    }
    #[cfg(not(unix))]
    Ok(false)
}

/// The paths of the heads of a directory.
#[derive(Debug)]
pub(crate) struct HeadPaths {
    /// The one in the folder.
    pub(crate) inner: PathBuf,
    /// The one on another disk, if there is one.
    pub(crate) outer: Option<PathBuf>,
    /// `true` if that one may be missing.
    pub(crate) start: bool,
}

/// The heads of a directory.
#[derive(Debug)]
pub(crate) struct Heads {
    inner: HeadFile,
    outer: Option<Outer>,
}

/// The head on another disk.
#[derive(Debug)]
struct Outer {
    file: HeadFile,
    path: PathBuf,
    /// The head that this process has read or written last; `None` if the file is to be made.
    last: Option<Head>,
}

impl Heads {
    /// Makes sure that the heads are on the disk as they were read.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        if let Some(outer) = self.outer.as_ref().filter(|outer| outer.last.is_some()) {
            outer.file.sync()?;
        }
        self.inner.sync()
    }

    /// Reads the heads. Returns the one of the directory, too.
    pub(crate) fn read(paths: &HeadPaths) -> Result<(Self, Head), Error> {
        let inner = HeadFile::new(&paths.inner);
        let found = inner.read()?;
        let Some(path) = &paths.outer else { return Ok((Self { inner, outer: None }, found)) };
        let place = |path: &Path| {
            let folder = real(hekaton_files::folder_of(path))?;
            Ok::<_, Error>(folder.join(path.file_name().unwrap_or_default()))
        };
        // A file always agrees with itself, so it would detect nothing.
        if place(path)? == place(&paths.inner)? {
            return Err(Error::HeadInside(path.clone()));
        }
        // A new head would take the place of the link, and leave the file that it names as it is.
        if std::fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink()) {
            return Err(Error::HeadLink(path.clone()));
        }
        let file = HeadFile::new(path);
        let last = match path.try_exists() {
            Ok(false) if paths.start => None,
            Ok(false) => return Err(Error::NoOutsideHead(path.clone())),
            _ => Some(file.read()?),
        };
        let head = last.unwrap_or(found);
        // One as new as the other that names another record is found out by the database.
        if head.commit < found.commit {
            return Err(Error::OldHead {
                path: path.clone(),
                head: Box::new(head),
                found: Box::new(found),
            });
        }
        let outer = Outer { file, path: path.clone(), last };
        Ok((Self { inner, outer: Some(outer) }, head))
    }
}

impl Keep for Heads {
    fn advance(&mut self, head: Head) -> Result<(), Error> {
        if let Some(outer) = &mut self.outer {
            if let Some(last) = outer.last {
                let found = outer.file.read()?;
                // A copy of the folder is served somewhere else, where the lock is not seen.
                if found != last {
                    return Err(Error::HeadMoved {
                        path: outer.path.clone(),
                        last: Box::new(last),
                        found: Box::new(found),
                    });
                }
            }
            // First, so that it is never behind the head in the folder; the next start would refuse
            // that.
            outer.file.advance(head)?;
            outer.last = Some(head);
            fail_point("between-heads");
        }
        self.inner.advance(head)
    }
}
