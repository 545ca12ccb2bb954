//! `hekaton check`.

use crate::Registry;
use crate::application::OnFile;
use crate::exit::{self, Failure, OrFail};
use crate::hints::explain;
use crate::options::Check;
use crate::terminal::output;
use serde_json::json;
use std::io::{IsTerminal, Write};

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
