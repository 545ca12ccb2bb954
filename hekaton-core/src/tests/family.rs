//! Adversarial tests 79, 80, 82, 83 and 85: key families.

use super::bench::{Bench, Cheater, Squares, failing, field_of, record, with_field};
use crate::encoding::Encode;
use crate::keys::{CircuitMismatch, FamilyKey, ProverKeys, check_family_circuit};
use crate::mirage::ProvingKey;
use crate::pool::LocalEngine;
use crate::protocol::{
    DeriveError, ProveOptions, SetupError, SetupOptions, derive, derive_wiring, follows_from,
    prove, setup, setup_family,
};
use crate::verifier::proof::Field as ProofField;
use crate::verifier::transcript::Merlin;
use crate::verifier::verify::Equation::{KeyW, T, U, Z};
use crate::verifier::verify::{VerifyError, verify_with_test_keys};
use crate::verifier::{Proof, ProofError, VerifyingKey};
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, pairing};
use hekaton_circuit::prover::{Wiring, digest_of_types};
use hekaton_circuit::{
    Circuit, CircuitError, Closures, InstanceId, LayoutBuilder, LayoutError, Masking,
    PreparedCircuit, SlotAccess, Subcircuit, Table, WireValues,
};
use std::collections::HashSet;
use std::convert::Infallible;

fn engine() -> LocalEngine {
    LocalEngine::new(None).unwrap()
}

pub(crate) fn options(seed: u64, zero_knowledge: bool) -> SetupOptions {
    SetupOptions::new("test").insecure_seed(seed).zero_knowledge(zero_knowledge)
}

/// The keys of a family with the types of a circuit.
pub(crate) fn family(
    circuit: &Squares,
    instances: usize,
    options: &SetupOptions,
) -> (FamilyKey, Vec<ProvingKey>) {
    let prepared = PreparedCircuit::new(circuit).unwrap();
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    let key = setup_family(&prepared, instances, &engine(), options, keep, |_| {}).unwrap();
    (key, types)
}

/// A circuit with derived keys; it has all types of the family.
pub(crate) fn derived(
    circuit: Squares,
    family: &FamilyKey,
    types: Vec<ProvingKey>,
) -> Bench<Squares> {
    let prepared = PreparedCircuit::new(&circuit).unwrap();
    let (aggregation, verifying) = derive(family, &prepared, "{}", &engine()).unwrap();
    let layout = prepared.layout().clone();
    let wiring = layout.wiring(Masking::new(family.header().zero_knowledge));
    drop(prepared);
    let keys = ProverKeys { verifying, aggregation, types };
    Bench { circuit, keys, layout, wiring, engine: engine() }
}

/// Adversarial test 79: derived keys are those of a setup with the same trapdoors, byte for byte, for
/// every number of subcircuits, with and without masks, types without shared wires, and public ends,
/// whatever the family's bound.
#[test]
fn a79_derived_keys_are_those_of_a_setup() {
    let lonely = Squares { lonely: true, ..Squares::new(&[1, 0]) };
    let closed = Squares { public: false, ..Squares::new(&[0, 1, 0]) };
    let circuits = [Squares::new(&[0, 1]), Squares::new(&[0, 1, 1, 0, 1]), lonely, closed];
    for zero_knowledge in [true, false] {
        for circuit in circuits.iter().chain([&Squares::new(&[0])]) {
            let options = options(3, zero_knowledge);
            let made = setup(circuit, &engine(), &options).unwrap();
            let n = made.aggregation.instances();
            let mut digests = HashSet::new();
            for most in [n, n + 1, 17] {
                let (family, types) = family(circuit, most, &options);
                let prepared = PreparedCircuit::new(circuit).unwrap();
                let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine()).unwrap();
                assert_eq!(verifying.family, Some(family.digest().unwrap()));
                digests.insert(family.digest().unwrap());
                let without_family = VerifyingKey { family: None, ..verifying.clone() };
                assert_eq!(without_family.to_bytes(), made.verifying.to_bytes());
                assert_eq!(VerifyingKey::from_bytes(&verifying.to_bytes()), Ok(verifying));
                let bytes = |key: &crate::keys::AggregationKey| {
                    let points = [key.phi(), key.st(), key.sb(), key.sg()].map(|p| p.unwrap());
                    let of_types = key.elements().unwrap().iter().flatten().copied();
                    let twos = key.psi().unwrap().iter().copied().chain(of_types);
                    let twos: Vec<_> = twos.chain([*key.gamma().unwrap()]).collect();
                    (points.map(<[_]>::to_vec), twos, key.type_of().unwrap().to_vec())
                };
                assert_eq!(bytes(&aggregation), bytes(&made.aggregation));
                for (a, b) in types.iter().zip(&made.types) {
                    assert_eq!(a.elements().alpha_1, b.elements().alpha_1);
                    assert_eq!(a.l_query().unwrap(), b.l_query().unwrap());
                }
            }
            assert_eq!(digests.len(), 3, "the digest is that of the whole key");
        }
    }
}

