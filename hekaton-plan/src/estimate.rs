//! The requirements of a run, before its keys exist: sizes, memory and time.
//!
//! Sizes are counted from the constraints. Times come from a calibration of this machine's kernels,
//! from one witness per type (the cost of a multi-scalar multiplication depends on the numbers of values
//! that are 0, 1, short and long), and from a simulation of the queue from which provers take
//! subcircuits.

use crate::calibration::{Calibration, Units, long_scalars};
use crate::memory::{Columns, MemoryPlan, NotEnoughMemory, ProcessParts, TypeSize};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, MsmWork, Scalars};
use hekaton_circuit::prover::{Matrices, Wiring};
use hekaton_circuit::{
    CheckError, Execution, ExecutionError, Layout, Masking, MemoryChallenges, PreparedCircuit,
    R1cs, TypeId,
};
use hekaton_core::Proof;
use hekaton_core::system::Clock;

/// The cost of the aggregation per element of its padded vectors, in Miller loops of one pair.
/// Fitted, like `AGGREGATE_ONCE`, to n = 64 .. 512 with the portable kernels (`benches --bin
/// aggregation`).
const AGGREGATE_EACH: f64 = 17.0;
/// The fixed cost of the aggregation, in final exponentiations.
const AGGREGATE_ONCE: f64 = 250.0;
/// The cost of the products of single points per proof, in final exponentiations. Neither is done
/// in batches, so both scale alike between machines.
const SINGLE_PRODUCTS: f64 = 2.5;
/// The time to load a key (digest, page faults, check of the matrices) over that of the digest
/// alone.
const LOAD: f64 = 3.0;

/// The estimate for one type of subcircuits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TypeEstimate {
    /// Sizes of the type.
    pub size: TypeSize,
    /// The points of its key.
    pub columns: Columns,
    /// The work of the multi-scalar multiplication over a subcircuit's own values, as a share of that over as many full-size values.
    pub full_size: f64,
    /// Seconds per subcircuit that synthesis takes in both rounds. GPUs leave it to the cores.
    pub synthesis_seconds: f64,
    /// Seconds per subcircuit in the commit round.
    pub commit_seconds: f64,
    /// Seconds per subcircuit in the prove round, synthesis included.
    pub prove_seconds: f64,
    /// Seconds per subcircuit in both rounds together, from the lowest and from the highest times
    /// that were measured.
    pub interval: [f64; 2],
    /// The length of the first instance's private input in a job, in bytes.
    pub private_bytes: u64,
    /// Seconds to compare the type's keys with the circuit's code when a run starts.
    pub match_seconds: f64,
}

/// The estimate for a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Estimate {
    /// The estimate for each type, in the order of the layout.
    pub types: Vec<TypeEstimate>,
    /// The number of subcircuits.
    pub subcircuits: u64,
    /// The total number of constraints.
    pub constraints: u64,
    /// The size of all keys on disk, in bytes.
    pub key_bytes: u64,
    /// The size of the proof, in bytes.
    pub proof_bytes: u64,
    /// The number of provers and the memory.
    pub memory: MemoryPlan,
    /// The CPU time of the run, of all threads and ranks together, in seconds.
    pub cpu_seconds: f64,
    /// The part of this machine's processors that was free when it was measured, at most 1. Below
    /// 1, a run here takes longer than [`Self::seconds`], which is the time on idle processors.
    pub share: f64,
    /// Seconds per phase on processors without other work: loading keys (from the page cache), execution,
    /// commit round, prove round, aggregation.
    pub phases: [f64; 5],
}

impl Estimate {
    /// The total time in seconds, on processors without other work.
    pub fn seconds(&self) -> f64 {
        self.phases.iter().sum()
    }

    /// The total time in seconds if other work keeps this machine as busy as it was when it was
    /// measured.
    pub fn seconds_at_this_load(&self) -> f64 {
        self.seconds() / self.share
    }
}

/// The reason that a run cannot be estimated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// The circuit has no valid layout or cannot be synthesized.
    #[error(transparent)]
    Circuit(#[from] CheckError),
    /// The circuit cannot be executed.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The witness of a subcircuit cannot be synthesized.
    #[error("instance {instance}: {why}")]
    Witness {
        /// The instance.
        instance: usize,
        /// The reason it cannot be synthesized.
        why: String,
    },
    /// The memory limit is too small.
    #[error(transparent)]
    Memory(#[from] NotEnoughMemory),
}

/// The machines that will prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// The number of ranks that prove; 1 for a single process.
    pub ranks: usize,
    /// The number of threads per rank.
    pub threads: usize,
}

