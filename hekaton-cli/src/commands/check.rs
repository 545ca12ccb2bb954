//! `hekaton circuits`, `hekaton check`, `hekaton hash`: the commands that need no keys.

use crate::Registry;
use crate::application::OnFile;
use crate::exit::{self, Failure, OrFail};
use crate::hints::explain;
use crate::options::{Check, Hash};
use crate::terminal::output;
use hekaton_circuit::named::{Description, Parameters};
use hekaton_storage::KeyStore;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

pub(crate) fn circuits(registry: &Registry, json: bool) -> Result<(), Failure> {
    let all = registry.descriptions();
    let object: Vec<Value> = all.iter().map(describe).collect();
    let mut lines = Vec::new();
    for d in &all {
        lines.push(format!("{}: {}", d.name, d.about));
        lines.push(format!("  input          {}", d.input));
        lines.push(format!("  public values  {}", d.public));
        for p in d.parameters {
            let default = p.default.map_or_else(String::new, |v| format!(" [default: {v}]"));
            lines.push(format!("  -p {:<12} {}{default}", p.name, p.help));
        }
        lines.push(String::new());
    }
    output::result(json, &json!({ "ok": true, "circuits": object }), lines.join("\n").trim_end())
}

fn describe(d: &Description) -> Value {
    let parameters: Vec<Value> = d
        .parameters
        .iter()
        .map(|p| json!({ "name": p.name, "help": p.help, "default": p.default }))
        .collect();
    json!({
        "name": d.name, "about": d.about, "input": d.input, "public": d.public,
        "parameters": parameters,
    })
}

pub(crate) fn run(command: &Check, registry: &Registry, json: bool) -> Result<(), Failure> {
    let file = exit::read(&command.file)?;
    let given = command.circuit.parameters.iter().cloned().collect();
    let (circuit, _) = registry
        .open(&command.circuit.circuit, &given, Some(&file))
        .map_err(|e| explain(&e))
        .or_fail(exit::USAGE)?;
    let terminal = std::io::stderr().is_terminal();
    let report = circuit.check(&file, &mut |done, all| {
        if terminal {
            let _ = write!(std::io::stderr(), "\rchecked {done} of {all} subcircuits");
        }
    });
    if terminal {
        output::say("");
    }
    let report = report.map_err(|e| match e {
        OnFile::Input(e) => Failure::new(exit::FAILED, e),
        OnFile::Failed(e) => Failure::new(exit::FAILED, e),
    })?;
    let application = registry.get(&command.circuit.circuit);
    let public = application.map_or_else(String::new, |a| a.show_public(&report.public_values));
    if let Some(first) = report.violations.first() {
        let more = report.violations.len() - 1;
        let more =
            if more > 0 { format!("\nand in {more} more subcircuits") } else { String::new() };
        let violations = report.violations.iter().map(|v| {
            let wires: Vec<String> = v.wires.iter().map(ToString::to_string).collect();
            json!({
                "instance": v.instance, "type": v.kind, "constraint": v.constraint,
                "label": v.label, "wires": wires,
            })
        });
        let details = json!({ "violations": violations.collect::<Vec<_>>() });
        let message = format!("a constraint is not satisfied: {first}{more}");
        return Err(Failure { code: exit::REFUSED, message, details });
    }
    let object = json!({
        "ok": true, "subcircuits": report.instances, "constraints": report.constraints,
        "public": public,
    });
    let lines = format!(
        "all {} constraints of {} subcircuits hold\npublic values: {public}",
        output::count(report.constraints as u64),
        report.instances
    );
    output::result(json, &object, &lines)
}

pub(crate) fn hash(command: &Hash, registry: &Registry, json: bool) -> Result<(), Failure> {
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
