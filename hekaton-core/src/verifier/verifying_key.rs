//! The verifying key: small, self-contained, and all that a verifier needs beside the proof and the public values.

use crate::encoding::{DecodeError, Encode, Reader, put_string};
use hekaton_arith::{G1Point, G2Point, Group, Gt};
use hekaton_circuit::PublicWire;

const MAGIC: &[u8; 8] = b"HEKATNVK";
const VERSION: u16 = 1;
/// The most public wires a key may have; bounds what a reader allocates.
const MAX_PUBLIC: u32 = 1 << 24;
const MAX_TEXT: usize = 1 << 16;

/// Why bytes are not a verifying key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyingKeyError {
    /// The bytes are something else.
    #[error("not a Hekaton verifying key (it does not start with its magic bytes)")]
    Magic,
    /// Written by another version of the software.
    #[error(
        "verifying key of format version {found}; this program reads version {VERSION}: use the program that made it, or run setup again"
    )]
    Version {
        /// The version in the file.
        found: u16,
    },
    /// The bytes are damaged.
    #[error("damaged verifying key: {0}")]
    Decode(#[from] DecodeError),
}

/// Who must be trusted for proofs under a key to mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// One party ran the setup and knew the trapdoors while it ran.
    SingleParty,
    /// The trapdoors come from a number: keys for tests, under which anybody can forge.
    InsecureSeed,
}

impl Trust {
    /// One sentence for manifests and for the output of `verify` and `inspect`.
    pub fn statement(self) -> &'static str {
        match self {
            Self::SingleParty => {
                "keys from a single-party setup: whoever ran it could have kept the trapdoors and forge proofs"
            }
            Self::InsecureSeed => "TEST KEYS with trapdoors from a seed: anybody can forge proofs",
        }
    }
}

/// The verifying key of a partitioned circuit.
///
/// Constant size apart from the public wires: 8 GT elements, 2 points of G1, one of G2 and a header, about 2.7 kB.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyingKey {
    /// Name of the circuit, for people.
    pub circuit: String,
    /// Parameters of the circuit as JSON, for people and for the circuit's own decoding of public values.
    pub parameters: String,
    /// Who is trusted.
    pub trust: Trust,
    /// Whether proofs are zero-knowledge (spec: zero-knowledge#masks).
    pub zero_knowledge: bool,
    /// n, the number of subcircuits, at least 1.
    pub instances: u64,
    /// k, the number of types.
    pub types: u32,
    /// Digest of the map from instances to types.
    pub type_map: [u8; 32],
    /// Digest of the whole wiring.
    pub layout: [u8; 32],
    /// The public wires, in the order of the public values.
    pub public: Vec<PublicWire>,
    /// Commitment to St, the part of each instance's public sum that no challenge multiplies.
    pub cm_st: Gt,
    /// Commitment to Sg, the part that g multiplies.
    pub cm_sg: Gt,
    /// Commitment to Sb, the part that b multiplies.
    pub cm_sb: Gt,
    /// Commitment to gamma, once per instance.
    pub cm_gamma: Gt,
    /// Commitment to each instance's delta.
    pub cm_delta: Gt,
    /// Commitment to each instance's eta.
    pub cm_eta: Gt,
    /// Commitment to each instance's Theta.
    pub cm_theta: Gt,
    /// `e(alpha, beta)`.
    pub alpha_beta: Gt,
    /// K, the base of the ledger sum.
    pub k: G1Point,
    /// `[psi]_1`.
    pub psi_1: G1Point,
    /// `[phi]_2`.
    pub phi_2: G2Point,
}

impl VerifyingKey {
    /// l, the number of halvings of the aggregation: `ceil(log2 n)`.
    pub fn rounds(&self) -> usize {
        self.instances.next_power_of_two().trailing_zeros() as usize
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.push(match self.trust {
            Trust::SingleParty => 1,
            Trust::InsecureSeed => 2,
        });
        out.push(u8::from(self.zero_knowledge));
        put_string(&mut out, &self.circuit);
        put_string(&mut out, &self.parameters);
        out.extend_from_slice(&self.instances.to_le_bytes());
        out.extend_from_slice(&self.types.to_le_bytes());
        out.extend_from_slice(&self.type_map);
        out.extend_from_slice(&self.layout);
        out.extend_from_slice(&(self.public.len() as u32).to_le_bytes());
        for wire in &self.public {
            out.extend_from_slice(&wire.address.to_le_bytes());
            out.extend_from_slice(&wire.multiplicity.to_le_bytes());
        }
        for code in Gt::compress_all(&self.gt_elements()) {
            out.extend_from_slice(&code);
        }
        out.extend(self.k.encode());
        out.extend(self.psi_1.encode());
        out.extend(self.phi_2.encode());
        out
    }

