//! Options that several commands share, and the forms of their values.

use clap::Args;
use hekaton_circuit::named::{ParameterMap, parameter_value};
use hekaton_terminal::options::Threads;
use serde_json::Value;
use std::path::PathBuf;

/// The parameters of a circuit.
#[derive(Debug, Args)]
pub(crate) struct Parameters {
    /// A parameter; may be repeated. A value is JSON, or text
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, Value)>,
}

impl Parameters {
    /// The parameters by name.
    pub(crate) fn map(&self) -> ParameterMap {
        self.parameters.iter().cloned().collect()
    }
}

pub(super) fn parameter(text: &str) -> Result<(String, Value), String> {
    let expected = "expected NAME=VALUE";
    let (name, value) = text.split_once('=').ok_or(expected)?;
    Ok((name.to_owned(), parameter_value(value)))
}

pub(super) fn context(text: &str) -> Result<[u8; 32], String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let bytes = hex::decode(digits).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "expected 32 bytes as 64 hexadecimal digits".to_owned())
}

/// Parses a digest of 64 hexadecimal digits.
///
/// # Errors
/// Fails if the text is anything else.
pub fn key_digest(text: &str) -> Result<[u8; 32], String> {
    let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "expected a digest of 64 hexadecimal digits".to_owned())
}

/// Parses a number of constraints, such as 131072 or 2^17, in 8..=2^28.
///
/// # Errors
/// Fails if the text is no such number.
pub fn rows(text: &str) -> Result<u64, String> {
    let number = match text.split_once('^') {
        Some((base, exponent)) => (base.parse::<u64>().ok())
            .zip(exponent.parse().ok())
            .and_then(|(base, exponent)| base.checked_pow(exponent)),
        None => text.parse().ok(),
    };
    // BLS12-381's scalar field has domains of up to 2^32 points; a prover of 2^28 rows already needs more memory than a
    // node has.
    number
        .filter(|number| (8..=1 << 28).contains(number))
        .ok_or_else(|| "expected a number in 8..=2^28, or a power such as 2^17".to_owned())
}

/// Keys that a setup makes.
#[derive(Debug, Args)]
pub struct NewKeys {
    /// The directory to write; it must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Generate keys for proofs that are not zero-knowledge: such a proof lets anyone confirm a
    /// guess of the witness. Saves two shared wires per subcircuit
    #[arg(long)]
    pub(crate) no_zero_knowledge: bool,
    /// FOR TESTS ONLY: derive the trapdoors from a number, so that anyone can forge proofs
    // Hidden, because only tests need the same keys twice.
    #[arg(long, value_name = "SEED", hide = true)]
    pub(crate) insecure_seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}
