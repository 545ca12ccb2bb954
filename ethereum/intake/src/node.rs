//! A client of nodes, which fetches the witness of a block.

use crate::codec::json::{self, Parameters, RpcError, Said};
use crate::codec::{Answer, Status, apis773, apis793};
use crate::jwt::Secret;
use crate::received::Received;
use crate::store::{Place, RecordState};
use crate::values::Object;
use bytes::Bytes;
use hekaton_witness_format::ssz::SszError;
use hekaton_witness_format::{ExecutionWitness, Fork};
use http_body_util::{BodyExt, Full};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::sync::Arc;
use std::time::Duration;

/// The time that an answer may take: the limit of the specification, plus some for the largest witnesses.
const TIME: Duration = Duration::from_secs(60);

/// The time that it may take to connect.
const CONNECT: Duration = Duration::from_secs(5);

/// The largest witness, in bytes, by default.
pub const MAX_WITNESS: u64 = 640_000_000;

/// The window of HTTP/2, in bytes: the default of 64 KiB makes large answers wait.
const WINDOW: u32 = 1 << 20;

/// The media type of SSZ.
pub(crate) const OCTETS: &str = "application/octet-stream";

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

/// The codec of requests to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Codec {
    /// `POST /new-payload-with-witness` (execution-apis 773).
    #[value(name = "773", alias = "a")]
    Apis773,
    /// `POST /engine/v1/payloads/witness` (execution-apis 793 and 885).
    #[value(name = "793", alias = "b")]
    Apis793,
    /// JSON-RPC: `engine_newPayload`, then `debug_executionWitness`.
    Json,
}

impl Codec {
    /// Returns the name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Apis773 => "773",
            Self::Apis793 => "793",
            Self::Json => "json",
        }
    }
}

/// The reason why there is no witness.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A node that does not answer.
    #[error("{url}: {why}")]
    Failed {
        /// The address that was asked.
        url: String,
        /// The reason.
        why: String,
    },
    /// A refusal by the node.
    #[error("{url}: status {status}: {body}")]
    Refused {
        /// The address that was asked.
        url: String,
        /// The status of the answer.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// An answer that is longer than allowed.
    #[error("{url}: the answer has more than {limit} bytes")]
    TooLong {
        /// The address that was asked.
        url: String,
        /// The number of bytes that are allowed.
        limit: u64,
    },
    /// An answer of another media type.
    #[error("{url}: the answer has the media type '{found}', expected {OCTETS}")]
    Kind {
        /// The address that was asked.
        url: String,
        /// The media type of the answer.
        found: String,
    },
    /// A block that the codec has no request for.
    #[error(
        "codec {codec} has requests for blocks of Amsterdam, but this is one of {fork}: use --codec json, or none"
    )]
    Fork {
        /// The name of the codec.
        codec: &'static str,
        /// The fork of the block.
        fork: &'static str,
    },
    /// An answer that is not in SSZ.
    #[error("the answer: {0}")]
    Ssz(SszError),
    /// An error of JSON-RPC.
    #[error("{method}: {error}")]
    Rpc {
        /// The method that was called.
        method: &'static str,
        /// The error.
        error: RpcError,
    },
    /// An answer in JSON that is malformed.
    #[error("{method}: {error}")]
    Json {
        /// The method that was called.
        method: &'static str,
        /// The fault.
        error: json::JsonError,
    },
}

impl From<SszError> for NodeError {
    fn from(error: SszError) -> Self {
        Self::Ssz(error)
    }
}

/// A node's answer.
#[derive(Debug)]
pub enum Fetched {
    /// An answer in a codec, as it came.
    Encoded(Codec, Received),
    /// An answer in JSON.
    Json(Said),
}

impl Fetched {
    /// Reports whether the answer came as JSON, whose witnesses have no canonical form.
    pub fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// If it is not one.
    pub fn answer(&self) -> Result<Answer<'_>, SszError> {
        match self {
            Self::Encoded(Codec::Apis773, bytes) => apis773::decode(bytes),
            Self::Encoded(_, bytes) => apis793::decode(bytes),
            Self::Json(said) => Ok(Answer {
                status: said.status,
                latest_valid_hash: said.latest_valid_hash,
                validation_error: said.validation_error.as_deref(),
                witness: said.witness.as_deref().map(ExecutionWitness::decode).transpose()?,
                public_keys: &[],
            }),
        }
    }
}

