//! The rows of a directory's tables. Numbers are big-endian, so the order of keys is that of numbers.
//!
//! | table | key | value |
//! |---|---|---|
//! | format | a zero | [`Format`] |
//! | format | a one | the [head](super::Head) as it was when the row was written, or an earlier one |
//! | node | [`Place`], epoch with all bits flipped | a tile of the tree |
//! | log | level, number, epoch with all bits flipped | a tile of a log: up to 256 digests |
//! | value | index, version | [`Value`] |
//! | epoch | epoch | [`Record`](hekaton_directory::Record) |
//! | signature | epoch | 64 bytes |
//! | changes | epoch | leaves |
//! | witness | epoch | [steps](hekaton_directory::Step) of the epoch's prover |
//! | proof | last epoch | epoch before the first one, subcircuits, bytes, checksum |
//! | commit | commit | [`Written`] |
//! | intake | number | [`Accepted`] |
//! | outcome | number | [`Outcome`] |
//! | idempotency | what the sender chose | number, digest of the update |

use super::damaged::Damaged;
use super::head::Head;
use super::store::{Store, StoreError, Table};
use super::update::{Accepted, Expected, Outcome, Refusal};
use hekaton_directory::{
    Commitment, DecodeError, Digest, Entry, Index, Opening, Place, Reader, Salt,
};
use sha2::{Digest as _, Sha256};

/// The version of all rows. The row of the table `format` has it for all of them.
pub(crate) const VERSION: u8 = 2;

/// The key of the row of the table `format` that has [`Format`].
pub(crate) const FORMAT: [u8; 1] = [0];

/// The key of the row of the table `format` that has a head.
pub(crate) const CONFIRMED: [u8; 1] = [1];

/// The largest key that a row may have, for scans to the end of a table.
pub(crate) const LAST: [u8; 64] = [0xff; 64];

/// A row of which there is one version an epoch: the newest one comes first.
pub(crate) fn at_epoch(key: &[u8], epoch: u32) -> Vec<u8> {
    // Flipped bits put the newest epoch first, so the first row of a scan is the one that an epoch
    // has.
    [key, &(!epoch).to_be_bytes()].concat()
}

/// The epoch of such a row.
pub(crate) fn epoch_of(key: &[u8]) -> Option<u32> {
    key.last_chunk().map(|bytes| !u32::from_be_bytes(*bytes))
}

/// The newest version of a row that an epoch has.
pub(crate) fn newest(
    store: &dyn Store,
    table: Table,
    key: &[u8],
    epoch: u32,
) -> Result<Option<Vec<u8>>, StoreError> {
    let found = store.first(table, &at_epoch(key, epoch), &at_epoch(key, 0))?;
    Ok(found.map(|(_, value)| value))
}

/// The key of a value.
pub(crate) fn value_key(index: &Index, version: u32) -> [u8; 20] {
    let mut key = [0; 20];
    key[..16].copy_from_slice(&index.0);
    key[16..].copy_from_slice(&version.to_be_bytes());
    key
}

/// The logs of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// The updates, in the order in which they were made.
    Updates,
    /// The records.
    Records,
}

impl LogKind {
    /// The level that tiles of entries have in their keys; the tiles above them have the next ones.
    const fn first_level(self) -> u8 {
        match self {
            Self::Updates => 0,
            Self::Records => 0x80,
        }
    }

    /// The place of a tile.
    pub(crate) fn place(self, level: u8, number: u64) -> LogPlace {
        LogPlace { level: self.first_level() + level, number }
    }

    /// Reports whether tiles of a level are rows. Entries of the log of records are computed from the records, because each epoch would write
    /// the last tile anew.
    pub(crate) fn has_tiles(self, level: u8) -> bool {
        self == Self::Updates || level > 0
    }
}

/// A tile of a log: the roots of up to 256 complete subtrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogPlace {
    level: u8,
    pub(crate) number: u64,
}

impl LogPlace {
    pub(crate) const LENGTH: usize = 9;

    /// The log, and the level in it: subtrees have `2^(8 level)` entries.
    pub(crate) fn level(self) -> (LogKind, u8) {
        let kind = match self.level < LogKind::Records.first_level() {
            true => LogKind::Updates,
            false => LogKind::Records,
        };
        (kind, self.level - kind.first_level())
    }

    pub(crate) fn encode(self) -> [u8; Self::LENGTH] {
        let mut key = [self.level; Self::LENGTH];
        key[1..].copy_from_slice(&self.number.to_be_bytes());
        key
    }
}

/// A value that is decoded from a row of a table.
pub(crate) trait Decode: Sized {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

impl Decode for Head {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (commit, epoch) = (reader.u64("commit")?, reader.u32("epoch")?);
        Ok(Self { commit, epoch, record: reader.array("record")? })
    }
}

