//! The paths of the service.

use crate::answer;
use crate::body::{
    ContinuationBody, EpochBody, EpochsBody, HealthBody, HistoryBody, KeyBody, ProofBody,
    ProofRange, ProofsBody, RecordsBody, UpdateBody, UpdateStatus,
};
use crate::parameters::ParametersFile;
use crate::problem::{Refusal, kind};
use crate::schema::{Any, AnyWithBody};
use crate::service::Service;
use axum::Json;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{Router, get, post};
use hekaton_service::{Problem, check_same_site};
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower_http::cors::{self, CorsLayer};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi};

/// The largest request: a value of 64 KiB as JSON, in which each byte may take six.
const MAX_BODY: usize = 512 << 10;

/// The longest time for a request, which is more than anybody may wait for an outcome.
const MAX_TIME: Duration = Duration::from_secs(90);

/// Path, query and body, with problems instead of axum's own answers.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Refusal))]
struct Path<T>(T);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Refusal))]
struct Query<T>(T);

#[derive(FromRequest)]
#[from_request(via(Json), rejection(Refusal))]
struct Body<T>(T);

/// The parameters of a look-up.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct At {
    /// The epoch. Without it, the last one.
    epoch: Option<u32>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Answer when the update is visible or refused, or after a minute; at once, if too many others wait.
    #[serde(default)]
    wait: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Range {
    /// The first epoch.
    from: u32,
    /// The last epoch.
    to: u32,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct FirstEpoch {
    /// The first epoch whose proof is asked for.
    #[serde(default)]
    from: u32,
}

/// The state that the handlers share.
type Shared = State<Arc<Service>>;

/// Runs what may read the disk or wait, off the threads that answer.
async fn blocking<T: Send + 'static>(
    service: Arc<Service>,
    work: impl FnOnce(&Service) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    // Most requests read the disk, which would stop every connection of a thread of the runtime.
    let done = tokio::task::spawn_blocking(move || work(&service)).await;
    done.unwrap_or_else(|_| Err(Refusal::new(kind::INTERNAL, "the request could not be answered")))
}

/// Sends an update.
///
/// Once it is accepted it is on the server's disk, and will have an outcome.
#[utoipa::path(
    post, path = "/v1/updates", tag = "updates", params(Wait), request_body = UpdateBody, security((), ("token" = [])),
    responses(
        AnyWithBody,
        (status = 200, body = UpdateStatus, description = "It is visible"),
        (status = 202, body = UpdateStatus, description = "It is accepted"),
        (status = 401, body = Problem, content_type = "application/problem+json", description = "The service has writers, and the header Authorization has none of their tokens"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "It is sent by a page in a browser"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "It was refused, or its idempotency key was used for another one"),
        (status = 429, body = Problem, content_type = "application/problem+json", description = "Too many updates wait, or too many epochs are not proven"),
    )
)]
async fn submit(
    State(service): Shared,
    Query(Wait { wait }): Query<Wait>,
    Body(body): Body<UpdateBody>,
) -> Result<(StatusCode, Json<UpdateStatus>), Refusal> {
    let status = blocking(service, move |service| {
        service.check_unproven()?;
        let sent = answer::submit(&service.server, body)?;
        // Without a permit, the update is accepted all the same, and the client can ask for its
        // outcome.
        match service.waiting.try_acquire() {
            Ok(_held) if wait => {
                let waited = answer::wait(&service.server, sent.clone(), service.options.wait);
                match waited {
                    // It is accepted, whatever became of the wait; only a refusal is the update's own.
                    Err(refusal) if refusal.0.status != kind::CONFLICT.status => Ok(sent),
                    waited => waited,
                }
            }
            _ => Ok(sent),
        }
    })
    .await?;
    let code = match status.state {
        crate::body::State::Accepted => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    Ok((code, Json(status)))
}

/// Returns the status of an update.
#[utoipa::path(
    get, path = "/v1/updates/{number}", tag = "updates", params(("number" = u64, Path, description = "The number of the update")),
    responses(
        Any,
        (status = 200, body = UpdateStatus),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such update, or its outcome is no longer kept"),
    )
)]
async fn update(
    State(service): Shared,
    Path(number): Path<u64>,
) -> Result<Json<UpdateStatus>, Refusal> {
    blocking(service, move |service| answer::update(&service.server, number)).await.map(Json)
}

