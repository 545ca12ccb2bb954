//! Removal of what is old, and of nothing that is wanted.

use super::memory::Bug;
use super::simulation::{
    JOIN, SINGLE, broken, published, reversal, settle, simulate, strict, submission, submit,
};
use super::world::{Shape, World, name};
use crate::history::History;
use crate::record::{
    Bundles, Chain, Floor, Job, JobKey, JobState, Order, Publication, decode, encode,
};
use crate::submissions::{Reversal, Submission, SubmissionError};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// A time after which everything that ended before is removed.
pub(super) const LONG: Duration = Duration::from_secs(1_000);

/// A world whose processes keep what has ended for some minutes, and the last two published blocks of each chain.
pub(super) fn world(seed: u64) -> World {
    let mut world = World::new(seed, Bug::None);
    world.keep = Some((Duration::from_secs(300), Duration::from_secs(60), 2));
    world
}

/// The names of the jobs of a chain that are there.
fn jobs(history: &History, chain: &str) -> BTreeSet<String> {
    let jobs = history.jobs().into_values().filter(|job| job.chain.as_str() == chain);
    jobs.map(|job| job.id.to_string()).collect()
}

fn names(of: impl IntoIterator<Item = u64>) -> BTreeSet<String> {
    of.into_iter().map(|block| format!("s{block}")).collect()
}

pub(super) fn block(world: &World, block: u64) -> Submission {
    let parent = if block == 1 { "genesis".to_owned() } else { format!("s{}", block - 1) };
    let workflow = world.workflow(SINGLE);
    submission("strict", block, &format!("s{block}"), Some(&parent), workflow)
}

/// Submits blocks of the chain `strict`, and waits until they are published.
pub(super) async fn publish(world: &mut World, blocks: impl IntoIterator<Item = u64>) {
    let submissions = world.submissions();
    for number in blocks {
        submit(&submissions, &block(world, number)).await.unwrap();
    }
    sleep(Duration::from_secs(60)).await;
}

/// Removes a record.
pub(super) async fn remove(world: &World, key: &str) {
    let rev = world.store().get(key).await.unwrap().unwrap().rev;
    world.store().remove(key, rev).await.unwrap();
}

pub(super) fn runs(world: &World) -> u32 {
    world.runs.lock().unwrap().values().sum()
}

fn refused<T: std::fmt::Debug>(asked: Result<T, SubmissionError>, why: &str) {
    let refused = asked.unwrap_err().to_string();
    assert!(refused.contains(why), "{refused}");
}

