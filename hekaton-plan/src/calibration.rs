//! The speed of a machine's kernels: measured, or that of a reference machine.

use ark_ff::Field;
use hekaton_arith::{Domain, Fr, G1Point, G2Point, Group, MillerLoop, MsmWork, Scalars};
use hekaton_core::LocalEngine;
use hekaton_core::system::Clock;

/// Seconds per unit of each kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Units {
    /// An addition in G1: in the bucket method, and in a plain sum.
    pub(crate) g1: [f64; 2],
    /// The same in G2.
    pub(crate) g2: [f64; 2],
    /// A butterfly: `to_coset` of N values takes N log2 N of them.
    pub(crate) butterfly: f64,
    /// A pair in a product of Miller loops.
    pub(crate) miller: f64,
    /// A final exponentiation.
    pub(crate) finish: f64,
    /// One byte of a digest.
    pub(crate) hash: f64,
}

/// The speed of this machine's kernels, in seconds per unit on one thread while all threads work:
/// the median of three measurements, with the lowest and the highest.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    pub(crate) low: Units,
    pub(crate) median: Units,
    pub(crate) high: Units,
    /// The part of the processors that the measuring threads had.
    pub(crate) share: f64,
}

/// The CPU times of three calls of a function, in ascending order.
fn time<R>(mut f: impl FnMut() -> R) -> [f64; 3] {
    // Three, because the first one also fills caches: the median is not that one.
    let mut times = [0.0; 3];
    for t in &mut times {
        let start = Clock::start();
        std::hint::black_box(f());
        *t = start.elapsed().cpu_seconds;
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Full-size scalars that are quick to generate. The cost of a multi-scalar multiplication depends on the
/// sizes of its scalars, not on their values, so a simple recurrence is enough.
pub(crate) fn long_scalars(n: usize) -> Vec<Fr> {
    let step = Fr::from(u64::MAX).square().square() + Fr::from(12345u64);
    let mut x = Fr::from(3u64);
    std::iter::repeat_with(|| {
        x = x * step + Fr::ONE;
        x
    })
    .take(n)
    .collect()
}

/// Distinct points that are quick to generate: each step doubles their number by adding a shift.
pub(crate) fn points<G: Group>(n: usize) -> Vec<G> {
    // Equal points would be doubled, which costs one multiplication more than an addition.
    let step = G::generator().mul(&Fr::from(0x1234_5678_9abcu64));
    let mut out = vec![G::generator()];
    while out.len() < n {
        let shift = step.mul(&Fr::from(out.len() as u64));
        let mut more = out.clone();
        G::batch_add(&mut more, &vec![shift; out.len()]);
        out.extend(more);
    }
    out.truncate(n);
    out
}

/// Seconds per addition in the bucket method and in a plain sum, from vectors of 2^`log` points.
fn group<G: Group>(log: u32) -> [[f64; 3]; 2] {
    let n = 1 << log;
    let points = points::<G>(n);
    let long = Scalars::new(&long_scalars(n));
    let ones = Scalars::new(&vec![Fr::ONE; n]);
    let additions = long.work().additions;
    let bucket = time(|| G::msm_prepared(&points, &long)).map(|t| t / additions);
    let sum = time(|| G::msm_prepared(&points, &ones)).map(|t| t / n as f64);
    [bucket, sum]
}

impl Units {
    /// The means of several threads.
    fn mean<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let n = all.clone().count().max(1) as f64;
        let mean = |f: &dyn Fn(&Self) -> f64| all.clone().map(f).sum::<f64>() / n;
        Self {
            g1: [mean(&|u| u.g1[0]), mean(&|u| u.g1[1])],
            g2: [mean(&|u| u.g2[0]), mean(&|u| u.g2[1])],
            butterfly: mean(&|u| u.butterfly),
            miller: mean(&|u| u.miller),
            finish: mean(&|u| u.finish),
            hash: mean(&|u| u.hash),
        }
    }

    pub(crate) fn msm(unit: [f64; 2], work: MsmWork) -> f64 {
        unit[0] * work.additions + unit[1] * work.ones
    }
}

impl Calibration {
    /// The kernels of one core of an AMD EPYC (Zen 5), as [`measure`](Self::measure) found them: for
    /// choices that must be the same on every machine.
    pub fn reference() -> Self {
        let units = Units {
            g1: [6.6e-8, 6.1e-8],
            g2: [1.5e-7, 1.46e-7],
            butterfly: 4.9e-9,
            miller: 2.65e-5,
            finish: 2.63e-4,
            hash: 1.2e-10,
        };
        Self { low: units, median: units, high: units, share: 1.0 }
    }

    /// Measures for about two seconds, on all threads at once: memory bandwidth and clock are then
    /// those of a run. Times are CPU times, so that other work on this machine does not change them.
    pub fn measure(pool: &LocalEngine) -> Self {
        let all = pool.map(vec![(); pool.threads()], |()| {
            let clock = Clock::start();
            let found = Self::one_thread();
            let times = clock.elapsed();
            (found, (times.cpu_seconds / times.seconds).clamp(0.01, 1.0))
        });
        let units = |i: usize| Units::mean(all.iter().map(move |(found, _)| &found[i]));
        Self {
            low: units(0),
            median: units(1),
            high: units(2),
            // On a busy machine, threads wait for processors: CPU times are right, but a run takes longer.
            share: all.iter().map(|(_, share)| share).sum::<f64>() / all.len().max(1) as f64,
        }
    }

    /// The lowest, median and highest times of three measurements.
    fn one_thread() -> [Units; 3] {
        let log = 15;
        let (mut values, n) = (long_scalars(1 << log), (1u64 << log) as f64);
        let domain = Domain::new(1 << log).expect("2^15 is the size of a domain");
        let butterfly = time(|| domain.to_coset(&mut values)).map(|t| t / (n * f64::from(log)));
        let (a, b) = (points::<G1Point>(64), points::<G2Point>(64));
        let miller = time(|| MillerLoop::new(&a, &b)).map(|t| t / 64.0);
        let product = MillerLoop::new(&a, &b);
        let finish = time(|| product.finish());
        let bytes = vec![1u8; 1 << 22];
        let hash = time(|| blake3::hash(&bytes)).map(|t| t / bytes.len() as f64);
        let (g1, g2) = (group::<G1Point>(14), group::<G2Point>(12));
        [0, 1, 2].map(|i| Units {
            g1: g1.map(|times| times[i]),
            g2: g2.map(|times| times[i]),
            butterfly: butterfly[i],
            miller: miller[i],
            finish: finish[i],
            hash: hash[i],
        })
    }
}
