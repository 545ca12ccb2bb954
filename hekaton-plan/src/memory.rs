//! The sizes of types and keys, and the memory that a run requires.
//!
//! Measured (`cargo run --release -p benches --bin prover`): in addition to its key, a prover takes
//! 160 to 170 bytes per element of its type's domain and a constant of up to 9 MB, with the
//! buckets of full-size values at 2^11 to 2^13 constraints. A key keeps 72
//! bytes per element of its domain for the Fourier transforms. Key sections are memory-mapped and
//! count while they are resident.

use hekaton_arith::{Domain, G1Point, G2Point};
use hekaton_circuit::R1cs;
use hekaton_core::ProverKeys;
use hekaton_core::keys::KeyFileError;
use hekaton_core::mirage::{Elements, ProvingKey};

/// Private bytes of a prover per element of the domain, for types with at most as many variables.
const PROVER: u64 = 172;
/// With more variables: per variable, its value and its encoding in the job; in addition per element of
/// the domain while h is computed, or per variable in the multi-scalar multiplication over these.
/// Measured on imported circuits with up to 400 wires per constraint.
const VARIABLE: u64 = 65;
const ROW: u64 = PROVER - VARIABLE;
const PRODUCT: u64 = 60;
/// Private bytes of a prover that do not depend on the domain.
const PROVER_FIXED: u64 = 9 << 20;
/// Bytes of the Fourier transform's tables per element of the domain: 72 in lanes, 64 otherwise.
const TABLES: u64 = 72;
/// Bytes of the section `shape` of a proving key: four numbers.
const SHAPE: u64 = 32;
/// Bytes per entry and per row of the matrices while keys are compared with their circuit's code.
const MATCH_ENTRY: u64 = 24;
const MATCH_ROW: u64 = 300;
/// Bytes of the program, stacks and allocator.
const PROCESS: u64 = 24 << 20;
/// Bytes of MPI on a rank: its libraries, and the buffers that it shares with other ranks of its node.
const MPI: u64 = 16 << 20;
/// Bytes of a run of the machine, and in addition per element of the largest domain: the program, its
/// run and its tables. Measured with 2^13, 2^15 and 2^17 rows; runs of the same program differ by a fifth.
const MACHINE: u64 = 10 << 20;
const MACHINE_ROW: u64 = 1_000;
/// Bytes that the allocator of static programs keeps after they were freed.
const ALLOCATOR: u64 = if cfg!(target_env = "musl") { 32 << 20 } else { 0 };
/// Bytes per slot of each subcircuit: value, address, multiplicity, and the entries of the layout.
const SLOT: u64 = 160;
/// The same for imported circuits, which also keep a wire, its role and a public name for each slot.
const IMPORTED_SLOT: u64 = 512;
/// Bytes per variable of each subcircuit of an imported circuit: its encoded value, which is kept between
/// the rounds.
const IMPORTED_VARIABLE: u64 = 33;
/// Bytes per subcircuit: answers, and the aggregation's vectors with their folds.
const INSTANCE: u64 = 4096;

/// The sizes of a subcircuit type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeSize {
    /// The name of the type.
    pub name: String,
    /// Constraints per subcircuit, those of the memory check included.
    pub constraints: u64,
    /// Variables per subcircuit.
    pub variables: u64,
    /// The size of the domain: the number of constraints rounded up to 2^k or 3 * 2^k.
    pub domain: u64,
    /// Slots per subcircuit, mask slots included.
    pub slots: u64,
    /// The number of instances.
    pub instances: u64,
    /// The size of the proving key, in bytes.
    pub key_bytes: u64,
    /// The largest part of the key that a prover reads at a time, in bytes.
    pub largest_part: u64,
    /// The number of entries of the three matrices.
    pub entries: u64,
    /// Bytes that a run keeps for each subcircuit from one round to the next.
    pub kept_bytes: u64,
}

/// The numbers of variables for which a key has points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// A subcircuit's own variables, which it shares with no other.
    pub own: u64,
    /// Variables in A.
    pub a: u64,
    /// Variables in B.
    pub b: u64,
    /// Variables in C that are not own ones.
    pub c: u64,
    /// Different coefficients.
    pub coefficients: u64,
}

