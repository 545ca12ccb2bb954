//! The key of a family, which one setup publishes so that anyone can derive the keys of every layout
//! over its types (spec: key-family#derive).

use super::aggregation::check_elements;
use super::sections::{KeyFileError, Sections};
use crate::encoding::{DecodeError, Encode, Reader, put_string};
use crate::mirage::BusCounts;
use crate::verifier::verifying_key::{KeyType, Trust, VerifyingKey};
use hekaton_arith::{G1Point, G2Point, Group, Gt};
use hekaton_circuit::Masking;
use hekaton_circuit::prover::{BusShape, VariableLayout, digest_of_types};
use std::ops::Range;

/// The maximum number of subcircuits of a family: the powers for more would not fit any machine.
pub(crate) const MAX_INSTANCES: u64 = 1 << 32;
/// The maximum number of slots of a type.
const MAX_SLOTS: u64 = 1 << 28;

/// A subcircuit type of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyType {
    /// Its name, and the digest of its R1CS.
    pub kind: KeyType,
    /// Its number of slots, mask slots included.
    pub slots: usize,
    /// Its parts for buses.
    pub buses: BusShape,
}

impl FamilyType {
    /// The order of its variables.
    pub fn variables(&self) -> VariableLayout {
        VariableLayout::new(self.slots, Masking::Unmasked).with(self.buses)
    }
}

/// The contents of a family key in addition to its vectors of points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyHeader {
    /// Name of the circuit, as claimed by the party that made the key; nothing checks it.
    pub circuit: String,
    /// The parameters that all circuits of the family share, as JSON, claimed by the same party.
    pub parameters: String,
    /// The party that is trusted.
    pub trust: Trust,
    /// `true` if proofs are zero-knowledge (spec: zero-knowledge#masks).
    pub zero_knowledge: bool,
    /// The maximum number of subcircuits of a layout, N_max.
    pub instances: usize,
    /// The types.
    pub types: Vec<FamilyType>,
    /// The points that all keys of the family share.
    pub shared: SharedPoints,
}

/// The points that all keys of a family share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPoints {
    /// The pairing `e(alpha, beta)`.
    pub alpha_beta: Gt,
    /// The base K of the terms of the ledger sum (spec: mirage#kappa).
    pub k: G1Point,
    /// The point `[psi]_1`.
    pub psi_1: G1Point,
    /// The point `[phi]_2`.
    pub phi_2: G2Point,
}

impl FamilyHeader {
    /// The [digest](digest_of_types) of the types and their constraints.
    pub fn digest_of_types(&self) -> [u8; 32] {
        digest_of_types(self.types.iter().map(|t| (t.kind.name.as_str(), t.kind.r1cs)))
    }

    #[allow(clippy::cast_possible_truncation, reason = "readers refuse longer lists")]
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.trust.write(&mut out);
        put_string(&mut out, &self.circuit);
        put_string(&mut out, &self.parameters);
        out.extend_from_slice(&(self.instances as u64).to_le_bytes());
        out.push(u8::from(self.zero_knowledge));
        out.extend_from_slice(&(self.types.len() as u32).to_le_bytes());
        for FamilyType { kind, slots, .. } in &self.types {
            put_string(&mut out, &kind.name);
            out.extend_from_slice(&kind.r1cs);
            out.extend_from_slice(&(*slots as u64).to_le_bytes());
        }
        out.extend_from_slice(&Gt::to_t2_all(&[self.shared.alpha_beta])[0]);
        out.extend(self.shared.k.encode());
        out.extend(self.shared.psi_1.encode());
        out.extend(self.shared.phi_2.encode());
        out
    }

    #[allow(clippy::cast_possible_truncation, reason = "bounded before")]
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let trust = VerifyingKey::read_trust(&mut reader)?;
        let (circuit, parameters) = VerifyingKey::read_texts(&mut reader)?;
        let bounded = |reader: &mut Reader<'_>, what, range: Range<u64>| {
            let found = reader.u64(what)?;
            match range.contains(&found) {
                true => Ok(found as usize),
                false => Err(reader.invalid(what, 8, format_args!("{found} is out of range"))),
            }
        };
        let instances = bounded(&mut reader, "number of subcircuits", 1..MAX_INSTANCES + 1)?;
        let zero_knowledge = VerifyingKey::read_zero_knowledge(&mut reader)?;
        let mut types = Vec::new();
        VerifyingKey::read_types(&mut reader, u64::MAX, |reader, kind| {
            let masks = Masking::new(zero_knowledge).slots() as u64;
            let slots = bounded(reader, "number of slots", masks..MAX_SLOTS)?;
            types.push(FamilyType { kind, slots, buses: BusShape::default() });
            Ok(())
        })?;
        let code = reader.array("e(alpha, beta)")?;
        let alpha_beta = Gt::from_t2_all(&[code])
            .map_err(|(_, e)| reader.invalid("e(alpha, beta)", Gt::T2, e))?[0];
        if alpha_beta.is_identity() {
            let why = "the neutral element is not allowed";
            return Err(reader.invalid("e(alpha, beta)", Gt::T2, why));
        }
        let (k, psi_1, phi_2) = VerifyingKey::read_bases(&mut reader)?;
        reader.finish()?;
        Ok(Self {
            circuit,
            parameters,
            trust,
            zero_knowledge,
            instances,
            types,
            shared: SharedPoints { alpha_beta, k, psi_1, phi_2 },
        })
    }
}

