//! Single stories in the simulated world.

use super::memory::{Bug, Faults};
use super::simulation::{
    JOIN, SINGLE, broken, published, reversal, settle, simulate, strict, submission, submit,
};
use super::world::{Node, Provers, Shape, World, name};
use crate::record::{Bundles, Chain, Handle, JobState, Order, Publication, TaskState, decode};
use crate::standstill::{Cause, PATIENCE};
use crate::submissions::SubmissionError;
use hekaton_orchestrator_client::Digest;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// A store with one job of one task, which is done and published.
async fn done_world() -> (World, Handle) {
    let mut world = World::new(7, Bug::None);
    let workflow = world.workflow(SINGLE);
    let submissions = world.submissions();
    submissions.make_chain(strict("strict")).await.unwrap();
    let wanted = submission("strict", 1, "one", Some("genesis"), workflow);
    let handle = submit(&submissions, &wanted).await.unwrap().job.handle();
    let node = world.start(Shape::default());
    settle(&world).await;
    drop(node);
    assert_eq!(broken(&world, std::slice::from_ref(&handle)), [""; 0]);
    (world, handle)
}

/// The checker finds each write of these processes, which cheat.
#[test]
fn writers_that_cheat_are_found() {
    use crate::record::{Task, TaskKey, encode};
    simulate(async || {
        let (world, _) = done_world().await;
        let (store, history) = (world.store(), world.core.history());
        let (key, task): (TaskKey, Task) = history.tasks().into_iter().next().unwrap();
        let rev = store.get(&key.to_string()).await.unwrap().unwrap().rev;
        let downgraded = Task { state: TaskState::Ready, ..task.clone() };
        store.update(&key.to_string(), encode(&downgraded, 0), rev).await.unwrap();
        let found = world.core.history().violations();
        assert!(found.iter().any(|it| it.why.contains("from done to ready")), "{found:?}");

        // Done without a lease, of a task that was never claimed.
        let other = TaskKey { index: 9, ..key };
        let ready = Task { state: TaskState::Ready, ..task.clone() };
        let rev = store.create(&other.to_string(), encode(&ready, 0)).await.unwrap();
        store.update(&other.to_string(), encode(&task, 0), rev).await.unwrap();
        let found = world.core.history().violations();
        assert!(found.iter().any(|it| it.why.contains("from ready to done")), "{found:?}");

        // A block that does not follow the tail, and one that was never done.
        let log = "out/tenant/strict";
        let tail = store.tail(log).await.unwrap().unwrap();
        let Publication::Block { job, outputs, .. } = decode(&tail).unwrap().value else {
            panic!("a block was published");
        };
        let rogue = Publication::Block {
            block: 3,
            id: name("three"),
            parent: name("two"),
            generation: 0,
            job,
            outputs,
        };
        store.append(log, encode(&rogue, 0), Some(tail.rev)).await.unwrap();
        let found = world.core.history().violations();
        for why in ["does not follow the tail", "'three' was not done"] {
            assert!(found.iter().any(|it| it.why.contains(why)), "{why}: {found:?}");
        }
    });
}

