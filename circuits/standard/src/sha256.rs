//! SHA-256 as a gadget, by bits with about 26,200 constraints per block, and by [`LookUps`].
//!
//! A word has 32 bits, each of which is a variable, its negation or a constant. Constants fold, so
//! a block of constant padding costs no message schedule. Additions are lazy: a sum of words is
//! decomposed once, with as many carry bits as its number of terms requires. Values are computed
//! natively, word by word, alongside the constraints.

mod look_ups;

pub use crate::message::Message;
pub use look_ups::{LookUps, Tables};

use crate::bits::{Bit, Cs, add_word, combination, new_bit, new_dependent_bit};
use ark_ff::Field;
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::Fr;

/// The length of a digest in bytes.
pub const DIGEST: usize = 32;

/// The initial hash value (FIPS 180-4, section 5.3.3): the state before the first block.
pub const IV: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The round constants (FIPS 180-4, section 4.2.2).
const K: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// A 32-bit word, least significant bit first. It has no value at setup.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    value: Option<u32>,
    bits: [Bit; 32],
}

fn bit_of(value: Option<u32>, i: usize) -> Option<bool> {
    value.map(|w| w >> i & 1 == 1)
}

impl Word {
    /// Creates a constant word.
    pub fn constant(value: u32) -> Self {
        Self {
            value: Some(value),
            bits: std::array::from_fn(|i| Bit::Constant(value >> i & 1 == 1)),
        }
    }

