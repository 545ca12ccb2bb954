//! Fourier transforms over Fr with blst's butterflies, two elements at a time.

use super::butterflies::{butterfly_dif, butterfly_dit, multiply};
use super::radix3::Radix3;
use ark_bls12_381::Fr;
use ark_ff::Field;

/// The powers of the roots: 32 N bytes. M is N, or N/3 with a layer of radix 3.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// The powers of the root of order M, i < M/2.
    twiddles: Vec<Fr>,
    /// The powers of its inverse, i < M/2.
    inverse_twiddles: Vec<Fr>,
    radix3: Option<Radix3>,
}

impl Tables {
    /// Takes the powers of the root of order M for i < M/2, or just 1 if M = 1, and for a domain of
    /// 3 M elements those of its root for i < 2 M.
    pub(crate) fn new(powers: Vec<Fr>, radix3: Option<Vec<Fr>>) -> Self {
        // w^-i = -w^(M/2 - i)
        let mut inverse_twiddles: Vec<Fr> = powers.iter().rev().map(|t| -*t).collect();
        inverse_twiddles.rotate_right(1);
        inverse_twiddles[0] = Fr::ONE;
        Self { twiddles: powers, inverse_twiddles, radix3: radix3.map(Radix3::new) }
    }

    /// Turns values in natural order into coefficients times N in the order of [`crate::fft`].
    pub(crate) fn to_coefficients(&self, values: &mut [Fr]) {
        let Some(radix3) = &self.radix3 else { return dif(values, &self.inverse_twiddles, 1) };
        radix3.dif(values);
        for part in thirds(values) {
            dif(part, &self.inverse_twiddles, 1);
        }
    }

    /// Turns coefficients in the order of [`crate::fft`], multiplied by the factors if any, into
    /// values in natural order.
    pub(crate) fn to_values(&self, coefficients: &mut [Fr], factors: Option<&[Fr]>) {
        if let Some(factors) = factors {
            coefficients.iter_mut().zip(factors).for_each(|(x, factor)| multiply(x, factor));
        }
        let Some(radix3) = &self.radix3 else { return dit(coefficients, &self.twiddles, 1) };
        for part in thirds(coefficients) {
            dit(part, &self.twiddles, 1);
        }
        radix3.dit(coefficients);
    }

    /// Multiplies all values by x.
    pub(crate) fn scale(&self, values: &mut [Fr], x: &Fr) {
        values.iter_mut().for_each(|value| multiply(value, x));
    }
}

fn thirds(values: &mut [Fr]) -> impl Iterator<Item = &mut [Fr]> {
    let third = values.len() / 3;
    values.chunks_exact_mut(third)
}

/// Decimation in frequency: natural order in, bit-reversed out. `twiddles[stride * i]` is the i-th
/// power of the root.
fn dif(values: &mut [Fr], twiddles: &[Fr], stride: usize) {
    let n = values.len();
    if n < 2 {
        return;
    }
    let (low, high) = values.split_at_mut(n / 2);
    for ((a, b), t) in low.iter_mut().zip(high.iter_mut()).zip(twiddles.iter().step_by(stride)) {
        butterfly_dif(a, b, t);
    }
    dif(low, twiddles, 2 * stride);
    dif(high, twiddles, 2 * stride);
}

/// Decimation in time: bit-reversed in, natural order out.
fn dit(values: &mut [Fr], twiddles: &[Fr], stride: usize) {
    let n = values.len();
    if n < 2 {
        return;
    }
    let (low, high) = values.split_at_mut(n / 2);
    dit(low, twiddles, 2 * stride);
    dit(high, twiddles, 2 * stride);
    for ((a, b), t) in low.iter_mut().zip(high.iter_mut()).zip(twiddles.iter().step_by(stride)) {
        butterfly_dit(a, b, t);
    }
}
