//! Exports of the WebAssembly module to `js/hekaton.js`: numbers and one buffer each way, because
//! WebAssembly functions take nothing else.
//!
//! The caller reserves the input with [`hekaton_input`], writes its parts there one after the other,
//! and calls [`hekaton_verify`], [`hekaton_inspect_key`] or [`hekaton_look_up`], which leave a JSON text at
//! [`hekaton_answer`]. This module does not read memory through pointers: only JavaScript does, with the addresses that
//! these functions return.

// `no_mangle` counts as unsafe, because a symbol could collide with one of another library; the only
// other symbols of this module are those of the C library blst.
#![allow(unsafe_code, reason = "names of exports")]

use crate::{Options, inspect_key, verify, verify_look_up};
use std::sync::{Mutex, MutexGuard, PoisonError};

// Static, so that addresses stay valid after a call returns. A module has one thread, so there is one call at a time, and a
// poisoned lock is one of a call that has trapped.
/// The buffers of the current call.
#[derive(Default)]
struct Buffers {
    input: Vec<u8>,
    answer: Vec<u8>,
}

static BUFFERS: Mutex<Buffers> = Mutex::new(Buffers { input: Vec::new(), answer: Vec::new() });

fn buffers() -> MutexGuard<'static, Buffers> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserves `length` bytes for the input and returns their address, or 0 if there is not enough memory.
#[unsafe(no_mangle)]
extern "C" fn hekaton_input(length: usize) -> *mut u8 {
    let mut buffers = buffers();
    let mut input = Vec::new();
    // An allocation that fails otherwise aborts the module, and the page with it could not verify anything more.
    if input.try_reserve_exact(length).is_err() {
        return std::ptr::null_mut();
    }
    input.resize(length, 0);
    buffers.input = input;
    buffers.input.as_mut_ptr()
}

/// The address of the last answer, which is UTF-8.
#[unsafe(no_mangle)]
extern "C" fn hekaton_answer() -> *const u8 {
    buffers().answer.as_ptr()
}

/// Verifies the contents of the input: key, proof, public values and key digest of these lengths, one
/// after the other. Length 0 means that there is no digest. Returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn hekaton_verify(
    key: usize,
    proof: usize,
    public: usize,
    digest: usize,
    accept_test_keys: u32,
) -> usize {
    let input = std::mem::take(&mut buffers().input);
    let mut rest = &input[..];
    let mut part = |length: usize| {
        // Lengths come from JavaScript. A wrong one leads to a refusal, not to a trap.
        let (part, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        part
    };
    let (key, proof, public, digest) = (part(key), part(proof), part(public), part(digest));
    let (public, digest) = (String::from_utf8_lossy(public), String::from_utf8_lossy(digest));
    let options = Options {
        key_digest: (!digest.is_empty()).then(|| digest.into_owned()),
        accept_test_keys: accept_test_keys != 0,
    };
    answer(&verify(key, proof, &public, &options))
}

/// Describes the verifying key in the input. Returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn hekaton_inspect_key() -> usize {
    let input = std::mem::take(&mut buffers().input);
    answer(&inspect_key(&input))
}

/// Verifies the look-up in a key directory that the input, a JSON text, describes. Returns the length of the answer.
#[unsafe(no_mangle)]
extern "C" fn hekaton_look_up() -> usize {
    let input = std::mem::take(&mut buffers().input);
    answer(&verify_look_up(&String::from_utf8_lossy(&input)))
}

fn answer(value: &serde_json::Value) -> usize {
    let mut buffers = buffers();
    buffers.answer = value.to_string().into_bytes();
    buffers.answer.len()
}
