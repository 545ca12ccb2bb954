//! One round over the ranks, on rank 0: one thread deals instances and listens, and the pool encodes
//! jobs, decodes answers and checks their points, so that one thread does not bound the number of
//! provers that it can feed.

use super::encoding::Writer;
use super::endpoint::Outbox;
use super::frame::{Frame, Kind};
use super::jobs::{Decoder, Returned, Taken, encode_job, encode_own};
use super::message::{Answered, Revoke};
use super::ranks::{Rank, Ranks};
use super::scheduling::{Pending, Scheduling};
use super::wire::Incoming;
use crate::events::Phase;
use crate::pool::LocalEngine;
use crate::protocol::ProveError;
use crate::protocol::answer::{Answer, find_outside};
use crate::protocol::engine::{Done, Round, Work};
use crate::protocol::messages::Message;
use crate::protocol::worker::WorkerError;
use crate::rank_error::RankError;
use hekaton_circuit::Masking;
use rayon::Scope;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that the coordinator waits for messages before it checks whether the run was cancelled.
pub(super) const LISTEN: Duration = Duration::from_millis(50);
/// The maximum number of messages that are received before what they need is done: what has to be
/// looked up for all ranks is looked up once for all of them.
const BURST: usize = 1024;
/// The maximum number of jobs in a message.
const SENT_AT_ONCE: usize = 256;
/// The maximum number of answers that a task decodes.
const DECODED_AT_ONCE: usize = 32;
/// The number of answers whose points are checked together. Fewer are cheaper to check one by one,
/// and with this many an answer's share of the batch costs less than its decoding.
const CHECKED_AT_ONCE: usize = 1 << 13;

/// The result of a task of the pool.
enum Finished<A> {
    /// Jobs for a rank are on their way, except for those that it was too late to send.
    Sent { index: usize, unsent: Vec<usize> },
    /// Answers are decoded and recorded, up to the first error.
    Taken(Vec<A>, Option<ProveError>),
    /// The points of answers are checked; the first instance that failed.
    Checked(Option<usize>),
    /// Something that ends the run.
    Failed(ProveError),
    /// The circuit's code panicked.
    Panicked(Box<dyn Any + Send>),
}

/// An answer that is not decoded.
struct Raw {
    /// The rank that sent it, as an index.
    index: usize,
    content: Vec<u8>,
    /// The length of the message, in bytes.
    length: usize,
}

/// A rank, for messages to the user.
struct Peer {
    rank: usize,
    host: String,
}

/// The state that the tasks of a round share.
pub(super) struct Desk<'a, A> {
    round: &'a Round<'a>,
    done: Done<'a, A>,
    outbox: Outbox,
    run: u32,
    peers: Vec<Peer>,
    /// The slice that each rank executed; none if rank 0 executed the circuit.
    slices: Vec<Range<usize>>,
    /// The values and private inputs of subcircuits that ranks gave back, if rank 0 does not have
    /// them.
    returned: Mutex<BTreeMap<usize, Taken>>,
    /// Bytes sent to each rank in this round.
    sent: Vec<AtomicU64>,
    /// The length of the last request for each instance, in bytes.
    requests: Vec<AtomicU32>,
    finished: Sender<Finished<A>>,
    /// The round has failed: jobs that have not been sent are not needed.
    over: AtomicBool,
    /// Wakes the thread that listens.
    wake: Sender<Incoming>,
}

