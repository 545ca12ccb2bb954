//! Writes circuit directories.

use super::format::{
    DerivedFile, FORMAT, LAYOUT, LayoutFile, MOST_ROWS, MOST_TYPES, PartSlots, PartWires, ROWS,
    RowsFile, VERSION, WIRES, head,
};
use super::{Source, Summary, TypeSummary};
use crate::numbers::count;
use crate::partition::{Access, Part, Parts};
use crate::symbols::Symbols;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The reason why a circuit directory was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// There is something already.
    #[error("{} already exists; choose a new or empty directory", .0.display())]
    Occupied(PathBuf),
    /// The partition is too large.
    #[error("{0}")]
    TooLarge(&'static str),
    /// A part cannot be encoded.
    #[error("cannot encode a part: {0}")]
    Encoding(postcard::Error),
}

impl From<postcard::Error> for WriteError {
    fn from(error: postcard::Error) -> Self {
        Self::Encoding(error)
    }
}

/// Writes a partition as a circuit directory, which must not exist. Returns the content of
/// `circuit.json`, which is written last. [`Monolith::write`](crate::Monolith::write) also checks it.
///
/// # Errors
/// If the directory exists, or cannot be written.
pub fn write(
    path: &Path,
    source: Source,
    most: u64,
    parts: &Parts,
    symbols: Option<&Symbols>,
) -> Result<Summary, WriteError> {
    if parts.types.len() > MOST_TYPES {
        return Err(WriteError::TooLarge(
            "the partition has more than 2^16 types; allow more rows per part",
        ));
    }
    if parts.types.iter().any(|kind| kind.rows.lengths.len() > MOST_ROWS) {
        return Err(WriteError::TooLarge(
            "a part has more than 2^28 constraints; allow fewer rows per part",
        ));
    }
    // Not `create_dir_all`: writing into a directory that is there would mix two circuits.
    std::fs::create_dir(path).map_err(io_error(path))?;
    let at = |name: &str| path.join(name);
    let types = write_types(&at("types"), parts)?;
    let (wires, places) = write_wires(&at("wires"), &parts.parts)?;
    let layout = layout_file(parts, places);
    let [sums, packs] = parts.derived.counts();
    let layout_digest = write_file(&at("layout"), |out| encode(out, LAYOUT, &layout))?;
    let public_names =
        symbols.map_or_else(Vec::new, |symbols| public_names(symbols, source.public()));
    let symbols_digest = symbols.map(|names| write_symbols(&at("symbols"), names)).transpose()?;
    let summary = Summary {
        format: FORMAT.to_owned(),
        version: VERSION,
        source,
        most,
        parts: count(parts.parts.len()),
        slots: parts.slots(),
        sums,
        packs,
        types,
        layout: layout_digest,
        wires,
        symbols: symbols_digest,
        public_names,
        written_by: concat!("hekaton ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    // Last, also on the disk: a directory without it is not one, so a reader never takes what a crash left behind.
    sync_folder(path)?;
    write_file(&at("circuit.json"), |out| {
        serde_json::to_writer_pretty(&mut *out, &summary).map_err(io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    })?;
    sync_folder(path)?;
    Ok(summary)
}

/// The content of `layout`: the slots of all parts, whose other wires are at these places of the file `wires`.
fn layout_file(parts: &Parts, places: Vec<(u64, u64)>) -> LayoutFile {
    let slots = parts.parts.iter().zip(places).map(|(part, (start, length))| PartSlots {
        kind: part.kind,
        wires: part.wires[..part.access.len()].to_vec(),
        access: part.access.iter().map(|access| Access::code(*access)).collect(),
        start,
        length,
    });
    LayoutFile {
        unconstrained: parts.types.iter().map(|kind| kind.unconstrained.clone()).collect(),
        parts: slots.collect(),
        derived: DerivedFile::new(&parts.derived),
    }
}

/// Writes the names of wires as a .sym file has them, without what circom removed. Returns the file's digest.
fn write_symbols(path: &Path, names: &Symbols) -> Result<String, WriteError> {
    write_file(path, |out| {
        let mut lines = names.iter();
        Ok(lines.try_for_each(|(wire, name)| writeln!(out, "0,{wire},0,{name}"))?)
    })
}

/// The names of public wires, or nothing if no public wire has a name.
fn public_names(symbols: &Symbols, public: u32) -> Vec<String> {
    let name = |wire| symbols.name(wire).map_or_else(String::new, str::to_owned);
    let names: Vec<String> = (1..=public).map(name).collect();
    if names.iter().all(String::is_empty) { Vec::new() } else { names }
}

/// Gives a complete directory its final name, where at most an empty directory is.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), WriteError> {
    check_free(to)?;
    if to.exists() {
        // It removes nothing but an empty one.
        std::fs::remove_dir(to).map_err(io_error(to))?;
    }
    std::fs::rename(from, to).map_err(io_error(to))?;
    hekaton_files::sync_folder_of(to).map_err(io_error(to))
}

fn sync_folder(folder: &Path) -> Result<(), WriteError> {
    hekaton_files::sync_folder(folder).map_err(io_error(folder))
}

/// Checks that a new directory can have this path.
///
/// # Errors
/// If there is anything but an empty directory.
pub fn check_free(path: &Path) -> Result<(), WriteError> {
    let occupied = || WriteError::Occupied(path.to_owned());
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| Err(occupied())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => Err(occupied()),
        Err(e) => Err(io_error(path)(e)),
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> WriteError + '_ {
    move |error| WriteError::Io { path: path.to_owned(), error }
}

/// Writes to a file and to a digest.
struct Digested<W> {
    inner: W,
    hasher: blake3::Hasher,
    length: u64,
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        // Only what the file took: a short write is followed by the rest.
        self.hasher.update(&bytes[..count]);
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

type Output = Digested<BufWriter<File>>;

/// The reason why a file was not written: the system, or the encoding.
enum Trouble {
    Io(io::Error),
    Encoding(postcard::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a file, flushes it to the disk, and returns its digest in hexadecimal.
fn write_file(
    path: &Path,
    content: impl FnOnce(&mut Output) -> Result<(), Trouble>,
) -> Result<String, WriteError> {
    let inner = BufWriter::new(File::create(path).map_err(io_error(path))?);
    let mut out = Digested { inner, hasher: blake3::Hasher::new(), length: 0 };
    content(&mut out).map_err(|trouble| match trouble {
        Trouble::Io(source) => io_error(path)(source),
        Trouble::Encoding(error) => error.into(),
    })?;
    let Digested { inner, hasher, .. } = out;
    let file = inner.into_inner().map_err(|e| io_error(path)(e.into_error()))?;
    // circuit.json, written last, must not be on the disk before what it has digests of.
    file.sync_all().map_err(io_error(path))?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn encode(out: &mut Output, magic: [u8; 8], body: &impl serde::Serialize) -> Result<(), Trouble> {
    out.write_all(&head(magic))?;
    out.write_all(&postcard::to_allocvec(body).map_err(Trouble::Encoding)?)?;
    Ok(())
}

/// Writes the constraints of each type to a file of its own, in a new directory.
fn write_types(directory: &Path, parts: &Parts) -> Result<Vec<TypeSummary>, WriteError> {
    std::fs::create_dir(directory).map_err(io_error(directory))?;
    let mut types = Vec::new();
    for (number, (kind, parts_of_type)) in parts.types.iter().zip(parts.counts()).enumerate() {
        let name = format!("t{number}");
        let file = directory.join(format!("{name}.rows"));
        let digest = write_file(&file, |out| encode(out, ROWS, &RowsFile::new(kind)))?;
        types.push(TypeSummary {
            name,
            rows: count(kind.rows.lengths.len()),
            slots: kind.slots,
            own: kind.own,
            parts: count(parts_of_type),
            digest,
        });
    }
    sync_folder(directory)?;
    Ok(types)
}

/// The digest, and where each part begins and how long it is.
type Written = (String, Vec<(u64, u64)>);

fn write_wires(path: &Path, parts: &[Part]) -> Result<Written, WriteError> {
    let mut places = Vec::with_capacity(parts.len());
    let digest = write_file(path, |out| {
        out.write_all(&head(WIRES))?;
        for part in parts {
            let start = out.length;
            let bytes = postcard::to_allocvec(&PartWires::new(part)).map_err(Trouble::Encoding)?;
            out.write_all(&bytes)?;
            places.push((start, bytes.len() as u64));
        }
        Ok(())
    })?;
    Ok((digest, places))
}
