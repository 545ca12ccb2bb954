//! The notices of a check: findings that are allowed, but probably not what the author meant.

use crate::layout::Layout;
use crate::layout::compact::Slot;
use crate::layout::ids::{InstanceId, TypeId, WireId};
use crate::synthesis::r1cs::R1cs;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A finding that is allowed, but probably not what the author meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The circuit has no public wires.
    NothingPublic,
    /// A declared type has no instances, and is left out of the keys.
    TypeWithoutInstances {
        /// The name of the type.
        kind: String,
    },
    /// A slot is unused in an instance, although constraints of its type use it.
    UnusedSlot {
        /// The first such instance.
        instance: usize,
        /// The number of such instances.
        instances: usize,
        /// The name of the type.
        kind: String,
        /// The slot, with its name if it has one.
        slot: String,
        /// The first of the author's constraints that uses the slot, counted from 0; `None` if only an entry of a bus
        /// does.
        constraint: Option<usize>,
    },
    /// Instances read what follows from what they write, so that the prover may choose the values of the cycle.
    Cycle {
        /// The number of instances in cycles, or behind one.
        instances: usize,
        /// The name of a wire in one of them.
        wire: String,
    },
    /// An instance reads a wire that it writes; only the first one of each type is pointed out.
    ReadsOwnWire {
        /// The instance.
        instance: usize,
        /// The name of the wire.
        wire: String,
    },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NothingPublic => f.write_str(
                "nothing is public: a proof says only that some satisfying witness exists",
            ),
            Self::TypeWithoutInstances { kind } => {
                write!(f, "type '{kind}' has no instances and is left out")
            }
            Self::UnusedSlot { instance, instances, kind, slot, constraint } => {
                let user = match constraint {
                    Some(constraint) => format!("constraint {constraint}"),
                    None => "an entry of a bus".to_owned(),
                };
                write!(
                    f,
                    "{slot} of type '{kind}' is unused in instance {instance}, but {user} uses it: \
                     the prover chooses its value there"
                )?;
                match instances {
                    1 => Ok(()),
                    more => write!(f, " (and in {} more instances)", more - 1),
                }
            }
            Self::Cycle { instances, wire } => write!(
                f,
                "{instances} subcircuits read what follows from what they write, wire {wire} among it: \
                 constraints must determine the values in this cycle, or the prover may choose them"
            ),
            Self::ReadsOwnWire { instance, wire } => {
                write!(f, "instance {instance} reads wire {wire}, which it writes itself")
            }
        }
    }
}

/// Looks for notices. `types` are the R1CS of the layout's types. In a circuit with stored constraints, an
/// unused slot is an own variable by another name: another instance of the type shares its wire.
pub(crate) fn notices(layout: &Layout, types: &[R1cs], are_stored: bool) -> Vec<Notice> {
    let mut out = Vec::new();
    if layout.public_wires().next().is_none() {
        out.push(Notice::NothingPublic);
    }
    let without = layout.types_without_instances();
    out.extend(without.map(|kind| Notice::TypeWithoutInstances { kind: kind.to_owned() }));
    if !are_stored {
        out.extend(unused_slots(layout, types));
    }
    out.extend(own_wires(layout));
    // The parts of an imported circuit share wires in both directions.
    if !are_stored {
        out.extend(cycle(layout));
    }
    out
}

