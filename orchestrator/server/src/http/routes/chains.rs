//! Chains, and what they have published.

use super::{Api, JsonBody, Path, Query, Shared, parse};
use crate::http::body;
use crate::http::problem::BAD_REQUEST;
use crate::record::{Bundles, Chain, Order};
use crate::submissions::Reversal;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use hekaton_orchestrator_client::Name;
use hekaton_orchestrator_client::body::{
    BundlesBody, ChainBody, ChainState, DeadBody, ProofsBody, ReorgBody, example,
};
use hekaton_service::Problem;
use serde::Deserialize;
use utoipa::IntoParams;

/// The number of entries of a log that are answered at once.
const MAX_PROOFS: usize = 500;

/// The number of dead jobs that are answered at once.
const MAX_DEAD: usize = 500;

/// Makes a chain.
#[utoipa::path(
    put, path = "/v1/chains/{chain}", tag = "chains", params(("chain" = String, Path, description = "The name of the chain", example = example::chain)), request_body = ChainBody,
    responses(
        (status = 200, body = ChainState), (status = 404, body = Problem, description = "There is no chain to make bundles of"),
        (status = 409, body = Problem, description = "It exists with another order or genesis"),
        (status = 429, body = Problem, description = "The tenant has too many chains"),
    )
)]
pub(super) async fn make_chain(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
    JsonBody(body): JsonBody<ChainBody>,
) -> Result<Json<ChainState>, Problem> {
    let (tenant, limits) = api.tenants.of(&headers)?;
    let chain: Name = parse("chain", &chain)?;
    let genesis = body.genesis.as_deref().map(|genesis| parse("genesis", genesis)).transpose()?;
    let bundles = body.bundles.map(|bundles| {
        let BundlesBody { of, blocks, workflow, input, lane } = bundles;
        Ok::<_, Problem>(Bundles {
            of: parse("bundles.of", &of)?,
            blocks,
            workflow: parse("bundles.workflow", &workflow)?,
            input: parse("bundles.input", &input)?,
            lane,
        })
    });
    let bundles_of = bundles.transpose()?;
    let wanted = Chain {
        tenant: tenant.clone(),
        chain: chain.clone(),
        order: body.order,
        genesis,
        bundles: bundles_of,
    };
    let others = api.submissions.chains(&tenant).await?;
    if !others.iter().any(|other| other.chain == chain) {
        limits.admit_chain(&others, &wanted)?;
    }
    api.submissions.make_chain(wanted).await?;
    state_of(&api, &tenant, &chain).await
}

async fn state_of(api: &Api, tenant: &Name, chain: &Name) -> Result<Json<ChainState>, Problem> {
    let found = api.submissions.chain(tenant, chain).await?;
    let (tail, tip) = match found.order {
        Order::Strict => (
            api.submissions.last_published(tenant, chain).await?,
            api.submissions.tip(&found).await?,
        ),
        Order::None => (None, None),
    };
    Ok(Json(ChainState {
        chain: chain.to_string(),
        order: found.order,
        bundles: found.bundles.map(|bundles| BundlesBody {
            of: bundles.of.to_string(),
            blocks: bundles.blocks,
            workflow: bundles.workflow.to_string(),
            input: bundles.input.to_string(),
            lane: bundles.lane,
        }),
        tail: tail
            .as_ref()
            .map(|tail| tail.tail().to_string())
            .or(found.genesis.as_ref().map(Name::to_string)),
        height: tail.as_ref().map(|tail| tail.height()),
        tip_height: tip.as_ref().and_then(|(_, height)| *height),
        tip: tip.map(|(id, _)| id.to_string()),
        genesis: found.genesis.map(|genesis| genesis.to_string()),
    }))
}

/// Reads a chain.
#[utoipa::path(
    get, path = "/v1/chains/{chain}", tag = "chains", params(("chain" = String, Path, description = "The name of the chain", example = example::chain)),
    responses((status = 200, body = ChainState), (status = 404, body = Problem))
)]
pub(super) async fn chain(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
) -> Result<Json<ChainState>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    state_of(&api, &tenant, &parse("chain", &chain)?).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    /// The revision of the last entry that is known.
    #[serde(default)]
    from: u64,
}

/// Returns what a chain has published, in its order.
#[utoipa::path(
    get, path = "/v1/chains/{chain}/proofs", tag = "chains", params(("chain" = String, Path, description = "The name of the chain", example = example::chain), From),
    responses((status = 200, body = ProofsBody), (status = 404, body = Problem))
)]
pub(super) async fn proofs(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
    Query(From { from }): Query<From>,
) -> Result<Json<ProofsBody>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let chain = parse("chain", &chain)?;
    let found = api.submissions.published(&tenant, &chain, from, MAX_PROOFS).await?;
    let next = found.last().map_or(from, |(rev, _)| rev.number);
    let proofs = found.iter().map(|(rev, publication)| body::proof(rev.number, publication));
    Ok(Json(ProofsBody { proofs: proofs.collect(), next }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    /// The height of the last job that is known.
    block: Option<u64>,
    /// The name of its block.
    id: Option<String>,
}

/// Returns dead jobs of a chain, by height and name, at most 500.
#[utoipa::path(
    get, path = "/v1/chains/{chain}/dead", tag = "chains", params(("chain" = String, Path, description = "The name of the chain", example = example::chain), After),
    responses((status = 200, body = DeadBody), (status = 404, body = Problem))
)]
pub(super) async fn dead(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
    Query(After { block, id }): Query<After>,
) -> Result<Json<DeadBody>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let after = match (block, id) {
        (Some(block), Some(id)) => Some((block, parse("id", &id)?)),
        (None, None) => None,
        _ => return Err(Problem::new(BAD_REQUEST, "name both 'block' and 'id', or neither")),
    };
    let chain = parse("chain", &chain)?;
    let found = api.submissions.dead(&tenant, &chain, after, MAX_DEAD).await?;
    Ok(Json(DeadBody { jobs: found.iter().map(body::job_status).collect() }))
}

/// Removes the blocks after a given block from a chain: a re-org.
///
/// The blocks published after this one are removed from the chain, and cancelled with all their descendants. If no blocks were published
/// after it, the block that currently follows it is cancelled with its descendants. Blocks that descend from other blocks stay.
#[utoipa::path(
    post, path = "/v1/chains/{chain}/revert", tag = "chains", params(("chain" = String, Path, description = "The name of the chain", example = example::chain)), request_body = ReorgBody,
    responses((status = 200, body = ChainState), (status = 400, body = Problem), (status = 404, body = Problem))
)]
pub(super) async fn revert(
    State(api): Shared,
    headers: HeaderMap,
    Path(chain): Path<String>,
    JsonBody(body): JsonBody<ReorgBody>,
) -> Result<Json<ChainState>, Problem> {
    let (tenant, _) = api.tenants.of(&headers)?;
    let chain: Name = parse("chain", &chain)?;
    let next = body.next.as_deref().map(|next| parse("next", next)).transpose()?;
    let to = Reversal { to: parse("to", &body.to)?, block: body.block, next };
    api.submissions.revert(&tenant, &chain, &to).await?;
    state_of(&api, &tenant, &chain).await
}
