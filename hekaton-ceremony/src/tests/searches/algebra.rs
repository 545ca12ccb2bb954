//! S1: an adversary that combines published elements. For each choice of B, the set of all A, C, D, E and public values that satisfy a
//! subcircuit's equation is a linear space. It is computed completely, and every constraint is evaluated on it.

use super::super::{Chain, check_powers, open, plan, powers_of, step, types_of};
use super::polynomials::{Combination, Polynomial, kernel};
use super::{Case, columns, lagrange};
use crate::family::Shape;
use crate::record::Step;
use crate::sections::{Section, Vector};
use crate::{Seed, Transcript, new_family, verify_family};
use ark_ff::{Field, One, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group, fr_from_uniform, powers};
use hekaton_testing::{Shop, Shopping, Squarings};
use std::collections::BTreeMap;

const TAU: usize = 0;
const ALPHA: usize = 1;
const BETA: usize = 2;
const KAPPA: usize = 3;
const PHI: usize = 4;
const PSI: usize = 5;
/// The kappa of another family from the same powers.
const OTHER_KAPPA: usize = 6;
/// Gamma and delta of a foreign key over the same powers.
const GAMMA: usize = 7;
const FOREIGN: usize = 8;
/// Delta and eta of a type that is added later.
const LATER: [usize; 2] = [9, 10];
/// Delta and eta of the types, one after another.
const TYPES: usize = 11;

/// Elements that the adversary has in addition to those that a ceremony publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Also {
    Nothing,
    /// K and all Theta of another family.
    Family,
    /// A Groth16 key over the same powers.
    Foreign,
    /// A later type whose circuit is the adversary's, with e as a variable of its own.
    Later,
    /// Products of powers of the other chain with those of this one.
    Mixed,
    /// Controls: each of these frees e, or a type's values.
    Stolen(usize),
    KappaTau,
    SumInL,
    SharedDelta,
}

/// An element: a variable of the type that is attacked, or any other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Aux(usize),
    Committed(usize),
    K,
    Other,
}

/// Values that are the same in each run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn draw(&mut self) -> Fr {
        self.0 += 1 << 32;
        let mut bytes = [0; 64];
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0.to_le_bytes()).finalize_xof().fill(&mut bytes);
        fr_from_uniform(&bytes)
    }
}

struct Search<'a> {
    cases: &'a [Case],
    /// The largest domain.
    largest: usize,
    also: Also,
    random: Random,
}

