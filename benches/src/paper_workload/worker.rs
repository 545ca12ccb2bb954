//! The worker of the paper: the MSMs A and B in G1, B in G2, L, H and D, and seven Fourier
//! transforms, all on one thread. Every kernel counts its calls.

use super::Error;
use super::r1cs::{ProveRequest, Subtrace, System};
use ark_ff::Field;
use hekaton_arith::{Domain, FixedBase, Fr, G1Point, G2Point, Group, Scalars, powers};
use std::cell::Cell;

/// The number of times that the kernels have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Multi-scalar multiplications in G1.
    pub g1_msms: usize,
    /// Multi-scalar multiplications in G2.
    pub g2_msms: usize,
    /// Fourier transforms.
    pub transforms: usize,
}

/// The kernels, counted.
#[derive(Debug, Default)]
struct Kernels(Cell<Executed>);

impl Kernels {
    fn count(&self, add: impl FnOnce(&mut Executed)) {
        let mut executed = self.0.get();
        add(&mut executed);
        self.0.set(executed);
    }

    fn g1(&self, bases: &[G1Point], scalars: &Scalars) -> G1Point {
        self.count(|e| e.g1_msms += 1);
        G1Point::msm_prepared(bases, scalars)
    }

    fn g2(&self, bases: &[G2Point], scalars: &Scalars) -> G2Point {
        self.count(|e| e.g2_msms += 1);
        G2Point::msm_prepared(bases, scalars)
    }

    /// One inverse and one forward transform.
    fn to_coset(&self, domain: &Domain, values: &mut [Fr]) {
        self.count(|e| e.transforms += 2);
        domain.to_coset(values);
    }

    /// One inverse transform.
    fn ifft(&self, domain: &Domain, values: &mut [Fr]) {
        self.count(|e| e.transforms += 1);
        domain.ifft(values);
    }
}

/// Bases of MSMs: multiples of the generators.
#[derive(Debug)]
pub struct Bases {
    g1: Vec<G1Point>,
    g2: Vec<G2Point>,
}

impl Bases {
    /// Bases for each of these workers.
    pub fn new<'a>(workers: impl IntoIterator<Item = &'a PaperWorker>) -> Self {
        let lengths = workers.into_iter().map(|w| (w.lengths().iter().sum(), w.b.len()));
        let (g1, g2) = lengths.fold((0, 0), |(a, b), (c, d): (usize, _)| (a.max(c), b.max(d)));
        let scalars = powers(Fr::from(u128::MAX - 158).square(), g1.max(g2));
        Self {
            g1: FixedBase::new(&G1Point::generator(), g1).mul_each(&scalars[..g1]),
            g2: FixedBase::new(&G2Point::generator(), g2).mul_each(&scalars[..g2]),
        }
    }
}

/// The commitment and the elements of what has the shape of a proof.
#[derive(Clone, Copy, Debug)]
pub struct Points {
    /// The commitment D.
    pub d: G1Point,
    /// The element A.
    pub a: G1Point,
    /// The element B.
    pub b: G2Point,
    /// The element C.
    pub c: G1Point,
}

/// A worker for subcircuits of one shape.
#[derive(Debug)]
pub struct PaperWorker {
    /// The constraints.
    pub system: System,
    /// The domain, chosen as in our own setup.
    pub domain: Domain,
    /// The powers of the inverse of the coset's shift.
    unshift: Vec<Fr>,
    /// The variables of the queries: only those that occur have a base.
    a: Vec<u32>,
    b: Vec<u32>,
    l: Vec<u32>,
    kernels: Kernels,
}

impl PaperWorker {
    /// Creates the worker.
    ///
    /// # Errors
    /// If there is no domain of the size.
    pub fn new(system: System) -> Result<Self, Error> {
        let domain = Domain::new(Domain::size_for(system.rows))?;
        let inverse = domain.shift().inverse().ok_or("the shift is zero")?;
        let unshift = powers(inverse, domain.size());
        let (a, b) = (system.occurring(0..1), system.occurring(1..2));
        let mut l = system.occurring(0..3);
        l.retain(|j| *j as usize >= system.committed.end);
        Ok(Self { system, domain, unshift, a, b, l, kernels: Kernels::default() })
    }

    /// The lengths of the queries in G1: A, B, L, H, D.
    pub fn lengths(&self) -> [usize; 5] {
        let h = self.domain.size() - 1;
        [self.a.len(), self.b.len(), self.l.len(), h, self.system.committed.len()]
    }

    /// Returns the number of times that the kernels have run.
    pub fn executed(&self) -> Executed {
        self.kernels.0.get()
    }

    /// The coefficients of the quotient `(a b - c) / t`, by seven transforms.
    pub fn quotient(&self, z: &[Fr]) -> Vec<Fr> {
        let [mut a, mut b, mut c] = self.system.matrices().map(|matrix| {
            let mut values: Vec<Fr> = (0..self.system.rows).map(|i| matrix.row(i, z)).collect();
            values.resize(self.domain.size(), Fr::default());
            values
        });
        for values in [&mut a, &mut b, &mut c] {
            self.kernels.to_coset(&self.domain, values);
        }
        // t is -2 on all points of the coset.
        let factor = (-Fr::from(2u64)).inverse().expect("-2 is not zero");
        a.iter_mut().zip(&b).zip(&c).for_each(|((a, b), c)| *a = (*a * b - c) * factor);
        self.kernels.ifft(&self.domain, &mut a);
        a.iter_mut().zip(&self.unshift).for_each(|(x, unshift)| *x *= unshift);
        a
    }

    /// The work of both rounds for one subcircuit: commit, synthesis of the witness, prove.
    ///
    /// # Errors
    /// If synthesis fails.
    pub fn run(
        &self,
        bases: &Bases,
        trace: &Subtrace,
        request: &ProveRequest,
    ) -> Result<Points, Error> {
        let mut rest = &bases.g1[..];
        let [a_query, b_query, l_query, h_query, d_query] = self.lengths().map(|length| {
            let (query, after) = rest.split_at(length);
            rest = after;
            query
        });
        // Single bases of a key; any points of the groups take as long.
        let (alpha, beta, delta, eta) = (bases.g1[0], bases.g1[1], bases.g1[2], bases.g1[3]);
        let (beta_2, delta_2) = (bases.g2[0], bases.g2[1]);
        let [k, r, s, ..] = request.before;
        let d = self.kernels.g1(d_query, &Scalars::new(&trace.committed)).add(&delta.mul(&k));

        let z = self.system.shape.witness(trace, request)?;
        let h = self.quotient(&z);
        let h = self.kernels.g1(h_query, &Scalars::new(&h[..h_query.len()]));
        let l = self.kernels.g1(l_query, &Scalars::select(&z, &self.l));
        let a = self.kernels.g1(a_query, &Scalars::select(&z, &self.a));
        let a = G1Point::sum(&[alpha, a, delta.mul(&r)]);
        // B is evaluated in both groups, over the same scalars.
        let scalars = Scalars::select(&z, &self.b);
        let b_1 = self.kernels.g1(b_query, &scalars);
        let b_1 = G1Point::sum(&[beta, b_1, delta.mul(&s)]);
        let b = self.kernels.g2(&bases.g2[..self.b.len()], &scalars);
        let b = G2Point::sum(&[beta_2, b, delta_2.mul(&s)]);
        let blinding = [a.mul(&s), b_1.mul(&r), delta.mul(&-(r * s)), eta.mul(&-k)];
        let c = G1Point::sum(&[&[l, h], &blinding[..]].concat());
        Ok(Points { d, a, b, c })
    }
}
