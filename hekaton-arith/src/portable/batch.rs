//! Batched affine additions: six multiplications per addition instead of eleven, and one inversion
//! per batch.

use super::fields::Field;
use super::points::{Curve, neg};
use crate::sums::NEGATIVE;
use std::ops::Range;

/// The number of additions that share one inversion.
const BATCH: usize = 512;
/// The number of points of G1 and G2 below which multiples are computed one by one (measured: that
/// is faster up to 30 and 8 points with full-size scalars, 60 and 5 with scalars of 128 bits).
pub(crate) const FEW_MULTIPLES_G1: usize = 32;
pub(crate) const FEW_MULTIPLES_G2: usize = 6;
/// The number of pairs ahead for which points are prefetched.
const AHEAD: usize = 16;

/// The point at an index; its negative if the top bit is set.
#[inline]
pub(crate) fn signed<C: Curve + PartialEq>(src: &[C], index: u32) -> C {
    let point = at(src, index);
    if index & NEGATIVE == 0 { *point } else { neg(point) }
}

#[inline]
fn at<C>(src: &[C], index: u32) -> &C {
    &src[(index & !NEGATIVE) as usize]
}

/// Computes `out_i = src[a_i] + src[b_i]` for each pair of indices; an index with its top bit set
/// selects a negative. The addition is complete (equal points, opposite points, infinity).
///
/// Two additions run side by side throughout, because each multiplication waits for the one before
/// it. Results are written directly to their destination: blst writes word by word, and a copy
/// right afterwards would stall until all words are stored.
pub(crate) fn add_pairs<C: Curve + PartialEq>(src: &[C], pairs: &[[u32; 2]], out: &mut [C]) {
    assert_eq!(pairs.len(), out.len(), "one sum per pair");
    let most = BATCH.min(pairs.len());
    let mut denominators = vec![C::Coordinate::ZERO; most];
    // running products, each of every other denominator
    let mut before = vec![C::Coordinate::one(); most + 2];
    let mut special = Vec::new();
    for (pairs, out) in pairs.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        let n = pairs.len();
        special.clear();
        for i in 0..n {
            let denominator = &mut denominators[i];
            if let Some(kind) = set_denominator(src, pairs, i, denominator) {
                special.push((i, kind));
            }
            let (known, next) = before.split_at_mut(i + 2);
            next[0].set_product(&known[i], denominator);
        }
        let mut inverses = [C::Coordinate::ZERO; 2];
        let both = before[n].mul(&before[n + 1]).invert();
        // the chain that ends at the last denominator but one, and the one that ends at the last
        inverses[n % 2].set_product(&both, &before[n + 1]);
        inverses[(n + 1) % 2].set_product(&both, &before[n]);
        let mut work: [Work<C::Coordinate>; 2] = Default::default();
        let mut end = n;
        while end > 0 {
            let start = end.saturating_sub(2);
            for i in (start..end).rev() {
                let (w, inverse) = (&mut work[i % 2], &mut inverses[i % 2]);
                w.slope.set_product(inverse, &before[i]);
                inverse.multiply(&denominators[i]);
                w.set(src, pairs[i]);
            }
            while let Some((i, kind)) = special.pop_if(|(i, _)| *i >= start) {
                let w = &mut work[i % 2];
                w.kind = kind;
                if kind == SumKind::Double {
                    let square = w.xa.square();
                    w.rise = square.add(&square).add(&square);
                }
            }
            finish_sums(src, pairs, start..end, &mut work, out);
            end = start;
        }
    }
}