impl Columns {
    /// Counts those of a type.
    pub(crate) fn of(r1cs: &R1cs) -> Self {
        let used = |m: usize, end: usize| {
            let mut used = vec![false; r1cs.variables];
            r1cs.matrices.sides[m].entries.iter().for_each(|[v, _]| used[*v as usize] = true);
            used[..end].iter().filter(|u| **u).count() as u64
        };
        let (all, own) = (r1cs.variables, r1cs.layout.auxiliary(r1cs.variables));
        Self {
            own: own.len() as u64,
            a: used(0, all),
            b: used(1, all),
            c: used(2, own.start),
            coefficients: r1cs.matrices.coefficients.len() as u64,
        }
    }
}

impl TypeSize {
    /// Reads the sizes from a key.
    pub(crate) fn of_key(key: &ProvingKey, instances: u64) -> Self {
        Self {
            name: key.name().to_owned(),
            constraints: key.constraints() as u64,
            variables: key.variables() as u64,
            domain: key.domain().size() as u64,
            slots: key.slots() as u64,
            instances,
            key_bytes: key.bytes(),
            largest_part: key.largest_part(),
            entries: key.entries(),
            kept_bytes: SLOT * key.slots() as u64,
        }
    }

    /// Counts the sizes of the key that setup would write from the constraints.
    pub(crate) fn of_r1cs(r1cs: &R1cs, instances: u64) -> Self {
        let (layout, variables) = (&r1cs.layout, r1cs.variables as u64);
        let slots = layout.slots() as u64;
        let constraints = r1cs.constraints() as u64;
        let domain = Domain::size_for(r1cs.constraints()) as u64;
        let entries: u64 = r1cs.matrices.sides.iter().map(|m| m.entries.len() as u64).sum();
        Self {
            name: r1cs.name.clone(),
            constraints,
            variables,
            domain,
            slots,
            instances,
            key_bytes: 0,
            largest_part: 0,
            entries,
            kept_bytes: SLOT * slots,
        }
        .with_key(Columns::of(r1cs))
    }

    /// The sizes of a type of an imported circuit.
    #[must_use]
    pub fn imported(self) -> Self {
        let kept_bytes = IMPORTED_SLOT * self.slots + IMPORTED_VARIABLE * self.variables;
        Self { kept_bytes, ..self }
    }

    /// With the sizes of the key that setup would write.
    pub(crate) fn with_key(self, columns: Columns) -> Self {
        let Columns { own, a, b, c, coefficients } = columns;
        // The sizes in a key file: two coordinates of 48 bytes per point of G1, four per point of
        // G2, and indices of 4 bytes (spec: mirage#queries).
        const G1: u64 = size_of::<G1Point>() as u64;
        const G2: u64 = size_of::<G2Point>() as u64;
        const INDEX: u64 = size_of::<u32>() as u64;
        let single = size_of::<Elements>() as u64 + SHAPE;
        // The groups of sections that a prover uses at once, as in `ProvingKey`.
        let parts = [
            8 * self.entries + 3 * 4 * (self.constraints + 1) + 32 * coefficients,
            G1 * self.domain,
            G1 * own,
            (G1 + INDEX) * a,
            (G2 + INDEX) * b,
            (G1 + INDEX) * c + G1 * self.slots + single,
        ];
        let key_bytes = parts.iter().sum();
        // A prover with `release` holds one part at a time.
        let largest_part = parts.into_iter().fold(0, u64::max);
        Self { key_bytes, largest_part, ..self }
    }

    /// The private memory of a prover of this type, in bytes.
    pub fn prover_bytes(&self) -> u64 {
        prover_bytes_of(self.domain, self.variables)
    }

    /// The private memory that comparing this type's key with its circuit's code takes, in bytes.
    pub fn match_bytes(&self) -> u64 {
        MATCH_ENTRY * self.entries + MATCH_ROW * self.constraints
    }
}

/// The private memory of a prover of subcircuits with this number of rows and variables, in bytes.
pub fn prover_bytes(rows: u64, variables: u64) -> u64 {
    // More rows than a domain can have need more memory than any machine has.
    let domain = usize::try_from(rows).map_or(u64::MAX, |rows| Domain::size_for(rows) as u64);
    prover_bytes_of(domain, variables)
}

