//! A worker rank: single-threaded provers that do the jobs of the coordinator.
//!
//! One thread listens; `provers` threads take jobs from one queue and send their own answers, so a
//! prover has its next job before its last answer has left. Jobs that were committed to stay here
//! until they are proven, so the prove round needs only its challenges (spec: distributed#jobs).

use super::RankError;
use super::endpoint::{Endpoint, Outbox};
use super::frame::{Frame, Kind};
use super::hello::Hello;
use super::message::{Account, Answered, Begin, BlockPhase, Part, Writer};
use crate::aggregation::block::Shared;
use crate::aggregation::blocks::{Blocks, LocalBlocks, PhaseError};
use crate::encoding::{DecodeError, Reader};
use crate::keys::ProverKeys;
use crate::pool::Pool;
use crate::protocol::messages::{Job, Message, ProveRound};
use crate::protocol::worker::{Worker, WorkerError};
use crate::randomness::InstanceRandomness;
use crate::system::{Clock, Times, memory, process_cpu_seconds};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Masking, MemoryChallenges, PreparedCircuit};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a worker waits for a message before it waits again. Losses arrive as messages.
const LOOK_UP: Duration = Duration::from_secs(60);

/// What a worker rank works with.
pub struct Serve<'a, P> {
    /// The circuit; the same on all ranks.
    pub circuit: &'a PreparedCircuit<'a>,
    /// The keys; the same on all ranks.
    pub keys: &'a ProverKeys,
    /// Threads for the aggregation.
    pub pool: &'a P,
    /// The description that it sends to rank 0.
    pub hello: Hello,
    /// Called with an error before [`serve`] waits for the subcircuits in progress.
    pub failed: &'a (dyn Fn(&RankError) + Sync),
}

impl<P> std::fmt::Debug for Serve<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve").field("hello", &self.hello).finish_non_exhaustive()
    }
}

/// Serves the coordinator until it ends the run.
///
/// # Errors
/// When the coordinator is lost, or sent an invalid message.
pub fn serve<P: Pool>(endpoint: &Endpoint, serve: &Serve<'_, P>) -> Result<(), RankError> {
    let masking = Masking::new(serve.keys.verifying.zero_knowledge);
    let wiring = serve.circuit.layout().wiring(masking);
    let queue = JobQueue::default();
    endpoint.outbox().send(0, Kind::Hello, 0, serve.hello.encode());
    std::thread::scope(|scope| {
        // However this ends, panics included, the provers must not wait forever.
        let _closing = Closing(&queue);
        let provers = u32::try_from(serve.hello.provers).unwrap_or(u32::MAX);
        for index in 0..provers {
            let prover = Prover { serve, queue: &queue, outbox: endpoint.outbox(), index, masking };
            let spawned = std::thread::Builder::new()
                .name(format!("prover-{index}"))
                .spawn_scoped(scope, move || prover.run());
            spawned.map_err(|error| own_error(endpoint, serve, &error))?;
        }
        let shared = std::cell::OnceCell::new();
        let starts = wiring.starts();
        let listener = Listener {
            endpoint,
            serve,
            queue: &queue,
            wiring: &wiring,
            starts: &starts,
            outbox: endpoint.outbox(),
        };
        listener.listen(&shared).inspect_err(serve.failed)
    })
}

/// An error of this rank itself.
fn own_error<P>(
    endpoint: &Endpoint,
    serve: &Serve<'_, P>,
    error: &dyn std::error::Error,
) -> RankError {
    RankError::Failed {
        rank: endpoint.rank(),
        host: serve.hello.host.clone(),
        message: error.to_string(),
    }
}

/// A job that waits for a prover.
struct Task {
    job: Job,
    begin: Begin,
    run: u32,
    /// The challenges of the prove round; none in the commit round.
    challenges: Option<ProveRound>,
}

/// The queue between the listener and the provers.
#[derive(Default)]
struct JobQueue {
    state: Mutex<State>,
    ready: Condvar,
}

/// What waits, what is held, and what was done.
#[derive(Default)]
struct State {
    waiting: VecDeque<Task>,
    /// The run and attempt in progress.
    run: u32,
    /// Jobs that were committed to and are not proven, by instance.
    held: BTreeMap<usize, Job>,
    account: Account,
    /// When the first job since the last account arrived.
    since: Option<Instant>,
    closed: bool,
}

impl JobQueue {
    /// Locks the state. No code of a circuit runs under the lock, so a poisoned one is still
    /// consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, tasks: Vec<Task>) {
        let mut state = self.lock();
        state.since.get_or_insert_with(Instant::now);
        state.waiting.extend(tasks);
        self.ready.notify_all();
    }

    /// Waits for the next task; `None` when the queue is closed.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(task) = state.waiting.pop_front() {
                return Some(task);
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Accounts for a job of this thread, before it is answered, and returns the time it took.
    fn done(&self, since: Clock) -> Times {
        let times = since.elapsed();
        let mut state = self.lock();
        state.account.busy += times.seconds;
        state.account.cpu += times.cpu_seconds;
        state.account.subcircuits += 1;
        times
    }

    fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }
}

