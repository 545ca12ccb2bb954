//! The development mode: runs all subcircuits without proving and reports which constraints fail,
//! and what would make the circuit unsound or unusable later.

pub(crate) mod balance;
pub(crate) mod error;
pub(crate) mod fit;
mod instance;
pub(crate) mod notices;
pub(crate) mod unique;
pub(crate) mod violation;

use crate::check::balance::{Balance, Unbalanced};
use crate::check::error::CheckError;
use crate::check::instance::Instance;
use crate::check::notices::{Notice, notices};
use crate::check::unique::{InstanceVerdicts, verdicts};
use crate::check::violation::{Violation, violations};
use crate::circuit::Circuit;
use crate::execution::prepared::PreparedCircuit;
use crate::interface::Masking;
use crate::layout::difference::difference;
use crate::layout::ids::TypeId;
use crate::memory::wiring::Wiring;
use crate::synthesis::r1cs::R1cs;
use hekaton_arith::Fr;
use std::collections::BTreeSet;

/// The options of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CheckOptions {
    unique: bool,
    every: bool,
    committed_given: bool,
    violations: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CheckOptions {
    /// Checks the constraints, and reports at most 100 violations.
    pub const fn new() -> Self {
        Self { unique: false, every: false, committed_given: false, violations: 100 }
    }

    /// Sets whether the check also asks of the first instance of each type whether all values follow from what it reads
    /// ([`crate::unique`]).
    pub const fn unique(mut self, unique: bool) -> Self {
        self.unique = unique;
        self
    }

    /// Sets whether [`unique`](Self::unique) asks that of all instances.
    pub const fn every(mut self, every: bool) -> Self {
        self.every = every;
        self
    }

    /// Sets whether [`unique`](Self::unique) takes committed values as given. Then all other values must follow from them: what
    /// entries of buses tie, and whether that is enough, is to be shown in another way.
    pub const fn committed_given(mut self, given: bool) -> Self {
        self.committed_given = given;
        self
    }

    /// Sets the maximum number of violations in the report.
    pub const fn violations(mut self, violations: usize) -> Self {
        self.violations = violations;
        self
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
    /// The violations found, up to the limit of the options.
    pub violations: Vec<Violation>,
    /// The number of violated constraints, also beyond the limit.
    pub violated: usize,
    /// The entries of buses that do not cancel, up to the limit of the options.
    pub unbalanced: Vec<Unbalanced>,
    /// Findings that are allowed, but probably not meant.
    pub notices: Vec<Notice>,
    /// With [`CheckOptions::unique`]: the verdicts on the values of instances.
    pub unique: Vec<InstanceVerdicts>,
}

/// Runs all subcircuits on an input without proving and without keys. `progress` receives the
/// number of instances checked so far and the total.
///
/// # Errors
/// Fails if the circuit itself fails, setup would refuse it, or it has constraints that depend on values. Unsatisfied constraints and
/// unbalanced buses are not errors: the report lists them.
pub fn check<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    mut progress: impl FnMut(usize, usize),
) -> Result<CheckReport, CheckError> {
    let circuit = PreparedCircuit::with_input(circuit, input)?;
    check_with(&circuit, &CheckOptions::new(), &mut progress)
}

