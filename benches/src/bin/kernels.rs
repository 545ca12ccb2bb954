//! The arithmetic kernels against arkworks and blst, on the same inputs in one process, in
//! alternation.
//!
//! `cargo run --release -p benches --bin kernels -- --json`; `HEKATON_ARITH=portable` measures the portable backend.
//! With two threads, each thread runs the kernel on its own, as provers do, and the time until both
//! have finished counts; one row has a single MSM on both.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of benchmarks")]

use ark_bls12_381::{Bls12_381, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ec::scalar_mul::BatchMulPreprocessing;
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup, ScalarMul, VariableBaseMSM};
use ark_ff::UniformRand;
use ark_poly::{EvaluationDomain, MixedRadixEvaluationDomain, Radix2EvaluationDomain};
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use benches::{Line, Run, alternate};
use clap::Parser;
use hekaton_arith::{
    Backend, Domain, FixedBase, Fr, G1Point, G2Point, Group, Gt, MillerLoop, Scalars, pairing,
};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

const ARKWORKS: &str = "arkworks 0.6";
const BLST: &str = "blst 0.3.17";

/// Kernel benchmarks.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// Run only rows whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Number of threads; may be repeated.
    #[arg(long, default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Halve the sizes of MSMs, transforms and tables this many times.
    #[arg(long, default_value_t = 0)]
    smaller: u32,
}

impl Options {
    fn wants(&self, bench: &str) -> bool {
        bench.contains(&self.only)
    }

    fn size(&self, log: u32) -> usize {
        1 << log.saturating_sub(self.smaller)
    }

    /// Measures one row per number of threads, each of which runs the kernel on its own.
    fn row<A, B>(
        &self,
        bench: &str,
        size: usize,
        each: Unit,
        rival: &str,
        ours: impl Fn() -> A + Sync,
        theirs: impl Fn() -> B + Sync,
    ) {
        for threads in self.threads.iter().copied() {
            let (ours, theirs) = (|| on(threads, &ours), || on(threads, &theirs));
            self.line(bench, size, threads, &each, rival, ours, theirs);
        }
    }

    /// Measures and prints one row.
    #[allow(clippy::too_many_arguments)]
    fn line(
        &self,
        bench: &str,
        size: usize,
        threads: usize,
        each: &Unit,
        rival: &str,
        ours: impl Fn(),
        theirs: impl Fn(),
    ) {
        if !self.wants(bench) {
            return;
        }
        let (a, b) = alternate(self.run.repetitions, ours, theirs);
        let figure = |t: std::time::Duration| t.as_secs_f64() * each.scale / each.of as f64;
        let (ours, theirs, unit) = (figure(a), figure(b), each.name);
        Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better: false }
            .print(self.run.json);
    }
}

struct Unit {
    name: &'static str,
    scale: f64,
    of: usize,
}

fn seconds() -> Unit {
    Unit { name: "s", scale: 1.0, of: 1 }
}

fn milliseconds() -> Unit {
    Unit { name: "ms", scale: 1e3, of: 1 }
}

fn microseconds_each(of: usize) -> Unit {
    Unit { name: "us", scale: 1e6, of }
}

/// Runs the function on `threads` threads at once.
fn on<R>(threads: usize, f: &(impl Fn() -> R + Sync)) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| drop(black_box(f())));
        }
        black_box(f());
    });
}

fn main() {
    let options = Options::parse();
    match Backend::choose() {
        Ok(backend) => eprintln!("backend: {backend}"),
        Err(why) => {
            eprintln!("error: {why}");
            std::process::exit(2);
        }
    }
    let mut rng = StdRng::seed_from_u64(1);
    let scalars: Vec<Fr> = (0..options.size(20)).map(|_| Fr::rand(&mut rng)).collect();
    msm_g1(&options, &scalars, &mut rng);
    msm_g2(&options, &scalars);
    fixed_base(&options, &scalars);
    fft(&options, &scalars);
    pairings(&options, &scalars);
    target_group(&options, &scalars);
    multiples(&options, &scalars);
}

