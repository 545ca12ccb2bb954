//! Setup of one type (spec: mirage#setup).

use super::key::Elements;
use super::queries::Queries;
use crate::keys::Sections;
use ark_ff::{Field, One, Zero};
use hekaton_arith::{
    Domain, FixedBase, Fr, G1Point, G2Point, Group, MillerLoop, batch_invert, pairing, powers,
};
use hekaton_circuit::R1cs;
use hekaton_circuit::prover::{Matrix, TypeError, VariablePartition};
use rayon::prelude::*;
use std::ops::Range;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The secrets that all types share.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct SharedSecrets {
    pub(crate) alpha: Fr,
    pub(crate) beta: Fr,
    pub(crate) gamma: Fr,
    pub(crate) tau: Fr,
    pub(crate) kappa: Fr,
}

/// The secrets of one type.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct TypeSecrets {
    pub(crate) delta: Fr,
    pub(crate) eta: Fr,
}

/// Tables of multiples of the generators, shared by the whole setup.
pub(crate) struct Bases {
    g: FixedBase<G1Point>,
    h: FixedBase<G2Point>,
}

/// Number of points that one thread computes at a time.
const CHUNK: usize = 4096;

impl Bases {
    /// Creates tables sized for `expected` multiples.
    pub(crate) fn new(expected: usize) -> Self {
        Self {
            g: FixedBase::new(&G1Point::generator(), expected),
            h: FixedBase::new(&G2Point::generator(), expected),
        }
    }

    pub(crate) fn g1(&self, scalars: &[Fr]) -> Vec<G1Point> {
        scalars.par_chunks(CHUNK).flat_map_iter(|chunk| self.g.mul_each(chunk)).collect()
    }

    pub(crate) fn g2(&self, scalars: &[Fr]) -> Vec<G2Point> {
        scalars.par_chunks(CHUNK).flat_map_iter(|chunk| self.h.mul_each(chunk)).collect()
    }

    pub(crate) fn one_g1(&self, scalar: Fr) -> G1Point {
        self.g.mul_each(&[scalar])[0]
    }

    pub(crate) fn one_g2(&self, scalar: Fr) -> G2Point {
        self.h.mul_each(&[scalar])[0]
    }
}

/// A type's key, and discrete logarithms and points for the aggregation key.
pub(crate) struct TypeOutput {
    pub(crate) sections: Sections,
    /// The quotients p_j / gamma for the public variables, that is, the discrete logarithms of
    /// IC_j.
    pub(crate) ic: Zeroizing<Vec<Fr>>,
    /// The discrete logarithm of Theta_c.
    pub(crate) theta: Zeroizing<Fr>,
    pub(crate) theta_2: G2Point,
}

/// Returns `L_j(tau)` for all j on the domain (shift 1) or its coset. tau must be on neither
/// (spec: mirage#asserts).
fn lagrange(domain: &Domain, tau: Fr, shift: Fr) -> Vec<Fr> {
    let n = domain.size();
    let shift_power = shift.pow([n as u64]);
    // L_j(tau) = (tau^N - s^N) / (N s^N) * p / (tau - p), where p = s w^j
    let Some(scale) = (shift_power * Fr::from(n as u64)).inverse() else { return Vec::new() };
    let scale = (tau.pow([n as u64]) - shift_power) * scale;
    let points: Vec<Fr> = powers(domain.root(), n).iter().map(|p| *p * shift).collect();
    let mut out: Vec<Fr> = points.iter().map(|p| tau - p).collect();
    batch_invert(&mut out);
    out.iter_mut().zip(&points).for_each(|(x, p)| *x *= scale * p);
    out
}

/// Returns the column polynomials of a matrix at tau.
fn columns(matrix: &Matrix<'_>, lagrange: &[Fr], variables: usize) -> Vec<Fr> {
    let mut out = vec![Fr::zero(); variables];
    for (row, l) in (0..matrix.rows()).zip(lagrange) {
        for (k, variable) in matrix.terms(row) {
            out[variable] += if k.is_one() { *l } else { k * l };
        }
    }
    out
}

