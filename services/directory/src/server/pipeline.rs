//! The threads of a server: intake, the two stages of a commit, and what opens the database again after a failure.

use super::compute::{Compute, Computed, Tiling};
use super::error::Error;
use super::folder::Directory;
use super::head::{HeadFile, Keep as _};
use super::intake;
use super::options::{Mode, Options};
use super::pending::Pending;
use super::recover::{Recovered, recover};
use super::sequencer::{Sequencer, Visible};
use super::shared::{Phase, Shared};
use super::store::{Handle, Opened, Rows, Store};
use super::time::{cpu_time, fail_point, unix_time};
use super::update::Accepted;
use super::view::View;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// How many computed commits wait to be written.
const QUEUE: usize = 4;

/// How long a server waits before it opens its database again: at first, and at most.
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
        let mut file = HeadFile::new(directory.head_path());
        let head = file.read()?;
        // It may have been renamed and not synced: then an older one would be back after a loss of power, while what this one
        // says was answered, and what it makes superfluous was removed.
        file.advance(head)?;
        let found = recover(&*store, head, &directory.parameters)?;
        let Recovered { format, signed, record, tree, pending: updates, next } = found;
        let levels = usize::from(format.levels);
        let resident = options.resident.min(64);
        let Options { has_witness, max_steps, .. } = *options;
        let tiling = Tiling { levels, resident, has_witness, max_steps };
        let pair = (record, tree.clone());
        let compute = Compute::new(&*store, tiling, pair, head.commit, &directory.key)?;
        let sequencer = Sequencer::new(head, &record, Box::new(file));
        let open = updates.iter().map(|update| update.number).collect();
        let mut recovered = Pending::default();
        updates.into_iter().for_each(|update| recovered.push(update));
        let (commit, view_store) = (head.commit, Arc::clone(&store));
        let view = View { store: view_store, signed, record, tree, levels, commit };
        Ok(Self { store, compute, sequencer, recovered, open, next, view })
    }
}

/// Runs sessions until the server stops.
pub(crate) fn supervise(shared: &Shared, directory: &Directory, first: Session) {
    struct Stop<'s>(&'s Shared);
    impl Drop for Stop<'_> {
        /// Also if a thread panics: nobody waits for a server that has ended.
        fn drop(&mut self) {
            let mut state = self.0.lock();
            if !matches!(state.phase, Phase::Stopped(_)) {
                let panicked = std::thread::panicking().then(|| Arc::new(Error::Panicked));
                state.phase = Phase::Stopped(panicked);
            }
            state.incoming.clear();
            state.incoming_bytes = 0;
            drop(state);
            *self.0.view.write().unwrap_or_else(PoisonError::into_inner) = None;
            self.0.changed.notify_all();
        }
    }
    let _stop = Stop(shared);
    let mut session = Some(first);
    let mut wait = MIN_BACKOFF;
    loop {
        let opened = match session.take() {
            Some(session) => Ok(session),
            None => Session::open(directory, &shared.options, Opened::AfterFailure),
        };
        let error = match opened {
            Ok(session) => {
                let store = Arc::clone(&session.store);
                let before = session.sequencer.confirmed();
                let result = run(shared, session);
                *shared.view.write().unwrap_or_else(PoisonError::into_inner) = None;
                store.close();
                // Also where something beside the stages wrote last: the mark has to stay then.
                let result = result.and_then(|()| Ok(store.check()?));
                if shared.lock().confirmed > before {
                    wait = MIN_BACKOFF;
                }
                match result {
                    Ok(()) => {
                        directory.remove_mark();
                        return;
                    }
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let mut state = shared.lock();
        if matches!(state.phase, Phase::Draining { .. }) || !error.may_pass() {
            state.phase = Phase::Stopped(Some(Arc::new(error)));
            return;
        }
        tracing::error!(%error, "the database is closed, and opened again");
        // Whoever waits for an answer is told that there is none.
        state.incoming.clear();
        state.incoming_bytes = 0;
        state.phase = Phase::Recovering(error.to_string());
        shared.changed.notify_all();
        let until = Instant::now() + wait;
        wait = (2 * wait).min(MAX_BACKOFF);
        while let (Phase::Recovering(_), Some(left)) =
            (&state.phase, until.checked_duration_since(Instant::now()))
        {
            let waited = shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Phase::Draining { .. } = state.phase {
            state.phase = Phase::Stopped(Some(Arc::new(error)));
            return;
        }
    }
}

/// Runs all threads on an open database, until it fails or everything is drained.
fn run(shared: &Shared, session: Session) -> Result<(), Error> {
    let Session { store, mut compute, sequencer, recovered, open, next, view } = session;
    {
        let mut state = shared.lock();
        state.confirmed = sequencer.confirmed();
        (state.pending, state.open, state.next) = (recovered, open, next);
        (state.closed, state.failed) = (false, None);
        *shared.view.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(view));
        if let Phase::Recovering(_) = state.phase {
            state.phase = Phase::Running;
        }
    }
    shared.changed.notify_all();
    let writer = Writer { shared, store: &store, sequencer: Mutex::new(sequencer) };
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Computed>(QUEUE);
        let receive = Arc::new(Mutex::new(receive));
        let (writer, store) = (&writer, &store);
        // From here on, whatever ends or panics ends the others.
        let guard = Guard(shared);
        let guarded = |work: &(dyn Fn() -> Result<(), Error> + Sync)| {
            let guard = Guard(shared);
            let result = work();
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
    // A clean end leaves nothing to settle.
    let settled = writer.sequencer().take_settled();
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
    let mut cpu = cpu_time();
    loop {
        let Some((updates, confirmed)) = next_updates(shared) else { return Ok(()) };
        let since = Instant::now();
        fail_point("before-compute");
        let count = updates.len();
        let (computed, deferred) = shared
            .pool
            .install(|| compute.next(&**writer.store, updates, confirmed, unix_time()))?;
        fail_point("after-compute");
        let count = count - deferred.len();
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

/// Updates for a commit, and the last commit that is on the disk; nothing once there will be no more.
fn next_updates(shared: &Shared) -> Option<(Vec<Accepted>, u64)> {
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
                    return Some((updates, state.confirmed));
                }
                due.map(|due| due - now)
            }
        };
        state = match until {
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
        let (Rows(mut rows), done) = computed.split();
        rows.extend(self.sequencer().take_settled().0);
        fail_point("before-write");
        self.store.commit(Rows(rows))?;
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
                let record = *signed.record();
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
