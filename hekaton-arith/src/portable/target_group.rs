//! Multiplications in the target group.

use super::fields::{fp12_conjugate, fp12_cyclotomic_square, fp12_mul};
use crate::scalar::ABS_U;
use crate::sums::{NEGATIVE, Summand};
use ark_bls12_381::FqConfig;
use ark_ff::MontConfig;
use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};

/// An element of the target group, in the form in which trees of products take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row(pub(crate) blst_fp12);

const FP_ZERO: blst_fp = blst_fp { l: [0; 6] };
const FP2_ZERO: blst_fp2 = blst_fp2 { fp: [FP_ZERO; 2] };

impl Summand for Row {
    const ZERO: Self = {
        let one = blst_fp2 { fp: [blst_fp { l: <FqConfig as MontConfig<6>>::R.0 }, FP_ZERO] };
        let zero = blst_fp6 { fp2: [FP2_ZERO; 3] };
        Self(blst_fp12 { fp6: [blst_fp6 { fp2: [one, FP2_ZERO, FP2_ZERO] }, zero] })
    };

    fn add_pairs(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self]) {
        assert_eq!(pairs.len(), out.len(), "one product per pair");
        for ([a, b], out) in pairs.iter().zip(out) {
            *out = Self(fp12_mul(&Self::signed(src, *a).0, &Self::signed(src, *b).0));
        }
    }

    fn signed(src: &[Self], index: u32) -> Self {
        let f = &src[(index & !NEGATIVE) as usize];
        if index & NEGATIVE == 0 { *f } else { Self(fp12_conjugate(&f.0)) }
    }
}

/// The power `f^|u|` of each element `f` of the cyclotomic subgroup.
pub(crate) fn to_abs_u(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    let power = |f: &blst_fp12| {
        // most significant bit first
        (0..63).rev().fold(*f, |power, bit| {
            let square = fp12_cyclotomic_square(&power);
            if ABS_U >> bit & 1 == 1 { fp12_mul(&square, f) } else { square }
        })
    };
    elements.iter().map(power).collect()
}
