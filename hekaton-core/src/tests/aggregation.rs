//! Adversarial tests 31 to 43, 48 and 48a: the aggregation. Where a single equation is meant, the
//! challenges are frozen at those of the honest proof, whatever is absorbed. In normal mode
//! everything would fail because the transcript moves.

use super::bench::{Bench, Cheater, Squares, failing, field_of, record, squares, with_field};
use crate::encoding::Encode;
use crate::verifier::proof::{Field as ProofField, ProofError, fields};
use crate::verifier::transcript::{Merlin, Sponge};
use crate::verifier::verify::Equation::{self, KeyV, KeyW, T, U, Z};
use crate::verifier::verify::{VerifyError, examine};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, fr_to_bytes, pairing};
use hekaton_circuit::MemoryChallenges;

const INPUT: u64 = 5;

/// The proof with a generator added to a field.
fn plus_generator(bench: &Bench<Squares>, proof: &[u8], field: ProofField) -> Vec<u8> {
    let code = field_of(bench, proof, field);
    let (g, h) = (G1Point::generator(), G2Point::generator());
    let changed = match code.len() {
        G1Point::COMPRESSED => G1Point::from_compressed(code).unwrap().add(&g).encode(),
        G2Point::COMPRESSED => G2Point::from_compressed(code).unwrap().add(&h).encode(),
        _ => Gt::decompress(code.try_into().unwrap()).unwrap().add(&pairing(&g, &h)).encode(),
    };
    with_field(bench, proof, field, &changed)
}

/// Adversarial test 31: each field of the proof plus a generator, one at a time: with frozen
/// challenges it fails in exactly the equations that the field is in, and each equation is the only
/// one that refuses some forged field; in normal mode it is refused as well.
#[test]
fn a31_each_field_changed() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish();
    let log = record(&bench, &cheater.public, &proof);
    let vk = &bench.keys.verifying;
    assert!(failing(log.frozen(), vk, &cheater.public, &proof).is_empty());
    let mut alone = std::collections::HashSet::new();
    for field in fields(vk.rounds()) {
        let expected: &[Equation] = match field {
            ProofField::CmA | ProofField::CmC | ProofField::CmD | ProofField::Ve => &[T],
            ProofField::CmB => &[U],
            ProofField::XPlus(_) | ProofField::XMinus(_) => &[Z],
            ProofField::Round(_, 0 | 1) => &[T],
            ProofField::Round(_, 2 | 3) => &[U],
            ProofField::Round(..) => &[Z],
            ProofField::Lf => &[T, Z],
            ProofField::Rf => &[U, Z],
            ProofField::Vf => &[T, KeyV],
            ProofField::Wf | ProofField::Wr => &[U, KeyW],
            ProofField::PiV => &[KeyV],
            ProofField::PiW => &[KeyW],
        };
        let forged = plus_generator(&bench, &proof, field);
        assert_eq!(failing(log.frozen(), vk, &cheater.public, &forged), expected, "{field:?}");
        assert!(
            matches!(bench.verify(&cheater.public, &forged), Err(VerifyError::Equations { .. })),
            "{field:?}"
        );
        if let [one] = expected {
            alone.insert(*one);
        }
    }
    assert_eq!(alone.len(), 5, "each equation is the only one to refuse some field");
}

/// Adversarial test 33: a false statement whose sum is repaired by an e at a pad. Guards: the
/// truncation of Theta' to n subcircuits. Control: with the truncation removed on both sides, the
/// false proof is accepted.
#[test]
fn a33_share_planted_at_a_pad() {
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    cheater.values[4][2] += Fr::ONE; // a reader lies
    let plant = |ledger: usize| {
        let mut shared = cheater.shared();
        shared.other_ledger = Some(ledger);
        let committing = cheater.begin(&shared, Merlin::new(), &cheater.commitments());
        let memory = committing.memory();
        let mut vectors = cheater.proofs(&memory);
        let sum: Fr = vectors.e.iter().sum();
        let public =
            crate::verifier::verify::public_sum(&bench.keys.verifying, &cheater.public, &memory)
                .unwrap();
        assert!(!(sum + public).is_zero());
        vectors.e[6] = -(sum + public);
        committing.finish(&vectors).unwrap().as_bytes().to_vec()
    };
    cheater.assert_fails(&plant(5), &[Z]);
    let vk = &bench.keys.verifying;
    let forged = plant(8);
    let without_truncation = examine(Merlin::new(), vk, &cheater.public, &forged, 8).unwrap();
    assert!(without_truncation.merged, "the control must accept");
    // The real verifier refuses the same bytes, because the ledger key W_r has terms for pads.
    cheater.assert_fails(&forged, &[KeyW]);
}

