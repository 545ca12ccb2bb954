//! The least rate at which a peer must send what it sends, and take what it gets.

use crate::seats::{Seat, Wait};
use axum::BoxError;
use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The most bytes of a connection that HTTP/1.1 reads ahead, and has ready to be written. The heads of requests must fit, too.
pub(crate) const BUFFERED: usize = 1 << 17;

/// A request body that comes too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body comes too slowly: at least {rate} bytes per second are expected")]
pub struct Late {
    rate: u32,
}

/// Returns true if [`Late`] is an error or one of its causes.
pub fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<Late>())
}

/// The time for which a peer may still be waited for. Waiting spends it, and bytes earn it back, up to the grace: a peer below the
/// rate runs out of it, however it distributes its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    rate: u32,
    grace: Duration,
    credit: Duration,
}

impl Pace {
    /// Expects `rate` bytes per second after a time of grace.
    pub(crate) fn new(rate: u32, grace: Duration) -> Self {
        // `time_of` divides by the rate, and a `Duration` that is infinite panics.
        Self { rate: rate.max(1), grace, credit: grace }
    }

    fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / f64::from(self.rate))
    }

    /// The peer was waited for.
    fn waited(&mut self, time: Duration) {
        self.credit = self.credit.saturating_sub(time);
    }

    /// Bytes have moved.
    fn moved(&mut self, bytes: usize) {
        self.credit = (self.credit + self.time_of(bytes)).min(self.grace);
    }

    /// Bytes have moved for which the peer was waited for all along.
    fn took(&mut self, bytes: usize, time: Duration) {
        let credit = self.credit + self.time_of(bytes);
        self.credit = credit.saturating_sub(time).min(self.grace);
    }

    /// The time that has been spent and not earned back.
    fn spent(&self) -> Duration {
        self.grace - self.credit
    }
}

/// A request body whose sender must keep up a rate. Only time in which a handler waits for bytes counts.
pub(crate) struct Received<B> {
    body: B,
    pace: Pace,
    seat: Arc<Seat>,
    wait: Option<Wait>,
    sleep: Pin<Box<Sleep>>,
}

impl<B> Received<B> {
    pub(crate) fn new(body: B, pace: Pace, seat: Arc<Seat>) -> Self {
        Self { body, pace, seat, wait: None, sleep: Box::pin(tokio::time::sleep(pace.grace)) }
    }

    fn came(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.pace.waited(self.seat.came(wait));
        }
    }
}

impl<B> Drop for Received<B> {
    fn drop(&mut self) {
        self.came();
    }
}

