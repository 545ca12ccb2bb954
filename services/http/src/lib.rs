//! The server that the HTTP services of Hekaton share: it limits connections in number, silence and life.

mod serve;

pub use serve::{Open, accept};
