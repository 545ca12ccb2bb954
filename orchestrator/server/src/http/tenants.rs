//! Tenants: the senders of requests, and their limits.

use super::problem::{BYTES, FULL, RATE, TOKEN, UNAUTHORIZED};
use crate::feed::{Event, is_newer};
use crate::record::{Chain, JobKey};
use crate::settings::{Settings, Tenant};
use crate::store::Rev;
use axum::http::{HeaderMap, header};
use hekaton_orchestrator_client::{Digest, Name};
use hekaton_service::{Problem, bearer_token};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The name of the tenant where the settings name none.
const ANYBODY: &str = "default";

/// The tenants of a service, with what they have open.
#[derive(Debug)]
pub(crate) struct Tenants {
    by_token: BTreeMap<Digest, Name>,
    tenants: BTreeMap<Name, Tenant>,
    open: Mutex<BTreeMap<Name, BTreeMap<JobKey, Rev>>>,
    jobs: Mutex<BTreeMap<Name, Bucket>>,
    bytes: Mutex<BTreeMap<Name, Bucket>>,
    dead: Mutex<BTreeMap<(Name, Name), BTreeMap<JobKey, u64>>>,
}

/// A token bucket.
#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
    /// The number that it holds when it is full.
    most: f64,
    /// The number of seconds in which an empty one becomes full.
    seconds: f64,
}

impl Bucket {
    fn full(most: f64, seconds: f64) -> Self {
        Self { left: most, at: Instant::now(), most, seconds }
    }

    /// Takes out `count`, or returns the number of seconds after which that much will be available.
    fn take(&mut self, count: f64) -> Result<(), f64> {
        let (now, rate) = (Instant::now(), self.most / self.seconds);
        let more = now.duration_since(self.at).as_secs_f64() * rate;
        (self.left, self.at) = ((self.left + more).min(self.most), now);
        if self.left < count {
            return Err((count - self.left) / rate);
        }
        self.left -= count;
        Ok(())
    }
}

/// Bytes that were counted against a tenant. They are given back unless they are kept.
pub(crate) struct Quota {
    tenants: Arc<Tenants>,
    name: Name,
    most: Option<u64>,
    count: u64,
}

impl Quota {
    /// Counts more.
    pub(crate) fn take(&mut self, more: u64) -> Result<(), Problem> {
        let Some(most) = self.most else { return Ok(()) };
        let mut buckets = self.tenants.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || Bucket::full(most as f64, DAY);
        let bucket = buckets.entry(self.name.clone()).or_insert_with(full);
        bucket.take(more as f64).map_err(|seconds| {
            let why =
                format!("daily byte limit reached: {more} more bytes would exceed {most} per day");
            Problem::new(BYTES, why).after(seconds)
        })?;
        // Given back if the upload fails, or brings a blob that is there already.
        self.count += more;
        Ok(())
    }

    /// Keeps the bytes counted, because something new is stored.
    pub(crate) fn keep(mut self) {
        self.count = 0;
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let mut buckets = self.tenants.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(&self.name) {
            bucket.left = (bucket.left + self.count as f64).min(bucket.most);
        }
    }
}

const DAY: f64 = 86_400.0;

/// The number of bundle chains that a tenant may have: the service itself submits their jobs, so these are counted after the fact.
const MAX_BUNDLED: usize = 16;

impl Tenants {
    pub(crate) fn new(settings: &Settings) -> Arc<Self> {
        let mut tenants = settings.tenants.clone();
        let by_token =
            tenants.iter().map(|(name, tenant)| (tenant.token_digest, name.clone())).collect();
        if tenants.is_empty() {
            tenants.insert(ANYBODY.parse().expect("a name"), Tenant::anybody());
        }
        let (open, jobs, bytes, dead) = Default::default();
        Arc::new(Self { by_token, tenants, open, jobs, bytes, dead })
    }

