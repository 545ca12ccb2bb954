//! An imported circuit, as Hekaton proves it.

use crate::derived::{Definition, RowKind};
use crate::directory::{BundleError, CircuitBundle};
use crate::numbers;
use crate::partition::{Access, Rows};
use crate::symbols::{label, with_names};
use crate::values::Values;
use crate::witness::WitnessFile;
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, StoredRow, StoredRows,
    Subcircuit, TypeId, WireId, WireValues,
};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A circuit directory as a circuit. Its input is a witness of the source; public values are the
/// source's outputs, then its inputs.
#[derive(Debug)]
pub struct Imported {
    directory: CircuitBundle,
    /// The private wires that several parts share, in ascending order.
    shared: Vec<u32>,
    /// A type and its constraints.
    described: Mutex<Option<(usize, Arc<Rows>)>>,
}

/// Wires, each with the slot of an instance.
type Unused = (Vec<u32>, Vec<(InstanceId, usize)>);

impl Imported {
    /// Opens a circuit directory.
    ///
    /// # Errors
    /// If it is not a circuit directory, or is damaged.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        Ok(Self::new(CircuitBundle::open(path)?))
    }

    /// The circuit of an opened directory.
    pub fn new(directory: CircuitBundle) -> Self {
        let public = directory.summary().source.public();
        let slots = (0..directory.parts()).flat_map(|part| directory.slots(part));
        let mut shared: Vec<u32> = slots
            .filter(|(wire, access)| *access != Access::Unused && *wire > public)
            .map(|(wire, _)| wire)
            .collect();
        // The order of ids in the layout, which every prover must derive in the same way.
        shared.sort_unstable();
        shared.dedup();
        Self { directory, shared, described: Mutex::default() }
    }

    /// The directory.
    pub fn directory(&self) -> &CircuitBundle {
        &self.directory
    }

    /// The position of a shared wire in the layout: public wires first.
    fn position(&self, wire: u32) -> Option<usize> {
        let public = self.directory.summary().source.public();
        match wire <= public {
            true => (wire as usize).checked_sub(1),
            false => self.shared.binary_search(&wire).ok().map(|at| public as usize + at),
        }
    }

    /// The values of wires, derived ones included.
    fn values(&self, input: &WitnessFile, wires: &[u32]) -> Result<Vec<Fr>, CircuitError> {
        let derived = self.directory.derived();
        let (plain, sums): (Vec<u32>, Vec<u32>) =
            wires.iter().partition(|wire| **wire < derived.first());
        let given = input.gather(&plain)?;
        if sums.is_empty() {
            return Ok(given);
        }
        let needed = derived.needed(&sums);
        let from_source = needed.partition_point(|wire| *wire < derived.first());
        let mut values = input.gather(&needed[..from_source])?;
        let place =
            |wire: u32| needed.binary_search(&wire).expect("`needed` has what definitions need");
        for wire in &needed[from_source..] {
            // Definitions mention earlier wires only, and `needed` ascends: their values are there.
            let value = derived.value(*wire, |earlier| values[place(earlier)]);
            values.push(value);
        }
        let mut of_source = given.into_iter();
        let value = |wire: &u32| match *wire < derived.first() {
            true => of_source.next().expect("`gather` returns a value for each wire"),
            false => values[place(*wire)],
        };
        Ok(wires.iter().map(value).collect())
    }

    /// Sets the values of shared wires, of all or of those in the slots of some instances.
    fn set(
        &self,
        plan: &[WireId],
        input: &WitnessFile,
        mut wires: Vec<u32>,
        instances: Range<usize>,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        // A witness of another compilation has other wires at the same numbers, and would fail as a false
        // constraint, far from the reason.
        input.check_wires(self.directory.summary().source.wires)?;
        wires.sort_unstable();
        wires.dedup();
        for (wire, value) in wires.iter().zip(self.values(input, &wires)?) {
            if let Some(id) = self.position(*wire).and_then(|at| plan.get(at)) {
                values.set(*id, value);
            }
        }
        // Slots, used or not, have the value of their wire: constraints of the type contain them.
        let (wires, slots) = self.unused(instances);
        for ((instance, slot), value) in slots.into_iter().zip(self.values(input, &wires)?) {
            values.set_unused(instance, slot, value);
        }
        Ok(())
    }

    /// The constraints of a type, for messages; those of the last one are kept.
    fn rows_to_describe(&self, kind: usize) -> Option<Arc<Rows>> {
        // Messages only: if a thread panicked while it held this, a description is missing and nothing
        // else.
        let mut last = self.described.lock().ok()?;
        // Failures come in groups of one type, and a type's rows may be hundreds of megabytes.
        if let Some((_, rows)) = last.as_ref().filter(|(last, _)| *last == kind) {
            return Some(rows.clone());
        }
        let rows = Arc::new(self.directory.rows(kind).ok()?);
        *last = Some((kind, rows.clone()));
        Some(rows)
    }

    /// The unused slots of instances.
    fn unused(&self, instances: Range<usize>) -> Unused {
        let slots = instances.flat_map(|part| {
            let slots = self.directory.slots(part).enumerate();
            let unused = slots.filter(|(_, (_, access))| *access == Access::Unused);
            unused.map(move |(slot, (wire, _))| (wire, (instance(part), slot)))
        });
        slots.unzip()
    }
}

