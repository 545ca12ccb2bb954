//! One type of subcircuit, with its slots as Rust types.

use super::slots::{Leaf, Shape, Slot, Slots};
use crate::circuit_error::CircuitError;
use crate::execution::values::WireValues;
use crate::layout::ids::{InstanceId, RamId};
use crate::synthesis::subcircuit::Subcircuit;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{ConstraintSystem, ConstraintSystemRef, SynthesisError};
use hekaton_arith::Fr;
use std::any::Any;

/// The way in which a part accesses a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads the slot.
    Read,
    /// It writes the slot.
    Write,
}

/// The constraint system of a subcircuit.
pub type Cs = ConstraintSystemRef<Fr>;
/// A variable of a subcircuit, for arkworks' gadgets.
pub type Var = FpVar<Fr>;
/// The result of [`Part::synthesize`].
pub type Synthesized = Result<(), SynthesisError>;

/// A type of subcircuit. Parts that are equal are the same type; two different parts of one circuit
/// need different names.
pub trait Part: Clone + PartialEq + Send + Sync + 'static {
    /// The slots that it reads: a slot `W`, a struct that derives [`Slots`], an array, a vector, a
    /// tuple, or `()`.
    type Reads<W: Leaf>: Slots<W>;
    /// The slots that it writes.
    type Writes<W: Leaf>: Slots<W>;
    /// The input that one subcircuit needs in addition to its slots; `()` for nothing.
    type Private: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static;

    /// The name of the type, which becomes a file name in the key store: 1 to 64 characters from
    /// a-z, 0-9, `_` and `-`.
    const NAME: &'static str;

    /// The name, for parts that are several types.
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    /// The shape of the slots that it reads. Only parts with vectors must implement it, for their lengths.
    fn reads(&self) -> Self::Reads<Slot> {
        Slots::build(&Shape::fixed(), &mut || Slot)
    }

    /// The shape of the slots that it writes. Only parts with vectors must implement it, for their lengths.
    fn writes(&self) -> Self::Writes<Slot> {
        Slots::build(&Shape::fixed(), &mut || Slot)
    }

    /// The order of the slots in the R1CS. Slots that are read keep their order, and so do those that are
    /// written. By default, all that are read come first. Change it only to keep the keys of a circuit that
    /// had another order.
    fn order(&self, reads: usize, writes: usize) -> Vec<Access> {
        [vec![Access::Read; reads], vec![Access::Write; writes]].concat()
    }

    /// The slots that may be in no constraint, by [order](Self::order): without this declaration,
    /// setup and `check` refuse such a slot. The default is that none may.
    fn unconstrained(&self) -> Vec<usize> {
        Vec::new()
    }

    /// The memories that the part accesses, with the number of accesses of each subcircuit to each of
    /// them. The default is none.
    fn accesses(&self) -> Vec<(RamId, usize)> {
        Vec::new()
    }

    /// Does the work of [`run`](Self::run) for parts that access memories: `memory` must make the same
    /// accesses, in the same order, as the constraints ([`Subcircuit::ram`]). The default calls `run`.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    fn run_in(
        &self,
        memory: &mut Memory<'_>,
        reads: &Self::Reads<Fr>,
        private: &Self::Private,
    ) -> Result<Self::Writes<Fr>, CircuitError> {
        let _ = memory;
        self.run(reads, private)
    }

    /// Computes the written values natively. Every part must define it, except those that access memories, which define
    /// [`run_in`](Self::run_in) instead.
    ///
    /// # Errors
    /// Fails if the values are not possible, or the part does not define it.
    fn run(
        &self,
        reads: &Self::Reads<Fr>,
        private: &Self::Private,
    ) -> Result<Self::Writes<Fr>, CircuitError> {
        let _ = (reads, private);
        Err("this part defines no `run`; one with `run_in` needs its memories".into())
    }

    /// Adds the constraints between the slots that are read and those that are written. At setup, `private`
    /// is `None` and no variable has a value. [`Subcircuit::of`] has the tables, memories and buses.
    ///
    /// # Errors
    /// If a gadget fails.
    fn synthesize(
        &self,
        cs: Cs,
        reads: &Self::Reads<Var>,
        writes: &Self::Writes<Var>,
        private: Option<&Self::Private>,
    ) -> Synthesized;
}

