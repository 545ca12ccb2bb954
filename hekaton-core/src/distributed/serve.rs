//! A worker rank: single-threaded provers that do the jobs of the coordinator.
//!
//! One thread listens; `provers` threads take jobs from one queue and send their own answers, so a
//! prover has its next job before its last answer has left. Jobs that were committed to stay here
//! until they are proven, so the prove round needs only its challenges (spec: distributed#jobs).

use super::RankError;
use super::encoding::Writer;
use super::endpoint::{Endpoint, Incoming, Outbox};
use super::frame::{Frame, Kind};
use super::hello::Hello;
use super::job_queue::{Closing, JobQueue, Waiting};
use super::jobs::{Decoder, Slice, Task, encode_taken};
use super::leaders::Leader;
use super::message::{Account, Answered, Begin, BlockPhase, Execute, Executed, Part, Revoke};
use crate::aggregation::block::Shared;
use crate::aggregation::blocks::{AggregateError, Blocks, LocalBlocks};
use crate::encoding::{DecodeError, Reader};
use crate::keys::ProverKeys;
use crate::pool::LocalEngine;
use crate::protocol::accelerator::Accelerators;
use crate::protocol::executed::{SliceSummary, instance_id};
use crate::protocol::messages::{Message, ProveRound};
use crate::protocol::worker::{Worker, WorkerError};
use crate::system::{Clock, memory, process_cpu_seconds};
use hekaton_circuit::{LookUps, Masking, PreparedCircuit};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The time that a worker waits for a message before it waits again. Losses arrive as messages.
const LOOK_UP: Duration = Duration::from_secs(60);

/// The inputs and resources of a worker rank.
pub struct Serve<'a> {
    /// The circuit; the same on all ranks.
    pub circuit: &'a PreparedCircuit<'a>,
    /// The keys; the same on all ranks.
    pub keys: &'a ProverKeys,
    /// Threads for the aggregation.
    pub pool: &'a LocalEngine,
    /// The devices of this rank, for which [`Accelerators::places`] of its provers wait.
    pub accelerators: Option<&'a Accelerators>,
    /// The description that it sends to rank 0.
    pub hello: Hello,
    /// Called with an error before [`serve`] waits for the subcircuits in progress.
    pub failed: &'a (dyn Fn(&RankError) + Sync),
}

impl std::fmt::Debug for Serve<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve").field("hello", &self.hello).finish_non_exhaustive()
    }
}

/// Serves the coordinator until it ends the run.
///
/// # Errors
/// When the coordinator is lost, or sent an invalid message.
pub fn serve(endpoint: &Endpoint, serve: &Serve<'_>) -> Result<(), RankError> {
    let Some(group) = endpoint.led() else { return work(endpoint, serve) };
    let (worker, own) = endpoint.for_own_worker();
    let types = serve.keys.types.len();
    let blocks = RefCell::default();
    let leader = Leader { endpoint, group, own, pool: serve.pool, types, blocks };
    std::thread::scope(|scope| {
        let rank = endpoint.rank();
        let inbox = endpoint.inbox();
        let spawned =
            std::thread::Builder::new().name("worker".into()).spawn_scoped(scope, move || {
                let ended = catch_unwind(AssertUnwindSafe(|| work(&worker, serve)));
                let why = match &ended {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "its worker panicked".to_owned(),
                };
                // Otherwise the leader would continue without a worker.
                let _ = inbox.send(Incoming::Lost { rank, why: why.clone() });
                ended.unwrap_or(Err(RankError::Lost { rank, why }))
            });
        let worker = spawned.map_err(|error| own_error(endpoint, serve, &error))?;
        let led = catch_unwind(AssertUnwindSafe(|| leader.lead()));
        // The worker reported its own end, which is the cause of the leader's.
        let is_workers =
            |e: &RankError| matches!(e, RankError::Lost { rank: lost, .. } if *lost == rank);
        let own = match &led {
            Ok(Ok(())) => false,
            Ok(Err(error)) => !is_workers(error),
            Err(_) => true,
        };
        if let (true, Ok(Err(error))) = (own, &led) {
            // Before the worker's, which does not say why.
            (serve.failed)(error);
        }
        // The worker must not wait for messages that do not come.
        if !matches!(led, Ok(Ok(()))) {
            let why = "its leader has ended".to_owned();
            let _ = leader.own.send(Incoming::Lost { rank: 0, why });
        }
        let worked = worker.join();
        let of_leader = led.unwrap_or_else(|panic| resume_unwind(panic));
        let of_worker = worked.unwrap_or_else(|panic| resume_unwind(panic));
        if own { of_leader.and(of_worker) } else { of_worker.and(of_leader) }
    })
}

