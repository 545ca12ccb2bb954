//! Ceremonies at small sizes, honest ones and those of cheats. Each check is taken out in turn: what it refuses is accepted
//! then.

mod earlier;
mod extension;
mod files;
mod import;
mod keys;
#[cfg(target_os = "linux")]
mod memory;
mod powers;
mod records;
mod searches;
mod segments;
mod substitution;

use crate::chain::Checked;
use crate::contribute::{Response, sign};
use crate::genesis::Chain;
use crate::record::{Kind, Step};
use crate::transcript::{log_path, section_path};
use crate::{
    CeremonyError, Check, Contributor, Coordinator, Family, FamilyPlan, Powers, Seed, Transcript,
    contribute, new_family, new_powers, verify_family, verify_powers,
};
use hekaton_arith::Group;
use hekaton_circuit::{Circuit, Masking, PreparedCircuit, R1cs};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

thread_local! {
    static OFF: RefCell<Vec<Check>> = const { RefCell::new(Vec::new()) };
}

/// Reports whether a test has taken out a check on this thread.
pub(crate) fn is_off(check: Check) -> bool {
    OFF.with_borrow(|off| off.contains(&check))
}

/// Calls a function without some checks.
fn without<T>(checks: &[Check], call: impl FnOnce() -> T) -> T {
    OFF.set(checks.to_vec());
    let result = call();
    OFF.set(Vec::new());
    result
}

