//! The order of the variables and rows of one subcircuit's R1CS, described once (spec: memory-check#variables).
//!
//! | range | variables | count |
//! |---|---|---|
//! | [`ONE`](VariableLayout::ONE) | the constant 1 | 1 |
//! | [`challenges`](VariableLayout::challenges) | `g` | 1 |
//! | [`addresses`](VariableLayout::addresses) | `x_j = b a_j` | s |
//! | [`multiplicities`](VariableLayout::multiplicities) | `mu_j` | s |
//! | [`committed`](VariableLayout::committed) | `v_j`, the values of the slots, masks last | s |
//! | [`sum`](VariableLayout::sum) | `e`, the subcircuit's share of the LogUp sum | 1 |
//! | [`inverses`](VariableLayout::inverses) | `u_j = mu_j / (g + v_j + x_j)` | s |
//! | [`author`](VariableLayout::author) | what the author's gadgets allocate | the rest |
//!
//! The first four are public, the others are the witness. Row [`SUM_ROW`](VariableLayout::SUM_ROW) is
//! `(sum u_j) 1 = e`, [`fingerprint_row`](VariableLayout::fingerprint_row)`(j)` is `(g + v_j + x_j) u_j = mu_j`, and
//! [`author_rows`](VariableLayout::author_rows) follow. Everything that depends on this order asks this type.

use crate::memory::Masking;
use std::ops::Range;

/// The order and sizes of the R1CS variables of a subcircuit with `s` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableLayout {
    slots: usize,
    masks: usize,
}

impl VariableLayout {
    /// The constant 1.
    pub const ONE: usize = 0;
    /// The row `(sum u_j) 1 = e`.
    pub const SUM_ROW: usize = 0;

    /// The variables of a subcircuit with `slots` slots, its mask slots included.
    ///
    /// # Panics
    /// When `slots` is smaller than the number of mask slots.
    pub const fn new(slots: usize, masking: Masking) -> Self {
        let masks = masking.slots();
        assert!(masks <= slots, "mask slots are among the slots");
        Self { slots, masks }
    }

    /// The number of slots, masks included.
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// The number of mask slots, the last ones.
    pub const fn mask_slots(&self) -> usize {
        self.masks
    }

    /// The number of slots that the author sees.
    pub const fn author_slots(&self) -> usize {
        self.slots - self.masks
    }

    /// The challenges that are public variables themselves: `g`.
    pub const fn challenges(&self) -> Range<usize> {
        Self::ONE + 1..Self::ONE + 2
    }

    /// `g`, which every fingerprint contains.
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

    /// The public variables that the verifier computes: all but the constant 1.
    pub const fn preprocessed(&self) -> Range<usize> {
        Self::ONE + 1..self.public().end
    }

    /// The committed variables `v_j`: the values of the slots.
    pub const fn committed(&self) -> Range<usize> {
        let start = self.public().end;
        start..start + self.slots
    }

    /// The committed variables of the mask slots.
    pub const fn masks(&self) -> Range<usize> {
        let end = self.committed().end;
        end - self.masks..end
    }

    /// `e`, the subcircuit's share of the LogUp sum.
    pub const fn sum(&self) -> usize {
        self.committed().end
    }

    /// The inverses `u_j`, scaled by the multiplicities.
    pub const fn inverses(&self) -> Range<usize> {
        let start = self.sum() + 1;
        start..start + self.slots
    }

    /// The number of variables of the memory check, which come before the author's.
    pub const fn len(&self) -> usize {
        self.inverses().end
    }

    /// Never: the constant 1 is always there.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The author's variables, of `variables` in all.
    pub const fn author(&self, variables: usize) -> Range<usize> {
        self.len()..variables
    }

    /// What is neither public, committed nor the sum: the inverses and the author's variables, of `variables` in all.
    pub const fn auxiliary(&self, variables: usize) -> Range<usize> {
        self.sum() + 1..variables
    }

    /// The row `(g + v_j + x_j) u_j = mu_j` of slot j.
    pub const fn fingerprint_row(&self, slot: usize) -> usize {
        Self::SUM_ROW + 1 + slot
    }

    /// The number of rows of the memory check, which come before the author's.
    pub const fn rows(&self) -> usize {
        self.fingerprint_row(self.slots)
    }

    /// The author's rows, of `constraints` in all.
    pub const fn author_rows(&self, constraints: usize) -> Range<usize> {
        self.rows()..constraints
    }

    /// The slot whose value is a variable, if it is one.
    pub fn slot_of(&self, variable: usize) -> Option<usize> {
        self.committed().contains(&variable).then(|| variable - self.committed().start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each variable has one role, and the roles follow each other without a gap.
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
