//! Adversarial tests 1 to 13, without 6 and 11, which are in setup.rs: the circuit and its memory
//! check.

use super::bench::{Bench, Cheater, Poled, Root, Squares, squares};
use crate::events::{Event, Recorder};
use crate::mirage;
use crate::mirage::WitnessCheck;
use crate::pool::LocalEngine;
use crate::protocol::coordinator::CoordinatorError;
use crate::protocol::forgery::trapdoors;
use crate::protocol::journal::{Accept, Journal, JournalError, JournalErrorKind, LogKey, RoundLog};
use crate::protocol::messages::{Job, ProveRound};
use crate::protocol::worker::{Worker, WorkerError};
use crate::protocol::{ProveError, ProveOptions, prove_with};
use crate::randomness::Randomness;
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::Equation::{T, Z};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, Group};
use hekaton_circuit::prover::Prefix;
use hekaton_circuit::{Masking, MemoryChallenges, SlotAccess};
use std::sync::atomic::{AtomicUsize, Ordering};

const INPUT: u64 = 5;

fn step(kind: usize, w: Fr) -> Fr {
    Squares::step(kind, w)
}

/// Adversarial test 1: a reader uses another value than the writer; all local constraints hold, the
/// end of the chain and the public output follow the lie. Guards: the ledger sum in Z.
#[test]
fn a01_reader_uses_another_value() {
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let lie = Fr::from(1234u64);
    cheater.values[3][0] = lie;
    cheater.values[3][1] = step(0, lie);
    cheater.values[4][0] = cheater.values[3][1];
    cheater.values[4][1] = step(1, cheater.values[4][0]);
    cheater.public[1] = cheater.values[4][1];
    cheater.assert_fails(&cheater.finish(), &[Z]);
}

/// With the point `[L_0 / delta]_1` of one type, which a ceremony without input sums gives away (spec: ceremony#why-input-sums), the lie
/// of adversarial test 1 is proven. The ledger term of a subcircuit of that type is changed
/// after the challenges are known, and C makes up for it.
#[test]
fn a_stolen_point_of_one_type_proves_anything() {
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let (truth, lie) = (cheater.values[3][0], Fr::from(1234u64));
    cheater.values[3][0] = lie;
    cheater.values[3][1] = step(0, lie);
    cheater.values[4][0] = cheater.values[3][1];
    cheater.values[4][1] = step(1, cheater.values[4][0]);
    cheater.public[1] = cheater.values[4][1];
    let trapdoors = trapdoors(bench.keys.types.len(), 1);
    for thief in 0..cheater.values.len() {
        let kind = cheater_kind(&bench, thief);
        let (n, [delta, _]) =
            (bench.keys.types[kind].domain().size() as u64, trapdoors.types[kind]);
        let l_0 = (trapdoors.tau.pow([n]) - Fr::ONE) / (Fr::from(n) * (trapdoors.tau - Fr::ONE));
        let stolen = |share: Fr| G1Point::generator().mul(&(share * l_0 / delta));
        let missing = |memory: &MemoryChallenges| {
            let mut values = cheater.values[3].clone();
            let term = |values: &[Fr]| Prefix::new(&cheater.slots[3], values, memory).unwrap().sum;
            let of_lie = term(&values);
            values[0] = truth;
            term(&values) - of_lie
        };
        let proof = cheater.finish_with(|memory, vectors| {
            let share = missing(memory);
            vectors.e[thief] += share;
            vectors.c[thief] = vectors.c[thief].add(&stolen(-share));
        });
        assert_eq!(bench.verify(&cheater.public, &proof), Ok(()), "a term of subcircuit {thief}");
        // Without the point the ledger balances, but the subcircuit's own equation does not.
        let proof = cheater.finish_with(|memory, vectors| vectors.e[thief] += missing(memory));
        cheater.assert_fails(&proof, &[Z]);
    }
}

/// Adversarial test 2: a reader's witness uses another address, where another value lies. Guards:
/// preprocessed addresses in S_i.
#[test]
fn a02_reader_uses_another_address() {
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    cheater.slots[3][0].address = cheater.slots[2][0].address;
    cheater.values[3][0] = cheater.values[2][0];
    cheater.values[3][1] = step(0, cheater.values[3][0]);
    cheater.values[4][0] = cheater.values[3][1];
    cheater.values[4][1] = step(1, cheater.values[4][0]);
    cheater.public[1] = cheater.values[4][1];
    cheater.assert_fails(&cheater.finish(), &[Z]);
}

