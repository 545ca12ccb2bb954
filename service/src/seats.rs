//! The connections that are open, and which of them makes room for the next one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The number of connections beyond the limit. While all others are in use, they are there for requests that must be answered even then.
pub(crate) const SPARE: usize = 32;

/// The time for which a connection must have kept the server waiting before it makes room: clients far away need some for a request.
const YIELDS_AFTER: Duration = Duration::from_secs(1);

/// The longest time between two looks at a connection.
const GLANCE: Duration = Duration::from_secs(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The seats of a server.
#[derive(Debug)]
pub(crate) struct Seats {
    regular: usize,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    seats: BTreeMap<u64, Arc<Seat>>,
}

impl Table {
    fn count(&self, is_spare: bool) -> usize {
        self.seats.values().filter(|seat| seat.is_spare() == is_spare).count()
    }

    /// Ends the connection that has kept the server waiting for longest, if one has for this long.
    fn free_one(&mut self, is_spare: bool, least: Duration) -> bool {
        let now = Instant::now();
        let seats = self.seats.iter().filter(|(_, seat)| seat.is_spare() == is_spare);
        let waits = seats.filter_map(|(number, seat)| Some((seat.keeps_waiting(now)?, *number)));
        // The older one goes first if several have waited equally long.
        let longest = waits.max_by_key(|(time, number)| (*time, std::cmp::Reverse(*number)));
        let Some((_, number)) = longest.filter(|(time, _)| *time >= least) else { return false };
        // The seat is free from here on, although the connection ends a moment later: a connection
        // that is slow to end must not keep the next one out.
        if let Some(seat) = self.seats.remove(&number) {
            seat.lost.notify_one();
        }
        true
    }
}

impl Seats {
    pub(crate) fn new(regular: usize) -> Arc<Self> {
        let (table, freed) = (Mutex::default(), Notify::new());
        Arc::new(Self { regular: regular.max(1), table, freed })
    }

    fn has_regular(&self, table: &mut Table) -> bool {
        table.count(false) < self.regular || table.free_one(false, YIELDS_AFTER)
    }

    /// Takes a seat, if there is one or another connection makes room.
    pub(crate) fn sit(self: &Arc<Self>) -> Option<Seated> {
        let mut table = lock(&self.table);
        let is_spare = match self.has_regular(&mut table) {
            true => false,
            false if table.count(true) < SPARE || table.free_one(true, Duration::ZERO) => true,
            false => return None,
        };
        let number = table.next;
        table.next += 1;
        let seat = Arc::new(Seat::new(is_spare));
        table.seats.insert(number, Arc::clone(&seat));
        Some(Seated { seats: Arc::clone(self), seat, number })
    }

    /// Waits until it may be worth asking for a seat again.
    pub(crate) async fn changed(&self) {
        // Time alone makes connections yield, too.
        let _ = tokio::time::timeout(GLANCE / 10, self.freed.notified()).await;
    }

    /// Moves a connection from a spare seat to a regular one, as soon as there is one.
    pub(crate) async fn promote(&self, seat: &Seat) {
        while !self.try_promote(seat) {
            self.changed().await;
        }
    }

    fn try_promote(&self, seat: &Seat) -> bool {
        let mut table = lock(&self.table);
        let is_regular = self.has_regular(&mut table);
        if is_regular {
            seat.spare.store(false, Ordering::Relaxed);
        }
        is_regular
    }
}

/// A seat that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seated {
    pub(crate) seats: Arc<Seats>,
    pub(crate) seat: Arc<Seat>,
    number: u64,
}

impl Drop for Seated {
    fn drop(&mut self) {
        lock(&self.seats.table).seats.remove(&self.number);
        // Both are needed: the first wakes all that wait now, and the second leaves a permit for
        // one that has found no seat and does not wait yet.
        self.seats.freed.notify_waiters();
        self.seats.freed.notify_one();
    }
}

