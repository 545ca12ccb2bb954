//! Passes requests on to the node, unchanged, and keeps a copy of the witnesses in its answers.

use super::body::receive;
use super::{Service, Shared, bad_json, blocking, media_type, needs};
use crate::codec::json::{self, Parameters, PayloadStatus};
use crate::codec::{apis773, apis793};
use crate::node::{Codec, Fetched, JSON, OCTETS};
use crate::problem::{self, kind};
use crate::received::Received;
use crate::record::{Origin, Record, Source};
use crate::store::{StoreError, WitnessStore};
use crate::values::Object;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use hekaton_service::Problem;
use hekaton_witness_format::Envelope;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;

/// The time for which the caller may stop reading an answer before the copy is abandoned.
const MAX_STALL: Duration = Duration::from_secs(60);

/// Passes all other requests on to the node, unchanged. Of answers with a witness, a copy is kept.
pub(super) async fn pass(State(service): Shared, request: Request) -> Result<Response, Problem> {
    let Some(node) = service.node.as_ref().filter(|_| service.proxy) else {
        let why = "unknown path; without --proxy, the service passes nothing on";
        return Err(Problem::new(kind::NO_PATH, why));
    };
    let (head, body) = request.into_parts();
    // The node checks the token. The body stays as it came, compressed or not.
    let limit = apis793::MAX_REQUEST as u64;
    let arrived = receive(&service.passing_memory, &head.headers, body, limit).await?;
    let turn = Service::turn(&service.passing).await?;
    let bytes = Bytes::from_owner(arrived);
    let codec = codec_of(&head, &bytes);
    let origin = Origin::of(Source::Proxy, &head.headers);
    let mut passed = hyper::Request::builder().method(head.method).uri(head.uri);
    let of_connection = of_connection_in(&head.headers);
    for (name, value) in &head.headers {
        // An answer whose copy is kept must not be compressed.
        let compresses = codec.is_some() && name == header::ACCEPT_ENCODING;
        if !compresses && !of_connection.contains(name) {
            passed = passed.header(name, value);
        }
    }
    let request = passed.body(Full::new(bytes.clone())).map_err(problem::internal)?;
    let answer = node.pass(request).await?;
    let (mut head, body) = answer.into_parts();
    let copied = codec.filter(|codec| {
        let kind = if *codec == Codec::Json { JSON } else { OCTETS };
        head.status == StatusCode::OK && needs(&head.headers, &[kind]).is_ok()
    });
    let announced = head.headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length: Option<u64> = announced.and_then(|length| length.parse().ok());
    for name in of_connection_in(&head.headers) {
        if name != header::CONTENT_LENGTH {
            head.headers.remove(name);
        }
    }
    let passed_on = match copied {
        None => Body::from_stream(body.into_data_stream()),
        Some(codec) => {
            let (passed_on, parts) = divert(body);
            let limit = node.limit();
            let copy = Copy { codec, origin, request: bytes, parts, length, limit };
            tokio::spawn(copy.keep(Arc::clone(&service), turn));
            passed_on
        }
    };
    Ok(Response::from_parts(head, passed_on).into_response())
}

/// Returns the codec of the answer to a request; `None` if the answer has no witness, or the request is compressed.
fn codec_of(head: &Parts, body: &[u8]) -> Option<Codec> {
    if head.method != Method::POST || head.headers.contains_key(header::CONTENT_ENCODING) {
        return None;
    }
    match head.uri.path() {
        apis773::PATH => Some(Codec::Apis773),
        apis793::PATH => Some(Codec::Apis793),
        "/" if media_type(&head.headers).eq_ignore_ascii_case(JSON)
            && json::asks_for_witness(body) =>
        {
            Some(Codec::Json)
        }
        _ => None,
    }
}