/// A publisher that stalls between its look at a job and its append must not get past a re-org.
#[test]
fn nothing_cancelled_is_published_after_a_reversal() {
    use crate::record::encode;
    simulate(async || {
        let (mut world, _) = done_world().await;
        let (store, submissions) = (world.store(), world.submissions());
        let workflow = world.workflow(SINGLE);
        let node = world.start(Shape::default());
        let log = "out/tenant/strict";
        // The publisher's view of the tail, before the next block is out.
        let before = store.tail(log).await.unwrap().unwrap();
        submissions.revert(&name("tenant"), &name("strict"), &reversal("one", 1)).await.unwrap();
        let late = Publication::Skip { block: 2, id: name("two"), parent: name("one") };
        let append = store.append(log, encode(&late, 0), Some(before.rev)).await;
        assert!(append.is_err(), "the reversal to the tail itself must stop it, too");

        // A, B, A: the first branch is live again, and its tasks are not run again.
        let a = submission("strict", 2, "a", Some("one"), workflow);
        submit(&submissions, &a).await.unwrap();
        settle(&world).await;
        let runs = world.runs.lock().unwrap().values().sum::<u32>();
        submissions.revert(&name("tenant"), &name("strict"), &reversal("one", 1)).await.unwrap();
        submit(&submissions, &submission("strict", 2, "b", Some("one"), workflow)).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["one", "b"]);
        submissions.revert(&name("tenant"), &name("strict"), &reversal("one", 1)).await.unwrap();
        let again = submit(&submissions, &a).await.unwrap();
        assert_eq!((again.new, again.job.generation), (true, 2));
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["one", "a"]);
        assert_eq!(
            world.runs.lock().unwrap().values().sum::<u32>(),
            runs + 3,
            "only b's tasks ran"
        );
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// A process that cancels a job may die before the publishers that have seen it done are stopped. A client that replaces the job or
/// revives it stops them first; and a client that replaces a dead block stops those that are skipping it.
#[test]
fn a_place_is_free_only_once_publishers_are_stopped() {
    use crate::record::{Job, encode};
    let cancelled = JobState::Cancelled { reason: "half".into(), at: 1 };
    let dead = JobState::Dead { reason: "no".into(), at: 1 };
    for (state, id) in [(cancelled.clone(), Some("x")), (cancelled, None), (dead, Some("x"))] {
        simulate(async || {
            let (mut world, _) = done_world().await;
            let (store, submissions) = (world.store(), world.submissions());
            let (workflow, log, tenant) =
                (world.workflow(SINGLE), "out/tenant/strict", name("tenant"));
            let two = submission("strict", 2, "two", Some("one"), workflow);
            let two = submit(&submissions, &two).await.unwrap().job;
            // A publisher, or a client that skips, has read the tail and the job.
            let before = store.tail(log).await.unwrap().unwrap();
            let key = two.key().to_string();
            let rev = store.get(&key).await.unwrap().unwrap().rev;
            let ended = Job { state: state.clone(), ..two.clone() };
            store.update(&key, encode(&ended, 0), rev).await.unwrap();
            match id {
                Some(id) => {
                    let other = submission("strict", 2, id, Some("one"), workflow);
                    assert!(submit(&submissions, &other).await.unwrap().new);
                }
                None => drop(submissions.requeue(&tenant, &two.handle()).await.unwrap()),
            }
            let late = Publication::Skip { block: 2, id: name("two"), parent: name("one") };
            let late = store.append(log, encode(&late, 0), Some(before.rev)).await;
            assert!(late.is_err(), "{state:?}, {id:?}: the place of 'two' is another's");
            let node = world.start(Shape::default());
            settle(&world).await;
            let out = published(&world.core.history(), "strict");
            assert_eq!(out, ["one", id.unwrap_or("two")]);
            assert_eq!(broken(&world, &[]), [""; 0]);
            drop(node);
        });
    }
}

/// A block that a publisher has appended at that very moment is taken back.
#[test]
fn what_was_published_of_a_cancelled_job_is_taken_back_before_its_place_is_used() {
    use crate::record::{Job, encode};
    simulate(async || {
        let (mut world, one) = done_world().await;
        let (store, submissions) = (world.store(), world.submissions());
        let workflow = world.workflow(SINGLE);
        let job = submissions.job(&name("tenant"), &one).await.unwrap();
        let state = JobState::Cancelled { reason: "half".into(), at: 1 };
        let ended = Job { state, ..job.value.clone() };
        store.update(&job.value.key().to_string(), encode(&ended, 0), job.rev).await.unwrap();
        assert_eq!(published(&world.core.history(), "strict"), ["one"]);
        let other = submission("strict", 1, "other", Some("genesis"), workflow);
        submit(&submissions, &other).await.unwrap();
        assert_eq!(published(&world.core.history(), "strict"), [""; 0]);
        let node = world.start(Shape::default());
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["other"]);
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// Blocks are bundled as they are published. A re-org tears off the bundles with them, and a branch that comes back finds its own.
#[test]
fn bundles_follow_what_is_published() {
    use crate::record::encode;
    simulate(async || {
        let mut world = World::new(5, Bug::None);
        let (single, join) = (world.workflow(SINGLE), world.workflow(JOIN));
        let (submissions, tenant) = (world.submissions(), name("tenant"));
        let spec =
            Bundles { of: name("strict"), blocks: 2, workflow: join, input: name("a"), lane: 0 };
        let bundled = Chain { bundles: Some(spec.clone()), ..strict("bundles") };
        let early = submissions.make_chain(bundled.clone()).await;
        assert!(matches!(early, Err(SubmissionError::NoChain(_))), "{early:?}");
        submissions.make_chain(strict("strict")).await.unwrap();
        for (wrong, why) in [
            (Bundles { blocks: 0, ..spec.clone() }, "found 0"),
            (Bundles { blocks: 513, ..spec.clone() }, "1 to 512"),
            (Bundles { of: name("bundles"), ..spec.clone() }, "its own blocks"),
            (Bundles { input: name("b"), ..spec.clone() }, "no input 'b'"),
            (Bundles { workflow: Digest::of(b"none"), ..spec.clone() }, "workflow"),
        ] {
            let chain = Chain { bundles: Some(wrong), ..strict("bundles") };
            let refused = submissions.make_chain(chain).await.unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        submissions.make_chain(bundled).await.unwrap();
        let own = submission("bundles", 1, "own", Some("genesis"), join);
        let refused = submissions.submit(own).await;
        assert!(matches!(refused, Err(SubmissionError::Taken(_))), "{refused:?}");

        let node = world.start(Shape::default());
        let block = |block: u64, id: &str, parent: &str| {
            submission("strict", block, id, Some(parent), single)
        };
        for wanted in [block(1, "a1", "genesis"), block(2, "a2", "a1"), block(3, "a3", "a2")] {
            submit(&submissions, &wanted).await.unwrap();
        }
        settle(&world).await;
        let first = published(&world.core.history(), "bundles");
        assert_eq!(first.len(), 1, "the third block waits for a fourth");
        for wanted in [block(4, "a4", "a3"), block(5, "a5", "a4")] {
            submit(&submissions, &wanted).await.unwrap();
        }
        settle(&world).await;
        let both = published(&world.core.history(), "bundles");
        assert_eq!((both.len(), &both[..1]), (2, &first[..]));

        // Another branch from the third block on: the first bundle stays.
        let chain = name("strict");
        submissions.revert(&tenant, &chain, &reversal("a3", 3)).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "bundles"), first);
        submit(&submissions, &block(4, "b4", "a3")).await.unwrap();
        settle(&world).await;
        let other = published(&world.core.history(), "bundles");
        assert_eq!((other.len(), &other[..1]), (2, &first[..]));
        assert_ne!(other, both);
        // And back.
        let runs = world.runs.lock().unwrap().values().sum::<u32>();
        submissions.revert(&tenant, &chain, &reversal("a3", 3)).await.unwrap();
        submit(&submissions, &block(4, "a4", "a3")).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "bundles"), both);
        assert_eq!(world.runs.lock().unwrap().values().sum::<u32>(), runs, "all was done before");
        assert_eq!(broken(&world, &[]), [""; 0]);

        // The checker finds a bundle of a branch that is gone, and one with other inputs.
        let (store, log) = (world.store(), "out/tenant/bundles");
        let tail = store.tail(log).await.unwrap().unwrap();
        let Publication::Block { job, outputs, .. } = decode(&tail).unwrap().value else {
            panic!("a bundle was published");
        };
        let rogue = Publication::Block {
            block: 9,
            id: name("rogue"),
            parent: name(&both[1]),
            generation: 0,
            job,
            outputs,
        };
        store.append(log, encode(&rogue, 0), Some(tail.rev)).await.unwrap();
        let found = world.core.history().violations();
        assert!(
            found
                .iter()
                .any(|it| it.why.contains("'rogue' is not a bundle of blocks that 'strict'")),
            "{found:?}"
        );
        drop(node);
    });
}

