//! The permutation by look-ups: 13,534 rows.

use super::relations::{Alphabet, BASE, Pieces, cuts_of_iota};
use super::{LANE, Message, Padding, Permutation, ROTATIONS, ValuedBit};
use super::{hash, moved, neighbors, round_constants};
use crate::bits::{Bit, committed_bit, enforce_bit};
use ark_ff::{Field, One};
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{Fr, LookUp, Subcircuit, Table, TableId};
use std::collections::BTreeMap;

/// The tables of a layout that the gadget looks pieces up in: one for each length, because a piece that
/// is looked up among longer ones could hide a carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    pieces: Pieces,
    ids: BTreeMap<(Alphabet, usize), TableId>,
}

impl Tables {
    /// Adds the tables to a layout, with its method `table`
    /// ([`LayoutBuilder::table`](hekaton_circuit::LayoutBuilder::table) or
    /// [`Wires::table`](hekaton_circuit::parts::Wires::table)).
    pub fn new(pieces: Pieces, mut table: impl FnMut(&str, Table) -> TableId) -> Self {
        let mut add = |(alphabet, len): (Alphabet, usize)| {
            let keys = alphabet.numbers(len).into_iter().map(Fr::from);
            let name = format!("keccak_{}_{len}", alphabet.name());
            ((alphabet, len), table(&name, Table::keys(keys)))
        };
        Self { pieces, ids: pieces.kinds().into_iter().map(&mut add).collect() }
    }

    /// The number of rows of all tables.
    pub fn rows(pieces: Pieces) -> usize {
        pieces.kinds().into_iter().map(|(alphabet, len)| alphabet.numbers(len).len()).sum()
    }
}

/// The gadget by look-ups, in a subcircuit.
#[derive(Debug)]
pub struct LookUps<'a> {
    subcircuit: &'a Subcircuit,
    pieces: Pieces,
    tables: BTreeMap<(Alphabet, usize), LookUp<'a>>,
    /// The powers of the base, and their inverses.
    powers: [[Fr; LANE]; 2],
}

/// A lane: a number in base 7 whose digits are its bits, as a sum of pieces.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    value: Option<u64>,
    pieces: Vec<Piece>,
}

/// A piece of a lane: digits from `start`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: usize,
    digits: Digits,
}

#[derive(Clone, Copy, Debug)]
enum Digits {
    Bit(Bit),
    Several(Variable),
}

/// A sum of variables with factors.
type Terms = Vec<(Fr, Variable)>;

/// One of the two numbers that a sum is split into.
struct Part<'c> {
    factor: i64,
    alphabet: Alphabet,
    cuts: &'c [usize],
    /// The digits, if they have values.
    digits: Option<[u64; LANE]>,
}

impl<'a> LookUps<'a> {
    /// The gadget in a subcircuit. `tables` must be those of the subcircuit's own layout: with ids from
    /// another one, look-ups would go to other tables and prove nothing about the hash.
    ///
    /// # Errors
    /// If the layout has no tables with these ids.
    pub fn new(subcircuit: &'a Subcircuit, tables: &Tables) -> Result<Self, SynthesisError> {
        let pieces = tables.pieces;
        let tables = tables.ids.iter().map(|(kind, id)| Ok((*kind, subcircuit.table(*id)?)));
        let tables = tables.collect::<Result<_, SynthesisError>>()?;
        let base = Fr::from(BASE);
        let powers = [base, base.inverse().unwrap_or_default()].map(|base| {
            let mut next = Fr::one();
            std::array::from_fn(|_| {
                let power = next;
                next *= base;
                power
            })
        });
        Ok(Self { subcircuit, pieces, tables, powers })
    }

