//! Batched affine additions: six products an addition instead of eleven, one inversion a batch.

use super::{Curve, fields::Field};

/// Additions that share one inversion.
const BATCH: usize = 1024;

/// `a_i += b_i`; complete (equal points, opposite points, infinity).
pub(crate) fn batch_add<C: Curve + PartialEq>(a: &mut [C], b: &[C]) {
    assert_eq!(a.len(), b.len(), "batch addition of vectors of different length");
    let mut denominators = [C::Coordinate::ZERO; BATCH];
    let mut prefix = [C::Coordinate::ZERO; BATCH];
    for (a, b) in a.chunks_mut(BATCH).zip(b.chunks(BATCH)) {
        let n = a.len();
        let mut product = C::Coordinate::one();
        for i in 0..n {
            let denominator = slope_denominator(&a[i], &b[i]);
            denominators[i] = denominator;
            prefix[i] = product;
            if denominator != C::Coordinate::ZERO {
                product = product.mul(&denominator);
            }
        }
        let mut inverse = product.invert();
        for i in (0..n).rev() {
            let denominator = denominators[i];
            if denominator == C::Coordinate::ZERO {
                a[i] = add_without_slope(&a[i], &b[i]);
            } else {
                let reciprocal = inverse.mul(&prefix[i]);
                inverse = inverse.mul(&denominator);
                a[i] = add_with_slope(&a[i], &b[i], &reciprocal);
            }
        }
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
