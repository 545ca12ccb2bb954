//! Direct keys from the keys of a prover (spec: direct#key-checks).

use super::aggregation::BusParts;
use super::prover_keys::ProverKeys;
use super::sections::KeyFileError;
use crate::pool::LocalEngine;
use crate::verifier::direct::key::{DirectInstance, DirectType, instances_of};
use crate::verifier::direct::{DirectKey, DirectKeyError};
use hekaton_arith::{Fr, G1Point, G2Point, Group, pairing};

/// The error of making a direct key from the keys of a prover.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The keys fail a check, or are for too many subcircuits.
    #[error(transparent)]
    Direct(#[from] DirectKeyError),
    /// The operating system returns no randomness.
    #[error("no randomness from the operating system: {0}")]
    Randomness(getrandom::Error),
}

impl From<getrandom::Error> for ExportError {
    fn from(error: getrandom::Error) -> Self {
        Self::Randomness(error)
    }
}

impl ProverKeys {
    /// Makes the direct key of these keys (spec: direct#key). Checks that all points are in their groups,
    /// and that the verifying key commits to them.
    ///
    /// # Errors
    /// When a check fails, or there are more than [`DirectKey::MAX_INSTANCES`] subcircuits.
    pub fn direct_key(&self, pool: &LocalEngine) -> Result<DirectKey, ExportError> {
        let (key, vk) = (&self.aggregation, &self.verifying);
        let unusable = |why: &str| Err(DirectKeyError::Unusable(why.to_owned()).into());
        instances_of(vk)?;
        // Any proving key has alpha and beta; e(alpha, beta) is compared below.
        let Some(first) = self.types.first() else {
            return unusable("the keys have no proving key");
        };
        let elements = first.elements();
        let mut randomness = Randoms::new()?;
        if !self.are_in_groups(&mut randomness, elements.alpha_1, elements.beta_2)? {
            return unusable("a point is not in its group");
        }
        if !self.has_powers(&mut randomness)? {
            return unusable("the powers of phi and psi are not those of the verifying key");
        }
        if key.commitments(pool)? != vk.commitments() {
            return unusable(
                "the verifying key does not commit to the elements of the aggregation key",
            );
        }
        let buses = key.buses()?;
        let types = (key.elements()?.iter().zip(key.sg()?).enumerate())
            .map(|(kind, (elements, sg))| DirectType {
                elements: *elements,
                sg: *sg,
                st: buses.map(|buses| buses.tags[kind]),
            })
            .collect();
        let parts = (key.st()?.iter().zip(key.sb()?).enumerate())
            .map(|(i, (st, sb))| DirectInstance {
                st: *st,
                sb: *sb,
                sv: buses.map(|buses| buses.values[i]),
            })
            .collect();
        let direct = DirectKey {
            verifying: vk.clone(),
            digest: [0; 32],
            alpha: elements.alpha_1,
            beta: elements.beta_2,
            gamma: *key.gamma()?,
            type_of: key.type_of()?.to_vec(),
            types,
            parts,
        };
        Ok(direct.checked()?)
    }

    /// Reports whether all points of the aggregation key are in their groups, and these two.
    fn are_in_groups(
        &self,
        randomness: &mut Randoms,
        alpha: G1Point,
        beta: G2Point,
    ) -> Result<bool, KeyFileError> {
        let key = &self.aggregation;
        let mut g1 = [&[alpha][..], key.phi()?, key.st()?, key.sb()?, key.sg()?].concat();
        if let Some(BusParts { tags, values }) = key.buses()? {
            g1.extend([tags, values].concat());
        }
        let g2 = [&[beta, *key.gamma()?], key.psi()?, key.elements()?.as_flattened()].concat();
        let mut random = || randomness.next();
        Ok(G1Point::find_outside(&g1, &mut random).is_none()
            && G2Point::find_outside(&g2, &mut random).is_none())
    }

    /// Reports whether `[phi^i]_1` and `[psi^i]_2` are the powers of the verifying key's phi and psi
    /// (spec: aggregation#srs): otherwise its commitments would bind nothing.
    fn has_powers(&self, randomness: &mut Randoms) -> Result<bool, KeyFileError> {
        let (phi, psi, vk) = (self.aggregation.phi()?, self.aggregation.psi()?, &self.verifying);
        let (g, h) = (G1Point::generator(), G2Point::generator());
        // Shifting a vector of powers by one place multiplies a combination of them by phi or psi.
        let n = phi.len() - 1;
        let factors: Vec<Fr> = (0..n).map(|_| Fr::from(randomness.next())).collect();
        let low_phi = G1Point::msm(&phi[..n], &factors);
        let high_phi = G1Point::msm(&phi[1..], &factors);
        let low_psi = G2Point::msm(&psi[..n], &factors);
        let high_psi = G2Point::msm(&psi[1..], &factors);
        Ok(phi[0] == g
            && psi[0] == h
            && pairing(&high_phi, &h) == pairing(&low_phi, &vk.phi_2)
            && pairing(&g, &high_psi) == pairing(&vk.psi_1, &low_psi))
    }
}

/// Random words that the maker of the keys could not know.
struct Randoms(blake3::OutputReader);

impl Randoms {
    fn new() -> Result<Self, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        Ok(Self(blake3::Hasher::new_keyed(&seed).finalize_xof()))
    }

    fn next(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}
