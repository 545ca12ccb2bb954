//! Transcripts: a genesis, the logs of its chains and their current sections, in a directory or in one file
//! (spec: ceremony#files).

use crate::chain::{self, Checked};
use crate::check::{Broken, CeremonyError, Check, file, io, require};
use crate::genesis::{Chain, Earlier, Genesis, Origin, Subject};
use crate::log::{Log, MOST_LOG};
use crate::record::{Record, Step};
use crate::sections::Section;
use hekaton_arith::{G1Point, Group as _};
use hekaton_core::encoding::Reader;
use hekaton_files::{open_regular, read_at_most, write_readable};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The longest genesis that is read, in bytes.
pub const MOST_GENESIS: u64 = 1 << 26;
const STATE: &[u8; 8] = b"HEKATNCS";
const STATE_VERSION: u32 = 1;

/// A transcript that was read; its records have not been checked.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The directory, or the state file; empty for earlier powers, of which there are only records.
    pub path: PathBuf,
    /// The genesis.
    pub genesis: Genesis,
    /// The logs, in the order of the chains.
    pub logs: Vec<Log>,
    /// The earlier powers at whose end these begin.
    pub earlier: Option<Box<Transcript>>,
    /// The offset of the first section, if it is a state file.
    state: Option<u64>,
}

/// A file of a transcript that is named by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The path in the directory: `sections/HEX` or `fixed/HEX`.
    pub name: String,
    /// The BLAKE3 digest of its content.
    pub digest: [u8; 32],
    /// The largest number of bytes that it has.
    pub most: u64,
}

impl NamedFile {
    fn new(folder: &str, digest: [u8; 32], most: u64) -> Self {
        Self { name: format!("{folder}/{}", hex::encode(digest)), digest, most }
    }
}

/// The file of a log.
pub(crate) fn log_path(directory: &Path, chain: Chain) -> PathBuf {
    directory.join(format!("{chain}.log"))
}

/// The file of a section.
pub(crate) fn section_path(directory: &Path, digest: &[u8; 32]) -> PathBuf {
    directory.join("sections").join(hex::encode(digest))
}

/// The file of the queries of a type that no contribution changes.
pub(crate) fn fixed_path(directory: &Path, digest: &[u8; 32]) -> PathBuf {
    directory.join("fixed").join(hex::encode(digest))
}

/// The most powers of which each begins where the one before ended.
const MOST_EARLIER: usize = 16;

/// Says that it is the earlier powers that break a rule.
pub(crate) fn of_earlier(error: CeremonyError) -> CeremonyError {
    match error {
        CeremonyError::Broken(Broken { check, at }) => {
            Broken { check, at: format!("earlier powers, {at}") }.into()
        }
        other => other,
    }
}

/// Reads the earlier powers in a genesis, behind which there may be one less than `depth`.
fn earlier_of(genesis: &Genesis, depth: usize) -> Result<Option<Transcript>, CeremonyError> {
    let Subject::Powers(powers) = &genesis.subject else { return Ok(None) };
    let Origin::Powers(earlier) = &powers.origin else { return Ok(None) };
    let wrong = |why: String| CeremonyError::Foreign(format!("earlier powers: {why}"));
    let Some(depth) = depth.checked_sub(1) else {
        return Err(wrong(format!("more than {MOST_EARLIER} stand behind each other")));
    };
    let genesis = Genesis::from_bytes(&earlier.genesis).map_err(|e| wrong(e.to_string()))?;
    let Subject::Powers(older) = &genesis.subject else {
        return Err(wrong("they are a family".to_owned()));
    };
    older.fits(powers.domain, powers.padded())?;
    let mut logs = Vec::new();
    for (chain, bytes) in genesis.chains().into_iter().zip(&earlier.records) {
        let name = PathBuf::from(format!("earlier powers: {chain}.log"));
        let log = Log::parse_records(bytes, &genesis, chain, &name)?;
        if log.torn {
            return Err(file(&name, "it ends in the middle of a record"));
        }
        logs.push(log);
    }
    Transcript::of_records(genesis, logs, depth).map(Some)
}

