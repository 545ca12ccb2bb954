//! The size of a word. The machine has words of 32 bits; the tests search for forgeries with small ones.

use hekaton_circuit::Fr;

/// The size of a word, in bits: 32, or a smaller power of two from 4 in tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The rows of chips are written for any size: with 4 bits, a test can try all operands and all witnesses.
pub(crate) struct Word(pub(crate) u32);

impl Word {
    /// The size of the machine's words.
    pub(crate) const RV32: Self = Self(32);

    /// The number of bits of a limb: a word has two.
    pub(crate) fn limb(self) -> u32 {
        self.0 / 2
    }

    /// The number of bits of a byte: a word has four.
    pub(crate) fn byte(self) -> u32 {
        self.0 / 4
    }

    /// The number of bits of the amount of a shift.
    pub(crate) fn shift(self) -> u32 {
        self.0.ilog2()
    }

    /// One more than the largest word.
    pub(crate) fn modulus(self) -> i128 {
        1 << self.0
    }
}

/// A power of two, as a field element.
pub(crate) fn power(exponent: u32) -> Fr {
    let mut limbs = [0; 4];
    // Exponents are below 255 here, so the number is below r.
    limbs[exponent as usize / 64] = 1 << (exponent % 64);
    Fr::from(ark_ff::BigInt(limbs))
}

/// An integer, as a field element.
pub(crate) fn number(value: i128) -> Fr {
    let size = Fr::from(value.unsigned_abs());
    if value < 0 { -size } else { size }
}
