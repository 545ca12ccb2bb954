//! C48: keys of a ceremony are those of a setup with the products of all secrets and gamma = 1, byte for byte.

use super::*;
use crate::record::Step;
use hekaton_arith::Fr;
use hekaton_core::keys::Sections;
use hekaton_core::protocol::{Trapdoors, setup_family_from};
use hekaton_core::{
    LocalEngine, ProveOptions, ProverKeys, SetupOptions, Trust, derive, prove, verify,
};
use hekaton_testing::{Shop, Shopping, Squarings};

fn product(seeds: &[u64], chain: Chain, count: usize, number: usize) -> Fr {
    seeds.iter().map(|seed| Seed::known(*seed).secrets(chain, count)[number]).product()
}

/// The trapdoors of a bench, whose family these contributed to.
fn trapdoors(bench: &Bench, seeds: &[u64]) -> Trapdoors {
    let transcript = open(&bench.path());
    let mut types = Vec::new();
    let mut kappa = None;
    for chain in transcript.genesis.chains() {
        let count = Step::start(&transcript.genesis, chain).secrets();
        let of = |number: usize| product(seeds, chain, count, number);
        let kinds = crate::segment::types_of(&Step::start(&transcript.genesis, chain)).0.len();
        types.extend((0..kinds).map(|kind| [of(2 * kind), of(2 * kind + 1)]));
        kappa = kappa.or(Some(of(count - 1)));
    }
    let [tau, alpha, beta] = [0, 1, 2].map(|i| product(&[1, 2], Chain::Tau, 3, i));
    let [phi, psi] = [0, 1].map(|i| product(&[1, 2], Chain::Phi, 2, i));
    Trapdoors { tau, alpha, beta, kappa: kappa.unwrap(), phi, psi, types }
}

