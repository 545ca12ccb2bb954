//! ECALLs for precompiles, but for what these make of their words: the number of the call in a7, pointers in a0
//! and the registers after it, words in memory.

use super::access::word_of;
use super::common::{Fields, step};
use crate::form::{Form, constant};
use crate::isa::{A0, A1, A7, Chip};
use crate::op::Access;
use crate::precompile::Call;
use crate::template::Builder;

/// An ECALL. a0 becomes 0, which says that the machine has the call. Pointers have ranges of their own, so words
/// have addresses below 2^31, whatever registers have. Each operand is accessed in a cycle of its own, the one that
/// changes last: operands may overlap, and all of them are read before anything is written.
pub(crate) fn call(b: &mut Builder, chip: Chip, call: Call) {
    let step = step(b);
    step.next_after(b, &step.after(), call.cycles().into());
    let x = b.commit("x", |op| op.x.into());
    // One access reads the pointer and leaves 0. Linux leaves an error for a call that it does not have, so
    // a program can tell the two apart.
    step.known_register(b, A0, 0, (&x, &constant(0)));
    let high = b.commit("z1", |op| (op.x >> 16).into());
    let at = word_of(b, &x, &high);
    for word in 0..call.changed {
        let (before, after) = (b.given(word), b.made(word));
        // All words of an operand have the same time; their addresses differ.
        let last = call.read.len() as i128;
        step.numbered_memory(b, word, last, &nth(&at, word), (&before, &after));
    }
    let mut next = call.changed;
    for (later, (register, count)) in (A1..).zip(call.read).enumerate() {
        let (pointer, high) = if later == 0 {
            let y = b.commit("y", |op| op.y.into());
            step.known_register(b, A1, 1, (&y, &y));
            (y, b.commit("z2", |op| (op.y >> 16).into()))
        } else {
            // An operation has fields for two registers: the others are accesses, behind those of words.
            let number = call.words() + later - 1;
            let pointer = step.numbered_register(b, register, number);
            let high = |access: &Access| (access.before >> 16).into();
            (pointer, b.commit_access("zp", number, high))
        };
        let at = word_of(b, &pointer, &high);
        for word in 0..*count {
            let value = b.given(next);
            step.numbered_memory(b, next, later as i128, &nth(&at, word), (&value, &value));
            next += 1;
        }
    }
    let number = constant(call.number.into());
    // The program has a row for each call at an ECALL; a7 decides which of them is meant.
    step.known_register(b, A7, 2, (&number, &number));
    step.fetch(b, chip, &constant(0), &Fields::default());
}

/// The address of a word, by its number from an address.
fn nth(at: &Form, word: usize) -> Form {
    at + constant(word as i128)
}
