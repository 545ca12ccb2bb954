//! Tables: lists that the verifying key fixes. Each row is an entry whose multiplicity, how often it is
//! asked for, is committed to before the challenges are drawn (spec: buses#tables).

use super::cut::parts;
use ark_ff::{One, PrimeField, Zero};
use hashbrown::HashMap;
use hekaton_arith::Fr;
use std::sync::OnceLock;

/// The default for the maximum number of rows of one subcircuit: with the rows of the memory check
/// they fill a domain of 3 * 2^12.
const ROWS: usize = 3 * (1 << 12) - 3;

/// The largest range, in bits: 2^24 rows are 1,366 subcircuits of the default size.
const MAX_BITS: u32 = 24;

/// A table for look-ups, for [`LayoutBuilder::table`](crate::LayoutBuilder::table).
///
/// The rows of a table that fits into one subcircuit are constants of the constraints, so all layouts of a key family have the same
/// ones. Larger tables, and those with [rows in each subcircuit](Self::rows_in_each_subcircuit), are pairs of the layout (spec:
/// buses#tables).
#[derive(Clone, Debug)]
pub struct Table {
    contents: Contents,
    most: usize,
    fixed: bool,
    left_out: bool,
}

#[derive(Clone, Debug)]
enum Contents {
    Range(u32),
    Keys(Vec<Fr>),
    Pairs(Vec<[Fr; 2]>),
}

impl Table {
    /// The numbers of `bits` bits, from 0.
    pub fn range(bits: u32) -> Self {
        Self::of(Contents::Range(bits))
    }

    fn of(contents: Contents) -> Self {
        Self { contents, most: ROWS, fixed: false, left_out: false }
    }

    /// A set of keys.
    ///
    /// A key may pack several numbers, as a sum of parts times spacings. **Then every part but one must
    /// be bounded by other constraints, as an integer**, and each spacing must exceed everything below
    /// it and every range that the unbounded part can reach; a part that may be a fraction modulo r is
    /// unbounded (spec: buses#packing). Without that, another combination of parts has the same
    /// key.
    pub fn keys(keys: impl IntoIterator<Item = Fr>) -> Self {
        Self::of(Contents::Keys(keys.into_iter().collect()))
    }

    /// A function: a value for each of a set of indices.
    pub fn pairs(pairs: impl IntoIterator<Item = (Fr, Fr)>) -> Self {
        Self::of(Contents::Pairs(pairs.into_iter().map(<[Fr; 2]>::from).collect()))
    }

    /// Sets the maximum number of rows of one of the subcircuits that hold the table.
    #[must_use]
    pub fn rows_per_subcircuit(self, most: usize) -> Self {
        Self { most: most.max(1), ..self }
    }

    /// Sets the number of rows of each subcircuit that holds the table, independent of the table's length:
    /// the last subcircuit repeats rows. So tables of all lengths and contents have one type of subcircuits, and one key
    /// family serves them all. For a range it is a maximum only.
    #[must_use]
    pub fn rows_in_each_subcircuit(self, rows: usize) -> Self {
        Self { most: rows.max(1), fixed: true, ..self }
    }

    /// Leaves the rows out of this layout: the type of the subcircuits that would hold them stays, so that
    /// layouts with and without them share a key family, but it has no instances. The table must not be
    /// looked up: the entries of a look-up would not cancel.
    #[must_use]
    pub fn left_out(self) -> Self {
        Self { left_out: true, ..self }
    }
}

/// A table of a layout.
#[derive(Debug)]
pub(crate) struct TableSpec {
    contents: Contents,
    most: usize,
    fixed: bool,
    left_out: bool,
    /// The row of each key, from the first question for one on; ranges need no such map.
    places: OnceLock<HashMap<Fr, u32>>,
}

/// The question that a table answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// The presence of a key.
    Keys,
    /// The value of an index.
    Pairs,
}

