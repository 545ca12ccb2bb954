//! A device as an accelerator of the prover: the keys of types in its memory, and batches of subcircuits.

use crate::device::{Buffer, Device, Error};
use crate::limbs::limbs;
use crate::msm::{Curve, Sizes};
use crate::worker::{MatrixParts, TypeOnDevice, TypeParts};
use ark_bls12_381::Fr;
use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_core::keys::KeyFileError;
use hekaton_core::mirage::{ProvingKey, Sums, Unsatisfied, WitnessCheck};
use hekaton_core::protocol::accelerator::{Accelerator, AcceleratorError};
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of a batch that occupy a device.
const ROWS: usize = 1 << 20;
/// The largest batch, since each of its subcircuits waits in a thread of its own.
const BATCH: usize = 32;
/// The number of batches of a type after which the multiples of its points are computed. On an H200, they take as long as seven to
/// eight batches of 2^17 rows gain by them (hekaton-gpu/results/2026-11-27-h200).
const WORTH_MULTIPLES: u64 = 10;

/// A device that proves subcircuits.
#[derive(Debug)]
pub struct Gpu {
    device: Arc<dyn Device>,
    name: String,
    /// The bytes of the device's memory that may be used.
    memory: u64,
    /// The types on the device, the one that was used last at the end.
    resident: Mutex<Vec<Resident>>,
}

#[derive(Debug)]
struct Resident {
    key: u64,
    bytes: u64,
    has_multiples: bool,
    batches: u64,
    kind: TypeOnDevice,
}

impl Gpu {
    /// Takes a device into use, with at most `limit` bytes of its memory, or all that is free.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(device: Arc<dyn Device>, number: usize, limit: Option<u64>) -> Result<Self, Error> {
        let name = format!("GPU {number} ({})", device.name());
        // The rest is for the driver and for what does not fit exactly into freed memory.
        let free = device.free_memory()? / 10 * 9;
        let memory = limit.map_or(free, |limit| free.min(limit));
        Ok(Self { device, name, memory, resident: Mutex::default() })
    }

    /// Runs a function with a type on the device. If the memory does not suffice, runs it again for each vector, with nothing
    /// else on the device.
    fn with<T>(
        &self,
        key: &ProvingKey,
        vectors: &[Vec<Fr>],
        run: impl Fn(&TypeOnDevice, &[Vec<Fr>]) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, AcceleratorError> {
        let mut resident = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        let tried = self.load(&mut resident, key).and_then(|()| match resident.last() {
            Some(last) => run(&last.kind, vectors),
            None => Ok(Vec::new()),
        });
        match tried {
            Err(Error::Memory { .. }) => {}
            other => return other.map_err(explain),
        }
        // Other programs may have taken memory.
        resident.clear();
        self.device.trim();
        let kind = load(&self.device, key, 1, false).map_err(explain)?;
        let each = vectors.iter().map(|vector| run(&kind, std::slice::from_ref(vector)));
        Ok(each.collect::<Result<Vec<_>, _>>().map_err(explain)?.into_iter().flatten().collect())
    }

    /// Puts a type at the end of those on the device, and removes others to make room.
    fn load(&self, resident: &mut Vec<Resident>, key: &ProvingKey) -> Result<(), Error> {
        let batch = self.batch(key);
        let [plain, with_multiples] = [false, true].map(|multiples| bytes(key, batch, multiples));
        let mut own =
            (resident.iter().position(|kind| kind.key == key.id())).map(|at| resident.remove(at));
        let batches = own.as_ref().map_or(0, |own| own.batches + 1);
        // Half of the memory, so that two types that alternate can both have them.
        let has_multiples = own.as_ref().is_some_and(|own| own.has_multiples)
            || batches >= WORTH_MULTIPLES && with_multiples <= self.memory / 2;
        own = own.filter(|own| own.has_multiples == has_multiples);
        let bytes = if has_multiples { with_multiples } else { plain };
        let own_is_new = own.is_none();
        while resident.iter().map(|kind| kind.bytes).sum::<u64>() + bytes > self.memory
            && !resident.is_empty()
        {
            resident.remove(0);
        }
        if own_is_new {
            // The memory of types that left would otherwise be kept beside that of this one.
            self.device.trim();
        }
        let own = match own {
            Some(own) => Resident { batches, ..own },
            None => {
                let kind = load(&self.device, key, batch, has_multiples)?;
                Resident { key: key.id(), bytes, has_multiples, batches, kind }
            }
        };
        resident.push(own);
        Ok(())
    }

    /// Copies vectors to the device, one after the other.
    fn upload(&self, vectors: &[Vec<Fr>]) -> Result<Buffer<crate::FrLimbs>, Error> {
        Buffer::of(&self.device, &limbs(&vectors.concat()))
    }
}

