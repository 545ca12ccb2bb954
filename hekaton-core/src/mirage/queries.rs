//! The points of a type's proving key, and the key that consists of them.

use super::key::{BusCounts, Elements, ProvingKey, Shape};
use crate::keys::{KeyFileError, Sections};
use hekaton_arith::{G1Point, G2Point, fr_to_bytes};
use hekaton_circuit::R1cs;
use hekaton_circuit::prover::Matrices;

/// The points of a type's proving key, apart from the secrets that they were computed with (spec: mirage#queries).
/// Sparse queries have their variables in ascending order.
#[derive(Clone, Debug)]
pub struct Queries {
    /// The single points.
    pub elements: Elements,
    /// The query of D: a point per committed variable.
    pub d: Vec<G1Point>,
    /// The query of A: a point per variable whose column of the matrix A is not zero.
    pub a: (Vec<u32>, Vec<G1Point>),
    /// The query of B, for the matrix B.
    pub b: (Vec<u32>, Vec<G2Point>),
    /// The query of C: a point per auxiliary variable.
    pub l: Vec<G1Point>,
    /// The query of C over the public and committed variables and the sum, for the matrix C.
    pub x: (Vec<u32>, Vec<G1Point>),
    /// The query of the quotient: a point per element of the domain.
    pub h: Vec<G1Point>,
}

impl Queries {
    /// The sections of the proving key of a type with these queries.
    pub(super) fn into_sections(self, r1cs: R1cs) -> Sections {
        let mut sections = Sections::new(ProvingKey::KIND);
        let shape = Shape {
            slots: r1cs.layout.slots() as u64,
            variables: r1cs.variables as u64,
            constraints: r1cs.constraints() as u64,
            domain: self.h.len() as u64,
        };
        sections.push("shape", vec![shape]);
        if let Some(counts) = BusCounts::of(r1cs.layout.shape()) {
            sections.push("buses", vec![counts]);
        }
        sections.push("elements", vec![self.elements]);
        push_matrices(&mut sections, r1cs.matrices);
        sections.push("d", self.d);
        sections.push("a_variables", self.a.0);
        sections.push("a", self.a.1);
        sections.push("b_variables", self.b.0);
        sections.push("b", self.b.1);
        sections.push("l", self.l);
        sections.push("x_variables", self.x.0);
        sections.push("x", self.x.1);
        sections.push("h", self.h);
        sections
    }
}

impl ProvingKey {
    /// The key of a type with these queries, which a ceremony has made.
    ///
    /// # Errors
    /// When the queries do not fit the type.
    pub fn of_queries(r1cs: R1cs, queries: Queries) -> Result<Self, KeyFileError> {
        let name = r1cs.name.clone();
        Self::new(&name, queries.into_sections(r1cs))
    }
}

/// Adds the three matrices and the table of their coefficients.
fn push_matrices(sections: &mut Sections, matrices: Matrices) {
    sections.push("coefficients", matrices.coefficients.iter().map(fr_to_bytes).collect());
    let names = [("ma_rows", "ma"), ("mb_rows", "mb"), ("mc_rows", "mc")];
    for ((rows, entries), matrix) in names.into_iter().zip(matrices.sides) {
        sections.push(rows, matrix.starts);
        sections.push(entries, matrix.entries);
    }
}
