//! The order of the variables and rows of one subcircuit's R1CS (spec: memory-check#variables,
//! buses#variables).
//!
//! | range | variables | count |
//! |---|---|---|
//! | [`ONE`](VariableLayout::ONE) | the constant 1 | 1 |
//! | [`challenges`](VariableLayout::challenges) | `g`; in circuits with buses then `b_T`, `b_V` | 1 or 3 |
//! | [`addresses`](VariableLayout::addresses) | the scaled addresses `x_j = b a_j` | s |
//! | [`multiplicities`](VariableLayout::multiplicities) | the multiplicities `mu_j` | s |
//! | [`parameters`](VariableLayout::parameters) | constants of the instance, `c0` | p |
//! | [`pairs`](VariableLayout::pairs) | constant entries of the instance, `c0 + b_V c2` | q |
//! | [`slot_values`](VariableLayout::slot_values) | the slot values `v_j`, masks last | s |
//! | [`marked`](VariableLayout::marked) | the author's committed values | m |
//! | [`sum`](VariableLayout::sum) | the subcircuit's term `e` of the LogUp sum | 1 |
//! | [`inverses`](VariableLayout::inverses) | the terms `u = mu / F` of slots, then of entries | s + E |
//! | [`scaled`](VariableLayout::scaled) | the values of entries, scaled: `y = b_V v` | Y |
//! | [`author`](VariableLayout::author) | the variables of the author's gadgets | the rest |
//!
//! Those up to the pairs are public, the others form the witness. The rows (spec: memory-check#rows,
//! buses#rows):
//!
//! | rows | constraint |
//! |---|---|
//! | [`SUM_ROW`](VariableLayout::SUM_ROW) | `(sum u) 1 = e` |
//! | [`fingerprint_row`](VariableLayout::fingerprint_row) of each slot | `u_j (g + v_j + x_j) = mu_j` |
//! | [`entry_row`](VariableLayout::entry_row) of each entry | `u (g + b_T T + k + y) = mu` |
//! | [`scaled_row`](VariableLayout::scaled_row) of each scaled value | `v b_V = y` |
//! | [`author_rows`](VariableLayout::author_rows) | the constraints of the author's gadgets |
//!
//! Setup cuts its queries by these ranges, so no other module computes an offset of its own.

use crate::interface::Masking;
use std::ops::Range;

/// The numbers of a type's variables and entries for buses, in addition to its slots
/// (spec: buses#variables).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusShape {
    /// `true` if the circuit has buses, so that `b_T` and `b_V` are public variables.
    pub buses: bool,
    /// The number p of parameters.
    pub parameters: usize,
    /// The number q of pairs.
    pub pairs: usize,
    /// The number m of marked values.
    pub marked: usize,
    /// The number E of entries.
    pub entries: usize,
    /// The number Y of scaled values.
    pub scaled: usize,
}

