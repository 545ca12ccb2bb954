//! A worker rank: single-threaded provers that do what the coordinator asks.
//!
//! One thread listens; `provers` threads take jobs from one queue and answer by themselves, so the next job is there
//! before the last answer is on its way. What was committed to stays here until it is proven, so that the prove round
//! needs nothing but its challenges.

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
use crate::system::memory;
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Circuit, Masking, MemoryChallenges};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a worker without messages looks up.
const LOOK_UP: Duration = Duration::from_secs(60);

/// What a worker rank works with.
pub struct Serve<'a, C, P> {
    /// The circuit; the same on all ranks.
    pub circuit: &'a C,
    /// The keys; the same on all ranks.
    pub keys: &'a ProverKeys,
    /// Threads for the aggregation.
    pub pool: &'a P,
    /// What it says of itself.
    pub hello: Hello,
    /// Told of an error before [`serve`] waits for the subcircuits under way.
    pub failed: &'a (dyn Fn(&RankError) + Sync),
}

impl<C, P> std::fmt::Debug for Serve<'_, C, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve").field("hello", &self.hello).finish_non_exhaustive()
    }
}

/// Serves the coordinator until it says that there is nothing more to do.
///
/// # Errors
/// When the coordinator is lost, or sent something that is wrong.
pub fn serve<C: Circuit, P: Pool>(
    endpoint: &Endpoint,
    serve: &Serve<'_, C, P>,
) -> Result<(), RankError> {
    let masking = Masking::new(serve.keys.verifying.zero_knowledge);
    let wiring = serve.circuit.layout().map(|layout| layout.wiring(masking));
    let wiring = wiring.map_err(|e| own_error(endpoint, serve, &e))?;
    let queue = JobQueue::default();
    endpoint.outbox().send(0, Kind::Hello, 0, serve.hello.encode());
    std::thread::scope(|scope| {
        // however this ends, panics included: the provers must not wait for ever
        let _closing = Closing(&queue);
        for index in 0..serve.hello.provers {
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

fn own_error<C, P>(
    endpoint: &Endpoint,
    serve: &Serve<'_, C, P>,
    error: &dyn std::error::Error,
) -> RankError {
    RankError::Failed {
        rank: endpoint.rank(),
        host: serve.hello.host.clone(),
        message: error.to_string(),
    }
}

/// A subcircuit that waits for a prover.
struct Task<P> {
    job: Job<P>,
    begin: Arc<Begin>,
    run: u32,
    /// none in the commit round
    challenges: Option<ProveRound>,
}

/// What waits, and what was done.
struct JobQueue<P> {
    state: Mutex<State<P>>,
    ready: Condvar,
}

struct State<P> {
    waiting: VecDeque<Task<P>>,
    /// of the attempt that is under way
    run: u32,
    /// committed to, not proven yet
    held: BTreeMap<usize, Job<P>>,
    account: Account,
    /// when the first job since the last account came
    since: Option<Instant>,
    closed: bool,
}

impl<P> Default for JobQueue<P> {
    fn default() -> Self {
        let (waiting, held) = (VecDeque::new(), BTreeMap::new());
        let state = State {
            waiting,
            run: 0,
            held,
            account: Account::default(),
            since: None,
            closed: false,
        };
        Self { state: Mutex::new(state), ready: Condvar::new() }
    }
}

impl<P> JobQueue<P> {
    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, tasks: Vec<Task<P>>) {
        let mut state = self.lock();
        state.since.get_or_insert_with(Instant::now);
        state.waiting.extend(tasks);
        self.ready.notify_all();
    }

    /// The next task; `None` when there will be none.
    fn next(&self) -> Option<Task<P>> {
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

    /// Accounts for a job before it is answered; gives its seconds.
    fn done(&self, since: Instant) -> f64 {
        let seconds = since.elapsed().as_secs_f64();
        let mut state = self.lock();
        state.account.busy += seconds;
        state.account.subcircuits += 1;
        seconds
    }

    fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }
}

/// Closes the queue when it is dropped.
struct Closing<'a, P>(&'a JobQueue<P>);

impl<P> Drop for Closing<'_, P> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// One prover thread.
struct Prover<'a, C: Circuit, P> {
    serve: &'a Serve<'a, C, P>,
    queue: &'a JobQueue<C::Private>,
    outbox: Outbox,
    index: usize,
    masking: Masking,
}

impl<C: Circuit, P> Prover<'_, C, P> {
    fn run(self) {
        while let Some(task) = self.queue.next() {
            let (instance, run) = (task.job.instance, task.run);
            let since = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| self.answer(task, since)));
            let (code, why) = match outcome {
                Ok(Ok(())) => continue,
                Ok(Err(WorkerError::Pole { .. })) => (POLE, String::new()),
                Ok(Err(error)) => (OTHER, error.to_string()),
                Err(_) => (
                    OTHER,
                    format!("instance {instance}: the prover panicked; its stderr has the message"),
                ),
            };
            self.outbox.send(
                0,
                Kind::Failed,
                run,
                Writer::default().u32(instance as u32).u32(code).text(&why).0,
            );
        }
    }

    fn answer(&self, task: Task<C::Private>, since: Instant) -> Result<(), WorkerError> {
        let Task { job, begin, run, challenges } = task;
        let types = &self.serve.keys.types;
        let worker = Worker::new(
            self.serve.circuit,
            types,
            self.masking,
            &begin.randomness,
            begin.witness_check,
        );
        let (prover, instance) = (self.index as u32, job.instance);
        match challenges {
            None => {
                let (committed, answer) = worker.commit(job)?;
                // before it is answered: the prove round may come at once
                let mut state = self.queue.lock();
                if state.run == run {
                    state.held.insert(instance, committed.into_job());
                }
                drop(state);
                let seconds = self.queue.done(since);
                self.outbox.send(
                    0,
                    Kind::Committed,
                    run,
                    Answered { answer, prover, seconds }.encode(),
                );
            }
            Some(challenges) => {
                let answer = worker.resume(job).prove(&challenges)?;
                let seconds = self.queue.done(since);
                self.outbox.send(
                    0,
                    Kind::Proven,
                    run,
                    Answered { answer, prover, seconds }.encode(),
                );
            }
        }
        Ok(())
    }
}

