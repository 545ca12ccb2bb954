//! The threads of a server: intake, the two stages of a commit, and what opens the database again after a failure.

use super::compute::{Compute, Computed, Tiling};
use super::error::Error;
use super::folder::Directory;
use super::head_file::Keep as _;
use super::intake;
use super::options::{Mode, Options};
use super::outside::Heads;
use super::pending::Pending;
use super::proofs;
use super::reading::Reading;
use super::recover::{Recovered, recover, signed_head};
use super::rows;
use super::sequencer::{Sequencer, Visible};
use super::shared::{Phase, Shared};
use super::store::{Handle, Opened, Store, Table};
use super::time::{cpu_time, fail_point, unix_time};
use super::update::Accepted;
use super::view::View;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// The maximum number of computed commits that wait to be written.
const QUEUE: usize = 4;

/// The time that a server waits before it opens its database again: at first, and at most.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// An open database with what was recovered from it.
#[derive(Debug)]
pub(crate) struct Session {
    store: Arc<Handle>,
    compute: Compute,
    sequencer: Sequencer,
    recovered: Pending,
    open: BTreeSet<u64>,
    next: u64,
    proven: u32,
    view: View,
}

impl Session {
    /// Opens the database, and brings it to where everything that was signed is there, and nothing else.
    pub(crate) fn open(
        directory: &Directory,
        options: &Options,
        opened: Opened,
    ) -> Result<Self, Error> {
        let store = Arc::new(Handle::new((directory.opener)(opened)?));
        let (mut heads, head) = Heads::read(&directory.heads)?;
        // The head on another disk, or a record that was seen, may be ahead, whose rows are on the disk then: it is finished as it is.
        let head = signed_head(&*store, head, directory)?;
        // It may have been renamed and not synced: then an older one would be back after a loss of power, while what this one
        // says was answered, and what it makes superfluous was removed.
        heads.advance(head)?;
        let found = recover(&*store, head, &directory.parameters)?;
        let Recovered { format, signed, record, tree, pending: updates, next } = found;
        let levels = usize::from(format.levels);
        let resident = options.resident.min(64);
        let Options { has_witness, max_steps, .. } = *options;
        let tiling = Tiling { levels, resident, has_witness, max_steps };
        let pair = (record, tree.clone());
        let compute = Compute::new(&*store, tiling, pair, head.commit, &directory.key)?;
        let sequencer = Sequencer::new(head, &record, Box::new(heads));
        let proven = proofs::proven(&*store)?;
        let open = updates.iter().map(|update| update.number).collect();
        let mut recovered = Pending::default();
        updates.into_iter().for_each(|update| recovered.push(update));
        let (commit, view_store) = (head.commit, Arc::clone(&store));
        let view = View { store: view_store, signed, record, tree, levels, commit };
        Ok(Self { store, compute, sequencer, recovered, open, next, proven, view })
    }
}

/// The state in which a server starts or resumes.
#[derive(Debug)]
pub(crate) enum Begin {
    /// An open database.
    Session(Box<Session>),
    /// One that is only read for the time being, and why.
    Reading(Box<Reading>, Error),
    /// Nothing, and why.
    Nothing(Error),
}

impl Begin {
    /// Opens the database, to be written if that is possible, and else to be read.
    pub(crate) fn open(directory: &Directory, options: &Options, opened: Opened) -> Self {
        match Session::open(directory, options, opened) {
            Ok(session) => Self::Session(Box::new(session)),
            Err(error) if !error.may_pass() => Self::Nothing(error),
            Err(error) => match Reading::open(directory) {
                Ok(reading) => Self::Reading(Box::new(reading), error),
                Err(_) => Self::Nothing(error),
            },
        }
    }
}

