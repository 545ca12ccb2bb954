//! Mutations as programs: bytes are read as instructions that change a good file. Whatever a fuzzer or a property test
//! comes up with is a program, so both search the same space.

use hekaton_arith::{G1Point, G2Point, Group, Gt};
use std::ops::Range;

/// Reads a program.
#[derive(Debug)]
pub struct Program<'a> {
    bytes: &'a [u8],
}

impl<'a> Program<'a> {
    /// A program of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// The next two bytes as an index below `n`, which is not zero.
    pub fn index(&mut self, n: usize) -> Option<usize> {
        let value = usize::from(self.byte()?) << 8 | usize::from(self.byte()?);
        // small numbers reach every place of a small file, large ones the rest
        Some(value * n.div_ceil(1 << 16) % n)
    }

    /// Changes that make sense for any file.
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
            // a part is copied over another, inserted or taken out
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

    /// Changes of encoded group elements (PROTOCOL, tests 31 to 47): an element moved by the generator, replaced by
    /// another, by a neutral or degenerate one, or by an encoding that is not canonical.
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
            (0, 288) => moved_gt(&code, how & 8 == 0),
            // infinity, and what it stands for in GT
            (1, 288) => Some(with_first(288, 0x80)),
            (1, len) => Some(with_first(len, 0xc0)),
            (2, len) => Some(vec![0; len]),
            (3, len) => Some(vec![0xff; len]),
            // the flags
            (4, _) => Some(flipped(&code, self.byte()? & 0xe0)),
            // another field of the same length
            (5, len) => {
                let other = fields.get(self.index(fields.len())?)?.clone();
                (other.len() == len).then(|| file.get(other).map(<[u8]>::to_vec)).flatten()
            }
            // one bit of it
            (6, len) => {
                let (at, bit) = (self.index(len)?, self.byte()? % 8);
                let mut code = code;
                code[at] ^= 1 << bit;
                Some(code)
            }
            // a coordinate plus q: the same element, not canonical
            (_, len) => {
                let at = 48 * self.index(len / 48)?;
                let mut code = code;
                add_modulus(&mut code[at..at + 48]).then_some(code)
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
    let element = Gt::decompress(code.try_into().ok()?).ok()?;
    let g = hekaton_arith::pairing(&G1Point::generator(), &G2Point::generator());
    Some(element.add(&if up { g } else { g.neg() }).compress().to_vec())
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

/// Adds q to a big-endian number under the three flag bits; `false` when it does not fit.
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
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    let fits = carry == 0 && bytes[0] & 0xe0 == 0;
    bytes[0] |= flags;
    fits
}
