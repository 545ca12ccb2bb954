//! Powers of tau, phi and psi: their structure, and contributions to them (spec: ceremony#powers).

use crate::chain::same_pairings;
use crate::check::{Broken, CeremonyError, Check, io, require};
use crate::genesis::Chain;
use crate::membership::Members;
use crate::random::VerifierRandomness;
use crate::record::{Digests, PowersStep};
use crate::sections::{self, Group as Which, Section, Vector, Visit, combination};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use std::io::Write;
use zeroize::Zeroizing;

/// The sums of a vector v with random coefficients r: `sum r_i v_(i+1)` and `sum r_i v_i`, whose quotient is the base of
/// the powers.
#[derive(Debug)]
struct Ratio<G> {
    shifted: G,
    plain: G,
    /// The coefficient of the point before the next piece.
    coefficient: Fr,
    first: G,
    second: Option<G>,
    last: G,
    /// The first higher power that is the generator.
    generator: Option<usize>,
}

impl<G: Group> Ratio<G> {
    fn new() -> Self {
        Self {
            shifted: G::IDENTITY,
            plain: G::IDENTITY,
            coefficient: Fr::zero(),
            first: G::IDENTITY,
            second: None,
            last: G::IDENTITY,
            generator: None,
        }
    }

    fn take(&mut self, start: usize, points: &[G], len: usize, random: &mut VerifierRandomness) {
        let mut coefficients = random.coefficients(points.len());
        // The last point has no successor.
        if let Some(last) = coefficients.last_mut().filter(|_| start + points.len() == len) {
            *last = Fr::zero();
        }
        self.plain = self.plain.add(&combination(points, &coefficients));
        coefficients.insert(0, self.coefficient);
        let next = coefficients.pop();
        self.shifted = self.shifted.add(&combination(points, &coefficients));
        self.coefficient = next.unwrap_or(self.coefficient);
        if start == 0 {
            self.first = points[0];
            self.second = points.get(1).copied();
        }
        self.last = points[points.len() - 1];
        let generator = G::generator();
        let higher = points.iter().skip(usize::from(start == 0));
        let found = higher.enumerate().find(|(_, point)| **point == generator);
        let found = found.map(|(at, _)| start + at + usize::from(start == 0));
        self.generator = self.generator.or(found);
    }
}

/// The check of the powers of a chain: every element of every vector, with one combination for each equation.
#[derive(Debug)]
pub(crate) struct PowersCheck<'a> {
    section: &'a Section,
    g1: Vec<Ratio<G1Point>>,
    g2: Vec<Ratio<G2Point>>,
    members: Members,
    random: VerifierRandomness,
}

impl<'a> PowersCheck<'a> {
    pub(crate) fn new(section: &'a Section) -> Result<Self, CeremonyError> {
        let random = VerifierRandomness::new()?;
        let mut members = Members::new()?;
        members.begin(section);
        let n = section.vectors.len();
        let (g1, g2) =
            ((0..n).map(|_| Ratio::new()).collect(), (0..n).map(|_| Ratio::new()).collect());
        Ok(Self { section, g1, g2, members, random })
    }

