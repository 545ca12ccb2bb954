//! The types of a family: their points at the start, and the equations that the last ones must satisfy
//! (spec: ceremony#start, ceremony#verification).

use crate::chain::{name_of, same_pairings};
use crate::check::{CeremonyError, Check, require};
use crate::genesis::FamilyGenesis;
use crate::lagrange::lagrange;
use crate::membership::Members;
use crate::powers::Output;
use crate::random::{VerifierRandomness, coefficients};
use crate::record::{LedgerStep, Record, Step, TypeStep};
use crate::sections::{Group as Which, Section, Vector, Visit, combination};
use crate::segment::{D, H, L, X, input_coefficients, types_of};
use ark_ff::{Field, Zero};
use hekaton_arith::{Domain, Fr, G1Point, G2Point, Group};
use hekaton_circuit::R1cs;
use hekaton_circuit::prover::Matrix;
use rayon::prelude::*;
use std::ops::Range;

/// Vectors of the section of tau.
const TAU_1: usize = 0;
const TAU_2: usize = 1;
const ALPHA_1: usize = 2;
const BETA_1: usize = 3;

/// The number of terms that a thread adds up at a time.
const TERMS: usize = 1 << 13;

/// The vectors of the queries that no contribution changes.
const IC: usize = 0;
const A: usize = 1;
const B: usize = 2;

/// A type, with the variables of each of its queries.
#[derive(Debug)]
pub(crate) struct Shape<'a> {
    pub(crate) r1cs: &'a R1cs,
    /// The size of the domain.
    pub(crate) domain: usize,
    /// The variables of A, B and X: those with a column that is not zero.
    pub(crate) a: Vec<u32>,
    pub(crate) b: Vec<u32>,
    pub(crate) x: Vec<u32>,
    /// `true` for variables that occur in a row.
    occurs: Vec<bool>,
}

/// The variables with a column that is not zero.
#[allow(clippy::cast_possible_truncation, reason = "a type has at most 2^28 variables")]
fn nonzero(matrix: &Matrix<'_>, range: Range<usize>) -> Vec<u32> {
    let mut found = vec![false; range.end];
    for row in 0..matrix.rows() {
        for (_, variable) in matrix.canonical(row) {
            if let Some(found) = found.get_mut(variable) {
                *found = true;
            }
        }
    }
    range.filter(|variable| found[*variable]).map(|variable| variable as u32).collect()
}

impl<'a> Shape<'a> {
    pub(crate) fn new(r1cs: &'a R1cs) -> Self {
        let all = 0..r1cs.variables;
        let [a, b, c] = [0, 1, 2].map(|side| nonzero(&r1cs.side(side), all.clone()));
        let mut occurs = vec![false; r1cs.variables];
        a.iter().chain(&b).chain(&c).for_each(|variable| occurs[*variable as usize] = true);
        let e = r1cs.layout.sum();
        let x = c.into_iter().filter(|variable| *variable as usize <= e).collect();
        Self { r1cs, domain: Domain::size_for(r1cs.constraints()), a, b, x, occurs }
    }

    /// The variables of the queries L, D and IC.
    pub(crate) fn aux(&self) -> Range<usize> {
        self.r1cs.layout.auxiliary(self.r1cs.variables)
    }

    pub(crate) fn committed(&self) -> Range<usize> {
        self.r1cs.layout.committed()
    }

    pub(crate) fn public(&self) -> Range<usize> {
        self.r1cs.layout.public()
    }

    /// The numbers of points in L, X, H and D.
    pub(crate) fn points(&self) -> [usize; 4] {
        [self.aux().len(), self.x.len(), self.domain, self.committed().len()]
    }

    /// The vectors of the queries that no contribution changes.
    pub(crate) fn fixed(&self) -> Vec<Vector> {
        vec![
            Vector { name: "IC", group: Which::G1, len: self.public().len() },
            Vector { name: "A", group: Which::G1, len: self.a.len() },
            Vector { name: "B", group: Which::G2, len: self.b.len() },
        ]
    }

    /// Reports whether a point must be at infinity, because its variable is in no row: in L and IC only.
    fn must_vanish(&self, query: &str, at: usize) -> bool {
        match query {
            "L" => !self.occurs[self.aux().start + at],
            "IC" => !self.occurs[at],
            _ => false,
        }
    }
}

