//! A thorough check of keys from elsewhere: group membership of every point, and every pairing
//! relation that can be checked without the trapdoors (spec: soundness#keys-verify).
//!
//! Opening keys checks digests, that is, that the files are as they were written. This check shows
//! that what was written can be keys. A relation between vectors is checked by one random
//! combination, which a false relation passes with probability at most 2^-64.
//!
//! Limits: the powers of tau are not published. That the queries hold the columns of *this* circuit
//! is therefore checked through HQ for B and C, through LQ and DQ for A where the C column is zero,
//! and not at all for the rest.

use ark_ff::Zero;
use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, MillerLoop, Scalars, pairing};
use hekaton_circuit::Masking;
use hekaton_circuit::prover::Wiring;
use hekaton_core::keys::KeyFileError;
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{FamilyKey, Pool, ProverKeys};

/// Why keys are rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyCheckError {
    /// A section cannot be read.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A point is not in its group.
    #[error("{key}, section '{section}': point {index} is not a reduced point of the subgroup")]
    Point {
        /// The key.
        key: String,
        /// The section of the key.
        section: &'static str,
        /// The index of the first bad point.
        index: usize,
    },
    /// A relation does not hold.
    #[error("{key}: '{relation}' does not hold: these keys do not come from an honest setup")]
    Relation {
        /// The key.
        key: String,
        /// The relation.
        relation: String,
    },
    /// The operating system provides no randomness.
    #[error("the operating system provides no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// The extent of a successful check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCheckReport {
    /// The number of points whose group membership was checked.
    pub points: u64,
    /// The number of relations that were checked.
    pub relations: u64,
}

/// Checks all points and relations of keys. `step` receives the name of each step before it starts.
///
/// # Errors
/// The first point or relation that is wrong.
pub fn check_keys(
    keys: &ProverKeys,
    pool: &impl Pool,
    mut step: impl FnMut(&str),
) -> Result<KeyCheckReport, KeyCheckError> {
    let mut check = Checker { pool, report: KeyCheckReport::default(), key: String::new() };
    step("aggregation key: points");
    check.aggregation_points(keys)?;
    let (key, vk) = (&keys.aggregation, keys.verifying.fixed_elements());
    let shared = Shared {
        phi: key.phi()?,
        psi: key.psi()?,
        gamma: key.gamma()?,
        elements: key.elements()?,
        alpha_beta: vk.alpha_beta,
        k: vk.k,
        psi_1: vk.psi_1,
        phi_2: vk.phi_2,
        types: &keys.types,
    };
    step("aggregation key: powers");
    check.powers(&shared)?;
    step("aggregation key: commitments of the verifying key");
    check.commitments(keys)?;
    check.distinct(&shared)?;
    step("types: points and relations");
    check.types(&shared, |_, _, _| Ok(()))?;
    Ok(check.report)
}

/// Checks all points and relations of the keys of a family, whose proving keys are `types`. `step`
/// receives the name of each step before it starts.
///
/// # Errors
/// The first point or relation that is wrong.
pub fn check_family(
    family: &FamilyKey,
    types: &[ProvingKey],
    pool: &impl Pool,
    mut step: impl FnMut(&str),
) -> Result<KeyCheckReport, KeyCheckError> {
    let name = "family key";
    let report = KeyCheckReport::default();
    let mut check = Checker { pool, report, key: name.to_owned() };
    step("family key: points");
    let points = family.header().shared_points();
    let shared = Shared {
        phi: family.phi()?,
        psi: family.psi()?,
        gamma: family.gamma()?,
        elements: family.elements()?,
        alpha_beta: points.alpha_beta,
        k: points.k,
        psi_1: points.psi_1,
        phi_2: points.phi_2,
        types,
    };
    let same = family.header().types.iter().map(|kind| (kind.kind.name.as_str(), kind.slots));
    check.relation(
        same.eq(types.iter().map(|key| (key.name(), key.slots()))),
        "the proving keys are those of the family's types",
    )?;
    check.points("phi", shared.phi)?;
    check.points("psi", shared.psi)?;
    check.points("gamma", std::slice::from_ref(shared.gamma))?;
    check.points("elements", shared.elements.as_flattened())?;
    for kind in 0..types.len() {
        check.points("ic", family.ic(kind)?)?;
    }
    step("family key: powers");
    check.powers(&shared)?;
    check.distinct(&shared)?;
    step("types: points and relations");
    check.types(&shared, |check, kind, key| check.public(&shared, family.ic(kind)?, key))?;
    Ok(check.report)
}

