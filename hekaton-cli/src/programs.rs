//! The circuit of the machine's programs, as the rest of the program knows circuits.

use crate::application::{Application, OpenCircuit, OpenFamily};
use hekaton_circuit::named::{Description, InputFile, ParameterMap};
use hekaton_circuit::{CircuitError, LayoutError, PreparedCircuit};
use hekaton_vm::{Input, Isa, MachineCircuit, Sizes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the circuit in keys.
pub(crate) const NAME: &str = "vm";

/// The circuit of one run, which has its input.
pub(crate) struct OnInput {
    pub(crate) execution: MachineCircuit,
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
pub(crate) fn family(Kind { sizes, isa, .. }: Kind, instances: usize) -> OpenFamily {
    let circuit =
        OnInput { execution: MachineCircuit::of_family(isa, sizes), input: Input::default() };
    OpenFamily { circuit: Box::new(circuit), instances }
}

/// The parameters of a family: what its keys are for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Kind {
    #[serde(flatten)]
    pub(crate) sizes: Sizes,
    /// The instruction set; left out for RV32IM, as in families from before there was another one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) isa: Isa,
    /// The version of the machine that the keys are for; 1 if no version is given.
    #[serde(default)]
    machine: Machine,
}

impl Kind {
    /// Returns the parameters for keys of this version of the machine.
    pub(crate) fn new(sizes: Sizes, isa: Isa) -> Self {
        Self { sizes, isa, machine: Machine(MACHINE) }
    }
}

/// The version of the machine: of its types, and of what their constraints say.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(transparent)]
struct Machine(u32);

/// Version 2 has precompiles.
const MACHINE: u32 = 2;

impl Default for Machine {
    fn default() -> Self {
        Self(1)
    }
}

fn is_default(isa: &Isa) -> bool {
    *isa == Isa::default()
}

/// Reads the parameters of a family.
pub(crate) fn kind(parameters: &Value) -> Result<Kind, String> {
    let kind: Kind = serde_json::from_value(parameters.clone())
        .map_err(|e| format!("its parameters are not those of the machine: {e}"))?;
    match kind.machine.0 {
        MACHINE => Ok(kind),
        other => Err(format!("its keys are for version {other} of the machine, not {MACHINE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Keys of another version of the machine are refused by name, and so are keys that are not for a
    /// machine at all.
    #[test]
    fn keys_are_of_this_version() {
        let ours = json!(Kind::new(Sizes::SMALL, Isa::TinyRam));
        assert_eq!(ours, json!({ "rows": 4096, "isa": "tinyram", "machine": 2 }));
        let found = kind(&ours).unwrap();
        assert_eq!((found.sizes, found.isa), (Sizes::SMALL, Isa::TinyRam));
        for (parameters, says) in [
            (json!({ "rows": 4096 }), "version 1 of the machine, not 2"),
            (json!({ "rows": 4096, "machine": 3 }), "version 3 of the machine, not 2"),
            (json!({ "machine": 2 }), "not those of the machine"),
        ] {
            let error = kind(&parameters).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
