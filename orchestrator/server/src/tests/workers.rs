//! Workers that are at fault, together with good ones or alone, and workers that die.

use super::memory::Bug;
use super::simulation::{SINGLE, broken, published, settle, simulate, strict, submission, submit};
use super::world::{Node, Provers, Shape, World, name};
use crate::record::{Handle, Job, JobState};
use std::time::Duration;
use tokio::time::sleep;

/// Ways in which all attempts of a worker can fail.
fn faults() -> [(&'static str, Provers); 4] {
    let bad = Provers { most_millis: 2, ..Provers::GOOD };
    [
        ("failures", Provers { failures: 1_000, ..bad }),
        ("wrong outputs", Provers { wrong: 1_000, ..bad }),
        ("refusals", Provers { impossible: 1_000, ..bad }),
        ("returns", Provers { again: 1_000, ..bad }),
    ]
}

/// Starts a collector without slots, and a strict chain of the given number of blocks.
async fn world_with(seed: u64, count: u64) -> (World, Node, Vec<Handle>) {
    let mut world = World::new(seed, Bug::None);
    let (workflow, submissions) = (world.workflow(SINGLE), world.submissions());
    submissions.make_chain(strict("strict")).await.unwrap();
    let collector = world.start(Shape { slots: 0, ..Shape::default() });
    let mut handles = Vec::new();
    for block in 1..=count {
        let (id, parent) = (format!("b{block}"), format!("b{}", block - 1));
        let parent = if block == 1 { "genesis" } else { &parent };
        let wanted = submission("strict", block, &id, Some(parent), workflow);
        handles.push(submit(&submissions, &wanted).await.unwrap().job.handle());
    }
    (world, collector, handles)
}

fn worker(world: &mut World, provers: Provers) -> Node {
    world.provers = provers;
    world.start(Shape { collects: false, slots: 1, ..Shape::default() })
}

#[test]
fn a_bad_worker_beside_a_good_one_spoils_nothing() {
    for (fault, bad) in faults() {
        simulate(async || {
            let (mut world, collector, handles) = world_with(1, 20).await;
            let good = worker(&mut world, Provers::GOOD);
            sleep(Duration::from_millis(1_500)).await;
            let bad = worker(&mut world, bad);
            settle(&world).await;
            let history = world.core.history();
            assert_eq!(published(&history, "strict").len(), 20, "{fault}");
            let dead = history.jobs().into_values().find(|job| job.generation > 0);
            assert_eq!(dead, None, "{fault}: nobody had to help");
            assert_eq!(broken(&world, &handles), [""; 0], "{fault}");
            drop((bad, good, collector));
        });
    }
}

/// While the good worker is briefly away, the bad one does not fail its tasks.
#[test]
fn a_good_worker_may_be_restarted_beside_a_bad_one() {
    simulate(async || {
        let (mut world, collector, handles) = world_with(2, 20).await;
        let mut good = worker(&mut world, Provers::GOOD);
        let bad = worker(&mut world, faults()[0].1);
        for _ in 0..8 {
            sleep(Duration::from_secs(3)).await;
            drop(good);
            sleep(Duration::from_secs(4)).await;
            good = worker(&mut world, Provers::GOOD);
        }
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict").len(), 20);
        assert_eq!(broken(&world, &handles), [""; 0]);
        drop((bad, good, collector));
    });
}

fn job(world: &World, id: &str) -> Job {
    world.core.history().jobs().into_values().find(|job| job.id.as_str() == id).unwrap()
}

/// Blocks are dead within minutes if all workers are bad: the reason names the back-end, and processes report themselves at fault.
#[test]
fn where_all_workers_are_bad_somebody_is_told() {
    for (fault, bad) in &faults()[..3] {
        simulate(async || {
            let (mut world, collector, _) = world_with(3, 6).await;
            let bad = [*bad, *bad].map(|bad| worker(&mut world, bad));
            sleep(Duration::from_secs(30)).await;
            let sessions = world.sessions().await;
            let quarantined = sessions.iter().filter(|it| !it.quarantined.is_empty()).count();
            assert_eq!(quarantined > 0, *fault != "refusals", "{fault}: {sessions:?}");
            // Every tenant may read why; details of failed tasks are only visible to their tenant.
            let whys = sessions.iter().flat_map(|it| it.quarantined.values());
            for why in whys {
                assert!(why.contains("see the log"), "{why}");
                assert!(!why.contains("exit code") && !why.contains("verify"), "{why}");
            }
            sleep(Duration::from_secs(900)).await;
            if *fault != "wrong outputs" {
                let dead = job(&world, "b1");
                let JobState::Dead { reason, at } = &dead.state else {
                    panic!("{fault}: {dead:?}")
                };
                assert!(reason.contains("back-end 'prove'"), "{reason}");
                assert!(at - dead.accepted < 300_000, "{fault}: after {} ms", at - dead.accepted);
            }
            if *fault == "wrong outputs" {
                // No process takes tasks, and the standstill is reported with the reason.
                let found = world.watched.standstills();
                let text = found.first().map(ToString::to_string).unwrap_or_default();
                assert!(text.contains("the back-ends 'prove' are in quarantine"), "{found:?}");
            }
            drop((bad, collector));
        });
    }
}

/// A back-end in quarantine tries a task from time to time, and is trusted again when it has done one.
#[test]
fn a_back_end_that_was_mended_is_trusted_again() {
    simulate(async || {
        let (mut world, collector, handles) = world_with(4, 60).await;
        let bad = Provers { bad_for: Duration::from_secs(60), ..faults()[0].1 };
        let bad = worker(&mut world, bad);
        let good = worker(&mut world, Provers { most_millis: 6_000, ..Provers::GOOD });
        sleep(Duration::from_secs(20)).await;
        let quarantined = async |world: &World| {
            let sessions = world.sessions().await;
            sessions.iter().filter(|session| !session.quarantined.is_empty()).count()
        };
        assert_eq!(quarantined(&world).await, 1);
        sleep(Duration::from_secs(130)).await;
        assert_eq!(quarantined(&world).await, 0);
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict").len(), 60);
        assert_eq!(broken(&world, &handles), [""; 0]);
        drop((bad, good, collector));
    });
}

/// No task is dead although processes die more often than a task may fail; a task that kills each process that runs it is dead at last.
#[test]
fn deaths_of_processes_have_a_limit_of_their_own() {
    simulate(async || {
        let (mut world, collector, handles) = world_with(5, 1).await;
        let slow = Provers { most_millis: 60_000, least_millis: 60_000, ..Provers::GOOD };
        let die = async |world: &mut World| {
            let doomed = worker(world, slow);
            sleep(Duration::from_secs(4)).await;
            drop(doomed);
            sleep(Duration::from_secs(8)).await;
        };
        for _ in 0..10 {
            die(&mut world).await;
        }
        let tasks = world.core.history().tasks();
        let deaths = tasks.values().map(|task| (task.deaths, task.attempts)).max().unwrap();
        assert_eq!(deaths, (10, 0));
        for _ in 0..12 {
            die(&mut world).await;
        }
        let dead = job(&world, "b1");
        let JobState::Dead { reason, .. } = &dead.state else { panic!("{dead:?}") };
        assert!(reason.contains("20 processes with the back-end 'prove' died of it"), "{reason}");
        let submissions = world.submissions();
        submissions.requeue(&name("tenant"), &handles[0]).await.unwrap();
        let good = worker(&mut world, Provers::GOOD);
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["b1"]);
        assert_eq!(broken(&world, &handles), [""; 0]);
        drop((good, collector));
    });
}