/// The order and sizes of the R1CS variables of a subcircuit with `s` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableLayout {
    slots: usize,
    masks: usize,
    shape: BusShape,
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
        let shape =
            BusShape { buses: false, parameters: 0, pairs: 0, marked: 0, entries: 0, scaled: 0 };
        Self { slots, masks, shape }
    }

    /// The same slots with a type's variables and entries for buses.
    pub const fn with(mut self, shape: BusShape) -> Self {
        self.shape = shape;
        self
    }

    /// The type's variables and entries for buses.
    pub const fn shape(&self) -> BusShape {
        self.shape
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

    /// The challenges that are public variables of their own: `g`, and in circuits with buses `b_T`
    /// and `b_V`. The challenge `b` enters through the scaled addresses
    /// (spec: memory-check#preprocessed).
    pub const fn challenges(&self) -> Range<usize> {
        Self::ONE + 1..Self::ONE + if self.shape.buses { 4 } else { 2 }
    }

    /// The challenge `g`, which every fingerprint contains.
    pub const fn g(&self) -> usize {
        self.challenges().start
    }

    /// The challenges `b_T` and `b_V`, which tags and values of entries are multiplied by; `None` in
    /// circuits without buses.
    pub const fn bus_challenges(&self) -> Option<[usize; 2]> {
        if self.shape.buses { Some([self.g() + 1, self.g() + 2]) } else { None }
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

    /// The parameters: constants that the layout gives each instance.
    pub const fn parameters(&self) -> Range<usize> {
        let start = self.multiplicities().end;
        start..start + self.shape.parameters
    }

    /// The pairs: keys and values of entries, `c0 + b_V c2`, that the layout gives each instance.
    pub const fn pairs(&self) -> Range<usize> {
        let start = self.parameters().end;
        start..start + self.shape.pairs
    }

    /// All public variables, the constant 1 included.
    pub const fn public(&self) -> Range<usize> {
        Self::ONE..self.pairs().end
    }

    /// The public variables that are fixed by setup and the challenges: all but the constant 1.
    pub const fn preprocessed(&self) -> Range<usize> {
        Self::ONE + 1..self.public().end
    }

    /// The committed variables: the values of the slots, then the marked ones.
    pub const fn committed(&self) -> Range<usize> {
        self.slot_values().start..self.marked().end
    }

    /// The committed variables `v_j` of the slots.
    pub const fn slot_values(&self) -> Range<usize> {
        let start = self.public().end;
        start..start + self.slots
    }

    /// The committed variables that the author marked.
    pub const fn marked(&self) -> Range<usize> {
        let start = self.slot_values().end;
        start..start + self.shape.marked
    }

    /// The committed variables of the mask slots.
    pub const fn masks(&self) -> Range<usize> {
        let end = self.slot_values().end;
        end - self.masks..end
    }

    /// The variable `e`, the subcircuit's term of the LogUp sum.
    pub const fn sum(&self) -> usize {
        self.committed().end
    }

    /// The inverses of the fingerprints, scaled by the multiplicities: `u_j` of each slot, then of
    /// each entry.
    pub const fn inverses(&self) -> Range<usize> {
        let start = self.sum() + 1;
        start..start + self.slots + self.shape.entries
    }

    /// The scaled values of entries, `y = b_V v`.
    pub const fn scaled(&self) -> Range<usize> {
        let start = self.inverses().end;
        start..start + self.shape.scaled
    }

    /// The number of variables of the memory check, which precede the author's.
    pub const fn len(&self) -> usize {
        self.scaled().end
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

    /// The row `u (g + b_T T + k + y) = mu` of an entry.
    pub const fn entry_row(&self, entry: usize) -> usize {
        self.fingerprint_row(self.slots) + entry
    }

    /// The row `v b_V = y` of a scaled value.
    pub const fn scaled_row(&self, scaled: usize) -> usize {
        self.entry_row(self.shape.entries) + scaled
    }

    /// The number of rows of the memory check, which precede the author's.
    pub const fn rows(&self) -> usize {
        self.scaled_row(self.shape.scaled)
    }

    /// The author's rows, out of `constraints` in total.
    pub const fn author_rows(&self, constraints: usize) -> Range<usize> {
        self.rows()..constraints
    }

    /// The number of a row among the author's constraints, in the order in which they were made; `None` for
    /// a row of the memory check.
    pub const fn author_row(&self, row: usize) -> Option<usize> {
        row.checked_sub(self.rows())
    }

    /// The rows that the author made: those of entries and of their values, and the author's own.
    pub const fn made_rows(&self, constraints: usize) -> Range<usize> {
        self.entry_row(0)..constraints
    }

    /// The slot whose value a variable holds; `None` for a variable that is not one of a slot.
    pub fn slot_of(&self, variable: usize) -> Option<usize> {
        self.slot_values().contains(&variable).then(|| variable - self.slot_values().start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges are disjoint and follow each other without gaps.
    #[test]
    fn the_ranges_are_a_partition_in_order() {
        let none = BusShape::default();
        let some =
            BusShape { buses: true, parameters: 3, pairs: 4, marked: 5, entries: 7, scaled: 6 };
        for (slots, masking) in [(0, Masking::Unmasked), (2, Masking::Masked), (5, Masking::Masked)]
        {
            for shape in [none, BusShape { buses: true, ..none }, some] {
                let layout = VariableLayout::new(slots, masking).with(shape);
                let (one, sum) = (VariableLayout::ONE, layout.sum());
                let ranges = [
                    one..one + 1,
                    layout.challenges(),
                    layout.addresses(),
                    layout.multiplicities(),
                    layout.parameters(),
                    layout.pairs(),
                    layout.slot_values(),
                    layout.marked(),
                    sum..sum + 1,
                    layout.inverses(),
                    layout.scaled(),
                    layout.author(layout.len() + 7),
                ];
                let all: Vec<usize> = ranges.into_iter().flatten().collect();
                assert_eq!(all, (0..layout.len() + 7).collect::<Vec<_>>());
                let BusShape { buses, parameters, pairs, marked, entries, scaled } = shape;
                let public = 2 + 2 * usize::from(buses) + 2 * slots + parameters + pairs;
                assert_eq!(layout.public(), 0..public);
                assert_eq!(layout.committed(), public..public + slots + marked);
                assert_eq!(layout.sum(), public + slots + marked);
                assert_eq!(layout.len(), layout.sum() + 1 + slots + entries + scaled);
                assert_eq!(layout.masks().len(), masking.slots());
                assert_eq!(layout.masks().end, layout.marked().start);
                assert_eq!(layout.rows(), 1 + slots + entries + scaled);
                assert_eq!(layout.slot_of(layout.committed().start), (slots > 0).then_some(0));
                assert_eq!(layout.slot_of(layout.marked().start), None);
                assert_eq!(layout.slot_of(layout.sum()), None);
                let challenges = layout.bus_challenges();
                assert_eq!(challenges, buses.then_some([layout.g() + 1, layout.g() + 2]));
            }
        }
    }
}
