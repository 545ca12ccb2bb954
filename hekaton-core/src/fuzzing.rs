//! Entry points for fuzzing: parsers that are no part of the API. May change at any time.

use crate::aggregation::proof_fields;
use crate::engine::LocalEngine;
use crate::keys::{KeyFileError, Manifest, check_key_file};
use crate::messages::Commitment;
use crate::run::log::{Binding, Found, Log};
use crate::run::{RunError, parse_run};
use std::ops::Range;
use std::path::Path;

/// The fields of a proof with `rounds` halvings: places in the file, by their kind: 48, 96 or 288 bytes.
pub fn fields(rounds: usize) -> Vec<Range<usize>> {
    proof_fields(rounds)
}

/// `manifest.json`.
pub fn manifest(text: &[u8]) -> Option<Manifest> {
    Manifest::parse(text, Path::new("manifest.json")).ok()
}

/// `run.json`.
pub fn run_file(text: &[u8]) -> bool {
    parse_run(text, Path::new("run.json")).is_ok()
}

/// Opens a key file with whatever digest it has, and builds the key.
///
/// # Errors
/// What is wrong with it.
pub fn key_file(path: &Path) -> Result<(), KeyFileError> {
    check_key_file(path)
}

/// A good message of each kind that goes between ranks, or its content.
pub fn good_rank_messages() -> Vec<Vec<u8>> {
    crate::ranks::fuzzing::good()
}

/// Decodes bytes as every message between ranks; panics when something has two encodings.
pub fn rank_message(bytes: &[u8]) {
    crate::ranks::fuzzing::decode(bytes);
}

/// Opens a log of commitments in a directory and gives its answers and notices.
///
/// # Errors
/// When it belongs to something else.
pub fn open_log(
    directory: &Path,
    binding: [u8; 32],
    instances: usize,
    engine: &LocalEngine,
) -> Result<(Vec<Commitment>, Vec<String>), RunError> {
    let (_, found) = log(directory, binding, instances, engine)?;
    Ok((found.answers.into_values().collect(), found.notices))
}

/// Appends to a log, in a new segment.
///
/// # Errors
/// When it can't be written.
pub fn append(
    directory: &Path,
    binding: [u8; 32],
    answers: &[Commitment],
    engine: &LocalEngine,
) -> Result<(), RunError> {
    let (log, _) = log(directory, binding, usize::MAX, engine)?;
    answers.iter().try_for_each(|answer| log.append(answer).map(drop))
}

fn log(
    directory: &Path,
    public: [u8; 32],
    instances: usize,
    engine: &LocalEngine,
) -> Result<(Log, Found<Commitment>), RunError> {
    let binding = Binding { public, secret: public };
    Log::open(directory, "commitments", binding, instances, engine)
}
