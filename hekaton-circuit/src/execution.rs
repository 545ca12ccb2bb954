//! The execution of a circuit on an input: the first step of proving and of checking.

use crate::circuit::{Circuit, CircuitError};
use crate::ids::InstanceId;
use crate::layout::Layout;
use crate::layout_error::LayoutError;
use crate::values::{ValuesError, WireValues};
use hekaton_arith::Fr;

/// Why a circuit cannot be executed on an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The layout is invalid.
    #[error("layout: {0}")]
    Layout(#[from] LayoutError),
    /// `execute` failed.
    #[error("execute: {0}")]
    Execute(CircuitError),
    /// `execute` left wires without a value.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// `private_input` failed.
    #[error("private input of instance {instance}: {source}")]
    PrivateInput {
        /// The instance.
        instance: usize,
        /// The circuit's error.
        source: CircuitError,
    },
}

/// The values of all shared wires in a run, and private inputs on demand.
pub struct Execution<'a, C: Circuit> {
    circuit: &'a C,
    input: &'a C::Input,
    trace: C::Trace,
    /// The values of all shared wires.
    pub values: WireValues,
}

impl<C: Circuit> std::fmt::Debug for Execution<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values are secret.
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl<'a, C: Circuit> Execution<'a, C> {
    /// Executes the circuit on an input.
    ///
    /// # Errors
    /// If the circuit's `execute` fails or leaves a wire without a value.
    pub fn new(
        circuit: &'a C,
        input: &'a C::Input,
        layout: &Layout,
    ) -> Result<Self, ExecutionError> {
        let mut values = WireValues::new(layout);
        let trace = circuit.execute(input, &mut values).map_err(ExecutionError::Execute)?;
        values.check_complete(layout)?;
        Ok(Self { circuit, input, trace, values })
    }

    /// The private input of one instance.
    ///
    /// # Errors
    /// If the circuit's `private_input` fails.
    pub fn private_input(&self, instance: InstanceId) -> Result<C::Private, ExecutionError> {
        let error = |source| ExecutionError::PrivateInput { instance: instance.index(), source };
        self.circuit.private_input(self.input, &self.trace, instance).map_err(error)
    }

    /// The public values, in the order of their declaration.
    pub fn public(&self, layout: &Layout) -> Vec<Fr> {
        self.values.public(layout)
    }
}
