//! Each accepted witness becomes a job of an orchestrator, whatever happens in between.

#[path = "common/orchestrator.rs"]
mod orchestrator;

use hekaton_intake::Jobs;
use hekaton_intake::block;
use hekaton_intake::canonical::Options as Strictness;
use hekaton_intake::record::{Origin, Record, Source};
use hekaton_intake::stand_in::Block;
use hekaton_intake::store::WitnessStore;
use hekaton_intake::submitter::JobSubmitter;
use hekaton_orchestrator::Client;
use hekaton_orchestrator::http::{ChainBody, RevertBody};
use hekaton_orchestrator::record::Order;
use hekaton_witness_format::{ExecutionWitness, encode_witness};
use orchestrator::orchestrator;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn submitter(folder: &Path, address: &str) -> JobSubmitter {
    desk_for(folder, address, "blocks", "witness")
}

fn desk_for(folder: &Path, address: &str, chain: &str, backend: &str) -> JobSubmitter {
    let jobs = Jobs {
        client: Client::new(address, None),
        chain: chain.into(),
        genesis: None,
        backend: backend.into(),
    };
    JobSubmitter::new(
        Arc::new(WitnessStore::open(folder, Strictness::default()).unwrap()),
        Some(jobs),
    )
}

fn accept(submitter: &JobSubmitter, block: &Block) -> Record {
    let witness = ExecutionWitness::decode(&block.witness).unwrap();
    let envelope = &block.parameters.envelope;
    let origin = Origin { trace: Some(TRACE.into()), ..Source::Push.into() };
    submitter.store().accept(origin, envelope, None, &witness, &block.public_keys).unwrap()
}

/// The trace of a request, which the job of its witness must belong to.
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Returns the witness of a block, with the root as its only node.
fn root_alone(block: &Block) -> Vec<u8> {
    let witness = ExecutionWitness::decode(&block.witness).unwrap();
    let header: alloy_consensus::Header =
        alloy_rlp::decode_exact(witness.headers.get(1).unwrap()).unwrap();
    let root =
        witness.state.iter().find(|node| alloy_primitives::keccak256(node) == header.state_root);
    let [root, none, headers] =
        [root.into_iter().collect(), vec![], witness.headers.iter().collect::<Vec<&[u8]>>()];
    encode_witness(root.into_iter(), none.into_iter(), headers.into_iter()).unwrap()
}

/// Returns another block with the same parent and the same witness.
fn sibling(block: &Block) -> Block {
    let mut other = block.clone();
    let envelope = &mut other.parameters.envelope;
    envelope.payload.extra_data = b"other".to_vec();
    envelope.payload.block_hash = block::header(envelope).unwrap().hash_slow().0;
    other
}

