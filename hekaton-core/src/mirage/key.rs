//! The proving key of one type (spec: mirage#queries): queries and matrices, in memory or in place
//! in a mapped file.

use crate::keys::{KeyFileError, Sections};
use ark_ff::Field;
use hekaton_arith::{Domain, Fr, G1Point, G2Point, Group, Scalars, fr_from_bytes};
use hekaton_circuit::Masking;
use hekaton_circuit::prover::{BusShape, Matrix, VariableLayout};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sizes of a type, in the section `shape`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Shape {
    /// Number of slots s, masks included.
    pub(crate) slots: u64,
    pub(crate) variables: u64,
    pub(crate) constraints: u64,
    /// Size N_c of the evaluation domain.
    pub(crate) domain: u64,
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "ProvingKey::new bounds all sizes by u32::MAX or the length of a section"
)]
impl Shape {
    fn slots(&self) -> usize {
        self.slots as usize
    }

    fn variables(&self) -> usize {
        self.variables as usize
    }

    fn constraints(&self) -> usize {
        self.constraints as usize
    }

    fn domain(&self) -> usize {
        self.domain as usize
    }
}

/// The numbers of a type's variables and entries for buses, in the section `buses`, which other
/// types do not have.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct BusCounts {
    buses: u64,
    parameters: u64,
    pairs: u64,
    marked: u64,
    entries: u64,
    scaled: u64,
}

impl BusCounts {
    /// The counts of a type, if it needs the section.
    pub(crate) fn of(shape: BusShape) -> Option<Self> {
        let BusShape { buses, parameters, pairs, marked, entries, scaled } = shape;
        let [parameters, pairs, marked, entries, scaled] =
            [parameters, pairs, marked, entries, scaled].map(|count| count as u64);
        let counts = Self { buses: buses.into(), parameters, pairs, marked, entries, scaled };
        (shape != BusShape::default()).then_some(counts)
    }

    /// The shape, if no count is above a limit.
    #[allow(clippy::cast_possible_truncation, reason = "bounded by u32::MAX")]
    pub(crate) fn shape(self, limit: u64) -> Option<BusShape> {
        let Self { buses, parameters, pairs, marked, entries, scaled } = self;
        let counts = [parameters, pairs, marked, entries, scaled];
        if buses > 1 || counts.iter().any(|count| *count > limit) {
            return None;
        }
        let [parameters, pairs, marked, entries, scaled] = counts.map(|count| count as usize);
        Some(BusShape { buses: buses == 1, parameters, pairs, marked, entries, scaled })
    }
}

/// The single points of a type, in the section `elements`.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Elements {
    /// The point `[alpha]_1`.
    pub alpha_1: G1Point,
    /// The point `[delta_c]_1`.
    pub delta_1: G1Point,
    /// The point `[eta_c]_1`.
    pub eta_1: G1Point,
    /// The point `[beta]_2`.
    pub beta_2: G2Point,
    /// The point `[delta_c]_2`.
    pub delta_2: G2Point,
}

/// The proving key of one subcircuit type. Sections are used in place; in addition to them, the key
/// holds the Fourier domain (64 bytes per domain element) and the table of distinct coefficients.
#[derive(Debug)]
pub struct ProvingKey {
    sections: Sections,
    id: u64,
    pub(crate) name: String,
    pub(crate) shape: Shape,
    buses: BusShape,
    pub(crate) elements: Elements,
    pub(crate) domain: Domain,
    coefficients: Vec<Fr>,
}

/// A query with points for some of the variables; those whose point would be zero are left out.
#[derive(Clone, Copy, Debug)]
pub struct SparseQuery<'a, G> {
    /// The variables that have a point, in ascending order.
    pub variables: &'a [u32],
    /// Their points.
    pub points: &'a [G],
}

impl<G: Group> SparseQuery<'_, G> {
    /// Computes `sum z_j Q_j` over the variables of the query.
    pub fn evaluate(&self, z: &[Fr]) -> G {
        G::msm_prepared(self.points, &Scalars::select(z, self.variables))
    }

    /// The same, where the values of the variables in `range` are multiples of `factor`, which is not
    /// zero: of small numbers, whose sum takes less, and is multiplied once.
    pub fn evaluate_folded(&self, z: &[Fr], range: Range<usize>, factor: &Fr) -> G {
        let Some(inverse) = factor.inverse() else { return self.evaluate(z) };
        let place = |variable: usize| self.variables.partition_point(|v| (*v as usize) < variable);
        let (start, end) = (place(range.start), place(range.end));
        let inside = self.variables[start..end].iter();
        let small: Vec<Fr> = inside.map(|variable| z[*variable as usize] * inverse).collect();
        let part = |range: Range<usize>| {
            let Self { variables, points } = *self;
            Self { variables: &variables[range.clone()], points: &points[range] }.evaluate(z)
        };
        let folded = G::msm(&self.points[start..end], &small).mul(factor);
        G::sum(&[part(0..start), part(end..self.points.len()), folded])
    }
}

