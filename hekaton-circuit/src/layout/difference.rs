//! The first difference between two layouts of one circuit, for messages.

use crate::interface::Masking;
use crate::layout::Layout;
use crate::layout::ids::InstanceId;

/// Describes the first difference between a layout and the one of a second call; `None` if keys would be the same.
pub(crate) fn difference(first: &Layout, second: &Layout) -> Option<String> {
    if first.wiring_digest(Masking::Unmasked) == second.wiring_digest(Masking::Unmasked) {
        return None;
    }
    let types = |layout: &Layout| -> Vec<String> {
        let kinds = layout.type_ids();
        kinds
            .map(|kind| format!("'{}' with {} slots", layout.type_name(kind), layout.slots(kind)))
            .collect()
    };
    let counts = [first, second].map(Layout::instances);
    let wires = || {
        let mut instances = first.instance_ids().zip(second.instance_ids());
        instances.find_map(|(instance, _)| of_instance(first, second, instance))
    };
    of_lists("type", &types(first), &types(second))
        .or_else(|| {
            (counts[0] != counts[1]).then(|| format!("{} instances, then {}", counts[0], counts[1]))
        })
        .or_else(wires)
        .or_else(|| Some("its public wires, constants, parameters or buses".into()))
}

/// The first position at which two lists differ.
fn of_lists(what: &str, first: &[String], second: &[String]) -> Option<String> {
    let shown = |item: Option<&String>| item.map_or_else(|| "missing".to_owned(), Clone::clone);
    let at = (0..first.len().max(second.len())).find(|i| first.get(*i) != second.get(*i))?;
    Some(format!("{what} {at} is {}, then {}", shown(first.get(at)), shown(second.get(at))))
}

/// The first difference between the types of an instance, or between the wires in its slots.
fn of_instance(first: &Layout, second: &Layout, instance: InstanceId) -> Option<String> {
    let number = instance.index();
    let [kind, other] = [first, second].map(|layout| layout.type_name(layout.type_of(instance)));
    if kind != other {
        return Some(format!("instance {number} is of type '{kind}', then of type '{other}'"));
    }
    let wires = |layout: &Layout| -> Vec<String> {
        let wires = layout.wires_of(instance).zip(layout.accesses(instance, Masking::Unmasked));
        let name = |wire| layout.wire_name(wire).to_string();
        wires
            .map(|(wire, access)| match wire.map(name) {
                None => "unused".to_owned(),
                Some(wire) if access.multiplicity > 0 => {
                    format!("the writer of wire {wire} for {} readers", access.multiplicity)
                }
                Some(wire) => format!("a reader of wire {wire}"),
            })
            .collect()
    };
    let slot = format!("instance {number} (type '{kind}'), slot");
    of_lists(&slot, &wires(first), &wires(second))
}
