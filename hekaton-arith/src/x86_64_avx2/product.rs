//! Products of eight elements of Fq at once, exact in doubles.
//!
//! # Method
//! The products of limbs `a_i b_j` that belong to a column i + j are accumulated in two doubles.
//! The first, s, starts at C = 3 2^99: there doubles are 2^48 apart, so `s' = s + a b`, a fused
//! multiply-add, adds a multiple of 2^48 near a b. The second, l, receives the remainder,
//! `a b + (s - s')`, which is exact because it is an integer of at most 2^47. At the end of a
//! column its excess over C, `s - C`, goes to the next column, divided by 2^48. A product of limbs
//! takes five instructions: a copy of s, two fused multiply-adds, a subtraction and an addition.
//!
//! The reduction takes the limb of a column, rounded to nearest, as its q: with k = -1/p mod 2^48
//! as a signed number, k p + 1 = 2^48 n, so `t - q + 2^48 q n = t + q k p` has no limb left there.
//! k has only 34 bits, so n is below p / 2^13. The last row adds q k mod 2^48 times p, so that the
//! result is small.
//!
//! # Bounds
//! Limbs of operands are within 2^47 + 2^4, so products are within 2^94 + 2^52 and a column's s is
//! within 2^97 + 2^55 of C: far from where doubles are 2^49 apart (2^99 from C). l is within 8
//! 2^47, and the carry from the column below within 2^49 + 2^7, so a limb of a [`Wide`] is below 6
//! 2^48. Sums of [settled](Wide::settled) values stay within 2^4 2^48 (at most seven terms of 2^47
//! are summed), and sums of three others, as a product in Fq2 uses them, within 18 2^48. A
//! reduction adds 8 2^47 and less than 2^48 to them: less than 2^5 2^48, up to which integers are
//! exact. What remains of such a sum of three may have limbs a little above 2^47 + 2^4, and is
//! [settled](reduce_lifted) at once.
//!
//! The result of a reduction differs from `t / R` by at most `(1/2 + 2^-12) p`: the last q is at
//! most 2^47 of 2^48, and the others times k p are below 2^47 2^(48 6) 2^34 p / R = 2^-15 p. For a
//! product of numbers below p, `p / R = 2^-3.2` p is added to that.

// Loops are unrolled with conditions on constants, some of which are trivial in places.
#![allow(clippy::absurd_extreme_comparisons, clippy::out_of_bounds_indexing)]

use super::field::{BALANCED_P, Fq, P, ROUND, TWO_TO_48, TWO_TO_MINUS_48, balanced, normalise};
use super::lane::Lane;
use super::loose::Loose;
use ark_bls12_381::FqConfig;
use ark_ff::MontConfig;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Bytes per lane.
const LANE: usize = size_of::<Lane>();

/// The inverse k = -1/p mod 2^48, as the signed number nearest to zero.
const K: i64 = (<FqConfig as MontConfig<6>>::INV << 16) as i64 >> 16;

/// The quotient n = (k p + 1) / 2^48, in balanced limbs.
#[allow(clippy::cast_possible_truncation, reason = "n is below p / 2^13, so its last limb fits")]
const N: [f64; 8] = {
    let mut limbs = [0; 8];
    let mut carry = 1i128;
    let mut j = 0;
    while j < 8 {
        let t = P[j] as i128 * K as i128 + carry;
        if j > 0 {
            limbs[j - 1] = (t & ((1 << 48) - 1)) as i64;
        } else {
            assert!(t & ((1 << 48) - 1) == 0, "k p + 1 is a multiple of 2^48");
        }
        carry = t >> 48;
        j += 1;
    }
    limbs[7] = carry as i64;
    balanced(limbs)
};

/// Unrolls a loop: limbs stay in registers only if all indices are known.
macro_rules! each {
    ($i:ident in $($at:literal)*, $body:block) => {
        $({
            #[allow(non_upper_case_globals)]
            const $i: usize = $at;
            $body
        })*
    };
}

