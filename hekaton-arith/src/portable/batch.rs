//! Batched affine additions: six products an addition instead of eleven, one inversion a batch.

use super::{Curve, fields::Field, neg};
use crate::NEGATIVE;

/// Additions that share one inversion.
const BATCH: usize = 512;

/// The point at an index whose top bit stands for its negative.
#[inline]
pub(crate) fn signed<C: Curve + PartialEq>(src: &[C], index: u32) -> C {
    let point = &src[(index & !NEGATIVE) as usize];
    if index & NEGATIVE == 0 { *point } else { neg(point) }
}

/// `out_i = src[a_i] + src[b_i]` for each pair of indices, whose top bit stands for a negative; complete (equal points,
/// opposite points, infinity).
pub(crate) fn add_pairs<C: Curve + PartialEq>(src: &[C], pairs: &[[u32; 2]], out: &mut [C]) {
    assert_eq!(pairs.len(), out.len(), "as many sums as pairs");
    let mut denominators = [C::Coordinate::ZERO; BATCH];
    let mut prefix = [C::Coordinate::ZERO; BATCH];
    for (pairs, out) in pairs.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        let mut product = C::Coordinate::one();
        for (i, [a, b]) in pairs.iter().enumerate() {
            let denominator = slope_denominator(&signed(src, *a), &signed(src, *b));
            denominators[i] = denominator;
            prefix[i] = product;
            if denominator != C::Coordinate::ZERO {
                product = product.mul(&denominator);
            }
        }
        let mut inverse = product.invert();
        for (i, ([a, b], out)) in pairs.iter().zip(out).enumerate().rev() {
            let (a, b, denominator) = (signed(src, *a), signed(src, *b), denominators[i]);
            *out = if denominator == C::Coordinate::ZERO {
                add_without_slope(&a, &b)
            } else {
                let reciprocal = inverse.mul(&prefix[i]);
                inverse = inverse.mul(&denominator);
                add_with_slope(&a, &b, &reciprocal)
            };
        }
    }
}

/// Replaces each element by `scale` times its inverse, with one inversion; none may be zero.
pub(crate) fn invert_each<F: Field>(values: &mut [F], scale: &F) {
    let mut before = Vec::with_capacity(values.len());
    let mut product = F::one();
    for value in values.iter() {
        before.push(product);
        product = product.mul(value);
    }
    let mut inverse = product.invert().mul(scale);
    for (value, before) in values.iter_mut().zip(&before).rev() {
        let next = inverse.mul(value);
        *value = inverse.mul(before);
        inverse = next;
    }
}

/// `x_b - x_a`, or `2 y` for a doubling, or zero when the sum is a or b or infinity.
fn slope_denominator<C: Curve + PartialEq>(a: &C, b: &C) -> C::Coordinate {
    if *a == C::ZERO || *b == C::ZERO {
        return C::Coordinate::ZERO;
    }
    let ((xa, ya), (xb, yb)) = (a.coordinates(), b.coordinates());
    if xa != xb {
        xb.sub(&xa)
    } else if ya == yb {
        ya.add(&ya)
    } else {
        C::Coordinate::ZERO
    }
}

fn add_without_slope<C: Curve + PartialEq>(a: &C, b: &C) -> C {
    if *a == C::ZERO {
        *b
    } else if *b == C::ZERO {
        *a
    } else {
        C::ZERO // opposite points
    }
}

fn add_with_slope<C: Curve>(a: &C, b: &C, reciprocal: &C::Coordinate) -> C {
    let ((xa, ya), (xb, yb)) = (a.coordinates(), b.coordinates());
    let numerator = if xa == xb {
        let square = xa.square();
        square.add(&square).add(&square)
    } else {
        yb.sub(&ya)
    };
    let slope = numerator.mul(reciprocal);
    let x = slope.square().sub(&xa).sub(&xb);
    let y = slope.mul(&xa.sub(&x)).sub(&ya);
    C::from_coordinates(x, y)
}
