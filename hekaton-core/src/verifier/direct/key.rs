//! The direct key (spec: direct#key): the elements of a verifying key as points of the source groups.

use super::encoding::{keccak, put_number, put_point, put_scalar, tag};
use crate::encoding::{DecodeError, Encode, Reader};
use crate::verifier::verifying_key::{VerifyingKey, VerifyingKeyError};
use hekaton_arith::{Fr, G1Point, G2Point, Group, pairing};
use std::collections::HashSet;

/// Version of the file.
const VERSION: u16 = 1;
const TAG: [u8; 32] = tag(b"hekaton direct key v1");

/// The digest of the type map (docs/formats.md, "Digest of the layout"). The verifier is built without
/// layouts, which compute the same.
fn type_map_digest(type_of: &[u32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 type map");
    type_of.iter().for_each(|kind| {
        hasher.update(&kind.to_le_bytes());
    });
    *hasher.finalize().as_bytes()
}

/// The number of subcircuits of a verifying key, if there are few enough for direct proofs.
pub(crate) fn instances_of(verifying: &VerifyingKey) -> Result<usize, DirectKeyError> {
    let found = verifying.instances;
    let n = usize::try_from(found).ok().filter(|n| *n <= DirectKey::MAX_INSTANCES);
    n.ok_or(DirectKeyError::TooMany { found })
}

/// The error of making or reading a direct key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectKeyError {
    /// The bytes are something else.
    #[error("not a direct key of Hekaton (it does not start with its magic bytes)")]
    Magic,
    /// Written by another version of the software.
    #[error(
        "the direct key has format version {found}, but this program reads version {VERSION}: \
         export it again"
    )]
    Version {
        /// The version in the file.
        found: u16,
    },
    /// The bytes are damaged.
    #[error("damaged direct key: {0}")]
    Decode(DecodeError),
    /// The verifying key in it is refused.
    #[error("its verifying key: {0}")]
    VerifyingKey(VerifyingKeyError),
    /// There are more subcircuits than a direct proof can have.
    #[error(
        "{found} subcircuits, but direct proofs are for at most {} of them: prove without --direct, \
         which makes a proof of a few kilobytes",
        DirectKey::MAX_INSTANCES
    )]
    TooMany {
        /// The number of subcircuits.
        found: u64,
    },
    /// Its elements are not those of the verifying key, or proofs under them could be forged.
    #[error("unusable direct key: {0}; run `hekaton keys verify` on the keys that it comes from")]
    Unusable(String),
}

impl From<DecodeError> for DirectKeyError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<VerifyingKeyError> for DirectKeyError {
    fn from(error: VerifyingKeyError) -> Self {
        Self::VerifyingKey(error)
    }
}

/// The elements of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectType {
    /// The points delta, eta and Theta.
    pub elements: [G2Point; 3],
    /// The point Sg.
    pub sg: G1Point,
    /// The point ST, with buses.
    pub st: Option<G1Point>,
}

/// The points of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectInstance {
    /// The point St.
    pub st: G1Point,
    /// The point Sb.
    pub sb: G1Point,
    /// The point SV, with buses.
    pub sv: Option<G1Point>,
}

/// The key that direct proofs are verified with.
///
/// [`ProverKeys::direct_key`](crate::ProverKeys::direct_key) makes it. Its [digest](Self::digest) binds
/// all of it into proofs, and it is what a verifier compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectKey {
    pub(crate) verifying: VerifyingKey,
    pub(crate) digest: [u8; 32],
    pub(crate) alpha: G1Point,
    pub(crate) beta: G2Point,
    pub(crate) gamma: G2Point,
    /// The number of the type of each instance.
    pub(crate) type_of: Vec<u32>,
    pub(crate) types: Vec<DirectType>,
    pub(crate) parts: Vec<DirectInstance>,
}

impl DirectKey {
    /// The first bytes of a file.
    pub const MAGIC: &[u8; 8] = b"HEKATNDK";
    /// The largest number of subcircuits of a direct proof, of 1.1 MB.
    pub const MAX_INSTANCES: usize = 1 << 12;

