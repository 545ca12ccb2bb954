//! The genesis of a transcript, which fixes its subject before the first contribution (spec: ceremony#files).

mod decode;

use crate::check::CeremonyError;
use crate::sections::{Group, Vector};
use hekaton_arith::{Domain, G1Point, G2Point, Group as _};
use hekaton_circuit::R1cs;
use hekaton_circuit::prover::BusShape;
use hekaton_core::encoding::put_string;

const MAGIC: &[u8; 8] = b"HEKATNCG";
const VERSION: u16 = 1;

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
    /// The points with which the chains begin.
    pub origin: Origin,
}

/// The points with which the chains of powers begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Generators: all secrets are 1.
    Generators,
    /// The chain of tau begins with a file of others, and that of phi with generators.
    File(Box<Import>),
    /// Both chains begin where those of finished powers end. Everybody who contributed to them counts.
    Powers(Box<Earlier>),
}

/// Finished powers, at whose end others begin. Their records are checked with those of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The encoding of their genesis.
    pub genesis: Vec<u8>,
    /// The encodings of their records of tau and of phi, as they follow the header of a log.
    pub records: [Vec<u8>; 2],
    /// Tau, alpha and beta, each times the generator of G1, and tau and beta in G2, after the last record.
    pub tau: ([G1Point; 3], [G2Point; 2]),
    /// Phi and psi in G1 and in G2.
    pub phi: ([G1Point; 2], [G2Point; 2]),
}

/// The layouts of files of the `powersoftau` programs of Zcash and Filecoin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// 64 bytes of BLAKE2b, then uncompressed points.
    Challenge,
    /// 64 bytes of BLAKE2b, then compressed points and a public key of 1,152 bytes.
    Response,
}

/// A file of powers of tau that others have made. Its history is not checked, and its makers do not count as contributors.
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

    /// Checks that families, or other powers, with domains of this size and this many subcircuits fit into the powers.
    ///
    /// # Errors
    /// If they do not.
    pub fn fits(&self, domain: usize, instances: usize) -> Result<(), CeremonyError> {
        if domain > self.domain || instances > self.padded() {
            let why = format!(
                "a domain of {domain} rows and {instances} subcircuits are needed, but the powers are for \
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
            Subject::Powers(powers) => match powers.origin {
                Origin::Generators => true,
                Origin::File(_) => chain == Chain::Phi,
                Origin::Powers(_) => false,
            },
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
            Subject::Powers(PowersGenesis { domain, instances, starts, origin }) => {
                long(&mut out, *domain);
                long(&mut out, *instances);
                origin.encode(&mut out);
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
}

impl Origin {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Generators => out.push(0),
            Self::File(import) => {
                let Import { layout, bytes, blake2b, in_g1, in_g2 } = &**import;
                out.push(1);
                out.push(if *layout == Layout::Challenge { 0 } else { 1 });
                out.extend_from_slice(&bytes.to_le_bytes());
                out.extend_from_slice(blake2b);
                in_g1.iter().for_each(|point| out.extend(point.to_compressed()));
                in_g2.iter().for_each(|point| out.extend(point.to_compressed()));
            }
            Self::Powers(earlier) => {
                let Earlier { genesis, records, tau, phi } = &**earlier;
                out.push(2);
                for bytes in std::iter::once(genesis).chain(records) {
                    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
                    out.extend_from_slice(bytes);
                }
                tau.0.iter().chain(&phi.0).for_each(|point| out.extend(point.to_compressed()));
                tau.1.iter().chain(&phi.1).for_each(|point| out.extend(point.to_compressed()));
            }
        }
    }
}
