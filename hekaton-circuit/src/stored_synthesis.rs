//! The R1CS and the witnesses of circuits whose constraints are stored.

use crate::circuit_error::CircuitError;
use crate::execution::PrivateInput;
use crate::ids::{InstanceId, TypeId};
use crate::memory::Masking;
use crate::panics::Failure;
use crate::prefix::Prefix;
use crate::prepared::PreparedCircuit;
use crate::r1cs::{R1cs, Row};
use crate::stored::Stored;
use crate::synthesis::SynthesizeError;
use crate::variables::VariableLayout;
use ark_ff::One;
use hekaton_arith::Fr;

impl PreparedCircuit<'_> {
    fn stored_error(&self, kind: TypeId, failure: Failure<CircuitError>) -> SynthesizeError {
        let kind = self.layout().type_name(kind).to_owned();
        match failure {
            Failure::Returned(error) => SynthesizeError::Stored { kind, why: error.to_string() },
            Failure::Panicked(panic) => SynthesizeError::Panic { kind, panic },
        }
    }

    /// The R1CS of a type with stored rows: the rows of the memory check, then the stored ones
    /// (spec: memory-check#rows).
    pub(crate) fn stored_r1cs(
        &self,
        stored: &dyn Stored,
        kind: TypeId,
        masking: Masking,
    ) -> Result<R1cs, SynthesizeError> {
        let name = self.layout().type_name(kind).to_owned();
        let slots = self.layout().slots(kind);
        let layout = VariableLayout::new(slots + masking.slots(), masking);
        let (variables, last) = (layout.len() + stored.own(kind), slots + stored.own(kind));
        let mut rows = memory_rows(&layout);
        let mut outside = None;
        let local = |row: &[(Fr, usize)], outside: &mut Option<usize>| -> Row {
            let term = |(coefficient, variable): &(Fr, usize)| {
                if *variable > last {
                    outside.get_or_insert(*variable);
                }
                (*coefficient, variable_of(&layout, slots, *variable))
            };
            row.iter().map(term).collect()
        };
        let read = stored.rows(kind, &mut |sides| {
            for (matrix, side) in rows.iter_mut().zip(sides) {
                matrix.push(local(side, &mut outside));
            }
        });
        read.map_err(|failure| self.stored_error(kind, failure))?;
        // Variables beyond the type's own would be those of nobody (spec: memory-check#variables).
        if let Some(variable) = outside {
            let why = format!("a constraint has variable {variable}, the last one is {last}");
            return Err(SynthesizeError::Stored { kind: name, why });
        }
        Ok(R1cs { name, layout, variables, rows })
    }

    /// The full assignment of an instance whose own values are stored.
    pub(crate) fn stored_witness(
        &self,
        stored: &dyn Stored,
        kind: TypeId,
        prefix: &Prefix,
        private: &PrivateInput,
        expected: usize,
    ) -> Result<Vec<Fr>, SynthesizeError> {
        let mut z = Vec::with_capacity(expected);
        z.extend_from_slice(&prefix.public);
        z.extend_from_slice(&prefix.committed);
        z.push(prefix.sum);
        z.extend_from_slice(&prefix.inverses);
        let slots = &prefix.committed[..self.layout().slots(kind).min(prefix.committed.len())];
        let values = stored.own_values(kind, slots, private, &mut z);
        values.map_err(|failure| self.stored_error(kind, failure))?;
        match z.len() == expected {
            true => Ok(z),
            false => {
                let kind = self.layout().type_name(kind).to_owned();
                Err(SynthesizeError::Shape { kind, expected, found: z.len() })
            }
        }
    }

    /// Whether the constraints of this circuit are stored, and not at hand: its keys have them.
    pub fn rows_are_in_keys(&self) -> bool {
        self.stored().is_some_and(|stored| !stored.has_rows())
    }

    /// What a constraint of an instance is in the source of an imported circuit; `None` for
    /// circuits with gadgets, and for rows of the memory check. `constraint` counts the rows of the
    /// memory check, masks included, as provers do.
    pub fn describe(
        &self,
        instance: InstanceId,
        constraint: usize,
        masking: Masking,
    ) -> Option<String> {
        if instance.index() >= self.layout().instances() {
            return None;
        }
        let slots = self.layout().slots(self.layout().type_of(instance));
        let first = VariableLayout::new(slots + masking.slots(), masking).rows();
        self.stored()?.describe(instance, constraint.checked_sub(first)?)
    }
}

/// The variable of the R1CS that a local variable is.
fn variable_of(layout: &VariableLayout, slots: usize, local: usize) -> usize {
    match local.checked_sub(1) {
        None => VariableLayout::ONE,
        Some(slot) if slot < slots => layout.committed().start + slot,
        Some(own) => layout.len() + (own - slots),
    }
}

/// The rows of the memory check (spec: memory-check#rows).
fn memory_rows(layout: &VariableLayout) -> [Vec<Row>; 3] {
    let one = |variable| (Fr::one(), variable);
    let mut a = vec![layout.inverses().map(one).collect()];
    let mut b = vec![vec![one(VariableLayout::ONE)]];
    let mut c = vec![vec![one(layout.sum())]];
    let slots = layout.addresses().zip(layout.multiplicities());
    let slots = slots.zip(layout.committed()).zip(layout.inverses());
    for (((address, multiplicity), value), inverse) in slots {
        a.push(vec![one(inverse)]);
        b.push(vec![one(layout.g()), one(address), one(value)]);
        c.push(vec![one(multiplicity)]);
    }
    [a, b, c]
}
