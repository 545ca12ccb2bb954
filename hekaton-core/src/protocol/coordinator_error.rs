//! Why a coordinator stops.

use crate::aggregation::blocks::AggregateError;
use crate::keys::{CircuitMismatch, KeyFileError};
use crate::rank_error::RankError;
use crate::verifier::verify::VerifyError;
use hekaton_circuit::ExecutionError;

/// Why the coordinator stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// The circuit cannot be executed on this input.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The keys were made for another circuit, for other parameters, or from other code.
    #[error(transparent)]
    Circuit(#[from] CircuitMismatch),
    /// The keys come from different setups.
    #[error(
        "verifying key, aggregation key and proving keys come from different setups: \
         run setup again"
    )]
    MixedKeys,
    /// A round does not have exactly one answer per instance.
    #[error("{round} round: {why}")]
    Answers {
        /// The round.
        round: &'static str,
        /// The reason it is wrong.
        why: String,
    },
    /// Some subcircuits' proofs are wrong.
    #[error(
        "the proofs of these subcircuits do not verify: {}; no proof was produced",
        list(.instances)
    )]
    BadSubcircuits {
        /// Their indices.
        instances: Vec<usize>,
    },
    /// The prove round has other marked values than the commit round.
    #[error(
        "instance {instance} of type '{kind}': its marked values differ from those that it committed \
         to, so one of them depends on a challenge (the development mode names it) or the hardware \
         is faulty; no proof was produced"
    )]
    Marked {
        /// The instance.
        instance: usize,
        /// Its type.
        kind: String,
    },
    /// The entries of the buses do not cancel.
    #[error(
        "every subcircuit's proof verifies, but the entries of the buses do not cancel: check the \
         circuit on this input, which names them; no proof was produced"
    )]
    Buses,
    /// Every subcircuit's proof verifies, but the proof as a whole does not.
    #[error(
        "every subcircuit's proof verifies, but the proof as a whole does not ({0}); no proof was produced"
    )]
    Aggregate(VerifyError),
    /// The challenges hit a pole (zero denominator) at a public wire or a constant: restart with new
    /// randomness.
    #[error("the public wire at address {address} hits a pole (zero denominator)")]
    Pole {
        /// The address of the wire.
        address: u64,
    },
    /// A key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A phase of the aggregation was skipped, or had the wrong number of values.
    #[error("{0}")]
    Phase(String),
    /// The circuit's `execute_range` has different values for one wire in different ranges.
    #[error(
        "execute_range of {range:?} has another value of {wire} in subcircuit {instance} than \
         execute: its values must not depend on the range"
    )]
    Slices {
        /// The wire.
        wire: String,
        /// A subcircuit that has it in a slot.
        instance: usize,
        /// The instances that were executed.
        range: std::ops::Range<usize>,
    },
    /// Rank 0 executed a subcircuit of a rank's slice again, and got other values.
    #[error(
        "rank 0 has other values of subcircuit {instance} than the rank that executed it, though all \
         ranks agreed: the values of the circuit's execute_range depend on the range, or the memory \
         of rank 0's machine is faulty"
    )]
    OtherValues {
        /// The subcircuit.
        instance: usize,
    },
    /// The values of all ranks are right, but did not seem so.
    #[error(
        "the values of all ranks are right, but rank 0 found them to differ: possible hardware \
         fault; run it again"
    )]
    Unbalanced,
    /// A rank failed, or was lost.
    #[error(transparent)]
    Rank(#[from] RankError),
}

impl From<AggregateError> for CoordinatorError {
    fn from(error: AggregateError) -> Self {
        match error {
            AggregateError::Key(error) => error.into(),
            AggregateError::Phase(why) => Self::Phase(why),
            AggregateError::Rank(error) => error.into(),
        }
    }
}

/// A list of instances for an error message, shortened to 20.
fn list(instances: &[usize]) -> String {
    let shown: Vec<String> = instances.iter().take(20).map(ToString::to_string).collect();
    let more = instances.len().saturating_sub(20);
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}
