//! What the coordinator's own work costs, for those who predict large runs: the code of a run,
//! without a network and without provers.

use super::endpoint::{Endpoint, Incoming};
use super::engine::{RankEngine, RootRole};
use super::frame::{Frame, Kind};
use super::hello::Hello;
use super::message::{Answered, BlockPhase, Writer};
use super::scheduling::Scheduling;
use super::serve::encode_job;
use crate::aggregation::block::ProofVectors;
use crate::pool::LocalEngine;
use crate::protocol::coordinator::Coordinator;
use crate::protocol::engine::{Engine, Round};
use crate::protocol::messages::{Commitment, Job};
use crate::protocol::{Cancellation, ProveError};

use crate::protocol::worker::{Worker, WorkerError};
use crate::randomness::Randomness;
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::PreparedCircuit;
use std::num::NonZeroUsize;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The maximum duration of a round.
const DEADLINE: Duration = Duration::from_secs(60);

/// Encodes a job as it is sent to a rank, without the frame.
///
/// # Errors
/// When its private input cannot be encoded.
pub fn encoded_job(job: &Job, circuit: &PreparedCircuit<'_>) -> Result<Vec<u8>, String> {
    encode_job(Writer::default(), job, circuit).map(|out| out.0)
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

/// Ranks that answer each job at once with a commitment to nothing. They run on the coordinator's
/// thread, so their own time is known and can be subtracted.
struct Echo {
    inbox: OnceLock<Sender<Incoming>>,
    job_bytes: usize,
    clock: fn() -> f64,
    spent: Mutex<f64>,
}

impl Echo {
    fn take(&self, rank: usize, bytes: Vec<u8>) {
        let since = (self.clock)();
        if let (Ok(frame), Some(inbox)) = (Frame::from_bytes(bytes), self.inbox.get()) {
            for (kind, content) in self.answers(&frame) {
                let bytes = Frame { kind, run: frame.run, content }.to_bytes();
                // The coordinator's end is dropped only after its last message.
                let _ = inbox.send(Incoming::Message { from: rank, bytes });
            }
        }
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += (self.clock)() - since;
    }

    fn answers(&self, frame: &Frame) -> Vec<(Kind, Vec<u8>)> {
        match frame.kind {
            Kind::CommitJobs => (frame.content.chunks_exact(self.job_bytes))
                .filter_map(|job| job.first_chunk::<4>())
                .map(|instance| {
                    let instance = u32::from_le_bytes(*instance) as usize;
                    let answer = Commitment { instance, d: G1Point::IDENTITY };
                    (Kind::Committed, Answered { answer, prover: 0, seconds: 0.0 }.encode())
                })
                .collect(),
            Kind::Revoke => vec![(Kind::Revoked, Writer::default().count(0).0)],
            _ => Vec::new(),
        }
    }
}

/// The end of rank 0 of a network whose other ranks are an echo, and have described themselves.
fn network(
    ranks: usize,
    job_bytes: usize,
    hello: &Hello,
    clock: fn() -> f64,
) -> (Endpoint, Arc<Echo>) {
    let spent = Mutex::new(0.0);
    let echo = Arc::new(Echo { inbox: OnceLock::new(), job_bytes, clock, spent });
    let post = {
        let echo = Arc::clone(&echo);
        move |to, bytes| echo.take(to, bytes)
    };
    let (endpoint, inbox) = Endpoint::new(0, ranks + 1, post);
    for from in 1..=ranks {
        let bytes = Frame { kind: Kind::Hello, run: 0, content: hello.encode() }.to_bytes();
        let _ = inbox.send(Incoming::Message { from, bytes });
    }
    let _ = echo.inbox.set(inbox);
    (endpoint, echo)
}

/// Runs the coordinator's side of a commit round over `ranks` ranks that answer at once, with the
/// point at infinity, and returns the time of the calling thread per subcircuit by `clock`, in
/// seconds: creating and encoding the job, the frames of both messages, decoding the answer, and
/// the tables. All jobs must have the same length.
///
/// # Errors
/// When a job cannot be created, or jobs have different lengths.
pub fn commit_round_cost(
    coordinator: &Coordinator<'_>,
    worker: Worker<'_>,
    randomness: &Randomness,
    pool: Arc<LocalEngine>,
    ranks: NonZeroUsize,
    clock: fn() -> f64,
) -> Result<f64, ProveError> {
    let job = coordinator.prove_job(0, randomness)?;
    let job_bytes = encoded_job(&job, worker.circuit())
        .map_err(|why| WorkerError::Job { instance: 0, why })?
        .len();
    let hello = Hello { host: String::new(), provers: 1, facts: Vec::new(), notes: Vec::new() };
    let (endpoint, echo) = network(ranks.get(), job_bytes, &hello, clock);
    let (role, dynamic) = (RootRole::Coordinates, Scheduling::Dynamic);
    let engine = RankEngine::start(endpoint, pool, &hello, role, dynamic);
    // Jobs of different lengths would leave some without an answer.
    let engine = engine.map_err(ProveError::from_rank)?.round_deadline(Some(DEADLINE));
    let cancellation = Cancellation::new();
    let round = Round {
        coordinator,
        worker,
        randomness,
        attempt: 1,
        challenges: None,
        provers: 1,
        cancellation: &cancellation,
    };
    let order = coordinator.order();
    *echo.spent.lock().unwrap_or_else(PoisonError::into_inner) = 0.0;
    let since = clock();
    engine.round::<Commitment>(&round, &order, &|_, _| Ok(()))?;
    let all = clock() - since;
    let echoed = *echo.spent.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((all - echoed) / order.len().max(1) as f64)
}
