//! A constraint system in memory: canonical rows with a table of coefficients.

use crate::derived::Derived;
use crate::numbers::{count, index};
use ark_ff::{One, PrimeField, Zero};
use hekaton_circuit::Fr;
use std::collections::{BTreeSet, HashMap};

/// A term of a linear combination: the place of the coefficient in the table, and the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The place of the coefficient in [`System::coefficients`].
    pub coefficient: u32,
    /// The wire.
    pub wire: u32,
}

/// The place of the terms of a row: those of A, B and C, one after the other.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    a: u32,
    b: u32,
}

/// An R1CS in one piece: for the values z of all wires, with z_0 = 1, each row says
/// (A z) (B z) = C z. In each combination, wires ascend and coefficients are not zero.
///
/// It takes 20 bytes per row and 8 per term.
#[derive(Clone, Debug)]
pub struct System {
    wires: u32,
    public: u32,
    rows: Vec<Row>,
    terms: Vec<Term>,
    coefficients: Vec<Fr>,
    /// The number of each row in the source.
    numbers: Vec<u32>,
    without_wires: Vec<u32>,
    /// The wires that a partition adds; a source has no such wires.
    derived: Derived,
}

/// A problem with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// A wire that does not exist.
    #[error("wire {wire} does not exist: the circuit has wires 0 to {}", wires.saturating_sub(1))]
    NoSuchWire {
        /// The wire.
        wire: u32,
        /// The number of wires.
        wires: u32,
    },
    /// A row of constants that is false.
    #[error("the constraint has no wires and is false: no witness satisfies it")]
    False,
    /// Something has more parts than is supported.
    #[error("{0}")]
    Limit(Limit),
}

/// A limit that a system exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// 2^40 terms.
    Terms,
    /// 2^32 - 1 different coefficients.
    Coefficients,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Terms => "more than 2^40 terms",
            Self::Coefficients => "more than 2^32 - 2 different coefficients",
        })
    }
}

/// A row that a witness does not satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FalseRow {
    /// The number of the row in the source.
    pub number: u32,
    /// Its wires in ascending order, without the constant.
    pub wires: Vec<u32>,
    /// The values of A, B and C.
    pub values: [Fr; 3],
}

impl System {
    /// The number of wires, the constant included.
    pub fn wires(&self) -> u32 {
        self.wires
    }

    /// The number of public wires: wires 1 up to this number.
    pub fn public(&self) -> u32 {
        self.public
    }

    /// The number of rows, without those that have no wires.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The number of rows without a product: A or B is a constant.
    pub fn linear_rows(&self) -> u64 {
        let is_constant = |side: &[Term]| side.iter().all(|term| term.wire == 0);
        let is_linear = |row: &usize| {
            let [a, b, _] = self.row(*row);
            is_constant(a) || is_constant(b)
        };
        (0..self.rows()).filter(is_linear).count() as u64
    }

    /// The number of terms.
    pub fn terms(&self) -> usize {
        self.terms.len()
    }

    /// The number of a row in the source.
    pub fn number(&self, row: usize) -> u32 {
        self.numbers[row]
    }

    /// The true rows of the source that have no wires; they say nothing, and are left out.
    pub fn without_wires(&self) -> &[u32] {
        &self.without_wires
    }

    /// The table of coefficients, each once: all that occur, and some that were added up or left out.
    pub fn coefficients(&self) -> &[Fr] {
        &self.coefficients
    }

    /// The wires that a partition added.
    pub(crate) fn derived(&self) -> &Derived {
        &self.derived
    }

    /// Returns no derived wires, as a source does not have any.
    pub(crate) fn none_derived(&self) -> Derived {
        Derived::none(count(self.rows.len() + self.without_wires.len()), self.wires)
    }

    /// A system with other rows over these wires and derived ones, and with more coefficients.
    pub(crate) fn without_rows(&self, derived: Derived, more: &[Fr]) -> Self {
        Self {
            wires: derived.wires(),
            public: self.public,
            rows: Vec::with_capacity(self.rows.len()),
            terms: Vec::with_capacity(self.terms.len()),
            coefficients: [&self.coefficients, more].concat(),
            numbers: Vec::with_capacity(self.rows.len()),
            without_wires: Vec::new(),
            derived,
        }
    }

