//! Tests that standstills are found with their causes, and that the same rule finds mistakes that make chains stand still.

use super::memory::Bug;
use super::simulation::{
    SINGLE, published, reversal, settle, simulate, strict, submission, submit,
};
use super::world::{Provers, Shape, World, name};
use crate::history::{History, Liveness};
use crate::record::{Job, JobKey, JobState, decode};
use crate::standstill::{Cause, Standstill};
use crate::submissions::{Submission, Submissions};
use hekaton_orchestrator_client::Workflow;
use std::time::Duration;
use tokio::time::sleep;

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the violations of the law over a history, evaluated as late after its end as the patience allows.
fn broken_law(history: &History) -> Vec<String> {
    let end = history.records.last().map_or(0, |version| version.at);
    let now = end + u64::try_from(PATIENCE.as_millis()).unwrap();
    let history =
        History { liveness: Some(Liveness { now, patience: PATIENCE }), ..history.clone() };
    history.violations().into_iter().map(|violation| violation.to_string()).collect()
}

fn impatient(seed: u64) -> World {
    let mut world = World::new(seed, Bug::None);
    world.patience = PATIENCE;
    world
}

fn block(
    workflow: hekaton_orchestrator_client::Digest,
    block: u64,
    id: &str,
    parent: &str,
) -> Submission {
    submission("strict", block, id, Some(parent), workflow)
}

/// Returns the only standstill, on which the process and the law over the history agree.
fn only(world: &World, why: &str) -> Standstill {
    let found = world.watched.standstills();
    let [one] = &found[..] else { panic!("{found:?}") };
    let text = one.to_string();
    assert!(text.contains(why), "{text}");
    let law = broken_law(&world.core.history());
    let cause = one.cause.to_string();
    assert!(law.len() == 1 && law[0].contains(&cause), "{cause}: {law:?}");
    one.clone()
}

fn none(world: &World) {
    let found = world.watched.standstills();
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(broken_law(&world.core.history()), [""; 0]);
}

