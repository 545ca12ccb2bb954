//! Files of setup ceremonies, which contributors, coordinators and auditors get from each other.

use crate::file;
use hekaton_ceremony::{
    Contributor, Coordinator, Genesis, Kind, PowersFile, Response, Seed, Transcript, check_receipt,
    contribute, new_powers, new_powers_from, receipt,
};
use std::path::Path;
use std::sync::OnceLock;

/// A challenge of snarkjs with 2^4 powers.
const CHALLENGE: &[u8] =
    include_bytes!("../../../hekaton-ceremony/src/tests/golden/snarkjs.challenge");

/// A ceremony for small powers: genesis, a log with a record, a state, a contribution, a receipt, and powers of others.
struct Good {
    genesis: Genesis,
    files: [Vec<u8>; 6],
    /// The log of phi, and the sections with their names.
    others: Vec<(String, Vec<u8>)>,
}

fn good() -> &'static Good {
    static GOOD: OnceLock<Good> = OnceLock::new();
    GOOD.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        let powers = path("powers");
        let transcript = new_powers(&powers, 2, 2, "", &|_| {}).expect("powers");
        let chains = transcript.genesis.chains();
        let contributor = Contributor {
            name: "Alice",
            program: "test",
            kind: Kind::Contribution,
            chains: &chains,
        };
        let make = |transcript: &Transcript, name: &str| {
            let seed = Seed::draw("").expect("randomness");
            contribute(transcript, &contributor, seed, &path(name), &mut |_| {})
                .expect("a contribution")
        };
        let records = make(&transcript, "first");
        let mut coordinator = Coordinator::open(&powers).expect("a directory");
        let response = Response::open(&path("first"), &transcript.genesis).expect("a contribution");
        coordinator.add(&response, &mut |_| {}).expect("an honest contribution");
        let transcript = Transcript::open(&powers).expect("a transcript");
        transcript.write_state(&path("state")).expect("a state");
        make(&transcript, "second");
        let read = |name: &str| std::fs::read(path(name)).expect("a file");
        let receipt =
            receipt(&transcript.genesis, "Alice", "test", &records.iter().collect::<Vec<_>>());
        let files = [
            transcript.genesis.to_bytes(),
            read("powers/tau.log"),
            read("state"),
            read("second"),
            receipt.into_bytes(),
            CHALLENGE.to_vec(),
        ];
        let chains = transcript.genesis.chains();
        let named = transcript.named_files(&chains, false).into_iter().map(|file| file.name);
        let others = named.chain(["phi.log".to_owned()]);
        let others = others.map(|name| (name.clone(), read(&format!("powers/{name}")))).collect();
        Good { genesis: transcript.genesis, files, others }
    })
}

/// Checks every file of a ceremony that others send: what is accepted has one encoding, and a record that is not the honest one
/// never passes the checks.
pub fn ceremony(data: &[u8]) {
    let Some((which, data)) = data.split_first() else { return };
    let Good { genesis, files, .. } = good();
    let which = usize::from(*which) % files.len();
    let bytes = file(data, &files[which], &[]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("file");
    std::fs::write(&path, &bytes).expect("a file");
    match which {
        0 => {
            let Ok(genesis) = Genesis::from_bytes(&bytes) else { return };
            assert_eq!(genesis.to_bytes(), bytes, "a genesis has one encoding");
            let _ = (genesis.title(), genesis.digest());
        }
        1 => {
            let Ok(transcript) = transcript_with(directory.path(), &bytes) else { return };
            let log = &transcript.logs[0];
            if transcript.check().is_ok() && !log.torn && !log.records.is_empty() {
                assert_eq!(bytes, files[1], "nobody else knows a secret");
            }
        }
        2 => {
            let Ok(transcript) = Transcript::open(&path) else { return };
            let _ = transcript.check();
        }
        3 => {
            let Ok(response) = Response::open(&path, genesis) else { return };
            let transcript = transcript_with(directory.path(), &files[1]).expect("a good log");
            let mut coordinator = Coordinator::open(&transcript.path).expect("a directory");
            if coordinator.add(&response, &mut |_| {}).is_ok() {
                assert_eq!(bytes, files[3], "nobody else knows a secret");
            }
        }
        4 => {
            let Ok(transcript) = transcript_with(directory.path(), &files[1]) else { return };
            let text = String::from_utf8_lossy(&bytes);
            let _ = check_receipt(&text, &[&transcript]);
        }
        _ => {
            let (source, out) =
                (PowersFile { path: &path, expect: None }, directory.path().join("powers"));
            let made = new_powers_from(&out, &source, 4, 2, "", &|_| {}, &mut |_| {});
            // What is behind the powers that are taken is of no importance: 4 of each, and 8 of tau in G1.
            let taken = |bytes: &[u8]| bytes[64..64 + 8 * 96].to_vec();
            if made.is_ok() {
                assert_eq!(taken(&bytes), taken(CHALLENGE), "other powers have another structure");
            }
        }
    }
}

/// The transcript with a log of tau.
fn transcript_with(
    directory: &Path,
    log: &[u8],
) -> Result<Transcript, hekaton_ceremony::CeremonyError> {
    let powers = directory.join("powers");
    std::fs::create_dir_all(powers.join("sections")).expect("a directory");
    let genesis = good().genesis.to_bytes();
    std::fs::write(powers.join("genesis"), &genesis).expect("a file");
    std::fs::write(powers.join("tau.log"), log).expect("a file");
    for (name, bytes) in &good().others {
        std::fs::write(powers.join(name), bytes).expect("a file");
    }
    Transcript::open(&powers)
}
