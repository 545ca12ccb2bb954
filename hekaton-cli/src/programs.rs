//! The circuit of the machine's programs, as the rest of the program knows circuits.

use crate::application::{Application, OpenCircuit, OpenFamily};
use hekaton_circuit::named::{Description, InputFile, ParameterMap};
use hekaton_circuit::{CircuitError, LayoutError, PreparedCircuit};
use hekaton_vm::{Execution, Input, Sizes};
use serde_json::Value;

/// What keys say that their circuit is.
pub(crate) const NAME: &str = "vm";

/// The circuit of one run, which has its input.
pub(crate) struct OnInput {
    pub(crate) execution: Execution,
    pub(crate) input: Input,
}

impl OpenCircuit for OnInput {
    fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        PreparedCircuit::new(&self.execution)
    }

    fn with_input(
        &self,
        _: &InputFile,
        then: &mut dyn FnMut(Result<PreparedCircuit<'_>, LayoutError>),
    ) -> Result<(), CircuitError> {
        then(PreparedCircuit::with_input(&self.execution, &self.input));
        Ok(())
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes([])
    }
}

/// Programs of the machine as far as their keys are concerned: everything else is in `hekaton vm`.
pub(crate) struct Programs;

impl Application for Programs {
    fn description(&self) -> Description {
        Description {
            name: NAME,
            about: "The run of a program for RISC-V",
            input: "A program (ELF) and its input",
            public: "The exit code and the output",
            parameters: &[],
        }
    }

    fn open(
        &self,
        _: &ParameterMap,
        _: Option<&InputFile>,
    ) -> Result<(Box<dyn OpenCircuit>, ParameterMap), CircuitError> {
        Err("the commands for programs are those of `hekaton vm`".into())
    }

    fn family(
        &self,
        given: &ParameterMap,
        _: u64,
    ) -> Result<(OpenFamily, ParameterMap), CircuitError> {
        let sizes = sizes(&Value::Object(given.clone()))?;
        Ok((family(sizes, 1), given.clone()))
    }
}

/// A circuit with all types of the machine, to make and to check families with.
pub(crate) fn family(sizes: Sizes, instances: usize) -> OpenFamily {
    let circuit = OnInput { execution: Execution::of_family(sizes), input: Input::default() };
    OpenFamily { circuit: Box::new(circuit), instances }
}

/// The sizes that a family's parameters say.
pub(crate) fn sizes(parameters: &Value) -> Result<Sizes, String> {
    let sizes = serde_json::from_value(parameters.clone());
    sizes.map_err(|e| format!("its parameters are not those of the machine: {e}"))
}
