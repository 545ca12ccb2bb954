//! SHA-256 by look-ups: 4,952 rows per block.
//!
//! A word has two forms: dense, and spread, a number in base 4 whose digits are its bits. Sums of up to
//! three spread words are linear and have digits up to 3, so `sum = p + 2 q` splits them into their
//! exclusive or p and their majority q, digit by digit and in one way only. Tables for each length of a
//! piece relate the two forms. Rotations are cuts between pieces.

use super::{Digest, IV, K, Message, Word, add_word};
use crate::bits::Bit;
use crate::switch::{Switch, Terms, terms_of};
use ark_ff::{Field, One, PrimeField};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{SynthesisError, Variable};
use hekaton_circuit::{Bit as EnableBit, Fr, LookUp, Subcircuit, Table, TableId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The number of bits of a word.
const WORD: usize = 32;

/// The bits of a carry: sums have at most 7 words.
// 7 words of 32 bits are below 7 * 2^32, so their carry is at most 6.
pub(super) const CARRY: u32 = 3;

/// The cuts of words for the rotations and shifts of the message schedule, and of the state.
const SCHEDULE_CUTS: &[usize] = &[3, 7, 10, 17, 18, 19];
// The rotations of Sigma_0 and Sigma_1 (FIPS 180-4, 4.1.2); each cut more is a piece more, and two rows.
const A_CUTS: &[usize] = &[2, 13, 22];
const E_CUTS: &[usize] = &[6, 11, 25];

/// The cuts of words of a block that are given in little-endian order: as in the schedule, and between
/// bytes. The one at 28 needs no table that the others do not need.
const BLOCK_CUTS: &[usize] = &[3, 7, 8, 10, 16, 17, 18, 19, 24, 28];

/// The spread form of some bits.
pub(super) fn spread(bits: u32) -> u64 {
    (0..WORD).fold(0, |sum, i| sum | u64::from(bits >> i & 1) << (2 * i))
}

/// The pieces of a word with cuts at some bits, of at most `longest` bits.
fn cut(cuts: &[usize], longest: usize) -> Vec<Range<usize>> {
    let (mut start, mut pieces) = (0, Vec::new());
    for end in cuts.iter().copied().chain([WORD]) {
        while start < end {
            let next = end.min(start + longest.max(1));
            pieces.push(start..next);
            start = next;
        }
    }
    pieces
}

/// The cuts of a word of the state, by its number.
fn cuts_of_state(number: usize) -> &'static [usize] {
    if number < 4 { A_CUTS } else { E_CUTS }
}

/// The lengths of all pieces.
fn lengths(longest: usize) -> BTreeSet<usize> {
    let all = [SCHEDULE_CUTS, A_CUTS, E_CUTS, BLOCK_CUTS, &[]];
    all.iter().flat_map(|cuts| cut(cuts, longest)).map(|piece| piece.len()).collect()
}

/// The tables of a layout that the gadget looks pieces up in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    longest: usize,
    /// The tables from the spread form to the dense one, by length.
    dense: BTreeMap<usize, TableId>,
    /// The spread forms alone, by length.
    spread: BTreeMap<usize, TableId>,
    carries: TableId,
}

impl Tables {
    /// The number of bits of a piece for many blocks: tables of 159,494 rows.
    pub const LARGE: usize = 16;
    /// The number of bits of a piece for a few blocks: tables of 774 rows.
    pub const SMALL: usize = 8;

    /// Adds the tables to a layout, with its method `table`
    /// ([`LayoutBuilder::table`](hekaton_circuit::LayoutBuilder::table) or
    /// [`Wires::table`](hekaton_circuit::parts::Wires::table)). `longest` is the maximum number of bits of
    /// a piece, from 1 to 16; anything else counts as the nearest of these.
    pub fn new(longest: usize, mut table: impl FnMut(&str, Table) -> TableId) -> Self {
        let most = most_bits(longest);
        let numbers = |len: usize| (0u32..1 << len).map(|bits| (Fr::from(spread(bits)), bits));
        let mut dense = BTreeMap::new();
        // A table for each length: a piece that is looked up among longer ones could have a bit that
        // belongs to the next piece.
        for len in lengths(most) {
            let pairs = numbers(len).map(|(spread, bits)| (spread, Fr::from(bits)));
            dense.insert(len, table(&format!("sha256_dense_{len}"), Table::pairs(pairs)));
        }
        let mut unary = BTreeMap::new();
        for len in lengths_of_dropped(most) {
            let keys = Table::keys(numbers(len).map(|(spread, _)| spread));
            unary.insert(len, table(&format!("sha256_spread_{len}"), keys));
        }
        let carries = table("sha256_carries", Table::range(CARRY));
        Self { longest: most, dense, spread: unary, carries }
    }

