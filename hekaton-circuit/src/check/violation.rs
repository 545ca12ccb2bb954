//! Constraints that do not hold, with the values in them.

use crate::layout::Layout;
use crate::layout::ids::{InstanceId, WireName};
use crate::synthesis::r1cs::R1cs;
use crate::text::show;
use hekaton_arith::Fr;

/// The label of the rows of the memory check.
pub(crate) const MEMORY_CHECK: &str = "   memory check";

/// A constraint that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The instance.
    pub instance: usize,
    /// The name of its type.
    pub kind: String,
    /// The number of the constraint among the author's own, from 0 in the order in which `synthesize` makes them;
    /// `None` for a row of the memory check.
    pub constraint: Option<usize>,
    /// The index of the constraint in the R1CS, where the rows of the memory check come first,
    /// masks included.
    pub row: usize,
    /// The place at which the constraint is made: the author's functions, innermost first, with file and line if the
    /// program has debug information; the tracing spans with target `gr1cs`; or the memory check.
    pub label: String,
    /// The values of the three sides: the product of the first two should be the third.
    pub sides: [Fr; 3],
    /// The shared wires in the constraint, with their values.
    pub wires: Vec<(WireName, Fr)>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { instance, kind, row, sides: [a, b, c], .. } = self;
        write!(f, "instance {instance} (type '{kind}'), ")?;
        match self.constraint {
            Some(constraint) => write!(f, "constraint {constraint}")?,
            None => write!(f, "row {row} of the memory check")?,
        }
        if !self.wires.is_empty() {
            let wires: Vec<String> = self
                .wires
                .iter()
                .map(|(name, value)| format!("{name} = {}", show(value)))
                .collect();
            write!(f, ", shared wires {}", wires.join(", "))?;
        }
        write!(f, ": {} * {} is not {}\n{}", show(a), show(b), show(c), self.label)
    }
}

/// The violations of one instance.
pub(crate) struct Found {
    pub(crate) violated: usize,
    pub(crate) list: Vec<Violation>,
}

/// The sides of a constraint: `<A, z>`, `<B, z>` and `<C, z>`.
pub(crate) fn sides(r1cs: &R1cs, constraint: usize, z: &[Fr]) -> [Fr; 3] {
    r1cs.matrices.all().map(|matrix| matrix.row(constraint, z))
}

/// Evaluates all constraints of an instance, and describes at most `limit` that do not hold,
/// without their labels.
pub(crate) fn violations(
    layout: &Layout,
    instance: InstanceId,
    r1cs: &R1cs,
    z: &[Fr],
    limit: usize,
) -> Found {
    let mut found = Found { violated: 0, list: Vec::new() };
    for row in 0..r1cs.constraints() {
        let sides = sides(r1cs, row, z);
        if sides[0] * sides[1] == sides[2] {
            continue;
        }
        found.violated += 1;
        if found.list.len() < limit {
            found.list.push(Violation {
                instance: instance.index(),
                kind: r1cs.name.clone(),
                constraint: r1cs.layout.author_row(row),
                row,
                label: String::new(),
                sides,
                wires: wires_in(layout, instance, r1cs, row, z),
            });
        }
    }
    found
}

/// The shared wires in a constraint, in the order of the slots, with their values.
fn wires_in(
    layout: &Layout,
    instance: InstanceId,
    r1cs: &R1cs,
    constraint: usize,
    z: &[Fr],
) -> Vec<(WireName, Fr)> {
    let terms = r1cs.matrices.all().into_iter().flat_map(|m| m.terms(constraint));
    let slot_of = |variable| r1cs.layout.slot_of(variable);
    let mut slots: Vec<usize> = terms.filter_map(|(_, i)| slot_of(i)).collect();
    // A slot may be on several sides of the constraint.
    slots.sort_unstable();
    slots.dedup();
    let wires: Vec<_> = layout.wires_of(instance).collect();
    let wire = |slot: usize| {
        let wire = wires.get(slot).copied().flatten()?;
        Some((layout.wire_name(wire), z[r1cs.layout.committed().start + slot]))
    };
    slots.into_iter().filter_map(wire).collect()
}