/// The key of a family: 576 N_max bytes of powers, N_max rounded up to a power of two, and for each
/// type 192 bytes a slot.
#[derive(Debug)]
pub struct FamilyKey {
    sections: Sections,
    header: FamilyHeader,
    /// The range of the IC points of each type in their section.
    ranges: Vec<Range<usize>>,
}

impl FamilyKey {
    /// The kind of key file.
    pub const KIND: &'static str = "key family";
    /// All sections, in the order of the digest.
    const SECTIONS: [&'static str; 6] = ["header", "phi", "psi", "ic", "gamma", "elements"];

    /// Creates a key from its sections.
    ///
    /// # Errors
    /// When a section is missing, has the wrong length, or the header cannot be decoded.
    pub fn new(sections: Sections) -> Result<Self, KeyFileError> {
        sections.expect_only(&[&Self::SECTIONS[..], &["buses"]].concat())?;
        let bytes = sections.get::<u8>("header")?;
        let mut header = FamilyHeader::from_bytes(bytes)
            .map_err(|e| sections.damaged("header", e.to_string()))?;
        Self::read_shapes(&sections, &mut header)?;
        let mut ranges = Vec::new();
        let mut end = 0;
        for kind in &header.types {
            let start = end;
            end += kind.variables().public().len();
            ranges.push(start..end);
        }
        let powers = 2 * header.instances.next_power_of_two() - 1;
        let key = Self { sections, header, ranges };
        let types = key.header.types.len();
        let lengths = [
            ("phi", key.phi()?.len(), powers),
            ("psi", key.psi()?.len(), powers),
            ("ic", key.sections.get::<G1Point>("ic")?.len(), end),
            ("gamma", key.sections.get::<G2Point>("gamma")?.len(), 1),
            ("elements", key.elements()?.len(), types),
        ];
        for (section, found, expected) in lengths {
            if found != expected {
                let why = format!("{found} elements, expected {expected}");
                return Err(key.sections.damaged(section, why));
            }
        }
        check_elements(&key.sections)?;
        key.check_ic()?;
        Ok(key)
    }

    /// Checks that no IC is the point at infinity but those of challenges that a type does not use:
    /// the variable of an IC at infinity has no effect, so that a multiplicity, an address or the
    /// whole constant part of S would be gone (spec: key-family#check).
    fn check_ic(&self) -> Result<(), KeyFileError> {
        for (number, kind) in self.header.types.iter().enumerate() {
            let (layout, shape) = (kind.variables(), kind.buses);
            let unused = |variable: usize| match layout.bus_challenges() {
                _ if variable == layout.g() => layout.slots() + shape.entries == 0,
                Some([b_t, _]) if variable == b_t => shape.entries == 0,
                Some([_, b_v]) => variable == b_v,
                None => false,
            };
            for (variable, point) in self.ic(number)?.iter().enumerate() {
                if point.is_identity() && !unused(variable) {
                    let name = &kind.kind.name;
                    let why = format!("IC {variable} of type '{name}' is the point at infinity");
                    return Err(self.sections.damaged("ic", why));
                }
            }
        }
        Ok(())
    }

    /// Reads the shapes of the types for buses: a section that families without buses do not have.
    fn read_shapes(sections: &Sections, header: &mut FamilyHeader) -> Result<(), KeyFileError> {
        if sections.bytes_of("buses") == 0 {
            return Ok(());
        }
        let shapes = sections.get::<BusCounts>("buses")?;
        if shapes.len() != header.types.len() {
            let why = format!("{} types, expected {}", shapes.len(), header.types.len());
            return Err(sections.damaged("buses", why));
        }
        for (kind, counts) in header.types.iter_mut().zip(shapes) {
            kind.buses = counts.shape(MAX_SLOTS).ok_or_else(|| {
                sections.damaged("buses", format!("inconsistent counts {counts:?}"))
            })?;
        }
        Ok(())
    }

    /// The key with these points, which a ceremony has made: powers of phi and psi, IC of all types one after
    /// another, gamma, and delta, eta and Theta of each type.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn of_points(
        header: &FamilyHeader,
        [phi, ic]: [Vec<G1Point>; 2],
        psi: Vec<G2Point>,
        gamma: G2Point,
        elements: Vec<[G2Point; 3]>,
    ) -> Result<Self, KeyFileError> {
        Self::new(Self::sections_of(header, [phi, ic], psi, gamma, elements))
    }

