//! Files that appear whole or not at all: each is written under a temporary name, synced to disk
//! and renamed into place. Files from outside are regular ones, and read up to a limit.

use std::fs::File;
use std::io::{Error, Read, Write};
use std::path::Path;

/// Opens a regular file, or a link to one. A device has no end, and opening a pipe waits for a
/// writer: neither is opened.
///
/// # Errors
/// When it is something else, or can't be opened.
pub fn open_regular(path: &Path) -> std::io::Result<File> {
    let regular = |metadata: std::fs::Metadata| match metadata.is_file() {
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
/// When it is longer, is not a regular file, or can't be read.
pub fn read_at_most(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
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

/// Syncs a finished temporary file to disk, sets its mode and renames it into place.
///
/// # Errors
/// When the file can't be synced or renamed, or its mode can't be set.
pub fn persist(file: tempfile::NamedTempFile, path: &Path, mode: u32) -> std::io::Result<()> {
    // Before the rename: after a power failure the name must not refer to a file without its
    // content.
    file.as_file().sync_all()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Writes a file under a temporary name and renames it, so that readers never see half a file.
///
/// # Errors
/// When the file can't be written or renamed.
pub fn write_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // In the same directory, since a rename is atomic only within one file system.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    persist(file, path, 0o644)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&file, &link).unwrap();
            assert_eq!(read_at_most(&link, 10).unwrap(), [7; 10]);
            let device = folder.path().join("device");
            std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
            let why = read_at_most(&device, 1 << 40).unwrap_err().to_string();
            assert!(why.contains("not a regular file"), "{why}");
        }
    }
}
