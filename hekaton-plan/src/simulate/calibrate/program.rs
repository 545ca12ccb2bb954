//! Constants of the program: layout, execution, jobs, commitments, answers and aggregation.

use super::super::constants::{Constant, Constants};
use super::super::run::OTHER_ROUNDS;
use super::clock::{Measurement, per_call, process, repeated, thread};
use super::ladder::Ladder;
use super::{CalibrateError, put};
use hekaton_arith::{Fr, G1Point, Group};
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::distributed::Executes;
use hekaton_core::distributed::costs::{
    aggregation_messages, encoded_job, encoded_own_job, rounds, slices,
};
use hekaton_core::events::{Event, Phase, Record, Recorder};
use hekaton_core::protocol::coordinator::Coordinator;
use hekaton_core::protocol::journal::{Journal, LogKey};
use hekaton_core::protocol::messages::{Commitment, Message};
use hekaton_core::protocol::worker::Worker;
use hekaton_core::{
    LocalEngine, ProveOptions, ProverKeys, Randomness, SetupOptions, WitnessCheck, prove, setup,
};
use hekaton_storage::{RunDirectory, RunDirectoryOptions, RunIdentity};
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of subcircuits of the larger ladders.
const MANY: usize = 256;
/// The number of subcircuits of the ladders that show the costs of memory and of many ranks.
const MOST: usize = 8192;
/// Wires that each subcircuit of the narrow and the wide ladder reads; it writes as many.
const NARROW: usize = 4;
const WIDE: usize = 512;
/// Bytes of private input of the ladder that has any.
const PRIVATE: usize = 1 << 16;
/// Ranks of the larger network.
const RANKS: usize = 1024;
/// Provers of each of its ranks.
const PROVERS: usize = 32;

/// Converts any error, with the quantity that was being measured.
fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> CalibrateError {
    move |e| CalibrateError { what, why: e.to_string() }
}

fn input() -> Fr {
    Fr::from(3u64)
}

/// A ladder with its keys, which are used for measurements only and dropped at the end.
struct Keyed {
    ladder: Ladder,
    keys: ProverKeys,
}

impl Keyed {
    fn jobs(&self) -> f64 {
        self.ladder.subcircuits as f64
    }

    fn new(
        subcircuits: usize,
        width: usize,
        private_bytes: usize,
        engine: &LocalEngine,
    ) -> Result<Self, CalibrateError> {
        let ladder = Ladder { subcircuits, width, private_bytes };
        let keys = setup(&ladder, engine, &SetupOptions::new("calibration"));
        Ok(Self { ladder, keys: keys.map_err(failed("setup"))? })
    }

    /// Calls `f` with the coordinator, a worker and randomness.
    fn with<R>(
        &self,
        engine: &LocalEngine,
        f: impl FnOnce(
            &PreparedCircuit<'_>,
            &Coordinator<'_>,
            Worker<'_>,
            &Randomness,
        ) -> Result<R, CalibrateError>,
    ) -> Result<R, CalibrateError> {
        let (x, why) = (input(), "the coordinator");
        let circuit = PreparedCircuit::with_input(&self.ladder, &x).map_err(failed(why))?;
        let coordinator = Coordinator::new(&circuit, &self.keys, engine, 1).map_err(failed(why))?;
        let check = WitnessCheck::Skip;
        let worker = Worker::new(&circuit, &self.keys.types, Masking::Masked, check);
        let randomness = Randomness::fresh().map_err(failed(why))?;
        f(&circuit, &coordinator, worker, &randomness)
    }

