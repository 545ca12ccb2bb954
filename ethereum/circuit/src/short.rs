//! Leaves and extensions: a path, then an account, a word of storage or the hash of a child. References are at the end, so that their
//! places do not depend on the prover's choices.

use crate::blocks::{BLOCK, Context, marked};
use crate::chain::{ChainVar, StringKind, Tag};
use crate::forms::{Synthesized, Var, constant, select, sum, total, witness, zero_if};
use crate::node::{Given, Node, StringValues, count_of, give, place_of};
use ark_ff::One;
use ark_r1cs_std::fields::FieldVar;
use hekaton_circuit::{BusId, Fr};
use std::ops::RangeInclusive;

/// The lengths of a node whose list has a header of two bytes.
const LONG: usize = 58;

/// The places at which the value may begin: behind the list's header and a path of 1 to 34 bytes.
const VALUES: RangeInclusive<usize> = 2..=36;

/// The places at which the balance of an account may begin: behind two headers of two bytes and a nonce of 1 to 9 bytes.
const BALANCES: RangeInclusive<usize> = 8..=49;

/// The lengths of an extension, and the least length of an account's leaf.
const EXTENSIONS: RangeInclusive<usize> = 35..=69;
const LEAST_ACCOUNT: usize = 75;

/// The length of the largest leaf.
const LARGEST: usize = 148;

/// One bit for each possible place, of which exactly that of the place is 1, if `enable` is.
struct Choice {
    bits: Vec<Var>,
    first: usize,
}

impl Choice {
    fn new(
        context: Context<'_>,
        range: RangeInclusive<usize>,
        enable: &Var,
        place: &Var,
        value: Option<usize>,
    ) -> Synthesized<Self> {
        let (cs, first) = (context.subcircuit.cs(), *range.start());
        let bits = range.clone().map(|at| context.bit(value.map(|value| value == at)));
        let bits = bits.collect::<Synthesized<Vec<Var>>>()?;
        let one = FieldVar::one();
        total(&cs, &bits)?.mul_equals(&one, enable)?;
        let places = range.map(|at| Fr::from(at as u64));
        sum(&cs, places.zip(&bits))?.mul_equals(&one, place)?;
        Ok(Self { bits, first })
    }

    /// Selects the value at an offset behind the place.
    fn at(
        &self,
        context: Context<'_>,
        offset: usize,
        of: impl Fn(usize) -> Synthesized<Var>,
    ) -> Synthesized<Var> {
        let found = (0..self.bits.len()).map(|at| of(self.first + at + offset));
        let found = found.collect::<Synthesized<Vec<Var>>>()?;
        select(&context.subcircuit.cs(), self.bits.iter().zip(&found))
    }
}

/// The length of a string item of up to 55 bytes with its header, if it is not empty or one byte below 0x80: `is_long` is the first
/// bit of the first byte.
fn string_length(first: &Var, is_long: &Var) -> Var {
    // 1, or 1 + (first - 0x80).
    constant(Fr::one()) + is_long * (first - constant(Fr::from(0x80u64)))
}

