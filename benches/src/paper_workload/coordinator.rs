//! The work of the paper's coordinator between the rounds, and its messages. Ours does nothing: the
//! challenges are all that it sends.

use super::Error;
use super::r1cs::{POSEIDON, ProveRequest};
use ark_crypto_primitives::crh::TwoToOneCRHScheme;
use ark_crypto_primitives::crh::poseidon::TwoToOneCRH;
use ark_ff::Field;
use hekaton_arith::{Fr, fr_to_bytes, powers};

/// An access to a shared wire.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The position in the trace, below 2^48.
    pub time: u64,
    /// The address of the wire.
    pub address: u64,
    /// Its value.
    pub value: Fr,
}

/// The data that is ready after the work between the rounds.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The request of each subcircuit.
    pub requests: Vec<ProveRequest>,
    /// The number of hashes computed.
    pub hashes: usize,
    /// The last values of the two running products, equal for a valid memory.
    pub products: [Fr; 2],
}

/// A trace of `subcircuits * occurrences` accesses, two to each address, far from each other.
#[allow(clippy::cast_possible_truncation, reason = "a remainder of division by a usize")]
pub fn trace(subcircuits: usize, occurrences: usize) -> Vec<Access> {
    let n = subcircuits * occurrences;
    let values = powers(Fr::from(u128::MAX - 232).square(), n.div_ceil(2) + 1);
    // A prime spreads the times over all addresses unless it divides their number.
    let wire = |time: usize| (time as u128 * 2_654_435_761 % n as u128) as usize / 2;
    let access = |time: usize| Access {
        time: time as u64,
        address: wire(time) as u64 + 1,
        value: values[wire(time)],
    };
    (0..n).map(access).collect()
}

fn hash(hashes: &mut usize, left: Fr, right: Fr) -> Result<Fr, Error> {
    *hashes += 1;
    TwoToOneCRH::<Fr>::compress(&POSEIDON, left, right).map_err(|e| e.to_string().into())
}

/// The running products of a trace after each `occurrences` accesses, one factor at a time.
fn products(trace: &[Access], occurrences: usize, [alpha, beta]: [Fr; 2]) -> Vec<Fr> {
    let mut product = Fr::ONE;
    let mut after = Vec::new();
    for part in trace.chunks(occurrences) {
        for access in part {
            product *= alpha - Fr::from(access.address) - beta * access.value;
        }
        after.push(product);
    }
    after
}

/// The levels of a Merkle tree, leaves first. The number of leaves is a power of two.
fn tree(leaves: Vec<Fr>, hashes: &mut usize) -> Result<Vec<Vec<Fr>>, Error> {
    let mut levels = vec![leaves];
    while let Some(level) = levels.last().filter(|level| level.len() > 1) {
        let pairs = level.as_chunks::<2>().0.iter();
        let next =
            pairs.map(|[left, right]| hash(hashes, *left, *right)).collect::<Result<_, _>>()?;
        levels.push(next);
    }
    Ok(levels)
}

/// The siblings on the path of a leaf.
fn path(levels: &[Vec<Fr>], leaf: usize) -> Vec<Fr> {
    let siblings = levels.iter().enumerate().filter(|(_, level)| level.len() > 1);
    siblings.map(|(depth, level)| level[(leaf >> depth) ^ 1]).collect()
}

/// Sorts the trace, computes both running products, hashes their values after each subcircuit into
/// a tree, and collects two paths for each.
///
/// # Errors
/// If a hash fails, or the number of subcircuits is not a power of two.
pub fn between_rounds(trace: &[Access], occurrences: usize) -> Result<Prepared, Error> {
    let challenges = [Fr::from(u128::MAX).square(), Fr::from(u128::MAX - 4).square()];
    let mut sorted = trace.to_vec();
    sorted.sort_by_key(|access| access.address);
    let [by_slot, by_address] =
        [trace, &sorted].map(|trace| products(trace, occurrences, challenges));
    if !by_slot.len().is_power_of_two() {
        return Err("the number of subcircuits must be a power of two".into());
    }
    let mut hashes = 0;
    // One permutation per leaf. The last entries of the traces, which are in a leaf as well, are
    // left out: the paper's hashing takes no less.
    let pairs = by_slot.iter().zip(&by_address);
    let leaves = pairs.map(|(a, b)| hash(&mut hashes, *a, *b)).collect::<Result<Vec<_>, _>>()?;
    let levels = tree(leaves, &mut hashes)?;
    // leaf 0, which holds the public values
    std::hint::black_box(hash(&mut hashes, challenges[0], levels[levels.len() - 1][0])?);
    let request = |i: usize| {
        let before = match i.checked_sub(1) {
            None => [Fr::ONE, Fr::ONE, Fr::default(), Fr::default()],
            Some(last) => {
                let access = &sorted[i * occurrences - 1];
                [by_slot[last], by_address[last], access.address.into(), access.value]
            }
        };
        let paths = [path(&levels, i.saturating_sub(1)), path(&levels, i)];
        ProveRequest { challenges, before, paths }
    };
    let requests = (0..by_slot.len()).map(request).collect();
    let products = [by_slot, by_address].map(|p| p.last().copied().unwrap_or_default());
    Ok(Prepared { requests, hashes, products })
}

/// The encoding of the request of the commit round: the subtrace in both orders, 46 bytes per
/// entry. The paper states 923 kB at 10,000 occurrences, 92 bytes each and some for the rest.
pub fn commit_request(by_slot: &[Access], by_address: &[Access]) -> Vec<u8> {
    let entry = |access: &Access| {
        let mut out = access.time.to_le_bytes()[..6].to_vec();
        out.extend(access.address.to_le_bytes());
        out.extend(fr_to_bytes(&access.value));
        out
    };
    by_slot.iter().chain(by_address).flat_map(entry).collect()
}

/// The encoding of the request of the prove round: the challenges, the state before and after, and
/// the path of one leaf. Table 2 of the paper grows by one node for each doubling, so the second
/// path must share its nodes; the root follows from a path.
pub fn prove_request(request: &ProveRequest, after: &[Fr; 4]) -> Vec<u8> {
    let states = request.before.iter().chain(after);
    let scalars = request.challenges.iter().chain(states).chain(&request.paths[1]);
    // whether a path follows
    std::iter::once(1).chain(scalars.flat_map(fr_to_bytes)).collect()
}
