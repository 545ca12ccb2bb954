//! The key store: a directory with `manifest.json`, `verifying.key`, `aggregation.key` and one
//! `types/NAME.pk` per type (docs/formats.md).

use hekaton_circuit::is_type_name;
use hekaton_core::keys::{AggregationKey, KeyFileError, Sections};
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{KeySink, ProverKeys, VerifyingKey, VerifyingKeyError};
use hekaton_files::{NewDirectory, read_at_most, sync_folder, write_readable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The version of the manifest.
const FORMAT_VERSION: u32 = 2;
pub(crate) const CURVE: &str = "BLS12-381";
/// The maximum number of bytes of a manifest, enough for half a million types. A larger file is refused
/// before it fills memory.
pub(crate) const MANIFEST_LIMIT: u64 = 1 << 28;
/// The maximum number of bytes of a verifying key. Keys with 2^20 types and the public values of a large
/// circuit are smaller.
const KEY_LIMIT: u64 = 512 << 20;

/// The entry of a type in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeEntry {
    /// The name of the type; its file is `types/NAME.pk`.
    pub name: String,
    /// Slots per subcircuit, mask slots included.
    pub slots: usize,
    /// Constraints per subcircuit, those of the memory check included.
    pub constraints: usize,
    /// The number of instances.
    pub instances: usize,
    /// The size of the proving key, in bytes.
    pub bytes: u64,
    /// The digest of the proving key file.
    pub digest: String,
    /// The digest of the R1CS, which can be recomputed from the circuit's source.
    pub r1cs_digest: String,
}

/// Checks that texts of a manifest have no control characters: they are printed, and an escape sequence in a
/// foreign manifest could rewrite the terminal, for example the line about trust.
pub(crate) fn check_texts(texts: [&String; 3], manifest: &Path) -> Result<(), KeyStoreError> {
    match texts.iter().any(|text| text.contains(char::is_control)) {
        true => {
            let why = "a text has control characters".to_owned();
            Err(KeyStoreError::Manifest { path: manifest.to_owned(), why })
        }
        false => Ok(()),
    }
}

/// The parameters in a key, which are JSON; the path of the manifest is for errors.
pub(crate) fn parse_parameters(text: &str, manifest: &Path) -> Result<Value, KeyStoreError> {
    serde_json::from_str(text).map_err(|e| KeyStoreError::Manifest {
        path: manifest.to_owned(),
        why: format!("the circuit's parameters in the key are not JSON ({e})"),
    })
}

/// A digest in a manifest.
pub(crate) fn parse_digest(text: &str, manifest: &Path) -> Result<[u8; 32], KeyStoreError> {
    let bytes = hex::decode(text).ok().and_then(|b| b.try_into().ok());
    bytes.ok_or_else(|| KeyStoreError::Manifest {
        path: manifest.to_owned(),
        why: format!("'{}' is not a digest of 64 hexadecimal digits", text.escape_default()),
    })
}

impl TypeEntry {
    /// The entry of a key that was written to a file with this digest.
    pub(crate) fn new(key: &ProvingKey, instances: usize, digest: [u8; 32]) -> Self {
        Self {
            name: key.name().to_owned(),
            slots: key.slots(),
            constraints: key.constraints(),
            instances,
            bytes: key.bytes(),
            digest: hex::encode(digest),
            // `finish` sets it: the verifying key has the digests.
            r1cs_digest: String::new(),
        }
    }

    /// The file of the type's proving key in a directory of keys.
    pub(crate) fn file(&self, keys: &Path) -> PathBuf {
        keys.join("types").join(format!("{}.pk", self.name))
    }

    /// Opens the type's proving key.
    pub(crate) fn open(&self, keys: &Path, manifest: &Path) -> Result<ProvingKey, KeyStoreError> {
        let digest = parse_digest(&self.digest, manifest)?;
        let sections = Sections::open(&self.file(keys), ProvingKey::KIND, digest)?;
        let key = ProvingKey::new(&self.name, sections)?;
        if (self.slots, self.constraints, self.bytes)
            != (key.slots(), key.constraints(), key.bytes())
        {
            let why = format!("the sizes of type '{}' do not match its key", self.name);
            return Err(KeyStoreError::Manifest { path: manifest.to_owned(), why });
        }
        Ok(key)
    }

    /// Checks that the name can be that of a file, and leads to no other directory.
    pub(crate) fn check_name(&self, manifest: &Path) -> Result<(), KeyStoreError> {
        match is_type_name(&self.name) {
            true => Ok(()),
            false => {
                let why = format!("'{}' cannot name a type", self.name.escape_default());
                Err(KeyStoreError::Manifest { path: manifest.to_owned(), why })
            }
        }
    }
}