impl Search<'_> {
    fn secret(&self, kind: usize, eta: usize) -> usize {
        match self.also {
            Also::SharedDelta if eta == 0 => TYPES,
            _ => TYPES + 2 * kind + eta,
        }
    }

    /// p_j = beta a_j + alpha b_j + c_j.
    fn mixed(&self, kind: usize, variable: usize) -> Polynomial {
        let case = &self.cases[kind];
        let [a, b, c] = columns(&case.r1cs, case.domain(), variable);
        let mut sum = Polynomial::in_one(TAU, &c);
        for (secret, column) in [(BETA, a), (ALPHA, b)] {
            let part =
                Polynomial::in_one(TAU, &column).times(&Polynomial::monomial(&[(secret, 1)]));
            sum.add(&part, &Fr::one());
        }
        sum
    }

    /// tau^n - 1.
    fn vanishing(n: usize) -> Polynomial {
        let mut t = Polynomial::monomial(&[(TAU, i16::try_from(n).unwrap())]);
        t.add(&Polynomial::monomial(&[]), &-Fr::one());
        t
    }

    /// L, H and D of a type under these secrets; with e in L for circuits that have it there.
    fn queries(
        &self,
        kind: usize,
        [delta, eta]: [usize; 2],
        e_in_l: bool,
    ) -> Vec<(Name, Polynomial)> {
        let shape = Shape::new(&self.cases[kind].r1cs);
        let over = |secret: usize| Polynomial::monomial(&[(secret, -1)]);
        let mut found = Vec::new();
        let e = e_in_l.then_some(shape.r1cs.layout.sum());
        for variable in shape.aux().chain(e) {
            // The ledger takes e from E alone.
            let name = if Some(variable) == e { Name::Other } else { Name::Aux(variable) };
            found.push((name, self.mixed(kind, variable).times(&over(delta))));
        }
        for variable in shape.committed() {
            found.push((Name::Committed(variable), self.mixed(kind, variable).times(&over(eta))));
        }
        // Their span is that of H, and X is in it; so is what L has of t.
        let t = Self::vanishing(shape.domain).times(&over(delta));
        for power in 0..i16::try_from(shape.domain).unwrap() {
            found.push((Name::Other, t.times(&Polynomial::monomial(&[(TAU, power)]))));
        }
        found
            .extend([delta, eta].map(|secret| (Name::Other, Polynomial::monomial(&[(secret, 1)]))));
        found
    }

    /// All elements of G1, for an attack on a type.
    fn in_g1(&mut self, attacked: usize) -> Vec<(Name, Polynomial)> {
        let n = i16::try_from(self.largest).unwrap();
        let other = |powers: &[(usize, i16)]| (Name::Other, Polynomial::monomial(powers));
        let mut all: Vec<_> = (0..2 * n).map(|i| other(&[(TAU, i)])).collect();
        for i in 0..n {
            all.extend([other(&[(ALPHA, 1), (TAU, i)]), other(&[(BETA, 1), (TAU, i)])]);
        }
        for kind in 0..self.cases.len() {
            let secrets = [0, 1].map(|eta| self.secret(kind, eta));
            for (name, element) in self.queries(kind, secrets, self.also == Also::SumInL) {
                all.push((if kind == attacked { name } else { Name::Other }, element));
            }
        }
        all.push((Name::K, Polynomial::monomial(&[(KAPPA, 1)])));
        all.extend((1..5).map(|i| other(&[(PHI, i)])));
        all.push(other(&[(PSI, 1)]));
        match self.also {
            Also::Family => all.push(other(&[(OTHER_KAPPA, 1)])),
            Also::Foreign => {
                // Public variables over gamma, all others over delta.
                let case = &self.cases[attacked];
                for variable in 0..case.r1cs.variables {
                    let public = Shape::new(&case.r1cs).public().contains(&variable);
                    let by = Polynomial::monomial(&[(if public { GAMMA } else { FOREIGN }, -1)]);
                    all.push((Name::Other, self.mixed(attacked, variable).times(&by)));
                }
                all.extend([other(&[(GAMMA, 1)]), other(&[(FOREIGN, 1)])]);
            }
            Also::Later => {
                // Any columns in the span of the powers, for e as well: a circuit of the adversary's choice.
                for (secret, count) in [(LATER[0], 4), (LATER[1], 2)] {
                    for _ in 0..count {
                        let mut sum = Polynomial::default();
                        for factor in [&[][..], &[(ALPHA, 1)], &[(BETA, 1)]] {
                            let column: Vec<Fr> = (0..6).map(|_| self.random.draw()).collect();
                            let part = Polynomial::in_one(TAU, &column);
                            sum.add(&part.times(&Polynomial::monomial(factor)), &Fr::one());
                        }
                        let over = Polynomial::monomial(&[(secret, -1)]);
                        all.push((Name::Other, sum.times(&over)));
                    }
                    all.push(other(&[(secret, 1)]));
                }
            }
            Also::Mixed => {
                for (i, j) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
                    all.push(other(&[(PHI, i), (TAU, j)]));
                }
                all.extend([other(&[(PHI, 1), (ALPHA, 1)]), other(&[(PSI, 1), (TAU, 1)])]);
            }
            Also::Stolen(kind) => {
                let l_0 = Polynomial::in_one(TAU, &lagrange(self.cases[kind].domain(), 0));
                let over = Polynomial::monomial(&[(self.secret(kind, 0), -1)]);
                all.push((Name::Other, l_0.times(&over)));
            }
            Also::KappaTau => all.extend((1..n).map(|i| other(&[(KAPPA, 1), (TAU, i)]))),
            Also::Nothing | Also::SumInL | Also::SharedDelta => {}
        }
        // Of elements that follow from others, one is enough.
        let echelon = kernel(all.iter().map(|(_, element)| element));
        let redundant: Vec<usize> =
            echelon.iter().map(|combination| *combination.keys().next_back().unwrap()).collect();
        let mut number = 0;
        all.retain(|_| {
            number += 1;
            !redundant.contains(&(number - 1))
        });
        all
    }

    /// The elements of G2 that B can have in addition to beta and powers of tau.
    fn in_g2(&self) -> Vec<Polynomial> {
        let mut all: Vec<_> = (0..self.cases.len())
            .flat_map(|kind| [0, 1].map(|eta| self.secret(kind, eta)))
            .map(|secret| Polynomial::monomial(&[(secret, 1)]))
            .collect();
        let kappas = [Some(KAPPA), (self.also == Also::Family).then_some(OTHER_KAPPA)];
        for n in crate::genesis::domains(self.largest) {
            let l_0 = Polynomial::in_one(TAU, &lagrange(n, 0));
            let over = |kappa| l_0.times(&Polynomial::monomial(&[(kappa, -1)]));
            all.extend(kappas.into_iter().flatten().map(over));
        }
        all.extend((1..5).map(|i| Polynomial::monomial(&[(PSI, i)])));
        all.push(Polynomial::monomial(&[(PHI, 1)]));
        if self.also == Also::Mixed {
            all.push(Polynomial::monomial(&[(PSI, 1), (TAU, 1)]));
            all.push(Polynomial::monomial(&[(PSI, 1), (BETA, 1)]));
        }
        all
    }

    /// The elements of a type's equation `A B = lambda alpha beta + S + delta C + eta D + Theta E` for a B, and its solutions.
    fn solve(
        &self,
        attacked: usize,
        g1: &[(Name, Polynomial)],
        b: &Polynomial,
        e_is_free: bool,
    ) -> Vec<Solution> {
        let shape = Shape::new(&self.cases[attacked].r1cs);
        let minus = -Fr::one();
        let mut columns: Vec<(Place, Polynomial)> = Vec::new();
        let alpha_beta = Polynomial::monomial(&[(ALPHA, 1), (BETA, 1)]);
        columns.push((Place::Lambda, alpha_beta.scaled(&minus)));
        for variable in shape.public() {
            let point = self.mixed(attacked, variable);
            if point != Polynomial::default() {
                columns.push((Place::Variable(variable), point.scaled(&minus)));
            }
        }
        let [delta, eta] = [0, 1].map(|eta| self.secret(attacked, eta));
        let l_0 = Polynomial::in_one(TAU, &lagrange(shape.domain, 0));
        let theta = l_0.times(&Polynomial::monomial(&[(KAPPA, -1)]));
        for (name, element) in g1 {
            let times = |secret| element.times(&Polynomial::monomial(&[(secret, 1)]));
            let of = |wanted: Name| match name {
                Name::Aux(variable) | Name::Committed(variable) if *name == wanted => {
                    Place::Variable(*variable)
                }
                _ => Place::Other,
            };
            let in_c = if matches!(name, Name::Aux(_)) { of(*name) } else { Place::Other };
            let in_d = if matches!(name, Name::Committed(_)) { of(*name) } else { Place::Other };
            columns.push((in_c, times(delta).scaled(&minus)));
            columns.push((in_d, times(eta).scaled(&minus)));
            if *name == Name::K || e_is_free {
                let place = match name {
                    Name::K => Place::Variable(shape.r1cs.layout.sum()),
                    _ => Place::Other,
                };
                columns.push((place, element.times(&theta).scaled(&minus)));
            }
            columns.push((Place::Other, element.times(b)));
        }
        let places: Vec<Place> = columns.iter().map(|(place, _)| *place).collect();
        kernel(columns.iter().map(|(_, column)| column))
            .into_iter()
            .map(|combination| Solution::new(&places, &combination))
            .collect()
    }
}

