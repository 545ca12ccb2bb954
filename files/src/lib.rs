//! Files that are on disk as a whole or not at all, files from outside, and the identity of processes.
//!
//! A file that is written in place is empty or cut off after a crash. [`write()`] and [`write_new`] therefore write a temporary file in
//! the same folder, sync it, give it its name and sync the folder:
//!
//! - *Atomic*: readers see the old content or the new one, whatever happens. A rename is atomic only within a file system, which is why
//!   the temporary file is in the same folder and not in `/tmp`.
//! - *Durable*: when a function returns, the file is there after a loss of power. A sync of the file alone does not suffice, since its
//!   name is content of the folder. Without the sync of the file before the rename, the name could refer to a file without its
//!   content (ext4 with `data=writeback`, XFS).
//! - *Concurrent*: each writer has a temporary file of its own, so two writers of one file do not mix their content; the last one wins.
//!
//! A process that is killed leaves a temporary file behind, which [`remove_leftovers`] removes.
//!
//! A [`NewDirectory`] does the same for a directory with all that is in it.
//!
//! Files from outside are regular ones, and are read up to a limit ([`read_at_most`]).

mod directory;
pub mod process;

pub use directory::{NewDirectory, remove_unfinished};

use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The ending of the names of temporary files.
const PART: &str = ".part";

/// Opens a regular file, or a link to one. A device has no end, and opening a pipe waits for a
/// writer: neither is opened.
///
/// # Errors
/// If it is something else, or cannot be opened.
pub fn open_regular(path: &Path) -> Result<File> {
    let regular = |metadata: Metadata| match metadata.is_file() {
        true => Ok(()),
        false if metadata.is_dir() => Err(Error::other("is a directory, expected a file")),
        false => Err(Error::other("is not a regular file")),
    };
    regular(std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    // Again, since another file may have the name by now.
    regular(file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// If it is longer, is not a regular file, or cannot be read.
pub fn read_at_most(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => {
            Err(Error::other(format!("has more than {limit} bytes, the limit for such a file")))
        }
        false => Ok(bytes),
    }
}

/// The mode of files that all users may read.
pub const READABLE: u32 = 0o644;

/// The mode of files that only their owner may read.
pub const SECRET: u32 = 0o600;

/// Replaces the content of a file, or makes it. It is on disk when this returns.
///
/// # Errors
/// If it cannot be written. The old file is still there, unless syncing the folder failed: then either may be.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = NewFile::beside(path)?;
    file.write_all(content)?;
    file.replace(path)
}

/// Like [`write()`], for a file that all users may read, whatever the process's umask.
///
/// # Errors
/// As for [`write()`].
pub fn write_readable(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = NewFile::with_mode(path, READABLE)?;
    file.write_all(content)?;
    file.replace(path)
}

/// Makes a file that does not exist yet. It is on disk when this returns.
///
/// # Errors
/// If there is one ([`AlreadyExists`](std::io::ErrorKind::AlreadyExists)), which stays as it is, or the new one cannot be written.
pub fn write_new(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = NewFile::beside(path)?;
    file.write_all(content)?;
    file.create(path)
}

/// A file under a temporary name. Dropped before it has its own name, it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    temporary: PathBuf,
}

impl NewFile {
    /// Begins a file that is to get a name in the same folder as `path`.
    ///
    /// # Errors
    /// If the path has no name, or no file can be made in its folder.
    pub fn beside(path: &Path) -> Result<Self> {
        Self::begin(path, File::options())
    }

    /// Like [`beside`](Self::beside), with a mode that does not depend on the process's umask.
    ///
    /// # Errors
    /// As for [`beside`](Self::beside), and if the mode cannot be set.
    pub fn with_mode(path: &Path, mode: u32) -> Result<Self> {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let mut options = File::options();
        // From the start: who has opened a file reads it also after its mode was changed.
        options.mode(mode);
        let new = Self::begin(path, options)?;
        // What the umask has taken away.
        new.file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        Ok(new)
    }

    fn begin(path: &Path, mut options: OpenOptions) -> Result<Self> {
        let no_name = || Error::other(format!("{}: a path without a name", path.display()));
        let mut name = path.file_name().ok_or_else(no_name)?.to_owned();
        name.push(format!(".{}{PART}", unique_name()));
        let temporary = path.with_file_name(name);
        // Never a file that another writer has begun.
        let file = options.write(true).create_new(true).open(&temporary)?;
        Ok(Self { file, temporary })
    }

