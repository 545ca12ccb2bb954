//! The functions that fuzzers and property tests run: one per parser, which takes any bytes and
//! panics if the parser does something that it must not.
//!
//! If the first byte is even, the rest is the file itself; if it is odd, the rest is a [`Program`]
//! that changes a valid file. `scripts/fuzz` runs the functions under libFuzzer with the seeds in
//! `fuzz/seeds`; `tests/` runs them with proptest.

mod ceremony;
mod circuit_directory;
pub mod directory;
mod intake;
mod program;

pub use ceremony::ceremony;
pub use circuit_directory::circuit_directory;
pub use intake::intake;
pub use program::Program;

use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::{Closures, MemoryChallenges, PreparedCircuit};
use hekaton_core::mirage::{MirageProof, ProvingKey};
use hekaton_core::protocol::messages::{Commitment, Message, ProofResponse, ProveRound};
use hekaton_core::{
    LocalEngine, SetupOptions, VerifyingKey, derive, fuzzing, setup_family, setup_into,
    verify_with_test_keys,
};
use hekaton_r1cs::{R1csFile, Symbols, Term, WitnessFile};
use hekaton_standard::Chain;
use hekaton_storage::{FamilyStore, KeyStore, fuzzing as storage};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::OnceLock;

/// A valid proof with its key.
#[derive(Debug)]
pub struct Golden {
    /// The verifying key.
    pub key: &'static [u8],
    /// The proof.
    pub proof: &'static [u8],
    /// The public values of the proof.
    pub public: &'static [u64],
    /// The number of commitments in GT at the end of the key, e(alpha, beta) included.
    commitments: usize,
}

/// The golden files of a circuit without buses, and of one with buses.
pub const GOLDEN: [Golden; 2] = [
    Golden {
        key: include_bytes!("../../../hekaton-core/tests/golden/v2.key"),
        proof: include_bytes!("../../../hekaton-core/tests/golden/v2.proof"),
        public: &[3, 81],
        commitments: 8,
    },
    Golden {
        key: include_bytes!("../../../hekaton-core/tests/golden/v4.key"),
        proof: include_bytes!("../../../hekaton-core/tests/golden/v4.proof"),
        public: &[0, 133, 1, 2, 0],
        commitments: 10,
    },
];

impl Golden {
    /// The public values as field elements.
    pub fn public_values(&self) -> Vec<Fr> {
        self.public.iter().copied().map(Fr::from).collect()
    }

    /// The ranges of the group elements at the end of the key.
    fn key_fields(&self) -> Vec<Range<usize>> {
        let lengths = [vec![288; self.commitments], vec![48, 48, 96]].concat();
        let mut at = self.key.len() - lengths.iter().sum::<usize>();
        let place = |len| {
            at += len;
            at - len..at
        };
        lengths.into_iter().map(place).collect()
    }
}

/// The parsed keys.
fn keys() -> &'static [VerifyingKey; 2] {
    static KEYS: OnceLock<[VerifyingKey; 2]> = OnceLock::new();
    KEYS.get_or_init(|| {
        GOLDEN.map(|golden| {
            VerifyingKey::from_bytes(golden.key)
                .unwrap_or_else(|e| panic!("the golden keys must be valid: {e}"))
        })
    })
}

/// The number of fields of a golden proof.
pub fn proof_fields(golden: usize) -> usize {
    fuzzing::fields(keys()[golden].rounds()).len()
}

/// Returns the index of the good file of two that an input is about: 1 if bit 1 of its first byte is
/// set, else 0.
fn second(data: &[u8]) -> usize {
    data.first().map_or(0, |first| usize::from(first / 2 % 2))
}

/// The file that the input encodes: the input itself, or a valid file changed by a program, which
/// knows where the file's group elements are.
fn file(data: &[u8], good: &[u8], elements: &[Range<usize>]) -> Vec<u8> {
    let Some((first, rest)) = data.split_first() else { return Vec::new() };
    if first % 2 == 0 {
        return rest.to_vec();
    }
    let (mut program, mut file) = (Program::new(rest), good.to_vec());
    // few steps suffice: defects show after single changes and pairs of them
    for _ in 0..8 {
        if program.mutate_elements(&mut file, elements).is_none() {
            break;
        }
    }
    file
}

