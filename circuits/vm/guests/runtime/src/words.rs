//! The machine's own input and output: words that verifiers see, and private bytes.

/// The address of the input: words that verifiers see, then the number of the private bytes, then these.
const INPUT: *const u32 = 0x2000_0000 as *const u32;

/// The address of the output.
const OUTPUT: *mut u32 = 0x3000_0000 as *mut u32;

/// The number of words of the output.
pub const OUTPUT_WORDS: usize = 16;

/// The number of words between the input's address and the output's.
const ROOM: usize = (0x3000_0000 - 0x2000_0000) / 4;

/// Word `index` of the public input. Beyond its end, it returns private words, or the run traps.
///
/// # Panics
/// If `index` is beyond the address range of the input, which has 2^26 words.
pub fn public_input(index: usize) -> u32 {
    assert!(index < ROOM);
    // SAFETY: the machine has the input there, aligned; it never changes.
    unsafe { INPUT.add(index).read() }
}

/// The bytes that verifiers do not see, behind `public_words` words that they see.
///
/// # Panics
/// If the number of bytes, which the prover chooses, exceeds the address range of the input.
pub fn private_input(public_words: usize) -> &'static [u8] {
    let length = public_input(public_words) as usize;
    assert!(length <= 4 * (ROOM - 1 - public_words), "the private input claims to have {length} bytes");
    let start = INPUT.wrapping_add(public_words + 1);
    // SAFETY: these addresses belong to the input alone, which never changes; an access beyond its end has no proof.
    unsafe { core::slice::from_raw_parts(start.cast(), length) }
}

/// Sets word `index` of the output. A program that commits to something overwrites all of them at its end.
///
/// The last word decides how verifiers read the others: from 0x4f4b4800 to 0x4f4b48ff, they are [bytes or a
/// digest](crate::commit). A program whose input decides about its last word must not let it be one of these.
///
/// # Panics
/// If `index` is not below [`OUTPUT_WORDS`].
pub fn output(index: usize, word: u32) {
    assert!(index < OUTPUT_WORDS);
    // SAFETY: the machine has these words there, aligned.
    unsafe { OUTPUT.add(index).write_volatile(word) }
}
