//! Exit codes.

use hekaton_circuit::named::InputFile;
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Done; for `verify`: the proof is valid.
pub const OK: u8 = 0;
/// `verify`: the proof is not valid for these public values; `check`: a constraint is not
/// satisfied.
pub const REFUSED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// A file or its content cannot be used: missing, damaged, or of another version or setup.
pub const BAD_FILE: u8 = 3;
/// The run failed: the input does not fit, a witness is wrong, the disk is full.
pub const FAILED: u8 = 4;
/// Asked to stop by Ctrl-C or SIGTERM; completed work is in the run directory.
pub const STOPPED: u8 = 5;
/// A rank was lost or fell silent, and the run directory has all answers that were received; or another process holds that
/// directory. Batch scripts repeat the command after this code.
pub const LOST: u8 = 6;
/// Ended immediately by Ctrl-C or SIGTERM.
pub const INTERRUPTED: u8 = 130;

/// The environment variables that all programs read, for `--help`.
const ENVIRONMENT: &str = "Environment:
  HEKATON_ARITH  arithmetic kernels: portable, avx2, ifma, or auto (the
                 default); the bytes of a proof do not depend on them
  RUST_LOG       which warnings go to standard error, for example off or debug";

/// The end of a command's `--help`: its examples, if it has any, the exit codes of its program, and environment variables.
pub fn help_after(examples: &str, codes: &str) -> String {
    [examples, codes, ENVIRONMENT].join("\n\n").trim_start().to_owned()
}

/// The reason why the program ends, with its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// The text of the error, without the name of the program.
    pub message: String,
    /// Additional fields for `--json`.
    pub details: Value,
}

impl Failure {
    /// A failure without additional fields.
    pub fn new(code: u8, message: impl ToString) -> Self {
        Self { code, message: message.to_string(), details: Value::Null }
    }
}

/// Turns errors into failures with an exit code.
pub trait OrFail<T> {
    /// Fails with `code` and the error's message.
    fn or_fail(self, code: u8) -> Result<T, Failure>;
}

impl<T, E: ToString> OrFail<T> for Result<T, E> {
    fn or_fail(self, code: u8) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(code, e))
    }
}

// Both are far above what setups make. They keep a file from elsewhere from exhausting the memory of its reader.
/// The largest verifying key that is read, in bytes.
pub const KEY_LIMIT: u64 = 512 << 20;
/// The largest proof that is read, in bytes.
pub const PROOF_LIMIT: u64 = 1 << 20;

/// The maximum length of an input that comes through a pipe and is therefore kept in memory, in bytes.
const PIPE_LIMIT: u64 = 1 << 33;

fn is_file_or_pipe(metadata: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        metadata.is_file() || metadata.file_type().is_fifo()
    }
    #[cfg(not(unix))]
    metadata.is_file()
}

/// Reads a file; errors name it.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_at_most(path, KEY_LIMIT)
}

/// The input of a circuit. A file is read when the circuit opens it; a pipe, which can be read only
/// once, is read now.
pub fn input(path: &Path) -> Result<InputFile, Failure> {
    let failure = |why: String| Failure::new(BAD_FILE, format!("{}: {why}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|e| failure(e.to_string()))?;
    if !metadata.is_file() {
        let why = ": an input through a pipe is kept in memory, so pass a file";
        return read_limited(path, PIPE_LIMIT, why).map(InputFile::from_bytes);
    }
    // An unreadable file is reported now, and not after the keys were opened.
    std::fs::File::open(path).map_err(|e| failure(e.to_string()))?;
    Ok(InputFile::new(path))
}

/// Reads a Hekaton file of at most `limit` bytes.
pub fn read_at_most(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    read_limited(path, limit, ": not a Hekaton file")
}

/// Reads a file of at most `limit` bytes; the error for a longer one ends with `why`.
pub fn read_limited(path: &Path, limit: u64, why: &str) -> Result<Vec<u8>, Failure> {
    let failure = |why: String| Failure::new(BAD_FILE, format!("{}: {why}", path.display()));
    if path.is_dir() {
        return Err(failure("is a directory, expected a file".into()));
    }
    // A pipe ends when its writer does; a device may have no end.
    if !is_file_or_pipe(&std::fs::metadata(path).map_err(|e| failure(e.to_string()))?) {
        return Err(failure(format!("is neither a file nor a pipe{why}")));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| failure(e.to_string()))?;
    // One more byte than allowed, to distinguish a file of exactly `limit` bytes from a longer one.
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| failure(e.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(failure(format!("has more than {limit} bytes{why}")));
    }
    Ok(bytes)
}

static FINISHING: AtomicBool = AtomicBool::new(false);

// A signal that arrives while the proof is written must not leave the user without a proof of a run of hours.
/// Marks the point from which an interrupt comes too late: the result is being written.
pub fn finish() {
    FINISHING.store(true, Ordering::SeqCst);
}

/// Reports whether [`finish`] was called.
pub fn finishing() -> bool {
    FINISHING.load(Ordering::SeqCst)
}
