//! The coordinator's side: sends jobs, receives answers, and collects accounts.

use super::blocks::RankBlocks;
use super::endpoint::Endpoint;
use super::frame::{Frame, Kind};
use super::hello::{Hello, compare};
use super::message::{Account, Answered, Writer};
use super::ranks::{Rank, Ranks};
use super::scheduling::{Pending, Scheduling};
use super::serve::encode_job;
use crate::aggregation::block::Shared;
use crate::encoding::Reader;
use crate::events::{Phase, RankAccount};
use crate::pool::LocalEngine;
use crate::protocol::ProveError;
use crate::protocol::answer::Answer;
use crate::protocol::engine::{Done, Engine, Round, Work, sealed};
use crate::protocol::messages::Message;
use crate::protocol::worker::WorkerError;
use crate::rank_error::RankError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the coordinator waits for messages before it checks whether the run was cancelled.
const LISTEN: Duration = Duration::from_millis(50);

/// All ranks as one [`Engine`], over which rank 0 runs [`prove`](crate::prove()).
#[derive(Debug)]
pub struct RankEngine {
    pool: Arc<LocalEngine>,
    scheduling: Scheduling,
    inner: RefCell<Ranks>,
    notes: Vec<String>,
    /// The maximum duration of a round.
    deadline: Option<Duration>,
}

/// Waits for the descriptions of all workers (spec: distributed#handshake).
fn gather(endpoint: &Endpoint, workers: &[usize]) -> Result<Vec<(usize, Hello)>, RankError> {
    if workers.is_empty() {
        return Err(RankError::Handshake {
            differences: vec!["there is only one rank, and it does not prove".to_owned()],
        });
    }
    let mut hellos: BTreeMap<usize, Hello> = BTreeMap::new();
    while hellos.len() < workers.len() {
        if let Some((from, frame, _)) = endpoint.receive(LISTEN)? {
            let wrong = |why: String| RankError::Message { rank: from, why };
            if frame.kind != Kind::Hello || !workers.contains(&from) {
                return Err(wrong(format!("unexpected {:?} before the handshake", frame.kind)));
            }
            hellos.insert(from, Hello::decode(&frame.content).map_err(|e| wrong(e.to_string()))?);
        }
    }
    Ok(hellos.into_iter().collect())
}

/// What rank 0 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootRole {
    /// It coordinates and also proves, with a worker of its own.
    Proves,
    /// It only coordinates.
    Coordinates,
}

impl RankEngine {
    /// Waits for the descriptions of all ranks, and compares them with `own`, that of rank 0. With
    /// [`RootRole::Proves`], rank 0 has a worker of its own ([`Endpoint::with_own_worker`]).
    ///
    /// # Errors
    /// When ranks differ in keys, layout or program, one is lost, or none proves.
    pub fn start(
        endpoint: Endpoint,
        pool: Arc<LocalEngine>,
        own: &Hello,
        root: RootRole,
        scheduling: Scheduling,
    ) -> Result<Self, RankError> {
        let first = match root {
            RootRole::Proves => 0,
            RootRole::Coordinates => 1,
        };
        let workers: Vec<usize> = (first..endpoint.size()).collect();
        let hellos = gather(&endpoint, &workers);
        let hellos = hellos.and_then(|hellos| Ok((compare(own, &hellos)?, hellos)));
        let (notes, hellos) = match hellos {
            Ok(hellos) => hellos,
            // Ranks that are waiting for jobs must not wait forever.
            Err(error) => {
                for rank in &workers {
                    endpoint.outbox().send(*rank, Kind::End, 0, Vec::new());
                }
                return Err(error);
            }
        };
        let outbox = endpoint.outbox();
        let ranks = hellos.into_iter().map(|(rank, hello)| Rank::new(rank, hello)).collect();
        let mut nonce = [0; 4];
        // It only distinguishes messages of different processes: without randomness, the process
        // number will do.
        getrandom::fill(&mut nonce).unwrap_or_else(|_| nonce = std::process::id().to_le_bytes());
        let nonce = u32::from_le_bytes(nonce);
        let inner = Ranks { endpoint, outbox, ranks, nonce, attempt: 0, makers: BTreeMap::new() };
        Ok(Self { pool, scheduling, inner: RefCell::new(inner), notes, deadline: None })
    }

