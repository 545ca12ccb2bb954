//! Exit codes.

use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Done; for `verify`: the proof holds.
pub(crate) const OK: u8 = 0;
/// `verify`: the proof does not hold for these public values; `check`: a constraint does not hold.
pub(crate) const REFUSED: u8 = 1;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// A file or its content can't be used: missing, damaged, of another version, of another setup.
pub(crate) const BAD_FILE: u8 = 3;
/// The run failed: the input does not fit, a witness is wrong, the disk is full.
pub(crate) const FAILED: u8 = 4;
/// Asked to stop by Ctrl-C or SIGTERM; what was done is in the run directory.
pub(crate) const STOPPED: u8 = 5;
/// A rank was lost or fell silent; what was answered before is in the run directory.
pub(crate) const LOST: u8 = 6;
/// Ended at once by Ctrl-C or SIGTERM.
pub(crate) const INTERRUPTED: u8 = 130;

/// For `--help`.
pub(crate) const HELP: &str = "Exit codes:
  0  done; for verify: the proof holds
  1  verify: the proof does not hold, or the keys are test keys; check: a constraint does not hold
  2  the command line is wrong, public values included
  3  a file or directory can't be used: missing, damaged, in the way, of another version or another setup
  4  the run failed: the input does not fit, a witness is wrong, a disk is full
  5  interrupted; what was done is in the run directory, go on with --resume
  6  a rank was lost or fell silent; what was done is in the run directory, go on with --resume
  130  interrupted at once; no result was written

Environment:
  HEKATON_ARITH  portable, avx2, ifma or auto (the default): which arithmetic kernels run; proofs are the same bytes
  RUST_LOG       which warnings go to standard error, for example off or debug";

/// Why the program ends, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// More for `--json`.
    pub(crate) details: Value,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl ToString) -> Self {
        Self { code, message: message.to_string(), details: Value::Null }
    }
}

/// Shorthands for results.
pub(crate) trait OrFail<T> {
    /// Fails with this code and the error's message.
    fn or_fail(self, code: u8) -> Result<T, Failure>;
}

impl<T, E: ToString> OrFail<T> for Result<T, E> {
    fn or_fail(self, code: u8) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(code, e))
    }
}

/// The largest verifying key and proof that are read.
pub(crate) const KEY_LIMIT: u64 = 512 << 20;
/// See [`KEY_LIMIT`].
pub(crate) const PROOF_LIMIT: u64 = 1 << 20;

/// Reads a file; errors name it.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_at_most(path, u64::MAX)
}

/// Reads a file that can't be longer than `limit`.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let failure = |why: String| Failure::new(BAD_FILE, format!("{}: {why}", path.display()));
    if path.is_dir() {
        return Err(failure("is a directory, expected a file".into()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| failure(e.to_string()))?;
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| failure(e.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(failure(format!("has more than {limit} bytes: that is none of our files")));
    }
    Ok(bytes)
}

static FINISHING: AtomicBool = AtomicBool::new(false);

/// From here on an interrupt comes too late.
pub(crate) fn finish() {
    FINISHING.store(true, Ordering::SeqCst);
}

/// Whether [`finish`] was called.
pub(crate) fn finishing() -> bool {
    FINISHING.load(Ordering::SeqCst)
}
