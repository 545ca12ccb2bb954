//! Append-only logs of answers (docs/formats.md, "Run directory").
//!
//! A log is a sequence of segments, one per process that wrote to it. No process writes into the
//! segment of another, so a former holder of the lease that wakes up late cannot do any harm. A
//! segment is a header followed by records of equal length, each with its own checksum, so that
//! damage costs only the records that it hits.
//!
//! ```text
//! 0   magic "HEKATNRL"                     8 bytes
//! 8   version                              u32
//! 12  length of a record                   u32
//! 16  binding to run, round and context    32 bytes
//! 48  checksum of the above                16 bytes
//! 64  records: message, checksum (16)
//! ```
//!
//! The checksum of the header is the first half of BLAKE3 keyed with the binding. The checksum of a
//! record is the first half of BLAKE3 keyed with a secret of the run, so only a process with that secret
//! can produce one. A later record of an instance replaces an earlier one.

use crate::error::{RunError, io};
use hekaton_core::protocol::journal::Accept;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const MAGIC: &[u8; 8] = b"HEKATNRL";
const VERSION: u32 = 4;
const HEADER: usize = 64;
const CHECKSUM: usize = 16;
/// The number of records read at once, which bounds the memory for a log and still checks the points of many
/// answers in one batch.
const BATCH: usize = 4096;

/// The keys that bind a log to its run, round, attempt and context.
#[derive(Clone)]
pub(crate) struct Binding {
    /// Written in the header.
    pub(crate) public: [u8; 32],
    /// Keys the checksums of the records.
    pub(crate) secret: [u8; 32],
}

fn checksum(key: &[u8; 32], bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut out = [0; CHECKSUM];
    out.copy_from_slice(&blake3::keyed_hash(key, bytes).as_bytes()[..CHECKSUM]);
    out
}

/// The length of a record as stored in the header.
#[allow(clippy::cast_possible_truncation, reason = "records have a few hundred bytes")]
const fn record_length(record: usize) -> u32 {
    record as u32
}

fn header(binding: &[u8; 32], record: usize) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&record_length(record).to_le_bytes());
    out.extend_from_slice(binding);
    out.extend_from_slice(&checksum(binding, &out));
    out
}

/// An open log, to which this process can append.
pub(crate) struct Log {
    directory: PathBuf,
    name: String,
    binding: Binding,
    /// The number after that of the last segment.
    next: u32,
    segment: Mutex<Segment>,
}

enum Segment {
    /// This process has not appended anything yet.
    None,
    /// The segment of this process.
    Open(File, PathBuf),
    /// A write failed, and the partial record could not be cut off.
    Broken(PathBuf),
}

fn segment_path(directory: &Path, name: &str, number: u32) -> PathBuf {
    directory.join(format!("{name}.{number}.log"))
}

/// The numbers of a log's segments, in order. A number may be missing, if the process that took it
/// could not create the file.
fn segments(directory: &Path, name: &str) -> Result<Vec<u32>, RunError> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(io(directory))? {
        let file = entry.map_err(io(directory))?.file_name();
        let number: Option<u32> = file.to_str().and_then(|f| {
            f.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".log")?.parse().ok()
        });
        numbers.extend(number);
    }
    // In the order of the processes: a later record of an instance replaces an earlier one.
    numbers.sort_unstable();
    Ok(numbers)
}

impl Log {
    /// Reads all segments of a log and passes intact messages to `accept`. Also returns notices
    /// about torn and damaged records, which are skipped.
    pub(crate) fn open(
        directory: &Path,
        name: &str,
        binding: Binding,
        message_length: usize,
        accept: &mut Accept<'_>,
    ) -> Result<(Self, Vec<String>), RunError> {
        let mut notices = Vec::new();
        let numbers = segments(directory, name)?;
        for number in &numbers {
            let path = segment_path(directory, name, *number);
            let file = File::open(&path).map_err(io(&path))?;
            read_segment(file, &path, &binding, message_length, accept, &mut notices)?;
        }
        let next = numbers.last().map_or(1, |last| last.saturating_add(1));
        let (directory, name) = (directory.to_owned(), name.to_owned());
        Ok((Self { directory, name, binding, next, segment: Mutex::new(Segment::None) }, notices))
    }

