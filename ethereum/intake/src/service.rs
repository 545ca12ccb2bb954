//! The service, which accepts witnesses from clients, fetches them from a node, and copies those that pass through it as a proxy.

mod body;
mod pass;
mod ready;
mod records;

use self::ready::Readiness;
use crate::codec::apis793;
use crate::codec::json::{JsonError, JsonPush, Parameters};
use crate::jwt::Secret;
use crate::node::{Codec, JSON, Node, OCTETS};
use crate::problem::{self, kind};
use crate::record::{Origin, Record, Source};
use crate::store::{StoreError, WitnessStore};
use crate::submitter::JobSubmitter;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hekaton_service::{Limits, Problem, Room, check_same_site};
use hekaton_witness_format::{ExecutionWitness, Push};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The number of bodies that are processed at the same time. Memory also suffices for this many of the largest bodies as they arrive.
const MAX_BODIES: usize = 8;

/// The number of requests that may be on their way to the node at the same time.
const MAX_PASSING: usize = 32;

/// The time that a request waits for memory, and again for its turn.
const TURN: Duration = Duration::from_secs(20);

/// The time that may pass without a byte of a body.
const SILENCE: Duration = Duration::from_secs(15);

/// The number of bytes of a body that must arrive per second, after a grace period.
const SLOWEST: u32 = 200_000;

/// The number of connections that may be open.
const MAX_CONNECTIONS: usize = 256;

/// The time that a connection may be open: callers of a proxy keep theirs.
const MAX_LIFE: Duration = Duration::from_secs(86_400);

/// The service with its limits and its state.
#[derive(Debug)]
pub struct Service {
    /// The submitter of jobs, with the store of witnesses.
    pub submitter: Arc<JobSubmitter>,
    /// The secret of the tokens that requests carry. Without it, any client may send requests.
    pub secret: Option<Secret>,
    /// The node that supplies witnesses.
    pub node: Option<Node>,
    /// The codec of requests to the node; by default, the best one that it supports.
    pub codec: Option<Codec>,
    /// `true` if all other requests are passed on to the node.
    pub proxy: bool,
    /// The largest body, in bytes, before and after it is expanded.
    pub limit: u64,
    /// The channel that signals each new record.
    pub wake: Sender<()>,
    /// Memory for bodies.
    memory: Room,
    /// Permits to work on bodies.
    room: Arc<Semaphore>,
    /// Memory for requests that pass.
    passing_memory: Room,
    /// Permits for requests that pass.
    passing: Arc<Semaphore>,
    /// The permit to read a page of records.
    pages: Arc<Semaphore>,
    readiness: Readiness,
}

impl Service {
    /// Makes a service with room for its bodies.
    pub fn new(
        submitter: Arc<JobSubmitter>,
        secret: Option<Secret>,
        limit: u64,
        wake: Sender<()>,
    ) -> Self {
        let [room, passing, pages] =
            [MAX_BODIES, MAX_PASSING, 1].map(|count| Arc::new(Semaphore::new(count)));
        let memory = Room::new(limit.saturating_mul(MAX_BODIES as u64));
        let passing_memory = Room::new((apis793::MAX_REQUEST * MAX_PASSING) as u64);
        Self {
            submitter,
            secret,
            node: None,
            codec: None,
            proxy: false,
            limit,
            wake,
            memory,
            room,
            passing_memory,
            passing,
            pages,
            readiness: Readiness::default(),
        }
    }

    fn store(&self) -> &Arc<WitnessStore> {
        self.submitter.store()
    }

    fn authorize(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(secret) = &self.secret else { return Ok(()) };
        let found = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        secret.check(found).map_err(problem::unauthorized)
    }

    /// Waits up to [`TURN`] for a permit, which is held as long as the work takes.
    async fn turn(room: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = tokio::time::timeout(TURN, Arc::clone(room).acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or_else(problem::busy)
    }

    fn wake(&self) {
        // The receiver ends with the service.
        let _ = self.wake.send(());
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(problem::internal)?
}

/// Returns the media type of a body, without parameters, which do not matter.
fn media_type(headers: &HeaderMap) -> &str {
    let found = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    found.and_then(|kind| kind.split(';').next()).map_or("", str::trim)
}

/// Checks that a body has one of several media types, and returns that one.
fn needs<'a>(headers: &HeaderMap, kinds: &[&'a str]) -> Result<&'a str, Problem> {
    let found = media_type(headers);
    kinds.iter().find(|kind| found.eq_ignore_ascii_case(kind)).copied().ok_or_else(|| {
        let why = format!("the content type is '{found}', expected {}", kinds.join(" or "));
        Problem::new(kind::MEDIA_TYPE, why)
    })
}

fn bad_json((code, error): (i64, JsonError)) -> Problem {
    let kind = if code == -32_700 { kind::JSON } else { kind::INVALID_BODY };
    Problem::new(kind, error)
}

type Shared = State<Arc<Service>>;

