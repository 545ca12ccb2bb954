//! The service: takes witnesses that are sent to it, fetches them from a node, or keeps a copy of those that go past.

use crate::codec::b::Envelope;
use crate::codec::json::Parameters;
use crate::codec::{a, b};
use crate::desk::{Desk, DeskError, decode_answer};
use crate::jwt::Secret;
use crate::node::{Codec, Node, OCTETS};
use crate::problem::Problem;
use crate::push::Push;
use crate::received::Received;
use crate::record::{Origin, Record, Source};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::StreamExt;
use hekaton_http::Limits;
use http_body_util::{BodyExt, Full};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How many bodies may be in memory at the same time.
const MAX_BODIES: usize = 8;

/// How many requests may be on their way to the node at the same time.
const MAX_PASSING: usize = 32;

/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(20);

/// How long a body may go without a byte.
const SILENCE: Duration = Duration::from_secs(15);

/// How long the caller of an answer may read nothing of it, before no copy is made any more.
const MAX_STALL: Duration = Duration::from_secs(60);

/// How many bytes of a body must come a second, after a time to begin.
const SLOWEST: u64 = 200_000;

/// How many connections may be open.
const MAX_CONNECTIONS: usize = 256;

/// How long a connection may be open: callers of a proxy keep theirs.
const MAX_LIFE: Duration = Duration::from_secs(86_400);

/// What the service is made of.
#[derive(Debug)]
pub struct Service {
    /// What becomes of witnesses.
    pub desk: Arc<Desk>,
    /// Whose tokens requests carry. Without it, everybody may ask.
    pub secret: Option<Secret>,
    /// The node that is asked.
    pub node: Option<Node>,
    /// How the node is asked; the best that it speaks where nothing is said.
    pub codec: Option<Codec>,
    /// Whether all other requests are passed on to the node.
    pub proxy: bool,
    /// The largest body, in bytes, before and after it is expanded.
    pub limit: u64,
    /// Told of each new record.
    pub wake: Sender<()>,
    /// Room for bodies in memory.
    room: Arc<Semaphore>,
    /// Room for requests that pass.
    passing: Arc<Semaphore>,
}

impl Service {
    /// A service with room for its bodies.
    pub fn new(desk: Arc<Desk>, secret: Option<Secret>, limit: u64, wake: Sender<()>) -> Self {
        let [room, passing] =
            [MAX_BODIES, MAX_PASSING].map(|count| Arc::new(Semaphore::new(count)));
        Self { desk, secret, node: None, codec: None, proxy: false, limit, wake, room, passing }
    }

    fn authorize(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(secret) = &self.secret else { return Ok(()) };
        let found = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        secret
            .check(found)
            .map_err(|error| Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", error))
    }

    /// Receives a body that is not too large, whatever it says of itself.
    async fn body(&self, headers: &HeaderMap, body: Body, limit: u64) -> Result<Received, Problem> {
        let announced = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
        let announced: u64 = announced.and_then(|text| text.parse().ok()).unwrap_or(0);
        if announced > limit {
            return Err(Problem::too_large(limit));
        }
        let mut bytes = Received::with_room(usize::try_from(announced).unwrap_or(0));
        let mut stream = body.into_data_stream();
        let begun = Instant::now();
        let late = || {
            let why = "the body comes too slowly";
            Problem::new(StatusCode::REQUEST_TIMEOUT, "invalid-request", why)
        };
        loop {
            let part = tokio::time::timeout(SILENCE, stream.next()).await.map_err(|_| late())?;
            let Some(part) = part else { break };
            let part = part.map_err(|error| {
                let why = format!("the body: {error}");
                Problem::new(StatusCode::BAD_REQUEST, "invalid-request", why)
            })?;
            if (bytes.len() + part.len()) as u64 > limit {
                return Err(Problem::too_large(limit));
            }
            bytes.push(&part);
            if begun.elapsed() > SILENCE + Duration::from_secs(bytes.len() as u64 / SLOWEST) {
                return Err(late());
            }
        }
        match headers.get(header::CONTENT_ENCODING).map(|it| it.to_str().unwrap_or("?")) {
            None | Some("identity") => Ok(bytes),
            Some("gzip") => blocking(move || Ok(expand(&bytes, limit)?.into())).await,
            Some(other) => {
                let why = format!("the content encoding '{other}' is not gzip");
                Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", why))
            }
        }
    }

    /// Waits up to [`TURN`] for a permit, which is held as long as the body is in memory.
    async fn turn(room: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = tokio::time::timeout(TURN, Arc::clone(room).acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let why = "too many bodies are on their way: send it again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", why)
        })
    }

    fn wake(&self) {
        // Whoever submits ends with the service.
        let _ = self.wake.send(());
    }
}

