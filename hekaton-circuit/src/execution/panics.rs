//! Panics in an author's code, as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A panic in a function of a circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function} panicked: {message}")]
pub struct CircuitPanic {
    /// The function of the circuit's author.
    pub function: &'static str,
    /// The text of the panic.
    pub message: String,
}

/// Why a function of the circuit returned nothing.
#[derive(Debug)]
pub(crate) enum Failure<E> {
    Returned(E),
    Panicked(CircuitPanic),
}

/// Calls a function of the circuit's author. A panic becomes an error that can name the instance;
/// its place is on standard error.
pub(crate) fn guard<T, E>(
    function: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, Failure<E>> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Failure::Returned),
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            let message = text.unwrap_or_else(|| "no message".to_owned());
            Err(Failure::Panicked(CircuitPanic { function, message }))
        }
    }
}
