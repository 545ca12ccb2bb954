//! The parts of a key store that a run uses.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::family::OpenedFamily;
use crate::hints::explain;
use crate::imported;
use crate::imports;
use hekaton_circuit::named::{InputFile, ParameterMap};
use hekaton_core::{LocalEngine, ProverKeys};
use hekaton_mpi::launch::Launch;
use hekaton_plan::{MemoryPlan, ProcessParts, TypeSize, type_sizes};
#[cfg(feature = "mpi")]
use hekaton_storage::KeyStoreError;
use hekaton_storage::{FamilyStore, KeyCheckReport, KeyStore, Manifest, TypeEntry};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::{output, shell};
use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::Path;
#[cfg(feature = "mpi")]
use std::path::PathBuf;
use std::sync::Arc;

/// The circuit and keys of a key store, with the threads and the memory plan of this process.
pub struct OpenedKeys {
    pub(crate) circuit: Box<dyn OpenCircuit>,
    /// the circuit's name
    pub(crate) name: String,
    /// one digest of all files in the store
    pub(crate) digest: String,
    pub(crate) keys: ProverKeys,
    pub(crate) engine: Arc<LocalEngine>,
    pub(crate) plan: MemoryPlan,
    /// The argument that follows `verify --key` in a command.
    pub(crate) key: String,
}

/// The manifest, the keys, their circuit, and the value of `verify --key`.
pub type Parts = (Manifest, ProverKeys, Box<dyn OpenCircuit>, String);

impl std::fmt::Debug for OpenedKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, digest, .. } = self;
        f.debug_struct("OpenedKeys")
            .field("name", name)
            .field("digest", digest)
            .finish_non_exhaustive()
    }
}

impl OpenedKeys {
    /// Opens a key store for a run on this number of threads, within this memory limit; or derives
    /// the keys for an input from those of a family.
    pub(crate) fn open(
        app: &App,
        path: &Path,
        threads: Option<NonZeroUsize>,
        limit: Option<u64>,
        input: Option<&InputFile>,
    ) -> Result<Self, Failure> {
        Self::with(threads, limit, false, |engine| match input {
            // Without an input, only a key store will do: the number of subcircuits follows from the input.
            Some(input) if FamilyStore::is_one(path) => {
                let family = OpenedFamily::open(path)?;
                let circuit = family.circuit(app, &ParameterMap::new(), Some(input))?;
                let (manifest, keys) = circuit.derive(engine)?;
                let key = format!("{}{}", shell::path(path), circuit.options);
                Ok((manifest, keys, circuit.circuit, key))
            }
            _ => {
                let opened = KeyStore::open(path).map_err(|e| explain(&e));
                let (manifest, keys) = opened.or_fail(exit::BAD_FILE)?;
                let circuit = circuit_of(app, path, &manifest)?;
                let key = shell::path(&path.join("verifying.key"));
                Ok((manifest, keys, circuit, key))
            }
        })
    }

    /// Opens keys with `open`, and plans the memory of a run on this number of threads with them, within `limit` bytes;
    /// `machine` if the run is that of a program.
    ///
    /// # Errors
    /// Fails if `open` does, if the keys are damaged, or if the limit is too small.
    pub fn with(
        threads: Option<NonZeroUsize>,
        limit: Option<u64>,
        machine: bool,
        open: impl FnOnce(&LocalEngine) -> Result<Parts, Failure>,
    ) -> Result<Self, Failure> {
        let engine = Arc::new(LocalEngine::new(threads).or_fail(exit::FAILED)?);
        let (manifest, mut keys, circuit, key) = open(&engine)?;
        let mut sizes = type_sizes(&keys).or_fail(exit::BAD_FILE)?;
        // Imported parts keep slots and variables in memory for the whole run; circuits with code do not.
        if manifest.circuit == imported::NAME {
            sizes = sizes.into_iter().map(TypeSize::imported).collect();
        }
        let process = ProcessParts { mpi: Launch::of_environment().managed, machine };
        let plan = MemoryPlan::new(&sizes, engine.threads(), process, limit)
            .map_err(crate::hints::not_enough_memory)?;
        // Mapped keys count against the limit of a job until their pages are dropped.
        if plan.release {
            keys.release_after_use();
        }
        let digest = digest(&manifest);
        Ok(Self { circuit, name: manifest.circuit, digest, keys, engine, plan, key })
    }
}

