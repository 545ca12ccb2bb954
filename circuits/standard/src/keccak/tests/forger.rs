//! A prover that forges the permutation where one row of it is left out, and satisfies all others.

use crate::keccak::look_ups::{Key, Split};
use crate::keccak::relations::{Alphabet, BASE};
use crate::keccak::{LANE, LookUps, Permutation, Pieces, Tables};
use crate::switch::Terms;
use ark_ff::{Field, One, PrimeField, Zero};
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{SynthesisError, Variable};
use hekaton_circuit::{Closures, Fr, check};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The values of variables.
type Values = HashMap<Variable, Fr>;

/// The splits of a round: five columns, 25 lanes, 25 times chi.
const ROUND: usize = 55;

/// The splits of a permutation, and the lanes before it.
#[derive(Clone, Default)]
struct Permuted {
    lanes: Vec<Variable>,
    splits: Vec<Split>,
}

fn number_of(lane: u64) -> Fr {
    let bits = (0..LANE).rev().map(|at| Fr::from(lane >> at & 1));
    bits.fold(Fr::zero(), |number, bit| number * Fr::from(BASE) + bit)
}

/// Returns the splits of the gadget, once the honest values have been accepted.
fn permuted(pieces: Pieces, before: [u64; 25]) -> Permuted {
    let tables = Arc::new(Mutex::new(None));
    let of_layout = Arc::clone(&tables);
    let found = Arc::new(Mutex::new(Permuted::default()));
    let to = Arc::clone(&found);
    let circuit = Closures::new(
        move |layout| {
            *of_layout.lock().unwrap() =
                Some(Tables::new(pieces, |name, table| layout.table(name, table)));
            let kind = layout.subcircuit_type("permutation", 0);
            layout.instance(kind);
            Ok(Vec::new())
        },
        |_, _| Ok(()),
        move |_| Ok(before),
        move |subcircuit, before: Option<&[u64; 25]>| {
            let tables = tables.lock().unwrap().clone().unwrap();
            let lanes = (0..25).map(|lane| {
                let value = before.map(|before| number_of(before[lane]));
                subcircuit.commit(|| value.ok_or(SynthesisError::AssignmentMissing))
            });
            let lanes = lanes.collect::<Result<Vec<FpVar<Fr>>, _>>()?;
            let look_ups = LookUps::new(subcircuit, &tables)?;
            let state = look_ups.state(lanes.as_slice().try_into().unwrap())?;
            look_ups.permute(state.lanes, 0)?;
            let variable = |lane: &FpVar<Fr>| match lane {
                FpVar::Var(lane) => lane.variable,
                FpVar::Constant(_) => Variable::One,
            };
            let lanes = lanes.iter().map(variable).collect();
            *to.lock().unwrap() = Permuted { lanes, splits: look_ups.splits.take() };
            Ok(())
        },
    );
    let report = check(&circuit, &(), |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
    let found = found.lock().unwrap().clone();
    assert_eq!(found.splits.len(), 24 * ROUND);
    found
}

fn value(terms: &Terms, values: &Values) -> Fr {
    terms.iter().map(|(factor, variable)| *factor * values[variable]).sum()
}

/// A number modulo 7; those above half the modulus are negative.
fn residue(number: Fr) -> i64 {
    let is_negative = number.into_bigint() > Fr::MODULUS_MINUS_ONE_DIV_TWO;
    let number = if is_negative { -number } else { number };
    // 2^64 is 2 modulo 7.
    let limbs = number.into_bigint().0.into_iter().rev();
    let residue = limbs.fold(0, |residue, limb| (2 * residue + limb % BASE) % BASE) as i64;
    if is_negative { -residue } else { residue }
}

impl Split {
    fn last(&self) -> &Key {
        self.keys.last().unwrap()
    }

    /// The only digits that a sum can be split into, if it can.
    fn digits(&self, mut sum: Fr) -> Option<[[u64; LANE]; 2]> {
        let seventh = Fr::from(BASE).inverse().unwrap();
        let [mut first, mut second] = [[0; LANE]; 2];
        for (first, second) in first.iter_mut().zip(&mut second) {
            let wanted = residue(sum).rem_euclid(BASE as i64);
            let of_both = |x: u64, y: u64| self.factors[0] * x as i64 + self.factors[1] * y as i64;
            let pairs = Alphabet::Binary
                .digits()
                .iter()
                .flat_map(|x| self.last().alphabet.digits().iter().map(move |y| (*x, *y)));
            let mut pairs =
                pairs.filter(|(x, y)| of_both(*x, *y).rem_euclid(BASE as i64) == wanted);
            let (x, y) = pairs.next()?;
            assert!(pairs.next().is_none());
            (*first, *second) = (x, y);
            sum = (sum - Fr::from(of_both(x, y))) * seventh;
        }
        sum.is_zero().then_some([first, second])
    }

    /// Sets all variables as an honest prover does; false where the sum has no digits.
    fn set(&self, values: &mut Values) -> bool {
        let Some(digits) = self.digits(value(&self.sum, values)) else { return false };
        for key in &self.keys[..self.keys.len() - 1] {
            key.set(&digits, values);
        }
        true
    }
}

impl Key {
    /// The variable, unless it is a sum.
    fn variable(&self) -> Variable {
        self.is[0].1
    }

    fn number(&self, digits: &[[u64; LANE]; 2]) -> Fr {
        let digits = &digits[self.part][self.digits.clone()];
        digits
            .iter()
            .rev()
            .fold(Fr::zero(), |number, digit| number * Fr::from(BASE) + Fr::from(*digit))
    }

    fn set(&self, digits: &[[u64; LANE]; 2], values: &mut Values) {
        values.insert(self.variable(), self.number(digits));
    }

    /// Reports whether its row holds: the number has its digits in the alphabet, and no more of them.
    fn holds(&self, values: &Values) -> bool {
        let limbs = value(&self.is, values).into_bigint().0;
        let mut rest = limbs[0];
        let fits = self.digits.clone().all(|_| {
            let digit = rest % BASE;
            rest /= BASE;
            self.alphabet.digits().contains(&digit)
        });
        fits && rest == 0 && limbs[1..].iter().all(|limb| *limb == 0)
    }
}

/// The values of all variables up to the end of some splits.
fn honest(permuted: &Permuted, before: [u64; 25], splits: usize) -> Values {
    let lanes = permuted.lanes.iter().copied().zip(before.map(number_of));
    let mut values: Values = lanes.chain([(Variable::One, Fr::one())]).collect();
    assert!(permuted.splits[..splits].iter().all(|split| split.set(&mut values)));
    values
}

/// Changes a digit of the other part, and lets the key of a row make up for it.
fn changed<'a>(
    split: &'a Split,
    row: usize,
    honest: &'a Values,
) -> impl Iterator<Item = Values> + use<'a> {
    let (key, is_last) = (&split.keys[row], row + 1 == split.keys.len());
    let digits = split.digits(value(&split.sum, honest)).unwrap();
    let other = 1 - key.part;
    let factors = split.factors.map(Fr::from);
    let by = factors[other] * factors[key.part].inverse().unwrap();
    let changes = key.digits.clone().flat_map(move |at| {
        let of_other = split.keys.iter().find(|key| key.part == other && key.digits.contains(&at));
        let of_other = of_other.unwrap();
        let own = digits[other][at];
        let others = of_other.alphabet.digits().iter().filter(move |digit| **digit != own);
        others.map(move |digit| (at, *digit, of_other))
    });
    changes.map(move |(at, digit, of_other)| {
        let mut values = honest.clone();
        let mut wrong = digits;
        wrong[other][at] = digit;
        // The last key of a split is a sum, which makes up for all by itself.
        if !std::ptr::eq(of_other, split.last()) {
            of_other.set(&wrong, &mut values);
        }
        if !is_last {
            let more = Fr::from(digit) - Fr::from(digits[other][at]);
            let place = Fr::from(BASE).pow([(at - key.digits.start) as u64]);
            values.insert(key.variable(), key.number(&digits) - by * more * place);
        }
        values
    })
}