    /// The path of the file until it has its own name.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name, in place of one that is there. It is on disk when this returns.
    ///
    /// # Errors
    /// If it cannot be synced or renamed.
    pub fn replace(self, path: &Path) -> Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.temporary, path)?;
        sync_folder_of(path)
    }

    /// Gives the file its name, unless there is a file with this name. It is on disk when this returns.
    ///
    /// # Errors
    /// If there is one ([`AlreadyExists`](std::io::ErrorKind::AlreadyExists)), or it cannot be synced or linked.
    pub fn create(self, path: &Path) -> Result<()> {
        self.file.sync_all()?;
        // A second name fails where there is a file; a rename would replace it.
        std::fs::hard_link(&self.temporary, path)?;
        sync_folder_of(path)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a rename there is none. What cannot be removed is left for `remove_leftovers`.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Syncs a folder: files that were made, renamed or removed in it are so after a loss of power, too, unless its file system
/// syncs no folders.
///
/// # Errors
/// If it cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems that clusters have refuse to sync any folder. That is no reason to lose what was computed.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

/// Syncs the folder that a path is in, like [`sync_folder`].
///
/// # Errors
/// If it cannot be opened or synced.
pub fn sync_folder_of(path: &Path) -> Result<()> {
    sync_folder(folder_of(path))
}

/// Returns the folder that a path is in.
pub fn folder_of(path: &Path) -> &Path {
    // The parent of a bare name is "", which cannot be opened.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Removes temporary files that writers have left behind in a folder for at least an hour. Younger ones may still be written.
///
/// # Errors
/// If the folder cannot be read. Files that cannot be removed stay: they are only in the way.
pub fn remove_leftovers(folder: &Path) -> Result<()> {
    const HOUR: Duration = Duration::from_secs(3_600);
    for found in std::fs::read_dir(folder)? {
        let entry = found?;
        let is_temporary = entry.file_name().to_str().is_some_and(is_temporary);
        // A file that is gone by now, or is from the future, is none of an hour ago.
        let age = entry.metadata().and_then(|found| found.modified()).map(|at| at.elapsed());
        if is_temporary && matches!(age, Ok(Ok(age)) if age >= HOUR) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Reports whether a name is one that a [`NewFile`] has before it gets its own: `NAME.0123456789abcdef.part`.
pub fn is_temporary(name: &str) -> bool {
    let digits = name.strip_suffix(PART).and_then(|name| name.rsplit_once('.'));
    digits.is_some_and(|(_, digits)| {
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Returns 16 hexadecimal digits that no other call returns, in this process or another one on any machine that shares the folder.
pub fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Each `RandomState` has its own keys, random for the process and counted within it, so names of other processes cannot be
    // foreseen; and process numbers would not do, as containers with one folder have the same ones.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}", RandomState::new().hash_one(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn files_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");

        // Until it has its name, a new file changes nothing, and it leaves nothing.
        let mut file = NewFile::beside(&path).unwrap();
        file.write_all(b"three").unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), names(folder.path()).len()), (b"two".into(), 2));
        drop(file);
        assert_eq!(names(folder.path()), ["record.json"]);

        // Nor does one that cannot get its name.
        let taken = folder.path().join("folder");
        std::fs::create_dir(&taken).unwrap();
        write(&taken, b"x").unwrap_err();
        write(&folder.path().join("missing/x"), b"x").unwrap_err();
        write(Path::new("/"), b"x").unwrap_err();
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn new_files_replace_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_new(&path, b"one").unwrap();
        assert_eq!(write_new(&path, b"two").unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(names(folder.path()), ["key"]);
    }

    #[test]
    fn writers_at_the_same_time_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("file");
        std::thread::scope(|scope| {
            for byte in 0..8u8 {
                scope.spawn(move || write(path, &[byte; 10_000]).unwrap());
            }
        });
        let found = std::fs::read(path).unwrap();
        assert!(found.len() == 10_000 && found.iter().all(|byte| *byte == found[0]));
    }

    #[test]
    fn old_leftovers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(4_000);
        for (name, is_old) in [
            ("a.0123456789abcdef.part", true),
            ("b.0123456789abcdef.part", false),
            ("0123456789abcdef.part", true),
            ("c.part", true),
            ("d", true),
        ] {
            let file = File::create(folder.path().join(name)).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        remove_leftovers(folder.path()).unwrap();
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left, ["0123456789abcdef.part", "b.0123456789abcdef.part", "c.part", "d"]);
        remove_leftovers(&folder.path().join("missing")).unwrap_err();
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = (0..1_000).map(|_| unique_name()).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| is_temporary(&format!("x.{name}.part"))));
    }

    #[test]
    fn modes_do_not_depend_on_the_umask() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for mode in [READABLE, SECRET, 0o640] {
            NewFile::with_mode(&path, mode).unwrap().replace(&path).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
        write_readable(&path, b"x").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, READABLE);
    }

    #[test]
    fn reads_are_bounded_and_only_of_regular_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, [7; 10]).unwrap();
        assert_eq!(read_at_most(&file, 10).unwrap(), [7; 10]);
        let why = read_at_most(&file, 9).unwrap_err().to_string();
        assert!(why.contains("more than 9 bytes"), "{why}");
        let why = read_at_most(folder.path(), 9).unwrap_err().to_string();
        assert!(why.contains("directory"), "{why}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_at_most(&link, 10).unwrap(), [7; 10]);
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        let why = read_at_most(&device, 1 << 40).unwrap_err().to_string();
        assert!(why.contains("not a regular file"), "{why}");
    }
}
