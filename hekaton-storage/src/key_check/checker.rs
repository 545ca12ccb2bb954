//! Checks of points and pairing equations, with randomness that the maker of the keys could not know.

use super::relation::Relation;
use super::report::{KeyCheckError, KeyCheckReport};
use ark_ff::Zero;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop, Scalars};
use hekaton_core::LocalEngine;
use hekaton_core::mirage::SparseQuery;

/// The smallest part of a list for a thread: a multi-scalar multiplication over fewer points costs more per
/// point.
const LEAST: usize = 1 << 15;

/// Checks one key and counts the checks.
pub(super) struct Checker<'p> {
    pub(super) pool: &'p LocalEngine,
    pub(super) report: KeyCheckReport,
    /// The name of the key, for errors.
    pub(super) key: String,
    /// A relation that is not checked. Tests use it to show the forgery that the relation prevents.
    pub(super) without: Option<Relation>,
}

/// Random scalars of 64 bits with both signs, drawn when the keys exist, so that their maker could not know
/// them. Short ones cost a quarter of full-size ones, and each value has probability 2^-64.
pub(super) fn randoms(n: usize) -> Result<Vec<Fr>, getrandom::Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let mut stream = blake3::Hasher::new_keyed(&seed).finalize_xof();
    let draw = || {
        let mut bytes = [0; 8];
        stream.fill(&mut bytes);
        let bits = u64::from_le_bytes(bytes);
        // The arithmetic is fastest with absolute values of at most 63 bits. The 1 keeps zero out, which
        // would leave a point out of the combination.
        let value = Fr::from((bits >> 1) + 1);
        if bits & 1 == 0 { value } else { -value }
    };
    Ok(std::iter::repeat_with(draw).take(n).collect())
}

/// A random scalar.
pub(super) fn random() -> Result<Fr, getrandom::Error> {
    Ok(randoms(1)?.remove(0))
}

impl<'p> Checker<'p> {
    pub(super) fn new(
        pool: &'p LocalEngine,
        key: impl ToString,
        without: Option<Relation>,
    ) -> Self {
        Self { pool, report: KeyCheckReport::default(), key: key.to_string(), without }
    }

    /// Adds the counts of another checker.
    pub(super) fn add(&mut self, report: KeyCheckReport) {
        self.report.points += report.points;
        self.report.relations += report.relations;
        self.report.not_covered.extend(report.not_covered);
        self.report.only_provers.extend(report.only_provers);
    }

    /// Counts a relation, or returns it as an error if it does not hold.
    pub(super) fn relation(
        &mut self,
        relation: Relation,
        holds: bool,
    ) -> Result<(), KeyCheckError> {
        if self.without == Some(relation) {
            return Ok(());
        }
        if !holds {
            return Err(KeyCheckError::Relation { key: self.key.clone(), relation });
        }
        self.report.relations += 1;
        Ok(())
    }

    /// Checks that `sum e(a_i, b_i) = sum e(c_i, d_i)`.
    pub(super) fn equal(
        &mut self,
        relation: Relation,
        left: &[(G1Point, G2Point)],
        right: &[(G1Point, G2Point)],
    ) -> Result<(), KeyCheckError> {
        let negated: Vec<(G1Point, G2Point)> = right.iter().map(|(a, b)| (a.neg(), *b)).collect();
        let pairs = left.iter().chain(&negated).map(|(a, b)| (a, b));
        self.relation(relation, MillerLoop::of_pairs(pairs).finish().is_identity())
    }

