//! Checks that the entries of each bus cancel (spec: buses#entries).

use crate::buses::ledger::EntryValues;
use crate::layout::Layout;
use crate::layout::ids::{InstanceId, to_index};
use crate::text::show;
use ark_ff::Zero;
use hekaton_arith::Fr;
use std::collections::HashMap;

/// A key and a value whose entries in a bus do not cancel, so that no proof exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbalanced {
    /// The name of the bus.
    pub bus: String,
    /// The key.
    pub key: Fr,
    /// The value.
    pub value: Fr,
    /// The sum of the multiplicities, which should be zero.
    pub multiplicity: Fr,
    /// The first instance with such an entry.
    pub instance: usize,
    /// The name of its type.
    pub kind: String,
}

impl std::fmt::Display for Unbalanced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bus, instance, kind, .. } = self;
        let [key, value, sum] = [self.key, self.value, self.multiplicity].map(|x| show(&x));
        write!(
            f,
            "bus '{bus}': the multiplicities of key {key} with value {value} sum to {sum}, not 0; \
             the first entry is one of instance {instance} (type '{kind}')"
        )
    }
}

/// Adds up the entries of a run.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    sums: HashMap<(u32, Fr, Fr), (Fr, usize)>,
}

impl Balance {
    pub(crate) fn add(&mut self, instance: usize, entries: &[EntryValues]) {
        for EntryValues { tag, key, value, multiplicity } in entries {
            // An entry of multiplicity 0, as of a look-up that is switched off, has a key of no meaning.
            if !multiplicity.is_zero() {
                let sum = self.sums.entry((*tag, *key, *value)).or_insert((Fr::zero(), instance));
                sum.0 += multiplicity;
            }
        }
    }

    /// Returns the entries that do not cancel, by bus and first instance.
    pub(crate) fn unbalanced(self, layout: &Layout) -> Vec<Unbalanced> {
        let mut left: Vec<_> =
            self.sums.into_iter().filter(|(_, (sum, _))| !sum.is_zero()).collect();
        // A map has a random order; reports of one run must be equal.
        left.sort_unstable_by_key(|((tag, key, value), (_, instance))| {
            (*tag, *instance, *key, *value)
        });
        let describe = |((tag, key, value), (multiplicity, instance)): ((u32, Fr, Fr), _)| {
            let kind = layout.type_of(InstanceId(to_index(instance)));
            let bus = layout.bus_of_tag(tag).expect("entries have the tags of the layout's buses");
            Unbalanced {
                bus: bus.to_owned(),
                key,
                value,
                multiplicity,
                instance,
                kind: layout.type_name(kind).to_owned(),
            }
        };
        left.into_iter().map(describe).collect()
    }
}
