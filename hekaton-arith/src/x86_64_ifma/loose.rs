//! Sums in Fq whose limbs are carried once, when all terms are in, and what they are below p.

use super::field::{Element, Fq, LIMB, Modulus, Q, QUOTIENT};
use super::lane::{Lane, Mask};

impl Fq {
    /// `(+-b) - (+-a) + 2 p`, each of them negative in the lanes of its mask: below 4 p.
    #[inline(always)]
    pub(crate) fn rise(a: &Self, negative_a: Mask, b: &Self, negative_b: Mask) -> Self {
        let zero = Loose([Lane::splat(0); 8]);
        zero.less_signed(b, !negative_b).less_signed(a, negative_a).lifted::<2>().carried()
    }
}

/// Eight numbers whose limbs have not been carried yet: they have signs and are within 2^60 of zero.
#[derive(Clone, Copy)]
pub(crate) struct Loose(pub(super) [Lane; 8]);

impl Loose {
    #[inline(always)]
    pub(crate) fn of(x: &Fq) -> Self {
        Self(x.0)
    }

    #[inline(always)]
    pub(crate) fn carried(self) -> Fq {
        let out = Fq::propagate(self.0);
        out.check();
        out
    }

    /// `self + b`
    #[inline(always)]
    pub(crate) fn plus(mut self, b: Self) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].add(b.0[j]);
        }
        self
    }

    /// `self - b`
    #[inline(always)]
    pub(crate) fn minus(mut self, b: Self) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].sub(b.0[j]);
        }
        self
    }

    /// `self + 2^K p`, which must not be negative.
    #[inline(always)]
    pub(crate) fn carried_from<const K: usize>(self) -> Fq {
        self.plus(Self(Fq::p(K))).carried()
    }

    /// `self - b`
    #[inline(always)]
    pub(crate) fn less(mut self, b: &Fq) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].sub(b.0[j]);
        }
        self
    }

    /// `self - b`, and `self + b` in the lanes of the mask.
    #[inline(always)]
    pub(crate) fn less_signed(mut self, b: &Fq, negative: Mask) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].sub(b.0[j].negated(negative));
        }
        self
    }

    /// `self + LIFT p`
    #[inline(always)]
    pub(crate) fn lifted<const LIFT: usize>(mut self) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].add(Lane::splat(Q::MULTIPLES[j][LIFT]));
        }
        self
    }

    /// What `self + LIFT p` is below p, where that is in p .. 8 p.
    ///
    /// The quotient is estimated by the two top limbs: they are `x / 2^364`, rounded down but for 2^-44. The estimate is too small by
    /// less than 2^-16.5, and never too large: the first numbers whose top limbs reach k are above k p by at least 0.04 of 2^364. So only few
    /// lanes need another look: those whose top limb is that of p, or one more.
    #[inline(always)]
    pub(crate) fn reduced<const LIFT: usize>(self) -> Fq {
        let mut t = self.lifted::<LIFT>().0;
        let q = quotient(&t);
        for j in 0..8 {
            t[j] = t[j].sub(q.lookup(&Q::MULTIPLES[j]));
        }
        let mut out = Fq::propagate(t);
        if !surely_reduced(&out) {
            // SAFETY: lanes exist only where the features do.
            out = unsafe { mend(out) };
        }
        out.check();
        out
    }
}

/// Limbs that are carried one after the other.
pub(super) struct Carrying {
    limbs: [Lane; 8],
    carry: Lane,
}

impl Carrying {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { limbs: [Lane::splat(0); 8], carry: Lane::splat(0) }
    }

    /// Limb k, after all below it.
    #[inline(always)]
    pub(super) fn put(&mut self, k: usize, limb: Lane) {
        let t = limb.add(self.carry);
        self.limbs[k] = if k < 7 { t.and(Lane::splat(LIMB)) } else { t }.here();
        self.carry = t.carry().here();
    }

    #[inline(always)]
    pub(super) fn done(&self) -> Fq {
        Element::new(self.limbs)
    }

    /// Limb k, which has been put.
    #[inline(always)]
    pub(super) fn limb(&self, k: usize) -> Lane {
        self.limbs[k]
    }
}

/// How many times p to take away: see [`Loose::reduced`].
#[inline(always)]
pub(super) fn quotient(t: &[Lane; 8]) -> Lane {
    Lane::splat(0).madd_high(t[7].add(t[6].carry()), Lane::splat(QUOTIENT))
}

/// Whether the top limbs alone tell that all lanes are between 0 and p.
#[inline(always)]
pub(super) fn surely_reduced(x: &Fq) -> bool {
    x.0[7].not_below(Lane::splat(Q::SHIFTED[0][7])) == 0
}

lanes! {
    /// Below p, from below `2 p`.
    #[cold]
    #[inline(never)]
    pub(super) fn mend(x: Fq) -> Fq {
        x.reduce_once::<0>()
    }
}
