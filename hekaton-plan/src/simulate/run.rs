//! A whole run: all phases, memory, traffic and cost.

use super::cluster::Cluster;
use super::constants::{Constant as C, ConstantError, ConstantValue, Constants};
use super::design::Design;
use super::load::Load;
use super::noise::Noise;
use super::rounds::{Jobs, Round, commit_round, prove_round};
use super::times::Times;

/// The seed of the variance: equal inputs have equal predictions.
const SEED: u64 = 1;
/// The number of threads that compute the digests of keys, and the time to load a key over that of its digest,
/// as in the estimate of one machine.
const DIGEST_THREADS: f64 = 8.0;
const LOAD_OVER_DIGEST: f64 = 3.0;
/// The bandwidth of the one reader of a key tree, in nodes' bandwidths: it reads in parallel
/// streams.
const READER_NODES: f64 = 4.0;
/// Bytes of messages, frames included: of a job in the commit round per slot, and apart from its slots; of a
/// job for a rank that has the values; and of an answer in both rounds together.
const JOB_SLOT_BYTES: f64 = 40.0;
const JOB_BYTES: f64 = 24.0;
const OWN_JOB_BYTES: f64 = 100.0;
const ANSWER_BYTES: f64 = 361.0 + 500.0;
/// The smallest part of a subcircuit's time that remains for the prove round, if the measured constants of a
/// commitment exceed its time.
const LEAST_PROVE: f64 = 0.1;
/// Products of Miller loops per rank and phase of the aggregation.
const PRODUCTS: f64 = 6.0;
/// The part of the cores' time that the aggregation uses.
const AGGREGATION_EFFICIENCY: f64 = 0.93;
/// The share of an aggregated proof's cost that folding costs.
const FOLD_SHARE: f64 = 0.75;
/// Phases of the aggregation that wait for all ranks, in addition to the GIPA rounds.
const SYNCHRONOUS_PHASES: f64 = 6.0;
/// The time of an aggregation's other phases and of the check of its result, whatever its size, in
/// GIPA rounds of short vectors.
pub(super) const OTHER_ROUNDS: f64 = 3.0;
/// Resident bytes: of a process; per subcircuit; per wire of a subcircuit on rank 0 and on other ranks, and of
/// its value on a rank that executed it; of a key's tables per element of the domain; of a prover per element,
/// and apart from the elements. docs/guide/cluster.md has the same numbers.
const PROCESS_BYTES: f64 = 42e6;
const SUBCIRCUIT_BYTES: f64 = 4e3;
const ROOT_WIRE_BYTES: f64 = 160.0;
const WIRE_BYTES: f64 = 16.0;
const VALUE_BYTES: f64 = 40.0;
const TABLE_BYTES: f64 = 72.0;
const PROVER_BYTES: f64 = 172.0;
const PROVER_FIXED_BYTES: f64 = 9e6;

/// Bytes of an access in the digest of the layout.
const ACCESS_BYTES: f64 = 16.0;

/// Seconds per phase.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PhaseSeconds {
    /// Reading keys and checking their digests.
    pub load_keys: f64,
    /// The layout with its digest, on each rank.
    pub layout: f64,
    /// Comparing the keys with the circuit's code, and execution of the circuit.
    pub execute: f64,
    /// The commit round.
    pub commit: f64,
    /// The prove round.
    pub prove: f64,
    /// The aggregation.
    pub aggregate: f64,
}

impl PhaseSeconds {
    /// All phases in their order, with their names.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("load_keys", self.load_keys),
            ("layout", self.layout),
            ("execute", self.execute),
            ("commit", self.commit),
            ("prove", self.prove),
            ("aggregate", self.aggregate),
        ]
    }

    /// The sum of all phases, in seconds.
    pub fn total(&self) -> f64 {
        self.named().iter().map(|(_, seconds)| seconds).sum()
    }
}

/// A predicted run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The name of the design.
    pub design: &'static str,
    /// The number of cores.
    pub cores: u64,
    /// The number of ranks.
    pub ranks: u64,
    /// The number of subcircuits.
    pub subcircuits: u64,
    /// Time per phase.
    pub phases: PhaseSeconds,
    /// The time of the subcircuits on idle cores, divided by the number of cores, in seconds.
    pub ideal_seconds: f64,
    /// The share of the commit round and of the prove round in which the busiest coordinator makes
    /// jobs or takes answers.
    pub coordinator_busy: [f64; 2],
    /// Constraints per second and core.
    pub constraints_per_core_second: f64,
    /// The memory of rank 0, in bytes.
    pub rank_0_bytes: f64,
    /// The memory of any other rank, in bytes.
    pub rank_bytes: f64,
    /// Bytes over the network in both rounds.
    pub network_bytes: f64,
    /// The total time with the failures that are to be expected, in seconds.
    pub expected_seconds: f64,
    /// The cost, in US dollars.
    pub cost: f64,
    /// The constants that were used, with their sources.
    pub constants: Vec<(C, ConstantValue)>,
}

