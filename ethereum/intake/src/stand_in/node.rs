//! A node with one block.

use super::Block;
use crate::block;
use crate::codec::json::{Parameters, RpcError, witness_to_json};
use crate::codec::rlp::witness_to_rlp;
use crate::codec::{Answer, Status, apis773, apis793};
use crate::jwt::Secret;
use crate::node::{Identity, OCTETS};
use crate::problem::{self, kind};
use crate::values::hex;
use alloy_rlp::Decodable;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use hekaton_service::Problem;
use hekaton_witness_format::{Envelope, ExecutionWitness};
use std::borrow::Cow;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A node with one block.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// The block that it answers with.
    pub block: Arc<Block>,
    /// The status that it answers with.
    pub status: Status,
    /// The error that it reports.
    pub error: Option<String>,
    /// `true` if it answers as execution-apis 773 specifies.
    pub apis773: bool,
    /// `true` if it answers as execution-apis 793 and 885 specify.
    pub apis793: bool,
    /// The secret of the tokens that requests must carry.
    pub secret: Option<Secret>,
    /// The support of the methods of `debug_`, and the form of the headers, whose fields Geth names.
    pub debug: Debug,
    /// `true` if it fails, as a node without a disk would.
    pub broken: bool,
}

/// The support of `debug_executionWitness` by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debug {
    /// The method is missing: another node has to be asked.
    Missing,
    /// Headers come as hexadecimal digits of their RLP.
    Encoded,
    /// Headers come with a name for each field.
    Named,
}

impl StandIn {
    /// Makes a node that has both codecs, and finds the block valid.
    pub fn new(block: Block) -> Self {
        let (block, status) = (Arc::new(block), Status::Valid);
        let debug = Debug::Encoded;
        Self {
            block,
            status,
            error: None,
            apis773: true,
            apis793: true,
            secret: None,
            debug,
            broken: false,
        }
    }

    /// Returns its routes.
    pub fn router(self) -> Router {
        Router::new()
            .fallback(answer)
            .layer(axum::extract::DefaultBodyLimit::max(apis793::MAX_REQUEST))
            .with_state(Arc::new(self))
    }

    /// Answers requests until `end` is true.
    pub async fn serve(self, listener: TcpListener, end: watch::Receiver<bool>) {
        let hour = std::time::Duration::from_secs(3_600);
        let limits = hekaton_service::Limits::new(64, hour).http2(true);
        hekaton_service::accept(self.router(), listener, limits, end).await.close().await;
    }

    fn said(&self) -> Answer<'_> {
        let payload = &self.block.parameters.envelope.payload;
        let valid = self.status == Status::Valid;
        Answer {
            status: self.status,
            latest_valid_hash: valid.then_some(payload.block_hash),
            validation_error: self.error.as_deref(),
            witness: valid.then(|| self.block.witness()),
            public_keys: if valid { &self.block.public_keys } else { &[] },
        }
    }
}

/// Returns an answer in pieces, of which those of the witness are not copied.
fn octets(block: &Arc<Block>, pieces: Vec<Cow<'_, [u8]>>) -> Response {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let whole = Bytes::from_owner(OfWitness(Arc::clone(block)));
    let within = block.witness.as_ptr_range();
    let parts: Vec<_> = pieces
        .into_iter()
        .map(|piece| {
            Ok::<_, std::convert::Infallible>(match piece {
                Cow::Borrowed(part) if within.contains(&part.as_ptr()) => whole.slice_ref(part),
                piece => Bytes::from(piece.into_owned()),
            })
        })
        .collect();
    let headers =
        [(header::CONTENT_TYPE, OCTETS.to_owned()), (header::CONTENT_LENGTH, length.to_string())];
    (headers, axum::body::Body::from_stream(futures_util::stream::iter(parts))).into_response()
}

/// Returns the identity that it reports.
fn identity() -> Identity {
    let [code, name, version] = ["SI", "stand-in", env!("CARGO_PKG_VERSION")].map(str::to_owned);
    Identity { code, name, version, commit: "00000000".into() }
}

/// A block as the owner of its witness.
struct OfWitness(Arc<Block>);

