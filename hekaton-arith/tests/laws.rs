//! Checks the public API against arkworks: random and edge values, awkward lengths.

use ark_bls12_381::{
    Bls12_381, Fq, Fq2, Fq6, Fq12, G1Affine, G1Projective, G2Affine, G2Projective,
};
use ark_ec::{
    AffineRepr, CurveGroup, PrimeGroup, VariableBaseMSM,
    pairing::{MillerLoopOutput, Pairing},
};
use ark_ff::{Field, One, PrimeField, UniformRand, Zero};
use ark_poly::{EvaluationDomain, MixedRadixEvaluationDomain, Radix2EvaluationDomain};
use ark_serialize::CanonicalSerialize;
use hekaton_arith::*;
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = Fr> {
    prop_oneof![
        3 => any::<[u8; 64]>().prop_map(|b| fr_from_uniform(&b)),
        2 => Just(Fr::zero()),
        2 => Just(Fr::ONE),
        1 => Just(-Fr::ONE),
        2 => any::<u64>().prop_map(Fr::from),
        1 => any::<u8>().prop_map(Fr::from),
        1 => any::<u128>().prop_map(Fr::from),
    ]
}

fn scalars(max: usize) -> impl Strategy<Value = Vec<Fr>> {
    prop::collection::vec(scalar(), 0..max)
}

/// A small multiple of the generator: collisions, opposite points and infinity are frequent.
fn small_point<G: Group>() -> impl Strategy<Value = G> {
    (-3i64..=3).prop_map(|k| G::generator().mul(&Fr::from(k)))
}

fn point<G: Group>() -> impl Strategy<Value = G> {
    prop_oneof![small_point::<G>(), scalar().prop_map(|x| G::generator().mul(&x))]
}

fn naive<P: CurveGroup<ScalarField = Fr> + VariableBaseMSM>(
    bases: &[P::Affine],
    scalars: &[Fr],
) -> P::Affine {
    bases.iter().zip(scalars).map(|(b, s)| *b * s).sum::<P>().into_affine()
}