/// Estimates a run of a circuit that was prepared with an input; any input of the same size has about the
/// same cost. Assumes one prover per thread of each rank, or fewer to stay within `memory_limit` bytes per
/// rank, on machines like the one that was measured and with a network without delay.
///
/// # Errors
/// If the circuit cannot be executed or synthesized, or the limit is too small.
pub fn estimate(
    circuit: &PreparedCircuit<'_>,
    masking: Masking,
    calibration: &Calibration,
    workers: Workers,
    memory_limit: Option<u64>,
) -> Result<Estimate, EstimateError> {
    let layout = circuit.layout();
    let wiring = layout.wiring(masking);
    let start = Clock::start();
    let execution = circuit.execute_uncounted()?;
    let execute = start.elapsed().cpu_seconds;
    // Not part of the execution's time: in a run, the commit round counts.
    circuit.count(&execution)?;
    let sample = Sample { circuit, layout, wiring: &wiring, execution: &execution, calibration };
    let types: Vec<TypeEstimate> = (0..)
        .zip(layout.type_ids())
        .map(|(index, kind)| sample.estimate(index, kind))
        .collect::<Result<_, _>>()?;
    let sizes: Vec<TypeSize> = types.iter().map(|t| t.size.clone()).collect();
    let process = ProcessParts { mpi: workers.ranks > 1, machine: false };
    let memory = MemoryPlan::new(&sizes, workers.threads, process, memory_limit)?;
    let n = wiring.instances();
    let padded = n.next_power_of_two();
    let key_bytes = sizes.iter().map(|s| s.key_bytes).sum::<u64>() + aggregation_key_bytes(n);
    let times: Vec<TypeTimes<'_>> = (types.iter())
        .map(|t| TypeTimes { size: &t.size, commit: t.commit_seconds, prove: t.prove_seconds })
        .collect();
    let RunTimes { phases, cpu_seconds } =
        run_times(&times, &calibration.median, workers, memory.provers, key_bytes, execute);
    Ok(Estimate {
        cpu_seconds,
        share: calibration.share,
        subcircuits: n as u64,
        constraints: sizes.iter().map(|s| s.constraints * s.instances).sum(),
        key_bytes,
        proof_bytes: Proof::encoded_len(padded.trailing_zeros() as usize) as u64,
        memory,
        phases,
        types,
    })
}

/// A type, with the seconds that one of its subcircuits takes in both rounds.
pub(crate) struct TypeTimes<'a> {
    pub(crate) size: &'a TypeSize,
    pub(crate) commit: f64,
    pub(crate) prove: f64,
}

/// The time of a run: by phase, as [`Estimate::phases`] has them, and of all processors together.
pub(crate) struct RunTimes {
    pub(crate) phases: [f64; 5],
    pub(crate) cpu_seconds: f64,
}

/// The time of a run whose subcircuits take these times, with `provers` at once on each rank.
pub(crate) fn run_times(
    types: &[TypeTimes<'_>],
    units: &Units,
    workers: Workers,
    provers: usize,
    key_bytes: u64,
    execute: f64,
) -> RunTimes {
    // The engine hands out the largest subcircuits first, so that no rank starts a long one at the
    // end.
    let mut order: Vec<&TypeTimes<'_>> = types.iter().collect();
    order.sort_by_key(|t| std::cmp::Reverse(t.size.constraints));
    let count = |t: &TypeTimes<'_>| -> usize {
        t.size.instances.try_into().expect("instances are counted in memory")
    };
    let round = |seconds: &dyn Fn(&TypeTimes<'_>) -> f64| {
        let jobs = order.iter().flat_map(|t| std::iter::repeat_n(seconds(t), count(t)));
        queue(jobs, provers * workers.ranks)
    };
    // The aggregation's vectors are padded, and pads cost as much as other elements.
    let padded = types.iter().map(count).sum::<usize>().next_power_of_two();
    let threads = (workers.threads * workers.ranks) as f64;
    // The commitment to all D at the end of the commit round: one pair for each element.
    let miller_loops = padded as f64 / threads * units.miller;
    let phases = [
        key_bytes as f64 * units.hash * LOAD,
        execute,
        round(&|t| t.commit) + miller_loops,
        round(&|t| t.prove),
        AGGREGATE_EACH * miller_loops + AGGREGATE_ONCE * units.finish,
    ];
    let rounds: f64 = types.iter().map(|t| t.size.instances as f64 * (t.commit + t.prove)).sum();
    let aggregation = (1.0 + AGGREGATE_EACH) * padded as f64 * units.miller;
    let cpu_seconds = phases[0] + execute + rounds + aggregation + AGGREGATE_ONCE * units.finish;
    RunTimes { phases, cpu_seconds }
}