fn hash_of(block: &Block) -> String {
    block.parameters.envelope.payload.block_hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn blocks_parent(block: &Block) -> String {
    block.parameters.envelope.payload.parent_hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The branch of the last payload is followed although no operator reverts the chain, and the first branch may come back.
#[test]
fn branches_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let (address, stop) = orchestrator(&folder.path().join("jobs"));
    let submitter = self::submitter(&folder.path().join("intake"), &address);
    let client = Client::new(&address, None);
    let a = Block::new(1, 5, 20_000);
    let b = sibling(&a);
    let state = |record: &Record| {
        let found = submitter.store().record(&record.block).unwrap().unwrap();
        (found.job.map(|job| client.job(&job, 20).unwrap().state), found.refused)
    };
    let first = accept(&submitter, &a);
    assert_eq!(submitter.submit().unwrap(), 1);
    assert_eq!(state(&first), (Some("done".into()), None));
    let job = submitter.store().record(&first.block).unwrap().unwrap().job.unwrap();
    assert_eq!(client.job(&job, 0).unwrap().trace.as_deref(), Some(TRACE));
    let published = |blocks: &[&Record]| {
        let wanted: Vec<&str> = blocks.iter().map(|record| &record.block[..]).collect();
        let tail = wanted.last().map_or(blocks_parent(&a), |tail| (*tail).to_owned());
        until(|| client.chain("blocks").unwrap().tail.as_ref() == Some(&tail));
    };
    published(&[&first]);
    let second = accept(&submitter, &b);
    assert_eq!(submitter.submit().unwrap(), 1);
    assert_eq!(state(&second), (Some("done".into()), None));
    published(&[&second]);
    let aside = submitter.store().record(&first.block).unwrap().unwrap();
    assert!(aside.aside && !aside.pending && aside.job.is_none(), "{aside:?}");
    // And back.
    accept(&submitter, &a);
    assert_eq!(submitter.submit().unwrap(), 1);
    assert_eq!(state(&first), (Some("done".into()), None));
    published(&[&first]);
    // A block that another client has taken back, or cancelled, is wanted nevertheless.
    let genesis = RevertBody { to: blocks_parent(&a), block: 0 };
    client.revert("blocks", &genesis).unwrap();
    assert_eq!(submitter.submit().unwrap(), 1);
    published(&[&first]);
    // A smaller witness of the same block, here of the root alone, does not take the place of the one that is being proven.
    let only = root_alone(&a);
    let only = ExecutionWitness::decode(&only).unwrap();
    let kept =
        submitter.store().accept(Source::Push, &a.parameters.envelope, None, &only, &[]).unwrap();
    assert_eq!((kept.witness, only.state.len()), (first.witness, 1));
    stop.ask();
    stop.ask();
}

/// Waits for a condition that becomes true by itself.
fn until(mut happens: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !happens() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Many witnesses of few blocks arrive at the same time.
#[test]
fn blocks_may_arrive_twice_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let submitter = JobSubmitter::new(
        Arc::new(WitnessStore::open(folder.path(), Strictness::default()).unwrap()),
        None,
    );
    let blocks = Block::chain(1, 5, 4, 5_000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|at| drop(accept(&submitter, &blocks[at % 4]))));
        }
    });
    for block in &blocks {
        let record = accept(&submitter, block);
        assert_eq!(submitter.store().record(&record.block).unwrap(), Some(record.clone()));
        // A record that cannot be read is made again.
        let path = folder.path().join("blocks").join(format!("{}.json", record.block));
        std::fs::write(path, "").unwrap();
        assert_eq!(accept(&submitter, block).witness, record.witness);
    }
}

/// Old blocks are removed, with the blobs that they alone name; those that wait for their jobs stay.
#[test]
fn old_blocks_are_removed() {
    const DAY: Duration = Duration::from_secs(86_400);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("intake");
    let blocks = Block::chain(1, 5, 3, 5_000);
    let path = |record: &Record| data.join("blocks").join(format!("{}.json", record.block));
    let two_days_ago = |record: &Record| {
        let accepted = record.accepted - 2 * 86_400_000;
        let old = Record { accepted, ..record.clone() };
        std::fs::write(path(record), serde_json::to_vec(&old).unwrap()).unwrap();
    };
    let submitter = JobSubmitter::new(
        Arc::new(WitnessStore::open(&data, Strictness::default()).unwrap()),
        None,
    );
    let mut records = [0, 1, 2].map(|at| accept(&submitter, &blocks[at]));
    // A witness that does not count, here of the root alone, goes with its block.
    let (only, envelope) = (root_alone(&blocks[0]), &blocks[0].parameters.envelope);
    let only = ExecutionWitness::decode(&only).unwrap();
    records[0] = submitter.store().accept(Source::Push, envelope, None, &only, &[]).unwrap();
    assert_eq!(records[0].others.len(), 1);
    // The intake does not touch blobs that no record names.
    submitter.store().blobs().put(b"another's").unwrap();
    let count = || submitter.store().blobs().all().unwrap().len();
    assert_eq!((count(), submitter.prune(DAY).unwrap(), count()), (11, 0, 11));
    two_days_ago(&records[0]);
    assert_eq!((submitter.prune(DAY).unwrap(), count()), (1, 7));
    assert_eq!(submitter.store().record(&records[0].block).unwrap(), None);
    submitter.store().blobs().verify(&records[1].witness.parse().unwrap()).unwrap();
    // A blob that another record names, too, stays; and a block that has come again is not old.
    let mut shares = records[1].clone();
    shares.others.insert(records[2].witness.clone());
    two_days_ago(&shares);
    assert_eq!((submitter.prune(DAY).unwrap(), count()), (1, 4));
    two_days_ago(&records[2]);
    accept(&submitter, &blocks[2]);
    assert_eq!((submitter.prune(DAY).unwrap(), count()), (0, 4));
    // A record that cannot be read may name any blob, and so may records that cannot be listed.
    two_days_ago(&accept(&submitter, &blocks[1]));
    std::fs::write(path(&records[2]), "").unwrap();
    assert!(submitter.prune(DAY).unwrap_err().to_string().contains(&records[2].block));
    std::fs::rename(data.join("blocks"), data.join("away")).unwrap();
    assert!(submitter.prune(DAY).unwrap_err().to_string().contains("blocks"));
    std::fs::rename(data.join("away"), data.join("blocks")).unwrap();
    assert_eq!(count(), 7);
    // It is made again by sending the block again.
    let again = accept(&submitter, &blocks[2]);
    assert_eq!((submitter.prune(DAY).unwrap(), count()), (1, 4));
    submitter.store().blobs().verify(&again.witness.parse().unwrap()).unwrap();
    drop(submitter);
    // With an orchestrator that is away, it waits.
    let away = self::submitter(&data, "http://127.0.0.1:9");
    two_days_ago(&again);
    assert_eq!(away.prune(DAY).unwrap(), 0);
    drop(away);
    let (address, stop) = orchestrator(&folder.path().join("jobs"));
    let back = self::submitter(&data, &address);
    assert_eq!(back.submit().unwrap(), 1);
    // Its job may have to be made again as long as it is not published.
    let job = back.store().record(&again.block).unwrap().unwrap().job.unwrap();
    assert_eq!(back.prune(DAY).unwrap(), 0);
    until(|| Client::new(&address, None).proofs("blocks", 0).unwrap().proofs.len() == 1);
    assert_eq!(back.submit().unwrap(), 0);
    assert_eq!((back.prune(DAY).unwrap(), back.store().blobs().all().unwrap().len()), (1, 1));
    // The orchestrator's own folder is refused for witnesses.
    let foreign = WitnessStore::open(&folder.path().join("jobs"), Strictness::default());
    assert!(foreign.unwrap_err().to_string().contains("an orchestrator's folder"));
    // The orchestrator has what it needs.
    assert_eq!(Client::new(&address, None).job(&job, 20).unwrap().state, "done");
    stop.ask();
    stop.ask();
}

