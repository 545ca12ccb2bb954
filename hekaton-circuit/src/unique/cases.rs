//! Case splits: a value is determined if every other value contradicts a row.

use super::state::{Rule, State, merge};
use ark_ff::{BigInteger, PrimeField};
use hashbrown::{HashMap, HashSet};
use std::cmp::Ordering;

/// The rows that one case may look at.
const STEPS: usize = 20_000;

/// The most other values of a number whose bits are tried.
const MOST_CASES: usize = 3;

/// The number of single values that are tried at a time.
const SINGLE: usize = 400;

/// The fewest unknown bits that are taken for the bits of a number.
const FEWEST_BITS: usize = 2;

/// Values of some variables.
pub(super) type World<F> = HashMap<u32, F>;

/// Tries the other values of single variables and of the bits of numbers. Returns whether a value was determined.
pub(super) fn split<F: PrimeField>(state: &mut State<'_, F>) -> bool {
    let before = state.progress();
    for alternatives in numbers(state) {
        if alternatives.len() > MOST_CASES {
            continue;
        }
        let possible: Vec<&World<F>> =
            alternatives.iter().filter(|case| !is_impossible(state, case)).collect();
        let mut bits: Vec<u32> =
            alternatives.iter().take(1).flat_map(HashMap::keys).copied().collect();
        bits.sort_unstable();
        for bit in bits {
            // The same in all numbers that are possible.
            if possible.iter().all(|case| case.get(&bit) == Some(&state.value(bit))) {
                state.learn(bit, Rule::Cases);
            }
        }
    }
    if state.progress() != before {
        return true;
    }
    for variable in state.with_other().into_iter().take(SINGLE) {
        let Some(other) = state.other(variable) else { continue };
        if is_impossible(state, &World::from([(variable, other)])) {
            state.learn(variable, Rule::Cases);
        }
    }
    state.progress() != before
}

/// The linear rows whose unknowns are the bits of a number, each with the bits of all other numbers that are congruent to it modulo
/// the characteristic of the field. Each of them has all bits.
pub(super) fn numbers<F: PrimeField>(state: &State<'_, F>) -> Vec<Vec<World<F>>> {
    let linear = (0..state.rows.len()).filter(|row| state.is_linear(*row));
    linear
        .filter_map(|row| congruent(state, &state.linear(row)))
        .filter(|all| !all.is_empty())
        .collect()
}

/// The bits of the other numbers; `None` if the unknowns are not the bits of a number.
fn congruent<F: PrimeField>(state: &State<'_, F>, relation: &[(u32, F)]) -> Option<Vec<World<F>>> {
    if relation.len() < FEWEST_BITS {
        return None;
    }
    if !relation.iter().all(|(variable, _)| state.is_bit(*variable)) {
        return None;
    }
    let (_, bits) = powers(relation)?;
    let own = bits.iter().filter(|(variable, _)| state.value(*variable).is_one());
    let number = own.fold(Number::default(), |sum, (_, power)| sum.plus(&Number::power(*power)));
    let modulus = Number::of(&F::MODULUS);
    let mut found = Vec::new();
    let with = |number: &Number| digits(number, &bits).map(|bits| bits.into_iter().collect());
    // Downwards, then upwards, as far as there are bits for the number.
    let mut lower = number.clone();
    while modulus <= lower {
        lower = lower.minus(&modulus);
        found.extend(with(&lower));
    }
    let most =
        bits.iter().fold(Number::default(), |sum, (_, power)| sum.plus(&Number::power(*power)));
    let mut higher = number.plus(&modulus);
    while higher <= most && found.len() <= MOST_CASES {
        found.extend(with(&higher));
        higher = higher.plus(&modulus);
    }
    Some(found)
}

/// The exponents of the factors, in ascending order, if all are different powers of two, or with `true` all are negative ones.
// In a small field, a number may be both, so the sign belongs to the exponents.
pub(super) fn powers<F: PrimeField>(relation: &[(u32, F)]) -> Option<(bool, Vec<(u32, u32)>)> {
    let of_sign = |negative: bool| -> Option<Vec<(u32, u32)>> {
        let exponent = |factor: F| {
            let factor = if negative { -factor } else { factor }.into_bigint();
            let bits = factor.num_bits();
            let low = factor.to_bits_le().into_iter().take_while(|bit| !bit).count();
            (bits > 0 && low + 1 == bits as usize).then(|| bits - 1)
        };
        let with = |(v, factor): &(u32, F)| Some((*v, exponent(*factor)?));
        relation.iter().map(with).collect()
    };
    let ascending = |is_negative: bool| {
        let mut powers = of_sign(is_negative)?;
        powers.sort_unstable_by_key(|(_, power)| *power);
        let are_different = powers.windows(2).all(|pair| pair[0].1 != pair[1].1);
        are_different.then_some((is_negative, powers))
    };
    ascending(false).or_else(|| ascending(true))
}

/// The bits, by their exponents in ascending order, that make a number; `None` if there are no such bits.
pub(super) fn digits<F: PrimeField>(number: &Number, bits: &[(u32, u32)]) -> Option<Vec<(u32, F)>> {
    let mut left = number.clone();
    let mut values = Vec::with_capacity(bits.len());
    for (variable, power) in bits.iter().rev() {
        let power = Number::power(*power);
        let is_set = power <= left;
        if is_set {
            left = left.minus(&power);
        }
        values.push((*variable, if is_set { F::ONE } else { F::ZERO }));
    }
    (left == Number::default()).then_some(values)
}

