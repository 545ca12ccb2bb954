//! Contributions: what a contributor computes, and the file in which it is sent (spec: ceremony#contributor).

use crate::chain::{Checked, check_next, name_of, same_pairings};
use crate::check::{CeremonyError, Check, file, io, require};
use crate::genesis::{Chain, Genesis};
use crate::membership::Members;
use crate::powers::{self, Output};
use crate::random::VerifierRandomness;
use crate::record::{Kind, Proof, Record, Step};
use crate::secrets::{Seed, of_beacon};
use crate::sections::{Section, bytes_of};
use crate::segment;
use crate::transcript::Transcript;
use ark_ff::Zero;
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_core::encoding::Reader;
use hekaton_core::mirage::wipe_stacks;
use hekaton_files::{NewFile, READABLE, SECRET, open_regular};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"HEKATNCR";
const VERSION: u32 = 1;

/// The contributor, and the chains to contribute to.
#[derive(Debug)]
pub struct Contributor<'a> {
    /// The name that the records claim, at most 128 bytes.
    pub name: &'a str,
    /// The program and its version, at most 128 bytes.
    pub program: &'a str,
    /// A contribution with secrets, or a beacon.
    pub kind: Kind,
    /// The chains, at least one.
    pub chains: &'a [Chain],
}

/// A contribution that was sent: records, and the sections that they made.
#[derive(Debug)]
pub struct Response {
    /// The file.
    pub path: PathBuf,
    /// The records, one for each chain that was contributed to.
    pub records: Vec<Record>,
    /// The new sections of each of these chains.
    pub sections: Vec<Vec<Section>>,
}

/// The bytes of a response before its sections.
#[allow(
    clippy::cast_possible_truncation,
    reason = "there are at most 200 chains, and records are short"
)]
fn head(genesis: &Genesis, records: &[Record]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&genesis.digest());
    out.push(records.len() as u8);
    for record in records {
        let bytes = record.to_bytes();
        out.push(record.chain.code());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    }
    out
}

impl Response {
    /// Reads the records of a response to a ceremony; they have not been checked.
    ///
    /// # Errors
    /// If the file is not a contribution, is cut off, or belongs to another ceremony.
    pub fn open(path: &Path, genesis: &Genesis) -> Result<Self, CeremonyError> {
        let mut input = open_regular(path).map_err(io(path))?;
        let length = input.metadata().map_err(io(path))?.len();
        let chains = genesis.chains();
        let mut bytes = Vec::new();
        (&mut input)
            .take(head_bytes(genesis, &chains))
            .read_to_end(&mut bytes)
            .map_err(io(path))?;
        let wrong = |e: hekaton_core::DecodeError| file(path, e);
        let mut reader = Reader::new(&bytes);
        if reader.take(8, "magic").map_err(wrong)? != MAGIC {
            return Err(file(path, "not a contribution to a ceremony: wrong magic bytes"));
        }
        let version = reader.u32("version").map_err(wrong)?;
        if version != VERSION {
            let why = format!("version {version}, but this program reads {VERSION}");
            return Err(file(path, why));
        }
        if reader.array("digest of the genesis").map_err(wrong)? != genesis.digest() {
            let why = format!("{}: a contribution to another ceremony", path.display());
            return Err(CeremonyError::Foreign(why));
        }
        let [count] = reader.array("number of chains").map_err(wrong)?;
        let mut records: Vec<Record> = Vec::new();
        for _ in 0..count {
            let [code] = reader.array("chain").map_err(wrong)?;
            let chain = chains.iter().copied().find(|chain| chain.code() == code);
            let fresh = |chain: &Chain| records.last().is_none_or(|last| last.chain < *chain);
            let chain = chain
                .filter(fresh)
                .ok_or_else(|| file(path, format!("chain {code} is unknown or out of order")))?;
            let length = reader.u32("length of a record").map_err(wrong)? as usize;
            let record = reader.take(length, "record").map_err(wrong)?;
            records.push(Record::from_bytes(record, genesis, chain).map_err(wrong)?);
        }
        if records.is_empty() {
            return Err(file(path, "a contribution to no chain"));
        }
        let mut offset = (bytes.len() - reader.left()) as u64;
        let mut sections = Vec::new();
        for record in &records {
            let mut of_chain = Vec::new();
            for (name, vectors) in genesis.sections(record.chain) {
                let section = Section::at(path.to_owned(), offset, name, vectors);
                offset += section.bytes();
                of_chain.push(section);
            }
            sections.push(of_chain);
        }
        match length == offset {
            true => Ok(Self { path: path.to_owned(), records, sections }),
            false => Err(file(path, format!("{length} bytes, expected {offset}"))),
        }
    }
}

/// The bytes that a contributor to some chains reads, and writes.
pub fn bytes_of_chains(genesis: &Genesis, chains: &[Chain]) -> u64 {
    let sections = chains.iter().flat_map(|chain| genesis.sections(*chain));
    sections.map(|(_, vectors)| bytes_of(&vectors)).sum()
}