impl ProvingKey {
    /// The kind of key file.
    pub const KIND: &'static str = "proving key";

    /// Creates a key from its sections, whose lengths and indices are checked against each other.
    ///
    /// # Errors
    /// When a section is missing, has the wrong length, or refers to variables out of range.
    pub fn new(name: &str, sections: Sections) -> Result<Self, KeyFileError> {
        let bad = |section: &'static str, why: String| sections.damaged(section, why);
        sections.expect_only(&Self::PARTS.concat())?;
        let shape: Shape = *sections.one("shape")?;
        let elements: Elements = *sections.one("elements")?;
        // Before anything is allocated by a number from the file, the number must match the file's
        // content: the domain has one point of the h query per element.
        let h = sections.get::<G1Point>("h")?.len() as u64;
        if h != shape.domain {
            return Err(bad(
                "h",
                format!("{h} points, expected {}, the size of the domain", shape.domain),
            ));
        }
        let domain = Domain::new(shape.domain()).map_err(|e| bad("shape", e.to_string()))?;
        // Sections refer to variables by u32; more slots than variables would put the offsets of
        // the layout out of range.
        let limit = u64::from(u32::MAX);
        if shape.constraints > shape.domain || shape.variables > limit || shape.slots > limit {
            return Err(bad("shape", format!("inconsistent sizes {shape:?}")));
        }
        let buses = match sections.bytes_of("buses") {
            0 => BusShape::default(),
            _ => {
                let counts = *sections.one::<BusCounts>("buses")?;
                let bad = || bad("buses", format!("inconsistent counts {counts:?}"));
                counts.shape(limit).ok_or_else(bad)?
            }
        };
        let layout = VariableLayout::new(shape.slots(), Masking::Unmasked).with(buses);
        if shape.variables < layout.len() as u64 || shape.constraints < layout.rows() as u64 {
            return Err(bad("shape", format!("inconsistent sizes {shape:?}")));
        }
        // Decoded once, canonically; the matrices refer to them by index.
        let mut coefficients = Vec::new();
        for bytes in sections.get::<[u8; 32]>("coefficients")? {
            coefficients
                .push(fr_from_bytes(bytes).map_err(|e| bad("coefficients", e.to_string()))?);
        }
        // Matrix::row takes the indices 0 and 1 for 1 and -1 without looking them up.
        if coefficients.get(..2) != Some(&[Fr::ONE, -Fr::ONE]) {
            return Err(bad("coefficients", "the table does not start with 1 and -1".into()));
        }
        static KEYS: AtomicU64 = AtomicU64::new(0);
        let (id, name) = (KEYS.fetch_add(1, Ordering::Relaxed), name.to_owned());
        let key = Self { id, name, shape, buses, elements, domain, coefficients, sections };
        key.check_lengths()?;
        // Checking must not keep the whole key resident.
        key.sections.release_all();
        Ok(key)
    }

