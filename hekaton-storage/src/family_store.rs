//! The keys of a family on disk: a directory with `family.json`, `family.key` and one
//! `types/NAME.pk` per type (docs/formats.md).

use crate::key_store::{
    CURVE, FAMILY_MANIFEST, KeyStore, KeyStoreError, MANIFEST_LIMIT, Manifest, TypeEntry,
    check_texts, io, is_family, link_or_copy, new_directory, parse_digest, parse_parameters,
};
use hekaton_circuit::PreparedCircuit;
use hekaton_core::keys::{AggregationKey, Sections};
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{DeriveError, FamilyKey, LocalEngine, ProverKeys, VerifyingKey, derive};
use hekaton_files::{NewDirectory, read_at_most, sync_folder, write_readable};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of `family.json`.
const FORMAT_VERSION: u32 = 1;
const MANIFEST: &str = FAMILY_MANIFEST;

/// The contents of `family.json`: the purpose of the keys of a family, and their digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyManifest {
    /// The version of the format.
    pub format_version: u32,
    /// The name of the curve.
    pub curve: String,
    /// The name of the circuit.
    pub circuit: String,
    /// The parameters that all circuits of the family share.
    pub parameters: serde_json::Value,
    /// The maximum number of subcircuits.
    pub max_instances: usize,
    /// `true` if proofs are zero-knowledge.
    pub zero_knowledge: bool,
    /// The digest that all derived verifying keys have.
    pub family_digest: String,
    /// The digest of `family.key`.
    pub family_key_digest: String,
    /// All types; the numbers of instances are 0.
    pub types: Vec<TypeEntry>,
    /// A statement of who must be trusted for the keys to be sound.
    pub trust: String,
    /// The program that wrote the directory.
    pub written_by: String,
}

