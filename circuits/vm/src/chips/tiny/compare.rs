//! cmpe, cmpa, cmpae, cmpg and cmpge: they write only the flag.

use super::{Binary, is_zero};
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::op::{Op, low, sign};
use crate::template::{Builder, OfOp};

/// cmpe: (x - y) iv = 1 - f, (x - y) f = 0.
pub(in crate::chips) fn equal(b: &mut Builder) {
    let binary = Binary::new(b, false);
    let values: [(&'static str, OfOp); 2] = [
        ("t", |op| (op.x == op.operand()).into()),
        ("iv", |op| i128::from(op.x) - i128::from(op.operand())),
    ];
    let flag = is_zero(b, &(&binary.x - &binary.y), values);
    binary.finish(b, Chip::TinyEqual, &constant(0), None, &flag);
}

/// x - y - 1, or x - y of the variants that hold for equal operands, too.
fn difference(op: &Op, x: i128, y: i128) -> i128 {
    x - y - 1 + i128::from(op.variant)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the lower bits")]
fn low_of(difference: i128) -> i128 {
    low(difference as u32)
}

fn unsigned(op: &Op) -> i128 {
    difference(op, op.x.into(), op.operand().into())
}

fn signed(op: &Op) -> i128 {
    difference(op, op.x.cast_signed().into(), op.operand().cast_signed().into())
}

/// Reports whether the condition of cmpe holds.
pub(crate) fn equal_of(op: &Op) -> bool {
    op.x == op.operand()
}

/// Reports whether the condition of cmpa or cmpae holds.
pub(crate) fn above_of(op: &Op) -> bool {
    unsigned(op) >= 0
}

/// Reports whether the condition of cmpg or cmpge holds.
pub(crate) fn greater_of(op: &Op) -> bool {
    signed(op) >= 0
}

/// The flag is such that the difference plus 2^32 (1 - f) is a word.
fn check(b: &mut Builder, difference: &Form, flag: &Form, value: OfOp) {
    // The difference is between -2^32 and 2^32 - 1, so one value of the flag makes it a word, and the other
    // does not.
    let word = difference + (constant(1) - flag) * b.word().modulus();
    b.word_range("lt range", &word, "dl", value);
}

/// cmpa, cmpae.
pub(in crate::chips) fn above(b: &mut Builder) {
    let or_equal = b.bit("oe", "variant", |op| op.is(1));
    let binary = Binary::new(b, false);
    let flag = b.bit("t", "lt bit", |op| above_of(op).into());
    // x > y is x - y - 1 >= 0, and x >= y is x - y >= 0.
    let difference = &binary.x - &binary.y - constant(1) + &or_equal;
    check(b, &difference, &flag, |op| low_of(unsigned(op)));
    binary.finish(b, Chip::TinyAbove, &or_equal, None, &flag);
}

/// cmpg, cmpge: the same of signed numbers.
pub(in crate::chips) fn greater(b: &mut Builder) {
    let or_equal = b.bit("oe", "variant", |op| op.is(1));
    let binary = Binary::new(b, false);
    let flag = b.bit("t", "lt bit", |op| greater_of(op).into());
    let sign_x = b.sign(&binary.x, ["xl", "sx"], |op| low(op.x), |op| sign(op.x));
    let sign_y = b.sign(&binary.y, ["yl", "sy"], |op| low(op.operand()), |op| sign(op.operand()));
    let signs = (sign_x - sign_y) * b.word().modulus();
    let difference = &binary.x - &binary.y - signs - constant(1) + &or_equal;
    check(b, &difference, &flag, |op| low_of(signed(op)));
    binary.finish(b, Chip::TinyGreater, &or_equal, None, &flag);
}
