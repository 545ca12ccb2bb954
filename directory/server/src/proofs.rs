//! Proofs of epochs. They come after their epochs are visible, and are attached in the order of epochs, without gaps.

use super::damaged::Damaged;
use super::error::Error;
use super::rows::{self, LAST};
use super::store::{Rows, Store, Table};
use super::time::fail_point;
use super::view::witness;
use hekaton_directory::{AuditError, EpochProof, Reader, Record, Step};
use sha2::{Digest as _, Sha256};
use std::ops::ControlFlow;

type Rejection = Box<dyn std::error::Error + Send + Sync>;

/// The last epoch up to which all are proven; 0 if none is.
pub(crate) fn proven(store: &dyn Store) -> Result<u32, Error> {
    match store.last(Table::Proof)? {
        None => Ok(0),
        Some(key) => Ok(epoch_of(&key)?),
    }
}

fn epoch_of(key: &[u8]) -> Result<u32, Damaged> {
    let digits = key.try_into();
    let bytes = digits.map_err(|_| Damaged::new(Table::Proof, key, "its key is no epoch"))?;
    Ok(u32::from_be_bytes(bytes))
}

pub(crate) fn encode(proof: &EpochProof) -> Vec<u8> {
    let mut out = proof.from.to_be_bytes().to_vec();
    out.extend(proof.subcircuits.to_be_bytes());
    out.extend(&proof.proof);
    // Nothing else here checks that the row is what was attached.
    let checksum = Sha256::digest(&out);
    out.extend(checksum);
    out
}

fn decode(key: &[u8], value: &[u8]) -> Result<EpochProof, Damaged> {
    let to = epoch_of(key)?;
    let damaged = |why: &dyn std::fmt::Display| Damaged::new(Table::Proof, key, why);
    let split = value.split_last_chunk::<32>();
    let (bytes, checksum) = split.ok_or_else(|| damaged(&"it is too short"))?;
    if Sha256::digest(bytes)[..] != checksum[..] {
        return Err(damaged(&"it has another checksum"));
    }
    let mut reader = Reader::new(bytes);
    let from = reader.u32("epoch before").map_err(|error| damaged(&error))?;
    let subcircuits = reader.u32("number of subcircuits").map_err(|error| damaged(&error))?;
    match from < to {
        true => Ok(EpochProof { from, to, subcircuits, proof: reader.rest().to_vec() }),
        false => Err(damaged(&format_args!("it is from epoch {from}"))),
    }
}

/// Visits proofs in the order of epochs: from the one that proves an epoch on, or the next one.
fn visit(
    store: &dyn Store,
    epoch: u32,
    mut visit: impl FnMut(EpochProof) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut failed = None;
    store.scan(Table::Proof, &epoch.to_be_bytes(), &LAST, &mut |key, value| match decode(
        key, value,
    ) {
        Ok(proof) => visit(proof),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// The proof of an epoch, if it is proven.
pub(crate) fn proof_of(store: &dyn Store, epoch: u32) -> Result<Option<EpochProof>, Error> {
    let mut found = None;
    visit(store, epoch, |proof| {
        found = Some(proof);
        ControlFlow::Break(())
    })?;
    Ok(found.filter(|proof| proof.from < epoch))
}

/// Lists the epochs of proofs, starting with the one that proves `epoch`: the epoch before the first one, and the last
/// one.
pub(crate) fn ranges(store: &dyn Store, epoch: u32, most: usize) -> Result<Vec<(u32, u32)>, Error> {
    let mut found = Vec::new();
    if most > 0 {
        visit(store, epoch, |proof| {
            found.push((proof.from, proof.to));
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(found)
}

/// Attaches a proof of visible epochs, and removes what their prover needed. Returns whether it was not there before.
pub(crate) fn attach(
    store: &dyn Store,
    proof: &EpochProof,
    last: u32,
    verify: impl FnOnce(&EpochProof, [u128; 10]) -> Result<(), Rejection>,
) -> Result<bool, Error> {
    let (from, to) = (proof.from, proof.to);
    // Only visible epochs have proofs, since a crash could still take back any other epoch.
    if to > last {
        return Err(Error::NoEpoch { epoch: to, last });
    }
    let expected = proven(store)?;
    if from < to && to <= expected {
        // Another proof of the same epochs says the same.
        let found = proof_of(store, to)?;
        if found.is_some_and(|found| (found.from, found.to) == (from, to)) {
            return Ok(false);
        }
    }
    // Without gaps, the last row alone says up to where everything is proven.
    if from != expected || to <= from {
        return Err(AuditError::Gap { expected, from, to }.into());
    }
    let record = |epoch: u32| rows::get::<Record>(store, Table::Epoch, &epoch.to_be_bytes());
    // The values come from the records on the disk, whatever the prover claims to have proven.
    let values = record(from)?.public_values_to(&record(to)?);
    verify(proof, values).map_err(|why| AuditError::Proof { from, to, why })?;
    let mut rows = Rows::default();
    rows.put(Table::Proof, to.to_be_bytes(), encode(proof));
    for epoch in from + 1..=to {
        // In the same batch as the proof: until that is on the disk, only the witness allows
        // another attempt.
        rows.remove(Table::Witness, epoch.to_be_bytes());
    }
    fail_point("before-attach");
    store.commit(rows)?;
    fail_point("after-attach");
    Ok(true)
}

/// The steps of the epochs after one, up to another one: as many whole epochs as have at most `most` steps together. Returns
/// the last epoch, too.
pub(crate) fn steps(
    store: &dyn Store,
    from: u32,
    last: u32,
    most: usize,
) -> Result<(u32, Vec<Step>), Error> {
    let (mut to, mut steps) = (from, Vec::new());
    while to < last {
        let next = witness(store, to + 1)?.ok_or(Error::NoWitness(to + 1))?;
        if steps.len() + next.len() > most {
            // Skipping this epoch would not help, because proofs leave no gaps.
            if to == from {
                return Err(Error::TooLarge { epoch: to + 1, steps: next.len(), most });
            }
            break;
        }
        steps.extend(next);
        to += 1;
    }
    Ok((to, steps))
}

/// Checks that proofs follow each other, and that none is of an epoch after the last one. Returns up to where they go.
pub(crate) fn check(store: &dyn Store, last: u32) -> Result<u32, Error> {
    let (mut at, mut wrong) = (0, None);
    visit(store, 0, |proof| {
        if proof.from != at || proof.to > last {
            let why = format!("it is from epoch {}, after one to epoch {at}", proof.from);
            wrong = Some(Damaged::new(Table::Proof, &proof.to.to_be_bytes(), why));
            return ControlFlow::Break(());
        }
        at = proof.to;
        ControlFlow::Continue(())
    })?;
    wrong.map_or(Ok(at), |error| Err(error.into()))
}
