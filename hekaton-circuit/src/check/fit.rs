//! The largest part of a computation that fits one subcircuit.

use crate::check::count;
use crate::check::error::CheckError;
use crate::circuit::Circuit;

/// Returns the largest size, at least 1, for which every type of a circuit fits an evaluation
/// domain with the masks of zero-knowledge keys; `None` if none does. Time and memory of a prover
/// depend on the domain (a power of two, or three times one), so filling it is the cheapest cut.
///
/// `circuit` makes the circuit of a size, for example a number of steps per subcircuit. Types must
/// not get smaller as the size grows. The search synthesizes all types about `2 log2` of the result
/// times.
///
/// ```no_run
/// # use hekaton_circuit::{Circuit, CheckError, fit};
/// # fn example<C: Circuit>(hash_chain: fn(usize, usize) -> C) -> Result<(), CheckError> {
/// let per_subcircuit = fit(1 << 16, |per| hash_chain(1000, per))?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// If the circuit of a size has no valid layout, or synthesis fails.
pub fn fit<C: Circuit>(
    domain: usize,
    circuit: impl Fn(usize) -> C,
) -> Result<Option<usize>, CheckError> {
    // A size above the domain never fits if types grow with it. The bound ends the search for types that
    // do not.
    let fits = |size: usize| -> Result<bool, CheckError> {
        Ok(size <= domain && count(&circuit(size))?.iter().all(|kind| kind.domain <= domain))
    };
    // Doubling first: synthesis takes time in proportion to the size, and the answer may be far below the
    // domain.
    let (mut fitting, mut too_large) = (0, 1);
    while fits(too_large)? {
        fitting = too_large;
        too_large *= 2;
    }
    while too_large - fitting > 1 {
        let middle = fitting.midpoint(too_large);
        match fits(middle)? {
            true => fitting = middle,
            false => too_large = middle,
        }
    }
    Ok((fitting > 0).then_some(fitting))
}
