//! What a proof system needs of a circuit: the order of the variables, the wiring, matrices and witnesses. Authors of
//! circuits never call these.

pub use crate::execution::Execution;
pub use crate::prefix::{Pole, Prefix};
pub use crate::synthesis::{R1cs, synthesize_r1cs, synthesize_witness};
pub use crate::variables::VariableLayout;
pub use crate::wiring::{Wiring, WiringType};