    /// The number of rows of each table, in the order in which [`new`](Self::new) adds them.
    pub fn rows(longest: usize) -> Vec<usize> {
        let most = most_bits(longest);
        let all = lengths(most).into_iter().chain(lengths_of_dropped(most));
        all.map(|len| 1 << len).chain([1 << CARRY]).collect()
    }

    /// The number of rows of [`LookUps::compress_words`].
    pub fn rows_of_compression(longest: usize) -> usize {
        let most = most_bits(longest);
        let pieces = |cuts| cut(cuts, most).len();
        let split = 3 * pieces(&[]);
        let sum = |cuts| 2 * pieces(cuts) + 1;
        let given = |cuts| 2 * pieces(cuts) + 1;
        let inputs = 16 * given(BLOCK_CUTS) + 4 * (given(A_CUTS) + given(E_CUTS));
        let schedule = 48 * (2 * split + sum(SCHEDULE_CUTS));
        let rounds = 64 * (5 * split + sum(A_CUTS) + sum(E_CUTS));
        inputs + schedule + rounds + 8 * (sum(&[]) + 1)
    }
}

/// The number of bits that pieces may have where a caller asks for this many.
fn most_bits(longest: usize) -> usize {
    longest.clamp(1, Tables::LARGE)
}

/// The lengths of pieces that are dropped, and have no dense form.
fn lengths_of_dropped(longest: usize) -> BTreeSet<usize> {
    cut(&[], longest).into_iter().map(|piece| piece.len()).collect()
}

/// The gadget by look-ups, in a subcircuit.
#[derive(Debug)]
pub struct LookUps<'a> {
    switch: Switch<'a>,
    longest: usize,
    dense: BTreeMap<usize, LookUp<'a>>,
    spread: BTreeMap<usize, LookUp<'a>>,
    carries: LookUp<'a>,
}

/// Some bits of a word, in spread form.
type Piece = (Range<usize>, FpVar<Fr>);

/// A word in one of the forms, as a sum.
#[derive(Clone, Debug)]
struct Form {
    value: Option<u32>,
    terms: Terms,
}

/// A word in both forms.
#[derive(Clone, Debug)]
struct Spread {
    dense: Form,
    /// The spread form of the bits from a number on.
    pieces: Vec<(usize, Terms)>,
}

fn times(terms: &[(Fr, Variable)], factor: Fr) -> impl Iterator<Item = (Fr, Variable)> {
    terms.iter().map(move |(k, variable)| (factor * k, *variable))
}

/// 2^i, for i up to 64.
fn power(i: usize) -> Fr {
    Fr::from(1u128 << i)
}

impl Spread {
    fn of_bits(word: &Word) -> Self {
        let mut terms = Vec::new();
        add_word(&mut terms, &word.bits, Fr::one());
        let piece = |(start, bit): (usize, &Bit)| {
            let mut terms = Vec::new();
            bit.add_to(&mut terms, Fr::one());
            (start, terms)
        };
        let dense = Form { value: word.value, terms };
        Self { dense, pieces: word.bits.iter().enumerate().map(piece).collect() }
    }

    fn constant(value: u32) -> Self {
        Self::of_bits(&Word::constant(value))
    }

    fn spread(&self) -> Form {
        self.rotated(0)
    }

    /// The number with the bytes of the word in reverse order. Each piece must be in one byte, and have one
    /// term.
    fn swapped(&self) -> Terms {
        let places = self.pieces.iter().map(|(start, _)| WORD - 8 - start / 8 * 8 + start % 8);
        places.zip(&self.dense.terms).map(|(to, (_, variable))| (power(to), *variable)).collect()
    }

    /// The spread form, rotated to the right. The word must have a cut there.
    fn rotated(&self, by: u32) -> Form {
        self.moved(by, 0, self.dense.value.map(|value| value.rotate_right(by)))
    }

    /// The spread form, shifted to the right.
    fn shifted(&self, by: u32) -> Form {
        self.moved(by, by as usize, self.dense.value.map(|value| value >> by))
    }

    /// The pieces from some bit on, moved to the right.
    fn moved(&self, by: u32, first: usize, value: Option<u32>) -> Form {
        let mut terms = Vec::new();
        for (start, piece) in self.pieces.iter().filter(|(start, _)| *start >= first) {
            terms.extend(times(piece, power(2 * ((start + WORD - by as usize) % WORD))));
        }
        Form { value, terms }
    }
}

