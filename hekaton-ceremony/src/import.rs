//! Powers of tau from files of the `powersoftau` programs of Zcash and Filecoin; snarkjs writes challenges, too
//! (spec: ceremony#import).

use crate::chain;
use crate::check::{CeremonyError, file, io};
use crate::coordinator::{Beginning, draft_of};
use crate::genesis::{Chain, Genesis, Import, Layout, Origin, PowersGenesis, Subject};
use crate::powers::{self, Output, write_start};
use crate::record::{Digests, PowersStep};
use crate::sections::{PIECE, Section, Vector};
use crate::transcript::{Transcript, section_path};
use blake2::{Blake2b512, Digest};
use hekaton_arith::{G1Point, G2Point, Group};
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The digest with which a file begins: that of the file before it.
const HASH: u64 = 64;
/// The public key at the end of a response.
const PUBLIC_KEY: u64 = 1152;

/// A file of powers: n of tau in G2, alpha and beta, and 2n - 1 of tau in G1.
struct Source<'a> {
    path: &'a Path,
    file: BufReader<File>,
    layout: Layout,
    n: u64,
}

/// The points of a file in their order: tau in G1, tau in G2, alpha, beta in G1, beta in G2.
#[derive(Clone, Copy)]
enum Part {
    Tau1,
    Tau2,
    Alpha1,
    Beta1,
    Beta2,
}

impl Layout {
    /// The length of a point of G1 in bytes; one of G2 has twice as many.
    fn point(self) -> u64 {
        match self {
            Self::Challenge => G1Point::UNCOMPRESSED as u64,
            Self::Response => G1Point::COMPRESSED as u64,
        }
    }

    fn bytes(self, n: u64) -> u64 {
        let key = if self == Self::Response { PUBLIC_KEY } else { 0 };
        // In points of G1: 2n - 1 and 2n of tau, n of alpha, n and 2 of beta.
        HASH + (6 * n + 1) * self.point() + key
    }

    /// The layout and the number n of a file with this length.
    fn of_length(bytes: u64) -> Option<(Self, u64)> {
        let layouts = [Self::Challenge, Self::Response].into_iter();
        let found = layouts.flat_map(|layout| (1..=30).map(move |k| (layout, 1u64 << k)));
        found.into_iter().find(|(layout, n)| layout.bytes(*n) == bytes)
    }
}

impl<'a> Source<'a> {
    fn open(path: &'a Path) -> Result<Self, CeremonyError> {
        let opened = hekaton_files::open_regular(path).map_err(io(path))?;
        let length = opened.metadata().map_err(io(path))?.len();
        let Some((layout, n)) = Layout::of_length(length) else {
            let why = format!(
                "{length} bytes: neither a challenge nor a response of powers of tau on BLS12-381, for a power of two of \
                 them; is it cut off?"
            );
            return Err(file(path, why));
        };
        Ok(Self { path, file: BufReader::with_capacity(1 << 20, opened), layout, n })
    }

    /// The BLAKE2b digest of the whole file.
    fn blake2b(&mut self) -> Result<[u8; 64], CeremonyError> {
        let mut hasher = Blake2b512::new();
        std::io::copy(&mut self.file, &mut hasher).map_err(io(self.path))?;
        Ok(hasher.finalize().into())
    }

    /// Goes to the first point of a part.
    fn seek(&mut self, part: Part) -> Result<(), CeremonyError> {
        let n = self.n;
        let before = match part {
            Part::Tau1 => 0,
            Part::Tau2 => 2 * n - 1,
            Part::Alpha1 => 4 * n - 1,
            Part::Beta1 => 5 * n - 1,
            Part::Beta2 => 6 * n - 1,
        };
        let at = SeekFrom::Start(HASH + before * self.layout.point());
        self.file.seek(at).map(drop).map_err(io(self.path))
    }

    /// Reads the next points. They are on the curve, but maybe not in the subgroup.
    fn read<G: Group>(&mut self, count: usize) -> Result<Vec<G>, CeremonyError> {
        let width = match self.layout {
            Layout::Challenge => G::UNCOMPRESSED,
            Layout::Response => G::COMPRESSED,
        };
        let at = self.file.stream_position().map_err(io(self.path))?;
        let mut bytes = vec![0; count * width];
        self.file.read_exact(&mut bytes).map_err(io(self.path))?;
        let points = bytes.par_chunks(width).enumerate().map(|(number, bytes)| {
            let decoded = match self.layout {
                Layout::Challenge => G::on_curve_from_uncompressed(bytes),
                Layout::Response => G::on_curve_from_compressed(bytes),
            };
            let place = at + (number * width) as u64;
            decoded.map_err(|e| file(self.path, format!("the point at byte {place}: {e}")))
        });
        points.collect()
    }

