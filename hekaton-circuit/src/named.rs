//! Circuits that a program offers by name: parameters of any serde type, inputs from files, public
//! values as text.

use crate::circuit::Circuit;
use crate::circuit_error::CircuitError;
use hekaton_arith::Fr;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A parameter, as `--help` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name of the parameter, a field of the serialized [`NamedCircuit::Parameters`].
    pub name: &'static str,
    /// A short description.
    pub help: &'static str,
    /// The default, written as on a command line; `None` if the parameter is required, or derived
    /// from the input file.
    pub default: Option<&'static str>,
}

/// Values of parameters, by name: the JSON object that [`NamedCircuit::Parameters`] is read from.
pub type ParameterMap = Map<String, Value>;

/// Why a circuit's name or parameters are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The program has no circuit of this name.
    #[error("there is no circuit '{name}'; available: {known}")]
    NoSuchCircuit {
        /// The requested name.
        name: String,
        /// The available names.
        known: String,
    },
    /// The circuit has no parameter of this name.
    #[error("circuit '{circuit}' has no parameter '{name}'; its parameters are {known}")]
    NoSuchParameter {
        /// The circuit.
        circuit: &'static str,
        /// The requested name.
        name: String,
        /// The available names.
        known: String,
    },
    /// A required parameter is missing.
    #[error("circuit '{circuit}' needs the parameter '{name}' ({help})")]
    Missing {
        /// The circuit.
        circuit: &'static str,
        /// The parameter.
        name: &'static str,
        /// Its description.
        help: &'static str,
    },
    /// A parameter has a value of the wrong kind.
    #[error("parameter '{name}' of circuit '{circuit}' is not usable: {why}")]
    Unusable {
        /// The circuit.
        circuit: &'static str,
        /// The parameter.
        name: String,
        /// The reason it is not usable.
        why: String,
    },
    /// The parameters are not those of the circuit, for a reason that names none of them.
    #[error("the parameters of circuit '{circuit}' are not usable: {why}")]
    Invalid {
        /// The circuit.
        circuit: &'static str,
        /// The reason they are not usable.
        why: String,
    },
    /// The circuit has no families.
    #[error(
        "the types of circuit '{circuit}' depend on the length of the input, so it has no key family: \
         its keys are for the length of --for FILE, or for that of its parameters"
    )]
    NoFamily {
        /// The circuit.
        circuit: &'static str,
    },
    /// A parameter that a family leaves open was given.
    #[error("keys of a family of circuit '{circuit}' serve every value of '{name}': leave it out")]
    Open {
        /// The circuit.
        circuit: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// A parameter is out of range.
    #[error("parameter '{name}' of circuit '{circuit}' is {value}: it must be {range}")]
    Range {
        /// The circuit.
        circuit: &'static str,
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: u64,
        /// The allowed range, for example "in 1..2^24".
        range: &'static str,
    },
}

impl ParameterError {
    /// Checks a number against `range`, which `text` describes, for example "in 1..2^24".
    ///
    /// # Errors
    /// If the number is out of range.
    pub fn check_range(
        circuit: &'static str,
        name: &'static str,
        value: usize,
        range: std::ops::RangeInclusive<usize>,
        text: &'static str,
    ) -> Result<(), Self> {
        match range.contains(&value) {
            true => Ok(()),
            false => Err(Self::Range { circuit, name, value: value as u64, range: text }),
        }
    }
}

/// The input of a run before it is read: a file, or bytes in memory.
#[derive(Clone, Debug)]
pub struct InputFile(Source);

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Memory(Vec<u8>),
}

