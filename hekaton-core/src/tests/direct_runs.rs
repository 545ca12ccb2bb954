//! Runs with direct proofs, adversarial tests D14 to D16, refusals, and test vectors
//! (spec: direct#run, direct#zero-knowledge, direct#not-unique).

use super::bench::{Bench, Cheater, Squares, outside_the_subgroup, squares};
use super::direct::{Forger, direct_key};
use crate::protocol::{DirectRun, ProveError, ProveOptions, Secrets, prove};
use crate::randomness::{Purpose, Randomness};
use crate::verifier::direct::encoding::keccak;
use crate::verifier::direct::{
    Context, DirectKey, DirectKeyError, DirectProof, transcript, verify_direct,
    verify_direct_with_test_keys,
};
use crate::verifier::proof::ProofKind;
use crate::verifier::verify::{VerifyError, public_sum, verify_with_test_keys};
use crate::verifier::{Equation, ProofError};
use ark_ff::{Field, PrimeField, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::prover::Prefix;
use hekaton_circuit::{Circuit, MemoryChallenges};
use hekaton_testing::{Shop, Shopping};

const INPUT: u64 = 5;
const CONTEXT: Context = [7; 32];

/// The bytes of a direct proof, and its public values.
fn proven<C: Circuit>(
    bench: &Bench<C>,
    input: &C::Input,
    key: &DirectKey,
    context: Context,
    seed: u64,
) -> (Vec<u8>, Vec<Fr>) {
    let options = ProveOptions::new()
        .randomness(Randomness::seeded_not_zero_knowledge(seed))
        .direct(DirectRun::new(key, context));
    let run = prove(&bench.circuit, input, &bench.keys, &bench.engine, &options).unwrap();
    (run.proof.as_bytes().to_vec(), run.public_values)
}

fn of_squares(bench: &Bench<Squares>, key: &DirectKey, context: Context) -> (Vec<u8>, Vec<Fr>) {
    proven(bench, &Fr::from(INPUT), key, context, 1)
}

/// A direct run ends with a proof that verifies, for keys with and without masks and with buses, and
/// whose bytes do not depend on the number of threads.
#[test]
fn runs_make_proofs() {
    for (kinds, masks) in [(&[0][..], true), (&[0, 1], false), (&[0, 1, 1, 0, 1], true)] {
        let bench = Bench::new(Squares::new(kinds), masks);
        let key = direct_key(&bench);
        let (proof, public) = of_squares(&bench, &key, CONTEXT);
        assert_eq!(proof.len(), DirectProof::encoded_len(kinds.len()));
        assert_eq!(verify_direct_with_test_keys(&key, &public, &CONTEXT, &proof), Ok(()));
        // Test keys are refused by the function for everybody.
        assert_eq!(verify_direct(&key, &public, &CONTEXT, &proof), Err(VerifyError::TestKeys));
        let engine = crate::LocalEngine::new(std::num::NonZeroUsize::new(1)).unwrap();
        let again = Bench { engine, ..bench };
        assert_eq!(of_squares(&again, &key, CONTEXT).0, proof);
        // A file holds the key.
        assert_eq!(DirectKey::from_bytes(&key.to_bytes()), Ok(key));
    }
    let bench = Bench::new(Shop::new(2), true);
    let key = direct_key(&bench);
    assert!(key.has_buses());
    let shopping = Shopping::new(2);
    let (proof, public) = proven(&bench, &shopping, &key, CONTEXT, 1);
    assert_eq!(verify_direct_with_test_keys(&key, &public, &CONTEXT, &proof), Ok(()));
    assert_eq!(DirectKey::from_bytes(&key.to_bytes()), Ok(key));
}

/// Another key, another context, other values, or a proof of the other kind.
#[test]
fn other_statements_are_refused() {
    let bench = squares();
    let key = direct_key(&bench);
    let (proof, public) = of_squares(&bench, &key, CONTEXT);
    let refused = |key: &DirectKey, public: &[Fr], context: &Context, proof: &[u8]| {
        verify_direct_with_test_keys(key, public, context, proof).unwrap_err()
    };
    let both = VerifyError::Equations { failing: vec![Equation::Ledger, Equation::Pairings] };
    assert_eq!(refused(&key, &public, &[8; 32], &proof), both);
    assert_eq!(refused(&key, &[public[0], public[0]], &CONTEXT, &proof), both);
    let count = VerifyError::PublicValues { expected: 2, found: 1 };
    assert_eq!(refused(&key, &public[..1], &CONTEXT, &proof), count);
    for bytes in [&proof[..proof.len() - 1], &[&proof[..], &[0]].concat(), &proof[..42]] {
        let length = ProofError::Length { expected: proof.len(), found: bytes.len() };
        assert_eq!(refused(&key, &public, &CONTEXT, bytes), VerifyError::Proof(length));
    }
    // The same circuit without masks has other keys.
    let plain = Bench::new(Squares::new(&[0, 1, 1, 0, 1]), false);
    let other = direct_key(&plain);
    let error = refused(&other, &public, &CONTEXT, &proof);
    assert!(matches!(error, VerifyError::Proof(ProofError::ForeignKey { .. })), "{error}");
    let options = ProveOptions::new().direct(DirectRun::new(&other, CONTEXT));
    let run = prove(&bench.circuit, &Fr::from(INPUT), &bench.keys, &bench.engine, &options);
    assert!(matches!(run, Err(ProveError::ForeignDirectKey)));
    // Kinds by name, in both directions.
    let aggregated = Cheater::new(&bench, &Fr::from(INPUT)).finish();
    let kind = |found| VerifyError::Proof(ProofError::OtherKind { found });
    assert_eq!(refused(&key, &public, &CONTEXT, &aggregated), kind(ProofKind::Aggregated));
    let verdict = verify_with_test_keys(&bench.keys.verifying, &public, &proof);
    assert_eq!(verdict, Err(kind(ProofKind::Direct)));
    assert_eq!(ProofKind::of(&proof), Ok(ProofKind::Direct));
    assert_eq!(ProofKind::of(&aggregated), Ok(ProofKind::Aggregated));
    assert_eq!(ProofKind::of(&proof[..7]), Err(ProofError::Magic));
    let mut version = proof.clone();
    version[8] = 9;
    let error = refused(&key, &public, &CONTEXT, &version);
    assert_eq!(error, VerifyError::Proof(ProofError::Version { found: 9, expected: 1 }));
}

/// 1,000 proofs with a changed bit, all over the file, and points outside of their groups in each place.
#[test]
fn changed_proofs_are_refused() {
    let bench = squares();
    let key = direct_key(&bench);
    let (proof, public) = of_squares(&bench, &key, CONTEXT);
    for i in 0..1000usize {
        let mut bytes = proof.clone();
        let at = i * 7919 % bytes.len();
        bytes[at] ^= 1 << (i % 8);
        let verdict = verify_direct_with_test_keys(&key, &public, &CONTEXT, &bytes);
        assert!(verdict.is_err(), "byte {at}");
    }
    let (g1, g2) = outside_the_subgroup();
    let (g1, g2) = (g1.to_compressed(), g2.to_compressed());
    // D | A B | C | e
    let (d, ab, c) = (42, 42 + 5 * 48, 42 + 5 * (48 + 144));
    for i in 0..5 {
        for (at, code) in
            [(d + 48 * i, &g1), (ab + 144 * i, &g1), (ab + 144 * i + 48, &g2), (c + 48 * i, &g1)]
        {
            let mut bytes = proof.clone();
            bytes[at..at + code.len()].copy_from_slice(code);
            let error = verify_direct_with_test_keys(&key, &public, &CONTEXT, &bytes).unwrap_err();
            assert!(error.to_string().contains("not in the subgroup"), "{error}");
            // And an x coordinate of no point.
            let mut off = bytes.clone();
            while G1Point::on_curve_from_compressed(&off[at..at + 48]).is_ok() {
                off[at + 47] += 1;
            }
            assert!(verify_direct_with_test_keys(&key, &public, &CONTEXT, &off).is_err());
        }
    }
}

/// Keys with one wrong element are not accepted, and not made.
#[test]
fn wrong_keys_are_refused() {
    let bench = squares();
    let key = direct_key(&bench);
    let broken = |change: &dyn Fn(&mut DirectKey)| {
        let mut key = key.clone();
        change(&mut key);
        let error = DirectKey::from_bytes(&key.to_bytes()).unwrap_err();
        assert!(matches!(error, DirectKeyError::Unusable(_)), "{error}");
    };
    let g2 = G2Point::generator();
    broken(&|key| key.alpha = key.alpha.add(&G1Point::generator()));
    broken(&|key| key.beta = key.beta.add(&g2));
    broken(&|key| key.type_of.swap(0, 1));
    broken(&|key| key.type_of[0] = 9);
    broken(&|key| key.types[0].elements[0] = key.gamma);
    broken(&|key| key.types[0].elements[0] = key.types[1].elements[1]);
    broken(&|key| key.types[0].elements[1] = g2);
    broken(&|key| key.types[0].elements[2] = G2Point::IDENTITY);
    broken(&|key| key.gamma = G2Point::IDENTITY);
    broken(&|key| key.verifying.alpha_beta = key.verifying.cm_eta);
    let bytes = key.to_bytes();
    for cut in [0, 7, 9, 13, 100, bytes.len() - 1] {
        assert!(DirectKey::from_bytes(&bytes[..cut]).is_err());
    }
    assert!(DirectKey::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    let mut version = bytes.clone();
    version[8] = 2;
    assert_eq!(DirectKey::from_bytes(&version), Err(DirectKeyError::Version { found: 2 }));
    // Keys whose verifying key does not commit to the elements.
    let error = |bench: &Bench<Squares>| match bench.keys.direct_key(&bench.engine) {
        Err(crate::keys::ExportError::Direct(DirectKeyError::Unusable(why))) => why,
        other => panic!("{other:?}"),
    };
    let mut other = squares();
    other.keys.aggregation.replace_delta_for_test(0, |delta| delta.add(&g2));
    assert!(error(&other).contains("does not commit"));
    for section in ["st", "sb", "sg", "phi", "psi"] {
        let mut other = squares();
        let sections = other.keys.aggregation.sections_mut();
        match section {
            "psi" => {
                let mut points: Vec<G2Point> = sections.get::<G2Point>(section).unwrap().to_vec();
                points[1] = points[1].add(&g2);
                sections.replace(section, points);
            }
            _ => {
                let mut points: Vec<G1Point> = sections.get::<G1Point>(section).unwrap().to_vec();
                points[1] = points[1].add(&G1Point::generator());
                sections.replace(section, points);
            }
        }
        let why = error(&other);
        assert!(why.contains("commit") || why.contains("powers"), "{section}: {why}");
    }
    // A point that is outside of its group, with all pairings as they were.
    let mut other = squares();
    let sections = other.keys.aggregation.sections_mut();
    let mut points: Vec<G1Point> = sections.get::<G1Point>("st").unwrap().to_vec();
    points[0] = outside_the_subgroup().0;
    sections.replace("st", points);
    assert!(error(&other).contains("group"));
}

/// Adversarial test D14: one seed in runs of both kinds, and of two contexts, shares no mask, commitment,
/// or term.
#[test]
fn d14_one_seed_for_both_kinds() {
    let bench = squares();
    let key = direct_key(&bench);
    let parts = |bytes: &[u8]| {
        let proof = DirectProof::from_bytes(bytes, &key).unwrap();
        (proof.d, proof.ab, proof.c, proof.e)
    };
    let direct = parts(&of_squares(&bench, &key, CONTEXT).0);
    let other = parts(&of_squares(&bench, &key, [8; 32]).0);
    for i in 0..5 {
        assert_ne!(direct.0[i], other.0[i]);
        assert_ne!(direct.1[i], other.1[i]);
        assert_ne!(direct.2[i], other.2[i]);
        assert_ne!(direct.3[i], other.3[i]);
    }
    // The jobs of the aggregated run with this seed.
    let input = Fr::from(INPUT);
    let circuit = bench.with_input(&input);
    let coordinator = |direct| {
        let executed = crate::protocol::executed::Executed::here(&circuit, &bench.engine).unwrap();
        crate::protocol::coordinator::Coordinator::of(&circuit, &bench.keys, direct, executed)
    };
    let (aggregated, direct) =
        (coordinator(None), coordinator(Some(DirectRun::new(&key, CONTEXT))));
    assert_ne!(aggregated.execution_digest(), direct.execution_digest());
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    for i in 0..5 {
        let [a, b] = [&aggregated, &direct].map(|c| c.prove_job(i, &randomness).unwrap());
        assert_eq!(a.values[..3], b.values[..3]);
        // Slots 3 and 4 are masks, of which the first and the last of all are unused.
        assert!((3..5).all(|j| a.values[j] != b.values[j] || [(0, 3), (4, 4)].contains(&(i, j))));
        let scalar = |job: &crate::protocol::messages::Job| {
            job.randomness.of_committed(&[]).scalar(Purpose::Commitment, 0)
        };
        assert_ne!(scalar(&a), scalar(&b));
    }
}

/// Control of D14: terms of one mask under two pairs of challenges confirm a guess, while under one pair
/// every guess has a mask.
#[test]
fn d14_two_pairs_of_challenges_confirm_a_guess() {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(INPUT));
    let challenges = |x: u64| MemoryChallenges::new(Fr::from(x), Fr::from(x + 100));
    let term = |values: &[Fr], memory: &MemoryChallenges| {
        Prefix::new(&cheater.slots[0], values, memory).unwrap().sum
    };
    let (one, two) = (challenges(11), challenges(12));
    let known = [&one, &two].map(|memory| term(&cheater.values[0], memory));
    let mask = cheater.slots[0][4];
    // The mask that explains the first term with a guess of the output of subcircuit 0.
    let explained = |guess: Fr| {
        let mut values = cheater.values[0].clone();
        values[1] = guess;
        let fingerprint = one.g + values[4] + one.b * Fr::from(mask.address);
        let mu = Fr::from(mask.multiplicity);
        let own = mu * fingerprint.inverse().unwrap();
        let needed = known[0] - (term(&values, &one) - own);
        values[4] = mu * needed.inverse().unwrap() - one.g - one.b * Fr::from(mask.address);
        assert_eq!(term(&values, &one), known[0], "one pair of challenges excludes nothing");
        term(&values, &two) == known[1]
    };
    let secret = cheater.values[0][1];
    assert!(explained(secret));
    assert!(!explained(secret + Fr::ONE));
}

/// Adversarial test D15: worker 1, who has the mask between subcircuits 0 and 1, confirms a guess about
/// subcircuit 0 from a direct proof, which has its term. That is the loss against aggregated proofs.
/// Outsiders do not: every guess has a mask (see the control of D14); that terms are uniform is test 53.
#[test]
fn d15_a_worker_confirms_a_guess() {
    let bench = squares();
    let forger = Forger::new(&bench, &Fr::from(INPUT));
    let d = forger.d();
    let cheater = &forger.cheater;
    let t0 = transcript::committed(&forger.key, &CONTEXT, &cheater.public, &d);
    let memory = transcript::memory(&t0, false);
    let proof = forger.proof(&memory);
    let bytes = proof.to_bytes(&forger.key.digest());
    let verdict = verify_direct_with_test_keys(&forger.key, &cheater.public, &CONTEXT, &bytes);
    assert_eq!(verdict, Ok(()));
    // The worker of subcircuit 1 has this mask.
    let mask = cheater.values[1][3];
    let confirmed = |guess: Fr| {
        let mut values = vec![cheater.public[0], guess, Fr::zero(), Fr::zero(), mask];
        values[2] = cheater.values[0][2];
        Prefix::new(&cheater.slots[0], &values, &memory).unwrap().sum == proof.e[0]
    };
    assert!(confirmed(cheater.values[0][1]));
    assert!(!confirmed(cheater.values[0][1] + Fr::ONE));
}

/// Adversarial test D15: with the trapdoors, a proof is simulated without a witness.
#[test]
fn d15_simulated_proof_is_accepted() {
    let bench = squares();
    let forger = Forger::new(&bench, &Fr::from(INPUT));
    let (key, public) = (&forger.key, &forger.cheater.public);
    let secrets = Secrets::draw(2, Some(1)).unwrap();
    let (n, g) = (5, G1Point::generator());
    let random = Randomness::seeded_not_zero_knowledge(8).of_masks(&[0; 32]);
    let draw = |i: usize| random.scalar(Purpose::Mask, i as u64);
    let d: Vec<G1Point> = (0..n).map(|i| g.mul(&draw(i))).collect();
    let t0 = transcript::committed(key, &CONTEXT, public, &d);
    let memory = transcript::memory(&t0, false);
    let s = bench.keys.aggregation.s(&memory).unwrap();
    let mut e: Vec<Fr> = (0..n).map(|i| draw(100 + i)).collect();
    let sum: Fr = e.iter().sum();
    e[0] -= sum + public_sum(key.verifying(), public, &memory).unwrap();
    let (mut ab, mut c) = (Vec::new(), Vec::new());
    for i in 0..n {
        let kind = forger.cheater.kind(i);
        let (a, b, types) = (draw(200 + i), draw(300 + i), &secrets.types[kind]);
        // E Theta has the logarithm e L_0(tau): kappa cancels.
        let (tau, domain) = (secrets.shared.tau, bench.keys.types[kind].domain().size() as u64);
        let of_sum =
            (tau.pow([domain]) - Fr::ONE) * (Fr::from(domain) * (tau - Fr::ONE)).inverse().unwrap();
        let fixed = a * b
            - secrets.shared.alpha * secrets.shared.beta
            - draw(i) * types.eta
            - e[i] * of_sum;
        let rest = g.mul(&fixed).sub(&s[i].mul(&secrets.shared.gamma));
        ab.push((g.mul(&a), G2Point::generator().mul(&b)));
        c.push(rest.mul(&types.delta.inverse().unwrap()));
    }
    let mut proof = DirectProof { d, ab, c, e };
    let verify = |proof: &DirectProof| {
        verify_direct_with_test_keys(key, public, &CONTEXT, &proof.to_bytes(&key.digest()))
    };
    assert_eq!(verify(&proof), Ok(()));
    // With a wrong sum it is refused: even the trapdoors do not replace the memory check.
    proof.e[0] += Fr::ONE;
    assert!(verify(&proof).is_err());
}

/// Adversarial test D16: anybody changes a proof into others of the same statement, so nothing may be
/// keyed on its bytes.
#[test]
fn d16_proofs_are_not_unique() {
    let bench = squares();
    let key = direct_key(&bench);
    let (bytes, public) = of_squares(&bench, &key, CONTEXT);
    let proof = DirectProof::from_bytes(&bytes, &key).unwrap();
    let y = Fr::from(12345u64);
    let mut scaled = proof.clone();
    let (a, b) = scaled.ab[2];
    scaled.ab[2] = (a.mul(&y), b.mul(&y.inverse().unwrap()));
    let mut shifted = proof.clone();
    let delta = key.types[key.type_of[1] as usize].elements[0];
    shifted.ab[1].1 = shifted.ab[1].1.add(&delta.mul(&y));
    shifted.c[1] = shifted.c[1].add(&shifted.ab[1].0.mul(&y));
    for changed in [scaled, shifted] {
        assert_ne!(changed, proof);
        let bytes = changed.to_bytes(&key.digest());
        assert_eq!(verify_direct_with_test_keys(&key, &public, &CONTEXT, &bytes), Ok(()));
    }
}

/// The bytes that a contract takes are those of the file, with points expanded and without the header.
#[test]
fn words_are_the_expanded_file() {
    let bench = squares();
    let key = direct_key(&bench);
    let (bytes, _) = of_squares(&bench, &key, CONTEXT);
    let proof = DirectProof::from_bytes(&bytes, &key).unwrap();
    let words = proof.words();
    assert_eq!(words.len(), 672 * 5);
    assert_eq!(words[words.len() - 160..], bytes[bytes.len() - 160..], "the terms");
    let first = Fr::from_be_bytes_mod_order(&words[words.len() - 160..][..32]);
    assert_eq!(first, proof.e[0]);
    // x of D_0, without the flags of the compressed form.
    let mut x = bytes[42..90].to_vec();
    x[0] &= 0x1f;
    assert_eq!((&words[..16], &words[16..64]), (&[0; 16][..], &x[..]));
}

/// Test vectors for other verifiers: key, proof and transcript for one, two and five subcircuits, of one
/// type and of two, and with buses. `HEKATON_WRITE_GOLDEN=1` writes them, with a new version.
#[test]
fn vectors() {
    let squares = |kinds: &[usize], masks| {
        let bench = Bench::new(Squares::new(kinds), masks);
        let key = direct_key(&bench);
        let (proof, public) = of_squares(&bench, &key, CONTEXT);
        (key, proof, public)
    };
    let with_buses = || {
        let bench = Bench::new(Shop::new(2), true);
        let key = direct_key(&bench);
        let (proof, public) = proven(&bench, &Shopping::new(2), &key, CONTEXT, 1);
        (key, proof, public)
    };
    vector("direct-1", squares(&[0], true));
    vector("direct-2", squares(&[0, 1], false));
    vector("direct-5", squares(&[0, 1, 1, 0, 1], true));
    vector("direct-buses", with_buses());
}

/// Compares a key, a proof and everything on the way from the one to the other with golden files.
#[track_caller]
fn vector(name: &str, (key, proof, public): (DirectKey, Vec<u8>, Vec<Fr>)) {
    let decoded = DirectProof::from_bytes(&proof, &key).unwrap();
    let committed = transcript::committed(&key, &CONTEXT, &public, &decoded.d);
    let MemoryChallenges { g, b, b_t, b_v } = transcript::memory(&committed, key.has_buses());
    let proven = transcript::proven(&committed, &decoded);
    let number = |x: Fr| x.into_bigint().to_string();
    let text = serde_json::json!({
        "key_digest": hex::encode(key.digest()),
        "context": hex::encode(CONTEXT),
        "public_values": public.iter().copied().map(number).collect::<Vec<_>>(),
        "t0": hex::encode(committed),
        "g": number(g), "b": number(b), "b_t": number(b_t), "b_v": number(b_v),
        "t1": hex::encode(proven),
        "r": number(transcript::factor(&proven)),
        "words": hex::encode(keccak(&[&decoded.words()])),
    });
    let text = serde_json::to_string_pretty(&text).unwrap() + "\n";
    let files = [("key", key.to_bytes()), ("proof", proof), ("json", text.into_bytes())];
    for (what, bytes) in files {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
        let path = std::path::Path::new(folder).join(format!("{name}.{what}"));
        if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == bytes, "{name}.{what}");
    }
}
