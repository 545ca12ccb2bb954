//! Lanes as sums of pieces, and their numbers in base 7.

use crate::bits::Bit;
use crate::keccak::LANE;
use crate::keccak::relations::BASE;
use crate::switch::Terms;
#[cfg(test)]
use ark_ff::One;
use ark_ff::PrimeField;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{SynthesisError, Variable};
use hekaton_circuit::Fr;
use std::ops::Range;

/// A lane: a number in base 7 whose digits are its bits, as a sum of pieces.
#[derive(Clone, Debug)]
pub(in crate::keccak) struct Lane {
    pub(super) value: Option<u64>,
    pub(super) pieces: Vec<Piece>,
}

/// A piece of a lane: digits from `start`.
#[derive(Clone, Copy, Debug)]
pub(in crate::keccak) struct Piece {
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) digits: Digits,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::keccak) enum Digits {
    Bit(Bit),
    Several(Variable),
}

impl Digits {
    /// The digits of a marked value.
    pub(super) fn of(marked: &FpVar<Fr>) -> Result<Self, SynthesisError> {
        match marked {
            FpVar::Var(marked) => Ok(Self::Several(marked.variable)),
            FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
        }
    }
}

impl Piece {
    #[cfg(test)]
    pub(super) fn terms(&self) -> Terms {
        let mut terms = Terms::new();
        self.add_to(&mut terms, Fr::one());
        terms
    }

    pub(super) fn add_to(&self, sum: &mut Terms, factor: Fr) {
        match self.digits {
            Digits::Bit(bit) => bit.add_to(sum, factor),
            Digits::Several(variable) => sum.push((factor, variable)),
        }
    }
}

impl Lane {
    pub(super) fn rotated(mut self, by: usize) -> Self {
        for piece in &mut self.pieces {
            piece.start = (piece.start + by) % LANE;
        }
        Self { value: self.value.map(|value| rotate(value, by)), ..self }
    }

    /// Flips bits, which must be pieces of their own.
    pub(super) fn flip(&mut self, bits: u64) {
        self.value = self.value.map(|value| value ^ bits);
        for piece in &mut self.pieces {
            if let Digits::Bit(bit) = &mut piece.digits
                && bits >> piece.start & 1 == 1
            {
                // Free: iota has no rows.
                *bit = bit.negate();
            }
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "at most 64")]
pub(super) fn rotate(value: u64, by: usize) -> u64 {
    value.rotate_left(by as u32)
}

/// The number of some digits: below 7^16.
pub(super) fn number(digits: &[u64]) -> u64 {
    digits.iter().rev().fold(0, |number, digit| number * BASE + digit)
}

/// The digits of some bits as a number.
pub(super) fn spread(bits: u64, range: Range<usize>) -> u64 {
    range.rev().fold(0, |number, i| number * BASE + (bits >> i & 1))
}

/// The bits of a lane that is given as a number in base 7 whose digits are its bits ([`LookUps::lanes`](super::LookUps::lanes)); anything for other numbers.
#[allow(clippy::cast_possible_truncation, reason = "quotients of a rest below 7, and rests")]
pub fn bits_of_number(number: Fr) -> u64 {
    // Long division by 7, limb by limb, as only witnesses need it.
    let mut limbs = number.into_bigint().0;
    (0..LANE).fold(0, |lane, at| {
        let mut rest = 0;
        for limb in limbs.iter_mut().rev() {
            let dividend = u128::from(rest) << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(BASE)) as u64;
            rest = (dividend % u128::from(BASE)) as u64;
        }
        lane | (rest & 1) << at
    })
}

pub(super) fn bits_to_lane(digits: [u64; LANE]) -> u64 {
    digits.iter().rev().fold(0, |lane, digit| lane << 1 | digit)
}
