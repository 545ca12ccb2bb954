//! The development mode: runs all subcircuits without proving and reports which constraints fail.

use crate::circuit::Circuit;
use crate::execution::{Execution, ExecutionError};
use crate::ids::{InstanceId, TypeId, WireName};
use crate::layout::Layout;
use crate::memory::{Masking, MemoryChallenges, SlotAccess};
use crate::prefix::Prefix;
use crate::synthesis::{Synthesis, SynthesizeError, synthesize_r1cs};
use crate::variables::VariableLayout;
use ark_ff::Zero;
use ark_relations::gr1cs::{R1CS_PREDICATE_LABEL, SynthesisMode};
use hekaton_arith::Fr;

/// Why a check could not be completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The circuit cannot be executed on this input.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The constraints of an instance could not be evaluated.
    #[error("instance {instance} could not be checked: its constraints cannot be evaluated")]
    Unchecked {
        /// The instance.
        instance: usize,
    },
    /// Synthesis of a type failed.
    #[error(transparent)]
    Type(SynthesizeError),
    /// Synthesis of an instance failed.
    #[error("instance {instance}: {source}")]
    Synthesize {
        /// The instance.
        instance: usize,
        /// What went wrong.
        source: SynthesizeError,
    },
}

/// A constraint that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The instance.
    pub instance: usize,
    /// The name of its type.
    pub kind: String,
    /// The index of the constraint in the R1CS, where the rows of the memory check come first,
    /// masks included.
    pub constraint: usize,
    /// Where the constraint was created: the tracing spans with target `gr1cs`, innermost first, or
    /// the memory check.
    pub label: String,
    /// The shared wires in the constraint.
    pub wires: Vec<WireName>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "instance {} (type '{}'), constraint {}",
            self.instance, self.kind, self.constraint
        )?;
        if !self.wires.is_empty() {
            let wires: Vec<String> = self.wires.iter().map(ToString::to_string).collect();
            write!(f, ", shared wires {}", wires.join(", "))?;
        }
        write!(f, "\n{}", self.label)
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// The number of instances checked.
    pub instances: usize,
    /// The number of constraints checked.
    pub constraints: usize,
    /// The public values computed by the execution.
    pub public_values: Vec<Fr>,
    /// The first violation of each unsatisfied instance.
    pub violations: Vec<Violation>,
}

/// Runs all subcircuits on an input without proving and without keys. `progress` receives the
/// number of instances checked so far and the total.
///
/// For labels of constraints, run it under a `tracing` subscriber with arkworks' `ConstraintLayer`.
///
/// # Errors
/// If the circuit itself fails. Unsatisfied constraints are not errors: the report lists them.
pub fn check<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    mut progress: impl FnMut(usize, usize),
) -> Result<CheckReport, CheckError> {
    let layout = circuit.layout().map_err(ExecutionError::from)?;
    let execution = Execution::new(circuit, input, &layout)?;
    // With masks, as in zero-knowledge keys, so that constraints have the indices that provers
    // report (spec: memory-check#rows).
    let wiring = layout.wiring(Masking::Masked);
    let starts = wiring.starts();
    let mut report =
        CheckReport { public_values: execution.public(&layout), ..CheckReport::default() };
    for instance in layout.instance_ids() {
        let variables = wiring.variables(wiring.type_of[instance.index()]);
        let slots = &wiring.slots[starts[instance.index()]..][..variables.slots()];
        let (constraints, violation) =
            check_instance(circuit, &layout, &execution, instance, variables, slots)?;
        report.instances += 1;
        report.constraints += constraints;
        report.violations.extend(violation);
        progress(report.instances, layout.instances());
    }
    Ok(report)
}