    /// Sets the digest, after all checks but these: that the verifying key commits to the elements, for
    /// which the powers of psi and phi are needed, and that points are in their groups
    /// (spec: direct#key-checks).
    pub(crate) fn checked(mut self) -> Result<Self, DirectKeyError> {
        let unusable = |why: &str| Err(DirectKeyError::Unusable(why.to_owned()));
        let Self { verifying, alpha, beta, gamma, type_of, types, parts, .. } = &self;
        let (n, k) = (instances_of(verifying)?, verifying.types.len());
        if type_of.len() != n || parts.len() != n || types.len() != k {
            return unusable("it has other numbers of types and instances than its verifying key");
        }
        if types.iter().any(|kind| kind.st.is_some() != verifying.has_buses())
            || parts.iter().any(|part| part.sv.is_some() != verifying.has_buses())
        {
            return unusable("it has other buses than its verifying key");
        }
        if type_map_digest(type_of) != verifying.type_map
            || type_of.iter().any(|kind| *kind as usize >= k)
        {
            return unusable("its instances have other types than in its verifying key");
        }
        if pairing(alpha, beta) != verifying.alpha_beta {
            return unusable("alpha and beta are not those of its verifying key");
        }
        // Readers of verifying keys refuse 1 as e(alpha, beta), so alpha and beta are not infinity, and
        // infinity as K. If two of gamma, delta and eta were equal, over all types, C or D could pay for
        // any public part (spec: mirage#asserts); one that is 1 has no secret.
        let mut seen = HashSet::from([gamma.to_compressed()]);
        let own = types.iter().flat_map(|kind| &kind.elements[..2]);
        let distinct = own.clone().all(|point| seen.insert(point.to_compressed()));
        let infinite = types.iter().flat_map(|kind| &kind.elements).chain([gamma]);
        if !distinct || infinite.into_iter().any(Group::is_identity) {
            return unusable("gamma, delta and eta are not distinct, or one is infinity");
        }
        if own.into_iter().any(|point| *point == G2Point::generator()) {
            return unusable("a delta or eta is 1");
        }
        self.digest = keccak(&[&self.words()]);
        Ok(self)
    }

    /// The verifying key.
    pub fn verifying(&self) -> &VerifyingKey {
        &self.verifying
    }

    /// KEY, the digest that proofs, transcripts and contracts contain (spec: direct#key).
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The point alpha.
    pub fn alpha(&self) -> &G1Point {
        &self.alpha
    }

    /// The points beta and gamma.
    pub fn beta_and_gamma(&self) -> [&G2Point; 2] {
        [&self.beta, &self.gamma]
    }

    /// The elements of the types, in the order of the verifying key.
    pub fn types(&self) -> &[DirectType] {
        &self.types
    }

    /// The number of the type of each instance.
    pub fn type_of(&self) -> &[u32] {
        &self.type_of
    }

    /// The points of the instances.
    pub fn parts(&self) -> &[DirectInstance] {
        &self.parts
    }

    /// The number of subcircuits, n.
    pub fn instances(&self) -> usize {
        self.parts.len()
    }

    /// Reports whether the circuit has buses.
    pub fn has_buses(&self) -> bool {
        self.verifying.has_buses()
    }

    /// The instances of a type, in order.
    pub fn instances_of(&self, kind: usize) -> impl Iterator<Item = usize> {
        let is_one = move |(i, of): (usize, &u32)| (*of as usize == kind).then_some(i);
        self.type_of.iter().enumerate().filter_map(is_one)
    }

    /// The bytes of which [`Self::digest`] is the hash.
    fn words(&self) -> Vec<u8> {
        let vk = &self.verifying;
        let mut out = [TAG, vk.digest()].concat();
        let numbers = [vk.instances, vk.types.len() as u64, u64::from(vk.has_buses())];
        numbers.into_iter().for_each(|number| put_number(&mut out, number));
        put_number(&mut out, vk.public.len() as u64);
        for wire in &vk.public {
            put_number(&mut out, wire.address);
            put_scalar(&mut out, &Fr::from(wire.multiplicity));
        }
        put_number(&mut out, vk.constants.len() as u64);
        for wire in &vk.constants {
            put_number(&mut out, wire.address);
            put_scalar(&mut out, &Fr::from(wire.multiplicity));
            put_scalar(&mut out, &wire.value);
        }
        self.type_of.iter().for_each(|kind| put_number(&mut out, u64::from(*kind)));
        put_point(&mut out, &self.alpha);
        [&self.beta, &self.gamma].into_iter().for_each(|point| put_point(&mut out, point));
        put_point(&mut out, &vk.k);
        for kind in &self.types {
            kind.elements.iter().for_each(|point| put_point(&mut out, point));
            [Some(kind.sg), kind.st].iter().flatten().for_each(|point| put_point(&mut out, point));
        }
        let points = |part: &DirectInstance| [Some(part.st), Some(part.sb), part.sv];
        let parts = self.parts.iter().flat_map(points).flatten();
        parts.for_each(|point| put_point(&mut out, &point));
        out
    }

