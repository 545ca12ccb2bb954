//! One rank's end of the network: a function sends messages, and a channel receives them.

use super::RankError;
use super::frame::{Frame, Kind};
use super::groups::{Groups, pack, reported, unpack};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// An event in a rank's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A complete message.
    Message {
        /// The rank that sent it.
        from: usize,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// No message: wakes the receiver because another thread of this rank has finished a task.
    Wake,
    /// A rank is, or appears to be, lost.
    Lost {
        /// The rank.
        rank: usize,
        /// The evidence.
        why: String,
    },
}

/// Sends a message to a rank.
type Post = Arc<dyn Fn(usize, Vec<u8>) + Send + Sync>;

/// One rank's end of the network. A transport (MPI, or threads) delivers incoming messages and
/// sends outgoing ones; it must preserve the order of the messages from one rank to another.
pub struct Endpoint {
    rank: usize,
    size: usize,
    post: Post,
    inbox: Receiver<Incoming>,
    /// A sender into `inbox`.
    own: Sender<Incoming>,
    /// Reports this rank as lost when the end is dropped.
    _gone: Option<Gone>,
    /// Sends without leaders in between.
    direct: Post,
    groups: Option<Groups>,
    /// Messages that a leader passed on together.
    unpacked: RefCell<VecDeque<(usize, Vec<u8>)>>,
}

/// Reports to rank 0 that a rank that is a thread has ended.
struct Gone {
    rank: usize,
    root: Sender<Incoming>,
}

impl Drop for Gone {
    fn drop(&mut self) {
        // Rank 0 may have ended first.
        let _ =
            self.root.send(Incoming::Lost { rank: self.rank, why: "its thread has ended".into() });
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The sending half of an endpoint, for several threads.
#[derive(Clone)]
pub(crate) struct Outbox(Post);

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outbox")
    }
}

impl Outbox {
    fn frame(kind: Kind, run: u32, content: Vec<u8>) -> Vec<u8> {
        Frame { kind, run, content }.to_bytes()
    }

    /// Sends a message and returns its length.
    pub(crate) fn send(&self, to: usize, kind: Kind, run: u32, content: Vec<u8>) -> usize {
        let bytes = Self::frame(kind, run, content);
        let length = bytes.len();
        self.send_bytes(to, bytes);
        length
    }

    /// Passes a message on.
    pub(crate) fn send_bytes(&self, to: usize, bytes: Vec<u8>) {
        (self.0)(to, bytes);
    }
}

impl Endpoint {
    /// The end of rank `rank` of `size`. `post` sends a message to another rank without waiting;
    /// the transport puts what arrives into the returned sender.
    pub fn new(
        rank: usize,
        size: usize,
        post: impl Fn(usize, Vec<u8>) + Send + Sync + 'static,
    ) -> (Self, Sender<Incoming>) {
        let (own, inbox) = channel();
        (Self::of(rank, size, Arc::new(post), inbox, own.clone(), None), own)
    }

    fn of(
        rank: usize,
        size: usize,
        post: Post,
        inbox: Receiver<Incoming>,
        own: Sender<Incoming>,
        gone: Option<Gone>,
    ) -> Self {
        let (direct, unpacked) = (post.clone(), RefCell::default());
        Self { rank, size, post, inbox, own, _gone: gone, direct, groups: None, unpacked }
    }

    /// Puts a leader between rank 0 and each group of up to `fanout` other ranks, if there are more
    /// ranks than one group has (spec: distributed#leaders). All ranks must do the same.
    #[must_use]
    pub fn with_leaders(mut self, fanout: NonZeroUsize) -> Self {
        self.groups = Groups::new(self.size, fanout);
        let (direct, rank) = (self.direct.clone(), self.rank);
        if let Some(groups) = self.groups {
            self.post = Arc::new(move |to: usize, bytes: Vec<u8>| {
                let through = groups.leader(if rank == 0 { to } else { rank });
                if rank == 0 && through > 0 {
                    let bytes = Outbox::frame(Kind::Bundle, 0, pack(&[(to, bytes)]));
                    direct(through, bytes);
                } else if rank == 0 || through == rank {
                    direct(to, bytes);
                } else {
                    direct(through, bytes);
                }
            });
        }
        self
    }

    /// The groups of ranks, if there are leaders.
    pub(crate) fn groups(&self) -> Option<Groups> {
        self.groups
    }

    /// The group that this rank leads.
    pub(crate) fn led(&self) -> Option<Range<usize>> {
        self.groups?.members(self.rank)
    }

    /// Returns the sending half without leaders in between.
    pub(crate) fn direct(&self) -> Outbox {
        Outbox(self.direct.clone())
    }

    /// An end for a worker in the same process as this one, which receives what the worker sends.
    /// Also returns the worker's inbox.
    pub(crate) fn for_own_worker(&self) -> (Self, Sender<Incoming>) {
        let (own, rank) = (self.own.clone(), self.rank);
        let post = move |_: usize, bytes| {
            let _ = own.send(Incoming::Message { from: rank, bytes });
        };
        Self::new(self.rank, self.size, post)
    }

