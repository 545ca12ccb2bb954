//! Options of a server.

use std::time::Duration;

/// The most steps that an epoch with one update has: its leaf and one that moves down beside it, the node of both, all
/// levels above, and the end.
pub const MAX_STEPS_OF_ONE: usize = 132;

/// The way in which the two stages of a commit are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One after the other.
    Serial,
    /// Side by side: a commit is computed while the one before it is written.
    Pipelined,
    /// Several commits are written at once; they become visible in their order.
    AnyOrder,
    /// Serial or pipelined: whichever is faster by what the stages take. Side by side gains nothing where the processor
    /// is busy anyway.
    Auto,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Serial, Self::Pipelined, Self::AnyOrder, Self::Auto];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Pipelined => "pipelined",
            Self::AnyOrder => "any-order",
            Self::Auto => "auto",
        }
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Serial => 0,
            Self::Pipelined => 1,
            Self::AnyOrder => 2,
            Self::Auto => 3,
        }
    }

    pub(crate) fn of(number: u8) -> Self {
        Self::ALL[usize::from(number).min(3)]
    }
}

/// The options of a server. They do not change what it signs, except for the number of updates in an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The maximum number of updates of an epoch.
    pub max_updates: usize,
    /// The time that an update waits for others. Without it, an epoch is closed once it is full, or on demand.
    pub interval: Option<Duration>,
    /// The time after which an epoch without changes is closed if no other one was, so that a client can tell a directory in which
    /// nothing happens from one that hides later epochs: at least a second. Directories without labels have no such epochs, nor have those
    /// of [`Profile::Full`](hekaton_directory::Profile::Full) that keep a witness.
    pub heartbeat: Option<Duration>,
    /// The way in which the stages of a commit are scheduled.
    pub mode: Mode,
    /// The number of commits that are written at once in [`Mode::AnyOrder`].
    pub writers: usize,
    /// The maximum number of accepted updates without an outcome.
    pub max_pending: usize,
    /// The maximum number of accepted updates of one label that no commit has: an epoch takes one of them.
    pub max_pending_of_label: usize,
    /// The approximate maximum of memory that accepted updates take before they are in a commit, in bytes.
    pub max_pending_bytes: usize,
    /// The depth down to which the tree stays in memory.
    pub resident: usize,
    /// The number of bytes of the database that are kept in memory.
    pub cache: u64,
    /// The number of threads of the first stage; 0 for one per core.
    pub threads: usize,
    /// The maximum number of steps of an epoch, if there is a witness of it: what a proof has room for. Updates that would
    /// exceed it wait for the next epoch. One update alone takes at most [`MAX_STEPS_OF_ONE`].
    pub max_steps: usize,
    /// `true` if the witness for the provers of epochs is kept, about 300 bytes per update. Epochs that are closed
    /// without it cannot be proven.
    pub has_witness: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_updates: 1024,
            interval: Some(Duration::from_secs(1)),
            heartbeat: None,
            mode: Mode::Auto,
            writers: 2,
            max_pending: 1 << 16,
            max_pending_of_label: 1 << 8,
            max_pending_bytes: 256 << 20,
            resident: 16,
            cache: 256 << 20,
            threads: 0,
            max_steps: usize::MAX,
            has_witness: true,
        }
    }
}
