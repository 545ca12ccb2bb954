//! The aggregation key: the structured reference string, and the fixed elements of each type and
//! instance (spec: aggregation#srs, memory-check#preprocessed).

use super::sections::{KeyFileError, Sections};
use crate::mirage::MirageVerifier;
use crate::pool::LocalEngine;
use crate::verifier::verifying_key::{Commitments, VerifyingKey};
use hekaton_arith::{G1Point, G2Point, Group, Gt, MillerLoop, pairing};
use hekaton_circuit::MemoryChallenges;

/// The aggregation key: 576 N bytes of powers, where N is n rounded up to a power of two, and 196
/// bytes per instance.
#[derive(Debug)]
pub struct AggregationKey {
    sections: Sections,
    instances: usize,
    types: usize,
}

/// The parts of the public sums S_i that only circuits with buses have (spec: buses#preprocessed).
#[derive(Clone, Copy, Debug)]
pub struct BusParts<'a> {
    /// ST for each type, the part that b_T multiplies.
    pub tags: &'a [G1Point],
    /// SV for each instance, the part that b_V multiplies.
    pub values: &'a [G1Point],
}

impl AggregationKey {
    /// The kind of key file.
    pub const KIND: &'static str = "aggregation key";
    /// The names of all sections; those of buses are the last two.
    const SECTIONS: [&'static str; 10] =
        ["phi", "psi", "st", "sb", "sg", "type_of", "gamma", "elements", "stag", "sv"];

    /// Creates a key from its sections, for `instances` subcircuits of `types` types.
    ///
    /// # Errors
    /// When a section is missing, has the wrong length, or refers to a type out of range.
    pub fn new(sections: Sections, instances: usize, types: usize) -> Result<Self, KeyFileError> {
        sections.expect_only(&Self::SECTIONS)?;
        let key = Self { sections, instances, types };
        let powers = 2 * instances.next_power_of_two() - 1;
        // All lengths are fixed by n and k of the verifying key, so that no phase can index out of
        // bounds.
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
        let mut expectations = lengths.to_vec();
        if let Some(buses) = key.buses()? {
            expectations.push(("stag", buses.tags.len(), types));
            expectations.push(("sv", buses.values.len(), instances));
        }
        for (section, found, expected) in expectations {
            if found != expected {
                return Err(key
                    .sections
                    .damaged(section, format!("{found} elements, expected {expected}")));
            }
        }
        // The phases index the elements by these.
        if key.type_of()?.iter().any(|kind| *kind as usize >= types) {
            return Err(key.sections.damaged("type_of", "a type is out of range".into()));
        }
        check_elements(&key.sections)?;
        Ok(key)
    }

    /// Returns the number of subcircuits, n.
    pub fn instances(&self) -> usize {
        self.instances
    }

    /// Returns the number of subcircuit types, k.
    pub fn types(&self) -> usize {
        self.types
    }

    /// Returns the total length of all sections in bytes.
    pub fn bytes(&self) -> u64 {
        self.sections.bytes()
    }

    /// Returns the sections of the key file.
    pub fn sections(&self) -> &Sections {
        &self.sections
    }

    /// Returns the powers `[phi^i]_1` for i = 0..=2N-2.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn phi(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("phi")
    }

