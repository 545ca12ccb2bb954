//! The runtime of a Rust program on Hekaton's machine: its entry point, its input, its output. `cargo build --release`
//! makes a program that `hekaton vm` runs and proves.
//!
//! Programs in other crates need `rustflags = ["-Clink-arg=-Tguest.ld"]` for the target in their `.cargo/config.toml`, as this
//! one has it; the build script puts the link script where the linker finds it.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//!
//! hekaton_guest::entry!(main);
//!
//! fn main() -> u32 {
//!     let input = hekaton_guest::private_input(0);
//!     hekaton_guest::output(0, input.iter().map(|byte| u32::from(*byte)).sum());
//!     0
//! }
//! ```
#![no_std]

use core::panic::PanicInfo;

/// The address of the input: words that verifiers see, then the number of the private bytes, then these.
const INPUT: *const u32 = 0x2000_0000 as *const u32;

/// The address of the output.
const OUTPUT: *mut u32 = 0x3000_0000 as *mut u32;

/// The number of words of the output.
pub const OUTPUT_WORDS: usize = 16;

/// The exit code of a program that panics, as on Linux.
const PANICKED: u32 = 101;

/// Word `index` of the input that verifiers see. A word that is not there may be private, or the run traps.
pub fn public_input(index: usize) -> u32 {
    // SAFETY: the machine has the input there, aligned; it never changes.
    unsafe { INPUT.add(index).read() }
}

/// The bytes that verifiers do not see, behind `public_words` words that they see.
pub fn private_input(public_words: usize) -> &'static [u8] {
    let length = public_input(public_words) as usize;
    // SAFETY: the machine has this number of bytes there, and they never change.
    unsafe { core::slice::from_raw_parts(INPUT.add(public_words + 1).cast(), length) }
}

/// Sets word `index` of the output.
///
/// # Panics
/// If the output has no such word.
pub fn output(index: usize, word: u32) {
    assert!(index < OUTPUT_WORDS);
    // SAFETY: the machine has these words there, aligned.
    unsafe { OUTPUT.add(index).write_volatile(word) }
}

/// The compression function of SHA-256 (FIPS 180-4, section 6.2.2): changes the state by a block, whose words are the bytes
/// of the message as they are in memory. The machine does it in one instruction.
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

/// Keccak-f\[1600\] (FIPS 202, section 3.3), in place. The machine does it in one instruction.
///
/// # Panics
/// On a machine that does not have it.
pub fn keccak_f(state: &mut [u64; 25]) {
    let missing: u32;
    // SAFETY: the call reads and writes the state.
    unsafe { core::arch::asm!("ecall", inlateout("a0") state.as_mut_ptr() => missing, in("a7") 1002) }
    assert!(missing == 0);
}

/// Ends the program.
pub fn exit(code: u32) -> ! {
    // SAFETY: the call does not return.
    unsafe { core::arch::asm!("ecall", in("a0") code, in("a7") 93, options(noreturn)) }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(PANICKED)
}

/// Makes a function `fn() -> u32` the program: what it returns is the exit code. The stack has 64 KiB, or the number of bytes
/// that is given: `entry!(main, 0x10_0000)`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        $crate::entry!($main, 0x1_0000);
    };
    ($main:path, $stack:literal) => {
        core::arch::global_asm!(
            ".weak __global_pointer$",
            ".weak __tls_base",
            ".weak __stack_top",
            ".section .text.start, \"ax\"",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            // The global pointer, the thread pointer and the stack are where guest.ld has them: see start.S.
            ".option push",
            ".option norelax",
            "lui gp, %hi(__global_pointer$)",
            "addi gp, gp, %lo(__global_pointer$)",
            ".option pop",
            "lui tp, %hi(__tls_base)",
            "addi tp, tp, %lo(__tls_base)",
            "lui sp, %hi(__stack_top)",
            "addi sp, sp, %lo(__stack_top)",
            "bnez sp, 1f",
            "lui sp, 0x20000",
            "1:",
            "call __hekaton_main",
            ".section .stack_room, \"aw\", @nobits",
            ".space {stack}",
            ".text",
            stack = const $stack,
        );

        #[unsafe(no_mangle)]
        extern "C" fn __hekaton_main() -> ! {
            let main: fn() -> u32 = $main;
            $crate::exit(main())
        }
    };
}
