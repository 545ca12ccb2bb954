//! Adversarial tests 21 to 30a: single Mirage proofs.

use super::bench::{Bench, Cheater, Root, Squares, squares, with_field};
use crate::aggregation::block::ProofVectors;
use crate::encoding::Encode;
use crate::mirage::{MirageInstance, WitnessCheck};
use crate::protocol::coordinator::blame::bad_subcircuits;
use crate::protocol::coordinator::{Coordinator, CoordinatorError};
use crate::protocol::messages::{Commitment, ProofResponse};
use crate::protocol::worker::{Worker, WorkerError};
use crate::verifier::proof::Field as ProofField;
use crate::verifier::transcript::Merlin;
use crate::verifier::verify::Equation::{T, Z};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::{Masking, MemoryChallenges};

const INPUT: u64 = 5;

fn statements(cheater: &Cheater<'_, Squares>, memory: &MemoryChallenges) -> Vec<MirageInstance> {
    let key = &cheater.bench.keys.aggregation;
    let (s, d) = (key.s(memory).unwrap(), cheater.commitments());
    (0..cheater.values.len())
        .map(|i| MirageInstance {
            kind: cheater.kind(i),
            s: s[i],
            d: d[i],
            proof: cheater.prove_assignment(i, &cheater.witness(i, memory)).proof,
        })
        .collect()
}

const MEMORY: fn() -> MemoryChallenges =
    || MemoryChallenges::new(Fr::from(123_456_789u64), Fr::from(987_654_321u64));

/// The single equation holds for every type and fails when any of its elements changes.
#[test]
fn single_proofs() {
    let bench = Bench::new(Squares { lonely: true, ..Squares::new(&[0, 1, 1]) }, true);
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let verifier = bench.keys.aggregation.mirage_verifier(&bench.keys.verifying).unwrap();
    let good = statements(&cheater, &MEMORY());
    let (g, h) = (G1Point::generator(), G2Point::generator());
    for statement in &good {
        assert!(verifier.verify(statement));
        let refuse = |change: &dyn Fn(&mut MirageInstance)| {
            let mut bad = *statement;
            change(&mut bad);
            assert!(!verifier.verify(&bad));
        };
        refuse(&|s| s.proof.a = s.proof.a.add(&g));
        refuse(&|s| s.proof.b = s.proof.b.add(&h));
        refuse(&|s| s.proof.c = s.proof.c.add(&g));
        refuse(&|s| s.proof.e += Fr::ONE);
        refuse(&|s| s.d = s.d.add(&g));
        refuse(&|s| s.s = s.s.add(&g));
        refuse(&|s| s.kind = (s.kind + 1) % 3);
    }
    // Bisection over random combinations finds every subset of bad proofs.
    let mut counter = 0u64;
    let mut random = || {
        counter += 1;
        Fr::from(counter).pow([5])
    };
    assert!(verifier.find_bad(&good, &mut random).is_empty());
    let mut bad = good.clone();
    for i in [1usize, 3] {
        bad[i].proof.c = bad[i].proof.c.add(&g);
    }
    assert_eq!(verifier.find_bad(&bad, &mut random), vec![1, 3]);
}

/// The fold of the scaled addresses changes how B is computed, and not B, whatever the factor is.
#[test]
fn folded_addresses_give_the_same_point() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let memory = MemoryChallenges::new(Fr::from(1_000_003u64), Fr::from(u128::MAX));
    for instance in 0..2 {
        let z = cheater.witness(instance, &memory);
        let key = &bench.keys.types[cheater.kind(instance)];
        let (query, addresses) = (key.b_query().unwrap(), key.layout().addresses());
        let folded =
            addresses.clone().filter(|x| query.variables.iter().any(|v| *v as usize == *x));
        assert_eq!(folded.count(), key.slots(), "each address is in B");
        for factor in [memory.b, Fr::ONE, Fr::from(0u64), -Fr::from(7u64)] {
            assert_eq!(query.evaluate_folded(&z, addresses.clone(), &factor), query.evaluate(&z));
        }
    }
}