/// The reason that keys cannot be derived from those on disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// The keys cannot be read or written.
    #[error(transparent)]
    Store(#[from] KeyStoreError),
    /// The circuit does not fit the family.
    #[error(transparent)]
    Derive(#[from] DeriveError),
    /// The family key has changed since it was opened.
    #[error(
        "{path} changed while keys were derived from it: find out who writes to it, and try again"
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// The keys of a family on disk. A setup writes to a temporary directory next to it, as for a
/// [`KeyStore`].
#[derive(Debug)]
pub struct FamilyStore {
    path: PathBuf,
    types: Vec<TypeEntry>,
    building: NewDirectory,
}

impl FamilyStore {
    /// Reports whether a directory holds a family.
    pub fn is_one(path: &Path) -> bool {
        is_family(path)
    }

    /// Creates a directory for a setup to write. It must be empty or not exist.
    ///
    /// # Errors
    /// If the directory is not empty or cannot be created.
    pub fn create(path: &Path) -> Result<Self, KeyStoreError> {
        let building = new_directory(path)?;
        Ok(Self { path: path.to_owned(), types: Vec::new(), building })
    }

    /// The temporary directory that a setup writes to. A program that exits early must remove it.
    pub fn unfinished_path(&self) -> PathBuf {
        self.building.path().to_owned()
    }

    /// Writes the proving key of a type. Types arrive in the order of the family.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn proving_key(&mut self, key: &ProvingKey) -> Result<(), KeyStoreError> {
        let file = self.building.path().join("types").join(format!("{}.pk", key.name()));
        let digest = key.sections().write(&file)?;
        self.types.push(TypeEntry::new(key, 0, digest));
        Ok(())
    }

    /// Adds all proving keys of a family that this one extends: as links where the file system allows that, else as copies.
    ///
    /// # Errors
    /// If a file cannot be linked or copied.
    pub fn link(&mut self, path: &Path, of_family: &FamilyManifest) -> Result<(), KeyStoreError> {
        for entry in &of_family.types {
            link_or_copy(&entry.file(path), &entry.file(self.building.path()))?;
            self.types.push(entry.clone());
        }
        Ok(())
    }

    /// Writes the family key and the manifest, and makes the directory visible.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn finish(mut self, family: &FamilyKey) -> Result<FamilyManifest, KeyStoreError> {
        let manifest = self.complete(family)?;
        self.publish()?;
        Ok(manifest)
    }

    /// Writes the family key and the manifest. Then the directory opens under its temporary name, until it is made visible.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn complete(&mut self, family: &FamilyKey) -> Result<FamilyManifest, KeyStoreError> {
        let (header, directory) = (family.header(), self.building.path().to_owned());
        sync_folder(&directory.join("types")).map_err(io(&directory))?;
        // An earlier attempt of the same setup may have left keys here. Those of this one come last.
        self.types.drain(..self.types.len().saturating_sub(header.types.len()));
        for (entry, kind) in self.types.iter_mut().zip(&header.types) {
            entry.r1cs_digest = hex::encode(kind.kind.r1cs);
        }
        let digest = family.sections().write(&directory.join("family.key"))?;
        let manifest = FamilyManifest {
            format_version: FORMAT_VERSION,
            curve: CURVE.to_owned(),
            circuit: header.circuit.clone(),
            parameters: parse_parameters(&header.parameters, &directory.join(MANIFEST))?,
            max_instances: header.instances,
            zero_knowledge: header.zero_knowledge,
            family_digest: hex::encode(family.digest()?),
            family_key_digest: hex::encode(digest),
            types: std::mem::take(&mut self.types),
            trust: header.trust.statement().into_owned(),
            written_by: concat!("hekaton ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        let file = directory.join(MANIFEST);
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|e| KeyStoreError::Manifest { path: file.clone(), why: e.to_string() })?;
        write_readable(&file, (text + "\n").as_bytes()).map_err(io(&file))?;
        Ok(manifest)
    }

    /// Makes the directory visible.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn publish(self) -> Result<(), KeyStoreError> {
        self.building.publish().map_err(io(&self.path))
    }

    /// Keeps a complete directory that is not to be visible yet, under another name than its own. Returns that name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn keep(self) -> Result<PathBuf, KeyStoreError> {
        self.building.keep().map_err(io(&self.path))
    }

    /// Reads the manifest of a family.
    ///
    /// # Errors
    /// If there is none, or it is damaged or of another version.
    pub fn manifest(path: &Path) -> Result<FamilyManifest, KeyStoreError> {
        let file = path.join(MANIFEST);
        let damaged = |why: String| KeyStoreError::Manifest { path: file.clone(), why };
        let bytes = read_at_most(&file, MANIFEST_LIMIT).map_err(io(&file))?;
        #[derive(Deserialize)]
        struct OnlyVersion {
            format_version: u32,
        }
        let version: OnlyVersion =
            serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        if version.format_version != FORMAT_VERSION {
            let why = format!(
                "it has format version {}, but this program reads version {FORMAT_VERSION}",
                version.format_version
            );
            return Err(damaged(why));
        }
        let manifest: FamilyManifest =
            serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        manifest.types.iter().try_for_each(|entry| entry.check_name(&file))?;
        // A family has no subcircuits: a number here would be a claim that nothing checks.
        if manifest.types.iter().any(|entry| entry.instances != 0) {
            return Err(damaged("a type has instances".to_owned()));
        }
        check_texts([&manifest.circuit, &manifest.trust, &manifest.written_by], &file)?;
        Ok(manifest)
    }

    /// Opens the family key, which is all that a verifier needs: `family.json` and `family.key`.
    ///
    /// # Errors
    /// If a file is missing or damaged, or the manifest contradicts the key.
    pub fn open(path: &Path) -> Result<(FamilyManifest, FamilyKey), KeyStoreError> {
        let (manifest, file) = (Self::manifest(path)?, path.join(MANIFEST));
        let digest = parse_digest(&manifest.family_key_digest, &file)?;
        let sections = Sections::open(&path.join("family.key"), FamilyKey::KIND, digest)?;
        let family = FamilyKey::new(sections)?;
        let header = family.header();
        let types = manifest.types.iter().map(|t| (&t.name, t.slots, t.r1cs_digest.clone()));
        let in_key =
            (header.types.iter()).map(|t| (&t.kind.name, t.slots, hex::encode(t.kind.r1cs)));
        // People read the manifest, but only the key counts, so the two must not differ.
        let agrees = types.eq(in_key)
            && manifest.circuit == header.circuit
            && manifest.parameters == parse_parameters(&header.parameters, &file)?
            && manifest.max_instances == header.instances
            && manifest.zero_knowledge == header.zero_knowledge
            && manifest.curve == CURVE
            && manifest.family_digest == hex::encode(family.digest()?)
            && manifest.trust == header.trust.statement();
        match agrees {
            true => Ok((manifest, family)),
            false => {
                let why = "its contents contradict family.key".to_owned();
                Err(KeyStoreError::Manifest { path: file, why })
            }
        }
    }

    /// Opens the proving keys of all types.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn proving_keys(
        path: &Path,
        manifest: &FamilyManifest,
    ) -> Result<Vec<ProvingKey>, KeyStoreError> {
        manifest.types.iter().map(|entry| entry.open(path, &path.join(MANIFEST))).collect()
    }

    /// Derives the aggregation key and the verifying key of a circuit from an [opened](Self::open)
    /// family. The file may have changed since, so the points that were used must have the digest of the
    /// manifest.
    ///
    /// # Errors
    /// If the circuit does not fit the family, or its key has changed.
    pub fn derive_verifying(
        path: &Path,
        (of_family, family): (&FamilyManifest, &FamilyKey),
        circuit: &PreparedCircuit<'_>,
        parameters: &str,
        engine: &LocalEngine,
    ) -> Result<(AggregationKey, VerifyingKey), FamilyError> {
        let (aggregation, verifying) = derive(family, circuit, parameters, engine)?;
        // Derivation copies the points that it uses and takes the digest of the copy, so a change of the
        // mapped file after `open` cannot go unnoticed.
        match verifying.family.map(hex::encode).as_ref() == Some(&of_family.family_digest) {
            true => Ok((aggregation, verifying)),
            false => Err(FamilyError::Changed { path: path.join("family.key") }),
        }
    }

    /// Derives all keys of a circuit, in memory, from an [opened](Self::open) family; the proving keys
    /// of types stay mapped. `parameters` are all of the circuit's, as JSON. The manifest is that of a
    /// key store in which aggregation.key has no digest.
    ///
    /// # Errors
    /// If the circuit does not fit the family, or its keys cannot be read.
    pub fn derive(
        path: &Path,
        (of_family, family): (&FamilyManifest, &FamilyKey),
        circuit: &PreparedCircuit<'_>,
        parameters: &str,
        engine: &LocalEngine,
    ) -> Result<(Manifest, ProverKeys), FamilyError> {
        let (aggregation, verifying) =
            Self::derive_verifying(path, (of_family, family), circuit, parameters, engine)?;
        let (mut types, mut entries) = (Vec::new(), Vec::new());
        for kind in &verifying.types {
            // `derive` has found each type in the family key, and `open` has compared that with the manifest.
            let missing = || KeyStoreError::Manifest {
                path: path.join(MANIFEST),
                why: format!("it has no type '{}'", kind.name),
            };
            let entry = (of_family.types.iter())
                .find(|entry| entry.name == kind.name)
                .ok_or_else(missing)?;
            types.push(entry.open(path, &path.join(MANIFEST))?);
            entries.push(entry.clone());
        }
        for kind in aggregation.type_of().map_err(KeyStoreError::from)? {
            // The aggregation key has checked that its types exist.
            entries[*kind as usize].instances += 1;
        }
        let manifest = Manifest::new(&verifying, entries, &path.join(MANIFEST))?;
        Ok((manifest, ProverKeys { verifying, aggregation, types }))
    }

    /// Derives the keys of a circuit and writes them into a key store, which is then complete, but not yet
    /// [visible](KeyStore::publish). Its proving keys are links to those of the family where the file system allows
    /// that, else copies.
    ///
    /// # Errors
    /// If the circuit does not fit the family, or keys cannot be read or written.
    pub fn derive_into(
        path: &Path,
        family: (&FamilyManifest, &FamilyKey),
        circuit: &PreparedCircuit<'_>,
        parameters: &str,
        engine: &LocalEngine,
        store: &mut KeyStore,
    ) -> Result<VerifyingKey, FamilyError> {
        let (manifest, keys) = Self::derive(path, family, circuit, parameters, engine)?;
        let ProverKeys { verifying, aggregation, types } = keys;
        // The keys are mapped, and the address space of a large family is not needed for links.
        drop(types);
        for entry in manifest.types {
            store.link(&entry.file(path), entry)?;
        }
        store.complete(&aggregation, &verifying)?;
        Ok(verifying)
    }
}
