//! Functions that the machine computes in one instruction.

/// The compression function of SHA-256 (FIPS 180-4, section 6.2.2): changes the state by a block, whose words are the bytes
/// of the message as they are in memory.
///
/// # Panics
/// On a machine that does not have it.
pub fn sha256_compress(state: &mut [u32; 8], block: &[u32; 16]) {
    let missing: u32;
    // SAFETY: the call reads the block, and reads and writes the state; references do not overlap.
    unsafe {
        core::arch::asm!("ecall", inlateout("a0") state.as_mut_ptr() => missing, in("a1") block.as_ptr(), in("a7") 1001)
    }
    assert!(missing == 0);
}

/// Keccak-f\[1600\] (FIPS 202, section 3.3), in place.
///
/// # Panics
/// On a machine that does not have it.
pub fn keccak_f(state: &mut [u64; 25]) {
    let missing: u32;
    // SAFETY: the call reads and writes the state.
    unsafe { core::arch::asm!("ecall", inlateout("a0") state.as_mut_ptr() => missing, in("a7") 1002) }
    assert!(missing == 0);
}
