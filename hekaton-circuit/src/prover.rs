//! The parts of a circuit that a proof system needs: the order of the variables, the wiring, the
//! matrices and the witnesses. Circuit authors never use this module.

pub use crate::inlining::matrices_of;
pub use crate::matrix::{Matrices, Matrix, Rows, TooLarge};
pub use crate::prefix::{Pole, Prefix};
pub use crate::variables::{BusShape, VariableLayout};
pub use crate::wiring::{Wiring, WiringType};
