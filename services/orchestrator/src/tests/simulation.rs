//! Random schedules of failures, checked by the history of what was stored.

use super::memory::{Bug, Faults};
use super::world::{Node, Provers, Shape, World, name, output};
use crate::bundler::bundles;
use crate::history::{History, Violation};
use crate::id::{Digest, Name};
use crate::intake::{Accepted, Intake, IntakeError, Path, Submission};
use crate::record::{Bundles, Chain, Handle, JobState, Order, Publication, TaskState, decode};
use rand::Rng;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

const SINGLE: &str = r#"
version = 1
name = "single"
[inputs.a]
[[stages]]
name = "prove"
from = ["a"]
backend = "prove"
"#;

const JOIN: &str = r#"
version = 1
name = "join"
[inputs.a]
[[stages]]
name = "prove"
from = ["a"]
backend = "prove"
[[stages]]
name = "join"
from = ["prove"]
collect = "all"
backend = "join"
copies = 2
"#;

/// Time stands still unless all components wait.
fn simulate<T>(test: impl AsyncFnOnce() -> T) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test())
}

/// A chain with strict order.
fn strict(chain: &str) -> Chain {
    Chain {
        tenant: name("tenant"),
        chain: name(chain),
        order: Order::Strict,
        genesis: Some(name("genesis")),
        bundles: None,
    }
}

fn submission(
    chain: &str,
    block: u64,
    id: &str,
    parent: Option<&str>,
    workflow: Digest,
) -> Submission {
    let inputs = (0..3).map(|at| Digest::of(format!("{chain} {id} {at}").as_bytes())).collect();
    Submission {
        tenant: name("tenant"),
        chain: name(chain),
        block,
        id: name(id),
        parent: parent.map(name),
        lane: 0,
        workflow,
        inputs: BTreeMap::from([(name("a"), inputs)]),
        trace: None,
    }
}

/// Asks until there is an answer.
async fn insist<T>(mut ask: impl AsyncFnMut() -> Result<T, IntakeError>) -> Result<T, IntakeError> {
    loop {
        match ask().await {
            Err(IntakeError::Unknown(_) | IntakeError::Read(_) | IntakeError::Store(_)) => {
                sleep(Duration::from_millis(100)).await;
            }
            other => return other,
        }
    }
}

async fn submit(intake: &Intake, submission: &Submission) -> Result<Accepted, IntakeError> {
    insist(async || intake.submit(submission.clone()).await).await
}

/// The ids that a chain has published, as its log tells.
fn published(history: &History, chain: &str) -> Vec<String> {
    let mut path: Vec<Name> = Vec::new();
    for entry in history.logs.iter().filter(|entry| entry.key == format!("out/tenant/{chain}")) {
        match decode::<Publication>(entry).unwrap().value {
            Publication::Revert { to, .. } => {
                let keep = path.iter().position(|id| *id == to).map_or(0, |at| at + 1);
                path.truncate(keep);
            }
            publication => path.push(publication.tail().clone()),
        }
    }
    path.iter().map(Name::to_string).collect()
}

