//! A device as an accelerator of the prover: the keys of types in its memory, and batches of subcircuits.

use crate::device::{Buffer, Device, Error};
use crate::limbs::{FrLimbs, limbs};
use crate::line::{Line, Turn};
use crate::memory::{PLACES, TypeMemory};
use crate::worker::{MatrixParts, TypeOnDevice, TypeParts};
use ark_bls12_381::Fr;
use hekaton_arith::{G1Point, Group};
use hekaton_core::events::DeviceWork;
use hekaton_core::keys::KeyFileError;
use hekaton_core::mirage::{ProvingKey, Sums, Unsatisfied, WitnessCheck};
use hekaton_core::protocol::accelerator::{Accelerator, AcceleratorError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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
    /// The batches: one computes, and the one behind it is copied meanwhile.
    line: Line,
    /// The types on the device, the one that was used last at the end. Only the batch whose turn it is changes them.
    resident: Mutex<Vec<Resident>>,
    work: Mutex<DeviceWork>,
}

/// Memory for the assignments of a batch.
type Place = Buffer<FrLimbs>;

#[derive(Debug)]
struct Resident {
    key: u64,
    bytes: u64,
    has_multiples: bool,
    batches: u64,
    kind: Arc<TypeOnDevice>,
    places: Arc<Mutex<Vec<Place>>>,
}

/// A batch's assignments in the memory of the device. The place is free when this is dropped.
#[derive(Debug)]
struct Copied {
    place: Option<Place>,
    home: Arc<Mutex<Vec<Place>>>,
}

impl Drop for Copied {
    fn drop(&mut self) {
        lock(&self.home).extend(self.place.take());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        device.limit(memory);
        let (line, resident, work) = (Line::default(), Mutex::default(), Mutex::default());
        Ok(Self { device, name, memory, line, resident, work })
    }