/// Adversarial test 3: the whole chain runs from another input; the public values are kept. Guards:
/// the verifier's P_pub.
#[test]
fn a03_public_values_kept() {
    let bench = squares();
    let honest = Cheater::new(&bench, &Fr::from(INPUT));
    // each single public value, and both
    for keep in [[true, true], [true, false], [false, true]] {
        let mut cheater = Cheater::new(&bench, &Fr::from(INPUT + 1));
        for (i, _) in keep.iter().enumerate().filter(|(_, keep)| **keep) {
            cheater.public[i] = honest.public[i];
        }
        cheater.assert_fails(&cheater.finish(), &[Z]);
    }
}

/// Adversarial test 4: w_1 has several readers; one of them keeps the true value, another does not.
/// Guards: one value per address.
#[test]
fn a04_one_of_several_readers_lies() {
    let bench = squares();
    for reader in [2usize, 4] {
        let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
        cheater.values[reader][2] += Fr::ONE;
        cheater.assert_fails(&cheater.finish(), &[Z]);
    }
}

/// Adversarial test 5: a multiplicity is changed in the witness. Guards: preprocessed
/// multiplicities in S_i.
#[test]
fn a05_multiplicity_changed() {
    let bench = squares();
    for (instance, slot) in [(0usize, 1usize), (2, 0)] {
        let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
        cheater.slots[instance][slot].multiplicity += 1;
        cheater.assert_fails(&cheater.finish(), &[Z]);
    }
}

/// Adversarial test 7: an unused slot contributes to the sum. Guards: its fingerprint row with mu =
/// 0.
#[test]
fn a07_unused_slot_contributes() {
    let bench = squares();
    // slot 2 of the first subcircuit holds no wire
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    assert_eq!(cheater.slots[0][2], SlotAccess::UNUSED);
    let proof = cheater.finish_with(|memory, vectors| {
        let key = &bench.keys.types[cheater.kind(0)];
        let layout = key.layout();
        let mut z = cheater.witness(0, memory);
        let (e, u) = (layout.sum(), layout.inverses().start + 2);
        assert!(z[u].is_zero());
        z[u] = Fr::ONE;
        z[e] += Fr::ONE;
        let blinding = cheater.blinding(0);
        assert_eq!(unsatisfied(key, &z, &blinding), Some(3), "the row of slot 2");
        let proof = cheater.prove_assignment(0, &z).proof;
        (vectors.a[0], vectors.b[0], vectors.c[0], vectors.e[0]) =
            (proof.a, proof.b, proof.c, proof.e);
    });
    cheater.assert_fails(&proof, &[Z]);
}

fn unsatisfied(key: &mirage::ProvingKey, z: &[Fr], blinding: &mirage::Blinding) -> Option<usize> {
    match mirage::prove(key, z, &Fr::ONE, blinding, WitnessCheck::Check) {
        Err(mirage::ProverError::Unsatisfied(e)) => Some(e.constraint),
        _ => None,
    }
}

/// Adversarial tests 8 and 12: e is not the sum of the u, either by itself or as a free mask,
/// chosen after the challenge, that repairs a lie elsewhere. Guards: row 0, in the prover's own
/// check and, forced through, in Z.
#[test]
fn a08_a12_e_is_not_the_sum() {
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let change = |z: &mut Vec<Fr>, i: usize, by: Fr| {
        let e = bench.keys.types[cheater_kind(&bench, i)].layout().sum();
        z[e] += by;
    };
    let proof = cheater.finish_with(|memory, vectors| {
        let mut z = cheater.witness(1, memory);
        change(&mut z, 1, Fr::from(9u64));
        assert_eq!(
            unsatisfied(&bench.keys.types[cheater.kind(1)], &z, &cheater.blinding(1)),
            Some(0),
            "row 0"
        );
        put(vectors, 1, cheater.prove_assignment(1, &z).proof);
    });
    cheater.assert_fails(&proof, &[Z]);

    // The mask: reader 2 lies about w_1, and subcircuit 3 adds the missing amount to its e.
    cheater.values[2][2] += Fr::ONE;
    let proof = cheater.finish_with(|memory, vectors| {
        let lie =
            memory.g + cheater.values[2][2] + memory.b * Fr::from(cheater.slots[2][2].address);
        let missing = lie.inverse().unwrap() - (lie - Fr::ONE).inverse().unwrap();
        let mut z = cheater.witness(3, memory);
        change(&mut z, 3, missing);
        assert_eq!(
            unsatisfied(&bench.keys.types[cheater.kind(3)], &z, &cheater.blinding(3)),
            Some(0),
            "row 0"
        );
        put(vectors, 3, cheater.prove_assignment(3, &z).proof);
        // The sum is right now, so only row 0 refuses the proof.
        let sum: Fr = vectors.e.iter().sum();
        let public =
            crate::verifier::verify::public_sum(&bench.keys.verifying, &cheater.public, memory)
                .unwrap();
        assert!((sum + public).is_zero());
    });
    cheater.assert_fails(&proof, &[Z]);
}