/// Codes in [`Kind::Failed`].
pub(crate) const POLE: u32 = 1;
const OTHER: u32 = 2;

/// A job as it travels: which instance, the values of its slots, its private input. The rest follows from the layout.
pub(crate) fn encode_job<P: serde::Serialize>(out: Writer, job: &Job<P>) -> Result<Writer, String> {
    let private =
        job.private.as_ref().map(postcard::to_allocvec).transpose().map_err(|e| e.to_string())?;
    let private = private.unwrap_or_default();
    if u32::try_from(private.len()).is_err() {
        return Err(format!("{} bytes, at most 4 GiB can be sent", private.len()));
    }
    Ok(out.u32(job.instance as u32).scalars(&job.values).bytes(&private))
}

fn decode_job<P: serde::de::DeserializeOwned>(
    reader: &mut Reader<'_>,
    wiring: &Wiring,
    starts: &[usize],
) -> Result<Job<P>, DecodeError> {
    let instance = reader.u32("index of the instance")? as usize;
    let Some(kind) = wiring.type_of.get(instance) else {
        return Err(reader.invalid(
            "index of the instance",
            4,
            format_args!("there is no instance {instance}"),
        ));
    };
    let slots = wiring.slots[starts[instance]..][..wiring.types[*kind as usize].slots].to_vec();
    let values = reader.scalars(slots.len(), "value of a shared wire")?;
    let bytes = reader.bytes("private input")?;
    let length = bytes.len();
    let private = match postcard::take_from_bytes(bytes) {
        Ok((private, [])) => private,
        Ok((_, rest)) => {
            let why = format!("{} bytes follow it", rest.len());
            return Err(reader.invalid("private input", length, why));
        }
        Err(e) => return Err(reader.invalid("private input", length, e)),
    };
    Ok(Job { instance, kind: *kind as usize, values, slots, private: Some(private) })
}