/// [`check`] with options, of a circuit that was prepared with its input.
///
/// # Errors
/// As for [`check`].
pub fn check_with(
    circuit: &PreparedCircuit<'_>,
    options: &CheckOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<CheckReport, CheckError> {
    let layout = circuit.layout();
    // With masks, as in zero-knowledge keys, so that constraints have the indices that provers
    // report (spec: memory-check#rows).
    let wiring = layout.wiring(Masking::Masked);
    // First without a witness, as setup does: an error there is one for every input.
    let types: Vec<R1cs> = checked_types(circuit, &wiring)
        .map(|r1cs| r1cs.map(|(_, r1cs)| r1cs))
        .collect::<Result<_, _>>()?;
    // A second layout, which must be the same, and which has the parts that instances were added with.
    let again = made_again(circuit)?;
    let circuit = again.as_ref().map_or(circuit, |again| again);
    let execution = circuit.execute()?;
    let mut report = CheckReport {
        public_values: execution.public(layout),
        notices: notices(layout, &types, circuit.stored().is_some()),
        ..CheckReport::default()
    };
    let mut asked = BTreeSet::new();
    let mut balance = Balance::default();
    for (instance, (kind, slots)) in layout.instance_ids().zip(wiring.by_instance()) {
        let r1cs = &types[kind as usize];
        let checked = Instance::new(circuit, &execution, instance, slots, r1cs)?;
        checked.compare(r1cs)?;
        checked.compare_marked(&execution)?;
        // All violations are counted, but only the first are described: one wrong gadget can fail millions
        // of constraints.
        let room = options.violations - report.violations.len();
        let found = violations(layout, instance, r1cs, checked.assignment(), room);
        report.violated += found.violated;
        report.violations.extend(checked.with_labels(found.list)?);
        balance.add(instance.index(), checked.entries());
        // Verdicts are about witnesses.
        if options.unique && found.violated == 0 && (asked.insert(kind) || options.every) {
            report.unique.push(verdicts(&checked, options.committed_given)?);
        }
        report.instances += 1;
        report.constraints += r1cs.constraints();
        progress(report.instances, layout.instances());
    }
    report.unbalanced = balance.unbalanced(layout);
    report.unbalanced.truncate(options.violations);
    Ok(report)
}

/// The circuit with its layout made again, which must be the same; `None` if its constraints are stored, so that no code
/// of an author makes it.
fn made_again<'a>(
    circuit: &'a PreparedCircuit<'_>,
) -> Result<Option<PreparedCircuit<'a>>, CheckError> {
    if circuit.stored().is_some() {
        return Ok(None);
    }
    let again = circuit.again()?;
    match difference(circuit.layout(), again.layout()) {
        Some(difference) => Err(CheckError::LayoutDiffers { difference }),
        None => Ok(Some(again)),
    }
}

/// The R1CS of all types, if setup would accept them.
fn checked_types<'a>(
    circuit: &'a PreparedCircuit<'_>,
    wiring: &'a Wiring,
) -> impl Iterator<Item = Result<(TypeId, R1cs), CheckError>> + 'a {
    circuit.layout().type_ids().enumerate().map(|(index, kind)| {
        let r1cs = circuit.r1cs(kind, wiring.masking).map_err(CheckError::Type)?;
        wiring.check_type(index, &r1cs)?;
        Ok((kind, r1cs))
    })
}

/// The size of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeSize {
    /// The name of the type.
    pub name: String,
    /// The number of slots, without masks.
    pub slots: usize,
    /// The number of instances.
    pub instances: usize,
    /// The number of constraints, those of the memory check included, without masks.
    pub constraints: usize,
    /// The number of constraints with the two masks of zero-knowledge keys.
    pub with_masks: usize,
    /// The size of the evaluation domain of zero-knowledge keys, on which memory and time depend.
    pub domain: usize,
}

impl TypeSize {
    /// The part of the domain that zero-knowledge keys fill, at most 1.
    pub fn filled(&self) -> f64 {
        self.with_masks as f64 / self.domain as f64
    }
}

/// Returns the size of each type, in the order of the layout, without input and without keys. It fails
/// wherever setup would.
///
/// # Errors
/// If the layout is invalid or synthesis fails.
pub fn count<C: Circuit>(circuit: &C) -> Result<Vec<TypeSize>, CheckError> {
    count_prepared(&PreparedCircuit::new(circuit)?)
}

/// [`count`] of a prepared circuit.
///
/// # Errors
/// If synthesis fails.
pub fn count_prepared(circuit: &PreparedCircuit<'_>) -> Result<Vec<TypeSize>, CheckError> {
    let layout = circuit.layout();
    let mut instances = vec![0; layout.types()];
    layout.instance_ids().for_each(|id| instances[layout.type_index(id)] += 1);
    let wiring = layout.wiring_without_slots(Masking::Unmasked);
    let size = |(checked, instances): (Result<(TypeId, R1cs), CheckError>, usize)| {
        let (kind, r1cs) = checked?;
        let constraints = r1cs.constraints();
        let with_masks = constraints + Masking::Masked.slots();
        let domain = hekaton_arith::Domain::size_for(with_masks);
        let (name, slots) = (r1cs.name, layout.slots(kind));
        Ok(TypeSize { name, slots, instances, constraints, with_masks, domain })
    };
    checked_types(circuit, &wiring).zip(instances).map(size).collect()
}