fn prover_bytes_of(domain: u64, variables: u64) -> u64 {
    // The values of h and the scalars of the multiplications are not in memory at the same time. Saturating,
    // since callers ask about sizes that do not fit, to refuse them.
    let at_once = ROW.saturating_mul(domain).max(PRODUCT.saturating_mul(variables));
    let most = VARIABLE.saturating_mul(variables).saturating_add(at_once);
    PROVER.saturating_mul(domain).max(most).saturating_add(PROVER_FIXED)
}

/// Returns the sizes of all types of a set of keys.
///
/// # Errors
/// If the aggregation key is damaged.
pub fn type_sizes(keys: &ProverKeys) -> Result<Vec<TypeSize>, KeyFileError> {
    let type_of = keys.aggregation.type_of()?;
    let instances = |kind: usize| type_of.iter().filter(|k| **k as usize == kind).count() as u64;
    Ok(keys
        .types
        .iter()
        .enumerate()
        .map(|(kind, key)| TypeSize::of_key(key, instances(kind)))
        .collect())
}

/// The settings with which a run stays within a memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The number of subcircuits that are proven at once.
    pub provers: usize,
    /// `true` if parts of keys are dropped from memory after use. They are read again for the next
    /// subcircuit, from the page cache if there is room for it.
    pub release: bool,
    /// The maximum resident memory of the run, in bytes.
    pub peak: u64,
}

/// A memory limit that is too small for one prover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a memory limit of {limit} bytes is too small: the smallest workable limit for these keys is \
     {smallest} bytes"
)]
pub struct NotEnoughMemory {
    /// The given limit.
    pub limit: u64,
    /// The smallest limit that works.
    pub smallest: u64,
}

/// The parts of a process that take memory in addition to its keys and provers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessParts {
    /// `true` on a rank, where MPI has buffers.
    pub mpi: bool,
    /// `true` if the process runs a program of the machine.
    pub machine: bool,
}

impl ProcessParts {
    fn bytes(self, types: &[TypeSize]) -> u64 {
        let domain = types.iter().map(|t| t.domain).fold(0, u64::max);
        let machine = MACHINE.saturating_add(MACHINE_ROW.saturating_mul(domain));
        PROCESS + ALLOCATOR + u64::from(self.mpi) * MPI + u64::from(self.machine) * machine
    }
}

impl MemoryPlan {
    /// Plans up to `threads` provers, within `limit` bytes of resident memory if there is a limit.
    ///
    /// # Errors
    /// If a single prover needs more than the limit.
    pub fn new(
        types: &[TypeSize],
        threads: usize,
        process: ProcessParts,
        limit: Option<u64>,
    ) -> Result<Self, NotEnoughMemory> {
        let most = threads.max(1);
        let peak = |provers, release| {
            process.bytes(types).saturating_add(keys_and_provers(types, provers, release))
        };
        let plan = |provers, release| Self { provers, release, peak: peak(provers, release) };
        let Some(limit) = limit else { return Ok(plan(most, false)) };
        // Reading keys again costs less than one prover less does, so dropping is tried first.
        let plans =
            (1..=most).rev().flat_map(|provers| [plan(provers, false), plan(provers, true)]);
        let fits = |plan: &Self| plan.peak <= limit;
        let smallest = peak(1, true);
        plans.into_iter().find(fits).ok_or(NotEnoughMemory { limit, smallest })
    }
}

