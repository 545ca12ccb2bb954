//! SHA-256 and Keccak as circomlib has them, bit by bit, and trees of a hash with Poseidon's rows.

use super::{Maker, Sum, combine, constant, one};
use hekaton_circuit::Fr;
use hekaton_r1cs::System;

/// The bits of a word, the lowest first, and its value.
#[derive(Clone)]
struct Word {
    bits: Vec<u32>,
    value: u32,
}

impl Word {
    fn rotated(&self, by: u32) -> Self {
        let bits = (0..32).map(|i| self.bits[(i + by as usize) % 32]).collect();
        Self { bits, value: self.value.rotate_right(by) }
    }

    fn sum(&self) -> Sum {
        (0..32).map(|i| (self.bits[i], Fr::from(1u64 << i))).collect()
    }
}

/// Bits from a product, bit by bit.
fn each(words: [&Word; 3], value: u32, mut f: impl FnMut([u32; 3]) -> u32) -> Word {
    let bits = (0..32).map(|i| f(words.map(|word| word.bits[i]))).collect();
    Word { bits, value }
}

fn xor(m: &mut Maker, words: [&Word; 3]) -> Word {
    let value = words.iter().fold(0, |all, word| all ^ word.value);
    each(words, value, |[a, b, c]| {
        let both = one(m.times(&one(b), &one(c)));
        let left = combine(&[(&constant(1), 1), (&one(b), -2), (&one(c), -2), (&both, 4)]);
        let rest = combine(&[(&one(b), 1), (&one(c), 1), (&both, -2)]);
        with_rest(m, one(a), left, &rest)
    })
}

/// A new wire a * b + rest.
fn with_rest(m: &mut Maker, a: Sum, b: Sum, rest: &Sum) -> u32 {
    let value = m.value(&a) * m.value(&b) + m.value(rest);
    let out = m.wire(value);
    m.product(a, b, combine(&[(&one(out), 1), (rest, -1)]));
    out
}

fn choose(m: &mut Maker, words: [&Word; 3]) -> Word {
    let [e, f, g] = words.map(|word| word.value);
    each(words, (e & f) ^ (!e & g), |[a, b, c]| {
        with_rest(m, one(a), combine(&[(&one(b), 1), (&one(c), -1)]), &one(c))
    })
}

fn majority(m: &mut Maker, words: [&Word; 3]) -> Word {
    let [a, b, c] = words.map(|word| word.value);
    each(words, (a & b) ^ (a & c) ^ (b & c), |[a, b, c]| {
        let both = one(m.times(&one(b), &one(c)));
        let left = combine(&[(&one(b), 1), (&one(c), 1), (&both, -2)]);
        with_rest(m, one(a), left, &both)
    })
}

/// The sum of words and a number, modulo 2^32.
fn add(m: &mut Maker, words: &[&Word], number: u32) -> Word {
    let all: u64 = words.iter().map(|word| u64::from(word.value)).sum::<u64>() + u64::from(number);
    let sums: Vec<Sum> = words.iter().map(|word| word.sum()).collect();
    let mut terms: Vec<(&Sum, i64)> = sums.iter().map(|sum| (sum, 1)).collect();
    let number = constant(number.into());
    terms.push((&number, 1));
    let mut bits = m.bits(&combine(&terms), all.into(), 32 + 3);
    bits.truncate(32);
    Word { bits, value: all as u32 }
}

fn word(m: &mut Maker, value: u32) -> Word {
    Word { bits: (0..32).map(|i| m.bit(value >> i & 1 == 1)).collect(), value }
}

/// Compressions of SHA-256, one after the other, of blocks that are the private input; the public
/// output is the last state. The constants are not those of SHA-256.
pub(crate) fn sha256(m: &mut Maker, blocks: u32) -> Vec<Sum> {
    let mut state: Vec<Word> =
        (0..8).map(|i| word(m, 0x6a09_e667_u32.wrapping_mul(i + 1))).collect();
    for block in 0..blocks {
        let mut w: Vec<Word> =
            (0..16).map(|i| word(m, (16 * block + i).wrapping_mul(0x9e37_79b9))).collect();
        for i in 16..64 {
            // Shifts are rotations here: the rows are nearly the same.
            let [a, b, c] = [7, 18, 3].map(|by| w[i - 15].rotated(by));
            let first = xor(m, [&a, &b, &c]);
            let [a, b, c] = [17, 19, 10].map(|by| w[i - 2].rotated(by));
            let second = xor(m, [&a, &b, &c]);
            let next = add(m, &[&second, &w[i - 7], &first, &w[i - 16]], 0);
            w.push(next);
        }
        let before = state.clone();
        for w in &w {
            let [a, b, c] = [6, 11, 25].map(|by| state[4].rotated(by));
            let sigma = xor(m, [&a, &b, &c]);
            let choice = choose(m, [&state[4], &state[5], &state[6]]);
            let t1 = add(m, &[&state[7], &sigma, &choice, w], 0x428a_2f98);
            let [a, b, c] = [2, 13, 22].map(|by| state[0].rotated(by));
            let sigma = xor(m, [&a, &b, &c]);
            let majority = majority(m, [&state[0], &state[1], &state[2]]);
            let t2 = add(m, &[&sigma, &majority], 0);
            let e = add(m, &[&state[3], &t1], 0);
            let a = add(m, &[&t1, &t2], 0);
            state.rotate_right(1);
            (state[0], state[4]) = (a, e);
        }
        state = state.iter().zip(&before).map(|(now, then)| add(m, &[now, then], 0)).collect();
    }
    state.iter().map(Word::sum).collect()
}