/// `POST /v1/witness`.
async fn push(
    State(service): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Record>), Problem> {
    // Before the body: a client without a token must not make the service hold hundreds of megabytes.
    service.authorize(&headers)?;
    let is_json = needs(&headers, &[OCTETS, JSON])? == JSON;
    let load = service.body(&headers, body, service.limit).await?;
    let store = Arc::clone(service.store());
    let origin = Origin::of(Source::Push, &headers).with_json(is_json);
    // The witness is accepted even if the caller is gone.
    let record = blocking(move || match is_json {
        true => push_json(&store, origin, &load.bytes),
        false => {
            let push = Push::decode(&load.bytes).map_err(StoreError::from)?;
            Ok(store.accept(origin, &push.envelope, None, &push.witness, push.public_keys)?)
        }
    })
    .await?;
    service.wake();
    Ok((StatusCode::ACCEPTED, Json(record)))
}

fn push_json(store: &WitnessStore, origin: Origin, body: &[u8]) -> Result<Record, Problem> {
    let JsonPush { parameters, witness, public_keys } = JsonPush::decode(body).map_err(bad_json)?;
    let Parameters { envelope, blob_hashes } = &parameters;
    let witness = ExecutionWitness::decode(&witness).map_err(StoreError::from)?;
    Ok(store.accept(origin, envelope, Some(blob_hashes), &witness, &public_keys)?)
}

/// `POST /v1/fetch`.
async fn fetch(
    State(service): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Record>), Problem> {
    service.authorize(&headers)?;
    needs(&headers, &[JSON])?;
    let Some(node) = &service.node else {
        let why = "the service was started without --node";
        return Err(Problem::new(kind::NO_PATH, why));
    };
    let load = service.body(&headers, body, apis793::MAX_REQUEST as u64).await?;
    let (load, parameters) = blocking(move || {
        let parameters = Parameters::decode(&load.bytes).map_err(bad_json)?;
        Ok((load, parameters))
    })
    .await?;
    let codec = match service.codec {
        Some(codec) => codec,
        None => node.best_codec(&parameters.envelope.fork).await,
    };
    let fetched = node.fetch(&parameters, codec).await?;
    let store = Arc::clone(service.store());
    let origin = Origin::of(Source::Fetch, &headers).with_json(fetched.is_json());
    let record = blocking(move || {
        // Held to the end: the parameters that were read from it take about as much memory, which
        // must be counted.
        let _load = load;
        let answer = fetched.answer().map_err(StoreError::from)?;
        let hashes = Some(&parameters.blob_hashes[..]);
        Ok(store.answer(origin, &parameters.envelope, hashes, &answer)?)
    })
    .await?;
    service.wake();
    Ok((StatusCode::ACCEPTED, Json(record)))
}

async fn health() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Reports whether the service can do its work.
async fn ready(State(service): Shared) -> Result<StatusCode, Problem> {
    match service.readiness.check(&service.submitter).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(why) => Err(Problem::new(kind::NOT_READY, why)),
    }
}

/// Returns metrics for Prometheus.
async fn metrics(State(service): Shared) -> ([(header::HeaderName, &'static str); 1], String) {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;
    use prometheus_client::registry::Registry;
    let counts = &service.store().counts;
    let mut registry = Registry::with_prefix("hekaton_intake");
    for (name, help, count) in [
        ("witnesses", "Witnesses that were accepted", &counts.accepted),
        ("refused", "Witnesses that were refused", &counts.refused),
        ("jobs", "Jobs that were made", &counts.jobs),
        ("reverts", "How often the chain was reverted to follow another branch", &counts.reverts),
        ("bytes", "Bytes of accepted witnesses", &counts.bytes),
        ("removed", "Records that were removed because of their age", &counts.removed),
    ] {
        let counter = ConstCounter::new(count.load(Ordering::Relaxed));
        registry.register(name, help, counter);
    }
    let waiting = ConstGauge::new(
        i64::try_from(service.store().waiting()).expect("fewer blocks wait than memory holds"),
    );
    registry.register("waiting", "Blocks that wait for a job", waiting);
    let mut text = String::new();
    // Into a string, this cannot fail.
    let _ = encode(&mut text, &registry);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text)
}

/// Refuses other methods on paths of the service itself, which are never passed on.
async fn other_method() -> Problem {
    let why =
        "this path does not support the method: the header Allow lists those that it supports";
    Problem::new(kind::METHOD, why)
}

/// Refuses requests from pages of other sites, including requests that would be passed on to the node.
async fn same_site(request: Request, next: Next) -> Response {
    match check_same_site(kind::ORIGIN, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Returns the routes of the service.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/v1/witness", get(records::page).post(push))
        .route("/v1/witness/{block}", get(records::record))
        .route("/v1/witness/{block}/resubmit", post(records::resubmit))
        .route("/v1/fetch", post(fetch))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .method_not_allowed_fallback(other_method)
        .fallback(pass::pass)
        // Bodies have limits of their own.
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(from_fn(same_site))
        .with_state(service)
}

/// Answers requests until `end` is true.
pub async fn serve(service: Arc<Service>, listener: TcpListener, end: watch::Receiver<bool>) {
    let limits = Limits::new(MAX_CONNECTIONS, MAX_LIFE).http2(true).pace(SLOWEST, SILENCE);
    hekaton_service::accept(router(service), listener, limits, end).await.close().await;
}