macro_rules! group_laws {
    ($name:ident, $point:ty, $affine:ty, $projective:ty) => {
        mod $name {
            use super::*;
            fn ark(p: &$point) -> $affine {
                (*p).into()
            }
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(24))]

                #[test]
                fn msm_is_the_sum_of_products(input in prop::collection::vec((point::<$point>(), scalar()), 0..70)) {
                    let (bases, scalars): (Vec<_>, Vec<_>) = input.into_iter().unzip();
                    let arks: Vec<_> = bases.iter().map(ark).collect();
                    prop_assert_eq!(ark(&<$point>::msm(&bases, &scalars)), naive::<$projective>(&arks, &scalars));
                    let each = <$point>::mul_each(&bases, &scalars);
                    for ((p, b), s) in each.iter().zip(&arks).zip(&scalars) {
                        prop_assert_eq!(ark(p), (*b * s).into_affine());
                    }
                    prop_assert_eq!(<$point>::sum(&each), <$point>::msm(&bases, &scalars));
                }

                #[test]
                fn all_equal_bases_and_scalars(p in point::<$point>(), x in scalar(), n in 0usize..40) {
                    let expected = ark(&p) * (x * Fr::from(n as u64));
                    prop_assert_eq!(ark(&<$point>::msm(&vec![p; n], &vec![x; n])), expected.into_affine());
                }

                #[test]
                fn additions_are_complete(a in small_point::<$point>(), b in small_point::<$point>(), x in scalar()) {
                    let sum = (ark(&a) + ark(&b)).into_affine();
                    prop_assert_eq!(ark(&a.add(&b)), sum);
                    prop_assert_eq!(ark(&a.sub(&b)), (ark(&a) - ark(&b)).into_affine());
                    let mut batch = vec![a, b, a];
                    <$point>::batch_add(&mut batch, &[b, a.neg(), <$point>::IDENTITY]);
                    prop_assert_eq!(ark(&batch[0]), sum);
                    prop_assert_eq!(ark(&batch[1]), (ark(&b) - ark(&a)).into_affine());
                    prop_assert_eq!(batch[2], a);
                    let folded = <$point>::fold_pairs(&[a, b, b, a], &x);
                    prop_assert_eq!(ark(&folded[0]), (ark(&a) + ark(&b) * x).into_affine());
                    prop_assert_eq!(ark(&folded[1]), (ark(&b) + ark(&a) * x).into_affine());
                    prop_assert_eq!(<$point>::mul_all(&[a, b], &x), vec![a.mul(&x), b.mul(&x)]);
                }

                #[test]
                fn sparse_sums_are_sums_of_products(
                    points in prop::collection::vec(point::<$point>(), 5),
                    lists in prop::collection::vec(prop::collection::vec((0u32..5, scalar()), 0..6), 0..6),
                ) {
                    let terms = lists.concat();
                    let ends: Vec<u32> = lists.iter().scan(0, |end, list| { *end += u32::try_from(list.len()).unwrap(); Some(*end) }).collect();
                    let sums = <$point>::sparse_sums(&points, &terms, &ends);
                    prop_assert_eq!(sums.len(), lists.len());
                    for (sum, list) in sums.iter().zip(&lists) {
                        let (bases, scalars): (Vec<_>, Vec<_>) = list.iter().map(|(i, x)| (points[*i as usize], *x)).unzip();
                        prop_assert_eq!(*sum, <$point>::msm(&bases, &scalars));
                    }
                }

                #[test]
                fn the_cube_root_is_one(p in point::<$point>()) {
                    let root = cube_root();
                    prop_assert!(root != Fr::ONE && root * root * root == Fr::ONE);
                    prop_assert_eq!(p.times_cube_root(), p.mul(&root));
                }

                #[test]
                fn fixed_base_agrees(p in point::<$point>(), xs in scalars(40), hint in 0usize..3000) {
                    let table = FixedBase::new(&p, hint);
                    prop_assert_eq!(table.mul_each(&xs), <$point>::mul_each(&vec![p; xs.len()], &xs));
                }

                #[test]
                fn encoding_round_trips_and_matches_arkworks(p in point::<$point>()) {
                    let bytes = p.to_compressed();
                    let mut theirs = Vec::new();
                    ark(&p).serialize_compressed(&mut theirs).unwrap();
                    prop_assert_eq!(&bytes, &theirs);
                    prop_assert_eq!(<$point>::from_compressed(&bytes), Ok(p));
                    let mut whole = vec![7; <$point>::UNCOMPRESSED];
                    p.write_uncompressed(&mut whole);
                    let mut theirs = Vec::new();
                    ark(&p).serialize_uncompressed(&mut theirs).unwrap();
                    prop_assert_eq!(&whole, &theirs);
                    prop_assert_eq!(<$point>::on_curve_from_uncompressed(&whole), Ok(p));
                    prop_assert!(p.is_in_group());
                    prop_assert_eq!(<$point>::from(ark(&p)), p);
                }

                #[test]
                fn random_bytes_decode_to_group_elements_or_errors(mut bytes in prop::collection::vec(any::<u8>(), <$point>::COMPRESSED)) {
                    bytes[0] |= 0x80;
                    bytes[0] &= 0x9f;
                    if let Ok(p) = <$point>::from_compressed(&bytes) {
                        prop_assert!(ark(&p).is_in_correct_subgroup_assuming_on_curve());
                        prop_assert_eq!(p.to_compressed(), bytes);
                    }
                }
            }

            #[test]
            fn long_vectors() {
                let mut rng = ark_std_rng();
                for n in [255usize, 1000, 1025, 2500] {
                    let xs: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
                    let bases = FixedBase::new(&<$point>::generator(), n).mul_each(&xs);
                    let arks: Vec<_> = bases.iter().map(ark).collect();
                    assert_eq!(arks[n - 1], (<$affine>::generator() * xs[n - 1]).into_affine());
                    let theirs = <$projective>::msm(&arks, &xs).unwrap().into_affine();
                    assert_eq!(ark(&<$point>::msm(&bases, &xs)), theirs);
                }
            }

            /// Lengths around those of a vector and of a short batch, slices that begin anywhere,
            /// and all kinds of pairs side by side.
            #[test]
            fn awkward_lengths() {
                let mut rng = ark_std_rng();
                let most = 2052;
                let xs: Vec<Fr> = (0..most).map(|_| Fr::rand(&mut rng)).collect();
                let bases = FixedBase::new(&<$point>::generator(), most).mul_each(&xs);
                for n in [0, 1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 23, 24, 25, 31, 32, 33, 63, 65, 1023, 1024, 1025, 2047, 2048, 2049] {
                    let first = n % 3;
                    let (a, xs) = (&bases[first..first + n], &xs[first..first + n]);
                    // plain, equal, opposite, one or both infinite
                    let b: Vec<$point> = (0..n)
                        .map(|i| match i % 11 {
                            2 => a[i],
                            3 => a[i].neg(),
                            5 | 6 => <$point>::IDENTITY,
                            _ => bases[most - 1 - i],
                        })
                        .collect();
                    let a: Vec<$point> =
                        (0..n).map(|i| if i % 11 == 6 || i % 11 == 7 { <$point>::IDENTITY } else { a[i] }).collect();
                    let mut sums = a.clone();
                    <$point>::batch_add(&mut sums, &b);
                    for ((sum, a), b) in sums.iter().zip(&a).zip(&b) {
                        assert_eq!(ark(sum), (ark(a) + ark(b)).into_affine(), "{n} pairs");
                    }
                    let arks: Vec<_> = a.iter().map(ark).collect();
                    let theirs = <$projective>::msm(&arks, xs).unwrap().into_affine();
                    assert_eq!(ark(&<$point>::msm(&a, xs)), theirs, "{n} products");
                    let theirs = arks.iter().sum::<$projective>().into_affine();
                    assert_eq!(ark(&<$point>::sum(&a)), theirs, "a sum of {n}");
                }
            }

            /// Lengths around the sizes of batches of additions.
            #[test]
            fn long_batches_of_additions() {
                let mut rng = ark_std_rng();
                let most = 8193;
                let xs: Vec<Fr> = (0..2 * most).map(|_| Fr::rand(&mut rng)).collect();
                let table = FixedBase::new(&<$point>::generator(), most);
                let (a, b) = (table.mul_each(&xs[..most]), table.mul_each(&xs[most..]));
                let sums: Vec<Fr> = xs[..most].iter().zip(&xs[most..]).map(|(x, y)| *x + y).collect();
                let expected = table.mul_each(&sums);
                for n in [511, 512, 521, 1023, 1029, 1033, 1041, 2057, 4095, 4096, 4097, 4109, most] {
                    let mut sums = a[..n].to_vec();
                    <$point>::batch_add(&mut sums, &b[..n]);
                    assert_eq!(sums, expected[..n], "{n} additions");
                }
            }

            /// More than one batch: products by single scalars, and buckets with more points than a
            /// block among others.
            #[test]
            fn long_multiples_and_full_buckets() {
                let mut rng = ark_std_rng();
                let n = 2 * 1024 + 2;
                let [logs, xs]: [Vec<Fr>; 2] = std::array::from_fn(|_| (0..n).map(|_| Fr::rand(&mut rng)).collect());
                let table = FixedBase::new(&<$point>::generator(), n);
                let points = table.mul_each(&logs);
                let products: Vec<Fr> = logs.iter().zip(&xs).map(|(a, x)| *a * x).collect();
                let expected = table.mul_each(&products);
                for n in [1023, 1024, 1025, 2050] {
                    assert_eq!(<$point>::mul_each(&points[..n], &xs[..n]), expected[..n], "{n} products");
                }
                let folded: Vec<Fr> = logs.as_chunks::<2>().0.iter().map(|[a, b]| *a + *b * xs[0]).collect();
                assert_eq!(<$point>::fold_pairs(&points, &xs[0]), table.mul_each(&folded));
                // more points than a block with one scalar or its negative, as many with -1, and
                // some with others
                let bases: Vec<$point> = points.iter().cycle().take(40_000).copied().collect();
                let scalar = |i: usize| match i {
                    i if i % 91 == 0 => xs[i % n],
                    i if i % 2 == 0 => -Fr::ONE,
                    i if i % 3 == 0 => -xs[0],
                    _ => xs[0],
                };
                let scalars: Vec<Fr> = (0..bases.len()).map(scalar).collect();
                let sum: Fr = (0..bases.len()).map(|i| logs[i % n] * scalars[i]).sum();
                assert_eq!(<$point>::msm(&bases, &scalars), table.mul_each(&[sum])[0]);
            }

            /// Fewer threads than windows, more than windows, more than points; all kinds of
            /// scalars, and some kinds alone.
            #[test]
            fn threads_share_an_msm() {
                let mut rng = ark_std_rng();
                let n = 700;
                let logs: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
                let table = FixedBase::new(&<$point>::generator(), n);
                let points = table.mul_each(&logs);
                let scalar = |i: usize| match i % 7 {
                    0 => Fr::zero(),
                    1 => Fr::ONE,
                    2 => -Fr::ONE,
                    3 => Fr::from(i as u64),
                    4 => -Fr::from(i as u64),
                    _ => Fr::rand(&mut ark_std::test_rng()) * Fr::from(i as u64),
                };
                for (n, kind) in [(0, None), (1, None), (5, Some(6)), (40, None), (n, None), (n, Some(0)), (n, Some(1)), (n, Some(3)), (n, Some(5))] {
                    let xs: Vec<Fr> = (0..n).map(|i| scalar(kind.map_or(i, |kind| 7 * i + kind))).collect();
                    let sum: Fr = xs.iter().zip(&logs).map(|(x, log)| *x * log).sum();
                    let expected = table.mul_each(&[sum])[0];
                    for threads in [1, 2, 3, 7, 50] {
                        let threads = std::num::NonZeroUsize::new(threads).unwrap();
                        let ours = <$point>::msm_on_threads(&points[..n], &Scalars::new(&xs), threads);
                        assert_eq!(ours, expected, "{n} points, {threads} threads, scalars {kind:?}");
                    }
                }
            }

            /// Scalars at the limits of windows, halves and digits in the bases of the
            /// endomorphisms.
            #[test]
            fn awkward_scalars() {
                let u = Fr::from(0xd201_0000_0001_0000u64);
                let half = -Fr::ONE / Fr::from(2u64);
                let edges = [
                    Fr::zero(), Fr::ONE, Fr::from(2u64), half, half + Fr::ONE, half - Fr::ONE, u, u - Fr::ONE, u + Fr::ONE,
                    u * u, u * u - Fr::ONE, u * u + Fr::ONE, u * u * u, u * u * u - u, Fr::from(1u64 << 62),
                    Fr::from((1u64 << 63) - 1), Fr::from(1u64 << 63), Fr::from(u64::MAX), Fr::from(u128::MAX),
                    Fr::from(1u128 << 64), Fr::from(1u128 << 127),
                ];
                let edges: Vec<Fr> = edges.iter().flat_map(|x| [*x, -*x]).collect();
                let g = <$affine>::generator();
                let points: Vec<$point> =
                    (0..edges.len()).map(|i| (g * Fr::from(i as u64)).into_affine().into()).collect();
                let arks: Vec<$affine> = points.iter().map(ark).collect();
                let expected: Vec<_> = arks.iter().zip(&edges).map(|(p, x)| (*p * x).into_affine()).collect();
                let each = <$point>::mul_each(&points, &edges);
                assert_eq!(each.iter().map(ark).collect::<Vec<_>>(), expected);
                assert_eq!(ark(&<$point>::msm(&points, &edges)), naive::<$projective>(&arks, &edges));
                let table = FixedBase::new(&points[5], 1 << 10).mul_each(&edges);
                for (p, x) in table.iter().zip(&edges) {
                    assert_eq!(ark(p), (arks[5] * x).into_affine());
                }
                for x in &edges {
                    // one scalar for all, alone and for a full batch
                    assert_eq!(ark(&<$point>::msm(&points[7..8], &[*x])), (arks[7] * x).into_affine());
                    let all = <$point>::mul_all(&points, x);
                    assert_eq!(ark(&all[3]), (arks[3] * x).into_affine());
                    assert_eq!(ark(&<$point>::msm(&[points[3]; 30], &[*x; 30])), (arks[3] * (*x * Fr::from(30u64))).into_affine());
                }
            }

            #[test]
            #[should_panic(expected = "different numbers")]
            fn msm_refuses_unequal_lengths() {
                <$point>::msm(&[<$point>::generator()], &[]);
            }

            #[test]
            #[should_panic(expected = "different numbers")]
            fn msm_on_threads_refuses_unequal_lengths() {
                <$point>::msm_on_threads(&[<$point>::generator()], &Scalars::new(&[]), std::num::NonZeroUsize::MIN);
            }

            #[test]
            fn subgroup_is_checked() {
                // Points of the curve with a cofactor: take x = 1, 2, .. until one is on the curve
                // outside the group.
                let mut rng = ark_std_rng();
                let mut found = 0;
                let inside = FixedBase::new(&<$point>::generator(), 300).mul_each(&(1..300u64).map(Fr::from).collect::<Vec<_>>());
                let mut random = || rand_u64(&mut rng);
                let mut check = SubgroupCheck::new();
                check.take(&inside, &mut random);
                assert!(check.passes() && SubgroupCheck::<$point>::new().passes());
                for x in 1u64..60 {
                    if let Some((p, _)) = <$affine>::get_ys_from_x_unchecked(<$affine as AffineRepr>::BaseField::from(x))
                        .map(|(y, _)| (<$affine>::new_unchecked(x.into(), y), y))
                    {
                        if !p.is_in_correct_subgroup_assuming_on_curve() {
                            let mut bytes = Vec::new();
                            p.serialize_compressed(&mut bytes).unwrap();
                            assert_eq!(<$point>::from_compressed(&bytes), Err(PointError::NotInSubgroup));
                            assert!(!<$point>::from(p).is_in_group());
                            let mut whole = vec![0; <$point>::UNCOMPRESSED];
                            <$point>::from(p).write_uncompressed(&mut whole);
                            assert_eq!(<$point>::on_curve_from_uncompressed(&whole), Ok(p.into()));
                            if found < 2 {
                                let mut with = check.clone();
                                with.take(&[p.into()], &mut random);
                                assert!(!with.passes());
                            }
                            found += 1;
                        }
                    }
                }
                assert!(found > 0);
            }

            #[test]
            fn length_and_flags_are_checked() {
                let good = <$point>::generator().to_compressed();
                assert_eq!(<$point>::from_compressed(&good[1..]), Err(PointError::Encoding));
                let mut uncompressed_flag = good.clone();
                uncompressed_flag[0] &= 0x7f;
                assert_eq!(<$point>::from_compressed(&uncompressed_flag), Err(PointError::Encoding));
                let mut not_reduced = vec![0xff; good.len()];
                not_reduced[0] = 0x9f;
                assert_eq!(<$point>::from_compressed(&not_reduced), Err(PointError::Encoding));
                let mut infinity_with_x = <$point>::IDENTITY.to_compressed();
                *infinity_with_x.last_mut().unwrap() = 1;
                assert_eq!(<$point>::from_compressed(&infinity_with_x), Err(PointError::Encoding));
            }

            #[test]
            fn uncompressed_points_are_checked() {
                let mut good = vec![0; <$point>::UNCOMPRESSED];
                <$point>::generator().write_uncompressed(&mut good);
                let changed = |at: usize, by: u8| {
                    let mut bytes = good.clone();
                    bytes[at] ^= by;
                    <$point>::on_curve_from_uncompressed(&bytes)
                };
                assert_eq!(changed(0, 0), Ok(<$point>::generator()));
                for flags in [0x80, 0x40, 0x20, 0xa0, 0xc0, 0xe0] {
                    assert_eq!(changed(0, flags), Err(PointError::Encoding), "{flags:x}");
                }
                assert_eq!(changed(good.len() - 1, 1), Err(PointError::NotOnCurve));
                assert_eq!(<$point>::on_curve_from_uncompressed(&good[1..]), Err(PointError::Encoding));
                let coordinate = good.len() / 2;
                // Both coordinates as large as flags allow, above the modulus.
                for at in [0, coordinate] {
                    let mut bytes = good.clone();
                    bytes[at] = 0x1f;
                    bytes[at + 1..at + 48].fill(0xff);
                    assert_eq!(<$point>::on_curve_from_uncompressed(&bytes), Err(PointError::Encoding), "{at}");
                }
                let mut infinity = vec![0; good.len()];
                <$point>::IDENTITY.write_uncompressed(&mut infinity);
                assert_eq!(infinity[0], 0x40);
                for at in [1, coordinate, good.len() - 1] {
                    let mut bytes = infinity.clone();
                    bytes[at] = 1;
                    assert_eq!(<$point>::on_curve_from_uncompressed(&bytes), Err(PointError::Encoding), "{at}");
                }
            }
        }
    };
}

