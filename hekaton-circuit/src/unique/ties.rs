//! Constraints on the variables of a question that are not rows.

/// Constraints on variables in addition to rows.
#[derive(Clone, Debug)]
pub struct Ties<F> {
    /// Variables that constraints contain which are not known here. A second witness does not change them, since nothing would show
    /// that these constraints still hold.
    pub held: Vec<u32>,
    /// Functions, such as look-ups of values by their keys.
    pub functions: Vec<Function<F>>,
    /// Variables that are numbers of this many bits.
    pub ranges: Vec<(u32, u32)>,
}

impl<F> Default for Ties<F> {
    fn default() -> Self {
        Self { held: Vec::new(), functions: Vec::new(), ranges: Vec::new() }
    }
}

/// A linear combination of variables that is a function of others.
#[derive(Clone, Debug)]
pub struct Function<F> {
    /// The variables that determine it.
    pub arguments: Vec<u32>,
    /// The variables of the combination, with their factors.
    pub value: Vec<(u32, F)>,
}