/// The memories, seen from one subcircuit in the native execution.
#[derive(Debug)]
pub struct Memory<'a> {
    values: &'a mut WireValues,
    instance: InstanceId,
}

impl<'a> Memory<'a> {
    pub(super) fn new(values: &'a mut WireValues, instance: InstanceId) -> Self {
        Self { values, instance }
    }

    /// Reads a cell.
    ///
    /// # Errors
    /// If the part [declares](Part::accesses) fewer accesses, or the address is not in the memory.
    pub fn read(&mut self, ram: RamId, address: u64) -> Result<Fr, CircuitError> {
        self.values.read(self.instance, ram, address)
    }

    /// Writes a cell.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write(&mut self, ram: RamId, address: u64, value: Fr) -> Result<(), CircuitError> {
        self.values.write(self.instance, ram, address, value)
    }

    /// Writes a cell if `enable`, and leaves it as it is otherwise: an access in both cases.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write_if(
        &mut self,
        ram: RamId,
        enable: bool,
        address: u64,
        value: Fr,
    ) -> Result<(), CircuitError> {
        self.values.write_if(self.instance, ram, enable, address, value)
    }
}

/// Runs a part natively, synthesizes it with these values, and returns the written values, and `true` if
/// all constraints hold. It is for unit tests of a part without tables, memories and buses.
///
/// # Errors
/// If the part's `run` or `synthesize` fails.
pub fn run_and_check<P: Part>(
    part: &P,
    reads: &P::Reads<Fr>,
    private: &P::Private,
) -> Result<(P::Writes<Fr>, bool), CircuitError> {
    let writes = part.run(reads, private)?;
    let cs = ConstraintSystem::<Fr>::new_ref();
    let variables = |values: Vec<Fr>| -> Result<Vec<FpVar<Fr>>, SynthesisError> {
        values.into_iter().map(|value| FpVar::new_witness(cs.clone(), || Ok(value))).collect()
    };
    let read = variables(list(reads))?;
    let written = variables(list(&writes))?;
    let (reads, writes_of) =
        (build(&reads.shape(), read.into_iter())?, build(&writes.shape(), written.into_iter())?);
    part.synthesize(cs.clone(), &reads, &writes_of, Some(private))?;
    Ok((writes, cs.is_satisfied()?))
}

/// The values of slots in order.
pub(super) fn list<W: Clone, S: Slots<W>>(slots: &S) -> Vec<W> {
    let mut out = Vec::new();
    slots.visit(&mut |value| out.push(value.clone()));
    out
}

/// Slots of a shape from values in order; fails if there are too few.
fn build<W: Clone, S: Slots<W>>(
    shape: &Shape,
    mut values: impl Iterator<Item = W>,
) -> Result<S, SynthesisError> {
    // `Slots::build` cannot fail, so a missing value is replaced, and the error returned afterwards.
    let first = values.next();
    let (mut missing, mut next) = (false, first.clone());
    let built = S::build(shape, &mut || {
        let value = next.take().or_else(|| values.next());
        missing |= value.is_none();
        value.or_else(|| first.clone()).expect("slots of an empty shape take no value")
    });
    if missing { Err(SynthesisError::Unsatisfiable) } else { Ok(built) }
}

/// The private input of a part, without its type.
pub(super) type AnyPrivate = Box<dyn Any + Send + Sync>;

/// A part without its types.
pub(super) trait ErasedPart: Send + Sync {
    fn as_any(&self) -> &dyn Any;

