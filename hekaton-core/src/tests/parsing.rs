//! Adversarial tests 32 and 44 to 47: what must be refused before any equation is evaluated.

use super::bench::{Bench, Cheater, Squares, place, squares, with_field};
use crate::keys::Sections;
use crate::mirage::ProvingKey;
use crate::verifier::proof::{Field as ProofField, Proof, ProofError, fields};
use crate::verifier::public_values::PublicValuesError;
use crate::verifier::verify::VerifyError;
use crate::verifier::verifying_key::{VerifyingKey, VerifyingKeyError};
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, fr_from_bytes};
use proptest::prelude::*;

fn honest() -> (Bench<Squares>, Vec<Fr>, Vec<u8>) {
    let bench = squares();
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    let (public, proof) = (cheater.public.clone(), cheater.finish());
    drop(cheater);
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
        crate::verify_with_test_keys(&other, &public, &proof),
        Err(VerifyError::Proof(ProofError::ForeignKey { .. }))
    ));
    let mut adapted = proof.clone();
    adapted[10..42].copy_from_slice(&other.digest());
    assert!(matches!(
        crate::verify_with_test_keys(&other, &public, &adapted),
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
    version[8] = 3;
    assert_eq!(refused(&version), ProofError::Version { found: 3, expected: 2 });
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
        refused(&[0; 192], "not in the target group"); // -1
        let mut torus = [0; 192];
        torus[47] = 5;
        refused(&torus, "not in the target group"); // cyclotomic, of another order
        refused(&[0x1f; 192], "canonical");
        let mut one = [0; 192];
        one[0] = 0x80;
        // 1 is in the group.
        assert!(matches!(verdict(field, &one), Err(VerifyError::Equations { .. })));
        one[100] = 1;
        refused(&one, "canonical");
    }
}

/// The verifying key is parsed as strictly as the proof.
/// A proving key's domain must be one that exists, with room for the constraints. It need not be the
/// smallest: an earlier setup used powers of two only.
#[test]
fn domains_of_proving_keys() {
    // the size as a function of the number of constraints, padded to a power of two
    let with_domain = |size: fn(u64) -> u64| {
        let mut key = squares().keys.types.pop().unwrap();
        let (mut shape, mut h) = (key.shape, key.h_query().unwrap().to_vec());
        shape.domain = size(shape.constraints.next_power_of_two());
        h.resize(usize::try_from(shape.domain).unwrap(), G1Point::generator());
        let mut sections = std::mem::replace(key.sections_mut(), Sections::new(ProvingKey::KIND));
        sections.replace("shape", vec![shape]);
        sections.replace("h", h);
        ProvingKey::new("squares", sections).map_err(|e| e.to_string())
    };
    let good: [fn(u64) -> u64; 4] = [|n| n, |n| 2 * n, |n| 3 * n, |n| 6 * n];
    for size in good {
        assert_eq!(with_domain(size).map(|key| key.shape.domain > 0), Ok(true));
    }
    let bad: [fn(u64) -> u64; 4] = [|n| 5 * n, |n| 9 * n, |n| n + 1, |_| 0];
    for size in bad {
        let error = with_domain(size).unwrap_err();
        assert!(
            error.contains("'shape'") && error.contains("2^k up to 2^31, or 3 * 2^k"),
            "{error}"
        );
    }
    let error = with_domain(|n| n / 2).unwrap_err();
    assert!(error.contains("inconsistent sizes"), "{error}");
}

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
    broken(&|vk| vk.types.clear(), "number of types");
    broken(
        &|vk| {
            let kind = vk.types[0].clone();
            vk.types.resize(6, kind);
        },
        "number of types",
    );
    broken(&|vk| vk.public[0].address = 0, "public wire");
    broken(&|vk| vk.public[0].multiplicity = 0, "public wire");
    broken(&|vk| vk.public[1].multiplicity = -2, "public wire");
    broken(&|vk| vk.public.swap(0, 1), "public wire");
    broken(&|vk| vk.parameters = "{}\ntrust: all is well".into(), "control characters");
    broken(&|vk| vk.circuit = "x\u{1b}[2K".into(), "control characters");
    // Identities and generators, which would remove a term or make a secret 1 (AUDIT nit 2).
    let (g, h) = (G1Point::generator(), G2Point::generator());
    for point in [G1Point::IDENTITY, g] {
        broken(&|vk| vk.k = point, "the point at infinity and the generators");
        broken(&|vk| vk.psi_1 = point, "the point at infinity and the generators");
    }
    for point in [G2Point::IDENTITY, h] {
        broken(&|vk| vk.phi_2 = point, "the point at infinity and the generators");
    }
    broken(&|vk| vk.cm_gamma = Gt::identity(), "neutral element");
    broken(&|vk| vk.cm_delta = Gt::identity(), "neutral element");
    broken(&|vk| vk.cm_eta = Gt::identity(), "neutral element");
    broken(&|vk| vk.cm_theta = Gt::identity(), "neutral element");
    broken(&|vk| vk.alpha_beta = Gt::identity(), "neutral element");
    // Commitments to S may be anything: without masks and slots, Sb is zero.
    let mut zero = vk.clone();
    (zero.cm_st, zero.cm_sg, zero.cm_sb) = (Gt::identity(), Gt::identity(), Gt::identity());
    assert_eq!(VerifyingKey::from_bytes(&zero.to_bytes()), Ok(zero));
    // A count beyond the bytes that are there allocates nothing.
    let types: usize = vk.types.iter().map(|kind| 4 + kind.name.len() + 32).sum();
    let at = 8 + 2 + 2 + 4 + 4 + 4 + 2 + 8 + 4 + types + 64;
    assert_eq!(bytes[at..at + 4], 2u32.to_le_bytes(), "the number of public wires");
    let mut count = bytes;
    count[at..at + 4].copy_from_slice(&(1u32 << 24).to_le_bytes());
    match VerifyingKey::from_bytes(&count) {
        Err(VerifyingKeyError::Decode(e)) => assert!(!e.to_string().contains("checksum"), "{e}"),
        other => panic!("{other:?}"),
    }
}