impl<A: Answer> Desk<'_, A> {
    /// Runs a task and reports its results, panics included.
    fn task(&self, work: impl FnOnce() -> Finished<A>) {
        let finished = catch_unwind(AssertUnwindSafe(work));
        // The listening thread reads both to the end of the round.
        let _ = self.finished.send(finished.unwrap_or_else(Finished::Panicked));
        let _ = self.wake.send(Incoming::Wake);
    }

    /// Makes jobs and sends them to a rank. They are made only now, so that rank 0 never holds all
    /// private inputs. Returns those that it did not send, because the round failed or was
    /// cancelled.
    fn send(&self, index: usize, instances: &[usize]) -> Result<Vec<usize>, ProveError> {
        let head = || match &self.round.challenges {
            None => Writer::default(),
            Some(challenges) => Writer(challenges.to_bytes()),
        };
        let (whole, own) = match &self.round.challenges {
            None => (Kind::CommitJobs, Kind::CommitOwn),
            Some(_) => (Kind::ProveJobs, Kind::ProveOwn),
        };
        // A rank that has the values gets only what rank 0 alone knows (spec: distributed#slices).
        let mut messages = [(whole, head(), 0), (own, head(), 0)];
        let mut done = 0;
        for instance in instances.iter().copied() {
            if self.over.load(Ordering::Relaxed) || self.round.cancellation.is_cancelled() {
                break;
            }
            let taken = self.returned().remove(&instance);
            let has_values = taken.is_none() && self.owns(index, instance);
            let (_, out, count) = &mut messages[usize::from(has_values)];
            let before = out.0.len();
            self.put(out, instance, taken, has_values)?;
            // Only the account of traffic reads it, where the maximum stands for any longer job.
            let length = u32::try_from(out.0.len() - before).unwrap_or(u32::MAX);
            self.requests[instance].store(length, Ordering::Relaxed);
            *count += 1;
            done += 1;
        }
        for (kind, out, _) in messages.into_iter().filter(|(.., count)| *count > 0) {
            let length = self.outbox.send(self.peers[index].rank, kind, self.run, out.0);
            self.sent[index].fetch_add(length as u64, Ordering::Relaxed);
        }
        Ok(instances[done..].to_vec())
    }

    /// Appends a job to a message.
    fn put(
        &self,
        out: &mut Writer,
        instance: usize,
        taken: Option<Taken>,
        has_values: bool,
    ) -> Result<(), ProveError> {
        let Round { coordinator, randomness, worker, .. } = self.round;
        let message = std::mem::take(out);
        if has_values {
            *out = encode_own(message, &coordinator.own_job(instance, randomness));
            return Ok(());
        }
        let job = match taken {
            Some(Taken { values, private }) => {
                coordinator.job_of(instance, values, Some(private), randomness)
            }
            None => coordinator.prove_job(instance, randomness)?,
        };
        *out = encode_job(message, &job, worker.circuit()).map_err(|e| {
            let why = format!("cannot encode its private input: {e}");
            WorkerError::Job { instance, why }
        })?;
        Ok(())
    }

    /// Reports whether a rank executed an instance itself. Tables follow from what all ranks look
    /// up.
    fn owns(&self, index: usize, instance: usize) -> bool {
        let is_table = self.round.coordinator.is_table(instance);
        !is_table && self.slices.get(index).is_some_and(|slice| slice.contains(&instance))
    }

    /// Locks the values and private inputs that ranks gave back, by instance.
    fn returned(&self) -> MutexGuard<'_, BTreeMap<usize, Taken>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes answers and records them. The subgroup membership of their points is checked later;
    /// readers of the log check it again, so a bad answer in the log does no harm.
    fn take(&self, list: &[Raw]) -> Finished<A> {
        let mut answers = Vec::with_capacity(list.len());
        let mut failed = None;
        for raw in list {
            match self.take_one(raw) {
                Ok(answer) => answers.push(answer),
                // Later answers are recorded all the same.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Finished::Taken(answers, failed)
    }

    fn take_one(&self, raw: &Raw) -> Result<A, ProveError> {
        let Peer { rank, host } = &self.peers[raw.index];
        let Answered { answer, prover, times, look_ups } = Answered::<A>::decode(&raw.content)
            .map_err(|e| {
                let why = format!("{e} (on {host})");
                ProveError::from_rank(RankError::Message { rank: *rank, why })
            })?;
        let request = self.requests[answer.instance()].load(Ordering::Relaxed);
        let bytes = raw.length as u64 + u64::from(request);
        let prover = format!("rank {rank} on {host}, prover-{prover}");
        (self.done)(&answer, Work { times, bytes, prover, look_ups, device: None })?;
        Ok(answer)
    }

    /// Checks that the points of answers are in their subgroups (spec: distributed#messages).
    fn check(answers: &[A]) -> Finished<A> {
        Finished::Checked(find_outside(answers).map(|at| answers[at].instance()))
    }
}

/// Sends the jobs of a round and takes its answers. Nothing is lost when it fails: `done` has
/// recorded every answer that arrived.
pub(super) fn run<A: Answer>(
    inner: &mut Ranks,
    pool: &LocalEngine,
    round: &Round<'_>,
    scheduling: Scheduling,
    pending: Pending,
    deadline: Option<Instant>,
    done: Done<'_, A>,
) -> Result<Vec<A>, ProveError> {
    let (finished, results) = channel();
    let desk = Desk {
        round,
        done,
        outbox: inner.outbox.clone(),
        run: inner.run(),
        peers: (inner.ranks.iter())
            .map(|rank| Peer { rank: rank.rank, host: rank.hello.host.clone() })
            .collect(),
        slices: inner.slices.ranges.clone(),
        returned: Mutex::default(),
        sent: inner.ranks.iter().map(|_| AtomicU64::new(0)).collect(),
        requests: (0..round.coordinator.instances()).map(|_| AtomicU32::new(0)).collect(),
        finished,
        over: AtomicBool::new(false),
        wake: inner.endpoint.inbox(),
    };
    // The scope ends when all tasks have, also after an error.
    let result = pool.in_place_scope(|scope| {
        let tasks = Tasks { scope, desk: &desk, sending: 0, others: 0 };
        let threads = pool.threads();
        let (answers, checked) = (Vec::new(), 0);
        let stop = Stop::No;
        Running { inner, tasks, results, scheduling, pending, answers, checked, threads, stop }
            .collect(deadline)
            .inspect_err(|_| desk.over.store(true, Ordering::Relaxed))
    });
    for (rank, sent) in inner.ranks.iter_mut().zip(&desk.sent) {
        rank.sent += sent.load(Ordering::Relaxed);
    }
    result
}

/// The tasks of a round.
struct Tasks<'s, 'scope, A> {
    scope: &'s Scope<'scope>,
    desk: &'scope Desk<'scope, A>,
    /// Tasks that send jobs and are not finished.
    sending: usize,
    /// Other tasks that are not finished.
    others: usize,
}

impl<'scope, A: Answer + 'scope> Tasks<'_, 'scope, A> {
    fn send(&mut self, index: usize, instances: Vec<usize>) {
        let desk = self.desk;
        self.sending += 1;
        self.scope.spawn(move |_| {
            desk.task(|| match desk.send(index, &instances) {
                Ok(unsent) => Finished::Sent { index, unsent },
                Err(error) => Finished::Failed(error),
            });
        });
    }

    fn take(&mut self, list: Vec<Raw>) {
        let desk = self.desk;
        self.others += 1;
        self.scope.spawn(move |_| desk.task(|| desk.take(&list)));
    }

    fn check(&mut self, answers: Vec<A>) {
        let desk = self.desk;
        self.others += 1;
        self.scope.spawn(move |_| desk.task(|| Desk::check(&answers)));
    }

    fn running(&self) -> usize {
        self.sending + self.others
    }
}

/// The progress of a cancellation: once a round is cancelled, only answers to jobs in progress
/// are awaited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    /// Cancelled, but jobs are still being sent.
    Asked,
    /// The ranks were asked to return jobs that they have not started.
    Announced,
}