/// Adversarial test 21: a wrong witness in each type. Guards: the Mirage equation in Z; the
/// prover's own check names the row.
#[test]
fn a21_wrong_witness() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    for instance in [0usize, 1] {
        let proof = cheater.finish_with(|memory, vectors| {
            let mut z = cheater.witness(instance, memory);
            let last = z.len() - 1;
            z[last] += Fr::ONE;
            let key = &bench.keys.types[cheater.kind(instance)];
            assert!(
                crate::mirage::prove(
                    key,
                    &z,
                    &Fr::ONE,
                    &cheater.blinding(instance),
                    WitnessCheck::Check
                )
                .is_err()
            );
            let proof = cheater.prove_assignment(instance, &z).proof;
            (vectors.a[instance], vectors.b[instance], vectors.c[instance]) =
                (proof.a, proof.b, proof.c);
        });
        cheater.assert_fails(&proof, &[Z]);
    }
}

/// Adversarial test 22: a proof of one type in a slot of another. Guards: delta, eta and S of each
/// instance's type.
#[test]
fn a22_proof_of_another_type() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    // Subcircuit 1 is of type 1: it is proven as type 0, with values that satisfy type 0.
    let proof = cheater.finish_with(|memory, vectors| {
        let other = Bench::new(Squares::new(&[0, 0, 1, 0, 1]), true);
        let liar = Cheater::new(&other, &Fr::from(INPUT));
        let proof = liar.prove_assignment(1, &liar.witness(1, memory)).proof;
        (vectors.a[1], vectors.b[1], vectors.c[1], vectors.e[1]) =
            (proof.a, proof.b, proof.c, proof.e);
    });
    cheater.assert_fails(&proof, &[Z]);
}

fn swap_proofs(v: &mut ProofVectors) {
    v.a.swap(1, 2);
    v.b.swap(1, 2);
    v.c.swap(1, 2);
    v.e.swap(1, 2);
}

/// Adversarial test 23: two proofs of one type are swapped, with or without their D. Guards: the
/// powers of r, S_i of each instance.
#[test]
fn a23_proofs_swapped() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_with(|_, v| {
        swap_proofs(v);
    });
    cheater.assert_fails(&proof, &[Z]);
    let proof = cheater.finish_with(|_, v| v.c.swap(1, 2));
    cheater.assert_fails(&proof, &[Z]);
    let shared = cheater.shared();
    let mut d = cheater.commitments();
    d.swap(1, 2);
    let committing = cheater.begin(&shared, Merlin::new(), &d);
    let mut v = cheater.proofs(&committing.memory());
    swap_proofs(&mut v);
    let proof = committing.finish(&v).unwrap();
    cheater.assert_fails(proof.as_bytes(), &[Z]);
}

/// Adversarial test 24: D + t [delta] without the correction of C: before the commitment it fails
/// in Z, after it in T and Z. Control: with the correction it is only another blinding, and before
/// the commitment it is accepted. Guards: D under cm_D.
#[test]
fn a24_d_shifted() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let elements = bench.keys.types[cheater.kind(2)].elements;
    let t = Fr::from(77u64);
    let mut d = cheater.commitments();
    d[2] = d[2].add(&elements.delta_1.mul(&t));
    let shared = cheater.shared();
    let run = |before: bool, correct: bool| {
        let honest = cheater.commitments();
        let committing = cheater.begin(&shared, Merlin::new(), if before { &d } else { &honest });
        let mut v = cheater.proofs(&committing.memory());
        if correct {
            v.c[2] = v.c[2].sub(&elements.eta_1.mul(&t));
        }
        committing.with_other_d(&d).unwrap().finish(&v).unwrap().as_bytes().to_vec()
    };
    cheater.assert_fails(&run(true, false), &[Z]);
    cheater.assert_fails(&run(false, false), &[T, Z]);
    // The statement holds, but the commitment differs: T guards the order of the rounds.
    cheater.assert_fails(&run(false, true), &[T]);
    assert_eq!(bench.verify(&cheater.public, &run(true, true)), Ok(()));
}