/// The check that refuses a result.
fn refusal<T>(result: Result<T, CeremonyError>) -> Check {
    match result {
        Err(CeremonyError::Broken(broken)) => broken.check,
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

/// Refused by `check`, and accepted without it and `also`.
fn refused_by_this_alone<T>(
    check: Check,
    also: &[Check],
    verify: impl Fn() -> Result<T, CeremonyError>,
) {
    assert_eq!(refusal(verify()), check);
    if let Err(e) = without(&[&[check], also].concat(), &verify) {
        panic!("without {check:?} and {also:?}: {e}");
    }
}

const PROGRAM: &str = "hekaton-ceremony tests";

/// Contributes with a known seed.
fn contribute_as(
    from: &Transcript,
    seed: u64,
    chains: &[Chain],
    out: &Path,
) -> Result<(), CeremonyError> {
    let name = format!("contributor {seed}");
    let kind = Kind::Contribution;
    let contributor = Contributor { name: &name, program: PROGRAM, kind, chains };
    contribute(from, &contributor, Seed::known(seed), out, &mut |_| {}).map(|_| ())
}

/// Contributes to all chains of a directory, and adds the contribution.
fn step(directory: &Path, seed: u64) {
    let mut coordinator = Coordinator::open(directory).unwrap();
    let out = directory.join("incoming/response");
    let chains = coordinator.transcript.genesis.chains();
    contribute_as(&coordinator.transcript, seed, &chains, &out).unwrap();
    let response = Response::open(&out, &coordinator.transcript.genesis).unwrap();
    coordinator.add(&response, &mut |_| {}).unwrap();
}

/// A ceremony for powers, by these contributors.
fn powers_of(directory: &Path, domain: usize, instances: usize, seeds: &[u64]) -> PathBuf {
    let path = directory.join("powers");
    new_powers(&path, domain, instances, "", &|_| {}).unwrap();
    seeds.iter().for_each(|seed| step(&path, *seed));
    path
}

fn open(path: &Path) -> Transcript {
    Transcript::open(path).unwrap()
}

fn check_powers(path: &Path) -> Result<Powers, CeremonyError> {
    verify_powers(&open(path), &mut |_| {})
}

/// The types of a circuit, and the names of its buses.
fn types_of<C: Circuit>(circuit: &C, zero_knowledge: bool) -> (Vec<R1cs>, Vec<String>) {
    let prepared = PreparedCircuit::new(circuit).unwrap();
    let masking = Masking::new(zero_knowledge);
    let kinds = prepared.layout().type_ids();
    let types = kinds.map(|kind| prepared.r1cs(kind, masking).unwrap()).collect();
    (types, prepared.layout().wiring_without_slots(masking).buses)
}

fn plan(buses: Vec<String>, zero_knowledge: bool) -> FamilyPlan {
    FamilyPlan {
        circuit: "test".into(),
        parameters: "{}".into(),
        zero_knowledge,
        instances: 5,
        buses,
        segment_points: None,
        beacon: String::new(),
    }
}

/// A family of a circuit, with the powers of two contributors.
struct Bench {
    directory: tempfile::TempDir,
    types: Vec<R1cs>,
    powers: Powers,
}

impl Bench {
    fn new<C: Circuit>(circuit: &C, zero_knowledge: bool, segment_points: Option<usize>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let powers = check_powers(&powers_of(directory.path(), 64, 5, &[1, 2])).unwrap();
        let (types, buses) = types_of(circuit, zero_knowledge);
        let plan = FamilyPlan { segment_points, ..plan(buses, zero_knowledge) };
        let bench = Self { directory, types, powers };
        new_family(&bench.path(), plan, &bench.powers, None, &bench.types, &|_| {}, &mut |_| {})
            .unwrap();
        bench
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("family")
    }

    fn step(&self, seed: u64) {
        step(&self.path(), seed);
    }

    fn check(&self) -> Result<Family, CeremonyError> {
        verify_family(&open(&self.path()), &self.powers, None, &self.types, &mut |_| {})
    }
}

/// Contributes to one chain as its last contributor, who changes points and sections before signing the record and
/// cheats the coordinator as well: nothing is checked.
fn cheat(
    directory: &Path,
    chain: Chain,
    seed: u64,
    change: impl FnOnce(&mut Step, &mut Vec<Vec<u8>>),
) {
    let transcript = open(directory);
    let out = directory.join("incoming/cheat");
    contribute_as(&transcript, seed, &[chain], &out).unwrap();
    let response = Response::open(&out, &transcript.genesis).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let mut sections: Vec<Vec<u8>> = response.sections[0]
        .iter()
        .map(|section| bytes[section.offset as usize..][..section.bytes() as usize].to_vec())
        .collect();
    let mut record = response.records[0].clone();
    change(&mut record.step, &mut sections);
    let checked = transcript.check().unwrap();
    let before = checked.iter().find(|checked| checked.chain == chain).unwrap();
    accept_unchecked(directory, before, seed, record, sections);
}

/// Signs a record with these sections, and appends it.
fn accept_unchecked(
    directory: &Path,
    before: &Checked,
    seed: u64,
    mut record: crate::Record,
    sections: Vec<Vec<u8>>,
) {
    let digests = sections.iter().map(|bytes| *blake3::hash(bytes).as_bytes());
    set_new_digests(&mut record.step, digests.collect());
    for bytes in sections {
        let digest = *blake3::hash(&bytes).as_bytes();
        std::fs::write(section_path(directory, &digest), bytes).unwrap();
    }
    let seed = Seed::known(seed);
    let secrets = seed.secrets(record.chain, before.last().secrets());
    let step = record.step.clone();
    let record = sign(&seed, record, before, step, &secrets).unwrap();
    let mut log = open(directory).log(record.chain).clone();
    let chain = record.chain;
    log.append(&log_path(directory, chain), record).unwrap();
}

fn set_new_digests(step: &mut Step, new: Vec<[u8; 32]>) {
    match step {
        Step::Powers(step) => step.digests.new = new[0],
        Step::Segment { types, .. } => {
            types.iter_mut().zip(new).for_each(|(kind, new)| kind.digests.new = new);
        }
    }
}

/// Replaces point `at` of a vector that begins at byte `start` of a section.
fn set<G: Group>(section: &mut [u8], start: usize, at: usize, point: &G) {
    let size = G::UNCOMPRESSED;
    point.write_uncompressed(&mut section[start + at * size..][..size]);
}

fn get<G: Group>(section: &[u8], start: usize, at: usize) -> G {
    let size = G::UNCOMPRESSED;
    G::on_curve_from_uncompressed(&section[start + at * size..][..size]).unwrap()
}
