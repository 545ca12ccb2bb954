//! The public parts of the verification equation: IC of a family, and the sums St, Sg, Sb, ST and SV of
//! keys for one layout (spec: memory-check#preprocessed, buses#preprocessed).

use super::checker::Checker;
use super::proving_key::TypeCheck;
use super::relation::Relation;
use super::report::KeyCheckError;
use super::rows::Rows;
use ark_ff::Zero;
use hekaton_arith::{Fr, G1Point};
use hekaton_circuit::prover::VariableLayout;
use hekaton_circuit::{Preprocessed, SlotAccess};
use hekaton_core::ProverKeys;

/// Random combinations of the public sums of a type's instances: for each public variable, the factor
/// with which its IC is in them.
pub(super) struct PublicSums {
    layout: VariableLayout,
    /// The instances, and their random factors.
    instances: Vec<(usize, Fr)>,
    st: Vec<Fr>,
    sb: Vec<Fr>,
    sv: Vec<Fr>,
}

impl PublicSums {
    pub(super) fn new(layout: VariableLayout) -> Self {
        let zero = || vec![Fr::zero(); layout.public().end];
        Self { layout, instances: Vec::new(), st: zero(), sb: zero(), sv: zero() }
    }

    /// Adds an instance with a factor.
    pub(super) fn add(
        &mut self,
        instance: usize,
        factor: Fr,
        slots: &[SlotAccess],
        constants: &Preprocessed<'_>,
    ) {
        self.instances.push((instance, factor));
        let layout = &self.layout;
        self.st[VariableLayout::ONE] += factor;
        for (slot, (x, mu)) in slots.iter().zip(layout.addresses().zip(layout.multiplicities())) {
            self.sb[x] += factor * Fr::from(slot.address);
            self.st[mu] += factor * Fr::from(slot.multiplicity);
        }
        for (value, variable) in constants.parameters.iter().zip(layout.parameters()) {
            self.st[variable] += factor * value;
        }
        for ([key, value], variable) in constants.pairs.iter().zip(layout.pairs()) {
            self.st[variable] += factor * key;
            self.sv[variable] += factor * value;
        }
        if let Some([_, b_v]) = layout.bus_challenges() {
            self.sv[b_v] += factor;
        }
    }

    /// The combination of the instances' points.
    fn of(&self, points: &[G1Point]) -> (Vec<G1Point>, Vec<Fr>) {
        self.instances.iter().map(|(i, factor)| (points[*i], *factor)).unzip()
    }
}

impl Checker<'_> {
    /// Checks the points of an aggregation key that belong to a type: Sg and ST, and, with sums over
    /// the layout, St, Sb and SV of its instances.
    pub(super) fn instances(
        &mut self,
        keys: &ProverKeys,
        sums: Option<&PublicSums>,
        kind: &TypeCheck<'_>,
        rows: &Rows<'_>,
    ) -> Result<(), KeyCheckError> {
        let (key, layout) = (&keys.aggregation, &kind.layout);
        let one = |variable: usize| unit(layout.public().end, variable);
        let sg = key.sg()?[kind.kind];
        self.public(Relation::Sg, kind, rows, ("sg", &[sg]), (sg, one(layout.g())))?;
        let buses = key.buses()?;
        if let (Some(buses), Some([b_t, _])) = (buses, layout.bus_challenges()) {
            let tag = buses.tags[kind.kind];
            self.public(Relation::Tags, kind, rows, ("stag", &[tag]), (tag, one(b_t)))?;
        }
        let Some(sums) = sums else { return Ok(()) };
        let mut lists = vec![
            (Relation::Sb, "sb", key.sb()?, &sums.sb),
            (Relation::St, "st", key.st()?, &sums.st),
        ];
        if let Some(buses) = buses {
            lists.push((Relation::Values, "sv", buses.values, &sums.sv));
        }
        for (relation, section, points, factors) in lists {
            let (points, r) = sums.of(points);
            let sum = self.msm(&points, &r);
            self.public(relation, kind, rows, (section, &points), (sum, factors.clone()))?;
        }
        Ok(())
    }

    /// Checks IC of a type of a family.
    pub(super) fn family_public(
        &mut self,
        ic: &[G1Point],
        kind: &TypeCheck<'_>,
        rows: &Rows<'_>,
    ) -> Result<(), KeyCheckError> {
        self.proper("ic", ic, |variable| !kind.is_used(variable))?;
        let r = super::checker::randoms(ic.len())?;
        let multiplicities = kind.layout.multiplicities();
        let (mut of_mu, mut of_others) = (vec![Fr::zero(); ic.len()], r.clone());
        of_mu[multiplicities.clone()].copy_from_slice(&r[multiplicities.clone()]);
        of_others[multiplicities].fill(Fr::zero());
        for (relation, factors) in [(Relation::Ic, of_others), (Relation::IcMu, of_mu)] {
            let sum = self.msm(ic, &factors);
            self.public(relation, kind, rows, ("ic", &[]), (sum, factors))?;
        }
        Ok(())
    }

    /// Checks that a point is the combination of public points IC with these factors, where
    /// `gamma IC_j = beta a_j + alpha b_j + c_j`. `points` of a section are at infinity only if all
    /// their variables are in no row.
    fn public(
        &mut self,
        relation: Relation,
        kind: &TypeCheck<'_>,
        rows: &Rows<'_>,
        (section, points): (&'static str, &[G1Point]),
        (point, mut factors): (G1Point, Vec<Fr>),
    ) -> Result<(), KeyCheckError> {
        let nothing = (0..factors.len()).all(|j| factors[j].is_zero() || !kind.is_used(j));
        // An instance whose slots are all unused has no addresses.
        let addresses = relation == Relation::Sb;
        self.proper(section, points, |_| nothing || addresses)?;
        let mut of_c = vec![Fr::zero(); kind.key.constraints()];
        let mut has_c = false;
        for (row, variable, k) in &kind.public_c {
            let factor = factors[*variable];
            if !factor.is_zero() {
                of_c[*row] += factor * k;
                has_c = true;
            }
        }
        let mut right = Vec::new();
        if has_c {
            match rows.combine(of_c) {
                Some(combination) => right = self.pairs_of(kind, rows, &combination)?,
                None => {
                    let name = kind.key.name();
                    let what = format!("type '{name}': section '{section}', '{relation}'");
                    self.report.not_covered.push(what);
                    return Ok(());
                }
            }
        }
        factors.resize(kind.key.variables(), Fr::zero());
        let public = 0..kind.layout.public().end;
        let e = kind.key.elements();
        let (a, b) =
            (self.sum(&kind.a, public.clone(), &factors), self.sum(&kind.b, public, &factors));
        right.extend([(a, e.beta_2), (e.alpha_1, b)]);
        self.equal(relation, &[(point, kind.gamma)], &right)
    }
}

/// A vector with a 1 in one place.
fn unit(len: usize, at: usize) -> Vec<Fr> {
    super::checker::sparse(len, [(at, Fr::from(1u64))])
}
