//! A circuit with its layout, without its types: setup, provers, ranks and checks work with this
//! one form, so that they are compiled once and not once per circuit.

use crate::buses::library::LibraryInput;
use crate::buses::library::memory::Access;
use crate::circuit::Circuit;
use crate::circuit_error::CircuitError;
use crate::execution::panics::{Failure, guard};
use crate::execution::values::WireValues;
use crate::execution::{Execution, ExecutionError, PrivateInput, PrivateInputs};
use crate::interface::{Masking, MemoryChallenges, SlotAccess};
use crate::layout::Layout;
use crate::layout::builder::LayoutBuilder;
use crate::layout::error::LayoutError;
use crate::layout::ids::{InstanceId, TypeId};
use crate::memory::prefix::{Pole, Prefix};
use crate::synthesis::stored::{Stored, StoredRow, StoredRows};
use crate::synthesis::subcircuit::Subcircuit;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::sync::Arc;

/// A circuit's code behind one object-safe interface.
trait Code: Send + Sync {
    fn executes_ranges(&self) -> bool;

    fn execute<'r>(
        &'r self,
        instances: Option<Range<usize>>,
        values: &mut WireValues,
    ) -> Option<Result<Box<dyn PrivateInputs + 'r>, Failure<CircuitError>>>;

    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&PrivateInput>,
    ) -> Result<(), Failure<SynthesisError>>;

    fn encode(&self, private: &PrivateInput) -> Result<Vec<u8>, String>;

    /// Decodes a private input, and returns the bytes that follow it.
    fn decode<'b>(&self, bytes: &'b [u8]) -> Result<(PrivateInput, &'b [u8]), String>;

    fn stored(&self) -> Option<&dyn Stored>;

    /// The same circuit with its layout made again, which keeps parts.
    fn again(&self) -> Result<(Box<dyn Code + '_>, Layout), LayoutError>;
}

/// A circuit with its types.
struct Typed<'a, C: Circuit> {
    circuit: &'a C,
    plan: C::Plan,
    input: Option<&'a C::Input>,
}

impl<C: Circuit> Code for Typed<'_, C> {
    fn executes_ranges(&self) -> bool {
        C::EXECUTES_RANGES
    }

    fn execute<'r>(
        &'r self,
        instances: Option<Range<usize>>,
        values: &mut WireValues,
    ) -> Option<Result<Box<dyn PrivateInputs + 'r>, Failure<CircuitError>>> {
        let (circuit, plan, input) = (self.circuit, &self.plan, self.input?);
        let trace = match instances {
            None => guard("execute", || circuit.execute(plan, input, values)),
            Some(range) => {
                guard("execute_range", || circuit.execute_range(plan, input, range, values))
            }
        };
        Some(trace.map(|trace| Box::new(TypedTrace { typed: self, input, trace }) as Box<_>))
    }

    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&PrivateInput>,
    ) -> Result<(), Failure<SynthesisError>> {
        // Every private input of this circuit was made by `private_input` or `decode` below, so it has the
        // right type.
        let typed = private.and_then(|private| private.downcast_ref());
        guard("synthesize", || self.circuit.synthesize(&self.plan, subcircuit, typed))
    }

    fn encode(&self, private: &PrivateInput) -> Result<Vec<u8>, String> {
        let typed: &C::Private = private.downcast_ref().ok_or("it belongs to another circuit")?;
        let encoded = guard("serializing the private input", || postcard::to_allocvec(typed));
        encoded.map_err(|e| match e {
            Failure::Returned(e) => e.to_string(),
            Failure::Panicked(e) => e.to_string(),
        })
    }

    fn decode<'b>(&self, bytes: &'b [u8]) -> Result<(PrivateInput, &'b [u8]), String> {
        let decode = || postcard::take_from_bytes::<C::Private>(bytes);
        match guard("deserializing the private input", decode) {
            Ok((private, rest)) => Ok((PrivateInput::new(private), rest)),
            Err(Failure::Returned(e)) => Err(e.to_string()),
            Err(Failure::Panicked(e)) => Err(e.to_string()),
        }
    }

    fn stored(&self) -> Option<&dyn Stored> {
        self.circuit.stored().map(|_| self as &dyn Stored)
    }

    fn again(&self) -> Result<(Box<dyn Code + '_>, Layout), LayoutError> {
        let (typed, layout) = planned(self.circuit, self.input, LayoutBuilder::keeping_parts())?;
        Ok((Box::new(typed), layout))
    }
}

