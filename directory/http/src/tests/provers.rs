//! Provers, and the states that they lead to.

use super::{Running, options, parameters, signing_key, until, update};
use crate::ServiceOptions;
use crate::body::{HealthBody, State};
use hekaton_directory::{EpochProof, SignedRecord, Witness, audit};
use hekaton_directory_server::{Options, Server, Update};
use hekaton_directory_server::{ProveError, Prover, Stop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Makes what goes for a proof here, once it may.
#[derive(Default)]
struct Mock {
    /// The last epoch that it may prove up to.
    may: AtomicU32,
    /// The epochs that it was asked to prove.
    asked: Mutex<Vec<(u32, u32)>>,
    /// The number of times that it fails, and that it makes a proof that does not hold.
    fails: AtomicU32,
    wrong: AtomicU32,
    /// A proof that was begun earlier.
    begun: Option<(u32, u32)>,
    attached: Mutex<Vec<(u32, u32)>>,
}

fn take(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Prover for Mock {
    fn room(&self) -> usize {
        4
    }

    fn begun(&self, from: u32) -> Option<u32> {
        self.begun.filter(|begun| begun.0 == from).map(|begun| begun.1)
    }

    fn prove(&self, witness: &Witness, to: u32, stop: &Stop) -> Result<EpochProof, ProveError> {
        while self.may.load(Ordering::SeqCst) < to {
            if stop.wait(Duration::from_millis(5)) {
                return Err(ProveError::Stopped);
            }
        }
        self.asked.lock().unwrap().push((witness.epoch, to));
        if take(&self.fails) {
            return Err(ProveError::Failed("no memory".into()));
        }
        let proof = if take(&self.wrong) { b"wrong".to_vec() } else { witness.encode() };
        Ok(EpochProof { from: witness.epoch, to, subcircuits: 1, proof })
    }

    fn verify(
        &self,
        proof: &EpochProof,
        values: [u128; 10],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let witness = Witness::decode(&proof.proof)?;
        let is_right = values[4] == u128::from(witness.epoch)
            && values[..2]
                == [&witness.root[..16], &witness.root[16..]]
                    .map(|half| u128::from_be_bytes(half.try_into().unwrap()));
        if is_right { Ok(()) } else { Err("it is of other epochs".into()) }
    }

    fn attached(&self, from: u32, to: u32) {
        self.attached.lock().unwrap().push((from, to));
    }
}

#[test]
fn the_three_states_are_never_mixed() {
    let mock = Arc::new(Mock::default());
    let slow = Options { interval: Some(Duration::from_millis(500)), ..options() };
    let prover: Arc<dyn Prover> = mock.clone();
    let mut running = Running::start(slow, ServiceOptions::default(), Some(prover));
    let client = running.client.clone();
    let number = client.submit(&update("label", "1"), false).unwrap().number;
    let mut seen = Vec::new();
    let mut look = || {
        let status = client.update(number).unwrap();
        // An epoch is named once it is visible, and the state of the epoch is the same or later.
        assert_eq!(status.epoch.is_some(), status.state != State::Accepted);
        if let Some(epoch) = status.epoch {
            assert_ne!(client.epoch(epoch).unwrap().state, State::Accepted);
        }
        if seen.last() != Some(&status.state) {
            seen.push(status.state);
        }
        status.state
    };
    until("it is visible", || look() == State::Visible);
    assert_eq!(client.key("label", None).unwrap().state, State::Visible);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(look(), State::Visible);
    mock.may.store(1, Ordering::SeqCst);
    until("it is proven", || look() == State::Proven);
    assert!(seen.ends_with(&[State::Visible, State::Proven]) && seen.len() <= 3, "{seen:?}");
    assert_eq!(client.key("label", None).unwrap().state, State::Proven);
    assert_eq!(client.history("label", None).unwrap().state, State::Proven);
    assert_eq!(client.epochs().unwrap().proven, 1);

    // Epochs after it are not proven with it, and go together, as many as there is room for.
    for epoch in 2..=5 {
        running.insert("label", &epoch.to_string());
    }
    let answer = client.key("label", None).unwrap();
    assert_eq!((answer.epoch, answer.state), (5, State::Visible));
    assert_eq!(client.key("label", Some(1)).unwrap().state, State::Proven);
    mock.may.store(9, Ordering::SeqCst);
    until("all are proven", || client.epochs().unwrap().proven == 5);
    let proofs = client.proofs(0).unwrap().proofs;
    let (mut at, mut all) = (0, Vec::new());
    for range in proofs {
        assert_eq!(range.from, at);
        assert!(range.to - range.from <= 2, "there is no room for more than two epochs");
        at = range.to;
        all.push(client.proof(range).unwrap().into());
    }
    assert_eq!(at, 5);
    let asked = mock.asked.lock().unwrap().clone();
    assert_eq!(asked, *mock.attached.lock().unwrap());
    // An auditor needs nothing else than what the service answers.
    let records = client.records(0, 5).unwrap().records;
    let records: Vec<_> =
        records.iter().map(|bytes| SignedRecord::decode(&bytes.0).unwrap()).collect();
    audit(&parameters(), 0..=5, &records, &all, |proof, values| mock.verify(proof, values))
        .unwrap();
    running.end(1).unwrap();
}

#[test]
fn failed_and_wrong_proofs_are_made_again() {
    let mock = Arc::new(Mock {
        may: AtomicU32::new(9),
        fails: AtomicU32::new(1),
        wrong: AtomicU32::new(1),
        ..Mock::default()
    });
    let prover: Arc<dyn Prover> = mock.clone();
    let running = Running::start(options(), ServiceOptions::default(), Some(prover));
    running.insert("label", "1");
    until("it is proven", || running.client.epochs().unwrap().proven == 1);
    assert_eq!(*mock.asked.lock().unwrap(), [(0, 1); 3]);
    let health: HealthBody = {
        let mut answer = ureq::get(format!("{}/healthz", running.client.address())).call().unwrap();
        serde_json::from_slice(&answer.body_mut().read_to_vec().unwrap()).unwrap()
    };
    assert_eq!(health, HealthBody { epoch: 1, proven: 1, proof_failures: 2, proves: true });
}

#[test]
fn a_proof_that_was_begun_is_finished() {
    // Three epochs would have room for two: what was begun has one.
    let mock = Mock { may: AtomicU32::new(0), begun: Some((0, 1)), ..Mock::default() };
    let mock = Arc::new(mock);
    let prover: Arc<dyn Prover> = mock.clone();
    let folder = tempfile::tempdir().unwrap();
    Server::create(folder.path(), &parameters(), &signing_key(), 4).unwrap();
    let server = Server::open(folder.path(), &parameters(), &signing_key(), options()).unwrap();
    for value in ["1", "2", "3"] {
        server.submit(Update::new("label", value)).unwrap();
        server.flush().unwrap();
    }
    mock.may.store(9, Ordering::SeqCst);
    let (proving, stop) = (hekaton_directory_server::Proving::default(), Stop::default());
    std::thread::scope(|scope| {
        scope.spawn(|| proving.run(&server, &*prover, &stop));
        until("all are proven", || server.proven().unwrap() == 3);
        stop.ask();
    });
    assert_eq!(*mock.asked.lock().unwrap(), [(0, 1), (1, 3)]);
}

#[test]
fn too_many_unproven_epochs_stop_updates() {
    let mock = Arc::new(Mock::default());
    let prover: Arc<dyn Prover> = mock.clone();
    let limits = ServiceOptions { max_unproven: Some(1), ..ServiceOptions::default() };
    let running = Running::start(options(), limits, Some(prover));
    running.insert("label", "1");
    running.insert("label", "2");
    let body = serde_json::to_vec(&update("label", "3")).unwrap();
    let (status, headers, problem) = running.raw("POST", "/v1/updates", "application/json", &body);
    assert_eq!((status, problem.retry_after), (429, Some(10)));
    assert!(headers.contains("retry-after") && problem.detail.contains("2 epochs wait"));
    // Look-ups continue, and `/readyz` reports the problem to monitoring.
    let (status, _, problem) = running.raw("GET", "/readyz", "text/plain", b"");
    assert!(status == 503 && problem.detail.contains("2 epochs wait"), "{problem:?}");
    assert_eq!(running.client.health().unwrap().epoch, 2);
    assert_eq!(running.client.key("label", None).unwrap().epoch, 2);
    mock.may.store(9, Ordering::SeqCst);
    until("they are proven", || running.client.epochs().unwrap().proven == 2);
    running.insert("label", "3");
}
