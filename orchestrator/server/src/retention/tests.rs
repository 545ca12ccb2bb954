//! Sweeps of a real database and real files.

use super::*;
use crate::clock::Time;
use crate::record::{Publication, SessionId, TaskState, encode, session_key};
use crate::store::{Durability, SqliteStore};
use crate::submissions::Submission;
use crate::tests::memory::{Bug, Core, Faults, Frozen, Loss, MemoryStore};
use crate::tests::records::task;
use crate::workflows::Workflows;
use hekaton_orchestrator_client::Workflow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

const HOUR: u64 = 3_600 * 1_000;

/// Clocks that are set: the monotonic one and the wall clock.
#[derive(Clone, Default)]
struct Set(Arc<[AtomicU64; 2]>);

impl Set {
    fn pass(&self, monotonic: u64, wall: u64) {
        self.0[0].fetch_add(monotonic, Ordering::Relaxed);
        self.0[1].fetch_add(wall, Ordering::Relaxed);
    }
}

impl Time for Set {
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0[0].load(Ordering::Relaxed))
    }

    fn wall(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }

    fn real(&self, span: Duration) -> Duration {
        span
    }
}

struct Place {
    folder: tempfile::TempDir,
    store: Arc<SqliteStore>,
    blobs: Blobs,
    time: Set,
    retention: Retention,
    submissions: Submissions,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str, durability| {
            Arc::new(SqliteStore::open(&folder.path().join(name), durability).unwrap())
        };
        let store = open("records", Durability::Disk);
        let blobs = Blobs::open(&folder.path().join("blobs")).unwrap();
        let time = Set::default();
        time.pass(HOUR, Clock::system().wall());
        let clock = Clock::new(time.clone());
        let dynamic: Arc<dyn Store> = Arc::<SqliteStore>::clone(&store);
        let workflows = Workflows::new(blobs.clone());
        let submissions = Submissions::new(Arc::clone(&dynamic), clock.clone(), workflows);
        let retention = Retention {
            store: dynamic,
            sessions: open("sessions", Durability::Memory),
            submissions: submissions.clone(),
            clock,
            keep: Duration::from_secs(24 * 3_600),
            interval: SWEEP,
            last: 0,
            files: Some(Files {
                blobs: blobs.clone(),
                folder: folder.path().join("blobs"),
                spool: folder.path().join("spool"),
            }),
        };
        Self { folder, store, blobs, time, retention, submissions }
    }

    /// Lets hours pass since a blob was touched.
    fn age(&self, digest: &Digest, hours: u64) {
        let then = SystemTime::now() - Duration::from_millis(hours * HOUR);
        let file = std::fs::File::open(self.blobs.path(digest)).unwrap();
        file.set_modified(then).unwrap();
    }

    async fn sweep(&self, state: &mut State) -> Removed {
        self.time.pass(HOUR, HOUR);
        self.retention.sweep(state).await.unwrap()
    }

    async fn submit(&self, id: &str, input: Digest) -> Stored<Job> {
        let workflow = Workflow::single("prove".parse().unwrap());
        let workflow = self.blobs.put(&workflow.to_bytes()).unwrap();
        let submission = Submission {
            tenant: "t".parse().unwrap(),
            chain: "c".parse().unwrap(),
            block: 1,
            id: id.parse().unwrap(),
            parent: None,
            lane: 0,
            workflow,
            inputs: BTreeMap::from([("input".parse().unwrap(), vec![input])]),
            trace: None,
        };
        let job = self.submissions.submit(submission).await.unwrap().job;
        self.submissions.read_job(&job.key()).await.unwrap().unwrap()
    }

    /// Ends a job with an output, and publishes it; the process may die before the record says that the log has it.
    async fn finish(
        &self,
        Stored { value: job, rev }: Stored<Job>,
        output: Digest,
        logged: bool,
    ) -> TaskKey {
        let key = job.key();
        let (_, made) = task("t", "c", 1, 0);
        let place = TaskKey {
            partition: key.partition(),
            job: job.identity(),
            stage: 0,
            index: 0,
            copy: 0,
        };
        let session = SessionId::from_number(1);
        let state = TaskState::Done { output, session, at: 0, millis: 0 };
        let made = Task { job: key.clone(), state, ..made };
        create(&*self.store, &place.to_string(), made).await.unwrap();
        let done = Job { state: JobState::Done { outputs: vec![output], at: 0 }, ..job };
        let publication = Publication::Block {
            block: 1,
            id: done.id.clone(),
            parent: done.id.clone(),
            generation: 0,
            job: done.identity(),
            outputs: vec![output],
        };
        let name = publication_key(&done.tenant, &done.chain, &done.id);
        update(&*self.store, &key.to_string(), done, rev).await.unwrap();
        let log = log_name(&key.tenant, &key.chain);
        let tail = self.store.tail(&log).await.unwrap().map(|tail| tail.rev);
        let entry = encode(&publication, 0);
        self.store.append(&log, entry, tail).await.unwrap();
        let record = serde_json::json!({ "publication": publication, "logged": logged });
        create(&*self.store, &name, record).await.unwrap();
        place
    }
}

