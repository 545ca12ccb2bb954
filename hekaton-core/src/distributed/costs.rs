//! The cost of the coordinator's own work, for benchmarks and for predictions of large runs: the
//! code of a run, against ranks that answer at once with valid points that prove nothing.

use super::encoding::Writer;
use super::endpoint::Endpoint;
use super::engine::{RankEngine, RootRole};
use super::frame::{Frame, Kind};
use super::hello::Hello;
use super::jobs::{encode_job, encode_own};
use super::message::{Account, BlockPhase, Executed as Told};
use super::scheduling::Scheduling;
use super::slices::{Executes, is_balanced, public_values};
use super::wire::Incoming;
use crate::aggregation::block::ProofVectors;
use crate::encoding::Reader;
use crate::events::Recorder;
use crate::keys::ProverKeys;
use crate::mirage::WitnessCheck;
use crate::pool::LocalEngine;
use crate::protocol::ProveError;
use crate::protocol::ProveOptions;
use crate::protocol::coordinator::{Coordinator, CoordinatorError};
use crate::protocol::engine::{Engine, Round};
use crate::protocol::executed::{Executed, OnRanks, SliceSummary, Values, execution_digest};
use crate::protocol::messages::{Commitment, Job, Mark, Message, ProofResponse, ProveRound};
use crate::protocol::session::Session;
use crate::protocol::worker::Worker;
use crate::randomness::{InstanceRandomness, Randomness};
use crate::system::{Times, process_cpu_seconds, thread_cpu};
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{ExecutionError, Masking, MemoryChallenges, PreparedCircuit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The number of different points in answers.
const POINTS: usize = 1 << 10;

/// Encodes a job as it is sent to a rank, without the frame.
///
/// # Errors
/// When its private input cannot be encoded.
pub fn encoded_job(job: &Job, circuit: &PreparedCircuit<'_>) -> Result<Vec<u8>, String> {
    encode_job(Writer::default(), job, circuit).map(|out| out.0)
}

/// Encodes the job of a subcircuit for a rank that has its values, without the frame.
pub fn encoded_own_job(
    coordinator: &Coordinator<'_>,
    instance: usize,
    randomness: &Randomness,
) -> Vec<u8> {
    encode_own(Writer::default(), &coordinator.own_job(instance, randomness)).0
}

/// Processor seconds for slices, on one thread, of all subcircuits together.
#[derive(Clone, Copy, Debug)]
pub struct SliceCost {
    /// The ranks' share: digests and balances of the values (spec: distributed#slices).
    pub ranks: f64,
    /// The share of rank 0, which combines and checks them.
    pub root: f64,
}

/// Measures what slices add to an execution.
///
/// # Errors
/// When the circuit cannot be executed.
pub fn slices(
    circuit: &PreparedCircuit<'_>,
    keys: &ProverKeys,
    pool: &LocalEngine,
) -> Result<SliceCost, ExecutionError> {
    let layout = circuit.layout();
    let (execution, key) = (circuit.execute()?, [7; 32]);
    let cpu = process_cpu_seconds();
    let summary = SliceSummary::new(circuit, &execution, 0..layout.instances(), &key, pool)?;
    let ranks = process_cpu_seconds() - cpu;
    let message = Told { summary, times: Times::default() }.encode();
    let cpu = process_cpu_seconds();
    let told = Told::decode(&message).map(|told| [told.summary]);
    let sums = told.iter().map(|slices| {
        // One slice of all instances has every public value.
        let public = public_values(layout, slices).expect("the slice is the whole execution");
        let balanced = is_balanced(&key, keys, &public, slices);
        (balanced, execution_digest(&keys.verifying.digest(), &slices[0].digests))
    });
    std::hint::black_box(sums.collect::<Vec<_>>());
    Ok(SliceCost { ranks, root: process_cpu_seconds() - cpu })
}

/// Encodes the messages in which one rank receives commitments, proofs and sums of terms of `n`
/// subcircuits for the aggregation (spec: distributed#phases), and returns their length in bytes.
pub fn aggregation_messages(n: usize) -> usize {
    let (a, e) = (vec![G1Point::IDENTITY; n], vec![Fr::from(1u64); n]);
    let (b, c, d) = (vec![G2Point::IDENTITY; n], a.clone(), a.clone());
    let phases = [
        BlockPhase::A { start: 0, end: n, unit: 1, d },
        BlockPhase::B { proofs: ProofVectors { a, b, c, e } },
    ];
    let frame = |phase: &BlockPhase| Frame { kind: Kind::Phase, run: 0, content: phase.encode() };
    phases.iter().map(|phase| frame(phase).to_bytes().len()).sum()
}

/// The cost of a round for the coordinator.
#[derive(Clone, Copy, Debug)]
pub struct RoundCost {
    /// Jobs sent, and answers taken.
    pub jobs: usize,
    /// Seconds by the clock. The ranks that answer use the same processors.
    pub seconds: f64,
    /// CPU seconds of the coordinator, all its threads together, that of the ranks not counted.
    pub cpu_seconds: f64,
    /// CPU seconds of the thread that deals instances and listens: what no other core can share.
    pub serial_seconds: f64,
}

/// Runs both rounds of a run against `ranks` ranks of `provers` provers that answer at once, as if
/// rank 0 or the ranks had executed the circuit. A journal in the options must be a scratch one: its logs get answers that prove nothing, and no run
/// can use them afterwards.
///
/// # Errors
/// When keys and circuit do not match, or the coordinator fails.
// One piece: the two rounds borrow everything that is made for them here.
pub fn rounds(
    circuit: &PreparedCircuit<'_>,
    keys: &ProverKeys,
    pool: &Arc<LocalEngine>,
    ranks: usize,
    provers: usize,
    executes: Executes,
    options: &ProveOptions<'_>,
) -> Result<[RoundCost; 2], ProveError> {
    let masking = Masking::new(keys.verifying.zero_knowledge);
    Coordinator::check(circuit, keys, pool, pool.threads())?;
    let mut executed = Executed::here(circuit, pool).map_err(CoordinatorError::from)?;
    if executes == Executes::Ranks {
        executed.values = Values::OnRanks(OnRanks::new(circuit));
    }
    let coordinator = Coordinator::of(circuit, keys, None, executed);
    let silent = Recorder::silent();
    let recorder = options.recorder.unwrap_or(&silent);
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    let (facts, notes, secrets) = (Vec::new(), Vec::new(), Vec::new());
    let hello = Hello { host: "memory".into(), provers, facts, notes, secrets };
    let (to_ranks, requests) = channel();
    let post = move |to: usize, bytes: Vec<u8>| {
        // The ranks end when the run does.
        let _ = to_ranks.send((to, bytes));
    };
    let (endpoint, inbox) = Endpoint::new(0, ranks + 1, post);
    let spent = AtomicU64::new(0);
    let answers = Answers::new(circuit.layout().wiring(masking));
    std::thread::scope(|scope| {
        let (hello_of_ranks, spent_by_ranks) = (hello.encode(), &spent);
        scope.spawn(move || {
            for rank in 1..=ranks {
                let frame = Frame { kind: Kind::Hello, run: 0, content: hello_of_ranks.clone() };
                let _ = inbox.send(Incoming::Message { from: rank, bytes: frame.to_bytes() });
            }
            answers.serve(&requests, &inbox, spent_by_ranks);
        });
        let role = RootRole::Coordinates;
        let engine = RankEngine::start(endpoint, pool.clone(), &hello, role, Scheduling::Dynamic)
            .map_err(ProveError::from_rank)?;
        if executes == Executes::Ranks {
            let inner = &mut *engine.inner.borrow_mut();
            inner.slices.ranges = inner.cut(circuit.layout(), keys);
        }
        let devices = Mutex::default();
        let session = Session { circuit, keys, engine: &engine, options, recorder, devices };
        let commit = Round {
            coordinator: &coordinator,
            worker: Worker::new(circuit, &keys.types, masking, WitnessCheck::Check),
            randomness: &randomness,
            attempt: 1,
            challenges: None,
            provers: engine.provers(None),
            waiting: 0,
            cancellation: &options.cancellation,
        };
        let memory = MemoryChallenges::new(Fr::from(u128::MAX), Fr::from(u128::MAX - 4));
        let prove = Round { challenges: Some(ProveRound { memory }), ..commit };
        let cost = |round: &dyn Fn() -> Result<usize, ProveError>| {
            let (since, cpu, others) =
                (Instant::now(), process_cpu_seconds(), spent.load(Ordering::Relaxed));
            let serial = thread_cpu();
            let jobs = round()?;
            let others = (spent.load(Ordering::Relaxed) - others) as f64 / 1e9;
            let (seconds, cpu) = (since.elapsed().as_secs_f64(), process_cpu_seconds() - cpu);
            let serial_seconds = (thread_cpu() - serial).as_secs_f64();
            Ok::<_, ProveError>(RoundCost {
                jobs,
                seconds,
                cpu_seconds: cpu - others,
                serial_seconds,
            })
        };
        Ok([
            cost(&|| Ok(session.round::<Commitment>(&commit, "commitments", b"")?.list.len()))?,
            cost(&|| Ok(session.round::<ProofResponse>(&prove, "proofs", b"")?.list.len()))?,
        ])
    })
}

/// The answers of the ranks.
struct Answers {
    wiring: Wiring,
    /// Encoded points.
    g1: Vec<Vec<u8>>,
    g2: Vec<Vec<u8>>,
    /// The instances that each rank committed to, by rank.
    held: BTreeMap<usize, Vec<usize>>,
}

impl Answers {
    fn new(wiring: Wiring) -> Self {
        let scalars: Vec<Fr> = (1..=POINTS as u64).map(Fr::from).collect();
        let g1 = G1Point::mul_each(&vec![G1Point::generator(); POINTS], &scalars);
        let g2 = G2Point::mul_each(&vec![G2Point::generator(); POINTS], &scalars);
        Self {
            wiring,
            g1: g1.iter().map(G1Point::to_compressed).collect(),
            g2: g2.iter().map(G2Point::to_compressed).collect(),
            held: BTreeMap::new(),
        }
    }

    /// Answers all requests until the coordinator ends the run.
    fn serve(
        mut self,
        requests: &Receiver<(usize, Vec<u8>)>,
        inbox: &Sender<Incoming>,
        spent: &AtomicU64,
    ) {
        let account = || {
            let now = u64::try_from(thread_cpu().as_nanos()).expect("2^64 ns are 584 years");
            spent.store(now, Ordering::Relaxed);
        };
        account();
        for (rank, bytes) in requests {
            let Ok(Frame { kind, run, content }) = Frame::from_bytes(bytes) else { return };
            let answer = |kind, content| {
                let bytes = Frame { kind, run, content }.to_bytes();
                // Before the answer, which may be the last of a round.
                account();
                let _ = inbox.send(Incoming::Message { from: rank, bytes });
            };
            match kind {
                Kind::CommitJobs | Kind::CommitOwn => {
                    for instance in self.instances(kind, &content) {
                        self.held.entry(rank).or_default().push(instance);
                        answer(Kind::Committed, self.commitment(instance));
                    }
                }
                Kind::ProveJobs | Kind::ProveOwn => {
                    for instance in self.instances(kind, &content[ProveRound::LEN..]) {
                        answer(Kind::Proven, self.proof(instance));
                    }
                }
                Kind::Challenges => {
                    // A rank that committed to nothing holds nothing.
                    for instance in self.held.remove(&rank).into_iter().flatten() {
                        answer(Kind::Proven, self.proof(instance));
                    }
                }
                Kind::Revoke => answer(Kind::Revoked, Writer::default().u32(0).u32(0).0),
                Kind::Account => answer(Kind::Accounted, Account::default().encode()),
                Kind::End => return,
                _ => {}
            }
        }
    }

    /// The instances of encoded jobs.
    fn instances(&self, kind: Kind, content: &[u8]) -> Vec<usize> {
        let is_own = matches!(kind, Kind::CommitOwn | Kind::ProveOwn);
        let mut reader = Reader::new(content);
        let mut out = Vec::new();
        while let Ok(number) = reader.u32("instance") {
            let instance = number as usize;
            let scalars = match is_own {
                true => self.wiring.masking.slots(),
                false => self.wiring.types[self.wiring.type_of[instance] as usize].slots,
            };
            let rest = reader.take(InstanceRandomness::BYTES + 32 * scalars, "secrets and values");
            if rest.is_err() || (!is_own && reader.bytes("private input").is_err()) {
                break;
            }
            out.push(instance);
        }
        out
    }

    /// The prover and its times, and the instance.
    fn head(instance: usize) -> Vec<u8> {
        Writer::default().u32(0).f64(0.0).f64(0.0).u64(instance as u64).0
    }

    fn commitment(&self, instance: usize) -> Vec<u8> {
        [&Self::head(instance)[..], &self.g1[instance % POINTS], &Mark::default()].concat()
    }

    fn proof(&self, instance: usize) -> Vec<u8> {
        let point = |shift: usize| (instance + shift) % POINTS;
        let (e, mark) = (vec![0; 32], Mark::default().to_vec());
        let [a, b, c] = [&self.g1[point(0)], &self.g2[point(1)], &self.g1[point(2)]];
        [&Self::head(instance), a, b, c, &e, &mark].map(Vec::as_slice).concat()
    }
}