/// The most bytes that a contribution to some chains has as a file.
pub fn most_response_bytes(genesis: &Genesis, chains: &[Chain]) -> u64 {
    head_bytes(genesis, chains) + bytes_of_chains(genesis, chains)
}

/// The most bytes of a response before its sections.
fn head_bytes(genesis: &Genesis, chains: &[Chain]) -> u64 {
    let records = chains.iter().map(|chain| 5 + Record::most_bytes(genesis, *chain) as u64);
    45 + records.sum::<u64>()
}

/// The number of points of some chains.
pub fn points_of_chains(genesis: &Genesis, chains: &[Chain]) -> usize {
    let sections = chains.iter().flat_map(|chain| genesis.sections(*chain));
    sections.flat_map(|(_, vectors)| vectors).map(|vector| vector.len).sum()
}

/// Contributes to chains of a transcript, and writes the response. Everything received is checked first: the records, every
/// point, and the structure of powers. Nothing is written under the name `out` unless all checks pass.
///
/// `progress` is called with a description of each section before it is multiplied. The seed is consumed: if the same secrets were used
/// on another state, a coordinator could compare the two.
///
/// # Errors
/// When a check fails or a file cannot be read or written.
pub fn contribute(
    transcript: &Transcript,
    contributor: &Contributor<'_>,
    seed: Seed,
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Record>, CeremonyError> {
    let made = contribute_in_frame(transcript, contributor, &seed, out, progress);
    drop(seed);
    // Kernels and moved values have left copies of secrets on the stacks of all threads.
    wipe_stacks();
    made
}

/// [`contribute`] in a frame of its own, which is wiped afterwards.
#[inline(never)]
fn contribute_in_frame(
    transcript: &Transcript,
    contributor: &Contributor<'_>,
    seed: &Seed,
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Record>, CeremonyError> {
    let checked = transcript.check()?;
    let genesis = &transcript.genesis;
    let mut chains = contributor.chains.to_vec();
    chains.sort_unstable();
    chains.dedup();
    let find = |chain: &Chain| checked.iter().find(|checked| checked.chain == *chain);
    let starts: Vec<&Checked> = chains
        .iter()
        .map(|chain| {
            let why = || CeremonyError::Foreign(format!("the ceremony has no chain {chain}"));
            find(chain).ok_or_else(why)
        })
        .collect::<Result<_, _>>()?;
    // Records have their final length from the beginning, so that sections can be written after them in one pass.
    let drafts: Vec<Record> =
        starts.iter().map(|before| draft(genesis, before, contributor)).collect();
    let room = head(genesis, &drafts).len();
    // Unchecked points are multiplied by secrets, so nobody else may read the products.
    let mut new = NewFile::with_mode(out, SECRET).map_err(io(out))?;
    new.write_all(&vec![0; room]).map_err(io(out))?;
    let temporary = new.path().to_owned();
    let mut made = Vec::new();
    {
        let mut file = BufWriter::with_capacity(1 << 20, &mut new);
        for before in &starts {
            let secrets = secrets_of(seed, before, &contributor.kind);
            let sections = transcript.sections(before.chain);
            let mut begin = |section: &Section| {
                progress(&format!("section '{}'", section.name));
            };
            let begun = before.heads.len() > 1 || !genesis.begins_with_generators(before.chain);
            let step =
                multiply((before, begun), &sections, &secrets, &mut file, &temporary, &mut begin)?;
            made.push((step, secrets));
        }
        file.flush().map_err(io(out))?;
    }
    // No proof before all points of all chains have been checked.
    let mut random = VerifierRandomness::new()?;
    let mut records = Vec::new();
    for ((before, draft), (step, secrets)) in starts.iter().zip(drafts).zip(made) {
        let record = sign(seed, draft, before, step, &secrets)?;
        check_next(before, &record, &mut random)?;
        records.push(record);
    }
    // By a second handle, because a new file is written from its beginning to its end.
    let head = head(genesis, &records);
    let first = std::fs::File::options().write(true).open(&temporary).map_err(io(&temporary))?;
    first.write_all_at(&head, 0).map_err(io(&temporary))?;
    assert_eq!(head.len(), room, "records have the length of their drafts");
    let readable = std::fs::Permissions::from_mode(READABLE);
    std::fs::set_permissions(&temporary, readable).map_err(io(&temporary))?;
    new.replace(out).map_err(io(out))?;
    Ok(records)
}

/// A record with everything but its points.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a log has at most 2^30 bytes, and so fewer records"
)]
fn draft(genesis: &Genesis, before: &Checked, contributor: &Contributor<'_>) -> Record {
    let record = Record::empty(genesis, before.chain);
    let proof = Proof { t: G1Point::generator(), z: Fr::zero() };
    Record {
        place: (before.heads.len() - 1) as u32,
        before: before.head(),
        kind: contributor.kind.clone(),
        name: contributor.name.to_owned(),
        program: contributor.program.to_owned(),
        proofs: vec![proof; record.step.secrets()],
        ..record
    }
}

