//! A branch some of whose children are inside it: its items may have any length, so its bytes are examined one by one.

use crate::blocks::{BLOCK, Context, marked};
use crate::branch::BLOCKS;
use crate::chain::{ChainVar, StringKind};
use crate::forms::{Synthesized, Var, constant, digits, select, sum, total, witness, zero_if};
use crate::node::{Given, Node, StringValues, give, kind};
use ark_ff::{Field, One, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::FieldVar;
use hekaton_circuit::{BusId, Fr};

/// Lengths from which the list's header has two and three bytes.
const LONG: usize = 58;
const LONGER: usize = 259;

/// A branch, which gives those of its children that are hashes (spec: witness#mixed).
pub(crate) fn mixed(
    context: Context<'_>,
    links: BusId,
    values: Option<Option<&StringValues>>,
    chain: ChainVar,
) -> Synthesized<ChainVar> {
    let cs = context.subcircuit.cs();
    let node = Node::new(context, links, values, BLOCKS)?;
    let enable = node.enable.variable();
    let (bytes, ends, length) = (&node.bytes, &node.ends, &node.length);
    let number = |value: usize| constant(Fr::from(value as u64));
    let one: Var = FieldVar::one();

    let (is_long, is_longer) = (node.is_at_least(&cs, LONG)?, node.is_at_least(&cs, LONGER)?);
    zero_if(&one, &total(&cs, [&ends[LONG - 1], &ends[LONGER - 1]])?)?;
    zero_if(&(enable - &is_long), &(&bytes[0] - number(0xc0) - length + number(1)))?;
    is_long.mul_equals(&(&bytes[0] - number(0xf8)), &is_longer)?;
    zero_if(&(&is_long - &is_longer), &(&bytes[1] - length + number(2)))?;
    let two = sum(&cs, [(Fr::from(256u64), &bytes[1]), (Fr::one(), &bytes[2])])?;
    zero_if(&is_longer, &(two - length + number(3)))?;

    // `left` is the number of bytes of the current item that are left after the byte; zero before the first item. It would not return to
    // zero if an item began later than the previous one ends.
    let mut left = constant(Fr::zero());
    let mut ended = ends[0].clone();
    let (mut starts, mut hashes) = (Vec::new(), Vec::new());
    for (at, end) in ends.iter().enumerate().skip(1) {
        // Between the header and the end.
        ended += end;
        let is_inside = match at {
            1 => enable - &is_long - &ended,
            2 => enable - &is_longer - &ended,
            _ => enable - &ended,
        };
        let begins = values.map(|values| values.is_some_and(|values| values.places.contains(&at)));
        let start = context.bit(begins)?;
        zero_if(&start, &left)?;
        zero_if(&start, &(&one - &is_inside))?;
        // 80, or a0 and a hash, or a list of less than 32 bytes.
        let bit = |which| node.bit(context, at, which);
        let low: Vec<Var> = (0..5).map(bit).collect::<Synthesized<_>>()?;
        let low = digits(&cs, 1, &low)?;
        zero_if(&start, &(&one - bit(7)?))?;
        let is_list = &start * bit(6)?;
        let is_hash = &start * bit(5)?;
        zero_if(&is_list, &bit(5)?)?;
        zero_if(&(&start - &is_list), &low)?;
        let in_list = &is_list * &low;
        // Neither empty nor 31 bytes long: a child of 32 bytes would be a hash.
        let some = &low * (&low - number(31));
        let inverse = some.value().ok().map(|some| some.inverse().unwrap_or_default());
        let inverse = inverse.zip(is_list.value().ok()).map(|(inverse, is)| inverse * is);
        some.mul_equals(&witness(&cs, inverse)?, &is_list)?;
        let terms = [
            (Fr::one(), &left),
            (-Fr::one(), &is_inside),
            (Fr::one(), &start),
            (Fr::from(32u64), &is_hash),
            (Fr::one(), &in_list),
        ];
        left = sum(&cs, terms)?;
        starts.push(start);
        hashes.push(is_hash);
    }
    zero_if(&one, &left)?;
    // 17 items, the last of which is empty.
    (enable * number(17)).mul_equals(&one, &total(&cs, &starts)?)?;
    let last = select(&cs, ends[2..].iter().zip(&starts))?;
    last.mul_equals(&one, enable)?;
    let last = select(&cs, ends[2..].iter().zip(&bytes[1..]))?;
    last.mul_equals(&one, &(enable * number(0x80)))?;

    let mut rest = values
        .map(|values| values.map_or(&[][..], |values| values.counts.as_slice()).iter().copied());
    for (at, is_hash) in (1..).zip(&hashes) {
        if at + 33 > BLOCKS * BLOCK {
            zero_if(&one, is_hash)?;
            continue;
        }
        let count = rest.as_mut().map(|rest| match is_hash.value() {
            Ok(is) if is.is_one() => rest.next().unwrap_or(0),
            _ => 0,
        });
        let given = Given {
            low: marked(context, is_hash, &node.half(&cs, at + 1)?)?,
            high: marked(context, is_hash, &node.half(&cs, at + 17)?)?,
            tag: node.tag.clone(),
        };
        give(context, links, &given, count)?;
    }
    node.chain(context, chain, &kind(StringKind::Branch))
}
