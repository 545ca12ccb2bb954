//! The target group: products eight at a time, order checks of many elements, and final
//! exponentiations.

use super::field::{Fq, ROW_ONE, from_row, negate_row, to_row};
use super::lane::Lane;
use super::tower::{
    Fq12, coordinates, fq12_cyclotomic_square, fq12_mul, from_coordinates, read_fq12, write_fq12,
};
use super::tuning::FEW_POWERS;
use crate::portable;
use crate::scalar::ABS_U;
use crate::sums::{NEGATIVE, Summand};
use blst::{blst_fp, blst_fp12};

/// An element of the target group as limbs times R, at most 2^6 p: the form that trees of products
/// work on.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Row([u64; 96]);

impl Row {
    pub(crate) fn new(f: &blst_fp12) -> Self {
        let mut out = [0; 96];
        for (row, words) in out.as_chunks_mut::<8>().0.iter_mut().zip(coordinates(f)) {
            *row = to_row(&blst_fp { l: words });
        }
        Self(out)
    }

    /// The element that the row stands for; rows come from [`Row::new`], products and conjugations.
    pub(crate) fn element(&self) -> blst_fp12 {
        let mut all = [[0; 6]; 12];
        for (words, row) in all.iter_mut().zip(self.0.as_chunks::<8>().0) {
            *words = from_row(row).l;
        }
        from_coordinates(&all)
    }
}

impl Summand for Row {
    const ZERO: Self = {
        let mut out = [0; 96];
        let mut j = 0;
        while j < 8 {
            out[j] = ROW_ONE[j];
            j += 1;
        }
        Self(out)
    };

    fn signed(src: &[Self], index: u32) -> Self {
        let mut out = src[(index & !NEGATIVE) as usize];
        if index & NEGATIVE != 0 {
            for row in &mut out.0.as_chunks_mut::<8>().0[6..] {
                negate_row(row);
            }
        }
        out
    }

    fn add_pairs(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self]) {
        assert_eq!(pairs.len(), out.len(), "one product per pair");
        for (pairs, out) in pairs.chunks(8).zip(out.chunks_mut(8)) {
            // SAFETY: rows are created only where the features are available.
            unsafe { mul_eight(src, pairs, out) };
        }
    }
}

lanes! {
    fn load(src: &[Row], pairs: &[[u32; 2]], side: usize) -> Fq12 {
        let mut rows = [&src[0]; 8];
        let mut negative = 0;
        for lane in 0..8 {
            let index = pairs[lane.min(pairs.len() - 1)][side];
            rows[lane] = &src[(index & !NEGATIVE) as usize];
            negative |= ((index >> 31) as u8) << lane;
        }
        let mut out = Fq12::one();
        for i in 0..12 {
            let part = |lane: usize| &rows[lane].0.as_chunks::<8>().0[i];
            let columns = Lane::columns([part(0), part(1), part(2), part(3), part(4), part(5), part(6), part(7)]);
            *out.coordinate_mut(i) = Fq::new(columns);
        }
        if negative != 0 {
            let conjugate = out.conjugate();
            for i in 6..12 {
                *out.coordinate_mut(i) = out.coordinate(i).select(negative, conjugate.coordinate(i));
            }
        }
        out
    }

    fn mul_eight(src: &[Row], pairs: &[[u32; 2]], out: &mut [Row]) {
        let product = fq12_mul(&load(src, pairs, 0), &load(src, pairs, 1));
        let mut rows = [Row([0; 96]); 8];
        for i in 0..12 {
            let lanes = Lane::transpose(product.coordinate(i).0);
            for lane in 0..8 {
                lanes[lane].store(&mut rows[lane].0.as_chunks_mut::<8>().0[i]);
            }
        }
        out.copy_from_slice(&rows[..out.len()]);
    }

    /// The power `f^|u|` of eight elements of the cyclotomic subgroup.
    fn powers_of_u(f: &Fq12) -> Fq12 {
        let mut power = *f;
        for bit in (0..63).rev() {
            power = fq12_cyclotomic_square(&power);
            if ABS_U >> bit & 1 == 1 {
                power = fq12_mul(&power, f);
            }
        }
        power
    }

    fn powers(elements: &[blst_fp12; 8]) -> [blst_fp12; 8] {
        write_fq12(&powers_of_u(&read_fq12(elements)))
    }

    /// The Frobenius image `f^(q^power)`, computed for one element at a time.
    fn frobenius(f: &Fq12, power: usize) -> Fq12 {
        read_fq12(&write_fq12(f).map(|f| portable::fp12_frobenius(&f, power)))
    }

    /// The power `f^u`, for f in the cyclotomic subgroup; u is negative.
    fn to_u(f: &Fq12) -> Fq12 {
        powers_of_u(f).conjugate()
    }

    /// The hard part of the final exponentiation: the power (u - 1)^2 (u + q) (u^2 + q^2 - 1) + 3 =
    /// 3 (q^4 - q^2 + 1) / r (Hayashida, Hayasaka and Teruya, eprint 2020/875).
    fn hard_part(elements: &[blst_fp12; 8]) -> [blst_fp12; 8] {
        let f = read_fq12(elements);
        // to the powers u - 1, (u - 1)^2, times u + q, times u^2 + q^2 - 1
        let a = fq12_mul(&to_u(&f), &f.conjugate());
        let b = fq12_mul(&to_u(&a), &a.conjugate());
        let c = fq12_mul(&to_u(&b), &frobenius(&b, 1));
        let d = fq12_mul(&fq12_mul(&to_u(&to_u(&c)), &frobenius(&c, 2)), &c.conjugate());
        write_fq12(&fq12_mul(&d, &fq12_mul(&fq12_cyclotomic_square(&f), &f)))
    }
}

