//! The proving key of a type against its matrices (spec: mirage#queries).

mod columns;

use super::checker::{Checker, point_of, random, randoms, sparse};
use super::relation::Relation;
use super::report::KeyCheckError;
use super::rows::{Combination, Rows};
use super::shared::Shared;
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop, pairing};
use hekaton_circuit::prover::{Matrix, VariableLayout};
use hekaton_core::keys::KeyFileError;
use hekaton_core::mirage::{ProvingKey, SparseQuery};
use std::collections::BTreeMap;

/// The largest number of rows of a type whose points of D and L are all compared with their columns, which
/// takes a multiplication of full size for each row of C. Only provers use these points. In a larger type,
/// those for variables in C are reported as not covered.
const ALL_ROWS: usize = 1 << 14;

/// A type whose queries are those of its matrices, for relations with other elements.
pub(super) struct TypeCheck<'a> {
    /// The number of the type.
    pub(super) kind: usize,
    pub(super) key: &'a ProvingKey,
    pub(super) layout: VariableLayout,
    pub(super) a: SparseQuery<'a, G1Point>,
    pub(super) b: SparseQuery<'a, G2Point>,
    pub(super) gamma: G2Point,
    k: G1Point,
    delta: G2Point,
    eta: G2Point,
    theta: G2Point,
    /// For A, B and C: the variables that occur.
    used: [Vec<bool>; 3],
    /// A random factor for each variable.
    random: Vec<Fr>,
    /// The entries of C for public variables: rows, variables and coefficients.
    pub(super) public_c: Vec<(usize, usize, Fr)>,
    /// Equations with a term in HQ, to be checked together.
    pending: Vec<Pending>,
    /// The sums of AQ and BQ with the random factors, over the variables whose D or L is compared.
    sums: (G1Point, G2Point),
}

/// An equation `sum e(a_i, b_i) + e(HQ(p), delta) = 0`, where HQ(p) is `-p(tau) t / (2 delta)` for a
/// polynomial p, by its values on the coset and the values on the domain of a part of it. HQ takes most
/// of the time of a check, so that all equations of a type are checked as one.
struct Pending {
    relation: Relation,
    pairs: Vec<(G1Point, G2Point)>,
    on_coset: Vec<Fr>,
    on_domain: Vec<Fr>,
}

impl TypeCheck<'_> {
    /// Reports whether D or L of a variable is not compared with its column: the type is large, and the
    /// variable is in C.
    fn is_apart(&self, variable: usize) -> bool {
        self.key.constraints() > ALL_ROWS && self.used[2][variable]
    }

    /// Reports whether a variable is in a row.
    pub(super) fn is_used(&self, variable: usize) -> bool {
        self.used.iter().any(|used| used[variable])
    }
}

/// Reports whether a row has exactly these variables, each with the coefficient 1.
fn same_row(matrix: &Matrix<'_>, row: usize, mut expected: Vec<usize>) -> bool {
    let mut variables: Vec<usize> = matrix.terms(row).map(|(_, variable)| variable).collect();
    variables.sort_unstable();
    expected.sort_unstable();
    variables == expected && matrix.terms(row).all(|(k, _)| k == Fr::ONE)
}

