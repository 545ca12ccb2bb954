//! Blocks of a strict chain that arrive in any order, more than once, from several clients and on two branches.

use super::memory::{Bug, Faults};
use super::simulation::{
    JOIN, SINGLE, broken, insist, published, reversal, revert, settle, simulate, strict,
    submission, submit,
};
use super::world::{Node, Provers, Shape, World, name};
use crate::history::History;
use crate::id::PARTITIONS;
use crate::record::{Job, JobState, decode};
use crate::standstill::PATIENCE;
use crate::store::{Durability, SqliteStore, Store};
use crate::submissions::{Reversal, Submission, SubmissionError, Submissions};
use hekaton_orchestrator_client::Digest;
use rand::Rng;
use rand::seq::SliceRandom;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The number of schedules of each kind that are run.
fn schedules() -> u64 {
    std::env::var("HEKATON_ARRIVALS").map_or(60, |text| text.parse().expect("a number"))
}

fn first() -> u64 {
    std::env::var("HEKATON_SIMULATION_SEED").map_or(0, |text| text.parse().expect("a number"))
}

/// Returns the blocks of a branch; the first one has the given height and parent.
fn branch(letter: &str, from: u64, parent: &str, count: u64, workflow: Digest) -> Vec<Submission> {
    let mut parent = parent.to_owned();
    let blocks = (from..from + count).map(|block| {
        let id = format!("{letter}{block}");
        let made = submission("strict", block, &id, Some(&parent), workflow);
        parent = id;
        made
    });
    blocks.collect()
}

fn faults(world: &mut World) -> Faults {
    Faults {
        lost_answers: [0, 50, 200][world.random.gen_range(0..3)],
        late_writes: [0, 50, 200][world.random.gen_range(0..3)],
        failed_reads: [0, 50][world.random.gen_range(0..2)],
        failed_syncs: 0,
        dead_watches: [0, 300][world.random.gen_range(0..2)],
        max_delay: Duration::from_millis([2, 30, 400][world.random.gen_range(0..3)]),
    }
}

/// Pairs each block with the time to wait before it, in milliseconds.
fn paced(world: &mut World, blocks: Vec<Submission>, most: u64) -> Vec<(Submission, u64)> {
    blocks.into_iter().map(|block| (block, world.random.gen_range(0..most))).collect()
}

/// Submits blocks in the given order, each once or twice.
async fn client(submissions: Submissions, blocks: Vec<(Submission, u64)>) -> Vec<String> {
    let mut refused = Vec::new();
    for (block, pause) in blocks {
        sleep(Duration::from_millis(pause)).await;
        if let Err(error) = submit(&submissions, &block).await {
            refused.push(format!("{}: {error}", block.id));
        }
    }
    refused
}

/// Runs a schedule in which several clients submit the blocks of one chain in random order, while processes die alone and in pairs.
async fn any_order(seed: u64) -> (World, Vec<String>, Vec<String>) {
    let mut world = World::new(seed, Bug::None);
    let faults = faults(&mut world);
    world.core.set_faults(faults);
    let (refused, wanted, nodes) = submit_in_any_order(&mut world).await;
    world.core.set_faults(Faults::NONE);
    settle(&world).await;
    drop(nodes);
    (world, refused, wanted)
}