/// Does the work of a rank, as a leader or not.
fn work(endpoint: &Endpoint, serve: &Serve<'_>) -> Result<(), RankError> {
    let masking = Masking::new(serve.keys.verifying.zero_knowledge);
    let (queue, slice) = (JobQueue::default(), RwLock::new(None));
    if let Some(all) = serve.accelerators {
        // The others wait for devices.
        all.set_cores(serve.hello.provers.saturating_sub(all.places(&serve.keys.types)));
    }
    endpoint.outbox().send(0, Kind::Hello, 0, serve.hello.encode());
    std::thread::scope(|scope| {
        // However this ends, panics included, the provers must not wait forever.
        let _closing = Closing(&queue);
        // Provers are threads of this process, which a u32 can number.
        for (index, _) in (0u32..).zip(0..serve.hello.provers) {
            let (outbox, slice) = (endpoint.outbox(), &slice);
            let prover = Prover { serve, queue: &queue, slice, outbox, index, masking };
            let spawned = std::thread::Builder::new()
                .name(format!("prover-{index}"))
                .spawn_scoped(scope, move || prover.run());
            spawned.map_err(|error| own_error(endpoint, serve, &error))?;
        }
        let shared = std::cell::OnceCell::new();
        let outbox = endpoint.outbox();
        let listener = Listener { endpoint, serve, queue: &queue, slice: &slice, masking, outbox };
        listener.listen(&shared).inspect_err(serve.failed)
    })
}

/// An error of this rank itself.
fn own_error(endpoint: &Endpoint, serve: &Serve<'_>, error: &dyn std::error::Error) -> RankError {
    RankError::Failed {
        rank: endpoint.rank(),
        host: serve.hello.host.clone(),
        message: error.to_string(),
    }
}

/// The slice that this rank executed, once it has.
type OwnSlice<'a> = RwLock<Option<Slice<'a>>>;

/// One prover thread.
struct Prover<'a, 'c> {
    serve: &'a Serve<'a>,
    queue: &'a JobQueue,
    slice: &'a OwnSlice<'c>,
    outbox: Outbox,
    index: u32,
    masking: Masking,
}

impl Prover<'_, '_> {
    fn run(self) {
        while let Some(task) = self.queue.next() {
            let (instance, run) = (task.task.instance(), task.run);
            let since = Clock::start();
            // A panic in a circuit's code must end the run with a reason, not leave rank 0 waiting.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.answer(task, since)));
            note(self.serve.accelerators, self.queue);
            let (code, why) = match outcome {
                Ok(Ok(())) => continue,
                Ok(Err(WorkerError::Pole { .. })) => (POLE, String::new()),
                Ok(Err(error)) => (OTHER, error.to_string()),
                Err(_) => (
                    OTHER,
                    format!("instance {instance}: the prover panicked; see its standard error"),
                ),
            };
            self.outbox.send(
                0,
                Kind::Failed,
                run,
                Writer::default().count(instance).u32(code).text(&why).0,
            );
        }
    }

    /// Does a job and sends the answer.
    fn answer(&self, waiting: Waiting, since: Clock) -> Result<(), WorkerError> {
        let Waiting { task, begin, run, challenges } = waiting;
        let instance = task.instance();
        // Its own values need not be kept twice between the rounds.
        let held = match &task {
            Task::Whole(_) => None,
            Task::Own(job) => Some(Task::Own(job.clone())),
        };
        let slice = self.slice.read().unwrap_or_else(PoisonError::into_inner);
        let job = task
            .into_job(slice.as_ref(), self.serve.circuit, self.masking)
            .map_err(|why| WorkerError::Job { instance, why })?;
        drop(slice);
        let types = &self.serve.keys.types;
        let worker = Worker::new(self.serve.circuit, types, self.masking, begin.witness_check)
            .accelerators(self.serve.accelerators);
        let prover = self.index;
        match challenges {
            None => {
                let (committed, answer) = worker.commit(job)?;
                let (job, look_ups) = committed.into_parts();
                // Held before it is answered, because the challenges may follow at once; not held
                // for an attempt that has ended.
                let mut state = self.queue.lock();
                if state.run == run {
                    let task = held.unwrap_or_else(|| Task::Whole(job));
                    state.held.insert(instance, task);
                }
                drop(state);
                let times = self.queue.done(since);
                let answered = Answered { answer, prover, times, look_ups };
                self.outbox.send(0, Kind::Committed, run, answered.encode());
            }
            Some(challenges) => {
                let answer = worker.resume(job).prove(&challenges)?;
                let times = self.queue.done(since);
                let look_ups = LookUps::default();
                let answered = Answered { answer, prover, times, look_ups };
                self.outbox.send(0, Kind::Proven, run, answered.encode());
            }
        }
        Ok(())
    }
}

