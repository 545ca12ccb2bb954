//! Mutations as programs: bytes are read as instructions that change a valid file. Any bytes that a
//! fuzzer or a property test generates are a program, so both search the same space.

use hekaton_arith::{G1Point, G2Point, Group, Gt};
use std::ops::Range;

/// The reader of a program.
#[derive(Debug)]
pub struct Program<'a> {
    bytes: &'a [u8],
}

impl<'a> Program<'a> {
    /// A program that consists of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Reads the next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// Reads the next two bytes as an index below `n`, which is not zero.
    pub fn index(&mut self, n: usize) -> Option<usize> {
        let value = usize::from(self.byte()?) << 8 | usize::from(self.byte()?);
        // for up to 2^16 bytes every index can be reached, in larger files one in `n / 2^16`
        Some(value * n.div_ceil(1 << 16) % n)
    }

    /// Makes a change that makes sense for any file; `None` at the end of the program.
    pub fn mutate(&mut self, file: &mut Vec<u8>) -> Option<()> {
        let n = file.len().max(1);
        match self.byte()? % 8 {
            0 => {
                let (at, bit) = (self.index(n)?, self.byte()? % 8);
                *file.get_mut(at)? ^= 1 << bit;
            }
            1 => {
                let (at, value) = (self.index(n)?, self.byte()?);
                *file.get_mut(at)? = value;
            }
            2 => file.truncate(self.index(n)?),
            3 => {
                let (count, value) = (usize::from(self.byte()?), self.byte()?);
                file.extend(std::iter::repeat_n(value, count));
            }
            // a length or count becomes extreme
            4 => {
                let (at, all) = (self.index(n)?, self.byte()?);
                for byte in file.iter_mut().skip(at).take(1 + usize::from(all) % 8) {
                    *byte = if all % 2 == 0 { 0xff } else { 0 };
                }
            }
            // a part is copied over another, duplicated, or removed
            5 => {
                let (from, to, len) = (self.index(n)?, self.index(n)?, 1 + self.index(512)?);
                let part: Vec<u8> = file.iter().skip(from).take(len).copied().collect();
                file.iter_mut().skip(to).zip(part).for_each(|(a, b)| *a = b);
            }
            6 => {
                let (at, len) = (self.index(n)?, self.index(512)?);
                let part: Vec<u8> = file.iter().skip(at).take(len).copied().collect();
                file.splice(at..at, part);
            }
            _ => {
                let (at, len) = (self.index(n)?, self.index(512)?);
                let end = (at + len).min(file.len());
                drop(file.drain(at.min(end)..end));
            }
        }
        Some(())
    }

    /// Changes an encoded group element (adversarial tests 31, 45 and 46): moves it by the
    /// generator, or replaces it by another, by a neutral or degenerate one, or by an encoding that
    /// is not canonical.
    pub fn mutate_elements(&mut self, file: &mut Vec<u8>, fields: &[Range<usize>]) -> Option<()> {
        if fields.is_empty() || self.byte()? % 4 == 0 {
            return self.mutate(file);
        }
        let field = fields.get(self.index(fields.len())?)?.clone();
        let code = file.get(field.clone())?.to_vec();
        let how = self.byte()?;
        let new = match (how % 8, code.len()) {
            (0, 48) => moved::<G1Point>(&code, how & 8 == 0),
            (0, 96) => moved::<G2Point>(&code, how & 8 == 0),
            (0, 192 | 288) => moved_gt(&code, how & 8 == 0),
            // the identity: 1 in GT, infinity in the others
            (1, 192 | 288) => Some(with_first(code.len(), 0x80)),
            (1, len) => Some(with_first(len, 0xc0)),
            (2, len) => Some(vec![0; len]),
            (3, len) => Some(vec![0xff; len]),
            // the flag bits
            (4, _) => Some(flipped(&code, self.byte()? & 0xe0)),
            // another field of the same length
            (5, len) => {
                let other = fields.get(self.index(fields.len())?)?.clone();
                (other.len() == len).then(|| file.get(other).map(<[u8]>::to_vec)).flatten()
            }
            // one bit
            (6, len) => {
                let (at, bit) = (self.index(len)?, self.byte()? % 8);
                let mut other = code;
                other[at] ^= 1 << bit;
                Some(other)
            }
            // a coordinate plus q: the same element, in an encoding that is not canonical
            (_, len) => {
                let at = 48 * self.index(len / 48)?;
                let mut other = code;
                add_modulus(&mut other[at..at + 48]).then_some(other)
            }
        };
        if let Some(new) = new {
            file.get_mut(field)?.copy_from_slice(&new);
        }
        Some(())
    }
}

fn moved<G: Group>(code: &[u8], up: bool) -> Option<Vec<u8>> {
    let point = G::from_compressed(code).ok()?;
    let g = G::generator();
    Some(if up { point.add(&g) } else { point.sub(&g) }.to_compressed())
}

fn moved_gt(code: &[u8], up: bool) -> Option<Vec<u8>> {
    let g = hekaton_arith::pairing(&G1Point::generator(), &G2Point::generator());
    let moved = |element: Gt| element.add(&if up { g } else { g.neg() });
    // The form of proofs, or the longer one of keys.
    match <&[u8; Gt::COMPRESSED]>::try_from(code) {
        Ok(code) => Some(moved(Gt::decompress(code).ok()?).compress().to_vec()),
        Err(_) => {
            let element = Gt::from_t2_all(&[code.try_into().ok()?]).ok()?[0];
            Some(Gt::to_t2_all(&[moved(element)])[0].to_vec())
        }
    }
}

fn with_first(len: usize, first: u8) -> Vec<u8> {
    let mut out = vec![0; len];
    out[0] = first;
    out
}

fn flipped(code: &[u8], flags: u8) -> Vec<u8> {
    let mut out = code.to_vec();
    out[0] ^= flags;
    out
}

/// Adds the modulus q to a big-endian number below three flag bits; returns `false` if the sum does
/// not fit.
fn add_modulus(bytes: &mut [u8]) -> bool {
    const Q: [u64; 6] = [
        0x1a01_11ea_397f_e69a,
        0x4b1b_a7b6_434b_acd7,
        0x6477_4b84_f385_12bf,
        0x6730_d2a0_f6b0_f624,
        0x1eab_fffe_b153_ffff,
        0xb9fe_ffff_ffff_aaab,
    ];
    let q: Vec<u8> = Q.iter().flat_map(|limb| limb.to_be_bytes()).collect();
    let flags = bytes[0] & 0xe0;
    bytes[0] &= 0x1f;
    let mut carry = 0;
    for (byte, q) in bytes.iter_mut().zip(&q).rev() {
        let sum = u16::from(*byte) + u16::from(*q) + carry;
        let [low, high] = sum.to_le_bytes();
        (*byte, carry) = (low, u16::from(high));
    }
    let fits = carry == 0 && bytes[0] & 0xe0 == 0;
    bytes[0] |= flags;
    fits
}
