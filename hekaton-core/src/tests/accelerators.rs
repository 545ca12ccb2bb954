//! Devices that compute the sums of proofs: right ones, and all ways to be wrong (spec: distributed#accelerators).

use super::bench::{Bench, outside_the_subgroup};
use super::binding::{Rule, Square};
use crate::events::{DeviceWork, Event, Recorder};
use crate::keys::ProverKeys;
use crate::mirage::{self, ProvingKey, Sums, Unsatisfied, WitnessCheck};
use crate::pool::LocalEngine;
use crate::protocol::accelerator::{Accelerator, AcceleratorError, Accelerators};
use crate::protocol::worker::WorkerError;
use crate::protocol::{ProveError, ProveOptions, prove};
use crate::randomness::Randomness;
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, Group};
use hekaton_testing::{Digits, Histogram};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A fault of a device, from its second batch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Fails,
    Panics,
    TooFewAnswers,
    OutsideOfGroup,
    WrongProof,
    WrongCommitment,
    CallsRightWrong,
    /// From the first batch of each type on.
    LacksMemory,
    /// No type fits.
    TooSmall,
    /// Its first batch ends when a second one has begun.
    WaitsForAnother,
}

/// A device that computes with the CPU.
#[derive(Debug)]
pub(crate) struct Double {
    fault: Fault,
    batch: usize,
    batches: AtomicUsize,
    now: AtomicUsize,
    work: Mutex<DeviceWork>,
}

impl Double {
    pub(crate) fn new(fault: Fault, batch: usize) -> Self {
        let [batches, now] = [0; 2].map(AtomicUsize::new);
        Self { fault, batch, batches, now, work: Mutex::default() }
    }

    /// Begins a batch, and returns whether it is to go wrong.
    fn begin(&self, vectors: usize) -> Result<bool, AcceleratorError> {
        assert!((1..=self.batch).contains(&vectors));
        let later = self.batches.fetch_add(1, SeqCst) > 0;
        match self.fault {
            Fault::LacksMemory => Err(AcceleratorError::Unfit("no memory left".into())),
            Fault::Fails if later => Err(AcceleratorError::Failed("it fell off the bus".into())),
            Fault::Panics if later => panic!("a driver's panic"),
            Fault::WaitsForAnother if !later => self.wait_for_another(),
            Fault::WaitsForAnother if self.batches.load(SeqCst) == 2 => {
                assert_eq!(vectors, self.batch, "only a full one goes beside another");
                Ok(true)
            }
            _ => Ok(later),
        }
    }

