//! The coordinator's view of the ranks, and the messages to and from them.

use super::encoding::Writer;
use super::endpoint::{Endpoint, Outbox};
use super::frame::{Frame, Kind};
use super::hello::Hello;
use super::message::{Account, Begin, Revoke};
use super::scheduling::Load;
use crate::encoding::{DecodeError, Reader};
use crate::events::{DeviceAccount, Event, Phase, RankAccount};
use crate::protocol::ProveError;
use crate::protocol::engine::Round;
use crate::protocol::messages::{Message, ProveRound};
use crate::protocol::worker::WorkerError;
use crate::rank_error::RankError;
use crate::system::Times;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The coordinator's view of a rank.
#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) rank: usize,
    pub(crate) hello: Hello,
    pub(crate) load: Load,
    /// Requests to give subcircuits back that the rank has not answered.
    pub(crate) asked: VecDeque<Revoke>,
    /// Instances that were sent to the rank and are not answered.
    pub(crate) outstanding: BTreeSet<usize>,
    /// Instances that the rank committed to in this attempt and has not proven.
    pub(crate) held: Vec<usize>,
    /// Bytes sent since the last account, and received below.
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// All worker ranks, and the network to them.
#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) endpoint: Endpoint,
    pub(crate) outbox: Outbox,
    pub(crate) ranks: Vec<Rank>,
    /// Identifies this process, so that messages for another one are recognized.
    pub(crate) nonce: u32,
    pub(crate) attempt: u32,
    /// The slices that the ranks executed themselves.
    pub(super) slices: Slices,
    /// The rank that computed an instance's answers, as an index into `ranks`.
    pub(crate) makers: BTreeMap<usize, usize>,
    /// The rank that gave an instance's values and private input for another rank.
    pub(crate) givers: BTreeMap<usize, usize>,
}

/// The slices of an execution that ranks keep.
#[derive(Debug, Default)]
pub(super) struct Slices {
    /// The slice of each rank, by index; none if rank 0 executed the circuit.
    pub(super) ranges: Vec<Range<usize>>,
    /// The time that each rank took, until it is reported.
    pub(super) times: Vec<Times>,
}

impl Rank {
    pub(crate) fn new(rank: usize, hello: Hello) -> Self {
        let load = Load::new(hello.provers);
        let (outstanding, held) = (BTreeSet::new(), Vec::new());
        let asked = VecDeque::new();
        Self { rank, hello, load, asked, outstanding, held, sent: 0, received: 0 }
    }

    /// Returns the work of the rank in a phase, with the bytes to and from it since the previous
    /// account.
    fn account(&mut self, phase: Phase, account: &Account) -> RankAccount {
        RankAccount {
            phase,
            rank: self.rank as u64,
            host: self.hello.host.clone(),
            provers: self.hello.provers as u64,
            subcircuits: account.subcircuits,
            busy_seconds: account.busy,
            idle_seconds: account.idle,
            cpu_seconds: account.cpu,
            sent_bytes: std::mem::take(&mut self.sent),
            received_bytes: std::mem::take(&mut self.received),
            peak_memory: account.peak_memory,
        }
    }

    /// The load of the rank, with the current number of outstanding instances.
    pub(crate) fn load(&self) -> Load {
        Load { outstanding: self.outstanding.len(), ..self.load }
    }
}

impl Ranks {
    pub(crate) fn loads(&self) -> Vec<Load> {
        self.ranks.iter().map(Rank::load).collect()
    }

    /// Returns the events of a rank's account of a phase.
    pub(crate) fn account(&mut self, index: usize, phase: Phase, account: Account) -> Vec<Event> {
        let name = self.name(index);
        let mut events = vec![Event::Rank(self.ranks[index].account(phase, &account))];
        let notice = |notice: String| Event::Notice { message: format!("{name}: {notice}") };
        events.extend(account.notices.into_iter().map(notice));
        events.extend(account.devices.into_iter().map(|(device, work)| {
            let device = format!("{device} of {name}");
            Event::Device(DeviceAccount { phase, device, work })
        }));
        events
    }

