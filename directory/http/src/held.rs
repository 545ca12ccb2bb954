//! Large answers.

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The number of bytes that are handed to the connection at once: so the rest is here until it is sent.
const PART: usize = 64 << 10;

/// The time after which an answer may have to make room for one that waits.
const YIELDS_AFTER: Duration = Duration::from_secs(10);

/// The longest time between two looks at whether one has to.
const GLANCE: Duration = Duration::from_secs(1);

/// An answer that made room for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("large answers wait, and this one was read most slowly")]
pub(crate) struct Yielded;

/// The large answers that are on their way, which share some memory.
#[derive(Debug)]
pub(crate) struct Answers {
    most: usize,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// The bytes of all answers.
    bytes: usize,
    answers: BTreeMap<u64, Answer>,
}

#[derive(Debug)]
struct Answer {
    since: Instant,
    bytes: Vec<u8>,
    /// The number of bytes that are sent.
    sent: usize,
}

impl Table {
    fn remove(&mut self, number: u64) {
        if let Some(answer) = self.answers.remove(&number) {
            self.bytes -= answer.bytes.len();
        }
    }

    /// Ends the answer that is read most slowly, if there is one that has had its time.
    fn free_one(&mut self) -> bool {
        let now = Instant::now();
        let rates = self.answers.iter().filter_map(|(number, answer)| {
            let time = now.saturating_duration_since(answer.since);
            // By its rate instead of what is left: whoever reads slowly on purpose must not hold
            // the memory against others.
            let rate = answer.sent as f64 / time.as_secs_f64();
            (time >= YIELDS_AFTER).then_some((rate, *number))
        });
        let slowest = rates.min_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((_, number)) = slowest {
            self.remove(number);
        }
        slowest.is_some()
    }
}

impl Answers {
    /// Answers that have `most` bytes together; a single one may have more.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, table: Mutex::default(), freed: Notify::new() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for an answer, or another one makes room.
    pub(crate) async fn send(self: &Arc<Self>, mut bytes: Vec<u8>) -> Held {
        loop {
            match self.try_send(bytes) {
                Ok(held) => return held,
                Err(refused) => bytes = refused,
            }
            // Time alone makes answers yield, too.
            let _ = tokio::time::timeout(GLANCE, self.freed.notified()).await;
        }
    }

    fn try_send(self: &Arc<Self>, bytes: Vec<u8>) -> Result<Held, Vec<u8>> {
        let (mut table, left) = (self.table(), bytes.len());
        // A single answer may be larger than the limit, or it could never be sent.
        while table.bytes.saturating_add(left) > self.most && !table.answers.is_empty() {
            // None has had its time. The caller looks again after a second at most.
            if !table.free_one() {
                return Err(bytes);
            }
        }
        let number = table.next;
        table.next += 1;
        table.bytes += left;
        table.answers.insert(number, Answer { since: Instant::now(), bytes, sent: 0 });
        Ok(Held { answers: Arc::clone(self), number, left })
    }
}

/// The body of a large answer, which is in memory until it is sent, its connection is gone, or it makes room.
#[derive(Debug)]
pub(crate) struct Held {
    answers: Arc<Answers>,
    number: u64,
    left: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Also if the client has disconnected: nothing else would give the memory back.
        self.answers.table().remove(self.number);
        self.answers.freed.notify_one();
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = Yielded;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Yielded>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let mut table = this.answers.table();
        let Some(answer) = table.answers.get_mut(&this.number) else {
            // An error aborts the connection, so the client does not take a part of a history for
            // all of it.
            return Poll::Ready(Some(Err(Yielded)));
        };
        let rest = &answer.bytes[answer.sent..];
        // A copy: a part of the same memory would keep all of it, while the connection has it.
        let part = Bytes::copy_from_slice(&rest[..PART.min(rest.len())]);
        answer.sent += part.len();
        this.left -= part.len();
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4 * PART;

    fn part(held: &mut Held) -> Option<Result<usize, Yielded>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(held).poll_frame(&mut context) {
            Poll::Ready(part) => part.map(|part| part.map(|part| part.into_data().unwrap().len())),
            Poll::Pending => panic!("it is here"),
        }
    }

    /// Runs a future with a paused clock, which advances when all that is left is to wait.
    fn run<T>(work: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(work)
    }

    #[test]
    fn the_slowest_reader_makes_room() {
        run(async {
            let answers = Answers::new(MOST);
            let mut slow = answers.send(vec![1; 2 * PART]).await;
            let mut quick = answers.send(vec![2; 2 * PART]).await;
            assert_eq!(part(&mut quick), Some(Ok(PART)));
            let begun = Instant::now();
            let mut next = answers.send(vec![3; PART]).await;
            assert!((YIELDS_AFTER..2 * YIELDS_AFTER).contains(&begun.elapsed()));
            assert_eq!(part(&mut slow), Some(Err(Yielded)));
            assert_eq!((part(&mut quick), part(&mut quick)), (Some(Ok(PART)), None));
            assert_eq!((part(&mut next), next.is_end_stream()), (Some(Ok(PART)), true));
            drop((slow, quick, next));
            assert_eq!(answers.table().bytes, 0);
        });
    }

    #[test]
    fn what_is_sent_makes_room_at_once() {
        run(async {
            let answers = Answers::new(MOST);
            // Alone, it may be larger than all of them together.
            let large = answers.send(vec![1; 2 * MOST]).await;
            let begun = Instant::now();
            let waits = tokio::time::timeout(YIELDS_AFTER / 2, answers.send(vec![2; 1])).await;
            assert!(waits.is_err(), "there is no room");
            assert_eq!(begun.elapsed(), YIELDS_AFTER / 2);
            drop(large);
            let mut many = Vec::new();
            for _ in 0..MOST / PART {
                many.push(answers.send(vec![3; PART]).await);
            }
            assert_eq!(begun.elapsed(), YIELDS_AFTER / 2);
            assert_eq!(answers.table().bytes, MOST);
        });
    }
}
