//! The permutation by bits: 145,920 rows.

use super::{LANE, Message, Padding, Permutation, ROTATIONS, ValuedBit};
use super::{hash, moved, neighbors, round_constants};
use crate::bits::{Bit, Cs, combination, enforce_bit, new_bit};
use ark_ff::Field;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::Fr;

/// The gadget by bits, which needs no tables.
#[derive(Clone, Debug)]
pub struct Bits {
    cs: Cs,
}

/// A lane, the least significant bit first.
type Lane = Vec<ValuedBit>;

impl Bits {
    /// The gadget in a constraint system.
    pub fn new(cs: Cs) -> Self {
        Self { cs }
    }

    /// The digest of a message: 32 bytes.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn hash(&self, message: Message, padding: Padding) -> Result<Message, SynthesisError> {
        hash(self, message, padding)
    }

    fn xor(&self, a: ValuedBit, b: ValuedBit) -> Result<ValuedBit, SynthesisError> {
        let value = a.0.zip(b.0).map(|(a, b)| a ^ b);
        Ok((value, Bit::xor(&self.cs, a.1, b.1, value)?))
    }

    /// The exclusive or of five bits: three rows rather than four, because their sum is
    /// `p + 2 q + 4 r` with three bits, and r is what is left of it.
    fn xor5(&self, bits: [ValuedBit; 5]) -> Result<ValuedBit, SynthesisError> {
        // Zero lanes of the first block: an exclusive or with a constant is free, and this is cheaper than
        // three rows.
        if bits.iter().any(|(_, bit)| matches!(bit, Bit::Constant(_))) {
            return bits[1..].iter().try_fold(bits[0], |sum, bit| self.xor(sum, *bit));
        }
        let sum = bits.iter().try_fold(0u8, |sum, (value, _)| Some(sum + u8::from((*value)?)));
        let [p, q] = [0, 1].map(|i| sum.map(|sum| sum >> i & 1 == 1));
        let (p, q) = ((p, new_bit(&self.cs, p)?), new_bit(&self.cs, q)?);
        enforce_bit(&self.cs, || {
            let mut terms = bits.map(|(_, bit)| (1, bit)).to_vec();
            terms.extend([(-1, p.1), (-2, q)]);
            combination(&terms) * quarter()
        })?;
        Ok(p)
    }
}

/// 1/4, by which the row of r is scaled.
fn quarter() -> Fr {
    Fr::from(4u64).inverse().expect("4 is not zero modulo r")
}

/// A lane rotated to the left.
fn rotated(lane: &Lane, by: usize) -> Lane {
    (0..LANE).map(|i| lane[(i + LANE - by) % LANE]).collect()
}

impl Permutation for Bits {
    type Lane = Lane;

    fn zero(&self) -> Lane {
        vec![(Some(false), Bit::Constant(false)); LANE]
    }

    fn absorb(&self, lane: &Lane, bits: &[ValuedBit]) -> Result<Lane, SynthesisError> {
        // All rotations are renamings here; only exclusive ors and chi have rows.
        lane.iter().zip(bits).map(|(a, b)| self.xor(*a, *b)).collect()
    }

    fn permute(&self, mut state: Vec<Lane>, _: usize) -> Result<Vec<Lane>, SynthesisError> {
        for constant in round_constants() {
            let _span = tracing::info_span!(target: "gr1cs", "round").entered();
            // theta
            let mut columns = Vec::with_capacity(5);
            for x in 0..5 {
                let bits = |i: usize| std::array::from_fn(|y| state[x + 5 * y][i]);
                let column: Result<Lane, _> = (0..LANE).map(|i| self.xor5(bits(i))).collect();
                columns.push(column?);
            }
            let mut after = vec![Vec::new(); 25];
            for x in 0..5 {
                let effect =
                    self.absorb(&columns[(x + 4) % 5], &rotated(&columns[(x + 1) % 5], 1))?;
                for lane in (x..25).step_by(5) {
                    let sum = self.absorb(&state[lane], &effect)?;
                    // rho and pi
                    after[moved(lane)] = rotated(&sum, ROTATIONS[lane]);
                }
            }
            // chi
            for (lane, out) in state.iter_mut().enumerate() {
                let [a, b, c] = neighbors(lane).map(|lane| &after[lane]);
                for (i, out) in out.iter_mut().enumerate() {
                    let value = b[i].0.zip(c[i].0).map(|(b, c)| !b & c);
                    let both = Bit::and(&self.cs, b[i].1.negate(), c[i].1, value)?;
                    *out = self.xor(a[i], (value, both))?;
                }
            }
            // iota
            for (i, bit) in state[0].iter_mut().enumerate() {
                if constant >> i & 1 == 1 {
                    *bit = (bit.0.map(|value| !value), bit.1.negate());
                }
            }
        }
        Ok(state)
    }

    fn bits(&self, lane: &Lane) -> Result<Vec<ValuedBit>, SynthesisError> {
        Ok(lane.clone())
    }
}
