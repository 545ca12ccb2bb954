//! Errors that the service answers with.

use crate::blobs::BlobError;
use crate::intake::IntakeError;
use crate::store::{Unavailable, WriteError};
use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// An error answer to a request, as `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{title}: {detail}")]
pub struct Problem {
    /// The kind of problem, which stays the same: `urn:hekaton:orchestrator:` and a word.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// An explanation of what was wrong with this request.
    pub detail: String,
    /// The number of seconds after which the request may be sent again, if that may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
}

/// A kind of problem: status, word, title and seconds to wait.
pub(crate) type Kind = (u16, &'static str, &'static str, Option<u32>);

pub(crate) const BAD_REQUEST: Kind = (400, "bad-request", "The request cannot be understood", None);
pub(crate) const UNAUTHORIZED: Kind = (401, "unauthorized", "The request has no valid token", None);
pub(crate) const TOKEN: Kind = (401, "invalid-token", "The token is that of no tenant", None);
pub(crate) const ORIGIN: Kind =
    (403, "origin", "Pages of other sites cannot use the service", None);
pub(crate) const HOST: Kind = (403, "host", "The service is not asked by this name", None);
pub(crate) const OPERATOR: Kind = (403, "operator", "Only the operator may do that", None);
pub(crate) const NOT_FOUND: Kind = (404, "not-found", "There is no such thing", None);
pub(crate) const DAMAGED: Kind = (404, "damaged", "The blob is damaged: send it again", None);
pub(crate) const METHOD: Kind = (405, "method", "The path has no such method", None);
pub(crate) const CONFLICT: Kind = (409, "conflict", "Something else is in its place", None);
pub(crate) const TOO_LARGE: Kind = (413, "too-large", "The body is too large", None);
pub(crate) const MEDIA_TYPE: Kind = (415, "media-type", "The body has another media type", None);
pub(crate) const CODING: Kind = (415, "content-encoding", "The body has a content coding", None);
pub(crate) const MISFIT: Kind = (422, "misfit", "The job does not fit its workflow", None);
pub(crate) const FULL: Kind = (429, "full", "Too much waits already", Some(5));
pub(crate) const RATE: Kind = (429, "rate", "Too many jobs in a short time", Some(1));
pub(crate) const BYTES: Kind = (429, "bytes", "Too many bytes in a short time", Some(60));
pub(crate) const DEAD: Kind = (429, "behind-dead", "A block before it is dead", Some(60));
pub(crate) const INTERNAL: Kind = (500, "internal", "The service cannot answer", None);
pub(crate) const UNKNOWN: Kind =
    (503, "unknown", "Whether it was done is not known: send it again", Some(1));
pub(crate) const UNAVAILABLE: Kind =
    (503, "unavailable", "The service does not answer now", Some(1));
pub(crate) const STORAGE: Kind = (507, "storage", "The disk is full", Some(60));

impl Problem {
    pub(crate) fn new(
        (status, word, title, retry_after): Kind,
        detail: impl std::fmt::Display,
    ) -> Self {
        Self {
            kind: format!("urn:hekaton:orchestrator:{word}"),
            title: title.into(),
            status,
            detail: detail.to_string(),
            retry_after,
        }
    }
}

impl Problem {
    /// Returns the problem with another time to wait.
    pub(crate) fn after(self, seconds: f64) -> Self {
        // Between one second and a day.
        let seconds = Duration::from_secs_f64(seconds.clamp(1.0, 86_400.0)).as_secs();
        Self { retry_after: u32::try_from(seconds).ok(), ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (retry, kind) = (self.retry_after, self.kind.clone());
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // How to ask instead (RFC 9110, 11.6.1 and 12.5.3; RFC 6750, 3).
        let (name, value) = match kind.rsplit(':').next() {
            Some("unauthorized") => (header::WWW_AUTHENTICATE, "Bearer"),
            Some("invalid-token") => (header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\""),
            Some("content-encoding") => (header::ACCEPT_ENCODING, "identity"),
            _ => return response,
        };
        headers.insert(name, HeaderValue::from_static(value));
        response
    }
}

impl Problem {
    /// A problem of the service's own. What it is goes into the log; callers have no use for files and errors of the machine.
    pub(crate) fn hidden(kind: Kind, error: impl std::fmt::Display) -> Self {
        let (status, word, ..) = kind;
        tracing::error!(status, kind = word, %error, "a request was not answered");
        Self::new(kind, "the log of the service says why")
    }
}

impl From<Unavailable> for Problem {
    fn from(error: Unavailable) -> Self {
        Self::hidden(UNAVAILABLE, error)
    }
}

impl From<IntakeError> for Problem {
    fn from(error: IntakeError) -> Self {
        let kind = match &error {
            IntakeError::NoChain(_) | IntakeError::NoJob(_) => NOT_FOUND,
            IntakeError::OtherChain { .. } | IntakeError::Taken(_) => CONFLICT,
            IntakeError::Bad(_) => BAD_REQUEST,
            IntakeError::Workflow(_) => MISFIT,
            IntakeError::BehindDead { .. } => DEAD,
            IntakeError::Unknown(_) => return Self::hidden(UNKNOWN, error),
            IntakeError::Store(WriteError::Full { .. }) => return Self::hidden(STORAGE, error),
            IntakeError::Store(_) | IntakeError::Read(_) => {
                return Self::hidden(UNAVAILABLE, error);
            }
        };
        Self::new(kind, error)
    }
}

impl From<BlobError> for Problem {
    fn from(error: BlobError) -> Self {
        let kind = match &error {
            BlobError::Missing(_) => NOT_FOUND,
            BlobError::TooLarge { .. } => TOO_LARGE,
            BlobError::Full { .. } => STORAGE,
            BlobError::Damaged { .. } => {
                tracing::error!(%error);
                DAMAGED
            }
            BlobError::Io { .. } => return Self::hidden(INTERNAL, error),
        };
        Self::new(kind, error)
    }
}

impl From<PathRejection> for Problem {
    fn from(error: PathRejection) -> Self {
        Self::new(BAD_REQUEST, error.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(error: QueryRejection) -> Self {
        Self::new(BAD_REQUEST, error.body_text())
    }
}

impl From<JsonRejection> for Problem {
    fn from(error: JsonRejection) -> Self {
        let kind = match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => MEDIA_TYPE,
            _ => BAD_REQUEST,
        };
        Self::new(kind, error.body_text())
    }
}

impl From<BytesRejection> for Problem {
    fn from(error: BytesRejection) -> Self {
        let kind = match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => TOO_LARGE,
            _ => BAD_REQUEST,
        };
        Self::new(kind, error.body_text())
    }
}