/// Returns the value of a label, with its proof.
#[utoipa::path(
    get, path = "/v1/keys/{label}", tag = "keys", params(("label" = String, Path, description = "The label"), At),
    responses(
        Any,
        (status = 200, body = KeyBody, description = "The label's value, or the proof that it has none"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such epoch yet"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "The epoch is pruned"),
    )
)]
async fn key(
    State(service): Shared,
    Path(label): Path<String>,
    Query(At { epoch }): Query<At>,
) -> Result<Json<KeyBody>, Refusal> {
    let work = move |service: &Service| answer::key(&service.server, label.as_bytes(), epoch);
    blocking(service, work).await.map(Json)
}

/// All that a label has had, with the proof of it.
#[utoipa::path(
    get, path = "/v1/keys/{label}/history", tag = "keys", params(("label" = String, Path, description = "The label"), At),
    responses(
        Any,
        (status = 200, body = HistoryBody),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such epoch yet"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "The epoch is pruned"),
        (status = 413, body = Problem, content_type = "application/problem+json", description = "The values have more than 128 MiB together"),
    )
)]
async fn history(
    State(service): Shared,
    Path(label): Path<String>,
    Query(At { epoch }): Query<At>,
) -> Result<Response, Refusal> {
    // One history may be as large as everything else together. Who waits for that has a connection.
    let turn = {
        let _waits = service.waiting_histories.try_acquire().map_err(|_| {
            Refusal::new(kind::BUSY, "too many histories are on their way: ask again later")
        })?;
        Arc::clone(&service.histories).acquire_owned().await
    };
    let held = turn.map_err(|error| Refusal::new(kind::INTERNAL, error))?;
    let answers = Arc::clone(&service.sent_histories);
    // It is read to its end, even if the client is gone, and the next one waits for that.
    let work = move |service: &Service| {
        let body = answer::history(&service.server, label.as_bytes(), epoch)?;
        let bytes = serde_json::to_vec(&body);
        bytes.map(|bytes| (bytes, held)).map_err(|error| Refusal::new(kind::INTERNAL, error))
    };
    let (bytes, held) = blocking(service, work).await?;
    let body = axum::body::Body::new(answers.send(bytes).await);
    // Slow readers keep no others from reading theirs.
    drop(held);
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The last epoch, and how far all of them have come.
#[utoipa::path(
    get, path = "/v1/epochs", tag = "epochs",
    responses((status = 200, body = EpochsBody), Any)
)]
async fn epochs(State(service): Shared) -> Result<Json<EpochsBody>, Refusal> {
    blocking(service, |service| answer::epochs(&service.server)).await.map(Json)
}

/// An epoch.
#[utoipa::path(
    get, path = "/v1/epochs/{epoch}", tag = "epochs", params(("epoch" = u32, Path, description = "The number of the epoch")),
    responses(
        Any,
        (status = 200, body = EpochBody),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such epoch yet"),
    )
)]
async fn epoch(State(service): Shared, Path(epoch): Path<u32>) -> Result<Json<EpochBody>, Refusal> {
    blocking(service, move |service| answer::epoch(&service.server, epoch)).await.map(Json)
}

/// The signed records of epochs, at most 4,096 of them.
#[utoipa::path(
    get, path = "/v1/records", tag = "epochs", params(Range),
    responses(
        Any,
        (status = 200, body = RecordsBody),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such epoch yet"),
    )
)]
async fn records(
    State(service): Shared,
    Query(Range { from, to }): Query<Range>,
) -> Result<Json<RecordsBody>, Refusal> {
    let work = move |service: &Service| answer::records(&service.server, from, to);
    blocking(service, work).await.map(Json)
}

