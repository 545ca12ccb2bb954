//! Public wires that no constraint mentions: an output that circom's `<--` assigns and nothing
//! constrains, for example. A prover may claim any value for them, so `import`, `check` and `setup` should
//! report them.
//!
//! A row A B = C mentions a wire if the polynomial A B - C depends on it. A term with coefficient zero
//! does not count, nor does a row that holds for all values, such as 0 x = 0 or 2 (x + 1) = 2 x + 2.

use crate::derived::{Definition, RowKind};
use crate::directory::{BundleError, CircuitBundle, Source};
use crate::system::System;
use ark_ff::{AdditiveGroup, Zero};
use hekaton_circuit::Fr;

/// Calls `mention` for each variable, other than 0, which is the constant, that A B - C depends on. It
/// may call it more than once for one.
fn mentions(sides: [&[(Fr, u32)]; 3], scratch: &mut Vec<(u32, Fr)>, mut mention: impl FnMut(u32)) {
    let constant = |side: &[(Fr, u32)]| {
        let sum = |sum: Fr, term: &(Fr, u32)| sum + term.0;
        let is_constant = side.iter().all(|(k, variable)| *variable == 0 || k.is_zero());
        is_constant.then(|| side.iter().filter(|(_, v)| *v == 0).fold(Fr::ZERO, sum))
    };
    // With a constant side the row is linear, and terms of its three sides may cancel.
    let (factor, other) = match (constant(sides[0]), constant(sides[1])) {
        (Some(factor), _) => (factor, sides[1]),
        (None, Some(factor)) => (factor, sides[0]),
        // A product of two combinations that are not constant depends on all wires of both, and C is
        // of degree 1: no wire disappears, since 2 is not 0.
        (None, None) => {
            let terms = sides.into_iter().flatten().filter(|(k, v)| *v != 0 && !k.is_zero());
            return terms.for_each(|(_, variable)| mention(*variable));
        }
    };
    scratch.clear();
    scratch.extend(other.iter().map(|(k, variable)| (*variable, factor * k)));
    scratch.extend(sides[2].iter().map(|(k, variable)| (*variable, -*k)));
    scratch.sort_unstable_by_key(|(variable, _)| *variable);
    for same in scratch.chunk_by(|a, b| a.0 == b.0) {
        let sum: Fr = same.iter().map(|(_, k)| k).sum();
        if same[0].0 != 0 && !sum.is_zero() {
            mention(same[0].0);
        }
    }
}

/// Public wires that are not mentioned so far.
struct Unmentioned {
    is_mentioned: Vec<bool>,
    left: usize,
}

impl Unmentioned {
    fn new(public: u32) -> Self {
        Self { is_mentioned: vec![false; public as usize], left: public as usize }
    }

    fn mention(&mut self, wire: u32) {
        let at = (wire as usize).wrapping_sub(1);
        if let Some(is_mentioned @ false) = self.is_mentioned.get_mut(at) {
            *is_mentioned = true;
            self.left -= 1;
        }
    }

    fn wires(&self) -> Vec<u32> {
        let wires = (1u32..).zip(&self.is_mentioned);
        wires.filter(|(_, is_mentioned)| !**is_mentioned).map(|(wire, _)| wire).collect()
    }
}

impl System {
    /// The public wires that no row mentions, in ascending order. A prover may claim any value for them.
    pub fn free_public_wires(&self) -> Vec<u32> {
        let mut unmentioned = Unmentioned::new(self.public());
        let (mut terms, mut scratch) = ([const { Vec::new() }; 3], Vec::new());
        for row in 0..self.rows() {
            if unmentioned.left == 0 {
                break;
            }
            for (terms, side) in terms.iter_mut().zip(self.row(row)) {
                terms.clear();
                let value = |coefficient: u32| self.coefficients()[coefficient as usize];
                terms.extend(side.iter().map(|term| (value(term.coefficient), term.wire)));
            }
            mentions(terms.each_ref().map(Vec::as_slice), &mut scratch, |wire| {
                unmentioned.mention(wire);
            });
        }
        unmentioned.wires()
    }
}

impl CircuitBundle {
    /// Describes what the circuit allows and its author probably did not intend: public wires that no constraint
    /// mentions.
    ///
    /// # Errors
    /// As for [`free_public_wires`](Self::free_public_wires).
    pub fn notices(&self) -> Result<Vec<String>, BundleError> {
        let free = self.free_public_wires()?;
        let notice = notice(&free, &self.summary().source, |wire| self.public_label(wire));
        Ok(notice.into_iter().collect())
    }

