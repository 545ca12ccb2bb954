//! Fourier transforms over Fr.
//!
//! The inverse transform decimates in frequency (natural order in, bit-reversed out), the forward
//! one in time (bit-reversed in, natural out). The pair that the prover needs, from a domain to a
//! coset of it, therefore needs no bit reversal at all: [`Domain::to_coset`]. Both recurse depth
//! first, which keeps the working set in cache.
//!
//! # Domains of three times a power of two
//! With N = 3 M, indices n = 3 q + r of coefficients and j = i + M t of values, and the cube root of
//! unity v = w^M,
//!
//! ```text
//! w^(j n) = (w^3)^(i q) w^(i r) v^(t r)
//! ```
//!
//! Decimation in frequency is therefore one layer of butterflies over the three values of each i
//! (the sum over t, and the twiddle w^(i r)), then a transform of M elements, with the root w^3, for
//! each residue r. Decimation in time is the same in the opposite order. Between the two,
//! coefficients are in the order of their residues, and bit-reversed within each.

#[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
use crate::backend::Backend;
use crate::portable;
use crate::scalar::powers;
#[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
use crate::x86_64_ifma;
use ark_bls12_381::Fr;
use ark_ff::{FftField, Field};
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// The domain size is neither a power of two up to 2^31 nor three times a power of two up to 3 *
/// 2^30.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the size of an FFT domain must be 2^k up to 2^31, or 3 * 2^k up to 3 * 2^30, not {0}")]
pub struct DomainError(pub usize);

/// The subgroup of order N of the multiplicative group of Fr, and its coset `s <w>` with `s^N =
/// -1`. N is 2^k or 3 * 2^k: the coset needs a root of unity of order 2 N, and r - 1 is 2^32 * 3
/// times a number whose smallest prime factor is 11.
///
/// Holds 64 N bytes of tables (72 N with AVX-512 IFMA), shared by all transforms, and another 32 N
/// once [`Domain::coset_fft`] has been called.
#[derive(Clone, Debug)]
pub struct Domain {
    size: usize,
    root: Fr,
    shift: Fr,
    tables: Tables,
    /// The factors `s^n / N` of the coefficients between the inverse transform and the coset
    /// transform, in the order that they have there.
    coset_factors: Vec<Fr>,
    /// The powers `s^n` in the same order, computed on first use.
    shifts: OnceLock<Vec<Fr>>,
}

/// Binary logarithm of the side of a tile in [`bit_reverse`]: two tiles fit the first-level cache.
const TILE_BITS: u32 = 4;

/// The tables of one backend.
#[derive(Clone, Debug)]
enum Tables {
    Portable(portable::fft::Tables),
    #[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
    Lanes(x86_64_ifma::fft::Tables),
}

/// Calls a method of the backend's tables.
macro_rules! with {
    ($tables:expr, $($call:tt)*) => {
        match &$tables {
            Tables::Portable(tables) => tables.$($call)*,
            #[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
            Tables::Lanes(tables) => tables.$($call)*,
        }
    };
}

impl Tables {
    fn new(root: Fr, size: usize) -> Self {
        let (part, radix3) = if size.is_multiple_of(3) {
            (size / 3, Some(powers(root, 2 * (size / 3))))
        } else {
            (size, None)
        };
        let twiddles = powers(root.pow([(size / part) as u64]), (part / 2).max(1));
        #[cfg(any(target_arch = "x86_64", feature = "plain-lanes", miri))]
        if part >= x86_64_ifma::fft::LEAST && Backend::current() == Backend::Ifma {
            return Self::Lanes(x86_64_ifma::fft::Tables::new(&twiddles, radix3.as_deref()));
        }
        Self::Portable(portable::fft::Tables::new(twiddles, radix3))
    }
}

impl Domain {
    /// The domain of `size` elements: a power of two, at most 2^31, or three times a power of two,
    /// at most 3 * 2^30 (the coset needs a root of order 2 N).
    ///
    /// # Errors
    /// If the size is neither.
    pub fn new(size: usize) -> Result<Self, DomainError> {
        let power = size.is_power_of_two() && size <= 1 << 31;
        let thrice = size.is_multiple_of(3) && (size / 3).is_power_of_two() && size <= 3 << 30;
        if !(power || thrice) {
            return Err(DomainError(size));
        }
        let double = Fr::get_root_of_unity(2 * size as u64).ok_or(DomainError(size))?;
        let root = double.square();
        let mut coset_factors = powers(double, size);
        // Not zero: a size is 2^k or 3 * 2^k, and r is another prime.
        let scale = Fr::from(size as u64).inverse().expect("a domain's size is invertible");
        coset_factors.iter_mut().for_each(|x| *x *= scale);
        scatter(&mut coset_factors);
        let (tables, shifts) = (Tables::new(root, size), OnceLock::new());
        Ok(Self { size, root, shift: double, tables, coset_factors, shifts })
    }

