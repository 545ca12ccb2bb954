//! The paths of the service.

mod blobs;
mod chains;
mod jobs;
mod live;

use super::board::Board;
use super::description::completed;
use super::offers::Offers;
use super::problem::{
    BAD_REQUEST, CODING, HOST, INTERNAL, METHOD, NOT_FOUND, OPERATOR, ORIGIN, Rejection,
};
use super::ready::{Parts, Readiness};
use super::tenants::Tenants;
use crate::alive::SharedSession;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::record::SessionId;
use crate::standstill::Watched;
use crate::store::Store;
use crate::submissions::Submissions;
use crate::workflows::Workflows;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use hekaton_orchestrator_client::Blobs;
use hekaton_orchestrator_client::body::HealthBody;
use hekaton_service::{Problem, check_same_site};
use std::sync::{Arc, PoisonError};
use tokio_util::sync::CancellationToken;
use utoipa::OpenApi;

/// The largest body that is not a blob, in bytes.
const MAX_BODY: usize = 1 << 20;

/// The state that the handlers share.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) submissions: Submissions,
    pub(crate) blobs: Blobs,
    pub(crate) workflows: Workflows,
    pub(crate) metrics: Metrics,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) session: SessionId,
    pub(crate) own: SharedSession,
    pub(crate) drain: CancellationToken,
    /// The limit on blobs that are being received.
    pub(crate) transfers: tokio::sync::Semaphore,
    pub(crate) sessions: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) board: Arc<Board>,
    /// The blocks that stand still.
    pub(crate) watched: Watched,
    pub(crate) offers: Offers,
    pub(crate) readiness: Readiness,
    /// Cancelled when the process ends, to end streams that never end by themselves.
    pub(crate) closing: CancellationToken,
}

type Shared = State<Arc<Api>>;

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Rejection))]
struct Path<T>(T);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Rejection))]
struct Query<T>(T);

#[derive(FromRequest)]
#[from_request(via(Json), rejection(Rejection))]
struct JsonBody<T>(T);

/// A body that is read but not used: if it stayed unread, the connection would be closed after the answer.
type Unused = Result<axum::body::Bytes, axum::extract::rejection::BytesRejection>;

fn parse<T: std::str::FromStr>(what: &str, text: &str) -> Result<T, Problem>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| Problem::new(BAD_REQUEST, format!("{what}: {error}")))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Problem::new(INTERNAL, "the request could not be answered")))
}

/// Makes this process claim no more tasks, and exit when its running tasks have ended.
#[utoipa::path(
    post, path = "/v1/drain", tag = "service",
    responses(
        (status = 204, description = "The process claims no more tasks"),
        (status = 403, body = Problem, description = "The service has tenants: only the operator may stop it, with SIGTERM"),
    )
)]
async fn drain(State(api): Shared, _: Unused) -> Result<StatusCode, Problem> {
    if api.tenants.are_several() {
        let why = "a tenant cannot stop a service that others use: as its operator, send SIGTERM to the process";
        return Err(Problem::new(OPERATOR, why));
    }
    api.drain.cancel();
    Ok(StatusCode::NO_CONTENT)
}

/// Reports whether the process runs.
#[utoipa::path(get, path = "/healthz", tag = "service", responses((status = 200, body = HealthBody)))]
async fn health(State(api): Shared) -> Json<HealthBody> {
    let draining = api.own.lock().unwrap_or_else(PoisonError::into_inner).draining;
    Json(HealthBody {
        version: env!("CARGO_PKG_VERSION").into(),
        session: api.session.to_string(),
        store: api.store.describe(),
        draining,
    })
}

/// Reports whether the service can take jobs and publish: records can be read and written, blobs stored, and the session is written.
///
/// This is tested at most once per second. A service that is not ready may still answer reads. It is not ready, either, while a chain
/// stands still: `detail` then names the block and what it waits for. Requests are still answered during a standstill, so use `/healthz` to
/// decide where to route them.
#[utoipa::path(
    get, path = "/readyz", tag = "service",
    responses((status = 204, description = "The service is ready"), (status = 503, body = Problem, description = "The service is not ready, or a chain stands still: see `detail`"))
)]
async fn ready(State(api): Shared) -> Result<StatusCode, Problem> {
    let Api { store, blobs, board, tenants, watched, .. } = &*api;
    api.readiness.check(&Parts { store: &**store, blobs, board, tenants, watched }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the metrics of the process, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "service", responses((status = 200, content_type = "application/openmetrics-text", body = String)))]
