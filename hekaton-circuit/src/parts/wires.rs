//! Wiring by calling: collects parts and wires, of which layout and execution are made.

use super::part::{Access, AnyPrivate, ErasedPart, Part, Shaped, list};
use super::slots::Slots;
use super::wire::{NO_WIRE, Wire};
use crate::buses::library::memory::Ram;
use crate::buses::library::table::Table;
use crate::circuit_error::CircuitError;
use crate::layout::builder::LayoutBuilder;
use crate::layout::compact::LIMIT;
use crate::layout::error::LayoutError;
use crate::layout::ids::{BusId, InstanceId, RamId, TableId, WireName, to_index};
use hekaton_arith::Fr;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The origin of a wire, and its name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// Declared, and written by a part later on.
    Declared(&'static str, u64),
    PublicInput(&'static str, u64),
    Constant(Fr),
    /// Written by an instance, in one of its slots.
    Written {
        instance: u32,
        slot: u32,
    },
}

/// A wire in 12 bytes: large circuits have hundreds of millions of them.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The instance that writes it, or [`NOBODY`].
    writer: u32,
    readers: u32,
    /// The slot in which its writer writes it; or, with the bit [`SPECIAL`], its place among the wires that
    /// were not made by adding their writer.
    origin: u32,
}

// Also greater than every instance, so that a wire without a writer counts as written later.
const NOBODY: u32 = u32::MAX;
const SPECIAL: u32 = 1 << 31;

/// A wire that was not made by adding its writer.
#[derive(Clone, Copy, Debug)]
struct Special {
    source: Source,
    /// `true` if its value is known before its writer has run.
    is_known: bool,
}

/// Computes a value from the input.
pub(super) type ValueOf<I> = Box<dyn Fn(&I) -> Result<Fr, CircuitError> + Send + Sync>;
/// Computes a private input from the input.
pub(super) type PrivateOf<I> = Box<dyn Fn(&I) -> Result<AnyPrivate, CircuitError> + Send + Sync>;

/// An instance: its type, and its wires in the order of the slots.
pub(super) struct Instance<I: ?Sized> {
    pub(super) kind: u32,
    pub(super) start: usize,
    pub(super) private: PrivateOf<I>,
}

/// A type: a part with the names of its slots.
pub(super) struct PartType {
    pub(super) name: String,
    pub(super) part: Arc<dyn ErasedPart>,
    pub(super) slot_names: Vec<String>,
    pub(super) unconstrained: Vec<usize>,
    pub(super) accesses: Vec<(RamId, usize)>,
}

/// Collects the parts and wires of a circuit with inputs of type `I`.
pub struct Wires<I: ?Sized> {
    pub(super) kinds: Vec<PartType>,
    by_name: HashMap<String, u32>,
    pub(super) instances: Vec<Instance<I>>,
    /// The wires of all instances, by number.
    pub(super) slots: Vec<u32>,
    wires: Vec<Entry>,
    special: Vec<Special>,
    /// The names of public outputs.
    outputs: BTreeMap<u32, (&'static str, u64)>,
    constants: HashMap<Fr, u32>,
    /// Values that follow from the input alone, by the number of their wire.
    pub(super) values: Vec<(u32, ValueOf<I>)>,
    /// The buses, tables and memories.
    pub(super) library: LayoutBuilder,
    /// The number of this call of `wire`: wires of other calls are refused.
    call: u32,
    /// The parts that instances were added with, if they are kept.
    kept: Option<Kept>,
    pub(super) error: Option<LayoutError>,
}

/// The parts that instances were added with, except the first one of each type. Checks compare their constraints with
/// those of the type, because `PartialEq` may leave out what constraints depend on.
#[derive(Default)]
struct Kept {
    parts: BTreeMap<u32, Arc<dyn ErasedPart>>,
    /// The number of parts of each type.
    counts: HashMap<u32, usize>,
}

/// The maximum number of parts of a type that are kept. Parts may be large, and a mistake in `PartialEq` shows early.
const KEPT: usize = 1024;

/// The number of calls of `wire` so far.
static CALLS: AtomicU32 = AtomicU32::new(0);

impl<I: ?Sized> std::fmt::Debug for Wires<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wires")
            .field("types", &self.kinds.len())
            .field("instances", &self.instances.len())
            .field("wires", &self.wires.len())
            .finish_non_exhaustive()
    }
}

