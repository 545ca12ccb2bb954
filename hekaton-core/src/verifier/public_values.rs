//! Public values by name, and their JSON form: an object with one entry per public wire of the
//! verifying key, or an array in their order (docs/formats.md, "Public values").

use super::verifying_key::VerifyingKey;
use ark_ff::PrimeField;
use hekaton_arith::Fr;
use hekaton_circuit::{PublicWire, parse_value};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A public value with the name of its wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedValue {
    /// The name that the layout gives the wire.
    pub name: String,
    /// The number that follows the name.
    pub index: u64,
    /// The value.
    pub value: Fr,
}

/// Why a text is not the public values of a verifying key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublicValuesError {
    /// The text is not a JSON object or array.
    #[error("the public values are not a JSON object or array: {0}")]
    Json(String),
    /// A public wire has no value.
    #[error("the value of '{0}' is missing")]
    Missing(String),
    /// An entry is not a public wire.
    #[error("'{name}' is not a public wire of this key; its public wires are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of the key's public wires, at most ten.
        known: String,
    },
    /// An entry occurs twice.
    #[error("the value of '{0}' occurs twice")]
    Duplicate(String),
    /// A value is not a number below r.
    #[error("the value of '{name}' is not usable: {why}")]
    Value {
        /// The name of the wire.
        name: String,
        /// The reason it is wrong.
        why: String,
    },
    /// The wrong number of values.
    #[error("expected {expected} public values, found {found}")]
    Count {
        /// The number of public wires.
        expected: usize,
        /// The number of values.
        found: usize,
    },
}

/// The name of each public wire in the JSON form: `name`, or `name[index]` where several wires share
/// a name or the only one has another number than 0.
pub fn public_names(public: &[PublicWire]) -> Vec<String> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    public.iter().for_each(|wire| *count.entry(&wire.name).or_default() += 1);
    let name = |wire: &PublicWire| match count[wire.name.as_str()] {
        1 if wire.index == 0 => wire.name.clone(),
        _ => wire.label(),
    };
    public.iter().map(name).collect()
}

/// The JSON form of the values of public wires: an object with a decimal string per wire.
///
/// # Errors
/// If there is not one value per public wire.
pub fn values_to_json(public: &[PublicWire], values: &[Fr]) -> Result<Value, PublicValuesError> {
    if values.len() != public.len() {
        let (expected, found) = (public.len(), values.len());
        return Err(PublicValuesError::Count { expected, found });
    }
    let texts = values.iter().map(|value| Value::String(value.into_bigint().to_string()));
    Ok(Value::Object(public_names(public).into_iter().zip(texts).collect::<Map<_, _>>()))
}

/// The entries of a JSON object, duplicates included: `serde_json::Map` would keep the last of two
/// values for a name, where another reader of the same text may keep the first.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AllEntries;
        impl<'de> Visitor<'de> for AllEntries {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with a value for each public wire")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(AllEntries)
    }
}

impl VerifyingKey {
    /// The name of each public wire in the JSON form: `name`, or `name[index]` where several wires
    /// share a name or the only one has another number than 0.
    pub fn public_names(&self) -> Vec<String> {
        public_names(&self.public)
    }

    /// Adds the names of their wires to public values.
    ///
    /// # Errors
    /// If there is not one value per public wire.
    pub fn name_values(&self, values: &[Fr]) -> Result<Vec<NamedValue>, PublicValuesError> {
        if values.len() != self.public.len() {
            let (expected, found) = (self.public.len(), values.len());
            return Err(PublicValuesError::Count { expected, found });
        }
        let named = |(wire, value): (&PublicWire, &Fr)| NamedValue {
            name: wire.name.clone(),
            index: wire.index,
            value: *value,
        };
        Ok(self.public.iter().zip(values).map(named).collect())
    }

    /// The JSON form of public values: an object with a decimal string per public wire.
    ///
    /// # Errors
    /// If there is not one value per public wire.
    pub fn values_to_json(&self, values: &[Fr]) -> Result<Value, PublicValuesError> {
        values_to_json(&self.public, values)
    }

    /// Reads the JSON form of public values: an object with one entry per public wire, in any order,
    /// or an array with one entry per public wire in the key's order. Values are decimal strings
    /// without leading zeros, hexadecimal strings that start with `0x`, or JSON integers.
    ///
    /// # Errors
    /// If an entry is missing, unknown, there twice, or not a number below r.
    pub fn values_from_json(&self, text: &str) -> Result<Vec<Fr>, PublicValuesError> {
        self.values_from_json_by(&self.public_names(), text)
    }

    /// [`values_from_json`](Self::values_from_json) with other names for the public wires, in their
    /// order, such as those in the source of an imported circuit.
    ///
    /// # Errors
    /// As for [`values_from_json`](Self::values_from_json), and if there is not a name per public wire.
    pub fn values_from_json_by(
        &self,
        names: &[String],
        text: &str,
    ) -> Result<Vec<Fr>, PublicValuesError> {
        let json = |e: serde_json::Error| PublicValuesError::Json(e.to_string());
        if names.len() != self.public.len() {
            let (expected, found) = (self.public.len(), names.len());
            return Err(PublicValuesError::Count { expected, found });
        }
        if text.trim_start().starts_with('[') {
            let entries: Vec<Value> = serde_json::from_str(text).map_err(json)?;
            if entries.len() != names.len() {
                let (expected, found) = (names.len(), entries.len());
                return Err(PublicValuesError::Count { expected, found });
            }
            return names.iter().zip(&entries).map(|(name, entry)| value(name, entry)).collect();
        }
        let Entries(entries) = serde_json::from_str(text).map_err(json)?;
        values_by_name(names, entries)
    }
}

/// The values of public wires from an object with an entry for each.
fn values_by_name(
    names: &[String],
    list: Vec<(String, Value)>,
) -> Result<Vec<Fr>, PublicValuesError> {
    // A key may have many names: one look-up each.
    let expected: BTreeSet<&String> = names.iter().collect();
    let mut entries = BTreeMap::new();
    for (name, entry) in list {
        if !expected.contains(&name) {
            let known = names.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
            return Err(PublicValuesError::Unknown { name, known });
        }
        if entries.contains_key(&name) {
            return Err(PublicValuesError::Duplicate(name));
        }
        entries.insert(name, entry);
    }
    let missing = |name: &String| PublicValuesError::Missing(name.clone());
    names.iter().map(|name| value(name, entries.get(name).ok_or_else(|| missing(name))?)).collect()
}

/// The value of a public wire from its entry.
fn value(name: &str, entry: &Value) -> Result<Fr, PublicValuesError> {
    let wrong = |why: String| PublicValuesError::Value { name: name.to_owned(), why };
    match entry {
        // Two texts of one value would be two files of one statement.
        Value::String(text)
            if text.len() > 1 && text.starts_with('0') && !text.starts_with("0x") =>
        {
            let why = "write decimal numbers without leading zeros, and hexadecimal ones with 0x";
            let shown: String = text.chars().take(90).collect();
            Err(wrong(format!("'{shown}': {why}")))
        }
        Value::String(text) => parse_value(text).map_err(wrong),
        Value::Number(number) => match number.as_u64() {
            Some(number) => Ok(Fr::from(number)),
            None => Err(wrong("write large numbers as strings".to_owned())),
        },
        _ => Err(wrong("expected a string or an integer".to_owned())),
    }
}
