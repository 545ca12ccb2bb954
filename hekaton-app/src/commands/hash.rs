//! `hekaton hash`.

use crate::app::App;
use crate::application::OpenCircuit;
use crate::family::{FamilyCircuit, OpenedFamily};
use crate::hints::explain;
use crate::imported;
use crate::imports;
use crate::options::Hash;
use crate::public_values::forms;
use hekaton_circuit::named::{InputFile, ParameterMap};
use hekaton_circuit::{ExecutionError, Masking};
use hekaton_storage::{FamilyStore, KeyStore};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use std::path::Path;

pub(crate) fn run(command: &Hash, app: &App, json: bool) -> Result<(), Failure> {
    let input = exit::input(&command.file)?;
    let (name, circuit, parameters) = open(command, app, &input)?;
    // Public values do not depend on how often tables are looked up, so look-ups are not counted.
    let values = circuit.on_input(&input, |prepared| {
        let execution = prepared.execute_uncounted()?;
        let public = prepared.layout().wiring_without_slots(Masking::Unmasked).public;
        Ok::<_, ExecutionError>((public, execution.public(prepared.layout())))
    });
    let inside = |e: &dyn std::fmt::Display| format!("{}: {e}", command.file.display());
    let (public, values) = values
        .map_err(|e| imported::input_failure(&command.file, &e, exit::FAILED))?
        .map_err(|e| inside(&e))
        .or_fail(exit::FAILED)?;
    let (text, by_name) = forms(app.get(&name), &circuit.public_names(), &public, &values)?;
    output::result(
        json,
        &json!({
            "ok": true, "circuit": name, "parameters": parameters, "public": text,
            "public_values": by_name,
        }),
        &text,
    )
}

/// The circuit of the keys, or the named one, or the program's first one.
fn open(
    command: &Hash,
    app: &App,
    input: &InputFile,
) -> Result<(String, Box<dyn OpenCircuit>, ParameterMap), Failure> {
    let (name, given): (String, ParameterMap) = match &command.keys {
        None => {
            let descriptions = app.descriptions();
            let name = match (&command.circuit, descriptions.first()) {
                (Some(name), _) => name.clone(),
                (None, Some(first)) => first.name.to_owned(),
                (None, None) => {
                    let why = "this program has no circuits: pass --keys or --circuit DIR";
                    return Err(Failure::new(exit::USAGE, why));
                }
            };
            if imported::is_path(&name) {
                let (circuit, parameters) = app.imports()?.open_directory(Path::new(&name))?;
                return Ok((imported::NAME.to_owned(), circuit, parameters));
            }
            (name, command.parameters.map())
        }
        Some(keys) if FamilyStore::is_one(keys) => {
            let family = OpenedFamily::open(keys)?;
            let FamilyCircuit { circuit, parameters, .. } =
                family.circuit(app, &ParameterMap::new(), Some(input))?;
            return Ok((family.manifest.circuit.clone(), circuit, parameters));
        }
        Some(keys) => {
            // The manifest alone, as public values need no keys: those of a large circuit take long to check.
            let manifest =
                KeyStore::manifest(keys).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
            let parameters = serde_json::from_value(manifest.parameters.clone())
                .map_err(|e| format!("{}: manifest.json: parameters: {e}", keys.display()))
                .or_fail(exit::BAD_FILE)?;
            if manifest.circuit == imported::NAME {
                return Ok((
                    manifest.circuit.clone(),
                    imports::in_keys(keys, &manifest, app)?,
                    parameters,
                ));
            }
            (manifest.circuit, parameters)
        }
    };
    let opened = app.open(&name, &given, Some(input));
    let (circuit, parameters) = opened.map_err(|e| explain(&*e)).or_fail(exit::USAGE)?;
    Ok((name, circuit, parameters))
}
