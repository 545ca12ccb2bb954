//! Eight 64-bit words that are worked on at once: two AVX2 registers, as integers or as doubles.

use std::arch::x86_64::*;

/// Eight words of 64 bits, four per register.
///
/// Values of this type are created only by code that runs after [`super::available`] returned
/// `true`, on which the SAFETY comments below rely.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Lane(pub(super) [__m256i; 2]);

/// One bit per lane.
pub(crate) type Mask = u8;

/// Applies an operation to both registers, as integers.
macro_rules! words {
    ($a:expr, $op:ident $(, $b:expr)*) => {
        // SAFETY: lanes exist only where AVX2 and FMA do, the features of `$op`.
        Self(unsafe { [$op($a.0[0] $(, $b.0[0])*), $op($a.0[1] $(, $b.0[1])*)] })
    };
}

/// Applies an operation to both registers, as doubles.
macro_rules! doubles {
    ($op:ident, $($a:expr),*) => {
        // SAFETY: lanes exist only where AVX2 and FMA do, the features of `$op`.
        Self(unsafe {
            [
                _mm256_castpd_si256($op($(_mm256_castsi256_pd($a.0[0])),*)),
                _mm256_castpd_si256($op($(_mm256_castsi256_pd($a.0[1])),*)),
            ]
        })
    };
}

impl Lane {
    #[inline(always)]
    pub(crate) fn splat(x: u64) -> Self {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        Self([unsafe { _mm256_set1_epi64x(x as i64) }; 2])
    }

    /// The same double in all lanes.
    #[inline(always)]
    pub(super) fn double(x: f64) -> Self {
        Self::splat(x.to_bits())
    }

    #[inline(always)]
    pub(crate) fn load(from: &[u64; 8]) -> Self {
        // SAFETY: eight words are readable, and the loads require no alignment.
        Self(unsafe {
            [
                _mm256_loadu_si256(from.as_ptr().cast()),
                _mm256_loadu_si256(from[4..].as_ptr().cast()),
            ]
        })
    }

    /// The pairs whose first (side 0) or second word has its top bit set.
    #[inline(always)]
    pub(crate) fn top_bits(pairs: &[[u32; 2]; 8], side: usize) -> Mask {
        // SAFETY: 64 bytes are readable, and the loads require no alignment.
        let both = Self(unsafe {
            [
                _mm256_loadu_si256(pairs.as_ptr().cast()),
                _mm256_loadu_si256(pairs[4..].as_ptr().cast()),
            ]
        });
        if side == 0 {
            // SAFETY: lanes exist only where AVX2 and FMA do.
            Self(unsafe {
                [_mm256_slli_epi64::<32>(both.0[0]), _mm256_slli_epi64::<32>(both.0[1])]
            })
            .negative()
        } else {
            both.negative()
        }
    }