impl Transcript {
    /// Opens a directory or a state file.
    ///
    /// # Errors
    /// If it is not a transcript, or is damaged.
    pub fn open(path: &Path) -> Result<Self, CeremonyError> {
        match path.is_dir() {
            true => Self::open_directory(path),
            false => Self::open_state(path),
        }
    }

    /// A transcript without sections, from its genesis and logs.
    fn of_records(genesis: Genesis, logs: Vec<Log>, depth: usize) -> Result<Self, CeremonyError> {
        let earlier = earlier_of(&genesis, depth)?.map(Box::new);
        Ok(Self { path: PathBuf::new(), genesis, logs, earlier, state: None })
    }

    /// A transcript at its beginning, without sections.
    pub(crate) fn without_records(genesis: Genesis) -> Result<Self, CeremonyError> {
        let logs = genesis.chains().into_iter().map(Log::empty).collect();
        Self::of_records(genesis, logs, MOST_EARLIER)
    }

    /// These powers in the genesis of others that begin at their end.
    ///
    /// # Panics
    /// If it is a family.
    pub(crate) fn as_earlier(&self) -> Earlier {
        let [Step::Powers(tau), Step::Powers(phi)] =
            [Chain::Tau, Chain::Phi].map(|chain| self.last_step(chain))
        else {
            panic!("a family, expected powers")
        };
        let number = "each chain has its number of secrets";
        Earlier {
            genesis: self.genesis.to_bytes(),
            records: [Chain::Tau, Chain::Phi].map(|chain| self.log(chain).framed_records()),
            tau: (tau.in_g1.try_into().expect(number), tau.in_g2),
            phi: (phi.in_g1.try_into().expect(number), phi.in_g2),
        }
    }

    fn open_directory(path: &Path) -> Result<Self, CeremonyError> {
        let of_genesis = path.join("genesis");
        if !of_genesis.exists() {
            let why = "not the transcript of a ceremony: it has no file 'genesis'";
            return Err(file(path, why));
        }
        let bytes = read_at_most(&of_genesis, MOST_GENESIS).map_err(io(&of_genesis))?;
        let genesis = Genesis::from_bytes(&bytes).map_err(|e| file(&of_genesis, e))?;
        let mut logs = Vec::new();
        for chain in genesis.chains() {
            let log = log_path(path, chain);
            let bytes = read_at_most(&log, MOST_LOG).map_err(io(&log))?;
            logs.push(Log::parse(&bytes, &genesis, chain, &log)?);
        }
        let records = Self::of_records(genesis, logs, MOST_EARLIER).map_err(|e| file(path, e))?;
        Ok(Self { path: path.to_owned(), ..records })
    }