    /// Returns the tenant that sends a request. Tokens are compared by digest, so timing reveals nothing.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Result<(Name, &Tenant), Problem> {
        if self.by_token.is_empty() {
            let (name, tenant) = self.tenants.first_key_value().ok_or_else(wrong_token)?;
            return Ok((name.clone(), tenant));
        }
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = value.and_then(bearer_token).ok_or_else(no_token)?;
        let name = self.by_token.get(&Digest::of(token.as_bytes())).ok_or_else(wrong_token)?;
        let tenant = self.tenants.get(name).ok_or_else(wrong_token)?;
        Ok((name.clone(), tenant))
    }

    /// Reports whether there are tenants, who have tokens.
    pub(crate) fn are_several(&self) -> bool {
        !self.by_token.is_empty()
    }

    /// Admits a job, or returns why not.
    pub(crate) fn admit(&self, name: &Name, tenant: &Tenant) -> Result<(), Problem> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(name).map_or(0, BTreeMap::len);
        // Open jobs are counted from events, so requests at the same time may exceed the limit by a few.
        if count >= tenant.jobs {
            let why = format!("open job limit reached: {count} of {}", tenant.jobs);
            return Err(Problem::new(FULL, why));
        }
        drop(open);
        let mut buckets = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        // A second of jobs at once is allowed, as clients submit in bursts.
        let full = || Bucket::full(f64::from(tenant.jobs_per_second), 1.0);
        let bucket = buckets.entry(name.clone()).or_insert_with(full);
        bucket.take(1.0).map_err(|_| {
            let why = format!(
                "submission rate limit reached: {} jobs per second",
                tenant.jobs_per_second
            );
            Problem::new(RATE, why)
        })
    }

    /// Counts the bytes of a blob that is being sent.
    pub(crate) fn bytes(self: &Arc<Self>, name: &Name, tenant: &Tenant) -> Quota {
        Quota {
            tenants: Arc::clone(self),
            name: name.clone(),
            most: tenant.bytes_per_day,
            count: 0,
        }
    }

    /// The lowest dead block of a chain above a height. One that is not above what is published does not block anything.
    pub(crate) fn dead(&self, tenant: &Name, chain: &Name, above: Option<u64>) -> Option<u64> {
        let dead = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        let heights = dead.get(&(tenant.clone(), chain.clone()))?.values();
        heights.filter(|height| above.is_none_or(|above| **height > above)).min().copied()
    }

    /// Takes note of what is open.
    pub(crate) fn apply(&self, event: &Event) {
        use crate::record::{JobState, Order};
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dead = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Reset => {
                open.clear();
                dead.clear();
            }
            Event::Job(key, job) => {
                let jobs = open.entry(key.tenant.clone()).or_default();
                // The feed may report an older revision after a newer one, which would open a job again that has ended.
                if !is_newer(jobs.get(key).copied(), job.rev) {
                    return;
                }
                let chain = (key.tenant.clone(), key.chain.clone());
                match job.value.is_live() {
                    true => drop(jobs.insert(key.clone(), job.rev)),
                    false => drop(jobs.remove(key)),
                }
                if let (JobState::Dead { .. }, Order::Strict) = (&job.value.state, job.value.order)
                {
                    dead.entry(chain).or_default().insert(key.clone(), job.value.block);
                } else if let Some(blocks) = dead.get_mut(&chain) {
                    blocks.remove(key);
                }
            }
            // Dead blocks below what is published do not count, and others are not removed.
            Event::Complete
            | Event::Owner(..)
            | Event::Chain(..)
            | Event::Listed(_)
            | Event::Task(..) => {}
        }
    }
}

impl Tenant {
    /// Admits a chain in addition to the tenant's others, or returns why not.
    pub(crate) fn admit_chain(&self, others: &[Chain], wanted: &Chain) -> Result<(), Problem> {
        // Chains are never removed, so their number is what a tenant can fill the store with.
        if others.len() >= self.chains {
            let why = format!("chain limit reached: {} of {}", others.len(), self.chains);
            return Err(Problem::new(FULL, why));
        }
        let bundled = others.iter().filter(|chain| chain.bundles.is_some()).count();
        if wanted.bundles.is_some() && bundled >= MAX_BUNDLED {
            let why = format!("bundle chain limit reached: {bundled} of {MAX_BUNDLED}");
            return Err(Problem::new(FULL, why));
        }
        Ok(())
    }
}

fn no_token() -> Problem {
    let why = "send the header 'Authorization: Bearer TOKEN' with the token of a tenant";
    Problem::new(UNAUTHORIZED, why)
}

fn wrong_token() -> Problem {
    Problem::new(TOKEN, "the settings of the service have no tenant with this token")
}
