//! One subcircuit under synthesis: the variables and rows of the memory check, and the author's view of
//! them (spec: memory-check#variables, memory-check#rows, buses#variables, buses#rows).

use crate::buses::ledger::{BusValue, Ledger, value};
use crate::buses::library::{BusKind, BusSpec};
use crate::buses::mistake::Mistake;
use crate::layout::ids::{BusId, InstanceId, RamId, TableId, TypeId, to_index};
use crate::layout::{Layout, RamPlace};
use crate::memory::prefix::Prefix;
use crate::memory::variables::VariableLayout;
use crate::synthesis::places;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError};
use hekaton_arith::Fr;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A subcircuit being synthesized.
#[derive(Clone, Debug)]
pub struct Subcircuit {
    kind: TypeId,
    /// The instance whose own part is synthesized, in checks.
    instance: Option<InstanceId>,
    cs: ConstraintSystemRef<Fr>,
    slots: Vec<FpVar<Fr>>,
    parameters: Vec<FpVar<Fr>>,
    pairs: Vec<FpVar<Fr>>,
    /// The buses of the layout.
    buses: Arc<[BusSpec]>,
    /// The memories that the type accesses.
    rams: Arc<[RamPlace]>,
    /// The values that the author committed to, and the entries added to buses.
    ledger: Rc<RefCell<Ledger>>,
}

impl Subcircuit {
    /// The subcircuit that is being synthesized with a constraint system, for gadgets and parts, which have
    /// only the latter.
    ///
    /// # Errors
    /// If the constraint system is not that of a subcircuit of a layout, as in
    /// [`run_and_check`](crate::parts::run_and_check), which tests a part alone.
    pub fn of(cs: &ConstraintSystemRef<Fr>) -> Result<Self, SynthesisError> {
        let inner = cs.borrow().ok_or(SynthesisError::MissingCS)?;
        let cache = inner.cache_map.borrow();
        let found = cache.get(&std::any::TypeId::of::<Self>()).and_then(|any| any.downcast_ref());
        found.cloned().ok_or(SynthesisError::MissingCS)
    }

    /// Lets [`of`](Self::of) find the subcircuit, until [`detach`](Self::detach): the constraint system
    /// and the subcircuit refer to each other.
    pub(crate) fn attach(&self) {
        if let Some(cs) = self.cs.borrow() {
            let key = std::any::TypeId::of::<Self>();
            cs.cache_map.borrow_mut().insert(key, Box::new(self.clone()));
        }
    }

    pub(crate) fn detach(&self) {
        // Dropped only after the borrow of the cache has ended: the subcircuit owns the constraint system
        // that the cache belongs to.
        let attached = self
            .cs
            .borrow()
            .and_then(|cs| cs.cache_map.borrow_mut().remove(&std::any::TypeId::of::<Self>()));
        drop(attached);
    }

    /// The same for an instance whose own part is to be synthesized.
    pub(crate) fn of_instance(self, instance: Option<InstanceId>) -> Self {
        Self { instance, ..self }
    }

    /// The instance whose own part is synthesized; `None` outside of checks.
    pub(crate) fn instance(&self) -> Option<InstanceId> {
        self.instance
    }

    /// The type of the subcircuit.
    pub fn kind(&self) -> TypeId {
        self.kind
    }

    /// The constraint system for gadgets. Do not allocate public inputs in it: public values are
    /// shared wires of the layout.
    pub fn cs(&self) -> ConstraintSystemRef<Fr> {
        self.cs.clone()
    }

    /// The shared wires by slot; the length is the type's number of slots.
    pub fn slots(&self) -> &[FpVar<Fr>] {
        &self.slots
    }

    /// The shared wire in a slot.
    ///
    /// # Errors
    /// If the type has no such slot.
    pub fn slot(&self, slot: usize) -> Result<&FpVar<Fr>, SynthesisError> {
        self.slots.get(slot).ok_or_else(|| self.mistake(Mistake::Slot(slot)))
    }

    /// A parameter: a constant that the layout gives each instance.
    ///
    /// # Errors
    /// If the type has no such parameter.
    pub fn parameter(&self, index: usize) -> Result<&FpVar<Fr>, SynthesisError> {
        self.parameters.get(index).ok_or_else(|| self.mistake(Mistake::Parameter(index)))
    }

    /// Allocates a marked value: a variable that the subcircuit commits to before the challenges are
    /// drawn, so that entries of buses may contain it. It must be in a constraint or in an entry: setup
    /// refuses a type whose commitment would not bind it.
    ///
    /// The value must not depend on a challenge, which it cannot if it is computed from shared wires
    /// and the private input (spec: buses#commit-round).
    ///
    /// # Errors
    /// If the layout has no bus, or `value` fails.
    pub fn commit(
        &self,
        value: impl FnOnce() -> Result<Fr, SynthesisError>,
    ) -> Result<FpVar<Fr>, SynthesisError> {
        if self.buses.is_empty() {
            return Err(self.mistake(Mistake::CommitWithoutBus));
        }
        let mut assigned = None;
        let variable = self.cs.new_witness_variable(|| {
            let value = value()?;
            assigned = Some(value);
            Ok(value)
        })?;
        self.ledger.borrow_mut().mark(variable);
        Ok(FpVar::Var(AllocatedFp::new(assigned, variable, self.cs.clone())))
    }

    /// Marks what is allocated in `allocate` as private input, for checks of whether all other values follow from the inputs
    /// ([`CheckOptions::unique`](crate::CheckOptions::unique)). It changes no constraint. Outside of a subcircuit, as in
    /// [`run_and_check`](crate::parts::run_and_check), it only calls `allocate`.
    pub fn given<T>(cs: &ConstraintSystemRef<Fr>, allocate: impl FnOnce() -> T) -> T {
        let first = cs.num_witness_variables();
        let allocated = allocate();
        if let Ok(subcircuit) = Self::of(cs) {
            let end = cs.num_witness_variables();
            subcircuit.ledger.borrow_mut().given.push(first..end);
        }
        allocated
    }

