//! Products, quotients and remainders.

use super::common::{Fields, rd, rs1, rs2, step};
use crate::form::constant;
use crate::isa::Chip;
use crate::op::{Op, low, sign};
use crate::template::Builder;

/// The halves of a product.
#[allow(clippy::cast_possible_truncation, reason = "the two halves")]
pub(super) fn unsigned(op: &Op) -> [u32; 2] {
    let product = u64::from(op.x) * u64::from(op.operand());
    [product as u32, (product >> 32) as u32]
}

/// MUL, MULHU: x y = lo + 2^32 hi.
pub(super) fn multiply(b: &mut Builder) {
    let step = step(b);
    let high = b.bit("f1", "flag", |op| op.is(1));
    step.next(b, &step.after());
    let [rs1, rs2, rd] = [rs1(b), rs2(b), rd(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2));
    let lo = b.commit("lo", |op| unsigned(op)[0].into());
    let hi = b.commit("hi", |op| unsigned(op)[1].into());
    // Both sides are below 2^64 once the halves have their ranges, far below r: the row holds for integers,
    // and the halves are unique.
    b.row("product", &x, &y, &(&lo + &hi * b.word().modulus()));
    let z = b.select(&high, &hi, &lo);
    b.word_range("product range", &lo, "lol", |op| low(unsigned(op)[0]));
    b.word_range("product range", &hi, "hil", |op| low(unsigned(op)[1]));
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd: Some(rd), imm: None };
    step.fetch(b, Chip::Multiply, &high, &fields);
}

/// The product of a signed x and y, which is signed, too, in MULH.
fn signed(op: &Op) -> i128 {
    let y = match op.variant {
        0 => op.y.cast_signed().into(),
        _ => i128::from(op.y),
    };
    i128::from(op.x.cast_signed()) * y
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the two halves")]
fn signed_halves(op: &Op) -> [u32; 2] {
    let product = signed(op);
    [product as u32, (product >> 32) as u32]
}

/// MULH, MULHSU: (x - 2^32 sx) (y - 2^32 t) = lo + 2^32 hi - 2^64 n, where t is sy, or 0 in MULHSU.
pub(super) fn multiply_high(b: &mut Builder) {
    let modulus = b.word().modulus();
    let step = step(b);
    let mixed = b.bit("f1", "flag", |op| op.is(1));
    step.next(b, &step.after());
    let [rs1, rs2, rd] = [rs1(b), rs2(b), rd(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2));
    let lo = b.commit("lo", |op| signed_halves(op)[0].into());
    let hi = b.commit("hi", |op| signed_halves(op)[1].into());
    let sign_x = b.sign(&x, ["xl", "sx"], |op| low(op.x), |op| sign(op.x));
    let sign_y = b.sign(&y, ["yl", "sy"], |op| low(op.y), |op| sign(op.y));
    let subtracts_y = b.product("select", &(constant(1) - &mixed), &sign_y);
    // A negative product is 2^64 less than its two halves; which it is follows, since the halves are in
    // range for one choice only.
    let negative = b.bit("n", "carry", |op| (signed(op) < 0).into());
    let product = &lo + &hi * modulus - negative * (modulus * modulus);
    b.row("product", &(x - sign_x * modulus), &(y - subtracts_y * modulus), &product);
    b.word_range("product range", &lo, "lol", |op| low(signed_halves(op)[0]));
    b.word_range("product range", &hi, "hil", |op| low(signed_halves(op)[1]));
    step.write(b, &rd, &hi);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd: Some(rd), imm: None };
    step.fetch(b, Chip::MultiplyHigh, &mixed, &fields);
}

/// A division: of absolute values, with quotient 0 by 0, and with signs.
struct Division {
    quotient: u32,
    remainder: u32,
    /// The signs of the signed quotient and the signed remainder: `true` if negative.
    negative: [bool; 2],
    /// ay - 1 - R, plus 2^32 by 0.
    slack: u32,
}

impl Division {
    fn of(op: &Op) -> Self {
        let is_signed = op.variant & 1 == 0;
        let absolute = |word: u32| match is_signed {
            true => word.cast_signed().unsigned_abs(),
            false => word,
        };
        let is_negative = |word: u32| is_signed && word >> 31 == 1;
        let (x, y) = (absolute(op.x), absolute(op.y));
        let (quotient, remainder) = (x.checked_div(y).unwrap_or(0), x.checked_rem(y).unwrap_or(x));
        let negative = [is_negative(op.x) != is_negative(op.y), is_negative(op.x)];
        let slack = y.wrapping_sub(1).wrapping_sub(remainder);
        Self { quotient, remainder, negative, slack }
    }

