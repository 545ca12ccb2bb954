//! Miller loops of eight pairs at a time.
//!
//! Points of the twist are in homogeneous projective coordinates (Costello, Lange and Naehrig; as
//! in Aranha et al., "The realm of the pairings"). Each lane computes a piece of a product, whose
//! pairs share its squarings. A doubling takes 5,010 multiply-adds and the product of two lines
//! 14,766; with 63 doublings, 5 additions and 34 of those products that is about 930,000 for eight
//! pairs, plus a share of the squarings.
//!
//! # Bounds
//! Squares are below 1.3 p, products in Fq2 below 2.3 p. Doubling: e < 32 p, f < 95 p, y < 18 p,
//! coefficients of the tangent below 40 p. Adding: theta < 26 p, lambda < 11 p, h < 13 p,
//! coefficients below 33 p.

use super::field::Fq;
use super::lane::Mask;
use super::tower::{
    Fq2, Fq12, fq2_mul, fq2_square, fq12_mul_by_line, fq12_mul_by_two_lines, fq12_square,
    read_coordinate, write_fq12,
};
use super::tuning::FEW_MILLER_LOOPS;
use crate::points::Pair;
use crate::portable;
use crate::scalar::ABS_U;
use blst::blst_fp12;

/// Pairs per lane that go through the loop together: their points stay in the cache.
const TOGETHER: usize = 32;
/// The cost of the squarings of a loop and of a vector of pairs, in thousands of multiply-adds.
const SQUARINGS: usize = 480;
const PAIRS: usize = 930;

/// Eight pairs in progress.
struct Pairs {
    /// The coordinates of the points of G1.
    p: [Fq; 2],
    q: [Fq2; 2],
    /// The multiple of q computed so far.
    t: [Fq2; 3],
    /// Lanes without a pair: their lines are one.
    empty: Mask,
}

