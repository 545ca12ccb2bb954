//! The container of circom's binary files: a magic word, a version, and sections with their lengths.

use crate::error::{FileError, FilePosition, Problem};
use crate::numbers;
use ark_ff::{AdditiveGroup, BigInt, BigInteger, Field, PrimeField};
use hekaton_circuit::Fr;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a number of the field.
pub(crate) const FIELD: usize = 32;
/// Bytes that are read from a file at a time.
// Large enough that system calls are few, small enough to stay in a core's cache.
const BUFFER: usize = 1 << 18;

/// A file with its sections. It is read with offsets, so a file that is truncated while it is used
/// leads to an error, and one file can be read by several threads.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) path: PathBuf,
    content: Content,
    sections: BTreeMap<u32, Section>,
    /// Types of sections that occur again. Only where such a section is needed is that an error.
    repeated: BTreeSet<u32>,
}

/// The storage of the bytes.
#[derive(Debug)]
enum Content {
    File(File),
    Memory(Vec<u8>),
}

/// The name of in-memory bytes in errors.
const IN_MEMORY: &str = "(in memory)";

/// A container of sections.
pub(crate) fn container_of(magic: &str, version: u32, sections: &[(u32, &[u8])]) -> Vec<u8> {
    let mut out = magic.as_bytes().to_vec();
    out.extend(version.to_le_bytes());
    out.extend(numbers::count(sections.len()).to_le_bytes());
    for (kind, content) in sections {
        out.extend(kind.to_le_bytes());
        out.extend((content.len() as u64).to_le_bytes());
        out.extend_from_slice(content);
    }
    out
}

/// A section: where its content begins, and its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) kind: u32,
    pub(crate) start: u64,
    pub(crate) length: u64,
}

impl Container {
    pub(crate) fn open(path: &Path, magic: &'static str, version: u32) -> Result<Self, FileError> {
        let fail = |place, problem: Problem| FileError::new(path, place, problem);
        let io = |e: std::io::Error| fail(FilePosition::default(), e.into());
        // Before it is opened: opening a pipe waits for a writer.
        check_regular(path)?;
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        Self::of(path, Content::File(file), length, magic, version)
    }

    pub(crate) fn of_bytes(
        bytes: Vec<u8>,
        magic: &'static str,
        version: u32,
    ) -> Result<Self, FileError> {
        let length = bytes.len() as u64;
        Self::of(Path::new(IN_MEMORY), Content::Memory(bytes), length, magic, version)
    }

    fn of(
        path: &Path,
        content: Content,
        length: u64,
        magic: &'static str,
        version: u32,
    ) -> Result<Self, FileError> {
        let fail = |place, problem: Problem| FileError::new(path, place, problem);
        let (sections, repeated) = (BTreeMap::new(), BTreeSet::new());
        let mut container = Self { path: path.to_owned(), content, sections, repeated };
        // The header is read like a section, so that a file that ends in it is reported with its place.
        let head = Section { kind: 0, start: 0, length };
        let mut reader = Reader { place: FilePosition::default(), ..container.reader_of(head) };
        let begins = reader.take(4, "the magic word").map(|bytes| bytes == magic.as_bytes());
        if !matches!(begins, Ok(true)) {
            return Err(fail(FilePosition::default(), Problem::Magic { expected: magic }));
        }
        let found = reader.u32("the version")?;
        if found != version {
            return Err(reader.error(Problem::Version { found, expected: version }));
        }
        let count = reader.u32("the number of sections")?;
        let (mut sections, mut repeated) = (BTreeMap::new(), BTreeSet::new());
        for _ in 0..count {
            let kind = reader.u32("the type of a section")?;
            let length = reader.u64("the length of a section")?;
            let section = Section { kind, start: reader.at(), length };
            // circom writes one of each type. A second section of a type that is not read here is harmless.
            if sections.insert(kind, section).is_some() {
                repeated.insert(kind);
            }
            // Checked against the length of the file here, so that nothing is allocated for a length that
            // only the header claims.
            reader.skip(length, "a section")?;
        }
        reader.finish("the last section")?;
        (container.sections, container.repeated) = (sections, repeated);
        Ok(container)
    }

    pub(crate) fn has(&self, kind: u32) -> bool {
        self.sections.contains_key(&kind)
    }

    /// The length of a section that nothing is read from: 0 if it is missing, the last one's if there
    /// are several.
    pub(crate) fn length_of(&self, kind: u32) -> u64 {
        self.sections.get(&kind).map_or(0, |section| section.length)
    }