/// The meaning of a column of the equation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Lambda,
    Variable(usize),
    Other,
}

/// A solution: the factor of alpha beta, and the values of variables.
struct Solution {
    lambda: Fr,
    values: BTreeMap<usize, Fr>,
}

impl Solution {
    fn new(places: &[Place], combination: &Combination) -> Self {
        let (mut lambda, mut values) = (Fr::zero(), BTreeMap::new());
        for (column, factor) in combination {
            match places[*column] {
                Place::Lambda => lambda += factor,
                Place::Variable(variable) => {
                    *values.entry(variable).or_insert_with(Fr::zero) += factor;
                }
                Place::Other => {}
            }
        }
        Self { lambda, values }
    }

    /// The rows that the values violate, where the second factors are those of B.
    fn violates(&self, case: &Case, b: &[Fr]) -> bool {
        let z: Vec<Fr> = (0..case.r1cs.variables)
            .map(|variable| self.values.get(&variable).copied().unwrap_or_else(Fr::zero))
            .collect();
        let [a, b_side, c] = [0, 1, 2].map(|side| case.r1cs.side(side));
        let n = case.domain();
        powers(crate::lagrange::root(n), n).into_iter().enumerate().any(|(row, x)| {
            let factor: Fr = powers(x, b.len()).iter().zip(b).map(|(x, c)| *x * c).sum();
            let of = |matrix: &hekaton_circuit::prover::Matrix<'_>| match row < matrix.rows() {
                true => matrix.row(row, &z),
                false => Fr::zero(),
            };
            of(&a) * factor != of(&c) || self.lambda * factor != of(&b_side)
        })
    }
}

