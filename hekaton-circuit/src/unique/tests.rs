//! Random systems over fields of 5 to 13 elements: what is called determined has one value in all witnesses with the same given
//! values, and what is called free has several.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use super::*;
use ark_ff::{Fp64, MontBackend, MontConfig};

macro_rules! field {
    ($config:ident, $field:ident, $modulus:literal, $generator:literal) => {
        #[derive(MontConfig)]
        #[modulus = $modulus]
        #[generator = $generator]
        struct $config;
        type $field = Fp64<MontBackend<$config, 1>>;
    };
}

field!(Config5, F5, "5", "2");
field!(Config7, F7, "7", "3");
field!(Config11, F11, "11", "2");
field!(Config13, F13, "13", "2");

/// Random numbers that can be repeated.
struct Random(blake3::OutputReader);

impl Random {
    fn next(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in this many of 100 cases.
    fn percent(&mut self, part: u64) -> bool {
        self.below(100) < part
    }

    fn some(&mut self, from: &[u32], count: usize) -> Vec<u32> {
        let mut left = from.to_vec();
        (0..count.min(from.len()))
            .map(|_| left.swap_remove(self.below(left.len() as u64) as usize))
            .collect()
    }
}

struct Case<F> {
    rows: Vec<[Vec<(u32, F)>; 3]>,
    values: Vec<F>,
    given: Vec<u32>,
    /// Variables with a row for a bit.
    bits: Vec<bool>,
}

fn evaluate<F: PrimeField>(side: &[(u32, F)], values: &[F]) -> F {
    side.iter().map(|(v, k)| *k * values[*v as usize]).sum()
}

impl<F: PrimeField> Case<F> {
    /// A witness first, then rows that it satisfies.
    fn random(random: &mut Random) -> Self {
        let p = F::MODULUS.as_ref()[0];
        let (unknown, given) = (2 + random.below(4) as u32, random.below(3) as u32);
        let variables = 1 + given + unknown;
        let mut values: Vec<F> = (0..variables)
            .map(|v| if v == 0 { F::ONE } else { F::from(random.below(p)) })
            .collect();
        let (mut bits, mut rows) = (vec![false; variables as usize], Vec::new());
        let mut wide = 0;
        for v in 1 + given..variables {
            // Exhaustive search has at most three values that are not bits.
            if random.percent(65) || wide == 3 {
                values[v as usize] = F::from(random.below(2));
                let forgotten = wide < 3 && random.percent(25);
                wide += usize::from(forgotten);
                if !forgotten {
                    bits[v as usize] = true;
                    rows.push([vec![(v, F::ONE)], vec![(0, -F::ONE), (v, F::ONE)], vec![]]);
                }
            } else {
                wide += 1;
            }
        }
        for _ in 0..1 + random.below(4) {
            rows.push(Self::row(random, p, &values));
        }
        Self { rows, values, given: (1..=given).collect(), bits }
    }

    fn row(random: &mut Random, p: u64, values: &[F]) -> [Vec<(u32, F)>; 3] {
        let all: Vec<u32> = (0..values.len() as u32).collect();
        let field = |side: Vec<(u32, u64)>| -> Vec<(u32, F)> {
            side.into_iter().map(|(v, k)| (v, F::from(k))).filter(|(_, k)| !k.is_zero()).collect()
        };
        // The constant makes the witness satisfy the row.
        let fix = |side: &mut Vec<(u32, F)>, missing: F| {
            let constant = side.iter().position(|(v, _)| *v == 0).map(|at| side.swap_remove(at).1);
            let constant = constant.unwrap_or(F::ZERO) + missing;
            side.extend((!constant.is_zero()).then_some((0, constant)));
            side.sort_unstable_by_key(|(v, _)| *v);
        };
        if random.percent(55) {
            let count = 1 + random.below(6) as usize;
            let chosen = random.some(&all, count);
            let powers = random.percent(40);
            let terms = chosen.iter().enumerate().map(|(at, v)| {
                let k =
                    [1, 1, 2, 4, p - 1, p - 2, 1 + random.below(p - 1)][random.below(7) as usize];
                (*v, if powers { 1 << at } else { k })
            });
            let mut side = field(terms.collect());
            let missing = -evaluate(&side, values);
            fix(&mut side, missing);
            return [vec![(0, F::ONE)], side, vec![]];
        }
        let mut sides = [0, 1, 2].map(|_| {
            let count = 1 + random.below(2) as usize;
            let chosen = random.some(&all, count);
            field(chosen.into_iter().map(|v| (v, 1 + random.below(p - 1))).collect())
        });
        let [a, b, c] = sides.each_ref().map(|side| evaluate(side, values));
        fix(&mut sides[2], a * b - c);
        sides.iter_mut().for_each(|side| side.sort_unstable_by_key(|(v, _)| *v));
        sides
    }

    fn rows(&self) -> Rows<F> {
        let mut coefficients: Vec<F> = Vec::new();
        let rows: Vec<[Vec<[u32; 2]>; 3]> = (self.rows.iter())
            .map(|sides| {
                sides.each_ref().map(|side| {
                    let entry = |(v, k): &(u32, F)| {
                        coefficients.push(*k);
                        [*v, coefficients.len() as u32 - 1]
                    };
                    side.iter().map(entry).collect()
                })
            })
            .collect();
        Rows::new(coefficients, rows).unwrap()
    }

