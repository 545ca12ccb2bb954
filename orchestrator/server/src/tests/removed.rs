//! Jobs and tasks that were removed, and what processes still know of them.

use super::memory::Bug;
use super::retention::{LONG, block, publish, remove, runs, world};
use super::simulation::{SINGLE, published, simulate, strict, submit};
use super::world::{Shape, World, name, output_text};
use crate::record::{Bundles, Chain, Job, JobState, TaskState, encode};
use std::time::Duration;
use tokio::time::sleep;

/// The collector knows an output that was removed with its task, before the job was accepted again: the task is run again. If only the
/// output is missing, the job still ends.
#[test]
fn outputs_that_are_gone_are_looked_for_once() {
    for is_removed in [false, true] {
        simulate(async || {
            let folder = tempfile::tempdir().unwrap();
            let blobs = hekaton_orchestrator_client::Blobs::open(folder.path()).unwrap();
            let mut world = world(9);
            // The provers of this world make outputs without files.
            world.workflows = crate::workflows::Workflows::new(blobs.clone());
            let submissions = world.submissions();
            submissions.make_chain(strict("strict")).await.unwrap();
            let mut wanted = block(&world, 1);
            let input = blobs.put(b"input").unwrap();
            wanted.inputs.values_mut().for_each(|inputs| *inputs = vec![input]);
            let job = submit(&submissions, &wanted).await.unwrap().job;
            let (node, store) = (world.start(Shape::default()), world.store());
            let done = loop {
                sleep(Duration::from_millis(10)).await;
                let tasks = world.core.history().tasks().into_iter();
                let mut done =
                    tasks.filter(|(_, task)| matches!(task.state, TaskState::Done { .. }));
                if let Some((key, _)) = done.next() {
                    break key.to_string();
                }
            };
            if is_removed {
                let rev = store.get(&done).await.unwrap().unwrap().rev;
                store.remove(&done, rev).await.unwrap();
            }
            sleep(Duration::from_secs(10)).await;
            let job = world.core.history().jobs().remove(&job.key()).unwrap();
            assert!(matches!(job.state, JobState::Done { .. }), "{job:?}");
            assert_eq!(runs(&world), 1 + u32::from(is_removed));
            drop(node);
        });
    }
}

/// A process that did not own the partitions of jobs takes them over after the jobs were removed and accepted again.
#[test]
fn tasks_of_removed_jobs_are_forgotten_by_all() {
    simulate(async || {
        let mut world = World::new(16, Bug::None);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let (first, second) = (world.start(Shape::default()), world.start(Shape::default()));
        // Done, and not published: their parents are missing. Each process owns some of their partitions.
        let waiting: Vec<u64> = (1..=8).map(|block| 2 * block + 10).collect();
        publish(&mut world, waiting.clone()).await;
        assert_eq!(runs(&world), 24);
        let history = world.core.history();
        let keys = history.tasks().into_keys().map(|key| key.to_string());
        for key in keys.chain(history.jobs().into_keys().map(|key| key.to_string())) {
            remove(&world, &key).await;
        }
        drop(second);
        publish(&mut world, waiting).await;
        let is_done = |job: &Job| matches!(job.state, JobState::Done { .. });
        assert!(world.core.history().jobs().values().all(is_done));
        assert_eq!(runs(&world), 48);
        drop(first);
    });
}

/// A dead task was removed, and another process than the one that ended its job revives it.
#[test]
fn tasks_that_are_gone_are_made_again() {
    simulate(async || {
        let mut world = World::new(17, Bug::None);
        let (submissions, tenant) = (world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        world.provers.impossible = 1_000;
        let first = world.start(Shape::default());
        world.provers.impossible = 0;
        let second = world.start(Shape { slots: 0, ..Shape::default() });
        let waiting: Vec<u64> = (1..=8).map(|block| 2 * block + 10).collect();
        publish(&mut world, waiting).await;
        let history = world.core.history();
        let is_dead = |job: &Job| matches!(job.state, JobState::Dead { .. });
        assert!(history.jobs().len() == 8 && history.jobs().values().all(is_dead));
        for key in history.tasks().into_keys() {
            remove(&world, &key.to_string()).await;
        }
        drop(first);
        let worker = world.start(Shape { collects: false, ..Shape::default() });
        for job in history.jobs().values() {
            submissions.requeue(&tenant, &job.handle()).await.unwrap();
        }
        sleep(Duration::from_secs(60)).await;
        let is_done = |job: &Job| matches!(job.state, JobState::Done { .. });
        assert!(world.core.history().jobs().values().all(is_done));
        drop((second, worker));
    });
}

/// A write of a process that was frozen may create a task after its job was removed.
#[test]
fn a_task_without_a_job_is_not_run_forever() {
    simulate(async || {
        let mut world = world(6);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape { backends: &[], ..Shape::default() });
        let (key, task) = super::records::task("tenant", "strict", 1, 0);
        world.store().create(&key.to_string(), encode(&task, 0)).await.unwrap();
        sleep(Duration::from_secs(60)).await;
        let found = world.core.history().tasks().remove(&key).unwrap();
        assert_eq!(found.state.word(), "cancelled");
        sleep(LONG).await;
        assert!(world.core.history().tasks().is_empty());
        drop(node);
    });
}

/// A bundle is made once its inputs are there, and is not dead because one was missing for a moment.
#[test]
fn bundles_wait_for_missing_inputs() {
    simulate(async || {
        let folder = tempfile::tempdir().unwrap();
        let blobs = hekaton_orchestrator_client::Blobs::open(folder.path()).unwrap();
        let mut world = World::new(18, Bug::None);
        // The provers of this world make outputs without files.
        world.workflows = crate::workflows::Workflows::new(blobs.clone());
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let workflow = world.workflow(SINGLE);
        let bundles =
            Bundles { of: name("strict"), blocks: 1, workflow, input: name("a"), lane: 0 };
        let bundled = Chain { bundles: Some(bundles), ..strict("bundles") };
        submissions.make_chain(bundled).await.unwrap();
        let mut wanted = block(&world, 1);
        let input = blobs.put(b"input").unwrap();
        wanted.inputs.values_mut().for_each(|inputs| *inputs = vec![input]);
        submit(&submissions, &wanted).await.unwrap();
        let node = world.start(Shape::default());
        sleep(Duration::from_secs(30)).await;
        let history = world.core.history();
        assert_eq!(published(&history, "strict"), ["s1"]);
        assert!(!history.jobs().values().any(|job| job.chain.as_str() == "bundles"));
        for task in history.tasks().values() {
            blobs.put(output_text(task).as_bytes()).unwrap();
        }
        sleep(Duration::from_secs(30)).await;
        assert_eq!(published(&world.core.history(), "bundles").len(), 1);
        drop(node);
    });
}
