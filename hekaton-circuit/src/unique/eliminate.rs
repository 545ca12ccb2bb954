//! Linear rows together: what the space that they span determines.

use super::rows::Uses;
use super::state::{Rule, State, merge};
use ark_ff::PrimeField;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The number of additions of terms that all eliminations of a question may take.
pub(super) const WORK: usize = 20_000_000;

/// The most rows that are eliminated together. Rows without a common unknown are apart.
const MOST_ROWS: usize = 4_096;

/// The result of an elimination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Eliminated {
    /// It has determined or bounded a value.
    pub(super) progress: bool,
    /// It was cut off, and might find more with more work.
    pub(super) cut_off: bool,
}

/// A relation `sum factor d = 0`, by ascending variables.
type Relation<F> = Vec<(u32, F)>;

/// Applies the rules to what the rows that are linear by now say together.
pub(super) fn eliminate<F: PrimeField>(state: &mut State<'_, F>, work: &mut usize) -> Eliminated {
    let before = state.progress();
    let mut out = Eliminated::default();
    for component in components(state) {
        if component.len() < 2 {
            continue;
        }
        if component.len() > MOST_ROWS || *work == 0 {
            out.cut_off = true;
            continue;
        }
        let reduced = reduce(component, state.uses, work);
        out.cut_off |= *work == 0;
        for relation in reduced {
            // What was learned from the relations before need not be left out: they are relations of all differences,
            // and those of known values are zero.
            let mut unknown = relation;
            unknown.retain(|(variable, _)| !state.is_known(*variable));
            if !unknown.is_empty() {
                state.relation(&unknown, Rule::Elimination);
            }
        }
    }
    out.progress = state.progress() != before;
    out
}

/// The relations of all linear rows, those that are connected by unknowns together.
fn components<F: PrimeField>(state: &State<'_, F>) -> Vec<Vec<Relation<F>>> {
    let linear = (0..state.rows.len()).filter(|row| state.is_linear(*row));
    let relations: Vec<Relation<F>> =
        linear.map(|row| state.linear(row)).filter(|relation| !relation.is_empty()).collect();
    // The first relation with each unknown, and for each relation an earlier one that it is connected to.
    let mut first: HashMap<u32, usize> = HashMap::new();
    let mut parents: Vec<usize> = (0..relations.len()).collect();
    for (at, relation) in relations.iter().enumerate() {
        for (variable, _) in relation {
            let other = *first.entry(*variable).or_insert(at);
            let (a, b) = (root(&mut parents, at), root(&mut parents, other));
            parents[a.max(b)] = a.min(b);
        }
    }
    let mut components: BTreeMap<usize, Vec<Relation<F>>> = BTreeMap::new();
    for (at, relation) in relations.into_iter().enumerate() {
        components.entry(root(&mut parents, at)).or_default().push(relation);
    }
    components.into_values().collect()
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

/// Gauss-Jordan elimination. Where the work is used up, the relations that are left are as they were, which is right as well.
fn reduce<F: PrimeField>(
    mut relations: Vec<Relation<F>>,
    uses: &Uses,
    work: &mut usize,
) -> Vec<Relation<F>> {
    // Short ones first: they fill others less.
    relations.sort_by_key(Vec::len);
    let mut reduced: Vec<Relation<F>> = Vec::new();
    let mut pivots: HashMap<u32, usize> = HashMap::new();
    for relation in relations {
        let mut left = relation;
        substitute(&mut left, &pivots, &reduced, work);
        // The least used unknown fills the fewest relations.
        let Some(&(pivot, factor)) = left.iter().min_by_key(|(v, _)| (uses.count(*v), *v)) else {
            continue;
        };
        if let Some(inverse) = factor.inverse() {
            left.iter_mut().for_each(|(_, factor)| *factor *= inverse);
        }
        pivots.insert(pivot, reduced.len());
        reduced.push(left);
    }
    // Relations contain pivots of later ones only, so from the end each is substituted once.
    for at in (0..reduced.len()).rev() {
        let mut relation = std::mem::take(&mut reduced[at]);
        let own = relation.iter().copied().find(|(v, _)| pivots.get(v) == Some(&at));
        relation.retain(|(v, _)| pivots.get(v) != Some(&at));
        substitute(&mut relation, &pivots, &reduced, work);
        relation.extend(own);
        merge(&mut relation);
        reduced[at] = relation;
    }
    reduced
}

/// Replaces pivots by what their relations say, as long as there is work left.
fn substitute<F: PrimeField>(
    relation: &mut Relation<F>,
    pivots: &HashMap<u32, usize>,
    reduced: &[Relation<F>],
    work: &mut usize,
) {
    loop {
        let found = relation.iter().find_map(|(v, factor)| {
            let at = *pivots.get(v)?;
            (!reduced[at].is_empty()).then_some((at, *factor))
        });
        let Some((at, factor)) = found else { return };
        let cost = relation.len() + reduced[at].len();
        if cost > *work {
            *work = 0;
            return;
        }
        *work -= cost;
        relation.extend(reduced[at].iter().map(|(v, k)| (*v, -factor * k)));
        merge(relation);
    }
}
