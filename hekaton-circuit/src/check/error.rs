//! Errors that end a check without a report.

use crate::execution::ExecutionError;
use crate::layout::error::LayoutError;
use crate::synthesis::SynthesizeError;
use crate::synthesis::asserts::TypeError;
use crate::synthesis::r1cs::R1csDifference;

/// A subcircuit whose marked values differ from call to call: no run can prove it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "instance {instance} (type '{kind}') is not deterministic: two calls with the same input \
     made different values of marked value {marked}, counted from 0 in the order of the calls of \
     commit; private inputs and synthesize must not depend on the order of a HashMap, on \
     randomness or on time"
)]
pub struct NotDeterministic {
    /// The instance.
    pub instance: usize,
    /// The name of its type.
    pub kind: String,
    /// The first marked value that differs.
    pub marked: usize,
}

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
    /// Setup would refuse a type.
    #[error(transparent)]
    Unsound(#[from] TypeError),
    /// The layout is another one when it is made again.
    #[error(
        "the layout differs from call to call: {difference}; make it from the circuit's parameters \
         alone, and not in the order of a HashMap"
    )]
    LayoutDiffers {
        /// The first difference.
        difference: String,
    },
    /// A part is equal to that of its type, but has other constraints.
    #[error(
        "instance {instance} was added with a part that is equal to that of type '{kind}', but has \
         other constraints: {difference}; `PartialEq` must compare all fields that constraints \
         depend on\n{label}"
    )]
    EqualParts {
        /// The instance.
        instance: usize,
        /// The name of its type.
        kind: String,
        /// The first difference between the constraints.
        difference: R1csDifference,
        /// The place of the instance's constraint.
        label: String,
    },
    /// Synthesis of an instance failed.
    #[error("instance {instance}: {error}")]
    Synthesize {
        /// The instance.
        instance: usize,
        /// The error of the synthesis.
        error: SynthesizeError,
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
        /// The place of the instance's constraint.
        label: String,
    },
    /// A marked value is another one when it is computed again.
    #[error(transparent)]
    NotDeterministic(#[from] NotDeterministic),
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

impl CheckError {
    /// Reports whether the circuit itself is wrong, for every input, so that it must not be proven.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Differs { .. }
                | Self::EqualParts { .. }
                | Self::LayoutDiffers { .. }
                | Self::MarkedDepends { .. }
                | Self::NotDeterministic(_)
                | Self::Type(SynthesizeError::UnconstrainedSlot { .. })
                | Self::Unsound(_)
        )
    }
}

impl From<LayoutError> for CheckError {
    fn from(error: LayoutError) -> Self {
        Self::Execution(error.into())
    }
}