    /// The values that each variable has in any witness with the same given values.
    fn exhaust(&self) -> Vec<BTreeSet<F>> {
        let p = F::MODULUS.as_ref()[0];
        let mut found = vec![BTreeSet::new(); self.values.len()];
        let unknown: Vec<usize> = (1 + self.given.len()..self.values.len()).collect();
        let mut values = self.values.clone();
        unknown.iter().for_each(|v| values[*v] = F::ZERO);
        loop {
            let holds = |sides: &[Vec<(u32, F)>; 3]| {
                let [a, b, c] = sides.each_ref().map(|side| evaluate(side, &values));
                a * b == c
            };
            if self.rows.iter().all(holds) {
                found.iter_mut().zip(&values).for_each(|(found, value)| {
                    found.insert(*value);
                });
            }
            // The next values, as a number whose digits are bits or elements.
            let next = unknown.iter().find(|v| {
                let base = if self.bits[**v] { 2 } else { p };
                values[**v] += F::ONE;
                let carries = values[**v] == F::from(base);
                if carries {
                    values[**v] = F::ZERO;
                }
                !carries
            });
            if next.is_none() {
                return found;
            }
        }
    }
}

/// The numbers of values that are determined, and that are called so; those that have several values, and that are called free.
fn compare<F: PrimeField>(random: &mut Random, systems: usize) -> [usize; 4] {
    let mut counts = [0; 4];
    for _ in 0..systems {
        let position = random.0.position();
        let case = Case::<F>::random(random);
        let (rows, outputs) = (case.rows(), [case.values.len() as u32 - 1]);
        assert_eq!(rows.first_false(&case.values), None);
        let (values, given, ties) = (&case.values, &case.given, &Ties::default());
        let question = Question { rows: &rows, values, given, outputs: &outputs, ties };
        let answer = analyze(&question).unwrap();
        let found = case.exhaust();
        for v in 1 + case.given.len() as u32..case.values.len() as u32 {
            let values = &found[v as usize];
            let is_free = answer.free.contains_key(&v);
            let is_determined = !is_free && !answer.undecided.contains(&v);
            counts[0] += usize::from(values.len() == 1);
            counts[1] += usize::from(is_determined);
            counts[2] += usize::from(values.len() > 1);
            counts[3] += usize::from(is_free);
            let context =
                format!("modulus {}, position {position}, variable {v}: {values:?}", F::MODULUS);
            assert!(!is_determined || values.len() == 1, "called determined: {context}");
            if let Some(other) = answer.free.get(&v) {
                assert!(values.contains(other), "called free, {other}: {context}");
                assert_ne!(*other, case.values[v as usize], "{context}");
            }
        }
        if let Some(second) = &answer.second {
            let mut values = case.values.clone();
            second.iter().for_each(|(v, value)| values[*v as usize] = *value);
            assert_eq!(rows.first_false(&values), None, "position {position}");
            assert_eq!(second.contains_key(&outputs[0]), answer.free.contains_key(&outputs[0]));
        }
    }
    counts
}

/// Bits whose sum is 0 may all be 1 if there are as many as the characteristic: five in a field of five elements.
#[test]
fn sums_of_bits_may_reach_the_characteristic() {
    let (one, y) = (F5::from(1), 6);
    let bit = |v| [vec![(v, one)], vec![(0, -one), (v, one)], vec![]];
    let mut rows: Vec<_> = (1..=y).map(bit).collect();
    // (1 - y)(1 - x1) = 0, and x1 + .. + x5 + 2 y = 0.
    rows.push([vec![(0, one), (y, -one)], vec![(0, one), (1, -one)], vec![]]);
    let sum = (1..y).map(|v| (v, one)).chain([(y, F5::from(2))]);
    rows.push([vec![(0, one)], sum.collect(), vec![]]);
    let values = [1, 1, 1, 1, 0, 0, 1].map(F5::from).to_vec();
    let case = Case { rows, values, given: vec![], bits: vec![true; 7] };
    let (rows, found) = (case.rows(), case.exhaust());
    let (values, ties) = (&case.values, &Ties::default());
    let question = Question { rows: &rows, values, given: &[], outputs: &[y], ties };
    let answer = analyze(&question).unwrap();
    assert_eq!(found[y as usize].len(), 2);
    assert!(answer.free.contains_key(&y) || answer.undecided.contains(&y));
}

#[test]
fn verdicts_agree_with_exhaustive_search() {
    let mut random = Random(blake3::Hasher::new().finalize_xof());
    let mut counts = [0; 4];
    for compare in [compare::<F5>, compare::<F7>, compare::<F11>, compare::<F13>] {
        for (sum, count) in counts.iter_mut().zip(compare(&mut random, 25_000)) {
            *sum += count;
        }
    }
    let [determined, called, several, free] = counts;
    // What the rules and the search miss must not grow unnoticed.
    assert!(called * 100 >= determined * 90, "{called} of {determined} are called determined");
    assert!(free * 100 >= several * 85, "{free} of {several} are called free");
}
