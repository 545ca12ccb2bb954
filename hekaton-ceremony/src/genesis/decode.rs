//! Reading the genesis of a transcript: numbers are bounded before anything is computed from them (spec: ceremony#files).

use super::{
    Chain, Earlier, FamilyGenesis, Genesis, Import, Layout, MAGIC, Origin, PowersGenesis, Subject,
    TypeGenesis, VERSION, domains,
};
use hekaton_circuit::is_type_name;
use hekaton_circuit::prover::BusShape;
use hekaton_core::DecodeError;
use hekaton_core::encoding::Reader;

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

/// The most bytes of earlier powers, about four thousand records: each level of them has those behind it as a copy.
const MOST_EARLIER_BYTES: u64 = 1 << 22;

impl Genesis {
    /// Decodes [`Self::to_bytes`]. Numbers are bounded before anything is computed from them.
    ///
    /// # Errors
    /// If the bytes are not a genesis, or a number is out of range.
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

fn is_domain(n: u64) -> bool {
    let power = |n: u64| n.is_power_of_two();
    n <= MAX_DOMAIN && (power(n) || n.is_multiple_of(3) && power(n / 3))
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
    let origin = match reader.array("start")? {
        [0] => Origin::Generators,
        [1] => Origin::File(Box::new(read_import(reader)?)),
        [2] => Origin::Powers(Box::new(read_earlier(reader)?)),
        [other] => {
            let why = format!("{other}, expected 0 (generators), 1 (a file) or 2 (powers)");
            return Err(reader.invalid("start", 1, why));
        }
    };
    let starts = [reader.array("digest of the start")?, reader.array("digest of the start")?];
    Ok(PowersGenesis { domain, instances, starts, origin })
}

/// Reads earlier powers. Their records stay encoded: `Transcript::open` reads them.
fn read_earlier(reader: &mut Reader<'_>) -> Result<Earlier, DecodeError> {
    let mut left = MOST_EARLIER_BYTES;
    let mut file = |reader: &mut Reader<'_>, what| {
        let bytes = number(reader, left, what)?;
        left -= bytes as u64;
        Ok(reader.take(bytes, what)?.to_vec())
    };
    let genesis = file(reader, "genesis of earlier powers")?;
    let what = "records of earlier powers";
    let records = [file(reader, what)?, file(reader, what)?];
    let tau = [reader.point("tau")?, reader.point("alpha")?, reader.point("beta")?];
    let phi = [reader.point("phi")?, reader.point("psi")?];
    let tau_2 = [reader.point("tau")?, reader.point("beta")?];
    let phi_2 = [reader.point("phi")?, reader.point("psi")?];
    Ok(Earlier { genesis, records, tau: (tau, tau_2), phi: (phi, phi_2) })
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