    /// Reads [`Self::to_bytes`] back. Everything is checked: lengths, encodings, subgroups, nothing after the end.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VerifyingKeyError> {
        let mut reader = Reader::new(bytes);
        if reader.take(8, "magic").ok() != Some(MAGIC) {
            return Err(VerifyingKeyError::Magic);
        }
        let found = reader.u16("format version")?;
        if found != VERSION {
            return Err(VerifyingKeyError::Version { found });
        }
        Ok(Self::read_body(reader)?)
    }

    fn read_body(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let trust = match reader.array::<1>("trust")? {
            [1] => Trust::SingleParty,
            [2] => Trust::InsecureSeed,
            [other] => {
                return Err(reader.invalid("trust", 1, format_args!("{other} is not known")));
            }
        };
        let zero_knowledge = match reader.array::<1>("zero-knowledge flag")? {
            [flag @ (0 | 1)] => flag == 1,
            [other] => {
                return Err(reader.invalid(
                    "zero-knowledge flag",
                    1,
                    format_args!("{other} is neither 0 nor 1"),
                ));
            }
        };
        let circuit = reader.string(MAX_TEXT, "circuit name")?;
        let parameters = reader.string(MAX_TEXT, "circuit parameters")?;
        let instances = reader.u64("number of subcircuits")?;
        if instances == 0 || instances > 1 << 40 {
            return Err(reader.invalid(
                "number of subcircuits",
                8,
                format_args!("{instances} is not in 1..2^40"),
            ));
        }
        let types = reader.u32("number of types")?;
        if types == 0 || u64::from(types) > instances {
            return Err(reader.invalid(
                "number of types",
                4,
                format_args!("{types} is not in 1..={instances}"),
            ));
        }
        let type_map = reader.array("digest of the type map")?;
        let layout = reader.array("digest of the layout")?;
        let count = reader.u32("number of public wires")?;
        if count > MAX_PUBLIC {
            return Err(reader.invalid(
                "number of public wires",
                4,
                format_args!("{count} is above {MAX_PUBLIC}"),
            ));
        }
        // No capacity from the count: the vector grows only as the bytes are there.
        let mut public: Vec<PublicWire> = Vec::new();
        for _ in 0..count {
            let address = reader.u64("address of a public wire")?;
            let multiplicity = reader.u64("multiplicity of a public wire")? as i64;
            let star = multiplicity == -1 || (1..1 << 32).contains(&multiplicity);
            let ordered = public.last().is_none_or(|last| last.address < address);
            if address == 0 || !star || !ordered {
                return Err(reader.invalid(
                    "public wire",
                    16,
                    "addresses must rise from 1, multiplicities be -1 or 1..2^32",
                ));
            }
            public.push(PublicWire { address, multiplicity });
        }
        let mut codes = [[0; Gt::COMPRESSED]; 8];
        for code in &mut codes {
            *code = reader.array("target group element")?;
        }
        let gt = Gt::decompress_all(&codes).map_err(|(i, e)| {
            reader.invalid("target group element", (8 - i) * Gt::COMPRESSED, e)
        })?;
        let (k, psi_1, phi_2) =
            (reader.point("K")?, reader.point("[psi]_1")?, reader.point("[phi]_2")?);
        if G1Point::is_identity(&k) || G1Point::is_identity(&psi_1) || G2Point::is_identity(&phi_2)
        {
            return Err(reader.invalid(
                "K, [psi]_1, [phi]_2",
                192,
                "none of them may be the point at infinity",
            ));
        }
        reader.finish()?;
        Ok(Self {
            circuit,
            parameters,
            trust,
            zero_knowledge,
            instances,
            types,
            type_map,
            layout,
            public,
            cm_st: gt[0],
            cm_sg: gt[1],
            cm_sb: gt[2],
            cm_gamma: gt[3],
            cm_delta: gt[4],
            cm_eta: gt[5],
            cm_theta: gt[6],
            alpha_beta: gt[7],
            k,
            psi_1,
            phi_2,
        })
    }

    /// The digest that binds proofs, the transcript and key directories to this key: BLAKE3 of [`Self::to_bytes`].
    pub fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.to_bytes()).as_bytes()
    }

    fn gt_elements(&self) -> [Gt; 8] {
        [
            self.cm_st,
            self.cm_sg,
            self.cm_sb,
            self.cm_gamma,
            self.cm_delta,
            self.cm_eta,
            self.cm_theta,
            self.alpha_beta,
        ]
    }
}
