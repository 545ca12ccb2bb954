//! Circuits that a program offers by name: parameters as numbers, inputs from files, public values
//! as text.

use crate::circuit::{Circuit, CircuitError};
use hekaton_arith::Fr;
use std::collections::BTreeMap;

/// A parameter of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: &'static str,
    /// A short description.
    pub help: &'static str,
    /// The default; `None` if the parameter is required or derived from the input file.
    pub default: Option<u64>,
}

/// Values of parameters, by name.
pub type Parameters = BTreeMap<String, u64>;

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
    /// A parameter is out of range.
    #[error("parameter '{name}' of circuit '{circuit}' is {value}: it must be {range}")]
    Range {
        /// The circuit.
        circuit: &'static str,
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: u64,
        /// What it must be, for example "in 1..2^24".
        range: &'static str,
    },
}

/// A circuit that a program offers by name.
pub trait NamedCircuit: Circuit + Sized {
    /// The name of the circuit.
    const NAME: &'static str;
    /// A description in one sentence.
    const ABOUT: &'static str;
    /// What the input file contains.
    const INPUT: &'static str;
    /// What the public values are, and their text form.
    const PUBLIC: &'static str;
    /// The parameters of the circuit.
    const PARAMETERS: &'static [Parameter];

    /// Creates the circuit from its parameters, all of which are present.
    ///
    /// # Errors
    /// If a parameter is out of range.
    fn with(parameters: &Parameters) -> Result<Self, ParameterError>;

    /// Adds parameters that can be derived from an input file; given ones stay as they are.
    fn fit(parameters: &mut Parameters, file: &[u8]);

    /// Returns the bytes of an input file of the right size, for estimates.
    fn sample(&self) -> Vec<u8>;

    /// Parses an input file.
    ///
    /// # Errors
    /// If the file is not a valid input.
    fn input<'f>(&self, file: &'f [u8]) -> Result<std::borrow::Cow<'f, Self::Input>, CircuitError>
    where
        Self::Input: ToOwned;

    /// Computes the public values of a file natively, without proving, as text.
    ///
    /// # Errors
    /// If the file is not a valid input.
    fn hash(&self, file: &[u8]) -> Result<String, CircuitError>;

    /// Formats public values as text.
    fn show(values: &[Fr]) -> String;

    /// Parses public values from text.
    ///
    /// # Errors
    /// If the text is malformed.
    fn read(text: &str) -> Result<Vec<Fr>, CircuitError>;
}

/// Completes the given parameters of a circuit with defaults and those derived from the file.
///
/// # Errors
/// If a name is unknown or a required parameter is missing.
pub fn complete<C: NamedCircuit>(
    given: &Parameters,
    file: Option<&[u8]>,
) -> Result<Parameters, ParameterError> {
    let known = || C::PARAMETERS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
    if let Some(name) = given.keys().find(|name| C::PARAMETERS.iter().all(|p| p.name != *name)) {
        return Err(ParameterError::NoSuchParameter {
            circuit: C::NAME,
            name: name.clone(),
            known: known(),
        });
    }
    let mut all = given.clone();
    for p in C::PARAMETERS {
        if let Some(default) = p.default {
            all.entry(p.name.to_owned()).or_insert(default);
        }
    }
    if let Some(file) = file {
        C::fit(&mut all, file);
    }
    match C::PARAMETERS.iter().find(|p| !all.contains_key(p.name)) {
        Some(p) => Err(ParameterError::Missing { circuit: C::NAME, name: p.name, help: p.help }),
        None => Ok(all),
    }
}

/// A circuit's description for users.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The name of the circuit.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// What the input file contains.
    pub input: &'static str,
    /// What the public values are.
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

/// Returns the value of a parameter after checking it against `range`, which `text` describes, for
/// example "in 1..2^24".
///
/// # Errors
/// If the value is out of range.
pub fn in_range(
    circuit: &'static str,
    parameters: &Parameters,
    name: &'static str,
    range: std::ops::RangeInclusive<u64>,
    text: &'static str,
) -> Result<usize, ParameterError> {
    let value = parameters.get(name).copied().unwrap_or_default();
    match usize::try_from(value) {
        Ok(size) if range.contains(&value) => Ok(size),
        _ => Err(ParameterError::Range { circuit, name, value, range: text }),
    }
}
