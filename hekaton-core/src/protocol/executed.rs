//! The execution of a circuit as the coordinator has it: all values, or only a summary of
//! values that are on ranks (spec: distributed#slices).

use crate::pool::LocalEngine;
use crate::verifier::verifying_key::VerifyingKey;
use hekaton_arith::{Fr, fr_to_bytes};
use hekaton_circuit::{
    CircuitError, Counts, Execution, ExecutionError, InstanceId, Layout, Masking, PreparedCircuit,
    PrivateInput,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, RwLock};

/// The digest of the values in the slots of one instance, masks excluded, and with buses of its private
/// input. **Keep it secret**: it can confirm a guess of the values.
pub(crate) type InstanceDigest = [u8; 32];

/// The number of instances per task of the pool, where all there is to do is to hash values.
const AT_ONCE: usize = 256;

/// The same where private inputs are made, which may take as long as a subcircuit's witness.
const AT_ONCE_WITH_INPUTS: usize = 4;

/// The location of the values of an execution.
pub(crate) enum Values<'c> {
    /// In this process, all of them.
    Here(Box<Execution<'c>>),
    /// On ranks. Those of single instances can be computed again.
    OnRanks(OnRanks<'c>),
}

/// An execution on ranks, as seen by rank 0.
pub(crate) struct OnRanks<'c> {
    pub(crate) circuit: &'c PreparedCircuit<'c>,
    /// The number of look-ups of each row of each table, once that is known.
    pub(crate) counts: RwLock<Option<Arc<Counts>>>,
}

impl<'c> OnRanks<'c> {
    pub(crate) fn new(circuit: &'c PreparedCircuit<'c>) -> Self {
        Self { circuit, counts: RwLock::default() }
    }
}

/// An executed circuit.
pub(crate) struct Executed<'c> {
    pub(crate) values: Values<'c>,
    /// The public values.
    pub(crate) public: Vec<Fr>,
    /// The digest of each instance.
    pub(crate) digests: Vec<InstanceDigest>,
}

impl<'c> Executed<'c> {
    /// Executes the whole circuit in this process. Look-ups are counted in the commit round.
    pub(crate) fn here(
        circuit: &'c PreparedCircuit<'c>,
        pool: &LocalEngine,
    ) -> Result<Self, ExecutionError> {
        let layout = circuit.layout();
        let execution = circuit.execute_uncounted()?;
        let public = execution.public(layout);
        let each = in_chunks(layout, 0..layout.instances(), pool, |range| {
            ids(range).map(|id| digest(circuit, &execution, id)).collect::<Result<Vec<_>, _>>()
        });
        let digests = each.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Self { values: Values::Here(Box::new(execution)), public, digests })
    }
}

/// The instance at an index below n.
#[allow(clippy::cast_possible_truncation, reason = "layouts have at most 2^31 instances")]
pub(crate) fn instance_id(instance: usize) -> InstanceId {
    InstanceId::from_index(instance as u32)
}

/// The instances of a range.
fn ids(range: Range<usize>) -> impl Iterator<Item = InstanceId> {
    range.map(instance_id)
}

/// Maps chunks of a range of instances on the pool.
fn in_chunks<R: Send>(
    layout: &Layout,
    range: Range<usize>,
    pool: &LocalEngine,
    f: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let at_once = if layout.has_buses() { AT_ONCE_WITH_INPUTS } else { AT_ONCE };
    let starts: Vec<usize> = range.clone().step_by(at_once).collect();
    pool.map(starts, |start| f(start..range.end.min(start + at_once)))
}

/// The digest of the values in an instance's slots. How many there are follows from the layout.
pub(crate) fn digest_of(values: &[Fr]) -> InstanceDigest {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v3 values of an instance");
    for value in values {
        hasher.update(&fr_to_bytes(value));
    }
    *hasher.finalize().as_bytes()
}

/// The digest of all that an instance's marked values follow from: [`digest_of`], and in circuits with
/// buses the private input, since entries contain values that follow from it; masks must not be the same
/// for two of them (spec: zero-knowledge#randomness). Those of tables follow from all others.
pub(crate) fn digest_with(
    circuit: &PreparedCircuit<'_>,
    instance: InstanceId,
    values: &[Fr],
    private: &PrivateInput,
) -> Result<InstanceDigest, ExecutionError> {
    let (layout, of_values) = (circuit.layout(), digest_of(values));
    if !has_private_digest(layout, instance) {
        return Ok(of_values);
    }
    let bytes = circuit.encode_private(private).map_err(|why| {
        let kind = layout.type_name(layout.type_of(instance)).to_owned();
        let error = CircuitError::from(format!("cannot encode it: {why}"));
        ExecutionError::PrivateInput { instance: instance.index(), kind, error }
    })?;
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v4 values and input of an instance");
    hasher.update(&of_values).update(&bytes);
    Ok(*hasher.finalize().as_bytes())
}

/// Reports whether the digest of an instance also covers its private input.
fn has_private_digest(layout: &Layout, instance: InstanceId) -> bool {
    layout.has_buses() && !layout.is_table(instance)
}

/// The digest of an instance of an execution.
pub(crate) fn digest(
    circuit: &PreparedCircuit<'_>,
    execution: &Execution<'_>,
    instance: InstanceId,
) -> Result<InstanceDigest, ExecutionError> {
    let layout = circuit.layout();
    let values = execution.values.slots(layout, instance);
    match has_private_digest(layout, instance) {
        false => Ok(digest_of(&values)),
        true => {
            let private = execution.private_input(layout, instance)?;
            digest_with(circuit, instance, &values, &private)
        }
    }
}