/// The size of the aggregation key: two powers per padded instance in each group, and two points
/// and the type of each instance. The few points per type are not counted.
pub(crate) fn aggregation_key_bytes(n: usize) -> u64 {
    let (g1, g2) = (size_of::<G1Point>(), size_of::<G2Point>());
    (2 * (g1 + g2) * n.next_power_of_two() + (2 * g1 + size_of::<u32>()) * n) as u64
}

/// One execution, which provides a witness per type.
struct Sample<'a> {
    circuit: &'a PreparedCircuit<'a>,
    layout: &'a Layout,
    wiring: &'a Wiring,
    execution: &'a Execution<'a>,
    calibration: &'a Calibration,
}

impl Sample<'_> {
    /// Estimates a type from its constraints and the witness of its first instance.
    fn estimate(&self, index: u32, kind: TypeId) -> Result<TypeEstimate, EstimateError> {
        let start = Clock::start();
        let r1cs = self.circuit.r1cs(kind, self.wiring.masking).map_err(CheckError::Type)?;
        // Comparing keys with the code synthesizes each type and hashes its rows.
        std::hint::black_box(r1cs.digest());
        let match_seconds = start.elapsed().cpu_seconds;
        let members = self.wiring.type_of.iter().filter(|k| **k == index).count() as u64;
        let counted = TypeSize::of_r1cs(&r1cs, members);
        // Only imported circuits describe their constraints, and a run keeps more for each of their wires.
        let mut instances = self.layout.instance_ids().zip(&self.wiring.type_of);
        let first = instances.find(|(_, kind)| **kind == index);
        let described = first
            .and_then(|(id, _)| self.circuit.describe(id, r1cs.layout.rows(), self.wiring.masking));
        let size = if described.is_some() { counted.imported() } else { counted };
        let columns = Columns::of(&r1cs);
        let Some(first) = self.wiring.type_of.iter().position(|k| *k == index) else {
            return Ok(TypeEstimate {
                size,
                columns,
                full_size: 0.0,
                synthesis_seconds: 0.0,
                commit_seconds: 0.0,
                prove_seconds: 0.0,
                interval: [0.0; 2],
                private_bytes: 0,
                match_seconds,
            });
        };
        // One instance stands for all of its type, because synthesis and witness have the same shape.
        let values = self.values(first);
        // Takes the faster of two runs, because the first one fills caches and page tables.
        let ((z, a), (_, b)) =
            (self.witness(first, &r1cs, &values)?, self.witness(first, &r1cs, &values)?);
        let rows = time_rows(&r1cs.matrices, &z);
        let committed = Scalars::new(&z[r1cs.layout.committed()]).work();
        let kernels = Kernels::of(&r1cs, &z, &size);
        // With buses, the commit round synthesizes each subcircuit, too, to find its marked values.
        let marked = if self.layout.has_buses() { a.min(b) } else { 0.0 };
        let commit = |units: &Units| marked + Units::msm(units.g1, committed) + 100.0 * units.g1[0];
        let prove = |units: &Units, witness: f64| witness + rows + kernels.seconds(units);
        let Calibration { low, median, high, .. } = self.calibration;
        let [own, ..] = kernels.g1;
        let full = MsmWork::of_long(r1cs.layout.auxiliary(z.len()).len());
        Ok(TypeEstimate {
            size,
            columns,
            full_size: if full.additions > 0.0 { own.additions / full.additions } else { 0.0 },
            synthesis_seconds: marked + a.min(b),
            private_bytes: self.private_bytes(first)?,
            commit_seconds: commit(median),
            prove_seconds: prove(median, a.min(b)),
            match_seconds,
            interval: [commit(low) + prove(low, a.min(b)), commit(high) + prove(high, a.max(b))],
        })
    }

    /// The values in the slots of an instance. Masks are full-size scalars, as in a run.
    fn values(&self, instance: usize) -> Vec<Fr> {
        let id = self.layout.instance_ids().nth(instance);
        let values = &self.execution.values;
        id.map_or_else(Vec::new, |id| match self.wiring.masking {
            Masking::Masked => {
                values.masked_slots(self.layout, id, |i| long_scalars(2)[1] + Fr::from(i))
            }
            Masking::Unmasked => values.slots(self.layout, id),
        })
    }

    /// The length of the private input of an instance in a job, in bytes.
    fn private_bytes(&self, instance: usize) -> Result<u64, EstimateError> {
        let Some(id) = self.layout.instance_ids().nth(instance) else { return Ok(0) };
        let private = self.execution.private_input(self.layout, id)?;
        let encoded = self.circuit.encode_private(&private);
        Ok(encoded.map_err(|why| EstimateError::Witness { instance, why })?.len() as u64)
    }

    /// The witness of an instance, and the time of its synthesis.
    fn witness(
        &self,
        instance: usize,
        r1cs: &R1cs,
        values: &[Fr],
    ) -> Result<(Vec<Fr>, f64), EstimateError> {
        let error =
            |why: &dyn std::fmt::Display| EstimateError::Witness { instance, why: why.to_string() };
        let id = self
            .layout
            .instance_ids()
            .nth(instance)
            .ok_or_else(|| error(&"the layout has no such instance"))?;
        // Any challenges that are not poles (zero denominators) cost the same, if they are full-size.
        let [g, b, b_t, b_v] = [0, 4, 8, 12].map(|i| Fr::from(u128::MAX - i).square());
        let memory = MemoryChallenges { g, b, b_t, b_v };
        let slots = &self.wiring.slots[self.wiring.starts()[instance]..][..values.len()];
        let kind = self.layout.type_of(id);
        let start = Clock::start();
        let private = self.execution.private_input(self.layout, id)?;
        let prefix = (self.circuit.prefix(id, slots, values, &memory))
            .map_err(|_| error(&"the challenges hit a pole"))?;
        let masking = self.wiring.masking;
        let z = self.circuit.witness(kind, masking, &prefix, &private, r1cs.variables);
        Ok((z.map_err(|e| error(&e))?, start.elapsed().cpu_seconds))
    }
}