/// Keeps the notices of devices for the next account.
fn note(accelerators: Option<&Accelerators>, queue: &JobQueue) {
    for message in accelerators.iter().flat_map(|all| all.take_messages()) {
        // At once, since this rank may not live to account for it.
        tracing::warn!("{message}");
        queue.lock().account.notices.push(message);
    }
}

/// The code in [`Kind::Failed`] for a pole (zero denominator).
pub(crate) const POLE: u32 = 1;
/// The code in [`Kind::Failed`] for every other reason.
const OTHER: u32 = 2;

/// The thread that receives messages.
struct Listener<'a, 'c> {
    endpoint: &'a Endpoint,
    serve: &'a Serve<'c>,
    queue: &'a JobQueue,
    slice: &'a OwnSlice<'c>,
    masking: Masking,
    outbox: Outbox,
}

/// The error for an invalid message of rank 0.
fn wrong(why: &dyn std::fmt::Display) -> RankError {
    RankError::Message { rank: 0, why: why.to_string() }
}

/// The challenges at the start of a message, and the rest of it.
fn challenges(content: &[u8]) -> Result<(ProveRound, &[u8]), RankError> {
    let mut reader = Reader::new(content);
    let head = reader.take(ProveRound::LEN, "challenges").map_err(|e| wrong(&e))?;
    let challenges = ProveRound::from_bytes(head).map_err(|e| wrong(&e))?;
    Ok((challenges, &content[ProveRound::LEN..]))
}

impl Listener<'_, '_> {
    /// Handles messages until the coordinator ends the run.
    // One piece: a loop whose arms are the kinds of messages.
    fn listen<'s>(&self, shared: &'s std::cell::OnceCell<Shared<'s>>) -> Result<(), RankError>
    where
        Self: 's,
    {
        let mut begun: Option<(u32, Begin)> = None;
        let mut blocks: Option<LocalBlocks<'_>> = None;
        loop {
            let Some((from, Frame { kind, run, content }, _)) = self.endpoint.receive(LOOK_UP)?
            else {
                continue;
            };
            // Ranks exchange messages with rank 0 only.
            if from != 0 {
                return Err(RankError::Message {
                    rank: from,
                    why: "only rank 0 may send requests".into(),
                });
            }
            match kind {
                Kind::End => return Ok(()),
                Kind::Begin => {
                    begun = Some((run, self.begin(run, &content)?));
                    blocks = None;
                    continue;
                }
                // The values do not depend on the attempt.
                Kind::Execute => {
                    self.execute(&content, run)?;
                    continue;
                }
                _ => {}
            }
            let Some((current, begin)) = begun else {
                return Err(wrong(&"a request before the run began"));
            };
            // Requests of another attempt are under other randomness.
            if run != current {
                return Err(wrong(&"a request for a run that has ended"));
            }
            match kind {
                Kind::CommitJobs | Kind::CommitOwn => {
                    self.queue.put(self.tasks(kind, &content, run, begin, None)?);
                }
                Kind::ProveJobs | Kind::ProveOwn => {
                    let (challenges, jobs) = challenges(&content)?;
                    self.queue.put(self.tasks(kind, jobs, run, begin, Some(challenges))?);
                }
                Kind::Challenges => {
                    let (challenges, proven) = challenges(&content)?;
                    self.forget(proven)?;
                    self.queue.put(self.held(run, begin, challenges));
                }
                Kind::Revoke => self.revoke(&content, run)?,
                Kind::GiveUpDevices => {
                    if let Some(all) = self.serve.accelerators {
                        all.give_up_all();
                    }
                }
                Kind::Account => {
                    self.outbox.send(0, Kind::Accounted, run, self.account().encode());
                }
                Kind::Phase => {
                    let since = (Instant::now(), process_cpu_seconds());
                    let result = self.phase(&content, &mut blocks, shared);
                    self.answer_phase(result, since, run);
                }
                other => {
                    let why = format_args!("unexpected {other:?}: workers do not accept it");
                    return Err(wrong(&why));
                }
            }
        }
    }

