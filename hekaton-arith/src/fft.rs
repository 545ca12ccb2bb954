//! Fourier transforms over Fr.
//!
//! The inverse transform is decimation in frequency (natural order in, bit-reversed out), the forward one decimation in
//! time (bit-reversed in, natural out), so the pair that the prover needs, from a domain to a coset of it, has no bit
//! reversal at all: [`Domain::to_coset`]. Both recurse depth first, which keeps the working set in cache.

#[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
use crate::{Backend, x86_64_ifma};
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

/// log2 of the side of a tile in [`bit_reverse`]; wider ones meet in the same sets of the cache.
const TILE_BITS: u32 = 3;

/// What coefficients are multiplied with before a transform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors<'f> {
    pub(crate) each: &'f [Fr],
    /// and all of them
    pub(crate) all: Option<Fr>,
}

/// A backend's tables.
#[derive(Clone, Debug)]
enum Tables {
    Portable(portable::fft::Tables),
    #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
    Lanes(x86_64_ifma::fft::Tables),
}

/// Calls a function of the backend's tables.
macro_rules! with {
    ($tables:expr, $($call:tt)*) => {
        match &$tables {
            Tables::Portable(tables) => tables.$($call)*,
            #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
            Tables::Lanes(tables) => tables.$($call)*,
        }
    };
}

impl Tables {
    fn new(root: Fr, size: usize) -> Self {
        let twiddles = powers(root, (size / 2).max(1));
        #[cfg(any(target_arch = "x86_64", hekaton_plain_lanes, miri))]
        if size >= x86_64_ifma::fft::LEAST && Backend::current() == Backend::Ifma {
            return Self::Lanes(x86_64_ifma::fft::Tables::new(&twiddles));
        }
        Self::Portable(portable::fft::Tables::new(twiddles))
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
        with!(self.tables, to_values(values, None));
    }

    /// Values on the domain to coefficients.
    pub fn ifft(&self, values: &mut [Fr]) {
        self.check(values);
        with!(self.tables, to_coefficients(values));
        bit_reverse(values);
        with!(self.tables, scale(values, &self.coset_factors[0])); // s^0 / N
    }

    /// Coefficients to values on the coset `s <w>`.
    pub fn coset_fft(&self, values: &mut [Fr]) {
        self.check(values);
        bit_reverse(values);
        // the factors have 1 / N in them
        let factors = Factors { each: &self.coset_factors, all: Some(Fr::from(self.size as u64)) };
        with!(self.tables, to_values(values, Some(factors)));
    }

    /// Values on the domain to values on the coset, of the same polynomial of degree below N.
    pub fn to_coset(&self, values: &mut [Fr]) {
        self.check(values);
        with!(self.tables, to_coefficients(values));
        with!(self.tables, to_values(values, Some(Factors { each: &self.coset_factors, all: None })));
    }

    fn check(&self, values: &[Fr]) {
        assert_eq!(values.len(), self.size, "a transform of a vector whose length is not the domain size");
    }
}

/// Swaps each element with the one whose index has its bits in reverse order, tile by tile: a tile's rows have the high bits
/// of the index in common, its columns the low ones, and it changes places with one other tile (2^20 elements: 6.8 ms
/// where single swaps take 23).
fn bit_reverse(values: &mut [Fr]) {
    let bits = values.len().trailing_zeros();
    let tile_bits = TILE_BITS.min(bits / 2);
    let (middle_bits, side) = (bits - 2 * tile_bits, 1 << tile_bits);
    let reverse = |x: usize, bits: u32| x.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
    let at = |high: usize, middle: usize, low: usize| (high << middle_bits | middle) << tile_bits | low;
    for middle in 0..1 << middle_bits {
        let other = reverse(middle, middle_bits);
        if middle > other {
            continue;
        }
        for high in 0..side {
            for low in 0..side {
                let i = at(high, middle, low);
                let j = at(reverse(low, tile_bits), other, reverse(high, tile_bits));
                if i < j || middle < other {
                    values.swap(i, j);
                }
            }
        }
    }
}