/// Adversarial test 34: a and B at a pad are not zero. Guards: Z* has no term for pads.
#[test]
fn a34_proof_at_a_pad() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_with(|_, v| {
        (v.a[6], v.b[6]) = (v.a[0], v.b[0]);
    });
    cheater.assert_fails(&proof, &[Z]);
    let proof = cheater.finish_with(|_, v| v.a[7] = G1Point::generator());
    // A alone is paired only with Theta'_7 = 0 and gamma_7 = 0, so it changes nothing that is
    // claimed.
    assert_eq!(bench.verify(&cheater.public, &proof), Ok(()));
}

/// Adversarial test 35: cross terms chosen after s1, s2, s3 repair any false statement. Guards: X_j
/// is absorbed before s_j. Control: with challenges that do not depend on X_j, the forgery passes.
#[test]
fn a35_cross_terms_after_their_challenge() {
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    cheater.values[4][2] += Fr::ONE;
    let proof = cheater.finish();
    let vk = &bench.keys.verifying;
    let log = record(&bench, &cheater.public, &proof);
    let verdict = examine(log.frozen(), vk, &cheater.public, &proof, vk.instances).unwrap();
    let defect = verdict.defects[2].1;
    assert!(!defect.is_identity() && verdict.defects[2].0 == Z);
    for j in 0..3 {
        // Z has -s_j X_j+: adding -defect / s_j there repairs it
        let repair = defect.mul(&-verdict.s[j].inverse().unwrap());
        let code = field_of(&bench, &proof, ProofField::XPlus(j));
        let forged = Gt::decompress(code.try_into().unwrap()).unwrap().add(&repair).encode();
        let forged = with_field(&bench, &proof, ProofField::XPlus(j), &forged);
        assert!(
            failing(log.frozen(), vk, &cheater.public, &forged).is_empty(),
            "the control must accept"
        );
        assert!(bench.verify(&cheater.public, &forged).is_err());
    }
}

/// Adversarial test 36: cm_C or V_e changed after r (and all later challenges) to repair T. Guards:
/// both are absorbed before r. Control: with frozen challenges, the forgery passes.
#[test]
fn a36_commitments_after_r() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    // A proof whose C are not those committed to: it fails in T with a known defect.
    let proof = cheater.finish_tampered(Box::new(|field, code| match field {
        ProofField::CmC => {
            let g = pairing(&G1Point::generator(), &G2Point::generator());
            Gt::decompress(code.as_slice().try_into().unwrap()).unwrap().add(&g).encode()
        }
        _ => code,
    }));
    cheater.assert_fails(&proof, &[T]);
    let vk = &bench.keys.verifying;
    let log = record(&bench, &cheater.public, &proof);
    let verdict = examine(log.frozen(), vk, &cheater.public, &proof, vk.instances).unwrap();
    let defect = verdict.defects[0].1;
    // T has -s3 s1 cm_C on its right-hand side
    let repair = defect.mul(&-(verdict.s[0] * verdict.s[2]).inverse().unwrap());
    let code = field_of(&bench, &proof, ProofField::CmC);
    let forged = Gt::decompress(code.try_into().unwrap()).unwrap().add(&repair).encode();
    let forged = with_field(&bench, &proof, ProofField::CmC, &forged);
    assert!(
        failing(log.frozen(), vk, &cheater.public, &forged).is_empty(),
        "the control must accept"
    );
    assert!(bench.verify(&cheater.public, &forged).is_err());

    // V_e: T has the pairing e(K, V_e), so a defect in the direction of K is repaired there.
    let h = G2Point::generator();
    let proof = cheater.finish_tampered(Box::new(move |field, code| match field {
        ProofField::Ve => G2Point::from_compressed(&code).unwrap().add(&h).encode(),
        _ => code,
    }));
    cheater.assert_fails(&proof, &[T]);
    let log = record(&bench, &cheater.public, &proof);
    let code = field_of(&bench, &proof, ProofField::Ve);
    let back = G2Point::from_compressed(code).unwrap().sub(&h).encode();
    let forged = with_field(&bench, &proof, ProofField::Ve, &back);
    assert!(
        failing(log.frozen(), vk, &cheater.public, &forged).is_empty(),
        "the control must accept"
    );
    assert!(bench.verify(&cheater.public, &forged).is_err());
}

