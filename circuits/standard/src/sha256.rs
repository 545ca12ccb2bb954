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
        let start = (len <= 31).then(|| self.bits.len().checked_sub(8 * len)).flatten();
        let start = start.ok_or(SynthesisError::Unsatisfiable)?;
        let bits: Vec<Bit> = self.bits[start..].iter().rev().map(|(_, bit)| *bit).collect();
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

    /// The words of the message with the standard padding.
    fn padded(self) -> Vec<Word> {
        let bits = self.bits.len() as u64;
        let mut message = self.constant(&[0x80]);
        while message.bits.len() % 512 != 448 {
            message = message.constant(&[0]);
        }
        message = message.constant(&bits.to_be_bytes());
        message
            .bits
            .chunks_exact(32)
            .map(|chunk| Word {
                value: chunk.iter().try_fold(0u32, |w, (bit, _)| Some(w << 1 | u32::from((*bit)?))),
                bits: std::array::from_fn(|i| chunk[31 - i].1),
            })
            .collect()
    }

    /// Computes the SHA-256 digest, with the standard padding.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn sha256(self, cs: &Cs) -> Result<Digest, SynthesisError> {
        let words = self.padded();
        let mut state = IV.map(Word::constant);
        for block in words.chunks_exact(16) {
            let block: &[Word; 16] = block.try_into().map_err(|_| SynthesisError::Unsatisfiable)?;
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
        let mut lc = Vec::with_capacity(130);
        let mut factor = Fr::ONE;
        for word in words.iter().rev() {
            add_word(&mut lc, &word.bits, factor);
            factor *= Fr::from(1u64 << 32);
        }
        lc.push((-Fr::ONE, wire));
        LinearCombination(lc)
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
        *word = Word::witness(cs, value)?;
    }
    enforce_half(cs, &digest[..4], wires[0])?;
    enforce_half(cs, &digest[4..], wires[1])?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_r1cs_std::fields::fp::FpVar;
    use ark_relations::gr1cs::ConstraintSystem;
    use hekaton_circuit::{Closures, check, count};
    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};
    use std::sync::{Arc, Mutex};

    fn value(digest: &Digest) -> Vec<u8> {
        digest.iter().flat_map(|w| w.value.unwrap().to_be_bytes()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]

        #[test]
        fn agrees_with_sha256_and_is_satisfied(
            bytes in prop::collection::vec(any::<u8>(), 0..140),
            split in 0usize..140,
        ) {
            let split = split.min(bytes.len());
            let cs = ConstraintSystem::<Fr>::new_ref();
            let (constant, secret) = bytes.split_at(split);
            let message = Message::new().constant(constant);
            let message = message.witness(&cs, secret.len(), Some(secret)).unwrap();
            let digest = message.sha256(&cs).unwrap();
            prop_assert_eq!(value(&digest), Sha256::digest(&bytes).to_vec());
            cs.finalize();
            prop_assert!(cs.is_satisfied().unwrap());
        }
    }

    /// Every variable is constrained: flipping any witness bit violates a constraint.
    #[test]
    fn no_variable_is_free() {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let digest = Message::new().witness(&cs, 3, Some(b"abc")).unwrap().sha256(&cs).unwrap();
        assert_eq!(
            hex::encode(value(&digest)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        cs.finalize();
        let matrices = &cs.to_matrices().unwrap()[ark_relations::gr1cs::R1CS_PREDICATE_LABEL];
        let z = [cs.instance_assignment().unwrap(), cs.witness_assignment().unwrap()].concat();
        // rows by variable
        let mut rows = vec![Vec::new(); z.len()];
        for m in matrices {
            for (i, row) in m.iter().enumerate() {
                row.iter().for_each(|(_, v)| rows[*v].push(i));
            }
        }
        let dot = |row: &[(Fr, usize)], z: &[Fr]| row.iter().map(|(k, v)| *k * z[*v]).sum::<Fr>();
        let mut z2 = z.clone();
        for v in 1..z.len() {
            // a flipped bit is the most plausible lie
            z2[v] = Fr::ONE - z[v];
            let broken = rows[v].iter().any(|i| {
                dot(&matrices[0][*i], &z2) * dot(&matrices[1][*i], &z2)
                    != dot(&matrices[2][*i], &z2)
            });
            assert!(broken, "variable {v} can be flipped");
            z2[v] = z[v];
        }
    }

    #[test]
    fn constraint_counts_are_pinned() {
        let count = |constant: usize, witness: usize| {
            let cs = ConstraintSystem::<Fr>::new_ref();
            let bytes = vec![7u8; witness];
            let message = Message::new()
                .witness(&cs, witness, Some(&bytes))
                .unwrap()
                .constant(&vec![1; constant]);
            message.sha256(&cs).unwrap();
            cs.num_constraints()
        };
        let counts = [count(0, 55), count(1, 64), count(0, 119)];
        assert_eq!(counts, [26_253, 45_792, 53_181]);
        assert_eq!(count(40, 0), 0);
    }

    /// Hashes a message, with the halves of its digest as public values.
    fn circuit(message: &[u8], longest: usize, claimed: [u8; 32]) -> Closures<Vec<u8>> {
        let (bytes, len) = (message.to_vec(), message.len());
        let tables = Arc::new(Mutex::new(None));
        let of_layout = Arc::clone(&tables);
        Closures::new(
            move |layout| {
                let tables = Tables::new(longest, |name, table| layout.table(name, table));
                *of_layout.lock().unwrap() = Some(tables);
                let wires = [0, 1].map(|i| layout.public_output("digest", i));
                let kind = layout.subcircuit_type("hash", 2);
                let instance = layout.instance(kind);
                (0..2).for_each(|slot| layout.write(instance, slot, wires[slot]));
                Ok(wires.to_vec())
            },
            move |wires, values| {
                let halves = digest_halves(&claimed);
                wires.iter().zip(halves).for_each(|(wire, half)| values.set(*wire, half));
                Ok(())
            },
            move |_| Ok(bytes.clone()),
            move |subcircuit, bytes| {
                let tables = tables.lock().unwrap().clone().unwrap();
                let bytes = bytes.map(Vec::as_slice);
                let message = Message::new().committed(subcircuit, len, bytes)?;
                let digest = LookUps::new(subcircuit, &tables)?.hash(message)?;
                for (slot, half) in digest.chunks_exact(4).enumerate() {
                    let FpVar::Var(wire) = subcircuit.slot(slot)? else { unreachable!() };
                    enforce_half(&subcircuit.cs(), half, wire.variable)?;
                }
                Ok(())
            },
        )
    }

    #[test]
    fn look_ups_agree_with_sha256() {
        for (len, longest) in [
            (0, Tables::SMALL),
            (1, Tables::SMALL),
            (55, Tables::LARGE),
            (56, Tables::SMALL),
            (63, Tables::SMALL),
            (64, 7),
            (65, Tables::SMALL),
            (119, Tables::SMALL),
            (120, Tables::SMALL),
            (200, Tables::SMALL),
            (70, 5),
            (3, 1),
        ] {
            let message: Vec<u8> = (0..len).map(|i| (i * i + 5) as u8).collect();
            let mut digest: [u8; 32] = Sha256::digest(&message).into();
            let report = check(&circuit(&message, longest, digest), &(), |_, _| {}).unwrap();
            assert_eq!((report.violations, report.unbalanced), (vec![], vec![]), "{len} bytes");
            digest[7] ^= 1;
            let report = check(&circuit(&message, longest, digest), &(), |_, _| {}).unwrap();
            assert_eq!(report.violated, 1);
        }
    }

    #[test]
    fn rows_of_look_ups_are_pinned() {
        let rows = |len: usize, longest: usize| {
            let types = count(&circuit(&vec![1; len], longest, [0; 32])).unwrap();
            let rows_of = |is_own: bool| {
                let own = types.iter().filter(|kind| (kind.name == "hash") == is_own);
                own.map(|kind| kind.constraints * kind.instances).sum::<usize>()
            };
            [rows_of(true), rows_of(false)]
        };
        let [one, two] = [55, 119].map(|len| rows(len, Tables::LARGE));
        assert_eq!([one[0], two[0] - one[0]], [5_077, 4_952]);
        assert_eq!(one[1], 159_524);
        assert_eq!(rows(55, Tables::SMALL), [8_181, 784]);
    }

    /// All lengths around the ends of blocks, by bits.
    #[test]
    fn padding_agrees_with_sha256() {
        for len in [0, 1, 55, 56, 63, 64, 65, 119, 120, 128] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 3 + 1) as u8).collect();
            let cs = ConstraintSystem::<Fr>::new_ref();
            let message = Message::new().witness(&cs, len, Some(&bytes)).unwrap();
            assert_eq!(value(&message.sha256(&cs).unwrap()), Sha256::digest(&bytes).to_vec());
            cs.finalize();
            assert!(cs.is_satisfied().unwrap(), "{len} bytes");
        }
    }

    /// Numbers that may be r or more have no row: a wire would be that of two digests.
    #[test]
    fn numbers_of_more_bits_than_r_are_refused() {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let message = Message::new().witness(&cs, 32, Some(&[1; 32])).unwrap();
        assert!(message.enforce_number(&cs, 31, [Variable::One, Variable::Zero]).is_ok());
        assert!(message.enforce_number(&cs, 32, [Variable::One, Variable::Zero]).is_err());
        let digest = message.sha256(&cs).unwrap();
        assert!(enforce_half(&cs, &digest[..4], Variable::One).is_ok());
        for words in [3, 5, 8] {
            assert!(enforce_half(&cs, &digest[..words], Variable::One).is_err());
        }
    }

    /// Spread words: a sum of three has one split into two spread words, also modulo a prime that is larger
    /// than all sums. Sums of dense words have one carry. All cases of words of three bits.
    #[test]
    fn sums_are_split_in_one_way() {
        let (len, prime) = (3u32, 257i64);
        let words: Vec<i64> = (0..1u32 << len).map(|bits| look_ups::spread(bits) as i64).collect();
        let (xor, majority) =
            (|[a, b, c]: [u32; 3]| a ^ b ^ c, |[a, b, c]: [u32; 3]| (a & b) ^ (a & c) ^ (b & c));
        for bits in 0..1u32 << (3 * len) {
            let three = [0, 1, 2].map(|i| bits >> (i * len) & ((1 << len) - 1));
            let sum: i64 = three.iter().map(|word| words[*word as usize]).sum();
            let mut found = Vec::new();
            for p in 0..words.len() {
                for q in 0..words.len() {
                    if (sum - words[p] - 2 * words[q]) % prime == 0 {
                        found.push((p as u32, q as u32));
                    }
                }
            }
            assert_eq!(found, [(xor(three), majority(three))]);
        }
        // carry = (total - sum) / 2^len mod p
        let inverse = (1..prime).find(|x| (x << len) % prime == 1).unwrap();
        let carries = 1 << look_ups::CARRY;
        let sums = |total: i64, len_of_sum: u32| -> Vec<i64> {
            let is_sum = |sum: &i64| ((total - sum) * inverse).rem_euclid(prime) < carries;
            (0..1 << len_of_sum).filter(is_sum).collect()
        };
        for total in 0..=7 * ((1i64 << len) - 1) {
            assert_eq!(sums(total, len), [total % (1 << len)]);
        }
        // Control: a sum that may have one bit more.
        assert_eq!(sums(12, len + 1), [4, 12]);
    }
}
