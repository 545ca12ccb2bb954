//! Why a run on several ranks ends: the engine of ranks reports it, the coordinator passes it on.

/// Why the ranks can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// A rank is gone or silent. What was answered before is kept in the run directory.
    #[error("rank {rank} is lost: {why}")]
    Lost {
        /// The rank.
        rank: usize,
        /// What makes it seem so.
        why: String,
    },
    /// A rank can't do a job.
    #[error("rank {rank} on {host}: {message}")]
    Failed {
        /// The rank.
        rank: usize,
        /// Its machine.
        host: String,
        /// What it said.
        message: String,
    },
    /// A rank sent something wrong.
    #[error(
        "rank {rank} sent a wrong message: {why}; its machine is broken, or it runs another program"
    )]
    Message {
        /// The rank.
        rank: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Ranks do not fit together.
    #[error("the ranks do not fit together: {}", .differences.join("; "))]
    Handshake {
        /// Which rank differs in what.
        differences: Vec<String>,
    },
}
