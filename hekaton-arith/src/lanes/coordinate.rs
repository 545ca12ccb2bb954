//! The coordinates of eight points at once: Fq in G1, Fq2 in G2. Forms and bounds are those of
//! [`super::batch`].

use super::field::{Fq, SCALE};
use super::lane::{Lane, Mask};
use super::product::mul_loose;
use super::tower::{Fq2, fq2_mul};
use crate::portable::Field;
use blst::{blst_fp, blst_fp2};

/// Eight elements of the coordinate field.
pub(crate) trait Coordinate: Copy {
    /// Words per element.
    const WORDS: usize;
    /// The type of one element, for the inversion.
    type Single: Field;

    fn zero() -> Self;
    fn one() -> Self;
    fn from_words(words: &[Lane]) -> Self;
    fn to_words(self, words: &mut [Lane]);
    fn add(&self, b: &Self) -> Self;
    /// The lifted difference `a - b + 2^K p`.
    fn sub<const K: usize>(&self, b: &Self) -> Self;
    fn mul(&self, b: &Self) -> Self;
    /// Multiplies by 2^16 in backends whose products do not keep the form of the words.
    fn shifted(&self) -> Self;
    fn select(&self, mask: Mask, other: &Self) -> Self;
    /// The negative, in the lanes of the mask.
    fn negated(&self, mask: Mask) -> Self;
    /// The lanes whose limbs are equal.
    fn equal(&self, b: &Self) -> Mask;
    /// Rotates the lanes: lane i becomes lane i + K, modulo 8.
    fn rotated<const K: i32>(&self) -> Self;
    /// Reduces below p as far as [`Self::to_words`] requires.
    fn reduced(&self) -> Self;
    /// The element below p in limbs that equal elements share, as elements just read have them.
    fn canonical(&self) -> Self;
    /// Makes an element just read a valid factor.
    fn carried(&self) -> Self;
    /// Converts between words and a single element.
    fn single_from_words(words: &[u64]) -> Self::Single;
    fn words_of_single(one: &Self::Single, words: &mut [u64]);
    /// The factor that corrects an inverse in the form of the words, where a product divides by
    /// 2^384 (2^432 mod p, or one).
    fn scale() -> Self::Single;
}

impl Coordinate for Fq {
    const WORDS: usize = 6;
    type Single = blst_fp;

    #[inline(always)]
    fn zero() -> Self {
        Fq::zero()
    }
    #[inline(always)]
    fn one() -> Self {
        Fq::one()
    }
    #[inline(always)]
    fn from_words(words: &[Lane]) -> Self {
        Fq::from_words(words.first_chunk().expect("six words"))
    }
    #[inline(always)]
    fn to_words(self, words: &mut [Lane]) {
        *words.first_chunk_mut().expect("six words") = Fq::words(&self);
    }
    #[inline(always)]
    fn add(&self, b: &Self) -> Self {
        Fq::add(self, b)
    }
    #[inline(always)]
    fn sub<const K: usize>(&self, b: &Self) -> Self {
        Fq::sub::<K>(self, b)
    }
    #[inline(always)]
    fn mul(&self, b: &Self) -> Self {
        mul_loose(self, b).carried()
    }
    #[inline(always)]
    fn shifted(&self) -> Self {
        Fq::shifted(self)
    }
    #[inline(always)]
    fn select(&self, mask: Mask, other: &Self) -> Self {
        Fq::select(self, mask, other)
    }
    #[inline(always)]
    fn negated(&self, mask: Mask) -> Self {
        Fq::negated(self, mask)
    }
    #[inline(always)]
    fn equal(&self, b: &Self) -> Mask {
        Fq::equal(self, b)
    }
    #[inline(always)]
    fn rotated<const K: i32>(&self) -> Self {
        Fq::rotated::<K>(self)
    }
    #[inline(always)]
    fn reduced(&self) -> Self {
        Fq::reduced(self)
    }
    #[inline(always)]
    fn canonical(&self) -> Self {
        Fq::canonical(self)
    }
    #[inline(always)]
    fn carried(&self) -> Self {
        Fq::carried(self)
    }
    fn single_from_words(words: &[u64]) -> blst_fp {
        let mut l = [0; 6];
        l.copy_from_slice(&words[..6]);
        blst_fp { l }
    }
    fn words_of_single(one: &blst_fp, words: &mut [u64]) {
        words[..6].copy_from_slice(&one.l);
    }
    fn scale() -> blst_fp {
        blst_fp { l: SCALE }
    }
}

