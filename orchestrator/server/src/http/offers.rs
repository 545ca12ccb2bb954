//! The back-ends that live processes have, so that a job that none of them can run says so.

use crate::alive::{LOOK, LivenessProbe, Observer};
use crate::clock::Clock;
use crate::record::SessionId;
use crate::store::Store;
use hekaton_orchestrator_client::Name;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The back-ends seen last; `None` before the first look and while sessions cannot be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers(Arc<Mutex<Option<BTreeSet<Name>>>>);

impl Offers {
    /// Looks at the sessions until the future is dropped.
    pub(crate) async fn follow(
        self,
        sessions: Arc<dyn Store>,
        clock: Clock,
        own: SessionId,
        gone: LivenessProbe,
    ) {
        let mut observer = Observer::default();
        loop {
            let seen = match sessions.list("session/", 0).await {
                Ok(listing) => {
                    observer.read(clock.monotonic(), &listing, &[], &own);
                    let living = observer.living(&gone).filter(|(_, session)| !session.draining);
                    let able = living.filter(|(_, session)| session.slots > 0);
                    let trusted = able.flat_map(|(_, session)| {
                        let is_trusted = |name: &&Name| !session.quarantined.contains_key(*name);
                        session.backends.iter().filter(is_trusted).cloned()
                    });
                    Some(trusted.collect())
                }
                // The collector says so in the log.
                Err(_) => None,
            };
            self.set(seen);
            clock.sleep(LOOK).await;
        }
    }

    pub(crate) fn set(&self, seen: Option<BTreeSet<Name>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// Returns those of some back-ends that no live process has, as far as that is known.
    pub(crate) fn missing<'a>(&self, needed: impl IntoIterator<Item = &'a Name>) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = &*seen else { return vec![] };
        let missing: BTreeSet<&Name> =
            needed.into_iter().filter(|name| !seen.contains(*name)).collect();
        missing.into_iter().map(Name::to_string).collect()
    }
}
