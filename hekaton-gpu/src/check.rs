//! Differential checks of all kernels against the CPU, on random and on hard inputs. They run on every push with
//! the host as the device, and on GPUs by `gpu-check`.

use crate::device::{Buffer, Device, Error};
use crate::kernel::Kernel;
use crate::limbs::{limbs, scalars};
use crate::msm::{Bases, Curve, Sizes};
use crate::operations::{Operation, apply, points};
use crate::toy::Toy;
use crate::transform::{Transforms, multiply};
use crate::worker::TypeOnDevice;
use ark_bls12_381::{Fq, Fr};
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField, UniformRand};
use hekaton_arith::{Domain, G1Point, G2Point, Group};
use hekaton_core::circuit::Circuit;
use hekaton_core::events::{DeviceAccount, Event, Phase, Recorder};
use hekaton_core::mirage::Unsatisfied;
use hekaton_core::protocol::accelerator::{Accelerator, Accelerators};
use hekaton_core::{
    LocalEngine, ProveError, ProveOptions, ProvenRun, ProverKeys, Randomness, prove,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::fmt::Debug;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reason that a check failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] Error),
    /// The device returned a wrong result.
    #[error("{what}: element {at} of {count} is wrong")]
    Wrong {
        /// The computation.
        what: String,
        /// The first wrong element.
        at: usize,
        /// The number of elements.
        count: usize,
    },
}

fn same<T: PartialEq + Debug>(what: &str, found: &[T], expected: &[T]) -> Result<(), CheckError> {
    let count = expected.len();
    let wrong = |at| CheckError::Wrong { what: what.into(), at, count };
    if found.len() != count {
        return Err(wrong(found.len().min(count)));
    }
    found.iter().zip(expected).position(|(a, b)| a != b).map_or(Ok(()), |at| Err(wrong(at)))
}

/// A proof that was made with devices.
#[derive(Debug)]
pub struct Proven {
    /// The run.
    pub run: ProvenRun,
    /// The work of each device in each phase.
    pub devices: Vec<DeviceAccount>,
    /// The seconds of each phase.
    pub phases: Vec<(Phase, f64)>,
    /// The notices, of which there are none if all went well.
    pub notices: Vec<String>,
}

impl Proven {
    /// Returns the number of commitments and proofs that devices computed.
    pub fn answers(&self) -> u64 {
        self.devices.iter().map(|account| account.work.subcircuits).sum()
    }
}

