//! Lagrange polynomials at tau, from the powers of tau: an inverse Fourier transform of points (spec: ceremony#start).

use crate::sections::products;
use ark_ff::{FftField, Field};
use hekaton_arith::{Fr, Group, cube_root, powers};
use rayon::prelude::*;

/// The number of butterflies that a thread computes at a time.
const CHUNK: usize = 1 << 11;
/// The number of butterflies whose results are kept before they are written back.
const TOGETHER: usize = 1 << 18;

/// The root of unity of a domain of `n` elements, as [`Domain`](hekaton_arith::Domain) takes it.
pub(crate) fn root(n: usize) -> Fr {
    let double = Fr::get_root_of_unity(2 * n as u64).expect("sizes of domains are bounded");
    double.square()
}

/// Turns the powers `[tau^i]` into the Lagrange polynomials `[L_j(tau)]` of the domain of the same size, 2^k or
/// 3 * 2^k: `L_j = 1/n sum_i w^(-ij) tau^i`. The points may have a common factor.
pub(crate) fn lagrange<G: Group>(mut points: Vec<G>) -> Vec<G> {
    let n = points.len();
    let inverse = |x: Fr| x.inverse().expect("roots of unity and sizes are not zero");
    let root = inverse(root(n));
    let mut points = match n.is_multiple_of(3) {
        false => {
            radix2(&mut points, root);
            points
        }
        true => radix3(&points, root),
    };
    let scale = inverse(Fr::from(n as u64));
    points
        .par_chunks_mut(CHUNK)
        .for_each(|chunk| chunk.copy_from_slice(&G::mul_all(chunk, &scale)));
    points
}

/// The transform of 2^k points with a root of unity of this order.
fn radix2<G: Group>(points: &mut [G], root: Fr) {
    let n = points.len();
    let bits = n.trailing_zeros();
    for i in 0..n {
        let j = i.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
        if i < j {
            points.swap(i, j);
        }
    }
    let roots = powers(root, (n / 2).max(1));
    let mut half = 1;
    while half < n {
        let step = n / (2 * half);
        for start in (0..n / 2).step_by(TOGETHER) {
            let end = (start + TOGETHER).min(n / 2);
            let starts: Vec<usize> = (start..end).step_by(CHUNK).collect();
            let place = |i: usize| i / half * 2 * half + i % half;
            let layer: Vec<[Vec<G>; 2]> = starts
                .par_iter()
                .map(|start| {
                    butterflies(points, half, &roots, step, *start..(start + CHUNK).min(end))
                })
                .collect();
            for (start, [sums, differences]) in starts.into_iter().zip(layer) {
                for (i, (sum, difference)) in (start..).zip(sums.into_iter().zip(differences)) {
                    points[place(i)] = sum;
                    points[place(i) + half] = difference;
                }
            }
        }
        half *= 2;
    }
}

/// The sums and differences of some butterflies of a layer.
fn butterflies<G: Group>(
    points: &[G],
    half: usize,
    roots: &[Fr],
    step: usize,
    range: std::ops::Range<usize>,
) -> [Vec<G>; 2] {
    let place = |i: usize| i / half * 2 * half + i % half;
    let mut sums: Vec<G> = range.clone().map(|i| points[place(i)]).collect();
    let mut turned: Vec<G> = range.clone().map(|i| points[place(i) + half]).collect();
    // The first twiddle of each block is 1.
    let others: Vec<usize> = range.clone().filter(|i| i % half != 0).collect();
    let bases: Vec<G> = others.iter().map(|i| turned[i - range.start]).collect();
    let twiddles: Vec<Fr> = others.iter().map(|i| roots[i % half * step]).collect();
    for (i, product) in others.iter().zip(G::mul_each(&bases, &twiddles)) {
        turned[i - range.start] = product;
    }
    let mut differences: Vec<G> = turned.iter().map(Group::neg).collect();
    G::batch_add(&mut differences, &sums);
    G::batch_add(&mut sums, &turned);
    [sums, differences]
}

/// The transform of 3 * 2^k points: three of 2^k, whose results are combined with third roots of unity, which cost a few
/// field multiplications.
fn radix3<G: Group>(points: &[G], root: Fr) -> Vec<G> {
    let m = points.len() / 3;
    let parts = [0, 1, 2].map(|r| {
        let mut part: Vec<G> = points.iter().skip(r).step_by(3).copied().collect();
        radix2(&mut part, root.pow([3]));
        part
    });
    let [zeroth, first, second] = parts;
    let first = products(&first, &powers(root, m));
    let second = products(&second, &powers(root.square(), m));
    // w = root^m is one of the two third roots of unity; the other one is -1 - w.
    let is_cube_root = root.pow([m as u64]) == cube_root();
    let mut difference: Vec<G> = first.clone();
    G::batch_add(&mut difference, &second.iter().map(Group::neg).collect::<Vec<_>>());
    let mut turned: Vec<G> = difference.iter().map(Group::times_cube_root).collect();
    if !is_cube_root {
        G::batch_add(&mut turned, &difference);
        turned.iter_mut().for_each(|point| *point = point.neg());
    }
    let sum = |lists: [&[G]; 2]| {
        let mut out = zeroth.clone();
        lists.into_iter().for_each(|list| G::batch_add(&mut out, list));
        out
    };
    let minus = |list: &[G]| list.iter().map(Group::neg).collect::<Vec<_>>();
    // s0 + t1 + t2; s0 + w t1 + w^2 t2 = s0 - t2 + w (t1 - t2); s0 + w^2 t1 + w t2 = s0 - t1 - w (t1 - t2)
    [
        sum([&first, &second]),
        sum([&minus(&second), &turned]),
        sum([&minus(&first), &minus(&turned)]),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_arith::{Domain, FixedBase, G1Point, G2Point};

    /// The transform of points is that of their logarithms, for all sizes up to 3 * 2^7, in both groups.
    #[test]
    fn lagrange_polynomials_are_those_of_the_domain() {
        let tau = Fr::from(1234567u64).pow([77]);
        let [g, h] = [
            FixedBase::new(&G1Point::generator(), 500),
            FixedBase::new(&G1Point::generator(), 500),
        ];
        let two = FixedBase::new(&G2Point::generator(), 500);
        for n in crate::genesis::domains(384) {
            let powers = powers(tau, n);
            let mut logarithms = powers.clone();
            // The inverse transform divides by n and turns with the inverse root, as Lagrange polynomials do.
            Domain::new(n).unwrap().ifft(&mut logarithms);
            assert_eq!(lagrange(g.mul_each(&powers)), h.mul_each(&logarithms), "{n}");
            assert_eq!(lagrange(two.mul_each(&powers)), two.mul_each(&logarithms), "{n}");
        }
    }
}
