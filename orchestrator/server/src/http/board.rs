//! Jobs with their tasks, and the processes that run them, for the live page.

use super::body::job_status;
use super::offers::Offers;
use crate::feed::{Event, Listed, is_newer};
use crate::record::{Job, JobKey, JobState, Order, Session, Stored, Task, TaskKey, TaskState};
use crate::store::Rev;
use hekaton_orchestrator_client::body::{JobStatus, JobView, WorkerView};
use hekaton_orchestrator_client::{Digest, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

/// The number of ended jobs that are still shown, per tenant.
const MAX_ENDED: usize = 100;

/// The number of changes that a reader may be behind before it starts over.
const MAX_BEHIND: usize = 4_096;

/// The number of connections that may listen to events, per tenant.
// Each keeps one of the service's connections (`MAX_CONNECTIONS`) for minutes, and one tenant must
// not use up all of them.
const MAX_LISTENERS: usize = 16;

/// Jobs in memory, and the listeners that wait for changes.
#[derive(Debug)]
pub(crate) struct Board {
    offers: Offers,
    /// All records were reported.
    complete: AtomicBool,
    tenants: Mutex<BTreeMap<Name, Jobs>>,
    news: broadcast::Sender<JobKey>,
    listeners: Mutex<BTreeMap<Name, Arc<Semaphore>>>,
}

#[derive(Debug, Default)]
struct Jobs {
    rows: BTreeMap<JobKey, Row>,
    /// Ended jobs by revision, oldest first.
    ended: BTreeMap<u64, JobKey>,
    /// The last write of a job or task that was reported.
    latest: Option<Rev>,
}

impl Jobs {
    /// Takes note of a write that is shown from now on. Jobs and tasks are listed one after another, so it may be an older one.
    fn shows(&mut self, rev: Rev) {
        if is_newer(self.latest, rev) {
            self.latest = Some(rev);
        }
    }
}

#[derive(Debug, Default)]
struct Row {
    job: Option<Arc<Stored<Job>>>,
    tasks: BTreeMap<TaskKey, Shown>,
}

/// The data of a task that the page shows or counts.
#[derive(Debug)]
struct Shown {
    id: Digest,
    rev: Rev,
    state: &'static str,
    leased: bool,
    /// The back-end that is to run it, while it waits.
    wanted: Option<Name>,
}

impl Row {
    fn view(&self, offers: &Offers) -> Option<JobView> {
        let job = &self.job.as_ref()?.value;
        let identity = job.identity();
        let mut tasks = BTreeMap::new();
        let (mut running, mut wanted) = (Vec::new(), Vec::new());
        // Tasks of a block that another one has replaced are not the job's own.
        for (_, task) in self.tasks.iter().filter(|(key, _)| key.job == identity) {
            *tasks.entry(task.state.to_owned()).or_insert(0) += 1;
            if task.leased {
                running.push(task.id.to_string());
            }
            wanted.extend(&task.wanted);
        }
        let missing = if job.is_live() { offers.missing(wanted) } else { vec![] };
        Some(JobView { job: JobStatus { missing, ..job_status(job) }, tasks, running })
    }
}

impl Board {
    pub(crate) fn new(offers: Offers) -> Self {
        Self {
            offers,
            complete: AtomicBool::new(false),
            tenants: Mutex::default(),
            news: broadcast::Sender::new(MAX_BEHIND),
            listeners: Mutex::default(),
        }
    }

    fn tenants(&self) -> MutexGuard<'_, BTreeMap<Name, Jobs>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a change.
    pub(crate) fn apply(&self, event: &Event) {
        let key = match event {
            Event::Reset => {
                self.complete.store(false, Ordering::Relaxed);
                self.tenants().clear();
                return;
            }
            Event::Complete => {
                self.complete.store(true, Ordering::Relaxed);
                return;
            }
            Event::Job(key, job) => {
                self.job(key, job);
                key.clone()
            }
            Event::Task(key, task) => {
                self.task(*key, task);
                task.value.job.clone()
            }
            Event::Listed(listed) => {
                self.forget(listed);
                return;
            }
            // Neither is on the page.
            Event::Owner(..) | Event::Chain(..) => return,
        };
        // An error says that no page is open, which is fine.
        let _ = self.news.send(key);
    }

    /// Forgets jobs that were removed.
    fn forget(&self, listed: &Listed) {
        for Jobs { rows, ended, .. } in self.tenants().values_mut() {
            rows.retain(|key, row| {
                row.job.as_ref().is_none_or(|job| !listed.is_removed(key, job.rev))
            });
            ended.retain(|_, key| rows.contains_key(key));
        }
    }

    fn job(&self, key: &JobKey, job: &Arc<Stored<Job>>) {
        let mut tenants = self.tenants();
        let jobs = tenants.entry(key.tenant.clone()).or_default();
        let row = jobs.rows.entry(key.clone()).or_default();
        let known = row.job.as_ref().map(|known| known.rev);
        if !is_newer(known, job.rev) {
            return;
        }
        row.job = Some(Arc::clone(job));
        // It may have ended before, and have been requeued since.
        if let Some(known) = known {
            jobs.ended.remove(&known.number);
        }
        if !job.value.is_live() {
            jobs.ended.insert(job.rev.number, key.clone());
        }
        jobs.shows(job.rev);
        // Open jobs are limited for each tenant; ended ones would fill the memory.
        while jobs.ended.len() > MAX_ENDED {
            let Some((_, oldest)) = jobs.ended.pop_first() else { break };
            jobs.rows.remove(&oldest);
        }
    }

    fn task(&self, key: TaskKey, stored: &Stored<Task>) {
        let Stored { value: task, rev } = stored;
        let mut tenants = self.tenants();
        let jobs = tenants.entry(task.job.tenant.clone()).or_default();
        // At the start, tasks are listed whose jobs are too old to be shown.
        let Some(row) = jobs.rows.get_mut(&task.job) else { return };
        let known = row.tasks.get(&key).map(|known| known.rev);
        if is_newer(known, *rev) {
            let leased = matches!(task.state, TaskState::Leased { .. });
            let wanted = matches!(task.state, TaskState::Ready).then(|| task.backend.clone());
            let shown = Shown { id: task.id, rev: *rev, state: task.state.word(), leased, wanted };
            row.tasks.insert(key, shown);
            jobs.shows(*rev);
        }
    }

    /// Reports whether all records were reported since they were listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed)
    }

    /// Returns a receiver of the keys of jobs that change from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<JobKey> {
        self.news.subscribe()
    }

    /// All jobs of a tenant that are shown.
    pub(crate) fn all(&self, tenant: &Name) -> Vec<JobView> {
        let tenants = self.tenants();
        let rows = tenants.get(tenant).into_iter().flat_map(|jobs| jobs.rows.values());
        rows.filter_map(|row| row.view(&self.offers)).collect()
    }

    /// Returns the last write of a tenant's jobs and tasks. Jobs that were shown must be on disk up to it before a client sees them.
    pub(crate) fn latest(&self, tenant: &Name) -> Option<Rev> {
        self.tenants().get(tenant)?.latest
    }

    /// Some jobs of a tenant.
    pub(crate) fn some(&self, tenant: &Name, keys: &BTreeSet<JobKey>) -> Vec<JobView> {
        let tenants = self.tenants();
        let Some(jobs) = tenants.get(tenant) else { return vec![] };
        keys.iter().filter_map(|key| jobs.rows.get(key)?.view(&self.offers)).collect()
    }

    /// The chains with strict order of which jobs that are done are shown.
    pub(crate) fn chains(&self, tenant: &Name) -> BTreeSet<Name> {
        let tenants = self.tenants();
        let rows = tenants.get(tenant).into_iter().flat_map(|jobs| jobs.rows.values());
        let jobs = rows.filter_map(|row| row.job.as_ref()).map(|job| &job.value);
        let done = jobs
            .filter(|job| job.order == Order::Strict && matches!(job.state, JobState::Done { .. }));
        done.map(|job| job.chain.clone()).collect()
    }

    /// The ids of a tenant's tasks that run.
    pub(crate) fn running(&self, tenant: &Name) -> BTreeSet<Digest> {
        let tenants = self.tenants();
        let rows = tenants.get(tenant).into_iter().flat_map(|jobs| jobs.rows.values());
        let leased = rows.flat_map(|row| row.tasks.values().filter(|task| task.leased));
        leased.map(|task| task.id).collect()
    }

    /// Admits a listener, unless too many of the tenant listen already.
    pub(crate) fn listen(&self, tenant: &Name) -> Option<OwnedSemaphorePermit> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let permits = listeners
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(MAX_LISTENERS)));
        Arc::clone(permits).try_acquire_owned().ok()
    }
}