/// Adversarial test 25: D += t A, B += t eta after the challenge: the Mirage equation holds, the
/// commitment does not. Guards: T.
#[test]
fn a25_d_and_b_changed_together() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let t = Fr::from(31u64);
    let shared = cheater.shared();
    let mut d = cheater.commitments();
    let committing = cheater.begin(&shared, Merlin::new(), &d);
    let memory = committing.memory();
    let mut v = cheater.proofs(&memory);
    let eta = bench.keys.aggregation.elements().unwrap()[cheater.kind(1)][1];
    d[1] = d[1].add(&v.a[1].mul(&t));
    v.b[1] = v.b[1].add(&eta.mul(&t));
    // the single equation holds: e(A, B + t eta) = .. + e(D + t A, eta)
    let verifier = bench.keys.aggregation.mirage_verifier(&bench.keys.verifying).unwrap();
    let s = bench.keys.aggregation.s(&memory).unwrap()[1];
    let proof = crate::mirage::MirageProof { a: v.a[1], b: v.b[1], c: v.c[1], e: v.e[1] };
    assert!(verifier.verify(&MirageInstance { kind: cheater.kind(1), s, d: d[1], proof }));
    let proof = committing.with_other_d(&d).unwrap().finish(&v).unwrap();
    cheater.assert_fails(proof.as_bytes(), &[T]);
}

/// Adversarial test 26: e_i + 5, e_j - 5. Guards: e_i in each subcircuit's equation, not only their
/// sum.
#[test]
fn a26_shares_shifted() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_with(|_, v| {
        v.e[0] += Fr::from(5u64);
        v.e[1] -= Fr::from(5u64);
    });
    cheater.assert_fails(&proof, &[Z]);
}

/// Adversarial test 27: V_e with a component in Theta or beta: no longer `sum e_i v_i`. Guards:
/// cm_E = e(K, V_e) inside T.
#[test]
fn a27_ledger_element_with_foreign_components() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let theta = bench.keys.aggregation.elements().unwrap()[0][2];
    let beta = bench.keys.types[0].elements.beta_2;
    for foreign in [theta, beta] {
        let proof = cheater.finish_tampered(Box::new(move |field, code| match field {
            ProofField::Ve => G2Point::from_compressed(&code).unwrap().add(&foreign).encode(),
            _ => code,
        }));
        cheater.assert_fails(&proof, &[T]);
        // Inserted afterwards, it moves the transcript as well.
        let honest = cheater.finish();
        let at = super::bench::field_of(&bench, &honest, ProofField::Ve);
        let other = G2Point::from_compressed(at).unwrap().add(&foreign).encode();
        assert!(
            bench
                .verify(&cheater.public, &with_field(&bench, &honest, ProofField::Ve, &other))
                .is_err()
        );
    }
}

/// Adversarial test 28: two types whose domains have the same size, with swapped e. Guards: E = e K
/// against the type's own row.
#[test]
fn a28_swapped_shares_of_equal_domains() {
    let bench = Bench::new(Squares::new(&[0, 2, 2, 0, 1]), true);
    let sizes: Vec<u64> = [0, 2].iter().map(|t| bench.keys.types[*t].shape.domain).collect();
    assert_eq!(sizes[0], sizes[1]);
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_with(|_, v| v.e.swap(0, 1));
    cheater.assert_fails(&proof, &[Z]);
}

/// Adversarial test 30: a or C at infinity; the zero proof. Guards: alpha beta in Z.
#[test]
fn a30_infinity() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_with(|_, v| v.a[1] = G1Point::IDENTITY);
    cheater.assert_fails(&proof, &[Z]);
    let proof = cheater.finish_with(|_, v| v.c[1] = G1Point::IDENTITY);
    cheater.assert_fails(&proof, &[Z]);
    let proof = cheater.finish_with(|_, v| {
        v.a.fill(G1Point::IDENTITY);
        v.b.fill(G2Point::IDENTITY);
        v.c.fill(G1Point::IDENTITY);
        v.e.fill(Fr::zero());
    });
    cheater.assert_fails(&proof, &[Z]);
}