fn msm_g1(options: &Options, scalars: &[Fr], rng: &mut StdRng) {
    const NAMES: [&str; 3] = ["MSM G1", "MSM G1, shared by two threads", "MSM G1, 90 % bits"];
    if !NAMES.iter().any(|name| options.wants(name)) {
        return;
    }
    let (large, small) = (options.size(20), options.size(18));
    let points = FixedBase::new(&G1Point::generator(), large).mul_each(scalars);
    let arks: Vec<G1Affine> = points.iter().map(|p| (*p).into()).collect();
    let row = |name, n: usize, factors: &[Fr]| {
        let (points, arks, xs) = (&points[..n], &arks[..n], &factors[..n]);
        let ours = || G1Point::msm(points, xs);
        options.row(name, n, seconds(), ARKWORKS, ours, || G1Projective::msm(arks, xs));
        options.row(name, n, seconds(), BLST, ours, || blst_rival::msm_g1(arks, xs));
    };
    for n in [small, large] {
        row("MSM G1", n, scalars);
    }
    if let Some(two) = NonZeroUsize::new(2).filter(|_| options.threads.contains(&2)) {
        let prepared = Scalars::new(&scalars[..small]);
        let ours = || {
            black_box(G1Point::msm_on_threads(&points[..small], &prepared, two));
        };
        let one = || {
            black_box(G1Point::msm_prepared(&points[..small], &prepared));
        };
        options.line(
            "MSM G1, shared by two threads",
            small,
            2,
            &seconds(),
            "one thread",
            ours,
            one,
        );
    }
    let bits: Vec<Fr> = scalars
        .iter()
        .map(|x| if rng.gen_range(0..10) == 0 { *x } else { Fr::from(rng.gen_range(0..2u8)) })
        .collect();
    row("MSM G1, 90 % bits", large, &bits);
}

fn msm_g2(options: &Options, scalars: &[Fr]) {
    const NAME: &str = "MSM G2";
    if !options.wants(NAME) {
        return;
    }
    let n = options.size(18);
    let xs = &scalars[..n];
    let points = FixedBase::new(&G2Point::generator(), n).mul_each(xs);
    let arks: Vec<G2Affine> = points.iter().map(|p| (*p).into()).collect();
    let ours = || G2Point::msm(&points, xs);
    options.row(NAME, n, seconds(), ARKWORKS, ours, || G2Projective::msm(&arks, xs));
    options.row(NAME, n, seconds(), BLST, ours, || blst_rival::msm_g2(&arks, xs));
}

fn fixed_base(options: &Options, scalars: &[Fr]) {
    fn row<G: Group, P: ScalarMul<ScalarField = Fr>>(
        options: &Options,
        name: &str,
        xs: &[Fr],
        g: G,
        theirs: P,
    ) {
        let ours = || FixedBase::new(&g, xs.len()).mul_each(xs);
        let rival = || BatchMulPreprocessing::new(theirs, xs.len()).batch_mul(xs);
        options.row(name, xs.len(), seconds(), ARKWORKS, ours, rival);
    }
    let xs = &scalars[..options.size(18)];
    row(options, "fixed base G1", xs, G1Point::generator(), G1Projective::generator());
    row(options, "fixed base G2", xs, G2Point::generator(), G2Projective::generator());
}

