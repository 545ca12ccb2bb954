//! What setup refuses (spec: mirage#asserts). Errors, not debug checks.

use ark_ff::{Field, Zero};
use hekaton_arith::Fr;
use hekaton_circuit::prover::{R1cs, VariableLayout};
use std::collections::BTreeMap;
use std::ops::Range;

/// What makes a type or its secrets unsound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A row of the memory check is not as it must be.
    #[error("type '{kind}': row {row} of the memory check is not {expected}")]
    Row {
        /// The type.
        kind: String,
        /// The row.
        row: usize,
        /// What it must be.
        expected: &'static str,
    },
    /// The sum wire or a preprocessed wire occurs where it must not.
    #[error("type '{kind}': row {row} uses {wire}, which belongs to the memory check alone")]
    ReservedWire {
        /// The type.
        kind: String,
        /// The row.
        row: usize,
        /// The wire.
        wire: &'static str,
    },
    /// Committed wires are not bound by the constraints.
    #[error(
        "type '{kind}': the committed wire in slot {slot} is in no constraint or a combination of others: it is not bound"
    )]
    Rank {
        /// The type.
        kind: String,
        /// The slot.
        slot: usize,
    },
    /// The variables are not split into pub | com | e | aux.
    #[error("type '{kind}': variable {variable} is in {parts} of the parts pub, com, e and aux")]
    Partition {
        /// The type.
        kind: String,
        /// The variable.
        variable: usize,
        /// In how many.
        parts: usize,
    },
    /// Too many constraints or variables.
    #[error(
        "type '{kind}' is too large: {constraints} constraints, {variables} variables; the limit is 2^28, and 2^32 matrix entries"
    )]
    Size {
        /// The type.
        kind: String,
        /// Constraints.
        constraints: usize,
        /// Variables.
        variables: usize,
    },
    /// Two secrets are equal, or one is zero.
    #[error("setup secrets: {0}")]
    Secrets(&'static str),
}

/// The parts of a type's variables: which queries they go to.
#[derive(Clone, Debug)]
pub(crate) struct VariablePartition {
    pub(crate) public: Range<usize>,
    pub(crate) committed: Range<usize>,
    pub(crate) e: usize,
    /// the variables of the L query
    pub(crate) aux: Range<usize>,
}

impl VariablePartition {
    pub(crate) fn new(r1cs: &R1cs) -> Self {
        let layout = &r1cs.layout;
        Self {
            public: layout.public(),
            committed: layout.committed(),
            e: layout.sum(),
            aux: layout.auxiliary(r1cs.variables),
        }
    }

    /// Every variable is in exactly one part; in particular e is not in the L query.
    pub(crate) fn check(&self, kind: &str, variables: usize) -> Result<(), TypeError> {
        for variable in 0..variables {
            let parts = usize::from(self.public.contains(&variable))
                + usize::from(self.committed.contains(&variable))
                + usize::from(self.e == variable)
                + usize::from(self.aux.contains(&variable));
            if parts != 1 {
                return Err(TypeError::Partition { kind: kind.to_owned(), variable, parts });
            }
        }
        Ok(())
    }
}

type Row = Vec<(Fr, usize)>;

/// Matrix and row.
type Place = (usize, usize);

/// The coefficients of one variable.
type Column = BTreeMap<Place, Fr>;

fn same_row(found: &Row, expected: &[usize]) -> bool {
    let mut variables: Vec<usize> = found.iter().map(|(_, i)| *i).collect();
    variables.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    variables == expected && found.iter().all(|(k, _)| *k == Fr::ONE)
}