#[test]
fn a_block_without_its_parent_is_named_with_it() {
    simulate(async || {
        let mut world = impatient(1);
        let (workflow, submissions, tenant) =
            (world.workflow(SINGLE), world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        for wanted in [block(workflow, 1, "b1", "genesis"), block(workflow, 3, "b3", "b2")] {
            submit(&submissions, &wanted).await.unwrap();
        }
        submit(&submissions, &block(workflow, 4, "b4", "b3")).await.unwrap();
        settle(&world).await;
        let one = only(&world, "block 3 'b3' waits for its parent 'b2', which was never submitted");
        assert!(one.halts && one.cause.is_submitters());

        // A parent that was cancelled is distinguished from one that was never submitted.
        let two = submit(&submissions, &block(workflow, 2, "b2", "b1")).await.unwrap().job.handle();
        submissions.cancel(&tenant, &two, "by mistake").await.unwrap();
        settle(&world).await;
        only(&world, "waits for its parent 'b2', which was cancelled after 'b1' (by mistake)");
        submit(&submissions, &block(workflow, 2, "other", "b1")).await.unwrap();
        settle(&world).await;
        only(&world, "waits for its parent 'b2', which was cancelled after 'b1' (by mistake)");
        drop(node);
    });
}

#[test]
fn causes_are_told_apart() {
    simulate(async || {
        // Two blocks that are each other's ancestors.
        let mut world = impatient(2);
        let (workflow, submissions, tenant) =
            (world.workflow(SINGLE), world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        let two = submit(&submissions, &block(workflow, 2, "x", "y")).await.unwrap().job.handle();
        submit(&submissions, &block(workflow, 1, "y", "x")).await.unwrap();
        settle(&world).await;
        only(&world, "which waits for this one: cancel one of them");
        submissions.cancel(&tenant, &two, "a circle").await.unwrap();
        settle(&world).await;
        only(&world, "waits for its parent 'x', which was cancelled");
        drop(node);

        // A dead block; behind it, nothing else is named.
        let mut world = impatient(3);
        let (workflow, submissions) = (world.workflow(SINGLE), world.submissions());
        submissions.make_chain(strict("strict")).await.unwrap();
        world.provers = Provers { impossible: 1_000, ..Provers::GOOD };
        let node = world.start(Shape::default());
        let dead = submit(&submissions, &block(workflow, 1, "b1", "genesis")).await.unwrap().job;
        settle(&world).await;
        drop(node);
        world.provers = Provers::GOOD;
        let node = world.start(Shape::default());
        submit(&submissions, &block(workflow, 2, "b2", "b1")).await.unwrap();
        settle(&world).await;
        only(&world, "block 1 'b1' is dead: task");
        submissions.skip(&tenant, &dead.handle()).await.unwrap();
        settle(&world).await;
        none(&world);
        drop(node);

        // At first no process has the back-end; then one has.
        let mut world = impatient(4);
        let foreign = Workflow::parse(&SINGLE.replace("backend = \"prove\"", "backend = \"gpu\""));
        let foreign = world.workflows.put(foreign.unwrap()).unwrap();
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        submit(&submissions, &block(foreign, 1, "b1", "genesis")).await.unwrap();
        settle(&world).await;
        let found = world.watched.standstills();
        assert!(found[0].to_string().contains("no live process has: 'gpu'"), "{found:?}");
        assert!(found[0].cause.is_submitters());
        let worker = world.start(Shape { backends: &["gpu"], ..Shape::default() });
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["b1"]);
        sleep(Duration::from_secs(60)).await;
        none(&world);
        // A block that was published and is gone can only be brought back by the operator.
        drop(worker);
        submit(&submissions, &block(foreign, 2, "b2", "b1")).await.unwrap();
        settle(&world).await;
        let found = world.watched.standstills();
        assert!(
            found[0].to_string().contains("no live process has any longer: 'gpu'"),
            "{found:?}"
        );
        assert!(!found[0].cause.is_submitters());
        drop(node);
    });
}

/// Returns the standstills according to the history alone, evaluated `pause` after the last write.
fn after_the_end(world: &World, pause: Duration) -> Vec<Standstill> {
    let history = world.core.history();
    let end = history.records.last().map_or(0, |version| version.at);
    history.standstills(end + u64::try_from(pause.as_millis()).unwrap(), PATIENCE)
}

/// A block that was published and then torn off is not published: its descendants wait again, even if they were not cancelled.
#[test]
fn what_hangs_from_what_was_torn_off_is_named() {
    use crate::record::{Publication, encode};
    for replaced in [false, true] {
        simulate(async || {
            let mut world = impatient(8);
            let (workflow, submissions, store) =
                (world.workflow(SINGLE), world.submissions(), world.store());
            submissions.make_chain(strict("strict")).await.unwrap();
            let node = world.start(Shape::default());
            for (height, id, parent) in [(1, "b1", "genesis"), (2, "b2", "b1"), (3, "b3", "b2")] {
                submit(&submissions, &block(workflow, height, id, parent)).await.unwrap();
            }
            settle(&world).await;
            none(&world);
            let log = "out/tenant/strict";
            let tear = async || {
                let tail = store.tail(log).await.unwrap().map(|tail| tail.rev);
                let back = Publication::Revert { to: name("b1"), block: 1 };
                store.append(log, encode(&back, 0), tail).await.unwrap();
            };
            // Nothing is cancelled: the publisher publishes the blocks again.
            tear().await;
            settle(&world).await;
            assert_eq!(published(&world.core.history(), "strict"), ["b1", "b2", "b3"]);
            none(&world);
            // As if both had been published while the first one was being cancelled.
            let slot = JobKey { tenant: name("tenant"), chain: name("strict"), slot: name("b1") };
            let found = store.get(&slot.to_string()).await.unwrap().unwrap();
            let state = JobState::Cancelled { reason: "half".into(), at: 1 };
            let job = Job { state, ..decode::<Job>(&found).unwrap().value };
            store.update(&slot.to_string(), encode(&job, 0), found.rev).await.unwrap();
            match replaced {
                // This tears them off, too; and the place of the block is taken before any process has looked.
                true => {
                    drop(submit(&submissions, &block(workflow, 2, "other", "b1")).await.unwrap())
                }
                false => tear().await,
            }
            settle(&world).await;
            let out = published(&world.core.history(), "strict");
            assert_eq!(out, if replaced { vec!["b1", "other"] } else { vec!["b1"] });
            only(&world, "block 3 'b3' waits for its parent 'b2', which was");
            if !replaced {
                submit(&submissions, &block(workflow, 2, "b2", "b1")).await.unwrap();
                settle(&world).await;
                assert_eq!(published(&world.core.history(), "strict"), ["b1", "b2", "b3"]);
                none(&world);
            }
            drop(node);
        });
    }
}

/// A client that keeps taking blocks back publishes nothing, and hides nothing.
#[test]
fn a_chain_that_is_only_reverted_stands_still() {
    simulate(async || {
        let mut world = impatient(9);
        let (workflow, submissions, tenant) =
            (world.workflow(SINGLE), world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape { backends: &["other"], ..Shape::default() });
        submit(&submissions, &block(workflow, 1, "b1", "genesis")).await.unwrap();
        for _ in 0..12 {
            submissions.revert(&tenant, &name("strict"), &reversal("b1", 1)).await.unwrap();
            sleep(Duration::from_secs(10)).await;
        }
        let found = world.watched.standstills();
        let [one] = &found[..] else { panic!("{found:?}") };
        assert!(matches!(one.cause, Cause::NoBackend { .. }) && one.halts, "{found:?}");
        assert_eq!(after_the_end(&world, 2 * PATIENCE).len(), 1);
        drop(node);
    });
}

/// Blocks that come and go in a place keep it from being published, however often something happens there.
#[test]
fn a_place_whose_blocks_come_and_go_stands_still() {
    simulate(async || {
        let mut world = impatient(10);
        let (workflow, submissions, tenant) =
            (world.workflow(SINGLE), world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        world.provers = Provers { least_millis: 40_000, most_millis: 40_000, ..Provers::GOOD };
        let node = world.start(Shape::default());
        let mut told = 0;
        for round in 0..20 {
            let id = ["one", "other"][round % 2];
            let job = submit(&submissions, &block(workflow, 1, id, "genesis")).await.unwrap().job;
            sleep(Duration::from_secs(10)).await;
            for found in
                [world.watched.standstills().to_vec(), after_the_end(&world, Duration::ZERO)]
            {
                told += usize::from(
                    matches!(&found[..], [one] if matches!(one.cause, Cause::Restarted { times } if times >= 5)),
                );
                // Not before its time.
                assert!(found.is_empty() || round >= 5, "{found:?}");
            }
            submissions.cancel(&tenant, &job.handle(), "again").await.unwrap();
            sleep(Duration::from_secs(1)).await;
        }
        assert!(told >= 20, "told {told} times of 40");
        // Left alone, the block is proven and published, and is not reported.
        submit(&submissions, &block(workflow, 1, "one", "genesis")).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["one"]);
        none(&world);
        drop(node);
    });
}

/// A log that cannot be read does not hide standstills elsewhere, or earlier ones.
#[test]
fn a_log_that_cannot_be_read_hides_no_other_chain() {
    simulate(async || {
        let mut world = impatient(11);
        let (workflow, submissions, store) =
            (world.workflow(SINGLE), world.submissions(), world.store());
        for chain in ["first", "strict"] {
            submissions.make_chain(strict(chain)).await.unwrap();
        }
        let node = world.start(Shape::default());
        let lost = submission("first", 2, "b2", Some("b1"), workflow);
        submit(&submissions, &lost).await.unwrap();
        settle(&world).await;
        only(&world, "block 2 'b2' waits for its parent 'b1'");
        let broken = bytes::Bytes::from_static(b"no publication");
        store.append("out/tenant/first", broken, None).await.unwrap();
        submit(&submissions, &block(workflow, 2, "c2", "c1")).await.unwrap();
        settle(&world).await;
        let found = world.watched.standstills();
        let named: Vec<(&str, &str)> =
            found.iter().map(|one| (one.chain.as_str(), one.id.as_str())).collect();
        assert_eq!(named, [("first", "b2"), ("strict", "c2")]);
        drop(node);
    });
}

/// A task that takes long is not a standstill.
#[test]
fn what_runs_does_not_stand_still() {
    simulate(async || {
        let mut world = impatient(5);
        let (workflow, submissions) = (world.workflow(SINGLE), world.submissions());
        submissions.make_chain(strict("strict")).await.unwrap();
        world.provers = Provers { least_millis: 600_000, most_millis: 600_000, ..Provers::GOOD };
        let node = world.start(Shape { slots: 1, ..Shape::default() });
        for (height, id, parent) in [(1, "b1", "genesis"), (2, "b2", "b1"), (3, "b3", "b2")] {
            submit(&submissions, &block(workflow, height, id, parent)).await.unwrap();
        }
        // Each has three tasks, one after the other.
        for _ in 0..95 {
            sleep(Duration::from_secs(60)).await;
            let found = world.watched.standstills();
            assert!(found.is_empty(), "{found:?}");
        }
        assert_eq!(published(&world.core.history(), "strict"), ["b1", "b2", "b3"]);
        none(&world);
        drop(node);
    });
}

/// Submits by the former rule: a block that another block already names as its parent was refused, and its client gave up.
async fn submit_as_before(world: &World, submissions: &Submissions, wanted: &Submission) {
    let key = JobKey {
        tenant: wanted.tenant.clone(),
        chain: wanted.chain.clone(),
        slot: wanted.id.clone(),
    };
    let follower = world.store().get(&key.to_string()).await.unwrap();
    let follower = follower.map(|entry| decode::<Job>(&entry).unwrap().value);
    if follower.is_none_or(|job| matches!(job.state, JobState::Cancelled { .. })) {
        submit(submissions, wanted).await.unwrap();
    }
}

/// The law finds a rule that refuses blocks forever, and events that are lost.
#[test]
fn mistakes_that_make_chains_stand_still_are_found() {
    simulate(async || {
        let mut world = impatient(6);
        let (workflow, submissions) = (world.workflow(SINGLE), world.submissions());
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        for (height, id, parent) in [(1, "b1", "genesis"), (3, "b3", "b2"), (2, "b2", "b1")] {
            submit_as_before(&world, &submissions, &block(workflow, height, id, parent)).await;
        }
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["b1"]);
        let one = only(&world, "block 3 'b3' waits for its parent 'b2', which was never submitted");
        assert!(matches!(one.cause, Cause::NoParent { .. }));
        drop(node);

        // No component is notified of jobs that are done.
        let mut world = World::new(7, Bug::LostEvents);
        world.patience = PATIENCE;
        let (workflow, submissions) = (world.workflow(SINGLE), world.submissions());
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        submit(&submissions, &block(workflow, 1, "b1", "genesis")).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), [""; 0]);
        let law = broken_law(&world.core.history());
        assert!(
            law.len() == 1
                && law[0].contains("is done and its turn has come, but it is not published"),
            "{law:?}"
        );
        drop(node);
    });
}
