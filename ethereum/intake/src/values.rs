//! Values in the JSON of the Engine API: bytes and numbers as `0x` and digits.

use alloy_primitives::{U256, hex as hexadecimal};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// JSON that does not have the required form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {why}")]
pub struct JsonError {
    /// The part of the message.
    pub part: &'static str,
    /// The fault.
    pub why: String,
}

pub(crate) fn wrong(part: &'static str, why: impl Into<String>) -> JsonError {
    JsonError { part, why: why.into() }
}

/// Reads JSON. Errors have the codes of execution-apis 773.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    text: &'a [u8],
    part: &'static str,
) -> Result<T, (i64, JsonError)> {
    // JSON-RPC 2.0 has one code for text that is not JSON (-32700), and another one for JSON that
    // is not what the method takes (-32602).
    serde_json::from_slice(text).map_err(|error| match is_json(text) {
        true => (-32_602, wrong(part, error.to_string())),
        false => (-32_700, wrong("body", format!("it is not JSON: {error}"))),
    })
}

/// A value that is written as an object. The code that serde derives for structs also reads arrays, whose elements have no names.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Named<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Named(PhantomData))
    }
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// Reads `0x` and an even number of digits.
///
/// # Errors
/// If it is any other text.
pub fn decode_hex(text: &str) -> Result<Vec<u8>, JsonError> {
    bytes(text, "data")
}

pub(crate) fn bytes(text: &str, part: &'static str) -> Result<Vec<u8>, JsonError> {
    let digits =
        text.strip_prefix("0x").ok_or_else(|| wrong(part, "expected 0x and hexadecimal digits"))?;
    // The decoder allows a prefix, too.
    if digits.starts_with("0x") {
        return Err(wrong(part, "it begins with 0x twice"));
    }
    hexadecimal::decode(digits).map_err(|error| wrong(part, error.to_string()))
}

/// Reads bytes of a fixed length.
pub(crate) fn array<const N: usize>(text: &str, part: &'static str) -> Result<[u8; N], JsonError> {
    let found = bytes(text, part)?;
    let length = found.len();
    found.try_into().map_err(|_| wrong(part, format!("{length} bytes, expected {N}")))
}

/// Reads a number: `0x` and digits without a zero in front.
pub(crate) fn quantity(text: &str, part: &'static str) -> Result<u64, JsonError> {
    let number = big_quantity(text, part)?;
    u64::try_from(number).map_err(|_| wrong(part, "it has more than 64 bits"))
}

pub(crate) fn big_quantity(text: &str, part: &'static str) -> Result<U256, JsonError> {
    let digits = text.strip_prefix("0x").ok_or_else(|| wrong(part, "it does not begin with 0x"))?;
    let well_formed = (1..=64).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        && (digits == "0" || !digits.starts_with('0'));
    match U256::from_str_radix(digits, 16) {
        Ok(number) if well_formed => Ok(number),
        _ => Err(wrong(part, format!("'{}' is not a number", cut(text, 80)))),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    hexadecimal::encode_prefixed(bytes)
}

pub(crate) fn hex_number(number: u64) -> String {
    format!("{number:#x}")
}

/// Returns the longest prefix of a text that has at most `most` bytes and ends on a character boundary.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
