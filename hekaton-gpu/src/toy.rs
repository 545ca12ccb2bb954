//! Types with random matrices and points, for checks and measurements.

use crate::worker::{MatrixParts, TypeParts};
use ark_bls12_381::Fr;
use ark_ff::{Field, UniformRand};
use hekaton_arith::{Domain, FixedBase, G1Point, G2Point, Group};
use hekaton_core::mirage::{SparseQuery, Sums};
use rand::Rng;

/// A type in whose row i variable `i + 1` is a product of sums of some of the variables before it, and an
/// assignment of it.
#[derive(Debug)]
pub struct Toy {
    variables: usize,
    rows: [(Vec<u32>, Vec<[u32; 2]>); 3],
    coefficients: Vec<Fr>,
    domain: Domain,
    queries: [Vec<u32>; 3],
    points: [Vec<G1Point>; 5],
    points_of_b: Vec<G2Point>,
}

impl Toy {
    /// Creates a type with `rows` rows.
    ///
    /// # Panics
    /// If no domain has their size.
    pub fn new(rows: usize, random: &mut impl Rng) -> Self {
        let variables = rows + 1;
        let mut coefficients = vec![Fr::ONE, -Fr::ONE];
        coefficients.extend((0..20).map(|_| Fr::rand(random)));
        let mut sides = [0, 1, 2].map(|_| (vec![0u32], Vec::new()));
        for row in 0..rows {
            for (side, (starts, entries)) in sides.iter_mut().enumerate() {
                if side == 2 {
                    entries.push([number(row + 1), 0]);
                } else {
                    for _ in 0..random.gen_range(0..4) {
                        // Mostly variables that are close.
                        let back = random.gen_range(0..=row.min(50));
                        let coefficient =
                            random.gen_range(0..coefficients.len().min(4 * (1 + side)));
                        entries.push([number(row - back), number(coefficient)]);
                    }
                }
                starts.push(number(entries.len()));
            }
        }
        let domain = Domain::new(Domain::size_for(rows).max(4)).expect("a size of a domain");
        let mut query = |of: u32| -> Vec<u32> {
            (0..number(variables)).filter(|_| random.gen_range(0..of) > 0).collect()
        };
        let queries = [query(10), query(3), (0..number(variables / 5)).collect()];
        let last = variables - variables / 5;
        let mut points = |count: usize| -> Vec<G1Point> { multiples(count, random) };
        let points = [
            points(queries[0].len()),
            points(queries[2].len()),
            points(last),
            points(domain.size()),
            points(variables / 5),
        ];
        let points_of_b = multiples(queries[1].len(), random);
        Self { variables, rows: sides, coefficients, domain, queries, points, points_of_b }
    }

    /// Returns the parts, as keys have them.
    pub fn parts(&self) -> TypeParts<'_> {
        let matrix = |i: usize| MatrixParts { starts: &self.rows[i].0, entries: &self.rows[i].1 };
        TypeParts {
            variables: self.variables,
            matrices: [matrix(0), matrix(1), matrix(2)],
            coefficients: &self.coefficients,
            domain: &self.domain,
            a: SparseQuery { variables: &self.queries[0], points: &self.points[0] },
            b: SparseQuery { variables: &self.queries[1], points: &self.points_of_b },
            x: SparseQuery { variables: &self.queries[2], points: &self.points[1] },
            l: &self.points[2],
            h: &self.points[3],
            d: &self.points[4],
        }
    }

    /// Returns an assignment that satisfies all rows.
    pub fn assignment(&self, random: &mut impl Rng) -> Vec<Fr> {
        let mut z = vec![Fr::rand(random)];
        for row in 0..self.variables - 1 {
            let product = self.row(0, row, &z) * self.row(1, row, &z);
            z.push(product);
        }
        z
    }

    fn row(&self, side: usize, row: usize, z: &[Fr]) -> Fr {
        let (starts, all) = &self.rows[side];
        let entries = &all[starts[row] as usize..starts[row + 1] as usize];
        entries.iter().map(|[v, k]| self.coefficients[*k as usize] * z[*v as usize]).sum()
    }

    /// Computes the results of a device on the CPU.
    pub fn sums(&self, z: &[Fr]) -> Sums {
        let side = |side: usize| {
            let mut values: Vec<Fr> =
                (0..self.variables - 1).map(|row| self.row(side, row, z)).collect();
            values.resize(self.domain.size(), Fr::default());
            self.domain.to_coset(&mut values);
            values
        };
        let mut product = side(0);
        product.iter_mut().zip(side(1)).for_each(|(a, b)| *a *= b);
        let select = |query: &[u32]| query.iter().map(|i| z[*i as usize]).collect::<Vec<Fr>>();
        let parts = self.parts();
        Sums {
            a: G1Point::msm(parts.a.points, &select(parts.a.variables)),
            b: G2Point::msm(parts.b.points, &select(parts.b.variables)),
            x: G1Point::msm(parts.x.points, &select(parts.x.variables)),
            l: G1Point::msm(parts.l, &z[parts.last()]),
            h: G1Point::msm(parts.h, &product),
        }
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("a small type")
}

/// Random points, of which many come from few by additions.
pub fn multiples<P: Group>(count: usize, random: &mut impl Rng) -> Vec<P> {
    let scalars: Vec<Fr> = (0..count.min(1 << 15)).map(|_| Fr::rand(random)).collect();
    let mut points: Vec<P> = FixedBase::new(&P::generator(), scalars.len()).mul_each(&scalars);
    while points.len() < count {
        let mut more = points.clone();
        let shift = vec![points[points.len() - 1]; points.len()];
        P::batch_add(&mut more, &shift);
        points.extend(more);
    }
    points.truncate(count);
    points
}