/// Who listens.
struct Listener<'a, C: Circuit, P> {
    endpoint: &'a Endpoint,
    serve: &'a Serve<'a, C, P>,
    queue: &'a JobQueue<C::Private>,
    wiring: &'a Wiring,
    starts: &'a [usize],
    outbox: Outbox,
}

/// What is wrong with a message that was whole.
fn wrong(why: &dyn std::fmt::Display) -> RankError {
    RankError::Message { rank: 0, why: why.to_string() }
}

impl<C: Circuit, P: Pool> Listener<'_, C, P> {
    fn listen<'s>(&self, shared: &'s std::cell::OnceCell<Shared<'s>>) -> Result<(), RankError>
    where
        Self: 's,
    {
        let mut begun: Option<(u32, Arc<Begin>)> = None;
        let mut blocks: Option<LocalBlocks<'_, P>> = None;
        loop {
            let Some((from, Frame { kind, run, content }, _)) = self.endpoint.receive(LOOK_UP)?
            else {
                continue;
            };
            if from != 0 {
                return Err(RankError::Message {
                    rank: from,
                    why: "only rank 0 gives orders".into(),
                });
            }
            match kind {
                Kind::End => return Ok(()),
                Kind::Begin => {
                    let begin = Begin::decode(&content).map_err(|e| wrong(&e))?;
                    let mut state = self.queue.lock();
                    state.waiting.clear();
                    state.held.clear();
                    state.run = run;
                    begun = Some((run, Arc::new(begin)));
                    blocks = None;
                    continue;
                }
                _ => {}
            }
            let Some((current, begin)) = &begun else {
                return Err(wrong(&"orders before the run began"));
            };
            if run != *current {
                return Err(wrong(&"orders for a run that ended"));
            }
            match kind {
                Kind::CommitJobs => self.queue.put(self.tasks(&content, run, begin, None)?),
                Kind::ProveJobs => {
                    let mut reader = Reader::new(&content);
                    let head = reader.take(ProveRound::LEN, "challenges").map_err(|e| wrong(&e))?;
                    let challenges = ProveRound::from_bytes(head).map_err(|e| wrong(&e))?;
                    self.queue.put(self.tasks(
                        &content[ProveRound::LEN..],
                        run,
                        begin,
                        Some(challenges),
                    )?);
                }
                Kind::Challenges => {
                    let mut reader = Reader::new(&content);
                    let head = reader.take(ProveRound::LEN, "challenges").map_err(|e| wrong(&e))?;
                    let challenges = ProveRound::from_bytes(head).map_err(|e| wrong(&e))?;
                    // proven by an earlier process
                    while reader.left() > 0 {
                        let instance = reader.u32("instance").map_err(|e| wrong(&e))? as usize;
                        self.queue.lock().held.remove(&instance);
                    }
                    self.queue.put(self.held(run, begin, challenges));
                }
                Kind::Revoke => self.revoke(&content, run)?,
                Kind::Account => {
                    self.outbox.send(0, Kind::Accounted, run, self.account().encode());
                }
                Kind::Phase => {
                    let since = Instant::now();
                    let result = self.phase(&content, &mut blocks, shared);
                    let mut state = self.queue.lock();
                    state.since.get_or_insert(since);
                    state.account.busy +=
                        since.elapsed().as_secs_f64() * self.serve.hello.provers as f64;
                    drop(state);
                    match result {
                        Ok(part) => drop(self.outbox.send(0, Kind::Part, run, part)),
                        Err(why) => {
                            let content =
                                Writer::default().u32(u32::MAX).u32(OTHER).text(&why.to_string()).0;
                            self.outbox.send(0, Kind::Failed, run, content);
                        }
                    }
                }
                other => return Err(wrong(&format_args!("{other:?} is nothing for a worker"))),
            }
        }
    }

    fn tasks(
        &self,
        content: &[u8],
        run: u32,
        begin: &Arc<Begin>,
        challenges: Option<ProveRound>,
    ) -> Result<Vec<Task<C::Private>>, RankError> {
        let mut reader = Reader::new(content);
        let mut tasks = Vec::new();
        while reader.left() > 0 {
            let job = decode_job(&mut reader, self.wiring, self.starts).map_err(|e| wrong(&e))?;
            tasks.push(Task { job, begin: begin.clone(), run, challenges });
        }
        Ok(tasks)
    }

    /// What was committed to here, largest first and type by type.
    fn held(&self, run: u32, begin: &Arc<Begin>, challenges: ProveRound) -> Vec<Task<C::Private>> {
        let mut jobs: Vec<Job<C::Private>> =
            std::mem::take(&mut self.queue.lock().held).into_values().collect();
        let constraints = |job: &Job<C::Private>| self.serve.keys.types[job.kind].constraints();
        jobs.sort_by_key(|job| (std::cmp::Reverse(constraints(job)), job.kind, job.instance));
        let task = |job| Task { job, begin: begin.clone(), run, challenges: Some(challenges) };
        jobs.into_iter().map(task).collect()
    }

    /// Gives back what is not begun, from the end of the queue.
    fn revoke(&self, content: &[u8], run: u32) -> Result<(), RankError> {
        let most = Reader::new(content).u32("how many").map_err(|e| wrong(&e))? as usize;
        let mut state = self.queue.lock();
        let keep = state.waiting.len().saturating_sub(most);
        let given: Vec<usize> =
            state.waiting.split_off(keep).iter().map(|task| task.job.instance).collect();
        drop(state);
        let out = given
            .iter()
            .fold(Writer::default().u32(given.len() as u32), |out, i| out.u32(*i as u32));
        self.outbox.send(0, Kind::Revoked, run, out.0);
        Ok(())
    }

    fn account(&self) -> Account {
        let mut state = self.queue.lock();
        let mut account = std::mem::take(&mut state.account);
        let elapsed = state.since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
        account.idle = (elapsed * self.serve.hello.provers as f64 - account.busy).max(0.0);
        account.peak_memory = memory().map_or(0, |(_, peak)| peak);
        account
    }

    /// A phase of the aggregation, on all threads of this rank.
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
        if let BlockPhase::A { start, end, unit, .. } = &phase {
            *blocks = Some(LocalBlocks::of_range(shared, self.serve.pool, *start..*end, *unit));
        }
        let Some(blocks) = blocks else { return Err(PhaseError::Order("A").into()) };
        Ok(match phase {
            BlockPhase::A { d, .. } => Part::encode(&blocks.commit(&d)?),
            BlockPhase::B { proofs } => blocks.prove(&proofs)?.encode(),
            BlockPhase::C { r, g, b } => blocks.weigh(r, &MemoryChallenges { g, b })?.encode(),
            BlockPhase::D { s1, s2 } => Part::encode(&blocks.fold_blocks(s1, s2)?),
            BlockPhase::E { s3, ledger, q } => {
                Part::encode(&(blocks.start(s3, &q, ledger)? as u32))
            }
            BlockPhase::Halve { x } => Part::encode(&blocks.halve(x)?),
            BlockPhase::F { x } => Part::encode(&blocks.take(x)?),
            BlockPhase::G(openings) => Part::encode(&blocks.open(&openings)?),
        })
    }
}

#[derive(Debug, thiserror::Error)]
enum PhaseFailed {
    #[error(transparent)]
    Phase(#[from] PhaseError),
    #[error("a phase of the aggregation: {0}")]
    Decode(#[from] DecodeError),
}
