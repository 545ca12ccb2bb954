//! The key store: `manifest.json`, `verifying.key`, `aggregation.key`, `types/NAME.pk`.

use hekaton_core::files::write_file;
use hekaton_core::keys::{AggregationKey, KeyFileError, Sections};
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{KeySink, ProverKeys, VerifyingKey, VerifyingKeyError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the manifest.
const FORMAT_VERSION: u32 = 1;
const CURVE: &str = "BLS12-381";

/// A type in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeEntry {
    /// Its name; the file is `types/NAME.pk`.
    pub name: String,
    /// Shared wires of a subcircuit, masks included.
    pub slots: usize,
    /// Constraints of a subcircuit, those of the memory check included.
    pub constraints: usize,
    /// Number of instances.
    pub instances: usize,
    /// Bytes of the proving key.
    pub bytes: u64,
    /// Digest of the proving key file.
    pub digest: String,
}

/// `manifest.json`: what the keys in a directory are for, and how to recognise them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the key store's format.
    pub format_version: u32,
    /// The curve.
    pub curve: String,
    /// Name of the circuit.
    pub circuit: String,
    /// Parameters of the circuit.
    pub parameters: serde_json::Value,
    /// Number of subcircuits.
    pub instances: usize,
    /// Whether proofs are zero-knowledge.
    pub zero_knowledge: bool,
    /// Digest of the wiring.
    pub layout_digest: String,
    /// Digest of `verifying.key`.
    pub verifying_key_digest: String,
    /// Digest of `aggregation.key`.
    pub aggregation_key_digest: String,
    /// The subcircuit types in the order of the layout.
    pub types: Vec<TypeEntry>,
    /// Who must be trusted.
    pub trust: String,
    /// The program that wrote the directory.
    pub written_by: String,
}

impl Manifest {
    /// Constraints of all subcircuits together.
    pub fn total_constraints(&self) -> u64 {
        let each =
            self.types.iter().map(|t| (t.constraints as u64).saturating_mul(t.instances as u64));
        each.fold(0, u64::saturating_add)
    }
}

/// Why a key store can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyStoreError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not a key store.
    #[error("{path} is not a key store ({why})")]
    NotAKeyStore {
        /// The path given.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// A directory that is already used.
    #[error("{path} {what}: give a new or empty directory")]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// What it holds.
        what: String,
    },
    /// A bad manifest.
    #[error("{path} is damaged: {why}; copy the key store again or run setup again")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A manifest of another version.
    #[error(
        "{path} has format version {found}, this program reads version {FORMAT_VERSION}: use the program that wrote it, or run setup again"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A bad key file.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// A bad verifying key.
    #[error("{path}: {source}")]
    VerifyingKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: VerifyingKeyError,
    },
    /// Key files that do not belong together.
    #[error(
        "{path} belongs to another setup than {manifest}: its digest is {found}, the manifest says {expected}; copy the key store again as a whole, or run setup again"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The manifest.
        manifest: PathBuf,
        /// Digest in the manifest.
        expected: String,
        /// Digest of the file.
        found: String,
    },
}

/// A key store on disk.
///
/// While a setup runs, everything lies in a temporary directory beside it; only a finished one gets the name.
#[derive(Debug)]
pub struct KeyStore {
    path: PathBuf,
    /// the keys of a setup that were written
    types: Vec<TypeEntry>,
    /// present while a setup writes
    building: Option<tempfile::TempDir>,
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> KeyStoreError + '_ {
    move |source| KeyStoreError::Io { path: path.to_owned(), source }
}

impl KeyStore {
    /// A new directory for a setup to write into. It must not exist, or be empty.
    ///
    /// # Errors
    /// When it holds something already, or can't be made.
    pub fn create(path: &Path) -> Result<Self, KeyStoreError> {
        // A link or "." stands for the directory behind it, which is what gets replaced in the end.
        let resolved =
            if path.exists() { path.canonicalize().map_err(io(path))? } else { path.to_owned() };
        let path = resolved.as_path();
        if path.exists() {
            let mut entries = std::fs::read_dir(path).map_err(io(path))?;
            if let Some(entry) = entries.next() {
                let name = entry.map_err(io(path))?.file_name();
                let what = match path.join("manifest.json").exists() {
                    true => "already holds keys".to_owned(),
                    false => format!("is not empty (it has '{}')", name.to_string_lossy()),
                };
                return Err(KeyStoreError::Occupied { path: path.to_owned(), what });
            }
        }
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(io(parent))?;
        let building = tempfile::Builder::new()
            .prefix(".hekaton-setup-")
            .tempdir_in(parent)
            .map_err(io(parent))?;
        std::fs::create_dir(building.path().join("types")).map_err(io(parent))?;
        Ok(Self { path: path.to_owned(), types: Vec::new(), building: Some(building) })
    }