/// The rows that do not hold.
fn wrong(splits: &[Split], values: &Values) -> Vec<(usize, usize)> {
    let rows = splits.iter().enumerate().flat_map(|(at, split)| {
        split.keys.iter().enumerate().map(move |(row, key)| ((at, row), key))
    });
    rows.filter(|(_, key)| !key.holds(values)).map(|(at, _)| at).collect()
}

/// Each row of a round, left out alone, lets a prover split a sum in another way, while all others of the split hold.
///
/// With the rows of what is dropped, and those of lanes after theta, it can forge the permutation of a random state: all other rows of
/// this round and of the next two hold, and what comes out is something else. The rest are those of columns and of what chi keeps. Their
/// keys differ by even digits, which change a sum's bits only where they carry, and a column is added to ten lanes.
#[test]
fn each_row_of_a_round_is_needed() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut state = || std::array::from_fn(|_| random.r#gen());
    let permuted = permuted(Pieces::LARGE, state());
    assert_eq!(permuted.splits.iter().map(|split| split.keys.len()).sum::<usize>(), 13_534);
    // The second round: what is before it is in pieces.
    let end = 4 * ROUND;
    let splits = &permuted.splits[..end];
    let rows = (ROUND..2 * ROUND)
        .flat_map(|split| (0..splits[split].keys.len()).map(move |row| (split, row)));
    let rows: Vec<(usize, usize)> = rows.collect();
    // Five more than 559: iota flips bits 1, 7 and 15 of a lane.
    assert_eq!(rows.len(), 564);
    let first = honest(&permuted, state(), end);
    assert_eq!(wrong(splits, &first), []);
    for &(split, row) in &rows {
        let own = &splits[split];
        let mut forged = changed(own, row, &first);
        let found = forged.any(|forged| wrong(std::slice::from_ref(own), &forged) == [(0, row)]);
        assert!(found, "row {row} of split {split}");
    }

    let mut left = rows;
    left.retain(|(split, row)| {
        splits[*split].keys[*row].part == 1 || (ROUND + 5..ROUND + 30).contains(split)
    });
    assert_eq!(left.len(), 434);
    for _ in 0..16 {
        let honest = honest(&permuted, state(), end);
        left.retain(|&(split, row)| {
            let mut forged = changed(&splits[split], row, &honest).filter_map(|mut forged| {
                let next = &splits[split + 1..];
                next.iter().all(|split| split.set(&mut forged)).then_some(forged)
            });
            !forged.any(|forged| {
                assert_eq!(wrong(splits, &forged), [(split, row)]);
                let outputs = splits[end - 25..].iter().flat_map(|split| &split.keys);
                let mut outputs = outputs.filter(|key| key.part == 0);
                outputs.any(|key| value(&key.is, &honest) != value(&key.is, &forged))
            })
        });
    }
    assert!(left.is_empty(), "{left:?}");
}
