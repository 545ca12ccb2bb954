//! The aggregation key: the structured reference string, and each type's and instance's fixed elements (PROTOCOL,
//! section 4).

use super::sections::{KeyFileError, Sections};
use crate::mirage::MirageVerifier;
use crate::transcript::MemoryChallenges;
use crate::verifying_key::VerifyingKey;
use hekaton_arith::{G1Point, G2Point, Group};

/// The aggregation key. 576 N bytes for the powers (N the next power of two of n) and 196 bytes an instance.
#[derive(Debug)]
pub struct AggregationKey {
    sections: Sections,
    instances: usize,
    types: usize,
}

impl AggregationKey {
    /// The kind of key file.
    pub(crate) const KIND: &'static str = "aggregation key";

    pub(crate) fn new(sections: Sections, instances: usize, types: usize) -> Result<Self, KeyFileError> {
        let key = Self { sections, instances, types };
        let powers = 2 * instances.next_power_of_two() - 1;
        let lengths = [
            ("phi", key.phi()?.len(), powers),
            ("psi", key.psi()?.len(), powers),
            ("st", key.st()?.len(), instances),
            ("sb", key.sb()?.len(), instances),
            ("type_of", key.type_of()?.len(), instances),
            ("sg", key.sg()?.len(), types),
            ("gamma", key.sections.get::<G2Point>("gamma")?.len(), 1),
            ("elements", key.sections.get::<[G2Point; 3]>("elements")?.len(), types),
        ];
        for (section, found, expected) in lengths {
            if found != expected {
                return Err(key.sections.damaged(section, format!("{found} elements, expected {expected}")));
            }
        }
        if key.type_of()?.iter().any(|kind| *kind as usize >= types) {
            return Err(key.sections.damaged("type_of", "a type out of range".into()));
        }
        Ok(key)
    }

    /// n.
    pub fn instances(&self) -> usize {
        self.instances
    }

    /// k.
    pub fn types(&self) -> usize {
        self.types
    }

    /// Bytes of all sections.
    pub fn bytes(&self) -> u64 {
        self.sections.bytes()
    }

    pub(crate) fn sections(&self) -> &Sections {
        &self.sections
    }

    /// `[phi^i]_1`, i = 0..2N-2.
    pub(crate) fn phi(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("phi")
    }

    /// `[psi^i]_2`, i = 0..2N-2.
    pub(crate) fn psi(&self) -> Result<&[G2Point], KeyFileError> {
        self.sections.get("psi")
    }

    /// St_i, the part of S_i without challenges.
    pub(crate) fn st(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("st")
    }

    /// Sb_i, the part that is multiplied by b.
    pub(crate) fn sb(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("sb")
    }

    /// Sg of each type, the part that is multiplied by g.
    pub(crate) fn sg(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("sg")
    }

    /// The type of each instance.
    pub(crate) fn type_of(&self) -> Result<&[u32], KeyFileError> {
        self.sections.get("type_of")
    }

    /// gamma.
    pub(crate) fn gamma(&self) -> Result<&G2Point, KeyFileError> {
        self.sections.one("gamma")
    }

    /// delta, eta, Theta of each type.
    pub(crate) fn elements(&self) -> Result<&[[G2Point; 3]], KeyFileError> {
        self.sections.get("elements")
    }

    /// `S_i = St_i + g Sg_c + b Sb_i`.
    pub(crate) fn s(&self, memory: &MemoryChallenges) -> Result<Vec<G1Point>, KeyFileError> {
        let by_type = G1Point::mul_all(self.sg()?, &memory.g);
        let mut out = G1Point::mul_all(self.sb()?, &memory.b);
        G1Point::batch_add(&mut out, self.st()?);
        let sg: Vec<G1Point> = self.type_of()?.iter().map(|kind| by_type[*kind as usize]).collect();
        G1Point::batch_add(&mut out, &sg);
        Ok(out)
    }

    /// The verifier of single proofs.
    pub(crate) fn mirage_verifier(&self, vk: &VerifyingKey) -> Result<MirageVerifier, KeyFileError> {
        Ok(MirageVerifier {
            alpha_beta: vk.alpha_beta,
            k: vk.k,
            gamma: *self.gamma()?,
            types: self.elements()?.to_vec(),
        })
    }
}

#[cfg(test)]
impl AggregationKey {
    pub(crate) fn sections_mut(&mut self) -> &mut Sections {
        &mut self.sections
    }

    /// Test double: a prover with a delta of its own making.
    pub(crate) fn replace_delta_for_test(&mut self, kind: usize, change: impl Fn(&G2Point) -> G2Point) {
        let mut elements = self.elements().expect("a key has elements").to_vec();
        elements[kind][0] = change(&elements[kind][0]);
        self.sections.replace("elements", elements);
    }
}