    /// Runs a function with a type and vectors on the device. If the memory does not suffice, runs it again for each vector, with
    /// nothing else on the device.
    fn with<T>(
        &self,
        key: &ProvingKey,
        vectors: &[Vec<Fr>],
        run: impl Fn(&TypeOnDevice, &Buffer<FrLimbs>) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, AcceleratorError> {
        let turn = self.line.join();
        match self.in_turn(&turn, key, vectors, &run) {
            Err(Error::Memory { .. }) => {}
            other => return self.finish(vectors.len(), other),
        }
        // Other programs may have taken memory.
        lock(&self.resident).clear();
        self.device.trim();
        let each = |kind: &TypeOnDevice| {
            let each = vectors.iter().map(|vector| {
                let copied =
                    self.copy(vector.len(), || Buffer::of(&self.device, &limbs(vector)))?;
                self.timed(|work| &mut work.compute_seconds, || run(kind, &copied))
            });
            Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        };
        self.finish(vectors.len(), self.load_from(key, 1, false).and_then(|kind| each(&kind)))
    }

    /// Accounts for a batch that is done.
    fn finish<T>(&self, vectors: usize, done: Result<T, Error>) -> Result<T, AcceleratorError> {
        if done.is_ok() {
            let mut work = lock(&self.work);
            work.batches += 1;
            work.subcircuits += vectors as u64;
        }
        done.map_err(explain)
    }

    /// Copies vectors while the batch before computes, and runs a function with them when it is this batch's turn.
    fn in_turn<T>(
        &self,
        turn: &Turn<'_>,
        key: &ProvingKey,
        vectors: &[Vec<Fr>],
        run: impl Fn(&TypeOnDevice, &Buffer<FrLimbs>) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        turn.wait_for_types();
        let before = self.upload(key, vectors)?;
        turn.wait();
        // Its place is of a type that has left, which the batch before does if it lacks memory.
        let is_of = |copied: &Copied| {
            lock(&self.resident).iter().any(|kind| Arc::ptr_eq(&kind.places, &copied.home))
        };
        let before = before.filter(is_of);
        let kind = self.load(key)?;
        turn.has_loaded();
        let copied = match before {
            Some(copied) => Some(copied),
            None => self.upload(key, vectors)?,
        };
        match copied.as_ref().and_then(|copied| copied.place.as_ref()) {
            Some(place) => self.timed(|work| &mut work.compute_seconds, || run(&kind, place)),
            // More vectors than a batch has.
            None => Err(Error::Size {
                what: "the number of values of a batch",
                expected: format!("at most {} times {}", self.batch(key), key.variables()),
                found: vectors.iter().map(Vec::len).sum(),
            }),
        }
    }

    /// Copies vectors to a place of their type, if that is on the device and has a place that is large enough.
    fn upload(&self, key: &ProvingKey, vectors: &[Vec<Fr>]) -> Result<Option<Copied>, Error> {
        let home = match lock(&self.resident).iter().find(|kind| kind.key == key.id()) {
            Some(kind) => Arc::clone(&kind.places),
            None => return Ok(None),
        };
        let values = vectors.iter().map(Vec::len).sum();
        let place = lock(&home).pop();
        let mut copied = Copied { place, home };
        match copied.place.as_mut().filter(|place| values <= place.room()) {
            Some(place) => self.copy(values, || place.refill(vectors.iter().map(|v| limbs(v))))?,
            None => return Ok(None),
        }
        Ok(Some(copied))
    }

    /// Puts a type at the end of those on the device, and removes others to make room.
    fn load(&self, key: &ProvingKey) -> Result<Arc<TypeOnDevice>, Error> {
        let mut resident = lock(&self.resident);
        let batch = self.batch(key);
        let size = TypeMemory::of(key);
        let [plain, with_multiples] = [false, true].map(|multiples| size.bytes(batch, multiples));
        let mut own =
            (resident.iter().position(|kind| kind.key == key.id())).map(|at| resident.remove(at));
        let batches = own.as_ref().map_or(0, |own| own.batches + 1);
        let has_multiples = own.as_ref().is_some_and(|own| own.has_multiples)
            || batches >= WORTH_MULTIPLES && size.has_room_for_multiples(self.memory);
        // With their assignments, which may be there already.
        let places = own.as_ref().map(|own| Arc::clone(&own.places));
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
                let places = match places {
                    Some(places) => places,
                    None => {
                        let place = |_| Buffer::new(&self.device, batch * key.variables());
                        Arc::new(Mutex::new((0..PLACES).map(place).collect::<Result<_, _>>()?))
                    }
                };
                let kind = Arc::new(self.load_from(key, batch, has_multiples)?);
                Resident { key: key.id(), bytes, has_multiples, batches, kind, places }
            }
        };
        let kind = Arc::clone(&own.kind);
        resident.push(own);
        Ok(kind)
    }

    /// Copies the keys of a type.
    fn load_from(
        &self,
        key: &ProvingKey,
        batch: usize,
        multiples: bool,
    ) -> Result<TypeOnDevice, Error> {
        lock(&self.work).copied_bytes += key.bytes();
        self.timed(|work| &mut work.key_seconds, || load(&self.device, key, batch, multiples))
    }

    /// Runs a copy of scalars, and accounts for it.
    fn copy<T>(&self, scalars: usize, copy: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        lock(&self.work).copied_bytes += (scalars * size_of::<FrLimbs>()) as u64;
        self.timed(|work| &mut work.copy_seconds, copy)
    }

    fn timed<T>(
        &self,
        seconds: impl Fn(&mut DeviceWork) -> &mut f64,
        run: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let since = Instant::now();
        let result = run();
        *seconds(&mut lock(&self.work)) += since.elapsed().as_secs_f64();
        result
    }
}

impl Accelerator for Gpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn batch(&self, key: &ProvingKey) -> usize {
        TypeMemory::of(key).batch(self.memory)
    }

    fn commit(
        &self,
        key: &ProvingKey,
        values: &[Vec<Fr>],
    ) -> Result<Vec<G1Point>, AcceleratorError> {
        if key.layout().committed().is_empty() {
            return Ok(vec![G1Point::IDENTITY; values.len()]);
        }
        self.with(key, values, TypeOnDevice::commit)
    }

    fn prove(
        &self,
        key: &ProvingKey,
        assignments: &[Vec<Fr>],
        check: WitnessCheck,
    ) -> Result<Vec<Result<Sums, Unsatisfied>>, AcceleratorError> {
        let check = check == WitnessCheck::Check;
        self.with(key, assignments, |kind, assignments| kind.prove(assignments, check))
    }

    fn take_work(&self) -> DeviceWork {
        std::mem::take(&mut *lock(&self.work))
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