    /// The accesses of all slots, in their order.
    fn order(&self) -> &[Access];

    fn run(
        &self,
        memory: &mut Memory<'_>,
        reads: &[Fr],
        private: &AnyPrivate,
    ) -> Result<Vec<Fr>, CircuitError>;

    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&[u8]>,
    ) -> Result<(), SynthesisError>;

    fn encode(&self, private: &AnyPrivate) -> Result<Vec<u8>, CircuitError>;
}

/// A part with its shapes.
pub(super) struct Shaped<P> {
    pub(super) part: P,
    pub(super) reads: Shape,
    pub(super) writes: Shape,
    pub(super) order: Vec<Access>,
}

impl<P: Part> Shaped<P> {
    pub(super) fn new(part: &P) -> Self {
        let (reads, writes) = (part.reads().shape(), part.writes().shape());
        let order = part.order(reads.names().len(), writes.names().len());
        Self { part: part.clone(), reads, writes, order }
    }

    /// The names of the slots, in their order.
    pub(super) fn slot_names(&self) -> Vec<String> {
        let mut reads = self.reads.names().into_iter().map(|name| named(name, "read"));
        let mut writes = self.writes.names().into_iter().map(|name| named(name, "written"));
        let next = |access: &Access| match access {
            Access::Read => reads.next(),
            Access::Write => writes.next(),
        };
        // An order with too many slots of one kind is an error of the caller, `order_is_complete`.
        self.order.iter().map(next).map(Option::unwrap_or_default).collect()
    }

    /// Reports whether the order has every slot once.
    pub(super) fn order_is_complete(&self) -> bool {
        let count = |access| self.order.iter().filter(|a| **a == access).count();
        count(Access::Read) == self.reads.names().len()
            && count(Access::Write) == self.writes.names().len()
    }
}

/// The name of a slot; the only slot of a part has no name of its own.
fn named(name: String, only: &str) -> String {
    if name.is_empty() { only.to_owned() } else { name }
}

impl<P: Part> ErasedPart for Shaped<P> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn order(&self) -> &[Access] {
        &self.order
    }

    fn run(
        &self,
        memory: &mut Memory<'_>,
        reads: &[Fr],
        private: &AnyPrivate,
    ) -> Result<Vec<Fr>, CircuitError> {
        let typed = private.downcast_ref().ok_or("the private input is of another part")?;
        let read = build(&self.reads, reads.iter().copied())?;
        let writes = self.part.run_in(memory, &read, typed)?;
        // The lengths of vectors are the part's own, and the slots after a missing one would shift.
        if writes.shape() != self.writes {
            let (found, expected) = (writes.shape().names().len(), self.writes.names().len());
            return Err(format!("run returned {found} slots, expected {expected}").into());
        }
        Ok(list(&writes))
    }

    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&[u8]>,
    ) -> Result<(), SynthesisError> {
        let of = |access: Access| {
            (subcircuit.slots().iter().zip(&self.order))
                .filter(move |(_, a)| **a == access)
                .map(|(slot, _)| slot.clone())
        };
        let reads = build(&self.reads, of(Access::Read))?;
        let writes = build(&self.writes, of(Access::Write))?;
        // The bytes were encoded below, for the part of this subcircuit. They are decoded here and not with
        // the job, because only here their type is known.
        let decode = |bytes| match postcard::take_from_bytes(bytes) {
            Ok((private, [])) => Ok(private),
            _ => Err(SynthesisError::Unsatisfiable),
        };
        let typed: Option<P::Private> = private.map(decode).transpose()?;
        self.part.synthesize(subcircuit.cs(), &reads, &writes, typed.as_ref())
    }

    fn encode(&self, private: &AnyPrivate) -> Result<Vec<u8>, CircuitError> {
        let typed: &P::Private =
            private.downcast_ref().ok_or("the private input is of another part")?;
        Ok(postcard::to_allocvec(typed)?)
    }
}