/// A connection: whose turn it is, the server's or the peer's, and since when.
#[derive(Debug)]
pub(crate) struct Seat {
    spare: AtomicBool,
    lost: Notify,
    turn: Mutex<Turn>,
}

#[derive(Debug)]
struct Turn {
    /// `true` if any bytes between two requests are the head of the next one, as in HTTP/1.1.
    has_heads: bool,
    /// The number of requests that are not answered to the end.
    open: usize,
    /// The end of the last request, and of the time for what was left of its answer.
    idle: Instant,
    /// The first byte of the next request's head.
    head: Option<Instant>,
    /// The requests for which the peer is waited for.
    waits: BTreeMap<u64, Waiting>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: Instant,
    /// The time that was spent before, and not earned back.
    before: Duration,
    /// The time at which the connection ends.
    until: Option<Instant>,
}

/// The peer is waited for, until [`Seat::came`] takes it.
#[derive(Debug)]
pub(crate) struct Wait(u64);

impl Seat {
    fn new(is_spare: bool) -> Self {
        let (idle, waits) = (Instant::now(), BTreeMap::new());
        let turn = Turn { has_heads: true, open: 0, idle, head: None, waits, next: 0 };
        Self { spare: AtomicBool::new(is_spare), lost: Notify::new(), turn: Mutex::new(turn) }
    }

    /// Returns true on a seat beyond the limit.
    pub(crate) fn is_spare(&self) -> bool {
        self.spare.load(Ordering::Relaxed)
    }

    /// The connection speaks HTTP/2: bytes between requests are not always a head.
    pub(crate) fn has_frames(&self) {
        lock(&self.turn).has_heads = false;
    }

    /// Notes that bytes have come.
    pub(crate) fn read(&self) {
        let mut turn = lock(&self.turn);
        if turn.has_heads && turn.open == 0 {
            turn.head.get_or_insert_with(Instant::now);
        }
    }

    /// The head of a request is there.
    pub(crate) fn begin(&self) {
        let mut turn = lock(&self.turn);
        turn.open += 1;
        turn.head = None;
    }

    /// A request is answered to the end, or nobody wants the answer. The time for the rest of it does not count as silence.
    pub(crate) fn end(&self, left: Duration) {
        let mut turn = lock(&self.turn);
        turn.open -= 1;
        turn.idle = turn.idle.max(Instant::now() + left);
    }

    /// The peer is waited for, in one request: at most so long, if that ends the connection.
    pub(crate) fn waits(&self, before: Duration, most: Option<Duration>) -> Wait {
        let mut turn = lock(&self.turn);
        let (since, number) = (Instant::now(), turn.next);
        turn.next += 1;
        let until = most.and_then(|most| since.checked_add(most));
        turn.waits.insert(number, Waiting { since, before, until });
        Wait(number)
    }

    /// The peer is no longer waited for. Returns how long it was.
    pub(crate) fn came(&self, wait: Wait) -> Duration {
        let waiting = lock(&self.turn).waits.remove(&wait.0);
        waiting.map_or(Duration::ZERO, |waiting| waiting.since.elapsed())
    }

    /// Returns how long everything in progress has waited for the peer; `None` if anything waits for the server.
    fn keeps_waiting(&self, now: Instant) -> Option<Duration> {
        let turn = lock(&self.turn);
        match turn.open {
            0 => Some(now.saturating_duration_since(turn.idle)),
            open if open == turn.waits.len() => {
                let spent =
                    |wait: &Waiting| now.saturating_duration_since(wait.since) + wait.before;
                turn.waits.values().map(spent).max()
            }
            _ => None,
        }
    }

