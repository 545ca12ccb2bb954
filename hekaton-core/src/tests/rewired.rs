//! Adversarial tests 88 and 89: keys that somebody without trapdoors has changed. Proofs of false
//! statements are accepted under them, so keys from elsewhere are compared by their digest. The relations
//! of `keys verify` find these changes, too (the tests of `hekaton-storage`).

use super::bench::{Bench, Cheater, Squares};
use crate::keys::{FamilyKey, ProverKeys};
use crate::pool::LocalEngine;
use crate::protocol::forgery::{commit_again, rewire};
use crate::protocol::{SetupOptions, derive, setup_family};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_testing::Doublings;
use std::convert::Infallible;

/// Adversarial test 88: a chain whose first and last subcircuit have changed what they read, by linear
/// algebra over the published Sb. The inner ones then read what they write themselves, zeros, and the
/// last one doubles the input. Guards: the relation for Sb in `keys verify`.
#[test]
fn a88_a_rewired_chain_proves_a_false_output() {
    let links = 6;
    let mut bench = Bench::new(Doublings { links, extra: 0 }, true);
    let (input, last) = (Fr::from(5u64), links - 1);
    let truth = input * Fr::from(2u64).pow([links as u64]);
    let slots: Vec<Vec<_>> = bench.wiring.by_instance().map(|(_, slots)| slots.to_vec()).collect();
    let (mut of_first, mut of_last) = (slots[0].clone(), slots[last].clone());
    std::mem::swap(&mut of_first[0].address, &mut of_last[0].address);
    let forged = |bench: &Bench<Doublings>| {
        let mut cheater = Cheater::new(bench, &input);
        assert_eq!(cheater.public, [input, truth]);
        (cheater.slots[0], cheater.slots[last]) = (of_first.clone(), of_last.clone());
        let two = Fr::from(2u64);
        for values in &mut cheater.values {
            (values[0], values[1]) = (Fr::zero(), Fr::zero());
        }
        let values = &mut cheater.values[last];
        (values[0], values[1]) = (input, two * input);
        cheater.public = vec![input, two * input];
        let proof = cheater.finish();
        bench.verify(&cheater.public, &proof)
    };
    // Control: under the genuine keys the same prover fails.
    assert!(forged(&bench).is_err());
    let before = bench.keys.verifying.clone();
    let wiring = bench.wiring.clone();
    rewire(&mut bench.keys, &wiring, &[(0, of_first.clone()), (last, of_last.clone())]);
    assert_eq!(bench.keys.verifying.layout, before.layout);
    assert_eq!(forged(&bench), Ok(()));
    assert_ne!(truth, Fr::from(2u64) * input);
}

/// The keys of a family with the types of a circuit, with IC of these multiplicities at infinity, and the
/// circuit's keys derived from it.
fn derived(circuit: Squares, at_infinity: &[(usize, usize)]) -> Bench<Squares> {
    let engine = LocalEngine::new(None).unwrap();
    let prepared = PreparedCircuit::new(&circuit).unwrap();
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    let options = SetupOptions::new("test").insecure_seed(12);
    let mut family: FamilyKey =
        setup_family(&prepared, 4, &engine, &options, keep, |_| {}).unwrap();
    let mut ic = family.sections().get::<G1Point>("ic").unwrap().to_vec();
    let first: Vec<usize> = family
        .header()
        .types
        .iter()
        .scan(0, |end, kind| {
            let start = *end;
            *end += kind.variables().public().len();
            Some(start)
        })
        .collect();
    for (kind, slot) in at_infinity {
        let mu = family.header().types[*kind].variables().multiplicities().start + slot;
        ic[first[*kind] + mu] = G1Point::IDENTITY;
    }
    family.sections_mut().replace("ic", ic);
    let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine).unwrap();
    let layout = prepared.layout().clone();
    let wiring = layout.wiring(Masking::Masked);
    drop(prepared);
    let keys = ProverKeys { verifying, aggregation, types };
    Bench { circuit, keys, layout, wiring, engine }
}