/// A circuit with its layout.
fn planned<'a, C: Circuit>(
    circuit: &'a C,
    input: Option<&'a C::Input>,
    mut builder: LayoutBuilder,
) -> Result<(Typed<'a, C>, Layout), LayoutError> {
    let planned = guard("layout", || circuit.layout(&mut builder)).map_err(|e| match e {
        Failure::Returned(e) => e,
        Failure::Panicked(panic) => LayoutError::Panic(panic),
    });
    // An error of the builder comes first, because it is usually the cause of the author's.
    builder.first_error()?;
    let (plan, layout) = (planned?, builder.build()?);
    Ok((Typed { circuit, plan, input }, layout))
}

impl<C: Circuit> Typed<'_, C> {
    /// Calls a function with the stored rows of a circuit that stores its constraints.
    fn rows_of<R>(
        &self,
        what: &'static str,
        call: impl FnOnce(&dyn StoredRows<C::Private>) -> Result<R, CircuitError>,
    ) -> Result<R, Failure<CircuitError>> {
        guard(what, || match self.circuit.stored() {
            Some(stored) => call(stored),
            None => Err("the circuit no longer has its stored constraints".into()),
        })
    }
}

impl<C: Circuit> Stored for Typed<'_, C> {
    fn has_rows(&self) -> bool {
        self.circuit.stored().is_some_and(|stored| stored.has_rows())
    }

    fn own(&self, kind: TypeId) -> usize {
        self.circuit.stored().map_or(0, |stored| stored.own(kind))
    }

    fn rows(
        &self,
        kind: TypeId,
        row: &mut dyn FnMut(StoredRow<'_>),
    ) -> Result<(), Failure<CircuitError>> {
        self.rows_of("reading stored constraints", |stored| stored.rows(kind, row))
    }

    fn own_values(
        &self,
        kind: TypeId,
        slots: &[Fr],
        private: &PrivateInput,
        out: &mut Vec<Fr>,
    ) -> Result<(), Failure<CircuitError>> {
        self.rows_of("decoding values", |stored| {
            let typed = private.downcast_ref().ok_or("it belongs to another circuit")?;
            stored.own_values(kind, slots, typed, out)
        })
    }

    fn describe(&self, instance: InstanceId, row: usize) -> Option<String> {
        self.circuit.stored()?.describe(instance, row)
    }
}

/// A trace with its types.
struct TypedTrace<'r, 'a, C: Circuit> {
    typed: &'r Typed<'a, C>,
    input: &'a C::Input,
    trace: C::Trace,
}

impl<C: Circuit> PrivateInputs for TypedTrace<'_, '_, C> {
    fn get(&self, instance: InstanceId) -> Result<PrivateInput, Failure<CircuitError>> {
        let Typed { circuit, plan, .. } = self.typed;
        let get = || circuit.private_input(plan, self.input, &self.trace, instance);
        guard("private_input", get).map(PrivateInput::new)
    }
}

/// A circuit with its checked layout and, for a run, its input. It is made once per setup, run or
/// check, and no longer depends on the circuit's types.
pub struct PreparedCircuit<'a> {
    code: Box<dyn Code + 'a>,
    layout: Layout,
    /// With masks, and without.
    pinned_types: Option<[[u8; 32]; 2]>,
}

impl std::fmt::Debug for PreparedCircuit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedCircuit")
            .field("instances", &self.layout.instances())
            .finish_non_exhaustive()
    }
}

