//! What is counted, for Prometheus.

use crate::id::Name;
use crate::record::{Job, JobState, Task};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Counters of one process. Labels are what the operator has named, never what tenants have.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
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
}

/// From a millisecond to about four hours.
fn buckets() -> Histogram {
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
        let help = "Whether a back-end is not used anymore after three wrong outputs";
        registry.register("quarantined", help, quarantined.clone());
        registry.register("jobs_ended", "Jobs by their end", jobs.clone());
        registry.register("published", "Published blocks", published.clone());
        registry.register("tasks_ready", "Tasks that wait", ready.clone());
        registry.register("tasks_leased", "Tasks that run, in all processes", leased.clone());
        let help = "How long the oldest task has waited";
        registry.register_with_unit("head_age", help, seconds, head_age.clone());
        let help = "Tasks that no live process can run";
        registry.register("tasks_unrunnable", help, unrunnable.clone());
        Self(Arc::new(Inner {
            registry,
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
        }))
    }

    pub(crate) fn claimed(&self, task: &Task, now: u64) {
        let from = task.created.max(task.not_before);
        let backend = Backend { backend: task.backend.to_string() };
        self.0.waits.get_or_create(&backend).observe(seconds(from, now));
    }

    /// The attempt that left a task like this has ended.
    pub(crate) fn ended(&self, task: &Task, outcome: &'static str, millis: u64) {
        let backend = task.backend.to_string();
        let labels = Backend { backend: backend.clone() };
        self.0.runs.get_or_create(&labels).observe(seconds(0, millis));
        self.0.attempts.get_or_create(&Attempt { backend, outcome }).inc();
    }

    pub(crate) fn expired(&self) {
        self.0.redeliveries.inc();
    }

    pub(crate) fn quarantined(&self, backend: &Name) {
        self.0.quarantined.get_or_create(&Backend { backend: backend.to_string() }).set(1);
    }

    pub(crate) fn job_ended(&self, job: &Job, now: u64) {
        let state = match job.state {
            JobState::Done { .. } => "done",
            JobState::Dead { .. } => "dead",
            _ => "cancelled",
        };
        self.0.jobs.get_or_create(&End { state }).inc();
        self.0.job_seconds.observe(seconds(job.accepted, now));
    }

    pub(crate) fn published(&self, job: &Job, now: u64) {
        self.0.published.inc();
        self.0.publication_seconds.observe(seconds(job.accepted, now));
    }

    /// What a collector sees of the queue.
    pub(crate) fn queue(&self, ready: usize, leased: usize, head_age: f64, unrunnable: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.0.ready.set(number(ready));
        self.0.leased.set(number(leased));
        self.0.head_age.set(head_age);
        self.0.unrunnable.set(number(unrunnable));
    }

    /// All of it as text.
    ///
    /// # Errors
    /// Never, as the text is written to memory.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

fn seconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e3
}
