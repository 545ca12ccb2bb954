//! The division of work between the coordinator and other threads and ranks.

use std::num::NonZeroU32;

/// The design of a distributed run.
///
/// [`Design::POOL`], [`Design::SLICES`] and [`Design::TREE`] are the program with `--keys-from-root`, and with
/// the options `--execute` and `--ranks-per-leader` that they name. [`Design::FLAT`] is the program before it
/// had any of these options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Design {
    /// The name of the design.
    pub name: &'static str,
    /// The number of threads of the coordinator that encode jobs and decode answers.
    pub threads: u32,
    /// `true` if the coordinator checks subgroup membership of answers in batches.
    pub batch_check: bool,
    /// The number of ranks per leader, which passes messages on in both directions and joins the
    /// parts of the aggregation. Without leaders, rank 0 exchanges messages with every rank.
    pub fanout: Option<NonZeroU32>,
    /// `true` if each rank executes a slice of the circuit, so that rank 0 sends no values of
    /// shared wires.
    pub sliced_execute: bool,
    /// `true` if one node reads the keys and sends them from node to node, instead of every node
    /// reading the shared file system.
    pub key_tree: bool,
    /// `true` if ranks that run dry take subcircuits from the longest queue in the prove round.
    pub steal: bool,
}

/// A name that no design has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown design '{found}'; known designs: {}", Design::names().join(", "))]
pub struct UnknownDesign {
    /// The given name.
    pub found: String,
}

impl Design {
    /// One thread of rank 0 does everything, and every node reads the keys.
    pub const FLAT: Self = Self {
        name: "flat",
        threads: 1,
        batch_check: false,
        fanout: None,
        sliced_execute: false,
        key_tree: false,
        steal: true,
    };
    /// Rank 0 encodes and decodes on 32 threads and checks membership in batches; keys go from node
    /// to node.
    pub const POOL: Self =
        Self { name: "pool", threads: 32, batch_check: true, key_tree: true, ..Self::FLAT };
    /// The pool, and each rank executes a slice of the circuit (`--execute ranks`).
    pub const SLICES: Self = Self { name: "slices", sliced_execute: true, ..Self::POOL };
    /// Slices, and a leader per 32 ranks (`--ranks-per-leader 32`).
    pub const TREE: Self = Self { name: "tree", fanout: NonZeroU32::new(32), ..Self::SLICES };
    /// All designs.
    pub const ALL: [Self; 4] = [Self::FLAT, Self::POOL, Self::SLICES, Self::TREE];

    /// The names of all designs.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|design| design.name).collect()
    }

    /// Returns the design of this name.
    ///
    /// # Errors
    /// If there is none; the error lists all names.
    pub fn named(name: &str) -> Result<Self, UnknownDesign> {
        let found = Self::ALL.into_iter().find(|design| design.name == name);
        found.ok_or_else(|| UnknownDesign { found: name.to_owned() })
    }

    /// The number of ranks that exchange messages with rank 0.
    pub(super) fn groups(&self, ranks: u64) -> u64 {
        self.fanout.map_or(ranks, |fanout| ranks.div_ceil(u64::from(fanout.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_design_is_an_error_with_the_list() {
        let error = Design::named("star").unwrap_err().to_string();
        assert_eq!(error, "unknown design 'star'; known designs: flat, pool, slices, tree");
        for design in Design::ALL {
            assert_eq!(Design::named(design.name), Ok(design));
        }
    }

    #[test]
    fn leaders_stand_for_their_groups() {
        assert_eq!(Design::FLAT.groups(70), 70);
        assert_eq!(Design::TREE.groups(70), 3);
        assert_eq!(Design::TREE.groups(3), 1);
    }
}