impl AsRef<[u8]> for OfWitness {
    fn as_ref(&self) -> &[u8] {
        &self.0.witness
    }
}

fn rpc_error(status: StatusCode, code: i64, message: impl ToString) -> Response {
    (status, Json(RpcError { code, message: message.to_string() })).into_response()
}

async fn answer(
    State(node): State<Arc<StandIn>>,
    method: Method,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let authorized = node.secret.as_ref().map_or(Ok(()), |secret| secret.check(bearer));
    match uri.path() {
        apis773::PATH if node.apis773 => {
            if let Err(error) = authorized {
                return rpc_error(StatusCode::UNAUTHORIZED, -32_000, error);
            }
            answer_773(&node, &method, body.ok())
        }
        apis793::PATH if node.apis793 => match authorized {
            Err(error) => Problem::new(kind::UNAUTHORIZED, error).into_response(),
            Ok(()) => answer_793(&node, &method, &headers, body.ok())
                .unwrap_or_else(IntoResponse::into_response),
        },
        apis793::CAPABILITIES if node.apis793 && method == Method::GET => Json(serde_json::json!({
            "supported_forks": [apis793::FORK],
            "fork_scoped_endpoints": ["payloads", "payloads/witness"],
            "limits": { "payload.max_bytes": apis793::MAX_REQUEST },
        }))
        .into_response(),
        apis793::IDENTITY if node.apis793 && method == Method::GET => {
            Json([identity()]).into_response()
        }
        "/" if method == Method::POST => match (authorized, body) {
            (Err(error), _) => rpc_error(StatusCode::UNAUTHORIZED, -32_000, error),
            (Ok(()), Ok(body)) => answer_json(&node, &body),
            (Ok(()), Err(error)) => rpc_error(StatusCode::BAD_REQUEST, -32_700, error),
        },
        path => {
            let why = format!("there is no {path}");
            Problem::new(kind::NO_PATH, why).into_response()
        }
    }
}

fn answer_773(node: &StandIn, method: &Method, body: Option<Bytes>) -> Response {
    if method != Method::POST {
        return rpc_error(StatusCode::METHOD_NOT_ALLOWED, -32_601, "it must be POST");
    }
    let Some(body) = body else {
        return rpc_error(StatusCode::PAYLOAD_TOO_LARGE, -32_600, "the request is too large");
    };
    let parameters = match Parameters::decode(&body) {
        Ok(parameters) => parameters,
        Err((code, error)) => return rpc_error(StatusCode::BAD_REQUEST, code, error),
    };
    if node.broken {
        return rpc_error(StatusCode::INTERNAL_SERVER_ERROR, -32_603, "the disk is gone");
    }
    if parameters.envelope.payload.timestamp < 1_800_000_000 {
        return rpc_error(StatusCode::BAD_REQUEST, -38_005, "Unsupported fork");
    }
    octets(&node.block, apis773::pieces(&node.said()))
}

fn answer_793(
    node: &StandIn,
    method: &Method,
    headers: &HeaderMap,
    body: Option<Bytes>,
) -> Result<Response, Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if method != Method::POST {
        return Err(Problem::new(kind::METHOD, "it must be POST"));
    }
    if text("content-type") != Some(OCTETS) {
        return Err(Problem::new(kind::MEDIA_TYPE, "it must be SSZ"));
    }
    if text(apis793::VERSION) != Some(apis793::FORK) {
        let why = format!("{} must be {}", apis793::VERSION, apis793::FORK);
        return Err(Problem::new(kind::FORK, why));
    }
    let request = body.ok_or_else(|| problem::too_large(apis793::MAX_REQUEST as u64))?;
    let envelope = Envelope::decode(&request).map_err(problem::ssz)?;
    if block::header(&envelope).is_none() {
        return Err(Problem::new(kind::WRONG_BLOCK, "base_fee_per_gas is too large"));
    }
    if node.broken {
        return Err(problem::internal("the disk is gone"));
    }
    Ok(octets(&node.block, apis793::pieces(&node.said())))
}

