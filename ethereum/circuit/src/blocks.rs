//! Blocks of 136 bytes as Keccak-256 absorbs them: their bytes, the end of a string in them, and their permutations.

use crate::forms::{Synthesized, Var, bit, constant, digits, sum, total, witness, zero_if};
use ark_ff::{One, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::FieldVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{Bit, Fr, Subcircuit};
use hekaton_standard::Message;
use hekaton_standard::keccak::{LookUps, Tables, bits_of_number};
use serde::{Deserialize, Serialize};

/// The number of bytes of a block.
pub(crate) const BLOCK: usize = 136;

/// The number of lanes of a state.
pub(crate) const LANES: usize = 25;

/// A block as its prover has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockValues {
    /// The bytes, padding included.
    pub(crate) bytes: Vec<u8>,
    /// The number of bytes of the string in the block, if it is the last one.
    pub(crate) end: Option<usize>,
}

impl BlockValues {
    /// Returns the blocks of a string, padded.
    pub(crate) fn of(string: &[u8]) -> Vec<Self> {
        let mut padded = string.to_vec();
        // The padding of Keccak as it was submitted, which Ethereum uses; SHA-3 in FIPS 202 begins
        // with 06. If one byte is left, it is both the first and the last one: 81.
        padded.push(1);
        padded.resize(padded.len().next_multiple_of(BLOCK), 0);
        if let Some(last) = padded.last_mut() {
            *last |= 0x80;
        }
        let (last, end) = (string.len() / BLOCK, string.len() % BLOCK);
        let blocks = padded.chunks_exact(BLOCK).enumerate();
        blocks
            .map(|(at, bytes)| Self { bytes: bytes.to_vec(), end: (at == last).then_some(end) })
            .collect()
    }

    /// Returns the number of bytes of the string in the block.
    pub(crate) fn len(&self) -> usize {
        self.end.unwrap_or(BLOCK)
    }

    /// Returns the bytes of the string, followed by zeros.
    pub(crate) fn content(&self) -> Vec<Fr> {
        let mut content: Vec<Fr> = self.bytes.iter().map(|byte| Fr::from(*byte)).collect();
        if let Some(end) = self.end {
            content[end] -= Fr::one();
            content[BLOCK - 1] -= Fr::from(128u64);
        }
        content
    }
}

/// The handling of permutations: proven, or trusted in tests that are not about hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashes {
    Proven,
    #[cfg(test)]
    Trusted,
}

/// Data that the gadgets of a subcircuit share.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) subcircuit: &'a Subcircuit,
    pub(crate) tables: &'a Tables,
    pub(crate) hashes: Hashes,
}

/// A block in the constraints.
pub(crate) struct Block {
    /// The bits of all bytes, most significant first.
    message: Message,
    /// The bytes, padding included.
    pub(crate) bytes: Vec<Var>,
    /// For each byte, 1 if the string ends before it.
    pub(crate) ends: Vec<Var>,
    /// A bit that is 1 if this is the last block of its string.
    pub(crate) is_last: Var,
    /// The number of bytes of the string in its last block; zero in others.
    pub(crate) end: Var,
    /// The bytes of the string, followed by zeros.
    pub(crate) content: Vec<Var>,
    /// The lanes of the state after the block.
    pub(crate) lanes: Vec<Var>,
}

/// The end of a string in a block.
struct Padding {
    /// For each byte, 1 if the string ends before it.
    ends: Vec<Var>,
    is_last: Var,
    /// The bytes of the string, followed by zeros.
    content: Vec<Var>,
}

impl Block {
    /// A bit of a byte; 7 is the most significant one.
    pub(crate) fn bit(&self, context: Context<'_>, byte: usize, bit: usize) -> Synthesized<Var> {
        self.message.bit(&context.subcircuit.cs(), 8 * byte + 7 - bit)
    }
}

