//! Batched affine additions in G1: in this backend, those of [`super::batch`].

use super::batch::{KEPT, add_batch};
use super::field::Fq;
use super::lane::Lane;
use super::pairs::Point;
use super::tuning::BATCH_G1;
use crate::points::G1Point;

impl Point for G1Point {
    type Lanes = Fq;
    const BATCH: usize = BATCH_G1;
    const KEPT: usize = KEPT;

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Lane]) {
        // SAFETY: the caller guarantees the features of this backend.
        unsafe { add_batch(src, pairs, out, scratch) }
    }
}