/// The contents of `manifest.json`: the purpose of the keys in a directory, and their digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the key store's format.
    pub format_version: u32,
    /// The name of the curve.
    pub curve: String,
    /// The name of the circuit.
    pub circuit: String,
    /// The parameters of the circuit.
    pub parameters: Value,
    /// The number of subcircuits.
    pub instances: usize,
    /// `true` if proofs are zero-knowledge.
    pub zero_knowledge: bool,
    /// The digest of the wiring.
    pub layout_digest: String,
    /// The digest of `verifying.key`.
    pub verifying_key_digest: String,
    /// The digest of `aggregation.key`.
    pub aggregation_key_digest: String,
    /// The subcircuit types, in the order of the layout.
    pub types: Vec<TypeEntry>,
    /// A statement of who must be trusted for the keys to be sound.
    pub trust: String,
    /// The program that wrote the directory.
    pub written_by: String,
}

impl Manifest {
    /// The total number of constraints in all subcircuits.
    pub fn total_constraints(&self) -> u64 {
        let each =
            self.types.iter().map(|t| (t.constraints as u64).saturating_mul(t.instances as u64));
        each.fold(0, u64::saturating_add)
    }
}

/// The reason that a key store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyStoreError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The path is not a key store.
    #[error("{path} is not a key store ({why})")]
    NotAKeyStore {
        /// The given path.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The path is a key family, where the keys of one layout are needed.
    #[error(
        "{path} holds the keys of a family of circuits, but the keys of one circuit are needed: derive \
         them first"
    )]
    Family {
        /// The given path.
        path: PathBuf,
    },
    /// The directory for new keys is not empty.
    #[error("{path} {what}: use a new or empty directory")]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// The content that was found.
        what: String,
    },
    /// The manifest is invalid.
    #[error("{path} is damaged: {why}; copy the key store again or run setup again")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The damage that was found.
        why: String,
    },
    /// The manifest has another format version.
    #[error(
        "{path} has format version {found}, but this program reads version {FORMAT_VERSION}: use \
         the program that wrote it, or run setup again"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u32,
    },
    /// A key file is invalid.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// The verifying key is invalid.
    #[error("{path}: {error}")]
    VerifyingKey {
        /// The file.
        path: PathBuf,
        /// The error in the key.
        error: VerifyingKeyError,
    },
    /// Key files do not belong together.
    #[error(
        "{path} belongs to another setup than {manifest}: its digest is {found}, expected \
         {expected}; copy the whole key store again, or run setup again"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The manifest.
        manifest: PathBuf,
        /// The digest in the manifest.
        expected: String,
        /// The digest of the file.
        found: String,
    },
}

/// A key store on disk.
///
/// A setup writes to a temporary directory next to it, which gets the final name only when the
/// setup is complete.
#[derive(Debug)]
pub struct KeyStore {
    path: PathBuf,
    /// The proving keys that a setup has written so far.
    types: Vec<TypeEntry>,
    /// The temporary directory, while a setup writes.
    building: Option<NewDirectory>,
}

pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> KeyStoreError + '_ {
    move |error| KeyStoreError::Io { path: path.to_owned(), error }
}

/// The manifest of a family.
pub(crate) const FAMILY_MANIFEST: &str = "family.json";

/// Reports whether a directory holds a family.
pub(crate) fn is_family(path: &Path) -> bool {
    path.join(FAMILY_MANIFEST).is_file()
}

/// Begins a directory for keys.
pub(crate) fn new_directory(path: &Path) -> Result<NewDirectory, KeyStoreError> {
    let building = NewDirectory::beside(path).map_err(|e| {
        if e.kind() != std::io::ErrorKind::DirectoryNotEmpty {
            return io(path)(e);
        }
        let what = match path.join("manifest.json").exists() || is_family(path) {
            true => "already holds keys".to_owned(),
            false => format!("is not empty (it contains '{e}')"),
        };
        KeyStoreError::Occupied { path: path.to_owned(), what }
    })?;
    let types = building.path().join("types");
    std::fs::create_dir(&types).map_err(io(&types))?;
    Ok(building)
}