/// The resident memory of keys, provers and what is kept for subcircuits at its peak, in bytes.
fn keys_and_provers(types: &[TypeSize], most_provers: usize, release: bool) -> u64 {
    let sum = |f: &dyn Fn(&TypeSize) -> u64| types.iter().map(f).fold(0, u64::saturating_add);
    let most = |f: &dyn Fn(&TypeSize) -> u64| types.iter().map(f).fold(0, u64::max);
    // Largest subcircuits come first, so at some time all provers work on the largest type.
    let provers = (most_provers as u64).min(sum(&|t| t.instances).max(1));
    let keys = if release { provers * most(&|t| t.largest_part) } else { sum(&|t| t.key_bytes) };
    keys
        // The tables stay for the whole run, since all provers of a type share them.
        .saturating_add(sum(&|t| TABLES * t.domain))
        // Keys are compared with the code before anything is proven.
        .saturating_add(provers * most(&|t| t.prover_bytes().max(t.match_bytes())))
        .saturating_add(sum(&|t| t.instances * (INSTANCE + t.kept_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_core::{LocalEngine, SetupOptions, setup};
    use hekaton_testing::Squares;

    /// The sizes counted from the constraints are those that setup writes.
    #[test]
    fn key_sizes_are_exact() {
        use hekaton_circuit::{Masking, PreparedCircuit};
        let engine = LocalEngine::new(None).unwrap();
        for zero_knowledge in [true, false] {
            let circuit = Squares::new(&[0, 1, 1, 0, 1]);
            let keys = setup(
                &circuit,
                &engine,
                &SetupOptions::new("squares").zero_knowledge(zero_knowledge),
            )
            .unwrap();
            let circuit = PreparedCircuit::new(&circuit).unwrap();
            for (kind, size) in circuit.layout().type_ids().zip(type_sizes(&keys).unwrap()) {
                let r1cs = circuit.r1cs(kind, Masking::new(zero_knowledge)).unwrap();
                assert_eq!(TypeSize::of_r1cs(&r1cs, size.instances), size);
            }
        }
    }

    /// Wires count where they are more than rows.
    #[test]
    fn provers_have_memory_for_their_variables() {
        let domain = 1 << 10;
        let at = |variables: u64| prover_bytes(domain, variables) - PROVER_FIXED;
        assert_eq!((at(1), at(domain)), (PROVER * domain, PROVER * domain));
        assert!(at(2 * domain) > at(domain));
        assert_eq!(at(200 * domain), 125 * 200 * domain);
    }

    /// A process on one machine, without programs.
    const CORES: ProcessParts = ProcessParts { mpi: false, machine: false };

    fn size(name: &str, domain: u64, instances: u64) -> TypeSize {
        TypeSize {
            name: name.into(),
            constraints: domain,
            variables: domain,
            domain,
            slots: 4,
            instances,
            entries: 2 * domain,
            key_bytes: 450 * domain,
            largest_part: 100 * domain,
            kept_bytes: SLOT * 4,
        }
    }

    /// MPI and the machine count where they are.
    #[test]
    fn parts_of_processes_count() {
        let types = [size("large", 1 << 15, 2), size("small", 1 << 12, 5)];
        let peak = |process| MemoryPlan::new(&types, 2, process, None).unwrap().peak;
        let (rank, machine) =
            (ProcessParts { mpi: true, ..CORES }, ProcessParts { machine: true, ..CORES });
        assert_eq!(peak(rank) - peak(CORES), MPI);
        assert_eq!(peak(machine) - peak(CORES), MACHINE + (MACHINE_ROW << 15));
    }

    #[test]
    fn plans_keep_to_their_limit() {
        let types = [size("large", 1 << 20, 100), size("small", 1 << 12, 5)];
        let free = MemoryPlan::new(&types, 8, CORES, None).unwrap();
        assert_eq!((free.provers, free.release), (8, false));
        let (mut last, mut seen) = (free, Vec::new());
        let mut limit = free.peak;
        let smallest = loop {
            match MemoryPlan::new(&types, 8, CORES, Some(limit)) {
                Ok(plan) => {
                    assert!(plan.peak <= limit && plan.provers <= last.provers);
                    (last, limit) = (plan, plan.peak - 1);
                    seen.push((plan.provers, plan.release));
                }
                Err(e) => break e.smallest,
            }
        };
        assert_eq!((seen[0], *seen.last().unwrap()), ((8, false), (1, true)));
        assert_eq!(last.peak, smallest, "the smallest workable limit works");
        assert!(MemoryPlan::new(&types, 8, CORES, Some(smallest)).is_ok());
        // one instance needs one prover's memory
        let one = [size("large", 1 << 20, 1)];
        assert_eq!(
            MemoryPlan::new(&one, 8, CORES, None).unwrap().peak,
            MemoryPlan::new(&one, 1, CORES, None).unwrap().peak
        );
    }
}