/// Checks that delta_c, eta_c and gamma are pairwise distinct and that no secret is zero
/// (spec: mirage#asserts).
///
/// One delta or eta shared by two types is a total break: an L query of one could stand in a proof
/// of the other.
pub(crate) fn check_secrets(shared: &[Fr], delta_eta: &[Fr], gamma: Fr) -> Result<(), TypeError> {
    if shared.iter().chain(delta_eta).chain([&gamma]).any(Zero::is_zero) {
        return Err(TypeError::Secrets("one of the secrets is zero"));
    }
    let mut all =
        zeroize::Zeroizing::new(delta_eta.iter().copied().chain([gamma]).collect::<Vec<Fr>>());
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(TypeError::Secrets(
            "gamma and the delta and eta of all types are not pairwise distinct",
        ));
    }
    Ok(())
}

/// Returns the inverses of delta, eta, gamma, kappa, t (t + 2) and 2, where `t = tau^N_c - 1`.
fn invert_secrets(
    shared: &SharedSecrets,
    secrets: &TypeSecrets,
    t: Fr,
) -> Result<Zeroizing<[Fr; 6]>, TypeError> {
    // t is zero on the domain, t + 2 on the coset, where the vanishing polynomial is -2: with tau
    // on either, a Lagrange denominator would be zero (spec: mirage#asserts).
    let mut inverses = Zeroizing::new([
        secrets.delta,
        secrets.eta,
        shared.gamma,
        shared.kappa,
        t * (t + Fr::from(2u64)),
        Fr::from(2u64),
    ]);
    if inverses.iter().any(Zero::is_zero) {
        return Err(TypeError::Secrets("one is zero, or tau lies on the domain or its coset"));
    }
    batch_invert(inverses.as_mut());
    Ok(inverses)
}

/// Checks `e(K, Theta) = e([L_0]_1, H)`: Theta is what row 0, the only row of e, makes of it
/// (spec: mirage#kappa, mirage#asserts).
fn check_theta(bases: &Bases, kappa: Fr, p_e: Fr, theta_2: G2Point) -> Result<(), TypeError> {
    let k = bases.one_g1(kappa);
    if k.is_identity()
        || MillerLoop::new(&[k], &[theta_2]).finish()
            != pairing(&bases.one_g1(p_e), &G2Point::generator())
    {
        return Err(TypeError::Secrets("e(K, Theta) is not e([L_0]_1, H)"));
    }
    Ok(())
}

/// The nonzero values of a range of variables: the variables, and the values.
#[allow(clippy::cast_possible_truncation, reason = "a type has at most 2^28 variables")]
fn nonzero(values: &[Fr], range: Range<usize>) -> (Vec<u32>, Zeroizing<Vec<Fr>>) {
    // With room for all: growing would leave copies of the secret values in freed memory.
    let count = range.clone().filter(|j| !values[*j].is_zero()).count();
    let mut found = Zeroizing::new(Vec::with_capacity(count));
    let mut variables = Vec::with_capacity(count);
    for j in range.filter(|j| !values[*j].is_zero()) {
        variables.push(j as u32);
        found.push(values[j]);
    }
    (variables, found)
}

/// Overwrites the parts of the stacks of this pool's threads below the running functions, where functions that
/// have returned left copies of trapdoors: values that are moved, or do not fit registers, are copied
/// there, beyond the reach of `Zeroizing`, and the threads live on. What is built there next would carry
/// them into the heap, in bytes of its own that it does not use: enums and cells that are not full.
pub fn wipe_stacks() {
    rayon::broadcast(|_| wipe_stack());
    // The job above ran deeper in this stack than the frames to be wiped begin.
    wipe_stack();
}

#[inline(never)]
fn wipe_stack() {
    // More than the frames of setup; the kernels below them have larger ones.
    let mut below = [0u8; 1 << 17];
    below.zeroize();
    std::hint::black_box(&below);
}

