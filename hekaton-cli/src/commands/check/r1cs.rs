//! `hekaton check` of a `.r1cs` file, before it is imported.

use super::unique;
use crate::options::Check;
use crate::public_values;
use hekaton_circuit::show;
use hekaton_r1cs::{FileError, Monolith, WitnessFile};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use std::path::Path;

pub(super) fn run(path: &Path, command: &Check, json: bool) -> Result<(), Failure> {
    let bad = |error: FileError| Failure::new(exit::BAD_FILE, error);
    let monolith =
        Monolith::read(path, command.sym.as_deref(), |_, _| {}).or_fail(exit::BAD_FILE)?;
    let (system, source, symbols) = (monolith.system(), monolith.source(), monolith.symbols());
    let witness = WitnessFile::open(&command.file).map_err(bad)?;
    witness.check_wires(source.wires).map_err(bad)?;
    let values = witness.values(0..source.wires).map_err(bad)?;
    if let Some(row) = system.false_row(&values) {
        let [a, b, c] = row.values.each_ref().map(show);
        let message = format!(
            "a constraint is not satisfied: constraint {} of {}: {a} * {b} is not {c}",
            row.number,
            path.display()
        );
        return Err(Failure::new(exit::REFUSED, message));
    }
    let mut subjects = Vec::new();
    if command.unique.unique {
        let question = hekaton_r1cs::Unique::of_monolith(&monolith).map_err(unique::failed)?;
        subjects.push(unique::foreign(&question, symbols, &witness, &command.unique)?);
    }
    unique::failure(&subjects, &command.unique)?;
    let public = &values[1..=source.public() as usize];
    let name = |wire: u32| symbols.and_then(|symbols| symbols.name(wire)).map(str::to_owned);
    let names: Vec<String> = (1..=source.public())
        .map(|wire| name(wire).unwrap_or_else(|| format!("public[{}]", wire - 1)))
        .collect();
    let names = public_values::distinct(names);
    let text = json!(public.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string();
    let notices = monolith.notices();
    let object = json!({
        "ok": true, "constraints": source.rows, "public": text, "notices": notices,
        "unique": unique::object(&subjects),
    });
    let mut lines = format!(
        "all {} constraints hold\npublic values: {}",
        output::count(source.rows),
        public_values::for_people(&text, &names, || names.clone(), public)
    );
    for notice in &notices {
        lines += &format!("\nnotice: {notice}");
    }
    lines += &unique::lines(&subjects, &command.unique);
    output::result(json, &object, &lines)
}
