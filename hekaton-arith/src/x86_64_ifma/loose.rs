//! Sums in Fq with limbs that are carried only once, when all terms are in, and their reduction
//! below p.

use super::field::{Fq, LIMB, Modulus, Q, QUOTIENT};
use super::lane::Lane;

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

    /// Computes `self + LIFT p`.
    #[inline(always)]
    pub(crate) fn lifted<const LIFT: usize>(mut self) -> Self {
        for j in 0..8 {
            self.0[j] = self.0[j].add(Lane::splat(Q::MULTIPLES[j][LIFT]));
        }
        self
    }
}

/// The carry between the limbs of a number, which are carried one after another.
pub(super) struct Carry(Lane);

impl Carry {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self(Lane::splat(0))
    }

    /// Carries limb `k % 8`, after all below it. A further number may follow.
    #[inline(always)]
    pub(super) fn put(&mut self, k: usize, limb: Lane) -> Lane {
        let t = if k.is_multiple_of(8) { limb } else { limb.add(self.0) };
        if k % 8 == 7 {
            return t.here();
        }
        self.0 = t.carry().here();
        t.and(Lane::splat(LIMB)).here()
    }
}

/// Reduces N sums plus LIFT p, which must be in p .. 8 p, below p, in steps that can be placed
/// between other instructions.
///
/// The quotient is estimated from the two top limbs, which are `x / 2^364`, rounded down, up to
/// 2^-44. The estimate is too small by less than 2^-16.5 and never too large: the first numbers
/// whose top limbs reach k exceed k p by at least 0.04 of 2^364. So only a few lanes need a
/// second look: those whose top limb is that of p, or one more.
pub(super) struct Reducing<const LIFT: usize, const N: usize> {
    sum: [Lane; 8],
    quotient: Lane,
    carry: Carry,
    /// The limbs below p so far, or less than p above it.
    pub(super) out: [Fq; N],
}

impl<const LIFT: usize, const N: usize> Reducing<LIFT, N> {
    /// The number of steps.
    pub(super) const STEPS: usize = 9 * N;

    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            sum: [Lane::splat(0); 8],
            quotient: Lane::splat(0),
            carry: Carry::new(),
            out: [Fq::zero(); N],
        }
    }

    /// Asks for the limbs of an element's sum in the first four of its nine steps.
    #[inline(always)]
    pub(super) fn step(&mut self, limb: impl Fn(usize, usize) -> Lane, i: usize) {
        let part = i / 9;
        if part >= N {
            return;
        }
        match i % 9 {
            i @ 0..4 => {
                for k in [2 * i, 2 * i + 1] {
                    self.sum[k] = limb(part, k).add(Lane::splat(Q::MULTIPLES[k][LIFT])).here();
                }
            }
            4 => self.quotient = quotient(&self.sum).here(),
            i => {
                for k in [2 * i - 10, 2 * i - 9] {
                    let multiple = self.quotient.lookup(&Q::MULTIPLES[k]);
                    self.out[part].0[k] = self.carry.put(k, self.sum[k].sub(multiple));
                }
            }
        }
    }

    /// The numbers below p, and whether they needed no correction.
    #[inline(always)]
    pub(super) fn done(&self) -> ([Fq; N], bool) {
        let mut out = self.out;
        let mut all_sure = true;
        for part in 0..N {
            let sure = surely_reduced(&out[part]);
            if !sure {
                // SAFETY: lanes exist only where AVX-512 IFMA does.
                out[part] = unsafe { mend(out[part]) };
            }
            out[part].check();
            all_sure &= sure;
        }
        (out, all_sure)
    }
}

/// The multiple of p to subtract.
#[inline(always)]
fn quotient(t: &[Lane; 8]) -> Lane {
    Lane::splat(0).madd_high(t[7].add(t[6].carry()), Lane::splat(QUOTIENT))
}

/// Reports whether the top limbs alone show that all lanes are between 0 and p.
#[inline(always)]
fn surely_reduced(x: &Fq) -> bool {
    x.0[7].not_below(Lane::splat(Q::SHIFTED[0][7])) == 0
}

lanes! {
    /// Reduces numbers below `2 p` to below p.
    #[cold]
    #[inline(never)]
    fn mend(x: Fq) -> Fq {
        x.reduce_once::<0>()
    }
}