/// Returns the number of constraints of an instance, and the first violation.
fn check_instance<C: Circuit>(
    circuit: &C,
    layout: &Layout,
    execution: &Execution<'_, C>,
    instance: InstanceId,
    variables: VariableLayout,
    slots: &[SlotAccess],
) -> Result<(usize, Option<Violation>), CheckError> {
    let kind = layout.type_of(instance);
    let name = layout.type_name(kind);
    let unchecked = || CheckError::Unchecked { instance: instance.index() };
    let inside = |source| CheckError::Synthesize { instance: instance.index(), source };
    let private = execution.private_input(instance)?;
    // Any masks will do, because no constraint of the author's contains one
    // (spec: zero-knowledge#masks).
    let mask = |i: u64| Fr::from(u128::MAX) + Fr::from(i);
    let values = execution.values.masked_slots(layout, instance, mask);
    let prefix = prefix_off_poles(slots, &values).ok_or_else(unchecked)?;

    let synthesis = Synthesis { circuit, kind, name, variables };
    let mode = SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false };
    let cs = synthesis.run(mode, Some(&prefix), Some(&private)).map_err(inside)?;
    cs.finalize();
    let gadget = |source| inside(synthesis.gadget(source));
    let matrices = cs.to_matrices().map_err(gadget)?;
    let mut z = cs.instance_assignment().map_err(gadget)?;
    z.extend(cs.witness_assignment().map_err(gadget)?);
    let [a, b, c] = &matrices[R1CS_PREDICATE_LABEL][..] else { return Err(unchecked()) };
    // Row by row: <A, z> <B, z> = <C, z>.
    let dot = |row: &[(Fr, usize)]| row.iter().map(|(k, i)| *k * z[*i]).sum::<Fr>();
    let failing = (0..a.len()).find(|i| !(dot(&a[*i]) * dot(&b[*i]) - dot(&c[*i])).is_zero());
    let violation = failing.map(|constraint| {
        let rows = [&a[constraint][..], &b[constraint], &c[constraint]];
        let in_memory_check = constraint < variables.rows();
        Violation {
            instance: instance.index(),
            kind: name.to_owned(),
            constraint,
            label: if in_memory_check {
                "   memory check".to_owned()
            } else {
                label(&cs, constraint)
            },
            wires: wires_in(layout, instance, &variables, rows),
        }
    });
    Ok((a.len(), violation))
}

/// Computes the values of the memory check under challenges that hit no pole (zero denominator).
/// Any such challenges will do: for s slots, at most s values of g are poles, so one of s + 1
/// values is not (spec: memory-check#pole).
fn prefix_off_poles(slots: &[SlotAccess], values: &[Fr]) -> Option<Prefix> {
    let b = Fr::from(u128::MAX - 172);
    let challenges =
        |attempt: u64| MemoryChallenges { g: Fr::from(u128::MAX - 58) + Fr::from(attempt), b };
    (0..=slots.len() as u64).find_map(|i| Prefix::new(slots, values, &challenges(i)).ok())
}

/// The names of the shared wires in the rows of a constraint, in the order of the slots.
fn wires_in(
    layout: &Layout,
    instance: InstanceId,
    variables: &VariableLayout,
    rows: [&[(Fr, usize)]; 3],
) -> Vec<WireName> {
    let terms = rows.into_iter().flatten();
    let mut slots: Vec<usize> = terms.filter_map(|(_, i)| variables.slot_of(*i)).collect();
    slots.sort_unstable();
    slots.dedup();
    let wires: Vec<_> = layout.wires_of(instance).collect();
    let wire = |slot: usize| wires.get(slot).copied().flatten();
    slots.into_iter().filter_map(wire).map(|w| layout.wire_name(w)).collect()
}

/// Returns the number of constraints of each type, in the order of the layout, without keys. The
/// memory check is included, the two mask slots are not: zero knowledge adds two constraints per
/// subcircuit.
///
/// # Errors
/// If the layout is invalid or synthesis fails.
pub fn count_constraints<C: Circuit>(circuit: &C) -> Result<Vec<usize>, CheckError> {
    let layout = circuit.layout().map_err(ExecutionError::from)?;
    let count = |kind: TypeId| {
        let variables = VariableLayout::new(layout.slots(kind), Masking::Unmasked);
        synthesize_r1cs(circuit, kind, layout.type_name(kind), variables)
    };
    let counts = layout.type_ids().map(|kind| count(kind).map(|r1cs| r1cs.constraints()));
    counts.collect::<Result<_, _>>().map_err(CheckError::Type)
}

/// The tracing spans in which a constraint was created.
fn label(cs: &ark_relations::gr1cs::ConstraintSystemRef<Fr>, constraint: usize) -> String {
    let trace = cs.borrow().and_then(|cs| {
        cs.predicate_traces
            .get(R1CS_PREDICATE_LABEL)
            .and_then(|t| t.get(constraint))
            .cloned()
            .flatten()
    });
    trace
        .map(|t| t.to_string())
        .filter(|s| !s.is_empty())
        .unwrap_or_else(|| "   (no label)".to_owned())
}
