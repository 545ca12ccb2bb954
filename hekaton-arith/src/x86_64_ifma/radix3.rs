//! The layer of radix 3 of transforms over 3 M elements ([`crate::fft`]), in the form of
//! [`super::fft`].
//!
//! A butterfly over `a, b, c` with the cube root of unity v takes one product in addition to the
//! two twiddles, since `v^2 = -1 - v`: its results are `a + b + c`, `a - c + v (b - c)` and `a - b -
//! v (b - c)`. Together these are as many products per element as two layers of radix 2. Two
//! butterflies are computed at once, so that all products come in pairs.
//!
//! # Bounds
//! Elements are below p and blocks below 2 p. Differences that become factors are below 5 p, and
//! products with a root of unity below (1 + 2^-20 + 5 p / R) p < 1.2 p. Sums that are settled are
//! below 2 p + 4 p + 1.2 p, less than 8 p.

use super::blocks::{
    Block, Twiddles, difference, load, load_elements, store, store_elements, sum, times_r,
};
use super::field::Fr;
use super::product::products_limbs;

/// The powers of the root for the layer of radix 3.
#[derive(Clone, Debug)]
pub(super) struct Radix3 {
    /// The powers w^i and w^(2 i) for i < M: both twiddles of eight consecutive butterflies.
    twiddles: Vec<[Twiddles; 2]>,
    /// The cube root of unity w^M.
    cube_root: [u64; 5],
}

impl Radix3 {
    /// Takes the powers w^i for i < 2 M.
    pub(super) fn new(powers: &[ark_bls12_381::Fr]) -> Self {
        let third = powers.len() / 2;
        let twiddles = (0..third / 8)
            .map(|v| [1, 2].map(|r| Twiddles::new(|lane| &powers[r * (8 * v + lane)])))
            .collect();
        Self { twiddles, cube_root: times_r(&powers[third]) }
    }
}

lanes! {
    /// Decimation in frequency: elements in natural order to the inputs of three transforms.
    pub(super) fn dif_layer(blocks: &mut [Block], layer: &Radix3) {
        let (third, cube_root) = (blocks.len() / 3, Fr::splat(&layer.cube_root));
        for i in (0..third).step_by(2) {
            let mut inputs = [[Fr::zero(); 3]; 2];
            let mut differences = [Fr::zero(); 2];
            for k in 0..2 {
                for t in 0..3 {
                    inputs[k][t] = load_elements(&blocks[i + k + t * third]);
                }
                differences[k] = inputs[k][1].sub::<0>(&inputs[k][2]);
            }
            let products =
                products_limbs([&differences[0], &differences[1]], [&cube_root, &cube_root]);
            for k in 0..2 {
                let ([a, b, c], m, at) = (&inputs[k], &products[k], i + k);
                let first = Fr::propagate(difference::<0>(&sum(&a.0, m), &c.0));
                let second = Fr::propagate(difference::<2>(&a.0, &sum(&b.0, m)));
                let [w, w2] = &layer.twiddles[at];
                let [y1, y2] = products_limbs([&first, &second], [&w.load(), &w2.load()]);
                store(&Fr::settled(sum(&sum(&a.0, &b.0), &c.0)), &mut blocks[at]);
                store(&Fr::propagate(y1), &mut blocks[at + third]);
                store(&Fr::propagate(y2), &mut blocks[at + 2 * third]);
            }
        }
    }

    /// Decimation in time: the results of three transforms to elements in natural order.
    pub(super) fn dit_layer(blocks: &mut [Block], layer: &Radix3) {
        let (third, cube_root) = (blocks.len() / 3, Fr::splat(&layer.cube_root));
        for i in (0..third).step_by(2) {
            let mut twiddled = [[Fr::zero().0; 2]; 2];
            let mut differences = [Fr::zero(); 2];
            for k in 0..2 {
                let (at, [w, w2]) = (i + k, &layer.twiddles[i + k]);
                let (b, c) = (load(&blocks[at + third]), load(&blocks[at + 2 * third]));
                twiddled[k] = products_limbs([&b, &c], [&w.load(), &w2.load()]);
                differences[k] = Fr::propagate(difference::<1>(&twiddled[k][0], &twiddled[k][1]));
            }
            let products =
                products_limbs([&differences[0], &differences[1]], [&cube_root, &cube_root]);
            for k in 0..2 {
                let ([b, c], m, at) = (&twiddled[k], &products[k], i + k);
                let a = load(&blocks[at]).0;
                store_elements(&Fr::settled(sum(&sum(&a, b), c)), &mut blocks[at]);
                store_elements(&Fr::settled(difference::<1>(&sum(&a, m), c)), &mut blocks[at + third]);
                store_elements(&Fr::settled(difference::<2>(&a, &sum(b, m))), &mut blocks[at + 2 * third]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::tests::{below_p, from_blocks, number, to_blocks};
    use super::*;
    use crate::powers;
    use ark_ff::FftField;

    /// Blocks hold numbers up to 2 p, which the layer must treat as their residues modulo p.
    #[test]
    fn a_layer_at_the_bounds() {
        if !super::super::available() {
            return;
        }
        let mut state = 11;
        let third = 64;
        let root = ark_bls12_381::Fr::get_root_of_unity(3 * third as u64).unwrap();
        let layer = Radix3::new(&powers(root, 2 * third));
        for _ in 0..200 {
            let numbers: Vec<_> = (0..3 * third).map(|_| number(&mut state)).collect();
            let reduced: Vec<_> = numbers.iter().map(|x| below_p(*x)).collect();
            let [a, b] = [&numbers, &reduced].map(|x| {
                let mut blocks = to_blocks(x);
                // SAFETY: the features are available (checked above).
                unsafe { dit_layer(&mut blocks, &layer) };
                from_blocks(&blocks)
            });
            assert_eq!(a, b);
        }
    }
}
