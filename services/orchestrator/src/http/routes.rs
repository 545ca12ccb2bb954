//! The paths of the service.

use super::body::{
    BlobBody, ChainBody, ChainState, HealthBody, JobBody, JobStatus, ProofBody, ProofsBody,
    RevertBody, WorkflowBody,
};
use super::problem::{
    BAD_REQUEST, HOST, INTERNAL, METHOD, MISFIT, NOT_FOUND, OPERATOR, ORIGIN, Problem, TOO_LARGE,
    UNAVAILABLE,
};
use super::tenants::Tenants;
use crate::alive::Own;
use crate::blobs::Blobs;
use crate::dispatcher::BLOCKS_BEHIND_DEAD;
use crate::id::{Digest, Name};
use crate::intake::{Intake, IntakeError, Submission};
use crate::metrics::Metrics;
use crate::record::{Handle, Job, JobKey, JobState, Order, SessionId, decode};
use crate::settings::Tenant;
use crate::store::Store;
use crate::workflow::Workflow;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use futures_util::StreamExt;
use serde::Deserialize;
use std::io::Read;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use utoipa::{IntoParams, OpenApi};

/// The largest body that is not a blob, in bytes.
const MAX_BODY: usize = 1 << 20;

/// The longest wait for a job, in seconds. Connections live five minutes.
const MAX_WAIT: u32 = 240;

/// How many entries of a log are answered at once.
const MAX_PROOFS: usize = 500;

/// What the handlers share.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Intake,
    pub(crate) blobs: Blobs,
    pub(crate) metrics: Metrics,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) session: SessionId,
    pub(crate) own: Own,
    pub(crate) drain: CancellationToken,
    /// How many blobs may be on their way in.
    pub(crate) transfers: tokio::sync::Semaphore,
}

type Shared = State<Arc<Api>>;

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
struct Path<T>(T);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
struct Query<T>(T);

#[derive(FromRequest)]
#[from_request(via(Json), rejection(Problem))]
struct JsonBody<T>(T);

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

/// Submits a job.
///
/// It is on disk when this answers. The same job sent again is the same job.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", request_body = JobBody,
    responses(
        (status = 200, body = JobStatus, description = "It was accepted before"),
        (status = 201, body = JobStatus, description = "It is accepted"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "Another block is in its place"),
        (status = 422, body = Problem, description = "It does not fit its workflow"),
        (status = 429, body = Problem, description = "Too much waits already"),
        (status = 503, body = Problem, description = "Whether it was accepted is not known: send it again"),
    )
)]
async fn submit(
    State(api): Shared,
    headers: HeaderMap,
    JsonBody(body): JsonBody<JobBody>,
) -> Result<(StatusCode, Json<JobStatus>), Problem> {
    let (name, tenant) = api.tenants.of(&headers)?;
    let submission = submission(&api, name, body, &headers).await?;
    admit(&api, tenant, &submission).await?;
    let accepted = api.intake.submit(submission).await?;
    let status = if accepted.new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(JobStatus::from(&accepted.job))))
}

