//! Blobs.

use super::{Path, Shared, blocking, parse};
use crate::http::problem::{BAD_REQUEST, TOO_LARGE, of_blob};
use crate::http::tenants::Quota;
use crate::retention::touch;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use hekaton_orchestrator_client::body::{BlobBody, example};
use hekaton_orchestrator_client::{BlobError, Blobs, Digest};
use hekaton_service::Problem;
use std::fs::File;
use std::io::Read;

/// Stores a blob. It is on disk when this answers.
#[utoipa::path(
    put, path = "/v1/blobs/{digest}", tag = "blobs",
    params(("digest" = String, Path, description = "Its BLAKE3 digest", example = example::blob)),
    request_body(content = String, content_type = "application/octet-stream", example = example::content),
    responses(
        (status = 200, body = BlobBody), (status = 400, body = Problem, description = "The body has a different digest"),
        (status = 413, body = Problem, description = "It is larger than the tenant may send"),
        (status = 429, body = Problem, description = "The tenant has sent too much today"),
        (status = 507, body = Problem, description = "The disk is full"),
    )
)]
pub(super) async fn put_blob(
    State(api): Shared,
    headers: HeaderMap,
    Path(digest): Path<String>,
    body: Body,
) -> Result<Json<BlobBody>, Problem> {
    let (name, tenant) = api.tenants.of(&headers)?;
    let digest: Digest = parse("digest", &digest)?;
    let limit = tenant.blob_bytes;
    let announced: u64 = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    if announced > limit {
        return Err(Problem::new(
            TOO_LARGE,
            format!("blob size limit exceeded: the limit is {limit} bytes"),
        ));
    }
    let mut counted = api.tenants.bytes(&name, tenant);
    // What is there already may be sent again at any time: the answer may have been lost.
    let known = api.blobs.path(&digest);
    let is_new = blocking(move || Ok(!known.exists())).await?;
    let count = |counted: &mut Quota, more| if is_new { counted.take(more) } else { Ok(()) };
    count(&mut counted, announced)?;
    let blobs = api.blobs.clone();
    // Each has files open.
    let _turn = api.transfers.acquire().await;
    let mut left = announced;
    let mut incoming = blocking(move || blobs.begin(limit).map_err(of_blob)).await?;
    let mut stream = body.into_data_stream();
    while let Some(read) = stream.next().await {
        let part = read.map_err(|error| Problem::new(BAD_REQUEST, format!("the body: {error}")))?;
        let length = part.len() as u64;
        count(&mut counted, length.saturating_sub(left))?;
        left = left.saturating_sub(length);
        incoming = blocking(move || {
            incoming.write(&part).map_err(of_blob)?;
            Ok(incoming)
        })
        .await?;
    }
    blocking(move || {
        let (found, bytes) = (incoming.digest(), incoming.length());
        if found != digest {
            let why = format!("the body has digest {found}, but the path names {digest}");
            return Err(Problem::new(BAD_REQUEST, why));
        }
        let blob = incoming.finish().map_err(of_blob)?;
        // Here, since the caller may be gone by now.
        counted.keep();
        Ok(Json(BlobBody { blob: blob.to_string(), bytes }))
    })
    .await
}

/// Reads a blob: an output, or an input.
///
/// A complete answer always has the digest: if a large blob turns out to be damaged while it is sent, the answer breaks off before its end.
#[utoipa::path(
    get, path = "/v1/blobs/{digest}", tag = "blobs", params(("digest" = String, Path, example = example::blob)),
    responses(
        (status = 200, content_type = "application/octet-stream"),
        (status = 304, description = "The caller has it: `If-None-Match` names its digest"),
        (status = 404, body = Problem, description = "The blob does not exist, or is damaged: send it again"),
    )
)]
pub(super) async fn blob(
    State(api): Shared,
    method: Method,
    headers: HeaderMap,
    Path(digest): Path<String>,
) -> Result<Response, Problem> {
    api.tenants.of(&headers)?;
    let digest: Digest = parse("digest", &digest)?;
    let (blobs, tag) = (api.blobs.clone(), format!("\"{digest}\""));
    // A client that asks whether it has to send a blob submits a job next.
    let is_question = method == Method::HEAD;
    let found = blocking(move || {
        if is_question {
            touch(&blobs, &digest).map_err(of_blob)?;
        }
        Found::open(&blobs, digest).map_err(of_blob)
    })
    .await?;
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let (length, body) = match found {
        Found::Verified(bytes) => (bytes.len() as u64, Body::from(bytes)),
        Found::Large(length, file) => (length, Body::from_stream(parts(file, digest))),
    };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::ETAG, tag),
    ];
    Ok((headers, body).into_response())
}

/// Reports whether the request's headers say that the caller already has the blob with this tag.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter();
    let tags = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    tags.map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

/// The largest blob that is verified before its first byte is sent.
const VERIFIED: u64 = 4 << 20;

/// The number of bytes of a larger blob that are read at a time.
const PART: usize = 256 << 10;

/// A blob to send.
enum Found {
    Verified(Vec<u8>),
    Large(u64, File),
}

impl Found {
    fn open(blobs: &Blobs, digest: Digest) -> Result<Self, BlobError> {
        let (length, file) = blobs.open_blob(&digest)?;
        match length <= VERIFIED {
            true => Ok(Self::Verified(blobs.get(&digest, VERIFIED)?)),
            false => Ok(Self::Large(length, file)),
        }
    }
}

/// The parts of a blob. The last part is sent only if the whole blob matches the digest: otherwise, the answer breaks off and is shorter
/// than its announced length.
fn parts(
    file: File,
    wanted: Digest,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    struct Sent {
        file: File,
        hasher: blake3::Hasher,
        held: Bytes,
        ended: bool,
    }
    let next = move |mut sent: Sent| -> std::io::Result<(Bytes, Sent)> {
        loop {
            let mut part = vec![0; PART];
            let count = sent.file.read(&mut part)?;
            part.truncate(count);
            sent.hasher.update(&part);
            let held = std::mem::replace(&mut sent.held, part.into());
            if count == 0 {
                let found = Digest::from(sent.hasher.finalize());
                if found != wanted {
                    let error = BlobError::Damaged { wanted, found };
                    tracing::error!(%error, "an answer was broken off");
                    return Err(std::io::Error::other(error));
                }
                sent.ended = true;
                return Ok((held, sent));
            }
            if !held.is_empty() {
                return Ok((held, sent));
            }
        }
    };
    let begun = Sent { file, hasher: blake3::Hasher::new(), held: Bytes::new(), ended: false };
    futures_util::stream::unfold(Some(begun), move |state| async move {
        let sent = state.filter(|sent| !sent.ended)?;
        let read = tokio::task::spawn_blocking(move || next(sent)).await;
        match read.map_err(std::io::Error::other).flatten() {
            Ok((part, sent)) => Some((Ok(part), Some(sent))),
            Err(error) => Some((Err(error), None)),
        }
    })
}
