//! The permutation by look-ups: 13,534 rows.

mod lanes;
mod tables;

pub use lanes::bits_of_number;
pub use tables::Tables;

use super::relations::{Alphabet, BASE, Pieces, cuts_of_iota};
use super::{LANE, Message, Padding, Permutation, RATE, ROTATIONS, ROUNDS, ValuedBit};
use super::{hash, moved, neighbors, round_constants};
use crate::bits::{Bit, enforce_bit};
use crate::switch::{Switch, Terms, terms_of};
use ark_ff::{Field, One, PrimeField};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{SynthesisError, Variable};
use hekaton_circuit::{Bit as EnableBit, Fr, LookUp, Subcircuit, TableId};
use lanes::{Digits, Lane, Piece, bits_to_lane, number, rotate, spread};
use std::collections::BTreeMap;
#[cfg(test)]
use std::ops::Range;

/// The number of bits of a word of [`LookUps::permute_words`].
const WORD: usize = 32;

/// The gadget by look-ups, in a subcircuit.
#[derive(Debug)]
pub struct LookUps<'a> {
    switch: Switch<'a>,
    subcircuit: &'a Subcircuit,
    pieces: Pieces,
    tables: BTreeMap<(Alphabet, usize), LookUp<'a>>,
    numbers: BTreeMap<usize, LookUp<'a>>,
    /// The powers of the base, and their inverses.
    powers: [[Fr; LANE]; 2],
    /// 1/2: inversions are slow, and there is one for each split.
    half: Fr,
    /// The splits so far, for tests.
    #[cfg(test)]
    pub(super) splits: std::cell::RefCell<Vec<Split>>,
}

/// A split, as tests see it: the sum, the factor of each part, and the key of each row.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) sum: Terms,
    pub(super) factors: [i64; 2],
    pub(super) keys: Vec<Key>,
}

/// The key of a row: digits of one of the two parts, as a variable or, of the last row, as a sum.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) part: usize,
    pub(super) alphabet: Alphabet,
    pub(super) digits: Range<usize>,
    pub(super) is: Terms,
}

