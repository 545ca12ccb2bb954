//! The coordinator's side: beginning a ceremony, and accepting contributions (spec: ceremony#acceptance).
//!
//! A contribution is accepted once its record is synced at the end of the log. Steps before that can be lost in a crash and
//! are repeated; steps after it are completed when the directory is next opened.

use crate::check::{CeremonyError, file, io};
use crate::contribute::{Response, check_response};
use crate::family::{Shape, Start, first_thetas, starts};
use crate::genesis::{FamilyGenesis, Genesis, Origin, PowersGenesis, Subject, TypeGenesis};
use crate::log;
use crate::powers::{self, Output, write_start};
use crate::record::{Digests, Kind, PowersStep, Record, Step};
use crate::sections::{Section, Vector};
use crate::transcript::{Transcript, fixed_path, log_path, of_earlier, section_path};
use crate::verify::{Family, Powers};
use hekaton_circuit::R1cs;
use hekaton_core::mirage::check_type_with;
use hekaton_files::{NewDirectory, NewFile, READABLE, write_readable};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The file that `finish` writes, after which nothing is accepted.
const FINAL: &str = "final.json";

/// The description of a family whose keys are to be made.
#[derive(Clone, Debug)]
pub struct FamilyPlan {
    /// The name of the circuit.
    pub circuit: String,
    /// The parameters that all circuits of the family share, as JSON.
    pub parameters: String,
    /// `true` if proofs are to be zero-knowledge.
    pub zero_knowledge: bool,
    /// The largest number of subcircuits, N_max.
    pub instances: usize,
    /// The names of the buses, in the order of their tags.
    pub buses: Vec<String>,
    /// The most points of a segment, so that several people can contribute at the same time; `None` for a single segment.
    pub segment_points: Option<usize>,
    /// The announced source of a beacon, or nothing.
    pub beacon: String,
}

/// A transcript's directory under a temporary name, so that it is there as a whole or not at all.
pub(crate) struct Beginning {
    directory: NewDirectory,
    path: PathBuf,
}

impl Beginning {
    pub(crate) fn new(path: &Path, begun: &dyn Fn(&Path)) -> Result<Self, CeremonyError> {
        let directory = NewDirectory::beside(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::DirectoryNotEmpty => {
                file(path, "is not empty: use a new or empty directory")
            }
            _ => io(path)(e),
        })?;
        begun(directory.path());
        for name in ["sections", "fixed", "incoming"] {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).map_err(io(&path))?;
        }
        Ok(Self { directory, path: path.to_owned() })
    }

    /// The directory under its temporary name.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file that is named by its digest.
    pub(crate) fn write_named(
        &self,
        name: fn(&Path, &[u8; 32]) -> PathBuf,
        write: impl FnOnce(Output<'_>) -> Result<[u8; 32], CeremonyError>,
    ) -> Result<[u8; 32], CeremonyError> {
        write_named(self.directory.path(), name, write)
    }

    /// Writes genesis and logs, and gives the directory its name.
    pub(crate) fn publish(
        self,
        subject: Subject,
        beacon: String,
    ) -> Result<Transcript, CeremonyError> {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce)?;
        let genesis = Genesis { nonce, beacon, subject };
        let building = self.directory.path();
        let (place, bytes) = (building.join("genesis"), genesis.to_bytes());
        // Nobody could read what is out of range: too many segments, or too long a text.
        Genesis::from_bytes(&bytes).map_err(|e| {
            CeremonyError::Foreign(format!("a ceremony with these parameters is not possible: {e}"))
        })?;
        write_readable(&place, &bytes).map_err(io(&place))?;
        for chain in genesis.chains() {
            let place = log_path(building, chain);
            write_readable(&place, &log::header(&genesis)).map_err(io(&place))?;
        }
        let Self { directory, path } = self;
        directory.publish().map_err(io(&path))?;
        Transcript::open(&path)
    }
}

