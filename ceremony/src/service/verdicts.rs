//! Verdicts: contributions that are complete are checked, one at a time.

use super::queue::{Slot, Stage};
use super::{HELD, Service, ends, now};
use hekaton_ceremony::{CeremonyError, Coordinator, Response};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The time after which the service retries a check that it could not complete.
const AGAIN: Duration = Duration::from_secs(30);

/// The end of a check.
enum Verdict {
    Accepted,
    Refused(String),
    /// The upload cannot be read: the contributor still has it.
    Lost(String),
    /// The check failed through no fault of the contribution.
    Trouble(String),
}

impl Service {
    /// Checks contributions until the service stops.
    pub(super) fn judge(&self, mut coordinator: Coordinator) {
        // The contributions that could not be checked, and when to try again.
        let mut later: HashMap<String, Instant> = HashMap::new();
        loop {
            let slot = {
                let mut shared = self.lock();
                loop {
                    let now = Instant::now();
                    let ready = |slot: &&Slot| later.get(&slot.token).is_none_or(|at| *at <= now);
                    if let Some(slot) = shared.queue.complete().find(ready) {
                        break slot.clone();
                    }
                    // Not before: after this, the ceremony may be finished.
                    if shared.stopping {
                        return;
                    }
                    let next = later.values().map(|at| at.saturating_duration_since(now)).min();
                    shared = match next {
                        Some(wait) => self.work.wait_timeout(shared, wait).expect(HELD).0,
                        None => self.work.wait(shared).expect(HELD),
                    };
                }
            };
            later.remove(&slot.token);
            let start = Instant::now();
            let verdict = self.check(&mut coordinator, &slot);
            let mut shared = self.lock();
            shared.chains = ends(&coordinator);
            let seconds = start.elapsed().as_secs_f64();
            let name = &slot.name;
            let stage = match verdict {
                Verdict::Accepted => {
                    tracing::info!(name, seconds, "a contribution is accepted");
                    Stage::Accepted
                }
                Verdict::Refused(why) => {
                    tracing::warn!(name, why, "a contribution is refused");
                    Stage::Refused { why }
                }
                Verdict::Lost(why) => {
                    tracing::error!(name, why, "an upload is lost");
                    Stage::Expired
                }
                Verdict::Trouble(why) => {
                    tracing::error!(name, why, "a contribution cannot be checked and has to wait");
                    shared.troubled.insert(slot.token.clone());
                    later.insert(slot.token, Instant::now() + AGAIN);
                    continue;
                }
            };
            shared.troubled.remove(&slot.token);
            let end = |queue: &mut super::Queue| {
                queue.end(&slot.token, now(), stage);
                Ok(())
            };
            // If it cannot be written, the contribution is checked again, and found in the transcript.
            if self.change(&mut shared, end).is_err() {
                later.insert(slot.token.clone(), Instant::now() + AGAIN);
            }
            // What cannot be removed now is removed by the next tick.
            let _ = self.remove_uploads(&shared);
        }
    }

    fn check(&self, coordinator: &mut Coordinator, slot: &Slot) -> Verdict {
        let path = self.upload(&slot.token);
        // The path on the server means nothing to the contributor.
        let told = |text: String| text.replace(&path.display().to_string(), "the contribution");
        let blame = |error: CeremonyError| match &error {
            CeremonyError::Broken(_) | CeremonyError::Foreign(_) => {
                Verdict::Refused(told(error.to_string()))
            }
            CeremonyError::Io { path: at, .. } if *at == path => Verdict::Lost(error.to_string()),
            CeremonyError::File { path: at, .. } if *at == path => {
                Verdict::Refused(told(error.to_string()))
            }
            _ => Verdict::Trouble(error.to_string()),
        };
        let response = match Response::open(&path, &self.genesis) {
            Ok(response) => response,
            Err(error) => return blame(error),
        };
        let (records, transcript) = (&response.records, &coordinator.transcript);
        let chains: Vec<String> = records.iter().map(|record| record.chain.to_string()).collect();
        if chains != slot.chains || records.iter().any(|record| record.name != slot.name) {
            let why = "the contribution has another name or other chains than its slot";
            return Verdict::Refused(why.to_owned());
        }
        // The service was stopped after it had accepted the contribution.
        if records.iter().all(|record| transcript.records(record.chain).contains(record)) {
            return Verdict::Accepted;
        }
        let mut say = |step: &str| tracing::info!(name = slot.name, "checking {step}");
        match coordinator.add(&response, &mut say) {
            Ok(()) => Verdict::Accepted,
            Err(error) => blame(error),
        }
    }
}
