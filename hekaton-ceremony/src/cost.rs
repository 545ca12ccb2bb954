//! Sizes and times of a ceremony: exact numbers of points, and times from a measurement of products on this machine.

use crate::family::Shape;
use crate::genesis::{Chain, Genesis, Origin, PowersGenesis, Subject};
use crate::sections::{CHUNK, Group, Vector, bytes_of, products};
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, powers};
use hekaton_circuit::R1cs;
use std::time::Instant;

/// The number of points that each thread multiplies for a measurement: about 40 ms in G1.
const SAMPLE: usize = CHUNK;

/// A contribution reads, checks and sums up its points, too.
const WITH_CHECKS: f64 = 1.25;

// Measured in products of G1: spec: ceremony#costs.
/// The time of `add`, as a fraction of that of the contribution.
const ADD: f64 = 0.15;
/// The whole check of a row of powers, in products of G1.
const CHECK_OF_POWERS: f64 = 1.1;
/// The whole check of a row of a type.
const CHECK_OF_TYPE: f64 = 1.4;

/// The time of a product on the threads of the current pool, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// In G1.
    pub g1: f64,
    /// In G2.
    pub g2: f64,
}

impl Rates {
    /// Measures this machine, for a fraction of a second.
    pub fn measure() -> Self {
        Self { g1: seconds_a_point::<G1Point>(), g2: seconds_a_point::<G2Point>() }
    }

    fn products(&self, [g1, g2]: [usize; 2]) -> f64 {
        g1 as f64 * self.g1 + g2 as f64 * self.g2
    }

    /// The time of a contribution with these numbers of points of G1 and G2.
    fn contribution(&self, points: [usize; 2]) -> f64 {
        WITH_CHECKS * self.products(points)
    }
}

fn seconds_a_point<G: hekaton_arith::Group>() -> f64 {
    let n = SAMPLE * rayon::current_num_threads();
    // Any scalars of full length, and distinct points, since equal ones take a different code path.
    let scalar = Fr::from(2).inverse().expect("2 is not 0");
    let points = products(&vec![G::generator(); n], &powers(scalar, n));
    let scalars = vec![-scalar; n];
    let times = (0..3).map(|_| {
        let start = Instant::now();
        drop(products(&points, &scalars));
        start.elapsed().as_secs_f64() / n as f64
    });
    // The first time, caches and threads are cold.
    times.fold(f64::INFINITY, f64::min)
}

/// The numbers of points in G1 and G2.
fn points_of<'a>(vectors: impl IntoIterator<Item = &'a Vector>) -> [usize; 2] {
    let mut points = [0; 2];
    for vector in vectors {
        points[usize::from(vector.group == Group::G2)] += vector.len;
    }
    points
}

/// The seconds that a contribution to some chains is expected to take on the threads of the current pool. This measures for a fraction of
/// a second.
pub fn seconds_of_chains(genesis: &Genesis, chains: &[Chain]) -> f64 {
    let sections = chains.iter().flat_map(|chain| genesis.sections(*chain));
    let vectors: Vec<Vector> = sections.flat_map(|(_, vectors)| vectors).collect();
    Rates::measure().contribution(points_of(&vectors))
}

/// The size of a ceremony, and what each step takes.
#[derive(Clone, Debug)]
pub struct StepCost {
    /// The points of G1 and G2 that a contributor multiplies.
    pub points: [usize; 2],
    /// The bytes that a contributor reads, and writes.
    pub bytes: u64,
    /// The time that the coordinator needs to begin, in seconds.
    pub new: f64,
    /// The time of a contribution.
    pub contribute: f64,
    /// The time of its check by the coordinator.
    pub add: f64,
    /// The time of the whole check, for any number of contributions.
    pub verify: f64,
}

/// A type of a family.
#[derive(Clone, Debug)]
pub struct TypeCost {
    /// The name.
    pub name: String,
    /// The number of rows.
    pub rows: usize,
    /// The size of the domain.
    pub domain: usize,
    /// The numbers of points in L, X, H and D.
    pub points: [usize; 4],
}

/// The ceremonies for the keys of a circuit.
#[derive(Clone, Debug)]
pub struct CeremonyCost {
    /// The largest domain, for which powers are needed.
    pub domain: usize,
    /// The largest number of subcircuits.
    pub instances: usize,
    /// The types of the family.
    pub types: Vec<TypeCost>,
    /// The ceremony for powers of just this size.
    pub powers: StepCost,
    /// The ceremony for the family.
    pub family: StepCost,
    /// The disk space of a coordinator of both, in bytes: twice the points, and the keys.
    pub disk: u64,
}

/// Estimates the ceremonies for the keys of a family with these types and at most this number of subcircuits.
pub fn ceremony_cost(types: &[R1cs], instances: usize, rates: &Rates) -> CeremonyCost {
    let shapes: Vec<Shape<'_>> = types.iter().map(Shape::new).collect();
    let mut sizes: Vec<usize> = shapes.iter().map(|shape| shape.domain).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let domain = sizes.last().copied().unwrap_or(1);
    let powers =
        PowersGenesis { domain, instances, starts: [[0; 32]; 2], origin: Origin::Generators };
    let genesis =
        Genesis { nonce: [0; 32], beacon: String::new(), subject: Subject::Powers(powers) };
    let chains = genesis.chains();
    let sections = chains.iter().flat_map(|chain| genesis.sections(*chain));
    let of_powers: Vec<Vector> = sections.flat_map(|(_, vectors)| vectors).collect();
    let step = |points: [usize; 2], bytes, new, rows: f64, each| {
        let contribute = rates.contribution(points);
        StepCost {
            points,
            bytes,
            new,
            contribute,
            add: ADD * contribute,
            verify: rows * each * rates.g1,
        }
    };
    let rows_of_powers = (domain + instances) as f64;
    let powers =
        step(points_of(&of_powers), bytes_of(&of_powers), 0.0, rows_of_powers, CHECK_OF_POWERS);
    let l_x_h_d = |shape: &Shape<'_>| shape.points().iter().sum::<usize>();
    let in_g1: usize = shapes.iter().map(l_x_h_d).sum();
    let bytes = in_g1 as u64 * G1_BYTES;
    let fixed: Vec<Vector> = shapes.iter().flat_map(Shape::fixed).collect();
    let rows: usize = shapes.iter().map(|shape| shape.domain).sum();
    let family = step(
        [in_g1, 0],
        bytes,
        sizes.iter().map(|n| transforms(*n, rates)).sum(),
        rows as f64,
        CHECK_OF_TYPE,
    );
    let of_type = |shape: &Shape<'_>| TypeCost {
        name: shape.r1cs.name.clone(),
        rows: shape.r1cs.constraints(),
        domain: shape.domain,
        points: shape.points(),
    };
    let disk = 2 * (powers.bytes + family.bytes) + 2 * bytes_of(&fixed) + family.bytes;
    let types = shapes.iter().map(of_type).collect();
    CeremonyCost { domain, instances, types, powers, family, disk }
}

/// The bytes of a point of G1.
const G1_BYTES: u64 = <G1Point as hekaton_arith::Group>::UNCOMPRESSED as u64;

/// The time of the transforms of points for a size of domains: of tau, alpha tau and beta tau, of tau in G2, and of tau for twice the size.
fn transforms(n: usize, rates: &Rates) -> f64 {
    let one = |n: usize| n as f64 * (f64::from(n.ilog2()) / 2.0 + 1.0);
    (3.0 * one(n) + one(2 * n)) * rates.g1 + one(n) * rates.g2
}
