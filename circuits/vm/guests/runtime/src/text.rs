//! Text for whoever runs the program.

use core::fmt::{Arguments, Result, Write};

struct Text;

impl Write for Text {
    fn write_str(&mut self, text: &str) -> Result {
        // SAFETY: the instruction does nothing but tell where the text is.
        unsafe {
            core::arch::asm!("slti x0, a0, 0x481", in("a0") text.as_ptr(), in("a1") text.len(), options(nostack))
        }
        Ok(())
    }
}

/// Shows a text: see [`print!`](crate::print!). Not called `print`, which programs may have, too.
pub fn __print(arguments: Arguments<'_>) {
    // The text goes nowhere where it could fail; an error is that of a type that cannot be formatted.
    if Text.write_fmt(arguments).is_err() {
        panic!("a type cannot be printed");
    }
}

/// Prints text, which `hekaton vm run` shows on standard error. In a proof, it is nowhere.
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