/// While blocks come again and again, others are removed: the blobs that a record names exist.
#[test]
fn blocks_may_arrive_while_others_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let submitter = JobSubmitter::new(
        Arc::new(WitnessStore::open(folder.path(), Strictness::default()).unwrap()),
        None,
    );
    let mut blocks = Block::chain(1, 5, 2, 5_000);
    blocks.extend(blocks.clone().iter().map(sibling));
    let removed = std::thread::scope(|scope| {
        let (submitter, blocks) = (&submitter, &blocks);
        let workers = [0, 1, 2].map(|worker| {
            scope.spawn(move || {
                (0..40).for_each(|at| drop(accept(submitter, &blocks[(at + worker) % 4])))
            })
        });
        let mut removed = 0;
        while workers.iter().any(|worker| !worker.is_finished()) {
            removed += submitter.prune(Duration::ZERO).unwrap();
            // No other thread removes anything: the blobs that a record names exist.
            for block in blocks {
                let Some(record) = submitter.store().record(&hash_of(block)).unwrap() else {
                    continue;
                };
                let named = [Some(record.witness), Some(record.envelope), record.public_keys];
                let named = named.into_iter().flatten().map(|blob| blob.parse().unwrap());
                named.for_each(|blob| assert!(submitter.store().blobs().has(&blob)));
            }
        }
        removed
    });
    assert!(removed > 4, "{removed}");
    blocks.iter().for_each(|block| drop(accept(&submitter, block)));
    assert_eq!(
        (submitter.prune(Duration::ZERO).unwrap(), submitter.store().blobs().all().unwrap().len()),
        (4, 0)
    );
}

