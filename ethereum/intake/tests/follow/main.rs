//! The branch of the last payload is published, in whichever order blocks arrive, branches change, answers are lost, and processes die.

#[path = "../common/forest.rs"]
mod forest;
mod orchestrator;
mod real;

use forest::{Random, arrivals, expected, forest, id, parent};
use hekaton_intake::DEPTH;
use hekaton_intake::Jobs;
use hekaton_intake::canonical::Options;
use hekaton_intake::record::{Record, Source};
use hekaton_intake::stand_in::Block;
use hekaton_intake::store::WitnessStore;
use hekaton_intake::submitter::JobSubmitter;
use hekaton_orchestrator::Client;
use hekaton_witness_format::ExecutionWitness;
use orchestrator::{Fault, Orchestrator};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

struct World {
    runtime: tokio::runtime::Runtime,
    end: watch::Sender<bool>,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        Self { runtime, end: watch::channel(false).0 }
    }

    fn orchestrator(&self) -> (Orchestrator, String) {
        let bound = self.runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("http://{}", bound.local_addr().unwrap());
        let orchestrator = Orchestrator::new();
        let (router, mut end) = (orchestrator.clone().router(), self.end.subscribe());
        self.runtime.spawn(async move {
            let ended = async move { drop(end.wait_for(|ended| *ended).await) };
            axum::serve(bound, router).with_graceful_shutdown(ended).await.unwrap();
        });
        (orchestrator, address)
    }
}

fn submitter(folder: &Path, address: &str, genesis: &str) -> JobSubmitter {
    let jobs = Jobs {
        client: Client::new(address, None),
        chain: "blocks".into(),
        genesis: Some(genesis.to_owned()),
        backend: "witness".into(),
    };
    JobSubmitter::new(Arc::new(WitnessStore::open(folder, Options::default()).unwrap()), Some(jobs))
}

fn accept(submitter: &JobSubmitter, block: &Block) -> Record {
    let witness = ExecutionWitness::decode(&block.witness).unwrap();
    let envelope = &block.parameters.envelope;
    submitter.store().accept(Source::Push, envelope, None, &witness, &block.public_keys).unwrap()
}

/// Returns a folder in memory, if there is one: thousands of files are synced.
fn folder() -> tempfile::TempDir {
    match Path::new("/dev/shm").is_dir() {
        true => tempfile::tempdir_in("/dev/shm").unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

/// Submits, proves and publishes until nothing changes.
fn settle(submitter: &JobSubmitter, orchestrator: &Orchestrator) {
    orchestrator.chain().fault = Fault::None;
    for _ in 0..20 {
        let made = submitter.submit().unwrap();
        let mut chain = orchestrator.chain();
        let mut moved = made > 0;
        while chain.prove(0) {
            moved = true;
        }
        while chain.publish() {
            moved = true;
        }
        if !moved {
            return;
        }
    }
    panic!("it does not come to rest");
}

/// Checks that at rest the branch is published in order, nothing else is open, and records report it.
fn check(
    submitter: &JobSubmitter,
    orchestrator: &Orchestrator,
    blocks: &[Block],
    accepted: &[usize],
) {
    let branch = expected(blocks, accepted);
    let chain = orchestrator.chain();
    let path: Vec<String> = chain.path().into_iter().skip(1).map(|(id, _)| id).collect();
    assert_eq!(path, branch, "published, and wanted");
    assert_eq!(chain.open(), Vec::<String>::new(), "jobs that nobody wants");
    for block in blocks {
        let record = submitter.store().record(&id(block)).unwrap().unwrap();
        let on_branch = branch.contains(&record.block);
        let found = (record.pending, record.aside, record.job.is_some(), record.refused);
        assert_eq!(found, (false, !on_branch, on_branch, None), "{}", record.block);
    }
    assert_eq!(submitter.store().waiting(), 0);
}

/// Runs one schedule, which its number determines entirely.
fn run(world: &World, number: u64) {
    let mut random = Random(number);
    let blocks = forest(&mut random, 6);
    let (orchestrator, address) = world.orchestrator();
    let folder = folder();
    let genesis = parent(&blocks[0]);
    let mut now = submitter(folder.path(), &address, &genesis);
    let mut arrivals = arrivals(&mut random, blocks.len());
    let mut accepted = Vec::new();
    arrivals.reverse();
    while let Some(next) = arrivals.last().copied() {
        match random.below(16) {
            0..=4 => {
                accept(&now, &blocks[next]);
                accepted.push(next);
                arrivals.pop();
            }
            // The answer of a request, and all that come after it, may be lost.
            5..=7 => drop(now.submit()),
            8 => orchestrator.chain().fault = Fault::After(random.below(12)),
            9 => orchestrator.chain().fault = Fault::Away,
            10 | 11 => orchestrator.chain().fault = Fault::None,
            12 => {
                drop(now);
                now = submitter(folder.path(), &address, &genesis);
            }
            13 => {
                let at = random.below(9);
                let mut chain = orchestrator.chain();
                chain.prove(at);
                while chain.publish() {}
            }
            14 => {
                let mut chain = orchestrator.chain();
                while chain.prove(0) || chain.publish() {}
            }
            // Operators take blocks back at random.
            _ => {
                let at = random.below(9);
                let mut chain = orchestrator.chain();
                chain.cancel(at);
                let path = chain.path();
                let (to, height) = &path[at % path.len()];
                if !to.is_empty() {
                    chain.revert(to, *height, None).unwrap();
                }
            }
        }
    }
    settle(&now, &orchestrator);
    check(&now, &orchestrator, &blocks, &accepted);
    // A process that starts now finds nothing to do.
    drop(now);
    let again = submitter(folder.path(), &address, &genesis);
    assert_eq!(again.submit().unwrap(), 0);
    check(&again, &orchestrator, &blocks, &accepted);
}

/// Runs `HEKATON_SCHEDULES` schedules, from `HEKATON_FIRST_SCHEDULE` on.
#[test]
fn the_last_branch_is_published_in_any_schedule() {
    let number = |name: &str, usually| {
        std::env::var(name).map_or(usually, |text| text.parse::<u64>().unwrap())
    };
    let first = number("HEKATON_FIRST_SCHEDULE", 0);
    let count = number("HEKATON_SCHEDULES", 150);
    let world = World::new();
    for number in first..first + count {
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&world, number)));
        assert!(ran.is_ok(), "schedule {number}");
    }
    world.end.send_replace(true);
}

