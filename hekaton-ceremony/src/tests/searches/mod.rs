//! Searches for attacks (spec: ceremony#soundness): by an adversary that combines published elements, by elements that follow from
//! others, and exhaustively in small fields. They run on the types of real circuits.

mod algebra;
mod mutations;
mod polynomials;
mod slots;
mod small;

use super::types_of;
use crate::family::Shape;
use crate::lagrange::root;
use ark_ff::{Field, One, Zero};
use hekaton_arith::{Fr, powers};
use hekaton_circuit::{Circuit, Masking, MemoryChallenges, PreparedCircuit, R1cs};

/// The coefficients of the Lagrange polynomial that is 1 at one of the roots of size n.
fn lagrange(n: usize, at: usize) -> Vec<Fr> {
    let x = root(n).pow([at as u64]).inverse().unwrap();
    let share = Fr::from(n as u64).inverse().unwrap();
    powers(x, n).into_iter().map(|power| power * share).collect()
}

/// The coefficients of a variable's column polynomials.
fn columns(r1cs: &R1cs, n: usize, variable: usize) -> [Vec<Fr>; 3] {
    [0, 1, 2].map(|side| {
        let matrix = r1cs.side(side);
        let mut sum = vec![Fr::zero(); n];
        for row in 0..matrix.rows() {
            let of_row = matrix.terms(row).filter(|term| term.1 == variable);
            let coefficient: Fr = of_row.map(|term| term.0).sum();
            if !coefficient.is_zero() {
                let basis = lagrange(n, row);
                sum.iter_mut().zip(basis).for_each(|(sum, x)| *sum += coefficient * x);
            }
        }
        sum
    })
}

/// A type of a circuit with an assignment that satisfies it.
struct Case {
    r1cs: R1cs,
    z: Vec<Fr>,
}

impl Case {
    fn domain(&self) -> usize {
        Shape::new(&self.r1cs).domain
    }

    /// The types of a circuit, each with the assignment of its first subcircuit.
    fn of<C: Circuit>(circuit: &C, input: &C::Input) -> Vec<Self> {
        let prepared = PreparedCircuit::with_input(circuit, input).unwrap();
        let execution = prepared.execute().unwrap();
        let layout = prepared.layout();
        let wiring = layout.wiring(Masking::Unmasked);
        let [g, b, b_t, b_v] = [3u64, 5, 7, 11].map(|x| Fr::from(u64::MAX / x));
        let memory = MemoryChallenges { g, b, b_t, b_v };
        let instances: Vec<_> = layout.instance_ids().zip(wiring.by_instance()).collect();
        let (types, _) = types_of(circuit, false);
        let cases =
            types.into_iter().zip(layout.type_ids()).zip(0..).map(|((r1cs, id), number)| {
                let of_type = instances.iter().find(|(_, (kind, _))| *kind == number).unwrap();
                let (instance, (_, slots)) = *of_type;
                let values = execution.values.slots(layout, instance);
                let prefix = prepared.prefix(instance, slots, &values, &memory).unwrap();
                let private = execution.private_input(layout, instance).unwrap();
                let masking = Masking::Unmasked;
                let z = prepared.witness(id, masking, &prefix, &private, r1cs.variables).unwrap();
                let [a, b, c] = [0, 1, 2].map(|side| r1cs.side(side));
                for row in 0..a.rows() {
                    assert_eq!(a.row(row, &z) * b.row(row, &z), c.row(row, &z), "row {row}");
                }
                Self { r1cs, z }
            });
        cases.collect()
    }
}

#[test]
fn bases_are_lagrange_polynomials() {
    for n in [1, 2, 3, 4, 6, 12] {
        for at in 0..n {
            let basis = lagrange(n, at);
            for (place, x) in powers(root(n), n).into_iter().enumerate() {
                let value: Fr = powers(x, n).iter().zip(&basis).map(|(x, c)| *x * c).sum();
                assert_eq!(value, if place == at { Fr::one() } else { Fr::zero() });
            }
        }
    }
}