/// A hash of this number of blocks.
pub(crate) fn hash_of_blocks(blocks: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(8);
    let state = sha256(&mut m, blocks);
    (1..).zip(&state).for_each(|(public, sum)| m.publish(public, sum));
    m.finish()
}

/// Rounds of Keccak-f[1600], without their constants; 25 of the bits are public at the end.
pub(crate) fn keccak(rounds: u32) -> (System, Vec<Fr>) {
    const OFFSETS: [usize; 25] = [
        0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56,
        14,
    ];
    let mut m = Maker::new(25);
    let xor = |m: &mut Maker, a: u32, b: u32| {
        // a + b - 2 a b = out, as 2 a b = a + b - out.
        let rest = combine(&[(&one(a), 1), (&one(b), 1)]);
        let value = m.value(&rest) - Fr::from(2u64) * m.values[a as usize] * m.values[b as usize];
        let out = m.wire(value);
        m.product(combine(&[(&one(a), 2)]), one(b), combine(&[(&rest, 1), (&one(out), -1)]));
        out
    };
    let mut state: Vec<Vec<u32>> =
        (0..25).map(|lane| (0..64).map(|i| m.bit((lane + i) % 3 == 0)).collect()).collect();
    for _ in 0..rounds {
        let parity: Vec<Vec<u32>> = (0..5)
            .map(|x| {
                let column = |i: usize| (1..5).map(move |y| (x + 5 * y, i));
                let bits = (0..64).map(|i| {
                    column(i).fold(state[x][i], |all, (lane, i)| xor(&mut m, all, state[lane][i]))
                });
                bits.collect()
            })
            .collect();
        for x in 0..5 {
            for i in 0..64 {
                let d = xor(&mut m, parity[(x + 4) % 5][i], parity[(x + 1) % 5][(i + 63) % 64]);
                for y in 0..5 {
                    state[x + 5 * y][i] = xor(&mut m, state[x + 5 * y][i], d);
                }
            }
        }
        let mut moved = state.clone();
        for x in 0..5 {
            for y in 0..5 {
                let lane = &state[x + 5 * y];
                let by = OFFSETS[x + 5 * y];
                moved[y + 5 * ((2 * x + 3 * y) % 5)] =
                    (0..64).map(|i| lane[(i + 64 - by) % 64]).collect();
            }
        }
        for y in 0..5 {
            for x in 0..5 {
                for i in 0..64 {
                    let [a, b, c] = [x, (x + 1) % 5, (x + 2) % 5].map(|x| moved[x + 5 * y][i]);
                    let not = combine(&[(&constant(1), 1), (&one(b), -1)]);
                    let and = m.times(&not, &one(c));
                    state[x + 5 * y][i] = xor(&mut m, a, and);
                }
            }
        }
    }
    (1..).zip(state).for_each(|(public, lane)| m.publish(public, &one(lane[0])));
    m.finish()
}

/// Poseidon's rows for three elements: 8 full rounds and 57 partial ones, with other constants.
fn poseidon(m: &mut Maker, inputs: [Sum; 2]) -> u32 {
    let [left, right] = inputs;
    let mut state = [constant(0), left, right];
    for round in 0..65 {
        let is_full = !(4..61).contains(&round);
        let lanes = if is_full { 3 } else { 1 };
        for (lane, index) in state.iter_mut().zip(0i64..lanes) {
            let x = combine(&[(&*lane, 1), (&constant(3 * round + index + 7), 1)]);
            let square = one(m.times(&x, &x));
            let fourth = one(m.times(&square, &square));
            *lane = one(m.times(&fourth, &x));
        }
        let mixed = [[2, 3, 5], [3, 7, 1], [4, 1, 6]]
            .map(|k: [i64; 3]| combine(&[(&state[0], k[0]), (&state[1], k[1]), (&state[2], k[2])]));
        // Combinations stay short, as circom's sparse form of the matrices keeps them.
        state = if is_full || round % 4 == 0 { mixed.map(|sum| one(m.equal(&sum))) } else { mixed };
    }
    m.equal(&state[0])
}

/// Paths in trees with this number of levels, each to a public root; leaves and siblings are private.
pub(crate) fn merkle_paths(paths: u32, levels: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(paths);
    for path in 1..=paths {
        let mut node = m.wire(Fr::from(path));
        for level in 0..levels {
            let sibling = m.wire(Fr::from(1000 * path + level));
            let side = m.bit((path >> (level % 8)) & 1 == 1);
            let difference = combine(&[(&one(sibling), 1), (&one(node), -1)]);
            let moved = one(m.times(&one(side), &difference));
            let left = combine(&[(&one(node), 1), (&moved, 1)]);
            let right = combine(&[(&one(sibling), 1), (&moved, -1)]);
            node = poseidon(&mut m, [left, right]);
        }
        m.publish(path, &one(node));
    }
    m.finish()
}