/// Checks a proof against a fixed key: only the golden proof may verify, and only for its own
/// public values.
pub fn proof(data: &[u8]) {
    let which = second(data);
    let (golden, key) = (&GOLDEN[which], &keys()[which]);
    let bytes = file(data, golden.proof, &fuzzing::fields(key.rounds()));
    check_proof(key, &golden.public_values(), golden.proof, &bytes);
}

/// Checks that any proof other than `good` is refused, and `good` too with other public values.
pub fn check_proof(key: &VerifyingKey, public: &[Fr], good: &[u8], bytes: &[u8]) {
    let verdict = verify_with_test_keys(key, public, bytes);
    assert_eq!(verdict.is_ok(), bytes == good, "{verdict:?}");
    if verdict.is_ok() {
        let mut other = public.to_vec();
        other[0] += Fr::from(1u64);
        assert!(verify_with_test_keys(key, &other, bytes).is_err());
        assert!(verify_with_test_keys(key, &other[1..], bytes).is_err());
    }
}

/// Checks a verifying key: an accepted key has one encoding, and the proof is refused under a
/// changed key.
pub fn verifying_key(data: &[u8]) {
    let golden = &GOLDEN[second(data)];
    let bytes = file(data, golden.key, &golden.key_fields());
    if let Ok(key) = VerifyingKey::from_bytes(&bytes) {
        assert_eq!(key.to_bytes(), bytes, "one encoding");
        let verdict = verify_with_test_keys(&key, &golden.public_values(), golden.proof);
        assert_eq!(verdict.is_ok(), bytes == golden.key);
    }
}

/// Checks `manifest.json` and `run.json`: an accepted manifest reads back as the same.
pub fn manifest(data: &[u8]) {
    let bytes = file(data, MANIFEST.as_bytes(), &[]);
    if let Some(manifest) = storage::manifest(&bytes) {
        let _ = manifest.total_constraints();
        let text = serde_json::to_string(&manifest).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(storage::manifest(text.as_bytes()), Some(manifest), "it reads back");
    }
    let bytes = file(data, RUN.as_bytes(), &[]);
    let _ = storage::run_file(&bytes);
}

/// A valid `manifest.json`.
pub const MANIFEST: &str = r#"{"format_version":2,"curve":"BLS12-381","circuit":"golden","parameters":{},"instances":3,
"zero_knowledge":true,"layout_digest":"00","verifying_key_digest":"00","aggregation_key_digest":"00","types":[{"name":"square",
"slots":4,"constraints":7,"instances":2,"bytes":4000,"digest":"00","r1cs_digest":"00"}],"trust":"nobody","written_by":"hekaton"}"#;
/// A valid `run.json`.
pub const RUN: &str = r#"{"format_version":3,"circuit":"golden","parameters":"{}","subcircuits":3,"verifying_key_digest":"00",
"layout_digest":"00","input_digest":"00","seed_digest":"00","insecure_seed":false,"written_by":"hekaton"}"#;

/// The commitments in the valid [`log`].
pub fn answers() -> Vec<Commitment> {
    (0..5)
        .map(|i| Commitment {
            instance: i,
            d: G1Point::generator().mul(&Fr::from(i as u64 + 2)),
            mark: [0; 32],
        })
        .collect()
}

const BINDING: [u8; 32] = [7; 32];
const SEGMENT: &str = "commitments.1.log";

/// A valid log, the first segment of five commitments.
pub fn log() -> &'static [u8] {
    static LOG: OnceLock<Vec<u8>> = OnceLock::new();
    LOG.get_or_init(|| {
        let (dir, _) = scratch();
        storage::append(dir.path(), BINDING, &answers()).unwrap_or_else(|e| panic!("{e}"));
        std::fs::read(dir.path().join(SEGMENT)).unwrap_or_else(|e| panic!("{e}"))
    })
}