impl<I: ?Sized> Default for Wires<I> {
    fn default() -> Self {
        Self::new(false)
    }
}

impl<I: ?Sized> Wires<I> {
    /// No parts and wires.
    pub(super) fn new(keeps_parts: bool) -> Self {
        Self {
            kinds: Vec::new(),
            by_name: HashMap::new(),
            instances: Vec::new(),
            slots: Vec::new(),
            wires: Vec::new(),
            special: Vec::new(),
            outputs: BTreeMap::new(),
            constants: HashMap::new(),
            values: Vec::new(),
            library: LayoutBuilder::default(),
            call: CALLS.fetch_add(1, Ordering::Relaxed),
            kept: keeps_parts.then(Kept::default),
            error: None,
        }
    }

    /// Declares a table, for a field of the parts that use it
    /// ([`LayoutBuilder::table`]).
    pub fn table(&mut self, name: &str, table: Table) -> TableId {
        self.library.table(name, table)
    }

    /// Declares the table of the numbers of `bits` bits ([`LayoutBuilder::range`]).
    pub fn range(&mut self, bits: u32) -> TableId {
        self.library.range(bits)
    }

    /// Declares a memory, for a field of the parts that access it ([`LayoutBuilder::ram`]). Parts access
    /// it in the order in which they are added.
    pub fn ram(&mut self, name: &str, ram: Ram) -> RamId {
        self.library.ram(name, ram)
    }

    /// Declares a bus, for a field of the parts that add entries to it ([`LayoutBuilder::bus`]).
    pub fn bus(&mut self, name: &str) -> BusId {
        self.library.bus(name)
    }

    /// A wire that the verifier writes, with its value in an input. Public values are ordered by
    /// the order in which wires are made.
    pub fn public_input(
        &mut self,
        name: &'static str,
        index: u64,
        value: impl Fn(&I) -> Result<Fr, CircuitError> + Send + Sync + 'static,
    ) -> Wire {
        let wire = self.special_wire(Source::PublicInput(name, index), true);
        self.values.push((wire, Box::new(value)));
        self.handle(wire)
    }

    /// A wire whose value the verifying key fixes: no prover can choose it, and it is not among the public
    /// values. Use it for starts, and to pad uneven counts.
    pub fn constant(&mut self, value: impl Into<Fr>) -> Wire {
        let constant = value.into();
        if let Some(wire) = self.constants.get(&constant) {
            return self.handle(*wire);
        }
        let wire = self.special_wire(Source::Constant(constant), true);
        self.constants.insert(constant, wire);
        self.handle(wire)
    }

    /// The wire of a slot that is left unused, with the value 0 in an honest run. **The prover may choose
    /// another value**, so the statement must not depend on it; use [`constant`](Self::constant) if it does.
    pub fn unused(&self) -> Wire {
        self.handle(NO_WIRE)
    }

    /// A wire that a later [`add_into`](Self::add_into) writes, and that only parts added after its writer
    /// read. Names of wires appear in messages only.
    pub fn declare(&mut self, name: &'static str, index: u64) -> Wire {
        let wire = self.special_wire(Source::Declared(name, index), false);
        self.handle(wire)
    }

    /// A wire that a later [`add_into`](Self::add_into) writes, and that earlier parts may read: its value must
    /// follow from the input, and the writer must write that value.
    pub fn promise(
        &mut self,
        name: &'static str,
        index: u64,
        value: impl Fn(&I) -> Result<Fr, CircuitError> + Send + Sync + 'static,
    ) -> Wire {
        let wire = self.special_wire(Source::Declared(name, index), true);
        self.values.push((wire, Box::new(value)));
        self.handle(wire)
    }

    /// Makes a wire a public output, which the verifier reads.
    pub fn output(&mut self, name: &'static str, wire: Wire) {
        self.output_at(name, 0, wire);
    }

