//! Imported circuits, which are directories and have no name in the program.

use crate::application::{Application, OpenCircuit, OpenFamily};
use crate::exit::{self, Failure, OrFail};
use hekaton_circuit::named::{Description, InputFile, ParameterMap};
use hekaton_circuit::{CircuitError, Fr, LayoutError, PreparedCircuit};
use hekaton_r1cs::directory::PROVING_FILES;
use hekaton_r1cs::{Directory, FileError, Imported, Monolith, WitnessFile};
use hekaton_storage::{KeyStore, Manifest};
use serde_json::{Value, json};
use std::path::Path;
#[cfg(feature = "mpi")]
use std::path::PathBuf;

/// What keys say that their circuit is, if it was imported.
pub(crate) const NAME: &str = "r1cs";
/// Where a key store has the part of a circuit directory that proving needs.
const IN_KEYS: &str = "circuit";

/// In place of a witness, a witness of ones: for estimates.
const SAMPLE: &[u8] = b"hekaton: a witness of ones";

/// Whether what was given as a circuit's name is a path: names have neither `/` nor `.`.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains(['/', '.'])
}

/// Imported circuits as far as their public values are concerned.
pub(crate) struct ImportedCircuits;

impl Application for ImportedCircuits {
    fn description(&self) -> Description {
        Description {
            name: NAME,
            about: "An imported circuit",
            input: "A witness (.wtns)",
            public: "A JSON array: the outputs, then the public inputs, in decimal",
            parameters: &[],
        }
    }

    fn open(
        &self,
        _: &ParameterMap,
        _: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError> {
        Err("an imported circuit is named by its directory, for example ./sha.hk".into())
    }

    fn family(&self, _: &ParameterMap, _: u64) -> Result<(OpenFamily, ParameterMap), CircuitError> {
        Err("an imported circuit has one size, and its keys are for that".into())
    }

    fn show_public(&self, values: &[Fr]) -> Option<String> {
        Some(json!(values.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string())
    }
}

/// An opened circuit directory.
struct Opened(Imported);

impl OpenCircuit for Opened {
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        PreparedCircuit::new(&self.0)
    }

    fn with_input(
        &self,
        input: &InputFile,
        then: &mut dyn FnMut(Result<PreparedCircuit<'_>, LayoutError>),
    ) -> Result<(), CircuitError> {
        let wires = self.0.directory().summary().source.wires;
        let witness = match (input.path(), input.length()?) {
            (Some(path), _) => WitnessFile::open(path)?,
            (None, length) if length == SAMPLE.len() as u64 && input.read()? == SAMPLE => {
                WitnessFile::ones(wires)?
            }
            (None, _) => WitnessFile::from_bytes(input.read()?)?,
        };
        witness.check_wires(wires)?;
        then(PreparedCircuit::with_input(&self.0, &witness));
        Ok(())
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(SAMPLE)
    }
}

/// Opens a circuit directory. Returns the circuit, and its parameters: digests of the source and of
/// the directory.
pub(crate) fn open(path: &Path) -> Result<(Box<dyn OpenCircuit>, ParameterMap), Failure> {
    let imported = Imported::open(path).or_fail(exit::BAD_FILE)?;
    let directory = imported.directory();
    let mut parameters = ParameterMap::new();
    let source = directory.summary().source.digest.clone();
    parameters.insert("source".to_owned(), Value::String(source));
    let digest = hex::encode(directory.digest());
    parameters.insert("directory".to_owned(), Value::String(digest));
    Ok((Box::new(Opened(imported)), parameters))
}

/// The circuit in a key store, whose manifest says which one it must be.
pub(crate) fn in_keys(keys: &Path, manifest: &Manifest) -> Result<Box<dyn OpenCircuit>, Failure> {
    let path = keys.join(IN_KEYS);
    let (circuit, parameters) = open(&path)?;
    match Value::Object(parameters) == manifest.parameters {
        true => Ok(circuit),
        false => {
            let why =
                "it is not the circuit that these keys were made for; copy the key store again";
            Err(Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display())))
        }
    }
}

/// Checks that a circuit directory is whole before keys are made from it; with its source, also that
/// it says what the source says.
pub(crate) fn check(directory: &Path, source: Option<&Path>) -> Result<(), Failure> {
    let files = Directory::open(directory).and_then(|directory| directory.check_files());
    files.or_fail(exit::BAD_FILE)?;
    let Some(source) = source else { return Ok(()) };
    let monolith = Monolith::read(source, None, |_, _| {}).or_fail(exit::BAD_FILE)?;
    let found = monolith.check(directory);
    let name = directory.display();
    found.map_err(|e| format!("{name}: not {}: {e}", source.display())).or_fail(exit::BAD_FILE)?;
    Ok(())
}

/// Copies into unfinished keys what proving needs of a circuit directory.
pub(crate) fn copy_into(store: &KeyStore, directory: &Path) -> Result<(), Failure> {
    let Some(building) = store.unfinished_path() else { return Ok(()) };
    let to = building.join(IN_KEYS);
    let copy = |name: &str| -> std::io::Result<()> {
        std::fs::create_dir_all(&to)?;
        std::fs::copy(directory.join(name), to.join(name))?;
        std::fs::File::open(to.join(name))?.sync_all()
    };
    PROVING_FILES.iter().try_for_each(|name| {
        copy(name).map_err(|e| format!("{}: {e}", to.join(name).display())).or_fail(exit::FAILED)
    })
}

#[cfg(feature = "mpi")]
/// The files of a key store that an imported circuit has there, besides keys.
pub(crate) fn files_in_keys(manifest: &Manifest) -> Vec<PathBuf> {
    match manifest.circuit == NAME {
        true => PROVING_FILES.iter().map(|name| Path::new(IN_KEYS).join(name)).collect(),
        false => Vec::new(),
    }
}

/// The failure for an input that cannot be opened or executed. Files of other tools say themselves
/// where they are wrong.
pub(crate) fn input_failure(path: &Path, error: &CircuitError, code: u8) -> Failure {
    match error.downcast_ref::<FileError>() {
        Some(error) => Failure::new(exit::BAD_FILE, error),
        None => Failure::new(code, format!("{}: {error}", path.display())),
    }
}
