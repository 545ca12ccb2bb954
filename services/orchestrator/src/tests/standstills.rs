//! What stands still is found, and why; and mistakes that make chains stand still are found by the same rule.

use super::memory::Bug;
use super::simulation::{SINGLE, published, settle, simulate, strict, submission, submit};
use super::world::{Provers, Shape, World, name};
use crate::history::{History, Liveness};
use crate::intake::{Intake, Submission};
use crate::record::{Job, JobKey, JobState, decode};
use crate::standstill::{Cause, Standstill};
use crate::workflow::Workflow;
use std::time::Duration;
use tokio::time::sleep;

const PATIENCE: Duration = Duration::from_secs(60);

/// The law over a history, as long after its end as nothing may happen.
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

fn block(workflow: crate::id::Digest, block: u64, id: &str, parent: &str) -> Submission {
    submission("strict", block, id, Some(parent), workflow)
}

/// The only one that stands still, as the process says and as the law over the history does.
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
        let (workflow, intake, tenant) = (world.workflow(SINGLE), world.intake(), name("tenant"));
        intake.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        for wanted in [block(workflow, 1, "b1", "genesis"), block(workflow, 3, "b3", "b2")] {
            submit(&intake, &wanted).await.unwrap();
        }
        submit(&intake, &block(workflow, 4, "b4", "b3")).await.unwrap();
        settle(&world).await;
        let one = only(&world, "block 3 'b3' waits for its parent 'b2', which was never submitted");
        assert!(one.halts && one.cause.is_submitters());

        // What was cancelled is told from what was never there.
        let two = submit(&intake, &block(workflow, 2, "b2", "b1")).await.unwrap().job.handle();
        intake.cancel(&tenant, &two, "by mistake").await.unwrap();
        settle(&world).await;
        only(&world, "waits for its parent 'b2', which was cancelled after 'b1' (by mistake)");
        submit(&intake, &block(workflow, 2, "other", "b1")).await.unwrap();
        settle(&world).await;
        only(&world, "waits for its parent 'b2', which was cancelled after 'b1' (by mistake)");
        drop(node);
    });
}

#[test]
fn causes_are_told_apart() {
    simulate(async || {
        // Two that are each other's ancestors.
        let mut world = impatient(2);
        let (workflow, intake, tenant) = (world.workflow(SINGLE), world.intake(), name("tenant"));
        intake.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        let two = submit(&intake, &block(workflow, 2, "x", "y")).await.unwrap().job.handle();
        submit(&intake, &block(workflow, 1, "y", "x")).await.unwrap();
        settle(&world).await;
        only(&world, "which waits for this one: cancel one of them");
        intake.cancel(&tenant, &two, "a circle").await.unwrap();
        settle(&world).await;
        only(&world, "waits for its parent 'x', which was cancelled");
        drop(node);

        // A dead block; behind it, nothing else is named.
        let mut world = impatient(3);
        let (workflow, intake) = (world.workflow(SINGLE), world.intake());
        intake.make_chain(strict("strict")).await.unwrap();
        world.provers = Provers { impossible: 1_000, ..Provers::GOOD };
        let node = world.start(Shape::default());
        let dead = submit(&intake, &block(workflow, 1, "b1", "genesis")).await.unwrap().job;
        settle(&world).await;
        drop(node);
        world.provers = Provers::GOOD;
        let node = world.start(Shape::default());
        submit(&intake, &block(workflow, 2, "b2", "b1")).await.unwrap();
        settle(&world).await;
        only(&world, "block 1 'b1' is dead: task");
        intake.skip(&tenant, &dead.handle()).await.unwrap();
        settle(&world).await;
        none(&world);
        drop(node);

        // Nobody has the back-end; then there is somebody.
        let mut world = impatient(4);
        let foreign = Workflow::parse(&SINGLE.replace("backend = \"prove\"", "backend = \"gpu\""));
        let foreign = world.workflows.put(foreign.unwrap()).unwrap();
        let intake = world.intake();
        intake.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        submit(&intake, &block(foreign, 1, "b1", "genesis")).await.unwrap();
        settle(&world).await;
        let found = world.watched.standstills();
        assert!(found[0].to_string().contains("no live process has: 'gpu'"), "{found:?}");
        let worker = world.start(Shape { backends: &["gpu"], ..Shape::default() });
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["b1"]);
        sleep(Duration::from_secs(60)).await;
        none(&world);
        drop((node, worker));
    });
}

/// A task that takes long is not one that stands still.
#[test]
fn what_runs_does_not_stand_still() {
    simulate(async || {
        let mut world = impatient(5);
        let (workflow, intake) = (world.workflow(SINGLE), world.intake());
        intake.make_chain(strict("strict")).await.unwrap();
        world.provers = Provers { least_millis: 600_000, most_millis: 600_000, ..Provers::GOOD };
        let node = world.start(Shape { slots: 1, ..Shape::default() });
        for (height, id, parent) in [(1, "b1", "genesis"), (2, "b2", "b1"), (3, "b3", "b2")] {
            submit(&intake, &block(workflow, height, id, parent)).await.unwrap();
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

/// A submission by the rule that was there before: a block whose name is followed already was refused, and its client gave up.
async fn submit_as_before(world: &World, intake: &Intake, wanted: &Submission) {
    let key = JobKey {
        tenant: wanted.tenant.clone(),
        chain: wanted.chain.clone(),
        slot: wanted.id.clone(),
    };
    let follower = world.store().get(&key.to_string()).await.unwrap();
    let follower = follower.map(|entry| decode::<Job>(&entry).unwrap().value);
    if follower.is_none_or(|job| matches!(job.state, JobState::Cancelled { .. })) {
        submit(intake, wanted).await.unwrap();
    }
}

/// The law is worth something: it finds a rule that refuses blocks for ever, and events that are lost.
#[test]
fn mistakes_that_make_chains_stand_still_are_found() {
    simulate(async || {
        let mut world = impatient(6);
        let (workflow, intake) = (world.workflow(SINGLE), world.intake());
        intake.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        for (height, id, parent) in [(1, "b1", "genesis"), (3, "b3", "b2"), (2, "b2", "b1")] {
            submit_as_before(&world, &intake, &block(workflow, height, id, parent)).await;
        }
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["b1"]);
        let one = only(&world, "block 3 'b3' waits for its parent 'b2', which was never submitted");
        assert!(matches!(one.cause, Cause::NoParent { .. }));
        drop(node);

        // Nobody hears of jobs that are done.
        let mut world = World::new(7, Bug::LostEvents);
        world.patience = PATIENCE;
        let (workflow, intake) = (world.workflow(SINGLE), world.intake());
        intake.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        submit(&intake, &block(workflow, 1, "b1", "genesis")).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), [""; 0]);
        let law = broken_law(&world.core.history());
        assert!(
            law.len() == 1 && law[0].contains("is done, has its turn and is not published"),
            "{law:?}"
        );
        drop(node);
    });
}