    /// The sections of a key, for [`Self::new`].
    pub(crate) fn sections_of(
        header: &FamilyHeader,
        [phi, ic]: [Vec<G1Point>; 2],
        psi: Vec<G2Point>,
        gamma: G2Point,
        elements: Vec<[G2Point; 3]>,
    ) -> Sections {
        let mut sections = Sections::new(Self::KIND);
        sections.push("header", header.to_bytes());
        sections.push("phi", phi);
        sections.push("psi", psi);
        sections.push("ic", ic);
        sections.push("gamma", vec![gamma]);
        sections.push("elements", elements);
        let shapes: Vec<_> = header.types.iter().map(|kind| BusCounts::of(kind.buses)).collect();
        if shapes.iter().any(Option::is_some) {
            sections.push("buses", shapes.into_iter().map(Option::unwrap_or_default).collect());
        }
        sections
    }

    /// Returns the contents of the key without its points.
    pub fn header(&self) -> &FamilyHeader {
        &self.header
    }

    /// Returns the sections of the key file.
    pub fn sections(&self) -> &Sections {
        &self.sections
    }

    /// Test double: access to the sections, to replace their contents.
    #[cfg(any(test, feature = "testing"))]
    pub fn sections_mut(&mut self) -> &mut Sections {
        &mut self.sections
    }

    /// Returns the total length of all sections in bytes.
    pub fn bytes(&self) -> u64 {
        self.sections.bytes()
    }