    /// Reads one point of a part.
    fn one<G: Group>(&mut self, part: Part, index: usize) -> Result<G, CeremonyError> {
        self.seek(part)?;
        let points = self.read::<G>(index + 1)?;
        Ok(points[index])
    }

    /// Writes the first points of each part as a section of tau, and returns its digest.
    fn write(
        &mut self,
        vectors: &[Vector],
        mut out: Output<'_>,
    ) -> Result<[u8; 32], CeremonyError> {
        let parts = [Part::Tau1, Part::Tau2, Part::Alpha1, Part::Beta1];
        for (vector, part) in vectors.iter().zip(parts) {
            self.seek(part)?;
            for start in (0..vector.len).step_by(PIECE) {
                let count = PIECE.min(vector.len - start);
                match part {
                    Part::Tau2 => out.write(&self.read::<G2Point>(count)?)?,
                    _ => out.write(&self.read::<G1Point>(count)?)?,
                }
            }
        }
        Ok(*out.hasher.finalize().as_bytes())
    }
}

/// A file of powers that others have made: a *challenge* or a *response* for n = 2^k, which serves domains of up to 3/4 n rows.
#[derive(Clone, Copy, Debug)]
pub struct PowersFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// The BLAKE2b-512 digest that its makers have published, to be compared.
    pub expect: Option<[u8; 64]>,
}

/// Begins a ceremony for powers, whose chain of tau begins with a file of others. Every point that is taken is checked, and so is the
/// structure; the history of the file is not. `begun` and `progress` are as for
/// [`new_powers`](crate::new_powers) and [`new_family`](crate::new_family).
///
/// # Errors
/// If the file has no powers, is too short for the domain, is not the expected one, or breaks a rule of powers; or if the directory is
/// in use or cannot be written.
pub fn new_powers_from(
    path: &Path,
    source: &PowersFile<'_>,
    domain: usize,
    instances: usize,
    beacon: &str,
    begun: &dyn Fn(&Path),
    progress: &mut dyn FnMut(&str),
) -> Result<Transcript, CeremonyError> {
    let PowersFile { path: source, expect } = *source;
    let mut from = Source::open(source)?;
    // tau^(2N-1) is needed, and the last power in the file is 2n - 2; N is 2^k or 3 * 2^k.
    if 4 * domain as u64 > 3 * from.n {
        let why = format!(
            "{} powers serve domains of up to {} rows, not {domain}: use a larger file",
            from.n,
            from.n / 4 * 3
        );
        return Err(file(source, why));
    }
    progress(&format!("hashing {}", source.display()));
    let blake2b = from.blake2b()?;
    if let Some(expected) = expect.filter(|expected| *expected != blake2b) {
        let why = format!(
            "its BLAKE2b digest is {}, but --expect requires {}",
            hex::encode(blake2b),
            hex::encode(expected)
        );
        return Err(file(source, why));
    }
    let import = Import {
        layout: from.layout,
        bytes: from.layout.bytes(from.n),
        blake2b,
        in_g1: [from.one(Part::Tau1, 1)?, from.one(Part::Alpha1, 0)?, from.one(Part::Beta1, 0)?],
        in_g2: [from.one(Part::Tau2, 1)?, from.one(Part::Beta2, 0)?],
    };
    let mut powers = PowersGenesis {
        domain,
        instances,
        starts: [[0; 32]; 2],
        origin: Origin::File(Box::new(import.clone())),
    };
    // Readers refuse single points outside the subgroup, too.
    let genesis = draft_of(&powers, beacon)?;
    let beginning = Beginning::new(path, begun)?;
    let vectors = |chain| genesis.sections(chain).swap_remove(0);
    let ((name, of_tau), (_, of_phi)) = (vectors(Chain::Tau), vectors(Chain::Phi));
    progress("reading its points");
    powers.starts = [
        beginning.write_named(section_path, |out| from.write(&of_tau, out))?,
        beginning.write_named(section_path, |out| write_start(&of_phi, out))?,
    ];
    // What was read must be what was hashed.
    from.file.seek(SeekFrom::Start(0)).map_err(io(source))?;
    if from.blake2b()? != blake2b {
        return Err(file(source, "changed while it was read: try again"));
    }
    progress("checking them");
    let place = section_path(beginning.directory(), &powers.starts[0]);
    let mut section = Section::file(place, name, of_tau);
    let step = PowersStep {
        in_g1: import.in_g1.to_vec(),
        in_g2: import.in_g2,
        digests: Digests { received: [0; 32], new: powers.starts[0] },
    };
    powers::check(&mut section, Chain::Tau, &step, true)?;
    let powers = Subject::Powers(powers);
    let genesis = Genesis { subject: powers.clone(), ..genesis };
    chain::check(&genesis, Chain::Tau, &[])?;
    beginning.publish(powers, beacon.to_owned())
}