    /// [`output`](Self::output) with a number, for several wires of one name.
    pub fn output_at(&mut self, name: &'static str, index: u64, wire: Wire) {
        let wire = self.own(wire, || format!("output '{name}[{index}]'"));
        match (self.source(wire), self.outputs.get(&wire)) {
            // An unused slot has no value to show.
            (None, _) => {
                self.fail(LayoutError::Parameters(format!(
                    "output '{name}[{index}]' is an unused wire: a public output must be written by a part"
                )));
            }
            // The verifier would read a value that it wrote itself, or one value under two names.
            (Some(Source::PublicInput(..) | Source::Constant(_)), _) | (_, Some(_)) => {
                self.fail(LayoutError::Parameters(format!(
                    "output '{name}[{index}]' is already public, or a constant: a public output must be \
                     written by a part, and declared once"
                )));
            }
            (Some(_), None) => drop(self.outputs.insert(wire, (name, index))),
        }
    }

    /// Adds a subcircuit without private input, which reads these wires, and returns the wires that
    /// it writes. A wire without readers is left out.
    pub fn add<P: Part<Private = ()>>(
        &mut self,
        part: &P,
        reads: P::Reads<Wire>,
    ) -> P::Writes<Wire> {
        self.place(part, &reads, None, Box::new(|_: &I| Ok(Box::new(()) as AnyPrivate)))
    }

    /// Adds a subcircuit with its private input, as a function of the input of the run. It is called
    /// on demand, more than once, and from several threads.
    pub fn add_with<P: Part>(
        &mut self,
        part: &P,
        reads: P::Reads<Wire>,
        private: impl Fn(&I) -> Result<P::Private, CircuitError> + Send + Sync + 'static,
    ) -> P::Writes<Wire> {
        self.place(part, &reads, None, erase::<I, P>(private))
    }

    /// Adds a subcircuit that writes wires which were [declared](Self::declare) or
    /// [promised](Self::promise).
    pub fn add_into<P: Part>(
        &mut self,
        part: &P,
        reads: P::Reads<Wire>,
        writes: P::Writes<Wire>,
        private: impl Fn(&I) -> Result<P::Private, CircuitError> + Send + Sync + 'static,
    ) {
        self.place(part, &reads, Some(&writes), erase::<I, P>(private));
    }

    fn place<P: Part>(
        &mut self,
        part: &P,
        reads: &P::Reads<Wire>,
        writes: Option<&P::Writes<Wire>>,
        private: PrivateOf<I>,
    ) -> P::Writes<Wire> {
        let kind = self.kind(part);
        // Two different parts of one name are an error, which `build` reports. Until then, this one still
        // returns wires of its own shape, so that the author's code can continue.
        let declared = Arc::clone(&self.kinds[kind as usize].part);
        let same = declared.as_any().downcast_ref::<Shaped<P>>().filter(|s| s.part == *part);
        let own = same.is_none().then(|| Shaped::new(part));
        let shaped = same.or(own.as_ref()).expect("`own` is there if no declared part is the same");
        if self.instances.len() >= LIMIT {
            self.fail(LayoutError::TooMany("instances"));
            return Slots::build(&shaped.writes, &mut || self.handle(NO_WIRE));
        }
        let instance = to_index(self.instances.len());
        let mut own = |wires: Vec<Wire>, access: &str| -> Vec<u32> {
            let what =
                || format!("a wire that instance {instance} (type '{}') {access}", part.name());
            wires.into_iter().map(|wire| self.own(wire, what)).collect()
        };
        let read = own(list(reads), "reads");
        let written = writes.map(|writes| own(list(writes), "writes"));
        let wrong = if reads.shape() != shaped.reads {
            Some(("reads", read.len(), &shaped.reads))
        } else {
            let other = writes.filter(|writes| writes.shape() != shaped.writes);
            other.map(|writes| ("writes", list(writes).len(), &shaped.writes))
        };
        if let Some((access, found, expected)) = wrong {
            self.fail(LayoutError::Parameters(format!(
                "instance {instance} of type '{}' {access} {found} wires, but the part has {} such \
                 slots, or slots of another shape",
                part.name(),
                expected.names().len()
            )));
            return Slots::build(&shaped.writes, &mut || self.handle(NO_WIRE));
        }
        if self.kept.is_some() {
            self.keep(part, (kind, instance), shaped);
        }
        let start = self.slots.len();
        let outputs = self.connect(&shaped.order, instance, read, written);
        self.instances.push(Instance { kind, start, private });
        let mut next = outputs.into_iter();
        Slots::build(&shaped.writes, &mut || self.handle(next.next().unwrap_or(NO_WIRE)))
    }

