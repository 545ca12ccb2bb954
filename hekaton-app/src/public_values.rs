//! Public values on a terminal and in files. There may be a great number of them: a terminal shows the first few, a file
//! has all.

use crate::application::Application;
use hekaton_circuit::{Fr, PublicWire};
use hekaton_core::verifier::values_to_json;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The longest text that is printed whole, in bytes. It also fits on a page and in a command, whose words may have at
/// most 131,072 bytes on Linux.
const SHOWN_WHOLE: usize = 1024;
/// The number of values that are shown if there are more.
const SHOWN: usize = 4;

/// Reports whether this text of public values is printed whole, and passed to `verify` in the command.
pub(crate) fn is_short(text: &str) -> bool {
    text.len() <= SHOWN_WHOLE
}

/// The file with the public values of a proof, where they are too long for a command.
pub(crate) fn default_file(proof: &Path) -> PathBuf {
    let mut name = proof.as_os_str().to_owned();
    name.push(".public.json");
    PathBuf::from(name)
}

// As keys of a JSON object, equal names would lose values.
/// The names of public values; empty if two of them are equal.
pub fn distinct(names: Vec<String>) -> Vec<String> {
    let all: BTreeSet<&String> = names.iter().collect();
    if all.len() == names.len() { names } else { Vec::new() }
}

/// Formats public values for people: by name if the circuit's author named them, otherwise as `text`, the
/// circuit's own form; only the first few of a long list. `others` are names from the key.
pub(crate) fn for_people(
    text: &str,
    names: &[String],
    others: impl FnOnce() -> Vec<String>,
    values: &[Fr],
) -> String {
    let named = |names: &[String], count| {
        let pair = |(name, value): (&String, &Fr)| format!("{name} = {value}");
        names.iter().zip(values).take(count).map(pair).collect::<Vec<_>>().join(", ")
    };
    let is_named = !names.is_empty() && names.len() == values.len();
    if is_short(text) {
        return if is_named { named(names, values.len()) } else { text.to_owned() };
    }
    let others = if is_named { names.to_vec() } else { others() };
    match others.len() == values.len() && values.len() > SHOWN {
        true => {
            let more = output::count((values.len() - SHOWN) as u64);
            format!("{}, and {more} more", named(&others, SHOWN))
        }
        // A few long values.
        false => {
            let shown: String = text.chars().take(SHOWN_WHOLE).collect();
            format!("{shown}.. ({} bytes)", output::count(text.len() as u64))
        }
    }
}

/// The two forms of public values that commands print: the circuit's own text, or else the JSON object, and the JSON object with a
/// decimal string for each name, in which `names` are the author's, if there are any.
pub(crate) fn forms(
    application: Option<&dyn Application>,
    names: &[String],
    public: &[PublicWire],
    values: &[Fr],
) -> Result<(String, Value), Failure> {
    let by_name = match names.len() == values.len() && !names.is_empty() {
        true => by_name(names, values),
        false => values_to_json(public, values).or_fail(exit::FAILED)?,
    };
    let own = application.and_then(|application| application.show_public(values));
    Ok((own.unwrap_or_else(|| by_name.to_string()), by_name))
}

/// The JSON object with a decimal string for each name.
pub(crate) fn by_name(names: &[String], values: &[Fr]) -> Value {
    let entry = |(name, value): (&String, &Fr)| (name.clone(), Value::String(value.to_string()));
    Value::Object(names.iter().zip(values).map(entry).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(count: u64) -> (Vec<Fr>, String, Vec<String>) {
        let values: Vec<Fr> = (0..count).map(Fr::from).collect();
        let text = Value::from(values.iter().map(ToString::to_string).collect::<Vec<_>>());
        let names = (0..count).map(|i| format!("main.x[{i}]")).collect();
        (values, text.to_string(), names)
    }

    #[test]
    fn a_few_values_are_shown_whole_and_many_are_not() {
        let (few, text, names) = values(2);
        let none = || Vec::new();
        assert_eq!(for_people(&text, &[], none, &few), r#"["0","1"]"#);
        assert_eq!(for_people(&text, &names, none, &few), "main.x[0] = 0, main.x[1] = 1");
        let (many, text, names) = values(100_000);
        let shown = "main.x[0] = 0, main.x[1] = 1, main.x[2] = 2, main.x[3] = 3, and 99,996 more";
        assert_eq!(for_people(&text, &names, none, &many), shown);
        let of_key = || (0..100_000).map(|i| format!("public[{i}]")).collect();
        let found = for_people(&text, &[], of_key, &many);
        assert!(
            found.starts_with("public[0] = 0, ") && found.ends_with(", and 99,996 more"),
            "{found}"
        );
        assert!(for_people(&text, &[], none, &many).len() < 1100);
    }

    #[test]
    fn names_that_are_not_distinct_are_none() {
        let names = |list: [&str; 2]| distinct(list.map(str::to_owned).to_vec());
        assert_eq!(names(["a", "b"]).len(), 2);
        assert!(names(["a", "a"]).is_empty());
    }
}
