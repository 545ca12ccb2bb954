//! The private input: bytes, or values as serde has them.

use crate::words::private_input;
use core::cell::Cell;
use serde::Deserialize;

/// The part of the input that has not been read yet.
#[derive(Clone, Copy)]
enum State {
    New,
    Rest(&'static [u8]),
    Reading,
}

struct Rest(Cell<State>);

// SAFETY: there is one thread.
unsafe impl Sync for Rest {}

static REST: Rest = Rest(Cell::new(State::New));

/// The bytes of the input. The public input must be empty.
pub fn input() -> &'static [u8] {
    private_input(0)
}

/// Reads the next value of the input, in the encoding of `postcard`. The public input must be empty.
///
/// # Panics
/// If the rest of the input does not begin with such a value, or if a `Deserialize` implementation calls this function.
pub fn read<T: Deserialize<'static>>() -> T {
    let rest = match REST.0.replace(State::Reading) {
        State::New => input(),
        State::Rest(rest) => rest,
        State::Reading => panic!("`read` was called while another value was being deserialized"),
    };
    match postcard::take_from_bytes(rest) {
        Ok((value, rest)) => {
            REST.0.set(State::Rest(rest));
            value
        }
        Err(error) => {
            let (all, left) = (input().len(), rest.len());
            let name = core::any::type_name::<T>();
            panic!("byte {} of {all} of the input does not begin a {name}: {error}", all - left)
        }
    }
}