    /// Checks the lengths of all queries and all indices, so that proving cannot panic or index out
    /// of bounds: all of them come from a file.
    fn check_lengths(&self) -> Result<(), KeyFileError> {
        let bad = |section: &'static str, why: String| Err(self.sections.damaged(section, why));
        let length = |section: &'static str, found: usize, expected: usize| {
            if found == expected {
                Ok(())
            } else {
                bad(section, format!("{found} elements, expected {expected}"))
            }
        };
        let variables = self.shape.variables();
        length("d", self.d_query()?.len(), self.layout().committed().len())?;
        length("l", self.l_query()?.len(), self.layout().auxiliary(variables).len())?;
        length("h", self.h_query()?.len(), self.domain.size())?;
        let sparse = [
            ("a", self.a_query()?.variables, self.a_query()?.points.len()),
            ("b", self.b_query()?.variables, self.b_query()?.points.len()),
            ("x", self.x_query()?.variables, self.x_query()?.points.len()),
        ];
        for (section, indices, points) in sparse {
            length(section, indices.len(), points)?;
            // Selecting scalars by an index out of range would panic.
            if indices.iter().any(|i| *i as usize >= variables) {
                return bad(section, "a variable is out of range".into());
            }
        }
        for (name, matrix) in ["ma", "mb", "mc"].into_iter().zip(self.matrices()?) {
            if !matrix.is_well_formed(self.shape.constraints(), variables) {
                return bad(name, "a row or an index is out of range".into());
            }
        }
        Ok(())
    }

    /// Returns a number that no other key of this process has, for copies of the key on devices.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the order of the variables of a subcircuit (spec: memory-check#variables). A key does
    /// not say which of its slots are masks, and need not.
    pub fn layout(&self) -> VariableLayout {
        VariableLayout::new(self.slots(), Masking::Unmasked).with(self.buses)
    }

    /// Returns the number of variables of a subcircuit.
    pub fn variables(&self) -> usize {
        self.shape.variables()
    }

    /// Returns the evaluation domain. Its size is the smallest 2^k or 3 * 2^k with room for the
    /// constraints, or larger in keys of an earlier setup (spec: mirage#domain).
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the number of constraints, those of the memory check included.
    pub fn constraints(&self) -> usize {
        self.shape.constraints()
    }

    /// Returns the number of entries of the three matrices.
    pub fn entries(&self) -> u64 {
        let bytes: u64 = ["ma", "mb", "mc"].iter().map(|name| self.sections.bytes_of(name)).sum();
        bytes / size_of::<[u32; 2]>() as u64
    }

    /// Returns the number of slots of a subcircuit, masks included.
    pub fn slots(&self) -> usize {
        self.shape.slots()
    }

    /// Returns the single points of the type.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// Returns the total length of all sections in bytes.
    pub fn bytes(&self) -> u64 {
        self.sections.bytes()
    }

    /// The groups of sections that a prover uses one after the other, so that only one has to be
    /// resident at a time.
    pub(crate) const PARTS: [&'static [&'static str]; 6] = [
        &["ma", "mb", "mc", "ma_rows", "mb_rows", "mc_rows", "coefficients"],
        &["h"],
        &["l"],
        &["a", "a_variables"],
        &["b", "b_variables"],
        &["x", "x_variables", "d", "shape", "buses", "elements"],
    ];

    /// Returns the length in bytes of the largest group of sections that a prover uses at once.
    pub fn largest_part(&self) -> u64 {
        let bytes = |part: &&[&str]| part.iter().map(|name| self.sections.bytes_of(name)).sum();
        Self::PARTS.iter().map(bytes).fold(0, u64::max)
    }

    /// From now on, drops each group of sections from memory after its use.
    pub fn release_after_use(&mut self) {
        self.sections.release_after_use();
    }

    /// Marks the matrices as used and not needed soon.
    pub(crate) fn matrices_used(&self) {
        self.sections.used(Self::PARTS[0]);
    }

    /// Returns the sections of the key file.
    pub fn sections(&self) -> &Sections {
        &self.sections
    }

    /// Test double: access to the sections, to replace their contents.
    #[cfg(any(test, feature = "testing"))]
    pub fn sections_mut(&mut self) -> &mut Sections {
        &mut self.sections
    }

    /// Returns the query of A.
    ///
    /// # Errors
    /// When the section is missing.
    pub fn a_query(&self) -> Result<SparseQuery<'_, G1Point>, KeyFileError> {
        Ok(SparseQuery {
            variables: self.sections.get("a_variables")?,
            points: self.sections.get("a")?,
        })
    }

    /// Returns the query of B.
    ///
    /// # Errors
    /// When the section is missing.
    pub fn b_query(&self) -> Result<SparseQuery<'_, G2Point>, KeyFileError> {
        Ok(SparseQuery {
            variables: self.sections.get("b_variables")?,
            points: self.sections.get("b")?,
        })
    }

    /// Returns the query of C over the public, committed and sum variables.
    ///
    /// # Errors
    /// When the section is missing.
    pub fn x_query(&self) -> Result<SparseQuery<'_, G1Point>, KeyFileError> {
        Ok(SparseQuery {
            variables: self.sections.get("x_variables")?,
            points: self.sections.get("x")?,
        })
    }

    /// Returns the query of D: one point per committed variable.
    ///
    /// # Errors
    /// When the section is missing.
    pub fn d_query(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("d")
    }

    /// Returns the query of C over the auxiliary variables.
    ///
    /// # Errors
    /// When the section is missing.
    pub fn l_query(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("l")
    }

    /// Returns the query of the quotient: one point per element of the domain.
    ///
    /// # Errors
    /// When the section is missing.
    pub fn h_query(&self) -> Result<&[G1Point], KeyFileError> {
        self.sections.get("h")
    }

    /// Returns the matrices A, B and C.
    ///
    /// # Errors
    /// When a section is missing.
    pub fn matrices(&self) -> Result<[Matrix<'_>; 3], KeyFileError> {
        let matrix = |starts, entries| -> Result<_, KeyFileError> {
            Ok(Matrix {
                starts: self.sections.get(starts)?,
                entries: self.sections.get(entries)?,
                coefficients: &self.coefficients,
            })
        };
        Ok([matrix("ma_rows", "ma")?, matrix("mb_rows", "mb")?, matrix("mc_rows", "mc")?])
    }
}
