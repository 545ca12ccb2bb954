//! Single operations on many elements, for tests of the arithmetic and for measurements.

use crate::arguments::Elements;
use crate::device::{Buffer, Error, launch};
use crate::kernel::Kernel;
use bytemuck::Pod;

/// An operation of [`apply`], as the kernels number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a b
    Multiply,
    /// a^2
    Square,
}

/// Applies an operation to the elements of two vectors. `kernel` is one of `Elements..` for this type of element.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// If the lengths differ.
pub fn apply<T: Pod>(
    kernel: Kernel,
    operation: Operation,
    a: &Buffer<T>,
    b: &Buffer<T>,
) -> Result<Buffer<T>, Error> {
    run(kernel, operation as u32, a, b)
}

/// Multiplies each a by b `times` times.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// As for [`apply`].
pub fn multiply_often<T: Pod>(
    kernel: Kernel,
    times: u32,
    a: &Buffer<T>,
    b: &Buffer<T>,
) -> Result<Buffer<T>, Error> {
    run(kernel, times, a, b)
}

/// Computes 5 a + b for each pair of points, with X, Y, ZZ and ZZZ of the results.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// As for [`apply`].
pub fn points<P: Pod, R: Pod>(
    kernel: Kernel,
    a: &Buffer<P>,
    b: &Buffer<P>,
) -> Result<Buffer<R>, Error> {
    run(kernel, 0, a, b)
}

fn run<T: Pod, R: Pod>(
    kernel: Kernel,
    operation: u32,
    a: &Buffer<T>,
    b: &Buffer<T>,
) -> Result<Buffer<R>, Error> {
    assert_eq!(a.len(), b.len(), "an operation on vectors of different lengths");
    let count = u32::try_from(a.len()).map_err(|_| Error::Size {
        what: "the number of elements",
        expected: "below 2^32".into(),
        found: a.len(),
    })?;
    let result = Buffer::new(a.device(), a.len())?;
    let [a_at, b_at] = [a, b].map(Buffer::address);
    let arguments = Elements { a: a_at, b: b_at, result: result.address(), count, operation };
    // SAFETY: all vectors have `count` elements.
    unsafe { launch(&**a.device(), kernel, count, &arguments) }?;
    Ok(result)
}
