//! A directory of keys that becomes visible when it is complete, or not at all.

use std::io;
use std::path::{Path, PathBuf};

/// The manifest of a family.
pub(crate) const FAMILY_MANIFEST: &str = "family.json";

/// Reports whether a directory holds a family.
pub(crate) fn is_family(path: &Path) -> bool {
    path.join(FAMILY_MANIFEST).is_file()
}

/// A directory under construction. It has a temporary name next to its final one, on the same file system,
/// so that it can be renamed.
#[derive(Debug)]
pub(crate) struct NewDirectory {
    path: PathBuf,
    building: tempfile::TempDir,
}

/// The reason that a directory cannot be created.
pub(crate) enum Refused {
    /// An error of the operating system.
    Io(PathBuf, io::Error),
    /// The place is taken.
    Occupied(String),
}

impl NewDirectory {
    /// Begins a directory. It must be empty or not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, Refused> {
        fn io(path: &Path) -> impl FnOnce(io::Error) -> Refused + '_ {
            |e| Refused::Io(path.to_owned(), e)
        }
        // A link or "." is resolved, because the directory itself is replaced in the end.
        let resolved =
            if path.exists() { path.canonicalize().map_err(io(path))? } else { path.to_owned() };
        let path = resolved.as_path();
        if path.exists() {
            let mut entries = std::fs::read_dir(path).map_err(io(path))?;
            if let Some(entry) = entries.next() {
                let name = entry.map_err(io(path))?.file_name();
                let has_keys = path.join("manifest.json").exists() || is_family(path);
                return Err(Refused::Occupied(match has_keys {
                    true => "already holds keys".to_owned(),
                    false => format!("is not empty (it contains '{}')", name.to_string_lossy()),
                }));
            }
        }
        let parent = hekaton_files::folder_of(path);
        // In the parent, because a rename cannot cross file systems.
        std::fs::create_dir_all(parent).map_err(io(parent))?;
        let building = tempfile::Builder::new()
            .prefix(".hekaton-setup-")
            .tempdir_in(parent)
            .map_err(io(parent))?;
        Ok(Self { path: path.to_owned(), building })
    }

    /// The path at which to write.
    pub(crate) fn building(&self) -> &Path {
        self.building.path()
    }

    /// Gives the directory its final name.
    pub(crate) fn publish(self) -> Result<(), (PathBuf, io::Error)> {
        let Self { path, building } = self;
        let failed = |e| (path.clone(), e);
        // Renaming the complete directory is the only step that makes it visible. An empty directory
        // may be in the way; `remove_dir` removes nothing else.
        if path.exists() {
            std::fs::remove_dir(&path).map_err(failed)?;
        }
        std::fs::rename(building.path(), &path).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary directories have mode 0700, but keys are public and provers of other users map them.
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                .map_err(failed)?;
        }
        // It has the final name now, so there is nothing to remove on drop.
        let _ = building.keep();
        hekaton_files::sync_folder_of(&path).map_err(failed)
    }
}
