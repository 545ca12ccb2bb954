//! What the coordinator knows of the ranks, and the messages to and from them.

use super::endpoint::{Endpoint, Outbox};
use super::frame::{Frame, Kind};
use super::hello::Hello;
use super::message::Begin;
use super::scheduling::Load;
use crate::encoding::{DecodeError, Reader};
use crate::events::Phase;
use crate::protocol::ProveError;
use crate::protocol::engine::Round;
use crate::protocol::worker::WorkerError;
use crate::rank_error::RankError;
use hekaton_circuit::Circuit;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What is known of a rank.
#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) rank: usize,
    pub(crate) hello: Hello,
    pub(crate) load: Load,
    /// given out, not answered
    pub(crate) outstanding: BTreeSet<usize>,
    /// committed to there, not proven yet
    pub(crate) held: Vec<usize>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) endpoint: Endpoint,
    pub(crate) outbox: Outbox,
    pub(crate) ranks: Vec<Rank>,
    /// of this process, so that a message of another is recognised
    pub(crate) nonce: u32,
    pub(crate) attempt: u32,
    /// who made an instance's answers, as an index into `ranks`
    pub(crate) makers: BTreeMap<usize, usize>,
}

impl Rank {
    pub(crate) fn load(&self) -> Load {
        Load { outstanding: self.outstanding.len(), ..self.load }
    }
}

impl Ranks {
    pub(crate) fn loads(&self) -> Vec<Load> {
        self.ranks.iter().map(Rank::load).collect()
    }

    pub(crate) fn end(&self) {
        for rank in &self.ranks {
            self.outbox.send(rank.rank, Kind::End, self.run(), Vec::new());
        }
    }

    /// Marks the messages of this process and attempt.
    pub(crate) fn run(&self) -> u32 {
        self.nonce.wrapping_add(self.attempt)
    }

    pub(crate) fn send(&mut self, to: usize, kind: Kind, content: Vec<u8>) {
        let run = self.run();
        let rank = &mut self.ranks[to];
        rank.sent += self.outbox.send(rank.rank, kind, run, content) as u64;
    }

    /// The next message of this attempt, and who sent it, as an index into `ranks`. What ranks can't do is an error.
    pub(crate) fn next(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<(usize, Frame, usize)>, ProveError> {
        let received = self.endpoint.receive(timeout).map_err(ProveError::from_rank)?;
        let Some((from, frame, length)) = received else { return Ok(None) };
        let Some(index) = self.ranks.iter().position(|rank| rank.rank == from) else {
            let why = "it is not a worker of this run".to_owned();
            return Err(ProveError::from_rank(RankError::Message { rank: from, why }));
        };
        self.ranks[index].received += length as u64;
        if frame.run != self.run() {
            tracing::debug!(from, kind = ?frame.kind, "an answer to an earlier attempt");
            return Ok(None);
        }
        if frame.kind == Kind::Failed {
            let mut reader = Reader::new(&frame.content);
            let mut parts = || -> Result<_, DecodeError> {
                Ok((reader.u32("instance")?, reader.u32("code")?, reader.text("message")?))
            };
            let parts = parts();
            let (instance, code, message) = parts.map_err(|e| self.wrong(index, &e))?;
            if code == super::serve::POLE {
                return Err(WorkerError::Pole { instance: instance as usize }.into());
            }
            let Rank { rank, hello, .. } = &self.ranks[index];
            return Err(ProveError::from_rank(RankError::Failed {
                rank: *rank,
                host: hello.host.clone(),
                message,
            }));
        }
        Ok(Some((index, frame, length)))
    }

    pub(crate) fn wrong(&self, index: usize, why: &dyn std::fmt::Display) -> ProveError {
        let Rank { rank, hello, .. } = &self.ranks[index];
        ProveError::from_rank(RankError::Message {
            rank: *rank,
            why: format!("{why} (on {})", hello.host),
        })
    }

    /// Whoever has not answered yet is as good as lost when the time is over; `awaited` says of an index into `ranks` how
    /// much is awaited from it.
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
        let slow = slow.map(|(_, rank)| rank);
        let why = format!(
            "{} took longer than the round deadline allows, and it has not answered",
            phase.name()
        );
        Err(ProveError::from_rank(RankError::Lost { rank: slow.map_or(0, |rank| rank.rank), why }))
    }

    pub(crate) fn name(&self, index: usize) -> String {
        let Rank { rank, hello, .. } = &self.ranks[index];
        format!("rank {rank} on {}", hello.host)
    }

    /// Tells all ranks that an attempt begins, if it is another one than before.
    pub(crate) fn begin<C: Circuit>(&mut self, round: &Round<'_, C>) {
        if self.attempt == round.attempt {
            return;
        }
        self.attempt = round.attempt;
        let begin = Begin {
            randomness: round.randomness.clone(),
            witness_check: round.worker.witness_check(),
        };
        for index in 0..self.ranks.len() {
            let rank = &mut self.ranks[index];
            rank.held.clear();
            rank.outstanding.clear();
            rank.load = Load::new(rank.hello.provers);
            self.send(index, Kind::Begin, begin.encode());
        }
    }
}
