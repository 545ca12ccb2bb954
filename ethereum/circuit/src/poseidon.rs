//! Poseidon with x^5, rate 8 and capacity 1, 8 full and 57 partial rounds, for one block of input (spec: witness#chain).
//!
//! The parameters are those of arkworks for this field and rate. A block of the chain is 7 elements, so that one permutation absorbs
//! all of them, and no sponge is needed.

use crate::forms::{Synthesized, Var};
use ark_ff::{BigInteger, Field, PrimeField, Zero};
use ark_r1cs_std::fields::FieldVar;
use hekaton_circuit::Fr;
use std::sync::LazyLock;

/// The most elements that are hashed.
pub(crate) const RATE: usize = 8;
/// The number of elements in the state: the capacity first, then the rate.
const WIDTH: usize = RATE + 1;
const FULL_ROUNDS: usize = 8;
const PARTIAL_ROUNDS: usize = 57;
const ROUNDS: usize = FULL_ROUNDS + PARTIAL_ROUNDS;

static PARAMETERS: LazyLock<Parameters> = LazyLock::new(Parameters::new);

struct Parameters {
    /// The constants that each round adds to the state.
    constants: Vec<[Fr; WIDTH]>,
    /// The matrix that mixes the state.
    matrix: [[Fr; WIDTH]; WIDTH],
}

impl Parameters {
    fn new() -> Self {
        let mut bits = Grain::new();
        let constants = (0..ROUNDS).map(|_| std::array::from_fn(|_| bits.element())).collect();
        let xs: [Fr; WIDTH] = std::array::from_fn(|_| bits.reduced_element());
        let ys: [Fr; WIDTH] = std::array::from_fn(|_| bits.reduced_element());
        // A Cauchy matrix, all of whose square submatrices are invertible.
        let entry = |x: Fr, y: Fr| (x + y).inverse().expect("no x is -y with these constants");
        Self { constants, matrix: xs.map(|x| ys.map(|y| entry(x, y))) }
    }
}

/// The Grain shift register of the Poseidon paper (appendix F). It generates the constants, so nobody could choose them.
struct Grain(u128);

/// The number of bits in the register.
const REGISTER: u32 = 80;

impl Grain {
    fn new() -> Self {
        // Fields from the first bit on: kind of field, S-box, bits of the field, width, rounds; ones to the end.
        let fields = [
            (2, 1),
            (4, 0),
            (12, Fr::MODULUS_BIT_SIZE as usize),
            (12, WIDTH),
            (10, FULL_ROUNDS),
            (10, PARTIAL_ROUNDS),
            (30, (1 << 30) - 1),
        ];
        let state = fields.iter().fold(0, |state, (bits, value)| state << bits | *value as u128);
        let mut grain = Self(state);
        for _ in 0..160 {
            grain.step();
        }
        grain
    }

    /// Shifts the register by one bit, and returns the one that comes in.
    fn step(&mut self) -> bool {
        // The highest of the 80 bits is the first.
        let tap = |at: u32| self.0 >> (REGISTER - 1 - at) & 1;
        let bit = [62, 51, 38, 23, 13, 0].into_iter().fold(0, |sum, at| sum ^ tap(at));
        self.0 = (self.0 << 1 | bit) & ((1 << REGISTER) - 1);
        bit == 1
    }

    /// Returns a bit of the output: the second bit of the next pair whose first bit is 1.
    fn bit(&mut self) -> bool {
        while !self.step() {
            self.step();
        }
        self.step()
    }

    fn bits(&mut self) -> <Fr as PrimeField>::BigInt {
        let bits: Vec<bool> = (0..Fr::MODULUS_BIT_SIZE).map(|_| self.bit()).collect();
        BigInteger::from_bits_be(&bits)
    }

    /// Returns a uniform element: numbers not below the field's order are discarded.
    fn element(&mut self) -> Fr {
        loop {
            if let Some(element) = Fr::from_bigint(self.bits()) {
                return element;
            }
        }
    }

    /// Returns an element by reduction, as the paper does for the matrix.
    fn reduced_element(&mut self) -> Fr {
        Fr::from_le_bytes_mod_order(&self.bits().to_bytes_le())
    }
}

/// Reports whether all elements of the state go through the S-box in a round, or only the first.
fn is_full(round: usize) -> bool {
    !(FULL_ROUNDS / 2..FULL_ROUNDS / 2 + PARTIAL_ROUNDS).contains(&round)
}

