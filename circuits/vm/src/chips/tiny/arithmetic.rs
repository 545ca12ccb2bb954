//! and, or, xor, not, add, sub, shl and shr.

use super::{Binary, is_zero};
use crate::chips::arithmetic::{and, conjunction};
use crate::chips::shifts::{by_amount, halves, product};
use crate::form::constant;
use crate::isa::Chip;
use crate::op::{Op, low, sign};
use crate::template::{Builder, OfOp};
use crate::word::power;

/// The variants of logic. No other sum of bits is one of them.
const OR: u8 = 1;
const XOR: u8 = 2;
const NOT: u8 = 4;

/// The result of logic.
pub(crate) fn logic_of(op: &Op) -> u32 {
    match op.variant {
        OR => op.x | op.operand(),
        XOR => op.x ^ op.operand(),
        NOT => !op.operand(),
        _ => and(op),
    }
}

/// and, or, xor; not has zero as first operand, and is 2^32 - 1 - y. The flag says whether the result is 0.
pub(in crate::chips) fn logic(b: &mut Builder) {
    let or = b.bit("f1", "variant", |op| op.is(OR));
    let xor = b.bit("f2", "variant", |op| op.is(XOR));
    let not = b.bit("f3", "variant", |op| op.is(NOT));
    let binary = Binary::new(b, true);
    let (x, y) = (&binary.x, &binary.y);
    let w = conjunction(b, x, y);
    let sum = b.product("select", &(&or + &xor - &not), &(x + y));
    let rest = b.product("select", &(constant(1) - &or * 2 - &xor * 3), &w);
    let z = sum + rest + &not * (b.word().modulus() - 1);
    // Otherwise the AND could be a fraction, which makes up for other operands.
    b.word_range("z range", &z, "zl", |op| low(logic_of(op)));
    let values: [(&'static str, OfOp); 2] =
        [("zf", |op| (logic_of(op) == 0).into()), ("iv", |op| logic_of(op).into())];
    let flag = is_zero(b, &z, values);
    binary.finish(b, Chip::TinyLogic, &(or + xor * 2 + not * 4), Some(&z), &flag);
}

/// The result of a sum or a difference, and whether there is a carry or a borrow.
pub(crate) fn add_of(op: &Op) -> (u32, bool) {
    match op.variant {
        0 => op.x.overflowing_add(op.operand()),
        _ => op.x.overflowing_sub(op.operand()),
    }
}

/// add, sub: z = x + y - 2^32 c, or x - y + 2^32 c. The flag is c.
pub(in crate::chips) fn add(b: &mut Builder) {
    let subtract = b.bit("s", "variant", |op| op.is(1));
    let binary = Binary::new(b, true);
    let carry = b.bit("c", "carry", |op| add_of(op).1.into());
    // Sum and difference differ in the sign of y - 2^32 c, so the variant selects once, and not y and the
    // carry each.
    let other = &binary.y - &carry * b.word().modulus();
    let negative = b.product("select", &subtract, &other);
    let z = &binary.x + other - negative * 2;
    b.word_range("z range", &z, "zl", |op| low(add_of(op).0));
    binary.finish(b, Chip::TinyAdd, &subtract, Some(&z), &carry);
}

/// The bits of a word without the upper and the lowest one.
fn middle(op: &Op) -> u32 {
    (op.x & 0x7fff_ffff) >> 1
}

/// shl, shr: as in RV32IM, but an amount of 32 or more leaves nothing. The flag is the bit of x that a shift
/// by one pushes out.
pub(in crate::chips) fn shift(b: &mut Builder) {
    let right = b.bit("d", "variant", |op| op.is(1));
    let binary = Binary::new(b, true);
    let x = &binary.x;
    let [factor, rest] = by_amount(b, &binary.y, &right);
    let of_rest: [(&'static str, OfOp); 2] =
        [("zf", |op| (op.operand() < 32).into()), ("iv", |op| (op.operand() >> 5).into())];
    let is_small = is_zero(b, &rest, of_rest);
    let values: [OfOp; 2] = [|op| halves(op)[0].into(), |op| halves(op)[1].into()];
    let [lo, hi] =
        product(b, x, &factor, values, [|op| low(halves(op)[0]), |op| low(halves(op)[1])]);
    let moved = b.select(&right, &hi, &lo);
    let z = b.product("select", &is_small, &moved);
    // x = lowest + 2 (m0 + 2^15 m1) + 2^31 upper
    let (upper_place, part) = (b.word().0 - 1, b.word().limb() - 1);
    let lowest = b.bit("b0", "outer bit", |op| (op.x & 1).into());
    let upper = b.bit("b31", "outer bit", |op| sign(op.x));
    let m0 = b.commit("n0", |op| (middle(op) & 0x7fff).into());
    b.range("outer", part, &m0);
    let m1 = b.rest(&(x - &upper * power(upper_place) - &m0 * 2), &lowest, part + 1);
    b.range("outer", part, &m1);
    // The flag is the bit that a shift by one pushes out, whatever the amount is (BCTV14b).
    let flag = b.select(&right, &lowest, &upper);
    binary.finish(b, Chip::TinyShift, &right, Some(&z), &flag);
}

/// The result of a shift, and the flag.
pub(crate) fn shift_of(op: &Op) -> (u32, bool) {
    let amount = op.operand();
    match op.variant {
        0 => (op.x.checked_shl(amount).unwrap_or(0), op.x >> 31 == 1),
        _ => (op.x.checked_shr(amount).unwrap_or(0), op.x & 1 == 1),
    }
}
