//! All kernels on the host, against the CPU's.

use crate::check::Check;
use crate::device::{Buffer, Device, Error};
use crate::limbs::{FrLimbs, limbs};
use crate::toy::Toy;
use crate::{Bases, Host, MatrixParts, Sizes, Transforms, TypeOnDevice, TypeParts};
use ark_bls12_381::Fr;
use hekaton_arith::{Domain, G1Point, Group};
use hekaton_core::mirage::SparseQuery;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;

fn host() -> Arc<dyn Device> {
    Arc::new(Host)
}

fn check() -> Check {
    Check::new(&host(), 1)
}

#[test]
fn fields() {
    check().fields(64).unwrap();
}

#[test]
fn points() {
    check().points(40).unwrap();
}

#[test]
fn transforms() {
    let sizes: Vec<usize> = (1..=12).map(|bits| 1 << bits).collect();
    check().transforms(&sizes).unwrap();
    check().transforms(&[6, 12, 24, 48, 96, 192, 384, 768, 1536, 3072]).unwrap();
    check().transforms(&[1 << 14, 3 << 13]).unwrap();
}

#[test]
fn products() {
    let mut check = check();
    for count in [1, 2, 5, 33] {
        check.products(count, &[Sizes::of(count, 2, false), Sizes::of(count, 2, true)]).unwrap();
    }
    let sizes = [
        Sizes { bits: 2, length: 2, segment: 0, multiples: false },
        Sizes { bits: 5, length: 3, segment: 4, multiples: false },
        Sizes { bits: 7, length: 64, segment: 2, multiples: true },
    ];
    check.products(150, &sizes).unwrap();
}

#[test]
fn workers() {
    check().workers(&[1, 7, 60, 700]).unwrap();
}

/// Indices and lengths that do not fit are found before a kernel uses them.
#[test]
fn keys_are_checked() {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let (toy, other) = (Toy::new(20, &mut random), Toy::new(60, &mut random));
    let (parts, other) = (toy.parts(), other.parts());
    let is_refused = |parts: TypeParts<'_>| {
        matches!(TypeOnDevice::new(&host(), &parts, 1, false), Err(Error::Size { .. }))
    };
    assert!(!is_refused(parts));
    assert!(is_refused(TypeParts { variables: 0, ..parts }));
    assert!(is_refused(TypeParts { variables: parts.variables - 1, ..parts }));
    assert!(is_refused(TypeParts { coefficients: &parts.coefficients[..2], ..parts }));
    assert!(is_refused(TypeParts { domain: other.domain, ..parts }));
    assert!(is_refused(TypeParts { h: &parts.h[1..], ..parts }));
    assert!(is_refused(TypeParts { l: other.l, ..parts }));
    for i in 0..3 {
        let with = |matrix: MatrixParts<'_>| {
            let mut matrices = parts.matrices;
            matrices[i] = matrix;
            is_refused(TypeParts { matrices, ..parts })
        };
        let MatrixParts { starts, entries } = parts.matrices[i];
        assert!(with(other.matrices[i]));
        assert!(with(MatrixParts { starts: &starts[1..], entries }));
        assert!(with(MatrixParts { starts, entries: &entries[1..] }));
        let mut falling = starts.to_vec();
        falling[3] = u32::MAX;
        assert!(with(MatrixParts { starts: &falling, entries }));
    }
    fn short(query: SparseQuery<'_, G1Point>) -> SparseQuery<'_, G1Point> {
        SparseQuery { points: &query.points[1..], ..query }
    }
    assert!(is_refused(TypeParts { a: short(parts.a), ..parts }));
    assert!(is_refused(TypeParts { x: short(parts.x), ..parts }));
    assert!(is_refused(TypeParts { b: other.b, ..parts }));
    let one = TypeOnDevice::new(&host(), &parts, 1, false).unwrap();
    assert!(matches!(
        one.prove(&Buffer::zeroed(&host(), 1).unwrap(), true),
        Err(Error::Size { .. })
    ));
    assert_eq!(one.prove(&Buffer::zeroed(&host(), 0).unwrap(), true).unwrap(), []);
}

/// Windows of every size, so that digits begin and end at every bit of a limb.
#[test]
fn windows_of_all_sizes() {
    let points: Vec<G1Point> = (1..6u64).map(|i| G1Point::generator().mul(&Fr::from(i))).collect();
    let scalars: Vec<Fr> = (0..5u64).map(|i| -Fr::from(i * 77) / Fr::from(3 + i)).collect();
    let expected = G1Point::msm(&points, &scalars);
    for bits in 2..=17 {
        for multiples in [false, true] {
            let sizes = Sizes { bits, length: 8, segment: bits / 2, multiples };
            let bases = Bases::with_sizes(&host(), &points, sizes).unwrap();
            let scalars = Buffer::of(&host(), &limbs(&scalars)).unwrap();
            assert_eq!(bases.multiply(&scalars).unwrap(), [expected], "{sizes:?}");
        }
    }
}

/// A wrong length is an error before anything is launched.
#[test]
fn lengths_are_checked() {
    let points = vec![G1Point::generator(); 3];
    let size = |result| matches!(result, Err(Error::Size { .. }));
    let bases = Bases::new(&host(), &points, 1, false).unwrap();
    let four = Buffer::<FrLimbs>::zeroed(&host(), 4).unwrap();
    assert!(size(bases.multiply(&four).map(drop)));
    let domain = Domain::new(8).unwrap();
    assert!(size(Transforms::new(&host(), &domain).unwrap().to_coset(&four)));
    for tiny in [1, 3] {
        assert!(size(Transforms::new(&host(), &Domain::new(tiny).unwrap()).map(drop)));
    }
    for sizes in [
        Sizes { bits: 1, length: 8, segment: 0, multiples: false },
        Sizes { bits: 21, length: 8, segment: 0, multiples: false },
        Sizes { bits: 8, length: 1, segment: 0, multiples: false },
        Sizes { bits: 8, length: 8, segment: 8, multiples: false },
    ] {
        assert!(size(Bases::with_sizes(&host(), &points, sizes).map(drop)), "{sizes:?}");
    }
    let none: Vec<G1Point> = Vec::new();
    let nothing = Buffer::<FrLimbs>::zeroed(&host(), 0).unwrap();
    assert!(Bases::new(&host(), &none, 1, true).unwrap().multiply(&nothing).unwrap().is_empty());
}
