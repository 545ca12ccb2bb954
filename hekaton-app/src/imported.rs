//! Imported circuits, as far as every program knows them: by the name in keys, and by paths.

use crate::application::{BadFile, OpenCircuit};
use hekaton_circuit::CircuitError;
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output::{self, one_line};
use serde_json::Value;
use std::path::Path;

/// The name of the circuit in keys, if it was imported.
pub const NAME: &str = "r1cs";

/// Reports whether the name of a circuit is a path: names have neither `/` nor `.`.
pub fn is_path(name: &str) -> bool {
    name.contains(['/', '.'])
}

/// Describes the circuit of some keys for people: its name and parameters, or the file that was
/// imported.
pub(crate) fn describe(circuit: &str, parameters: &Value) -> String {
    let field = |name: &str| parameters[name].as_str();
    // Keys may come from anyone, so their text can have any length and any characters.
    let text = match (circuit == NAME, field("source"), field("directory")) {
        (true, Some(source), Some(directory)) => {
            let short = |digest: &str| digest.chars().take(16).collect::<String>();
            let name = field("name").map_or_else(String::new, |name| format!(" {name}"));
            format!(
                "imported circuit{name} (source {}, circuit {})",
                short(source),
                short(directory)
            )
        }
        _ => format!("{circuit} {parameters}"),
    };
    one_line(&text).into_owned()
}

/// Checks a circuit before keys are made for it: reads its files once and prints notices, which it returns, and compares an imported
/// circuit with its source if there is one.
pub(crate) fn check(
    circuit: &dyn OpenCircuit,
    source: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let notices = circuit.inspect()?;
    notices.iter().for_each(|notice| output::say(format_args!("note: {notice}")));
    match source {
        Some(source) => circuit.compare(source)?,
        None if circuit.directory().is_some() => output::say(
            "note: the circuit was not compared with its source; --r1cs FILE compares it",
        ),
        None => {}
    }
    Ok(notices)
}

/// The failure for an input that cannot be opened or executed.
pub(crate) fn input_failure(path: &Path, error: &CircuitError, code: u8) -> Failure {
    let code = if error.is::<BadFile>() { exit::BAD_FILE } else { code };
    Failure::new(code, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_described_by_the_file_that_was_imported() {
        let digests =
            json!({ "name": "sha.r1cs", "source": "ab".repeat(32), "directory": "c".repeat(64) });
        let shown = "imported circuit sha.r1cs (source abababababababab, circuit cccccccccccccccc)";
        assert_eq!(describe(NAME, &digests), shown);
        let without = json!({ "source": "ab".repeat(32), "directory": "c".repeat(64) });
        assert!(describe(NAME, &without).starts_with("imported circuit (source abab"));
        assert_eq!(describe("chain", &json!({ "links": 2 })), r#"chain {"links":2}"#);
        // Not keys that `setup` made.
        assert_eq!(describe(NAME, &json!({ "directory": 3 })), r#"r1cs {"directory":3}"#);
    }
}