async fn metrics(State(api): Shared) -> Result<Response, Problem> {
    let text = api.metrics.text().map_err(|error| Problem::hidden(INTERNAL, error))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "service", responses((status = 200, body = Object)))]
async fn description() -> Json<utoipa::openapi::OpenApi> {
    Json(open_api())
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Hekaton orchestrator",
        description = "Accepts proving jobs, has provers run them, survives the failure of any one of its parts, and \
                       publishes proofs in the order of their chain.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        jobs::submit, jobs::job, jobs::cancel, jobs::requeue, jobs::skip, jobs::workflow, blobs::put_blob,
        blobs::blob, live::jobs, live::events, chains::make_chain, chains::chain, chains::proofs, chains::dead, chains::revert, drain, health, ready,
        metrics, description,
    ),
    tags(
        (name = "jobs", description = "Blocks to prove"),
        (name = "chains", description = "Chains of blocks, and their published proofs"),
        (name = "blobs", description = "Inputs and outputs"),
        (name = "service", description = "The service itself"),
    )
)]
struct Description;

/// The description of the API (OpenAPI 3.1).
pub fn open_api() -> utoipa::openapi::OpenApi {
    completed(Description::openapi())
}

async fn unknown() -> Problem {
    Problem::new(NOT_FOUND, "there is no such path; /openapi.json describes all paths")
}

async fn other_method() -> Problem {
    Problem::new(METHOD, "the path has no such method; /openapi.json describes all methods")
}

/// Pages in a browser must not act for the person looking at them. Without tokens, the same holds for pages whose host name
/// resolves to this machine (DNS rebinding).
async fn same_site(State(api): Shared, request: Request, next: Next) -> Response {
    if let Err(problem) = check_same_site(ORIGIN, &request) {
        return problem.into_response();
    }
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    // With tokens, a page that was let in by its name has no token to send.
    if !api.tenants.are_several() && !host.is_some_and(is_this_machine) {
        let why = "without tenants, the service answers only requests to a local address of this machine, such as 127.0.0.1";
        return Problem::new(HOST, why).into_response();
    }
    next.run(request).await
}

/// Refuses bodies with a content coding: bodies are not decoded, so the coded bytes would be taken for the content.
async fn plain(request: Request, next: Next) -> Response {
    let mut codings = request
        .headers()
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    // Codings are the same in capital letters (RFC 9110, 8.4.1).
    let other = codings.find(|coding| {
        let coding = coding.trim_ascii();
        !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")
    });
    match other {
        None => next.run(request).await,
        Some(coding) => {
            let coding = String::from_utf8_lossy(coding.trim_ascii());
            let why =
                format!("the content coding '{coding}' is not supported: send the body without it");
            Problem::new(CODING, why).into_response()
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let bracketed = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = bracketed.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The whole service.
pub(crate) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/v1/jobs", post(jobs::submit).get(live::jobs))
        .route("/v1/events", get(live::events))
        .route("/v1/jobs/{job}", get(jobs::job).delete(jobs::cancel))
        .route("/v1/jobs/{job}/requeue", post(jobs::requeue))
        .route("/v1/jobs/{job}/skip", post(jobs::skip))
        .route("/v1/workflows", post(jobs::workflow))
        .route("/v1/chains/{chain}", put(chains::make_chain).get(chains::chain))
        .route("/v1/chains/{chain}/proofs", get(chains::proofs))
        .route("/v1/chains/{chain}/dead", get(chains::dead))
        .route("/v1/chains/{chain}/revert", post(chains::revert))
        .route("/v1/drain", post(drain))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        // Blobs have a limit of their own.
        .route(
            "/v1/blobs/{digest}",
            put(blobs::put_blob).get(blobs::blob).layer(DefaultBodyLimit::disable()),
        )
        .route("/", get(live::page))
        .route("/live.js", get(live::script))
        .route("/live.css", get(live::style))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(description))
        .method_not_allowed_fallback(other_method)
        .fallback(unknown)
        // Layers run from the last to the first: a request from another site is refused before anything else in it is examined.
        .layer(from_fn(plain))
        .layer(from_fn_with_state(Arc::clone(&api), same_site))
        .with_state(api)
}
