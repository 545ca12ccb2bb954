//! Errors of the service, as `application/problem+json` (RFC 9457) with the types of codec B where it has one.

use crate::desk::DeskError;
use crate::jwt::TokenError;
use crate::node::NodeError;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hekaton_orchestrator::BlobError;
use serde::{Deserialize, Serialize};

/// The problem with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind of problem, which is stable.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status of the answer.
    pub status: u16,
    /// The explanation of this occurrence.
    pub detail: String,
    /// Headers of the answer.
    #[serde(skip)]
    headers: Vec<(&'static str, &'static str)>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &str, detail: impl ToString) -> Self {
        let kind = format!("/engine-api/errors/{kind}");
        Self { kind, status: status.as_u16(), detail: detail.to_string(), headers: Vec::new() }
    }

    /// Adds a header to the answer.
    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds the number of seconds after which the request may be repeated.
    pub(crate) fn after(self, seconds: &'static str) -> Self {
        self.with("retry-after", seconds)
    }

    pub(crate) fn unauthorized(error: TokenError) -> Self {
        // A token that is present is named as the reason (RFC 6750, 3).
        let challenge = match error {
            TokenError::Missing => "Bearer",
            _ => "Bearer error=\"invalid_token\"",
        };
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", error);
        problem.with("www-authenticate", challenge)
    }

    pub(crate) fn busy() -> Self {
        let why = "too many bodies are on their way: send it again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", why).after("5")
    }

    fn full() -> Self {
        let why = "there is no space left for it: it was not accepted; send it again later";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "storage", why).after("60")
    }

    pub(crate) fn ssz(error: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "ssz-decode-error", error)
    }

    pub(crate) fn too_large(limit: u64) -> Self {
        let why = format!("the body may have {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request-too-large", why)
    }

    /// Logs an internal error, which the answer does not contain because it names files.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "a request cannot be answered");
        let why = "the service cannot answer: its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", why)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let more = self.headers.clone();
        let mut response = (status, Json(self)).into_response();
        for (name, value) in more {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
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
            DeskError::Blob(BlobError::Full { .. }) | DeskError::Full(_) => {
                tracing::error!(%error, "a witness is not accepted");
                Self::full()
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
        Self::new(StatusCode::BAD_GATEWAY, "node", error).after("5")
    }
}
