//! The development mode: runs all subcircuits without any proving and says which constraint fails.

use crate::circuit::Circuit;
use crate::execution::{Execution, ExecutionError};
use crate::layout::{InstanceId, Layout, TypeId, WireName};
use crate::memory::{Masking, MemoryChallenges, SlotAccess};
use crate::prefix::Prefix;
use crate::synthesis::{Synthesis, SynthesizeError, synthesize_r1cs};
use crate::variables::VariableLayout;
use ark_ff::Zero;
use ark_relations::gr1cs::{R1CS_PREDICATE_LABEL, SynthesisMode};
use hekaton_arith::Fr;

/// Why a check could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The circuit can't be executed on this input.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// An instance that could not be checked.
    #[error("instance {instance} could not be checked")]
    Unchecked {
        /// The instance.
        instance: usize,
    },
    /// Synthesis of a type failed, whatever the instance.
    #[error(transparent)]
    Type(SynthesizeError),
    /// Synthesis failed.
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
    /// Index of the constraint in its R1CS, those of the memory check with its masks included.
    pub constraint: usize,
    /// Where it was made: the tracing spans with target `gr1cs`, innermost first, or the rows of the memory check.
    pub label: String,
    /// The shared wires that occur in it.
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

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Instances checked.
    pub instances: usize,
    /// Constraints checked.
    pub constraints: usize,
    /// The public values that the execution gives.
    pub public_values: Vec<Fr>,
    /// The first violation of each unsatisfied instance.
    pub violations: Vec<Violation>,
}

/// Runs all subcircuits on an input without proving. No keys are needed.
///
/// For labels of constraints, run it under a `tracing` subscriber with arkworks' `ConstraintLayer`.
///
/// # Errors
/// When the circuit itself fails; unsatisfied constraints are in the report.
pub fn check<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    mut progress: impl FnMut(usize, usize),
) -> Result<CheckReport, CheckError> {
    let layout = circuit.layout().map_err(ExecutionError::from)?;
    let execution = Execution::new(circuit, input, &layout)?;
    // With masks, as in zero-knowledge keys: then constraints have the indices that provers report.
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

/// The number of constraints of an instance, and the first that does not hold.
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
    // No constraint of the author sees a mask, so any values will do.
    let mask = |i: u64| Fr::from(u128::MAX) + Fr::from(i);
    let values = execution.values.masked_slots(layout, instance, mask);
    // Any challenges will do. s slots have at most s poles, so one of s + 1 challenges has none.
    let b = Fr::from(u128::MAX - 172);
    let challenges =
        |attempt: u64| MemoryChallenges { g: Fr::from(u128::MAX - 58) + Fr::from(attempt), b };
    let prefix =
        (0..=slots.len() as u64).find_map(|i| Prefix::new(slots, &values, &challenges(i)).ok());
    let prefix = prefix.ok_or_else(unchecked)?;

    let synthesis = Synthesis { circuit, kind, name, variables };
    let mode = SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false };
    let cs = synthesis.run(mode, Some(&prefix), Some(&private)).map_err(inside)?;
    cs.finalize();
    let gadget = |source| inside(synthesis.gadget(source));
    let matrices = cs.to_matrices().map_err(gadget)?;
    let mut z = cs.instance_assignment().map_err(gadget)?;
    z.extend(cs.witness_assignment().map_err(gadget)?);
    let [a, b, c] = &matrices[R1CS_PREDICATE_LABEL][..] else { return Err(unchecked()) };
    let dot = |row: &[(Fr, usize)]| row.iter().map(|(k, i)| *k * z[*i]).sum::<Fr>();
    let failing = (0..a.len()).find(|i| !(dot(&a[*i]) * dot(&b[*i]) - dot(&c[*i])).is_zero());
    let violation = failing.map(|constraint| {
        let terms = [&a[constraint], &b[constraint], &c[constraint]].into_iter().flatten();
        let mut touched: Vec<usize> = terms.filter_map(|(_, i)| variables.slot_of(*i)).collect();
        touched.sort_unstable();
        touched.dedup();
        let wires: Vec<_> = layout.wires_of(instance).collect();
        let wire = |slot: usize| wires.get(slot).copied().flatten();
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
            wires: touched.into_iter().filter_map(wire).map(|w| layout.wire_name(w)).collect(),
        }
    });
    Ok((a.len(), violation))
}

/// The number of constraints of each type, in the order of the layout, those of the memory check included and masks not
/// (two more slots with zero knowledge, so two more constraints). No keys are needed.
///
/// # Errors
/// When the layout is wrong or synthesis fails.
pub fn count_constraints<C: Circuit>(circuit: &C) -> Result<Vec<usize>, CheckError> {
    let layout = circuit.layout().map_err(ExecutionError::from)?;
    let count = |kind: TypeId| {
        let variables = VariableLayout::new(layout.slots(kind), Masking::Unmasked);
        synthesize_r1cs(circuit, kind, layout.type_name(kind), variables)
    };
    let counts = layout.type_ids().map(|kind| count(kind).map(|r1cs| r1cs.constraints()));
    counts.collect::<Result<_, _>>().map_err(CheckError::Type)
}

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
