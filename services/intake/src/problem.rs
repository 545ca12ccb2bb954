//! Errors of the service, as `application/problem+json` (RFC 9457) with the types of codec B where it has one.

use crate::desk::DeskError;
use crate::node::NodeError;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hekaton_orchestrator::BlobError;
use serde::{Deserialize, Serialize};

/// What was wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind of problem, which stays the same.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status of the answer.
    pub status: u16,
    /// What was wrong with this request.
    pub detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &str, detail: impl ToString) -> Self {
        let kind = format!("/engine-api/errors/{kind}");
        Self { kind, status: status.as_u16(), detail: detail.to_string() }
    }

    pub(crate) fn ssz(error: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ssz-decode-error", error)
    }

    pub(crate) fn too_large(limit: u64) -> Self {
        let why = format!("the body may have {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request-too-large", why)
    }

    pub(crate) fn internal(error: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

impl From<DeskError> for Problem {
    fn from(error: DeskError) -> Self {
        let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
        match error {
            DeskError::Ssz(error) => Self::ssz(error),
            DeskError::Check(error) => Self::new(unprocessable, "invalid-body", error),
            DeskError::Status { .. } | DeskError::NoWitness => {
                Self::new(unprocessable, "no-witness", error)
            }
            DeskError::Blob(BlobError::Full { .. }) => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "storage", error)
            }
            DeskError::Blob(_)
            | DeskError::Record { .. }
            | DeskError::Held(_)
            | DeskError::Foreign(_) => Self::internal(error),
        }
    }
}

impl From<NodeError> for Problem {
    fn from(error: NodeError) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "node", error)
    }
}