/// Writes a file that is named by its digest into a transcript's directory.
pub(crate) fn write_named(
    directory: &Path,
    name: fn(&Path, &[u8; 32]) -> PathBuf,
    write: impl FnOnce(Output<'_>) -> Result<[u8; 32], CeremonyError>,
) -> Result<[u8; 32], CeremonyError> {
    let place = name(directory, &[0; 32]);
    let mut new = NewFile::with_mode(&place, READABLE).map_err(io(&place))?;
    let digest = {
        let mut file = std::io::BufWriter::with_capacity(1 << 20, &mut new);
        let digest =
            write(Output { file: &mut file, path: &place, hasher: blake3::Hasher::new() })?;
        std::io::Write::flush(&mut file).map_err(io(&place))?;
        digest
    };
    new.replace(&name(directory, &digest)).map_err(io(&place))?;
    Ok(digest)
}

/// Begins a ceremony for powers: for families with domains of up to `domain` rows and up to `instances` subcircuits.
/// `begun` is called with the path of the unfinished directory, which a program that exits early must remove.
///
/// # Errors
/// If the directory is in use or cannot be written, or a number is out of range.
pub fn new_powers(
    path: &Path,
    domain: usize,
    instances: usize,
    beacon: &str,
    begun: &dyn Fn(&Path),
) -> Result<Transcript, CeremonyError> {
    let origin = Origin::Generators;
    let powers = PowersGenesis { domain, instances, starts: [[0; 32]; 2], origin };
    let genesis = draft_of(&powers, beacon)?;
    let beginning = Beginning::new(path, begun)?;
    let mut starts = [[0; 32]; 2];
    for (start, chain) in starts.iter_mut().zip(genesis.chains()) {
        for (_, vectors) in genesis.sections(chain) {
            *start = beginning.write_named(section_path, |out| write_start(&vectors, out))?;
        }
    }
    beginning.publish(Subject::Powers(PowersGenesis { starts, ..powers }), beacon.to_owned())
}

/// The genesis of powers before their first points are written. Numbers that readers refuse are refused before anything is computed
/// from them.
pub(crate) fn draft_of(powers: &PowersGenesis, beacon: &str) -> Result<Genesis, CeremonyError> {
    let subject = Subject::Powers(powers.clone());
    let genesis = Genesis { nonce: [0; 32], beacon: beacon.to_owned(), subject };
    match Genesis::from_bytes(&genesis.to_bytes()) {
        Ok(_) => Ok(genesis),
        Err(e) => Err(CeremonyError::Foreign(format!(
            "powers with these parameters are not possible: {e}"
        ))),
    }
}

/// Begins a ceremony for powers at the end of finished powers, for domains and numbers of subcircuits that these support. Everybody
/// who contributed to either ceremony counts: the genesis keeps the records of the earlier powers. These records and all points that
/// are taken are checked. `begun` and `progress` are as for [`new_powers`] and [`new_family`].
///
/// # Errors
/// If the earlier powers are too small, unfinished or damaged or break a rule; or if the directory is in use or cannot be written.
pub fn new_powers_after(
    path: &Path,
    earlier: &Transcript,
    domain: usize,
    instances: usize,
    beacon: &str,
    begun: &dyn Fn(&Path),
    progress: &mut dyn FnMut(&str),
) -> Result<Transcript, CeremonyError> {
    if earlier.genesis.family().is_some() {
        return Err(file(&earlier.path, "is the ceremony of a family, expected powers"));
    }
    if !is_finished(earlier) {
        return Err(file(&earlier.path, "the ceremony for these powers is not finished"));
    }
    let origin = Origin::Powers(Box::new(earlier.as_earlier()));
    let mut powers = PowersGenesis { domain, instances, starts: [[0; 32]; 2], origin };
    let genesis = draft_of(&powers, beacon)?;
    progress("checking the records of the earlier powers");
    Transcript::without_records(genesis.clone())?.check()?;
    let beginning = Beginning::new(path, begun)?;
    for (start, chain) in powers.starts.iter_mut().zip(genesis.chains()) {
        let from = earlier.sections(chain).swap_remove(0);
        let (name, vectors) = genesis.sections(chain).swap_remove(0);
        progress(&format!("reading and checking section '{name}'"));
        *start = beginning.write_named(section_path, |out| write_prefix(&from, &vectors, out))?;
        let place = section_path(beginning.directory(), start);
        let Step::Powers(step) = Step::start(&genesis, chain) else {
            unreachable!("powers have chains of powers")
        };
        let digests = Digests { new: *start, ..step.digests };
        let step = PowersStep { digests, ..step };
        let mut section = Section::file(place, name, vectors);
        powers::check(&mut section, chain, &step, true).map_err(of_earlier)?;
    }
    beginning.publish(Subject::Powers(powers), beacon.to_owned())
}

/// Writes the first points of each vector of a section, and returns their digest.
fn write_prefix(
    from: &Section,
    vectors: &[Vector],
    mut out: Output<'_>,
) -> Result<[u8; 32], CeremonyError> {
    let (path, mut offset) = (out.path, from.offset);
    for (whole, prefix) in from.vectors.iter().zip(vectors) {
        Section::at(from.path.clone(), offset, from.name.clone(), vec![*prefix])
            .copy_to(&mut out, path)?;
        offset += whole.bytes();
    }
    Ok(*out.hasher.finalize().as_bytes())
}

/// Begins a ceremony for the keys of a family with these types, from powers that were checked; or for these types in addition to
/// those of a family from the same powers, which was checked, too. `begun` is called with the path of the unfinished directory,
/// which a program that exits early must remove, and `progress` with a description of each step.
///
/// # Errors
/// If a type breaks a rule of setup, the powers are too small, these types cannot extend the family, or the directory is not empty or
/// not writable.
pub fn new_family(
    path: &Path,
    plan: FamilyPlan,
    powers: &Powers,
    extends: Option<&Family>,
    types: &[R1cs],
    begun: &dyn Fn(&Path),
    progress: &mut dyn FnMut(&str),
) -> Result<Transcript, CeremonyError> {
    types.iter().try_for_each(|r1cs| check_type_with(r1cs, &plan.buses))?;
    let shapes: Vec<Shape<'_>> = types.iter().map(Shape::new).collect();
    let largest = shapes.iter().map(|shape| shape.domain).fold(1, usize::max);
    powers.genesis.fits(largest, plan.instances)?;
    if let Some(family) = extends {
        family.goes_with((plan.zero_knowledge, &plan.buses), powers, types)?;
    }
    let beginning = Beginning::new(path, begun)?;
    let made: Vec<Start> = starts(&powers.tau, &shapes, progress)?;
    let mut kinds = Vec::new();
    for (start, shape) in made.iter().zip(&shapes) {
        let section = beginning.write_named(section_path, |out| start.write_section(out))?;
        let fixed = beginning.write_named(fixed_path, |out| start.write_fixed(out))?;
        kinds.push(TypeGenesis::of(shape.r1cs, shape.domain, shape.points(), [section, fixed]));
    }
    drop(made);
    let genesis = FamilyGenesis {
        powers: powers.digest,
        largest: powers.genesis.domain,
        extends: extends.map(|family| family.digest),
        circuit: plan.circuit,
        parameters: plan.parameters,
        zero_knowledge: plan.zero_knowledge,
        instances: plan.instances,
        buses: plan.buses,
        segments: segments(&kinds, plan.segment_points),
        types: kinds,
        thetas: match extends {
            Some(_) => Vec::new(),
            None => first_thetas(&powers.tau, powers.genesis.domain)?,
        },
    };
    beginning.publish(Subject::Family(genesis), plan.beacon)
}

/// The number of types in each segment: as many consecutive types as have at most `most` points in total, and at least one.
fn segments(types: &[TypeGenesis], most: Option<usize>) -> Vec<usize> {
    let Some(most) = most else { return vec![types.len()] };
    let mut segments: Vec<usize> = Vec::new();
    let mut points = 0;
    for kind in types {
        match segments.last_mut().filter(|_| points + kind.size() <= most) {
            Some(last) => (*last, points) = (*last + 1, points + kind.size()),
            None => {
                segments.push(1);
                points = kind.size();
            }
        }
    }
    segments
}

/// A transcript's directory that this process alone may change.
#[derive(Debug)]
pub struct Coordinator {
    /// The transcript.
    pub transcript: Transcript,
    _lock: File,
}

impl Coordinator {
    /// Opens a directory, locks it, and removes what a crash has left.
    ///
    /// # Errors
    /// If another process has it open, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, CeremonyError> {
        // Before anything is written: it may be another directory.
        Transcript::open(path)?;
        if !path.is_dir() {
            return Err(file(path, "a state is read-only: use the transcript's directory"));
        }
        let place = path.join("lock");
        let lock = File::options().create(true).append(true).open(&place).map_err(io(&place))?;
        lock.try_lock().map_err(|e| match e {
            std::fs::TryLockError::WouldBlock => {
                file(path, "another process is working in the directory: wait for it, or stop it")
            }
            std::fs::TryLockError::Error(source) => io(&place)(source),
        })?;
        // Again, because the process that held the lock may have appended a record.
        let coordinator = Self { transcript: Transcript::open(path)?, _lock: lock };
        coordinator.tidy()?;
        Ok(coordinator)
    }

    /// Removes sections that no log names. If a section that a log names is missing, removes nothing: the last record may then be
    /// damaged rather than torn.
    fn tidy(&self) -> Result<(), CeremonyError> {
        let genesis = &self.transcript.genesis;
        let current: Vec<Section> = (genesis.chains().into_iter())
            .flat_map(|chain| self.transcript.sections(chain))
            .collect();
        for section in &current {
            let length = std::fs::metadata(&section.path).map_err(io(&section.path))?.len();
            if length != section.bytes() {
                let why =
                    format!("{length} bytes, expected {}: restore the directory", section.bytes());
                return Err(file(&section.path, why));
            }
        }
        let current: HashSet<PathBuf> = current.into_iter().map(|section| section.path).collect();
        let folder = self.transcript.path.join("sections");
        for entry in std::fs::read_dir(&folder).map_err(io(&folder))? {
            let path = entry.map_err(io(&folder))?.path();
            if !current.contains(&path) {
                // What cannot be removed takes space, and does no harm.
                let _ = std::fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// Checks a received contribution and appends its records. `progress` is called with a description of each section.
    ///
    /// # Errors
    /// If the ceremony is finished, the contribution is refused, or a file cannot be read or written.
    pub fn add(
        &mut self,
        response: &Response,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), CeremonyError> {
        if response.records.iter().any(|record| record.kind != Kind::Contribution) {
            let why = "a beacon is the coordinator's to add, and cannot be sent as a contribution";
            return Err(CeremonyError::Foreign(why.to_owned()));
        }
        self.accept(response, progress)
    }

    /// [`Self::add`] of a beacon, which the coordinator has made.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub fn add_beacon(
        &mut self,
        response: &Response,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), CeremonyError> {
        self.accept(response, progress)
    }

    fn accept(
        &mut self,
        response: &Response,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), CeremonyError> {
        if self.is_finished() {
            let why = "the ceremony is finished, and its chains are never reopened";
            return Err(CeremonyError::Foreign(why.to_owned()));
        }
        // After a crash between two records, the first one is there already.
        let response = self.without_accepted(response)?;
        let checked = self.transcript.check()?;
        check_response(&self.transcript, &checked, &response, progress)?;
        let directory = self.transcript.path.clone();
        for (record, sections) in response.records.iter().zip(&response.sections) {
            for (section, digests) in sections.iter().zip(record.step.digests()) {
                let place = section_path(&directory, &digests.new);
                let mut new = NewFile::with_mode(&place, READABLE).map_err(io(&place))?;
                // The file may have changed since it was checked.
                if section.copy_to(&mut new, &place)? != digests.new {
                    return Err(file(&section.path, "changed while it was read: try again"));
                }
                new.replace(&place).map_err(io(&place))?;
            }
        }
        for record in &response.records {
            self.append(record.clone())?;
        }
        // Accepted, whether or not old sections can be removed: the next command tries again.
        let _ = self.tidy();
        Ok(())
    }

    /// The part of a contribution that is not in the transcript.
    fn without_accepted(&self, response: &Response) -> Result<Response, CeremonyError> {
        let both = response.records.iter().zip(&response.sections);
        let (records, sections): (Vec<Record>, Vec<_>) = both
            .filter(|(record, _)| !self.transcript.records(record.chain).contains(record))
            .map(|(record, sections)| (record.clone(), sections.clone()))
            .unzip();
        match records.is_empty() {
            true => {
                let why = "the contribution is already in the transcript";
                Err(CeremonyError::Foreign(why.to_owned()))
            }
            false => Ok(Response { path: response.path.clone(), records, sections }),
        }
    }

    fn append(&mut self, record: Record) -> Result<(), CeremonyError> {
        let place = log_path(&self.transcript.path, record.chain);
        let log = self.transcript.logs.iter_mut().find(|log| log.chain == record.chain);
        log.expect("a chain of the transcript").append(&place, record)
    }

    /// Reports whether the ceremony is finished.
    pub fn is_finished(&self) -> bool {
        self.transcript.path.join(FINAL).exists()
    }

    /// Ends the ceremony. The caller has made the whole check.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(&self) -> Result<(), CeremonyError> {
        let heads: serde_json::Map<String, serde_json::Value> = (self.transcript.logs.iter())
            .filter_map(|log| {
                let head = hex::encode(log.records.last()?.head());
                Some((log.chain.to_string(), head.into()))
            })
            .collect();
        let place = self.transcript.path.join(FINAL);
        let content = serde_json::json!({
            "format_version": 1, "transcript": hex::encode(self.transcript.digest()), "heads": heads,
        });
        let content = format!("{content:#}\n");
        // A second run over the first one finds what it would write.
        match hekaton_files::read_at_most(&place, 1 << 20) {
            Ok(found) if found == content.as_bytes() => Ok(()),
            Ok(_) => Err(file(
                &place,
                "names another end of the ceremony: restore the directory, or remove it",
            )),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                write_readable(&place, content.as_bytes()).map_err(io(&place))
            }
            Err(e) => Err(io(&place)(e)),
        }
    }
}

/// Reports whether a transcript is finished: whether `final.json` names its digest.
pub fn is_finished(transcript: &Transcript) -> bool {
    let content = hekaton_files::read_at_most(&transcript.path.join(FINAL), 1 << 20);
    let content: Option<serde_json::Value> =
        content.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    content.is_some_and(|content| content["transcript"] == hex::encode(transcript.digest()))
}
