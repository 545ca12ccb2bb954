//! Key families: their circuits, and keys derived from them.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::hints::explain;
use hekaton_circuit::named::{InputFile, ParameterMap};
use hekaton_core::{DeriveError, FamilyKey, LocalEngine, ProverKeys, VerifyingKey};
use hekaton_storage::{FamilyError, FamilyManifest, FamilyStore, KeyStore, Manifest};
use hekaton_terminal::exit::{self, Failure, OrFail};
use std::path::{Path, PathBuf};

/// A family on disk, whose files have been checked against each other.
#[derive(Debug)]
pub struct OpenedFamily {
    /// Its directory.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: FamilyManifest,
    /// Its key.
    pub key: FamilyKey,
}

impl OpenedFamily {
    /// Opens a family.
    ///
    /// # Errors
    /// Fails if a file is missing, damaged, or of another family.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let opened = FamilyStore::open(path).map_err(|e| explain(&e));
        let (manifest, key) = opened.or_fail(exit::BAD_FILE)?;
        Ok(Self { path: path.to_owned(), manifest, key })
    }

    /// The digest of the whole family key.
    ///
    /// # Errors
    /// Fails if the key cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], Failure> {
        self.key.digest().or_fail(exit::BAD_FILE)
    }

    /// The circuit with these open parameters, or for this input.
    pub(crate) fn circuit(
        &self,
        app: &App,
        given: &ParameterMap,
        input: Option<&InputFile>,
    ) -> Result<FamilyCircuit<'_>, Failure> {
        let shared = shared_parameters(&self.manifest)?;
        if let Some(name) = given.keys().find(|name| shared.contains_key(*name)) {
            let why = format!("-p {name}: all circuits of the family have {name}={}", shared[name]);
            return Err(Failure::new(exit::USAGE, why));
        }
        // Shared parameters cannot be overridden: the types of the family were made for them.
        let all = shared.clone().into_iter().chain(given.clone()).collect();
        let opened = app.open(&self.manifest.circuit, &all, input);
        let (circuit, parameters) = opened.map_err(|e| explain(&*e)).or_fail(exit::USAGE)?;
        // Before anything is laid out: parameters from elsewhere could ask for a layout that fills the memory.
        let most = self.manifest.max_instances;
        if let Some(found) = circuit.subcircuits().filter(|found| *found > most) {
            let too_many = DeriveError::TooMany { found, most };
            let name = &self.manifest.circuit;
            // The machine's keys have an option of their own.
            let is_own = app.descriptions().iter().any(|own| own.name == name);
            let message = match input.filter(|_| is_own).map(InputFile::length) {
                Some(Ok(bytes)) => {
                    let given = shared.iter().map(|(name, value)| format!(" -p {name}={value}"));
                    format!(
                        "{too_many}; `hekaton setup {name}{} --up-to {bytes} --keys DIR` makes keys for this input",
                        given.collect::<String>()
                    )
                }
                _ => too_many.to_string(),
            };
            return Err(Failure::new(exit::USAGE, message));
        }
        if let Some(input) = input {
            circuit.check_input(input).or_fail(exit::USAGE)?;
        }
        let open = parameters.iter().filter(|(name, _)| !shared.contains_key(*name));
        let options = open.map(|(name, value)| format!(" -p {name}={value}")).collect();
        Ok(FamilyCircuit { family: self, circuit, parameters, options })
    }
}

/// A circuit of a family.
pub(crate) struct FamilyCircuit<'a> {
    family: &'a OpenedFamily,
    pub(crate) circuit: Box<dyn OpenCircuit>,
    /// All parameters of the circuit.
    pub(crate) parameters: ParameterMap,
    /// The parameters that the family leaves open, as options of a command.
    pub(crate) options: String,
}

impl FamilyCircuit<'_> {
    fn parameters_json(&self) -> String {
        serde_json::Value::Object(self.parameters.clone()).to_string()
    }

    /// Derives all keys, in memory.
    pub(crate) fn derive(&self, engine: &LocalEngine) -> Result<(Manifest, ProverKeys), Failure> {
        let OpenedFamily { path, manifest, key } = self.family;
        let circuit = self.circuit.prepared().or_fail(exit::USAGE)?;
        let keys =
            FamilyStore::derive(path, (manifest, key), &circuit, &self.parameters_json(), engine);
        keys.map_err(|e| failed(&e))
    }

    /// Derives the verifying key.
    pub(crate) fn derive_verifying_key(
        &self,
        engine: &LocalEngine,
    ) -> Result<VerifyingKey, Failure> {
        let OpenedFamily { path, manifest, key } = self.family;
        let circuit = self.circuit.prepared().or_fail(exit::USAGE)?;
        let (family, json) = ((manifest, key), self.parameters_json());
        let keys = FamilyStore::derive_verifying(path, family, &circuit, &json, engine);
        keys.map(|(_, verifying)| verifying).map_err(|e| failed(&e))
    }

    /// Derives all keys and writes them to a key store.
    pub(crate) fn derive_into(
        &self,
        engine: &LocalEngine,
        mut store: KeyStore,
    ) -> Result<VerifyingKey, Failure> {
        let OpenedFamily { path, manifest, key } = self.family;
        let circuit = self.circuit.prepared().or_fail(exit::USAGE)?;
        let (family, json) = ((manifest, key), self.parameters_json());
        let derived = FamilyStore::derive_into(path, family, &circuit, &json, engine, &mut store);
        let key = derived.map_err(|e| failed(&e))?;
        store.publish().map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
        Ok(key)
    }
}

/// The parameters that all circuits of a family have.
pub(crate) fn shared_parameters(manifest: &FamilyManifest) -> Result<ParameterMap, Failure> {
    serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)
}

/// The failure for keys that cannot be derived: bad files have a code of their own, and a circuit that does not fit is an
/// error of the command.
pub fn failed(error: &FamilyError) -> Failure {
    match error {
        FamilyError::Store(error) => Failure::new(exit::BAD_FILE, explain(error)),
        FamilyError::Derive(e @ (DeriveError::Key(_) | DeriveError::VerifyingKey(_))) => {
            Failure::new(exit::BAD_FILE, e)
        }
        FamilyError::Derive(e @ DeriveError::TooMany { .. }) => Failure::new(exit::USAGE, e),
        error @ FamilyError::Changed { .. } => Failure::new(exit::BAD_FILE, error),
        error => Failure::new(exit::FAILED, error),
    }
}
