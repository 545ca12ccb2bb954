//! Entry points for fuzzing: parsers that are not part of the API and may change at any time.

use crate::error::RunError;
use crate::files::parse_run;
use crate::key_store::Manifest;
use crate::log::{Binding, Log};
use hekaton_core::LocalEngine;
use hekaton_core::protocol::answer::accept;
use hekaton_core::protocol::messages::{Commitment, Message};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// Parses `manifest.json`.
pub fn manifest(text: &[u8]) -> Option<Manifest> {
    Manifest::parse(text, Path::new("manifest.json")).ok()
}

/// Reports whether a text is a valid `run.json`.
pub fn run_file(text: &[u8]) -> bool {
    parse_run(text, Path::new("run.json")).is_ok()
}

/// Opens a log of commitments in a directory and returns its answers and notices.
///
/// # Errors
/// If the log belongs to something else.
pub fn open_log(
    directory: &Path,
    binding: [u8; 32],
    instances: usize,
) -> Result<(Vec<Commitment>, Vec<String>), RunError> {
    let mut answers = BTreeMap::new();
    let one = LocalEngine::new(NonZeroUsize::new(1))
        .map_err(|error| RunError::Io { path: directory.to_owned(), error })?;
    let (_, notices) = log(directory, binding, &mut |messages| {
        accept::<Commitment>(messages, instances, &one, &mut answers)
    })?;
    Ok((answers.into_values().collect(), notices))
}

/// Appends to a log, in a new segment.
///
/// # Errors
/// If the log cannot be written.
pub fn append(directory: &Path, binding: [u8; 32], answers: &[Commitment]) -> Result<(), RunError> {
    let (log, _) = log(directory, binding, &mut |_| 0)?;
    answers.iter().try_for_each(|answer| log.append(&answer.to_bytes()).map(drop))
}

fn log(
    directory: &Path,
    public: [u8; 32],
    accept: &mut hekaton_core::protocol::journal::Accept<'_>,
) -> Result<(Log, Vec<String>), RunError> {
    let binding = Binding { public, secret: public };
    Log::open(directory, "commitments", binding, Commitment::LEN, accept)
}