/// One random schedule: what clients wanted, and what was stored.
async fn schedule(seed: u64, bug: Bug) -> (World, Vec<Handle>, Vec<String>) {
    let mut world = World::new(seed, bug);
    world.provers = Provers {
        most_millis: [50, 2_000, 20_000][world.random.gen_range(0..3)],
        failures: [0, 200][world.random.gen_range(0..2)],
        wrong: [0, 30][world.random.gen_range(0..2)],
        impossible: [0, 0, 60][world.random.gen_range(0..3)],
    };
    let workflows = [world.workflow(SINGLE), world.workflow(JOIN)];
    world.core.set_faults(Faults {
        lost_answers: [0, 50, 200][world.random.gen_range(0..3)],
        late_writes: [0, 50, 200][world.random.gen_range(0..3)],
        failed_reads: [0, 50][world.random.gen_range(0..2)],
        dead_watches: [0, 300][world.random.gen_range(0..2)],
        max_delay: Duration::from_millis([2, 30, 400][world.random.gen_range(0..3)]),
    });
    let intake = world.intake();
    let tenant = name("tenant");
    let bundles = Bundles {
        of: name("strict"),
        blocks: world.random.gen_range(1..4),
        workflow: workflows[1],
        input: name("a"),
        lane: 0,
    };
    let bundled = Chain { bundles: Some(bundles), ..strict("bundles") };
    let free = Chain { order: Order::None, genesis: None, ..strict("free") };
    for chain in [strict("strict"), free, bundled] {
        insist(async || intake.make_chain(chain.clone()).await).await.unwrap();
    }
    let shape = |world: &mut World| Shape {
        slots: world.random.gen_range(1..4),
        rate: [0.7, 1.0, 1.3][world.random.gen_range(0..3)],
        ..Shape::default()
    };
    let count = world.random.gen_range(1..4);
    let mut nodes: Vec<Option<Node>> = Vec::new();
    for _ in 0..count {
        let shape = shape(&mut world);
        nodes.push(Some(world.start(shape)));
    }
    let mut handles: Vec<Handle> = Vec::new();
    // The strict chain as clients know it.
    let mut path = vec!["genesis".to_owned()];
    let mut branch = 0;
    for _ in 0..world.random.gen_range(4..16) {
        let workflow = workflows[world.random.gen_range(0..2)];
        match world.random.gen_range(0..15) {
            0..=3 => {
                let parent = path.last().unwrap().clone();
                let id = format!("s{}-{branch}", path.len());
                let height = path.len() as u64;
                let wanted = submission("strict", height, &id, Some(&parent), workflow);
                // Something else may be in its place, left from before a re-org that was not one.
                if let Ok(accepted) = submit(&intake, &wanted).await {
                    handles.push(accepted.job.handle());
                    path.push(id);
                }
            }
            4..=5 => {
                let id = format!("f{}", world.random.gen_range(0..6));
                let height = world.random.gen_range(0..200);
                let wanted = submission("free", height, &id, None, workflow);
                if let Ok(accepted) = submit(&intake, &wanted).await {
                    handles.push(accepted.job.handle());
                }
            }
            6..=7 => {
                // Kill one, and start another one later.
                let at = world.random.gen_range(0..nodes.len());
                nodes[at] = match nodes[at].take() {
                    Some(node) => {
                        if world.random.gen_range(0..4) == 0 {
                            // In order, this time.
                            node.freeze(false);
                            node.shut_down(Duration::from_secs(1)).await;
                        }
                        None
                    }
                    None => {
                        let shape = shape(&mut world);
                        Some(world.start(shape))
                    }
                };
            }
            8 => {
                let at = world.random.gen_range(0..nodes.len());
                let frozen = world.random.r#gen();
                if let Some(node) = &nodes[at] {
                    node.freeze(frozen);
                }
            }
            9 if path.len() > 1 => {
                // Back to some block, and on with another branch.
                let keep = world.random.gen_range(0..path.len());
                let to = name(&path[keep]);
                let chain = name("strict");
                let revert = async || intake.revert(&tenant, &chain, &to, keep as u64).await;
                if insist(revert).await.is_ok() {
                    path.truncate(keep + 1);
                    branch = world.random.gen_range(0..2);
                }
            }
            10 if !handles.is_empty() => {
                let at = world.random.gen_range(0..handles.len());
                let _ = insist(async || intake.requeue(&tenant, &handles[at]).await).await;
            }
            12 if !handles.is_empty() => {
                let at = world.random.gen_range(0..handles.len());
                let _ = insist(async || intake.cancel(&tenant, &handles[at], "enough").await).await;
            }
            13 if path.len() > 2 => {
                // A client that sends an old block again while an operator reverts, and one that gives up half-way.
                let (to, keep) = (name(&path[1]), 1);
                let workflow = workflows[0];
                let again = submission("strict", 2, &path[2], Some(&path[1]), workflow);
                let (one, two) = (world.intake(), world.intake());
                let (patience, other) =
                    (world.random.gen_range(1..400), world.random.r#gen::<bool>());
                let chain = name("strict");
                let revert = one.revert(&tenant, &chain, &to, keep);
                let submit = async {
                    sleep(Duration::from_millis(patience / 3)).await;
                    let _ = two.submit(again).await;
                };
                let both = futures_util::future::join(revert, submit);
                if other {
                    let _ = both.await;
                } else {
                    let _ = tokio::time::timeout(Duration::from_millis(patience), both).await;
                }
                // Whatever became of it, the operator repeats it.
                let revert = async || intake.revert(&tenant, &chain, &to, keep).await;
                if insist(revert).await.is_ok() {
                    path.truncate(2);
                    branch = world.random.gen_range(0..2);
                }
            }
            14 => {
                // The machine loses its power. What follows from other records may be lost, and nothing that anybody was told.
                let count = nodes.len();
                nodes.clear();
                // Until then, a part of a process may still take a step.
                sleep(Duration::from_millis(5)).await;
                let lost = world.core.crash();
                world.lost.extend(lost.into_iter().filter(|key| {
                    !["task/", "owner/", "published/"].iter().any(|kind| key.starts_with(kind))
                }));
                for _ in 0..count {
                    let shape = shape(&mut world);
                    nodes.push(Some(world.start(shape)));
                }
            }
            11 if !handles.is_empty() => {
                let at = world.random.gen_range(0..handles.len());
                let _ = insist(async || intake.skip(&tenant, &handles[at]).await).await;
            }
            _ => {}
        }
        let pause = world.random.gen_range(0..6_000);
        sleep(Duration::from_millis(pause)).await;
    }
    // The storm is over.
    world.core.set_faults(Faults::NONE);
    for node in nodes.iter().flatten() {
        node.freeze(false);
    }
    let last = world.start(Shape::default());
    settle(&world).await;
    drop((nodes, last));
    (world, handles, path)
}

/// Waits until nothing is written anymore.
async fn settle(world: &World) {
    let mut written = 0;
    let mut quiet = 0;
    for _ in 0..200 {
        if quiet == 4 {
            return;
        }
        sleep(Duration::from_secs(30)).await;
        let history = world.core.history();
        let now = history.records.len() + history.logs.len();
        quiet = if now == written { quiet + 1 } else { 0 };
        written = now;
    }
}

/// What the history of a schedule breaks.
fn broken(world: &World, handles: &[Handle]) -> Vec<String> {
    let mut history = world.core.history();
    // With answers that are lost and watches that are dead, a dispatcher learns of a task at its next sweep.
    history.free_millis = 60_000;
    let mut found: Vec<String> = history.violations().iter().map(Violation::to_string).collect();
    found.extend(world.lost.iter().map(|key| format!("'{key}' was lost in a crash")));
    let jobs = history.jobs();
    for job in jobs.values() {
        if let JobState::Live = job.state {
            found.push(format!("job '{}' has not ended", job.id));
        }
    }
    for handle in handles {
        let known =
            jobs.values().any(|job| job.chain == handle.chain && job.key().slot == handle.slot);
        if !known {
            found.push(format!("job '{handle}' was accepted and is not there"));
        }
    }
    found.extend(missing_bundle(&history));
    for (key, task) in history.tasks() {
        match task.state {
            TaskState::Done { output: made, .. } if made != output(&task) => {
                found.push(format!("'{key}' has the output of another task"));
            }
            ref state if !state.is_final() => found.push(format!("'{key}' is {}", state.word())),
            _ => {}
        }
    }
    for job in jobs.values().filter(|job| matches!(job.state, JobState::Done { .. })) {
        let out = published(&history, job.chain.as_str());
        let follows =
            |parent: &Name| parent.as_str() == "genesis" || out.contains(&parent.to_string());
        if job.parent.as_ref().is_none_or(follows) && !out.contains(&job.id.to_string()) {
            found.push(format!("block '{}' is done and not published: {out:?}", job.id));
        }
    }
    found
}

/// The bundles that the chain `strict` has by now are all published, up to the first one that is dead.
fn missing_bundle(history: &History) -> Option<String> {
    let chains = history.records.iter().filter_map(|version| decode::<Chain>(&version.entry).ok());
    let chain = chains.map(|chain| chain.value).find(|chain| chain.bundles.is_some())?;
    let genesis = chain.genesis?;
    let mut path = Path::new(genesis.clone());
    for entry in history.logs.iter().filter(|entry| entry.key == "out/tenant/strict") {
        path.add(decode::<Publication>(entry).unwrap().value);
    }
    let wanted = bundles(&genesis, chain.bundles?.blocks, &path.blocks);
    let wanted: Vec<String> = wanted.iter().map(|bundle| bundle.id.to_string()).collect();
    let out = published(history, "bundles");
    let next = wanted.get(out.len());
    let dead = history.jobs().values().any(|job| {
        Some(job.id.as_str()) == next.map(String::as_str)
            && matches!(job.state, JobState::Dead { .. })
    });
    let right = wanted.starts_with(&out) && (dead || out.len() == wanted.len());
    (!right).then(|| format!("the bundles {out:?} are published, and there are {wanted:?}"))
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("HEKATON_SIMULATION_SEED", 0);
    first..first + number("HEKATON_SIMULATIONS", 150)
}

#[test]
fn random_schedules_break_no_promise() {
    for seed in seeds() {
        let found = simulate(async || {
            let (world, handles, _) = schedule(seed, Bug::None).await;
            broken(&world, &handles)
        });
        assert_eq!(found, Vec::<String>::new(), "HEKATON_SIMULATION_SEED={seed}");
    }
}

/// The checker is worth something: it finds each of these within a few schedules.
#[test]
fn stores_that_ignore_revisions_are_found() {
    for bug in [Bug::BlindUpdates, Bug::BlindAppends, Bug::NeverSynced] {
        let found = (0..200).find_map(|seed| {
            simulate(async || {
                let (world, ..) = schedule(seed, bug).await;
                let found = world.core.history().violations();
                found.first().map(Violation::to_string).or_else(|| world.lost.first().cloned())
            })
        });
        let found = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        assert!(!found.is_empty());
    }
}

/// A store with one job of one task, which is done and published.
async fn done_world() -> (World, Handle) {
    let mut world = World::new(7, Bug::None);
    let workflow = world.workflow(SINGLE);
    let intake = world.intake();
    intake.make_chain(strict("strict")).await.unwrap();
    let wanted = submission("strict", 1, "one", Some("genesis"), workflow);
    let handle = submit(&intake, &wanted).await.unwrap().job.handle();
    let node = world.start(Shape::default());
    settle(&world).await;
    drop(node);
    assert_eq!(broken(&world, std::slice::from_ref(&handle)), [""; 0]);
    (world, handle)
}

/// A cheat is written as a test double: what each of them writes, the checker finds.
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

/// A publisher that was stopped between its look at a job and its append must not get past a re-org.
#[test]
fn nothing_cancelled_is_published_after_a_reversal() {
    use crate::record::encode;
    simulate(async || {
        let (mut world, _) = done_world().await;
        let (store, intake) = (world.store(), world.intake());
        let workflow = world.workflow(SINGLE);
        let node = world.start(Shape::default());
        let log = "out/tenant/strict";
        // The publisher's view of the tail, before the next block is out.
        let before = store.tail(log).await.unwrap().unwrap();
        intake.revert(&name("tenant"), &name("strict"), &name("one"), 1).await.unwrap();
        let late = Publication::Skip { block: 2, id: name("two"), parent: name("one") };
        let append = store.append(log, encode(&late, 0), Some(before.rev)).await;
        assert!(append.is_err(), "the reversal to the tail itself must stop it, too");

        // A, B, A: the first branch is live again, and its tasks are not run again.
        let a = submission("strict", 2, "a", Some("one"), workflow);
        submit(&intake, &a).await.unwrap();
        settle(&world).await;
        let runs = world.runs.lock().unwrap().values().sum::<u32>();
        intake.revert(&name("tenant"), &name("strict"), &name("one"), 1).await.unwrap();
        submit(&intake, &submission("strict", 2, "b", Some("one"), workflow)).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict"), ["one", "b"]);
        intake.revert(&name("tenant"), &name("strict"), &name("one"), 1).await.unwrap();
        let again = submit(&intake, &a).await.unwrap();
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

/// Blocks are bundled as they are published. A re-org tears off the bundles with them, and a branch that comes back finds its own.
#[test]
fn bundles_follow_what_is_published() {
    use crate::record::encode;
    simulate(async || {
        let mut world = World::new(5, Bug::None);
        let (single, join) = (world.workflow(SINGLE), world.workflow(JOIN));
        let (intake, tenant) = (world.intake(), name("tenant"));
        let spec =
            Bundles { of: name("strict"), blocks: 2, workflow: join, input: name("a"), lane: 0 };
        let bundled = Chain { bundles: Some(spec.clone()), ..strict("bundles") };
        let early = intake.make_chain(bundled.clone()).await;
        assert!(matches!(early, Err(IntakeError::NoChain(_))), "{early:?}");
        intake.make_chain(strict("strict")).await.unwrap();
        for (wrong, why) in [
            (Bundles { blocks: 0, ..spec.clone() }, "0 blocks"),
            (Bundles { blocks: 513, ..spec.clone() }, "1 to 512"),
            (Bundles { of: name("bundles"), ..spec.clone() }, "its own blocks"),
            (Bundles { input: name("b"), ..spec.clone() }, "no input 'b'"),
            (Bundles { workflow: Digest::of(b"none"), ..spec.clone() }, "workflow"),
        ] {
            let chain = Chain { bundles: Some(wrong), ..strict("bundles") };
            let refused = intake.make_chain(chain).await.unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        intake.make_chain(bundled).await.unwrap();
        let own = submission("bundles", 1, "own", Some("genesis"), join);
        let refused = intake.submit(own).await;
        assert!(matches!(refused, Err(IntakeError::Taken(_))), "{refused:?}");

        let node = world.start(Shape::default());
        let block = |block: u64, id: &str, parent: &str| {
            submission("strict", block, id, Some(parent), single)
        };
        for wanted in [block(1, "a1", "genesis"), block(2, "a2", "a1"), block(3, "a3", "a2")] {
            submit(&intake, &wanted).await.unwrap();
        }
        settle(&world).await;
        let first = published(&world.core.history(), "bundles");
        assert_eq!(first.len(), 1, "the third block waits for a fourth");
        for wanted in [block(4, "a4", "a3"), block(5, "a5", "a4")] {
            submit(&intake, &wanted).await.unwrap();
        }
        settle(&world).await;
        let both = published(&world.core.history(), "bundles");
        assert_eq!((both.len(), &both[..1]), (2, &first[..]));

        // Another branch from the third block on: the first bundle stays.
        let chain = name("strict");
        intake.revert(&tenant, &chain, &name("a3"), 3).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "bundles"), first);
        submit(&intake, &block(4, "b4", "a3")).await.unwrap();
        settle(&world).await;
        let other = published(&world.core.history(), "bundles");
        assert_eq!((other.len(), &other[..1]), (2, &first[..]));
        assert_ne!(other, both);
        // And back.
        let runs = world.runs.lock().unwrap().values().sum::<u32>();
        intake.revert(&tenant, &chain, &name("a3"), 3).await.unwrap();
        submit(&intake, &block(4, "a4", "a3")).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "bundles"), both);
        assert_eq!(world.runs.lock().unwrap().values().sum::<u32>(), runs, "all was done before");
        assert_eq!(broken(&world, &[]), [""; 0]);

        // Who publishes a bundle of a branch that is not there anymore, or one with other inputs, is found.
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
            found.iter().any(|it| it.why.contains("'rogue' is no bundle of 'strict'")),
            "{found:?}"
        );
        drop(node);
    });
}