/// Returns the blocks that were refused, those that must be published, and the processes that are still alive.
async fn submit_in_any_order(world: &mut World) -> (Vec<String>, Vec<String>, Vec<Node>) {
    let workflows = [world.workflow(SINGLE), world.workflow(JOIN)];
    world.provers =
        Provers { most_millis: [50, 2_000][world.random.gen_range(0..2)], ..Provers::GOOD };
    insist(async || world.submissions().make_chain(strict("strict")).await).await.unwrap();
    let count = world.random.gen_range(2..14);
    let workflow = workflows[world.random.gen_range(0..2)];
    let blocks = branch("b", 1, "genesis", count, workflow);
    let mut clients = Vec::new();
    for number in 0..world.random.gen_range(1..5) {
        // The first client has all blocks, so that none is missing because the others leave it out.
        let mut own: Vec<_> =
            blocks.iter().filter(|_| number == 0 || world.random.r#gen()).cloned().collect();
        let again = own.choose(&mut world.random).cloned();
        own.extend(again);
        own.shuffle(&mut world.random);
        let own = paced(world, own, 1_500);
        clients.push(tokio::spawn(client(world.submissions(), own)));
    }
    let mut nodes: Vec<Option<Node>> = Vec::new();
    for _ in 0..2 {
        nodes.push(Some(world.start(Shape::default())));
    }
    for _ in 0..world.random.gen_range(0..6) {
        sleep(Duration::from_millis(world.random.gen_range(0..4_000))).await;
        // One of the processes, or both; dead ones are started again.
        let which = world.random.gen_range(1..4_usize);
        for (at, node) in nodes.iter_mut().enumerate().filter(|(at, _)| which >> at & 1 == 1) {
            *node = match node.take() {
                Some(node) if at == 0 && world.random.r#gen() => {
                    node.freeze(true);
                    sleep(Duration::from_millis(500)).await;
                    node.freeze(false);
                    Some(node)
                }
                Some(_) => None,
                None => Some(world.start(Shape::default())),
            };
        }
    }
    let mut refused = Vec::new();
    for client in clients {
        refused.extend(client.await.unwrap());
    }
    let nodes = nodes.into_iter().map(|node| match node {
        Some(node) => node,
        None => world.start(Shape::default()),
    });
    let nodes = nodes.collect();
    (refused, blocks.iter().map(|block| block.id.to_string()).collect(), nodes)
}