/// What the types of a setup share, from the aggregation key and the verifying key, or from the key
/// of a family.
struct Shared<'a> {
    phi: &'a [G1Point],
    psi: &'a [G2Point],
    gamma: &'a G2Point,
    elements: &'a [[G2Point; 3]],
    alpha_beta: Gt,
    k: G1Point,
    psi_1: G1Point,
    phi_2: G2Point,
    types: &'a [ProvingKey],
}

/// Checks one key and counts what it has checked.
struct Checker<'p, P> {
    pool: &'p P,
    report: KeyCheckReport,
    /// The name of the key, for errors.
    key: String,
}

/// Random scalars of 64 bits, unpredictable for the maker of the keys. Short ones cost a quarter of
/// full-size ones.
fn randoms(n: usize) -> Result<Vec<Fr>, getrandom::Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let mut stream = blake3::Hasher::new_keyed(&seed).finalize_xof();
    let draw = || {
        let mut bytes = [0; 8];
        stream.fill(&mut bytes);
        Fr::from(u64::from_le_bytes(bytes))
    };
    Ok(std::iter::repeat_with(draw).take(n).collect())
}

impl<P: Pool> Checker<'_, P> {
    /// Counts a relation, or returns it as an error if it does not hold.
    fn relation(&mut self, holds: bool, relation: impl ToString) -> Result<(), KeyCheckError> {
        if !holds {
            return Err(KeyCheckError::Relation {
                key: self.key.clone(),
                relation: relation.to_string(),
            });
        }
        self.report.relations += 1;
        Ok(())
    }

    /// Checks that `sum e(a_i, b_i) = sum e(c_i, d_i)`.
    fn equal(
        &mut self,
        left: &[(G1Point, G2Point)],
        right: &[(G1Point, G2Point)],
        relation: &str,
    ) -> Result<(), KeyCheckError> {
        let negated: Vec<(G1Point, G2Point)> = right.iter().map(|(a, b)| (a.neg(), *b)).collect();
        let pairs = left.iter().chain(&negated).map(|(a, b)| (a, b));
        self.relation(MillerLoop::of_pairs(pairs).finish().is_identity(), relation)
    }

    /// Checks that all points of a section are reduced and in the subgroup.
    fn points<G: Group>(
        &mut self,
        section: &'static str,
        points: &[G],
    ) -> Result<(), KeyCheckError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        // One part per thread, large enough for batched checks to pay off.
        let part = points.len().div_ceil(self.pool.threads()).max(1 << 15);
        let parts: Vec<(usize, &[G])> =
            points.chunks(part).enumerate().map(|(i, p)| (i * part, p)).collect();
        let found = self.pool.map(parts, |(start, part)| {
            let mut stream =
                blake3::Hasher::new_keyed(&seed).update(&start.to_le_bytes()).finalize_xof();
            let mut random = || {
                let mut bytes = [0; 8];
                stream.fill(&mut bytes);
                u64::from_le_bytes(bytes)
            };
            G::find_outside(part, &mut random).map(|at| start + at)
        });
        if let Some(index) = found.into_iter().flatten().next() {
            return Err(KeyCheckError::Point { key: self.key.clone(), section, index });
        }
        self.report.points += points.len() as u64;
        Ok(())
    }

    /// Checks the points of the aggregation key.
    fn aggregation_points(&mut self, keys: &ProverKeys) -> Result<(), KeyCheckError> {
        self.key = "aggregation key".into();
        let key = &keys.aggregation;
        for (section, points) in
            [("phi", key.phi()?), ("st", key.st()?), ("sb", key.sb()?), ("sg", key.sg()?)]
        {
            self.points(section, points)?;
        }
        self.points("psi", key.psi()?)?;
        self.points("gamma", std::slice::from_ref(key.gamma()?))?;
        self.points("elements", key.elements()?.as_flattened())
    }

    /// Checks the proving keys of all types, each with `more`.
    fn types(
        &mut self,
        keys: &Shared<'_>,
        more: impl Fn(&mut Self, usize, &ProvingKey) -> Result<(), KeyCheckError> + Sync + Send,
    ) -> Result<(), KeyCheckError> {
        let pool = self.pool;
        let reports = pool.map((0..keys.types.len()).collect(), |kind: usize| {
            let report = KeyCheckReport::default();
            let (mut check, key) =
                (Checker { pool, report, key: String::new() }, &keys.types[kind]);
            check.type_points(key)?;
            check.elements(keys, kind, key)?;
            check.queries(keys, kind, key)?;
            more(&mut check, kind, key)?;
            Ok::<_, KeyCheckError>(check.report)
        });
        for report in reports {
            let report = report?;
            self.report.points += report.points;
            self.report.relations += report.relations;
        }
        Ok(())
    }

    /// Checks IC where the C column is zero: `gamma IC_j = beta a_j + alpha b_j`. That is all public
    /// variables but multiplicities and the constant 1 (spec: key-family#check).
    fn public(
        &mut self,
        keys: &Shared<'_>,
        ic: &[G1Point],
        key: &ProvingKey,
    ) -> Result<(), KeyCheckError> {
        let [_, _, mc] = key.matrices()?;
        let mut of_public = randoms(ic.len())?;
        for [variable, _] in mc.entries {
            if let Some(r) = of_public.get_mut(*variable as usize) {
                *r = Fr::zero();
            }
        }
        let left = G1Point::msm(ic, &of_public);
        let mut of_all = of_public;
        of_all.resize(key.variables(), Fr::zero());
        let (a, b) = (key.a_query()?.evaluate(&of_all), key.b_query()?.evaluate(&of_all));
        let e = key.elements();
        let right = [(a, e.beta_2), (e.alpha_1, b)];
        self.equal(&[(left, *keys.gamma)], &right, "gamma IC_j = beta a_j + alpha b_j")
    }

    /// Checks the points of a proving key.
    fn type_points(&mut self, key: &ProvingKey) -> Result<(), KeyCheckError> {
        self.key = format!("key of type '{}'", key.name());
        let e = key.elements();
        self.points("elements", &[e.alpha_1, e.delta_1, e.eta_1])?;
        self.points("elements", &[e.beta_2, e.delta_2])?;
        let g1 = [
            ("a", key.a_query()?.points),
            ("x", key.x_query()?.points),
            ("d", key.d_query()?),
            ("l", key.l_query()?),
            ("h", key.h_query()?),
        ];
        for (section, points) in g1 {
            self.points(section, points)?;
        }
        self.points("b", key.b_query()?.points)
    }

    /// Checks that `[phi^i]_1` and `[psi^i]_2` are powers of the phi and psi of the verifying key
    /// (spec: aggregation#srs).
    fn powers(&mut self, keys: &Shared<'_>) -> Result<(), KeyCheckError> {
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let (phi, psi) = (keys.phi, keys.psi);
        self.relation(phi[0] == g && psi[0] == h, "the powers start with the generators")?;
        // One random combination each: shifting the vector by one place multiplies it by phi or
        // psi.
        let r = randoms(phi.len() - 1)?;
        let (low, high) = (G1Point::msm(&phi[..r.len()], &r), G1Point::msm(&phi[1..], &r));
        self.equal(&[(high, h)], &[(low, keys.phi_2)], "[phi^(i+1)]_1 = phi [phi^i]_1")?;
        let (low, high) = (G2Point::msm(&psi[..r.len()], &r), G2Point::msm(&psi[1..], &r));
        self.equal(&[(g, high)], &[(keys.psi_1, low)], "[psi^(i+1)]_2 = psi [psi^i]_2")
    }

    /// Checks that the verifying key commits to the elements of the aggregation key
    /// (spec: aggregation#commitments, verifier#key).
    fn commitments(&mut self, keys: &ProverKeys) -> Result<(), KeyCheckError> {
        let (key, vk) = (&keys.aggregation, keys.verifying.fixed_elements());
        let (phi, psi, n, k) = (key.phi()?, key.psi()?, key.instances(), key.types());
        let type_of = key.type_of()?;
        // Only the map of types is compared, which masks do not change.
        let wiring = Wiring { type_of: type_of.to_vec(), ..Wiring::empty(Masking::Unmasked) };
        self.relation(
            wiring.type_map_digest() == keys.verifying.type_map,
            "the verifying key has the map of instances to types",
        )?;
        let v: Vec<G2Point> = psi.iter().step_by(2).take(n).copied().collect();
        let w: Vec<G1Point> = phi.iter().step_by(2).take(n).copied().collect();
        let (st, sb) = (key.st()?, key.sb()?);
        let part = n.div_ceil(self.pool.threads()).max(1);
        let commit = |x: &[G1Point]| -> Gt {
            let parts: Vec<_> = x.chunks(part).zip(v.chunks(part)).collect();
            MillerLoop::product(self.pool.map(parts, |(x, v)| MillerLoop::new(x, v))).finish()
        };
        let (cm_st, cm_sb) = (commit(st), commit(sb));
        self.relation(cm_st == vk.cm_st, "cm_St commits to St")?;
        self.relation(cm_sb == vk.cm_sb, "cm_Sb commits to Sb")?;
        // An element that all instances of a type share is paired once, with the sum of their
        // commitment keys.
        let mut of_type: Vec<(Vec<G1Point>, Vec<G2Point>)> = vec![(Vec::new(), Vec::new()); k];
        for (i, kind) in type_of.iter().enumerate() {
            of_type[*kind as usize].0.push(w[i]);
            of_type[*kind as usize].1.push(v[i]);
        }
        let sums: Vec<(G1Point, G2Point)> =
            of_type.iter().map(|(w, v)| (G1Point::sum(w), G2Point::sum(v))).collect();
        let sg = key.sg()?;
        let v_sums: Vec<G2Point> = sums.iter().map(|s| s.1).collect();
        self.relation(MillerLoop::new(sg, &v_sums).finish() == vk.cm_sg, "cm_Sg commits to Sg")?;
        self.relation(
            pairing(&G1Point::sum(&w), key.gamma()?) == vk.cm_gamma,
            "cm_gamma commits to gamma",
        )?;
        let w_sums: Vec<G1Point> = sums.iter().map(|s| s.0).collect();
        for (j, (name, cm)) in [("delta", vk.cm_delta), ("eta", vk.cm_eta), ("Theta", vk.cm_theta)]
            .into_iter()
            .enumerate()
        {
            let column: Vec<G2Point> = key.elements()?.iter().map(|e| e[j]).collect();
            self.relation(
                MillerLoop::new(&w_sums, &column).finish() == cm,
                format!("cm_{name} commits to {name}"),
            )?;
        }
        Ok(())
    }

    /// Checks that the elements of types differ, and that none is zero or a generator.
    fn distinct(&mut self, keys: &Shared<'_>) -> Result<(), KeyCheckError> {
        // If two of delta, eta and gamma were equal, over all types, anyone could forge proofs
        // (spec: mirage#asserts).
        let mut all: Vec<Vec<u8>> =
            keys.elements.iter().flat_map(|e| [e[0], e[1]]).map(|p| p.to_compressed()).collect();
        all.push(keys.gamma.to_compressed());
        all.sort();
        self.relation(
            all.windows(2).all(|w| w[0] != w[1]),
            "delta, eta and gamma of all types are distinct",
        )?;
        let proper = keys.elements.iter().flatten().chain([keys.gamma]).all(|p| !p.is_identity());
        self.relation(proper, "no delta, eta, Theta or gamma is zero")?;
        let (g, h) = (G1Point::generator(), G2Point::generator());
        self.relation(
            keys.k != g && keys.psi_1 != g && keys.phi_2 != h,
            "K, psi and phi are not the generators",
        )
    }

    /// Checks that alpha, beta, delta and eta agree between groups, types and files
    /// (spec: mirage#setup).
    fn elements(
        &mut self,
        keys: &Shared<'_>,
        kind: usize,
        key: &ProvingKey,
    ) -> Result<(), KeyCheckError> {
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let e = key.elements();
        let [delta, eta, _] = keys.elements[kind];
        self.relation(
            !e.alpha_1.is_identity() && !e.beta_2.is_identity(),
            "alpha and beta are not zero",
        )?;
        self.relation(
            pairing(&e.alpha_1, &e.beta_2) == keys.alpha_beta,
            "e(alpha, beta) is that of the verifying key",
        )?;
        let first = keys.types[0].elements();
        self.relation(
            e.alpha_1 == first.alpha_1 && e.beta_2 == first.beta_2,
            "alpha and beta are those of all types",
        )?;
        self.relation(e.delta_2 == delta, "delta is that of the aggregation key")?;
        self.equal(&[(e.delta_1, h)], &[(g, delta)], "delta is the same in G1 and G2")?;
        self.equal(&[(e.eta_1, h)], &[(g, eta)], "eta is the same in G1 and G2")
    }

    /// Checks the queries against each other and against the matrices (spec: mirage#queries).
    fn queries(
        &mut self,
        keys: &Shared<'_>,
        kind: usize,
        key: &ProvingKey,
    ) -> Result<(), KeyCheckError> {
        let h2 = G2Point::generator();
        let (rows, variables) = (key.constraints(), key.variables());
        let [ma, mb, mc] = key.matrices()?;
        let layout = key.layout();
        let (a, b, x) = (key.a_query()?, key.b_query()?, key.x_query()?);
        // A query lists exactly the variables whose column is not zero.
        let [used_a, used_b, used_c] = [&ma, &mb, &mc].map(|m| {
            let mut used = vec![false; variables];
            m.entries.iter().for_each(|[variable, _]| used[*variable as usize] = true);
            used
        });
        let listed = |used: &[bool], range: std::ops::Range<usize>, list: &[u32]| {
            range.filter(|j| used[*j]).eq(list.iter().map(|j| *j as usize))
        };
        let same = listed(&used_a, 0..variables, a.variables)
            && listed(&used_b, 0..variables, b.variables)
            && listed(&used_c, 0..layout.sum() + 1, x.variables);
        self.relation(same, "each query has the variables of its matrix")?;

        // For the column polynomials p of B and C, HQ evaluates p in the exponent:
        // sum_j p(s w^j) HQ_j = -p(tau) t/(2 delta) (spec: mirage#coset).
        let through_h = |values: Vec<Fr>| -> Result<G1Point, KeyFileError> {
            let mut values = values;
            values.resize(key.domain().size(), Fr::zero());
            key.domain().to_coset(&mut values);
            Ok(G1Point::msm(key.h_query()?, &values))
        };
        let r = randoms(variables)?;
        let mut of_x = vec![Fr::zero(); variables];
        x.variables.iter().for_each(|j| of_x[*j as usize] = r[*j as usize]);
        let c_part = through_h((0..rows).map(|i| mc.row(i, &of_x)).collect())?;
        self.relation(
            x.evaluate(&r).add(&c_part).is_identity(),
            "XQ holds the columns of C that HQ makes",
        )?;
        let b_part = through_h((0..rows).map(|i| mb.row(i, &r)).collect())?;
        let one = G1Point::sum(key.h_query()?);
        // Otherwise the relation below would hold trivially.
        self.relation(!one.is_identity(), "the sum of HQ is not zero")?;
        let b_sum = b.evaluate(&r);
        self.equal(&[(one, b_sum)], &[(b_part, h2)], "BQ holds the columns of B that HQ makes")?;

        // Where c_j = 0: delta LQ_j = beta a_j + alpha b_j, and the same for DQ with eta
        // (spec: mirage#queries). Elsewhere this cannot be checked, since the powers of
        // tau are not published.
        let [delta, eta, _] = keys.elements[kind];
        let (committed, aux) = (layout.committed(), layout.auxiliary(variables));
        for (range, points, element, name) in [
            (committed, key.d_query()?, eta, "eta DQ_j"),
            (aux, key.l_query()?, delta, "delta LQ_j"),
        ] {
            let mut of_range = vec![Fr::zero(); variables];
            range.clone().filter(|j| !used_c[*j]).for_each(|j| of_range[j] = r[j]);
            let left = G1Point::msm_prepared(points, &Scalars::new(&of_range[range]));
            let (a_sum, b_sum) = (a.evaluate(&of_range), b.evaluate(&of_range));
            let right = [(a_sum, key.elements().beta_2), (key.elements().alpha_1, b_sum)];
            self.equal(&[(left, element)], &right, &format!("{name} = beta a_j + alpha b_j"))?;
        }
        Ok(())
    }
}
