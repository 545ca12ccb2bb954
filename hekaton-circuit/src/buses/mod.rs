//! Buses: multisets to which subcircuits add entries of a key, a value and a multiplicity. The entries
//! of all subcircuits are in the sum of the memory check, with fingerprints of their own
//! (spec: buses#entries).

pub(crate) mod bit;
pub(crate) mod counting;
pub(crate) mod ledger;
pub(crate) mod library;
pub(crate) mod look_ups;
pub(crate) mod mistake;

use crate::buses::ledger::BusValue;
use crate::buses::library::BusKind;
use crate::buses::mistake::Mistake;
use crate::layout::ids::BusId;
use crate::synthesis::subcircuit::Subcircuit;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;

/// A bus, seen from a subcircuit under synthesis.
#[derive(Clone, Copy, Debug)]
pub struct Bus<'a> {
    subcircuit: &'a Subcircuit,
    bus: BusId,
}

impl Bus<'_> {
    /// Adds an entry. A proof exists only if the multiplicities of each pair of a key and a value, of
    /// all subcircuits together, sum to zero in the field (spec: buses#entries).
    ///
    /// Key, value and multiplicity are sums of constants, parameters, shared wires and
    /// [marked values](Subcircuit::commit), with constant coefficients; setup refuses any others.
    /// An entry takes one row, and one more for a value that is not a constant. Entries with the
    /// same value share that row with [`Subcircuit::bus_value`] and [`add_value`](Self::add_value).
    ///
    /// Multiplicities are field elements. If a prover can choose them, r of them with 1 are the same
    /// as none, so constrain each of them, best to -1, 0 or 1.
    ///
    /// # Errors
    /// If the constraint system fails.
    pub fn add(
        &self,
        key: &FpVar<Fr>,
        value: &FpVar<Fr>,
        multiplicity: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        self.subcircuit.add_entry(self.bus, key, value, multiplicity);
        Ok(())
    }

    /// [`add`](Self::add) of a value that several entries of the subcircuit may share. It takes one row.
    ///
    /// # Errors
    /// If the constraint system fails.
    pub fn add_value(
        &self,
        key: &FpVar<Fr>,
        value: &BusValue,
        multiplicity: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        self.subcircuit.add_value(self.bus, key, value, multiplicity);
        Ok(())
    }

    /// Adds an entry whose key and value are those of a pair of the layout. It takes one row.
    ///
    /// # Errors
    /// If the type has no such pair.
    pub fn add_pair(&self, index: usize, multiplicity: &FpVar<Fr>) -> Result<(), SynthesisError> {
        self.subcircuit.add_pair(self.bus, index, multiplicity)
    }
}

impl Subcircuit {
    /// A value for several entries. It takes one row, unless the value is constant.
    pub fn bus_value(&self, value: &FpVar<Fr>) -> BusValue {
        self.ledger().borrow_mut().value(value)
    }

    /// A bus, to add entries to it.
    ///
    /// # Errors
    /// If the layout has no such bus, or it belongs to a table or a memory: a bus has one owner
    /// (spec: buses#owners).
    pub fn bus(&self, bus: BusId) -> Result<Bus<'_>, SynthesisError> {
        match self.bus_kind(bus) {
            Some(BusKind::Raw) => Ok(Bus { subcircuit: self, bus }),
            // An author's entry on the bus of a table would be a row that the table does not have.
            _ => Err(self.mistake(Mistake::NotA { index: bus.index(), what: "a bus" })),
        }
    }
}
