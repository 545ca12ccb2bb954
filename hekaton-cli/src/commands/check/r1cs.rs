//! `hekaton check` of a `.r1cs` file, before it is imported.

use super::unique;
use crate::options::Check;
use crate::public_values;
use hekaton_circuit::show;
use hekaton_r1cs::{FileError, Monolith, R1csFile, Symbols, WitnessFile};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use std::path::Path;

pub(super) fn run(path: &Path, command: &Check, json: bool) -> Result<(), Failure> {
    let bad = |error: FileError| Failure::new(exit::BAD_FILE, error);
    let file = R1csFile::open(path).map_err(bad)?;
    let counts = file.counts();
    let symbols = command.sym.as_deref().map(|sym| Symbols::read(sym, counts.wires));
    let symbols = symbols.transpose().map_err(bad)?;
    let witness = WitnessFile::open(&command.file).map_err(bad)?;
    witness.check_wires(counts.wires).map_err(bad)?;
    let monolith =
        Monolith::read(path, command.sym.as_deref(), |_, _| {}).or_fail(exit::BAD_FILE)?;
    let (system, notices) = (monolith.system(), monolith.notices());
    let values = witness.values(0..counts.wires).map_err(bad)?;
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
        let question = hekaton_r1cs::Unique::of_file(&file, system).map_err(unique::failed)?;
        subjects.push(unique::foreign(&question, symbols.as_ref(), &witness, &command.unique)?);
    }
    unique::failure(&subjects, &command.unique)?;
    let public = &values[1..=counts.public() as usize];
    let name =
        |wire: u32| symbols.as_ref().and_then(|symbols| symbols.name(wire)).map(str::to_owned);
    let names: Vec<String> = (1..=counts.public())
        .map(|wire| name(wire).unwrap_or_else(|| format!("public[{}]", wire - 1)))
        .collect();
    let names = public_values::distinct(names);
    let text = json!(public.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string();
    let object = json!({
        "ok": true, "constraints": counts.rows, "public": text, "notices": notices,
        "unique": unique::object(&subjects),
    });
    let mut lines = format!(
        "all {} constraints hold\npublic values: {}",
        output::count(counts.rows.into()),
        public_values::for_people(&text, &names, || names.clone(), public)
    );
    for notice in &notices {
        lines += &format!("\nnotice: {notice}");
    }
    lines += &unique::lines(&subjects, &command.unique);
    output::result(json, &object, &lines)
}
