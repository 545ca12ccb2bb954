//! Imported circuits, which are directories and have no name in the program.

use crate::application::{Application, OpenCircuit};
use crate::public_values::distinct;
use hekaton_circuit::named::{Description, Family, InputFile, ParameterMap};
use hekaton_circuit::{CircuitError, Fr, LayoutError, PreparedCircuit};
use hekaton_core::VerifyingKey;
use hekaton_r1cs::directory::{BundleError, PROVING_FILES, Summary};
use hekaton_r1cs::{CircuitBundle, FileError, ImportError, Imported, Monolith, WitnessFile};
use hekaton_storage::{KeyStore, Manifest};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output::{self, one_line};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The name of the circuit in keys, if it was imported.
pub(crate) const NAME: &str = "r1cs";
/// The folder of a key store with the part of a circuit directory that proving needs.
const IN_KEYS: &str = "circuit";

/// The stand-in for a witness file in estimates: a witness of ones.
const SAMPLE: &[u8] = b"hekaton: a witness of ones";

/// Reports whether the name of a circuit is a path: names have neither `/` nor `.`.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains(['/', '.'])
}

// Registered so that keys of imported circuits open by the name in them. The circuit itself is a directory, which a user
// names by its path, so there is nothing to open or to list by name.
/// Imported circuits, as far as their public values are concerned.
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

    fn family(
        &self,
        _: &ParameterMap,
        _: u64,
    ) -> Result<(Family<Box<dyn OpenCircuit>>, ParameterMap), CircuitError> {
        Err("an imported circuit has one size, so its keys are not a family".into())
    }

    fn show_public(&self, values: &[Fr]) -> Option<String> {
        Some(json!(values.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string())
    }
}

/// An opened circuit directory.
struct Opened {
    imported: Imported,
    path: PathBuf,
}

