//! The server that the HTTP services of Hekaton share: it limits connections in number, pace and life, so that clients that are slow,
//! by mistake or on purpose, keep nobody else from an answer.

mod gate;
mod limits;
mod pace;
mod room;
mod seats;
mod serve;
mod stream;
#[cfg(test)]
mod tests;

pub use limits::Limits;
pub use pace::{Late, is_late};
pub use room::{Held, Room};
pub use serve::{Open, accept};