impl TableSpec {
    pub(crate) fn new(table: Table) -> Result<Self, String> {
        let Table { contents, most, fixed, left_out } = table;
        if let Contents::Range(bits) = &contents
            && !(1..=MAX_BITS).contains(bits)
        {
            return Err(format!("a range of {bits} bits: expected 1 to {MAX_BITS}"));
        }
        let table = Self { contents, most, fixed, left_out, places: OnceLock::new() };
        if table.len() == 0 {
            return Err("it has no rows".into());
        }
        // Most tables are in order, and verifiers ask for no row: a map would be most of their work.
        if left_out || table.keys().map(Fr::into_bigint).is_sorted_by(|a, b| a < b) {
            return Ok(table);
        }
        // Two values of one index would leave the choice to the prover (spec: buses#asserts).
        match table.map() {
            Ok(places) => Ok(Self { places: OnceLock::from(places), ..table }),
            Err([first, row]) => {
                let key = crate::show(&table.pair(row as usize)[0]);
                Err(format!("rows {first} and {row} have the same key {key}"))
            }
        }
    }

    /// The keys of all rows. A range stores none.
    fn keys(&self) -> impl Iterator<Item = Fr> {
        let rows = if self.is_range() { 0 } else { self.len() };
        (0..rows).map(|row| self.pair(row)[0])
    }

    /// The row of each key, or the first two rows that have the same one.
    fn map(&self) -> Result<HashMap<Fr, u32>, [u32; 2]> {
        let mut places = HashMap::with_capacity(self.len());
        for (row, key) in (0u32..).zip(self.keys()) {
            if let Some(first) = places.insert(key, row) {
                return Err([first, row]);
            }
        }
        Ok(places)
    }

    /// A table in place of one that the builder has refused, so that the author's code can continue until
    /// `build` returns the error.
    pub(crate) fn placeholder() -> Self {
        let Table { contents, most, fixed, left_out } = Table::range(1);
        Self { contents, most, fixed, left_out, places: OnceLock::new() }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        match &self.contents {
            Contents::Range(bits) => 1 << bits,
            Contents::Keys(keys) => keys.len(),
            Contents::Pairs(pairs) => pairs.len(),
        }
    }

    /// The number of rows in the layout: none if they are left out.
    pub(crate) fn held(&self) -> usize {
        if self.left_out { 0 } else { self.len() }
    }

    pub(crate) fn asks(&self) -> Asks {
        match &self.contents {
            Contents::Pairs(_) => Asks::Pairs,
            _ => Asks::Keys,
        }
    }

    /// The number of bits, of a range.
    pub(crate) fn bits(&self) -> Option<u32> {
        match &self.contents {
            Contents::Range(bits) => Some(*bits),
            _ => None,
        }
    }

    /// Reports whether it is the range of this number of bits, and is not left out of the layout.
    pub(crate) fn is_range_of(&self, bits: u32) -> bool {
        self.bits() == Some(bits) && !self.left_out
    }

    /// The row of a key.
    #[allow(clippy::cast_possible_truncation, reason = "compared with the number of rows before")]
    pub(crate) fn row_of(&self, key: &Fr) -> Option<u32> {
        if self.left_out {
            return None;
        }
        if self.bits().is_none() {
            let places = self.places.get_or_init(|| self.map().expect("rising keys are distinct"));
            return places.get(key).copied();
        }
        let number = key.into_bigint().0;
        // A range has no map: the row of a number is the number.
        let small = number[1..].iter().all(|limb| *limb == 0) && number[0] < self.len() as u64;
        small.then_some(number[0] as u32)
    }

    /// The value of a row: zero in a set of keys.
    pub(crate) fn value(&self, row: u32) -> Fr {
        match &self.contents {
            Contents::Pairs(pairs) => pairs[row as usize][1],
            _ => Fr::zero(),
        }
    }

    /// The first row of each of the instances that hold the table, and the number of rows of each. The
    /// last instance repeats rows of the previous one instead of having fewer. A repeated row is sound: it
    /// is the same entry, and the multiplicities of both add up (spec: buses#tables).
    pub(crate) fn starts(&self) -> (usize, Vec<usize>) {
        let (rows, starts) = self.starts_of_all();
        (rows, if self.left_out { Vec::new() } else { starts })
    }

    fn starts_of_all(&self) -> (usize, Vec<usize>) {
        if self.fixed && !self.is_range() {
            // A table shorter than one subcircuit begins at row 0, and `pair` repeats its rows.
            let last = self.len().saturating_sub(self.most);
            return (self.most, (0..self.len()).step_by(self.most).map(|i| i.min(last)).collect());
        }
        let (rows, parts) = parts(self.len(), self.most);
        (rows, parts.iter().map(|part| part.start.min(self.len() - rows)).collect())
    }

