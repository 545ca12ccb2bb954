//! Sums in Fq, in the interface that backends with unsigned limbs need.

use super::field::Fq;
use super::lane::Mask;

/// Results of products and sums of them: elements like all others in this backend. (Backends with
/// unsigned limbs carry such a sum only once.)
#[derive(Clone, Copy)]
pub(crate) struct Loose(pub(super) Fq);

impl Loose {
    #[inline(always)]
    pub(crate) fn of(x: &Fq) -> Self {
        Self(*x)
    }

    #[inline(always)]
    pub(crate) fn carried(self) -> Fq {
        self.0
    }

    /// Computes `self + b`.
    #[inline(always)]
    pub(crate) fn plus(self, b: Self) -> Self {
        Self(self.0.add(&b.0))
    }

    /// Computes `self - b`.
    #[inline(always)]
    pub(crate) fn minus(self, b: Self) -> Self {
        self.less(&b.0)
    }

    /// Same as [`Self::carried`]; K applies to backends with unsigned limbs.
    #[inline(always)]
    pub(crate) fn carried_from<const K: usize>(self) -> Fq {
        self.0
    }

    /// Computes `self - b`.
    #[inline(always)]
    pub(crate) fn less(self, b: &Fq) -> Self {
        Self(self.0.sub::<0>(b))
    }

    /// Computes `self - b`, and `self + b` in the lanes of the mask.
    #[inline(always)]
    pub(crate) fn less_signed(self, b: &Fq, negative: Mask) -> Self {
        self.less(&b.negated(negative))
    }

    /// Reduces as [`Fq::words`] requires. LIFT applies to backends with unsigned limbs.
    #[inline(always)]
    pub(crate) fn reduced<const LIFT: usize>(self) -> Fq {
        self.0
    }
}

impl Fq {
    /// Computes `(+-b) - (+-a)`; each operand is negated in the lanes of its mask.
    #[inline(always)]
    pub(crate) fn rise(a: &Self, negative_a: Mask, b: &Self, negative_b: Mask) -> Self {
        b.negated(negative_b).sub::<0>(&a.negated(negative_a))
    }
}
