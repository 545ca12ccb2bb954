//! The coordinator's side: sends jobs, receives answers, and collects accounts.

use super::blocks::RankBlocks;
use super::endpoint::Endpoint;
use super::frame::Kind;
use super::hello::{Hello, compare};
use super::message::Account;
use super::ranks::{Rank, Ranks, Slices};
use super::round::{self, LISTEN};
use super::scheduling::Scheduling;
use super::slices::{Executes, execute_on_ranks};
use crate::aggregation::block::Shared;
use crate::aggregation::blocks::Blocks;
use crate::events::{Event, Phase};
use crate::keys::ProverKeys;
use crate::pool::LocalEngine;
use crate::protocol::ProveError;
use crate::protocol::answer::Answer;
use crate::protocol::coordinator::CoordinatorError;
use crate::protocol::engine::{Done, Engine, Round, sealed};
use crate::protocol::executed::Executed;
use crate::protocol::messages::{Commitment, ProofResponse};
use crate::rank_error::RankError;
use hekaton_circuit::PreparedCircuit;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All ranks as one [`Engine`], over which rank 0 runs [`prove`](crate::prove()).
#[derive(Debug)]
pub struct RankEngine {
    pool: Arc<LocalEngine>,
    scheduling: Scheduling,
    executes: Executes,
    pub(super) inner: RefCell<Ranks>,
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

/// The role of rank 0.
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
        let compared =
            gather(&endpoint, &workers).and_then(|hellos| Ok((compare(own, &hellos)?, hellos)));
        let (notes, hellos) = match compared {
            Ok(hellos) => hellos,
            // Ranks that are waiting for jobs must not wait forever.
            Err(error) => {
                for rank in &workers {
                    endpoint.direct().send(*rank, Kind::End, 0, Vec::new());
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
        let (slices, makers, givers) = (Slices::default(), BTreeMap::new(), BTreeMap::new());
        let inner = Ranks { endpoint, outbox, ranks, nonce, attempt: 0, slices, makers, givers };
        let (executes, inner) = (Executes::default(), RefCell::new(inner));
        Ok(Self { pool, scheduling, executes, inner, notes, deadline: None })
    }

    /// Sets who executes the circuit. Default: rank 0, which always executes circuits with memories of the
    /// library. With [`Executes::Ranks`], the circuit of every rank must have been prepared with its input.
    #[must_use]
    pub fn executes(mut self, executes: Executes) -> Self {
        self.executes = executes;
        self
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

    /// Runs one of the rounds.
    fn round<A: Answer>(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError> {
        let mut inner = self.inner.borrow_mut();
        let inner = &mut *inner;
        inner.begin(round);
        let mut unsent = order.to_vec();
        if let Some(challenges) = &round.challenges {
            // A new job is needed only for instances whose commitment came from the log.
            let held = inner.send_challenges(challenges, order);
            unsent.retain(|instance| !held.contains(instance));
        }
        let pending = match inner.slices.ranges.as_slice() {
            [] => {
                let coordinator = round.coordinator;
                let kinds = (0..coordinator.instances()).map(|i| coordinator.kind(i)).collect();
                self.scheduling.pending(unsent, kinds, &inner.loads())
            }
            slices => {
                let is_table = |instance| round.coordinator.is_table(instance);
                Scheduling::of_slices(&unsent, slices, is_table)
            }
        };
        round::run(inner, &self.pool, round, self.scheduling, pending, self.deadline(), done)
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

impl sealed::Sealed for RankEngine {}

impl Engine for RankEngine {
    fn pool(&self) -> &LocalEngine {
        &self.pool
    }

    fn provers(&self, _: Option<NonZeroUsize>) -> usize {
        self.inner.borrow().ranks.iter().map(|rank| rank.hello.provers).sum()
    }

    fn ranks(&self) -> usize {
        self.inner.borrow().endpoint.size()
    }

    #[allow(private_interfaces)]
    fn execute<'c>(
        &self,
        circuit: &'c PreparedCircuit<'c>,
        keys: &ProverKeys,
    ) -> Result<Executed<'c>, ProveError> {
        match self.executes {
            // The last accesses to the cells of a memory may be in any slice.
            Executes::Ranks if !circuit.layout().has_memories() => {
                let inner = &mut *self.inner.borrow_mut();
                execute_on_ranks(inner, circuit, keys, self.pool(), self.deadline())
            }
            Executes::Root | Executes::Ranks => {
                Ok(Executed::here(circuit, self.pool()).map_err(CoordinatorError::from)?)
            }
        }
    }

    fn commit_round(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, Commitment>,
    ) -> Result<Vec<Commitment>, ProveError> {
        self.round(round, order, done)
    }

    fn prove_round(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, ProofResponse>,
    ) -> Result<Vec<ProofResponse>, ProveError> {
        self.round(round, order, done)
    }

    fn blocks<'s>(&'s self, shared: &'s Shared<'s>) -> Box<dyn Blocks + 's> {
        Box::new(RankBlocks::new(&self.inner, &self.pool, self.deadline, shared))
    }

    fn maker(&self, instance: usize) -> Option<String> {
        let inner = self.inner.borrow();
        inner.makers.get(&instance).map(|index| {
            let giver = inner.givers.get(&instance).filter(|giver| *giver != index);
            match giver {
                Some(giver) => {
                    format!("{}, private input from {}", inner.name(*index), inner.name(*giver))
                }
                None => inner.name(*index),
            }
        })
    }

    fn give_up_devices(&self, instance: usize) {
        let mut inner = self.inner.borrow_mut();
        if let Some(index) = inner.makers.get(&instance).copied() {
            inner.send(index, Kind::GiveUpDevices, Vec::new());
        }
    }

    fn account(&self, phase: Phase) -> Result<Vec<Event>, ProveError> {
        let mut inner = self.inner.borrow_mut();
        if phase == Phase::Execute {
            return Ok(inner.account_of_slices());
        }
        // Before the first attempt, no rank has done anything else.
        if inner.attempt == 0 {
            return Ok(Vec::new());
        }
        let mut out: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
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
            out.insert(index, inner.account(index, phase, account));
        }
        Ok(out.into_values().flatten().collect())
    }
}