impl Coordinate for Fq2 {
    const WORDS: usize = 12;
    type Single = blst_fp2;

    #[inline(always)]
    fn zero() -> Self {
        Self { c0: Fq::zero(), c1: Fq::zero() }
    }
    #[inline(always)]
    fn one() -> Self {
        Self { c0: Fq::one(), c1: Fq::zero() }
    }
    #[inline(always)]
    fn from_words(words: &[Lane]) -> Self {
        Self { c0: Coordinate::from_words(&words[..6]), c1: Coordinate::from_words(&words[6..]) }
    }
    #[inline(always)]
    fn to_words(self, words: &mut [Lane]) {
        Coordinate::to_words(self.c0, &mut words[..6]);
        Coordinate::to_words(self.c1, &mut words[6..]);
    }
    #[inline(always)]
    fn add(&self, b: &Self) -> Self {
        Self { c0: self.c0.add(&b.c0), c1: self.c1.add(&b.c1) }
    }
    #[inline(always)]
    fn sub<const K: usize>(&self, b: &Self) -> Self {
        Self { c0: self.c0.sub::<K>(&b.c0), c1: self.c1.sub::<K>(&b.c1) }
    }
    #[inline(always)]
    fn mul(&self, b: &Self) -> Self {
        // SAFETY: lanes exist only where the features of this backend do.
        unsafe { fq2_mul(self, b) }
    }
    #[inline(always)]
    fn shifted(&self) -> Self {
        Self { c0: self.c0.shifted(), c1: self.c1.shifted() }
    }
    #[inline(always)]
    fn select(&self, mask: Mask, other: &Self) -> Self {
        Self { c0: self.c0.select(mask, &other.c0), c1: self.c1.select(mask, &other.c1) }
    }
    #[inline(always)]
    fn negated(&self, mask: Mask) -> Self {
        Self { c0: self.c0.negated(mask), c1: self.c1.negated(mask) }
    }
    #[inline(always)]
    fn equal(&self, b: &Self) -> Mask {
        self.c0.equal(&b.c0) & self.c1.equal(&b.c1)
    }
    #[inline(always)]
    fn rotated<const K: i32>(&self) -> Self {
        Self { c0: self.c0.rotated::<K>(), c1: self.c1.rotated::<K>() }
    }
    #[inline(always)]
    fn reduced(&self) -> Self {
        Self { c0: self.c0.reduced(), c1: self.c1.reduced() }
    }
    #[inline(always)]
    fn canonical(&self) -> Self {
        Self { c0: self.c0.canonical(), c1: self.c1.canonical() }
    }
    #[inline(always)]
    fn carried(&self) -> Self {
        Self { c0: self.c0.carried(), c1: self.c1.carried() }
    }
    fn single_from_words(words: &[u64]) -> blst_fp2 {
        blst_fp2 { fp: [Fq::single_from_words(&words[..6]), Fq::single_from_words(&words[6..])] }
    }
    fn words_of_single(one: &blst_fp2, words: &mut [u64]) {
        Fq::words_of_single(&one.fp[0], &mut words[..6]);
        Fq::words_of_single(&one.fp[1], &mut words[6..]);
    }
    fn scale() -> blst_fp2 {
        blst_fp2 { fp: [Fq::scale(), blst_fp { l: [0; 6] }] }
    }
}
