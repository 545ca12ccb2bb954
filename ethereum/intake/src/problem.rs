//! Errors of the service, as `application/problem+json` (RFC 9457) with the types of execution-apis 793 where it has one.

use crate::jwt::TokenError;
use crate::node::NodeError;
use crate::store::StoreError;
use hekaton_orchestrator_client::BlobError;
use hekaton_service::{Problem, ProblemKind};

/// The kinds of problems.
pub(crate) mod kind {
    use super::ProblemKind;

    pub(crate) const INVALID_BODY: ProblemKind =
        ProblemKind::new(400, "/engine-api/errors/invalid-body", "");
    pub(crate) const INVALID_REQUEST: ProblemKind =
        ProblemKind::new(400, "/engine-api/errors/invalid-request", "");
    pub(crate) const JSON: ProblemKind =
        ProblemKind::new(400, "/engine-api/errors/parse-error", "");
    pub(crate) const SSZ: ProblemKind =
        ProblemKind::new(400, "/engine-api/errors/ssz-decode-error", "");
    pub(crate) const FORK: ProblemKind =
        ProblemKind::new(400, "/engine-api/errors/unsupported-fork", "");
    pub(crate) const UNAUTHORIZED: ProblemKind =
        ProblemKind::new(401, "/engine-api/errors/unauthorized", "");
    pub(crate) const ORIGIN: ProblemKind = ProblemKind::new(403, "/engine-api/errors/origin", "");
    pub(crate) const NO_PATH: ProblemKind =
        ProblemKind::new(404, "/engine-api/errors/method-not-found", "");
    pub(crate) const NO_WITNESS_OF_BLOCK: ProblemKind =
        ProblemKind::new(404, "/engine-api/errors/unknown-payload", "");
    pub(crate) const METHOD: ProblemKind =
        ProblemKind::new(405, "/engine-api/errors/method-not-found", "");
    pub(crate) const LATE: ProblemKind =
        ProblemKind::new(408, "/engine-api/errors/invalid-request", "");
    pub(crate) const TOO_LARGE: ProblemKind =
        ProblemKind::new(413, "/engine-api/errors/request-too-large", "");
    pub(crate) const MEDIA_TYPE: ProblemKind =
        ProblemKind::new(415, "/engine-api/errors/unsupported-media-type", "");
    pub(crate) const WRONG_BLOCK: ProblemKind =
        ProblemKind::new(422, "/engine-api/errors/invalid-body", "");
    pub(crate) const NO_WITNESS: ProblemKind =
        ProblemKind::new(422, "/engine-api/errors/no-witness", "");
    pub(crate) const INTERNAL: ProblemKind =
        ProblemKind::new(500, "/engine-api/errors/internal", "");
    pub(crate) const NODE: ProblemKind =
        ProblemKind::new(502, "/engine-api/errors/node", "").retry_after(5);
    pub(crate) const BUSY: ProblemKind =
        ProblemKind::new(503, "/engine-api/errors/busy", "").retry_after(5);
    pub(crate) const NOT_READY: ProblemKind =
        ProblemKind::new(503, "/engine-api/errors/not-ready", "").retry_after(5);
    pub(crate) const STORAGE: ProblemKind =
        ProblemKind::new(507, "/engine-api/errors/storage", "").retry_after(60);
}

pub(crate) fn unauthorized(error: TokenError) -> Problem {
    // A token that is present is named as the reason (RFC 6750, 3).
    let challenge = match error {
        TokenError::Missing => "Bearer",
        _ => "Bearer error=\"invalid_token\"",
    };
    Problem::new(kind::UNAUTHORIZED, error).with("www-authenticate", challenge)
}

pub(crate) fn busy() -> Problem {
    Problem::new(kind::BUSY, "too many requests are being processed: send this one again")
}

pub(crate) fn ssz(error: impl std::fmt::Display) -> Problem {
    Problem::new(kind::SSZ, error)
}

pub(crate) fn too_large(limit: u64) -> Problem {
    Problem::new(kind::TOO_LARGE, format_args!("the body has more than the limit of {limit} bytes"))
}

pub(crate) fn internal(error: impl std::fmt::Display) -> Problem {
    Problem::hidden(kind::INTERNAL, error)
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Ssz(error) => ssz(error),
            StoreError::Check(error) => Self::new(kind::WRONG_BLOCK, error),
            StoreError::Status { .. } | StoreError::NoWitness => Self::new(kind::NO_WITNESS, error),
            StoreError::Blob(BlobError::Full { .. }) | StoreError::Full(_) => {
                tracing::error!(%error, "a witness was not accepted");
                Self::new(
                    kind::STORAGE,
                    "no space left to store the witness, which was not accepted; send it again later",
                )
            }
            StoreError::Blob(_)
            | StoreError::Record { .. }
            | StoreError::Held(_)
            | StoreError::Foreign(_) => internal(error),
        }
    }
}

impl From<NodeError> for Problem {
    fn from(error: NodeError) -> Self {
        let kind = match error {
            NodeError::Fork { .. } => kind::FORK,
            _ => kind::NODE,
        };
        Self::new(kind, error)
    }
}