impl Context<'_> {
    /// A block that a bit enables. Constrains its bits and bytes, the end of the string in it, the padding behind that end, and the
    /// permutation of the state before the block, or of zeros (spec: witness#blocks).
    pub(crate) fn block(
        self,
        values: Option<&BlockValues>,
        active: &Bit,
        before: Option<&[Var]>,
    ) -> Synthesized<Block> {
        let (subcircuit, cs) = (self.subcircuit, self.subcircuit.cs());
        let given = values.map(|values| values.bytes.as_slice());
        let message = Message::new().committed(subcircuit, BLOCK, given)?;
        let mut bytes = Vec::with_capacity(BLOCK);
        for at in 0..BLOCK {
            let byte = witness(&cs, given.map(|given| Fr::from(given[at])))?;
            let bits: Vec<Var> =
                (0..8).map(|bit| message.bit(&cs, 8 * at + 7 - bit)).collect::<Synthesized<_>>()?;
            digits(&cs, 1, &bits)?.mul_equals(&FieldVar::one(), &byte)?;
            bytes.push(byte);
        }
        let Padding { ends, is_last, content } = self.padding(values, &bytes)?;
        let end = sum(&cs, (0..).map(|at: u64| Fr::from(at)).zip(&ends))?;
        let lanes = match self.hashes {
            Hashes::Proven => self.permute(&message, active, before)?,
            #[cfg(test)]
            Hashes::Trusted => trusted::permute(&cs, &bytes, active, before)?,
        };
        Ok(Block { message, bytes, ends, is_last, end, content, lanes })
    }

    /// Finds where the string ends, and checks that only padding is behind it.
    fn padding(self, values: Option<&BlockValues>, bytes: &[Var]) -> Synthesized<Padding> {
        let cs = self.subcircuit.cs();
        // From the end of the string on, `behind` is 1, and where it rises, the padding begins.
        let (mut ends, mut behind) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
        let mut before_it = constant(Fr::zero());
        for at in 0..BLOCK {
            let is_behind = values.map(|values| values.end.is_some_and(|end| end <= at));
            let next = witness(&cs, is_behind.map(Fr::from))?;
            // Each increase is constrained to a bit, so `behind` cannot fall, and this one row makes both of them bits.
            let end = &next - &before_it;
            end.mul_equals(&(constant(Fr::one()) - &end), &constant(Fr::zero()))?;
            ends.push(end);
            behind.push(next.clone());
            before_it = next;
        }
        let is_last = before_it;
        let mut content = Vec::with_capacity(BLOCK);
        for at in 0..BLOCK {
            // Keccak's padding is a byte 01, zeros, and 80 added to the last byte of the block.
            let mut terms = vec![(Fr::one(), &bytes[at]), (-Fr::one(), &ends[at])];
            if at == BLOCK - 1 {
                terms.push((-Fr::from(128u64), &is_last));
            }
            let byte = sum(&cs, terms)?;
            zero_if(&behind[at], &byte)?;
            content.push(byte);
        }
        Ok(Padding { ends, is_last, content })
    }

    /// The lanes after a block.
    fn permute(
        self,
        message: &Message,
        active: &Bit,
        before: Option<&[Var]>,
    ) -> Synthesized<Vec<Var>> {
        let look_ups = LookUps::new(self.subcircuit, self.tables)?.enabled_by(active);
        let state = before.map(|lanes| {
            let lanes = lanes.try_into().map_err(|_| SynthesisError::Unsatisfiable)?;
            look_ups.state(lanes)
        });
        let after = look_ups.absorb_block(state.transpose()?.as_ref(), message.clone())?;
        look_ups.lanes(&after)
    }

    /// Returns the digest of a string, which is that after its last block, as two numbers of 128 bits, little-endian. Zero if no block is
    /// the last one.
    pub(crate) fn digest(self, blocks: &[Block]) -> Synthesized<[Var; 2]> {
        let (subcircuit, cs) = (self.subcircuit, self.subcircuit.cs());
        let mut words = Vec::with_capacity(4);
        for lane in 0..4 {
            let products: Vec<Var> =
                blocks.iter().map(|block| &block.is_last * &block.lanes[lane]).collect();
            let number = total(&cs, &products)?;
            // A number in base 7 whose digits are bits. 7^64 is below r, so the sum below fixes them.
            let value = number.value().ok().map(bits_of);
            let bit = |at: usize| {
                let value = value.as_ref().map(|bits| bits[at]);
                let bit = subcircuit.bit(|| value.ok_or(SynthesisError::AssignmentMissing))?;
                Ok(bit.variable().clone())
            };
            let bits: Vec<Var> = (0..64).map(bit).collect::<Synthesized<_>>()?;
            let sevens =
                std::iter::successors(Some(Fr::one()), |power| Some(*power * Fr::from(7u64)));
            sum(&cs, sevens.zip(&bits))?.mul_equals(&FieldVar::one(), &number)?;
            words.push(digits(&cs, 1, &bits)?);
        }
        let half =
            |low: &Var, high: &Var| sum(&cs, [(Fr::one(), low), (Fr::from(1u128 << 64), high)]);
        Ok([half(&words[0], &words[1])?, half(&words[2], &words[3])?])
    }

    /// Returns the blocks of a string of at most `most` blocks, of which each but the last is full; blocks behind the last are disabled.
    pub(crate) fn string(
        self,
        values: Option<&[BlockValues]>,
        enable: &Bit,
        most: usize,
    ) -> Synthesized<Vec<Block>> {
        let (subcircuit, cs) = (self.subcircuit, self.subcircuit.cs());
        let nothing = BlockValues { bytes: vec![0; BLOCK], end: None };
        let mut blocks: Vec<Block> = Vec::with_capacity(most);
        for at in 0..most {
            let own = values.map(|values| values.get(at).unwrap_or(&nothing));
            let Some(last) = blocks.last() else {
                // The first block is absorbed into zeros: with a state of its choice, a prover could reach any digest.
                blocks.push(self.block(own, enable, None)?);
                continue;
            };
            let is_active = values.map(|values| at < values.len());
            let active = subcircuit.bit(|| is_active.ok_or(SynthesisError::AssignmentMissing))?;
            let ended = total(&cs, blocks.iter().map(|block| &block.is_last))?;
            (enable.variable() - ended).mul_equals(&FieldVar::one(), active.variable())?;
            let before: Vec<Var> = last
                .lanes
                .iter()
                .map(|lane| marked(self, active.variable(), lane))
                .collect::<Synthesized<_>>()?;
            let block = self.block(own, &active, Some(&before))?;
            blocks.push(block);
        }
        // The string ends once, if it exists.
        let ended = total(&cs, blocks.iter().map(|block| &block.is_last))?;
        ended.mul_equals(&FieldVar::one(), enable.variable())?;
        Ok(blocks)
    }

    /// Returns the number of bytes of a string: a form.
    pub(crate) fn length(self, blocks: &[Block]) -> Synthesized<Var> {
        let mut terms: Vec<(Fr, &Var)> = Vec::new();
        for (at, block) in (0u64..).zip(blocks) {
            let start = Fr::from(at * BLOCK as u64);
            terms.extend([(start, &block.is_last), (Fr::one(), &block.end)]);
        }
        sum(&self.subcircuit.cs(), terms)
    }

    /// A bit that is not part of an entry.
    pub(crate) fn bit(self, value: Option<bool>) -> Synthesized<Var> {
        bit(&self.subcircuit.cs(), value)
    }
}

