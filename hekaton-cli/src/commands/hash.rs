//! `hekaton hash`.

use crate::Registry;
use crate::exit::{self, Failure, OrFail};
use crate::hints::explain;
use crate::options::Hash;
use crate::terminal::output;
use hekaton_circuit::named::Parameters;
use hekaton_storage::KeyStore;
use serde_json::json;

pub(crate) fn run(command: &Hash, registry: &Registry, json: bool) -> Result<(), Failure> {
    let file = exit::read(&command.file)?;
    let (name, given): (String, Parameters) = match &command.keys {
        None => (command.circuit.clone(), command.parameters.iter().cloned().collect()),
        Some(keys) => {
            let manifest =
                KeyStore::manifest(keys).map_err(|e| explain(&e)).or_fail(exit::BAD_FILE)?;
            (manifest.circuit, serde_json::from_value(manifest.parameters).or_fail(exit::BAD_FILE)?)
        }
    };
    let (circuit, parameters) =
        registry.open(&name, &given, Some(&file)).map_err(|e| explain(&e)).or_fail(exit::USAGE)?;
    let public = circuit.hash(&file).or_fail(exit::FAILED)?;
    output::result(
        json,
        &json!({ "ok": true, "circuit": name, "parameters": parameters, "public": public }),
        &public,
    )
}
