//! What goes to and comes from the terminal.

pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod signals;