    #[inline(always)]
    pub(crate) fn store(self, to: &mut [u64; 8]) {
        // SAFETY: eight words are writable, and the stores require no alignment.
        unsafe {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0[0]);
            _mm256_storeu_si256(to[4..].as_mut_ptr().cast(), self.0[1]);
        }
    }

    #[inline(always)]
    pub(super) fn and(self, b: Self) -> Self {
        words!(self, _mm256_and_si256, b)
    }

    #[inline(always)]
    pub(super) fn xor(self, b: Self) -> Self {
        words!(self, _mm256_xor_si256, b)
    }

    /// The sum of doubles.
    #[inline(always)]
    pub(super) fn plus(self, b: Self) -> Self {
        doubles!(_mm256_add_pd, self, b)
    }

    /// The difference of doubles.
    #[inline(always)]
    pub(super) fn minus(self, b: Self) -> Self {
        doubles!(_mm256_sub_pd, self, b)
    }

    /// Computes `self a + b` in doubles, rounded once.
    #[inline(always)]
    pub(super) fn times_plus(self, a: Self, b: Self) -> Self {
        doubles!(_mm256_fmadd_pd, self, a, b)
    }

    /// The lanes where both words are equal.
    #[inline(always)]
    pub(crate) fn equal(self, b: Self) -> Mask {
        words!(self, _mm256_cmpeq_epi64, b).negative()
    }

    /// The lanes that are negative, as signed words or as doubles.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "each half of the mask has four bits")]
    pub(super) fn negative(self) -> Mask {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        let low = unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(self.0[0])) };
        // SAFETY: lanes exist only where AVX2 and FMA do.
        let high = unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(self.0[1])) };
        (low | high << 4) as Mask
    }

    /// Sets all bits in the lanes of a mask.
    #[inline(always)]
    fn of_mask(mask: Mask) -> Self {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        let bits =
            Self(unsafe { [_mm256_setr_epi64x(1, 2, 4, 8), _mm256_setr_epi64x(16, 32, 64, 128)] });
        words!(Self::splat(u64::from(mask)).and(bits), _mm256_cmpeq_epi64, bits)
    }

    /// Selects `b` in the lanes of the mask and `self` in the others.
    #[inline(always)]
    pub(super) fn blend(self, mask: Mask, b: Self) -> Self {
        words!(self, _mm256_blendv_epi8, b, Self::of_mask(mask))
    }

    /// Rotates the lanes: lane i becomes lane i + K, modulo 8.
    #[inline(always)]
    pub(super) fn rotated<const K: i32>(self) -> Self {
        let mut words = [0; 8];
        self.store(&mut words);
        words.rotate_left(K as usize);
        Self::load(&words)
    }

    /// Transposes four rows of four words to columns.
    #[inline(always)]
    fn transpose_four(r: [__m256i; 4]) -> [__m256i; 4] {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        unsafe {
            let (a, b) = (_mm256_unpacklo_epi64(r[0], r[1]), _mm256_unpackhi_epi64(r[0], r[1]));
            let (c, d) = (_mm256_unpacklo_epi64(r[2], r[3]), _mm256_unpackhi_epi64(r[2], r[3]));
            [
                _mm256_permute2x128_si256::<0x20>(a, c),
                _mm256_permute2x128_si256::<0x20>(b, d),
                _mm256_permute2x128_si256::<0x31>(a, c),
                _mm256_permute2x128_si256::<0x31>(b, d),
            ]
        }
    }

    /// Transposes rows to columns: lane i of output j is lane j of input i.
    #[inline(always)]
    pub(crate) fn transpose(r: [Self; 8]) -> [Self; 8] {
        // a quarter at a time: one half of the words of four rows
        let mut out = r;
        for rows in 0..2 {
            for from in 0..2 {
                let quarter = Self::transpose_four([
                    r[4 * rows].0[from],
                    r[4 * rows + 1].0[from],
                    r[4 * rows + 2].0[from],
                    r[4 * rows + 3].0[from],
                ]);
                for j in 0..4 {
                    out[4 * from + j].0[rows] = quarter[j];
                }
            }
        }
        out
    }

    /// Reads eight rows of eight words as columns: lane i of output j is word j of row i.
    #[inline(always)]
    pub(crate) fn columns(rows: [&[u64; 8]; 8]) -> [Self; 8] {
        let mut r = [Self::load(rows[0]); 8];
        for i in 1..8 {
            r[i] = Self::load(rows[i]);
        }
        Self::transpose(r)
    }

    /// Reads eight rows of four words as columns.
    #[inline(always)]
    pub(crate) fn half_columns(rows: [&[u64; 4]; 8]) -> [Self; 4] {
        let mut out = [Self::splat(0); 4];
        for half in 0..2 {
            let mut r = [out[0].0[0]; 4];
            for i in 0..4 {
                // SAFETY: four words are readable behind the reference.
                r[i] = unsafe { _mm256_loadu_si256(rows[4 * half + i].as_ptr().cast()) };
            }
            let columns = Self::transpose_four(r);
            for j in 0..4 {
                out[j].0[half] = columns[j];
            }
        }
        out
    }

    /// Inverse of [`Self::half_columns`]: row i goes to `to[stride * i ..]`.
    #[inline(always)]
    pub(crate) fn store_half_columns(columns: [Self; 4], to: &mut [u64], stride: usize) {
        assert!(to.len() >= 7 * stride + 4, "eight rows of four words do not fit");
        let [a, b, c, d] = columns;
        for half in 0..2 {
            let rows = Self::transpose_four([a.0[half], b.0[half], c.0[half], d.0[half]]);
            for i in 0..4 {
                // SAFETY: the four words of the last row end within `to`, as asserted.
                unsafe {
                    _mm256_storeu_si256(
                        to.as_mut_ptr().add(stride * (4 * half + i)).cast(),
                        rows[i],
                    )
                };
            }
        }
    }

    /// Prefetches the cache line of an address, which need not be readable.
    #[inline(always)]
    pub(crate) fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch accepts any address, readable or not.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
