//! The layer of radix 3 of transforms over 3 M elements ([`crate::fft`]), made of blst's butterflies
//! of radix 2.
//!
//! With the cube root of unity v, the transform of `a, b, c` is `a + b + c` and `u + d` and `u - d`,
//! where `u = a - (b + c)/2` and `d = (2 v + 1) (b - c)/2`. Halves are in the twiddles: besides
//! these, a butterfly takes one product, as many in all as two layers of radix 2 per element.

use super::butterflies::{add, butterfly_dif, butterfly_dit, multiply, subtract};
use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, Field};

/// The powers of the root for the layer of radix 3.
#[derive(Clone, Debug)]
pub(super) struct Radix3 {
    /// The powers w^i/2, i < 2 M.
    twiddles: Vec<Fr>,
    /// The number 2 v + 1, where v = w^M is a cube root of unity: a square root of -3.
    root_of_minus_3: Fr,
}

impl Radix3 {
    /// Takes the powers w^i for i < 2 M.
    pub(super) fn new(powers: Vec<Fr>) -> Self {
        let root_of_minus_3 = powers[powers.len() / 2].double() + Fr::ONE;
        let half = Fr::from(2u64).inverse().expect("2 is not zero modulo an odd prime");
        let mut twiddles = powers;
        twiddles.iter_mut().for_each(|x| *x *= half);
        Self { twiddles, root_of_minus_3 }
    }

    /// Decimation in frequency with 1/w: splits values in natural order into three parts of M, for
    /// the coefficients of each residue of the index modulo 3.
    pub(super) fn dif(&self, values: &mut [Fr]) {
        let third = values.len() / 3;
        let (low, rest) = values.split_at_mut(third);
        let (middle, high) = rest.split_at_mut(third);
        // The powers of w serve for those of 1/w, which reverses the values, all but the first: the
        // inputs with the twiddles for M - i are the values at i + 2 M, i + M and i, and those with
        // the twiddles for 0 the values at 0, 2 M and M.
        self.butterfly_dif(&mut low[0], &mut high[0], &mut middle[0], 0);
        std::mem::swap(&mut middle[0], &mut high[0]);
        let columns = low.iter_mut().zip(middle).zip(high).enumerate().skip(1);
        for (i, ((a, b), c)) in columns {
            self.butterfly_dif(c, b, a, third - i);
            std::mem::swap(a, c);
        }
    }

    /// Decimation in time: joins the values of the three parts.
    pub(super) fn dit(&self, values: &mut [Fr]) {
        let third = values.len() / 3;
        let (low, rest) = values.split_at_mut(third);
        let (middle, high) = rest.split_at_mut(third);
        let twiddles = self.twiddles.iter().zip(self.twiddles.iter().step_by(2));
        for (((a, b), c), (w, w2)) in low.iter_mut().zip(middle).zip(high).zip(twiddles) {
            multiply(b, w);
            butterfly_dit(b, c, w2);
            let mut u = *a;
            subtract(&mut u, b);
            add(a, b);
            add(a, b);
            butterfly_dit(&mut u, c, &self.root_of_minus_3);
            *b = u;
        }
    }

    /// The transform of three values, and the twiddles for index i.
    #[inline]
    fn butterfly_dif(&self, a: &mut Fr, b: &mut Fr, c: &mut Fr, i: usize) {
        butterfly_dif(b, c, &self.root_of_minus_3);
        let mut u = *a;
        subtract(&mut u, b);
        add(&mut u, a);
        add(a, b);
        *b = u;
        butterfly_dif(b, c, &self.twiddles[2 * i]);
        multiply(b, &self.twiddles[i]);
    }
}
