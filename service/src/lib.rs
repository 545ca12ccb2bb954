//! The parts that the HTTP services of Hekaton share.
//!
//! Clients have [`Problem`], [`bearer_token`] and [`program`], which need nothing of a server and work on wasm32.
//! With the feature `server` there are also:
//!
//! - [`accept`]: a server that limits connections in number, pace and life, so that slow clients, by mistake or on purpose, keep no
//!   other client from an answer.
//! - [`check_same_site`]: the check that a request does not come from a page of another site.

#[cfg(feature = "server")]
mod gate;
#[cfg(feature = "server")]
mod limits;
#[cfg(feature = "manual")]
pub mod manual;
#[cfg(feature = "server")]
mod pace;
mod problem;
pub mod program;
#[cfg(feature = "server")]
mod room;
#[cfg(feature = "server")]
mod same_site;
#[cfg(feature = "server")]
mod seats;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod stream;
#[cfg(all(test, feature = "server"))]
mod tests;
mod token;

#[cfg(feature = "server")]
pub use limits::Limits;
#[cfg(feature = "server")]
pub use pace::{Late, is_late};
pub use problem::{Problem, ProblemKind};
#[cfg(feature = "server")]
pub use room::{Held, Room};
#[cfg(feature = "server")]
pub use same_site::check_same_site;
#[cfg(feature = "server")]
pub use serve::{Open, accept};
pub use token::bearer_token;