    /// Returns the powers `[psi^i]_2` for i = 0..=2N-2.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn psi(&self) -> Result<&[G2Point], KeyFileError> {
        self.sections.get("psi")
    }

    /// Returns St_i for each instance, the part of S_i that no challenge multiplies.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn st(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("st")
    }

    /// Returns Sb_i for each instance, the part of S_i that b multiplies.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn sb(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("sb")
    }

    /// Returns Sg for each type, the part of S_i that g multiplies.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn sg(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("sg")
    }

    /// Returns the parts of S_i that b_T and b_V multiply; `None` for circuits without buses.
    ///
    /// # Errors
    /// When only one of the two sections is there, or one is damaged.
    pub fn buses(&self) -> Result<Option<BusParts<'_>>, KeyFileError> {
        // A key has types and instances, so its sections are not empty.
        if self.sections.bytes_of("stag") == 0 && self.sections.bytes_of("sv") == 0 {
            return Ok(None);
        }
        Ok(Some(BusParts { tags: self.sections.get("stag")?, values: self.sections.get("sv")? }))
    }

    /// Returns the type of each instance.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn type_of(&self) -> Result<&[u32], KeyFileError> {
        self.sections.get("type_of")
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

    /// Computes `S_i = St_i + g Sg_c + b Sb_i`, in circuits with buses plus `b_T ST_c + b_V SV_i`, for
    /// each instance of type c (spec: memory-check#preprocessed, buses#preprocessed).
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn s(&self, memory: &MemoryChallenges) -> Result<Vec<G1Point>, KeyFileError> {
        // g multiplies one point per type, not one per instance.
        let mut by_type = G1Point::mul_all(self.sg()?, &memory.g);
        let mut out = G1Point::mul_all(self.sb()?, &memory.b);
        G1Point::batch_add(&mut out, self.st()?);
        if let Some(BusParts { tags, values }) = self.buses()? {
            G1Point::batch_add(&mut by_type, &G1Point::mul_all(tags, &memory.b_t));
            G1Point::batch_add(&mut out, &G1Point::mul_all(values, &memory.b_v));
        }
        let sg: Vec<G1Point> = self.type_of()?.iter().map(|kind| by_type[*kind as usize]).collect();
        G1Point::batch_add(&mut out, &sg);
        Ok(out)
    }

    /// Computes the commitments of a verifying key to the elements of this key
    /// (spec: aggregation#commitments), on the pool's threads.
    ///
    /// # Errors
    /// When a section is missing or damaged.
    pub fn commitments(&self, pool: &LocalEngine) -> Result<Commitments, KeyFileError> {
        let (phi, psi, n, type_of) = (self.phi()?, self.psi()?, self.instances, self.type_of()?);
        let v: Vec<G2Point> = psi.iter().step_by(2).take(n).copied().collect();
        let w: Vec<G1Point> = phi.iter().step_by(2).take(n).copied().collect();
        let part = n.div_ceil(pool.threads()).max(1);
        let commit = |x: &[G1Point]| -> Gt {
            let parts: Vec<_> = x.chunks(part).zip(v.chunks(part)).collect();
            MillerLoop::product(pool.map(parts, |(x, v)| MillerLoop::new(x, v))).finish()
        };
        // An element that all instances of a type share is paired once, with the sum of their
        // commitment keys.
        let mut of_type = vec![(Vec::new(), Vec::new()); self.types];
        for (kind, (w, v)) in type_of.iter().zip(w.iter().zip(&v)) {
            of_type[*kind as usize].0.push(*w);
            of_type[*kind as usize].1.push(*v);
        }
        let sums = of_type.iter().map(|(w, v)| (G1Point::sum(w), G2Point::sum(v)));
        let (w_sums, v_sums): (Vec<G1Point>, Vec<G2Point>) = sums.unzip();
        let commit_types = |points: &[G1Point]| MillerLoop::new(points, &v_sums).finish();
        let elements = self.elements()?;
        let element = |j: usize| {
            let column: Vec<G2Point> = elements.iter().map(|e| e[j]).collect();
            MillerLoop::new(&w_sums, &column).finish()
        };
        let buses = self.buses()?;
        Ok(Commitments {
            st: commit(self.st()?),
            sg: commit_types(self.sg()?),
            sb: commit(self.sb()?),
            buses: buses.map(|buses| [commit_types(buses.tags), commit(buses.values)]),
            gamma: pairing(&G1Point::sum(&w), self.gamma()?),
            delta: element(0),
            eta: element(1),
            theta: element(2),
        })
    }

    /// Returns the verifier of single proofs.
    ///
    /// # Errors
    /// When the section is missing or damaged.
    pub fn mirage_verifier(&self, vk: &VerifyingKey) -> Result<MirageVerifier, KeyFileError> {
        Ok(MirageVerifier {
            alpha_beta: vk.alpha_beta,
            k: vk.k,
            gamma: *self.gamma()?,
            types: self.elements()?.to_vec(),
        })
    }
}

/// Checks that gamma and the delta, eta and Theta of all types are not zero, and that gamma and all
/// delta and eta are distinct: a proof under keys with two equal ones can be forged by anyone
/// (spec: mirage#asserts). This compares bytes; points are not checked.
pub(crate) fn check_elements(sections: &Sections) -> Result<(), KeyFileError> {
    let gamma: &G2Point = sections.one("gamma")?;
    let elements: &[[G2Point; 3]] = sections.get("elements")?;
    if gamma.is_identity() {
        return Err(sections.damaged("gamma", "the point at infinity".into()));
    }
    if elements.iter().flatten().any(Group::is_identity) {
        return Err(sections.damaged("elements", "a point at infinity".into()));
    }
    let own = elements.iter().flat_map(|[delta, eta, _]| [delta, eta]);
    // A delta or eta that nobody has contributed to (spec: ceremony#records).
    if own.clone().any(|point| *point == G2Point::generator()) {
        let why = "a delta or eta is 1: anybody could forge proofs under such keys";
        return Err(sections.damaged("elements", why.into()));
    }
    let mut seen = std::collections::HashSet::new();
    match own.chain([gamma]).all(|point| seen.insert(bytemuck::bytes_of(point))) {
        true => Ok(()),
        false => {
            let why = "gamma, delta and eta of all types are not distinct: anybody could forge \
                       proofs under such keys";
            Err(sections.damaged("elements", why.into()))
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl AggregationKey {
    /// Test double: access to the sections, to replace their contents.
    pub fn sections_mut(&mut self) -> &mut Sections {
        &mut self.sections
    }

    /// Test double: a prover with a delta of its own choice.
    #[cfg(test)]
    pub(crate) fn replace_delta_for_test(
        &mut self,
        kind: usize,
        change: impl Fn(&G2Point) -> G2Point,
    ) {
        let mut elements = self.elements().expect("a key has elements").to_vec();
        elements[kind][0] = change(&elements[kind][0]);
        self.sections.replace("elements", elements);
    }
}
