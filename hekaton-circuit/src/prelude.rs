//! The names that most circuits of [parts](crate::parts) use, for `use hekaton_circuit::prelude::*`: parts and wires, the
//! gadgets of arkworks for numbers and bits, and the errors.

pub use crate::circuit_error::CircuitError;
pub use crate::layout::error::LayoutError;
pub use crate::parts::{
    Cs, Leaf, Memory, Part, Slot, Slots, Synthesized, Var, Wire, WiredCircuit, Wires,
};
pub use crate::synthesis::subcircuit::Subcircuit;
pub use ark_r1cs_std::GR1CSVar;
pub use ark_r1cs_std::alloc::AllocVar;
pub use ark_r1cs_std::boolean::Boolean;
pub use ark_r1cs_std::eq::EqGadget;
pub use ark_r1cs_std::fields::FieldVar;
pub use ark_r1cs_std::select::CondSelectGadget;
pub use ark_relations::gr1cs::SynthesisError;
pub use hekaton_arith::Fr;