fn rand_u64(rng: &mut impl ark_std::rand::RngCore) -> u64 {
    rng.next_u64()
}

fn ark_std_rng() -> ark_std::rand::rngs::StdRng {
    use ark_std::rand::SeedableRng;
    ark_std::rand::rngs::StdRng::seed_from_u64(1)
}

group_laws!(g1, G1Point, G1Affine, G1Projective);
group_laws!(g2, G2Point, G2Affine, G2Projective);

fn ark_gt(f: &Gt) -> Fq12 {
    // by way of the longer encoding: f = (y + w) / (y - w)
    let code = Gt::to_t2_all(&[*f])[0];
    if f.is_identity() {
        return Fq12::ONE;
    }
    let c: Vec<Fq> = code.chunks(48).map(Fq::from_be_bytes_mod_order).collect();
    let y = Fq6::new(Fq2::new(c[0], c[1]), Fq2::new(c[2], c[3]), Fq2::new(c[4], c[5]));
    Fq12::new(y, Fq6::ONE) * Fq12::new(y, -Fq6::ONE).inverse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn fft_agrees_with_arkworks(log in 0u32..10, seed in any::<[u8; 64]>()) {
        let n = 1usize << log;
        let first = fr_from_uniform(&seed);
        let input: Vec<Fr> = powers(first, n);
        let ours = Domain::new(n).unwrap();
        let theirs = Radix2EvaluationDomain::<Fr>::new(n).unwrap();
        let coset = theirs.get_coset(ours.shift()).unwrap();
        prop_assert_eq!(ours.shift().pow([n as u64]), -Fr::ONE);
        prop_assert_eq!(ours.root(), theirs.group_gen());

        let mut values = input.clone();
        ours.fft(&mut values);
        prop_assert_eq!(&values, &theirs.fft(&input));
        ours.ifft(&mut values);
        prop_assert_eq!(&values, &input);
        ours.coset_fft(&mut values);
        prop_assert_eq!(&values, &coset.fft(&input));
        let mut moved = theirs.fft(&input);
        ours.to_coset(&mut moved);
        prop_assert_eq!(moved, values);
    }

    #[test]
    fn miller_loops_multiply_to_the_pairing_product(xs in prop::collection::vec((scalar(), scalar()), 0..20), cut in 0usize..20) {
        let a: Vec<G1Point> = xs.iter().map(|x| G1Point::generator().mul(&x.0)).collect();
        let b: Vec<G2Point> = xs.iter().map(|x| G2Point::generator().mul(&x.1)).collect();
        let cut = cut.min(a.len());
        let parts = [MillerLoop::new(&a[..cut], &b[..cut]), MillerLoop::new(&a[cut..], &b[cut..])];
        let product = MillerLoop::product(parts).finish();
        // as parts are sent from rank to rank
        let sent = parts.map(|part| MillerLoop::from_bytes(&part.to_bytes()).unwrap());
        prop_assert_eq!(MillerLoop::product(sent).finish(), product);
        let exponent = xs.iter().map(|x| x.0 * x.1).sum::<Fr>();
        prop_assert_eq!(product, pairing(&G1Point::generator(), &G2Point::generator()).mul(&exponent));
        let theirs = Bls12_381::multi_pairing(
            a.iter().map(|p| G1Affine::from(*p)),
            b.iter().map(|p| G2Affine::from(*p)),
        );
        prop_assert_eq!(ark_gt(&product), theirs.0);
    }

    #[test]
    fn gt_multi_exponentiation(xs in prop::collection::vec((scalar(), scalar()), 0..40)) {
        let g = pairing(&G1Point::generator(), &G2Point::generator());
        let (logs, scalars): (Vec<_>, Vec<_>) = xs.iter().copied().unzip();
        let bases: Vec<Gt> = logs.iter().map(|x| g.mul(x)).collect();
        for (b, x) in bases.iter().zip(&logs) {
            prop_assert_eq!(ark_gt(b), ark_gt(&g).pow(x.into_bigint()));
        }
        prop_assert_eq!(Gt::msm(&bases, &scalars), g.mul(&inner_product(&logs, &scalars)));
    }

    #[test]
    fn gt_encoding_round_trips(xs in scalars(8)) {
        let g = pairing(&G1Point::generator(), &G2Point::generator());
        let elements: Vec<Gt> = xs.iter().map(|x| g.mul(x)).collect();
        let codes = Gt::compress_all(&elements);
        prop_assert_eq!(Gt::decompress_all(&codes), Ok(elements.clone()));
        let long = Gt::to_t2_all(&elements);
        prop_assert_eq!(Gt::from_t2_all(&long), Ok(elements.clone()));
        for (code, long) in codes.iter().zip(&long) {
            prop_assert_eq!(&code[1..], &long[97..]);
        }
        for e in elements {
            prop_assert!(e.add(&e.neg()).is_identity());
        }
    }

    #[test]
    fn scalar_vectors(xs in scalars(20)) {
        let mut inverted = xs.clone();
        batch_invert(&mut inverted);
        for (x, y) in xs.iter().zip(&inverted) {
            prop_assert_eq!(x * y, if x.is_zero() { Fr::zero() } else { Fr::ONE });
            prop_assert_eq!(fr_from_bytes(&fr_to_bytes(x)), Ok(*x));
        }
        prop_assert_eq!(inner_product(&xs, &xs), xs.iter().map(|x| x * x).sum::<Fr>());
    }
}

