//! Errors that the service answers with.

use crate::store::{Unavailable, WriteError};
use crate::submissions::SubmissionError;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hekaton_orchestrator_client::BlobError;
use hekaton_service::{Problem, ProblemKind};

pub(crate) const BAD_REQUEST: ProblemKind = ProblemKind::new(
    400,
    "urn:hekaton:orchestrator:bad-request",
    "The request cannot be understood",
);
pub(crate) const UNAUTHORIZED: ProblemKind = ProblemKind::new(
    401,
    "urn:hekaton:orchestrator:unauthorized",
    "The request has no valid token",
)
.header("www-authenticate", "Bearer");
pub(crate) const TOKEN: ProblemKind =
    ProblemKind::new(401, "urn:hekaton:orchestrator:invalid-token", "No tenant has this token")
        .header("www-authenticate", "Bearer error=\"invalid_token\"");
pub(crate) const ORIGIN: ProblemKind = ProblemKind::new(
    403,
    "urn:hekaton:orchestrator:origin",
    "Pages of other sites cannot use the service",
);
pub(crate) const HOST: ProblemKind = ProblemKind::new(
    403,
    "urn:hekaton:orchestrator:host",
    "The service does not answer under this name",
);
pub(crate) const OPERATOR: ProblemKind =
    ProblemKind::new(403, "urn:hekaton:orchestrator:operator", "Only the operator may do that");
pub(crate) const NOT_FOUND: ProblemKind =
    ProblemKind::new(404, "urn:hekaton:orchestrator:not-found", "Not found");
pub(crate) const DAMAGED: ProblemKind =
    ProblemKind::new(404, "urn:hekaton:orchestrator:damaged", "The blob is damaged: send it again");
pub(crate) const METHOD: ProblemKind =
    ProblemKind::new(405, "urn:hekaton:orchestrator:method", "The path has no such method");
pub(crate) const CONFLICT: ProblemKind = ProblemKind::new(
    409,
    "urn:hekaton:orchestrator:conflict",
    "The request conflicts with what is there already",
);
pub(crate) const TOO_LARGE: ProblemKind =
    ProblemKind::new(413, "urn:hekaton:orchestrator:too-large", "The body is too large");
pub(crate) const MEDIA_TYPE: ProblemKind = ProblemKind::new(
    415,
    "urn:hekaton:orchestrator:media-type",
    "The body has an unsupported media type",
);
pub(crate) const CODING: ProblemKind = ProblemKind::new(
    415,
    "urn:hekaton:orchestrator:content-encoding",
    "The body has an unsupported content coding",
)
.header("accept-encoding", "identity");
pub(crate) const MISFIT: ProblemKind =
    ProblemKind::new(422, "urn:hekaton:orchestrator:misfit", "The job does not fit its workflow");
pub(crate) const FULL: ProblemKind =
    ProblemKind::new(429, "urn:hekaton:orchestrator:full", "A limit is reached").retry_after(5);
pub(crate) const RATE: ProblemKind =
    ProblemKind::new(429, "urn:hekaton:orchestrator:rate", "Too many jobs in a short time")
        .retry_after(1);
pub(crate) const BYTES: ProblemKind =
    ProblemKind::new(429, "urn:hekaton:orchestrator:bytes", "Too many bytes in a short time")
        .retry_after(60);
pub(crate) const DEAD: ProblemKind = ProblemKind::new(
    429,
    "urn:hekaton:orchestrator:behind-dead",
    "An earlier block of the chain is dead",
)
.retry_after(60);
pub(crate) const INTERNAL: ProblemKind =
    ProblemKind::new(500, "urn:hekaton:orchestrator:internal", "The service cannot answer");
pub(crate) const UNKNOWN: ProblemKind = ProblemKind::new(
    503,
    "urn:hekaton:orchestrator:unknown",
    "The outcome is unknown: send the request again",
)
.retry_after(1);
pub(crate) const UNAVAILABLE: ProblemKind = ProblemKind::new(
    503,
    "urn:hekaton:orchestrator:unavailable",
    "The service is temporarily unavailable",
)
.retry_after(1);
pub(crate) const STORAGE: ProblemKind =
    ProblemKind::new(507, "urn:hekaton:orchestrator:storage", "The disk is full").retry_after(60);

impl From<Unavailable> for Problem {
    fn from(error: Unavailable) -> Self {
        Problem::hidden(UNAVAILABLE, error)
    }
}

impl From<SubmissionError> for Problem {
    fn from(error: SubmissionError) -> Self {
        let error = match error {
            SubmissionError::NoBlob(blob) if !matches!(blob, BlobError::Missing(_)) => {
                return of_blob(blob);
            }
            error => error,
        };
        let kind = match &error {
            SubmissionError::NoChain(_) | SubmissionError::NoJob { .. } => NOT_FOUND,
            SubmissionError::OtherChain { .. } | SubmissionError::Taken(_) => CONFLICT,
            SubmissionError::Bad(_) => BAD_REQUEST,
            SubmissionError::Workflow(_) | SubmissionError::NoBlob(_) => MISFIT,
            SubmissionError::BehindDead { .. } => DEAD,
            SubmissionError::Unknown(_) => return Problem::hidden(UNKNOWN, error),
            SubmissionError::Store(WriteError::Full { .. }) => {
                return Problem::hidden(STORAGE, error);
            }
            SubmissionError::Store(_) | SubmissionError::Read(_) => {
                return Problem::hidden(UNAVAILABLE, error);
            }
        };
        Problem::new(kind, error)
    }
}

/// Makes the problem of a blob. Not a conversion: both types are of other crates.
pub(crate) fn of_blob(error: BlobError) -> Problem {
    let kind = match &error {
        BlobError::Missing(_) => NOT_FOUND,
        BlobError::TooLarge { .. } => TOO_LARGE,
        BlobError::Full { .. } => STORAGE,
        BlobError::Damaged { .. } => {
            tracing::error!(%error);
            DAMAGED
        }
        BlobError::Io { .. } => return Problem::hidden(INTERNAL, error),
    };
    Problem::new(kind, error)
}

/// The problem of a request that axum cannot extract a path, a query or a body from.
// A type of this crate: the orphan rule forbids conversions from axum's types into `Problem`.
#[derive(Debug)]
pub(crate) struct Rejection(Problem);

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<Rejection> for Problem {
    fn from(Rejection(problem): Rejection) -> Self {
        problem
    }
}

impl From<PathRejection> for Rejection {
    fn from(error: PathRejection) -> Self {
        Self(Problem::new(BAD_REQUEST, error.body_text()))
    }
}

impl From<QueryRejection> for Rejection {
    fn from(error: QueryRejection) -> Self {
        Self(Problem::new(BAD_REQUEST, error.body_text()))
    }
}

impl From<JsonRejection> for Rejection {
    fn from(error: JsonRejection) -> Self {
        let kind = match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => MEDIA_TYPE,
            _ => BAD_REQUEST,
        };
        Self(Problem::new(kind, error.body_text()))
    }
}

impl From<BytesRejection> for Rejection {
    fn from(error: BytesRejection) -> Self {
        let kind = match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => TOO_LARGE,
            _ => BAD_REQUEST,
        };
        Self(Problem::new(kind, error.body_text()))
    }
}