/// Runs sessions until the server stops.
pub(crate) fn supervise(shared: &Shared, directory: &Directory, first: Begin) {
    struct Stop<'s>(&'s Shared);
    impl Drop for Stop<'_> {
        /// Runs also if a thread panics: nobody waits for a server that has ended.
        fn drop(&mut self) {
            let mut state = self.0.lock();
            if !matches!(state.phase, Phase::Stopped(_)) {
                let panicked = std::thread::panicking().then(|| Arc::new(Error::Panicked));
                state.phase = Phase::Stopped(panicked);
            }
            // Dropping the channels of senders gives them an error; otherwise they would wait
            // forever.
            state.incoming.clear();
            state.incoming_bytes = 0;
            drop(state);
            *self.0.view.write().unwrap_or_else(PoisonError::into_inner) = None;
            self.0.changed.notify_all();
        }
    }
    let _stop = Stop(shared);
    let mut begin = first;
    let mut wait = MIN_BACKOFF;
    loop {
        let (error, store) = match begin {
            Begin::Session(session) => {
                let store = Arc::clone(&session.store);
                let before = session.sequencer.confirmed();
                let ended = run(shared, *session);
                // Checked also where something other than the stages wrote last: the mark has to stay then.
                let result = ended.and_then(|()| Ok(store.check()?));
                // Only progress resets the wait: a database that opens and fails at the first write
                // would be opened again without a pause.
                if shared.lock().confirmed > before {
                    wait = MIN_BACKOFF;
                }
                match result {
                    Ok(()) => {
                        close(shared, &store);
                        directory.remove_mark();
                        return;
                    }
                    Err(error) => (error, Some(store)),
                }
            }
            Begin::Reading(reading, error) => (error, Some(reading.show(shared))),
            Begin::Nothing(error) => (error, None),
        };
        if let Some(error) = pause(shared, directory, error, store.as_deref(), &mut wait) {
            let stopped = Phase::Stopped(Some(Arc::new(error)));
            shared.lock().phase = stopped;
            if let Some(store) = store {
                close(shared, &store);
            }
            return;
        }
        begin = Begin::open(directory, &shared.options, Opened::AfterFailure);
    }
}

/// Closes a database, of which nothing more is shown.
fn close(shared: &Shared, store: &Handle) {
    *shared.view.write().unwrap_or_else(PoisonError::into_inner) = None;
    store.close();
}

/// Waits until the database should be opened again, and closes it for that. While nothing can be written, it stays open for look-ups,
/// which need no room. Returns the error if the server stops.
fn pause(
    shared: &Shared,
    directory: &Directory,
    error: Error,
    store: Option<&Handle>,
    wait: &mut Duration,
) -> Option<Error> {
    let fatal = !error.may_pass();
    if !fatal {
        tracing::error!(%error, "the database is opened again as soon as it can be written");
    }
    let mut why = error.to_string();
    let full = store.is_some() && !fatal && directory.check_room().is_err();
    if let Some(store) = store.filter(|_| !full) {
        close(shared, store);
    }
    loop {
        let mut state = shared.lock();
        // Whoever drains waits for the end, and this database may never come back.
        if matches!(state.phase, Phase::Draining { .. }) || fatal {
            return Some(error);
        }
        // This drops the channels of callers that wait for an answer, so they get an error.
        state.incoming.clear();
        state.incoming_bytes = 0;
        state.phase = Phase::Recovering(why);
        shared.changed.notify_all();
        let until = Instant::now() + *wait;
        *wait = (2 * *wait).min(MAX_BACKOFF);
        while let (Phase::Recovering(_), Some(left)) =
            (&state.phase, until.checked_duration_since(Instant::now()))
        {
            let waited = shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Phase::Draining { .. } = state.phase {
            return Some(error);
        }
        drop(state);
        match directory.check_room() {
            Err(still) if full => why = still.to_string(),
            _ => break,
        }
    }
    if let Some(store) = store.filter(|_| full) {
        close(shared, store);
    }
    None
}

/// Runs all threads on an open database, until it fails or everything is drained.
fn run(shared: &Shared, session: Session) -> Result<(), Error> {
    let Session { store, mut compute, sequencer, recovered, open, next, proven, view } = session;
    {
        let mut state = shared.lock();
        state.confirmed = sequencer.confirmed();
        // Nothing is kept from a session that failed: only the database knows which of its writes
        // have happened.
        (state.pending, state.open, state.next) = (recovered, open, next);
        state.proven = proven;
        (state.closed, state.failed) = (false, None);
        *shared.view.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(view));
        if let Phase::Recovering(_) = state.phase {
            state.phase = Phase::Running;
        }
    }
    shared.changed.notify_all();
    let writer = Writer { shared, store: &store, sequencer: Mutex::new(sequencer) };
    std::thread::scope(|scope| {
        // Bounded, because a computed commit holds its tree and its rows: the first stage waits for
        // a slow disk instead of filling the memory.
        let (send, receive) = sync_channel::<Computed>(QUEUE);
        let receive = Arc::new(Mutex::new(receive));
        let (writer, store) = (&writer, &store);
        // From here on, whatever ends or panics ends the others.
        let guard = Guard(shared);
        let guarded = |work: &(dyn Fn() -> Result<(), Error> + Sync)| {
            let guard = Guard(shared);
            let result = work();
            // The work has returned, so the guard must not report a panic.
            std::mem::forget(guard);
            if let Err(error) = result {
                shared.fail(error);
            }
        };
        let mut started = start(scope, move || guarded(&|| intake::run(shared, &**store)));
        for _ in 0..shared.options.writers.max(1) {
            let receive = Arc::clone(&receive);
            let write = move || guarded(&|| writer.run(&receive));
            started = started.and_then(|()| start(scope, write));
        }
        // Once all writers have ended, the first stage cannot send.
        drop(receive);
        let result = started.and_then(|()| stage(shared, &mut compute, writer, send));
        std::mem::forget(guard);
        if let Err(error) = result {
            shared.fail(error);
        }
    });
    if let Some(error) = shared.lock().failed.take() {
        return Err(error);
    }
    settle(&writer)
}

