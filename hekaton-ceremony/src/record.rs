//! Records: the statements and proofs of a contributor about a contribution (spec: ceremony#records).

use crate::genesis::{Chain, Genesis, Origin, Subject};
use crate::secrets::Seed;
use hekaton_arith::{Fr, G1Point, G2Point, Group, fr_from_bytes, fr_from_uniform, fr_to_bytes};
use hekaton_core::DecodeError;
use hekaton_core::encoding::{Reader, put_string};

/// The longest name of a contributor in bytes.
pub const MAX_NAME: usize = 128;
/// The longest value of a beacon, in hexadecimal digits.
const MAX_VALUE: usize = 1 << 12;
/// The largest exponent of a beacon: 2^30 hashes.
pub(crate) const MAX_EXPONENT: u8 = 30;

/// Reports whether a text can stand for a contributor: it is not blank, not too long, and has no characters that are invisible
/// or change the order of others.
pub fn is_name(text: &str) -> bool {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    !text.trim().is_empty() && text.len() <= MAX_NAME && !text.contains(hidden)
}

/// The origin of a contribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A contributor with secrets.
    Contribution,
    /// A public value, whose "secrets" everybody can compute.
    Beacon {
        /// The value.
        value: Vec<u8>,
        /// The binary logarithm of the number of hashes.
        exponent: u8,
    },
}

/// The digests of a section before and after a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digests {
    /// As received.
    pub received: [u8; 32],
    /// As made.
    pub new: [u8; 32],
}

/// The single points of powers after a contribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowersStep {
    /// For tau: tau, alpha, beta; for phi: phi, psi. Each times the generator of G1.
    pub in_g1: Vec<G1Point>,
    /// For tau: tau, beta; for phi: phi, psi. Each times the generator of G2.
    pub in_g2: [G2Point; 2],
    /// The digests of the section.
    pub digests: Digests,
}

/// The single points of a type after a contribution, and what it was computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeStep {
    /// Delta and eta in G1.
    pub in_g1: [G1Point; 2],
    /// Delta and eta in G2.
    pub in_g2: [G2Point; 2],
    /// The input sums over L, X, H and over D.
    pub sums: [G1Point; 2],
    /// The digests of the section.
    pub digests: Digests,
}

/// K and all Theta after a contribution to the first segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerStep {
    /// The base K of ledger terms.
    pub k: G1Point,
    /// Theta for each size of domains, in ascending order.
    pub thetas: Vec<G2Point>,
}

/// The changes that a contribution has made.
#[allow(clippy::large_enum_variant, reason = "a log has few of them beside its sections")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Powers of tau, or of phi.
    Powers(PowersStep),
    /// The types of a segment.
    Segment {
        /// Each type of the segment.
        types: Vec<TypeStep>,
        /// Present in the first segment of a family that does not extend another one.
        ledger: Option<LedgerStep>,
    },
}

impl Step {
    /// The points that proofs of knowledge are about, in the order of the secrets.
    pub(crate) fn secret_points(&self) -> Vec<G1Point> {
        match self {
            Self::Powers(step) => step.in_g1.clone(),
            Self::Segment { types, ledger } => {
                let of_types = types.iter().flat_map(|kind| kind.in_g1);
                of_types.chain(ledger.iter().map(|ledger| ledger.k)).collect()
            }
        }
    }

    /// The pairs of points that must have the same logarithm in both groups.
    pub(crate) fn in_both_groups(&self) -> Vec<(G1Point, G2Point)> {
        match self {
            // Alpha has no point in G2.
            Self::Powers(PowersStep { in_g1, in_g2, .. }) => {
                let last = in_g1[in_g1.len() - 1];
                vec![(in_g1[0], in_g2[0]), (last, in_g2[1])]
            }
            Self::Segment { types, .. } => {
                let pairs = types.iter().flat_map(|kind| kind.in_g1.into_iter().zip(kind.in_g2));
                pairs.collect()
            }
        }
    }