    /// The quotient with its sign, before the exception for a divisor of 0, and the remainder.
    fn signed(&self) -> [u32; 2] {
        let [q, r] = [self.quotient, self.remainder];
        let negate = |word: u32, negative: bool| if negative { word.wrapping_neg() } else { word };
        [negate(q, self.negative[0]), negate(r, self.negative[1])]
    }
}

/// DIV, DIVU, REM, REMU: Q |y| + R = |x|, with R < |y| unless y is 0. Then the quotient is -1 and the
/// remainder x; the overflow of -2^31 / -1 comes out as the manual says.
pub(super) fn divide(b: &mut Builder) {
    let modulus = b.word().modulus();
    let step = step(b);
    let is_unsigned = b.bit("f1", "flag", |op| (op.variant & 1).into());
    let is_remainder = b.bit("f2", "flag", |op| (op.variant >> 1).into());
    step.next(b, &step.after());
    let [rs1, rs2, rd] = [rs1(b), rs2(b), rd(b)];
    let (x, y) = (step.x(b, &rs1), step.y(b, &rs2));
    let sign_x = b.sign(&x, ["xl", "sx"], |op| low(op.x), |op| sign(op.x));
    let sign_y = b.sign(&y, ["yl", "sy"], |op| low(op.y), |op| sign(op.y));
    // Signed and unsigned divisions share the rows of absolute values, which unsigned operands are already.
    let is_signed = constant(1) - &is_unsigned;
    let negative_x = b.product("select", &is_signed, &sign_x);
    let negative_y = b.product("select", &is_signed, &sign_y);
    let absolute_x = &x + b.product("select", &negative_x, &(constant(modulus) - &x * 2));
    let absolute_y = &y + b.product("select", &negative_y, &(constant(modulus) - &y * 2));
    let quotient = b.commit("Q", |op| Division::of(op).quotient.into());
    let remainder = b.commit("R", |op| Division::of(op).remainder.into());
    b.row("product", &quotient, &absolute_y, &(absolute_x - &remainder));
    // The quotient is bounded below, as the result that it makes.
    b.word_range("product range", &remainder, "Rl", |op| low(Division::of(op).remainder));
    // Two rows make the flag exact: y iv = 1 - zf, and y zf = 0.
    let by_zero = b.commit("zf", |op| (op.y == 0).into());
    let inverse = b.commit_inverse("iv", |op| op.y.into());
    b.row("eq", &y, &inverse, &(constant(1) - &by_zero));
    b.row("eq", &y, &by_zero, &constant(0));
    // R < |y| as a range: without it, a smaller quotient would leave a larger remainder. A divisor of 0
    // leaves any remainder, so 2^32 is added there.
    let slack = absolute_y - constant(1) - &remainder + &by_zero * modulus;
    b.word_range("remainder", &slack, "dl", |op| low(Division::of(op).slack));
    // The signs of the results. The quotient is negative if the operands' signs differ, the remainder as x is.
    let both = b.product("select", &(&negative_x * 2), &negative_y);
    let negative = &negative_x + &negative_y - both;
    let minus = b.product("select", &negative, &quotient);
    // -Q wraps to 2^32 - Q, but -0 is 0: without the bit, 2^32 would have to be a word.
    let quotient_wraps = b.bit("w1", "carry", |op| {
        let division = Division::of(op);
        (division.negative[0] && division.quotient > 0).into()
    });
    let signed_quotient = quotient - minus * 2 + quotient_wraps * modulus;
    b.word_range("z range", &signed_quotient, "ql", |op| low(Division::of(op).signed()[0]));
    let result = b.select(&by_zero, &constant(modulus - 1), &signed_quotient);
    let minus_remainder = b.product("select", &negative_x, &remainder);
    let remainder_wraps = b.bit("w2", "carry", |op| {
        let division = Division::of(op);
        (division.negative[1] && division.remainder > 0).into()
    });
    let rest = remainder - minus_remainder * 2 + remainder_wraps * modulus;
    b.word_range("z range", &rest, "rl", |op| low(Division::of(op).signed()[1]));
    let z = b.select(&is_remainder, &rest, &result);
    step.write(b, &rd, &z);
    let fields = Fields { rs1: Some(rs1), rs2: Some(rs2), rd: Some(rd), imm: None };
    step.fetch(b, Chip::Divide, &(is_unsigned + is_remainder * 2), &fields);
}