/// Writes what a session leaves that has ended without an error.
fn settle(writer: &Writer<'_>) -> Result<(), Error> {
    let store = &**writer.store;
    // A clean end leaves nothing to settle, and no head that is older than this one is taken later.
    let (mut settled, head) = {
        let mut sequencer = writer.sequencer();
        (sequencer.take_settled(), sequencer.head())
    };
    if rows::find(store, Table::Format, &rows::CONFIRMED)? != Some(head) {
        settled.put(Table::Format, rows::CONFIRMED, head.encode());
    }
    if !settled.0.is_empty() {
        store.commit(settled)?;
    }
    Ok(())
}

/// Starts a thread.
fn start<'s>(scope: &'s Scope<'s, '_>, work: impl FnOnce() + Send + 's) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name("directory-stage".into());
    let started = thread.spawn_scoped(scope, work);
    started.map(drop).map_err(|error| Error::Threads(error.to_string()))
}

/// Ends the other threads of a session if one panics.
struct Guard<'s>(&'s Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.fail(Error::Panicked);
    }
}

/// The first stage: waits for updates, and computes commits in their order.
fn stage(
    shared: &Shared,
    compute: &mut Compute,
    writer: &Writer<'_>,
    send: SyncSender<Computed>,
) -> Result<(), Error> {
    let (mut cpu, mut closed) = (cpu_time(), Instant::now());
    loop {
        let last = compute.heartbeat_after().map(|time| (time, closed));
        let Some((work, confirmed)) = next_work(shared, last) else { return Ok(()) };
        let since = Instant::now();
        fail_point("before-compute");
        let (store, now) = (&**writer.store, unix_time());
        let taken = if let Work::Updates(updates) = &work { updates.len() } else { 0 };
        // In the server's own pool, so that `Options::threads` is the limit, whatever else the
        // process does.
        let (computed, deferred) = shared.pool.install(|| match work {
            Work::Updates(updates) => compute.next(store, updates, confirmed, now),
            Work::Heartbeat => Ok((compute.heartbeat(store, confirmed, now)?, Vec::new())),
        })?;
        fail_point("after-compute");
        if computed.epoch.is_some() {
            closed = Instant::now();
        }
        let count = taken - deferred.len();
        if !deferred.is_empty() {
            shared.lock().pending.put_back(deferred);
        }
        let now = cpu_time();
        let (took, used) = (since.elapsed(), now.saturating_sub(cpu));
        cpu = now;
        shared.note(|stats| stats.computed(count, took, used));
        if shared.mode_now() == Mode::Serial {
            // The same two stages, one after the other.
            writer.write(computed, true)?;
        } else if send.send(computed).is_err() {
            return Ok(());
        }
        shared.note(|stats| stats.waited(since.elapsed().saturating_sub(took)));
    }
}

/// The work of the first stage.
enum Work {
    /// A commit of these updates.
    Updates(Vec<Accepted>),
    /// An epoch without changes.
    Heartbeat,
}

/// The time until the next epoch without changes, if no other one is closed before. The last one was closed at these times.
fn until_heartbeat(options: &Options, (closed, here): (u64, Instant)) -> Option<Duration> {
    let interval = options.heartbeat?.max(Duration::from_secs(1));
    // The clock counts the time before a restart, too, and may have been set back since.
    let by_clock = Duration::from_secs(unix_time().saturating_sub(closed));
    Some(interval.saturating_sub(by_clock.max(here.elapsed())))
}