    /// Appends a message. After an error, the log keeps the records that it had. Returns the file if it is
    /// new, so that the caller can have it synced.
    pub(crate) fn append(&self, message: &[u8]) -> Result<Option<File>, RunError> {
        let record = [message, &checksum(&self.binding.secret, message)].concat();
        let mut segment = self.segment.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let new = matches!(*segment, Segment::None);
        if new {
            *segment = self.begin(record.len())?;
        }
        match &mut *segment {
            Segment::Open(file, path) => {
                if let Err(source) = file.write_all(&record) {
                    let error = io(path)(source);
                    // A partial record would shift all records after it.
                    if cut_half_record(file, record.len() as u64).is_err() {
                        *segment = Segment::Broken(path.clone());
                    }
                    return Err(error);
                }
                match new {
                    // Without its handle, a segment would never be synced, and nothing would tell.
                    true => file.try_clone().map(Some).map_err(io(path)),
                    false => Ok(None),
                }
            }
            Segment::Broken(path) => {
                Err(io(path)(std::io::Error::other("an earlier write failed")))
            }
            Segment::None => Ok(None),
        }
    }

    /// Creates a segment for this process.
    fn begin(&self, record: usize) -> Result<Segment, RunError> {
        let mut number = self.next;
        loop {
            let path = segment_path(&self.directory, &self.name, number);
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    // If this fails, the file stays, so that its number is not taken twice. A torn
                    // header does no harm.
                    file.write_all(&header(&self.binding.public, record)).map_err(io(&path))?;
                    hekaton_files::sync_folder(&self.directory).map_err(io(&self.directory))?;
                    return Ok(Segment::Open(file, path));
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(io(&path)(e)),
            }
        }
    }

    /// Makes sure that all records survive a power failure.
    pub(crate) fn sync(&self) -> Result<(), RunError> {
        match &*self.segment.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Segment::Open(file, path) => file.sync_data().map_err(io(path)),
            _ => Ok(()),
        }
    }
}

/// Cuts off a partial record at the end of a segment.
fn cut_half_record(file: &File, record: u64) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    file.set_len(length - length.saturating_sub(HEADER as u64) % record)
}

/// Reads a segment, passes intact messages to `accept`, and adds notices about damage.
fn read_segment(
    mut file: File,
    path: &Path,
    binding: &Binding,
    message_length: usize,
    accept: &mut Accept<'_>,
    notices: &mut Vec<String>,
) -> Result<(), RunError> {
    let name =
        path.file_name().expect("the path of a segment ends with its name").to_string_lossy();
    let record = message_length + CHECKSUM;
    let length = file.metadata().map_err(io(path))?.len();
    if length < HEADER as u64 {
        notices.push(format!("{name}: the header is torn, so it holds no records"));
        return Ok(());
    }
    let mut head = [0; HEADER];
    file.read_exact(&mut head).map_err(io(path))?;
    if head[..] != header(&binding.public, record)[..] {
        if is_foreign(path, &head, record)? {
            return Err(RunError::OtherLog { path: path.to_owned() });
        }
        // A header that no process wrote. Records have checksums of their own, so they can still be
        // used.
        notices.push(format!("{name}: the header is damaged"));
    }
    let torn = (length - HEADER as u64) % record as u64;
    if torn > 0 {
        notices.push(format!(
            "{name}: the last record is torn ({torn} of {record} bytes) and is ignored"
        ));
    }
    let mut left = usize::try_from((length - HEADER as u64) / record as u64).map_err(|_| {
        RunError::Damaged { path: path.to_owned(), why: format!("it has {length} bytes") }
    })?;
    let mut damaged = 0usize;
    while left > 0 {
        let mut bytes = vec![0; record * left.min(BATCH)];
        file.read_exact(&mut bytes).map_err(io(path))?;
        left -= bytes.len() / record;
        let mut messages = Vec::with_capacity(bytes.len() / record);
        for (message, sum) in
            bytes.chunks_exact(record).map(|record| record.split_at(message_length))
        {
            match checksum(&binding.secret, message) == sum {
                true => messages.push(message),
                false => damaged += 1,
            }
        }
        damaged += accept(messages);
    }
    if damaged > 0 {
        let what = if damaged == 1 { "record is" } else { "records are" };
        notices.push(format!(
            "{name}: {damaged} {what} damaged; subcircuits without an intact record are repeated"
        ));
    }
    Ok(())
}

/// Reports whether a header is intact and belongs to another log.
///
/// # Errors
/// If it is intact and of another kind, record length or version.
fn is_foreign(path: &Path, head: &[u8; HEADER], record: usize) -> Result<bool, RunError> {
    let mut binding = [0; 32];
    binding.copy_from_slice(&head[16..48]);
    if checksum(&binding, &head[..48]) != head[48..] {
        return Ok(false);
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let damaged = |why: String| RunError::Damaged { path: path.to_owned(), why };
    if &head[..8] != MAGIC {
        return Err(damaged("not a log of a run".into()));
    }
    match (word(8), word(12)) {
        (VERSION, length) if length as usize == record => Ok(true),
        (VERSION, length) => {
            Err(damaged(format!("it has records of {length} bytes, expected {record}")))
        }
        (found, _) => Err(RunError::Version { path: path.to_owned(), found, expected: VERSION }),
    }
}