fn fft(options: &Options, scalars: &[Fr]) {
    const NAMES: [&str; 3] = ["FFT", "coset FFT", "domain to coset"];
    if !NAMES.iter().any(|name| options.wants(name)) {
        return;
    }
    let n = scalars.len();
    let ours = Domain::new(n).expect("a power of two");
    let theirs = Radix2EvaluationDomain::<Fr>::new(n).expect("a power of two");
    let coset = theirs.get_coset(ours.shift()).expect("the shift is not zero");
    // in place, as in provers: one vector per thread, which each transform overwrites
    let vectors =
        Mutex::new(vec![scalars.to_vec(); options.threads.iter().copied().max().unwrap_or(1)]);
    let run = |f: &(dyn Fn(&mut Vec<Fr>) + Sync)| {
        let pool = || vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let mut values = pool().pop().expect("one vector per thread");
        f(&mut values);
        pool().push(values);
    };
    // the first one computes the table of the shift's powers, which arkworks recomputes each time
    run(&|v| ours.coset_fft(v));
    let (fft, coset_fft) =
        (|v: &mut Vec<Fr>| theirs.fft_in_place(v), |v: &mut Vec<Fr>| coset.fft_in_place(v));
    let both = |v: &mut Vec<Fr>| {
        theirs.ifft_in_place(v);
        coset.fft_in_place(v);
    };
    options.row(NAMES[0], n, milliseconds(), ARKWORKS, || run(&|v| ours.fft(v)), || run(&fft));
    options.row(
        NAMES[1],
        n,
        milliseconds(),
        ARKWORKS,
        || run(&|v| ours.coset_fft(v)),
        || run(&coset_fft),
    );
    options.row(
        NAMES[2],
        n,
        milliseconds(),
        ARKWORKS,
        || run(&|v| ours.to_coset(v)),
        || run(&both),
    );
    // three quarters of the next power of two, against arkworks and against that power of two
    let three = n / 4 * 3;
    let thirds = Domain::new(three).expect("three times a power of two");
    let theirs = MixedRadixEvaluationDomain::<Fr>::new(three).expect("three times a power of two");
    let coset = theirs.get_coset(thirds.shift()).expect("the shift is not zero");
    // arkworks' transforms set the length
    let both = |v: &mut Vec<Fr>| {
        v.truncate(three);
        theirs.ifft_in_place(v);
        coset.fft_in_place(v);
        v.resize(n, Fr::default());
    };
    let shorter = || run(&|v| thirds.to_coset(&mut v[..three]));
    options.row(NAMES[2], three, milliseconds(), ARKWORKS, shorter, || run(&both));
    let longer = || run(&|v| ours.to_coset(v));
    options.row(NAMES[2], three, milliseconds(), "next power of two", shorter, longer);
}

fn pairings(options: &Options, scalars: &[Fr]) {
    let xs = &scalars[..256];
    let a = FixedBase::new(&G1Point::generator(), 256).mul_each(xs);
    let b = FixedBase::new(&G2Point::generator(), 256).mul_each(xs);
    let ark_a: Vec<G1Affine> = a.iter().map(|p| (*p).into()).collect();
    let ark_b: Vec<G2Affine> = b.iter().map(|p| (*p).into()).collect();
    let ours = || MillerLoop::new(&a, &b);
    let name = "multi-Miller loop";
    options.row(name, 256, microseconds_each(256), BLST, ours, || {
        blst_rival::miller_loop(&ark_a, &ark_b)
    });
    options.row(name, 256, microseconds_each(256), ARKWORKS, ours, || {
        Bls12_381::multi_miller_loop(&ark_a, &ark_b)
    });
}

fn target_group(options: &Options, scalars: &[Fr]) {
    let (g, xs) = (pairing(&G1Point::generator(), &G2Point::generator()), &scalars[..100]);
    let theirs = PairingOutput::<Bls12_381>::generator();
    let bases: Vec<Gt> = scalars[100..200].iter().map(|x| g.mul(x)).collect();
    let arks: Vec<PairingOutput<Bls12_381>> =
        scalars[100..200].iter().map(|x| theirs * x).collect();
    let name = "GT multi-exponentiation";
    let ours = || Gt::msm(&bases, xs);
    options.row(name, 100, microseconds_each(100), ARKWORKS, ours, || {
        PairingOutput::<Bls12_381>::msm(&arks, xs)
    });
}

