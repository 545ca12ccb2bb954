//! Answers of servers of key directories, and files that their provers and clients read.

use crate::file;
use ed25519_dalek::SigningKey;
use hekaton_directory::{
    Change, Entry, History, Index, Opening, Parameters, Path, Profile, Record, SignedRecord, Tree,
    Witness, log::Frontier,
};
use hekaton_directory_circuit::Epochs;
use hekaton_directory_http::ParametersFile;
use std::sync::OnceLock;

const LABELS: [&[u8]; 3] = [b"alice", b"bob", b"carol"];

/// A directory of three labels, with two values of the first one.
struct Directory {
    parameters: Parameters,
    tree: Tree,
    history: History,
    record: Record,
    /// A path, a history, a signed record, a witness of two epochs, and the file of the parameters.
    answers: [Vec<u8>; 5],
}

/// A circuit with room for the witness, and no more.
const CIRCUIT: Epochs = Epochs { profile: Profile::Compress, steps: 8, subcircuits: 2 };

fn directory() -> Result<Directory, Box<dyn std::error::Error>> {
    let key = SigningKey::from_bytes(&[1; 32]);
    let (profile, server) = (Profile::Compress, key.verifying_key());
    let parameters = Parameters { profile, server, proofs: [2; 32] };
    let mut record = Record::first(&parameters, 0);
    let mut earlier = Frontier::default();
    let (mut tree, mut history) = (Tree::new(profile), History::default());
    let (root, chain) = (record.root, record.chain);
    let mut witness = Witness { profile, epoch: 0, root, chain, steps: Vec::new() };
    for value in 0..2 {
        history.0.push(Entry::Value(Opening { salt: [value; 32], value: vec![value; 5] }));
        let commitments = LABELS.map(|label| history.commitment(label));
        let pairs = LABELS.iter().zip(commitments);
        let changes = pairs
            .map(|(label, commitment)| {
                Ok(Change { index: Index::of(label)?, commitment: commitment? })
            })
            .collect::<Result<Vec<_>, hekaton_directory::LabelError>>()?;
        witness.steps.extend(tree.steps(&changes)?);
        tree = tree.update(&changes)?;
        earlier.append(&[record.entry()]);
        record = record.next(&tree, &Frontier::default(), &earlier, 60);
    }
    let path = tree.path(&Index::of(LABELS[0])?)?;
    let (record_bytes, file) =
        (record.sign(&key).encode().to_vec(), ParametersFile::of(&parameters));
    let answers = [path.encode(), history.encode(), record_bytes, witness.encode(), file.bytes()];
    Ok(Directory { parameters, tree, history, record, answers })
}

fn golden() -> &'static Directory {
    static DIRECTORY: OnceLock<Directory> = OnceLock::new();
    DIRECTORY
        .get_or_init(|| directory().unwrap_or_else(|e| panic!("the directory must be valid: {e}")))
}

/// The bytes of a path, a history, a signed record, a witness and a file of parameters.
pub fn answers() -> &'static [Vec<u8>; 5] {
    &golden().answers
}

/// Checks an answer to a client: an accepted one has one encoding, and is true.
pub fn answer(data: &[u8]) {
    let golden = golden();
    let which = usize::from(data.first().copied().unwrap_or(0)) / 2 % 5;
    let good = &golden.answers[which];
    let bytes = file(data, good, &[]);
    match which {
        0 => {
            let Ok(path) = Path::decode(&bytes) else { return };
            assert!(path.encode() == bytes, "another encoding of a path is accepted");
            for label in LABELS.into_iter().chain([&b"dave"[..]]) {
                let index = Index::of(label).unwrap_or_else(|e| panic!("{e}"));
                let found = path.verify(golden.parameters.profile, &golden.tree.root(), &index);
                if let Ok(found) = found {
                    assert_eq!(Ok(found), golden.tree.leaf(&index));
                }
            }
        }
        1 => {
            let Ok(history) = History::decode(&bytes) else { return };
            assert!(history.encode() == bytes, "another encoding of a history is accepted");
            let leaf =
                Index::of(LABELS[0]).ok().and_then(|index| golden.tree.leaf(&index).ok().flatten());
            let Some(leaf) = leaf else { return };
            if history.verify(LABELS[0], &leaf).is_ok() {
                let mut values = history.0.iter().zip(&golden.history.0);
                let same = |(found, good)| matches!(found, &Entry::Erased(_)) || found == good;
                assert!(values.all(same), "another value is accepted");
            }
        }
        2 => {
            let Ok(signed) = SignedRecord::decode(&bytes) else { return };
            assert!(signed.encode()[..] == bytes, "another encoding of a record is accepted");
            if let Ok(checked) = signed.verify(&golden.parameters) {
                assert_eq!(*checked.record(), golden.record);
            }
        }
        3 => {
            let Ok(witness) = Witness::decode(&bytes) else { return };
            assert!(witness.encode() == bytes, "another encoding of a witness is accepted");
            // The prover refuses a wrong witness with an error.
            let _ = CIRCUIT.run(&witness);
        }
        _ => {
            let read = ParametersFile::read(&bytes);
            let Ok(parameters) = read.and_then(|file| file.parameters()) else { return };
            let again = ParametersFile::read(&ParametersFile::of(&parameters).bytes());
            assert_eq!(again.and_then(|file| file.parameters()).ok(), Some(parameters));
        }
    }
}