/// Adversarial test 80: with one power of phi at infinity, the elements of a subcircuit vanish from the
/// commitments, and nothing constrains its proof. Guards: the digest that verifiers pin covers every
/// part of the key.
#[test]
fn a80_the_digest_of_a_family_is_that_of_the_whole_key() {
    let mut key = family(&Squares::new(&[0, 1]), 8, &options(10, true)).0;
    let genuine = key.digest().unwrap();
    let mut digests = HashSet::from([genuine]);
    // Infinity is in the group, so no check of points would notice.
    for section in ["phi", "ic"] {
        let points = key.sections().get::<G1Point>(section).unwrap().to_vec();
        for at in 0..points.len() {
            let mut changed = points.clone();
            changed[at] = G1Point::sum(&[]);
            key.sections_mut().replace(section, changed);
            assert!(digests.insert(key.digest().unwrap()), "{section} {at}");
        }
        key.sections_mut().replace(section, points);
    }
    for section in ["psi", "gamma", "elements"] {
        let points = key.sections().get::<G2Point>(section).unwrap().to_vec();
        for at in 0..points.len() {
            let mut changed = points.clone();
            changed[at] = G2Point::sum(&[]);
            key.sections_mut().replace(section, changed);
            assert!(digests.insert(key.digest().unwrap()), "{section} {at}");
        }
        key.sections_mut().replace(section, points);
    }
    // Name, parameters, trust, bound, modes, types.
    let header = key.sections().get::<u8>("header").unwrap().to_vec();
    for at in 0..header.len() {
        let mut changed = header.clone();
        changed[at] ^= 1;
        key.sections_mut().replace("header", changed);
        assert!(digests.insert(key.digest().unwrap()), "header {at}");
    }
    key.sections_mut().replace("header", header);
    assert_eq!(key.digest().unwrap(), genuine);
}

/// Proofs under derived keys are accepted, for several layouts over the same types.
#[test]
fn one_family_serves_many_layouts() {
    let (family, mut types) = family(&Squares::new(&[0, 1]), 8, &options(4, true));
    for kinds in [&[0, 1][..], &[1, 0, 1], &[0, 1, 1, 0, 1], &[1, 0, 0, 0, 1, 0, 1, 1]] {
        let bench = derived(Squares::new(kinds), &family, types);
        let cheater = Cheater::new(&bench, &Fr::from(5u64));
        assert_eq!(bench.verify(&cheater.public, &cheater.finish()), Ok(()), "{kinds:?}");
        drop(cheater);
        types = bench.keys.types;
    }
}

/// A wiring like that of the circuit, in which the last reader of w_1 does not read it.
fn one_reader_less(wiring: &Wiring) -> Wiring {
    let mut other = wiring.clone();
    let writer = other.slots.iter().position(|slot| slot.multiplicity > 1).unwrap();
    let address = other.slots[writer].address;
    let reader = other.slots.iter().rposition(|slot| slot.address == address).unwrap();
    assert!(reader > writer);
    other.slots[writer].multiplicity -= 1;
    other.slots[reader] = SlotAccess::UNUSED;
    other.check_stars().unwrap();
    other
}