/// The circuit that a manifest names.
pub(crate) fn circuit_of(
    app: &App,
    keys: &Path,
    manifest: &Manifest,
) -> Result<Box<dyn OpenCircuit>, Failure> {
    if manifest.circuit == imported::NAME {
        return imports::in_keys(keys, manifest, app);
    }
    let parameters: ParameterMap =
        serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)?;
    let opened = app.open(&manifest.circuit, &parameters, None);
    opened.map(|(circuit, _)| circuit).map_err(|e| explain(&*e)).or_fail(exit::BAD_FILE)
}

/// One digest of all files in a key store, from the digests in its manifest.
pub(crate) fn digest(manifest: &Manifest) -> String {
    let own = [&manifest.verifying_key_digest, &manifest.aggregation_key_digest];
    digest_of(&manifest.types, own)
}

fn digest_of<'a>(types: &[TypeEntry], own: impl IntoIterator<Item = &'a String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for digest in types.iter().map(|kind| kind.digest.as_str()).chain(own.into_iter().map(|d| &**d))
    {
        hasher.update(digest.as_bytes());
    }
    // Half a digest is enough to name the directory of staged keys; key files have whole digests of their own.
    hasher.finalize().to_hex()[..32].to_owned()
}

/// The files of a key store or a key family, relative to it, and one digest of them.
#[cfg(feature = "mpi")]
pub(crate) fn files(path: &Path, app: &App) -> Result<(Vec<PathBuf>, String), Failure> {
    let read = |e: KeyStoreError| Failure::new(exit::BAD_FILE, explain(&e));
    let of_types = |types: &[TypeEntry]| {
        types
            .iter()
            .map(|kind| PathBuf::from(format!("types/{}.pk", kind.name)))
            .collect::<Vec<_>>()
    };
    if FamilyStore::is_one(path) {
        let manifest = FamilyStore::manifest(path).map_err(read)?;
        let mut files = vec!["family.json".into(), "family.key".into()];
        files.extend(of_types(&manifest.types));
        return Ok((files, digest_of(&manifest.types, [&manifest.family_key_digest])));
    }
    let manifest = KeyStore::manifest(path).map_err(read)?;
    let mut files = vec!["manifest.json".into(), "verifying.key".into(), "aggregation.key".into()];
    files.extend(of_types(&manifest.types));
    files.extend(imports::files_in_keys(app, &manifest)?);
    Ok((files, digest(&manifest)))
}

/// The remark that a check of keys does not replace trust.
pub(crate) const DIGEST_MATTERS: &str =
    "this does not show who chose the secrets: compare the digest with a published one";

/// Elements that no relation covers, one per line.
pub(crate) fn not_covered(report: &KeyCheckReport) -> String {
    let lines = report.not_covered.iter().map(|what| format!("NOT CHECKED: {what}\n"));
    lines.chain(report.only_provers.iter().map(|what| format!("not checked: {what}\n"))).collect()
}

/// Prints the result of a check of keys. Fails if no relation covers an element that verifiers use.
pub(crate) fn checked(
    json: bool,
    path: &Path,
    report: &KeyCheckReport,
    mut object: Value,
    lines: &str,
) -> Result<(), Failure> {
    if report.not_covered.is_empty() {
        return output::result(json, &object, lines);
    }
    if !json {
        output::result(json, &object, lines)?;
    }
    object["ok"] = false.into();
    let why = format!(
        "{}: all checks passed, but no relation covers some elements that verifiers use ({}): use these keys \
         only if their digest is the published one",
        path.display(),
        report.not_covered.join("; ")
    );
    Err(Failure { code: exit::REFUSED, message: why, details: object })
}
