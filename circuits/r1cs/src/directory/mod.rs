//! Circuit directories: an imported circuit, cut into parts (docs/formats.md, "Circuit directory").
//!
//! | file | content |
//! |---|---|
//! | `circuit.json` | what was imported, the types, the digests of all other files |
//! | `layout` | each part's type, and the wire in each slot |
//! | `wires` | each part's own wires, and which constraints of the source it has |
//! | `types/NAME.rows` | the constraints of a type |
//! | `symbols` | the names of wires, if there are any |

mod format;
mod write;

pub use format::{Source, Summary, TypeSummary};
pub(crate) use write::rename;
pub use write::{WriteError, check_free, write};

use crate::derived::Derived;
use crate::error::FileError;
use crate::numbers;
use crate::partition::{Access, Rows};
use crate::symbols::Symbols;
use format::{
    FORMAT, HEAD, LAYOUT, LayoutFile, MOST_ROWS, MOST_TYPES, PartSlots, PartWires, ROWS, RowsFile,
    VERSION, WIRES, head,
};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The files that proving needs, in a circuit directory and in the copy of it that keys have.
pub const PROVING_FILES: [&str; 3] = ["circuit.json", "layout", "wires"];

/// A problem with a circuit directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The path is not a circuit directory.
    #[error("{} is not a circuit directory ({why}); `import` writes one", path.display())]
    NotOne {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The directory has another version.
    #[error(
        "{}: format version {found} is not supported, expected version {VERSION}: import the circuit \
         again",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in it.
        found: u32,
    },
    /// A file was changed.
    #[error(
        "{}: its digest is {found}, but circuit.json has {expected}: the file was changed or belongs \
         to another circuit; import the circuit again",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The digest in `circuit.json`.
        expected: String,
        /// The digest of the file.
        found: String,
    },
    /// A file contradicts itself or another one.
    #[error("{}: {why}; import the circuit again", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
}

/// An opened circuit directory. The slots of all parts are in memory, in 5 bytes each; wires and
/// constraints are read when they are asked for.
#[derive(Debug)]
pub struct CircuitBundle {
    path: PathBuf,
    summary: Summary,
    digest: [u8; 32],
    unconstrained: Vec<Vec<u32>>,
    parts: Vec<PartSlots>,
    derived: Derived,
    wires: File,
    symbols: OnceLock<Option<Symbols>>,
}

/// The wires and constraints of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartContent {
    /// The wire of each own variable.
    pub own: Vec<u32>,
    /// The number of each row, as [`Derived::row`] has it.
    pub rows: Vec<u32>,
}