/// The result of a search.
#[derive(Debug, Default)]
struct Found {
    patterns: usize,
    /// Choices of B for which a proof is accepted.
    accepting: usize,
    /// Choices of B with a solution that violates a row.
    violating: usize,
}

fn search(cases: &[Case], also: Also, e_is_free: bool) -> Found {
    let largest = cases.iter().map(Case::domain).max().unwrap();
    let mut search = Search { cases, largest, also, random: Random(1) };
    let (in_g2, mut found) = (search.in_g2(), Found::default());
    for (attacked, case) in cases.iter().enumerate() {
        let g1 = search.in_g1(attacked);
        let n = case.domain();
        let mut honest = vec![Fr::zero(); n];
        for (variable, value) in case.z.iter().enumerate() {
            let [_, b, _] = columns(&case.r1cs, n, variable);
            honest.iter_mut().zip(b).for_each(|(sum, x)| *sum += *value * x);
        }
        let any: Vec<Fr> = (0..largest).map(|_| search.random.draw()).collect();
        for in_tau in [honest, any] {
            // Nothing else in B, one element, and all of them.
            let alone = (0..in_g2.len()).map(|at| vec![at]);
            let patterns = [Vec::new(), (0..in_g2.len()).collect()].into_iter().chain(alone);
            for pattern in patterns {
                let mut b = Polynomial::monomial(&[(BETA, 1)]);
                b.add(&Polynomial::in_one(TAU, &in_tau), &Fr::one());
                for at in pattern {
                    b.add(&in_g2[at], &search.random.draw());
                }
                let solutions = search.solve(attacked, &g1, &b, e_is_free);
                found.patterns += 1;
                found.accepting += usize::from(solutions.iter().any(|s| !s.lambda.is_zero()));
                found.violating += usize::from(solutions.iter().any(|s| s.violates(case, &in_tau)));
            }
        }
    }
    found
}

/// The polynomials of the points in the files of a ceremony, in the order of these.
struct Published<'a> {
    search: &'a Search<'a>,
    secrets: &'a [Fr],
    in_g1: Vec<Polynomial>,
    in_g2: Vec<Polynomial>,
}