    /// Allocates a witness word: 32 boolean variables and as many constraints.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn witness(cs: &Cs, value: Option<u32>) -> Result<Self, SynthesisError> {
        let mut bits = [Bit::Constant(false); 32];
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = new_bit(cs, bit_of(value, i))?;
        }
        Ok(Self { value, bits })
    }

    /// The value; `None` at setup.
    pub fn value(&self) -> Option<u32> {
        self.value
    }

    /// The least significant bit.
    pub fn last_bit(&self) -> LinearCombination<Fr> {
        combination(&[(1, self.bits[0])])
    }

    /// The word with another least significant bit, a constant.
    #[must_use]
    pub fn with_last_bit(mut self, bit: bool) -> Self {
        self.bits[0] = Bit::Constant(bit);
        self.value = self.value.map(|value| value & !1 | u32::from(bit));
        self
    }

    /// Two words, exchanged if the bit is 1: two rows per bit.
    fn swap(
        cs: &Cs,
        (value, bit): (Option<bool>, Bit),
        a: &Self,
        b: &Self,
    ) -> Result<[Self; 2], SynthesisError> {
        let values = value
            .zip(a.value.zip(b.value))
            .map(|(swap, (a, b))| if swap { [b, a] } else { [a, b] });
        let first = Self::map(values.map(|[first, _]| first), |i, value| {
            // bit (b - a) = first - a
            let first = new_dependent_bit(cs, value)?;
            let (a, b) = (a.bits[i], b.bits[i]);
            let (left, right) = (|| combination(&[(1, bit)]), || combination(&[(1, b), (-1, a)]));
            cs.enforce_r1cs_constraint(left, right, || combination(&[(1, first), (-1, a)]))?;
            Ok(first)
        })?;
        let second = Self::map(values.map(|[_, second]| second), |i, value| {
            // The sum of both is that of a and b.
            let second = new_dependent_bit(cs, value)?;
            let sum = || combination(&[(1, a.bits[i]), (1, b.bits[i]), (-1, first.bits[i])]);
            let one = || Variable::One.into();
            cs.enforce_r1cs_constraint(sum, one, || combination(&[(1, second)]))?;
            Ok(second)
        })?;
        Ok([first, second])
    }

    /// The value, if all bits are constants. Unlike `value`, it does not depend on the witness.
    fn as_constant(&self) -> Option<u32> {
        self.bits.iter().rev().try_fold(0, |w, bit| match bit {
            Bit::Constant(b) => Some(w << 1 | u32::from(*b)),
            _ => None,
        })
    }

    fn rotate_right(&self, n: u32) -> Self {
        Self {
            value: self.value.map(|w| w.rotate_right(n)),
            bits: std::array::from_fn(|i| self.bits[(i + n as usize) % 32]),
        }
    }

    fn shift_right(&self, n: usize) -> Self {
        let bits =
            std::array::from_fn(
                |i| if i + n < 32 { self.bits[i + n] } else { Bit::Constant(false) },
            );
        Self { value: self.value.map(|w| w >> n), bits }
    }

    /// Builds a word bit by bit; `f` receives the index and the value of a bit.
    fn map(
        value: Option<u32>,
        mut f: impl FnMut(usize, Option<bool>) -> Result<Bit, SynthesisError>,
    ) -> Result<Self, SynthesisError> {
        let mut bits = [Bit::Constant(false); 32];
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = f(i, bit_of(value, i))?;
        }
        Ok(Self { value, bits })
    }

    /// The word `a xor b`: one row per bit, `2 a b = a + b - c`.
    fn xor(cs: &Cs, a: &Self, b: &Self) -> Result<Self, SynthesisError> {
        let value = a.value.zip(b.value).map(|(a, b)| a ^ b);
        Self::map(value, |i, value| {
            let (a, b) = (a.bits[i], b.bits[i]);
            Bit::xor(cs, a, b, value)
        })
    }

    fn xor3(cs: &Cs, a: &Self, b: &Self, c: &Self) -> Result<Self, SynthesisError> {
        Self::xor(cs, &Self::xor(cs, a, b)?, c)
    }

    /// The word `(e and f) xor (not e and g)`: one row per bit, `e (f - g) = ch - g`.
    fn choose(cs: &Cs, e: &Self, f: &Self, g: &Self) -> Result<Self, SynthesisError> {
        let value = e.value.zip(f.value).zip(g.value).map(|((e, f), g)| (e & f) ^ (!e & g));
        Self::map(value, |i, value| {
            let (e, f, g) = (e.bits[i], f.bits[i], g.bits[i]);
            // The first round begins with the constant initial state.
            if let Bit::Constant(e) = e {
                return Ok(if e { f } else { g });
            }
            let ch = match (f, g) {
                (Bit::Constant(f), Bit::Constant(g)) if f == g => return Ok(Bit::Constant(f)),
                (Bit::Constant(f), Bit::Constant(_)) => return Ok(if f { e } else { e.negate() }),
                _ => new_dependent_bit(cs, value)?,
            };
            let (left, right) = (|| combination(&[(1, e)]), || combination(&[(1, f), (-1, g)]));
            cs.enforce_r1cs_constraint(left, right, || combination(&[(1, ch), (-1, g)]))?;
            Ok(ch)
        })
    }

    /// The majority of `a`, `b` and `c`: two rows per bit, `b c = p` and `a (b + c - 2 p) = maj -
    /// p`.
    fn majority(cs: &Cs, a: &Self, b: &Self, c: &Self) -> Result<Self, SynthesisError> {
        let both = b.value.zip(c.value).map(|(b, c)| b & c);
        let value =
            a.value.zip(b.value).zip(c.value).map(|((a, b), c)| (a & b) ^ (a & c) ^ (b & c));
        Self::map(value, |i, value| {
            let (a, b, c) = (a.bits[i], b.bits[i], c.bits[i]);
            let p = Bit::and(cs, b, c, bit_of(both, i))?;
            match (a, b, c) {
                (Bit::Constant(false), _, _) => return Ok(p),
                (_, Bit::Constant(b), Bit::Constant(c)) => {
                    return Ok(if b == c { Bit::Constant(b) } else { a });
                }
                _ => {}
            }
            let maj = new_dependent_bit(cs, value)?;
            let (left, right) =
                (|| combination(&[(1, a)]), || combination(&[(1, b), (1, c), (-2, p)]));
            cs.enforce_r1cs_constraint(left, right, || combination(&[(1, maj), (-1, p)]))?;
            Ok(maj)
        })
    }

    /// The sum modulo 2^32: 32 bits and the carries, each with a boolean row, and one row for the
    /// sum.
    fn sum(cs: &Cs, words: &[&Self]) -> Result<Self, SynthesisError> {
        // Sums of constants are constants: the schedule of a constant block costs no row.
        if let Some(total) =
            words.iter().try_fold(0u32, |sum, w| Some(sum.wrapping_add(w.as_constant()?)))
        {
            return Ok(Self::constant(total));
        }
        let total = words.iter().try_fold(0u64, |sum, w| Some(sum + u64::from(w.value?)));
        // A sum of m words is below m 2^32, so it fits into these digits, far below r: it has
        // exactly one decomposition.
        let width = 32 + words.len().next_power_of_two().trailing_zeros() as usize;
        let mut digits = Vec::with_capacity(width);
        // The carries are bits with rows of their own: without them, a carry could make up for any 32 bits.
        for i in 0..width {
            digits.push(new_bit(cs, total.map(|t| t >> i & 1 == 1))?);
        }
        let left = || {
            let mut lc = Vec::with_capacity(33 * words.len() + width);
            for word in words {
                add_word(&mut lc, &word.bits, Fr::ONE);
            }
            add_word(&mut lc, &digits, -Fr::ONE);
            LinearCombination(lc)
        };
        cs.enforce_r1cs_constraint(left, || Variable::One.into(), LinearCombination::zero)?;
        #[allow(clippy::cast_possible_truncation, reason = "modulo 2^32: the carries are dropped")]
        let value = total.map(|t| t as u32);
        Ok(Self { value, bits: std::array::from_fn(|i| digits[i]) })
    }
}