impl CircuitBundle {
    /// Opens a directory, and checks what proving needs: digests, and that all numbers are in range.
    /// That its parts state what the source states is checked by [`check_partition`](crate::check_partition).
    ///
    /// # Errors
    /// If it is not a circuit directory, or is damaged.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let not = |why| BundleError::NotOne { path: path.to_owned(), why };
        if !path.exists() {
            return Err(not("it does not exist"));
        }
        if !path.is_dir() {
            return Err(not("it is a file"));
        }
        let manifest = path.join("circuit.json");
        if !manifest.exists() {
            return Err(not("it has no circuit.json"));
        }
        let text = read(&manifest)?;
        let summary = read_summary(path, &manifest, &text)?;
        let layout = path.join("layout");
        let bytes = read(&layout)?;
        // Digests come before contents: a changed file is reported as changed, and not by what it happens
        // to contradict.
        check_digest(&layout, &bytes, &summary.layout)?;
        let LayoutFile { unconstrained, parts, derived: stored } = parse(&layout, LAYOUT, &bytes)?;
        let (wires, length) = open_wires(&path.join("wires"), &summary.wires)?;
        let invalid = |why| BundleError::Invalid { path: layout.clone(), why };
        let derived = stored.derived(&summary.source).map_err(|why| invalid(why.to_owned()))?;
        check_layout(&summary, &unconstrained, &parts, &derived, length).map_err(invalid)?;
        Ok(Self {
            path: path.to_owned(),
            summary,
            // Over circuit.json alone: it has the digests of all other files.
            digest: *blake3::hash(&text).as_bytes(),
            unconstrained,
            parts,
            derived,
            wires,
            symbols: OnceLock::new(),
        })
    }

    /// Returns the contents of `circuit.json`.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The digest of `circuit.json`, and so of all files.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The type of a part.
    pub fn kind(&self, part: usize) -> usize {
        self.parts[part].kind as usize
    }

    /// The wire in each slot of a part, and what the part does with it.
    pub fn slots(&self, part: usize) -> impl Iterator<Item = (u32, Access)> + '_ {
        let PartSlots { wires, access, .. } = &self.parts[part];
        let of_code =
            |code: &u8| Access::from_code(*code).expect("`check_layout` refuses other codes");
        wires.iter().copied().zip(access.iter().map(of_code))
    }

    /// The slots of a type that no constraint has.
    pub fn unconstrained(&self, kind: usize) -> &[u32] {
        &self.unconstrained[kind]
    }

    /// The wires that are not those of the source.
    pub fn derived(&self) -> &Derived {
        &self.derived
    }

    /// The wires of own variables, and the constraints, of a part.
    ///
    /// # Errors
    /// If the file `wires` cannot be read, or contradicts the types.
    pub fn content(&self, part: usize) -> Result<PartContent, BundleError> {
        let PartSlots { kind, start, length, .. } = &self.parts[part];
        let path = self.path.join("wires");
        // The length is at most that of the file.
        let mut bytes = vec![0; numbers::index(*length)];
        self.wires.read_exact_at(&mut bytes, *start).map_err(io_error(&path))?;
        let invalid = |why: &str| BundleError::Invalid {
            path: path.clone(),
            why: format!("part {part}: {why}"),
        };
        let (encoded, rest) =
            postcard::take_from_bytes::<PartWires>(&bytes).map_err(|e| invalid(&e.to_string()))?;
        if !rest.is_empty() {
            return Err(invalid(&format!("{} bytes follow its numbers", rest.len())));
        }
        let [own, rows] =
            encoded.numbers().ok_or_else(|| invalid("its numbers are out of range"))?;
        let kind = &self.summary.types[*kind as usize];
        if own.len() != kind.own as usize || rows.len() != kind.rows as usize {
            return Err(invalid("it has another size than its type"));
        }
        // Checked where it is read, and not when the directory is opened: that would read the whole file.
        if own.iter().any(|wire| *wire == 0 || *wire >= self.derived.wires()) {
            return Err(invalid("a wire does not exist"));
        }
        Ok(PartContent { own, rows })
    }

    /// Reports whether the directory has the constraints, and is not only for proving.
    pub fn has_rows(&self) -> bool {
        self.path.join("types").is_dir()
    }

    /// The constraints of a type.
    ///
    /// # Errors
    /// If the file cannot be read, was changed, or contradicts `circuit.json`.
    pub fn rows(&self, kind: usize) -> Result<Rows, BundleError> {
        if !self.has_rows() {
            let why = "this is the copy in a key store, which is only for proving; use the directory \
                       that `import` wrote";
            let path = self.path.clone();
            return Err(BundleError::NotOne { path, why });
        }
        let summary = &self.summary.types[kind];
        let path = self.path.join("types").join(format!("{}.rows", summary.name));
        let bytes = read(&path)?;
        check_digest(&path, &bytes, &summary.digest)?;
        // A type's rows are read when they are needed; proving with keys that are there needs none of them.
        let body: RowsFile = parse(&path, ROWS, &bytes)?;
        let last = u64::from(summary.slots) + u64::from(summary.own);
        let rows = body.rows(last).and_then(|rows| match rows.lengths.len() {
            count if count == summary.rows as usize => Ok(rows),
            _ => Err("it has another number of constraints than circuit.json says"),
        });
        rows.map_err(|why| BundleError::Invalid { path, why: why.to_owned() })
    }

    /// Reads everything once, and checks that the wires and constraints of all parts are there, in the numbers of
    /// their types, and that names were not changed.
    ///
    /// # Errors
    /// The first file that cannot be read, was changed, or contradicts another one.
    pub fn check_files(&self) -> Result<(), BundleError> {
        (0..self.parts()).try_for_each(|part| self.content(part).map(drop))?;
        (0..self.summary.types.len()).try_for_each(|kind| self.rows(kind).map(drop))?;
        self.symbols().map(drop)
    }

    /// The names of wires, if they were imported. The copy in a key store has no names but those of
    /// [`public_label`](Self::public_label).
    ///
    /// # Errors
    /// If the file with them cannot be read, or was changed.
    pub fn symbols(&self) -> Result<Option<&Symbols>, BundleError> {
        if self.symbols.get().is_none() {
            let read = self.read_symbols()?;
            // Another thread may have read the same names meanwhile.
            let _ = self.symbols.set(read);
        }
        Ok(self.symbols.get().and_then(Option::as_ref))
    }

    fn read_symbols(&self) -> Result<Option<Symbols>, BundleError> {
        let Some(digest) = self.summary.symbols.as_ref().filter(|_| self.has_rows()) else {
            return Ok(None);
        };
        let path = self.path.join("symbols");
        let found = digest_of(&path)?;
        if found != *digest {
            let expected = digest.clone();
            return Err(BundleError::Changed { path, expected, found });
        }
        let symbols = Symbols::read(&path, self.summary.source.wires);
        let invalid = |e: FileError| BundleError::Invalid { path, why: e.problem.to_string() };
        symbols.map(Some).map_err(invalid)
    }

    /// The name of public wire `wire`, from 1, if the names of wires were imported.
    pub fn public_name(&self, wire: u32) -> Option<&str> {
        let name = self.summary.public_names.get((wire as usize).checked_sub(1)?)?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    /// The name of public wire `wire`, from 1, or its place among the public values, from 0.
    pub fn public_label(&self, wire: u32) -> String {
        let name = self.public_name(wire).map(str::to_owned);
        // From 0, as programs index public values, while wire 0 is the constant.
        name.unwrap_or_else(|| public_label(wire))
    }
}

