//! Imported circuits of this program: those in key stores and in directories.

use crate::app::App;
use crate::application::{Imports, OpenCircuit};
use crate::imported::NAME;
use hekaton_circuit::named::ParameterMap;
use hekaton_core::VerifyingKey;
use hekaton_storage::{KeyStore, Manifest};
use hekaton_terminal::exit::{self, Failure, OrFail};
use std::path::{Path, PathBuf};

/// The folder of a key store with the part of a circuit directory that proving needs.
const IN_KEYS: &str = "circuit";

/// The names of public values that are stored next to a verifying key in its key store. Empty for a key
/// elsewhere.
pub(crate) fn names_beside(path: &Path, key: &VerifyingKey, app: &App) -> Vec<String> {
    // Names are for readers only: without them, values have the numbers that the key itself gives them.
    let (true, Ok(imports)) = (key.circuit == NAME, app.imports()) else { return Vec::new() };
    let keys = path.parent().unwrap_or(Path::new(""));
    let names = imports.public_names(&keys.join(IN_KEYS), key);
    if names.len() == key.public.len() { names } else { Vec::new() }
}

/// The imports of the program, for keys of an imported circuit.
fn of_keys(app: &App) -> Result<&dyn Imports, Failure> {
    let imports = app.imports();
    imports.map_err(|e| {
        Failure::new(exit::BAD_FILE, format!("keys of an imported circuit: {}", e.message))
    })
}

/// The circuit in a key store. It must be the one that the manifest names.
pub(crate) fn in_keys(
    keys: &Path,
    manifest: &Manifest,
    app: &App,
) -> Result<Box<dyn OpenCircuit>, Failure> {
    let parameters: ParameterMap =
        serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)?;
    of_parameters(&circuit_in(keys), &parameters, app)
}

/// The directory of the circuit in a key store.
pub(crate) fn circuit_in(keys: &Path) -> PathBuf {
    keys.join(IN_KEYS)
}

/// The circuit in a directory, which must be the one that keys or a ceremony with these parameters are for.
pub(crate) fn of_parameters(
    path: &Path,
    expected: &ParameterMap,
    app: &App,
) -> Result<Box<dyn OpenCircuit>, Failure> {
    let (circuit, parameters) = of_keys(app)?.open_directory(path)?;
    // The name of the source is only a name, and keys of earlier versions do not have it.
    let same = |name: &str| parameters.get(name) == expected.get(name);
    match same("directory") && same("source") {
        true => Ok(circuit),
        false => {
            let why = "it is not the circuit that these keys were made for; copy it again from where they were made";
            Err(Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display())))
        }
    }
}

/// Copies the part of a circuit directory that proving needs into unfinished keys, so that keys can be used without the
/// directory, and a directory that changes later cannot disagree with them.
pub(crate) fn copy_into(store: &KeyStore, directory: &Path, app: &App) -> Result<(), Failure> {
    let Some(building) = store.unfinished_path() else { return Ok(()) };
    let to = building.join(IN_KEYS);
    let copy = |name: &str| -> std::io::Result<()> {
        std::fs::create_dir_all(&to)?;
        std::fs::copy(directory.join(name), to.join(name))?;
        // Before the keys get their final name: after a crash, complete keys must not lack a file.
        std::fs::File::open(to.join(name))?.sync_all()
    };
    app.imports()?.proving_files().iter().try_for_each(|name| {
        copy(name).map_err(|e| format!("{}: {e}", to.join(name).display())).or_fail(exit::FAILED)
    })?;
    hekaton_files::sync_folder(&to).or_fail(exit::FAILED)
}

/// The files of a key store that an imported circuit has there, in addition to keys.
#[cfg(feature = "mpi")]
pub(crate) fn files_in_keys(app: &App, manifest: &Manifest) -> Result<Vec<PathBuf>, Failure> {
    match manifest.circuit == NAME {
        true => {
            let names = of_keys(app)?.proving_files();
            Ok(names.iter().map(|name| Path::new(IN_KEYS).join(name)).collect())
        }
        false => Ok(Vec::new()),
    }
}
