//! Trust in the back-ends of this process, and tasks that are left to other processes.
//!
//! If a back-end fails tasks that no other process has failed, the back-end is at fault, not the tasks. After failing such tasks of three
//! jobs in a row, it is in quarantine: while another process has the back-end, this one only tries a task from time to time, and the first
//! task that succeeds ends the quarantine. A task that failed here is left to others that have not tried it.

use crate::alive::SharedSession;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::record::{SessionId, Task, TaskKey};
use crate::surroundings::View;
use hekaton_orchestrator_client::{Digest, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::Instant;

/// The number of jobs in a row with failed tasks after which a back-end is in quarantine. A single job may itself be at fault.
const FAILED: usize = 3;

/// The number of jobs in a row with wrong outputs after which a back-end is no longer used.
const WRONG: usize = 3;

/// The first pause before a back-end in quarantine tries a task. It doubles each time, up to `MAX_PROBE`.
const PROBE: Duration = Duration::from_secs(30);
const MAX_PROBE: Duration = Duration::from_secs(600);

/// The time that a back-end in quarantine waits for another process that has it. After that, it runs tasks again, so that those that fail
/// become dead and the failure is reported.
const ALONE: Duration = Duration::from_secs(30);

/// The time for which a task is left to other processes, in milliseconds.
const LEFT: u64 = 60_000;

/// The evidence about its back-end that an attempt gives.
pub(super) enum Sign {
    /// It made an output that was verified.
    Good,
    /// It failed, with the reason.
    Bad(String),
    /// It made a wrong output, with the reason.
    Wrong(String),
    /// It says nothing about the back-end.
    None,
}

/// This process's experience with its back-ends.
#[derive(Default)]
pub(super) struct Trust {
    backends: BTreeMap<Name, Seen>,
}

#[derive(Default)]
struct Seen {
    /// Tasks that failed here and nowhere else, since the last one that was done.
    failed: BTreeSet<TaskKey>,
    /// Jobs with wrong outputs, since the last correct output.
    wrong: BTreeSet<Digest>,
    quarantine: Option<Quarantine>,
}

struct Quarantine {
    /// The time at which a task is tried next.
    probe: Instant,
    pause: Duration,
    /// The time since which no other process trusts the back-end.
    alone: Option<Instant>,
}

impl Trust {
    /// Takes note of an attempt that has ended.
    pub(super) fn note(
        &mut self,
        key: TaskKey,
        backend: &Name,
        sign: Sign,
        (own, clock, metrics): (&SharedSession, &Clock, &Metrics),
    ) {
        let seen = self.backends.entry(backend.clone()).or_default();
        let mut session = own.lock().unwrap_or_else(PoisonError::into_inner);
        match sign {
            Sign::None => {}
            Sign::Good => {
                seen.failed.clear();
                seen.wrong.clear();
                if seen.quarantine.take().is_some() {
                    tracing::info!(%backend, "out of quarantine: a task has succeeded");
                    session.quarantined.remove(backend);
                    metrics.quarantined(backend, false);
                }
            }
            Sign::Wrong(why) => {
                if seen.wrong.insert(key.job) && seen.wrong.len() == WRONG {
                    tracing::error!(%backend, %why, "quarantined: its outputs for three jobs in a row were wrong");
                    metrics.quarantined(backend, true);
                    session.backends.retain(|known| known != backend);
                    // Every tenant can read this text, but the failed tasks belong to single tenants: the details are in the log.
                    let why = "its outputs for three jobs in a row were wrong: see the log of the process";
                    session.quarantined.insert(backend.clone(), why.into());
                }
            }
            Sign::Bad(why) => {
                // Counts jobs instead of tasks: one bad input with many tasks must not put a back-end in quarantine.
                if seen.failed.len() < FAILED && seen.failed.iter().all(|it| it.job != key.job) {
                    seen.failed.insert(key);
                }
                if seen.failed.len() >= FAILED && seen.quarantine.is_none() {
                    tracing::error!(%backend, %why, "quarantined: it failed tasks of three jobs in a row that no other process failed");
                    metrics.quarantined(backend, true);
                    // This text is shown to tenants, and the reason of an attempt may name files of the machine.
                    let why = "it failed tasks of three jobs in a row that no other process failed: see the log of the process";
                    session.quarantined.insert(backend.clone(), why.into());
                    seen.quarantine =
                        Some(Quarantine { probe: clock.after(PROBE), pause: PROBE, alone: None });
                }
            }
        }
    }

    /// Takes note of a task as it is stored: one that fails elsewhere, too, is itself at fault.
    pub(super) fn hear(&mut self, key: &TaskKey, task: &Task, own: &SessionId) {
        let failed = task.failed.keys().chain(&task.refused).any(|session| session != own);
        if let Some(seen) = self.backends.get_mut(&task.backend).filter(|_| failed) {
            seen.failed.remove(key);
        }
    }

    /// Takes note of the other processes.
    pub(super) fn look(&mut self, view: &View, own: &SessionId) {
        for (backend, seen) in &mut self.backends {
            if let Some(quarantine) = &mut seen.quarantine {
                match view.is_trusted_elsewhere(backend, own) {
                    // As long as another process trusts the back-end, tasks are better left to it.
                    true => quarantine.alone = None,
                    false => drop(quarantine.alone.get_or_insert_with(Instant::now)),
                }
            }
        }
    }

    /// Reports whether a task of a back-end may be claimed now. `busy` is `true` if one is running here.
    pub(super) fn allows(&self, backend: &Name, clock: &Clock, busy: bool) -> bool {
        let Some(seen) = self.backends.get(backend) else { return true };
        if seen.wrong.len() >= WRONG {
            return false;
        }
        let Some(quarantine) = &seen.quarantine else { return true };
        let now = Instant::now();
        let alone = quarantine.alone.is_some_and(|since| clock.real(ALONE) <= now - since);
        alone || (!busy && quarantine.probe <= now)
    }

    /// Takes note that a task of a back-end was claimed.
    pub(super) fn claimed(&mut self, backend: &Name, clock: &Clock) {
        let seen = self.backends.get_mut(backend);
        if let Some(quarantine) = seen.and_then(|seen| seen.quarantine.as_mut()) {
            quarantine.pause = (quarantine.pause * 2).min(MAX_PROBE);
            quarantine.probe = clock.after(quarantine.pause);
        }
    }
}

/// Reports whether a task is left to another process that has not tried it, or has tried it less often.
pub(super) fn is_left(task: &Task, view: &View, own: &SessionId, now: u64) -> bool {
    let reluctance = task.reluctance(own);
    // After a while the task is taken all the same: the other process may have no free slot.
    if reluctance == (0, false) || now > task.not_before.saturating_add(LEFT) {
        return false;
    }
    view.takers(&task.backend).any(|other| other != own && task.reluctance(other) < reluctance)
}

/// Reports whether there may be another process that has not tried a task. `true` until the sessions have been read.
pub(super) fn is_untried_elsewhere(task: &Task, view: &View, own: &SessionId) -> bool {
    !view.looked
        || view.takers(&task.backend).any(|other| other != own && !task.was_tried_by(other))
}
