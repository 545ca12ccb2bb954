//! Blobs that no record names.
//!
//! A process touches a blob before it writes a record that names it ([`touch`]), which fails if the file is gone. A blob
//! is removed only if its file was not touched for a day ([`UNTOUCHED`]), by the clock of the file system. It is first renamed, so that it
//! can no longer be touched, and then looked at again: what was touched in between gets its name back. If a process dies in the middle, the
//! next sweep finds the renamed file and decides again.

use hekaton_orchestrator_client::{BlobError, Blobs, Digest};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time for which a blob stays that no record names, because a client may be about to submit the job that it was sent for.
const UNTOUCHED: Duration = Duration::from_secs(24 * 3_600);

/// The folder of blobs that are being removed. It is in the folder of blobs, since a rename works only within a file system.
const REMOVING: &str = "removing";

/// Notes that a blob is about to be named.
///
/// # Errors
/// If it does not exist, or its file cannot be changed.
pub(crate) fn touch(blobs: &Blobs, digest: &Digest) -> Result<(), BlobError> {
    let path = blobs.path(digest);
    // The time of the file system, which machines share, and by path: a file that was opened before could be removed by now.
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    match utimensat(CWD, &path, &times, AtFlags::empty()).map_err(Error::from) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(BlobError::Missing(*digest)),
        Err(error) => Err(BlobError::Io { path, error }),
    }
}

/// A folder of blobs from which unused ones are removed.
#[derive(Debug)]
pub(super) struct Unused {
    blobs: Blobs,
    /// Files that were last touched before this may be removed.
    limit: SystemTime,
    removing: PathBuf,
}

impl Unused {
    /// Looks at a folder at a time that is taken from its file system, and decides about what an earlier sweep has left.
    pub(super) fn open(blobs: Blobs, folder: &Path) -> Result<Self, BlobError> {
        let removing = folder.join(REMOVING);
        let at = |error| BlobError::Io { path: removing.clone(), error };
        std::fs::create_dir_all(&removing).map_err(at)?;
        let probe = blobs.begin(0)?;
        let now = modified(probe.path()).map_err(at)?;
        let limit = now.checked_sub(UNTOUCHED).unwrap_or(SystemTime::UNIX_EPOCH);
        let unused = Self { blobs, limit, removing: removing.clone() };
        for file in std::fs::read_dir(&removing).map_err(at)? {
            let name = file.map_err(at)?.file_name();
            if let Some(digest) = name.to_str().and_then(|name| name.parse().ok()) {
                unused.decide(&digest).map_err(at)?;
            }
        }
        Ok(unused)
    }

    /// The blobs that were not touched for a day.
    pub(super) fn untouched(&self) -> Result<Vec<Digest>, BlobError> {
        let all = self.blobs.all()?.into_iter();
        // A file that cannot be looked at was removed or replaced meanwhile.
        Ok(all
            .filter(|digest| self.is_untouched(&self.blobs.path(digest)).unwrap_or(false))
            .collect())
    }

    /// Removes a blob that no record names, unless it was touched meanwhile. Returns whether it was removed.
    pub(super) fn remove(&self, digest: &Digest) -> Result<bool, BlobError> {
        let path = self.blobs.path(digest);
        let removed = match std::fs::rename(&path, self.removing.join(digest.to_string())) {
            Ok(()) => self.decide(digest),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        removed.map_err(|error| BlobError::Io { path, error })
    }

    /// Removes a renamed file, or gives its name back if it was touched before it was renamed. Another sweep may do the same at any time.
    fn decide(&self, digest: &Digest) -> Result<bool, Error> {
        let renamed = self.removing.join(digest.to_string());
        let path = self.blobs.path(digest);
        let decided = match self.is_untouched(&renamed) {
            Ok(true) => std::fs::remove_file(&renamed).map(|()| true),
            // It was sent again meanwhile.
            Ok(false) if path.exists() => std::fs::remove_file(&renamed).map(|()| false),
            Ok(false) => std::fs::rename(&renamed, &path).map(|()| false),
            Err(error) => Err(error),
        };
        match decided {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            decided => decided,
        }
    }

    fn is_untouched(&self, path: &Path) -> Result<bool, Error> {
        Ok(modified(path)? < self.limit)
    }
}

fn modified(path: &Path) -> Result<SystemTime, Error> {
    std::fs::metadata(path)?.modified()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn age(path: &Path, hours: u64) {
        let then = SystemTime::now() - Duration::from_secs(hours * 3_600);
        File::open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn what_was_touched_stays() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path()).unwrap();
        let [old, new, touched, again] =
            [&b"old"[..], b"new", b"touched", b"again"].map(|bytes| blobs.put(bytes).unwrap());
        for digest in [&old, &touched, &again] {
            age(&blobs.path(digest), 25);
        }
        age(&blobs.path(&new), 23);
        let unused = || Unused::open(blobs.clone(), folder.path()).unwrap();
        let sweep = unused();
        let mut found = sweep.untouched().unwrap();
        found.sort();
        let mut wanted = vec![old, touched, again];
        wanted.sort();
        assert_eq!(found, wanted);
        // A submission names it after it was listed.
        touch(&blobs, &touched).unwrap();
        assert!(!sweep.remove(&touched).unwrap());
        assert_eq!(blobs.get(&touched, 9).unwrap(), b"touched");
        assert!(sweep.remove(&old).unwrap());
        assert!(!sweep.remove(&old).unwrap(), "another sweep was faster");
        assert!(matches!(touch(&blobs, &old), Err(BlobError::Missing(_))));
        // A client sends it again while it is removed: the file is a new one.
        let renamed = folder.path().join(REMOVING).join(again.to_string());
        std::fs::rename(blobs.path(&again), &renamed).unwrap();
        blobs.put(b"again").unwrap();
        // The process that has renamed it died. Once it was touched before that, and once it was not.
        assert!(!sweep.remove(&new).unwrap());
        drop(unused());
        assert!(!renamed.exists());
        assert_eq!(blobs.get(&again, 9).unwrap(), b"again");
        let renamed = folder.path().join(REMOVING).join(new.to_string());
        std::fs::rename(blobs.path(&new), &renamed).unwrap();
        drop(unused());
        assert_eq!(blobs.get(&new, 9).unwrap(), b"new");
    }
}