/// Adversarial test 37: a verifying key with one changed commitment or number: its digest differs,
/// so the proof is for another key; with the digest in the proof's header adapted, the transcript
/// moves.
#[test]
fn a37_changed_verifying_key() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish();
    let gt = pairing(&G1Point::generator(), &G2Point::generator());
    type Change<'a> = &'a dyn Fn(&mut crate::VerifyingKey);
    let changes: [Change<'_>; 14] = [
        &|vk| vk.cm_st = vk.cm_st.add(&gt),
        &|vk| vk.cm_sg = vk.cm_sg.add(&gt),
        &|vk| vk.cm_sb = vk.cm_sb.add(&gt),
        &|vk| vk.cm_gamma = vk.cm_gamma.add(&gt),
        &|vk| vk.cm_delta = vk.cm_delta.add(&gt),
        &|vk| vk.cm_eta = vk.cm_eta.add(&gt),
        &|vk| vk.cm_theta = vk.cm_theta.add(&gt),
        &|vk| vk.alpha_beta = vk.alpha_beta.add(&gt),
        &|vk| vk.k = vk.k.add(&G1Point::generator()),
        &|vk| vk.psi_1 = vk.psi_1.add(&G1Point::generator()),
        &|vk| vk.phi_2 = vk.phi_2.add(&G2Point::generator()),
        &|vk| vk.public[0].multiplicity += 1,
        &|vk| vk.type_map[0] ^= 1,
        &|vk| vk.zero_knowledge = false,
    ];
    for (i, change) in changes.iter().enumerate() {
        let mut vk = bench.keys.verifying.clone();
        change(&mut vk);
        let verdict = crate::verify_with_test_keys(&vk, &cheater.public, &proof);
        assert!(
            matches!(verdict, Err(VerifyError::Proof(ProofError::ForeignKey { .. }))),
            "change {i}"
        );
        let mut adapted = proof.clone();
        adapted[10..42].copy_from_slice(&vk.digest());
        assert!(
            matches!(
                crate::verify_with_test_keys(&vk, &cheater.public, &adapted),
                Err(VerifyError::Equations { .. })
            ),
            "change {i}"
        );
    }
}

/// Adversarial test 38: a delta chosen by the prover, with C computed for it: Z and T balance.
/// Guards: cm_delta of the key, in U.
#[test]
fn a38_own_delta() {
    let bench = squares();
    let honest = Cheater::new(&bench, &Fr::from(INPUT));
    // The prover's aggregation key has 2 delta for type 0.
    let mut keys = Bench::new(Squares::new(&[0, 1, 1, 0, 1]), true);
    keys.keys.aggregation.replace_delta_for_test(0, |delta| delta.add(delta));
    let cheater = Cheater::new(&keys, &Fr::from(INPUT));
    let half = Fr::from(2u64).inverse().unwrap();
    let proof = cheater.finish_with(|_, v| {
        for i in [0usize, 3] {
            v.c[i] = v.c[i].mul(&half);
        }
    });
    honest.assert_fails(&proof, &[U]);
}

