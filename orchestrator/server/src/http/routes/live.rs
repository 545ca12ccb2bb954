//! The live page, and the events that it shows.

use super::{Api, Shared};
use crate::feed::patiently;
use crate::http::board::worker;
use crate::http::body;
use crate::http::problem::FULL;
use crate::record::{JobKey, Session, decode};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use hekaton_orchestrator_client::Name;
use hekaton_orchestrator_client::body::{JobView, JobsBody, StandstillBody, WorkerView};
use hekaton_service::Problem;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

/// The time for which changes are collected before they are sent together.
const TOGETHER: Duration = Duration::from_millis(100);

/// The interval between looks at processes. They write their sessions twice as often.
const WORKERS: Duration = Duration::from_secs(2);

/// Allows no content from other origins, and no embedding in other pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

pub(super) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("../../../web/live.html"))
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../../../web/live.js"))
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../../../web/live.css"))
}

/// The tenant's open jobs, and the last ones that have ended.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs",
    responses((status = 200, body = JobsBody), (status = 401, body = Problem))
)]
pub(super) async fn jobs(
    State(api): Shared,
    headers: HeaderMap,
) -> Result<Json<JobsBody>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let (jobs, standing_still) = (api.board.all(&tenant), standing_still(&api, &tenant));
    if let Some(latest) = api.board.latest(&tenant) {
        api.store.on_disk(latest).await?;
    }
    Ok(Json(JobsBody { jobs, standing_still }))
}

/// The blocks of a tenant that stand still.
fn standing_still(api: &Api, tenant: &Name) -> Vec<StandstillBody> {
    let found = api.watched.standstills();
    found.iter().filter(|one| one.tenant == *tenant).map(body::standstill).collect()
}

/// Sends what changes, as server-sent events, until the connection is closed (five minutes).
///
/// `all` has all jobs and comes first, and again after changes were missed; `jobs` has those that have changed; `workers` has the processes
/// that are alive, every two seconds. Their data are lists in JSON. `published` has an object: for each chain with strict order that has
/// jobs which are done, the height of the last block that is published. Jobs that are done above that height wait for an older block.
/// `standing` has the list of blocks that stand still, when it has changed.
#[utoipa::path(
    get, path = "/v1/events", tag = "jobs",
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 401, body = Problem), (status = 429, body = Problem, description = "The tenant has too many connections to this path"),
    )
)]
pub(super) async fn events(
    State(api): Shared,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let permit = api.board.listen(&tenant).ok_or_else(|| {
        Problem::new(FULL, "listener limit reached: close another connection to /v1/events first")
    })?;
    let live = Live {
        news: api.board.subscribe(),
        api,
        tenant,
        started: false,
        look: Instant::now(),
        counters: BTreeMap::new(),
        published: None,
        changed: false,
        standing: vec![],
        _permit: permit,
    };
    let stream = futures_util::stream::unfold(live, async |mut live| {
        let event = live.next().await?;
        Some((Ok(event), live))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// The state of one listener.
struct Live {
    api: Arc<Api>,
    tenant: Name,
    news: Receiver<JobKey>,
    started: bool,
    /// The time at which processes are looked at next.
    look: Instant,
    /// The counters of sessions at the last look.
    counters: BTreeMap<String, u64>,
    /// The heights that were sent last.
    published: Option<BTreeMap<String, u64>>,
    /// Jobs have changed since these were looked at.
    changed: bool,
    /// The blocks that stood still when they were sent last.
    standing: Vec<StandstillBody>,
    _permit: OwnedSemaphorePermit,
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let json = serde_json::to_string(data).expect("lists and maps with string keys are JSON");
    Event::default().event(name).data(json)
}

impl Live {
    /// Waits for the next event; none when the process ends.
    async fn next(&mut self) -> Option<Event> {
        let closing = self.api.closing.clone();
        tokio::select! {
            biased;
            () = closing.cancelled() => None,
            event = self.wait() => Some(event),
        }
    }

    async fn wait(&mut self) -> Event {
        if !self.started {
            self.started = true;
            return self.all().await;
        }
        loop {
            let standing = standing_still(&self.api, &self.tenant);
            let names = |list: &[StandstillBody]| {
                list.iter()
                    .map(|one| (one.chain.clone(), one.id.clone(), one.cause.clone()))
                    .collect::<Vec<_>>()
            };
            if names(&standing) != names(&self.standing) {
                self.standing.clone_from(&standing);
                return event("standing", &standing);
            }
            if std::mem::take(&mut self.changed)
                && let Some(heights) = self.heights().await
            {
                return event("published", &heights);
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(self.look) => {
                    // Publication follows the end of a job, and is no job's change.
                    self.changed = true;
                    self.look = Instant::now() + WORKERS;
                    let first = self.counters.is_empty();
                    let workers = self.workers().await;
                    // Only the second look shows which processes are alive.
                    if !first {
                        return event("workers", &workers);
                    }
                }
                first = self.news.recv() => match first {
                    Ok(first) if first.tenant == self.tenant => return self.changes(first).await,
                    Ok(_) | Err(RecvError::Closed) => {}
                    // Changes were dropped, so only a full list is complete.
                    Err(RecvError::Lagged(_)) => return self.all().await,
                },
            }
        }
    }

    async fn all(&mut self) -> Event {
        self.changed = true;
        let views = self.api.board.all(&self.tenant);
        self.settle().await;
        event("all", &views)
    }

    /// Waits until the jobs that the board has shown are on disk.
    async fn settle(&self) {
        if let Some(latest) = self.api.board.latest(&self.tenant) {
            patiently(&self.api.clock, || self.api.store.on_disk(latest)).await;
        }
    }

    async fn changes(&mut self, first: JobKey) -> Event {
        let mut keys = BTreeSet::from([first]);
        // Changes come in bursts, as tasks end together; a page shows one event for all of them.
        tokio::time::sleep(TOGETHER).await;
        loop {
            match self.news.try_recv() {
                Ok(key) => drop(keys.insert(key)),
                Err(TryRecvError::Lagged(_)) => return self.all().await,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.changed = true;
        let views: Vec<JobView> = self.api.board.some(&self.tenant, &keys);
        self.settle().await;
        event("jobs", &views)
    }

    /// Returns the heights up to which chains are published, if they have changed and can be read now.
    async fn heights(&mut self) -> Option<BTreeMap<String, u64>> {
        let mut heights = BTreeMap::new();
        for chain in self.api.board.chains(&self.tenant) {
            let tail = self.api.submissions.last_published(&self.tenant, &chain).await.ok()?;
            heights.extend(tail.map(|tail| (chain.to_string(), tail.height())));
        }
        let is_new = self.published.as_ref() != Some(&heights);
        self.published = Some(heights.clone());
        is_new.then_some(heights)
    }

    /// The processes whose counter has risen since the last look.
    async fn workers(&mut self) -> Vec<WorkerView> {
        let listed = patiently(&self.api.clock, || self.api.sessions.list("session/", 0)).await;
        let own = self.api.board.running(&self.tenant);
        let mut workers = Vec::new();
        let mut counters = BTreeMap::new();
        for entry in &listed.entries {
            let Ok(session) = decode::<Session>(entry) else { continue };
            let Some(id) = entry.key.strip_prefix("session/") else { continue };
            let counter = session.value.counter;
            if self.counters.get(id).is_some_and(|before| *before < counter) {
                workers.push(worker(&own, id, &session.value));
            }
            counters.insert(id.to_owned(), counter);
        }
        self.counters = counters;
        workers
    }
}
