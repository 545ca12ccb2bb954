//! `check` with [`CheckOptions::unique`](super::CheckOptions::unique): do the values of an instance follow from what it reads?

use crate::buses::library::BusKind;
use crate::check::error::CheckError;
use crate::check::instance::Instance;
use crate::layout::Layout;
use crate::layout::ids::WireId;
use crate::synthesis::r1cs::R1cs;
use crate::unique::{
    Function, Question, Rows, Ties, TooManyRows, Verdicts, analyze, without_effect,
};
use hekaton_arith::Fr;
use std::collections::BTreeSet;

/// The verdicts on one instance: given are the slots that it reads, what the author marked as private input
/// ([`Subcircuit::given`](crate::Subcircuit::given)), and the constants of the layout; outputs are the slots that it writes, but for
/// those that the layout declares unconstrained. Committed values follow from tables by their keys; what other entries of buses tie is
/// not known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceVerdicts {
    /// The instance.
    pub instance: usize,
    /// The name of its type.
    pub kind: String,
    /// The number of values that are marked as private input.
    pub private_inputs: usize,
    /// The verdicts on its values.
    pub verdicts: Verdicts,
    /// The slots that it reads without an effect at this witness: each could have another value with the same outputs.
    pub without_effect: Vec<String>,
}

/// A variable in the 32 bits that questions have for it.
fn number(variable: usize) -> Result<u32, TooManyRows> {
    u32::try_from(variable).ok().ok_or(TooManyRows)
}

/// The author's constraints. Those of the memory check contain the challenges.
fn author_rows(r1cs: &R1cs) -> Result<Rows<Fr>, TooManyRows> {
    let rows = r1cs.layout.author_rows(r1cs.constraints());
    let sides =
        rows.map(|row| r1cs.matrices.all().map(|matrix| matrix.entries_of(row).iter().copied()));
    Rows::new(r1cs.matrices.coefficients.clone(), sides)
}

/// The constraints by the entries of buses.
fn ties(layout: &Layout, r1cs: &R1cs, values: &[Fr]) -> Result<Ties<Fr>, TooManyRows> {
    let (variables, mut ties) = (&r1cs.layout, Ties::default());
    let Some([b_t, _]) = variables.bus_challenges() else { return Ok(ties) };
    let (slots, scaled) = (variables.slot_values(), variables.scaled());
    let is_own = |variable: usize| {
        slots.contains(&variable)
            || variables.marked().contains(&variable)
            || variable >= variables.len()
    };
    let own = |side: usize, row: usize| -> Result<Vec<(u32, Fr)>, TooManyRows> {
        let terms = r1cs.side(side).terms(row).filter(|(_, variable)| is_own(*variable));
        terms.map(|(k, variable)| Ok((number(variable)?, k))).collect()
    };
    for entry in 0..variables.shape().entries {
        let row = variables.entry_row(entry);
        let (key, multiplicity) = (own(1, row)?, own(2, row)?);
        let value = match r1cs.side(1).terms(row).find(|(_, variable)| scaled.contains(variable)) {
            Some((_, place)) => own(0, variables.scaled_row(place - scaled.start))?,
            None => Vec::new(),
        };
        let bus = r1cs.side(1).terms(row).find(|(_, variable)| *variable == b_t);
        let table =
            layout.buses.iter().zip(1_u64..).find_map(|(bus_spec, tag)| match &bus_spec.kind {
                BusKind::Table(table) if bus == Some((Fr::from(tag), b_t)) => Some(table),
                _ => None,
            });
        // An entry without multiplicity is not there.
        let is_there = r1cs.side(2).row(row, values) != Fr::from(0_u64);
        let variables_of = |terms: &[(u32, Fr)]| terms.iter().map(|(v, _)| *v).collect::<Vec<_>>();
        if let Some(table) = table.filter(|_| is_there) {
            let arguments = [variables_of(&key), variables_of(&multiplicity)].concat();
            let constant = r1cs.side(1).terms(row).any(|(_, variable)| variable == 0);
            match (table.bits(), &key[..]) {
                // Its range is all that such an entry says.
                (Some(bits), [(variable, k)])
                    if *k == Fr::from(1_u64) && !constant && multiplicity.is_empty() =>
                {
                    ties.ranges.push((*variable, bits));
                    continue;
                }
                (None, _) => ties.functions.push(Function { arguments, value: value.clone() }),
                _ => {}
            }
        }
        ties.held.extend([key, value, multiplicity].into_iter().flatten().map(|(v, _)| v));
    }
    Ok(ties)
}

/// Asks of each value of an instance whether it follows, from committed values, too, if these are given.
pub(crate) fn verdicts(
    instance: &Instance<'_>,
    committed_given: bool,
) -> Result<InstanceVerdicts, CheckError> {
    let (r1cs, values) = (instance.r1cs(), instance.assignment());
    let (variables, layout) = (&r1cs.layout, instance.circuit.layout());
    let slots = variables.slot_values().start..variables.masks().start;
    let wires: Vec<Option<WireId>> = layout.wires_of(instance.id).collect();
    let is_written = |slot: usize| layout.writes_slot(instance.id, slot);
    let written: BTreeSet<WireId> =
        (0..wires.len()).filter(|slot| is_written(*slot)).filter_map(|slot| wires[slot]).collect();
    let mut ties = ties(layout, r1cs, values)?;
    let (mut outputs, mut read) = (Vec::new(), Vec::new());
    // The variables of the memory check come before the author's; slots and committed values are the author's, too.
    let is_fixed = |variable: &usize| {
        !slots.contains(variable) && (committed_given || !variables.marked().contains(variable))
    };
    let fixed = (0..variables.len()).filter(is_fixed).chain(instance.given().iter().copied());
    let mut given: BTreeSet<u32> = fixed.map(number).collect::<Result<_, _>>()?;
    for (slot, wire) in wires.iter().enumerate().take(slots.len()) {
        let variable = number(slots.start + slot)?;
        match wire {
            // The layout says that any value will do.
            _ if layout.is_unconstrained(instance.kind, slot) => drop(given.insert(variable)),
            // Marked as private input.
            _ if given.contains(&variable) => {}
            Some(_) if is_written(slot) => outputs.push(variable),
            // It changes with the slot that writes it.
            Some(wire) if written.contains(wire) => ties.held.push(variable),
            Some(_) => {
                given.insert(variable);
                read.push(variable);
            }
            // Nothing but the constraints of the subcircuit ties a slot without a wire.
            None => {}
        }
    }
    let (rows, given) = (author_rows(r1cs)?, given.into_iter().collect::<Vec<_>>());
    let question = Question { rows: &rows, values, given: &given, outputs: &outputs, ties: &ties };
    let answer = analyze(&question)?;
    let marked = variables.marked();
    let name = |variable: u32| match variable as usize {
        slot if slots.contains(&slot) => layout.slot_label(instance.kind, slot - slots.start),
        value if marked.contains(&value) => format!("committed value {}", value - marked.start),
        own => format!("own variable {}", own - variables.len()),
    };
    let others = r1cs.variables - given.len() - outputs.len();
    let without_effect = without_effect(&question, &read).into_iter().map(name).collect();
    Ok(InstanceVerdicts {
        instance: instance.id.index(),
        kind: r1cs.name.clone(),
        private_inputs: instance.given().len(),
        verdicts: Verdicts::new(&answer, values, &outputs, others, name),
        without_effect,
    })
}