    /// Sets the maximum duration of a round or of a phase of the aggregation. Beyond it, the run
    /// ends as if a rank were lost. Default: no limit.
    #[must_use]
    pub fn round_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// The deadline of a round that starts now.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.and_then(|deadline| Instant::now().checked_add(deadline))
    }

    /// Differences between ranks that are allowed but that a user should know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Drop for RankEngine {
    fn drop(&mut self) {
        self.inner.borrow().end();
    }
}

/// A round in progress.
struct Running<'r, 'i> {
    inner: &'i mut Ranks,
    round: &'r Round<'r>,
    scheduling: Scheduling,
    pending: Pending,
    /// The length of the request, in bytes, for each outstanding instance.
    requests: BTreeMap<usize, usize>,
    /// Whether the run was cancelled: only answers to what is in progress are awaited.
    stopping: bool,
}

impl Running<'_, '_> {
    /// Sends the jobs that are due now.
    fn dispatch(&mut self) -> Result<(), ProveError> {
        for (index, list) in self.pending.deal(&self.inner.loads()).into_iter().enumerate() {
            if list.is_empty() {
                continue;
            }
            let (kind, mut out) = match &self.round.challenges {
                None => (Kind::CommitJobs, Writer::default()),
                Some(challenges) => (Kind::ProveJobs, Writer(challenges.to_bytes())),
            };
            for instance in list {
                // Created only now, so that rank 0 never holds all private inputs.
                let job = self.round.coordinator.prove_job(instance, self.round.randomness)?;
                let before = out.0.len();
                out = encode_job(out, &job, self.round.worker.circuit()).map_err(|e| {
                    let why = format!("cannot encode its private input: {e}");
                    WorkerError::Job { instance, why }
                })?;
                self.requests.insert(instance, out.0.len() - before);
                self.inner.ranks[index].outstanding.insert(instance);
            }
            self.inner.ranks[index].load.dry = false;
            self.inner.send(index, kind, out.0);
        }
        // Static scheduling never moves instances.
        if self.pending.is_empty()
            && let Some((victim, count)) = self.scheduling.steal(&self.inner.loads())
        {
            self.revoke(victim, u32::try_from(count).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    /// Asks a rank to return up to `count` instances that are not started.
    fn revoke(&mut self, index: usize, count: u32) {
        self.inner.ranks[index].load.revoking = true;
        self.inner.send(index, Kind::Revoke, Writer::default().u32(count).0);
    }

    /// Stops the round after a cancellation: nothing more is started.
    fn stop(&mut self) {
        self.stopping = true;
        self.pending.clear();
        for index in 0..self.inner.ranks.len() {
            self.revoke(index, u32::MAX);
        }
    }

    /// Whether all answers have arrived and all requests are answered.
    fn is_over(&self) -> bool {
        let idle = |rank: &Rank| rank.outstanding.is_empty() && !rank.load.revoking;
        self.pending.is_empty() && self.inner.ranks.iter().all(idle)
    }

    /// Accepts an answer of a rank.
    fn answer<A: Answer>(
        &mut self,
        index: usize,
        frame: &Frame,
        length: usize,
    ) -> Result<(A, Work), ProveError> {
        let Answered { answer, prover, seconds } =
            Answered::<A>::decode(&frame.content).map_err(|e| self.inner.wrong(index, &e))?;
        let instance = answer.instance();
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
        let bytes = (length + self.requests.remove(&instance).unwrap_or(0)) as u64;
        let prover = format!("{}, prover-{prover}", self.inner.name(index));
        Ok((answer, Work { seconds, bytes, prover }))
    }

    /// Takes back the instances that a rank returned.
    fn revoked(&mut self, index: usize, frame: &Frame) -> Result<(), ProveError> {
        let mut reader = Reader::new(&frame.content);
        let list = reader.count(4, "how many");
        let list = list
            .and_then(|n| (0..n).map(|_| reader.u32("instance")).collect::<Result<Vec<u32>, _>>());
        let list = list.and_then(|list| reader.finish().map(|()| list));
        let list = list.map_err(|e| self.inner.wrong(index, &e))?;
        let load = &mut self.inner.ranks[index].load;
        load.revoking = false;
        load.dry = list.is_empty();
        for instance in list.into_iter().map(|i| i as usize) {
            if !self.inner.ranks[index].outstanding.remove(&instance) {
                let why = format!("it returned subcircuit {instance}, which it does not have");
                return Err(self.inner.wrong(index, &why));
            }
            if !self.stopping {
                self.pending.put_back(index, instance);
            }
        }
        Ok(())
    }

    /// Sends jobs and takes answers until the round is over. Nothing is lost when it fails: `done`
    /// has recorded every answer that arrived.
    fn collect<A: Answer>(
        &mut self,
        deadline: Option<Instant>,
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError> {
        let mut answers = Vec::new();
        loop {
            if self.round.cancellation.is_cancelled() && !self.stopping {
                self.stop();
            }
            if !self.stopping {
                self.dispatch()?;
            }
            // Also waits for returned instances: unless the run was cancelled, they are sent to
            // others.
            if self.is_over() {
                break;
            }
            let Some((index, frame, length)) = self.inner.next(LISTEN)? else {
                self.inner.check_deadline(deadline, A::PHASE, |_, rank| rank.outstanding.len())?;
                continue;
            };
            match (frame.kind, A::PHASE) {
                (Kind::Committed, Phase::Commit) | (Kind::Proven, Phase::Prove) => {
                    let (answer, work) = self.answer::<A>(index, &frame, length)?;
                    done(&answer, work)?;
                    answers.push(answer);
                }
                (Kind::Revoked, _) => self.revoked(index, &frame)?,
                (other, phase) => {
                    let why = format!("unexpected {other:?} in the {}", phase.name());
                    return Err(self.inner.wrong(index, &why));
                }
            }
        }
        if self.stopping { Err(ProveError::Cancelled) } else { Ok(answers) }
    }
}

impl sealed::Sealed for RankEngine {}

#[allow(private_interfaces)]
impl Engine for RankEngine {
    type Pool = LocalEngine;
    type Blocks<'s> = RankBlocks<'s>;

    fn pool(&self) -> &LocalEngine {
        &self.pool
    }

    fn provers(&self, _: Option<NonZeroUsize>) -> usize {
        self.inner.borrow().ranks.iter().map(|rank| rank.hello.provers).sum()
    }

    fn ranks(&self) -> usize {
        self.inner.borrow().endpoint.size()
    }

    fn round<A: Answer>(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError> {
        let mut inner = self.inner.borrow_mut();
        let inner = &mut *inner;
        inner.begin(round);
        let mut order = order.to_vec();
        if let Some(challenges) = &round.challenges {
            // A new job is needed only for instances whose commitment came from the log.
            let held = inner.send_challenges(challenges, &order);
            order.retain(|instance| !held.contains(instance));
        }
        let pending = self.scheduling.pending(order, &inner.loads());
        let deadline = self.deadline();
        let scheduling = self.scheduling;
        let requests = BTreeMap::new();
        let mut running = Running { inner, round, scheduling, pending, requests, stopping: false };
        running.collect(deadline, done)
    }

    fn blocks<'s>(&'s self, shared: &'s Shared<'s>) -> RankBlocks<'s> {
        RankBlocks::new(&self.inner, &self.pool, self.deadline, shared)
    }

    fn maker(&self, instance: usize) -> Option<String> {
        let inner = self.inner.borrow();
        inner.makers.get(&instance).map(|index| inner.name(*index))
    }

    fn account(&self, phase: Phase) -> Result<Vec<RankAccount>, ProveError> {
        let mut inner = self.inner.borrow_mut();
        // Before the first attempt, no rank has done anything.
        if inner.attempt == 0 {
            return Ok(Vec::new());
        }
        let mut out: BTreeMap<usize, RankAccount> = BTreeMap::new();
        for index in 0..inner.ranks.len() {
            inner.send(index, Kind::Account, Vec::new());
        }
        let deadline = self.deadline();
        while out.len() < inner.ranks.len() {
            let Some((index, frame, _)) = inner.next(LISTEN)? else {
                inner.check_deadline(deadline, phase, |index, _| {
                    usize::from(!out.contains_key(&index))
                })?;
                continue;
            };
            if frame.kind != Kind::Accounted {
                return Err(inner
                    .wrong(index, &format_args!("expected an account, found {:?}", frame.kind)));
            }
            let account = Account::decode(&frame.content).map_err(|e| inner.wrong(index, &e))?;
            let rank = &mut inner.ranks[index];
            out.insert(index, rank.account(phase, &account));
        }
        Ok(out.into_values().collect())
    }
}
