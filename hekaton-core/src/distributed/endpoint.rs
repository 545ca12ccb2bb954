//! One rank's end of the network: messages go out by a function, and come in by a channel.

use super::RankError;
use super::frame::{Frame, Kind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Something that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A message, whole.
    Message {
        /// The rank that sent it.
        from: usize,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A rank is gone, or so it seems.
    Lost {
        /// The rank.
        rank: usize,
        /// What makes it seem so.
        why: String,
    },
}

type Post = Arc<dyn Fn(usize, Vec<u8>) + Send + Sync>;

/// One rank's end of the network. A transport (MPI, or threads) gives it what comes in and takes what goes out; it must
/// keep the order of the messages from one rank to another.
pub struct Endpoint {
    rank: usize,
    size: usize,
    post: Post,
    inbox: Receiver<Incoming>,
    /// into the same inbox
    own: Sender<Incoming>,
    /// tells the others when it is dropped
    gone: Option<Gone>,
}

/// Tells rank 0 when a rank that is a thread ends.
struct Gone {
    rank: usize,
    root: Sender<Incoming>,
}

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = self.root.send(Incoming::Lost { rank: self.rank, why: "its thread ended".into() });
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

/// A way to send, for threads.
#[derive(Clone)]
pub(crate) struct Outbox(Post);

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outbox")
    }
}

impl Outbox {
    /// Sends; gives the length of the message.
    pub(crate) fn send(&self, to: usize, kind: Kind, run: u32, content: Vec<u8>) -> usize {
        let bytes = Frame { kind, run, content }.to_bytes();
        let length = bytes.len();
        (self.0)(to, bytes);
        length
    }
}

impl Endpoint {
    /// Rank `rank` of `size`. `post` sends a message to another rank, without waiting; what comes in is put into the
    /// sender that is given back.
    pub fn new(
        rank: usize,
        size: usize,
        post: impl Fn(usize, Vec<u8>) + Send + Sync + 'static,
    ) -> (Self, Sender<Incoming>) {
        let (own, inbox) = channel();
        (Self { rank, size, post: Arc::new(post), inbox, own: own.clone(), gone: None }, own)
    }

    /// A network of threads: rank i's end is the i-th. A rank whose end is dropped is lost.
    pub fn network(size: usize) -> Vec<Self> {
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
        let end = |(rank, inbox): (usize, Receiver<Incoming>)| {
            let (all, own) = (senders.clone(), senders[rank].clone());
            let post = move |to: usize, bytes| {
                if let Some(sender) = all.get(to) {
                    // a rank that ended hears nothing
                    let _ = sender.send(Incoming::Message { from: rank, bytes });
                }
            };
            let gone = (rank > 0).then(|| Gone { rank, root: senders[0].clone() });
            Self { rank, size, post: Arc::new(post), inbox, own, gone }
        };
        inboxes.into_iter().enumerate().map(end).collect()
    }

    /// Gives this process a worker of its own beside the coordinator: both have this rank's number.
    #[must_use]
    pub fn with_own_worker(self) -> (Self, Self) {
        let Self { rank, size, post, inbox, own, gone } = self;
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

    /// Test double: what goes out is changed; nothing, one message or several take a message's place.
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

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A way to put something into this end's own inbox, for transports and watchers.
    pub fn inbox(&self) -> Sender<Incoming> {
        self.own.clone()
    }

    pub(crate) fn outbox(&self) -> Outbox {
        Outbox(self.post.clone())
    }

    /// The next message; `None` when none came in time. Gives its length, too.
    ///
    /// # Errors
    /// When a rank is lost, or sent something that is no message.
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
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(RankError::Lost { rank: 0, why: "the network ended".into() })
            }
        }
    }
}
