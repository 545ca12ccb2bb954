//! From wired parts to a layout, and to the execution of all instances or of a range of them.

use super::part::{Access, AnyPrivate, Memory};
use super::wires::{Instance, PartType, Source, ValueOf, Wires};
use crate::circuit::Circuit;
use crate::circuit_error::CircuitError;
use crate::execution::pages::Pages;
use crate::execution::panics::{Failure, guard};
use crate::execution::values::WireValues;
use crate::layout::builder::LayoutBuilder;
use crate::layout::compact::Words;
use crate::layout::error::LayoutError;
use crate::layout::ids::{InstanceId, WireId, to_index};
use crate::synthesis::subcircuit::Subcircuit;
use ark_ff::AdditiveGroup;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The id of a wire that is not in the layout.
const NO_ID: u32 = u32::MAX;

/// A circuit that is wired by calling: one function is both layout and execution. Every such circuit is a
/// [`Circuit`].
pub trait WiredCircuit: Sync {
    /// The input of a run.
    type Input: ?Sized + Sync + 'static;

    /// Adds all parts and connects their wires. No value is known here: values that depend on the input are
    /// passed as functions of it, so the layout cannot depend on the input.
    ///
    /// # Errors
    /// If there is no layout for the circuit's parameters; a text converts to the error.
    fn wire(&self, c: &mut Wires<Self::Input>) -> Result<(), LayoutError>;
}

/// The parts and wires of a wired circuit.
pub struct WiredPlan<I: ?Sized> {
    wires: Wires<I>,
    /// The id of each wire in the layout; [`NO_ID`] for a wire without readers.
    ids: Vec<u32>,
}

impl<I: ?Sized> std::fmt::Debug for WiredPlan<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WiredPlan").field("wires", &self.wires).finish_non_exhaustive()
    }
}

/// The private input of a part, encoded.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PartInput(Vec<u8>);

impl PartInput {
    /// Encodes a private input.
    ///
    /// # Errors
    /// If it cannot be serialized.
    pub fn encode<T: serde::Serialize>(private: &T) -> Result<Self, CircuitError> {
        Ok(Self(postcard::to_allocvec(private)?))
    }

    /// Decodes a private input of the type that the part has.
    ///
    /// # Errors
    /// If the bytes are of another type.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, CircuitError> {
        Ok(postcard::from_bytes(&self.0)?)
    }
}

impl std::fmt::Debug for PartInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value is secret.
        f.debug_struct("PartInput").finish_non_exhaustive()
    }
}

impl<C: WiredCircuit> Circuit for C {
    type Input = C::Input;
    type Plan = WiredPlan<C::Input>;
    type Trace = ();
    type Private = PartInput;
    const EXECUTES_RANGES: bool = true;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<WiredPlan<C::Input>, LayoutError> {
        let mut wires = Wires::new(layout.keeps_parts());
        let wired = self.wire(&mut wires);
        // A mistake in the wiring comes first, because it is usually the cause of the author's error.
        wires.error.take().map_or(Ok(()), Err)?;
        wired?;
        WiredPlan::new(wires, layout)
    }

    fn execute(
        &self,
        plan: &WiredPlan<C::Input>,
        input: &C::Input,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        plan.execute(0..plan.wires.instances.len(), input, values)
    }

    fn execute_range(
        &self,
        plan: &WiredPlan<C::Input>,
        input: &C::Input,
        instances: Range<usize>,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        plan.execute(instances, input, values)
    }

    fn private_input(
        &self,
        plan: &WiredPlan<C::Input>,
        input: &C::Input,
        (): &(),
        instance: InstanceId,
    ) -> Result<PartInput, CircuitError> {
        let Instance { kind, .. } = &plan.wires.instances[instance.index()];
        let private = plan.private(instance.index(), input)?;
        Ok(PartInput(plan.wires.kinds[*kind as usize].part.encode(&private)?))
    }

    fn synthesize(
        &self,
        plan: &WiredPlan<C::Input>,
        subcircuit: &Subcircuit,
        private: Option<&PartInput>,
    ) -> Result<(), SynthesisError> {
        let kind = &plan.wires.kinds[subcircuit.kind().index()];
        let own = subcircuit.instance().and_then(|instance| plan.wires.kept(instance));
        let part = own.unwrap_or(&*kind.part);
        part.synthesize(subcircuit, private.map(|private| private.0.as_slice()))
    }
}

