//! Content-addressed files: inputs, outputs and workflows. They never pass through the store.

use crate::id::Digest;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The number of bytes that are written to find out whether a blob could be stored.
const PROBE: usize = 256 << 10;

/// A folder of blobs, which all processes share.
#[derive(Clone, Debug)]
pub struct Blobs {
    folder: PathBuf,
}

/// Why a blob cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is no blob with the digest.
    #[error("blob {0} does not exist")]
    Missing(Digest),
    /// Its content does not match its digest.
    #[error("blob {wanted} is damaged: its file has digest {found}; send it again")]
    Damaged {
        /// The digest that it is named by.
        wanted: Digest,
        /// The digest of the file's content.
        found: Digest,
    },
    /// It is larger than allowed.
    #[error("blob size limit exceeded: the limit is {limit} bytes")]
    TooLarge {
        /// The number of bytes that are allowed.
        limit: u64,
    },
    /// The disk is full.
    #[error("no space left for blobs")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file system fails. The message is for the log: it names a file of the server.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
}

impl BlobError {
    fn io(path: &Path, error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::Full { path: path.to_owned() }
            }
            _ => Self::Io { path: path.to_owned(), error },
        }
    }
}

/// A blob that is being written. If it is dropped before it is finished, its file is removed.
#[derive(Debug)]
pub struct Incoming {
    blobs: Blobs,
    path: PathBuf,
    file: File,
    hasher: blake3::Hasher,
    length: u64,
    limit: u64,
}

impl Blobs {
    /// Uses a folder, and makes it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path) -> Result<Self, BlobError> {
        for part in ["", "incoming"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(|error| BlobError::io(&path, error))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Returns the path of a blob. The file must not be changed.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        self.folder.join(&name[..2]).join(name)
    }

    /// Reports whether there is such a blob.
    pub fn has(&self, digest: &Digest) -> bool {
        self.path(digest).is_file()
    }

