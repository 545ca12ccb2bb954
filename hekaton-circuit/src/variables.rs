//! The order of the variables and rows of one subcircuit's R1CS (spec: memory-check#variables).
//!
//! | range | variables | count |
//! |---|---|---|
//! | [`ONE`](VariableLayout::ONE) | the constant 1 | 1 |
//! | [`challenges`](VariableLayout::challenges) | the challenge `g` | 1 |
//! | [`addresses`](VariableLayout::addresses) | the scaled addresses `x_j = b a_j` | s |
//! | [`multiplicities`](VariableLayout::multiplicities) | the multiplicities `mu_j` | s |
//! | [`committed`](VariableLayout::committed) | the slot values `v_j`, masks last | s |
//! | [`sum`](VariableLayout::sum) | the subcircuit's term `e` of the LogUp sum | 1 |
//! | [`inverses`](VariableLayout::inverses) | the terms `u_j = mu_j / (g + v_j + x_j)` | s |
//! | [`author`](VariableLayout::author) | the variables of the author's gadgets | the rest |
//!
//! The first four ranges are public, the others form the witness. The rows
//! (spec: memory-check#rows):
//!
//! | rows | constraint |
//! |---|---|
//! | [`SUM_ROW`](VariableLayout::SUM_ROW) | `(sum u_j) 1 = e` |
//! | [`fingerprint_row`](VariableLayout::fingerprint_row) of each slot | `u_j (g + v_j + x_j) = mu_j` |
//! | [`author_rows`](VariableLayout::author_rows) | the constraints of the author's gadgets |
//!
//! Setup cuts its queries by these ranges, so no other module computes an offset of its own.

use crate::memory::Masking;
use std::ops::Range;

/// The order and sizes of the R1CS variables of a subcircuit with `s` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableLayout {
    slots: usize,
    masks: usize,
}

impl VariableLayout {
    /// The variable that is constantly 1.
    pub const ONE: usize = 0;
    /// The first row, `(sum u_j) 1 = e`.
    pub const SUM_ROW: usize = 0;

    /// Describes a subcircuit with `slots` slots, mask slots included.
    ///
    /// # Panics
    /// If `slots` is smaller than the number of mask slots.
    pub const fn new(slots: usize, masking: Masking) -> Self {
        let masks = masking.slots();
        assert!(masks <= slots, "the slots include the mask slots");
        Self { slots, masks }
    }

    /// The number of slots, mask slots included.
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// The number of mask slots, which are the last slots.
    pub const fn mask_slots(&self) -> usize {
        self.masks
    }

    /// The number of slots that the author sees: all but the mask slots.
    pub const fn author_slots(&self) -> usize {
        self.slots - self.masks
    }

    /// The challenges that are public variables of their own: only `g`, since `b` enters through
    /// the scaled addresses (spec: memory-check#preprocessed).
    pub const fn challenges(&self) -> Range<usize> {
        Self::ONE + 1..Self::ONE + 2
    }

    /// The challenge `g`, which every fingerprint contains.
    pub const fn g(&self) -> usize {
        self.challenges().start
    }

    /// The scaled addresses `x_j = b a_j`.
    pub const fn addresses(&self) -> Range<usize> {
        let start = self.challenges().end;
        start..start + self.slots
    }

    /// The multiplicities `mu_j`.
    pub const fn multiplicities(&self) -> Range<usize> {
        let start = self.addresses().end;
        start..start + self.slots
    }

    /// All public variables, the constant 1 included.
    pub const fn public(&self) -> Range<usize> {
        Self::ONE..self.multiplicities().end
    }

    /// The public variables that are fixed by setup and the challenges: all but the constant 1.
    pub const fn preprocessed(&self) -> Range<usize> {
        Self::ONE + 1..self.public().end
    }

    /// The committed variables `v_j`, the values of the slots.
    pub const fn committed(&self) -> Range<usize> {
        let start = self.public().end;
        start..start + self.slots
    }

    /// The committed variables of the mask slots.
    pub const fn masks(&self) -> Range<usize> {
        let end = self.committed().end;
        end - self.masks..end
    }

    /// The variable `e`, the subcircuit's term of the LogUp sum.
    pub const fn sum(&self) -> usize {
        self.committed().end
    }

    /// The inverses of the fingerprints, scaled by the multiplicities: `u_j`.
    pub const fn inverses(&self) -> Range<usize> {
        let start = self.sum() + 1;
        start..start + self.slots
    }

    /// The number of variables of the memory check, which precede the author's.
    pub const fn len(&self) -> usize {
        self.inverses().end
    }

    /// Always false: the constant 1 is always present.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The author's variables, out of `variables` in total.
    pub const fn author(&self, variables: usize) -> Range<usize> {
        self.len()..variables
    }

    /// The variables that are neither public, committed nor the sum: the inverses and the author's
    /// variables, out of `variables` in total.
    pub const fn auxiliary(&self, variables: usize) -> Range<usize> {
        self.sum() + 1..variables
    }

    /// The row `u_j (g + v_j + x_j) = mu_j` of a slot.
    pub const fn fingerprint_row(&self, slot: usize) -> usize {
        Self::SUM_ROW + 1 + slot
    }

    /// The number of rows of the memory check, which precede the author's.
    pub const fn rows(&self) -> usize {
        self.fingerprint_row(self.slots)
    }

    /// The author's rows, out of `constraints` in total.
    pub const fn author_rows(&self, constraints: usize) -> Range<usize> {
        self.rows()..constraints
    }

    /// The slot whose value a variable holds; `None` for a variable that is not committed.
    pub fn slot_of(&self, variable: usize) -> Option<usize> {
        self.committed().contains(&variable).then(|| variable - self.committed().start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges are disjoint and follow each other without gaps.
    #[test]
    fn the_ranges_are_a_partition_in_order() {
        for (slots, masking) in [(0, Masking::Unmasked), (2, Masking::Masked), (5, Masking::Masked)]
        {
            let layout = VariableLayout::new(slots, masking);
            let (one, sum) = (VariableLayout::ONE, layout.sum());
            let ranges = [
                one..one + 1,
                layout.challenges(),
                layout.addresses(),
                layout.multiplicities(),
                layout.committed(),
                sum..sum + 1,
                layout.inverses(),
                layout.author(layout.len() + 7),
            ];
            let all: Vec<usize> = ranges.into_iter().flatten().collect();
            assert_eq!(all, (0..layout.len() + 7).collect::<Vec<_>>());
            assert_eq!(layout.public(), 0..2 + 2 * slots);
            assert_eq!((layout.sum(), layout.len()), (2 + 3 * slots, 3 + 4 * slots));
            assert_eq!(layout.masks().len(), masking.slots());
            assert_eq!(layout.masks().end, layout.sum());
            assert_eq!(layout.rows(), 1 + slots);
            assert_eq!(layout.slot_of(layout.committed().start), (slots > 0).then_some(0));
            assert_eq!(layout.slot_of(layout.sum()), None);
        }
    }
}