/// A digest of everything that masks hide: the verifying key, the values of all slots, also of those
/// without a wire, and with buses the private inputs, from which all marked values follow
/// (spec: zero-knowledge#randomness).
pub(crate) fn execution_digest(key_digest: &[u8; 32], digests: &[InstanceDigest]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v3 execution");
    hasher.update(key_digest);
    // The layout is bound by the key, so the number of instances is known.
    for digest in digests {
        hasher.update(digest);
    }
    *hasher.finalize().as_bytes()
}

/// A rank's report on the execution of its slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SliceSummary {
    /// The balance of the slice's accesses: the balances of all slices and of the verifier sum to
    /// zero if all of them have the same value for each wire.
    pub(crate) balance: u128,
    /// The values of the public wires in its slots, by their position among the public values.
    pub(crate) public: Vec<(u32, Fr)>,
    /// The digest of each of its instances.
    pub(crate) digests: Vec<InstanceDigest>,
}

impl SliceSummary {
    /// Summarizes the execution of a range of instances. The key of the balance is drawn by rank 0
    /// for each run.
    pub(crate) fn new(
        circuit: &PreparedCircuit<'_>,
        execution: &Execution<'_>,
        range: Range<usize>,
        key: &[u8; 32],
        pool: &LocalEngine,
    ) -> Result<Self, ExecutionError> {
        let layout = circuit.layout();
        let places = layout.public_wires().zip(0u32..).collect::<HashMap<_, _>>();
        let of_chunk = |range: Range<usize>| -> Result<Self, ExecutionError> {
            let mut part = Self { balance: 0, public: Vec::new(), digests: Vec::new() };
            for id in ids(range) {
                let values = execution.values.slots(layout, id);
                let accesses = layout.accesses(id, Masking::Unmasked);
                for (access, value) in accesses.iter().zip(&values) {
                    let term = balance(key, access.address, access.multiplicity, value);
                    part.balance = part.balance.wrapping_add(term);
                }
                for (wire, value) in layout.wires_of(id).zip(&values) {
                    if let Some(place) = wire.and_then(|wire| places.get(&wire)) {
                        part.public.push((*place, *value));
                    }
                }
                part.digests.push(digest(circuit, execution, id)?);
            }
            Ok(part)
        };
        let mut all = Self { balance: 0, public: Vec::new(), digests: Vec::new() };
        for chunk in in_chunks(layout, range, pool, of_chunk) {
            let part = chunk?;
            all.balance = all.balance.wrapping_add(part.balance);
            all.public.extend(part.public);
            all.digests.extend(part.digests);
        }
        // A wire may be in many slots of one slice, where it has one value.
        all.public.sort_unstable_by_key(|(place, _)| *place);
        all.public.dedup();
        Ok(all)
    }
}

/// The term of one access in a balance (spec: distributed#slices): the multiplicity times a keyed
/// hash of address and value. Over a star of accesses to one value, the terms cancel; over different
/// values they do not, except with probability 2^-96. It finds faults, and proves nothing.
pub(crate) fn balance(key: &[u8; 32], address: u64, multiplicity: i64, value: &Fr) -> u128 {
    if multiplicity == 0 {
        return 0;
    }
    let mut bytes = [0; 40];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..].copy_from_slice(&fr_to_bytes(value));
    let mut half = [0; 16];
    half.copy_from_slice(&blake3::keyed_hash(key, &bytes).as_bytes()[..16]);
    #[allow(clippy::cast_sign_loss, reason = "the sum is modulo 2^128")]
    let multiplicity = i128::from(multiplicity) as u128;
    u128::from_le_bytes(half).wrapping_mul(multiplicity)
}

/// The verifier's own term of the balance: its accesses to public wires and constants.
pub(crate) fn balance_of_verifier(key: &[u8; 32], vk: &VerifyingKey, public: &[Fr]) -> u128 {
    let public = (vk.public.iter().zip(public))
        .map(|(wire, value)| balance(key, wire.address, wire.multiplicity, value));
    let constants =
        vk.constants.iter().map(|wire| balance(key, wire.address, wire.multiplicity, &wire.value));
    public.chain(constants).fold(0, u128::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(key: u8, accesses: &[(u64, i64, u64)]) -> u128 {
        let term = |(address, multiplicity, value): &(u64, i64, u64)| {
            balance(&[key; 32], *address, *multiplicity, &Fr::from(*value))
        };
        accesses.iter().map(term).fold(0, u128::wrapping_add)
    }

    #[test]
    fn balances_of_stars_with_one_value_are_zero() {
        let star = [(1, 3, 7), (1, -1, 7), (1, -1, 7), (1, -1, 7), (2, 1, 7), (2, -1, 7)];
        assert_eq!(sum(1, &star), 0);
        let mut order = star;
        order.reverse();
        assert_eq!(sum(1, &order), 0);
        // A slot without a wire may have any value.
        assert_eq!(sum(1, &[(0, 0, 9)]), 0);
        for (place, _) in star.iter().enumerate() {
            let mut other = star;
            other[place].2 = 8;
            assert_ne!(sum(1, &other), 0, "{place}");
        }
        // Two wires with each other's values.
        assert_ne!(sum(1, &[(1, 1, 7), (1, -1, 8), (2, 1, 8), (2, -1, 7)]), 0);
        let largest = (1 << 32) - 1;
        assert_ne!(sum(1, &[(1, largest, 7), (1, -largest, 8)]), 0);
        assert_eq!(sum(1, &[(1, largest, 7), (1, -largest, 7)]), 0);
        // Each run has a key of its own, so that values that cancel cannot be prepared.
        assert_ne!(sum(1, &star[..1]), sum(2, &star[..1]));
    }
}
