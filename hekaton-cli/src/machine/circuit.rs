//! The circuit of the machine, as other commands know circuits.

use super::files::read_program;
use super::trial::does_nothing;
use hekaton_app::product::{Application, OpenCircuit};
use hekaton_circuit::named::{Description, Family, InputFile, ParameterMap};
use hekaton_circuit::{CircuitError, LayoutError, PreparedCircuit};
use hekaton_terminal::exit::Failure;
use hekaton_vm::{Input, Isa, MachineCircuit, Sizes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

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

    // The input was read with the program, before the keys were opened.
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

    fn executes_fast(&self) -> bool {
        true
    }
}

// Registered so that `keys` and `inspect` know keys of the machine by their name. A run needs a program and up to two
// inputs, which one input file cannot be, so proving has commands of its own.
/// The circuits of the machine, as far as their keys are concerned; the commands do everything else.
pub(crate) struct VmCircuits;

impl Application for VmCircuits {
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
        Err("use the commands of `hekaton vm` for programs".into())
    }

    fn family(
        &self,
        given: &ParameterMap,
        _: u64,
    ) -> Result<(Family<Box<dyn OpenCircuit>>, ParameterMap), CircuitError> {
        let kind = kind(&Value::Object(given.clone()))?;
        Ok((family(kind, 1), given.clone()))
    }

    fn complete(&self, given: &mut ParameterMap) -> Result<(), CircuitError> {
        complete(given)
    }

    fn trial_program(
        &self,
        path: Option<&Path>,
        parameters: &ParameterMap,
    ) -> Option<Result<Vec<u8>, Failure>> {
        Some(match path {
            Some(path) => read_program(path),
            None => Ok(does_nothing(parameters)),
        })
    }
}

/// The family of all runs with up to `instances` subcircuits. Its circuit has every type of the machine once.
pub(crate) fn family(kind: FamilyParameters, instances: usize) -> Family<Box<dyn OpenCircuit>> {
    let execution = MachineCircuit::of_family(kind.isa, kind.sizes);
    let circuit: Box<dyn OpenCircuit> = Box::new(OnInput { execution, input: Input::default() });
    // Nothing is open by name: the counts of a run follow from its program and input.
    Family { circuit, instances, open: &[] }
}

/// The parameters of a family, which say which runs its keys serve.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct FamilyParameters {
    #[serde(flatten)]
    pub(crate) sizes: Sizes,
    // Not written for RV32IM: the parameters are part of a family's digest, and families from before TinyRAM have no such field.
    /// The instruction set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) isa: Isa,
    /// The version of the machine that the keys are for; 1 if no version is given.
    #[serde(default)]
    machine: MachineVersion,
}

impl FamilyParameters {
    /// Returns the parameters for keys of this version of the machine.
    pub(crate) fn new(sizes: Sizes, isa: Isa) -> Self {
        Self { sizes, isa, machine: MachineVersion(MACHINE) }
    }
}

/// Completes the parameters of a family for which a ceremony is to make keys: 2^17 rows, RV32IM, and this version of the
/// machine.
fn complete(given: &mut ParameterMap) -> Result<(), CircuitError> {
    const KNOWN: [&str; 2] = ["rows", "isa"];
    if let Some(name) = given.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("-p {name}: the parameters of vm are rows and isa").into());
    }
    given.entry("rows").or_insert_with(|| (1 << 17).into());
    let isa: Isa = match given.get("isa") {
        Some(name) => serde_json::from_value(name.clone())
            .map_err(|e| CircuitError::from(format!("-p isa: {e}")))?,
        // As for `vm setup`.
        None => Isa::default(),
    };
    let sizes: Sizes = serde_json::from_value(Value::Object(given.clone()))
        .map_err(|e| CircuitError::from(format!("-p rows: {e}")))?;
    if let Value::Object(all) = serde_json::to_value(FamilyParameters::new(sizes, isa))? {
        *given = all;
    }
    Ok(())
}

// The digests of the types would refuse keys of another version as well, but without naming the cause.
/// The version of the machine's types and constraints.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(transparent)]
struct MachineVersion(u32);

/// Version 2 has precompiles for hashes, version 3 those for large numbers, and in version 4 rows of tables are constants.
const MACHINE: u32 = 4;

impl Default for MachineVersion {
    fn default() -> Self {
        Self(1)
    }
}

fn is_default(isa: &Isa) -> bool {
    *isa == Isa::default()
}

/// Reads the parameters of a family.
pub(crate) fn kind(parameters: &Value) -> Result<FamilyParameters, String> {
    let kind: FamilyParameters = serde_json::from_value(parameters.clone())
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
        let ours = json!(FamilyParameters::new(Sizes::SMALL, Isa::TinyRam));
        assert_eq!(ours, json!({ "rows": 4096, "isa": "tinyram", "machine": 4 }));
        let found = kind(&ours).unwrap();
        assert_eq!((found.sizes, found.isa), (Sizes::SMALL, Isa::TinyRam));
        for (parameters, says) in [
            (json!({ "rows": 4096 }), "version 1 of the machine, not 4"),
            (json!({ "rows": 4096, "machine": 5 }), "version 5 of the machine, not 4"),
            (json!({ "machine": 4 }), "not those of the machine"),
        ] {
            let error = kind(&parameters).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