/// A digest: eight words, the most significant one first.
pub type Digest = [Word; 8];

/// Compresses a block of 16 words into the state.
fn compress(cs: &Cs, state: &Digest, block: &[Word; 16]) -> Result<Digest, SynthesisError> {
    let _span = tracing::info_span!(target: "gr1cs", "sha256_compress").entered();
    // message schedule
    let mut w = block.to_vec();
    for t in 16..64 {
        let (x, y) = (w[t - 15], w[t - 2]);
        let s0 = Word::xor3(cs, &x.rotate_right(7), &x.rotate_right(18), &x.shift_right(3))?;
        let s1 = Word::xor3(cs, &y.rotate_right(17), &y.rotate_right(19), &y.shift_right(10))?;
        w.push(Word::sum(cs, &[&w[t - 16], &s0, &w[t - 7], &s1])?);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for t in 0..64 {
        let s1 = Word::xor3(cs, &e.rotate_right(6), &e.rotate_right(11), &e.rotate_right(25))?;
        let ch = Word::choose(cs, &e, &f, &g)?;
        let s0 = Word::xor3(cs, &a.rotate_right(2), &a.rotate_right(13), &a.rotate_right(22))?;
        let maj = Word::majority(cs, &a, &b, &c)?;
        let k = Word::constant(K[t]);
        let new_e = Word::sum(cs, &[&d, &h, &s1, &ch, &k, &w[t]])?;
        let new_a = Word::sum(cs, &[&h, &s1, &ch, &k, &w[t], &s0, &maj])?;
        // Both sums have five terms in common, added twice rather than once: a sum of its own would cost 36
        // rows.
        (h, g, f, e, d, c, b, a) = (g, f, e, new_e, c, b, a, new_a);
    }
    let mut out = *state;
    for (out, x) in out.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *out = Word::sum(cs, &[out, &x])?;
    }
    Ok(out)
}

