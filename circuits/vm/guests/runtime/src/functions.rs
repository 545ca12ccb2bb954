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

/// Words, which a function of C returns through a pointer in a0.
#[repr(C)]
struct Words<const N: usize>([u32; N]);

macro_rules! mul_add_mod {
    ($name:ident, $symbol:literal, $words:literal, $call:literal, $bits:literal) => {
        // A function, because the compiler would copy the results of inline assembly. By the calling convention, all pointers are
        // in the registers that the call expects.
        core::arch::global_asm!(
            concat!(".section .text.", $symbol, ", \"ax\", @progbits"),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ", @function"),
            concat!($symbol, ":"),
            concat!("li a7, ", $call),
            "ecall",
            "bnez a0, 1f",
            "ret",
            "1:",
            // Not this machine.
            "unimp",
            concat!(".size ", $symbol, ", . - ", $symbol),
            ".text",
        );

        #[doc = concat!("a b + c mod m, on numbers of ", $bits, " bits: 32-bit words, the lowest one first.")]
        ///
        /// The result is below m. The run traps if m is zero or if the quotient has more bits than the numbers; it never has if a
        /// or b is below m. Sums are a 1 + c, differences c + a (m - 1), and remainders a 1 + 0.
        #[inline(always)]
        pub fn $name(a: &[u32; $words], b: &[u32; $words], c: &[u32; $words], m: &[u32; $words]) -> [u32; $words] {
            unsafe extern "C" {
                #[link_name = $symbol]
                fn call(
                    a: &[u32; $words],
                    b: &[u32; $words],
                    c: &[u32; $words],
                    m: &[u32; $words],
                ) -> Words<$words>;
            }
            // SAFETY: the call reads four numbers and writes all words of the result.
            unsafe { call(a, b, c, m).0 }
        }
    };
}

mul_add_mod!(mul_add_mod_256, "__hekaton_mul_add_mod_256", 8, "1003", "256");
mul_add_mod!(mul_add_mod_384, "__hekaton_mul_add_mod_384", 12, "1004", "384");