    /// Seconds to create and encode a job, and to commit to it.
    fn job_and_commitment(&self, engine: &LocalEngine) -> Result<[Measurement; 2], CalibrateError> {
        self.with(engine, |circuit, coordinator, worker, randomness| {
            let jobs = self.ladder.subcircuits;
            let encode = repeated(|| {
                let since = thread();
                for instance in 0..jobs {
                    let job =
                        (coordinator.prove_job(instance, randomness)).map_err(failed("jobs"))?;
                    std::hint::black_box(encoded_job(&job, circuit).map_err(failed("jobs"))?);
                }
                Ok::<_, CalibrateError>((thread() - since) / jobs as f64)
            })?;
            let commit = repeated(|| {
                let mut seconds = 0.0;
                for instance in 0..jobs {
                    let job = (coordinator.commit_job(instance, randomness))
                        .map_err(failed("commitments"))?;
                    // After the job was made, which is measured apart.
                    let since = thread();
                    std::hint::black_box(worker.commit(job).map_err(failed("commitments"))?);
                    seconds += thread() - since;
                }
                Ok::<_, CalibrateError>(seconds / jobs as f64)
            })?;
            Ok([encode, commit])
        })
    }

    /// Seconds to create and encode a job for a rank that has its values.
    fn own_job(&self, engine: &LocalEngine) -> Result<Measurement, CalibrateError> {
        self.with(engine, |_, coordinator, _, randomness| {
            let jobs = self.ladder.subcircuits;
            repeated(|| {
                let since = thread();
                for instance in 0..jobs {
                    std::hint::black_box(encoded_own_job(coordinator, instance, randomness));
                }
                Ok((thread() - since) / jobs as f64)
            })
        })
    }

    /// Seconds per wire on ranks, and per subcircuit on rank 0, for the reports of ranks about slices.
    fn slices(&self, engine: &LocalEngine) -> Result<[Measurement; 2], CalibrateError> {
        let (x, why) = (input(), "slices");
        let circuit = PreparedCircuit::with_input(&self.ladder, &x).map_err(failed(why))?;
        let cost = || slices(&circuit, &self.keys, engine).map_err(failed(why));
        let ranks = repeated(|| Ok::<_, CalibrateError>(cost()?.ranks))?;
        let root = repeated(|| Ok::<_, CalibrateError>(cost()?.root))?;
        Ok([ranks.per(self.ladder.occurrences()), root.per(self.ladder.subcircuits as f64)])
    }

    /// Seconds of the coordinator's one thread that deals jobs and listens, per subcircuit of a
    /// commit round over this number of ranks.
    fn round(
        &self,
        engine: &Arc<LocalEngine>,
        ranks: usize,
    ) -> Result<Measurement, CalibrateError> {
        let (x, why) = (input(), "the coordinator's round");
        let circuit = PreparedCircuit::with_input(&self.ladder, &x).map_err(failed(why))?;
        let options = ProveOptions::new();
        repeated(|| {
            let executes = Executes::Root;
            let costs = rounds(&circuit, &self.keys, engine, ranks, PROVERS, executes, &options);
            let [commit, _] = costs.map_err(failed(why))?;
            Ok(commit.serial_seconds)
        })
    }

    /// Processor seconds of the aggregation of all subcircuits.
    fn aggregation(&self, engine: &LocalEngine) -> Result<Measurement, CalibrateError> {
        repeated(|| {
            let times = Mutex::new([0.0; 2]);
            // Read at the events of the phase, so that execution and rounds do not count.
            let recorder = Recorder::new("calibration", |record| {
                let index = match &record.event {
                    Event::PhaseStart { phase: Phase::Aggregate, .. } => 0,
                    Event::PhaseEnd { phase: Phase::Aggregate, .. } => 1,
                    _ => return,
                };
                times.lock().unwrap_or_else(PoisonError::into_inner)[index] = process();
            });
            let options = ProveOptions::new().recorder(&recorder);
            prove(&self.ladder, &input(), &self.keys, engine, &options)
                .map_err(failed("the aggregation"))?;
            drop(recorder);
            let [start, end] = *times.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(end - start)
        })
    }

