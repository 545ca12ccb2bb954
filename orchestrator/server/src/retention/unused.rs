//! Blobs that no record names.
//!
//! A process touches a blob before it writes a record that names it ([`touch`]), which fails if the file is gone. A blob
//! is removed only if its file was not touched for a day ([`UNTOUCHED`]), by the clock of the file system. It is first renamed, so that it
//! can no longer be touched, and then looked at again: what was touched in between gets its name back. If a process dies in the middle, the
//! renamed file gets its name back when a process starts, and before each sweep, since a record may name it by now.

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
    /// Looks at a folder at a time that is taken from its file system. Blobs that an earlier sweep has renamed get their names back.
    pub(super) fn open(blobs: Blobs, folder: &Path) -> Result<Self, BlobError> {
        let removing = folder.join(REMOVING);
        let at = |error| BlobError::Io { path: removing.clone(), error };
        std::fs::create_dir_all(&removing).map_err(at)?;
        let probe = blobs.begin(0)?;
        let now = modified(probe.path()).map_err(at)?;
        let limit = now.checked_sub(UNTOUCHED).unwrap_or(SystemTime::UNIX_EPOCH);
        restore(&blobs, folder)?;
        Ok(Self { blobs, limit, removing })
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
        match self.rename_and_remove(&path, &self.removing.join(digest.to_string())) {
            // Another sweep was faster, or gave the file its name back.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed.map_err(|error| BlobError::Io { path, error }),
        }
    }

    fn rename_and_remove(&self, path: &Path, renamed: &Path) -> Result<bool, Error> {
        // A blob that is missing for a moment may be reported as missing, so only those are renamed that go.
        if !self.is_untouched(path)? {
            return Ok(false);
        }
        std::fs::rename(path, renamed)?;
        match self.is_untouched(renamed)? {
            true => std::fs::remove_file(renamed).map(|()| true),
            false => give_back(renamed, path).map(|()| false),
        }
    }

    fn is_untouched(&self, path: &Path) -> Result<bool, Error> {
        Ok(modified(path)? < self.limit)
    }
}

/// Gives the blobs their names back that a process was about to remove when it died.
///
/// # Errors
/// If the folder cannot be read or changed.
pub(crate) fn restore(blobs: &Blobs, folder: &Path) -> Result<(), BlobError> {
    let removing = folder.join(REMOVING);
    let at = |error| BlobError::Io { path: removing.clone(), error };
    let files = match std::fs::read_dir(&removing) {
        // Nothing was ever removed.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        files => files.map_err(at)?,
    };
    for file in files {
        let file = file.map_err(at)?;
        let Some(digest) = file.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match give_back(&file.path(), &blobs.path(&digest)) {
            // Another process did the same, or has removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            given => given.map_err(at)?,
        }
    }
    Ok(())
}

/// Gives a renamed file its name back, unless the blob was sent again meanwhile.
fn give_back(renamed: &Path, path: &Path) -> Result<(), Error> {
    match path.exists() {
        true => std::fs::remove_file(renamed),
        false => std::fs::rename(renamed, path),
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
        // What was touched before it was renamed is not even renamed: nobody may find it missing.
        let folder_of_renamed = folder.path().join(REMOVING);
        std::fs::remove_dir(&folder_of_renamed).unwrap();
        std::fs::write(&folder_of_renamed, "").unwrap();
        assert!(!sweep.remove(&touched).unwrap());
        std::fs::remove_file(&folder_of_renamed).unwrap();
        std::fs::create_dir(&folder_of_renamed).unwrap();
        // A client sends it again while it is removed: the file is a new one.
        let renamed = folder.path().join(REMOVING).join(again.to_string());
        std::fs::rename(blobs.path(&again), &renamed).unwrap();
        blobs.put(b"again").unwrap();
        // The process that has renamed it died.
        drop(unused());
        assert!(!renamed.exists());
        assert_eq!(blobs.get(&again, 9).unwrap(), b"again");
        let renamed = folder.path().join(REMOVING).join(new.to_string());
        age(&blobs.path(&new), 99);
        std::fs::rename(blobs.path(&new), &renamed).unwrap();
        // A record may name it, however old it is.
        drop(unused());
        assert_eq!(blobs.get(&new, 9).unwrap(), b"new");
    }
}
