//! The public parts S by columns: the points that all instances of a type share, and the numbers of the
//! layout with which each instance multiplies them (spec: direct#contract).

use crate::error::ContractError;
use hekaton_arith::{Fr, G1Point, Group};
use hekaton_circuit::SlotAccess;
use hekaton_circuit::prover::{BusShape, VariableLayout, Wiring};
use hekaton_core::FamilyKey;
use hekaton_core::verifier::DirectKey;

/// The columns of the types of a family in a layout.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The digest of the direct key that is made of them.
    pub(crate) key: [u8; 32],
    /// For each type of the direct key IC_one, then IC of the multiplicities and of the addresses of its
    /// slots; none for types that have other public variables.
    pub(crate) types: Vec<Option<Vec<G1Point>>>,
    /// The accesses of each instance.
    pub(crate) slots: Vec<Vec<SlotAccess>>,
}

impl Columns {
    /// Takes the columns of a layout's types from its family, and checks that St and Sb of the direct key
    /// are made of them.
    ///
    /// # Errors
    /// When the family is not that of the key, or is damaged.
    pub fn new(
        key: &DirectKey,
        family: &FamilyKey,
        wiring: &Wiring,
    ) -> Result<Self, ContractError> {
        let columns = |name: &str| -> Result<_, ContractError> {
            let number = family.type_named(name).ok_or(ContractError::Columns)?;
            let kind = &family.header().types[number];
            if kind.buses != BusShape::default() {
                return Ok(None);
            }
            let (ic, layout) = (family.ic(number)?, kind.variables());
            let own = [&ic[layout.multiplicities()], &ic[layout.addresses()]].concat();
            Ok(Some([&[ic[VariableLayout::ONE]], &own[..]].concat()))
        };
        let types = key.verifying().types.iter().map(|kind| columns(&kind.name));
        let types = types.collect::<Result<Vec<_>, _>>()?;
        let slots: Vec<_> = wiring.by_instance().map(|(_, slots)| slots.to_vec()).collect();
        let made = Self { key: key.digest(), types, slots };
        match wiring.type_of == key.type_of() && made.are_those_of(key) {
            true => Ok(made),
            false => Err(ContractError::Columns),
        }
    }

    /// Reports whether St and Sb of all instances are the sums of columns.
    fn are_those_of(&self, key: &DirectKey) -> bool {
        let instances = key.type_of().iter().zip(key.parts()).zip(&self.slots);
        instances.into_iter().all(|((kind, part), slots)| {
            let Some(points) = &self.types[*kind as usize] else { return true };
            if points.len() != 1 + 2 * slots.len() {
                return false;
            }
            let (multiplicities, addresses) = points[1..].split_at(slots.len());
            let mu: Vec<Fr> = slots.iter().map(|slot| Fr::from(slot.multiplicity)).collect();
            let a: Vec<Fr> = slots.iter().map(|slot| Fr::from(slot.address)).collect();
            part.st == points[0].add(&G1Point::msm(multiplicities, &mu))
                && part.sb == G1Point::msm(addresses, &a)
        })
    }
}