/// Adversarial test 80: a proof under the key of another number of subcircuits, another wiring or
/// another family. Guards: the digest of the key; the commitments to S in the derived key.
#[test]
fn a80_proofs_belong_to_one_derived_key() {
    let circuit = Squares::new(&[0, 1, 1, 0, 1]);
    let (first, types) = family(&circuit, 8, &options(5, true));
    let (second, _) = family(&circuit, 8, &options(6, true));
    let mut bench = derived(circuit.clone(), &first, types);
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    let (proof, public) = (cheater.finish(), cheater.public.clone());
    drop(cheater);
    let other_wiring = one_reader_less(&bench.wiring);
    let key = |family: &FamilyKey, wiring: &Wiring| derive_wiring(family, wiring, "{}").unwrap();
    let longer = PreparedCircuit::new(&Squares::new(&[0, 1, 1, 0, 1, 0]))
        .unwrap()
        .layout()
        .wiring(Masking::Masked);
    for wiring_and_family in [(&first, &longer), (&first, &other_wiring), (&second, &bench.wiring)]
    {
        let (_, verifying) = key(wiring_and_family.0, wiring_and_family.1);
        let verdict = verify_with_test_keys(&verifying, &public, &proof);
        assert!(
            matches!(verdict, Err(VerifyError::Proof(ProofError::ForeignKey { .. }))),
            "{verdict:?}"
        );
        // The digest is not the only guard: with it changed, the equations fail.
        if verifying.instances == bench.keys.verifying.instances {
            let mut moved = proof.clone();
            moved[..42].copy_from_slice(&Proof::begin(&verifying.digest()).as_bytes()[..42]);
            let verdict = verify_with_test_keys(&verifying, &public, &moved);
            assert!(matches!(verdict, Err(VerifyError::Equations { .. })), "{verdict:?}");
        }
    }
    // Instance proofs of this wiring, aggregated under the key of the other one.
    let (aggregation, verifying) = key(&first, &other_wiring);
    let own = std::mem::replace(&mut bench.keys.verifying, verifying);
    let own_aggregation = std::mem::replace(&mut bench.keys.aggregation, aggregation);
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    cheater.assert_fails(&cheater.finish(), &[Z]);
    drop(cheater);
    // The same with the points S of this wiring: the other key does not commit to them.
    bench.keys.aggregation = own_aggregation;
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    cheater.assert_fails(&cheater.finish(), &[T]);
    drop(cheater);
    // Control: with its own key it is accepted.
    bench.keys.verifying = own;
    assert_eq!(bench.verify(&public, &proof), Ok(()));
}

/// A key for another wiring over an honest family is not taken for one that follows from it. Guards: the comparison of the
/// derived key, on which `verify` and `inspect` rely before they name the contributors of a ceremony.
#[test]
fn a_key_follows_from_its_own_wiring_only() {
    let circuit = Squares::new(&[0, 1, 1, 0, 1]);
    let (first, _) = family(&circuit, 8, &options(5, true));
    let (second, _) = family(&circuit, 8, &options(6, true));
    let wiring = PreparedCircuit::new(&circuit).unwrap().layout().wiring(Masking::Masked);
    let other = one_reader_less(&wiring);
    let follows = |family: &FamilyKey, wiring: &Wiring, key: &VerifyingKey| {
        follows_from(family, wiring, key, &engine()).unwrap()
    };
    let key = |wiring: &Wiring| derive_wiring(&first, wiring, "{}").unwrap().1;
    let (own, mut rewired) = (key(&wiring), key(&other));
    assert!(follows(&first, &wiring, &own) && follows(&first, &other, &rewired));
    assert!(!follows(&first, &wiring, &rewired) && !follows(&first, &other, &own));
    assert!(!follows(&second, &wiring, &own));
    // Even with the names and layout digest of the right key.
    rewired.layout = own.layout;
    assert!(!follows(&first, &wiring, &rewired));
}

