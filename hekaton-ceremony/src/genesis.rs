//! The genesis of a transcript: what it is about, fixed before the first contribution (spec: ceremony#files).

use crate::check::CeremonyError;
use crate::sections::{Group, Vector};
use hekaton_arith::{Domain, G1Point, G2Point, Group as _};
use hekaton_circuit::prover::BusShape;
use hekaton_circuit::{R1cs, is_type_name};
use hekaton_core::DecodeError;
use hekaton_core::encoding::{Reader, put_string};

const MAGIC: &[u8; 8] = b"HEKATNCG";
const VERSION: u16 = 1;
/// The largest domain that setup accepts: 2^28 rows.
const MAX_DOMAIN: u64 = 1 << 28;
const MAX_INSTANCES: u64 = 1 << 32;
/// The largest number of variables, slots or entries of a type.
const MAX_VARIABLES: u64 = 1 << 28;
const MAX_TYPES: u32 = 1 << 16;
const MAX_BUSES: u32 = 1 << 16;
/// The longest circuit name, parameters and source of a beacon, in bytes.
const MAX_TEXT: usize = 1 << 16;
const MAX_NAME: usize = 1 << 10;

/// A chain of contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chain {
    /// Powers of tau, times alpha and beta.
    Tau,
    /// Powers of phi and psi.
    Phi,
    /// The delta and eta of some types of a family, counted from 1; the first also makes kappa.
    Segment(u8),
}

impl Chain {
    /// The most segments of a family.
    const MAX_SEGMENTS: u8 = 200;

    /// The number of the chain in records and hashes.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Tau => 1,
            Self::Phi => 2,
            Self::Segment(number) => 2 + number,
        }
    }

    /// The chain with a name, as people write it: `tau`, `phi`, or the number of a segment.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "tau" => Some(Self::Tau),
            "phi" => Some(Self::Phi),
            number => {
                let number: u8 = number.parse().ok()?;
                (1..=Self::MAX_SEGMENTS).contains(&number).then_some(Self::Segment(number))
            }
        }
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tau => f.write_str("tau"),
            Self::Phi => f.write_str("phi"),
            Self::Segment(number) => write!(f, "{number}"),
        }
    }
}

/// The genesis of powers, which serve any number of families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowersGenesis {
    /// The largest domain of a family, 2^k or 3 * 2^k rows.
    pub domain: usize,
    /// The largest number of subcircuits of a family, N_max.
    pub instances: usize,
    /// The digests of the sections of tau and phi at the start.
    pub starts: [[u8; 32]; 2],
    /// The file from which the chain of tau begins; with none, it begins with generators.
    pub import: Option<Box<Import>>,
}

/// The layouts of files of the `powersoftau` programs of Zcash and Filecoin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// 64 bytes of BLAKE2b, then uncompressed points.
    Challenge,
    /// 64 bytes of BLAKE2b, then compressed points and a public key of 1,152 bytes.
    Response,
}

/// A file of powers of tau that others have made. Its history is not checked and counts for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The layout.
    pub layout: Layout,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The BLAKE2b-512 digest of the file, by which its makers name it.
    pub blake2b: [u8; 64],
    /// Tau, alpha and beta, each times the generator of G1.
    pub in_g1: [G1Point; 3],
    /// Tau and beta, each times the generator of G2.
    pub in_g2: [G2Point; 2],
}

impl PowersGenesis {
    /// The number M: N_max, rounded up to a power of two.
    pub fn padded(&self) -> usize {
        self.instances.next_power_of_two()
    }

    /// Checks that families with domains of this size and this many subcircuits fit into the powers.
    ///
    /// # Errors
    /// If they do not.
    pub fn fits(&self, domain: usize, instances: usize) -> Result<(), CeremonyError> {
        if domain > self.domain || instances > self.padded() {
            let why = format!(
                "the family needs a domain of {domain} rows and {instances} subcircuits, but the powers are for \
                 {} rows and {} subcircuits: use powers for more",
                self.domain, self.instances
            );
            return Err(CeremonyError::Foreign(why));
        }
        Ok(())
    }
}

