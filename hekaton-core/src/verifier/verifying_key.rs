//! The verifying key (spec: verifier#key): small, self-contained, and all that a verifier needs in
//! addition to the proof and the public values.

use crate::encoding::{DecodeError, Encode, Reader, put_string};
use hekaton_arith::{G1Point, G2Point, Group, Gt};
use hekaton_circuit::PublicWire;

const MAGIC: &[u8; 8] = b"HEKATNVK";
const VERSION: u16 = 1;
/// Maximum number of public wires of a key; bounds what a reader allocates.
const MAX_PUBLIC: u32 = 1 << 24;
/// Maximum length in bytes of the circuit's name, and of its parameters.
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
        "the verifying key has format version {found}, but this program reads \
         version {VERSION}: use the program that made it, or run setup again"
    )]
    Version {
        /// The version in the file.
        found: u16,
    },
    /// The bytes are damaged.
    #[error("damaged verifying key: {0}")]
    Decode(#[from] DecodeError),
}

/// The party that must be trusted for proofs under a key to mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// One party ran the setup and knew the trapdoors while it ran.
    SingleParty,
    /// The trapdoors come from a known seed: keys for tests, under which anybody can forge proofs.
    InsecureSeed,
}

impl Trust {
    /// Returns one sentence about the trust, for people.
    ///
    /// Manifests store this sentence and opening a key store compares it, so its bytes are part of
    /// the format and must not change.
    pub fn statement(self) -> &'static str {
        match self {
            Self::SingleParty => {
                "keys from a single-party setup: whoever ran it could have kept the trapdoors \
                 and forge proofs"
            }
            Self::InsecureSeed => "TEST KEYS with trapdoors from a seed: anybody can forge proofs",
        }
    }
}

/// The verifying key of a partitioned circuit.
///
/// Constant size apart from the public wires: 8 GT elements, 2 points of G1, one of G2 and a
/// header, about 2.7 kB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// Name of the circuit, for information only.
    pub circuit: String,
    /// Parameters of the circuit as JSON, for information and for the circuit's own decoding of
    /// public values.
    pub parameters: String,
    /// The party that is trusted.
    pub trust: Trust,
    /// Whether proofs are zero-knowledge (spec: zero-knowledge#masks).
    pub zero_knowledge: bool,
    /// Number of subcircuits n, at least 1.
    pub instances: u64,
    /// Number of types k.
    pub types: u32,
    /// Digest of the map from instances to types.
    pub type_map: [u8; 32],
    /// Digest of the whole wiring.
    pub layout: [u8; 32],
    /// The public wires, in the order of the public values.
    pub public: Vec<PublicWire>,
    /// Commitment to St, the part of each instance's public sum S that no challenge multiplies.
    pub(crate) cm_st: Gt,
    /// Commitment to Sg, the part of S that g multiplies.
    pub(crate) cm_sg: Gt,
    /// Commitment to Sb, the part of S that b multiplies.
    pub(crate) cm_sb: Gt,
    /// Commitment to the vector of gamma, once per instance.
    pub(crate) cm_gamma: Gt,
    /// Commitment to each instance's delta.
    pub(crate) cm_delta: Gt,
    /// Commitment to each instance's eta.
    pub(crate) cm_eta: Gt,
    /// Commitment to each instance's Theta.
    pub(crate) cm_theta: Gt,
    /// The pairing `e(alpha, beta)`.
    pub(crate) alpha_beta: Gt,
    /// The base K of the terms of the ledger sum (spec: mirage#kappa).
    pub(crate) k: G1Point,
    /// The point `[psi]_1`, for the opening of the folded key v.
    pub(crate) psi_1: G1Point,
    /// The point `[phi]_2`, for the opening of the folded key w.
    pub(crate) phi_2: G2Point,
}

/// The fixed elements of a verifying key, for a closer look at keys.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FixedElements {
    /// Commitment to St, the part of each instance's public sum S that no challenge multiplies.
    pub cm_st: Gt,
    /// Commitment to Sg, the part of S that g multiplies.
    pub cm_sg: Gt,
    /// Commitment to Sb, the part of S that b multiplies.
    pub cm_sb: Gt,
    /// Commitment to the vector of gamma, once per instance.
    pub cm_gamma: Gt,
    /// Commitment to each instance's delta.
    pub cm_delta: Gt,
    /// Commitment to each instance's eta.
    pub cm_eta: Gt,
    /// Commitment to each instance's Theta.
    pub cm_theta: Gt,
    /// The pairing `e(alpha, beta)`.
    pub alpha_beta: Gt,
    /// The base K of the terms of the ledger sum (spec: mirage#kappa).
    pub k: G1Point,
    /// The point `[psi]_1`, for the opening of the folded key v.
    pub psi_1: G1Point,
    /// The point `[phi]_2`, for the opening of the folded key w.
    pub phi_2: G2Point,
}