/// Adversarial test 82: a family has more powers than a layout uses; a component of a commitment at
/// the first unused one. Guards: the folded keys are polynomials of the layout's degree.
#[test]
fn a82_components_at_unused_powers() {
    let circuit = Squares::new(&[0, 1, 1, 0, 1]);
    let (family, types) = family(&circuit, 32, &options(7, true));
    let (psi, phi) = (family.psi().unwrap()[2 * 8], family.phi().unwrap()[2 * 8]);
    let in_v = pairing(&G1Point::generator(), &psi);
    let in_w = pairing(&phi, &G2Point::generator());
    let bench = derived(circuit, &family, types);
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    let add = |code: &[u8], extra: &Gt| {
        Gt::decompress(code.try_into().unwrap()).unwrap().add(extra).encode()
    };
    for (field, extra, equation) in
        [(ProofField::CmA, in_v, T), (ProofField::CmC, in_v, T), (ProofField::CmB, in_w, U)]
    {
        let proof = cheater.finish_tampered(Box::new(move |sent, code| match sent == field {
            true => add(&code, &extra),
            false => code,
        }));
        cheater.assert_fails(&proof, &[equation]);
    }
    // cm_D comes before the challenges of the memory check: with those of the honest proof.
    let proof = cheater.finish();
    let log = record(&bench, &cheater.public, &proof);
    let code = add(field_of(&bench, &proof, ProofField::CmD), &in_v);
    let forged = with_field(&bench, &proof, ProofField::CmD, &code);
    let vk = &bench.keys.verifying;
    assert_eq!(failing(log.frozen(), vk, &cheater.public, &forged), [T]);
    assert!(bench.verify(&cheater.public, &forged).is_err());
}

/// Adversarial test 83: the ledger key of one subcircuit more or fewer, and a filled pad, under a
/// derived key for a number that is not a power of two.
#[test]
fn a83_ledger_keys_of_derived_keys() {
    let circuit = Squares::new(&[0, 1, 1, 0, 1]);
    let (family, types) = family(&circuit, 32, &options(8, true));
    let bench = derived(circuit, &family, types);
    let cheater = Cheater::new(&bench, &Fr::from(5u64));
    for (ledger, equations) in [(6, &[KeyW][..]), (4, &[Z, KeyW])] {
        let mut shared = cheater.shared();
        shared.other_ledger = Some(ledger);
        let committing = cheater.begin(&shared, Merlin::new(), &cheater.commitments());
        let vectors = cheater.proofs(&committing.memory());
        cheater.assert_fails(committing.finish(&vectors).unwrap().as_bytes(), equations);
    }
    // A pad that is filled with a proof of another subcircuit.
    let proof = cheater.finish_with(|_, v| (v.a[6], v.b[6]) = (v.a[0], v.b[0]));
    cheater.assert_fails(&proof, &[Z]);
}

/// One subcircuit of a type that has the name and slots of another one, but not its constraints.
struct Renamed;

impl Circuit for Renamed {
    type Input = ();
    type Plan = ();
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<(), LayoutError> {
        let kind = layout.subcircuit_type("squares-0", 3);
        (0..3).for_each(|slot| layout.unconstrained(kind, slot));
        let instance = layout.instance(kind);
        (0..3).for_each(|slot| layout.unused(instance, slot));
        Ok(())
    }

    fn execute(&self, (): &(), (): &(), _: &mut WireValues) -> Result<(), CircuitError> {
        Ok(())
    }

    fn private_input(&self, (): &(), (): &(), (): &(), _: InstanceId) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(&self, (): &(), _: &Subcircuit, _: Option<&()>) -> Result<(), SynthesisError> {
        Ok(())
    }
}

