//! Leaves and extensions: a path, then an account, a word of storage or the hash of a child. References are located from the end of the
//! node, so that their places do not depend on the prover's choices.

use crate::blocks::{BLOCK, Context, marked};
use crate::chain::{ChainVar, StringKind, Tag};
use crate::forms::{Synthesized, Var, constant, digits, select, sum, total, witness, zero_if};
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
        let bits: Vec<Var> = range
            .clone()
            .map(|at| context.bit(value.map(|value| value == at)))
            .collect::<Synthesized<_>>()?;
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
        let found: Vec<Var> = (0..self.bits.len())
            .map(|at| of(self.first + at + offset))
            .collect::<Synthesized<_>>()?;
        select(&context.subcircuit.cs(), self.bits.iter().zip(&found))
    }
}

/// The length of a string item of up to 55 bytes with its header, if it is not empty or one byte below 0x80: `is_long` is the first
/// bit of the first byte.
fn string_length(first: &Var, is_long: &Var) -> Var {
    // 1, or 1 + (first - 0x80).
    constant(Fr::one()) + is_long * (first - constant(Fr::from(0x80u64)))
}

fn number(value: usize) -> Var {
    constant(Fr::from(value as u64))
}

/// A leaf or an extension of at most `blocks` blocks (spec: witness#short).
pub(crate) fn short(
    context: Context<'_>,
    links: BusId,
    values: Option<Option<&StringValues>>,
    chain: ChainVar,
    blocks: usize,
) -> Synthesized<ChainVar> {
    let short = Short::new(context, links, values, blocks)?;
    let path = short.path()?;
    let kinds = Kinds::new(&short, &path)?;
    short.value(&path, &kinds)?;
    short.references(links, &kinds, LARGEST.min(blocks * BLOCK - 1))?;
    let enable = short.node.enable.variable();
    let kind = [(Fr::from(StringKind::Extension as u64), enable), (-Fr::one(), &kinds.is_leaf)];
    short.node.chain(context, chain, &sum(&context.subcircuit.cs(), kind)?)
}

/// A leaf or an extension in the constraints.
struct Short<'a> {
    context: Context<'a>,
    values: Option<Option<&'a StringValues>>,
    node: Node,
    /// 1 if the header of the list has two bytes: then everything behind it is one byte further back.
    is_long: Var,
}

/// The path of a node: a byte below 0x80, or 0x80 + n and n bytes.
struct Path {
    /// n, or 0 for a single byte.
    length: Var,
    is_leaf: Var,
}

/// The kind of a node: at most one of the last three is 1, and none is if there is no node.
struct Kinds {
    is_leaf: Var,
    is_account: Var,
    is_word: Var,
    is_extension: Var,
}

impl Kinds {
    fn new(short: &Short<'_>, path: &Path) -> Synthesized<Self> {
        let (enable, is_leaf) = (short.node.enable.variable(), path.is_leaf.clone());
        let in_accounts = enable - &short.node.is_storage;
        let is_account = marked(short.context, &is_leaf, &in_accounts)?;
        let is_word = &is_leaf - &is_account;
        let is_extension = enable - &is_leaf;
        Ok(Self { is_leaf, is_account, is_word, is_extension })
    }
}

impl<'a> Short<'a> {
    /// Reads the header of the list: c0 + length, or f8 and a byte of length.
    fn new(
        context: Context<'a>,
        links: BusId,
        values: Option<Option<&'a StringValues>>,
        blocks: usize,
    ) -> Synthesized<Self> {
        let cs = context.subcircuit.cs();
        let node = Node::new(context, links, values, blocks)?;
        let (bytes, length) = (&node.bytes, &node.length);
        let is_long = node.is_at_least(&cs, LONG)?;
        // No list has 57 bytes: 55 bytes have a header of one, 56 one of two.
        zero_if(&constant(Fr::one()), &node.ends[LONG - 1])?;
        node.has_short_header(&is_long)?;
        zero_if(&is_long, &(&bytes[0] - number(0xf8)))?;
        zero_if(&is_long, &(&bytes[1] - length + number(2)))?;
        Ok(Self { context, values, node, is_long })
    }

    fn byte(&self, at: usize) -> Synthesized<Var> {
        Ok(self.node.bytes[at].clone())
    }

    /// Returns the most significant bit of a byte, which says whether it is a header.
    fn top(&self, at: usize) -> Synthesized<Var> {
        self.node.bit(self.context, at, 7)
    }

    fn half(&self, at: usize) -> Synthesized<Var> {
        self.node.half(&self.context.subcircuit.cs(), at)
    }

    /// Selects one of two values by the length of the list's header.
    fn behind_list(&self, near: Var, far: Var) -> Var {
        &near + &self.is_long * (far - &near)
    }

    /// Reads the path, whose first nibble marks the node as a leaf or an extension.
    fn path(&self) -> Synthesized<Path> {
        let (context, cs) = (self.context, self.context.subcircuit.cs());
        let enable = self.node.enable.variable();
        let header = self.behind_list(self.byte(1)?, self.byte(2)?);
        let has_header = self.behind_list(self.top(1)?, self.top(2)?);
        let given = place_of(self.values, 0);
        let length = witness(&cs, given.map(|length| Fr::from(length as u64)))?;
        zero_if(&has_header, &(&header - number(0x80) - &length))?;
        zero_if(&(enable - &has_header), &length)?;
        // The first byte of the path is behind its header, if it has one.
        let of_first = |bit: &dyn Fn(usize) -> Synthesized<Var>| -> Synthesized<Var> {
            let near = self.behind_list(bit(1)?, bit(2)?);
            let far = self.behind_list(bit(2)?, bit(3)?);
            Ok(&near + &has_header * (far - &near))
        };
        // Nibbles of 4 and above mark neither a leaf nor an extension. Refusing them also keeps headers from being read as paths.
        let upper = of_first(&|at| {
            let six = self.node.bit(context, at, 6)?;
            sum(&cs, [(Fr::one(), &six), (Fr::from(2u64), &self.top(at)?)])
        })?;
        zero_if(enable, &upper)?;
        let is_leaf = of_first(&|at| self.node.bit(context, at, 5))?;
        let is_odd = of_first(&|at| self.node.bit(context, at, 4))?;
        let low = of_first(&|at| {
            let bits = (0..4).map(|bit| self.node.bit(context, at, bit));
            digits(&cs, 1, &bits.collect::<Synthesized<Vec<_>>>()?)
        })?;
        zero_if(&(enable - is_odd), &low)?;
        Ok(Path { length, is_leaf })
    }