/// The row of a table with a key, if it is there.
pub(crate) fn find<T: Decode>(
    store: &dyn Store,
    table: Table,
    key: &[u8],
) -> Result<Option<T>, super::error::Error> {
    let Some(bytes) = store.get(table, key)? else { return Ok(None) };
    decode(table, key, &bytes).map(Some).map_err(Into::into)
}

/// The row of a table with a key, which must be there.
pub(crate) fn get<T: Decode>(
    store: &dyn Store,
    table: Table,
    key: &[u8],
) -> Result<T, super::error::Error> {
    find(store, table, key)?.ok_or_else(|| Damaged::new(table, key, "it is missing").into())
}

pub(crate) fn decode<T: Decode>(table: Table, key: &[u8], bytes: &[u8]) -> Result<T, Damaged> {
    let mut reader = Reader::new(bytes);
    let decoded = T::read(&mut reader).and_then(|value| reader.end().map(|()| value));
    decoded.map_err(|error| Damaged::new(table, key, error))
}

/// The number that is a key.
pub(crate) fn number(table: Table, key: &[u8]) -> Result<u64, Damaged> {
    let bytes = key.try_into().map_err(|_| Damaged::new(table, key, "its key is no number"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// The description of a directory in its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// The digest of the parameters.
    pub(crate) parameters: Digest,
    /// The profile, server and proofs of the parameters, for messages.
    pub(crate) profile: u8,
    pub(crate) server: Digest,
    pub(crate) proofs: Digest,
    /// The number of levels of a tile of the tree.
    pub(crate) levels: u8,
    /// Trees of epochs before this one may be incomplete.
    pub(crate) pruned: u32,
    /// Updates from this number on were not pruned, nor accepted before.
    pub(crate) next: u64,
}

impl Format {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(self.parameters);
        out.push(self.profile);
        out.extend(self.server);
        out.extend(self.proofs);
        out.push(self.levels);
        out.extend(self.pruned.to_be_bytes());
        out.extend(self.next.to_be_bytes());
        out
    }
}

impl Decode for Format {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.version(VERSION)?;
        let format = Self {
            parameters: reader.array("parameters")?,
            profile: reader.byte("profile")?,
            server: reader.array("server's key")?,
            proofs: reader.array("verifying key's digest")?,
            levels: reader.byte("levels of a tile")?,
            pruned: reader.u32("pruned epoch")?,
            next: reader.u64("next number")?,
        };
        match format.levels {
            1..=8 => Ok(format),
            other => Err(DecodeError::Field(format!("levels of a tile are {other}: 1 to 8"))),
        }
    }
}

/// A value, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// The commitment to the values before it.
    pub(crate) before: Commitment,
    pub(crate) label: Vec<u8>,
    pub(crate) entry: Entry,
}

impl Value {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.before.0.to_vec();
        string(&mut out, &self.label);
        match &self.entry {
            Entry::Erased(digest) => {
                out.push(0);
                out.extend(digest);
            }
            Entry::Value(opening) => {
                out.push(1);
                write_opening(&mut out, opening);
            }
        }
        out
    }
}

impl Decode for Value {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let before = Commitment(reader.array("commitment")?);
        let label = read_string(reader)?;
        let entry = match reader.byte("kind of value")? {
            0 => Entry::Erased(reader.array("digest")?),
            1 => Entry::Value(read_opening(reader)?),
            other => return Err(DecodeError::Field(format!("kind of value is {other}: 0 or 1"))),
        };
        Ok(Self { before, label, entry })
    }
}

/// A list of what a commit has written, to remove it and to know what later commits supersede.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The epoch that it has closed; 0 if it has closed none.
    pub(crate) epoch: u32,
    /// Tiles of the tree.
    pub(crate) places: Vec<Place>,
    /// Tiles of the logs.
    pub(crate) log: Vec<LogPlace>,
    /// The values.
    pub(crate) values: Vec<[u8; 20]>,
    /// The updates that have an outcome.
    pub(crate) numbers: Vec<u64>,
    /// `true` if there is a witness of the epoch.
    pub(crate) has_witness: bool,
}

impl Written {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.epoch.to_be_bytes().to_vec();
        count(&mut out, self.places.len());
        out.extend(self.places.iter().flat_map(Place::encode));
        count(&mut out, self.log.len());
        out.extend(self.log.iter().flat_map(|place| place.encode()));
        count(&mut out, self.values.len());
        out.extend(self.values.iter().flatten());
        count(&mut out, self.numbers.len());
        out.extend(self.numbers.iter().flat_map(|number| number.to_be_bytes()));
        out.push(u8::from(self.has_witness));
        out
    }
}

