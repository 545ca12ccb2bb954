//! The values of all shared wires of a run.

use crate::layout::{InstanceId, Layout, WireId, WireName};
use ark_ff::Zero;
use hekaton_arith::Fr;
use std::collections::HashMap;

/// What is wrong with the values that `execute` left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A wire without a value.
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
    /// When the wire is of another layout.
    pub fn set(&mut self, wire: WireId, value: Fr) {
        self.values[wire.index()] = Some(value);
    }

    /// The value of a wire, `None` before it is set.
    pub fn get(&self, wire: WireId) -> Option<Fr> {
        self.values.get(wire.index()).copied().flatten()
    }

    /// Sets what an instance finds in a slot that holds no wire; zero unless set.
    pub fn set_unused(&mut self, instance: InstanceId, slot: usize, value: Fr) {
        self.unused.insert((instance.0, slot), value);
    }

    pub(crate) fn check_complete(&self, layout: &Layout) -> Result<(), ValuesError> {
        match self.values.iter().position(Option::is_none) {
            Some(i) => Err(ValuesError::Missing(layout.wire_name(WireId(i as u32)))),
            None => Ok(()),
        }
    }

    /// The public values in order.
    pub(crate) fn public(&self, layout: &Layout) -> Vec<Fr> {
        layout.public_wires().map(|w| self.get(w).unwrap_or_default()).collect()
    }

    /// All values, for binding randomness to an execution.
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

    /// [`Self::slots`], and the values of the two mask slots (spec: zero-knowledge#masks): the mask that the previous
    /// subcircuit wrote, and the one that this one writes. `mask(i)` is the mask between instances i and i + 1; the
    /// chain begins and ends with zero.
    pub fn masked_slots(
        &self,
        layout: &Layout,
        instance: InstanceId,
        mask: impl Fn(u64) -> Fr,
    ) -> Vec<Fr> {
        let mut slots = self.slots(layout, instance);
        let i = u64::from(instance.0);
        slots.push(if i == 0 { Fr::zero() } else { mask(i - 1) });
        slots.push(if instance.index() + 1 == layout.instances() { Fr::zero() } else { mask(i) });
        slots
    }
}
