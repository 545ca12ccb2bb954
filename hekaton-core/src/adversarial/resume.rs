//! A run directory with an intact record of a wrong answer, as a broken machine would leave it.

use super::bench::{Bench, Squares};
use crate::coordinator::{Coordinator, CoordinatorError};
use crate::events::{Event, Phase, Recorder};
use crate::messages::{Commitment, Message, ProofResponse};
use crate::options::{Cancellation, ProveOptions};
use crate::prove::{ProveError, prove};
use crate::run::{RunDirectory, RunDirectoryOptions, RunIdentity};
use hekaton_arith::{Fr, G1Point, Group};

const INPUT: u64 = 2;

fn open(bench: &Bench<Squares>, path: &std::path::Path) -> RunDirectory {
    let identity = RunIdentity::new(&bench.keys.verifying, [1; 32]);
    RunDirectoryOptions::new().insecure_seed(1).resume(path, &identity).unwrap()
}

/// A process that stops when a phase begins, if one is given.
fn process(bench: &Bench<Squares>, path: &std::path::Path, stop_at: Option<Phase>) -> Result<crate::Run, ProveError> {
    let stop = Cancellation::new();
    let recorder = Recorder::new("test", |record| {
        if let Event::PhaseStart { phase, .. } = &record.event
            && Some(*phase) == stop_at
        {
            stop.cancel();
        }
    });
    let run = open(bench, path);
    let options = ProveOptions::new().run_directory(&run).recorder(&recorder).cancellation(&stop);
    prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options)
}

/// Writes what `change` makes of the run's own logs.
fn with_logs(bench: &Bench<Squares>, path: &std::path::Path, wrong_commitment: bool) {
    let run = open(bench, path);
    let input = Fr::from(INPUT);
    let coordinator = Coordinator::new(&bench.circuit, &input, &bench.keys).unwrap();
    let context = coordinator.execution_digest();
    let (log, found) = run.log::<Commitment>("commitments", 1, &context, &bench.engine).unwrap();
    if wrong_commitment {
        let right = found.answers[&2];
        log.append(&Commitment { d: right.d.add(&G1Point::generator()), ..right }).unwrap();
        return;
    }
    let answers = found.answers.into_values().collect();
    let round = coordinator.committed(answers, &bench.engine).unwrap().prove_round();
    let context = [&context[..], &round.to_bytes()].concat();
    let randomness = run.randomness().unwrap();
    let worker = crate::worker::Worker::new(&bench.circuit, &bench.keys.types, true, &randomness, true);
    let right = worker.resume(coordinator.job(3, &randomness, true).unwrap()).prove(&round).unwrap();
    let mut wrong = right.proof;
    wrong.c = wrong.c.add(&G1Point::generator());
    let (log, _) = run.log::<ProofResponse>("proofs", 1, &context, &bench.engine).unwrap();
    log.append(&ProofResponse { proof: wrong, ..right }).unwrap();
}

/// A wrong proof is made again. After a wrong commitment, with proofs under its challenges, everything is, with other
/// randomness: masks must not be used under two challenges.
#[test]
fn wrong_answers_in_a_log_are_found_and_made_again() {
    let bench = super::bench::squares();
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
            // interrupted in the second attempt, it finds its way there again
            assert!(matches!(process(&bench, &path, Some(Phase::Aggregate)), Ok(_) | Err(ProveError::Cancelled)));
        }
        let run = process(&bench, &path, None).unwrap();
        assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
        assert_eq!(run.proof == expected, !wrong_commitment);
        assert_eq!(path.join("commitments-2.1.log").exists(), wrong_commitment);
    }
}

/// When the same comes out again, it is the key or the circuit: the subcircuits are named, nothing is made up.
#[test]
fn what_is_wrong_every_time_is_named() {
    let mut bench = super::bench::squares();
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