/// The same schedule with a real store, in real time.
async fn any_order_in(
    [records, sessions]: [Arc<dyn Store>; 2],
    history: impl AsyncFn() -> History,
    seed: u64,
) {
    let mut world = World::new(seed, Bug::None);
    world.real = Some([records, sessions]);
    let (refused, wanted, nodes) = submit_in_any_order(&mut world).await;
    assert_eq!(refused, [""; 0], "{seed}");
    let until = Instant::now() + Duration::from_secs(300);
    while published(&history().await, "strict") != wanted {
        assert!(Instant::now() < until, "{:?}", history().await.standstills(u64::MAX, PATIENCE));
        sleep(Duration::from_millis(200)).await;
    }
    drop(nodes);
    // How busy the machine is decides how soon tasks are claimed.
    let history = History { free_millis: 60_000, ..history().await };
    assert_eq!(history.violations(), [], "{seed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_arrive_in_any_order_at_sqlite() {
    for seed in first()..first() + 2 {
        let folder = tempfile::tempdir().unwrap();
        let open = |name, durability| SqliteStore::open(&folder.path().join(name), durability);
        let records = Arc::new(open("records", Durability::Disk).unwrap());
        let sessions = Arc::new(open("sessions", Durability::Memory).unwrap());
        let history = async || records.history().await.unwrap();
        any_order_in([records.clone(), sessions], history, seed).await;
    }
}

#[cfg(feature = "nats")]
#[tokio::test(flavor = "multi_thread")]
async fn blocks_arrive_in_any_order_at_nats() {
    for seed in first()..first() + 2 {
        let Some(server) = super::nats::Server::new().await else { return };
        let records = Arc::new(server.open().await);
        // Sessions are other records, which no component follows.
        let sessions = Arc::new(server.open().await);
        let history = async || records.history().await.unwrap();
        any_order_in([records.clone(), sessions], history, seed).await;
    }
}

#[test]
fn blocks_arrive_in_any_order() {
    for seed in first()..first() + schedules() {
        simulate(async || {
            let (world, refused, wanted) = any_order(seed).await;
            assert_eq!(refused, [""; 0], "HEKATON_SIMULATION_SEED={seed}");
            assert_eq!(published(&world.core.history(), "strict"), wanted, "{seed}");
            assert_eq!(broken(&world, &[]), [""; 0], "HEKATON_SIMULATION_SEED={seed}");
        });
    }
}

/// The jobs of a branch that were ever cancelled.
fn cancelled(history: &History, letter: &str) -> Vec<String> {
    let jobs = history.records.iter().filter(|version| version.entry.key.starts_with("job/"));
    let jobs = jobs.map(|version| decode::<Job>(&version.entry).unwrap().value);
    let cancelled = jobs.filter(|job| matches!(job.state, JobState::Cancelled { .. }));
    let mut ids: Vec<String> = cancelled.map(|job| job.id.to_string()).collect();
    ids.retain(|id| id.starts_with(letter));
    ids.sort();
    ids
}

/// A re-org in mid-stream: blocks of the new branch come before, during and after it, and from a client that knows nothing of it.
async fn reorg(seed: u64) -> (World, Vec<String>) {
    let mut world = World::new(seed, Bug::None);
    let workflow = world.workflow(SINGLE);
    insist(async || world.submissions().make_chain(strict("strict")).await).await.unwrap();
    let faults = faults(&mut world);
    world.core.set_faults(faults);
    let node = world.start(Shape::default());
    let (old, fork) = (world.random.gen_range(2..8), world.random.gen_range(0..3));
    let fork = fork.min(old - 1);
    let old = branch("a", 1, "genesis", old, workflow);
    let last = fork.checked_sub(1).map(|at| old[usize::try_from(at).unwrap()].id.to_string());
    let last = last.unwrap_or_else(|| "genesis".into());
    let new = world.random.gen_range(1..7);
    let new = branch("b", fork + 1, &last, new, workflow);
    let mut mixed = old.clone();
    mixed.shuffle(&mut world.random);
    let stream = paced(&mut world, mixed, 900);
    let stream = tokio::spawn(client(world.submissions(), stream));
    // All blocks of the new branch but the first one, which takes the place of another block.
    let mut early = new[1..].to_vec();
    early.shuffle(&mut world.random);
    early.truncate(world.random.gen_range(0..=early.len()));
    let early = paced(&mut world, early, 900);
    let early = tokio::spawn(client(world.submissions(), early));
    let refused = stream.await.unwrap();
    assert_eq!(refused, [""; 0], "{seed}");
    sleep(Duration::from_millis(world.random.gen_range(0..4_000))).await;
    // Two clients that follow the new branch do the same.
    let mut followers = Vec::new();
    for _ in 0..2 {
        let (submissions, new) = (world.submissions(), new.clone());
        let to = Reversal { next: Some(new[0].id.clone()), ..reversal(&last, fork) };
        let pause = Duration::from_millis(world.random.gen_range(0..2_000));
        followers.push(tokio::spawn(async move {
            sleep(pause).await;
            revert(&submissions, &to).await.unwrap();
            for block in &new {
                submit(&submissions, block).await.unwrap();
            }
        }));
    }
    for follower in followers {
        follower.await.unwrap();
    }
    assert_eq!(early.await.unwrap(), [""; 0], "{seed}");
    world.core.set_faults(Faults::NONE);
    settle(&world).await;
    drop(node);
    let kept = old.iter().take(usize::try_from(fork).unwrap()).chain(&new);
    (world, kept.map(|block| block.id.to_string()).collect())
}

#[test]
fn a_new_branch_may_come_before_the_old_one_is_torn_off() {
    for seed in first()..first() + schedules() {
        simulate(async || {
            let (world, wanted) = reorg(seed).await;
            let history = world.core.history();
            assert_eq!(published(&history, "strict"), wanted, "HEKATON_SIMULATION_SEED={seed}");
            assert_eq!(cancelled(&history, "b"), [""; 0], "HEKATON_SIMULATION_SEED={seed}");
            assert_eq!(broken(&world, &[]), [""; 0], "HEKATON_SIMULATION_SEED={seed}");
        });
    }
}

fn is_refused<T: std::fmt::Debug>(answer: Result<T, SubmissionError>, why: &str) {
    let error = answer.unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

/// A revert takes what hangs from the blocks that it tears off, and nothing else.
#[test]
fn a_revert_takes_its_own_branch() {
    simulate(async || {
        let mut world = World::new(1, Bug::None);
        let (workflow, submissions, tenant) =
            (world.workflow(SINGLE), world.submissions(), name("tenant"));
        let chain = name("strict");
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        let old = branch("a", 1, "genesis", 4, workflow);
        // b3 follows b2, which is not there yet; c6 hangs from a4 by way of a5, which is not there either.
        let new = branch("b", 2, "a1", 3, workflow);
        for block in old.iter().chain(&new[1..]) {
            submit(&submissions, block).await.unwrap();
        }
        let far = submission("strict", 6, "c6", Some("a5"), workflow);
        submit(&submissions, &far).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["a1", "a2", "a3", "a4"]);
        is_refused(submissions.submit(new[0].clone()).await, "'a2' follows 'a1' and is done");
        world.core.listed();
        let unknown = submissions.revert(&tenant, &chain, &reversal("x", 9)).await;
        is_refused(unknown, "neither one that the chain has published");
        // Only blocks of its own chain are considered.
        let listed = world.core.listed();
        let own = listed.iter().filter(|prefix| prefix.ends_with("/tenant/strict/")).count();
        let all = listed.iter().filter(|prefix| prefix.starts_with("job/")).count();
        assert_eq!((own, all), (PARTITIONS.into(), PARTITIONS.into()), "{listed:?}");
        submissions.revert(&tenant, &chain, &reversal("a1", 1)).await.unwrap();
        submit(&submissions, &new[0]).await.unwrap();
        settle(&world).await;
        let history = world.core.history();
        assert_eq!(published(&history, "strict"), ["a1", "b2", "b3", "b4"]);
        assert_eq!(cancelled(&history, "a"), ["a2", "a3", "a4"]);
        assert_eq!(cancelled(&history, "b"), [""; 0]);
        // Repeated with the name of the next block, a revert changes nothing; without that name, it tears off the blocks that are there.
        let to = Reversal { next: Some(name("b2")), ..reversal("a1", 1) };
        let before = world.core.history().logs.len();
        submissions.revert(&tenant, &chain, &to).await.unwrap();
        assert_eq!(world.core.history().logs.len(), before);
        submissions.revert(&tenant, &chain, &reversal("a1", 1)).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["a1"]);
        // Of a branch that is not published yet, a revert takes the blocks that follow, and no others.
        let dead = submission("strict", 9, "d9", Some("d8"), workflow);
        submit(&submissions, &dead).await.unwrap();
        for block in &new {
            submit(&submissions, block).await.unwrap();
        }
        submissions.revert(&tenant, &chain, &reversal("b3", 3)).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["a1", "b2", "b3"]);
        assert_eq!(cancelled(&world.core.history(), "d"), [""; 0]);
        drop(node);
    });
}

