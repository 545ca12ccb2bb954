//! One rank's end of the network: a function sends messages, and a channel receives them.

use super::RankError;
use super::frame::{Frame, Kind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// What arrives at a rank.
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
    gone: Option<Gone>,
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
    /// Sends a message and returns its length.
    pub(crate) fn send(&self, to: usize, kind: Kind, run: u32, content: Vec<u8>) -> usize {
        let bytes = Frame { kind, run, content }.to_bytes();
        let length = bytes.len();
        (self.0)(to, bytes);
        length
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
        (Self { rank, size, post: Arc::new(post), inbox, own: own.clone(), gone: None }, own)
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
            Self { rank, size, post: Arc::new(post), inbox, own, gone }
        };
        inboxes.into_iter().enumerate().map(end).collect()
    }

    /// Splits the end in two, for a coordinator and a worker in the same process, both with the
    /// number of this rank. Returns the coordinator's end first.
    #[must_use]
    pub fn with_own_worker(self) -> (Self, Self) {
        let Self { rank, size, post, inbox, own, gone } = self;
        // Messages between the two never touch the transport, which need not support sending to
        // itself.
        let (to_worker, worker_inbox) = channel();
        let (worker_own, to_coordinator) = (to_worker.clone(), own.clone());
        let coordinator_post = move |to: usize, bytes| {
            if to == rank {
                let _ = to_worker.send(Incoming::Message { from: rank, bytes });
            } else {
                post(to, bytes);
            }
        };
        let worker_post = move |_: usize, bytes| {
            let _ = to_coordinator.send(Incoming::Message { from: rank, bytes });
        };
        (
            Self { rank, size, post: Arc::new(coordinator_post), inbox, own, gone },
            Self {
                rank,
                size,
                post: Arc::new(worker_post),
                inbox: worker_inbox,
                own: worker_own,
                gone: None,
            },
        )
    }

    /// Test double: replaces each outgoing message by none, one or several.
    #[cfg(test)]
    pub(crate) fn tampering(
        self,
        change: impl Fn(Frame) -> Vec<Frame> + Send + Sync + 'static,
    ) -> Self {
        let Self { rank, size, post, inbox, own, gone } = self;
        let post: Post = Arc::new(move |to: usize, bytes: Vec<u8>| {
            let frames = change(Frame::from_bytes(bytes).expect("our own messages are whole"));
            frames.into_iter().for_each(|frame| post(to, frame.to_bytes()));
        });
        Self { rank, size, post, inbox, own, gone }
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
        match self.inbox.recv_timeout(timeout) {
            Ok(Incoming::Message { from, bytes }) => {
                let length = bytes.len();
                let frame = Frame::from_bytes(bytes);
                let frame =
                    frame.map_err(|e| RankError::Message { rank: from, why: e.to_string() })?;
                Ok(Some((from, frame, length)))
            }
            Ok(Incoming::Lost { rank, why }) => Err(RankError::Lost { rank, why }),
            Ok(Incoming::Wake) | Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(RankError::Lost { rank: 0, why: "the network was closed".into() })
            }
        }
    }
}
