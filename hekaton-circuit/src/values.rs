//! The values of all shared wires in a run.

use crate::ids::{InstanceId, WireId, WireName, to_index};
use crate::layout::Layout;
use ark_ff::Zero;
use hekaton_arith::Fr;
use std::collections::HashMap;
use std::ops::Range;

/// Why the values set by `execute` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A wire has no value.
    #[error("execute set no value for wire {0}")]
    Missing(WireName),
    /// A constant was set to another value.
    #[error("execute set wire {0} to another value than the layout's constant")]
    Constant(WireName),
    /// A wire of another layout was set.
    #[error("execute set wire {0}, but the layout has only {1} wires: the id is of another layout")]
    Foreign(usize, usize),
}

/// The values of all shared wires, filled by [`Circuit::execute`](crate::Circuit::execute).
#[derive(Clone, Debug)]
pub struct WireValues {
    values: Vec<Option<Fr>>,
    constants: HashMap<u32, (WireName, Fr)>,
    unused: HashMap<(u32, usize), Fr>,
    error: Option<ValuesError>,
}

impl WireValues {
    /// No values yet, except those of constants.
    pub fn new(layout: &Layout) -> Self {
        let mut values = vec![None; layout.wires()];
        let constants = layout.constants().map(|(w, v)| (w.0, (layout.wire_name(w), v)));
        let constants: HashMap<u32, (WireName, Fr)> = constants.collect();
        constants.iter().for_each(|(wire, (_, value))| values[*wire as usize] = Some(*value));
        Self { values, constants, unused: HashMap::new(), error: None }
    }

    /// Sets the value of a wire. Setting a constant to another value is an error that the caller
    /// of `execute` reports, as is a wire of another layout.
    pub fn set(&mut self, wire: WireId, value: Fr) {
        let count = self.values.len();
        let Some(place) = self.values.get_mut(wire.index()) else {
            self.error.get_or_insert(ValuesError::Foreign(wire.index(), count));
            return;
        };
        match self.constants.get(&wire.0) {
            Some((name, constant)) if *constant != value => {
                self.error.get_or_insert(ValuesError::Constant(*name));
            }
            _ => *place = Some(value),
        }
    }

    /// The value of a wire, `None` before it is set.
    pub fn get(&self, wire: WireId) -> Option<Fr> {
        self.values.get(wire.index()).copied().flatten()
    }

    /// Sets the value that an instance reads from a slot without a wire. The default is zero.
    pub fn set_unused(&mut self, instance: InstanceId, slot: usize, value: Fr) {
        self.unused.insert((instance.0, slot), value);
    }

    pub(crate) fn check_complete(&self, layout: &Layout) -> Result<(), ValuesError> {
        self.check((0..self.values.len()).map(|i| WireId(to_index(i))), layout)
    }

    /// Checks that the wires in the slots of these instances have values.
    pub(crate) fn check_range(
        &self,
        layout: &Layout,
        instances: Range<usize>,
    ) -> Result<(), ValuesError> {
        let instances = instances.map(|i| InstanceId(to_index(i)));
        self.check(instances.flat_map(|i| layout.wires_of(i)).flatten(), layout)
    }

    fn check(
        &self,
        mut wires: impl Iterator<Item = WireId>,
        layout: &Layout,
    ) -> Result<(), ValuesError> {
        match (&self.error, wires.find(|wire| self.get(*wire).is_none())) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(missing)) => Err(ValuesError::Missing(layout.wire_name(missing))),
            (None, None) => Ok(()),
        }
    }

    /// The public values, in the order of their declaration.
    pub(crate) fn public(&self, layout: &Layout) -> Vec<Fr> {
        layout.public_wires().map(|w| self.get(w).unwrap_or_default()).collect()
    }

    /// The values in the slots of an instance, mask slots excluded.
    pub fn slots(&self, layout: &Layout, instance: InstanceId) -> Vec<Fr> {
        let value = |(slot, wire): (usize, Option<WireId>)| match wire {
            Some(wire) => self.get(wire).unwrap_or_default(),
            None => self.unused.get(&(instance.0, slot)).copied().unwrap_or_default(),
        };
        layout.wires_of(instance).enumerate().map(value).collect()
    }

    /// [`Self::slots`] followed by the values of the two mask slots (spec: zero-knowledge#masks):
    /// the mask that the previous instance wrote, and the one that this instance writes. `mask(i)`
    /// is the mask between instances i and i + 1; the chain starts and ends with zero.
    pub fn masked_slots(
        &self,
        layout: &Layout,
        instance: InstanceId,
        mask: impl Fn(u64) -> Fr,
    ) -> Vec<Fr> {
        let mut slots = self.slots(layout, instance);
        // Neighbors must agree on the mask between them, so it depends on its position alone. It
        // must not depend on g or b either: a mask chosen after them could repair any sum
        // (spec: zero-knowledge#masks-before-challenges).
        let i = u64::from(instance.0);
        slots.push(if i == 0 { Fr::zero() } else { mask(i - 1) });
        slots.push(if instance.index() + 1 == layout.instances() { Fr::zero() } else { mask(i) });
        slots
    }
}