impl<I: ?Sized> WiredPlan<I> {
    /// Declares the types, wires and instances in a layout, in the order in which they were made.
    fn new(mut wires: Wires<I>, layout: &mut LayoutBuilder) -> Result<Self, LayoutError> {
        layout.adopt(std::mem::take(&mut wires.library));
        // In the order in which parts were first added: it is the order of types in keys.
        let mut kinds = Vec::with_capacity(wires.kinds.len());
        for kind in &wires.kinds {
            let id = layout.named_type(&kind.name, kind.slot_names.len(), kind.slot_names.clone());
            kind.unconstrained.iter().for_each(|slot| layout.unconstrained(id, *slot));
            kind.accesses.iter().for_each(|(ram, count)| layout.accesses(id, *ram, *count));
            kinds.push(id);
        }
        // A name for each slot of a type, not for each wire: wires of one instance then share a run.
        let words: Vec<_> = wires.kinds.iter().map(|kind| layout.words(names(kind))).collect();
        let declare = |wire: u32| declare(&wires, wire, &words, layout).map_or(NO_ID, |id| id.0);
        let ids: Vec<u32> = wires.all().map(declare).collect();
        let id_of = |wire: u32| id_in(&ids, wire);
        for instance in &wires.instances {
            let id = layout.instance(kinds[instance.kind as usize]);
            let kind = &wires.kinds[instance.kind as usize];
            let slots = wires.slots[instance.start..].iter().zip(kind.part.order());
            for (slot, (wire, access)) in slots.enumerate() {
                match (id_of(*wire), access) {
                    (Some(wire), Access::Read) => layout.read(id, slot, wire),
                    (Some(wire), Access::Write) => layout.write(id, slot, wire),
                    (None, _) => layout.unused(id, slot),
                }
            }
        }
        Ok(Self { wires, ids })
    }

    /// The private input of an instance.
    fn private(&self, instance: usize, input: &I) -> Result<AnyPrivate, CircuitError> {
        (self.wires.instances[instance].private)(input)
    }

    /// Runs a range of instances and those that their values depend on.
    fn execute(
        &self,
        range: Range<usize>,
        input: &I,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let mut known = Pages::new(self.ids.len());
        // A range reads few of the values that follow from the input, and computes those on demand.
        if range == (0..self.wires.instances.len()) {
            for (wire, value) in &self.wires.values {
                known.set(*wire as usize, self.input_value(*wire, value, input)?);
            }
        }
        let needed = self.needed(range);
        // In order, since a part reads only wires of earlier parts, or known values.
        for instance in (0..self.wires.instances.len()).filter(|i| needed[*i]) {
            self.run(instance, input, &mut known, values)?;
        }
        for (wire, value) in known.filled() {
            if let Some(id) = id_in(&self.ids, to_index(wire)) {
                values.set(id, value);
            }
        }
        Ok(())
    }

    /// A value that follows from the input.
    fn input_value(&self, wire: u32, value: &ValueOf<I>, input: &I) -> Result<Fr, CircuitError> {
        value(input).map_err(|e| format!("{}: {e}", self.wires.name(wire)).into())
    }

    /// The value of a wire, if its writer has run or it follows from the input or the circuit.
    fn value(
        &self,
        wire: u32,
        input: &I,
        known: &mut Pages<Fr>,
    ) -> Result<Option<Fr>, CircuitError> {
        let place = wire as usize;
        if let Some(value) = known.get(place) {
            return Ok(Some(value));
        }
        let value = match self.wires.source(wire) {
            // `NO_WIRE`: a slot without a wire has the value 0.
            None => return Ok(Some(Fr::ZERO)),
            Some(Source::Constant(value)) => value,
            Some(_) if !self.wires.is_known(wire) => return Ok(None),
            // `values` is in the order in which the wires were made, which is that of their numbers.
            Some(_) => match self.wires.values.binary_search_by_key(&wire, |(w, _)| *w) {
                Ok(at) => self.input_value(wire, &self.wires.values[at].1, input)?,
                Err(_) => return Ok(None),
            },
        };
        known.set(place, value);
        Ok(Some(value))
    }

    /// The instances that must run so that the values of a range are known: it, and backward those
    /// that write what these read, unless the value follows from the input.
    fn needed(&self, range: Range<usize>) -> Vec<bool> {
        let mut needed: Vec<bool> =
            (0..self.wires.instances.len()).map(|i| range.contains(&i)).collect();
        // Writers come before their readers, so one pass from the end sees every dependency.
        for instance in (0..needed.len()).rev() {
            if !needed[instance] {
                continue;
            }
            for wire in self.slots(instance).filter(|(_, a)| *a == Access::Read).map(|(w, _)| w) {
                let writer = self.wires.writer(wire).filter(|_| !self.wires.is_known(wire));
                if let Some(writer) = writer {
                    needed[writer as usize] = true;
                }
            }
        }
        needed
    }

