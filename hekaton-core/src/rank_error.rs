//! Why a run on several ranks ends early: the engine for ranks reports it, the coordinator passes
//! it on.

/// Why the ranks cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// A rank is gone or silent. Answers received before are kept in the run directory.
    #[error("rank {rank} is lost: {why}")]
    Lost {
        /// The rank.
        rank: usize,
        /// The evidence of the loss.
        why: String,
    },
    /// A rank could not do a job.
    #[error("rank {rank} on {host}: {message}")]
    Failed {
        /// The rank.
        rank: usize,
        /// Its machine.
        host: String,
        /// Its error message.
        message: String,
    },
    /// A rank sent an invalid message.
    #[error(
        "rank {rank} sent a wrong message: {why}; its machine is faulty \
         or it runs a different program"
    )]
    Message {
        /// The rank.
        rank: usize,
        /// The reason the message is invalid.
        why: String,
    },
    /// A rank executed its slice of the circuit with another result than rank 0.
    #[error(
        "rank {rank} on {host} computed other values of subcircuit {instance} than rank 0: \
         possible hardware fault, or another input file; nothing was proven with them"
    )]
    Values {
        /// The rank.
        rank: usize,
        /// Its machine.
        host: String,
        /// The first subcircuit whose values differ.
        instance: usize,
    },
    /// The ranks differ in program, keys or layout.
    #[error("the ranks are incompatible: {}", .differences.join("; "))]
    Handshake {
        /// One sentence per rank and difference.
        differences: Vec<String>,
    },
}
