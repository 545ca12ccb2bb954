//! A block with a witness of any size, and a node that answers with it: for tests, benchmarks and demonstrations.
//!
//! Nothing is executed. The witness is a real one in all that the checks look at: nodes hash to what others refer to them by,
//! and the root is that of the parent's state.

use crate::codec::b::{self, Envelope};
use crate::codec::json::{Parameters, RpcError, hex, witness_to_json};
use crate::codec::{Answer, Status, Witness, a, encode_witness};
use crate::jwt::Secret;
use crate::node::OCTETS;
use crate::payload::Payload;
use crate::problem::Problem;
use crate::push::Push;
use alloy_consensus::Header;
use alloy_consensus::constants::{EMPTY_ROOT_HASH, KECCAK_EMPTY};
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::keccak256;
use alloy_rlp::Encodable;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Small, fast and the same everywhere: what is random here protects nothing.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

/// A block and its witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The block.
    pub parameters: Parameters,
    /// Its witness in SSZ.
    pub witness: Vec<u8>,
    /// A key for each of its transactions.
    pub public_keys: Vec<u8>,
}

impl Block {
    /// A block at a height, after another one, with a witness of about so many bytes.
    pub fn new(seed: u64, number: u64, bytes: usize) -> Self {
        let mut random = Random(seed ^ (number << 32));
        let mut state: Vec<Vec<u8>> = Vec::new();
        let mut codes: Vec<Vec<u8>> = Vec::new();
        // A quarter of a witness are codes, the rest is nodes: a branch for each leaf.
        let accounts = (bytes / 800).max(2);
        let leaves: Vec<(bool, [u8; 32], [u8; 32])> = (0..accounts)
            .map(|at| {
                let code =
                    match at % 64 == 0 && codes.iter().map(Vec::len).sum::<usize>() < bytes / 4 {
                        true => {
                            let length = (bytes / 16).clamp(100, 24_000);
                            let code = random.bytes(length);
                            let hash = keccak256(&code).0;
                            codes.push(code);
                            hash
                        }
                        false => KECCAK_EMPTY.0,
                    };
                // Every eighth account has some storage.
                let storage = at % 8 == 1;
                let root = match storage {
                    true => trie(&mut random, 2, &mut state, &mut |random, path| {
                        let mut value = random.bytes(20);
                        value[0] |= 1;
                        leaf(&path, &alloy_rlp::encode(&value[..]))
                    }),
                    false => EMPTY_ROOT_HASH.0,
                };
                (storage, root, code)
            })
            .collect();
        let mut next = leaves.iter();
        let root = trie(&mut random, leaves.len(), &mut state, &mut |random, path| {
            let (_, root, code) = next.next().copied().unwrap_or_default();
            let nonce = random.below(1 << 20);
            let balance = random.next();
            let mut inside = Vec::new();
            nonce.encode(&mut inside);
            balance.encode(&mut inside);
            root[..].encode(&mut inside);
            code[..].encode(&mut inside);
            leaf(&path, &list(&inside))
        });
        for items in [&mut state, &mut codes] {
            items.sort_unstable();
            items.dedup();
        }
        let before = Header {
            number: number.saturating_sub(2),
            base_fee_per_gas: Some(7),
            extra_data: b"stand-in".as_slice().into(),
            ..Header::default()
        };
        let parent = Header {
            parent_hash: before.hash_slow(),
            number: number.saturating_sub(1),
            state_root: root.into(),
            base_fee_per_gas: Some(7),
            ..Header::default()
        };
        let headers = [alloy_rlp::encode(&before), alloy_rlp::encode(&parent)];
        let parts = [&state[..], &codes[..], &headers[..]];
        let [nodes, contracts, ancestors] = parts.map(|items| items.iter().map(Vec::as_slice));
        let witness = encode_witness(nodes, contracts, ancestors);
        let transactions: Vec<Vec<u8>> =
            (0..3).map(|_| [&[2], &random.bytes(150)[..]].concat()).collect();
        let public_keys = transactions.iter().flat_map(|_| [&[4], &random.bytes(64)[..]].concat());
        let public_keys = public_keys.collect();
        let mut fee = [0; 32];
        fee[0] = 7;
        let array =
            |random: &mut Random| <[u8; 32]>::try_from(random.bytes(32)).unwrap_or_default();
        let mut payload = Payload {
            parent_hash: parent.hash_slow().0,
            fee_recipient: [0x11; 20],
            state_root: array(&mut random),
            receipts_root: array(&mut random),
            logs_bloom: Box::new([0; 256]),
            prev_randao: array(&mut random),
            block_number: number,
            gas_limit: 36_000_000,
            gas_used: 21_000,
            timestamp: 1_800_000_000 + 12 * number,
            extra_data: b"stand-in".to_vec(),
            base_fee_per_gas: fee,
            block_hash: [0; 32],
            transactions,
            withdrawals: vec![Withdrawal {
                index: number,
                validator_index: 5,
                amount: 9,
                ..Withdrawal::default()
            }],
            blob_gas_used: 0,
            excess_blob_gas: 0,
            block_access_list: random.bytes(100),
            slot_number: number,
        };
        let (root, requests) = (array(&mut random), vec![vec![0, 1, 2], vec![1, 3]]);
        payload.block_hash = payload.header(root, &requests).map_or([0; 32], |it| it.hash_slow().0);
        let envelope =
            Envelope { payload, parent_beacon_block_root: root, execution_requests: requests };
        Self { parameters: Parameters { envelope, blob_hashes: vec![] }, witness, public_keys }
    }
}

