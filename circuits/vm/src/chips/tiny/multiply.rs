//! mull, umulh, smulh, udiv and umod.

use super::{Binary, is_zero};
use crate::chips::multiply::unsigned;
use crate::form::constant;
use crate::isa::Chip;
use crate::op::{Op, low, sign};
use crate::template::{Builder, OfOp};

/// The result of mull and umulh, and whether the product is not a word.
pub(crate) fn multiply_of(op: &Op) -> (u32, bool) {
    let [lo, hi] = unsigned(op);
    (if op.variant == 0 { lo } else { hi }, hi != 0)
}

/// mull, umulh: x y = lo + 2^32 hi. The flag says whether hi is not 0.
pub(in crate::chips) fn multiply(b: &mut Builder) {
    let high = b.bit("f1", "variant", |op| op.is(1));
    let binary = Binary::new(b, true);
    let lo = b.commit("lo", |op| unsigned(op)[0].into());
    let hi = b.commit("hi", |op| unsigned(op)[1].into());
    // As in RV32IM: both sides are below 2^64, so the halves are unique once they have their ranges.
    b.row("product", &binary.x, &binary.y, &(&lo + &hi * b.word().modulus()));
    let z = b.select(&high, &hi, &lo);
    b.word_range("product range", &lo, "lol", |op| low(unsigned(op)[0]));
    b.word_range("product range", &hi, "hil", |op| low(unsigned(op)[1]));
    let values: [(&'static str, OfOp); 2] =
        [("zf", |op| (unsigned(op)[1] == 0).into()), ("iv", |op| unsigned(op)[1].into())];
    let flag = constant(1) - is_zero(b, &hi, values);
    binary.finish(b, Chip::TinyMultiply, &high, Some(&z), &flag);
}

fn signed(op: &Op) -> i64 {
    i64::from(op.x.cast_signed()) * i64::from(op.operand().cast_signed())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the two halves")]
fn signed_halves(op: &Op) -> [u32; 2] {
    [signed(op) as u32, (signed(op) >> 32) as u32]
}

/// Returns the difference between the upper half and the sign extension of the lower one: zero if the product is a
/// signed word.
fn excess(op: &Op) -> i128 {
    let [lo, hi] = signed_halves(op);
    i128::from(hi) - sign(lo) * i128::from(u32::MAX)
}

/// The result of smulh, and whether the product is not a signed word.
pub(crate) fn multiply_signed_of(op: &Op) -> (u32, bool) {
    (signed_halves(op)[1], excess(op) != 0)
}

/// smulh: (x - 2^32 sx) (y - 2^32 sy) = lo + 2^32 hi - 2^64 n. The flag says whether the product is not a signed word,
/// that is whether hi is not the sign of lo in all bits.
pub(in crate::chips) fn multiply_signed(b: &mut Builder) {
    let modulus = b.word().modulus();
    let binary = Binary::new(b, true);
    let lo = b.commit("lo", |op| signed_halves(op)[0].into());
    let hi = b.commit("hi", |op| signed_halves(op)[1].into());
    let sign_x = b.sign(&binary.x, ["xl", "sx"], |op| low(op.x), |op| sign(op.x));
    let sign_y = b.sign(&binary.y, ["yl", "sy"], |op| low(op.operand()), |op| sign(op.operand()));
    let negative = b.bit("n", "carry", |op| (signed(op) < 0).into());
    let product = &lo + &hi * modulus - negative * (modulus * modulus);
    b.row("product", &(&binary.x - sign_x * modulus), &(&binary.y - sign_y * modulus), &product);
    // That bounds the lower half, too.
    let sign_lo =
        b.sign(&lo, ["lol", "sl"], |op| low(signed_halves(op)[0]), |op| sign(signed_halves(op)[0]));
    b.word_range("product range", &hi, "hil", |op| low(signed_halves(op)[1]));
    let values: [(&'static str, OfOp); 2] = [("zf", |op| (excess(op) == 0).into()), ("iv", excess)];
    let flag = constant(1) - is_zero(b, &(&hi - sign_lo * (modulus - 1)), values);
    binary.finish(b, Chip::TinyMultiplySigned, &constant(0), Some(&hi), &flag);
}

fn quotient(op: &Op) -> u32 {
    op.x.checked_div(op.operand()).unwrap_or(0)
}

/// The remainder; by 0 all of x, which is not the result.
fn remainder(op: &Op) -> u32 {
    op.x.checked_rem(op.operand()).unwrap_or(op.x)
}

/// The result of udiv and umod, and whether the divisor is 0.
pub(crate) fn divide_of(op: &Op) -> (u32, bool) {
    let by_zero = op.operand() == 0;
    let result = if op.variant == 0 { quotient(op) } else { remainder(op) };
    (if by_zero { 0 } else { result }, by_zero)
}

/// udiv, umod: Q y + R = x, with R < y unless y is 0. Then the result is 0, and the flag is 1.
pub(in crate::chips) fn divide(b: &mut Builder) {
    let modulus = b.word().modulus();
    let is_remainder = b.bit("f1", "variant", |op| op.is(1));
    let binary = Binary::new(b, true);
    let rest = b.commit("R", |op| remainder(op).into());
    let times = b.commit("Q", |op| quotient(op).into());
    b.row("product", &times, &binary.y, &(&binary.x - &rest));
    b.word_range("product range", &times, "Ql", |op| low(quotient(op)));
    b.word_range("product range", &rest, "Rl", |op| low(remainder(op)));
    let values: [(&'static str, OfOp); 2] =
        [("zf", |op| (op.operand() == 0).into()), ("iv", |op| op.operand().into())];
    let by_zero = is_zero(b, &binary.y, values);
    let slack = &binary.y - constant(1) - &rest + &by_zero * modulus;
    b.word_range("remainder", &slack, "dl", |op| {
        low(op.operand().wrapping_sub(1).wrapping_sub(remainder(op)))
    });
    let result = b.select(&is_remainder, &rest, &times);
    // TinyRAM defines the result of a division by 0 as 0, where RV32IM has all bits set.
    let z = b.product("select", &(constant(1) - &by_zero), &result);
    binary.finish(b, Chip::TinyDivide, &is_remainder, Some(&z), &by_zero);
}