/// The product of the Miller loops of each list of pairs; no point may be at infinity.
///
/// Lists are cut into pieces of one lane each, and eight pieces run together, whichever lists they
/// belong to.
pub(crate) fn miller_loops(products: &[Vec<Pair<'_>>]) -> Vec<blst_fp12> {
    if products.iter().map(Vec::len).sum::<usize>() < FEW_MILLER_LOOPS {
        return portable::miller_loops(products);
    }
    let pieces = |longest: usize| {
        products.iter().map(move |pairs| pairs.len().div_ceil(longest)).sum::<usize>()
    };
    let cost = |longest: &usize| pieces(*longest).div_ceil(8) * (longest * PAIRS + SQUARINGS);
    let longest = (1..=TOGETHER).min_by_key(cost).unwrap_or(TOGETHER);
    let mut all: Vec<(usize, &[Pair<'_>])> = products
        .iter()
        .enumerate()
        .flat_map(|(i, pairs)| pairs.chunks(longest).map(move |piece| (i, piece)))
        .collect();
    // longest pieces first, so that pieces of similar length run together
    all.sort_by_key(|(_, piece)| std::cmp::Reverse(piece.len()));
    let mut out = vec![portable::fp12_one(); products.len()];
    for eight in all.chunks(8) {
        let lanes: Vec<&[Pair<'_>]> = eight.iter().map(|(_, piece)| *piece).collect();
        // SAFETY: the dispatcher calls this backend only where its features are available.
        let values = unsafe { eight_loops(&lanes) };
        for ((product, _), value) in eight.iter().zip(&values) {
            out[*product] = portable::fp12_mul(&out[*product], value);
        }
    }
    out
}

lanes! {
    /// Computes one product for each of up to eight lists of pairs, the first of which must be the
    /// longest.
    fn eight_loops(lists: &[&[Pair<'_>]]) -> [blst_fp12; 8] {
        let mut pairs = Vec::with_capacity(lists[0].len());
        for i in 0..lists[0].len() {
            pairs.push(read(lists, i));
        }
        let mut f = Fq12::one();
        for bit in (0..63).rev() {
            if bit < 62 {
                f = fq12_square(&f);
            }
            for pairs in pairs.chunks_mut(2) {
                f = times_lines(&f, pairs, false);
                if ABS_U >> bit & 1 == 1 {
                    f = times_lines(&f, pairs, true);
                }
            }
        }
        // u is negative
        write_fq12(&f.conjugate())
    }

    /// Doubles or adds the points of one or two pairs and multiplies by the lines.
    fn times_lines(f: &Fq12, pairs: &mut [Pairs], adding: bool) -> Fq12 {
        match pairs {
            [a, b] => {
                let (a, b) = (line(a, adding), line(b, adding));
                fq12_mul_by_two_lines(f, &a, &b)
            }
            [a] => fq12_mul_by_line(f, &line(a, adding)),
            _ => unreachable!("one pair or two"),
        }
    }

    fn line(pair: &mut Pairs, adding: bool) -> [Fq2; 3] {
        let line = if adding { add(&mut pair.t, &pair.q) } else { double(&mut pair.t) };
        at(line, pair)
    }

    /// Reads the i-th pair of each list.
    fn read(lists: &[&[Pair<'_>]], i: usize) -> Pairs {
        let mut words = [[[0; 6]; 8]; 6];
        let mut empty = 0;
        for lane in 0..8 {
            let mut pair = lists[0][i];
            if lane < lists.len() && i < lists[lane].len() {
                pair = lists[lane][i];
            } else {
                empty |= 1 << lane;
            }
            let (a, b) = pair;
            for (to, from) in words.iter_mut().zip([a.x, a.y, b.x[0], b.x[1], b.y[0], b.y[1]]) {
                to[lane] = from;
            }
        }
        let mut c = [Fq::zero(); 6];
        for (c, words) in c.iter_mut().zip(&words) {
            *c = read_coordinate(words);
        }
        let q = [Fq2 { c0: c[2], c1: c[3] }, Fq2 { c0: c[4], c1: c[5] }];
        Pairs { p: [c[0], c[1]], q, t: [q[0], q[1], Fq2::unit()], empty }
    }

    /// Evaluates the line at the points of G1.
    fn at([c0, c1, c4]: [Fq2; 3], pair: &Pairs) -> [Fq2; 3] {
        let line = [c0, c1.scaled(&pair.p[0]), c4.scaled(&pair.p[1])];
        if pair.empty == 0 {
            return line;
        }
        let (one, zero) = (Fq2::unit(), Fq2::zero());
        [line[0].choose(pair.empty, &one), line[1].choose(pair.empty, &zero), line[2].choose(pair.empty, &zero)]
    }

    /// Doubles the points and returns the tangents: three products and six squares in Fq2.
    #[inline(never)]
    fn double(t: &mut [Fq2; 3]) -> [Fq2; 3] {
        let [x, y, z] = &*t;
        let (b, c) = (fq2_square(y), fq2_square(z));
        // 3 b' z^2 with b' = 4 (1 + i)
        let e = c.times_3().times_4().times_xi::<4>();
        let f = e.times_3();
        let h = fq2_square(&y.add(z)).sub::<3>(&b.add(&c));
        let j = fq2_square(x);
        // coordinates are scaled by 4 to avoid halving
        let x3 = fq2_mul(&fq2_mul(x, y).double(), &b.sub::<7>(&f));
        let ee = fq2_square(&e);
        let y3 = fq2_square(&b.add(&f)).sub::<4>(&ee.times_3().times_4());
        let z3 = fq2_mul(&b.times_4(), &h);
        let line = [e.sub::<3>(&b), j.times_3(), Fq2::zero().sub::<4>(&h)];
        *t = [x3, y3, z3];
        line
    }

    /// Adds the points and returns the chords: eleven products and two squares in Fq2.
    #[inline(never)]
    fn add(t: &mut [Fq2; 3], q: &[Fq2; 2]) -> [Fq2; 3] {
        let [x, y, z] = &*t;
        let theta = y.sub::<3>(&fq2_mul(&q[1], z));
        let lambda = x.sub::<3>(&fq2_mul(&q[0], z));
        let (c, d) = (fq2_square(&theta), fq2_square(&lambda));
        let (e, f, g) = (fq2_mul(&lambda, &d), fq2_mul(z, &c), fq2_mul(x, &d));
        let h = e.add(&f).sub::<3>(&g.double());
        let x3 = fq2_mul(&lambda, &h);
        let y3 = fq2_mul(&theta, &g.sub::<4>(&h)).sub::<3>(&fq2_mul(&e, y));
        let z3 = fq2_mul(z, &e);
        let line = [fq2_mul(&theta, &q[0]).sub::<3>(&fq2_mul(&lambda, &q[1])), Fq2::zero().sub::<5>(&theta), lambda];
        *t = [x3, y3, z3];
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fr, G1Point, G2Point, Group};

    #[test]
    fn eight_loops_are_eight_products() {
        if !super::super::available() {
            return;
        }
        let a: Vec<G1Point> = (1..9u64).map(|x| G1Point::generator().mul(&Fr::from(x))).collect();
        let b: Vec<G2Point> =
            (1..9u64).map(|x| G2Point::generator().mul(&Fr::from(x * x))).collect();
        let all: Vec<Pair<'_>> = a.iter().zip(&b).collect();
        for lengths in [vec![1], vec![3, 2, 1], vec![2; 8], vec![8, 7, 6, 5, 4, 3, 2, 1]] {
            let lists: Vec<&[Pair<'_>]> = lengths.iter().map(|n| &all[8 - n..]).collect();
            // SAFETY: the features are available (checked above).
            let got = unsafe { eight_loops(&lists) };
            let expected =
                portable::miller_loops(&lists.iter().map(|list| list.to_vec()).collect::<Vec<_>>());
            let finished = portable::final_exponentiations(&got[..lists.len()]);
            assert_eq!(finished, portable::final_exponentiations(&expected), "{lengths:?} pairs");
        }
    }
}