    fn wait_for_another(&self) -> Result<bool, AcceleratorError> {
        let end = Instant::now() + Duration::from_secs(120);
        while self.batches.load(SeqCst) < 2 {
            if Instant::now() > end {
                return Err(AcceleratorError::Failed("there was no other batch".into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(false)
    }

    /// Runs a batch, and at most one other at the same time.
    fn run<R>(&self, vectors: usize, run: impl FnOnce() -> R) -> R {
        assert!(self.now.fetch_add(1, SeqCst) < 2, "two batches at a time");
        let result = run();
        self.now.fetch_sub(1, SeqCst);
        let mut work = self.work.lock().unwrap();
        work.batches += 1;
        work.subcircuits += vectors as u64;
        result
    }
}

impl Accelerator for Double {
    fn name(&self) -> &str {
        "double 7"
    }

    fn batch(&self, _: &ProvingKey) -> usize {
        if self.fault == Fault::TooSmall { 0 } else { self.batch }
    }

    fn commit(
        &self,
        key: &ProvingKey,
        values: &[Vec<Fr>],
    ) -> Result<Vec<G1Point>, AcceleratorError> {
        let later = self.begin(values.len())?;
        let mut sums: Vec<G1Point> = self.run(values.len(), || {
            values.iter().map(|values| mirage::sum_of_committed(key, values).unwrap()).collect()
        });
        match self.fault {
            Fault::OutsideOfGroup if later => sums[0] = outside_the_subgroup().0,
            Fault::WrongCommitment if later => sums[0] = sums[0].add(&G1Point::generator()),
            Fault::TooFewAnswers if later => drop(sums.pop()),
            _ => {}
        }
        Ok(sums)
    }

    fn prove(
        &self,
        key: &ProvingKey,
        assignments: &[Vec<Fr>],
        check: WitnessCheck,
    ) -> Result<Vec<Result<Sums, Unsatisfied>>, AcceleratorError> {
        let later = self.begin(assignments.len())?;
        let one = |z: &Vec<Fr>| match mirage::sums(key, z, &Fr::ONE, check) {
            Ok(sums) => Ok(sums),
            Err(mirage::ProverError::Unsatisfied(unsatisfied)) => Err(unsatisfied),
            Err(error) => panic!("{error}"),
        };
        let mut all: Vec<_> = self.run(assignments.len(), || assignments.iter().map(one).collect());
        let last = all.len() - 1;
        match (self.fault, &mut all[last]) {
            (Fault::OutsideOfGroup, Ok(sums)) if later => sums.b = outside_the_subgroup().1,
            (Fault::WrongProof, Ok(sums)) if later => sums.h = sums.h.add(&G1Point::generator()),
            (Fault::CallsRightWrong, one) if later => *one = Err(Unsatisfied { constraint: 3 }),
            (Fault::TooFewAnswers, _) if later => drop(all.pop()),
            _ => {}
        }
        Ok(all)
    }

    fn take_work(&self) -> DeviceWork {
        std::mem::take(&mut self.work.lock().unwrap())
    }
}

/// A finished run: its proof, the notices of its devices, others, and the subcircuits that devices computed.
struct Run {
    proof: Vec<u8>,
    messages: Vec<String>,
    notices: Vec<String>,
    on_devices: u64,
    named: usize,
}

const PARTS: usize = 4;
const DIGITS: usize = 3;

fn digits() -> Digits {
    let digits = (0..PARTS * DIGITS).map(|i| (i * i + 1) as u64 % 7).collect();
    Digits { digits, asked: 2, clear: true }
}

fn bench() -> Bench<Histogram> {
    Bench::new(Histogram { rows: 1 << 12, ..Histogram::new(PARTS, DIGITS) }, true)
}

fn try_run(
    circuit: &Histogram,
    keys: &ProverKeys,
    threads: usize,
    devices: Vec<Double>,
) -> Result<Run, ProveError> {
    let devices = devices.into_iter().map(|double| Box::new(double) as Box<dyn Accelerator>);
    let accelerators = Accelerators::new(devices.collect());
    let events = Mutex::new(Vec::new());
    let recorder =
        Recorder::new("test", |record| events.lock().unwrap().push(record.event.clone()));
    let engine = LocalEngine::new(NonZeroUsize::new(threads)).unwrap();
    let options = ProveOptions::new()
        .randomness(Randomness::seeded_not_zero_knowledge(4))
        .recorder(&recorder)
        .accelerators(&accelerators);
    let run = prove(circuit, &digits(), keys, &engine, &options)?;
    drop(recorder);
    let (mut messages, mut notices, mut on_devices, mut named) = (Vec::new(), Vec::new(), 0, 0);
    for event in events.into_inner().unwrap() {
        match event {
            Event::Notice { message } if message.starts_with("double 7") => messages.push(message),
            Event::Notice { message } => notices.push(message),
            Event::Device(account) => {
                assert_eq!(account.device, "double 7");
                assert!(account.work.batches <= account.work.subcircuits);
                on_devices += account.work.subcircuits;
            }
            Event::Subcircuit { prover, .. } if prover == "double 7" => named += 1,
            _ => {}
        }
    }
    Ok(Run { proof: run.proof.as_bytes().to_vec(), messages, notices, on_devices, named })
}

fn run(bench: &Bench<Histogram>, threads: usize, devices: Vec<Double>) -> Run {
    try_run(&bench.circuit, &bench.keys, threads, devices).unwrap()
}

/// Proofs have the same bytes with any devices, batches and threads, and events say who computed what.
#[test]
fn proofs_do_not_depend_on_devices() {
    let bench = bench();
    let expected = run(&bench, 2, Vec::new());
    assert_eq!((expected.on_devices, expected.named), (0, 0));
    for (threads, batches) in [(1, vec![1]), (2, vec![4]), (3, vec![2, 5]), (1, vec![100])] {
        let devices = batches.iter().map(|batch| Double::new(Fault::None, *batch)).collect();
        let found = run(&bench, threads, devices);
        assert!(found.proof == expected.proof, "{threads} {batches:?}");
        assert_eq!((found.messages, found.notices), (vec![], vec![]));
        assert!(found.on_devices > 0);
        assert_eq!(found.on_devices, found.named as u64);
    }
}

/// A device gets a second batch while it computes one, when that is full.
#[test]
fn one_batch_is_copied_while_another_is_computed() {
    let bench = bench();
    let expected = run(&bench, 2, Vec::new()).proof;
    for batch in [1, 2] {
        let found = run(&bench, 3, vec![Double::new(Fault::WaitsForAnother, batch)]);
        assert!(found.proof == expected);
        assert_eq!((found.messages, found.notices), (vec![], vec![]));
    }
}

/// A device that fails visibly is given up once, by name, and the CPU computes the same proof.
#[test]
fn failing_devices_are_given_up() {
    let bench = bench();
    let expected = run(&bench, 2, Vec::new()).proof;
    let cases = [
        (Fault::Fails, "it fell off the bus"),
        (Fault::Panics, "its driver panicked"),
        (Fault::TooFewAnswers, "answers for"),
        (Fault::OutsideOfGroup, "it computed wrong answers"),
        (Fault::CallsRightWrong, "it computed wrong answers"),
    ];
    for (fault, message) in cases {
        for other in [false, true] {
            let mut devices = vec![Double::new(fault, 2)];
            devices.extend(other.then(|| Double::new(Fault::None, 1)));
            let found = run(&bench, 2, devices);
            assert!(found.proof == expected, "{fault:?}");
            assert_eq!(found.notices, Vec::<String>::new(), "{fault:?}");
            assert!(found.messages.len() == 1, "{fault:?}: {:?}", found.messages);
            assert!(found.messages[0].contains(message), "{:?}", found.messages);
        }
    }
}

/// A type that does not fit is left to the CPU: said once for each type.
#[test]
fn types_that_do_not_fit_are_left_to_the_cpu() {
    let bench = bench();
    let expected = run(&bench, 2, Vec::new()).proof;
    for (fault, why) in [(Fault::LacksMemory, "no memory left"), (Fault::TooSmall, "too small")] {
        let found = run(&bench, 2, vec![Double::new(fault, 3)]);
        assert!(found.proof == expected, "{fault:?}");
        assert_eq!(found.on_devices, 0);
        let types = bench.keys.types.iter().map(ProvingKey::name);
        for name in types {
            let says = |message: &&String| message.contains(&format!("'{name}'"));
            let said: Vec<_> = found.messages.iter().filter(says).collect();
            assert!(said.len() == 1 && said[0].contains(why), "{fault:?} {name}: {said:?}");
        }
    }
}

/// A wrong proof is made again by the CPU, and a wrong commitment costs an attempt; both name the device,
/// which is given up.
#[test]
fn wrong_answers_of_devices_are_repaired() {
    let bench = bench();
    let expected = run(&bench, 2, Vec::new()).proof;
    let device = |fault| vec![Double::new(fault, 2)];
    let found = run(&bench, 2, device(Fault::WrongProof));
    assert!(found.proof == expected);
    assert!(
        found.notices.iter().any(|notice| notice.contains("(by double 7)")),
        "{:?}",
        found.notices
    );
    assert!(found.messages[0].contains("it computed wrong answers"), "{:?}", found.messages);

    let found = run(&bench, 2, device(Fault::WrongCommitment));
    assert!(found.proof != expected, "made with new randomness");
    assert!(
        found.notices.iter().any(|notice| notice.contains("(by double 7)")),
        "{:?}",
        found.notices
    );
    assert_eq!(found.messages.len(), 1);
}

/// A wrong witness is the witness's fault, and no device's.
#[test]
fn a_wrong_witness_is_named() {
    let bench = Bench::new(Square(Rule::First), true);
    let lie = [3u64, 999].map(Fr::from);
    let devices: Vec<Box<dyn Accelerator>> = vec![Box::new(Double::new(Fault::None, 4))];
    let accelerators = Accelerators::new(devices);
    let options = ProveOptions::new().accelerators(&accelerators);
    let error = prove(&bench.circuit, &lie, &bench.keys, &bench.engine, &options).unwrap_err();
    match error {
        ProveError::Worker(WorkerError::Unsatisfied { kind, .. }) => assert_eq!(kind, "square"),
        other => panic!("{other}"),
    }
}