impl<'a> LookUps<'a> {
    /// The gadget in a subcircuit. `tables` must be those of the subcircuit's own layout: with ids from
    /// another one, look-ups would go to other tables and prove nothing about the hash.
    ///
    /// # Errors
    /// If the layout has no tables with these ids.
    pub fn new(subcircuit: &'a Subcircuit, tables: &Tables) -> Result<Self, SynthesisError> {
        let of = |ids: &BTreeMap<usize, TableId>| {
            ids.iter().map(|(len, id)| Ok((*len, subcircuit.table(*id)?))).collect()
        };
        let (dense, spread): (Result<_, SynthesisError>, Result<_, SynthesisError>) =
            (of(&tables.dense), of(&tables.spread));
        let carries = subcircuit.table(tables.carries)?;
        let switch = Switch::on(subcircuit);
        Ok(Self { switch, longest: tables.longest, dense: dense?, spread: spread?, carries })
    }

    /// The gadget with a bit that switches it on. Where the bit is 0, the words that it is given, those that it
    /// returns and all marked values are zero, and nothing else is constrained.
    #[must_use]
    pub fn enabled_by(self, enable: &EnableBit) -> Self {
        Self { switch: self.switch.by(enable), ..self }
    }

    /// The compression function: constrains `after` to be the state after a block (FIPS 180-4, section
    /// 6.2.2). The words must be marked values or shared wires; all are constrained to 32 bits. Those of
    /// states are numbers as in the standard; those of the block are the message's bytes as a little-endian
    /// machine reads them, so that a program need not swap them. It takes [`Tables::rows_of_compression`]
    /// rows, 4,856 with [`Tables::LARGE`].
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn compress_words(
        &self,
        state: &[FpVar<Fr>; 8],
        block: &[FpVar<Fr>; 16],
        after: &[FpVar<Fr>; 8],
    ) -> Result<(), SynthesisError> {
        let in_pieces: Vec<Spread> = (0..)
            .zip(state)
            .map(|(i, word)| self.given(word, cuts_of_state(i), false))
            .collect::<Result<_, _>>()?;
        let before: [Spread; 8] =
            in_pieces.try_into().map_err(|_| SynthesisError::Unsatisfiable)?;
        let words = block.iter().map(|word| self.given(word, BLOCK_CUTS, true));
        let added = self.compress(&before, words.collect::<Result<_, _>>()?)?;
        for ((added, before), after) in added.iter().zip(&before).zip(after) {
            let Form { value, terms } = self.sum(&[&added.dense, &before.dense], &[])?.dense;
            self.switch.equals(after, &self.switch.sum_of(value.map(Fr::from), terms)?)?;
        }
        Ok(())
    }

    /// A word that is given as a variable, with its bytes reversed if `is_swapped`: two rows per piece, and one
    /// for their sum.
    fn given(
        &self,
        word: &FpVar<Fr>,
        cuts: &[usize],
        is_swapped: bool,
    ) -> Result<Spread, SynthesisError> {
        #[allow(clippy::cast_possible_truncation, reason = "the row refuses larger numbers")]
        let given = word.value().ok().map(|value| value.into_bigint().0[0] as u32);
        let swap = |word: u32| if is_swapped { word.swap_bytes() } else { word };
        // The pieces are the prover's; the row below ties their sum to the word, and their tables bound it.
        let found = self.word(given.map(swap), cuts)?;
        let terms = match is_swapped {
            false => found.dense.terms.clone(),
            true => found.swapped(),
        };
        self.switch.equals(word, &self.switch.sum_of(given.map(Fr::from), terms)?)?;
        Ok(found)
    }

    /// The digest of a message. All of its bits must be marked ([`Message::committed`]) or constant;
    /// setup refuses others.
    ///
    /// # Errors
    /// If a value is required but absent.
    pub fn hash(&self, message: Message) -> Result<Digest, SynthesisError> {
        let words = message.padded();
        let mut state = IV.map(Spread::constant);
        let blocks = words.chunks_exact(16);
        let count = blocks.len();
        let mut digest = IV.map(Word::constant);
        for (number, block) in blocks.enumerate() {
            let _span = tracing::info_span!(target: "gr1cs", "sha256_compress").entered();
            let added = self.compress(&state, block.iter().map(Spread::of_bits).collect())?;
            for (i, word) in added.iter().enumerate() {
                let words = [&word.dense, &state[i].dense];
                if number + 1 == count {
                    digest[i] = self.bits(&words)?;
                } else {
                    state[i] = self.sum(&words, cuts_of_state(i))?;
                }
            }
        }
        Ok(digest)
    }

