//! Sections: the vectors of points of a chain, in files that are read in pieces, so that memory does not depend on their
//! length (spec: ceremony#files).

use crate::check::{Broken, CeremonyError, Check, file, io};
use hekaton_arith::{Fr, G1Point, G2Point, Group as _, PointError};
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// The number of points that are read at a time.
pub(crate) const PIECE: usize = 1 << 16;
/// The number of points that a thread multiplies at a time.
pub(crate) const CHUNK: usize = 1 << 11;

/// A source group of the pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// G1, 96 bytes a point.
    G1,
    /// G2, 192 bytes a point.
    G2,
}

/// A vector of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The name.
    pub name: &'static str,
    /// The group of its points.
    pub group: Group,
    /// The number of points.
    pub len: usize,
}

impl Vector {
    /// The length in bytes.
    pub fn bytes(&self) -> u64 {
        let point = match self.group {
            Group::G1 => G1Point::UNCOMPRESSED,
            Group::G2 => G2Point::UNCOMPRESSED,
        };
        point as u64 * self.len as u64
    }
}

/// The length of a section in bytes.
pub(crate) fn bytes_of(vectors: &[Vector]) -> u64 {
    vectors.iter().map(Vector::bytes).sum()
}

/// The digests of the pieces of each vector.
type Pieces = Vec<Vec<[u8; 32]>>;

/// A section in a file, which may have other content before and after it.
#[derive(Clone, Debug)]
pub struct Section {
    /// The file.
    pub path: PathBuf,
    /// The offset of the first point.
    pub offset: u64,
    /// The name of the section, for messages.
    pub name: String,
    /// The vectors.
    pub vectors: Vec<Vector>,
    /// `true` if the file must end with the section.
    pub(crate) whole: bool,
    /// The digests of the pieces of each vector, once the section has been checked: what is read again is what was checked,
    /// even if the file has changed.
    pieces: Option<Arc<Pieces>>,
}

/// Takes the points of a vector, piece by piece: the index of the first one, and the points.
type Each<'a, G> = dyn FnMut(usize, &[G]) -> Result<(), CeremonyError> + 'a;

/// Takes the points of a section, piece by piece.
pub(crate) trait Visit {
    /// Takes points of G1 of a vector, from index `start`.
    fn g1(&mut self, vector: usize, start: usize, points: &[G1Point]) -> Result<(), CeremonyError>;

    /// Takes points of G2.
    fn g2(&mut self, vector: usize, start: usize, points: &[G2Point]) -> Result<(), CeremonyError>;
}

impl Section {
    /// A section that begins at an offset of a file.
    pub(crate) fn at(path: PathBuf, offset: u64, name: String, vectors: Vec<Vector>) -> Self {
        Self { path, offset, name, vectors, whole: false, pieces: None }
    }

    /// A section that has a file of its own.
    pub(crate) fn file(path: PathBuf, name: String, vectors: Vec<Vector>) -> Self {
        Self { whole: true, ..Self::at(path, 0, name, vectors) }
    }

    /// The length in bytes.
    pub fn bytes(&self) -> u64 {
        bytes_of(&self.vectors)
    }

    fn open(&self, offset: u64) -> Result<BufReader<File>, CeremonyError> {
        let mut file = hekaton_files::open_regular(&self.path).map_err(io(&self.path))?;
        let length = file.metadata().map_err(io(&self.path))?.len();
        if self.whole && length > self.bytes() {
            let why =
                format!("section '{}' has {length} bytes, expected {}", self.name, self.bytes());
            return Err(crate::check::file(&self.path, why));
        }
        file.seek(SeekFrom::Start(self.offset + offset)).map_err(io(&self.path))?;
        Ok(BufReader::with_capacity(1 << 20, file))
    }

    /// The digest.
    pub(crate) fn digest(&self) -> Result<[u8; 32], CeremonyError> {
        let mut hasher = blake3::Hasher::new();
        let read = hasher.update_reader(self.open(0)?.take(self.bytes()));
        read.map_err(io(&self.path))?;
        match hasher.count() == self.bytes() {
            true => Ok(*hasher.finalize().as_bytes()),
            false => Err(self.too_short()),
        }
    }

    fn too_short(&self) -> CeremonyError {
        let why = format!("section '{}' is cut off: {} bytes expected", self.name, self.bytes());
        file(&self.path, why)
    }

    /// Passes all points to a visitor and returns the digest of what was read.
    pub(crate) fn visit(&self, visitor: &mut dyn Visit) -> Result<[u8; 32], CeremonyError> {
        Ok(self.visit_pieces(visitor)?.0)
    }

    /// Like [`Self::visit`], for a section that is read again later: then it must be what was read now.
    pub(crate) fn visit_and_seal(
        &mut self,
        visitor: &mut dyn Visit,
    ) -> Result<[u8; 32], CeremonyError> {
        let (digest, pieces) = self.visit_pieces(visitor)?;
        self.pieces = Some(Arc::new(pieces));
        Ok(digest)
    }

    fn visit_pieces(&self, visitor: &mut dyn Visit) -> Result<([u8; 32], Pieces), CeremonyError> {
        let mut hasher = blake3::Hasher::new();
        let mut reader = self.open(0)?;
        let mut all = Vec::new();
        for (number, vector) in self.vectors.iter().enumerate() {
            let mut pieces = Vec::new();
            let mut keep = |bytes: &[u8]| {
                hasher.update(bytes);
                pieces.push(*blake3::hash(bytes).as_bytes());
            };
            let place = (number, vector.len);
            match vector.group {
                Group::G1 => self.pass(&mut reader, place, &mut keep, &mut |start, points| {
                    visitor.g1(number, start, points)
                })?,
                Group::G2 => self.pass(&mut reader, place, &mut keep, &mut |start, points| {
                    visitor.g2(number, start, points)
                })?,
            }
            all.push(pieces);
        }
        Ok((*hasher.finalize().as_bytes(), all))
    }

