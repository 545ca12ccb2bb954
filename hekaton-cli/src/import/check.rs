//! `hekaton check` of a `.r1cs` file, before it is imported.

use super::unique;
use hekaton_app::product::{CheckedSource, SourceCheck, distinct};
use hekaton_circuit::show;
use hekaton_r1cs::{FileError, Monolith, WitnessFile, label, with_names};
use hekaton_terminal::exit::{self, Failure, OrFail};

pub(super) fn run(check: &SourceCheck<'_>) -> Result<CheckedSource, Failure> {
    let path = check.source;
    let bad = |error: FileError| Failure::new(exit::BAD_FILE, error);
    let monolith = Monolith::read(path, check.symbols, |_, _| {}).or_fail(exit::BAD_FILE)?;
    let (system, source, symbols) = (monolith.system(), monolith.source(), monolith.symbols());
    let witness = WitnessFile::open(check.witness).map_err(bad)?;
    witness.check_wires(source.wires).map_err(bad)?;
    let values = witness.values(0..source.wires).map_err(bad)?;
    if let Some(row) = system.false_row(&values) {
        let [a, b, c] = row.values.each_ref().map(show);
        let message = format!(
            "a constraint is not satisfied: constraint {} of {}{}: {a} * {b} is not {c}",
            row.number,
            path.display(),
            with_names(&row.wires.iter().map(|wire| label(symbols, *wire)).collect::<Vec<_>>()),
        );
        return Err(Failure::new(exit::REFUSED, message));
    }
    let unique = match check.unique {
        true => {
            let question = hekaton_r1cs::Unique::of_monolith(&monolith).map_err(unique::failed)?;
            Some(unique::ask(&question, symbols, &witness, check.second)?)
        }
        false => None,
    };
    let name = |wire: u32| symbols.and_then(|symbols| symbols.name(wire)).map(str::to_owned);
    let names = (1..=source.public())
        .map(|wire| name(wire).unwrap_or_else(|| format!("public[{}]", wire - 1)))
        .collect();
    Ok(CheckedSource {
        constraints: source.rows,
        public: values[1..=source.public() as usize].to_vec(),
        names: distinct(names),
        notices: monolith.notices(),
        unique,
    })
}
