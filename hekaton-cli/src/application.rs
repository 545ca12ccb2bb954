//! Circuits behind one object-safe interface, so that commands work with any of them.

use hekaton_circuit::named::{
    Description, Family, InputFile, NamedCircuit, ParameterMap, create, create_family, describe,
};
use hekaton_circuit::{CircuitError, Fr, LayoutError, PreparedCircuit};
use hekaton_terminal::exit::Failure;
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::path::Path;

// `NamedCircuit` has associated types and constants, so it cannot be a trait object.
/// A circuit that the program offers, before its parameters are known.
pub(crate) trait Application: Sync {
    /// Its name, parameters, and help texts.
    fn description(&self) -> Description;

    /// The circuit with these parameters, and all parameters: those that are not given have their
    /// defaults or follow from the input.
    fn open(
        &self,
        given: &ParameterMap,
        input: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError>;

    /// The family of circuits with these parameters for inputs of up to `bytes` bytes, and the
    /// parameters that all of them share.
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
}

/// A circuit with its parameters.
pub(crate) trait OpenCircuit: Sync {
    /// The circuit without an input.
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError>;

    /// The number of subcircuits, if it is known before there is a layout.
    fn subcircuits(&self) -> Option<usize> {
        None
    }

    // A callback, because a prepared circuit borrows an input whose type is known only here.
    /// Opens an input, and calls `then` with the circuit on that input.
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
    fn inspect(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    /// The circuit directory of an imported circuit.
    fn directory(&self) -> Option<&Path> {
        None
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
        Ok((Box::new(Opened(circuit)), all))
    }

    fn family(
        &self,
        given: &ParameterMap,
        bytes: u64,
    ) -> Result<(Family<Box<dyn OpenCircuit>>, ParameterMap), CircuitError> {
        let (Family { circuit, instances, open }, shared) = create_family::<C>(given, bytes)?;
        let circuit: Box<dyn OpenCircuit> = Box::new(Opened(circuit));
        Ok((Family { circuit, instances, open }, shared))
    }

    fn show_public(&self, values: &[Fr]) -> Option<String> {
        C::show(values)
    }

    fn read_public(&self, text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        C::read(text)
    }
}

struct Opened<C>(C);

impl<C: NamedCircuit> OpenCircuit for Opened<C> {
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        PreparedCircuit::new(&self.0)
    }

    fn subcircuits(&self) -> Option<usize> {
        self.0.subcircuits()
    }

    fn with_input(
        &self,
        input: &InputFile,
        then: &mut dyn FnMut(Result<PreparedCircuit<'_>, LayoutError>),
    ) -> Result<(), CircuitError> {
        let opened = self.0.open(input)?;
        then(PreparedCircuit::with_input(&self.0, opened.borrow()));
        Ok(())
    }

    fn sample(&self) -> InputFile {
        self.0.sample()
    }
}
