//! Keccak-256 and SHA3-256 as gadgets, by look-ups and by bits.
//!
//! | rows | by look-ups ([`LookUps`]) | by bits ([`Bits`]) |
//! |---|---|---|
//! | permutation | 13,534 | 145,920 |
//! | permutation of words of 32 bits | 14,081 | |
//! | tables, once per layout | 249,328 | none |
//!
//! By look-ups, a lane is one number in base 7 whose digits are its bits. Sums of lanes are then linear,
//! and have digits below 7; each is split by one relation into what the permutation continues with and
//! what it drops, both in pieces of up to 16 digits that are looked up in tables. The relations are
//! unique digit by digit in base 7, not in base 6. Rotations are cuts between pieces.

mod bits;
mod look_ups;
mod relations;

pub use bits::Bits;
pub use look_ups::{LookUps, State, Tables, bits_of_number};
pub use relations::Pieces;

use crate::bits::Bit;
use crate::message::Message;
use ark_relations::gr1cs::SynthesisError;

/// The number of bits of a lane.
const LANE: usize = 64;

/// The number of bytes that a permutation absorbs, for digests of 32 bytes.
const RATE: usize = 136;

/// The number of lanes of a digest.
const DIGEST_LANES: usize = 4;

/// The number of rounds of the permutation.
const ROUNDS: usize = 24;

/// The rotation of lane (x, y), at `x + 5 y` (FIPS 202, section 3.2.2).
const ROTATIONS: [usize; 25] =
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];

/// The hash function: the two differ in the padding only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Keccak-256, as in Ethereum.
    Keccak,
    /// SHA3-256 (FIPS 202).
    Sha3,
}

/// The constant of each round (FIPS 202, section 3.2.5).
fn round_constants() -> [u64; ROUNDS] {
    let mut register = 1u32;
    std::array::from_fn(|_| {
        let mut constant = 0;
        for j in 0..7 {
            constant |= u64::from(register & 1) << ((1 << j) - 1);
            // x^8 + x^6 + x^5 + x^4 + 1, as the standard's rc(t).
            register = ((register << 1) ^ ((register >> 7) * 0x171)) & 0xff;
        }
        constant
    })
}

/// The place to which pi moves lane `x + 5 y`, after rho (FIPS 202, section 3.2.3).
fn moved(lane: usize) -> usize {
    let (x, y) = (lane % 5, lane / 5);
    y + 5 * ((2 * x + 3 * y) % 5)
}

/// The three lanes that chi computes a lane from: a, b and c of `a xor (not b and c)`.
fn neighbors(lane: usize) -> [usize; 3] {
    let (x, row) = (lane % 5, lane / 5 * 5);
    [lane, row + (x + 1) % 5, row + (x + 2) % 5]
}

/// A bit with its value, if there is one.
type ValuedBit = (Option<bool>, Bit);

/// The permutation, in one of the two ways.
trait Permutation {
    type Lane;

    /// A lane of constant zeros.
    fn zero(&self) -> Self::Lane;

    /// The exclusive or of a lane and 64 bits, the least significant one first.
    fn absorb(&self, lane: &Self::Lane, bits: &[ValuedBit]) -> Result<Self::Lane, SynthesisError>;

    /// Keccak-f\[1600\]. Of the result, [`bits`](Self::bits) has the bits of the first `as_bits` lanes.
    fn permute(
        &self,
        state: Vec<Self::Lane>,
        as_bits: usize,
    ) -> Result<Vec<Self::Lane>, SynthesisError>;

    /// The bits of a lane, the least significant one first.
    fn bits(&self, lane: &Self::Lane) -> Result<Vec<ValuedBit>, SynthesisError>;
}

/// The sponge: absorbs the padded message, and returns a digest of 32 bytes.
fn hash<P: Permutation>(
    permutation: &P,
    message: Message,
    padding: Padding,
) -> Result<Message, SynthesisError> {
    let _span = tracing::info_span!(target: "gr1cs", "keccak").entered();
    let mut bits = pad(message, padding).bits;
    // The bytes of messages have their most significant bit first.
    bits.chunks_exact_mut(8).for_each(<[ValuedBit]>::reverse);
    let mut state: Vec<_> = (0..25).map(|_| permutation.zero()).collect();
    let blocks = bits.len() / (8 * RATE);
    for (number, block) in bits.chunks_exact(8 * RATE).enumerate() {
        for (lane, bits) in state.iter_mut().zip(block.chunks_exact(LANE)) {
            *lane = permutation.absorb(lane, bits)?;
        }
        // Only the digest is needed in bits, and a bit costs a row where a piece of 16 costs one.
        let as_bits = if number + 1 == blocks { DIGEST_LANES } else { 0 };
        state = permutation.permute(state, as_bits)?;
    }
    let mut bits = Vec::with_capacity(DIGEST_LANES * LANE);
    for lane in &state[..DIGEST_LANES] {
        bits.extend(permutation.bits(lane)?);
    }
    bits.chunks_exact_mut(8).for_each(<[ValuedBit]>::reverse);
    Ok(Message { bits })
}

fn pad(message: Message, padding: Padding) -> Message {
    let first = match padding {
        Padding::Keccak => 0x01,
        Padding::Sha3 => 0x06,
    };
    let mut tail = vec![0; RATE - message.len() % RATE];
    // One byte may be both the first and the last of the padding.
    tail[0] |= first;
    if let Some(last) = tail.last_mut() {
        *last |= 0x80;
    }
    message.constant(&tail)
}

#[cfg(test)]
mod tests;
