//! Lagrange polynomials at tau, expressed through the queries of a key.
//!
//! A column of C at tau is a combination of the Lagrange polynomials `L_i(tau)` of its rows, none of
//! which is published. Columns of A and B are, in G1 and G2. So each row is traced back to a *pivot*:
//! a variable of A or B in whose column all other rows have been traced back before. Where no column
//! is left that has a single new row, the product of a column of A and one of B is such a pivot if
//! they meet in one new row: `a_j b_k` is the sum of the rows in which both occur, plus t times a
//! polynomial that HQ evaluates. Row 0 is `e(K, Theta)`.

use ark_ff::{Field, Zero};
use hekaton_arith::{Domain, Fr, batch_invert};
use hekaton_circuit::prover::Matrix;
use std::collections::HashSet;

/// The maximum number of products per type, since each takes a pairing.
const MAX_PRODUCTS: usize = 1 << 12;
/// The maximum length of a column in a product, and the maximum number of pairs of rows in all products: an
/// inversion and a few multiplications each. Without these bounds, keys from an attacker could take hours.
const MAX_COLUMN: usize = 1 << 12;
const MAX_PAIRS: usize = 1 << 22;
/// The number of columns of a row on each side that are tried for a product, the shortest first.
const TRIES: usize = 4;

/// A matrix by columns: the row and the number of the coefficient of each entry.
struct Columns<'a> {
    starts: Vec<u32>,
    entries: Vec<[u32; 2]>,
    coefficients: &'a [Fr],
}

impl<'a> Columns<'a> {
    #[allow(clippy::cast_possible_truncation, reason = "keys count rows and entries with 32 bits")]
    fn new(matrix: &Matrix<'a>, variables: usize) -> Self {
        let mut starts = vec![0u32; variables + 1];
        matrix.entries.iter().for_each(|[variable, _]| starts[*variable as usize + 1] += 1);
        for i in 0..variables {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut entries = vec![[0; 2]; matrix.entries.len()];
        for row in 0..matrix.rows() {
            for [variable, k] in matrix.entries_of(row) {
                let at = &mut next[*variable as usize];
                entries[*at as usize] = [row as u32, *k];
                *at += 1;
            }
        }
        Self { starts, entries, coefficients: matrix.coefficients }
    }

    fn column(&self, variable: usize) -> &[[u32; 2]] {
        &self.entries[self.starts[variable] as usize..self.starts[variable + 1] as usize]
    }

    /// The rows and coefficients of a column.
    fn terms(&self, variable: usize) -> impl Iterator<Item = (usize, Fr)> + '_ {
        self.column(variable).iter().map(|[row, k]| (*row as usize, self.coefficients[*k as usize]))
    }

    /// The coefficient of a column in a row.
    fn coefficient(&self, variable: usize, row: usize) -> Fr {
        self.terms(variable).filter(|(i, _)| *i == row).map(|(_, k)| k).sum()
    }
}

/// The source of a row: what remains of it after the rows that were traced back before are taken away is
/// the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pivot {
    /// `e(K, Theta)`, of row 0.
    Theta,
    /// A column of A.
    A(u32),
    /// A column of B.
    B(u32),
    /// The product of a column of A and one of B.
    Product(u32, u32),
}

/// The rows of a type, traced back to columns of A and B.
pub(super) struct Rows<'a> {
    a: Columns<'a>,
    b: Columns<'a>,
    /// The rows in the order in which they were traced back.
    order: Vec<(u32, Pivot)>,
    known: Vec<bool>,
    variables: usize,
}

/// A combination of rows, expressed through columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Combination {
    /// The factors of the columns of A and B.
    pub(super) a: Vec<Fr>,
    pub(super) b: Vec<Fr>,
    /// The factor of `e(K, Theta)`.
    pub(super) theta: Fr,
    /// Products of a column of A and one of B, and their factors.
    pub(super) products: Vec<(usize, usize, Fr)>,
}

/// The rows that a search has not reached yet, and the columns that may lead on.
struct Search<'m, 'a> {
    matrices: [&'m Matrix<'a>; 2],
    /// For A and B: the number of entries of each column in unknown rows.
    left: [Vec<u32>; 2],
    /// For A and B: columns that had one such entry when they were added.
    single: [Vec<u32>; 2],
    /// Those of them whose entry is neither 1 nor -1: dividing by it makes factors long.
    divide: [Vec<u32>; 2],
}

impl<'a> Search<'_, 'a> {
    /// Takes a row off the columns of its variables.
    fn take(&mut self, row: usize) {
        for side in 0..2 {
            for [variable, _] in self.matrices[side].entries_of(row) {
                let left = &mut self.left[side][*variable as usize];
                *left -= 1;
                if *left == 1 {
                    self.single[side].push(*variable);
                }
            }
        }
    }
}

