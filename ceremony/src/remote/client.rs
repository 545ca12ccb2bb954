//! Requests to a service. Its answers are not trusted: their sizes are bounded here, and callers check their content.

use crate::body::{PIECE, SlotBody, SlotRequest, StatusBody, UploadedBody};
use hekaton_service::Problem;
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output::{self, one_line};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// The largest answer that is not a file.
const MOST_ANSWER: u64 = 1 << 20;
/// The longest time for a short answer.
const SILENCE: Duration = Duration::from_secs(60);
/// The longest time without an answer: services are restarted, and contributors go offline.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const SECOND: Duration = Duration::from_secs(1);
/// The longest time between two attempts.
const PAUSE: Duration = Duration::from_secs(30);

/// The longest text of a service that is shown.
const MOST_TEXT: usize = 400;

/// Cuts a text from a service to one short line, so that it cannot look like output of this program.
pub(crate) fn foreign(text: &str) -> String {
    let cut: String = text.chars().take(MOST_TEXT).collect();
    one_line(&cut).into_owned()
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// The service refuses.
    #[error("{}", foreign(&.0.to_string()))]
    Problem(Problem),
    /// The service does not answer, or the answer is not from a ceremony service: another attempt may help.
    #[error("{0}")]
    Away(String),
    /// A failure with a file on this machine.
    #[error("{0}")]
    File(String),
}

impl From<NoAnswer> for Failure {
    fn from(why: NoAnswer) -> Self {
        let code = match &why {
            NoAnswer::Problem(problem) if problem.status == 403 => exit::REFUSED,
            _ => exit::FAILED,
        };
        Self::new(code, why)
    }
}

impl NoAnswer {
    /// Reports whether the same request may succeed later.
    fn may_pass(&self) -> bool {
        match self {
            Self::Problem(problem) => matches!(problem.status, 408 | 429 | 500..),
            Self::Away(_) => true,
            Self::File(_) => false,
        }
    }

    /// Reports whether there was no answer.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self, Self::Away(_))
    }

    /// Reports whether the service has answered with a status.
    pub(crate) fn is(&self, status: u16) -> bool {
        matches!(self, Self::Problem(problem) if problem.status == status)
    }
}

/// A service.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: Agent,
    address: String,
}

