//! Fourier transforms over Fr with blst's butterflies, two elements at a time.

use ark_bls12_381::Fr;
use ark_ff::Field;
use blst::{blst_fr_ct_bfly, blst_fr_gs_bfly, blst_fr_mul};

/// The powers of the root: 32 N bytes.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// The powers w^i, i < N/2.
    twiddles: Vec<Fr>,
    /// The powers w^-i, i < N/2.
    inverse_twiddles: Vec<Fr>,
}

impl Tables {
    /// Takes the powers w^i for i < N/2, or just 1 if N = 1.
    pub(crate) fn new(powers: Vec<Fr>) -> Self {
        // w^-i = -w^(N/2 - i)
        let mut inverse_twiddles: Vec<Fr> = powers.iter().rev().map(|t| -*t).collect();
        inverse_twiddles.rotate_right(1);
        inverse_twiddles[0] = Fr::ONE;
        Self { twiddles: powers, inverse_twiddles }
    }

    /// Turns values in natural order into coefficients times N in bit-reversed order.
    pub(crate) fn to_coefficients(&self, values: &mut [Fr]) {
        dif(values, &self.inverse_twiddles, 1);
    }

    /// Turns coefficients in bit-reversed order, multiplied by the factors if any, into values in
    /// natural order.
    pub(crate) fn to_values(&self, coefficients: &mut [Fr], factors: Option<&[Fr]>) {
        if let Some(factors) = factors {
            coefficients.iter_mut().zip(factors).for_each(|(x, factor)| multiply(x, factor));
        }
        dit(coefficients, &self.twiddles, 1);
    }

    /// Multiplies all values by x.
    pub(crate) fn scale(&self, values: &mut [Fr], x: &Fr) {
        values.iter_mut().for_each(|value| multiply(value, x));
    }
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

/// The butterfly `(a, b) <- (a + t b, a - t b)`.
#[inline]
fn butterfly_dit(a: &mut Fr, b: &mut Fr, t: &Fr) {
    // SAFETY: arkworks' Fr consists of its four Montgomery limbs, as does blst's (sizes asserted in
    // the module root); all three references are valid.
    unsafe {
        blst_fr_ct_bfly((a as *mut Fr).cast(), (b as *mut Fr).cast(), (t as *const Fr).cast())
    }
}

/// The butterfly `(a, b) <- (a + b, t (a - b))`.
#[inline]
fn butterfly_dif(a: &mut Fr, b: &mut Fr, t: &Fr) {
    // SAFETY: the layouts agree as in `butterfly_dit`; all three references are valid.
    unsafe {
        blst_fr_gs_bfly((a as *mut Fr).cast(), (b as *mut Fr).cast(), (t as *const Fr).cast())
    }
}

/// The product `a <- a b` in Fr.
#[inline]
fn multiply(a: &mut Fr, b: &Fr) {
    let a = (a as *mut Fr).cast();
    // SAFETY: the layouts agree as in `butterfly_dit`; blst allows the result to alias an operand.
    unsafe { blst_fr_mul(a, a, (b as *const Fr).cast()) }
}
