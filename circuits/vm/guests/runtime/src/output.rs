//! The output: any number of bytes that the program commits to.
//!
//! Up to 60 bytes are stored in the words of the machine's output; of longer outputs, the words contain the SHA-256 digest and the
//! length. The last word distinguishes the two.

use crate::functions::sha256_compress;
use crate::words::{OUTPUT_WORDS, output};
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use serde::Serialize;

/// The last word: "HKO", and in the lowest byte the number of bytes, or [`DIGEST`].
const TAG: u32 = 0x4f4b_4800;
const DIGEST: u32 = 0xff;

/// The initial state of SHA-256 (FIPS 180-4, section 5.3.3).
const INITIAL: [u32; 8] = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
];

struct Output(UnsafeCell<Option<Vec<u8>>>);

// SAFETY: there is one thread.
unsafe impl Sync for Output {}

static OUTPUT: Output = Output(UnsafeCell::new(None));

/// The bytes so far, from the first commitment on.
fn bytes() -> &'static mut Option<Vec<u8>> {
    // SAFETY: there is one thread, and each function of this file has one reference, which it does not return.
    unsafe { &mut *OUTPUT.0.get() }
}

/// Appends bytes to the output.
pub fn commit_bytes(more: &[u8]) {
    bytes().get_or_insert_default().extend_from_slice(more);
}

/// Appends a value to the output, in the encoding of `postcard`.
///
/// # Panics
/// If postcard cannot encode the value, for example a sequence whose length is not known in advance.
pub fn commit<T: Serialize + ?Sized>(value: &T) {
    match postcard::to_allocvec(value) {
        Ok(encoded) => commit_bytes(&encoded),
        Err(error) => panic!("postcard cannot encode the output: {error}"),
    }
}

/// Writes the output, unless the program committed to nothing: then it may have written the words itself.
pub(crate) fn finish() {
    let Some(bytes) = bytes().take() else { return };
    let words = |bytes: &[u8]| {
        let mut words = [0; OUTPUT_WORDS - 1];
        for (word, part) in words.iter_mut().zip(bytes.chunks(4)) {
            let mut all = [0; 4];
            all[..part.len()].copy_from_slice(part);
            *word = u32::from_le_bytes(all);
        }
        words
    };
    let (content, number) = match u8::try_from(bytes.len()) {
        Ok(length @ ..=60) => (words(&bytes), u32::from(length)),
        _ => {
            let mut content = words(&sha256(&bytes));
            content[8] = bytes.len() as u32;
            (content, DIGEST)
        }
    };
    content.iter().enumerate().for_each(|(at, word)| output(at, *word));
    output(OUTPUT_WORDS - 1, TAG | number);
    // For `hekaton vm run`: a proof contains only the words.
    // SAFETY: the instruction only tells the executor where the bytes are.
    unsafe {
        core::arch::asm!("slti x0, a0, 0x482", in("a0") bytes.as_ptr(), in("a1") bytes.len(), options(nostack))
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut state = INITIAL;
    let mut compress = |block: &[u8; 64]| {
        let mut words = [0; 16];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        sha256_compress(&mut state, &words);
    };
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().for_each(&mut compress);
    let mut last = [0; 128];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let end = if rest.len() < 56 { 64 } else { 128 };
    last[end - 8..end].copy_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
    last[..end].as_chunks::<64>().0.iter().for_each(&mut compress);
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}