impl Accelerator for Gpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn batch(&self, key: &ProvingKey) -> usize {
        let most = (ROWS / key.domain().size().max(1)).clamp(1, BATCH);
        (1..=most).rev().find(|batch| bytes(key, *batch, false) <= self.memory).unwrap_or(0)
    }

    fn commit(
        &self,
        key: &ProvingKey,
        values: &[Vec<Fr>],
    ) -> Result<Vec<G1Point>, AcceleratorError> {
        if key.layout().committed().is_empty() {
            return Ok(vec![G1Point::IDENTITY; values.len()]);
        }
        self.with(key, values, |kind, values| kind.commit(&self.upload(values)?))
    }

    fn prove(
        &self,
        key: &ProvingKey,
        assignments: &[Vec<Fr>],
        check: WitnessCheck,
    ) -> Result<Vec<Result<Sums, Unsatisfied>>, AcceleratorError> {
        let check = check == WitnessCheck::Check;
        self.with(key, assignments, |kind, assignments| {
            kind.prove(&self.upload(assignments)?, check)
        })
    }
}

/// A reason not to take a type, or to give up the device.
fn explain(error: Error) -> AcceleratorError {
    match error {
        Error::Memory { .. } | Error::Size { .. } => AcceleratorError::Unfit(error.to_string()),
        error => AcceleratorError::Failed(error.to_string()),
    }
}

/// Copies the keys of a type to a device.
fn load(
    device: &Arc<dyn Device>,
    key: &ProvingKey,
    batch: usize,
    multiples: bool,
) -> Result<TypeOnDevice, Error> {
    let damaged = |error: KeyFileError| Error::Key { why: error.to_string() };
    let matrices = key.matrices().map_err(damaged)?;
    let [a, b, c] =
        matrices.map(|matrix| MatrixParts { starts: matrix.starts, entries: matrix.entries });
    let parts = TypeParts {
        variables: key.variables(),
        matrices: [a, b, c],
        coefficients: matrices[0].coefficients,
        domain: key.domain(),
        a: key.a_query().map_err(damaged)?,
        b: key.b_query().map_err(damaged)?,
        x: key.x_query().map_err(damaged)?,
        l: key.l_query().map_err(damaged)?,
        h: key.h_query().map_err(damaged)?,
        d: key.d_query().map_err(damaged)?,
    };
    TypeOnDevice::new(device, &parts, batch, multiples)
}

/// Returns the most bytes of a device's memory that a type takes, with batches of `vectors` subcircuits.
fn bytes(key: &ProvingKey, vectors: usize, multiples: bool) -> u64 {
    let (domain, variables) = (key.domain().size() as u64, key.variables() as u64);
    // Sections are in memory, so a usize counts their points.
    let count = |name: &str, size: usize| {
        usize::try_from(key.sections().bytes_of(name)).expect("a section in memory") / size
    };
    let g1 = ["a", "x", "l", "h", "d"].map(|name| count(name, size_of::<G1Point>()));
    let g2 = count("b", size_of::<G2Point>());
    let most = g1.into_iter().fold(0, usize::max);
    let points = |points: usize, size: usize| {
        let windows = if multiples { Sizes::of(points, vectors, true).windows() } else { 1 };
        (points * size) as u64 * u64::from(windows)
    };
    // Each scalar and its digits twice, and for each bucket its sum twice and six numbers.
    let working = |points: usize, sum: usize| {
        let sizes = Sizes::of(points, vectors, multiples);
        let buckets = u64::from(sizes.rows()) << (sizes.bits - 1);
        let digits = points as u64 * (u64::from(sizes.windows()) * 8 + 32);
        vectors as u64 * (digits + buckets * (2 * sum as u64 + 24))
    };
    let keys = g1.map(|n| points(n, size_of::<G1Point>())).iter().sum::<u64>()
        + points(g2, size_of::<G2Point>());
    let matrices = key.entries() * 8 + 3 * 4 * key.constraints() as u64;
    // Roots, thirds of them, and factors.
    let transforms = 4 * 32 * domain;
    let assignments = vectors as u64 * 32 * (variables + 2 * domain);
    let sums = working(most, size_of::<<G1Point as Curve>::Sum>())
        + working(g2, size_of::<<G2Point as Curve>::Sum>());
    keys + matrices + transforms + assignments + sums
}
