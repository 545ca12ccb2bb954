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
use crate::layout::ids::{BusId, RamId, TableId, WireName, to_index};
use hekaton_arith::Fr;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
    /// The wires of all instances.
    pub(super) slots: Vec<Wire>,
    wires: Vec<Entry>,
    special: Vec<Special>,
    /// The names of public outputs.
    outputs: BTreeMap<u32, (&'static str, u64)>,
    constants: HashMap<Fr, Wire>,
    /// Values that follow from the input alone.
    pub(super) values: Vec<(Wire, ValueOf<I>)>,
    /// The buses, tables and memories.
    pub(super) library: LayoutBuilder,
    pub(super) error: Option<LayoutError>,
}

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
            error: None,
        }
    }
}

impl<I: ?Sized> Wires<I> {
    /// Declares a table, for a field of the parts that look something up in it
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
        wire
    }

    /// A wire whose value the verifying key fixes: no prover can choose it, and it is not among the public
    /// values. Use it for starts, and to pad uneven counts.
    pub fn constant(&mut self, value: impl Into<Fr>) -> Wire {
        let constant = value.into();
        if let Some(wire) = self.constants.get(&constant) {
            return *wire;
        }
        let wire = self.special_wire(Source::Constant(constant), true);
        self.constants.insert(constant, wire);
        wire
    }

    /// The wire of a slot that is left unused, with the value 0 in an honest run. **The prover may choose
    /// another value**, so the statement must not depend on it; use [`constant`](Self::constant) if it does.
    pub fn unused(&self) -> Wire {
        NO_WIRE
    }

    /// A wire that a later [`add_into`](Self::add_into) writes, and that only parts added after its writer
    /// read. Names of wires appear in messages only.
    pub fn declare(&mut self, name: &'static str, index: u64) -> Wire {
        self.special_wire(Source::Declared(name, index), false)
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
        wire
    }

    /// Makes a wire a public output, which the verifier reads.
    pub fn output(&mut self, name: &'static str, wire: Wire) {
        self.output_at(name, 0, wire);
    }

    /// [`output`](Self::output) with a number, for several wires of one name.
    pub fn output_at(&mut self, name: &'static str, index: u64, wire: Wire) {
        match (self.source(wire), self.outputs.get(&wire.0)) {
            (None, _) => {
                self.fail(LayoutError::Foreign { what: "wire", index: wire.0 as usize });
            }
            // The verifier would read a value that it wrote itself, or one value under two names.
            (Some(Source::PublicInput(..) | Source::Constant(_)), _) | (_, Some(_)) => {
                self.fail(LayoutError::Parameters(format!(
                    "output '{name}[{index}]' is already public, or a constant: a public output must be \
                     written by a part, and declared once"
                )));
            }
            (Some(_), None) => drop(self.outputs.insert(wire.0, (name, index))),
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
            return Slots::build(&shaped.writes, &mut || NO_WIRE);
        }
        let read = list(reads);
        let written = writes.map(list);
        let instance = to_index(self.instances.len());
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
            return Slots::build(&shaped.writes, &mut || NO_WIRE);
        }
        let start = self.slots.len();
        let (mut reads, mut given) = (read.into_iter(), written.into_iter().flatten());
        let mut outputs = Vec::new();
        for (slot, access) in shaped.order.iter().enumerate() {
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
        self.instances.push(Instance { kind, start, private });
        let mut next = outputs.into_iter();
        Slots::build(&shaped.writes, &mut || next.next().unwrap_or(NO_WIRE))
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

    fn special_wire(&mut self, source: Source, is_known: bool) -> Wire {
        let wire = self.push(to_index(self.special.len()) | SPECIAL);
        if wire != NO_WIRE {
            self.special.push(Special { source, is_known });
        }
        wire
    }

    fn push(&mut self, origin: u32) -> Wire {
        // More would take the bit `SPECIAL`, and be more than a layout has.
        if self.wires.len() >= LIMIT {
            self.fail(LayoutError::TooMany("wires"));
            return NO_WIRE;
        }
        self.wires.push(Entry { writer: NOBODY, readers: 0, origin });
        Wire(to_index(self.wires.len() - 1))
    }

    /// All wires, in the order in which they were made.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = Wire> + use<I> {
        (0..to_index(self.wires.len())).map(Wire)
    }

    fn entry(&self, wire: Wire) -> Option<&Entry> {
        self.wires.get(wire.0 as usize)
    }

    fn special(&self, wire: Wire) -> Option<&Special> {
        let origin = self.entry(wire)?.origin;
        (origin & SPECIAL != 0).then(|| &self.special[(origin ^ SPECIAL) as usize])
    }

    /// The origin of a wire; `None` if there is no such wire.
    pub(super) fn source(&self, wire: Wire) -> Option<Source> {
        let Entry { writer: instance, origin: slot, .. } = *self.entry(wire)?;
        let special = self.special(wire).map(|special| special.source);
        Some(special.unwrap_or(Source::Written { instance, slot }))
    }

    /// Reports whether the value of a wire is known before its writer has run.
    pub(super) fn is_known(&self, wire: Wire) -> bool {
        self.special(wire).is_some_and(|special| special.is_known)
    }

    /// The instance that writes a wire.
    pub(super) fn writer(&self, wire: Wire) -> Option<u32> {
        self.entry(wire).map(|entry| entry.writer).filter(|writer| *writer != NOBODY)
    }

    /// The number of slots that read a wire.
    pub(super) fn readers(&self, wire: Wire) -> u32 {
        self.entry(wire).map_or(0, |entry| entry.readers)
    }

    /// The name of a wire as a public output.
    pub(super) fn output_name(&self, wire: Wire) -> Option<(&'static str, u64)> {
        self.outputs.get(&wire.0).copied()
    }

    fn reads(&mut self, wire: Wire, instance: u32) {
        if wire == NO_WIRE {
            return;
        }
        let Some(entry) = self.wires.get_mut(wire.0 as usize) else {
            return self.fail(LayoutError::Foreign { what: "wire", index: wire.0 as usize });
        };
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

    fn writes(&mut self, wire: Wire, instance: u32) {
        let special = self.special(wire).map(|special| special.source);
        let writable = !matches!(special, Some(Source::PublicInput(..) | Source::Constant(_)));
        let Some(entry) = self.wires.get_mut(wire.0 as usize) else {
            return self.fail(LayoutError::Foreign { what: "wire", index: wire.0 as usize });
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
    pub(super) fn name(&self, wire: Wire) -> String {
        match self.source(wire) {
            None => format!("{wire:?}"),
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