    pub(crate) fn section(&self, kind: u32) -> Result<Section, FileError> {
        if self.repeated.contains(&kind) {
            return Err(self.error(FilePosition::default(), Problem::SecondSection(kind)));
        }
        let section = self.sections.get(&kind).copied();
        section.ok_or_else(|| self.error(FilePosition::default(), Problem::NoSection(kind)))
    }

    pub(crate) fn reader(&self, kind: u32) -> Result<Reader<'_>, FileError> {
        Ok(self.reader_of(self.section(kind)?))
    }

    fn reader_of(&self, section: Section) -> Reader<'_> {
        let place = FilePosition { section: Some(section.kind), ..FilePosition::default() };
        Reader {
            container: self,
            place,
            next: section.start,
            end: section.start + section.length,
            buffer: Vec::new(),
            used: 0,
        }
    }

    pub(crate) fn error(&self, place: FilePosition, problem: Problem) -> FileError {
        FileError::new(&self.path, place, problem)
    }

    /// Fills a buffer from a place in the file.
    pub(crate) fn read_at(
        &self,
        start: u64,
        buffer: &mut [u8],
        what: &'static str,
    ) -> Result<(), FileError> {
        let read = match &self.content {
            Content::File(file) => file.read_exact_at(buffer, start),
            Content::Memory(bytes) => {
                let rest = usize::try_from(start).ok().and_then(|start| bytes.get(start..));
                match rest.and_then(|rest| rest.get(..buffer.len())) {
                    Some(found) => {
                        buffer.copy_from_slice(found);
                        Ok(())
                    }
                    None => Err(std::io::ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        read.map_err(|error| {
            let place = FilePosition { byte: Some(start), ..FilePosition::default() };
            // The length was checked when the file was opened.
            match error.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    self.error(place, Problem::Truncated { what, needed: 1 })
                }
                _ => self.error(place, error.into()),
            }
        })
    }

    /// The BLAKE3 digest of the whole file.
    pub(crate) fn digest(&self) -> Result<[u8; 32], FileError> {
        let mut hasher = blake3::Hasher::new();
        match &self.content {
            Content::Memory(bytes) => drop(hasher.update(bytes)),
            // By the opened file, and not by its path, where there may be another one by now.
            Content::File(file) => {
                let mut buffer = vec![0; BUFFER];
                let mut at = 0;
                loop {
                    let read = file.read_at(&mut buffer, at);
                    match read.map_err(|e| self.error(FilePosition::default(), e.into()))? {
                        0 => break,
                        count => {
                            hasher.update(&buffer[..count]);
                            at += count as u64;
                        }
                    }
                }
            }
        }
        Ok(*hasher.finalize().as_bytes())
    }
}

/// Checks that a path is that of a regular file. Others are read once, from the beginning; these files
/// are read at offsets, and several times.
pub(crate) fn check_regular(path: &Path) -> Result<(), FileError> {
    let fail = |problem: Problem| FileError::new(path, FilePosition::default(), problem);
    let metadata = std::fs::metadata(path).map_err(|e| fail(e.into()))?;
    match metadata.is_file() {
        true => Ok(()),
        false if metadata.is_dir() => Err(fail(Problem::Directory)),
        false => Err(fail(Problem::NotRegular)),
    }
}

/// Reads a section from its beginning, in large pieces.
pub(crate) struct Reader<'a> {
    container: &'a Container,
    /// The section, and the row that is being read.
    pub(crate) place: FilePosition,
    /// The offset in the file of the first byte after the buffer.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that are used.
    used: usize,
}