    /// The public wires that no constraint of the source mentions, in ascending order: those of
    /// [`System::free_public_wires`], from the constraints of the parts.
    ///
    /// # Errors
    /// If wires or constraints of a part cannot be read, or this is the copy in a key store.
    pub fn free_public_wires(&self) -> Result<Vec<u32>, BundleError> {
        let mut unmentioned = Unmentioned::new(self.summary().source.public());
        let derived = self.derived();
        let mut is_expanded = vec![false; derived.definitions().len()];
        let mut scratch = Vec::new();
        let mut of_type: Vec<Vec<usize>> = vec![Vec::new(); self.summary().types.len()];
        (0..self.parts()).for_each(|part| of_type[self.kind(part)].push(part));
        for (kind, parts) in of_type.into_iter().enumerate() {
            if unmentioned.left == 0 {
                break;
            }
            let rows = self.rows(kind)?;
            // The local variables that each row mentions, one after the other.
            let (mut locals, mut ends) = (Vec::new(), Vec::with_capacity(rows.lengths.len()));
            let mut terms = [const { Vec::new() }; 3];
            for sides in rows.iter() {
                for (terms, side) in terms.iter_mut().zip(sides) {
                    terms.clear();
                    terms.extend(side.iter().map(|[k, v]| (rows.coefficients[*k as usize], *v)));
                }
                mentions(terms.each_ref().map(Vec::as_slice), &mut scratch, |v| locals.push(v));
                ends.push(locals.len());
            }
            // Which locals a row mentions is the same for all parts of the type, so polynomials are looked
            // at once.
            for part in parts {
                let content = self.content(part)?;
                let mut wires: Vec<u32> = self.slots(part).map(|(wire, _)| wire).collect();
                wires.extend(content.own);
                let mut start = 0;
                for (number, end) in content.rows.iter().zip(&ends) {
                    let mentioned = &locals[std::mem::replace(&mut start, *end)..*end];
                    // A sum's own row says nothing of its terms: the rows with the sum do.
                    if !matches!(derived.row(*number), Some(RowKind::Source(_))) {
                        continue;
                    }
                    let mut stack: Vec<u32> = mentioned
                        .iter()
                        .filter_map(|local| wires.get((*local as usize).checked_sub(1)?).copied())
                        .collect();
                    while let Some(wire) = stack.pop() {
                        let Some(index) = wire.checked_sub(derived.first()) else {
                            unmentioned.mention(wire);
                            continue;
                        };
                        // Bits of packs are private wires.
                        if let Some(Definition::Sum(terms)) = derived.get(wire)
                            && !std::mem::replace(&mut is_expanded[index as usize], true)
                        {
                            stack.extend(terms.iter().map(|[_, wire]| *wire));
                        }
                    }
                }
            }
        }
        Ok(unmentioned.wires())
    }
}

/// The most wires that a notice names.
const NAMED: usize = 8;

/// Describes public wires that no constraint mentions; `None` if there are no such wires.
pub(crate) fn notice(
    free: &[u32],
    source: &Source,
    label: impl Fn(u32) -> String,
) -> Option<String> {
    let (count, public) = (free.len(), source.public());
    if count == 0 {
        return None;
    }
    let kind = |wire: u32| if wire <= source.outputs { "output" } else { "input" };
    let named = free.iter().take(NAMED).map(|wire| format!("{} ({})", label(*wire), kind(*wire)));
    let mut names = named.collect::<Vec<_>>().join(", ");
    if count > NAMED {
        names += &format!(" and {} more", count - NAMED);
    }
    let is = if count == 1 { "is" } else { "are" };
    Some(format!(
        "{count} of {public} public values {is} in no constraint, so that a prover may claim any value \
         there: {names}. In circom, `<--` only assigns; `<==` and `===` constrain"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variables that a row mentions, of terms with small coefficients.
    fn of(sides: [&[(i64, u32)]; 3]) -> Vec<u32> {
        let sides =
            sides.map(|side| side.iter().map(|(k, v)| (Fr::from(*k), *v)).collect::<Vec<_>>());
        let (mut found, mut scratch) = (Vec::new(), Vec::new());
        mentions(sides.each_ref().map(Vec::as_slice), &mut scratch, |variable| {
            found.push(variable)
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn rows_mention_what_their_polynomial_depends_on() {
        assert_eq!(of([&[(1, 1)], &[(1, 2)], &[(1, 3)]]), [1, 2, 3]);
        assert_eq!(of([&[], &[], &[(1, 3), (2, 0)]]), [3]);
        // Linear: 2 (x + y) = 2 x + z says y = z / 2.
        assert_eq!(of([&[(2, 0)], &[(1, 1), (1, 2)], &[(2, 1), (1, 3)]]), [2, 3]);
        assert_eq!(of([&[(1, 1), (1, 2)], &[(2, 0)], &[(2, 1), (1, 3)]]), [2, 3]);
        // A square of a difference depends on both.
        assert_eq!(of([&[(1, 1), (-1, 2)], &[(1, 1), (-1, 2)], &[]]), [1, 2]);
    }

    #[test]
    fn rows_that_hold_for_all_values_mention_nothing() {
        let nothing: [u32; 0] = [];
        assert_eq!(of([&[], &[(1, 1)], &[]]), nothing);
        assert_eq!(of([&[(1, 1)], &[], &[]]), nothing);
        assert_eq!(of([&[(1, 1)], &[(1, 0)], &[(1, 1)]]), nothing);
        assert_eq!(of([&[(2, 0)], &[(1, 1), (1, 0)], &[(2, 1), (2, 0)]]), nothing);
        assert_eq!(of([&[(0, 1)], &[(1, 2)], &[]]), nothing, "a coefficient of zero");
        assert_eq!(of([&[(1, 1)], &[(0, 2), (1, 0)], &[(1, 1)]]), nothing);
    }
}
