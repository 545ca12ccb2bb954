//! Each relation is needed: without it one forgery passes that it refuses. Forgers know the trapdoors
//! where that makes a change small.

use super::*;
use ark_ff::Field;
use hekaton_core::mirage::Elements;
use hekaton_core::protocol::forgery::{
    change_element, commit_again, know_powers, rewire, setup_with, trapdoors, without_buses,
};
use hekaton_testing::{Doublings, Shop, Squares};

/// Asserts that keys pass without a relation, and only without it.
#[track_caller]
fn needed(keys: &ProverKeys, wiring: &Wiring, needed: Relation) {
    assert_eq!(relation(check(keys, wiring, None)), Some(needed));
    let without = check(keys, wiring, Some(needed));
    assert!(without.is_ok(), "{needed}: {without:?}");
}

fn shop() -> (ProverKeys, Wiring) {
    (keys_of(&Shop::new(2), true), wiring_of(&Shop::new(2), true))
}

/// The commitments of the verifying key, and what it says of types and buses.
#[test]
fn relations_of_the_verifying_key() {
    let commitments = [
        Relation::CmSt,
        Relation::CmSg,
        Relation::CmSb,
        Relation::CmTags,
        Relation::CmValues,
        Relation::CmGamma,
        Relation::CmDelta,
        Relation::CmEta,
        Relation::CmTheta,
        Relation::Constant,
    ];
    for (index, name) in commitments.into_iter().enumerate() {
        let (mut keys, wiring) = shop();
        change_element(&mut keys, index);
        if name == Relation::Constant {
            // Each type compares it.
            assert_eq!(relation(check(&keys, &wiring, None)), Some(name));
            assert!(check(&keys, &wiring, Some(name)).is_ok());
            continue;
        }
        needed(&keys, &wiring, name);
    }
    let (mut keys, wiring) = shop();
    keys.verifying.type_map[0] ^= 1;
    needed(&keys, &wiring, Relation::TypeMap);
    let (mut keys, wiring) = shop();
    without_buses(&mut keys);
    needed(&keys, &wiring, Relation::Buses);
}

/// The powers, and the elements of types.
#[test]
fn relations_of_powers_and_elements() {
    let three = Fr::from(3u64);
    // All powers of phi times 3; the commitments are made anew.
    let (mut keys, wiring) = shop();
    change(keys.aggregation.sections_mut(), "phi", |points: &mut Vec<G1Point>| {
        points.iter_mut().for_each(|point| *point = point.mul(&three));
    });
    commit_again(&mut keys);
    needed(&keys, &wiring, Relation::Generators);
    // Odd powers are in no commitment.
    let (mut keys, wiring) = shop();
    change(keys.aggregation.sections_mut(), "phi", |points: &mut Vec<G1Point>| {
        points[3] = g(three)
    });
    needed(&keys, &wiring, Relation::Phi);
    let (mut keys, wiring) = shop();
    change(keys.aggregation.sections_mut(), "psi", |points: &mut Vec<G2Point>| {
        points[3] = h(three)
    });
    needed(&keys, &wiring, Relation::Psi);
    // One delta for two types: that of type 1 is scaled, with all queries that it divides.
    let (mut keys, wiring) = shop();
    let secrets = trapdoors(3, SEED);
    let factor = secrets.types[0][0] * secrets.types[1][0].inverse().unwrap();
    let down = factor.inverse().unwrap();
    let sections = keys.types[1].sections_mut();
    for section in ["l", "x", "h"] {
        change(sections, section, |points: &mut Vec<G1Point>| {
            points.iter_mut().for_each(|point| *point = point.mul(&down));
        });
    }
    change(sections, "elements", |elements: &mut Vec<Elements>| {
        elements[0].delta_1 = elements[0].delta_1.mul(&factor);
        elements[0].delta_2 = elements[0].delta_2.mul(&factor);
    });
    read_again(&mut keys.types[1]);
    change(keys.aggregation.sections_mut(), "elements", |e: &mut Vec<G2Point>| {
        e[3] = e[3].mul(&factor)
    });
    commit_again(&mut keys);
    let elements = keys.aggregation.elements().unwrap();
    assert_eq!(elements[0][0], elements[1][0]);
    needed(&keys, &wiring, Relation::Distinct);
}

