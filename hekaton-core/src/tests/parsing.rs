//! Adversarial tests 32 and 44 to 47: what must be refused before any equation is evaluated.

use super::bench::{Bench, Cheater, Squares, place, squares, with_field};
use crate::verifier::proof::{Field as ProofField, Proof, ProofError, fields};
use crate::verifier::verify::VerifyError;
use crate::verifier::verifying_key::{VerifyingKey, VerifyingKeyError};
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, Group, Gt, fr_from_bytes};
use proptest::prelude::*;

fn honest() -> (Bench<Squares>, Vec<Fr>, Vec<u8>) {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    let (public, proof) = (cheater.public.clone(), cheater.finish());
    (bench, public, proof)
}

/// Adversarial tests 32 and 47: l + 1 and l - 1 rounds, truncation at every field's border,
/// trailing bytes, an unknown version, other magic bytes.
#[test]
fn a32_a47_lengths_and_headers() {
    let (bench, public, proof) = honest();
    let vk = &bench.keys.verifying;
    let refused = |bytes: &[u8]| match bench.verify(&public, bytes) {
        Err(VerifyError::Proof(e)) => e,
        other => panic!("expected a parse error, found {other:?}"),
    };
    let round = 6 * Gt::COMPRESSED;
    let (at, _) = place(&bench, ProofField::Round(0, 0));
    let longer = [&proof[..at + round], &proof[at..]].concat();
    let shorter = [&proof[..at], &proof[at + round..]].concat();
    for (bytes, found) in [(&longer, proof.len() + round), (&shorter, proof.len() - round)] {
        assert_eq!(refused(bytes), ProofError::Length { expected: proof.len(), found });
    }
    // The same proof under a key that claims another n: the digest differs.
    let mut other = vk.clone();
    other.instances = 9;
    assert!(matches!(
        crate::verify(&other, &public, &proof),
        Err(VerifyError::Proof(ProofError::ForeignKey { .. }))
    ));
    let mut adapted = proof.clone();
    adapted[10..42].copy_from_slice(&other.digest());
    assert!(matches!(
        crate::verify(&other, &public, &adapted),
        Err(VerifyError::Proof(ProofError::Length { .. }))
    ));

    let trailing = [&proof[..], &[0]].concat();
    assert_eq!(
        refused(&trailing),
        ProofError::Length { expected: proof.len(), found: proof.len() + 1 }
    );
    let mut at = 42;
    for field in fields(vk.rounds()) {
        assert_eq!(refused(&proof[..at]), ProofError::Length { expected: proof.len(), found: at });
        at += field.len();
    }
    for cut in [0, 1, 7] {
        assert_eq!(refused(&proof[..cut]), ProofError::Magic);
    }
    for cut in [8, 9, 10, 41] {
        assert!(matches!(refused(&proof[..cut]), ProofError::Element(_)));
    }
    let mut version = proof.clone();
    version[8] = 2;
    assert_eq!(refused(&version), ProofError::Version { found: 2 });
    let mut magic = proof;
    magic[0] ^= 1;
    assert_eq!(refused(&magic), ProofError::Magic);
}

/// Adversarial test 44: a public value that is not below r, missing, or extra.
#[test]
fn a44_public_values() {
    let (bench, public, proof) = honest();
    let wrong = |found| Err(VerifyError::PublicValues { expected: 2, found });
    assert_eq!(bench.verify(&public[..1], &proof), wrong(1));
    assert_eq!(bench.verify(&[], &proof), wrong(0));
    assert_eq!(bench.verify(&[&public[..], &[Fr::ONE]].concat(), &proof), wrong(3));
    // Values are field elements by their type; bytes become values only through the canonical
    // decoder.
    assert!(fr_from_bytes(&[0xff; 32]).is_err());
}

/// Adversarial test 45: points off the curve, outside the subgroup, or not canonical, in each point
/// field.
#[test]
fn a45_points() {
    let (bench, public, proof) = honest();
    let refused = |bytes: &[u8], why: &str| match bench.verify(&public, bytes) {
        Err(VerifyError::Proof(e @ ProofError::Element(_))) => {
            assert!(e.to_string().contains(why), "{e}")
        }
        other => panic!("expected a parse error, found {other:?}"),
    };
    for field in
        fields(bench.keys.verifying.rounds()).into_iter().filter(|f| f.len() < Gt::COMPRESSED)
    {
        let len = field.len();
        let mut not_reduced = vec![0xff; len];
        not_reduced[0] = 0x9f;
        refused(&with_field(&bench, &proof, field, &not_reduced), "canonical");
        // Finds x coordinates of no point, and of a point outside the subgroup.
        let (mut off_curve, mut outside) = (false, false);
        for x in 1u8..60 {
            let mut code = vec![0; len];
            (code[0], code[len - 1]) = (0x80, x);
            let forged = with_field(&bench, &proof, field, &code);
            match bench.verify(&public, &forged) {
                Err(VerifyError::Proof(ProofError::Element(e)))
                    if e.to_string().contains("not on the curve") =>
                {
                    off_curve = true
                }
                Err(VerifyError::Proof(ProofError::Element(e)))
                    if e.to_string().contains("subgroup") =>
                {
                    outside = true
                }
                other => panic!("{field:?} with x = {x}: {other:?}"),
            }
        }
        assert!(off_curve && outside, "{field:?}");
        // Infinity is a legal encoding, but not with a byte set behind the flag.
        let mut infinity = vec![0; len];
        infinity[0] = 0xc0;
        let verdict = bench.verify(&public, &with_field(&bench, &proof, field, &infinity));
        assert!(matches!(verdict, Err(VerifyError::Equations { .. })), "{field:?}: {verdict:?}");
        infinity[len - 1] = 1;
        refused(&with_field(&bench, &proof, field, &infinity), "canonical");
    }
}