    /// The number of parameters and of pairs of an instance with `rows` rows.
    pub(crate) fn constants(&self, rows: usize) -> (usize, usize) {
        match &self.contents {
            Contents::Range(_) => (1, 0),
            _ if self.is_constant() => (0, 0),
            _ => (0, rows),
        }
    }

    /// Reports whether the rows are constants of the one type that holds them.
    pub(crate) fn is_constant(&self) -> bool {
        !self.is_range() && !self.fixed && self.starts_of_all().1.len() == 1
    }

    /// The key and the value of a row. Beyond the end of a table that is shorter than its subcircuit, they
    /// are those of its first rows again.
    pub(crate) fn pair(&self, row: usize) -> [Fr; 2] {
        match &self.contents {
            Contents::Range(_) => [Fr::from(row as u64), Fr::zero()],
            Contents::Keys(keys) => [keys[row % keys.len()], Fr::zero()],
            Contents::Pairs(pairs) => pairs[row % pairs.len()],
        }
    }

    /// Reports whether it is a range, whose instances have a parameter instead of pairs.
    pub(crate) fn is_range(&self) -> bool {
        self.bits().is_some()
    }
}

/// A spacing of 2^k, as a field element.
pub(crate) fn power_of_two(k: u32) -> Fr {
    (0..k).fold(Fr::one(), |x, _| x + x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of all lengths in subcircuits of one size: each row is there, and nothing else.
    #[test]
    fn subcircuits_of_a_fixed_size_hold_all_rows() {
        for len in 1..20u64 {
            let table =
                Table::keys((0..len).map(|key| Fr::from(7 * key))).rows_in_each_subcircuit(6);
            let table = TableSpec::new(table).unwrap();
            let (rows, starts) = table.starts();
            assert_eq!((rows, starts.len() as u64), (6, len.div_ceil(6)));
            let held = starts.iter().flat_map(|start| (0..rows).map(move |row| start + row));
            let mut held: Vec<u32> =
                held.map(|row| table.row_of(&table.pair(row)[0]).unwrap()).collect();
            held.sort_unstable();
            held.dedup();
            assert_eq!(held.len() as u64, len);
        }
        let range = TableSpec::new(Table::range(3).rows_in_each_subcircuit(100)).unwrap();
        assert_eq!(range.starts(), (8, vec![0]));
    }

    /// Rows with the same key are found in tables in any order.
    #[test]
    fn keys_are_distinct() {
        let of = |keys: &[u64]| TableSpec::new(Table::keys(keys.iter().copied().map(Fr::from)));
        for keys in [&[3, 3][..], &[1, 2, 2], &[2, 1, 2], &[9, 1, 9, 0]] {
            let why = of(keys).unwrap_err();
            assert!(why.contains("have the same key"), "{why}");
        }
        for keys in [&[5][..], &[1, 2, 9], &[9, 2, 1], &[2, 9, 1]] {
            let table = of(keys).unwrap();
            for (row, key) in (0..).zip(keys) {
                assert_eq!(table.row_of(&Fr::from(*key)), Some(row));
            }
            assert_eq!(table.row_of(&Fr::from(7u64)), None);
        }
    }

    #[test]
    fn a_table_that_is_left_out_has_the_same_subcircuits_but_none_of_them() {
        let tables = [Table::range(3), Table::keys([1u64, 5, 7].map(Fr::from))];
        for table in tables.map(|table| table.rows_per_subcircuit(2)) {
            let [all, none] =
                [table.clone(), table.left_out()].map(|table| TableSpec::new(table).unwrap());
            assert_eq!(all.starts().0, none.starts().0);
            assert_eq!((all.starts().1.is_empty(), none.starts().1.is_empty()), (false, true));
            let key = Fr::from(5u64);
            assert_eq!((all.row_of(&key).is_some(), none.row_of(&key)), (true, None));
            assert_eq!((all.held(), none.held()), (all.len(), 0));
            assert_eq!((all.is_range_of(3), none.is_range_of(3)), (all.is_range(), false));
        }
    }
}
