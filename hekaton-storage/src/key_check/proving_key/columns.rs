//! AQ, BQ and XQ against the columns of the matrices: one polynomial each, for a random combination of the
//! variables.
//!
//! For a column `b_k` of B and any combination a of columns of A, let r be the polynomial with the
//! products of their values on the domain: then `r - a b_k` is t times a polynomial, which HQ
//! evaluates, and delta removes the rest. On the coset t is -2. b_k is chosen such that r is known in
//! other ways. The same holds for a column `a_u` and any combination of columns of B.

use super::super::checker::{Checker, point_of, sparse};
use super::super::relation::Relation;
use super::super::report::KeyCheckError;
use super::{Pending, TypeCheck};
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use hekaton_circuit::prover::{Matrix, VariableLayout};

/// The assignment of 1 to one variable, which selects its column.
fn unit(variables: usize, variable: usize) -> Vec<Fr> {
    sparse(variables, [(variable, Fr::ONE)])
}

/// The products of values at the same places.
fn products(x: &[Fr], y: &[Fr]) -> Vec<Fr> {
    x.iter().zip(y).map(|(x, y)| *x * y).collect()
}

impl Checker<'_> {
    /// Compares AQ, BQ and XQ with the columns of the matrices.
    pub(super) fn columns_of_all(
        &mut self,
        kind: &mut TypeCheck<'_>,
        [ma, mb, mc]: [&Matrix<'_>; 3],
    ) -> Result<(), KeyCheckError> {
        self.columns_of_c(kind, mc)?;
        let (of_a, of_b) = (self.rows(ma, &kind.random), self.rows(mb, &kind.random));
        let (sum_a, sum_b) = self.sum_queries(kind);
        let of_k = self.columns_of_a(kind, mb, &of_a, sum_a);
        let of_u = self.columns_of_b(kind, ma, &of_b, sum_b);
        let [on_a, on_b, on_k, on_u] = self.to_coset(kind.key, [of_a, of_b, of_k, of_u]);
        for equation in &mut kind.pending {
            let both = match equation.relation {
                Relation::ColumnsA => products(&on_a, &on_k),
                Relation::ColumnsB => products(&on_b, &on_u),
                _ => continue,
            };
            equation.on_coset = both.into_iter().map(|value| -value).collect();
        }
        if !kind.layout.inverses().is_empty() {
            return Ok(());
        }
        // Without slots and entries: HQ at b is b times HQ at 1.
        let one = G1Point::sum(kind.key.h_query()?);
        self.relation(Relation::ColumnsB, !one.is_identity())?;
        let through = self.through_h(kind.key, &on_b)?;
        self.equal(Relation::ColumnsB, &[(through, G2Point::generator())], &[(one, sum_b)])
    }

    /// Adds the equation for XQ, which takes no column of another matrix.
    fn columns_of_c(&self, kind: &mut TypeCheck<'_>, mc: &Matrix<'_>) -> Result<(), KeyCheckError> {
        let (variables, r) = (kind.key.variables(), &kind.random);
        let x = kind.key.x_query()?;
        let of_x = sparse(variables, x.variables.iter().map(|j| (*j as usize, r[*j as usize])));
        // XQ has the opposite sign of the columns that HQ makes.
        kind.pending.push(Pending {
            relation: Relation::ColumnsC,
            pairs: vec![(self.sum(&x, 0..variables, r), kind.delta)],
            on_coset: Vec::new(),
            on_domain: self.rows(mc, &of_x),
        });
        Ok(())
    }

    /// Returns the sums of AQ and BQ with the random factors of all variables, and keeps those over the
    /// variables whose D or L is compared, for [`columns`](Self::columns).
    fn sum_queries(&self, kind: &mut TypeCheck<'_>) -> (G1Point, G2Point) {
        let (variables, public, r) = (kind.key.variables(), kind.layout.public().end, &kind.random);
        let apart = |j: usize| j < public || kind.is_apart(j);
        let own: Vec<Fr> =
            (0..variables).map(|j| if apart(j) { Fr::zero() } else { r[j] }).collect();
        let others: Vec<Fr> = r.iter().zip(&own).map(|(all, own)| *all - own).collect();
        let all = 0..variables;
        kind.sums = (self.sum(&kind.a, all.clone(), &own), self.sum(&kind.b, all.clone(), &own));
        let sum_a = kind.sums.0.add(&self.sum(&kind.a, all.clone(), &others));
        let sum_b = kind.sums.1.add(&self.sum(&kind.b, all, &others));
        (sum_a, sum_b)
    }

    /// Adds the equation for AQ, and returns the values of the column of B in it: the address of the first
    /// slot is in one row of B, and g in those of all slots and entries. Without either, reports that AQ is
    /// not covered and returns an empty column.
    fn columns_of_a(
        &mut self,
        kind: &mut TypeCheck<'_>,
        mb: &Matrix<'_>,
        of_a: &[Fr],
        sum_a: G1Point,
    ) -> Vec<Fr> {
        let (layout, r) = (kind.layout, &kind.random);
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let single = self.single(kind, mb);
        let Some(k) = single.or_else(|| layout.inverses().next().map(|_| layout.g())) else {
            let name = kind.key.name();
            let what = format!("type '{name}': AQ, as no variable of B is in one row only");
            self.report.not_covered.push(what);
            return Vec::new();
        };
        let of_k = self.rows(mb, &unit(kind.key.variables(), k));
        let known = match single {
            Some(_) => {
                // `single` has counted one entry of the variable.
                let has_k = |row: &usize| mb.terms(*row).any(|(_, variable)| variable == k);
                let row = (0..mb.rows()).find(has_k).expect("the variable is in one row");
                vec![(g.mul(&-of_a[row]), point_of(&kind.b, k))]
            }
            // The row of an entry is its u without row 0.
            None => {
                let of_u = self.sum(&kind.a, layout.inverses(), r);
                let sum: Fr = r[layout.inverses()].iter().sum();
                vec![(of_u.neg(), h), (kind.k.mul(&sum), kind.theta)]
            }
        };
        kind.pending.push(Pending {
            relation: Relation::ColumnsA,
            pairs: [vec![(sum_a, point_of(&kind.b, k))], known].concat(),
            on_coset: Vec::new(),
            on_domain: products(of_a, &of_k),
        });
        of_k
    }

    /// Adds the equation for BQ, and returns the values of the column of A in it: u of the first slot is in
    /// its row and in row 0, which is what it has in addition. Without slots and entries, adds nothing and
    /// returns an empty column.
    fn columns_of_b(
        &self,
        kind: &mut TypeCheck<'_>,
        ma: &Matrix<'_>,
        of_b: &[Fr],
        sum_b: G2Point,
    ) -> Vec<Fr> {
        let layout = kind.layout;
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let Some(u) = layout.inverses().next() else { return Vec::new() };
        let of_u = self.rows(ma, &unit(kind.key.variables(), u));
        let (row, point) = (layout.fingerprint_row(0), point_of(&kind.a, u));
        let (zero, own) = (of_b[VariableLayout::SUM_ROW], of_b[row]);
        let known = match layout.addresses().next() {
            Some(x) => {
                let in_row = g.mul(&(zero - own));
                vec![(point.mul(&-zero), h), (in_row, point_of(&kind.b, x))]
            }
            None => vec![(point.mul(&-own), h), (kind.k.mul(&(own - zero)), kind.theta)],
        };
        kind.pending.push(Pending {
            relation: Relation::ColumnsB,
            pairs: [vec![(point, sum_b)], known].concat(),
            on_coset: Vec::new(),
            on_domain: products(of_b, &of_u),
        });
        of_u
    }

    /// A variable of B that is in one row only: the address of the first slot, if there is one.
    fn single(&self, kind: &TypeCheck<'_>, mb: &Matrix<'_>) -> Option<usize> {
        let mut entries = vec![0u32; kind.key.variables()];
        mb.entries.iter().for_each(|[variable, _]| entries[*variable as usize] += 1);
        let address = kind.layout.addresses().next().filter(|k| entries[*k] == 1);
        address.or_else(|| entries.iter().position(|n| *n == 1))
    }
}