/// Returns the view that a tenant has of a process: of its tasks, only the tenant's own.
pub(crate) fn worker(own: &BTreeSet<Digest>, id: &str, session: &Session) -> WorkerView {
    let running = session.running.iter().filter(|(task, _)| own.contains(task));
    WorkerView {
        session: id.to_owned(),
        // The boot in it is of no interest to people.
        host: session.host.split_once(':').map_or(&*session.host, |(name, _)| name).to_owned(),
        pid: session.pid,
        slots: session.slots,
        busy: session.running.len(),
        backends: session
            .backends
            .iter()
            .filter(|it| !session.quarantined.contains_key(*it))
            .map(Name::to_string)
            .collect(),
        quarantined: session
            .quarantined
            .iter()
            .map(|(name, why)| (name.to_string(), why.clone()))
            .collect(),
        collects: session.collects,
        draining: session.draining,
        running: running.map(|(task, part)| (task.to_string(), *part)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SessionId;
    use crate::tests::records::{job, task};

    fn stored<T>(value: T, number: u64) -> Arc<Stored<T>> {
        Arc::new(Stored { value, rev: Rev { incarnation: 1, number } })
    }

    #[test]
    fn jobs_are_shown_with_their_tasks_and_forgotten_at_last() {
        let offers = Offers::default();
        let board = Board::new(offers.clone());
        let job = job(vec![]);
        let key = job.key();
        let (_, mut work) = task("t", "c", 1, 0);
        work.job = key.clone();
        let place = |index| TaskKey {
            partition: key.partition(),
            job: job.identity(),
            stage: 0,
            index,
            copy: 0,
        };
        let mut news = board.subscribe();
        board.apply(&Event::Job(key.clone(), stored(job.clone(), 1)));
        board.apply(&Event::Task(place(0), stored(work.clone(), 2)));
        board.apply(&Event::Task(place(1), stored(work.clone(), 3)));
        let session = SessionId::from_number(1);
        let leased = work.claim(&session, 0).unwrap();
        board.apply(&Event::Task(place(1), stored(leased, 5)));
        let latest = |number| Some(Rev { incarnation: 1, number });
        assert_eq!(board.latest(&key.tenant), latest(5), "clients see its number of leased tasks");
        // Reported again, and late.
        board.apply(&Event::Task(place(1), stored(work.clone(), 3)));
        let [view] = &board.all(&key.tenant)[..] else { panic!() };
        assert_eq!(view.tasks, BTreeMap::from([("leased".into(), 1), ("ready".into(), 1)]));
        assert_eq!(view.running, [work.id.to_string()]);
        assert_eq!(view.job.missing, [""; 0], "nothing is known of processes");
        offers.set(Some(BTreeSet::new()));
        assert_eq!(board.all(&key.tenant)[0].job.missing, [work.backend.to_string()]);
        offers.set(Some(BTreeSet::from([work.backend.clone()])));
        assert_eq!(board.all(&key.tenant)[0].job.missing, [""; 0]);
        // Of a job that was written earlier, and is reported later.
        let mut other = job.clone();
        other.id = "b9".parse().unwrap();
        other.state = JobState::Done { outputs: vec![], at: 0 };
        board.apply(&Event::Job(other.key(), stored(other, 4)));
        assert_eq!(board.latest(&key.tenant), latest(5));
        board.apply(&Event::Complete);
        assert!(board.is_complete());
        assert_eq!(news.try_recv().unwrap(), key);
        assert_eq!(board.all(&"other".parse().unwrap()), []);

        for number in 10..10 + 2 * MAX_ENDED as u64 {
            let mut ended = job.clone();
            ended.id = format!("b{number}").parse().unwrap();
            ended.state = JobState::Done { outputs: vec![], at: 0 };
            board.apply(&Event::Job(ended.key(), stored(ended, number)));
        }
        assert_eq!(board.all(&key.tenant).len(), MAX_ENDED + 1);
        // Of those that are shown, all but the open one were removed.
        let at = Rev { incarnation: 1, number: 1_000 };
        board.apply(&Event::Listed(Arc::new(Listed { keys: BTreeSet::from([key.clone()]), at })));
        assert_eq!(board.all(&key.tenant).len(), 1);
        board.apply(&Event::Reset);
        assert!(!board.is_complete());
        assert_eq!(board.all(&key.tenant), []);
    }
}