    /// Reads a whole blob, and checks it against its digest.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn verify(&self, digest: &Digest) -> Result<(), BlobError> {
        let path = self.path(digest);
        let (_, file) = self.open_blob(digest)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file).map_err(|error| BlobError::io(&path, error))?;
        let found = Digest::from(hasher.finalize());
        match found == *digest {
            true => Ok(()),
            false => Err(BlobError::Damaged { wanted: *digest, found }),
        }
    }

    /// Opens a blob for reading, and returns its length. The caller must check the bytes that it reads against the digest.
    ///
    /// # Errors
    /// If there is none.
    pub fn open_blob(&self, digest: &Digest) -> Result<(u64, File), BlobError> {
        let path = self.path(digest);
        let file = File::open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => BlobError::Missing(*digest),
            _ => BlobError::io(&path, error),
        })?;
        let length = file.metadata().map_err(|error| BlobError::io(&path, error))?.len();
        Ok((length, file))
    }

    /// Returns the length of a blob in bytes, if there is one.
    pub fn length(&self, digest: &Digest) -> Option<u64> {
        std::fs::metadata(self.path(digest)).ok().map(|found| found.len())
    }

    /// Starts writing a blob of at most `limit` bytes.
    ///
    /// # Errors
    /// If no file can be made.
    pub fn begin(&self, limit: u64) -> Result<Incoming, BlobError> {
        // In the folder of blobs, since a rename works only within a file system.
        let path = self.folder.join("incoming").join(hekaton_files::unique_name());
        // Never an existing file: another process that still writes to it would put its bytes into
        // this blob.
        let made = File::options().write(true).create_new(true).open(&path);
        let file = made.map_err(|error| BlobError::io(&path, error))?;
        let hasher = blake3::Hasher::new();
        Ok(Incoming { blobs: self.clone(), path, file, hasher, length: 0, limit })
    }

    /// Stores bytes.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, BlobError> {
        let mut incoming = self.begin(bytes.len() as u64)?;
        incoming.write(bytes)?;
        incoming.finish()
    }

    /// Copies a file. The copy is not a blob yet.
    ///
    /// # Errors
    /// If it cannot be read, is larger than `limit` bytes or cannot be written.
    pub fn copy(&self, from: &Path, limit: u64) -> Result<Incoming, BlobError> {
        let mut source = File::open(from).map_err(|error| BlobError::io(from, error))?;
        let mut incoming = self.begin(limit)?;
        // The buffer is no larger than the file, as most files are small.
        let length = source.metadata().map_or(1 << 20, |found| found.len().min(1 << 20));
        let mut buffer = vec![0; usize::try_from(length).unwrap_or(1 << 20) + 1];
        loop {
            let count = source.read(&mut buffer).map_err(|error| BlobError::io(from, error))?;
            if count == 0 {
                return Ok(incoming);
            }
            incoming.write(&buffer[..count])?;
        }
    }

    /// Reads a whole blob, and checks it.
    ///
    /// # Errors
    /// If there is none, it is larger than `limit` bytes, or does not match its digest.
    pub fn get(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, BlobError> {
        let path = self.path(digest);
        let (_, file) = self.open_blob(digest)?;
        let mut bytes = Vec::new();
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| BlobError::io(&path, error))?;
        // One byte more than the limit was requested, to detect a blob that exceeds it.
        if bytes.len() as u64 > limit {
            return Err(BlobError::TooLarge { limit });
        }
        let found = Digest::of(&bytes);
        match found == *digest {
            true => Ok(bytes),
            false => Err(BlobError::Damaged { wanted: *digest, found }),
        }
    }

    /// Checks that a blob of 256 KiB could be stored now.
    ///
    /// # Errors
    /// If it could not be stored, with the reason.
    pub fn probe(&self) -> Result<(), BlobError> {
        let mut incoming = self.begin(PROBE as u64)?;
        // Bytes that cannot be compressed.
        let mut bytes = vec![0; PROBE];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        incoming.write(&bytes)?;
        // Some file systems report only now that the disk is full.
        incoming.file.sync_data().map_err(|error| BlobError::io(&incoming.path, error))
    }

    /// The digests of all blobs.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(&self) -> Result<Vec<Digest>, BlobError> {
        let list = |path: &Path| {
            let files = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            files.map_err(|error| BlobError::io(path, error))
        };
        let mut found = Vec::new();
        for folder in list(&self.folder)? {
            if folder.file_name().len() != 2 {
                continue;
            }
            let names = list(&folder.path())?.into_iter().map(|file| file.file_name());
            found.extend(names.filter_map(|name| name.to_str()?.parse::<Digest>().ok()));
        }
        Ok(found)
    }

    /// Removes a blob. The caller must know that nothing needs it.
    ///
    /// # Errors
    /// If it is there and cannot be removed.
    pub fn remove(&self, digest: &Digest) -> Result<(), BlobError> {
        let path = self.path(digest);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(BlobError::io(&path, error))
            }
            _ => Ok(()),
        }
    }

    /// Removes files that writers abandoned at least an hour ago.
    pub fn tidy(&self) {
        let Ok(files) = std::fs::read_dir(self.folder.join("incoming")) else { return };
        for file in files.flatten() {
            let age = file
                .metadata()
                .and_then(|data| data.modified())
                .ok()
                .and_then(|time| time.elapsed().ok());
            // The age is that of the last write. Over HTTP, a client has five minutes for a whole
            // blob, so a file that is quiet for an hour has no writer.
            if age.is_some_and(|age| age.as_secs() > 3_600) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

impl Incoming {
    /// Adds bytes.
    ///
    /// # Errors
    /// If they exceed the limit, or the disk is full.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        // Counted before it is written, so that a blob that is too large cannot fill the disk first.
        self.length = self.length.saturating_add(bytes.len() as u64);
        if self.length > self.limit {
            return Err(BlobError::TooLarge { limit: self.limit });
        }
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|error| BlobError::io(&self.path, error))
    }

    /// Returns the path of the file until it is finished.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes that were added.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The digest of what was added.
    pub fn digest(&self) -> Digest {
        Digest::from(self.hasher.finalize())
    }

    /// Turns the file into a blob, which is on disk under its name when this returns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<Digest, BlobError> {
        let digest = self.digest();
        let path = self.blobs.path(&digest);
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| BlobError::io(&path, error)
        };
        let folder = path.parent().unwrap_or(&self.blobs.folder);
        let sync = |folder: &Path| hekaton_files::sync_folder(folder).map_err(io(folder));
        // The new folder is content of the one above, which must be on disk, too.
        if !folder.is_dir() {
            std::fs::create_dir_all(folder).map_err(io(folder))?;
            sync(&self.blobs.folder)?;
        }
        // This also replaces an existing file, which may be damaged or not yet on disk. Unlike other files (`hekaton_files`), a blob is
        // renamed before it is synced, so that file systems with a journal sync only once: no process learns of the blob before both are
        // synced, and after a crash before that, its digest shows what is missing.
        std::fs::rename(&self.path, &path).map_err(io(&path))?;
        self.file.sync_all().map_err(io(&path))?;
        sync(folder)?;
        Ok(digest)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // A finished blob was renamed, so this finds nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_what_their_names_say() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path()).unwrap();
        let digest = blobs.put(b"proof").unwrap();
        assert_eq!(blobs.put(b"proof").unwrap(), digest);
        assert_eq!(blobs.get(&digest, 5).unwrap(), b"proof");
        assert!(matches!(blobs.get(&digest, 4), Err(BlobError::TooLarge { limit: 4 })));
        let other = Digest::of(b"other");
        assert!(matches!(blobs.get(&other, 9), Err(BlobError::Missing(found)) if found == other));

        std::fs::write(blobs.path(&digest), b"pro0f").unwrap();
        assert!(matches!(blobs.get(&digest, 9), Err(BlobError::Damaged { .. })));
        assert!(matches!(blobs.verify(&digest), Err(BlobError::Damaged { .. })));
        blobs.probe().unwrap();
        // Storing it again repairs it.
        blobs.put(b"proof").unwrap();
        blobs.verify(&digest).unwrap();

        let mut incoming = blobs.begin(4).unwrap();
        incoming.write(b"abcd").unwrap();
        assert!(matches!(incoming.write(b"e"), Err(BlobError::TooLarge { limit: 4 })));
        drop(incoming);
        let left = std::fs::read_dir(folder.path().join("incoming")).unwrap().count();
        assert_eq!(left, 0);
    }
}
