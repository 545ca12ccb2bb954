//! Look-ups: what subcircuits ask tables for (spec: buses#askers).

use super::BusKind;
use super::rows::constant;
use super::table::{Asks, TableSpec};
use crate::buses::bit::Bit;
use crate::buses::ledger::BusValue;
use crate::buses::mistake::Mistake;
use crate::layout::ids::TableId;
use crate::synthesis::subcircuit::Subcircuit;
use ark_ff::{Field, One, PrimeField, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;
use std::sync::{Arc, LazyLock};

/// The maximum number of bits of all limbs together. r is above 2^254, so a number and the same plus r
/// cannot both be below 2^252 (spec: buses#limbs).
const MAX_BITS: u32 = 252;

/// 2^-bits for all numbers of bits that a limb may have. Circuits have tens of thousands of limbs, and an
/// inversion for each would dominate their synthesis.
static SHIFTS: LazyLock<Vec<Fr>> = LazyLock::new(|| {
    let half = Fr::from(2u64).inverse().expect("2 is not zero modulo an odd prime");
    std::iter::successors(Some(Fr::one()), |x| Some(half * x)).take(MAX_BITS as usize + 1).collect()
});

/// A table, seen from a subcircuit under synthesis.
#[derive(Clone, Debug)]
pub struct LookUp<'a> {
    subcircuit: &'a Subcircuit,
    id: TableId,
    table: Arc<TableSpec>,
}

impl Subcircuit {
    /// A table, to look something up in it.
    ///
    /// # Errors
    /// If the layout has no such table.
    pub fn table(&self, id: TableId) -> Result<LookUp<'_>, SynthesisError> {
        match self.bus_kind(id.0) {
            Some(BusKind::Table(table)) => {
                Ok(LookUp { subcircuit: self, id, table: Arc::clone(table) })
            }
            _ => Err(self.mistake(Mistake::NotA { index: id.0.index(), what: "a table" })),
        }
    }

    /// Constrains a value to `bits` bits with a range table, which the layout must have
    /// ([`LayoutBuilder::range`](crate::LayoutBuilder::range)). It takes one row. The value must be a
    /// sum of shared wires, marked values, parameters and constants: [`mark`](Self::mark) makes one of
    /// any other.
    ///
    /// # Errors
    /// If the layout has no such range, or the value is not in it.
    pub fn range_check(&self, bits: u32, value: &FpVar<Fr>) -> Result<(), SynthesisError> {
        match self.range_table(bits) {
            Some(id) => self.table(id)?.contains(value),
            None => Err(self.mistake(Mistake::NoRange(bits))),
        }
    }

    /// [`range_check`](Self::range_check) if `enable` is 1; if it is 0, the value may be anything. It takes
    /// one row.
    ///
    /// # Errors
    /// As for [`range_check`](Self::range_check).
    pub fn range_check_if(
        &self,
        bits: u32,
        enable: &Bit,
        value: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        match self.range_table(bits) {
            Some(id) => self.table(id)?.contains_if(enable, value),
            None => Err(self.mistake(Mistake::NoRange(bits))),
        }
    }

    /// Constrains a value to `limbs` limbs of `bits` bits each, with the range table of `bits` bits. It
    /// takes one row per limb. All limbs but the highest are marked; the highest is the rest of the value,
    /// so the limbs add up to the value by construction (spec: buses#limbs).
    ///
    /// # Errors
    /// As for [`range_check`](Self::range_check), and if the limbs have more than 252 bits together, so
    /// that a number and the same plus r could both have them.
    pub fn range_check_limbs(
        &self,
        bits: u32,
        limbs: u32,
        value: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        if bits == 0 || limbs == 0 || bits.saturating_mul(limbs) > MAX_BITS {
            return Err(self.mistake(Mistake::Limbs { bits, limbs }));
        }
        let shift = SHIFTS[bits as usize];
        let mut rest = value.clone();
        for _ in 1..limbs {
            let low = self.commit(|| {
                let number = rest.value()?.into_bigint().0[0];
                let mask = 1u64.checked_shl(bits).map_or(u64::MAX, |power| power - 1);
                Ok(Fr::from(number & mask))
            })?;
            self.range_check(bits, &low)?;
            // No row: the rest stays a linear combination of the value and the marked limbs, and it is a
            // number of few bits only if all of the value is.
            rest = (rest - low) * shift;
        }
        self.range_check(bits, &rest)
    }

    /// A marked value that equals a variable, so that it can be in entries and look-ups. It takes one
    /// row.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub fn mark(&self, value: &FpVar<Fr>) -> Result<FpVar<Fr>, SynthesisError> {
        if matches!(value, FpVar::Constant(_)) {
            return Ok(value.clone());
        }
        let marked = self.commit(|| value.value())?;
        let difference = value - &marked;
        self.enforce_zero(&difference)?;
        Ok(marked)
    }

    /// Adds the row `difference * 1 = 0`.
    pub(crate) fn enforce_zero(&self, difference: &FpVar<Fr>) -> Result<(), SynthesisError> {
        difference.mul_equals(&FpVar::one(), &FpVar::zero())
    }
}

