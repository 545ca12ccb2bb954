//! Keys from elsewhere: honest ones pass, every changed point is found, and each relation is needed.

mod damage;
mod forgeries;
mod honest;

use super::{KeyCheckError, KeyCheckReport, Relation, check_family_without, check_keys_without};
use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Circuit, Fr, Masking, PreparedCircuit};
use hekaton_core::keys::Sections;
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{FamilyKey, LocalEngine, ProverKeys, SetupOptions, setup, setup_family};
use std::convert::Infallible;

const SEED: u64 = 1;

fn engine() -> LocalEngine {
    LocalEngine::new(None).unwrap()
}

fn options(zero_knowledge: bool) -> SetupOptions {
    SetupOptions::new("test").insecure_seed(SEED).zero_knowledge(zero_knowledge)
}

fn keys_of<C: Circuit>(circuit: &C, zero_knowledge: bool) -> ProverKeys {
    setup(circuit, &engine(), &options(zero_knowledge)).unwrap()
}

fn wiring_of<C: Circuit>(circuit: &C, zero_knowledge: bool) -> Wiring {
    PreparedCircuit::new(circuit).unwrap().layout().wiring(Masking::new(zero_knowledge))
}

/// The keys of a family with the types of a circuit, for up to 6 subcircuits.
fn family_of<C: Circuit>(circuit: &C) -> (FamilyKey, Vec<ProvingKey>) {
    let prepared = PreparedCircuit::new(circuit).unwrap();
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    (setup_family(&prepared, 6, &engine(), &options(true), keep, |_| {}).unwrap(), types)
}

fn check(
    keys: &ProverKeys,
    wiring: &Wiring,
    without: Option<Relation>,
) -> Result<KeyCheckReport, KeyCheckError> {
    check_keys_without(keys, Some(wiring), &engine(), |_| {}, without)
}

fn check_of_family(
    (family, types): &(FamilyKey, Vec<ProvingKey>),
    without: Option<Relation>,
) -> Result<KeyCheckReport, KeyCheckError> {
    check_family_without(family, types, &engine(), |_| {}, without)
}

/// The relation that does not hold.
fn relation(result: Result<KeyCheckReport, KeyCheckError>) -> Option<Relation> {
    match result {
        Err(KeyCheckError::Relation { relation, .. }) => Some(relation),
        Err(KeyCheckError::Infinity { .. }) => Some(Relation::Infinity),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

/// Changes the contents of a section.
fn change<T: bytemuck::Pod + Send + Sync>(
    sections: &mut Sections,
    section: &'static str,
    change: impl FnOnce(&mut Vec<T>),
) {
    let mut contents = sections.get::<T>(section).unwrap().to_vec();
    change(&mut contents);
    sections.replace(section, contents);
}

/// Reads a proving key again, whose sections were changed.
fn read_again(key: &mut ProvingKey) {
    let sections = std::mem::replace(key.sections_mut(), Sections::new(ProvingKey::KIND));
    *key = ProvingKey::new(key.name(), sections).unwrap();
}

fn g(factor: Fr) -> G1Point {
    G1Point::generator().mul(&factor)
}

fn h(factor: Fr) -> G2Point {
    G2Point::generator().mul(&factor)
}
