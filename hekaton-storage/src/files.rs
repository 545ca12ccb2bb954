//! The files `run.json` and `seed` of a run directory.

use crate::error::{RunError, io};
use crate::identity::PublicIdentity;
use hekaton_core::Randomness;
use hekaton_files::{NewFile, SECRET, open_regular};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use zeroize::Zeroizing;

pub(crate) const VERSION: u32 = 3;
const SEED_MAGIC: &[u8; 8] = b"HEKATNSD";
/// The maximum number of bytes read from `run.json`, the seed or the proof.
pub(crate) const LIMIT: u64 = 1 << 20;

/// The contents of `run.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunFile {
    pub(crate) format_version: u32,
    #[serde(flatten)]
    pub(crate) identity: PublicIdentity,
    /// The digest of the input, keyed with the seed.
    pub(crate) input_digest: String,
    pub(crate) seed_digest: String,
    pub(crate) insecure_seed: bool,
    pub(crate) written_by: String,
}

/// Reads a file of at most [`LIMIT`] bytes; `None` if it does not exist.
pub(crate) fn read_at_most(path: &Path) -> Result<Option<Vec<u8>>, RunError> {
    use std::io::Read;
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound) => return Ok(None),
        Err(e) => return Err(io(path)(e)),
    };
    let mut bytes = Vec::new();
    // One byte more than allowed, to tell a file of the maximum length from a longer one.
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(io(path))?;
    if bytes.len() as u64 > LIMIT {
        return Err(RunError::Damaged {
            path: path.to_owned(),
            why: format!("more than {LIMIT} bytes"),
        });
    }
    Ok(Some(bytes))
}

/// Reads `run.json`; `None` if it does not exist.
pub(crate) fn read_run(path: &Path) -> Result<Option<RunFile>, RunError> {
    let Some(bytes) = read_at_most(path)? else { return Ok(None) };
    parse_run(&bytes, path).map(Some)
}

/// Parses `run.json`; the path is for errors. The version is checked first, since other versions
/// may have other fields.
pub(crate) fn parse_run(bytes: &[u8], path: &Path) -> Result<RunFile, RunError> {
    #[derive(Deserialize)]
    struct OnlyVersion {
        format_version: u32,
    }
    let damaged =
        |e: serde_json::Error| RunError::Damaged { path: path.to_owned(), why: e.to_string() };
    let OnlyVersion { format_version: found } = serde_json::from_slice(bytes).map_err(damaged)?;
    if found != VERSION {
        return Err(RunError::Version { path: path.to_owned(), found, expected: VERSION });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

/// The digest by which `run.json` recognizes its seed.
pub(crate) fn seed_digest(seed: &[u8; 32]) -> String {
    hex::encode(blake3::derive_key("hekaton-v1 run seed", seed))
}

/// Writes the seed so that readers never see half a file.
pub(crate) fn write_seed(path: &Path, seed: &[u8; 32]) -> std::io::Result<()> {
    let mut file = NewFile::with_mode(path, SECRET)?;
    file.write_all(SEED_MAGIC)?;
    file.write_all(&VERSION.to_le_bytes())?;
    file.write_all(seed)?;
    file.replace(path)
}

/// Reads the seed; `None` if the run is finished. `notices` receives warnings.
pub(crate) fn read_seed(
    path: &Path,
    run: &RunFile,
    notices: &mut Vec<String>,
) -> Result<Option<Randomness>, RunError> {
    let file = path.join("seed");
    let damaged = |why: &str| RunError::Damaged { path: file.clone(), why: why.to_owned() };
    let Some(bytes) = read_at_most(&file)?.map(Zeroizing::new) else {
        return if path.join("proof").exists() {
            Ok(None)
        } else {
            Err(damaged("the seed is missing"))
        };
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).map_err(io(&file))?.permissions().mode();
        if mode & 0o077 != 0 {
            notices.push(format!(
                "{} is readable by other users (mode {:o}): with its contents, they can undo the zero \
                 knowledge of the proof",
                file.display(),
                mode & 0o777
            ));
        }
    }
    let head = [&SEED_MAGIC[..], &VERSION.to_le_bytes()].concat();
    let seed: Option<[u8; 32]> =
        bytes.strip_prefix(&head[..]).and_then(|seed| seed.try_into().ok());
    let seed = Zeroizing::new(seed.ok_or_else(|| damaged("not a seed file of this version"))?);
    // A different seed would break the logs and, after half a run, zero knowledge.
    if seed_digest(&seed) != run.seed_digest {
        return Err(damaged("not the seed that the run was started with"));
    }
    Ok(Some(Randomness::from_secret_seed(&seed, run.insecure_seed)))
}
