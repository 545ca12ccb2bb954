//! The end of a program.

use crate::words::{self, OUTPUT_WORDS};
use crate::output;
use core::fmt::Debug;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that panics, as on Linux.
const PANICKED: u32 = 101;

/// A type that `main` may return, and the exit code that a value means.
pub trait Termination {
    /// The exit code.
    fn code(self) -> u32;
}

impl Termination for () {
    fn code(self) -> u32 {
        0
    }
}

impl Termination for u32 {
    fn code(self) -> u32 {
        self
    }
}

/// An error is printed, and the exit code is 1.
impl<T: Termination, E: Debug> Termination for Result<T, E> {
    fn code(self) -> u32 {
        match self {
            Ok(value) => value.code(),
            Err(error) => {
                crate::println!("Error: {error:?}");
                1
            }
        }
    }
}

/// Ends the program: its output is what it committed to.
pub fn exit(code: u32) -> ! {
    output::finish();
    stop(code)
}

fn stop(code: u32) -> ! {
    // SAFETY: the call does not return.
    unsafe { core::arch::asm!("ecall", in("a0") code, in("a7") 93, options(noreturn)) }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // A message whose formatting panics again is not formatted once more.
    static PANICS: AtomicBool = AtomicBool::new(false);
    if !PANICS.load(Ordering::Relaxed) {
        PANICS.store(true, Ordering::Relaxed);
        crate::println!("{info}");
    }
    // An output that is only half written must not look like a result.
    (0..OUTPUT_WORDS).for_each(|index| words::output(index, 0));
    stop(PANICKED)
}
