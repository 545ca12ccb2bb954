//! Circuits behind one object-safe interface, so that commands work with any of them.

use hekaton_circuit::named::{
    Description, Family, InputFile, NamedCircuit, ParameterMap, create, create_family, describe,
};
use hekaton_circuit::unique::Verdicts;
use hekaton_circuit::{CircuitError, Fr, LayoutError, PreparedCircuit};
use hekaton_core::{ProverKeys, VerifyingKey};
use hekaton_storage::Manifest;
use hekaton_terminal::exit::{self, Failure};
use serde_json::Value;
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::path::Path;

// `NamedCircuit` has associated types and constants, so it cannot be a trait object.
/// A circuit that the program offers, before its parameters are known.
pub trait Application: Sync {
    /// Its name, parameters, and help texts.
    fn description(&self) -> Description;

    /// The circuit with these parameters, and all parameters: those that are not given have their
    /// defaults or follow from the input.
    ///
    /// # Errors
    /// Fails if a parameter is missing, unknown or out of range, or if the input is not one of the circuit's.
    fn open(
        &self,
        given: &ParameterMap,
        input: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError>;

    /// The family of circuits with these parameters for inputs of up to `bytes` bytes, and the
    /// parameters that all of them share.
    ///
    /// # Errors
    /// Fails if a parameter is unknown or out of range, or if the circuit has no families.
    fn family(
        &self,
        given: &ParameterMap,
        bytes: u64,
    ) -> Result<(Family<Box<dyn OpenCircuit>>, ParameterMap), CircuitError>;

    /// Formats public values in the circuit's own text form, if it has one.
    fn show_public(&self, values: &[Fr]) -> Option<String> {
        let _ = values;
        None
    }

    /// Parses the circuit's own text form of public values, if it has one.
    fn read_public(&self, text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        let _ = text;
        None
    }

    /// Completes the parameters of a family for which a ceremony is to make keys.
    ///
    /// # Errors
    /// Fails if a parameter is unknown or out of range.
    fn complete(&self, given: &mut ParameterMap) -> Result<(), CircuitError> {
        let _ = given;
        Ok(())
    }

    /// The program of a ceremony's trial: `path`, or one that ends at once. `None`, the default, for circuits whose inputs are not
    /// programs. The program offers the commands `NAME run`, `NAME prove` and `NAME verify`, where `NAME` is the circuit's name.
    fn trial_program(
        &self,
        path: Option<&Path>,
        parameters: &ParameterMap,
    ) -> Option<Result<Vec<u8>, Failure>> {
        let _ = (path, parameters);
        None
    }
}

/// The circuits that a program imports from other tools. Each is a directory, which is named by its path, and has one size.
pub trait Imports: Application {
    /// Opens a circuit directory. Returns the circuit, and its parameters, which identify the directory and its source.
    ///
    /// # Errors
    /// Fails if the directory is missing, incomplete or damaged.
    fn open_directory(&self, path: &Path) -> Result<(Box<dyn OpenCircuit>, ParameterMap), Failure>;

    /// The files of a circuit directory that proving needs, which key stores have a copy of.
    fn proving_files(&self) -> &'static [&'static str];

    /// The names of public values in a circuit directory that the verifying key names the digest of; empty if it has none, or if
    /// the key does not bind it.
    fn public_names(&self, directory: &Path, key: &VerifyingKey) -> Vec<String>;

    /// Compares the constraints in keys with those of their source. Returns a line about the result.
    ///
    /// # Errors
    /// Fails if they differ, or if a file is missing or damaged.
    fn compare_keys(
        &self,
        source: &Path,
        keys: (&Path, &Manifest, &ProverKeys),
    ) -> Result<String, Failure>;

    /// Checks a witness of constraints that are not imported yet.
    ///
    /// # Errors
    /// Fails if a file is missing or damaged, or if a constraint does not hold.
    fn check_source(&self, source: &SourceCheck<'_>) -> Result<CheckedSource, Failure>;

    /// Describes a circuit directory, as JSON and as lines.
    ///
    /// # Errors
    /// Fails if the directory is incomplete or damaged.
    fn inspect(&self, directory: &Path) -> Result<(Value, String), Failure>;
}

/// The files of a check before the import, and what to ask.
#[derive(Clone, Copy, Debug)]
pub struct SourceCheck<'a> {
    /// The constraints.
    pub source: &'a Path,
    /// The names of wires.
    pub symbols: Option<&'a Path>,
    /// The witness.
    pub witness: &'a Path,
    /// `true` to ask if values follow from the inputs.
    pub unique: bool,
    /// The file for a second witness.
    pub second: Option<&'a Path>,
}

/// The result of a check before the import.
#[derive(Clone, Debug)]
pub struct CheckedSource {
    /// The number of constraints.
    pub constraints: u64,
    /// The public values.
    pub public: Vec<Fr>,
    /// Their names; empty if two of them are equal.
    pub names: Vec<String>,
    /// Notices about parts of the circuit that are allowed but probably not intended.
    pub notices: Vec<String>,
    /// The answer to the question whether values follow from the inputs, if it was asked.
    pub unique: Option<Answered>,
}

/// The answer to the question whether the values of a witness follow from the inputs, for a circuit in one piece.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The given values, in words.
    pub given: String,
    /// The verdicts on the others.
    pub verdicts: Verdicts,
}

/// The error for an input file that is itself damaged or of the wrong kind, in contrast to one that does not satisfy the circuit.
/// Its text has no path: the command adds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile(pub String);