impl Prediction {
    /// The total time in seconds.
    pub fn seconds(&self) -> f64 {
        self.phases.total()
    }

    /// The ideal time over the time of all phases.
    pub fn efficiency(&self) -> f64 {
        self.ideal_seconds / self.seconds()
    }

    /// The ideal time over the time of both rounds and the aggregation.
    pub fn efficiency_of_rounds(&self) -> f64 {
        let PhaseSeconds { commit, prove, aggregate, .. } = self.phases;
        self.ideal_seconds / (commit + prove + aggregate)
    }

    /// The phase with the highest cost. Of the prove round, only the time beyond the ideal counts.
    pub fn bottleneck(&self) -> &'static str {
        let waste = |(name, seconds): (&'static str, f64)| {
            (name, if name == "prove" { seconds - self.ideal_seconds } else { seconds })
        };
        let phases = self.phases.named().map(waste);
        phases.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("prove", |(name, _)| name)
    }
}

/// Predicts a run by simulating its events.
///
/// # Errors
/// If a constant that the design needs is unknown; the error names it.
pub fn predict(
    load: &Load,
    cluster: &Cluster,
    design: &Design,
    constants: &Constants,
) -> Result<Prediction, ConstantError> {
    let times = Times::new(constants, design)?;
    let run = Run::new(load, cluster, design, &times);
    let (rounds, speeds) = run.rounds();
    let phases = PhaseSeconds {
        load_keys: run.load_keys(),
        layout: run.layout(),
        execute: run.execute(),
        commit: rounds.commit,
        prove: rounds.prove,
        aggregate: run.aggregate(speeds),
    };
    let total = phases.total();
    let ideal_seconds = run.n * load.alone_seconds / cluster.cores as f64;
    let [rank_0_bytes, rank_bytes] = run.memory();
    let failures = cluster.nodes() as f64 / cluster.node_mtbf * total;
    // A failure costs a restart, and on average half of each subcircuit in progress; finished ones are in
    // the log.
    let lost = cluster.requeue + phases.load_keys + 0.5 * run.prove;
    Ok(Prediction {
        design: design.name,
        cores: cluster.cores,
        ranks: cluster.ranks(),
        subcircuits: load.subcircuits,
        phases,
        ideal_seconds,
        coordinator_busy: [
            // A round of no length has no share, and not one that is not a number.
            rounds.commit_busy / phases.commit.max(1e-9),
            rounds.prove_busy / phases.prove.max(1e-9),
        ],
        constraints_per_core_second: load.constraints / total / cluster.cores as f64,
        rank_0_bytes,
        rank_bytes,
        network_bytes: run.n * (run.first_job_bytes + ANSWER_BYTES),
        expected_seconds: total + failures * lost,
        cost: total * cluster.cores as f64 / 3600.0 * cluster.price,
        constants: times.into_used(),
    })
}

/// The quantities that follow directly from the inputs.
struct Run<'a> {
    load: &'a Load,
    cluster: &'a Cluster,
    design: &'a Design,
    times: &'a Times,
    /// The number of subcircuits.
    n: f64,
    /// Seconds to commit to a subcircuit, and to prove it on a busy node.
    commit: f64,
    prove: f64,
    /// Bytes of a job with all values, and of a job of the commit round.
    job_bytes: f64,
    first_job_bytes: f64,
}

/// The times of both rounds, and of the coordinator's work in them.
struct Rounds {
    commit: f64,
    prove: f64,
    commit_busy: f64,
    prove_busy: f64,
}

impl<'a> Run<'a> {
    fn new(load: &'a Load, cluster: &'a Cluster, design: &'a Design, times: &'a Times) -> Self {
        let alone = load.alone_seconds;
        let job_bytes = JOB_SLOT_BYTES * load.slots() + load.private_bytes + JOB_BYTES;
        let commit = times.of(C::CommitFixed) + times.of(C::CommitWire) * load.wires;
        Self {
            load,
            cluster,
            design,
            times,
            n: load.subcircuits as f64,
            commit,
            prove: (alone - commit).max(LEAST_PROVE * alone) / times.of(C::FullNodeRate),
            job_bytes,
            first_job_bytes: if design.sliced_execute { OWN_JOB_BYTES } else { job_bytes },
        }
    }

    fn load_keys(&self) -> f64 {
        let (cluster, keys) = (self.cluster, self.load.key_bytes);
        let nodes = cluster.nodes() as f64;
        // Without a tree every node reads all keys, as fast as its own link and the shared file system allow.
        let read = if self.design.key_tree {
            let reader = (cluster.file_system_per_node * READER_NODES).min(cluster.file_system);
            let levels = (nodes + 1.0).log2();
            // Read and sent at once, so the slower of the two counts.
            keys / reader.min(cluster.bandwidth) + levels * cluster.key_tree_step
        } else {
            (keys / cluster.file_system_per_node).max(nodes * keys / cluster.file_system)
        };
        read + LOAD_OVER_DIGEST * keys * self.times.of(C::HashByte) / DIGEST_THREADS
    }

