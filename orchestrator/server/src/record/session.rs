//! Sessions: proof that a process is alive.

use hekaton_orchestrator_client::{BadId, Digest, Name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The identity of a process from its start to its end, drawn at random: a process that was restarted has a different one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(Name);

impl SessionId {
    /// A new session.
    pub fn new() -> Self {
        Self::from_number(crate::id::random())
    }

    /// The session with a number.
    pub(crate) fn from_number(number: u64) -> Self {
        let digits = format!("{number:016x}");
        Self(digits.parse().expect("hexadecimal digits are a name"))
    }
}

impl Default for SessionId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        text.parse().map(Self)
    }
}

impl TryFrom<String> for SessionId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0.into()
    }
}

/// The record that a process writes each second for as long as it is alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Rises with each write.
    pub counter: u64,
    /// The machine and its boot, so that no lock from another boot is looked for.
    pub host: String,
    /// The process on it.
    pub pid: u32,
    /// `true` if it runs a collector.
    pub collects: bool,
    /// The number of tasks that it can run at the same time.
    pub slots: u32,
    /// The back-ends that it has, without those that made wrong outputs.
    pub backends: Vec<Name>,
    /// The reasons why it does not trust some of its back-ends. These back-ends are only tried from time to time, unless no other process
    /// has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quarantined: BTreeMap<Name, String>,
    /// `true` if it claims no more tasks.
    pub draining: bool,
    /// The progress of its tasks, from 0 to 1.
    pub running: BTreeMap<Digest, f32>,
}

impl Session {
    /// The back-ends for which it can run tasks.
    pub fn able(&self) -> impl Iterator<Item = &Name> {
        self.backends.iter().filter(|_| self.slots > 0)
    }

    /// Reports whether it can run tasks for a back-end.
    pub fn has(&self, backend: &Name) -> bool {
        self.slots > 0 && self.backends.contains(backend)
    }

    /// Reports whether it can run tasks for a back-end that is not in quarantine.
    pub fn trusts(&self, backend: &Name) -> bool {
        self.has(backend) && !self.quarantined.contains_key(backend)
    }
}

/// Returns the key under which a session is stored.
pub fn session_key(id: &SessionId) -> String {
    format!("session/{id}")
}
