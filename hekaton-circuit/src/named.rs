//! Circuits that a program can offer by name: parameters from the command line, inputs from files, public values as text.

use crate::circuit::{Circuit, CircuitError};
use hekaton_arith::Fr;
use std::collections::BTreeMap;

/// A parameter of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Its value unless given; `None` when it must be given or follows from the file.
    pub default: Option<u64>,
}

/// Values of parameters.
pub type Parameters = BTreeMap<String, u64>;

/// What is wrong with a circuit's name or parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// No such circuit.
    #[error("there is no circuit '{name}'; there are {known}")]
    NoSuchCircuit {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No such parameter.
    #[error("circuit '{circuit}' has no parameter '{name}'; it has {known}")]
    NoSuchParameter {
        /// The circuit.
        circuit: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A parameter is missing.
    #[error("circuit '{circuit}' needs the parameter '{name}' ({help})")]
    Missing {
        /// The circuit.
        circuit: &'static str,
        /// The parameter.
        name: &'static str,
        /// What it is.
        help: &'static str,
    },
    /// A parameter has an impossible value.
    #[error("parameter '{name}' of circuit '{circuit}' is {value}: it must be in {range}")]
    Range {
        /// The circuit.
        circuit: &'static str,
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The values it can have.
        range: &'static str,
    },
}

/// A circuit that a program can offer by name.
pub trait NamedCircuit: Circuit + Sized {
    /// Its name.
    const NAME: &'static str;
    /// One sentence.
    const ABOUT: &'static str;
    /// What the file given to `prove` is.
    const INPUT: &'static str;
    /// What the public values are, and how they are written.
    const PUBLIC: &'static str;
    /// Its parameters.
    const PARAMETERS: &'static [Parameter];

    /// The circuit with these parameters; all are present.
    ///
    /// # Errors
    /// When one is out of range.
    fn with(parameters: &Parameters) -> Result<Self, ParameterError>;

    /// Fills in parameters that follow from an input file.
    fn fit(parameters: &mut Parameters, file: &[u8]);

    /// The bytes of some file of the right size, for estimates.
    fn sample(&self) -> Vec<u8>;

    /// The input from the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn input<'f>(&self, file: &'f [u8]) -> Result<std::borrow::Cow<'f, Self::Input>, CircuitError>
    where
        Self::Input: ToOwned;

    /// The public values computed from a file without any proving, as text.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn hash(&self, file: &[u8]) -> Result<String, CircuitError>;

    /// Public values as text.
    fn show(values: &[Fr]) -> String;

    /// Public values from text.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn read(text: &str) -> Result<Vec<Fr>, CircuitError>;
}

/// All parameters of a circuit: those given, defaults, and those that follow from the file.
///
/// # Errors
/// When a name is unknown or a parameter is missing.
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

/// What a program says about a circuit.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// What its input file is.
    pub input: &'static str,
    /// What its public values are.
    pub public: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// The description of a circuit.
pub fn describe<C: NamedCircuit>() -> Description {
    Description {
        name: C::NAME,
        about: C::ABOUT,
        input: C::INPUT,
        public: C::PUBLIC,
        parameters: C::PARAMETERS,
    }
}

/// The value of a parameter, checked.
///
/// # Errors
/// When it is out of `range`; `text` describes the range.
pub fn in_range(
    circuit: &'static str,
    parameters: &Parameters,
    name: &'static str,
    range: std::ops::RangeInclusive<u64>,
    text: &'static str,
) -> Result<usize, ParameterError> {
    let value = parameters.get(name).copied().unwrap_or_default();
    if range.contains(&value) {
        Ok(value as usize)
    } else {
        Err(ParameterError::Range { circuit, name, value, range: text })
    }
}
