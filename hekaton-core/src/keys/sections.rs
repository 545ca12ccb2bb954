//! Sectioned files (docs/formats.md): a header, a table of sections with their digests, and aligned
//! sections.
//!
//! ```text
//! 0   magic "HEKATNKY"          8 bytes
//! 8   version                   u32
//! 12  number of sections        u32
//! 16  kind, zero-padded         32 bytes
//! 48  table, 80 bytes per section: name (24), offset (u64), length (u64), reserved (8),
//!     BLAKE3 digest (32)
//! ..  sections, each at a multiple of 4096
//! ```
//! All integers are little-endian. The file's digest is the BLAKE3 digest of header and table. A file
//! has one form: sections follow one another in the order of the table without gaps, padding and
//! reserved bytes are zero, and nothing follows the last section. So the digest fixes every byte.

use super::map::{map, release};
use bytemuck::{NoUninit, Pod};
use hekaton_files::{NewFile, READABLE, open_regular};
use memmap2::Mmap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"HEKATNKY";
const VERSION: u32 = 3;
const HEADER: usize = 48;
const ENTRY: usize = 80;
const ALIGN: usize = 4096;
const MAX_SECTIONS: usize = 64;

/// Why a key file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// It can't be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is something else.
    #[error("{path} is not a Hekaton key file: expected a file from a key store")]
    Magic {
        /// The file.
        path: PathBuf,
    },
    /// Another version.
    #[error(
        "{path} has format version {found}, but this program reads version {VERSION}: \
         use the program that wrote it, or run setup again"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A key of another kind.
    #[error("{path} holds another kind of key: found {found}, expected {expected}")]
    Kind {
        /// The file.
        path: PathBuf,
        /// The kind that it holds.
        found: String,
        /// The kind expected.
        expected: &'static str,
    },
    /// It is damaged.
    #[error("{path} is damaged ({section}: {why}): copy it again or run setup again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damaged section, or part of the file.
        section: String,
        /// The damage that was found.
        why: String,
    },
    /// A key of another setup.
    #[error(
        "{path} belongs to another setup: its digest is {found}, expected {expected}; \
         copy the whole key store again, or run setup again"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Digest expected, from the manifest.
        expected: String,
        /// Digest of the file.
        found: String,
    },
}

/// Plain data that a section owns.
trait Plain: Send + Sync {
    fn bytes(&self) -> &[u8];
}

impl<T: NoUninit + Send + Sync> Plain for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

enum Data {
    Owned(Box<dyn Plain>),
    Mapped {
        map: Arc<Mmap>,
        offset: usize,
        len: usize,
        /// The digest of the bytes when the file was opened.
        digest: blake3::Hash,
    },
}

struct Section {
    name: String,
    data: Data,
}

impl Section {
    fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Owned(data) => data.bytes(),
            Data::Mapped { map, offset, len, .. } => &map[*offset..*offset + *len],
        }
    }

    fn digest(&self) -> blake3::Hash {
        match &self.data {
            Data::Owned(data) => blake3::hash(data.bytes()),
            Data::Mapped { digest, .. } => *digest,
        }
    }

    fn release(&self) {
        if let Data::Mapped { map, offset, len, .. } = &self.data {
            release(map, *offset, *len);
        }
    }
}

/// A set of named sections, in memory or mapped from a file.
pub struct Sections {
    kind: &'static str,
    path: PathBuf,
    sections: Vec<Section>,
    /// `true` if [`Sections::used`] drops pages.
    release: bool,
}

impl std::fmt::Debug for Sections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.sections.iter().map(|s| s.name.as_str()).collect();
        f.debug_struct("Sections").field("path", &self.path).field("sections", &names).finish()
    }
}

impl Sections {
    /// Creates a key of a kind without sections.
    pub fn new(kind: &'static str) -> Self {
        Self { kind, path: PathBuf::from("(keys in memory)"), sections: Vec::new(), release: false }
    }

    /// Adds a section.
    pub fn push<T: NoUninit + Send + Sync>(&mut self, name: &'static str, data: Vec<T>) {
        self.sections.push(Section { name: name.to_owned(), data: Data::Owned(Box::new(data)) });
    }