#[test]
fn scalar_encoding_is_canonical() {
    assert_eq!(fr_from_bytes(&[0xff; 32]), Err(ScalarError));
    let mut modulus = [0u8; 32];
    for (chunk, limb) in modulus.chunks_exact_mut(8).zip(Fr::MODULUS.0) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    assert_eq!(fr_from_bytes(&modulus), Err(ScalarError));
    modulus[0] -= 1;
    assert_eq!(fr_from_bytes(&modulus), Ok(-Fr::ONE));
}

/// The negative of a zero coordinate is zero, not q: otherwise a point would have two forms. Sums
/// with infinity copy their input, so it need not be on the curve.
#[test]
fn a_zero_in_a_negated_coordinate_stays_reduced() {
    for y in [Fq2::new(5u64.into(), Fq::zero()), Fq2::new(Fq::zero(), 5u64.into())] {
        let p = G2Point::from(G2Affine::new_unchecked(Fq2::ONE, y));
        for n in [2, 3, 24, 64] {
            let mut bases = vec![G2Point::IDENTITY; n];
            bases[0] = p;
            assert_eq!(G2Point::msm(&bases, &vec![-Fr::ONE; n]), p.neg());
            bases.swap(0, 1);
            assert_eq!(G2Point::msm(&bases, &vec![-Fr::ONE; n]), p.neg());
        }
    }
}

