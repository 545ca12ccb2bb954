//! Each accepted witness becomes a job of an orchestrator, whatever happens in between.

use hekaton_intake::check::Options as Strictness;
use hekaton_intake::codec::Witness;
use hekaton_intake::desk::{Desk, Jobs, Record, Source};
use hekaton_intake::stand_in::Block;
use hekaton_orchestrator::backend::{Failure, Helper};
use hekaton_orchestrator::service::{self, Options, Place, Stop};
use hekaton_orchestrator::settings::Settings;
use hekaton_orchestrator::{Backend, Client, Library, Name, Progress, Prover, Strategies, Traces};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// "Proves" a witness by counting its nodes.
struct Counts;

impl Prover for Counts {
    fn prove(
        &self,
        inputs: &[Vec<u8>],
        _: &CancellationToken,
        _: &Progress,
    ) -> Result<Vec<u8>, Failure> {
        let witness = Witness::decode(&inputs[0]);
        let witness = witness.map_err(|error| Failure::Impossible(error.to_string()))?;
        Ok(format!("{} nodes", witness.state.len()).into_bytes())
    }

    fn verify(&self, _: &[Vec<u8>], output: &[u8]) -> Result<(), String> {
        if output.ends_with(b" nodes") { Ok(()) } else { Err("it does not count".into()) }
    }
}

/// Starts an orchestrator on a folder. Returns its address and what stops it.
fn orchestrator(folder: &Path) -> (String, Stop) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let name: Name = "witness".parse().unwrap();
    let backend: Arc<dyn Backend> = Arc::new(Library::new(Counts));
    let options = Options {
        data: folder.to_owned(),
        place: Place::Folder,
        settings: Settings::default(),
        listener: Some(listener),
        collects: true,
        grace: Duration::from_secs(1),
        helper: Helper::new("none".into()),
        backends: BTreeMap::from([(name, backend)]),
        strategies: Strategies::default(),
        traces: Traces::default(),
    };
    let stop = Stop::default();
    let asked = stop.clone();
    std::thread::spawn(move || service::run(options, &asked).unwrap());
    (address, stop)
}

fn desk(folder: &Path, address: &str) -> Desk {
    let jobs = Jobs {
        client: Client::new(address, None),
        chain: "blocks".into(),
        genesis: None,
        backend: "witness".into(),
    };
    Desk::open(folder, Strictness::default(), Some(jobs)).unwrap()
}

fn accept(desk: &Desk, block: &Block) -> Record {
    let witness = Witness::decode(&block.witness).unwrap();
    let envelope = &block.parameters.envelope;
    desk.accept(Source::Push, envelope, None, &witness, &block.public_keys).unwrap()
}

#[test]
fn accepted_witnesses_become_jobs_in_the_order_of_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("intake");
    let blocks = Block::chain(1, 5, 3, 20_000);
    // The orchestrator is away. What is accepted waits; the process ends.
    let away = desk(&data, "http://127.0.0.1:9");
    for at in [1, 0] {
        let record = accept(&away, &blocks[at]);
        assert_eq!(record.job, None);
    }
    assert!(away.submit().unwrap_err().may_be_repeated());
    drop(away);
    let (address, stop) = orchestrator(&folder.path().join("jobs"));
    // Another one finds them.
    let back = desk(&data, &address);
    assert_eq!(back.submit().unwrap(), 2);
    assert_eq!(back.submit().unwrap(), 0, "once");
    accept(&back, &blocks[2]);
    assert_eq!(back.submit().unwrap(), 1);
    // The same again is the same job.
    let again = accept(&back, &blocks[2]);
    assert!(again.job.is_some());
    assert_eq!(back.submit().unwrap(), 0);
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
    let hashes: Vec<String> = blocks
        .iter()
        .map(|block| {
            let hash = block.parameters.envelope.payload.block_hash;
            hash.iter().map(|byte| format!("{byte:02x}")).collect()
        })
        .collect();
    let ids: Vec<&str> = published.iter().map(|proof| proof.id.as_str()).collect();
    assert_eq!(ids, hashes);
    assert_eq!(published.iter().map(|proof| proof.block).collect::<Vec<_>>(), [5, 6, 7]);
    let output = folder.path().join("output");
    client.get_blob(&published[1].outputs[0].parse().unwrap(), &output).unwrap();
    let nodes = back.record(&hashes[1]).unwrap().unwrap().nodes;
    assert_eq!(std::fs::read_to_string(output).unwrap(), format!("{nodes} nodes"));
    stop.ask();
    stop.ask();
}
