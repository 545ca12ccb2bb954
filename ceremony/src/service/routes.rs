//! The paths of the service.

use super::{Handle, Service, now, problem};
use crate::body::{PIECE, SlotBody, SlotRequest, StatusBody, UploadedBody};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use futures_util::StreamExt;
use hekaton_ceremony::{Chain, Genesis};
use hekaton_service::{Problem, check_same_site, is_late};
use http_body_util::LengthLimitError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use tower_http::services::ServeFile;

/// The longest request that is not a piece of an upload.
const MOST_REQUEST: usize = 64 << 10;

pub(super) fn router(service: Handle) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/v1/status", get(status))
        .route("/v1/files/{*name}", get(file))
        .route("/v1/slots", post(join))
        .route("/v1/uploads/{token}", put(piece).post(complete).get(slot).delete(leave))
        .fallback(async || Problem::new(problem::NOT_FOUND, "there is no such path"))
        .method_not_allowed_fallback(async || {
            Problem::new(problem::METHOD, "docs/spec/13-ceremony.md lists the methods")
        })
        .layer(from_fn(only_programs))
        .with_state(service)
}

/// Refuses requests that a page of another site makes in a browser.
async fn only_programs(request: Request, next: Next) -> Response {
    match check_same_site(problem::ORIGIN, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Runs work that reads or writes the disk, on other threads than those that answer requests.
async fn blocking<T: Send + 'static>(
    service: Handle,
    work: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(move || work(&service)).await {
        Ok(done) => done,
        Err(error) => Err(Problem::hidden(problem::UNAVAILABLE, error)),
    }
}

/// Reads a body of at most `most` bytes.
async fn bytes_of(body: Body, most: usize) -> Result<Bytes, Problem> {
    to_bytes(body, most).await.map_err(|error| {
        if is_late(&error) {
            return Problem::new(
                problem::TIMEOUT,
                "the body arrived at less than 16 KiB per second",
            );
        }
        match error.into_inner().is::<LengthLimitError>() {
            true => Problem::new(
                problem::TOO_LARGE,
                format!("the body has more than the limit of {most} bytes"),
            ),
            false => Problem::new(problem::BAD_REQUEST, "the body broke off"),
        }
    })
}

/// Reads a body and discards it, since clients do not read the answer before they have sent the body.
async fn discard(body: Body) {
    let mut left = PIECE;
    let mut body = body.into_data_stream();
    while let Some(Ok(bytes)) = body.next().await {
        match left.checked_sub(bytes.len()) {
            Some(less) => left = less,
            None => return,
        }
    }
}

async fn json_of<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    let bytes = bytes_of(body, MOST_REQUEST).await?;
    serde_json::from_slice(&bytes).map_err(|error| Problem::new(problem::BAD_REQUEST, error))
}

async fn status(State(service): State<Handle>) -> Result<Json<StatusBody>, Problem> {
    blocking(service, |service| Ok(service.status())).await.map(Json)
}

async fn join(State(service): State<Handle>, body: Body) -> Result<Json<SlotBody>, Problem> {
    let request: SlotRequest = json_of(body).await?;
    let work = move |service: &Service| {
        let mut shared = service.lock();
        if service.finished && shared.queue.find(&request.token).is_none() {
            return Err(Problem::new(
                problem::FINISHED,
                "the ceremony is finished: no more contributions are accepted",
            ));
        }
        let known = service.genesis.chains();
        service.change(&mut shared, |queue| {
            Ok(queue.join(now(), &request, &service.admission, &known)?)
        })?;
        service.body(&shared, &request.token)
    };
    blocking(service, work).await.map(Json)
}

/// The name in a path.
type Name = Result<Path<String>, PathRejection>;

fn name_of(name: Name) -> Result<String, Problem> {
    let bad = |error: PathRejection| Problem::new(problem::BAD_REQUEST, error.body_text());
    name.map(|Path(name)| name).map_err(bad)
}

async fn slot(State(service): State<Handle>, name: Name) -> Result<Json<SlotBody>, Problem> {
    let token = name_of(name)?;
    let work = move |service: &Service| {
        let mut shared = service.lock();
        if let Some(slot) = shared.queue.find_mut(&token) {
            slot.seen = now();
        }
        service.body(&shared, &token)
    };
    blocking(service, work).await.map(Json)
}

