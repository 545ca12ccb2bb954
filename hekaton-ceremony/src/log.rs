//! Logs: the records of a chain in one file that only grows (spec: ceremony#files).

use crate::check::{CeremonyError, file, io};
use crate::genesis::{Chain, Genesis};
use crate::record::Record;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

const MAGIC: &[u8; 8] = b"HEKATNCL";
const VERSION: u32 = 1;
const HEADER: usize = 44;
/// The length of the checksum after each record.
const CHECKSUM: usize = 16;
/// The longest log that is read, in bytes: a million records of powers, or ten thousand of a hundred types.
pub const MOST_LOG: u64 = 1 << 30;

/// The records of a chain.
#[derive(Clone, Debug)]
pub struct Log {
    /// The chain.
    pub chain: Chain,
    /// The records.
    pub records: Vec<Record>,
    /// The number of bytes that were read: fewer than the file has if its end is torn.
    pub(crate) bytes: u64,
    /// `true` if the file ends in the middle of a record, which was not accepted.
    pub torn: bool,
}

/// The file of a log without records.
pub(crate) fn header(genesis: &Genesis) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&genesis.digest());
    out
}

fn checksum(length: &[u8], record: &[u8]) -> [u8; CHECKSUM] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(length).update(record);
    let mut out = [0; CHECKSUM];
    out.copy_from_slice(&hasher.finalize().as_bytes()[..CHECKSUM]);
    out
}

/// A record with its length and checksum.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a record is shorter than 2^32 bytes: `Record::most_bytes`"
)]
fn framed(record: &Record) -> Vec<u8> {
    let bytes = record.to_bytes();
    let length = (bytes.len() as u32).to_le_bytes();
    let sum = checksum(&length, &bytes);
    [&length[..], &bytes, &sum].concat()
}

impl Log {
    /// A log without records.
    pub(crate) fn empty(chain: Chain) -> Self {
        Self { chain, records: Vec::new(), bytes: HEADER as u64, torn: false }
    }

    /// The log as a file.
    pub(crate) fn to_bytes(&self, genesis: &Genesis) -> Vec<u8> {
        [header(genesis), self.framed_records()].concat()
    }

    /// The records, as they follow the header.
    pub(crate) fn framed_records(&self) -> Vec<u8> {
        self.records.iter().flat_map(framed).collect()
    }

    /// Reads a log. A torn end is left out: a record counts once it is there as a whole.
    ///
    /// # Errors
    /// If it is not a log of this ceremony, or a whole record cannot be decoded.
    pub(crate) fn parse(
        bytes: &[u8],
        genesis: &Genesis,
        chain: Chain,
        path: &Path,
    ) -> Result<Self, CeremonyError> {
        let expected = header(genesis);
        if bytes.len() < HEADER || bytes[..8] != expected[..8] {
            return Err(file(path, "not the log of a ceremony"));
        }
        if bytes[8..12] != expected[8..12] {
            let why = format!("a log of another version: this program reads version {VERSION}");
            return Err(file(path, why));
        }
        if bytes[12..HEADER] != expected[12..] {
            let why = format!("{}: the log of another ceremony", path.display());
            return Err(CeremonyError::Foreign(why));
        }
        Self::parse_records(&bytes[HEADER..], genesis, chain, path)
    }

    /// Reads what follows the header: like [`Self::parse`].
    pub(crate) fn parse_records(
        mut rest: &[u8],
        genesis: &Genesis,
        chain: Chain,
        path: &Path,
    ) -> Result<Self, CeremonyError> {
        let most = Record::most_bytes(genesis, chain);
        let mut log = Self::empty(chain);
        // Zeros: the file had grown, but what was written had not reached the disk.
        while rest.iter().any(|byte| *byte != 0) {
            let Some((length, after)) = rest.split_first_chunk::<4>() else { break };
            let n = u32::from_le_bytes(*length) as usize;
            let Some(frame) = after.get(..n.saturating_add(CHECKSUM)).filter(|_| n <= most) else {
                // Longer than any record, and not at the torn end of the file.
                if n > most {
                    let why = format!("record {} has {n} bytes", log.records.len());
                    return Err(file(path, why));
                }
                break;
            };
            let (record, sum) = frame.split_at(n);
            if checksum(length, record) != sum {
                // Written whole, but not synced: the last one only.
                if after.len() > frame.len() {
                    let why = format!("record {} is damaged", log.records.len());
                    return Err(file(path, why));
                }
                break;
            }
            let record = Record::from_bytes(record, genesis, chain)
                .map_err(|e| file(path, format!("record {}: {e}", log.records.len())))?;
            log.records.push(record);
            log.bytes += (4 + frame.len()) as u64;
            rest = &after[frame.len()..];
        }
        log.torn = !rest.is_empty();
        Ok(log)
    }

    /// Appends a record to the file. It is accepted once this returns.
    pub(crate) fn append(&mut self, path: &Path, record: Record) -> Result<(), CeremonyError> {
        let mut file = OpenOptions::new().append(true).open(path).map_err(io(path))?;
        // What an earlier process left of a record, or this one after an error.
        file.set_len(self.bytes).map_err(io(path))?;
        let bytes = framed(&record);
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(io(path))?;
        self.bytes += bytes.len() as u64;
        (self.torn, _) = (false, self.records.push(record));
        Ok(())
    }
}
