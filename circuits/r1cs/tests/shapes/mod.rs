//! Circuits with the constraints of what people write in circom: the rows of circomlib's gadgets, in
//! circom's order, with a witness.

#![allow(dead_code, reason = "each test takes some of them")]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use ark_ff::{AdditiveGroup, Field, PrimeField};
use hekaton_circuit::Fr;
use hekaton_r1cs::{System, SystemBuilder};

pub(crate) mod hashes;
pub(crate) mod numbers;

/// A linear combination.
pub(crate) type Sum = Vec<(u32, Fr)>;

/// A circuit that is being made, with the values of its wires.
pub(crate) struct Maker {
    public: u32,
    pub(crate) values: Vec<Fr>,
    /// circom writes products first, and then what is linear.
    products: Vec<[Sum; 3]>,
    linear: Vec<[Sum; 3]>,
}

/// The wire itself.
pub(crate) fn one(wire: u32) -> Sum {
    vec![(wire, Fr::ONE)]
}

pub(crate) fn constant(value: i64) -> Sum {
    vec![(0, Fr::from(value))]
}

/// The sum of combinations times small numbers.
pub(crate) fn combine(terms: &[(&Sum, i64)]) -> Sum {
    let scaled = |(sum, k): &(&Sum, i64)| {
        let k = Fr::from(*k);
        sum.iter().map(|(wire, value)| (*wire, *value * k)).collect::<Vec<_>>()
    };
    terms.iter().flat_map(scaled).collect()
}

impl Maker {
    /// Public wires come first; their values can be set later.
    pub(crate) fn new(public: u32) -> Self {
        let values = vec![Fr::ONE; public as usize + 1];
        Self { public, values, products: Vec::new(), linear: Vec::new() }
    }

    pub(crate) fn wire(&mut self, value: Fr) -> u32 {
        self.values.push(value);
        self.values.len() as u32 - 1
    }

    pub(crate) fn value(&self, sum: &Sum) -> Fr {
        sum.iter().map(|(wire, k)| self.values[*wire as usize] * k).sum()
    }

    /// a * b = c.
    pub(crate) fn product(&mut self, a: Sum, b: Sum, c: Sum) {
        self.products.push([a, b, c]);
    }

    /// sum = 0.
    pub(crate) fn zero(&mut self, sum: Sum) {
        self.linear.push([vec![], vec![], sum]);
    }

    /// A new wire that is a product.
    pub(crate) fn times(&mut self, a: &Sum, b: &Sum) -> u32 {
        let value = self.value(a) * self.value(b);
        let wire = self.wire(value);
        self.product(a.clone(), b.clone(), one(wire));
        wire
    }

    /// A new wire that is a sum.
    pub(crate) fn equal(&mut self, sum: &Sum) -> u32 {
        let value = self.value(sum);
        let wire = self.wire(value);
        self.zero(combine(&[(sum, 1), (&one(wire), -1)]));
        wire
    }

    /// Says that a public wire is a sum, and sets it.
    pub(crate) fn publish(&mut self, public: u32, sum: &Sum) {
        self.values[public as usize] = self.value(sum);
        self.zero(combine(&[(sum, 1), (&one(public), -1)]));
    }

    /// A new wire that is 0 or 1.
    pub(crate) fn bit(&mut self, value: bool) -> u32 {
        let wire = self.wire(Fr::from(value));
        self.product(one(wire), combine(&[(&one(wire), 1), (&constant(1), -1)]), vec![]);
        wire
    }

    /// The bits of a sum whose value is this number.
    pub(crate) fn bits(&mut self, sum: &Sum, value: u128, count: u32) -> Vec<u32> {
        let bits: Vec<u32> = (0..count).map(|i| self.bit(value >> i & 1 == 1)).collect();
        let mut all = combine(&[(sum, -1)]);
        let mut power = Fr::ONE;
        for bit in &bits {
            all.push((*bit, power));
            power = power.double();
        }
        self.zero(all);
        bits
    }

    /// The constraints, and the values.
    pub(crate) fn finish(self) -> (System, Vec<Fr>) {
        let mut builder = SystemBuilder::new(self.values.len() as u32, self.public);
        for (number, row) in (0u32..).zip(self.products.iter().chain(&self.linear)) {
            for side in row {
                for (wire, k) in side {
                    let limbs = k.into_bigint().0.map(u64::to_le_bytes);
                    let bytes = limbs.concat().try_into().unwrap();
                    builder.term(*wire, &bytes, || *k).unwrap();
                }
                builder.end_combination().unwrap();
            }
            builder.end_row(number).unwrap();
        }
        (builder.finish(), self.values)
    }
}