fn instance(part: usize) -> InstanceId {
    InstanceId::from_index(numbers::count(part))
}

impl Circuit for Imported {
    type Input = WitnessFile;
    /// The ids of shared wires: public ones, then private ones in ascending order.
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = Values;

    const EXECUTES_RANGES: bool = true;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
        let summary = self.directory.summary();
        // Public wire i has address i.
        let public = (1..=summary.source.public()).map(|wire| u64::from(wire) - 1);
        let mut plan: Vec<WireId> = public.map(|i| layout.public_input("public", i)).collect();
        let private = self.shared.iter().map(|wire| layout.wire("wire", u64::from(*wire)));
        plan.extend(private);
        let mut types = Vec::with_capacity(summary.types.len());
        for (number, kind) in summary.types.iter().enumerate() {
            let id = layout.subcircuit_type(&kind.name, kind.slots as usize);
            for slot in self.directory.unconstrained(number) {
                layout.unconstrained(id, *slot as usize);
            }
            types.push(id);
        }
        for part in 0..self.directory.parts() {
            let id = layout.instance(types[self.directory.kind(part)]);
            for (slot, (wire, access)) in self.directory.slots(part).enumerate() {
                let shared = || self.position(wire).and_then(|at| plan.get(at)).copied();
                match (access, shared()) {
                    (Access::Writes, Some(wire)) => layout.write(id, slot, wire),
                    (Access::Reads, Some(wire)) => layout.read(id, slot, wire),
                    // A type has a slot for what any of its parts shares; here the wire is in this part
                    // only.
                    _ => layout.unused(id, slot),
                }
            }
        }
        Ok(plan)
    }

    fn execute(
        &self,
        plan: &Vec<WireId>,
        input: &WitnessFile,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let mut wires: Vec<u32> = (1..=self.directory.summary().source.public()).collect();
        wires.extend_from_slice(&self.shared);
        self.set(plan, input, wires, 0..self.directory.parts(), values)
    }

    fn execute_range(
        &self,
        plan: &Vec<WireId>,
        input: &WitnessFile,
        instances: Range<usize>,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let slots = instances.clone().flat_map(|part| self.directory.slots(part));
        let used = slots.filter(|(_, access)| *access != Access::Unused);
        let wires = used.map(|(wire, _)| wire).collect();
        self.set(plan, input, wires, instances, values)
    }

    fn private_input(
        &self,
        _plan: &Vec<WireId>,
        input: &WitnessFile,
        _trace: &(),
        instance: InstanceId,
    ) -> Result<Values, CircuitError> {
        let content = self.directory.content(instance.index())?;
        Ok(Values::encode(self.values(input, &content.own)?))
    }

    /// The same constraints for other provers.
    fn synthesize(
        &self,
        _plan: &Vec<WireId>,
        subcircuit: &Subcircuit,
        private: Option<&Values>,
    ) -> Result<(), SynthesisError> {
        let (cs, kind) = (subcircuit.cs(), subcircuit.kind());
        let mut values = Vec::new();
        if let Some(private) = private {
            // Private values may come from another rank: another number of them, or values that are not
            // reduced, fail here.
            let all = private.decode_into(self.own(kind), &mut values);
            all.ok_or(SynthesisError::AssignmentMissing)?;
        }
        let mut variables = vec![Variable::One];
        for slot in subcircuit.slots() {
            variables.push(match slot {
                hekaton_circuit::ark::r1cs_std::fields::fp::FpVar::Var(var) => var.variable,
                _ => return Err(SynthesisError::Unsatisfiable),
            });
        }
        for own in 0..self.own(kind) {
            let value = || values.get(own).copied().ok_or(SynthesisError::AssignmentMissing);
            variables.push(cs.new_witness_variable(value)?);
        }
        let mut result = Ok(());
        let read = StoredRows::rows(self, kind, &mut |sides| {
            let side = |terms: &[(Fr, usize)]| {
                let term = |(k, v): &(Fr, usize)| (*k, variables[*v]);
                LinearCombination(terms.iter().map(term).collect())
            };
            // `rows` has no way to stop; after the first error, its rows are dropped.
            if result.is_ok() {
                let [a, b, c] = sides.map(side);
                result = cs.enforce_r1cs_constraint(|| a, || b, || c);
            }
        });
        read.map_err(|_| SynthesisError::Unsatisfiable)?;
        result
    }

    fn stored(&self) -> Option<&dyn StoredRows<Values>> {
        Some(self)
    }
}

