//! A run directory with an intact record of a wrong answer, as a faulty machine could leave it.

use hekaton_arith::{Fr, G1Point, Group};
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::events::{Event, Phase, Recorder};
use hekaton_core::protocol::coordinator::{Coordinator, CoordinatorError};
use hekaton_core::protocol::journal::{Journal, LogKey};
use hekaton_core::protocol::messages::{Commitment, Message, ProofResponse};
use hekaton_core::protocol::worker::Worker;
use hekaton_core::{
    Cancellation, LocalEngine, ProveError, ProveOptions, ProvenRun, ProverKeys, SetupOptions,
    WitnessCheck, prove, setup, verify_with_test_keys,
};
use hekaton_storage::{RunDirectory, RunDirectoryOptions, RunIdentity};
use hekaton_testing::Squares;

const INPUT: u64 = 2;

struct Bench {
    circuit: Squares,
    keys: ProverKeys,
    engine: LocalEngine,
}

fn squares() -> Bench {
    let circuit = Squares::new(&[0, 1, 1, 0, 1]);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit, &engine, &SetupOptions::new("squares").insecure_seed(1)).unwrap();
    Bench { circuit, keys, engine }
}

fn open(bench: &Bench, path: &std::path::Path) -> RunDirectory {
    let identity = RunIdentity::new(&bench.keys.verifying, [1; 32]);
    RunDirectoryOptions::new().insecure_seed(1).resume(path, &identity).unwrap()
}

/// Runs a process that stops when `stop_at` begins, if given.
fn process(
    bench: &Bench,
    path: &std::path::Path,
    stop_at: Option<Phase>,
) -> Result<ProvenRun, ProveError> {
    let stop = Cancellation::new();
    let recorder = Recorder::new("test", |record| {
        if let Event::PhaseStart { phase, .. } = &record.event
            && Some(*phase) == stop_at
        {
            stop.cancel();
        }
    });
    let run = open(bench, path);
    let options = ProveOptions::new().journal(&run).recorder(&recorder).cancellation(&stop);
    prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options)
}

/// Passes all commitments in the run's log to `append`, and appends the ones it returns.
fn commitments(
    bench: &Bench,
    run: &RunDirectory,
    context: &[u8],
    append: impl FnOnce(&[Commitment]) -> Vec<Commitment>,
) {
    let key = LogKey { round: "commitments", attempt: 1, context, message_length: Commitment::LEN };
    let mut found = Vec::new();
    let (log, _) = run
        .log(key, &mut |messages| {
            found.extend(
                messages.into_iter().map(|message| Commitment::from_bytes(message).unwrap()),
            );
            0
        })
        .unwrap();
    found.sort_by_key(|commitment| commitment.instance);
    assert_eq!(found.len(), bench.circuit.kinds.len());
    append(&found).iter().for_each(|commitment| log.append(&commitment.to_bytes()).unwrap());
}

/// Appends a wrong commitment or a wrong proof to the run's own logs.
fn with_logs(bench: &Bench, path: &std::path::Path, wrong_commitment: bool) {
    let run = open(bench, path);
    let input = Fr::from(INPUT);
    let circuit = PreparedCircuit::with_input(&bench.circuit, &input).unwrap();
    let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 2).unwrap();
    let context = coordinator.execution_digest();
    let mut all = Vec::new();
    commitments(bench, &run, &context, |found| {
        all = found.to_vec();
        let right = found[2];
        let wrong = Commitment { d: right.d.add(&G1Point::generator()), ..right };
        if wrong_commitment { vec![wrong] } else { Vec::new() }
    });
    if wrong_commitment {
        return;
    }
    let round = coordinator.committed(all, &bench.engine).unwrap().prove_round();
    let context = [&context[..], &round.to_bytes()].concat();
    let randomness = run.randomness().unwrap();
    let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Check);
    let right =
        worker.resume(coordinator.prove_job(3, &randomness).unwrap()).prove(&round).unwrap();
    let mut wrong = right.proof;
    wrong.c = wrong.c.add(&G1Point::generator());
    let key = LogKey {
        round: "proofs",
        attempt: 1,
        context: &context,
        message_length: ProofResponse::LEN,
    };
    let (log, _) = run.log(key, &mut |_| 0).unwrap();
    log.append(&ProofResponse { proof: wrong, ..right }.to_bytes()).unwrap();
}

/// A wrong proof is repeated. After a wrong commitment, with proofs under its challenges,
/// everything is repeated with new randomness: masks must not be used under two pairs of challenges
/// (spec: distributed#repair, zero-knowledge#restart).
#[test]
fn wrong_answers_in_a_log_are_found_and_made_again() {
    let bench = squares();
    let expected = {
        let dir = tempfile::tempdir().unwrap();
        process(&bench, &dir.path().join("run"), None).unwrap().proof
    };
    for wrong_commitment in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        assert!(matches!(process(&bench, &path, Some(Phase::Prove)), Err(ProveError::Cancelled)));
        with_logs(&bench, &path, wrong_commitment);
        if wrong_commitment {
            // interrupted in the second attempt, it resumes there
            assert!(matches!(
                process(&bench, &path, Some(Phase::Aggregate)),
                Ok(_) | Err(ProveError::Cancelled)
            ));
        }
        let run = process(&bench, &path, None).unwrap();
        assert_eq!(
            verify_with_test_keys(&bench.keys.verifying, &run.public_values, run.proof.as_bytes()),
            Ok(())
        );
        assert_eq!(run.proof == expected, !wrong_commitment);
        assert_eq!(path.join("commitments-2.1.log").exists(), wrong_commitment);
    }
}

/// An answer that is wrong again after it was repeated is the fault of the key or the circuit: the
/// error names the subcircuits.
#[test]
fn what_is_wrong_every_time_is_named() {
    let mut bench = squares();
    let key = &mut bench.keys.types[1];
    let mut points = key.l_query().unwrap().to_vec();
    points.iter_mut().for_each(|p| *p = p.add(&G1Point::generator()));
    key.sections_mut().replace("l", points);
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        match process(&bench, &dir.path().join("run"), None) {
            Err(ProveError::Coordinator(CoordinatorError::BadSubcircuits { instances })) => {
                assert_eq!(instances, [1, 2, 4])
            }
            other => panic!("{other:?}"),
        }
    }
}