/// Any changed byte of a verifying key is refused, also in names and digests, which nothing else
/// checks. Guards: the checksum at its end.
#[test]
fn any_changed_byte_of_a_verifying_key_is_refused() {
    let bench = squares();
    let bytes = bench.keys.verifying.to_bytes();
    assert!(VerifyingKey::from_bytes(&bytes).is_ok());
    let derived = VerifyingKey { family: Some([7; 32]), ..bench.keys.verifying.clone() }.to_bytes();
    let copies = [&bytes, &derived].map(|bytes| (0..bytes.len()).map(move |at| (bytes, at)));
    for (bytes, at) in copies.into_iter().flatten() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let error = VerifyingKey::from_bytes(&changed).unwrap_err();
        match at {
            0..8 => assert_eq!(error, VerifyingKeyError::Magic),
            // The version of keys with a family, or without: the rest does not fit it.
            8 if changed[8] == 3 || changed[8] == 2 => {
                assert!(matches!(error, VerifyingKeyError::Decode(_)), "{error}");
            }
            8..10 => assert!(matches!(error, VerifyingKeyError::Version { .. })),
            _ => assert!(matches!(error, VerifyingKeyError::Decode(_)), "byte {at}: {error}"),
        }
    }
    // A name: a letter for another letter.
    let at = bytes.windows(4).position(|four| four == b"test").unwrap();
    let mut renamed = bytes;
    renamed[at] = b'b';
    let error = VerifyingKey::from_bytes(&renamed).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