    /// Compresses a block; the result is not yet added to the state.
    fn compress(
        &self,
        state: &[Spread; 8],
        mut w: Vec<Spread>,
    ) -> Result<[Spread; 8], SynthesisError> {
        for t in 16..64 {
            let (x, y) = (&w[t - 15], &w[t - 2]);
            let s0 = self.xor([x.rotated(7), x.rotated(18), x.shifted(3)])?;
            let s1 = self.xor([y.rotated(17), y.rotated(19), y.shifted(10)])?;
            w.push(self.sum(&[&w[t - 16].dense, &s0, &w[t - 7].dense, &s1], SCHEDULE_CUTS)?);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state.clone();
        for (w, k) in w.iter().zip(K) {
            let s1 = self.xor([6, 11, 25].map(|by| e.rotated(by)))?;
            let ch = self.choose(&e, &f, &g)?;
            let s0 = self.xor([2, 13, 22].map(|by| a.rotated(by)))?;
            let maj = self.majority([&a, &b, &c].map(Spread::spread))?;
            let k = Spread::constant(k).dense;
            let new_e = self.sum(&[&d.dense, &h.dense, &s1, &ch, &k, &w.dense], E_CUTS)?;
            let new_a = self.sum(&[&h.dense, &s1, &ch, &k, &w.dense, &s0, &maj], A_CUTS)?;
            (h, g, f, e, d, c, b, a) = (g, f, e, new_e, c, b, a, new_a);
        }
        Ok([a, b, c, d, e, f, g, h])
    }

    /// Marked pieces of a word in spread form.
    fn pieces(&self, value: Option<u32>, cuts: &[usize]) -> Result<Vec<Piece>, SynthesisError> {
        let pieces = cut(cuts, self.longest).into_iter();
        let piece = |piece: Range<usize>| {
            let spread_part = value.map(|value| spread(part(value, &piece)));
            Ok((piece, self.switch.mark(spread_part)?))
        };
        pieces.map(piece).collect()
    }

    /// The dense form of pieces in spread form, which are constrained to have one: two rows per piece.
    fn dense(&self, value: Option<u32>, pieces: &[Piece]) -> Result<Terms, SynthesisError> {
        let mut dense = Vec::new();
        for (piece, spread) in pieces {
            let number = self.switch.mark(value.map(|value| u64::from(part(value, piece))))?;
            self.switch.pair(self.of_length(&self.dense, piece)?, spread, &number)?;
            dense.extend(times(&terms_of(&number)?, power(piece.start)));
        }
        Ok(dense)
    }

    fn of_length<'t>(
        &self,
        tables: &'t BTreeMap<usize, LookUp<'a>>,
        piece: &Range<usize>,
    ) -> Result<&'t LookUp<'a>, SynthesisError> {
        tables.get(&piece.len()).ok_or(SynthesisError::Unsatisfiable)
    }

    /// Splits the sum of two or three words in spread form, `p + 2 q`, where p (0) or q (1) is wanted in
    /// dense form. The other one is only looked up.
    fn split(&self, words: &[Form], wanted: usize) -> Result<Form, SynthesisError> {
        let summands: Option<Vec<u32>> = words.iter().map(|word| word.value).collect();
        let values = summands.map(|values| {
            let at_least_two = |list: &[u32]| match *list {
                [a, b, c] => (a & b) ^ (a & c) ^ (b & c),
                [a, b] => a & b,
                _ => 0,
            };
            [values.iter().fold(0, |xor, value| xor ^ value), at_least_two(&values)]
        });
        let factors = [Fr::one(), Fr::from(2u64)];
        let value = values.map(|values| values[wanted]);
        // No cuts but those of the tables: nothing rotates a word that comes from an exclusive or.
        let kept = self.pieces(value, &[])?;
        let terms = self.dense(value, &kept)?;
        let mut rest: Terms = words.iter().flat_map(|word| word.terms.iter().copied()).collect();
        for (piece, spread) in &kept {
            rest.extend(times(&terms_of(spread)?, -factors[wanted] * power(2 * piece.start)));
        }
        let other = values.map(|values| values[1 - wanted]);
        // The part that is not wanted is not committed as a whole: what remains of the sum is it, and only
        // needs to be spread digits.
        self.drop_digits(rest, other, factors[1 - wanted])?;
        Ok(Form { value, terms })
    }