/// Returns the work for a commit, and the last commit that is on the disk; `None` once there will be no more. `last` says when the last
/// epoch was closed, if one without changes may follow it.
fn next_work(shared: &Shared, last: Option<(u64, Instant)>) -> Option<(Work, u64)> {
    let limit = shared.options.max_updates.max(1);
    let mut state = shared.lock();
    loop {
        if state.failed.is_some() {
            return None;
        }
        let drain = match state.phase {
            Phase::Draining { all: false } => return None,
            Phase::Draining { all: true } => true,
            _ => false,
        };
        // First, so that neither updates that wait for others nor those that are refused keep an epoch from being closed.
        let beat = last.filter(|_| !drain).and_then(|last| until_heartbeat(&shared.options, last));
        if beat == Some(Duration::ZERO) {
            return Some((Work::Heartbeat, state.confirmed));
        }
        let until = match (state.pending.first(), shared.options.interval) {
            (None, _) if drain && state.closed => return None,
            (None, _) => None,
            (Some((first, since)), interval) => {
                let due = since.zip(interval).and_then(|(since, wait)| since.checked_add(wait));
                let now = Instant::now();
                if drain
                    || state.pending.labels() >= limit
                    || first < state.urgent
                    || since.is_none()
                    || due.is_some_and(|due| due <= now)
                {
                    let updates = state.pending.take(limit);
                    return Some((Work::Updates(updates), state.confirmed));
                }
                due.map(|due| due - now)
            }
        };
        state = match until.into_iter().chain(beat).min() {
            None => shared.wait(state),
            Some(left) => {
                let waited = shared.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

/// The second stage.
#[derive(Debug)]
struct Writer<'s> {
    shared: &'s Shared,
    store: &'s Arc<Handle>,
    sequencer: Mutex<Sequencer>,
}

impl Writer<'_> {
    fn sequencer(&self) -> MutexGuard<'_, Sequencer> {
        self.sequencer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes commits as they come: in their order, unless the mode is any order.
    fn run(&self, receive: &Mutex<Receiver<Computed>>) -> Result<(), Error> {
        loop {
            let since = Instant::now();
            let queue = receive.lock().unwrap_or_else(PoisonError::into_inner);
            let Ok(computed) = queue.recv() else { return Ok(()) };
            let ordered = self.shared.mode_now() != Mode::AnyOrder;
            let held = ordered.then_some(queue);
            if self.shared.lock().failed.is_some() {
                return Ok(());
            }
            self.shared.note(|stats| stats.idle(since.elapsed()));
            self.write(computed, ordered)?;
            drop(held);
        }
    }

    /// Writes a commit, and makes visible what is complete with it.
    fn write(&self, computed: Computed, ordered: bool) -> Result<(), Error> {
        let since = Instant::now();
        if ordered {
            // What was sent to other threads before goes first.
            let mut state = self.shared.lock();
            while state.confirmed + 1 < computed.number && state.failed.is_none() {
                state = self.shared.wait(state);
            }
            if state.failed.is_some() {
                return Ok(());
            }
            drop(state);
            self.sequencer().check_next(&computed)?;
        }
        let (mut rows, done) = computed.split();
        {
            let mut sequencer = self.sequencer();
            // What the head is past is removed along with the next commit, which saves a sync of
            // its own.
            rows.0.extend(sequencer.take_settled().0);
            rows.put(Table::Format, rows::CONFIRMED, sequencer.head().encode());
        }
        fail_point("before-write");
        // The rows must be on the disk before the head names them: a head ahead of its database is
        // refused at the next start.
        self.store.commit(rows)?;
        fail_point("after-write");
        let written = since.elapsed();
        let mut sequencer = self.sequencer();
        let visible = sequencer.confirm(done)?;
        let confirmed = sequencer.confirmed();
        // In the order of epochs: before another thread confirms more.
        self.publish(visible, confirmed);
        drop(sequencer);
        self.shared.note(|stats| stats.written(written, since.elapsed()));
        Ok(())
    }

    fn publish(&self, visible: Visible, confirmed: u64) {
        if let Some((signed, tree)) = visible.epochs.into_iter().next_back() {
            let mut view = self.shared.view.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(old) = view.take() {
                let record = *signed.unverified();
                let (store, levels, commit) = (Arc::clone(&old.store), old.levels, confirmed);
                *view = Some(Arc::new(View { store, signed, record, tree, levels, commit }));
            }
        }
        let mut state = self.shared.lock();
        state.confirmed = confirmed;
        for number in visible.numbers {
            state.open.remove(&number);
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}