    /// Checks that all points of a section are reduced and in the subgroup.
    pub(super) fn points<G: Group>(
        &mut self,
        section: &'static str,
        points: &[G],
    ) -> Result<(), KeyCheckError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        // Parts large enough for batched checks to pay off, and small enough for threads to end together.
        // Each part has a stream of its own, so the outcome does not depend on the number of threads.
        let size = self.part(points.len()).min(1 << 19);
        let parts: Vec<(usize, &[G])> =
            (0..points.len()).step_by(size).map(|p| (p, &points[p..])).collect();
        let found = self.pool.map(parts, |(start, rest)| {
            let mut stream =
                blake3::Hasher::new_keyed(&seed).update(&start.to_le_bytes()).finalize_xof();
            let mut random = || {
                let mut bytes = [0; 8];
                stream.fill(&mut bytes);
                u64::from_le_bytes(bytes)
            };
            let part = &rest[..size.min(rest.len())];
            G::find_outside(part, &mut random).map(|at| start + at)
        });
        if let Some(index) = found.into_iter().flatten().next() {
            return Err(KeyCheckError::Point { key: self.key.clone(), section, index });
        }
        self.report.points += points.len() as u64;
        Ok(())
    }

    /// Checks that all points of a section are reduced and on the curve.
    pub(super) fn find_off_curve<G: Group>(
        &self,
        section: &'static str,
        points: &[G],
    ) -> Result<(), KeyCheckError> {
        let size = self.part(points.len());
        let parts = points.chunks(size).enumerate().collect();
        let found = self.pool.map(parts, |(part, points): (usize, &[G])| {
            G::find_off_curve(points).map(|at| part * size + at)
        });
        match found.into_iter().flatten().next() {
            Some(index) => Err(KeyCheckError::Point { key: self.key.clone(), section, index }),
            None => Ok(()),
        }
    }

    /// Checks that the only points of a section at infinity are those for which `may_be` holds.
    pub(super) fn proper<G: Group>(
        &mut self,
        section: &'static str,
        points: &[G],
        may_be: impl Fn(usize) -> bool,
    ) -> Result<(), KeyCheckError> {
        let at = (0..points.len()).find(|i| points[*i].is_identity() && !may_be(*i));
        match at {
            Some(index) if self.without != Some(Relation::Infinity) => {
                Err(KeyCheckError::Infinity { key: self.key.clone(), section, index })
            }
            _ => self.relation(Relation::Infinity, true),
        }
    }

    /// The number of elements that one thread takes of a long list.
    fn part(&self, len: usize) -> usize {
        len.div_ceil(self.pool.threads()).max(LEAST)
    }

    /// Computes `sum scalars_i points_i` on all threads.
    pub(super) fn msm<G: Group>(&self, points: &[G], scalars: &[Fr]) -> G {
        let size = self.part(points.len());
        let parts: Vec<_> = points.chunks(size).zip(scalars.chunks(size)).collect();
        G::sum(&self.pool.map(parts, |(points, scalars)| G::msm(points, scalars)))
    }

    /// Computes `sum z_j Q_j` over the variables of a query that are in a range, on all threads.
    pub(super) fn sum<G: Group>(
        &self,
        query: &SparseQuery<'_, G>,
        range: std::ops::Range<usize>,
        z: &[Fr],
    ) -> G {
        let place = |variable: usize| query.variables.partition_point(|v| (*v as usize) < variable);
        let (start, end) = (place(range.start), place(range.end));
        let (variables, points) = (&query.variables[start..end], &query.points[start..end]);
        let size = self.part(points.len());
        let parts: Vec<_> = variables.chunks(size).zip(points.chunks(size)).collect();
        G::sum(&self.pool.map(parts, |(variables, points)| {
            G::msm_prepared(points, &Scalars::select(z, variables))
        }))
    }
}

/// The point of a query for a variable; infinity if it has none.
pub(super) fn point_of<G: Group>(query: &SparseQuery<'_, G>, variable: usize) -> G {
    let found = query.variables.binary_search_by(|v| (*v as usize).cmp(&variable));
    found.map_or(G::IDENTITY, |at| query.points[at])
}

/// A vector over all variables that is zero but at these.
pub(super) fn sparse(len: usize, values: impl IntoIterator<Item = (usize, Fr)>) -> Vec<Fr> {
    let mut out = vec![Fr::zero(); len];
    for (variable, value) in values {
        out[variable] += value;
    }
    out
}
