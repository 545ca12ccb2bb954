//! `check` with [`CheckOptions::unique`](super::CheckOptions::unique): whether the values of an instance follow from what it reads.

use crate::check::error::CheckError;
use crate::check::instance::Instance;
use crate::synthesis::r1cs::R1cs;
use crate::unique::{Question, Rows, TooManyRows, Verdicts, analyze, has_effect};

/// The verdicts on one instance: given are the slots that it reads, the values that it commits to for buses, what the author marked
/// as private input ([`Subcircuit::given`](crate::Subcircuit::given)), and the constants of the layout; outputs are the slots that
/// it writes, but for those that the layout declares unconstrained.
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

/// The author's constraints. Those of the memory check contain what is committed and the challenges.
fn author_rows(r1cs: &R1cs) -> Result<Rows<hekaton_arith::Fr>, TooManyRows> {
    let rows = r1cs.layout.author_rows(r1cs.constraints());
    let sides =
        rows.map(|row| r1cs.matrices.all().map(|matrix| matrix.entries_of(row).iter().copied()));
    Rows::new(r1cs.matrices.coefficients.clone(), sides)
}

/// Asks of each value of an instance whether it follows.
pub(crate) fn verdicts(instance: &Instance<'_>) -> Result<InstanceVerdicts, CheckError> {
    let (r1cs, values) = (instance.r1cs(), instance.assignment());
    let (layout, circuit) = (&r1cs.layout, instance.circuit.layout());
    let rows = author_rows(r1cs)?;
    let number = |variable: usize| u32::try_from(variable).ok().ok_or(TooManyRows);
    let slots = layout.slot_values().start..layout.masks().start;
    let is_declared =
        |variable: &usize| circuit.is_unconstrained(instance.kind, variable - slots.start);
    let is_output = |variable: &usize| {
        circuit.writes_slot(instance.id, variable - slots.start) && !is_declared(variable)
    };
    let (outputs, read): (Vec<usize>, Vec<usize>) = slots.clone().partition(is_output);
    let outputs: Vec<u32> = outputs.into_iter().map(number).collect::<Result<_, _>>()?;
    let private = instance.given();
    // The variables of the memory check come before the author's, but for those of slots.
    let memory = (0..layout.len()).filter(|variable| !slots.contains(variable));
    let given = memory.chain(read.iter().copied()).chain(private.iter().copied());
    let given: Vec<u32> = given.map(number).collect::<Result<_, _>>()?;
    let question = Question { rows: &rows, values, given: &given, outputs: &outputs };
    // The instance was checked before.
    let answer = analyze(&question)?;
    let label = |variable: usize| circuit.slot_label(instance.kind, variable - slots.start);
    let name = |variable: u32| match slots.contains(&(variable as usize)) {
        true => label(variable as usize),
        false => format!("own variable {}", variable as usize - layout.len()),
    };
    let chosen = private.iter().filter(|variable| **variable >= layout.len()).count();
    let others = r1cs.variables - layout.len() - chosen;
    let verdicts = Verdicts::new(&answer, values, &outputs, others, name);
    // An unused slot has no wire, and a notice of its own where constraints use it.
    let wires: Vec<bool> = circuit.wires_of(instance.id).map(|wire| wire.is_some()).collect();
    let is_used = |slot: usize| wires.get(slot).is_some_and(|is_used| *is_used);
    let mut without_effect = Vec::new();
    for variable in read.into_iter().filter(|variable| !is_declared(variable)) {
        if is_used(variable - slots.start) && !has_effect(&question, number(variable)?) {
            without_effect.push(label(variable));
        }
    }
    let (kind, private_inputs) = (r1cs.name.clone(), private.len());
    let instance = instance.id.index();
    Ok(InstanceVerdicts { instance, kind, private_inputs, verdicts, without_effect })
}
