//! This process's view of the other processes and of chains that are held up by a dead block, read once per second for decisions about
//! claims. The view is only advice: it may be outdated, and a decision takes effect by a conditional write.

use crate::alive::{LOOK, LivenessProbe, Observer};
use crate::clock::Clock;
use crate::record::{Publication, Session, SessionId, decode, log_name};
use crate::store::Store;
use hekaton_orchestrator_client::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

type ChainId = (Name, Name);

/// The surroundings of a process, at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// `true` if the sessions were read at least once.
    pub(crate) looked: bool,
    /// Sessions that are alive, this one included.
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// The last blocks that chains have published, of those that are watched.
    pub(crate) tails: BTreeMap<ChainId, Name>,
}

impl View {
    /// Returns the processes that take tasks for a back-end: those that trust it or, if none does, all those that have it.
    pub(crate) fn takers<'a>(&'a self, backend: &'a Name) -> impl Iterator<Item = &'a SessionId> {
        let having = || {
            let sessions = self.sessions.iter();
            sessions.filter(|(_, session)| !session.draining && session.has(backend))
        };
        // If no process trusts it, one must try, or the back-end would never be trusted again.
        let trusted = having().any(|(_, session)| session.trusts(backend));
        having().filter(move |(_, session)| !trusted || session.trusts(backend)).map(|(id, _)| id)
    }

    /// Reports whether another process trusts a back-end.
    pub(crate) fn is_trusted_elsewhere(&self, backend: &Name, own: &SessionId) -> bool {
        self.sessions
            .iter()
            .any(|(id, session)| id != own && !session.draining && session.trusts(backend))
    }
}

/// The view, which is kept up to date.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    view: Arc<Mutex<Arc<View>>>,
    /// Chains with dead blocks.
    watched: Arc<Mutex<BTreeSet<ChainId>>>,
}

impl Surroundings {
    /// Returns the current view.
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the chains whose last blocks are wanted.
    pub(crate) fn watch(&self, chains: BTreeSet<ChainId>) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = chains;
    }

    /// Keeps the view up to date until the future is dropped.
    pub(crate) async fn look(
        self,
        store: Arc<dyn Store>,
        sessions: Arc<dyn Store>,
        clock: Clock,
        gone: LivenessProbe,
        own: SessionId,
    ) {
        // Has its own observer: the number of equal reads of a session must not depend on other readers.
        let mut observer = Observer::default();
        loop {
            // What cannot be read now stays as it was: an old view is better advice than an empty one.
            let mut view = View::clone(&self.view());
            match sessions.list("session/", 0).await {
                Ok(listing) => {
                    observer.read(clock.monotonic(), &listing, &[], &own);
                    let living = observer.living(&gone);
                    view.looked = true;
                    view.sessions = living.map(|(id, it)| (id.clone(), it.clone())).collect();
                }
                Err(error) => tracing::warn!(%error, "sessions cannot be read"),
            }
            let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
            view.tails.retain(|chain, _| watched.contains(chain));
            for chain in watched {
                let tail = store
                    .tail(&log_name(&chain.0, &chain.1))
                    .await
                    .map(|tail| tail.as_ref().map(decode::<Publication>).transpose());
                match tail {
                    Ok(Ok(Some(tail))) => drop(view.tails.insert(chain, tail.value.tail().clone())),
                    Ok(Ok(None)) => drop(view.tails.remove(&chain)),
                    Ok(Err(error)) => tracing::error!(%error, "a log cannot be read"),
                    Err(error) => tracing::warn!(%error, "a log cannot be read"),
                }
            }
            *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
            clock.sleep(LOOK).await;
        }
    }
}