/// Expands a body, up to a limit.
fn expand(bytes: &[u8], limit: u64) -> Result<Vec<u8>, Problem> {
    let mut expanded = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes).take(limit + 1);
    decoder.read_to_end(&mut expanded).map_err(|error| {
        let why = format!("the body is not gzip: {error}");
        Problem::new(StatusCode::BAD_REQUEST, "invalid-request", why)
    })?;
    match expanded.len() as u64 > limit {
        true => Err(Problem::too_large(limit)),
        false => Ok(expanded),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(Problem::internal)?
}

fn needs(headers: &HeaderMap, kind: &str) -> Result<(), Problem> {
    let found = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    // Parameters of a media type do not matter.
    match found.unwrap_or_default().split(';').next().map(str::trim) {
        Some(found) if found.eq_ignore_ascii_case(kind) => Ok(()),
        found => {
            let why = format!("the content type is '{}', and must be {kind}", found.unwrap_or(""));
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", why))
        }
    }
}

type Shared = State<Arc<Service>>;

/// `POST /v1/witness`.
async fn push(
    State(service): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Record>), Problem> {
    service.authorize(&headers)?;
    needs(&headers, OCTETS)?;
    let turn = Service::turn(&service.room).await?;
    let bytes = service.body(&headers, body, service.limit).await?;
    let desk = Arc::clone(&service.desk);
    let origin = Origin::of(Source::Push, &headers);
    let record = blocking(move || {
        // Also if the caller has gone.
        let _turn = turn;
        let push = Push::decode(&bytes).map_err(DeskError::from)?;
        Ok(desk.accept(origin, &push.envelope, None, &push.witness, push.public_keys)?)
    })
    .await?;
    service.wake();
    Ok((StatusCode::ACCEPTED, Json(record)))
}

/// `POST /v1/fetch`.
async fn fetch(
    State(service): Shared,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Record>), Problem> {
    service.authorize(&headers)?;
    needs(&headers, "application/json")?;
    let Some(node) = &service.node else {
        let why = "the service was started without --node";
        return Err(Problem::new(StatusCode::NOT_FOUND, "method-not-found", why));
    };
    let turn = Service::turn(&service.room).await?;
    let bytes = service.body(&headers, body, b::MAX_REQUEST as u64).await?;
    let parameters = blocking(move || {
        Parameters::decode(&bytes).map_err(|(code, error)| {
            let kind = if code == -32_700 { "parse-error" } else { "invalid-body" };
            Problem::new(StatusCode::BAD_REQUEST, kind, error)
        })
    })
    .await?;
    let codec = match service.codec {
        Some(codec) => codec,
        None => node.best_codec().await,
    };
    let fetched = node.fetch(&parameters, codec).await?;
    let desk = Arc::clone(&service.desk);
    let origin = Origin::of(Source::Fetch, &headers);
    let record = blocking(move || {
        let _turn = turn;
        let answer = fetched.answer().map_err(DeskError::from)?;
        let hashes = Some(&parameters.blob_hashes[..]);
        Ok(desk.answer(origin, &parameters.envelope, hashes, &answer)?)
    })
    .await?;
    service.wake();
    Ok((StatusCode::ACCEPTED, Json(record)))
}