fn chain() -> Chain {
    Chain {
        tenant: "t".parse().unwrap(),
        chain: "c".parse().unwrap(),
        order: Order::None,
        genesis: None,
        bundles: None,
    }
}

/// The story of two jobs, of which one stays open.
#[tokio::test]
async fn what_is_old_goes_with_its_files_and_its_history() {
    let place = Place::new();
    place.submissions.make_chain(chain()).await.unwrap();
    let [first, second, output, stray] =
        [&b"first"[..], b"second", b"output", b"stray"].map(|it| place.blobs.put(it).unwrap());
    let old = place.submit("old", first).await;
    let open = place.submit("open", second).await;
    let task = place.finish(old.clone(), output, true).await;
    for digest in [&first, &second, &output, &stray, &old.value.workflow] {
        place.age(digest, 30);
    }
    let key = session_key(&SessionId::from_number(1));
    let sessions = &place.retention.sessions;
    sessions.create(&key, encode(&1_u32, 0)).await.unwrap();
    let alive = session_key(&SessionId::from_number(2));
    let beat = sessions.create(&alive, encode(&1_u32, 0)).await.unwrap();
    let mut state = State::default();

    // Nothing is old, and a blob that no record names is.
    place.sweep(&mut state).await;
    sessions.update(&alive, encode(&2_u32, 0), beat).await.unwrap();
    assert_eq!(place.sweep(&mut state).await.blobs, 1);
    assert!(sessions.get(&alive).await.unwrap().is_some());
    assert!(!place.blobs.has(&stray) && place.blobs.has(&output));
    assert_eq!(sessions.get(&key).await.unwrap(), None, "the session was not written meanwhile");

    // The wall clock is two days ahead at one sweep, at the next one it is right again.
    place.time.pass(0, 48 * HOUR);
    assert_eq!(place.sweep(&mut state).await.jobs, 0);
    let again = place.retention.sweep(&mut state).await.unwrap();
    assert_eq!(again.jobs, 0, "the last sweep was just now");
    place.time.0[1].fetch_sub(48 * HOUR, Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(place.sweep(&mut state).await.jobs, 0);
    }

    // Two days later, in which the process runs.
    place.time.pass(48 * HOUR, 48 * HOUR);
    place.sweep(&mut state).await;
    std::fs::create_dir_all(place.folder.path().join("spool")).unwrap();
    let folder = place.store.get(&task.to_string()).await.unwrap().unwrap();
    let id = decode::<Task>(&folder).unwrap().value.id.to_string();
    let run = place.folder.path().join("spool").join(id);
    std::fs::create_dir(&run).unwrap();
    assert_eq!(place.sweep(&mut state).await.jobs, 0, "the folder of its run is there");
    std::fs::remove_dir(&run).unwrap();
    let Removed { jobs, tasks, blobs, .. } = place.sweep(&mut state).await;
    assert_eq!((jobs, tasks, blobs), (1, 1, 0));
    let refused = place.submissions.job(&chain().tenant, &old.value.handle()).await;
    assert!(matches!(refused, Err(SubmissionError::NoJob { .. })), "{refused:?}");
    // The blobs go with the next sweep, which finds no record that names them.
    place.age(&second, 30);
    assert_eq!(place.sweep(&mut state).await.blobs, 2);
    assert!(!place.blobs.has(&first) && !place.blobs.has(&output));
    assert!(place.blobs.has(&second) && place.blobs.has(&open.value.workflow), "they are named");
    assert_eq!(place.sweep(&mut state).await.blobs, 0);

    // The history of the open job is whole, and that of the other one gone.
    let history = place.store.history().await.unwrap();
    let keys: Vec<_> = history.records.iter().map(|version| &*version.entry.key).collect();
    assert!(keys.contains(&&*open.value.key().to_string()), "{keys:?}");
    assert!(!keys.iter().any(|key| key.starts_with("task/")), "{keys:?}");
    assert!(history.pruned > 0);
    assert_eq!(history.violations(), []);
    assert_eq!(history.jobs().len(), 1);
}