impl<'a> Rows<'a> {
    /// Traces back all rows for which `needed` holds, as far as that is possible.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "keys count rows and variables with 32 bits"
    )]
    pub(super) fn new(
        [ma, mb]: [&Matrix<'a>; 2],
        variables: usize,
        needed: impl Fn(usize) -> bool,
    ) -> Self {
        let (a, b) = (Columns::new(ma, variables), Columns::new(mb, variables));
        let count = |columns: &Columns<'_>| -> Vec<u32> {
            columns.starts.windows(2).map(|w| w[1] - w[0]).collect()
        };
        let left = [count(&a), count(&b)];
        let singles =
            |left: &[u32]| (0u32..).zip(left).filter(|(_, n)| **n == 1).map(|(v, _)| v).collect();
        let single = [singles(&left[0]), singles(&left[1])];
        let divide = [Vec::new(), Vec::new()];
        let mut search = Search { matrices: [ma, mb], left, single, divide };
        let rows = ma.rows();
        let mut out = Self { a, b, order: Vec::new(), known: vec![false; rows], variables };
        if rows == 0 {
            return out;
        }
        out.found(0, Pivot::Theta, &mut search);
        let (mut products, mut pairs) = (0, 0);
        for row in 0..rows {
            out.follow(&mut search);
            if out.known[row] || !needed(row) || products == MAX_PRODUCTS {
                continue;
            }
            if let Some((j, k)) = out.product(row, &search) {
                let size = out.a.column(j as usize).len() * out.b.column(k as usize).len();
                if pairs + size <= MAX_PAIRS {
                    (products, pairs) = (products + 1, pairs + size);
                    out.found(row, Pivot::Product(j, k), &mut search);
                }
            }
        }
        out.follow(&mut search);
        out
    }

    fn found(&mut self, row: usize, pivot: Pivot, search: &mut Search<'_, 'a>) {
        self.known[row] = true;
        #[allow(clippy::cast_possible_truncation, reason = "keys count rows with 32 bits")]
        self.order.push((row as u32, pivot));
        search.take(row);
    }

    /// Follows columns that have one entry in unknown rows until there are none. Columns of A come
    /// first: their points cost a third of those of B.
    fn follow(&mut self, search: &mut Search<'_, 'a>) {
        loop {
            let Search { single: [a, b], divide: [a_divide, b_divide], .. } = &mut *search;
            let lists = [(0, a), (1, b), (0, a_divide), (1, b_divide)].into_iter().enumerate();
            let next = lists.filter_map(|(at, (side, list))| Some((at, side, list.pop()?))).next();
            let Some((at, side, variable)) = next else { return };
            let columns = [&self.a, &self.b][side];
            let unknown = columns.terms(variable as usize).find(|(row, _)| !self.known[*row]);
            // Another column may have led to the row since this one was added.
            let Some((row, k)) = unknown.filter(|(_, k)| !k.is_zero()) else { continue };
            if at < 2 && k != Fr::ONE && k != -Fr::ONE {
                search.divide[side].push(variable);
                continue;
            }
            let pivot = if side == 0 { Pivot::A(variable) } else { Pivot::B(variable) };
            self.found(row, pivot, search);
        }
    }

    /// A column of A and one of B that meet in this row and in no other unknown one.
    fn product(&self, row: usize, search: &Search<'_, 'a>) -> Option<(u32, u32)> {
        let shortest = |side: usize, columns: &Columns<'_>| {
            let entries = search.matrices[side].entries_of(row).iter();
            let mut list: Vec<(usize, u32)> =
                entries.map(|[v, _]| (columns.column(*v as usize).len(), *v)).collect();
            list.sort_unstable();
            list.truncate(TRIES);
            list.retain(|(len, _)| *len <= MAX_COLUMN);
            list
        };
        let (of_a, of_b) = (shortest(0, &self.a), shortest(1, &self.b));
        for (_, j) in &of_a {
            let rows: HashSet<usize> = self.a.terms(*j as usize).map(|(row, _)| row).collect();
            for (_, k) in &of_b {
                let mut meet = self.b.terms(*k as usize).filter(|(i, _)| rows.contains(i));
                let alone = meet.all(|(i, _)| i == row || self.known[i]);
                let factor =
                    self.a.coefficient(*j as usize, row) * self.b.coefficient(*k as usize, row);
                if alone && !factor.is_zero() {
                    return Some((*j, *k));
                }
            }
        }
        None
    }

    /// Reports whether a row could be traced back.
    pub(super) fn is_known(&self, row: usize) -> bool {
        self.known[row]
    }

    /// Expresses `sum_i factors_i L_i(tau)` through columns; `None` if a row with a factor could not be
    /// traced back.
    pub(super) fn combine(&self, mut factors: Vec<Fr>) -> Option<Combination> {
        let zero = || vec![Fr::zero(); self.variables];
        let mut out = Combination { a: zero(), b: zero(), theta: Fr::zero(), products: Vec::new() };
        for (number, pivot) in self.order.iter().rev() {
            let row = *number as usize;
            let factor = std::mem::take(&mut factors[row]);
            if factor.is_zero() {
                continue;
            }
            // All other rows of a pivot were traced back before it, and follow here.
            match *pivot {
                Pivot::Theta => out.theta += factor,
                Pivot::A(j) => {
                    out.a[j as usize] += take_away(&self.a, j as usize, row, factor, &mut factors);
                }
                Pivot::B(k) => {
                    out.b[k as usize] += take_away(&self.b, k as usize, row, factor, &mut factors);
                }
                Pivot::Product(j, k) => {
                    let (j, k) = (j as usize, k as usize);
                    let scale = self.a.coefficient(j, row) * self.b.coefficient(k, row);
                    let scaled = factor * inverse(&scale);
                    for (i, of_a) in self.a.terms(j) {
                        for (_, of_b) in
                            self.b.terms(k).filter(|(other, _)| *other == i && i != row)
                        {
                            factors[i] -= scaled * of_a * of_b;
                        }
                    }
                    out.products.push((j, k, scaled));
                }
            }
        }
        factors.iter().all(Zero::is_zero).then_some(out)
    }

    /// The polynomial k of degree below N with `sum factor a_j b_k = (rows in which both occur) + t k`,
    /// by its values on the domain.
    pub(super) fn quotient(&self, products: &[(usize, usize, Fr)], domain: &Domain) -> Vec<Fr> {
        let n = domain.size();
        let points = hekaton_arith::powers(domain.root(), n);
        let size = Fr::from(n as u64);
        let mut out = vec![Fr::zero(); n];
        let mut squares = vec![Fr::zero(); n];
        // L_i L_j = t (x_j L_i - x_i L_j) / (N (x_i - x_j)) for i != j.
        let (mut pairs, mut denominators) = (Vec::new(), Vec::new());
        for (j, k, factor) in products {
            for (i, of_a) in self.a.terms(*j) {
                for (l, of_b) in self.b.terms(*k) {
                    let product = *factor * of_a * of_b;
                    if i == l {
                        squares[i] += product;
                    } else {
                        pairs.push((i, l, product));
                        denominators.push(size * (points[i] - points[l]));
                    }
                }
            }
        }
        batch_invert(&mut denominators);
        for ((i, l, factor), inverse) in pairs.into_iter().zip(denominators) {
            out[i] += factor * inverse * points[l];
            out[l] -= factor * inverse * points[i];
        }
        // L_i^2 - L_i = t k with k(x_i) = (N - 1) / 2N and k(x_m) = 1 / (N (1 - w^(m - i))) elsewhere:
        // a cyclic convolution, whose kernel has the transform (N - 1, 0, 1, 2, .., N - 2) / N.
        if squares.iter().any(|x| !x.is_zero()) {
            let scale = size.inverse().expect("a domain's size is not zero in Fr");
            domain.fft(&mut squares);
            squares[0] *= Fr::ONE - scale;
            let mut factor = Fr::zero();
            for x in &mut squares[1..] {
                *x *= factor;
                factor += scale;
            }
            domain.ifft(&mut squares);
            out.iter_mut().zip(&squares).for_each(|(x, y)| *x += y);
        }
        out
    }
}

