//! The R1CS of a type, its digest, and the first difference between two of them. Keys are bound to the digests of
//! their types (spec: verifier#type-digests).

use crate::memory::variables::{BusShape, VariableLayout};
use crate::synthesis::matrix::{Matrices, Matrix};
use ark_ff::Zero;
use hekaton_arith::fr_to_bytes;

/// The R1CS of a type: three sparse matrices over the variables of a [`VariableLayout`].
#[derive(Clone, Debug)]
pub struct R1cs {
    /// The name of the type.
    pub name: String,
    /// The order of the variables and rows.
    pub layout: VariableLayout,
    /// The number of variables, the author's included.
    pub variables: usize,
    /// The matrices A, B and C.
    pub matrices: Matrices,
}

/// The number of bytes of rows that are collected before they are hashed. BLAKE3 hashes pieces of this
/// length in parallel lanes, and a row at a time in one.
const HASHED_AT_ONCE: usize = 1 << 17;

/// The first difference between two R1CS of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum R1csDifference {
    /// The number of slots differs.
    Slots(usize, usize),
    /// The shape for buses differs: the numbers of marked values, and of entries.
    Buses {
        /// Expected.
        expected: [usize; 2],
        /// Found.
        found: [usize; 2],
    },
    /// The first of the author's constraints that differs, counted from 0; it may be missing in one of the two.
    Row(usize),
    /// The first row of the memory check that differs.
    MemoryRow(usize),
    /// All rows are equal, but the number of variables differs.
    Variables(usize, usize),
}

impl std::fmt::Display for R1csDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Slots(expected, found) => write!(f, "{expected} slots there, {found} here"),
            Self::Buses { expected: [marked, entries], found } => write!(
                f,
                "{marked} marked values and {entries} bus entries there, {} and {} here",
                found[0], found[1]
            ),
            Self::Row(row) => {
                write!(f, "the first constraint that differs is {row}, counted from 0")
            }
            Self::MemoryRow(row) => {
                write!(f, "the first row that differs is {row}, of the memory check")
            }
            Self::Variables(expected, found) => {
                write!(f, "{expected} variables there, {found} here")
            }
        }
    }
}

impl R1csDifference {
    /// The difference of two types of this shape whose first different row is `row`.
    pub fn of_row(layout: &VariableLayout, row: usize) -> Self {
        layout.author_row(row).map_or(Self::MemoryRow(row), Self::Row)
    }

    /// The difference between the shapes for buses of two types.
    pub fn of_shapes(expected: &VariableLayout, found: &VariableLayout) -> Option<Self> {
        let counts = |layout: &VariableLayout| [layout.shape().marked, layout.shape().entries];
        (expected.shape() != found.shape())
            .then(|| Self::Buses { expected: counts(expected), found: counts(found) })
    }
}

/// The digest of a list of types: of their names and the [digests](R1cs::digest) of their constraints, in the order of the
/// list (docs/formats.md, "Digest of a type").
pub fn digest_of_types<'a>(types: impl IntoIterator<Item = (&'a str, [u8; 32])>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 types of a family");
    for (name, r1cs) in types {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(&r1cs);
    }
    *hasher.finalize().as_bytes()
}

impl R1cs {
    /// The number of constraints.
    pub fn constraints(&self) -> usize {
        self.side(0).rows()
    }

