//! The aggregation key and the commitments of the verifying key to it.

use super::checker::{Checker, randoms};
use super::public::PublicSums;
use super::relation::Relation;
use super::report::KeyCheckError;
use super::shared::Shared;
use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_circuit::Masking;
use hekaton_circuit::prover::Wiring;
use hekaton_core::ProverKeys;
use std::collections::HashSet;

impl Checker<'_> {
    /// Checks the points of the aggregation key.
    pub(super) fn aggregation_points(&mut self, keys: &ProverKeys) -> Result<(), KeyCheckError> {
        let key = &keys.aggregation;
        let mut lists =
            vec![("phi", key.phi()?), ("st", key.st()?), ("sb", key.sb()?), ("sg", key.sg()?)];
        if let Some(buses) = key.buses()? {
            lists.extend([("stag", buses.tags), ("sv", buses.values)]);
        }
        for (section, points) in lists {
            self.points(section, points)?;
        }
        self.points("psi", key.psi()?)?;
        self.points("gamma", std::slice::from_ref(key.gamma()?))?;
        self.points("elements", key.elements()?.as_flattened())
    }

    /// Checks that `[phi^i]_1` and `[psi^i]_2` are powers of the phi and psi of the verifying key
    /// (spec: aggregation#srs).
    pub(super) fn powers(&mut self, keys: &Shared<'_>) -> Result<(), KeyCheckError> {
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let (phi, psi) = (keys.phi, keys.psi);
        self.relation(Relation::Generators, phi[0] == g && psi[0] == h)?;
        // One random combination each: shifting the vector by one place multiplies it by phi or
        // psi.
        let r = randoms(phi.len() - 1)?;
        let (low, high) = (self.msm(&phi[..r.len()], &r), self.msm(&phi[1..], &r));
        self.equal(Relation::Phi, &[(high, h)], &[(low, keys.phi_2)])?;
        let (low, high) = (self.msm(&psi[..r.len()], &r), self.msm(&psi[1..], &r));
        self.equal(Relation::Psi, &[(g, high)], &[(keys.psi_1, low)])
    }

    /// Checks that the verifying key commits to the elements of the aggregation key
    /// (spec: aggregation#commitments, verifier#key).
    pub(super) fn commitments(&mut self, keys: &ProverKeys) -> Result<(), KeyCheckError> {
        let (key, expected) = (&keys.aggregation, keys.verifying.commitments());
        let type_of = key.type_of()?.to_vec();
        // Only the map of types is compared, which masks do not change.
        let wiring = Wiring { type_of, ..Wiring::empty(Masking::Unmasked) };
        self.relation(Relation::TypeMap, wiring.type_map_digest() == keys.verifying.type_map)?;
        let found = key.commitments(self.pool)?;
        self.relation(Relation::Buses, found.buses.is_some() == expected.buses.is_some())?;
        if let (Some(found), Some(expected)) = (found.buses, expected.buses) {
            self.relation(Relation::CmTags, found[0] == expected[0])?;
            self.relation(Relation::CmValues, found[1] == expected[1])?;
        }
        let commitments = [
            (Relation::CmSt, found.st, expected.st),
            (Relation::CmSg, found.sg, expected.sg),
            (Relation::CmSb, found.sb, expected.sb),
            (Relation::CmGamma, found.gamma, expected.gamma),
            (Relation::CmDelta, found.delta, expected.delta),
            (Relation::CmEta, found.eta, expected.eta),
            (Relation::CmTheta, found.theta, expected.theta),
        ];
        for (relation, found, expected) in commitments {
            self.relation(relation, found == expected)?;
        }
        Ok(())
    }

    /// Checks that the elements of types differ, and that none is zero. The readers of keys check that K, psi
    /// and phi are neither zero nor the generators, and that e(alpha, beta) is not 1.
    pub(super) fn distinct(&mut self, keys: &Shared<'_>) -> Result<(), KeyCheckError> {
        // If two of delta, eta and gamma were equal, over all types, anyone could forge proofs
        // (spec: mirage#asserts).
        let own = keys.elements.iter().flat_map(|[delta, eta, _]| [delta, eta]);
        let mut seen = HashSet::new();
        let distinct = own.chain([keys.gamma]).all(|point| seen.insert(point.to_compressed()));
        let zero = keys.elements.iter().flatten().chain([keys.gamma]).any(Group::is_identity);
        self.relation(Relation::Distinct, distinct && !zero)
    }

    /// Checks that keys have the shape of a layout, so that sums over it are those of their instances.
    pub(super) fn same_layout(
        &mut self,
        keys: &ProverKeys,
        wiring: &Wiring,
    ) -> Result<(), KeyCheckError> {
        let of_layout = wiring.types.iter().map(|kind| {
            (
                kind.name.as_str(),
                kind.slots,
                (kind.parameters, kind.pairs, !wiring.buses.is_empty()),
            )
        });
        let of_keys = keys.types.iter().map(|key| {
            let shape = key.layout().shape();
            (key.name(), key.slots(), (shape.parameters, shape.pairs, shape.buses))
        });
        let same = of_layout.eq(of_keys)
            && keys.aggregation.type_of()? == wiring.type_of
            && keys.aggregation.buses()?.is_some() != wiring.buses.is_empty();
        // Also if a test leaves this relation out, since the sums below would be cut to the shorter list.
        match same {
            true => self.relation(Relation::Layout, true),
            false => {
                let (key, relation) = (self.key.clone(), Relation::Layout);
                Err(KeyCheckError::Relation { key, relation })
            }
        }
    }

    /// Computes a random combination of the public sums of each type's instances, and of the points of which
    /// they should consist.
    pub(super) fn public_sums(
        &mut self,
        keys: &ProverKeys,
        wiring: &Wiring,
    ) -> Result<Vec<PublicSums>, KeyCheckError> {
        let r = randoms(wiring.instances())?;
        let mut out: Vec<PublicSums> =
            keys.types.iter().map(|key| PublicSums::new(key.layout())).collect();
        for (i, (kind, slots, constants)) in wiring.preprocessed_by_instance().enumerate() {
            out[kind as usize].add(i, r[i], slots, &constants);
        }
        Ok(out)
    }
}