    /// The size of the smallest domain with at least `rows` elements, 2^k or 3 * 2^k; [`Self::new`]
    /// refuses it where it is too large.
    pub fn size_for(rows: usize) -> usize {
        let Some(power) = rows.checked_next_power_of_two() else { return usize::MAX };
        let thrice = power / 4 * 3;
        if thrice >= rows.max(1) { thrice } else { power }
    }

    /// The number of elements, N.
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

    /// Turns coefficients into values on the domain, both in natural order.
    ///
    /// # Panics
    /// If the length is not N, as in all transforms below.
    pub fn fft(&self, values: &mut [Fr]) {
        self.check(values);
        scatter(values);
        with!(self.tables, to_values(values, None));
    }

    /// Turns values on the domain into coefficients.
    pub fn ifft(&self, values: &mut [Fr]) {
        self.check(values);
        with!(self.tables, to_coefficients(values));
        gather(values);
        with!(self.tables, scale(values, &self.coset_factors[0])); // s^0 / N
    }

    /// Turns coefficients into values on the coset `s <w>`.
    pub fn coset_fft(&self, values: &mut [Fr]) {
        self.check(values);
        let shifts = self.shifts.get_or_init(|| {
            let mut shifts = powers(self.shift, self.size);
            scatter(&mut shifts);
            shifts
        });
        scatter(values);
        with!(self.tables, to_values(values, Some(shifts)));
    }

    /// Turns the values of a polynomial of degree below N on the domain into its values on the
    /// coset.
    pub fn to_coset(&self, values: &mut [Fr]) {
        self.check(values);
        with!(self.tables, to_coefficients(values));
        with!(self.tables, to_values(values, Some(&self.coset_factors)));
    }

    fn check(&self, values: &[Fr]) {
        assert_eq!(values.len(), self.size, "the length of a transform must be the domain size");
    }
}

/// Brings coefficients from natural order into that between the transforms.
fn scatter(values: &mut [Fr]) {
    let third = values.len() / 3;
    if !values.len().is_multiple_of(3) {
        return bit_reverse(values);
    }
    // Values may be a witness, so the copy is wiped.
    let natural = Zeroizing::new(values.to_vec());
    for (r, part) in values.chunks_exact_mut(third).enumerate() {
        part.iter_mut().zip(natural.iter().skip(r).step_by(3)).for_each(|(x, y)| *x = *y);
        bit_reverse(part);
    }
}

/// Brings coefficients from the order between the transforms into natural order.
fn gather(values: &mut [Fr]) {
    let third = values.len() / 3;
    if !values.len().is_multiple_of(3) {
        return bit_reverse(values);
    }
    values.chunks_exact_mut(third).for_each(bit_reverse);
    let parts = Zeroizing::new(values.to_vec());
    for (r, part) in parts.chunks_exact(third).enumerate() {
        values.iter_mut().skip(r).step_by(3).zip(part).for_each(|(x, y)| *x = *y);
    }
}

/// Moves each element to the index with its bits reversed, tile by tile. The rows of a tile share
/// the high bits of the index and its columns the low bits; two tiles swap places, or one stays, by
/// way of a buffer that fits the cache.
fn bit_reverse(values: &mut [Fr]) {
    const SIDE: usize = 1 << TILE_BITS;
    let bits = values.len().trailing_zeros();
    let reverse =
        |x: usize, bits: u32| x.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
    if bits < 2 * TILE_BITS {
        for i in 0..values.len() {
            let j = reverse(i, bits);
            if i < j {
                values.swap(i, j);
            }
        }
        return;
    }
    let middle_bits = bits - 2 * TILE_BITS;
    let row = |high: usize, middle: usize| (high << middle_bits | middle) << TILE_BITS;
    let mut tiles = [[[Fr::default(); SIDE]; SIDE]; 2];
    for middle in 0..1 << middle_bits {
        let other = reverse(middle, middle_bits);
        if middle > other {
            continue;
        }
        let both = [middle, other];
        for (tile, middle) in tiles.iter_mut().zip(both) {
            for high in 0..SIDE {
                let from: &[Fr; SIDE] = values[row(high, middle)..].first_chunk().expect("a row");
                for low in 0..SIDE {
                    tile[reverse(low, TILE_BITS)][reverse(high, TILE_BITS)] = from[low];
                }
            }
        }
        for (tile, middle) in tiles.iter().zip([other, middle]) {
            for high in 0..SIDE {
                *values[row(high, middle)..].first_chunk_mut().expect("a row") = tile[high];
            }
        }
    }
}