/// Adversarial test 39: v_f, w_f replaced consistently with L_f and R_f: T, U and Z hold. Guards:
/// both KZG openings.
#[test]
fn a39_keys_replaced_consistently() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish();
    let log = record(&bench, &cheater.public, &proof);
    let c = Fr::from(7u64);
    let c_inverse = c.inverse().unwrap();
    let g1 = |f| G1Point::from_compressed(field_of(&bench, &proof, f)).unwrap();
    let g2 = |f| G2Point::from_compressed(field_of(&bench, &proof, f)).unwrap();
    // L_f / c with v_f c, and R_f c with w_f / c. W_r is paired with H inside U: that part stays
    // unchanged.
    let mut forged =
        with_field(&bench, &proof, ProofField::Lf, &g1(ProofField::Lf).mul(&c_inverse).encode());
    forged = with_field(&bench, &forged, ProofField::Vf, &g2(ProofField::Vf).mul(&c).encode());
    forged = with_field(&bench, &forged, ProofField::Rf, &g2(ProofField::Rf).mul(&c).encode());
    forged =
        with_field(&bench, &forged, ProofField::Wf, &g1(ProofField::Wf).mul(&c_inverse).encode());
    assert_eq!(
        failing(log.frozen(), &bench.keys.verifying, &cheater.public, &forged),
        [KeyV, KeyW]
    );
    assert!(bench.verify(&cheater.public, &forged).is_err());
}

/// Adversarial test 40: W_r scaled, or computed for n + 1 or n - 1 subcircuits. Guards: f_W in the
/// opening of w.
#[test]
fn a40_other_ledger_key() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_tampered(Box::new(|field, code| match field {
        ProofField::Wr => G1Point::from_compressed(&code).unwrap().mul(&Fr::from(2u64)).encode(),
        _ => code,
    }));
    cheater.assert_fails(&proof, &[U, KeyW]);
    for ledger in [6usize, 4] {
        let mut shared = cheater.shared();
        shared.other_ledger = Some(ledger);
        let committing = cheater.begin(&shared, Merlin::new(), &cheater.commitments());
        let vectors = cheater.proofs(&committing.memory());
        let proof = committing.finish(&vectors).unwrap();
        // n + 1: the pad has e = 0, so the statement balances, and only the key is wrong. n - 1: a
        // term of the sum is left out as well.
        let expected: &[Equation] = if ledger == 6 { &[KeyW] } else { &[Z, KeyW] };
        cheater.assert_fails(proof.as_bytes(), expected);
    }
}

/// Adversarial test 41: pi_v for another point than z. Guards: the point in the opening of v.
#[test]
fn a41_opening_at_another_point() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish();
    // The same challenges except z, in which prover and verifier differ.
    struct OtherZ<S>(S);
    impl<S: Sponge> Sponge for OtherZ<S> {
        fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
            self.0.absorb(label, bytes);
        }
        fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
            self.0.squeeze(label, out);
            if label == "z" {
                out[0] ^= 1;
            }
        }
    }
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, OtherZ(Merlin::new()), &cheater.commitments());
    let vectors = cheater.proofs(&committing.memory());
    let other = committing.finish(&vectors).unwrap();
    let (at, len) = super::bench::place(&bench, ProofField::PiV);
    assert_ne!(other.as_bytes()[at..at + len], proof[at..at + len]);
    // Both openings are for the other point: first one of them, then both.
    let forged = with_field(&bench, &proof, ProofField::PiV, &other.as_bytes()[at..at + len]);
    cheater.assert_fails(&forged, &[KeyV]);
    cheater.assert_fails(other.as_bytes(), &[KeyV, KeyW]);
}

/// Adversarial test 42: subcircuits are proven under different challenges, and their average is
/// claimed. Guards: S_i for each instance.
#[test]
fn a42_different_challenges_averaged() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish_with(|memory, vectors| {
        let shift =
            |by: i64| MemoryChallenges::new(memory.g + Fr::from(by), memory.b - Fr::from(by));
        let (up, down) = (cheater.proofs(&shift(1)), cheater.proofs(&shift(-1)));
        for (i, other) in [(1usize, &up), (2, &down)] {
            (vectors.a[i], vectors.b[i], vectors.c[i], vectors.e[i]) =
                (other.a[i], other.b[i], other.c[i], other.e[i]);
        }
    });
    cheater.assert_fails(&proof, &[Z]);
}

