//! The constraints of the subcircuits that hold the rows of tables and the cells of memories
//! (spec: buses#tables, buses#cells).

use super::memory::{LIMB, RamSpec};
use super::table::TableSpec;
use super::{BusKind, FinalCell, LibraryInput, LibraryType};
use crate::synthesis::subcircuit::Subcircuit;
use ark_ff::{One, Zero};
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;

impl LibraryType {
    /// The constraints of the type.
    pub(crate) fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        input: Option<&LibraryInput>,
    ) -> Result<(), SynthesisError> {
        match subcircuit.bus_kind(self.bus) {
            Some(BusKind::Table(table)) => {
                let counts = match input {
                    Some(LibraryInput::Counts(counts)) => Some(counts.as_slice()),
                    _ => None,
                };
                table.synthesize(subcircuit, *self, counts)
            }
            Some(BusKind::Ram(ram)) => {
                let cells = match input {
                    Some(LibraryInput::Cells(cells)) => Some(cells.as_slice()),
                    _ => None,
                };
                ram.synthesize(subcircuit, *self, cells)
            }
            // The builder makes library types for tables and memories only.
            Some(BusKind::Raw) | None => Err(SynthesisError::Unsatisfiable),
        }
    }
}

impl TableSpec {
    /// The rows of an instance: one row each, with its multiplicity (spec: buses#tables).
    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        kind: LibraryType,
        counts: Option<&[u64]>,
    ) -> Result<(), SynthesisError> {
        let is_constant = self.is_constant();
        for row in 0..kind.rows {
            let count = subcircuit.commit(|| given(counts, row, |count| Fr::from(*count)))?;
            // The rows of a range follow from its first number, so one parameter takes the place of a pair
            // per row in the keys.
            if self.is_range() {
                let key = subcircuit.parameter(0)? + constant(Fr::from(row as u64));
                subcircuit.add_entry(kind.bus, &key, &constant(Fr::zero()), &count);
            } else if is_constant {
                let [key, value] = self.pair(row).map(constant);
                subcircuit.add_entry(kind.bus, &key, &value, &count);
            } else {
                subcircuit.add_pair(kind.bus, row, &count)?;
            }
        }
        Ok(())
    }
}

impl RamSpec {
    /// The cells of an instance: an initial entry each, at time 0, and an anonymous final one
    /// (spec: buses#cells).
    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        kind: LibraryType,
        cells: Option<&[FinalCell]>,
    ) -> Result<(), SynthesisError> {
        let (zero, one) = (constant(Fr::zero()), constant(Fr::one()));
        let region = self.regions.get(kind.region).ok_or(SynthesisError::Unsatisfiable)?;
        // In a sparse region, the lowest address that the next cell may have. The slot makes the order
        // hold across subcircuits.
        let mut least = region.is_sparse().then(|| subcircuit.slot(0).cloned()).transpose()?;
        for cell in 0..kind.rows {
            if let Some(least) = &mut least {
                // Addresses rise, so no two cells have the same one (spec: buses#sparse).
                let address = subcircuit.commit(|| given(cells, cell, |c| Fr::from(c.address)))?;
                subcircuit.range_check_limbs(LIMB, self.address_limbs, &(&address - &*least))?;
                subcircuit.add_entry(kind.bus, &address, &zero, &one);
                *least = address + &one;
            } else if region.has_values() {
                subcircuit.add_pair(kind.bus, cell, &one)?;
            } else {
                let address = subcircuit.parameter(0)? + constant(Fr::from(cell as u64));
                subcircuit.add_entry(kind.bus, &address, &zero, &one);
            }
            // The prover chooses key and value. That is sound: all entries match one to one, so the key is
            // that of the last access on a path from an initial entry (spec: buses#times).
            let key = subcircuit.commit(|| {
                given(cells, cell, |c| Fr::from(c.address) + self.spacing() * Fr::from(c.time))
            })?;
            let value = subcircuit.commit(|| given(cells, cell, |c| c.value))?;
            subcircuit.add_entry(kind.bus, &key, &value, &constant(-Fr::one()));
        }
        match least {
            // The first address of the next instance, or the end of the region.
            Some(least) => {
                let rest = subcircuit.slot(1)? - least;
                subcircuit.range_check_limbs(LIMB, self.address_limbs, &rest)
            }
            None => Ok(()),
        }
    }
}

/// The value of an item of a list; an error without a list, as at setup.
fn given<T, R>(
    list: Option<&[T]>,
    index: usize,
    value: impl FnOnce(&T) -> R,
) -> Result<R, SynthesisError> {
    list.and_then(|list| list.get(index)).map(value).ok_or(SynthesisError::AssignmentMissing)
}

/// A small constant.
pub(crate) fn constant(value: impl Into<Fr>) -> FpVar<Fr> {
    FpVar::Constant(value.into())
}