/// The proof that the record of an epoch continues the history of an earlier one.
///
/// A client that has seen that one continues from it without the records in between.
#[utoipa::path(
    get, path = "/v1/continuation", tag = "epochs", params(Range),
    responses(
        Any,
        (status = 200, body = ContinuationBody),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such epoch yet"),
    )
)]
async fn continuation(
    State(service): Shared,
    Query(Range { from, to }): Query<Range>,
) -> Result<Json<ContinuationBody>, Refusal> {
    let work = move |service: &Service| answer::continuation(&service.server, from, to);
    blocking(service, work).await.map(Json)
}

/// The proofs that are attached, at most 512 of them.
#[utoipa::path(
    get, path = "/v1/proofs", tag = "epochs", params(FirstEpoch),
    responses((status = 200, body = ProofsBody), Any)
)]
async fn proofs(
    State(service): Shared,
    Query(FirstEpoch { from }): Query<FirstEpoch>,
) -> Result<Json<ProofsBody>, Refusal> {
    blocking(service, move |service| answer::proofs(&service.server, from)).await.map(Json)
}

/// A proof of epochs.
#[utoipa::path(
    get, path = "/v1/proofs/{range}", tag = "epochs",
    params(("range" = String, Path, description = "The epoch before the first one and the last one, as 4-9", example = "4-9", pattern = "^[0-9]+-[0-9]+$")),
    responses(
        Any,
        (status = 200, body = ProofBody),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no proof of exactly these epochs"),
    )
)]
async fn proof(
    State(service): Shared,
    Path(range): Path<String>,
) -> Result<Json<ProofBody>, Refusal> {
    let parsed = range
        .split_once('-')
        .and_then(|(from, to)| Some(ProofRange { from: from.parse().ok()?, to: to.parse().ok()? }));
    let range = parsed.ok_or_else(|| {
        let why = format!(
            "'{range}' are no epochs: expected the one before the first and the last, as 4-9"
        );
        Refusal::new(kind::BAD_REQUEST, why)
    })?;
    blocking(service, move |service| answer::proof(&service.server, range)).await.map(Json)
}

/// The parameters of the directory, to compare: clients must get them from another source.
#[utoipa::path(get, path = "/v1/parameters", tag = "service", responses((status = 200, body = ParametersFile), Any))]
async fn parameters(State(service): Shared) -> Json<ParametersFile> {
    Json(ParametersFile::of(service.server.parameters()))
}

/// Reports whether the service answers. Look-ups are answered while its disk is full, and so is this.
#[utoipa::path(get, path = "/healthz", tag = "service", responses((status = 200, body = HealthBody), Any))]
async fn health(State(service): Shared) -> Result<Json<HealthBody>, Refusal> {
    // All of it is in memory, so that nothing can keep it waiting.
    let epoch = service.server.view()?.record().epoch;
    let proof_failures = service.proving.stats().failures;
    let (proven, proves) = (service.server.proven()?, service.proving.proves());
    Ok(Json(HealthBody { epoch, proven, proof_failures, proves }))
}

/// Reports whether the service takes updates.
#[utoipa::path(
    get, path = "/readyz", tag = "service",
    responses((status = 204, description = "It takes updates"), Any)
)]
async fn ready(State(service): Shared) -> Result<StatusCode, Refusal> {
    service.server.ready()?;
    // Status 429 is only for updates that are refused.
    service
        .check_unproven()
        .map_err(|refusal| Refusal::new(kind::UNAVAILABLE, refusal.0.detail))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the metrics of the service, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "service", responses((status = 200, content_type = "application/openmetrics-text", body = String), Any))]
async fn metrics(State(service): Shared) -> Result<Response, Refusal> {
    let text = blocking(service, |service| {
        let text = service.metrics.text(&service.server, &service.proving.stats());
        text.map_err(|error| Refusal::new(kind::INTERNAL, error))
    })
    .await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "service", responses((status = 200, body = Object), Any))]