impl Client {
    /// The service at an address.
    pub(crate) fn new(address: &str) -> Result<Self, Failure> {
        let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
        let is_one = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        // Paths are appended to it.
        if !is_one || address.contains(['?', '#', ' ', '@']) {
            let why =
                format!("'{address}' is not an address: expected http://HOST:PORT or https://HOST");
            return Err(Failure::new(exit::USAGE, why));
        }
        let config = Agent::config_builder()
            // The body of an error says what was wrong, and the library would drop it.
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .build();
        Ok(Self { agent: config.into(), address: address.trim_end_matches('/').to_owned() })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Repeats a request until it is answered or refused. Each request can be sent again: the service does it once.
    pub(crate) fn patiently<T>(
        &self,
        mut request: impl FnMut(&Self) -> Result<T, NoAnswer>,
    ) -> Result<T, NoAnswer> {
        let (start, mut pause) = (Instant::now(), SECOND);
        loop {
            match request(self) {
                Err(why) if why.may_pass() && start.elapsed() < PATIENCE => {
                    let asked = match &why {
                        NoAnswer::Problem(problem) => problem.wait(),
                        _ => None,
                    };
                    let wait = asked.unwrap_or(pause).clamp(SECOND, PAUSE);
                    output::say(format_args!("{why}; trying again in {} s", wait.as_secs()));
                    std::thread::sleep(wait);
                    pause = (2 * pause).min(PAUSE);
                }
                other => return other,
            }
        }
    }

    /// An error that names the service, and not the path, which may have a token.
    fn away(&self, why: &dyn std::fmt::Display) -> NoAnswer {
        NoAnswer::Away(format!("{}: {}", self.address, foreign(&why.to_string())))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, NoAnswer> {
        let url = self.url(path);
        let answer = self.agent.get(&url).config().timeout_global(Some(SILENCE)).build().call();
        self.read(answer)
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, NoAnswer> {
        let url = self.url(path);
        let body = serde_json::to_vec(body).expect("bodies have texts and numbers");
        let request = self.agent.post(&url).config().timeout_global(Some(SILENCE)).build();
        self.read(request.header("content-type", "application/json").send(&body[..]))
    }

    pub(crate) fn status(&self) -> Result<StatusBody, NoAnswer> {
        self.get("/v1/status")
    }

    pub(crate) fn join(&self, request: &SlotRequest) -> Result<SlotBody, NoAnswer> {
        self.post("/v1/slots", request)
    }

    pub(crate) fn slot(&self, token: &str) -> Result<SlotBody, NoAnswer> {
        self.get(&format!("/v1/uploads/{token}"))
    }

    /// Uploads a piece that belongs at an offset.
    pub(crate) fn piece(&self, token: &str, at: u64, piece: &[u8]) -> Result<SlotBody, NoAnswer> {
        let url = self.url(&format!("/v1/uploads/{token}?at={at}"));
        let limit = Some(time_of(piece.len()));
        let request = self.agent.put(&url).config().timeout_global(limit).build();
        self.read(request.header("content-type", "application/octet-stream").send(piece))
    }

    /// Gives up a slot, so that others do not wait for it.
    pub(crate) fn leave(&self, token: &str) -> Result<SlotBody, NoAnswer> {
        let url = self.url(&format!("/v1/uploads/{token}"));
        self.read(self.agent.delete(&url).config().timeout_global(Some(SILENCE)).build().call())
    }

    pub(crate) fn complete(&self, token: &str, blake3: String) -> Result<SlotBody, NoAnswer> {
        self.post(&format!("/v1/uploads/{token}"), &UploadedBody { blake3 })
    }

    /// Downloads the rest of a file of the service, which has at most `most` bytes, and appends it to a local file. `came` is called with
    /// the number of bytes received so far.
    pub(crate) fn download(
        &self,
        name: &str,
        to: &Path,
        most: u64,
        came: &mut dyn FnMut(u64),
    ) -> Result<(), NoAnswer> {
        let broken = |e: std::io::Error| NoAnswer::File(format!("{}: {e}", to.display()));
        let mut file = File::options().create(true).append(true).open(to).map_err(broken)?;
        let mut length = file.metadata().map_err(broken)?.len();
        loop {
            let piece = self.patiently(|client| client.part_of_file(name, length))?;
            length += piece.len() as u64;
            if length > most {
                drop(file);
                std::fs::remove_file(to).map_err(broken)?;
                let why = format!("{name} has more than {most} bytes, the limit in this ceremony");
                return Err(NoAnswer::File(why));
            }
            file.write_all(&piece).map_err(broken)?;
            came(length);
            if piece.len() < PIECE {
                return file.sync_all().map_err(broken);
            }
        }
    }

    /// A piece of a file from an offset on: shorter than [`PIECE`] at its end, and empty behind it.
    fn part_of_file(&self, name: &str, at: u64) -> Result<Vec<u8>, NoAnswer> {
        let url = self.url(&format!("/v1/files/{name}"));
        let away = |why: &dyn std::fmt::Display| self.away(why);
        let range = format!("bytes={at}-{}", at + PIECE as u64 - 1);
        let request = self.agent.get(&url).header("range", range);
        let mut answer = request
            .config()
            .timeout_global(Some(time_of(PIECE)))
            .build()
            .call()
            .map_err(|e| away(&e))?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => {
                let body = answer.body_mut().with_config().limit(PIECE as u64);
                body.read_to_vec().map_err(|e| away(&e))
            }
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Vec::new()),
            status if status.is_success() => {
                Err(away(&"the server does not support range requests"))
            }
            _ => match self.read::<()>(Ok(answer)) {
                Err(refused) => Err(refused),
                Ok(()) => Err(away(&"not an answer from a ceremony service")),
            },
        }
    }

    /// Reads an answer, or the problem that the service reports.
    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<T, NoAnswer> {
        let away = |why: &dyn std::fmt::Display| self.away(why);
        let mut answer = answer.map_err(|e| away(&e))?;
        let status = answer.status();
        let bytes = answer.body_mut().with_config().limit(MOST_ANSWER).read_to_vec();
        let bytes = bytes.map_err(|e| away(&e))?;
        if status.is_success() {
            return serde_json::from_slice(&bytes)
                .map_err(|e| away(&format!("not an answer from a ceremony service: {e}")));
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => Err(NoAnswer::Problem(problem)),
            Err(_) => Err(away(&format!("status {status}, not an answer from a ceremony service"))),
        }
    }
}

/// The longest time for the transfer of this many bytes: that of the slowest connection that a service tolerates.
fn time_of(bytes: usize) -> Duration {
    SILENCE + Duration::from_secs(bytes as u64 >> 14)
}