fn scratch() -> (tempfile::TempDir, std::path::PathBuf) {
    // in memory if possible: a fuzzer creates thousands of directories per second
    let shm = std::path::Path::new("/dev/shm");
    let made = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() };
    let dir = made.unwrap_or_else(|e| panic!("no temporary directory: {e}"));
    let path = dir.path().join("file");
    (dir, path)
}

/// Checks the log of a run: every answer read from a damaged one is one that was written, and the
/// run can be resumed.
pub fn run_log(data: &[u8]) {
    let bytes = file(data, log(), &[]);
    let (dir, _) = scratch();
    std::fs::write(dir.path().join(SEGMENT), &bytes).unwrap_or_else(|e| panic!("{e}"));
    let Ok((found, notices)) = storage::open_log(dir.path(), BINDING, 5) else { return };
    let all = answers();
    assert!(
        found.iter().all(|answer| all[answer.instance] == *answer),
        "an answer that was never written"
    );
    if bytes == log() {
        assert_eq!((found.len(), notices.len()), (5, 0));
    }
    // after the missing answers are appended, all are there
    let missing: Vec<Commitment> =
        all.iter().filter(|a| found.iter().all(|f| f.instance != a.instance)).copied().collect();
    storage::append(dir.path(), BINDING, &missing).unwrap_or_else(|e| panic!("{e}"));
    let (found, _) = storage::open_log(dir.path(), BINDING, 5).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found, all);
    let same = std::fs::read(dir.path().join(SEGMENT)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(same, bytes, "no process writes into the segment of another");
}

/// A valid message of each kind, with the ranges of its group elements.
fn good_messages() -> [(Vec<u8>, Vec<Range<usize>>); 3] {
    let g = G1Point::generator();
    let proof = MirageProof { a: g, b: G2Point::generator(), c: g.neg(), e: Fr::from(9u64) };
    let round = ProveRound { memory: MemoryChallenges::new(Fr::from(2u64), -Fr::from(3u64)) };
    [
        (answers()[1].to_bytes(), std::iter::once(8..56).collect()),
        (
            ProofResponse { instance: 3, proof, mark: [0; 32] }.to_bytes(),
            vec![8..56, 56..152, 152..200],
        ),
        (round.to_bytes(), Vec::new()),
    ]
}

/// Checks messages: a message that decodes has one encoding.
pub fn messages(data: &[u8]) {
    fn one<M: Message>(bytes: &[u8]) {
        if let Ok(message) = M::from_bytes(bytes) {
            assert_eq!(message.to_bytes(), bytes, "one encoding");
            assert_eq!(bytes.len(), M::LEN);
        }
    }
    for (good, fields) in good_messages() {
        let bytes = file(data, &good, &fields);
        one::<Commitment>(&bytes);
        one::<ProofResponse>(&bytes);
        one::<ProveRound>(&bytes);
    }
    // one message between ranks per call, chosen by the input, so that each gets its share
    static RANKS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let good = RANKS.get_or_init(fuzzing::good_rank_messages);
    let chosen = data.iter().fold(0usize, |sum, byte| sum + usize::from(*byte)) % good.len();
    fuzzing::rank_message(&file(data, &good[chosen], &[]));
}

/// A valid key file of one type, generated from a seed.
pub fn key_file_seed() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let make = || -> Result<Vec<u8>, Box<dyn std::error::Error>> {
            let (_dir, path) = scratch();
            let mut keys = KeyStore::create(&path)?;
            let options = SetupOptions::new("chain").insecure_seed(1);
            setup_into(
                &hekaton_standard::Chain { links: 2, steps: 3 },
                &LocalEngine::new(None)?,
                &options,
                &mut keys,
                |_| {},
            )?;
            let file = std::fs::read_dir(path.join("types"))?.next().ok_or("no type")??;
            Ok(std::fs::read(file.path())?)
        };
        make().unwrap_or_else(|e| panic!("{e}"))
    })
}

/// Checks a key file. The digests of its sections are made to match their content, so that the
/// checks after the digests are reached.
pub fn key_file(data: &[u8]) {
    let mut bytes = file(data, key_file_seed(), &[]);
    repair_digests(&mut bytes);
    let (_dir, path) = scratch();
    std::fs::write(&path, &bytes).unwrap_or_else(|e| panic!("{e}"));
    let _ = fuzzing::key_file(&path);
    let _ = hekaton_core::keys::inspect_sections(&path);
}

