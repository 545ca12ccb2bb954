//! Requests to a service.

use crate::body::{
    ContinuationBody, EpochBody, EpochsBody, HealthBody, HistoryBody, KeyBody, ProofBody,
    ProofRange, ProofsBody, RecordsBody, UpdateBody, UpdateStatus,
};
use crate::parameters::ParametersFile;
use hekaton_service::Problem;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

/// The largest answer that is read: lists and proofs have a megabyte or two.
const MAX_ANSWER: u64 = 8 << 20;

/// The largest history that is read, which may have many values.
const MAX_HISTORY: u64 = 256 << 20;

/// The longest time for a request: more than the service waits for the outcome of an update.
const MAX_TIME: Duration = Duration::from_secs(120);

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is not one of a service.
    #[error("'{0}' is no address of a directory: expected http://HOST:PORT")]
    Address(String),
    /// The service cannot be reached, or the connection failed.
    #[error("{url}: {why}")]
    Connection {
        /// The URL that was requested.
        url: String,
        /// The reason.
        why: String,
    },
    /// The answer is not one of a directory.
    #[error("{url}: the answer, with status {status}, is none of a directory: {why}")]
    Answer {
        /// The URL that was requested.
        url: String,
        /// The status of the answer.
        status: u16,
        /// The reason.
        why: String,
    },
    /// The service says what was wrong.
    #[error("{url}: {problem}")]
    Problem {
        /// The URL that was requested.
        url: String,
        /// The problem that the service reports.
        problem: Box<Problem>,
    },
}

/// Requests to the service of a directory. Nothing that it answers is verified here.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    address: String,
    token: Option<String>,
}

impl std::fmt::Debug for Client {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// Requests to a service at an address, `http://HOST:PORT`, with or without a path behind it.
    ///
    /// # Errors
    /// If that is not an address.
    pub fn new(address: &str) -> Result<Self, ClientError> {
        let is_one = address.strip_prefix("http://").is_some_and(|rest| !rest.is_empty());
        // Paths are appended to the address, so it cannot have a query or a fragment.
        if !is_one || address.contains(['?', '#', ' ']) {
            return Err(ClientError::Address(address.into()));
        }
        let config = Agent::config_builder()
            // The body of an error says what was wrong, and the library would drop it.
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_global(Some(MAX_TIME))
            .build();
        let address = address.trim_end_matches('/').into();
        Ok(Self { agent: config.into(), address, token: None })
    }

    /// Sends updates with a token, for a service that takes them from some clients only.
    #[must_use]
    pub fn with_token(self, token: String) -> Self {
        Self { token: Some(token), ..self }
    }

    /// The address.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.get_at_most(path, MAX_ANSWER)
    }

    fn get_at_most<T: DeserializeOwned>(&self, path: &str, most: u64) -> Result<T, ClientError> {
        let url = format!("{}{path}", self.address);
        let answer = self.agent.get(&url).call();
        read(url, answer, most)
    }

    /// Sends an update; with `wait`, until it is visible or refused.
    ///
    /// # Errors
    /// If it is not accepted, or refused, or there is no answer: then it may be accepted.
    pub fn submit(&self, update: &UpdateBody, wait: bool) -> Result<UpdateStatus, ClientError> {
        let url = format!("{}/v1/updates?wait={wait}", self.address);
        // An update has texts and numbers, which are always JSON.
        let body = serde_json::to_vec(update)
            .expect("updates have string keys and no floats that JSON lacks");
        let mut request = self.agent.post(&url).header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = request.send(&body[..]);
        read(url, answer, MAX_ANSWER)
    }

    /// Returns the status of an update.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn update(&self, number: u64) -> Result<UpdateStatus, ClientError> {
        self.get(&format!("/v1/updates/{number}"))
    }

    /// Returns the value of a label after an epoch, or now, with its proof.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn key(&self, label: &str, epoch: Option<u32>) -> Result<KeyBody, ClientError> {
        self.get(&format!("/v1/keys/{}{}", escaped(label), at(epoch)))
    }

    /// All that a label has had.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn history(&self, label: &str, epoch: Option<u32>) -> Result<HistoryBody, ClientError> {
        let path = format!("/v1/keys/{}/history{}", escaped(label), at(epoch));
        self.get_at_most(&path, MAX_HISTORY)
    }

    /// Returns the health of the service.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn health(&self) -> Result<HealthBody, ClientError> {
        self.get("/healthz")
    }

    /// All epochs.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn epochs(&self) -> Result<EpochsBody, ClientError> {
        self.get("/v1/epochs")
    }

    /// An epoch.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn epoch(&self, epoch: u32) -> Result<EpochBody, ClientError> {
        self.get(&format!("/v1/epochs/{epoch}"))
    }

    /// Signed records from one epoch to another one; there may be fewer, and then more have to be asked for.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn records(&self, from: u32, to: u32) -> Result<RecordsBody, ClientError> {
        self.get(&format!("/v1/records?from={from}&to={to}"))
    }

    /// The proof that the record of an epoch continues the history of an earlier one.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn continuation(&self, from: u32, to: u32) -> Result<ContinuationBody, ClientError> {
        self.get(&format!("/v1/continuation?from={from}&to={to}"))
    }

    /// Lists attached proofs in order, starting with the one that covers an epoch. A long list comes in parts.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn proofs(&self, from: u32) -> Result<ProofsBody, ClientError> {
        self.get(&format!("/v1/proofs?from={from}"))
    }

    /// The proof of these epochs.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn proof(&self, ProofRange { from, to }: ProofRange) -> Result<ProofBody, ClientError> {
        self.get(&format!("/v1/proofs/{from}-{to}"))
    }

    /// The parameters that the service says it has, to compare with those that the client holds.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn parameters(&self) -> Result<ParametersFile, ClientError> {
        self.get("/v1/parameters")
    }
}

fn escaped(label: &str) -> impl std::fmt::Display {
    // A label may contain a slash or a question mark, which would turn it into another path.
    utf8_percent_encode(label, NON_ALPHANUMERIC)
}

fn at(epoch: Option<u32>) -> String {
    epoch.map(|epoch| format!("?epoch={epoch}")).unwrap_or_default()
}

fn read<T: DeserializeOwned>(
    url: String,
    answer: Result<Response<Body>, ureq::Error>,
    most: u64,
) -> Result<T, ClientError> {
    let failed =
        |url: String, why: ureq::Error| ClientError::Connection { url, why: why.to_string() };
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(why) => return Err(failed(url, why)),
    };
    let status = answer.status();
    // Limited, because nothing of an answer is verified before all of it is in memory.
    let bytes = match answer.body_mut().with_config().limit(most).read_to_vec() {
        Ok(bytes) => bytes,
        Err(why) => return Err(failed(url, why)),
    };
    let other = |url, why: serde_json::Error| {
        let why = why.to_string();
        ClientError::Answer { url, status: status.as_u16(), why }
    };
    if status.is_success() {
        return serde_json::from_slice(&bytes).map_err(|why| other(url, why));
    }
    match serde_json::from_slice::<Problem>(&bytes) {
        Ok(problem) => Err(ClientError::Problem { url, problem: Box::new(problem) }),
        Err(why) => Err(other(url, why)),
    }
}