/// Gives a slot up.
async fn leave(State(service): State<Handle>, name: Name) -> Result<Json<SlotBody>, Problem> {
    let token = name_of(name)?;
    let work = move |service: &Service| {
        let mut shared = service.lock();
        service.change(&mut shared, |queue| {
            queue.leave(&token, now());
            Ok(())
        })?;
        service.body(&shared, &token)
    };
    blocking(service, work).await.map(Json)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    at: u64,
}

async fn piece(
    State(service): State<Handle>,
    name: Name,
    at: Result<Query<At>, QueryRejection>,
    body: Body,
) -> Result<Json<SlotBody>, Problem> {
    let begun = match (name_of(name), at) {
        (Ok(token), Ok(Query(At { at }))) => {
            let begin = Arc::clone(&service);
            // Taken before the body is read, so that memory holds one body at a time for each upload.
            blocking(Arc::clone(&service), move |_| begin.turn(&token)).await.map(|turn| (turn, at))
        }
        (Err(problem), _) => Err(problem),
        (_, Err(error)) => Err(Problem::new(problem::BAD_REQUEST, error.body_text())),
    };
    let (turn, at) = match begun {
        Ok(begun) => begun,
        Err(problem) => {
            discard(body).await;
            return Err(problem);
        }
    };
    let bytes = bytes_of(body, PIECE).await?;
    blocking(service, move |service| service.append(&turn, at, &bytes)).await.map(Json)
}

async fn complete(
    State(service): State<Handle>,
    name: Name,
    body: Body,
) -> Result<Json<SlotBody>, Problem> {
    let token = name_of(name)?;
    let UploadedBody { blake3 } = json_of(body).await?;
    let begin = Arc::clone(&service);
    let work = move |service: &Service| match begin.turn(&token) {
        Ok(turn) => service.complete(&turn, &blake3),
        // Asked again, after the answer was lost.
        Err(problem) if problem.kind == problem::CONFLICT.uri => {
            service.body(&service.lock(), &token)
        }
        Err(problem) => Err(problem),
    };
    blocking(service, work).await.map(Json)
}

/// The path of a file of the transcript, by its name: no other file in the directory is public.
fn public_file(genesis: &Genesis, directory: &std::path::Path, name: &str) -> Option<PathBuf> {
    let is_log = |chain: &str| {
        let chain = Chain::named(chain).filter(|chain| genesis.chains().contains(chain));
        chain.is_some_and(|chain| name == format!("{chain}.log"))
    };
    let known = match (name, name.split_once('/')) {
        ("genesis" | "final.json", _) => true,
        (_, Some(("sections" | "fixed", digest))) => super::queue::is_token(digest),
        (_, None) => name.strip_suffix(".log").is_some_and(is_log),
        _ => false,
    };
    known.then(|| directory.join(name))
}

async fn file(
    State(service): State<Handle>,
    name: Name,
    request: Request,
) -> Result<Response, Problem> {
    let name = name_of(name)?;
    let path = public_file(&service.genesis, &service.directory, &name)
        .ok_or_else(|| Problem::new(problem::NOT_FOUND, "the transcript has no such file"))?;
    let gone = "the transcript has no such file, or no longer has it";
    match ServeFile::new(&path).try_call(request).await {
        Ok(answer) if answer.status() != StatusCode::NOT_FOUND => Ok(answer.into_response()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Problem::hidden(problem::UNAVAILABLE, error))
        }
        _ => Err(Problem::new(problem::NOT_FOUND, gone)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_transcript_are_public() {
        let directory = tempfile::tempdir().unwrap();
        let powers = hekaton_ceremony::new_powers(&directory.path().join("p"), 2, 1, "", &|_| {});
        let genesis = powers.unwrap().genesis;
        let is_public = |name: &str| public_file(&genesis, directory.path(), name).is_some();
        let digest = "0123456789abcdef".repeat(4);
        for name in ["genesis", "final.json", "tau.log", "phi.log"] {
            assert!(is_public(name), "{name}");
        }
        assert!(is_public(&format!("sections/{digest}")) && is_public(&format!("fixed/{digest}")));
        for name in [
            "",
            "lock",
            "1.log",
            "tau.log/",
            ".log",
            "incoming/slots.json",
            "../genesis",
            "/etc/passwd",
            "sections/..",
            "sections/../genesis",
            "sections//genesis",
            "sections",
        ] {
            assert!(!is_public(name), "{name}");
        }
        assert!(!is_public(&format!("incoming/{digest}")) && !is_public(&digest));
    }
}