impl InputFile {
    /// A file. Nothing is read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// Bytes in memory, as if they were a file.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Source::Memory(bytes.into()))
    }

    /// The path of the file, unless it is in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Source::File(path) => Some(path),
            Source::Memory(_) => None,
        }
    }

    /// The length in bytes.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn length(&self) -> io::Result<u64> {
        match &self.0 {
            Source::File(path) => Ok(std::fs::metadata(path)?.len()),
            Source::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Opens the input as a stream.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match &self.0 {
            Source::File(path) => Box::new(io::BufReader::new(std::fs::File::open(path)?)),
            Source::Memory(bytes) => Box::new(&bytes[..]),
        })
    }

    /// Reads the whole input into memory.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        match &self.0 {
            Source::File(path) => std::fs::read(path),
            Source::Memory(bytes) => Ok(bytes.clone()),
        }
    }

    /// Reads the whole input as text.
    ///
    /// # Errors
    /// If the file cannot be read, or is not UTF-8.
    pub fn read_text(&self) -> io::Result<String> {
        let mut text = String::new();
        self.reader()?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// The BLAKE3 digest of the input, which identifies a run. It is read as a stream.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn digest(&self) -> io::Result<[u8; 32]> {
        // As a stream: inputs may be larger than memory.
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(self.reader()?)?;
        Ok(*hasher.finalize().as_bytes())
    }
}

/// A family of circuits: those with the same types, for inputs of all lengths up to a bound. One setup
/// serves all of them (spec: key-family#derive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family<C> {
    /// A circuit with all types that circuits of the family have.
    pub circuit: C,
    /// The largest number of subcircuits of a circuit of the family.
    pub instances: usize,
    /// The names of the parameters in which circuits of the family differ.
    pub open: &'static [&'static str],
}

/// A circuit that a program offers by name.
pub trait NamedCircuit: Circuit + Sized + 'static {
    /// The name of the circuit.
    const NAME: &'static str;
    /// A description in one sentence.
    const ABOUT: &'static str;
    /// A description of the input file's contents.
    const INPUT: &'static str;
    /// A description of the public values, and their text form if the circuit has one of its own.
    const PUBLIC: &'static str;
    /// The parameters: any serde type that is an object with one field per parameter.
    type Parameters: Serialize + DeserializeOwned;
    /// Descriptions of the parameters.
    const PARAMETERS: &'static [Parameter];
    /// The owner of an input that was opened.
    type Opened: Borrow<Self::Input>;

    /// Creates the circuit from its parameters.
    ///
    /// # Errors
    /// If a parameter is out of range, for example [`ParameterError::Range`].
    fn with(parameters: Self::Parameters) -> Result<Self, CircuitError>;

    /// Adds parameters that can be derived from an input file; given ones must stay as they are.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn fit(parameters: &mut ParameterMap, input: &InputFile) -> Result<(), CircuitError> {
        let _ = (parameters, input);
        Ok(())
    }

    /// The family of circuits with these parameters for inputs of up to `bytes` bytes; `None`, which
    /// is the default, for circuits whose types depend on the input's length. Parameters that are
    /// open may be missing.
    ///
    /// # Errors
    /// If a parameter is out of range.
    fn family(parameters: &ParameterMap, bytes: u64) -> Result<Option<Family<Self>>, CircuitError> {
        let _ = (parameters, bytes);
        Ok(None)
    }

    /// The number of subcircuits, if it is known without a layout. A circuit that is too large for a family
    /// is then refused before its layout takes time and memory.
    fn subcircuits(&self) -> Option<usize> {
        None
    }

    /// Opens an input file.
    ///
    /// # Errors
    /// If the file is not a valid input.
    fn open(&self, input: &InputFile) -> Result<Self::Opened, CircuitError>;

    /// Returns an input of the right size, for estimates.
    fn sample(&self) -> InputFile;

    /// Formats public values in a text form of the circuit's own; `None` for the JSON form.
    fn show(values: &[Fr]) -> Option<String> {
        let _ = values;
        None
    }

    /// Parses the text form of [`show`](Self::show); `None` if the circuit has none.
    fn read(text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        let _ = text;
        None
    }
}