/// Links a file of keys, or copies it where the file system does not allow that.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> Result<(), KeyStoreError> {
    // The file itself if `from` is a symbolic link: a link to a link would break with the first one.
    let file = from.canonicalize().map_err(io(from))?;
    // Keys have gigabytes and never change, so one copy on the file system is enough.
    if std::fs::hard_link(&file, to).is_err() {
        std::fs::copy(&file, to).map_err(io(&file))?;
        File::open(to).and_then(|copy| copy.sync_all()).map_err(io(to))?;
    }
    Ok(())
}

impl KeyStore {
    /// Creates a key store for a setup to write. The directory must be empty or not exist.
    ///
    /// # Errors
    /// If the directory is not empty or cannot be created.
    pub fn create(path: &Path) -> Result<Self, KeyStoreError> {
        let building = Some(new_directory(path)?);
        Ok(Self { path: path.to_owned(), types: Vec::new(), building })
    }

    /// The temporary directory that a setup writes to. A program that exits early must remove it.
    pub fn unfinished_path(&self) -> Option<PathBuf> {
        self.building.as_ref().map(|dir| dir.path().to_owned())
    }

    /// Reads the manifest of a key store.
    ///
    /// # Errors
    /// If there is none, or it is damaged or of another version.
    pub fn manifest(path: &Path) -> Result<Manifest, KeyStoreError> {
        let not = |why| KeyStoreError::NotAKeyStore { path: path.to_owned(), why };
        if !path.exists() {
            return Err(not("it does not exist"));
        }
        if !path.is_dir() {
            return Err(not("it is a file"));
        }
        let file = path.join("manifest.json");
        if is_family(path) {
            return Err(KeyStoreError::Family { path: path.to_owned() });
        }
        if !file.exists() {
            return Err(not("it has no manifest.json"));
        }
        Manifest::parse(&read_at_most(&file, MANIFEST_LIMIT).map_err(io(&file))?, &file)
    }

    /// Reads the manifest and the verifying key, and compares them, without reading the large files of the
    /// key store.
    ///
    /// # Errors
    /// If a file is missing or damaged, or the two do not belong together.
    pub fn summary(path: &Path) -> Result<(Manifest, VerifyingKey), KeyStoreError> {
        let manifest = Self::manifest(path)?;
        let manifest_path = path.join("manifest.json");
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
        match manifest.agrees_with(&verifying) {
            true => Ok((manifest, verifying)),
            false => {
                let why = "its contents contradict verifying.key".to_owned();
                Err(KeyStoreError::Manifest { path: manifest_path, why })
            }
        }
    }

    /// Opens all keys of a key store. Checks every digest against the manifest; sections are
    /// memory-mapped.
    ///
    /// # Errors
    /// If a file is missing or damaged, or does not belong to the manifest.
    pub fn open(path: &Path) -> Result<(Manifest, ProverKeys), KeyStoreError> {
        let (manifest, verifying) = Self::summary(path)?;
        let manifest_path = path.join("manifest.json");
        let digest = |text: &str| parse_digest(text, &manifest_path);
        let mut types = Vec::with_capacity(manifest.types.len());
        for entry in &manifest.types {
            types.push(entry.open(path, &manifest_path)?);
        }
        let file = path.join("aggregation.key");
        let sections =
            Sections::open(&file, AggregationKey::KIND, digest(&manifest.aggregation_key_digest)?)?;
        let aggregation = AggregationKey::new(sections, manifest.instances, types.len())?;
        // The last claim of the manifest: the number of instances per type.
        let mut counts = vec![0usize; manifest.types.len()];
        for kind in aggregation.type_of()? {
            // The aggregation key has checked that its types exist.
            counts[*kind as usize] += 1;
        }
        for (count, entry) in counts.into_iter().zip(&manifest.types) {
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
    /// If the file cannot be read or is damaged.
    pub fn read_verifying_key(path: &Path) -> Result<VerifyingKey, KeyStoreError> {
        let bytes = read_at_most(path, KEY_LIMIT).map_err(io(path))?;
        VerifyingKey::from_bytes(&bytes)
            .map_err(|error| KeyStoreError::VerifyingKey { path: path.to_owned(), error })
    }

    /// Adds a proving key that another directory has: as a link if the file system allows it, else as
    /// a copy.
    pub(crate) fn link(&mut self, from: &Path, entry: TypeEntry) -> Result<(), KeyStoreError> {
        link_or_copy(from, &entry.file(self.building()))?;
        self.types.push(entry);
        Ok(())
    }

    /// Writes the aggregation key, the verifying key and the manifest. Then the directory opens under its temporary name, until
    /// it is made visible.
    ///
    /// # Errors
    /// If something cannot be written.
    pub(crate) fn complete(
        &mut self,
        aggregation: &AggregationKey,
        verifying: &VerifyingKey,
    ) -> Result<(), KeyStoreError> {
        // An earlier attempt of the same setup may have left keys here. Those of this one come last.
        let mut types = std::mem::take(&mut self.types);
        types.drain(..types.len().saturating_sub(verifying.types.len()));
        let dir = self.building().to_owned();
        sync_folder(&dir.join("types")).map_err(io(&dir))?;
        let mut manifest = Manifest::new(verifying, types, &dir.join("manifest.json"))?;
        manifest.aggregation_key_digest =
            hex::encode(aggregation.sections().write(&dir.join("aggregation.key"))?);
        write_readable(&dir.join("verifying.key"), &verifying.to_bytes()).map_err(io(&dir))?;
        let text = serde_json::to_string_pretty(&manifest).map_err(|e| {
            KeyStoreError::Manifest { path: dir.join("manifest.json"), why: e.to_string() }
        })?;
        write_readable(&dir.join("manifest.json"), (text + "\n").as_bytes()).map_err(io(&dir))
    }

    /// Makes the directory visible.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn publish(&mut self) -> Result<(), KeyStoreError> {
        match self.building.take() {
            Some(building) => building.publish().map_err(io(&self.path)),
            None => Ok(()),
        }
    }

    /// Keeps a complete directory that is not to be visible yet, under another name than its own. Returns that name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn keep(&mut self) -> Result<PathBuf, KeyStoreError> {
        match self.building.take() {
            Some(building) => building.keep().map_err(io(&self.path)),
            None => Ok(self.path.clone()),
        }
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
        self.types.push(TypeEntry::new(&key, instances, digest));
        Ok(())
    }