fn unused_slots(layout: &Layout, types: &[R1cs]) -> Vec<Notice> {
    let mut out = Vec::new();
    // One pass over the instances, not one for each type.
    let mut unused: BTreeMap<(TypeId, usize), Vec<usize>> = BTreeMap::new();
    for instance in layout.instance_ids() {
        let kind = layout.type_of(instance);
        for (slot, _) in layout.wires_of(instance).enumerate().filter(|(_, wire)| wire.is_none()) {
            unused.entry((kind, slot)).or_default().push(instance.index());
        }
    }
    for (kind, r1cs) in layout.type_ids().zip(types) {
        let unconstrained: BTreeSet<usize> = r1cs.unconstrained_slots().into_iter().collect();
        let of_type = unused.range((kind, 0)..=(kind, usize::MAX));
        for ((_, slot), instances) in of_type {
            // Without a constraint, the value does not matter.
            if unconstrained.contains(slot) {
                continue;
            }
            let uses = |row: &usize| {
                let mut terms = r1cs.matrices.all().into_iter().flat_map(|m| m.terms(*row));
                terms.any(|(_, variable)| r1cs.layout.slot_of(variable) == Some(*slot))
            };
            // The author's own first: they have numbers.
            let all = r1cs.constraints();
            let (mut own, mut made) = (r1cs.layout.author_rows(all), r1cs.layout.made_rows(all));
            if let Some(first) = instances.first()
                && let Some(row) = own.find(&uses).or_else(|| made.find(&uses))
            {
                out.push(Notice::UnusedSlot {
                    instance: *first,
                    instances: instances.len(),
                    kind: r1cs.name.clone(),
                    slot: layout.slot_label(kind, *slot),
                    constraint: r1cs.layout.author_row(row),
                });
            }
        }
    }
    out
}

/// Looks for instances that cannot be put into an order in which each reads only what earlier ones write.
fn cycle(layout: &Layout) -> Option<Notice> {
    let accesses = |instance: InstanceId| {
        let start = layout.starts[instance.index()];
        layout.slots.range(start, layout.slots(layout.type_of(instance)))
    };
    let mut writers: HashMap<u32, usize> = HashMap::new();
    for instance in layout.instance_ids() {
        let written = accesses(instance).filter_map(|slot| match slot {
            Slot::Writes(wire) => Some(wire),
            _ => None,
        });
        writers.extend(written.map(|wire| (wire, instance.index())));
    }
    // The instances that read from each one, and the number of those that each one still waits for.
    let (mut readers, mut waits) =
        (vec![Vec::new(); layout.instances()], vec![0_usize; layout.instances()]);
    for instance in layout.instance_ids() {
        let read: HashSet<usize> = accesses(instance)
            .filter_map(|slot| match slot {
                // An instance that reads its own wire has a notice of its own.
                Slot::Reads(wire) => {
                    writers.get(&wire).copied().filter(|it| *it != instance.index())
                }
                _ => None,
            })
            .collect();
        waits[instance.index()] = read.len();
        read.into_iter().for_each(|writer| readers[writer].push(instance.index()));
    }
    let mut ready: Vec<usize> = (0..waits.len()).filter(|instance| waits[*instance] == 0).collect();
    let mut done = 0;
    while let Some(instance) = ready.pop() {
        done += 1;
        for reader in &readers[instance] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.push(*reader);
            }
        }
    }
    // A wire that is written and read by instances that wait: those behind a cycle wait, too, but some wire of a cycle is one.
    let waiting = |instance: usize| waits[instance] > 0;
    let first = layout.instance_ids().filter(|instance| waiting(instance.index())).find_map(
        |instance| {
            accesses(instance).find_map(|slot| match slot {
                Slot::Reads(wire) if writers.get(&wire).is_some_and(|writer| waiting(*writer)) => {
                    Some(wire)
                }
                _ => None,
            })
        },
    )?;
    let wire = layout.wires.name(WireId(first)).to_string();
    Some(Notice::Cycle { instances: layout.instances() - done, wire })
}

/// The first instance of each type that reads a wire that it writes.
fn own_wires(layout: &Layout) -> Vec<Notice> {
    let mut out = Vec::new();
    let mut found = HashSet::new();
    for instance in layout.instance_ids() {
        // One notice per type: a circuit may have millions of instances with the same mistake.
        if found.contains(&layout.type_of(instance)) {
            continue;
        }
        let start = layout.starts[instance.index()];
        let slots = || layout.slots.range(start, layout.slots(layout.type_of(instance)));
        let written: HashSet<u32> = slots()
            .filter_map(|slot| match slot {
                Slot::Writes(wire) => Some(wire),
                _ => None,
            })
            .collect();
        let own = |slot: Slot| match slot {
            Slot::Reads(wire) if written.contains(&wire) => Some(wire),
            _ => None,
        };
        if let Some(wire) = slots().find_map(own) {
            found.insert(layout.type_of(instance));
            let wire = layout.wires.name(WireId(wire)).to_string();
            out.push(Notice::ReadsOwnWire { instance: instance.index(), wire });
        }
    }
    out
}