    /// Constrains a sum to be a number of spread digits times a factor.
    fn drop_digits(
        &self,
        mut sum: Terms,
        value: Option<u32>,
        factor: Fr,
    ) -> Result<(), SynthesisError> {
        let mut pieces = cut(&[], self.longest);
        // The last piece is what the others leave: one row, and no committed value.
        let last = pieces.pop().ok_or(SynthesisError::Unsatisfiable)?;
        for piece in pieces {
            let marked = self.switch.mark(value.map(|value| spread(part(value, &piece))))?;
            self.switch.contains(self.of_length(&self.spread, &piece)?, &marked)?;
            sum.extend(times(&terms_of(&marked)?, -factor * power(2 * piece.start)));
        }
        let unit = factor * power(2 * last.start);
        let scale = unit.inverse().expect("a power of two is not zero modulo r");
        let digits = value.map(|value| Fr::from(spread(part(value, &last))));
        let rest = self.switch.sum_of(digits, times(&sum, scale).collect())?;
        self.switch.contains(self.of_length(&self.spread, &last)?, &rest)
    }

    /// The exclusive or of three words, in dense form.
    fn xor(&self, words: [Form; 3]) -> Result<Form, SynthesisError> {
        self.split(&words, 0)
    }

    /// The majority of three words, in dense form.
    fn majority(&self, words: [Form; 3]) -> Result<Form, SynthesisError> {
        self.split(&words, 1)
    }

    /// `(e and f) xor (not e and g)`, in dense form: both conjunctions are carries of sums of two words,
    /// and they have no bit in common.
    fn choose(&self, e: &Spread, f: &Spread, g: &Spread) -> Result<Form, SynthesisError> {
        let [e, f, g] = [e, f, g].map(Spread::spread);
        let mut not = Spread::constant(u32::MAX).spread();
        // All ones minus e, digit by digit: no digit borrows, since e has digits 0 and 1.
        not.terms.extend(times(&e.terms, -Fr::one()));
        not.value = e.value.map(|e| !e);
        let left = self.split(&[e, f], 1)?;
        let right = self.split(&[not, g], 1)?;
        let value = left.value.zip(right.value).map(|(left, right)| left | right);
        Ok(Form { value, terms: [left.terms, right.terms].concat() })
    }

    /// The value of a sum of words modulo 2^32.
    fn value_of(words: &[&Form]) -> Option<u32> {
        words.iter().try_fold(0u32, |sum, word| Some(sum.wrapping_add(word.value?)))
    }

    /// Constrains dense words to have a sum modulo 2^32, given in `sum`, which is constrained to 32 bits.
    /// What is left of them is the carry: one row, a look-up.
    fn enforce_sum(&self, words: &[&Form], sum: &Form) -> Result<(), SynthesisError> {
        let total = words.iter().try_fold(0u64, |sum, word| Some(sum + u64::from(word.value?)));
        let scale = power(WORD).inverse().expect("a power of two is not zero modulo r");
        let mut terms: Terms = words.iter().flat_map(|word| times(&word.terms, scale)).collect();
        terms.extend(times(&sum.terms, -scale));
        // The difference, divided by 2^32: a fraction, and in no table, unless the low bits agree.
        let carry = total.map(|total| Fr::from(total >> WORD));
        self.switch.contains(&self.carries, &self.switch.sum_of(carry, terms)?)
    }

    /// The sum of dense words modulo 2^32, in both forms: two rows per piece, and one for the carry.
    fn sum(&self, words: &[&Form], cuts: &[usize]) -> Result<Spread, SynthesisError> {
        let sum = self.word(Self::value_of(words), cuts)?;
        self.enforce_sum(words, &sum.dense)?;
        Ok(sum)
    }

    /// A word of any value in both forms: two rows per piece.
    fn word(&self, value: Option<u32>, cuts: &[usize]) -> Result<Spread, SynthesisError> {
        let pieces = self.pieces(value, cuts)?;
        let dense = Form { value, terms: self.dense(value, &pieces)? };
        let spread = pieces.iter().map(|(piece, spread)| Ok((piece.start, terms_of(spread)?)));
        Ok(Spread { dense, pieces: spread.collect::<Result<_, SynthesisError>>()? })
    }

    /// The sum of dense words modulo 2^32, in bits: 33 rows.
    fn bits(&self, words: &[&Form]) -> Result<Word, SynthesisError> {
        let value = Self::value_of(words);
        let mut bits = [Bit::Constant(false); WORD];
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = self.switch.bit(value.map(|value| value >> i & 1 == 1))?;
        }
        let mut terms = Vec::new();
        add_word(&mut terms, &bits, Fr::one());
        self.enforce_sum(words, &Form { value, terms })?;
        Ok(Word { value, bits })
    }
}

/// The bits of a piece.
fn part(value: u32, piece: &Range<usize>) -> u32 {
    let bits = u64::from(value) >> piece.start & ((1 << piece.len()) - 1);
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    {
        bits as u32
    }
}