/// Applies a function of eight elements to any number of them.
fn eight_by_eight(
    elements: &[blst_fp12],
    f: impl Fn(&[blst_fp12; 8]) -> [blst_fp12; 8],
) -> Vec<blst_fp12> {
    let mut out = Vec::with_capacity(elements.len());
    for eight in elements.chunks(8) {
        let mut padded = [eight[0]; 8];
        padded[..eight.len()].copy_from_slice(eight);
        out.extend_from_slice(&f(&padded)[..eight.len()]);
    }
    out
}

/// The power `f^|u|` of each element `f` of the cyclotomic subgroup.
pub(crate) fn to_abs_u(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    if elements.len() < FEW_POWERS {
        return portable::to_abs_u(elements);
    }
    // SAFETY: the dispatcher calls this backend only where its features are available.
    eight_by_eight(elements, |eight| unsafe { powers(eight) })
}

/// The easy part of a final exponentiation, to the power (q^6 - 1) (q^2 + 1).
fn easy_part(f: &blst_fp12) -> blst_fp12 {
    let f = portable::fp12_mul(&portable::fp12_conjugate(f), &portable::fp12_inverse(f));
    portable::fp12_mul(&portable::fp12_frobenius(&f, 2), &f)
}

/// Final exponentiations. The easy part is computed for one element at a time.
pub(crate) fn final_exponentiations(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    if elements.len() < FEW_POWERS {
        return portable::final_exponentiations(elements);
    }
    let easy: Vec<blst_fp12> = elements.iter().map(easy_part).collect();
    // SAFETY: the dispatcher calls this backend only where its features are available.
    eight_by_eight(&easy, |eight| unsafe { hard_part(eight) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fr, G1Point, G2Point, Group};

    #[test]
    fn powers_agree_with_the_portable_ones() {
        if !super::super::available() {
            return;
        }
        let g = (G1Point::generator(), G2Point::generator());
        let points: Vec<G1Point> = (0..8u64).map(|i| g.0.mul(&Fr::from(i + 1))).collect();
        let loops =
            portable::miller_loops(&points.iter().map(|p| vec![(p, &g.1)]).collect::<Vec<_>>());
        let loops: [blst_fp12; 8] = loops.try_into().expect("eight");
        // SAFETY: the features are available (checked above).
        let finished = unsafe { hard_part(&loops.each_ref().map(easy_part)) };
        assert_eq!(finished.to_vec(), portable::final_exponentiations(&loops));
        // and with the neutral element among them
        let mut elements = finished;
        elements[3] = portable::fp12_one();
        // SAFETY: the features are available (checked above).
        assert_eq!(unsafe { powers(&elements) }.to_vec(), portable::to_abs_u(&elements));
    }
}