impl Published<'_> {
    /// Compares points with what they should be.
    fn g1(&mut self, found: &[G1Point], expected: Vec<Polynomial>) {
        let points = expected.iter().map(|p| G1Point::generator().mul(&p.at(self.secrets)));
        assert!(points.eq(found.iter().copied()));
        self.in_g1.extend(expected);
    }

    fn g2(&mut self, found: &[G2Point], expected: Vec<Polynomial>) {
        let points = expected.iter().map(|p| G2Point::generator().mul(&p.at(self.secrets)));
        assert!(points.eq(found.iter().copied()));
        self.in_g2.extend(expected);
    }

    /// A vector of a section.
    fn vector(&mut self, section: &Section, number: usize, expected: Vec<Polynomial>) {
        let Vector { group, len, .. } = section.vectors[number];
        match group {
            crate::Group::G1 => self.g1(&section.read(number, len).unwrap(), expected),
            crate::Group::G2 => self.g2(&section.read(number, len).unwrap(), expected),
        }
    }

    fn powers(&mut self, transcript: &Transcript) {
        let one = |secret: usize| Polynomial::monomial(&[(secret, 1)]);
        for (chain, firsts, in_g2) in [
            (
                Chain::Tau,
                &[(None, TAU), (None, TAU), (Some(ALPHA), TAU), (Some(BETA), TAU)][..],
                [TAU, BETA],
            ),
            (Chain::Phi, &[(None, PHI), (None, PSI)], [PHI, PSI]),
        ] {
            let section = transcript.sections(chain).remove(0);
            assert_eq!(section.vectors.len(), firsts.len());
            for (number, (first, base)) in firsts.iter().enumerate() {
                let powers = (0..i16::try_from(section.vectors[number].len).unwrap()).map(|i| {
                    let first = first.map(|secret| (secret, 1));
                    let all: Vec<_> = first.into_iter().chain([(*base, i)]).collect();
                    Polynomial::monomial(&all)
                });
                self.vector(&section, number, powers.collect());
            }
            let Step::Powers(step) = transcript.last_step(chain) else { panic!("powers") };
            let in_g1: &[usize] =
                if chain == Chain::Tau { &[TAU, ALPHA, BETA] } else { &[PHI, PSI] };
            self.g1(&step.in_g1, in_g1.iter().map(|secret| one(*secret)).collect());
            self.g2(&step.in_g2, in_g2.map(one).into());
        }
    }

    fn family(&mut self, transcript: &Transcript, fixed: &[Section]) {
        let Step::Segment { types, ledger } = transcript.last_step(Chain::Segment(1)) else {
            panic!("a segment")
        };
        let (search, half) = (self.search, Fr::from(2u64).inverse().unwrap());
        let over = |secret: usize| Polynomial::monomial(&[(secret, -1)]);
        let sections = transcript.sections(Chain::Segment(1));
        for (kind, (section, fixed)) in sections.iter().zip(fixed).enumerate() {
            let shape = Shape::new(&search.cases[kind].r1cs);
            let [delta, eta] = [0, 1].map(|eta| search.secret(kind, eta));
            let column = |side: usize, j: usize| {
                let all = columns(shape.r1cs, shape.domain, j);
                Polynomial::in_one(TAU, &all[side])
            };
            // c_j t / 2.
            let c_t = |j: usize| column(2, j).times(&Search::vanishing(shape.domain)).scaled(&half);
            let of_l = |j: usize| {
                let mut sum = search.mixed(kind, j);
                sum.add(&c_t(j), &Fr::one());
                sum.times(&over(delta))
            };
            let h = |j| Polynomial::in_one(TAU, &lagrange(2 * shape.domain, 2 * j + 1));
            let variables = |list: &[u32]| list.iter().map(|j| *j as usize).collect::<Vec<_>>();
            let x = variables(&shape.x).into_iter();
            self.vector(section, 0, shape.aux().map(of_l).collect());
            self.vector(section, 1, x.map(|j| c_t(j).times(&over(delta))).collect());
            self.vector(section, 2, (0..shape.domain).map(|j| h(j).times(&over(delta))).collect());
            let d = shape.committed().map(|j| search.mixed(kind, j).times(&over(eta)));
            self.vector(section, 3, d.collect());
            self.vector(fixed, 0, shape.public().map(|j| search.mixed(kind, j)).collect());
            self.vector(fixed, 1, variables(&shape.a).into_iter().map(|j| column(0, j)).collect());
            self.vector(fixed, 2, variables(&shape.b).into_iter().map(|j| column(1, j)).collect());
            let both = [delta, eta].map(|secret| Polynomial::monomial(&[(secret, 1)]));
            self.g1(&types[kind].in_g1, both.to_vec());
            self.g2(&types[kind].in_g2, both.to_vec());
        }
        let ledger = ledger.unwrap();
        self.g1(&[ledger.k], vec![Polynomial::monomial(&[(KAPPA, 1)])]);
        let sizes = crate::genesis::domains(search.largest).into_iter();
        let thetas = sizes.map(|n| Polynomial::in_one(TAU, &lagrange(n, 0)).times(&over(KAPPA)));
        self.g2(&ledger.thetas, thetas.collect());
    }
}