/// Reads `circuit.json`, the manifest of the directory at a path.
fn read_summary(path: &Path, manifest: &Path, text: &[u8]) -> Result<Summary, BundleError> {
    let invalid = |why: String| BundleError::Invalid { path: manifest.to_owned(), why };
    let json: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| invalid(e.to_string()))?;
    // Before the rest is parsed: another version may have other fields, and is to be reported as a version.
    if json["format"] != FORMAT {
        let why = "its circuit.json is of something else";
        return Err(BundleError::NotOne { path: path.to_owned(), why });
    }
    let version = json["version"].as_u64().and_then(|version| u32::try_from(version).ok());
    match version.ok_or_else(|| invalid("its version is not a number of 32 bits".into()))? {
        VERSION => {}
        found => return Err(BundleError::Version { path: manifest.to_owned(), found }),
    }
    let summary: Summary = serde_json::from_slice(text).map_err(|e| invalid(e.to_string()))?;
    check_summary(&summary).map_err(|why| invalid(why.to_owned()))?;
    Ok(summary)
}

/// Opens the file `wires`, which must have this digest, and returns it with its length.
fn open_wires(path: &Path, expected: &str) -> Result<(File, u64), BundleError> {
    let found = digest_of(path)?;
    if found != expected {
        return Err(BundleError::Changed {
            path: path.to_owned(),
            expected: expected.to_owned(),
            found,
        });
    }
    let file = open_file(path)?;
    let length = file.metadata().map_err(io_error(path))?.len();
    let mut beginning = [0; HEAD];
    match file.read_exact_at(&mut beginning, 0) {
        Ok(()) if beginning[..] == head(WIRES) => Ok((file, length)),
        _ => {
            let why = "it does not begin as such a file does".to_owned();
            Err(BundleError::Invalid { path: path.to_owned(), why })
        }
    }
}

/// Returns the label of a public wire without a name: its place among the public values, from 0.
pub(crate) fn public_label(wire: u32) -> String {
    format!("public[{}]", wire.saturating_sub(1))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> BundleError + '_ {
    move |error| BundleError::Io { path: path.to_owned(), error }
}

