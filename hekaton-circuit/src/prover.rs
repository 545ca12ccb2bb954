//! The parts of a circuit that a proof system needs: the order of the variables, the wiring, the
//! matrices and the witnesses. Circuit authors never use this module.

pub use crate::memory::prefix::{Pole, Prefix};
pub use crate::memory::variables::{BusShape, VariableLayout};
pub use crate::memory::wiring::{Wiring, WiringType};
pub use crate::synthesis::asserts::{TypeError, VariablePartition, check_rank, check_type_with};
pub use crate::synthesis::inlining::matrices_of;
pub use crate::synthesis::matrix::{Matrices, Matrix, Rows, TooLarge};
pub use crate::synthesis::r1cs::digest_of_types;
