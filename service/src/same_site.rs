//! The check that requests do not come from pages of other sites.

use crate::problem::{Problem, ProblemKind};
use axum::extract::Request;
use axum::http::{Method, header};

/// Refuses a request that a page of another site makes in a browser, as a problem of a kind.
///
/// A page can send requests to services on the machine or in the network of the person who looks at it. It cannot read the
/// answer, but a `POST` has its effect all the same. Browsers mark such requests, and pages cannot remove the marks:
///
/// - `Sec-Fetch-Site` (Fetch Metadata) is `cross-site`, or `same-site` for another port or subdomain. A link that is followed
///   is allowed, since that changes nothing and shows the answer to the person alone.
/// - `Origin` is in all requests with CORS, and in all that may change something. Older browsers have no other mark. Pages of
///   the services only read, so they send none.
///
/// Programs send neither.
///
/// # Errors
/// If the request has one of the marks.
pub fn check_same_site(kind: ProblemKind, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let is = |name: &str, wanted: &[&str]| {
        let found = headers.get(name).map(|value| value.as_bytes());
        found.is_some_and(|found| wanted.iter().any(|wanted| found == wanted.as_bytes()))
    };
    let is_link = request.method() == Method::GET && is("sec-fetch-mode", &["navigate"]);
    // An unknown value counts as another site: what is new in browsers must not open the service.
    let is_from_elsewhere = headers.contains_key("sec-fetch-site")
        && !is("sec-fetch-site", &["same-origin", "none"])
        && !is_link;
    match headers.contains_key(header::ORIGIN) || is_from_elsewhere {
        true => Err(Problem::new(kind, "the request comes from a page of another site")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn pages_of_other_sites_are_refused() {
        let kind = ProblemKind::new(403, "urn:hekaton:test:origin", "");
        for (method, headers, is_allowed) in [
            ("POST", &[][..], true),
            ("POST", &[("origin", "https://example.com")], false),
            ("POST", &[("origin", "null")], false),
            ("POST", &[("sec-fetch-site", "cross-site")], false),
            ("POST", &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], false),
            ("GET", &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], true),
            ("GET", &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], false),
            ("GET", &[("sec-fetch-site", "same-site")], false),
            ("GET", &[("sec-fetch-site", "new")], false),
            ("GET", &[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")], true),
            ("GET", &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")], true),
        ] {
            let mut request = Request::builder().method(method);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let checked = check_same_site(kind, &request.body(Body::empty()).unwrap());
            assert_eq!(checked.is_ok(), is_allowed, "{method} {headers:?}");
        }
    }
}