impl LookUp<'_> {
    /// Constrains a key to be in the table, a set of keys or a range. It takes one row.
    ///
    /// # Errors
    /// If the table is one of pairs, or does not have the key.
    pub fn contains(&self, key: &FpVar<Fr>) -> Result<(), SynthesisError> {
        self.ask(Asks::Keys, key, &constant(Fr::zero()), &constant(-Fr::one()))
    }

    /// [`contains`](Self::contains) if `enable` is 1; if it is 0, the key may be anything. It takes one
    /// row.
    ///
    /// # Errors
    /// As for [`contains`](Self::contains).
    pub fn contains_if(&self, enable: &Bit, key: &FpVar<Fr>) -> Result<(), SynthesisError> {
        self.ask(Asks::Keys, key, &constant(Fr::zero()), &enable.variable().negate()?)
    }

    /// The value of an index, in a table of pairs: a marked value. It takes two rows.
    ///
    /// # Errors
    /// If the table is not one of pairs, or does not have the index.
    pub fn look_up(&self, index: &FpVar<Fr>) -> Result<FpVar<Fr>, SynthesisError> {
        let value = self.subcircuit.commit(|| {
            let index = index.value()?;
            // A missing index gets any value: `ask` below fails, and names the table.
            Ok(self.table.row_of(&index).map_or(Fr::zero(), |row| self.table.value(row)))
        })?;
        self.ask(Asks::Pairs, index, &value, &constant(-Fr::one()))?;
        Ok(value)
    }

    /// Constrains an index and a value to be a row of the table, which is one of pairs. It takes two rows,
    /// or one if the value is constant.
    ///
    /// # Errors
    /// If the table is not one of pairs, or does not have the index with this value.
    pub fn pair(&self, index: &FpVar<Fr>, value: &FpVar<Fr>) -> Result<(), SynthesisError> {
        self.ask(Asks::Pairs, index, value, &constant(-Fr::one()))
    }

    /// [`pair`](Self::pair) if `enable` is 1; if it is 0, index and value may be anything. The value may be
    /// shared with other entries. It takes one row.
    ///
    /// # Errors
    /// As for [`pair`](Self::pair).
    pub fn pair_if(
        &self,
        enable: &Bit,
        index: &FpVar<Fr>,
        value: &BusValue,
    ) -> Result<(), SynthesisError> {
        self.ask_value(Asks::Pairs, index, value, &enable.variable().negate()?)
    }

    fn ask(
        &self,
        asks: Asks,
        key: &FpVar<Fr>,
        value: &FpVar<Fr>,
        multiplicity: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        self.ask_value(asks, key, &self.subcircuit.bus_value(value), multiplicity)
    }

    fn ask_value(
        &self,
        asks: Asks,
        key: &FpVar<Fr>,
        value: &BusValue,
        multiplicity: &FpVar<Fr>,
    ) -> Result<(), SynthesisError> {
        let bus = self.id.0;
        if self.table.asks() != asks {
            return Err(self.subcircuit.mistake(Mistake::OtherTable(bus.index())));
        }
        // At setup there are no values, and nothing to count. An enable bit of 0 adds an entry of
        // multiplicity 0, so the key may be anything and no row is counted.
        let found = self.subcircuit.ledger().borrow().number(*value);
        if let (Ok(key), Ok(value), Ok(multiplicity)) = (key.value(), found, multiplicity.value())
            && !multiplicity.is_zero()
        {
            match self.table.row_of(&key).filter(|row| self.table.value(*row) == value) {
                Some(row) => self.subcircuit.ledger().borrow_mut().look_ups.push((bus, row)),
                None => {
                    let access = self.subcircuit.ledger().borrow().asked(bus);
                    let mistake = Mistake::NotInTable { index: bus.index(), key, access };
                    return Err(self.subcircuit.mistake(mistake));
                }
            }
        }
        self.subcircuit.add_value(bus, key, value, multiplicity);
        Ok(())
    }
}