fn secrets_of(seed: &Seed, before: &Checked, kind: &Kind) -> Zeroizing<Vec<Fr>> {
    let count = before.last().secrets();
    match kind {
        Kind::Contribution => seed.secrets(before.chain, count),
        Kind::Beacon { value, exponent } => {
            Zeroizing::new(of_beacon(&before.head(), before.chain, value, *exponent, count))
        }
    }
}

/// Multiplies all sections of a chain.
fn multiply(
    (before, begun): (&Checked, bool),
    sections: &[Section],
    secrets: &[Fr],
    file: &mut dyn Write,
    path: &Path,
    begin: &mut dyn FnMut(&Section),
) -> Result<Step, CeremonyError> {
    match before.last() {
        Step::Powers(step) => {
            begin(&sections[0]);
            let out = Output { file, path, hasher: blake3::Hasher::new() };
            powers::contribute(&sections[0], before.chain, step, begun, secrets, out)
                .map(Step::Powers)
        }
        Step::Segment { types, ledger } => {
            let (mut new, mut members) = (Vec::new(), Members::new()?);
            for (kind, (section, step)) in sections.iter().zip(types).enumerate() {
                begin(section);
                let out = Output { file: &mut *file, path, hasher: blake3::Hasher::new() };
                let (head, own) = (before.head(), &secrets[2 * kind..2 * kind + 2]);
                let place = (&head, kind);
                new.push(segment::contribute(section, place, step, own, &mut members, out)?);
            }
            members.finish()?;
            let kappa = &secrets[secrets.len() - 1];
            let ledger = ledger.as_ref().map(|ledger| segment::contribute_ledger(ledger, kappa));
            Ok(Step::Segment { types: new, ledger })
        }
    }
}

/// Completes a record with its proofs of knowledge.
pub(crate) fn sign(
    seed: &Seed,
    draft: Record,
    before: &Checked,
    step: Step,
    secrets: &[Fr],
) -> Result<Record, CeremonyError> {
    let mut record = Record { step, ..draft };
    let body = record.body();
    let (old, new) = (before.last().secret_points(), record.step.secret_points());
    let pairs = old.iter().zip(&new).zip(secrets).enumerate();
    record.proofs = pairs
        .map(|(number, ((old, new), secret))| Proof::new(seed, &body, number, [old, new], secret))
        .collect::<Result<_, _>>()?;
    Ok(record)
}

/// Checks a contribution against the transcript that it continues (spec: ceremony#acceptance): records and proofs, and every point of the
/// new sections.
pub(crate) fn check_response(
    transcript: &Transcript,
    checked: &[Checked],
    response: &Response,
    progress: &mut dyn FnMut(&str),
) -> Result<(), CeremonyError> {
    let mut random = VerifierRandomness::new()?;
    for (record, new) in response.records.iter().zip(&response.sections) {
        let before = checked
            .iter()
            .find(|checked| checked.chain == record.chain)
            .expect("a response has chains of its ceremony");
        if record.before != before.head() {
            let why = format!(
                "chain {}: the contribution by {} follows head {}, but the chain is at {}: contribute again",
                record.chain,
                record.name,
                hex::encode(record.before),
                hex::encode(before.head()),
            );
            return Err(CeremonyError::Foreign(why));
        }
        check_next(before, record, &mut random)?;
        let old = transcript.sections(record.chain);
        match (before.last(), &record.step) {
            (Step::Powers(_), Step::Powers(step)) => {
                progress(&format!("section '{}'", new[0].name));
                powers::check(&mut new[0].clone(), record.chain, step, true)?;
            }
            (
                Step::Segment { types: before_types, ledger: before_ledger },
                Step::Segment { types, ledger },
            ) => {
                if let (Some(before), Some(after)) = (before_ledger, ledger) {
                    // K Theta is the same for all kappa.
                    let weights = random.coefficients(after.thetas.len());
                    let [old, new] =
                        [before, after].map(|l| (l.k, G2Point::msm(&l.thetas, &weights)));
                    require(same_pairings(&[old], &[new]), Check::Theta, || name_of(record))?;
                }
                let mut members = Members::new()?;
                for (kind, (old, new)) in old.iter().zip(new).enumerate() {
                    progress(&format!("section '{}'", new.name));
                    let steps = (&before_types[kind], &types[kind]);
                    let place = (&record.before, kind);
                    segment::check_update([old, new], place, steps.0, steps.1, &mut members)?;
                }
                members.finish()?;
            }
            _ => unreachable!("a record has the form of its chain"),
        }
    }
    Ok(())
}