/// Adversarial test 30a: a type with s = 0: its witness is checked like any other, and its e must
/// be 0.
#[test]
fn a30a_no_shared_wires() {
    let bench = Bench::new(Squares { lonely: true, ..Squares::new(&[0, 1]) }, false);
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let last = cheater.values.len() - 1;
    assert!(cheater.values[last].is_empty());
    assert_eq!(bench.verify(&cheater.public, &cheater.finish()), Ok(()));
    cheater.private[last] = bench.private(&Root(Fr::from(8u64))); // no square root of 49
    cheater.assert_fails(&cheater.finish(), &[Z]);
    cheater.private[last] = bench.private(&Root(Fr::from(7u64)));
    let proof = cheater.finish_with(|_, v| v.e[last] = Fr::ONE);
    cheater.assert_fails(&proof, &[Z]);
    // e = 1 in the witness breaks row 0
    let proof = cheater.finish_with(|memory, v| {
        let mut z = cheater.witness(last, memory);
        z[2] = Fr::ONE;
        let proof = cheater.prove_assignment(last, &z).proof;
        (v.a[last], v.b[last], v.c[last], v.e[last]) = (proof.a, proof.b, proof.c, proof.e);
    });
    cheater.assert_fails(&proof, &[Z]);
}

/// Adversarial test 49, the part that needs no ranks: a worker that returns a wrong C, a swapped
/// index or a stale D is named.
#[test]
fn a49_bad_answers_are_named() {
    let bench = squares();
    let input = Fr::from(INPUT);
    let randomness = crate::Randomness::seeded_not_zero_knowledge(5);
    let run = |spoil: &dyn Fn(&mut Vec<Commitment>, &mut Vec<ProofResponse>)| {
        let circuit = bench.with_input(&input);
        let coordinator = Coordinator::new(&circuit, &bench.keys, &bench.engine, 2).unwrap();
        let worker = Worker::new(&circuit, &bench.keys.types, Masking::Masked, WitnessCheck::Check);
        let job = |i| coordinator.prove_job(i, &randomness).unwrap();
        let order = coordinator.order();
        let commit = |i| Ok::<_, WorkerError>(worker.commit(job(i))?.1);
        let mut commitments = bench.engine.each(&order, 2, commit).unwrap();
        let round =
            coordinator.committed(commitments.clone(), &bench.engine).unwrap().prove_round();
        let mut responses =
            bench.engine.each(&order, 2, |i| worker.resume(job(i)).prove(&round)).unwrap();
        commitments.sort_by_key(|c| c.instance);
        responses.sort_by_key(|r| r.instance);
        spoil(&mut commitments, &mut responses);
        let committed = coordinator.committed(commitments, &bench.engine)?;
        committed.proven(responses)?.finish()
    };
    assert!(run(&|_, _| {}).is_ok());
    let named = |result: Result<_, CoordinatorError>| match result {
        Err(CoordinatorError::BadSubcircuits { instances }) => instances,
        other => panic!("expected the bad subcircuits, found {other:?}"),
    };
    assert_eq!(named(run(&|_, r| r[3].proof.c = r[3].proof.c.add(&G1Point::generator()))), vec![3]);
    let swapped = run(&|_, r| {
        let (a, b) = (r[1].proof, r[2].proof);
        (r[1].proof, r[2].proof) = (b, a);
    });
    assert_eq!(named(swapped), vec![1, 2]);
    // A stale D moves all challenges, so every proof is under other challenges and therefore bad.
    let stale = run(&|c, _| c[4].d = c[4].d.add(&G1Point::generator()));
    assert_eq!(named(stale), vec![0, 1, 2, 3, 4]);
    // Not exactly one answer per instance.
    for (result, why) in [
        (run(&|c, _| c[4].instance = 3), "expected the answer of instance 4"),
        (run(&|c, _| c.truncate(4)), "4 answers for 5"),
        (run(&|_, r| *r = r.split_off(1)), "expected the answer of instance 0"),
        (run(&|_, r| r[0].instance = 9), "expected the answer of instance 0"),
    ] {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, CoordinatorError::Answers { .. }) && error.to_string().contains(why),
            "{error}"
        );
    }
    // Right proofs of inconsistent wires: no subcircuit is to blame, and only the aggregate is
    // refused.
    let mut cheater = Cheater::new(&bench, &input);
    cheater.values[2][2] += Fr::ONE;
    let commitments: Vec<_> = cheater
        .commitments()
        .into_iter()
        .take(5)
        .enumerate()
        .map(|(instance, d)| Commitment { instance, d, mark: [0; 32] })
        .collect();
    let memory = MEMORY();
    let responses: Vec<_> =
        (0..5).map(|i| cheater.prove_assignment(i, &cheater.witness(i, &memory))).collect();
    assert!(
        bad_subcircuits(&bench.keys, &commitments, &responses, &memory, b"").unwrap().is_empty()
    );
}