    fn open_state(path: &Path) -> Result<Self, CeremonyError> {
        let mut input = open_regular(path).map_err(io(path))?;
        let length = input.metadata().map_err(io(path))?.len();
        let mut offset = 0;
        let mut take = |bytes: u64, most: u64| -> Result<Vec<u8>, CeremonyError> {
            if bytes > most.min(length - offset) {
                return Err(file(path, "cut off, or not the state of a ceremony"));
            }
            offset += bytes;
            let mut out = Vec::new();
            (&mut input).take(bytes).read_to_end(&mut out).map_err(io(path))?;
            match out.len() as u64 == bytes {
                true => Ok(out),
                false => Err(file(path, "cut off while it was read")),
            }
        };
        let head = take(12, 12)?;
        if head[..8] != *STATE {
            return Err(file(
                path,
                "neither a transcript's directory nor a state: wrong magic bytes",
            ));
        }
        if head[8..] != STATE_VERSION.to_le_bytes() {
            let why = format!("a state of another version: this program reads {STATE_VERSION}");
            return Err(file(path, why));
        }
        let long = |bytes: Vec<u8>| Reader::new(&bytes).u64("length").map_err(|e| file(path, e));
        let bytes = long(take(8, 8)?)?;
        let genesis = take(bytes, MOST_GENESIS)?;
        let genesis = Genesis::from_bytes(&genesis).map_err(|e| file(path, e))?;
        let mut logs = Vec::new();
        for chain in genesis.chains() {
            let bytes = long(take(8, 8)?)?;
            let log = Log::parse(&take(bytes, MOST_LOG)?, &genesis, chain, path)?;
            if log.torn {
                return Err(file(path, format!("the log of chain {chain} is cut off")));
            }
            logs.push(log);
        }
        let records = Self::of_records(genesis, logs, MOST_EARLIER).map_err(|e| file(path, e))?;
        let transcript = Self { path: path.to_owned(), state: Some(offset), ..records };
        let sections: u64 = transcript.all_sections().iter().map(Section::bytes).sum();
        match length == offset + sections {
            true => Ok(transcript),
            false => {
                let why = format!("{length} bytes, expected {}", offset + sections);
                Err(file(path, why))
            }
        }
    }

    /// Writes the transcript and its sections as one file, for a contributor without access to the directory.
    ///
    /// # Errors
    /// If a section is missing, or the file cannot be written.
    pub fn write_state(&self, path: &Path) -> Result<(), CeremonyError> {
        let mut out = hekaton_files::NewFile::beside(path).map_err(io(path))?;
        let genesis = self.genesis.to_bytes();
        let mut head = STATE.to_vec();
        head.extend_from_slice(&STATE_VERSION.to_le_bytes());
        head.extend_from_slice(&(genesis.len() as u64).to_le_bytes());
        head.extend(genesis);
        for log in &self.logs {
            let bytes = log.to_bytes(&self.genesis);
            head.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            head.extend(bytes);
        }
        out.write_all(&head).map_err(io(path))?;
        let expected: Vec<[u8; 32]> = (self.genesis.chains().into_iter())
            .flat_map(|chain| self.last_step(chain).digests())
            .map(|digests| digests.new)
            .collect();
        for (section, expected) in self.all_sections().into_iter().zip(expected) {
            let digest = section.copy_to(&mut out, path)?;
            if digest != expected {
                let why = "does not have the digest in its record: the ceremony has advanced, so try again, or it \
                           is damaged";
                return Err(file(&section.path, why));
            }
        }
        out.create(path).map_err(io(path))
    }

    fn all_sections(&self) -> Vec<Section> {
        self.genesis.chains().into_iter().flat_map(|chain| self.sections(chain)).collect()
    }