/// A value from a command line: JSON if it is JSON, otherwise a string.
pub fn parameter_value(text: &str) -> Value {
    // Numbers and flags are JSON as they are written; other texts rarely are, so they need no quotes.
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The given parameters, whose names are checked, and the defaults of others.
fn with_defaults<C: NamedCircuit>(given: &ParameterMap) -> Result<ParameterMap, ParameterError> {
    let known = || C::PARAMETERS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
    if let Some(name) = given.keys().find(|name| C::PARAMETERS.iter().all(|p| p.name != *name)) {
        let (circuit, name, known) = (C::NAME, name.clone(), known());
        return Err(ParameterError::NoSuchParameter { circuit, name, known });
    }
    // Defaults have the form of the command line, so that `--help` shows exactly what is used.
    let mut all = given.clone();
    for p in C::PARAMETERS {
        if let Some(default) = p.default {
            all.entry(p.name.to_owned()).or_insert_with(|| parameter_value(default));
        }
    }
    Ok(all)
}

/// The family of a circuit for inputs of up to `bytes` bytes, with the given parameters and the
/// defaults of others. Returns the parameters that its circuits share, too.
///
/// # Errors
/// If the circuit has no families, a name is unknown or open, or a value is not usable.
pub fn create_family<C: NamedCircuit>(
    given: &ParameterMap,
    bytes: u64,
) -> Result<(Family<C>, ParameterMap), CircuitError> {
    let all = with_defaults::<C>(given)?;
    let family = C::family(&all, bytes)?.ok_or(ParameterError::NoFamily { circuit: C::NAME })?;
    // A given value would be lost: each circuit of the family has its own.
    match family.open.iter().find(|name| all.contains_key(**name)) {
        None => Ok((family, all)),
        Some(name) => Err(ParameterError::Open { circuit: C::NAME, name }.into()),
    }
}

/// Completes the given parameters of a circuit with defaults and those derived from the input, and
/// creates the circuit. Returns all parameters, too.
///
/// # Errors
/// If a name is unknown, a required parameter is missing, or a value is not usable.
pub fn create<C: NamedCircuit>(
    given: &ParameterMap,
    input: Option<&InputFile>,
) -> Result<(C, ParameterMap), CircuitError> {
    let mut all = with_defaults::<C>(given)?;
    if let Some(input) = input {
        C::fit(&mut all, input)?;
    }
    match serde_path_to_error::deserialize(Value::Object(all.clone())) {
        Ok(parameters) => Ok((C::with(parameters)?, all)),
        Err(e) => Err(unusable::<C>(&all, &e).into()),
    }
}

/// The error for parameters that serde refuses. serde does not know help texts, and calls a missing parameter a field.
fn unusable<C: NamedCircuit>(
    all: &ParameterMap,
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> ParameterError {
    let (circuit, name) = (C::NAME, error.path().to_string());
    let why = numbers_in_words(&error.inner().to_string());
    // The path of a missing field is that of the whole object, and a parameter may be optional.
    let is_named = C::PARAMETERS.iter().any(|p| name.split(['.', '[']).next() == Some(p.name));
    match C::PARAMETERS.iter().find(|p| !all.contains_key(p.name)) {
        _ if is_named => ParameterError::Unusable { circuit, name, why },
        Some(p) => ParameterError::Missing { circuit, name: p.name, help: p.help },
        None => ParameterError::Invalid { circuit, why },
    }
}

/// serde's text without the names of Rust's types of numbers.
fn numbers_in_words(text: &str) -> String {
    match text.rsplit_once("expected ") {
        Some((what, "u8" | "u16" | "u32" | "u64" | "u128" | "usize")) => {
            format!("{what}expected a whole number that is not negative and not too large")
        }
        Some((what, "i8" | "i16" | "i32" | "i64" | "i128" | "isize")) => {
            format!("{what}expected a whole number that is not too large")
        }
        Some((what, "f32" | "f64")) => format!("{what}expected a number"),
        _ => text.to_owned(),
    }
}

/// A circuit's description for users.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The name of the circuit.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// A description of the input file's contents.
    pub input: &'static str,
    /// A description of the public values.
    pub public: &'static str,
    /// The parameters of the circuit.
    pub parameters: &'static [Parameter],
}

/// Returns the description of a circuit.
pub fn describe<C: NamedCircuit>() -> Description {
    Description {
        name: C::NAME,
        about: C::ABOUT,
        input: C::INPUT,
        public: C::PUBLIC,
        parameters: C::PARAMETERS,
    }
}
