//! An execution of a circuit on an input: what proving and checking begin with.

use crate::circuit::{Circuit, CircuitError};
use crate::layout::{InstanceId, Layout, LayoutError};
use crate::values::{ValuesError, WireValues};
use hekaton_arith::Fr;

/// Why a circuit can't be executed on an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// The layout is wrong.
    #[error("layout: {0}")]
    Layout(#[from] LayoutError),
    /// `execute` failed.
    #[error("execute: {0}")]
    Execute(CircuitError),
    /// `execute` left values out.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// `private_input` failed.
    #[error("private input of instance {instance}: {source}")]
    PrivateInput {
        /// The instance.
        instance: usize,
        /// What the circuit says.
        source: CircuitError,
    },
}

/// All shared-wire values of a run, and private inputs on demand.
pub struct Execution<'a, C: Circuit> {
    circuit: &'a C,
    input: &'a C::Input,
    trace: C::Trace,
    /// The values of all shared wires.
    pub values: WireValues,
}

impl<C: Circuit> std::fmt::Debug for Execution<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}

impl<'a, C: Circuit> Execution<'a, C> {
    /// Executes the circuit on an input.
    ///
    /// # Errors
    /// When the circuit's `execute` fails, or leaves a wire without a value.
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
    /// What the circuit reports.
    pub fn private_input(&self, instance: InstanceId) -> Result<C::Private, ExecutionError> {
        let error = |source| ExecutionError::PrivateInput { instance: instance.index(), source };
        self.circuit.private_input(self.input, &self.trace, instance).map_err(error)
    }

    /// The public values in order.
    pub fn public(&self, layout: &Layout) -> Vec<Fr> {
        self.values.public(layout)
    }
}
