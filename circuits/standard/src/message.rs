//! Messages of bytes, which hash functions take.

use crate::bits::{Bit, Cs, add_word, committed_bit, new_bit};
use ark_ff::Field;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{Fr, Subcircuit};
use std::ops::Range;

/// A message of whole bytes, some of which may be constant.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The bits of all bytes with their values, most significant bit of each byte first.
    pub(crate) bits: Vec<(Option<bool>, Bit)>,
}

impl Message {
    /// Creates an empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends constant bytes.
    #[must_use]
    pub fn constant(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.bits.extend((0..8).rev().map(|i| {
                let bit = byte >> i & 1 == 1;
                (Some(bit), Bit::Constant(bit))
            }));
        }
        self
    }

    /// Appends `len` witness bytes: 8 constraints each.
    ///
    /// # Errors
    /// If a value is required but absent, or does not have `len` bytes.
    pub fn witness(
        mut self,
        cs: &Cs,
        len: usize,
        bytes: Option<&[u8]>,
    ) -> Result<Self, SynthesisError> {
        if bytes.is_some_and(|b| b.len() != len) {
            return Err(SynthesisError::Unsatisfiable);
        }
        for j in 0..len {
            for i in (0..8).rev() {
                let value = bytes.map(|b| b[j] >> i & 1 == 1);
                // Bit by bit, because SHA-256 and Keccak compute with bits; 8 rows make a byte of it.
                self.bits.push((value, new_bit(cs, value)?));
            }
        }
        Ok(self)
    }

    /// Appends `len` bytes whose bits are marked, so that entries of buses may contain them: 8
    /// constraints each.
    ///
    /// # Errors
    /// As for [`witness`](Self::witness), and if the layout has no bus.
    pub fn committed(
        mut self,
        subcircuit: &Subcircuit,
        len: usize,
        bytes: Option<&[u8]>,
    ) -> Result<Self, SynthesisError> {
        if bytes.is_some_and(|b| b.len() != len) {
            return Err(SynthesisError::Unsatisfiable);
        }
        for j in 0..len {
            for i in (0..8).rev() {
                let value = bytes.map(|b| b[j] >> i & 1 == 1);
                // Marked: an entry of a bus may only contain what is committed before its challenge is
                // drawn.
                self.bits.push((value, committed_bit(subcircuit, value)?));
            }
        }
        Ok(self)
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bits.len() / 8
    }

    /// Reports whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// The values of the bytes, if they have values.
    pub fn value(&self) -> Option<Vec<u8>> {
        let byte = |bits: &[(Option<bool>, Bit)]| {
            bits.iter().try_fold(0u8, |byte, (bit, _)| Some(byte << 1 | u8::from((*bit)?)))
        };
        self.bits.chunks_exact(8).map(byte).collect()
    }

    /// A bit as a variable: the first one is the most significant one of the first byte.
    ///
    /// # Errors
    /// If the message does not have it.
    pub fn bit(&self, cs: &Cs, index: usize) -> Result<FpVar<Fr>, SynthesisError> {
        let (value, bit) = *self.bits.get(index).ok_or(SynthesisError::Unsatisfiable)?;
        let one = || FpVar::Constant(Fr::ONE);
        let is = |value: Option<bool>, variable| {
            FpVar::Var(AllocatedFp::new(value.map(Fr::from), variable, cs.clone()))
        };
        Ok(match bit {
            Bit::Constant(bit) => FpVar::Constant(Fr::from(bit)),
            Bit::Is(variable) => is(value, variable),
            // The negation of a bit is a combination and needs no variable.
            Bit::Not(variable) => one() - is(value.map(|value| !value), variable),
        })
    }

    /// Some of the bits as a number, the first one the most significant.
    ///
    /// # Errors
    /// If the message does not have these bits, or they are more than 248, which could be more than r.
    pub fn number(&self, bits: Range<usize>) -> Result<LinearCombination<Fr>, SynthesisError> {
        let ascending: Vec<Bit> = self.exact(bits)?.iter().rev().map(|(_, bit)| *bit).collect();
        let mut lc = Vec::with_capacity(ascending.len() + 2);
        add_word(&mut lc, &ascending, Fr::ONE);
        Ok(LinearCombination(lc))
    }

    /// Some of the bits, if there are so few that they are one number modulo r: 2^248 is below r, and 2^255 is not.
    fn exact(&self, bits: Range<usize>) -> Result<&[(Option<bool>, Bit)], SynthesisError> {
        let some = self.bits.get(bits).filter(|bits| bits.len() <= 31 * 8);
        some.ok_or(SynthesisError::Unsatisfiable)
    }

    /// Constrains bytes, as a little-endian number, to equal a shared wire: one row.
    ///
    /// # Errors
    /// If the message does not have these bytes, or they are more than 31, which could be more than r.
    pub fn enforce_little_endian(
        &self,
        cs: &Cs,
        bytes: Range<usize>,
        wire: Variable,
    ) -> Result<(), SynthesisError> {
        let ascending: Vec<Bit> = self
            .exact(8 * bytes.start..8 * bytes.end)?
            .chunks_exact(8)
            .flat_map(|byte| byte.iter().rev().map(|(_, bit)| *bit))
            .collect();
        let number = || {
            let mut lc = Vec::with_capacity(ascending.len() + 2);
            add_word(&mut lc, &ascending, Fr::ONE);
            lc.push((-Fr::ONE, wire));
            LinearCombination(lc)
        };
        cs.enforce_r1cs_constraint(number, || Variable::One.into(), LinearCombination::zero)
    }
}