impl Message {
    /// Constrains a message of witness bytes to be data padded with zeros, where the wire `used`
    /// holds the number of bytes of data and `value` is its value. Costs three rows per byte and one
    /// more.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn enforce_filling(
        &self,
        cs: &Cs,
        used: Variable,
        value: Option<usize>,
    ) -> Result<(), SynthesisError> {
        let _span = tracing::info_span!(target: "gr1cs", "enforce_filling").entered();
        // Flag j is 1 if byte j is data. Flags are boolean and never rise, so their sum is the
        // length of the data; bytes whose flag is 0 must be zero.
        let mut flags = Vec::with_capacity(self.bits.len() / 8);
        for (j, byte) in self.bits.chunks_exact(8).enumerate() {
            let flag = new_bit(cs, value.map(|used| j < used))?;
            if let Some(before) = flags.last().copied() {
                let filled = || combination(&[(1, Bit::negate(before))]);
                cs.enforce_r1cs_constraint(
                    || combination(&[(1, flag)]),
                    filled,
                    LinearCombination::zero,
                )?;
            }
            let bits: Vec<Bit> = byte.iter().rev().map(|(_, bit)| *bit).collect();
            let byte = || {
                let mut lc = Vec::with_capacity(9);
                add_word(&mut lc, &bits, Fr::ONE);
                LinearCombination(lc)
            };
            cs.enforce_r1cs_constraint(
                byte,
                || combination(&[(1, flag.negate())]),
                LinearCombination::zero,
            )?;
            flags.push(flag);
        }
        let sum = || combination(&flags.iter().map(|f| (1, *f)).collect::<Vec<_>>());
        cs.enforce_r1cs_constraint(sum, || Variable::One.into(), || used.into())
    }

    /// Constrains the last `len` bytes, as a big-endian number, to equal the sum of the values of two
    /// wires modulo r: one row. The wires themselves are not range-checked.
    ///
    /// # Errors
    /// If the message is shorter than `len` bytes, or they are more than 31, which could be more than r.
    pub fn enforce_number(
        &self,
        cs: &Cs,
        len: usize,
        wires: [Variable; 2],
    ) -> Result<(), SynthesisError> {
        let start = self.bits.len().checked_sub(8 * len).filter(|_| len <= 31);
        let last = &self.bits[start.ok_or(SynthesisError::Unsatisfiable)?..];
        let bits: Vec<Bit> = last.iter().rev().map(|(_, bit)| *bit).collect();
        let number = || {
            let mut lc = Vec::with_capacity(bits.len() + 2);
            add_word(&mut lc, &bits, Fr::ONE);
            lc.extend(wires.map(|wire| (-Fr::ONE, wire)));
            LinearCombination(lc)
        };
        cs.enforce_r1cs_constraint(number, || Variable::One.into(), LinearCombination::zero)
    }

    /// Appends a digest.
    #[must_use]
    pub fn digest(mut self, digest: &Digest) -> Self {
        for word in digest {
            self.bits.extend((0..32).rev().map(|i| (bit_of(word.value, i), word.bits[i])));
        }
        self
    }

    /// The words of the message.
    fn words(&self) -> Vec<Word> {
        let word = |chunk: &[(Option<bool>, Bit)]| Word {
            value: chunk.iter().try_fold(0u32, |w, (bit, _)| Some(w << 1 | u32::from((*bit)?))),
            bits: std::array::from_fn(|i| chunk[31 - i].1),
        };
        self.bits.chunks_exact(32).map(word).collect()
    }

    /// The words of the message with the standard padding.
    fn padded(self) -> Vec<Word> {
        let bits = self.bits.len() as u64;
        let mut message = self.constant(&[0x80]);
        // The padding has a one bit, zeros, and the length in 8 bytes at the end of a block (FIPS 180-4,
        // 5.1.1).
        while message.bits.len() % 512 != 448 {
            message = message.constant(&[0]);
        }
        message.constant(&bits.to_be_bytes()).words()
    }

    /// Two digests, exchanged if a bit of the message is 1: 512 rows.
    ///
    /// # Errors
    /// If the message does not have the bit, or a value is required but absent.
    pub fn swap(
        &self,
        cs: &Cs,
        bit: usize,
        a: &Digest,
        b: &Digest,
    ) -> Result<[Digest; 2], SynthesisError> {
        let bit = *self.bits.get(bit).ok_or(SynthesisError::Unsatisfiable)?;
        let (mut first, mut second) = (*a, *b);
        for (first, second) in first.iter_mut().zip(&mut second) {
            [*first, *second] = Word::swap(cs, bit, first, second)?;
        }
        Ok([first, second])
    }

    /// Applies the compression function to the message and the [initial state](IV), without any padding: a hash function
    /// of messages of exactly one block.
    ///
    /// # Errors
    /// If the message does not have 64 bytes, or a value is required but absent.
    pub fn compress(&self, cs: &Cs) -> Result<Digest, SynthesisError> {
        let words = self.words();
        match <&[Word; 16]>::try_from(&words[..]) {
            Ok(block) if self.bits.len() == 512 => compress(cs, &IV.map(Word::constant), block),
            _ => Err(SynthesisError::Unsatisfiable),
        }
    }

    /// Computes the SHA-256 digest, with the standard padding.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn sha256(self, cs: &Cs) -> Result<Digest, SynthesisError> {
        let words = self.padded();
        let mut state = IV.map(Word::constant);
        for chunk in words.chunks_exact(16) {
            let block: &[Word; 16] = chunk.try_into().map_err(|_| SynthesisError::Unsatisfiable)?;
            state = compress(cs, &state, block)?;
        }
        Ok(state)
    }
}