/// Sets the denominator of the slope of a pair; returns its kind if it is not a plain sum.
#[inline(always)]
fn set_denominator<C: Curve + PartialEq>(
    src: &[C],
    pairs: &[[u32; 2]],
    i: usize,
    denominator: &mut C::Coordinate,
) -> Option<SumKind> {
    if let Some([a, b]) = pairs.get(i + AHEAD) {
        prefetch(at(src, *a));
        prefetch(at(src, *b));
    }
    let [a, b] = pairs[i];
    let (xa, xb) = (at(src, a).x(), at(src, b).x());
    denominator.set_difference(xb, xa);
    // Infinity has x = 0. Other points with it are rare, so the slow path tells them apart.
    if !(denominator.is_zero() || xa.is_zero() || xb.is_zero()) {
        return None;
    }
    let kind = SumKind::of(&signed(src, a), &signed(src, b));
    *denominator = match kind {
        SumKind::Plain => *denominator,
        SumKind::Double => at(src, a).y().add(at(src, a).y()),
        // A zero would make the product of the whole batch zero.
        SumKind::First | SumKind::Second | SumKind::Zero => C::Coordinate::one(),
    };
    if kind == SumKind::Double && a & NEGATIVE != 0 {
        *denominator = denominator.neg();
    }
    Some(kind)
}

/// Computes one or two sums from the inverses of their denominators, which are in `slope`, one step of both
/// after the other.
#[inline(always)]
fn finish_sums<C: Curve + PartialEq>(
    src: &[C],
    pairs: &[[u32; 2]],
    some: Range<usize>,
    work: &mut [Work<C::Coordinate>; 2],
    out: &mut [C],
) {
    for i in some.clone() {
        let w = &mut work[i % 2];
        w.slope.multiply(&w.rise);
    }
    for i in some.clone() {
        let w = &mut work[i % 2];
        w.x.set_square(&w.slope);
    }
    for i in some.clone() {
        let w = &mut work[i % 2];
        w.x.subtract(&w.xa);
        w.x.subtract(&w.xb);
        w.run.set_difference(&w.xa, &w.x);
    }
    for i in some.clone() {
        let w = &mut work[i % 2];
        w.y.set_product(&w.slope, &w.run);
    }
    for i in some {
        let w = &mut work[i % 2];
        w.y.subtract(&w.ya);
        out[i] = match w.kind {
            SumKind::Plain | SumKind::Double => C::from_coordinates(w.x, w.y),
            SumKind::First => signed(src, pairs[i][0]),
            SumKind::Second => signed(src, pairs[i][1]),
            SumKind::Zero => C::ZERO,
        };
    }
}

/// Prefetches the cache lines of a point.
#[inline]
fn prefetch<C>(point: &C) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(point).cast::<i8>();
        for line in (0..size_of::<C>()).step_by(64) {
            // SAFETY: every x86-64 processor has the instruction, and it accepts any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line)) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = point;
}

/// The way in which a sum is computed: by the slope formula or by one of its exceptions.
#[derive(Clone, Copy, PartialEq)]
enum SumKind {
    Plain,
    /// Equal points: the slope is that of the tangent.
    Double,
    /// The second point is infinity: the sum is the first.
    First,
    Second,
    /// The sum is infinity.
    Zero,
}

impl SumKind {
    fn of<C: Curve + PartialEq>(a: &C, b: &C) -> Self {
        if *b == C::ZERO {
            if *a == C::ZERO { Self::Zero } else { Self::First }
        } else if *a == C::ZERO {
            Self::Second
        } else if a.x() != b.x() {
            Self::Plain
        } else if a.y() == b.y() && !a.y().is_zero() {
            Self::Double
        } else {
            Self::Zero
        }
    }
}

/// One of two additions in progress.
struct Work<F> {
    kind: SumKind,
    xa: F,
    ya: F,
    xb: F,
    rise: F,
    slope: F,
    run: F,
    x: F,
    y: F,
}

impl<F: Field> Default for Work<F> {
    fn default() -> Self {
        let zero = F::ZERO;
        Self {
            kind: SumKind::Plain,
            xa: zero,
            ya: zero,
            xb: zero,
            rise: zero,
            slope: zero,
            run: zero,
            x: zero,
            y: zero,
        }
    }
}

impl<F: Field> Work<F> {
    #[inline]
    fn set<C: Curve<Coordinate = F>>(&mut self, src: &[C], [a, b]: [u32; 2]) {
        let (pa, pb) = (at(src, a), at(src, b));
        (self.kind, self.xa, self.xb) = (SumKind::Plain, *pa.x(), *pb.x());
        self.ya.set_signed(pa.y(), a & NEGATIVE != 0);
        self.rise.set_signed(pb.y(), b & NEGATIVE != 0);
        self.rise.subtract(&self.ya);
    }
}
