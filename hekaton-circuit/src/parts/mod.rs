//! Typed parts and wiring by calling: the interface that most circuits are written in.
//!
//! A [`Part`] is a type of subcircuit. It declares the slots that it reads and writes as Rust types
//! ([`Slots`]), computes the written values natively ([`Part::run`]), and lays down its constraints
//! ([`Part::synthesize`]). A [`WiredCircuit`] adds parts to [`Wires`], each with the wires that it
//! reads, and gets back the wires that it writes. That one function is the layout and the execution
//! at once, so the two cannot disagree, and no author counts slots.
//!
//! ```
//! use hekaton_circuit::check;
//! use hekaton_circuit::prelude::*;
//!
//! /// y = x^2.
//! #[derive(Clone, PartialEq)]
//! struct Square;
//!
//! impl Part for Square {
//!     const NAME: &'static str = "square";
//!     type Reads<W: Leaf> = W;
//!     type Writes<W: Leaf> = W;
//!     type Private = ();
//!
//!     fn run(&self, x: &Fr, _: &()) -> Result<Fr, CircuitError> {
//!         Ok(x * x)
//!     }
//!
//!     fn synthesize(&self, _: Cs, x: &Var, y: &Var, _: Option<&()>) -> Synthesized {
//!         (x * x).enforce_equal(y)
//!     }
//! }
//!
//! /// x^8, of a public x.
//! struct EighthPower;
//!
//! impl WiredCircuit for EighthPower {
//!     type Input = Fr;
//!
//!     fn wire(&self, c: &mut Wires<Fr>) -> Result<(), LayoutError> {
//!         let mut x = c.public_input("x", 0, |x| Ok(*x));
//!         for _ in 0..3 {
//!             x = c.add(&Square, x);
//!         }
//!         c.output("power", x);
//!         Ok(())
//!     }
//! }
//!
//! let report = check(&EighthPower, &Fr::from(2u64), |_, _| {})?;
//! assert_eq!(report.public_values, [Fr::from(2u64), Fr::from(256u64)]);
//! # Ok::<(), hekaton_circuit::CheckError>(())
//! ```

mod part;
mod plan;
mod slots;
mod wire;
mod wires;

pub use hekaton_derive::Slots;
pub use part::{Access, Cs, Memory, Part, Synthesized, Var, run_and_check};
pub use plan::{PartInput, WiredCircuit, WiredPlan};
pub use slots::{Leaf, Shape, Slot, Slots};
pub use wire::Wire;
pub use wires::Wires;