impl VerifyingKey {
    /// Copies of the fixed elements. They cannot be changed in a key: [`Self::from_bytes`] has
    /// checked them.
    pub fn fixed_elements(&self) -> FixedElements {
        FixedElements {
            cm_st: self.cm_st,
            cm_sg: self.cm_sg,
            cm_sb: self.cm_sb,
            cm_gamma: self.cm_gamma,
            cm_delta: self.cm_delta,
            cm_eta: self.cm_eta,
            cm_theta: self.cm_theta,
            alpha_beta: self.alpha_beta,
            k: self.k,
            psi_1: self.psi_1,
            phi_2: self.phi_2,
        }
    }
}

impl VerifyingKey {
    /// Returns the number of GIPA rounds of the aggregation, `l = ceil(log2 n)`.
    pub fn rounds(&self) -> usize {
        self.instances.next_power_of_two().trailing_zeros() as usize
    }

    /// Returns the canonical encoding.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "setup reads every key back, and readers refuse more than MAX_PUBLIC public wires"
    )]
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

    /// Decodes [`Self::to_bytes`]. Lengths, encodings and subgroups are checked; nothing may follow
    /// the end.
    ///
    /// # Errors
    /// See [`VerifyingKeyError`].
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

    /// Reads the trust and whether proofs are zero-knowledge.
    fn read_modes(reader: &mut Reader<'_>) -> Result<(Trust, bool), DecodeError> {
        let trust = match reader.array::<1>("trust")? {
            [1] => Trust::SingleParty,
            [2] => Trust::InsecureSeed,
            [other] => {
                return Err(reader.invalid("trust", 1, format_args!("unknown value {other}")));
            }
        };
        let zero_knowledge = match reader.array::<1>("zero-knowledge flag")? {
            [flag @ (0 | 1)] => flag == 1,
            [other] => {
                return Err(reader.invalid(
                    "zero-knowledge flag",
                    1,
                    format_args!("{other}, expected 0 or 1"),
                ));
            }
        };
        Ok((trust, zero_knowledge))
    }

    /// Reads the public wires. Addresses must increase, so that each has one entry and the list has
    /// one encoding; multiplicities must be those of a star (spec: memory-check#stars).
    fn read_public(reader: &mut Reader<'_>) -> Result<Vec<PublicWire>, DecodeError> {
        let count = reader.u32("number of public wires")?;
        if count > MAX_PUBLIC {
            return Err(reader.invalid(
                "number of public wires",
                4,
                format_args!("{count}, expected at most {MAX_PUBLIC}"),
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
                    "addresses must increase from 1, multiplicities be -1 or 1 to 2^32 - 1",
                ));
            }
            public.push(PublicWire { address, multiplicity });
        }
        Ok(public)
    }

    /// Reads everything after magic bytes and version.
    fn read_body(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let (trust, zero_knowledge) = Self::read_modes(&mut reader)?;
        let circuit = reader.string(MAX_TEXT, "circuit name")?;
        let parameters = reader.string(MAX_TEXT, "circuit parameters")?;
        let instances = reader.u64("number of subcircuits")?;
        // The upper bound keeps the padded number from overflowing, and the number of rounds at 40.
        if instances == 0 || instances > 1 << 40 {
            return Err(reader.invalid(
                "number of subcircuits",
                8,
                format_args!("{instances}, expected 1 to 2^40"),
            ));
        }
        let types = reader.u32("number of types")?;
        // Every type has an instance.
        if types == 0 || u64::from(types) > instances {
            return Err(reader.invalid(
                "number of types",
                4,
                format_args!("{types}, expected 1 to {instances}"),
            ));
        }
        let type_map = reader.array("digest of the type map")?;
        let layout = reader.array("digest of the layout")?;
        let public = Self::read_public(&mut reader)?;
        let mut codes = [[0; Gt::COMPRESSED]; 8];
        for code in &mut codes {
            *code = reader.array("target group element")?;
        }
        let gt = Gt::decompress_all(&codes).map_err(|(i, e)| {
            reader.invalid("target group element", (8 - i) * Gt::COMPRESSED, e)
        })?;
        let (k, psi_1, phi_2) =
            (reader.point("K")?, reader.point("[psi]_1")?, reader.point("[phi]_2")?);
        // K = 0 would remove the ledger sum from the equations; psi = 0 or phi = 0 would make keys
        // trivial.
        if G1Point::is_identity(&k) || G1Point::is_identity(&psi_1) || G2Point::is_identity(&phi_2)
        {
            return Err(reader.invalid(
                "K, [psi]_1, [phi]_2",
                192,
                "the point at infinity is not allowed",
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

    /// Returns the digest that binds proofs, the transcript and key stores to this key: BLAKE3 of
    /// [`Self::to_bytes`].
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