/// Adversarial test 85: counts at and over the bound, and circuits of other types.
#[test]
fn a85_bounds_of_families() {
    let refused = |family: &FamilyKey, circuit: &Squares| {
        let prepared = PreparedCircuit::new(circuit).unwrap();
        derive(family, &prepared, "{}", &engine()).map(drop).unwrap_err()
    };
    for most in [1, 2, 3, 4] {
        let (family, _) = family(&Squares::new(&[0, 1]), most, &options(9, true));
        assert_eq!(family.phi().unwrap().len(), 2 * most.next_power_of_two() - 1);
        for n in 1..=most {
            let circuit = Squares::new(&vec![0; n]);
            let prepared = PreparedCircuit::new(&circuit).unwrap();
            let (_, verifying) = derive(&family, &prepared, "{}", &engine()).unwrap();
            assert_eq!(verifying.instances, n as u64);
            // Only the types that occur are in the key.
            assert_eq!(verifying.types.len(), 1);
        }
        let error = refused(&family, &Squares::new(&vec![0; most + 1]));
        assert!(matches!(error, DeriveError::TooMany { found, .. } if found == most + 1));
        let text = error.to_string();
        assert!(text.contains(&format!("{} subcircuits", most + 1)), "{text}");
    }
    let (family, _) = family(&Squares::new(&[0, 1]), 4, &options(9, true));
    let error = refused(&family, &Squares::new(&[0, 1, 2]));
    assert!(matches!(&error, DeriveError::NoType { kind, .. } if kind == "squares-2"), "{error}");
    // The same type names and slots with other constraints: those of types 0 and 1 with a name changed.
    let prepared = PreparedCircuit::new(&Renamed).unwrap();
    let error = derive(&family, &prepared, "{}", &engine()).map(drop).unwrap_err();
    assert!(matches!(&error, DeriveError::Constraints { kind } if kind == "squares-0"), "{error}");
    // Pinned types are not synthesized, but only if all of them are those of the family, whose keys have masks.
    let derived = |masked: [u8; 32], unmasked: [u8; 32]| {
        let prepared = PreparedCircuit::new(&Renamed).unwrap();
        let prepared = prepared.with_pinned_types([masked, unmasked]);
        derive(&family, &prepared, "{}", &engine()).map(drop)
    };
    let (pinned, none) = (family.header().digest_of_types(), [0; 32]);
    assert!(derived(pinned, none).is_ok());
    let refused = |result| assert!(matches!(result, Err(DeriveError::Constraints { .. })));
    refused(derived(none, pinned));
    let types: Vec<_> =
        family.header().types.iter().map(|t| (t.kind.name.as_str(), t.kind.r1cs)).collect();
    for at in 0..types.len() {
        let (mut missing, mut changed) = (types.clone(), types.clone());
        missing.remove(at);
        changed[at].1[31] ^= 1;
        for types in [missing, changed] {
            refused(derived(digest_of_types(types), none));
        }
    }
    for instances in [0, (1 << 32) + 1, usize::MAX] {
        let keep = |_| Ok::<_, Infallible>(());
        let options = options(9, true);
        let result = setup_family(&prepared, instances, &engine(), &options, keep, |_| {});
        assert!(matches!(result, Err(SetupError::FamilySize { .. })), "{instances}");
    }
    // A type of the same name with other slots, and a wiring that is not a star.
    let circuit = Squares::new(&[0, 1]);
    let wiring = PreparedCircuit::new(&circuit).unwrap().layout().wiring(Masking::Masked);
    let mut other = wiring.clone();
    other.types[0].slots += 1;
    other.slots.insert(0, SlotAccess::UNUSED);
    let error = derive_wiring(&family, &other, "{}").map(drop).unwrap_err();
    assert!(matches!(error, DeriveError::Slots { found: 6, expected: 5, .. }), "{error}");
    let mut other = wiring;
    other.slots[1].multiplicity += 1;
    let error = derive_wiring(&family, &other, "{}").map(drop).unwrap_err();
    assert!(matches!(error, DeriveError::Star(_)), "{error}");
}