    /// Marks a variable as private input, like [`given`](Self::given), for example a written slot that holds one.
    pub fn given_value(cs: &ConstraintSystemRef<Fr>, variable: &FpVar<Fr>) {
        if let (Ok(subcircuit), FpVar::Var(allocated)) = (Self::of(cs), variable)
            && let Some(index) = allocated.variable.get_variable_index(0)
        {
            subcircuit.ledger.borrow_mut().given.push(index..index + 1);
        }
    }

    /// The owner of a bus.
    pub(crate) fn bus_kind(&self, bus: BusId) -> Option<&BusKind> {
        self.buses.get(bus.index()).map(|bus| &bus.kind)
    }

    /// The table of a range.
    pub(crate) fn range_table(&self, bits: u32) -> Option<TableId> {
        let same = |bus: &BusSpec| match &bus.kind {
            BusKind::Table(table) => table.is_range_of(bits),
            _ => false,
        };
        self.buses.iter().position(same).map(|index| TableId(BusId(to_index(index))))
    }

    /// Returns the layout's entry for this type's accesses to a memory.
    pub(crate) fn ram_place(&self, ram: RamId) -> Option<RamPlace> {
        self.rams.iter().find(|place| place.ram == ram).copied()
    }

    /// Adds an entry to a bus of any owner.
    pub(crate) fn add_entry(
        &self,
        bus: BusId,
        key: &FpVar<Fr>,
        value: &FpVar<Fr>,
        multiplicity: &FpVar<Fr>,
    ) {
        self.add_value(bus, key, &self.bus_value(value), multiplicity);
    }

    /// Adds an entry of a value that others share to a bus of any owner.
    pub(crate) fn add_value(
        &self,
        bus: BusId,
        key: &FpVar<Fr>,
        value: &BusValue,
        multiplicity: &FpVar<Fr>,
    ) {
        self.ledger.borrow_mut().add(bus, key, *value, multiplicity);
    }

    /// Adds an entry of a pair of the layout to a bus of any owner.
    pub(crate) fn add_pair(
        &self,
        bus: BusId,
        index: usize,
        multiplicity: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        let pair = self.pair(index)?;
        self.ledger.borrow_mut().add_pair(bus, index, pair, multiplicity);
        Ok(())
    }

    /// The public variable of a pair.
    fn pair(&self, index: usize) -> Result<&FpVar<Fr>, SynthesisError> {
        self.pairs.get(index).ok_or_else(|| self.mistake(Mistake::Pair(index)))
    }

    /// The values committed to, and the entries added to buses.
    pub(crate) fn ledger(&self) -> &RefCell<Ledger> {
        &self.ledger
    }

    /// Remembers a mistake of the author, because gadgets' errors carry no text.
    pub(crate) fn mistake(&self, mistake: Mistake) -> SynthesisError {
        let first = &mut self.ledger.borrow_mut().mistake;
        first.get_or_insert_with(|| (mistake, places::asked_here()));
        SynthesisError::Unsatisfiable
    }

    /// The first mistake of the author, and the function that made it.
    pub(crate) fn first_mistake(&self) -> Option<(Mistake, String)> {
        self.ledger.borrow().mistake.clone()
    }

    /// Allocates the variables of the memory check that come before the author's, and in circuits
    /// without buses all of them with all rows, in the order of [`VariableLayout`]. Without a prefix,
    /// as at setup, the variables have no values.
    pub(crate) fn begin(
        cs: &ConstraintSystemRef<Fr>,
        layout: &Layout,
        kind: TypeId,
        variables: &VariableLayout,
        prefix: Option<&Prefix>,
    ) -> Result<Self, SynthesisError> {
        // The order of these allocations must be that of `VariableLayout`, by which setup cuts its
        // queries (spec: memory-check#variables). arkworks numbers public variables from the
        // constant 1, and witness variables after them.
        let public = (variables.preprocessed())
            .map(|i| cs.new_input_variable(|| value(prefix, |p| p.public[i])))
            .collect::<Result<Vec<_>, _>>()?;
        let at = |i: usize| public[i - variables.preprocessed().start];
        let v = (0..variables.slots())
            .map(|j| cs.new_witness_variable(|| value(prefix, |p| p.committed[j])))
            .collect::<Result<Vec<_>, _>>()?;
        let fixed =
            |i: usize| FpVar::Var(AllocatedFp::new(prefix.map(|p| p.public[i]), at(i), cs.clone()));
        // The author never sees the mask slots, which come last: a row on a mask would constrain
        // the blinding (spec: zero-knowledge#masks).
        let slot = |j: usize| {
            FpVar::Var(AllocatedFp::new(prefix.map(|p| p.committed[j]), v[j], cs.clone()))
        };
        let subcircuit = Self {
            kind,
            instance: None,
            cs: cs.clone(),
            slots: (0..variables.author_slots()).map(slot).collect(),
            parameters: variables.parameters().map(fixed).collect(),
            pairs: variables.pairs().map(fixed).collect(),
            buses: Arc::clone(&layout.buses),
            rams: layout.ram_places(kind).into(),
            ledger: Rc::new(RefCell::new(Ledger::new(variables, public, v))),
        };
        if !layout.has_buses() {
            let rows = subcircuit.ledger.borrow_mut().finish(cs, variables, prefix);
            // Without entries there is no pole that the prefix did not find.
            rows.map_err(|_| SynthesisError::Unsatisfiable)?;
        }
        Ok(subcircuit)
    }
}
