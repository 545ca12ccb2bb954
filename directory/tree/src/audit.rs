//! Audits: that every change between two records was one that a directory may make.

use crate::log::Frontier;
use crate::record::{Checked, Parameters, Record, RecordError, SignedRecord};
use std::error::Error;
use std::ops::RangeInclusive;

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

/// The reason why an audit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A record was rejected.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is nothing to audit, or not exactly one record for each epoch.
    #[error("an audit needs the records of two epochs at least, and one record for each")]
    TooFew,
    /// The first record is of another epoch.
    #[error("the audit begins with epoch {expected}, but its first record is of epoch {found}")]
    Epoch {
        /// The epoch with which it begins.
        expected: u32,
        /// The epoch of the record.
        found: u32,
    },
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
        /// The reason.
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

    /// The public values of a proof from this record to a later one.
    pub fn public_values_to(&self, after: &Self) -> [u128; 10] {
        let mut both = [0; 10];
        both[..5].copy_from_slice(&self.public_values());
        both[5..].copy_from_slice(&after.public_values());
        both
    }
}

/// An audit in progress: records in the order of epochs, and each proof once the record of its last epoch is there. It keeps
/// two records and a digest for each doubling of their number, so it may be as long as one likes.
#[derive(Clone, Debug)]
pub struct Audit {
    parameters: Parameters,
    /// The record up to which all is proven.
    proven: Checked,
    /// The last record.
    last: Checked,
    /// The records up to the last one, if those before the first one are known.
    records: Option<Frontier>,
}

/// The result of verifying a proof.
type Verified = Result<(), Box<dyn Error + Send + Sync>>;

impl Audit {
    /// Begins with the record of an epoch. From epoch 0 on, it also checks the tree of earlier records that each record has; from a later
    /// one on, with [`with_records`](Self::with_records).
    ///
    /// # Errors
    /// If the record is not one of this directory, or is of another epoch.
    pub fn begin(
        parameters: &Parameters,
        first: &SignedRecord,
        epoch: u32,
    ) -> Result<Self, AuditError> {
        let checked = first.verify(parameters)?;
        if checked.record().epoch != epoch {
            return Err(AuditError::Epoch { expected: epoch, found: checked.record().epoch });
        }
        let begun = Self { parameters: *parameters, proven: checked, last: checked, records: None };
        match epoch {
            0 => begun.with_records(Frontier::default()),
            _ => Ok(begun),
        }
    }

    /// Also checks the tree of earlier records that each record has, given all records before the last one. Without this, a client that has
    /// followed one of them by its tree alone cannot rely on the audit.
    ///
    /// # Errors
    /// If the last record has the tree of other records.
    pub fn with_records(self, mut before: Frontier) -> Result<Self, AuditError> {
        let last = self.last.record();
        if (before.size(), before.root()) != (u64::from(last.epoch), last.records) {
            return Err(RecordError::Records(last.epoch).into());
        }
        before.append(&[last.entry()]);
        Ok(Self { records: Some(before), ..self })
    }

    /// Continues with the record of the next epoch.
    ///
    /// # Errors
    /// If it does not follow the last one.
    pub fn record(&mut self, next: &SignedRecord) -> Result<(), AuditError> {
        let checked = next.verify(&self.parameters)?;
        checked.check_after(&self.last)?;
        if let Some(records) = &mut self.records {
            let record = checked.record();
            if records.root() != record.records {
                return Err(RecordError::Records(record.epoch).into());
            }
            records.append(&[record.entry()]);
        }
        self.last = checked;
        Ok(())
    }

    /// Verifies the proof of all epochs that have no proof yet, up to the last record. `verify` gets it with the
    /// [public values](Record::public_values) of the records at its ends, and verifies it with a key that the auditor trusts. The
    /// key and the parameters must not come from the server.
    ///
    /// # Errors
    /// If it is of other epochs, or is rejected.
    pub fn proof(
        &mut self,
        proof: &EpochProof,
        verify: impl FnOnce(&EpochProof, [u128; 10]) -> Verified,
    ) -> Result<(), AuditError> {
        let (from, to) = (proof.from, proof.to);
        self.check_range(from, to, self.last.record().epoch)?;
        if to != self.last.record().epoch {
            return Err(AuditError::Unproven { found: to, last: self.last.record().epoch });
        }
        // The values come from the signed records, never from the proof, whose own claims are only
        // compared.
        let values = self.proven.record().public_values_to(self.last.record());
        verify(proof, values).map_err(|why| AuditError::Proof { from, to, why })?;
        self.proven = self.last;
        Ok(())
    }

    /// Refuses the next proof if it leaves epochs out, proves some twice, or goes further than this epoch.
    ///
    /// # Errors
    /// If it does.
    pub fn check_range(&self, from: u32, to: u32, end: u32) -> Result<(), AuditError> {
        let expected = self.proven.record().epoch;
        match from == expected && from < to && to <= end {
            true => Ok(()),
            false => Err(AuditError::Gap { expected, from, to }),
        }
    }

    /// The record up to which all epochs are proven.
    pub fn proven(&self) -> &Checked {
        &self.proven
    }

    /// The last record.
    pub fn last(&self) -> &Checked {
        &self.last
    }
}

/// Audits epochs, from the first record to the last one of this range. Records are of all of them, in their order; proofs cover
/// them without gap or overlap. [`Audit`] says what `verify` gets, and takes records and proofs one by one.
///
/// Returns the first and the last record, between which each look-up gave what it gave before, or one more version.
///
/// # Errors
/// What is wrong with which record or proof.
pub fn audit(
    parameters: &Parameters,
    epochs: RangeInclusive<u32>,
    records: &[SignedRecord],
    proofs: &[EpochProof],
    mut verify: impl FnMut(&EpochProof, [u128; 10]) -> Verified,
) -> Result<[Checked; 2], AuditError> {
    let (start, end) = epochs.into_inner();
    let [first, rest @ ..] = records else { return Err(AuditError::TooFew) };
    // An audit of a single record would succeed without any proof.
    if start >= end || rest.len() as u64 != u64::from(end - start) {
        return Err(AuditError::TooFew);
    }
    let mut audit = Audit::begin(parameters, first, start)?;
    let (first, mut rest) = (audit.last, rest.iter());
    for proof in proofs {
        // The range comes from the server. Once it is checked, the difference below cannot be
        // negative.
        audit.check_range(proof.from, proof.to, end)?;
        let records = (proof.to - proof.from) as usize;
        rest.by_ref().take(records).try_for_each(|record| audit.record(record))?;
        audit.proof(proof, &mut verify)?;
    }
    // Records without a proof are checked as well: a fork among them is evidence and must not be
    // hidden by a missing proof.
    rest.try_for_each(|record| audit.record(record))?;
    let found = audit.proven.record().epoch;
    match found == end {
        true => Ok([first, audit.last]),
        false => Err(AuditError::Unproven { found, last: end }),
    }
}
