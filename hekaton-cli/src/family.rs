//! Key families: their circuits, and keys derived from them.

use crate::application::OpenCircuit;
use crate::exit::{self, Failure, OrFail};
use crate::hints::explain;
use crate::program::Program;
use hekaton_circuit::named::{InputFile, ParameterMap};
use hekaton_core::{LocalEngine, ProverKeys, VerifyingKey};
use hekaton_storage::{FamilyError, FamilyManifest, FamilyStore, KeyStore, Manifest};
use std::path::Path;

/// A circuit of a family on disk.
pub(crate) struct FamilyCircuit {
    pub(crate) manifest: FamilyManifest,
    pub(crate) circuit: Box<dyn OpenCircuit>,
    /// All parameters of the circuit.
    pub(crate) parameters: ParameterMap,
    /// The parameters that the family leaves open, as options of a command.
    pub(crate) options: String,
}

impl FamilyCircuit {
    /// The circuit of a family with these open parameters, or for this input.
    pub(crate) fn open(
        program: &Program,
        family: &Path,
        given: &ParameterMap,
        input: Option<&InputFile>,
    ) -> Result<Self, Failure> {
        let manifest = FamilyStore::manifest(family);
        let manifest = manifest.map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
        let shared = shared_parameters(&manifest)?;
        if let Some(name) = given.keys().find(|name| shared.contains_key(*name)) {
            let why = format!("-p {name}: all circuits of the family have {name}={}", shared[name]);
            return Err(Failure::new(exit::USAGE, why));
        }
        let all = shared.clone().into_iter().chain(given.clone()).collect();
        let opened = program.open(&manifest.circuit, &all, input);
        let (circuit, parameters) = opened.map_err(|e| explain(&*e)).or_fail(exit::USAGE)?;
        if let Some(input) = input {
            circuit.check_input(input).or_fail(exit::USAGE)?;
        }
        let open = parameters.iter().filter(|(name, _)| !shared.contains_key(*name));
        let options = open.map(|(name, value)| format!(" -p {name}={value}")).collect();
        Ok(Self { manifest, circuit, parameters, options })
    }

    fn parameters_json(&self) -> String {
        serde_json::Value::Object(self.parameters.clone()).to_string()
    }

    /// Derives all keys, in memory.
    pub(crate) fn derive(
        &self,
        family: &Path,
        engine: &LocalEngine,
    ) -> Result<(Manifest, ProverKeys), Failure> {
        let circuit = self.circuit.prepared().or_fail(exit::USAGE)?;
        FamilyStore::derive(family, &circuit, &self.parameters_json(), engine)
            .map_err(|e| failed(&e))
    }

    /// Derives the verifying key.
    pub(crate) fn derive_verifying_key(
        &self,
        family: &Path,
        engine: &LocalEngine,
    ) -> Result<VerifyingKey, Failure> {
        let circuit = self.circuit.prepared().or_fail(exit::USAGE)?;
        let json = self.parameters_json();
        FamilyStore::derive_verifying_key(family, &circuit, &json, engine).map_err(|e| failed(&e))
    }

    /// Derives all keys and writes them to a key store.
    pub(crate) fn derive_into(
        &self,
        family: &Path,
        engine: &LocalEngine,
        store: KeyStore,
    ) -> Result<VerifyingKey, Failure> {
        let circuit = self.circuit.prepared().or_fail(exit::USAGE)?;
        let json = self.parameters_json();
        FamilyStore::derive_into(family, &circuit, &json, engine, store).map_err(|e| failed(&e))
    }
}

/// The parameters that all circuits of a family have.
pub(crate) fn shared_parameters(manifest: &FamilyManifest) -> Result<ParameterMap, Failure> {
    serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)
}

/// A circuit that does not fit is the mistake of who named it; the rest is in the files.
fn failed(error: &FamilyError) -> Failure {
    match error {
        FamilyError::Store(error) => Failure::new(exit::BAD_FILE, explain(error)),
        error => Failure::new(exit::FAILED, error),
    }
}
