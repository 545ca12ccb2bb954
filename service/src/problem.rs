//! Problem details (RFC 9457): the body of every error answer of a service.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An error answer to a request, as `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[error("{}", self.text())]
pub struct Problem {
    /// The kind of problem, a URI that stays the same.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// An explanation of what was wrong with this request.
    pub detail: String,
    /// The number of seconds after which the request may be sent again, if that may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// Headers of the answer in addition to those that all problems have.
    #[serde(skip)]
    headers: Vec<(&'static str, &'static str)>,
}

/// The longest time to wait that is asked of a client, in seconds.
const DAY: f64 = 86_400.0;

/// A kind of problem, which a service declares as a constant.
#[derive(Clone, Copy, Debug)]
pub struct ProblemKind {
    /// The status of the answer.
    pub status: u16,
    /// The URI of the kind.
    pub uri: &'static str,
    title: &'static str,
    retry_after: Option<u32>,
    header: Option<(&'static str, &'static str)>,
}

impl ProblemKind {
    /// Declares a kind of problem by its status, its URI and a title, which may be empty.
    pub const fn new(status: u16, uri: &'static str, title: &'static str) -> Self {
        Self { status, uri, title, retry_after: None, header: None }
    }

    /// Adds the number of seconds after which the request may be sent again.
    pub const fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// Adds a header of the answer, such as `www-authenticate`.
    pub const fn header(self, name: &'static str, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }
}

impl Problem {
    /// The media type of problems.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// Makes a problem of a kind.
    pub fn new(kind: ProblemKind, detail: impl std::fmt::Display) -> Self {
        let ProblemKind { status, uri, title, retry_after, header } = kind;
        Self {
            kind: uri.to_owned(),
            title: title.to_owned(),
            status,
            detail: detail.to_string(),
            retry_after,
            headers: header.into_iter().collect(),
        }
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Sets the number of seconds after which the request may be sent again: between one second and a day.
    #[must_use]
    #[expect(
        clippy::manual_clamp,
        reason = "`max` turns NaN into the lower bound; `clamp` keeps it"
    )]
    pub fn after(self, seconds: f64) -> Self {
        let wait = Duration::from_secs_f64(seconds.max(1.0).min(DAY)).as_secs();
        let retry_after = u32::try_from(wait).expect("a day has fewer seconds than 2^32");
        Self { retry_after: Some(retry_after), ..self }
    }

    /// Returns the time after which the request may be sent again, if that may help.
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after.map(|seconds| Duration::from_secs(seconds.into()))
    }

    fn text(&self) -> String {
        match &self.title[..] {
            "" => self.detail.clone(),
            title => format!("{title}: {}", self.detail),
        }
    }
}

#[cfg(feature = "server")]
mod answer {
    use super::{Problem, ProblemKind};
    use axum::Json;
    use axum::http::{HeaderValue, StatusCode, header};
    use axum::response::{IntoResponse, Response};

    impl Problem {
        /// Makes a problem of the service's own: the error goes into the log alone, since callers have no use for its
        /// files, and should not learn their names.
        pub fn hidden(kind: ProblemKind, error: impl std::fmt::Display) -> Self {
            tracing::error!(status = kind.status, kind = kind.uri, %error, "a request was not answered");
            Self::new(kind, "the log of the service says why")
        }
    }

    impl IntoResponse for Problem {
        fn into_response(mut self) -> Response {
            // Problems of this process have a valid status. One that was read from elsewhere may not.
            let status =
                StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let (retry, more) = (self.retry_after, std::mem::take(&mut self.headers));
            let mut response = (status, Json(self)).into_response();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Self::MEDIA_TYPE));
            if let Some(seconds) = retry {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            for (name, value) in more {
                headers.insert(name, HeaderValue::from_static(value));
            }
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_read_as_they_are_written() {
        let kind = ProblemKind::new(429, "urn:hekaton:test:full", "Too many").retry_after(5);
        let problem = Problem::new(kind, "job limit reached: 3 of 3");
        let text = serde_json::to_string(&problem).unwrap();
        let wanted = r#"{"type":"urn:hekaton:test:full","title":"Too many","status":429,"detail":"job limit reached: 3 of 3","retry_after":5}"#;
        assert_eq!(text, wanted);
        assert_eq!(serde_json::from_str::<Problem>(wanted).unwrap(), problem);
        assert_eq!(problem.to_string(), "Too many: job limit reached: 3 of 3");
        assert_eq!(problem.wait(), Some(Duration::from_secs(5)));

        // Titles and times are optional, and unknown members are ignored (RFC 9457, 3.2).
        let short = r#"{"type":"about:blank","status":404,"detail":"no block","block":7}"#;
        let problem: Problem = serde_json::from_str(short).unwrap();
        assert_eq!((problem.to_string(), problem.wait()), ("no block".into(), None));
    }

    #[test]
    fn times_to_wait_have_bounds() {
        let problem = Problem::new(ProblemKind::new(429, "x", ""), "");
        for (seconds, wanted) in [(0.2, 1), (7.9, 7), (1e9, 86_400), (f64::NAN, 1), (-1.0, 1)] {
            assert_eq!(problem.clone().after(seconds).retry_after, Some(wanted), "{seconds}");
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn answers_have_the_headers_of_their_kind() {
        use axum::response::IntoResponse;
        let kind = ProblemKind::new(401, "urn:hekaton:test:token", "No token")
            .header("www-authenticate", "Bearer")
            .retry_after(2);
        let response = Problem::new(kind, "").with("accept-encoding", "gzip").into_response();
        assert_eq!(response.status().as_u16(), 401);
        for (name, value) in [
            ("content-type", Problem::MEDIA_TYPE),
            ("www-authenticate", "Bearer"),
            ("retry-after", "2"),
            ("accept-encoding", "gzip"),
        ] {
            assert_eq!(response.headers()[name], value);
        }
        // A status that does not exist is an error of the service.
        let response = Problem::new(ProblemKind::new(7, "x", ""), "").into_response();
        assert_eq!(response.status().as_u16(), 500);
    }
}