    /// Starts an attempt: drops everything that belongs to an earlier one
    /// (spec: zero-knowledge#restart).
    fn begin(&self, run: u32, content: &[u8]) -> Result<Begin, RankError> {
        let begin = Begin::decode(content).map_err(|e| wrong(&e))?;
        let mut state = self.queue.lock();
        state.waiting.clear();
        state.held.clear();
        // What was not asked for belongs to the attempt that has ended.
        let notices = std::mem::take(&mut state.account.notices);
        state.account = Account { notices, ..Account::default() };
        state.run = run;
        drop(state);
        self.serve.accelerators.iter().for_each(|all| drop(all.take_work()));
        Ok(begin)
    }

    /// Drops held jobs that an earlier process has proven already.
    fn forget(&self, proven: &[u8]) -> Result<(), RankError> {
        let mut reader = Reader::new(proven);
        while reader.left() > 0 {
            let instance = reader.u32("instance").map_err(|e| wrong(&e))? as usize;
            self.queue.lock().held.remove(&instance);
        }
        Ok(())
    }

    /// Accounts for a phase of the aggregation, which keeps all provers busy, and sends its result.
    fn answer_phase(&self, result: Result<Vec<u8>, PhaseFailed>, since: (Instant, f64), run: u32) {
        let (since, cpu) = since;
        let mut state = self.queue.lock();
        state.since.get_or_insert(since);
        state.account.busy += since.elapsed().as_secs_f64() * self.serve.hello.provers as f64;
        state.account.cpu += process_cpu_seconds() - cpu;
        drop(state);
        match result {
            Ok(part) => drop(self.outbox.send(0, Kind::Part, run, part)),
            Err(why) => {
                let content = Writer::default().u32(u32::MAX).u32(OTHER).text(&why.to_string()).0;
                self.outbox.send(0, Kind::Failed, run, content);
            }
        }
    }

    /// Decodes jobs into tasks.
    fn tasks(
        &self,
        kind: Kind,
        content: &[u8],
        run: u32,
        begin: Begin,
        challenges: Option<ProveRound>,
    ) -> Result<Vec<Waiting>, RankError> {
        let mut reader = Reader::new(content);
        let decoder = Decoder { circuit: self.serve.circuit, masking: self.masking };
        let mut tasks = Vec::new();
        while reader.left() > 0 {
            let decoded = match kind {
                Kind::CommitOwn | Kind::ProveOwn => decoder.own(&mut reader),
                _ => decoder.job(&mut reader),
            };
            let task = decoded.map_err(|e| wrong(&e))?;
            tasks.push(Waiting { task, begin, run, challenges });
        }
        Ok(tasks)
    }

    /// Executes a slice of the circuit, and reports a summary of it to rank 0
    /// (spec: distributed#slices).
    fn execute(&self, content: &[u8], run: u32) -> Result<(), RankError> {
        let layout = self.serve.circuit.layout();
        let execute = Execute::decode(content, layout.instances()).map_err(|e| wrong(&e))?;
        let since = Clock::start();
        let Execute { range, key } = execute;
        let circuit = self.serve.circuit;
        let executed = circuit.execute_range(range.clone()).and_then(|execution| {
            let pool = self.serve.pool;
            let summary = SliceSummary::new(circuit, &execution, range.clone(), &key, pool)?;
            Ok((execution, summary))
        });
        match executed {
            Ok((execution, summary)) => {
                let digests = summary.digests.clone();
                *self.slice.write().unwrap_or_else(PoisonError::into_inner) =
                    Some(Slice { range, execution, digests });
                let content = Executed { summary, times: since.elapsed() }.encode();
                self.outbox.send(0, Kind::Executed, run, content);
            }
            Err(error) => {
                let content = Writer::default().u32(u32::MAX).u32(OTHER).text(&error.to_string()).0;
                self.outbox.send(0, Kind::Failed, run, content);
            }
        }
        Ok(())
    }

    /// Takes the held jobs as tasks of the prove round, largest first and type by type, like the
    /// coordinator's order.
    fn held(&self, run: u32, begin: Begin, challenges: ProveRound) -> Vec<Waiting> {
        let held = std::mem::take(&mut self.queue.lock().held);
        let layout = self.serve.circuit.layout();
        let mut tasks: Vec<(usize, Task)> = (held.into_iter())
            .map(|(instance, task)| (layout.type_index(instance_id(instance)), task))
            .collect();
        let constraints = |kind: usize| self.serve.keys.types[kind].constraints();
        tasks.sort_by_key(|(kind, task)| {
            (std::cmp::Reverse(constraints(*kind)), *kind, task.instance())
        });
        let waiting = |(_, task)| Waiting { task, begin, run, challenges: Some(challenges) };
        tasks.into_iter().map(waiting).collect()
    }