#[test]
fn accepted_witnesses_become_jobs_in_the_order_of_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("intake");
    let blocks = Block::chain(1, 5, 3, 20_000);
    // The orchestrator is away. Accepted witnesses wait; the process ends.
    let away = submitter(&data, "http://127.0.0.1:9");
    for at in [1, 0] {
        let record = accept(&away, &blocks[at]);
        assert_eq!(record.job, None);
    }
    assert!(away.submit().unwrap_err().may_be_repeated());
    drop(away);
    let (address, stop) = orchestrator(&folder.path().join("jobs"));
    // Another process finds them.
    let back = submitter(&data, &address);
    assert_eq!(back.submit().unwrap(), 2);
    assert_eq!(back.submit().unwrap(), 0, "once");
    accept(&back, &blocks[2]);
    assert_eq!(back.submit().unwrap(), 1);
    // The same block again has the same job.
    let hash = accept(&back, &blocks[2]).block;
    let job = |hash: &str| back.store().record(hash).unwrap().unwrap().job;
    // Unless it is published already.
    assert!(job(&hash).is_some() && back.submit().unwrap() <= 1);
    assert!(!back.store().record(&hash).unwrap().unwrap().pending);
    assert!(job(&hash).unwrap().contains(&blocks_parent(&blocks[2])));
    let client = Client::new(&address, None);
    let until = Instant::now() + Duration::from_secs(60);
    let published = loop {
        let found = client.proofs("blocks", 0).unwrap().proofs;
        if found.len() == 3 {
            break found;
        }
        assert!(Instant::now() < until, "{found:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let hashes: Vec<String> = blocks.iter().map(hash_of).collect();
    let ids: Vec<&str> = published.iter().map(|proof| proof.id.as_str()).collect();
    assert_eq!(ids, hashes);
    assert_eq!(published.iter().map(|proof| proof.block).collect::<Vec<_>>(), [5, 6, 7]);
    let output = folder.path().join("output");
    client.get_blob(&published[1].outputs[0].parse().unwrap(), &output).unwrap();
    let nodes = back.store().record(&hashes[1]).unwrap().unwrap().nodes;
    assert_eq!(std::fs::read_to_string(output).unwrap(), format!("{nodes} nodes"));
    stop.ask();
    stop.ask();
}

/// The record of the next block reports what holds it up: a dead job, and a back-end that no process has.
#[test]
fn what_holds_up_the_next_block_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (address, stop) = orchestrator(&folder.path().join("jobs"));
    let client = Client::new(&address, None);
    let block = Block::new(1, 5, 5_000);
    let only = root_alone(&block);
    let only = ExecutionWitness::decode(&only).unwrap();
    let dies = submitter(&folder.path().join("dies"), &address);
    dies.store().accept(Source::Push, &block.parameters.envelope, None, &only, &[]).unwrap();
    let reason = |submitter: &JobSubmitter, part: &str| {
        until(|| {
            submitter.submit().unwrap();
            let record = submitter.store().record(&hash_of(&block)).unwrap().unwrap();
            record.refused.is_some_and(|why| !record.pending && why.contains(part))
        });
    };
    reason(&dies, "one node is not enough");
    // It is not made again by itself, which would change nothing, but when its block is sent again.
    let job = dies.store().record(&hash_of(&block)).unwrap().unwrap().job.unwrap();
    assert_eq!((dies.submit().unwrap(), &client.job(&job, 0).unwrap().state[..]), (0, "dead"));
    let generation = client.job(&job, 0).unwrap().generation;
    accept(&dies, &block);
    assert_eq!(dies.submit().unwrap(), 1);
    assert_eq!(client.job(&job, 0).unwrap().generation, generation + 1);
    let misses = desk_for(&folder.path().join("misses"), &address, "others", "elsewhere");
    accept(&misses, &block);
    reason(&misses, "the back-end 'elsewhere'");
    stop.ask();
    stop.ask();
}

/// A chain without order has no branches: all blocks are proven, and none is taken back.
#[test]
fn a_chain_without_order_has_no_branches() {
    let folder = tempfile::tempdir().unwrap();
    let (address, stop) = orchestrator(&folder.path().join("jobs"));
    let client = Client::new(&address, None);
    let body = ChainBody { order: Order::None, genesis: None, bundles: None };
    until(|| client.make_chain("blocks", &body).is_ok());
    let submitter = self::submitter(&folder.path().join("intake"), &address);
    let blocks = Block::chain(1, 5, 3, 5_000);
    let all = [&blocks[..], &Block::branch(&blocks, b"other")].concat();
    all.iter().rev().for_each(|block| drop(accept(&submitter, block)));
    assert_eq!((submitter.submit().unwrap(), submitter.submit().unwrap()), (6, 0));
    for block in &all {
        let record = submitter.store().record(&hash_of(block)).unwrap().unwrap();
        assert!(!record.pending && !record.aside && record.refused.is_none(), "{record:?}");
        assert_eq!(client.job(&record.job.unwrap(), 60).unwrap().state, "done");
    }
    until(|| client.proofs("blocks", 0).unwrap().proofs.len() == 6);
    stop.ask();
    stop.ask();
}
