//! Tasks and their transitions.
//!
//! A task is `Ready`, then `Leased`, then `Done`; a failed attempt makes it `Ready` again, or `Dead` after too many, in more than one
//! process where there are others. `Done`, `Dead` and `Cancelled` are final, except that a new generation of its job revives a task
//! that was not done. All transitions are here, as functions without side effects. Each takes effect by a conditional write: a claim's
//! revision is its epoch, and a leased record is written only to end the lease, so a session that has lost a lease can neither finish,
//! fail nor return the task.

use super::{JobKey, SessionId};
use crate::clock::millis;
use hekaton_orchestrator_client::{Digest, Name, Stage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The place of a task in the workflow of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey {
    /// The job's partition.
    pub partition: u8,
    /// [`super::Job::identity`].
    pub job: Digest,
    /// The stage of the workflow.
    pub stage: u16,
    /// The index of the task within the stage.
    pub index: u32,
    /// The number of the copy, among those that run at the same time.
    pub copy: u8,
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, job, stage, index, copy } = self;
        write!(f, "task/{partition:02}/{job}/{stage}/{index}/{copy}")
    }
}

/// The key is not one of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the key of a task")]
pub struct BadKey(String);

impl FromStr for TaskKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let bad = || BadKey(text.chars().take(200).collect());
        let parts: Vec<&str> = text.split('/').collect();
        let &["task", partition, job, stage, index, copy] = &parts[..] else { return Err(bad()) };
        let key = Self {
            partition: partition.parse().map_err(|_| bad())?,
            job: job.parse().map_err(|_| bad())?,
            stage: stage.parse().map_err(|_| bad())?,
            index: index.parse().map_err(|_| bad())?,
            copy: copy.parse().map_err(|_| bad())?,
        };
        // One spelling for each key.
        if key.to_string() == text { Ok(key) } else { Err(bad()) }
    }
}

/// The limits of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The number of failed attempts after which it is dead, if others have failed, too, or no other process is there.
    pub attempts: u32,
    /// The time that an attempt may take, in seconds.
    pub seconds: u32,
    /// The time that an attempt may go without progress, in seconds.
    pub stall_seconds: u32,
}

impl From<&Stage> for Limits {
    fn from(stage: &Stage) -> Self {
        let Stage { attempts, seconds, stall_seconds, .. } = *stage;
        Self { attempts, seconds, stall_seconds }
    }
}

impl Limits {
    /// The number of times that a task is given back without counting as an attempt before it is dead all the same.
    // With pauses that double up to a minute, about 45 minutes.
    pub const RETURNS: u32 = 50;
    /// A task is dead after this many processes have died while running it. Processes die for other reasons more often than because of
    /// their task, so these are not failed attempts.
    pub const DEATHS: u32 = 20;
    /// The number of sessions on which a task must have failed before it is dead while others are there that have not tried it.
    pub const SESSIONS: usize = 3;
    /// The number of sessions that must find a task impossible before it is dead while others are there that have not tried it.
    pub const REFUSALS: usize = 2;
    /// The multiple of [`Self::attempts`] after which a task is dead, even if other processes could still try it.
    pub const PATIENCE: u32 = 3;
    /// The longest wait after the death of a process.
    const DEATH_PAUSE: Duration = Duration::from_secs(1);
    /// The number of sessions that are kept in a record.
    const KEPT: usize = 16;
    /// The shortest wait after a failed attempt; it doubles with each.
    const PAUSE: Duration = Duration::from_millis(500);
    /// The longest wait after a failed attempt.
    const MAX_PAUSE: Duration = Duration::from_secs(60);
}

