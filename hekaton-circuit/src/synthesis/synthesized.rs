//! The result of the synthesis of one subcircuit: variables and rows in the order in which they were
//! made, and the order of [`VariableLayout`] in which proof systems see them.

use crate::buses::ledger::Ledger;
use crate::memory::variables::VariableLayout;
use crate::synthesis::inlining::matrices_of;
use crate::synthesis::matrix::{Matrices, TooLarge};
use crate::synthesis::subcircuit::Subcircuit;
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError};
use hekaton_arith::Fr;
use std::cell::Ref;
use std::collections::BTreeSet;

/// A synthesized subcircuit.
#[derive(Debug)]
pub(crate) struct Synthesized {
    pub(crate) cs: ConstraintSystemRef<Fr>,
    /// The order of the variables and rows.
    pub(crate) layout: VariableLayout,
    subcircuit: Subcircuit,
    /// The end of the author's own variables and rows, in circuits with buses.
    author: Option<AuthorEnd>,
}

/// The number of witness variables, and of rows, before those that the memory check adds at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthorEnd {
    pub(crate) variables: usize,
    pub(crate) rows: usize,
}

impl Synthesized {
    pub(crate) fn new(
        subcircuit: Subcircuit,
        layout: VariableLayout,
        author: Option<AuthorEnd>,
    ) -> Self {
        Self { cs: subcircuit.cs(), layout, subcircuit, author }
    }

    pub(crate) fn ledger(&self) -> Ref<'_, Ledger> {
        self.subcircuit.ledger().borrow()
    }

    /// The number of variables.
    pub(crate) fn variables(&self) -> usize {
        self.cs.num_instance_variables() + self.cs.num_witness_variables()
    }

    /// The matrices; `None` if the constraint system has other constraints.
    pub(crate) fn matrices(&self) -> Option<Result<Matrices, TooLarge>> {
        let matrices = self.cs.borrow().and_then(|cs| matrices_of(&cs))?;
        Some(matrices.map(|matrices| match self.author {
            None => matrices,
            Some(end) => matrices.reordered(&self.places(end), end.rows),
        }))
    }

    /// The values of all variables.
    pub(crate) fn assignment(&self) -> Result<Vec<Fr>, SynthesisError> {
        let mut made = self.cs.instance_assignment()?;
        made.extend(self.cs.witness_assignment()?);
        Ok(self.ordered(made))
    }

    /// The variables that the author marked as private input, in ascending order.
    pub(crate) fn given(&self) -> Vec<usize> {
        let public = self.layout.public().len();
        let made = self
            .ledger()
            .given
            .iter()
            .flat_map(|range| range.start + public..range.end + public)
            .collect::<BTreeSet<_>>();
        let mut given: Vec<usize> = match self.author {
            None => made.into_iter().collect(),
            Some(end) => {
                let places = self.places(end);
                made.into_iter().map(|made| places[made] as usize).collect()
            }
        };
        given.sort_unstable();
        given
    }

    /// [`Self::assignment`] without a copy, where nothing else has the constraint system.
    pub(crate) fn into_assignment(self) -> Option<Vec<Fr>> {
        let Self { cs, layout, subcircuit, author } = self;
        let marked = subcircuit.ledger().borrow().marked_indices();
        drop(subcircuit);
        let inner = cs.into_inner()?;
        let mut made = inner.assignments.instance_assignment;
        made.extend(inner.assignments.witness_assignment);
        Some(in_order(made, &layout, &marked, author))
    }

    fn ordered(&self, made: Vec<Fr>) -> Vec<Fr> {
        in_order(made, &self.layout, &self.ledger().marked_indices(), self.author)
    }

    /// The place of each variable, as it was made, in the order of the layout.
    #[allow(clippy::cast_possible_truncation, reason = "`matrices_of` has refused larger numbers")]
    fn places(&self, end: AuthorEnd) -> Vec<u32> {
        let marked = self.ledger().marked_indices();
        let mut places = vec![0; self.variables()];
        let order = order(&self.layout, &marked, end, self.variables());
        order.into_iter().enumerate().for_each(|(place, made)| places[made] = place as u32);
        places
    }
}

/// The variables, by their numbers as they were made, in the order of the layout.
fn order(
    layout: &VariableLayout,
    marked: &[usize],
    end: AuthorEnd,
    variables: usize,
) -> impl Iterator<Item = usize> + use<> {
    let (public, slots) = (layout.public().len(), layout.slots());
    let author_end = public + end.variables;
    let mut own = vec![true; author_end];
    own[..public + slots].fill(false);
    // Marked values are allocated among the author's variables, and e, u and y after them, but committed
    // variables must be contiguous, because setup cuts its queries by ranges (spec: buses#variables).
    let committed: Vec<usize> = marked.iter().map(|index| public + index).collect();
    committed.iter().for_each(|variable| own[*variable] = false);
    let rest = own.into_iter().enumerate().filter_map(|(variable, own)| own.then_some(variable));
    (0..public + slots).chain(committed).chain(author_end..variables).chain(rest)
}

fn in_order(
    made: Vec<Fr>,
    layout: &VariableLayout,
    marked: &[usize],
    author: Option<AuthorEnd>,
) -> Vec<Fr> {
    match author {
        None => made,
        Some(end) => order(layout, marked, end, made.len()).map(|i| made[i]).collect(),
    }
}