    /// Returns the work of the ranks for their slices; the times are taken, so a second call
    /// returns an empty list.
    pub(crate) fn account_of_slices(&mut self) -> Vec<Event> {
        let times = std::mem::take(&mut self.slices.times);
        let ranks = self.ranks.iter_mut().zip(times).zip(&self.slices.ranges);
        let account = |((rank, times), range): ((&mut Rank, Times), &Range<usize>)| {
            let account = Account {
                subcircuits: range.len() as u64,
                busy: times.seconds,
                cpu: times.cpu_seconds,
                ..Account::default()
            };
            Event::Rank(rank.account(Phase::Execute, &account))
        };
        ranks.map(account).collect()
    }

    /// Releases all ranks: there is no more work.
    pub(crate) fn end(&self) {
        // Without leaders in between, one of which may be lost.
        let outbox = self.endpoint.direct();
        for rank in &self.ranks {
            outbox.send(rank.rank, Kind::End, self.run(), Vec::new());
        }
    }

    /// The mark of messages of this process and attempt.
    pub(crate) fn run(&self) -> u32 {
        self.nonce.wrapping_add(self.attempt)
    }

    /// Sends a message of this attempt to a rank, by index into `ranks`.
    pub(crate) fn send(&mut self, to: usize, kind: Kind, content: Vec<u8>) {
        let run = self.run();
        let rank = &mut self.ranks[to];
        rank.sent += self.outbox.send(rank.rank, kind, run, content) as u64;
    }

    /// [`Self::send`] to a leader itself.
    pub(crate) fn send_direct(&mut self, to: usize, kind: Kind, content: Vec<u8>) {
        let (run, outbox) = (self.run(), self.endpoint.direct());
        let rank = &mut self.ranks[to];
        rank.sent += outbox.send(rank.rank, kind, run, content) as u64;
    }

    /// The leader of a rank's group, or the rank itself, as indices into `ranks`.
    pub(crate) fn leader(&self, index: usize) -> usize {
        let (first, rank) = (self.ranks[0].rank, self.ranks[index].rank);
        self.endpoint.groups().map_or(rank, |groups| groups.leader(rank)) - first
    }