/// The columns of a matrix: for each variable its rows and coefficients.
struct Columns {
    starts: Vec<u32>,
    terms: Vec<(u32, Fr)>,
}

impl Columns {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a matrix has fewer than 2^32 entries and rows"
    )]
    fn new(matrix: &Matrix<'_>, variables: usize) -> Self {
        let mut starts = vec![0u32; variables + 1];
        for row in 0..matrix.rows() {
            matrix.terms(row).for_each(|(_, variable)| starts[variable + 1] += 1);
        }
        for i in 0..variables {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut terms = vec![(0, Fr::zero()); starts[variables] as usize];
        for row in 0..matrix.rows() {
            for (coefficient, variable) in matrix.terms(row) {
                terms[next[variable] as usize] = (row as u32, coefficient);
                next[variable] += 1;
            }
        }
        Self { starts, terms }
    }

    /// The sums `sum_i M_ij basis_i` for some variables j.
    #[allow(clippy::cast_possible_truncation, reason = "the terms of a chunk are few")]
    fn sums<G: Group>(&self, basis: &[G], variables: &[u32]) -> Vec<G> {
        let of = |variable: u32| {
            let at = variable as usize;
            &self.terms[self.starts[at] as usize..self.starts[at + 1] as usize]
        };
        // Chunks of similar numbers of terms, since columns differ much in length.
        let mut chunks: Vec<Range<usize>> = Vec::new();
        let (mut start, mut terms) = (0, 0);
        for (at, variable) in variables.iter().enumerate() {
            terms += of(*variable).len();
            if terms >= TERMS || at + 1 == variables.len() {
                chunks.push(start..at + 1);
                (start, terms) = (at + 1, 0);
            }
        }
        let sums = chunks.into_par_iter().flat_map_iter(|chunk| {
            let mut terms = Vec::new();
            let ends: Vec<u32> = variables[chunk]
                .iter()
                .map(|variable| {
                    terms.extend_from_slice(of(*variable));
                    terms.len() as u32
                })
                .collect();
            G::sparse_sums(basis, &terms, &ends)
        });
        sums.collect()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a type has at most 2^28 variables")]
fn list(range: Range<usize>) -> Vec<u32> {
    range.map(|variable| variable as u32).collect()
}

/// The points of a type at the start, where delta and eta are 1.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// L, X, H and D.
    pub(crate) vectors: [Vec<G1Point>; 4],
    pub(crate) ic: Vec<G1Point>,
    pub(crate) a: Vec<G1Point>,
    pub(crate) b: Vec<G2Point>,
}

fn add(to: &mut Vec<G1Point>, points: Vec<G1Point>) {
    match to.is_empty() {
        true => *to = points,
        false => G1Point::batch_add(to, &points),
    }
}

/// Computes the points of all types at the start, from the powers of tau. Each basis is made once for each size of
/// domains, and only one is in memory at a time. `progress` is called with a description of each.
pub(crate) fn starts(
    tau: &Section,
    shapes: &[Shape<'_>],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Start>, CeremonyError> {
    let mut starts: Vec<Start> = shapes.iter().map(|_| Start::default()).collect();
    let mut sizes: Vec<usize> = shapes.iter().map(|shape| shape.domain).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for n in sizes {
        let of_size: Vec<usize> = (0..shapes.len()).filter(|i| shapes[*i].domain == n).collect();
        let mut with = |what: &str| progress(&format!("{what}, domain of {n}"));
        let columns = |i: usize, side: usize| {
            Columns::new(&shapes[i].r1cs.side(side), shapes[i].r1cs.variables)
        };
        // p_j = beta a_j + alpha b_j + c_j, in L, D and IC.
        for (side, vector, what) in [(0, BETA_1, "beta"), (1, ALPHA_1, "alpha")] {
            with(what);
            let basis = lagrange(tau.read::<G1Point>(vector, n)?);
            for &i in &of_size {
                let (columns, shape, start) = (columns(i, side), &shapes[i], &mut starts[i]);
                add(&mut start.vectors[L], columns.sums(&basis, &list(shape.aux())));
                add(&mut start.vectors[D], columns.sums(&basis, &list(shape.committed())));
                add(&mut start.ic, columns.sums(&basis, &list(shape.public())));
            }
        }
        with("tau");
        let basis = lagrange(tau.read::<G1Point>(TAU_1, n)?);
        for &i in &of_size {
            let (c, shape, start) = (columns(i, 2), &shapes[i], &mut starts[i]);
            add(&mut start.vectors[D], c.sums(&basis, &list(shape.committed())));
            add(&mut start.ic, c.sums(&basis, &list(shape.public())));
            start.vectors[X] = c.sums(&basis, &shape.x).iter().map(Group::neg).collect();
            start.a = columns(i, 0).sums(&basis, &shape.a);
        }
        drop(basis);
        with("tau in G2");
        let basis = lagrange(tau.read::<G2Point>(TAU_2, n)?);
        for &i in &of_size {
            starts[i].b = columns(i, 1).sums(&basis, &shapes[i].b);
        }
        drop(basis);
        // On the domain of twice the size: c_j + c_j t/2 is L_(2i) there, and -L_j t/2 on the coset L_(2j+1).
        with("tau, twice the size");
        let double = lagrange(tau.read::<G1Point>(TAU_1, 2 * n)?);
        let even: Vec<G1Point> = double.iter().step_by(2).copied().collect();
        let odd: Vec<G1Point> = double.iter().skip(1).step_by(2).copied().collect();
        drop(double);
        for &i in &of_size {
            let (c, shape, start) = (columns(i, 2), &shapes[i], &mut starts[i]);
            add(&mut start.vectors[L], c.sums(&even, &list(shape.aux())));
            add(&mut start.vectors[X], c.sums(&even, &shape.x));
            start.vectors[H].clone_from(&odd);
        }
    }
    Ok(starts)
}

impl Start {
    /// Writes the queries that contributions change, and returns their digest.
    pub(crate) fn write_section(&self, mut out: Output<'_>) -> Result<[u8; 32], CeremonyError> {
        self.vectors.iter().try_for_each(|vector| out.write(vector))?;
        Ok(*out.hasher.finalize().as_bytes())
    }

    /// Writes IC, A and B.
    pub(crate) fn write_fixed(&self, mut out: Output<'_>) -> Result<[u8; 32], CeremonyError> {
        out.write(&self.ic)?;
        out.write(&self.a)?;
        out.write(&self.b)?;
        Ok(*out.hasher.finalize().as_bytes())
    }
}

/// The Lagrange polynomials `[L_0]_2` at tau of all sizes of domains up to `largest`: sums of powers, divided by the
/// size.
pub(crate) fn first_thetas(tau: &Section, largest: usize) -> Result<Vec<G2Point>, CeremonyError> {
    let mut thetas = Vec::new();
    for n in crate::genesis::domains(largest) {
        let scale = Fr::from(n as u64).inverse().expect("sizes of domains are not zero");
        thetas.push(tau.combine::<G2Point>(TAU_2, &vec![Fr::ONE; n])?.mul(&scale));
    }
    Ok(thetas)
}

/// Coefficients of a combination of a type's queries; none stands for zeros.
#[derive(Clone, Debug, Default)]
struct Coefficients {
    /// Those of L, X, H and D.
    vectors: [Vec<Fr>; 4],
    ic: Vec<Fr>,
    a: Vec<Fr>,
}

/// Evaluates a polynomial by its values on a domain, in coefficients: an inverse transform, the shorter list filled up
/// with zeros.
fn to_coefficients(mut values: Vec<Fr>, n: usize) -> Vec<Fr> {
    values.resize(n, Fr::zero());
    Domain::new(n).expect("the size of a domain").ifft(&mut values);
    values
}

/// The product of a matrix with an assignment.
fn times(matrix: &Matrix<'_>, z: &[Fr]) -> Vec<Fr> {
    (0..matrix.rows()).into_par_iter().map(|row| matrix.row(row, z)).collect()
}

/// The combination of the queries at the start, where delta and eta are 1, from the powers alone
/// (spec: ceremony#input-sums).
fn target(tau: &Section, shape: &Shape<'_>, c: &Coefficients) -> Result<G1Point, CeremonyError> {
    let (n, variables, r1cs) = (shape.domain, shape.r1cs.variables, shape.r1cs);
    // Coefficients of p_j by variable; of c_j on the double domain and on the domain; of a_j.
    let (mut p, mut double) = (vec![Fr::zero(); variables], vec![Fr::zero(); variables]);
    let (mut single, mut a) = (vec![Fr::zero(); variables], vec![Fr::zero(); variables]);
    for (j, r) in shape.aux().zip(&c.vectors[L]) {
        (p[j], double[j]) = (*r, *r);
    }
    for (j, r) in shape.committed().zip(&c.vectors[D]).chain(shape.public().zip(&c.ic)) {
        (p[j], single[j]) = (*r, *r);
    }
    for (j, r) in shape.x.iter().zip(&c.vectors[X]) {
        double[*j as usize] += r;
        single[*j as usize] -= r;
    }
    for (j, r) in shape.a.iter().zip(&c.a) {
        a[*j as usize] = *r;
    }
    let [side_a, side_b, side_c] = r1cs.matrices.all();
    let beta = to_coefficients(times(&side_a, &p), n);
    let alpha = to_coefficients(times(&side_b, &p), n);
    let mut of_tau = times(&side_c, &single);
    of_tau.iter_mut().zip(times(&side_a, &a)).for_each(|(sum, x)| *sum += x);
    let of_tau = to_coefficients(of_tau, n);
    let mut values = vec![Fr::zero(); 2 * n];
    for (i, x) in times(&side_c, &double).into_iter().enumerate() {
        values[2 * i] = x;
    }
    for (i, x) in c.vectors[H].iter().enumerate() {
        values[2 * i + 1] = *x;
    }
    let mut tau_scalars = to_coefficients(values, 2 * n);
    tau_scalars.iter_mut().zip(&of_tau).for_each(|(sum, x)| *sum += x);
    Ok(G1Point::sum(&[
        tau.combine(BETA_1, &beta)?,
        tau.combine(ALPHA_1, &alpha)?,
        tau.combine(TAU_1, &tau_scalars)?,
    ]))
}

/// Random coefficients for the vectors of a section, and the sums of the points with them.
struct Sums {
    coefficients: Vec<Vec<Fr>>,
    in_g1: Vec<G1Point>,
    in_g2: G2Point,
}

/// Takes a section of a type with random coefficients.
struct Combined<'a, 'b> {
    section: &'a Section,
    shape: &'a Shape<'b>,
    random: VerifierRandomness,
    sums: Sums,
    members: &'a mut Members,
}

impl Combined<'_, '_> {
    /// Reads a section and checks its digest.
    fn read(
        section: &mut Section,
        shape: &Shape<'_>,
        digest: [u8; 32],
        members: &mut Members,
    ) -> Result<Sums, CeremonyError> {
        members.begin(section);
        let count = section.vectors.len();
        let sums = Sums {
            coefficients: vec![Vec::new(); count],
            in_g1: vec![G1Point::IDENTITY; count],
            in_g2: G2Point::IDENTITY,
        };
        let random = VerifierRandomness::new()?;
        let before = section.clone();
        let mut combined = Combined { section: &before, shape, random, sums, members };
        let found = section.visit_and_seal(&mut combined)?;
        require(found == digest, Check::Digest, || format!("section '{}'", section.name))?;
        Ok(combined.sums)
    }

    fn vanishes_where_it_must<G: Group>(
        &self,
        vector: usize,
        start: usize,
        points: &[G],
    ) -> Result<(), CeremonyError> {
        let name = self.section.vectors[vector].name;
        let wrong = (start..)
            .zip(points)
            .find(|(at, point)| point.is_identity() != self.shape.must_vanish(name, *at));
        let Some((at, _)) = wrong else { return Ok(()) };
        #[cfg(test)]
        if crate::tests::is_off(Check::Identity) {
            return Ok(());
        }
        Err(self.section.broken(
            Check::Identity,
            vector,
            at,
            ", where the variable is in rows, or not",
        ))
    }
}

impl Visit for Combined<'_, '_> {
    fn g1(&mut self, vector: usize, start: usize, points: &[G1Point]) -> Result<(), CeremonyError> {
        self.vanishes_where_it_must(vector, start, points)?;
        self.members.take_g1(points);
        let coefficients = self.random.coefficients(points.len());
        self.sums.in_g1[vector] = self.sums.in_g1[vector].add(&combination(points, &coefficients));
        self.sums.coefficients[vector].extend(coefficients);
        Ok(())
    }

    fn g2(&mut self, vector: usize, start: usize, points: &[G2Point]) -> Result<(), CeremonyError> {
        self.vanishes_where_it_must(vector, start, points)?;
        self.members.take_g2(points);
        let coefficients = self.random.coefficients(points.len());
        self.sums.in_g2 = self.sums.in_g2.add(&combination(points, &coefficients));
        self.sums.coefficients[vector].extend(coefficients);
        Ok(())
    }
}

/// Checks the last points of a type: that all queries are those of the circuit, at the delta and eta of the last record.
/// The caller checks `members`.
pub(crate) fn check_type(
    tau: &Section,
    shape: &Shape<'_>,
    [section, fixed]: [&mut Section; 2],
    fixed_digest: [u8; 32],
    last: &TypeStep,
    members: &mut Members,
) -> Result<(), CeremonyError> {
    let changed = Combined::read(section, shape, last.digests.new, members)?;
    let unchanged = Combined::read(fixed, shape, fixed_digest, members)?;
    let ([delta, eta], h) = (last.in_g2, G2Point::generator());
    // Each query with its coefficients, its sum and the point that its sum is paired with.
    let [l, x, hs, d] = [L, X, H, D].map(|vector| {
        let mut only = Coefficients::default();
        only.vectors[vector].clone_from(&changed.coefficients[vector]);
        let paired = if vector == D { eta } else { delta };
        (section.vectors[vector].name, only, changed.in_g1[vector], paired)
    });
    let ic = Coefficients { ic: unchanged.coefficients[IC].clone(), ..Coefficients::default() };
    let a = Coefficients { a: unchanged.coefficients[A].clone(), ..Coefficients::default() };
    let queries =
        [l, x, hs, d, ("IC", ic, unchanged.in_g1[IC], h), ("A", a, unchanged.in_g1[A], h)];
    let mut all = Coefficients::default();
    for (_, only, _, _) in &queries {
        for (all, only) in all.vectors.iter_mut().zip(&only.vectors) {
            all.extend_from_slice(only);
        }
        all.ic.extend_from_slice(&only.ic);
        all.a.extend_from_slice(&only.a);
    }
    let left: Vec<_> = queries.iter().map(|(_, _, sum, paired)| (*sum, *paired)).collect();
    if !same_pairings(&left, &[(target(tau, shape, &all)?, h)]) {
        for (name, only, sum, paired) in &queries {
            let holds = same_pairings(&[(*sum, *paired)], &[(target(tau, shape, only)?, h)]);
            require(holds, Check::Queries, || format!("section '{}', {name}", section.name))?;
        }
        let at = || format!("section '{}', all queries together", section.name);
        require(false, Check::Queries, at)?;
    }
    let mut b = vec![Fr::zero(); shape.r1cs.variables];
    for (j, r) in shape.b.iter().zip(&unchanged.coefficients[B]) {
        b[*j as usize] = *r;
    }
    let expected = to_coefficients(times(&shape.r1cs.side(1), &b), shape.domain);
    let holds = unchanged.in_g2 == tau.combine(TAU_2, &expected)?;
    require(holds, Check::Queries, || format!("section '{}', B", section.name))?;
    Ok(())
}

/// Checks the input sums of all records of a segment, each for the type of number `kind` in it: that each contributor
/// worked on the circuit's points at the delta and eta of the record before (spec: ceremony#input-sums).
pub(crate) fn check_input_sums(
    tau: &Section,
    shape: &Shape<'_>,
    kind: usize,
    records: &[Record],
    steps: &[Step],
) -> Result<(), CeremonyError> {
    let mut random = VerifierRandomness::new()?;
    if input_sums_hold(tau, shape, kind, records, steps, &mut random)? {
        return Ok(());
    }
    for (at, record) in records.iter().enumerate() {
        let (one, before) = (std::slice::from_ref(record), &steps[at..]);
        let holds = input_sums_hold(tau, shape, kind, one, before, &mut random)?;
        require(holds, Check::InputSums, || {
            format!("{}, type '{}'", name_of(record), shape.r1cs.name)
        })?;
    }
    let at = || format!("type '{}', all records together", shape.r1cs.name);
    Ok(require(false, Check::InputSums, at)?)
}

/// The equation of [`check_input_sums`] for some records, where `steps` has the state before each: one for all, with random
/// weights.
fn input_sums_hold(
    tau: &Section,
    shape: &Shape<'_>,
    kind: usize,
    records: &[Record],
    steps: &[Step],
    random: &mut VerifierRandomness,
) -> Result<bool, CeremonyError> {
    let mut all = Coefficients {
        vectors: shape.points().map(|n| vec![Fr::zero(); n]),
        ..Coefficients::default()
    };
    let mut left = Vec::new();
    for (record, before) in records.iter().zip(steps) {
        let (step, before) = (&types_of(&record.step).0[kind], &types_of(before).0[kind]);
        let weights = random.coefficients(2);
        let received = &step.digests.received;
        let mut stream = input_coefficients(&record.before, kind, received);
        for (vector, sums) in all.vectors.iter_mut().enumerate() {
            let weight = weights[usize::from(vector == D)];
            for (sum, rho) in sums.iter_mut().zip(coefficients(&mut stream, shape.points()[vector]))
            {
                *sum += weight * rho;
            }
        }
        for ((sum, weight), paired) in step.sums.iter().zip(&weights).zip(before.in_g2) {
            left.push((sum.mul(weight), paired));
        }
    }
    Ok(same_pairings(&left, &[(target(tau, shape, &all)?, G2Point::generator())]))
}

/// Checks all Theta of the genesis and of all records: `e(K, Theta) = e([L_0]_1, H)` for each size of domains.
pub(crate) fn check_thetas(
    tau: &Section,
    genesis: &FamilyGenesis,
    records: &[Record],
) -> Result<(), CeremonyError> {
    let mut random = VerifierRandomness::new()?;
    let start = LedgerStep { k: G1Point::generator(), thetas: genesis.thetas.clone() };
    let of_segment = |record: &Record| types_of(&record.step).1.cloned();
    let of_records: Vec<LedgerStep> = records.iter().filter_map(of_segment).collect();
    let all: Vec<LedgerStep> = std::iter::once(&start).chain(&of_records).cloned().collect();
    if thetas_hold(tau, genesis.largest, &all, &mut random)? {
        return Ok(());
    }
    let names = std::iter::once("the genesis".to_owned()).chain(records.iter().map(name_of));
    for (step, name) in all.iter().zip(names) {
        let holds = thetas_hold(tau, genesis.largest, std::slice::from_ref(step), &mut random)?;
        require(holds, Check::Theta, || name)?;
    }
    Ok(require(false, Check::Theta, || "all records together".to_owned())?)
}

fn thetas_hold(
    tau: &Section,
    largest: usize,
    steps: &[LedgerStep],
    random: &mut VerifierRandomness,
) -> Result<bool, CeremonyError> {
    let sizes = crate::genesis::domains(largest);
    let mut weights = vec![Fr::zero(); sizes.len()];
    let mut left = Vec::new();
    for LedgerStep { k, thetas } in steps {
        let own = random.coefficients(sizes.len());
        left.push((*k, G2Point::msm(thetas, &own)));
        weights.iter_mut().zip(own).for_each(|(sum, weight)| *sum += weight);
    }
    // L_0 is the sum of the first n powers, divided by n.
    let mut scalars = vec![Fr::zero(); largest];
    for (n, weight) in sizes.iter().zip(weights) {
        let share = weight * Fr::from(*n as u64).inverse().expect("sizes of domains are not zero");
        scalars[..*n].iter_mut().for_each(|sum| *sum += share);
    }
    let right = tau.combine(TAU_1, &scalars)?;
    Ok(same_pairings(&left, &[(right, G2Point::generator())]))
}