/// Adds `a b` to `s, l`, where b is `offset` bytes after an address. One block, because the
/// compiler would reorder the instructions and then run out of registers.
macro_rules! accumulate {
    ($s:expr, $l:expr, $a:expr, $b:expr, $offset:expr) => {
        // SAFETY: four doubles are readable there, aligned or not; nothing else is read and nothing
        // is written.
        unsafe {
            asm!(
                "vmovapd {t}, {s}",
                "vfmadd231pd {s}, {a}, [{b} + {offset}]",
                "vsubpd {t}, {t}, {s}",
                "vfmadd231pd {t}, {a}, [{b} + {offset}]",
                "vaddpd {l}, {l}, {t}",
                s = inout(ymm_reg) $s,
                l = inout(ymm_reg) $l,
                t = out(ymm_reg) _,
                a = in(ymm_reg) $a,
                b = in(reg) $b,
                offset = const $offset,
                options(nostack, readonly),
            )
        }
    };
}

/// Same as `accumulate!` for the first product of a column: `s, l = C + a b`.
macro_rules! begin {
    ($s:expr, $l:expr, $c:expr, $a:expr, $b:expr, $offset:expr) => {
        // SAFETY: four doubles are readable there, aligned or not; nothing else is read and nothing
        // is written.
        unsafe {
            asm!(
                "vmovapd {s}, {c}",
                "vfmadd231pd {s}, {a}, [{b} + {offset}]",
                "vsubpd {l}, {c}, {s}",
                "vfmadd231pd {l}, {a}, [{b} + {offset}]",
                s = out(ymm_reg) $s,
                l = out(ymm_reg) $l,
                c = in(ymm_reg) $c,
                a = in(ymm_reg) $a,
                b = in(reg) $b,
                offset = const $offset,
                options(nostack, readonly),
            )
        }
    };
}

/// The address of the first or the second half of the lanes of an array.
#[inline(always)]
fn half<const N: usize>(lanes: &[Lane; N], h: usize) -> *const __m256i {
    lanes.as_ptr().cast::<__m256i>().wrapping_add(h)
}

/// Writes half a limb.
#[inline(always)]
fn put(out: &mut MaybeUninit<Wide>, limb: usize, h: usize, x: __m256d) {
    assert!(limb < 16 && h < 2);
    // SAFETY: a wide product is sixteen lanes of two registers, and the indices are within it, as
    // asserted.
    unsafe { out.as_mut_ptr().cast::<__m256d>().add(2 * limb + h).write(x) };
}

/// A product before its reduction, or a sum of such products: sixteen limbs with integer values.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Wide([Lane; 16]);

/// A wide product of elements of Fq.
pub(crate) type WideFq = Wide;

impl Wide {
    #[inline(always)]
    pub(crate) fn add(&self, b: &Self) -> Self {
        let mut t = self.0;
        for j in 0..16 {
            t[j] = t[j].plus(b.0[j]);
        }
        Self(t)
    }

    #[inline(always)]
    pub(crate) fn sub(&self, b: &Self) -> Self {
        let mut t = self.0;
        for j in 0..16 {
            t[j] = t[j].minus(b.0[j]);
        }
        Self(t)
    }

    /// Asserts, in debug builds, that limbs are within the bound that a reduction requires.
    #[inline(always)]
    fn check(&self) {
        if cfg!(debug_assertions) {
            for limb in self.0 {
                let mut words = [0; 8];
                limb.store(&mut words);
                let within = words.iter().all(|x| f64::from_bits(*x).abs() <= 18.0 * TWO_TO_48);
                assert!(within, "a limb of a product has left its bound");
            }
        }
    }

    /// The same number with limbs within 2^47 + 2^4 (except for the last, which is small), which
    /// may be summed.
    #[inline(always)]
    pub(crate) fn settled(&self) -> Self {
        let mut t = self.0;
        let (round, down) = (Lane::double(ROUND), Lane::double(TWO_TO_MINUS_48));
        let mut below = Lane::splat(0);
        for j in 0..15 {
            let carry = t[j].plus(round).minus(round);
            t[j] = below.times_plus(down, t[j].minus(carry));
            below = carry;
        }
        t[15] = below.times_plus(down, t[15]);
        Self(t)
    }
}

