//! Requests to a service.

use crate::body::{
    BlobBody, ChainBody, ChainState, DeadBody, HealthBody, JobBody, JobStatus, JobView, JobsBody,
    ProofsBody, ReorgBody, RevertBody, WorkflowBody,
};
use crate::id::Digest;
use hekaton_files::NewFile;
use hekaton_service::Problem;
use hekaton_service::program::{Failure, exit, failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// The time that an answer may take. For a request that waits for a job, the wait is added.
const TIME: Duration = Duration::from_secs(60);

/// The time that a blob may take. The service's connections live five minutes.
const TRANSFER: Duration = Duration::from_secs(280);

/// The largest answer that is not a blob, in bytes.
// A service that is wrong or hostile must not fill the memory of its client.
const MAX_ANSWER: u64 = 16 << 20;

/// Sends requests to a service.
#[derive(Clone, Debug)]
pub struct Client {
    address: String,
    token: Option<String>,
    /// The `traceparent` of all requests.
    trace: Option<String>,
    agent: ureq::Agent,
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service refuses it.
    #[error("{url}: {problem}")]
    Problem {
        /// The address of the request.
        url: String,
        /// The reason for the refusal.
        problem: Box<Problem>,
    },
    /// There is no answer, or one that cannot be understood.
    #[error("{url}: {why}")]
    Failed {
        /// The address of the request.
        url: String,
        /// The reason.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The service sent a blob with a different digest.
    #[error("the service sent a different blob: expected digest {wanted}, found {found}")]
    OtherBlob {
        /// The digest that was asked for.
        wanted: Digest,
        /// The digest of the blob that came.
        found: Digest,
    },
}

impl ClientError {
    /// Reports whether the same request may succeed later.
    pub fn may_be_repeated(&self) -> bool {
        match self {
            // The service names a time only where the same request may succeed later, as with a
            // full queue.
            Self::Problem { problem, .. } => problem.retry_after.is_some(),
            // Repeating a request that took effect without an answer is harmless: jobs and blobs
            // are identified by their content.
            Self::Failed { .. } => true,
            Self::File { .. } | Self::OtherBlob { .. } => false,
        }
    }
}

/// The failure of a program that cannot continue without the result.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match error {
            ClientError::File { .. } => exit::BAD_FILE,
            _ => exit::FAILED,
        };
        failure(code, error)
    }
}

impl Client {
    /// Makes a client of the service at an address, such as `http://127.0.0.1:8642`.
    pub fn new(address: &str, token: Option<String>) -> Self {
        // The body of a refusal gives the reason. It would be lost if the library turned the status into an error.
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let name = address.trim_end_matches('/');
        let address = match name.contains("://") {
            true => name.to_owned(),
            false => format!("http://{name}"),
        };
        Self { address, token, trace: None, agent: config.into() }
    }

    /// Returns a copy of this client whose requests belong to a trace: jobs that it submits have this `traceparent` (W3C Trace Context).
    /// The service ignores an invalid `trace`.
    #[must_use]
    pub fn traced(&self, trace: &str) -> Self {
        Self { trace: Some(trace.to_owned()), ..self.clone() }
    }

