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

macro_rules! mul_add_mod {
    ($name:ident, $raw:ident, $words:literal, $call:literal, $bits:literal) => {
        #[doc = concat!("a b + c mod m, on numbers of ", $bits, " bits: 32-bit words, the lowest one first.")]
        ///
        /// The result is below m. The run traps if m is zero or if the quotient has more bits than the numbers; it never has if a
        /// or b is below m. Sums are a 1 + c, differences c + a (m - 1), and remainders a 1 + 0.
        ///
        /// # Panics
        /// On a machine that does not have it.
        pub fn $name(a: &[u32; $words], b: &[u32; $words], c: &[u32; $words], m: &[u32; $words]) -> [u32; $words] {
            let mut r = core::mem::MaybeUninit::uninit();
            // SAFETY: all pointers are to as many words; the call writes all of r.
            unsafe {
                $raw(r.as_mut_ptr(), a, b, c, m);
                r.assume_init()
            }
        }

        #[doc = concat!("[`", stringify!($name), "`], with the result in any words, also in those of operands.")]
        ///
        /// # Safety
        /// All pointers must be aligned; operands must be readable, and the words at `r` writable.
        ///
        /// # Panics
        /// On a machine that does not have it.
        pub unsafe fn $raw(
            r: *mut [u32; $words],
            a: *const [u32; $words],
            b: *const [u32; $words],
            c: *const [u32; $words],
            m: *const [u32; $words],
        ) {
            let missing: u32;
            // SAFETY: the call reads all operands before it writes the result.
            unsafe {
                core::arch::asm!(
                    "ecall", inlateout("a0") r => missing, in("a1") a, in("a2") b, in("a3") c, in("a4") m, in("a7") $call
                )
            }
            assert!(missing == 0);
        }
    };
}

mul_add_mod!(mul_add_mod_256, mul_add_mod_256_raw, 8, 1003, "256");
mul_add_mod!(mul_add_mod_384, mul_add_mod_384_raw, 12, 1004, "384");