/// One run of a back-end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The digest of what is to be done: the same wherever and whenever it is done.
    pub id: Digest,
    /// The job that it is for.
    pub job: JobKey,
    /// The job's generation when the task was made or revived.
    pub generation: u32,
    /// The block's height.
    pub block: u64,
    /// The block's name.
    pub block_id: Name,
    /// The job's urgency.
    pub lane: u8,
    /// The stage's name.
    pub stage: Name,
    /// The number of stages before it, on the longest path from the inputs: of a block's tasks, later ones are claimed first.
    pub depth: u16,
    /// The back-end that runs it.
    pub backend: Name,
    /// Blobs.
    pub inputs: Vec<Digest>,
    /// The limits of the task.
    pub limits: Limits,
    /// The `traceparent` of the job.
    pub trace: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// Attempts that failed.
    pub attempts: u32,
    /// Failed attempts by session; only the first sessions, if there are many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<SessionId, u32>,
    /// Sessions for which it is impossible.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub refused: BTreeSet<SessionId>,
    /// The session that made the last attempt, if nothing came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<SessionId>,
    /// Processes that died while they ran it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub deaths: u32,
    /// Leases that were given back uncounted.
    pub returns: u32,
    /// It may not be claimed before this, in milliseconds since 1970.
    pub not_before: u64,
    /// Why the last attempt ended.
    pub last_failure: Option<String>,
    /// The state of the task.
    pub state: TaskState,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", deny_unknown_fields)]
pub enum TaskState {
    /// It may be claimed.
    Ready,
    /// A session runs it.
    Leased {
        /// The session.
        session: SessionId,
        /// The time of the claim, in milliseconds since 1970.
        since: u64,
    },
    /// Its output is stored and was verified.
    Done {
        /// The blob.
        output: Digest,
        /// The session that made it.
        session: SessionId,
        /// The time at which it was done, in milliseconds since 1970.
        at: u64,
        /// The time that the attempt took, in milliseconds.
        millis: u64,
    },
    /// It failed too often, or cannot be done.
    Dead {
        /// The reason.
        reason: String,
        /// The time at which it died, in milliseconds since 1970.
        at: u64,
    },
    /// It is no longer wanted.
    Cancelled {
        /// The time at which it was cancelled, in milliseconds since 1970.
        at: u64,
    },
}

/// A transition that the task's state does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task that is {state} cannot be {wanted}")]
pub struct Refused {
    state: &'static str,
    wanted: &'static str,
}

impl TaskState {
    /// The state in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Leased { .. } => "leased",
            Self::Done { .. } => "done",
            Self::Dead { .. } => "dead",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Reports whether nothing more happens to it, except by a new generation.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Dead { .. } | Self::Cancelled { .. })
    }
}

impl Task {
    fn with(&self, state: TaskState) -> Self {
        Self { state, ..self.clone() }
    }

    fn refused_to(&self, wanted: &'static str) -> Refused {
        Refused { state: self.state.word(), wanted }
    }

    /// Checks that this session has leased the task.
    fn leased_by(&self, session: &SessionId, wanted: &'static str) -> Result<(), Refused> {
        match &self.state {
            TaskState::Leased { session: holder, .. } if holder == session => Ok(()),
            _ => Err(self.refused_to(wanted)),
        }
    }

