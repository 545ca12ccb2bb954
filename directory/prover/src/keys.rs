//! The keys of the epochs' proofs: a family, from which the keys for each size of proof are derived.

use hekaton_circuit::PreparedCircuit;
use hekaton_circuit::named::{NamedCircuit, ParameterMap, create};
use hekaton_core::FamilyKey;
use hekaton_core::{
    Fr, LocalEngine, Proof, Trust, VerifyError, VerifyingKey, verify, verify_with_test_keys,
};
use hekaton_directory::{EpochProof, Parameters, Profile};
use hekaton_directory_circuit::Epochs;
use hekaton_storage::{FamilyManifest, FamilyStore, KeyStore};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The circuit whose keys prove epochs.
pub const CIRCUIT: &str = Epochs::NAME;

/// The number of derived verifying keys that are kept: directories have few sizes of proofs.
const KEPT: usize = 64;

/// The number of derived key stores that are kept.
const KEPT_STORES: usize = 4;

/// The beginning of the names of derived key stores.
const STORE: &str = "keys-";

/// Keys that cannot be used for a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The files are missing, damaged, or for another circuit.
    #[error("{0}")]
    Files(String),
    /// They are test keys, under which anyone can forge proofs.
    #[error("{path}: {statement}; a proof under these keys proves nothing", path = .path.display())]
    TestKeys {
        /// The folder of the keys.
        path: PathBuf,
        /// The statement of trust in their manifest.
        statement: String,
    },
    /// They are not the keys that the directory's parameters name.
    #[error("{path}: these keys have digest {found}, those of the directory {expected}", path = .path.display())]
    OtherKeys {
        /// The folder of the keys.
        path: PathBuf,
        /// The digest of these keys, in hexadecimal.
        found: String,
        /// The digest in the parameters, in hexadecimal.
        expected: String,
    },
    /// Keys for a size of proof cannot be derived.
    #[error("{path}: keys for {subcircuits} subcircuits cannot be derived: {why}", path = .path.display())]
    Derive {
        /// The folder of the keys.
        path: PathBuf,
        /// The number of subcircuits with steps.
        subcircuits: u32,
        /// The reason.
        why: String,
    },
}

/// The reason why a proof was not verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unverified {
    /// It does not hold.
    #[error("{0}")]
    Rejected(String),
    /// It could not be checked.
    #[error("its key cannot be derived: {0}")]
    NoKey(KeysError),
}

impl From<KeysError> for Unverified {
    fn from(error: KeysError) -> Self {
        Self::NoKey(error)
    }
}

/// The keys of the epochs' proofs. Verifying keys are derived when they are first needed.
#[derive(Debug)]
pub struct EpochKeys {
    path: PathBuf,
    manifest: FamilyManifest,
    family: FamilyKey,
    digest: [u8; 32],
    profile: Profile,
    steps: usize,
    accept_test_keys: bool,
    derived: Mutex<HashMap<u32, Arc<VerifyingKey>>>,
}

impl EpochKeys {
    /// Opens a family of keys, of which `family.json` and `family.key` are enough to verify. Test keys, under which anyone can
    /// forge proofs, are refused unless they are accepted.
    ///
    /// # Errors
    /// If a file is missing or damaged, or the keys are test keys or those of another circuit.
    pub fn open(path: &Path, accept_test_keys: bool) -> Result<Self, KeysError> {
        let wrong = |why: String| KeysError::Files(format!("{}: {why}", path.display()));
        let (manifest, family) =
            FamilyStore::open(path).map_err(|error| KeysError::Files(error.to_string()))?;
        if manifest.circuit != CIRCUIT {
            return Err(not_epochs(
                path,
                &format!("its keys are for circuit '{}'", manifest.circuit),
            ));
        }
        let name = &manifest.parameters["profile"];
        let profile = Profile::ALL
            .into_iter()
            .find(|profile| *name == profile.name())
            .ok_or_else(|| not_epochs(path, &format!("its profile is {name}")))?;
        let statement = Trust::InsecureSeed.statement();
        if manifest.trust == statement && !accept_test_keys {
            return Err(KeysError::TestKeys {
                path: path.to_owned(),
                statement: statement.into_owned(),
            });
        }
        let declared =
            manifest.parameters["steps"].as_u64().and_then(|steps| steps.try_into().ok());
        let steps = declared
            .filter(|steps| *steps > 0)
            .ok_or_else(|| wrong("the keys do not have the number of steps".into()))?;
        let digest = family.digest().map_err(|error| wrong(error.to_string()))?;
        let (path, derived) = (path.to_owned(), Mutex::default());
        Ok(Self { path, manifest, family, digest, profile, steps, accept_test_keys, derived })
    }

    /// The folder of the keys.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The digest of the family, which the parameters of a directory have.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The profile of the trees whose epochs they prove.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The statement of whom one trusts in relying on these keys.
    pub fn trust(&self) -> &str {
        &self.manifest.trust
    }

    /// The maximum number of steps in a proof.
    pub fn room(&self) -> usize {
        self.steps.saturating_mul(self.most())
    }

    /// The maximum number of subcircuits with steps. The last instance of a family joins them.
    fn most(&self) -> usize {
        self.manifest.max_instances.saturating_sub(1)
    }

    /// The number of subcircuits that a number of steps takes.
    pub fn subcircuits(&self, steps: usize) -> usize {
        steps.div_ceil(self.steps).max(1)
    }

    /// Refuses keys that are not those of a directory.
    ///
    /// # Errors
    /// [`KeysError::OtherKeys`].
    pub fn check_parameters(&self, parameters: &Parameters) -> Result<(), KeysError> {
        if self.digest == parameters.proofs {
            return Ok(());
        }
        let (found, expected) = (hex::encode(self.digest), hex::encode(parameters.proofs));
        Err(KeysError::OtherKeys { path: self.path.clone(), found, expected })
    }

