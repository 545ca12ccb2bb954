//! The handle of a shared wire while a circuit is wired.

/// A shared wire, while the circuit is wired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wire(pub(super) u32);

/// The wire of a slot that is declared unused.
pub(super) const NO_WIRE: Wire = Wire(u32::MAX);
