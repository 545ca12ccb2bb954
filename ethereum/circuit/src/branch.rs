//! A branch whose children are all hashes or empty: 16 bits state which ones exist, and these bits determine all places.

use crate::blocks::{Context, marked};
use crate::chain::{ChainVar, StringKind};
use crate::forms::{
    Cs, Synthesized, Var, big_endian, constant, select, sum, total, witness, zero_if,
};
use crate::node::{Given, Node, StringValues, count_of, give, kind, place_of};
use ark_ff::One;
use ark_r1cs_std::fields::FieldVar;
use hekaton_circuit::{BusId, Fr};

/// The number of blocks of the largest branch.
pub(crate) const BLOCKS: usize = 4;

const CHILDREN: usize = 16;

/// Constrains a branch, which gives the digests of its children (spec: witness#branch).
pub(crate) fn branch(
    context: Context<'_>,
    links: BusId,
    values: Option<Option<&StringValues>>,
    chain: ChainVar,
) -> Synthesized<ChainVar> {
    let cs = context.subcircuit.cs();
    let node = Node::new(context, links, values, BLOCKS)?;
    let present = |at: usize| place_of(values, at).map(|present| present != 0);
    let many = values.map(|_| (0..CHILDREN).filter(|&at| present(at) == Some(true)).count() >= 8);
    let is_long = witness(&cs, many.map(Fr::from))?;
    let branch = Branch { context, cs, node, is_long };
    // All are zero if there is no branch, so that nothing is selected then.
    let mut counts = vec![branch.node.enable.variable().clone()];
    for at in 0..CHILDREN {
        let is_there = context.bit(present(at))?;
        let (given, next) = branch.child(at, &is_there, &counts)?;
        give(context, links, &given, count_of(values, at))?;
        counts = next;
    }
    branch.end(&counts)?;
    branch.node.chain(context, chain, &kind(StringKind::Branch))
}

/// A branch in the constraints.
struct Branch<'a> {
    context: Context<'a>,
    cs: Cs,
    node: Node,
    /// 1 if its list is f9 with two bytes of length, 0 if it is f8 with one. Then all items are one byte further back.
    is_long: Var,
}

impl Branch<'_> {
    /// Selects the value of a form by the length of the list's header: two bytes or three.
    fn shifted(&self, form: impl Fn(usize) -> Synthesized<Var>, at: usize) -> Synthesized<Var> {
        let (near, far) = (form(2 + at)?, form(3 + at)?);
        let by = &self.is_long * (far - &near);
        total(&self.cs, [&near, &by])
    }

    fn byte(&self, at: usize) -> Synthesized<Var> {
        self.shifted(|byte| Ok(self.node.bytes[byte].clone()), at)
    }

    /// Reads a child: 80 if it is empty, a0 and 32 bytes if it is there. `counts[k]` is 1 if k children precede it; the returned
    /// bits are the same for the child after it.
    fn child(&self, at: usize, is_there: &Var, counts: &[Var]) -> Synthesized<(Given, Vec<Var>)> {
        let (context, cs, enable) = (self.context, &self.cs, self.node.enable.variable());
        let mut prefixes = Vec::new();
        let (mut lows, mut highs, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for (before, count) in counts.iter().enumerate() {
            // Each item before it has one byte, and each child that is there 32 more.
            let place = at + 32 * before;
            prefixes.push(self.byte(place)?);
            lows.push(self.shifted(|byte| self.node.half(cs, byte + 1), place)?);
            highs.push(self.shifted(|byte| self.node.half(cs, byte + 17), place)?);
            both.push(count * is_there);
        }
        let prefix = select(cs, counts.iter().zip(&prefixes))?;
        let wanted = [(Fr::from(0x80u64), enable), (Fr::from(0x20u64), is_there)];
        let one = constant(Fr::one());
        prefix.mul_equals(&one, &sum(cs, wanted)?)?;
        // Selected by both, so that the halves of an empty child are zero whatever the bytes are.
        let low = marked(context, &one, &select(cs, both.iter().zip(&lows))?)?;
        let high = marked(context, &one, &select(cs, both.iter().zip(&highs))?)?;
        let mut next = Vec::with_capacity(counts.len() + 1);
        for number in 0..=counts.len() {
            let mut terms = Vec::new();
            if let Some(count) = counts.get(number) {
                terms.extend([(Fr::one(), count), (-Fr::one(), &both[number])]);
            }
            if let Some(less) = number.checked_sub(1) {
                terms.push((Fr::one(), &both[less]));
            }
            next.push(sum(cs, terms)?);
        }
        Ok((Given { low, high, tag: self.node.tag.clone() }, next))
    }

    /// Reads the 17th item, which is the empty value and the last one, and compares the list's header with the number of children.
    fn end(&self, counts: &[Var]) -> Synthesized {
        let (cs, bytes, is_long) = (&self.cs, &self.node.bytes, &self.is_long);
        let (enable, one) = (self.node.enable.variable(), FieldVar::one());
        let values: Vec<Var> = (0..=CHILDREN)
            .map(|before| self.byte(CHILDREN + 32 * before))
            .collect::<Synthesized<_>>()?;
        let value = select(cs, counts.iter().zip(&values))?;
        value.mul_equals(&one, &(enable * constant(Fr::from(0x80u64))))?;
        // 17 items of a byte and 7 times 32 are 241 bytes, whose length still fits into one byte; 8 times 32 are more.
        total(cs, &counts[8..])?.mul_equals(&one, is_long)?;
        // At least two children: a branch with fewer would be another node.
        zero_if(&one, &total(cs, &counts[..2])?)?;
        let by_count = (0u64..).map(|count| Fr::from(32 * count)).zip(counts);
        let payload = sum(cs, std::iter::once((Fr::from(17u64), enable)).chain(by_count))?;
        let length = [(Fr::one(), &payload), (Fr::from(2u64), enable), (Fr::one(), is_long)];
        sum(cs, length)?.mul_equals(&one, &self.node.length)?;
        zero_if(enable, &(&bytes[0] - constant(Fr::from(0xf8u64)) - is_long))?;
        zero_if(&(enable - is_long), &(&bytes[1] - &payload))?;
        zero_if(is_long, &(big_endian(cs, [&bytes[1], &bytes[2]])? - &payload))
    }
}