    /// Test double: replaces the contents of a section.
    #[cfg(any(test, feature = "testing"))]
    pub fn replace<T: NoUninit + Send + Sync>(&mut self, name: &'static str, data: Vec<T>) {
        self.sections.retain(|s| s.name != name);
        self.push(name, data);
    }

    /// Returns a section as a slice, in place.
    ///
    /// # Errors
    /// When it is missing, or its length is not a multiple of an element's.
    pub fn get<T: Pod>(&self, name: &'static str) -> Result<&[T], KeyFileError> {
        let section = self.section(name)?;
        bytemuck::try_cast_slice(section.bytes()).map_err(|e| {
            self.damaged(name, format!("its length is not a whole number of elements ({e})"))
        })
    }

    fn section(&self, name: &str) -> Result<&Section, KeyFileError> {
        (self.sections.iter().find(|s| s.name == name))
            .ok_or_else(|| self.damaged(name, "the section is missing".into()))
    }

    /// The digest of a section's bytes; of a mapped file, of those that it had when it was opened.
    pub(crate) fn digest_of(&self, name: &str) -> Result<blake3::Hash, KeyFileError> {
        Ok(self.section(name)?.digest())
    }

    /// Returns the element of a section that has exactly one.
    ///
    /// # Errors
    /// When it is missing, or has a different number of elements.
    pub fn one<T: Pod>(&self, name: &'static str) -> Result<&T, KeyFileError> {
        match self.get::<T>(name)? {
            [element] => Ok(element),
            other => Err(self.damaged(name, format!("{} elements, expected one", other.len()))),
        }
    }

    /// Checks that there are no sections other than these: one that no reader uses could carry
    /// anything.
    ///
    /// # Errors
    /// The first section with another name.
    pub(crate) fn expect_only(&self, names: &[&str]) -> Result<(), KeyFileError> {
        match self.sections.iter().find(|section| !names.contains(&section.name.as_str())) {
            None => Ok(()),
            Some(section) => {
                let why = format!("a {} has no such section", self.kind);
                Err(self.damaged(&section.name, why))
            }
        }
    }

    /// Returns the error for a section whose content is invalid.
    pub fn damaged(&self, section: &str, why: String) -> KeyFileError {
        KeyFileError::Damaged {
            path: self.path.clone(),
            section: format!("section '{section}'"),
            why,
        }
    }

    /// From now on, drops the pages of a section after each use.
    pub fn release_after_use(&mut self) {
        self.release = true;
        self.release_all();
    }

    /// Drops the pages of all sections once; they are read again when they are next used.
    pub fn release_all(&self) {
        self.sections.iter().for_each(Section::release);
    }

    /// Marks sections as used and not needed soon.
    pub fn used(&self, names: &[&str]) {
        if self.release {
            self.sections
                .iter()
                .filter(|s| names.contains(&s.name.as_str()))
                .for_each(Section::release);
        }
    }

    /// Marks all sections as used and not needed soon.
    pub fn all_used(&self) {
        if self.release {
            self.release_all();
        }
    }

    /// Returns the length of a section in bytes, 0 if it is missing.
    pub fn bytes_of(&self, name: &str) -> u64 {
        self.sections.iter().filter(|s| s.name == name).map(|s| s.bytes().len() as u64).sum()
    }

    /// Returns the total length of all sections in bytes.
    pub fn bytes(&self) -> u64 {
        self.sections.iter().map(|s| s.bytes().len() as u64).sum()
    }

