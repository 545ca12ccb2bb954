//! Accesses to memories (spec: buses#accesses).

use super::BusKind;
use super::memory::{Access, GAP_LIMBS, LIMB, RamSpec};
use super::rows::constant;
use crate::buses::bit::Bit;
use crate::buses::ledger::BusValue;
use crate::buses::mistake::Mistake;
use crate::layout::ids::RamId;
use crate::synthesis::subcircuit::Subcircuit;
use ark_ff::One;
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;
use std::sync::Arc;

/// A memory, seen from a subcircuit under synthesis. Every call is one access, at the next of the
/// instance's times; the execution must make the same accesses in the same order
/// ([`WireValues::read`](crate::WireValues::read) and its siblings).
///
/// Addresses and values must be sums of shared wires, marked values, parameters and constants
/// ([`Subcircuit::mark`] makes one of any other). Addresses are checked to be in the memory, which
/// includes the cells that fill up its last subcircuit.
#[derive(Clone, Debug)]
pub struct RamAccess<'a> {
    subcircuit: &'a Subcircuit,
    id: RamId,
    ram: Arc<RamSpec>,
    /// The parameter T of the instance, the time of its first access.
    base: FpVar<Fr>,
}

impl Subcircuit {
    /// A memory, to read and write it.
    ///
    /// # Errors
    /// If the layout has no such memory, or declares no accesses of this type to it.
    pub fn ram(&self, id: RamId) -> Result<RamAccess<'_>, SynthesisError> {
        let index = id.0.index();
        let Some(BusKind::Ram(ram)) = self.bus_kind(id.0) else {
            return Err(self.mistake(Mistake::NotA { index, what: "a RAM" }));
        };
        let Some(place) = self.ram_place(id) else {
            return Err(self.mistake(Mistake::NoAccesses(index)));
        };
        let (subcircuit, base) = (self, self.parameter(place.parameter)?.clone());
        Ok(RamAccess { subcircuit, id, ram: Arc::clone(ram), base })
    }
}

impl RamAccess<'_> {
    /// The value at an address, a marked value. It takes six rows, seven in a memory with addresses
    /// above 2^16.
    ///
    /// # Errors
    /// If the type makes more accesses than the layout declares, or the execution made a different one.
    pub fn read(&self, address: &FpVar<Fr>) -> Result<FpVar<Fr>, SynthesisError> {
        let (time, found, value) = self.begin(address)?;
        self.end(address, &time, &value);
        Ok(found)
    }

    /// Writes a value to an address. It takes seven rows or eight.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write(&self, address: &FpVar<Fr>, value: &FpVar<Fr>) -> Result<(), SynthesisError> {
        let (time, ..) = self.begin(address)?;
        self.end(address, &time, &self.subcircuit.bus_value(value));
        Ok(())
    }

    /// Writes a value to an address if `enable` is 1, and leaves the cell as it is if it is 0. It takes
    /// eight rows or nine.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write_if(
        &self,
        enable: &Bit,
        address: &FpVar<Fr>,
        value: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        let bit = enable.variable();
        let (time, found, _) = self.begin(address)?;
        let left = self.subcircuit.commit(|| {
            let (found, value) = (found.value()?, value.value()?);
            Ok(found + bit.value()? * (value - found))
        })?;
        // The access happens for both values of the bit, at a time of its own: without it, the number of
        // accesses, and with it all later times, would depend on a value. left = found + bit (value - found)
        bit.mul_equals(&(value - &found), &(&left - &found))?;
        self.end(address, &time, &self.subcircuit.bus_value(&left));
        Ok(())
    }

    /// Takes the entry that the previous access left: `(a + D t_old, v_old)`, with a checked gap
    /// `t - t_old - 1` and a checked address. Returns the time t, and the value found as a variable and
    /// for further entries.
    fn begin(
        &self,
        address: &FpVar<Fr>,
    ) -> Result<(FpVar<Fr>, FpVar<Fr>, BusValue), SynthesisError> {
        let Self { subcircuit, id, ram, base } = self;
        let number = subcircuit.ledger().borrow_mut().next_access(*id);
        let place = subcircuit.ram_place(*id).filter(|place| number < place.accesses);
        if place.is_none() {
            let mistake = Mistake::TooManyAccesses { index: id.0.index(), access: number };
            return Err(subcircuit.mistake(mistake));
        }
        let access = |subcircuit: &Subcircuit, pick: fn(&Access) -> Fr| {
            let ledger = subcircuit.ledger().borrow();
            let Some(trace) = ledger.trace.as_ref() else {
                return Err(SynthesisError::AssignmentMissing);
            };
            let access = place.and_then(|place| trace.get(place.index)?.get(number));
            access.map(pick).ok_or(SynthesisError::AssignmentMissing)
        };
        let missing = |error: SynthesisError| {
            // In a prover, an access is missing only if the execution did not make it.
            let in_prover = subcircuit.ledger().borrow().trace.is_some();
            match in_prover {
                true => {
                    subcircuit.mistake(Mistake::NotExecuted { index: id.0.index(), access: number })
                }
                false => error,
            }
        };
        let before = subcircuit
            .commit(|| access(subcircuit, |access| Fr::from(access.before)))
            .map_err(missing)?;
        let found =
            subcircuit.commit(|| access(subcircuit, |access| access.found)).map_err(missing)?;
        let time = base + constant(Fr::from(number as u64));
        // The old time is the prover's choice, so times must be shown to rise: otherwise a read could take
        // an entry of the future, or entries could form a circle that no initial entry begins. Likewise
        // an address of D or more would be another address at another time (spec: buses#times).
        let gap = &time - constant(Fr::one()) - &before;
        subcircuit.range_check_limbs(LIMB, GAP_LIMBS, &gap)?;
        subcircuit.range_check_limbs(LIMB, ram.address_limbs, address)?;
        let value = subcircuit.bus_value(&found);
        self.entry(address, &before, &value, -Fr::one());
        Ok((time, found, value))
    }

    /// Leaves the entry `(a + D t, v)`.
    fn end(&self, address: &FpVar<Fr>, time: &FpVar<Fr>, value: &BusValue) {
        self.entry(address, time, value, Fr::one());
    }

    fn entry(&self, address: &FpVar<Fr>, time: &FpVar<Fr>, value: &BusValue, multiplicity: Fr) {
        let key = address + time * self.ram.spacing();
        self.subcircuit.add_value(self.id.0, &key, value, &constant(multiplicity));
    }
}