    /// Returns the value of the header `Authorization`, which identifies the tenant.
    fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: impl ureq::AsSendBody,
        time: Duration,
    ) -> Result<T, ClientError> {
        let url = format!("{}{path}", self.address);
        let failed = |why: String| ClientError::Failed { url: url.clone(), why };
        let mut head = ureq::http::Request::builder().method(method).uri(&url);
        if let Some(value) = self.authorization() {
            head = head.header("authorization", value);
        }
        if let Some(trace) = &self.trace {
            head = head.header("traceparent", trace);
        }
        let request = head
            .header("content-type", kind)
            .body(body)
            .map_err(|error| failed(error.to_string()))?;
        let timed = self.agent.configure_request(request).timeout_global(Some(time)).build();
        let answered = self.agent.run(timed);
        let mut answer = answered.map_err(|error| failed(error.to_string()))?;
        let status = answer.status();
        let read = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        let bytes = read.map_err(|error| failed(error.to_string()))?;
        match status.is_success() {
            true => {
                // An empty body is the JSON of `()`.
                let bytes = if bytes.is_empty() { &b"null"[..] } else { &bytes };
                serde_json::from_slice(bytes).map_err(|error| failed(error.to_string()))
            }
            false => match serde_json::from_slice::<Problem>(&bytes) {
                Ok(problem) => Err(ClientError::Problem { url, problem: Box::new(problem) }),
                Err(_) => Err(failed(format!("status {status}"))),
            },
        }
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call("GET", path, "text/plain", (), TIME)
    }

    /// Sends a request without a body: its path says everything.
    fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call("POST", path, "text/plain", (), TIME)
    }

    fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body)
            .expect("bodies have string keys and no floats that JSON lacks");
        self.call(method, path, "application/json", &body[..], TIME)
    }

    /// Stores a file as a blob.
    ///
    /// # Errors
    /// If it cannot be read or sent.
    pub fn put_file(&self, path: &Path) -> Result<Digest, ClientError> {
        let file = |error| ClientError::File { path: path.display().to_string(), error };
        let mut hasher = blake3::Hasher::new();
        let opened = std::fs::File::open(path).map_err(file)?;
        hasher.update_reader(&opened).map_err(file)?;
        let digest = Digest::from(hasher.finalize());
        // Read twice: the digest is in the path of the request, so it must be known before the first byte is sent. If the file
        // changes in between, the service refuses it.
        let opened = std::fs::File::open(path).map_err(file)?;
        let body = ureq::SendBody::from_owned_reader(opened);
        let kind = "application/octet-stream";
        self.call::<BlobBody>("PUT", &format!("/v1/blobs/{digest}"), kind, body, TRANSFER)?;
        Ok(digest)
    }

    /// Reports whether the service has a blob.
    ///
    /// # Errors
    /// If the service does not answer, or answers with an unexpected status.
    pub fn has_blob(&self, digest: &Digest) -> Result<bool, ClientError> {
        let url = format!("{}/v1/blobs/{digest}", self.address);
        let mut request = self.agent.head(&url).config().timeout_global(Some(TIME)).build();
        if let Some(value) = self.authorization() {
            request = request.header("authorization", value);
        }
        match request.call().map(|answer| answer.status().as_u16()) {
            Ok(200) => Ok(true),
            Ok(404) => Ok(false),
            Ok(status) => Err(ClientError::Failed { url, why: format!("status {status}") }),
            Err(error) => Err(ClientError::Failed { url, why: error.to_string() }),
        }
    }

    /// Reads a blob into a file, which is replaced atomically.
    ///
    /// # Errors
    /// If the blob does not exist or has a different digest, or the file cannot be written.
    pub fn get_blob(&self, digest: &Digest, path: &Path) -> Result<(), ClientError> {
        let url = format!("{}/v1/blobs/{digest}", self.address);
        let failed = |why: String| ClientError::Failed { url: url.clone(), why };
        let file = |error| ClientError::File { path: path.display().to_string(), error };
        let mut request = self.agent.get(&url).config().timeout_global(Some(TRANSFER)).build();
        if let Some(value) = self.authorization() {
            request = request.header("authorization", value);
        }
        let mut answer = request.call().map_err(|error| failed(error.to_string()))?;
        if !answer.status().is_success() {
            let bytes = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
            let problem =
                bytes.ok().and_then(|bytes| serde_json::from_slice::<Problem>(&bytes).ok());
            return Err(match problem {
                Some(problem) => ClientError::Problem { url, problem: Box::new(problem) },
                None => failed(format!("status {}", answer.status())),
            });
        }
        let mut new = NewFile::beside(path).map_err(file)?;
        // The blob is written to disk instead of memory, and its digest is checked before the file gets its name.
        let mut body = answer.body_mut().with_config().limit(u64::MAX).reader();
        let copied = std::io::copy(&mut body, &mut new);
        copied.map_err(|error| failed(error.to_string()))?;
        // Hashes the file instead of the bytes as they arrive, to find disk errors, too.
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(new.path()).map_err(file)?).map_err(file)?;
        let found = Digest::from(hasher.finalize());
        match found == *digest {
            true => new.replace(path).map_err(file),
            false => Err(ClientError::OtherBlob { wanted: *digest, found }),
        }
    }

    /// Submits a job.
    ///
    /// # Errors
    /// If it is refused. A request that may be repeated takes effect only once.
    pub fn submit(&self, job: &JobBody) -> Result<JobStatus, ClientError> {
        self.send("POST", "/v1/jobs", job)
    }

    /// Reads a job after waiting for its end, for up to `wait` seconds.
    ///
    /// # Errors
    /// If there is none.
    pub fn job(&self, job: &str, wait: u32) -> Result<JobStatus, ClientError> {
        let time = TIME + Duration::from_secs(wait.into());
        self.call("GET", &format!("/v1/jobs/{job}?wait={wait}"), "text/plain", (), time)
    }

    /// Reads a job with its tasks after waiting for its end, for up to `wait` seconds.
    ///
    /// # Errors
    /// If there is none.
    pub fn view(&self, job: &str, wait: u32) -> Result<JobView, ClientError> {
        let time = TIME + Duration::from_secs(wait.into());
        self.call("GET", &format!("/v1/jobs/{job}?wait={wait}"), "text/plain", (), time)
    }

    /// Returns the open jobs, and the last ones that have ended.
    ///
    /// # Errors
    /// If the service does not answer.
    pub fn jobs(&self) -> Result<JobsBody, ClientError> {
        self.get("/v1/jobs")
    }

    /// Cancels a job.
    ///
    /// # Errors
    /// If it is published or skipped.
    pub fn cancel(&self, job: &str) -> Result<JobStatus, ClientError> {
        self.call("DELETE", &format!("/v1/jobs/{job}"), "text/plain", (), TIME)
    }

    /// Makes a dead or cancelled job live again.
    ///
    /// # Errors
    /// If it is done or skipped.
    pub fn requeue(&self, job: &str) -> Result<JobStatus, ClientError> {
        self.post(&format!("/v1/jobs/{job}/requeue"))
    }

    /// Makes a chain continue without its next block, which is dead.
    ///
    /// # Errors
    /// If the job is not the next block of its chain, or is not dead.
    pub fn skip(&self, job: &str) -> Result<(), ClientError> {
        self.post(&format!("/v1/jobs/{job}/skip"))
    }

    /// Checks a workflow and stores it.
    ///
    /// # Errors
    /// If it is invalid, with the reason.
    pub fn workflow(&self, text: &str) -> Result<WorkflowBody, ClientError> {
        self.call("POST", "/v1/workflows", "application/toml", text.as_bytes(), TIME)
    }

    /// Makes a chain.
    ///
    /// # Errors
    /// If a different chain with this name exists.
    pub fn make_chain(&self, chain: &str, body: &ChainBody) -> Result<ChainState, ClientError> {
        self.send("PUT", &format!("/v1/chains/{chain}"), body)
    }

    /// Reads a chain.
    ///
    /// # Errors
    /// If there is none.
    pub fn chain(&self, chain: &str) -> Result<ChainState, ClientError> {
        self.get(&format!("/v1/chains/{chain}"))
    }

    /// Returns all dead jobs of a chain, by height.
    ///
    /// # Errors
    /// If there is no such chain.
    pub fn dead(&self, chain: &str) -> Result<Vec<JobStatus>, ClientError> {
        let mut all: Vec<JobStatus> = Vec::new();
        loop {
            let after = all
                .last()
                .map_or(String::new(), |last| format!("?block={}&id={}", last.block, last.id));
            let DeadBody { jobs } = self.get(&format!("/v1/chains/{chain}/dead{after}"))?;
            if jobs.is_empty() {
                return Ok(all);
            }
            all.extend(jobs);
        }
    }

    /// Returns what a chain has published after a revision.
    ///
    /// # Errors
    /// If there is no such chain.
    pub fn proofs(&self, chain: &str, from: u64) -> Result<ProofsBody, ClientError> {
        self.get(&format!("/v1/chains/{chain}/proofs?from={from}"))
    }

    /// Removes the blocks after a given block from a chain.
    ///
    /// # Errors
    /// If the block is neither one that the chain has published nor one that waits behind these.
    pub fn revert(&self, chain: &str, body: &RevertBody) -> Result<ChainState, ClientError> {
        self.send("POST", &format!("/v1/chains/{chain}/revert"), body)
    }

    /// Removes the blocks after a given block from a chain, unless the block that is to follow already does.
    ///
    /// # Errors
    /// If the block is neither one that the chain has published nor one that waits behind these.
    pub fn reorg(&self, chain: &str, body: &ReorgBody) -> Result<ChainState, ClientError> {
        self.send("POST", &format!("/v1/chains/{chain}/revert"), body)
    }

    /// Makes the process claim no more tasks.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn drain(&self) -> Result<(), ClientError> {
        self.post("/v1/drain")
    }

    /// Returns the state of the service.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn health(&self) -> Result<HealthBody, ClientError> {
        self.get("/healthz")
    }
}
