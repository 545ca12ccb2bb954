//! The records of blocks: one, a page of them, and blocks that are submitted again.

use super::{Service, Shared, blocking};
use crate::branch::hash;
use crate::problem::kind;
use crate::record::Record;
use crate::store::{MAX_PAGE, Page, Place, RecordState};
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use hekaton_service::Problem;
use serde::Deserialize;
use std::sync::Arc;

type Block = Result<Path<String>, PathRejection>;

/// Returns the name of a block in a path.
fn name(block: Block) -> Result<String, Problem> {
    let Path(block) =
        block.map_err(|error| Problem::new(kind::INVALID_REQUEST, error.body_text()))?;
    let name = block.strip_prefix("0x").unwrap_or(&block).to_owned();
    // The name becomes part of a file's path. Nothing but a hash may get through, or `..` would
    // lead out of the folder.
    match hash(&name) {
        Some(_) => Ok(name),
        None => {
            let why = "a block is named by its hash: 64 lowercase hexadecimal digits";
            Err(Problem::new(kind::INVALID_REQUEST, why))
        }
    }
}

fn missing(block: &str) -> Problem {
    Problem::new(kind::NO_WITNESS_OF_BLOCK, format!("there is no witness of block {block}"))
}

/// `GET /v1/witness/{block}`.
pub(super) async fn record(
    State(service): Shared,
    headers: HeaderMap,
    block: Block,
) -> Result<Json<Record>, Problem> {
    service.authorize(&headers)?;
    let name = name(block)?;
    let store = Arc::clone(service.store());
    let why = missing(&name);
    let found = blocking(move || Ok(store.record(&name)?)).await?;
    found.map(Json).ok_or(why)
}

/// `POST /v1/witness/{block}/resubmit`.
pub(super) async fn resubmit(
    State(service): Shared,
    headers: HeaderMap,
    block: Block,
) -> Result<(StatusCode, Json<Record>), Problem> {
    service.authorize(&headers)?;
    let name = name(block)?;
    let store = Arc::clone(service.store());
    let why = missing(&name);
    let found = blocking(move || Ok(store.resubmit(&name)?)).await?.ok_or(why)?;
    service.wake();
    Ok((StatusCode::ACCEPTED, Json(found)))
}

/// The query of a page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    status: Option<RecordState>,
    after: Option<String>,
    limit: Option<u16>,
}

/// The number of records on a page if the query has none.
const PAGE: u16 = 100;

/// `GET /v1/witness`.
pub(super) async fn page(
    State(service): Shared,
    headers: HeaderMap,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Page>, Problem> {
    service.authorize(&headers)?;
    let wrong = |why: String| Problem::new(kind::INVALID_REQUEST, why);
    let Query(Wanted { status, after, limit }) = query.map_err(|error| wrong(error.body_text()))?;
    let after: Option<Place> = after
        .map(|after| after.parse().map_err(|why| wrong(format!("after '{after}': {why}"))))
        .transpose()?;
    let limit = limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(wrong(format!("limit {limit}, expected 1 to {MAX_PAGE}")));
    }
    // A page may read all records: it must not keep bodies waiting.
    let turn = Service::turn(&service.pages).await?;
    let store = Arc::clone(service.store());
    let page = blocking(move || {
        let _turn = turn;
        Ok(store.page(status, after.as_ref(), limit.into()))
    });
    Ok(Json(page.await?))
}