impl OpenCircuit for Opened {
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        PreparedCircuit::new(&self.imported)
    }

    fn with_input(
        &self,
        input: &InputFile,
        then: &mut dyn FnMut(Result<PreparedCircuit<'_>, LayoutError>),
    ) -> Result<(), CircuitError> {
        let wires = self.imported.directory().summary().source.wires;
        let witness = match (input.path(), input.length()?) {
            (Some(path), _) => WitnessFile::open(path)?,
            (None, length) if length == SAMPLE.len() as u64 && input.read()? == SAMPLE => {
                WitnessFile::ones(wires)?
            }
            (None, _) => WitnessFile::from_bytes(input.read()?)?,
        };
        witness.check_wires(wires)?;
        // Now, and not hours into a run, when the part with a damaged value is proven.
        witness.check_values()?;
        then(PreparedCircuit::with_input(&self.imported, &witness));
        Ok(())
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(SAMPLE)
    }

    fn public_names(&self) -> Vec<String> {
        names_in(self.imported.directory().summary())
    }

    fn inspect(&self) -> Result<Vec<String>, Failure> {
        let directory = self.imported.directory();
        directory.check_files().or_fail(exit::BAD_FILE)?;
        directory.notices().or_fail(exit::BAD_FILE)
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// The names of public values in a circuit directory, if a `.sym` file had names; empty if two are
/// equal.
fn names_in(summary: &Summary) -> Vec<String> {
    let name = |(index, name): (usize, &String)| match name.is_empty() {
        true => format!("public[{index}]"),
        false => name.clone(),
    };
    distinct(summary.public_names.iter().enumerate().map(name).collect())
}

/// The names of public values that are stored next to a verifying key in its key store. Empty for a key
/// elsewhere.
pub(crate) fn names_beside(path: &Path, key: &VerifyingKey) -> Vec<String> {
    if key.circuit != NAME {
        return Vec::new();
    }
    let keys = path.parent().unwrap_or(Path::new(""));
    // Names are for readers only: without them, values have the numbers that the key itself gives them.
    match bound_summary(&keys.join(IN_KEYS).join("circuit.json"), key).map(|s| names_in(&s)) {
        Some(names) if names.len() == key.public.len() => names,
        _ => Vec::new(),
    }
}

/// The summary of a circuit directory, if there is one and a verifying key names its digest. A file that the key does not
/// bind could swap the names of two public values.
fn bound_summary(path: &Path, key: &VerifyingKey) -> Option<Summary> {
    let parameters: Value = serde_json::from_str(&key.parameters).ok()?;
    let text = exit::read_at_most(path, exit::KEY_LIMIT).ok()?;
    let digest = blake3::hash(&text).to_hex();
    (parameters["directory"].as_str() == Some(digest.as_str()))
        .then(|| serde_json::from_slice(&text).ok())?
}

/// Describes the circuit of some keys for people: its name and parameters, or the file that was
/// imported.
pub(crate) fn describe(circuit: &str, parameters: &Value) -> String {
    let field = |name: &str| parameters[name].as_str();
    // Keys may come from anyone, so their text can have any length and any characters.
    let text = match (circuit == NAME, field("source"), field("directory")) {
        (true, Some(source), Some(directory)) => {
            let short = |digest: &str| digest.chars().take(16).collect::<String>();
            let name = field("name").map_or_else(String::new, |name| format!(" {name}"));
            format!(
                "imported circuit{name} (source {}, circuit {})",
                short(source),
                short(directory)
            )
        }
        _ => format!("{circuit} {parameters}"),
    };
    one_line(&text).into_owned()
}

/// Opens a circuit directory. Returns the circuit, and its parameters: digests of the source and of
/// the directory.
pub(crate) fn open(path: &Path) -> Result<(Box<dyn OpenCircuit>, ParameterMap), Failure> {
    let imported = Imported::open(path).or_fail(exit::BAD_FILE)?;
    let directory = imported.directory();
    let mut parameters = ParameterMap::new();
    let source = &directory.summary().source;
    parameters.insert("name".to_owned(), Value::String(source.name.clone()));
    parameters.insert("source".to_owned(), Value::String(source.digest.clone()));
    let digest = hex::encode(directory.digest());
    parameters.insert("directory".to_owned(), Value::String(digest));
    Ok((Box::new(Opened { imported, path: path.to_owned() }), parameters))
}

/// The circuit in a key store. It must be the one that the manifest names.
pub(crate) fn in_keys(keys: &Path, manifest: &Manifest) -> Result<Box<dyn OpenCircuit>, Failure> {
    let parameters: ParameterMap =
        serde_json::from_value(manifest.parameters.clone()).or_fail(exit::BAD_FILE)?;
    of_parameters(&circuit_in(keys), &parameters)
}

/// The directory of the circuit in a key store.
pub(crate) fn circuit_in(keys: &Path) -> PathBuf {
    keys.join(IN_KEYS)
}

/// The circuit in a directory, which must be the one that keys or a ceremony with these parameters are for.
pub(crate) fn of_parameters(
    path: &Path,
    expected: &ParameterMap,
) -> Result<Box<dyn OpenCircuit>, Failure> {
    let (circuit, parameters) = open(path)?;
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

/// Checks a circuit before keys are made for it: reads its files once and prints notices, which it returns, and compares an imported
/// circuit with its source if there is one.
pub(crate) fn check(
    circuit: &dyn OpenCircuit,
    source: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let notices = circuit.inspect()?;
    notices.iter().for_each(|notice| output::say(format_args!("note: {notice}")));
    match (circuit.directory(), source) {
        (Some(directory), Some(source)) => compare(directory, source)?,
        (Some(_), None) => output::say(
            "note: the circuit was not compared with its source; --r1cs FILE compares it",
        ),
        (None, Some(_)) => {
            let why = "--r1cs is for imported circuits; this one has code";
            return Err(Failure::new(exit::USAGE, why));
        }
        (None, None) => {}
    }
    Ok(notices)
}

// Keys commit to constraints that only this comparison ties to a source: a directory from someone else may have others.
/// Compares a circuit directory with its source before keys are made from it.
fn compare(directory: &Path, source: &Path) -> Result<(), Failure> {
    let monolith = Monolith::read(source, None, |_, _| {}).or_fail(exit::BAD_FILE)?;
    let (name, other) = (directory.display(), source.display());
    let opened = CircuitBundle::open(directory).or_fail(exit::BAD_FILE)?;
    let imported = &opened.summary().source;
    let same_file = imported.digest == monolith.source().digest;
    let remedy = match same_file {
        true => "import it again, or get the circuit from someone you trust".to_owned(),
        false => format!("pass the file {} that was imported, or import this one", imported.name),
    };
    let refuse = |why: String| Failure::new(exit::BAD_FILE, format!("{name}: {why}; {remedy}"));
    match monolith.check(directory) {
        Ok(_) if same_file => Ok(()),
        // Keys say which file they are for, and `keys verify --r1cs` would refuse them with this one.
        Ok(_) => Err(refuse(format!(
            "it has the constraints of {other}, but was imported from another file ({}, digest {}; \
             that of {other} is {})",
            imported.name,
            imported.digest,
            monolith.source().digest
        ))),
        Err(ImportError::Partition(e)) => Err(refuse(format!("not the circuit of {other}: {e}"))),
        Err(e) => Err(refuse(format!("cannot be compared with {other}: {e}"))),
    }
}

/// Copies the part of a circuit directory that proving needs into unfinished keys, so that keys can be used without the
/// directory, and a directory that changes later cannot disagree with them.
pub(crate) fn copy_into(store: &KeyStore, directory: &Path) -> Result<(), Failure> {
    let Some(building) = store.unfinished_path() else { return Ok(()) };
    let to = building.join(IN_KEYS);
    let copy = |name: &str| -> std::io::Result<()> {
        std::fs::create_dir_all(&to)?;
        std::fs::copy(directory.join(name), to.join(name))?;
        // Before the keys get their final name: after a crash, complete keys must not lack a file.
        std::fs::File::open(to.join(name))?.sync_all()
    };
    PROVING_FILES.iter().try_for_each(|name| {
        copy(name).map_err(|e| format!("{}: {e}", to.join(name).display())).or_fail(exit::FAILED)
    })?;
    hekaton_files::sync_folder(&to).or_fail(exit::FAILED)
}

#[cfg(feature = "mpi")]
/// The files of a key store that an imported circuit has there, in addition to keys.
pub(crate) fn files_in_keys(manifest: &Manifest) -> Vec<PathBuf> {
    match manifest.circuit == NAME {
        true => PROVING_FILES.iter().map(|name| Path::new(IN_KEYS).join(name)).collect(),
        false => Vec::new(),
    }
}

/// The failure for an input that cannot be opened or executed. Files of other tools say themselves
/// where they are wrong.
pub(crate) fn input_failure(path: &Path, error: &CircuitError, code: u8) -> Failure {
    if let Some(FileError { place, problem, .. }) = error.downcast_ref() {
        // By the path that was given: a pipe was read into memory.
        return Failure::new(exit::BAD_FILE, format!("{}: {place}{problem}", path.display()));
    }
    match error.downcast_ref::<BundleError>() {
        Some(error) => Failure::new(exit::BAD_FILE, error),
        None => Failure::new(code, format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_described_by_the_file_that_was_imported() {
        let digests =
            json!({ "name": "sha.r1cs", "source": "ab".repeat(32), "directory": "c".repeat(64) });
        let shown = "imported circuit sha.r1cs (source abababababababab, circuit cccccccccccccccc)";
        assert_eq!(describe(NAME, &digests), shown);
        let without = json!({ "source": "ab".repeat(32), "directory": "c".repeat(64) });
        assert!(describe(NAME, &without).starts_with("imported circuit (source abab"));
        assert_eq!(describe("chain", &json!({ "links": 2 })), r#"chain {"links":2}"#);
        // Not keys that `setup` made.
        assert_eq!(describe(NAME, &json!({ "directory": 3 })), r#"r1cs {"directory":3}"#);
    }
}
