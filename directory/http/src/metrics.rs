//! Metrics of a service, for Prometheus.

use hekaton_directory_server::ProvingStats;
use hekaton_directory_server::{Server, Stats};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// A request: the path's pattern, never the path itself, and the status.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    method: String,
    path: String,
    status: u16,
}

/// The path's pattern alone.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    path: String,
}

/// The metrics of all requests.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<Request, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        // From 50 microseconds to 3 seconds.
        let new: fn() -> Histogram = || Histogram::new(exponential_buckets(50e-6, 3.0, 11));
        Self { requests: Family::default(), seconds: Family::new_with_constructor(new) }
    }

    pub(crate) fn request(&self, method: &str, path: &str, status: u16, took: Duration) {
        let (method, path) = (method.to_owned(), path.to_owned());
        // Without method and status, each of which would multiply the buckets of a route.
        self.seconds.get_or_create(&Route { path: path.clone() }).observe(took.as_secs_f64());
        self.requests.get_or_create(&Request { method, path, status }).inc();
    }

    /// All of it as text. What the directory says is asked for now.
    pub(crate) fn text(
        &self,
        server: &Server,
        proving: &ProvingStats,
    ) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::with_prefix("hekaton_directory");
        registry.register("requests", "Answered requests", self.requests.clone());
        let (what, unit) = ("Time from a request to its answer", Unit::Seconds);
        registry.register_with_unit("request", what, unit, self.seconds.clone());
        directory(&mut registry, server);
        stages(&mut registry, &server.stats());
        count(&mut registry, "proofs", "Proofs that were attached", proving.proofs);
        count(&mut registry, "proof_failures", "Attempts to prove that failed", proving.failures);
        let what = "Time that the last proof took";
        seconds(&mut registry, "last_proof", what, proving.seconds);
        let mut text = String::new();
        text::encode(&mut text, &registry)?;
        Ok(text)
    }
}

fn count(registry: &mut Registry, name: &str, help: &str, value: u64) {
    registry.register(name, help, ConstCounter::new(value));
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    // Prometheus has signed numbers.
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    registry.register(name, help, ConstGauge::new(value));
}

fn seconds(registry: &mut Registry, name: &str, help: &str, value: f64) {
    registry.register_with_unit(name, help, Unit::Seconds, ConstGauge::new(value));
}

fn directory(registry: &mut Registry, server: &Server) {
    let open = server.open_updates() as u64;
    gauge(registry, "accepted_updates", "Updates that are accepted and not visible", open);
    // Without them, the directory does not answer now.
    let Ok(view) = server.view() else { return gauge(registry, "up", "Whether it answers", 0) };
    let record = view.record();
    gauge(registry, "up", "Whether it answers", 1);
    gauge(registry, "epoch", "The last visible epoch", record.epoch.into());
    gauge(registry, "labels", "Labels in the directory", record.leaves);
    gauge(registry, "visible_updates", "Updates in the log", record.log_size);
    let when = "When the last epoch was closed, since 1970";
    seconds(registry, "closed", when, record.closed as f64);
    if let Ok(proven) = server.proven() {
        gauge(registry, "proven_epoch", "The last epoch up to which all are proven", proven.into());
        let left = record.epoch.saturating_sub(proven);
        gauge(registry, "unproven_epochs", "Visible epochs without a proof", left.into());
    }
}

/// The stages of a commit, which say which mode pays.
fn stages(registry: &mut Registry, stats: &Stats) {
    count(registry, "commits", "Commits of this process", stats.commits);
    count(registry, "committed_updates", "Updates in them", stats.updates);
    let rows = [
        ("commit_compute", "What the first stage takes, of the last few commits", stats.compute),
        ("commit_write", "What writing rows takes", stats.write),
        ("commit_sign", "What signing and waiting for commits before takes", stats.sign),
        ("commit_wait", "How long commits wait for the second stage", stats.wait),
        ("commit_idle", "How long the second stage waits for commits", stats.idle),
        ("commit_cpu", "Processor time between two commits", stats.cpu),
    ];
    for (name, what, value) in rows {
        seconds(registry, name, what, value);
    }
}
