//! The development mode: runs all subcircuits without any proving and says which constraint fails.

use super::Circuit;
use super::execution::{Execution, ExecutionError};
use super::layout::WireName;
use super::synthesis::{Prefix, SynthesizeError, synthesize};
use crate::randomness::Randomness;
use crate::transcript::MemoryChallenges;
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

/// Mask slots of a subcircuit.
const MASKS: usize = 2;

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
        write!(f, "instance {} (type '{}'), constraint {}", self.instance, self.kind, self.constraint)?;
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
    // With masks, as in zero-knowledge keys: the indices of constraints are those of the provers' errors.
    let wiring = layout.wiring(true);
    let randomness = Randomness::seeded_not_zero_knowledge(0);
    let starts = wiring.starts();
    let mut report = CheckReport { public_values: execution.public(&layout), ..CheckReport::default() };
    // Any challenges will do; where they meet a pole, the next ones.
    let b = Fr::from(u128::MAX - 172);
    let challenges = |attempt: u64| MemoryChallenges { g: Fr::from(u128::MAX - 58) + Fr::from(attempt), b };
    for instance in layout.instance_ids() {
        let kind = layout.type_of(instance);
        let name = layout.type_name(kind);
        let private = execution.private_input(instance)?;
        let slots = &wiring.slots[starts[instance.index()]..][..layout.slots(kind) + MASKS];
        let inside = |source| CheckError::Synthesize { instance: instance.index(), source };
        let slot_values = execution.values.masked_slots(&layout, instance, &randomness);
        // s slots have at most s poles, so one of s + 1 challenges has none
        let prefix = (0..=slots.len() as u64).find_map(|i| Prefix::new(slots, &slot_values, &challenges(i)).ok());
        let Some(prefix) = prefix else { return Err(CheckError::Unchecked { instance: instance.index() }) };
        let mode = SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false };
        let cs =
            synthesize(circuit, kind, name, slots.len(), MASKS, mode, Some(&prefix), Some(&private)).map_err(inside)?;
        cs.finalize();
        let gadget = |source| inside(SynthesizeError::Gadget { kind: name.to_owned(), source });
        let matrices = cs.to_matrices().map_err(gadget)?;
        let mut z = cs.instance_assignment().map_err(gadget)?;
        z.extend(cs.witness_assignment().map_err(gadget)?);
        let [a, b, c] = &matrices[R1CS_PREDICATE_LABEL][..] else {
            return Err(CheckError::Unchecked { instance: instance.index() });
        };
        let dot = |row: &[(Fr, usize)]| row.iter().map(|(k, i)| *k * z[*i]).sum::<Fr>();
        report.instances += 1;
        report.constraints += a.len();
        let failing = (0..a.len()).find(|i| !(dot(&a[*i]) * dot(&b[*i]) - dot(&c[*i])).is_zero());
        if let Some(constraint) = failing {
            let first = 2 + 2 * slots.len();
            let mut touched: Vec<usize> = [&a[constraint], &b[constraint], &c[constraint]]
                .into_iter()
                .flatten()
                .filter_map(|(_, i)| i.checked_sub(first).filter(|slot| *slot < layout.slots(kind)))
                .collect();
            touched.sort_unstable();
            touched.dedup();
            let wires: Vec<_> = layout.wires_of(instance).collect();
            report.violations.push(Violation {
                instance: instance.index(),
                kind: name.to_owned(),
                constraint,
                label: if constraint <= slots.len() { "   memory check".to_owned() } else { label(&cs, constraint) },
                wires: touched.iter().filter_map(|slot| wires[*slot]).map(|w| layout.wire_name(w)).collect(),
            });
        }
        progress(report.instances, layout.instances());
    }
    Ok(report)
}

fn label(cs: &ark_relations::gr1cs::ConstraintSystemRef<Fr>, constraint: usize) -> String {
    let trace = cs.borrow().and_then(|cs| {
        cs.predicate_traces.get(R1CS_PREDICATE_LABEL).and_then(|t| t.get(constraint)).cloned().flatten()
    });
    trace.map(|t| t.to_string()).filter(|s| !s.is_empty()).unwrap_or_else(|| "   (no label)".to_owned())
}
