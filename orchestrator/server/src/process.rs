//! One process: its session and its components.

use crate::alive::{LivenessProbe, SharedSession};
use crate::clock::Clock;
use crate::collect::Collector;
use crate::collect::Strategies;
use crate::dispatch::Dispatcher;
use crate::dispatch::Runner;
use crate::feed::{Event, feed};
use crate::metrics::Metrics;
use crate::publish::Publisher;
use crate::record::SessionId;
use crate::standstill::{Watch, Watched};
use crate::store::Store;
use crate::submissions::Submissions;
use crate::surroundings::Surroundings;
use crate::workflows::Workflows;
use hekaton_orchestrator_client::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The configuration and dependencies of a process. Its session must be written by another task ([`crate::alive::beat`]).
pub(crate) struct Process {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) session: SessionId,
    pub(crate) own: SharedSession,
    pub(crate) gone: LivenessProbe,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) backends: BTreeSet<Name>,
    pub(crate) slots: usize,
    pub(crate) collects: bool,
    pub(crate) weights: BTreeMap<Name, u32>,
    pub(crate) tenant_slots: BTreeMap<Name, usize>,
    pub(crate) workflows: Workflows,
    pub(crate) strategies: Strategies,
    pub(crate) metrics: Metrics,
    /// The time for which nothing may happen to a block that is not published.
    pub(crate) patience: Duration,
    /// The place where a process that collects reports what stands still.
    pub(crate) watched: Watched,
    /// Other receivers of changes.
    pub(crate) listeners: Vec<UnboundedSender<Event>>,
}

impl Process {
    /// Runs until it is stopped, or drained and idle.
    ///
    /// After `drain`, nothing more is claimed; after `stop`, running tasks end, and leases and partitions are given back.
    pub(crate) async fn run(mut self, drain: CancellationToken, stop: CancellationToken) {
        let mut listeners = std::mem::take(&mut self.listeners);
        // Cancelled after the dispatcher has ended: until then, the other components must see what becomes of its tasks.
        let ended = CancellationToken::new();
        let surroundings = Surroundings::default();
        let looking = tokio::spawn(surroundings.clone().look(
            Arc::clone(&self.store),
            Arc::clone(&self.sessions),
            self.clock.clone(),
            Arc::clone(&self.gone),
            self.session.clone(),
        ));
        let _looking = AbortOnDrop(looking.abort_handle());
        let mut components = JoinSet::new();
        if self.collects {
            self.start_collecting(&mut components, &mut listeners, &surroundings, &ended);
        }
        let dispatcher = self.dispatcher(surroundings, &drain, &stop);
        let events = listen(&mut listeners);
        // The feed starts last: it reports all records to its listeners from the beginning, and a later listener would miss them.
        let feeding = tokio::spawn(feed(Arc::clone(&self.store), self.clock.clone(), listeners));
        let _feeding = AbortOnDrop(feeding.abort_handle());
        let dispatching = Arc::new(dispatcher).run(events);
        tokio::pin!(dispatching);
        let has_failed = tokio::select! {
            biased;
            () = &mut dispatching => false,
            // It ends by itself only if it panics.
            Some(_) = components.join_next() => true,
        };
        if has_failed {
            // Others take over what this process looked after, once it is gone.
            tracing::error!("a component has failed: the process ends");
            drain.cancel();
            stop.cancel();
            dispatching.await;
        }
        ended.cancel();
        while components.join_next().await.is_some() {}
    }

    /// Starts the components of a process that collects.
    fn start_collecting(
        &self,
        components: &mut JoinSet<()>,
        listeners: &mut Vec<UnboundedSender<Event>>,
        surroundings: &Surroundings,
        ended: &CancellationToken,
    ) {
        // The collector divides the partitions, and the publisher follows: two publishers of a chain would only be in each
        // other's way.
        let (send, owned) = unbounded_channel();
        let collector = Collector {
            store: Arc::clone(&self.store),
            sessions: Arc::clone(&self.sessions),
            clock: self.clock.clone(),
            session: self.session.clone(),
            own: Arc::clone(&self.own),
            gone: Arc::clone(&self.gone),
            workflows: self.workflows.clone(),
            strategies: self.strategies.clone(),
            metrics: self.metrics.clone(),
            owned: send,
            stop: ended.clone(),
        };
        components.spawn(collector.run(listen(listeners)));
        let store = Arc::clone(&self.store);
        let publisher = Publisher {
            store: Arc::clone(&self.store),
            submissions: Submissions::new(store, self.clock.clone(), self.workflows.clone()),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            stop: ended.clone(),
        };
        components.spawn(publisher.run(listen(listeners), owned));
        let watch = Watch {
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
            surroundings: surroundings.clone(),
            metrics: self.metrics.clone(),
            patience: self.patience,
            watched: self.watched.clone(),
            backends: self.backends.clone(),
            stop: ended.clone(),
        };
        components.spawn(watch.run(listen(listeners)));
    }

    fn dispatcher(
        &self,
        surroundings: Surroundings,
        drain: &CancellationToken,
        stop: &CancellationToken,
    ) -> Dispatcher {
        Dispatcher {
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
            session: self.session.clone(),
            own: Arc::clone(&self.own),
            runner: Arc::clone(&self.runner),
            backends: self.backends.clone(),
            slots: self.slots,
            weights: self.weights.clone(),
            tenant_slots: self.tenant_slots.clone(),
            metrics: self.metrics.clone(),
            surroundings,
            drain: drain.clone(),
            stop: stop.clone(),
        }
    }
}

/// Adds a listener to those that the feed reports changes to.
fn listen(listeners: &mut Vec<UnboundedSender<Event>>) -> UnboundedReceiver<Event> {
    let (send, events) = unbounded_channel();
    listeners.push(send);
    events
}

/// Aborts a task of the runtime when its owner is gone.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