/// Bundles of one block, from height 0 on: a block that does not fit is dead and can be skipped, and what is published stays.
#[test]
fn bundles_that_do_not_fit_hold_nothing_up_but_their_chain() {
    simulate(async || {
        let mut world = World::new(6, Bug::None);
        let narrow = SINGLE.replace("[inputs.a]", "[inputs.a]\nat_most = 1");
        let narrow = narrow.replace("\"single\"", "\"narrow\"");
        let (one, three, narrow) =
            (world.workflow(JOIN), world.workflow(SINGLE), world.workflow(&narrow));
        let (submissions, tenant) = (world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let spec =
            Bundles { of: name("strict"), blocks: 1, workflow: narrow, input: name("a"), lane: 0 };
        let bundled = Chain { bundles: Some(spec), ..strict("bundles") };
        submissions.make_chain(bundled).await.unwrap();
        // The chain would go round and round.
        let round = submissions.submit(submission("strict", 0, "genesis", Some("x"), one)).await;
        assert!(round.unwrap_err().to_string().contains("name of the genesis"));
        let node = world.start(Shape::default());
        // The first two have one output each, the third has three.
        for (block, id, parent, workflow) in
            [(0, "a", "genesis", one), (1, "b", "a", one), (2, "c", "b", three), (3, "d", "c", one)]
        {
            submit(&submissions, &submission("strict", block, id, Some(parent), workflow))
                .await
                .unwrap();
        }
        settle(&world).await;
        let out = published(&world.core.history(), "bundles");
        assert_eq!(out.len(), 2, "those before it are out");
        let dead = world.core.history().jobs().into_values().find(|job| {
            job.chain.as_str() == "bundles" && matches!(job.state, JobState::Dead { .. })
        });
        let dead = dead.unwrap();
        let JobState::Dead { reason, .. } = &dead.state else { unreachable!() };
        assert!(reason.contains("found 3"), "{reason}");
        submissions.skip(&tenant, &dead.handle()).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "bundles").len(), 4);
        // Back to the block of height 0, whose bundle has height 0, too.
        submissions.revert(&tenant, &name("strict"), &reversal("a", 0)).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "bundles"), out[..1]);
        submissions.revert(&tenant, &name("strict"), &reversal("genesis", 0)).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "bundles"), [""; 0]);
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// A dispatcher whose claim was applied after it gave up waiting holds a lease that it does not know about.
#[test]
fn leases_that_nobody_runs_are_given_back() {
    simulate(async || {
        let mut world = World::new(3, Bug::None);
        let workflow = world.workflow(SINGLE);
        let submissions = world.submissions();
        submissions
            .make_chain(Chain { order: Order::None, genesis: None, ..strict("free") })
            .await
            .unwrap();
        let collector = world.start(Shape { slots: 0, ..Shape::default() });
        submit(&submissions, &submission("free", 1, "one", None, workflow)).await.unwrap();
        sleep(Duration::from_secs(5)).await;
        // From here on, every write takes effect, and no answer arrives.
        world.core.set_faults(Faults { lost_answers: 1_000, ..Faults::NONE });
        let worker = world.start(Shape { collects: false, slots: 3, ..Shape::default() });
        sleep(Duration::from_secs(5)).await;
        world.core.set_faults(Faults::NONE);
        settle(&world).await;
        assert_eq!(broken(&world, &[]), [""; 0]);
        assert_eq!(published(&world.core.history(), "free"), ["one"]);
        drop((collector, worker));
    });
}