/// More pairs than go through the loop together, and lengths around that and around a vector.
#[test]
fn longer_products_of_miller_loops() {
    let g = (G1Point::generator(), G2Point::generator());
    let logs: Vec<Fr> = (1..=300u64).map(|i| Fr::from(i) * Fr::from(u64::MAX)).collect();
    let (a, b) =
        (FixedBase::new(&g.0, 300).mul_each(&logs), FixedBase::new(&g.1, 300).mul_each(&logs));
    let one = pairing(&g.0, &g.1);
    for n in [3, 4, 5, 7, 8, 9, 127, 128, 129, 256, 300] {
        let sum: Fr = logs[..n].iter().map(|x| *x * x).sum();
        assert_eq!(MillerLoop::new(&a[..n], &b[..n]).finish(), one.mul(&sum), "{n} pairs");
    }
}

/// Any elements of Fq12, one at a time and several together.
#[test]
fn final_exponentiations_agree_with_arkworks() {
    let mut rng = ark_std_rng();
    let loops: [_; 9] = std::array::from_fn(|i| {
        let f = if i == 3 { Fq12::ONE } else { Fq12::rand(&mut rng) };
        let limbs = f.to_base_prime_field_elements().flat_map(|x| x.0.0);
        let product =
            MillerLoop::from_bytes(&limbs.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        let theirs = Bls12_381::final_exponentiation(MillerLoopOutput(f)).unwrap();
        assert_eq!(ark_gt(&product.finish()), theirs.0, "element {i}");
        product
    });
    let one_by_one = loops.map(|product| product.finish());
    assert_eq!(MillerLoop::finish_all(loops), one_by_one);
    let [a, b, rest @ ..] = loops;
    assert_eq!(MillerLoop::finish_all([a, b]), one_by_one[..2]);
    assert_eq!(MillerLoop::finish_all(rest), one_by_one[2..]);
    assert_eq!(MillerLoop::finish_all([]), []);
}

/// All shapes of the recursion, in slices with unaligned starts.
#[test]
fn transforms_of_all_sizes() {
    let mut rng = ark_std_rng();
    for log in 0..15 {
        let n = 1usize << log;
        let input: Vec<Fr> =
            (0..n).map(|i| if i % 5 == 0 { -Fr::ONE } else { Fr::rand(&mut rng) }).collect();
        let (ours, theirs) =
            (Domain::new(n).unwrap(), Radix2EvaluationDomain::<Fr>::new(n).unwrap());
        let coset = theirs.get_coset(ours.shift()).unwrap();
        let mut memory = vec![Fr::zero(); n + 1];
        for offset in [0, 1] {
            let values = &mut memory[offset..offset + n];
            values.copy_from_slice(&input);
            ours.fft(values);
            assert_eq!(values, theirs.fft(&input));
            ours.to_coset(values);
            assert_eq!(values, coset.fft(&input));
            values.copy_from_slice(&input);
            ours.ifft(values);
            assert_eq!(values, theirs.ifft(&input));
            ours.coset_fft(values);
            assert_eq!(values, coset.fft(&theirs.ifft(&input)));
        }
    }
}

/// The value at x by Horner's rule.
fn evaluate(coefficients: &[Fr], x: Fr) -> Fr {
    coefficients.iter().rev().fold(Fr::zero(), |sum, c| sum * x + c)
}

/// Domains of three times a power of two, where the values at all points can be computed one by one.
#[test]
fn thirds_agree_with_the_definition() {
    let mut rng = ark_std_rng();
    for n in (0..9).map(|log| 3usize << log) {
        let domain = Domain::new(n).unwrap();
        let (w, s) = (domain.root(), domain.shift());
        assert_eq!(s.pow([n as u64]), -Fr::ONE);
        assert_eq!(s.square(), w);
        assert!(w.pow([n as u64]).is_one() && !w.pow([n as u64 / 3]).is_one());
        assert!(n % 2 > 0 || !w.pow([n as u64 / 2]).is_one());
        let input: Vec<Fr> =
            (0..n).map(|i| if i % 5 == 0 { -Fr::ONE } else { Fr::rand(&mut rng) }).collect();
        let points = powers(w, n);
        let on: Vec<Fr> = points.iter().map(|x| evaluate(&input, *x)).collect();
        let beside: Vec<Fr> = points.iter().map(|x| evaluate(&input, s * x)).collect();
        let transformed = |f: &dyn Fn(&mut [Fr]), from: &[Fr]| {
            let mut values = from.to_vec();
            f(&mut values);
            values
        };
        assert_eq!(transformed(&|v| domain.fft(v), &input), on, "{n}");
        assert_eq!(transformed(&|v| domain.ifft(v), &on), input, "{n}");
        assert_eq!(transformed(&|v| domain.coset_fft(v), &input), beside, "{n}");
        assert_eq!(transformed(&|v| domain.to_coset(v), &on), beside, "{n}");
    }
}

/// All shapes of the recursion below a layer of radix 3, in slices with unaligned starts.
#[test]
fn thirds_agree_with_arkworks() {
    let mut rng = ark_std_rng();
    for log in (0..14).chain([17]) {
        let n = 3usize << log;
        let input: Vec<Fr> =
            (0..n).map(|i| if i % 5 == 0 { -Fr::ONE } else { Fr::rand(&mut rng) }).collect();
        let (ours, theirs) =
            (Domain::new(n).unwrap(), MixedRadixEvaluationDomain::<Fr>::new(n).unwrap());
        assert_eq!(theirs.size(), n);
        assert_eq!(theirs.group_gen(), ours.root());
        let coset = theirs.get_coset(ours.shift()).unwrap();
        let mut memory = vec![Fr::zero(); n + 1];
        for offset in [0, 1] {
            let values = &mut memory[offset..offset + n];
            values.copy_from_slice(&input);
            ours.fft(values);
            assert_eq!(values, theirs.fft(&input));
            ours.to_coset(values);
            assert_eq!(values, coset.fft(&input));
            values.copy_from_slice(&input);
            ours.ifft(values);
            assert_eq!(values, theirs.ifft(&input));
            ours.coset_fft(values);
            assert_eq!(values, coset.fft(&theirs.ifft(&input)));
        }
    }
}

/// The domain and its coset make up the domain of twice the size, whatever the size.
#[test]
fn a_domain_and_its_coset_make_the_next_one() {
    let mut rng = ark_std_rng();
    for n in (0..12).flat_map(|log| [1usize << log, 3 << log]) {
        let (domain, twice) = (Domain::new(n).unwrap(), Domain::new(2 * n).unwrap());
        assert_eq!(domain.shift(), twice.root());
        let mut on: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        let mut all = on.clone();
        domain.ifft(&mut all);
        all.resize(2 * n, Fr::zero());
        twice.fft(&mut all);
        assert!(all.iter().step_by(2).eq(&on), "{n}");
        domain.to_coset(&mut on);
        assert!(all.iter().skip(1).step_by(2).eq(&on), "{n}");
    }
}

#[test]
fn domain_sizes_are_checked() {
    for bad in [0usize, 5, 7, 9, 10, 15, 18, 27, 36, 9 << 10, 1 << 32, 3 << 31, 1 << 63, 3 << 62] {
        assert_eq!(Domain::new(bad).map(|d| d.size()), Err(DomainError(bad)));
    }
    assert_eq!(Domain::new(usize::MAX).map(|d| d.size()), Err(DomainError(usize::MAX)));
    assert_eq!(
        DomainError(9).to_string(),
        "the size of an FFT domain must be 2^k up to 2^31, or 3 * 2^k up to 3 * 2^30, not 9"
    );
}

#[test]
fn the_smallest_domain_has_room() {
    let mut sizes: Vec<usize> = (0..12).flat_map(|k| [1 << k, 3 << k]).collect();
    sizes.sort_unstable();
    assert!(sizes.iter().all(|n| Domain::new(*n).is_ok_and(|d| d.size() == *n)));
    assert_eq!(Domain::size_for(0), 1);
    for rows in 1..=2048 {
        let smallest = sizes.iter().find(|n| **n >= rows).unwrap();
        assert_eq!(Domain::size_for(rows), *smallest, "{rows} rows");
    }
    for (rows, size) in [((1 << 31) - 1, 1 << 31), ((1 << 31) + 1, 3 << 30), (3 << 30, 3 << 30)] {
        assert_eq!(Domain::size_for(rows), size);
    }
    for rows in [(3usize << 30) + 1, usize::MAX / 2, usize::MAX] {
        assert!(Domain::size_for(rows) >= rows);
        assert!(Domain::new(Domain::size_for(rows)).is_err());
    }
}

#[test]
fn gt_decoding_refuses_what_is_not_in_the_group() {
    let element = pairing(&G1Point::generator(), &G2Point::generator());
    fn refusals<const N: usize>(
        decode: impl Fn([u8; N]) -> Result<Gt, GtError>,
        encode: impl Fn(Gt) -> [u8; N],
        element: Gt,
    ) {
        // -1 has the torus encoding 0
        assert_eq!(decode([0; N]), Err(GtError::NotInGroup));
        // the identity, with a nonzero byte after the flag
        let mut code = encode(Gt::identity());
        assert_eq!(decode(code), Ok(Gt::identity()));
        code[N - 1] = 1;
        assert_eq!(decode(code), Err(GtError::Encoding));
        // an unreduced coordinate, in each place
        for place in 0..N / 48 {
            let mut code = encode(element);
            code[48 * place..][..48].fill(0x1f);
            assert_eq!(decode(code), Err(GtError::Encoding));
        }
        // other flag bits
        for bit in [0x20, 0x40, 0x80] {
            let mut flags = encode(element);
            flags[0] |= bit;
            assert_eq!(decode(flags), Err(GtError::Encoding));
        }
        // the first bad one is named
        let mut code = encode(element);
        code[N - 1] ^= 1;
        assert_eq!(decode(code), Err(GtError::NotInGroup));
    }
    refusals(|code| Gt::decompress(&code), |f| f.compress(), element);
    let long = |code| Gt::from_t2_all(&[code]).map(|f| f[0]).map_err(|(_, e)| e);
    refusals(long, |f| Gt::to_t2_all(&[f])[0], element);
    // in the torus, but not in the cyclotomic subgroup
    let mut torus = [0; 288];
    torus[47] = 5;
    assert_eq!(long(torus), Err(GtError::NotInGroup));
    // c1 = 0 with any c2: c0 c1 would be 0
    let mut code = element.compress();
    code[..96].fill(0);
    assert_eq!(Gt::decompress(&code), Err(GtError::NotInGroup));
    let codes = [element.compress(), code, Gt::identity().compress(), code];
    assert_eq!(Gt::decompress_all(&codes), Err((1, GtError::NotInGroup)));
}

/// Every pair (c1, c2) with c1 != 0 stands for one element of the cyclotomic subgroup, and each of its elements but 1 for one
/// pair: f^(q^4) f = f^(q^2) holds for the f of random pairs, and random f come back.
#[test]
fn the_short_encoding_is_one_to_one() {
    let mut rng = ark_std_rng();
    let third = Fq::from(3u64).inverse().unwrap();
    let xi = Fq2::new(Fq::ONE, Fq::ONE);
    for _ in 0..20 {
        let (c1, c2) = (Fq2::rand(&mut rng), Fq2::rand(&mut rng));
        let c0 = (xi * c2.square() + Fq2::new(third, Fq::zero())) * c1.inverse().unwrap();
        let y = Fq6::new(c0, c1, c2);
        let f = Fq12::new(y, Fq6::ONE) * Fq12::new(y, -Fq6::ONE).inverse().unwrap();
        assert_eq!(f.frobenius_map(4) * f, f.frobenius_map(2));
        let satisfies = |f: Fq12| {
            let y = (Fq6::ONE + f.c0) * f.c1.inverse().unwrap();
            y.c0 * y.c1 == xi * y.c2.square() + Fq2::new(third, Fq::zero())
        };
        assert!(satisfies(cyclotomic(&mut rng)));
        // Of norm 1 over Fq6, and not in the subgroup.
        let f = Fq12::rand(&mut rng);
        let mut conjugate = f;
        conjugate.conjugate_in_place();
        assert!(!satisfies(conjugate * f.inverse().unwrap()));
    }
    // c1 is never 0: -3 xi is not a square.
    assert!((-(xi + xi + xi)).sqrt().is_none());
}

/// An element of the cyclotomic subgroup: (f^(q^6 - 1))^(q^2 + 1) of a random f.
fn cyclotomic(rng: &mut ark_std::rand::rngs::StdRng) -> Fq12 {
    let f = Fq12::rand(rng);
    let mut conjugate = f;
    conjugate.conjugate_in_place();
    let easy = conjugate * f.inverse().unwrap();
    easy.frobenius_map(2) * easy
}

/// A random element of the cyclotomic subgroup, whose order is not r.
#[test]
fn gt_decoding_refuses_cyclotomic_elements_of_another_order() {
    let cyclotomic = cyclotomic(&mut ark_std_rng());
    let y = (Fq6::ONE + cyclotomic.c0) * cyclotomic.c1.inverse().unwrap();
    let mut code = [0u8; 288];
    for (chunk, x) in
        code.chunks_exact_mut(48).zip([y.c0.c0, y.c0.c1, y.c1.c0, y.c1.c1, y.c2.c0, y.c2.c1])
    {
        let mut bytes = Vec::new();
        x.serialize_compressed(&mut bytes).unwrap();
        bytes.reverse();
        chunk.copy_from_slice(&bytes);
    }
    assert_eq!(Gt::from_t2_all(&[code]), Err((0, GtError::NotInGroup)));
    let short = code[96..].try_into().unwrap();
    assert_eq!(Gt::decompress(short), Err(GtError::NotInGroup));
}

#[test]
fn prepared_scalars_serve_sub_vectors() {
    let values: Vec<Fr> = (0..50u64).map(|i| Fr::from(i * i * i * i).pow([1 + i % 7])).collect();
    let indices = [3u32, 0, 1, 49, 17, 17];
    let chosen: Vec<Fr> = indices.iter().map(|i| values[*i as usize]).collect();
    let bases: Vec<G1Point> = (0..6u64)
        .map(|i| (ark_bls12_381::G1Projective::generator() * Fr::from(i)).into_affine().into())
        .collect();
    let prepared = Scalars::select(&values, &indices);
    assert_eq!(prepared.len(), 6);
    assert!(!prepared.is_empty());
    assert_eq!(G1Point::msm_prepared(&bases, &prepared), G1Point::msm(&bases, &chosen));
}

/// Decoding without the check of the subgroup refuses everything else that decoding refuses.
#[test]
fn unchecked_decoding_omits_only_the_subgroup() {
    // (0, 2) is on E(Fq) and has order 3; blst refuses it before any check, but not a sum with it.
    let torsion = G1Point::from(G1Affine::new_unchecked(Fq::zero(), Fq::from(2u64)));
    let outside = G1Point::generator().add(&torsion);
    let bytes = outside.to_compressed();
    assert_eq!(G1Point::from_compressed(&bytes), Err(PointError::NotInSubgroup));
    assert_eq!(G1Point::on_curve_from_compressed(&bytes), Ok(outside));
    for point in [G1Point::IDENTITY, G1Point::generator()] {
        assert_eq!(G1Point::on_curve_from_compressed(&point.to_compressed()), Ok(point));
    }
    let mut bytes = G1Point::generator().to_compressed();
    assert!(G1Point::on_curve_from_compressed(&bytes[1..]).is_err());
    let refused = (0..64u8).filter(|x| {
        bytes[47] = *x;
        let found = G1Point::on_curve_from_compressed(&bytes);
        assert!(found.is_ok() || found == Err(PointError::NotOnCurve));
        found.is_err()
    });
    assert!(refused.count() > 8, "half of all coordinates are not on the curve");
}

/// Points from unchecked memory: one bad point anywhere is found and distinguished from good ones.
#[test]
fn find_outside_names_the_first_bad_point() {
    fn case<G: Group>(off_curve: G, not_reduced: G, outside: G, other_outside: G) {
        let mut state = 1u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 29)
        };
        let step = G::generator();
        let mut points = vec![step; 11_000];
        for i in 1..points.len() {
            let previous = points[i - 1];
            points[i] = if i % 97 == 0 {
                G::IDENTITY
            } else if previous.is_identity() {
                step.mul(&Fr::from(i as u64))
            } else {
                previous.add(&step)
            };
        }
        assert_eq!(G::find_outside(&points, &mut random), None);
        assert_eq!(G::find_outside(&points[..100], &mut random), None);
        assert_eq!(G::find_outside(&[], &mut random), None);
        for bad in [off_curve, not_reduced, outside] {
            for at in [0usize, 1, 99, 5_000, 10_999] {
                let mut points = points.clone();
                points[at] = bad;
                assert_eq!(G::find_outside(&points, &mut random), Some(at));
                if at < 100 {
                    assert_eq!(G::find_outside(&points[..100], &mut random), Some(at));
                }
            }
        }
        // two points whose components outside the subgroup cancel: they would pass only if they
        // shared a bucket
        assert!(outside.add(&other_outside).is_in_group());
        (points[7], points[10_000]) = (outside, other_outside);
        assert_eq!(G::find_outside(&points, &mut random), Some(7));
    }
    // (0, 2) is on E(Fq) and has order 3
    let torsion = G1Affine::new_unchecked(Fq::zero(), Fq::from(2u64));
    assert!(torsion.is_on_curve());
    let g1 = G1Point::from(torsion);
    let mut bytes = bytemuck::bytes_of(&G1Point::generator()).to_vec();
    bytes[0] ^= 1;
    let off: G1Point = bytemuck::pod_read_unaligned(&bytes);
    // x + q represents the same point with different limbs
    let mut words: [u64; 12] =
        bytemuck::pod_read_unaligned(bytemuck::bytes_of(&G1Point::from(torsion)));
    words[..6].copy_from_slice(&Fq::MODULUS.0);
    case(off, bytemuck::cast(words), g1, g1.neg());
    // a point of E'(Fq2) outside the subgroup: the first x = k + u that is on the curve
    let outside = (1u64..).find_map(|k| {
        let p = G2Affine::get_point_from_x_unchecked(Fq2::new(Fq::from(k), Fq::from(1u64)), true)?;
        (!p.is_in_correct_subgroup_assuming_on_curve()).then_some(p)
    });
    let g2 = G2Point::from(outside.unwrap());
    let mut bytes = bytemuck::bytes_of(&G2Point::generator()).to_vec();
    bytes[0] ^= 1;
    let off: G2Point = bytemuck::pod_read_unaligned(&bytes);
    let mut words: [u64; 24] = bytemuck::pod_read_unaligned(bytemuck::bytes_of(&g2));
    let (sum, carry) = words[..6].iter().zip(Fq::MODULUS.0).fold(
        (Vec::new(), 0u64),
        |(mut out, carry), (a, q)| {
            let sum = u128::from(*a) + u128::from(q) + u128::from(carry);
            let (low, high) = (sum & u128::from(u64::MAX), sum >> 64);
            out.push(u64::try_from(low).expect("a masked word"));
            (out, u64::try_from(high).expect("a carry"))
        },
    );
    assert_eq!(carry, 0);
    words[..6].copy_from_slice(&sum);
    case(off, bytemuck::cast(words), g2, g2.neg());
}

#[test]
fn bytes_of_a_miller_loop_are_checked() {
    let bytes = MillerLoop::new(&[G1Point::generator()], &[G2Point::generator()]).to_bytes();
    assert_eq!(bytes.len(), MillerLoop::BYTES);
    for bad in [
        &bytes[1..],
        &[&bytes[..], &[0]].concat(),
        &[],
        &[0; MillerLoop::BYTES],
        &[0xff; MillerLoop::BYTES],
    ] {
        assert!(MillerLoop::from_bytes(bad).is_err());
    }
    for coordinate in 0..12 {
        let mut bytes = bytes.clone();
        bytes[48 * coordinate..][..48].fill(0xff);
        assert!(MillerLoop::from_bytes(&bytes).is_err(), "coordinate {coordinate}");
    }
}