/// Names and heights that cannot be on one chain are refused, or are dead when their turn comes, and can be put right.
#[test]
fn what_does_not_fit_is_told() {
    simulate(async || {
        let mut world = World::new(2, Bug::None);
        let (workflow, submissions, tenant) =
            (world.workflow(SINGLE), world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let node = world.start(Shape::default());
        let block = |block: u64, id: &str, parent: &str| {
            submission("strict", block, id, Some(parent), workflow)
        };
        let low = submit(&submissions, &block(2, "low", "two")).await.unwrap().job;
        // A child exists whose height is not greater. It can be cancelled, although it is done.
        is_refused(submissions.submit(block(2, "two", "one")).await, "heights must rise");
        settle(&world).await;
        let done = submissions.job(&tenant, &low.handle()).await.unwrap().value;
        assert!(matches!(done.state, JobState::Done { .. }), "{done:?}");
        let gone = submissions.cancel(&tenant, &low.handle(), "too low").await.unwrap();
        assert!(matches!(gone.state, JobState::Cancelled { .. }), "{gone:?}");
        submit(&submissions, &block(2, "two", "one")).await.unwrap();
        let one = submit(&submissions, &block(1, "one", "genesis")).await.unwrap().job;
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["one", "two"]);
        is_refused(submissions.cancel(&tenant, &one.handle(), "no").await, "reverting its chain");

        // A published name comes again, and so does another height that does not rise.
        is_refused(submissions.submit(block(3, "one", "two")).await, "heights must rise");
        let three = submit(&submissions, &block(2, "three", "two")).await.unwrap().job;
        settle(&world).await;
        let dead = submissions.job(&tenant, &three.handle()).await.unwrap().value;
        let JobState::Dead { reason, .. } = &dead.state else { panic!("{dead:?}") };
        assert!(reason.contains("is not above 2"), "{reason}");
        is_refused(submissions.skip(&tenant, &three.handle()).await, "cancel it instead");
        submissions.cancel(&tenant, &three.handle(), "wrong").await.unwrap();
        submit(&submissions, &block(3, "three", "two")).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["one", "two", "three"]);
        assert_eq!(world.core.history().violations(), []);
        drop(node);
    });
}

