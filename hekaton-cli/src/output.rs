//! What the program prints: results on standard output, everything else on standard error.

use crate::exit::{self, Failure};
use ark_relations::gr1cs::{ConstraintLayer, TracingMode};
use hekaton_core::budget::NotEnoughMemory;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
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

/// A memory limit that is too small, with the smallest that is not.
pub(crate) fn not_enough_memory(e: NotEnoughMemory) -> Failure {
    // rounded up, so that it can be given back as it is
    let smallest = e.smallest.div_ceil(1 << 20);
    let message = format!("--memory-limit: {} are too few: the smallest workable limit is {smallest}M", bytes(e.limit));
    let details = json!({ "smallest_bytes": smallest << 20 });
    Failure { code: exit::USAGE, message, details }
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
    seconds_f64(t.as_secs_f64())
}

/// [`seconds`], from a number of them.
pub(crate) fn seconds_f64(s: f64) -> String {
    match s {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 600.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// The directory of a file.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Finds out before the work, not after it, that a file can't be written, or would overwrite one of `inputs` or something
/// inside one of them.
pub(crate) fn check_output(path: &Path, option: &str, inputs: &[&Path]) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::new(exit::BAD_FILE, format!("{option} {}: {why}", path.display())));
    if path.is_dir() {
        return refuse("is a directory, expected a file");
    }
    if let Ok(existing) = path.canonicalize() {
        for input in inputs.iter().filter_map(|input| input.canonicalize().ok()) {
            if input == existing {
                return refuse("that is the input, which would be lost");
            }
            if existing.starts_with(&input) {
                return refuse("that is inside the key directory");
            }
        }
        if !existing.is_file() {
            return refuse("that is no regular file");
        }
    }
    let probe = tempfile::NamedTempFile::new_in(parent(path)).map(drop);
    probe.map_err(|e| Failure::new(exit::BAD_FILE, format!("can't write to {}: {e}", path.display())))
}

/// Writes a file under a temporary name and renames it, readable for all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let attempt = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(parent(path))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    attempt().map_err(|e| Failure::new(exit::FAILED, format!("can't write {}: {e}", path.display())))
}