/// Sets up one type from its checked R1CS. In a frame of its own, which [`wipe_stacks`] overwrites
/// afterwards.
#[inline(never)]
// Above 60 lines: the queries beside each other, since they share the polynomials at tau, which are wiped at the end.
pub(crate) fn setup_type(
    r1cs: R1cs,
    shared: &SharedSecrets,
    secrets: &TypeSecrets,
    bases: &Bases,
) -> Result<TypeOutput, TypeError> {
    let size = || TypeError::Size {
        kind: r1cs.name.clone(),
        constraints: r1cs.constraints(),
        variables: r1cs.variables,
    };
    // spec: mirage#domain: the smallest that fits
    let domain = Domain::new(Domain::size_for(r1cs.constraints())).map_err(|_| size())?;
    let n = domain.size() as u64;
    let SharedSecrets { alpha, beta, tau, .. } = *shared;
    let t = tau.pow([n]) - Fr::ONE;
    let inverses = invert_secrets(shared, secrets, t)?;
    let [delta_inverse, eta_inverse, gamma_inverse, kappa_inverse, _, half] = *inverses;

    // Column polynomials at tau: a_j, b_j, c_j and p_j = beta a_j + alpha b_j + c_j.
    let l = Zeroizing::new(lagrange(&domain, tau, Fr::ONE));
    let [a, b, c] = [0, 1, 2].map(|m| Zeroizing::new(columns(&r1cs.side(m), &l, r1cs.variables)));
    let p: Zeroizing<Vec<Fr>> =
        Zeroizing::new((0..r1cs.variables).map(|j| beta * a[j] + alpha * b[j] + c[j]).collect());
    // Each variable is in one part, so e has no query that C could shift (spec: mirage#parts).
    let parts = VariablePartition::new(&r1cs);
    parts.check(&r1cs.name, r1cs.variables)?;

    let half_t = half * t;
    let scaled = |range: Range<usize>, f: &dyn Fn(usize) -> Fr| {
        Zeroizing::new(range.map(f).collect::<Vec<_>>())
    };
    // spec: mirage#queries: the type's own eta binds D, its own delta binds C.
    let d = scaled(parts.committed.clone(), &|j| p[j] * eta_inverse);
    // spec: mirage#coset: the c part of the quotient is linear in z and goes into L and X, so C z
    // is never transformed; h takes the product m alone.
    let l_query = scaled(parts.aux.clone(), &|j| (p[j] + c[j] * half_t) * delta_inverse);
    let factor = -half_t * delta_inverse;
    let mut h = Zeroizing::new(lagrange(&domain, tau, domain.shift()));
    h.iter_mut().for_each(|x| *x *= factor);
    let (a_variables, a) = nonzero(&a, 0..r1cs.variables);
    let (b_variables, b) = nonzero(&b, 0..r1cs.variables);
    let (x_variables, mut x) = nonzero(&c, 0..parts.e + 1);
    x.iter_mut().for_each(|c| *c *= half_t * delta_inverse);

    let theta = Zeroizing::new(l[0] * kappa_inverse);
    let theta_2 = bases.one_g2(*theta);
    check_theta(bases, shared.kappa, p[parts.e], theta_2)?;

    // Not published: [beta]_1, B in G1 and [Theta]_1. No prover needs them, and soundness is argued
    // without them (spec: mirage#queries).
    let elements = Elements {
        alpha_1: bases.one_g1(shared.alpha),
        delta_1: bases.one_g1(secrets.delta),
        eta_1: bases.one_g1(secrets.eta),
        beta_2: bases.one_g2(shared.beta),
        delta_2: bases.one_g2(secrets.delta),
    };
    let queries = Queries {
        elements,
        d: bases.g1(&d),
        a: (a_variables, bases.g1(&a)),
        b: (b_variables, bases.g2(&b)),
        l: bases.g1(&l_query),
        x: (x_variables, bases.g1(&x)),
        h: bases.g1(&h),
    };
    let ic = scaled(parts.public, &|j| p[j] * gamma_inverse);
    Ok(TypeOutput { sections: queries.into_sections(r1cs), ic, theta, theta_2 })
}