/// A leaf or an extension of at most `blocks` blocks (spec: witness#short).
pub(crate) fn short(
    context: Context<'_>,
    links: BusId,
    values: Option<Option<&StringValues>>,
    chain: ChainVar,
    blocks: usize,
) -> Synthesized<ChainVar> {
    let cs = context.subcircuit.cs();
    let node = Node::new(context, links, values, blocks)?;
    let enable = node.enable.variable();
    let (bytes, length) = (&node.bytes, &node.length);
    let largest = LARGEST.min(blocks * BLOCK - 1);
    let number = |value: usize| constant(Fr::from(value as u64));
    let always = constant(Fr::one());
    let half = |at: usize| node.half(&cs, at);
    let byte = |at: usize| Ok(bytes[at].clone());
    let top = |at: usize| node.bit(context, at, 7);

    // The list: c0 + length, or f8 and a byte of length, behind which all is one byte further back.
    let is_long = node.is_at_least(&cs, LONG)?;
    zero_if(&always, &node.ends[LONG - 1])?;
    zero_if(&(enable - &is_long), &(&bytes[0] - number(0xc0) - length + number(1)))?;
    zero_if(&is_long, &(&bytes[0] - number(0xf8)))?;
    zero_if(&is_long, &(&bytes[1] - length + number(2)))?;

    // The path: a byte below 0x80, or 0x80 + n and n bytes. Its first nibble says what the node is.
    let behind_list = |near: Var, far: Var| &near + &is_long * (far - &near);
    let first = behind_list(byte(1)?, byte(2)?);
    let has_header = behind_list(top(1)?, top(2)?);
    let path = place_of(values, 0);
    let path_length = witness(&cs, path.map(|path| Fr::from(path as u64)))?;
    zero_if(&has_header, &(&first - number(0x80) - &path_length))?;
    zero_if(&(enable - &has_header), &path_length)?;
    let of_path = |bit: &dyn Fn(usize) -> Synthesized<Var>| {
        let (first, second) = (behind_list(bit(1)?, bit(2)?), behind_list(bit(2)?, bit(3)?));
        Ok::<_, ark_relations::gr1cs::SynthesisError>(&first + &has_header * (second - &first))
    };
    let upper = of_path(&|at| {
        sum(&cs, [(Fr::one(), &node.bit(context, at, 6)?), (Fr::from(2u64), &top(at)?)])
    })?;
    zero_if(enable, &upper)?;
    let is_leaf = of_path(&|at| node.bit(context, at, 5))?;
    let is_odd = of_path(&|at| node.bit(context, at, 4))?;
    let low = of_path(&|at| {
        let bits = (0..4).map(|bit| node.bit(context, at, bit)).collect::<Synthesized<Vec<_>>>()?;
        crate::forms::digits(&cs, 1, &bits)
    })?;
    zero_if(&(enable - is_odd), &low)?;

    // The kind of the node.
    let is_account = marked(context, &is_leaf, &(enable - &node.is_storage))?;
    let is_word = &is_leaf - &is_account;
    let is_extension = enable - &is_leaf;

    // The value.
    let place =
        sum(&cs, [(Fr::from(2u64), enable), (Fr::one(), &is_long), (Fr::one(), &path_length)])?;
    let value = Choice::new(context, VALUES, enable, &place, place_of(values, 1))?;
    let mut at_value = Vec::new();
    for offset in 0..4 {
        at_value.push(value.at(context, offset, byte)?);
    }
    let rest = length - &place;
    // An extension's value is a0 and a hash. Without a node there is no length, so this also keeps `is_leaf` zero in that case.
    zero_if(&is_extension, &(&rest - number(33)))?;
    zero_if(&is_extension, &(&at_value[0] - number(0xa0)))?;
    // A word's value is a byte, or a string as long as the rest; a list is neither, whereas a branch could have one as its second item.
    let is_string = value.at(context, 0, top)?;
    let is_list = &is_string * value.at(context, 0, |at| node.bit(context, at, 6))?;
    zero_if(&is_word, &is_list)?;
    zero_if(&is_word, &(string_length(&at_value[0], &is_string) - &rest))?;
    // An account's value is a string that contains a list, both as long as the rest.
    for (at, wanted) in
        [(0, number(0xb8)), (1, &rest - number(2)), (2, number(0xf8)), (3, &rest - number(4))]
    {
        zero_if(&is_account, &(&at_value[at] - wanted))?;
    }
    let (nonce, is_string) = (value.at(context, 4, byte)?, value.at(context, 4, top)?);
    let place = &is_account * (place + number(4) + string_length(&nonce, &is_string));
    let balance = Choice::new(context, BALANCES, &is_account, &place, place_of(values, 2))?;
    let (first, is_string) = (balance.at(context, 0, byte)?, balance.at(context, 0, top)?);
    let end = place + string_length(&first, &is_string) + number(66);
    zero_if(&is_account, &(end - length))?;

    // At the end: a0 and the child or the code, and before it a0 and the root of the storage.
    let at_end =
        |range: RangeInclusive<usize>, back: usize, of: &dyn Fn(usize) -> Synthesized<Var>| {
            let found = range.clone().map(|length| of(length - back));
            let found = found.collect::<Synthesized<Vec<Var>>>()?;
            select(&cs, node.ends[range].iter().zip(&found))
        };
    let accounts = LEAST_ACCOUNT..=largest;
    let first = |back: usize, of: &dyn Fn(usize) -> Synthesized<Var>| {
        let (child, root) =
            (at_end(EXTENSIONS, back, of)?, at_end(accounts.clone(), back + 33, of)?);
        total(&cs, [&child, &root])
    };
    let gives = enable - &is_word;
    zero_if(&gives, &(first(33, &byte)? - number(0xa0)))?;
    let given = Given {
        low: marked(context, &gives, &first(32, &half)?)?,
        high: marked(context, &gives, &first(16, &half)?)?,
        // A child is of the same trie; an account's is a storage trie.
        tag: &node.tag + &is_account,
    };
    give(context, links, &given, count_of(values, 0))?;
    zero_if(&is_account, &(at_end(accounts.clone(), 33, &byte)? - number(0xa0)))?;
    let given = Given {
        low: marked(context, &is_account, &at_end(accounts.clone(), 32, &half)?)?,
        high: marked(context, &is_account, &at_end(accounts.clone(), 16, &half)?)?,
        tag: number(Tag::Code as usize),
    };
    give(context, links, &given, count_of(values, 1))?;
    let kind = [(Fr::from(StringKind::Extension as u64), enable), (-Fr::one(), &is_leaf)];
    node.chain(context, chain, &sum(&cs, kind)?)
}