impl Block {
    /// The body of `POST /v1/witness`.
    pub fn push(&self) -> Vec<u8> {
        let envelope = self.parameters.envelope.clone();
        match Witness::decode(&self.witness) {
            Ok(witness) => Push { envelope, witness, public_keys: &self.public_keys }.encode(),
            // It was encoded above.
            Err(_) => Vec::new(),
        }
    }
}

/// A list with its header.
fn list(inside: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inside.len() + 9);
    alloy_rlp::Header { list: true, payload_length: inside.len() }.encode(&mut bytes);
    bytes.extend_from_slice(inside);
    bytes
}

/// A leaf: its path of nibbles, and a value.
fn leaf(path: &[u8], value: &[u8]) -> Vec<u8> {
    let odd = path.len() % 2 == 1;
    let first = if odd { vec![0x30 | path[0]] } else { vec![0x20] };
    let rest = path[usize::from(odd)..].chunks_exact(2).map(|two| two[0] << 4 | two[1]);
    let path: Vec<u8> = first.into_iter().chain(rest).collect();
    let mut inside = Vec::new();
    path[..].encode(&mut inside);
    value.encode(&mut inside);
    list(&inside)
}

/// Adds the nodes of a trie with so many leaves, of two under each branch. Returns its root.
fn trie(
    random: &mut Random,
    leaves: usize,
    nodes: &mut Vec<Vec<u8>>,
    make: &mut dyn FnMut(&mut Random, Vec<u8>) -> Vec<u8>,
) -> [u8; 32] {
    let depth = usize::try_from(leaves.max(2).next_power_of_two().ilog2()).unwrap_or(1);
    let mut level: Vec<[u8; 32]> = Vec::new();
    let mut add = |node: Vec<u8>| {
        let hash = keccak256(&node).0;
        nodes.push(node);
        hash
    };
    for _ in 0..leaves {
        let path = (0..64 - depth).map(|_| random.next().to_le_bytes()[0] & 15).collect();
        level.push(add(make(random, path)));
    }
    while level.len() > 1 {
        let pairs: Vec<Vec<[u8; 32]>> = level.chunks(2).map(<[_]>::to_vec).collect();
        level = pairs
            .into_iter()
            .map(|children| {
                let (first, second) = (random.below(8), 8 + random.below(8));
                let mut inside = Vec::with_capacity(532);
                for at in 0..16 {
                    let child = match at {
                        at if at == first => children.first().copied(),
                        at if at == second => children.get(1).copied(),
                        _ => None,
                    };
                    // What the block has not read is only known by its hash.
                    let child = child.unwrap_or_else(|| {
                        <[u8; 32]>::try_from(random.bytes(32)).unwrap_or_default()
                    });
                    child[..].encode(&mut inside);
                }
                b""[..].encode(&mut inside);
                add(list(&inside))
            })
            .collect();
    }
    level.first().copied().unwrap_or(EMPTY_ROOT_HASH.0)
}

/// A node with one block.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// What it answers with.
    pub block: Arc<Block>,
    /// The status that it answers with.
    pub status: Status,
    /// What it says is wrong.
    pub error: Option<String>,
    /// Whether it has codec A.
    pub a: bool,
    /// Whether it has codec B.
    pub b: bool,
    /// Whose tokens requests must carry.
    pub secret: Option<Secret>,
    /// It fails, as a node without a disk would.
    pub broken: bool,
}

impl StandIn {
    /// A node that has all, and finds the block right.
    pub fn new(block: Block) -> Self {
        let (block, status) = (Arc::new(block), Status::Valid);
        Self { block, status, error: None, a: true, b: true, secret: None, broken: false }
    }

    /// Its routes.
    pub fn router(self) -> Router {
        Router::new()
            .fallback(answer)
            .layer(axum::extract::DefaultBodyLimit::max(b::MAX_REQUEST))
            .with_state(Arc::new(self))
    }

    /// Answers requests until `end` is true.
    pub async fn serve(self, listener: TcpListener, end: watch::Receiver<bool>) {
        let life = std::time::Duration::from_secs(3_600);
        hekaton_http::accept(self.router(), listener, 64, life, end).await.close().await;
    }