/// `GET /v1/witness/{block}`.
async fn record(
    State(service): Shared,
    headers: HeaderMap,
    Path(block): Path<String>,
) -> Result<Json<Record>, Problem> {
    service.authorize(&headers)?;
    let name = block.trim_start_matches("0x").to_owned();
    if name.len() != 64
        || !name.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    {
        let why = "a block is named by its hash: 64 lowercase hexadecimal digits";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid-request", why));
    }
    let desk = Arc::clone(&service.desk);
    let found = blocking(move || Ok(desk.record(&name)?)).await?;
    found.map(Json).ok_or_else(|| {
        let why = format!("there is no witness of block {block}");
        Problem::new(StatusCode::NOT_FOUND, "unknown-payload", why)
    })
}

async fn health() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Metrics for Prometheus.
async fn metrics(State(service): Shared) -> String {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::registry::Registry;
    let counts = &service.desk.counts;
    let mut registry = Registry::with_prefix("hekaton_intake");
    for (name, help, count) in [
        ("witnesses", "Witnesses that were accepted", &counts.accepted),
        ("refused", "Witnesses that were refused", &counts.refused),
        ("jobs", "Jobs that were made", &counts.jobs),
        ("bytes", "Bytes of accepted witnesses", &counts.bytes),
        ("removed", "Records that were removed because of their age", &counts.removed),
    ] {
        let counter = ConstCounter::new(count.load(Ordering::Relaxed));
        registry.register(name, help, counter);
    }
    let mut text = String::new();
    // Into a string, this cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

/// Everything else: passed on to the node, unchanged. Of answers with a witness, a copy is kept.
async fn pass(State(service): Shared, request: Request) -> Result<Response, Problem> {
    let Some(node) = service.node.as_ref().filter(|_| service.proxy) else {
        let why = "there is no such path, and the service passes nothing on without --proxy";
        return Err(Problem::new(StatusCode::NOT_FOUND, "method-not-found", why));
    };
    let (head, body) = request.into_parts();
    // The node checks the token.
    let path = head.uri.path().to_owned();
    let watched = head.method == Method::POST && (path == a::PATH || path == b::PATH);
    let turn = Service::turn(&service.passing).await?;
    // As it came: what is compressed stays so.
    let mut plain = head.headers.clone();
    let encoding = plain.remove(header::CONTENT_ENCODING);
    let bytes = Bytes::from_owner(service.body(&plain, body, b::MAX_REQUEST as u64).await?);
    let origin = Origin::of(Source::Proxy, &head.headers);
    let mut passed = hyper::Request::builder().method(head.method).uri(head.uri);
    let of_connection = of_connection_in(&head.headers);
    for (name, value) in &head.headers {
        // An answer whose copy is kept must not be compressed.
        let compresses = watched && name == header::ACCEPT_ENCODING;
        if !compresses && !of_connection.contains(name) {
            passed = passed.header(name, value);
        }
    }
    let passed = passed.body(Full::new(bytes.clone())).map_err(Problem::internal)?;
    let answer = node.pass(passed).await?;
    let (mut head, body) = answer.into_parts();
    let copied = watched
        && head.status == StatusCode::OK
        && needs(&head.headers, OCTETS).is_ok()
        && encoding.is_none();
    let length = head.headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length: Option<u64> = length.and_then(|length| length.parse().ok());
    for name in of_connection_in(&head.headers) {
        if name != header::CONTENT_LENGTH {
            head.headers.remove(name);
        }
    }
    let stream = body.into_data_stream();
    let body = match copied {
        false => Body::from_stream(stream),
        true => {
            let (send, parts) = tokio::sync::mpsc::unbounded_channel();
            let limit = node.limit();
            let copy = Copy { path, origin, request: bytes, parts, length, limit };
            tokio::spawn(copy.keep(Arc::clone(&service), turn));
            // The caller does not wait for the copy: parts share their memory.
            let ended = send.clone();
            let stream = stream.inspect(move |part| {
                let _ = send.send(part.as_ref().ok().cloned().map_or(Part::Broken, Part::Data));
            });
            let last = futures_util::stream::once(async move {
                let _ = ended.send(Part::End);
                Ok(Bytes::new())
            });
            Body::from_stream(stream.chain(last))
        }
    };
    Ok(Response::from_parts(head, body).into_response())
}

/// Headers that belong to one connection and not to the request (RFC 9110, 7.6.1), and those that are set again.
fn of_connection_in(headers: &HeaderMap) -> Vec<header::HeaderName> {
    let named = headers.get_all(header::CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut names: Vec<header::HeaderName> =
        named.filter_map(|name| name.trim().parse().ok()).collect();
    names.extend([
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::HOST,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::HeaderName::from_static("keep-alive"),
        header::HeaderName::from_static("proxy-connection"),
    ]);
    names
}

/// A part of an answer that passes.
enum Part {
    Data(Bytes),
    /// The node has closed the connection before the end.
    Broken,
    End,
}

/// An answer of which a copy is made as it passes.
struct Copy {
    path: String,
    origin: Origin,
    request: Bytes,
    parts: tokio::sync::mpsc::UnboundedReceiver<Part>,
    length: Option<u64>,
    limit: u64,
}

impl Copy {
    /// The whole answer, or why there is none.
    async fn collect(&mut self) -> Result<Received, &'static str> {
        let capacity = usize::try_from(self.length.unwrap_or(0).min(self.limit)).unwrap_or(0);
        let mut bytes = Received::with_room(capacity);
        loop {
            let part = tokio::time::timeout(MAX_STALL, self.parts.recv()).await;
            match part.map_err(|_| "its caller does not read it")? {
                Some(Part::Data(part)) => {
                    if (bytes.len() + part.len()) as u64 > self.limit {
                        return Err("it is longer than is allowed");
                    }
                    bytes.push(&part);
                }
                Some(Part::End) => return Ok(bytes),
                Some(Part::Broken) => return Err("it broke off"),
                // Who knows the length does not ask for more.
                None if self.length == Some(bytes.len() as u64) => return Ok(bytes),
                None => return Err("its caller has gone before the end"),
            }
        }
    }

    /// Puts the parts of an answer together and accepts what is in it. Nothing that goes wrong here reaches the caller.
    async fn keep(mut self, service: Arc<Service>, turn: OwnedSemaphorePermit) {
        let bytes = match self.collect().await {
            Ok(bytes) => bytes,
            Err(why) => {
                tracing::warn!(why, "no copy of an answer is kept");
                return;
            }
        };
        let desk = Arc::clone(&service.desk);
        let Self { path, origin, request, .. } = self;
        let kept = blocking(move || {
            let _turn = turn;
            let (envelope, hashes) = match path.as_str() {
                a::PATH => Parameters::decode(&request)
                    .map(|it| (it.envelope, Some(it.blob_hashes)))
                    .map_err(|(_, error)| Problem::ssz(error))?,
                _ => (Envelope::decode(&request).map_err(DeskError::from)?, None),
            };
            let answer = decode_answer(&path, &bytes).map_err(DeskError::from)?;
            Ok(desk.answer(origin, &envelope, hashes.as_deref(), &answer)?)
        });
        match kept.await {
            Ok(_) => service.wake(),
            Err(problem) => tracing::warn!(why = problem.detail, "no copy of an answer is kept"),
        }
    }
}

/// The whole service.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/v1/witness", post(push))
        .route("/v1/witness/{block}", get(record))
        .route("/v1/fetch", post(fetch))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .fallback(pass)
        // Bodies have limits of their own.
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(service)
}

/// Answers requests until `end` is true.
pub async fn serve(service: Arc<Service>, listener: TcpListener, end: watch::Receiver<bool>) {
    let limits = Limits::new(MAX_CONNECTIONS, MAX_LIFE).http2(true);
    hekaton_http::accept(router(service), listener, limits, end).await.close().await;
}