/// Times the three sparse products, computed as a prover does.
fn time_rows(matrices: &Matrices, z: &[Fr]) -> f64 {
    let start = Clock::start();
    for matrix in matrices.all() {
        let sum = (0..matrix.rows()).fold(Fr::zero(), |sum, row| sum + matrix.row(row, z));
        std::hint::black_box(sum);
    }
    start.elapsed().cpu_seconds
}

/// The transforms and multi-scalar multiplications of one proof (spec: mirage#prove).
pub(crate) struct Kernels {
    pub(crate) g1: [MsmWork; 4],
    pub(crate) g2: MsmWork,
    butterflies: f64,
}

impl Kernels {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a type has at most 2^28 rows and variables"
    )]
    fn of(r1cs: &R1cs, z: &[Fr], size: &TypeSize) -> Self {
        let auxiliary = r1cs.layout.auxiliary(z.len());
        let used = |m: usize, end: usize| -> MsmWork {
            let mut used = vec![false; z.len()];
            r1cs.matrices.sides[m].entries.iter().for_each(|[v, _]| used[*v as usize] = true);
            let list: Vec<u32> = (0..end).filter(|j| used[*j]).map(|j| j as u32).collect();
            Scalars::select(z, &list).work()
        };
        let own = Scalars::new(&z[auxiliary.clone()]).work();
        Self::new(size, [own, used(0, z.len()), used(2, auxiliary.start)], used(1, z.len()))
    }

    /// The kernels for a type of this size, with multi-scalar multiplications over its own values and over the
    /// variables of A, C and B.
    pub(crate) fn new(size: &TypeSize, [own, a, c]: [MsmWork; 3], b: MsmWork) -> Self {
        let n = size.domain as f64;
        // Values on the coset are full-size.
        #[allow(clippy::cast_possible_truncation, reason = "a type has at most 2^28 rows")]
        let coset = MsmWork::of_long(size.domain as usize);
        // A layer of radix 3 has as many products per element as two layers of radix 2, so
        // 3 * 2^k elements take k + 2 layers each.
        Self { g1: [own, a, c, coset], g2: b, butterflies: 2.0 * n * n.log2().ceil() }
    }

    pub(crate) fn seconds(&self, units: &Units) -> f64 {
        let g1: f64 = self.g1.iter().map(|work| Units::msm(units.g1, *work)).sum();
        let g2 = Units::msm(units.g2, self.g2);
        self.butterflies * units.butterfly + g1 + g2 + SINGLE_PRODUCTS * units.finish
    }
}