    fn finish(
        &mut self,
        aggregation: AggregationKey,
        verifying: &VerifyingKey,
    ) -> Result<(), KeyStoreError> {
        self.complete(&aggregation, verifying)?;
        self.publish()
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
        // Names become file names, so they must not lead to another directory.
        manifest.types.iter().try_for_each(|entry| entry.check_name(path))?;
        check_texts([&manifest.circuit, &manifest.trust, &manifest.written_by], path)?;
        // Errors print them, and a digest has no control characters.
        for digest in [&manifest.verifying_key_digest, &manifest.aggregation_key_digest] {
            parse_digest(digest, path)?;
        }
        Ok(manifest)
    }

    /// Reports whether the manifest repeats the contents of the verifying key. That key is
    /// authoritative; an edited manifest must not misstate the purpose of the keys or who must be
    /// trusted.
    fn agrees_with(&self, verifying: &VerifyingKey) -> bool {
        // The order counts: instances refer to types by their number.
        let types = self.types.iter().map(|entry| (entry.name.clone(), entry.r1cs_digest.clone()));
        let expected = verifying.types.iter().map(|t| (t.name.clone(), hex::encode(t.r1cs)));
        types.eq(expected)
            && self.instances as u64 == verifying.instances
            && self.circuit == verifying.circuit
            && serde_json::from_str(&verifying.parameters)
                .is_ok_and(|p: Value| p == self.parameters)
            && self.zero_knowledge == verifying.zero_knowledge
            && self.curve == CURVE
            && self.layout_digest == hex::encode(verifying.layout)
            && self.trust == verifying.trust.statement()
    }

    /// The manifest of keys that a setup has made; the path is for errors.
    ///
    /// # Errors
    /// If the parameters in the key are not JSON.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the key was just made from a layout, which has at most 2^31 instances"
    )]
    pub(crate) fn new(
        verifying: &VerifyingKey,
        mut types: Vec<TypeEntry>,
        path: &Path,
    ) -> Result<Self, KeyStoreError> {
        for (entry, kind) in types.iter_mut().zip(&verifying.types) {
            entry.r1cs_digest = hex::encode(kind.r1cs);
        }
        Ok(Self {
            format_version: FORMAT_VERSION,
            curve: CURVE.to_owned(),
            circuit: verifying.circuit.clone(),
            parameters: parse_parameters(&verifying.parameters, path)?,
            instances: verifying.instances as usize,
            zero_knowledge: verifying.zero_knowledge,
            layout_digest: hex::encode(verifying.layout),
            verifying_key_digest: hex::encode(verifying.digest()),
            aggregation_key_digest: String::new(),
            types,
            trust: verifying.trust.statement().into_owned(),
            written_by: concat!("hekaton ", env!("CARGO_PKG_VERSION")).to_owned(),
        })
    }
}
