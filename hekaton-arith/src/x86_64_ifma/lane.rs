//! Eight 64-bit words that are worked on at once: one AVX-512 register.

use std::arch::x86_64::*;

/// Eight words of 64 bits.
///
/// Every operation is one instruction or two. Values of this type are made only by code that [`super::available`] let in,
/// which is what the SAFETY comments below mean by "the features are there".
#[derive(Clone, Copy)]
pub(crate) struct Lane(__m512i);

/// One bit a lane.
pub(crate) type Mask = u8;

impl Lane {
    #[inline(always)]
    pub(crate) fn splat(x: u64) -> Self {
        // SAFETY (here and in all functions below): the features are there.
        Self(unsafe { _mm512_set1_epi64(x as i64) })
    }

    #[inline(always)]
    pub(crate) fn load(from: &[u64; 8]) -> Self {
        // SAFETY: eight words are readable; the load asks for no alignment.
        Self(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    #[inline(always)]
    pub(crate) fn store(self, to: &mut [u64; 8]) {
        // SAFETY: eight words are writable; the store asks for no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    pub(crate) fn add(self, b: Self) -> Self {
        Self(unsafe { _mm512_add_epi64(self.0, b.0) })
    }

    #[inline(always)]
    pub(crate) fn sub(self, b: Self) -> Self {
        Self(unsafe { _mm512_sub_epi64(self.0, b.0) })
    }

    #[inline(always)]
    pub(crate) fn and(self, b: Self) -> Self {
        Self(unsafe { _mm512_and_si512(self.0, b.0) })
    }

    #[inline(always)]
    pub(crate) fn or(self, b: Self) -> Self {
        Self(unsafe { _mm512_or_si512(self.0, b.0) })
    }

    /// Shift to the left by up to 63 bits; a constant after inlining.
    #[inline(always)]
    pub(crate) fn shl(self, by: u32) -> Self {
        Self(unsafe { _mm512_sll_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    /// Shift to the right of unsigned words.
    #[inline(always)]
    pub(crate) fn shr(self, by: u32) -> Self {
        Self(unsafe { _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    /// Shift to the right by 52 of signed words.
    #[inline(always)]
    pub(crate) fn carry(self) -> Self {
        Self(unsafe { _mm512_srai_epi64::<52>(self.0) })
    }

    /// `self + low half of a b`: the low 52 bits of the operands count, and the low 52 bits of their product are added.
    #[inline(always)]
    pub(crate) fn madd_low(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_madd52lo_epu64(self.0, a.0, b.0) })
    }

    /// `self + high half of a b`: bits 52 to 103 of the product.
    #[inline(always)]
    pub(crate) fn madd_high(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_madd52hi_epu64(self.0, a.0, b.0) })
    }

    /// The lanes where both are equal.
    #[inline(always)]
    pub(crate) fn equal(self, b: Self) -> Mask {
        unsafe { _mm512_cmpeq_epi64_mask(self.0, b.0) }
    }

    /// The lanes that are negative as signed words.
    #[inline(always)]
    pub(crate) fn negative(self) -> Mask {
        unsafe { _mm512_movepi64_mask(self.0) }
    }

    /// `b` in the lanes of the mask, `self` in the others.
    #[inline(always)]
    pub(crate) fn blend(self, mask: Mask, b: Self) -> Self {
        Self(unsafe { _mm512_mask_blend_epi64(mask, self.0, b.0) })
    }

    /// Lane i is lane i + K of before, modulo 8.
    #[inline(always)]
    pub(crate) fn rotated<const K: i32>(self) -> Self {
        Self(unsafe { _mm512_alignr_epi64::<K>(self.0, self.0) })
    }

    /// Rows to columns: lane i of output j is lane j of input i.
    #[inline(always)]
    pub(crate) fn transpose(r: [Self; 8]) -> [Self; 8] {
        // pairs of words, then pairs of pairs, then halves
        unsafe {
            let (mut a, mut b) = ([r[0].0; 8], [r[0].0; 8]);
            for i in 0..4 {
                a[2 * i] = _mm512_unpacklo_epi64(r[2 * i].0, r[2 * i + 1].0);
                a[2 * i + 1] = _mm512_unpackhi_epi64(r[2 * i].0, r[2 * i + 1].0);
            }
            for i in 0..2 {
                for j in 0..2 {
                    // 128-bit pieces 0 and 2, 1 and 3 of two registers
                    b[4 * i + j] = _mm512_shuffle_i64x2::<0b10_00_10_00>(a[4 * i + j], a[4 * i + j + 2]);
                    b[4 * i + j + 2] = _mm512_shuffle_i64x2::<0b11_01_11_01>(a[4 * i + j], a[4 * i + j + 2]);
                }
            }
            let mut out = r;
            for j in 0..2 {
                out[j] = Self(_mm512_shuffle_i64x2::<0b10_00_10_00>(b[j], b[j + 4]));
                out[j + 4] = Self(_mm512_shuffle_i64x2::<0b11_01_11_01>(b[j], b[j + 4]));
                out[j + 2] = Self(_mm512_shuffle_i64x2::<0b10_00_10_00>(b[j + 2], b[j + 6]));
                out[j + 6] = Self(_mm512_shuffle_i64x2::<0b11_01_11_01>(b[j + 2], b[j + 6]));
            }
            out
        }
    }

    /// Columns of eight rows of eight words: lane i of output j is word j of row i.
    #[inline(always)]
    pub(crate) fn columns(rows: [&[u64; 8]; 8]) -> [Self; 8] {
        let mut r = [Self::load(rows[0]); 8];
        for i in 1..8 {
            r[i] = Self::load(rows[i]);
        }
        Self::transpose(r)
    }

    #[inline(always)]
    fn load_halves(low: &[u64; 4], high: &[u64; 4]) -> __m512i {
        // SAFETY: four words are readable behind each reference.
        unsafe {
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast()));
            _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(high.as_ptr().cast()))
        }
    }

    /// Columns of eight rows of four words.
    #[inline(always)]
    pub(crate) fn half_columns(rows: [&[u64; 4]; 8]) -> [Self; 4] {
        // SAFETY: four words are readable behind each reference.
        unsafe {
            let (r02, r13) = (Self::load_halves(rows[0], rows[2]), Self::load_halves(rows[1], rows[3]));
            let (r46, r57) = (Self::load_halves(rows[4], rows[6]), Self::load_halves(rows[5], rows[7]));
            let (a, b) = (_mm512_unpacklo_epi64(r02, r13), _mm512_unpacklo_epi64(r46, r57));
            let (c, d) = (_mm512_unpackhi_epi64(r02, r13), _mm512_unpackhi_epi64(r46, r57));
            [
                Self(_mm512_shuffle_i64x2::<0b10_00_10_00>(a, b)),
                Self(_mm512_shuffle_i64x2::<0b10_00_10_00>(c, d)),
                Self(_mm512_shuffle_i64x2::<0b11_01_11_01>(a, b)),
                Self(_mm512_shuffle_i64x2::<0b11_01_11_01>(c, d)),
            ]
        }
    }

    /// [`Self::half_columns`] the other way: row i goes to `to[stride * i ..]`.
    #[inline(always)]
    pub(crate) fn store_half_columns(columns: [Self; 4], to: &mut [u64], stride: usize) {
        assert!(to.len() >= 7 * stride + 4, "eight rows of four words do not fit");
        let [a, b, c, d] = columns;
        // SAFETY: the last row's four words end within `to`, as asserted.
        unsafe {
            let (even, even_high) = (_mm512_unpacklo_epi64(a.0, b.0), _mm512_unpacklo_epi64(c.0, d.0));
            let (odd, odd_high) = (_mm512_unpackhi_epi64(a.0, b.0), _mm512_unpackhi_epi64(c.0, d.0));
            let first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
            let second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
            let pairs = [
                (0, _mm512_permutex2var_epi64(even, first, even_high)),
                (4, _mm512_permutex2var_epi64(even, second, even_high)),
                (1, _mm512_permutex2var_epi64(odd, first, odd_high)),
                (5, _mm512_permutex2var_epi64(odd, second, odd_high)),
            ];
            for (row, pair) in pairs {
                let at = to.as_mut_ptr();
                _mm256_storeu_si256(at.add(stride * row).cast(), _mm512_castsi512_si256(pair));
                _mm256_storeu_si256(at.add(stride * (row + 2)).cast(), _mm512_extracti64x4_epi64::<1>(pair));
            }
        }
    }

    /// Asks for the cache line of an address; it need not be readable.
    #[inline(always)]
    pub(crate) fn prefetch<T>(at: *const T) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
