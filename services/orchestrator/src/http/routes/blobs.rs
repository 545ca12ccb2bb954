//! Blobs.

use super::{Path, Shared, blocking, parse};
use crate::http::body::BlobBody;
use crate::http::problem::{BAD_REQUEST, INTERNAL, NOT_FOUND, Problem, TOO_LARGE};
use crate::http::tenants::Quota;
use crate::id::Digest;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use std::io::Read;

/// Stores a blob. It is on disk when this answers.
#[utoipa::path(
    put, path = "/v1/blobs/{digest}", tag = "blobs", params(("digest" = String, Path, description = "Its BLAKE3 digest")),
    request_body(content_type = "application/octet-stream"),
    responses(
        (status = 200, body = BlobBody), (status = 400, body = Problem, description = "It has another digest"),
        (status = 413, body = Problem), (status = 429, body = Problem, description = "The tenant has sent too much today"),
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
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced: u64 = announced.and_then(|text| text.parse().ok()).unwrap_or(0);
    if announced > limit {
        return Err(Problem::new(TOO_LARGE, format!("a blob may have {limit} bytes")));
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
    let mut incoming = blocking(move || Ok(blobs.begin(limit)?)).await?;
    let mut stream = body.into_data_stream();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|error| Problem::new(BAD_REQUEST, format!("the body: {error}")))?;
        let length = part.len() as u64;
        count(&mut counted, length.saturating_sub(left))?;
        left = left.saturating_sub(length);
        incoming = blocking(move || {
            incoming.write(&part)?;
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
        let blob = incoming.finish()?;
        // Here, since the caller may be gone by now.
        counted.keep();
        Ok(Json(BlobBody { blob: blob.to_string(), bytes }))
    })
    .await
}

/// Reads a blob: an output, or an input.
#[utoipa::path(
    get, path = "/v1/blobs/{digest}", tag = "blobs", params(("digest" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream"), (status = 404, body = Problem))
)]
pub(super) async fn blob(
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