/// Reports whether the matrices begin with the rows of the memory check, and its variables are in no
/// other rows (spec: memory-check#rows, buses#rows). The relations for Theta, St and Sb are about these
/// rows.
fn has_memory_rows(layout: &VariableLayout, [a, b, c]: [&Matrix<'_>; 3]) -> bool {
    let (g, one, sum) = (layout.g(), VariableLayout::ONE, layout.sum());
    let zero = same_row(a, VariableLayout::SUM_ROW, layout.inverses().collect())
        && same_row(b, VariableLayout::SUM_ROW, vec![one])
        && same_row(c, VariableLayout::SUM_ROW, vec![sum]);
    let wires = layout.addresses().zip(layout.multiplicities()).zip(layout.committed());
    let slots = layout.inverses().zip(wires).enumerate().all(|(slot, (u, ((x, mu), v)))| {
        let row = layout.fingerprint_row(slot);
        same_row(a, row, vec![u]) && same_row(b, row, vec![g, x, v]) && same_row(c, row, vec![mu])
    });
    let entries = layout.inverses().skip(layout.slots()).enumerate().all(|(entry, u)| {
        let row = layout.entry_row(entry);
        let of_g: Fr = b.terms(row).filter(|(_, v)| *v == g).map(|(k, _)| k).sum();
        same_row(a, row, vec![u]) && of_g == Fr::ONE
    });
    let scaled = layout.scaled().enumerate().all(|(index, y)| {
        let (row, b_v) = (layout.scaled_row(index), layout.bus_challenges().map(|[_, b_v]| b_v));
        b_v.is_some_and(|b_v| same_row(b, row, vec![b_v])) && same_row(c, row, vec![y])
    });
    let reserved = |variable: usize| {
        let public = layout.public().contains(&variable) && variable != one;
        public && !layout.parameters().contains(&variable)
            || variable == sum
            || layout.inverses().contains(&variable)
            || layout.scaled().contains(&variable)
    };
    let author = layout.author_rows(a.rows()).all(|row| {
        [a, b, c].iter().all(|m| !m.entries_of(row).iter().any(|[v, _]| reserved(*v as usize)))
    });
    a.rows() >= layout.rows() && zero && slots && entries && scaled && author
}

impl<'p> Checker<'p> {
    /// Checks that the points of a proving key are reduced and on the curve, without which sums of them are
    /// not defined.
    pub(super) fn on_curve(&self, key: &ProvingKey) -> Result<(), KeyCheckError> {
        let e = key.elements();
        self.find_off_curve("elements", &[e.alpha_1, e.delta_1, e.eta_1])?;
        self.find_off_curve("elements", &[e.beta_2, e.delta_2])?;
        self.find_off_curve("a", key.a_query()?.points)?;
        self.find_off_curve("x", key.x_query()?.points)?;
        self.find_off_curve("d", key.d_query()?)?;
        self.find_off_curve("l", key.l_query()?)?;
        self.find_off_curve("h", key.h_query()?)?;
        self.find_off_curve("b", key.b_query()?.points)
    }

    /// Checks the points of a proving key.
    pub(super) fn type_points(&mut self, key: &ProvingKey) -> Result<(), KeyCheckError> {
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

    /// Checks that alpha, beta, delta and eta agree between groups, types and files
    /// (spec: mirage#setup).
    pub(super) fn shared_elements(
        &mut self,
        keys: &Shared<'_>,
        kind: usize,
    ) -> Result<(), KeyCheckError> {
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let e = keys.types[kind].elements();
        let [delta, eta, _] = keys.elements[kind];
        // It is not 1, which the readers of keys refuse: so neither alpha nor beta is zero.
        let constant = pairing(&e.alpha_1, &e.beta_2);
        self.relation(Relation::Constant, constant == keys.alpha_beta)?;
        let first = keys.types[0].elements();
        let shared = e.alpha_1 == first.alpha_1 && e.beta_2 == first.beta_2;
        self.relation(Relation::Shared, shared)?;
        self.relation(Relation::Delta, e.delta_2 == delta)?;
        self.equal(Relation::DeltaGroups, &[(e.delta_1, h)], &[(g, delta)])?;
        self.equal(Relation::EtaGroups, &[(e.eta_1, h)], &[(g, eta)])
    }

    /// Computes the products of all rows with an assignment.
    fn rows(&self, matrix: &Matrix<'_>, z: &[Fr]) -> Vec<Fr> {
        let part = matrix.rows().div_ceil(self.pool.threads()).max(1);
        let parts = (0..matrix.rows()).step_by(part).collect();
        let products = |start: usize| -> Vec<Fr> {
            (start..(start + part).min(matrix.rows())).map(|row| matrix.row(row, z)).collect()
        };
        self.pool.map(parts, products).concat()
    }

    /// Adds a multiple of a vector to another one, which may be shorter, on all threads.
    fn add_multiple(&self, sum: &mut Vec<Fr>, values: &[Fr], factor: Fr) {
        sum.resize(sum.len().max(values.len()), Fr::zero());
        let part = values.len().div_ceil(self.pool.threads()).max(1);
        let parts = sum.chunks_mut(part).zip(values.chunks(part)).collect();
        self.pool.map(parts, |(sum, values): (&mut [Fr], &[Fr])| {
            sum.iter_mut().zip(values).for_each(|(x, y)| *x += factor * y);
        });
    }

    /// Brings polynomials from their values on the domain to those on the coset, on all threads.
    fn to_coset<const N: usize>(&self, key: &ProvingKey, values: [Vec<Fr>; N]) -> [Vec<Fr>; N] {
        let moved = self.pool.map(values.into(), |mut values: Vec<Fr>| {
            values.resize(key.domain().size(), Fr::zero());
            key.domain().to_coset(&mut values);
            values
        });
        moved.try_into().expect("the pool returns as many values as it was given")
    }

    /// Evaluates HQ: for a polynomial p by its values on the coset, `-p(tau) t / (2 delta)`
    /// (spec: mirage#coset).
    fn through_h(&self, key: &ProvingKey, on_coset: &[Fr]) -> Result<G1Point, KeyFileError> {
        Ok(self.msm(key.h_query()?, on_coset))
    }

    /// Checks the pending equations as one, with random factors. If that fails, checks them one by one, to
    /// name the first that does not hold.
    pub(super) fn settle(&mut self, kind: &mut TypeCheck<'_>) -> Result<(), KeyCheckError> {
        let mut pending = std::mem::take(&mut kind.pending);
        pending.retain(|equation| self.without != Some(equation.relation));
        let (mut on_coset, mut on_domain, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for (Pending { pairs: own, on_coset: coset, on_domain: domain, .. }, factor) in
            pending.iter().zip(randoms(pending.len())?)
        {
            self.add_multiple(&mut on_coset, coset, factor);
            self.add_multiple(&mut on_domain, domain, factor);
            pairs.extend(own.iter().map(|(a, b)| (a.mul(&factor), *b)));
        }
        pairs.push((self.of_polynomial(kind.key, on_coset, on_domain)?, kind.delta));
        if MillerLoop::of_pairs(pairs.iter().map(|(a, b)| (a, b))).finish().is_identity() {
            return pending.iter().try_for_each(|equation| self.relation(equation.relation, true));
        }
        for Pending { relation, mut pairs, on_coset, on_domain } in pending {
            pairs.push((self.of_polynomial(kind.key, on_coset, on_domain)?, kind.delta));
            self.equal(relation, &pairs, &[])?;
        }
        Ok(())
    }

    /// Evaluates HQ at a polynomial in two parts.
    fn of_polynomial(
        &self,
        key: &ProvingKey,
        mut on_coset: Vec<Fr>,
        on_domain: Vec<Fr>,
    ) -> Result<G1Point, KeyFileError> {
        if !on_domain.is_empty() {
            let [moved] = self.to_coset(key, [on_domain]);
            self.add_multiple(&mut on_coset, &moved, Fr::ONE);
        }
        on_coset.resize(key.domain().size(), Fr::zero());
        self.through_h(key, &on_coset)
    }

    /// Checks A, B, X and Theta, and prepares the other checks of a type.
    pub(super) fn queries<'a>(
        &mut self,
        keys: &Shared<'a>,
        kind: usize,
    ) -> Result<TypeCheck<'a>, KeyCheckError> {
        let key = &keys.types[kind];
        let (variables, layout) = (key.variables(), key.layout());
        let [ma, mb, mc] = key.matrices()?;
        self.relation(Relation::MemoryRows, has_memory_rows(&layout, [&ma, &mb, &mc]))?;
        let (a, b, x) = (key.a_query()?, key.b_query()?, key.x_query()?);
        let used = [&ma, &mb, &mc].map(|m| {
            let mut used = vec![false; variables];
            m.entries.iter().for_each(|[variable, _]| used[*variable as usize] = true);
            used
        });
        // A query lists exactly the variables whose column is not zero.
        let listed = |used: &[bool], end: usize, list: &[u32]| {
            (0..end).filter(|j| used[*j]).eq(list.iter().map(|j| *j as usize))
        };
        let same = listed(&used[0], variables, a.variables)
            && listed(&used[1], variables, b.variables)
            && listed(&used[2], layout.sum() + 1, x.variables);
        // `Variables` also ensures the ascending lists that the sums below need.
        self.relation(Relation::Variables, same)?;
        let public = 0..layout.public().end;
        let public_c = (0..mc.rows()).flat_map(|row| mc.terms(row).map(move |(k, v)| (row, v, k)));
        let [delta, eta, theta] = keys.elements[kind];
        let random = randoms(variables)?;
        let mut of_type = TypeCheck {
            kind,
            key,
            layout,
            a,
            b,
            gamma: *keys.gamma,
            k: keys.k,
            delta,
            eta,
            theta,
            used,
            random,
            public_c: public_c.filter(|(_, v, _)| public.contains(v)).collect(),
            pending: Vec::new(),
            sums: (G1Point::IDENTITY, G2Point::IDENTITY),
        };
        self.no_infinity(&of_type, x.points)?;
        self.columns_of_all(&mut of_type, [&ma, &mb, &mc])?;
        self.theta(&of_type)?;
        Ok(of_type)
    }

    /// Checks that no point of the queries is at infinity. Only variables in no row have no point.
    fn no_infinity(&mut self, kind: &TypeCheck<'_>, x: &[G1Point]) -> Result<(), KeyCheckError> {
        let never = |_| false;
        self.proper("a", kind.a.points, never)?;
        self.proper("b", kind.b.points, never)?;
        self.proper("x", x, never)?;
        self.proper("d", kind.key.d_query()?, never)?;
        self.proper("h", kind.key.h_query()?, never)?;
        let first = kind.layout.auxiliary(kind.key.variables()).start;
        self.proper("l", kind.key.l_query()?, |i| !kind.is_used(first + i))
    }

    /// Checks Theta: u of a slot is in row 0 and its own, where x of B is alone; and all u are in row 0
    /// and in the rows of g (spec: memory-check#rows, buses#rows).
    fn theta(&mut self, kind: &TypeCheck<'_>) -> Result<(), KeyCheckError> {
        let layout = &kind.layout;
        let variables = kind.key.variables();
        if layout.inverses().is_empty() {
            // Theta times K is L_0 alone, which no query has without slots and entries.
            let name = kind.key.name();
            self.report.not_covered.push(format!("type '{name}': Theta, as it has no slots"));
            return Ok(());
        }
        let (r, of_all) = (randoms(layout.slots())?, random()?);
        let mut of_u = vec![of_all; layout.inverses().len()];
        of_u.iter_mut().zip(&r).for_each(|(u, r)| *u += r);
        let sum: Fr = of_u.iter().sum();
        let of_u = sparse(variables, layout.inverses().zip(of_u));
        let of_x = layout.addresses().zip(r).chain([(layout.g(), of_all)]);
        let of_x = sparse(variables, of_x);
        let (g, h) = (G1Point::generator(), G2Point::generator());
        let u = self.sum(&kind.a, layout.inverses(), &of_u);
        let x = self.sum(&kind.b, 0..layout.public().end, &of_x);
        let left = [(kind.k.mul(&sum), kind.theta), (g, x)];
        self.equal(Relation::Theta, &left, &[(u, h)])
    }

    /// Traces the rows of C that matter back to columns of A and B.
    pub(super) fn trace<'a>(&self, kind: &TypeCheck<'a>) -> Result<Rows<'a>, KeyCheckError> {
        let [ma, mb, mc] = kind.key.matrices()?;
        let all = mc.rows() <= ALL_ROWS;
        let mut with_public = vec![false; mc.rows()];
        kind.public_c.iter().for_each(|(row, ..)| with_public[*row] = true);
        Ok(Rows::new([&ma, &mb], kind.key.variables(), |row| {
            with_public[row] || all && !mc.entries_of(row).is_empty()
        }))
    }

    /// Compares D and L with A, B and the columns of C, each at tau expressed through A and B.
    pub(super) fn columns(
        &mut self,
        kind: &mut TypeCheck<'_>,
        rows: &Rows<'_>,
    ) -> Result<(), KeyCheckError> {
        let (key, layout) = (kind.key, kind.layout);
        let variables = key.variables();
        let [_, _, mc] = key.matrices()?;
        let all = mc.rows() <= ALL_ROWS;
        let (committed, aux) = (layout.committed(), layout.auxiliary(variables));
        let (mut r, left_out) = self.compared(kind, rows, &mc);
        let (mut a, mut b) = kind.sums;
        if !left_out.is_empty() {
            let less = sparse(variables, left_out);
            a = a.sub(&self.sum(&kind.a, 0..variables, &less));
            b = b.sub(&self.sum(&kind.b, 0..variables, &less));
        }
        let d = self.msm(key.d_query()?, &r[committed]);
        let l = self.msm(key.l_query()?, &r[aux.clone()]);
        let e = key.elements();
        let (mut pairs, mut quotient, mut in_l) = (Vec::new(), Vec::new(), Vec::new());
        if all {
            let combination = rows.combine(self.rows(&mc, &r));
            let c = combination.expect("only rows that were traced back have a factor");
            (pairs, quotient) = self.value(kind, rows, &c);
            // HQ takes the part c t / 2 off L, which D does not have.
            r[..aux.start].fill(Fr::zero());
            in_l = self.rows(&mc, &r);
        }
        pairs.extend([(a, e.beta_2), (e.alpha_1, b)]);
        pairs.iter_mut().for_each(|(a, _)| *a = a.neg());
        pairs.extend([(d, kind.eta), (l, kind.delta)]);
        let mut on_domain = in_l;
        self.add_multiple(&mut on_domain, &quotient, -Fr::from(2u64));
        kind.pending.push(Pending {
            relation: Relation::Queries,
            pairs,
            on_coset: Vec::new(),
            on_domain,
        });
        self.settle(kind)
    }

    /// Returns the random factor of each variable whose D or L is compared, zero for all others, and the
    /// variables that are left out of the sums of the type with their factors. Reports what is not compared.
    fn compared(
        &mut self,
        kind: &mut TypeCheck<'_>,
        rows: &Rows<'_>,
        mc: &Matrix<'_>,
    ) -> (Vec<Fr>, Vec<(usize, Fr)>) {
        let (key, layout) = (kind.key, kind.layout);
        let variables = key.variables();
        let (committed, aux) = (layout.committed(), layout.auxiliary(variables));
        let mut r = std::mem::take(&mut kind.random);
        r[..committed.start].fill(Fr::zero());
        // e has neither D nor L, and neither a column of A nor one of B.
        r[layout.sum()] = Fr::zero();
        let apart: Vec<usize> =
            (committed.start..variables).filter(|j| kind.is_apart(*j)).collect();
        let mut missing = apart.iter().filter(|j| !r[**j].is_zero()).count();
        apart.into_iter().for_each(|j| r[j] = Fr::zero());
        // Variables in rows of C that could not be traced back are left out, too.
        let all_rows = mc.rows() <= ALL_ROWS;
        let unknown = (0..mc.rows()).filter(|row| all_rows && !rows.is_known(*row));
        let mut left_out = vec![];
        for [variable, _] in unknown.flat_map(|row| mc.entries_of(row)) {
            let factor = std::mem::take(&mut r[*variable as usize]);
            if !factor.is_zero() {
                left_out.push((*variable as usize, factor));
            }
        }
        missing += left_out.len();
        if missing > 0 {
            let (name, all) = (key.name(), committed.len() + aux.len());
            let why = match all_rows {
                true => "rows of C were not traced back".to_owned(),
                false => {
                    format!(
                        "comparing them takes long in a type with more than 2^{} rows",
                        ALL_ROWS.ilog2()
                    )
                }
            };
            let what = format!(
                "type '{name}': {missing} of {all} points of D and L, as {why}; only provers use these \
                 points, and wrong ones make no false proof hold"
            );
            self.report.only_provers.push(what);
        }
        // Only DQ ties eta to the columns: the other relation with eta compares the two groups.
        if r[committed].iter().all(Fr::is_zero) {
            let name = key.name();
            self.report
                .not_covered
                .push(format!("type '{name}': eta, as no point of D is compared"));
        }
        (r, left_out)
    }

    /// The pairs whose product is a combination of rows, but for twice `e(HQ(p), delta)`, and the
    /// polynomial p by its values on the domain, if it is not zero.
    fn value(
        &self,
        kind: &TypeCheck<'_>,
        rows: &Rows<'_>,
        combination: &Combination,
    ) -> (Vec<(G1Point, G2Point)>, Vec<Fr>) {
        let Combination { a, b, theta, products } = combination;
        let all = 0..kind.key.variables();
        let mut pairs = vec![
            (self.sum(&kind.a, all.clone(), a), G2Point::generator()),
            (G1Point::generator(), self.sum(&kind.b, all, b)),
            (kind.k.mul(theta), kind.theta),
        ];
        if products.is_empty() {
            return (pairs, Vec::new());
        }
        // One pairing for each column of B.
        let mut by_column: BTreeMap<usize, (Vec<G1Point>, Vec<Fr>)> = BTreeMap::new();
        for (j, k, factor) in products {
            let (points, factors) = by_column.entry(*k).or_default();
            points.push(point_of(&kind.a, *j));
            factors.push(*factor);
        }
        pairs.extend(
            by_column.into_iter().map(|(k, (points, factors))| {
                (G1Point::msm(&points, &factors), point_of(&kind.b, k))
            }),
        );
        // A product is its rows and t times the quotient, which HQ evaluates with the factor
        // -1 / (2 delta).
        (pairs, rows.quotient(products, kind.key.domain()))
    }

    /// The pairs whose product is a combination of rows.
    pub(super) fn pairs_of(
        &self,
        kind: &TypeCheck<'_>,
        rows: &Rows<'_>,
        combination: &Combination,
    ) -> Result<Vec<(G1Point, G2Point)>, KeyFileError> {
        let (mut pairs, quotient) = self.value(kind, rows, combination);
        if !quotient.is_empty() {
            let quotient = self.of_polynomial(kind.key, Vec::new(), quotient)?;
            pairs.push((quotient.add(&quotient), kind.delta));
        }
        Ok(pairs)
    }
}
