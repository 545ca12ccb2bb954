//! A branch some of whose children are inside it: its items may have any length, so its bytes are examined one by one.

use crate::blocks::{BLOCK, Context, marked};
use crate::branch::BLOCKS;
use crate::chain::{ChainVar, StringKind};
use crate::forms::{
    Synthesized, Var, big_endian, constant, digits, inverse_or_zero, select, sum, total, witness,
    zero_if,
};
use crate::node::{Given, Node, StringValues, give, kind};
use ark_ff::{One, Zero};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::FieldVar;
use hekaton_circuit::{BusId, Fr};

/// Lengths from which the list's header has two and three bytes.
const LONG: usize = 58;
const LONGER: usize = 259;

fn number(value: usize) -> Var {
    constant(Fr::from(value as u64))
}

/// Constrains a branch, which gives the digests of those of its children that are hashes (spec: witness#mixed).
pub(crate) fn mixed(
    context: Context<'_>,
    links: BusId,
    values: Option<Option<&StringValues>>,
    chain: ChainVar,
) -> Synthesized<ChainVar> {
    let node = Node::new(context, links, values, BLOCKS)?;
    let lengths = list_header(context, &node)?;
    let items = items(context, &node, &lengths, values)?;
    end(context, &node, &items.starts)?;
    let mut rest = values
        .map(|values| values.map_or(&[][..], |values| values.counts.as_slice()).iter().copied());
    for (at, is_hash) in (1..).zip(&items.hashes) {
        // A hash cannot begin where the largest branch has no room for one.
        if at + 33 > BLOCKS * BLOCK {
            zero_if(&FieldVar::one(), is_hash)?;
            continue;
        }
        // The prover's counts are those of hashes alone, in order.
        let count = rest.as_mut().map(|rest| match is_hash.value() {
            Ok(is) if is.is_one() => rest.next().unwrap_or(0),
            _ => 0,
        });
        let cs = context.subcircuit.cs();
        let given = Given {
            low: marked(context, is_hash, &node.half(&cs, at + 1)?)?,
            high: marked(context, is_hash, &node.half(&cs, at + 17)?)?,
            tag: node.tag.clone(),
        };
        give(context, links, &given, count)?;
    }
    node.chain(context, chain, &kind(StringKind::Branch))
}

/// The length of a list's header as two bits: the first is 1 for at least two bytes, the second for three.
struct HeaderLength {
    is_long: Var,
    is_longer: Var,
}

/// Reads the header of the list, which must say the length that the padding fixes.
fn list_header(context: Context<'_>, node: &Node) -> Synthesized<HeaderLength> {
    let (cs, bytes, length) = (context.subcircuit.cs(), &node.bytes, &node.length);
    let (is_long, is_longer) = (node.is_at_least(&cs, LONG)?, node.is_at_least(&cs, LONGER)?);
    // No list has 57 or 258 bytes: with its payload, its header grows.
    zero_if(&FieldVar::one(), &total(&cs, [&node.ends[LONG - 1], &node.ends[LONGER - 1]])?)?;
    node.has_short_header(&is_long)?;
    is_long.mul_equals(&(&bytes[0] - number(0xf8)), &is_longer)?;
    zero_if(&(&is_long - &is_longer), &(&bytes[1] - length + number(2)))?;
    let two = big_endian(&cs, [&bytes[1], &bytes[2]])?;
    zero_if(&is_longer, &(two - length + number(3)))?;
    Ok(HeaderLength { is_long, is_longer })
}

/// For each byte but the first one, bits that say whether an item or a hash starts there.
struct Items {
    starts: Vec<Var>,
    hashes: Vec<Var>,
}

/// Reads the items: each starts where the previous one ends, from the end of the header to the end of the node.
fn items(
    context: Context<'_>,
    node: &Node,
    header: &HeaderLength,
    values: Option<Option<&StringValues>>,
) -> Synthesized<Items> {
    let (cs, enable, one): (_, _, Var) =
        (context.subcircuit.cs(), node.enable.variable(), FieldVar::one());
    // `left` is the number of bytes of the current item that are left after the byte; zero before the first item. It would not return to
    // zero if an item began later than the previous one ends.
    let mut left = constant(Fr::zero());
    let mut ended = node.ends[0].clone();
    let mut items = Items { starts: Vec::new(), hashes: Vec::new() };
    for (at, end) in node.ends.iter().enumerate().skip(1) {
        // Between the header and the end.
        ended += end;
        let is_inside = match at {
            1 => enable - &header.is_long - &ended,
            2 => enable - &header.is_longer - &ended,
            _ => enable - &ended,
        };
        let begins = values.map(|values| values.is_some_and(|values| values.places.contains(&at)));
        let start = context.bit(begins)?;
        zero_if(&start, &left)?;
        zero_if(&start, &(&one - &is_inside))?;
        let item = item(context, node, at, &start)?;
        let terms = [
            (Fr::one(), &left),
            (-Fr::one(), &is_inside),
            (Fr::one(), &start),
            (Fr::from(32u64), &item.is_hash),
            (Fr::one(), &item.in_list),
        ];
        left = sum(&cs, terms)?;
        items.starts.push(start);
        items.hashes.push(item.is_hash);
    }
    zero_if(&one, &left)?;
    Ok(items)
}

/// The first byte of an item.
struct Item {
    is_hash: Var,
    /// The number of bytes in it, if it is a list.
    in_list: Var,
}

/// Reads the first byte of an item, if one starts there: 80, or a0 and a hash, or a list of less than 32 bytes.
fn item(context: Context<'_>, node: &Node, at: usize, start: &Var) -> Synthesized<Item> {
    let (cs, one): (_, Var) = (context.subcircuit.cs(), FieldVar::one());
    let bit = |which| node.bit(context, at, which);
    let low_bits = (0..5).map(bit).collect::<Synthesized<Vec<Var>>>()?;
    let low = digits(&cs, 1, &low_bits)?;
    zero_if(start, &(&one - bit(7)?))?;
    let is_list = start * bit(6)?;
    let is_hash = start * bit(5)?;
    // From e0 on, a list has 32 bytes or more; one with a header of several bytes has even more.
    zero_if(&is_list, &bit(5)?)?;
    zero_if(&(start - &is_list), &low)?;
    let in_list = &is_list * &low;
    // Neither empty nor 31 bytes long: a child of 32 bytes would be a hash.
    let some = &low * (&low - number(31));
    let inverse = inverse_or_zero(&some);
    let given = inverse.zip(is_list.value().ok()).map(|(inverse, is_list)| inverse * is_list);
    some.mul_equals(&witness(&cs, given)?, &is_list)?;
    Ok(Item { is_hash, in_list })
}

/// Counts the items: 17, the last of which is empty, since tries of the state have no values in branches.
fn end(context: Context<'_>, node: &Node, starts: &[Var]) -> Synthesized {
    let (cs, enable, one) = (context.subcircuit.cs(), node.enable.variable(), FieldVar::one());
    (enable * number(17)).mul_equals(&one, &total(&cs, starts)?)?;
    // The last byte is the one before the end, so the item that starts there is the last one.
    let starts_last = select(&cs, node.ends[2..].iter().zip(starts))?;
    starts_last.mul_equals(&one, enable)?;
    let last = select(&cs, node.ends[2..].iter().zip(&node.bytes[1..]))?;
    last.mul_equals(&one, &(enable * number(0x80)))
}