fn same(ours: &Sections, theirs: &Sections, names: &[&'static str]) {
    for name in names {
        let [ours, theirs] = [ours, theirs].map(|sections| sections.get::<u8>(name).ok());
        assert!(ours == theirs, "section '{name}'");
    }
    assert_eq!(ours.bytes(), theirs.bytes(), "all sections were compared");
}

const FAMILY: [&str; 7] = ["header", "phi", "psi", "ic", "gamma", "elements", "buses"];
const TYPE: [&str; 18] = [
    "shape",
    "buses",
    "elements",
    "coefficients",
    "ma_rows",
    "ma",
    "mb_rows",
    "mb",
    "mc_rows",
    "mc",
    "d",
    "a_variables",
    "a",
    "b_variables",
    "b",
    "l",
    "x_variables",
    "x",
];

fn compare<C: Circuit>(
    circuit: &C,
    zero_knowledge: bool,
    segment_points: Option<usize>,
) -> (Bench, Vec<usize>) {
    let bench = Bench::new(circuit, zero_knowledge, segment_points);
    [4, 5, 6].into_iter().for_each(|seed| bench.step(seed));
    let family = bench.check().unwrap();
    let key = family.key(&bench.powers).unwrap();
    let options = SetupOptions::new("test").zero_knowledge(zero_knowledge);
    let prepared = PreparedCircuit::new(circuit).unwrap();
    let trust = Trust::Ceremony(family.digest);
    let trapdoors = trapdoors(&bench, &[4, 5, 6]);
    let (direct, types) = setup_family_from(&prepared, 5, &options, trust, &trapdoors).unwrap();
    same(key.sections(), direct.sections(), &FAMILY);
    assert_eq!(key.digest().unwrap(), direct.digest().unwrap());
    let mut domains = Vec::new();
    for (number, direct) in types.iter().enumerate() {
        let r1cs = bench.types[number].clone();
        let ours = family.proving_key(&bench.powers, number, r1cs).unwrap();
        same(ours.sections(), direct.sections(), &[&TYPE[..], &["h"]].concat());
        domains.push(ours.domain().size());
    }
    (bench, domains)
}

/// Keys with known trapdoors beside the logs of a real ceremony, whose digest they name: the record check compares their points,
/// so nobody's name stands behind them.
#[test]
fn keys_of_others_get_no_contributors() {
    let bench = Bench::new(&Squarings, true, None);
    [4, 5].into_iter().for_each(|seed| bench.step(seed));
    let family = bench.check().unwrap();
    let genuine = family.key(&bench.powers).unwrap();
    let of_powers = open(&bench.directory.path().join("powers"));
    let of_family = open(&bench.path());
    let last_points = |key: &_| crate::key_has_last_points(&of_powers, &[&of_family], key);
    last_points(&genuine).unwrap();
    let prepared = PreparedCircuit::new(&Squarings).unwrap();
    let options = SetupOptions::new("test");
    let right = trapdoors(&bench, &[4, 5]);
    let one = Fr::from(1u64);
    let changes: [&dyn Fn(&mut Trapdoors); 7] = [
        &|t| t.alpha += one,
        &|t| t.kappa += one,
        &|t| t.phi += one,
        &|t| t.psi += one,
        &|t| t.types[0][0] += one,
        &|t| t.types[1][1] += one,
        &|t| t.tau += one,
    ];
    for change in changes {
        let mut other = right.clone();
        change(&mut other);
        let trust = Trust::Ceremony(family.digest);
        let (forged, _) = setup_family_from(&prepared, 5, &options, trust, &other).unwrap();
        refused_by_this_alone(Check::End, &[], || last_points(&forged));
    }
    let trust = Trust::Ceremony([1; 32]);
    let (foreign, _) = setup_family_from(&prepared, 5, &options, trust, &right).unwrap();
    assert!(last_points(&foreign).is_err());
}

/// Without buses, with masks and without, in one segment and in one for each type.
#[test]
fn c48_keys_are_those_of_a_setup() {
    for (zero_knowledge, segments) in [(true, None), (false, Some(1))] {
        let (bench, domains) = compare(&Squarings, zero_knowledge, segments);
        assert!(domains.len() == 2, "{domains:?}");
        let genesis = open(&bench.path()).genesis;
        assert_eq!(genesis.chains().len(), if segments.is_some() { 2 } else { 1 });
    }
}

/// With buses, parameters, pairs and types without slots, on domains 2^k and 3 * 2^k; and proofs under derived keys.
#[test]
fn c48_keys_with_buses_are_those_of_a_setup() {
    let shop = Shop::new(2);
    let (bench, domains) = compare(&shop, true, None);
    let thrice = domains.iter().any(|n| n.is_multiple_of(3));
    assert!(thrice && domains.iter().any(|n| n.is_power_of_two()), "{domains:?}");
    let family = bench.check().unwrap();
    let key = family.key(&bench.powers).unwrap();
    let types = bench
        .types
        .iter()
        .enumerate()
        .map(|(number, r1cs)| family.proving_key(&bench.powers, number, r1cs.clone()).unwrap());
    let engine = LocalEngine::new(None).unwrap();
    let prepared = PreparedCircuit::new(&shop).unwrap();
    let (aggregation, verifying) = derive(&key, &prepared, "{}", &engine).unwrap();
    assert_eq!(verifying.trust, Trust::Ceremony(family.digest));
    assert!(verifying.trust.statement().contains(&hex::encode(family.digest)));
    let keys = ProverKeys { verifying, aggregation, types: types.collect() };
    let run = prove(&shop, &Shopping::new(2), &keys, &engine, &ProveOptions::new()).unwrap();
    verify(&keys.verifying, &run.public_values, run.proof.as_bytes()).unwrap();
    // C49: the digest of the transcript is in the verifying key, and with it in every proof.
    let mut other = keys.verifying.clone();
    other.trust = Trust::Ceremony([7; 32]);
    assert!(verify(&other, &run.public_values, run.proof.as_bytes()).is_err());
}