/// Returns the body for the caller, and the parts of its copy, which arrive as the caller reads.
fn divert(body: Incoming) -> (Body, UnboundedReceiver<Part>) {
    let (send, parts) = tokio::sync::mpsc::unbounded_channel();
    // The caller does not wait for the copy: parts share their memory.
    let ended = send.clone();
    let watched = body.into_data_stream().inspect(move |part| {
        // The copy may have been given up; the caller gets its answer all the same.
        let _ = send.send(part.as_ref().ok().cloned().map_or(Part::Broken, Part::Data));
    });
    let last = futures_util::stream::once(async move {
        let _ = ended.send(Part::End);
        Ok(Bytes::new())
    });
    (Body::from_stream(watched.chain(last)), parts)
}

/// Returns the headers that belong to one connection and not to the request (RFC 9110, 7.6.1), and those that are set anew.
fn of_connection_in(headers: &HeaderMap) -> Vec<header::HeaderName> {
    let mut names: Vec<header::HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // These are for one connection even if `Connection` does not name them (RFC 9110, 7.6.1), or
    // are set anew for the other connection.
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
    codec: Codec,
    origin: Origin,
    request: Bytes,
    parts: UnboundedReceiver<Part>,
    length: Option<u64>,
    limit: u64,
}

impl Copy {
    /// Returns the whole answer, or the reason for which it cannot be kept.
    async fn collect(&mut self) -> Result<Received, &'static str> {
        let capacity = usize::try_from(self.length.unwrap_or(0).min(self.limit)).unwrap_or(0);
        let mut bytes = Received::with_room(capacity);
        loop {
            let part = tokio::time::timeout(MAX_STALL, self.parts.recv()).await;
            match part.map_err(|_| "the caller stopped reading the answer")? {
                Some(Part::Data(part)) => {
                    if (bytes.len() + part.len()) as u64 > self.limit {
                        return Err("the answer is longer than allowed");
                    }
                    bytes.push(&part);
                }
                Some(Part::End) => return Ok(bytes),
                Some(Part::Broken) => return Err("the node broke off the answer"),
                // A caller that knows the length does not ask for more.
                None if self.length == Some(bytes.len() as u64) => return Ok(bytes),
                None => return Err("the caller left before the end of the answer"),
            }
        }
    }

    /// Puts the parts of an answer together and accepts the witness in it. No error here reaches the caller.
    async fn keep(mut self, service: Arc<Service>, turn: OwnedSemaphorePermit) {
        let bytes = match self.collect().await {
            Ok(bytes) => bytes,
            Err(why) => {
                tracing::warn!(why, "an answer was not copied");
                return;
            }
        };
        let store = Arc::clone(service.store());
        let Self { codec, origin, request, .. } = self;
        let kept = blocking(move || {
            let _turn = turn;
            accept(&store, origin, codec, &request, bytes)
        });
        match kept.await {
            Ok(_) => service.wake(),
            Err(problem) => tracing::warn!(why = problem.detail, "an answer was not copied"),
        }
    }
}

/// Accepts the witness in the answer to a request.
fn accept(
    store: &WitnessStore,
    origin: Origin,
    codec: Codec,
    request: &[u8],
    answer: Received,
) -> Result<Record, Problem> {
    let (envelope, hashes) = match codec {
        Codec::Apis793 => (Envelope::decode(request).map_err(StoreError::from)?, None),
        Codec::Apis773 | Codec::Json => {
            let read = match codec {
                Codec::Json => json::parameters_of_call(request),
                _ => Parameters::decode(request),
            };
            let Parameters { envelope, blob_hashes } = read.map_err(bad_json)?;
            (envelope, Some(blob_hashes))
        }
    };
    let fetched = match codec {
        Codec::Json => {
            let Object::<PayloadStatus>(status) =
                json::result(&answer).map_err(|error| Problem::new(kind::NO_WITNESS, error))?;
            drop(answer);
            Fetched::Json(status.read().map_err(|error| Problem::new(kind::INVALID_BODY, error))?)
        }
        codec => Fetched::Encoded(codec, answer),
    };
    let origin = origin.with_json(fetched.is_json());
    let answer = fetched.answer().map_err(StoreError::from)?;
    Ok(store.answer(origin, &envelope, hashes.as_deref(), &answer)?)
}