    /// Fills the slots of an instance, and returns the wires that it writes: the given ones, or new ones.
    fn connect(
        &mut self,
        order: &[Access],
        instance: u32,
        read: Vec<u32>,
        written: Option<Vec<u32>>,
    ) -> Vec<u32> {
        let (mut reads, mut given) = (read.into_iter(), written.into_iter().flatten());
        let mut outputs = Vec::new();
        for (slot, access) in order.iter().enumerate() {
            let wire = match access {
                Access::Read => {
                    // An order with more slots than the shape is an error already.
                    let wire = reads.next().unwrap_or(NO_WIRE);
                    self.reads(wire, instance);
                    wire
                }
                Access::Write => {
                    let wire = given.next().unwrap_or_else(|| self.push(to_index(slot)));
                    self.writes(wire, instance);
                    outputs.push(wire);
                    wire
                }
            };
            self.slots.push(wire);
        }
        outputs
    }

    /// Keeps the part that an instance was added with, unless it is the first of its type.
    fn keep<P: Part>(&mut self, part: &P, (kind, instance): (u32, u32), shaped: &Shaped<P>) {
        let Some(kept) = &mut self.kept else { return };
        let count = kept.counts.entry(kind).or_default();
        *count += 1;
        if !(2..=KEPT).contains(count) {
            return;
        }
        let own = Shaped::new(part);
        if (&own.reads, &own.writes, &own.order) == (&shaped.reads, &shaped.writes, &shaped.order) {
            kept.parts.insert(instance, Arc::new(own));
        } else {
            self.fail(LayoutError::Parameters(format!(
                "instance {instance} was added with a part that is equal to that of type '{}', but has \
                 other slots: `PartialEq` must compare all fields that slots depend on",
                part.name()
            )));
        }
    }

    /// The part that an instance was added with, if it was kept.
    pub(super) fn kept(&self, instance: InstanceId) -> Option<&dyn ErasedPart> {
        Some(&**self.kept.as_ref()?.parts.get(&to_index(instance.index()))?)
    }

    /// The handle of a wire for the author.
    fn handle(&self, number: u32) -> Wire {
        Wire { number, call: self.call }
    }

    /// The number of a wire of this call; an error for `build` if another call made it.
    fn own(&mut self, wire: Wire, what: impl Fn() -> String) -> u32 {
        if wire.call != self.call {
            self.fail(LayoutError::Parameters(format!(
                "{} was made by another call of `wire`: each call must make its own wires, so do not \
                 keep them in the circuit",
                what()
            )));
            return NO_WIRE;
        }
        wire.number
    }

    /// The type of a part, which is declared when the first one is added.
    fn kind<P: Part>(&mut self, part: &P) -> u32 {
        let name = part.name();
        if let Some(kind) = self.by_name.get(&name).copied() {
            let declared = self.kinds[kind as usize].part.as_any().downcast_ref::<Shaped<P>>();
            // Compared by value: parts with other parameters have other constraints, and a type has one R1CS.
            if declared.map(|shaped| &shaped.part) != Some(part) {
                self.fail(LayoutError::DuplicateType(name));
            }
            return kind;
        }
        let shaped = Shaped::new(part);
        if !shaped.order_is_complete() {
            self.fail(LayoutError::Parameters(format!(
                "the order of the slots of type '{name}' does not have each slot once"
            )));
        }
        let kind = to_index(self.kinds.len());
        let (slot_names, unconstrained) = (shaped.slot_names(), part.unconstrained());
        let accesses = part.accesses();
        let part = Arc::new(shaped);
        self.kinds.push(PartType { name: name.clone(), part, slot_names, unconstrained, accesses });
        self.by_name.insert(name, kind);
        kind
    }

    fn special_wire(&mut self, source: Source, is_known: bool) -> u32 {
        let wire = self.push(to_index(self.special.len()) | SPECIAL);
        if wire != NO_WIRE {
            self.special.push(Special { source, is_known });
        }
        wire
    }

    fn push(&mut self, origin: u32) -> u32 {
        // More would take the bit `SPECIAL`, and be more than a layout has.
        if self.wires.len() >= LIMIT {
            self.fail(LayoutError::TooMany("wires"));
            return NO_WIRE;
        }
        self.wires.push(Entry { writer: NOBODY, readers: 0, origin });
        to_index(self.wires.len() - 1)
    }

