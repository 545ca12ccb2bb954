//! The folder of a contribution, from which the same command continues after an interruption. It has no secret of the contribution.

use super::download::TEMPORARY;
use hekaton_ceremony::Chain;
use hekaton_files::{NewFile, SECRET, is_temporary, read_at_most};
use hekaton_terminal::exit::{self, Failure, OrFail};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;
const LIMIT: u64 = 1 << 20;

/// The slot of a contribution, `slot.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlotFile {
    format_version: u32,
    pub(crate) service: String,
    pub(crate) ceremony: String,
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) chains: Vec<String>,
}

/// The folder of a contribution, which only one process at a time may use.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    pub(crate) slot: SlotFile,
    _lock: File,
}

/// A token for a slot.
pub(crate) fn new_token() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).or_fail(exit::FAILED)?;
    Ok(hex::encode(bytes))
}

fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

impl Folder {
    /// Makes a folder, or opens one of the same contribution.
    pub(crate) fn open(
        path: &Path,
        service: &str,
        ceremony: &str,
        name: &str,
        chains: &[Chain],
    ) -> Result<Self, Failure> {
        let wanted = SlotFile {
            format_version: VERSION,
            service: service.to_owned(),
            ceremony: ceremony.to_owned(),
            token: new_token()?,
            name: name.to_owned(),
            chains: chains.iter().map(ToString::to_string).collect(),
        };
        let place = path.join("slot.json");
        let bad = |why: &dyn std::fmt::Display| {
            Failure::new(exit::BAD_FILE, format!("{}: {why}", place.display()))
        };
        std::fs::create_dir_all(path).map_err(|e| bad(&e))?;
        let names = names_in(path).map_err(|e| bad(&e))?;
        let foreign = names
            .iter()
            .any(|name| name != "lock" && !is_temporary(name) && !name.starts_with(TEMPORARY));
        if foreign && !place.exists() {
            let why = format!(
                "{}: is not the folder of a contribution: choose another one with --out",
                path.display()
            );
            return Err(Failure::new(exit::BAD_FILE, why));
        }
        let lock = File::options().create(true).append(true).open(path.join("lock"));
        let lock = lock.map_err(|e| bad(&e))?;
        lock.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => {
                let why = format!("{}: another process works on this contribution", path.display());
                Failure::new(exit::BAD_FILE, why)
            }
            TryLockError::Error(e) => bad(&e),
        })?;
        // Of runs that were killed: with the lock, no other run of this contribution writes here.
        for name in names_in(path).map_err(|e| bad(&e))? {
            let place = path.join(&name);
            if is_temporary(&name) {
                std::fs::remove_file(place).map_err(|e| bad(&e))?;
            } else if name.starts_with(TEMPORARY) {
                std::fs::remove_dir_all(place).map_err(|e| bad(&e))?;
            }
        }
        let bytes = match read_at_most(&place, LIMIT) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let folder = Self { path: path.to_owned(), slot: wanted, _lock: lock };
                folder.write()?;
                return Ok(folder);
            }
            other => other.map_err(|e| bad(&e))?,
        };
        let slot: SlotFile = serde_json::from_slice(&bytes).map_err(|e| bad(&e))?;
        if slot.format_version != VERSION {
            return Err(bad(&format!(
                "written by another version: this program reads format version {VERSION}"
            )));
        }
        // The address may have changed.
        let same = SlotFile {
            token: wanted.token.clone(),
            service: wanted.service.clone(),
            ..slot.clone()
        };
        if same != wanted {
            let why = format!(
                "belongs to a contribution by {} to chains {} of ceremony {}: continue with the same options, or choose another \
                 folder with --out",
                slot.name,
                slot.chains.join(","),
                slot.ceremony,
            );
            return Err(bad(&why));
        }
        let slot = SlotFile { service: wanted.service, ..slot };
        Ok(Self { path: path.to_owned(), slot, _lock: lock })
    }

    /// Starts over with a new slot.
    pub(crate) fn renew(&mut self) -> Result<(), Failure> {
        self.slot.token = new_token()?;
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let place = self.path.join("slot.json");
        let bytes = serde_json::to_vec_pretty(&self.slot).expect("a slot has texts and numbers");
        // With the token, others could upload a different contribution.
        let written = NewFile::with_mode(&place, SECRET).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.replace(&place)
        });
        written.map_err(|e| format!("{}: {e}", place.display())).or_fail(exit::BAD_FILE)
    }

    /// The directory of what was downloaded.
    pub(crate) fn transcript(&self) -> PathBuf {
        self.path.join("transcript")
    }

    /// The file of the contribution.
    pub(crate) fn contribution(&self) -> PathBuf {
        self.path.join("contribution")
    }

    /// Removes everything but receipt and slot once the contribution is in the transcript.
    pub(crate) fn tidy(&self) {
        // A file that cannot be removed only takes space.
        let _ = std::fs::remove_file(self.contribution());
        let _ = std::fs::remove_dir_all(self.transcript());
    }
}
