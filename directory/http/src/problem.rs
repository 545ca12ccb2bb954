//! The kinds of problems that the service answers with.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hekaton_service::{Problem, ProblemKind};

/// The kinds of problems.
pub(crate) mod kind {
    use super::ProblemKind;

    pub(crate) const BAD_REQUEST: ProblemKind = ProblemKind::new(
        400,
        "urn:hekaton:directory:bad-request",
        "The request cannot be understood",
    );
    pub(crate) const UNAUTHORIZED: ProblemKind = ProblemKind::new(
        401,
        "urn:hekaton:directory:unauthorized",
        "The request has no valid token",
    )
    .header("www-authenticate", "Bearer");
    pub(crate) const TOKEN: ProblemKind =
        ProblemKind::new(401, "urn:hekaton:directory:invalid-token", "No writer has this token")
            .header("www-authenticate", "Bearer error=\"invalid_token\"");
    pub(crate) const ORIGIN: ProblemKind =
        ProblemKind::new(403, "urn:hekaton:directory:origin", "Pages cannot change the directory");
    pub(crate) const TIMEOUT: ProblemKind =
        ProblemKind::new(408, "urn:hekaton:directory:timeout", "The request came too slowly");
    pub(crate) const NOT_FOUND: ProblemKind =
        ProblemKind::new(404, "urn:hekaton:directory:not-found", "There is no such thing");
    pub(crate) const METHOD: ProblemKind =
        ProblemKind::new(405, "urn:hekaton:directory:method", "The path has no such method");
    pub(crate) const CONFLICT: ProblemKind = ProblemKind::new(
        409,
        "urn:hekaton:directory:conflict",
        "The update conflicts with another one",
    );
    pub(crate) const PRUNED: ProblemKind =
        ProblemKind::new(410, "urn:hekaton:directory:pruned", "The epoch is pruned");
    pub(crate) const TOO_LARGE: ProblemKind = ProblemKind::new(
        413,
        "urn:hekaton:directory:too-large",
        "The request or its answer is too large",
    );
    pub(crate) const MEDIA_TYPE: ProblemKind = ProblemKind::new(
        415,
        "urn:hekaton:directory:media-type",
        "The request has a form that is not taken",
    );
    pub(crate) const FULL: ProblemKind =
        ProblemKind::new(429, "urn:hekaton:directory:full", "Too many updates wait").retry_after(1);
    pub(crate) const UNPROVEN: ProblemKind = ProblemKind::new(
        429,
        "urn:hekaton:directory:unproven",
        "Too many epochs wait for their proofs",
    )
    .retry_after(10);
    pub(crate) const BUSY: ProblemKind =
        ProblemKind::new(503, "urn:hekaton:directory:busy", "Too many requests are on their way")
            .retry_after(1);
    pub(crate) const INTERNAL: ProblemKind =
        ProblemKind::new(500, "urn:hekaton:directory:internal", "The directory cannot answer");
    pub(crate) const UNKNOWN: ProblemKind = ProblemKind::new(
        503,
        "urn:hekaton:directory:unknown",
        "Whether the update was accepted is not known",
    )
    .retry_after(1);
    pub(crate) const UNAVAILABLE: ProblemKind = ProblemKind::new(
        503,
        "urn:hekaton:directory:unavailable",
        "The directory does not answer now",
    )
    .retry_after(1);
}

/// The problem with which the service refuses a request.
// A type of this crate: the orphan rule forbids conversions from errors of axum and of the directory into `Problem`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Refusal(pub Problem);

impl Refusal {
    pub(crate) fn new(kind: ProblemKind, detail: impl std::fmt::Display) -> Self {
        Self(Problem::new(kind, detail))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<PathRejection> for Refusal {
    fn from(error: PathRejection) -> Self {
        Self::new(kind::BAD_REQUEST, error.body_text())
    }
}

impl From<QueryRejection> for Refusal {
    fn from(error: QueryRejection) -> Self {
        Self::new(kind::BAD_REQUEST, error.body_text())
    }
}

impl From<JsonRejection> for Refusal {
    fn from(error: JsonRejection) -> Self {
        let kind = match error.status() {
            // First, because the status of such an error alone is that of a malformed request.
            _ if hekaton_service::is_late(&error) => kind::TIMEOUT,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => kind::MEDIA_TYPE,
            StatusCode::PAYLOAD_TOO_LARGE => kind::TOO_LARGE,
            _ => kind::BAD_REQUEST,
        };
        Self::new(kind, error.body_text())
    }
}
