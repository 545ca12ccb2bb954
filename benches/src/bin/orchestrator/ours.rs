//! The orchestrator in this process, asked over HTTP.

use crate::{Error, System, nats};
use hekaton_orchestrator::backend::{Failure, Helper};
use hekaton_orchestrator::http::{ChainBody, JobBody};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::service::{self, Options, Stop};
use hekaton_orchestrator::settings::Settings;
use hekaton_orchestrator::store::NatsSettings;
use hekaton_orchestrator::{Backend, Client, Library, Name, Progress, Prover, Strategies, Traces};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A prover that sleeps.
pub(crate) struct Sleeper(pub(crate) Duration);

impl Sleeper {
    pub(crate) fn call(&self) -> Vec<u8> {
        if !self.0.is_zero() {
            std::thread::sleep(self.0);
        }
        b"proof".to_vec()
    }
}

impl Prover for Sleeper {
    fn prove(
        &self,
        _: &[Vec<u8>],
        _: &CancellationToken,
        _: &Progress,
    ) -> Result<Vec<u8>, Failure> {
        Ok(self.call())
    }

    fn verify(&self, _: &[Vec<u8>], output: &[u8]) -> Result<(), String> {
        if output == b"proof" { Ok(()) } else { Err("it is another one".into()) }
    }
}

/// The store in which records are kept.
pub(crate) enum Place {
    Sqlite,
    Nats(String),
}

impl Place {
    pub(crate) fn all(server: Option<&nats::Server>) -> Vec<Self> {
        [Self::Sqlite]
            .into_iter()
            .chain(server.map(|server| Self::Nats(server.address.clone())))
            .collect()
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Nats(_) => "NATS synced",
        }
    }
}

/// A process with some slots, and its client.
pub(crate) struct Orchestrator {
    client: Client,
    blob: String,
    stop: Stop,
    running: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        self.stop.ask();
        self.stop.ask();
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

impl Orchestrator {
    pub(crate) fn start(place: &Place, slots: usize, sleep: Duration) -> Result<Self, Error> {
        static NAMESPACES: AtomicUsize = AtomicUsize::new(0);
        let folder = tempfile::tempdir()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let namespace = format!("bench-{}", NAMESPACES.fetch_add(1, Ordering::Relaxed));
        let place = match place {
            Place::Sqlite => service::Place::Folder,
            Place::Nats(address) => service::Place::Nats(NatsSettings {
                address: address.clone(),
                namespace,
                replicas: 1,
                credentials: None,
                versions: 1,
            }),
        };
        let backend: Arc<dyn Backend> = Arc::new(Library::new(Sleeper(sleep)));
        let backends: BTreeMap<Name, Arc<dyn Backend>> =
            BTreeMap::from([("sleep".parse()?, backend)]);
        let options = Options {
            data: folder.path().to_owned(),
            place,
            settings: Settings { slots, ..Settings::default() },
            listener: Some(listener),
            collects: true,
            grace: Duration::ZERO,
            helper: Helper::new("unused".into()),
            backends,
            strategies: Strategies::default(),
            traces: Traces::default(),
        };
        let stop = Stop::default();
        let asked = stop.clone();
        let running = std::thread::spawn(move || {
            // Without it, its clients get no answers, and say so.
            let _ = service::run(options, &asked);
        });
        let client = Client::new(&address, None);
        let input = folder.path().join("input");
        std::fs::write(&input, b"input")?;
        let mut tries = 0;
        let blob = loop {
            match client.put_file(&input) {
                Ok(blob) => break blob.to_string(),
                Err(error) if tries == 200 => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
            tries += 1;
        };
        client
            .make_chain("bench", &ChainBody { order: Order::None, genesis: None, bundles: None })?;
        let system = Self { client, blob, stop, running: Some(running), _folder: folder };
        // Partitions have an owner by then.
        system.task(usize::MAX)?;
        Ok(system)
    }
}

impl System for Orchestrator {
    fn task(&self, number: usize) -> Result<(), Error> {
        let job = JobBody {
            chain: "bench".into(),
            id: Some(format!("task-{number}")),
            backend: Some("sleep".into()),
            inputs: BTreeMap::from([("input".into(), vec![self.blob.clone()])]),
            ..JobBody::default()
        };
        let accepted = self.client.submit(&job)?;
        loop {
            let status = self.client.job(&accepted.job, 60)?;
            match status.state.as_str() {
                "live" => {}
                "done" => return Ok(()),
                other => return Err(format!("a job is {other}: {:?}", status.reason).into()),
            }
        }
    }
}