    /// Seconds to write an answer's event and its record in the log of a run directory.
    fn record(&self) -> Result<Measurement, CalibrateError> {
        let why = "the log of a run";
        let directory = tempfile::tempdir().map_err(failed(why))?;
        let identity = RunIdentity::new(&self.keys.verifying, [0; 32]);
        // A real run directory: appending checks the lease, as in a run.
        let run: RunDirectory = RunDirectoryOptions::new()
            .begin(&directory.path().join("run"), &identity)
            .map_err(failed(why))?;
        let mut events =
            std::fs::File::create(directory.path().join("events.jsonl")).map_err(failed(why))?;
        let key = LogKey {
            round: "commitments",
            attempt: 1,
            context: &[],
            message_length: Commitment::LEN,
        };
        let (log, _) = run.log(key, &mut |_| 0).map_err(failed(why))?;
        repeated(|| {
            let since = thread();
            for instance in 0..MANY {
                let message =
                    Commitment { instance, d: G1Point::generator(), mark: [0; 32] }.to_bytes();
                log.append(&message).map_err(failed(why))?;
                let event = Event::Subcircuit {
                    phase: Phase::Commit,
                    instance: instance as u64,
                    kind: "square".to_owned(),
                    start: 0.0,
                    seconds: 0.0,
                    cpu_seconds: 0.0,
                    bytes: 0,
                    prover: "rank 0 on host, prover-0".to_owned(),
                };
                let line =
                    serde_json::to_string(&Record { at: 0.0, event }).map_err(failed(why))?;
                events.write_all((line + "\n").as_bytes()).map_err(failed(why))?;
            }
            Ok((thread() - since) / MANY as f64)
        })
    }
}

/// Layout and execution.
pub(super) fn layout(out: &mut Constants) -> Result<(), CalibrateError> {
    let ladder = Ladder { subcircuits: MOST, width: WIDE / 2, private_bytes: 0 };
    // Mask wires have addresses and are hashed, too.
    let masked = ladder.occurrences() + 2.0 * MOST as f64;
    let layout = repeated(|| {
        let since = thread();
        std::hint::black_box(PreparedCircuit::new(&ladder).map_err(failed("the layout"))?);
        Ok::<_, CalibrateError>((thread() - since) / masked)
    })?;
    let how = "the layout of 8,192 subcircuits with 512 wires";
    put(out, Constant::LayoutOccurrence, layout, how);
    let circuit = PreparedCircuit::new(&ladder).map_err(failed("the layout"))?;
    let digest = repeated(|| {
        let since = thread();
        std::hint::black_box(circuit.layout().wiring_digest(Masking::Masked));
        Ok::<_, CalibrateError>((thread() - since) / masked)
    })?;
    let how = "the digest of that layout, hashing included";
    put(out, Constant::DigestOccurrence, digest, how);
    drop(circuit);
    let x = input();
    let ladder = Ladder { subcircuits: MANY, ..ladder };
    let circuit = PreparedCircuit::with_input(&ladder, &x).map_err(failed("the execution"))?;
    let execute = repeated(|| {
        let since = thread();
        std::hint::black_box(circuit.execute().map_err(failed("the execution"))?);
        Ok::<_, CalibrateError>((thread() - since) / ladder.occurrences())
    })?;
    let how = "execution of 256 subcircuits with 512 wires that it squares";
    put(out, Constant::ExecuteOccurrence, execute, how);
    Ok(())
}

/// Jobs, commitments, answers and the aggregation.
pub(super) fn protocol(out: &mut Constants) -> Result<(), CalibrateError> {
    let engine = Arc::new(LocalEngine::new(NonZeroUsize::new(1)).map_err(failed("the threads"))?);
    let narrow = Keyed::new(MANY, NARROW, 0, &engine)?;
    jobs(&narrow, &engine, out)?;
    answers(&narrow, &engine, out)?;
    aggregation(&narrow, &engine, out)
}