    /// The digests of all sections of the chain.
    pub(crate) fn digests(&self) -> Vec<Digests> {
        match self {
            Self::Powers(step) => vec![step.digests],
            Self::Segment { types, .. } => types.iter().map(|kind| kind.digests).collect(),
        }
    }

    /// All points.
    pub(crate) fn has_identity(&self) -> bool {
        match self {
            Self::Powers(PowersStep { in_g1, in_g2, .. }) => {
                in_g1.iter().any(Group::is_identity) || in_g2.iter().any(Group::is_identity)
            }
            Self::Segment { types, ledger } => {
                let of_type = |kind: &TypeStep| {
                    kind.in_g1.iter().any(Group::is_identity)
                        || kind.in_g2.iter().any(Group::is_identity)
                };
                let of_ledger = |ledger: &LedgerStep| {
                    ledger.k.is_identity() || ledger.thetas.iter().any(Group::is_identity)
                };
                types.iter().any(of_type) || ledger.as_ref().is_some_and(of_ledger)
            }
        }
    }

    /// The state of a chain before the first record: all secrets are 1, or those of a file. There are no input sums.
    pub(crate) fn start(genesis: &Genesis, chain: Chain) -> Self {
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let digests = |new: [u8; 32]| Digests { received: [0; 32], new };
        match (&genesis.subject, chain) {
            (Subject::Powers(powers), chain) => {
                let [of_tau, of_phi] = powers.starts;
                let (in_g1, in_g2) = match (&powers.origin, chain) {
                    (Origin::Powers(earlier), Chain::Tau) => {
                        (earlier.tau.0.to_vec(), earlier.tau.1)
                    }
                    (Origin::Powers(earlier), _) => (earlier.phi.0.to_vec(), earlier.phi.1),
                    (Origin::File(import), Chain::Tau) => (import.in_g1.to_vec(), import.in_g2),
                    (_, Chain::Tau) => (vec![g; 3], [h; 2]),
                    _ => (vec![g; 2], [h; 2]),
                };
                let digests = digests(if chain == Chain::Tau { of_tau } else { of_phi });
                Self::Powers(PowersStep { in_g1, in_g2, digests })
            }
            (Subject::Family(family), Chain::Segment(number)) => {
                let sums = [G1Point::IDENTITY; 2];
                let kinds = &family.types[family.types_of(number)];
                let types = kinds.iter().map(|kind| TypeStep {
                    in_g1: [g; 2],
                    in_g2: [h; 2],
                    sums,
                    digests: digests(kind.start),
                });
                let has_ledger = number == 1 && family.extends.is_none();
                let ledger = has_ledger.then(|| LedgerStep { k: g, thetas: family.thetas.clone() });
                Self::Segment { types: types.collect(), ledger }
            }
            (Subject::Family(_), _) => unreachable!("a family has segments only"),
        }
    }

