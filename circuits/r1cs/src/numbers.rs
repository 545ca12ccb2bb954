//! Counts in the widths that files and searches need. What is in memory fits, for reasons that are given once, here.

/// Converts a count of wires, rows, terms or parts to the 32 bits that it has in files.
///
/// # Panics
/// If the count exceeds 32 bits.
pub(crate) fn count(count: usize) -> u32 {
    // A system numbers its wires and rows with 32 bits, `SystemBuilder` refuses longer combinations, and every part
    // has a row of its own.
    u32::try_from(count)
        .expect("systems have fewer than 2^32 wires, rows, and terms of a combination")
}

/// Converts a count of things in memory to a number that can be subtracted from.
pub(crate) fn signed(count: usize) -> i64 {
    i64::try_from(count).expect("no allocation has 2^63 bytes")
}

/// Converts an offset among things in memory to an index.
pub(crate) fn index(at: u64) -> usize {
    usize::try_from(at).expect("what the offset leads to is in memory")
}

/// Converts a limit that the caller chooses; where it exceeds all memory, it limits nothing.
pub(crate) fn limit(most: u64) -> usize {
    usize::try_from(most.min(usize::MAX as u64)).expect("no more than usize::MAX")
}