/// A dispatcher whose claim was applied after it gave up waiting holds a lease that it does not know of.
#[test]
fn leases_that_nobody_runs_are_given_back() {
    simulate(async || {
        let mut world = World::new(3, Bug::None);
        let workflow = world.workflow(SINGLE);
        let intake = world.intake();
        intake
            .make_chain(Chain { order: Order::None, genesis: None, ..strict("free") })
            .await
            .unwrap();
        let collector = world.start(Shape { slots: 0, ..Shape::default() });
        submit(&intake, &submission("free", 1, "one", None, workflow)).await.unwrap();
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
        let intake = world.intake();
        intake.make_chain(strict("strict")).await.unwrap();
        let dying = world.start(Shape::default());
        let first = submit(&intake, &submission("strict", 1, "b1", Some("genesis"), workflow))
            .await
            .unwrap();
        settle(&world).await;
        drop(dying);
        world.provers = Provers::GOOD;
        let node = world.start(Shape { slots: 8, ..Shape::default() });
        for block in 2..80 {
            let (id, parent) = (format!("b{block}"), format!("b{}", block - 1));
            submit(&intake, &submission("strict", block, &id, Some(&parent), workflow))
                .await
                .unwrap();
        }
        settle(&world).await;
        let jobs = world.core.history().jobs();
        let done = jobs.values().filter(|job| matches!(job.state, JobState::Done { .. }));
        assert_eq!(done.map(|job| job.block).max(), Some(65));
        assert_eq!(published(&world.core.history(), "strict"), [""; 0]);

        // Skipped, the chain goes on, and all of it is published.
        let (tenant, handle) = (name("tenant"), first.job.handle());
        intake.skip(&tenant, &handle).await.unwrap();
        settle(&world).await;
        assert_eq!(published(&world.core.history(), "strict").len(), 79);
        assert_eq!(broken(&world, &[]), [""; 0]);
        drop(node);
    });
}

/// Two collectors divide the partitions, and the one that is left takes all.
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
        // None has more than its share, rounded up.
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