/// Adversarial test 43: a proof replayed under another key, or for other public values. Guards: the
/// transcript absorbs both.
#[test]
fn a43_replay() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let proof = cheater.finish();
    assert_eq!(bench.verify(&cheater.public, &proof), Ok(()));
    let other = Bench::new(Squares::new(&[0, 1, 1, 1, 0]), true);
    let verdict = other.verify(&cheater.public, &proof);
    assert!(matches!(verdict, Err(VerifyError::Proof(ProofError::ForeignKey { .. }))));
    let mut adapted = proof.clone();
    adapted[10..42].copy_from_slice(&other.keys.verifying.digest());
    assert!(matches!(other.verify(&cheater.public, &adapted), Err(VerifyError::Equations { .. })));
    for i in 0..2 {
        let mut public = cheater.public.clone();
        public[i] += Fr::ONE;
        assert!(matches!(bench.verify(&public, &proof), Err(VerifyError::Equations { .. })));
    }
    // The proof is not one for another input either.
    let another = Cheater::new(&bench, &Fr::from(INPUT + 1));
    assert!(bench.verify(&another.public, &proof).is_err());
}

/// Adversarial test 43: a public value chosen after g and b repairs any false statement. Guards:
/// public values are absorbed first. Control: with challenges that do not depend on them, the
/// forgery passes.
#[test]
fn a43_public_value_after_the_challenges() {
    struct WithoutPublicValues(Merlin);
    impl Sponge for WithoutPublicValues {
        fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
            if label != "public value" {
                self.0.absorb(label, bytes);
            }
        }
        fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
            self.0.squeeze(label, out);
        }
    }
    let bench = squares();
    let mut cheater = Cheater::new(&bench, &Fr::from(INPUT));
    cheater.values[4][2] += Fr::ONE; // a reader lies
    let shared = cheater.shared();
    let committing =
        cheater.begin(&shared, WithoutPublicValues(Merlin::new()), &cheater.commitments());
    let memory = committing.memory();
    let vectors = cheater.proofs(&memory);
    let proof = committing.finish(&vectors).unwrap();
    // The output x solves sum e_i + m / (g + x_in + b a_in) - 1 / (g + x + b a_out) = 0
    let sum: Fr = vectors.e.iter().sum();
    let [input, output] = [0, 1]
        .map(|i| (&bench.wiring.public[i], memory.b * Fr::from(bench.wiring.public[i].address)));
    let read = (memory.g + cheater.public[0] + input.1).inverse().unwrap()
        * Fr::from(input.0.multiplicity);
    let forged = vec![cheater.public[0], (sum + read).inverse().unwrap() - memory.g - output.1];
    let vk = &bench.keys.verifying;
    let control =
        examine(WithoutPublicValues(Merlin::new()), vk, &forged, proof.as_bytes(), vk.instances)
            .unwrap();
    assert!(control.merged, "the control must accept");
    assert!(matches!(bench.verify(&forged, proof.as_bytes()), Err(VerifyError::Equations { .. })));
}

/// Adversarial test 48: why T, U and Z stay apart: merged commitments can be opened to something
/// else. Unit tests of the keys.
#[test]
fn a48_merged_commitments_are_not_binding() {
    let bench = squares();
    let key = &bench.keys.aggregation;
    let even = |i: usize| (key.phi().unwrap()[2 * i], key.psi().unwrap()[2 * i]);
    // T + U: A_3 = w_5, B_5 = -v_3 commits to the same element as nothing at all
    let ((_, v3), (w5, _)) = (even(3), even(5));
    let (t, u) = (pairing(&w5, &v3), pairing(&w5, &v3.neg()));
    assert!(t.add(&u).is_identity(), "merged: a collision with zero");
    assert!(!t.is_identity() && !u.is_identity(), "apart: none");
    // T + chi Z with the key v + chi B: for B = (v_1', c v_0'), a false Z can be opened for every
    // chi with scalars alone.
    let (v0, v1) = (even(0).1, even(1).1);
    let c = Fr::from(9u64);
    let b = [v1, v0.mul(&c)];
    let g = G1Point::generator();
    let claimed = pairing(&g, &v0); // the true Z for A = 0 is the neutral element
    for chi in [2u64, 3, 77].map(Fr::from) {
        let d0 = chi * (Fr::ONE - chi * chi * c).inverse().unwrap();
        let d1 = -chi * d0;
        let folded = [v0.add(&b[0].mul(&chi)), v1.add(&b[1].mul(&chi))];
        let opened = pairing(&g.mul(&d0), &folded[0]).add(&pairing(&g.mul(&d1), &folded[1]));
        assert_eq!(opened, claimed.mul(&chi), "merged: a wrong Z is opened for every chi");
        // Apart: T of that opening is not what was committed to (T = 0).
        let t = pairing(&g.mul(&d0), &v0).add(&pairing(&g.mul(&d1), &v1));
        assert!(!t.is_identity());
    }
    // Only even powers are keys: [psi]_1 is public, and it is the only power of psi in G1.
    let vk = &bench.keys.verifying;
    assert_eq!(pairing(&vk.psi_1, &G2Point::generator()), pairing(&g, &key.psi().unwrap()[1]));
    assert_eq!(pairing(&g, &vk.phi_2), pairing(&key.phi().unwrap()[1], &G2Point::generator()));
}

