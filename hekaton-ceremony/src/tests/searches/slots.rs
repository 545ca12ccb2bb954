//! S4: which points of a state follow from its other points. A coordinator could put something else in their places, obtain it
//! divided by an honest secret, and publish the right points nevertheless: only input sums can notice that.

use super::polynomials::{Polynomial, rank};
use super::{Case, columns, lagrange};
use crate::family::Shape;
use ark_ff::One;
use hekaton_arith::Fr;
use hekaton_testing::{Shop, Shopping, Squarings};

const TAU: usize = 0;
const ALPHA: usize = 1;
const BETA: usize = 2;

/// The points of a type at the start: L and X together with H, and D.
fn vectors(case: &Case) -> [Vec<Polynomial>; 3] {
    let shape = Shape::new(&case.r1cs);
    let n = shape.domain;
    let in_tau = |coefficients: &[Fr]| Polynomial::in_one(TAU, coefficients);
    // c_j + c_j t/2 is the column on the roots of twice the size.
    let even = |variable: usize| {
        let matrix = case.r1cs.side(2);
        let mut sum = Polynomial::default();
        for row in 0..matrix.rows() {
            for (coefficient, _) in matrix.terms(row).filter(|term| term.1 == variable) {
                sum.add(&in_tau(&lagrange(2 * n, 2 * row)), &coefficient);
            }
        }
        sum
    };
    let mixed = |variable: usize| {
        let [a, b, _] = columns(&case.r1cs, n, variable);
        let mut sum = in_tau(&a).times(&Polynomial::monomial(&[(BETA, 1)]));
        sum.add(&in_tau(&b).times(&Polynomial::monomial(&[(ALPHA, 1)])), &Fr::one());
        sum
    };
    let l = shape.aux().map(|variable| {
        let mut point = mixed(variable);
        point.add(&even(variable), &Fr::one());
        point
    });
    let x = shape.x.iter().map(|variable| {
        let mut point = even(*variable as usize);
        let [_, _, c] = columns(&case.r1cs, n, *variable as usize);
        point.add(&in_tau(&c), &-Fr::one());
        point
    });
    let h = (0..n).map(|at| in_tau(&lagrange(2 * n, 2 * at + 1)));
    let d = shape.committed().map(|variable| {
        let [_, _, c] = columns(&case.r1cs, n, variable);
        let mut point = mixed(variable);
        point.add(&in_tau(&c), &Fr::one());
        point
    });
    [l.collect(), x.chain(h).collect(), d.collect()]
}

/// All X points follow from H, so every type has such slots, and the point of e is one. D and all Theta have none.
#[test]
fn s4_redundant_points_are_those_that_input_sums_cover() {
    let cases = Case::of(&Squarings, &Fr::from(3u64));
    for case in cases.iter().chain(&Case::of(&Shop::new(2), &Shopping::new(2))) {
        let shape = Shape::new(&case.r1cs);
        let [l, x_and_h, d] = vectors(case);
        assert!(shape.x.iter().any(|variable| *variable as usize == case.r1cs.layout.sum()));
        assert_eq!(rank(&x_and_h), shape.domain, "X follows from H in type {}", case.r1cs.name);
        let all = [&l[..], &x_and_h].concat();
        assert!(rank(&all) < all.len());
        assert_eq!(rank(&d), d.len(), "D of type {}", case.r1cs.name);
    }
    let thetas: Vec<Polynomial> = crate::genesis::domains(48)
        .into_iter()
        .map(|n| Polynomial::in_one(TAU, &lagrange(n, 0)))
        .collect();
    assert_eq!(rank(&thetas), thetas.len());
}
