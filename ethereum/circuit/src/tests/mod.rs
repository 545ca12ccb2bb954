//! Tests of the circuit.

mod attacks;
mod honest;
mod state;