    /// Reports whether the single points of powers are those of another step.
    pub(crate) fn has_points_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Powers(own), Self::Powers(other)) => {
                (&own.in_g1, own.in_g2) == (&other.in_g1, other.in_g2)
            }
            _ => false,
        }
    }

    /// The number of secrets of a contribution.
    pub(crate) fn secrets(&self) -> usize {
        match self {
            Self::Powers(step) => step.in_g1.len(),
            Self::Segment { types, ledger } => 2 * types.len() + usize::from(ledger.is_some()),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        fn put<G: Group>(out: &mut Vec<u8>, points: &[G]) {
            points.iter().for_each(|point| out.extend(point.to_compressed()));
        }
        fn put_digests(out: &mut Vec<u8>, digests: &Digests) {
            out.extend_from_slice(&digests.received);
            out.extend_from_slice(&digests.new);
        }
        match self {
            Self::Powers(PowersStep { in_g1, in_g2, digests }) => {
                put(out, in_g1);
                put(out, in_g2);
                put_digests(out, digests);
            }
            Self::Segment { types, ledger } => {
                for TypeStep { in_g1, in_g2, sums, digests } in types {
                    put(out, in_g1);
                    put(out, in_g2);
                    put(out, sums);
                    put_digests(out, digests);
                }
                if let Some(LedgerStep { k, thetas }) = ledger {
                    put(out, &[*k]);
                    put(out, thetas);
                }
            }
        }
    }

    /// Reads a step with the numbers of points of `like`.
    fn decode(reader: &mut Reader<'_>, like: &Self) -> Result<Self, DecodeError> {
        fn fill<G: Group>(
            reader: &mut Reader<'_>,
            points: &mut [G],
            what: &'static str,
        ) -> Result<(), DecodeError> {
            points.iter_mut().try_for_each(|point| {
                *point = reader.point(what)?;
                Ok(())
            })
        }
        fn read_digests(reader: &mut Reader<'_>) -> Result<Digests, DecodeError> {
            Ok(Digests { received: reader.array("digest")?, new: reader.array("digest")? })
        }
        let mut step = like.clone();
        match &mut step {
            Self::Powers(PowersStep { in_g1, in_g2, digests }) => {
                fill(reader, in_g1, "point of a secret")?;
                fill(reader, in_g2, "point of a secret in G2")?;
                *digests = read_digests(reader)?;
            }
            Self::Segment { types, ledger } => {
                for TypeStep { in_g1, in_g2, sums, digests } in types {
                    fill(reader, in_g1, "delta or eta")?;
                    fill(reader, in_g2, "delta or eta in G2")?;
                    fill(reader, sums, "input sum")?;
                    *digests = read_digests(reader)?;
                }
                if let Some(LedgerStep { k, thetas }) = ledger {
                    fill(reader, std::slice::from_mut(k), "K")?;
                    fill(reader, thetas, "Theta")?;
                }
            }
        }
        Ok(step)
    }
}

/// A proof of knowledge of the secret x with X' = x X: a Schnorr signature of the record's body under the base X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The commitment k X.
    pub t: G1Point,
    /// The response k + c x.
    pub z: Fr,
}

/// The statement that a proof is about: the whole body, so that nothing in it can be changed afterwards.
fn statement(body: &[u8], number: usize, before: &G1Point, after: &G1Point) -> Vec<u8> {
    let mut out = (body.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(body);
    out.extend_from_slice(&(number as u64).to_le_bytes());
    out.extend(before.to_compressed());
    out.extend(after.to_compressed());
    out
}

fn challenge(statement: &[u8], t: &G1Point) -> Fr {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony proof");
    hasher.update(statement).update(&t.to_compressed());
    let mut bytes = [0; 64];
    hasher.finalize_xof().fill(&mut bytes);
    fr_from_uniform(&bytes)
}

impl Proof {
    /// Proves knowledge of a secret of a record with this body.
    pub(crate) fn new(
        seed: &Seed,
        body: &[u8],
        number: usize,
        [before, after]: [&G1Point; 2],
        secret: &Fr,
    ) -> Result<Self, getrandom::Error> {
        let statement = statement(body, number, before, after);
        let nonce = seed.nonce(&statement)?;
        let t = before.mul(&nonce);
        let z = *nonce + challenge(&statement, &t) * secret;
        Ok(Self { t, z })
    }

    /// The challenge of the proof for a secret.
    pub(crate) fn challenge(
        &self,
        body: &[u8],
        number: usize,
        before: &G1Point,
        after: &G1Point,
    ) -> Fr {
        challenge(&statement(body, number, before, after), &self.t)
    }

    pub(crate) fn holds(
        &self,
        body: &[u8],
        number: usize,
        before: &G1Point,
        after: &G1Point,
    ) -> bool {
        let c = self.challenge(body, number, before, after);
        before.mul(&self.z) == self.t.add(&after.mul(&c))
    }
}

/// A record of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The chain.
    pub chain: Chain,
    /// The place in the chain, counted from 0.
    pub place: u32,
    /// The head before the record.
    pub before: [u8; 32],
    /// The origin of the record.
    pub kind: Kind,
    /// The name that the contributor claims.
    pub name: String,
    /// The program that made it.
    pub program: String,
    /// The changes.
    pub step: Step,
    /// The proofs of knowledge, one for each secret.
    pub proofs: Vec<Proof>,
}