impl Reader<'_> {
    /// The offset in the file of the next byte.
    pub(crate) fn at(&self) -> u64 {
        self.next - (self.buffer.len() - self.used) as u64
    }

    /// Returns the number of bytes that are left.
    pub(crate) fn left(&self) -> u64 {
        self.end - self.at()
    }

    /// An error at this place.
    pub(crate) fn error(&self, problem: Problem) -> FileError {
        self.container.error(FilePosition { byte: Some(self.at()), ..self.place }, problem)
    }

    fn check(&self, length: u64, what: &'static str) -> Result<(), FileError> {
        match length.checked_sub(self.left()) {
            None | Some(0) => Ok(()),
            Some(needed) => Err(self.error(Problem::Truncated { what, needed })),
        }
    }

    /// The next bytes.
    pub(crate) fn take(&mut self, length: usize, what: &'static str) -> Result<&[u8], FileError> {
        self.check(length as u64, what)?;
        if self.buffer.len() - self.used < length {
            self.buffer.drain(..self.used);
            self.used = 0;
            let kept = self.buffer.len();
            // Never past the end of the section: the next one may be of a type that is read elsewhere.
            let more = numbers::limit(self.end - self.next).min(BUFFER.max(length - kept));
            self.buffer.resize(kept + more, 0);
            self.container.read_at(self.next, &mut self.buffer[kept..], what)?;
            self.next += more as u64;
        }
        self.used += length;
        Ok(&self.buffer[self.used - length..self.used])
    }

    pub(crate) fn skip(&mut self, length: u64, what: &'static str) -> Result<(), FileError> {
        self.check(length, what)?;
        let buffered = (self.buffer.len() - self.used) as u64;
        match usize::try_from(length) {
            Ok(count) if length <= buffered => self.used += count,
            _ => {
                (self.next, self.used) = (self.at() + length, 0);
                // What was read ahead is before the place to which this goes.
                self.buffer.clear();
            }
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FileError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, FileError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, FileError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// The size of numbers and the modulus: those of the scalar field of BLS12-381.
    pub(crate) fn field(&mut self) -> Result<(), FileError> {
        let size = self.u32("the size of numbers")?;
        if size as usize != FIELD {
            // Other fields may have another size: the modulus names them.
            let prime = (size <= 96).then(|| self.take(size as usize, "the modulus").ok());
            let known = prime.flatten().and_then(name_of);
            // A file for another curve is the usual mistake, and `--prime bls12381` mends it.
            return Err(self.error(match known {
                Some(field) => Problem::Field { field: field.to_owned() },
                None => Problem::FieldSize(size),
            }));
        }
        let mut prime = self.take(FIELD, "the modulus")?.to_vec();
        if prime == Fr::MODULUS.to_bytes_le() {
            return Ok(());
        }
        let name = name_of(&prime).map(str::to_owned);
        // People write moduli with the most significant digit first.
        prime.reverse();
        let field =
            name.unwrap_or_else(|| format!("the field of 0x{} elements", hex::encode(&prime)));
        Err(self.error(Problem::Field { field }))
    }

    /// The next number of the field.
    pub(crate) fn scalar(&mut self, what: &'static str) -> Result<[u8; FIELD], FileError> {
        let bytes = self.array(what)?;
        match decode(&bytes) {
            Some(_) => Ok(bytes),
            None => Err(self.error(Problem::NotCanonical { what })),
        }
    }

    /// Ends the section.
    pub(crate) fn finish(&self, what: &'static str) -> Result<(), FileError> {
        match self.left() {
            0 => Ok(()),
            count => Err(self.error(Problem::LeftOver { what, count })),
        }
    }
}

/// A number of the field in 32 bytes, little-endian; `None` if it is not below the modulus.
pub(crate) fn decode(bytes: &[u8; FIELD]) -> Option<Fr> {
    let mut limbs = [0; 4];
    for (limb, bytes) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *limb = u64::from_le_bytes(*bytes);
    }
    // Most values of most circuits are bits.
    match limbs {
        [0, 0, 0, 0] => Some(Fr::ZERO),
        [1, 0, 0, 0] => Some(Fr::ONE),
        _ => Fr::from_bigint(BigInt::new(limbs)),
    }
}

/// The moduli of the fields that circom knows, other than BLS12-381's, little-endian.
fn name_of(prime: &[u8]) -> Option<&'static str> {
    let digits = |text: &str| {
        let mut bytes = hex::decode(text).expect("the moduli below are hexadecimal");
        bytes.reverse();
        bytes
    };
    [
        ("BN254", "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001"),
        ("Grumpkin", "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47"),
        ("Pallas", "40000000000000000000000000000000224698fc0994a8dd8c46eb2100000001"),
        ("Vesta", "40000000000000000000000000000000224698fc094cf91b992d30ed00000001"),
        ("secq256r1", "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"),
        ("BLS12-377", "12ab655e9a2ca55660b44d1e5c37b00159aa76fed00000010a11800000000001"),
        ("Goldilocks", "ffffffff00000001"),
    ]
    .into_iter()
    .find_map(|(name, text)| (digits(text) == prime).then_some(name))
}
