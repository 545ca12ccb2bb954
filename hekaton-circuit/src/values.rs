//! The values of all shared wires in a run.

use crate::ids::{InstanceId, WireId, WireName, to_index};
use crate::layout::Layout;
use ark_ff::Zero;
use hekaton_arith::Fr;
use std::collections::HashMap;

/// Why the values set by `execute` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A wire has no value.
    #[error("execute set no value for wire {0}")]
    Missing(WireName),
}

/// The values of all shared wires, filled by [`Circuit::execute`](crate::Circuit::execute).
#[derive(Clone, Debug)]
pub struct WireValues {
    values: Vec<Option<Fr>>,
    unused: HashMap<(u32, usize), Fr>,
}

impl WireValues {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { values: vec![None; layout.wires()], unused: HashMap::new() }
    }

    /// Sets the value of a wire.
    ///
    /// # Panics
    /// If the wire belongs to another layout.
    pub fn set(&mut self, wire: WireId, value: Fr) {
        self.values[wire.index()] = Some(value);
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
        match self.values.iter().position(Option::is_none) {
            Some(i) => Err(ValuesError::Missing(layout.wire_name(WireId(to_index(i))))),
            None => Ok(()),
        }
    }

    /// The public values, in the order of their declaration.
    pub(crate) fn public(&self, layout: &Layout) -> Vec<Fr> {
        layout.public_wires().map(|w| self.get(w).unwrap_or_default()).collect()
    }

    /// All values in the order of the wires, to bind randomness to an execution. Wires that have no
    /// value count as zero.
    pub fn all(&self) -> Vec<Fr> {
        self.values.iter().map(|v| v.unwrap_or_default()).collect()
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