/// A subcircuit type of a family, and the numbers of its points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeGenesis {
    /// The name.
    pub name: String,
    /// The digest of its R1CS.
    pub r1cs: [u8; 32],
    /// The number of slots, mask slots included.
    pub slots: usize,
    /// The number of mask slots.
    pub masks: usize,
    /// The variables and entries for buses.
    pub buses: BusShape,
    /// The number of variables.
    pub variables: usize,
    /// The number of constraints.
    pub constraints: usize,
    /// The size of the domain.
    pub domain: usize,
    /// The numbers of points in the queries L, X, H and D.
    pub points: [usize; 4],
    /// The digest of the section at the start.
    pub start: [u8; 32],
    /// The digest of the queries IC, A and B, which no contribution changes.
    pub fixed: [u8; 32],
}

impl TypeGenesis {
    /// Describes a type with queries of these sizes and digests.
    pub(crate) fn of(
        r1cs: &R1cs,
        domain: usize,
        points: [usize; 4],
        [start, fixed]: [[u8; 32]; 2],
    ) -> Self {
        Self {
            start,
            fixed,
            name: r1cs.name.clone(),
            r1cs: r1cs.digest(),
            slots: r1cs.layout.slots(),
            masks: r1cs.layout.mask_slots(),
            buses: r1cs.layout.shape(),
            variables: r1cs.variables,
            constraints: r1cs.constraints(),
            domain,
            points,
        }
    }

    /// The number of points that a contribution multiplies.
    pub fn size(&self) -> usize {
        self.points.iter().sum()
    }
}

/// The genesis of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyGenesis {
    /// The transcript digest of the powers.
    pub powers: [u8; 32],
    /// The largest domain of the powers: there is a Theta for each size up to it.
    pub largest: usize,
    /// The transcript digest of the family that this one extends by more types. K and all Theta are those of that family.
    pub extends: Option<[u8; 32]>,
    /// The name of the circuit.
    pub circuit: String,
    /// The parameters that all circuits of the family share, as JSON.
    pub parameters: String,
    /// `true` if proofs are zero-knowledge.
    pub zero_knowledge: bool,
    /// The largest number of subcircuits, N_max.
    pub instances: usize,
    /// The names of the buses, in the order of their tags.
    pub buses: Vec<String>,
    /// The types.
    pub types: Vec<TypeGenesis>,
    /// The number of types of each segment.
    pub segments: Vec<usize>,
    /// `[L_0]_2` for each size of domains up to `largest`: Theta where kappa is 1. Empty if this family extends another one.
    pub thetas: Vec<G2Point>,
}

impl FamilyGenesis {
    /// The types of a segment, with their numbers.
    pub fn types_of(&self, segment: u8) -> std::ops::Range<usize> {
        let before = usize::from(segment) - 1;
        let start: usize = self.segments[..before].iter().sum();
        start..start + self.segments[before]
    }
}

/// The subject of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Powers of tau, phi and psi.
    Powers(PowersGenesis),
    /// The keys of a family.
    Family(FamilyGenesis),
}

/// The genesis of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// Fresh, so that no record fits another ceremony.
    pub nonce: [u8; 32],
    /// The announced source of a beacon, or nothing.
    pub beacon: String,
    /// The subject.
    pub subject: Subject,
}

/// All sizes of domains up to `largest`, in ascending order: 2^k and 3 * 2^k.
pub(crate) fn domains(largest: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1usize), |n| n.checked_mul(2));
    let sizes = powers.take_while(|n| *n <= largest).flat_map(|n| [n, n / 2 * 3]);
    let mut sizes: Vec<usize> = sizes.filter(|n| *n > 0 && *n <= largest).collect();
    sizes.sort_unstable();
    sizes
}

/// The size of the smallest domain with at least `rows` elements, 2^k or 3 * 2^k.
pub fn domain_for(rows: usize) -> usize {
    Domain::size_for(rows)
}

fn is_domain(n: u64) -> bool {
    let power = |n: u64| n.is_power_of_two();
    n <= MAX_DOMAIN && (power(n) || n.is_multiple_of(3) && power(n / 3))
}