    /// Where a setup writes before its directory gets its name; to be removed by whoever ends the process early.
    pub fn unfinished_path(&self) -> Option<PathBuf> {
        self.building.as_ref().map(|dir| dir.path().to_owned())
    }

    /// Reads the manifest of a directory.
    ///
    /// # Errors
    /// When there is none, or it is damaged or of another version.
    pub fn manifest(path: &Path) -> Result<Manifest, KeyStoreError> {
        let not = |why| KeyStoreError::NotAKeyStore { path: path.to_owned(), why };
        if !path.exists() {
            return Err(not("it does not exist"));
        }
        if !path.is_dir() {
            return Err(not("it is a file"));
        }
        let file = path.join("manifest.json");
        if !file.exists() {
            return Err(not("it has no manifest.json"));
        }
        Manifest::parse(&std::fs::read(&file).map_err(io(&file))?, &file)
    }

    /// Opens all keys of a directory. Every digest is checked against the manifest; sections are memory-mapped.
    ///
    /// # Errors
    /// Which file is damaged, foreign or missing, where, and what to do.
    pub fn open(path: &Path) -> Result<(Manifest, ProverKeys), KeyStoreError> {
        let manifest = Self::manifest(path)?;
        let manifest_path = path.join("manifest.json");
        let digest = |text: &str| -> Result<[u8; 32], KeyStoreError> {
            let bytes = hex::decode(text).ok().and_then(|b| b.try_into().ok());
            bytes.ok_or_else(|| KeyStoreError::Manifest {
                path: manifest_path.clone(),
                why: format!("'{text}' is no digest of 64 hexadecimal digits"),
            })
        };
        let verifying = Self::read_verifying_key(&path.join("verifying.key"))?;
        let found = hex::encode(verifying.digest());
        if found != manifest.verifying_key_digest {
            return Err(KeyStoreError::Foreign {
                path: path.join("verifying.key"),
                manifest: manifest_path,
                expected: manifest.verifying_key_digest,
                found,
            });
        }
        let parameters =
            serde_json::from_str(&verifying.parameters).unwrap_or(serde_json::Value::Null);
        let same = manifest.types.len() == verifying.types as usize
            && manifest.instances as u64 == verifying.instances
            && manifest.circuit == verifying.circuit
            && manifest.parameters == parameters
            && manifest.zero_knowledge == verifying.zero_knowledge
            && manifest.curve == CURVE
            && manifest.layout_digest == hex::encode(verifying.layout)
            && manifest.trust == verifying.trust.statement();
        if !same {
            let why = "what it says is not what verifying.key says".to_owned();
            return Err(KeyStoreError::Manifest { path: manifest_path, why });
        }
        let mut types = Vec::with_capacity(manifest.types.len());
        for entry in &manifest.types {
            let file = path.join("types").join(format!("{}.pk", entry.name));
            let sections = Sections::open(&file, ProvingKey::KIND, digest(&entry.digest)?)?;
            let key = ProvingKey::new(&entry.name, sections)?;
            if (entry.slots, entry.constraints, entry.bytes)
                != (key.slots(), key.constraints(), key.bytes())
            {
                let why = format!("sizes of type '{}' are not those of its key", entry.name);
                return Err(KeyStoreError::Manifest { path: manifest_path, why });
            }
            types.push(key);
        }
        let file = path.join("aggregation.key");
        let sections =
            Sections::open(&file, AggregationKey::KIND, digest(&manifest.aggregation_key_digest)?)?;
        let aggregation = AggregationKey::new(sections, verifying.instances as usize, types.len())?;
        for (kind, entry) in manifest.types.iter().enumerate() {
            let count = aggregation.type_of()?.iter().filter(|k| **k as usize == kind).count();
            if count != entry.instances {
                let why =
                    format!("type '{}' has {count} instances, not {}", entry.name, entry.instances);
                return Err(KeyStoreError::Manifest { path: manifest_path, why });
            }
        }
        Ok((manifest, ProverKeys { verifying, aggregation, types }))
    }