impl<'a> PreparedCircuit<'a> {
    /// A circuit without an input: for setup, and for ranks that execute nothing.
    ///
    /// # Errors
    /// If the circuit has no valid layout.
    pub fn new<C: Circuit>(circuit: &'a C) -> Result<Self, LayoutError> {
        Self::prepare(circuit, None)
    }

    /// A circuit with the input of a run.
    ///
    /// # Errors
    /// If the circuit has no valid layout.
    pub fn with_input<C: Circuit>(
        circuit: &'a C,
        input: &'a C::Input,
    ) -> Result<Self, LayoutError> {
        Self::prepare(circuit, Some(input))
    }

    fn prepare<C: Circuit>(
        circuit: &'a C,
        input: Option<&'a C::Input>,
    ) -> Result<Self, LayoutError> {
        let (typed, layout) = planned(circuit, input, Layout::builder())?;
        Ok(Self { layout, code: Box::new(typed), pinned_types: None })
    }

    /// The circuit with its layout made again, in which instances have the parts that they were added with.
    ///
    /// # Errors
    /// Fails if the circuit has no valid layout this time.
    pub(crate) fn again(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        let (code, layout) = self.code.again()?;
        Ok(PreparedCircuit { layout, code, pinned_types: None })
    }

    /// States the digests ([`digest_of_types`]), with and without masks, of families whose types have exactly the constraints
    /// that this circuit's code has for them. Keys are then derived from these families without synthesizing the types
    /// (spec: key-family#pinned).
    ///
    /// **Soundness depends on them**: a proof under keys with other constraints than the code's proves something else. They
    /// must be constants of the program that tests compare with the code, never data from elsewhere.
    ///
    /// [`digest_of_types`]: crate::prover::digest_of_types
    #[must_use]
    pub fn with_pinned_types(mut self, [masked, unmasked]: [[u8; 32]; 2]) -> Self {
        self.pinned_types = Some([masked, unmasked]);
        self
    }

    /// Reports whether this digest of a family's types is [pinned](Self::with_pinned_types).
    pub fn has_pinned_types(&self, masking: Masking, digest: &[u8; 32]) -> bool {
        self.pinned_types.is_some_and(|[masked, unmasked]| match masking {
            Masking::Masked => masked == *digest,
            Masking::Unmasked => unmasked == *digest,
        })
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The variables of an instance's memory check under these challenges.
    ///
    /// # Errors
    /// If the fingerprint of a slot is zero.
    ///
    /// # Panics
    /// If the numbers of slots and values differ.
    pub fn prefix(
        &self,
        instance: InstanceId,
        slots: &[SlotAccess],
        values: &[Fr],
        memory: &MemoryChallenges,
    ) -> Result<Prefix, Pole> {
        Prefix::with(slots, values, self.layout.preprocessed(instance), memory)
    }

    /// Executes the circuit on its input. Look-ups are not counted: in a circuit with tables,
    /// [`Execution::set_counts`] must follow before there are private inputs of tables.
    ///
    /// # Errors
    /// If the circuit's `execute` fails or leaves a wire without a value, or there is no input.
    pub fn execute_uncounted(&self) -> Result<Execution<'_>, ExecutionError> {
        let mut values = WireValues::new(&self.layout);
        let executed = self.code.execute(None, &mut values);
        let private = executed.ok_or(ExecutionError::NoInput)?.map_err(ExecutionError::execute)?;
        values.finish(&self.layout);
        values.check_complete(&self.layout)?;
        Ok(Execution::new(private, values))
    }

    /// Reports whether [`execute_range`](Self::execute_range) does less than the whole execution. With
    /// memories it never does: the last accesses to their cells may be anywhere.
    pub fn executes_ranges(&self) -> bool {
        self.code.executes_ranges() && !self.layout.has_memories()
    }