/// Behind a dead block, at most 64 blocks are worked on.
#[test]
fn work_stops_behind_a_dead_block() {
    simulate(async || {
        let mut world = World::new(5, Bug::None);
        world.provers = Provers { impossible: 1_000, ..Provers::GOOD };
        let workflow = world.workflow(SINGLE);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let dying = world.start(Shape::default());
        let first = submit(&submissions, &submission("strict", 1, "b1", Some("genesis"), workflow))
            .await
            .unwrap();
        settle(&world).await;
        drop(dying);
        world.provers = Provers::GOOD;
        let node = world.start(Shape { slots: 8, ..Shape::default() });
        for block in 2..80 {
            let (id, parent) = (format!("b{block}"), format!("b{}", block - 1));
            submit(&submissions, &submission("strict", block, &id, Some(&parent), workflow))
                .await
                .unwrap();
        }
        settle(&world).await;
        sleep(PATIENCE).await;
        let jobs = world.core.history().jobs();
        let done = jobs.values().filter(|job| matches!(job.state, JobState::Done { .. }));
        assert_eq!(done.map(|job| job.block).max(), Some(65));
        // The waiting blocks are reported, as their submitter's to put right.
        let found = world.watched.standstills();
        let behind = found.iter().filter(|one| one.cause == Cause::BehindDead { dead: 1 });
        assert_eq!(behind.map(|one| one.block).collect::<Vec<_>>(), Vec::from_iter(66..80));
        assert!(
            found.len() == 15 && found.iter().all(|one| one.cause.is_submitters()),
            "{found:?}"
        );
        assert_eq!(published(&world.core.history(), "strict"), [""; 0]);

        // With the block skipped, the chain continues, and all of it is published.
        let (tenant, handle) = (name("tenant"), first.job.handle());
        submissions.skip(&tenant, &handle).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict").len(), 79);
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// A dead block that does not descend from the published chain holds nothing up, however far above it the chain is.
#[test]
fn a_dead_block_beside_the_chain_is_in_nobodys_way() {
    simulate(async || {
        let mut world = World::new(6, Bug::None);
        world.provers = Provers { impossible: 1_000, ..Provers::GOOD };
        let (workflow, submissions) = (world.workflow(SINGLE), world.submissions());
        submissions.make_chain(strict("strict")).await.unwrap();
        let dying = world.start(Shape::default());
        let beside = submission("strict", 2, "beside", Some("nowhere"), workflow);
        submit(&submissions, &beside).await.unwrap();
        settle(&world).await;
        drop(dying);
        world.provers = Provers::GOOD;
        let node = world.start(Shape::default());
        // Heights may have gaps: the first one is far above the dead one.
        for (block, id, parent) in [(1_000, "b1", "genesis"), (1_001, "b2", "b1")] {
            let wanted = submission("strict", block, id, Some(parent), workflow);
            submit(&submissions, &wanted).await.unwrap();
        }
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["b1", "b2"]);
        assert_eq!(world.core.history().violations(), []);
        drop(node);
    });
}

/// Two collectors divide the partitions, and the surviving one takes all.
#[test]
fn partitions_are_divided_and_taken_over() {
    use crate::record::Owner;
    let owners = |world: &World| {
        let mut owners: BTreeMap<String, Option<String>> = BTreeMap::new();
        for version in &world.core.history().records {
            if version.entry.key.starts_with("owner/") {
                let owner = decode::<Owner>(&version.entry).unwrap().value;
                owners.insert(version.entry.key.clone(), owner.session.map(|id| id.to_string()));
            }
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        owners.into_values().flatten().for_each(|owner| *counts.entry(owner).or_default() += 1);
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable();
        counts
    };
    simulate(async || {
        let mut world = World::new(11, Bug::None);
        let mut nodes: Vec<Node> = (0..4).map(|_| world.start(Shape::default())).collect();
        sleep(Duration::from_secs(30)).await;
        assert_eq!(owners(&world), [16; 4]);
        nodes.truncate(3);
        sleep(Duration::from_secs(30)).await;
        // No process has more than its share, rounded up.
        let three = owners(&world);
        assert_eq!((three.len(), three.iter().sum::<usize>()), (3, 64));
        assert!(three.iter().all(|count| *count <= 22), "{three:?}");
        nodes.truncate(1);
        sleep(Duration::from_secs(30)).await;
        assert_eq!(owners(&world), [64]);
        let more = world.start(Shape::default());
        sleep(Duration::from_secs(30)).await;
        assert_eq!(owners(&world), [32, 32]);
        // One that ends in order leaves its partitions at once.
        more.shut_down(Duration::from_secs(1)).await;
        sleep(Duration::from_secs(3)).await;
        assert_eq!(owners(&world), [64]);
    });
}
