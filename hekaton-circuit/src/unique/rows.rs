//! The constraints of a question, and where each variable is used.

use ark_ff::PrimeField;

/// The variable that is constantly 1.
pub const ONE: u32 = 0;

/// Rows `(A z) (B z) = C z` over any prime field, with a table of coefficients. Variable 0 is the constant 1.
#[derive(Clone, Debug)]
pub struct Rows<F> {
    coefficients: Vec<F>,
    /// The place in `entries` at which each combination begins: those of A, B and C of the first row, then of the second one.
    starts: Vec<u32>,
    /// Variables and the places of their coefficients.
    entries: Vec<[u32; 2]>,
    variables: u32,
}

/// There are 2^30 rows or variables, or 2^32 entries, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the constraints have 2^30 rows or variables, or 2^32 entries, or more")]
pub struct TooManyRows;

/// A bound below which a row and a side fit into 32 bits.
const MOST: usize = 1 << 30;

impl<F: PrimeField> Rows<F> {
    /// Makes rows from a table of coefficients and the combinations A, B and C of each row: variables with the places of their
    /// coefficients in the table. Entries with the coefficient zero are dropped.
    ///
    /// # Errors
    /// If there are too many.
    ///
    /// # Panics
    /// If a place is not in the table.
    pub fn new<I: IntoIterator<Item = [u32; 2]>>(
        coefficients: Vec<F>,
        rows: impl IntoIterator<Item = [I; 3]>,
    ) -> Result<Self, TooManyRows> {
        let (mut starts, mut entries, mut variables) = (vec![0], Vec::new(), 1);
        for side in rows.into_iter().flatten() {
            let kept = side.into_iter().filter(|[_, k]| !coefficients[*k as usize].is_zero());
            entries.extend(kept.inspect(|[variable, _]| variables = variables.max(variable + 1)));
            let Ok(end) = u32::try_from(entries.len()) else { return Err(TooManyRows) };
            starts.push(end);
        }
        let made = Self { coefficients, starts, entries, variables };
        match made.len() < MOST && (variables as usize) < MOST {
            true => Ok(made),
            false => Err(TooManyRows),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() / 3
    }

    /// Reports whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of variables, the constant 1 included: one more than the largest one in a row.
    pub(super) fn variables(&self) -> u32 {
        self.variables
    }

    pub(super) fn entries_of(&self, row: usize, side: usize) -> &[[u32; 2]] {
        let at = 3 * row + side;
        &self.entries[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// The number of entries of a row.
    pub(super) fn length(&self, row: usize) -> usize {
        (self.starts[3 * row + 3] - self.starts[3 * row]) as usize
    }

    /// The variables of one side of a row with their coefficients.
    pub(super) fn terms(&self, row: usize, side: usize) -> impl Iterator<Item = (u32, F)> + Clone {
        self.entries_of(row, side).iter().map(|[v, k]| (*v, self.coefficients[*k as usize]))
    }

    /// The value of one side of a row.
    pub(super) fn value(&self, row: usize, side: usize, value: impl Fn(u32) -> F) -> F {
        self.terms(row, side).map(|(variable, k)| k * value(variable)).sum()
    }

    /// Reports whether a row holds.
    pub(super) fn holds(&self, row: usize, value: impl Fn(u32) -> F) -> bool {
        let [a, b, c] = [0, 1, 2].map(|side| self.value(row, side, &value));
        a * b == c
    }

    /// The first row that does not hold.
    pub fn first_false(&self, values: &[F]) -> Option<usize> {
        (0..self.len()).find(|row| !self.holds(*row, |variable| values[variable as usize]))
    }
}

/// For each variable, the combinations that contain it.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    starts: Vec<u32>,
    /// Four times the row, plus the side.
    places: Vec<u32>,
}

impl Uses {
    #[allow(clippy::cast_possible_truncation, reason = "`Rows::new` refuses more rows and entries")]
    pub(super) fn new<F>(rows: &Rows<F>, variables: usize) -> Self {
        let mut starts = vec![0_u32; variables + 1];
        rows.entries.iter().for_each(|[variable, _]| starts[*variable as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut places = vec![0; rows.entries.len()];
        for (combination, range) in rows.starts.windows(2).enumerate() {
            let place = (combination / 3 * 4 + combination % 3) as u32;
            for [variable, _] in &rows.entries[range[0] as usize..range[1] as usize] {
                let at = &mut next[*variable as usize];
                places[*at as usize] = place;
                *at += 1;
            }
        }
        Self { starts, places }
    }

    /// The rows and sides that contain a variable, in ascending order; a row occurs once for each side.
    pub(super) fn of(
        &self,
        variable: u32,
    ) -> impl Iterator<Item = (usize, usize)> + Clone + use<'_> {
        let at = variable as usize;
        let places = &self.places[self.starts[at] as usize..self.starts[at + 1] as usize];
        places.iter().map(|place| ((place / 4) as usize, (place % 4) as usize))
    }

    /// The number of combinations that contain a variable.
    pub(super) fn count(&self, variable: u32) -> u32 {
        self.starts[variable as usize + 1] - self.starts[variable as usize]
    }
}
