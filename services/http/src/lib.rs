//! The server that the HTTP services of Hekaton share: it limits connections in number, silence and life.

mod activity;
mod serve;
#[cfg(test)]
mod tests;

pub use serve::{Limits, Open, accept};
