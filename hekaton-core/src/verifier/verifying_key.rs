//! The verifying key (spec: verifier#key): small, self-contained, and all that a verifier needs in
//! addition to the proof and the public values.

use crate::encoding::{DecodeError, Encode, Reader, put_string};
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, fr_from_bytes, fr_to_bytes};
use hekaton_circuit::{ConstantWire, PublicWire, is_public_name, is_type_name};
use std::borrow::Cow;
use std::collections::HashSet;

const MAGIC: &[u8; 8] = b"HEKATNVK";
/// The version of keys that a setup made for one layout.
const VERSION: u16 = 2;
/// The version of keys that were derived from those of a family (spec: key-family#derive).
const DERIVED_VERSION: u16 = 3;
/// The version of keys of circuits with buses, derived or not (spec: buses#keys).
const BUS_VERSION: u16 = 4;
/// Maximum number of public wires, and of constants, of a key.
const MAX_PUBLIC: u32 = 1 << 24;
/// Maximum number of types of a key.
const MAX_TYPES: u32 = 1 << 20;
/// Maximum length in bytes of the name of a type or of a public wire.
const MAX_NAME: usize = 1 << 10;
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
         versions {VERSION} to {BUS_VERSION}: use the program that made it, or run setup again"
    )]
    Version {
        /// The version in the file.
        found: u16,
    },
    /// The bytes are damaged.
    #[error("damaged verifying key: {0}")]
    Decode(DecodeError),
}

impl From<DecodeError> for VerifyingKeyError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// The party that must be trusted for proofs under a key to mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// One party ran the setup and knew the trapdoors while it ran.
    SingleParty,
    /// The trapdoors come from a known seed: keys for tests, under which anyone can forge proofs.
    InsecureSeed,
    /// The keys come from a ceremony, whose transcript has this digest (spec: ceremony#trust).
    Ceremony([u8; 32]),
}

impl Trust {
    /// Appends its encoding in keys.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::SingleParty => out.push(1),
            Self::InsecureSeed => out.push(2),
            Self::Ceremony(transcript) => {
                out.push(3);
                out.extend_from_slice(&transcript);
            }
        }
    }

    /// Returns one sentence about the trust, for people.
    ///
    /// Manifests store this sentence and opening a key store compares it, so its bytes are part of
    /// the format and must not change.
    pub fn statement(self) -> Cow<'static, str> {
        match self {
            Self::SingleParty => {
                "keys from a single-party setup: whoever ran it could have kept the trapdoors \
                 and forge proofs"
                    .into()
            }
            Self::InsecureSeed => {
                "TEST KEYS with trapdoors from a seed: anybody can forge proofs".into()
            }
            Self::Ceremony(transcript) => format!(
                "keys from a ceremony (transcript {}): only those who hold the secrets of all \
                 contributors of one of its chains could forge proofs",
                hex::encode(transcript)
            )
            .into(),
        }
    }
}

/// A subcircuit type of a verifying key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyType {
    /// Its name.
    pub name: String,
    /// The digest of its R1CS, which can be recomputed from the circuit's source
    /// (spec: verifier#type-digests).
    pub r1cs: [u8; 32],
}