/// A submission from a body whose names and blobs are there.
async fn submission(
    api: &Arc<Api>,
    tenant: Name,
    body: JobBody,
    headers: &HeaderMap,
) -> Result<Submission, Problem> {
    let workflow = match (&body.workflow, &body.backend) {
        (Some(digest), None) => parse("workflow", digest)?,
        (None, Some(backend)) => {
            let bytes = Workflow::single(parse("backend", backend)?).to_bytes();
            let blobs = api.blobs.clone();
            blocking(move || Ok(blobs.put(&bytes)?)).await?
        }
        _ => return Err(Problem::new(BAD_REQUEST, "name either a 'workflow' or a 'backend'")),
    };
    let mut inputs = std::collections::BTreeMap::new();
    for (name, digests) in &body.inputs {
        let mut blobs = Vec::new();
        for digest in digests {
            let digest: Digest = parse("inputs", digest)?;
            if !api.blobs.has(&digest) {
                let why = format!(
                    "inputs: there is no blob {digest}: PUT it to /v1/blobs/{digest} first"
                );
                return Err(Problem::new(MISFIT, why));
            }
            blobs.push(digest);
        }
        inputs.insert(parse("inputs", name)?, blobs);
    }
    let id = match &body.id {
        Some(id) => parse("id", id)?,
        None => {
            let parts = inputs.values().flatten().map(|digest: &Digest| &digest.as_bytes()[..]);
            let parts = [&workflow.as_bytes()[..]].into_iter().chain(parts);
            Digest::of_parts("hekaton orchestrator 1 block", parts).into()
        }
    };
    let trace = headers.get("traceparent").and_then(|value| value.to_str().ok());
    let trace = trace.filter(|text| is_traceparent(text)).map(str::to_owned);
    let parent = body.parent.as_deref().map(|parent| parse("parent", parent)).transpose()?;
    let chain = parse("chain", &body.chain)?;
    let JobBody { block, lane, .. } = body;
    Ok(Submission { tenant, chain, block, id, parent, lane, workflow, inputs, trace })
}

/// Whether a text is a W3C trace context: version, trace, span and flags.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2]
        && text
            .bytes()
            .all(|byte| byte == b'-' || (byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()))
}

/// Refuses what is too much. What was accepted before is not refused, as clients send again what they got no answer to.
async fn admit(api: &Api, tenant: &Tenant, submission: &Submission) -> Result<(), Problem> {
    let slot = submission.parent.as_ref().unwrap_or(&submission.id).clone();
    let key = JobKey { tenant: submission.tenant.clone(), chain: submission.chain.clone(), slot };
    let known = api.store.get(&key.to_string()).await;
    let known = known.map_err(|error| Problem::new(UNAVAILABLE, error))?;
    let known = known.and_then(|entry| decode::<Job>(&entry).ok()).map(|job| job.value.state);
    if matches!(known, Some(JobState::Live | JobState::Done { .. } | JobState::Skipped { .. })) {
        return Ok(());
    }
    if let Some(dead) = api.tenants.dead(&submission.tenant, &submission.chain)
        && submission.parent.is_some()
        && submission.block > dead.saturating_add(BLOCKS_BEHIND_DEAD)
    {
        return Err(IntakeError::BehindDead { chain: submission.chain.clone(), dead }.into());
    }
    api.tenants.admit(&submission.tenant, tenant)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Answer when the job has ended, or after this many seconds, at most 240.
    #[serde(default)]
    wait: u32,
}

/// Reads a job.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "What `POST /v1/jobs` answered"), Wait),
    responses((status = 200, body = JobStatus), (status = 401, body = Problem), (status = 404, body = Problem))
)]
async fn job(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
    Query(Wait { wait }): Query<Wait>,
) -> Result<Json<JobStatus>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let handle: Handle = parse("job", &handle)?;
    let until = tokio::time::Instant::now() + Duration::from_secs(wait.min(MAX_WAIT).into());
    loop {
        let found = api.intake.job(&tenant, &handle).await?;
        if !found.value.is_live() || tokio::time::Instant::now() >= until {
            return Ok(Json(JobStatus::from(&found.value)));
        }
        let watch = api.store.watch(&found.value.key().to_string(), found.rev).await;
        let mut watch = watch.map_err(|error| Problem::new(UNAVAILABLE, error))?;
        // A watch that is dead must not make anybody wait longer than this.
        let look = until.min(tokio::time::Instant::now() + Duration::from_secs(10));
        let _ = tokio::time::timeout_at(look, watch.next()).await;
    }
}

/// Cancels a job.
#[utoipa::path(
    delete, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path)),
    responses((status = 200, body = JobStatus), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is done"))
)]
async fn cancel(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
) -> Result<Json<JobStatus>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let job = api.intake.cancel(&tenant, &parse("job", &handle)?, "it was cancelled").await?;
    Ok(Json(JobStatus::from(&job)))
}