/// Keys of a family that were made from other code are refused, before anything is derived. Guards: the
/// comparison of each type's constraints in `keys verify`.
#[test]
fn families_of_other_code_are_refused() {
    let options = options(11, true);
    let (key, types) = family(&Squares::new(&[0, 1]), 4, &options);
    let check = |circuit: &PreparedCircuit<'_>, key: &FamilyKey, types: &[ProvingKey]| {
        check_family_circuit(circuit, key, types, &engine(), 2)
    };
    let both = Squares::new(&[0, 1]);
    let both = PreparedCircuit::new(&both).unwrap();
    check(&both, &key, &types).unwrap();
    assert!(matches!(check(&both, &key, &types[..1]), Err(CircuitMismatch::Types)));
    // The circuit lacks a type.
    let one = Squares::new(&[0]);
    let one = PreparedCircuit::new(&one).unwrap();
    assert!(matches!(check(&one, &key, &types), Err(CircuitMismatch::Types)));
    // A family whose type has the name and the slots, but no constraints.
    let renamed = PreparedCircuit::new(&Renamed).unwrap();
    let mut free = Vec::new();
    let keep = |key| {
        free.push(key);
        Ok::<_, Infallible>(())
    };
    let other = setup_family(&renamed, 4, &engine(), &options, keep, |_| {}).unwrap();
    check(&renamed, &other, &free).unwrap();
    let refused = check(&one, &other, &free);
    assert!(
        matches!(&refused, Err(CircuitMismatch::Constraints { kind, .. }) if kind == "squares-0")
    );
    let error = derive(&other, &one, "{}", &engine()).map(drop).unwrap_err();
    assert!(matches!(error, DeriveError::Constraints { .. }), "{error}");
}

/// The last of four keys, from `first` on, is in their table.
fn in_table(first: u64, shape: fn(Table) -> Table) -> Closures {
    let table = move || shape(Table::keys((first..first + 4).map(Fr::from)));
    Closures::new(
        move |layout| {
            layout.table("four", table());
            let kind = layout.subcircuit_type("asks", 0);
            layout.instance(kind);
            Ok(Vec::new())
        },
        |_, _| Ok(()),
        |_| Ok(()),
        move |s, _| {
            let key = s.commit(|| Ok(Fr::from(first + 3)))?;
            let four = hekaton_circuit::Layout::builder().table("four", table());
            s.table(four)?.contains(&key)
        },
    )
}

/// The keys of a family of [`in_table`], and whether the rows of its table are pairs. Layouts with other rows have keys of this family
/// only then.
fn check_tables(shape: fn(Table) -> Table, pairs: usize) {
    let [one, other] = [1, 5].map(|first| in_table(first, shape));
    let [of_one, of_other] = [&one, &other].map(|circuit| PreparedCircuit::new(circuit).unwrap());
    let wiring = of_one.layout().wiring(Masking::Masked);
    assert_eq!(wiring.types.iter().map(|kind| kind.pairs).max(), Some(pairs));
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    let family = setup_family(&of_one, 4, &engine(), &options(5, true), keep, |_| {}).unwrap();
    match derive(&family, &of_other, "{}", &engine()) {
        Ok(_) => assert!(pairs > 0),
        Err(error) => {
            assert!(pairs == 0, "{error}");
            assert!(error.to_string().contains("type 'table-four' has other constraints"));
        }
    }
    let (aggregation, verifying) = derive(&family, &of_one, "{}", &engine()).unwrap();
    let keys = ProverKeys { verifying, aggregation, types };
    let run = prove(&one, &(), &keys, &engine(), &ProveOptions::new()).unwrap();
    assert_eq!(verify_with_test_keys(&keys.verifying, &[], run.proof.as_bytes()), Ok(()));
}

/// A table that one subcircuit holds is a part of its constraints, so a family has one of them. The rows of other tables are
/// the layout's, and may differ within a family.
#[test]
fn tables_of_a_family() {
    check_tables(|table| table, 0);
    check_tables(|table| table.rows_per_subcircuit(4), 0);
    check_tables(|table| table.rows_per_subcircuit(3), 2);
    check_tables(|table| table.rows_in_each_subcircuit(4), 4);
}