    /// Evaluates all equations, once all points are taken. `step` has the single points of the same state; at the start
    /// (`begun` is `false`) all secrets are 1, and so all points are generators.
    pub(crate) fn finish(
        &self,
        chain: Chain,
        step: &PowersStep,
        begun: bool,
    ) -> Result<(), CeremonyError> {
        let section = self.section;
        let at = |what: &str| format!("section '{}', {what}", section.name);
        self.members.finish()?;
        let (g, h) = (G1Point::generator(), G2Point::generator());
        for (number, Vector { name, group, .. }) in section.vectors.iter().enumerate() {
            let (g1, g2) = (&self.g1[number], &self.g2[number]);
            let is_power = !matches!(*name, "alpha_1" | "beta_1");
            let (first, generator) = match group {
                Which::G1 => (g1.first == g, g1.generator),
                Which::G2 => (g2.first == h, g2.generator),
            };
            if is_power {
                require(first, Check::First, || at(name))?;
                let order = !begun || generator.is_none();
                require(order, Check::Order, || at(&format!("point {generator:?} of {name}")))?;
            }
        }
        self.check_end(chain, step)?;
        // e(v_(i+1), H) = e(v_i, [x]_2), all vectors of G1 in one equation; if it fails, each alone, to name one.
        let of_g1 = || self.g1.iter().zip(&section.vectors).filter(|(_, v)| v.group == Which::G1);
        let base_2 = step.in_g2[0];
        let sum = |part: fn(&Ratio<G1Point>) -> G1Point| {
            G1Point::sum(&of_g1().map(|(ratio, _)| part(ratio)).collect::<Vec<_>>())
        };
        if !same_pairings(&[(sum(|r| r.shifted), h)], &[(sum(|r| r.plain), base_2)]) {
            for (ratio, vector) in of_g1() {
                let holds = same_pairings(&[(ratio.shifted, h)], &[(ratio.plain, base_2)]);
                require(holds, Check::Powers, || at(vector.name))?;
            }
            require(false, Check::Powers, || at("all vectors of G1 together"))?;
        }
        // e([x]_1, w_i) = e(G, w_(i+1)) for the vector of G2: of tau, or of psi.
        let base_1 = if chain == Chain::Tau { step.in_g1[0] } else { step.in_g1[1] };
        let two = self.g2.iter().zip(&section.vectors).find(|(_, v)| v.group == Which::G2);
        if let Some((ratio, vector)) = two {
            let holds = same_pairings(&[(base_1, ratio.plain)], &[(g, ratio.shifted)]);
            require(holds, Check::Powers, || at(vector.name))?;
        }
        // tau^2N, which is not published.
        if chain == Chain::Tau && begun {
            let is_one = same_pairings(&[(self.g1[0].last, base_2)], &[(g, h)]);
            require(!is_one, Check::Order, || at("the power after the last one of tau_1"))?;
        }
        Ok(())
    }

    /// Checks that the first powers are those of the last record.
    fn check_end(&self, chain: Chain, step: &PowersStep) -> Result<(), Broken> {
        let [one, two] = step.in_g2;
        let second =
            |ratio: Option<G1Point>, expected: G1Point| ratio.is_none_or(|p| p == expected);
        let holds = match chain {
            Chain::Tau => {
                second(self.g1[0].second, step.in_g1[0])
                    && self.g2[1].second.is_none_or(|point| point == one)
                    && self.g1[2].first == step.in_g1[1]
                    && self.g1[3].first == step.in_g1[2]
            }
            _ => {
                second(self.g1[0].second, step.in_g1[0])
                    && self.g2[1].second.is_none_or(|point| point == two)
            }
        };
        require(holds, Check::End, || format!("section '{}'", self.section.name))
    }

    fn no_identity<G: Group>(
        &self,
        vector: usize,
        start: usize,
        points: &[G],
    ) -> Result<(), CeremonyError> {
        match points.iter().position(Group::is_identity) {
            Some(at) => Err(self.section.broken(Check::Identity, vector, start + at, "")),
            None => Ok(()),
        }
    }
}

impl Visit for PowersCheck<'_> {
    fn g1(&mut self, vector: usize, start: usize, points: &[G1Point]) -> Result<(), CeremonyError> {
        self.no_identity(vector, start, points)?;
        self.members.take_g1(points);
        let len = self.section.vectors[vector].len;
        self.g1[vector].take(start, points, len, &mut self.random);
        Ok(())
    }

    fn g2(&mut self, vector: usize, start: usize, points: &[G2Point]) -> Result<(), CeremonyError> {
        self.no_identity(vector, start, points)?;
        self.members.take_g2(points);
        let len = self.section.vectors[vector].len;
        self.g2[vector].take(start, points, len, &mut self.random);
        Ok(())
    }
}

/// Checks the powers of a section against the single points of their record.
///
/// # Errors
/// The first equation that fails, or the digest.
pub(crate) fn check(
    section: &mut Section,
    chain: Chain,
    step: &PowersStep,
    begun: bool,
) -> Result<(), CeremonyError> {
    let before = section.clone();
    let mut powers = PowersCheck::new(&before)?;
    let digest = section.visit_and_seal(&mut powers)?;
    let at = || format!("section '{}'", before.name);
    require(digest == step.digests.new, Check::Digest, at)?;
    powers.finish(chain, step, begun)
}