/// The elements that a proving key repeats.
#[test]
fn relations_of_repeated_elements() {
    type Change = fn(&mut Elements);
    let changes: [(Relation, Change); 3] = [
        (Relation::Delta, |e| e.delta_2 = e.delta_2.add(&h(Fr::from(3u64)))),
        (Relation::DeltaGroups, |e| e.delta_1 = e.delta_1.add(&g(Fr::from(3u64)))),
        (Relation::EtaGroups, |e| e.eta_1 = e.eta_1.add(&g(Fr::from(3u64)))),
    ];
    for (name, changed) in changes {
        let (mut keys, wiring) = shop();
        let sections = keys.types[1].sections_mut();
        change(sections, "elements", |elements: &mut Vec<Elements>| changed(&mut elements[0]));
        read_again(&mut keys.types[1]);
        needed(&keys, &wiring, name);
    }
    // Alpha and beta of one type, with the same product: its key and its points S are those of another
    // setup.
    let circuit = Squares::new(&[0, 1, 1, 0]);
    let (mut keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    let mut other = setup_with(&circuit, (&options(true), SEED), |secrets| {
        let three = Fr::from(3u64);
        secrets.alpha *= three;
        secrets.beta *= three.inverse().unwrap();
    });
    assert_eq!(
        keys.verifying.fixed_elements().alpha_beta,
        other.verifying.fixed_elements().alpha_beta
    );
    for section in ["st", "sb"] {
        let theirs = other.aggregation.sections().get::<G1Point>(section).unwrap().to_vec();
        change(keys.aggregation.sections_mut(), section, |points: &mut Vec<G1Point>| {
            (points[1], points[2]) = (theirs[1], theirs[2]);
        });
    }
    let sg = other.aggregation.sg().unwrap()[1];
    change(keys.aggregation.sections_mut(), "sg", |points: &mut Vec<G1Point>| points[1] = sg);
    std::mem::swap(&mut keys.types[1], &mut other.types[1]);
    commit_again(&mut keys);
    needed(&keys, &wiring, Relation::Shared);
}

/// The matrices, and the queries against them.
#[test]
fn relations_of_queries() {
    let circuit = Squares::new(&[0, 1]);
    let bench = || (keys_of(&circuit, true), wiring_of(&circuit, true));
    // A variable of the memory check in one of the author's rows, as yet with the coefficient 0.
    let zero = |key: &mut ProvingKey, matrix: [&'static str; 2], variable: u32| {
        let row = key.layout().rows();
        let sections = key.sections_mut();
        let zero = sections.get::<[u8; 32]>("coefficients").unwrap().len();
        let zero = u32::try_from(zero).unwrap();
        change(sections, "coefficients", |c: &mut Vec<[u8; 32]>| c.push([0; 32]));
        let at = sections.get::<u32>(matrix[0]).unwrap()[row];
        change(sections, matrix[0], |starts: &mut Vec<u32>| {
            starts[row + 1..].iter_mut().for_each(|start| *start += 1);
        });
        change(sections, matrix[1], |entries: &mut Vec<[u32; 2]>| {
            entries.insert(at as usize, [variable, zero]);
        });
    };
    let (mut keys, wiring) = bench();
    let address = u32::try_from(keys.types[0].layout().addresses().start).unwrap();
    zero(&mut keys.types[0], ["mb_rows", "mb"], address);
    read_again(&mut keys.types[0]);
    needed(&keys, &wiring, Relation::MemoryRows);
    // A variable listed twice, with two points that have the right sum.
    let (mut keys, wiring) = bench();
    let sections = keys.types[0].sections_mut();
    change(sections, "a_variables", |list: &mut Vec<u32>| list.push(list[list.len() - 1]));
    change(sections, "a", |points: &mut Vec<G1Point>| {
        let (last, part) = (points[points.len() - 1], g(Fr::from(3u64)));
        *points.last_mut().unwrap() = last.sub(&part);
        points.push(part);
    });
    needed(&keys, &wiring, Relation::Variables);
    // A point at infinity, for a variable whose only coefficient is 0.
    let (mut keys, wiring) = bench();
    let free = (0..u32::try_from(keys.types[1].variables()).unwrap())
        .find(|v| {
            let own = *v as usize >= keys.types[1].layout().len();
            own && !keys.types[1].a_query().unwrap().variables.contains(v)
        })
        .unwrap();
    zero(&mut keys.types[1], ["ma_rows", "ma"], free);
    let sections = keys.types[1].sections_mut();
    let place = sections.get::<u32>("a_variables").unwrap().partition_point(|v| *v < free);
    change(sections, "a_variables", |list: &mut Vec<u32>| list.insert(place, free));
    change(sections, "a", |list: &mut Vec<G1Point>| list.insert(place, G1Point::IDENTITY));
    read_again(&mut keys.types[1]);
    needed(&keys, &wiring, Relation::Infinity);
    // A point of X, which nothing else has.
    let (mut keys, wiring) = bench();
    change(keys.types[0].sections_mut(), "x", |points: &mut Vec<G1Point>| {
        points[2] = points[2].add(&g(Fr::from(3u64)));
    });
    needed(&keys, &wiring, Relation::ColumnsC);
    // Points of L and D, also of variables in C.
    for (section, at) in [("l", 5), ("l", usize::MAX), ("d", 0), ("d", usize::MAX)] {
        let (mut keys, wiring) = bench();
        change(keys.types[0].sections_mut(), section, |points: &mut Vec<G1Point>| {
            let at = at.min(points.len() - 1);
            points[at] = points[at].add(&g(Fr::from(3u64)));
        });
        needed(&keys, &wiring, Relation::Queries);
    }
}

/// A point of A with the point of L that goes with it, and Theta with the points S that go with it.
#[test]
fn relations_of_columns_and_theta() {
    let circuit = Squares::new(&[0, 1]);
    let secrets = trapdoors(2, SEED);
    let three = Fr::from(3u64);
    let wiring = wiring_of(&circuit, true);
    let honest = keys_of(&circuit, true);
    let (layout, variables) = (honest.types[1].layout(), honest.types[1].variables());
    // Some variables are pivots of rows of C, where the change shows again.
    let own = (layout.len()..variables).filter_map(|variable| {
        let list = honest.types[1].a_query().unwrap().variables;
        let place = list.iter().position(|v| *v as usize == variable)?;
        Some((place, variable - layout.auxiliary(variables).start))
    });
    let passed = own.filter(|(in_a, in_l)| {
        let mut keys = keys_of(&circuit, true);
        let sections = keys.types[1].sections_mut();
        change(sections, "a", |a: &mut Vec<G1Point>| a[*in_a] = a[*in_a].add(&g(three)));
        let factor = three * secrets.beta * secrets.types[1][0].inverse().unwrap();
        change(sections, "l", |l: &mut Vec<G1Point>| l[*in_l] = l[*in_l].add(&g(factor)));
        assert_eq!(relation(check(&keys, &wiring, None)), Some(Relation::ColumnsA));
        check(&keys, &wiring, Some(Relation::ColumnsA)).is_ok()
    });
    assert!(passed.count() > 0);
    // The same of B, with the points of D for the values of slots.
    let passed = layout.slot_values().filter(|variable| {
        let mut keys = keys_of(&circuit, true);
        let list = honest.types[1].b_query().unwrap().variables;
        let in_b = list.iter().position(|v| *v as usize == *variable).unwrap();
        let in_d = variable - layout.committed().start;
        let sections = keys.types[1].sections_mut();
        change(sections, "b", |b: &mut Vec<G2Point>| b[in_b] = b[in_b].add(&h(three)));
        let factor = three * secrets.alpha * secrets.types[1][1].inverse().unwrap();
        change(sections, "d", |d: &mut Vec<G1Point>| d[in_d] = d[in_d].add(&g(factor)));
        assert_eq!(relation(check(&keys, &wiring, None)), Some(Relation::ColumnsB));
        check(&keys, &wiring, Some(Relation::ColumnsB)).is_ok()
    });
    assert!(passed.count() > 0);
    // Theta plus H: e(K, Theta) grows by kappa, and all rows of slots that are traced back to u with it.
    let circuit = Doublings { links: 6, extra: 0 };
    let (mut keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    let secrets = trapdoors(1, SEED);
    change(keys.aggregation.sections_mut(), "elements", |e: &mut Vec<G2Point>| {
        e[2] = e[2].add(&h(three));
    });
    let per_slot = three * secrets.kappa * secrets.gamma.inverse().unwrap();
    let slots: Vec<_> = wiring.by_instance().map(|(_, slots)| slots.to_vec()).collect();
    let with_pivot_u = |sign: Fr| {
        move |points: &mut Vec<G1Point>| {
            for (point, slots) in points.iter_mut().zip(&slots) {
                let sum: i64 = slots.iter().map(|slot| slot.multiplicity).sum();
                *point = point.add(&g(sign * per_slot * Fr::from(sum)));
            }
        }
    };
    change(keys.aggregation.sections_mut(), "st", with_pivot_u(-Fr::from(1u64)));
    commit_again(&mut keys);
    needed(&keys, &wiring, Relation::Theta);
}

/// The points S of keys for one layout: shifted, with the commitments made anew.
#[test]
fn relations_of_public_sums() {
    let sections = [
        (Relation::Sg, "sg"),
        (Relation::Sb, "sb"),
        (Relation::St, "st"),
        (Relation::Tags, "stag"),
        (Relation::Values, "sv"),
    ];
    for (name, section) in sections {
        for at in [0, 1, 2] {
            let (mut keys, wiring) = shop();
            change(keys.aggregation.sections_mut(), section, |points: &mut Vec<G1Point>| {
                points[at] = points[at].add(&g(Fr::from(3u64)));
            });
            commit_again(&mut keys);
            needed(&keys, &wiring, name);
        }
    }
    // St of all instances of a type moved by the same, which differences would not show.
    let circuit = Doublings { links: 6, extra: 0 };
    let (mut keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    change(keys.aggregation.sections_mut(), "st", |points: &mut Vec<G1Point>| {
        points.iter_mut().for_each(|point| *point = point.add(&g(Fr::from(3u64))));
    });
    commit_again(&mut keys);
    needed(&keys, &wiring, Relation::St);
}

/// The keys of adversarial test 88, under which a false output of a chain is proven: nothing but the
/// relation for Sb finds them.
#[test]
fn a_rewired_chain_is_refused() {
    let circuit = Doublings { links: 6, extra: 0 };
    let (mut keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    let slots: Vec<Vec<_>> = wiring.by_instance().map(|(_, slots)| slots.to_vec()).collect();
    let (mut first, mut last) = (slots[0].clone(), slots[5].clone());
    std::mem::swap(&mut first[0].address, &mut last[0].address);
    rewire(&mut keys, &wiring, &[(0, first), (5, last)]);
    needed(&keys, &wiring, Relation::Sb);
}

/// No relation can see who chose phi and psi: with known ones, keys have the form of those of a setup, and
/// their maker can forge (spec: soundness#keys-verify). Only the digest differs.
#[test]
fn known_powers_pass_and_have_another_digest() {
    let (mut keys, wiring) = shop();
    let digest = keys.verifying.digest();
    know_powers(&mut keys, Fr::from(5u64), Fr::from(7u64));
    assert!(check(&keys, &wiring, None).is_ok());
    assert_ne!(keys.verifying.digest(), digest);
    // Commitments under the powers of the setup are noticed.
    let (mut keys, wiring) = shop();
    let genuine = keys.verifying.clone();
    know_powers(&mut keys, Fr::from(5u64), Fr::from(7u64));
    keys.verifying = genuine;
    assert!(check(&keys, &wiring, None).is_err());
}

/// A family: IC of a multiplicity at infinity, as in adversarial test 89, and others; Theta replaced by
/// gamma; the proving key of another type.
#[test]
fn relations_of_families() {
    let circuit = Squares::new(&[0, 1]);
    type Keys = (FamilyKey, Vec<ProvingKey>);
    type Change<'a> = &'a dyn Fn(&mut Keys);
    let of_family = |change: Change<'_>, name: Relation| {
        let mut keys = family_of(&circuit);
        change(&mut keys);
        assert_eq!(relation(check_of_family(&keys, None)), Some(name));
        let without = check_of_family(&keys, Some(name));
        assert!(without.is_ok(), "{name}: {without:?}");
    };
    let ic = |at: usize, by: Fr| {
        move |keys: &mut Keys| {
            change(keys.0.sections_mut(), "ic", |points: &mut Vec<G1Point>| {
                points[at] = points[at].add(&g(by));
            });
        }
    };
    let layout = family_of(&circuit).0.header().types[0].variables();
    let three = Fr::from(3u64);
    of_family(&ic(layout.multiplicities().start, three), Relation::IcMu);
    of_family(&ic(0, three), Relation::Ic);
    of_family(&ic(layout.g(), three), Relation::Ic);
    of_family(&ic(layout.addresses().start, three), Relation::Ic);
    of_family(
        &|(_, types)| {
            let sections =
                std::mem::replace(types[1].sections_mut(), Sections::new(ProvingKey::KIND));
            types[1] = ProvingKey::new("other", sections).unwrap();
        },
        Relation::Types,
    );
    // At infinity two relations refuse it: the one for all points, and the one for the variable.
    for (at, name) in [
        (0, Relation::Ic),
        (layout.multiplicities().start, Relation::IcMu),
        (layout.addresses().start, Relation::Ic),
    ] {
        let mut keys = family_of(&circuit);
        change(keys.0.sections_mut(), "ic", |points: &mut Vec<G1Point>| {
            points[at] = G1Point::IDENTITY
        });
        assert_eq!(relation(check_of_family(&keys, None)), Some(Relation::Infinity));
        let without = check_of_family(&keys, Some(Relation::Infinity));
        assert_eq!(relation(without), Some(name));
    }
}

/// The list of relations is that of the tests above; [`Relation::Layout`] is never left out, since the
/// sums over the layout rest on it.
#[test]
fn every_relation_has_a_name_of_its_own() {
    let names: std::collections::HashSet<String> =
        Relation::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), Relation::ALL.len());
    let source = include_str!("forgeries.rs");
    for relation in Relation::ALL.iter().filter(|relation| **relation != Relation::Layout) {
        assert!(source.contains(&format!("Relation::{relation:?}")), "{relation:?}");
    }
}