    /// Creates a network of threads: element i is the end of rank i. A rank whose end is dropped is
    /// lost.
    pub fn network(size: usize) -> Vec<Self> {
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
        let end = |(rank, inbox): (usize, Receiver<Incoming>)| {
            let (all, own) = (senders.clone(), senders[rank].clone());
            let post = move |to: usize, bytes| {
                if let Some(sender) = all.get(to) {
                    // A rank that has ended receives nothing.
                    let _ = sender.send(Incoming::Message { from: rank, bytes });
                }
            };
            let gone = (rank > 0).then(|| Gone { rank, root: senders[0].clone() });
            Self::of(rank, size, Arc::new(post), inbox, own, gone)
        };
        inboxes.into_iter().enumerate().map(end).collect()
    }

    /// Splits the end in two, for a coordinator and a worker in the same process, both with the
    /// number of this rank. Returns the coordinator's end first.
    #[must_use]
    pub fn with_own_worker(self) -> (Self, Self) {
        let (worker, to_worker) = self.for_own_worker();
        let rank = self.rank;
        // Messages between the two never touch the transport, which need not support sending to
        // itself.
        let with_worker = |post: Post| -> Post {
            let to_worker = to_worker.clone();
            Arc::new(move |to: usize, bytes| {
                if to == rank {
                    let _ = to_worker.send(Incoming::Message { from: rank, bytes });
                } else {
                    post(to, bytes);
                }
            })
        };
        let (post, direct) = (with_worker(self.post.clone()), with_worker(self.direct.clone()));
        (Self { post, direct, ..self }, worker)
    }

    /// Test double: replaces each outgoing message by none, one or several.
    #[cfg(test)]
    pub(crate) fn tampering(
        self,
        change: impl Fn(Frame) -> Vec<Frame> + Send + Sync + 'static,
    ) -> Self {
        let direct = self.direct.clone();
        let direct: Post = Arc::new(move |to: usize, bytes: Vec<u8>| {
            let frames = change(Frame::from_bytes(bytes).expect("our own messages are whole"));
            frames.into_iter().for_each(|frame| direct(to, frame.to_bytes()));
        });
        let fanout = self.groups.map(Groups::fanout);
        let end = Self { post: direct.clone(), direct, groups: None, ..self };
        match fanout {
            Some(fanout) => end.with_leaders(fanout),
            None => end,
        }
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns a sender into this end's own inbox, for transports and watchdogs.
    pub fn inbox(&self) -> Sender<Incoming> {
        self.own.clone()
    }

    /// Returns the sending half.
    pub(crate) fn outbox(&self) -> Outbox {
        Outbox(self.post.clone())
    }

    /// Waits for the next message, and returns its sender and its length as well; `None` if none
    /// arrives in time.
    ///
    /// # Errors
    /// When a rank is lost, or sent bytes that are not a message.
    pub(crate) fn receive(
        &self,
        timeout: Duration,
    ) -> Result<Option<(usize, Frame, usize)>, RankError> {
        let packed = self.unpacked.borrow_mut().pop_front();
        if let Some((from, bytes)) = packed {
            return self.open(from, bytes, None);
        }
        match self.receive_raw(timeout)? {
            None => Ok(None),
            Some((from, bytes)) => {
                let group = self.groups.filter(|_| self.rank == 0);
                self.open(from, bytes, group.and_then(|groups| groups.members(from)))
            }
        }
    }

    /// Decodes a message. A bundle of a leader, whose group is given, is unpacked, and its first
    /// message is the next one; there are none in bundles.
    fn open(
        &self,
        from: usize,
        bytes: Vec<u8>,
        group: Option<Range<usize>>,
    ) -> Result<Option<(usize, Frame, usize)>, RankError> {
        let length = bytes.len();
        let wrong =
            |e: &dyn std::fmt::Display| RankError::Message { rank: from, why: e.to_string() };
        let frame = Frame::from_bytes(bytes).map_err(|e| wrong(&e))?;
        let Some(groups) = self.groups else { return Ok(Some((from, frame, length))) };
        // Ranks of a group receive from their leader what rank 0 sends.
        if self.rank > 0 && from == groups.leader(self.rank) {
            return Ok(Some((0, frame, length)));
        }
        match (frame.kind, group, groups.members(from).filter(|_| self.rank == 0)) {
            (Kind::Bundle, Some(group), _) => {
                let messages = unpack(&frame.content, &group).map_err(|e| wrong(&e))?;
                self.unpacked.borrow_mut().extend(messages);
                let first = self.unpacked.borrow_mut().pop_front();
                first.map_or(Ok(None), |(from, bytes)| self.open(from, bytes, None))
            }
            (Kind::Report, _, Some(group)) => {
                Err(reported(&frame.content, &group).unwrap_or_else(|e| wrong(&e)))
            }
            _ => Ok(Some((from, frame, length))),
        }
    }

    /// Waits for the next message as it is, and returns its sender as well; `None` if none arrives in
    /// time.
    ///
    /// # Errors
    /// When a rank is lost.
    pub(super) fn receive_raw(
        &self,
        timeout: Duration,
    ) -> Result<Option<(usize, Vec<u8>)>, RankError> {
        match self.inbox.recv_timeout(timeout) {
            Ok(Incoming::Message { from, bytes }) => Ok(Some((from, bytes))),
            Ok(Incoming::Lost { rank, why }) => Err(RankError::Lost { rank, why }),
            Ok(Incoming::Wake) | Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(RankError::Lost { rank: 0, why: "the network was closed".into() })
            }
        }
    }
}
