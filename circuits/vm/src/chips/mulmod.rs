//! Calls for a b + c mod m: products of polynomials whose coefficients are limbs, by their values at points
//! (spec: machine#precompiles).

use super::calls::call;
use crate::form::{Form, constant};
use crate::isa::Chip;
use crate::mulmod::{CARRY_BITS, Numbers, values};
use crate::op::low;
use crate::precompile::Call;
use crate::template::{Builder, OfAccesses};
use crate::word::{number, power};

/// The call on numbers of 256 bits.
pub(super) fn bits_256(b: &mut Builder, chip: Chip, of: Call) {
    multiply(b, chip, of, Numbers::BITS_256, |accesses| values(Numbers::BITS_256, accesses));
}

/// The call on numbers of 384 bits.
pub(super) fn bits_384(b: &mut Builder, chip: Chip, of: Call) {
    multiply(b, chip, of, Numbers::BITS_384, |accesses| values(Numbers::BITS_384, accesses));
}

fn multiply(b: &mut Builder, chip: Chip, of: Call, numbers: Numbers, values: OfAccesses) {
    b.compute(values);
    call(b, chip, of);
    let [given, made] = b.words();
    let operand = |which: usize| &given[which * numbers.words..][..numbers.words];
    remainder(b, numbers, [1, 2, 3, 4].map(operand), &made);
}

/// r = a b + c mod m, as a b + c = q m + r with r < m.
pub(crate) fn remainder(b: &mut Builder, numbers: Numbers, operands: [&[Form]; 4], r: &[Form]) {
    let (word, half) = (b.word().0, b.word().limb());
    // Everything that computes with words takes them for words.
    for (number, value) in r.iter().enumerate() {
        let low = b.commit_access("rl", number, |access| low(access.after));
        b.range("result", half, &low);
        let high = b.rest(value, &low, half);
        b.range("result", half, &high);
    }
    let q: Vec<Form> = (0..2 * numbers.words).map(|_| b.computed("q")).collect();
    for part in &q {
        b.range("quotient", half, part);
    }
    let carries: Vec<Form> = (0..numbers.carries()).map(|place| carry(b, numbers, place)).collect();
    let [a, y, c, m] = operands.map(|words| limbs(words, word, numbers.limb));
    let (q, r_limbs) = (limbs(&q, half, 2 * numbers.limb), limbs(r, word, numbers.limb));
    // a b + c - q m - r = (X - x) k for polynomials in x: 2n - 1 coefficients, which as many points determine.
    // At the size X of a limb, both sides are zero, over the integers, since carries are integers and everything is
    // far below the order of the field.
    #[allow(clippy::cast_possible_truncation, reason = "limbs have 64 bits")]
    let size = power(word * numbers.limb as u32);
    for point in points(2 * numbers.limbs() - 1) {
        let at = |coefficients: &[Form]| value_at(coefficients, point);
        let product = b.product("product", &at(&a), &at(&y));
        let carried = at(&carries) * (size - number(point));
        b.row("remainder", &at(&q), &at(&m), &(product + at(&c) - at(&r_limbs) - carried));
    }
    less(b, r, operands[3]);
}

/// A carry. One with a range is from -2^n to 2^n - 1, with a few bits more than it needs.
fn carry(b: &mut Builder, numbers: Numbers, place: usize) -> Form {
    if !Numbers::has_range(place) {
        return b.computed("carry");
    }
    let half = b.word().limb();
    let mut parts = Vec::new();
    for _ in 0..numbers.carry_halves() {
        let part = b.computed("digit");
        b.range("carry", half, &part);
        parts.push(part);
    }
    let top = b.computed("digit");
    b.range("carry", CARRY_BITS, &top);
    // Times the enable bit, so that all that fills up is zero.
    parts.push(top - b.enable() * (1 << (CARRY_BITS - 1)));
    joined(&parts, half)
}

/// r < m, by m - 1 - r in two halves, with what the lower one borrows from the upper one: the whole would not fit the field.
fn less(b: &mut Builder, r: &[Form], m: &[Form]) {
    let (word, half) = (b.word().0, b.word().limb());
    let middle = r.len() / 2;
    // Nearly as large as a half, it would wrap the lower half around the order of the field, which 2^256 exceeds.
    let borrow = b.computed("borrow");
    b.row("borrow", &borrow, &(constant(1) - &borrow), &constant(0));
    #[allow(clippy::cast_possible_truncation, reason = "a number has at most 12 words")]
    let bits = word * middle as u32;
    let difference =
        |range: std::ops::Range<usize>| joined(&m[range.clone()], word) - joined(&r[range], word);
    let lower = difference(0..middle) - constant(1) + &borrow * power(bits);
    let upper = difference(middle..r.len()) - &borrow;
    for slack in [lower, upper] {
        let parts: Vec<Form> = (1..2 * middle).map(|_| b.computed("d")).collect();
        for part in &parts {
            b.range("less", half, part);
        }
        let last = b.rest(&slack, &joined(&parts, half), bits - half);
        b.range("less", half, &last);
    }
}

/// Digits of some bits, the lowest one first, as one number.
fn joined(digits: &[Form], bits: u32) -> Form {
    let upwards = digits.iter().rev();
    upwards.fold(constant(0), |above, digit| above * power(bits) + digit)
}

/// The limbs of a number, each of `count` digits.
fn limbs(digits: &[Form], bits: u32, count: usize) -> Vec<Form> {
    digits.chunks(count).map(|digits| joined(digits, bits)).collect()
}

/// The value of a polynomial at a point, the lowest coefficient first.
fn value_at(coefficients: &[Form], point: i128) -> Form {
    coefficients.iter().rev().fold(constant(0), |above, coefficient| above * point + coefficient)
}

/// 0, 1, -1, 2, -2 and so on.
fn points(count: usize) -> impl Iterator<Item = i128> {
    (0..).flat_map(|n: i128| [n, -n]).skip(1).take(count)
}
