//! The branch of the last payload is published, in whichever order blocks arrive, branches change, answers are lost, and processes die.

mod orchestrator;

use hekaton_intake::canonical::Options;
use hekaton_intake::codec::Witness;
use hekaton_intake::desk::{Desk, Jobs};
use hekaton_intake::record::{Record, Source};
use hekaton_intake::stand_in::Block;
use hekaton_orchestrator::Client;
use orchestrator::{Fault, Orchestrator};
use std::collections::BTreeMap;
use std::path::Path;
use tokio::sync::watch;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

fn name(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn id(block: &Block) -> String {
    name(&block.parameters.envelope.payload.block_hash)
}

fn parent(block: &Block) -> String {
    name(&block.parameters.envelope.payload.parent_hash)
}

/// The branch that must be published: what the last payload belongs to, said as in the guide, over names alone.
fn expected(blocks: &[Block], accepted: &[usize]) -> Vec<String> {
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for (at, block) in accepted.iter().enumerate() {
        last.insert(id(&blocks[*block]), at);
    }
    // When the last payload of a block or of those after it came.
    fn newest(blocks: &[Block], last: &BTreeMap<String, usize>, block: &Block) -> usize {
        let own = last[&id(block)];
        let after = blocks.iter().filter(|it| parent(it) == id(block));
        after.map(|it| newest(blocks, last, it)).max().map_or(own, |after| after.max(own))
    }
    let mut head = &blocks[*accepted.last().unwrap()];
    loop {
        let after = blocks.iter().filter(|it| parent(it) == id(head));
        match after.max_by_key(|it| newest(blocks, &last, it)) {
            Some(next) => head = next,
            None => break,
        }
    }
    let mut branch = vec![id(head)];
    while let Some(before) = blocks.iter().find(|it| id(it) == parent(head)) {
        branch.push(id(before));
        head = before;
    }
    branch.reverse();
    branch
}

/// A trunk with branches, and branches of branches.
fn forest(random: &mut Random, trunk: usize) -> Vec<Block> {
    let trunk = Block::chain(random.next(), 5, trunk, 1_500);
    let mut chains = vec![trunk.clone()];
    let mut blocks = trunk;
    for at in 0..1 + random.below(3) {
        let from = &chains[random.below(chains.len())];
        let begin = random.below(from.len());
        let count = 1 + random.below(from.len() - begin);
        let branch = Block::branch(&from[begin..begin + count], &[b'b', at as u8]);
        blocks.extend(branch.iter().cloned());
        chains.push(branch);
    }
    blocks
}

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

fn desk(folder: &Path, address: &str, genesis: &str) -> Desk {
    let jobs = Jobs {
        client: Client::new(address, None),
        chain: "blocks".into(),
        genesis: Some(genesis.to_owned()),
        backend: "witness".into(),
    };
    Desk::open(folder, Options::default(), Some(jobs)).unwrap()
}

fn accept(desk: &Desk, block: &Block) -> Record {
    let witness = Witness::decode(&block.witness).unwrap();
    let envelope = &block.parameters.envelope;
    desk.accept(Source::Push, envelope, None, &witness, &block.public_keys).unwrap()
}

/// In memory, where there is such a place: thousands of files are synced.
fn folder() -> tempfile::TempDir {
    match Path::new("/dev/shm").is_dir() {
        true => tempfile::tempdir_in("/dev/shm").unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

/// Submits, proves and publishes until nothing happens any more.
fn settle(desk: &Desk, orchestrator: &Orchestrator) {
    orchestrator.chain().fault = Fault::None;
    for _ in 0..20 {
        let made = desk.submit().unwrap();
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

/// What must hold at rest: the branch is published in order, nothing else is open, and records say so.
fn check(desk: &Desk, orchestrator: &Orchestrator, blocks: &[Block], accepted: &[usize]) {
    let branch = expected(blocks, accepted);
    let chain = orchestrator.chain();
    let path: Vec<String> = chain.path().into_iter().skip(1).map(|(id, _)| id).collect();
    assert_eq!(path, branch, "published, and wanted");
    assert_eq!(chain.open(), Vec::<String>::new(), "jobs that nobody wants");
    for block in blocks {
        let record = desk.record(&id(block)).unwrap().unwrap();
        let on_branch = branch.contains(&record.block);
        let found = (record.pending, record.aside, record.job.is_some(), record.refused);
        assert_eq!(found, (false, !on_branch, on_branch, None), "{}", record.block);
    }
    assert_eq!(desk.waiting(), 0);
}

/// One schedule, of which all follows from its number.
fn run(world: &World, number: u64) {
    let mut random = Random(number);
    let blocks = forest(&mut random, 6);
    let (orchestrator, address) = world.orchestrator();
    let folder = folder();
    let genesis = parent(&blocks[0]);
    let mut now = desk(folder.path(), &address, &genesis);
    // All at least once, in any order or nearly in theirs.
    let mut arrivals: Vec<usize> = (0..blocks.len()).collect();
    for _ in 0..random.below(6) {
        arrivals.push(random.below(blocks.len()));
    }
    let swaps = if random.below(2) == 0 { 3 } else { 30 };
    for _ in 0..swaps {
        let (one, two) = (random.below(arrivals.len()), random.below(arrivals.len()));
        arrivals.swap(one, two);
    }
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
                now = desk(folder.path(), &address, &genesis);
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
            // Operators take back what they like.
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
    let again = desk(folder.path(), &address, &genesis);
    assert_eq!(again.submit().unwrap(), 0);
    check(&again, &orchestrator, &blocks, &accepted);
}

/// As many schedules as `HEKATON_SCHEDULES` says, from `HEKATON_FIRST_SCHEDULE` on.
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