impl Decode for Written {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let epoch = reader.u32("epoch")?;
        let places = list(reader, Place::read)?;
        let log = list(reader, |reader| {
            Ok(LogPlace { level: reader.byte("level")?, number: reader.u64("number")? })
        })?;
        let values = list(reader, |reader| reader.array("value"))?;
        let numbers = list(reader, |reader| reader.u64("number"))?;
        let has_witness = match reader.byte("witness")? {
            flag @ (0 | 1) => flag == 1,
            flag => return Err(DecodeError::Field(format!("witness has flag {flag}: 0 or 1"))),
        };
        Ok(Self { epoch, places, log, values, numbers, has_witness })
    }
}

fn list<T>(
    reader: &mut Reader<'_>,
    mut read: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = reader.u32("list")?;
    // Nothing is reserved for the count, which may be wrong if the row is damaged.
    (0..count).map(|_| read(reader)).collect()
}

impl Accepted {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.label.len() + self.opening.value.len());
        string(&mut out, &self.label);
        write_opening(&mut out, &self.opening);
        let (kind, version) = self.expected.encode();
        out.push(kind);
        out.extend(u32::to_be_bytes(version));
        // Nothing else checks that the row is what was accepted.
        let checksum = Sha256::digest(&out);
        out.extend(checksum);
        out
    }

    /// The accepted update of this number.
    pub(crate) fn decode(number: u64, bytes: &[u8]) -> Result<Self, Damaged> {
        let key = number.to_be_bytes();
        let damaged = |why: String| Damaged::new(Table::Intake, &key, why);
        let (bytes, checksum) =
            bytes.split_last_chunk::<32>().ok_or_else(|| damaged("it is too short".into()))?;
        if Sha256::digest(bytes)[..] != checksum[..] {
            return Err(damaged("it has another checksum".into()));
        }
        let mut reader = Reader::new(bytes);
        let read = |reader: &mut Reader<'_>| {
            let label = read_string(reader)?;
            let opening = read_opening(reader)?;
            let kind = reader.byte("expected version")?;
            let expected = match (kind, reader.u32("expected version")?) {
                (0, 0) => Expected::Any,
                (1, 0) => Expected::Absent,
                (2, version) => Expected::Version(version),
                other => {
                    let why = format!("expected version is of kind {}", other.0);
                    return Err(DecodeError::Field(why));
                }
            };
            Ok((label, opening, expected))
        };
        let read = read(&mut reader).and_then(|found| reader.end().map(|()| found));
        let (label, opening, expected) = read.map_err(|error| damaged(error.to_string()))?;
        Self::new(number, label, opening, expected).map_err(|error| damaged(error.to_string()))
    }
}

impl Outcome {
    pub(crate) fn encode(self) -> Vec<u8> {
        let (kind, first, second) = match self {
            Self::Committed { epoch, version } => (0, epoch, version),
            Self::Refused(Refusal::Absent) => (1, 0, 0),
            Self::Refused(Refusal::Version(version)) => (2, version, 0),
            Self::Refused(Refusal::LastVersion) => (3, 0, 0),
        };
        let mut out = vec![kind];
        out.extend(u32::to_be_bytes(first));
        out.extend(u32::to_be_bytes(second));
        out
    }
}

impl Decode for Outcome {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = reader.byte("outcome")?;
        match (kind, reader.u32("outcome")?, reader.u32("outcome")?) {
            (0, epoch, version) => Ok(Self::Committed { epoch, version }),
            (1, 0, 0) => Ok(Self::Refused(Refusal::Absent)),
            (2, version, 0) => Ok(Self::Refused(Refusal::Version(version))),
            (3, 0, 0) => Ok(Self::Refused(Refusal::LastVersion)),
            _ => Err(DecodeError::Field(format!("outcome is of kind {kind}"))),
        }
    }
}

/// The data that is kept of an update so that its sender may send it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    pub(crate) number: u64,
    /// The digest of the update: another one with the same key is refused.
    pub(crate) digest: Digest,
}

impl Submitted {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.number.to_be_bytes()[..], &self.digest].concat()
    }
}

impl Decode for Submitted {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { number: reader.u64("number")?, digest: reader.array("digest")? })
    }
}

#[allow(clippy::cast_possible_truncation, reason = "lists of an epoch are far below 2^32")]
fn count(out: &mut Vec<u8>, length: usize) {
    out.extend((length as u32).to_be_bytes());
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    count(out, bytes.len());
    out.extend(bytes);
}

fn read_string(reader: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    let length = reader.u32("length")?;
    Ok(reader.bytes(length as usize, "bytes")?.to_vec())
}

fn write_opening(out: &mut Vec<u8>, opening: &Opening) {
    out.extend(opening.salt);
    string(out, &opening.value);
}

fn read_opening(reader: &mut Reader<'_>) -> Result<Opening, DecodeError> {
    let salt: Salt = reader.array("salt")?;
    Ok(Opening { salt, value: read_string(reader)? })
}