    /// Reports whether its time has come. A time that is further away than the longest pause was set by a clock that was ahead, and
    /// counts as come: waiting for it would take days.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let left = Duration::from_millis(self.not_before.saturating_sub(now));
        left.is_zero() || left > Limits::MAX_PAUSE
    }

    /// Leases the task to a session.
    ///
    /// # Errors
    /// Unless it is ready and its time has come.
    pub fn claim(&self, session: &SessionId, now: u64) -> Result<Self, Refused> {
        match self.state {
            TaskState::Ready if self.is_due(now) => {
                Ok(self.with(TaskState::Leased { session: session.clone(), since: now }))
            }
            _ => Err(self.refused_to("claimed")),
        }
    }

    /// Notes the output of a lease.
    ///
    /// # Errors
    /// Unless the session has leased it.
    pub fn finish(&self, session: &SessionId, output: Digest, now: u64) -> Result<Self, Refused> {
        self.leased_by(session, "finished")?;
        let TaskState::Leased { since, .. } = self.state else {
            return Err(self.refused_to("finished"));
        };
        let millis = now.saturating_sub(since);
        Ok(self.with(TaskState::Done { output, session: session.clone(), at: now, millis }))
    }

    /// Ends a lease whose attempt failed. The task is ready again after a pause or, after too many attempts, dead. If there are other
    /// sessions that have not tried it (`elsewhere`), this session may be at fault: the task is then dead only after it has failed in
    /// several sessions.
    ///
    /// # Errors
    /// Unless the session has leased it.
    pub fn fail(
        &self,
        session: &SessionId,
        reason: &str,
        now: u64,
        elsewhere: bool,
    ) -> Result<Self, Refused> {
        self.leased_by(session, "failed")?;
        let attempts = self.attempts.saturating_add(1);
        let mut failed = self.failed.clone();
        // The size of a record is limited, so it cannot hold all sessions that ever tried.
        if failed.len() < Limits::KEPT || failed.contains_key(session) {
            *failed.entry(session.clone()).or_default() += 1;
        }
        let most = self.limits.attempts;
        let several = Limits::SESSIONS.min(most as usize);
        // A process with a broken device fails every task, and must not be able to make them all dead on its own.
        let is_sure = !elsewhere || failed.len() >= several;
        let is_dead =
            // The number of failures is limited in any case, or a task could wait forever for a process that never tries it.
            (attempts >= most && is_sure) || attempts >= most.saturating_mul(Limits::PATIENCE);
        let state = match is_dead {
            true => {
                let (backend, count) = (&self.backend, failed.len());
                let reason = format!(
                    "the back-end '{backend}' failed {attempts} times, in {count} processes; last failure: {reason}"
                );
                TaskState::Dead { reason: cut(&reason), at: now }
            }
            false => TaskState::Ready,
        };
        let (not_before, last) = (not_before(self.attempts, now), Some(session.clone()));
        let last_failure = Some(cut(reason));
        Ok(Self { attempts, failed, last, not_before, last_failure, ..self.with(state) })
    }

    /// Ends a lease whose session is dead. After many of them the task is dead: it may be what killed them.
    ///
    /// # Errors
    /// Unless it is leased.
    pub fn expire(&self, now: u64) -> Result<Self, Refused> {
        let TaskState::Leased { session, .. } = &self.state else {
            return Err(self.refused_to("expired"));
        };
        let deaths = self.deaths.saturating_add(1);
        let reason = format!("session {session} ended while it ran the task");
        let state = match deaths >= Limits::DEATHS {
            true => {
                let reason = format!(
                    "{deaths} processes with the back-end '{}' died of it: {reason}",
                    self.backend
                );
                TaskState::Dead { reason: cut(&reason), at: now }
            }
            false => TaskState::Ready,
        };
        // A short pause: most processes die for reasons of their own, and the block waits.
        let not_before = now.saturating_add(pause(self.deaths, Limits::DEATH_PAUSE));
        let last_failure = Some(cut(&reason));
        Ok(Self { deaths, not_before, last_failure, ..self.with(state) })
    }

    /// Ends a lease without a result, through no fault of the task. The task is ready again at once or, if the same would then happen
    /// again, after a pause. After [`Limits::RETURNS`] times it is dead, because a task that is given back forever would never end.
    ///
    /// # Errors
    /// Unless the session has leased it.
    pub fn give_back(
        &self,
        session: &SessionId,
        reason: &str,
        now: u64,
        pause: bool,
    ) -> Result<Self, Refused> {
        self.leased_by(session, "given back")?;
        let returns = self.returns.saturating_add(1);
        let state = match returns >= Limits::RETURNS {
            true => {
                let reason = format!("given back {returns} times; last reason: {reason}");
                TaskState::Dead { reason: cut(&reason), at: now }
            }
            false => TaskState::Ready,
        };
        let not_before = if pause { not_before(self.returns, now) } else { self.not_before };
        // Without a pause, the attempt says nothing about the session, which was stopped or never
        // ran the task: it may as well be the next one to claim it.
        let last = if pause { Some(session.clone()) } else { self.last.clone() };
        Ok(Self { returns, last, not_before, last_failure: Some(cut(reason)), ..self.with(state) })
    }

    /// Ends a lease of a task that no attempt can do. If there are other sessions that have not tried it (`elsewhere`), one of them must
    /// find it impossible, too: a session with wrong keys finds everything impossible.
    ///
    /// # Errors
    /// Unless the session has leased it.
    pub fn bury(
        &self,
        session: &SessionId,
        reason: &str,
        now: u64,
        elsewhere: bool,
    ) -> Result<Self, Refused> {
        self.leased_by(session, "given up")?;
        let mut refused = self.refused.clone();
        refused.insert(session.clone());
        // Twice by the same session: no other one has taken it in between, although it could.
        let again = self.refused.contains(session);
        let state = match !elsewhere || again || refused.len() >= Limits::REFUSALS {
            true => {
                let reason = format!("the back-end '{}' cannot do it: {reason}", self.backend);
                TaskState::Dead { reason: cut(&reason), at: now }
            }
            false => TaskState::Ready,
        };
        // From this time on, the task is left to sessions that have not refused it
        // (`trust::is_left`).
        let (not_before, last) = (self.not_before.max(now), Some(session.clone()));
        let last_failure = Some(cut(reason));
        Ok(Self { refused, last, not_before, last_failure, ..self.with(state) })
    }

    /// Returns the number of attempts without a result.
    pub fn tries(&self) -> u32 {
        let refused =
            u32::try_from(self.refused.len()).expect("a record has room for few sessions");
        self.attempts
            .saturating_add(self.returns)
            .saturating_add(self.deaths)
            .saturating_add(refused)
    }

    /// Reports whether a session has tried the task in vain.
    pub fn was_tried_by(&self, session: &SessionId) -> bool {
        self.failed.contains_key(session) || self.refused.contains(session)
    }

    /// Returns a rank by which sessions are compared: the one with the least should try the task.
    pub fn reluctance(&self, session: &SessionId) -> (u32, bool) {
        let failed = self.failed.get(session).copied().unwrap_or(0);
        let refused = u32::from(self.refused.contains(session));
        (failed.saturating_add(refused), self.last.as_ref() == Some(session))
    }

    /// Takes back a task that is no longer wanted, even from a session that runs it.
    ///
    /// # Errors
    /// If it is final.
    pub fn cancel(&self, now: u64) -> Result<Self, Refused> {
        match self.state.is_final() {
            true => Err(self.refused_to("cancelled")),
            false => Ok(self.with(TaskState::Cancelled { at: now })),
        }
    }

    /// Makes the task ready for a later generation of its job.
    ///
    /// # Errors
    /// If it is done, or is of this generation.
    pub fn revive(&self, generation: u32, now: u64) -> Result<Self, Refused> {
        match self.state {
            TaskState::Dead { .. } | TaskState::Cancelled { .. }
                // A plan may be carried out twice. The second time must not revive a task that has
                // already failed in this generation, or its job would never end.
                if self.generation < generation =>
            {
                Ok(Self {
                    generation,
                    attempts: 0,
                    failed: BTreeMap::new(),
                    refused: BTreeSet::new(),
                    last: None,
                    deaths: 0,
                    returns: 0,
                    not_before: 0,
                    // Waiting makes a task more urgent. Time in which it was dead or cancelled does not count.
                    created: now,
                    ..self.with(TaskState::Ready)
                })
            }
            _ => Err(self.refused_to("revived")),
        }
    }
}

/// Left out of records, as in those of earlier versions.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// Returns the time at which a task may be claimed again, given how many times it came back before.
fn not_before(times: u32, now: u64) -> u64 {
    now.saturating_add(pause(times, Limits::MAX_PAUSE))
}

/// A pause in milliseconds that doubles each time.
fn pause(times: u32, most: Duration) -> u64 {
    // Beyond 16 doublings, the pause is longer than any limit, and the shift would overflow.
    let pause = (Limits::PAUSE * (1 << times.min(16))).min(most);
    millis(pause)
}

/// A reason short enough for a record.
fn cut(reason: &str) -> String {
    const MAX: usize = 2_000;
    match reason.char_indices().nth(MAX) {
        None => reason.to_owned(),
        Some((end, _)) => format!("{}...", &reason[..end]),
    }
}