/// A node of the execution layer.
#[derive(Clone, Debug)]
pub struct Node {
    address: String,
    secret: Option<Secret>,
    client: Client<HttpConnector, Full<Bytes>>,
    limit: u64,
    /// The node that has the methods of `debug_`, if it is not this one.
    debug: Option<Arc<Node>>,
}

/// A node's identity: `ClientVersionV1` of the Engine API.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The code of two letters.
    pub code: String,
    /// The name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The first four bytes of the commit that it was built from.
    pub commit: String,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

impl Node {
    /// Makes a client of the node at an address such as `http://127.0.0.1:8551`. With `http2`, it uses HTTP/2 without TLS (h2c).
    pub fn new(address: &str, secret: Option<Secret>, http2: bool, limit: u64) -> Self {
        let mut connector = HttpConnector::new();
        // Requests are small: without this, each would wait for the acknowledgement of the one before.
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).http2_only(http2);
        // Large answers come in few parts.
        builder.http1_read_buf_exact_size(1 << 17);
        builder.http2_initial_stream_window_size(WINDOW);
        builder.http2_initial_connection_window_size(4 * WINDOW);
        builder.http2_max_frame_size(1 << 18);
        let client = builder.build(connector);
        Self {
            address: address.trim_end_matches('/').to_owned(),
            secret,
            client,
            limit,
            debug: None,
        }
    }

    /// Uses another node for witnesses in JSON: many serve the methods of `debug_` on another port than the Engine API's.
    #[must_use]
    pub fn with_debug(self, node: Self) -> Self {
        Self { debug: Some(Arc::new(node)), ..self }
    }

    /// Returns the largest answer, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Passes a request on and returns the answer as it begins. Only the path of its address matters: it goes to the node.
    ///
    /// # Errors
    /// If the node does not begin to answer within a minute, or the request has no path.
    pub async fn pass(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<hyper::body::Incoming>, NodeError> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let url = self.url(path);
        let failed = |why: String| NodeError::Failed { url: url.clone(), why };
        // A path such as `@host` would turn the node's address into the user name in a URL of another
        // host, and the request would go there.
        if !path.starts_with('/') || request.method() == Method::CONNECT {
            return Err(failed("the request has no path".into()));
        }
        *request.uri_mut() = url.parse().map_err(|error| failed(format!("{error}")))?;
        let answer = tokio::time::timeout(TIME, self.client.request(request)).await;
        let late = |_| failed(format!("no answer within {} s", TIME.as_secs()));
        answer.map_err(late)?.map_err(|error| {
            // The reason is in the source.
            let mut why = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(inner) = source {
                why = format!("{why}: {inner}");
                source = inner.source();
            }
            failed(why)
        })
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        more: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Received, NodeError> {
        let mut head = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind);
        for (name, value) in more {
            head = head.header(*name, *value);
        }
        if let Some(secret) = &self.secret {
            head = head.header(AUTHORIZATION, format!("Bearer {}", secret.token()));
        }
        let url = self.url(path);
        let failed = |why: String| NodeError::Failed { url: url.clone(), why };
        let request =
            head.body(Full::new(body.into())).map_err(|error| failed(error.to_string()))?;
        let asked = async {
            let answer = self.pass(request).await?;
            let status = answer.status();
            if !status.is_success() {
                // Only people read it, so a limit far below that of witnesses will do.
                let bytes = receive(answer.into_body(), None, 1 << 16, &url).await?;
                let body = crate::values::cut(&String::from_utf8_lossy(&bytes), 2_000).to_owned();
                return Err(NodeError::Refused { url: url.clone(), status: status.as_u16(), body });
            }
            let text =
                |name: HeaderName| answer.headers().get(name).and_then(|it| it.to_str().ok());
            let found = text(CONTENT_TYPE).unwrap_or("").to_owned();
            // A proxy in between may answer 200 with a page of its own, which would lead to a puzzling SSZ error.
            if kind_of(path) == OCTETS && found != OCTETS {
                return Err(NodeError::Kind { url: url.clone(), found });
            }
            let length = text(CONTENT_LENGTH).and_then(|length| length.parse().ok());
            receive(answer.into_body(), length, self.limit, &url).await
        };
        // The time limit of `pass` covers only the head of the answer. A node that then sends the
        // body slowly must not keep the caller forever.
        let asked = tokio::time::timeout(TIME, asked).await;
        asked.map_err(|_| failed(format!("no answer within {} s", TIME.as_secs())))?
    }

    /// Sends a block with its witness to an intake service (`POST /v1/witness`). Returns the answer, which is the record.
    ///
    /// # Errors
    /// If it does not answer, or refuses.
    pub async fn push(&self, is_json: bool, body: Vec<u8>) -> Result<Received, NodeError> {
        let kind = if is_json { JSON } else { OCTETS };
        self.ask(Method::POST, "/v1/witness", kind, &[], body).await
    }

    /// Asks an intake service for a page of its records (`GET /v1/witness`). Returns the answer, which is a
    /// [`Page`](crate::store::Page).
    ///
    /// # Errors
    /// If it does not answer, or refuses.
    pub async fn records(
        &self,
        state: Option<RecordState>,
        after: Option<&Place>,
        limit: u16,
    ) -> Result<Received, NodeError> {
        let mut path = format!("/v1/witness?limit={limit}");
        path.extend(state.map(|state| format!("&status={}", state.name())));
        path.extend(after.map(|after| format!("&after={after}")));
        self.ask(Method::GET, &path, JSON, &[], vec![]).await
    }

    /// Asks an intake service for the record of a block (`GET /v1/witness/HASH`). Returns the answer, which is the record.
    ///
    /// # Errors
    /// If it does not answer, or has none.
    pub async fn record(&self, block: &str) -> Result<Received, NodeError> {
        self.ask(Method::GET, &format!("/v1/witness/{block}"), JSON, &[], vec![]).await
    }

    /// Asks an intake service to treat a block as if it had arrived again (`POST /v1/witness/HASH/resubmit`). Returns the answer,
    /// which is the record.
    ///
    /// # Errors
    /// If it does not answer, or has no record of the block.
    pub async fn resubmit(&self, block: &str) -> Result<Received, NodeError> {
        self.ask(Method::POST, &format!("/v1/witness/{block}/resubmit"), JSON, &[], vec![]).await
    }

    /// Calls a method of JSON-RPC, and returns the whole answer.
    ///
    /// # Errors
    /// If the node does not answer.
    pub async fn call(
        &self,
        method: &str,
        parameters: &serde_json::Value,
    ) -> Result<Received, NodeError> {
        let call =
            serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
        self.ask(Method::POST, "/", JSON, &[], call.to_string().into_bytes()).await
    }

    async fn rpc<T: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &serde_json::Value,
    ) -> Result<T, NodeError> {
        let text = self.call(method, parameters).await?;
        json::result(&text).map_err(|error| NodeError::Rpc { method, error })
    }

    /// Returns the node's identity: the first of several behind one address. `None` if it does not report one.
    pub async fn identity(&self) -> Option<Identity> {
        // Only logged, so it does not matter if a node does not report it.
        let asked = self.ask(Method::GET, apis793::IDENTITY, JSON, &[], vec![]).await;
        let found = asked.ok().and_then(|text| serde_json::from_slice::<Vec<Identity>>(&text).ok());
        let found = match found {
            Some(found) if !found.is_empty() => found,
            _ => {
                let version = env!("CARGO_PKG_VERSION");
                let ours = serde_json::json!([
                    {"code": "HK", "name": "hekaton-intake", "version": version, "commit": "00000000"}
                ]);
                self.rpc("engine_getClientVersionV1", &ours).await.ok()?
            }
        };
        found.into_iter().next()
    }

    /// Returns the best codec that the node supports for blocks of a fork.
    pub async fn best_codec(&self, fork: &Fork) -> Codec {
        // The other codecs are specified from Amsterdam on.
        if fork.amsterdam().is_none() {
            return Codec::Json;
        }
        #[derive(serde::Deserialize)]
        struct Capabilities {
            #[serde(default)]
            fork_scoped_endpoints: Vec<String>,
        }
        // A node without this path answers 404. One that does not answer at all fails the request that follows.
        let asked = self.ask(Method::GET, apis793::CAPABILITIES, JSON, &[], vec![]).await;
        let found: Option<Capabilities> =
            asked.ok().and_then(|text| serde_json::from_slice(&text).ok());
        if found
            .is_some_and(|it| it.fork_scoped_endpoints.iter().any(|it| it == "payloads/witness"))
        {
            return Codec::Apis793;
        }
        let ours = serde_json::json!([["engine_newPayloadV5", apis773::CAPABILITY]]);
        let found = self.rpc::<Vec<String>>("engine_exchangeCapabilities", &ours).await;
        match found.is_ok_and(|found| found.iter().any(|it| it == apis773::CAPABILITY)) {
            true => Codec::Apis773,
            false => Codec::Json,
        }
    }

    /// Asks the node to execute a block and to return its witness.
    ///
    /// # Errors
    /// If the node cannot be reached or does not return a witness.
    pub async fn fetch(&self, parameters: &Parameters, codec: Codec) -> Result<Fetched, NodeError> {
        let fork = &parameters.envelope.fork;
        match codec {
            Codec::Apis773 | Codec::Apis793 if fork.amsterdam().is_none() => {
                Err(NodeError::Fork { codec: codec.name(), fork: fork.name() })
            }
            Codec::Apis773 => {
                let body = parameters.encode();
                let answer = self.ask(Method::POST, apis773::PATH, JSON, &[], body).await?;
                Ok(Fetched::Encoded(codec, answer))
            }
            Codec::Apis793 => {
                let body = parameters.envelope.encode();
                let fork = [(apis793::VERSION, apis793::FORK)];
                let answer = self.ask(Method::POST, apis793::PATH, OCTETS, &fork, body).await?;
                Ok(Fetched::Encoded(codec, answer))
            }
            Codec::Json => self.fetch_json(parameters).await,
        }
    }

    async fn fetch_json(&self, parameters: &Parameters) -> Result<Fetched, NodeError> {
        let method = parameters.method();
        let Object::<json::PayloadStatus>(status) = self.rpc(method, &parameters.to_json()).await?;
        let mut said = status.read().map_err(|error| NodeError::Json { method, error })?;
        if said.status == Status::Valid && said.witness.is_none() {
            said.witness = Some(self.witness_json(parameters).await?);
        }
        Ok(Fetched::Json(said))
    }
}