/// Has a dead or cancelled job live again.
#[utoipa::path(
    post, path = "/v1/jobs/{job}/requeue", tag = "jobs", params(("job" = String, Path)),
    responses((status = 200, body = JobStatus), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is done"))
)]
async fn requeue(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
) -> Result<Json<JobStatus>, Problem> {
    let (tenant, limits) = api.tenants.of(&headers)?;
    let handle = parse("job", &handle)?;
    if !api.intake.job(&tenant, &handle).await?.value.is_live() {
        api.tenants.admit(&tenant, limits)?;
    }
    let job = api.intake.requeue(&tenant, &handle).await?;
    Ok(Json(JobStatus::from(&job)))
}

/// Has a chain go on without its dead next block.
#[utoipa::path(
    post, path = "/v1/jobs/{job}/skip", tag = "jobs", params(("job" = String, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is not dead, or not the next one"))
)]
async fn skip(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
) -> Result<StatusCode, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    api.intake.skip(&tenant, &parse("job", &handle)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stores a blob. It is on disk when this answers.
#[utoipa::path(
    put, path = "/v1/blobs/{digest}", tag = "blobs", params(("digest" = String, Path, description = "Its BLAKE3 digest")),
    request_body(content_type = "application/octet-stream"),
    responses(
        (status = 200, body = BlobBody), (status = 400, body = Problem, description = "It has another digest"),
        (status = 413, body = Problem), (status = 507, body = Problem, description = "The disk is full"),
    )
)]
async fn put_blob(
    State(api): Shared,
    headers: HeaderMap,
    Path(digest): Path<String>,
    body: Body,
) -> Result<Json<BlobBody>, Problem> {
    let (_, tenant) = api.tenants.of(&headers)?;
    let digest: Digest = parse("digest", &digest)?;
    let limit = tenant.blob_bytes;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced.and_then(|text| text.parse().ok()).is_some_and(|length: u64| length > limit) {
        return Err(Problem::new(TOO_LARGE, format!("a blob may have {limit} bytes")));
    }
    let blobs = api.blobs.clone();
    // Each has files open.
    let _turn = api.transfers.acquire().await;
    let mut incoming = blocking(move || Ok(blobs.begin(limit)?)).await?;
    let mut stream = body.into_data_stream();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|error| Problem::new(BAD_REQUEST, format!("the body: {error}")))?;
        incoming = blocking(move || {
            incoming.write(&part)?;
            Ok(incoming)
        })
        .await?;
    }
    blocking(move || {
        let (found, bytes) = (incoming.digest(), incoming.length());
        if found != digest {
            let why = format!("the body has digest {found}, and the path says {digest}");
            return Err(Problem::new(BAD_REQUEST, why));
        }
        let blob = incoming.finish()?;
        Ok(Json(BlobBody { blob: blob.to_string(), bytes }))
    })
    .await
}

