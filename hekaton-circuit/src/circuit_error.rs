//! Errors of circuit authors.

/// Any error from an author's code.
pub type CircuitError = Box<dyn std::error::Error + Send + Sync>;