/// The circuits of [`family_key`]: without buses, and with a table.
fn families() -> [PreparedCircuit<'static>; 2] {
    static RANGES: OnceLock<Closures> = OnceLock::new();
    let ranges = RANGES.get_or_init(|| {
        Closures::new(
            |layout| {
                layout.range(2);
                let (kind, x) = (layout.subcircuit_type("small", 1), layout.public_input("x", 0));
                let instance = layout.instance(kind);
                layout.read(instance, 0, x);
                Ok(vec![x])
            },
            |wires, values| {
                values.set(wires[0], Fr::from(3u64));
                Ok(())
            },
            |_| Ok(()),
            |s, _| s.range_check(2, s.slot(0)?),
        )
    });
    let circuits =
        [PreparedCircuit::new(&Chain { links: 2, steps: 3 }), PreparedCircuit::new(ranges)];
    circuits.map(|circuit| circuit.unwrap_or_else(|e| panic!("{e}")))
}

/// Valid family keys.
pub fn family_key_seeds() -> &'static [Vec<u8>; 2] {
    static FILES: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    FILES.get_or_init(|| {
        families().map(|circuit| {
            let make = || -> Result<Vec<u8>, Box<dyn std::error::Error>> {
                let (_dir, path) = scratch();
                let (engine, options) =
                    (LocalEngine::new(None)?, SetupOptions::new("family").insecure_seed(1));
                let mut store = FamilyStore::create(&path)?;
                let keep = |key: ProvingKey| store.proving_key(&key);
                let family = setup_family(&circuit, 3, &engine, &options, keep, |_| {})?;
                store.finish(&family)?;
                Ok(std::fs::read(path.join("family.key"))?)
            };
            make().unwrap_or_else(|e| panic!("{e}"))
        })
    })
}

/// Checks a family key, whose digests match its content, and derives keys from one that is accepted:
/// its points may be any bytes.
pub fn family_key(data: &[u8]) {
    let which = second(data);
    let mut bytes = file(data, &family_key_seeds()[which], &[]);
    repair_digests(&mut bytes);
    with_file(&bytes, |path| {
        let Ok(family) = fuzzing::family_key(path) else { return };
        let engine = LocalEngine::new(NonZeroUsize::new(1)).unwrap_or_else(|e| panic!("{e}"));
        let _ = family.digest();
        let derived = derive(&family, &families()[which], "{}", &engine);
        assert!(derived.is_ok() || bytes != family_key_seeds()[which], "the good file is accepted");
        if let Ok((aggregation, verifying)) = derived {
            assert_eq!(aggregation.instances() as u64, verifying.instances);
            assert!(verifying.instances <= family.header().instances as u64);
        }
    });
}

/// Writes the actual digests of the sections into the table, as far as the table makes sense.
fn repair_digests(bytes: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| -> Option<usize> {
        usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok()
    };
    let count =
        bytes.get(12..16).map_or(0, |b| usize::from(b[0]) + 256 * usize::from(b[1])).min(64);
    for entry in (0..count).map(|i| 48 + 80 * i) {
        let Some((offset, len)) = word(bytes, entry + 24).zip(word(bytes, entry + 32)) else {
            return;
        };
        let section = offset.checked_add(len).and_then(|end| bytes.get(offset..end));
        let Some(digest) = section.map(|s| *blake3::hash(s).as_bytes()) else { continue };
        if let Some(place) = bytes.get_mut(entry + 48..entry + 80) {
            place.copy_from_slice(&digest);
        }
    }
}

/// Circom's files of one small circuit: constraints, witness, and names of wires.
pub const R1CS: &[u8] = include_bytes!("../../../circuits/r1cs/tests/golden/cubic.r1cs");
/// See [`R1CS`].
pub const WTNS: &[u8] = include_bytes!("../../../circuits/r1cs/tests/golden/cubic.wtns");
/// See [`R1CS`].
pub const SYM: &[u8] = include_bytes!("../../../circuits/r1cs/tests/golden/cubic.sym");