impl std::fmt::Display for BadFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadFile {}

/// A circuit with its parameters.
pub trait OpenCircuit: Sync {
    /// The circuit without an input.
    ///
    /// # Errors
    /// Fails if the circuit cannot be laid out.
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError>;

    /// The number of subcircuits, if it is known before there is a layout.
    fn subcircuits(&self) -> Option<usize> {
        None
    }

    // A callback, because a prepared circuit borrows an input whose type is known only here.
    /// Opens an input, and calls `then` with the circuit on that input.
    ///
    /// # Errors
    /// Fails if the file is not an input of the circuit; with [`BadFile`] if the file itself is damaged.
    fn with_input(
        &self,
        input: &InputFile,
        then: &mut dyn FnMut(Result<PreparedCircuit<'_>, LayoutError>),
    ) -> Result<(), CircuitError>;

    /// An input of the right size.
    fn sample(&self) -> InputFile;

    /// The names that the circuit's author gave its public values, if the layout does not have them:
    /// one distinct name for each value, or an empty list.
    fn public_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reads once all files that a check or a setup needs. Returns notices about parts of the circuit
    /// that are allowed but probably not intended.
    ///
    /// # Errors
    /// Fails if a file is missing or damaged.
    fn inspect(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    /// The circuit directory of an imported circuit.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Compares the constraints of an imported circuit with those of their source.
    ///
    /// # Errors
    /// Fails if they differ, if a file is missing or damaged, or if the circuit was not imported.
    fn compare(&self, source: &Path) -> Result<(), Failure> {
        let _ = source;
        let why = "--r1cs is for imported circuits; this one has code";
        Err(Failure::new(exit::USAGE, why))
    }

    /// Asks of an imported circuit whether the values of a witness follow from the inputs, and writes a second witness to `second`
    /// if there is one. `None` for circuits with code.
    fn unique(&self, witness: &Path, second: Option<&Path>) -> Option<Result<Answered, Failure>> {
        let _ = (witness, second);
        None
    }

    /// Reports whether executing the circuit takes a rank less time than receiving its values from rank 0.
    fn executes_fast(&self) -> bool {
        false
    }
}

impl dyn OpenCircuit + '_ {
    /// Opens an input, and returns the result of `then` with the circuit on that input.
    pub(crate) fn on_input<R>(
        &self,
        input: &InputFile,
        then: impl FnOnce(&PreparedCircuit<'_>) -> R,
    ) -> Result<R, CircuitError> {
        let (mut then, mut result) = (Some(then), None);
        self.with_input(input, &mut |prepared| {
            let laid_out = prepared.map_err(|e| CircuitError::from(format!("layout: {e}")));
            result = then.take().map(|then| laid_out.map(|prepared| then(&prepared)));
        })?;
        // A circuit that returns without an error and without a call would otherwise look like success.
        result.unwrap_or_else(|| Err("the circuit did not use its input".into()))
    }

    /// Checks that a file is an input of the circuit.
    pub(crate) fn check_input(&self, input: &InputFile) -> Result<(), CircuitError> {
        self.on_input(input, |_| ())
    }
}

/// The application for a circuit type.
pub(crate) struct OfType<C>(pub(crate) PhantomData<fn() -> C>);

impl<C: NamedCircuit> Application for OfType<C> {
    fn description(&self) -> Description {
        describe::<C>()
    }

    fn open(
        &self,
        given: &ParameterMap,
        input: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError> {
        let (circuit, all) = create::<C>(given, input)?;
        Ok((Box::new(Opened { circuit, parameters: all.clone() }), all))
    }

    fn family(
        &self,
        given: &ParameterMap,
        bytes: u64,
    ) -> Result<(Family<Box<dyn OpenCircuit>>, ParameterMap), CircuitError> {
        let (Family { circuit, instances, open }, shared) = create_family::<C>(given, bytes)?;
        let circuit: Box<dyn OpenCircuit> =
            Box::new(Opened { circuit, parameters: shared.clone() });
        Ok((Family { circuit, instances, open }, shared))
    }

    fn show_public(&self, values: &[Fr]) -> Option<String> {
        C::show(values)
    }

    fn read_public(&self, text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        C::read(text)
    }
}

struct Opened<C> {
    circuit: C,
    parameters: ParameterMap,
}

impl<C> Opened<C> {
    /// The error of a layout, with the parameters that may be its cause.
    fn with_parameters(&self, error: LayoutError) -> LayoutError {
        let parameters: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        match parameters.is_empty() {
            true => error,
            false => format!("{error}; the parameters are {}", parameters.join(", ")).into(),
        }
    }
}

impl<C: NamedCircuit> OpenCircuit for Opened<C> {
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        PreparedCircuit::new(&self.circuit).map_err(|e| self.with_parameters(e))
    }

    fn subcircuits(&self) -> Option<usize> {
        self.circuit.subcircuits()
    }

    fn with_input(
        &self,
        input: &InputFile,
        then: &mut dyn FnMut(Result<PreparedCircuit<'_>, LayoutError>),
    ) -> Result<(), CircuitError> {
        let opened = self.circuit.open(input)?;
        let prepared = PreparedCircuit::with_input(&self.circuit, opened.borrow());
        then(prepared.map_err(|e| self.with_parameters(e)));
        Ok(())
    }

    fn sample(&self) -> InputFile {
        self.circuit.sample()
    }
}
