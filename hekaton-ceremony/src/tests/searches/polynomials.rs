//! Laurent polynomials in the secrets of a ceremony, and their linear algebra.

use ark_ff::{Field, One, Zero};
use hekaton_arith::Fr;
use std::collections::BTreeMap;

/// The number of secrets that a search can have.
const SECRETS: usize = 24;

/// A product of powers of secrets.
pub(super) type Monomial = [i16; SECRETS];

/// A Laurent polynomial: its coefficients, none of which is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Polynomial(pub(super) BTreeMap<Monomial, Fr>);

impl Polynomial {
    /// A product of powers of secrets.
    pub(super) fn monomial(powers: &[(usize, i16)]) -> Self {
        let mut exponents = [0; SECRETS];
        powers.iter().for_each(|(secret, power)| exponents[*secret] += power);
        Self(BTreeMap::from([(exponents, Fr::one())]))
    }

    /// A polynomial in one secret.
    pub(super) fn in_one(secret: usize, coefficients: &[Fr]) -> Self {
        let mut sum = Self::default();
        for (power, coefficient) in (0..).zip(coefficients) {
            sum.add(&Self::monomial(&[(secret, power)]), coefficient);
        }
        sum
    }

    /// Adds a multiple of another one.
    pub(super) fn add(&mut self, other: &Self, factor: &Fr) {
        if factor.is_zero() {
            return;
        }
        for (monomial, coefficient) in &other.0 {
            let sum = self.0.entry(*monomial).or_insert_with(Fr::zero);
            *sum += *coefficient * factor;
            if sum.is_zero() {
                self.0.remove(monomial);
            }
        }
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let mut product = Self::default();
        for (left, x) in &self.0 {
            for (right, y) in &other.0 {
                let monomial: Monomial = std::array::from_fn(|i| left[i] + right[i]);
                product.add(&Self(BTreeMap::from([(monomial, Fr::one())])), &(*x * y));
            }
        }
        product
    }

    /// The value for these secrets.
    pub(super) fn at(&self, secrets: &[Fr]) -> Fr {
        let values = self.0.iter().map(|(monomial, coefficient)| {
            let powers = secrets.iter().zip(monomial).map(|(secret, power)| match *power {
                0.. => secret.pow([power.unsigned_abs().into()]),
                _ => secret.inverse().unwrap().pow([power.unsigned_abs().into()]),
            });
            powers.fold(*coefficient, |product, x| product * x)
        });
        values.sum()
    }

    pub(super) fn scaled(&self, factor: &Fr) -> Self {
        let mut sum = Self::default();
        sum.add(self, factor);
        sum
    }
}

/// A linear combination of columns, by their numbers.
pub(super) type Combination = BTreeMap<usize, Fr>;

/// The polynomials in echelon form that were seen so far, with the combinations of columns that they are.
#[derive(Default)]
struct Echelon {
    rows: BTreeMap<Monomial, (Polynomial, Combination)>,
}

impl Echelon {
    /// Reduces a column by those before it. Returns the combination of columns that vanishes, if this one follows from them.
    fn take(&mut self, number: usize, column: &Polynomial) -> Option<Combination> {
        let mut rest = column.clone();
        let mut combination = Combination::from([(number, Fr::one())]);
        let mut from = None;
        // All monomials from the least one on, so that the rest has none that another row begins with.
        while let Some(monomial) = next_after(&rest, from) {
            from = Some(monomial);
            let Some((row, of_row)) = self.rows.get(&monomial) else { continue };
            let factor = -(rest.0[&monomial] * row.0[&monomial].inverse().unwrap());
            rest.add(row, &factor);
            for (column, coefficient) in of_row {
                let sum = combination.entry(*column).or_insert_with(Fr::zero);
                *sum += factor * coefficient;
            }
        }
        match rest.0.first_key_value().map(|(monomial, _)| *monomial) {
            None => Some(combination),
            Some(first) => {
                self.rows.insert(first, (rest, combination));
                None
            }
        }
    }
}

fn next_after(polynomial: &Polynomial, from: Option<Monomial>) -> Option<Monomial> {
    use std::ops::Bound::{Excluded, Unbounded};
    let range = (from.map_or(Unbounded, Excluded), Unbounded);
    polynomial.0.range(range).next().map(|(monomial, _)| *monomial)
}

/// A basis of all combinations of the columns that vanish.
pub(super) fn kernel<'a>(columns: impl IntoIterator<Item = &'a Polynomial>) -> Vec<Combination> {
    let mut echelon = Echelon::default();
    let numbered = columns.into_iter().enumerate();
    numbered.filter_map(|(number, column)| echelon.take(number, column)).collect()
}

/// The number of independent columns.
pub(super) fn rank(columns: &[Polynomial]) -> usize {
    columns.len() - kernel(columns).len()
}

#[test]
fn kernels_are_complete() {
    let x = |powers: &[(usize, i16)]| Polynomial::monomial(powers);
    let mut sum = x(&[(0, 1)]);
    sum.add(&x(&[(1, -1)]), &Fr::from(3u64));
    let columns = [
        x(&[(0, 1)]),
        sum.clone(),
        x(&[(1, -1)]),
        x(&[(0, 1), (1, 1)]),
        sum.scaled(&Fr::from(5u64)),
    ];
    let found = kernel(&columns);
    assert_eq!((found.len(), rank(&columns)), (2, 3));
    for combination in found {
        let mut zero = Polynomial::default();
        combination.iter().for_each(|(column, factor)| zero.add(&columns[*column], factor));
        assert_eq!(zero, Polynomial::default());
    }
    assert_eq!(x(&[(0, 2)]).times(&x(&[(0, -2), (3, 1)])), x(&[(3, 1)]));
}