    /// All wires, in the order in which they were made.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = u32> + use<I> {
        0..to_index(self.wires.len())
    }

    fn entry(&self, wire: u32) -> Option<&Entry> {
        self.wires.get(wire as usize)
    }

    fn special(&self, wire: u32) -> Option<&Special> {
        let origin = self.entry(wire)?.origin;
        (origin & SPECIAL != 0).then(|| &self.special[(origin ^ SPECIAL) as usize])
    }

    /// The origin of a wire; `None` if there is no such wire.
    pub(super) fn source(&self, wire: u32) -> Option<Source> {
        let Entry { writer: instance, origin: slot, .. } = *self.entry(wire)?;
        let special = self.special(wire).map(|special| special.source);
        Some(special.unwrap_or(Source::Written { instance, slot }))
    }

    /// Reports whether the value of a wire is known before its writer has run.
    pub(super) fn is_known(&self, wire: u32) -> bool {
        self.special(wire).is_some_and(|special| special.is_known)
    }

    /// The instance that writes a wire.
    pub(super) fn writer(&self, wire: u32) -> Option<u32> {
        self.entry(wire).map(|entry| entry.writer).filter(|writer| *writer != NOBODY)
    }

    /// The number of slots that read a wire.
    pub(super) fn readers(&self, wire: u32) -> u32 {
        self.entry(wire).map_or(0, |entry| entry.readers)
    }

    /// The name of a wire as a public output.
    pub(super) fn output_name(&self, wire: u32) -> Option<(&'static str, u64)> {
        self.outputs.get(&wire).copied()
    }

    fn reads(&mut self, wire: u32, instance: u32) {
        if wire == NO_WIRE {
            return;
        }
        let entry = &mut self.wires[wire as usize];
        entry.readers += 1;
        // Instances are executed in order, so the value would not be known yet.
        if entry.writer >= instance && !self.is_known(wire) {
            let name = self.name(wire);
            self.fail(LayoutError::Parameters(format!(
                "instance {instance} reads wire {name} before a part writes it: add its writer \
                 first, or `promise` its value"
            )));
        }
    }

    fn writes(&mut self, wire: u32, instance: u32) {
        let special = self.special(wire).map(|special| special.source);
        let writable = !matches!(special, Some(Source::PublicInput(..) | Source::Constant(_)));
        let Some(entry) = self.wires.get_mut(wire as usize) else {
            return self.fail(LayoutError::Parameters(format!(
                "instance {instance} is to write an unused wire: `declare` the wires that it writes"
            )));
        };
        if writable && entry.writer == NOBODY {
            entry.writer = instance;
        } else {
            let name = self.name(wire);
            self.fail(LayoutError::Parameters(format!(
                "instance {instance} writes wire {name}, which has a writer already"
            )));
        }
    }

    /// The name of a wire for messages.
    pub(super) fn name(&self, wire: u32) -> String {
        match self.source(wire) {
            None => "of an unused slot".to_owned(),
            Some(Source::Declared(name, index) | Source::PublicInput(name, index)) => {
                WireName(name, index).to_string()
            }
            Some(Source::Constant(value)) => format!("constant {}", crate::text::show(&value)),
            Some(Source::Written { instance, slot }) => {
                // The instance may be the one that is being added, which is not in the list yet.
                let kind = (self.instances.get(instance as usize))
                    .and_then(|instance| self.kinds.get(instance.kind as usize));
                match kind.and_then(|kind| Some((kind, kind.slot_names.get(slot as usize)?))) {
                    Some((kind, slot)) => format!("{}.{slot} of instance {instance}", kind.name),
                    None => format!("in slot {slot} of instance {instance}"),
                }
            }
        }
    }

    /// Keeps the first error.
    fn fail(&mut self, error: LayoutError) {
        self.error.get_or_insert(error);
    }
}

/// A private input without its type.
fn erase<I: ?Sized, P: Part>(
    private: impl Fn(&I) -> Result<P::Private, CircuitError> + Send + Sync + 'static,
) -> PrivateOf<I> {
    Box::new(move |input| Ok(Box::new(private(input)?) as AnyPrivate))
}
