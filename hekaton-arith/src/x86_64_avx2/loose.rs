//! Sums in Fq, in the interface that backends with unsigned limbs need.

use super::field::Fq;

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
        Self(self.0.sub::<0>(&b.0))
    }

    /// Same as [`Self::carried`]; K applies to backends with unsigned limbs.
    #[inline(always)]
    pub(crate) fn carried_from<const K: usize>(self) -> Fq {
        self.0
    }
}