/// Adversarial test 46: GT elements: zero, not cyclotomic, of another order; the codes of 1 and -1.
#[test]
fn a46_target_group_elements() {
    let (bench, public, proof) = honest();
    let verdict =
        |field, code: &[u8]| bench.verify(&public, &with_field(&bench, &proof, field, code));
    for field in
        fields(bench.keys.verifying.rounds()).into_iter().filter(|f| f.len() == Gt::COMPRESSED)
    {
        let refused = |code: &[u8], why: &str| match verdict(field, code) {
            Err(VerifyError::Proof(ProofError::Element(e))) => {
                assert!(e.to_string().contains(why), "{e}")
            }
            other => panic!("{field:?}: {other:?}"),
        };
        refused(&[0; 288], "not in the target group"); // -1
        let mut torus = [0; 288];
        torus[47] = 5;
        refused(&torus, "not in the target group"); // of norm 1, not cyclotomic
        refused(&[0x1f; 288], "canonical");
        let mut one = [0; 288];
        one[0] = 0x80;
        // 1 is in the group.
        assert!(matches!(verdict(field, &one), Err(VerifyError::Equations { .. })));
        one[100] = 1;
        refused(&one, "canonical");
    }
}

/// The verifying key is parsed as strictly as the proof.
#[test]
fn verifying_keys() {
    let bench = squares();
    let vk = &bench.keys.verifying;
    let bytes = vk.to_bytes();
    assert_eq!(VerifyingKey::from_bytes(&bytes).as_ref(), Ok(vk));
    assert_eq!(VerifyingKey::from_bytes(&bytes[..5]), Err(VerifyingKeyError::Magic));
    let mut version = bytes.clone();
    version[8] = 9;
    assert_eq!(VerifyingKey::from_bytes(&version), Err(VerifyingKeyError::Version { found: 9 }));
    for cut in 8..bytes.len() {
        if cut < 200 || cut % 97 == 0 || cut + 10 > bytes.len() {
            assert!(
                matches!(
                    VerifyingKey::from_bytes(&bytes[..cut]),
                    Err(VerifyingKeyError::Decode(_))
                ),
                "cut at {cut}"
            );
        }
    }
    assert!(
        VerifyingKey::from_bytes(&[&bytes[..], &[0]].concat())
            .unwrap_err()
            .to_string()
            .contains("follow after the end")
    );
    let broken = |change: &dyn Fn(&mut VerifyingKey), why: &str| {
        let mut other = vk.clone();
        change(&mut other);
        let error = VerifyingKey::from_bytes(&other.to_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    broken(&|vk| vk.instances = 0, "number of subcircuits");
    broken(&|vk| vk.instances = u64::MAX, "number of subcircuits");
    broken(&|vk| vk.types = 0, "number of types");
    broken(&|vk| vk.types = 6, "number of types");
    broken(&|vk| vk.public[0].address = 0, "public wire");
    broken(&|vk| vk.public[0].multiplicity = 0, "public wire");
    broken(&|vk| vk.public[1].multiplicity = -2, "public wire");
    broken(&|vk| vk.public.swap(0, 1), "public wire");
    broken(&|vk| vk.parameters = "{}\ntrust: all is well".into(), "control characters");
    broken(&|vk| vk.circuit = "x\u{1b}[2K".into(), "control characters");
    broken(&|vk| vk.k = G1Point::IDENTITY, "point at infinity");
    // A count beyond the bytes that are there allocates nothing.
    let at = 8 + 2 + 2 + 4 + 4 + 4 + 2 + 8 + 4 + 64;
    let mut count = bytes;
    count[at..at + 4].copy_from_slice(&(1u32 << 24).to_le_bytes());
    assert!(matches!(VerifyingKey::from_bytes(&count), Err(VerifyingKeyError::Decode(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the bytes, the verifier returns a verdict without a panic, and accepts only the
    /// proof itself.
    #[test]
    fn mutated_proofs_are_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 1u8..=255), 1..4),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        use std::sync::OnceLock;
        static HONEST: OnceLock<(Bench<Squares>, Vec<Fr>, Vec<u8>)> = OnceLock::new();
        let (bench, public, proof) = HONEST.get_or_init(honest);
        let mut forged = proof.clone();
        for (at, change) in &edits {
            let at = at.index(forged.len());
            forged[at] ^= change;
        }
        if let Some(cut) = cut {
            forged.truncate(cut.index(proof.len()));
        }
        prop_assert_eq!(bench.verify(public, &forged).is_ok(), forged == *proof);
    }

    #[test]
    fn random_bytes_are_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        header in any::<bool>(),
    ) {
        let bench = squares_key();
        let bytes = if header { [&b"HEKATNPF\x01\x00"[..], &bytes].concat() } else { bytes };
        prop_assert!(crate::verify(bench, &[], &bytes).is_err());
        prop_assert!(VerifyingKey::from_bytes(&bytes).is_err());
        let _ = Proof::key_digest(&bytes);
    }
}

fn squares_key() -> &'static VerifyingKey {
    use std::sync::OnceLock;
    static KEY: OnceLock<VerifyingKey> = OnceLock::new();
    KEY.get_or_init(|| squares().keys.verifying)
}
