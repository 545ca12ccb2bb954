//! Output to the terminal, and signals from it.

pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod shell;
pub(crate) mod signals;