    /// Returns the powers `[phi^i]_1` for i = 0..=2N-2, N = N_max rounded up to a power of two.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn phi(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("phi")
    }

    /// Returns the powers `[psi^i]_2` for the same i.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn psi(&self) -> Result<&[G2Point], KeyFileError> {
        self.sections.get("psi")
    }

    /// Returns IC_j of a type, one point for each public variable.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    ///
    /// # Panics
    /// If there is no such type.
    pub fn ic(&self, kind: usize) -> Result<&[G1Point], KeyFileError> {
        Ok(&self.sections.get("ic")?[self.ranges[kind].clone()])
    }

    /// Returns the point `[gamma]_2`.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn gamma(&self) -> Result<&G2Point, KeyFileError> {
        self.sections.one("gamma")
    }

    /// Returns delta, eta and Theta of each type.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn elements(&self) -> Result<&[[G2Point; 3]], KeyFileError> {
        self.sections.get("elements")
    }

    /// The number of a type, by its name.
    pub fn type_named(&self, name: &str) -> Option<usize> {
        self.header.types.iter().position(|kind| kind.kind.name == name)
    }

    /// Returns the digest of the whole key, byte for byte, as it was when it was made or opened; a mapped file may have changed
    /// since, and the digest of what [derivation](crate::derive) read is in the derived key. Pinning it pins every derived key:
    /// derivation reads nothing else, and does not check points. A digest without the higher powers, which
    /// follow from the first ones in an honest key, would pin nothing: one of them at infinity makes
    /// the elements of a subcircuit vanish (spec: key-family#digest).
    ///
    /// # Errors
    /// When a section is missing or damaged.
    pub fn digest(&self) -> Result<[u8; 32], KeyFileError> {
        self.digest_with(&[])
    }

    /// The digest, where these bytes stand at the beginning of sections in place of what the key has
    /// there by now: a mapped file can change after a part of it was read.
    fn digest_with(&self, read: &[(&str, &[u8])]) -> Result<[u8; 32], KeyFileError> {
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 key family");
        // The last section is there only in families with buses, and the header does not record
        // that: without its digest, other shapes could go with the same points.
        let buses = (self.sections.bytes_of("buses") > 0).then_some("buses");
        for section in Self::SECTIONS.into_iter().chain(buses) {
            let of_section = match read.iter().find(|(name, _)| *name == section) {
                None => self.sections.digest_of(section)?,
                // `read` has the beginning of a section as it was copied; the rest is read here.
                Some((_, first)) => {
                    let rest = &self.sections.get::<u8>(section)?[first.len()..];
                    blake3::Hasher::new().update_rayon(first).update_rayon(rest).finalize()
                }
            };
            hasher.update(of_section.as_bytes());
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// Copies what keys of up to `instances` subcircuits are derived from, with the digest of the
    /// family as it was read. All that is derived comes from the copy, so the digest is that of what
    /// was used even if the file changes meanwhile.
    pub(crate) fn copy(&self, instances: usize) -> Result<FamilyPoints, KeyFileError> {
        let powers = 2 * instances.next_power_of_two() - 1;
        let cut = |found: usize| powers.min(found);
        let (phi, psi) = (self.phi()?, self.psi()?);
        let header = self.header.to_bytes();
        let shapes: Vec<BusCounts> = (self.header.types.iter())
            // Zeros for types without buses, as `sections_of` writes them.
            .map(|kind| BusCounts::of(kind.buses))
            .map(Option::unwrap_or_default)
            .collect();
        let mut points = FamilyPoints {
            phi: phi[..cut(phi.len())].to_vec(),
            psi: psi[..cut(psi.len())].to_vec(),
            ic: self.sections.get("ic")?.to_vec(),
            gamma: *self.gamma()?,
            elements: self.elements()?.to_vec(),
            digest: [0; 32],
            ranges: self.ranges.clone(),
        };
        points.digest = self.digest_with(&[
            ("header", &header),
            ("phi", bytemuck::cast_slice(&points.phi)),
            ("psi", bytemuck::cast_slice(&points.psi)),
            ("ic", bytemuck::cast_slice(&points.ic)),
            ("gamma", bytemuck::bytes_of(&points.gamma)),
            ("elements", bytemuck::cast_slice(&points.elements)),
            ("buses", bytemuck::cast_slice(&shapes)),
        ])?;
        Ok(points)
    }
}

/// A copy of the points of a family that derivation reads.
#[derive(Debug)]
pub(crate) struct FamilyPoints {
    pub(crate) phi: Vec<G1Point>,
    pub(crate) psi: Vec<G2Point>,
    ic: Vec<G1Point>,
    pub(crate) gamma: G2Point,
    pub(crate) elements: Vec<[G2Point; 3]>,
    /// The digest of the family, of these points and of what else was in the key when they were read.
    pub(crate) digest: [u8; 32],
    ranges: Vec<Range<usize>>,
}

impl FamilyPoints {
    /// IC_j of a type, one point for each public variable.
    pub(crate) fn ic(&self, kind: usize) -> &[G1Point] {
        &self.ic[self.ranges[kind].clone()]
    }
}
