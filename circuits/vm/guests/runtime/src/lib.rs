//! The runtime of Rust programs on Hekaton's machine: entry point, input, output, text, memory. `cargo hekaton new` makes a
//! project that uses it.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//!
//! extern crate alloc;
//!
//! use alloc::vec::Vec;
//! use hekaton_guest::{commit, println, read};
//!
//! #[hekaton_guest::main]
//! fn main() {
//!     let numbers: Vec<u32> = read();
//!     println!("{} numbers", numbers.len());
//!     commit(&numbers.iter().map(|number| u64::from(*number)).sum::<u64>());
//! }
//! ```
//!
//! - Everything that the program reads is private: what verifiers must know, it [`commit`]s to.
//! - What it prints is shown by `hekaton vm run`, as are panics; it is not part of a proof, but costs cycles.
//! - There is no standard library, but `core` and `alloc`, and so all crates that need no more.
//! - [`mod@words`] has the input and output of the machine as they are.
#![no_std]

extern crate alloc;

mod exit;
mod functions;
mod heap;
mod input;
mod memory;
mod output;
mod text;
pub mod words;

pub use exit::{Termination, exit};
pub use functions::{keccak_f, mul_add_mod_256, mul_add_mod_384, sha256_compress};
pub use hekaton_guest_macros::main;
pub use input::{input, read};
pub use output::{commit, commit_bytes};
#[doc(hidden)]
pub use text::__print;

/// Makes a function the program, as `#[hekaton_guest::main]` does. The stack has 64 KiB, or the number of bytes that is given:
/// `entry!(main, 0x10_0000)`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        $crate::entry!($main, 0x1_0000);
    };
    ($main:path, $stack:literal) => {
        const _: () = assert!(
            0x400 <= $stack && $stack <= 0xf0_0000,
            "the stack must have 1 KiB to 15 MiB"
        );

        ::core::arch::global_asm!(
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
            $crate::exit($crate::Termination::code($main()))
        }
    };
}
