//! Linear forms in the variables of one operation.

use crate::word::number;
use ark_ff::{One, Zero};
use hekaton_circuit::Fr;
use std::borrow::Borrow;
use std::ops::{Add, Mul, Sub};

/// A constant plus a linear combination of variables, in rising order and without zeros.
// One form for each value: equal forms are found by comparing, and share the row of a bus value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub(crate) constant: Fr,
    pub(crate) terms: Vec<(usize, Fr)>,
}

/// A constant.
pub(crate) fn constant(value: i128) -> Form {
    Form { constant: number(value), terms: Vec::new() }
}

impl Form {
    pub(crate) fn variable(index: usize) -> Self {
        Self { constant: Fr::zero(), terms: vec![(index, Fr::one())] }
    }

    /// The variable, if the form is nothing else.
    pub(crate) fn as_variable(&self) -> Option<usize> {
        match self.terms[..] {
            [(variable, factor)] if factor.is_one() && self.constant.is_zero() => Some(variable),
            _ => None,
        }
    }

    /// The value of the form.
    pub(crate) fn value(&self, variables: &[Fr]) -> Fr {
        // Nearly all factors are 1, and a product costs more than the sum.
        self.terms.iter().fold(self.constant, |sum, (variable, factor)| {
            sum + if factor.is_one() { variables[*variable] } else { variables[*variable] * factor }
        })
    }

    /// `self + factor other`
    fn combine(&self, other: &Self, factor: Fr) -> Self {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some((i, x)), Some((j, y))) if i == j => {
                    let next = (*i, *x + factor * y);
                    a.next();
                    b.next();
                    next
                }
                (Some((i, _)), Some((j, y))) if j < i => {
                    let next = (*j, factor * y);
                    b.next();
                    next
                }
                (Some(term), _) => {
                    let next = **term;
                    a.next();
                    next
                }
                (None, Some((j, y))) => {
                    let next = (*j, factor * y);
                    b.next();
                    next
                }
                (None, None) => break,
            };
            // Terms that cancel would otherwise make equal forms differ.
            if !next.1.is_zero() {
                terms.push(next);
            }
        }
        Self { constant: self.constant + factor * other.constant, terms }
    }
}

impl<R: Borrow<Form>> Add<R> for &Form {
    type Output = Form;
    fn add(self, other: R) -> Form {
        self.combine(other.borrow(), Fr::one())
    }
}

impl<R: Borrow<Form>> Add<R> for Form {
    type Output = Form;
    fn add(self, other: R) -> Form {
        &self + other
    }
}

impl<R: Borrow<Form>> Sub<R> for &Form {
    type Output = Form;
    fn sub(self, other: R) -> Form {
        self.combine(other.borrow(), -Fr::one())
    }
}

impl<R: Borrow<Form>> Sub<R> for Form {
    type Output = Form;
    fn sub(self, other: R) -> Form {
        &self - other
    }
}

impl Mul<Fr> for &Form {
    type Output = Form;
    fn mul(self, factor: Fr) -> Form {
        Form::default().combine(self, factor)
    }
}

impl Mul<i128> for &Form {
    type Output = Form;
    fn mul(self, factor: i128) -> Form {
        self * number(factor)
    }
}

impl<F> Mul<F> for Form
where
    for<'a> &'a Form: Mul<F, Output = Form>,
{
    type Output = Form;
    fn mul(self, factor: F) -> Form {
        &self * factor
    }
}