#[test]
fn old_blocks_of_a_chain_are_removed_and_never_accepted_again() {
    simulate(async || {
        let mut world = world(1);
        let (submissions, tenant) = (world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 1..=6).await;
        assert_eq!(jobs(&world.core.history(), "strict"), names(1..=6), "nothing is old");
        let first = submissions.submit(block(&world, 1)).await.unwrap();
        assert!(!first.new);
        sleep(LONG).await;
        settle(&world).await;
        // The floor is the third block from the end, which stays, too.
        let history = world.core.history();
        assert_eq!(jobs(&history, "strict"), names(4..=6));
        let all: Vec<String> = names(1..=6).into_iter().collect();
        assert_eq!(published(&history, "strict"), all, "the log is whole");
        let kept: BTreeSet<_> = history.jobs().values().map(Job::identity).collect();
        assert!(history.tasks().keys().all(|task| kept.contains(&task.job)), "tasks go, too");

        // Neither the same block, nor another one in its place or of its name is proven again.
        let ran = runs(&world);
        refused(submissions.submit(block(&world, 1)).await, "the job was removed since");
        refused(submissions.submit(block(&world, 3)).await, "the job was removed since");
        let other = Submission { id: name("x"), block: 9, ..block(&world, 2) };
        refused(submissions.submit(other).await, "the job was removed since");
        let twice = Submission { block: 7, parent: Some(name("s6")), ..block(&world, 2) };
        refused(submissions.submit(twice).await, "the job was removed since");
        refused(submissions.job(&tenant, &first.job.handle()).await, "there is no job");
        // Blocks that are there are found.
        assert!(!submissions.submit(block(&world, 4)).await.unwrap().new);

        // A chain is not reverted to a block before its floor, and can be to the floor.
        let chain = name("strict");
        for (to, height) in [("genesis", 0), ("s3", 3)] {
            let asked = submissions.revert(&tenant, &chain, &reversal(to, height)).await;
            refused(asked, "can only be reverted to block 4 's4'");
        }
        // A request for what is there already is repeated at any time.
        let done = Reversal { next: Some(name("s4")), ..reversal("s3", 3) };
        submissions.revert(&tenant, &chain, &done).await.unwrap();
        submissions.revert(&tenant, &chain, &reversal("s4", 4)).await.unwrap();
        let workflow = world.workflow(SINGLE);
        let next = submission("strict", 5, "t5", Some("s4"), workflow);
        assert!(submit(&submissions, &next).await.unwrap().new);
        settle(&world).await;
        assert_eq!(runs(&world), ran + 3, "only the new block was proven");
        sleep(LONG).await;
        settle(&world).await;
        // The branch that was torn off goes; the last blocks stay, whatever their age.
        let kept: BTreeSet<_> = ["s4", "t5"].map(String::from).into();
        assert_eq!(jobs(&world.core.history(), "strict"), kept);
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// Each sweep raises the floor of a chain that keeps publishing.
#[test]
fn chains_that_never_rest_lose_old_blocks() {
    simulate(async || {
        let mut world = world(12);
        world.submissions().make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        for number in 1..=30 {
            publish(&mut world, [number]).await;
        }
        let there = jobs(&world.core.history(), "strict");
        assert!(!there.contains("s10") && there.contains("s29"), "{there:?}");
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// Sets the state of a job, as a process does that dies before it has done the rest.
async fn end(world: &World, key: &JobKey, state: JobState) {
    let store = world.store();
    let found = store.get(&key.to_string()).await.unwrap().unwrap();
    let ended = Job { state, ..decode::<Job>(&found).unwrap().value };
    store.update(&key.to_string(), encode(&ended, 0), found.rev).await.unwrap();
}

/// Processes died while they cancelled and skipped blocks: no published block is torn off below the floor, nor are their places free.
#[test]
fn published_blocks_stay_published_whatever_their_jobs_say() {
    simulate(async || {
        let mut world = world(13);
        let (submissions, tenant) = (world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 1..=6).await;
        let jobs_of = world.core.history().jobs();
        let at = |block: u64| jobs_of.iter().find(|(_, job)| job.block == block).unwrap();
        let cancelled = || JobState::Cancelled { reason: "enough".into(), at: 0 };
        end(&world, at(2).0, cancelled()).await;
        end(&world, at(3).0, JobState::Dead { reason: "no".into(), at: 0 }).await;
        // The last one stays, since it is not below the floor.
        end(&world, at(6).0, cancelled()).await;
        sleep(LONG).await;
        settle(&world).await;
        let all: Vec<String> = names(1..=6).into_iter().collect();
        assert_eq!(published(&world.core.history(), "strict"), all);
        assert_eq!(jobs(&world.core.history(), "strict"), names(4..=6));
        for lost in [2, 3] {
            let other = Submission { id: name("x"), ..block(&world, lost) };
            refused(submissions.submit(other).await, "the job was removed since");
        }

        // The floor is the fourth block, whose record is there: it is not torn off by requests about it either.
        let (key, four) = at(4);
        end(&world, key, cancelled()).await;
        let why = "block 's4' is published, and its chain can only be reverted to block 4 's4'";
        refused(submissions.cancel(&tenant, &four.handle(), "again").await, why);
        refused(submissions.requeue(&tenant, &four.handle()).await, why);
        refused(submissions.submit(block(&world, 4)).await, why);
        let other = Submission { id: name("x"), ..block(&world, 4) };
        refused(submissions.submit(other.clone()).await, why);
        // Not even if the chain was reverted to a later block since.
        submissions.revert(&tenant, &name("strict"), &reversal("s6", 6)).await.unwrap();
        refused(submissions.submit(other).await, why);
        assert_eq!(published(&world.core.history(), "strict"), all);
        // What comes after the floor is torn off.
        submissions.cancel(&tenant, &at(6).1.handle(), "again").await.unwrap();
        drop(node);
    });
}

/// A block is published by a publisher that was frozen before it was cancelled, and the floor is raised before the other publishers are
/// stopped.
#[test]
fn publishers_are_not_stopped_below_the_floor() {
    simulate(async || {
        let mut world = world(14);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 1..=6).await;
        sleep(LONG).await;
        let history = world.core.history();
        let four = history.jobs().into_values().find(|job| job.block == 4).unwrap();
        refused(submissions.stop_publishers(&four).await, "block 's4' is published");
        let all: Vec<String> = names(1..=6).into_iter().collect();
        assert_eq!(published(&world.core.history(), "strict"), all);
        drop(node);
    });
}

/// A block may wait for a parent that comes later, while what follows the earlier block of its name is removed.
#[test]
fn a_name_is_not_published_twice_after_its_follower_was_removed() {
    simulate(async || {
        let mut world = world(2);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let twice = Submission { block: 9, parent: Some(name("s8")), ..block(&world, 1) };
        submit(&submissions, &twice).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 1..=7).await;
        sleep(LONG).await;
        settle(&world).await;
        assert!(!jobs(&world.core.history(), "strict").contains("s2"));
        publish(&mut world, [8]).await;
        settle(&world).await;
        let history = world.core.history();
        let all: Vec<String> = names(1..=8).into_iter().collect();
        assert_eq!(published(&history, "strict"), all);
        let found = history.jobs().into_values().find(|job| job.block == 9).unwrap();
        let JobState::Dead { reason, .. } = found.state else { panic!("{found:?}") };
        assert!(reason.contains("has published a block of this name"), "{reason}");
        drop(node);
    });
}

/// Blocks that wait, that are dead and that are cancelled with something behind them stay however old they are.
#[test]
fn what_is_wanted_stays() {
    simulate(async || {
        let mut world = world(3);
        let (submissions, tenant) = (world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let workflow = world.workflow(SINGLE);
        let (store, at) = (world.store(), |id: &str| format!("a{id}"));
        let node = world.start(Shape::default());
        publish(&mut world, 1..=5).await;
        // Done, and waits for its parent; live, without a back-end; dead, and next.
        let waits = submission("strict", 9, "waits", Some("s8"), workflow);
        let nowhere = world.workflow(&SINGLE.replace("\"prove\"", "\"nowhere\""));
        let live = submission("strict", 10, "live", Some("elsewhere"), nowhere);
        let dead = submission("strict", 6, "dead", Some("s5"), nowhere);
        let cancelled = submission("strict", 7, "cancelled", Some("dead"), workflow);
        let behind = submission("strict", 8, "behind", Some("cancelled"), workflow);
        // Not above the floor in the end, and not in the chain: nothing needs them.
        let beside = submission("strict", 2, "beside", Some(&at("0")), workflow);
        let mut handles = Vec::new();
        for wanted in [&waits, &live, &dead, &cancelled, &behind, &beside] {
            handles.push(submit(&submissions, wanted).await.unwrap().job);
        }
        end(&world, &handles[2].key(), JobState::Dead { reason: "no".into(), at: 0 }).await;
        submissions.cancel(&tenant, &handles[3].handle(), "enough").await.unwrap();
        sleep(LONG).await;
        settle(&world).await;
        let there = jobs(&world.core.history(), "strict");
        for id in ["s4", "s5", "waits", "live", "dead", "cancelled", "behind"] {
            assert!(there.contains(id), "{id}: {there:?}");
        }
        for id in ["s1", "s2", "beside"] {
            assert!(!there.contains(id), "{id}: {there:?}");
        }
        // Once nothing follows it, the cancelled block goes as well. The process that cancelled the other one has died before it stopped
        // the publishers that have seen it done.
        let state = JobState::Cancelled { reason: "enough".into(), at: 0 };
        end(&world, &handles[4].key(), state).await;
        sleep(LONG).await;
        settle(&world).await;
        let there = jobs(&world.core.history(), "strict");
        assert!(there.contains("dead") && !there.contains("cancelled"), "{there:?}");
        // They are stopped before it goes.
        let tail = store.tail("out/tenant/strict").await.unwrap().unwrap();
        let tail = decode::<Publication>(&tail).unwrap().value;
        assert!(matches!(tail, Publication::Revert { .. }), "{tail:?}");
        let violations = world.core.history().violations();
        assert!(violations.is_empty(), "{violations:?}");
        drop(node);
    });
}

/// Floors and marks come a sweep before the removal, so that no process acts on what it saw before them, even if two sweep in turns.
#[test]
fn processes_that_sweep_in_turns_leave_time() {
    simulate(async || {
        let mut world = world(10);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let first = world.start(Shape::default());
        sleep(Duration::from_secs(20)).await;
        let second = world.start(Shape::default());
        publish(&mut world, 1..=6).await;
        let removed = submissions.submit(block(&world, 2)).await.unwrap().job.key().to_string();
        sleep(LONG).await;
        let history = world.core.history();
        let at = |key: &str, removed: bool| {
            let mut versions = history.records.iter();
            let found = versions.find(|it| it.entry.key == key && it.is_removal() == removed);
            found.unwrap_or_else(|| panic!("{key}")).at
        };
        let floor = at("floor/tenant/strict", false);
        let (mark, removed) = (at("passed/tenant/strict/s1", false), at(&removed, true));
        assert!(floor + 50_000 < mark && mark + 50_000 < removed, "{floor} {mark} {removed}");
        assert_eq!(jobs(&history, "strict"), names(4..=6));
        drop((first, second));
    });
}

/// Blocks that were done long ago, and whose parent comes now, are new to those who wait for them.
#[test]
fn blocks_are_as_old_as_their_publication() {
    simulate(async || {
        let mut world = world(11);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 2..=6).await;
        sleep(LONG).await;
        publish(&mut world, [1]).await;
        assert_eq!(published(&world.core.history(), "strict").len(), 6);
        sleep(Duration::from_secs(200)).await;
        assert_eq!(jobs(&world.core.history(), "strict"), names(1..=6));
        // A later record shows how old they are.
        publish(&mut world, [7]).await;
        sleep(LONG).await;
        assert_eq!(jobs(&world.core.history(), "strict"), names(5..=7));
        drop(node);
    });
}

#[test]
fn blocks_without_order_are_removed_and_not_published_again() {
    simulate(async || {
        let mut world = world(4);
        let submissions = world.submissions();
        let chain = Chain { order: Order::None, genesis: None, ..strict("free") };
        submissions.make_chain(chain).await.unwrap();
        let node = world.start(Shape::default());
        let wanted = submission("free", 1, "f", None, world.workflow(SINGLE));
        submit(&submissions, &wanted).await.unwrap();
        sleep(LONG).await;
        settle(&world).await;
        assert_eq!(jobs(&world.core.history(), "free"), BTreeSet::new());
        let ran = runs(&world);
        refused(submissions.submit(wanted.clone()).await, "submit it under another name");
        let again = Submission { id: name("g"), ..wanted };
        submit(&submissions, &again).await.unwrap();
        settle(&world).await;
        assert_eq!(runs(&world), ran + 3);
        assert_eq!(published(&world.core.history(), "free"), ["f", "g"]);
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// The outputs of blocks that are not bundled, or whose bundle a revert would tear off, stay.
#[test]
fn blocks_stay_until_their_bundle_is_published_for_good() {
    simulate(async || {
        let mut world = world(5);
        let (submissions, tenant) = (world.submissions(), name("tenant"));
        let bundles = Bundles {
            of: name("strict"),
            blocks: 4,
            workflow: world.workflow(JOIN),
            input: name("a"),
            lane: 0,
        };
        submissions.make_chain(strict("strict")).await.unwrap();
        let bundled = Chain { bundles: Some(bundles), ..strict("bundles") };
        submissions.make_chain(bundled.clone()).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 1..=3).await;
        sleep(LONG).await;
        assert_eq!(jobs(&world.core.history(), "strict"), names(1..=3), "there is no bundle yet");
        publish(&mut world, 4..=9).await;
        sleep(LONG).await;
        settle(&world).await;
        // The floor is block 7, in the second bundle, which a revert to it tears off.
        assert_eq!(jobs(&world.core.history(), "strict"), names(5..=9));
        let chain = name("strict");
        let before = published(&world.core.history(), "bundles");
        submissions.revert(&tenant, &chain, &reversal("s7", 7)).await.unwrap();
        let other = submission("strict", 8, "t8", Some("s7"), world.workflow(SINGLE));
        submit(&submissions, &other).await.unwrap();
        settle(&world).await;
        let after = published(&world.core.history(), "bundles");
        assert_eq!((after.len(), &after[0]), (2, &before[0]));
        assert_ne!(after[1], before[1]);
        assert_eq!(submissions.make_chain(bundled.clone()).await.unwrap(), bundled);
        let late = Chain { chain: name("late"), ..bundled };
        refused(submissions.make_chain(late).await, "cannot be bundled any longer");
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// The floor of the source was torn off by a revert at the moment in which it was raised.
#[test]
fn bundles_wait_for_a_floor_that_holds() {
    simulate(async || {
        let mut world = world(15);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let workflow = world.workflow(SINGLE);
        let bundles =
            Bundles { of: name("strict"), blocks: 1, workflow, input: name("a"), lane: 0 };
        let bundled = Chain { bundles: Some(bundles), ..strict("bundles") };
        submissions.make_chain(bundled).await.unwrap();
        let torn = Floor { id: name("torn"), block: 99 };
        world.store().create("floor/tenant/strict", encode(&torn, 0)).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 1..=6).await;
        sleep(LONG).await;
        let history = world.core.history();
        let last = |key: &str| {
            let mut versions = history.records.iter().rev();
            versions.find(|it| it.entry.key == key).unwrap().at
        };
        let (source, bundles) = (last("floor/tenant/strict"), last("floor/tenant/bundles"));
        assert!(source + 50_000 < bundles, "{source} {bundles}");
        drop(node);
    });
}

/// One of two chains of bundles waits for a back-end: a revert of their source could still tear off the bundles of both.
#[test]
fn bundles_stay_as_long_as_their_blocks() {
    simulate(async || {
        let mut world = world(8);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        for (chain, backend) in [("good", "prove"), ("waits", "nowhere")] {
            let workflow = SINGLE.replace("\"prove\"\n", &format!("\"{backend}\"\n"));
            let workflow = world.workflow(&workflow);
            let bundles =
                Bundles { of: name("strict"), blocks: 1, workflow, input: name("a"), lane: 0 };
            let bundled = Chain { bundles: Some(bundles), ..strict(chain) };
            submissions.make_chain(bundled).await.unwrap();
        }
        let node = world.start(Shape::default());
        publish(&mut world, 1..=6).await;
        sleep(LONG).await;
        let history = world.core.history();
        assert_eq!(jobs(&history, "strict"), names(1..=6));
        assert_eq!(jobs(&history, "good").len(), 6);
        assert_eq!(published(&history, "good").len(), 6);
        drop(node);
    });
}

/// The checker finds removals of what is wanted.
#[test]
fn removals_of_what_is_wanted_are_found() {
    simulate(async || {
        let mut world = World::new(7, Bug::None);
        let submissions = world.submissions();
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        publish(&mut world, 1..=2).await;
        let workflow = world.workflow(SINGLE);
        let live = submission("strict", 9, "live", Some("s8"), workflow);
        let live = submit(&submissions, &live).await.unwrap().job.key().to_string();
        drop(node);
        let store = world.store();
        let tail = store.tail("out/tenant/strict").await.unwrap().unwrap();
        assert_eq!(decode::<Publication>(&tail).unwrap().value.height(), 2);
        let two = block(&world, 2).parent.unwrap();
        let two = JobKey { tenant: name("tenant"), chain: name("strict"), slot: two };
        for key in [live, two.to_string()] {
            remove(&world, &key).await;
            let found = world.core.history().violations();
            assert!(found.iter().any(|it| it.key == key && it.why.contains("may still be wanted")));
        }
    });
}