    /// Reads the value, which begins where the path ends and must reach the end of the node.
    fn value(&self, path: &Path, kinds: &Kinds) -> Synthesized {
        let (context, node) = (self.context, &self.node);
        let enable = node.enable.variable();
        let before =
            [(Fr::from(2u64), enable), (Fr::one(), &self.is_long), (Fr::one(), &path.length)];
        let place = sum(&context.subcircuit.cs(), before)?;
        let value = Choice::new(context, VALUES, enable, &place, place_of(self.values, 1))?;
        let mut bytes = Vec::new();
        for offset in 0..4 {
            bytes.push(value.at(context, offset, |at| self.byte(at))?);
        }
        let rest = &node.length - &place;
        // An extension's value is a0 and a hash. Without a node there is no length, so this also keeps `is_leaf` zero in that case.
        zero_if(&kinds.is_extension, &(&rest - number(33)))?;
        zero_if(&kinds.is_extension, &(&bytes[0] - number(0xa0)))?;
        // A word's value is a byte, or a string as long as the rest; a list is neither, whereas a branch could have one as its second item.
        let is_string = value.at(context, 0, |at| self.top(at))?;
        let is_list = &is_string * value.at(context, 0, |at| node.bit(context, at, 6))?;
        zero_if(&kinds.is_word, &is_list)?;
        zero_if(&kinds.is_word, &(string_length(&bytes[0], &is_string) - &rest))?;
        // An account's value is a string that contains a list, both as long as the rest.
        let headers = [number(0xb8), &rest - number(2), number(0xf8), &rest - number(4)];
        for (byte, wanted) in bytes.iter().zip(headers) {
            zero_if(&kinds.is_account, &(byte - wanted))?;
        }
        self.account(&value, place, &kinds.is_account)
    }

    /// Reads nonce and balance of an account. Exactly its last 66 bytes follow.
    fn account(&self, value: &Choice, place: Var, is_account: &Var) -> Synthesized {
        let context = self.context;
        let (byte, top) = (|at| self.byte(at), |at| self.top(at));
        let (nonce, is_string) = (value.at(context, 4, byte)?, value.at(context, 4, top)?);
        let at = is_account * (place + number(4) + string_length(&nonce, &is_string));
        let balance = Choice::new(context, BALANCES, is_account, &at, place_of(self.values, 2))?;
        let (first, is_long) = (balance.at(context, 0, byte)?, balance.at(context, 0, top)?);
        let end = at + string_length(&first, &is_long) + number(66);
        zero_if(is_account, &(end - &self.node.length))
    }

    /// Selects what is `back` bytes before the end, for the lengths in a range.
    fn at_end(
        &self,
        range: RangeInclusive<usize>,
        back: usize,
        of: &dyn Fn(usize) -> Synthesized<Var>,
    ) -> Synthesized<Var> {
        // Selected by the length, which the padding fixes, and not by bits of the prover's choice.
        let found: Vec<Var> =
            range.clone().map(|length| of(length - back)).collect::<Synthesized<_>>()?;
        select(&self.context.subcircuit.cs(), self.node.ends[range].iter().zip(&found))
    }

    /// Gives the references at the end: a0 and the child or the code; before the code, a0 and the root of the storage.
    fn references(&self, links: BusId, kinds: &Kinds, largest: usize) -> Synthesized {
        let (context, cs) = (self.context, self.context.subcircuit.cs());
        let (byte, half) = (|at| self.byte(at), |at| self.half(at));
        let accounts = LEAST_ACCOUNT..=largest;
        let first = |back: usize, of: &dyn Fn(usize) -> Synthesized<Var>| {
            let child = self.at_end(EXTENSIONS, back, of)?;
            let root = self.at_end(accounts.clone(), back + 33, of)?;
            total(&cs, [&child, &root])
        };
        let is_account = &kinds.is_account;
        let gives = self.node.enable.variable() - &kinds.is_word;
        zero_if(&gives, &(first(33, &byte)? - number(0xa0)))?;
        let child_or_root = Given {
            low: marked(context, &gives, &first(32, &half)?)?,
            high: marked(context, &gives, &first(16, &half)?)?,
            // A child is of the same trie; an account's is a storage trie.
            tag: &self.node.tag + is_account,
        };
        give(context, links, &child_or_root, count_of(self.values, 0))?;
        let last = |back: usize, of: &dyn Fn(usize) -> Synthesized<Var>| {
            self.at_end(accounts.clone(), back, of)
        };
        zero_if(is_account, &(last(33, &byte)? - number(0xa0)))?;
        let code = Given {
            low: marked(context, is_account, &last(32, &half)?)?,
            high: marked(context, is_account, &last(16, &half)?)?,
            tag: number(Tag::Code as usize),
        };
        give(context, links, &code, count_of(self.values, 1))
    }
}