impl<B> Body for Received<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.came();
            if let Some(Ok(frame)) = &frame {
                this.pace.moved(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.wait.is_none() {
            this.wait = Some(this.seat.waits(this.pace.spent(), None));
            this.sleep.as_mut().reset(Instant::now() + this.pace.credit);
        }
        if this.sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.came();
        Poll::Ready(Some(Err(Late { rate: this.pace.rate }.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The most bytes that are handed to a connection at once. What it has is no longer seen here, and it takes whatever it gets.
const PART: usize = 64 << 10;

/// A response body whose reader must keep up a rate. The connection asks for the next part once it has room for it, so what passes
/// between two parts is the reader's time; the seat ends a connection whose reader has used up its time.
pub(crate) struct Sent<B> {
    body: B,
    /// The rest of a frame that is larger than a part.
    rest: Bytes,
    /// The bytes that the connection has got.
    handed: usize,
    pace: Pace,
    seat: Arc<Seat>,
    wait: Option<(Wait, usize)>,
}

impl<B> Sent<B> {
    /// Takes over a request that [begins](Seat::begin) on the seat, and ends it.
    pub(crate) fn new(body: B, pace: Pace, seat: Arc<Seat>) -> Self {
        Self { body, rest: Bytes::new(), handed: 0, pace, seat, wait: None }
    }

    fn taken(&mut self) {
        if let Some((wait, bytes)) = self.wait.take() {
            self.pace.took(bytes, self.seat.came(wait));
        }
    }
}

impl<B> Drop for Sent<B> {
    fn drop(&mut self) {
        self.taken();
        // The connection has no more than that of what is not sent yet, and its reader has time for it.
        let left = self.handed.min(BUFFERED + PART);
        self.seat.end(self.pace.time_of(left));
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Sent<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        this.taken();
        if this.rest.is_empty() {
            let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => this.rest = bytes,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let part = this.rest.split_to(PART.min(this.rest.len()));
        let most = this.pace.credit + this.pace.time_of(part.len());
        this.wait = Some((this.seat.waits(this.pace.spent(), Some(most)), part.len()));
        this.handed = this.handed.saturating_add(part.len());
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (of_body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower().saturating_add(rest));
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the second in which a peer is given up that sends `bytes` every `every` seconds, if it is in an hour.
    fn given_up(bytes: usize, every: u64) -> Option<u64> {
        let mut pace = Pace::new(1000, Duration::from_secs(10));
        (every..=3600).step_by(usize::try_from(every).unwrap()).find(|_| {
            let is_over = pace.credit < Duration::from_secs(every);
            pace.waited(Duration::from_secs(every));
            pace.moved(bytes);
            is_over
        })
    }

    #[test]
    fn a_peer_below_the_rate_runs_out_of_time() {
        assert_eq!(given_up(1000, 1), None);
        assert_eq!(given_up(8000, 8), None);
        // A byte now and then does not help, and no bytes in advance allow a longer silence than the grace.
        assert_eq!(given_up(1, 5), Some(15));
        assert_eq!(given_up(1 << 30, 11), Some(11));
        assert!(given_up(500, 1).is_some_and(|second| second <= 21));
        assert!(given_up(990, 1).is_some());
    }

    #[test]
    fn a_reader_needs_the_whole_rate() {
        let mut pace = Pace::new(1000, Duration::from_secs(10));
        let is_kept = |pace: &mut Pace, times: u32, milliseconds| {
            (0..times).all(|_| {
                let (bytes, time) = (1000, Duration::from_millis(milliseconds));
                let most = pace.credit + pace.time_of(bytes);
                pace.took(bytes, time);
                time < most
            })
        };
        assert!(is_kept(&mut pace, 3600, 1000));
        // What was taken quickly allows no more than the grace.
        assert!(is_kept(&mut pace, 3600, 10));
        assert_eq!(pace.credit, pace.grace);
        assert!(!is_kept(&mut pace, 50, 1250));
    }

    /// A frame of any size is handed over in parts, one when the one before it is taken.
    #[tokio::test(start_paused = true)]
    async fn a_large_frame_is_handed_over_in_parts() {
        let seats = crate::seats::Seats::new(1);
        let seated = seats.sit().unwrap();
        seated.seat.begin();
        let bytes: Vec<u8> = (0..=250).cycle().take(10 * PART + 1).collect();
        let pace = Pace::new(u32::try_from(PART).unwrap(), Duration::from_secs(2));
        let body = axum::body::Body::from(bytes.clone());
        let mut sent = Sent::new(body, pace, Arc::clone(&seated.seat));
        let mut found = Vec::new();
        while !sent.is_end_stream() {
            assert_eq!(sent.size_hint().exact(), Some((bytes.len() - found.len()) as u64));
            let part = futures_util::future::poll_fn(|cx| Pin::new(&mut sent).poll_frame(cx));
            let part = part.await.unwrap().unwrap().into_data().unwrap();
            assert!(part.len() <= PART);
            found.extend_from_slice(&part);
            // Each takes its time, all of them together more than any grace.
            let overdue = seated.seat.overdue(Duration::ZERO, Duration::ZERO);
            let second = Duration::from_secs(1);
            assert!(tokio::time::timeout(second, overdue).await.is_err(), "{}", found.len());
        }
        assert_eq!(found, bytes);
        // And so does what the connection has not sent by then.
        drop(sent);
        let begun = Instant::now();
        seated.seat.overdue(Duration::from_secs(2), Duration::ZERO).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
    }
}