    /// Adds a row in canonical form.
    pub(crate) fn push(&mut self, number: u32, sides: [&[Term]; 3]) {
        let [a, b] = [0, 1].map(|side: usize| count(sides[side].len()));
        let row = Row { start: self.terms.len() as u64, a, b };
        self.rows.push(row);
        self.numbers.push(number);
        sides.iter().for_each(|side| self.terms.extend_from_slice(side));
    }

    /// The combinations A, B and C of a row.
    pub fn row(&self, row: usize) -> [&[Term]; 3] {
        let Row { start, a, b } = self.rows[row];
        let end = self.rows.get(row + 1).map_or(self.terms.len() as u64, |next| next.start);
        let (first, second) = (start + u64::from(a), start + u64::from(a) + u64::from(b));
        let terms = |from, to| &self.terms[index(from)..index(to)];
        [terms(start, first), terms(first, second), terms(second, end)]
    }

    /// The value of a combination.
    pub fn value(&self, combination: &[Term], z: &[Fr]) -> Fr {
        let term = |t: &Term| self.coefficients[t.coefficient as usize] * z[t.wire as usize];
        combination.iter().map(term).sum()
    }

    /// The first row that the values of all wires do not satisfy.
    ///
    /// # Panics
    /// If there are fewer values than wires.
    pub fn false_row(&self, z: &[Fr]) -> Option<FalseRow> {
        (0..self.rows()).find_map(|row| {
            let values = self.row(row).map(|combination| self.value(combination, z));
            (values[0] * values[1] != values[2]).then(|| {
                let terms = self.row(row).into_iter().flatten();
                let wires: BTreeSet<u32> = terms.map(|term| term.wire).filter(|w| *w > 0).collect();
                let wires = wires.into_iter().collect();
                FalseRow { number: self.number(row), wires, values }
            })
        })
    }
}

/// Builds a [`System`] row by row: terms, [`end_combination`](Self::end_combination) three times,
/// [`end_row`](Self::end_row).
#[derive(Clone, Debug)]
pub struct SystemBuilder {
    system: System,
    ids: HashMap<[u8; 32], u32>,
    /// The index of the first term of the combination that is being built.
    start: usize,
    is_canonical: bool,
    /// The numbers of terms of the finished combinations of the row.
    lengths: [u32; 3],
    finished: usize,
}

/// The most terms that are supported.
const MOST_TERMS: u64 = 1 << 40;

impl SystemBuilder {
    /// A system without rows.
    pub fn new(wires: u32, public: u32) -> Self {
        let (rows, terms, coefficients) = (Vec::new(), Vec::new(), Vec::new());
        let (numbers, without_wires) = (Vec::new(), Vec::new());
        Self {
            system: System {
                wires,
                public,
                rows,
                terms,
                coefficients,
                numbers,
                without_wires,
                derived: Derived::none(0, wires),
            },
            ids: HashMap::new(),
            start: 0,
            is_canonical: true,
            lengths: [0; 3],
            finished: 0,
        }
    }

    /// Adds a term to the combination, with the coefficient in 32 bytes, little-endian and canonical;
    /// `value` is called where it is new. Terms may be in any order, and wires may occur twice.
    ///
    /// # Errors
    /// If there is no such wire, or there are too many terms.
    pub fn term(
        &mut self,
        wire: u32,
        coefficient: &[u8; 32],
        value: impl FnOnce() -> Fr,
    ) -> Result<(), RowError> {
        let System { wires, terms, .. } = &self.system;
        if wire >= *wires {
            return Err(RowError::NoSuchWire { wire, wires: *wires });
        }
        if terms.len() as u64 >= MOST_TERMS {
            return Err(RowError::Limit(Limit::Terms));
        }
        let ascends = terms[self.start..].last().is_none_or(|last| last.wire < wire);
        // Most writers emit canonical rows, which need no sorting.
        self.is_canonical &= ascends && *coefficient != [0; 32];
        let coefficient = self.intern(*coefficient, value)?;
        self.system.terms.push(Term { coefficient, wire });
        Ok(())
    }