/// Adversarial test 89: a family in which IC of some multiplicities is at infinity. All slots with them
/// are unused in every derived key, so what one subcircuit writes another one need not read. Guards:
/// the relation for IC of the multiplicities in `keys verify`, and readers, which refuse such keys.
#[test]
fn a89_multiplicities_at_infinity_cut_wires() {
    let circuit = Squares::new(&[0, 1]);
    let forged = |bench: &Bench<Squares>| {
        let mut cheater = Cheater::new(bench, &Fr::from(5u64));
        // The wire between the two is written in slot 1 of the first, read in slots 0 and 2 of the second.
        for (instance, slot) in [(0, 1), (1, 0), (1, 2)] {
            assert_ne!(cheater.slots[instance][slot].multiplicity, 0);
            cheater.slots[instance][slot].multiplicity = 0;
        }
        let input = Fr::from(100u64);
        let output = Squares::step(1, input);
        assert_ne!(cheater.public[1], output);
        (cheater.values[1][0], cheater.values[1][1]) = (input, output);
        cheater.public[1] = output;
        let proof = cheater.finish();
        bench.verify(&cheater.public, &proof)
    };
    // Control: under genuine keys the same prover fails.
    assert!(forged(&derived(circuit.clone(), &[])).is_err());
    let bench = derived(circuit, &[(0, 1), (1, 0), (1, 2)]);
    assert_eq!(forged(&bench), Ok(()));
    // A reader of such a family refuses it.
    let family = {
        let prepared = PreparedCircuit::new(&bench.circuit).unwrap();
        let options = SetupOptions::new("test").insecure_seed(12);
        let keep = |_| Ok::<_, Infallible>(());
        setup_family(&prepared, 4, &bench.engine, &options, keep, |_| {}).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family.key");
    let reopened = |change: &dyn Fn(&mut FamilyKey)| {
        let sections = {
            let digest = family.sections().write(&path).unwrap();
            crate::keys::Sections::open(&path, FamilyKey::KIND, digest).unwrap()
        };
        let mut key = FamilyKey::new(sections).unwrap();
        change(&mut key);
        let digest = key.sections().write(&path).unwrap();
        let sections = crate::keys::Sections::open(&path, FamilyKey::KIND, digest).unwrap();
        FamilyKey::new(sections).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(reopened(&|_| {}), Ok(()));
    let ic = family.sections().get::<G1Point>("ic").unwrap().to_vec();
    for at in 0..ic.len() {
        let why = reopened(&|key| {
            let mut changed = ic.clone();
            changed[at] = G1Point::IDENTITY;
            key.sections_mut().replace("ic", changed);
        });
        assert!(why.unwrap_err().contains("is the point at infinity"), "{at}");
    }
    let elements = family.elements().unwrap().to_vec();
    let changed = |change: &dyn Fn(&mut [[G2Point; 3]])| {
        reopened(&|key| {
            let mut elements = elements.clone();
            change(&mut elements);
            key.sections_mut().replace("elements", elements);
        })
        .unwrap_err()
    };
    let gamma = *family.gamma().unwrap();
    assert!(changed(&|e| e[1][0] = gamma).contains("not distinct"));
    assert!(changed(&|e| e[1][1] = e[0][0]).contains("not distinct"));
    assert!(changed(&|e| e[0][2] = G2Point::IDENTITY).contains("point at infinity"));
}

/// Adversarial test 88: a verifying key whose commitments to gamma and delta are equal, as in keys with
/// delta = gamma, under which anybody forges. Guards: readers of verifying keys.
#[test]
fn a88_verifying_keys_with_equal_elements_are_refused() {
    let mut bench = super::bench::squares();
    let genuine = bench.keys.verifying.to_bytes();
    let gamma = *bench.keys.aggregation.gamma().unwrap();
    let all = bench.keys.aggregation.elements().unwrap().to_vec();
    for element in [0, 1] {
        let changed: Vec<[G2Point; 3]> = all
            .iter()
            .map(|of_type| {
                let mut of_type = *of_type;
                of_type[element] = gamma;
                of_type
            })
            .collect();
        bench.keys.aggregation.sections_mut().replace("elements", changed);
        commit_again(&mut bench.keys);
        let why = crate::VerifyingKey::from_bytes(&bench.keys.verifying.to_bytes()).unwrap_err();
        assert!(why.to_string().contains("two of them are equal"), "{why}");
    }
    bench.keys.aggregation.sections_mut().replace("elements", all);
    commit_again(&mut bench.keys);
    assert_eq!(bench.keys.verifying.to_bytes(), genuine);
}
