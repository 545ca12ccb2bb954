//! Random schedules of failures, checked by the history of what was stored.

use super::memory::{Bug, Faults, Loss};
use super::world::{Node, Provers, Shape, World, name, output};
use crate::bundle::bundles;
use crate::history::{History, Violation};
use crate::record::{Bundles, Chain, Handle, Job, JobState, Order, Publication, TaskState, decode};
use crate::standstill::Cause;
use crate::store::Entry;
use crate::submissions::{Accepted, Path, Reversal, Submission, SubmissionError, Submissions};
use hekaton_orchestrator_client::{Digest, Name};
use rand::Rng;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

pub(super) const SINGLE: &str = r#"
version = 1
name = "single"
[inputs.a]
[[stages]]
name = "prove"
from = ["a"]
backend = "prove"
"#;

pub(super) const JOIN: &str = r#"
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
pub(super) fn simulate<T>(test: impl AsyncFnOnce() -> T) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test())
}

/// A chain with strict order.
pub(super) fn strict(chain: &str) -> Chain {
    Chain {
        tenant: name("tenant"),
        chain: name(chain),
        order: Order::Strict,
        genesis: Some(name("genesis")),
        bundles: None,
    }
}

pub(super) fn submission(
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

pub(super) fn reversal(to: &str, block: u64) -> Reversal {
    Reversal { to: name(to), block, next: None }
}

const AGAIN: Duration = Duration::from_millis(100);

fn is_to_be_repeated(error: &SubmissionError) -> bool {
    matches!(
        error,
        SubmissionError::Unknown(_) | SubmissionError::Read(_) | SubmissionError::Store(_)
    )
}

/// Asks until there is an answer.
pub(super) async fn insist<T>(
    mut ask: impl AsyncFnMut() -> Result<T, SubmissionError>,
) -> Result<T, SubmissionError> {
    loop {
        match ask().await {
            Err(error) if is_to_be_repeated(&error) => sleep(AGAIN).await,
            other => return other,
        }
    }
}

pub(super) async fn submit(
    submissions: &Submissions,
    submission: &Submission,
) -> Result<Accepted, SubmissionError> {
    // Retries by itself, not with `insist`, so that it can be spawned.
    loop {
        match submissions.submit(submission.clone()).await {
            Err(error) if is_to_be_repeated(&error) => sleep(AGAIN).await,
            other => return other,
        }
    }
}

/// Reverts the chain `strict`.
pub(super) async fn revert(
    submissions: &Submissions,
    to: &Reversal,
) -> Result<(), SubmissionError> {
    let (tenant, chain) = (name("tenant"), name("strict"));
    loop {
        match submissions.revert(&tenant, &chain, to).await {
            Err(error) if is_to_be_repeated(&error) => sleep(AGAIN).await,
            other => return other,
        }
    }
}

/// Returns the ids that a chain has published, according to its log.
pub(super) fn published(history: &History, chain: &str) -> Vec<String> {
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

/// Runs one random schedule. Returns the world, the jobs that clients wanted, and the path of the strict chain.
async fn schedule(seed: u64, bug: Bug, is_hasty: bool) -> (World, Vec<Handle>, Vec<String>) {
    let mut world = World::new(seed, bug);
    world.is_hasty = is_hasty;
    // Not from the world's randomness: schedules without removals stay what they were.
    let seconds = |seconds: u64| Duration::from_secs(seconds);
    let keep = seconds(10 + seed % 50);
    // Longer than any write may be late.
    let last = usize::try_from(seed % 2).unwrap();
    world.keep = (!seed.is_multiple_of(3)).then_some((keep, seconds(30), last));
    world.provers = Provers {
        most_millis: [50, 2_000, 20_000][world.random.gen_range(0..3)],
        failures: [0, 200][world.random.gen_range(0..2)],
        wrong: [0, 30][world.random.gen_range(0..2)],
        impossible: [0, 0, 60][world.random.gen_range(0..3)],
        ..Provers::GOOD
    };
    let workflows = [world.workflow(SINGLE), world.workflow(JOIN)];
    world.core.set_faults(Faults {
        lost_answers: [0, 50, 200][world.random.gen_range(0..3)],
        late_writes: [0, 50, 200][world.random.gen_range(0..3)],
        failed_reads: [0, 50][world.random.gen_range(0..2)],
        dead_watches: [0, 300][world.random.gen_range(0..2)],
        failed_syncs: if seed.is_multiple_of(4) { 200 } else { 0 },
        max_delay: Duration::from_millis([2, 30, 400][world.random.gen_range(0..3)]),
    });
    let submissions = world.submissions();
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
        insist(async || submissions.make_chain(chain.clone()).await).await.unwrap();
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
                if let Ok(accepted) = submit(&submissions, &wanted).await {
                    handles.push(accepted.job.handle());
                    path.push(id);
                }
            }
            4..=5 => {
                let id = format!("f{}", world.random.gen_range(0..6));
                let height = world.random.gen_range(0..200);
                let wanted = submission("free", height, &id, None, workflow);
                if let Ok(accepted) = submit(&submissions, &wanted).await {
                    handles.push(accepted.job.handle());
                }
            }
            6..=7 => {
                // Kill one process, and start another one later.
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
                // Revert to some block, and continue with another branch.
                let keep = world.random.gen_range(0..path.len());
                let to = reversal(&path[keep], keep as u64);
                let chain = name("strict");
                let revert = async || submissions.revert(&tenant, &chain, &to).await;
                if insist(revert).await.is_ok() {
                    path.truncate(keep + 1);
                    branch = world.random.gen_range(0..2);
                }
            }
            10 if !handles.is_empty() => {
                let at = world.random.gen_range(0..handles.len());
                let _ = insist(async || submissions.requeue(&tenant, &handles[at]).await).await;
            }
            12 if !handles.is_empty() => {
                let at = world.random.gen_range(0..handles.len());
                let cancel = async || submissions.cancel(&tenant, &handles[at], "enough").await;
                if world.random.r#gen() {
                    let _ = insist(cancel).await;
                } else {
                    // The client that cancels gives up half-way, and another client has a block for the place.
                    let patience = Duration::from_millis(world.random.gen_range(1..200));
                    let _ = tokio::time::timeout(patience, insist(cancel)).await;
                    let chain = handles[at].chain.as_str();
                    let found = path.iter().position(|id| *id == handles[at].slot.as_str());
                    if let (Some(parent), "strict") = (found, chain) {
                        let (id, height) = (format!("o{parent}-{branch}"), parent as u64 + 1);
                        let wanted = submission(chain, height, &id, Some(&path[parent]), workflow);
                        if let Ok(accepted) = submit(&submissions, &wanted).await {
                            handles.push(accepted.job.handle());
                            path.truncate(parent + 1);
                            path.push(id);
                        }
                    }
                }
            }
            13 if path.len() > 2 => {
                // A client that sends an old block again while an operator reverts, and one that gives up half-way.
                let to = reversal(&path[1], 1);
                let workflow = workflows[0];
                let again = submission("strict", 2, &path[2], Some(&path[1]), workflow);
                let (one, two) = (world.submissions(), world.submissions());
                let (patience, other) =
                    (world.random.gen_range(1..400), world.random.r#gen::<bool>());
                let chain = name("strict");
                let revert = one.revert(&tenant, &chain, &to);
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
                // The operator repeats it, whatever became of it.
                let revert = async || submissions.revert(&tenant, &chain, &to).await;
                if insist(revert).await.is_ok() {
                    path.truncate(2);
                    branch = world.random.gen_range(0..2);
                }
            }
            14 => {
                // The machine loses its power. The last writes may be lost, but nothing that a client was told of.
                listen(&mut world, &submissions, &handles).await;
                let count = nodes.len();
                nodes.clear();
                // Until then, a part of a process may still take a step.
                sleep(Duration::from_millis(5)).await;
                world.core.crash(Loss::Last);
                for _ in 0..count {
                    let shape = shape(&mut world);
                    nodes.push(Some(world.start(shape)));
                }
            }
            11 if !handles.is_empty() => {
                let at = world.random.gen_range(0..handles.len());
                let _ = insist(async || submissions.skip(&tenant, &handles[at]).await).await;
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
    // Its back-ends must not be quarantined: there may be no other process.
    world.provers.wrong = 0;
    let last = world.start(Shape::default());
    settle(&world).await;
    drop((nodes, last));
    (world, handles, path)
}

/// Notes what a client learns of chains and jobs.
async fn listen(world: &mut World, submissions: &Submissions, handles: &[Handle]) {
    let tenant = name("tenant");
    for chain in ["strict", "free", "bundles"] {
        let (log, chain) = (format!("out/tenant/{chain}"), name(chain));
        let read = async || submissions.published(&tenant, &chain, 0, usize::MAX).await;
        let found = insist(read).await.unwrap();
        world.told.extend(
            found.iter().map(|(rev, block)| {
                (log.clone(), rev.number, serde_json::to_string(block).unwrap())
            }),
        );
    }
    for handle in handles {
        // Another job may have its place by now.
        if let Ok(found) = insist(async || submissions.job(&tenant, handle).await).await {
            let text = serde_json::to_string(&found.value).unwrap();
            world.told.insert((found.value.key().to_string(), found.rev.number, text));
        }
    }
}

/// Returns what clients have learned and is not in the history.
fn forgotten(world: &World, history: &History) -> Vec<String> {
    let entries = history.logs.iter().chain(history.records.iter().map(|version| &version.entry));
    let there: BTreeMap<(&str, u64), &Entry> =
        entries.map(|entry| ((&*entry.key, entry.rev.number), entry)).collect();
    let is_there = |(key, number, text): &(String, u64, String)| {
        let Some(entry) = there.get(&(&**key, *number)) else { return false };
        let text_of = |value: serde_json::Result<String>| value.is_ok_and(|found| found == *text);
        match key.starts_with("out/") {
            true => decode::<Publication>(entry)
                .is_ok_and(|found| text_of(serde_json::to_string(&found.value))),
            false => {
                decode::<Job>(entry).is_ok_and(|found| text_of(serde_json::to_string(&found.value)))
            }
        }
    };
    let lost = world.told.iter().filter(|told| !is_there(told));
    lost.map(|(key, number, _)| format!("a client was told of '{key}' at {number}")).collect()
}

/// Waits until no writes have happened for a while.
pub(super) async fn settle(world: &World) {
    let mut written = 0;
    let mut quiet = 0;
    for _ in 0..200 {
        if quiet == 4 {
            return;
        }
        sleep(Duration::from_secs(30)).await;
        let now = world.core.written();
        quiet = if now == written { quiet + 1 } else { 0 };
        written = now;
    }
}

/// Returns the violations that the history of a schedule contains.
pub(super) fn broken(world: &World, handles: &[Handle]) -> Vec<String> {
    let mut history = world.core.history();
    // With answers that are lost and watches that are dead, a dispatcher learns of a task at its next sweep.
    history.free_millis = 60_000;
    let mut found: Vec<String> = history.violations().iter().map(Violation::to_string).collect();
    found.extend(world.core.broken().iter().map(|key| format!("'{key}' was lost in a crash")));
    found.extend(forgotten(world, &history));
    let jobs = history.jobs();
    for job in jobs.values() {
        if let JobState::Live = job.state {
            found.push(format!("job '{}' has not ended", job.id));
        }
    }
    // Jobs may have been removed since, but not live ones, which the history shows.
    let versions = history.records.iter().map(|version| &version.entry);
    let ever: BTreeMap<String, Job> = versions
        .filter_map(|entry| Some((entry.key.clone(), decode::<Job>(entry).ok()?.value)))
        .collect();
    for handle in handles {
        let known =
            ever.values().any(|job| job.chain == handle.chain && job.key().slot == handle.slot);
        if !known {
            found.push(format!("job '{handle}' was accepted and is not there"));
        }
    }
    found.extend(missing_bundle(&history));
    // Each block that is not published by now is dead, or waits for a block that a client has taken back.
    let end = history.records.last().map_or(0, |version| version.at);
    let standing = history.standstills(end, Duration::ZERO).into_iter();
    let untold = standing.filter(|one| {
        !matches!(one.cause, Cause::Dead { .. } | Cause::NoParent { fate: Some(_), .. })
    });
    found.extend(untold.map(|one| format!("it stands still: {one}")));
    for (key, task) in history.tasks() {
        match task.state {
            TaskState::Done { output: made, .. } if made != output(&task) => {
                found.push(format!("'{key}' has the output of another task"));
            }
            ref state if !state.is_final() => found.push(format!("'{key}' is {}", state.word())),
            _ => {}
        }
    }
    // Each published block is the one in its place, whatever was cancelled or replaced.
    let mut before = "genesis".to_owned();
    for id in published(&history, "strict") {
        let mut places = ever.values().filter(|job| job.chain.as_str() == "strict");
        let there = places.find(|job| job.key().slot.as_str() == before).map(|job| &job.id);
        if there.map(Name::as_str) != Some(&id) {
            found.push(format!("'{id}' is published, and {there:?} is in its place"));
        }
        before = id;
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

/// All bundles that the chain `strict` has by now are published, up to the first dead one.
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
            let (world, handles, _) = schedule(seed, Bug::None, false).await;
            broken(&world, &handles)
        });
        assert_eq!(found, Vec::<String>::new(), "HEKATON_SIMULATION_SEED={seed}");
    }
}

/// Returns the first fault that is found in some hundred schedules.
fn first_fault(bug: Bug, is_hasty: bool) -> Option<String> {
    (0..1_000).find_map(|seed| {
        simulate(async || {
            let (world, handles, _) = schedule(seed, bug, is_hasty).await;
            broken(&world, &handles).into_iter().next()
        })
    })
}

#[test]
fn stores_that_ignore_revisions_or_lose_what_is_on_disk_are_found() {
    for bug in [Bug::BlindUpdates, Bug::BlindAppends, Bug::NeverSynced, Bug::Unordered] {
        assert!(first_fault(bug, false).is_some(), "{bug:?} was not found");
    }
}

#[test]
fn clients_that_are_told_of_writes_too_early_are_found() {
    let found = first_fault(Bug::None, true).expect("a crash takes back what a client was told");
    assert!(found.starts_with("a client was told of"), "{found}");
}
