//! Audits: that every change between two records was one that a directory may make.

use crate::record::{Checked, Parameters, Record, RecordError, SignedRecord};
use std::error::Error;

/// A proof of epochs in a row, from one record to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochProof {
    /// The epoch before the first one that it proves.
    pub from: u32,
    /// The last epoch that it proves.
    pub to: u32,
    /// The number of subcircuits with steps, on which the verifying key depends. Under another number's key, no proof holds.
    pub subcircuits: u32,
    /// The bytes of the proof.
    pub proof: Vec<u8>,
}

/// Why an audit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A record was rejected.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is nothing to audit.
    #[error("an audit needs the records of two epochs, at least")]
    TooFew,
    /// Proofs leave an epoch out, prove one twice, or are not in their order.
    #[error("the next proof must begin at epoch {expected}, but it is from epoch {from} to {to}")]
    Gap {
        /// The epoch up to which proofs are there.
        expected: u32,
        /// The epoch before the proof.
        from: u32,
        /// The last epoch of the proof.
        to: u32,
    },
    /// Proofs end too early.
    #[error("there are proofs up to epoch {found}, but records up to epoch {last}")]
    Unproven {
        /// The last epoch with a proof.
        found: u32,
        /// The last epoch with a record.
        last: u32,
    },
    /// A proof was rejected.
    #[error("the proof from epoch {from} to {to} was rejected: {why}")]
    Proof {
        /// The epoch before the proof.
        from: u32,
        /// The last epoch of the proof.
        to: u32,
        /// Why.
        #[source]
        why: Box<dyn Error + Send + Sync>,
    },
}

impl Record {
    /// The public values of a proof that begins or ends with this record: the halves of the root, those of the chain, and the
    /// number of the epoch. A proof has those of two records.
    pub fn public_values(&self) -> [u128; 5] {
        let halves = |digest: &[u8; 32]| {
            let (high, low) = digest.split_at(16);
            [high, low].map(|half| half.iter().fold(0, |n, byte| n << 8 | u128::from(*byte)))
        };
        let ([a, b], [c, d]) = (halves(&self.root), halves(&self.chain));
        [a, b, c, d, self.epoch.into()]
    }
}

/// The public values of a proof from one record to another.
pub(crate) fn values_between(before: &Record, after: &Record) -> [u128; 10] {
    let mut both = [0; 10];
    both[..5].copy_from_slice(&before.public_values());
    both[5..].copy_from_slice(&after.public_values());
    both
}

/// Audits all epochs from the first record to the last one. Records are of all of them, in their order; proofs cover them without
/// gap or overlap. `verify` gets each proof with the [public values](Record::public_values) of the records at its ends, and verifies
/// it with a key that the auditor trusts. The key and the parameters must not come from the server.
///
/// Returns the first and the last record, between which each look-up gave what it gave before, or one more version.
///
/// # Errors
/// What is wrong with which record or proof.
pub fn audit(
    parameters: &Parameters,
    records: &[SignedRecord],
    proofs: &[EpochProof],
    mut verify: impl FnMut(&EpochProof, [u128; 10]) -> Result<(), Box<dyn Error + Send + Sync>>,
) -> Result<[Checked; 2], AuditError> {
    let checked: Vec<Checked> =
        records.iter().map(|record| record.verify(parameters)).collect::<Result<_, _>>()?;
    for pair in checked.windows(2) {
        pair[1].check_after(&pair[0])?;
    }
    let [first, .., last] = &checked[..] else { return Err(AuditError::TooFew) };
    let (start, end) = (first.record().epoch, last.record().epoch);
    let mut at = start;
    for proof in proofs {
        let (from, to) = (proof.from, proof.to);
        if from != at || to <= from || to > end {
            return Err(AuditError::Gap { expected: at, from, to });
        }
        let record = |epoch: u32| checked[(epoch - start) as usize].record();
        let values = values_between(record(from), record(to));
        verify(proof, values).map_err(|why| AuditError::Proof { from, to, why })?;
        at = to;
    }
    match at == end {
        true => Ok([*first, *last]),
        false => Err(AuditError::Unproven { found: at, last: end }),
    }
}
