//! Linear relations among differences from the witness, as integers.
//!
//! All rules speak of the difference `d` of a value from its value in the witness, in any other witness with the same
//! given values. In a row that is linear in what is unknown, the constants then cancel: `sum c_v d_v = 0`.

use ark_ff::{BigInteger, PrimeField};
use num_bigint::BigUint;
use std::cmp::Ordering;

/// The reach of a difference below and above zero, as integers whose sum is less than the modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval<N> {
    pub(super) below: N,
    pub(super) above: N,
}

impl<N: BigInteger> Interval<N> {
    /// Zero or one.
    pub(super) fn unit() -> Self {
        Self { below: N::from(0_u64), above: N::from(1_u64) }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.below.is_zero() && self.above.is_zero()
    }

    /// Reports whether a difference is in the interval.
    pub(super) fn has<F: PrimeField<BigInt = N>>(&self, difference: F) -> bool {
        difference.into_bigint() <= self.above || (-difference).into_bigint() <= self.below
    }

    fn largest(&self) -> N {
        self.below.max(self.above)
    }
}

/// An unknown of a linear relation: a multiple `step * t`, where the integer t is in an interval, if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term<F: PrimeField> {
    pub(super) variable: u32,
    /// The coefficient of t.
    pub(super) factor: F,
    pub(super) interval: Option<Interval<F::BigInt>>,
}

/// The consequence of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding<N> {
    /// All its unknowns have no other value.
    Determined,
    /// Unknowns have these intervals, by their place among the terms; each is smaller than before.
    Intervals(Vec<(usize, Interval<N>)>),
    /// Nothing new.
    Nothing,
}

/// The number of scales that are tried.
const SCALES: usize = 8;

/// A term with its factor as a signed integer.
struct Signed<N> {
    negative: bool,
    size: N,
    interval: Option<Interval<N>>,
}

impl<N: BigInteger> Signed<N> {
    /// The reach of the term below and above zero, unless it exceeds an integer of the field's size.
    fn reach(&self) -> Option<Interval<N>> {
        let Interval { below, above } = self.interval?;
        let (below, above) = (product(&self.size, &below)?, product(&self.size, &above)?);
        Some(match self.negative {
            false => Interval { below, above },
            true => Interval { below: above, above: below },
        })
    }
}

fn product<N: BigInteger>(a: &N, b: &N) -> Option<N> {
    let (low, high) = a.mul(b);
    high.is_zero().then_some(low)
}

fn sum<N: BigInteger>(a: &N, b: &N) -> Option<N> {
    let mut sum = *a;
    (!sum.add_with_carry(b)).then_some(sum)
}

/// `a - b`, where b is at most a.
fn difference<N: BigInteger>(a: &N, b: &N) -> N {
    let mut out = *a;
    out.sub_with_borrow(b);
    out
}

fn quotient<N: BigInteger>(a: &N, b: &N) -> N {
    match a.cmp(b) {
        Ordering::Less => N::from(0_u64),
        Ordering::Equal => N::from(1_u64),
        Ordering::Greater => {
            let quotient = Into::<BigUint>::into(*a) / Into::<BigUint>::into(*b);
            N::try_from(quotient).expect("a quotient is at most its dividend")
        }
    }
}

/// Examines `sum factor t = 0`, whose factors are not zero.
pub(super) fn examine<F: PrimeField>(terms: &[Term<F>]) -> Finding<F::BigInt> {
    let mut bare = terms.iter().enumerate().filter(|(_, term)| term.interval.is_none());
    match (bare.next(), bare.next()) {
        (_, Some(_)) => Finding::Nothing,
        (Some((at, _)), None) => match signed(terms, terms[at].factor) {
            Some(signed) => isolated(&signed, at, &F::MODULUS),
            None => Finding::Nothing,
        },
        (None, None) => {
            let mut intervals = Finding::Nothing;
            for scale in scales(terms) {
                let Some(signed) = signed(terms, scale) else { continue };
                match bounded(&signed, &F::MODULUS) {
                    Finding::Determined => return Finding::Determined,
                    Finding::Nothing => {}
                    // Another scale may determine all of them.
                    found => {
                        if intervals == Finding::Nothing {
                            intervals = found;
                        }
                    }
                }
            }
            intervals
        }
    }
}