/// Jobs and commitments.
fn jobs(narrow: &Keyed, engine: &LocalEngine, out: &mut Constants) -> Result<(), CalibrateError> {
    use Constant as C;
    let wide = Keyed::new(8, WIDE, 0, engine)?;
    let private = Keyed::new(8, NARROW, PRIVATE, engine)?;
    let [encode, commit] = narrow.job_and_commitment(engine)?;
    let [encode_wide, commit_wide] = wide.job_and_commitment(engine)?;
    let [encode_private, _] = private.job_and_commitment(engine)?;
    let (wires, more) = (2.0 * NARROW as f64, 2.0 * (WIDE - NARROW) as f64);
    let wire = commit_wide.minus(commit).per(more);
    put(out, C::CommitWire, wire, "commitments to 8 and to 1,024 wires, per wire");
    // The difference of two widths has the slope; the rest of one of them is the constant part.
    let fixed = commit.minus(wire * wires);
    put(out, C::CommitFixed, fixed, "the commitment to 8 wires, less its wires");
    let occurrence = encode_wide.minus(encode).per(more);
    put(out, C::EncodeOccurrence, occurrence, "jobs with 8 and with 1,024 wires, per wire");
    let byte = encode_private.minus(encode).per(PRIVATE as f64);
    put(out, C::EncodePrivateByte, byte, "jobs without and with 64 KiB of private input");
    let fixed = encode.minus(occurrence * (wires + 2.0));
    put(out, C::EncodeJob, fixed, "creating and encoding a job with 8 wires, less its wires");
    let own = narrow.own_job(engine)?;
    put(out, C::EncodeOwnJob, own, "secrets and masks of a job, with the digests that they need");
    let [summarize, _] = wide.slices(engine)?;
    let how = "digests and balances of 8 subcircuits with 1,024 wires, per wire";
    put(out, C::SummarizeOccurrence, summarize, how);
    let [_, root] = narrow.slices(engine)?;
    let how = "decoding and adding up the summaries of 256 subcircuits with 8 wires";
    put(out, C::SliceSubcircuit, root, how);
    Ok(())
}

/// Measures the coordinator's work for an answer.
fn answers(
    narrow: &Keyed,
    engine: &Arc<LocalEngine>,
    out: &mut Constants,
) -> Result<(), CalibrateError> {
    use Constant as C;
    // The difference of two numbers of jobs leaves out the work that a round does once for each rank.
    let (most, half) =
        (Keyed::new(MOST, NARROW, 0, engine)?, Keyed::new(MOST / 2, NARROW, 0, engine)?);
    let job = |ranks| -> Result<Measurement, CalibrateError> {
        Ok(most.round(engine, ranks)?.minus(half.round(engine, ranks)?).per(half.jobs()))
    };
    let (one, many) = (job(1)?, job(RANKS)?);
    // A round looks at all ranks once for each job and each answer together.
    let scan = many.minus(one).per(2.0 * (RANKS - 1) as f64);
    let how =
        "the thread that deals jobs and listens, in a commit round with 1 and with 1,024 ranks";
    put(out, C::ScanRank, scan, how);
    let accept = one.minus(scan * 2.0);
    let how = "the thread that deals jobs and listens, in a commit round with 1 rank; frames and \
               their digests included";
    put(out, C::AcceptAnswer, accept, how);
    let how = "the log record and the event of an answer, in the temporary directory";
    put(out, C::RecordAnswer, narrow.record()?, how);
    Ok(())
}

/// The aggregation.
fn aggregation(
    narrow: &Keyed,
    engine: &LocalEngine,
    out: &mut Constants,
) -> Result<(), CalibrateError> {
    use Constant as C;
    let few = Keyed::new(MANY / 4, NARROW, 0, engine)?;
    let more = (narrow.ladder.subcircuits - few.ladder.subcircuits) as f64;
    let (of_few, of_many) = (few.aggregation(engine)?, narrow.aggregation(engine)?);
    let each = of_many.minus(of_few).per(more);
    let how = "aggregation of 256 proofs less that of 64, per proof, on one thread";
    put(out, C::AggregateProof, each, how);
    let proofs = few.ladder.subcircuits as f64;
    let rounds = f64::from(few.ladder.subcircuits.ilog2()) + OTHER_ROUNDS;
    // As one difference: what grows was measured in the same times.
    let fixed = (of_few * (1.0 + proofs / more)).minus(of_many * (proofs / more));
    let how = "aggregation of 64 proofs less what grows with their number, per round";
    put(out, C::AggregateRound, fixed.per(rounds), how);
    let collect = per_call(4, || aggregation_messages(4 * MANY)).per((4 * MANY) as f64);
    let how = "encoding and digest of a proof's part of the messages of phases A and B";
    put(out, C::CollectProof, collect, how);
    Ok(())
}