/// Hashes at most [`RATE`] elements.
pub(crate) fn hash(elements: &[Fr]) -> Fr {
    let Parameters { constants, matrix } = &*PARAMETERS;
    let mut state = [Fr::zero(); WIDTH];
    state[1..=elements.len()].copy_from_slice(elements);
    for (round, constant) in constants.iter().enumerate() {
        state.iter_mut().zip(constant).for_each(|(element, constant)| *element += constant);
        let boxes = if is_full(round) { WIDTH } else { 1 };
        for element in &mut state[..boxes] {
            *element *= element.square().square();
        }
        state = matrix
            .map(|row| row.iter().zip(&state).map(|(factor, element)| *factor * element).sum());
    }
    state[1]
}

/// Hashes at most [`RATE`] elements in the constraints, 3 rows for each S-box.
pub(crate) fn hash_in_constraints(elements: &[Var]) -> Synthesized<Var> {
    let Parameters { constants, matrix } = &*PARAMETERS;
    let mut state = vec![Var::zero(); WIDTH];
    state[1..=elements.len()].clone_from_slice(elements);
    for (round, constant) in constants.iter().enumerate() {
        state.iter_mut().zip(constant).for_each(|(element, constant)| *element += *constant);
        let boxes = if is_full(round) { WIDTH } else { 1 };
        for element in &mut state[..boxes] {
            *element = element.pow_by_constant([5])?;
        }
        let mix = |row: &[Fr; WIDTH]| {
            row.iter()
                .zip(&state)
                .fold(Var::zero(), |sum, (factor, element)| sum + element * *factor)
        };
        state = matrix.iter().map(mix).collect();
    }
    Ok(state[1].clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_crypto_primitives::crh::poseidon::CRH;
    use ark_crypto_primitives::crh::poseidon::constraints::{CRHGadget, CRHParametersVar};
    use ark_crypto_primitives::crh::{CRHScheme, CRHSchemeGadget};
    use ark_crypto_primitives::sponge::poseidon::{PoseidonConfig, find_poseidon_ark_and_mds};
    use ark_r1cs_std::GR1CSVar;
    use ark_r1cs_std::alloc::AllocVar;
    use ark_relations::gr1cs::{ConstraintSystem, ConstraintSystemRef};
    use rand::Rng;

    fn config() -> PoseidonConfig<Fr> {
        let (ark, mds) = find_poseidon_ark_and_mds(255, 8, 8, 57, 0);
        PoseidonConfig::new(8, 57, 5, mds, ark, 8, 1)
    }

    #[test]
    fn hashes_are_those_of_arkworks() {
        let (config, rng) = (config(), &mut rand::thread_rng());
        for length in 1..=RATE {
            let elements: Vec<Fr> = (0..length).map(|_| rng.r#gen()).collect();
            assert_eq!(hash(&elements), CRH::evaluate(&config, elements.as_slice()).unwrap());
        }
    }

    #[test]
    fn constraints_are_those_of_arkworks() {
        let elements = |cs: &ConstraintSystemRef<Fr>| -> Vec<Var> {
            // The third one is a sum, the fourth a constant.
            let new = |value: u64| Var::new_witness(cs.clone(), || Ok(Fr::from(value))).unwrap();
            let (a, b) = (new(1), new(2));
            vec![a.clone(), b.clone(), a + b, Var::constant(Fr::from(7)), new(5), new(6), new(7)]
        };
        let (ours, theirs) = (ConstraintSystem::new_ref(), ConstraintSystem::new_ref());
        let found = hash_in_constraints(&elements(&ours)).unwrap();
        let parameters = CRHParametersVar::new_constant(theirs.clone(), config()).unwrap();
        let expected = CRHGadget::evaluate(&parameters, &elements(&theirs)).unwrap();
        assert_eq!(found.value().unwrap(), expected.value().unwrap());
        assert_eq!(found.value().unwrap(), hash(&[1, 2, 3, 7, 5, 6, 7].map(Fr::from)));
        for cs in [&ours, &theirs] {
            cs.finalize();
            assert!(cs.is_satisfied().unwrap());
        }
        assert_eq!(ours.to_matrices().unwrap(), theirs.to_matrices().unwrap());
    }
}