    /// Waits until the connection has to make room for another one.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Waits until the peer has been waited for too long: `silence` without a request, `head` for the head of one that has begun, and
    /// as long as each answer allows.
    pub(crate) async fn overdue(&self, silence: Duration, head: Duration) {
        loop {
            let now = Instant::now();
            let due = {
                let turn = lock(&self.turn);
                match (turn.open, turn.head) {
                    (0, Some(begun)) => Some(begun + head.min(silence)),
                    (0, None) => Some(turn.idle + silence),
                    _ => turn.waits.values().filter_map(|wait| wait.until).min(),
                }
            };
            match due.map(|due| due.saturating_duration_since(now)) {
                Some(Duration::ZERO) => return,
                left => tokio::time::sleep(left.unwrap_or(GLANCE).min(GLANCE)).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn is_lost(seat: &Seated) -> bool {
        tokio::time::timeout(Duration::ZERO, seat.seat.lost()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_the_server_waiting_for_longest_makes_room() {
        let seats = Seats::new(3);
        let [silent, working, slow] = [(); 3].map(|()| seats.sit().unwrap());
        working.seat.begin();
        slow.seat.begin();
        // A body of which a byte comes now and then.
        let mut pace = Duration::ZERO;
        for _ in 0..3 {
            let wait = slow.seat.waits(pace, None);
            tokio::time::advance(5 * SECOND).await;
            pace += slow.seat.came(wait);
        }
        let _wait = slow.seat.waits(pace, None);
        tokio::time::advance(SECOND).await;
        let first = seats.sit().unwrap();
        let second = seats.sit().unwrap();
        assert!(!first.seat.is_spare() && !second.seat.is_spare());
        assert!(is_lost(&silent).await && is_lost(&slow).await);
        // Nobody else has for a second: the next ones are beyond the limit, and make room at once, the oldest one first.
        let spare: Vec<Seated> = (0..SPARE).map(|_| seats.sit().unwrap()).collect();
        assert!(spare.iter().all(|seated| seated.seat.is_spare()));
        spare[0].seat.begin();
        let next = seats.sit().unwrap();
        assert!(next.seat.is_spare());
        assert!(!is_lost(&spare[0]).await && is_lost(&spare[1]).await && !is_lost(&spare[2]).await);
        assert!(!is_lost(&working).await && !is_lost(&first).await);
        // One with a request gets a regular seat as soon as there is one.
        assert!(!seats.try_promote(&spare[0].seat));
        drop(working);
        seats.promote(&spare[0].seat).await;
        assert!(!spare[0].seat.is_spare());
        // While the server works on all requests, no connection makes room.
        first.seat.begin();
        second.seat.begin();
        for seated in spare.iter().chain([&next]) {
            seated.seat.begin();
        }
        while let Some(seated) = seats.sit() {
            seated.seat.begin();
            std::mem::forget(seated);
        }
        assert_eq!(lock(&seats.table).seats.len(), 3 + SPARE);
    }

    /// The seconds after which a connection is overdue.
    async fn overdue(seat: &Seat) -> u64 {
        let begun = Instant::now();
        seat.overdue(30 * SECOND, 10 * SECOND).await;
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_end() {
        let seats = Seats::new(8);
        assert_eq!(overdue(&seats.sit().unwrap().seat).await, 30);
        // Further bytes of a head allow no more time.
        let head = seats.sit().unwrap();
        tokio::time::advance(20 * SECOND).await;
        head.seat.read();
        tokio::time::advance(4 * SECOND).await;
        head.seat.read();
        assert_eq!(overdue(&head.seat).await, 6);
        let sent = seats.sit().unwrap();
        sent.seat.begin();
        tokio::time::advance(100 * SECOND).await;
        let _wait = sent.seat.waits(Duration::ZERO, Some(7 * SECOND));
        assert_eq!(overdue(&sent.seat).await, 7);
        // After an answer, there is time for the next request.
        let next = seats.sit().unwrap();
        next.seat.begin();
        tokio::time::advance(100 * SECOND).await;
        next.seat.end(Duration::ZERO);
        assert_eq!(overdue(&next.seat).await, 30);
        // And for the end of the answer.
        next.seat.begin();
        next.seat.end(12 * SECOND);
        assert_eq!(overdue(&next.seat).await, 42);
    }
}
