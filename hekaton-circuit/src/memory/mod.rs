//! The memory check inside a subcircuit: its wiring, the order of its variables and their values
//! (spec: memory-check#variables). The part that verifiers need is in [`crate::interface`].

pub(crate) mod places;
pub(crate) mod prefix;
pub(crate) mod variables;
pub(crate) mod wiring;