lanes! {
    /// Computes `a b` in 64 products of limbs. Writes all of `out`.
    #[inline(never)]
    fn product_into(a: &Fq, b: &Fq, out: &mut MaybeUninit<Wide>) {
        a.check();
        b.check();
        let (round, down) = (_mm256_set1_pd(ROUND), _mm256_set1_pd(TWO_TO_MINUS_48));
        for h in 0..2 {
            let mut x = [round; 8];
            for j in 0..8 {
                x[j] = _mm256_castsi256_pd(a.0[j].0[h]);
            }
            let b = half(&b.0, h);
            let mut above = _mm256_setzero_pd();
            // two columns alternate: one proceeds while the other waits
            each!(i in 0 2 4 6 8 10 12 14, {
                let (mut s, mut l) = ([round; 2], [_mm256_setzero_pd(); 2]);
                each!(j in 0 1 2 3 4 5 6 7, {
                    each!(e in 0 1, {
                        const COLUMN: usize = i + e;
                        const AT: usize = COLUMN.saturating_sub(7) + j;
                        if COLUMN < 15 && j == 0 {
                            begin!(s[e], l[e], round, x[AT], b, LANE * COLUMN.saturating_sub(AT));
                        } else if COLUMN < 15 && AT <= COLUMN && AT < 8 {
                            accumulate!(s[e], l[e], x[AT], b, LANE * COLUMN.saturating_sub(AT));
                        }
                    });
                });
                put(out, i, h, _mm256_fmadd_pd(above, down, l[0]));
                above = _mm256_sub_pd(s[0], round);
                put(out, i + 1, h, _mm256_fmadd_pd(above, down, l[1]));
                above = _mm256_sub_pd(s[1], round);
            });
        }
    }

    /// Computes `a^2` in 36 products of limbs. Writes all of `out`.
    #[inline(never)]
    fn square_into(a: &Fq, out: &mut MaybeUninit<Wide>) {
        a.check();
        let mut twice = a.0;
        for j in 0..8 {
            twice[j] = a.0[j].plus(a.0[j]);
        }
        let (round, down) = (_mm256_set1_pd(ROUND), _mm256_set1_pd(TWO_TO_MINUS_48));
        for h in 0..2 {
            let mut x = [round; 8];
            for j in 0..8 {
                x[j] = _mm256_castsi256_pd(a.0[j].0[h]);
            }
            let (once, twice) = (half(&a.0, h), half(&twice, h));
            let mut above = _mm256_setzero_pd();
            each!(i in 0 2 4 6 8 10 12 14, {
                let (mut s, mut l) = ([round; 2], [_mm256_setzero_pd(); 2]);
                each!(j in 0 1 2 3, {
                    each!(e in 0 1, {
                        const COLUMN: usize = i + e;
                        const AT: usize = COLUMN.saturating_sub(7) + j;
                        if COLUMN < 15 && 2 * AT < COLUMN && j == 0 {
                            begin!(s[e], l[e], round, x[AT], twice, LANE * COLUMN.saturating_sub(AT));
                        } else if COLUMN < 15 && 2 * AT < COLUMN {
                            accumulate!(s[e], l[e], x[AT], twice, LANE * COLUMN.saturating_sub(AT));
                        } else if 2 * AT == COLUMN {
                            accumulate!(s[e], l[e], x[AT], once, LANE * AT);
                        }
                    });
                });
                put(out, i, h, _mm256_fmadd_pd(above, down, l[0]));
                above = _mm256_sub_pd(s[0], round);
                put(out, i + 1, h, _mm256_fmadd_pd(above, down, l[1]));
                above = _mm256_sub_pd(s[1], round);
            });
        }
    }

    /// Computes `t / R mod p` in 64 products of limbs and one more.
    #[inline(never)]
    fn reduce(t: &Wide) -> Fq {
        let mut out = Fq::zero();
        reduce_all([t], [&mut out]);
        out
    }

    /// Two reductions side by side: each waits for its q while the other proceeds.
    #[inline(never)]
    fn reduce_two(t: &Wide, s: &Wide) -> [Fq; 2] {
        let mut out = [Fq::zero(); 2];
        let [a, b] = &mut out;
        reduce_all([t, s], [a, b]);
        out
    }

    /// Reductions, with both halves of the lanes side by side.
    // One function: the columns are unrolled over accumulators that must stay in registers.
    #[inline]
    fn reduce_all<const W: usize>(wide: [&Wide; W], out: [&mut Fq; W]) {
        for wide in wide {
            wide.check();
        }
        let (round, down) = (_mm256_set1_pd(ROUND), _mm256_set1_pd(TWO_TO_MINUS_48));
        let mut q = [[Lane::splat(0); 8]; W];
        // carries to the next column: of the sums in s, and of a limb that is cancelled
        let (mut above, mut carry) = ([[_mm256_setzero_pd(); 2]; W], [[_mm256_setzero_pd(); 2]; W]);
        each!(i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15, {
            let (mut s, mut l) = ([[round; 2]; W], [[round; 2]; W]);
            for w in 0..W {
                for h in 0..2 {
                    l[w][h] = _mm256_fmadd_pd(above[w][h], down, _mm256_castsi256_pd(wide[w].0[i].0[h]));
                    if 0 < i && i < 9 {
                        l[w][h] = _mm256_fmadd_pd(carry[w][h], down, l[w][h]);
                    }
                }
            }
            each!(row in 0 1 2 3 4 5 6, {
                if row < i && i - row <= 8 {
                    let n = _mm256_set1_pd(N[i.wrapping_sub(1 + row) % 8]);
                    for w in 0..W {
                        for h in 0..2 {
                            accumulate!(s[w][h], l[w][h], n, half(&q[w], h), LANE * row);
                        }
                    }
                }
            });
            for w in 0..W {
                for h in 0..2 {
                    if i < 8 {
                        carry[w][h] = _mm256_sub_pd(_mm256_add_pd(l[w][h], round), round);
                        let mut limb = _mm256_sub_pd(l[w][h], carry[w][h]);
                        if i == 7 {
                            // q k modulo 2^48
                            let k = _mm256_set1_pd(K as f64);
                            let most = _mm256_sub_pd(round, _mm256_fmadd_pd(limb, k, round));
                            limb = _mm256_fmadd_pd(limb, k, most);
                        }
                        q[w][i % 8].0[h] = _mm256_castpd_si256(limb);
                    }
                }
            }
            if 7 <= i && i < 15 {
                let p = _mm256_set1_pd(BALANCED_P[i.wrapping_sub(7) % 8]);
                for w in 0..W {
                    for h in 0..2 {
                        accumulate!(s[w][h], l[w][h], p, half(&q[w], h), LANE * 7);
                    }
                }
            }
            for w in 0..W {
                for h in 0..2 {
                    above[w][h] = _mm256_sub_pd(s[w][h], round);
                    if i == 7 {
                        carry[w][h] = l[w][h];
                    } else if i > 7 {
                        out[w].0[i % 8].0[h] = _mm256_castpd_si256(l[w][h]);
                    }
                }
            }
        });
        for out in out {
            normalise::<false>(out);
        }
    }

    /// Computes `a b / R mod p`.
    #[inline(never)]
    pub(crate) fn mul(a: &Fq, b: &Fq) -> Fq {
        let mut t = MaybeUninit::uninit();
        product_into(a, b, &mut t);
        // SAFETY: `product_into` wrote every limb.
        reduce(unsafe { t.assume_init_ref() })
    }

    /// Computes two products.
    #[inline(never)]
    pub(crate) fn mul_two([a, b]: [&Fq; 2], [c, d]: [&Fq; 2]) -> [Fq; 2] {
        let (mut t, mut s) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        product_into(a, b, &mut t);
        product_into(c, d, &mut s);
        // SAFETY: `product_into` wrote every limb of both.
        unsafe { reduce_two(t.assume_init_ref(), s.assume_init_ref()) }
    }

    /// Computes `a b` before the reduction.
    #[inline]
    pub(crate) fn mul_wide(a: &Fq, b: &Fq) -> Wide {
        let mut t = MaybeUninit::uninit();
        product_into(a, b, &mut t);
        // SAFETY: `product_into` wrote every limb.
        unsafe { t.assume_init() }
    }

    /// Computes `a^2 / R mod p`.
    #[inline(never)]
    pub(crate) fn square(a: &Fq) -> Fq {
        let mut t = MaybeUninit::uninit();
        square_into(a, &mut t);
        // SAFETY: `square_into` wrote every limb.
        reduce(unsafe { t.assume_init_ref() })
    }

    /// Computes `t / R mod p` of two numbers, which may be negative.
    #[inline(never)]
    pub(crate) fn reduce_lifted(t: &Wide, s: &Wide) -> [Fq; 2] {
        let mut out = reduce_two(t, s);
        normalise::<true>(&mut out[0]);
        normalise::<true>(&mut out[1]);
        out
    }
}

