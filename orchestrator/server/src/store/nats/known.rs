//! A note in a folder that names the store of its records: a server that has lost them must not pass for a new one.

use crate::store::OpenError;
use std::path::{Path, PathBuf};

/// The facts that are known about a store before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing: a missing store is created.
    Nothing,
    /// It was opened before, with this incarnation. If the server does not have it, its records are lost.
    Incarnation(u64),
}

/// The file in a folder that names the store of a namespace.
pub(super) fn name(namespace: &str) -> String {
    format!("nats-{namespace}")
}

fn refused(path: &Path, why: impl std::fmt::Display) -> OpenError {
    OpenError::Refused { why: format!("{}: {why}", path.display()) }
}

impl Known {
    fn path(folder: &Path, namespace: &str) -> PathBuf {
        folder.join(name(namespace))
    }

    /// Reads what the folder says.
    ///
    /// # Errors
    /// If the file cannot be read, or does not contain an incarnation.
    pub(crate) fn read(folder: &Path, namespace: &str) -> Result<Self, OpenError> {
        let path = Self::path(folder, namespace);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(refused(&path, error)),
        };
        let number = u64::from_str_radix(text.trim(), 16);
        number.map(Self::Incarnation).map_err(|_| {
            refused(
                &path,
                "expected the 16 hexadecimal digits that the name of the stream ends with",
            )
        })
    }

    /// Notes in the folder which store it is.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(crate) fn write(folder: &Path, namespace: &str, store: u64) -> Result<(), OpenError> {
        let path = Self::path(folder, namespace);
        let written = hekaton_files::write(&path, format!("{store:016x}\n").as_bytes());
        written.map_err(|error| refused(&path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Known::read(folder.path(), "n").unwrap(), Known::Nothing);
        Known::write(folder.path(), "n", 0xabc).unwrap();
        assert_eq!(Known::read(folder.path(), "n").unwrap(), Known::Incarnation(0xabc));
        assert_eq!(Known::read(folder.path(), "other").unwrap(), Known::Nothing);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
        std::fs::write(folder.path().join("nats-n"), "").unwrap();
        let error = Known::read(folder.path(), "n").unwrap_err().to_string();
        assert!(error.contains("16 hexadecimal digits"), "{error}");
    }
}