    /// The digest of a message: 32 bytes. All of its bits must be marked
    /// ([`Message::committed`]) or constant; setup refuses others.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn hash(&self, message: Message, padding: Padding) -> Result<Message, SynthesisError> {
        hash(self, message, padding)
    }

    /// Constrains a number to be a sum of digits of an alphabet, with one row: a look-up, or for a bit
    /// `b (1 - b) = 0`.
    fn contains(&self, kind: (Alphabet, usize), number: &FpVar<Fr>) -> Result<(), SynthesisError> {
        match (kind, number) {
            ((Alphabet::Binary, 1), FpVar::Var(bit)) => {
                enforce_bit(&self.subcircuit.cs(), || bit.variable.into())
            }
            _ => self.tables.get(&kind).ok_or(SynthesisError::Unsatisfiable)?.contains(number),
        }
    }

    /// Splits a sum into two numbers with the digits of their alphabets, of which the first one is
    /// returned in pieces. The last piece of the second one is what is left of the sum. A row for each
    /// piece.
    fn split(
        &self,
        mut sum: Terms,
        x: &Part<'_>,
        y: &Part<'_>,
    ) -> Result<Vec<Piece>, SynthesisError> {
        let mut pieces = Vec::new();
        for (part, is_last) in [(x, false), (y, true)] {
            let factor = Fr::from(part.factor);
            let mut cut = self.pieces.cut(part.alphabet, part.cuts);
            let last = if is_last { cut.pop() } else { None };
            for piece in cut {
                let start = piece.start;
                let kind = (part.alphabet, piece.len());
                let value = part.digits.map(|digits| number(&digits[piece]));
                let digits = if kind == (Alphabet::Binary, 1) {
                    let bit = committed_bit(self.subcircuit, value.map(|value| value == 1))?;
                    Digits::Bit(bit)
                } else {
                    let value = value.ok_or(SynthesisError::AssignmentMissing);
                    let marked = self.subcircuit.commit(|| Ok(Fr::from(value?)))?;
                    self.contains(kind, &marked)?;
                    let FpVar::Var(marked) = marked else {
                        return Err(SynthesisError::Unsatisfiable);
                    };
                    Digits::Several(marked.variable)
                };
                let piece = Piece { start, digits };
                piece.add_to(&mut sum, -factor * self.powers[0][start]);
                if !is_last {
                    pieces.push(piece);
                }
            }
            if let Some(piece) = last {
                let scale = factor.inverse().unwrap_or_default() * self.powers[1][piece.start];
                let value = part.digits.map(|digits| Fr::from(number(&digits[piece.clone()])));
                sum.iter_mut().for_each(|(factor, _)| *factor *= scale);
                let cs = self.subcircuit.cs();
                let rest = cs.new_lc(|| LinearCombination(std::mem::take(&mut sum)))?;
                let rest = FpVar::Var(AllocatedFp::new(value, rest, cs));
                self.contains((part.alphabet, piece.len()), &rest)?;
            }
        }
        Ok(pieces)
    }

    /// Splits a sum of up to three lanes into their exclusive or and the carries.
    fn xor(&self, lanes: &[(&Lane, usize)], cuts: &[usize]) -> Result<Lane, SynthesisError> {
        let mut sum = Vec::new();
        lanes.iter().for_each(|(lane, by)| self.add(&mut sum, lane, *by, Fr::one()));
        let values = lanes.iter().map(|(lane, by)| Some(rotate(lane.value?, *by)));
        let values: Option<Vec<u64>> = values.collect();
        let digits = values.map(|values| {
            std::array::from_fn(|i| values.iter().map(|value| value >> i & 1).sum::<u64>())
        });
        // A column has digits up to 5.
        let carries = if lanes.len() > 3 { Alphabet::Ternary } else { Alphabet::Binary };
        let binary = digits.map(|digits: [u64; LANE]| digits.map(|digit| digit & 1));
        let x = Part { factor: 1, alphabet: Alphabet::Binary, cuts, digits: binary };
        let dropped = digits.map(|digits| digits.map(|digit| digit >> 1));
        let y = Part { factor: 2, alphabet: carries, cuts: &[], digits: dropped };
        Ok(Lane { value: binary.map(bits_to_lane), pieces: self.split(sum, &x, &y)? })
    }

    /// Chi: `a xor (not b and c)`.
    fn chi(&self, [a, b, c]: [&Lane; 3], cuts: &[usize]) -> Result<Lane, SynthesisError> {
        let mut sum = Vec::new();
        let ones: Fr = self.powers[0].iter().sum();
        sum.push((Fr::from(3u64) * ones, Variable::One));
        for (lane, factor) in [(a, -Fr::from(2u64)), (b, Fr::one()), (c, -Fr::one())] {
            self.add(&mut sum, lane, 0, factor);
        }
        let values = a.value.zip(b.value).zip(c.value);
        let value = values.map(|((a, b), c)| a ^ (!b & c));
        let bit = |lane: u64, i: usize| lane >> i & 1;
        let binary = value.map(|value| std::array::from_fn(|i| bit(value, i)));
        let dropped = values.zip(value).map(|(((a, b), c), out)| {
            std::array::from_fn(|i| 3 + bit(b, i) + 2 * bit(out, i) - 2 * bit(a, i) - bit(c, i))
        });
        let x = Part { factor: -2, alphabet: Alphabet::Binary, cuts, digits: binary };
        let y = Part { factor: 1, alphabet: Alphabet::Chi, cuts: &[], digits: dropped };
        Ok(Lane { value, pieces: self.split(sum, &x, &y)? })
    }

    /// Adds a lane, rotated to the left, to a sum. It must have a cut where it wraps around.
    fn add(&self, sum: &mut Terms, lane: &Lane, by: usize, factor: Fr) {
        for piece in &lane.pieces {
            piece.add_to(sum, factor * self.powers[0][(piece.start + by) % LANE]);
        }
    }
}

