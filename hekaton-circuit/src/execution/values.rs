//! The values of all shared wires in a run.

use crate::buses::library::SparseChain;
use crate::buses::library::state::Memories;
use crate::circuit_error::CircuitError;
use crate::execution::pages::Pages;
use crate::layout::Layout;
use crate::layout::ids::{InstanceId, RamId, WireId, WireName, to_index};
use ark_ff::AdditiveGroup;
use hekaton_arith::Fr;
use std::collections::HashMap;
use std::ops::Range;

/// The reason that the values set by `execute` cannot be used.
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
    values: Pages<Fr>,
    constants: HashMap<u32, (WireName, Fr)>,
    unused: HashMap<(u32, usize), Fr>,
    pub(crate) memories: Memories,
    error: Option<ValuesError>,
}

impl WireValues {
    /// No values yet, except those of constants.
    pub fn new(layout: &Layout) -> Self {
        let mut values = Pages::new(layout.wires());
        let constants: HashMap<u32, (WireName, Fr)> =
            layout.constants().map(|(w, v)| (w.0, (layout.wire_name(w), v))).collect();
        constants.iter().for_each(|(wire, (_, value))| values.set(*wire as usize, *value));
        let memories = Memories::new(layout);
        Self { values, constants, unused: HashMap::new(), memories, error: None }
    }

    /// Sets the value of a wire. Setting a constant to another value is an error that the caller
    /// of `execute` reports, as is a wire of another layout.
    pub fn set(&mut self, wire: WireId, value: Fr) {
        // `execute` has no result for each value, so a mistake is kept until it returns.
        if wire.index() >= self.values.len() {
            self.error.get_or_insert(ValuesError::Foreign(wire.index(), self.values.len()));
            return;
        }
        match self.constants.get(&wire.0) {
            Some((name, constant)) if *constant != value => {
                self.error.get_or_insert(ValuesError::Constant(*name));
            }
            _ => self.values.set(wire.index(), value),
        }
    }

    /// The value of a wire, `None` before it is set.
    pub fn get(&self, wire: WireId) -> Option<Fr> {
        self.values.get(wire.index())
    }

    /// Sets the value that an instance reads from a slot without a wire. The default is zero.
    pub fn set_unused(&mut self, instance: InstanceId, slot: usize, value: Fr) {
        self.unused.insert((instance.0, slot), value);
    }

    /// Reads a cell of a memory, as an access of an instance. Its constraints must make the same accesses to
    /// this memory in the same order, and instances access a memory in the order of their numbers.
    ///
    /// # Errors
    /// If the layout has no such access, the address is not in the memory, or a later instance has
    /// accessed it already.
    pub fn read(
        &mut self,
        instance: InstanceId,
        ram: RamId,
        address: u64,
    ) -> Result<Fr, CircuitError> {
        self.memories.access(instance, ram, address, |found| found)
    }

    /// Writes a cell of a memory, as [`read`](Self::read) reads it.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write(
        &mut self,
        instance: InstanceId,
        ram: RamId,
        address: u64,
        value: Fr,
    ) -> Result<(), CircuitError> {
        self.write_if(instance, ram, true, address, value)
    }

    /// Computes the values that follow from all accesses: the cells of sparse memories and the wires between
    /// them.
    pub(crate) fn finish(&mut self, layout: &Layout) {
        self.memories.finish();
        for SparseChain { library, cell, wire } in &layout.chains {
            let last = self.memories.sparse_address(library.bus, library.region, cell - 1);
            if let Some(last) = last {
                self.set(*wire, Fr::from(last + 1));
            }
        }
    }

    /// Writes a cell of a memory if `enable`, and leaves it as it is otherwise: an access in both cases.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write_if(
        &mut self,
        instance: InstanceId,
        ram: RamId,
        enable: bool,
        address: u64,
        value: Fr,
    ) -> Result<(), CircuitError> {
        let left = |found| if enable { value } else { found };
        self.memories.access(instance, ram, address, left).map(drop)
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
        self.check(wires_of(layout, instances), layout)
    }

    /// Drops all values but those in the slots of these instances.
    pub(crate) fn retain(&mut self, layout: &Layout, instances: Range<usize>) {
        self.unused.retain(|(instance, _), _| instances.contains(&(*instance as usize)));
        self.values.retain(wires_of(layout, instances).map(WireId::index));
    }

    fn check(
        &self,
        mut wires: impl Iterator<Item = WireId>,
        layout: &Layout,
    ) -> Result<(), ValuesError> {
        // A mistake of `set` comes first, because it is often the reason that a value is missing.
        match (&self.error, wires.find(|wire| self.get(*wire).is_none())) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(missing)) => Err(ValuesError::Missing(layout.wire_name(missing))),
            (None, None) => Ok(()),
        }
    }

    /// The public values, in the order of their declaration.
    pub(crate) fn public(&self, layout: &Layout) -> Vec<Fr> {
        // `check_complete` has found a value of every wire.
        layout.public_wires().map(|w| self.get(w).unwrap_or(Fr::ZERO)).collect()
    }

    /// The values in the slots of an instance, mask slots excluded.
    pub fn slots(&self, layout: &Layout, instance: InstanceId) -> Vec<Fr> {
        let value = |(slot, wire): (usize, Option<WireId>)| match wire {
            // `check_complete` or `check_range` has found a value of every wire in these slots.
            Some(wire) => self.get(wire).unwrap_or(Fr::ZERO),
            None => self.unused.get(&(instance.0, slot)).map_or(Fr::ZERO, |value| *value),
        };
        layout.wires_of(instance).enumerate().map(value).collect()
    }

    /// [`Self::slots`] followed by the values of the two mask slots, [`Layout::mask_values`].
    pub fn masked_slots(
        &self,
        layout: &Layout,
        instance: InstanceId,
        mask: impl Fn(u64) -> Fr,
    ) -> Vec<Fr> {
        let mut slots = self.slots(layout, instance);
        slots.extend(layout.mask_values(instance, mask));
        slots
    }
}

/// The wires in the slots of these instances.
fn wires_of(layout: &Layout, instances: Range<usize>) -> impl Iterator<Item = WireId> + '_ {
    let ids = instances.map(|i| InstanceId(to_index(i)));
    ids.flat_map(|i| layout.wires_of(i)).flatten()
}
