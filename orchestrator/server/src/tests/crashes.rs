//! Disks that fail to sync, and crashes of the machine after that.

use super::memory::{Bug, Faults, Frozen, Loss, MemoryStore};
use super::records::{Nothing, task};
use super::simulation::{SINGLE, simulate, strict, submission, submit};
use super::world::{Provers, Shape, World};
use crate::backend::{Backend, Hekaton, Helper, Slurm, Workshop};
use crate::clock::Clock;
use crate::dispatch::Runner;
use crate::record::{Job, OnDisk, Task, TaskState, create_on_disk};
use crate::submissions::SubmissionError;
use hekaton_orchestrator_client::Blobs;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Returns a world with a chain, and an accepted block of it, whose provers take five seconds.
async fn world() -> (World, Job) {
    let mut world = World::new(1, Bug::None);
    world.provers = Provers { least_millis: 5_000, most_millis: 5_000, ..Provers::GOOD };
    let (workflow, submissions) = (world.workflow(SINGLE), world.submissions());
    submissions.make_chain(strict("strict")).await.unwrap();
    let wanted = submission("strict", 1, "b1", Some("genesis"), workflow);
    let job = submit(&submissions, &wanted).await.unwrap().job;
    (world, job)
}

fn states(world: &World) -> Vec<TaskState> {
    world.core.history().tasks().into_values().map(|task| task.state).collect()
}

/// Runs on other machines have claims that a crash of this one does not take back; runs here need none.
#[test]
fn claims_of_runs_on_other_machines_are_on_disk_before_they_start() {
    for is_remote in [true, false] {
        simulate(async || {
            let (mut world, _) = world().await;
            world.provers.is_remote = is_remote;
            let node = world.start(Shape::default());
            sleep(Duration::from_secs(3)).await;
            drop(node);
            world.core.crash(Loss::All);
            let claims = states(&world);
            let leased = claims.iter().filter(|it| matches!(it, TaskState::Leased { .. })).count();
            assert_eq!(leased > 0, is_remote, "{claims:?}");
        });
    }
}

/// The files of an attempt stay until a crash of the machine cannot take its result back, even if the result can be read before.
#[test]
fn files_of_attempts_stay_until_their_results_are_on_disk() {
    simulate(async || {
        let (mut world, _) = world().await;
        let collector = world.start(Shape { slots: 0, ..Shape::default() });
        sleep(Duration::from_secs(2)).await;
        drop(collector);
        // A process that sees its own write before the answer leaves the files to later sweeps.
        world.core.set_faults(Faults { dead_watches: 1_000, ..Faults::NONE });
        let node = world.start(Shape { collects: false, ..Shape::default() });
        sleep(Duration::from_secs(2)).await;
        world.core.set_faults(Faults::BROKEN_DISK);
        sleep(Duration::from_secs(5)).await;
        let done = |world: &World| {
            states(world).iter().filter(|it| matches!(it, TaskState::Done { .. })).count()
        };
        let settled = || world.settled.lock().unwrap().len();
        assert_eq!((done(&world), settled()), (2, 0));
        world.core.set_faults(Faults::NONE);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(settled(), 2);
        drop(node);
        world.core.crash(Loss::All);
        assert_eq!(done(&world), 2);
    });
}

/// While the disk fails, a request that cancels a job adds one entry to the log, however often it is repeated.
#[test]
fn publishers_are_stopped_by_one_entry() {
    simulate(async || {
        let (mut world, job) = world().await;
        world.core.set_faults(Faults::BROKEN_DISK);
        world.is_hasty = true;
        let submissions = world.submissions();
        let stopped = timeout(Duration::from_secs(600), submissions.stop_publishers(&job)).await;
        let error = stopped.expect("it does not repeat itself").unwrap_err();
        assert!(matches!(error, SubmissionError::Unknown(_)), "{error:?}");
        let entries = world.store().read("out/tenant/strict", 0, 100).await.unwrap();
        assert_eq!(entries.len(), 1);
    });
}

/// Returns a workshop in a folder, with the back-end of a task.
fn workshop(place: &Path, task: &Task, backend: Arc<dyn Backend>) -> Workshop {
    Workshop {
        backends: BTreeMap::from([(task.backend.clone(), backend)]),
        blobs: Blobs::open(&place.join("blobs")).unwrap(),
        spool: place.join("spool"),
        clock: Clock::system(),
    }
}

#[test]
fn slurm_runs_on_other_machines() {
    let place = tempfile::tempdir().unwrap();
    let (_, task) = task("t", "c", 1, 0);
    let program = place.path().join("hekaton");
    let hekaton = Hekaton {
        helper: Helper::new(program.clone()),
        program,
        keys: place.path().join("keys"),
        options: vec![],
    };
    let script = place.path().join("script");
    let slurm = Slurm { hekaton, script, poll: Duration::ZERO, doubt: Duration::ZERO };
    assert!(workshop(place.path(), &task, Arc::new(slurm)).is_remote(&task));
    assert!(!workshop(place.path(), &task, Arc::new(Nothing)).is_remote(&task));
}

#[test]
fn folders_stay_until_the_ends_of_their_tasks_are_on_disk() {
    simulate(async || {
        let place = tempfile::tempdir().unwrap();
        let world = World::new(2, Bug::None);
        let store = MemoryStore { core: Arc::clone(&world.core), frozen: Frozen::default() };
        let (key, ready) = task("t", "c", 1, 0);
        let workshop = workshop(place.path(), &ready, Arc::new(Nothing));
        let folder = workshop.spool.join(ready.id.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("task"), key.to_string()).unwrap();
        let session = crate::record::SessionId::from_number(1);
        let state = TaskState::Done { output: ready.id, session, at: 1, millis: 1 };
        let done = Task { state, ..ready };
        create_on_disk(&store, &key.to_string(), done, OnDisk::Soon).await.unwrap();
        world.core.set_faults(Faults::BROKEN_DISK);
        workshop.tidy(&store).await;
        assert!(folder.exists());
        world.core.set_faults(Faults::NONE);
        workshop.tidy(&store).await;
        assert!(!folder.exists());
        assert_eq!(world.core.crash(Loss::All), 0);
    });
}
