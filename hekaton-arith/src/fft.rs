//! Fourier transforms over Fr.
//!
//! The inverse transform is decimation in frequency (natural order in, bit-reversed out), the forward one decimation in
//! time (bit-reversed in, natural out), so the pair that the prover needs, from a domain to a coset of it, has no bit
//! reversal at all: [`Domain::to_coset`]. Both recurse depth first, which keeps the working set in cache.
//!
//! In lanes both use the powers of w: with w for 1/w a transform's results come in the order 0, N - 1, N - 2, .. and are put
//! right by a reversal.

#[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
use crate::{Backend, x86_64_ifma::fft as lanes};
use crate::{Fr, portable, powers};
use ark_ff::{FftField, Field};

/// The domain size is no power of two, or above 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a Fourier domain has a size of 2^0 .. 2^31, not {0}")]
pub struct DomainError(pub usize);

/// The subgroup of order N of the multiplicative group of Fr, and its coset `s <w>` with `s^N = -1`.
///
/// Holds 64 N bytes of tables (72 N in lanes), shared by all transforms.
#[derive(Clone, Debug)]
pub struct Domain {
    size: usize,
    root: Fr,
    shift: Fr,
    tables: Tables,
    /// s^rev(i) / N: what lies between the inverse transform and the coset transform, in bit-reversed order
    coset_factors: Vec<Fr>,
}

#[derive(Clone, Debug)]
enum Tables {
    Portable {
        /// w^i, i < N/2
        twiddles: Vec<Fr>,
        /// w^-i, i < N/2
        inverse_twiddles: Vec<Fr>,
    },
    #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
    Lanes(lanes::Tables),
}

impl Tables {
    fn new(root: Fr, size: usize) -> Self {
        let twiddles = powers(root, (size / 2).max(1));
        #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
        if size >= lanes::LEAST && Backend::current() == Backend::Ifma {
            return Self::Lanes(lanes::Tables::new(&twiddles));
        }
        // w^-i = -w^(N/2 - i)
        let mut inverse_twiddles: Vec<Fr> = twiddles.iter().rev().map(|t| -*t).collect();
        inverse_twiddles.rotate_right(1);
        inverse_twiddles[0] = Fr::ONE;
        Self::Portable { twiddles, inverse_twiddles }
    }

    /// Values in natural order to coefficients times N in bit-reversed order.
    fn to_coefficients(&self, values: &mut [Fr]) {
        match self {
            Self::Portable { inverse_twiddles, .. } => dif(values, inverse_twiddles, 1),
            #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
            Self::Lanes(tables) => {
                values[1..].reverse();
                lanes::dif(values, tables);
            }
        }
    }

    fn scale(&self, values: &mut [Fr], by: &Fr) {
        match self {
            Self::Portable { .. } => values.iter_mut().for_each(|x| portable::fr_mul_assign(x, by)),
            #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
            Self::Lanes(_) => lanes::scale(values, by),
        }
    }

    /// Coefficients in bit-reversed order, times the factors, to values in natural order.
    fn to_values(&self, coefficients: &mut [Fr], factors: Option<&[Fr]>) {
        match self {
            Self::Portable { twiddles, .. } => {
                for (x, f) in coefficients.iter_mut().zip(factors.unwrap_or_default()) {
                    portable::fr_mul_assign(x, f);
                }
                dit(coefficients, twiddles, 1);
            }
            #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
            Self::Lanes(tables) => lanes::dit(coefficients, factors, tables),
        }
    }
}

impl Domain {
    /// The domain of `size` elements; a power of two, at most 2^31 (the coset needs a root of order 2 N).
    pub fn new(size: usize) -> Result<Self, DomainError> {
        if !size.is_power_of_two() || size > 1 << 31 {
            return Err(DomainError(size));
        }
        let double = Fr::get_root_of_unity(2 * size as u64).ok_or(DomainError(size))?;
        let root = double.square();
        let scale = Fr::from(size as u64).inverse().unwrap_or(Fr::ONE);
        let mut coset_factors = powers(double, size);
        coset_factors.iter_mut().for_each(|x| *x *= scale);
        bit_reverse(&mut coset_factors);
        Ok(Self { size, root, shift: double, tables: Tables::new(root, size), coset_factors })
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
        self.tables.to_values(values, None);
    }

    /// Values on the domain to coefficients.
    pub fn ifft(&self, values: &mut [Fr]) {
        self.check(values);
        self.tables.to_coefficients(values);
        bit_reverse(values);
        self.tables.scale(values, &self.coset_factors[0]); // s^0 / N
    }

    /// Coefficients to values on the coset `s <w>`.
    pub fn coset_fft(&self, values: &mut [Fr]) {
        self.check(values);
        bit_reverse(values);
        self.tables.scale(values, &Fr::from(self.size as u64));
        self.tables.to_values(values, Some(&self.coset_factors));
    }

    /// Values on the domain to values on the coset, of the same polynomial of degree below N.
    pub fn to_coset(&self, values: &mut [Fr]) {
        self.check(values);
        self.tables.to_coefficients(values);
        self.tables.to_values(values, Some(&self.coset_factors));
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
