//! The execution of a circuit on an input: the first step of proving and of checking.

use crate::circuit_error::CircuitError;
use crate::ids::InstanceId;
use crate::layout::Layout;
use crate::layout_error::LayoutError;
use crate::panics::{CircuitPanic, Failure};
use crate::values::{ValuesError, WireValues};
use hekaton_arith::Fr;
use std::any::Any;

/// Why a circuit cannot be executed on an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The layout is invalid.
    #[error("layout: {0}")]
    Layout(#[from] LayoutError),
    /// The circuit was prepared without an input.
    #[error("the circuit was prepared without an input, so it cannot be executed")]
    NoInput,
    /// `execute` failed.
    #[error("execute: {0}")]
    Execute(CircuitError),
    /// A function of the circuit panicked.
    #[error(transparent)]
    Panic(CircuitPanic),
    /// `execute` left wires without a value, or set a constant.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// `private_input` failed.
    #[error("private input of instance {instance} (type '{kind}'): {source}")]
    PrivateInput {
        /// The instance.
        instance: usize,
        /// The name of its type.
        kind: String,
        /// The circuit's error.
        source: CircuitError,
    },
    /// `private_input` panicked.
    #[error("instance {instance} (type '{kind}'): {panic}")]
    PrivateInputPanic {
        /// The instance.
        instance: usize,
        /// The name of its type.
        kind: String,
        /// The panic.
        panic: CircuitPanic,
    },
}

impl ExecutionError {
    pub(crate) fn execute(failure: Failure<CircuitError>) -> Self {
        match failure {
            Failure::Returned(error) => Self::Execute(error),
            Failure::Panicked(panic) => Self::Panic(panic),
        }
    }
}

/// The private input of a subcircuit, of whatever type the circuit has for it.
pub struct PrivateInput(Box<dyn Any + Send + Sync>);

impl std::fmt::Debug for PrivateInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value is secret.
        f.debug_struct("PrivateInput").finish_non_exhaustive()
    }
}

impl PrivateInput {
    pub(crate) fn new(private: impl Any + Send + Sync) -> Self {
        Self(Box::new(private))
    }

    pub(crate) fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// The private inputs of one execution, on demand.
pub(crate) trait PrivateInputs: Send + Sync {
    fn get(&self, instance: InstanceId) -> Result<PrivateInput, Failure<CircuitError>>;
}

/// The values of all shared wires in a run, and private inputs on demand.
pub struct Execution<'r> {
    private: Box<dyn PrivateInputs + 'r>,
    /// The values of all shared wires.
    pub values: WireValues,
}

impl std::fmt::Debug for Execution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values are secret.
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl<'r> Execution<'r> {
    pub(crate) fn new(private: Box<dyn PrivateInputs + 'r>, values: WireValues) -> Self {
        Self { private, values }
    }

    /// The private input of one instance.
    ///
    /// # Errors
    /// If the circuit's `private_input` fails.
    pub fn private_input(
        &self,
        layout: &Layout,
        instance: InstanceId,
    ) -> Result<PrivateInput, ExecutionError> {
        self.private.get(instance).map_err(|failure| {
            let kind = layout.type_name(layout.type_of(instance)).to_owned();
            let instance = instance.index();
            match failure {
                Failure::Returned(source) => {
                    ExecutionError::PrivateInput { instance, kind, source }
                }
                Failure::Panicked(panic) => {
                    ExecutionError::PrivateInputPanic { instance, kind, panic }
                }
            }
        })
    }

    /// The public values, in the order of their declaration.
    pub fn public(&self, layout: &Layout) -> Vec<Fr> {
        self.values.public(layout)
    }
}