    /// Calls `then` with the circuit for a number of subcircuits, and its parameters as JSON.
    fn with_circuit<R>(
        &self,
        subcircuits: u32,
        then: impl FnOnce(&PreparedCircuit<'_>, &str, &LocalEngine) -> Result<R, String>,
    ) -> Result<R, KeysError> {
        let work = || -> Result<R, String> {
            let shared = self.manifest.parameters.as_object();
            let mut given: ParameterMap =
                shared.ok_or("the family's parameters are not a JSON object")?.clone();
            given.insert("subcircuits".to_owned(), subcircuits.into());
            let (circuit, all) = create::<Epochs>(&given, None).map_err(|e| e.to_string())?;
            let engine = LocalEngine::new(None).map_err(|e| e.to_string())?;
            let circuit = PreparedCircuit::new(&circuit).map_err(|e| e.to_string())?;
            then(&circuit, &serde_json::Value::Object(all).to_string(), &engine)
        };
        let path = &self.path;
        work().map_err(|why| KeysError::Derive { path: path.clone(), subcircuits, why })
    }

    /// The key store for proofs with this number of subcircuits, in a folder with others; the least recently made ones are
    /// removed.
    pub(crate) fn store(&self, subcircuits: u32, folder: &Path) -> Result<PathBuf, KeysError> {
        let path = folder.join(format!("{STORE}{subcircuits}"));
        if path.is_dir() {
            return Ok(path);
        }
        self.with_circuit(subcircuits, |circuit, json, engine| {
            let mut store = KeyStore::create(&path).map_err(|e| e.to_string())?;
            let family = (&self.manifest, &self.family);
            FamilyStore::derive_into(&self.path, family, circuit, json, engine, &mut store)
                .map_err(|e| e.to_string())?;
            store.publish().map_err(|e| e.to_string())
        })?;
        remove_old(folder, &path);
        Ok(path)
    }

    /// The verifying key of proofs with this number of subcircuits.
    fn key(&self, subcircuits: u32) -> Result<Arc<VerifyingKey>, KeysError> {
        let lock = || self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = lock().get(&subcircuits) {
            return Ok(Arc::clone(key));
        }
        // Without the lock: this takes long, and proofs of other sizes must not wait for it. Two
        // threads may derive the same key, which does no harm.
        let key = self.with_circuit(subcircuits, |circuit, json, engine| {
            let family = (&self.manifest, &self.family);
            FamilyStore::derive_verifying(&self.path, family, circuit, json, engine)
                .map(|(_, key)| Arc::new(key))
                .map_err(|e| e.to_string())
        })?;
        let mut derived = lock();
        // The sizes come from proofs made by others, so the map needs a limit. Few sizes occur, so
        // it is rarely cleared.
        if derived.len() >= KEPT {
            derived.clear();
        }
        derived.insert(subcircuits, Arc::clone(&key));
        Ok(key)
    }

    /// Verifies a proof of epochs with the public values of the records at its ends. Returns the time that this took without
    /// deriving the key.
    ///
    /// # Errors
    /// [`Unverified::Rejected`] if it does not hold, [`Unverified::NoKey`] if it could not be checked.
    pub fn verify(&self, proof: &EpochProof, values: [u128; 10]) -> Result<Duration, Unverified> {
        let rejected = |why: String| Err(Unverified::Rejected(why));
        let subcircuits = proof.subcircuits;
        // Sizes come first: deriving a key takes longer than a verifier should work for a proof that cannot hold.
        let most = self.most();
        if subcircuits == 0 || subcircuits as usize > most {
            return rejected(format!(
                "it has {subcircuits} subcircuits, and there are keys for 1 to {most}"
            ));
        }
        let instances = subcircuits as usize + 1;
        let rounds = instances.next_power_of_two().ilog2() as usize;
        // First the version: another one has other lengths.
        Proof::key_digest(&proof.proof).map_err(|error| Unverified::Rejected(error.to_string()))?;
        let (found, expected) = (proof.proof.len(), Proof::encoded_len(rounds));
        if found != expected {
            return rejected(format!("it has {found} bytes, expected {expected}"));
        }
        let key = self.key(subcircuits)?;
        let start = Instant::now();
        verdict(&key, &values.map(Fr::from), &proof.proof, self.accept_test_keys)
            .map_err(|error| Unverified::Rejected(error.to_string()))?;
        Ok(start.elapsed())
    }
}

fn not_epochs(path: &Path, why: &str) -> KeysError {
    KeysError::Files(format!(
        "{}: {why}; `hekaton setup {CIRCUIT} --up-to SIZE` makes keys of epochs",
        path.display()
    ))
}

fn verdict(
    key: &VerifyingKey,
    values: &[Fr],
    proof: &[u8],
    accept_test_keys: bool,
) -> Result<(), VerifyError> {
    match accept_test_keys {
        true => verify_with_test_keys(key, values, proof),
        false => verify(key, values, proof),
    }
}

/// Removes the key stores that were made first, until there are few. A store that stays takes room, and harms nothing.
fn remove_old(folder: &Path, newest: &Path) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "old key stores are not removed");
            return;
        }
    };
    let mut stores: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(STORE))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        // Its time may be the same as that of another one, and it is needed now.
        .filter(|(_, path)| path != newest)
        .collect();
    stores.sort();
    let old = stores.len().saturating_sub(KEPT_STORES - 1);
    for (_, path) in stores.into_iter().take(old) {
        if let Err(error) = std::fs::remove_dir_all(&path) {
            tracing::warn!(store = %path.display(), %error, "an old key store is not removed");
        }
    }
}