async fn description() -> Json<utoipa::openapi::OpenApi> {
    Json(open_api())
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Hekaton key directory",
        description = "A verifiable key directory. An update is accepted once it is on the server's disk, visible once the \
                       record of its epoch is signed, and proven once a proof of its epoch is attached. Clients verify \
                       records, paths, values and proofs with parameters that they do not have from the server.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        submit, update, key, history, epochs, epoch, records, continuation, proofs, proof,
        parameters, health, ready, metrics, description,
    ),
    components(schemas(Problem)),
    modifiers(&Tokens),
    tags(
        (name = "updates", description = "Changing labels"),
        (name = "keys", description = "Looking labels up"),
        (name = "epochs", description = "Records and proofs, for clients that were away and for auditors"),
        (name = "service", description = "The service itself"),
    )
)]
struct Api;

/// The tokens of writers, in the description.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        api.components.get_or_insert_default().add_security_scheme("token", bearer);
    }
}

/// The description of the API (OpenAPI 3.1).
pub fn open_api() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

/// Counts a request and the time that it takes.
async fn counted(State(service): Shared, request: Request, next: Next) -> Response {
    let since = Instant::now();
    // Unknown methods are counted as one, since every distinct name is kept forever.
    let method = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    };
    // The route instead of the path: each label would be kept forever, and anyone could read it in
    // the metrics.
    let matched = request.extensions().get::<MatchedPath>();
    let path = matched.map_or("none", |path| path.as_str()).to_owned();
    let response = next.run(request).await;
    service.metrics.request(method, &path, response.status().as_u16(), since.elapsed());
    response
}

/// Refuses what is compressed, and ends requests that take too long.
async fn limited(request: Request, next: Next) -> Response {
    let encodings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    let is_plain = |value: &HeaderValue| {
        let mut names = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        names.all(|name| name.is_empty() || name.eq_ignore_ascii_case(b"identity"))
    };
    // Nothing unpacks bodies here, and the error of the JSON parser would not say what is wrong.
    if !encodings.into_iter().all(is_plain) {
        let why = "the request is compressed: send it as it is";
        let problem = Problem::new(kind::MEDIA_TYPE, why).with("accept-encoding", "identity");
        return problem.into_response();
    }
    match tokio::time::timeout(MAX_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let why = "the request was not answered in time: send it again later";
            Refusal::new(kind::BUSY, why).into_response()
        }
    }
}

/// Refuses updates of clients that are no writers, before their bodies are read.
async fn only_writers(State(service): Shared, request: Request, next: Next) -> Response {
    match service.writers.as_ref().map_or(Ok(()), |writers| writers.check(request.headers())) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Refuses requests of pages of other sites that may change something. Every page may look things up.
async fn same_site(request: Request, next: Next) -> Response {
    let is_read = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    match check_same_site(kind::ORIGIN, &request) {
        Err(problem) if !is_read => problem.into_response(),
        _ => next.run(request).await,
    }
}

async fn unknown() -> Refusal {
    Refusal::new(kind::NOT_FOUND, "there is no such path; /openapi.json describes all paths")
}

async fn other_method() -> Refusal {
    Refusal::new(kind::METHOD, "the path has no such method; /openapi.json describes all methods")
}

/// The whole service.
pub(crate) fn router(service: &Arc<Service>) -> Router {
    Router::new()
        .route(
            "/v1/updates",
            post(submit).route_layer(from_fn_with_state(Arc::clone(service), only_writers)),
        )
        .route("/v1/updates/{number}", get(update))
        .route("/v1/keys/{label}", get(key))
        .route("/v1/keys/{label}/history", get(history))
        .route("/v1/epochs", get(epochs))
        .route("/v1/epochs/{epoch}", get(epoch))
        .route("/v1/records", get(records))
        .route("/v1/continuation", get(continuation))
        .route("/v1/proofs", get(proofs))
        .route("/v1/proofs/{range}", get(proof))
        .route("/v1/parameters", get(parameters))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(description))
        .method_not_allowed_fallback(other_method)
        .fallback(unknown)
        .layer(from_fn(same_site))
        // What everybody may read, pages from anywhere may read, too; only look-ups, not updates.
        .layer(CorsLayer::new().allow_origin(cors::Any).allow_methods([Method::GET]))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(limited))
        // The outermost layer, so that what the others refuse is counted as well.
        .layer(from_fn_with_state(Arc::clone(service), counted))
        .with_state(Arc::clone(service))
}