/// A branch that forks too far below the published blocks is left to operators, and its record says so.
#[test]
fn a_deep_branch_waits_for_an_operator() {
    let world = World::new();
    let (orchestrator, address) = world.orchestrator();
    let blocks = Block::chain(3, 5, 1, 1_500);
    let from = parent(&blocks[0]);
    let heights = 4..5 + DEPTH as u64 + 1;
    orchestrator.chain().publish_all(&from, heights.clone());
    let folder = folder();
    let submitter = self::submitter(folder.path(), &address, &"0".repeat(64));
    accept(&submitter, &blocks[0]);
    let refused = || {
        submitter.submit().unwrap();
        let record = submitter.store().record(&id(&blocks[0])).unwrap().unwrap();
        assert!(record.pending == record.refused.is_some(), "{record:?}");
        record.refused
    };
    assert!(refused().is_some_and(|why| why.contains("does not meet")));
    assert_eq!((orchestrator.chain().reverts, submitter.store().waiting()), (0, 1));
    // Once an operator has taken it back that far, it is followed.
    orchestrator.chain().revert(&from, 4, None).unwrap();
    assert_eq!(refused(), None);
    settle(&submitter, &orchestrator);
    assert_eq!(orchestrator.chain().path().pop(), Some((id(&blocks[0]), 5)));
    world.end.send_replace(true);
}

/// Far below the published blocks, a block does not matter until the chain is taken back that far.
#[test]
fn a_deep_revert_finds_blocks_that_were_published_long_ago() {
    let world = World::new();
    let (orchestrator, address) = world.orchestrator();
    let blocks = Block::chain(4, 5, 2, 1_500);
    let from = parent(&blocks[0]);
    orchestrator.chain().publish_all(&from, 4..5);
    let folder = folder();
    let submitter = self::submitter(folder.path(), &address, &"0".repeat(64));
    blocks.iter().for_each(|block| drop(accept(&submitter, block)));
    settle(&submitter, &orchestrator);
    let path = || orchestrator.chain().path().into_iter().skip(2).collect::<Vec<_>>();
    let wanted = vec![(id(&blocks[0]), 5), (id(&blocks[1]), 6)];
    assert_eq!(path(), wanted);
    // Other clients extend the chain further than a branch may reach back.
    let far = 7 + 2 * DEPTH as u64;
    orchestrator.chain().publish_all(&format!("{:064x}", 7), 7..far);
    settle(&submitter, &orchestrator);
    assert_eq!(path().len(), 2 + 2 * DEPTH);
    orchestrator.chain().revert(&from, 4, None).unwrap();
    settle(&submitter, &orchestrator);
    assert_eq!(path(), wanted);
    for block in &blocks {
        let record = submitter.store().record(&id(block)).unwrap().unwrap();
        assert!(!record.pending && record.refused.is_none(), "{record:?}");
    }
    world.end.send_replace(true);
}

/// A job that another client cancels repeatedly is reported by the record, and made less often, until the chain moves.
#[test]
fn who_undoes_everything_is_noticed() {
    let world = World::new();
    let (orchestrator, address) = world.orchestrator();
    let blocks = Block::chain(5, 5, 2, 1_500);
    let folder = folder();
    let submitter = self::submitter(folder.path(), &address, &parent(&blocks[0]));
    blocks.iter().for_each(|block| drop(accept(&submitter, block)));
    submitter.submit().unwrap();
    while orchestrator.chain().prove(0) {}
    assert!(orchestrator.chain().publish());
    let refused = || submitter.store().record(&id(&blocks[1])).unwrap().unwrap().refused;
    let mut made = 0;
    for round in 0..60 {
        // Only the second of both blocks is open.
        orchestrator.chain().cancel(0);
        made += submitter.submit().unwrap();
        // The record reports it even while the job exists.
        let said = refused();
        assert_eq!(said.is_some(), round >= 4, "{round}: {said:?}");
        assert!(
            said.is_none_or(|why| why.contains("cancels jobs or reverts the chain")),
            "{round}"
        );
    }
    assert!((10..30).contains(&made), "made {made} times in 60 rounds");
    // Once the chain has published something, everything is as before.
    orchestrator.chain().revert(&parent(&blocks[0]), 0, None).unwrap();
    settle(&submitter, &orchestrator);
    check(&submitter, &orchestrator, &blocks, &[0, 1]);
    world.end.send_replace(true);
}