/// Takes a multiple of a column away such that nothing is left of a row, and returns the factor.
fn take_away(
    columns: &Columns<'_>,
    variable: usize,
    row: usize,
    factor: Fr,
    factors: &mut [Fr],
) -> Fr {
    let multiple = factor * inverse(&columns.coefficient(variable, row));
    for (other, k) in columns.terms(variable).filter(|(other, _)| *other != row) {
        factors[other] -= multiple * k;
    }
    multiple
}

/// The inverse of a coefficient of a pivot.
fn inverse(x: &Fr) -> Fr {
    match *x {
        x if x == Fr::ONE || x == -Fr::ONE => x,
        x => x.inverse().expect("the coefficient of a pivot is not zero"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::prover::Matrices;

    fn fr(x: i64) -> Fr {
        if x < 0 { -Fr::from(x.unsigned_abs()) } else { Fr::from(x.unsigned_abs()) }
    }

    /// Lagrange polynomials of a domain at a point outside of it.
    fn lagrange(domain: &Domain, tau: Fr) -> Vec<Fr> {
        let n = Fr::from(domain.size() as u64);
        let t = tau.pow([domain.size() as u64]) - Fr::ONE;
        let points = hekaton_arith::powers(domain.root(), domain.size());
        points.iter().map(|x| t * x * (n * (tau - x)).inverse().unwrap()).collect()
    }

    /// Evaluates what a combination stands for, and compares it with the rows themselves.
    fn check(a: &[Vec<(Fr, usize)>], b: &[Vec<(Fr, usize)>], variables: usize, products: usize) {
        let none = vec![Vec::new(); a.len()];
        let matrices = Matrices::new([a, b, &none]).unwrap();
        let (ma, mb) = (matrices.side(0), matrices.side(1));
        let rows = Rows::new([&ma, &mb], variables, |_| true);
        let domain = Domain::new(Domain::size_for(a.len())).unwrap();
        let (n, tau) = (domain.size(), fr(123_456_789));
        let (l, t) = (lagrange(&domain, tau), tau.pow([n as u64]) - Fr::ONE);
        let column = |m: &Matrix<'_>, j: usize| -> Fr {
            let terms = (0..m.rows()).flat_map(|i| m.terms(i).map(move |(k, v)| (i, k, v)));
            terms.filter(|(_, _, v)| *v == j).map(|(i, k, _)| k * l[i]).sum()
        };
        let mut factors: Vec<Fr> = (0..a.len()).map(|i| fr(11 * (i * i) as i64 + 5)).collect();
        for (i, factor) in factors.iter_mut().enumerate() {
            if !rows.is_known(i) {
                *factor = Fr::zero();
            }
        }
        let expected: Fr = factors.iter().zip(&l).map(|(x, y)| *x * y).sum();
        let found = rows.combine(factors).unwrap();
        assert_eq!(found.products.len(), products);
        let quotient = rows.quotient(&found.products, &domain);
        let k: Fr = quotient.iter().zip(&l).map(|(x, y)| *x * y).sum();
        let sum = |m: &Matrix<'_>, list: &[Fr]| -> Fr {
            list.iter().enumerate().map(|(j, x)| *x * column(m, j)).sum()
        };
        let of_products: Fr =
            found.products.iter().map(|(j, k, f)| *f * column(&ma, *j) * column(&mb, *k)).sum();
        let value = sum(&ma, &found.a) + sum(&mb, &found.b) + found.theta * l[0];
        assert_eq!(value + of_products - t * k, expected);
    }

    #[test]
    fn rows_are_traced_back_to_columns() {
        // Row 0 has the variables of rows 1 and 2; row 3 follows from row 2 by variable 4.
        let a = [
            vec![(fr(1), 2), (fr(1), 3)],
            vec![(fr(1), 2)],
            vec![(fr(1), 3), (fr(5), 4)],
            vec![(fr(-2), 4)],
        ];
        let b = [vec![(fr(1), 0)], vec![(fr(1), 0)], vec![(fr(1), 0)], vec![(fr(1), 0)]];
        check(&a, &b, 5, 0);
    }

    #[test]
    fn products_lead_on_where_no_column_has_a_single_row() {
        // Each of the variables 2 to 7 is in two of the rows 1 to 3; 2 and 5 meet in row 1 only.
        let a = [
            vec![(fr(1), 1)],
            vec![(fr(2), 2), (fr(1), 4)],
            vec![(fr(1), 2), (fr(3), 3)],
            vec![(fr(1), 3), (fr(-1), 4)],
        ];
        let b = [
            vec![(fr(1), 0), (fr(1), 1)],
            vec![(fr(4), 5), (fr(1), 6)],
            vec![(fr(1), 6), (fr(7), 7)],
            vec![(fr(1), 5), (fr(1), 7)],
        ];
        check(&a, &b, 8, 1);
        // Rows of equal columns cannot be told apart.
        let same = vec![vec![(fr(1), 1)], vec![(fr(1), 2)], vec![(fr(1), 2)]];
        let none = vec![Vec::new(); 3];
        let matrices = Matrices::new([&same, &same, &none]).unwrap();
        let rows = Rows::new([&matrices.side(0), &matrices.side(1)], 3, |_| true);
        assert!(rows.is_known(0) && !rows.is_known(1) && !rows.is_known(2));
        assert_eq!(rows.combine(vec![fr(0), fr(1), fr(0)]), None);
    }
}