    /// Reads points of a vector, of its number and this length, in whole pieces. Those of a section that was checked before
    /// must be the same.
    fn pass<G: hekaton_arith::Group>(
        &self,
        reader: &mut impl Read,
        (number, len): (usize, usize),
        keep: &mut dyn FnMut(&[u8]),
        each: &mut Each<'_, G>,
    ) -> Result<(), CeremonyError> {
        let mut bytes = Vec::new();
        for start in (0..len).step_by(PIECE) {
            let whole = PIECE.min(self.vectors[number].len - start);
            bytes.resize(whole * G::UNCOMPRESSED, 0);
            reader.read_exact(&mut bytes).map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => self.too_short(),
                _ => io(&self.path)(e),
            })?;
            keep(&bytes);
            let expected = self.pieces.as_ref().map(|pieces| pieces[number][start / PIECE]);
            if expected.is_some_and(|expected| blake3::hash(&bytes) != expected) {
                let why = format!("section '{}' changed after it was checked", self.name);
                return Err(crate::check::file(&self.path, why));
            }
            let needed = whole.min(len - start) * G::UNCOMPRESSED;
            let points = decode::<G>(&bytes[..needed]).map_err(|(at, e)| {
                self.broken(Check::Curve, number, start + at, &format!(" ({e})"))
            })?;
            each(start, &points)?;
        }
        Ok(())
    }

    /// The first `scalars.len()` points of a vector, each times its scalar, added up.
    pub(crate) fn combine<G: hekaton_arith::Group>(
        &self,
        vector: usize,
        scalars: &[Fr],
    ) -> Result<G, CeremonyError> {
        let mut sum = G::IDENTITY;
        let mut reader = self.open(bytes_of(&self.vectors[..vector]))?;
        let place = (vector, scalars.len());
        self.pass(&mut reader, place, &mut |_| {}, &mut |start, points: &[G]| {
            sum = sum.add(&combination(points, &scalars[start..start + points.len()]));
            Ok(())
        })?;
        Ok(sum)
    }

    /// Reads the first points of a vector into memory.
    pub(crate) fn read<G: hekaton_arith::Group>(
        &self,
        vector: usize,
        len: usize,
    ) -> Result<Vec<G>, CeremonyError> {
        let mut reader = self.open(bytes_of(&self.vectors[..vector]))?;
        let mut all = Vec::with_capacity(len);
        self.pass(&mut reader, (vector, len), &mut |_| {}, &mut |_, points: &[G]| {
            all.extend_from_slice(points);
            Ok(())
        })?;
        Ok(all)
    }

    /// The error for a point.
    pub(crate) fn broken(
        &self,
        check: Check,
        vector: usize,
        at: usize,
        why: &str,
    ) -> CeremonyError {
        Broken { check, at: self.place(vector, at) + why }.into()
    }

    /// The name of a point, for messages.
    pub(crate) fn place(&self, vector: usize, at: usize) -> String {
        format!("section '{}', point {at} of {}", self.name, self.vectors[vector].name)
    }
}

/// Decodes points; they are on the curve, but maybe not in the subgroup. Errors name the first point that is not.
fn decode<G: hekaton_arith::Group>(bytes: &[u8]) -> Result<Vec<G>, (usize, PointError)> {
    let points = bytes.par_chunks(G::UNCOMPRESSED).with_min_len(CHUNK).enumerate();
    points.map(|(at, bytes)| G::on_curve_from_uncompressed(bytes).map_err(|e| (at, e))).collect()
}

/// Writes points.
pub(crate) fn write<G: hekaton_arith::Group>(
    points: &[G],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for piece in points.chunks(PIECE) {
        let mut bytes = vec![0; piece.len() * G::UNCOMPRESSED];
        let pairs = bytes.par_chunks_mut(G::UNCOMPRESSED).zip(piece);
        pairs.with_min_len(CHUNK).for_each(|(bytes, point)| point.write_uncompressed(bytes));
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// The sum of the products of points and scalars, on all threads of the pool.
pub(crate) fn combination<G: hekaton_arith::Group>(points: &[G], scalars: &[Fr]) -> G {
    let chunk = points.len().div_ceil(rayon::current_num_threads()).max(1 << 10);
    let parts: Vec<G> = points
        .par_chunks(chunk)
        .zip(scalars.par_chunks(chunk))
        .map(|(points, scalars)| G::msm(points, scalars))
        .collect();
    G::sum(&parts)
}

/// The products of points and scalars, on all threads of the pool.
pub(crate) fn products<G: hekaton_arith::Group>(points: &[G], scalars: &[Fr]) -> Vec<G> {
    let pairs = points.par_chunks(CHUNK).zip(scalars.par_chunks(CHUNK));
    pairs.flat_map_iter(|(points, scalars)| G::mul_each(points, scalars)).collect()
}

impl Section {
    /// Copies the section to the end of another file, and returns its digest.
    pub(crate) fn copy_to(
        &self,
        out: &mut dyn Write,
        to: &std::path::Path,
    ) -> Result<[u8; 32], CeremonyError> {
        let mut reader = self.open(0)?;
        let mut hasher = blake3::Hasher::new();
        let mut left = self.bytes();
        let mut bytes = vec![0; 1 << 20];
        while left > 0 {
            let n = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            reader.read_exact(&mut bytes[..n]).map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => self.too_short(),
                _ => io(&self.path)(e),
            })?;
            hasher.update(&bytes[..n]);
            out.write_all(&bytes[..n]).map_err(io(to))?;
            left -= n as u64;
        }
        Ok(*hasher.finalize().as_bytes())
    }
}