/// The two halves of a digest as field elements below 2^128, the more significant half first.
pub fn digest_halves(digest: &[u8; DIGEST]) -> [Fr; 2] {
    let half =
        |bytes: &[u8]| Fr::from(bytes.iter().fold(0u128, |acc, b| acc << 8 | u128::from(*b)));
    [half(&digest[..16]), half(&digest[16..])]
}

/// Words as a number, the first one the most significant: half a digest, if there are four of them. It is exact for up to
/// seven words.
pub fn half(words: &[Word]) -> LinearCombination<Fr> {
    let mut lc = Vec::with_capacity(32 * words.len() + 2);
    let mut factor = Fr::ONE;
    for word in words.iter().rev() {
        add_word(&mut lc, &word.bits, factor);
        factor *= Fr::from(1u64 << 32);
    }
    LinearCombination(lc)
}

/// Constrains a shared wire to equal one half of a digest: one row.
///
/// # Errors
/// If there are not four words: eight of them may be more than r, so that two digests would have one wire.
pub fn enforce_half(cs: &Cs, words: &[Word], wire: Variable) -> Result<(), SynthesisError> {
    if words.len() != 4 {
        return Err(SynthesisError::Unsatisfiable);
    }
    let _span = tracing::info_span!(target: "gr1cs", "enforce_half").entered();
    let left = || {
        let mut lc = half(words);
        lc.0.push((-Fr::ONE, wire));
        lc
    };
    cs.enforce_r1cs_constraint(left, || Variable::One.into(), LinearCombination::zero)
}

/// Decomposes a digest whose halves are two shared wires into words: 256 boolean rows and two rows
/// for the halves.
///
/// # Errors
/// If a value is required but absent.
pub fn digest_from_wires(
    cs: &Cs,
    wires: [Variable; 2],
    value: Option<[u8; DIGEST]>,
) -> Result<Digest, SynthesisError> {
    let mut digest = [Word::constant(0); 8];
    for (i, word) in digest.iter_mut().enumerate() {
        let value =
            value.map(|d| u32::from_be_bytes([d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]]));
        // Bits of the prover's choice; the rows for the halves leave one choice, since a half is below
        // 2^128.
        *word = Word::witness(cs, value)?;
    }
    enforce_half(cs, &digest[..4], wires[0])?;
    enforce_half(cs, &digest[4..], wires[1])?;
    Ok(digest)
}

#[cfg(test)]
mod tests;
