//! The arithmetic front beside arkworks, for people who tune: `cargo bench -p benches --bench kernels`.
#![allow(missing_docs)]

use ark_bls12_381::{G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::VariableBaseMSM;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use ark_std::{UniformRand, test_rng};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hekaton_arith::{Domain, FixedBase, Fr, G1Point, G2Point, Group, Gt, MillerLoop, pairing};

fn scalars(n: usize) -> Vec<Fr> {
    let mut rng = test_rng();
    (0..n).map(|_| Fr::rand(&mut rng)).collect()
}

fn msm(c: &mut Criterion) {
    let mut group = c.benchmark_group("msm");
    group.sample_size(10);
    let n = 1 << 14;
    let xs = scalars(n);
    let bits: Vec<Fr> = (0..n).map(|i| if i % 10 == 0 { xs[i] } else { Fr::from((i % 2) as u64) }).collect();
    let g1 = FixedBase::new(&G1Point::generator(), n).mul_each(&xs);
    let g2 = FixedBase::new(&G2Point::generator(), n).mul_each(&xs);
    let ark_g1: Vec<G1Affine> = g1.iter().map(|p| (*p).into()).collect();
    let ark_g2: Vec<G2Affine> = g2.iter().map(|p| (*p).into()).collect();
    for (name, xs) in [("full", &xs), ("mostly bits", &bits)] {
        group.bench_function(BenchmarkId::new("G1 ours", name), |b| b.iter(|| G1Point::msm(&g1, xs)));
        group.bench_function(BenchmarkId::new("G1 arkworks", name), |b| b.iter(|| G1Projective::msm(&ark_g1, xs)));
        group.bench_function(BenchmarkId::new("G2 ours", name), |b| b.iter(|| G2Point::msm(&g2, xs)));
        group.bench_function(BenchmarkId::new("G2 arkworks", name), |b| b.iter(|| G2Projective::msm(&ark_g2, xs)));
    }
    group.finish();
}

fn fft(c: &mut Criterion) {
    let mut group = c.benchmark_group("fft");
    group.sample_size(10);
    let n = 1 << 17;
    let xs = scalars(n);
    let (ours, theirs) = (Domain::new(n).unwrap(), Radix2EvaluationDomain::<Fr>::new(n).unwrap());
    let coset = theirs.get_coset(ours.shift()).unwrap();
    group.bench_function("ours, domain to coset", |b| {
        b.iter(|| {
            let mut v = xs.clone();
            ours.to_coset(&mut v);
            v
        });
    });
    group.bench_function("arkworks, domain to coset", |b| b.iter(|| coset.fft(&theirs.ifft(&xs))));
    group.finish();
}

fn pairings(c: &mut Criterion) {
    let mut group = c.benchmark_group("pairing");
    group.sample_size(10);
    let xs = scalars(256);
    let a = FixedBase::new(&G1Point::generator(), 256).mul_each(&xs);
    let b2 = FixedBase::new(&G2Point::generator(), 256).mul_each(&xs);
    group.bench_function("256 Miller loops", |b| b.iter(|| MillerLoop::new(&a, &b2)));
    group.bench_function("final exponentiation", |b| {
        let f = MillerLoop::new(&a[..1], &b2[..1]);
        b.iter(|| f.finish());
    });
    let g = pairing(&a[0], &b2[0]);
    let bases: Vec<Gt> = xs[..78].iter().map(|x| g.mul(x)).collect();
    group.bench_function("GT multi-exponentiation, 78 bases", |b| b.iter(|| Gt::msm(&bases, &xs[..78])));
    let codes = Gt::compress_all(&bases);
    group.bench_function("GT decompression and membership, 78", |b| b.iter(|| Gt::decompress_all(&codes)));
    group.finish();
}

criterion_group!(kernels, msm, fft, pairings);
criterion_main!(kernels);