impl StoredRows<Values> for Imported {
    fn has_rows(&self) -> bool {
        self.directory.has_rows()
    }

    fn own(&self, kind: TypeId) -> usize {
        self.directory.summary().types.get(kind.index()).map_or(0, |kind| kind.own as usize)
    }

    fn rows(&self, kind: TypeId, row: &mut dyn FnMut(StoredRow<'_>)) -> Result<(), CircuitError> {
        let rows = self.directory.rows(kind.index())?;
        let mut own = [const { Vec::new() }; 3];
        let term = |[k, v]: &[u32; 2]| (rows.coefficients[*k as usize], *v as usize);
        for sides in rows.iter() {
            for (own, side) in own.iter_mut().zip(sides) {
                own.clear();
                own.extend(side.iter().map(term));
            }
            row([&own[0], &own[1], &own[2]]);
        }
        Ok(())
    }

    fn own_values(
        &self,
        kind: TypeId,
        _slots: &[Fr],
        private: &Values,
        out: &mut Vec<Fr>,
    ) -> Result<(), CircuitError> {
        let values = private.decode_into(self.own(kind), out);
        values.ok_or_else(|| "these are not the values of its own wires".into())
    }

    fn describe(&self, instance: InstanceId, row: usize) -> Option<String> {
        let part = instance.index();
        let content = self.directory.content(part).ok()?;
        let derived = self.directory.derived();
        let name_of = |wire: u32| {
            // Damaged names are reported by `notices`; here they would hide what failed.
            match derived.get(wire) {
                None => label(self.directory.symbols().ok().flatten(), wire),
                Some(Definition::Sum(terms)) => format!("a sum of {} terms", terms.len()),
                Some(Definition::Pack(bits)) => format!("{} packed bits", bits.len()),
            }
        };
        let source = &self.directory.summary().source.name;
        let mut text = match derived.row(*content.rows.get(row)?)? {
            RowKind::Source(number) => format!("constraint {number} of {source}"),
            RowKind::Definition(wire) => format!("the definition of {}", name_of(wire)),
            RowKind::Bit(wire) => format!("that {} is 0 or 1, as in {source}", name_of(wire)),
        };
        if let Some(rows) = self.rows_to_describe(self.directory.kind(part)) {
            let wires: Vec<u32> = self.directory.slots(part).map(|(wire, _)| wire).collect();
            let terms = rows.iter().nth(row)?.into_iter().flatten();
            let mut locals: Vec<usize> = terms.map(|[_, v]| *v as usize).collect();
            locals.sort_unstable();
            locals.dedup();
            let name = |local: &usize| {
                let at = local.checked_sub(1)?;
                let wire = wires.get(at).or_else(|| content.own.get(at - wires.len()))?;
                Some(name_of(*wire))
            };
            let names: Vec<String> = locals.iter().filter_map(name).collect();
            text += &with_names(&names);
        }
        Some(text)
    }
}