/// The verifying key of a partitioned circuit.
///
/// 8 GT elements (10 in circuits with buses), 2 points of G1, one of G2 and a header, about 2.7 kB, in
/// addition to the types, the public wires and the constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// Name of the circuit, as claimed by the party that made the key; nothing checks it.
    pub circuit: String,
    /// Parameters of the circuit as JSON, claimed by the party that made the key; nothing checks them.
    pub parameters: String,
    /// The party that is trusted.
    pub trust: Trust,
    /// `true` if proofs are zero-knowledge (spec: zero-knowledge#masks).
    pub zero_knowledge: bool,
    /// Number of subcircuits n, at least 1.
    pub instances: u64,
    /// The types, k in number, at least 1.
    pub types: Vec<KeyType>,
    /// Digest of the map from instances to types.
    pub type_map: [u8; 32],
    /// Digest of the whole wiring.
    pub layout: [u8; 32],
    /// The digest of the key family that the key was derived from; none for keys that a setup made
    /// for this layout only (spec: key-family#derive).
    pub family: Option<[u8; 32]>,
    /// The public wires, in the order of the public values.
    pub public: Vec<PublicWire>,
    /// The wires whose values the key fixes.
    pub constants: Vec<ConstantWire>,
    /// Commitment to St, the part of each instance's public sum S that no challenge multiplies.
    pub(crate) cm_st: Gt,
    /// Commitment to Sg, the part of S that g multiplies.
    pub(crate) cm_sg: Gt,
    /// Commitment to Sb, the part of S that b multiplies.
    pub(crate) cm_sb: Gt,
    /// In circuits with buses: commitments to ST and SV, the parts of S that b_T and b_V multiply.
    /// In a box, because setup makes keys: unused room in a value would carry old contents of its stack,
    /// copies of trapdoors, into memory that lives on.
    pub(crate) buses: Option<Box<[Gt; 2]>>,
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

/// The commitments of a verifying key (spec: aggregation#commitments).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commitments {
    /// Commitment to St, the part of each instance's public sum S that no challenge multiplies.
    pub st: Gt,
    /// Commitment to Sg, the part of S that g multiplies.
    pub sg: Gt,
    /// Commitment to Sb, the part of S that b multiplies.
    pub sb: Gt,
    /// In circuits with buses: commitments to ST and SV, the parts of S that b_T and b_V multiply.
    pub buses: Option<[Gt; 2]>,
    /// Commitment to the vector of gamma, once per instance.
    pub gamma: Gt,
    /// Commitment to each instance's delta.
    pub delta: Gt,
    /// Commitment to each instance's eta.
    pub eta: Gt,
    /// Commitment to each instance's Theta.
    pub theta: Gt,
}

/// The fixed elements of a verifying key, for a closer look at keys.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FixedElements {
    /// The commitments.
    pub commitments: Commitments,
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
    /// Copies of the commitments.
    pub fn commitments(&self) -> Commitments {
        Commitments {
            st: self.cm_st,
            sg: self.cm_sg,
            sb: self.cm_sb,
            buses: self.buses.as_deref().copied(),
            gamma: self.cm_gamma,
            delta: self.cm_delta,
            eta: self.cm_eta,
            theta: self.cm_theta,
        }
    }

    /// Copies of the fixed elements. They cannot be changed in a key: [`Self::from_bytes`] has
    /// checked them.
    pub fn fixed_elements(&self) -> FixedElements {
        FixedElements {
            commitments: self.commitments(),
            alpha_beta: self.alpha_beta,
            k: self.k,
            psi_1: self.psi_1,
            phi_2: self.phi_2,
        }
    }
}

impl VerifyingKey {
    /// Reports whether the circuit has buses, so that the challenges b_T and b_V are drawn
    /// (spec: buses#challenges).
    pub fn has_buses(&self) -> bool {
        self.buses.is_some()
    }

    /// Returns the number of GIPA rounds of the aggregation, `l = ceil(log2 n)`.
    pub fn rounds(&self) -> usize {
        self.instances.next_power_of_two().trailing_zeros() as usize
    }

