//! Requests of authors that a subcircuit cannot fulfil, and the texts that describe them.

use crate::layout::Layout;
use crate::memory::variables::BusShape;
use crate::text::show;
use hekaton_arith::Fr;

/// A request of an author that a subcircuit cannot fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    Slot(usize),
    Parameter(usize),
    Pair(usize),
    CommitWithoutBus,
    /// A bus that the layout does not have, or that has another owner.
    NotA {
        index: usize,
        what: &'static str,
    },
    /// A missing range of this number of bits.
    NoRange(u32),
    /// More limbs than determine a number of the field.
    Limbs {
        bits: u32,
        limbs: u32,
    },
    /// A constant that should be 0 or 1.
    NoBit(Fr),
    /// A table of pairs asked for keys, or the other way round.
    OtherTable(usize),
    /// A key that the table does not have.
    NotInTable {
        index: usize,
        key: Fr,
        access: usize,
    },
    /// The layout declares no accesses of the type to a memory.
    NoAccesses(usize),
    /// More accesses than the layout declares.
    TooManyAccesses {
        index: usize,
        access: usize,
    },
    /// No accesses, although the layout declares some.
    FewAccesses {
        index: usize,
        made: usize,
        declared: usize,
    },
    /// An access that the execution did not make.
    NotExecuted {
        index: usize,
        access: usize,
    },
}

impl Mistake {
    /// Describes the mistake to the author of a type with this shape.
    pub(crate) fn describe(&self, layout: &Layout, shape: BusShape) -> String {
        // Gadgets look their bus up before they can make any other mistake with it, so only `NotA` can
        // have an index beyond the layout's buses.
        let bus = |index: &usize| layout.buses[*index].name.as_str();
        match self {
            Self::Slot(slot) => format!("synthesize asked for slot {slot}"),
            Self::Parameter(index) => format!(
                "synthesize asked for parameter {index}, but the layout gives its instances {}",
                shape.parameters
            ),
            Self::Pair(index) => format!(
                "synthesize asked for pair {index}, but the layout gives its instances {}",
                shape.pairs
            ),
            Self::NotA { index, what } => match layout.buses.get(*index) {
                Some(bus) => {
                    let (name, owner) = (&bus.name, bus.kind.what());
                    format!("'{name}' is {owner}, and no other gadget may use it as {what}")
                }
                None => format!("bus {index} is not in this layout: its id comes from another one"),
            },
            Self::NoBit(value) => {
                format!("a bit that is the constant {}, which is neither 0 nor 1", show(value))
            }
            Self::NoRange(bits) => {
                format!("the layout has no range of {bits} bits: declare it with range({bits})")
            }
            Self::Limbs { bits, limbs } => format!(
                "{limbs} limbs of {bits} bits: expected at least one, and at most 252 bits in all"
            ),
            Self::OtherTable(index) => format!(
                "table '{}' is asked in the wrong way: look_up is for pairs, contains for keys",
                bus(index)
            ),
            Self::NotInTable { index, key, access } => {
                format!("look-up {access} in table '{}': it has no key {}", bus(index), show(key))
            }
            Self::NoAccesses(index) => format!(
                "the layout declares no accesses of this type to RAM '{}': declare them with accesses",
                bus(index)
            ),
            Self::TooManyAccesses { index, access } => {
                format!("access {access} to RAM '{}': the layout has fewer", bus(index))
            }
            Self::FewAccesses { index, made, declared } => format!(
                "the layout declares {declared} accesses of each subcircuit to RAM '{}', but \
                 synthesize makes {made}: make them, or declare none",
                bus(index)
            ),
            Self::NotExecuted { index, access } => {
                format!("access {access} to RAM '{}': execute made no such access", bus(index))
            }
            Self::CommitWithoutBus => {
                "synthesize commits to a value, but the layout has no bus that could use it".into()
            }
        }
    }
}