/// Reads a blob: an output, or an input.
#[utoipa::path(
    get, path = "/v1/blobs/{digest}", tag = "blobs", params(("digest" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream"), (status = 404, body = Problem))
)]
async fn blob(
    State(api): Shared,
    headers: HeaderMap,
    Path(digest): Path<String>,
) -> Result<Response, Problem> {
    api.tenants.of(&headers)?;
    let digest: Digest = parse("digest", &digest)?;
    let path = api.blobs.path(&digest);
    let opened = blocking(move || match std::fs::File::open(&path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Problem::new(NOT_FOUND, format!("there is no blob {digest}")))
        }
        Err(error) => Err(Problem::new(INTERNAL, error)),
    });
    let file = opened.await?;
    let length = file.metadata().map_err(|error| Problem::new(INTERNAL, error))?.len();
    // A part at a time, so that a large one is not in memory. Clients check the digest.
    let parts = futures_util::stream::unfold(file, |mut file| async {
        let read = tokio::task::spawn_blocking(move || {
            let mut part = vec![0; 256 << 10];
            let count = file.read(&mut part);
            (file, count.map(|count| Bytes::from(part).slice(..count)))
        });
        let (file, part) = read.await.ok()?;
        match part {
            Ok(part) if part.is_empty() => None,
            part => Some((part, file)),
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::ETAG, format!("\"{digest}\"")),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// Checks a workflow and stores it. The body is its TOML text.
#[utoipa::path(
    post, path = "/v1/workflows", tag = "jobs", request_body(content = String, content_type = "application/toml"),
    responses((status = 200, body = WorkflowBody), (status = 422, body = Problem, description = "It could not work"))
)]
async fn workflow(
    State(api): Shared,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<WorkflowBody>, Problem> {
    api.tenants.of(&headers)?;
    let blobs = api.blobs.clone();
    blocking(move || {
        let text = std::str::from_utf8(&body).map_err(|error| Problem::new(BAD_REQUEST, error))?;
        let workflow = Workflow::parse(text).map_err(|error| Problem::new(MISFIT, error))?;
        let digest = blobs.put(&workflow.to_bytes())?;
        Ok(Json(WorkflowBody { workflow: digest.to_string(), name: workflow.name.to_string() }))
    })
    .await
}

/// Makes a chain.
#[utoipa::path(
    put, path = "/v1/chains/{chain}", tag = "chains", params(("chain" = String, Path)), request_body = ChainBody,
    responses((status = 200, body = ChainState), (status = 409, body = Problem, description = "It exists with another order or genesis"))
)]
async fn make_chain(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
    JsonBody(body): JsonBody<ChainBody>,
) -> Result<Json<ChainState>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let chain: Name = parse("chain", &chain)?;
    let genesis = body.genesis.as_deref().map(|genesis| parse("genesis", genesis)).transpose()?;
    api.intake.make_chain(tenant.clone(), chain.clone(), body.order, genesis).await?;
    state_of(&api, &tenant, &chain).await
}

async fn state_of(api: &Api, tenant: &Name, chain: &Name) -> Result<Json<ChainState>, Problem> {
    let found = api.intake.chain(tenant, chain).await?;
    let (tail, tip) = match found.order {
        Order::Strict => {
            (api.intake.last_published(tenant, chain).await?, api.intake.tip(&found).await?)
        }
        Order::None => (None, None),
    };
    Ok(Json(ChainState {
        chain: chain.to_string(),
        order: found.order,
        tail: tail
            .as_ref()
            .map(|tail| tail.tail().to_string())
            .or(found.genesis.as_ref().map(Name::to_string)),
        height: tail.as_ref().map(|tail| tail.height()),
        tip_height: tip.as_ref().and_then(|(_, height)| *height),
        tip: tip.map(|(id, _)| id.to_string()),
        genesis: found.genesis.map(|genesis| genesis.to_string()),
    }))
}

/// Reads a chain.
#[utoipa::path(
    get, path = "/v1/chains/{chain}", tag = "chains", params(("chain" = String, Path)),
    responses((status = 200, body = ChainState), (status = 404, body = Problem))
)]
async fn chain(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
) -> Result<Json<ChainState>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    state_of(&api, &tenant, &parse("chain", &chain)?).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct From {
    /// The revision of the last entry that is known.
    #[serde(default)]
    from: u64,
}

/// What a chain has published, in its order.
#[utoipa::path(
    get, path = "/v1/chains/{chain}/proofs", tag = "chains", params(("chain" = String, Path), From),
    responses((status = 200, body = ProofsBody), (status = 404, body = Problem))
)]
async fn proofs(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
    Query(From { from }): Query<From>,
) -> Result<Json<ProofsBody>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let chain = parse("chain", &chain)?;
    let found = api.intake.published(&tenant, &chain, from, MAX_PROOFS).await?;
    let next = found.last().map_or(from, |(rev, _)| rev.number);
    let proofs = found.iter().map(|(rev, publication)| ProofBody::new(rev.number, publication));
    Ok(Json(ProofsBody { proofs: proofs.collect(), next }))
}

