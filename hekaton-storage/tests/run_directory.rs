//! Run directories through the library: damage to any of their files, and resuming afterwards. Runs
//! are seeded, so a resumed run must produce the same bytes as one that was never interrupted.

use hekaton_core::events::{Event, Phase, Recorder};
use hekaton_core::{
    Cancellation, DirectRun, Fr, LocalEngine, ProveError, ProveOptions, ProverKeys, SetupOptions,
    prove, setup, verify_direct_with_test_keys, verify_with_test_keys,
};
use hekaton_storage::{RunDirectory, RunDirectoryOptions, RunError, RunIdentity};
use hekaton_testing::{Digits, Doublings, Histogram};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const N: usize = 9;
const HEADER: usize = 64;
const LOGS: [(&str, usize, Phase); 2] =
    [("commitments.1.log", 104, Phase::Commit), ("proofs.1.log", 280, Phase::Prove)];

const CIRCUIT: Doublings = Doublings { links: N, extra: 0 };

struct Bench {
    keys: ProverKeys,
    engine: LocalEngine,
    dir: tempfile::TempDir,
}

/// The result of a process.
struct Process {
    result: Result<Vec<u8>, ProveError>,
    /// The number of subcircuits done in each round.
    done: [usize; 2],
    notices: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let engine = LocalEngine::new(None).unwrap();
        let keys =
            setup(&CIRCUIT, &engine, &SetupOptions::new("doublings").insecure_seed(1)).unwrap();
        Self { keys, engine, dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn identity(&self) -> RunIdentity {
        RunIdentity::new(&self.keys.verifying, [7; 32])
    }

    fn open(&self, path: &Path) -> Result<RunDirectory, RunError> {
        RunDirectoryOptions::new().insecure_seed(5).resume(path, &self.identity())
    }

    /// Runs one process, which is cancelled after `cancel_after` subcircuits.
    fn process(&self, path: &Path, circuit: &Doublings, cancel_after: usize) -> Process {
        let (stop, seen) = (Cancellation::new(), Mutex::new(([0, 0], Vec::new())));
        let recorder = Recorder::new("test", |record| {
            let mut seen = seen.lock().unwrap();
            match &record.event {
                Event::Subcircuit { phase: Phase::Commit, .. } => seen.0[0] += 1,
                Event::Subcircuit { phase: Phase::Prove, .. } => seen.0[1] += 1,
                Event::Notice { message } => seen.1.push(message.clone()),
                _ => {}
            }
            if seen.0[0] + seen.0[1] >= cancel_after {
                stop.cancel();
            }
        });
        let run = self.open(path).unwrap();
        let options =
            ProveOptions::new().recorder(&recorder).journal(&run).cancellation(&stop).provers(1);
        let result = prove(circuit, &Fr::from(3u64), &self.keys, &self.engine, &options);
        drop(recorder);
        let (done, notices) = seen.into_inner().unwrap();
        let result = result.map(|run| {
            assert_eq!(
                verify_with_test_keys(
                    &self.keys.verifying,
                    &run.public_values,
                    run.proof.as_bytes()
                ),
                Ok(())
            );
            run.proof.as_bytes().to_vec()
        });
        Process { result, done, notices }
    }

    /// A run that was cancelled with all commitments and all proofs but one in its logs.
    fn interrupted(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let process = self.process(&path, &CIRCUIT, 2 * N - 1);
        assert!(matches!(process.result, Err(ProveError::Cancelled)));
        assert_eq!(process.done, [N, N - 1]);
        path
    }

    /// The proof of an undisturbed run.
    fn undisturbed(&self) -> Vec<u8> {
        self.process(&self.path("undisturbed"), &CIRCUIT, usize::MAX).result.unwrap()
    }
}

/// The error of the run directory that ended a process, if one did.
fn run_error(process: &Process) -> Option<&RunError> {
    match &process.result {
        Err(ProveError::Journal(error)) => error.downcast_ref(),
        _ => None,
    }
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_cancelled_run_resumes_to_the_same_bytes() {
    let bench = Bench::new();
    let expected = bench.undisturbed();
    for cancel_after in [0, 1, N - 1, N, N + 1, 2 * N - 1] {
        let path = bench.path(&format!("cancel-{cancel_after}"));
        let first = bench.process(&path, &CIRCUIT, cancel_after);
        assert!(matches!(first.result, Err(ProveError::Cancelled)), "{cancel_after}");
        let second = bench.process(&path, &CIRCUIT, usize::MAX);
        assert_eq!(second.result.unwrap(), expected, "{cancel_after}");
        assert_eq!(
            [first.done[0] + second.done[0], first.done[1] + second.done[1]],
            [N, N],
            "no subcircuit is done twice"
        );
        // a third process has nothing to do
        let third = bench.process(&path, &CIRCUIT, usize::MAX);
        assert_eq!((third.result.unwrap(), third.done), (expected.clone(), [0, 0]));
    }
}

#[test]
fn flipped_bits_cost_the_records_they_hit() {
    let bench = Bench::new();
    let expected = bench.undisturbed();
    for (log, (name, record, _)) in LOGS.iter().enumerate() {
        let records = [N, N - 1][log];
        let places = [
            ("magic", 0, 0),
            ("version", 8, 0),
            ("length", 13, 0),
            ("binding", 20, 0),
            ("checksum of the header", 50, 0),
            ("first record's index", HEADER, 1),
            ("first record's index, high", HEADER + 7, 1),
            ("first record's point", HEADER + 8, 1),
            ("middle", HEADER + record * (records / 2) + 30, 1),
            ("last record's checksum", HEADER + record * records - 1, 1),
        ];
        for (what, at, lost) in places {
            for bit in [0x01, 0x80] {
                let path = bench.interrupted(&format!("{name}-{what}-{bit}").replace(' ', "-"));
                change(&path.join(name), |bytes| bytes[at] ^= bit);
                let process = bench.process(&path, &CIRCUIT, usize::MAX);
                assert_eq!(process.result.unwrap(), expected, "{name}, {what}");
                let mut again = [0, 1];
                again[log] += lost;
                assert_eq!(process.done, again, "{name}, {what}");
                let notice = if lost > 0 { "1 record is damaged" } else { "the header is damaged" };
                assert!(
                    process.notices.iter().any(|n| n.contains(name) && n.contains(notice)),
                    "{:?}",
                    process.notices
                );
            }
        }
    }
}

#[test]
fn torn_records_and_headers_are_cut_off() {
    let bench = Bench::new();
    let expected = bench.undisturbed();
    for (log, (name, record, _)) in LOGS.iter().enumerate() {
        let full = HEADER + record * [N, N - 1][log];
        for (cut, lost) in [
            (full - 1, 1),
            (full - record + 1, 1),
            (HEADER + 1, [N, N - 1][log]),
            (HEADER - 1, [N, N - 1][log]),
        ] {
            let path = bench.interrupted(&format!("{name}-{cut}"));
            change(&path.join(name), |bytes| bytes.truncate(cut));
            let process = bench.process(&path, &CIRCUIT, usize::MAX);
            assert_eq!(process.result.unwrap(), expected, "{name}, {cut}");
            let mut again = [0, 1];
            again[log] += lost;
            assert_eq!(process.done, again, "{name}, {cut}");
            assert!(process.notices.iter().any(|n| n.contains("torn")), "{:?}", process.notices);
            assert_eq!(
                std::fs::read(path.join(name)).unwrap().len(),
                cut,
                "a segment of another process is never written"
            );
            let second = std::fs::read(path.join(name.replace(".1.", ".2."))).unwrap();
            assert_eq!(
                second.len(),
                HEADER + record * again[log],
                "repeated subcircuits are in a new segment"
            );
        }
        // zeros at the end, as after a power failure: a whole record of zeros counts as damaged
        let path = bench.interrupted(&format!("{name}-zeros"));
        change(&path.join(name), |bytes| bytes.resize(full + record + 5, 0));
        let process = bench.process(&path, &CIRCUIT, usize::MAX);
        assert_eq!((process.result.unwrap(), process.done), (expected.clone(), [0, 1]));
    }
}

#[test]
fn records_of_another_run_or_place_are_not_taken() {
    let bench = Bench::new();
    let path = bench.interrupted("one");
    // a swapped index makes the checksum of its record wrong
    change(&path.join("commitments.1.log"), |bytes| {
        let (a, b) =
            (bytes[HEADER..HEADER + 8].to_vec(), bytes[HEADER + 104..HEADER + 112].to_vec());
        bytes[HEADER..HEADER + 8].copy_from_slice(&b);
        bytes[HEADER + 104..HEADER + 112].copy_from_slice(&a);
    });
    let process = bench.process(&path, &CIRCUIT, usize::MAX);
    assert_eq!((process.result.unwrap(), process.done), (bench.undisturbed(), [2, 1]));
    // the whole log of another run
    let path = bench.interrupted("two");
    let other = bench.path("other");
    let run = RunDirectoryOptions::new().insecure_seed(6).begin(&other, &bench.identity()).unwrap();
    let options = ProveOptions::new().journal(&run);
    prove(&CIRCUIT, &Fr::from(3u64), &bench.keys, &bench.engine, &options).unwrap();
    std::fs::copy(other.join("commitments.1.log"), path.join("commitments.1.log")).unwrap();
    let process = bench.process(&path, &CIRCUIT, usize::MAX);
    assert!(matches!(run_error(&process), Some(RunError::OtherLog { .. })));
    // a circuit that executes the input differently
    let path = bench.interrupted("three");
    let process = bench.process(&path, &Doublings { links: N, extra: 1 }, usize::MAX);
    assert!(matches!(run_error(&process), Some(RunError::OtherLog { .. })));
    // a log of an earlier or a later version
    for version in [3, 5] {
        let path = bench.interrupted(&format!("version-{version}"));
        change(&path.join("proofs.1.log"), |bytes| {
            assert_eq!(bytes[8], 4);
            bytes[8] = version;
            let mut binding = [0; 32];
            binding.copy_from_slice(&bytes[16..48]);
            let sum = *blake3::keyed_hash(&binding, &bytes[..48]).as_bytes();
            bytes[48..64].copy_from_slice(&sum[..16]);
        });
        let process = bench.process(&path, &CIRCUIT, usize::MAX);
        let found = run_error(&process);
        let expected = u32::from(version);
        assert!(matches!(found, Some(RunError::Version { found, .. }) if *found == expected));
    }
}

#[test]
fn identity_seed_and_proof_are_guarded() {
    let bench = Bench::new();
    let path = bench.interrupted("guarded");
    let refused = |path: &Path| bench.open(path).unwrap_err();
    // another input
    let other = RunIdentity::new(&bench.keys.verifying, [8; 32]);
    let error =
        RunDirectoryOptions::new().insecure_seed(5).resume(&path, &other).unwrap_err().to_string();
    assert!(error.contains("its input differs"), "{error}");
    // a run with a test's seed is not resumed as a real one
    let error =
        RunDirectoryOptions::new().resume(&path, &bench.identity()).unwrap_err().to_string();
    assert!(error.contains("it was started with a test seed"), "{error}");
    assert!(matches!(
        RunDirectoryOptions::new().begin(&path, &bench.identity()),
        Err(RunError::Exists { .. })
    ));
    // any changed byte of the seed and any truncated run.json is refused
    let seed = std::fs::read(path.join("seed")).unwrap();
    for at in [0, 8, 12, 43] {
        change(&path.join("seed"), |bytes| bytes[at] ^= 1);
        assert!(matches!(refused(&path), RunError::Damaged { .. }), "{at}");
        std::fs::write(path.join("seed"), &seed).unwrap();
    }
    std::fs::write(path.join("seed"), &seed[..43]).unwrap();
    assert!(matches!(refused(&path), RunError::Damaged { .. }));
    std::fs::remove_file(path.join("seed")).unwrap();
    assert!(matches!(refused(&path), RunError::Damaged { .. }));
    std::fs::write(path.join("seed"), &seed).unwrap();
    let run = std::fs::read(path.join("run.json")).unwrap();
    for cut in [0, 10, run.len() - 3] {
        std::fs::write(path.join("run.json"), &run[..cut]).unwrap();
        assert!(matches!(refused(&path), RunError::Damaged { .. }), "{cut}");
    }
    for version in [2, 4] {
        let text = String::from_utf8(run.clone())
            .unwrap()
            .replace("\"format_version\": 3", &format!("\"format_version\": {version}"));
        std::fs::write(path.join("run.json"), text).unwrap();
        let error = refused(&path);
        assert!(matches!(error, RunError::Version { found, .. } if found == version), "{error}");
        assert!(error.to_string().contains(&format!("version {version}")), "{error}");
    }
    std::fs::write(path.join("run.json"), &run).unwrap();
    // a seed that others could read is reported
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |mode| {
            std::fs::set_permissions(path.join("seed"), std::fs::Permissions::from_mode(mode))
                .unwrap()
        };
        mode(0o644);
        let process = bench.process(&path, &CIRCUIT, 0);
        assert!(
            process.notices.iter().any(|n| n.contains("readable by other users")),
            "{:?}",
            process.notices
        );
        mode(0o600);
    }
    // a finished run has no seed, and a proof that was changed afterwards is not returned
    let process = bench.process(&path, &CIRCUIT, usize::MAX);
    assert_eq!(process.result.unwrap(), bench.undisturbed());
    assert!(!path.join("seed").exists());
    change(&path.join("proof"), |bytes| bytes[100] ^= 1);
    let process = bench.process(&path, &CIRCUIT, usize::MAX);
    assert!(matches!(run_error(&process), Some(RunError::Finished { .. })));
}

#[test]
fn one_holder_at_a_time() {
    let bench = Bench::new();
    let path = bench.path("held");
    let first = bench.open(&path).unwrap();
    let error = bench.open(&path).unwrap_err();
    assert!(matches!(error, RunError::Held { .. }), "{error}");
    assert!(error.to_string().contains(&std::process::id().to_string()));
    drop(first);
    // the lease of a dead process on this machine is taken over at once
    let lease = path.join("lease.json");
    let second = bench.open(&path).unwrap();
    let text = std::fs::read_to_string(&lease).unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = text
        .replace(&format!("\"pid\":{}", std::process::id()), &format!("\"pid\":{}", child.id()));
    assert_ne!(dead, text);
    std::fs::write(&lease, &dead).unwrap();
    // even while it is a zombie
    std::thread::sleep(std::time::Duration::from_millis(200));
    let third = bench.open(&path).unwrap();
    assert!(third.check_lease().is_ok());
    assert!(matches!(second.check_lease(), Err(RunError::Lost { .. })));
    child.wait().unwrap();
    drop(second);
    assert!(third.check_lease().is_ok(), "a process that lost the lease does not remove it");
    drop(third);
    assert!(!lease.exists());
    // one in which a start was killed is used
    let killed = bench.path("killed");
    std::fs::create_dir(&killed).unwrap();
    for file in ["seed", "run.json.765181dfb249dd50.part", "seed.0123456789abcdef.part", ".tmpX1"] {
        std::fs::write(killed.join(file), "x").unwrap();
    }
    drop(bench.open(&killed).unwrap());
    // a directory with other files is left alone
    let other = bench.path("something");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.tex"), "x").unwrap();
    assert!(matches!(bench.open(&other), Err(RunError::NotEmpty { .. })));
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
}

/// A run directory is refused if it was opened for other keys than those that prove.
#[test]
fn a_directory_for_other_keys() {
    let (bench, other) = (Bench::new(), Bench::new());
    let keys =
        setup(&CIRCUIT, &bench.engine, &SetupOptions::new("doublings").insecure_seed(2)).unwrap();
    let run = other.open(&other.path("run")).unwrap();
    let options = ProveOptions::new().journal(&run);
    assert!(matches!(
        prove(&CIRCUIT, &Fr::from(3u64), &keys, &bench.engine, &options),
        Err(ProveError::ForeignJournal)
    ));
}

/// A run that was killed between its last two steps still loses its seed.
#[test]
fn a_finished_run_keeps_no_seed() {
    let bench = Bench::new();
    let path = bench.interrupted("seed");
    let seed = std::fs::read(path.join("seed")).unwrap();
    bench.process(&path, &CIRCUIT, usize::MAX).result.unwrap();
    assert!(!path.join("seed").exists());
    std::fs::write(path.join("seed"), &seed).unwrap();
    assert_eq!(bench.process(&path, &CIRCUIT, usize::MAX).result.unwrap(), bench.undisturbed());
    assert!(!path.join("seed").exists());
}

/// Nothing that stays in a run directory can confirm a guess of the witness: two runs of one input
/// share no digest of it.
#[test]
fn files_do_not_reveal_the_input() {
    let bench = Bench::new();
    let files = |seed: u64| {
        let path = bench.path(&format!("guess-{seed}"));
        let run =
            RunDirectoryOptions::new().insecure_seed(seed).begin(&path, &bench.identity()).unwrap();
        let options = ProveOptions::new().journal(&run);
        prove(&CIRCUIT, &Fr::from(3u64), &bench.keys, &bench.engine, &options).unwrap();
        let text = std::fs::read_to_string(path.join("run.json")).unwrap();
        let digest = text.split("\"input_digest\": \"").nth(1).unwrap()[..64].to_owned();
        assert!(!text.contains(&"07".repeat(32)), "the input's own digest");
        (digest, LOGS.map(|(name, ..)| std::fs::read(path.join(name)).unwrap()[16..48].to_vec()))
    };
    let (a, b) = (files(1), files(2));
    assert_ne!(a.0, b.0);
    assert!(a.1[0] != b.1[0] && a.1[1] != b.1[1], "headers of logs");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            std::fs::metadata(bench.path("guess-1")).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }
}