/// A block is published once, whatever its second place is: a name that comes again further up is dead in its turn.
#[test]
fn a_name_that_comes_again_is_not_published_again() {
    simulate(async || {
        let mut world = World::new(3, Bug::None);
        let (workflow, submissions, tenant) =
            (world.workflow(SINGLE), world.submissions(), name("tenant"));
        submissions.make_chain(strict("strict")).await.unwrap();
        let block = |block: u64, id: &str, parent: &str| {
            submission("strict", block, id, Some(parent), workflow)
        };
        // The second block arrives while the name has no follower.
        let again = submit(&submissions, &block(4, "x", "c")).await.unwrap().job;
        for wanted in [block(1, "x", "genesis"), block(2, "b", "x"), block(3, "c", "b")] {
            submit(&submissions, &wanted).await.unwrap();
        }
        let node = world.start(Shape::default());
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["x", "b", "c"]);
        let dead = submissions.job(&tenant, &again.handle()).await.unwrap().value;
        let JobState::Dead { reason, .. } = &dead.state else { panic!("{dead:?}") };
        assert!(reason.contains("has published a block of this name"), "{reason}");
        is_refused(submissions.skip(&tenant, &again.handle()).await, "cancel it instead");
        submissions.cancel(&tenant, &again.handle(), "wrong").await.unwrap();
        submit(&submissions, &block(4, "d", "c")).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["x", "b", "c", "d"]);
        assert_eq!(world.core.history().violations(), []);
        drop(node);
    });
}

/// A done block that is cancelled just when its parent comes is not published, or torn off.
#[test]
fn cancelled_blocks_are_not_published() {
    for seed in first()..first() + schedules() {
        simulate(async || {
            let mut world = World::new(seed, Bug::None);
            let (workflow, tenant) = (world.workflow(SINGLE), name("tenant"));
            let submissions = world.submissions();
            submissions.make_chain(strict("strict")).await.unwrap();
            let node = world.start(Shape::default());
            let blocks = branch("b", 1, "genesis", 3, workflow);
            submit(&submissions, &blocks[2]).await.unwrap();
            let two = submit(&submissions, &blocks[1]).await.unwrap().job.handle();
            settle(&world).await;
            let faults = faults(&mut world);
            world.core.set_faults(faults);
            let pause = world.random.gen_range(0..4_000);
            let (one, other) = (world.submissions(), world.submissions());
            let parent = blocks[0].clone();
            let submitting = tokio::spawn(async move { submit(&one, &parent).await.map(drop) });
            sleep(Duration::from_millis(pause)).await;
            let cancel = async || other.cancel(&tenant, &two, "enough").await;
            let cancelled = insist(cancel).await;
            submitting.await.unwrap().unwrap();
            world.core.set_faults(Faults::NONE);
            settle(&world).await;
            let out = published(&world.core.history(), "strict");
            match cancelled {
                Ok(_) => assert_eq!(out, ["b1"], "HEKATON_SIMULATION_SEED={seed}"),
                Err(SubmissionError::Taken(_)) => assert_eq!(out, ["b1", "b2", "b3"], "{seed}"),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(world.core.history().violations(), [], "HEKATON_SIMULATION_SEED={seed}");
            drop(node);
        });
    }
}