fn multiples(options: &Options, scalars: &[Fr]) {
    let n = 1 << 12;
    let xs = &scalars[..n];
    let bytes: [u8; 16] = std::array::from_fn(|i| 17 * i as u8 + 3);
    let x = Fr::from(u128::from_le_bytes(bytes));
    let g1 = FixedBase::new(&G1Point::generator(), n).mul_each(xs);
    let g2 = FixedBase::new(&G2Point::generator(), n).mul_each(xs);
    let ark_g1: Vec<G1Affine> = g1.iter().map(|p| (*p).into()).collect();
    let ark_g2: Vec<G2Affine> = g2.iter().map(|p| (*p).into()).collect();
    let pairs = || microseconds_each(n / 2);
    let (us, they) = (|| G1Point::fold_pairs(&g1, &x), || blst_rival::fold_g1(&ark_g1, &bytes));
    options.row("fold G1, 128 bits", n, pairs(), BLST, us, they);
    let (us, they) = (|| G2Point::fold_pairs(&g2, &x), || blst_rival::fold_g2(&ark_g2, &bytes));
    options.row("fold G2, 128 bits", n, pairs(), BLST, us, they);
    let (us, they) = (|| G1Point::mul_each(&g1, xs), || multiply(&ark_g1, xs));
    options.row("multiples G1", n, microseconds_each(n), ARKWORKS, us, they);
    options
        .row("multiples G1", n, microseconds_each(n), BLST, us, || blst_rival::mul_g1(&ark_g1, xs));
    let (us, they) = (|| G2Point::mul_each(&g2, xs), || multiply(&ark_g2, xs));
    options.row("multiples G2", n, microseconds_each(n), ARKWORKS, us, they);
    options
        .row("multiples G2", n, microseconds_each(n), BLST, us, || blst_rival::mul_g2(&ark_g2, xs));
}

fn multiply<P: AffineRepr<ScalarField = Fr>>(points: &[P], scalars: &[Fr]) -> Vec<P> {
    P::Group::normalize_batch(&points.iter().zip(scalars).map(|(p, x)| *p * x).collect::<Vec<_>>())
}

/// blst through its C interface, on one thread each.
#[allow(unsafe_code)]
mod blst_rival {
    use ark_bls12_381::{Fr, G1Affine, G2Affine};
    use ark_ff::PrimeField;
    use blst::*;

    fn bytes(x: &Fr) -> [u8; 32] {
        let mut out = [0; 32];
        for (chunk, limb) in out.chunks_exact_mut(8).zip(x.into_bigint().0) {
            chunk.copy_from_slice(&limb.to_le_bytes());
        }
        out
    }

    fn g1(p: &G1Affine) -> blst_p1_affine {
        blst_p1_affine { x: blst_fp { l: p.x.0.0 }, y: blst_fp { l: p.y.0.0 } }
    }

    fn g2(p: &G2Affine) -> blst_p2_affine {
        let fp2 = |x: &ark_bls12_381::Fq2| blst_fp2 {
            fp: [blst_fp { l: x.c0.0.0 }, blst_fp { l: x.c1.0.0 }],
        };
        blst_p2_affine { x: fp2(&p.x), y: fp2(&p.y) }
    }

