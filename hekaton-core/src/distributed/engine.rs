//! The coordinator's side: gives out jobs, takes answers, and asks the ranks for the phases of the aggregation.

use super::blocks::RankBlocks;
use super::endpoint::Endpoint;
use super::frame::{Frame, Kind};
use super::hello::{Hello, compare};
use super::message::{Account, Answered, Writer};
use super::ranks::{Rank, Ranks};
use super::scheduling::{Load, Pending, Scheduling};
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
use hekaton_circuit::Circuit;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the coordinator listens before it looks whether it was asked to stop.
const LISTEN: Duration = Duration::from_millis(50);

/// The ranks as an [`Engine`]: rank 0 runs [`prove`](crate::prove()) over it.
#[derive(Debug)]
pub struct RankEngine {
    pool: Arc<LocalEngine>,
    scheduling: Scheduling,
    inner: RefCell<Ranks>,
    notes: Vec<String>,
    /// how long a round may take
    deadline: Option<Duration>,
}

/// Waits for what all workers say of themselves.
fn gather(endpoint: &Endpoint, workers: &[usize]) -> Result<Vec<(usize, Hello)>, RankError> {
    if workers.is_empty() {
        return Err(RankError::Handshake {
            differences: vec!["there is one rank and it is not to prove".to_owned()],
        });
    }
    let mut hellos: BTreeMap<usize, Hello> = BTreeMap::new();
    while hellos.len() < workers.len() {
        if let Some((from, frame, _)) = endpoint.receive(LISTEN)? {
            let wrong = |why: String| RankError::Message { rank: from, why };
            if frame.kind != Kind::Hello || !workers.contains(&from) {
                return Err(wrong(format!("{:?} before the handshake", frame.kind)));
            }
            hellos.insert(from, Hello::decode(&frame.content).map_err(|e| wrong(e.to_string()))?);
        }
    }
    Ok(hellos.into_iter().collect())
}

impl RankEngine {
    /// Waits for all ranks to say what they are, and compares them. `own` is what rank 0 is. With `root_proves` rank 0 has
    /// a worker of its own ([`Endpoint::with_own_worker`]).
    ///
    /// # Errors
    /// When ranks do not fit together, one is lost, or none would prove.
    pub fn start(
        endpoint: Endpoint,
        pool: Arc<LocalEngine>,
        own: &Hello,
        root_proves: bool,
        scheduling: Scheduling,
    ) -> Result<Self, RankError> {
        let workers: Vec<usize> = (usize::from(!root_proves)..endpoint.size()).collect();
        let hellos = gather(&endpoint, &workers);
        let hellos = hellos.and_then(|hellos| Ok((compare(own, &hellos)?, hellos)));
        let (notes, hellos) = match hellos {
            Ok(hellos) => hellos,
            Err(error) => {
                for rank in &workers {
                    endpoint.outbox().send(*rank, Kind::End, 0, Vec::new());
                }
                return Err(error);
            }
        };
        let outbox = endpoint.outbox();
        let ranks: Vec<Rank> = hellos
            .into_iter()
            .map(|(rank, hello)| Rank {
                rank,
                load: Load::new(hello.provers),
                hello,
                outstanding: BTreeSet::new(),
                held: Vec::new(),
                sent: 0,
                received: 0,
            })
            .collect();
        let mut nonce = [0; 4];
        // only to tell messages apart: without randomness the process number does
        getrandom::fill(&mut nonce).unwrap_or_else(|_| nonce = std::process::id().to_le_bytes());
        let nonce = u32::from_le_bytes(nonce);
        let inner = Ranks { endpoint, outbox, ranks, nonce, attempt: 0, makers: BTreeMap::new() };
        Ok(Self { pool, scheduling, inner: RefCell::new(inner), notes, deadline: None })
    }

    /// A round, or the aggregation, that takes longer ends the run as if a rank were lost. Default: no deadline.
    #[must_use]
    pub fn round_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.and_then(|deadline| Instant::now().checked_add(deadline))
    }

    /// What differs between the ranks and may, but a user should know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Drop for RankEngine {
    fn drop(&mut self) {
        self.inner.borrow().end();
    }
}

/// One round while it runs.
struct Running<'r, 'i, C: Circuit> {
    inner: &'i mut Ranks,
    round: &'r Round<'r, C>,
    scheduling: Scheduling,
    pending: Pending,
    /// bytes of the request for each instance that is given out
    requests: BTreeMap<usize, usize>,
    stopping: bool,
}

