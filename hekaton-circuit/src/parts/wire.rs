//! The handle of a shared wire while a circuit is wired.

/// A shared wire, while the circuit is wired. It belongs to one call of [`wire`](super::WiredCircuit::wire).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wire {
    pub(super) number: u32,
    /// The call that made it.
    pub(super) call: u32,
}

/// The number of the wire of a slot that is declared unused, in all calls.
pub(super) const NO_WIRE: u32 = u32::MAX;