impl Node {
    /// Asks for the witness alone. Nodes differ in the parameters that they take.
    async fn witness_json(&self, parameters: &Parameters) -> Result<Vec<u8>, NodeError> {
        let payload = &parameters.envelope.payload;
        let hash = crate::values::hex(&payload.block_hash);
        let number = crate::values::hex_number(payload.block_number);
        let by_hash = "debug_executionWitnessByBlockHash";
        let method = "debug_executionWitness";
        let node = self.debug.as_deref().unwrap_or(self);
        let mut refused = None;
        for (method, call) in [
            // Canonical: sorted, without the items that the block itself creates.
            (by_hash, serde_json::json!([hash, "canonical"])),
            (by_hash, serde_json::json!([hash])),
            (method, serde_json::json!([hash])),
            (method, serde_json::json!([number])),
        ] {
            let found: json::JsonWitness = match node.rpc(method, &call).await {
                Ok(Object(found)) => found,
                // The node does not know the method, or not with these parameters.
                Err(
                    error @ NodeError::Rpc {
                        error: RpcError { code: -32_601 | -32_602, .. }, ..
                    },
                ) => {
                    refused = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            return found.encode().map_err(|error| NodeError::Json { method, error });
        }
        let none =
            || NodeError::Failed { url: node.url("/"), why: format!("the node has no {method}") };
        Err(refused.unwrap_or_else(none))
    }
}

fn kind_of(path: &str) -> &'static str {
    match path {
        apis773::PATH | apis793::PATH => OCTETS,
        _ => JSON,
    }
}

/// Receives a body of at most `limit` bytes. An announced length counts only up to that.
async fn receive(
    mut body: hyper::body::Incoming,
    announced: Option<u64>,
    limit: u64,
    url: &str,
) -> Result<Received, NodeError> {
    let too_long = || NodeError::TooLong { url: url.to_owned(), limit };
    if announced.is_some_and(|length| length > limit) {
        return Err(too_long());
    }
    let mut bytes = Received::with_room(usize::try_from(announced.unwrap_or(0)).unwrap_or(0));
    while let Some(frame) = body.frame().await {
        let failed =
            |error: hyper::Error| NodeError::Failed { url: url.to_owned(), why: error.to_string() };
        if let Ok(data) = frame.map_err(failed)?.into_data() {
            if (bytes.len() + data.len()) as u64 > limit {
                return Err(too_long());
            }
            bytes.push(&data);
        }
    }
    Ok(bytes)
}