/// A record that was written by a later version may name any blob.
#[tokio::test]
async fn records_that_cannot_be_read_keep_all_blobs() {
    let place = Place::new();
    place.submissions.make_chain(chain()).await.unwrap();
    let stray = place.blobs.put(b"stray").unwrap();
    place.age(&stray, 30);
    let job = place.submit("job", place.blobs.put(b"input").unwrap()).await;
    let strange = bytes::Bytes::from_static(br#"{"v":2,"by":1,"body":{}}"#);
    place.store.update(&job.value.key().to_string(), strange, job.rev).await.unwrap();
    let mut state = State::default();
    place.sweep(&mut state).await;
    assert_eq!(place.sweep(&mut state).await.blobs, 0);
    assert!(place.blobs.has(&stray));
}

/// A job is accepted only if its blobs are there, and they stay for a day from then on, however old they are.
#[tokio::test]
async fn blobs_are_held_before_a_record_names_them() {
    let place = Place::new();
    place.submissions.make_chain(chain()).await.unwrap();
    let input = place.blobs.put(b"input").unwrap();
    let job = place.submit("job", input).await;
    for digest in [input, job.value.workflow] {
        place.age(&digest, 30);
    }
    // The request that names them, before its record is written.
    let unused = Unused::open(place.blobs.clone(), &place.folder.path().join("blobs")).unwrap();
    assert_eq!(unused.untouched().unwrap().len(), 2);
    place.submit("other", input).await;
    assert_eq!(unused.untouched().unwrap(), []);
    place.blobs.remove(&input).unwrap();
    let again = Submission { id: "third".parse().unwrap(), ..of_job(&job.value) };
    let refused = place.submissions.submit(again).await.unwrap_err().to_string();
    assert!(refused.ends_with("does not exist: send it again"), "{refused}");
    let tenant = &job.value.tenant;
    place.submissions.cancel(tenant, &job.value.handle(), "enough").await.unwrap();
    let refused = place.submissions.requeue(tenant, &job.value.handle()).await.unwrap_err();
    assert!(refused.to_string().ends_with("does not exist: send it again"), "{refused}");
    // A workflow that is in memory and not on disk is stored again.
    let workflows = Workflows::new(place.blobs.clone());
    let single = || Workflow::single("prove".parse().unwrap());
    let digest = workflows.put(single()).unwrap();
    place.blobs.remove(&digest).unwrap();
    assert_eq!(workflows.put(single()).unwrap(), digest);
    assert!(place.blobs.has(&digest));
}

fn of_job(job: &Job) -> Submission {
    Submission {
        tenant: job.tenant.clone(),
        chain: job.chain.clone(),
        block: job.block,
        id: job.id.clone(),
        parent: None,
        lane: 0,
        workflow: job.workflow,
        inputs: job.inputs.clone(),
        trace: None,
    }
}

/// The process that published the block died before the record said that the log has it: the next one needs the job.
#[tokio::test]
async fn a_job_stays_until_the_log_has_its_block() {
    let place = Place::new();
    place.submissions.make_chain(chain()).await.unwrap();
    let job = place.submit("job", place.blobs.put(b"input").unwrap()).await;
    place.finish(job, place.blobs.put(b"output").unwrap(), false).await;
    place.time.pass(48 * HOUR, 48 * HOUR);
    let mut state = State::default();
    for _ in 0..3 {
        assert_eq!(place.sweep(&mut state).await.jobs, 0);
    }
}

#[tokio::test]
async fn a_job_without_tasks_is_as_old_as_its_end() {
    let place = Place::new();
    place.submissions.make_chain(chain()).await.unwrap();
    let job = place.submit("job", place.blobs.put(b"input").unwrap()).await.value;
    place.submissions.cancel(&job.tenant, &job.handle(), "enough").await.unwrap();
    let mut state = State::default();
    for _ in 0..3 {
        assert_eq!(place.sweep(&mut state).await.jobs, 0);
    }
    place.time.pass(48 * HOUR, 48 * HOUR);
    assert_eq!(place.sweep(&mut state).await.jobs, 0);
    assert_eq!(place.sweep(&mut state).await.jobs, 1);
}

/// Entries of logs have no times: one that was written after the last record may be new.
#[tokio::test]
async fn entries_after_the_last_record_are_not_old() {
    let place = Place::new();
    let record = place.store.create("a", encode(&1_u32, 0)).await.unwrap();
    let entry = place.store.append("log", encode(&1_u32, 0), None).await.unwrap();
    let later = Clock::system().wall() + HOUR;
    assert_eq!(place.store.written_before(later).await.unwrap(), record.number);
    assert_eq!(place.store.written_before(0).await.unwrap(), 0);
    let next = place.store.create("b", encode(&1_u32, 0)).await.unwrap();
    assert!(record.number < entry.number && entry.number < next.number);
    assert_eq!(place.store.written_before(later).await.unwrap(), next.number);
}

/// The floor of the sweep before counts if the chain still has it, and it was not lowered since.
#[test]
fn limits_follow_floors_that_hold() {
    let (tenant, name): ChainId = ("t".parse().unwrap(), "c".parse().unwrap());
    let id = |height: u64| format!("b{height}").parse::<Name>().unwrap();
    let floor = |height: u64| Floor { id: id(height), block: height };
    let key = (tenant.clone(), name.clone());
    let mut trail = Trail::default();
    trail.blocks.extend((1..=5).map(|height| trail::Block {
        parent: id(height - 1),
        id: id(height),
        height,
        rev: height,
    }));
    let trails = BTreeMap::from([(key.clone(), trail)]);
    let rev = Rev { incarnation: 1, number: 9 };
    let limit_of = |before: Floor, now: Floor| {
        let look = Look {
            monotonic: Duration::ZERO,
            wall: 0,
            counter: rev,
            floors: BTreeMap::from([(floor_key(&tenant, &name), before)]),
            horizon: 9,
            sessions: BTreeMap::new(),
        };
        let now = BTreeMap::from([(key.clone(), Stored { value: now, rev })]);
        limit(&Chains { floors: now, ..Chains::default() }, &trails, &key, &look)
    };
    assert_eq!(limit_of(floor(3), floor(3)), Some(2));
    assert_eq!(limit_of(floor(3), floor(5)), Some(2), "it was raised");
    assert_eq!(limit_of(floor(3), floor(2)), None, "it was lowered");
    let torn = Floor { id: id(9), block: 3 };
    assert_eq!(limit_of(torn, floor(4)), None, "its block was torn off");
}

/// A record that names a blob may have been removed by another process, and a crash of the machine may take that back.
#[tokio::test]
async fn blobs_stay_until_the_removals_of_records_are_on_disk() {
    let mut place = Place::new();
    let core = Core::new(ChaCha8Rng::seed_from_u64(1), Bug::None);
    let store = MemoryStore { core: Arc::clone(&core), frozen: Frozen::default() };
    place.retention.store = Arc::new(store.clone());
    let blob = place.blobs.put(b"named no longer").unwrap();
    place.age(&blob, 30);
    let mut state = State::default();
    place.sweep(&mut state).await;
    let named = store.create("x/1", bytes::Bytes::new()).await.unwrap();
    core.set_faults(Faults::BROKEN_DISK);
    store.remove("x/1", named).await.unwrap();
    place.time.pass(HOUR, HOUR);
    let error = place.retention.sweep(&mut state).await.unwrap_err();
    assert!(error.to_string().contains("a broken disk"), "{error}");
    assert!(place.blobs.has(&blob));
    core.set_faults(Faults::NONE);
    place.sweep(&mut state).await;
    assert_eq!(place.sweep(&mut state).await.blobs, 1);
    assert_eq!(core.crash(Loss::All), 0);
}
