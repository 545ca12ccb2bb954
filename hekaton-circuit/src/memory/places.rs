//! The data that the layout fixes for one instance, and the variables of its memory check under any
//! challenges.

use crate::interface::{MemoryChallenges, Preprocessed, SlotAccess};
use crate::memory::prefix::Prefix;
use hekaton_arith::Fr;

/// The data that the layout fixes for an instance.
pub(crate) struct Places<'a> {
    pub(crate) slots: &'a [SlotAccess],
    pub(crate) preprocessed: Preprocessed<'a>,
}

impl Places<'_> {
    /// The variables of the memory check under challenges that hit no pole (zero denominator) of a
    /// slot. Any such challenges will do: for s slots, at most s values of g are poles, so one of
    /// s + 1 values is not (spec: memory-check#pole). There are several sets of challenges.
    pub(crate) fn prefix(&self, values: &[Fr], set: u64) -> Option<Prefix> {
        // Large constants, so that values of ordinary circuits hit no pole. Sets differ in all four,
        // so a marked value that depends on any challenge differs between two sets.
        let constant = |offset: u64| Fr::from(u128::MAX - u128::from(offset + 1_000 * set));
        let challenges = |attempt: u64| MemoryChallenges {
            g: constant(58) + Fr::from(attempt),
            b: constant(172),
            b_t: constant(232),
            b_v: constant(446),
        };
        (0..=self.slots.len() as u64).find_map(|attempt| {
            Prefix::with(self.slots, values, self.preprocessed, &challenges(attempt)).ok()
        })
    }
}
