//! A real orchestrator, in a thread.

use hekaton_orchestrator::backend::{Failure, Helper};
use hekaton_orchestrator::service::{self, Options, Place, Stop};
use hekaton_orchestrator::settings::Settings;
use hekaton_orchestrator::{Backend, Library, Name, Progress, Prover, Strategies, Traces};
use hekaton_witness_format::ExecutionWitness;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A prover that counts the nodes of a witness, of which there must be several.
struct Counts;

impl Prover for Counts {
    fn prove(
        &self,
        inputs: &[Vec<u8>],
        _: &CancellationToken,
        _: &Progress,
    ) -> Result<Vec<u8>, Failure> {
        let witness = ExecutionWitness::decode(&inputs[0]);
        let witness = witness.map_err(|error| Failure::Impossible(error.to_string()))?;
        match witness.state.len() {
            1 => Err(Failure::Impossible("one node is not enough".into())),
            count => Ok(format!("{count} nodes").into_bytes()),
        }
    }

    fn verify(&self, _: &[Vec<u8>], output: &[u8]) -> Result<(), String> {
        if output.ends_with(b" nodes") { Ok(()) } else { Err("it does not count".into()) }
    }
}

/// Starts an orchestrator on a folder. Returns its address and a handle that stops it.
pub(crate) fn orchestrator(folder: &Path) -> (String, Stop) {
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
