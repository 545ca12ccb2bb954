//! `hekaton check --unique` of circuits from other tools.

use hekaton_app::product::Answered;
use hekaton_r1cs::{CircuitBundle, Symbols, UniqueError, WitnessFile, label};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use std::path::Path;

/// The failure of a question about a circuit from another tool.
pub(super) fn failed(error: UniqueError) -> Failure {
    match error {
        UniqueError::False(_) => Failure::new(exit::REFUSED, error),
        error => Failure::new(exit::BAD_FILE, error),
    }
}

/// Asks the question of an imported circuit.
pub(super) fn of_directory(
    path: &Path,
    file: &Path,
    second: Option<&Path>,
) -> Result<Answered, Failure> {
    let directory = CircuitBundle::open(path).or_fail(exit::BAD_FILE)?;
    let symbols = directory.symbols().or_fail(exit::BAD_FILE)?;
    let witness = WitnessFile::open(file).or_fail(exit::BAD_FILE)?;
    let question = hekaton_r1cs::Unique::of_directory(&directory).map_err(failed)?;
    ask(&question, symbols, &witness, second)
}

/// Asks the question of a circuit from another tool, and writes a second witness if there is one.
pub(super) fn ask(
    question: &hekaton_r1cs::Unique,
    symbols: Option<&Symbols>,
    witness: &WitnessFile,
    file: Option<&Path>,
) -> Result<Answered, Failure> {
    let values = question.values(witness).map_err(failed)?;
    let (verdicts, second) =
        question.verdicts(&values, |wire| label(symbols, wire)).map_err(failed)?;
    match (file, second) {
        (Some(path), Some(second)) => {
            output::write(path, &second)?;
            output::say(format_args!("second witness: {}", path.display()));
        }
        (Some(path), None) => output::say(format_args!(
            "note: no second witness was found, so {} was not written",
            path.display()
        )),
        (None, _) => {}
    }
    let [_, public, private] = question.counts();
    let given = format!(
        "{} and {}",
        output::counted(public.into(), "public input"),
        output::counted(private.into(), "private input")
    );
    Ok(Answered { given, verdicts })
}