impl<C: Circuit> Running<'_, '_, C> {
    /// Gives out what the schedule says.
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
                // what a job needs is made when it goes, so that never all private inputs are here
                let job = self.round.coordinator.prove_job(instance, self.round.randomness)?;
                let before = out.0.len();
                out = encode_job(out, &job).map_err(|e| {
                    let why = format!("its private input can't be encoded: {e}");
                    WorkerError::Job { instance, why }
                })?;
                self.requests.insert(instance, out.0.len() - before);
                self.inner.ranks[index].outstanding.insert(instance);
            }
            self.inner.ranks[index].load.dry = false;
            self.inner.send(index, kind, out.0);
        }
        if self.pending.is_empty()
            && let Some((victim, count)) = self.scheduling.steal(&self.inner.loads())
        {
            self.revoke(victim, count);
        }
        Ok(())
    }

    fn revoke(&mut self, index: usize, count: usize) {
        self.inner.ranks[index].load.revoking = true;
        self.inner.send(index, Kind::Revoke, Writer::default().u32(count as u32).0);
    }

    /// Somebody asked the run to stop: nothing more is begun.
    fn stop(&mut self) {
        self.stopping = true;
        self.pending.clear();
        for index in 0..self.inner.ranks.len() {
            self.revoke(index, u32::MAX as usize);
        }
    }

    fn is_over(&self) -> bool {
        let idle = |rank: &Rank| rank.outstanding.is_empty() && !rank.load.revoking;
        self.pending.is_empty() && self.inner.ranks.iter().all(idle)
    }

    fn answer<A: Answer>(
        &mut self,
        index: usize,
        frame: &Frame,
        length: usize,
    ) -> Result<(A, Work), ProveError> {
        let Answered { answer, prover, seconds } =
            Answered::<A>::decode(&frame.content).map_err(|e| self.inner.wrong(index, &e))?;
        let instance = answer.instance();
        if !self.inner.ranks[index].outstanding.remove(&instance) {
            let why = format!("an answer for subcircuit {instance}, which it was not asked for");
            return Err(self.inner.wrong(index, &why));
        }
        if A::PHASE == Phase::Commit {
            self.inner.ranks[index].held.push(instance);
        }
        self.inner.makers.insert(instance, index);
        let bytes = (length + self.requests.remove(&instance).unwrap_or(0)) as u64;
        let prover = format!("{}, prover-{prover}", self.inner.name(index));
        Ok((answer, Work { seconds, bytes, prover }))
    }

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
                let why = format!("it gives back subcircuit {instance}, which it does not have");
                return Err(self.inner.wrong(index, &why));
            }
            if !self.stopping {
                self.pending.put_back(index, instance);
            }
        }
        Ok(())
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

    fn round<C: Circuit, A: Answer>(
        &self,
        round: &Round<'_, C>,
        order: &[usize],
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError> {
        let mut inner = self.inner.borrow_mut();
        let inner = &mut *inner;
        inner.begin(round);
        let mut order = order.to_vec();
        if let Some(challenges) = &round.challenges {
            // who committed to a subcircuit has all that it takes to prove it
            let wanted: BTreeSet<usize> = order.iter().copied().collect();
            let mut held = BTreeSet::new();
            for index in 0..inner.ranks.len() {
                let rank = &mut inner.ranks[index];
                let here = std::mem::take(&mut rank.held);
                let (prove, forget): (Vec<usize>, Vec<usize>) =
                    here.into_iter().partition(|i| wanted.contains(i));
                (rank.outstanding, rank.load.dry) = (prove.into_iter().collect(), false);
                held.extend(rank.outstanding.iter().copied());
                let content =
                    forget.iter().fold(Writer(challenges.to_bytes()), |out, i| out.u32(*i as u32));
                inner.send(index, Kind::Challenges, content.0);
            }
            order.retain(|instance| !held.contains(instance));
        }
        let pending = self.scheduling.pending(order, &inner.loads());
        let deadline = self.deadline();
        let scheduling = self.scheduling;
        let requests = BTreeMap::new();
        let mut running = Running { inner, round, scheduling, pending, requests, stopping: false };
        let mut answers = Vec::new();
        loop {
            if round.cancellation.is_cancelled() && !running.stopping {
                running.stop();
            }
            if !running.stopping {
                running.dispatch()?;
            }
            if running.is_over() {
                break;
            }
            let Some((index, frame, length)) = running.inner.next(LISTEN)? else {
                running
                    .inner
                    .check_deadline(deadline, A::PHASE, |_, rank| rank.outstanding.len())?;
                continue;
            };
            match (frame.kind, A::PHASE) {
                (Kind::Committed, Phase::Commit) | (Kind::Proven, Phase::Prove) => {
                    let (answer, work) = running.answer::<A>(index, &frame, length)?;
                    done(&answer, work)?;
                    answers.push(answer);
                }
                (Kind::Revoked, _) => running.revoked(index, &frame)?,
                (other, phase) => {
                    let why = format!("{other:?} in the {}", phase.name());
                    return Err(running.inner.wrong(index, &why));
                }
            }
        }
        if running.stopping { Err(ProveError::Cancelled) } else { Ok(answers) }
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
        // before the first attempt nobody did anything
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
                return Err(
                    inner.wrong(index, &format_args!("{:?} instead of an account", frame.kind))
                );
            }
            let account = Account::decode(&frame.content).map_err(|e| inner.wrong(index, &e))?;
            let rank = &mut inner.ranks[index];
            let account = RankAccount {
                phase,
                rank: rank.rank as u64,
                host: rank.hello.host.clone(),
                provers: rank.hello.provers as u64,
                subcircuits: account.subcircuits,
                busy_seconds: account.busy,
                idle_seconds: account.idle,
                sent_bytes: std::mem::take(&mut rank.sent),
                received_bytes: std::mem::take(&mut rank.received),
                peak_memory: account.peak_memory,
            };
            out.insert(index, account);
        }
        Ok(out.into_values().collect())
    }
}
