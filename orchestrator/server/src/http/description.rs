//! The description of the API, completed with what all operations have in common.

use hekaton_service::Problem;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, OpenApi as Api, Ref, RefOr, Response};
use utoipa::{PartialSchema, ToSchema};

/// The media type of problems (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// Completes the description of all operations.
pub(super) fn completed(mut api: Api) -> Api {
    let components = api.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into(), Problem::schema());
    for (path, item) in &mut api.paths.paths {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            complete(path, operation);
        }
    }
    api
}

/// Adds the problems that all operations have in common, and the media type of problems.
fn complete(path: &str, operation: &mut Operation) {
    let has_body = operation.request_body.as_ref().and_then(|body| match body {
        RefOr::T(body) => Some(body),
        RefOr::Ref(_) => None,
    });
    let takes = |kind: &str| has_body.is_some_and(|body| body.content.contains_key(kind));
    let has_parameters = operation.parameters.is_some();
    let mut common =
        vec![("403", "A page of another site sent the request, or the host is not this machine")];
    if path.starts_with("/v1/") && path != "/v1/drain" {
        common.push(("401", "The service has tenants, and the request has no valid token"));
    }
    if has_parameters || has_body.is_some() {
        common.push(("400", "A name, a digest, a number or the body cannot be understood"));
    }
    if takes("application/json") || takes("application/toml") {
        common.push(("413", "The body has more than 1 MiB"));
    }
    if takes("application/json") {
        common.push(("415", "The body is not JSON"));
    }
    common.push(("415", "The body has a content coding, which the service does not support"));
    common
        .push(("default", "The service cannot answer now (500, 503), or has no space left (507)"));
    let responses = &mut operation.responses.responses;
    for (status, description) in common {
        let response = || RefOr::T(Response::new(description));
        responses.entry(status.into()).or_insert_with(response);
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if status.starts_with(['4', '5', 'd']) {
            let content = Content::new(Some(Ref::from_schema_name(Problem::name())));
            response.content = [(PROBLEM.to_owned(), RefOr::T(content))].into();
        }
        if response.description.is_empty() {
            response.description = describe(status).into();
        }
    }
}

/// Describes a status to which an operation has nothing to add.
fn describe(status: &str) -> &'static str {
    match status {
        "200" => "The requested data",
        "204" => "The request was carried out",
        "404" => "Not found",
        _ => "See `detail`",
    }
}
