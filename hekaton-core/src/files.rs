//! Files that appear whole or not at all: each is written under a temporary name, synced to disk
//! and renamed into place.

use std::io::Write;
use std::path::Path;

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