fn cheater_kind(bench: &Bench<Squares>, i: usize) -> usize {
    bench.wiring.type_of[i] as usize
}

fn put(
    vectors: &mut crate::aggregation::block::ProofVectors,
    i: usize,
    proof: mirage::MirageProof,
) {
    (vectors.a[i], vectors.b[i], vectors.c[i], vectors.e[i]) = (proof.a, proof.b, proof.c, proof.e);
}

/// Adversarial test 9: a committed value is changed after g and b are known, and D is kept. Guards:
/// D in the Mirage equation.
#[test]
fn a09_value_changed_after_the_challenges() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_with(|memory, vectors| {
        // another chain from the start, consistent in itself
        let other = Cheater::new(&bench, &Fr::from(INPUT + 2));
        for i in 0..5 {
            put(vectors, i, cheater.prove_assignment(i, &other.witness(i, memory)).proof);
        }
    });
    cheater.assert_fails(&proof, &[Z]);
    // With the D of the other chain in the folds: it is not what was committed to.
    let other = Cheater::new(&bench, &Fr::from(INPUT + 2));
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, Merlin::new(), &cheater.commitments());
    let memory = committing.memory();
    let committing = committing.with_other_d(&other.commitments()).unwrap();
    let proof = committing.finish(&other.proofs(&memory)).unwrap();
    cheater.assert_fails(proof.as_bytes(), &[T, Z]);
}

/// Adversarial test 10: the proofs use other challenges (g, b). Guards: S_i = St_i + g Sg_i + b
/// Sb_i with the verifier's g and b.
#[test]
fn a10_other_challenges() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    for (dg, db) in [(1u64, 0u64), (0, 1)] {
        let proof = cheater.finish_with(|memory, vectors| {
            let other = MemoryChallenges::new(memory.g + Fr::from(dg), memory.b + Fr::from(db));
            *vectors = cheater.proofs(&other);
        });
        cheater.assert_fails(&proof, &[Z]);
    }
}