/// A gap in the numbers of segments does not end the log.
#[test]
fn a_missing_segment_hides_nothing() {
    let bench = Bench::new();
    let path = bench.interrupted("gap");
    for (name, ..) in LOGS {
        std::fs::rename(path.join(name), path.join(name.replace(".1.", ".12."))).unwrap();
    }
    let process = bench.process(&path, &CIRCUIT, usize::MAX);
    assert_eq!((process.result.unwrap(), process.done), (bench.undisturbed(), [0, 1]));
    assert!(path.join("proofs.13.log").exists());
}

/// A run with tables and a memory that is killed in each round, and resumes in another process: look-ups
/// are counted again, and marked values are the same.
#[test]
fn a_run_with_tables_resumes_to_the_same_bytes() {
    let circuit = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit, &engine, &SetupOptions::new("h").insecure_seed(1)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let process = |path: &Path, cancel_after: usize| {
        let (stop, done) = (Cancellation::new(), Mutex::new(0));
        let recorder = Recorder::new("test", |record| {
            if let Event::Subcircuit { .. } = &record.event {
                let mut done = done.lock().unwrap();
                *done += 1;
                if *done >= cancel_after {
                    stop.cancel();
                }
            }
        });
        let identity = RunIdentity::new(&keys.verifying, [7; 32]);
        let run = RunDirectoryOptions::new().insecure_seed(5).resume(path, &identity).unwrap();
        let options =
            ProveOptions::new().recorder(&recorder).journal(&run).cancellation(&stop).provers(1);
        let result = prove(&circuit, &input, &keys, &engine, &options);
        drop(recorder);
        (result.map(|run| run.proof.as_bytes().to_vec()), done.into_inner().unwrap())
    };
    let (expected, all) = process(&dir.path().join("undisturbed"), usize::MAX);
    let expected = expected.unwrap();
    // Two parts, one that asks, eight of the tables, one of the memory; in two rounds.
    assert_eq!(all, 2 * 12);
    for cancel_after in [1, 5, 11, 12, 13, 23] {
        let path = dir.path().join(format!("cancel-{cancel_after}"));
        let (first, done) = process(&path, cancel_after);
        assert!(matches!(first, Err(ProveError::Cancelled)), "{cancel_after}");
        let (second, rest) = process(&path, usize::MAX);
        assert_eq!((second.unwrap(), done + rest), (expected.clone(), all), "{cancel_after}");
    }
}

