//! Shifts: x p = 2^32 hi + lo, where p is a power of two. A shift to the left is lo, to the right hi.

use super::common::{Fields, imm, rd, rs1, rs2, step};
use crate::form::Form;
use crate::isa::Chip;
use crate::op::{Op, low, sign};
use crate::template::{Asked, Builder, OfOp};
use crate::word::power;

/// The amount of a shift.
pub(super) fn amount(op: &Op) -> u32 {
    op.operand() & 31
}

/// The factor of a shift with an amount.
pub(super) fn factor(op: &Op) -> u64 {
    1 << if op.variant == 0 { amount(op) } else { 32 - amount(op) }
}

/// The halves of the product with the factor.
#[allow(clippy::cast_possible_truncation, reason = "the two halves")]
pub(super) fn halves(op: &Op) -> [u32; 2] {
    let product = u64::from(op.x) * factor(op);
    [product as u32, (product >> 32) as u32]
}

/// The amount and the factor of a shift by an operand, and what is left of the operand without the amount,
/// divided by 32.
pub(super) fn by_amount(b: &mut Builder, y: &Form, right: &Form) -> [Form; 2] {
    let word = b.word();
    let amount = b.commit("sh", |op| amount(op).into());
    let factor = b.commit("p", |op| factor(op).into());
    // The amount is open on the side of the table: it is bounded only as the rest of the operand, so the
    // spacing must be more than any operand.
    b.ask("pow", Asked::Powers, &(&amount + right * power(40)), &factor);
    let rest = b.rest(y, &amount, word.shift());
    // The rest has 27 bits; it is checked as a limb of 16 and one of 15, since those tables are there
    // already.
    let low_rest = b.commit("h0", |op| (op.operand() >> 5 & 0xffff).into());
    b.range("shamt", word.limb(), &low_rest);
    let high = b.rest(&rest, &low_rest, word.limb());
    b.range("shamt", word.limb() - 1, &high);
    [factor, rest]
}

/// x p = lo + 2^32 hi, both words.
pub(super) fn product(
    b: &mut Builder,
    x: &Form,
    factor: &Form,
    [lo, hi]: [OfOp; 2],
    [lo_low, hi_low]: [OfOp; 2],
) -> [Form; 2] {
    // One product serves both directions: to the right by n is to the left by 32 - n, with the upper half
    // as result.
    let (lo, hi) = (b.commit("lo", lo), b.commit("hi", hi));
    b.row("product", x, factor, &(&lo + &hi * b.word().modulus()));
    b.word_range("product range", &lo, "lol", lo_low);
    b.word_range("product range", &hi, "hil", hi_low);
    [lo, hi]
}

/// SLLI, SRLI: the factor is the immediate.
pub(super) fn shift_imm(b: &mut Builder) {
    fn halves(op: &Op) -> [u32; 2] {
        let product = u64::from(op.x) * u64::from(op.imm);
        #[allow(clippy::cast_possible_truncation, reason = "the two halves")]
        [product as u32, (product >> 32) as u32]
    }
    let step = step(b);
    let right = b.bit("d", "flag", |op| op.is(1));
    step.next(b, &step.after());
    let [rs1, rd, imm] = [rs1(b), rd(b), imm(b)];
    let x = step.x(b, &rs1);
    let values: [OfOp; 2] = [|op| halves(op)[0].into(), |op| halves(op)[1].into()];
    let [lo, hi] = product(b, &x, &imm, values, [|op| low(halves(op)[0]), |op| low(halves(op)[1])]);
    let z = b.select(&right, &hi, &lo);
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rd: Some(rd), imm: Some(imm), rs2: None };
    step.fetch(b, Chip::ShiftImm, &right, &fields);
}

/// SLL, SRL, SRA, SRAI: amount and factor are a row of a table; the rest of the operand is a multiple of
/// 32. To the right with sign: hi + s (2^32 - p).
pub(super) fn shift(b: &mut Builder) {
    let word = b.word();
    let step = step(b);
    let right = b.bit("d", "flag", |op| (op.variant > 0).into());
    let arithmetic = b.bit("a", "flag", |op| op.is(3));
    step.next(b, &step.after());
    let [rs1, rs2, rd, imm] = [rs1(b), rs2(b), rd(b), imm(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2) + &imm);
    let [factor, _] = by_amount(b, &y, &right);
    let values: [OfOp; 2] = [|op| halves(op)[0].into(), |op| halves(op)[1].into()];
    let [lo, hi] =
        product(b, &x, &factor, values, [|op| low(halves(op)[0]), |op| low(halves(op)[1])]);
    let shifted = b.select(&right, &hi, &lo);
    let sign = b.sign(&x, ["xl", "sx"], |op| low(op.x), |op| sign(op.x));
    let negative = b.product("select", &sign, &factor);
    // The bits that SRA fills in are the upper n of a word: 2^32 - p, with p = 2^(32 - n).
    let extension = sign * word.modulus() - negative;
    let z = shifted + b.product("select", &arithmetic, &extension);
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd: Some(rd), imm: Some(imm) };
    // No other pair of bits has the same digit as one of the variants 0, 1 and 3.
    step.fetch(b, Chip::Shift, &(right + arithmetic * 2), &fields);
}
