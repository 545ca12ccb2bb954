//! `hekaton circuits`, `hekaton check`, `hekaton hash`: all that needs no keys.

use crate::exit::{self, Failure, OrFail};
use crate::options::{Check, Hash};
use crate::output;
use circuits::registry::{self, Description};
use circuits::{AnyCircuit, Named, Parameters, with_circuit};
use hekaton_core::KeyDirectory;
use hekaton_core::circuit::CheckReport;
use serde_json::{Value, json};
use std::borrow::Borrow;
use std::io::{IsTerminal, Write};

pub(crate) fn circuits(json: bool) -> Result<(), Failure> {
    let all = registry::all();
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
    let parameters: Vec<Value> =
        d.parameters.iter().map(|p| json!({ "name": p.name, "help": p.help, "default": p.default })).collect();
    json!({ "name": d.name, "about": d.about, "input": d.input, "public": d.public, "parameters": parameters })
}

pub(crate) fn run(command: &Check, json: bool) -> Result<(), Failure> {
    let file = exit::read(&command.file)?;
    let given = command.circuit.parameters.iter().cloned().collect();
    let (circuit, _) = AnyCircuit::new(&command.circuit.circuit, &given, Some(&file)).or_fail(exit::USAGE)?;
    let report = with_circuit!(&circuit, circuit => check_file(circuit, &file))?;
    let public = AnyCircuit::show_public(&command.circuit.circuit, &report.public_values).unwrap_or_default();
    if let Some(first) = report.violations.first() {
        let more = report.violations.len() - 1;
        let more = if more > 0 { format!("\nand in {more} more subcircuits") } else { String::new() };
        let violations = report.violations.iter().map(|v| {
            let wires: Vec<String> = v.wires.iter().map(ToString::to_string).collect();
            json!({
                "instance": v.instance, "type": v.kind, "constraint": v.constraint, "label": v.label, "wires": wires,
            })
        });
        let details = json!({ "violations": violations.collect::<Vec<_>>() });
        let message = format!("a constraint does not hold: {first}{more}");
        return Err(Failure { code: exit::REFUSED, message, details });
    }
    let object = json!({
        "ok": true, "subcircuits": report.instances, "constraints": report.constraints, "public": public,
    });
    let lines = format!(
        "all {} constraints of {} subcircuits hold\npublic values: {public}",
        output::count(report.constraints as u64),
        report.instances
    );
    output::result(json, &object, &lines)
}

fn check_file<'f, C: Named>(circuit: &C, file: &'f [u8]) -> Result<CheckReport, Failure>
where
    C::Input: ToOwned + 'f,
{
    let input = circuit.input(file).or_fail(exit::FAILED)?;
    let terminal = std::io::stderr().is_terminal();
    let report = hekaton_core::circuit::check(circuit, input.borrow(), |done, all| {
        if terminal {
            let _ = write!(std::io::stderr(), "\rchecked {done} of {all} subcircuits");
        }
    });
    if terminal {
        output::say("");
    }
    report.or_fail(exit::FAILED)
}

pub(crate) fn hash(command: &Hash, json: bool) -> Result<(), Failure> {
    let file = exit::read(&command.file)?;
    let (name, given): (String, Parameters) = match &command.keys {
        None => (command.circuit.clone(), command.parameters.iter().cloned().collect()),
        Some(keys) => {
            let manifest = KeyDirectory::manifest(keys).or_fail(exit::BAD_FILE)?;
            (manifest.circuit, serde_json::from_value(manifest.parameters).or_fail(exit::BAD_FILE)?)
        }
    };
    let (circuit, parameters) = AnyCircuit::new(&name, &given, Some(&file)).or_fail(exit::USAGE)?;
    let public = with_circuit!(&circuit, circuit => circuit.hash(&file)).or_fail(exit::FAILED)?;
    output::result(json, &json!({ "ok": true, "circuit": name, "parameters": parameters, "public": public }), &public)
}
