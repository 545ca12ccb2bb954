//! A changed point of any section is refused.

use super::*;
use ark_ff::Zero;
use hekaton_testing::{Shop, Squares};

/// A point of the curve outside of the subgroup: (0, 2) has order 3.
fn outside() -> G1Point {
    let two = ark_bls12_381::Fq::from(2u64);
    ark_bls12_381::G1Affine::new_unchecked(ark_bls12_381::Fq::zero(), two).into()
}

/// The points at which a section of `len` points is damaged.
fn places(len: usize) -> Vec<usize> {
    let mut places = vec![0, 1, len / 4, len / 3, len / 2, len.saturating_sub(2), len - 1];
    places.retain(|at| *at < len);
    places.sort_unstable();
    places.dedup();
    places
}

/// Changes points of a section one after the other in three ways: to another point of the group, to
/// infinity, and out of the group. Returns how many changes `refused` was asked about.
fn damage<G: Group + bytemuck::Pod, K>(
    keys: &mut K,
    sections: impl Fn(&mut K) -> &mut Sections,
    (section, other): (&'static str, G),
    refused: &dyn Fn(&K) -> bool,
) -> usize {
    let good = sections(keys).get::<G>(section).unwrap().to_vec();
    let mut count = 0;
    for at in places(good.len()) {
        let changes = [good[at].add(&other), G::IDENTITY, off_curve(&good[at])];
        for (way, changed) in changes.into_iter().enumerate() {
            if changed == good[at] {
                continue;
            }
            let mut points = good.clone();
            points[at] = changed;
            sections(keys).replace(section, points);
            assert!(refused(keys), "section {section}, point {at}, change {way}");
            count += 1;
        }
    }
    sections(keys).replace(section, good);
    count
}

/// Bytes that are not a point of the curve.
fn off_curve<G: bytemuck::Pod>(point: &G) -> G {
    let mut changed = *point;
    bytemuck::bytes_of_mut(&mut changed)[0] ^= 1;
    changed
}

/// Every section of the aggregation key and of a proving key, in a circuit with buses.
#[test]
fn damage_in_any_section_of_a_store_is_found() {
    let circuit = Shop::new(2);
    let (mut keys, wiring) = (keys_of(&circuit, true), wiring_of(&circuit, true));
    let refused = |keys: &ProverKeys| check(keys, &wiring, None).is_err();
    assert!(!refused(&keys));
    let (one, two) = (G1Point::generator(), G2Point::generator());
    let mut count = 0;
    fn aggregation(keys: &mut ProverKeys) -> &mut Sections {
        keys.aggregation.sections_mut()
    }
    for section in ["phi", "st", "sb", "sg", "stag", "sv"] {
        count += damage(&mut keys, aggregation, (section, one), &refused);
    }
    for section in ["psi", "gamma", "elements"] {
        count += damage(&mut keys, aggregation, (section, two), &refused);
    }
    fn till(keys: &mut ProverKeys) -> &mut Sections {
        keys.types[1].sections_mut()
    }
    for section in ["a", "x", "d", "l", "h"] {
        count += damage(&mut keys, till, (section, one), &refused);
    }
    count += damage(&mut keys, till, ("b", two), &refused);
    assert!(count > 200, "{count}");
    assert!(!refused(&keys));
    // The map of types.
    let map: Vec<u32> = keys.aggregation.type_of().unwrap().iter().rev().copied().collect();
    keys.aggregation.sections_mut().replace("type_of", map);
    assert!(refused(&keys));
}

#[test]
fn damage_in_any_section_of_a_family_is_found() {
    let mut keys = family_of(&Squares::new(&[0, 1]));
    let refused = |keys: &(FamilyKey, Vec<ProvingKey>)| check_of_family(keys, None).is_err();
    assert!(!refused(&keys));
    let (one, two) = (G1Point::generator(), G2Point::generator());
    let mut count = 0;
    fn family(keys: &mut (FamilyKey, Vec<ProvingKey>)) -> &mut Sections {
        keys.0.sections_mut()
    }
    for section in ["phi", "ic"] {
        count += damage(&mut keys, family, (section, one), &refused);
    }
    for section in ["psi", "gamma", "elements"] {
        count += damage(&mut keys, family, (section, two), &refused);
    }
    assert!(count > 60 && !refused(&keys), "{count}");
    // Each IC on its own, at infinity and moved.
    for at in 0..keys.0.sections().get::<G1Point>("ic").unwrap().len() {
        for infinity in [true, false] {
            let good = keys.0.sections().get::<G1Point>("ic").unwrap()[at];
            let bad = if infinity { G1Point::IDENTITY } else { good.add(&one) };
            change(keys.0.sections_mut(), "ic", |points: &mut Vec<G1Point>| points[at] = bad);
            assert!(refused(&keys), "IC {at}");
            change(keys.0.sections_mut(), "ic", |points: &mut Vec<G1Point>| points[at] = good);
        }
    }
    // Theta replaced by gamma.
    let gamma = *keys.0.gamma().unwrap();
    change(keys.0.sections_mut(), "elements", |e: &mut Vec<G2Point>| e[2] = gamma);
    assert_eq!(relation(check_of_family(&keys, None)), Some(Relation::Theta));
}

/// Points on the curve but outside of the subgroup are found and named, although every digest is right.
#[test]
fn points_outside_the_subgroup_are_found() {
    let circuit = Shop::new(2);
    let wiring = wiring_of(&circuit, true);
    let says = |section: &'static str| {
        let mut keys = keys_of(&circuit, true);
        let sections = match section {
            "l" => keys.types[0].sections_mut(),
            _ => keys.aggregation.sections_mut(),
        };
        change(sections, section, |points: &mut Vec<G1Point>| {
            points[1] = points[1].add(&outside())
        });
        check(&keys, &wiring, None).unwrap_err().to_string()
    };
    for section in ["l", "st", "sb", "sg", "stag", "sv"] {
        let why = says(section);
        assert!(why.contains(&format!("section '{section}': point 1")), "{why}");
    }
}

/// The map of instances, the coefficients and the matrices of a proving key.
#[test]
fn changed_matrices_are_found() {
    let circuit = Squares::new(&[0, 1]);
    let wiring = wiring_of(&circuit, true);
    let mut keys = keys_of(&circuit, true);
    for section in ["ma", "mb", "mc"] {
        let good = keys.types[0].sections().get::<[u32; 2]>(section).unwrap().to_vec();
        for at in 0..good.len() {
            let mut entries = good.clone();
            // Another sign.
            entries[at][1] = 1 - entries[at][1].min(1);
            if entries == good {
                continue;
            }
            keys.types[0].sections_mut().replace(section, entries);
            assert!(check(&keys, &wiring, None).is_err(), "{section} {at}");
        }
        keys.types[0].sections_mut().replace(section, good);
    }
    assert!(check(&keys, &wiring, None).is_ok());
}
