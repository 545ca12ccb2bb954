//! Errors that end a check without a report.

use crate::execution::ExecutionError;
use crate::layout::error::LayoutError;
use crate::synthesis::SynthesizeError;
use crate::synthesis::r1cs::R1csDifference;

/// A reason that a check could not be completed, or a mistake of the circuit for every input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The circuit cannot be executed on this input.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The constraints of an instance could not be evaluated.
    #[error("instance {instance} could not be checked: its constraints cannot be evaluated")]
    Unchecked {
        /// The instance.
        instance: usize,
    },
    /// A type is too large to ask whether its values follow.
    #[error(transparent)]
    TooManyRows(#[from] crate::unique::TooManyRows),
    /// The values of an instance do not satisfy a constraint of its author.
    #[error(transparent)]
    FalseRow(#[from] crate::unique::FalseRow),
    /// Synthesis of a type failed.
    #[error(transparent)]
    Type(SynthesizeError),
    /// Synthesis of an instance failed.
    #[error("instance {instance}: {source}")]
    Synthesize {
        /// The instance.
        instance: usize,
        /// The error of the synthesis.
        source: SynthesizeError,
    },
    /// An instance has other constraints than its type.
    #[error(
        "instance {instance} (type '{kind}') has other constraints than its type has at setup: \
         {difference}; constraints must not depend on values, on private inputs, or on how often \
         synthesize was called\n{label}"
    )]
    Differs {
        /// The instance.
        instance: usize,
        /// The name of its type.
        kind: String,
        /// The first difference between the constraints.
        difference: R1csDifference,
        /// The label of the instance's constraint.
        label: String,
    },
    /// A marked value depends on the challenges.
    #[error(
        "instance {instance} (type '{kind}'): marked value {marked}, counted from 0 in the order of \
         the calls of commit, depends on a challenge; it is committed to before the challenges are \
         drawn, so compute it from shared wires and the private input only"
    )]
    MarkedDepends {
        /// The instance.
        instance: usize,
        /// The name of its type.
        kind: String,
        /// The marked value.
        marked: usize,
    },
}

impl From<LayoutError> for CheckError {
    fn from(error: LayoutError) -> Self {
        Self::Execution(error.into())
    }
}