/// A natural number of any size.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(num_bigint::BigUint);

impl Number {
    pub(super) fn of(integer: &(impl Into<num_bigint::BigUint> + Copy)) -> Self {
        Self((*integer).into())
    }

    fn from(number: usize) -> Self {
        Self(number.into())
    }

    fn power(exponent: u32) -> Self {
        Self(num_bigint::BigUint::from(1_u32) << exponent)
    }

    fn plus(&self, other: &Self) -> Self {
        Self(&self.0 + &other.0)
    }

    /// The difference from a number that is not larger.
    fn minus(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }
}

/// Computes what is forced where some variables have other values. Returns whether a row cannot hold, or a value is not one that
/// the rules allow.
fn is_impossible<F: PrimeField>(state: &State<'_, F>, case: &World<F>) -> bool {
    let mut world = case.clone();
    if case.iter().any(|(variable, value)| !state.allows(*variable, *value)) {
        return true;
    }
    let mut queue: Vec<usize> = Vec::new();
    let mut queued: HashSet<usize> = HashSet::new();
    let mut changed: Vec<u32> = world.keys().copied().collect();
    changed.sort_unstable();
    for _ in 0..STEPS {
        for variable in changed.drain(..) {
            let rows = state.uses.of(variable).map(|(row, _)| row);
            queue.extend(rows.filter(|row| queued.insert(*row)));
        }
        let Some(row) = queue.pop() else { return false };
        queued.remove(&row);
        match forced(state, &world, row) {
            Forced::Contradiction => return true,
            Forced::Values(values) => {
                for (variable, value) in values {
                    if !state.allows(variable, value) {
                        return true;
                    }
                    world.insert(variable, value);
                    changed.push(variable);
                }
            }
        }
    }
    false
}

/// The consequence of a row in a world.
enum Forced<F> {
    Contradiction,
    Values(Vec<(u32, F)>),
}

fn forced<F: PrimeField>(state: &State<'_, F>, world: &World<F>, row: usize) -> Forced<F> {
    let value = |variable: u32| match state.is_known(variable) {
        true => Some(state.value(variable)),
        false => world.get(&variable).copied(),
    };
    let sides = [0, 1, 2].map(|side| {
        let (mut constant, mut unknown) = (F::ZERO, Vec::new());
        for (variable, k) in state.rows.terms(row, side) {
            match value(variable) {
                Some(value) => constant += k * value,
                None => unknown.push((variable, k)),
            }
        }
        (constant, unknown)
    });
    let [(a, in_a), (b, in_b), (c, in_c)] = sides;
    let (factor, mut terms) = match (in_a.is_empty(), in_b.is_empty()) {
        (true, _) => (a, in_b),
        (_, true) => (b, in_a),
        _ => return Forced::Values(vec![]),
    };
    // constant + sum of terms = 0.
    terms.iter_mut().for_each(|(_, k)| *k *= factor);
    terms.extend(in_c.into_iter().map(|(variable, k)| (variable, -k)));
    merge(&mut terms);
    let constant = a * b - c;
    match &terms[..] {
        [] if constant.is_zero() => Forced::Values(vec![]),
        [] => Forced::Contradiction,
        [(variable, k)] => {
            let inverse = k.inverse().expect("`merge` leaves out zeros");
            Forced::Values(vec![(*variable, -constant * inverse)])
        }
        _ => bits(state, constant, &terms),
    }
}

/// Bits of which as many are 1 as a row says, all unknowns being bits with the same factor: none, all, or not a possible number. In
/// any other case the row forces nothing on its own.
fn equal_bits<F: PrimeField>(constant: F, terms: &[(u32, F)]) -> Forced<F> {
    let nothing = Forced::Values(vec![]);
    let (factor, most) = (terms[0].1, Number::from(terms.len()));
    // Fewer than the characteristic: then the row holds for integers.
    if terms.iter().any(|(_, k)| *k != factor) || most >= Number::of(&F::MODULUS) {
        return nothing;
    }
    let inverse = factor.inverse().expect("`merge` leaves out zeros");
    let ones = Number::of(&(-constant * inverse).into_bigint());
    let all =
        |value: F| Forced::Values(terms.iter().map(|(variable, _)| (*variable, value)).collect());
    match ones.cmp(&most) {
        _ if ones == Number::default() => all(F::ZERO),
        Ordering::Less => nothing,
        Ordering::Equal => all(F::ONE),
        Ordering::Greater => Forced::Contradiction,
    }
}

/// Reads the bits of a number off, where all unknowns are bits and their powers cannot reach the modulus.
fn bits<F: PrimeField>(state: &State<'_, F>, constant: F, terms: &[(u32, F)]) -> Forced<F> {
    let nothing = Forced::Values(vec![]);
    if !terms.iter().all(|(variable, _)| state.is_bit(*variable)) {
        return nothing;
    }
    let Some((is_negative, powers)) = powers(terms) else { return equal_bits(constant, terms) };
    let largest = powers.last().map_or(0, |(_, power)| *power);
    if largest + 1 >= F::MODULUS_BIT_SIZE {
        return nothing;
    }
    let number = Number::of(&if is_negative { constant } else { -constant }.into_bigint());
    digits(&number, &powers).map_or(Forced::Contradiction, Forced::Values)
}