/// Same as [`mul`], for use in sums of products.
#[inline(always)]
pub(crate) fn mul_loose(a: &Fq, b: &Fq) -> Loose {
    // SAFETY: lanes exist only where AVX2 and FMA do.
    Loose(unsafe { mul(a, b) })
}

/// Same as [`square`], for use in sums of products.
#[inline(always)]
pub(crate) fn square_loose(a: &Fq) -> Loose {
    // SAFETY: lanes exist only where AVX2 and FMA do.
    Loose(unsafe { square(a) })
}

/// Computes two products.
#[inline(always)]
pub(crate) fn products_loose(a: [&Fq; 2], b: [&Fq; 2]) -> [Loose; 2] {
    // SAFETY: lanes exist only where AVX2 and FMA do.
    unsafe { mul_two(a, b) }.map(Loose)
}

/// Computes `(a0 + a1 i) (b0 + b1 i) / R` in three products and two reductions.
#[inline(always)]
pub(crate) fn complex_product([a0, a1]: [&Fq; 2], [b0, b1]: [&Fq; 2]) -> [Loose; 2] {
    // SAFETY: lanes exist only where AVX2 and FMA do.
    unsafe {
        let (v0, v1) = (mul_wide(a0, b0), mul_wide(a1, b1));
        let sums = mul_wide(&a0.add(a1), &b0.add(b1));
        reduce_lifted(&v0.sub(&v1), &sums.sub(&v0).sub(&v1)).map(Loose)
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::{from_row, to_row};
    use super::super::tower::{Fq2, Fq6, fq6_mul};
    use super::*;
    use crate::lanes::power_of_two;
    use crate::portable::Field;
    use blst::blst_fp;

    /// The limbs of elements at the bounds and in between.
    fn edges() -> Vec<[u64; 8]> {
        let (most, top) = (((1u64 << 47) + (1 << 4)) as f64, P[7] as f64 - 1.0);
        let mut out = vec![[0.0; 8], BALANCED_P, BALANCED_P.map(|x| -x)];
        // all limbs as large as they may be, with equal, opposite and alternating signs; ties in
        // rounding
        for limb in [most, most - 1.0, (1u64 << 47) as f64, (1u64 << 47) as f64 - 1.0, 1.0] {
            for signs in
                [0b0000_0000u32, 0b1111_1111, 0b0101_0101, 0b0111_1111, 0b1000_0000, 0b0011_0011]
            {
                let signed = |j: usize, x: f64| if signs >> j & 1 == 1 { -x } else { x };
                out.push(std::array::from_fn(|j| signed(j, if j < 7 { limb } else { top })));
                out.push(std::array::from_fn(|j| signed(j, if j < 7 { limb } else { 0.0 })));
            }
        }
        for j in 0..8 {
            out.push(std::array::from_fn(|i| f64::from(u8::from(i == j))));
        }
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 16) as f64 - (1u64 << 47) as f64
        };
        for _ in 0..20 {
            out.push(std::array::from_fn(|j| {
                if j < 7 { random() } else { (random() / 8.0).trunc() % top }
            }));
        }
        out.into_iter().map(|x| x.map(|limb| (limb + 0.0).to_bits())).collect()
    }

    fn rows(x: &Fq) -> [[u64; 8]; 8] {
        let mut out = [[0; 8]; 8];
        for (row, lane) in out.iter_mut().zip(Lane::transpose(x.0)) {
            lane.store(row);
        }
        out
    }

    fn gather(rows: [&[u64; 8]; 8]) -> Fq {
        Fq::new(Lane::columns(rows))
    }

    /// The words of an element.
    fn words(x: &Fq) -> [[u64; 6]; 8] {
        let mut out = [[0; 6]; 8];
        for (j, column) in x.words().iter().enumerate() {
            let mut lanes = [0; 8];
            column.store(&mut lanes);
            for (words, lane) in out.iter_mut().zip(lanes) {
                words[j] = lane;
            }
        }
        out
    }

    #[test]
    fn products_at_the_bounds() {
        if !super::super::available() {
            return;
        }
        let edges = edges();
        // SAFETY: the features are available (checked above), and `square_into` writes every limb.
        let square_wide = |x: &Fq| unsafe {
            let mut t = MaybeUninit::uninit();
            square_into(x, &mut t);
            t.assume_init()
        };
        for (i, a) in edges.iter().enumerate() {
            // all pairs, eight at a time, each lane with a different partner
            for first in (0..edges.len()).step_by(8) {
                let b: [&[u64; 8]; 8] =
                    std::array::from_fn(|lane| &edges[(first + lane + i) % edges.len()]);
                let (x, y) = (gather([a; 8]), gather(b));
                // SAFETY: the features are available (checked above).
                let got = unsafe {
                    let difference = mul_wide(&x, &y).sub(&square_wide(&y));
                    // sixteen products of both signs
                    let mut sum = difference.settled();
                    for _ in 0..3 {
                        sum = sum.add(&sum);
                    }
                    let unsettled = difference.sub(&square_wide(&x));
                    let in_turn = reduce_lifted(&unsettled, &sum);
                    let [sum, unsettled] = reduce_lifted(&sum, &unsettled);
                    assert_eq!(
                        in_turn.map(|z| rows(&z)),
                        [rows(&unsettled), rows(&sum)],
                        "one is as settled as the other"
                    );
                    [mul(&x, &y), square(&y), x.add(&y), x.sub::<3>(&y), sum, unsettled]
                };
                let a = from_row(a);
                for z in &got {
                    z.check();
                }
                let of_words = got.map(|z| words(&z));
                let got = got.map(|z| rows(&z));
                for lane in 0..8 {
                    let b = from_row(b[lane]);
                    let difference = a.mul(&b).sub(&b.square());
                    let eight = (0..3).fold(difference, |x, _| x.add(&x));
                    let unsettled = difference.sub(&a.square());
                    let expected = [a.mul(&b), b.square(), a.add(&b), a.sub(&b), eight, unsettled];
                    for ((got, words), expected) in got.iter().zip(&of_words).zip(expected) {
                        assert_eq!(from_row(&got[lane]), expected);
                        assert_eq!(words[lane], expected.l, "reduced, in the form of words");
                        // between -p and p: the last limb shows it, up to one
                        assert!(f64::from_bits(got[lane][7]).abs() <= P[7] as f64 + 1.0);
                    }
                }
            }
        }
    }

    /// Operands whose products have a low part of nearly 2^47 in every column, all of one sign, so
    /// that limbs of sums are as large as possible: without carries in between they would exceed
    /// 2^53.
    #[test]
    fn the_largest_sums_in_fq6() {
        const M: i64 = 1 << 48;
        if !super::super::available() {
            return;
        }
        // a in the range with a b a little less than 2^47, modulo 2^48, for an odd b
        let partner = |b: i64, range: std::ops::Range<i64>| {
            let inverse =
                (0..6).fold(1i64, |x, _| x.wrapping_mul(2i64.wrapping_sub(b.wrapping_mul(x))));
            let a = (1..1i64 << 20).map(|d| ((1i64 << 47) - d).wrapping_mul(inverse) & (M - 1));
            a.into_iter().find(|a| range.contains(a) && a & 1 == 1).expect("there is one")
        };
        let (most, least) = (1i64 << 47, (1i64 << 47) - (1 << 40));
        for (seed, lane) in (0..10).zip((0..8).cycle()) {
            let y = most - 12345 - 2 * seed * 1_000_003;
            let x = partner(y, least..most);
            // the last limbs, each paired with the other's lower ones
            let (last_x, last_y) = (partner(y, 0..P[7]), partner(x, 0..P[7]));
            let row = |limb: i64, last: i64| -> [u64; 8] {
                std::array::from_fn(|j| if j < 7 { limb as f64 } else { last as f64 }.to_bits())
            };
            let (x, y) = (row(x, last_x), row(y, last_y));
            let (a, b) = (gather([&x; 8]), gather([&y; 8]));
            let (minus_a, minus_b) = (a.negated(u8::MAX), b.negated(u8::MAX));
            let a1 = Fq2 { c0: a, c1: minus_a };
            let minus_a1 = Fq2 { c0: minus_a, c1: a };
            let b1 = Fq2 { c0: b, c1: b };
            let minus_b1 = Fq2 { c0: minus_b, c1: minus_b };
            // SAFETY: the features are available (checked above).
            let got = unsafe { fq6_mul(&Fq6([minus_a1, a1, minus_a1]), &Fq6([b1, b1, minus_b1])) };
            let xy = from_row(&x).mul(&from_row(&y));
            let two = xy.add(&xy);
            let four = two.add(&two);
            let got = [&got.0[0].c0, &got.0[0].c1].map(|x| words(x)[lane]);
            assert_eq!(got, [four.add(&two).neg().l, four.neg().l], "-6 x y and -4 x y");
        }
    }

    #[test]
    fn words_and_rows_agree() {
        if !super::super::available() {
            return;
        }
        let one = blst_fp { l: power_of_two(384) };
        let most = blst_fp::default().sub(&one);
        for x in [
            blst_fp::default(),
            one,
            most,
            one.add(&one),
            blst_fp { l: power_of_two(700) },
            blst_fp { l: [1, 0, 0, 0, 0, 0] },
        ] {
            let columns = x.l.map(Lane::splat);
            let there = Fq::from_words(&columns).carried();
            there.check();
            assert_eq!(rows(&there)[5], to_row(&x));
            assert_eq!(words(&there)[2], x.l);
            assert_eq!(from_row(&to_row(&x)), x);
            let mut opposite = to_row(&x);
            super::super::field::negate_row(&mut opposite);
            assert_eq!(from_row(&opposite), x.neg());
            assert_eq!(there.canonical().equal(&Fq::from_words(&columns)), u8::MAX);
        }
        let row: [u64; 8] = BALANCED_P.map(f64::to_bits);
        assert_eq!(words(&gather([&row; 8]).add(&Fq::zero()))[0], [0; 6], "p is zero");
    }

    #[test]
    fn the_constants_are_what_they_should_be() {
        // 2^48 n = k p + 1
        let n = from_row(&N.map(f64::to_bits));
        let one = from_row(&std::array::from_fn(|j| if j == 0 { 1f64.to_bits() } else { 0 }));
        let shift = from_row(&std::array::from_fn(|j| if j == 1 { 1f64.to_bits() } else { 0 }));
        assert_eq!(n.mul(&shift), one.mul(&one));
        assert!(K.unsigned_abs() < 1 << 34 && N[7].abs() < f64::from(1u32 << 31));
        assert_eq!((K.wrapping_mul(P[0])) & ((1 << 48) - 1), (1 << 48) - 1);
    }
}