    fn said(&self) -> Answer<'_> {
        let payload = &self.block.parameters.envelope.payload;
        let valid = self.status == Status::Valid;
        Answer {
            status: self.status,
            latest_valid_hash: valid.then_some(payload.block_hash),
            validation_error: self.error.as_deref(),
            witness: Witness::decode(&self.block.witness).ok().filter(|_| valid),
            public_keys: if valid { &self.block.public_keys } else { &[] },
        }
    }
}

fn octets(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, OCTETS)], bytes).into_response()
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
        a::PATH if node.a => {
            if let Err(error) = authorized {
                return rpc_error(StatusCode::UNAUTHORIZED, -32_000, error);
            }
            answer_a(&node, &method, body.ok())
        }
        b::PATH if node.b => match authorized {
            Err(error) => {
                Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", error).into_response()
            }
            Ok(()) => answer_b(&node, &method, &headers, body.ok())
                .unwrap_or_else(IntoResponse::into_response),
        },
        b::CAPABILITIES if node.b && method == Method::GET => Json(serde_json::json!({
            "supported_forks": [b::FORK],
            "fork_scoped_endpoints": ["payloads", "payloads/witness"],
            "limits": { "payload.max_bytes": b::MAX_REQUEST },
        }))
        .into_response(),
        "/" if method == Method::POST => match (authorized, body) {
            (Err(error), _) => rpc_error(StatusCode::UNAUTHORIZED, -32_000, error),
            (Ok(()), Ok(body)) => answer_json(&node, &body),
            (Ok(()), Err(error)) => rpc_error(StatusCode::BAD_REQUEST, -32_700, error),
        },
        path => {
            let why = format!("there is no {path}");
            Problem::new(StatusCode::NOT_FOUND, "method-not-found", why).into_response()
        }
    }
}

fn answer_a(node: &StandIn, method: &Method, body: Option<Bytes>) -> Response {
    if method != Method::POST {
        return rpc_error(StatusCode::METHOD_NOT_ALLOWED, -32_601, "it must be POST");
    }
    let parameters = match Parameters::decode(&body.unwrap_or_default()) {
        Ok(parameters) => parameters,
        Err((code, error)) => return rpc_error(StatusCode::BAD_REQUEST, code, error),
    };
    if node.broken {
        return rpc_error(StatusCode::INTERNAL_SERVER_ERROR, -32_603, "the disk is gone");
    }
    if parameters.envelope.payload.timestamp < 1_800_000_000 {
        return rpc_error(StatusCode::BAD_REQUEST, -38_005, "Unsupported fork");
    }
    octets(a::encode(&node.said()))
}

fn answer_b(
    node: &StandIn,
    method: &Method,
    headers: &HeaderMap,
    body: Option<Bytes>,
) -> Result<Response, Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if method != Method::POST {
        return Err(Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-found",
            "it must be POST",
        ));
    }
    if text("content-type") != Some(OCTETS) {
        let kind = "unsupported-media-type";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, kind, "it must be SSZ"));
    }
    if text(b::VERSION) != Some(b::FORK) {
        let why = format!("{} must be {}", b::VERSION, b::FORK);
        return Err(Problem::new(StatusCode::BAD_REQUEST, "unsupported-fork", why));
    }
    let body = body.ok_or_else(|| Problem::too_large(b::MAX_REQUEST as u64))?;
    let envelope = Envelope::decode(&body).map_err(Problem::ssz)?;
    let header =
        envelope.payload.header(envelope.parent_beacon_block_root, &envelope.execution_requests);
    if header.is_none() {
        let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(unprocessable, "invalid-body", "base_fee_per_gas is too large"));
    }
    if node.broken {
        return Err(Problem::internal("the disk is gone"));
    }
    Ok(octets(b::encode(&node.said())))
}

fn answer_json(node: &StandIn, body: &[u8]) -> Response {
    #[derive(serde::Deserialize)]
    struct Call {
        id: serde_json::Value,
        method: String,
    }
    let Ok(call) = serde_json::from_slice::<Call>(body) else {
        return rpc_error(StatusCode::BAD_REQUEST, -32_700, "it is not a call");
    };
    let said = node.said();
    let result = match call.method.as_str() {
        "engine_exchangeCapabilities" => match node.a {
            true => serde_json::json!(["engine_newPayloadV5", a::CAPABILITY]).to_string(),
            false => serde_json::json!(["engine_newPayloadV5"]).to_string(),
        },
        "engine_newPayloadV5" => serde_json::json!({
            "status": said.status.name(),
            "latestValidHash": said.latest_valid_hash.map(|hash| hex(&hash)),
            "validationError": said.validation_error,
        })
        .to_string(),
        "debug_executionWitness" => match said.witness {
            Some(witness) => String::from_utf8_lossy(&witness_to_json(&witness)).into_owned(),
            None => "null".into(),
        },
        _ => {
            let error = RpcError { code: -32_601, message: "Method not found".into() };
            let answer = serde_json::json!({"jsonrpc": "2.0", "id": call.id, "error": error});
            return Json(answer).into_response();
        }
    };
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", call.id);
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}