/// Calls `f` with the path of a file with these bytes.
fn with_file(bytes: &[u8], f: impl FnOnce(&std::path::Path)) {
    let (_dir, path) = scratch();
    std::fs::write(&path, bytes).unwrap_or_else(|e| panic!("{e}"));
    f(&path);
}

/// Checks an `.r1cs` file: an accepted one has canonical rows, and their number is that in its header.
pub fn r1cs(data: &[u8]) {
    with_file(&file(data, R1CS, &[]), |path| {
        let Ok(opened) = R1csFile::open(path) else { return };
        let counts = opened.counts();
        assert!(counts.public() < counts.wires);
        let Ok(system) = opened.read(|_| {}) else { return };
        assert_eq!(system.rows() + system.without_wires().len(), counts.rows as usize);
        for row in 0..system.rows() {
            for terms in system.row(row) {
                assert!(terms.is_sorted_by(|left, right| left.wire < right.wire));
                assert!(terms.iter().all(|term| term.wire < counts.wires));
                let zero = Fr::from(0u64);
                let value = |term: &Term| system.coefficients()[term.coefficient as usize];
                assert!(terms.iter().all(|term| value(term) != zero));
            }
        }
    });
}

/// Checks a `.wtns` file: an accepted one has the number of values in its header, and the first is 1.
pub fn wtns(data: &[u8]) {
    with_file(&file(data, WTNS, &[]), |path| {
        let Ok(opened) = WitnessFile::open(path) else { return };
        // The length of the file bounds the number of values.
        if let Ok(values) = opened.values(0..opened.wires()) {
            assert_eq!((values.len(), values[0]), (opened.wires() as usize, Fr::from(1u64)));
        }
    });
}

/// Checks a `.sym` file: names are of wires that exist.
pub fn sym(data: &[u8]) {
    with_file(&file(data, SYM, &[]), |path| {
        let Ok(symbols) = Symbols::read(path, 4) else { return };
        let named = (0..4).filter(|wire| symbols.name(*wire).is_some_and(|name| !name.is_empty()));
        assert_eq!(named.count(), symbols.len());
    });
}

/// The golden proof of a program's run.
pub const CLAIM: &[u8] = include_bytes!("../../../circuits/vm/tests/golden/v2.proof");

/// A program that adds up its private bytes.
pub fn program() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| hekaton_testing::elf(&hekaton_testing::SUM))
}

/// Checks a program: what is read can be run, and a run that ends is the same again.
pub fn program_file(data: &[u8]) {
    let Ok(program) = hekaton_vm::Program::from_elf(&file(data, program(), &[])) else { return };
    assert_eq!(program.digest(), program.digest());
    let input = hekaton_vm::Input { public: vec![3], private: vec![1, 2, 250] };
    if let Ok(run) = hekaton_vm::run(&program, &input, 2000) {
        let again = run.replay(&program).unwrap_or_else(|e| panic!("a replay ends elsewhere: {e}"));
        // The last cycle is the exit.
        assert_eq!(again, run.cycles() - 1 + run.refreshes());
    }
}

/// Checks the file of a proof of a run: an accepted one has one encoding.
pub fn claim(data: &[u8]) {
    let bytes = file(data, CLAIM, &[]);
    if let Ok((claim, proof)) = hekaton_vm::Claim::read(&bytes) {
        assert!(claim.with_proof(proof) == bytes, "another encoding is accepted");
        // Numbers that are too large are refused before anything is laid out.
        let program = hekaton_vm::Program::from_elf(program())
            .unwrap_or_else(|e| panic!("the program must be valid: {e}"));
        let claim = hekaton_vm::Claim { program: program.digest(), ..claim };
        let words = claim.public_words;
        if let Ok(execution) = claim.execution(program, words, hekaton_vm::Sizes::SMALL) {
            let _ = execution.subcircuits();
        }
    }
}

/// Checks an answer of a key directory ([`directory::answer`]).
pub fn directory_answer(data: &[u8]) {
    directory::answer(data);
}