    macro_rules! group {
        ($msm:ident, $mul:ident, $fold:ident, $ark:ty, $point:ident, $affine:ident, $projective:ident, $pippenger:ident,
         $scratch:ident, $from:ident, $mult:ident, $add:ident, $to_affines:ident) => {
            pub(crate) fn $msm(points: &[$ark], scalars: &[Fr]) -> $projective {
                let theirs: Vec<$affine> = points.iter().map($point).collect();
                let factors: Vec<[u8; 32]> = scalars.iter().map(bytes).collect();
                let (mut out, lists) = (
                    $projective::default(),
                    (
                        [theirs.as_ptr(), std::ptr::null()],
                        [factors.as_ptr().cast(), std::ptr::null()],
                    ),
                );
                // SAFETY: both lists have as many contiguous elements as the length passed (their
                // second entry is null), and the scratch space is as large as blst asks for.
                unsafe {
                    let mut scratch = vec![0u64; $scratch(points.len()) / 8 + 1];
                    $pippenger(
                        &mut out,
                        lists.0.as_ptr(),
                        points.len(),
                        lists.1.as_ptr(),
                        255,
                        scratch.as_mut_ptr(),
                    );
                }
                out
            }

            fn multiples<'a>(
                points: impl Iterator<Item = (&'a $ark, Option<&'a $ark>)>,
                scalars: impl Iterator<Item = Vec<u8>>,
                bits: usize,
            ) -> Vec<$affine> {
                let products: Vec<$projective> = points
                    .zip(scalars)
                    .map(|((p, add), x)| {
                        let (mut base, mut out) = ($projective::default(), $projective::default());
                        // SAFETY: the points are valid, and the scalar has at least `bits` bits.
                        unsafe {
                            $from(&mut base, &$point(p));
                            $mult(&mut out, &base, x.as_ptr(), bits);
                            if let Some(add) = add {
                                let sum = out;
                                $add(&mut out, &sum, &$point(add));
                            }
                        }
                        out
                    })
                    .collect();
                let mut out = vec![$affine::default(); products.len()];
                let list = [products.as_ptr(), std::ptr::null()];
                // SAFETY: input and output have `products.len()` contiguous elements.
                unsafe { $to_affines(out.as_mut_ptr(), list.as_ptr(), products.len()) };
                out
            }

            pub(crate) fn $mul(points: &[$ark], scalars: &[Fr]) -> Vec<$affine> {
                multiples(
                    points.iter().map(|p| (p, None)),
                    scalars.iter().map(|x| bytes(x).to_vec()),
                    255,
                )
            }

            pub(crate) fn $fold(points: &[$ark], x: &[u8; 16]) -> Vec<$affine> {
                let pairs = points.chunks_exact(2).map(|pair| (&pair[1], Some(&pair[0])));
                multiples(pairs, std::iter::repeat(x.to_vec()), 128)
            }
        };
    }

    mod first {
        use super::*;
        group!(
            msm_g1,
            mul_g1,
            fold_g1,
            G1Affine,
            g1,
            blst_p1_affine,
            blst_p1,
            blst_p1s_mult_pippenger,
            blst_p1s_mult_pippenger_scratch_sizeof,
            blst_p1_from_affine,
            blst_p1_mult,
            blst_p1_add_or_double_affine,
            blst_p1s_to_affine
        );
    }
    mod second {
        use super::*;
        group!(
            msm_g2,
            mul_g2,
            fold_g2,
            G2Affine,
            g2,
            blst_p2_affine,
            blst_p2,
            blst_p2s_mult_pippenger,
            blst_p2s_mult_pippenger_scratch_sizeof,
            blst_p2_from_affine,
            blst_p2_mult,
            blst_p2_add_or_double_affine,
            blst_p2s_to_affine
        );
    }
    pub(super) use first::{fold_g1, msm_g1, mul_g1};
    pub(super) use second::{fold_g2, msm_g2, mul_g2};

    pub(super) fn miller_loop(a: &[G1Affine], b: &[G2Affine]) -> blst_fp12 {
        let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(g1).collect(), b.iter().map(g2).collect());
        let lists = ([b.as_ptr(), std::ptr::null()], [a.as_ptr(), std::ptr::null()]);
        let mut out = blst_fp12::default();
        // SAFETY: both lists have `a.len()` contiguous elements: `a` and `b` are equally long.
        unsafe { blst_miller_loop_n(&mut out, lists.0.as_ptr(), lists.1.as_ptr(), a.len()) };
        out
    }
}
