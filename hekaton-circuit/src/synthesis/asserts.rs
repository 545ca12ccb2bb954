//! The checks by which setup refuses unsound types (spec: memory-check#asserts, mirage#asserts):
//! errors, not debug assertions.

use crate::memory::variables::VariableLayout;
use crate::memory::wiring::Wiring;
use crate::synthesis::matrix::Matrix;
use crate::synthesis::r1cs::R1cs;
use ark_ff::{Field, Zero};
use hekaton_arith::Fr;
use std::collections::BTreeMap;
use std::ops::Range;

/// A property that makes a type or its secrets unsound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A row of the memory check is not as required.
    #[error("type '{kind}': row {row} of the memory check is not {expected}")]
    Row {
        /// The type.
        kind: String,
        /// The row.
        row: usize,
        /// The required equation.
        expected: &'static str,
    },
    /// A wire of the memory check occurs in one of the author's rows.
    #[error("type '{kind}': row {row} uses {wire}, which is reserved for the memory check")]
    ReservedWire {
        /// The type.
        kind: String,
        /// The row.
        row: usize,
        /// The wire.
        wire: &'static str,
    },
    /// A committed wire is not bound by the constraints.
    #[error(
        "type '{kind}': the commitment does not bind the wire in slot {slot}, \
         which is in no constraint or a combination of others"
    )]
    Rank {
        /// The type.
        kind: String,
        /// The slot.
        slot: usize,
    },
    /// A marked value is not bound by the constraints.
    #[error(
        "type '{kind}': the commitment does not bind marked value {marked}, counted from 0 in the \
         order of the calls of commit: it is in no constraint or a combination of others"
    )]
    MarkedRank {
        /// The type.
        kind: String,
        /// The marked value.
        marked: usize,
    },
    /// A row of a bus entry is not as required.
    #[error("type '{kind}': bus entry {entry}{bus}: {why}")]
    Entry {
        /// The type.
        kind: String,
        /// The entry, in the order in which synthesize adds them.
        entry: usize,
        /// The bus, if there is one: ` of bus '..'`.
        bus: String,
        /// The reason it is refused.
        why: String,
    },
    /// A row of a scaled value is not as required.
    #[error("type '{kind}': the value of a bus entry (row {row}): {why}")]
    Scaled {
        /// The type.
        kind: String,
        /// The row.
        row: usize,
        /// The reason it is refused.
        why: String,
    },
    /// A parameter or a pair is in no row, so that the key does not bind it.
    #[error("type '{kind}': {what} {index} is in no constraint, so keys would not bind its value")]
    UnusedConstant {
        /// The type.
        kind: String,
        /// `parameter` or `pair`.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// The type was synthesized for another layout.
    #[error("type '{kind}': the layout has other slots, buses, parameters or pairs")]
    Layout {
        /// The type.
        kind: String,
    },
    /// The variables are not split into pub | com | e | aux.
    #[error(
        "type '{kind}': variable {variable} is in {parts} of the parts pub, com, e \
         and aux, expected one"
    )]
    Partition {
        /// The type.
        kind: String,
        /// The variable.
        variable: usize,
        /// Number of parts that it is in.
        parts: usize,
    },
    /// Too many constraints or variables.
    #[error(
        "type '{kind}' is too large: {constraints} constraints and {variables} variables; \
         the limits are 2^28 each, and 2^32 - 1 entries per matrix"
    )]
    Size {
        /// The type.
        kind: String,
        /// Number of constraints.
        constraints: usize,
        /// Number of variables.
        variables: usize,
    },
    /// Two secrets are equal, or one is zero.
    #[error("unsound setup secrets: {0}")]
    Secrets(&'static str),
}

/// The parts of a type's variables, which determine their queries (spec: mirage#parts).
#[derive(Clone, Debug)]
pub struct VariablePartition {
    /// The public variables, in IC.
    pub public: Range<usize>,
    /// The committed variables, in the query of D.
    pub committed: Range<usize>,
    /// The variable e, which has an element of its own.
    pub e: usize,
    /// The variables of the L query.
    pub aux: Range<usize>,
}

impl VariablePartition {
    /// The parts of a type's variables.
    pub fn new(r1cs: &R1cs) -> Self {
        let layout = &r1cs.layout;
        Self {
            public: layout.public(),
            committed: layout.committed(),
            e: layout.sum(),
            aux: layout.auxiliary(r1cs.variables),
        }
    }