    /// Returns the canonical encoding.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "setup reads every key back, and readers refuse longer lists"
    )]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        let version = match (self.has_buses(), &self.family) {
            (true, _) => BUS_VERSION,
            (false, Some(_)) => DERIVED_VERSION,
            (false, None) => VERSION,
        };
        out.extend_from_slice(&version.to_le_bytes());
        self.trust.write(&mut out);
        out.push(u8::from(self.zero_knowledge));
        put_string(&mut out, &self.circuit);
        put_string(&mut out, &self.parameters);
        out.extend_from_slice(&self.instances.to_le_bytes());
        out.extend_from_slice(&(self.types.len() as u32).to_le_bytes());
        for kind in &self.types {
            put_string(&mut out, &kind.name);
            out.extend_from_slice(&kind.r1cs);
        }
        out.extend_from_slice(&self.type_map);
        out.extend_from_slice(&self.layout);
        if self.has_buses() {
            out.push(u8::from(self.family.is_some()));
        }
        out.extend_from_slice(self.family.as_ref().map_or(&[][..], |digest| digest));
        out.extend_from_slice(&(self.public.len() as u32).to_le_bytes());
        for wire in &self.public {
            out.extend_from_slice(&wire.address.to_le_bytes());
            out.extend_from_slice(&wire.multiplicity.to_le_bytes());
            put_string(&mut out, &wire.name);
            out.extend_from_slice(&wire.index.to_le_bytes());
        }
        out.extend_from_slice(&(self.constants.len() as u32).to_le_bytes());
        for wire in &self.constants {
            out.extend_from_slice(&wire.address.to_le_bytes());
            out.extend_from_slice(&wire.multiplicity.to_le_bytes());
            out.extend_from_slice(&fr_to_bytes(&wire.value));
        }
        for code in Gt::to_t2_all(&self.gt_elements()) {
            out.extend_from_slice(&code);
        }
        out.extend(self.k.encode());
        out.extend(self.psi_1.encode());
        out.extend(self.phi_2.encode());
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
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
        match found {
            VERSION | DERIVED_VERSION | BUS_VERSION => Ok(Self::read_body(reader, bytes, found)?),
            found => Err(VerifyingKeyError::Version { found }),
        }
    }

    /// Reads the trust.
    pub(crate) fn read_trust(reader: &mut Reader<'_>) -> Result<Trust, DecodeError> {
        match reader.array::<1>("trust")? {
            [1] => Ok(Trust::SingleParty),
            [2] => Ok(Trust::InsecureSeed),
            [3] => Ok(Trust::Ceremony(reader.array("digest of the ceremony")?)),
            [other] => Err(reader.invalid("trust", 1, format_args!("unknown value {other}"))),
        }
    }

    /// Reads whether proofs are zero-knowledge.
    pub(crate) fn read_zero_knowledge(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
        Self::read_flag(reader, "zero-knowledge flag")
    }

    fn read_flag(reader: &mut Reader<'_>, what: &'static str) -> Result<bool, DecodeError> {
        match reader.array::<1>(what)? {
            [flag @ (0 | 1)] => Ok(flag == 1),
            [other] => Err(reader.invalid(what, 1, format_args!("{other}, expected 0 or 1"))),
        }
    }

    /// Reads the name of the circuit and its parameters.
    pub(crate) fn read_texts(reader: &mut Reader<'_>) -> Result<(String, String), DecodeError> {
        let circuit = reader.string(MAX_TEXT, "circuit name")?;
        Ok((circuit, reader.string(MAX_TEXT, "circuit parameters")?))
    }

    /// Reads K, `[psi]_1` and `[phi]_2`.
    pub(crate) fn read_bases(
        reader: &mut Reader<'_>,
    ) -> Result<(G1Point, G1Point, G2Point), DecodeError> {
        let (k, psi_1): (G1Point, G1Point) = (reader.point("K")?, reader.point("[psi]_1")?);
        let phi_2: G2Point = reader.point("[phi]_2")?;
        // K = 0 would remove the ledger sum from the equations, psi = 0 or phi = 0 would make keys
        // trivial; the generators would make kappa, psi or phi 1.
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let weak = |point: &G1Point| point.is_identity() || *point == g;
        if weak(&k) || weak(&psi_1) || phi_2.is_identity() || phi_2 == h {
            return Err(reader.invalid(
                "K, [psi]_1, [phi]_2",
                192,
                "the point at infinity and the generators are not allowed",
            ));
        }
        Ok((k, psi_1, phi_2))
    }

    /// Reads the number of items of a list.
    fn read_count(
        reader: &mut Reader<'_>,
        max: u32,
        what: &'static str,
    ) -> Result<u32, DecodeError> {
        let count = reader.u32(what)?;
        if count > max {
            return Err(reader.invalid(what, 4, format_args!("{count}, expected at most {max}")));
        }
        Ok(count)
    }

    /// Reads the types, of which there are at most as many as instances. `then` reads what follows
    /// each of them.
    pub(crate) fn read_types<'r>(
        reader: &mut Reader<'r>,
        instances: u64,
        mut then: impl FnMut(&mut Reader<'r>, KeyType) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let what = "number of types";
        let count = Self::read_count(reader, MAX_TYPES, what)?;
        // Every type has an instance.
        if count == 0 || u64::from(count) > instances {
            return Err(reader.invalid(
                what,
                4,
                format_args!("{count}, expected 1 to {instances}"),
            ));
        }
        let mut names = HashSet::new();
        for _ in 0..count {
            let name = reader.string(MAX_NAME, "name of a type")?;
            // Names become file names.
            if !is_type_name(&name) || !names.insert(name.clone()) {
                let why = "expected a name of its own, from a-z, 0-9, _ and -";
                return Err(reader.invalid("name of a type", name.len(), why));
            }
            let kind = KeyType { name, r1cs: reader.array("digest of a type")? };
            then(reader, kind)?;
        }
        Ok(())
    }

    /// Reads the address and multiplicity of a wire. Addresses must increase, so that each has one
    /// entry and the list has one encoding; multiplicities must be those of a star
    /// (spec: memory-check#stars).
    fn read_access(
        reader: &mut Reader<'_>,
        last: &mut u64,
        readers: std::ops::RangeInclusive<i64>,
    ) -> Result<(u64, i64), DecodeError> {
        let address = reader.u64("address of a public wire")?;
        let multiplicity = reader.u64("multiplicity of a public wire")? as i64;
        let star = readers.contains(&multiplicity) && multiplicity != 0;
        if address <= *last || !star {
            return Err(reader.invalid(
                "public wire",
                16,
                "addresses must increase from 1, multiplicities be 1 to 2^32 - 1, or -1 for a \
                 public output",
            ));
        }
        *last = address;
        Ok((address, multiplicity))
    }

    /// Reads the public wires.
    fn read_public(reader: &mut Reader<'_>) -> Result<Vec<PublicWire>, DecodeError> {
        let count = Self::read_count(reader, MAX_PUBLIC, "number of public wires")?;
        // No capacity from the count: the vector grows only as the bytes are there.
        let (mut public, mut last, mut names) = (Vec::new(), 0, HashSet::new());
        for _ in 0..count {
            let (address, multiplicity) =
                Self::read_access(reader, &mut last, -1..=i64::from(u32::MAX))?;
            let name = reader.string(MAX_NAME, "name of a public wire")?;
            let index = reader.u64("number of a public wire")?;
            // Two wires with one label would be one entry of the JSON form.
            if !is_public_name(&name) || !names.insert((name.clone(), index)) {
                let why = "expected a name and number of its own, without brackets";
                return Err(reader.invalid("name of a public wire", name.len() + 8, why));
            }
            public.push(PublicWire { address, multiplicity, name, index });
        }
        Ok(public)
    }

    /// Reads the constants. A constant has readers only, and an address of its own.
    fn read_constants(
        reader: &mut Reader<'_>,
        public: &[PublicWire],
    ) -> Result<Vec<ConstantWire>, DecodeError> {
        let count = Self::read_count(reader, MAX_PUBLIC, "number of constants")?;
        let (mut constants, mut last) = (Vec::new(), 0);
        for _ in 0..count {
            let (address, multiplicity) =
                Self::read_access(reader, &mut last, 1..=i64::from(u32::MAX))?;
            if public.binary_search_by_key(&address, |wire| wire.address).is_ok() {
                return Err(reader.invalid("constant", 16, "its address is that of a public wire"));
            }
            let bytes = reader.array("value of a constant")?;
            let value: Fr =
                fr_from_bytes(&bytes).map_err(|e| reader.invalid("value of a constant", 32, e))?;
            constants.push(ConstantWire { address, multiplicity, value });
        }
        Ok(constants)
    }

    /// Reads everything after magic bytes and version.
    // Above 60 lines: the fields of the format in their order.
    fn read_body(mut reader: Reader<'_>, bytes: &[u8], version: u16) -> Result<Self, DecodeError> {
        let trust = Self::read_trust(&mut reader)?;
        let zero_knowledge = Self::read_zero_knowledge(&mut reader)?;
        let (circuit, parameters) = Self::read_texts(&mut reader)?;
        let instances = reader.u64("number of subcircuits")?;
        // The upper bound keeps the padded number from overflowing, and the number of rounds at 40.
        if instances == 0 || instances > 1 << 40 {
            return Err(reader.invalid(
                "number of subcircuits",
                8,
                format_args!("{instances}, expected 1 to 2^40"),
            ));
        }
        let mut types = Vec::new();
        Self::read_types(&mut reader, instances, |_, kind| {
            types.push(kind);
            Ok(())
        })?;
        let type_map = reader.array("digest of the type map")?;
        let layout = reader.array("digest of the layout")?;
        let derived = match version {
            VERSION => false,
            DERIVED_VERSION => true,
            _ => Self::read_flag(&mut reader, "whether the key was derived")?,
        };
        let family = derived.then(|| reader.array("digest of the family")).transpose()?;
        let public = Self::read_public(&mut reader)?;
        let constants = Self::read_constants(&mut reader, &public)?;
        let (gt, buses) = Self::read_target_group(&mut reader, version == BUS_VERSION)?;
        let (k, psi_1, phi_2) = Self::read_bases(&mut reader)?;
        let content = bytes.len() - reader.left();
        let checksum: [u8; 32] = reader.array("checksum")?;
        if checksum != *blake3::hash(&bytes[..content]).as_bytes() {
            return Err(reader.invalid("checksum", 32, "it is not that of the contents"));
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
            family,
            public,
            constants,
            cm_st: gt[0],
            cm_sg: gt[1],
            cm_sb: gt[2],
            buses,
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

    /// Reads the elements of the target group: cm_ST, cm_SG, cm_SB, cm_gamma, cm_delta, cm_eta, cm_Theta and e(alpha, beta), and
    /// those of buses, which are behind the third one.
    #[expect(clippy::type_complexity, reason = "the fields of the key")]
    fn read_target_group(
        reader: &mut Reader<'_>,
        buses: bool,
    ) -> Result<(Vec<Gt>, Option<Box<[Gt; 2]>>), DecodeError> {
        let mut codes = vec![[0; Gt::T2]; if buses { 10 } else { 8 }];
        for code in &mut codes {
            *code = reader.array("target group element")?;
        }
        let mut gt = Gt::from_t2_all(&codes).map_err(|(i, e)| {
            reader.invalid("target group element", (codes.len() - i) * Gt::T2, e)
        })?;
        let of_buses = buses.then(|| Box::new([gt.remove(3), gt.remove(3)]));
        // An identity among the commitments to gamma, delta, eta and Theta, or as e(alpha, beta),
        // would remove a term from the equations.
        if gt[3..].iter().any(Gt::is_identity) {
            let what = "cm_gamma, cm_delta, cm_eta, cm_Theta, e(alpha, beta)";
            return Err(reader.invalid(what, 192, "the neutral element is not allowed"));
        }
        // Two equal commitments mean equal elements in every instance. With delta = gamma, say, C
        // repairs any public part, and anyone can forge.
        if (3..7).any(|i| gt[i + 1..7].contains(&gt[i])) {
            let what = "cm_gamma, cm_delta, cm_eta, cm_Theta";
            return Err(reader.invalid(what, 192, "two of them are equal"));
        }
        Ok((gt, of_buses))
    }

    /// Returns the digest that binds proofs, the transcript and key stores to this key: BLAKE3 of
    /// [`Self::to_bytes`].
    pub fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.to_bytes()).as_bytes()
    }

    fn gt_elements(&self) -> Vec<Gt> {
        let mut all = vec![self.cm_st, self.cm_sg, self.cm_sb];
        all.extend(self.buses.iter().flat_map(|buses| **buses));
        all.extend([self.cm_gamma, self.cm_delta, self.cm_eta, self.cm_theta, self.alpha_beta]);
        all
    }
}