impl Record {
    /// The record without its proofs: what these sign.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut out = vec![self.chain.code()];
        out.extend_from_slice(&self.place.to_le_bytes());
        out.extend_from_slice(&self.before);
        out.push(match self.kind {
            Kind::Contribution => 1,
            Kind::Beacon { .. } => 2,
        });
        put_string(&mut out, &self.name);
        put_string(&mut out, &self.program);
        self.step.encode(&mut out);
        if let Kind::Beacon { value, exponent } = &self.kind {
            put_string(&mut out, &hex::encode(value));
            out.push(*exponent);
        }
        out
    }

    /// Returns the encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.body();
        for Proof { t, z } in &self.proofs {
            out.extend(t.to_compressed());
            out.extend_from_slice(&fr_to_bytes(z));
        }
        out
    }

    /// The head after the record.
    pub fn head(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony head");
        hasher.update(&self.before).update(&self.to_bytes());
        *hasher.finalize().as_bytes()
    }

    /// The digest of the encoding, which receipts name.
    pub fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.to_bytes()).as_bytes()
    }

    /// Decodes [`Self::to_bytes`]. All lengths follow from the genesis; points are in their groups.
    ///
    /// # Errors
    /// If the bytes are not a record of this chain.
    pub fn from_bytes(bytes: &[u8], genesis: &Genesis, chain: Chain) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.array("chain")? != [chain.code()] {
            return Err(reader.invalid("chain", 1, format!("expected chain {chain}")));
        }
        let place = reader.u32("place")?;
        let before = reader.array("head")?;
        let [kind] = reader.array("kind")?;
        let name = reader.string(MAX_NAME, "name")?;
        if !is_name(&name) {
            let why = "empty, or has invisible characters";
            return Err(reader.invalid("name", name.len(), why));
        }
        let program = reader.string(MAX_NAME, "program")?;
        let step = Step::decode(&mut reader, &Step::start(genesis, chain))?;
        let kind = match kind {
            1 => Kind::Contribution,
            2 => {
                let value = reader.string(MAX_VALUE, "value of a beacon")?;
                let [exponent] = reader.array("exponent of a beacon")?;
                let decoded = hex::decode(&value).ok().filter(|bytes| hex::encode(bytes) == value);
                match decoded.filter(|_| exponent <= MAX_EXPONENT) {
                    Some(value) => Kind::Beacon { value, exponent },
                    None => {
                        let why = "expected hexadecimal digits, and an exponent of at most 30";
                        return Err(reader.invalid("beacon", 1, why));
                    }
                }
            }
            other => return Err(reader.invalid("kind", 0, format!("{other}, expected 1 or 2"))),
        };
        let mut proofs = Vec::with_capacity(step.secrets());
        for _ in 0..step.secrets() {
            let t = reader.point("proof of knowledge")?;
            let z = reader.array("proof of knowledge")?;
            let z = fr_from_bytes(&z).map_err(|e| reader.invalid("proof of knowledge", 32, e))?;
            proofs.push(Proof { t, z });
        }
        reader.finish()?;
        Ok(Self { chain, place, before, kind, name, program, step, proofs })
    }

    /// The most bytes of a record of a chain.
    pub(crate) fn most_bytes(genesis: &Genesis, chain: Chain) -> usize {
        let record = Self::empty(genesis, chain);
        record.to_bytes().len() + 2 * MAX_NAME + 5 + MAX_VALUE + record.step.secrets() * 80
    }

    /// A record without a name, a program and proofs.
    pub(crate) fn empty(genesis: &Genesis, chain: Chain) -> Self {
        Self {
            chain,
            place: 0,
            before: [0; 32],
            kind: Kind::Contribution,
            name: String::new(),
            program: String::new(),
            step: Step::start(genesis, chain),
            proofs: Vec::new(),
        }
    }
}

/// The head of a chain before its first record.
pub fn first_head(genesis: &Genesis, chain: Chain) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony genesis");
    hasher.update(&genesis.digest()).update(&[chain.code()]);
    *hasher.finalize().as_bytes()
}