/// The most bytes of a file that is read as a whole: a layout of 10^8 wires has fewer.
const READ_LIMIT: u64 = 1 << 33;

/// Opens a regular file: a device has no end, and opening a pipe waits for a writer.
fn open_file(path: &Path) -> Result<File, BundleError> {
    let regular = std::fs::metadata(path).map_err(io_error(path))?.is_file();
    match regular {
        true => File::open(path).map_err(io_error(path)),
        false => Err(io_error(path)(io::Error::other("is not a regular file"))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, BundleError> {
    let mut bytes = Vec::new();
    // A file may grow while it is read.
    let mut file = io::Read::take(open_file(path)?, READ_LIMIT + 1);
    io::Read::read_to_end(&mut file, &mut bytes).map_err(io_error(path))?;
    match bytes.len() as u64 > READ_LIMIT {
        true => Err(io_error(path)(io::Error::other(format!("has more than {READ_LIMIT} bytes")))),
        false => Ok(bytes),
    }
}

/// The BLAKE3 digest of a file, in hexadecimal.
fn digest_of(path: &Path) -> Result<String, BundleError> {
    let mut hasher = blake3::Hasher::new();
    let file = open_file(path)?;
    hasher.update_reader(file).map_err(io_error(path))?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn check_digest(path: &Path, bytes: &[u8], expected: &str) -> Result<(), BundleError> {
    let found = blake3::hash(bytes).to_hex().to_string();
    match found == expected {
        true => Ok(()),
        false => {
            let (path, expected) = (path.to_owned(), expected.to_owned());
            Err(BundleError::Changed { path, expected, found })
        }
    }
}

/// The body of a binary file, after its beginning.
fn parse<T: DeserializeOwned>(path: &Path, magic: [u8; 8], bytes: &[u8]) -> Result<T, BundleError> {
    let invalid = |why: String| BundleError::Invalid { path: path.to_owned(), why };
    let body = bytes
        .strip_prefix(head(magic).as_slice())
        .ok_or_else(|| invalid("it does not begin as such a file does".into()))?;
    // Memory is allocated as bytes are found, and not as a count says.
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(invalid(format!("{} bytes follow its end", rest.len()))),
        Err(e) => Err(invalid(e.to_string())),
    }
}

fn check_summary(summary: &Summary) -> Result<(), &'static str> {
    let Summary { source, types, .. } = summary;
    if source.outputs.checked_add(source.inputs).is_none_or(|public| public >= source.wires) {
        return Err("it has more public wires than wires");
    }
    let fits = |private| source.public().checked_add(private).is_some_and(|all| all < source.wires);
    if source.private_inputs.is_some_and(|private| !fits(private)) {
        return Err("it has more inputs than wires");
    }
    // They are printed.
    let printed = [&source.name, &summary.written_by].into_iter().chain(&summary.public_names);
    if printed.into_iter().any(|name| name.contains(char::is_control)) {
        return Err("a name has control characters");
    }
    if ![0, source.public() as usize].contains(&summary.public_names.len()) {
        return Err("it has another number of names than of public wires");
    }
    if types.len() > MOST_TYPES {
        return Err("it has more than 2^16 types");
    }
    let is_large = |kind: &TypeSummary| {
        let variables = u64::from(kind.slots) + u64::from(kind.own);
        kind.rows as usize > MOST_ROWS || variables > MOST_ROWS as u64
    };
    // These numbers become sizes of allocations before the files that they describe are read.
    if types.iter().any(is_large) {
        return Err("a type has more than 2^28 constraints or variables");
    }
    // They become names of files.
    if !types.iter().all(|kind| hekaton_circuit::is_type_name(&kind.name)) {
        return Err("a type has a name that types cannot have");
    }
    Ok(())
}

/// Checks that numbers in `layout` are in range.
fn check_layout(
    summary: &Summary,
    unconstrained: &[Vec<u32>],
    parts: &[PartSlots],
    derived: &Derived,
    wires: u64,
) -> Result<(), String> {
    if unconstrained.len() != summary.types.len() || parts.len() != summary.parts as usize {
        return Err("it has other types or parts than circuit.json".into());
    }
    if derived.counts() != [summary.sums, summary.packs] {
        return Err("it has another number of sums or packs than circuit.json".into());
    }
    for (kind, unconstrained) in summary.types.iter().zip(unconstrained) {
        if unconstrained.iter().any(|slot| *slot >= kind.slots) {
            return Err(format!("type '{}' has no such slot", kind.name));
        }
    }
    let mut counts = vec![0u32; summary.types.len()];
    for part in parts {
        counts.get_mut(part.kind as usize).into_iter().for_each(|count| *count += 1);
    }
    let slots = parts.iter().map(|part| part.wires.len() as u64).sum::<u64>();
    if slots != summary.slots || !summary.types.iter().map(|kind| kind.parts).eq(counts) {
        return Err(
            "it has another number of slots, or of parts of a type, than circuit.json".into()
        );
    }
    let mut next = HEAD as u64;
    for (number, part) in parts.iter().enumerate() {
        let wrong = |why: &str| Err(format!("part {number}: {why}"));
        let Some(kind) = summary.types.get(part.kind as usize) else {
            return wrong("there is no such type");
        };
        if part.wires.len() != kind.slots as usize || part.access.len() != part.wires.len() {
            return wrong("it has another number of slots than its type");
        }
        if part.wires.iter().any(|wire| *wire == 0 || *wire >= derived.wires()) {
            return wrong("a wire does not exist");
        }
        if part.access.iter().any(|code| Access::from_code(*code).is_none()) {
            return wrong("a slot is neither written nor read nor unused");
        }
        // Entries that several parts have would be read again and again.
        let end = part.start.checked_add(part.length).filter(|end| *end <= wires);
        let Some(end) = end.filter(|_| part.start == next) else {
            return wrong("its wires are not after those of the previous part, or beyond the end");
        };
        next = end;
    }
    match next == wires {
        true => Ok(()),
        false => Err("the file with wires has more than parts".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, length: u64) -> PartSlots {
        PartSlots { kind: 0, wires: vec![1], access: vec![1], start, length }
    }

    /// The entries of parts follow each other and fill the file: no entry is read for several parts.
    #[test]
    fn entries_of_parts_do_not_overlap() {
        let source = Source {
            name: String::new(),
            digest: String::new(),
            rows: u64::MAX,
            wires: 4,
            outputs: 1,
            inputs: 0,
            private_inputs: None,
            without_wires: Vec::new(),
        };
        let text = String::new;
        let kind =
            TypeSummary { name: "t0".into(), rows: 1, slots: 1, own: 2, parts: 2, digest: text() };
        let derived = Derived::new(source.rows, 4, Vec::new(), Vec::new()).unwrap();
        let summary = Summary {
            format: text(),
            version: VERSION,
            source,
            most: 10,
            parts: 2,
            slots: 2,
            sums: 0,
            packs: 0,
            types: vec![kind],
            layout: text(),
            wires: text(),
            symbols: None,
            public_names: Vec::new(),
            written_by: text(),
        };
        let check = |parts: [PartSlots; 2], length| {
            check_layout(&summary, &[Vec::new()], &parts, &derived, length)
        };
        assert_eq!(check([part(12, 5), part(17, 3)], 20), Ok(()));
        let wrong =
            [(12, 5, 12, 5, 17), (12, 5, 16, 4, 20), (12, 5, 18, 2, 20), (12, 5, 17, 4, 20)];
        for (a, b, c, d, length) in wrong {
            assert!(check([part(a, b), part(c, d)], length).is_err(), "{a} {b} {c} {d} {length}");
        }
        assert!(check([part(12, 5), part(17, 3)], 21).is_err(), "bytes of no part");
        assert!(check([part(13, 4), part(17, 3)], 20).is_err(), "bytes of no part");
        // This many constraints leave no numbers for derived rows.
        let pack = crate::derived::Definition::Pack(vec![2]);
        assert!(Derived::new(u64::MAX, 4, Vec::new(), vec![pack]).is_err());
    }
}