/// The elements of the search are those that a ceremony of the program publishes: with known secrets, each point in its files has the
/// value of a polynomial in the span of them.
#[test]
fn s1_elements_are_those_of_a_ceremony() {
    let cases = cases();
    let largest = cases.iter().map(Case::domain).max().unwrap();
    let mut search = Search { cases: &cases, largest, also: Also::Nothing, random: Random(3) };
    let elements: Vec<Polynomial> = search.in_g1(0).into_iter().map(|(_, p)| p).collect();
    // A ceremony whose secrets are known.
    let (directory, seeds) = (tempfile::tempdir().unwrap(), [1, 2]);
    let powers = powers_of(directory.path(), largest, 2, &seeds);
    let of_powers = check_powers(&powers).unwrap();
    let (types, buses) = types_of(&Squarings, false);
    let (path, plan) = (directory.path().join("family"), plan(buses, false));
    let plan = crate::FamilyPlan { instances: 2, ..plan };
    new_family(&path, plan, &of_powers, None, &types, &|_| {}, &mut |_| {}).unwrap();
    seeds.iter().for_each(|seed| step(&path, *seed));
    let family = verify_family(&open(&path), &of_powers, None, &types, &mut |_| {}).unwrap();
    let mut secrets = vec![Fr::one(); TYPES + 2 * types.len()];
    for seed in seeds.map(Seed::known) {
        let of_types: Vec<usize> = (TYPES..secrets.len()).chain([KAPPA]).collect();
        let (tau, phi) = (&[TAU, ALPHA, BETA][..], &[PHI, PSI][..]);
        for (chain, places) in
            [(Chain::Tau, tau), (Chain::Phi, phi), (Chain::Segment(1), &of_types)]
        {
            let drawn = seed.secrets(chain, places.len());
            places.iter().zip(drawn.iter()).for_each(|(place, x)| secrets[*place] *= x);
        }
    }
    let (in_g1, in_g2) = (Vec::new(), Vec::new());
    let mut published = Published { search: &search, secrets: &secrets, in_g1, in_g2 };
    published.powers(&open(&powers));
    let fixed: Vec<Section> = family.sections.iter().map(|[_, fixed]| fixed.clone()).collect();
    published.family(&open(&path), &fixed);
    // Each follows from the elements of the search; these are independent of one another.
    let Published { in_g1, in_g2, .. } = published;
    assert_eq!(kernel(elements.iter().chain(&in_g1)).len(), in_g1.len());
    let mut elements = search.in_g2();
    let n = i16::try_from(largest).unwrap();
    elements.extend((0..n).map(|i| Polynomial::monomial(&[(TAU, i)])));
    elements.push(Polynomial::monomial(&[(BETA, 1)]));
    let dependent = kernel(&elements).len();
    assert_eq!(kernel(elements.iter().chain(&in_g2)).len(), dependent + in_g2.len());
}

fn cases() -> Vec<Case> {
    Case::of(&Squarings, &Fr::from(3u64))
}

/// With all that a ceremony publishes, and with keys of others over the same powers, each accepted proof has values that satisfy every
/// row.
#[test]
fn s1_combinations_of_published_elements_prove_nothing_false() {
    let cases = cases();
    let mut all = vec![(Also::Nothing, false), (Also::Nothing, true)];
    all.extend([Also::Family, Also::Foreign, Also::Later, Also::Mixed].map(|also| (also, true)));
    for (also, e_is_free) in all {
        let found = search(&cases, also, e_is_free);
        assert!(found.accepting >= cases.len() && found.violating == 0, "{also:?}: {found:?}");
    }
}

/// S5, and the controls of S1: with any of these elements there are false proofs.
#[test]
fn s5_elements_that_must_not_be_published() {
    let cases = cases();
    let controls = [Also::Stolen(0), Also::Stolen(1), Also::SumInL, Also::SharedDelta];
    for (control, e_is_free) in
        controls.map(|also| (also, false)).into_iter().chain([(Also::KappaTau, true)])
    {
        let found = search(&cases, control, e_is_free);
        assert!(found.violating > 0, "{control:?}: {found:?}");
    }
}

/// The same for a circuit with buses.
#[test]
fn s1_of_a_circuit_with_buses() {
    let cases = Case::of(&Shop::new(2), &Shopping::new(2));
    let found = search(&cases, Also::Nothing, true);
    assert!(found.accepting >= cases.len() && found.violating == 0, "{found:?}");
}

/// The commitments T and U bind: no two vectors have the same, since psi in G1 and phi in G2 have degree 1. Control: psi^2 in G1.
#[test]
fn s1_commitments_bind() {
    let cases = cases();
    let largest = cases.iter().map(Case::domain).max().unwrap();
    let mut search = Search { cases: &cases, largest, also: Also::Nothing, random: Random(2) };
    let g1: Vec<Polynomial> = search.in_g1(0).into_iter().map(|(_, element)| element).collect();
    let mut g2 = search.in_g2();
    let n = i16::try_from(largest).unwrap();
    g2.extend((0..n).map(|i| Polynomial::monomial(&[(TAU, i)])));
    g2.push(Polynomial::monomial(&[(BETA, 1)]));
    let committed = |elements: &[Polynomial], secret: usize| -> usize {
        let columns: Vec<Polynomial> = (0..4)
            .flat_map(|i| {
                let power = Polynomial::monomial(&[(secret, 2 * i)]);
                elements.iter().map(move |element| element.times(&power))
            })
            .collect();
        kernel(&columns).len()
    };
    let dependent = kernel(&g2).len();
    assert_eq!(committed(&g1, PSI), 0);
    assert_eq!(committed(&g2, PHI), 4 * dependent);
    let with = [&g1[..], &[Polynomial::monomial(&[(PSI, 2)])]].concat();
    assert!(committed(&with, PSI) > 0);
}
