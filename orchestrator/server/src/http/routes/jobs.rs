//! Jobs and workflows.

use super::{Api, JsonBody, Path, Query, Shared, Unused, blocking, parse};
use crate::clock::Clock;
use crate::dispatch::BLOCKS_BEHIND_DEAD;
use crate::http::body::job_status;
use crate::http::problem::{BAD_REQUEST, MISFIT, Rejection, of_blob};
use crate::record::{Handle, Job, JobKey, JobState, decode};
use crate::settings::Tenant;
use crate::submissions::{Submission, SubmissionError};
use crate::traces::{is_traceparent, new_traceparent};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode};
use hekaton_orchestrator_client::body::{JobBody, JobStatus, JobView, WorkflowBody, example};
use hekaton_orchestrator_client::{Digest, Name, Workflow};
use hekaton_service::Problem;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;

/// The longest wait for a job, in seconds. Connections live five minutes.
const MAX_WAIT: u32 = 240;

/// Submits a job.
///
/// The job is on disk when this answers. Submitting the same job again returns the same job, so a client that received no answer, or 503,
/// repeats its request.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", request_body = JobBody,
    responses(
        (status = 200, body = JobStatus, description = "It was accepted before"),
        (status = 201, body = JobStatus, description = "It is accepted"),
        (status = 404, body = Problem, description = "There is no such chain"),
        (status = 409, body = Problem, description = "Another block is in its place"),
        (status = 422, body = Problem, description = "It does not fit its workflow, or names blobs that were not sent"),
        (status = 429, body = Problem, description = "A limit is reached, or an earlier block of the chain is dead"),
    )
)]
pub(super) async fn submit(
    State(api): Shared,
    headers: HeaderMap,
    JsonBody(body): JsonBody<JobBody>,
) -> Result<(StatusCode, Json<JobStatus>), Problem> {
    let (name, tenant) = api.tenants.of(&headers)?;
    let from = Clock::system().wall();
    let submission = submission(&api, name, body, &headers).await?;
    admit(&api, tenant, &submission).await?;
    let accepted = api.submissions.submit(submission).await?;
    let to = Clock::system().wall();
    api.metrics.traces().job("enqueue", &accepted.job, from, to);
    let code = if accepted.new { StatusCode::CREATED } else { StatusCode::OK };
    let mut status = job_status(&accepted.job);
    if accepted.job.is_live()
        && let Ok(workflow) = api.workflows.get(&accepted.job.workflow)
    {
        // Its tasks are made a moment later.
        let needed = workflow.stages.iter().map(|stage| &stage.backend);
        status.missing = api.offers.missing(needed);
    }
    Ok((code, Json(status)))
}

/// Returns the submission of a body, after checking that its names are valid and its blobs exist.
async fn submission(
    api: &Arc<Api>,
    tenant: Name,
    body: JobBody,
    headers: &HeaderMap,
) -> Result<Submission, Problem> {
    let workflow = match (&body.workflow, &body.backend) {
        (Some(digest), None) => parse("workflow", digest)?,
        (None, Some(backend)) => {
            let workflow = Workflow::single(parse("backend", backend)?);
            let workflows = api.workflows.clone();
            blocking(move || workflows.put(workflow).map_err(of_blob)).await?
        }
        _ => return Err(Problem::new(BAD_REQUEST, "name either a 'workflow' or a 'backend'")),
    };
    let mut inputs = BTreeMap::new();
    for (name, digests) in &body.inputs {
        let mut blobs = Vec::new();
        for digest in digests {
            let digest: Digest = parse("inputs", digest)?;
            if !api.blobs.has(&digest) {
                let why = format!(
                    "inputs: blob {digest} does not exist: PUT it to /v1/blobs/{digest} first"
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
    let trace = headers
        .get("traceparent")
        .and_then(|value| value.to_str().ok())
        .filter(|text| is_traceparent(text))
        .map(str::to_owned);
    let trace = Some(trace.unwrap_or_else(new_traceparent));
    let parent = body.parent.as_deref().map(|parent| parse("parent", parent)).transpose()?;
    let chain = parse("chain", &body.chain)?;
    let JobBody { block, lane, .. } = body;
    Ok(Submission { tenant, chain, block, id, parent, lane, workflow, inputs, trace })
}

/// Refuses submissions above the limits. Jobs that were accepted before are not refused, because clients that received no answer repeat
/// their requests.
async fn admit(api: &Api, tenant: &Tenant, submission: &Submission) -> Result<(), Problem> {
    let slot = submission.parent.as_ref().unwrap_or(&submission.id).clone();
    let key = JobKey { tenant: submission.tenant.clone(), chain: submission.chain.clone(), slot };
    let known = api
        .store
        .get(&key.to_string())
        .await?
        .and_then(|entry| decode::<Job>(&entry).ok())
        .map(|job| job.value.state);
    if matches!(known, Some(JobState::Live | JobState::Done { .. } | JobState::Skipped { .. })) {
        return Ok(());
    }
    let (name, chain) = (&submission.tenant, &submission.chain);
    let is_behind = |dead: &u64| submission.block > dead.saturating_add(BLOCKS_BEHIND_DEAD);
    if submission.parent.is_some()
        && api.tenants.dead(name, chain, None).is_some_and(|dead| is_behind(&dead))
    {
        let genesis = api.submissions.chain(name, chain).await?.genesis;
        let last = api.submissions.last_published(name, chain).await?;
        let next = last.as_ref().map(|last| last.tail()).or(genesis.as_ref());
        let height = last.as_ref().map(|last| last.height());
        // The block that follows the last published one is always admitted: without it, the chain could never continue.
        if submission.parent.as_ref() != next
            && let Some(dead) = api.tenants.dead(name, chain, height).filter(is_behind)
        {
            return Err(SubmissionError::BehindDead { chain: chain.clone(), dead }.into());
        }
    }
    api.tenants.admit(&submission.tenant, tenant)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    /// Answer when the job has ended, or after this many seconds, at most 240.
    #[serde(default)]
    wait: u32,
}

/// Reads a job.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "The handle that `POST /v1/jobs` returned", example = example::job), Wait),
    responses((status = 200, body = JobView), (status = 404, body = Problem))
)]
pub(super) async fn job(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
    Query(Wait { wait }): Query<Wait>,
) -> Result<Json<JobView>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let handle: Handle = parse("job", &handle)?;
    let until = tokio::time::Instant::now() + Duration::from_secs(wait.min(MAX_WAIT).into());
    loop {
        let found = api.submissions.job(&tenant, &handle).await?;
        if !found.value.is_live() || tokio::time::Instant::now() >= until {
            return Ok(Json(view(&api, &found.value)));
        }
        let mut watch = api.store.watch(&found.value.key().to_string(), found.rev).await?;
        // A watch that is dead must not make a client wait longer than this.
        let look = until.min(tokio::time::Instant::now() + Duration::from_secs(10));
        let _ = tokio::time::timeout_at(look, watch.next()).await;
    }
}

/// A job with its tasks, as far as they are in memory.
fn view(api: &Api, job: &Job) -> JobView {
    let shown = api.board.some(&job.tenant, &BTreeSet::from([job.key()])).pop();
    let status = job_status(job);
    match shown.filter(|shown| shown.job.job == status.job) {
        // The record is what counts, and may be newer.
        Some(JobView { job: JobStatus { missing, .. }, tasks, running }) => match job.is_live() {
            true => JobView { job: JobStatus { missing, ..status }, tasks, running },
            false => JobView { job: status, tasks, running: vec![] },
        },
        None => JobView { job: status, tasks: BTreeMap::new(), running: vec![] },
    }
}

/// Cancels a job.
#[utoipa::path(
    delete, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "The handle that `POST /v1/jobs` returned", example = example::job)),
    responses((status = 200, body = JobStatus), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is published or skipped"))
)]
pub(super) async fn cancel(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
) -> Result<Json<JobStatus>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let job = api.submissions.cancel(&tenant, &parse("job", &handle)?, "it was cancelled").await?;
    Ok(Json(job_status(&job)))
}