/// The JSON form of public values: one entry per public wire, each exactly once, each below r.
#[test]
fn public_values_by_name() {
    let bench = squares();
    let vk = &bench.keys.verifying;
    assert_eq!(vk.public_names(), ["w[0]", "w[5]"]);
    let values = [Fr::from(5u64), -Fr::from(1u64)];
    let json = vk.values_to_json(&values).unwrap();
    let largest = values[1].to_string();
    assert_eq!(json, serde_json::json!({ "w[0]": "5", "w[5]": largest.as_str() }));
    assert_eq!(vk.values_from_json(&json.to_string()).as_deref(), Ok(&values[..]));
    let read = |text: &str| vk.values_from_json(text);
    // In any order, and in all forms of a number.
    let one = Fr::ONE;
    assert_eq!(read(r#"{"w[5]": 1, "w[0]": "0x05"}"#).as_deref(), Ok(&[values[0], one][..]));
    let missing = Err(PublicValuesError::Missing("w[5]".into()));
    assert_eq!(read(r#"{"w[0]": "5"}"#), missing);
    assert_eq!(read("{}"), Err(PublicValuesError::Missing("w[0]".into())));
    let unknown = PublicValuesError::Unknown { name: "w".into(), known: "w[0], w[5]".into() };
    assert_eq!(read(r#"{"w[0]": "5", "w[5]": "1", "w": "1"}"#), Err(unknown));
    // Which of two values would count is not defined, so neither does, even if they are equal.
    for second in ["6", "5"] {
        let twice = format!(r#"{{"w[0]": "5", "w[5]": "1", "w[0]": "{second}"}}"#);
        assert_eq!(read(&twice), Err(PublicValuesError::Duplicate("w[0]".into())));
    }
    let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    let r_hex = "0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
    for (value, why) in [
        (format!("\"{r}\""), "not below"),
        (format!("\"{r_hex}\""), "not below"),
        ("\"-1\"".into(), "not a decimal number"),
        ("\"five\"".into(), "not a decimal number"),
        ("-1".into(), "as strings"),
        ("1.0".into(), "as strings"),
        ("18446744073709551616".into(), "as strings"),
        ("true".into(), "expected a string or an integer"),
        ("null".into(), "expected a string or an integer"),
        ("[\"1\"]".into(), "expected a string or an integer"),
        ("{\"x\": 1}".into(), "expected a string or an integer"),
    ] {
        match read(&format!(r#"{{"w[5]": "1", "w[0]": {value}}}"#)) {
            Err(PublicValuesError::Value { name, why: found }) => {
                assert_eq!(name, "w[0]");
                assert!(found.contains(why), "{value}: {found}");
            }
            other => panic!("{value}: {other:?}"),
        }
    }
    for text in ["", "5", r#"["5""#, r#"["5", "1"] 2"#, r#"{"w[0]": "5""#, r#"{"w[0]": "5"} {}"#] {
        assert!(matches!(read(text), Err(PublicValuesError::Json(_))), "{text}");
    }
    // An array has one value per wire, in the order of the key.
    let by_name = read(r#"{"w[5]": "1", "w[0]": "5"}"#).unwrap();
    let in_order = if vk.public_names()[0] == "w[0]" { r#"["5", 1]"# } else { r#"[1, "5"]"# };
    assert_eq!(read(in_order), Ok(by_name));
    assert_eq!(read("[]"), Err(PublicValuesError::Count { expected: 2, found: 0 }));
    // Values without names: one per wire.
    for wrong in [&values[..1], &[one; 3], &[]] {
        let count = PublicValuesError::Count { expected: 2, found: wrong.len() };
        assert_eq!(vk.values_to_json(wrong), Err(count.clone()));
        assert_eq!(vk.name_values(wrong), Err(count));
    }
    let named = vk.name_values(&values).unwrap();
    let named: Vec<_> = named.iter().map(|v| (v.name.as_str(), v.index, v.value)).collect();
    assert_eq!(named, [("w", 0, values[0]), ("w", 5, values[1])]);
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
        let bytes = if header { [&b"HEKATNPF\x02\x00"[..], &bytes].concat() } else { bytes };
        prop_assert!(crate::verify_with_test_keys(bench, &[], &bytes).is_err());
        prop_assert!(VerifyingKey::from_bytes(&bytes).is_err());
        let _ = Proof::key_digest(&bytes);
    }
}

fn squares_key() -> &'static VerifyingKey {
    use std::sync::OnceLock;
    static KEY: OnceLock<VerifyingKey> = OnceLock::new();
    KEY.get_or_init(|| squares().keys.verifying)
}