/// Adversarial test 13: the challenges hit a pole (zero denominator): the worker reports it, the
/// run restarts with other randomness, and its proof verifies. Guards: the pole check in
/// `Prefix::new`, and the restart.
#[test]
fn a13_pole() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let memory = |g| MemoryChallenges::new(g, Fr::from(10u64));
    let pole = -(cheater.values[2][1] + Fr::from(10u64) * Fr::from(cheater.slots[2][1].address));
    assert!(Prefix::new(&cheater.slots[2], &cheater.values[2], &memory(pole)).is_err());
    assert!(Prefix::new(&cheater.slots[2], &cheater.values[2], &memory(pole + Fr::ONE)).is_ok());
    let circuit = bench.prepared();
    let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Check);
    let job = Job {
        instance: 2,
        kind: cheater.kind(2),
        values: cheater.values[2].clone(),
        slots: cheater.slots[2].clone(),
        private: Some(bench.private(&Root(Fr::from(7u64)))),
        randomness: cheater.randomness.of_instance(&bench.keys.verifying.digest(), 2),
    };
    let result = worker.resume(job).prove(&ProveRound { memory: memory(pole) });
    assert!(matches!(result, Err(WorkerError::Pole { instance: 2 })));

    let input = Fr::from(INPUT);
    let with_input = bench.with_input(&input);
    // A pole at a subcircuit's value, and one at a public value.
    let public_pole =
        -(cheater.public[0] + Fr::from(10u64) * Fr::from(bench.wiring.public[0].address));
    for pole in [pole, public_pole] {
        let (restarts, attempts) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let sponge = |attempt: u32| -> Box<dyn Sponge> {
            attempts.fetch_add(1, Ordering::Relaxed);
            if attempt == 1 { Box::new(Poled::new(memory(pole))) } else { Box::new(Merlin::new()) }
        };
        let engine = LocalEngine::new(None).unwrap();
        let recorder = Recorder::new("test", |record| {
            if record.event == (Event::Restart { attempt: 2 }) {
                restarts.fetch_add(1, Ordering::Relaxed);
            }
        });
        let options = ProveOptions::new()
            .randomness(Randomness::seeded_not_zero_knowledge(1))
            .recorder(&recorder);
        let run = prove_with(&with_input, &bench.keys, &engine, &options, &sponge).unwrap();
        assert_eq!(bench.verify(&run.public_values, run.proof.as_bytes()), Ok(()));
        assert_eq!((restarts.load(Ordering::Relaxed), attempts.into_inner()), (1, 2));
        // Everything was drawn anew: the commitment differs from that of a first attempt with the
        // same seed.
        let plain =
            crate::prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &engine, &options).unwrap();
        assert_ne!(run.proof.as_bytes()[42..330], plain.proof.as_bytes()[42..330]);
    }
    // A pole in every attempt ends in an error, not in a loop.
    let sponge = |_: u32| -> Box<dyn Sponge> { Box::new(Poled::new(memory(public_pole))) };
    let engine = LocalEngine::new(None).unwrap();
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let result = prove_with(&with_input, &bench.keys, &engine, &options, &sponge);
    let error = result.unwrap_err();
    let at_wire = |error: &ProveError| {
        matches!(error, ProveError::Coordinator(CoordinatorError::Pole { address })
            if *address == bench.wiring.public[0].address)
    };
    assert!(at_wire(&error) && error.to_string().contains("pole"), "{error}");
    // With a journal, the error says that resuming the run would only repeat it (AUDIT nit 6).
    let journal = Forgetful(Randomness::seeded_not_zero_knowledge(1));
    let options = options.journal(&journal);
    let error = prove_with(&with_input, &bench.keys, &engine, &options, &sponge).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("pole") && text.contains("start a new run"), "{text}");
    match error {
        ProveError::AttemptsExhausted(inner) => assert!(at_wire(&inner), "{inner}"),
        other => panic!("{other}"),
    }
    // Errors that a resumed run may not meet again stay as they are.
    let stop = crate::Cancellation::new();
    stop.cancel();
    let options = options.cancellation(&stop);
    let result = prove_with(&with_input, &bench.keys, &engine, &options, &sponge);
    assert!(matches!(result, Err(ProveError::Cancelled)));
    // A verifier with a pole in P_pub never accepts.
    let proof = cheater.finish();
    let verdict = crate::verifier::verify::verify_with(
        Poled::new(memory(public_pole)),
        &bench.keys.verifying,
        &cheater.public,
        &proof,
    );
    assert_eq!(verdict, Err(crate::VerifyError::Pole { address: bench.wiring.public[0].address }));
}

/// A journal that keeps nothing but the seed.
#[derive(Debug)]
struct Forgetful(Randomness);

impl Journal for Forgetful {
    fn is_for(&self, _: &crate::VerifyingKey, _: Option<[u8; 32]>) -> bool {
        true
    }

    fn is_resumed(&self) -> bool {
        false
    }

    fn has_insecure_seed(&self) -> bool {
        true
    }

    fn has_seed(&self) -> bool {
        true
    }

    fn take_notices(&self) -> Vec<String> {
        Vec::new()
    }

    fn randomness(&self) -> Result<Randomness, JournalError> {
        Ok(self.0.clone())
    }

    fn log<'j>(
        &'j self,
        _: LogKey<'_>,
        _: &mut Accept<'_>,
    ) -> Result<(Box<dyn RoundLog + 'j>, Vec<String>), JournalError> {
        Ok((Box::new(Nothing), Vec::new()))
    }

    fn proof(&self) -> Option<Vec<u8>> {
        None
    }

    fn finished_otherwise(&self) -> JournalError {
        JournalError::new(JournalErrorKind::Unusable, "it was never finished")
    }

    fn finish(&self, _: &crate::Proof) -> Result<(), JournalError> {
        Ok(())
    }

    fn remove_seed(&self) -> Result<(), JournalError> {
        Ok(())
    }
}

/// A log that forgets.
struct Nothing;

impl RoundLog for Nothing {
    fn append(&self, _: &[u8]) -> Result<(), JournalError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), JournalError> {
        Ok(())
    }
}
