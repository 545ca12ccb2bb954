//! Text that is shown when the program runs outside of a proof.

use core::fmt::{Arguments, Result, Write};

struct Text;

impl Write for Text {
    fn write_str(&mut self, text: &str) -> Result {
        // SAFETY: the instruction only tells the executor where the text is.
        unsafe {
            core::arch::asm!("slti x0, a0, 0x481", in("a0") text.as_ptr(), in("a1") text.len(), options(nostack))
        }
        Ok(())
    }
}

/// Shows text; called by [`print!`](crate::print!). Named so that it does not clash with a program's own `print`.
pub fn __print(arguments: Arguments<'_>) {
    // Writing the text does not fail, so the error is that of a value's own implementation.
    if Text.write_fmt(arguments).is_err() {
        panic!("a formatting trait implementation returned an error");
    }
}

/// Prints text, which `hekaton vm run` shows on standard error. A proof does not contain it.
#[macro_export]
macro_rules! print {
    ($($arguments:tt)*) => { $crate::__print(::core::format_args!($($arguments)*)) };
}

/// Prints text and ends the line, like [`print!`](crate::print!).
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($arguments:tt)*) => { $crate::print!("{}\n", ::core::format_args!($($arguments)*)) };
}
