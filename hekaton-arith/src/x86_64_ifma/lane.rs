//! Eight 64-bit words that are worked on at once: one AVX-512 register.

use std::arch::x86_64::*;

/// Eight words of 64 bits.
///
/// Every operation is one or two instructions. Values of this type are created only by code that
/// runs after [`super::available`] returned `true`, on which the SAFETY comments below rely.
#[derive(Clone, Copy)]
pub(crate) struct Lane(__m512i);

/// One bit per lane.
pub(crate) type Mask = u8;

impl Lane {
    #[inline(always)]
    pub(crate) fn splat(x: u64) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_set1_epi64(x as i64) })
    }

    #[inline(always)]
    pub(crate) fn load(from: &[u64; 8]) -> Self {
        // SAFETY: eight words are readable, and the load requires no alignment.
        Self(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    /// The pairs whose first (side 0) or second word has its top bit set.
    #[inline(always)]
    pub(crate) fn top_bits(pairs: &[[u32; 2]; 8], side: usize) -> Mask {
        // SAFETY: 64 bytes are readable, and the load requires no alignment.
        let both = Self(unsafe { _mm512_loadu_si512(pairs.as_ptr().cast()) });
        if side == 0 { both.shl(32).negative() } else { both.negative() }
    }

    #[inline(always)]
    pub(crate) fn store(self, to: &mut [u64; 8]) {
        // SAFETY: eight words are writable, and the store requires no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    pub(crate) fn add(self, b: Self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_add_epi64(self.0, b.0) })
    }

    #[inline(always)]
    pub(crate) fn sub(self, b: Self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_sub_epi64(self.0, b.0) })
    }

    #[inline(always)]
    pub(crate) fn and(self, b: Self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_and_si512(self.0, b.0) })
    }

    #[inline(always)]
    pub(crate) fn or(self, b: Self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_or_si512(self.0, b.0) })
    }

    /// Shifts left by up to 63 bits; the shift is a constant after inlining.
    #[inline(always)]
    pub(crate) fn shl(self, by: u32) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_sll_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    /// Shifts unsigned words right.
    #[inline(always)]
    pub(crate) fn shr(self, by: u32) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    /// Shifts signed words right by 52.
    #[inline(always)]
    pub(crate) fn carry(self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_srai_epi64::<52>(self.0) })
    }

    /// Adds the low half of a product to `self`: bits 0 to 51 of the product of the low 52 bits of
    /// a and b.
    #[inline(always)]
    pub(crate) fn madd_low(self, a: Self, b: Self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_madd52lo_epu64(self.0, a.0, b.0) })
    }

    /// Adds the high half of a product to `self`: bits 52 to 103 of the product of the low 52 bits
    /// of a and b.
    #[inline(always)]
    pub(crate) fn madd_high(self, a: Self, b: Self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_madd52hi_epu64(self.0, a.0, b.0) })
    }

    /// The lanes where both are equal.
    #[inline(always)]
    pub(crate) fn equal(self, b: Self) -> Mask {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        unsafe { _mm512_cmpeq_epi64_mask(self.0, b.0) }
    }

    /// The lanes that are negative as signed words.
    #[inline(always)]
    pub(crate) fn negative(self) -> Mask {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        unsafe { _mm512_movepi64_mask(self.0) }
    }

    /// Selects `b` in the lanes of the mask and `self` in the others.
    #[inline(always)]
    pub(crate) fn blend(self, mask: Mask, b: Self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_mask_blend_epi64(mask, self.0, b.0) })
    }

    /// Negates the lanes of the mask.
    #[inline(always)]
    pub(crate) fn negated(self, mask: Mask) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_mask_sub_epi64(self.0, mask, _mm512_setzero_si512(), self.0) })
    }

    /// Replaces negative (signed) words by zero.
    #[inline(always)]
    pub(crate) fn not_negative(self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_max_epi64(self.0, _mm512_setzero_si512()) })
    }

    /// The lanes that are at least those of b, as unsigned words.
    #[inline(always)]
    pub(crate) fn not_below(self, b: Self) -> Mask {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        unsafe { _mm512_cmpge_epu64_mask(self.0, b.0) }
    }

    /// Looks up `table[i]` for each lane i, below 8.
    #[inline(always)]
    pub(crate) fn lookup(self, table: &[u64; 8]) -> Self {
        debug_assert_eq!(self.not_below(Self::splat(8)), 0, "an index beyond the table");
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_permutexvar_epi64(self.0, Self::load(table).0) })
    }

    /// Rotates the lanes: lane i becomes lane i + K, modulo 8.
    #[inline(always)]
    pub(crate) fn rotated<const K: i32>(self) -> Self {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { _mm512_alignr_epi64::<K>(self.0, self.0) })
    }

    /// Interleaves the even words of both, and their odd words.
    #[inline(always)]
    pub(crate) fn words_of_two(self, b: Self) -> [Self; 2] {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        unsafe {
            [Self(_mm512_unpacklo_epi64(self.0, b.0)), Self(_mm512_unpackhi_epi64(self.0, b.0))]
        }
    }

    /// Returns the even pairs of words of both, self's first, and the odd ones.
    #[inline(always)]
    pub(crate) fn pairs_of_two(self, b: Self) -> [Self; 2] {
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        unsafe {
            let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(self.0, b.0);
            [Self(even), Self(_mm512_shuffle_i64x2::<0b11_01_11_01>(self.0, b.0))]
        }
    }

    /// Transposes rows to columns: lane i of output j is lane j of input i.
    #[inline(always)]
    pub(crate) fn transpose(mut r: [Self; 8]) -> [Self; 8] {
        for step in 0..Self::TRANSPOSITION {
            Self::transpose_step(&mut r, step);
        }
        r
    }

    /// The number of steps of a transposition; each reads and writes four of the eight rows.
    pub(crate) const TRANSPOSITION: usize = 6;

    #[inline(always)]
    pub(crate) fn transpose_step(r: &mut [Self; 8], step: usize) {
        // pairs of words, then pairs of pairs, then halves
        let (first, second, distance) = match step {
            0 | 1 => (4 * step, 4 * step + 2, 1),
            2 | 3 => (4 * (step - 2), 4 * (step - 2) + 1, 2),
            _ => (2 * (step - 4), 2 * (step - 4) + 1, 4),
        };
        for i in [first, second] {
            let (a, b) = (r[i], r[i + distance]);
            [r[i], r[i + distance]] = if step < 2 { a.words_of_two(b) } else { a.pairs_of_two(b) };
        }
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

    #[inline(always)]
    fn load_halves(low: &[u64; 4], high: &[u64; 4]) -> __m512i {
        // SAFETY: four words are readable behind each reference.
        unsafe {
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast()));
            _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(high.as_ptr().cast()))
        }
    }

    /// Reads eight rows of four words as columns.
    #[inline(always)]
    pub(crate) fn half_columns(rows: [&[u64; 4]; 8]) -> [Self; 4] {
        // SAFETY: four words are readable behind each reference.
        unsafe {
            let (r02, r13) =
                (Self::load_halves(rows[0], rows[2]), Self::load_halves(rows[1], rows[3]));
            let (r46, r57) =
                (Self::load_halves(rows[4], rows[6]), Self::load_halves(rows[5], rows[7]));
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

    /// Inverse of [`Self::half_columns`]: row i goes to `to[stride * i ..]`.
    #[inline(always)]
    pub(crate) fn store_half_columns(columns: [Self; 4], to: &mut [u64], stride: usize) {
        for rows in 0..4 {
            Self::store_half_columns_step(&columns, to, stride, rows);
        }
    }

    /// Stores two of the eight rows, in one of four steps.
    #[inline(always)]
    pub(crate) fn store_half_columns_step(
        columns: &[Self; 4],
        to: &mut [u64],
        stride: usize,
        step: usize,
    ) {
        assert!(step < 4 && to.len() >= 7 * stride + 4, "eight rows of four words do not fit");
        let [a, b, c, d] = columns;
        // SAFETY: rows are 0 .. 8, and the four words of the last one end within `to`, as asserted.
        unsafe {
            let (low, high, row) = match step {
                0 | 1 => {
                    (_mm512_unpacklo_epi64(a.0, b.0), _mm512_unpacklo_epi64(c.0, d.0), 4 * step)
                }
                _ => (
                    _mm512_unpackhi_epi64(a.0, b.0),
                    _mm512_unpackhi_epi64(c.0, d.0),
                    4 * (step - 2) + 1,
                ),
            };
            let indices = if step.is_multiple_of(2) {
                _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0)
            } else {
                _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4)
            };
            let pair = _mm512_permutex2var_epi64(low, indices, high);
            let at = to.as_mut_ptr();
            _mm256_storeu_si256(at.add(stride * row).cast(), _mm512_castsi512_si256(pair));
            _mm256_storeu_si256(
                at.add(stride * (row + 2)).cast(),
                _mm512_extracti64x4_epi64::<1>(pair),
            );
        }
    }

    /// The same value, computed no later than here: otherwise the compiler would move computations
    /// to their first use and undo an order that keeps the processor's units busy.
    #[inline(always)]
    pub(crate) fn here(self) -> Self {
        #[target_feature(enable = "avx512f")]
        #[inline]
        fn here(mut x: __m512i) -> __m512i {
            // SAFETY: the template contains no instruction, so the register keeps its value.
            unsafe {
                std::arch::asm!("/* {0} */", inout(zmm_reg) x, options(nomem, nostack, preserves_flags))
            };
            x
        }
        // SAFETY: lanes exist only where AVX-512 IFMA does.
        Self(unsafe { here(self.0) })
    }

    /// Prefetches the cache line of an address into the second-level cache.
    #[inline(always)]
    pub(crate) fn prefetch_far<T>(at: *const T) {
        // SAFETY: a prefetch accepts any address, readable or not.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    /// Prefetches the cache line of an address, which need not be readable.
    #[inline(always)]
    pub(crate) fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch accepts any address, readable or not.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
