//! Circuits whose constraints are stored, not synthesized: those that were imported from other tools.

use crate::circuit_error::CircuitError;
use crate::execution::PrivateInput;
use crate::execution::panics::Failure;
use crate::layout::ids::{InstanceId, TypeId};
use hekaton_arith::Fr;

/// A constraint of a type: the sides A, B and C, each with coefficients and local variables in
/// ascending order.
pub type StoredRow<'a> = [&'a [(Fr, usize)]; 3];

/// Stored constraints and values, in place of gadgets. A type's rows are over local variables: 0 is
/// the constant 1, 1 to s are its slots, and its own variables follow.
pub trait StoredRows<P>: Sync {
    /// Reports whether the rows can be read. A prover takes them from its keys, so a circuit that was opened
    /// for proving need not have them.
    fn has_rows(&self) -> bool {
        true
    }

    /// The number of own variables of a type.
    fn own(&self, kind: TypeId) -> usize;

    /// Calls `row` for each constraint of a type, in order.
    ///
    /// # Errors
    /// If the rows cannot be read, or are not there.
    fn rows(&self, kind: TypeId, row: &mut dyn FnMut(StoredRow<'_>)) -> Result<(), CircuitError>;

    /// Appends the values of the own variables of an instance.
    ///
    /// # Errors
    /// If the private input is not one of this type.
    fn own_values(
        &self,
        kind: TypeId,
        slots: &[Fr],
        private: &P,
        out: &mut Vec<Fr>,
    ) -> Result<(), CircuitError>;

    /// Describes the origin of a row in the source, for messages; `None` if it is not known.
    fn describe(&self, instance: InstanceId, row: usize) -> Option<String> {
        let _ = (instance, row);
        None
    }
}

/// [`StoredRows`] without the type of private inputs.
pub(crate) trait Stored {
    fn has_rows(&self) -> bool;

    fn own(&self, kind: TypeId) -> usize;

    fn rows(
        &self,
        kind: TypeId,
        row: &mut dyn FnMut(StoredRow<'_>),
    ) -> Result<(), Failure<CircuitError>>;

    fn own_values(
        &self,
        kind: TypeId,
        slots: &[Fr],
        private: &PrivateInput,
        out: &mut Vec<Fr>,
    ) -> Result<(), Failure<CircuitError>>;

    fn describe(&self, instance: InstanceId, row: usize) -> Option<String>;
}