/// All asserts on the R1CS of a type.
pub(crate) fn check_type(r1cs: &R1cs) -> Result<(), TypeError> {
    let kind = || r1cs.name.clone();
    let (constraints, variables) = (r1cs.constraints(), r1cs.variables);
    let entries =
        r1cs.rows.iter().map(|m| m.iter().map(Vec::len).sum::<usize>()).max().unwrap_or(0);
    if constraints > 1 << 28 || variables > 1 << 28 || entries > u32::MAX as usize {
        return Err(TypeError::Size { kind: kind(), constraints, variables });
    }
    let layout = &r1cs.layout;
    let [a, b, c] = &r1cs.rows;
    let u: Vec<usize> = layout.inverses().collect();
    let (one, sum, row) = (VariableLayout::ONE, layout.sum(), VariableLayout::SUM_ROW);
    // spec: mirage#asserts: the rows of the memory check are there, in order, and as they must be
    if constraints <= row
        || !same_row(&a[row], &u)
        || !same_row(&b[row], &[one])
        || !same_row(&c[row], &[sum])
    {
        return Err(TypeError::Row { kind: kind(), row, expected: "(sum u) 1 = e" });
    }
    let slots = layout.addresses().zip(layout.multiplicities()).zip(layout.committed()).zip(&u);
    for (slot, (((x, mu), v), u)) in slots.enumerate() {
        let row = layout.fingerprint_row(slot);
        let fingerprint = [layout.g(), x, v];
        let holds = constraints > row
            && same_row(&a[row], &fingerprint)
            && same_row(&b[row], &[*u])
            && same_row(&c[row], &[mu]);
        if !holds {
            return Err(TypeError::Row { kind: kind(), row, expected: "(g + v + x) u = mu" });
        }
    }
    for (row, terms) in r1cs.rows.iter().flat_map(|m| m.iter().enumerate().skip(layout.rows())) {
        for (_, variable) in terms {
            let wire = match variable {
                v if *v == sum => "the sum e",
                v if layout.preprocessed().contains(v) => "a preprocessed wire",
                v if layout.masks().contains(v) => "a mask",
                v if layout.inverses().contains(v) => "an inverse of the memory check",
                _ => continue,
            };
            return Err(TypeError::ReservedWire { kind: kind(), row, wire });
        }
    }
    // e also in none of the fingerprint rows: same_row above left no room for it.
    VariablePartition::new(r1cs).check(&r1cs.name, variables)?;
    check_rank(r1cs)
}

/// The matrix (committed variable x R1CS coefficients) has full column rank, else D would not bind its wires.
pub(crate) fn check_rank(r1cs: &R1cs) -> Result<(), TypeError> {
    let committed = r1cs.layout.committed();
    // columns: (matrix, row) -> coefficient
    let mut columns: Vec<Column> = vec![BTreeMap::new(); committed.len()];
    for (m, rows) in r1cs.rows.iter().enumerate() {
        for (row, terms) in rows.iter().enumerate() {
            for (k, variable) in terms {
                if committed.contains(variable) {
                    *columns[variable - committed.start].entry((m, row)).or_default() += k;
                }
            }
        }
    }
    // An entry that no other committed wire shares is a pivot of its own; the memory check gives one to every wire.
    let mut users: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for column in &mut columns {
        column.retain(|_, k| !k.is_zero());
        for place in column.keys() {
            *users.entry(*place).or_default() += 1;
        }
    }
    let mut reduced: Vec<(Place, Column)> = Vec::new();
    for (slot, mut column) in columns.into_iter().enumerate() {
        if column.keys().any(|place| users[place] == 1) {
            continue;
        }
        for (pivot, other) in &reduced {
            let Some(factor) = column.get(pivot).copied() else { continue };
            for (place, k) in other {
                *column.entry(*place).or_default() -= factor * k;
            }
            column.retain(|_, k| !k.is_zero());
        }
        let Some((pivot, inverse)) = column.iter().find_map(|(p, k)| Some((*p, k.inverse()?)))
        else {
            return Err(TypeError::Rank { kind: r1cs.name.clone(), slot });
        };
        column.values_mut().for_each(|k| *k *= inverse);
        reduced.push((pivot, column));
    }
    Ok(())
}

/// delta_c, eta_c and gamma are pairwise distinct and nothing is zero. One shared delta is a total break.
pub(crate) fn check_secrets(shared: &[Fr], delta_eta: &[Fr], gamma: Fr) -> Result<(), TypeError> {
    if shared.iter().chain(delta_eta).chain([&gamma]).any(Zero::is_zero) {
        return Err(TypeError::Secrets("one of them is zero"));
    }
    let mut all =
        zeroize::Zeroizing::new(delta_eta.iter().copied().chain([gamma]).collect::<Vec<Fr>>());
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(TypeError::Secrets(
            "delta, eta and gamma of all types must be pairwise distinct",
        ));
    }
    Ok(())
}