    /// The wires of an instance, with their access.
    fn slots(&self, instance: usize) -> impl Iterator<Item = (u32, Access)> + '_ {
        let Instance { kind, start, .. } = &self.wires.instances[instance];
        let order = self.wires.kinds[*kind as usize].part.order();
        self.wires.slots[*start..].iter().copied().zip(order.iter().copied())
    }

    /// Runs one instance natively.
    fn run(
        &self,
        instance: usize,
        input: &I,
        known: &mut Pages<Fr>,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let kind = &self.wires.kinds[self.wires.instances[instance].kind as usize];
        let inside = |why: &dyn std::fmt::Display| -> CircuitError {
            format!("instance {instance} (type '{}'): {why}", kind.name).into()
        };
        let mut reads = Vec::new();
        for (wire, _) in self.slots(instance).filter(|(_, access)| *access == Access::Read) {
            let value = self.value(wire, input, known)?;
            reads.push(value.ok_or_else(|| {
                inside(&format_args!("wire {} has no value", self.wires.name(wire)))
            })?);
        }
        let run = || {
            let private = self.private(instance, input)?;
            let id = InstanceId(to_index(instance));
            kind.part.run(&mut Memory::new(values, id), &reads, &private)
        };
        let written = guard("run", run).map_err(|failure| match failure {
            Failure::Returned(error) => inside(&error),
            Failure::Panicked(panic) => inside(&panic),
        })?;
        let slots = self.slots(instance).enumerate();
        let writes = slots.filter(|(_, (_, access))| *access == Access::Write);
        for ((slot, (wire, _)), value) in writes.zip(written) {
            // Earlier parts have read the promised value. With another one, no proof exists.
            let promised = self.value(wire, input, known)?.filter(|promised| *promised != value);
            if let Some(promised) = promised {
                let [promised, value] = [promised, value].map(|x| crate::text::show(&x));
                let name = self.wires.name(wire);
                return Err(inside(&format_args!(
                    "it writes {value} to wire {name}, which was promised to be {promised}"
                )));
            }
            known.set(wire as usize, value);
            // The wire has no reader and is left out, but the constraints of the part still use its slot.
            if id_in(&self.ids, wire).is_none() {
                values.set_unused(InstanceId(to_index(instance)), slot, value);
            }
        }
        Ok(())
    }
}

/// Declares a wire in a layout, unless it has no reader.
fn declare<I: ?Sized>(
    wires: &Wires<I>,
    wire: u32,
    words: &[Words],
    layout: &mut LayoutBuilder,
) -> Option<WireId> {
    let readers = wires.readers(wire);
    match (wires.source(wire)?, wires.output_name(wire)) {
        (Source::PublicInput(name, index), _) => Some(layout.public_input(name, index)),
        (Source::Constant(value), _) => (readers > 0).then(|| layout.constant(value)),
        (_, Some((name, index))) => Some(layout.public_output(name, index)),
        (_, None) if readers == 0 => None,
        (Source::Declared(name, index), None) => Some(layout.wire(name, index)),
        (Source::Written { instance, slot }, None) => {
            let kind = wires.instances[instance as usize].kind;
            Some(layout.worded_wire(words[kind as usize], slot, u64::from(instance)))
        }
    }
}

/// The words for the wires that a type writes: its name with that of the slot.
fn names(kind: &PartType) -> Vec<&'static str> {
    let slots = kind.slot_names.iter().zip(kind.part.order());
    let name = |(slot, access): (&String, &Access)| match access {
        Access::Read => "",
        Access::Write => intern(format!("{}.{slot}", kind.name)),
    };
    slots.map(name).collect()
}

/// The wire of a layout for a wire, unless it has none.
fn id_in(ids: &[u32], wire: u32) -> Option<WireId> {
    ids.get(wire as usize).copied().filter(|id| *id != NO_ID).map(WireId)
}

/// A name of a wire that comes from a type and a slot. Their number is that of the slots of all types,
/// independent of the number of instances, so they are kept for the lifetime of the program.
fn intern(name: String) -> &'static str {
    static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let mut names =
        NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name.as_str()) {
        Some(name) => name,
        None => {
            let name: &'static str = Box::leak(name.into_boxed_str());
            names.insert(name);
            name
        }
    }
}
