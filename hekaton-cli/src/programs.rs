//! The circuit of the machine's programs, as the rest of the program knows circuits.

use crate::application::{Application, OpenCircuit, OpenFamily};
use hekaton_circuit::named::{Description, InputFile, ParameterMap};
use hekaton_circuit::{CircuitError, LayoutError, PreparedCircuit};
use hekaton_vm::{Execution, Input, Isa, Sizes};
use serde::{Deserialize, Serialize};
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
            about: "The run of a program for RISC-V or TinyRAM",
            input: "A program and its input",
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
        let kind = kind(&Value::Object(given.clone()))?;
        Ok((family(kind, 1), given.clone()))
    }
}

/// A circuit with all types of the machine, to make and to check families with.
pub(crate) fn family(Kind { sizes, isa }: Kind, instances: usize) -> OpenFamily {
    let circuit = OnInput { execution: Execution::of_family(isa, sizes), input: Input::default() };
    OpenFamily { circuit: Box::new(circuit), instances }
}

/// What the keys of a family are for: their parameters.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Kind {
    #[serde(flatten)]
    pub(crate) sizes: Sizes,
    /// Left out for RV32IM, as in families from before there was another one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) isa: Isa,
}

fn is_default(isa: &Isa) -> bool {
    *isa == Isa::default()
}

/// What a family's parameters say.
pub(crate) fn kind(parameters: &Value) -> Result<Kind, String> {
    let kind = serde_json::from_value(parameters.clone());
    kind.map_err(|e| format!("its parameters are not those of the machine: {e}"))
}
