//! The same eight words without AVX-512: the meaning of each operation, for tests on any machine
//! and under Miri.

#![allow(
    clippy::cast_possible_truncation,
    reason = "the words of a lane wrap, as its registers do"
)]

/// Eight words of 64 bits.
#[derive(Clone, Copy)]
pub(crate) struct Lane([u64; 8]);

/// One bit per lane.
pub(crate) type Mask = u8;

/// The bits of a word that a product uses.
const MASK: u64 = (1 << 52) - 1;

impl Lane {
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], b.0[i])))
    }

    #[inline(always)]
    fn mask(self, f: impl Fn(usize, u64) -> bool) -> Mask {
        (0..8).fold(0, |mask, i| mask | u8::from(f(i, self.0[i])) << i)
    }

    #[inline(always)]
    pub(crate) fn splat(x: u64) -> Self {
        Self([x; 8])
    }

    #[inline(always)]
    pub(crate) fn load(from: &[u64; 8]) -> Self {
        Self(*from)
    }

    /// The pairs whose first (side 0) or second word has its top bit set.
    #[inline(always)]
    pub(crate) fn top_bits(pairs: &[[u32; 2]; 8], side: usize) -> Mask {
        Self(pairs.map(|pair| u64::from(pair[side]))).mask(|_, word| word >> 31 == 1)
    }

    #[inline(always)]
    pub(crate) fn store(self, to: &mut [u64; 8]) {
        *to = self.0;
    }

    #[inline(always)]
    pub(crate) fn add(self, b: Self) -> Self {
        self.zip(b, u64::wrapping_add)
    }

    #[inline(always)]
    pub(crate) fn sub(self, b: Self) -> Self {
        self.zip(b, u64::wrapping_sub)
    }

    #[inline(always)]
    pub(crate) fn and(self, b: Self) -> Self {
        self.zip(b, |a, b| a & b)
    }

    #[inline(always)]
    pub(crate) fn or(self, b: Self) -> Self {
        self.zip(b, |a, b| a | b)
    }

    /// Shifts left by up to 63 bits.
    #[inline(always)]
    pub(crate) fn shl(self, by: u32) -> Self {
        Self(self.0.map(|a| a << by))
    }

    /// Shifts unsigned words right.
    #[inline(always)]
    pub(crate) fn shr(self, by: u32) -> Self {
        Self(self.0.map(|a| a >> by))
    }

    /// Shifts signed words right by 52.
    #[inline(always)]
    pub(crate) fn carry(self) -> Self {
        Self(self.0.map(|a| ((a as i64) >> 52) as u64))
    }

    /// Adds the low half of a product to `self`: bits 0 to 51 of the product of the low 52 bits of
    /// a and b.
    #[inline(always)]
    pub(crate) fn madd_low(self, a: Self, b: Self) -> Self {
        let product = a.zip(b, |a, b| (u128::from(a & MASK) * u128::from(b & MASK)) as u64 & MASK);
        self.add(product)
    }

    /// Adds the high half of a product to `self`: bits 52 to 103 of the product of the low 52 bits
    /// of a and b.
    #[inline(always)]
    pub(crate) fn madd_high(self, a: Self, b: Self) -> Self {
        let product = a.zip(b, |a, b| ((u128::from(a & MASK) * u128::from(b & MASK)) >> 52) as u64);
        self.add(product)
    }

    /// The lanes where both are equal.
    #[inline(always)]
    pub(crate) fn equal(self, b: Self) -> Mask {
        self.mask(|i, a| a == b.0[i])
    }

    /// The lanes that are negative as signed words.
    #[inline(always)]
    pub(crate) fn negative(self) -> Mask {
        self.mask(|_, a| a >> 63 == 1)
    }

    /// Selects `b` in the lanes of the mask and `self` in the others.
    #[inline(always)]
    pub(crate) fn blend(self, mask: Mask, b: Self) -> Self {
        Self(std::array::from_fn(|i| if mask >> i & 1 == 1 { b.0[i] } else { self.0[i] }))
    }

    /// Negates the lanes of the mask.
    #[inline(always)]
    pub(crate) fn negated(self, mask: Mask) -> Self {
        self.blend(mask, Self::splat(0).sub(self))
    }

    /// Replaces negative (signed) words by zero.
    #[inline(always)]
    pub(crate) fn not_negative(self) -> Self {
        Self(self.0.map(|a| (a as i64).max(0) as u64))
    }

    /// The lanes that are at least those of b, as unsigned words.
    #[inline(always)]
    pub(crate) fn not_below(self, b: Self) -> Mask {
        self.mask(|i, a| a >= b.0[i])
    }

    /// Looks up `table[i]` for each lane i, below 8.
    #[inline(always)]
    pub(crate) fn lookup(self, table: &[u64; 8]) -> Self {
        Self(self.0.map(|i| table[i as usize]))
    }

    /// Rotates the lanes: lane i becomes lane i + K, modulo 8.
    #[inline(always)]
    pub(crate) fn rotated<const K: i32>(self) -> Self {
        Self(std::array::from_fn(|i| self.0[(i + K as usize) % 8]))
    }

    /// Transposes rows to columns: lane i of output j is lane j of input i.
    #[inline(always)]
    pub(crate) fn transpose(r: [Self; 8]) -> [Self; 8] {
        std::array::from_fn(|j| Self(std::array::from_fn(|i| r[i].0[j])))
    }

    /// The number of steps of a transposition.
    pub(crate) const TRANSPOSITION: usize = 6;

    /// Does all the work in the last step.
    #[inline(always)]
    pub(crate) fn transpose_step(r: &mut [Self; 8], step: usize) {
        if step + 1 == Self::TRANSPOSITION {
            *r = Self::transpose(*r);
        }
    }

    /// Reads eight rows of eight words as columns: lane i of output j is word j of row i.
    #[inline(always)]
    pub(crate) fn columns(rows: [&[u64; 8]; 8]) -> [Self; 8] {
        Self::transpose(rows.map(Self::load))
    }

    /// Reads eight rows of four words as columns.
    #[inline(always)]
    pub(crate) fn half_columns(rows: [&[u64; 4]; 8]) -> [Self; 4] {
        std::array::from_fn(|j| Self(rows.map(|row| row[j])))
    }

    /// Inverse of [`Self::half_columns`]: row i goes to `to[stride * i ..]`.
    #[inline(always)]
    pub(crate) fn store_half_columns(columns: [Self; 4], to: &mut [u64], stride: usize) {
        for step in 0..4 {
            Self::store_half_columns_step(&columns, to, stride, step);
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
        let row = [0, 4, 1, 5][step];
        for i in [row, row + 2] {
            to[stride * i..][..4].copy_from_slice(&columns.map(|column| column.0[i]));
        }
    }

    /// The same value: there is no order to keep.
    #[inline(always)]
    pub(crate) fn here(self) -> Self {
        self
    }

    /// Does nothing: there is no cache to fill.
    #[inline(always)]
    pub(crate) fn prefetch<T>(_: *const T) {}

    /// Does nothing: there is no cache to fill.
    #[inline(always)]
    pub(crate) fn prefetch_far<T>(_: *const T) {}
}
