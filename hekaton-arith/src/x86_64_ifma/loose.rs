//! Sums in Fq with limbs that are carried only once, when all terms are in, and their reduction
//! below p.

use super::field::{Element, Fq, LIMB, Modulus, Q, QUOTIENT};
use super::lane::{Lane, Mask};

impl Fq {
    /// Computes `(+-b) - (+-a) + 2 p`, below 4 p; each operand is negated in the lanes of its mask.
    #[inline(always)]
    pub(crate) fn rise(a: &Self, negative_a: Mask, b: &Self, negative_b: Mask) -> Self {
        let zero = Loose([Lane::splat(0); 8]);
        zero.less_signed(b, !negative_b).less_signed(a, negative_a).lifted::<2>().carried()
    }
}

/// Eight numbers with limbs that have not been carried yet: limbs are signed and within 2^60 of
/// zero.
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

    /// Computes `self + b`.
    #[inline(always)]
    pub(crate) fn plus(mut self, b: Self) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].add(b.0[j]);
        }
        self
    }

    /// Computes `self - b`.
    #[inline(always)]
    pub(crate) fn minus(mut self, b: Self) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].sub(b.0[j]);
        }
        self
    }

    /// Carries `self + 2^K p`, which must not be negative.
    #[inline(always)]
    pub(crate) fn carried_from<const K: usize>(self) -> Fq {
        self.plus(Self(Fq::p(K))).carried()
    }

    /// Computes `self - b`.
    #[inline(always)]
    pub(crate) fn less(mut self, b: &Fq) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].sub(b.0[j]);
        }
        self
    }

    /// Computes `self - b`, and `self + b` in the lanes of the mask.
    #[inline(always)]
    pub(crate) fn less_signed(mut self, b: &Fq, negative: Mask) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].sub(b.0[j].negated(negative));
        }
        self
    }

    /// Computes `self + LIFT p`.
    #[inline(always)]
    pub(crate) fn lifted<const LIFT: usize>(mut self) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].add(Lane::splat(Q::MULTIPLES[j][LIFT]));
        }
        self
    }

    /// Reduces `self + LIFT p`, which must be in p .. 8 p, below p.
    ///
    /// The quotient is estimated from the two top limbs, which are `x / 2^364`, rounded down, up to
    /// 2^-44. The estimate is too small by less than 2^-16.5 and never too large: the first numbers
    /// whose top limbs reach k exceed k p by at least 0.04 of 2^364. So only a few lanes need a
    /// second look: those whose top limb is that of p, or one more.
    #[inline(always)]
    pub(crate) fn reduced<const LIFT: usize>(self) -> Fq {
        let mut t = self.lifted::<LIFT>().0;
        let q = quotient(&t);
        for j in 0..8 {
            t[j] = t[j].sub(q.lookup(&Q::MULTIPLES[j]));
        }
        let mut out = Fq::propagate(t);
        if !surely_reduced(&out) {
            // SAFETY: lanes exist only where AVX-512 IFMA does.
            out = unsafe { mend(out) };
        }
        out.check();
        out
    }
}

/// Limbs that are carried one after another.
pub(super) struct Carrying {
    limbs: [Lane; 8],
    carry: Lane,
}

impl Carrying {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { limbs: [Lane::splat(0); 8], carry: Lane::splat(0) }
    }

    /// Adds limb k, after all below it.
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

    /// Limb k, which must have been put.
    #[inline(always)]
    pub(super) fn limb(&self, k: usize) -> Lane {
        self.limbs[k]
    }
}

/// The multiple of p to subtract: see [`Loose::reduced`].
#[inline(always)]
pub(super) fn quotient(t: &[Lane; 8]) -> Lane {
    Lane::splat(0).madd_high(t[7].add(t[6].carry()), Lane::splat(QUOTIENT))
}

/// Reports whether the top limbs alone show that all lanes are between 0 and p.
#[inline(always)]
pub(super) fn surely_reduced(x: &Fq) -> bool {
    x.0[7].not_below(Lane::splat(Q::SHIFTED[0][7])) == 0
}

lanes! {
    /// Reduces numbers below `2 p` to below p.
    #[cold]
    #[inline(never)]
    pub(super) fn mend(x: Fq) -> Fq {
        x.reduce_once::<0>()
    }
}