/// The time at which the last job ends if `workers` workers take jobs in order.
fn queue(jobs: impl Iterator<Item = f64>, workers: usize) -> f64 {
    // Integers of nanoseconds have a total order, which the heap needs.
    let mut free: std::collections::BinaryHeap<_> =
        (0..workers.max(1)).map(|_| std::cmp::Reverse(0u64)).collect();
    let mut end = 0;
    for seconds in jobs {
        let std::cmp::Reverse(at) = free.pop().unwrap_or(std::cmp::Reverse(0));
        #[allow(clippy::cast_possible_truncation, reason = "nanoseconds; a fraction is dropped")]
        let done = at + (seconds * 1e9) as u64;
        end = end.max(done);
        free.push(std::cmp::Reverse(done));
    }
    end as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_core::{LocalEngine, SetupOptions, setup};
    use hekaton_testing::Squares;

    #[test]
    fn the_queue_is_the_engines() {
        let jobs = [5.0, 4.0, 3.0, 3.0, 3.0];
        assert!((queue(jobs.into_iter(), 1) - 18.0).abs() < 1e-6);
        assert!((queue(jobs.into_iter(), 2) - 10.0).abs() < 1e-6, "5 3 | 4 3 3");
        assert!((queue(jobs.into_iter(), 9) - 5.0).abs() < 1e-6);
        assert_eq!(queue(std::iter::empty(), 3), 0.0);
    }

    /// Counts must be exact; of times the test only demands that they exist, so no clock can fail
    /// it.
    #[test]
    fn counts_are_exact() {
        let (squares, engine) = (Squares::new(&[0, 1, 1, 0, 1]), LocalEngine::new(None).unwrap());
        let input = Fr::from(2u64);
        let circuit = PreparedCircuit::with_input(&squares, &input).unwrap();
        let calibration = Calibration::measure(&engine);
        let workers = Workers { ranks: 1, threads: 2 };
        let found = estimate(&circuit, Masking::Masked, &calibration, workers, None).unwrap();
        let keys = setup(&squares, &engine, &SetupOptions::new("squares")).unwrap();
        assert_eq!(
            found.key_bytes - (576 * 8 + 196 * 5),
            keys.types.iter().map(|t| t.bytes()).sum::<u64>()
        );
        assert_eq!((found.subcircuits, found.types.len()), (5, 2));
        let total: usize = squares.kinds.iter().map(|kind| keys.types[*kind].constraints()).sum();
        assert_eq!(found.constraints, total as u64);
        assert!(found.phases.iter().all(|t| t.is_finite() && *t >= 0.0) && found.seconds() > 0.0);
        assert!(found.types.iter().all(|t| t.prove_seconds > 0.0 && t.commit_seconds > 0.0));
        for t in &found.types {
            let (each, [low, high]) = (t.commit_seconds + t.prove_seconds, t.interval);
            assert!(0.0 < low && low <= each && each <= high, "{low} {each} {high}");
        }
        let more = estimate(
            &circuit,
            Masking::Masked,
            &calibration,
            Workers { ranks: 2, ..workers },
            None,
        )
        .unwrap();
        assert!(more.phases[4] < found.phases[4], "the aggregation is distributed");
        let small = estimate(&circuit, Masking::Masked, &calibration, workers, Some(1));
        assert!(matches!(small, Err(EstimateError::Memory(NotEnoughMemory { limit: 1, .. }))));
    }
}
