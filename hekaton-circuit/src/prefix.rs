//! The values of the memory check's variables in one subcircuit.

use crate::memory::{MemoryChallenges, SlotAccess};
use crate::wiring::Wiring;
use ark_ff::{Field, Zero};
use hekaton_arith::Fr;

/// The values that the memory check puts in front of an author's variables, in the order of
/// [`VariableLayout`](crate::prover::VariableLayout).
#[derive(Clone, Debug)]
pub struct Prefix {
    /// The public variables: 1, g, addresses, multiplicities.
    pub public: Vec<Fr>,
    /// The values of the slots.
    pub committed: Vec<Fr>,
    /// The sum of the inverses, `e`.
    pub sum: Fr,
    /// The inverses, scaled by the multiplicities.
    pub inverses: Vec<Fr>,
}

/// A fingerprint is zero: the challenges hit a pole of the LogUp sum (spec: memory-check#pole).
#[derive(Clone, Copy, Debug)]
pub struct Pole;

impl Prefix {
    /// The values for a subcircuit's slots under the challenges.
    ///
    /// # Errors
    /// When a fingerprint is zero, with a probability of about s / 2^255.
    ///
    /// # Panics
    /// When there are not as many values as slots.
    pub fn new(
        slots: &[SlotAccess],
        values: &[Fr],
        memory: &MemoryChallenges,
    ) -> Result<Self, Pole> {
        assert_eq!(slots.len(), values.len(), "as many values as slots");
        let (addresses, multiplicities) = Wiring::preprocessed(slots);
        let x: Vec<Fr> = addresses.iter().map(|a| memory.b * a).collect();
        let mut inverses: Vec<Fr> = x.iter().zip(values).map(|(x, v)| memory.g + v + x).collect();
        if inverses.iter().any(Zero::is_zero) {
            return Err(Pole);
        }
        hekaton_arith::batch_invert(&mut inverses);
        inverses.iter_mut().zip(&multiplicities).for_each(|(u, m)| *u *= m);
        let mut public = vec![Fr::ONE, memory.g];
        public.extend(x);
        public.extend(multiplicities);
        Ok(Self { public, committed: values.to_vec(), sum: inverses.iter().sum(), inverses })
    }
}
