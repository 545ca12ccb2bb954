//! The R1CS and the witnesses of circuits whose constraints are stored.

use crate::circuit_error::CircuitError;
use crate::execution::PrivateInput;
use crate::execution::panics::Failure;
use crate::execution::prepared::PreparedCircuit;
use crate::interface::Masking;
use crate::layout::ids::{InstanceId, TypeId};
use crate::memory::prefix::Prefix;
use crate::memory::variables::VariableLayout;
use crate::synthesis::SynthesizeError;
use crate::synthesis::matrix::{MatrixBuilder, TooLarge};
use crate::synthesis::r1cs::R1cs;
use crate::synthesis::stored::Stored;
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
        let mut builder = MatrixBuilder::new();
        // `rows` calls a closure without a result, so the first error is kept until it returns.
        let mut pushed = push_memory_rows(&layout, &mut builder);
        let mut outside = None;
        let read = stored.rows(kind, &mut |sides| {
            for (side, row) in sides.into_iter().enumerate() {
                let terms = row.iter().map(|(coefficient, variable)| {
                    if *variable > last {
                        outside.get_or_insert(*variable);
                    }
                    (*coefficient, variable_of(&layout, slots, *variable))
                });
                pushed = pushed.and_then(|()| builder.push(side, terms));
            }
        });
        read.map_err(|failure| self.stored_error(kind, failure))?;
        pushed.map_err(|error| SynthesizeError::TooLarge { kind: name.clone(), error })?;
        // A variable beyond the type's own has no place in the order and no query in the keys
        // (spec: memory-check#variables).
        if let Some(variable) = outside {
            let why = format!("a constraint has variable {variable}, the last one is {last}");
            return Err(SynthesizeError::Stored { kind: name, why });
        }
        Ok(R1cs { name, layout, variables, matrices: builder.finish() })
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
        // Mask slots come last, and the source of an imported circuit knows none of them.
        let slots = &prefix.committed[..self.layout().slots(kind).min(prefix.committed.len())];
        let values = stored.own_values(kind, slots, private, &mut z);
        values.map_err(|failure| self.stored_error(kind, failure))?;
        // A multi-scalar multiplication over fewer values would silently drop variables.
        match z.len() == expected {
            true => Ok(z),
            false => {
                let kind = self.layout().type_name(kind).to_owned();
                Err(SynthesizeError::Shape { kind, expected, found: z.len() })
            }
        }
    }

    /// Reports whether the constraints of this circuit are stored in its keys only.
    pub fn rows_are_in_keys(&self) -> bool {
        self.stored().is_some_and(|stored| !stored.has_rows())
    }

    /// Describes the origin of a constraint in the source of an imported circuit; `None` for circuits with
    /// gadgets, and for rows of the memory check. `constraint` counts the rows of the memory check, masks
    /// included, as provers do.
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

/// Adds the rows of the memory check (spec: memory-check#rows).
fn push_memory_rows(layout: &VariableLayout, builder: &mut MatrixBuilder) -> Result<(), TooLarge> {
    let mut push = |a: &[usize], b: &[usize], c: usize| {
        [a, b, &[c]].into_iter().enumerate().try_for_each(|(side, variables)| {
            builder.push(side, variables.iter().map(|variable| (Fr::one(), *variable)))
        })
    };
    let inverses: Vec<usize> = layout.inverses().collect();
    push(&inverses, &[VariableLayout::ONE], layout.sum())?;
    let accesses = layout.addresses().zip(layout.multiplicities());
    let mut rows = accesses.zip(layout.committed()).zip(inverses);
    rows.try_for_each(|(((address, multiplicity), value), inverse)| {
        push(&[inverse], &[layout.g(), address, value], multiplicity)
    })
}
