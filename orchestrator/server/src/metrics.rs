//! The metrics of a process, for Prometheus.

use crate::record::{Job, JobState, Task};
use crate::traces::{Span, Traces};
use hekaton_orchestrator_client::Name;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Backend {
    backend: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Attempt {
    backend: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct End {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Counters of one process. Labels are names that the operator has chosen, never names from tenants.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>, Traces);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    store: Histograms<Operation>,
    waits: Histograms<Backend>,
    runs: Histograms<Backend>,
    attempts: Family<Attempt, Counter>,
    redeliveries: Counter,
    quarantined: Family<Backend, Gauge>,
    jobs: Family<End, Counter>,
    job_seconds: Histogram,
    published: Counter,
    publication_seconds: Histogram,
    ready: Gauge,
    leased: Gauge,
    head_age: Gauge<f64, AtomicU64>,
    unrunnable: Gauge,
    standing_blocks: Gauge,
    standing_chains: Gauge,
}

/// Makes a histogram from 50 microseconds to about 6 seconds.
fn store_buckets() -> Histogram {
    // From a read of SQLite that finds its page in memory to a write that waits for a slow disk.
    Histogram::new(exponential_buckets(0.000_05, 2.2, 16))
}

/// Makes a histogram from a millisecond to about four hours.
fn buckets() -> Histogram {
    // Tasks take from milliseconds, in tests, to hours.
    Histogram::new(exponential_buckets(0.001, 3.0, 16))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Counters at zero.
    pub fn new() -> Self {
        // One long list on purpose: name, help and field of a metric stand together, and nothing else happens here.
        let mut registry = Registry::with_prefix("hekaton_orchestrator");
        let waits = Histograms::new_with_constructor(buckets);
        let runs = Histograms::new_with_constructor(buckets);
        let (attempts, jobs, quarantined) =
            (Family::default(), Family::default(), Family::default());
        let (job_seconds, publication_seconds) = (buckets(), buckets());
        let (redeliveries, published) = (Counter::default(), Counter::default());
        let (ready, leased, unrunnable) = (Gauge::default(), Gauge::default(), Gauge::default());
        let head_age: Gauge<f64, AtomicU64> = Gauge::default();
        let seconds = Unit::Seconds;
        let store = Histograms::new_with_constructor(store_buckets);
        let help = "Time that operations of the store took";
        registry.register_with_unit("store", help, seconds.clone(), store.clone());
        let mut timed = |name: &str, help: &str, metric: &Histograms<Backend>| {
            registry.register_with_unit(name, help, seconds.clone(), metric.clone());
        };
        timed("task_wait", "Time from a task's creation to its claim", &waits);
        timed("task_run", "Time that attempts took", &runs);
        let mut timed = |name: &str, help: &str, metric: &Histogram| {
            registry.register_with_unit(name, help, seconds.clone(), metric.clone());
        };
        timed("job", "Time from a job's acceptance to its end", &job_seconds);
        timed(
            "publication",
            "Time from a job's acceptance to its publication",
            &publication_seconds,
        );
        registry.register("attempts", "Attempts by outcome", attempts.clone());
        let help = "Leases that were taken from dead sessions";
        registry.register("redeliveries", help, redeliveries.clone());
        let help = "Back-ends of this process that are in quarantine: their outputs were wrong, or they failed tasks that no other process failed";
        registry.register("quarantined", help, quarantined.clone());
        registry.register("jobs_ended", "Jobs by their end", jobs.clone());
        registry.register("published", "Published blocks", published.clone());
        registry.register("tasks_ready", "Tasks that wait", ready.clone());
        registry.register("tasks_leased", "Tasks that run, in all processes", leased.clone());
        let help = "How long the oldest task has waited";
        registry.register_with_unit("head_age", help, seconds, head_age.clone());
        let help = "Tasks that no live process can run";
        registry.register("tasks_unrunnable", help, unrunnable.clone());
        let (standing_blocks, standing_chains) = (Gauge::default(), Gauge::default());
        let help = "Blocks that were accepted, are not published and stand still";
        registry.register("blocks_standing_still", help, standing_blocks.clone());
        let help =
            "Chains with blocks that stand still, which publish nothing and for which nothing runs";
        registry.register("chains_standing_still", help, standing_chains.clone());
        let inner = Inner {
            registry,
            store,
            waits,
            runs,
            attempts,
            redeliveries,
            quarantined,
            jobs,
            job_seconds,
            published,
            publication_seconds,
            ready,
            leased,
            head_age,
            unrunnable,
            standing_blocks,
            standing_chains,
        };
        Self(Arc::new(inner), Traces::default())
    }

    /// Counters at zero, with a destination for spans.
    pub fn with_traces(traces: Traces) -> Self {
        Self(Self::new().0, traces)
    }

    pub(crate) fn traces(&self) -> &Traces {
        &self.1
    }

    pub(crate) fn stored(&self, operation: &'static str, time: Duration) {
        self.0.store.get_or_create(&Operation { operation }).observe(time.as_secs_f64());
    }

    pub(crate) fn claimed(&self, task: &Task, now: u64) {
        let from = task.created.max(task.not_before);
        let backend = Backend { backend: task.backend.to_string() };
        self.0.waits.get_or_create(&backend).observe(seconds(from, now));
        self.task_span("pickup", task, from, now, None, vec![]);
    }

    /// Counts an attempt that has ended and left the task in this state.
    pub(crate) fn ended(&self, task: &Task, outcome: &'static str, (from, now): (u64, u64)) {
        let backend = task.backend.to_string();
        let labels = Backend { backend: backend.clone() };
        self.0.runs.get_or_create(&labels).observe(seconds(from, now));
        self.0.attempts.get_or_create(&Attempt { backend, outcome }).inc();
        let failure = task.last_failure.as_deref().filter(|_| outcome != "done");
        let attributes = vec![("hekaton.outcome", outcome.to_owned())];
        self.task_span("attempt", task, from, now, failure, attributes);
    }

    /// Sends a span of a task.
    pub(crate) fn task_span(
        &self,
        name: &str,
        task: &Task,
        from: u64,
        to: u64,
        failure: Option<&str>,
        mut attributes: Vec<(&'static str, String)>,
    ) {
        if !self.1.is_on() {
            return;
        }
        attributes.extend([
            ("hekaton.block", task.block.to_string()),
            ("hekaton.block_id", task.block_id.to_string()),
            ("hekaton.stage", task.stage.to_string()),
            ("hekaton.backend", task.backend.to_string()),
            ("hekaton.attempt", task.attempts.to_string()),
        ]);
        let parent = task.trace.as_deref();
        self.1.send(&Span { name, parent, from, to, failure, attributes });
    }

    pub(crate) fn expired(&self) {
        self.0.redeliveries.inc();
    }

    pub(crate) fn quarantined(&self, backend: &Name, is_so: bool) {
        let labels = Backend { backend: backend.to_string() };
        self.0.quarantined.get_or_create(&labels).set(i64::from(is_so));
    }

    pub(crate) fn job_ended(&self, job: &Job, now: u64) {
        let state = match job.state {
            JobState::Done { .. } => "done",
            JobState::Dead { .. } => "dead",
            _ => "cancelled",
        };
        self.0.jobs.get_or_create(&End { state }).inc();
        self.0.job_seconds.observe(seconds(job.accepted, now));
        self.1.job("collect", job, job.accepted, now);
    }

    pub(crate) fn published(&self, job: &Job, now: u64) {
        self.0.published.inc();
        self.0.publication_seconds.observe(seconds(job.accepted, now));
        if let JobState::Done { at, .. } = job.state {
            self.1.job("publish", job, at, now);
        }
    }

    /// Sets the gauges of the queue, as a collector sees it.
    pub(crate) fn queue(&self, ready: usize, leased: usize, head_age: f64, unrunnable: usize) {
        self.0.ready.set(gauge(ready));
        self.0.leased.set(gauge(leased));
        self.0.head_age.set(head_age);
        self.0.unrunnable.set(gauge(unrunnable));
    }

    /// Sets the gauges of blocks that stand still, and of chains that publish nothing.
    pub(crate) fn standing_still(&self, blocks: usize, chains: usize) {
        self.0.standing_blocks.set(gauge(blocks));
        self.0.standing_chains.set(gauge(chains));
    }

    /// Returns all metrics as text.
    ///
    /// # Errors
    /// Never, as the text is written to memory.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

/// Returns a count of things in memory as gauges have them.
fn gauge(count: usize) -> i64 {
    i64::try_from(count).expect("fewer things are in memory than it has bytes")
}

fn seconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::records::{job, task};
    use std::collections::BTreeSet;

    const DASHBOARD: &str = include_str!("../monitoring/grafana.json");
    const ALERTS: &str = include_str!("../monitoring/alerts.yml");

    /// Names of samples in a text.
    fn names(text: &str) -> BTreeSet<String> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let starts = text.match_indices("hekaton_orchestrator_").map(|(at, _)| at);
        let ends =
            |at: usize| text[at..].find(|letter| !is_part(letter)).unwrap_or(text.len() - at);
        starts.map(|at| text[at..at + ends(at)].to_owned()).collect()
    }

    /// The samples of a process that has done everything once.
    fn exported() -> BTreeSet<String> {
        let metrics = Metrics::new();
        let ((_, task), job) = (task("t", "c", 1, 0), job(vec![]));
        metrics.claimed(&task, 1);
        metrics.ended(&task, "done", (1, 2));
        metrics.expired();
        metrics.quarantined(&task.backend, true);
        metrics.job_ended(&job, 1);
        metrics.published(&job, 2);
        metrics.queue(1, 1, 1.0, 0);
        metrics.standing_still(1, 1);
        metrics.stored("get", Duration::from_millis(1));
        let text = metrics.text().unwrap();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        names(&samples.collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn dashboard_and_alerts_ask_for_what_is_exported() {
        let exported = exported();
        let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let mut asked = BTreeSet::new();
        for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
            let found = names(target["expr"].as_str().unwrap());
            assert!(!found.is_empty(), "{target}");
            asked.extend(found);
        }
        let alerts = names(ALERTS);
        assert!(alerts.len() >= 8, "{alerts:?}");
        for name in asked.iter().chain(&alerts) {
            assert!(exported.contains(name), "'{name}' is not exported: {exported:?}");
        }
        // Nothing is counted that nobody sees.
        for name in
            exported.iter().filter(|name| !name.ends_with("_sum") && !name.ends_with("_count"))
        {
            assert!(asked.contains(name), "'{name}' is on no panel");
        }
    }
}
