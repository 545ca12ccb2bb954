//! Honest keys of every kind pass, and relations cover all of them.

use super::*;
use hekaton_core::derive;
use hekaton_core::protocol::forgery;
use hekaton_testing::{Doublings, FanOut, Histogram, Readers, Shop, Squares, Squarings};

fn passes<C: Circuit>(circuit: &C, zero_knowledge: bool) -> KeyCheckReport {
    let keys = keys_of(circuit, zero_knowledge);
    check(&keys, &wiring_of(circuit, zero_knowledge), None).unwrap()
}

/// The elements that verifiers use and no relation covers.
fn gaps(report: &KeyCheckReport) -> Vec<&str> {
    report.not_covered.iter().map(String::as_str).collect()
}

/// Keys with and without masks, of one or several types, with and without buses, parameters, pairs,
/// tables and memories.
#[test]
fn honest_keys_pass_and_are_covered() {
    for zero_knowledge in [true, false] {
        let all = [
            passes(&Squares::new(&[0, 1, 1, 0, 1]), zero_knowledge),
            passes(&Squares::new(&[0]), zero_knowledge),
            passes(&Squares { public: false, ..Squares::new(&[0, 1, 0]) }, zero_knowledge),
            passes(&Squarings, zero_knowledge),
            passes(&Doublings { links: 6, extra: 0 }, zero_knowledge),
            passes(&Readers(3), zero_knowledge),
            passes(&FanOut { readers: 7, slots: 3 }, zero_knowledge),
            passes(&Shop::new(2), zero_knowledge),
            passes(&Histogram::new(2, 3), zero_knowledge),
        ];
        for report in all {
            assert!(report.points > 30 && report.relations > 30, "{report:?}");
            assert_eq!(gaps(&report), [""; 0]);
        }
    }
}

/// Without slots and entries Theta is not a sum of other elements, and the report says so.
#[test]
fn what_no_relation_covers_is_reported() {
    let lonely = Squares { lonely: true, ..Squares::new(&[0, 1]) };
    assert_eq!(gaps(&passes(&lonely, true)), [""; 0]);
    let report = passes(&lonely, false);
    let theta = "type 'lonely': Theta, as it has no slots";
    assert_eq!(gaps(&report), [theta, "type 'lonely': eta, as no point of D is compared"]);
    // Both factors of x^2, computed twice, are x, so its rows are one to A and B.
    let report = passes(&Squares::new(&[0, 1]), true);
    assert!(report.not_covered.is_empty());
    assert_eq!(report.only_provers.len(), 1);
    assert!(report.only_provers[0].starts_with("type 'squares-1': 2 of 23 points"), "{report:?}");
    // Without the circuit nothing says what the addresses and multiplicities should be.
    let keys = keys_of(&Squares::new(&[0, 1]), true);
    let report = super::super::check_keys(&keys, None, &engine(), |_| {}).unwrap();
    assert!(report.not_covered[0].contains("St, Sb and SV"), "{report:?}");
}

#[test]
fn honest_families_and_derived_keys_pass() {
    let circuit = Squares::new(&[0, 1]);
    let family = family_of(&circuit);
    let report = check_of_family(&family, None).unwrap();
    assert!(report.points > 100 && report.relations > 25, "{report:?}");
    assert_eq!(gaps(&report), [""; 0]);
    for with_buses in [family_of(&Shop::new(2)), family_of(&Histogram::new(2, 3))] {
        assert_eq!(gaps(&check_of_family(&with_buses, None).unwrap()), [""; 0]);
    }
    let (family, types) = family;
    let longer = Squares::new(&[0, 1, 1, 0, 1]);
    let prepared = PreparedCircuit::new(&longer).unwrap();
    let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine()).unwrap();
    let keys = ProverKeys { verifying, aggregation, types };
    assert_eq!(gaps(&check(&keys, &wiring_of(&longer, true), None).unwrap()), [""; 0]);
}

/// Keys of a layout are not those of another one with the same types.
#[test]
fn keys_of_another_layout_are_refused() {
    let circuit = Doublings { links: 6, extra: 0 };
    let (keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    let differs = |change: &dyn Fn(&mut Wiring)| {
        let mut other = wiring.clone();
        change(&mut other);
        relation(check(&keys, &other, None))
    };
    assert_eq!(differs(&|_| {}), None);
    assert_eq!(differs(&|w| w.slots[5].address += 1), Some(Relation::Sb));
    assert_eq!(differs(&|w| w.slots[5].multiplicity += 1), Some(Relation::St));
    assert_eq!(differs(&|w| w.types[0].slots += 1), Some(Relation::Layout));
    assert_eq!(differs(&|w| w.type_of.truncate(5)), Some(Relation::Layout));
    assert_eq!(differs(&|w| w.types[0].name.push('x')), Some(Relation::Layout));
    // The same with parameters and pairs.
    let circuit = Shop::new(2);
    let (keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    let differs = |change: &dyn Fn(&mut Wiring)| {
        let mut other = wiring.clone();
        change(&mut other);
        relation(check(&keys, &other, None))
    };
    let one = Fr::from(1u64);
    assert_eq!(differs(&|_| {}), None);
    assert_eq!(differs(&|w| w.parameters[1] += one), Some(Relation::St));
    assert_eq!(differs(&|w| w.pairs[2][0] += one), Some(Relation::St));
    assert_eq!(differs(&|w| w.pairs[2][1] += one), Some(Relation::Values));
}

/// The test double that makes forgeries makes honest keys when nothing is changed.
#[test]
fn unchanged_trapdoors_make_the_same_keys() {
    let circuit = Squares::new(&[0, 1]);
    let (honest, options) = (keys_of(&circuit, true), options(true));
    let mut again = forgery::setup_with(&circuit, (&options, SEED), |_| {});
    assert_eq!(honest.verifying.to_bytes(), again.verifying.to_bytes());
    forgery::commit_again(&mut again);
    assert_eq!(honest.verifying.to_bytes(), again.verifying.to_bytes());
}

/// The check of types with many rows does not compare points of L and D for variables in C, and the
/// report says so. Everything else is compared.
#[test]
fn large_types_are_covered_but_for_variables_in_c() {
    let circuit = Histogram::new(1, 2_000);
    let (mut keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    assert!(keys.types[0].constraints() > 1 << 14);
    let report = check(&keys, &wiring, None).unwrap();
    assert_eq!(gaps(&report), [""; 0]);
    assert!(report.only_provers.iter().any(|gap| gap.contains("'part'")), "{report:?}");
    let three = Fr::from(3u64);
    for section in ["a", "x", "h", "d"] {
        let good = keys.types[0].sections().get::<G1Point>(section).unwrap().to_vec();
        change(keys.types[0].sections_mut(), section, |points: &mut Vec<G1Point>| {
            points[0] = points[0].add(&g(three));
        });
        assert!(check(&keys, &wiring, None).is_err(), "{section}");
        keys.types[0].sections_mut().replace(section, good);
    }
    change(keys.types[0].sections_mut(), "b", |points: &mut Vec<G2Point>| {
        points[0] = points[0].add(&h(three));
    });
    assert!(check(&keys, &wiring, None).is_err());
}
