//! What a run will require, before its keys exist: sizes, memory and time.
//!
//! Sizes are counted from the constraints. Times come from a calibration of this machine's kernels,
//! from one witness per type (the cost of a multi-scalar multiplication depends on how many values
//! are 0, 1, short or long), and from a simulation of the queue from which provers take
//! subcircuits.

use crate::memory::{MemoryPlan, NotEnoughMemory, TypeSize};
use ark_ff::{Field, Zero};
use hekaton_arith::{Domain, Fr, G1Point, G2Point, Group, MillerLoop, MsmWork, Scalars};
use hekaton_circuit::prover::{Matrices, Wiring};
use hekaton_circuit::{
    CheckError, Execution, ExecutionError, Layout, Masking, MemoryChallenges, PreparedCircuit,
    R1cs, TypeId,
};
use hekaton_core::system::Clock;
use hekaton_core::{Pool, Proof};

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

/// Seconds per unit of each kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Units {
    /// An addition in G1: in the bucket method, and in a plain sum.
    g1: [f64; 2],
    /// The same in G2.
    g2: [f64; 2],
    /// A butterfly: `to_coset` of N values takes N log2 N of them.
    butterfly: f64,
    /// A pair in a product of Miller loops.
    miller: f64,
    /// A final exponentiation.
    finish: f64,
    /// One byte of a digest.
    hash: f64,
}

/// The speed of this machine's kernels, in seconds per unit on one thread while all threads work:
/// the median of three measurements, with the lowest and the highest.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    low: Units,
    median: Units,
    high: Units,
    /// The part of the processors that the measuring threads had.
    share: f64,
}

