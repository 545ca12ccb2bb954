//! Arithmetic in limbs, as for RSA and secp256k1, products of matrices, sums and wide rows.

use super::hashes::sha256;
use super::{Maker, Sum, combine, constant, one};
use ark_ff::Field;
use hekaton_circuit::Fr;
use hekaton_r1cs::System;

/// A number in limbs of `bits` bits, each of them range-checked.
struct Limbs {
    bits: u32,
    wires: Vec<u32>,
}

fn limbs(m: &mut Maker, count: u32, bits: u32, seed: u128) -> Limbs {
    let limb = |i: u32| seed.wrapping_mul(u128::from(i) + 0x1234_5678_9abc) % (1u128 << bits);
    let wires = (0..count).map(|i| {
        let value = limb(i);
        let wire = m.wire(Fr::from(value));
        m.bits(&one(wire), value, bits);
        wire
    });
    Limbs { bits, wires: wires.collect() }
}

/// The polynomial of limbs at a small number.
fn at(limbs: &Limbs, x: i64) -> Sum {
    let mut power = Fr::ONE;
    let term = |wire: &u32| {
        let now = power;
        power *= Fr::from(x);
        (*wire, now)
    };
    limbs.wires.iter().map(term).collect()
}

/// A product modulo a number, as zk-email and circom-ecdsa have it: a b = q p + r as polynomials at
/// 2 k - 1 places, with the carries of the difference in range. The numbers are any, so the
/// difference is made up for by a wire per place.
fn times(m: &mut Maker, a: &Limbs, b: &Limbs, p: &Limbs, seed: u128) -> Limbs {
    let count = a.wires.len() as u32;
    let (q, r) = (limbs(m, count, a.bits, seed), limbs(m, count, a.bits, seed + 1));
    for x in 0..2 * i64::from(count) - 1 {
        let left = m.times(&at(a, x), &at(b, x));
        let right = m.times(&at(&q, x), &at(p, x));
        let rest = combine(&[(&one(left), 1), (&one(right), -1), (&at(&r, x), -1)]);
        m.equal(&rest);
    }
    for _ in 0..count {
        // The carry of a limb.
        let carry = m.wire(Fr::from(seed % (1 << 60)));
        m.bits(&one(carry), seed % (1 << 60), a.bits.min(64) + 4);
    }
    r
}

/// A signature with exponent 65537 in limbs of 121 bits, and the hash of what is signed.
pub(crate) fn rsa_and_hash(blocks: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(17);
    let body = sha256(&mut m, blocks);
    let (modulus, base) = (limbs(&mut m, 17, 121, 77), limbs(&mut m, 17, 121, 99));
    let mut power = Limbs { bits: 121, wires: base.wires.clone() };
    for step in 0..16 {
        power = times(&mut m, &power, &power, &modulus, 1000 + step);
    }
    let last = times(&mut m, &power, &base, &modulus, 5000);
    for (public, limb) in (1..).zip(&last.wires) {
        let hash = &body[public as usize % 8];
        m.publish(public, &combine(&[(&one(*limb), 1), (hash, 3)]));
    }
    m.finish()
}

/// Steps of a multiplication on a curve like secp256k1, in four limbs of 64 bits: per step a doubling
/// and an addition of six products each, and a choice by a bit.
pub(crate) fn curve(steps: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(8);
    let p = limbs(&mut m, 4, 64, 3);
    let mut point = [limbs(&mut m, 4, 64, 5), limbs(&mut m, 4, 64, 6)];
    for step in 0..steps {
        let bit = m.bit(step % 3 == 1);
        for operation in 0..2u32 {
            let seed = u128::from(100 * step + 10 * operation);
            let [x, y] = &point;
            let slope = times(&mut m, x, y, &p, seed);
            let square = times(&mut m, &slope, &slope, &p, seed + 2);
            let next = times(&mut m, &square, x, &p, seed + 4);
            let chosen = |m: &mut Maker, new: &Limbs, old: &Limbs| {
                let wires = new.wires.iter().zip(&old.wires).map(|(new, old)| {
                    let difference = combine(&[(&one(*new), 1), (&one(*old), -1)]);
                    let moved = m.times(&one(bit), &difference);
                    m.equal(&combine(&[(&one(*old), 1), (&one(moved), 1)]))
                });
                Limbs { bits: 64, wires: wires.collect() }
            };
            point = [chosen(&mut m, &next, x), chosen(&mut m, &square, y)];
        }
    }
    let limbs: Vec<u32> = point.iter().flat_map(|limbs| limbs.wires.clone()).collect();
    (1..).zip(limbs).for_each(|(public, limb)| m.publish(public, &one(limb)));
    m.finish()
}