/// Checks a section as it is multiplied, and writes the products.
struct Contribution<'a, 'b> {
    check: PowersCheck<'a>,
    /// For each vector the factor of its first point, and that between neighbors.
    factors: Vec<[Zeroizing<Fr>; 2]>,
    out: Output<'b>,
}

/// A section that is being written.
pub(crate) struct Output<'a> {
    pub(crate) file: &'a mut dyn Write,
    pub(crate) path: &'a std::path::Path,
    pub(crate) hasher: blake3::Hasher,
}

impl Output<'_> {
    pub(crate) fn write<G: Group>(&mut self, points: &[G]) -> Result<(), CeremonyError> {
        sections::write(points, self).map_err(io(self.path))
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Contribution<'_, '_> {
    fn multiply<G: Group>(
        &mut self,
        vector: usize,
        start: usize,
        points: &[G],
    ) -> Result<(), CeremonyError> {
        let [first, base] = &self.factors[vector];
        let mut factor = Zeroizing::new(**first * base.pow([start as u64]));
        // With room for all: growing would leave copies of secrets in freed memory.
        let mut factors = Zeroizing::new(Vec::with_capacity(points.len()));
        for _ in points {
            factors.push(*factor);
            *factor *= **base;
        }
        self.out.write(&sections::products(points, &factors))
    }
}

impl Visit for Contribution<'_, '_> {
    fn g1(&mut self, vector: usize, start: usize, points: &[G1Point]) -> Result<(), CeremonyError> {
        self.check.g1(vector, start, points)?;
        self.multiply(vector, start, points)
    }

    fn g2(&mut self, vector: usize, start: usize, points: &[G2Point]) -> Result<(), CeremonyError> {
        self.check.g2(vector, start, points)?;
        self.multiply(vector, start, points)
    }
}

/// Multiplies the powers of a section by powers of secrets, and checks the section at the same time. None of the output may
/// leave the machine unless this returns a step.
pub(crate) fn contribute(
    section: &Section,
    chain: Chain,
    before: &PowersStep,
    begun: bool,
    secrets: &[Fr],
    out: Output<'_>,
) -> Result<PowersStep, CeremonyError> {
    let one = Fr::ONE;
    let factors: Vec<[Fr; 2]> = match (chain, secrets) {
        (Chain::Tau, [tau, alpha, beta]) => {
            vec![[one, *tau], [one, *tau], [*alpha, *tau], [*beta, *tau]]
        }
        (_, [phi, psi]) => vec![[one, *phi], [one, *psi]],
        _ => unreachable!("a contribution to tau has three secrets, one to phi two"),
    };
    let factors = Zeroizing::new(factors);
    let factors = factors.iter().map(|pair| pair.map(Zeroizing::new)).collect();
    let mut pass = Contribution { check: PowersCheck::new(section)?, factors, out };
    let received = section.visit(&mut pass)?;
    let at = || format!("section '{}'", section.name);
    require(received == before.digests.new, Check::Digest, at)?;
    pass.check.finish(chain, before, begun)?;
    let in_g1: Vec<G1Point> =
        before.in_g1.iter().zip(secrets).map(|(point, secret)| point.mul(secret)).collect();
    // Of tau and beta, or of phi and psi.
    let last = &secrets[secrets.len() - 1];
    let in_g2 = [before.in_g2[0].mul(&secrets[0]), before.in_g2[1].mul(last)];
    let digests = Digests { received, new: *pass.out.hasher.finalize().as_bytes() };
    Ok(PowersStep { in_g1, in_g2, digests })
}

/// Writes the powers at the start, all of which are generators, and returns their digest.
pub(crate) fn write_start(
    vectors: &[Vector],
    mut out: Output<'_>,
) -> Result<[u8; 32], CeremonyError> {
    for vector in vectors {
        for start in (0..vector.len).step_by(sections::PIECE) {
            let n = sections::PIECE.min(vector.len - start);
            match vector.group {
                Which::G1 => out.write(&vec![G1Point::generator(); n])?,
                Which::G2 => out.write(&vec![G2Point::generator(); n])?,
            }
        }
    }
    Ok(*out.hasher.finalize().as_bytes())
}
