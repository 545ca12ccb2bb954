//! Options that several commands share, and the forms of their values.

use clap::Args;
use hekaton_circuit::named::{ParameterMap, parameter_value};
use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The parameters of a circuit.
#[derive(Debug, Args)]
pub(crate) struct Parameters {
    /// A parameter, for example -p leaf-bytes=1024; may be repeated. A value is JSON, or text
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
    let expected = "expected NAME=VALUE, for example leaf-bytes=1024";
    let (name, value) = text.split_once('=').ok_or(expected)?;
    Ok((name.to_owned(), parameter_value(value)))
}

pub(super) fn key_digest(text: &str) -> Result<[u8; 32], String> {
    let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "expected a digest of 64 hexadecimal digits".to_owned())
}

/// Parses 131072 or 2^17.
pub(super) fn rows(text: &str) -> Result<u64, String> {
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

pub(super) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    // More threads than any machine has cores would only be a mistake that fills the memory with stacks.
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= 4096);
    number.ok_or_else(|| "expected a number in 1..=4096".to_owned())
}

/// Parses 8G, 512M, 1.5GiB or 2GB, in upper or lower case; K, M, G, T alone are powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase().replace('I', "i");
    let end = upper.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upper.len());
    let (number, unit) = upper.split_at(end);
    let powers = |unit: &str| "KMGT".find(unit).and_then(|i| i32::try_from(i + 1).ok());
    let factor = match unit {
        "" | "B" => Some(1.0),
        _ => match (unit.strip_suffix("iB"), unit.strip_suffix('B')) {
            (Some(prefix), _) if prefix.len() == 1 => powers(prefix).map(|p| 1024f64.powi(p)),
            (None, Some(prefix)) if prefix.len() == 1 => powers(prefix).map(|p| 1000f64.powi(p)),
            (None, None) if unit.len() == 1 => powers(unit).map(|p| 1024f64.powi(p)),
            _ => None,
        },
    };
    let value = number
        .parse::<f64>()
        .ok()
        .zip(factor)
        .map(|(n, f)| n * f)
        .filter(|v| (1.0..1e18).contains(v));
    value.map(whole_bytes).ok_or_else(|| {
        "expected a size above zero, such as 8G, 512M (of 2^20 bytes), 1.5GB (of 10^9 bytes), or a \
         number of bytes"
            .to_owned()
    })
}

/// Drops the fraction of a byte.
#[allow(clippy::cast_possible_truncation, reason = "sizes are below 1e18")]
fn whole_bytes(bytes: f64) -> u64 {
    bytes as u64
}

// Setup and checks use all threads for one multi-scalar multiplication; `prove` has one prover per thread.
/// The help of `--threads` where threads are not provers.
pub(super) const THREADS: &str = "Number of threads [default: the cores this process may use]";

#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// Number of threads, each with one single-threaded prover [default: the cores this process
    /// may use]
    #[arg(long, value_parser = threads)]
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Keys that a setup makes.
#[derive(Debug, Args)]
pub(crate) struct NewKeys {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("8G", 8 << 30),
            ("512M", 512 << 20),
            ("2GB", 2_000_000_000),
            ("1.5GiB", 3 << 29),
            ("100", 100),
            ("7B", 7),
            ("8g", 8 << 30),
            ("2gb", 2_000_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1G", "1X", "1GG", "1GiBB", "nan", "1e3", "0", "inf"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
