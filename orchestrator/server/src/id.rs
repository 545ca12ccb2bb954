//! Partitions, and random numbers for names that no other process uses.

/// The number of partitions that the groups of all chains are divided into. Their owners change, the partitions never do.
pub const PARTITIONS: u8 = 64;

/// A random number, for incarnations, sessions and nonces.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness two processes could take each other's writes for their own.
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    u64::from_le_bytes(bytes)
}
