//! What the program prints: results on standard output, everything else on standard error.

use crate::exit::{self, Failure};
use ark_relations::gr1cs::{ConstraintLayer, TracingMode};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Warnings go to standard error; `RUST_LOG` chooses. With `labels` (for `check`) there is no logging: constraints keep the
/// spans they were made in instead.
pub(crate) fn start_logging(labels: bool) {
    if labels {
        tracing_subscriber::registry().with(ConstraintLayer::new(TracingMode::OnlyConstraints)).init();
        return;
    }
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,gr1cs=off,r1cs=off"));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).without_time();
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// Prints an error.
pub(crate) fn failure(failure: &Failure, json: bool) {
    if json {
        let object =
            json!({ "ok": false, "exit_code": failure.code, "error": failure.message, "details": failure.details });
        let _ = print(&object.to_string());
    }
    let _ = writeln!(std::io::stderr(), "error: {}", failure.message);
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Prints a result: the object, or the lines for people.
///
/// A reader that went away (`| head`) is no error; a full disk is.
pub(crate) fn result(json: bool, object: &Value, lines: &str) -> Result<(), Failure> {
    let printed = if json { print(&object.to_string()) } else { print(lines) };
    match printed {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(exit::FAILED, format!("can't print the result: {e}")))
        }
        _ => Ok(()),
    }
}

/// 12345678 as "12.3 MB".
pub(crate) fn bytes(n: u64) -> String {
    let n = n as f64;
    match n {
        n if n < 1e3 => format!("{n} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.2} GB", n / 1e9),
    }
}

/// 1234567 as "1,234,567".
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A duration for people.
pub(crate) fn seconds(t: Duration) -> String {
    let s = t.as_secs_f64();
    if s < 1.0 { format!("{:.0} ms", s * 1e3) } else { format!("{s:.1} s") }
}

/// Peak memory of this process in bytes, on Linux.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}