/// Returns an error in an answer of JSON-RPC.
fn refuse(id: &serde_json::Value, code: i64, message: impl ToString) -> Response {
    let error = RpcError { code, message: message.to_string() };
    Json(serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
}

/// Returns the witness in JSON as Geth has it: with headers whose fields have names, the hash among them.
fn with_named_headers(witness: &ExecutionWitness<'_>) -> Vec<u8> {
    let mut value: serde_json::Value =
        serde_json::from_slice(&witness_to_json(witness)).expect("it was just written");
    let named = witness.headers.iter().map(|mut bytes| {
        let header = alloy_consensus::Header::decode(&mut bytes)
            .expect("synthetic witnesses have valid headers");
        let mut named = serde_json::to_value(&header).expect("headers can be written as JSON");
        named["hash"] = hex(&header.hash_slow().0).into();
        named
    });
    value["headers"] = named.collect();
    value.to_string().into_bytes()
}

/// Checks that a method takes a block, as nodes do: the form of the parameters shows the fork of the block.
// Not by `Parameters::method`, which is tested with this node.
fn check_fork(method: &str, params: &serde_json::Value) -> Result<(), (i64, String)> {
    Parameters::decode(params.to_string().as_bytes())
        .map_err(|(code, error)| (code, error.to_string()))?;
    let has_slot = params[0].get("slotNumber").is_some();
    let expected = match params.as_array().map(Vec::len) {
        Some(1) => "V2",
        Some(3) => "V3",
        _ if has_slot => "V5",
        _ => "V4",
    };
    let version = method.trim_start_matches("engine_newPayload").trim_start_matches("WithWitness");
    match version == expected {
        true => Ok(()),
        false => Err((-38_005, format!("Unsupported fork: {method}, expected {expected}"))),
    }
}

fn answer_json(node: &StandIn, body: &[u8]) -> Response {
    #[derive(serde::Deserialize)]
    struct Call {
        id: serde_json::Value,
        method: String,
        #[serde(default)]
        params: serde_json::Value,
    }
    let Ok(call) = serde_json::from_slice::<Call>(body) else {
        return rpc_error(StatusCode::BAD_REQUEST, -32_700, "it is not a call");
    };
    let unknown = refuse(&call.id, -32_601, "Method not found");
    let said = node.said();
    let hash = node.block.parameters.envelope.payload.block_hash;
    let result: Vec<u8> = match call.method.as_str() {
        "engine_exchangeCapabilities" => match node.apis773 {
            true => serde_json::json!(["engine_newPayloadV5", apis773::CAPABILITY]).to_string(),
            false => serde_json::json!(["engine_newPayloadV5"]).to_string(),
        }
        .into(),
        "engine_getClientVersionV1" => serde_json::json!([identity()]).to_string().into(),
        method if method.starts_with("engine_newPayload") => {
            if let Err((code, why)) = check_fork(method, &call.params) {
                return refuse(&call.id, code, why);
            }
            let mut status = serde_json::json!({
                "status": said.status.name(),
                "latestValidHash": said.latest_valid_hash.map(|hash| hex(&hash)),
                "validationError": said.validation_error,
            });
            if let (Some(witness), true) = (said.witness, method.contains("WithWitness")) {
                status["witness"] = hex(&witness_to_rlp(&witness)).into();
            }
            status.to_string().into()
        }
        "debug_executionWitness" if node.debug == Debug::Missing => return unknown,
        "debug_executionWitness" if call.params != serde_json::json!([hex(&hash)]) => {
            return refuse(&call.id, -32_602, "not a hash");
        }
        "debug_executionWitness" => match said.witness {
            Some(witness) if node.debug == Debug::Named => with_named_headers(&witness),
            Some(witness) => witness_to_json(&witness),
            None => b"null".to_vec(),
        },
        _ => return unknown,
    };
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", call.id);
    // In three pieces, so that a large result is not copied.
    let parts = [head.into(), Bytes::from(result), Bytes::from_static(b"}")];
    let length: usize = parts.iter().map(Bytes::len).sum();
    let parts = futures_util::stream::iter(parts.map(Ok::<_, std::convert::Infallible>));
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    (headers, axum::body::Body::from_stream(parts)).into_response()
}