    /// Reads a verifying key file.
    ///
    /// # Errors
    /// When it can't be read or is damaged.
    pub fn read_verifying_key(path: &Path) -> Result<VerifyingKey, KeyStoreError> {
        let bytes = std::fs::read(path).map_err(io(path))?;
        VerifyingKey::from_bytes(&bytes)
            .map_err(|source| KeyStoreError::VerifyingKey { path: path.to_owned(), source })
    }

    fn building(&self) -> &Path {
        self.building.as_ref().map_or(&self.path, |dir| dir.path())
    }
}

impl KeySink for KeyStore {
    type Error = KeyStoreError;

    fn proving_key(&mut self, key: ProvingKey, instances: usize) -> Result<(), KeyStoreError> {
        let file = self.building().join("types").join(format!("{}.pk", key.name()));
        let digest = key.sections().write(&file)?;
        self.types.push(TypeEntry {
            name: key.name().to_owned(),
            slots: key.slots(),
            constraints: key.constraints(),
            instances,
            bytes: key.bytes(),
            digest: hex::encode(digest),
        });
        Ok(())
    }

    fn finish(
        &mut self,
        aggregation: AggregationKey,
        verifying: &VerifyingKey,
    ) -> Result<(), KeyStoreError> {
        let mut manifest = Manifest::new(verifying, std::mem::take(&mut self.types));
        let dir = self.building().to_owned();
        manifest.aggregation_key_digest =
            hex::encode(aggregation.sections().write(&dir.join("aggregation.key"))?);
        write_file(&dir.join("verifying.key"), &verifying.to_bytes()).map_err(io(&dir))?;
        let text = serde_json::to_string_pretty(&manifest).map_err(|e| {
            KeyStoreError::Manifest { path: dir.join("manifest.json"), why: e.to_string() }
        })?;
        write_file(&dir.join("manifest.json"), (text + "\n").as_bytes()).map_err(io(&dir))?;
        if self.path.exists() {
            std::fs::remove_dir(&self.path).map_err(io(&self.path))?;
        }
        std::fs::rename(&dir, &self.path).map_err(io(&self.path))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&self.path, std::fs::Permissions::from_mode(0o755))
                .map_err(io(&self.path))?;
        }
        if let Some(building) = self.building.take() {
            // it has the final name now: nothing to remove
            let _ = building.keep();
        }
        Ok(())
    }
}

impl Manifest {
    /// Parses `manifest.json`; the path is for errors.
    pub(crate) fn parse(text: &[u8], path: &Path) -> Result<Self, KeyStoreError> {
        let damaged = |e: serde_json::Error| KeyStoreError::Manifest {
            path: path.to_owned(),
            why: e.to_string(),
        };
        #[derive(Deserialize)]
        struct OnlyVersion {
            format_version: u32,
        }
        let OnlyVersion { format_version: found } =
            serde_json::from_slice(text).map_err(damaged)?;
        if found != FORMAT_VERSION {
            return Err(KeyStoreError::Version { path: path.to_owned(), found });
        }
        let manifest: Self = serde_json::from_slice(text).map_err(damaged)?;
        // they become names of files
        match manifest
            .types
            .iter()
            .find(|entry| entry.name.is_empty() || entry.name.contains(['/', '\\', '.']))
        {
            None => Ok(manifest),
            Some(entry) => {
                let why = format!("'{}' can't name a type", entry.name);
                Err(KeyStoreError::Manifest { path: path.to_owned(), why })
            }
        }
    }

    pub(crate) fn new(verifying: &VerifyingKey, types: Vec<TypeEntry>) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            curve: CURVE.to_owned(),
            circuit: verifying.circuit.clone(),
            parameters: serde_json::from_str(&verifying.parameters).unwrap_or_default(),
            instances: verifying.instances as usize,
            zero_knowledge: verifying.zero_knowledge,
            layout_digest: hex::encode(verifying.layout),
            verifying_key_digest: hex::encode(verifying.digest()),
            aggregation_key_digest: String::new(),
            types,
            trust: verifying.trust.statement().to_owned(),
            written_by: concat!("hekaton ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
