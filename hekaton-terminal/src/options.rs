//! Options that several programs have.

use crate::exit::{self, Failure, OrFail};
use clap::Args;
use hekaton_core::LocalEngine;
use std::num::NonZeroUsize;

// Setup and checks use all threads for one multi-scalar multiplication; `prove` has one prover per thread.
/// The help of `--threads` where threads are not provers.
pub const THREADS: &str = "Number of threads [default: the cores this process may use]";

/// The option `--threads` of commands that prove.
#[derive(Debug, Args)]
pub struct Threads {
    /// Number of threads, each with one single-threaded prover [default: the cores this process
    /// may use]
    #[arg(long, value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
}

impl Threads {
    /// Calls a function on as many threads.
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn install<R: Send>(&self, call: impl FnOnce() -> R + Send) -> Result<R, Failure> {
        Ok(LocalEngine::new(self.threads).or_fail(exit::FAILED)?.install(call))
    }
}

/// Parses a number of threads.
///
/// # Errors
/// If it is not a number from 1 to 4096.
pub fn threads(text: &str) -> Result<NonZeroUsize, String> {
    // More threads than any machine has cores would only be a mistake that fills the memory with stacks.
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= 4096);
    number.ok_or_else(|| "expected a number in 1..=4096".to_owned())
}

/// Parses 8G, 512M, 1.5GiB or 2GB, in upper or lower case; K, M, G, T alone are powers of 1024.
///
/// # Errors
/// If the text is not a size.
pub fn size(text: &str) -> Result<u64, String> {
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
