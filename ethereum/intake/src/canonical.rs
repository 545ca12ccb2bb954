//! Brings a witness into its canonical form: one rule for all sources.
//!
//! Nodes of the execution layer also send the empty node, the empty code, and nodes and codes that the block itself creates; some
//! send items unsorted or twice. The canonical form (execution-apis 847) excludes all of that: a stateless execution starts
//! without such items, and the circuit has no place for them.

use crate::check::{CheckError, Summary, check_headers, check_witness};
use hekaton_witness_format::header::BlockHeader;
use hekaton_witness_format::walk::{Digests, Walk};
use hekaton_witness_format::{EMPTY_NODE, ExecutionWitness, encode_witness, keccak};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The items that a canonical witness does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Empty nodes and empty codes.
    pub empty: usize,
    /// Nodes and codes that occur more than once.
    pub repeats: usize,
    /// Nodes that are not reachable from the root of the parent's state: the block creates them.
    pub nodes: usize,
    /// Codes that no account of the witness refers to: the block creates them.
    pub codes: usize,
}

impl LeftOut {
    /// Reports whether nothing was left out.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { empty, repeats, nodes, codes } = self;
        write!(
            f,
            "{empty} empty items, {repeats} repeats, {nodes} nodes that are not reached, {codes} codes of no account"
        )
    }
}

/// The strictness of the checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Bring witnesses into canonical form instead of refusing those that are not in it.
    pub lenient: bool,
}

/// A witness that was checked.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The counts of its items.
    pub summary: Summary,
    /// The canonical form; `None` if the witness is already in it.
    pub changed: Option<Vec<u8>>,
    /// The items that were left out of it.
    pub left_out: LeftOut,
}

/// Checks a witness for the block with this parent hash and height, and converts it to canonical form if the options allow that.
///
/// # Errors
/// The first check that fails.
pub fn admit(
    witness: &ExecutionWitness<'_>,
    parent: [u8; 32],
    number: u64,
    options: Options,
) -> Result<Admitted, CheckError> {
    let strict = check_witness(witness, parent, number);
    match strict {
        // The strict check comes first: a witness that passes it is stored as it came, without a copy.
        Err(_) if options.lenient => {
            let (bytes, left_out) = canonical(witness, parent)?;
            let witness = decode(&bytes)?;
            // The result is checked like any other witness, so that leaving items out cannot bypass a
            // check.
            let summary = check_witness(&witness, parent, number)?;
            Ok(Admitted { summary, changed: Some(bytes), left_out })
        }
        strict => Ok(Admitted { summary: strict?, changed: None, left_out: LeftOut::default() }),
    }
}

/// Makes the canonical form of a witness, and counts the items that are left out.
fn canonical(
    witness: &ExecutionWitness<'_>,
    parent: [u8; 32],
) -> Result<(Vec<u8>, LeftOut), CheckError> {
    let mut left_out = LeftOut::default();
    let mut headers: Vec<&[u8]> = witness.headers.iter().collect();
    // Headers that cannot be read come first. They are refused below, with their index.
    headers.sort_by_cached_key(|header| BlockHeader::read(header).ok().map(|it| it.number));
    let mut sort = |items: &mut Vec<&[u8]>, empty: &[u8]| {
        let all = items.len();
        items.retain(|item| *item != empty && !item.is_empty());
        let some = items.len();
        items.sort_unstable();
        items.dedup();
        left_out.empty += all - some;
        left_out.repeats += some - items.len();
    };
    let mut state: Vec<&[u8]> = witness.state.iter().collect();
    let mut codes: Vec<&[u8]> = witness.codes.iter().collect();
    // Sorted and without repeats before the walk, which looks nodes up by their digests.
    sort(&mut state, EMPTY_NODE);
    sort(&mut codes, &[]);
    let encoded = encode(&state, &codes, &headers)?;
    let sorted = decode(&encoded)?;
    let (root, _) = check_headers(&sorted.headers, parent)?;
    let nodes = Digests::of(&sorted.state);
    let Walk { reached, codes: named, .. } =
        Walk::from_root(&sorted.state, &nodes, root, |_, _, _| {})?;
    let needed = state.into_iter().zip(&reached).filter(|(_, depths)| **depths != [None; 2]);
    let state: Vec<&[u8]> = needed.map(|(node, _)| node).collect();
    left_out.nodes = reached.len() - state.len();
    let all = codes.len();
    codes.retain(|code| named.contains(&keccak(code)));
    left_out.codes = all - codes.len();
    Ok((encode(&state, &codes, &headers)?, left_out))
}

fn encode(state: &[&[u8]], codes: &[&[u8]], headers: &[&[u8]]) -> Result<Vec<u8>, CheckError> {
    let [state, codes, headers] = [state, codes, headers].map(|items| items.iter().copied());
    let encoded = encode_witness(state, codes, headers);
    encoded.map_err(|error| CheckError::Encoding(error.to_string()))
}

/// Reads a witness that was just encoded: it has at most as many items, of at most the same lengths, as the one that came.
fn decode(bytes: &[u8]) -> Result<ExecutionWitness<'_>, CheckError> {
    ExecutionWitness::decode(bytes).map_err(|error| CheckError::Encoding(error.to_string()))
}