    /// Waits for the next message of this attempt, and returns its sender as an index into `ranks`
    /// and its length as well. A job that a rank cannot do is an error.
    pub(crate) fn next(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<(usize, Frame, usize)>, ProveError> {
        let received = self.endpoint.receive(timeout).map_err(ProveError::from_rank)?;
        let Some((from, frame, length)) = received else { return Ok(None) };
        // Workers have consecutive numbers.
        let first = self.ranks.first().map_or(0, |rank| rank.rank);
        let index = from.checked_sub(first).filter(|index| *index < self.ranks.len());
        let Some(index) = index else {
            let why = "it is not a worker of this run".to_owned();
            return Err(ProveError::from_rank(RankError::Message { rank: from, why }));
        };
        self.ranks[index].received += length as u64;
        // Answers to an earlier attempt are under other randomness and must not be mixed in
        // (spec: distributed#messages).
        if frame.run != self.run() {
            tracing::debug!(from, kind = ?frame.kind, "ignored an answer to an earlier attempt");
            return Ok(None);
        }
        if frame.kind == Kind::Failed {
            let mut reader = Reader::new(&frame.content);
            let mut parts = || -> Result<_, DecodeError> {
                Ok((reader.u32("instance")?, reader.u32("code")?, reader.text("message")?))
            };
            let parts = parts();
            let (number, code, message) = parts.map_err(|e| self.wrong(index, &e))?;
            // A pole (zero denominator) is not the rank's fault: the run restarts with other
            // challenges (spec: memory-check#pole). `Attempt` checks the claim, and names the rank
            // if it is false.
            if code == super::serve::POLE {
                let instance = number as usize;
                if !self.ranks[index].outstanding.contains(&instance) {
                    let why =
                        format_args!("a pole of subcircuit {instance}, which it was not asked for");
                    return Err(self.wrong(index, &why));
                }
                self.makers.insert(instance, index);
                return Err(WorkerError::Pole { instance }.into());
            }
            // Its private input may be wrong, and rank 0 did not make it.
            let giver = self.givers.get(&(number as usize)).filter(|giver| **giver != index);
            let from = giver.map_or_else(String::new, |giver| {
                format!(" (its private input came from {})", self.name(*giver))
            });
            let Rank { rank, hello, .. } = &self.ranks[index];
            return Err(ProveError::from_rank(RankError::Failed {
                rank: *rank,
                host: hello.host.clone(),
                message: message + &from,
            }));
        }
        Ok(Some((index, frame, length)))
    }

    /// The error for an invalid message of a rank.
    pub(crate) fn wrong(&self, index: usize, why: &dyn std::fmt::Display) -> ProveError {
        let Rank { rank, hello, .. } = &self.ranks[index];
        ProveError::from_rank(RankError::Message {
            rank: *rank,
            why: format!("{why} (on {})", hello.host),
        })
    }

    /// After the deadline, reports the rank with the most outstanding answers as lost.
    /// `awaited(i, rank)` is the number of answers still expected from `ranks[i]`.
    pub(crate) fn check_deadline(
        &self,
        deadline: Option<Instant>,
        phase: Phase,
        awaited: impl Fn(usize, &Rank) -> usize,
    ) -> Result<(), ProveError> {
        if deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return Ok(());
        }
        let slow = self.ranks.iter().enumerate().max_by_key(|(index, rank)| awaited(*index, rank));
        let rank = slow.map_or(0, |(_, rank)| rank.rank);
        let why = format!("{} exceeded its deadline, and this rank has not answered", phase.name());
        Err(ProveError::from_rank(RankError::Lost { rank, why }))
    }

    /// The name of a rank for messages.
    pub(crate) fn name(&self, index: usize) -> String {
        let Rank { rank, hello, .. } = &self.ranks[index];
        format!("rank {rank} on {}", hello.host)
    }

    /// Starts the prove round: sends the challenges to all ranks, each of which proves the subcircuits that it
    /// committed to. Returns the instances that need no job.
    pub(crate) fn send_challenges(
        &mut self,
        challenges: &ProveRound,
        order: &[usize],
    ) -> BTreeSet<usize> {
        // A rank has everything it needs to prove its committed subcircuits (spec: distributed#jobs).
        // The message lists those that the log already has, so that the rank drops them.
        let wanted: BTreeSet<usize> = order.iter().copied().collect();
        let mut held = BTreeSet::new();
        for index in 0..self.ranks.len() {
            let rank = &mut self.ranks[index];
            let here = std::mem::take(&mut rank.held);
            let (prove, forget): (Vec<usize>, Vec<usize>) =
                here.into_iter().partition(|i| wanted.contains(i));
            (rank.outstanding, rank.load.dry) = (prove.into_iter().collect(), false);
            held.extend(rank.outstanding.iter().copied());
            let content = forget.iter().fold(Writer(challenges.to_bytes()), |out, i| out.count(*i));
            self.send(index, Kind::Challenges, content.0);
        }
        held
    }

    /// Announces an attempt to all ranks, once.
    pub(crate) fn begin(&mut self, round: &Round<'_>) {
        if self.attempt == round.attempt {
            return;
        }
        // What ranks hold belongs to the old randomness; from here on their answers to it are
        // ignored (spec: zero-knowledge#restart).
        self.attempt = round.attempt;
        let begin = Begin { witness_check: round.worker.witness_check() };
        for index in 0..self.ranks.len() {
            let rank = &mut self.ranks[index];
            rank.held.clear();
            rank.outstanding.clear();
            rank.load = Load::new(rank.hello.provers);
            rank.asked.clear();
            self.send(index, Kind::Begin, begin.encode());
        }
    }
}