/// Adversarial test D14: a run of one kind is not resumed as the other, nor under another context, and one
/// that was opened for another kind is not used. A direct run resumes to the same bytes.
#[test]
fn a_run_of_one_kind_is_not_resumed_as_the_other() {
    let bench = Bench::new();
    let key = bench.keys.direct_key(&bench.engine).unwrap();
    let run = |context| DirectRun::new(&key, context);
    let open = |path: &Path, identity: &RunIdentity| {
        RunDirectoryOptions::new().insecure_seed(5).resume(path, identity)
    };
    // Cancelled in the prove round.
    let prove_in = |path: &Path, direct: DirectRun<'_>, after: usize| {
        let (stop, done) = (Cancellation::new(), Mutex::new(0));
        let recorder = Recorder::new("test", |record| {
            if let Event::Subcircuit { .. } = &record.event {
                let mut done = done.lock().unwrap();
                *done += 1;
                if *done >= after {
                    stop.cancel();
                }
            }
        });
        let directory = open(path, &bench.identity().direct(&direct)).unwrap();
        let options = ProveOptions::new()
            .recorder(&recorder)
            .journal(&directory)
            .cancellation(&stop)
            .provers(1)
            .direct(direct);
        let result = prove(&CIRCUIT, &Fr::from(3u64), &bench.keys, &bench.engine, &options);
        result.map(|run| (run.proof.as_bytes().to_vec(), run.public_values))
    };
    let (whole, cut) = (bench.path("whole"), bench.path("cut"));
    let (expected, public) = prove_in(&whole, run([1; 32]), usize::MAX).unwrap();
    assert_eq!(verify_direct_with_test_keys(&key, &public, &[1; 32], &expected), Ok(()));
    let stopped = prove_in(&cut, run([1; 32]), N + 3);
    assert!(matches!(stopped, Err(ProveError::Cancelled)), "{stopped:?}");

    let differences = |identity: &RunIdentity| match open(&cut, identity) {
        Err(RunError::Different { differences, .. }) => differences.join("; "),
        other => panic!("{other:?}"),
    };
    let kind = differences(&bench.identity());
    assert!(kind.contains("a direct proof then, an aggregated proof now"), "{kind}");
    let context = differences(&bench.identity().direct(&run([2; 32])));
    assert!(context.contains("its context"), "{context}");
    // Opened for the direct run, used for the aggregated one.
    let directory = open(&cut, &bench.identity().direct(&run([1; 32]))).unwrap();
    let options = ProveOptions::new().journal(&directory);
    let other = prove(&CIRCUIT, &Fr::from(3u64), &bench.keys, &bench.engine, &options);
    assert!(matches!(other, Err(ProveError::ForeignJournal)), "{other:?}");
    drop(directory);

    let (resumed, _) = prove_in(&cut, run([1; 32]), usize::MAX).unwrap();
    assert!(resumed == expected, "the same bytes");
    // And a finished one returns its proof again.
    assert!(prove_in(&cut, run([1; 32]), usize::MAX).unwrap().0 == expected);
}
