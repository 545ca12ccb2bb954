//! Errors that a service answers with.

use serde::{Deserialize, Serialize};

/// A problem with a request, as `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[error("{title}: {detail}")]
pub struct Problem {
    /// The kind of problem, which stays the same: `urn:hekaton:directory:` and a word.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// A description of what was wrong with this request.
    pub detail: String,
    /// The number of seconds after which the request may be sent again, if that may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
}

impl Problem {
    /// A problem of a kind.
    #[cfg(feature = "server")]
    pub(crate) fn new(kind: &Kind, detail: impl std::fmt::Display) -> Self {
        let Kind { status, word, title, retry_after } = *kind;
        Self {
            kind: format!("urn:hekaton:directory:{word}"),
            title: title.into(),
            status,
            detail: detail.to_string(),
            retry_after,
        }
    }
}

/// A kind of problem.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) status: u16,
    word: &'static str,
    title: &'static str,
    retry_after: Option<u32>,
}

#[cfg(feature = "server")]
impl Kind {
    const fn new(status: u16, word: &'static str, title: &'static str) -> Self {
        Self { status, word, title, retry_after: None }
    }

    const fn again(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    pub(crate) const BAD_REQUEST: Self =
        Self::new(400, "bad-request", "The request cannot be understood");
    pub(crate) const ORIGIN: Self = Self::new(403, "origin", "Pages cannot change the directory");
    pub(crate) const TIMEOUT: Self = Self::new(408, "timeout", "The request came too slowly");
    pub(crate) const NOT_FOUND: Self = Self::new(404, "not-found", "There is no such thing");
    pub(crate) const METHOD: Self = Self::new(405, "method", "The path has no such method");
    pub(crate) const CONFLICT: Self =
        Self::new(409, "conflict", "The update conflicts with another one");
    pub(crate) const PRUNED: Self = Self::new(410, "pruned", "The epoch is pruned");
    pub(crate) const TOO_LARGE: Self =
        Self::new(413, "too-large", "The request or its answer is too large");
    pub(crate) const MEDIA_TYPE: Self =
        Self::new(415, "media-type", "The request has a form that is not taken");
    pub(crate) const FULL: Self = Self::new(429, "full", "Too many updates wait").again(1);
    pub(crate) const UNPROVEN: Self =
        Self::new(429, "unproven", "Too many epochs wait for their proofs").again(10);
    pub(crate) const BUSY: Self =
        Self::new(503, "busy", "Too many requests are on their way").again(1);
    pub(crate) const INTERNAL: Self = Self::new(500, "internal", "The directory cannot answer");
    pub(crate) const UNKNOWN: Self =
        Self::new(503, "unknown", "Whether the update was accepted is not known").again(1);
    pub(crate) const UNAVAILABLE: Self =
        Self::new(503, "unavailable", "The directory does not answer now").again(1);
}