/// Factors by which a relation is divided: the smallest ones, once each, since the others may be multiples of them.
fn scales<F: PrimeField>(terms: &[Term<F>]) -> Vec<F> {
    let mut sizes: Vec<(F::BigInt, F)> = terms
        .iter()
        .map(|term| (term.factor.into_bigint().min((-term.factor).into_bigint()), term.factor))
        .collect();
    sizes.sort_unstable_by_key(|(size, _)| *size);
    sizes.dedup_by_key(|(size, _)| *size);
    sizes.truncate(SCALES);
    sizes.into_iter().map(|(_, factor)| factor).collect()
}

/// The terms with their factors divided by a scale, as integers between half the modulus below and above zero.
fn signed<F: PrimeField>(terms: &[Term<F>], scale: F) -> Option<Vec<Signed<F::BigInt>>> {
    // Most scales are 1 or -1, which are their own inverses.
    let inverse = if scale.is_one() || (-scale).is_one() { scale } else { scale.inverse()? };
    let signed = terms.iter().map(|term| {
        let factor = term.factor * inverse;
        let (positive, negative) = (factor.into_bigint(), (-factor).into_bigint());
        let is_negative = negative < positive;
        let size = if is_negative { negative } else { positive };
        Signed { negative: is_negative, size, interval: term.interval }
    });
    Some(signed.collect())
}

/// The reach of the sum of the terms that have intervals.
fn reach<N: BigInteger>(terms: &[Signed<N>]) -> Option<Interval<N>> {
    let zero = Interval { below: N::from(0_u64), above: N::from(0_u64) };
    terms.iter().filter(|term| term.interval.is_some()).try_fold(zero, |all, term| {
        let Interval { below, above } = term.reach()?;
        Some(Interval { below: sum(&all.below, &below)?, above: sum(&all.above, &above)? })
    })
}

/// One term has no interval, and the factor 1: it is minus the sum of the others. That gives it an interval if fewer values are
/// possible than the field has.
fn isolated<N: BigInteger>(terms: &[Signed<N>], at: usize, modulus: &N) -> Finding<N> {
    let Some(Interval { below, above }) = reach(terms) else { return Finding::Nothing };
    match sum(&below, &above) {
        Some(width) if width < *modulus => {
            Finding::Intervals(vec![(at, Interval { below: above, above: below })])
        }
        _ => Finding::Nothing,
    }
}

/// All terms have intervals. If no multiple of the modulus other than zero is within the reach of their sum, then the sum is zero as
/// an integer.
///
/// - With ascending sizes, each above what the smaller ones can reach together: the largest term that is not zero could not be
///   made up for by the others, so that all are zero.
/// - Otherwise each term is within minus the reach of the others.
fn bounded<N: BigInteger>(terms: &[Signed<N>], modulus: &N) -> Finding<N> {
    let Some(all) = reach(terms).filter(|all| all.below < *modulus && all.above < *modulus) else {
        return Finding::Nothing;
    };
    if is_superincreasing(terms) {
        return Finding::Determined;
    }
    let mut found = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        let (Some(own), Some(interval)) = (term.reach(), term.interval) else { continue };
        let rest = Interval {
            below: difference(&all.below, &own.below),
            above: difference(&all.above, &own.above),
        };
        // The term is minus the rest, and t is that divided by the factor.
        let (mut below, mut above) = (rest.above, rest.below);
        if term.negative {
            std::mem::swap(&mut below, &mut above);
        }
        let tighter = Interval {
            below: interval.below.min(quotient(&below, &term.size)),
            above: interval.above.min(quotient(&above, &term.size)),
        };
        if tighter != interval {
            found.push((at, tighter));
        }
    }
    if found.is_empty() { Finding::Nothing } else { Finding::Intervals(found) }
}

fn is_superincreasing<N: BigInteger>(terms: &[Signed<N>]) -> bool {
    let mut sizes: Vec<(N, N)> =
        terms.iter().filter_map(|term| Some((term.size, term.interval?.largest()))).collect();
    sizes.sort_unstable();
    let mut reach = N::from(0_u64);
    sizes.iter().all(|(size, largest)| {
        let is_above = *size > reach;
        // The caller has checked that the sums fit.
        let next = product(size, largest).and_then(|own| sum(&reach, &own));
        reach = next.unwrap_or(reach);
        is_above && next.is_some()
    })
}