    /// One of the matrices: 0 for A to 2 for C.
    pub fn side(&self, side: usize) -> Matrix<'_> {
        self.matrices.side(side)
    }

    /// The digest of the matrices, in canonical form: of every row the variables in ascending order
    /// with their coefficients (docs/formats.md, "Digest of a type").
    pub fn digest(&self) -> [u8; 32] {
        // Types of circuits without buses and parameters keep the digests that they had before these existed,
        // and with them their keys.
        let shape = self.layout.shape();
        let extended = shape != BusShape::default();
        let mut hasher = blake3::Hasher::new_derive_key(match extended {
            false => "hekaton-v2 type",
            true => "hekaton-v3 type with buses",
        });
        let mut count = |x: usize| {
            hasher.update(&(x as u64).to_le_bytes());
        };
        count(self.layout.slots());
        count(self.layout.mask_slots());
        count(self.variables);
        count(self.constraints());
        if extended {
            let BusShape { buses, parameters, pairs, marked, entries, scaled } = shape;
            let counts = [usize::from(buses), parameters, pairs, marked, entries, scaled];
            counts.into_iter().for_each(count);
        }
        let coefficients: Vec<[u8; 32]> =
            self.matrices.coefficients.iter().map(fr_to_bytes).collect();
        let mut bytes = Vec::new();
        let term = |bytes: &mut Vec<u8>, variable: u64, coefficient: &[u8; 32]| {
            bytes.extend_from_slice(&variable.to_le_bytes());
            bytes.extend_from_slice(coefficient);
        };
        for matrix in self.matrices.all() {
            for row in 0..matrix.rows() {
                // Rows that were synthesized are canonical already; stored rows may not be.
                if matrix.is_canonical(row) {
                    let entries = matrix.entries_of(row);
                    bytes.extend_from_slice(&(entries.len() as u64).to_le_bytes());
                    for [variable, k] in entries {
                        term(&mut bytes, u64::from(*variable), &coefficients[*k as usize]);
                    }
                } else {
                    let row = matrix.canonical(row);
                    bytes.extend_from_slice(&(row.len() as u64).to_le_bytes());
                    for (coefficient, variable) in row {
                        term(&mut bytes, variable as u64, &fr_to_bytes(&coefficient));
                    }
                }
                if bytes.len() >= HASHED_AT_ONCE {
                    hasher.update(&bytes);
                    bytes.clear();
                }
            }
        }
        hasher.update(&bytes);
        *hasher.finalize().as_bytes()
    }

    /// The first difference between this R1CS, the expected one, and another one.
    pub fn first_difference(&self, found: &Self) -> Option<R1csDifference> {
        let (mine, theirs) = (self.layout.slots(), found.layout.slots());
        if mine != theirs {
            return Some(R1csDifference::Slots(mine, theirs));
        }
        if let Some(difference) = R1csDifference::of_shapes(&self.layout, &found.layout) {
            return Some(difference);
        }
        let rows = self.constraints().max(found.constraints());
        let (mine, theirs) = (self.matrices.all(), found.matrices.all());
        let same_side = |(a, b): (&Matrix<'_>, &Matrix<'_>), i: usize| {
            i < a.rows() && i < b.rows() && a.is_same(i, b, i)
        };
        let same = |i: usize| mine.iter().zip(&theirs).all(|sides| same_side(sides, i));
        match (0..rows).find(|i| !same(*i)) {
            Some(i) => Some(R1csDifference::of_row(&self.layout, i)),
            None if self.variables != found.variables => {
                Some(R1csDifference::Variables(self.variables, found.variables))
            }
            None => None,
        }
    }

    /// The slots of the author that none of the author's constraints and bus entries uses.
    pub fn unconstrained_slots(&self) -> Vec<usize> {
        let (layout, matrices) = (&self.layout, self.matrices.all());
        let (mut used, mut left) = (vec![false; layout.author_slots()], layout.author_slots());
        let rows = layout.made_rows(self.constraints());
        // From both ends: gadgets begin with the slots that a subcircuit reads and end with those that it
        // writes, so most searches end after a few rows.
        let (last, middle) = (rows.end.saturating_sub(1), rows.len().div_ceil(2));
        for (from_start, row) in rows.take(middle).enumerate() {
            if left == 0 {
                break;
            }
            for matrix in &matrices {
                let both = matrix.terms(row).chain(matrix.terms(last - from_start));
                for (_, variable) in both.filter(|(coefficient, _)| !coefficient.is_zero()) {
                    let slot = layout.slot_of(variable);
                    if let Some(used) = slot.and_then(|slot| used.get_mut(slot)).filter(|u| !**u) {
                        *used = true;
                        left -= 1;
                    }
                }
            }
        }
        (0..used.len()).filter(|slot| !used[*slot]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Masking;
    use crate::synthesis::matrix::Row;
    use hekaton_arith::Fr;

    fn r1cs([a, b, c]: [Vec<Row>; 3]) -> R1cs {
        let layout = VariableLayout::new(0, Masking::Unmasked);
        let matrices = Matrices::new([&a, &b, &c]).unwrap();
        R1cs { name: "t".into(), layout, variables: 6, matrices }
    }

    #[test]
    fn order_repeats_and_zeros_do_not_matter_and_everything_else_does() {
        let one = |k: u64, v: usize| (Fr::from(k), v);
        let a = r1cs([vec![vec![one(3, 1), one(2, 4)]], vec![vec![one(1, 0)]], vec![vec![]]]);
        let same = r1cs([
            vec![vec![one(2, 4), one(1, 1), one(0, 5), one(2, 1)]],
            vec![vec![one(1, 0)]],
            vec![vec![]],
        ]);
        assert_eq!(a.digest(), same.digest());
        assert_eq!(a.first_difference(&same), None);
        let mut other = a.matrices.to_rows();
        other[0][0][1].0 = Fr::from(5u64);
        let other = r1cs(other);
        assert_ne!(a.digest(), other.digest());
        assert_eq!(a.first_difference(&other), Some(R1csDifference::MemoryRow(0)));
        let mut longer = a.matrices.to_rows();
        longer.iter_mut().for_each(|m| m.push(vec![one(1, 0)]));
        let longer = r1cs(longer);
        assert_ne!(a.digest(), longer.digest());
        assert_eq!(a.first_difference(&longer), Some(R1csDifference::Row(0)));
        assert_eq!(longer.first_difference(&a), Some(R1csDifference::Row(0)));
        let wider = R1cs { variables: 7, ..a.clone() };
        assert_ne!(a.digest(), wider.digest());
        assert_eq!(a.first_difference(&wider), Some(R1csDifference::Variables(6, 7)));
        // a term must not move between matrices or rows without changing the digest
        let moved = r1cs([vec![vec![one(3, 1)]], vec![vec![one(1, 0), one(2, 4)]], vec![vec![]]]);
        assert_ne!(a.digest(), moved.digest());
    }
}