    /// The digest of the file that [`Self::write`] writes.
    pub fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.head()).as_bytes()
    }

    /// Header and table of the file.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "keys have fewer than MAX_SECTIONS sections"
    )]
    fn head(&self) -> Vec<u8> {
        // With the digest of every section; all offsets follow from the lengths.
        let mut head = Vec::new();
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head.extend(padded(self.kind, 32));
        let mut offset = (HEADER + ENTRY * self.sections.len()).next_multiple_of(ALIGN);
        for section in &self.sections {
            let bytes = section.bytes();
            head.extend(padded(&section.name, 24));
            head.extend_from_slice(&(offset as u64).to_le_bytes());
            head.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            head.extend_from_slice(&[0; 8]);
            head.extend_from_slice(blake3::hash(bytes).as_bytes());
            offset = (offset + bytes.len()).next_multiple_of(ALIGN);
        }
        head
    }

    /// Writes the file under a temporary name and renames it; returns its digest.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, path: &Path) -> Result<[u8; 32], KeyFileError> {
        let io = |error| KeyFileError::Io { path: path.to_owned(), error };
        let head = self.head();
        // Keys are public, and provers of other users map them.
        let file = NewFile::with_mode(path, READABLE).map_err(io)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        // Every section starts at a page boundary, so that it can be mapped and dropped on its own.
        let mut written = head.len();
        out.write_all(&head).map_err(io)?;
        for section in &self.sections {
            let start = written.next_multiple_of(ALIGN);
            out.write_all(&vec![0; start - written]).map_err(io)?;
            out.write_all(section.bytes()).map_err(io)?;
            written = start + section.bytes().len();
        }
        let file = out.into_inner().map_err(|e| io(e.into_error()))?;
        file.replace(path).map_err(io)?;
        Ok(*blake3::hash(&head).as_bytes())
    }

    /// Maps a file. Checks header, table and the digest of every section; `digest` is the file's
    /// digest from the manifest.
    ///
    /// # Errors
    /// When the file is missing, damaged, of another kind or version, or has another digest.
    pub fn open(path: &Path, kind: &'static str, digest: [u8; 32]) -> Result<Self, KeyFileError> {
        let (map, table) = open_table(path)?;
        if table.kind != kind {
            return Err(KeyFileError::Kind {
                path: path.to_owned(),
                found: table.kind,
                expected: kind,
            });
        }
        if digest != table.digest {
            let (expected, found) = (hex::encode(digest), hex::encode(table.digest));
            return Err(KeyFileError::Foreign { path: path.to_owned(), expected, found });
        }
        // Contents are trusted from here on: kernels do not check key points for curve or subgroup,
        // the digest binds them to the setup.
        let mut sections = Vec::with_capacity(table.entries.len());
        for entry in table.entries {
            let bytes = &map[entry.offset..entry.offset + entry.len];
            let digest = blake3::hash(bytes);
            if digest != entry.digest {
                return Err(KeyFileError::Damaged {
                    path: path.to_owned(),
                    section: format!("section '{}' at byte {}", entry.name, entry.offset),
                    why: "its digest does not match the table".into(),
                });
            }
            let section = Section {
                name: entry.name,
                data: Data::Mapped {
                    map: map.clone(),
                    offset: entry.offset,
                    len: entry.len,
                    digest,
                },
            };
            // Hashing has read the section; drop it, so that opening does not keep a whole key
            // resident.
            section.release();
            sections.push(section);
        }
        Ok(Self { kind, path: path.to_owned(), sections, release: false })
    }
}

struct Entry {
    name: String,
    offset: usize,
    len: usize,
    digest: [u8; 32],
}

/// The content of header and table.
struct Table {
    entries: Vec<Entry>,
    kind: String,
    digest: [u8; 32],
}

/// Maps a file and parses its header and table.
fn open_table(path: &Path) -> Result<(Arc<Mmap>, Table), KeyFileError> {
    let io = |error| KeyFileError::Io { path: path.to_owned(), error };
    let file = open_regular(path).map_err(io)?;
    let map = Arc::new(map(&file).map_err(io)?);
    let table = parse_table(&map, path)?;
    Ok((map, table))
}