    /// Returns up to the requested number of jobs that are not started: their numbers, and if rank 0
    /// does not have them, their values and private inputs.
    fn revoke(&self, content: &[u8], run: u32) -> Result<(), RankError> {
        let Revoke { most, with_values } = Revoke::decode(content).map_err(|e| wrong(&e))?;
        // From the end of the queue, where jobs would wait longest.
        let mut state = self.queue.lock();
        let keep = state.waiting.len().saturating_sub(most);
        let returned = state.waiting.split_off(keep);
        drop(state);
        let slice = self.slice.read().unwrap_or_else(PoisonError::into_inner);
        let circuit = self.serve.circuit;
        let encode = |out: Writer, Waiting { task, .. }: Waiting| {
            let out = out.count(task.instance());
            if !with_values {
                return Ok(out);
            }
            encode_taken(out, &task.into_taken(slice.as_ref(), circuit, self.masking)?, circuit)
        };
        let head = Writer::default().count(returned.len()).u32(with_values.into());
        match returned.into_iter().try_fold(head, encode) {
            Ok(out) => drop(self.outbox.send(0, Kind::Revoked, run, out.0)),
            Err::<_, String>(why) => {
                let content = Writer::default().u32(u32::MAX).u32(OTHER).text(&why).0;
                self.outbox.send(0, Kind::Failed, run, content);
            }
        }
        Ok(())
    }

    /// Returns what this rank did since the last account.
    fn account(&self) -> Account {
        note(self.serve.accelerators, self.queue);
        let mut state = self.queue.lock();
        let mut account = std::mem::take(&mut state.account);
        // The clock starts with the first job, so waiting for the coordinator's own work is not
        // counted as idle.
        let elapsed = state.since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
        account.idle = (elapsed * self.serve.hello.provers as f64 - account.busy).max(0.0);
        account.peak_memory = memory().map_or(0, |(_, peak)| peak);
        account.devices = self.serve.accelerators.iter().flat_map(|all| all.take_work()).collect();
        account
    }

    /// Does a phase of the aggregation on all threads of this rank (spec: distributed#phases).
    fn phase<'s>(
        &self,
        content: &[u8],
        blocks: &mut Option<LocalBlocks<'s>>,
        shared: &'s std::cell::OnceCell<Shared<'s>>,
    ) -> Result<Vec<u8>, PhaseFailed>
    where
        Self: 's,
    {
        let keys = self.serve.keys;
        let elements = shared.get_or_init(|| Shared::new(&keys.aggregation, keys.verifying.k));
        let phase = BlockPhase::decode(content, elements.padded())?;
        // Phase A starts over whatever came before, which a repeated aggregation needs
        // (spec: distributed#repair).
        if let BlockPhase::A { start, end, unit, .. } = &phase {
            *blocks = Some(LocalBlocks::of_range(elements, self.serve.pool, *start..*end, *unit));
        }
        // Each phase consumes the state of the one before, so phases out of order are an error.
        let Some(blocks) = blocks else { return Err(AggregateError::order("A").into()) };
        Ok(match phase {
            BlockPhase::A { d, .. } => Part::encode(&blocks.commit(&d)?),
            BlockPhase::B { proofs } => blocks.prove(&proofs)?.encode(),
            BlockPhase::C { r, memory } => blocks.weigh(r, &memory)?.encode(),
            BlockPhase::D { s1, s2 } => Part::encode(&blocks.fold_blocks(s1, s2)?),
            BlockPhase::E { s3, ledger, q } => {
                let rounds = blocks.start(s3, &q, ledger)?;
                Part::encode(&u32::try_from(rounds).expect("rounds are the bits of a length"))
            }
            BlockPhase::GipaRound { x } => Part::encode(&blocks.halve(x)?),
            BlockPhase::F { x } => Part::encode(&blocks.take(x)?),
            BlockPhase::G(openings) => Part::encode(&blocks.open(&openings)?),
        })
    }
}

/// Why a phase of the aggregation failed.
#[derive(Debug, thiserror::Error)]
enum PhaseFailed {
    #[error(transparent)]
    Phase(#[from] AggregateError),
    #[error("invalid phase of the aggregation: {0}")]
    Decode(DecodeError),
}

impl From<DecodeError> for PhaseFailed {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
