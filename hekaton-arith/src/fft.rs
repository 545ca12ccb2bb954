//! Fourier transforms over Fr.
//!
//! The inverse transform is decimation in frequency (natural order in, bit-reversed out), the forward one decimation in
//! time (bit-reversed in, natural out), so the pair that the prover needs, from a domain to a coset of it, has no bit
//! reversal at all: [`Domain::to_coset`]. Both recurse depth first, which keeps the working set in cache.

use crate::{Fr, portable, powers};
use ark_ff::{FftField, Field};

/// The domain size is no power of two, or above 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a Fourier domain has a size of 2^0 .. 2^31, not {0}")]
pub struct DomainError(pub usize);

/// The subgroup of order N of the multiplicative group of Fr, and its coset `s <w>` with `s^N = -1`.
///
/// Holds 64 N bytes of tables, shared by all transforms.
#[derive(Clone, Debug)]
pub struct Domain {
    size: usize,
    root: Fr,
    shift: Fr,
    /// w^i, i < N/2
    twiddles: Vec<Fr>,
    /// w^-i, i < N/2
    inverse_twiddles: Vec<Fr>,
    /// s^rev(i) / N: what lies between the inverse transform and the coset transform, in bit-reversed order
    coset_factors: Vec<Fr>,
}

impl Domain {
    /// The domain of `size` elements; a power of two, at most 2^31 (the coset needs a root of order 2 N).
    pub fn new(size: usize) -> Result<Self, DomainError> {
        if !size.is_power_of_two() || size > 1 << 31 {
            return Err(DomainError(size));
        }
        let double = Fr::get_root_of_unity(2 * size as u64).ok_or(DomainError(size))?;
        let root = double.square();
        let twiddles = powers(root, (size / 2).max(1));
        // w^-i = -w^(N/2 - i)
        let mut inverse_twiddles: Vec<Fr> = twiddles.iter().rev().map(|t| -*t).collect();
        inverse_twiddles.rotate_right(1);
        inverse_twiddles[0] = Fr::ONE;
        let scale = Fr::from(size as u64).inverse().unwrap_or(Fr::ONE);
        let mut coset_factors = powers(double, size);
        coset_factors.iter_mut().for_each(|x| *x *= scale);
        bit_reverse(&mut coset_factors);
        Ok(Self { size, root, shift: double, twiddles, inverse_twiddles, coset_factors })
    }

    /// N.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The generator w of the domain.
    pub fn root(&self) -> Fr {
        self.root
    }

    /// The coset's shift s, a square root of w, with s^N = -1.
    pub fn shift(&self) -> Fr {
        self.shift
    }

    /// Coefficients to values on the domain, natural order both.
    ///
    /// # Panics
    /// Here and below: when the length is not N.
    pub fn fft(&self, values: &mut [Fr]) {
        self.check(values);
        bit_reverse(values);
        dit(values, &self.twiddles, 1);
    }

    /// Values on the domain to coefficients.
    pub fn ifft(&self, values: &mut [Fr]) {
        self.check(values);
        dif(values, &self.inverse_twiddles, 1);
        bit_reverse(values);
        let scale = self.coset_factors[0]; // s^0 / N
        values.iter_mut().for_each(|x| portable::fr_mul_assign(x, &scale));
    }

    /// Coefficients to values on the coset `s <w>`.
    pub fn coset_fft(&self, values: &mut [Fr]) {
        self.check(values);
        let n = Fr::from(self.size as u64);
        bit_reverse(values);
        for (x, f) in values.iter_mut().zip(&self.coset_factors) {
            portable::fr_mul_assign(x, f);
            portable::fr_mul_assign(x, &n);
        }
        dit(values, &self.twiddles, 1);
    }

    /// Values on the domain to values on the coset, of the same polynomial of degree below N.
    pub fn to_coset(&self, values: &mut [Fr]) {
        self.check(values);
        dif(values, &self.inverse_twiddles, 1);
        for (x, f) in values.iter_mut().zip(&self.coset_factors) {
            portable::fr_mul_assign(x, f);
        }
        dit(values, &self.twiddles, 1);
    }

    fn check(&self, values: &[Fr]) {
        assert_eq!(values.len(), self.size, "a transform of a vector whose length is not the domain size");
    }
}

/// Decimation in frequency: natural order in, bit-reversed out. `twiddles[stride * i]` is the i-th power of the root.
fn dif(values: &mut [Fr], twiddles: &[Fr], stride: usize) {
    let n = values.len();
    if n < 2 {
        return;
    }
    let (low, high) = values.split_at_mut(n / 2);
    for ((a, b), t) in low.iter_mut().zip(high.iter_mut()).zip(twiddles.iter().step_by(stride)) {
        portable::butterfly_dif(a, b, t);
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
        portable::butterfly_dit(a, b, t);
    }
}

fn bit_reverse(values: &mut [Fr]) {
    let bits = values.len().trailing_zeros();
    if bits == 0 {
        return;
    }
    for i in 0..values.len() {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            values.swap(i, j);
        }
    }
}
