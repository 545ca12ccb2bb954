//! Readiness, which `/readyz` reports: the service can do its work now.

use super::board::Board;
use super::problem::UNAVAILABLE;
use super::tenants::Tenants;
use crate::alive::Pulse;
use crate::standstill::Watched;
use crate::store::Store;
use hekaton_orchestrator_client::Blobs;
use hekaton_service::Problem;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The time for which a result is reused: any client that can connect may ask, and each look writes to the disk.
const FRESH: Duration = Duration::from_secs(1);

/// The time that a part may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum number of blocks that stand still and are named in an answer.
const MAX_NAMED: usize = 3;

/// The parts of the service that are tried.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) blobs: &'a Blobs,
    pub(super) board: &'a Board,
    pub(super) tenants: &'a Tenants,
    pub(super) watched: &'a Watched,
}

/// Describes the chains that stand still. With tenants, callers must not learn of their blocks, and a tenant that omits a block must not
/// make the service unready for the others, so only causes that the operator has to fix count.
fn standing(parts: &Parts<'_>) -> Vec<String> {
    let found = parts.watched.standstills();
    let halted = found.iter().filter(|one| one.halts);
    if parts.tenants.are_several() {
        let count = halted.filter(|one| !one.cause.is_submitters()).count();
        let text = format!("{count} blocks stand still: the log names them");
        return if count == 0 { vec![] } else { vec![text] };
    }
    let count = halted.clone().count();
    let mut named: Vec<String> = halted.take(MAX_NAMED).map(ToString::to_string).collect();
    if count > MAX_NAMED {
        named.push(format!("{} more blocks stand still", count - MAX_NAMED));
    }
    named
}

/// The readiness that was found last.
#[derive(Debug)]
pub(crate) struct Readiness {
    pulse: Pulse,
    last: Mutex<Option<(Instant, Vec<&'static str>)>>,
}

impl Readiness {
    /// Returns the readiness of a process whose session has a pulse.
    pub(crate) fn new(pulse: Pulse) -> Self {
        Self { pulse, last: Mutex::default() }
    }

    /// Tests everything that requests and jobs need: the store of records is read and written, there is space for a blob, the records were
    /// read once, and the session is written, without which others take the process for dead.
    pub(super) async fn check(&self, parts: &Parts<'_>) -> Result<(), Problem> {
        // Callers that ask meanwhile get the same answer.
        let mut last = self.last.lock().await;
        let is_fresh = |at: &Instant| at.elapsed() < FRESH;
        let missing = match last.take().filter(|(at, _)| is_fresh(at)) {
            Some((at, missing)) => {
                *last = Some((at, missing.clone()));
                missing
            }
            None => {
                let missing = self.look(parts).await;
                *last = Some((Instant::now(), missing.clone()));
                missing
            }
        };
        let missing: Vec<String> =
            missing.into_iter().map(str::to_owned).chain(standing(parts)).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Problem::new(UNAVAILABLE, missing.join("; "))),
        }
    }

    async fn look(&self, parts: &Parts<'_>) -> Vec<&'static str> {
        let blobs = parts.blobs.clone();
        let stored = tokio::task::spawn_blocking(move || blobs.probe());
        let (probed_records, joined) = tokio::join!(
            tokio::time::timeout(PATIENCE, parts.store.probe()),
            tokio::time::timeout(PATIENCE, stored),
        );
        let records = probed_records.map(|probed| probed.map_err(|error| error.to_string()));
        let stored = joined.map(|joined| match joined {
            Ok(probed) => probed.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        });
        let tried = [
            ("the store of records cannot be written", records),
            ("no blob can be stored", stored),
        ];
        let mut missing = Vec::new();
        for (what, probed) in tried {
            let why = match probed {
                Ok(Ok(())) => continue,
                Ok(Err(why)) => why,
                Err(_) => format!("it does not answer within {} s", PATIENCE.as_secs()),
            };
            tracing::warn!(why, "not ready: {what}");
            missing.push(what);
        }
        if !parts.board.is_complete() {
            missing.push("the records have not been read yet");
        }
        if let Some(late) = self.pulse.is_late() {
            tracing::warn!(seconds = late.as_secs(), "not ready: the session is not written");
            missing.push("the session of the process is not written");
        }
        missing
    }
}
