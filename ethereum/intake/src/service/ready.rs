//! Checks whether the service can do its work: store what arrives, and have it proven.

use crate::store::StoreError;
use crate::submitter::JobSubmitter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Semaphore};

/// The time that a check may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time for which a result is reused, since many clients may ask.
const FRESH: Duration = Duration::from_secs(1);

/// The result of the last check, and a permit for one check at a time, even if it hangs.
#[derive(Debug)]
pub(super) struct Readiness {
    last: Mutex<Option<(Instant, Result<(), String>)>>,
    one: Arc<Semaphore>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self { last: Mutex::default(), one: Arc::new(Semaphore::new(1)) }
    }
}

impl Readiness {
    pub(super) async fn check(&self, submitter: &Arc<JobSubmitter>) -> Result<(), String> {
        let mut last = self.last.lock().await;
        if let Some((at, known)) = &*last
            && at.elapsed() < FRESH
        {
            return known.clone();
        }
        let (one, submitter) = (Arc::clone(&self.one), Arc::clone(submitter));
        let check = async move {
            let held = one.acquire_owned().await;
            let checked = tokio::task::spawn_blocking(move || {
                let _held = held;
                check(&submitter)
            });
            checked.await.unwrap_or_else(|_| Err("the check failed".into()))
        };
        let late = |_| Err("the disk or the orchestrator does not answer".to_owned());
        let found = tokio::time::timeout(PATIENCE, check).await.unwrap_or_else(late);
        *last = Some((Instant::now(), found.clone()));
        found
    }
}

/// Checks storage and orchestrator. Errors omit details that are only for the log.
fn check(submitter: &JobSubmitter) -> Result<(), String> {
    submitter.store().probe().map_err(|error| {
        tracing::warn!(%error, "nothing can be stored");
        match error {
            StoreError::Full(_) => "the disk is full, so nothing can be stored".to_owned(),
            _ => "nothing can be stored: see the log".to_owned(),
        }
    })?;
    submitter.reach().map_err(|error| {
        tracing::warn!(%error, "the orchestrator cannot be used");
        "the orchestrator does not answer, or refuses requests: see the log".to_owned()
    })
}