/// Makes a dead or cancelled job live again.
#[utoipa::path(
    post, path = "/v1/jobs/{job}/requeue", tag = "jobs", params(("job" = String, Path, description = "The handle that `POST /v1/jobs` returned", example = example::job)),
    responses(
        (status = 200, body = JobStatus), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is done or skipped"),
        (status = 422, body = Problem, description = "Its blobs are gone: send them again"),
        (status = 429, body = Problem, description = "A limit is reached"),
    )
)]
pub(super) async fn requeue(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
    _: Unused,
) -> Result<Json<JobStatus>, Problem> {
    let (tenant, limits) = api.tenants.of(&headers)?;
    let handle = parse("job", &handle)?;
    if !api.submissions.job(&tenant, &handle).await?.value.is_live() {
        api.tenants.admit(&tenant, limits)?;
    }
    let job = api.submissions.requeue(&tenant, &handle).await?;
    Ok(Json(job_status(&job)))
}

/// Makes a chain continue without its next block, which is dead.
#[utoipa::path(
    post, path = "/v1/jobs/{job}/skip", tag = "jobs", params(("job" = String, Path, description = "The handle that `POST /v1/jobs` returned", example = example::job)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is not dead, or not the next one"))
)]
pub(super) async fn skip(
    State(api): Shared,
    headers: HeaderMap,
    Path(handle): Path<String>,
    _: Unused,
) -> Result<StatusCode, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    api.submissions.skip(&tenant, &parse("job", &handle)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks a workflow and stores it. The body is its TOML text.
#[utoipa::path(
    post, path = "/v1/workflows", tag = "jobs", request_body(content = String, content_type = "application/toml", example = example::workflow),
    responses(
        (status = 200, body = WorkflowBody), (status = 422, body = Problem, description = "The workflow is invalid"),
        (status = 429, body = Problem, description = "The tenant has sent too much today"),
    )
)]
pub(super) async fn workflow(
    State(api): Shared,
    headers: HeaderMap,
    read: Result<Bytes, BytesRejection>,
) -> Result<Json<WorkflowBody>, Problem> {
    let (name, tenant) = api.tenants.of(&headers)?;
    let body = read.map_err(Rejection::from)?;
    let mut counted = api.tenants.bytes(&name, tenant);
    let (workflows, blobs) = (api.workflows.clone(), api.blobs.clone());
    blocking(move || {
        let text = std::str::from_utf8(&body).map_err(|error| Problem::new(BAD_REQUEST, error))?;
        let workflow = Workflow::parse(text).map_err(|error| Problem::new(MISFIT, error))?;
        let name = workflow.name.to_string();
        let bytes = workflow.to_bytes();
        if !blobs.path(&Digest::of(&bytes)).exists() {
            counted.take(bytes.len() as u64)?;
        }
        let digest = workflows.put(workflow).map_err(of_blob)?;
        counted.keep();
        Ok(Json(WorkflowBody { workflow: digest.to_string(), name }))
    })
    .await
}