/// A product of square matrices: the factors are private, the product is public.
pub(crate) fn matrix_product(n: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(n * n);
    let factor = |m: &mut Maker, k: u32| -> Vec<u32> {
        (0..n * n).map(|i| m.wire(Fr::from(u64::from(i) * u64::from(k) % 1_000_003))).collect()
    };
    let (a, b) = (factor(&mut m, 0x1_0001), factor(&mut m, 0x2_0003));
    for i in 0..n {
        for j in 0..n {
            let product = |k: u32| [a[(i * n + k) as usize], b[(k * n + j) as usize]];
            let terms: Sum = (0..n)
                .map(|k| {
                    let [a, b] = product(k);
                    (m.times(&one(a), &one(b)), Fr::ONE)
                })
                .collect();
            m.publish(1 + i * n + j, &terms);
        }
    }
    m.finish()
}

/// Squarings with a constant, one after the other.
fn squarings(m: &mut Maker, first: u32, count: u32) -> u32 {
    (0..count).fold(first, |x, _| {
        let value = m.values[x as usize].square() + Fr::from(5u64);
        let next = m.wire(value);
        m.product(one(x), one(x), combine(&[(&one(next), 1), (&constant(5), -1)]));
        next
    })
}

/// The sum of public inputs, in addition to rows that have nothing to do with it.
pub(crate) fn sum_of_inputs(inputs: u32, rows: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(1 + inputs);
    (0..inputs).for_each(|i| m.values[2 + i as usize] = Fr::from(i + 3));
    let first = m.wire(Fr::from(7u64));
    let last = squarings(&mut m, first, rows);
    let sum: Sum = (0..inputs).map(|i| (2 + i, Fr::from(1 + i % 7))).collect();
    m.publish(1, &combine(&[(&sum, 1), (&one(last), 1)]));
    m.finish()
}

/// The sum of private wires, each of which is made in another place.
pub(crate) fn sum_of_wires(terms: u32, each: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(1);
    let mut sum = Sum::new();
    for i in 0..terms {
        let first = m.wire(Fr::from(i + 3));
        sum.push((squarings(&mut m, first, each), Fr::ONE));
    }
    m.publish(1, &sum);
    m.finish()
}

/// Public values, each of which is used once, in a chain.
pub(crate) fn public_values(count: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(count);
    let mut x = m.wire(Fr::from(2u64));
    for i in 1..=count {
        m.values[i as usize] = Fr::from(i);
        x = m.times(&one(i), &combine(&[(&one(x), 1), (&constant(1), 1)]));
    }
    m.finish()
}

/// Public values that no row has, in addition to squarings.
pub(crate) fn unread_values(count: u32, rows: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(1 + count);
    let first = m.wire(Fr::from(7u64));
    let last = squarings(&mut m, first, rows);
    m.publish(1, &one(last));
    m.finish()
}

/// Rows of many terms over wires that are anywhere, and squarings.
pub(crate) fn wide_rows(wide: u32, terms: u32, rows: u32) -> (System, Vec<Fr>) {
    let mut m = Maker::new(1);
    let first = m.wire(Fr::from(7u64));
    let last = squarings(&mut m, first, rows);
    let mut state = 1u64;
    for _ in 0..wide {
        let mut sum = Sum::new();
        for _ in 0..terms {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            sum.push((first + (state >> 33) as u32 % rows, Fr::from(state % 1000 + 1)));
        }
        m.times(&sum, &one(first));
    }
    m.publish(1, &one(last));
    m.finish()
}