    /// The place of a coefficient in the table.
    fn intern(&mut self, bytes: [u8; 32], value: impl FnOnce() -> Fr) -> Result<u32, RowError> {
        if let Some(id) = self.ids.get(&bytes) {
            return Ok(*id);
        }
        let id = u32::try_from(self.system.coefficients.len())
            .ok()
            .filter(|id| *id < u32::MAX - 1)
            .ok_or(RowError::Limit(Limit::Coefficients))?;
        self.system.coefficients.push(value());
        self.ids.insert(bytes, id);
        Ok(id)
    }

    /// Ends a combination: sorts its terms, adds those of one wire, and drops zeros.
    ///
    /// # Errors
    /// If there are too many different coefficients.
    pub fn end_combination(&mut self) -> Result<(), RowError> {
        if !self.is_canonical {
            let mut terms = self.system.terms.split_off(self.start);
            // Stable, so that a wire with one term keeps the coefficient's place.
            terms.sort_by_key(|term| term.wire);
            for same in terms.chunk_by(|a, b| a.wire == b.wire) {
                let value = |term: &Term| self.system.coefficients[term.coefficient as usize];
                let sum: Fr = same.iter().map(value).sum();
                // Terms that cancel do not mention their wire: kept, they would make it shared.
                if sum.is_zero() {
                    continue;
                }
                let coefficient = match same {
                    [one] => one.coefficient,
                    _ => self.intern(bytes_of(&sum), || sum)?,
                };
                self.system.terms.push(Term { coefficient, wire: same[0].wire });
            }
        }
        let length = u32::try_from(self.system.terms.len() - self.start)
            .map_err(|_| RowError::Limit(Limit::Terms))?;
        if let Some(slot) = self.lengths.get_mut(self.finished) {
            *slot = length;
        }
        self.finished += 1;
        (self.start, self.is_canonical) = (self.system.terms.len(), true);
        Ok(())
    }

    /// Ends the row with this number in the source. A true row without wires is left out.
    ///
    /// # Errors
    /// If the row has no wires and is false.
    ///
    /// # Panics
    /// If the row does not have three combinations.
    pub fn end_row(&mut self, number: u32) -> Result<(), RowError> {
        assert_eq!(self.finished, 3, "a row has three combinations");
        let lengths = std::mem::take(&mut self.lengths);
        self.finished = 0;
        let count: usize = lengths.iter().map(|length| *length as usize).sum();
        let start = self.system.terms.len() - count;
        if self.system.terms[start..].iter().all(|term| term.wire == 0) {
            // At most one term each, the constant.
            let mut terms = self.system.terms[start..].iter();
            let values = lengths.map(|length| match length {
                0 => Fr::zero(),
                _ => terms.next().map_or_else(Fr::zero, |term| {
                    self.system.coefficients[term.coefficient as usize]
                }),
            });
            // A false constant makes the whole circuit unsatisfiable, which people should learn now and not
            // from a prover.
            if values[0] * values[1] != values[2] {
                return Err(RowError::False);
            }
            self.system.terms.truncate(start);
            self.start = start;
            self.system.without_wires.push(number);
            return Ok(());
        }
        let [a, b, _] = lengths;
        self.system.rows.push(Row { start: start as u64, a, b });
        self.system.numbers.push(number);
        Ok(())
    }

    /// The finished system.
    pub fn finish(mut self) -> System {
        self.system.derived = self.system.none_derived();
        self.system
    }
}

/// The canonical bytes of a number.
pub(crate) fn bytes_of(value: &Fr) -> [u8; 32] {
    let mut out = [0; 32];
    // Most values of most circuits are bits.
    if value.is_one() {
        out[0] = 1;
    } else if !value.is_zero() {
        for (bytes, limb) in out.as_chunks_mut::<8>().0.iter_mut().zip(value.into_bigint().0) {
            *bytes = limb.to_le_bytes();
        }
    }
    out
}