impl Genesis {
    /// The chains of the transcript, in their order.
    pub fn chains(&self) -> Vec<Chain> {
        match &self.subject {
            Subject::Powers(_) => vec![Chain::Tau, Chain::Phi],
            Subject::Family(family) => {
                (1u8..).take(family.segments.len()).map(Chain::Segment).collect()
            }
        }
    }

    /// The sections of a chain: the names, and the vectors that each consists of.
    pub fn sections(&self, chain: Chain) -> Vec<(String, Vec<Vector>)> {
        let vector = |name, group, len| Vector { name, group, len };
        match (&self.subject, chain) {
            (Subject::Powers(powers), Chain::Tau) => {
                let n = powers.domain;
                let vectors = vec![
                    vector("tau_1", Group::G1, 2 * n),
                    vector("tau_2", Group::G2, n),
                    vector("alpha_1", Group::G1, n),
                    vector("beta_1", Group::G1, n),
                ];
                vec![("tau".into(), vectors)]
            }
            (Subject::Powers(powers), _) => {
                let n = 2 * powers.padded() - 1;
                vec![(
                    "phi".into(),
                    vec![vector("phi_1", Group::G1, n), vector("psi_2", Group::G2, n)],
                )]
            }
            (Subject::Family(family), Chain::Segment(number)) => family.types
                [family.types_of(number)]
            .iter()
            .map(|kind| {
                let vectors = ["L", "X", "H", "D"].into_iter().zip(kind.points);
                let vectors = vectors.map(|(name, len)| vector(name, Group::G1, len));
                (kind.name.clone(), vectors.collect())
            })
            .collect(),
            (Subject::Family(_), _) => Vec::new(),
        }
    }

    /// Reports whether a chain begins with generators, so that all its secrets are 1 before the first record.
    pub(crate) fn begins_with_generators(&self, chain: Chain) -> bool {
        match &self.subject {
            Subject::Powers(powers) => chain == Chain::Phi || powers.import.is_none(),
            Subject::Family(_) => false,
        }
    }

    /// The family, if it is one.
    pub fn family(&self) -> Option<&FamilyGenesis> {
        match &self.subject {
            Subject::Powers(_) => None,
            Subject::Family(family) => Some(family),
        }
    }

    /// The digest, by which people name a ceremony.
    pub fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.to_bytes()).as_bytes()
    }

    /// Returns the encoding.
    #[allow(clippy::cast_possible_truncation, reason = "readers refuse longer lists")]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.push(if self.family().is_some() { 2 } else { 1 });
        out.extend_from_slice(&self.nonce);
        put_string(&mut out, &self.beacon);
        let long = |out: &mut Vec<u8>, n: usize| out.extend_from_slice(&(n as u64).to_le_bytes());
        match &self.subject {
            Subject::Powers(PowersGenesis { domain, instances, starts, import }) => {
                long(&mut out, *domain);
                long(&mut out, *instances);
                out.push(u8::from(import.is_some()));
                if let Some(import) = import {
                    let Import { layout, bytes, blake2b, in_g1, in_g2 } = &**import;
                    out.push(if *layout == Layout::Challenge { 0 } else { 1 });
                    out.extend_from_slice(&bytes.to_le_bytes());
                    out.extend_from_slice(blake2b);
                    in_g1.iter().for_each(|point| out.extend(point.to_compressed()));
                    in_g2.iter().for_each(|point| out.extend(point.to_compressed()));
                }
                starts.iter().for_each(|digest| out.extend_from_slice(digest));
            }
            Subject::Family(family) => {
                out.extend_from_slice(&family.powers);
                long(&mut out, family.largest);
                out.push(u8::from(family.extends.is_some()));
                family.extends.iter().for_each(|digest| out.extend_from_slice(digest));
                put_string(&mut out, &family.circuit);
                put_string(&mut out, &family.parameters);
                out.push(u8::from(family.zero_knowledge));
                long(&mut out, family.instances);
                out.extend_from_slice(&(family.buses.len() as u32).to_le_bytes());
                family.buses.iter().for_each(|name| put_string(&mut out, name));
                out.extend_from_slice(&(family.types.len() as u32).to_le_bytes());
                for kind in &family.types {
                    put_string(&mut out, &kind.name);
                    out.extend_from_slice(&kind.r1cs);
                    let BusShape { buses, parameters, pairs, marked, entries, scaled } = kind.buses;
                    let shape = [usize::from(buses), parameters, pairs, marked, entries, scaled];
                    let sizes = [kind.variables, kind.constraints, kind.domain];
                    let counts = [kind.slots, kind.masks].into_iter().chain(shape).chain(sizes);
                    counts.chain(kind.points).for_each(|n| long(&mut out, n));
                    out.extend_from_slice(&kind.start);
                    out.extend_from_slice(&kind.fixed);
                }
                out.push(family.segments.len() as u8);
                family.segments.iter().for_each(|n| long(&mut out, *n));
                family.thetas.iter().for_each(|theta| out.extend(theta.to_compressed()));
            }
        }
        out
    }

    /// Decodes [`Self::to_bytes`]. Numbers are bounded before anything is computed from them.
    ///
    /// # Errors
    /// If the bytes are something else, or a number is out of range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.take(8, "magic")? != MAGIC {
            return Err(reader.invalid("magic", 8, "not the genesis of a ceremony"));
        }
        let version = reader.u16("version")?;
        if version != VERSION {
            let why = format!("found {version}, but this program reads {VERSION}");
            return Err(reader.invalid("version", 2, why));
        }
        let [kind] = reader.array("kind")?;
        let nonce = reader.array("nonce")?;
        let beacon = reader.string(MAX_TEXT, "source of the beacon")?;
        let subject = match kind {
            1 => Subject::Powers(read_powers(&mut reader)?),
            2 => Subject::Family(read_family(&mut reader)?),
            other => return Err(reader.invalid("kind", 1, format!("{other}, expected 1 or 2"))),
        };
        reader.finish()?;
        Ok(Self { nonce, beacon, subject })
    }
}