    /// Writes genesis and logs, without sections, into a new directory, to be kept next to the keys that the ceremony made.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn copy_records(&self, directory: &Path) -> Result<(), CeremonyError> {
        std::fs::create_dir_all(directory).map_err(io(directory))?;
        let place = directory.join("genesis");
        write_readable(&place, &self.genesis.to_bytes()).map_err(io(&place))?;
        for log in &self.logs {
            let place = log_path(directory, log.chain);
            write_readable(&place, &log.to_bytes(&self.genesis)).map_err(io(&place))?;
        }
        hekaton_files::sync_folder_of(directory).map_err(io(directory))
    }

    /// The log of a chain.
    ///
    /// # Panics
    /// If the transcript has no such chain.
    pub fn log(&self, chain: Chain) -> &Log {
        self.logs.iter().find(|log| log.chain == chain).expect("a chain of the transcript")
    }

    /// The state of a chain after its last record.
    pub(crate) fn last_step(&self, chain: Chain) -> Step {
        let last = self.log(chain).records.last();
        last.map_or_else(|| Step::start(&self.genesis, chain), |record| record.step.clone())
    }

    /// The current sections of a chain.
    pub fn sections(&self, chain: Chain) -> Vec<Section> {
        let digests = self.last_step(chain).digests();
        let mut offset = self.offset(chain);
        let mut sections = Vec::new();
        for ((name, vectors), digests) in self.genesis.sections(chain).into_iter().zip(digests) {
            let section = match self.state {
                Some(_) => Section::at(self.path.clone(), offset, name, vectors),
                None => Section::file(section_path(&self.path, &digests.new), name, vectors),
            };
            offset += section.bytes();
            sections.push(section);
        }
        sections
    }

    /// The offset in a state file of the sections of a chain.
    fn offset(&self, chain: Chain) -> u64 {
        let Some(first) = self.state else { return 0 };
        let before = self.genesis.chains().into_iter().take_while(|other| *other != chain);
        let vectors = before.flat_map(|chain| self.genesis.sections(chain));
        first + vectors.map(|(_, vectors)| crate::sections::bytes_of(&vectors)).sum::<u64>()
    }

    /// The files that are named by their digests: the current sections of some chains and, for auditors of a family, the queries
    /// that no contribution changes.
    pub fn named_files(&self, chains: &[Chain], fixed: bool) -> Vec<NamedFile> {
        let mut files = Vec::new();
        for chain in chains {
            let digests = self.last_step(*chain).digests();
            for ((_, vectors), digests) in self.genesis.sections(*chain).into_iter().zip(digests) {
                let most = crate::sections::bytes_of(&vectors);
                files.push(NamedFile::new("sections", digests.new, most));
            }
        }
        let family = self.genesis.family().filter(|_| fixed);
        for kind in family.iter().flat_map(|family| &family.types) {
            // A point for each variable at most: of G1 in IC and A, and of G2 in B.
            let most = 4 * G1Point::UNCOMPRESSED as u64 * kind.variables as u64;
            files.push(NamedFile::new("fixed", kind.fixed, most));
        }
        files
    }

    /// The earlier powers at whose end these begin, the first ones first, and this transcript last.
    pub fn lineage(&self) -> Vec<&Self> {
        let mut all = self.earlier.as_ref().map_or(Vec::new(), |earlier| earlier.lineage());
        all.push(self);
        all
    }

    /// Checks the records of all chains, and those of earlier powers.
    ///
    /// # Errors
    /// The first rule that a record breaks.
    pub fn check(&self) -> Result<Vec<Checked>, CeremonyError> {
        if let Some(earlier) = &self.earlier {
            self.check_earlier(earlier).map_err(of_earlier)?;
        }
        self.logs.iter().map(|log| chain::check(&self.genesis, log.chain, &log.records)).collect()
    }

    /// Checks the records of earlier powers, that somebody contributed to them, and that these begin with the points after the last
    /// records.
    fn check_earlier(&self, earlier: &Self) -> Result<(), CeremonyError> {
        for (checked, log) in earlier.check()?.iter().zip(&earlier.logs) {
            chain::check_end(&[(&log.records, checked)])?;
            let start = Step::start(&self.genesis, log.chain);
            let at = || format!("chain {}", log.chain);
            require(start.has_points_of(checked.last()), Check::End, at)?;
        }
        Ok(())
    }

    /// The records of a chain.
    pub fn records(&self, chain: Chain) -> &[Record] {
        &self.log(chain).records
    }

    /// The head of a chain after its last record.
    pub fn head(&self, chain: Chain) -> [u8; 32] {
        let first = || crate::record::first_head(&self.genesis, chain);
        self.records(chain).last().map_or_else(first, Record::head)
    }

    /// The digest of the whole transcript, which keys name.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony transcript");
        hasher.update(&self.genesis.digest());
        for log in &self.logs {
            let head = self.head(log.chain);
            hasher.update(&(log.records.len() as u64).to_le_bytes()).update(&head);
        }
        if let Some(family) = self.genesis.family() {
            hasher.update(&family.powers);
            family.extends.iter().for_each(|digest| _ = hasher.update(digest));
        }
        *hasher.finalize().as_bytes()
    }
}