impl Piece {
    fn add_to(&self, sum: &mut Terms, factor: Fr) {
        match self.digits {
            Digits::Bit(bit) => bit.add_to(sum, factor),
            Digits::Several(variable) => sum.push((factor, variable)),
        }
    }
}

impl Lane {
    fn rotated(mut self, by: usize) -> Self {
        for piece in &mut self.pieces {
            piece.start = (piece.start + by) % LANE;
        }
        Self { value: self.value.map(|value| rotate(value, by)), ..self }
    }

    /// Flips bits, which must be pieces of their own.
    fn flip(&mut self, bits: u64) {
        self.value = self.value.map(|value| value ^ bits);
        for piece in &mut self.pieces {
            if let Digits::Bit(bit) = &mut piece.digits
                && bits >> piece.start & 1 == 1
            {
                *bit = bit.negate();
            }
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "at most 64")]
fn rotate(value: u64, by: usize) -> u64 {
    value.rotate_left(by as u32)
}

/// The number of some digits: below 7^16.
fn number(digits: &[u64]) -> u64 {
    digits.iter().rev().fold(0, |number, digit| number * BASE + digit)
}

fn bits_to_lane(digits: [u64; LANE]) -> u64 {
    digits.iter().rev().fold(0, |lane, digit| lane << 1 | digit)
}

impl Permutation for LookUps<'_> {
    type Lane = Lane;

    fn zero(&self) -> Lane {
        Lane { value: Some(0), pieces: Vec::new() }
    }

    fn absorb(&self, lane: &Lane, bits: &[ValuedBit]) -> Result<Lane, SynthesisError> {
        let value = (bits.iter().rev())
            .try_fold(0u64, |lane, (bit, _)| Some(lane << 1 | u64::from((*bit)?)));
        let pieces =
            (0..).zip(bits).map(|(start, (_, bit))| Piece { start, digits: Digits::Bit(*bit) });
        let message = Lane { value, pieces: pieces.collect() };
        match lane.pieces.is_empty() {
            true => Ok(message),
            false => self.xor(&[(lane, 0), (&message, 0)], &[]),
        }
    }

    fn permute(&self, mut state: Vec<Lane>, as_bits: usize) -> Result<Vec<Lane>, SynthesisError> {
        let every: Vec<usize> = (1..LANE).collect();
        let constants = round_constants();
        for (round, constant) in constants.into_iter().enumerate() {
            let _span = tracing::info_span!(target: "gr1cs", "round").entered();
            // theta: columns are also used rotated by one
            let mut columns = Vec::with_capacity(5);
            for x in 0..5 {
                let lanes: Vec<_> = (x..25).step_by(5).map(|lane| (&state[lane], 0)).collect();
                columns.push(self.xor(&lanes, &[LANE - 1])?);
            }
            let mut after = vec![self.zero(); 25];
            for (lane, rotation) in ROTATIONS.into_iter().enumerate() {
                let [left, right] = [4, 1].map(|by| &columns[(lane % 5 + by) % 5]);
                let sum = [(&state[lane], 0), (left, 0), (right, 1)];
                // rho and pi
                after[moved(lane)] = self.xor(&sum, &[LANE - rotation])?.rotated(rotation);
            }
            // chi
            let is_last = round + 1 == constants.len();
            for (lane, out) in state.iter_mut().enumerate() {
                let cuts = match lane {
                    _ if is_last && lane < as_bits => every.clone(),
                    0 => cuts_of_iota(constant),
                    _ => Vec::new(),
                };
                *out = self.chi(neighbors(lane).map(|lane| &after[lane]), &cuts)?;
            }
            // iota
            state[0].flip(constant);
        }
        Ok(state)
    }

    fn bits(&self, lane: &Lane) -> Result<Vec<ValuedBit>, SynthesisError> {
        let mut bits = vec![(Some(false), Bit::Constant(false)); LANE];
        for piece in &lane.pieces {
            let Digits::Bit(bit) = piece.digits else { return Err(SynthesisError::Unsatisfiable) };
            bits[piece.start] = (lane.value.map(|value| value >> piece.start & 1 == 1), bit);
        }
        Ok(bits)
    }
}