/// Reads a number from 0 to `most`.
fn number(reader: &mut Reader<'_>, most: u64, what: &'static str) -> Result<usize, DecodeError> {
    let found = reader.u64(what)?;
    match usize::try_from(found) {
        Ok(number) if found <= most => Ok(number),
        _ => Err(reader.invalid(what, 8, format!("{found}, expected at most {most}"))),
    }
}

fn domain(reader: &mut Reader<'_>, most: u64) -> Result<usize, DecodeError> {
    let found = number(reader, most, "domain")?;
    match is_domain(found as u64) {
        true => Ok(found),
        false => Err(reader.invalid("domain", 8, format!("{found}, expected 2^k or 3 * 2^k"))),
    }
}

fn instances(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    match number(reader, MAX_INSTANCES, "number of subcircuits")? {
        0 => Err(reader.invalid("number of subcircuits", 8, "expected at least 1")),
        found => Ok(found),
    }
}

fn flag(reader: &mut Reader<'_>, what: &'static str) -> Result<bool, DecodeError> {
    match reader.array::<1>(what)? {
        [flag @ (0 | 1)] => Ok(flag == 1),
        [other] => Err(reader.invalid(what, 1, format!("{other}, expected 0 or 1"))),
    }
}

fn read_powers(reader: &mut Reader<'_>) -> Result<PowersGenesis, DecodeError> {
    let (domain, instances) = (domain(reader, MAX_DOMAIN)?, instances(reader)?);
    let import = match reader.array("start")? {
        [0] => None,
        [1] => Some(Box::new(read_import(reader)?)),
        [other] => {
            let why = format!("{other}, expected 0 (generators) or 1 (a file)");
            return Err(reader.invalid("start", 1, why));
        }
    };
    let starts = [reader.array("digest of the start")?, reader.array("digest of the start")?];
    Ok(PowersGenesis { domain, instances, starts, import })
}

fn read_import(reader: &mut Reader<'_>) -> Result<Import, DecodeError> {
    let layout = match flag(reader, "layout")? {
        false => Layout::Challenge,
        true => Layout::Response,
    };
    let (bytes, blake2b) = (reader.u64("length of the file")?, reader.array("BLAKE2b")?);
    let in_g1 = [reader.point("tau")?, reader.point("alpha")?, reader.point("beta")?];
    let in_g2 = [reader.point("tau")?, reader.point("beta")?];
    Ok(Import { layout, bytes, blake2b, in_g1, in_g2 })
}

