//! Hints on the next command, which the program adds to errors of its libraries: these do not know the
//! command line.

use hekaton_circuit::named::ParameterError;
use hekaton_core::distributed::RankError;
use hekaton_core::keys::KeyFileError;
use hekaton_core::protocol::coordinator::CoordinatorError;
use hekaton_core::protocol::worker::WorkerError;
use hekaton_core::{ProofError, ProveError, SetupError, VerifyError};
use hekaton_plan::NotEnoughMemory;
use hekaton_storage::{KeyStoreError, RunError};
use hekaton_terminal::exit::{self, Failure};
use serde_json::json;
use std::error::Error;

/// The command that finds a constraint that is not satisfied.
pub(crate) const CHECK: &str = "`hekaton check` names the constraint and its wires";

/// The error's text, with a hint if there is one.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> String {
    match hint(error) {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

// Downcasts instead of `Error::source`: a variant decides whether the inner error has the remedy, and some inner errors are
// shown as part of the outer text.
/// The hint for an error, or for the error that it wraps.
fn hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<ProveError>() {
        return match error {
            ProveError::Coordinator(CoordinatorError::Key(error)) => of_key_file(error),
            ProveError::Coordinator(CoordinatorError::Rank(error)) => of_rank(error),
            ProveError::AttemptsExhausted(_) => Some("pass another --run DIR"),
            ProveError::Worker(
                WorkerError::Unsatisfied { .. } | WorkerError::Synthesize { .. },
            ) => Some(CHECK),
            ProveError::Worker(WorkerError::Key(error)) => of_key_file(error),
            ProveError::Journal(error) => error.downcast_ref().and_then(of_run),
            _ => None,
        };
    }
    if let Some(SetupError::Sink(error)) = error.downcast_ref() {
        return of_key_store(error);
    }
    let of_store = error.downcast_ref().and_then(of_key_store);
    of_store
        .or_else(|| error.downcast_ref().and_then(of_parameter))
        .or_else(|| error.downcast_ref().and_then(of_key_file))
        .or_else(|| error.downcast_ref().and_then(of_run))
        .or_else(|| error.downcast_ref().and_then(of_rank))
        .or_else(|| error.downcast_ref().and_then(of_proof))
        .or_else(|| of_mpi(error))
}

/// A hint for an error of another rank, which arrives as text.
fn of_rank(error: &RankError) -> Option<&'static str> {
    match error {
        RankError::Lost { why, .. } if why.contains("exceeded its deadline") => {
            Some("if it is alive, raise --round-timeout")
        }
        RankError::Failed { message, .. } if message.contains("constraint") => Some(CHECK),
        _ => None,
    }
}

fn of_proof(error: &VerifyError) -> Option<&'static str> {
    matches!(error, VerifyError::Proof(ProofError::ForeignKey { .. }))
        .then_some("pass the verifying.key of its setup")
}

#[cfg(feature = "mpi")]
fn of_mpi(error: &(dyn Error + 'static)) -> Option<&'static str> {
    matches!(error.downcast_ref(), Some(hekaton_mpi::MpiError::Start(_)))
        .then_some("try `hekaton doctor`")
}

#[cfg(not(feature = "mpi"))]
fn of_mpi(_: &(dyn Error + 'static)) -> Option<&'static str> {
    None
}

fn of_key_store(error: &KeyStoreError) -> Option<&'static str> {
    match error {
        KeyStoreError::NotAKeyStore { .. } => Some("`hekaton setup` writes one"),
        KeyStoreError::Family { .. } => {
            Some("`hekaton keys derive DIR --for FILE --out DIR` derives a key store from it")
        }
        KeyStoreError::KeyFile(error) => of_key_file(error),
        _ => None,
    }
}

fn of_key_file(error: &KeyFileError) -> Option<&'static str> {
    matches!(error, KeyFileError::Magic { .. }).then_some("`hekaton setup` writes such files")
}

fn of_parameter(error: &ParameterError) -> Option<&'static str> {
    match error {
        ParameterError::NoSuchCircuit { .. } => Some("`hekaton circuits` describes them"),
        ParameterError::Missing { .. } => {
            Some("pass it with -p NAME=VALUE, or take it from an input with --for FILE")
        }
        _ => None,
    }
}

fn of_run(error: &RunError) -> Option<&'static str> {
    matches!(error, RunError::Exists { .. })
        .then_some("pass --resume to resume it, or use another directory")
}

/// The failure for a memory limit that is too small; reports the smallest workable one.
pub fn not_enough_memory(e: NotEnoughMemory) -> Failure {
    // rounded up, so that the figure can be passed to --memory-limit as it is
    let smallest = e.smallest.div_ceil(1 << 20);
    let message = format!(
        "--memory-limit: the limit of {} bytes is too small; the smallest workable limit is \
         {smallest}M (of 2^20 bytes)",
        e.limit
    );
    let details = json!({ "smallest_bytes": smallest << 20 });
    Failure { code: exit::USAGE, message, details }
}
