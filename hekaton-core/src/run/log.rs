//! Append-only logs of answers (docs/formats.md, "Run directory"): a header, and records of one length, each with its
//! own checksum, so that damage costs the records it hits and nothing else.
//!
//! ```text
//! 0   magic "HEKATNRL"                     8 bytes
//! 8   version                              u32
//! 12  length of a record                   u32
//! 16  binding: what the records belong to  32 bytes
//! 48  checksum of the above                16 bytes
//! 64  records: message, checksum (16)
//! ```
//! A checksum is the first half of BLAKE3 keyed with the binding.

use super::{RunError, io};
use crate::engine::Pool;
use crate::messages::Answer;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const MAGIC: &[u8; 8] = b"HEKATNRL";
const VERSION: u32 = 1;
const HEADER: usize = 64;
const CHECKSUM: usize = 16;
/// Records that are read at once.
const BATCH: usize = 4096;

fn checksum(binding: &[u8; 32], bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut out = [0; CHECKSUM];
    out.copy_from_slice(&blake3::keyed_hash(binding, bytes).as_bytes()[..CHECKSUM]);
    out
}

fn header(binding: &[u8; 32], record: usize) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(record as u32).to_le_bytes());
    out.extend_from_slice(binding);
    out.extend_from_slice(&checksum(binding, &out));
    out
}

/// What was found in a log.
#[derive(Debug)]
pub(crate) struct Found<A> {
    /// The intact answers by instance.
    pub(crate) answers: BTreeMap<usize, A>,
    /// What had to be left out.
    pub(crate) notices: Vec<String>,
}

/// An open log.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    binding: [u8; 32],
    /// `None` after a write that left half a record behind
    file: Mutex<Option<File>>,
}

impl Log {
    /// Opens a log, or makes an empty one. Intact records are given back; a torn last record is cut off, damaged ones
    /// are left out and stay where they are.
    pub(crate) fn open<A: Answer>(
        path: &Path,
        binding: [u8; 32],
        instances: usize,
        pool: &impl Pool,
    ) -> Result<(Self, Found<A>), RunError> {
        let record = A::LEN + CHECKSUM;
        let expected = header(&binding, record);
        // Every write goes to the end: whoever lost the lease between its check and its write adds a record, and
        // overwrites none.
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io(path))?;
        let mut length = file.metadata().map_err(io(path))?.len();
        let mut found = Found { answers: BTreeMap::new(), notices: Vec::new() };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut damaged = 0usize;
        if length >= HEADER as u64 {
            let mut head = [0; HEADER];
            file.read_exact(&mut head).map_err(io(path))?;
            if head[..] != expected[..] {
                check_foreign(path, &head, record)?;
                // Not a header that anybody wrote: records are checked one by one all the same.
                found.notices.push(format!("{name}: the header was damaged and is written again"));
                let mut header = OpenOptions::new().write(true).open(path).map_err(io(path))?;
                header.write_all(&expected).map_err(io(path))?;
            }
            let torn = (length - HEADER as u64) % record as u64;
            if torn > 0 {
                length -= torn;
                file.set_len(length).map_err(io(path))?;
                found
                    .notices
                    .push(format!("{name}: the last record was torn ({torn} of {record} bytes) and is cut off"));
            }
            let mut left = (length - HEADER as u64) as usize / record;
            while left > 0 {
                let mut bytes = vec![0; record * left.min(BATCH)];
                file.read_exact(&mut bytes).map_err(io(path))?;
                left -= bytes.len() / record;
                let answers = pool.map(bytes.chunks_exact(record).collect(), |bytes: &[u8]| -> Option<A> {
                    let (message, sum) = bytes.split_at(A::LEN);
                    let answer = A::from_bytes(message).ok()?;
                    (checksum(&binding, message) == sum && answer.instance() < instances).then_some(answer)
                });
                for answer in answers {
                    match answer {
                        Some(answer) => drop(found.answers.insert(answer.instance(), answer)),
                        None => damaged += 1,
                    }
                }
            }
        } else {
            // Empty, or torn while it was begun.
            if length > 0 {
                found.notices.push(format!("{name}: its header was torn: it begins anew"));
            }
            file.set_len(0).and_then(|()| file.write_all(&expected)).map_err(io(path))?;
        }
        if damaged > 0 {
            let what = if damaged == 1 { "record is" } else { "records are" };
            found
                .notices
                .push(format!("{name}: {damaged} {what} damaged; subcircuits without an intact one are done again"));
        }
        Ok((Self { path: path.to_owned(), binding, file: Mutex::new(Some(file)) }, found))
    }

    /// Appends an answer. After an error the log keeps what it had.
    pub(crate) fn append<A: Answer>(&self, answer: &A) -> Result<(), RunError> {
        let mut bytes = answer.to_bytes();
        bytes.extend_from_slice(&checksum(&self.binding, &bytes));
        let mut guard = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(file) = guard.as_mut() else {
            return Err(io(&self.path)(std::io::Error::other("an earlier write failed")));
        };
        match file.write_all(&bytes) {
            Ok(()) => Ok(()),
            Err(source) => {
                // Half a record must not shift the ones behind it: it is cut off now, or else when the log is opened.
                if cut_half_record(file, bytes.len() as u64).is_err() {
                    *guard = None;
                }
                Err(io(&self.path)(source))
            }
        }
    }

    /// Makes sure that all records outlive a power failure.
    pub(crate) fn sync(&self) -> Result<(), RunError> {
        // not under the lock: provers go on appending
        let file = {
            let guard = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            guard.as_ref().map(File::try_clone).transpose().map_err(io(&self.path))?
        };
        file.map_or(Ok(()), |file| file.sync_data()).map_err(io(&self.path))
    }
}

fn cut_half_record(file: &File, record: u64) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    file.set_len(length - length.saturating_sub(HEADER as u64) % record)
}

/// Refuses a header that is intact and says something else.
fn check_foreign(path: &Path, head: &[u8; HEADER], record: usize) -> Result<(), RunError> {
    let mut binding = [0; 32];
    binding.copy_from_slice(&head[16..48]);
    if checksum(&binding, &head[..48]) != head[48..] {
        return Ok(());
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let path = path.to_owned();
    if &head[..8] != MAGIC {
        return Err(RunError::Damaged { path, why: "it is no log of a run".into() });
    }
    match (word(8), word(12)) {
        (VERSION, length) if length as usize == record => Err(RunError::OtherLog { path }),
        (VERSION, length) => {
            Err(RunError::Damaged { path, why: format!("records of {length} bytes, expected {record}") })
        }
        (found, _) => Err(RunError::Version { path, found, expected: VERSION }),
    }
}