/// A product that is marked, so that keys may contain it: one row.
pub(crate) fn marked(context: Context<'_>, gate: &Var, form: &Var) -> Synthesized<Var> {
    let value = gate.value().ok().zip(form.value().ok()).map(|(gate, form)| gate * form);
    let marked = context.subcircuit.commit(|| value.ok_or(SynthesisError::AssignmentMissing))?;
    gate.mul_equals(form, &marked)?;
    Ok(marked)
}

/// The digits of a number in base 7, as bits.
fn bits_of(number: Fr) -> Vec<bool> {
    let lane = bits_of_number(number);
    (0..64).map(|at| lane >> at & 1 == 1).collect()
}

/// Computes permutations instead of proving them.
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "bytes")]
mod trusted {
    use super::*;
    use crate::circuit::Sponge;
    use crate::forms::Cs;
    use ark_ff::PrimeField;

    pub(super) fn permute(
        cs: &Cs,
        bytes: &[Var],
        active: &Bit,
        before: Option<&[Var]>,
    ) -> Synthesized<Vec<Var>> {
        let bytes = bytes.iter().map(|byte| Some(byte.value().ok()?.into_bigint().0[0] as u8));
        let (bytes, is_active) = (bytes.collect::<Option<Vec<u8>>>(), active.variable().value());
        let zeros = vec![constant(Fr::zero()); LANES];
        let before = before.unwrap_or(&zeros);
        // The lanes may be slots, each of which must occur in some row.
        before.iter().for_each(|lane| drop(lane * lane));
        let lanes = before.iter().map(|lane| Some(bits_of_number(lane.value().ok()?)));
        let lanes = bytes.zip(lanes.collect::<Option<Vec<u64>>>()).map(|(bytes, lanes)| {
            let mut sponge = Sponge { lanes: lanes.try_into().unwrap(), continues: true };
            let block = BlockValues { bytes, end: None };
            let is_active = is_active.unwrap().is_one();
            sponge.absorb(if is_active { std::slice::from_ref(&block) } else { &[] });
            // Also of the last block of a string.
            sponge.continues |= is_active;
            sponge.values().skip(1).collect::<Vec<Fr>>()
        });
        (0..LANES).map(|lane| witness(cs, lanes.as_ref().map(|lanes| lanes[lane]))).collect()
    }
}