/// A round in progress, as the thread that listens sees it.
struct Running<'r, 's, 'scope, A> {
    inner: &'r mut Ranks,
    tasks: Tasks<'s, 'scope, A>,
    results: Receiver<Finished<A>>,
    scheduling: Scheduling,
    pending: Pending,
    answers: Vec<A>,
    /// The number of answers whose points are checked, or being checked.
    checked: usize,
    threads: usize,
    stop: Stop,
}

impl<'scope, A: Answer + 'scope> Running<'_, '_, 'scope, A> {
    fn collect(mut self, deadline: Option<Instant>) -> Result<Vec<A>, ProveError> {
        loop {
            if self.stop == Stop::No && self.tasks.desk.round.cancellation.is_cancelled() {
                self.stop = Stop::Asked;
                self.pending.clear();
            }
            match self.stop {
                Stop::No => self.dispatch(),
                // A rank must not be asked for jobs that reach it after the question.
                Stop::Asked if self.tasks.sending == 0 => {
                    self.stop = Stop::Announced;
                    (0..self.inner.ranks.len()).for_each(|index| self.revoke(index, usize::MAX));
                }
                Stop::Asked | Stop::Announced => {}
            }
            if self.is_over() {
                break;
            }
            // The time of rank 0's own work must not count against the deadline of a rank.
            if !self.listen()? && self.tasks.sending == 0 && !self.idle() {
                self.inner.check_deadline(deadline, A::PHASE, |_, rank| rank.outstanding.len())?;
            }
            while let Ok(finished) = self.results.try_recv() {
                self.finish(finished)?;
            }
        }
        if self.stop == Stop::No { Ok(self.answers) } else { Err(ProveError::Cancelled) }
    }

    /// Sends the jobs that are due now.
    fn dispatch(&mut self) {
        if !self.pending.is_empty() {
            for (index, list) in self.pending.deal(&self.inner.loads()).into_iter().enumerate() {
                if list.is_empty() {
                    continue;
                }
                self.inner.ranks[index].outstanding.extend(list.iter().copied());
                self.inner.ranks[index].load.dry = false;
                for part in list.chunks(SENT_AT_ONCE) {
                    self.tasks.send(index, part.to_vec());
                }
            }
        }
        // Static scheduling never moves instances. A rank must not be asked for jobs that reach it
        // after the question.
        if self.pending.is_empty()
            && self.tasks.sending == 0
            && let Some((victim, count)) = self.scheduling.steal(&self.inner.loads())
        {
            self.revoke(victim, count);
        }
    }

    /// Asks a rank to return up to `count` instances that are not started.
    fn revoke(&mut self, index: usize, count: usize) {
        // Values are needed to do the jobs elsewhere, not to give them up.
        let with_values = !self.inner.slices.ranges.is_empty() && self.stop == Stop::No;
        let revoke = Revoke { most: count, with_values };
        let rank = &mut self.inner.ranks[index];
        rank.load.revoking = true;
        rank.asked.push_back(revoke);
        self.inner.send(index, Kind::Revoke, revoke.encode());
    }

    /// Reports whether all ranks have answered everything that they were sent.
    fn idle(&self) -> bool {
        let idle = |rank: &Rank| rank.outstanding.is_empty() && !rank.load.revoking;
        self.inner.ranks.iter().all(idle)
    }

    /// Reports whether all answers have arrived and are checked, and all requests are answered.
    fn is_over(&mut self) -> bool {
        if !self.pending.is_empty()
            || self.tasks.running() > 0
            || self.stop == Stop::Asked
            || !self.idle()
        {
            return false;
        }
        let rest = self.answers.len() - self.checked;
        if rest == 0 {
            return true;
        }
        // Few answers are checked one by one, so all threads take a share.
        let share = match rest < CHECKED_AT_ONCE / 2 {
            true => rest.div_ceil(self.threads),
            false => rest.div_ceil(self.threads).max(CHECKED_AT_ONCE / 2),
        };
        for part in self.answers[self.checked..].chunks(share) {
            self.tasks.check(part.to_vec());
        }
        self.checked = self.answers.len();
        false
    }

    /// Receives messages, and hands answers to the pool. Reports whether anything arrived.
    fn listen(&mut self) -> Result<bool, ProveError> {
        let mut raw = Vec::new();
        let received = self.receive(&mut raw);
        // Answers that arrived before an error are recorded, too.
        let share = raw.len().div_ceil(self.threads).clamp(1, DECODED_AT_ONCE);
        let mut left = raw.into_iter().peekable();
        while left.peek().is_some() {
            self.tasks.take(left.by_ref().take(share).collect());
        }
        received
    }

    fn receive(&mut self, raw: &mut Vec<Raw>) -> Result<bool, ProveError> {
        let mut wait = LISTEN;
        for received in 0..BURST {
            let Some((index, frame, length)) = self.inner.next(wait)? else {
                return Ok(received > 0);
            };
            wait = Duration::ZERO;
            match (frame.kind, A::PHASE) {
                (Kind::Committed, Phase::Commit) | (Kind::Proven, Phase::Prove) => {
                    raw.push(self.answer(index, frame, length)?);
                }
                (Kind::Revoked, _) => self.revoked(index, &frame)?,
                (other, phase) => {
                    let why = format!("unexpected {other:?} in the {}", phase.name());
                    return Err(self.inner.wrong(index, &why));
                }
            }
        }
        Ok(true)
    }

    /// Accepts an answer of a rank, before it is decoded.
    fn answer(&mut self, index: usize, frame: Frame, length: usize) -> Result<Raw, ProveError> {
        let instance =
            Answered::<A>::instance(&frame.content).map_err(|e| self.inner.wrong(index, &e))?;
        // Accepted only from the rank that was asked, so a rank cannot answer for another one, nor
        // twice (spec: distributed#collect).
        if !self.inner.ranks[index].outstanding.remove(&instance) {
            let why = format!("an answer for subcircuit {instance}, which it was not asked for");
            return Err(self.inner.wrong(index, &why));
        }
        // The rank keeps the job, and proves it when the challenges arrive
        // (spec: distributed#jobs).
        if A::PHASE == Phase::Commit {
            self.inner.ranks[index].held.push(instance);
        }
        self.inner.makers.insert(instance, index);
        Ok(Raw { index, content: frame.content, length })
    }

    /// Takes back the instances that a rank returned.
    fn revoked(&mut self, index: usize, frame: &Frame) -> Result<(), ProveError> {
        let wrong = |inner: &Ranks, why: &dyn Display| Err(inner.wrong(index, why));
        let round = self.tasks.desk.round;
        let circuit = self.tasks.desk.round.worker.circuit();
        let decoder = Decoder { circuit, masking: Masking::Unmasked };
        let Returned { with_values, list } = match decoder.revoked(&frame.content) {
            Ok(returned) => returned,
            Err(error) => return wrong(self.inner, &error),
        };
        match self.inner.ranks[index].asked.pop_front() {
            None => {
                return wrong(self.inner, &"it returned subcircuits, and was not asked for any");
            }
            Some(Revoke { most, .. }) if list.len() > most => {
                let why = format!("it returned {} subcircuits, asked for {most}", list.len());
                return wrong(self.inner, &why);
            }
            Some(asked) if asked.with_values != with_values => {
                return wrong(self.inner, &"it returned subcircuits without values, or with them");
            }
            Some(_) => {}
        }
        let rank = &mut self.inner.ranks[index];
        (rank.load.revoking, rank.load.dry) = (!rank.asked.is_empty(), list.is_empty());
        for (instance, taken) in list {
            if !self.inner.ranks[index].outstanding.remove(&instance) {
                let why = format!("it returned subcircuit {instance}, which it does not have");
                return wrong(self.inner, &why);
            }
            // What a table needs, rank 0 has counted itself.
            if let Some(taken) = taken
                && !round.coordinator.is_table(instance)
            {
                // Otherwise another rank would be blamed for them. Without buses, private inputs have no
                // digest, so messages name both the rank that gave them and the rank that used them.
                if !round.coordinator.are_values_of(instance, &taken.values, &taken.private) {
                    let why = format!("it returned other values of subcircuit {instance}");
                    return wrong(self.inner, &why);
                }
                self.inner.givers.insert(instance, index);
                self.tasks.desk.returned().insert(instance, taken);
            }
            if self.stop == Stop::No {
                self.pending.put_back(index, instance);
            }
        }
        Ok(())
    }

    /// Takes the results of a task.
    fn finish(&mut self, finished: Finished<A>) -> Result<(), ProveError> {
        match finished {
            Finished::Sent { index, unsent } => {
                self.tasks.sending -= 1;
                let outstanding = &mut self.inner.ranks[index].outstanding;
                outstanding.retain(|instance| !unsent.contains(instance));
            }
            Finished::Taken(answers, failed) => {
                self.tasks.others -= 1;
                self.answers.extend(answers);
                if let Some(error) = failed {
                    return Err(error);
                }
                if self.answers.len() - self.checked >= CHECKED_AT_ONCE {
                    self.tasks.check(self.answers[self.checked..].to_vec());
                    self.checked = self.answers.len();
                }
            }
            Finished::Checked(None) => self.tasks.others -= 1,
            Finished::Checked(Some(instance)) => {
                let maker = self.inner.makers.get(&instance).copied().unwrap_or(0);
                let why = format!(
                    "a point in its answer for subcircuit {instance} is not in the subgroup"
                );
                return Err(self.inner.wrong(maker, &why));
            }
            Finished::Failed(error) => return Err(error),
            Finished::Panicked(panic) => resume_unwind(panic),
        }
        Ok(())
    }
}