    /// Executes only what a range of instances needs, and keeps only the values in their slots.
    ///
    /// # Errors
    /// If the circuit's `execute_range` fails or leaves a wire of the range without a value, or
    /// there is no input.
    pub fn execute_range(&self, instances: Range<usize>) -> Result<Execution<'_>, ExecutionError> {
        let mut values = WireValues::new(&self.layout);
        let executed = self.code.execute(Some(instances.clone()), &mut values);
        let private = executed.ok_or(ExecutionError::NoInput)?.map_err(ExecutionError::execute)?;
        values.check_range(&self.layout, instances.clone())?;
        // The execution of a range may pass through values of earlier instances. A rank that kept them
        // would need the memory of the whole run.
        values.retain(&self.layout, instances);
        Ok(Execution::new(private, values))
    }

    /// Encodes a private input for another machine.
    ///
    /// # Errors
    /// If it cannot be serialized.
    pub fn encode_private(&self, private: &PrivateInput) -> Result<Vec<u8>, String> {
        if let Some(input) = private.downcast_ref::<LibraryInput>() {
            return postcard::to_allocvec(input).map_err(|e| e.to_string());
        }
        let mut bytes = self.code.encode(private)?;
        if !private.trace.is_empty() {
            bytes = postcard::to_extend(&*private.trace, bytes).map_err(|e| e.to_string())?;
        }
        Ok(bytes)
    }

    /// Decodes [`Self::encode_private`] of an instance.
    ///
    /// # Errors
    /// If the bytes are not the encoding of a private input of such an instance.
    pub fn decode_private_of(
        &self,
        instance: InstanceId,
        bytes: &[u8],
    ) -> Result<PrivateInput, String> {
        // The bytes and the number come from another machine.
        if instance.index() >= self.layout.instances() {
            return Err(format!("the layout has no instance {}", instance.index()));
        }
        let kind = self.layout.type_of(instance);
        let places = self.layout.ram_places(kind);
        match self.layout.library(kind) {
            Some(kind) => {
                let input: LibraryInput = whole(bytes)?;
                let rows = match &input {
                    LibraryInput::Counts(list) => list.len(),
                    LibraryInput::Cells(list) => list.len(),
                };
                // A shorter list would leave variables without a value, a longer one would be ignored.
                match rows == kind.rows {
                    true => Ok(PrivateInput::new(input)),
                    false => Err(format!("{rows} rows, expected {}", kind.rows)),
                }
            }
            None if places.is_empty() => self.decode_private(bytes),
            // The accesses follow the author's input, if there are any.
            None => {
                let (private, rest) = self.code.decode(bytes)?;
                let trace: Vec<Vec<Access>> = match rest {
                    [] => Vec::new(),
                    rest => whole(rest)?,
                };
                Ok(private.with_trace(trace))
            }
        }
    }

    /// Decodes [`Self::encode_private`] of an instance of the author's without accesses to memories.
    ///
    /// # Errors
    /// If the bytes are not the encoding of a private input of this circuit.
    pub fn decode_private(&self, bytes: &[u8]) -> Result<PrivateInput, String> {
        match self.code.decode(bytes)? {
            (private, []) => Ok(private),
            (_, rest) => Err(format!("{} bytes follow its end", rest.len())),
        }
    }

    /// The stored constraints, if the circuit has them in place of gadgets.
    pub(crate) fn stored(&self) -> Option<&dyn Stored> {
        self.code.stored()
    }

    /// Calls the author's `synthesize`. It is not inlined because messages name the functions that it calls, by its own
    /// name ([`places`](crate::synthesis::places)).
    #[inline(never)]
    pub(crate) fn call_synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&PrivateInput>,
    ) -> Result<(), Failure<SynthesisError>> {
        if let Some(kind) = self.layout.library(subcircuit.kind()) {
            let input = private.and_then(|private| private.downcast_ref());
            return kind.synthesize(subcircuit, input).map_err(Failure::Returned);
        }
        let trace = private.map(|private| Arc::clone(&private.trace));
        subcircuit.ledger().borrow_mut().trace = trace;
        // Gadgets and parts have only the constraint system, and find the subcircuit through it.
        subcircuit.attach();
        let result = self.code.synthesize(subcircuit, private);
        subcircuit.detach();
        result
    }
}

/// Decodes all of these bytes.
fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(format!("{} bytes follow its end", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}
