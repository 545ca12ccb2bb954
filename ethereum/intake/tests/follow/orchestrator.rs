//! A stand-in for an orchestrator: one chain with strict order in memory, with the same rules, and with faults on demand.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// The way in which requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Requests do not fail.
    None,
    /// Nothing is done, and there is no answer.
    Away,
    /// One of the next requests is carried out without an answer, and later ones fail.
    After(usize),
}

#[derive(Clone, Debug)]
struct Job {
    block: u64,
    id: String,
    parent: String,
    input: String,
    state: &'static str,
}

impl Job {
    fn handle(&self) -> String {
        format!("blocks.{}.{}{}", self.parent, self.id, self.input)
    }

    fn status(&self) -> Value {
        json!({
            "job": self.handle(), "chain": "blocks", "block": self.block, "id": self.id, "state": self.state, "generation": 0,
            "accepted": 0, "tasks": {}, "running": [],
        })
    }
}

/// An entry of the log: `block` or `revert`.
type Entry = (&'static str, String, u64);

#[derive(Debug)]
pub(crate) struct Chain {
    genesis: Option<String>,
    blobs: HashSet<String>,
    /// Jobs by the names of their parents.
    jobs: BTreeMap<String, Job>,
    log: Vec<Entry>,
    pub(crate) fault: Fault,
    pub(crate) reverts: usize,
}

type Answer = Result<Value, (u16, String)>;

impl Chain {
    fn new() -> Self {
        let (genesis, blobs, jobs, log) = Default::default();
        Self { genesis, blobs, jobs, log, fault: Fault::None, reverts: 0 }
    }

    /// Returns the genesis, which has height 0 here, and the blocks that are published after it.
    pub(crate) fn path(&self) -> Vec<(String, u64)> {
        let mut path = vec![(self.genesis.clone().unwrap_or_default(), 0)];
        for (entry, id, block) in &self.log {
            match *entry {
                "revert" => {
                    let keep = path.iter().position(|(known, _)| known == id).unwrap();
                    path.truncate(keep + 1);
                }
                _ => path.push((id.clone(), *block)),
            }
        }
        path
    }

    /// Finishes a live job. Returns `false` if there is none.
    pub(crate) fn prove(&mut self, at: usize) -> bool {
        let mut live: Vec<&mut Job> =
            self.jobs.values_mut().filter(|job| job.state == "live").collect();
        let count = live.len().max(1);
        let Some(job) = live.get_mut(at % count) else { return false };
        job.state = "done";
        true
    }

    /// Publishes the next block, if it is done.
    pub(crate) fn publish(&mut self) -> bool {
        let (tail, _) = self.path().pop().unwrap();
        let Some(job) = self.jobs.get(&tail).filter(|job| job.state == "done") else {
            return false;
        };
        self.log.push(("block", job.id.clone(), job.block));
        true
    }

    /// Makes the chain, which has published blocks of other clients, the first one of this name.
    pub(crate) fn publish_all(&mut self, first: &str, heights: std::ops::Range<u64>) {
        self.genesis = Some("0".repeat(64));
        let begin = heights.start;
        for height in heights {
            let id = if height == begin { first.to_owned() } else { format!("{height:064x}") };
            self.log.push(("block", id, height));
        }
    }

    /// Returns the jobs that are neither cancelled nor published.
    pub(crate) fn open(&self) -> Vec<String> {
        let path = self.path();
        let open = self
            .jobs
            .values()
            .filter(|job| job.state != "cancelled" && !path.iter().any(|(id, _)| *id == job.id));
        open.map(|job| job.id.clone()).collect()
    }

    /// Cancels a job that is not published, as an operator may.
    pub(crate) fn cancel(&mut self, at: usize) {
        let open = self.open();
        if let Some(id) = open.get(at % open.len().max(1))
            && let Some(job) = self.jobs.values_mut().find(|job| job.id == *id)
        {
            job.state = "cancelled";
        }
    }

    /// Cancels the descendants of a block.
    fn tear(&mut self, from: &str) {
        let mut slots = vec![from.to_owned()];
        while let Some(slot) = slots.pop() {
            if let Some(job) = self.jobs.get_mut(&slot) {
                job.state = "cancelled";
                slots.push(job.id.clone());
            }
        }
    }

    /// Tears the chain off after a block.
    pub(crate) fn revert(&mut self, to: &str, block: u64, next: Option<&str>) -> Answer {
        let path = self.path();
        let place = path.iter().position(|(id, _)| id == to);
        let known = self.jobs.values().any(|job| job.id == to && job.state != "cancelled");
        match place {
            Some(at) if path[at].1 == block => {}
            None if known && path.last().is_none_or(|(_, height)| *height < block) => {}
            _ => return Err((400, "not a block of the chain".into())),
        }
        let follows = self.jobs.get(to).filter(|job| job.state != "cancelled");
        if next.is_some() && follows.map(|job| job.id.as_str()) == next {
            return Ok(self.state());
        }
        self.reverts += 1;
        self.tear(to);
        let (tail, height) = match place {
            Some(at) => path[at].clone(),
            None => path.last().cloned().unwrap(),
        };
        self.log.push(("revert", tail, height));
        Ok(self.state())
    }

    fn state(&self) -> Value {
        let (tail, height) = self.path().pop().unwrap();
        let (mut tip, mut tip_height) = (tail.clone(), height);
        while let Some(job) = self.jobs.get(&tip).filter(|job| job.state != "cancelled") {
            (tip, tip_height) = (job.id.clone(), job.block);
        }
        json!({
            "chain": "blocks", "order": "strict", "genesis": self.genesis, "tail": tail, "height": height, "tip": tip,
            "tip_height": tip_height,
        })
    }

    fn submit(&mut self, body: &Value) -> Answer {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let input = body["inputs"]["input"][0].as_str().unwrap_or_default().to_owned();
        if !self.blobs.contains(&input) {
            return Err((422, "there is no such blob".into()));
        }
        let block = body["block"].as_u64().unwrap();
        let job = Job { block, id: text("id"), parent: text("parent"), input, state: "live" };
        if Some(&job.id) == self.genesis.as_ref() {
            return Err((400, "the genesis".into()));
        }
        match self.jobs.get(&job.parent) {
            Some(known) if known.state == "cancelled" => {}
            Some(known) if known.handle() == job.handle() => return Ok(known.status()),
            Some(known) => return Err((409, format!("{} is in its place", known.id))),
            None => {}
        }
        let status = job.status();
        self.jobs.insert(job.parent.clone(), job);
        Ok(status)
    }

    fn answer(&mut self, method: &Method, path: &str, query: &str, body: &[u8]) -> Answer {
        let none = || Err((404, format!("there is no {path}")));
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let parts: Vec<&str> = path.split('/').skip(2).collect();
        match (method.as_str(), &parts[..]) {
            ("HEAD", ["blobs", blob]) if self.blobs.contains(*blob) => Ok(json!(null)),
            ("PUT", ["blobs", blob]) => {
                self.blobs.insert((*blob).to_owned());
                Ok(json!({ "blob": blob, "bytes": 0 }))
            }
            ("PUT", ["chains", _]) => {
                self.genesis = body["genesis"].as_str().map(str::to_owned);
                Ok(self.state())
            }
            (_, ["chains", ..]) if self.genesis.is_none() => none(),
            ("GET", ["chains", _]) => Ok(self.state()),
            ("GET", ["chains", _, "proofs"]) => {
                let from: usize = query.trim_start_matches("from=").parse().unwrap();
                let entries = (1..).zip(&self.log).skip(from).take(if self.log.len() > 500 {
                    500
                } else {
                    3
                });
                let proofs: Vec<Value> = entries
                    .map(|(rev, (entry, id, block))| {
                        json!({ "rev": rev, "entry": entry, "id": id, "block": block })
                    })
                    .collect();
                Ok(json!({ "next": from + proofs.len(), "proofs": proofs }))
            }
            ("POST", ["chains", _, "revert"]) => {
                let block = body["block"].as_u64().unwrap();
                self.revert(body["to"].as_str().unwrap(), block, body["next"].as_str())
            }
            ("POST", ["jobs"]) => self.submit(&body),
            ("GET", ["jobs"]) => {
                let jobs: Vec<Value> = self.jobs.values().map(Job::status).collect();
                Ok(json!({ "jobs": jobs }))
            }
            (method, ["jobs", handle]) => {
                let path = self.path();
                let found = self.jobs.values_mut().find(|job| job.handle() == *handle);
                let Some(job) = found else { return none() };
                let is_published = path.iter().any(|(id, _)| *id == job.id);
                match method {
                    "GET" => {}
                    _ if is_published => return Err((409, "it is published".into())),
                    _ => job.state = "cancelled",
                }
                Ok(job.status())
            }
            _ => none(),
        }
    }
}

/// The chain behind its lock.
#[derive(Clone, Debug)]
pub(crate) struct Orchestrator(Arc<Mutex<Chain>>);

impl Orchestrator {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Chain::new())))
    }

    pub(crate) fn chain(&self) -> MutexGuard<'_, Chain> {
        self.0.lock().unwrap()
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .fallback(answer)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(self)
    }
}

async fn answer(State(orchestrator): State<Orchestrator>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap_or(Bytes::new());
    let mut chain = orchestrator.chain();
    // To the client, a body that is not a problem in JSON is not an answer.
    let lost = || StatusCode::BAD_GATEWAY.into_response();
    if chain.fault == Fault::Away {
        return lost();
    }
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let answer = chain.answer(&head.method, path, query, &body);
    match chain.fault {
        Fault::After(0) => {
            chain.fault = Fault::Away;
            return lost();
        }
        Fault::After(count) => chain.fault = Fault::After(count - 1),
        Fault::None | Fault::Away => {}
    }
    match answer {
        Ok(value) if head.method == Method::HEAD => {
            let _ = value;
            StatusCode::OK.into_response()
        }
        Ok(value) => Json(value).into_response(),
        Err((status, why)) => {
            let body =
                json!({ "type": "about:blank", "title": "no", "status": status, "detail": why });
            (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
        }
    }
}