    /// The layout with its digest, on each rank: all threads encode it, and one hashes.
    fn layout(&self) -> f64 {
        let threads = self.cluster.provers_per_rank as f64;
        // Pieces are encoded in parallel, but the digest takes them in order.
        let hash = ACCESS_BYTES * self.times.of(C::HashByte);
        let encode = (self.times.of(C::DigestOccurrence) - hash).max(0.0) / threads;
        self.n * self.load.slots() * (self.times.of(C::LayoutOccurrence) + hash + encode)
    }

    /// Comparing keys and code, and execution.
    fn execute(&self) -> f64 {
        let [all_types, largest] = self.load.match_seconds;
        let threads = self.cluster.provers_per_rank as f64;
        let matching = largest.max(all_types / threads);
        let wires = self.load.wires * self.times.of(C::ExecuteOccurrence);
        let all = self.n * (self.load.execute_seconds + wires);
        if !self.design.sliced_execute {
            return matching + all;
        }
        let ranks = self.cluster.ranks() as f64;
        let summaries =
            self.n * self.load.slots() * self.times.of(C::SummarizeOccurrence) / (ranks * threads);
        matching + all / ranks + summaries + self.n * self.times.of(C::SliceSubcircuit)
    }

    /// Simulates both rounds. Also returns the time of the slowest rank relative to one of normal
    /// speed.
    #[allow(clippy::cast_possible_truncation, reason = "subcircuits are counted in memory")]
    fn rounds(&self) -> (Rounds, f64) {
        let Self { load, cluster, design, times, .. } = *self;
        let mut noise = Noise::new(SEED);
        let speeds = noise.ranks(cluster);
        let services = times.services(design, cluster, load, speeds.len() as f64);
        let hops = if design.fanout.is_some() { 2.0 } else { 1.0 };
        let (bytes, service) = (self.first_job_bytes, services.commit);
        let each = Jobs { seconds: self.commit, bytes, service, hops };
        let (jobs, at_once) = (load.subcircuits as usize, design.sliced_execute);
        let commit = commit_round(jobs, &speeds, cluster, each, at_once, &mut noise);
        // A stolen job carries its values, even if its first rank had executed them.
        let each_proof =
            Jobs { seconds: self.prove, bytes: self.job_bytes, service: services.prove, hops };
        let Round { end, busy, done } = commit;
        let prove = prove_round(done, &speeds, cluster, each_proof, design.steal, &mut noise);
        let rounds =
            Rounds { commit: end, prove: prove.end, commit_busy: busy, prove_busy: prove.busy };
        (rounds, speeds.into_iter().fold(0.0, f64::max))
    }

    /// The memory of rank 0 and of any other rank, in bytes.
    fn memory(&self) -> [f64; 2] {
        let Self { load, cluster, n, .. } = *self;
        let all = PROCESS_BYTES + load.key_bytes;
        let prover = PROVER_BYTES * load.largest_domain + PROVER_FIXED_BYTES;
        let wires = n * load.wires;
        // With slices, rank 0 has no values, and every other rank has those of its own slice.
        let (of_root, values) = match self.design.sliced_execute {
            true => (WIRE_BYTES * wires, VALUE_BYTES * wires / cluster.ranks() as f64),
            false => (ROOT_WIRE_BYTES * wires, 0.0),
        };
        [
            all + SUBCIRCUIT_BYTES * n + of_root,
            all + TABLE_BYTES * load.all_domains
                + cluster.provers_per_rank as f64 * prover
                + n * load.slots() * WIRE_BYTES
                + values,
        ]
    }