    /// Checks that every variable is in exactly one part. In particular e must not be in the L
    /// query: it could be shifted through C and would be a free mask that repairs any sum.
    ///
    /// # Errors
    /// Fails if a variable is in no part, or in several.
    pub fn check(&self, kind: &str, variables: usize) -> Result<(), TypeError> {
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

/// Index of the matrix, and row.
type SideRow = (usize, usize);

/// The coefficients of one variable.
type Column = BTreeMap<SideRow, Fr>;

/// Reports whether a row has exactly the expected variables, each with the coefficient 1.
fn same_row(matrix: &Matrix<'_>, row: usize, expected: &[usize]) -> bool {
    let mut variables: Vec<usize> = matrix.terms(row).map(|(_, i)| i).collect();
    variables.sort_unstable();
    let mut sorted = expected.to_vec();
    sorted.sort_unstable();
    variables == sorted && matrix.terms(row).all(|(k, _)| k == Fr::ONE)
}

/// Checks that the rows of the memory check are there, in order, and exactly as required (spec:
/// memory-check#rows, memory-check#asserts).
fn check_memory_rows(r1cs: &R1cs) -> Result<(), TypeError> {
    let layout = &r1cs.layout;
    let [a, b, c] = &r1cs.matrices.all();
    let u: Vec<usize> = layout.inverses().collect();
    let (one, sum, row) = (VariableLayout::ONE, layout.sum(), VariableLayout::SUM_ROW);
    // Row 0, also for s = 0: without it e would be a free variable (spec: memory-check#rows).
    if r1cs.constraints() <= row
        || !same_row(a, row, &u)
        || !same_row(b, row, &[one])
        || !same_row(c, row, &[sum])
    {
        return Err(TypeError::Row { kind: r1cs.name.clone(), row, expected: "(sum u) 1 = e" });
    }
    // Rows 1 to s: the fingerprints, in the order of the slots. Terms of the ledger sum are defined
    // by these rows and by nothing else.
    let slots = layout.addresses().zip(layout.multiplicities()).zip(layout.committed()).zip(&u);
    for (slot, (((x, mu), v), u)) in slots.enumerate() {
        let row = layout.fingerprint_row(slot);
        let fingerprint = [layout.g(), x, v];
        let holds = r1cs.constraints() > row
            && same_row(a, row, &[*u])
            && same_row(b, row, &fingerprint)
            && same_row(c, row, &[mu]);
        if !holds {
            return Err(TypeError::Row {
                kind: r1cs.name.clone(),
                row,
                expected: "u (g + v + x) = mu",
            });
        }
    }
    Ok(())
}

/// A term of a row that a type must not have, for messages.
fn name_of(layout: &VariableLayout, variable: usize) -> String {
    let bus = layout.bus_challenges();
    match variable {
        VariableLayout::ONE => "a constant".into(),
        v if v == layout.g() => "the challenge g".into(),
        v if bus.is_some_and(|[b_t, _]| v == b_t) => "the challenge b_T".into(),
        v if bus.is_some_and(|[_, b_v]| v == b_v) => "the challenge b_V".into(),
        v if layout.addresses().contains(&v) => "the address of a slot".into(),
        v if layout.multiplicities().contains(&v) => "the multiplicity of a slot".into(),
        v if layout.pairs().contains(&v) => format!("pair {}", v - layout.pairs().start),
        v if layout.masks().contains(&v) => "a mask".into(),
        v if v == layout.sum() => "the sum e".into(),
        v if layout.inverses().contains(&v) => "an inverse of the memory check".into(),
        v if layout.scaled().contains(&v) => "a scaled value".into(),
        v => format!(
            "own variable {}, which is not committed: mark it with commit",
            v - layout.len()
        ),
    }
}

/// Reports whether a variable is fixed before the challenges and the same under all of them: a
/// constant, a parameter, a shared wire or a marked value.
fn is_fixed(layout: &VariableLayout, variable: usize) -> bool {
    variable == VariableLayout::ONE
        || layout.parameters().contains(&variable)
        || layout.committed().contains(&variable) && !layout.masks().contains(&variable)
}

/// The tag of an entry's fingerprint `g + b_T T + k + b_V v`, if it has that form: g once, one tag,
/// and otherwise only fixed variables, pairs, scaled values, and b_V with a constant value.
fn tag_of(r1cs: &R1cs, row: usize) -> Result<Fr, String> {
    let layout = &r1cs.layout;
    let Some([b_t, b_v]) = layout.bus_challenges() else {
        return Err("the circuit has no buses".into());
    };
    let (mut g, mut tag) = (Fr::zero(), Fr::zero());
    for (k, variable) in r1cs.side(1).terms(row) {
        match variable {
            v if v == layout.g() => g += k,
            v if v == b_t => tag += k,
            v if v == b_v || is_fixed(layout, v) => {}
            v if layout.pairs().contains(&v) || layout.scaled().contains(&v) => {}
            v => return Err(format!("its key has {}", name_of(layout, v))),
        }
    }
    match g == Fr::ONE {
        true => Ok(tag),
        false => Err("its fingerprint does not have g with the coefficient 1".into()),
    }
}

/// Checks the rows of bus entries and of their values (spec: buses#asserts). `buses` are the names of
/// the buses, in the order of their tags from 1.
fn check_bus_rows(r1cs: &R1cs, buses: &[String]) -> Result<(), TypeError> {
    let layout = &r1cs.layout;
    let [a, _, c] = &r1cs.matrices.all();
    let shape = layout.shape();
    for (entry, u) in layout.inverses().skip(layout.slots()).enumerate() {
        let row = layout.entry_row(entry);
        let error = |bus: &str, why: String| {
            let (kind, bus) = (r1cs.name.clone(), bus.to_owned());
            Err(TypeError::Entry { kind, entry, bus, why })
        };
        if r1cs.constraints() <= row || !same_row(a, row, &[u]) {
            return error("", format!("row {row} is not u F = mu"));
        }
        let tag = match tag_of(r1cs, row) {
            Ok(tag) => tag,
            Err(why) => return error("", why),
        };
        // Tags are 1, 2, ...: 0 is that of slots, and any other one has no owner.
        let bus = buses.iter().zip(1u32..).find(|(_, number)| Fr::from(*number) == tag);
        let Some((bus, _)) = bus else {
            return error("", format!("no bus has the tag {}", crate::text::show(&tag)));
        };
        let bus = format!(" of bus '{bus}'");
        if let Some((_, v)) = c.terms(row).find(|(_, v)| !is_fixed(layout, *v)) {
            return error(&bus, format!("its multiplicity has {}", name_of(layout, v)));
        }
    }
    for (index, y) in layout.scaled().enumerate() {
        let row = layout.scaled_row(index);
        let error = |why: String| Err(TypeError::Scaled { kind: r1cs.name.clone(), row, why });
        let b_v = layout.bus_challenges().map(|[_, b_v]| b_v);
        let holds = r1cs.constraints() > row
            && b_v.is_some_and(|b_v| same_row(&r1cs.side(1), row, &[b_v]))
            && same_row(c, row, &[y]);
        if !holds {
            return error("it is not v b_V = y".into());
        }
        if let Some((_, v)) = a.terms(row).find(|(_, v)| !is_fixed(layout, *v)) {
            return error(format!("it has {}", name_of(layout, v)));
        }
    }
    // Otherwise its point would be zero, and nothing would depend on its value.
    let constants = [
        ("parameter", layout.parameters(), shape.parameters),
        ("pair", layout.pairs(), shape.pairs),
    ];
    for (what, range, count) in constants {
        let mut used = vec![false; count];
        for matrix in r1cs.matrices.all() {
            let terms = (0..matrix.rows()).flat_map(|row| matrix.terms(row));
            for (_, variable) in terms.filter(|(k, v)| range.contains(v) && !k.is_zero()) {
                used[variable - range.start] = true;
            }
        }
        if let Some(index) = used.iter().position(|used| !used) {
            return Err(TypeError::UnusedConstant { kind: r1cs.name.clone(), what, index });
        }
    }
    Ok(())
}

/// Checks that no row of the author uses a variable of the memory check (spec:
/// memory-check#asserts): a row on e, x_j or u_j could tie the terms of the ledger sum to something
/// else, one on a mask would bind the blinding.
fn check_reserved(r1cs: &R1cs) -> Result<(), TypeError> {
    let layout = &r1cs.layout;
    let sum = layout.sum();
    let rows = layout.author_rows(r1cs.constraints());
    let places = r1cs.matrices.all().into_iter().flat_map(|m| rows.clone().map(move |r| (m, r)));
    for (matrix, row) in places {
        for (_, variable) in matrix.terms(row) {
            let wire = match &variable {
                v if *v == sum => "the sum e",
                // A parameter is a constant of the instance.
                v if layout.parameters().contains(v) => continue,
                v if layout.preprocessed().contains(v) => "a preprocessed wire",
                v if layout.masks().contains(v) => "a mask",
                v if layout.inverses().contains(v) => "an inverse of the memory check",
                v if layout.scaled().contains(v) => "a scaled value of a bus entry",
                _ => continue,
            };
            return Err(TypeError::ReservedWire { kind: r1cs.name.clone(), row, wire });
        }
    }
    Ok(())
}

impl Wiring {
    /// Checks the R1CS of the type with this number, as [`Layout::type_index`](crate::Layout::type_index)
    /// counts types: all that setup requires of a type, so `check` and setup both ask here.
    ///
    /// # Errors
    /// Fails if the type breaks a rule, or was synthesized for another layout; the error is the first
    /// rule.
    pub fn check_type(&self, index: usize, r1cs: &R1cs) -> Result<(), TypeError> {
        // The rows of the memory check are in place, and D binds every committed wire
        // (spec: memory-check#asserts, memory-check#rank, buses#asserts).
        check_type_with(r1cs, &self.buses)?;
        let (shape, spec) = (r1cs.layout.shape(), &self.types[index]);
        let found = (shape.buses, shape.parameters, shape.pairs, r1cs.layout.slots());
        // Lists of other lengths than those of the variables would be cut to the shorter one.
        match found == (!self.buses.is_empty(), spec.parameters, spec.pairs, spec.slots) {
            true => Ok(()),
            false => Err(TypeError::Layout { kind: r1cs.name.clone() }),
        }
    }
}

/// Checks all asserts on the R1CS of a type (spec: memory-check#asserts, buses#asserts) of a circuit
/// with buses of these names.
///
/// # Errors
/// Fails if the type breaks a rule; the error is the first one.
pub fn check_type_with(r1cs: &R1cs, buses: &[String]) -> Result<(), TypeError> {
    let kind = || r1cs.name.clone();
    let (constraints, variables) = (r1cs.constraints(), r1cs.variables);
    // Indices of the key files are u32, and the domain must stay below the 2-adicity of r - 1.
    if constraints > 1 << 28 || variables > 1 << 28 {
        return Err(TypeError::Size { kind: kind(), constraints, variables });
    }
    check_memory_rows(r1cs)?;
    check_bus_rows(r1cs, buses)?;
    check_reserved(r1cs)?;
    // e is not in the fingerprint rows either: same_row above allows no other variable.
    VariablePartition::new(r1cs).check(&r1cs.name, variables)?;
    check_rank(r1cs)
}

/// Checks that the matrix of R1CS coefficients of the committed variables has full column rank;
/// else D would not bind its wires (spec: memory-check#rank).
///
/// # Errors
/// Fails if a committed variable is in no row, or its column is a combination of others.
pub fn check_rank(r1cs: &R1cs) -> Result<(), TypeError> {
    let committed = r1cs.layout.committed();
    // One column per committed variable: (matrix, row) -> coefficient.
    let mut columns: Vec<Column> = vec![BTreeMap::new(); committed.len()];
    for (m, matrix) in r1cs.matrices.all().iter().enumerate() {
        for row in 0..matrix.rows() {
            for (k, variable) in matrix.terms(row) {
                if committed.contains(&variable) {
                    *columns[variable - committed.start].entry((m, row)).or_default() += k;
                }
            }
        }
    }
    // An entry that no other committed wire shares is a pivot of its own, so such a column needs no
    // elimination. The memory check provides one for every wire.
    let mut users: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for column in &mut columns {
        column.retain(|_, k| !k.is_zero());
        for place in column.keys() {
            *users.entry(*place).or_default() += 1;
        }
    }
    let mut reduced: Vec<(SideRow, Column)> = Vec::new();
    for (slot, mut column) in columns.into_iter().enumerate() {
        if column.keys().any(|place| users[place] == 1) {
            continue;
        }
        // Gaussian elimination with the columns reduced so far; a column that vanishes is a linear
        // combination of them.
        for (pivot, other) in &reduced {
            let Some(factor) = column.get(pivot).copied() else { continue };
            for (place, k) in other {
                *column.entry(*place).or_default() -= factor * k;
            }
            column.retain(|_, k| !k.is_zero());
        }
        let Some((pivot, inverse)) = column.iter().find_map(|(p, k)| Some((*p, k.inverse()?)))
        else {
            let kind = r1cs.name.clone();
            return Err(match slot.checked_sub(r1cs.layout.slots()) {
                Some(marked) => TypeError::MarkedRank { kind, marked },
                None => TypeError::Rank { kind, slot },
            });
        };
        column.values_mut().for_each(|k| *k *= inverse);
        reduced.push((pivot, column));
    }
    Ok(())
}