/// A state of the sponge between two blocks: 25 lanes.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) lanes: Vec<Lane>,
}

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
        let Tables { pieces, ids, numbers } = tables;
        let number_of = |(len, id): (&usize, &TableId)| Ok((*len, subcircuit.table(*id)?));
        let table_of = |(kind, id): (&_, &TableId)| Ok((*kind, subcircuit.table(*id)?));
        let base = Fr::from(BASE);
        let inverse = base.inverse().expect("7 is not zero modulo r");
        let powers = [base, inverse].map(|base| {
            let mut next = Fr::one();
            std::array::from_fn(|_| {
                let power = next;
                next *= base;
                power
            })
        });
        let switch = Switch::on(subcircuit);
        let half = Fr::from(2u64).inverse().expect("r is odd");
        Ok(Self {
            switch,
            subcircuit,
            pieces: *pieces,
            tables: ids.iter().map(table_of).collect::<Result<_, SynthesisError>>()?,
            numbers: numbers.iter().map(number_of).collect::<Result<_, SynthesisError>>()?,
            powers,
            half,
            #[cfg(test)]
            splits: Vec::new().into(),
        })
    }

    /// The gadget with a bit that switches it on. Where the bit is 0, the words of
    /// [`permute_words`](Self::permute_words) and all marked values are zero, and nothing else is constrained.
    #[must_use]
    pub fn enabled_by(self, enable: &EnableBit) -> Self {
        Self { switch: self.switch.by(enable), ..self }
    }

    /// Keccak-f\[1600\]: constrains `after` to be the permutation of `before`. Both consist of the 25 lanes in
    /// words of 32 bits, the lower word of each lane first, as a little-endian machine stores the
    /// standard's state. The words must be marked values or shared wires; all are constrained to
    /// 32 bits. It takes [`Tables::rows_of_permutation`] rows, 14,081 with [`Pieces::LARGE`]. The tables must
    /// be those of [`Tables::with_words`].
    ///
    /// # Errors
    /// If a value is required but absent; and with a bit that switches the gadget, if the last piece of a lane
    /// would have one digit, as with a maximum of 1, 3, 7 or 9 binary digits: its row could not be switched.
    pub fn permute_words(
        &self,
        before: &[FpVar<Fr>; 50],
        after: &[FpVar<Fr>; 50],
    ) -> Result<(), SynthesisError> {
        // The row of the last piece is not a look-up if the piece is one bit, and only look-ups have a
        // multiplicity that a bit can switch.
        let last = self.pieces.cut(Alphabet::Binary, &[]).pop();
        if self.switch.is_switched() && last.is_none_or(|piece| piece.len() == 1) {
            return Err(SynthesisError::Unsatisfiable);
        }
        let lanes = before.chunks_exact(2).map(|words| self.lane_of_words(words));
        let state = self.rounds(lanes.collect::<Result<_, _>>()?, |lane| match lane {
            0 => (1..LANE).collect(),
            _ => vec![WORD],
        })?;
        state.iter().zip(after.chunks_exact(2)).try_for_each(|(lane, words)| {
            self.words_of_lane(lane)?.into_iter().zip(words).try_for_each(|(sum, word)| {
                let value = word.value().ok();
                self.switch.equals(word, &self.switch.sum_of(value, sum)?)
            })
        })
    }

    /// A lane that is given as two words.
    fn lane_of_words(&self, words: &[FpVar<Fr>]) -> Result<Lane, SynthesisError> {
        let value_of = |word: &FpVar<Fr>| Some(word.value().ok()?.into_bigint().0[0]);
        let values: Option<Vec<u64>> = words.iter().map(value_of).collect();
        let value = values.map(|words| words[0] & 0xffff_ffff | words[1] << WORD);
        let mut pieces = Vec::new();
        for piece in self.pieces.cut(Alphabet::Binary, &[WORD]) {
            let (start, len) = (piece.start, piece.len());
            let marked = self.switch.mark(value.map(|value| spread(value, piece)))?;
            pieces.push(Piece { start, len, digits: Digits::of(&marked)? });
        }
        let lane = Lane { value, pieces };
        for (sum, word) in self.words_of_lane(&lane)?.into_iter().zip(words) {
            self.switch.equals(word, &self.switch.sum_of(word.value().ok(), sum)?)?;
        }
        Ok(lane)
    }

    /// The two words of a lane, as numbers: two rows per piece, no rows for bits. It must have a cut between them.
    fn words_of_lane(&self, lane: &Lane) -> Result<[Terms; 2], SynthesisError> {
        let mut words = [Terms::new(), Terms::new()];
        for Piece { start, len, digits } in &lane.pieces {
            // There is a cut between the two words, so each piece is in one of them.
            let factor = Fr::from(1u64 << (start % WORD));
            let word = &mut words[start / WORD];
            match digits {
                Digits::Bit(bit) => bit.add_to(word, factor),
                Digits::Several(variable) => {
                    let bits = |value: u64| value >> start & ((1 << len) - 1);
                    let number = self.switch.mark(lane.value.map(bits))?;
                    let table = self.numbers.get(len).ok_or(SynthesisError::Unsatisfiable)?;
                    let spread = lane.value.map(|value| spread(value, *start..start + len));
                    let key = self.switch.variable(spread, *variable);
                    self.switch.pair(table, &key, &number)?;
                    word.extend(terms_of(&number)?.into_iter().map(|(_, v)| (factor, v)));
                }
            }
        }
        Ok(words)
    }

    /// The digest of a message: 32 bytes. All of its bits must be marked
    /// ([`Message::committed`]) or constant; setup refuses others.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn hash(&self, message: Message, padding: Padding) -> Result<Message, SynthesisError> {
        hash(self, message, padding)
    }

    /// Absorbs a block of 136 bytes, padding included, and permutes: 13,534 rows, and 136 for a state that is not zero. All bits
    /// of the block must be marked ([`Message::committed`]) or constant. If a bit switches the gadget off, all of them and all lanes
    /// before must be zero.
    ///
    /// # Errors
    /// If the block has another length, or a value is required but absent.
    pub fn absorb_block(
        &self,
        before: Option<&State>,
        block: Message,
    ) -> Result<State, SynthesisError> {
        let mut bits = block.bits;
        if bits.len() != 8 * RATE {
            return Err(SynthesisError::Unsatisfiable);
        }
        // The bytes of messages have their most significant bit first.
        bits.chunks_exact_mut(8).for_each(<[ValuedBit]>::reverse);
        let zero = || (0..25).map(|_| self.zero()).collect();
        let mut lanes = before.map_or_else(zero, |state| state.lanes.clone());
        for (lane, bits) in lanes.iter_mut().zip(bits.chunks_exact(LANE)) {
            *lane = self.absorb(lane, bits)?;
        }
        Ok(State { lanes: self.permute(lanes, 0)? })
    }

    /// A state whose lanes are slots or marked values, numbers in base 7 as [`lanes`](Self::lanes) returns them. This is not
    /// checked: the caller must have them from there.
    ///
    /// # Errors
    /// If one of them is a constant.
    pub fn state(&self, lanes: &[FpVar<Fr>; 25]) -> Result<State, SynthesisError> {
        let lane = |lane: &FpVar<Fr>| {
            let digits = Digits::of(lane)?;
            let piece = Piece { start: 0, len: LANE, digits };
            Ok(Lane { value: lane.value().ok().map(bits_of_number), pieces: vec![piece] })
        };
        Ok(State { lanes: lanes.iter().map(lane).collect::<Result<_, SynthesisError>>()? })
    }

    /// The lanes of a state as numbers in base 7 whose digits are their bits.
    ///
    /// # Errors
    /// If the constraint system fails.
    pub fn lanes(&self, state: &State) -> Result<Vec<FpVar<Fr>>, SynthesisError> {
        let number = |lane: &Lane| {
            let mut terms = Terms::new();
            self.add(&mut terms, lane, 0, Fr::one());
            let low = |value| Fr::from(spread(value, 0..LANE / 4));
            let value = lane.value.map(|value| {
                let quarters = (0..4).rev().map(|at| low(value >> (16 * at)));
                quarters.fold(Fr::from(0u64), |sum, low| sum * self.powers[0][LANE / 4] + low)
            });
            self.switch.sum_of(value, terms)
        };
        state.lanes.iter().map(number).collect()
    }

    /// Constrains a number to be a sum of digits of an alphabet, with one row: a look-up, or for a bit
    /// `b (1 - b) = 0`.
    fn contains(&self, kind: (Alphabet, usize), number: &FpVar<Fr>) -> Result<(), SynthesisError> {
        match (kind, number) {
            ((Alphabet::Binary, 1), FpVar::Var(bit)) => {
                enforce_bit(&self.subcircuit.cs(), || bit.variable.into())
            }
            _ => {
                let table = self.tables.get(&kind).ok_or(SynthesisError::Unsatisfiable)?;
                self.switch.contains(table, number)
            }
        }
    }

    /// The rounds of the permutation, with these cuts of the lanes after the last one; all bits of lane 0
    /// that iota flips must be cut off.
    fn rounds(
        &self,
        mut state: Vec<Lane>,
        last_cuts: impl Fn(usize) -> Vec<usize>,
    ) -> Result<Vec<Lane>, SynthesisError> {
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
            // Theta adds two columns to each lane, and rho rotates the sum: one split, cut where rho wraps around.
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
                    _ if is_last => last_cuts(lane),
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

    /// The inverse of the factor of a part.
    fn inverse(&self, factor: i64) -> Fr {
        match factor {
            1 => Fr::one(),
            2 => self.half,
            other => Fr::from(other).inverse().expect("factors are small, and not zero"),
        }
    }

    /// Splits a sum into two numbers with the digits of their alphabets, of which the first one is
    /// returned in pieces. The last piece of the second one is what is left of the sum. A row for each
    /// piece.
    // Above 60 lines with what tests record; one piece: what is left of the sum passes from row to row.
    fn split(
        &self,
        mut sum: Terms,
        x: &Part<'_>,
        y: &Part<'_>,
    ) -> Result<Vec<Piece>, SynthesisError> {
        let mut pieces = Vec::new();
        #[cfg(test)]
        let (sum_at_first, mut keys) = (sum.clone(), Vec::new());
        for (part, is_last) in [(x, false), (y, true)] {
            let factor = Fr::from(part.factor);
            let mut cut = self.pieces.cut(part.alphabet, part.cuts);
            let last = if is_last { cut.pop() } else { None };
            for piece in cut {
                let start = piece.start;
                let kind = (part.alphabet, piece.len());
                let value = part.digits.map(|digits| number(&digits[piece]));
                let digits = if kind == (Alphabet::Binary, 1) {
                    Digits::Bit(self.switch.bit(value.map(|value| value == 1))?)
                } else {
                    let marked = self.switch.mark(value)?;
                    self.contains(kind, &marked)?;
                    Digits::of(&marked)?
                };
                let found = Piece { start, len: kind.1, digits };
                #[cfg(test)]
                keys.push(Key {
                    part: is_last.into(),
                    alphabet: part.alphabet,
                    digits: start..start + kind.1,
                    is: found.terms(),
                });
                found.add_to(&mut sum, -factor * self.powers[0][start]);
                if !is_last {
                    pieces.push(found);
                }
            }
            if let Some(piece) = last {
                let scale = self.inverse(part.factor) * self.powers[1][piece.start];
                let value = part.digits.map(|digits| Fr::from(number(&digits[piece.clone()])));
                // Divided by its place, what is left is a number of the last piece's digits, or in no
                // table.
                sum.iter_mut().for_each(|(factor, _)| *factor *= scale);
                #[cfg(test)]
                keys.push(Key {
                    part: 1,
                    alphabet: part.alphabet,
                    digits: piece.clone(),
                    is: sum.clone(),
                });
                let rest = self.switch.sum_of(value, std::mem::take(&mut sum))?;
                self.contains((part.alphabet, piece.len()), &rest)?;
            }
        }
        #[cfg(test)]
        self.splits.borrow_mut().push(Split {
            sum: sum_at_first,
            factors: [x.factor, y.factor],
            keys,
        });
        Ok(pieces)
    }

    /// Splits a sum of up to three lanes into their exclusive or and the carries.
    fn xor(&self, lanes: &[(&Lane, usize)], cuts: &[usize]) -> Result<Lane, SynthesisError> {
        let mut sum = Vec::new();
        lanes.iter().for_each(|(lane, by)| self.add(&mut sum, lane, *by, Fr::one()));
        let value_of = |(lane, by): &(&Lane, usize)| Some(rotate(lane.value?, *by));
        let values: Option<Vec<u64>> = lanes.iter().map(value_of).collect();
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
        // 3 for each digit keeps all digits of the sum from being negative.
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

impl Permutation for LookUps<'_> {
    type Lane = Lane;

    fn zero(&self) -> Lane {
        Lane { value: Some(0), pieces: Vec::new() }
    }

    fn absorb(&self, lane: &Lane, bits: &[ValuedBit]) -> Result<Lane, SynthesisError> {
        let value = (bits.iter().rev())
            .try_fold(0u64, |lane, (bit, _)| Some(lane << 1 | u64::from((*bit)?)));
        let pieces = (0..).zip(bits).map(|(start, (_, bit))| Piece {
            start,
            len: 1,
            digits: Digits::Bit(*bit),
        });
        let message = Lane { value, pieces: pieces.collect() };
        match lane.pieces.is_empty() {
            true => Ok(message),
            false => self.xor(&[(lane, 0), (&message, 0)], &[]),
        }
    }

    fn permute(&self, state: Vec<Lane>, as_bits: usize) -> Result<Vec<Lane>, SynthesisError> {
        let last_constant = round_constants()[ROUNDS - 1];
        self.rounds(state, |lane| match lane {
            _ if lane < as_bits => (1..LANE).collect(),
            0 => cuts_of_iota(last_constant),
            _ => Vec::new(),
        })
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