/// Adversarial test 48a: z^2 = r, the removable pole (zero denominator) of f_W, is not a special
/// case; and with n = 1 the openings are the identity and are accepted.
#[test]
fn a48a_corner_cases_of_the_openings() {
    struct SquareRoot(Merlin);
    impl Sponge for SquareRoot {
        fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
            self.0.absorb(label, bytes);
        }
        fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
            self.0.squeeze(label, out);
            let root = Fr::from(1_000_003u64);
            let scripted = match label {
                "r" => root.square(),
                "z" => root,
                _ => return,
            };
            out.fill(0);
            out[..32].copy_from_slice(&fr_to_bytes(&scripted));
        }
    }
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, SquareRoot(Merlin::new()), &cheater.commitments());
    let vectors = cheater.proofs(&committing.memory());
    let proof = committing.finish(&vectors).unwrap();
    let failed = failing(
        SquareRoot(Merlin::new()),
        &bench.keys.verifying,
        &cheater.public,
        proof.as_bytes(),
    );
    assert!(failed.is_empty());

    let one = Bench::new(Squares::new(&[0]), true);
    let cheater = Cheater::new(&one, &Fr::from(INPUT));
    let proof = cheater.finish();
    assert_eq!(one.verify(&cheater.public, &proof), Ok(()));
    let pi_v = G2Point::from_compressed(field_of(&one, &proof, ProofField::PiV)).unwrap();
    let pi_w = G1Point::from_compressed(field_of(&one, &proof, ProofField::PiW)).unwrap();
    assert!(pi_v.is_identity() && pi_w.is_identity());
}

/// Challenges that the protocol excludes are drawn again, with the same result on both sides
/// (spec: verifier#redraw).
#[test]
fn excluded_challenges_are_redrawn() {
    /// Returns forbidden values first.
    struct Forbidden(Merlin, std::collections::HashMap<&'static str, Vec<Fr>>);
    impl Sponge for Forbidden {
        fn absorb(&mut self, label: &'static str, bytes: &[u8]) {
            self.0.absorb(label, bytes);
        }
        fn squeeze(&mut self, label: &'static str, out: &mut [u8]) {
            self.0.squeeze(label, out);
            if let Some(x) = self.1.get_mut(label).and_then(Vec::pop) {
                out.fill(0);
                let len = out.len().min(32);
                out[..len].copy_from_slice(&fr_to_bytes(&x)[..len]);
            }
        }
    }
    let sponge = || {
        let zeros = vec![Fr::zero(); 2];
        // r in {0, 1}, and r^n = 1 for n = 4
        let fourth_root = <Fr as ark_ff::FftField>::get_root_of_unity(4).unwrap();
        let r = vec![fourth_root, Fr::ONE, Fr::zero()];
        Forbidden(
            Merlin::new(),
            [("r", r), ("s", zeros.clone()), ("x", zeros)].into_iter().collect(),
        )
    };
    let bench = Bench::new(Squares::new(&[0, 1, 1, 0]), true);
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let shared = cheater.shared();
    let committing = cheater.begin(&shared, sponge(), &cheater.commitments());
    let vectors = cheater.proofs(&committing.memory());
    let proof = committing.finish(&vectors).unwrap();
    let verdict =
        examine(sponge(), &bench.keys.verifying, &cheater.public, proof.as_bytes(), 4).unwrap();
    assert!(verdict.merged);
    assert!(verdict.s.iter().all(|s| !s.is_zero()));
}