/// Makes a proof with devices, of a fixed seed.
///
/// # Errors
/// As for [`prove`].
pub fn prove_with<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    keys: &ProverKeys,
    engine: &LocalEngine,
    devices: Vec<Box<dyn Accelerator>>,
) -> Result<Proven, ProveError> {
    let accelerators = Accelerators::new(devices);
    let (messages, accounts, phases) =
        (Mutex::new(Vec::new()), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let recorder = Recorder::new("check", |record| match &record.event {
        Event::Device(account) => lock(&accounts).push(account.clone()),
        Event::Notice { message } => lock(&messages).push(message.clone()),
        Event::PhaseEnd { phase, seconds, .. } => lock(&phases).push((*phase, *seconds)),
        _ => {}
    });
    let options = ProveOptions::new()
        .randomness(Randomness::seeded_not_zero_knowledge(1))
        .recorder(&recorder)
        .accelerators(&accelerators);
    let run = prove(circuit, input, keys, engine, &options)?;
    drop(recorder);
    let (notices, devices, phases) =
        (take(&mut *lock(&messages)), take(&mut *lock(&accounts)), take(&mut *lock(&phases)));
    Ok(Proven { run, devices, phases, notices })
}

fn lock<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A check of a device, with random inputs.
#[derive(Debug)]
pub struct Check {
    device: Arc<dyn Device>,
    random: ChaCha20Rng,
}

impl Check {
    /// Prepares checks of a device with random inputs from a seed.
    pub fn new(device: &Arc<dyn Device>, seed: u64) -> Self {
        Self { device: Arc::clone(device), random: ChaCha20Rng::seed_from_u64(seed) }
    }

    /// Returns random elements of a field, and among them the smallest, the largest, and some whose carries run
    /// through all limbs.
    fn elements<F: PrimeField>(&mut self, count: usize) -> Vec<F> {
        let ones = F::from(u64::MAX).pow([3]);
        let mut hard = vec![F::ZERO, F::ONE, -F::ONE, F::from(2u64), -F::from(2u64), ones, -ones];
        // In Montgomery form these are 1, 2^32, p - 1 and the like.
        let inverse =
            F::from(2u64).pow([32 * u64::from(F::MODULUS_BIT_SIZE.div_ceil(32))]).inverse();
        hard.extend(inverse.into_iter().flat_map(|one| {
            [
                one,
                -one,
                one * F::from(1u64 << 32),
                one * F::from(u64::MAX),
                -one * F::from(1u64 << 32),
            ]
        }));
        hard.truncate(count);
        while hard.len() < count {
            hard.push(F::rand(&mut self.random));
        }
        hard
    }

    /// Checks sums, differences, products and squares in Fq, Fr and Fq2.
    ///
    /// # Errors
    /// If the device fails, or is wrong.
    pub fn fields(&mut self, count: usize) -> Result<(), CheckError> {
        // Each pair of hard elements occurs.
        let pairs = |a: Vec<Fq>, by: usize| -> (Vec<Fq>, Vec<Fq>) {
            let b = a.iter().cycle().skip(by).take(a.len()).copied().collect();
            (a, b)
        };
        for by in 0..12 {
            let (a, b) = pairs(self.elements(count), by);
            self.field(Kernel::ElementsFq, &a, &b, |x: &Fq| x.0.0)?;
            let a: Vec<Fr> = self.elements(count);
            let b: Vec<Fr> = a.iter().cycle().skip(by).take(count).copied().collect();
            self.field(Kernel::ElementsFr, &a, &b, |x: &Fr| x.0.0)?;
            let (c0, c1) = pairs(self.elements(count), by);
            let fq2 = |c0: &[Fq], c1: &[Fq]| -> Vec<ark_bls12_381::Fq2> {
                c0.iter().zip(c1).map(|(c0, c1)| ark_bls12_381::Fq2::new(*c0, *c1)).collect()
            };
            let (a, b) = (fq2(&c0, &c1), fq2(&c1, &c0));
            self.field(Kernel::ElementsFq2, &a, &b, |x| [x.c0.0.0, x.c1.0.0])?;
        }
        Ok(())
    }

    fn field<F: Field, L: bytemuck::Pod + PartialEq + Debug>(
        &self,
        kernel: Kernel,
        a: &[F],
        b: &[F],
        limbs: impl Fn(&F) -> L,
    ) -> Result<(), CheckError> {
        let upload = |x: &[F]| Buffer::of(&self.device, &x.iter().map(&limbs).collect::<Vec<L>>());
        let (on_a, on_b) = (upload(a)?, upload(b)?);
        for operation in
            [Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Square]
        {
            let results = a.iter().zip(b).map(|(a, b)| match operation {
                Operation::Add => *a + b,
                Operation::Subtract => *a - b,
                Operation::Multiply => *a * b,
                Operation::Square => a.square(),
            });
            let expected: Vec<L> = results.map(|x| limbs(&x)).collect();
            let found = apply(kernel, operation, &on_a, &on_b)?.read()?;
            same(&format!("{operation:?} by {}", kernel.name()), &found, &expected)?;
        }
        Ok(())
    }

    fn point<P: Group>(&mut self) -> P {
        P::generator().mul(&Fr::rand(&mut self.random))
    }

    /// Checks additions and doublings of points, among them of equal and opposite points, and of infinity.
    ///
    /// # Errors
    /// As for [`Self::fields`].
    pub fn points(&mut self, count: usize) -> Result<(), CheckError> {
        self.points_of::<G1Point>(Kernel::PointsG1, count)?;
        self.points_of::<G2Point>(Kernel::PointsG2, count)
    }

    fn points_of<P: Curve + Group>(
        &mut self,
        kernel: Kernel,
        count: usize,
    ) -> Result<(), CheckError> {
        let mut a: Vec<P> = (0..count).map(|_| self.point()).collect();
        let mut b: Vec<P> = (0..count).map(|_| self.point()).collect();
        // The kernel computes (((a + b) + a) + 2 a), and doubles a: b makes one of the additions one of equal or opposite points.
        for (i, k) in [1i64, -1, -2, 0, -3, -4, -5, 2].into_iter().enumerate().take(count) {
            let k = Fr::from(k.unsigned_abs()) * if k < 0 { -Fr::ONE } else { Fr::ONE };
            b[i] = a[i].mul(&k);
        }
        if count > 9 {
            a[8] = P::zeroed();
            (a[9], b[9]) = (P::zeroed(), P::zeroed());
        }
        let (on_a, on_b) = (Buffer::of(&self.device, &a)?, Buffer::of(&self.device, &b)?);
        let sums: Vec<P::Sum> = points::<P, P::Sum>(kernel, &on_a, &on_b)?.read()?;
        let found: Vec<P> = sums.iter().map(|sum| P::point(P::projective(sum))).collect();
        let expected: Vec<P> =
            a.iter().zip(&b).map(|(a, b)| a.mul(&Fr::from(4u64)).add(b)).collect();
        same(kernel.name(), &found, &expected)
    }

    /// Checks transforms of each size, in batches of one and of three.
    ///
    /// # Errors
    /// As for [`Self::fields`].
    ///
    /// # Panics
    /// If a size is not that of a domain.
    pub fn transforms(&mut self, sizes: &[usize]) -> Result<(), CheckError> {
        for &size in sizes {
            let domain = Domain::new(size).expect("a size of a domain");
            let transforms = Transforms::new(&self.device, &domain)?;
            for vectors in [1, 3] {
                let mut values: Vec<Fr> = self.elements(vectors * size);
                let on_device = Buffer::of(&self.device, &limbs(&values))?;
                let factors: Vec<Fr> = self.elements(vectors * size);
                transforms.to_coset(&on_device)?;
                multiply(&on_device, &Buffer::of(&self.device, &limbs(&factors))?)?;
                values.chunks_exact_mut(size).for_each(|values| domain.to_coset(values));
                values.iter_mut().zip(&factors).for_each(|(x, y)| *x *= y);
                let found = scalars(&on_device.read()?);
                same(&format!("transforms of {vectors} times {size}"), &found, &values)?;
            }
        }
        Ok(())
    }

    /// Checks multi-scalar multiplications with points and scalars of all kinds, of two vectors at once.
    ///
    /// # Errors
    /// As for [`Self::fields`].
    pub fn products(&mut self, count: usize, sizes: &[Sizes]) -> Result<(), CheckError> {
        self.products_of::<G1Point>("G1", count, sizes)?;
        self.products_of::<G2Point>("G2", count, sizes)
    }

    fn products_of<P: Curve + Group>(
        &mut self,
        group: &str,
        count: usize,
        sizes: &[Sizes],
    ) -> Result<(), CheckError> {
        // Multiples of one point that is found by additions, with equal and opposite ones and infinity among them.
        let mut points = vec![self.point::<P>()];
        let step: P = self.point();
        while points.len() < count {
            let last = points.len() - 1;
            let next = match points.len() % 17 {
                3 => points[last],
                5 => points[last].neg(),
                7 => P::zeroed(),
                8 => points[last - 1].add(&step),
                _ => points[last].add(&step),
            };
            points.push(next);
        }
        for sizes in sizes {
            let bases = Bases::with_sizes(&self.device, &points, *sizes)?;
            for (name, a, b) in self.kinds(count) {
                let both = [a.as_slice(), &b].concat();
                let found = bases.multiply(&Buffer::of(&self.device, &limbs(&both))?)?;
                let expected = [P::msm(&points, &a), P::msm(&points, &b)];
                let what = format!("{group}: {count} points, {name} scalars, {sizes:?}");
                same(&what, &found, &expected)?;
            }
        }
        Ok(())
    }

    /// Checks all computations of a worker, for types with these numbers of rows, with assignments of which one
    /// violates a row.
    ///
    /// # Errors
    /// As for [`Self::fields`].
    pub fn workers(&mut self, rows: &[usize]) -> Result<(), CheckError> {
        for &rows in rows {
            let toy = Toy::new(rows, &mut self.random);
            let parts = toy.parts();
            let good: Vec<Vec<Fr>> = (0..2).map(|_| toy.assignment(&mut self.random)).collect();
            let mut bad = good[0].clone();
            let violated = rows / 2;
            bad[violated + 1] += Fr::ONE;
            let all = [&good[0][..], &bad, &good[1]].concat();
            let device = self.device.clone();
            let upload = |values: &[Fr]| Buffer::of(&device, &limbs(values));
            for multiples in [false, true] {
                let on_device = TypeOnDevice::new(&self.device, &parts, 3, multiples)?;
                let expected = [
                    Ok(toy.sums(&good[0])),
                    Err(Unsatisfied { constraint: violated }),
                    Ok(toy.sums(&good[1])),
                ];
                let what = format!("{rows} rows, multiples: {multiples}");
                same(&what, &on_device.prove(&upload(&all)?, true)?, &expected)?;
                // Without `check`, a wrong assignment has sums, too.
                let expected = [Ok(toy.sums(&bad))];
                same(&what, &on_device.prove(&upload(&bad)?, false)?, &expected)?;
                let values = &all[..2 * parts.d.len()];
                let expected: Vec<G1Point> = match parts.d.len() {
                    0 => Vec::new(),
                    len => values.chunks(len).map(|values| G1Point::msm(parts.d, values)).collect(),
                };
                same(&what, &on_device.commit(&upload(values)?)?, &expected)?;
            }
        }
        Ok(())
    }

    /// Returns pairs of vectors of scalars, each with the name of its special case.
    fn kinds(&mut self, count: usize) -> Vec<(&'static str, Vec<Fr>, Vec<Fr>)> {
        let random = |random: &mut ChaCha20Rng| Fr::rand(random);
        let many = |this: &mut Self, of: &dyn Fn(&mut ChaCha20Rng) -> Fr| -> Vec<Fr> {
            (0..count).map(|_| of(&mut this.random)).collect()
        };
        let one = Fr::rand(&mut self.random);
        // The largest digits of every window, and carries through all of them.
        let half = Fr::from_bigint(BigInt([u64::MAX, u64::MAX, u64::MAX, (1 << 61) - 1]))
            .expect("below the modulus");
        vec![
            ("random", many(self, &random), many(self, &|random| Fr::from(random.r#gen::<u16>()))),
            ("equal", vec![one; count], vec![-Fr::ONE; count]),
            ("zero and one", vec![Fr::ZERO; count], many(self, &|r| Fr::from(r.gen_range(0..2u8)))),
            ("extreme", vec![half; count], self.elements(count)),
            (
                "mixed",
                many(self, &|random| match random.gen_range(0..4) {
                    0 => Fr::ZERO,
                    1 => -Fr::from(random.r#gen::<u32>()),
                    _ => Fr::rand(random),
                }),
                vec![Fr::ONE.double(); count],
            ),
        ]
    }
}
