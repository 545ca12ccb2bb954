//! Input and output as the machine has them: words that verifiers see, and private bytes.

/// The address of the input: words that verifiers see, then the number of the private bytes, then these.
const INPUT: *const u32 = 0x2000_0000 as *const u32;

/// The address of the output.
const OUTPUT: *mut u32 = 0x3000_0000 as *mut u32;

/// The number of words of the output.
pub const OUTPUT_WORDS: usize = 16;

/// The number of words between the input's address and the output's.
const ROOM: usize = (0x3000_0000 - 0x2000_0000) / 4;

/// Word `index` of the input that verifiers see. A word that is not there may be private, or the run traps.
///
/// # Panics
/// If an input has no such word.
pub fn public_input(index: usize) -> u32 {
    assert!(index < ROOM);
    // SAFETY: the machine has the input there, aligned; it never changes.
    unsafe { INPUT.add(index).read() }
}

/// The bytes that verifiers do not see, behind `public_words` words that they see.
///
/// # Panics
/// If as many bytes have no room in front of the output: the prover says how many there are.
pub fn private_input(public_words: usize) -> &'static [u8] {
    let length = public_input(public_words) as usize;
    assert!(length <= 4 * (ROOM - 1 - public_words), "an input of {length} bytes");
    let start = INPUT.wrapping_add(public_words + 1);
    // SAFETY: there is nothing else in these addresses, and where there are fewer bytes, an access has no proof. They never
    // change.
    unsafe { core::slice::from_raw_parts(start.cast(), length) }
}

/// Sets word `index` of the output. A program that commits to something overwrites all of them at its end.
///
/// The last word decides how verifiers read the others: from 0x4f4b4800 to 0x4f4b48ff, they are [bytes or a
/// digest](crate::commit). A program whose input decides about its last word must not let it be one of these.
///
/// # Panics
/// If the output has no such word.
pub fn output(index: usize, word: u32) {
    assert!(index < OUTPUT_WORDS);
    // SAFETY: the machine has these words there, aligned.
    unsafe { OUTPUT.add(index).write_volatile(word) }
}
