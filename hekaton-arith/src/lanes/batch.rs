//! Batched affine additions, eight pairs of points at a time.
//!
//! # Operations
//! An addition takes a subtraction of x, two multiplications for the running product and its way
//! back, one for the reciprocal, one for the slope, and a square and a multiplication for the
//! result. With AVX-512 IFMA that is 1,486 multiply-adds for eight additions in G1 and 3,724 in G2;
//! a doubling takes one multiplication more. Up to [`Point::BATCH`] additions share one field
//! inversion. The backward pass takes its part of the second point's x from the stored
//! difference.
//!
//! # Forms
//! Coordinates are words `x 2^384` as they are in memory, read as limbs without a shift. With R =
//! 2^416, a product of such numbers divides by R each time, so the running products are correct up
//! to powers of two, which cancel: with P_0 = 1, `P_i = P_(i-1) d_i / R` and I_n = k / P_n, the
//! backward pass computes `I_i P_(i-1) / R = k / d_i` and `I_(i-1) = I_i d_i / R`. With k = 2^816
//! the slope is `s 2^400`, so its square is `s^2 2^384`, a coordinate again; shifted by 16 bits it
//! is `s R`, so its product with a coordinate is a coordinate.
//!
//! # Bounds
//! Coordinates are below p, negated ones at most p, differences d = `b - a + p` at most 2 p, and
//! the rise of y at most 4 p. Products are of numbers below 4 p, times a slope of up to 2^18 p:
//! results are below 1.3 p, and in Fq2, where the first coordinate of a product is lifted by p,
//! below 2.3 p. For x3, `s^2 - 2 a - d + 5 p` is between p and 6.3 p (7.3 p for a tangent, where d
//! is 0), and for y3, `m -+ y + 2 p` is between p and 5.3 p: both within the range p .. 8 p that a
//! reduction below p accepts. For a tangent, x 2^16 is squared: it is below 2^16 p, and sums in Fq2
//! are below 2^17 p, so the parts of the wide product are within 2^33 p^2 of zero, less than p R =
//! 2^35.3 p^2; the result, below 3 p, is reduced at once.

use super::field::Fq;
use super::pairs::Point;
use super::tuning::FEW_ADDITIONS;
use crate::portable;
use std::cell::RefCell;

thread_local! {
    /// The elements that the forward pass leaves for the backward pass: [`Point::SCRATCH`] of them.
    static SCRATCH: RefCell<Vec<Fq>> = const { RefCell::new(Vec::new()) };
}

/// Computes `out_i = src[a_i] + src[b_i]` for each pair of indices; an index with its top bit set
/// selects a negative. The addition is complete (equal points, opposite points, infinity).
pub(crate) fn add_pairs<P: Point>(src: &[P], pairs: &[[u32; 2]], out: &mut [P]) {
    assert_eq!(pairs.len(), out.len(), "one sum per pair");
    SCRATCH.with_borrow_mut(|scratch| {
        let elements = P::SCRATCH;
        if scratch.len() < elements {
            scratch.resize(elements, Fq::zero());
        }
        let mut rest = pairs;
        for out in out.chunks_mut(P::BATCH) {
            if out.len() < FEW_ADDITIONS {
                portable::add_pairs(src, rest, out);
            } else {
                // SAFETY: the dispatcher calls this backend only where its features are available.
                unsafe { P::add_batch(src, rest, out, scratch) };
            }
            rest = &rest[out.len()..];
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::NEGATIVE;
    use crate::{Fr, G1Point, G2Point, Group};

    /// Tests every kind of pair at every position of a vector, in batches of all lengths up to five
    /// vectors, even those that are too short for lanes in production.
    fn agrees<P: Point + Group>(others: &[P]) {
        if !super::super::available() {
            return;
        }
        let mut points = vec![P::IDENTITY];
        points.extend((1..6u64).map(|x| P::generator().mul(&Fr::from(x))));
        points.extend(others);
        let n = u32::try_from(points.len()).expect("a few points");
        let signed = |i: u32| [i, i | NEGATIVE];
        let every: Vec<[u32; 2]> = (0..n)
            .flat_map(signed)
            .flat_map(|a| (0..n).flat_map(signed).map(move |b| [a, b]))
            .collect();
        // Vectors of doublings alone have a path of their own.
        let doublings: Vec<[u32; 2]> = (0..n).map(|a| [a, a]).collect();
        let starts = (0..every.len()).step_by(29).map(|start| (&every, start));
        let starts = starts.chain((0..doublings.len()).map(|start| (&doublings, start)));
        for (list, start) in starts {
            for length in 1..=40 {
                let pairs: Vec<[u32; 2]> =
                    list.iter().cycle().skip(start).take(length).copied().collect();
                let more = [&pairs[..], &every[..start % 24]].concat();
                let (mut got, mut expected) =
                    (vec![P::IDENTITY; length], vec![P::IDENTITY; length]);
                let mut scratch = vec![Fq::zero(); P::SCRATCH];
                // SAFETY: the features are available (checked above).
                unsafe { P::add_batch(&points, &more, &mut got, &mut scratch) };
                portable::add_pairs(&points, &pairs, &mut expected);
                assert_eq!(got, expected, "{length} pairs from {start} on");
            }
        }
    }

    #[test]
    fn batches_of_g1_agree_with_the_portable_ones() {
        // (0, 2) has order 3: its tangent meets the curve at x = 0, which the formula returns as 4
        // p
        agrees(&[G1Point { x: [0; 6], y: ark_bls12_381::Fq::from(2u64).0.0 }]);
    }

    #[test]
    fn batches_of_g2_agree_with_the_portable_ones() {
        agrees::<G2Point>(&[]);
    }
}