/// Tenants choose the limits and inputs of tasks, so these do not count against a back-end; nor does what is wrong with one or two jobs.
#[test]
fn tasks_spoil_no_back_end() {
    let slow = Provers { least_millis: 5_000, most_millis: 5_000, ..Provers::GOOD };
    let [failing, wrong, impossible, _] = faults().map(|(_, bad)| bad);
    let late = "it took more than 1 s";
    for (jobs, provers, seconds, why) in [
        (5, slow, 1, late),
        (5, impossible, 60, "not a witness"),
        (2, failing, 60, "exit code 4"),
        (2, wrong, 60, "does not verify"),
    ] {
        simulate(async || {
            let mut world = World::new(6, Bug::None);
            let limited = SINGLE.to_owned() + &format!("seconds = {seconds}\n");
            let (workflow, submissions) = (world.workflow(&limited), world.submissions());
            submissions.make_chain(strict("strict")).await.unwrap();
            let bad = worker(&mut world, provers);
            let collector = world.start(Shape { slots: 0, ..Shape::default() });
            for block in 1..=jobs {
                let (id, parent) = (format!("b{block}"), format!("b{}", block - 1));
                let parent = if block == 1 { "genesis" } else { &parent };
                submit(&submissions, &submission("strict", block, &id, Some(parent), workflow))
                    .await
                    .unwrap();
            }
            let (mut failed, mut most) = (0, 0);
            for _ in 0..300 {
                sleep(Duration::from_secs(1)).await;
                let sessions = world.sessions().await;
                assert!(sessions.iter().all(|it| it.quarantined.is_empty()), "{why}: {sessions:?}");
                let tasks = world.core.history().tasks();
                let with = tasks.values().filter(|task| {
                    task.last_failure.as_ref().is_some_and(|found| found.contains(why))
                });
                failed = with.count();
                most = tasks.len().max(most);
            }
            assert!(failed >= 4, "{why}: {failed} of {most} tasks");
            drop((bad, collector));
        });
    }
}