/// Tears a chain off after a block: a re-org.
#[utoipa::path(
    post, path = "/v1/chains/{chain}/revert", tag = "chains", params(("chain" = String, Path)), request_body = RevertBody,
    responses((status = 200, body = ChainState), (status = 400, body = Problem), (status = 404, body = Problem))
)]
async fn revert(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
    JsonBody(body): JsonBody<RevertBody>,
) -> Result<Json<ChainState>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let chain: Name = parse("chain", &chain)?;
    api.intake.revert(&tenant, &chain, &parse("to", &body.to)?, body.block).await?;
    state_of(&api, &tenant, &chain).await
}

/// Has this process claim no more tasks. It ends when the ones that it runs have ended.
#[utoipa::path(post, path = "/v1/drain", tag = "service", responses((status = 204)))]
async fn drain(State(api): Shared) -> Result<StatusCode, Problem> {
    if api.tenants.are_several() {
        let why = "a tenant cannot stop what others use: send SIGTERM to the process";
        return Err(Problem::new(OPERATOR, why));
    }
    api.drain.cancel();
    Ok(StatusCode::NO_CONTENT)
}

/// Whether the process runs.
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

/// Whether the store answers.
#[utoipa::path(get, path = "/readyz", tag = "service", responses((status = 204), (status = 503, body = Problem)))]
async fn ready(State(api): Shared) -> Result<StatusCode, Problem> {
    let asked = tokio::time::timeout(Duration::from_secs(5), api.store.get("owner/00")).await;
    match asked {
        Ok(Ok(_)) => Ok(StatusCode::NO_CONTENT),
        Ok(Err(error)) => Err(Problem::new(UNAVAILABLE, error)),
        Err(_) => Err(Problem::new(UNAVAILABLE, "the store does not answer")),
    }
}

/// What the process counts, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "service", responses((status = 200, content_type = "application/openmetrics-text", body = String)))]
async fn metrics(State(api): Shared) -> Result<Response, Problem> {
    let text = api.metrics.text().map_err(|error| Problem::new(INTERNAL, error))?;
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
        description = "Takes proving jobs, has them done by provers, survives any failure of one of its parts, and \
                       publishes proofs in the order of their chain.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        submit, job, cancel, requeue, skip, put_blob, blob, workflow, make_chain, chain, proofs, revert,
        drain, health, ready, metrics, description,
    ),
    tags(
        (name = "jobs", description = "Blocks to prove"),
        (name = "chains", description = "What they are published in"),
        (name = "blobs", description = "Inputs and outputs"),
        (name = "service", description = "The service itself"),
    )
)]
struct Description;

/// The description of the API (OpenAPI 3.1).
pub fn open_api() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

async fn unknown() -> Problem {
    Problem::new(NOT_FOUND, "there is no such path; /openapi.json describes all")
}

async fn other_method() -> Problem {
    Problem::new(METHOD, "the path has no such method; /openapi.json describes all")
}

/// Pages in a browser must not act for whoever looks at them. Without tokens, neither may pages whose name leads to this machine.
async fn same_site(State(api): Shared, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) {
        let why = "the request comes from a page of another site";
        return Problem::new(ORIGIN, why).into_response();
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    if !api.tenants.are_several() && !host.is_some_and(is_this_machine) {
        let why = "without tenants, the service is asked by the address of this machine alone";
        return Problem::new(HOST, why).into_response();
    }
    next.run(request).await
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The whole service.
pub(crate) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/v1/jobs", post(submit))
        .route("/v1/jobs/{job}", get(job).delete(cancel))
        .route("/v1/jobs/{job}/requeue", post(requeue))
        .route("/v1/jobs/{job}/skip", post(skip))
        .route("/v1/workflows", post(workflow))
        .route("/v1/chains/{chain}", put(make_chain).get(chain))
        .route("/v1/chains/{chain}/proofs", get(proofs))
        .route("/v1/chains/{chain}/revert", post(revert))
        .route("/v1/drain", post(drain))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        // Blobs have a limit of their own.
        .route("/v1/blobs/{digest}", put(put_blob).get(blob).layer(DefaultBodyLimit::disable()))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(description))
        .method_not_allowed_fallback(other_method)
        .fallback(unknown)
        .layer(from_fn_with_state(Arc::clone(&api), same_site))
        .with_state(api)
}
