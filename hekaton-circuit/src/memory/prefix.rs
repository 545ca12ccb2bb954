//! The values of the memory check's variables in one subcircuit (spec: memory-check#variables).

use crate::interface::{MemoryChallenges, Preprocessed, SlotAccess};
use crate::memory::wiring::Wiring;
use ark_ff::{Field, Zero};
use hekaton_arith::Fr;

/// The values of the variables that precede the author's, in the order of
/// [`VariableLayout`](crate::prover::VariableLayout).
#[derive(Clone, Debug)]
pub struct Prefix {
    /// The public variables: the constant 1, challenges, scaled addresses, multiplicities, parameters
    /// and pairs.
    pub public: Vec<Fr>,
    /// The values of the slots.
    pub committed: Vec<Fr>,
    /// The slots' part of the subcircuit's term `e` of the LogUp sum: the sum of the scaled inverses.
    /// Without entries of buses, it is `e`.
    pub sum: Fr,
    /// The inverses of the fingerprints of the slots, scaled by the multiplicities.
    pub inverses: Vec<Fr>,
    /// The challenges.
    pub memory: MemoryChallenges,
}

/// The challenges hit a pole (zero denominator) of the LogUp sum: a fingerprint is zero
/// (spec: memory-check#pole).
#[derive(Clone, Copy, Debug)]
pub struct Pole;

impl Prefix {
    /// Computes the values for a subcircuit's slots under the challenges, in a circuit without buses
    /// and parameters.
    ///
    /// # Errors
    /// If a fingerprint is zero, which has probability at most s / r for s slots.
    ///
    /// # Panics
    /// If the numbers of slots and values differ.
    pub fn new(
        slots: &[SlotAccess],
        values: &[Fr],
        memory: &MemoryChallenges,
    ) -> Result<Self, Pole> {
        Self::with(slots, values, Preprocessed::default(), memory)
    }

    /// [`new`](Self::new) in any circuit.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    ///
    /// # Panics
    /// If the numbers of slots and values differ.
    pub fn with(
        slots: &[SlotAccess],
        values: &[Fr],
        preprocessed: Preprocessed<'_>,
        memory: &MemoryChallenges,
    ) -> Result<Self, Pole> {
        assert_eq!(slots.len(), values.len(), "slots and values must have the same length");
        // The addresses come from the layout, never from the prover, who only multiplies them by
        // the challenge b (spec: memory-check#preprocessed).
        let (addresses, multiplicities) = Wiring::preprocessed(slots);
        let x: Vec<Fr> = addresses.iter().map(|a| memory.b * a).collect();
        let mut inverses: Vec<Fr> = x.iter().zip(values).map(|(x, v)| memory.g + v + x).collect();
        // At a pole, row j has no solution if mu_j != 0 and leaves u_j unconstrained if mu_j = 0.
        // It must be found here, because the batch inversion below passes zeros through
        // (spec: memory-check#pole).
        if inverses.iter().any(Zero::is_zero) {
            return Err(Pole);
        }
        hekaton_arith::batch_invert(&mut inverses);
        // The unique values that satisfy the rows of the fingerprints, and `sum` the one that
        // satisfies row 0 (spec: memory-check#rows, memory-check#ledger-sum).
        inverses.iter_mut().zip(&multiplicities).for_each(|(u, m)| *u *= m);
        let mut public = vec![Fr::ONE, memory.g];
        if preprocessed.buses {
            public.extend([memory.b_t, memory.b_v]);
        }
        public.extend(x);
        public.extend(multiplicities);
        // Affine in b_V with coefficients of the layout, so the verifying key commits to both parts
        // (spec: buses#preprocessed).
        public.extend(preprocessed.parameters);
        public.extend(preprocessed.pairs.iter().map(|[key, value]| memory.b_v * value + key));
        let (committed, sum) = (values.to_vec(), inverses.iter().sum());
        Ok(Self { public, committed, sum, inverses, memory: *memory })
    }
}