/// Closes the queue when it is dropped.
struct Closing<'a>(&'a JobQueue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// One prover thread.
struct Prover<'a, P> {
    serve: &'a Serve<'a, P>,
    queue: &'a JobQueue,
    outbox: Outbox,
    index: u32,
    masking: Masking,
}

impl<P> Prover<'_, P> {
    fn run(self) {
        while let Some(task) = self.queue.next() {
            let (instance, run) = (task.job.instance, task.run);
            let since = Clock::start();
            // A panic in a circuit's code must end the run with a reason, not leave rank 0 waiting.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.answer(task, since)));
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
    fn answer(&self, task: Task, since: Clock) -> Result<(), WorkerError> {
        let Task { job, begin, run, challenges } = task;
        let types = &self.serve.keys.types;
        let worker = Worker::new(self.serve.circuit, types, self.masking, begin.witness_check);
        let (prover, instance) = (self.index, job.instance);
        match challenges {
            None => {
                let (committed, answer) = worker.commit(job)?;
                // Held before it is answered, because the challenges may follow at once; not held
                // for an attempt that has ended.
                let mut state = self.queue.lock();
                if state.run == run {
                    state.held.insert(instance, committed.into_job());
                }
                drop(state);
                let times = self.queue.done(since);
                let answered = Answered { answer, prover, times };
                self.outbox.send(0, Kind::Committed, run, answered.encode());
            }
            Some(challenges) => {
                let answer = worker.resume(job).prove(&challenges)?;
                let times = self.queue.done(since);
                let answered = Answered { answer, prover, times };
                self.outbox.send(0, Kind::Proven, run, answered.encode());
            }
        }
        Ok(())
    }
}

/// The code in [`Kind::Failed`] for a pole (zero denominator).
pub(crate) const POLE: u32 = 1;
/// The code in [`Kind::Failed`] for every other reason.
const OTHER: u32 = 2;

/// Encodes a job: the instance, its secrets, the values of its slots, and its private input. The
/// rest follows from the layout.
pub(crate) fn encode_job(
    out: Writer,
    job: &Job,
    circuit: &PreparedCircuit<'_>,
) -> Result<Writer, String> {
    let private =
        job.private.as_ref().map(|private| circuit.encode_private(private)).transpose()?;
    let private = private.unwrap_or_default();
    if u32::try_from(private.len()).is_err() {
        return Err(format!("it has {} bytes, the maximum is 4 GiB", private.len()));
    }
    let mut out = out.count(job.instance);
    out.0.extend_from_slice(job.randomness.secret_bytes());
    Ok(out.scalars(&job.values).bytes(&private))
}

/// Decodes a job. Type, addresses and multiplicities come from this rank's own layout, never from
/// the message.
fn decode_job(
    reader: &mut Reader<'_>,
    circuit: &PreparedCircuit<'_>,
    wiring: &Wiring,
    starts: &[usize],
) -> Result<Job, DecodeError> {
    let instance = reader.u32("index of the instance")? as usize;
    let Some(kind) = wiring.type_of.get(instance) else {
        return Err(reader.invalid(
            "index of the instance",
            4,
            format_args!("the layout has no instance {instance}"),
        ));
    };
    let secret = reader.array::<{ InstanceRandomness::BYTES }>("randomness")?;
    let slots = wiring.slots[starts[instance]..][..wiring.types[*kind as usize].slots].to_vec();
    let values = reader.scalars(slots.len(), "value of a shared wire")?;
    let bytes = reader.bytes("private input")?;
    let length = bytes.len();
    let private = circuit.decode_private(bytes);
    let private = private.map_err(|why| reader.invalid("private input", length, why))?;
    Ok(Job {
        instance,
        kind: *kind as usize,
        values,
        slots,
        private: Some(private),
        randomness: InstanceRandomness::from_secret_bytes(&secret),
    })
}

/// The thread that receives messages.
struct Listener<'a, P> {
    endpoint: &'a Endpoint,
    serve: &'a Serve<'a, P>,
    queue: &'a JobQueue,
    wiring: &'a Wiring,
    starts: &'a [usize],
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

impl<P: Pool> Listener<'_, P> {
    /// Handles messages until the coordinator ends the run.
    fn listen<'s>(&self, shared: &'s std::cell::OnceCell<Shared<'s>>) -> Result<(), RankError>
    where
        Self: 's,
    {
        let mut begun: Option<(u32, Begin)> = None;
        let mut blocks: Option<LocalBlocks<'_, P>> = None;
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
                Kind::CommitJobs => self.queue.put(self.tasks(&content, run, begin, None)?),
                Kind::ProveJobs => {
                    let (challenges, jobs) = challenges(&content)?;
                    self.queue.put(self.tasks(jobs, run, begin, Some(challenges))?);
                }
                Kind::Challenges => {
                    let (challenges, proven) = challenges(&content)?;
                    self.forget(proven)?;
                    self.queue.put(self.held(run, begin, challenges));
                }
                Kind::Revoke => self.revoke(&content, run)?,
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
        state.account = Account::default();
        state.run = run;
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
        content: &[u8],
        run: u32,
        begin: Begin,
        challenges: Option<ProveRound>,
    ) -> Result<Vec<Task>, RankError> {
        let mut reader = Reader::new(content);
        let mut tasks = Vec::new();
        while reader.left() > 0 {
            let job = decode_job(&mut reader, self.serve.circuit, self.wiring, self.starts);
            let job = job.map_err(|e| wrong(&e))?;
            tasks.push(Task { job, begin, run, challenges });
        }
        Ok(tasks)
    }

    /// Takes the held jobs as tasks of the prove round, largest first and type by type, like the
    /// coordinator's order.
    fn held(&self, run: u32, begin: Begin, challenges: ProveRound) -> Vec<Task> {
        let mut jobs: Vec<Job> =
            std::mem::take(&mut self.queue.lock().held).into_values().collect();
        let constraints = |job: &Job| self.serve.keys.types[job.kind].constraints();
        jobs.sort_by_key(|job| (std::cmp::Reverse(constraints(job)), job.kind, job.instance));
        let task = |job| Task { job, begin, run, challenges: Some(challenges) };
        jobs.into_iter().map(task).collect()
    }

    /// Returns up to the requested number of jobs that are not started.
    fn revoke(&self, content: &[u8], run: u32) -> Result<(), RankError> {
        // From the end of the queue, where jobs would wait longest.
        let most = Reader::new(content).u32("how many").map_err(|e| wrong(&e))? as usize;
        let mut state = self.queue.lock();
        let keep = state.waiting.len().saturating_sub(most);
        let returned: Vec<usize> =
            state.waiting.split_off(keep).iter().map(|task| task.job.instance).collect();
        drop(state);
        let out =
            returned.iter().fold(Writer::default().count(returned.len()), |out, i| out.count(*i));
        self.outbox.send(0, Kind::Revoked, run, out.0);
        Ok(())
    }

    /// What this rank did since the last account.
    fn account(&self) -> Account {
        let mut state = self.queue.lock();
        let mut account = std::mem::take(&mut state.account);
        // The clock starts with the first job, so waiting for the coordinator's own work is not
        // counted as idle.
        let elapsed = state.since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
        account.idle = (elapsed * self.serve.hello.provers as f64 - account.busy).max(0.0);
        account.peak_memory = memory().map_or(0, |(_, peak)| peak);
        account
    }

    /// Does a phase of the aggregation on all threads of this rank (spec: distributed#phases).
    fn phase<'s>(
        &self,
        content: &[u8],
        blocks: &mut Option<LocalBlocks<'s, P>>,
        shared: &'s std::cell::OnceCell<Shared<'s>>,
    ) -> Result<Vec<u8>, PhaseFailed>
    where
        Self: 's,
    {
        let keys = self.serve.keys;
        let shared = shared.get_or_init(|| Shared::new(&keys.aggregation, keys.verifying.k));
        let phase = BlockPhase::decode(content, shared.padded())?;
        // Phase A starts over whatever came before, which a repeated aggregation needs
        // (spec: distributed#repair).
        if let BlockPhase::A { start, end, unit, .. } = &phase {
            *blocks = Some(LocalBlocks::of_range(shared, self.serve.pool, *start..*end, *unit));
        }
        // Each phase consumes the state of the one before, so phases out of order are an error.
        let Some(blocks) = blocks else { return Err(PhaseError::Order("A").into()) };
        Ok(match phase {
            BlockPhase::A { d, .. } => Part::encode(&blocks.commit(&d)?),
            BlockPhase::B { proofs } => blocks.prove(&proofs)?.encode(),
            BlockPhase::C { r, g, b } => blocks.weigh(r, &MemoryChallenges { g, b })?.encode(),
            BlockPhase::D { s1, s2 } => Part::encode(&blocks.fold_blocks(s1, s2)?),
            BlockPhase::E { s3, ledger, q } => {
                let rounds = blocks.start(s3, &q, ledger)?;
                Part::encode(&u32::try_from(rounds).unwrap_or(u32::MAX))
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
    Phase(#[from] PhaseError),
    #[error("invalid phase of the aggregation: {0}")]
    Decode(#[from] DecodeError),
}