fn read_family(reader: &mut Reader<'_>) -> Result<FamilyGenesis, DecodeError> {
    let powers = reader.array("digest of the powers")?;
    let largest = domain(reader, MAX_DOMAIN)?;
    let extends = match flag(reader, "extension flag")? {
        true => Some(reader.array("digest of the family that is extended")?),
        false => None,
    };
    let circuit = reader.string(MAX_TEXT, "circuit")?;
    let parameters = reader.string(MAX_TEXT, "parameters")?;
    let zero_knowledge = flag(reader, "zero-knowledge flag")?;
    let instances = instances(reader)?;
    let count = reader.u32("number of buses")?;
    if count > MAX_BUSES {
        return Err(reader.invalid("number of buses", 4, format!("{count} are too many")));
    }
    let mut buses = Vec::new();
    for _ in 0..count {
        buses.push(reader.string(MAX_NAME, "name of a bus")?);
    }
    let count = reader.u32("number of types")?;
    if count == 0 || count > MAX_TYPES {
        return Err(reader.invalid("number of types", 4, format!("{count}, expected 1 to 2^16")));
    }
    let mut types: Vec<TypeGenesis> = Vec::new();
    let mut names = std::collections::HashSet::new();
    for _ in 0..count {
        let kind = read_type(reader, largest)?;
        if !names.insert(kind.name.clone()) {
            return Err(reader.invalid("type", 0, format!("a second type '{}'", kind.name)));
        }
        types.push(kind);
    }
    let [count] = reader.array("number of segments")?;
    let mut segments = Vec::new();
    for _ in 0..count {
        segments.push(number(reader, u64::from(MAX_TYPES), "types of a segment")?);
    }
    let covered: usize = segments.iter().sum();
    if count > Chain::MAX_SEGMENTS || segments.contains(&0) || covered != types.len() {
        let why = "each type is in one segment, and no segment is empty";
        return Err(reader.invalid("segments", 0, why));
    }
    let mut thetas = Vec::new();
    for _ in domains(largest).into_iter().filter(|_| extends.is_none()) {
        thetas.push(reader.point("Theta")?);
    }
    Ok(FamilyGenesis {
        powers,
        largest,
        extends,
        circuit,
        parameters,
        zero_knowledge,
        instances,
        buses,
        types,
        segments,
        thetas,
    })
}

fn read_type(reader: &mut Reader<'_>, largest: usize) -> Result<TypeGenesis, DecodeError> {
    let name = reader.string(MAX_NAME, "name of a type")?;
    // Names become file names.
    if !is_type_name(&name) {
        return Err(reader.invalid("name of a type", name.len(), "expected a-z, 0-9, _ and -"));
    }
    let r1cs = reader.array("digest of a type")?;
    let mut count = |what| number(reader, MAX_VARIABLES, what);
    let (slots, masks) = (count("slots")?, count("mask slots")?);
    let buses = count("buses")?;
    let parameters = count("parameters")?;
    let pairs = count("pairs")?;
    let marked = count("marked values")?;
    let entries = count("entries")?;
    let scaled = count("scaled values")?;
    let (variables, constraints) = (count("variables")?, count("constraints")?);
    if buses > 1 || masks > slots {
        return Err(reader.invalid("type", 0, "more mask slots than slots, or no flag"));
    }
    let domain = domain(reader, largest as u64)?;
    let mut points = [0; 4];
    for (count, name) in
        points.iter_mut().zip(["points of L", "points of X", "points of H", "points of D"])
    {
        *count = number(reader, MAX_VARIABLES, name)?;
    }
    let buses = BusShape { buses: buses == 1, parameters, pairs, marked, entries, scaled };
    let (start, fixed) = (reader.array("digest of the start")?, reader.array("digest of IC")?);
    Ok(TypeGenesis {
        name,
        r1cs,
        slots,
        masks,
        buses,
        variables,
        constraints,
        domain,
        points,
        start,
        fixed,
    })
}
