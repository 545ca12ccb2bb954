//! Checks that keys belong to a circuit's code. Provers take their matrices from the keys, so keys
//! that were made before a missing constraint was added would continue to prove without it
//! (spec: verifier#type-digests).

use crate::keys::{FamilyKey, KeyFileError, ProverKeys};
use crate::mirage::{ProvingKey, TypeError};
use crate::pool::LocalEngine;
use crate::verifier::verifying_key::KeyType;
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Masking, PreparedCircuit, R1cs, R1csDifference, SynthesizeError, TypeId};

/// The keys do not belong to the circuit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CircuitMismatch {
    /// The keys were made for another circuit or other parameters.
    #[error(
        "the keys are for another layout than the one this circuit has with these parameters \
         (layout digest {expected} in the keys, {found} here): run setup for this circuit"
    )]
    Layout {
        /// Layout digest in the verifying key.
        expected: String,
        /// Layout digest of the circuit.
        found: String,
    },
    /// The keys have other types than the circuit, or types of other sizes.
    #[error("the types of the keys are not those of the circuit: run setup for this circuit")]
    Types,
    /// The keys were made from other code: a type has other constraints now.
    #[error(
        "the keys were made from other code: type '{kind}' has other constraints now \
         ({difference}); run setup again with this code"
    )]
    Constraints {
        /// The type.
        kind: String,
        /// The first difference between them.
        difference: R1csDifference,
    },
    /// The verifying key promises other constraints than the proving key has.
    #[error(
        "the verifying key has another digest for type '{kind}' than the matrices of its proving \
         key: they come from different setups"
    )]
    Digest {
        /// The type.
        kind: String,
    },
    /// The wiring of the keys does not have the digest of the layout in them.
    #[error(
        "the keys claim the layout of this circuit, but have other instances, public wires or \
         constants: do not use them"
    )]
    Wiring,
    /// A type is one that setup would refuse.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The synthesis of a type failed.
    #[error(transparent)]
    Synthesize(#[from] SynthesizeError),
    /// A key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

/// Checks that keys belong to the circuit that the code synthesizes now: the layout, its public wires
/// and constants, and the constraints of each type, row by row. It synthesizes every type once,
/// without a witness, and `at_once` types at the same time: memory grows with it.
///
/// # Errors
/// The first difference.
pub fn check_circuit(
    circuit: &PreparedCircuit<'_>,
    keys: &ProverKeys,
    pool: &LocalEngine,
    at_once: usize,
) -> Result<(), CircuitMismatch> {
    let wiring = keys_match(circuit, keys, pool, at_once)?;
    match have_wiring(keys, &wiring)? {
        true => Ok(()),
        false => Err(CircuitMismatch::Wiring),
    }
}

/// Reports whether the keys have the instances, types, public wires and constants of a wiring, with
/// or without slots. This compares the parts of the key that the verifier reads, and not only the digest of
/// the layout that the key claims.
pub(crate) fn have_wiring(keys: &ProverKeys, wiring: &Wiring) -> Result<bool, KeyFileError> {
    let (vk, n) = (&keys.verifying, wiring.instances());
    Ok(vk.instances == n as u64
        && keys.aggregation.instances() == n
        && keys.aggregation.type_of()? == wiring.type_of
        && vk.type_map == wiring.type_map_digest()
        && vk.has_buses() != wiring.buses.is_empty()
        && keys.aggregation.buses()?.is_some() == vk.has_buses()
        && vk.public == wiring.public
        && vk.constants == wiring.constants)
}

/// [`check_circuit`] without the parts of the key that the verifier reads: returns the wiring, without
/// slots, for [`have_wiring`].
pub(crate) fn keys_match(
    circuit: &PreparedCircuit<'_>,
    keys: &ProverKeys,
    pool: &LocalEngine,
    at_once: usize,
) -> Result<Wiring, CircuitMismatch> {
    let masking = Masking::new(keys.verifying.zero_knowledge);
    let digest = circuit.layout().wiring_digest_on(masking, |list, encode| pool.map(list, encode));
    // The layout fixes addresses and multiplicities, and the keys commit to them: with another
    // layout no proof would verify (spec: memory-check#preprocessed).
    if digest != keys.verifying.layout {
        let (expected, found) = (hex::encode(keys.verifying.layout), hex::encode(digest));
        return Err(CircuitMismatch::Layout { expected, found });
    }
    let wiring = circuit.layout().wiring_without_slots(masking);
    let same = keys.types.len() == wiring.types.len()
        && keys.verifying.types.len() == wiring.types.len()
        && (keys.types.iter().zip(&keys.verifying.types).zip(&wiring.types)).all(
            |((key, vk), kind)| {
                key.slots() == kind.slots && vk.name == kind.name && key.name() == kind.name
            },
        );
    if !same {
        return Err(CircuitMismatch::Types);
    }
    // The constraints of an imported circuit are in its keys only: no code can have changed since.
    if circuit.rows_are_in_keys() {
        return Ok(wiring);
    }
    let types = (circuit.layout().type_ids().zip(&keys.types).zip(&keys.verifying.types))
        .map(|((kind, key), in_vk)| (kind, key, in_vk))
        .collect();
    same_constraints(circuit, masking, types, pool, at_once)?;
    Ok(wiring)
}

/// Checks that the keys of a family belong to the types that the code of a circuit with all of them
/// synthesizes now, row by row, `at_once` types at the same time.
///
/// # Errors
/// The first difference.
pub fn check_family_circuit(
    circuit: &PreparedCircuit<'_>,
    family: &FamilyKey,
    keys: &[ProvingKey],
    pool: &LocalEngine,
    at_once: usize,
) -> Result<(), CircuitMismatch> {
    let (header, layout) = (family.header(), circuit.layout());
    let masking = Masking::new(header.zero_knowledge);
    if keys.len() != header.types.len() {
        return Err(CircuitMismatch::Types);
    }
    let mut types = Vec::with_capacity(keys.len());
    for (key, in_family) in keys.iter().zip(&header.types) {
        let same = |kind: &TypeId| layout.type_name(*kind) == in_family.kind.name;
        let kind = layout.type_ids().find(same).ok_or(CircuitMismatch::Types)?;
        let slots = layout.slots(kind) + masking.slots();
        if (key.name(), key.slots(), in_family.slots) != (&in_family.kind.name, slots, slots) {
            return Err(CircuitMismatch::Types);
        }
        types.push((kind, key, &in_family.kind));
    }
    same_constraints(circuit, masking, types, pool, at_once)
}

/// Compares keys of types with the constraints that the circuit's code has for them.
fn same_constraints(
    circuit: &PreparedCircuit<'_>,
    masking: Masking,
    types: Vec<(TypeId, &ProvingKey, &KeyType)>,
    pool: &LocalEngine,
    at_once: usize,
) -> Result<(), CircuitMismatch> {
    let numbered: Vec<_> = types.into_iter().enumerate().collect();
    let compare = |(kind, key, in_vk): (TypeId, &ProvingKey, &KeyType)| {
        let r1cs = circuit.r1cs(kind, masking)?;
        let kind = || r1cs.name.clone();
        match first_difference(key, &r1cs)? {
            Some(difference) => Err(CircuitMismatch::Constraints { kind: kind(), difference }),
            None if r1cs.digest() != in_vk.r1cs => Err(CircuitMismatch::Digest { kind: kind() }),
            None => Ok(()),
        }
    };
    // One thread for each of the types in memory, because an allocator keeps freed memory for its thread.
    let shares = (0..at_once.clamp(1, numbered.len().max(1))).collect();
    let found = pool.map(shares, |share: usize| {
        let mine = numbered.iter().skip(share).step_by(at_once.max(1));
        mine.map(|(index, kind)| (*index, compare(*kind))).find(|(_, result)| result.is_err())
    });
    let first = found.into_iter().flatten().min_by_key(|(index, _)| *index);
    first.map_or(Ok(()), |(_, result)| result)
}

/// The first difference between the matrices of a key and an R1CS. The key's rows are read one by
/// one, so the matrices are in memory only once.
fn first_difference(key: &ProvingKey, r1cs: &R1cs) -> Result<Option<R1csDifference>, KeyFileError> {
    let matrices = key.matrices()?;
    let shapes = R1csDifference::of_shapes(&key.layout(), &r1cs.layout);
    let (rows, found) = (key.constraints(), r1cs.constraints());
    let sides: Vec<_> = matrices.iter().zip(r1cs.matrices.all()).collect();
    let same = |row: &usize| sides.iter().all(|(m, code)| m.is_same(*row, code, *row));
    let differs = (0..rows.min(found))
        .find(|row| !same(row))
        .or_else(|| (rows != found).then(|| rows.min(found)));
    key.matrices_used();
    Ok(match differs {
        _ if shapes.is_some() => shapes,
        Some(row) => Some(R1csDifference::of_row(&r1cs.layout, row)),
        None if key.variables() != r1cs.variables => {
            Some(R1csDifference::Variables(key.variables(), r1cs.variables))
        }
        None => None,
    })
}