/// Parses header and table: the sections, all of which lie inside the file, its kind, and the
/// digest of header and table.
// One piece: a pass over bytes from outside, in which each check relies on those before it.
fn parse_table(map: &[u8], path: &Path) -> Result<Table, KeyFileError> {
    let damaged = |section: &str, why: String| KeyFileError::Damaged {
        path: path.to_owned(),
        section: section.to_owned(),
        why,
    };
    if map.len() < 8 || &map[..8] != MAGIC {
        return Err(KeyFileError::Magic { path: path.to_owned() });
    }
    if map.len() < HEADER {
        return Err(damaged("header", format!("the file ends after {} bytes", map.len())));
    }
    let word = |at: usize| u32::from_le_bytes([map[at], map[at + 1], map[at + 2], map[at + 3]]);
    let found = word(8);
    if found != VERSION {
        return Err(KeyFileError::Version { path: path.to_owned(), found });
    }
    // Bound the count before anything is computed from it.
    let count = word(12) as usize;
    let table_end = HEADER + ENTRY * count.min(MAX_SECTIONS);
    if count > MAX_SECTIONS || map.len() < table_end {
        return Err(damaged(
            "header",
            format!("a table of {count} sections does not fit into the file"),
        ));
    }
    let kind =
        unpadded(&map[16..48]).ok_or_else(|| damaged("header", "the kind is not text".into()))?;
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    // Where the bytes before the next section end: those of the table, or of a section.
    let mut end = table_end;
    for (i, entry) in map[HEADER..table_end].chunks_exact(ENTRY).enumerate() {
        let long = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&entry[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let at = format!("entry {i} of the table");
        let name = unpadded(&entry[..24]).filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(damaged(&at, "the name of a section is not text padded with zeros".into()));
        };
        if entries.iter().any(|other| other.name == name) {
            return Err(damaged(&at, format!("a second section '{name}'")));
        }
        if entry[40..48] != [0; 8] {
            return Err(damaged(&at, "reserved bytes are not zero".into()));
        }
        // Sections have one place each. An end that overflows, or a section outside of the file,
        // would read beyond the mapping; an unaligned one could not be cast; overlaps and gaps would
        // be other files of the same digest.
        let (offset, len) = (long(24), long(32));
        let start = end.next_multiple_of(ALIGN);
        let fits = offset.checked_add(len).is_some_and(|end| end <= map.len() as u64);
        if offset != start as u64 || !fits {
            let length = map.len();
            let why = format!(
                "{len} bytes at {offset} in a file of {length} bytes, expected them at {start}"
            );
            return Err(damaged(&at, why));
        }
        if map[end..start].iter().any(|byte| *byte != 0) {
            return Err(damaged(&at, format!("the padding before byte {start} is not zero")));
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(&entry[48..80]);
        #[allow(clippy::cast_possible_truncation, reason = "at most the file's length")]
        let length = len as usize;
        entries.push(Entry { name, offset: start, len: length, digest });
        end = start + length;
    }
    if map.len() != end {
        let why = format!("{} bytes follow the last section", map.len() - end);
        return Err(damaged("end of the file", why));
    }
    let digest = *blake3::hash(&map[..table_end]).as_bytes();
    Ok(Table { entries, kind, digest })
}

/// Returns the bytes of a text, padded with zeros.
fn padded(text: &str, len: usize) -> Vec<u8> {
    let mut out = text.as_bytes().to_vec();
    debug_assert!(out.len() <= len, "'{text}' is longer than {len} bytes");
    out.resize(len, 0);
    out
}

/// Returns the text before the first zero, if it is printable and only zeros follow.
fn unpadded(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let padding = bytes[end..].iter().all(|b| *b == 0);
    let text = padding.then(|| &bytes[..end]).filter(|text| !text.iter().any(u8::is_ascii_control));
    String::from_utf8(text?.to_vec()).ok()
}

/// Information about a section, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// Its name.
    pub name: String,
    /// Its offset in the file in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// `true` if its content has the digest in the table.
    pub intact: bool,
}

/// Returns the kind, digest and sections of a key file, for people.
///
/// # Errors
/// When it is not a key file, or its table is damaged.
pub fn inspect_sections(path: &Path) -> Result<(String, [u8; 32], Vec<SectionInfo>), KeyFileError> {
    let (map, Table { entries, kind, digest }) = open_table(path)?;
    let sections = entries.into_iter().map(|entry| SectionInfo {
        intact: blake3::hash(&map[entry.offset..entry.offset + entry.len]).as_bytes()
            == &entry.digest,
        name: entry.name,
        offset: entry.offset as u64,
        bytes: entry.len as u64,
    });
    Ok((kind, digest, sections.collect()))
}

#[cfg(test)]
mod tests;
