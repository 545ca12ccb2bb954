//! ECALLs for precompiles, but for what these make of their words: the number of the call in a7, pointers in a0
//! and a1, words in memory.

use super::access::word_of;
use super::common::{Fields, step};
use crate::form::{Form, constant};
use crate::isa::{A0, A1, A7, Chip};
use crate::precompile::Call;
use crate::template::Builder;

/// An ECALL. a0 becomes 0, which says that the machine has the call. Pointers have ranges of their own, so words
/// have addresses below 2^31, whatever registers have; words that a call accesses twice have no witness, since
/// both accesses would be at the same time.
pub(super) fn call(b: &mut Builder, chip: Chip, Call { number, changed, read }: Call) {
    let step = step(b);
    step.next(b, &step.after());
    let x = b.commit("x", |op| op.x.into());
    // One access reads the pointer and leaves 0. Linux leaves an error for a call that it does not have, so
    // a program can tell the two apart.
    step.known_register(b, A0, 0, (&x, &constant(0)));
    let at = word_of(b, &x, ("z1", |op| (op.x >> 16).into()));
    for word in 0..changed {
        let (before, after) = (b.given(word), b.made(word));
        // All words have the time of this cycle, so a word cannot be accessed twice: the second access
        // would have to be later than itself.
        step.numbered_memory(b, word, &nth(&at, word), (&before, &after));
    }
    if read > 0 {
        let y = b.commit("y", |op| op.y.into());
        step.known_register(b, A1, 1, (&y, &y));
        let at = word_of(b, &y, ("z2", |op| (op.y >> 16).into()));
        for word in 0..read {
            let value = b.given(changed + word);
            step.numbered_memory(b, changed + word, &nth(&at, word), (&value, &value));
        }
    }
    let number = constant(number.into());
    // The program has a row for each call at an ECALL; a7 decides which of them is meant.
    step.known_register(b, A7, 2, (&number, &number));
    step.fetch(b, chip, &constant(0), &Fields::default());
}

/// The address of a word, by its number from an address.
fn nth(at: &Form, word: usize) -> Form {
    at + constant(word as i128)
}
