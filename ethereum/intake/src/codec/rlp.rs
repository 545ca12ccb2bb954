//! Witnesses in RLP, as answers of `engine_newPayloadWithWitness` contain them: the lists `[headers, codes, state]`. Geth adds a list
//! of keys, which is not used.

use crate::values::{JsonError, wrong};
use alloy_rlp::Header as Rlp;
use hekaton_witness_format::{ExecutionWitness, MAX_ITEMS, encode_witness};

/// Reads a witness. Returns it in SSZ, with its items as they came.
///
/// # Errors
/// The fault.
pub fn witness_from_rlp(mut bytes: &[u8]) -> Result<Vec<u8>, JsonError> {
    let mut lists = Rlp::decode_bytes(&mut bytes, true).map_err(not_rlp("witness"))?;
    if !bytes.is_empty() {
        return Err(wrong("witness", format!("{} bytes follow its list", bytes.len())));
    }
    // A header is a list itself; codes and nodes are strings.
    let headers = items(&mut lists, "headers", true)?;
    let codes = items(&mut lists, "codes", false)?;
    let state = items(&mut lists, "state", false)?;
    if !lists.is_empty() {
        Rlp::decode_bytes(&mut lists, true).map_err(not_rlp("keys"))?;
    }
    if !lists.is_empty() {
        return Err(wrong("witness", "it has more than four lists"));
    }
    let [state, codes, headers] = [&state, &codes, &headers].map(|items| items.iter().copied());
    let encoded = encode_witness(state, codes, headers);
    // RLP has no limits: items that are longer than in SSZ are noticed here.
    let checked =
        encoded.and_then(|bytes| ExecutionWitness::decode(&bytes).map(|_| ()).map(|()| bytes));
    checked.map_err(|error| wrong("witness", error.to_string()))
}

/// Reads the next list, whose items are lists, which are returned whole, or strings.
fn items<'a>(
    lists: &mut &'a [u8],
    part: &'static str,
    are_lists: bool,
) -> Result<Vec<&'a [u8]>, JsonError> {
    let mut rest = Rlp::decode_bytes(lists, true).map_err(not_rlp(part))?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        // An item may have one byte, and takes 16 times as much here.
        if found.len() == MAX_ITEMS {
            return Err(wrong(part, format!("more than {MAX_ITEMS} items")));
        }
        let whole = rest;
        let Rlp { list, payload_length } = Rlp::decode(&mut rest).map_err(not_rlp(part))?;
        if list != are_lists {
            let [is, expected] = if list { ["list", "string"] } else { ["string", "list"] };
            let why = format!("item {} is a {is}, expected a {expected}", found.len());
            return Err(wrong(part, why));
        }
        let (payload, after) = rest.split_at(payload_length);
        found.push(if list { &whole[..whole.len() - after.len()] } else { payload });
        rest = after;
    }
    Ok(found)
}

fn not_rlp(part: &'static str) -> impl Fn(alloy_rlp::Error) -> JsonError {
    move |error| wrong(part, format!("not strict RLP: {error}"))
}

/// Returns a witness in RLP, with an empty list of keys, as in Geth.
pub fn witness_to_rlp(witness: &ExecutionWitness<'_>) -> Vec<u8> {
    let list = |inside: Vec<u8>| {
        let mut bytes = Vec::with_capacity(inside.len() + 9);
        Rlp { list: true, payload_length: inside.len() }.encode(&mut bytes);
        bytes.extend(inside);
        bytes
    };
    let strings = |items: hekaton_witness_format::ssz::Items<'_>| {
        list(items.iter().flat_map(alloy_rlp::encode).collect())
    };
    let headers = list(witness.headers.iter().flatten().copied().collect());
    let (codes, state) = (strings(witness.codes), strings(witness.state));
    list([headers, codes, state, list(vec![])].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in::Block;

    #[test]
    fn witnesses_in_rlp_are_strict() {
        let block = Block::new(1, 2, 20_000);
        let encoded = witness_to_rlp(&block.witness());
        assert_eq!(witness_from_rlp(&encoded).unwrap(), block.witness);
        let mut lists = Rlp::decode_bytes(&mut &encoded[..], true).unwrap();
        let mut part = || {
            let before = lists;
            Rlp::decode_bytes(&mut lists, true).unwrap();
            before[..before.len() - lists.len()].to_vec()
        };
        let [headers, codes, state, keys] = [part(), part(), part(), part()];
        let of = |lists: &[&[u8]]| {
            let inside = lists.concat();
            let mut bytes = Vec::new();
            Rlp { list: true, payload_length: inside.len() }.encode(&mut bytes);
            witness_from_rlp(&[bytes, inside].concat())
        };
        // The keys may be absent, or there, and are not looked at.
        assert_eq!(of(&[&headers, &codes, &state]).unwrap(), block.witness);
        assert_eq!(of(&[&headers, &codes, &state, &[0xc1, 5]]).unwrap(), block.witness);
        assert_eq!(of(&[&headers, &codes, &state, &[0xc1, 0x82]]).unwrap(), block.witness);
        let mut many = Vec::new();
        Rlp { list: true, payload_length: MAX_ITEMS + 1 }.encode(&mut many);
        many.resize(many.len() + MAX_ITEMS + 1, 5);
        for (found, why) in [
            (of(&[&headers, &codes]), "state: not strict RLP"),
            (of(&[&codes, &headers, &state]), "headers: item 0 is a string, expected a list"),
            (of(&[&headers, &headers, &state]), "codes: item 0 is a list, expected a string"),
            (of(&[&headers, &codes, &state, &keys, &keys]), "more than four lists"),
            (of(&[&headers, &codes, &[0x80]]), "state: not strict RLP"),
            (of(&[&headers, &codes, &state, &[0x80]]), "keys: not strict RLP"),
            (of(&[&headers, &codes, &many]), "state: more than 1048576 items"),
            (of(&[&headers, &[0xc2, 0x81, 5], &state]), "codes: not strict RLP"),
            (of(&[&headers, &[0xc1, 0x82], &state]), "codes: not strict RLP"),
            (witness_from_rlp(&[&encoded[..], &[0]].concat()), "1 bytes follow"),
            (witness_from_rlp(&encoded[..encoded.len() - 1]), "witness: not strict RLP"),
            (witness_from_rlp(&[]), "witness: not strict RLP"),
        ] {
            let error = found.unwrap_err().to_string();
            assert!(error.contains(why), "{error}\nand not: {why}");
        }
    }
}