    /// Returns the canonical encoding (docs/formats.md, "Direct key").
    #[allow(
        clippy::cast_possible_truncation,
        reason = "verifying keys are shorter than 2^32 bytes"
    )]
    pub fn to_bytes(&self) -> Vec<u8> {
        let verifying = self.verifying.to_bytes();
        let mut out = Self::MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(verifying.len() as u32).to_le_bytes());
        out.extend_from_slice(&verifying);
        out.extend(self.alpha.encode());
        [&self.beta, &self.gamma].into_iter().for_each(|point| out.extend(point.encode()));
        self.type_of.iter().for_each(|kind| out.extend_from_slice(&kind.to_le_bytes()));
        for kind in &self.types {
            kind.elements.iter().for_each(|point| out.extend(point.encode()));
            [Some(kind.sg), kind.st].iter().flatten().for_each(|point| out.extend(point.encode()));
        }
        for part in &self.parts {
            let points = [Some(part.st), Some(part.sb), part.sv];
            points.iter().flatten().for_each(|point| out.extend(point.encode()));
        }
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        out
    }

    /// Decodes [`Self::to_bytes`]. Lengths, encodings, subgroups and everything else that can be checked
    /// without the powers of the keys is checked: **compare the [digest](Self::digest)** with that of a
    /// key that you trust, or make the key from keys that you trust.
    ///
    /// # Errors
    /// See [`DirectKeyError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DirectKeyError> {
        let mut reader = Reader::new(bytes);
        if reader.take(8, "magic").ok() != Some(Self::MAGIC) {
            return Err(DirectKeyError::Magic);
        }
        let found = reader.u16("format version")?;
        if found != VERSION {
            return Err(DirectKeyError::Version { found });
        }
        let length = reader.u32("length of the verifying key")? as usize;
        let verifying = VerifyingKey::from_bytes(reader.take(length, "verifying key")?)?;
        // Bounded before anything is allocated by it.
        let (n, k, buses) =
            (instances_of(&verifying)?, verifying.types.len(), verifying.has_buses());
        let alpha = reader.point("alpha")?;
        let [beta, gamma] = [reader.point("beta")?, reader.point("gamma")?];
        let type_of =
            (0..n).map(|_| reader.u32("type of an instance")).collect::<Result<_, _>>()?;
        let of_bus = |reader: &mut Reader<'_>, what: &'static str| {
            buses.then(|| reader.point::<G1Point>(what)).transpose()
        };
        let mut types = Vec::new();
        for _ in 0..k {
            let elements = [reader.point("delta")?, reader.point("eta")?, reader.point("Theta")?];
            types.push(DirectType {
                elements,
                sg: reader.point("Sg")?,
                st: of_bus(&mut reader, "ST")?,
            });
        }
        let mut parts = Vec::new();
        for _ in 0..n {
            parts.push(DirectInstance {
                st: reader.point("St")?,
                sb: reader.point("Sb")?,
                sv: of_bus(&mut reader, "SV")?,
            });
        }
        let content = bytes.len() - reader.left();
        let checksum: [u8; 32] = reader.array("checksum")?;
        if checksum != *blake3::hash(&bytes[..content]).as_bytes() {
            return Err(reader.invalid("checksum", 32, "it is not that of the contents").into());
        }
        reader.finish()?;
        let digest = [0; 32];
        Self { verifying, digest, alpha, beta, gamma, type_of, types, parts }.checked()
    }
}