/// The CPU times of three calls of a function, in ascending order.
fn time<R>(mut f: impl FnMut() -> R) -> [f64; 3] {
    let mut times = [0.0; 3];
    for t in &mut times {
        let start = Clock::start();
        std::hint::black_box(f());
        *t = start.elapsed().cpu_seconds;
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Full-size scalars that are quick to generate.
pub(crate) fn long_scalars(n: usize) -> Vec<Fr> {
    let step = Fr::from(u64::MAX).square().square() + Fr::from(12345u64);
    let mut x = Fr::from(3u64);
    std::iter::repeat_with(|| {
        x = x * step + Fr::ONE;
        x
    })
    .take(n)
    .collect()
}

/// Distinct points that are quick to generate: each step doubles their number by adding a shift.
pub(crate) fn points<G: Group>(n: usize) -> Vec<G> {
    let step = G::generator().mul(&Fr::from(0x1234_5678_9abcu64));
    let mut out = vec![G::generator()];
    while out.len() < n {
        let shift = step.mul(&Fr::from(out.len() as u64));
        let mut more = out.clone();
        G::batch_add(&mut more, &vec![shift; out.len()]);
        out.extend(more);
    }
    out.truncate(n);
    out
}

/// Seconds per addition in the bucket method and in a plain sum, from vectors of 2^`log` points.
fn group<G: Group>(log: u32) -> [[f64; 3]; 2] {
    let n = 1 << log;
    let points = points::<G>(n);
    let long = Scalars::new(&long_scalars(n));
    let ones = Scalars::new(&vec![Fr::ONE; n]);
    let additions = long.work().additions;
    let bucket = time(|| G::msm_prepared(&points, &long)).map(|t| t / additions);
    let sum = time(|| G::msm_prepared(&points, &ones)).map(|t| t / n as f64);
    [bucket, sum]
}

impl Units {
    /// The means of several threads.
    fn mean<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let n = all.clone().count().max(1) as f64;
        let mean = |f: &dyn Fn(&Self) -> f64| all.clone().map(f).sum::<f64>() / n;
        Self {
            g1: [mean(&|u| u.g1[0]), mean(&|u| u.g1[1])],
            g2: [mean(&|u| u.g2[0]), mean(&|u| u.g2[1])],
            butterfly: mean(&|u| u.butterfly),
            miller: mean(&|u| u.miller),
            finish: mean(&|u| u.finish),
            hash: mean(&|u| u.hash),
        }
    }

    fn msm(unit: [f64; 2], work: MsmWork) -> f64 {
        unit[0] * work.additions + unit[1] * work.ones
    }
}

impl Calibration {
    /// Measures for about two seconds, on all threads at once: memory bandwidth and clock are then
    /// those of a run. Times are CPU times, so that other work on this machine does not change them.
    pub fn measure(pool: &impl Pool) -> Self {
        let all = pool.map(vec![(); pool.threads()], |()| {
            let clock = Clock::start();
            let found = Self::one_thread();
            let times = clock.elapsed();
            (found, (times.cpu_seconds / times.seconds).clamp(0.01, 1.0))
        });
        let units = |i: usize| Units::mean(all.iter().map(move |(found, _)| &found[i]));
        Self {
            low: units(0),
            median: units(1),
            high: units(2),
            share: all.iter().map(|(_, share)| share).sum::<f64>() / all.len().max(1) as f64,
        }
    }

    /// The lowest, median and highest times of three measurements.
    fn one_thread() -> [Units; 3] {
        let log = 15;
        let (mut values, n) = (long_scalars(1 << log), (1u64 << log) as f64);
        let butterfly = match Domain::new(1 << log) {
            Ok(domain) => time(|| domain.to_coset(&mut values)).map(|t| t / (n * f64::from(log))),
            Err(_) => [0.0; 3],
        };
        let (a, b) = (points::<G1Point>(64), points::<G2Point>(64));
        let miller = time(|| MillerLoop::new(&a, &b)).map(|t| t / 64.0);
        let product = MillerLoop::new(&a, &b);
        let finish = time(|| product.finish());
        let bytes = vec![1u8; 1 << 22];
        let hash = time(|| blake3::hash(&bytes)).map(|t| t / bytes.len() as f64);
        let (g1, g2) = (group::<G1Point>(14), group::<G2Point>(12));
        [0, 1, 2].map(|i| Units {
            g1: g1.map(|times| times[i]),
            g2: g2.map(|times| times[i]),
            butterfly: butterfly[i],
            miller: miller[i],
            finish: finish[i],
            hash: hash[i],
        })
    }
}

/// The estimate for one type of subcircuits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TypeEstimate {
    /// Sizes of the type.
    pub size: TypeSize,
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
    /// Seconds per phase on processors without other work: loading keys (from the page cache), execution, commit round, prove round,
    /// aggregation.
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

/// Why a run cannot be estimated.
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
        /// What went wrong.
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

/// Estimates a run of a circuit that was prepared with an input; any input of the same size will
/// do. Assumes one prover per thread of each rank, or fewer to stay within `memory_limit` bytes per
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
    circuit.count(&execution)?;
    let sample = Sample { circuit, layout, wiring: &wiring, execution: &execution, calibration };
    let types = (0..).zip(layout.type_ids()).map(|(index, kind)| sample.estimate(index, kind));
    let types = types.collect::<Result<Vec<_>, _>>()?;
    let sizes: Vec<TypeSize> = types.iter().map(|t| t.size.clone()).collect();
    let memory = MemoryPlan::new(&sizes, workers.threads, memory_limit)?;
    let n = wiring.instances();
    let padded = n.next_power_of_two();
    let key_bytes = sizes.iter().map(|s| s.key_bytes).sum::<u64>() + aggregation_key_bytes(n);
    // The engine hands out the largest subcircuits first, so that no rank starts a long one at the
    // end.
    let mut order: Vec<&TypeEstimate> =
        wiring.type_of.iter().map(|kind| &types[*kind as usize]).collect();
    order.sort_by_key(|t| std::cmp::Reverse(t.size.constraints));
    let provers = memory.provers * workers.ranks;
    let round =
        |seconds: &dyn Fn(&TypeEstimate) -> f64| queue(order.iter().map(|t| seconds(t)), provers);
    let threads = (workers.threads * workers.ranks) as f64;
    let units = &calibration.median;
    let miller_loops = padded as f64 / threads * units.miller;
    let phases = [
        key_bytes as f64 * units.hash * LOAD,
        execute,
        round(&|t| t.commit_seconds) + miller_loops,
        round(&|t| t.prove_seconds),
        AGGREGATE_EACH * miller_loops + AGGREGATE_ONCE * units.finish,
    ];
    let rounds: f64 = order.iter().map(|t| t.commit_seconds + t.prove_seconds).sum();
    let aggregation = (1.0 + AGGREGATE_EACH) * padded as f64 * units.miller;
    let cpu_seconds = phases[0] + execute + rounds + aggregation + AGGREGATE_ONCE * units.finish;
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
        std::hint::black_box(r1cs.digest());
        let match_seconds = start.elapsed().cpu_seconds;
        let members = self.wiring.type_of.iter().filter(|k| **k == index).count() as u64;
        let size = TypeSize::of_r1cs(&r1cs, members);
        let Some(first) = self.wiring.type_of.iter().position(|k| *k == index) else {
            return Ok(TypeEstimate {
                size,
                commit_seconds: 0.0,
                prove_seconds: 0.0,
                interval: [0.0; 2],
                private_bytes: 0,
                match_seconds,
            });
        };
        let values = self.values(first);
        // Takes the faster of two runs, because the first one fills caches and page tables.
        let ((z, a), (_, b)) =
            (self.witness(first, &r1cs, &values)?, self.witness(first, &r1cs, &values)?);
        let rows = time_rows(&r1cs.matrices, &z);
        let committed = Scalars::new(&z[r1cs.layout.committed()]).work();
        let kernels = Kernels::of(&r1cs, &z, &size);
        // Where subcircuits commit to more than their slots, they are synthesized in both rounds.
        let marked = if self.layout.has_buses() { a.min(b) } else { 0.0 };
        let commit = |units: &Units| marked + Units::msm(units.g1, committed) + 100.0 * units.g1[0];
        let prove = |units: &Units, witness: f64| witness + rows + kernels.seconds(units);
        let Calibration { low, median, high, .. } = self.calibration;
        Ok(TypeEstimate {
            size,
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
        let prefix = self.circuit.prefix(id, slots, values, &memory);
        let prefix = prefix.map_err(|_| error(&"the challenges hit a pole"))?;
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
struct Kernels {
    g1: [MsmWork; 4],
    g2: MsmWork,
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
        let n = size.domain as f64;
        Self {
            g1: [
                Scalars::new(&z[auxiliary.clone()]).work(),
                used(0, z.len()),
                used(2, auxiliary.start),
                // values on the coset are full-size
                MsmWork::of_long(size.domain as usize),
            ],
            g2: used(1, z.len()),
            // A layer of radix 3 has as many products per element as two layers of radix 2, so
            // 3 * 2^k elements take k + 2 layers each.
            butterflies: 2.0 * n * n.log2().ceil(),
        }
    }

    fn seconds(&self, units: &Units) -> f64 {
        let g1: f64 = self.g1.iter().map(|work| Units::msm(units.g1, *work)).sum();
        let g2 = Units::msm(units.g2, self.g2);
        self.butterflies * units.butterfly + g1 + g2 + SINGLE_PRODUCTS * units.finish
    }
}

/// The time at which the last job ends when `workers` workers take jobs in order.
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
