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

/// The failure of a function of the circuit's author.
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
    // The run ends with the error, so no state that the panic left inconsistent is used again.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Failure::Returned),
        Err(payload) => {
            // `panic!` with a literal has a `&str`, with arguments a `String`.
            let literal = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = literal
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Err(Failure::Panicked(CircuitPanic { function, message }))
        }
    }
}