    /// The aggregation: work that all cores share, phases in which rank 0 waits for all ranks, the last GIPA
    /// rounds, which it computes alone, and what each round costs however short the vectors are.
    fn aggregate(&self, slowest: f64) -> f64 {
        let Self { cluster, times, .. } = self;
        let (ranks, provers) = (cluster.ranks(), cluster.provers_per_rank);
        let each = times.of(C::AggregateProof);
        let padded = self.load.subcircuits.next_power_of_two();
        // A rank has blocks of `unit` proofs, four or more per rank.
        let unit = (padded / (4 * ranks).next_power_of_two()).max(1);
        let halvings = f64::from(unit.ilog2());
        let parts = self.design.groups(ranks) as f64;
        let leaders = self.design.fanout.map_or(0.0, |fanout| f64::from(fanout.get()));
        let hops = if leaders > 0.0 { 2.0 } else { 1.0 };
        let part = cluster.message + PRODUCTS * times.of(C::MillerProduct);
        let wait = 2.0 * (cluster.latency + cluster.nap) * hops + (parts + leaders) * part;
        let shared =
            each * padded as f64 / ((ranks * provers) as f64 * AGGREGATION_EFFICIENCY) * slowest;
        let threads = provers.min(cluster.cores_per_node) as f64;
        let top = (padded / unit) as f64 * each * FOLD_SHARE / threads;
        shared
            + (SYNCHRONOUS_PHASES + halvings) * wait
            + top
            + (f64::from(padded.ilog2()) + OTHER_ROUNDS) * times.of(C::AggregateRound)
            + self.n * times.of(C::CollectProof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constants(factor: f64) -> Constants {
        let mut out = Constants::new("0.1.0", "test");
        for (i, constant) in C::ALL.iter().enumerate() {
            let value = if *constant == C::FullNodeRate { 0.5 } else { factor * (i + 1) as f64 };
            out.measured(*constant, value * 1e-6, "test");
        }
        out.measured(C::FullNodeRate, 0.5, "test");
        out
    }

    fn load(factor: f64) -> Load {
        Load {
            constraints: 1e9,
            subcircuits: 1000,
            wires: 100.0,
            mask_wires: 2.0,
            private_bytes: 64.0,
            alone_seconds: 0.5 * factor,
            execute_seconds: 1e-6 * factor,
            match_seconds: [0.2 * factor, 0.1 * factor],
            key_bytes: 1e8,
            all_domains: 1e6,
            largest_domain: 1e6,
        }
    }

    fn cluster(factor: f64) -> Cluster {
        let c = Cluster::default();
        let c = Cluster {
            latency: c.latency * factor,
            nap: c.nap * factor,
            bandwidth: c.bandwidth / factor,
            message: c.message * factor,
            file_system: c.file_system / factor,
            file_system_per_node: c.file_system_per_node / factor,
            key_tree_step: c.key_tree_step * factor,
            ..c
        };
        c.with_cores(256).unwrap()
    }

    #[test]
    fn doubled_times_double_the_total() {
        for design in Design::ALL {
            let one = predict(&load(1.0), &cluster(1.0), &design, &constants(1.0)).unwrap();
            let two = predict(&load(2.0), &cluster(2.0), &design, &constants(2.0)).unwrap();
            for ((name, one), (_, two)) in one.phases.named().iter().zip(two.phases.named()) {
                assert!((two / one - 2.0).abs() < 1e-9, "{} {name}: {one} {two}", design.name);
                assert!(one.is_finite() && *one > 0.0, "{} {name}", design.name);
            }
            assert!((one.efficiency() / two.efficiency() - 1.0).abs() < 1e-9);
        }
    }

    /// With a free coordinator and all else free, only whole waves of subcircuits count.
    #[test]
    fn a_free_coordinator_leaves_the_waves() {
        let mut constants = Constants::new("0.1.0", "test");
        C::ALL.iter().for_each(|constant| constants.measured(*constant, 0.0, "test"));
        constants.measured(C::FullNodeRate, 1.0, "test");
        let free = Cluster {
            latency: 0.0,
            nap: 0.0,
            message: 0.0,
            job_sigma: 0.0,
            rank_sigma: 0.0,
            slow_rank_share: 0.0,
            ..Cluster::default()
        };
        let free = free.with_cores(64).unwrap();
        let load = Load { subcircuits: 200, ..load(1.0) };
        let found = predict(&load, &free, &Design::FLAT, &constants).unwrap();
        assert_eq!(found.phases.prove, 200f64.div_euclid(64.0).mul_add(0.5, 0.5));
        assert_eq!(found.bottleneck(), "prove");
    }

    #[test]
    fn a_constant_that_is_missing_is_named() {
        for design in Design::ALL {
            for constant in C::of_design(&design) {
                let mut some = Constants::new("0.1.0", "test");
                let others = C::ALL.iter().filter(|other| **other != constant);
                others.for_each(|other| some.measured(*other, 1e-6, "test"));
                let error = predict(&load(1.0), &cluster(1.0), &design, &some).unwrap_err();
                assert_eq!(error, ConstantError::Missing { name: constant.name() });
            }
        }
    }

    #[test]
    fn variance_costs_time_and_is_the_same_each_time() {
        let calm = Cluster { job_sigma: 0.0, rank_sigma: 0.0, ..cluster(1.0) };
        let run = |cluster: &Cluster| {
            predict(&load(1.0), cluster, &Design::POOL, &constants(1e-3)).unwrap()
        };
        let varied = Cluster { job_sigma: 0.1, rank_sigma: 0.05, ..calm };
        assert_eq!(run(&varied), run(&varied));
        assert!(run(&varied).phases.prove > run(&calm).phases.prove);
    }
}
