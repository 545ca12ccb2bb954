//! `hekaton check`.

mod source;
mod unique;

use crate::app::App;
use crate::imported;
use crate::options::Check;
use crate::public_values;
use hekaton_circuit::{CheckOptions, CheckReport, Masking, PublicWire, Violation, check_with};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output::{self, Inputs};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::Path;
use unique::Subject;

pub(crate) fn run(command: &Check, app: &App, json: bool) -> Result<(), Failure> {
    if let Some(second) = &command.unique.second {
        let inputs = Inputs { files: &[&command.file], ..Inputs::default() };
        output::check_output(second, "--second", &inputs)?;
    }
    // The constraints of circom, before they are imported.
    let named = command.circuit.circuit.as_deref().filter(|name| imported::is_path(name));
    let named = named.map(Path::new);
    if let Some(path) = named.filter(|path| path.is_file()) {
        return source::run(path, command, app, json);
    }
    if command.sym.is_some() {
        return Err(refuse_names(named));
    }
    let input = exit::input(&command.file)?;
    // With the input, so that parameters such as the number of leaves need not be given.
    let (name, circuit, _) = app.choose(&command.circuit, Some(&input))?;
    let notices = circuit.inspect()?;
    // In a log file, a line that is overwritten would be one line per subcircuit.
    let terminal = std::io::stderr().is_terminal();
    let in_code = command.unique.unique && circuit.directory().is_none();
    if in_code && command.unique.second.is_some() {
        let why =
            "--second is for circuits from circom: a circuit in Rust computes its own witness";
        return Err(Failure::new(exit::USAGE, why));
    }
    let options = CheckOptions::new().unique(in_code).every(command.unique.every);
    let checked = circuit.on_input(&input, |prepared| {
        let report = check_with(prepared, &options, &mut |done, all| {
            if terminal {
                // A closed terminal must not end the check.
                let _ = write!(std::io::stderr(), "\rchecked {done} of {all} subcircuits");
            }
        });
        report.map(|it| (it, prepared.layout().wiring_without_slots(Masking::Unmasked).public))
    });
    if terminal {
        output::say("");
    }
    let ran = checked.map_err(|e| imported::input_failure(&command.file, &e, exit::FAILED))?;
    let (mut report, public) = ran.map_err(|e| {
        // A circuit that is wrong for every input is refused, like a violated constraint.
        let code = if e.is_refusal() { exit::REFUSED } else { exit::FAILED };
        Failure::new(code, e)
    })?;
    refuse_violations(&report, &name)?;
    let asked = command.unique.unique.then_some(&command.unique.second);
    let in_one_piece =
        asked.and_then(|second| circuit.unique(&command.file, second.as_deref())).transpose()?;
    let subjects: Vec<Subject> = match in_one_piece {
        Some(answered) => vec![answered.into()],
        None => std::mem::take(&mut report.unique).into_iter().map(Subject::from).collect(),
    };
    unique::failure(&subjects, &command.unique)?;
    let checked = Checked { report, notices, names: circuit.public_names(), public, name };
    result(&checked, app, (&subjects, command), json)
}

/// The failure for names of wires without a file of constraints.
fn refuse_names(circuit: Option<&Path>) -> Failure {
    let missing = circuit.and_then(|path| Some((path, std::fs::metadata(path).err()?)));
    if let Some((path, e)) = missing {
        return Failure::new(exit::BAD_FILE, format!("{}: {e}", path.display()));
    }
    let why = "--sym is for a .r1cs file; an imported circuit has the names of its import";
    Failure::new(exit::USAGE, why)
}

/// Refuses a report with violations, or with entries of buses that do not cancel.
fn refuse_violations(report: &CheckReport, name: &str) -> Result<(), Failure> {
    if let Some(first) = report.violations.first() {
        let instances: BTreeSet<usize> = report.violations.iter().map(|v| v.instance).collect();
        let more = match (report.violated - 1, instances.len()) {
            (0, _) => String::new(),
            (more, 1) => format!("\nand {more} more constraints of this subcircuit"),
            (more, n) => format!("\nand {more} more constraints, in {n} subcircuits in all"),
        };
        let details = json!({
            "violated": report.violated,
            "violations": report.violations.iter().map(violation).collect::<Vec<_>>(),
        });
        let message = format!("a constraint is not satisfied: {}{more}", shown(first, name));
        return Err(Failure { code: exit::REFUSED, message, details });
    }
    if let Some(first) = report.unbalanced.first() {
        let more = match report.unbalanced.len() - 1 {
            0 => String::new(),
            more => format!("\nand {more} more"),
        };
        let shown: Vec<String> = report.unbalanced.iter().map(ToString::to_string).collect();
        let message = format!("entries of a bus do not cancel: {first}{more}");
        let details = json!({ "unbalanced": shown });
        return Err(Failure { code: exit::REFUSED, message, details });
    }
    Ok(())
}

/// Describes a violation for people. The constraints of an imported circuit have the numbers of their source;
/// numbers in a part are not shown.
fn shown(violation: &Violation, circuit: &str) -> String {
    let Violation { instance, kind, label, sides, .. } = violation;
    if circuit != imported::NAME || label.trim() == "memory check" {
        return violation.to_string();
    }
    let [a, b, c] = sides.each_ref().map(hekaton_circuit::show);
    format!("{label}: {a} * {b} is not {c} (in part {instance}, of type {kind})")
}

/// A check without violations.
struct Checked {
    report: CheckReport,
    /// Notices in addition to those of the report.
    notices: Vec<String>,
    /// The author's names of public values, if the layout does not have them.
    names: Vec<String>,
    /// The public wires, in the key's order.
    public: Vec<PublicWire>,
    name: String,
}

/// Prints the report of a check without violations.
fn result(
    checked: &Checked,
    app: &App,
    (subjects, command): (&[Subject], &Check),
    json: bool,
) -> Result<(), Failure> {
    let Checked { report, notices, names, public, name } = checked;
    let values = &report.public_values;
    let (text_form, by_name) = public_values::forms(app.get(name), names, public, values)?;
    let of_wires = || hekaton_core::verifier::public_names(public);
    let shown = public_values::for_people(&text_form, names, of_wires, values);
    let text = |list: &[&dyn std::fmt::Display]| -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    };
    let mut all_notices = text(&report.notices.iter().map(|n| n as _).collect::<Vec<_>>());
    all_notices.extend_from_slice(notices);
    let object = json!({
        "ok": true, "subcircuits": report.instances, "constraints": report.constraints,
        "public": text_form, "public_values": by_name, "notices": all_notices, "unique": unique::object(subjects),
    });
    let mut lines = format!(
        "all {} of {} hold\npublic values: {shown}",
        output::counted(report.constraints as u64, "constraint"),
        output::counted(report.instances as u64, "subcircuit")
    );
    for notice in &all_notices {
        lines += &format!("\nnotice: {notice}");
    }
    lines += &unique::lines(subjects, &command.unique);
    output::result(json, &object, &lines)
}

fn violation(v: &Violation) -> Value {
    let shown = |value| hekaton_circuit::show(value);
    let wires: Vec<String> = v.wires.iter().map(|(name, _)| name.to_string()).collect();
    let values: Vec<String> = v.wires.iter().map(|(_, value)| shown(value)).collect();
    json!({
        "instance": v.instance, "type": v.kind, "constraint": v.constraint, "label": v.label,
        "wires": wires, "wire_values": values, "sides": v.sides.iter().map(shown).collect::<Vec<_>>(),
    })
}
